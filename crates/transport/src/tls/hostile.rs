//! TLS over a socket that gives and takes as it likes, with a peer that is plain rustls, or one that means no good.

mod socket;

use super::stream::ROOM;
use super::*;
use crate::gathering::MUCH;
use proptest::collection::vec;
use proptest::prelude::*;
use rustls::crypto::cipher::{MessageEncrypter, OutboundPlainMessage};
use rustls::{ClientConnection, Connection, ConnectionTrafficSecrets, ContentType, ProtocolVersion, ServerConnection};
use socket::Socket;
use std::io::{Read, Write};
use std::pin::Pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// What a stream may hold, whatever comes and is not taken.
const MOST_HELD: usize = 2 * MUCH + 2 * ROOM;

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Certificates take time to make.
static CONFIGS: LazyLock<[Config; 2]> =
    LazyLock::new(|| [0, 1].map(|_| Config::new(&Keypair::generate_ed25519(), true).unwrap()));

fn session(is_client: bool) -> Session {
    let config = CONFIGS[0].clone();
    if is_client {
        let name = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([0; 4])));
        Session::Client(UnbufferedClientConnection::new(config.client, name).unwrap())
    } else {
        Session::Server(UnbufferedServerConnection::new(config.server).unwrap())
    }
}

/// The other side of it, from which secrets can be had.
fn peer(is_client: bool) -> Connection {
    let Config { client, server } = CONFIGS[1].clone();
    let mut peer: Connection = if is_client {
        let name = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([0; 4])));
        let mut config = (*client).clone();
        config.enable_secret_extraction = true;
        ClientConnection::new(config.into(), name).unwrap().into()
    } else {
        let mut config = (*server).clone();
        config.enable_secret_extraction = true;
        ServerConnection::new(config.into()).unwrap().into()
    };
    peer.set_buffer_limit(None);
    peer
}

/// What one side says: no piece of it is like another.
fn words(side: u8, from: usize, length: usize) -> Vec<u8> {
    (from..from + length).map(|index| (index / 251 * 7 + index) as u8 ^ side).collect()
}

/// A stream, and a peer at the other end of its socket.
struct Pair {
    stream: Stream<Socket>,
    socket: Socket,
    peer: Connection,
    /// What the peer has had, and what it and the stream have said.
    peer_got: usize,
    peer_said: usize,
    said: usize,
    got: usize,
    woken: Arc<Woken>,
    key_updates: usize,
}

/// Lets the peer read so many bytes, and write all it has; gives the words that have come.
fn pump(socket: &Socket, peer: &mut Connection, limit: usize) -> Result<Vec<u8>, rustls::Error> {
    let mut inner = socket.inner();
    let count = limit.min(inner.outgoing.len());
    let bytes: Vec<u8> = inner.outgoing.drain(..count).collect();
    let (mut bytes, mut words, mut result) = (&bytes[..], Vec::new(), Ok(()));
    while !bytes.is_empty() && result.is_ok() {
        peer.read_tls(&mut bytes).unwrap();
        result = peer.process_new_packets().map(|_| ());
        let _ = peer.reader().read_to_end(&mut words);
    }
    while peer.wants_write() {
        let mut out = Vec::new();
        peer.write_tls(&mut out).unwrap();
        inner.incoming.extend(out);
    }
    result.map(|()| words)
}

impl Pair {
    fn new(is_client: bool, piece: usize, random: u64) -> Pair {
        let (socket, mut peer) = (Socket::new(piece, random), peer(!is_client));
        let stream = opened(&socket, session(is_client), |_| drop(pump(&socket, &mut peer, usize::MAX).unwrap()));
        let stream = stream.expect("a handshake");
        pump(&socket, &mut peer, usize::MAX).unwrap();
        let woken = Arc::default();
        Pair { stream, socket, peer, peer_got: 0, peer_said: 0, said: 0, got: 0, woken, key_updates: 0 }
    }

    /// Polls, and checks that whoever is to wait will be woken, and else is not.
    fn poll<T>(
        &mut self,
        poll: impl FnOnce(Pin<&mut Stream<Socket>>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Option<T> {
        self.socket.inner().awaited = false;
        let before = self.woken.0.load(Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&self.woken));
        let polled = poll(Pin::new(&mut self.stream), &mut Context::from_waker(&waker));
        let is_woken = self.woken.0.load(Ordering::Relaxed) > before;
        assert!(self.stream.held() <= MOST_HELD, "{} bytes", self.stream.held());
        match polled {
            Poll::Ready(result) => Some(result.unwrap()),
            Poll::Pending => {
                assert!(is_woken || self.socket.inner().awaited, "nobody will wake it");
                None
            }
        }
    }

    fn write(&mut self, length: usize) {
        let bytes = words(0, self.said, length);
        let count = self.poll(|stream, context| stream.poll_write(context, &bytes)).unwrap_or(0);
        assert!(count <= length);
        self.said += count;
    }

    /// Flushes until that is done or the socket is waited for: it asks to be woken once at most, and then does it.
    fn flush(&mut self) -> bool {
        for _ in 0..2 {
            if self.poll(AsyncWrite::poll_flush).is_some() {
                return true;
            }
            if self.socket.inner().awaited {
                return false;
            }
        }
        panic!("it asks to be woken again and again");
    }

    fn read(&mut self, length: usize) -> Option<usize> {
        let mut bytes = vec![0; length];
        let count = self.poll(|stream, context| stream.poll_read(context, &mut bytes))?;
        assert!(bytes[..count] == words(0x55, self.got, count));
        self.got += count;
        Some(count)
    }

    fn peer_writes(&mut self, length: usize) {
        self.peer.writer().write_all(&words(0x55, self.peer_said, length)).unwrap();
        self.peer_said += length;
        self.peer_reads(0);
    }

    fn peer_reads(&mut self, limit: usize) {
        let came = pump(&self.socket, &mut self.peer, limit).unwrap();
        assert!(came == words(0, self.peer_got, came.len()));
        self.peer_got += came.len();
    }

    fn act(&mut self, action: u8, size: usize) {
        match action {
            0 | 1 => self.write(size),
            2 => self.write(size % 100),
            // All that was said before is there.
            3 if self.flush() => {
                self.peer_reads(usize::MAX);
                assert_eq!(self.peer_got, self.said);
            }
            3 => {}
            4 => drop(self.read(size)),
            5 => drop(self.read(size % 20)),
            6 => self.peer_writes(size),
            7 => self.peer_reads(size),
            8 => {
                let mut inner = self.socket.inner();
                inner.room = if inner.room > 1 << 40 { 0 } else { inner.room + size };
            }
            9 => self.socket.inner().room = usize::MAX,
            // rustls takes 32 of them without anything in between.
            _ if self.key_updates < 25 => {
                self.key_updates += 1;
                self.peer.refresh_traffic_keys().unwrap();
                self.peer_reads(0);
            }
            _ => {}
        }
    }

    /// All that was said arrives, and both learn that it is all.
    fn end(mut self, closes_first: bool) {
        self.socket.inner().room = usize::MAX;
        let mut is_closed = false;
        for round in 0.. {
            assert!(round < 1_000_000, "it comes to no end");
            if closes_first && !is_closed {
                is_closed = self.poll(AsyncWrite::poll_close).is_some();
                continue;
            }
            if !closes_first && self.got == self.peer_said && !is_closed {
                is_closed = true;
                self.peer.send_close_notify();
                self.peer_reads(0);
            }
            if self.got == self.peer_said && is_closed {
                break;
            }
            self.read(10_000);
        }
        if closes_first {
            self.peer.send_close_notify();
            self.peer_reads(usize::MAX);
        } else {
            while self.poll(AsyncWrite::poll_close).is_none() {}
            self.peer_reads(usize::MAX);
        }
        assert_eq!((self.peer_got, self.got), (self.said, self.peer_said));
        assert!(self.peer.process_new_packets().unwrap().peer_has_closed());
        let end = (0..1_000).find_map(|_| self.read(10));
        assert_eq!(end, Some(0));
        assert!(self.socket.inner().is_closed);
    }
}

/// Shakes hands; `between` does what else is to be done whenever that waits.
fn opened(socket: &Socket, session: Session, mut between: impl FnMut(usize)) -> io::Result<Stream<Socket>> {
    let mut opening = Box::pin(Stream::open(socket.clone(), session));
    let mut context = Context::from_waker(Waker::noop());
    for round in 0..1_000_000 {
        match opening.as_mut().poll(&mut context) {
            Poll::Ready(result) => return result,
            Poll::Pending => between(round),
        }
    }
    panic!("a handshake that does not end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_the_socket_does_all_arrives_and_nobody_waits_in_vain(
        is_client in any::<bool>(),
        closes_first in any::<bool>(),
        piece in prop_oneof![Just(1_usize), 2..40_usize, 40..3_000_usize, 3_000..100_000_usize, Just(usize::MAX)],
        random in any::<u64>(),
        actions in vec((0..11_u8, prop_oneof![0..60_usize, 0..5_000_usize, 16_300..16_450_usize, 0..150_000_usize]), 0..60),
    ) {
        // Little at a time takes many times.
        let most = piece.saturating_mul(2_000);
        let mut pair = Pair::new(is_client, piece, random);
        for (action, size) in actions {
            pair.act(action, size.min(most));
        }
        pair.end(closes_first);
    }
}

/// A handshake in which the peer's bytes are cut off, or one is spoilt, at a place; whether it came to an end that is good.
fn spoilt_handshake(is_client: bool, at: usize, flip: Option<u8>) -> Result<(), io::Error> {
    let (socket, mut peer) = (Socket::new(usize::MAX, 0), peer(!is_client));
    let (mut come, mut last) = (0, 0);
    let opened = opened(&socket, session(is_client), |round| {
        let _ = pump(&socket, &mut peer, usize::MAX);
        let mut inner = socket.inner();
        let from = come;
        come += inner.incoming.len();
        if (from..come).contains(&at) {
            match flip {
                Some(bits) => inner.incoming[at - from] ^= bits,
                None => {
                    inner.incoming.truncate(at - from);
                    inner.is_ended = true;
                }
            }
        }
        // Nothing more comes of either: it hangs up.
        if from != come {
            last = round;
        }
        inner.is_ended |= round > last + 3;
        assert!(round < 20, "bounded work");
    });
    opened.map(drop)
}

/// How many bytes the peer says in a handshake.
fn handshake_length(is_client: bool) -> usize {
    let (socket, mut peer) = (Socket::new(usize::MAX, 0), peer(!is_client));
    let mut length = 0;
    let stream = opened(&socket, session(is_client), |_| {
        drop(pump(&socket, &mut peer, usize::MAX));
        length += socket.inner().incoming.len();
    });
    assert!(stream.is_ok());
    length
}

#[test]
fn a_handshake_that_is_cut_off_anywhere_fails() {
    for is_client in [true, false] {
        for at in (0..handshake_length(is_client) - 1).step_by(5) {
            let error = spoilt_handshake(is_client, at, None).expect_err("it is cut off");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{at}: {error}");
        }
    }
}

#[test]
fn a_handshake_that_is_spoilt_anywhere_fails_or_does_not_matter() {
    for is_client in [true, false] {
        let length = handshake_length(is_client);
        let spoilt = (0..length).step_by(3).map(|at| spoilt_handshake(is_client, at, Some(1 << (at % 8))));
        let failed = spoilt.filter(Result::is_err).count();
        assert!(failed * 3 > length * 9 / 10, "{failed} of {}", length / 3);
    }
}

#[test]
fn what_comes_with_the_end_of_the_handshake_and_is_all_is_read() {
    let (socket, mut client) = (Socket::new(usize::MAX, 0), peer(true));
    // rustls sends it behind its last words of the handshake.
    client.writer().write_all(&words(0, 0, 100)).unwrap();
    let opened = opened(&socket, session(false), |_| {
        drop(pump(&socket, &mut client, usize::MAX).unwrap());
        if !client.is_handshaking() {
            client.send_close_notify();
            drop(pump(&socket, &mut client, usize::MAX).unwrap());
        }
    });
    let mut stream = opened.expect("a handshake");
    assert!(socket.inner().incoming.is_empty(), "all has come at once");
    let (mut context, mut bytes) = (Context::from_waker(Waker::noop()), [0; 200]);
    for said in [&words(0, 0, 100)[..], &[]] {
        let read = Pin::new(&mut stream).poll_read(&mut context, &mut bytes);
        assert!(matches!(read, Poll::Ready(Ok(count)) if bytes[..count] == *said), "{read:?}");
    }
}

/// A stream, and a peer that encrypts whatever it likes.
struct Liar {
    stream: Stream<Socket>,
    socket: Socket,
    encrypter: Box<dyn MessageEncrypter>,
    sequence: u64,
}

impl Liar {
    fn new(is_client: bool) -> Liar {
        let Pair { stream, socket, peer, .. } = Pair::new(is_client, usize::MAX, 0);
        let (sequence, secrets) = peer.dangerous_extract_secrets().unwrap().tx;
        let ConnectionTrafficSecrets::Aes128Gcm { key, iv } = secrets else { panic!("another suite") };
        let encrypter = TLS13_AES_128_GCM_SHA256.tls13().unwrap().aead_alg.encrypter(key, iv);
        Liar { stream, socket, encrypter, sequence }
    }

    fn say(&mut self, typ: ContentType, words: &[u8]) {
        let message = OutboundPlainMessage { typ, version: ProtocolVersion::TLSv1_2, payload: words.into() };
        let record = self.encrypter.encrypt(message, self.sequence).unwrap().encode();
        self.sequence += 1;
        self.say_plainly(&record);
    }

    fn say_plainly(&mut self, bytes: &[u8]) {
        self.socket.inner().incoming.extend(bytes);
    }

    /// Reads until nothing is here any more, in a bounded number of polls: the bytes that came, and how it ended if it did.
    fn read(&mut self) -> (usize, Option<io::Result<()>>) {
        let (mut count, mut bytes) = (0, vec![0; 10_000]);
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..10_000 {
            let read = Pin::new(&mut self.stream).poll_read(&mut context, &mut bytes);
            assert!(self.stream.held() <= MOST_HELD, "{} bytes", self.stream.held());
            match read {
                Poll::Pending => return (count, None),
                Poll::Ready(Ok(0)) => return (count, Some(Ok(()))),
                Poll::Ready(Ok(more)) => count += more,
                Poll::Ready(Err(error)) => return (count, Some(Err(error))),
            }
        }
        panic!("more comes than was sent");
    }

    /// All that is said is refused soon, once and for all; what came before is read.
    fn is_refused(&mut self, what: &str, before: usize) {
        let (count, end) = self.read();
        let error = end.expect(what).expect_err(what);
        assert_eq!((error.kind(), count), (io::ErrorKind::InvalidData, before), "{what}: {error}");
        let again = self.read();
        assert!(matches!(again, (0, Some(Err(_)))), "{what}: {error}, then {again:?}");
        let mut context = Context::from_waker(Waker::noop());
        let written = Pin::new(&mut self.stream).poll_write(&mut context, &[0; 20_000]);
        assert!(matches!(written, Poll::Ready(Err(_))), "{what}");
        while Pin::new(&mut self.stream).poll_close(&mut context).is_pending() {}
    }
}

const HANDSHAKE: ContentType = ContentType::Handshake;
const DATA: ContentType = ContentType::ApplicationData;
const ALERT: ContentType = ContentType::Alert;

#[test]
fn records_that_are_none_are_refused_and_what_came_before_is_read() {
    for is_client in [true, false] {
        let says = |what: &str, say: &dyn Fn(&mut Liar)| {
            let mut liar = Liar::new(is_client);
            liar.say(DATA, &[7; 123]);
            say(&mut liar);
            liar.is_refused(what, 123);
        };
        says("too much in a record", &|liar| liar.say(DATA, &[0; (1 << 14) + 1]));
        says("far too much in a record", &|liar| liar.say(DATA, &[0; 40_000]));
        says("a record that is said to be too long", &|liar| liar.say_plainly(&[23, 3, 3, 0x48, 1]));
        says("a record that is said to be as long as can be", &|liar| liar.say_plainly(&[23, 3, 3, 0xff, 0xff]));
        says("a record with nothing in it", &|liar| liar.say_plainly(&[23, 3, 3, 0, 0]));
        says("a record that nobody has encrypted", &|liar| {
            liar.say_plainly(&[[23, 3, 3, 0, 100], [0; 5]].concat().repeat(11))
        });
        says("data that is not encrypted", &|liar| liar.say_plainly(&[21, 3, 3, 0, 2, 2, 0]));
        says("an unknown kind", &|liar| liar.say(ContentType::Unknown(99), &[0; 9]));
        says("nothing, again and again", &|liar| (0..1_000).for_each(|_| liar.say(DATA, &[])));
        says("a hello request", &|liar| liar.say(HANDSHAKE, &[0, 0, 0, 0]));
        says("a client hello", &|liar| liar.say(HANDSHAKE, &[1, 0, 0, 1, 0]));
        says("a finished", &|liar| liar.say(HANDSHAKE, &[[20, 0, 0, 32].as_slice(), &[0; 32]].concat()));
        says("a key update that is none", &|liar| liar.say(HANDSHAKE, &[24, 0, 0, 1, 7]));
        says("an alert", &|liar| liar.say(ALERT, &[2, 80]));
        says("half an alert", &|liar| liar.say(ALERT, &[2]));
        says("warnings", &|liar| (0..50).for_each(|_| liar.say(ALERT, &[1, 90])));
        says("a message without an end", &|liar| {
            liar.say(HANDSHAKE, &[4, 0xff, 0xff, 0xff]);
            (0..100).for_each(|_| liar.say(HANDSHAKE, &[0; 1 << 14]));
        });
        says("a message without an end, in small pieces", &|liar| {
            liar.say(HANDSHAKE, &[4, 0, 0xff, 0xff]);
            (0..50_000).for_each(|_| liar.say(HANDSHAKE, &[0]));
        });
        if !is_client {
            says("a ticket", &|liar| liar.say(HANDSHAKE, &[4, 0, 0, 1, 0]));
        }
    }
}

#[test]
fn what_may_be_said_again_and_again_holds_nothing() {
    for is_client in [true, false] {
        let mut liar = Liar::new(is_client);
        for _ in 0..10_000 {
            liar.say(DATA, &[]);
            liar.say(DATA, &[7]);
        }
        let (count, end) = liar.read();
        assert!(count == 10_000 && end.is_none(), "{count}, {end:?}");
        // A bit of a record, for ever.
        liar.say_plainly(&[23, 3, 3, 0x40, 0]);
        for _ in 0..1_000 {
            liar.say_plainly(&[0]);
            assert!(matches!(liar.read(), (0, None)));
        }
        assert!(liar.stream.held() <= 2 * ROOM, "{}", liar.stream.held());
        // What comes after the end is not read.
        let mut liar = Liar::new(is_client);
        liar.say(ALERT, &[1, 0]);
        (0..100).for_each(|_| liar.say(DATA, &[0; 1_000]));
        assert!(matches!(liar.read(), (0, Some(Ok(())))) && matches!(liar.read(), (0, Some(Ok(())))));
    }
}

#[test]
fn a_peer_that_changes_its_keys_for_ever_makes_nothing_grow() {
    for is_client in [true, false] {
        let mut pair = Pair::new(is_client, usize::MAX, 0);
        for _ in 0..1_000 {
            pair.peer.refresh_traffic_keys().unwrap();
            pair.peer_writes(1);
            assert_eq!(pair.read(100), Some(1));
        }
        assert!(pair.stream.held() <= ROOM, "{}", pair.stream.held());
        pair.write(100);
        pair.end(true);
        let mut pair = Pair::new(is_client, usize::MAX, 0);
        for _ in 0..1_000 {
            pair.peer.refresh_traffic_keys().unwrap();
        }
        pair.peer_reads(0);
        let mut context = Context::from_waker(Waker::noop());
        let read = Pin::new(&mut pair.stream).poll_read(&mut context, &mut [0; 9]);
        assert!(matches!(read, Poll::Ready(Err(_))));
    }
}
