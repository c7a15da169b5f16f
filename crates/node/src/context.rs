//! What the tasks of a node share.

use crate::NodeConfig;
use crate::event_loop::{ControlInput, Traffic};
use crate::mesh::Bounds;
use crate::swarm::{DialStatus, SwarmCommand};
use enroute_broker::{BrokerId, ClientId, LinkId, Role, WatchId};
use enroute_session::{NodeStatus, RefusedStatus};
use enroute_wire::{BROKER_VERSIONS, Hello, ShortText};
use libp2p::multiaddr::Protocol;
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
    /// Links to core brokers at present.
    pub(crate) core_links: AtomicUsize,
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
            core_links: AtomicUsize::new(0),
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
    pub(crate) fn hello(&self, dialled_by: BrokerId, dial: u64, role: Role, spare: bool) -> Hello {
        Hello {
            versions: BROKER_VERSIONS,
            broker: self.broker,
            incarnation: self.incarnation.load(Ordering::Acquire),
            start_nonce: self.start_nonce,
            dialled_by,
            dial,
            software: ShortText::clip(SOFTWARE),
            role,
            spare,
        }
    }

    /// Whether this is a leaf broker.
    pub(crate) fn is_leaf(&self) -> bool {
        !self.config.leaf.is_empty()
    }

    /// Between how many links this broker keeps by itself; none if it has only those that it is told of.
    pub(crate) fn mesh(&self) -> Option<Bounds> {
        let chooses = self.config.mesh && !self.is_leaf();
        chooses.then_some(Bounds { min: self.config.min_links, max: self.config.max_links })
    }

    /// Whether there are as many links as this broker wants at most.
    pub(crate) fn is_full(&self) -> bool {
        self.mesh().is_some_and(|bounds| self.core_links.load(Ordering::Relaxed) >= bounds.max)
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

    /// The addresses to tell others, with the peer id.
    pub(crate) fn told_addresses(&self) -> Vec<String> {
        let with_id = |address: &Multiaddr| address.clone().with_p2p(self.peer).unwrap_or_else(|address| address);
        let announced = self.config.announce.iter().map(with_id).collect();
        worth_telling(announced, self.addresses()).iter().map(ToString::to_string).collect()
    }

    /// The whole status; `None` once the node has stopped.
    pub(crate) async fn status(&self) -> Option<NodeStatus> {
        let (sender, answer) = oneshot::channel();
        self.control.send(ControlInput::Status(sender)).await.ok()?;
        let mut status = answer.await.ok()?;
        let (sender, answer) = oneshot::channel();
        self.swarm.send(SwarmCommand::Status(sender)).await.ok()?;
        let DialStatus { peers, members, reasons } = answer.await.ok()?;
        (status.peers, status.members) = (peers, members);
        for queue in &mut status.link_queues {
            queue.reason = reasons.get(&queue.peer_id).copied().unwrap_or_default();
        }
        status.software = SOFTWARE.into();
        status.addresses = self.addresses().iter().map(ToString::to_string).collect();
        status.refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        Some(status)
    }
}

/// Of the addresses at which a node listens, those that others can use, behind the announced ones. Loopback is of use only if
/// there is nothing else, for brokers on one machine.
fn worth_telling(announced: Vec<Multiaddr>, listening: Vec<Multiaddr>) -> Vec<Multiaddr> {
    let (on_this_machine, elsewhere): (Vec<_>, Vec<_>) = listening.into_iter().partition(is_loopback);
    let usable = elsewhere.into_iter().filter(|address| !is_link_local(address));
    let told: Vec<Multiaddr> = announced.into_iter().chain(usable).collect();
    if told.is_empty() { on_this_machine } else { told }
}

fn is_loopback(address: &Multiaddr) -> bool {
    match address.iter().next() {
        Some(Protocol::Ip4(ip)) => ip.is_loopback(),
        Some(Protocol::Ip6(ip)) => ip.is_loopback(),
        Some(_) | None => false,
    }
}

/// Only with the name of the dialler's own interface could it be dialled.
fn is_link_local(address: &Multiaddr) -> bool {
    matches!(address.iter().next(), Some(Protocol::Ip6(ip)) if ip.is_unicast_link_local())
}

/// Shared by all tasks.
pub(crate) type Shared = Arc<Context>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_told_only_if_there_is_nothing_else() {
        let [loopback, loopback6] = ["/ip4/127.0.0.1/tcp/1", "/ip6/::1/tcp/1"];
        let [network, link_local, name] = ["/ip4/192.0.2.1/tcp/1", "/ip6/fe80::1/tcp/1", "/dns4/example.org/tcp/1"];
        let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<Multiaddr>>();
        for (announced, listening, told) in [
            (vec![], vec![loopback, loopback6], vec![loopback, loopback6]),
            (vec![], vec![loopback, network, link_local, loopback6], vec![network]),
            (vec![name], vec![loopback, network], vec![name, network]),
            (vec![name], vec![loopback], vec![name]),
            (vec![], vec![loopback, link_local], vec![loopback]),
            (vec![], vec![], vec![]),
        ] {
            assert_eq!(
                worth_telling(parse(&announced), parse(&listening)),
                parse(&told),
                "{announced:?} {listening:?}"
            );
        }
    }
}
