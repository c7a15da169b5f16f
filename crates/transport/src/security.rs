//! What connections are encrypted with: TLS 1.3 or noise.

#[cfg(test)]
mod tests;

use crate::{Gathering, Noise, tls};
use futures::future::{BoxFuture, Either, FutureExt};
use futures::io::{AsyncRead, AsyncWrite};
use libp2p::core::UpgradeInfo;
use libp2p::core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade};
use libp2p::identity::Keypair;
use libp2p::{PeerId, noise};

/// What libp2p calls noise.
const NOISE: &str = "/noise";

/// TLS 1.3 and noise, for [`with_tcp`](libp2p::SwarmBuilder::with_tcp).
///
/// Both are understood. Whoever dials proposes TLS first if the processor encrypts AES by itself, and noise first if not:
/// ChaCha20-Poly1305, which noise has, is the faster one then.
#[derive(Clone)]
pub struct Security {
    tls: tls::Config,
    noise: Noise,
    is_tls_first: bool,
}

/// Why a connection is not encrypted.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum SecurityError {
    /// With TLS.
    Tls(#[from] tls::TlsError),
    /// With noise.
    Noise(#[from] noise::Error),
}

impl Security {
    /// For whoever has this key.
    ///
    /// # Errors
    /// If the key cannot sign.
    pub fn new(keypair: &Keypair) -> Result<Security, SecurityError> {
        Security::with_aes(keypair, tls::has_aes())
    }

    /// As on a processor that encrypts AES by itself, or one that does not.
    pub(crate) fn with_aes(keypair: &Keypair, has_aes: bool) -> Result<Security, SecurityError> {
        let tls = tls::Config::new(keypair, has_aes)?;
        Ok(Security { tls, noise: Noise::new(keypair)?, is_tls_first: has_aes })
    }
}

impl UpgradeInfo for Security {
    type Info = &'static str;
    type InfoIter = std::array::IntoIter<&'static str, 2>;

    fn protocol_info(&self) -> Self::InfoIter {
        let names = if self.is_tls_first { [tls::NAME, NOISE] } else { [NOISE, tls::NAME] };
        names.into_iter()
    }
}

type Secured<S> = Either<tls::Stream<S>, noise::Output<Gathering<S>>>;

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> InboundConnectionUpgrade<S> for Security {
    type Output = (PeerId, Secured<S>);
    type Error = SecurityError;
    type Future = BoxFuture<'static, Result<Self::Output, SecurityError>>;

    fn upgrade_inbound(self, stream: S, name: &'static str) -> Self::Future {
        async move {
            if name == tls::NAME {
                let (peer, stream) = self.tls.upgrade_inbound(stream, name).await?;
                return Ok((peer, Either::Left(stream)));
            }
            let (peer, stream) = self.noise.upgrade_inbound(stream, name).await?;
            Ok((peer, Either::Right(stream)))
        }
        .boxed()
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> OutboundConnectionUpgrade<S> for Security {
    type Output = (PeerId, Secured<S>);
    type Error = SecurityError;
    type Future = BoxFuture<'static, Result<Self::Output, SecurityError>>;

    fn upgrade_outbound(self, stream: S, name: &'static str) -> Self::Future {
        async move {
            if name == tls::NAME {
                let (peer, stream) = self.tls.upgrade_outbound(stream, name).await?;
                return Ok((peer, Either::Left(stream)));
            }
            let (peer, stream) = self.noise.upgrade_outbound(stream, name).await?;
            Ok((peer, Either::Right(stream)))
        }
        .boxed()
    }
}
