//! The simulator's scenarios with real brokers: a process for each, on loopback or in a network namespace of its own,
//! with a proxy for each link.
//!
//! [`run`] takes the file that the simulator takes and gives the report that it gives. A crash is SIGKILL, and a restart has
//! the same data directory; a cut closes the link's connections and refuses new ones; clients are sessions in this process.
//! Brokers link to whom the topology says, by way of the proxies, and to nobody else (`mesh = false`).
//!
//! # What differs from virtual time
//!
//! - Brokers have their own times for finding out about dead links and dialling again: `links.detection_us`, `redial_us` and
//!   `jitter_us` say nothing here, `times.keep_alive_ms` says nothing there.
//! - A network has settled when each broker says of itself what it must ([`Network::unsettled`]), twice in a row.
//! - The oracle sees what clients ask and get, not what goes over links: where there was a fault between two settled times it
//!   cannot tell a loss that the fault explains from one that it does not.
//! - What has gone over a link is what its ends said when they were last asked: before each fault and while settling.
//! - Steps that look into brokers, or into the order of messages, cannot be done and are refused by name, as are leaf brokers.
//!
//! [`Network`] and [`Proxy`] are of use without a scenario too.

mod client;
mod network;
mod oracle;
mod process;
mod proxy;
mod refuse;
mod report;
mod requests;
mod run;
mod space;
mod view;

pub use network::{Network, Plans};
pub use proxy::{Proxy, Wire};
pub use run::{Settings, beside, run};

use enroute_netsim::ScenarioError;
use std::time::Duration;

/// Why a scenario cannot be run with real brokers.
#[derive(Debug, thiserror::Error)]
pub enum RealError {
    /// The scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// It asks for what only the simulator can do; `netsim run` runs it.
    #[error("only `netsim run` can do this: {what}")]
    OnlyVirtual {
        /// The setting or step.
        what: String,
    },
    /// A broker does not start; the program may be the wrong one.
    #[error("broker {broker} does not start: {reason}")]
    Start {
        /// Its name.
        broker: String,
        /// Why.
        reason: String,
    },
    /// The network does not come to rest.
    #[error("not settled within {within:?}: {why}")]
    Unsettled {
        /// How long that might have taken.
        within: Duration,
        /// What is not as it should be.
        why: String,
    },
    /// A port or a process cannot be had.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
