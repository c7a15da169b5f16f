use super::*;
use crate::Multiplexer;
use futures::StreamExt;
use futures::future::{Either, select};
use libp2p::multiaddr::Protocol;
use libp2p::swarm::{DialError, SwarmEvent, dummy};
use libp2p::{Multiaddr, Swarm, SwarmBuilder, tcp};
use std::pin::pin;
use std::sync::{Arc, Mutex};

/// Notes what an upgrade has agreed on.
#[derive(Clone)]
struct Noting<U> {
    upgrade: U,
    agreed: Arc<Mutex<Vec<&'static str>>>,
}

impl<U: UpgradeInfo<Info = &'static str>> UpgradeInfo for Noting<U> {
    type Info = &'static str;
    type InfoIter = U::InfoIter;

    fn protocol_info(&self) -> Self::InfoIter {
        self.upgrade.protocol_info()
    }
}

impl<S, U: InboundConnectionUpgrade<S> + UpgradeInfo<Info = &'static str>> InboundConnectionUpgrade<S> for Noting<U> {
    type Output = U::Output;
    type Error = U::Error;
    type Future = U::Future;

    fn upgrade_inbound(self, stream: S, name: &'static str) -> Self::Future {
        self.agreed.lock().unwrap().push(name);
        self.upgrade.upgrade_inbound(stream, name)
    }
}

impl<S, U: OutboundConnectionUpgrade<S> + UpgradeInfo<Info = &'static str>> OutboundConnectionUpgrade<S> for Noting<U> {
    type Output = U::Output;
    type Error = U::Error;
    type Future = U::Future;

    fn upgrade_outbound(self, stream: S, name: &'static str) -> Self::Future {
        self.agreed.lock().unwrap().push(name);
        self.upgrade.upgrade_outbound(stream, name)
    }
}

/// Somebody who has an upgrade, and what it has agreed on with others.
struct Side {
    swarm: Swarm<dummy::Behaviour>,
    agreed: Arc<Mutex<Vec<&'static str>>>,
}

macro_rules! side {
    ($upgrade:expr) => {{
        let agreed = Arc::default();
        let noted = Arc::clone(&agreed);
        let swarm = SwarmBuilder::with_new_identity()
            .with_tokio()
            .with_tcp(
                tcp::Config::new(),
                |key: &Keypair| $upgrade(key).map(|upgrade| Noting { upgrade, agreed: noted }),
                Multiplexer::new,
            )
            .unwrap()
            .with_behaviour(|_| dummy::Behaviour)
            .unwrap()
            .build();
        Side { swarm, agreed }
    }};
}

fn with_aes() -> Side {
    side!(|key| Security::with_aes(key, true))
}

fn without_aes() -> Side {
    side!(|key| Security::with_aes(key, false))
}

fn with_noise_alone() -> Side {
    side!(Noise::new)
}

async fn listen(side: &mut Side) -> Multiaddr {
    side.swarm.listen_on("/ip4/127.0.0.1/tcp/0".parse().unwrap()).unwrap();
    loop {
        if let SwarmEvent::NewListenAddr { address, .. } = side.swarm.select_next_some().await {
            return address;
        }
    }
}

/// Dials, and gives what has become of it.
async fn dial(dialler: &mut Side, listener: &mut Side, peer: PeerId) -> Result<PeerId, DialError> {
    let address = listen(listener).await.with(Protocol::P2p(peer));
    dialler.swarm.dial(address).unwrap();
    let dialled = pin!(async {
        loop {
            match dialler.swarm.select_next_some().await {
                SwarmEvent::ConnectionEstablished { peer_id, .. } => return Ok(peer_id),
                SwarmEvent::OutgoingConnectionError { error, .. } => return Err(error),
                _ => {}
            }
        }
    });
    let listened = pin!(async { while listener.swarm.next().await.is_some() {} });
    match select(dialled, listened).await {
        Either::Left((dialled, _)) => dialled,
        Either::Right(_) => panic!("a swarm does not end"),
    }
}

#[tokio::test]
async fn tls_is_spoken_where_both_can_and_noise_otherwise() {
    for (mut dialler, mut listener, name) in [
        (with_aes(), with_aes(), tls::NAME),
        (with_aes(), without_aes(), tls::NAME),
        (without_aes(), with_aes(), NOISE),
        (without_aes(), without_aes(), NOISE),
        (with_aes(), with_noise_alone(), NOISE),
        (without_aes(), with_noise_alone(), NOISE),
        (with_noise_alone(), with_aes(), NOISE),
        (with_noise_alone(), without_aes(), NOISE),
    ] {
        let peer = *listener.swarm.local_peer_id();
        assert_eq!(dial(&mut dialler, &mut listener, peer).await.unwrap(), peer);
        for side in [dialler, listener] {
            assert_eq!(*side.agreed.lock().unwrap(), [name]);
        }
    }
}

#[tokio::test]
async fn whoever_answers_with_another_key_is_refused() {
    let wanted = Keypair::generate_ed25519().public().to_peer_id();
    for mut dialler in [with_aes(), without_aes()] {
        let mut listener = with_aes();
        let error = dial(&mut dialler, &mut listener, wanted).await.unwrap_err();
        assert!(
            matches!(error, DialError::WrongPeerId { obtained, .. } if obtained == *listener.swarm.local_peer_id())
        );
    }
}
