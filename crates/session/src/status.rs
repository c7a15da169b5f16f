//! A node's status, as `status()` gives it and as JSON on the wire.

use enroute_broker::Status;
use serde::{Deserialize, Serialize};

/// A picture of a node: the core's state, and what its driver counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Name and version of the software.
    pub software: String,
    /// Addresses at which it listens, with its peer id.
    pub addresses: Vec<String>,
    /// Topology, interest and counters of the core.
    pub broker: Status,
    /// What waits and what has gone over each link, sorted by number.
    pub link_queues: Vec<LinkQueueStatus>,
    /// One entry for each client, sorted by number.
    pub clients: Vec<ClientStatus>,
    /// The brokers to keep links to, in the order they were named.
    pub peers: Vec<PeerStatus>,
    /// The members of the network that are remembered across restarts.
    #[serde(default)]
    pub members: Vec<MemberStatus>,
    /// The brokers and clients refused last, oldest first.
    pub refused: Vec<RefusedStatus>,
    /// Brokers and clients left out of the lists because a frame has no room for them; the counts include them.
    #[serde(default)]
    pub left_out: u64,
}

/// The driver's side of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkQueueStatus {
    /// The number of the link, as in the core's status.
    pub link: u64,
    /// The broker at the other end, in hexadecimal.
    pub neighbour: String,
    /// Its peer id.
    pub peer_id: String,
    /// Name and version of its software.
    pub software: String,
    /// Whether this side dialled.
    pub dialled: bool,
    /// Why there is this link; those of leaf brokers and to them are `configured` at the leaf's end and `accepted` at the other.
    #[serde(default)]
    pub reason: LinkReason,
    /// Control messages sent.
    pub control_sent: u64,
    /// Bytes of control sent, signs of life included.
    pub control_bytes_sent: u64,
    /// Control messages received.
    pub control_received: u64,
    /// Bytes of control received, signs of life included.
    pub control_bytes_received: u64,
    /// Bytes of control waiting to be sent.
    pub control_bytes_waiting: u64,
    /// Events sent.
    pub events_sent: u64,
    /// Bytes of events sent, headers included.
    pub event_bytes_sent: u64,
    /// Events received.
    pub events_received: u64,
    /// Bytes of events received, headers included.
    pub event_bytes_received: u64,
    /// Events waiting to be sent.
    pub events_waiting: u64,
    /// Events dropped because too many were waiting.
    pub events_dropped: u64,
}

/// Why a broker has a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkReason {
    /// The other end has dialled.
    #[default]
    Accepted,
    /// It leads to a configured peer.
    Configured,
    /// This broker has chosen it, as one of the nearest that it has tried.
    Chosen,
    /// This broker has chosen it by chance, and keeps it for that: not all links should be short.
    ChosenFar,
}

/// A member of the network that a broker remembers, also across restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// Its peer id.
    pub peer_id: String,
    /// Its addresses, as it told them.
    pub addresses: Vec<String>,
    /// Whether there is a path to it.
    pub reachable: bool,
    /// Why the last dial came to nothing, if it did a short while ago.
    pub last_error: Option<String>,
}

/// The driver's side of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// The number of the client.
    pub client: u64,
    /// Its peer id; nothing for a client within the node's own process.
    pub peer_id: String,
    /// Name and version of its software.
    pub software: String,
    /// What happens when too much waits for it.
    pub slow_subscriber: String,
    /// Events handed to its connection.
    pub delivered: u64,
    /// Events dropped because too many were waiting.
    pub dropped: u64,
    /// Events waiting for it.
    pub waiting: u64,
    /// Bytes of events waiting for it.
    pub waiting_bytes: u64,
}

/// A broker to keep a link to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// The address as it was given.
    pub address: String,
    /// The peer id there, if known.
    pub peer_id: Option<String>,
    /// Whether there is a link to it, whoever dialled.
    pub linked: bool,
    /// Whether it is this node itself, which is not dialled again.
    pub oneself: bool,
    /// Why the last try failed or the last link ended.
    pub last_error: Option<String>,
}

/// Somebody who was not let in, or was cut off for what it sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedStatus {
    /// Its peer id.
    pub peer_id: String,
    /// Why.
    pub reason: String,
}
