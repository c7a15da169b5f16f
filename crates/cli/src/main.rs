//! The `enroute` program: runs a broker, publishes, subscribes, and shows what is going on.
//!
//! This file parses the command line and calls; each command has a file of its own under `commands`. Standard output carries
//! results only; everything said to a person goes to standard error. Exit codes: 0 done (also when the reader of the output
//! goes away), 1 failed, 2 the command line makes no sense, 130 interrupted before the work was done.

mod arguments;
mod commands;
mod connection;
mod failure;
mod filter_text;
mod lines;
mod logging;
mod output;
mod runtime;
mod table;

use arguments::{Arguments, Command};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

// See docs/decisions/0012-mimalloc.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = logging::start(&arguments).and_then(|()| call(arguments.command));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn call(command: Command) -> Result<(), Failure> {
    match command {
        Command::Demo(options) => commands::demo::run(&options),
        Command::Run(options) => commands::run::run(options),
        Command::Pub(options) => commands::publish::run(options),
        Command::Sub(options) => commands::subscribe::run(options),
        Command::Advertise(options) => commands::advertise::run(options),
        Command::Status(options) => commands::status::run(&options),
        Command::Filter(command) => commands::filter::run(command),
        Command::Config(command) => commands::config::run(command),
        Command::Key(options) => commands::key::run(&options),
    }
}
