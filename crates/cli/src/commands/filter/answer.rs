//! One answer line for each line of standard input.

use crate::failure::Failure;
use crate::lines::Lines;
use crate::output::Output;
use enroute_filter::ParseError;
use serde::Serialize;

/// What is answered to a line that cannot be answered otherwise.
#[derive(Debug, Serialize)]
pub(super) struct Refusal {
    error: Detail,
}

#[derive(Debug, Serialize)]
struct Detail {
    kind: String,
    message: String,
    /// Bytes of the filter; none if the error is not in a filter.
    span: Option<[usize; 2]>,
    /// Which member of the line the error is in, where there is more than one filter.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    member: Option<&'static str>,
}

impl Refusal {
    pub(super) fn new(kind: impl Into<String>, message: impl Into<String>) -> Refusal {
        Refusal { error: Detail { kind: kind.into(), message: message.into(), span: None, member: None } }
    }

    pub(super) fn filter(error: &ParseError, member: Option<&'static str>) -> Refusal {
        let span = Some([error.span.start, error.span.end]);
        Refusal { error: Detail { kind: error.kind.name(), message: error.to_string(), span, member } }
    }

    /// A line that is not the JSON object it should be.
    pub(super) fn line(error: &serde_json::Error) -> Refusal {
        Refusal::new("line", error.to_string())
    }
}

/// Answers each line of standard input with what `answer` makes of it. All that has been read is answered before more input is
/// waited for.
pub(super) fn each_line<A: Serialize>(mut answer: impl FnMut(&str) -> Result<A, Refusal>) -> Result<(), Failure> {
    let mut lines = Lines::open(None)?;
    let mut output = Output::new();
    loop {
        if !lines.is_ready() {
            output.flush()?;
        }
        let line = lines.next().map_err(|error| Failure::new("cannot read standard input").because(&error))?;
        let Some(line) = line else { return output.flush() };
        match line.text.map_err(|message| Refusal::new("line", message)).and_then(&mut answer) {
            Ok(answer) => output.json(&answer)?,
            Err(refusal) => output.json(&refusal)?,
        }
    }
}
