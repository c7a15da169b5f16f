//! Publish and subscribe through a running Enroute node.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = enroute_client::connect("/ip4/127.0.0.1/tcp/7440".parse()?).await?;
//! client.subscribe("late", "kind = 'flight' AND dep_delay >= 60".parse()?).await?;
//! while let Some(delivery) = client.next().await {
//!     println!("{:?}", delivery.event);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`connect`] gives a [`Client`], the same handle that a node gives to clients in its own process. A [`Builder`] offers
//! more: a key, a policy for when the client is slow, reconnecting.

mod builder;
mod connector;

pub use builder::{Builder, connect};
pub use enroute_session::{
    Client, ClientError, ClientStatus, Delivery, LinkQueueStatus, LinkReason, MemberStatus, NodeStatus, Notice,
    Options, PeerStatus, Publication, RefusedStatus, SlowSubscriber, Subscribed,
};
pub use libp2p::identity::Keypair;
pub use libp2p::{Multiaddr, PeerId};
