//! How a connection to another broker becomes a link: hellos before anything else.
//!
//! The broker that dialled opens the control stream and sends its hello; the other answers, or refuses and says why. Then the
//! dialling one opens the data stream and names the link on it; the other repeats that. Only when both streams are
//! acknowledged is there a link: an acceptor that is not polled in time loses streams without a word, and then nothing but the
//! missing answer tells.

use crate::context::Shared;
use crate::frames::{Frames, FramesError, write};
use bytes::BytesMut;
use enroute_broker::{BrokerId, Neighbour, Role};
use enroute_wire::{
    BROKER_PROTOCOL, BROKER_VERSIONS, ControlFrame, DataFrame, DataHello, EVENT_PROTOCOL, Hello, HelloAck,
    HelloRefused, RefusalCode, Traffic, WireError,
};
use libp2p::{PeerId, Stream, StreamProtocol};
use libp2p_stream::{Control, OpenStreamError};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt};

/// How long one step may take.
const STEP: Duration = Duration::from_secs(5);
/// Streams are opened again if they are lost unanswered, this often in all.
const TRIES: u32 = 9;
/// The longest wait before the second try; it doubles with each. Chance decides how much of it is waited, which spreads those
/// that have lost theirs to each other.
const RETRY: Duration = Duration::from_millis(10);
/// What a link costs until the way has been measured.
const COST: u32 = 1;

/// Frames over a whole stream.
pub(crate) type StreamFrames = Frames<Compat<Stream>>;

/// Both streams of a link, after the hellos.
pub(crate) struct Established {
    pub(crate) peer: PeerId,
    pub(crate) neighbour: Neighbour,
    pub(crate) software: String,
    pub(crate) dialled: bool,
    /// How long a hello took to be answered, the faster of the two, if this side has dialled.
    pub(crate) round_trip: Option<Duration>,
    pub(crate) control: StreamFrames,
    pub(crate) data: StreamFrames,
}

/// Why there is no link.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    /// The other side does not want this broker.
    #[error("refused by the other side: {0}")]
    RefusedUs(String),
    /// The other side has enough links, and this broker can do without one to it.
    #[error("refused by the other side: {0}")]
    Full(String),
    /// This side does not want the other.
    #[error("{}", .0.text)]
    RefusedThem(HelloRefused),
    /// The other side is no broker.
    #[error("whoever answers there is no broker: it does not speak {0}")]
    NoBroker(String),
    #[error("{0}")]
    Open(String),
    #[error("the other side broke the protocol: {0}")]
    Protocol(String),
    #[error("{0}")]
    Frames(#[from] FramesError),
    #[error("the stream ended before the hello was answered")]
    Ended,
    #[error("the hello was not answered in time")]
    Timeout,
}

/// Streams of links whose control stream is acknowledged and whose data stream is yet to come.
#[derive(Default)]
pub(crate) struct AwaitedStreams {
    waiting: Mutex<BTreeMap<(PeerId, BrokerId, u64), oneshot::Sender<StreamFrames>>>,
}

impl AwaitedStreams {
    fn expect(&self, peer: PeerId, hello: &Hello) -> oneshot::Receiver<StreamFrames> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, sender| !sender.is_closed());
        waiting.insert((peer, hello.dialled_by, hello.dial), sender);
        receiver
    }

    fn take(&self, peer: PeerId, hello: DataHello) -> Option<oneshot::Sender<StreamFrames>> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(&(peer, hello.dialled_by, hello.dial))
    }
}

/// The dialling side. `spare` says whether there is another path to the other side.
pub(crate) async fn dial(
    context: &Shared,
    streams: &mut Control,
    peer: PeerId,
    spare: bool,
) -> Result<Established, HandshakeError> {
    if !context.is_allowed(&peer) {
        let text = format!("peer {peer} is not on the allow-list");
        return Err(HandshakeError::RefusedThem(HelloRefused::new(RefusalCode::NotAllowed, text)));
    }
    let (role, expected) = if context.is_leaf() { (Role::Leaf, Role::Parent) } else { (Role::Core, Role::Core) };
    let hello = context.hello(context.broker, context.next_dial(), role, spare);
    let (dialled_by, dial, told) = (hello.dialled_by, hello.dial, hello.incarnation);
    let first = encode(&ControlFrame::Hello(hello))?;
    let (control, frame, round_trip) = open(streams, peer, BROKER_PROTOCOL, Traffic::Control, &first).await?;
    let answer = match in_protocol(ControlFrame::decode(&frame))? {
        ControlFrame::HelloAck(HelloAck { hello, .. }) => hello,
        ControlFrame::HelloRefused(HelloRefused { code: RefusalCode::Busy, text }) => {
            return Err(HandshakeError::Full(text.to_string()));
        }
        ControlFrame::HelloRefused(refused) => return Err(HandshakeError::RefusedUs(refused.text.to_string())),
        ControlFrame::Goodbye(goodbye) => return Err(HandshakeError::RefusedUs(goodbye.to_string())),
        ControlFrame::Hello(_) | ControlFrame::Message(_) | ControlFrame::KeepAlive => {
            return Err(HandshakeError::Protocol(format!("a {} frame before the hello", frame.kind)));
        }
    };
    if (answer.dialled_by, answer.dial) != (dialled_by, dial) {
        return Err(HandshakeError::Protocol("its hello answers another one".into()));
    }
    check_id(peer, &answer)?;
    if answer.role != expected {
        return Err(HandshakeError::Protocol(format!("it answers a {role:?} as a {:?}", answer.role)));
    }
    let hello = DataHello { dialled_by, dial };
    let mut first = BytesMut::new();
    in_protocol(DataFrame::Hello(hello).encode(&mut first))?;
    let (data, frame, second) = open(streams, peer, EVENT_PROTOCOL, Traffic::Data, &first).await?;
    if in_protocol(DataFrame::decode(frame))? != DataFrame::Hello(hello) {
        return Err(HandshakeError::Protocol(
            "its data stream begins with something else than this link's name".into(),
        ));
    }
    let neighbour = neighbour(peer, &answer, told);
    let software = answer.software.to_string();
    let round_trip = Some(round_trip.min(second));
    Ok(Established { peer, neighbour, software, dialled: true, round_trip, control, data })
}

/// Opens a stream, sends its first frame and waits for the first one to come back; how long that took. A stream that is lost
/// without an answer is opened again.
async fn open(
    streams: &mut Control,
    peer: PeerId,
    protocol: &'static str,
    traffic: Traffic,
    first: &[u8],
) -> Result<(StreamFrames, enroute_wire::Frame, Duration), HandshakeError> {
    let mut last = HandshakeError::Timeout;
    for attempt in 0..TRIES {
        if attempt > 0 {
            let wait = RETRY * (1 << (attempt - 1));
            tokio::time::sleep(wait.mul_f64(rand::random::<f64>())).await; // sleep: before trying again
        }
        let tried = tokio::time::timeout(STEP, async {
            let stream = streams.open_stream(peer, StreamProtocol::new(protocol)).await.map_err(|e| match e {
                OpenStreamError::UnsupportedProtocol(protocol) => HandshakeError::NoBroker(protocol.to_string()),
                error => HandshakeError::Open(error.to_string()),
            })?;
            let mut frames = Frames::new(stream.compat(), traffic);
            let sent = Instant::now();
            send(frames.get_mut(), first).await?;
            let frame = frames.next().await?.ok_or(HandshakeError::Ended)?;
            Ok((frames, frame, sent.elapsed()))
        });
        match tried.await {
            Err(_) => return Err(HandshakeError::Timeout),
            Ok(Err(error @ (HandshakeError::Ended | HandshakeError::Frames(FramesError::Io(_))))) => last = error,
            Ok(result) => return result,
        }
    }
    Err(last)
}

/// The side that was dialled: the control stream comes first, then the data stream by way of `awaited`.
pub(crate) async fn accept(
    context: &Shared,
    awaited: &AwaitedStreams,
    peer: PeerId,
    stream: Stream,
) -> Result<Established, HandshakeError> {
    let mut control = Frames::new(stream.compat(), Traffic::Control);
    let hello = match read_hello(context, peer, &mut control).await {
        Ok(hello) => hello,
        Err(error) => {
            if let HandshakeError::RefusedThem(refused) = &error {
                let bytes = encode(&ControlFrame::HelloRefused(refused.clone()))?;
                send_last(control.get_mut(), &bytes).await;
            }
            return Err(error);
        }
    };
    let role = if hello.role == Role::Leaf { Role::Parent } else { Role::Core };
    let own = context.hello(hello.dialled_by, hello.dial, role, false);
    let told = own.incarnation;
    let version = in_protocol(BROKER_VERSIONS.highest_common(hello.versions))?;
    let data = awaited.expect(peer, &hello);
    send(control.get_mut(), &encode(&ControlFrame::HelloAck(HelloAck { version, hello: own }))?).await?;
    let data = tokio::time::timeout(STEP * 2, data).await.map_err(|_| HandshakeError::Timeout)?;
    let data = data.map_err(|_| HandshakeError::Ended)?;
    let neighbour = neighbour(peer, &hello, told);
    let software = hello.software.to_string();
    Ok(Established { peer, neighbour, software, dialled: false, round_trip: None, control, data })
}

/// Hands a data stream that has come to the link it belongs to.
pub(crate) async fn accept_data(awaited: &AwaitedStreams, peer: PeerId, stream: Stream) -> Result<(), HandshakeError> {
    let mut data = Frames::new(stream.compat(), Traffic::Data);
    let frame = tokio::time::timeout(STEP, data.next()).await.map_err(|_| HandshakeError::Timeout)??;
    let frame = frame.ok_or(HandshakeError::Ended)?;
    let hello = match in_protocol(DataFrame::decode(frame))? {
        DataFrame::Hello(hello) => hello,
        DataFrame::Event(_) => return Err(HandshakeError::Protocol("an event before the hello".into())),
    };
    let link = awaited.take(peer, hello);
    let link = link.ok_or_else(|| HandshakeError::Protocol("a data stream without a control stream".into()))?;
    let mut bytes = BytesMut::new();
    in_protocol(DataFrame::Hello(hello).encode(&mut bytes))?;
    send(data.get_mut(), &bytes).await?;
    link.send(data).map_err(|_| HandshakeError::Ended)
}

/// Reads the hello and judges it.
async fn read_hello(context: &Shared, peer: PeerId, control: &mut StreamFrames) -> Result<Hello, HandshakeError> {
    let refuse = |code, text: String| Err(HandshakeError::RefusedThem(HelloRefused::new(code, text)));
    let frame = tokio::time::timeout(STEP, control.next()).await.map_err(|_| HandshakeError::Timeout)?;
    let frame = match frame {
        Ok(frame) => frame.ok_or(HandshakeError::Ended)?,
        Err(FramesError::Wire(error)) => return Err(HandshakeError::RefusedThem((&error).into())),
        Err(error) => return Err(error.into()),
    };
    let hello = match ControlFrame::decode(&frame) {
        Ok(ControlFrame::Hello(hello)) => hello,
        Ok(_) => return refuse(RefusalCode::Unreadable, format!("a {} frame before the hello", frame.kind)),
        Err(error) => return Err(HandshakeError::RefusedThem((&error).into())),
    };
    if hello.broker == context.broker && peer == context.peer {
        return refuse(RefusalCode::Oneself, "a connection to oneself".into());
    }
    if !context.is_allowed(&peer) {
        return refuse(RefusalCode::NotAllowed, format!("peer {peer} is not on the allow-list of {}", context.peer));
    }
    if hello.dialled_by != hello.broker {
        return refuse(RefusalCode::Unreadable, "it says that another broker dialled".into());
    }
    if let Err(error) = check_id(peer, &hello) {
        return refuse(RefusalCode::Unreadable, error.to_string());
    }
    match hello.role {
        Role::Core if context.is_leaf() => {
            let text = "a leaf broker is linked to no core broker but its uplink; with `leaf` in place of `peers`, or --leaf in place of --peer, others may hang off it";
            return refuse(RefusalCode::NotAllowed, text.into());
        }
        Role::Parent => return refuse(RefusalCode::Unreadable, "nobody dials its leaves".into()),
        Role::Core | Role::Leaf => {}
    }
    if hello.role == Role::Core && hello.spare && context.is_full() {
        return refuse(
            RefusalCode::Busy,
            format!("it has its {} links, and there are other paths", context.config.max_links),
        );
    }
    if context.stopping.is_cancelled() {
        return refuse(RefusalCode::ShuttingDown, "it is shutting down".into());
    }
    Ok(hello)
}

/// A broker's id follows from the key that the connection has proven.
fn check_id(peer: PeerId, hello: &Hello) -> Result<(), HandshakeError> {
    let expected = BrokerId::of_peer(&peer.to_string());
    if hello.broker == expected {
        return Ok(());
    }
    Err(HandshakeError::Protocol(format!("peer {peer} calls itself broker {}, but is {expected}", hello.broker)))
}

fn neighbour(peer: PeerId, hello: &Hello, told_incarnation: u64) -> Neighbour {
    Neighbour {
        broker: hello.broker,
        role: hello.role,
        peer_id: peer.to_string().into(),
        incarnation: hello.incarnation,
        start_nonce: hello.start_nonce,
        dialled_by: hello.dialled_by,
        dial: hello.dial,
        cost: COST,
        told_incarnation,
    }
}

fn encode(frame: &ControlFrame) -> Result<BytesMut, HandshakeError> {
    let mut bytes = BytesMut::new();
    in_protocol(frame.encode(&mut bytes))?;
    Ok(bytes)
}

/// An error of the wire as one of the handshake.
fn in_protocol<T>(result: Result<T, WireError>) -> Result<T, HandshakeError> {
    result.map_err(|error| HandshakeError::Protocol(error.to_string()))
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<(), HandshakeError> {
    match tokio::time::timeout(STEP, write(stream, bytes)).await {
        Ok(result) => result.map_err(|error| HandshakeError::Frames(error.into())),
        Err(_) => Err(HandshakeError::Timeout),
    }
}

/// Last words; whether they arrive makes no difference any more.
pub(crate) async fn send_last(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) {
    if send(stream, bytes).await.is_ok() {
        let _ = tokio::time::timeout(STEP, stream.shutdown()).await;
    }
}
