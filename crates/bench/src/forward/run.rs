//! The measurements: case by case, round by round, the systems in turn.

use crate::forward::network::{Case, Network, Programs, System, find};
use crate::forward::report::{Load, Measured, Report, Use};
use std::path::PathBuf;

/// Shares of the top rate at which latency is measured.
pub const LOADS: [f64; 3] = [0.1, 0.5, 0.9];

/// What is to be measured. Of each list the first entry is the base; the others are measured with all else at the base.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Who, in this order; whoever is not installed is left out.
    pub systems: Vec<System>,
    /// Brokers in the chain.
    pub brokers: Vec<usize>,
    /// Bytes of an event.
    pub bodies: Vec<usize>,
    /// Subscriptions of others.
    pub foreign: Vec<usize>,
    /// Subscribers.
    pub subscribers: Vec<usize>,
    /// How often each system gets its turn.
    pub rounds: usize,
    /// For how long the publisher publishes at the top rate, and at each share of it.
    pub seconds: f64,
    /// The program for the peers.
    pub peers: PathBuf,
}

impl Plan {
    /// The base, then what differs from it in one thing.
    pub fn cases(&self) -> Vec<Case> {
        let first = |list: &[usize]| list.first().copied().unwrap_or(1);
        let base = Case {
            brokers: first(&self.brokers),
            body: first(&self.bodies),
            foreign: first(&self.foreign),
            subscribers: first(&self.subscribers),
        };
        let brokers = self.brokers.iter().skip(1).map(|&brokers| Case { brokers, ..base });
        let bodies = self.bodies.iter().skip(1).map(|&body| Case { body, ..base });
        let foreign = self.foreign.iter().skip(1).map(|&foreign| Case { foreign, ..base });
        let subscribers = self.subscribers.iter().skip(1).map(|&subscribers| Case { subscribers, ..base });
        std::iter::once(base).chain(brokers).chain(bodies).chain(foreign).chain(subscribers).collect()
    }

    fn is_installed(&self, system: System) -> bool {
        match system {
            System::Enroute | System::Stream => true,
            System::Zenoh => self.peers.is_file(),
            System::Nats | System::NatsLibrary => self.peers.is_file() && find("nats-server").is_some(),
            System::Mosquitto => self.peers.is_file() && find("mosquitto").is_some(),
        }
    }
}

/// Measures everything. What goes wrong in one turn is said on standard error, and that turn left out.
///
/// # Errors
/// If this program does not find itself.
pub fn measure_all(plan: &Plan) -> Result<Report, String> {
    let own = std::env::current_exe().map_err(|error| format!("where this program stands is not known: {error}"))?;
    let programs = Programs { own, peers: plan.peers.clone() };
    let mut report = Report::default();
    for case in plan.cases() {
        let mut kept = None;
        for _ in 0..plan.rounds {
            for &system in &plan.systems {
                if !plan.is_installed(system) || !system.takes(&case) {
                    continue;
                }
                let started = kept.take().map_or_else(|| Network::start(&programs, system, &case), Ok);
                let measured = started.and_then(|mut network| {
                    let measured = measure(&mut network, system, &case, plan.seconds);
                    // Others' subscriptions take long to place, and only Enroute takes turns where there are any.
                    kept = (case.foreign > 0 && measured.is_ok()).then_some(network);
                    measured
                });
                match measured {
                    Ok(measured) => {
                        eprintln!("{case:?} {}: {:.0} events/s", system.name(), measured.events_per_second);
                        report.runs.push(measured);
                    }
                    Err(message) => eprintln!("{case:?} {}: {message}", system.name()),
                }
            }
        }
    }
    Ok(report)
}

/// One turn of one system.
fn measure(network: &mut Network, system: System, case: &Case, seconds: f64) -> Result<Measured, String> {
    // What is asked of the machine for the first time, as memory, is no matter of forwarding.
    network.publish(seconds, None)?;
    let before: Vec<f64> = network.processes().map(|process| process.processor_seconds()).collect();
    let allocated = if system == System::Enroute { network.allocations()? } else { Vec::new() };
    let (sent, arrived) = network.publish(seconds, None)?;
    let allocations = if system == System::Enroute { network.allocations()? } else { Vec::new() };
    let events = sent.events.max(1) as f64;
    let processes = network.processes().zip(before).map(|(process, before)| Use {
        name: process.name.clone(),
        processor_seconds_per_million: (process.processor_seconds() - before) / events * 1e6,
        resident_bytes: process.resident_bytes(),
    });
    let processes = processes.collect();
    let subscribers = case.subscribers as f64;
    // From the first to the last event, or as long as it was published: whichever took longer.
    let events_per_second = arrived.events as f64 / subscribers / arrived.seconds.max(sent.seconds);
    let mut loads = Vec::new();
    for share in LOADS {
        let rate = events_per_second * share;
        let (sent, arrived) = network.publish(seconds, Some(rate))?;
        loads.push(Load {
            share,
            lost: (sent.events * case.subscribers as u64).saturating_sub(arrived.events),
            latency_microseconds: arrived.latency_microseconds,
        });
    }
    Ok(Measured {
        system,
        case: *case,
        events_per_second,
        megabytes_per_second: events_per_second * case.body as f64 / 1e6,
        lost: (sent.events * case.subscribers as u64).saturating_sub(arrived.events),
        allocations_per_event: allocations
            .iter()
            .zip(&allocated)
            .map(|(after, before)| (after - before) as f64 / events)
            .collect(),
        loads,
        processes,
    })
}
