//! libp2p's TLS 1.3 with AES-GCM where the processor has instructions for it.
//!
//! Others understand it: <https://github.com/libp2p/specs/blob/master/tls/tls.md>. libp2p's own
//! [`tls::Config`](libp2p::tls::Config) always asks for ChaCha20-Poly1305 first, which takes five times as long there. What is
//! said about certificates is libp2p's.

#[cfg(test)]
mod hostile;
mod stream;
#[cfg(test)]
mod tests;

use futures::future::{BoxFuture, FutureExt};
use futures::io::{AsyncRead, AsyncWrite};
use libp2p::PeerId;
use libp2p::core::UpgradeInfo;
use libp2p::core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade};
use libp2p::identity::Keypair;
use libp2p::tls::certificate;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::cipher_suite::{
    TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};
use rustls::crypto::aws_lc_rs::{default_provider, sign::any_ecdsa_type};
use rustls::pki_types::{CertificateDer, IpAddr, Ipv4Addr, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, UnbufferedServerConnection};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, ClientConfig, CommonState, DigitallySignedStruct, DistinguishedName, OtherError, ServerConfig,
    SignatureScheme, SupportedCipherSuite,
};
use std::io;
use std::iter::{Once, once};
use std::sync::Arc;
use stream::Session;
pub(crate) use stream::Stream;

/// What libp2p calls it.
pub(crate) const NAME: &str = "/tls/1.0.0";
/// What is agreed on with the handshake.
const APPLICATION: &[u8] = b"libp2p";

/// Why a connection is not encrypted.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// There is no certificate for the own key.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] certificate::GenError),
    /// rustls does not take what it is given.
    #[error("cannot set up TLS: {0}")]
    Setup(#[from] rustls::Error),
    /// The handshake has failed.
    #[error("no TLS: {0}")]
    Handshake(#[from] io::Error),
    /// The peer has not said who it is.
    #[error("the peer's certificate: {0}")]
    Peer(#[from] certificate::ParseError),
}

/// Whether the processor has instructions for AES and for what GCM multiplies.
pub(crate) fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

/// An upgrade of a connection to TLS 1.3.
#[derive(Clone)]
pub(crate) struct Config {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Config {
    /// For whoever has this key, as on a processor that encrypts AES by itself, or one that does not.
    ///
    /// Of two such processors the client's first wish holds. One that does not gets what it is good at, on either side.
    pub(crate) fn new(keypair: &Keypair, has_aes: bool) -> Result<Config, TlsError> {
        let suites = if has_aes {
            [TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256]
        } else {
            [TLS13_CHACHA20_POLY1305_SHA256, TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384]
        };
        let (certificate, key) = certificate::generate(keypair)?;
        let certified = CertifiedKey::new(vec![certificate], any_ecdsa_type(&key)?);
        Config::with(&suites, !has_aes, certified)
    }

    /// With these suites in this order, which as a server it may insist on.
    fn with(suites: &[SupportedCipherSuite], insists: bool, certified: CertifiedKey) -> Result<Config, TlsError> {
        let provider = Arc::new(CryptoProvider { cipher_suites: suites.to_vec(), ..default_provider() });
        let certified = Arc::new(SingleCertAndKey::from(certified));
        let versions = &[&rustls::version::TLS13];

        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier))
            .with_client_cert_resolver(Arc::clone(&certified) as _);
        client.alpn_protocols = vec![APPLICATION.to_vec()];
        client.enable_sni = false;
        // Each side says anew who it is.
        client.resumption = Resumption::disabled();

        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)?
            .with_client_cert_verifier(Arc::new(Verifier))
            .with_cert_resolver(certified);
        server.alpn_protocols = vec![APPLICATION.to_vec()];
        server.ignore_client_order = insists;
        server.send_tls13_tickets = 0;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Config { client: Arc::new(client), server: Arc::new(server) })
    }
}

impl UpgradeInfo for Config {
    type Info = &'static str;
    type InfoIter = Once<Self::Info>;

    fn protocol_info(&self) -> Self::InfoIter {
        once(NAME)
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> InboundConnectionUpgrade<S> for Config {
    type Output = (PeerId, Stream<S>);
    type Error = TlsError;
    type Future = BoxFuture<'static, Result<Self::Output, TlsError>>;

    fn upgrade_inbound(self, stream: S, _: Self::Info) -> Self::Future {
        async move {
            let session = Session::Server(UnbufferedServerConnection::new(self.server)?);
            let stream = Stream::open(stream, session).await?;
            Ok((peer_of(stream.state())?, stream))
        }
        .boxed()
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> OutboundConnectionUpgrade<S> for Config {
    type Output = (PeerId, Stream<S>);
    type Error = TlsError;
    type Future = BoxFuture<'static, Result<Self::Output, TlsError>>;

    fn upgrade_outbound(self, stream: S, _: Self::Info) -> Self::Future {
        async move {
            // One that is not sent: the peer has no name but its key.
            let name = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([0; 4])));
            let session = Session::Client(UnbufferedClientConnection::new(self.client, name)?);
            let stream = Stream::open(stream, session).await?;
            Ok((peer_of(stream.state())?, stream))
        }
        .boxed()
    }
}

/// Who the other side is, after the handshake.
fn peer_of(state: &CommonState) -> Result<PeerId, TlsError> {
    match state.peer_certificates() {
        Some([certificate]) => Ok(certificate::parse(certificate)?.peer_id()),
        _ => Err(rustls::Error::NoCertificatesPresented.into()),
    }
}

/// What the verifiers of either side have to the letter.
macro_rules! verify_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            Err(rustls::Error::General("only TLS 1.3 is spoken".into()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            let certificate = certificate::parse(certificate).map_err(refused)?;
            certificate.verify_signature(signed.scheme, message, signed.signature()).map_err(refused)?;
            Ok(HandshakeSignatureValid::assertion())
        }

        /// As libp2p's own verifier has it.
        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![
                SignatureScheme::ECDSA_NISTP384_SHA384,
                SignatureScheme::ECDSA_NISTP256_SHA256,
                SignatureScheme::ED25519,
                SignatureScheme::RSA_PSS_SHA512,
                SignatureScheme::RSA_PSS_SHA384,
                SignatureScheme::RSA_PSS_SHA256,
                SignatureScheme::RSA_PKCS1_SHA512,
                SignatureScheme::RSA_PKCS1_SHA384,
                SignatureScheme::RSA_PKCS1_SHA256,
            ]
        }
    };
}

/// Takes exactly one certificate, signed by itself, in which the key of a peer vouches for the certificate's.
#[derive(Debug)]
struct Verifier;

impl Verifier {
    fn certificate(certificate: &CertificateDer<'_>, more: &[CertificateDer<'_>]) -> Result<(), rustls::Error> {
        if !more.is_empty() {
            return Err(rustls::Error::General("more than one certificate".into()));
        }
        certificate::parse(certificate).map(drop).map_err(refused)
    }
}

fn refused(error: impl std::error::Error + Send + Sync + 'static) -> rustls::Error {
    rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(error))))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        more: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Verifier::certificate(certificate, more).map(|()| ServerCertVerified::assertion())
    }

    verify_signatures!();
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        more: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Verifier::certificate(certificate, more).map(|()| ClientCertVerified::assertion())
    }

    verify_signatures!();
}
