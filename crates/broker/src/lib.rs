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
//!
//! **Scopes** say who publishes what. A broker floods, in a [`ScopeRecord`] of its own version, the roots of the covering
//! forest over its clients' advertisements; "anything" once a client publishes without having advertised; "nobody" otherwise.
//! A scope grows at once and shrinks ten minutes late.
//!
//! **Interest** goes from each broker to those whose scope it overlaps. It is a set: the roots of the covering forest over all
//! local subscriptions. A publishing broker is told the whole for each version of its scope (be it nothing), then changes, adds
//! before removes, each step with a [`Digest`] of the whole set that results. A digest that does not come out makes the receiver ask for
//! the whole again; the origin is always right.
//!
//! Interest travels as [`Routed`] control: from broker to broker along the shortest path, ordered, acknowledged, sent again
//! until it has arrived. The brokers in between hold nothing of it. The two ends number their channel; who has forgotten
//! the other, or begins a new life, begins a new one.
//!
//! **Subscribing.** A subscription is answered when every broker whose scope it overlaps has acknowledged the *current*
//! interest, whether or not this subscription changed it: it may be covered by one that is still under way. From then on an
//! event published anywhere with a path to here is delivered.
//!
//! **Publishing.** An event is matched once, at its publisher's broker: against the local subscriptions, and against the
//! interest of all others. The view of these is complete when every reachable broker has answered the present scope and none is
//! starting; until then publications wait, in order and for a bounded time. The event then carries the set of brokers
//! that want it.
//!
//! **Forwarding.** A broker takes itself out of an event's destinations and delivers; it splits the others by next hop and sends
//! each neighbour one copy with its share. Copies have disjoint destinations, so nothing is ever delivered twice. An event
//! without a next hop is parked until the tables change, for a second at most.
//!
//! The files of `tests/transcripts` show all this message by message.

mod announce;
mod broker;
mod channel;
mod clients;
mod config;
mod flood;
mod forward;
mod io;
mod links;
mod message;
mod paths;
mod publish;
mod remote;
mod scope;
mod status;
mod timers;
mod topology;
mod types;
mod waits;

pub use broker::Broker;
pub use config::{Config, Identity};
pub use io::{CloseReason, Command, Delivery, Input, Neighbour, Notice, Output, Receipt, Refusal, Reply};
pub use message::{
    AnnouncedFilter, Digest, EventFrame, Held, Interest, LinkEnd, LinkState, MAX_ADDRESSES, Message, Payload, Routed,
    RoutedBody, Scope, ScopeRecord,
};
pub use status::{BrokerStatus, Counters, LinkStatus, Status};
pub use types::{BrokerId, ClientId, EventId, LinkId, RequestId, Time, Version};
