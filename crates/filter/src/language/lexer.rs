//! Text to tokens, one at a time.

use super::error::{ParseError, ParseErrorKind};
use crate::{Limit, Limits};
use std::borrow::Cow;
use std::ops::Range;

/// A token and its place in the text, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind<'a> {
    Keyword(Keyword),
    /// An attribute: dotted, or what stood between backticks.
    Attribute(Cow<'a, str>),
    String(Cow<'a, str>),
    /// Digits, without sign.
    Integer(&'a str),
    /// Digits with a point or an exponent, without sign.
    Float(&'a str),
    Minus,
    Plus,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Open,
    Close,
    Comma,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    Between,
    Contains,
    Escape,
    Exists,
    False,
    In,
    Is,
    Like,
    Not,
    Null,
    Or,
    Prefix,
    Suffix,
    Timestamp,
    True,
}

const KEYWORDS: [(&str, Keyword); 16] = [
    ("AND", Keyword::And),
    ("BETWEEN", Keyword::Between),
    ("CONTAINS", Keyword::Contains),
    ("ESCAPE", Keyword::Escape),
    ("EXISTS", Keyword::Exists),
    ("FALSE", Keyword::False),
    ("IN", Keyword::In),
    ("IS", Keyword::Is),
    ("LIKE", Keyword::Like),
    ("NOT", Keyword::Not),
    ("NULL", Keyword::Null),
    ("OR", Keyword::Or),
    ("PREFIX", Keyword::Prefix),
    ("SUFFIX", Keyword::Suffix),
    ("TIMESTAMP", Keyword::Timestamp),
    ("TRUE", Keyword::True),
];

fn keyword(word: &str) -> Option<Keyword> {
    KEYWORDS.iter().find(|(text, _)| text.eq_ignore_ascii_case(word)).map(|&(_, keyword)| keyword)
}

fn starts_name(character: char) -> bool {
    character.is_alphabetic() || matches!(character, '_' | '$')
}

fn continues_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

/// Whether an attribute's name can stand in a filter without backticks.
pub(super) fn is_bare_name(name: &str) -> bool {
    let is_segment = |segment: &str| segment.starts_with(starts_name) && segment.chars().all(continues_name);
    name.split('.').all(is_segment) && keyword(name).is_none()
}

/// Hands out the tokens of a text within the limits on its length and their number.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    source: &'a str,
    position: usize,
    tokens: usize,
    limits: &'a Limits,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(source: &'a str, limits: &'a Limits) -> Result<Lexer<'a>, ParseError> {
        limits.check(Limit::FilterText, source.len()).map_err(|excess| {
            let span = excess.maximum..source.len();
            ParseError::new(ParseErrorKind::Limit(excess), span, "")
        })?;
        Ok(Lexer { source, position: 0, tokens: 0, limits })
    }

    /// The next token; at the end of the text [`TokenKind::End`], as often as asked.
    pub(super) fn next_token(&mut self) -> Result<Token<'a>, ParseError> {
        let rest = self.rest();
        self.position += rest.len() - rest.trim_start().len();
        let start = self.position;
        let Some(first) = self.rest().chars().next() else {
            return Ok(Token { kind: TokenKind::End, span: start..start });
        };
        self.tokens += 1;
        self.limits
            .check(Limit::Tokens, self.tokens)
            .map_err(|excess| ParseError::new(ParseErrorKind::Limit(excess), start..start + first.len_utf8(), ""))?;
        let kind = match first {
            '\'' | '"' => TokenKind::String(self.quoted(first)?),
            '`' => self.quoted_name()?,
            '0'..='9' => self.number()?,
            '.' if self.rest()[1..].starts_with(|next: char| next.is_ascii_digit()) => self.number()?,
            _ if starts_name(first) => self.word()?,
            _ => self.symbol(first)?,
        };
        Ok(Token { kind, span: start..self.position })
    }

    fn rest(&self) -> &'a str {
        &self.source[self.position..]
    }

    /// Steps over the characters that satisfy `belongs` and returns them.
    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|character| !belongs(character)).unwrap_or(rest.len());
        self.position += length;
        &rest[..length]
    }

    fn symbol(&mut self, first: char) -> Result<TokenKind<'a>, ParseError> {
        const SYMBOLS: [(&str, TokenKind<'static>); 16] = [
            // The longer first.
            ("==", TokenKind::Equal),
            ("<>", TokenKind::NotEqual),
            ("!=", TokenKind::NotEqual),
            ("<=", TokenKind::LessOrEqual),
            (">=", TokenKind::GreaterOrEqual),
            ("||", TokenKind::Keyword(Keyword::Or)),
            ("&&", TokenKind::Keyword(Keyword::And)),
            ("=", TokenKind::Equal),
            ("<", TokenKind::Less),
            (">", TokenKind::Greater),
            ("!", TokenKind::Keyword(Keyword::Not)),
            ("(", TokenKind::Open),
            (")", TokenKind::Close),
            (",", TokenKind::Comma),
            ("-", TokenKind::Minus),
            ("+", TokenKind::Plus),
        ];
        match SYMBOLS.iter().find(|(text, _)| self.rest().starts_with(text)) {
            Some((text, kind)) => {
                self.position += text.len();
                Ok(kind.clone())
            }
            None => {
                let expected = match first {
                    '|' => "`||` or OR",
                    '&' => "`&&` or AND",
                    '‘' | '’' | '“' | '”' => "a plain quote, ' or \"",
                    '.' => "an attribute (between backticks, its dots are part of the name)",
                    _ => "an attribute, a literal or an operator",
                };
                Err(self.unexpected(expected))
            }
        }
    }

    /// The error for the character at the present position, or for the end of the text.
    fn unexpected(&self, expected: &str) -> ParseError {
        let start = self.position;
        match self.rest().chars().next() {
            Some(character) => {
                let kind = ParseErrorKind::UnexpectedCharacter(character);
                ParseError::new(kind, start..start + character.len_utf8(), expected)
            }
            None => ParseError::new(ParseErrorKind::UnexpectedEnd, start..start, expected),
        }
    }

    fn word(&mut self) -> Result<TokenKind<'a>, ParseError> {
        let start = self.position;
        loop {
            self.take_while(continues_name);
            if !self.rest().starts_with('.') {
                break;
            }
            self.position += 1;
            if !self.rest().starts_with(starts_name) {
                return Err(self.unexpected("the rest of the attribute's name"));
            }
        }
        let word = &self.source[start..self.position];
        match keyword(word) {
            Some(keyword) => Ok(TokenKind::Keyword(keyword)),
            None => self.attribute(start, Cow::Borrowed(word)),
        }
    }

    fn quoted_name(&mut self) -> Result<TokenKind<'a>, ParseError> {
        let start = self.position;
        let name = self.quoted('`')?;
        if name.is_empty() {
            return Err(ParseError::new(
                ParseErrorKind::EmptyName,
                start..self.position,
                "a name between the backticks",
            ));
        }
        self.attribute(start, name)
    }

    fn attribute(&self, start: usize, name: Cow<'a, str>) -> Result<TokenKind<'a>, ParseError> {
        match self.limits.check(Limit::AttributeName, name.len()) {
            Ok(()) => Ok(TokenKind::Attribute(name)),
            Err(excess) => Err(ParseError::new(ParseErrorKind::Limit(excess), start..self.position, "")),
        }
    }

    /// What stands between two quotes, a doubled quote being one of the text's.
    fn quoted(&mut self, quote: char) -> Result<Cow<'a, str>, ParseError> {
        let start = self.position;
        self.position += 1;
        let mut text = Cow::Borrowed(self.take_while(|character| character != quote));
        loop {
            if self.rest().is_empty() {
                let (kind, expected) = match quote {
                    '`' => (ParseErrorKind::UnterminatedName, "a closing backtick".to_owned()),
                    _ => (ParseErrorKind::UnterminatedString(quote), format!("a closing {quote}")),
                };
                return Err(ParseError::new(kind, start..self.position, expected));
            }
            self.position += 1;
            if !self.rest().starts_with(quote) {
                return Ok(text);
            }
            self.position += 1;
            let more = self.take_while(|character| character != quote);
            let text = text.to_mut();
            text.push(quote);
            text.push_str(more);
        }
    }

    /// `1`, `1.5`, `1.`, `.5`, each but the first also with an exponent, as `1` may have one too.
    fn number(&mut self) -> Result<TokenKind<'a>, ParseError> {
        let start = self.position;
        let is_digit = |character: char| character.is_ascii_digit();
        let mut digits = self.take_while(is_digit).len();
        let mut is_float = false;
        if self.rest().starts_with('.') {
            is_float = true;
            self.position += 1;
            digits += self.take_while(is_digit).len();
        }
        let mut is_number = digits > 0;
        if self.rest().starts_with(['e', 'E']) {
            is_float = true;
            self.position += 1;
            if self.rest().starts_with(['+', '-']) {
                self.position += 1;
            }
            is_number &= !self.take_while(is_digit).is_empty();
        }
        // `12ab` and `1.2.3` are one mistake, not two tokens.
        is_number &= self.take_while(|character| continues_name(character) || character == '.').is_empty();
        let text = &self.source[start..self.position];
        match (is_number, is_float) {
            (true, true) => Ok(TokenKind::Float(text)),
            (true, false) => Ok(TokenKind::Integer(text)),
            (false, _) => {
                let kind = ParseErrorKind::MalformedNumber(text.to_owned());
                Err(ParseError::new(kind, start..self.position, "a number such as 12, 1.5 or 2e6"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Result<Vec<TokenKind<'_>>, ParseError> {
        let limits = Box::leak(Box::new(Limits::default()));
        let mut lexer = Lexer::new(source, limits)?;
        let mut kinds = Vec::new();
        loop {
            match lexer.next_token()?.kind {
                TokenKind::End => return Ok(kinds),
                kind => kinds.push(kind),
            }
        }
    }

    fn attribute(name: &str) -> TokenKind<'_> {
        TokenKind::Attribute(name.into())
    }

    #[test]
    fn names_are_dotted_quoted_or_keywords() {
        assert_eq!(
            kinds("a.b_c.$1 `a b``c` iN order.in Ünïcode").unwrap(),
            [
                attribute("a.b_c.$1"),
                attribute("a b`c"),
                TokenKind::Keyword(Keyword::In),
                attribute("order.in"),
                attribute("Ünïcode")
            ]
        );
        for (name, bare) in [
            ("a", true),
            ("a.in", true),
            ("in", false),
            ("Not", false),
            ("a b", false),
            ("a.", false),
            ("", false),
            ("1a", false),
        ] {
            assert_eq!(is_bare_name(name), bare, "{name}");
        }
    }

    #[test]
    fn strings_double_their_quote() {
        let strings = ["'it''s'", "\"a \"\"b\"\"\"", "''", "''''", "'\"'"].map(|source| kinds(source).unwrap());
        let expected = ["it's", "a \"b\"", "", "'", "\""].map(|text| vec![TokenKind::String(text.into())]);
        assert_eq!(strings, expected);
    }

    #[test]
    fn numbers() {
        assert_eq!(
            kinds("1 1.5 1. .5 1e3 1.5E-3 .5e+1").unwrap(),
            [
                TokenKind::Integer("1"),
                TokenKind::Float("1.5"),
                TokenKind::Float("1."),
                TokenKind::Float(".5"),
                TokenKind::Float("1e3"),
                TokenKind::Float("1.5E-3"),
                TokenKind::Float(".5e+1")
            ]
        );
        for bad in ["1a", "1.2.3", ".5.", "1e", "1e+", ".3e", "0x10", "1_000", "5.and"] {
            assert_eq!(kinds(bad).unwrap_err().kind, ParseErrorKind::MalformedNumber(bad.to_owned()));
        }
    }

    #[test]
    fn symbols_need_no_spaces() {
        use TokenKind::{Close, Comma, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Minus, NotEqual, Open, Plus};
        let not = TokenKind::Keyword(Keyword::Not);
        assert_eq!(
            kinds("===<><=<>=>!=!(),-+").unwrap(),
            [
                Equal,
                Equal,
                NotEqual,
                LessOrEqual,
                NotEqual,
                Equal,
                Greater,
                NotEqual,
                not,
                Open,
                Close,
                Comma,
                Minus,
                Plus
            ]
        );
        assert_eq!(kinds("<").unwrap(), [Less]);
        assert_eq!(kinds(">=").unwrap(), [GreaterOrEqual]);
    }
}
