//! What goes into the core and what comes out: two closed enums.

use crate::{BrokerId, ClientId, EventFrame, EventId, LinkId, Message, RequestId, Role};
use bytes::Bytes;
use enroute_filter::{Event, Filter};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Everything that can happen to a broker.
#[derive(Clone, Debug)]
pub enum Input {
    /// A connection to another broker stands, both hellos are exchanged.
    LinkUp {
        /// The new link.
        link: LinkId,
        /// Who is at the other end.
        neighbour: Neighbour,
    },
    /// A connection has ended.
    LinkDown {
        /// The link that was.
        link: LinkId,
        /// Events given to this link of which no byte has gone to the transport, in order: they find another way.
        unsent: Vec<EventFrame>,
    },
    /// Something has gone to the other end of a link and its answer has come back.
    RoundTrip {
        /// The link; one that is gone does not matter.
        link: LinkId,
        /// How long that took. The shortest of a minute counts, so that it need not have gone undisturbed.
        took: Duration,
    },
    /// The broker can be reached at other addresses than before.
    Addresses(Vec<String>),
    /// A control message has come.
    Message {
        /// Over this link.
        link: LinkId,
        /// The message.
        message: Message,
    },
    /// An event has come from a neighbour.
    Event {
        /// Over this link.
        link: LinkId,
        /// The event.
        frame: EventFrame,
    },
    /// A client's connection stands.
    ClientConnected {
        /// The client.
        client: ClientId,
    },
    /// A client's connection has ended: its subscriptions and advertisements go with it.
    ClientDisconnected {
        /// The client.
        client: ClientId,
    },
    /// A client asks for something.
    Command {
        /// The client.
        client: ClientId,
        /// The number of the request; the reply bears it.
        request: RequestId,
        /// What it asks.
        command: Command,
    },
    /// A client publishes; answered with [`Reply::Published`] when the event is on its way.
    Publish {
        /// The client.
        client: ClientId,
        /// The number of the request; the reply bears it.
        request: RequestId,
        /// The event, checked.
        event: Event,
    },
    /// Each configured peer has been dialled once, and is linked or failed; for a leaf broker, one of its uplinks is linked or
    /// all have failed once. The broker goes on without this when
    /// [`Config::starting`](crate::Config) is over.
    PeersTried,
    /// The moment that [`Broker::wake_at`](crate::Broker::wake_at) named has come (or just some time has passed).
    Timer,
}

/// Who is at the other end of a new link, from its hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its id.
    pub broker: BrokerId,
    /// What it is on this link.
    pub role: Role,
    /// Its peer id in text form.
    pub peer_id: Arc<str>,
    /// Its incarnation.
    pub incarnation: u64,
    /// Its start nonce.
    pub start_nonce: u64,
    /// Who dialled this connection.
    pub dialled_by: BrokerId,
    /// Counts the dials of the one who dialled; of two connections dialled by one side the later wins.
    pub dial: u64,
    /// The cost of the link, at least 1, until a round trip is measured.
    pub cost: u32,
    /// The own incarnation as our hello on this connection told it ([`Broker::incarnation`](crate::Broker::incarnation) then).
    pub told_incarnation: u64,
}

/// What a client may ask, apart from publishing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Place a subscription, or replace the one of that name. Answered when it is in force.
    Subscribe {
        /// The client's own name for it.
        name: Arc<str>,
        /// What to deliver.
        filter: Filter,
    },
    /// Withdraw a subscription.
    Unsubscribe {
        /// The name it was placed under.
        name: Arc<str>,
    },
    /// Say what will be published, or replace what was said under that name. Answered when the network is ready for it.
    Advertise {
        /// The client's own name for it.
        name: Arc<str>,
        /// What will be published.
        filter: Filter,
    },
    /// Withdraw an advertisement.
    Unadvertise {
        /// The name it was made under.
        name: Arc<str>,
    },
}

/// The answer to a [`Command`] or a publication.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The subscription or advertisement is in force.
    InForce {
        /// At how many other brokers.
        brokers: u32,
    },
    /// The subscription or advertisement stands, but the wait for others ran out; they will follow.
    Partial {
        /// The brokers that have not acknowledged.
        missing: Vec<BrokerId>,
    },
    /// Withdrawn.
    Withdrawn,
    /// The event has been sent to all who want it.
    Published(Receipt),
    /// Refused; nothing has changed.
    Refused(Refusal),
}

/// What became of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The id it was given.
    pub id: EventId,
    /// To how many other brokers it was sent.
    pub destinations: u32,
    /// Whether all reachable brokers had said what they want, or the wait for that ran out.
    pub complete: bool,
}

/// Why a command is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// The event is outside the client's advertisements.
    #[error("the event matches none of this client's advertisements: advertise it first, or advertise nothing at all")]
    NotAdvertised,
    /// No subscription or advertisement has this name.
    #[error("there is no subscription or advertisement named '{name}'")]
    UnknownName {
        /// The name.
        name: Arc<str>,
    },
    /// The broker is at a bound.
    #[error("{what}: the limit of {limit} is reached")]
    Limit {
        /// Of what there are too many.
        what: String,
        /// How many may be.
        limit: u64,
    },
    /// The broker is going down.
    #[error("the broker is shutting down")]
    ShuttingDown,
}

/// Everything a broker asks of its driver.
#[derive(Clone, Debug)]
pub enum Output {
    /// Send a control message.
    Send {
        /// Over this link.
        link: LinkId,
        /// The message.
        message: Message,
    },
    /// Send an event to a neighbour.
    Forward {
        /// Over this link.
        link: LinkId,
        /// The event.
        frame: EventFrame,
    },
    /// Hand an event to a client.
    Deliver {
        /// The client.
        client: ClientId,
        /// The event and why it is delivered.
        delivery: Delivery,
    },
    /// Answer a request.
    Reply {
        /// The client.
        client: ClientId,
        /// The number of its request.
        request: RequestId,
        /// The answer.
        reply: Reply,
    },
    /// Close a link; the driver reports no [`Input::LinkDown`] for it. What was sent on it before still goes out.
    CloseLink {
        /// The link.
        link: LinkId,
        /// Why; told to the other end.
        reason: CloseReason,
    },
    /// Store this incarnation so that the next start exceeds it.
    StoreIncarnation(u64),
    /// Go down: this identity is used elsewhere too.
    IdentityInUse,
    /// Something that a person should know.
    Notice(Notice),
}

/// An event for a client: one copy, however many of its subscriptions match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The event's id.
    pub id: EventId,
    /// The event in its own layout, checked.
    pub event: Bytes,
    /// Names of the client's subscriptions that match, sorted.
    pub subscriptions: Arc<[Arc<str>]>,
}

/// Why a link is closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum CloseReason {
    /// The other end broke the protocol.
    #[error("protocol violation: {0}")]
    Violation(String),
    /// Another connection to the same broker is kept.
    #[error("a second connection to the same broker; the other one is kept")]
    Duplicate,
    /// A connection to oneself.
    #[error("a connection to oneself")]
    Oneself,
    /// The other end's id clashes with another broker's.
    #[error("broker id {id} belongs to peer {held_by}, so peer {refused} is refused: give one of them a new key")]
    IdClash {
        /// The id both have.
        id: BrokerId,
        /// The peer that has it already.
        held_by: Arc<str>,
        /// The peer that is refused.
        refused: Arc<str>,
    },
    /// The other end's incarnation is older than one already heard of.
    #[error("an incarnation older than one already known")]
    OldIncarnation,
    /// The parent of a leaf broker has no path to the core.
    #[error("no path to a core broker; try another uplink, or later")]
    NoPath,
    /// The path of a leaf broker's parent leads through the leaf.
    #[error("the path to the core leads back through the leaf; try another uplink")]
    Cycle,
    /// A leaf broker is attached elsewhere by now.
    #[error("the leaf is attached elsewhere by now")]
    Moved,
    /// There is no room for another leaf broker.
    #[error("no room for another leaf: the limit of {limit} is reached")]
    Full {
        /// How many there may be.
        limit: u64,
    },
}

/// Whether anybody wants an event; see [`Broker::interested`](crate::Broker::interested).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interested {
    /// Somebody does.
    Yes,
    /// Nobody does.
    No,
    /// Nobody here does, and what others want is not known well enough to say.
    Unknown,
}

/// Something that a person should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Notice {
    /// Somebody else speaks under this broker's name; it has jumped above it.
    #[error("somebody else speaks as this broker; going on with incarnation {incarnation}")]
    Impersonated {
        /// The incarnation taken.
        incarnation: u64,
    },
    /// Two whole syncs of an interest did not come out right.
    #[error("the interest of broker {broker} does not come out right after two full syncs; waiting before the next")]
    DigestMismatch {
        /// Whose interest.
        broker: BrokerId,
    },
    /// A filter or event that cannot be read, from far away.
    #[error("broker {broker} sent something that cannot be read: {what}")]
    Unreadable {
        /// Who sent it.
        broker: BrokerId,
        /// What it was.
        what: String,
    },
    /// A record clashes with another broker of the same id.
    #[error("broker id {id} belongs to peer {held_by}; what peer {refused} says under it is refused")]
    IdClash {
        /// The id both have.
        id: BrokerId,
        /// The peer that has it already.
        held_by: Arc<str>,
        /// The peer that is refused.
        refused: Arc<str>,
    },
}
