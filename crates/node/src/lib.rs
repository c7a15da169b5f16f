//! A broker on libp2p and tokio, to run or to embed.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use enroute_node::Node;
//!
//! let node = Node::builder().listen("/ip4/127.0.0.1/tcp/7440".parse()?).start().await?;
//! let client = node.client().await?;
//! client.subscribe("late", "kind = 'flight' AND dep_delay >= 60".parse()?).await?;
//! while let Some(delivery) = client.next().await {
//!     println!("{:?}", delivery.event);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A node keeps no global state, handles no signals, installs no tracing subscriber, and runs on whatever tokio runtime it is
//! started on.
//!
//! # Features
//!
//! Both are off. `quic` makes addresses such as `/ip4/127.0.0.1/udp/7440/quic-v1` possible beside TCP; `mdns` dials whatever
//! brokers are found in the local network, in addition to the configured ones.
//!
//! # The tasks
//!
//! | task | what it does |
//! | --- | --- |
//! | swarm (`swarm.rs`) | listens, dials with backoff, tells whom it has reached |
//! | mesh (`mesh/mod.rs`) | has the swarm's task decide, now and then, which links to make and to give up; remembers members |
//! | three acceptors (`acceptors.rs`) | take streams and give each a task; nothing else, as streams that come meanwhile are lost |
//! | one for each handshake, then link (`handshake.rs`, `link.rs`) | hellos, then four tasks: read and write, control and events |
//! | one for each client (`clients.rs`) | hello, then read requests, write answers and deliveries |
//! | event loop (`event_loop.rs`) | owns the core; inputs come by bounded channels, outputs go into bounded queues |
//!
//! The event loop awaits nobody. What a neighbour does not take stays in its two queues: control (`control_queue.rs`), where
//! too much closes the link, and events (`event_queue.rs`), where too much is dropped and counted, or holds up its sources.
//! What a client does not take stays in its outbox (`outbox.rs`), where its policy decides. Events wait as the bytes that will
//! be written (`encoded.rs`).

mod acceptors;
mod advertisement;
mod builder;
mod clients;
mod config;
mod context;
mod control_queue;
mod encoded;
mod error;
mod event_loop;
mod event_queue;
mod frames;
mod handshake;
mod identity;
mod link;
mod mesh;
mod node;
mod outbox;
mod peers;
mod swarm;
mod transport;

pub use advertisement::Advertisement;
pub use builder::NodeBuilder;
pub use config::{FullLink, NodeConfig};
pub use enroute_broker::Interested;
pub use enroute_session::{
    Client, ClientError, ClientStatus, Delivery, LinkQueueStatus, LinkReason, MemberStatus, NodeStatus, Notice,
    Options, PeerStatus, Publication, RefusedStatus, SlowSubscriber, Subscribed,
};
pub use error::NodeError;
pub use identity::{DataDir, read_keypair};
pub use libp2p::identity::Keypair;
pub use libp2p::{Multiaddr, PeerId};
pub use node::{Node, StopReason};
