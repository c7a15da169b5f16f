//! `enroute filter covers`.

use super::answer::{Refusal, each_line};
use crate::failure::Failure;
use enroute_covering::relation;
use enroute_filter::Filter;
use serde::Deserialize;
use std::borrow::Cow;

#[derive(Deserialize)]
struct Question<'a> {
    #[serde(borrow)]
    f: Cow<'a, str>,
    #[serde(borrow)]
    g: Cow<'a, str>,
}

pub(super) fn run() -> Result<(), Failure> {
    each_line(|line| {
        let question: Question<'_> = serde_json::from_str(line).map_err(|error| Refusal::line(&error))?;
        let f = Filter::parse(&question.f).map_err(|error| Refusal::filter(&error, Some("f")))?;
        let g = Filter::parse(&question.g).map_err(|error| Refusal::filter(&error, Some("g")))?;
        Ok(relation(&f, &g))
    })
}
