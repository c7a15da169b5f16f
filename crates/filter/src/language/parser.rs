//! Tokens to a syntax tree, by recursive descent.
//!
//! The only recursion is that of parentheses, and it is bounded before it is entered. Chains of AND, OR and NOT are loops.

use super::error::{ParseError, ParseErrorKind};
use super::expression::{Expression, Operator};
use super::lexer::{Keyword, Lexer, Token, TokenKind};
use crate::{Comparison, Limit, Limits, Timestamp, Value};
use std::ops::Range;

/// Parses a whole text.
pub(super) fn parse(source: &str, limits: &Limits) -> Result<Expression, ParseError> {
    let mut lexer = Lexer::new(source, limits)?;
    let token = lexer.next_token()?;
    let mut parser = Parser { source, lexer, token, nesting: 0, limits };
    let expression = parser.or()?;
    match parser.token.kind {
        TokenKind::End => Ok(expression),
        _ => Err(parser.unexpected("AND, OR or the end of the filter")),
    }
}

struct Parser<'a> {
    source: &'a str,
    lexer: Lexer<'a>,
    /// The next token, not yet consumed.
    token: Token<'a>,
    /// Parentheses open here.
    nesting: usize,
    limits: &'a Limits,
}

/// What stands on one side of a comparison, with its place.
struct Literal {
    value: Value,
    span: Range<usize>,
}

impl<'a> Parser<'a> {
    /// Consumes the next token.
    fn advance(&mut self) -> Result<Token<'a>, ParseError> {
        let next = self.lexer.next_token()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Consumes the next token if it is the keyword.
    fn accept(&mut self, keyword: Keyword) -> Result<bool, ParseError> {
        let found = self.token.kind == TokenKind::Keyword(keyword);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Consumes the next token, which must be of this kind.
    fn require(&mut self, kind: &TokenKind<'_>, expected: &str) -> Result<(), ParseError> {
        if self.token.kind == *kind {
            self.advance()?;
            return Ok(());
        }
        Err(self.unexpected(expected))
    }

    /// The error for the next token.
    fn unexpected(&self, expected: &str) -> ParseError {
        let span = self.token.span.clone();
        let kind = match self.token.kind {
            TokenKind::End => ParseErrorKind::UnexpectedEnd,
            _ => ParseErrorKind::UnexpectedToken(quote(&self.source[span.clone()])),
        };
        ParseError::new(kind, span, expected)
    }

    fn or(&mut self) -> Result<Expression, ParseError> {
        let first = self.and()?;
        let mut operands = vec![first];
        while self.accept(Keyword::Or)? {
            operands.push(self.and()?);
        }
        Ok(if operands.len() == 1 { operands.remove(0) } else { Expression::Or(operands) })
    }

    fn and(&mut self) -> Result<Expression, ParseError> {
        let first = self.unary()?;
        let mut operands = vec![first];
        while self.accept(Keyword::And)? {
            operands.push(self.unary()?);
        }
        Ok(if operands.len() == 1 { operands.remove(0) } else { Expression::And(operands) })
    }

    fn unary(&mut self) -> Result<Expression, ParseError> {
        let mut negated = false;
        while self.accept(Keyword::Not)? {
            negated = !negated;
        }
        let operand = self.primary()?;
        Ok(negate_if(negated, operand))
    }

    fn primary(&mut self) -> Result<Expression, ParseError> {
        match &self.token.kind {
            TokenKind::Open => self.parenthesised(),
            TokenKind::Keyword(Keyword::Exists) => self.exists(),
            TokenKind::Keyword(Keyword::True | Keyword::False) => {
                let literal = self.literal()?;
                match (comparison(&self.token.kind), literal.value) {
                    (None, Value::Bool(value)) => Ok(Expression::Constant(value)),
                    (_, value) => self.flipped(Literal { value, span: literal.span }),
                }
            }
            kind if starts_literal(kind) => {
                let literal = self.literal()?;
                self.flipped(literal)
            }
            TokenKind::Attribute(_) => {
                let (attribute, span) = self.attribute("an attribute")?;
                self.constraint(attribute, span)
            }
            TokenKind::Keyword(_) => Err(self.unexpected("an attribute (one called by a keyword stands in backticks)")),
            _ => Err(self.unexpected("an attribute, a literal, NOT or `(`")),
        }
    }

    fn parenthesised(&mut self) -> Result<Expression, ParseError> {
        self.limits
            .check(Limit::Nesting, self.nesting + 1)
            .map_err(|excess| ParseError::new(ParseErrorKind::Limit(excess), self.token.span.clone(), ""))?;
        self.advance()?;
        self.nesting += 1;
        let expression = self.or()?;
        self.nesting -= 1;
        self.require(&TokenKind::Close, "AND, OR or `)`")?;
        Ok(expression)
    }

    fn exists(&mut self) -> Result<Expression, ParseError> {
        self.advance()?;
        let parenthesised = self.token.kind == TokenKind::Open;
        if parenthesised {
            self.advance()?;
        }
        let (attribute, _) = self.attribute("an attribute")?;
        if parenthesised {
            self.require(&TokenKind::Close, "`)`")?;
        }
        Ok(negate_if(true, Expression::Constraint { attribute, operator: Operator::IsNull }))
    }

    fn attribute(&mut self, expected: &str) -> Result<(String, Range<usize>), ParseError> {
        match &self.token.kind {
            TokenKind::Attribute(_) => match self.advance()? {
                Token { kind: TokenKind::Attribute(name), span } => Ok((name.into_owned(), span)),
                _ => Err(self.unexpected(expected)),
            },
            _ => Err(self.unexpected(expected)),
        }
    }

    /// What follows an attribute; nothing at all means `= TRUE`.
    fn constraint(&mut self, attribute: String, span: Range<usize>) -> Result<Expression, ParseError> {
        if let Some(comparison) = comparison(&self.token.kind) {
            self.advance()?;
            if let TokenKind::Attribute(_) = self.token.kind {
                let kind = ParseErrorKind::NotAttributeAndLiteral("attributes");
                let span = span.start..self.token.span.end;
                return Err(ParseError::new(kind, span, "a literal (a string stands in quotes)"));
            }
            let literal = self.literal()?;
            return compare(attribute, comparison, literal);
        }
        if self.accept(Keyword::Is)? {
            let negated = self.accept(Keyword::Not)?;
            self.require(&TokenKind::Keyword(Keyword::Null), if negated { "NULL" } else { "NULL or NOT NULL" })?;
            return Ok(negate_if(negated, Expression::Constraint { attribute, operator: Operator::IsNull }));
        }
        let negated = self.accept(Keyword::Not)?;
        let operator = match self.token.kind {
            TokenKind::Keyword(Keyword::In) => self.in_values()?,
            TokenKind::Keyword(Keyword::Between) => self.between()?,
            TokenKind::Keyword(Keyword::Like) => self.like()?,
            TokenKind::Keyword(Keyword::Prefix) => Operator::Prefix(self.operand_string()?),
            TokenKind::Keyword(Keyword::Suffix) => Operator::Suffix(self.operand_string()?),
            TokenKind::Keyword(Keyword::Contains) => Operator::Contains(self.operand_string()?),
            _ if negated => return Err(self.unexpected("IN, BETWEEN, LIKE, PREFIX, SUFFIX or CONTAINS")),
            _ => Operator::Compare(Comparison::Eq, Value::Bool(true)),
        };
        Ok(negate_if(negated, Expression::Constraint { attribute, operator }))
    }

    fn in_values(&mut self) -> Result<Operator, ParseError> {
        self.advance()?;
        self.require(&TokenKind::Open, "`(`")?;
        let mut values = Vec::new();
        loop {
            let literal = self.literal()?;
            self.limits
                .check(Limit::InValues, values.len() + 1)
                .map_err(|excess| ParseError::new(ParseErrorKind::Limit(excess), literal.span, ""))?;
            values.push(literal.value);
            match self.token.kind {
                TokenKind::Comma => self.advance()?,
                TokenKind::Close => break,
                _ => return Err(self.unexpected("`,` or `)`")),
            };
        }
        self.advance()?;
        Ok(Operator::In(values))
    }

    fn between(&mut self) -> Result<Operator, ParseError> {
        self.advance()?;
        let low = self.ordered_literal()?;
        self.require(&TokenKind::Keyword(Keyword::And), "AND and the upper end")?;
        let high = self.ordered_literal()?;
        Ok(Operator::Between(low, high))
    }

    fn ordered_literal(&mut self) -> Result<Value, ParseError> {
        let literal = self.literal()?;
        match literal.value {
            Value::Bool(_) => Err(order_of_booleans(literal.span)),
            value => Ok(value),
        }
    }

    fn like(&mut self) -> Result<Operator, ParseError> {
        self.advance()?;
        let (pattern, span) = self.string("a pattern in quotes")?;
        let mut escape = None;
        if self.accept(Keyword::Escape)? {
            let (text, span) = self.string("one character in quotes")?;
            let mut characters = text.chars();
            escape = match (characters.next(), characters.next()) {
                (Some(character), None) => Some(character),
                (None, _) | (Some(_), Some(_)) => {
                    let kind = ParseErrorKind::EscapeLength(text.chars().count());
                    return Err(ParseError::new(kind, span, "one character in quotes"));
                }
            };
        }
        if let Some(escape) = escape {
            check_escapes(&pattern, escape, span)?;
        }
        Ok(Operator::Like { pattern, escape })
    }

    fn operand_string(&mut self) -> Result<String, ParseError> {
        self.advance()?;
        Ok(self.string("a string in quotes")?.0)
    }

    fn string(&mut self, expected: &str) -> Result<(String, Range<usize>), ParseError> {
        match &self.token.kind {
            TokenKind::String(_) => match self.advance()? {
                Token { kind: TokenKind::String(text), span } => Ok((text.into_owned(), span)),
                _ => Err(self.unexpected(expected)),
            },
            _ => Err(self.unexpected(expected)),
        }
    }

    /// `literal cmp attr`, its literal read.
    fn flipped(&mut self, literal: Literal) -> Result<Expression, ParseError> {
        let Some(comparison) = comparison(&self.token.kind) else {
            return Err(self.unexpected("a comparison with an attribute"));
        };
        self.advance()?;
        if let TokenKind::Attribute(_) = self.token.kind {
            let (attribute, _) = self.attribute("an attribute")?;
            return compare(attribute, comparison.flipped(), literal);
        }
        if !starts_literal(&self.token.kind) {
            return Err(self.unexpected("an attribute"));
        }
        let span = literal.span.start..self.literal()?.span.end;
        let kind = ParseErrorKind::NotAttributeAndLiteral("literals");
        Err(ParseError::new(kind, span, "an attribute (its name stands bare or in backticks)"))
    }

    fn literal(&mut self) -> Result<Literal, ParseError> {
        let start = self.token.span.start;
        let sign = match self.token.kind {
            TokenKind::Minus => "-",
            TokenKind::Plus => "+",
            _ => "",
        };
        if !sign.is_empty() {
            self.advance()?;
        }
        let span = start..self.token.span.end;
        let value = match &self.token.kind {
            TokenKind::Integer(digits) => integer(sign, digits, &span)?,
            TokenKind::Float(digits) => float(sign, digits, &span)?,
            _ if !sign.is_empty() => return Err(self.unexpected("a number after the sign")),
            TokenKind::String(text) => Value::String(text.clone().into_owned()),
            TokenKind::Keyword(Keyword::True) => Value::Bool(true),
            TokenKind::Keyword(Keyword::False) => Value::Bool(false),
            TokenKind::Keyword(Keyword::Timestamp) => return self.timestamp(),
            TokenKind::Keyword(Keyword::Null) => {
                let expected = "a literal (`attribute IS NULL` asks for absence)";
                return Err(ParseError::new(ParseErrorKind::NullLiteral, span, expected));
            }
            _ => return Err(self.unexpected("a literal: a number, a string in quotes, TRUE, FALSE or TIMESTAMP")),
        };
        self.advance()?;
        Ok(Literal { value, span })
    }

    fn timestamp(&mut self) -> Result<Literal, ParseError> {
        const EXPECTED: &str = "a time with its zone, such as '2013-01-01T06:00:00Z'";
        let start = self.advance()?.span.start;
        let (text, span) = self.string(EXPECTED)?;
        match text.parse::<Timestamp>() {
            Ok(time) => Ok(Literal { value: Value::Time(time), span: start..span.end }),
            Err(error) => Err(ParseError::new(ParseErrorKind::InvalidTimestamp(error.to_string()), span, EXPECTED)),
        }
    }
}

/// A token's text for a message, cut to a sensible length.
fn quote(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

fn negate_if(negated: bool, expression: Expression) -> Expression {
    if negated { Expression::Not(Box::new(expression)) } else { expression }
}

fn starts_literal(kind: &TokenKind<'_>) -> bool {
    matches!(
        kind,
        TokenKind::String(_)
            | TokenKind::Integer(_)
            | TokenKind::Float(_)
            | TokenKind::Minus
            | TokenKind::Plus
            | TokenKind::Keyword(Keyword::True | Keyword::False | Keyword::Timestamp)
    )
}

fn comparison(kind: &TokenKind<'_>) -> Option<Comparison> {
    match kind {
        TokenKind::Equal => Some(Comparison::Eq),
        TokenKind::NotEqual => Some(Comparison::Ne),
        TokenKind::Less => Some(Comparison::Lt),
        TokenKind::LessOrEqual => Some(Comparison::Le),
        TokenKind::Greater => Some(Comparison::Gt),
        TokenKind::GreaterOrEqual => Some(Comparison::Ge),
        _ => None,
    }
}

fn compare(attribute: String, comparison: Comparison, literal: Literal) -> Result<Expression, ParseError> {
    match (&literal.value, comparison) {
        (Value::Bool(_), Comparison::Lt | Comparison::Le | Comparison::Gt | Comparison::Ge) => {
            Err(order_of_booleans(literal.span))
        }
        _ => Ok(Expression::Constraint { attribute, operator: Operator::Compare(comparison, literal.value) }),
    }
}

fn order_of_booleans(span: Range<usize>) -> ParseError {
    ParseError::new(
        ParseErrorKind::OrderOfBooleans,
        span,
        "a number, a string or a TIMESTAMP; booleans know only = and <>",
    )
}

fn integer(sign: &str, digits: &str, span: &Range<usize>) -> Result<Value, ParseError> {
    let text = format!("{sign}{digits}");
    text.parse().map(Value::Int).map_err(|_| {
        let kind = ParseErrorKind::NumberOutOfRange(text);
        ParseError::new(kind, span.clone(), format!("an integer from {} to {}, or a float", i64::MIN, i64::MAX))
    })
}

fn float(sign: &str, digits: &str, span: &Range<usize>) -> Result<Value, ParseError> {
    let text = format!("{sign}{digits}");
    match text.parse::<f64>() {
        Ok(float) if float.is_finite() => Ok(Value::Float(float)),
        Ok(_) | Err(_) => {
            let kind = ParseErrorKind::NumberOutOfRange(text);
            Err(ParseError::new(kind, span.clone(), format!("a float from {:e} to {:e}", f64::MIN, f64::MAX)))
        }
    }
}

/// An escape character must stand before `%`, `_` or itself. The span is the whole pattern's: inside it, doubled quotes
/// shift positions.
fn check_escapes(pattern: &str, escape: char, span: Range<usize>) -> Result<(), ParseError> {
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character == escape && !characters.next().is_some_and(|next| matches!(next, '%' | '_') || next == escape) {
            let expected = format!("{escape} only before %, _ or {escape}");
            return Err(ParseError::new(ParseErrorKind::StrayEscape(escape), span, expected));
        }
    }
    Ok(())
}
