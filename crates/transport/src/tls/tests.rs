use super::stream::ROOM;
use super::*;
use crate::gathering::MUCH;
use futures::future::{join, poll_fn};
use futures::{AsyncReadExt, AsyncWriteExt};
use libp2p::tls as theirs;
use rustls::{CipherSuite, CipherSuiteCommon, Tls13CipherSuite};
use std::pin::Pin;
use std::task::Poll;
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};

type Pipe = Compat<tokio::io::DuplexStream>;
type Opened = Result<(PeerId, Stream<Pipe>), TlsError>;

fn pipe() -> (Pipe, Pipe) {
    let (near, far) = tokio::io::duplex(100_000);
    (near.compat(), far.compat())
}

fn keypair() -> Keypair {
    Keypair::generate_ed25519()
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index / 7 + index % 251) as u8).collect()
}

/// A client and a server, or why there are none.
async fn open(client: Config, server: Config) -> (Opened, Opened) {
    let (near, far) = pipe();
    join(client.upgrade_outbound(near, NAME), server.upgrade_inbound(far, NAME)).await
}

async fn opened(client: Config, server: Config) -> (Stream<Pipe>, Stream<Pipe>) {
    let (client, server) = open(client, server).await;
    (client.unwrap().1, server.unwrap().1)
}

/// Writes in pieces of many sizes and a flush now and then, and reads the same from the other side, in both directions.
async fn exchange<A: AsyncRead + AsyncWrite + Unpin, B: AsyncRead + AsyncWrite + Unpin>(near: A, far: B) {
    async fn write(mut to: impl AsyncWrite + Unpin, mut bytes: &[u8]) {
        for size in [1, 12, 64_499, 16_384, 16_383, 40, 5_000, 200_000].into_iter().cycle() {
            let (piece, rest) = bytes.split_at(size.min(bytes.len()));
            to.write_all(piece).await.unwrap();
            if size != 12 {
                to.flush().await.unwrap();
            }
            bytes = rest;
            if rest.is_empty() {
                return to.flush().await.unwrap();
            }
        }
    }
    async fn read(mut from: impl AsyncRead + Unpin, sent: &[u8]) {
        let mut all = Vec::new();
        for size in [12, 64_499, 1, 300, 100_000].into_iter().cycle() {
            let mut bytes = vec![0; size.min(sent.len() - all.len())];
            from.read_exact(&mut bytes).await.unwrap();
            all.extend(bytes);
            if all.len() == sent.len() {
                assert!(all == sent);
                return;
            }
        }
    }
    let sent = pattern(1_000_003);
    let ((from_near, to_far), (from_far, to_near)) = (near.split(), far.split());
    join(join(write(to_far, &sent), read(from_far, &sent)), join(write(to_near, &sent), read(from_near, &sent))).await;
}

#[tokio::test]
async fn what_is_written_comes_in_order_and_from_whom_it_is() {
    let keys = [keypair(), keypair()];
    let (client, server) = open(Config::new(&keys[0], true).unwrap(), Config::new(&keys[1], true).unwrap()).await;
    let ((of_server, client), (of_client, server)) = (client.unwrap(), server.unwrap());
    assert_eq!((of_client, of_server), (keys[0].public().to_peer_id(), keys[1].public().to_peer_id()));
    exchange(client, server).await;
}

#[tokio::test]
async fn libp2p_s_own_tls_understands_it() {
    let keys = [keypair(), keypair()];
    let [ours, other] = keys.each_ref().map(|key| key.public().to_peer_id());
    let config = Config::new(&keys[0], true).unwrap();
    let other_config = theirs::Config::new(&keys[1]).unwrap();

    let (near, far) = pipe();
    let both = join(config.clone().upgrade_outbound(near, NAME), other_config.clone().upgrade_inbound(far, NAME));
    let (client, server) = both.await;
    let ((of_server, client), (of_client, server)) = (client.unwrap(), server.unwrap());
    assert_eq!((of_client, of_server), (ours, other));
    exchange(client, server).await;

    let (near, far) = pipe();
    let both = join(other_config.upgrade_outbound(near, NAME), config.upgrade_inbound(far, NAME));
    let (client, server) = both.await;
    let ((of_server, client), (of_client, server)) = (client.unwrap(), server.unwrap());
    assert_eq!((of_client, of_server), (other, ours));
    exchange(client, server).await;
}

#[tokio::test]
async fn a_processor_without_instructions_for_aes_need_not_encrypt_it() {
    for (client, server, suite) in [
        (true, true, CipherSuite::TLS13_AES_128_GCM_SHA256),
        (true, false, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
        (false, true, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
        (false, false, CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    ] {
        let config = |has_aes| Config::new(&keypair(), has_aes).unwrap();
        let (client, server) = opened(config(client), config(server)).await;
        assert_eq!(client.state().negotiated_cipher_suite().unwrap().suite(), suite);
        exchange(client, server).await;
    }
}

#[tokio::test]
async fn keys_change_while_much_goes_both_ways() {
    // As many records as a key may encrypt: 2^24 in earnest.
    let usual = TLS13_AES_128_GCM_SHA256.tls13().unwrap();
    let common = CipherSuiteCommon { confidentiality_limit: 10, ..usual.common };
    let suite = Tls13CipherSuite { common, ..*usual };
    let suite = SupportedCipherSuite::Tls13(Box::leak(Box::new(suite)));
    let config = || {
        let (certificate, key) = certificate::generate(&keypair()).unwrap();
        let certified = CertifiedKey::new(vec![certificate], any_ecdsa_type(&key).unwrap());
        Config::with(&[suite], false, certified).unwrap()
    };
    let (client, server) = opened(config(), config()).await;
    exchange(client, server).await;
}

/// The end of what comes, as an error if it is not the end that was meant.
async fn ends(mut stream: Stream<Pipe>) -> io::Result<usize> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await
}

#[tokio::test]
async fn an_end_that_was_meant_is_not_one_that_was_cut_off() {
    let (mut client, server) =
        opened(Config::new(&keypair(), true).unwrap(), Config::new(&keypair(), true).unwrap()).await;
    client.write_all(&pattern(100)).await.unwrap();
    client.close().await.unwrap();
    assert_eq!(ends(server).await.unwrap(), 100);

    let (mut client, server) =
        opened(Config::new(&keypair(), true).unwrap(), Config::new(&keypair(), true).unwrap()).await;
    client.write_all(&pattern(100)).await.unwrap();
    client.flush().await.unwrap();
    drop(client);
    assert_eq!(ends(server).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn who_ends_may_still_be_written_to() {
    let (mut client, mut server) =
        opened(Config::new(&keypair(), true).unwrap(), Config::new(&keypair(), true).unwrap()).await;
    let closed = async {
        client.close().await.unwrap();
        // The pipe has gone the other way, too; what was under way has come.
        let mut bytes = [0; 3];
        client.read_exact(&mut bytes).await.unwrap();
        bytes
    };
    let answered = async {
        server.write_all(b"end").await.unwrap();
        server.flush().await.unwrap();
        let mut bytes = [0];
        assert_eq!(server.read(&mut bytes).await.unwrap(), 0);
        server.close().await.unwrap();
        assert_eq!(server.read(&mut bytes).await.unwrap(), 0);
        assert!(server.write_all(b"more").await.is_err());
    };
    assert_eq!(join(closed, answered).await.0, *b"end");
}

fn config_with(certificates: Vec<CertificateDer<'static>>, key: &rustls::pki_types::PrivateKeyDer<'_>) -> Config {
    let certified = CertifiedKey::new(certificates, any_ecdsa_type(key).unwrap());
    Config::with(&[TLS13_AES_128_GCM_SHA256], false, certified).unwrap()
}

/// Certificates of which none is good, with the key that they are used with.
fn bad_configs() -> Vec<(&'static str, Config)> {
    let (good, key) = certificate::generate(&keypair()).unwrap();
    let (other, _) = certificate::generate(&keypair()).unwrap();
    let spoilt = |at: usize| {
        let mut bytes = good.to_vec();
        bytes[at] ^= 1;
        vec![CertificateDer::from(bytes)]
    };
    // The last bytes are the certificate's signature of itself; those of its own key stand in the middle.
    let last = good.len() - 1;
    vec![
        ("of another key", config_with(vec![other.clone()], &key)),
        ("two of them", config_with(vec![good.clone(), other], &key)),
        ("none", config_with(vec![], &key)),
        ("no certificate", config_with(vec![CertificateDer::from(pattern(300))], &key)),
        ("a spoilt signature", config_with(spoilt(last), &key)),
        ("a spoilt middle", config_with(spoilt(last / 2), &key)),
    ]
}

/// Whether a side refuses; that of a client shows after its handshake, when it reads.
async fn refuses(side: Opened) -> String {
    match side {
        Err(error) => error.to_string(),
        Ok((_, mut stream)) => stream.read(&mut [0; 9]).await.expect_err("nothing comes").to_string(),
    }
}

#[tokio::test]
async fn a_bad_certificate_is_refused_and_both_sides_learn_why() {
    let good = Config::new(&keypair(), true).unwrap();
    for (what, bad) in bad_configs() {
        let mut pairs = vec![(bad.clone(), good.clone())];
        // rustls makes no server without one.
        if what != "none" {
            pairs.push((good.clone(), bad));
        }
        for (client, server) in pairs {
            let (client, server) = open(client, server).await;
            let refused = [refuses(server).await, refuses(client).await];
            for text in refused {
                let clear = ["ertificate", "alert", "BadSignature", "signature", "peer"];
                assert!(clear.iter().any(|word| text.contains(word)), "{what}: {text}");
            }
        }
    }
}

/// Comes to no end, and counts what is taken of it.
struct Endless {
    bytes: Vec<u8>,
    taken: usize,
}

impl AsyncRead for Endless {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut std::task::Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        for byte in &mut *into {
            *byte = self.bytes[self.taken % self.bytes.len()];
            self.taken += 1;
        }
        Poll::Ready(Ok(into.len()))
    }
}

impl AsyncWrite for Endless {
    fn poll_write(self: Pin<&mut Self>, _: &mut std::task::Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut std::task::Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut std::task::Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn rubbish_instead_of_a_handshake_is_refused_soon() {
    let record = |kind: u8, content: &[u8]| {
        let mut bytes = vec![kind, 3, 3];
        bytes.extend((content.len() as u16).to_be_bytes());
        bytes.extend(content);
        bytes
    };
    // A handshake message that is said to have 16 MB, and goes on and on.
    let mut long = vec![1, 0xff, 0xff, 0xff];
    long.extend(pattern(16_000));
    let rubbish = [
        ("zeros", vec![0]),
        ("text", b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n".to_vec()),
        ("noise", pattern(5_000)),
        ("empty handshakes", record(22, &[])),
        ("a long handshake", record(22, &long)),
        ("changes of cipher", record(20, &[1])),
        ("warnings", record(21, &[1, 90])),
        ("data", record(23, &pattern(500))),
    ];
    for (what, bytes) in rubbish {
        let config = Config::new(&keypair(), true).unwrap();
        let name = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([0; 4])));
        let sessions = [
            Session::Server(UnbufferedServerConnection::new(config.server).unwrap()),
            Session::Client(UnbufferedClientConnection::new(config.client, name).unwrap()),
        ];
        for session in sessions {
            let mut endless = Endless { bytes: bytes.clone(), taken: 0 };
            let error = Stream::open(&mut endless, session).await.err().expect("no handshake");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{what}: {error}");
            assert!(endless.taken <= 2 * ROOM, "{what}: {} bytes", endless.taken);
        }
    }
}

#[tokio::test]
async fn rubbish_after_the_handshake_is_refused() {
    let (near, far) = pipe();
    let config = Config::new(&keypair(), true).unwrap();
    let both = join(config.clone().upgrade_outbound(near, NAME), config.upgrade_inbound(far, NAME));
    let (Ok((_, client)), Ok((_, mut server))) = both.await else { panic!("a handshake") };
    let mut socket = client.into_socket();
    socket.write_all(&pattern(500)).await.unwrap();
    let error = server.read(&mut [0; 9]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    // It stays so.
    assert!(server.read(&mut [0; 9]).await.is_err());
    assert!(server.write_all(&[0; 9]).await.is_err() || server.flush().await.is_err());
}

#[tokio::test]
async fn what_is_not_taken_is_bounded_and_an_idle_stream_holds_nothing() {
    let (mut client, mut server) =
        opened(Config::new(&keypair(), true).unwrap(), Config::new(&keypair(), true).unwrap()).await;
    let mut written = 0;
    // Nobody reads: it writes until it has to wait.
    poll_fn(|context| {
        loop {
            match Pin::new(&mut client).poll_write(context, &[7; 50_000]) {
                Poll::Ready(count) => written += count.unwrap(),
                Poll::Pending => return Poll::Ready(()),
            }
            assert!(client.held() <= 2 * MUCH + ROOM, "{}", client.held());
        }
    })
    .await;
    assert!(written > 100_000, "{written}");
    // It is all there, and what the reader holds is bounded, too.
    let read = async {
        let mut count = 0;
        while count < written {
            let more = server.read(&mut [0; 1_000]).await.unwrap();
            assert!(server.held() <= 2 * ROOM, "{}", server.held());
            count += more;
        }
    };
    join(read, async { client.flush().await.unwrap() }).await;
    // With a little both ways nothing is held any more.
    for _ in 0..2 {
        client.write_all(b"ping").await.unwrap();
        client.flush().await.unwrap();
        server.read_exact(&mut [0; 4]).await.unwrap();
        server.write_all(b"pong").await.unwrap();
        server.flush().await.unwrap();
        client.read_exact(&mut [0; 4]).await.unwrap();
    }
    assert_eq!((client.held(), server.held()), (0, 0));
}
