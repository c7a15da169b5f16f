//! What the tasks of a node share.

use crate::NodeConfig;
use crate::event_loop::{ControlInput, Traffic};
use crate::swarm::SwarmCommand;
use enroute_broker::{BrokerId, ClientId, LinkId, Role, WatchId};
use enroute_session::{NodeStatus, RefusedStatus};
use enroute_wire::{BROKER_VERSIONS, Hello, ShortText};
use libp2p::{Multiaddr, PeerId};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// Name and version of this software, told to neighbours and clients.
pub(crate) const SOFTWARE: &str = concat!("enroute-node ", env!("CARGO_PKG_VERSION"));

/// Refusals that are kept for the status.
const REFUSALS: usize = 32;

/// One for each node, shared by all its tasks.
pub(crate) struct Context {
    pub(crate) config: NodeConfig,
    pub(crate) broker: BrokerId,
    pub(crate) peer: PeerId,
    pub(crate) start_nonce: u64,
    /// Follows the core's, which may grow while it lives.
    pub(crate) incarnation: AtomicU64,
    /// Brokers that may be neighbours; empty for anybody.
    pub(crate) allowed: BTreeSet<PeerId>,
    /// Limits on events and filters, told to clients.
    pub(crate) limits: enroute_filter::Limits,
    /// Clients at a time.
    pub(crate) max_clients: usize,
    /// To the event loop: whatever must not wait behind events.
    pub(crate) control: mpsc::Sender<ControlInput>,
    /// To the event loop: events, publications and commands; what ends a source comes after all it has brought.
    pub(crate) traffic: mpsc::Sender<Traffic>,
    /// To the swarm's task.
    pub(crate) swarm: mpsc::Sender<SwarmCommand>,
    pub(crate) addresses: Mutex<Vec<Multiaddr>>,
    pub(crate) clients: AtomicUsize,
    refused: Mutex<VecDeque<RefusedStatus>>,
    numbers: AtomicU64,
    /// All tasks but the swarm's.
    pub(crate) tasks: TaskTracker,
    /// Stop taking in anything new, say goodbye, drain.
    pub(crate) stopping: CancellationToken,
    /// Enough drained.
    pub(crate) halt: CancellationToken,
}

/// The pieces of a [`Context`] that are not derived from others.
pub(crate) struct ContextParts {
    pub(crate) config: NodeConfig,
    pub(crate) peer: PeerId,
    pub(crate) start_nonce: u64,
    pub(crate) incarnation: u64,
    pub(crate) limits: enroute_filter::Limits,
    pub(crate) max_clients: usize,
    pub(crate) control: mpsc::Sender<ControlInput>,
    pub(crate) traffic: mpsc::Sender<Traffic>,
    pub(crate) swarm: mpsc::Sender<SwarmCommand>,
}

impl Context {
    pub(crate) fn new(parts: ContextParts) -> Context {
        let ContextParts { config, peer, start_nonce, incarnation, limits, max_clients, control, traffic, swarm } =
            parts;
        let mut allowed: BTreeSet<PeerId> = config.allow.iter().copied().collect();
        if !allowed.is_empty() {
            // Whoever is named as a peer or uplink is meant to be one.
            allowed.extend(config.peers.iter().chain(&config.leaf).filter_map(crate::peers::peer_of));
        }
        Context {
            broker: BrokerId::of_peer(&peer.to_string()),
            peer,
            start_nonce,
            incarnation: AtomicU64::new(incarnation),
            allowed,
            limits,
            max_clients,
            control,
            traffic,
            swarm,
            addresses: Mutex::default(),
            clients: AtomicUsize::new(0),
            refused: Mutex::default(),
            numbers: AtomicU64::new(0),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
            halt: CancellationToken::new(),
            config,
        }
    }

    /// Spawns a task that is waited for when the node stops, and cut short if that takes too long.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let halt = self.halt.clone();
        self.tasks.spawn(
            async move {
                tokio::select! {
                    () = task => {}
                    () = halt.cancelled() => {}
                }
            }
            .in_current_span(),
        );
    }

    /// A number for a link, a client, a dial or a watch, never used twice.
    fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn next_link(&self) -> LinkId {
        LinkId(self.next_number())
    }

    pub(crate) fn next_client(&self) -> ClientId {
        ClientId(self.next_number())
    }

    pub(crate) fn next_watch(&self) -> WatchId {
        WatchId(self.next_number())
    }

    pub(crate) fn next_dial(&self) -> u64 {
        self.next_number()
    }

    /// How this broker introduces itself on a connection.
    pub(crate) fn hello(&self, dialled_by: BrokerId, dial: u64, role: Role) -> Hello {
        Hello {
            versions: BROKER_VERSIONS,
            broker: self.broker,
            incarnation: self.incarnation.load(Ordering::Acquire),
            start_nonce: self.start_nonce,
            dialled_by,
            dial,
            software: ShortText::clip(SOFTWARE),
            role,
        }
    }

    /// Whether this is a leaf broker.
    pub(crate) fn is_leaf(&self) -> bool {
        !self.config.leaf.is_empty()
    }

    pub(crate) fn is_allowed(&self, peer: &PeerId) -> bool {
        self.allowed.is_empty() || self.allowed.contains(peer)
    }

    /// Remembers for the status that somebody was not let in, or was cut off.
    pub(crate) fn note_refusal(&self, peer_id: String, reason: String) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() == REFUSALS {
            refused.pop_front();
        }
        refused.push_back(RefusedStatus { peer_id, reason });
    }

    /// Addresses at which the node listens, with its peer id.
    pub(crate) fn addresses(&self) -> Vec<Multiaddr> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The whole status; `None` once the node has stopped.
    pub(crate) async fn status(&self) -> Option<NodeStatus> {
        let (sender, answer) = oneshot::channel();
        self.control.send(ControlInput::Status(sender)).await.ok()?;
        let mut status = answer.await.ok()?;
        let (sender, answer) = oneshot::channel();
        self.swarm.send(SwarmCommand::Peers(sender)).await.ok()?;
        status.peers = answer.await.ok()?;
        status.software = SOFTWARE.into();
        status.addresses = self.addresses().iter().map(ToString::to_string).collect();
        status.refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        Some(status)
    }
}

/// Shared by all tasks.
pub(crate) type Shared = Arc<Context>;
