//! `enroute-bench`: measures engines on a workload, or does the papers' experiments again.
//!
//! Exit codes: 0 done, 1 an engine's results were wrong or a file could not be written, 2 the command line makes no sense.

use clap::{Parser, Subcommand};
use enroute_bench::allocation::CountingAllocator;
use enroute_bench::churn;
use enroute_bench::contender;
use enroute_bench::covering;
use enroute_bench::forward;
use enroute_bench::leaves;
use enroute_bench::machine::Circumstances;
use enroute_bench::measure::{Plan, measure};
use enroute_bench::merging;
use enroute_bench::paper::Part;
use enroute_bench::workload::Workload;
use enroute_covering::{Budget, MergingConfig};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Measures matching engines side by side, on workloads that anyone can draw again.
#[derive(Parser)]
#[command(name = "enroute-bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure engines on one workload
    Match(MatchOptions),
    /// Replace an engine's subscriptions again and again, and see whether it stays as fast and as small
    Churn(ChurnOptions),
    /// Measure the covering forest on one workload
    Covering(CoveringOptions),
    /// Measure merging: what is announced of the forest's roots
    Merging(MergingOptions),
    /// Count what goes over the uplinks of leaf brokers, by how they announce what they want
    Leaves(LeavesOptions),
    /// Do the papers' experiments again: tables and plots
    Paper(PaperOptions),
    /// Measure forwarding from process to process over loopback, beside other systems
    Forward(forward::Options),
    /// One process of such a measurement
    #[command(hide = true)]
    ForwardRole(forward::RoleOptions),
}

#[derive(clap::Args)]
struct MatchOptions {
    /// The input
    #[arg(long, value_enum)]
    workload: Workload,
    /// How many subscriptions
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    subscriptions: u32,
    /// The engines, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "enroute,naive", value_parser = engine_name)]
    engines: Vec<&'static str>,
    /// How many events; slow engines get fewer
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    events: u32,
    /// How often each engine gets the events
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// How many seconds one engine may take for matching, and how many for removing
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// How many seconds one engine may take to take all subscriptions before it is given up
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    build_seconds: u32,
    /// How many events are also checked against every filter by itself
    #[arg(long, default_value_t = 32)]
    checked: usize,
    /// Do not look for the slowest update, which takes a second build
    #[arg(long)]
    no_slowest: bool,
    /// Another seed gives another input
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(clap::Args)]
struct ChurnOptions {
    /// The input
    #[arg(long, value_enum)]
    workload: Workload,
    /// How many subscriptions there are at any time
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    subscriptions: u32,
    /// The engine
    #[arg(long, default_value = contender::ENROUTE, value_parser = lasting_engine_name)]
    engine: &'static str,
    /// How often all subscriptions, as a number, are replaced
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    turns: u32,
    /// How many events matching is timed on
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    events: u32,
    /// Another seed gives another input
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(clap::Args)]
struct CoveringOptions {
    /// The input
    #[arg(long, value_enum)]
    workload: Workload,
    /// How many subscriptions
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    subscriptions: u32,
    /// How many subscriptions, and roots, are compared with all others
    #[arg(long, default_value_t = 50)]
    checked: usize,
    /// Another seed gives another input
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(clap::Args)]
struct MergingOptions {
    /// The input
    #[arg(long, value_enum)]
    workload: Workload,
    /// How many subscriptions
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    subscriptions: u32,
    /// How many events are compared when all subscriptions are there
    #[arg(long, default_value_t = 1_000)]
    events: usize,
    /// Merge imperfectly, too: the most filters to announce
    #[arg(long)]
    filters: Option<usize>,
    /// The most false interest of imperfect merging, as a share of the events
    #[arg(long, default_value_t = 0.01)]
    false_interest: f64,
    /// Another seed gives another input
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(clap::Args)]
struct LeavesOptions {
    /// The input
    #[arg(long, value_enum, default_value = "flights")]
    workload: Workload,
    /// How many subscriptions, of all leaves together
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    subscriptions: u32,
    /// How many leaf brokers
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    leaves: u32,
    /// How many events are counted; as many others come before
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..))]
    events: u32,
    /// Of imperfect merging: the most filters that a leaf announces
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    filters: u32,
    /// Of imperfect merging: the most false interest, as a share of the events that come
    #[arg(long, default_value_t = 0.02)]
    false_interest: f64,
    /// Another seed gives another input
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(clap::Args)]
struct PaperOptions {
    /// The experiments, separated by commas; each has files of its own
    #[arg(long = "part", value_enum, value_delimiter = ',', default_values_t = Part::ALL)]
    parts: Vec<Part>,
    /// Smaller inputs and fewer runs, for a look
    #[arg(long)]
    quick: bool,
    /// Where tables and plots go
    #[arg(long, value_name = "DIRECTORY", default_value = "docs/bench")]
    output: PathBuf,
}

fn engine_name(text: &str) -> Result<&'static str, String> {
    let names = contender::names();
    match names.iter().find(|name| **name == text) {
        Some(name) => Ok(name),
        None => Err(format!("known are {}", names.join(", "))),
    }
}

/// An engine that can match after removals.
fn lasting_engine_name(text: &str) -> Result<&'static str, String> {
    match engine_name(text)? {
        contender::A_TREE => Err("it does not match after removals".to_owned()),
        name => Ok(name),
    }
}

/// The JSON file.
#[derive(Serialize)]
struct Document<'a, R> {
    workload: &'static str,
    seed: u64,
    circumstances: &'a Circumstances,
    report: &'a R,
}

/// Where the JSON goes, if anywhere. Created before the measurement: what cannot be written is better known then.
struct Output<'a>(Option<(&'a Path, File)>);

impl<'a> Output<'a> {
    fn create(path: Option<&'a Path>) -> Result<Output<'a>, String> {
        let file =
            path.map(|path| File::create(path).map(|file| (path, file)).map_err(|error| cannot_write(path, &error)));
        Ok(Output(file.transpose()?))
    }

    fn write(self, document: &impl Serialize) -> Result<(), String> {
        let Some((path, mut file)) = self.0 else { return Ok(()) };
        let text = serde_json::to_string_pretty(document).expect("numbers and strings");
        writeln!(file, "{text}").map_err(|error| cannot_write(path, &error))
    }
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Match(options) => run_match(options),
        Command::Churn(options) => run_churn(&options),
        Command::Covering(options) => run_covering(&options),
        Command::Merging(options) => run_merging(&options),
        Command::Leaves(options) => run_leaves(&options),
        Command::Paper(options) => run_paper(&options),
        Command::Forward(options) => forward::run(options),
        Command::ForwardRole(options) => forward::play(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("enroute-bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {error}", path.display())
}

fn run_churn(options: &ChurnOptions) -> Result<(), String> {
    let plan = churn::Plan {
        engine: options.engine,
        subscriptions: options.subscriptions as usize,
        turns: options.turns as usize,
        events: options.events as usize,
        seed: options.seed,
    };
    let churn = churn::churn(&options.workload.open(options.seed), &plan);
    println!("{}", Circumstances::now());
    println!("{} under workload {}, {} subscriptions", plan.engine, options.workload.name(), plan.subscriptions);
    print!("{churn}");
    if churn.differences == 0 { Ok(()) } else { Err(format!("results of {} events differ", churn.differences)) }
}

fn run_paper(options: &PaperOptions) -> Result<(), String> {
    let mut differences = Vec::new();
    for part in &options.parts {
        let found = enroute_bench::paper::run(*part, &options.output, options.quick);
        differences.extend(found.map_err(|error| cannot_write(&options.output, &error))?);
    }
    if differences.is_empty() { Ok(()) } else { Err(format!("results differ:\n{}", differences.join("\n"))) }
}

fn run_covering(options: &CoveringOptions) -> Result<(), String> {
    let circumstances = Circumstances::now();
    let plan =
        covering::Plan { subscriptions: options.subscriptions as usize, checked: options.checked, seed: options.seed };
    let output = Output::create(options.json.as_deref())?;
    let report = covering::measure(&options.workload.open(options.seed), &plan);
    println!("{circumstances}");
    println!("workload {}, seed {}", options.workload.name(), options.seed);
    print!("{report}");
    output.write(&Document {
        workload: options.workload.name(),
        seed: options.seed,
        circumstances: &circumstances,
        report: &report,
    })?;
    if report.differences.is_empty() { Ok(()) } else { Err("the forest is not as it should be".to_owned()) }
}

fn run_merging(options: &MergingOptions) -> Result<(), String> {
    let circumstances = Circumstances::now();
    let imperfect = options.filters.map(|filters| Budget { filters, false_interest: options.false_interest });
    let plan = merging::Plan {
        subscriptions: options.subscriptions as usize,
        merging: MergingConfig { perfect: true, imperfect },
        events: options.events,
        seed: options.seed,
    };
    let output = Output::create(options.json.as_deref())?;
    let report = merging::measure(&options.workload.open(options.seed), &plan);
    println!("{circumstances}");
    println!("workload {}, seed {}", options.workload.name(), options.seed);
    print!("{report}");
    let (workload, seed) = (options.workload.name(), options.seed);
    output.write(&Document { workload, seed, circumstances: &circumstances, report: &report })?;
    if report.differences.is_empty() { Ok(()) } else { Err("what is announced is not what is wanted".to_owned()) }
}

fn run_leaves(options: &LeavesOptions) -> Result<(), String> {
    let circumstances = Circumstances::now();
    let plan = leaves::Plan {
        subscriptions: options.subscriptions as usize,
        leaves: options.leaves as usize,
        events: options.events as usize,
        budget: Budget { filters: options.filters as usize, false_interest: options.false_interest },
    };
    let output = Output::create(options.json.as_deref())?;
    let report = leaves::measure(&options.workload.open(options.seed), &plan);
    println!("workload {}, seed {}", options.workload.name(), options.seed);
    print!("{report}");
    let (workload, seed) = (options.workload.name(), options.seed);
    output.write(&Document { workload, seed, circumstances: &circumstances, report: &report })?;
    if report.differences.is_empty() { Ok(()) } else { Err("events do not go where they are wanted".to_owned()) }
}

fn run_match(options: MatchOptions) -> Result<(), String> {
    let circumstances = Circumstances::now();
    let input = options.workload.open(options.seed);
    let mut engines: Vec<&'static str> = Vec::new();
    for name in options.engines {
        if !engines.contains(&name) {
            engines.push(name);
        }
    }
    let plan = Plan {
        engines,
        subscriptions: options.subscriptions as usize,
        events: options.events as usize,
        checked: options.checked,
        rounds: options.rounds as usize,
        time: Duration::from_secs(options.seconds.into()),
        build_time: Duration::from_secs(options.build_seconds.into()),
        slowest: !options.no_slowest,
        seed: options.seed,
    };
    let output = Output::create(options.json.as_deref())?;
    let report = measure(&input, &plan);
    println!("{circumstances}");
    println!("workload {}, seed {}", options.workload.name(), options.seed);
    print!("{report}");
    let (workload, seed) = (options.workload.name(), options.seed);
    output.write(&Document { workload, seed, circumstances: &circumstances, report: &report })?;
    if report.is_right() { Ok(()) } else { Err("an engine's results differ".to_owned()) }
}
