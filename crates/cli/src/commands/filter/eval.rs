//! `enroute filter eval`.

use super::EvalOptions;
use super::answer::{Refusal, each_line};
use crate::failure::Failure;
use enroute_filter::{Filter, JsonError, JsonReader};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Deserialize)]
struct Question<'a> {
    #[serde(borrow)]
    filter: Cow<'a, str>,
    /// Kept as it is written: the events' own reader notices repeated members and integers that are too large.
    #[serde(borrow)]
    event: &'a RawValue,
}

#[derive(Serialize)]
struct Answer {
    r#match: bool,
}

pub(super) fn run(options: EvalOptions) -> Result<(), Failure> {
    let reader = JsonReader { times: options.times, strict: options.strict, ..JsonReader::default() };
    // Questions about one filter often follow one another.
    let mut latest: Option<(String, Filter)> = None;
    each_line(|line| {
        let question: Question<'_> = serde_json::from_str(line).map_err(|error| Refusal::line(&error))?;
        let filter = match latest.take() {
            Some((text, filter)) if text == question.filter => filter,
            _ => Filter::parse(&question.filter).map_err(|error| Refusal::filter(&error, None))?,
        };
        let event = reader.read(question.event.get());
        let answer = event.map(|(event, _)| Answer { r#match: filter.matches(&event) });
        latest = Some((question.filter.into_owned(), filter));
        answer.map_err(|error| Refusal::new(kind(&error), error.to_string()))
    })
}

/// The name of an event error in the answers; a passed limit has one as in a filter.
fn kind(error: &JsonError) -> String {
    let name = match error {
        JsonError::Syntax(_) => "event_syntax",
        JsonError::Array(_) => "event_array",
        JsonError::IntegerOutOfRange { .. } | JsonError::FloatOutOfRange { .. } => "number_out_of_range",
        JsonError::Duplicate(_) => "event_duplicate",
        JsonError::Time { .. } => "invalid_timestamp",
        JsonError::Limit(excess) => return format!("limit_{}", excess.limit.name()),
        JsonError::Event(_) => "event",
    };
    name.to_owned()
}
