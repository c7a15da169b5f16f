//! The command line of this benchmark.

use crate::allocation;
use crate::forward::network::System;
use crate::forward::role::Role;
use crate::forward::run::{Plan, measure_all};
use crate::forward::{enroute, stream};
use crate::machine::Circumstances;
use std::path::PathBuf;

/// Of each list the first entry is the base; the others are measured with all else at the base.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// The systems, separated by commas; those that are not installed are left out
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = System::ALL)]
    systems: Vec<System>,
    /// How many brokers in the chain
    #[arg(long, value_delimiter = ',', default_value = "1,2,3", value_parser = positive)]
    brokers: Vec<usize>,
    /// Bytes of an event, attributes and payload
    #[arg(long, value_delimiter = ',', default_value = "300,100,1024,16384", value_parser = positive)]
    bodies: Vec<usize>,
    /// How many subscriptions of others
    #[arg(long, value_delimiter = ',', default_value = "0,100000,1000000")]
    foreign: Vec<usize>,
    /// How many subscribers, each of which gets every event
    #[arg(long, value_delimiter = ',', default_value = "1,10,100", value_parser = positive)]
    subscribers: Vec<usize>,
    /// How often each system gets its turn
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// How many seconds are published, at the top rate and at each share of it
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// The program for the peers
    #[arg(long, value_name = "FILE", default_value = "crates/bench/peers/target/release/enroute-bench-peers")]
    peers: PathBuf,
    /// Also write every turn as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("a number from 1 is wanted".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// What a process of the benchmark is started with.
#[derive(clap::Args, Debug)]
pub struct RoleOptions {
    /// The role, as JSON
    #[arg(value_parser = |text: &str| serde_json::from_str::<Role>(text))]
    role: Role,
}

/// Measures, and prints the table.
///
/// # Errors
/// If nothing could be measured, or the file cannot be written.
pub fn run(options: Options) -> Result<(), String> {
    let plan = Plan {
        systems: options.systems,
        brokers: options.brokers,
        bodies: options.bodies,
        foreign: options.foreign,
        subscribers: options.subscribers,
        rounds: options.rounds as usize,
        seconds: options.seconds.clamp(0.1, 60.0),
        peers: options.peers,
    };
    let circumstances = Circumstances::now();
    let report = measure_all(&plan)?;
    println!("{circumstances}");
    print!("{report}");
    if let Some(path) = &options.json {
        let document = serde_json::json!({ "circumstances": circumstances, "report": report });
        let written = std::fs::write(path, format!("{document:#}\n"));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    if report.runs.is_empty() { Err("nothing was measured".to_owned()) } else { Ok(()) }
}

/// Plays a role until the standard input ends.
///
/// # Errors
/// If it cannot begin to.
pub fn play(options: &RoleOptions) -> Result<(), String> {
    if !matches!(options.role, Role::Broker { .. }) {
        allocation::stop_counting();
    }
    let result = match &options.role {
        Role::Broker { system, port, upstream, .. } if system == System::Stream.name() => {
            stream::serve_relay(*port, upstream.as_deref())
        }
        Role::Broker { port, upstream, .. } => enroute::serve_broker(*port, upstream.as_deref()),
        Role::Publisher { system, address, body } if system == System::Stream.name() => stream::publish(address, *body),
        Role::Publisher { address, body, .. } => enroute::publish(address, *body),
        Role::Subscriber { system, address, .. } if system == System::Stream.name() => stream::subscribe(address),
        Role::Subscriber { address, connections, .. } => enroute::subscribe(address, *connections),
        Role::Foreign { address, subscriptions } => enroute::subscribe_foreign(address, *subscriptions),
    };
    result.map_err(|error| error.to_string())
}
