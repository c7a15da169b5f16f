//! What a scenario does, step by step.

use crate::chaos::Chaos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Something to do. Times are virtual.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Step {
    /// Wait until the network has come to rest, then check all that must be so.
    Settle {
        /// It is wrong if that takes longer; a minute if left out.
        within_ms: Option<u64>,
    },
    /// Let time pass.
    Wait {
        /// How many milliseconds.
        #[serde(default, skip_serializing_if = "is_zero")]
        ms: u64,
        /// And microseconds.
        #[serde(default, skip_serializing_if = "is_zero")]
        us: u64,
    },
    /// Place a subscription.
    Subscribe {
        /// The client's name.
        client: String,
        /// The name to place it under.
        name: String,
        /// The filter; a random one if left out.
        filter: Option<String>,
        /// Whether to go on only when it is answered.
        #[serde(default = "yes")]
        wait: bool,
    },
    /// Withdraw a subscription; nothing happens if there is none of that name.
    Unsubscribe {
        /// The client's name.
        client: String,
        /// The subscription's name.
        name: String,
    },
    /// Withdraw all subscriptions of all clients.
    UnsubscribeAll,
    /// Make an advertisement.
    Advertise {
        /// The client's name.
        client: String,
        /// The name to make it under.
        name: String,
        /// The filter; a random one if left out.
        filter: Option<String>,
    },
    /// Withdraw an advertisement; nothing happens if there is none of that name.
    Unadvertise {
        /// The client's name.
        client: String,
        /// The advertisement's name.
        name: String,
    },
    /// A client's connection ends, and with it all that it has placed, until it connects again.
    Disconnect {
        /// The client's name.
        client: String,
    },
    /// A client connects again, and places again what it wants.
    Connect {
        /// The client's name.
        client: String,
    },
    /// All clients that are away connect again.
    ConnectAll,
    /// A client reads nothing for a while; its queue holds only so many deliveries, and drops the oldest.
    StallClient {
        /// The client's name.
        client: String,
        /// For how many milliseconds.
        ms: u64,
        /// Deliveries that its queue holds.
        #[serde(default = "queue")]
        queue: usize,
    },
    /// Publish events.
    Publish {
        /// The client that publishes; left out, the clients take turns.
        client: Option<String>,
        /// The event, as a line of JSON; a random one if left out.
        event: Option<String>,
        /// How many events.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        count: u64,
        /// Time between two of them.
        #[serde(default, skip_serializing_if = "is_zero")]
        gap_us: u64,
    },
    /// Publish the events of a file of JSON lines.
    Replay {
        /// The file, from the scenario's folder; may be compressed with gzip.
        file: PathBuf,
        /// The attribute that says who publishes.
        by: String,
        /// Its values and the clients' names.
        clients: BTreeMap<String, String>,
        /// Time between two events.
        #[serde(default)]
        gap_us: u64,
        /// At most so many events.
        limit: Option<usize>,
    },
    /// Cut a link. As all faults, it does nothing where it does not apply any more.
    Cut {
        /// The brokers at its ends.
        link: [String; 2],
    },
    /// Heal a link: it is whole again, and nothing slows it or makes it flap.
    Heal {
        /// The brokers at its ends.
        link: [String; 2],
    },
    /// Heal all links.
    HealAll,
    /// Dial a link that is there already, as a broker does that has not heard of the other's dial.
    DialAgain {
        /// Who dials, and whom.
        link: [String; 2],
    },
    /// Slow a link down until it is healed. With different delays, control and events overtake each other.
    Slow {
        /// The brokers at its ends.
        link: [String; 2],
        /// Microseconds more for each control message.
        #[serde(default, skip_serializing_if = "is_zero")]
        control_us: u64,
        /// Microseconds more for each event.
        #[serde(default, skip_serializing_if = "is_zero")]
        events_us: u64,
        /// Bytes a second for events, and again for control; left out, what all links have.
        bandwidth: Option<u64>,
    },
    /// Let nothing more leave over a link for a while. It stays up.
    Stall {
        /// The brokers at its ends.
        link: [String; 2],
        /// For how many milliseconds.
        ms: u64,
    },
    /// Cut and heal a link again and again, beside the steps that follow, until it is healed by one of them.
    Flap {
        /// The brokers at its ends.
        link: [String; 2],
        /// How often it is cut.
        times: u32,
        /// For how many milliseconds it is cut.
        down_ms: u64,
        /// For how many milliseconds it is whole.
        up_ms: u64,
    },
    /// Cut all links between groups; brokers that are named in no group make one together.
    Partition {
        /// Names of brokers.
        groups: Vec<Vec<String>>,
    },
    /// Crash a broker.
    Crash {
        /// Its name.
        broker: String,
    },
    /// Start a crashed broker again.
    Restart {
        /// Its name.
        broker: String,
    },
    /// Start all crashed brokers again.
    RestartAll,
    /// Do random things.
    Chaos(Chaos),
    /// Check that a client got what the scenario says: exactly so many events, counted from the beginning.
    Expect {
        /// The client's name.
        client: String,
        /// How many.
        received: u64,
    },
    /// Check how many brokers have gone down because their identity is in use elsewhere, and forgive them.
    ExpectInUse {
        /// How many.
        brokers: u64,
    },
    /// Check that all tables equal those of a fresh build; what is kept for a while must have run out.
    CheckFresh,
    /// Check that no broker holds anybody's interest.
    CheckEmpty,
}

impl Step {
    /// The client that it is about.
    pub(crate) fn client(&self) -> Option<&String> {
        match self {
            Step::Subscribe { client, .. }
            | Step::Unsubscribe { client, .. }
            | Step::Advertise { client, .. }
            | Step::Unadvertise { client, .. }
            | Step::Disconnect { client }
            | Step::Connect { client }
            | Step::StallClient { client, .. }
            | Step::Expect { client, .. } => Some(client),
            Step::Publish { client, .. } => client.as_ref(),
            Step::Settle { .. }
            | Step::Wait { .. }
            | Step::UnsubscribeAll
            | Step::ConnectAll
            | Step::Replay { .. }
            | Step::Cut { .. }
            | Step::Heal { .. }
            | Step::HealAll
            | Step::DialAgain { .. }
            | Step::Slow { .. }
            | Step::Stall { .. }
            | Step::Flap { .. }
            | Step::Partition { .. }
            | Step::Crash { .. }
            | Step::Restart { .. }
            | Step::RestartAll
            | Step::Chaos(_)
            | Step::ExpectInUse { .. }
            | Step::CheckFresh
            | Step::CheckEmpty => None,
        }
    }

    /// The link that it is about.
    pub(crate) fn link(&self) -> Option<&[String; 2]> {
        match self {
            Step::Cut { link }
            | Step::Heal { link }
            | Step::DialAgain { link }
            | Step::Slow { link, .. }
            | Step::Stall { link, .. }
            | Step::Flap { link, .. } => Some(link),
            _ => None,
        }
    }

    /// The brokers without which it has no meaning.
    pub(crate) fn brokers(&self) -> Vec<&String> {
        match self {
            Step::Crash { broker } | Step::Restart { broker } => vec![broker],
            _ => self.link().into_iter().flatten().collect(),
        }
    }
}

fn yes() -> bool {
    true
}

fn one() -> u64 {
    1
}

fn is_one(number: &u64) -> bool {
    *number == 1
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Deliveries that a client's queue holds, if nothing else is said.
fn queue() -> usize {
    64
}
