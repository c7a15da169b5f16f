//! The protocol core of an Enroute broker: no sockets, no clock, no async.
//!
//! A [`Broker`] takes in one [`Input`] after another, each with the moment it happens at, and says what is to be done as
//! [`Output`]s. The same inputs at the same moments give the same outputs. `enroute-node` drives it over libp2p, `netsim` in
//! virtual time.
//!
//! # The protocol
//!
//! **Link states** tell all brokers of all links. Each broker floods a [`LinkState`]: who it is, its links, whether it is still
//! starting. A newer version replaces an older one; versions are (incarnation, sequence), so that a new life outdates all that
//! an earlier one said. When two brokers connect they offer each other the versions they hold, send what the other lacks, and
//! list the link only when both directions are in sync; a link exists when both its ends list it, speaking of the same
//! lives of the two. Every broker computes shortest paths over the links that exist. Costs are compared first and then a sum of
//! hashes that leaves no ties, so that all agree on each path, in either direction and in its parts.
//! A link costs the round trip that its driver measures, to the nearest power of two milliseconds, and seldom changes that
//! ([`Input::RoundTrip`]).
//!
//! **Scopes** say who publishes what. A broker floods, in a [`ScopeRecord`] of its own version, the roots of the covering
//! forest over its clients' advertisements; "anything" once a client publishes without having advertised; "nobody" otherwise.
//! A scope grows at once (though after one change the next waits a moment, for more) and shrinks ten minutes late.
//!
//! **Interest** goes from each broker to those whose scope it overlaps. It is a set: the roots of the covering forest over all
//! local subscriptions, or fewer filters made of them ([`Config::merging`]). A publishing broker is told the whole for each version
//! of its scope (be it nothing), then changes, adds before removes, each step with a [`Digest`] of the whole set that results. A
//! digest that does not come out makes the receiver ask for the whole again; the origin is always right.
//!
//! Interest travels as [`Routed`] control: from broker to broker along the shortest path, ordered, acknowledged, sent again
//! until it has arrived. The brokers in between hold nothing of it, but what many tell one, or one tells many, goes over a link
//! together, and what is the same in it once ([`Letters`]). The two ends number their channel; who has forgotten the other, or
//! begins a new life, begins a new one.
//!
//! **Subscribing.** A subscription is answered when every broker whose scope it overlaps has acknowledged the *current*
//! interest, whether or not this subscription changed it: it may be covered by one that is still under way. From then on an
//! event published anywhere with a path to here is delivered.
//!
//! **Publishing.** An event is matched once, at its publisher's broker: against the local subscriptions, and against the
//! interest of all others. The view of these is complete when the present scope has been told, every reachable broker has answered
//! it, and none is starting; until then publications wait, in order and for a bounded time, but for those within the scope that was
//! told before if all have answered that. The event then carries the set of brokers that want it.
//!
//! **Forwarding.** A broker takes itself out of an event's destinations and delivers; it splits the others by next hop and sends
//! each neighbour one copy with its share. Copies have disjoint destinations, so nothing is ever delivered twice. An event
//! without a next hop is parked until the tables change, for a second at most.
//!
//! # Leaf brokers
//!
//! A leaf broker is no member of the mesh. It runs the same [`Broker`] with an uplink in place of links: a core broker, or
//! another leaf broker, so that trees of leaves hang off the core ([`LeafMessage`]). To its parent a leaf is much like a client.
//!
//! **Attaching.** A leaf asks one uplink to take it in. The parent answers with its path to the core, and tells every change
//! of it. No path, or one that leads through the leaf itself, will not do: the driver dials the next uplink. Attachments are
//! numbered; the new parent sends word along the old path, so that the old parent lets go at once, and the leaf listens to
//! nobody but the present one.
//!
//! **Interest** goes up hop by hop: a parent's forest is over what its clients and the leaves below want, and only its roots
//! are told. A step is acknowledged when it is in force at the parent and everywhere beyond; so is the subscription then.
//! **Scopes** go up likewise.
//!
//! **Events** keep the id that they were given where they were published. Upwards an event is published anew at each parent,
//! which hands it to its clients, its other leaves, and on; downwards go only those that match what is wanted below. Since an
//! event can come over two uplinks while a leaf changes, each broker remembers for a while what came over links to leaves
//! and parents, and delivers none of it again.
//!
//! **Quenching.** A leaf that publishes holds what everybody else wants of that, in steps like any interest, and sends only
//! what is wanted. It may do so while it has a lease: as long as that lasts, its parent acknowledges nobody's interest and
//! answers no subscription before the leaf holds it too. A lease is given only while the parent's own view is complete, and
//! not for longer than the parent's own. Without one publications wait, as in any broker whose view is not complete.
//!
//! **Without an uplink** a leaf goes on for its clients and the leaves below; what is to go up is kept, within bounds, and goes
//! when a parent has given a lease. For two seconds subscriptions wait for the next uplink; after that they are answered at once,
//! as partly in force.
//!
//! **The driver** of a leaf broker dials one uplink of its list at a time, and the next one when a dial fails, when the core
//! closes the link ([`CloseReason::NoPath`], [`CloseReason::Cycle`]) or when it dies; a parent never dials. A second uplink
//! at a time is refused. Leases are asked for and given by the core; the driver need only find dead links in the time that
//! it wants a failover to take.
//!
//! The files of `tests/transcripts` show all this message by message.

mod announce;
mod broker;
mod channel;
mod clients;
mod config;
mod cost;
mod filters;
mod flood;
mod forward;
mod interest;
mod io;
mod kept;
mod leaf_message;
mod lease;
mod leaves;
mod letters;
mod links;
mod message;
mod numbers;
mod passing;
mod paths;
mod publish;
mod quench;
mod received;
mod records;
mod remote;
mod scope;
mod seen;
mod settled;
mod status;
mod timers;
mod told;
mod topology;
mod types;
mod uplink;
mod view;
mod waits;
mod watch;

pub use broker::Broker;
pub use config::{Config, Identity};
pub use cost::cost_of;
pub use enroute_covering::{Budget, MergingConfig};
pub use filters::RemoteFilters;
pub use io::{CloseReason, Command, Delivery, Input, Interested, Neighbour, Notice, Output, Receipt, Refusal, Reply};
pub use leaf_message::{Attach, Detach, LeafMessage, MAX_PATH};
pub use letters::{Letters, MAX_LETTERS, MAX_LETTERS_BYTES};
pub use message::{
    AnnouncedFilter, Digest, EventFrame, Held, Interest, InterestPart, Life, LinkEnd, LinkState, MAX_ADDRESSES,
    Message, Payload, Routed, RoutedBody, Scope, ScopeRecord,
};
pub use received::Changes;
pub use settled::Members;
pub use status::{
    BrokerStatus, Counters, ImperfectStatus, LeafStatus, LinkStatus, MergingStatus, PredicateStatus, Status,
    UplinkStatus,
};
pub use types::{BrokerId, ClientId, EventId, LinkId, RequestId, Role, Time, Version};
pub use watch::WatchId;
