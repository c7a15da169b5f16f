//! What was measured, for programs and for people.

use crate::forward::network::{Case, System};
use serde::Serialize;
use std::fmt;

/// All turns, in the order in which they were measured.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The turns.
    pub runs: Vec<Measured>,
}

/// One turn of one system.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Who.
    pub system: System,
    /// What.
    pub case: Case,
    /// How many events came to each subscriber in a second when the publisher published as fast as it could.
    pub events_per_second: f64,
    /// The same as 10^6 bytes of events.
    pub megabytes_per_second: f64,
    /// How many deliveries did not come.
    pub lost: u64,
    /// Broker by broker, at the top rate; for Enroute only.
    pub allocations_per_event: Vec<f64>,
    /// Latency at shares of the top rate.
    pub loads: Vec<Load>,
    /// What each process took at the top rate, from publisher to subscriber.
    pub processes: Vec<Use>,
}

/// Latency at a share of the top rate.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    /// The share.
    pub share: f64,
    /// How many deliveries did not come.
    pub lost: u64,
    /// Until an event came: 50th, 99th and 99.9th percentile.
    pub latency_microseconds: [f64; 3],
}

/// What a process took.
#[derive(Clone, Debug, Serialize)]
pub struct Use {
    /// Which process.
    pub name: String,
    /// Seconds of processor time for a million events.
    pub processor_seconds_per_million: f64,
    /// Bytes of memory after the events.
    pub resident_bytes: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cases: Vec<Case> = Vec::new();
        for run in &self.runs {
            if !cases.contains(&run.case) {
                cases.push(run.case);
            }
        }
        cases.iter().try_for_each(|case| self.write_case(case, f))
    }
}

impl Report {
    fn runs(&self, case: &Case, system: System) -> Vec<&Measured> {
        self.runs.iter().filter(|run| run.case == *case && run.system == system).collect()
    }

    /// The medians of each system's turns.
    fn write_case(&self, case: &Case, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { brokers, body, foreign, subscribers } = case;
        writeln!(
            f,
            "\nbrokers {brokers}, body {body} B, foreign subscriptions {foreign}, subscribers {subscribers}\n"
        )?;
        writeln!(
            f,
            "| system | events/s | MB/s | lost | us at 10 % (p50, p99, p99.9) | at 50 % | at 90 % | s CPU per million events, MB | allocations |"
        )?;
        writeln!(f, "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |")?;
        for system in System::ALL {
            let runs = self.runs(case, system);
            if runs.is_empty() {
                continue;
            }
            write!(f, "| {} ", system.name())?;
            write!(f, "| {:.0} ", median(runs.iter().map(|run| run.events_per_second)))?;
            write!(f, "| {:.0} ", median(runs.iter().map(|run| run.megabytes_per_second)))?;
            write!(f, "| {} ", runs.iter().map(|run| run.lost).max().unwrap_or(0))?;
            for load in 0..runs[0].loads.len() {
                let percentile =
                    |index: usize| median(runs.iter().map(|run| run.loads[load].latency_microseconds[index]));
                write!(f, "| {:.0} {:.0} {:.0} ", percentile(0), percentile(1), percentile(2))?;
            }
            write!(f, "| ")?;
            for (index, process) in runs[0].processes.iter().enumerate() {
                let seconds = median(runs.iter().map(|run| run.processes[index].processor_seconds_per_million));
                let bytes = median(runs.iter().map(|run| run.processes[index].resident_bytes as f64));
                write!(f, "{} {seconds:.2} {:.0}; ", process.name, bytes / 1e6)?;
            }
            write!(f, "| ")?;
            for index in 0..runs[0].allocations_per_event.len() {
                write!(f, "{:.2} ", median(runs.iter().map(|run| run.allocations_per_event[index])))?;
            }
            writeln!(f, "|")?;
        }
        Ok(())
    }
}

/// The middle one; of two, their mean.
fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_unstable_by(f64::total_cmp);
    match numbers.len() {
        0 => 0.0,
        count => (numbers[(count - 1) / 2] + numbers[count / 2]) / 2.0,
    }
}
