//! The program `netsim`: runs a scenario in virtual time and reports.

use clap::{Parser, Subcommand};
use enroute_netsim::{Report, Run, Scenario, ScenarioError};
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Simulate a whole Enroute network in one process and in virtual time.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario. Exit code 0: all is as it must be; 1: something is wrong; 2: the scenario cannot be run.
    Run {
        /// The scenario, in TOML; ready ones are in netsim/scenarios.
        file: PathBuf,
        /// Draw everything random from this instead of the scenario's seed.
        #[arg(long)]
        seed: Option<u64>,
        /// Report as JSON.
        #[arg(long)]
        json: bool,
        /// Write every output of every broker and every fault to a file, a line each.
        #[arg(long, value_name = "FILE")]
        trace: Option<PathBuf>,
    },
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{}: {error}", path.display())]
    Scenario { path: PathBuf, error: ScenarioError },
    #[error("{}: {error}", path.display())]
    Trace { path: PathBuf, error: std::io::Error },
}

fn main() -> ExitCode {
    let Command::Run { file, seed, json, trace } = Arguments::parse().command;
    let report = match run(file, seed, trace) {
        Ok(report) => report,
        Err(failure) => {
            eprintln!("netsim: {failure}");
            return ExitCode::from(2);
        }
    };
    let text = if json {
        serde_json::to_string_pretty(&report).expect("a report is plain data") + "\n"
    } else {
        report.to_string()
    };
    // Who closes the pipe early has seen enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
    if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(file: PathBuf, seed: Option<u64>, trace: Option<PathBuf>) -> Result<Report, Failure> {
    let wrong = |error| Failure::Scenario { path: file.clone(), error };
    let scenario = Scenario::read(&file).map_err(wrong)?;
    let seed = seed.unwrap_or(scenario.seed);
    let mut run = Run::new(scenario, seed).map_err(wrong)?;
    if let Some(path) = trace {
        let file = File::create(&path).map_err(|error| Failure::Trace { path, error })?;
        run.world_mut().set_trace(Box::new(BufWriter::new(file)));
    }
    if std::io::stderr().is_terminal() {
        run.world_mut().set_progress(Box::new(|time, publications| {
            eprint!("\r{:.1} s of virtual time, {publications} publications\x1b[K", time.0 as f64 / 1e6);
        }));
    }
    let report = run.run();
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
    report.map_err(wrong)
}
