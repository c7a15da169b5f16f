//! How a node is put together and started.

use crate::acceptors::Acceptors;
use crate::context::{Context, ContextParts, Shared};
use crate::event_loop::{self, EventLoop};
use crate::identity::{self, DataDir};
use crate::node::StopReason;
use crate::swarm::{SwarmTask, add_address};
use crate::transport::{self, Behaviour};
use crate::{Node, NodeConfig, NodeError, mesh};
use enroute_broker::{Broker, Config, Identity, Time};
use futures::StreamExt;
use libp2p::core::transport::ListenerId;
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::SwarmEvent;
use libp2p::{Multiaddr, PeerId, Swarm};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a node that shuts down waits for its links and clients.
const SHUTDOWN: Duration = Duration::from_secs(5);
/// Commands to the swarm's task that may wait.
const COMMANDS: usize = 256;

/// Describes a node; see [`Node::builder`].
#[derive(Clone, Debug, Default)]
pub struct NodeBuilder {
    config: NodeConfig,
    core: Config,
    keypair: Option<Keypair>,
}

impl NodeBuilder {
    /// Replaces all that was said so far but key and core.
    #[must_use]
    pub fn config(mut self, config: NodeConfig) -> NodeBuilder {
        self.config = config;
        self
    }

    /// Listens at one more address.
    #[must_use]
    pub fn listen(mut self, address: Multiaddr) -> NodeBuilder {
        self.config.listen.push(address);
        self
    }

    /// Keeps a link to one more broker.
    #[must_use]
    pub fn peer(mut self, address: Multiaddr) -> NodeBuilder {
        self.config.peers.push(address);
        self
    }

    /// Whether a core broker chooses further neighbours by itself among the members of the network that it has joined; with
    /// `false` it keeps links to the peers that were named and dials no others.
    #[must_use]
    pub fn mesh(mut self, mesh: bool) -> NodeBuilder {
        self.config.mesh = mesh;
        self
    }

    /// Makes this a leaf broker, and adds uplinks that it may hang off, in order of preference: one at a time, the next one when
    /// that is lost.
    #[must_use]
    pub fn leaf(mut self, uplinks: impl IntoIterator<Item = Multiaddr>) -> NodeBuilder {
        self.config.leaf.extend(uplinks);
        self
    }

    /// Keeps the identity, and whatever else must outlive a restart, in a directory.
    #[must_use]
    pub fn data_dir(mut self, path: impl Into<PathBuf>) -> NodeBuilder {
        self.config.data_dir = Some(path.into());
        self
    }

    /// Uses a key instead of one from the data directory, or instead of a new one. With a data directory that has no key yet,
    /// it is stored there.
    #[must_use]
    pub fn keypair(mut self, keypair: Keypair) -> NodeBuilder {
        self.keypair = Some(keypair);
        self
    }

    /// Allows one more peer to be a broker of this network; the first one shuts out all others.
    #[must_use]
    pub fn allow(mut self, peer: PeerId) -> NodeBuilder {
        self.config.allow.push(peer);
        self
    }

    /// Sets times and bounds of the protocol core: for tests, and networks unlike others. Whether the broker is a leaf, and what it
    /// keeps then, and how it merges what it announces, follows from the [`NodeConfig`].
    #[must_use]
    pub fn core(mut self, core: Config) -> NodeBuilder {
        self.core = core;
        self
    }

    /// Starts the node on the current tokio runtime, of whatever flavour. It listens when this returns; its peers are
    /// dialled from then on.
    ///
    /// # Errors
    /// Any [`NodeError`] but `Stopped`; nothing is left running then.
    pub async fn start(self) -> Result<Node, NodeError> {
        let NodeBuilder { config, mut core, keypair } = self;
        config.check()?;
        core.leaf = !config.leaf.is_empty();
        core.merging = config.merging();
        (core.kept_events, core.kept_bytes) = (config.kept_events, config.kept_bytes);
        let data_dir = config.data_dir.as_ref().map(DataDir::open).transpose()?;
        let keypair = choose_keypair(data_dir.as_ref(), keypair)?;
        let incarnation = match &data_dir {
            Some(data_dir) => data_dir.begin_incarnation()?,
            None => identity::unix_milliseconds(),
        };
        let peer = keypair.public().to_peer_id();
        let mut swarm = transport::build(keypair)?;
        let mut streams = swarm.behaviour().streams.new_control();
        let acceptors = Acceptors::register(&mut streams).map_err(|error| NodeError::Transport(error.to_string()))?;

        let (control, control_inputs) = mpsc::channel(event_loop::CONTROL);
        let (traffic, traffic_items) = mpsc::channel(event_loop::TRAFFIC);
        let (commands, swarm_commands) = mpsc::channel(COMMANDS);
        let context = Arc::new(Context::new(ContextParts {
            config,
            peer,
            start_nonce: rand::random(),
            incarnation,
            limits: core.limits.clone(),
            max_clients: core.clients,
            control,
            traffic,
            swarm: commands,
        }));
        listen(&mut swarm, &context).await?;

        let started = Instant::now();
        let broker = Broker::new(identity_of(&context, incarnation), core, Time(0));
        let (reason_sender, reason) = watch::channel(None);
        let event_loop = EventLoop::new(context.clone(), broker, started, data_dir, reason_sender);
        context.spawn(event_loop.run(control_inputs, traffic_items));
        acceptors.spawn(&context);
        let over = CancellationToken::new();
        let swarm_task = SwarmTask::new(context.clone(), swarm, streams);
        if context.mesh().is_some() {
            context.spawn(mesh::watch(context.clone()));
        }
        let swarm_task = tokio::spawn(swarm_task.run(swarm_commands, over.clone()));
        let (finished_sender, finished) = watch::channel(None);
        tokio::spawn(finish(context.clone(), reason, swarm_task, over, finished_sender));
        tracing::info!(id = %context.broker, %peer, incarnation, "node started");
        Ok(Node { context, finished })
    }
}

fn choose_keypair(data_dir: Option<&DataDir>, given: Option<Keypair>) -> Result<Keypair, NodeError> {
    match (data_dir, given) {
        (None, given) => Ok(given.unwrap_or_else(Keypair::generate_ed25519)),
        (Some(data_dir), None) => data_dir.keypair(),
        (Some(data_dir), Some(given)) => match identity::read_keypair(data_dir.path())? {
            None => {
                data_dir.store_keypair(&given)?;
                Ok(given)
            }
            Some(stored) if stored.public() == given.public() => Ok(given),
            Some(stored) => Err(NodeError::TwoKeys {
                path: data_dir.path().to_owned(),
                given: given.public().to_peer_id().to_string(),
                stored: stored.public().to_peer_id().to_string(),
            }),
        },
    }
}

fn identity_of(context: &Context, incarnation: u64) -> Identity {
    Identity {
        id: context.broker,
        peer_id: context.peer.to_string().into(),
        incarnation,
        start_nonce: context.start_nonce,
        addresses: context.told_addresses(),
    }
}

/// libp2p shares a TCP port with whoever else does so too, and two brokers at one address would take each other's connections:
/// binding it without sharing tells whether it is free.
fn probe(address: &Multiaddr) -> std::io::Result<()> {
    let mut parts = address.iter();
    let ip = match parts.next() {
        Some(Protocol::Ip4(ip)) => ip.into(),
        Some(Protocol::Ip6(ip)) => ip.into(),
        _ => return Ok(()),
    };
    match parts.next() {
        Some(Protocol::Tcp(port)) if port != 0 => std::net::TcpListener::bind(SocketAddr::new(ip, port)).map(drop),
        _ => Ok(()),
    }
}

/// Listens at every address of the configuration; returns when each has been bound.
async fn listen(swarm: &mut Swarm<Behaviour>, context: &Shared) -> Result<(), NodeError> {
    let failed = |address: &Multiaddr, reason: String| NodeError::Listen { address: address.clone(), reason };
    let mut pending: Vec<(ListenerId, Multiaddr)> = Vec::new();
    for address in &context.config.listen {
        probe(address).map_err(|error| failed(address, error.to_string()))?;
        let listener = swarm.listen_on(address.clone()).map_err(|error| failed(address, error.to_string()))?;
        pending.push((listener, address.clone()));
    }
    while !pending.is_empty() {
        match swarm.select_next_some().await {
            SwarmEvent::NewListenAddr { listener_id, address } => {
                tracing::info!(%address, "listening");
                add_address(context, address);
                pending.retain(|(listener, _)| *listener != listener_id);
            }
            SwarmEvent::ListenerClosed { listener_id, reason, .. } => {
                if let Some((_, address)) = pending.iter().find(|(listener, _)| *listener == listener_id) {
                    let reason = reason.err().map_or("closed".to_owned(), |error| error.to_string());
                    return Err(failed(address, reason));
                }
            }
            SwarmEvent::ListenerError { listener_id, error } => {
                if let Some((_, address)) = pending.iter().find(|(listener, _)| *listener == listener_id) {
                    return Err(failed(address, error.to_string()));
                }
            }
            // Nobody has been dialled yet; whoever dials us already is told to the swarm's task by what it does next.
            _ => {}
        }
    }
    Ok(())
}

/// Waits for the node to be stopped and sees all tasks to their end, the swarm's last.
async fn finish(
    context: Shared,
    reason: watch::Receiver<Option<StopReason>>,
    swarm_task: tokio::task::JoinHandle<()>,
    over: CancellationToken,
    finished: watch::Sender<Option<StopReason>>,
) {
    context.stopping.cancelled().await;
    tracing::info!("node stopping");
    context.tasks.close();
    if tokio::time::timeout(SHUTDOWN, context.tasks.wait()).await.is_err() {
        tracing::warn!("some links or clients did not let themselves be drained in time");
        context.halt.cancel();
        context.tasks.wait().await;
    }
    over.cancel();
    if let Err(error) = swarm_task.await {
        tracing::error!(%error, "the swarm's task failed");
    }
    let reason = reason.borrow().unwrap_or(StopReason::Shutdown);
    tracing::info!(%reason, "node stopped");
    // Nobody may be waiting.
    finished.send_replace(Some(reason));
}
