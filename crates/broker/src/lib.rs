//! The protocol core of an Enroute broker: no sockets, no clock, no async.

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
    AnnouncedFilter, Digest, EventFrame, Held, Interest, LinkEnd, LinkState, Message, Payload, Routed, RoutedBody,
    Scope, ScopeRecord,
};
pub use status::{BrokerStatus, Counters, LinkStatus, Status};
pub use types::{BrokerId, ClientId, EventId, LinkId, RequestId, Time, Version};
