//! Names of things: brokers, links, clients, events, versions, moments.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A broker: a 64-bit hash of its peer id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BrokerId(pub u64);

impl BrokerId {
    /// The id that belongs to a peer id, given in its usual text form.
    pub fn of_peer(peer_id: &str) -> BrokerId {
        BrokerId(xxhash_rust::xxh3::xxh3_64(peer_id.as_bytes()))
    }
}

impl fmt::Display for BrokerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What a broker is on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// A core broker, linked to another one: both are members of the mesh.
    Core,
    /// A leaf broker, which hangs off the other end.
    Leaf,
    /// The uplink of a leaf broker, which is at the other end: a core broker, or a leaf broker itself.
    Parent,
}

/// A connection to a neighbour; the driver numbers them and never uses a number twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LinkId(pub u64);

/// A client's connection; the driver numbers them and never uses a number twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClientId(pub u64);

/// A client's request, numbered by the client; a reply carries the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u64);

/// An event, for ever: given where it is first published and never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventId {
    /// Where it was first published.
    pub origin: BrokerId,
    /// The origin's incarnation then.
    pub incarnation: u64,
    /// Counts the origin's events in that incarnation, from 1.
    pub sequence: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.origin, self.incarnation, self.sequence)
    }
}

/// The version of what a broker says of itself: a later incarnation outdates all that an earlier one said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    /// Grows with each start of the broker.
    pub incarnation: u64,
    /// Grows with each change within an incarnation.
    pub sequence: u64,
}

/// A moment on the driver's monotonic clock, in microseconds from any fixed start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time(pub u64);

impl std::ops::Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl Time {
    /// How long after `earlier` this is; zero if it is not.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}
