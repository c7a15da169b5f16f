//! The libp2p swarm: transports and behaviours.

use crate::NodeError;
use enroute_transport::{Multiplexer, Security};
use libp2p::identity::Keypair;
use libp2p::swarm::NetworkBehaviour;
use libp2p::{Swarm, SwarmBuilder, connection_limits, identify, ping, tcp};
use std::time::Duration;

/// A connection without streams is closed after this. Links and clients keep streams open all the time, so that only
/// connections that serve for nothing go: the second one between two brokers that dialled each other.
const IDLE: Duration = Duration::from_secs(30);

/// How long a connection may take to come about: a leaf broker whose uplink is out of reach tries the next one then.
const CONNECT: Duration = Duration::from_secs(5);

/// Pending connections from outside, and connections to one peer: bounds on what strangers can make us hold.
const PENDING_INCOMING: u32 = 1_024;
const PER_PEER: u32 = 64;

#[derive(NetworkBehaviour)]
pub(crate) struct Behaviour {
    pub(crate) streams: libp2p_stream::Behaviour,
    pub(crate) identify: identify::Behaviour,
    /// Finds connections that have died without a word.
    pub(crate) ping: ping::Behaviour,
    pub(crate) limits: connection_limits::Behaviour,
    #[cfg(feature = "mdns")]
    pub(crate) mdns: libp2p::mdns::tokio::Behaviour,
}

/// A swarm that listens nowhere yet.
pub(crate) fn build(keypair: Keypair) -> Result<Swarm<Behaviour>, NodeError> {
    let failed = |e: &dyn std::fmt::Display| NodeError::Transport(e.to_string());
    let builder = SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_tcp(tcp::Config::new().nodelay(true), Security::new, Multiplexer::new)
        .map_err(|e| failed(&e))?;
    #[cfg(feature = "quic")]
    let builder = builder.with_quic_config(|mut config| {
        // An unread stream would else take 9.5 MiB before it pushes back.
        config.max_stream_data = 1 << 20;
        config.max_connection_data = 4 << 20;
        config
    });
    let builder = builder
        .with_behaviour(|keypair| {
            let limits = connection_limits::ConnectionLimits::default()
                .with_max_pending_incoming(Some(PENDING_INCOMING))
                .with_max_established_per_peer(Some(PER_PEER));
            let software = format!("enroute/{}", env!("CARGO_PKG_VERSION"));
            Ok(Behaviour {
                streams: libp2p_stream::Behaviour::new(),
                identify: identify::Behaviour::new(
                    // Without its cache nobody is dialled at an address that a connection told of: opening a stream over one that is just
                    // gone would else dial by itself, around the configured address and whatever stands there.
                    identify::Config::new("/enroute/1".into(), keypair.public())
                        .with_agent_version(software)
                        .with_cache_size(0),
                ),
                ping: ping::Behaviour::new(ping::Config::new()),
                limits: connection_limits::Behaviour::new(limits),
                #[cfg(feature = "mdns")]
                mdns: libp2p::mdns::tokio::Behaviour::new(
                    libp2p::mdns::Config::default(),
                    keypair.public().to_peer_id(),
                )?,
            })
        })
        .map_err(|e| failed(&e))?;
    let builder = builder.with_swarm_config(|config| config.with_idle_connection_timeout(IDLE));
    Ok(builder.with_connection_timeout(CONNECT).build())
}
