//! Noise as libp2p has it, over a stream that is written and read in large pieces.

use crate::Gathering;
use futures::io::{AsyncRead, AsyncWrite};
use libp2p::core::UpgradeInfo;
use libp2p::core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade};
use libp2p::identity::Keypair;
use libp2p::{PeerId, noise};

/// [`noise::Config`], for [`with_tcp`](libp2p::SwarmBuilder::with_tcp), over a stream that is written and read in large pieces.
#[derive(Clone)]
pub struct Noise(noise::Config);

impl Noise {
    /// For whoever has this key.
    ///
    /// # Errors
    /// As [`noise::Config::new`].
    pub fn new(keypair: &Keypair) -> Result<Noise, noise::Error> {
        Ok(Noise(noise::Config::new(keypair)?))
    }
}

impl UpgradeInfo for Noise {
    type Info = <noise::Config as UpgradeInfo>::Info;
    type InfoIter = <noise::Config as UpgradeInfo>::InfoIter;

    fn protocol_info(&self) -> Self::InfoIter {
        self.0.protocol_info()
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> InboundConnectionUpgrade<S> for Noise {
    type Output = (PeerId, noise::Output<Gathering<S>>);
    type Error = noise::Error;
    type Future = <noise::Config as InboundConnectionUpgrade<Gathering<S>>>::Future;

    fn upgrade_inbound(self, stream: S, info: Self::Info) -> Self::Future {
        self.0.upgrade_inbound(Gathering::new(stream), info)
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> OutboundConnectionUpgrade<S> for Noise {
    type Output = (PeerId, noise::Output<Gathering<S>>);
    type Error = noise::Error;
    type Future = <noise::Config as OutboundConnectionUpgrade<Gathering<S>>>::Future;

    fn upgrade_outbound(self, stream: S, info: Self::Info) -> Self::Future {
        self.0.upgrade_outbound(Gathering::new(stream), info)
    }
}
