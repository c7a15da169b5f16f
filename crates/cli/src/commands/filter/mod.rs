//! `enroute filter`: explain, evaluate and compare filters without any broker.
//!
//! `eval` and `covers` answer one line for each line they read, in order, so that a program can keep a conversation with
//! them: what has been read is answered before more is waited for.

mod answer;
mod covers;
mod eval;
mod explain;

use crate::failure::Failure;
use clap::{Args, Subcommand};

/// The commands.
#[derive(Subcommand)]
pub(crate) enum FilterCommand {
    /// Show a filter's canonical form, the attributes it requires, and what may not be meant
    Explain(ExplainOptions),
    /// Match filters against events: JSON lines {"filter":"…","event":{…}} on standard input
    ///
    /// Answers a line for each line: `{"match":true|false}` or `{"error":{"kind":…,"message":…,"span":[from,to]}}`. The span
    /// counts bytes of the filter; it is null for an error elsewhere. Bad lines change nothing for the others.
    Eval(EvalOptions),
    /// Compare filters: JSON lines {"f":"…","g":"…"} on standard input
    ///
    /// Answers a line for each line: `{"relation":"equal|covers|covered|overlaps|disjoint","exact":true|false}`, or an error
    /// as `eval` does, with "in" saying whether f or g is meant. What is not decided is "overlaps", not exact.
    Covers,
}

/// See [`FilterCommand::Explain`].
#[derive(Args)]
pub(crate) struct ExplainOptions {
    /// The filter, or - to read it from standard input
    #[arg(value_name = "FILTER", allow_hyphen_values = true)]
    filter: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// See [`FilterCommand::Eval`].
#[derive(Args)]
pub(crate) struct EvalOptions {
    /// Read strings of this attribute as times (RFC 3339); repeatable
    #[arg(long = "time", value_name = "ATTR")]
    times: Vec<String>,
    /// Refuse events with arrays instead of leaving the arrays out
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(command: FilterCommand) -> Result<(), Failure> {
    match command {
        FilterCommand::Explain(options) => explain::run(&options),
        FilterCommand::Eval(options) => eval::run(options),
        FilterCommand::Covers => covers::run(),
    }
}
