//! What brokers tell each other. The crate `enroute-wire` gives these their bytes.

use crate::{BrokerId, Detach, EventId, LeafMessage, Letters, Version};
use bytes::Bytes;
use enroute_filter::{Conjunction, DecodeError};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

/// A control message from a broker to its neighbour, in order and without loss while their link lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// On a new link: the records that I hold of origins I can reach, in parts.
    Offer {
        /// One entry for each origin.
        held: Vec<Held>,
        /// Whether this part is the last.
        last: bool,
    },
    /// All that your offer lacked, or had in older versions, has been sent.
    Synced,
    /// I have taken in all that came before your `Synced`.
    SyncedAck,
    /// A broker's link state, flooded.
    LinkState(Arc<LinkState>),
    /// A broker's scope, flooded.
    Scope(Arc<ScopeRecord>),
    /// Control from brokers to others, perhaps far ones; see [`Routed`].
    Routed(Letters),
    /// What a leaf broker and its parent say to each other; on their link nothing else is said.
    Leaf(LeafMessage),
}

/// What a broker holds of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Whose records.
    pub origin: BrokerId,
    /// The version of its link state.
    pub links: Version,
    /// The version of its scope; the default version if none is held.
    pub scope: Version,
}

/// Addresses that a link state may name.
pub const MAX_ADDRESSES: usize = 32;

/// What a broker says of itself and its links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkState {
    /// The broker that speaks.
    pub origin: BrokerId,
    /// Its peer id in text form; `origin` is its hash.
    pub peer_id: Arc<str>,
    /// Drawn at each start: tells two lives apart that claim one incarnation.
    pub start_nonce: u64,
    /// Version of this record.
    pub version: Version,
    /// Whether its configured peers have not all been tried yet.
    pub starting: bool,
    /// Multiaddresses at which it can be dialled, at most [`MAX_ADDRESSES`].
    pub addresses: Vec<String>,
    /// Its links that are in sync in both directions, sorted by neighbour.
    pub links: Vec<LinkEnd>,
}

impl LinkState {
    /// One that says nothing but these links, which stand in order of their neighbours.
    #[cfg(test)]
    pub(crate) fn listing(origin: BrokerId, links: Vec<LinkEnd>) -> LinkState {
        LinkState {
            origin,
            peer_id: "".into(),
            start_nonce: 0,
            version: Version { incarnation: 1, sequence: 1 },
            starting: false,
            addresses: vec![],
            links,
        }
    }

    /// What it says of the link to a neighbour, if it lists one.
    pub(crate) fn link_to(&self, neighbour: BrokerId) -> Option<&LinkEnd> {
        self.links.binary_search_by_key(&neighbour, |link| link.neighbour).ok().map(|place| &self.links[place])
    }
}

/// One end of a link, as that end's broker sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkEnd {
    /// The broker at the other end.
    pub neighbour: BrokerId,
    /// At least 1; the link costs the larger of what its two ends say.
    pub cost: u32,
    /// Equal at both ends if they speak of the same lives of the two brokers.
    pub nonce: u64,
}

/// What the clients of a broker may publish.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeRecord {
    /// The broker that speaks.
    pub origin: BrokerId,
    /// Version of this record, on its own count.
    pub version: Version,
    /// The scope itself.
    pub scope: Scope,
}

/// See [`ScopeRecord`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// Nobody publishes.
    #[default]
    Nobody,
    /// Somebody publishes without having advertised, or there is too much to list.
    Anything,
    /// The roots of the forest over all advertisements.
    Filters(Vec<AnnouncedFilter>),
}

/// A conjunction in the bytes that its origin gave it: digests are taken over these, whatever a later version would write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AnnouncedFilter(pub Bytes);

impl AnnouncedFilter {
    /// Encodes a conjunction.
    pub fn of(conjunction: &Conjunction) -> AnnouncedFilter {
        AnnouncedFilter(conjunction.to_bytes().into())
    }

    /// Decodes and checks it.
    ///
    /// # Errors
    /// If the bytes are no conjunction in canonical form.
    pub fn conjunction(&self) -> Result<Conjunction, DecodeError> {
        Conjunction::from_bytes(&self.0)
    }

    /// Decodes it for matching. What cannot be read may want anything: taking it for less would lose events.
    pub fn or_always(&self) -> Conjunction {
        self.conjunction().unwrap_or_else(|_| Conjunction::always())
    }
}

/// A letter: control that travels end to end over any number of brokers, which hold it for a moment at most. It is ordered, acknowledged
/// and sent again over new paths until its destination has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routed {
    /// The broker that speaks.
    pub source: Life,
    /// The broker that is spoken to, as the source knows it; another life of it drops the letter.
    pub destination: Life,
    /// Brokers that it has passed.
    pub passed: u16,
    /// What is said.
    pub body: RoutedBody,
}

/// A broker from one start to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Life {
    /// The broker.
    pub broker: BrokerId,
    /// Its incarnation.
    pub incarnation: u64,
}

/// See [`Routed`]. `P` stands for a part of an interest: the part, or its place in a list of parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RoutedBody<P = Arc<InterestPart>> {
    /// A numbered message of the source's channel to the destination.
    Data {
        /// Which channel: a source that begins anew takes a larger number.
        epoch: u64,
        /// Counts the messages of the channel, from 1.
        sequence: u64,
        /// The message.
        payload: Payload<P>,
    },
    /// All messages of the *destination's* channel up to this one have been taken in.
    Ack {
        /// The channel.
        epoch: u64,
        /// The last message taken in, in order.
        received: u64,
    },
    /// Messages of a channel have come whose beginning is not known here: begin anew.
    Restart {
        /// The channel that is of no use.
        epoch: u64,
    },
}

/// What channels carry; see [`RoutedBody`] for `P`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Payload<P = Arc<InterestPart>> {
    /// What the source wants of what the destination's clients may publish.
    Interest(Interest<P>),
    /// The source's copy of the destination's interest has another digest than was said: send it whole.
    Resync {
        /// The interest version that did not come out right.
        version: u64,
    },
    /// A leaf below the source was below the destination before.
    Detach(Detach),
}

/// A step of the interest that a broker holds with one publishing broker, or that a leaf broker and its parent hold with each
/// other; or a part of a step, if it is large. See [`RoutedBody`] for `P`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interest<P = Arc<InterestPart>> {
    /// The sequence of the destination's scope that this answers; between a leaf and its parent, of the leaf's.
    pub scope_version: u64,
    /// What is said, mostly the same to many.
    pub part: P,
}

/// See [`Interest`]. Parts with `last` unset are kept until the last one comes, and all are applied as one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InterestPart {
    /// The source's interest version (within its incarnation); a leaf broker and its parent number the steps of an attachment
    /// instead.
    pub version: u64,
    /// Whether this begins from nothing instead of from the step before.
    pub whole: bool,
    /// Applied first.
    pub added: Vec<AnnouncedFilter>,
    /// Applied second.
    pub removed: Vec<AnnouncedFilter>,
    /// Whether the step ends here.
    pub last: bool,
    /// Of the whole set that the destination now holds (meaningful with `last`).
    pub digest: Digest,
}

impl Interest {
    /// What answers that version of a scope, and is nobody else's.
    pub fn new(scope_version: u64, part: InterestPart) -> Interest {
        Interest { scope_version, part: Arc::new(part) }
    }
}

/// A digest of a set of filters: the wrapping sum of the 128-bit hashes of their bytes, so that it follows adds and removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Digest(pub u128);

impl Digest {
    /// The digest with one filter more.
    pub fn with(self, filter: &AnnouncedFilter) -> Digest {
        Digest(self.0.wrapping_add(xxhash_rust::xxh3::xxh3_128(&filter.0)))
    }

    /// The digest with one filter less.
    pub fn without(self, filter: &AnnouncedFilter) -> Digest {
        Digest(self.0.wrapping_sub(xxhash_rust::xxh3::xxh3_128(&filter.0)))
    }
}

/// An event on its way between brokers: a header that changes at each broker, and a body that none on the way looks into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFrame {
    /// Brokers it may still pass.
    pub hop_limit: u16,
    /// Where this copy goes: sorted, none twice, never empty. Copies at one broker have disjoint destinations. On the link
    /// between a leaf broker and its parent it is the broker at the other end. Mostly there are few, and then nothing is
    /// allocated for them.
    pub destinations: SmallVec<[BrokerId; 2]>,
    /// The event's id.
    pub id: EventId,
    /// The event in its own layout ([`enroute_filter::Event`]), not yet checked.
    pub event: Bytes,
}
