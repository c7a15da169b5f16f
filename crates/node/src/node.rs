//! The handle of a running node.

use crate::context::Shared;
use crate::swarm::SwarmCommand;
use crate::{NodeBuilder, NodeError, clients};
use enroute_broker::BrokerId;
use enroute_session::{Client, ClientError, NodeStatus, Options};
use libp2p::{Multiaddr, PeerId};
use tokio::sync::watch;

/// Bytes of each direction of the pipe between a client in the same process and the broker.
const PIPE: usize = 64 << 10;

/// A running broker. Dropping it begins to shut it down; [`Node::shutdown`] also waits for that.
pub struct Node {
    pub(crate) context: Shared,
    pub(crate) finished: watch::Receiver<Option<StopReason>>,
}

/// Why a node has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    /// It was told to.
    #[error("it was shut down")]
    Shutdown,
    /// Another broker runs with the same key.
    #[error("its identity is in use by another broker: give each its own key")]
    IdentityInUse,
}

impl Node {
    /// Starts to describe a node.
    pub fn builder() -> NodeBuilder {
        NodeBuilder::default()
    }

    /// The broker's id.
    pub fn id(&self) -> BrokerId {
        self.context.broker
    }

    /// The peer id, of which [`Node::id`] is a hash.
    pub fn peer_id(&self) -> PeerId {
        self.context.peer
    }

    /// The addresses at which it listens, with the peer id at their ends.
    pub fn addresses(&self) -> Vec<Multiaddr> {
        self.context.addresses()
    }

    /// How the node is.
    ///
    /// # Errors
    /// [`NodeError::Stopped`].
    pub async fn status(&self) -> Result<NodeStatus, NodeError> {
        self.context.status().await.ok_or(NodeError::Stopped)
    }

    /// A client of this broker, in the same process.
    ///
    /// # Errors
    /// As [`Node::client_with`].
    pub async fn client(&self) -> Result<Client, ClientError> {
        self.client_with(Options::default()).await
    }

    /// A client of this broker, in the same process, with options of its own.
    ///
    /// # Errors
    /// [`ClientError::HelloRefused`] if there are too many clients, [`ClientError::Disconnected`] if the node has stopped.
    pub async fn client_with(&self, options: Options) -> Result<Client, ClientError> {
        let context = self.context.clone();
        let connect = move || {
            let (near, far) = tokio::io::duplex(PIPE);
            context.spawn(clients::serve(context.clone(), String::new(), far));
            std::future::ready(Ok(near))
        };
        Client::start(connect, options).await
    }

    /// Keeps a link to whoever is at an address, with or without `/p2p/ID` at its end; to a leaf broker it is one more uplink that it
    /// may hang off. Returns before there is one.
    ///
    /// # Errors
    /// [`NodeError::Stopped`].
    pub async fn connect(&self, address: Multiaddr) -> Result<(), NodeError> {
        let command = SwarmCommand::Connect(address);
        self.context.swarm.send(command).await.map_err(|_| NodeError::Stopped)
    }

    /// Says goodbye to neighbours and clients, lets what is queued go out, and returns when every task has ended: at the latest
    /// after some seconds.
    pub async fn shutdown(&self) {
        self.context.stopping.cancel();
        self.stopped().await;
    }

    /// Waits until the node has stopped, by [`Node::shutdown`] or by itself; why.
    pub async fn stopped(&self) -> StopReason {
        let mut finished = self.finished.clone();
        let reason = finished.wait_for(Option::is_some).await.ok().and_then(|reason| *reason);
        reason.unwrap_or(StopReason::Shutdown)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.context.stopping.cancel();
    }
}
