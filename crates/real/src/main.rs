//! The program `netsim-real`, which `netsim real` hands over to.

use clap::Parser;
use enroute_netsim::{Report, Scenario};
use enroute_real::{RealError, Settings, beside, run};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// Run a scenario with real brokers, a process each, on loopback. Exit code 0: all is as it must be; 1: something is wrong; 2:
/// the scenario cannot be run.
#[derive(Parser)]
#[command(name = "netsim real", version)]
struct Arguments {
    /// The scenario, in TOML.
    file: PathBuf,
    /// The program that each broker runs; left out, the one beside this program.
    #[arg(long, value_name = "PATH")]
    enroute: Option<PathBuf>,
    /// Draw everything random from this instead of the scenario's seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Report as JSON.
    #[arg(long)]
    json: bool,
    /// Put each broker into a network namespace of its own, with proxies between them; for root.
    #[arg(long)]
    namespaces: bool,
    /// Keep the brokers' data directories, configurations and logs in this folder, which must not hold those of an earlier run.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let json = arguments.json;
    let file = arguments.file.display().to_string();
    let report = match real(arguments).await {
        Ok(report) => report,
        Err(error) => {
            eprintln!("netsim: {file}: {error}");
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

async fn real(arguments: Arguments) -> Result<Report, RealError> {
    let scenario = Scenario::read(&arguments.file)?;
    let program = match arguments.enroute {
        Some(program) => program,
        None => beside(&std::env::current_exe()?, "enroute"),
    };
    let passing = std::env::temp_dir().join(format!("netsim-real-{}", std::process::id()));
    let folder = arguments.keep.clone().unwrap_or_else(|| passing.clone());
    let seed = arguments.seed.unwrap_or(scenario.seed);
    let settings = Settings { program, folder, seed, namespaces: arguments.namespaces };
    // From here on, and before anything runs, neither ends the process by itself.
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let interrupted = || Err(std::io::Error::from(std::io::ErrorKind::Interrupted).into());
    // Dropped half done, it kills the brokers and takes down their namespaces.
    let report = tokio::select! {
        report = run(scenario, settings) => report,
        _ = interrupt.recv() => interrupted(),
        _ = terminate.recv() => interrupted(),
    };
    if arguments.keep.is_none() {
        // There may be nothing yet.
        let _ = std::fs::remove_dir_all(passing);
    }
    report
}
