//! Why a text is no filter, with the place, in one line or under the source.

use crate::LimitExceeded;
use std::fmt::{self, Write};
use std::ops::Range;

/// Why a text is no filter: what is wrong, where, and what would have been right.
///
/// `Display` is one line; [`ParseError::render`] shows the place under the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// What is wrong.
    pub kind: ParseErrorKind,
    /// Where, in bytes of the text. Empty at the end of the text.
    pub span: Range<usize>,
    /// What would have been right; completes the sentence "expected …".
    pub expected: String,
}

/// The kinds of [`ParseError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseErrorKind {
    /// A bound was passed.
    #[error(transparent)]
    Limit(LimitExceeded),
    /// A character that starts nothing.
    #[error("unexpected character {0:?}")]
    UnexpectedCharacter(char),
    /// A string without its closing quote.
    #[error("string without closing quote {0}")]
    UnterminatedString(char),
    /// A name in backticks without the closing one.
    #[error("name without closing backtick")]
    UnterminatedName,
    /// A name in backticks with nothing between them.
    #[error("empty attribute name")]
    EmptyName,
    /// Digits that are no number, or that run into a name.
    #[error("malformed number {0:?}")]
    MalformedNumber(String),
    /// An integer beyond 64 bits, or a float beyond its largest finite value.
    #[error("number {0} is out of range")]
    NumberOutOfRange(String),
    /// The text goes on where it should not, or otherwise than it should.
    #[error("unexpected {0}")]
    UnexpectedToken(String),
    /// The text stops too early.
    #[error("unexpected end of the filter")]
    UnexpectedEnd,
    /// `<`, `<=`, `>`, `>=` or `BETWEEN` with TRUE or FALSE.
    #[error("booleans have no order")]
    OrderOfBooleans,
    /// NULL where a literal belongs.
    #[error("NULL is not a value")]
    NullLiteral,
    /// Two attributes compared with each other, or two literals.
    #[error("a comparison needs one attribute and one literal, these are two {0}")]
    NotAttributeAndLiteral(&'static str),
    /// `ESCAPE` with anything but one character.
    #[error("ESCAPE takes one character, not {0}")]
    EscapeLength(usize),
    /// An escape character that escapes nothing.
    #[error("escape character {0:?} before something that needs no escape")]
    StrayEscape(char),
    /// A string after `TIMESTAMP` that is no time.
    #[error("invalid timestamp: {0}")]
    InvalidTimestamp(String),
}

impl ParseErrorKind {
    /// The kind's name in machine-readable output, such as `unexpected_token`; a passed limit is `limit_` and its name.
    pub fn name(&self) -> String {
        let name = match self {
            ParseErrorKind::Limit(excess) => return format!("limit_{}", excess.limit.name()),
            ParseErrorKind::UnexpectedCharacter(_) => "unexpected_character",
            ParseErrorKind::UnterminatedString(_) => "unterminated_string",
            ParseErrorKind::UnterminatedName => "unterminated_name",
            ParseErrorKind::EmptyName => "empty_name",
            ParseErrorKind::MalformedNumber(_) => "malformed_number",
            ParseErrorKind::NumberOutOfRange(_) => "number_out_of_range",
            ParseErrorKind::UnexpectedToken(_) => "unexpected_token",
            ParseErrorKind::UnexpectedEnd => "unexpected_end",
            ParseErrorKind::OrderOfBooleans => "order_of_booleans",
            ParseErrorKind::NullLiteral => "null_literal",
            ParseErrorKind::NotAttributeAndLiteral(_) => "not_attribute_and_literal",
            ParseErrorKind::EscapeLength(_) => "escape_length",
            ParseErrorKind::StrayEscape(_) => "stray_escape",
            ParseErrorKind::InvalidTimestamp(_) => "invalid_timestamp",
        };
        name.to_owned()
    }
}

/// Characters of a source line shown on either side of the place.
const CONTEXT: usize = 60;

impl ParseError {
    pub(super) fn new(kind: ParseErrorKind, span: Range<usize>, expected: impl Into<String>) -> ParseError {
        ParseError { kind, span, expected: expected.into() }
    }

    /// The error with a caret under the line of the source where it is. `source` is the text that was parsed.
    ///
    /// Tabs stay tabs, so that the caret stands right at any tab width; other control characters are replaced; long
    /// lines are cut. The result ends without a line break.
    pub fn render(&self, source: &str) -> String {
        let start = floor_boundary(source, self.span.start);
        let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = source[start..].find('\n').map_or(source.len(), |at| start + at);
        let end = floor_boundary(source, self.span.end).clamp(start, line_end);

        let before = &source[line_start..start];
        let shown_from = before.char_indices().rev().nth(CONTEXT - 1).map_or(0, |(at, _)| at);
        let marked = &source[start..end];
        let marked_end = marked.char_indices().nth(CONTEXT).map_or(marked.len(), |(at, _)| at);
        let after = &source[start + marked_end..line_end];
        let after_end = after.char_indices().nth(CONTEXT).map_or(after.len(), |(at, _)| at);

        let line = source[..line_start].matches('\n').count() + 1;
        let column = before.chars().count() + 1;
        let cut = |is_cut: bool| if is_cut { "…" } else { "" };
        let lead = cut(shown_from > 0);
        let shown = printable(&source[line_start + shown_from..start + marked_end + after_end]);
        let trail = cut(after_end < after.len());
        let pad: String =
            before[shown_from..].chars().map(|character| if character == '\t' { '\t' } else { ' ' }).collect();
        let carets = "^".repeat(marked[..marked_end].chars().count().max(1));
        let gutter = line.to_string();
        let empty = " ".repeat(gutter.len());
        let lead_pad = " ".repeat(lead.chars().count());

        let mut out = format!("error: {}\n", self.message());
        let _ = writeln!(out, "{empty}--> line {line}, column {column}");
        let _ = writeln!(out, "{empty} |");
        let _ = writeln!(out, "{gutter} | {lead}{shown}{trail}");
        let _ = write!(out, "{empty} | {lead_pad}{pad}{carets}");
        out
    }

    /// What is wrong and what would have been right, without the place.
    pub fn message(&self) -> String {
        // A limit says by itself what would have been right.
        if self.expected.is_empty() {
            self.kind.to_string()
        } else {
            format!("{}: expected {}", self.kind, self.expected)
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (bytes {}..{})", printable(&self.message()), self.span.start, self.span.end)
    }
}

impl std::error::Error for ParseError {}

fn floor_boundary(source: &str, at: usize) -> usize {
    (0..=at.min(source.len())).rev().find(|&at| source.is_char_boundary(at)).unwrap_or(0)
}

/// Keeps what is shown on one line of a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(span: Range<usize>) -> ParseError {
        ParseError::new(ParseErrorKind::UnexpectedToken("`x`".to_owned()), span, "a literal")
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        let expected = "\
error: unexpected `x`: expected a literal
 --> line 2, column 6
  |
2 | \tä = 'xyz' or
  | \t    ^^^^^";
        let source = "a or\n\tä = 'xyz' or\nb";
        let start = source.find("'xyz'").unwrap();
        assert_eq!(at(start..start + 5).render(source), expected);
    }

    #[test]
    fn the_end_of_the_text_gets_a_caret_too() {
        assert!(at(3..3).render("a =").ends_with("1 | a =\n  |    ^"));
        assert!(at(0..0).render("").ends_with("1 | \n  | ^"));
    }

    #[test]
    fn spans_over_lines_stop_at_the_line() {
        assert!(at(0..7).render("abc\ndef").ends_with("1 | abc\n  | ^^^"));
    }

    #[test]
    fn long_lines_are_cut() {
        let source = "x".repeat(100_000);
        let text = at(50_000..90_000).render(&source);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[3], format!("1 | …{}…", "x".repeat(3 * CONTEXT)));
        assert_eq!(lines[4], format!("  |  {}{}", " ".repeat(CONTEXT), "^".repeat(CONTEXT)));
    }

    #[test]
    fn any_span_of_any_source_renders() {
        let source = "é\u{1F680}\t\r\n\u{0}\u{1b}[31m 'ü";
        for start in 0..source.len() + 3 {
            for end in 0..source.len() + 3 {
                let text = at(start..end).render(source);
                assert_eq!(text.lines().count(), 5);
                assert!(!text.contains('\u{1b}'));
            }
        }
    }
}
