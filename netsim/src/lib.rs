//! Many brokers, one process, virtual time: the protocol core of the daemon under every topology and fault.
//!
//! A [`World`] drives [`enroute_broker::Broker`]s as a daemon would, with links that delay, keep the order and break; an
//! oracle that knows every subscription says what each client must, may and must not get; and whenever the network has
//! settled, what every broker knows and which links each event used is compared with the true network. A [`Scenario`] is a
//! file that says what to do to a world, and a [`Report`] what came of it.
//!
//! The same seed gives the same run, byte for byte: durations are drawn from the seed, and nothing is iterated over that
//! has no order.
//!
//! # Links
//!
//! Each direction of a connection has two ordered channels, control and events. A message is delayed by its link's delay (and
//! by the bytes before it, if the bandwidth is bounded) and lost only if the connection breaks while it is under way. Each
//! end learns of a break at a time of its own, and goes on sending into it until then. Events that had not begun to leave by
//! the break come back to the broker, but for a number drawn from the seed that the transport had taken already. A
//! connection that one end closes is read to its end by both.
//!
//! # Leaves
//!
//! A leaf's machine dials one uplink of its list after the other until one takes the leaf in, and again when that is lost.
//! Leases that are only kept up do not count as work: a network that does nothing else has settled.
//!
//! # Checks
//!
//! As it runs: the books of every copy of every event (each destination has one copy, and only who holds it sends it on);
//! no duplicate; the names in a delivery; no use of links that are down; no violation; an answer as soon as nobody is waited for;
//! a link that stays when both ends dial it.
//! Settled: what was missed; copies that a broker holds and has not counted as lost; what is kept of brokers that are long gone; tables against the true network; paths there and back; each event of a settled time over the
//! union of the shortest paths, each link once, and between a leaf and its parent only if somebody on the other side wants it. On demand: all tables against those of a fresh build, all tables empty.

pub mod book;
mod chaos;
mod check;
mod client;
mod compare;
mod custody;
mod echo;
mod explore;
mod fault;
mod gone;
pub mod html;
mod leaf;
mod link;
mod oracle;
mod paths;
mod perform;
mod probe;
mod report;
mod rules;
mod run;
mod scenario;
mod settled;
mod shared;
mod step;
mod tally;
mod topology;
mod traffic;
mod workload;
mod world;

pub use book::Verdict;
pub use chaos::Chaos;
pub use client::Ticket;
pub use compare::{Comparison, Loss, Scheme, compare};
pub use explore::{Explore, Explored, Failed, schedule};
pub use leaf::Leaves;
pub use link::{Dial, LinkSettings};
pub use report::{ClientLine, LinkLine, Report, Settle, TableLine};
pub use run::Run;
pub use scenario::{Audience, ClientPlan, ClonePlan, LeafPlan, Scenario, ScenarioError, Times};
pub use step::Step;
pub use tally::{Count, LinkTally};
pub use topology::{Shape, Topology};
pub use traffic::{Domain, Traffic, read_event, read_events, read_filter};
pub use world::{Settings, Unsettled, World};

use rand::SeedableRng;

/// The generator that everything random comes from.
pub type Random = rand_chacha::ChaCha8Rng;

/// A generator for one purpose of a run: what one purpose draws does not shift what another one draws.
pub fn seeded(seed: u64, purpose: &str) -> Random {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    for (byte, letter) in key[8..].iter_mut().zip(purpose.bytes()) {
        *byte = letter;
    }
    Random::from_seed(key)
}
