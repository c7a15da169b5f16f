//! A libp2p stream to the broker.

use enroute_session::ClientError;
use enroute_transport::{Multiplexer, Security};
use enroute_wire::CLIENT_PROTOCOL;
use futures::StreamExt;
use libp2p::identity::Keypair;
use libp2p::multiaddr::Protocol;
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::swarm::{DialError, NetworkBehaviour, SwarmEvent};
use libp2p::{Multiaddr, PeerId, Stream, StreamProtocol, Swarm, SwarmBuilder, identify, ping, tcp};
use libp2p_stream::{Control, OpenStreamError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt};

/// How long dialling, or opening the stream, may take.
const STEP: Duration = Duration::from_secs(10);
/// The stream keeps its connection open; one without may go.
const IDLE: Duration = Duration::from_secs(10);

#[derive(NetworkBehaviour)]
struct Behaviour {
    streams: libp2p_stream::Behaviour,
    identify: identify::Behaviour,
    /// Answers the broker's, and finds out when the broker has died without a word.
    ping: ping::Behaviour,
}

/// Dials the broker whenever asked to. Its swarm runs in a task that ends when this is dropped.
pub(crate) struct Connector {
    address: Multiaddr,
    streams: Control,
    dials: mpsc::Sender<Dial>,
}

/// A wish for a connection, and who waits for it.
struct Dial {
    options: DialOpts,
    connected: oneshot::Sender<Result<PeerId, String>>,
}

impl Connector {
    pub(crate) fn new(keypair: Keypair, address: Multiaddr) -> Result<Connector, ClientError> {
        let swarm = build(keypair).map_err(|reason| ClientError::Address { address: address.to_string(), reason })?;
        let streams = swarm.behaviour().streams.new_control();
        let (dials, receiver) = mpsc::channel(1);
        tokio::spawn(run(swarm, receiver));
        Ok(Connector { address, streams, dials })
    }

    /// One try: a new connection, and the client's stream over it.
    pub(crate) async fn connect(&mut self) -> Result<Compat<Stream>, ClientError> {
        let address = self.address.to_string();
        let unreachable = |reason: String| ClientError::Unreachable { address: address.clone(), reason };
        let options = match self.address.iter().last() {
            Some(Protocol::P2p(peer)) => {
                let addresses = vec![self.address.clone()];
                DialOpts::peer_id(peer).condition(PeerCondition::Always).addresses(addresses).build()
            }
            _ => DialOpts::unknown_peer_id().address(self.address.clone()).build(),
        };
        let (sender, connected) = oneshot::channel();
        self.dials.send(Dial { options, connected: sender }).await.map_err(|_| unreachable("stopped".into()))?;
        let connected = tokio::time::timeout(STEP, connected).await;
        let connected = connected.map_err(|_| unreachable("no answer in time".into()))?;
        let peer = connected.map_err(|_| unreachable("stopped".into()))?.map_err(unreachable)?;
        let stream = self.streams.open_stream(peer, StreamProtocol::new(CLIENT_PROTOCOL));
        let stream = tokio::time::timeout(STEP, stream).await.map_err(|_| unreachable("no stream in time".into()))?;
        let stream = stream.map_err(|error| match error {
            OpenStreamError::UnsupportedProtocol(protocol) => {
                unreachable(format!("whoever answers there is no broker: it does not speak {protocol}"))
            }
            error => unreachable(error.to_string()),
        })?;
        Ok(stream.compat())
    }
}

fn build(keypair: Keypair) -> Result<Swarm<Behaviour>, String> {
    let builder = SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_tcp(tcp::Config::new().nodelay(true), Security::new, Multiplexer::new)
        .map_err(|error| error.to_string())?;
    #[cfg(feature = "quic")]
    let builder = builder.with_quic();
    let builder = builder
        .with_behaviour(|keypair| Behaviour {
            streams: libp2p_stream::Behaviour::new(),
            // Without its cache a lost broker is dialled at the address that was given, and at no other that it told of.
            identify: identify::Behaviour::new(
                identify::Config::new("/enroute/1".into(), keypair.public()).with_cache_size(0),
            ),
            ping: ping::Behaviour::new(ping::Config::new()),
        })
        .map_err(|error| error.to_string())?;
    Ok(builder.with_swarm_config(|config| config.with_idle_connection_timeout(IDLE)).build())
}

/// Drives the swarm until nobody can ask for a connection any more. One dial at a time.
async fn run(mut swarm: Swarm<Behaviour>, mut dials: mpsc::Receiver<Dial>) {
    let mut under_way = None;
    loop {
        tokio::select! {
            dial = dials.recv() => {
                let Some(Dial { options, connected }) = dial else { return };
                let connection = options.connection_id();
                match swarm.dial(options) {
                    Ok(()) => under_way = Some((connection, connected)),
                    // Whoever has stopped waiting does not mind.
                    Err(error) => drop(connected.send(Err(describe(&error)))),
                }
            }
            event = swarm.select_next_some() => match event {
                SwarmEvent::ConnectionEstablished { peer_id, connection_id, .. } => {
                    if let Some((_, connected)) = under_way.take_if(|(dial, _)| *dial == connection_id) {
                        let _ = connected.send(Ok(peer_id));
                    }
                }
                SwarmEvent::OutgoingConnectionError { connection_id, error, .. } => {
                    if let Some((_, connected)) = under_way.take_if(|(dial, _)| *dial == connection_id) {
                        let _ = connected.send(Err(describe(&error)));
                    }
                }
                SwarmEvent::Behaviour(BehaviourEvent::Ping(ping::Event { connection, result: Err(error), .. }))
                    if !matches!(error, ping::Failure::Unsupported) =>
                {
                    tracing::debug!(%error, "the connection to the broker has died");
                    swarm.close_connection(connection);
                }
                // Events of libp2p of which nothing follows here.
                _ => {}
            },
        }
    }
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
