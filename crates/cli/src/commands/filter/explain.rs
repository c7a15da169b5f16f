//! `enroute filter explain`.

use super::ExplainOptions;
use crate::failure::Failure;
use crate::filter_text;
use crate::output::Output;
use enroute_filter::{Explanation, Limits};
use std::io::{self, Read};

/// More than any filter may have; what is beyond is not read.
const LONGEST: u64 = 1 << 20;

pub(super) fn run(options: &ExplainOptions) -> Result<(), Failure> {
    let text = if options.filter == "-" { read_all()? } else { options.filter.clone() };
    let explanation =
        Explanation::of(&text, &Limits::default()).map_err(|error| filter_text::explain(&error, &text))?;
    let mut output = Output::new();
    if options.json {
        output.json(&explanation)?;
    } else {
        let Explanation { canonical, required, mentioned, warnings } = explanation;
        output.line(format_args!("canonical: {canonical}"))?;
        output.line(format_args!("requires:  {}", list(&required)))?;
        output.line(format_args!("mentions:  {}", list(&mentioned)))?;
        for warning in warnings {
            output.line(format_args!("warning:   {}", warning.message))?;
        }
    }
    output.flush()
}

fn list(attributes: &[String]) -> String {
    if attributes.is_empty() { "no attribute".to_owned() } else { attributes.join(", ") }
}

fn read_all() -> Result<String, Failure> {
    let mut text = String::new();
    let read = io::stdin().lock().take(LONGEST).read_to_string(&mut text);
    read.map_err(|error| Failure::new("cannot read the filter from standard input").because(&error))?;
    Ok(text)
}
