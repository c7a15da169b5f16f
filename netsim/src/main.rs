//! The program `netsim`: runs scenarios in virtual time and reports.

use clap::{Parser, Subcommand};
use enroute_netsim::{Comparison, Explore, Explored, Report, Run, Scenario, ScenarioError};
use serde::Serialize;
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

// See docs/decisions/0012-mimalloc.md.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
        /// Write the report as one HTML page with plots, too.
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Run a scenario, and its workload with the same faults under flooding and on one shared tree with covering hop by hop
    /// (SIENA's scheme) as well.
    Compare {
        /// The scenario, in TOML.
        file: PathBuf,
        /// Draw everything random from this instead of the scenario's seed.
        #[arg(long)]
        seed: Option<u64>,
        /// Report as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run a scenario with real brokers, a process each: hands over to the program netsim-real beside this one, whose
    /// options these are.
    #[command(disable_help_flag = true)]
    Real {
        /// The scenario, in TOML, and options; --help lists them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        arguments: Vec<OsString>,
    },
    /// Run random schedules with all kinds of faults, and check every invariant. What fails is cut down and written out as a
    /// scenario. Exit code 0: nothing failed; 1: something did; 2: it cannot be run.
    Explore {
        /// How many schedules.
        #[arg(long, default_value_t = 100)]
        seeds: u64,
        /// The seed of the first; the others follow.
        #[arg(long, default_value_t = 1)]
        first_seed: u64,
        /// Brokers in each, leaves among them.
        #[arg(long, default_value_t = 30)]
        brokers: usize,
        /// Stop after so many that fail.
        #[arg(long, default_value_t = 3)]
        failures: usize,
        /// Runs that cutting one down may take.
        #[arg(long, default_value_t = 600)]
        shrink_runs: usize,
        /// Where what fails is written, as explore-SEED.toml.
        #[arg(long, default_value = ".")]
        out: PathBuf,
        /// Report as JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{}: {error}", path.display())]
    Scenario { path: PathBuf, error: ScenarioError },
    #[error("{}: {error}", path.display())]
    Write { path: PathBuf, error: std::io::Error },
    #[error("{0}")]
    Explore(ScenarioError),
    #[error("{}: {error}; `cargo build -p enroute-real -p enroute-cli` makes it and the brokers' program", path.display())]
    Real { path: PathBuf, error: std::io::Error },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Real { arguments } => match real(&arguments) {
            Ok(code) => return code,
            Err(failure) => Err(failure),
        },
        Command::Run { file, seed, json, trace, html } => run(file, seed, trace, html).map(|report| {
            print(&report, json);
            report.is_good()
        }),
        Command::Compare { file, seed, json } => compare(&file, seed).map(|comparison| {
            print(&comparison, json);
            comparison.complaints.is_empty()
        }),
        Command::Explore { seeds, first_seed, brokers, failures, shrink_runs, out, json } => {
            explore(&Explore { seeds, first_seed, brokers, failures, shrink_runs }, &out).map(|explored| {
                print(&explored, json);
                explored.is_good()
            })
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("netsim: {failure}");
            ExitCode::from(2)
        }
    }
}

/// Runs the program that knows sockets, which this one does not, and takes over its exit code.
fn real(arguments: &[OsString]) -> Result<ExitCode, Failure> {
    let name = format!("netsim-real{}", std::env::consts::EXE_SUFFIX);
    let path = std::env::current_exe().map(|own| own.with_file_name(&name)).unwrap_or_else(|_| name.into());
    match std::process::Command::new(&path).args(arguments).status() {
        Ok(status) => Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2))),
        Err(error) => Err(Failure::Real { path, error }),
    }
}

fn print(report: &(impl Display + Serialize), json: bool) {
    let text = if json {
        serde_json::to_string_pretty(report).expect("a report is plain data") + "\n"
    } else {
        report.to_string()
    };
    // Who closes the pipe early has seen enough.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn compare(file: &Path, seed: Option<u64>) -> Result<Comparison, Failure> {
    let wrong = |error| Failure::Scenario { path: file.to_owned(), error };
    let scenario = Scenario::read(file).map_err(wrong)?;
    let seed = seed.unwrap_or(scenario.seed);
    enroute_netsim::compare(scenario, seed).map_err(wrong)
}

fn explore(explore: &Explore, out: &Path) -> Result<Explored, Failure> {
    // Before all the work, not after it.
    std::fs::create_dir_all(out).map_err(|error| Failure::Write { path: out.to_owned(), error })?;
    let is_terminal = std::io::stderr().is_terminal();
    let explored = explore.run(|done, failed| {
        if is_terminal {
            eprint!("\r{done} schedules, {failed} failed\x1b[K");
        }
    });
    if is_terminal {
        eprint!("\r\x1b[K");
    }
    let explored = explored.map_err(Failure::Explore)?;
    for failed in &explored.failures {
        let path = out.join(format!("explore-{}.toml", failed.seed));
        let text = format!("# {}\n{}", failed.shrunk_complaint.replace('\n', " "), failed.shrunk.to_toml());
        std::fs::write(&path, text).map_err(|error| Failure::Write { path: path.clone(), error })?;
        eprintln!("netsim: wrote {}", path.display());
    }
    Ok(explored)
}

fn run(file: PathBuf, seed: Option<u64>, trace: Option<PathBuf>, html: Option<PathBuf>) -> Result<Report, Failure> {
    let wrong = |error| Failure::Scenario { path: file.clone(), error };
    let scenario = Scenario::read(&file).map_err(wrong)?;
    let seed = seed.unwrap_or(scenario.seed);
    let mut run = Run::new(scenario, seed).map_err(wrong)?;
    if let Some(path) = trace {
        let file = File::create(&path).map_err(|error| Failure::Write { path, error })?;
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
    let report = report.map_err(wrong)?;
    if let Some(path) = html {
        std::fs::write(&path, enroute_netsim::html::page(&report)).map_err(|error| Failure::Write { path, error })?;
    }
    Ok(report)
}
