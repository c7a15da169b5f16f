//! Filters as they come on the command line.

use crate::failure::Failure;
use enroute_filter::{Filter, ParseError};

/// Parses filters given as arguments.
pub(crate) fn parse_all(texts: &[String]) -> Result<Vec<Filter>, Failure> {
    texts.iter().map(|text| parse(text)).collect()
}

/// Parses a filter given as an argument.
pub(crate) fn parse(text: &str) -> Result<Filter, Failure> {
    Filter::parse(text).map_err(|error| explain(&error, text))
}

/// A filter error with the caret under its place; the command line is to blame.
pub(crate) fn explain(error: &ParseError, text: &str) -> Failure {
    let rendered = error.render(text);
    let (what, excerpt) = rendered.split_once('\n').unwrap_or((&rendered, ""));
    Failure::usage(what.strip_prefix("error: ").unwrap_or(what)).showing(excerpt)
}
