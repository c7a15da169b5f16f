//! The filter language: text to syntax tree to canonical form, and back to text.
//!
//! ```text
//! filter     = or EOF ;
//! or         = and { ("OR" | "||") and } ;
//! and        = unary { ("AND" | "&&") unary } ;
//! unary      = { "NOT" | "!" } primary ;
//! primary    = "(" or ")" | "TRUE" | "FALSE" | constraint ;
//! constraint = attr cmp literal | literal cmp attr
//!            | attr ["NOT"] "IN" "(" literal { "," literal } ")"
//!            | attr ["NOT"] "BETWEEN" literal "AND" literal
//!            | attr ["NOT"] "LIKE" string [ "ESCAPE" string ]
//!            | attr ["NOT"] ("PREFIX" | "SUFFIX" | "CONTAINS") string
//!            | attr "IS" ["NOT"] "NULL" | "EXISTS" ( attr | "(" attr ")" )
//!            | attr ;
//! cmp        = "=" | "==" | "<>" | "!=" | "<" | "<=" | ">" | ">=" ;
//! attr       = name { "." name } | "`" { any | "``" } "`" ;
//! name       = (letter | "_" | "$") { letter | digit | "_" | "$" } ;
//! literal    = ["-" | "+"] (int | float) | string | "TRUE" | "FALSE" | "TIMESTAMP" string ;
//! string     = "'" { any | "''" } "'" | '"' { any | '""' } '"' ;
//! ```
//!
//! Keywords may be written in any case; names and strings mean what they spell. A bare attribute means `= TRUE`. A dotted
//! name has no spaces in it, and may have keywords between its dots; one that is a keyword as a whole stands in backticks.
//!
//! A constraint is UNKNOWN where its attribute is absent, NaN, or of another class than its literal. AND, OR and NOT are
//! Kleene's, and an event matches only where the whole is TRUE: so `a <> 1` and `NOT (a = 1)` both skip events without
//! `a`. `IS NULL` is never UNKNOWN.

mod error;
mod explain;
mod expression;
mod lexer;
mod lower;
mod parser;
mod print;

pub use error::{ParseError, ParseErrorKind};
pub use explain::{Explanation, Warning, WarningKind};
pub use expression::{Expression, Operator};

use crate::{Filter, Limits};
use std::str::FromStr;

impl Filter {
    /// Parses a filter's text within the default limits.
    ///
    /// # Errors
    /// As [`Filter::parse_with`].
    pub fn parse(text: &str) -> Result<Filter, ParseError> {
        Filter::parse_with(text, &Limits::default())
    }

    /// Parses a filter's text within the given limits.
    ///
    /// # Errors
    /// The text is not of the language, or passes a limit, or its canonical form does.
    pub fn parse_with(text: &str, limits: &Limits) -> Result<Filter, ParseError> {
        let expression = Expression::parse_with(text, limits)?;
        canonical(&expression, text, limits)
    }
}

/// The canonical form of what `text` was parsed to.
fn canonical(expression: &Expression, text: &str, limits: &Limits) -> Result<Filter, ParseError> {
    lower::lower(expression, false, limits)
        .map_err(|excess| ParseError::new(ParseErrorKind::Limit(excess), 0..text.len(), ""))
}

impl FromStr for Filter {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Filter, ParseError> {
        Filter::parse(text)
    }
}
