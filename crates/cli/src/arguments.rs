//! The command line.

use crate::commands::{advertise, config, demo, filter, key, publish, run, status, subscribe};
use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use enroute_node::{Multiaddr, PeerId};
use std::time::Duration;

/// Content-based publish/subscribe over a network of brokers: an event travels only over the links that lead to somebody
/// whose filter it matches.
#[derive(Parser)]
#[command(name = "enroute", version, propagate_version = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// What to log on standard error: error, warn, info, debug, trace, or directives such as enroute_node=debug
    #[arg(long, value_name = "LEVEL", global = true, env = "ENROUTE_LOG")]
    pub(crate) log: Option<String>,
    /// Log more: -v info, -vv debug, -vvv trace
    #[arg(short, long, action = ArgAction::Count, global = true, conflicts_with = "log")]
    pub(crate) verbose: u8,
    /// The form of the log
    #[arg(long, value_name = "FORMAT", global = true, default_value = "text")]
    pub(crate) log_format: LogFormat,
}

/// See [`Arguments::log_format`].
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A line for a person
    Text,
    /// A JSON object a line
    Json,
}

/// The commands, in the order of the help text.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Replay a month of flights and weather through eight brokers in this process, and count
    Demo(demo::Options),
    /// Run a broker until ctrl-C
    Run(run::Options),
    /// Publish events: JSON lines from a file or standard input
    Pub(publish::Options),
    /// Subscribe: print each matching event as a JSON line
    Sub(subscribe::Options),
    /// Hold an advertisement until ctrl-C: say what will be published, so that the network is ready for it
    Advertise(advertise::Options),
    /// Show what a broker knows and has counted
    Status(status::Options),
    /// Explain, evaluate and compare filters; no broker needed
    #[command(subcommand)]
    Filter(filter::FilterCommand),
    /// Check a configuration of `run`, or print one to start from
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Show the identity that a data directory holds, creating it if there is none
    Key(key::Options),
}

/// Reads a span of time: `10s`, `1.5m`, `500ms`, `2h`; without a unit it is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        unknown => return Err(format!("unknown unit '{unknown}': use ms, s, m or h")),
    };
    let count: f64 = digits.trim_end().parse().map_err(|_| "expected a number and a unit, such as 10s".to_owned())?;
    Duration::try_from_secs_f64(count * unit).map_err(|error| error.to_string())
}

/// Reads the address of a broker.
pub(crate) fn address(text: &str) -> Result<Multiaddr, String> {
    text.parse().map_err(|error| format!("{error}; expected something like /ip4/127.0.0.1/tcp/7440"))
}

/// Reads a broker's public identity.
pub(crate) fn peer_id(text: &str) -> Result<PeerId, String> {
    text.parse().map_err(|error| format!("{error}; expected a peer id as `enroute key` shows it, such as 12D3KooW…"))
}

/// Reads a positive, finite number.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("expected a number above zero".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn durations() {
        assert_eq!(duration("10"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1.5 m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for bad in ["", "s", "-1s", "10 parsecs", "nan", "inf", "1e300h", "é"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses_and_peer_ids() {
        assert!(address("/dns4/broker.example.org/tcp/7440").is_ok());
        assert!(peer_id("12D3KooWQYhTNQdmr3ArTeUHRYzFg94BKyTkoWBDWez9kSCVe2Xo").is_ok());
        assert!(address("localhost:7440").unwrap_err().contains("/ip4/127.0.0.1/tcp/7440"));
        assert!(peer_id("961c9ac201fbaf8b").unwrap_err().contains("enroute key"));
    }

    #[test]
    fn positive_numbers() {
        assert_eq!(positive("0.5"), Ok(0.5));
        for bad in ["0", "-1", "nan", "inf", "x", ""] {
            assert!(positive(bad).is_err(), "{bad}");
        }
    }
}
