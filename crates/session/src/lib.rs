//! A client's session with a broker: publish, subscribe, take in what is delivered.
//!
//! A [`Client`] speaks the client protocol of `enroute-wire` over one byte stream, whatever that is: `enroute-client` brings
//! it a libp2p stream to a broker elsewhere, `enroute-node` a pipe to a broker in the same process. Both users see the same
//! handle.
//!
//! Behind the handle runs one task. It sends requests as they come and passes answers and deliveries on. Deliveries flow
//! against credit: the session grants the broker as many as it has room for, so that an application that takes no deliveries
//! still gets its answers, and what becomes of the events it does not take is for the broker to decide, by the
//! [`SlowSubscriber`] policy the client chose.
//!
//! With [`Options::reconnect`] the session outlives its connection: it connects again, places its advertisements and
//! subscriptions again, and says so by [`Notice`]s.

mod client;
mod connection;
mod error;
mod inbox;
mod keeper;
mod pending;
mod receipts;
mod requests;
mod status;

pub use client::{Client, Delivery, Publication, Subscribed};
pub use enroute_wire::SlowSubscriber;
pub use error::ClientError;
pub use keeper::{Notice, Options};
pub use status::{ClientStatus, LinkQueueStatus, LinkReason, MemberStatus, NodeStatus, PeerStatus, RefusedStatus};

#[cfg(test)]
mod tests;
