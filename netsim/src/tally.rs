//! Counts of what goes over the links.

use enroute_broker::{LeafMessage, Message, Payload, RoutedBody, Time};
use serde::Serialize;
use std::collections::BTreeMap;

/// Messages and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// How many.
    pub messages: u64,
    /// Their bytes, as frames.
    pub bytes: u64,
}

impl Count {
    /// One message more.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.messages += 1;
        self.bytes += bytes;
    }

    pub(crate) fn plus(self, other: Count) -> Count {
        Count { messages: self.messages + other.messages, bytes: self.bytes + other.bytes }
    }

    /// What is more than before.
    pub(crate) fn minus(self, before: Count) -> Count {
        Count { messages: self.messages - before.messages, bytes: self.bytes - before.bytes }
    }
}

/// What has gone over one link, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkTally {
    /// Events, from the first end to the second and back.
    pub events: [u64; 2],
    /// Of these, those that led to nobody who was interested, as far as that was checked (settled times).
    pub useless: u64,
    /// Bytes of events.
    pub event_bytes: u64,
    /// Control messages.
    pub control: Count,
}

/// What has gone over all links.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// By kind.
    pub(crate) control: BTreeMap<&'static str, Count>,
    pub(crate) events: Count,
    /// By link.
    pub(crate) links: Vec<LinkTally>,
    /// Bytes of control and of events, by second of virtual time.
    pub(crate) seconds: Vec<[u64; 2]>,
    /// Reasons for closing links and how often they were given.
    pub(crate) closes: BTreeMap<String, u64>,
}

/// Seconds that are kept apart.
const MOST_SECONDS: usize = 3_600;

impl Tally {
    /// Bytes of control and of events went out at a time.
    pub(crate) fn at(&mut self, now: Time, bytes: [u64; 2]) {
        let second = (now.0 / 1_000_000) as usize;
        if second < MOST_SECONDS {
            if self.seconds.len() <= second {
                self.seconds.resize(second + 1, [0; 2]);
            }
            self.seconds[second][0] += bytes[0];
            self.seconds[second][1] += bytes[1];
        }
    }
}

/// What a control message is, in one word; different letters that go together are just that.
pub(crate) fn kind(message: &Message) -> &'static str {
    match message {
        Message::Offer { .. } => "offer",
        Message::Synced => "synced",
        Message::SyncedAck => "synced-ack",
        Message::LinkState(_) => "link-state",
        Message::Scope(_) => "scope",
        Message::Routed(letters) => {
            let mut kinds = letters.0.iter().map(|letter| kind_of_letter(&letter.body));
            let first = kinds.next().unwrap_or("letters");
            if kinds.all(|kind| kind == first) { first } else { "letters" }
        }
        Message::Leaf(message) => match message {
            LeafMessage::Attach(_) => "leaf-attach",
            LeafMessage::Path(_) => "leaf-path",
            LeafMessage::Interest(_) => "leaf-interest",
            LeafMessage::Held { .. } => "leaf-held",
            LeafMessage::Scope { .. } => "leaf-scope",
            LeafMessage::Renew { .. } | LeafMessage::Lease { .. } | LeafMessage::Revoke => "lease",
            LeafMessage::Detach(_) => "detach",
        },
    }
}

fn kind_of_letter(body: &RoutedBody) -> &'static str {
    match body {
        RoutedBody::Data { payload: Payload::Interest(_), .. } => "interest",
        RoutedBody::Data { payload: Payload::Resync { .. }, .. } => "resync",
        RoutedBody::Data { payload: Payload::Detach(_), .. } => "detach",
        RoutedBody::Ack { .. } => "ack",
        RoutedBody::Restart { .. } => "restart",
    }
}
