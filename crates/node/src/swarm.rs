//! The swarm's task: listens, dials, and has hellos said over what it has dialled.

use crate::context::Shared;
use crate::event_loop::ControlInput;
use crate::handshake::{self, HandshakeError};
use crate::link;
use crate::mesh::{Action, Known, Mesh, Purpose};
use crate::peers::{Peers, peer_of};
use crate::transport::{Behaviour, BehaviourEvent};
use enroute_broker::BrokerId;
use enroute_session::{LinkReason, MemberStatus, PeerStatus};
use futures::StreamExt;
use libp2p::core::ConnectedPoint;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::swarm::{ConnectionId, DialError, SwarmEvent};
use libp2p::{Multiaddr, PeerId, Swarm, ping};
use libp2p_stream::Control;
use std::collections::{BTreeMap, HashMap};
use std::sync::PoisonError;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What others ask of the swarm's task.
pub(crate) enum SwarmCommand {
    /// Keep a link to whoever is there.
    Connect(Multiaddr),
    /// A link stands; `target` is what was dialled for it, if this side dialled.
    LinkUp { peer: PeerId, target: Option<Target> },
    /// A link is gone.
    LinkDown { peer: PeerId, reason: String, silent: bool },
    /// What was dialled has not become a link; if because there is no room, there are other paths to it.
    DialFailed { target: Target, reason: String, full: bool },
    /// What is known of all brokers, to choose neighbours from; answered with the text of the file of members if that is another
    /// one now.
    Look { known: Vec<Known>, remember: oneshot::Sender<Option<String>> },
    /// For the status.
    Status(oneshot::Sender<DialStatus>),
}

/// What a dial is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// One of the addresses to keep a link to.
    Peer(usize),
    /// A member that this broker has chosen.
    Member(BrokerId),
}

/// The status, as far as this task knows it.
pub(crate) struct DialStatus {
    pub(crate) peers: Vec<PeerStatus>,
    pub(crate) members: Vec<MemberStatus>,
    /// Why there are links, by peer id.
    pub(crate) reasons: BTreeMap<String, LinkReason>,
}

/// Logs why there is no link, and remembers it for the status if somebody refused.
pub(crate) fn report(context: &Shared, peer: PeerId, error: &HandshakeError) {
    match error {
        HandshakeError::RefusedThem(_) | HandshakeError::Protocol(_) => {
            tracing::warn!(%peer, %error, "broker refused");
            context.note_refusal(peer.to_string(), error.to_string());
        }
        HandshakeError::Full(_) => tracing::debug!(%peer, %error, "no link"),
        HandshakeError::RefusedUs(_) | HandshakeError::NoBroker(_) => tracing::warn!(%peer, %error, "no link"),
        HandshakeError::Frames(crate::frames::FramesError::Wire(_)) => {
            tracing::warn!(%peer, %error, "the peer sent what cannot be read");
            context.note_refusal(peer.to_string(), error.to_string());
        }
        HandshakeError::Open(_) | HandshakeError::Frames(_) | HandshakeError::Ended | HandshakeError::Timeout => {
            tracing::debug!(%peer, %error, "no link");
        }
    }
}

/// The task's state.
pub(crate) struct SwarmTask {
    context: Shared,
    swarm: Swarm<Behaviour>,
    streams: Control,
    peers: Peers,
    /// None if this broker has only links that it is told of.
    mesh: Option<Mesh>,
    /// The last round trip on any connection to a peer, as long as there is one.
    round_trips: HashMap<PeerId, Duration>,
    told_tried: bool,
}

impl SwarmTask {
    pub(crate) fn new(context: Shared, swarm: Swarm<Behaviour>, streams: Control) -> SwarmTask {
        let mut peers = if context.is_leaf() { Peers::uplinks() } else { Peers::default() };
        let now = Instant::now();
        for address in context.config.peers.iter().chain(&context.config.leaf) {
            peers.add(address.clone(), now);
        }
        let mesh = context.mesh().map(|bounds| Mesh::open(&context, bounds, now));
        SwarmTask { context, swarm, streams, peers, mesh, round_trips: HashMap::new(), told_tried: false }
    }

    /// Runs until `over`: longer than all others, whose streams live by this.
    pub(crate) async fn run(mut self, mut commands: mpsc::Receiver<SwarmCommand>, over: CancellationToken) {
        loop {
            if !self.context.stopping.is_cancelled() {
                self.dial_due();
            }
            self.tell_when_tried();
            let due = self.peers.next_due().filter(|_| !self.context.stopping.is_cancelled());
            tokio::select! {
                event = self.swarm.select_next_some() => self.on_event(event),
                Some(command) = commands.recv() => self.on_command(command),
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
                () = over.cancelled() => return,
            }
        }
    }

    /// From a port of its own: two that dial each other from the ports they listen at would meet in the middle.
    fn dial_due(&mut self) {
        for (entry, address) in self.peers.take_due(Instant::now()) {
            tracing::debug!(%address, "dialling");
            let peer = peer_of(&address);
            if peer == Some(self.context.peer) {
                self.on_oneself(entry, &address);
                continue;
            }
            let options = match peer {
                Some(peer) => DialOpts::peer_id(peer)
                    .condition(PeerCondition::Always)
                    .addresses(vec![address])
                    .allocate_new_port()
                    .build(),
                None => DialOpts::unknown_peer_id().address(address).allocate_new_port().build(),
            };
            let connection = options.connection_id();
            self.peers.dialling(entry, connection);
            if let Err(error) = self.swarm.dial(options) {
                self.on_dial_error(connection, &error);
            }
        }
    }

    /// Publications wait until each configured peer has been tried and there is a link, or all else that is remembered has been
    /// tried too.
    fn tell_when_tried(&mut self) {
        let joined = !self.peers.linked().is_empty() || self.mesh.as_ref().is_none_or(Mesh::all_tried);
        if !self.told_tried && joined && self.peers.all_tried() {
            self.told_tried = true;
            let context = self.context.clone();
            self.context.spawn(async move {
                let _ = context.control.send(ControlInput::PeersTried).await;
            });
        }
    }

    fn on_event(&mut self, event: SwarmEvent<BehaviourEvent>) {
        match event {
            SwarmEvent::ConnectionEstablished { peer_id, connection_id, endpoint, .. } => {
                tracing::debug!(peer = %peer_id, %connection_id, address = %endpoint.get_remote_address(), "connection");
                if let ConnectedPoint::Dialer { .. } = endpoint {
                    self.on_dialled(connection_id, peer_id);
                }
            }
            SwarmEvent::ConnectionClosed { peer_id, num_established: 0, .. } => {
                self.round_trips.remove(&peer_id);
            }
            SwarmEvent::OutgoingConnectionError { connection_id, error, .. } => {
                self.on_dial_error(connection_id, &error)
            }
            SwarmEvent::NewListenAddr { address, .. } => {
                tracing::info!(%address, "listening");
                add_address(&self.context, address);
                self.tell_addresses();
            }
            SwarmEvent::ExpiredListenAddr { address, .. } => {
                let address = with_own_id(&self.context, address);
                tracing::warn!(%address, "no longer listening");
                let mut addresses = self.context.addresses.lock().unwrap_or_else(PoisonError::into_inner);
                addresses.retain(|other| *other != address);
                drop(addresses);
                self.tell_addresses();
            }
            SwarmEvent::ListenerError { error, .. } => tracing::warn!(%error, "listener"),
            SwarmEvent::IncomingConnectionError { error, .. } => tracing::debug!(%error, "incoming connection"),
            SwarmEvent::Behaviour(BehaviourEvent::Ping(ping::Event { connection, result: Ok(took), peer })) => {
                self.on_round_trip(connection, peer, took);
            }
            // Whoever only does not speak the protocol lives.
            SwarmEvent::Behaviour(BehaviourEvent::Ping(ping::Event { connection, result: Err(error), peer }))
                if !matches!(error, ping::Failure::Unsupported) =>
            {
                tracing::info!(%peer, %connection, %error, "a connection has died");
                self.swarm.close_connection(connection);
            }
            #[cfg(feature = "mdns")]
            SwarmEvent::Behaviour(BehaviourEvent::Mdns(libp2p::mdns::Event::Discovered(found)))
                if !self.context.is_leaf() =>
            {
                for (peer, address) in found {
                    if let Ok(address) = address.with_p2p(peer) {
                        self.peers.add(address, Instant::now());
                    }
                }
            }
            // Events of libp2p of which nothing follows here.
            _ => {}
        }
    }

    /// A connection that was dialled stands.
    fn on_dialled(&mut self, connection: ConnectionId, peer: PeerId) {
        if let Some(entry) = self.peers.dialled(connection) {
            return self.say_hello(Target::Peer(entry), peer);
        }
        // What is to be measured first is: every connection is from its beginning.
        if let Some((member, false)) = self.mesh.as_ref().and_then(|mesh| mesh.dialled(connection)) {
            self.say_hello(Target::Member(member), peer);
        }
    }

    /// How long it takes to a peer and back.
    fn on_round_trip(&mut self, connection: ConnectionId, peer: PeerId, took: Duration) {
        self.round_trips.insert(peer, took);
        if self.peers.is_linked(peer) {
            self.tell_round_trip(peer, took);
        }
        let linked = self.peers.linked();
        let Some(mesh) = &mut self.mesh else { return };
        if let Some((member, true)) = mesh.dialled(connection) {
            let wanted = mesh.measured(member, took, &linked, Instant::now());
            tracing::debug!(%peer, ?took, wanted, "the way to a member has been measured");
            if wanted {
                self.say_hello(Target::Member(member), peer);
            } else {
                self.swarm.close_connection(connection);
            }
        }
    }

    /// The connection stands: the rest is between the two brokers.
    fn say_hello(&mut self, target: Target, peer: PeerId) {
        if self.peers.is_linked(peer) {
            // Whoever is there has linked up meanwhile.
            return match (target, &mut self.mesh) {
                (Target::Peer(entry), _) => self.peers.reached(entry, peer, Instant::now()),
                (Target::Member(member), Some(mesh)) => mesh.not_needed(member),
                (Target::Member(_), None) => {}
            };
        }
        let spare = self.mesh.as_ref().is_some_and(|mesh| mesh.reaches(&peer));
        let (context, mut streams) = (self.context.clone(), self.streams.clone());
        self.context.spawn(async move {
            let established = tokio::select! {
                established = handshake::dial(&context, &mut streams, peer, spare) => established,
                () = context.stopping.cancelled() => return,
            };
            match established {
                Ok(established) => link::run(context, established, Some(target)).await,
                Err(error) => {
                    report(&context, peer, &error);
                    // The swarm's task ends after this one.
                    let (reason, full) = (error.to_string(), matches!(error, HandshakeError::Full(_)));
                    let _ = context.swarm.send(SwarmCommand::DialFailed { target, reason, full }).await;
                }
            }
        });
    }

    /// What was dialled has become a link.
    fn reached(&mut self, target: Target, peer: PeerId) {
        match (target, &mut self.mesh) {
            (Target::Peer(entry), _) => self.peers.reached(entry, peer, Instant::now()),
            (Target::Member(member), Some(mesh)) => mesh.reached(member),
            (Target::Member(_), None) => {}
        }
    }

    /// To the core, by way of the event loop. Nothing is waited for here.
    fn tell(&self, input: ControlInput) {
        let context = self.context.clone();
        self.context.spawn(async move {
            let _ = context.control.send(input).await;
        });
    }

    fn tell_addresses(&self) {
        self.tell(ControlInput::Addresses(self.context.told_addresses()));
    }

    fn tell_round_trip(&self, peer: PeerId, took: Duration) {
        self.tell(ControlInput::RoundTrip { neighbour: BrokerId::of_peer(&peer.to_string()), took });
    }

    /// Makes the links that the mesh lacks, and gives up those that it can spare.
    fn mend_mesh(&mut self, known: Vec<Known>) -> Option<String> {
        let (now, linked) = (Instant::now(), self.peers.linked());
        let mesh = self.mesh.as_mut()?;
        let remember = mesh.look(known, |peer| self.context.is_allowed(peer), now);
        for action in mesh.decide(&linked, now) {
            match action {
                Action::Drop(neighbour) => self.tell(ControlInput::Drop(neighbour)),
                Action::Dial(to, purpose) => {
                    tracing::debug!(%to, ?purpose, "dialling a member");
                    self.dial_member(to, purpose);
                }
            }
        }
        remember
    }

    fn dial_member(&mut self, to: BrokerId, purpose: Purpose) {
        let Some(mesh) = &mut self.mesh else { return };
        let Some((peer, addresses)) = mesh.dial(to, purpose, Instant::now()) else { return };
        let options = DialOpts::peer_id(peer).condition(PeerCondition::Always).addresses(addresses);
        let options = options.allocate_new_port().build();
        let connection = options.connection_id();
        mesh.dialling(to, connection);
        if let Err(error) = self.swarm.dial(options) {
            self.on_dial_error(connection, &error);
        }
    }

    fn on_dial_error(&mut self, connection: ConnectionId, error: &DialError) {
        let now = Instant::now();
        let Some(entry) = self.peers.dialled(connection) else {
            let Some(mesh) = &mut self.mesh else { return };
            if let Some((member, _)) = mesh.dialled(connection) {
                mesh.failed(member, describe(error), false, now);
            }
            return;
        };
        match error {
            DialError::LocalPeerId { address } => return self.on_oneself(entry, &address.clone()),
            // libp2p leaves out the addresses at which it listens itself, and then has none.
            DialError::NoAddresses => return self.on_oneself(entry, &Multiaddr::empty()),
            _ => {}
        }
        let reason = describe(error);
        tracing::debug!(reason, "dialling failed");
        self.peers.failed(entry, reason, now, rand::random());
    }

    fn on_oneself(&mut self, entry: usize, address: &Multiaddr) {
        tracing::info!(%address, "a peer is this node itself: not dialled again");
        self.peers.is_oneself(entry);
    }

    fn on_command(&mut self, command: SwarmCommand) {
        let now = Instant::now();
        match command {
            SwarmCommand::Connect(address) => self.peers.add(address, now),
            SwarmCommand::LinkUp { peer, target } => {
                if let Some(target) = target {
                    self.reached(target, peer);
                }
                self.peers.link_up(peer);
                self.mesh.iter_mut().for_each(|mesh| mesh.link_up(&peer));
                if let Some(&took) = self.round_trips.get(&peer) {
                    self.tell_round_trip(peer, took);
                }
            }
            SwarmCommand::LinkDown { peer, reason, silent } => {
                if !self.peers.link_down(peer, &reason, now, rand::random()) {
                    return;
                }
                self.mesh.iter_mut().for_each(|mesh| mesh.link_down(&peer));
                if silent {
                    // The connection may look alive for minutes yet, and streams opened over it would be as dead.
                    let _ = self.swarm.disconnect_peer_id(peer);
                }
            }
            SwarmCommand::DialFailed { target, reason, full } => match (target, &mut self.mesh) {
                (Target::Peer(entry), _) if full => self.peers.full(entry, reason, now, rand::random()),
                (Target::Peer(entry), _) => self.peers.failed(entry, reason, now, rand::random()),
                (Target::Member(member), Some(mesh)) => mesh.failed(member, reason, full, now),
                (Target::Member(_), None) => {}
            },
            // Whoever has stopped waiting for these answers does not mind.
            SwarmCommand::Look { known, remember } => drop(remember.send(self.mend_mesh(known))),
            SwarmCommand::Status(answer) => drop(answer.send(self.status())),
        }
    }

    fn status(&self) -> DialStatus {
        let peers = self.peers.views().map(|view| PeerStatus {
            address: view.address.to_string(),
            peer_id: view.peer.map(|peer| peer.to_string()),
            linked: view.linked,
            oneself: view.oneself,
            last_error: view.last_error.map(str::to_owned),
        });
        let reason = |(peer, named): (PeerId, bool)| {
            let unchosen = if named { LinkReason::Configured } else { LinkReason::Accepted };
            (peer.to_string(), self.mesh.as_ref().map_or(unchosen, |mesh| mesh.link_reason(&peer, named)))
        };
        DialStatus {
            peers: peers.collect(),
            members: self.mesh.as_ref().map(Mesh::status).unwrap_or_default(),
            reasons: self.peers.linked().into_iter().map(reason).collect(),
        }
    }
}

/// Makes a listen address known, with the peer id at its end.
pub(crate) fn add_address(context: &Shared, address: Multiaddr) {
    let address = with_own_id(context, address);
    let mut addresses = context.addresses.lock().unwrap_or_else(PoisonError::into_inner);
    if !addresses.contains(&address) {
        addresses.push(address);
    }
}

fn with_own_id(context: &Shared, address: Multiaddr) -> Multiaddr {
    address.with_p2p(context.peer).unwrap_or_else(|address| address)
}

/// A dial error without the layers that say nothing.
fn describe(error: &DialError) -> String {
    match error {
        DialError::Transport(errors) => {
            let texts: Vec<String> = errors.iter().map(|(_, error)| root(error)).collect();
            texts.join("; ")
        }
        error => error.to_string(),
    }
}

/// The text of the innermost cause.
fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
