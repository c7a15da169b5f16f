//! yamux as libp2p has it, with pieces as long as encryption takes at a time, and with bounds on what may wait unread.
//!
//! libp2p's own wrapping of yamux lets one set the number of streams, of the three things that are set here.

use futures::io::{AsyncRead, AsyncWrite};
use futures::ready;
use futures::task::AtomicWaker;
use libp2p::core::UpgradeInfo;
use libp2p::core::muxing::{StreamMuxer, StreamMuxerEvent};
use libp2p::core::upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade};
use std::collections::VecDeque;
use std::future::{Ready, ready};
use std::io;
use std::iter::{Once, once};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use yamux::{Connection, ConnectionError, Mode};

/// Streams of a connection. Links and clients keep one or two open; the rest is for libp2p's own protocols, and for some that
/// are lost and opened again. A peer that opens more is told to go, and has none of them.
const STREAMS: usize = 64;
/// Bytes that may wait unread in each stream, as the protocol has it; and bytes that the streams of a connection which are read
/// fast over a long way may have in all besides. So much can be on its way ahead of control over a slow link, too.
const WINDOW: usize = 256 << 10;
const MORE: usize = 16 << 20;
/// A piece of a stream, with its head, is one message of noise, of which libp2p makes no longer ones. TLS makes four records of it,
/// the last of 15,359 bytes, which go out together: to fill that one, too, would save TLS nothing, and cost noise a message more.
const PIECE: usize = 65_535 - 1_024 - 12;

/// The multiplexer, for [`with_tcp`](libp2p::SwarmBuilder::with_tcp).
#[derive(Clone, Debug)]
pub struct Multiplexer(yamux::Config);

impl Multiplexer {
    /// With the bounds of this module.
    #[expect(clippy::new_without_default, reason = "it is given where a function is wanted")]
    pub fn new() -> Multiplexer {
        let mut config = yamux::Config::default();
        config.set_max_num_streams(STREAMS);
        config.set_max_connection_receive_window(Some(STREAMS * WINDOW + MORE));
        config.set_split_send_size(PIECE);
        Multiplexer(config)
    }
}

impl UpgradeInfo for Multiplexer {
    type Info = &'static str;
    type InfoIter = Once<Self::Info>;

    fn protocol_info(&self) -> Self::InfoIter {
        once("/yamux/1.0.0")
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> InboundConnectionUpgrade<S> for Multiplexer {
    type Output = Streams<S>;
    type Error = io::Error;
    type Future = Ready<io::Result<Streams<S>>>;

    fn upgrade_inbound(self, stream: S, _: Self::Info) -> Self::Future {
        ready(Ok(Streams::new(Connection::new(stream, self.0, Mode::Server))))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> OutboundConnectionUpgrade<S> for Multiplexer {
    type Output = Streams<S>;
    type Error = io::Error;
    type Future = Ready<io::Result<Streams<S>>>;

    fn upgrade_outbound(self, stream: S, _: Self::Info) -> Self::Future {
        ready(Ok(Streams::new(Connection::new(stream, self.0, Mode::Client))))
    }
}

/// The streams of a connection.
///
/// yamux moves them all while it is asked for the next that the other side opens. So it is asked whenever anything is, and what
/// comes out before anybody wants a new stream is kept.
#[derive(Debug)]
pub struct Streams<S> {
    connection: Connection<S>,
    /// At most as many as may be open.
    opened: VecDeque<yamux::Stream>,
    /// Whoever wants one that the other side has opened.
    wanting: Option<Waker>,
    again: Arc<Again>,
}

/// Wakes the task in which the connection is polled, unless it is being polled just then.
///
/// A stream that puts a flush off, as [`Gathering`](crate::Gathering) and that of TLS do, asks to be polled again at once. That is
/// done at once: a task that wakes itself goes behind all others, and to another thread, which is woken for it.
#[derive(Debug, Default)]
struct Again {
    is_polled: AtomicBool,
    is_wanted: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Again {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // In this order, as against that of `poll`: one of the two sees what the other has done.
        self.is_wanted.store(true, Ordering::SeqCst);
        if !self.is_polled.load(Ordering::SeqCst) {
            self.task.wake();
        }
    }
}

impl Again {
    /// Polls; whether that is to be done again.
    fn poll<T>(self: &Arc<Self>, poll: impl FnOnce(&mut Context<'_>) -> T) -> (T, bool) {
        self.is_polled.store(true, Ordering::SeqCst);
        self.is_wanted.store(false, Ordering::SeqCst);
        let polled = poll(&mut Context::from_waker(&Waker::from(Arc::clone(self))));
        self.is_polled.store(false, Ordering::SeqCst);
        (polled, self.is_wanted.load(Ordering::SeqCst))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Streams<S> {
    fn new(connection: Connection<S>) -> Streams<S> {
        Streams { connection, opened: VecDeque::new(), wanting: None, again: Arc::default() }
    }

    fn poll_opened(&mut self, context: &mut Context<'_>) -> Poll<io::Result<yamux::Stream>> {
        self.again.task.register(context.waker());
        let mut poll = || self.again.poll(|context| self.connection.poll_next_inbound(context));
        let (mut opened, mut is_wanted) = poll();
        if opened.is_pending() && is_wanted {
            (opened, is_wanted) = poll();
        }
        if is_wanted {
            // Once more at once is enough: others want their turn.
            context.waker().wake_by_ref();
        }
        Poll::Ready(ready!(opened).unwrap_or(Err(ConnectionError::Closed)).map_err(into_io))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> StreamMuxer for Streams<S> {
    type Substream = yamux::Stream;
    type Error = io::Error;

    fn poll_inbound(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<yamux::Stream>> {
        let this = self.get_mut();
        if let Some(stream) = this.opened.pop_front() {
            return Poll::Ready(Ok(stream));
        }
        let polled = this.poll_opened(context);
        if polled.is_pending() {
            this.wanting = Some(context.waker().clone());
        }
        polled
    }

    fn poll_outbound(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<yamux::Stream>> {
        self.get_mut().connection.poll_new_outbound(context).map_err(into_io)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().connection.poll_close(context).map_err(into_io)
    }

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<StreamMuxerEvent>> {
        let this = self.get_mut();
        let stream = ready!(this.poll_opened(context))?;
        this.opened.push_back(stream);
        this.wanting.take().into_iter().for_each(Waker::wake);
        // There may be more to do.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

fn into_io(error: ConnectionError) -> io::Error {
    match error {
        ConnectionError::Io(error) => error,
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::{Either, join, poll_fn, select};
    use futures::{AsyncReadExt, AsyncWriteExt};
    use std::pin::pin;
    use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};

    type End = Streams<Compat<tokio::io::DuplexStream>>;

    fn pair_with(config: yamux::Config) -> (End, End) {
        let (near, far) = tokio::io::duplex(1 << 16);
        let near = Connection::new(near.compat(), config, Mode::Client);
        let far = Connection::new(far.compat(), Multiplexer::new().0, Mode::Server);
        (Streams::new(near), Streams::new(far))
    }

    fn pair() -> (End, End) {
        pair_with(Multiplexer::new().0)
    }

    async fn open(end: &mut End) -> io::Result<yamux::Stream> {
        poll_fn(|context| Pin::new(&mut *end).poll_outbound(context)).await
    }

    async fn opened(end: &mut End) -> io::Result<yamux::Stream> {
        poll_fn(|context| Pin::new(&mut *end).poll_inbound(context)).await
    }

    /// Moves a connection until it breaks.
    async fn drive(mut end: End) -> io::Error {
        poll_fn(|context| match Pin::new(&mut end).poll(context) {
            Poll::Ready(Err(error)) => Poll::Ready(error),
            Poll::Ready(Ok(_)) | Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// A stream, and what moves the two connections. The first byte has been written and read.
    async fn stream_between(
        (mut near, mut far): (End, End),
    ) -> (yamux::Stream, yamux::Stream, impl Future<Output = (io::Error, io::Error)>) {
        let mut writer = open(&mut near).await.unwrap();
        writer.write_all(&[0]).await.unwrap();
        let near = Box::pin(drive(near));
        let (mut reader, near) = match select(near, pin!(opened(&mut far))).await {
            Either::Left((error, _)) => panic!("{error}"),
            Either::Right((reader, near)) => (reader.unwrap(), near),
        };
        let both = Box::pin(join(near, drive(far)));
        let mut first = [9];
        let both = match select(both, reader.read_exact(&mut first)).await {
            Either::Left((errors, _)) => panic!("{errors:?}"),
            Either::Right((read, both)) => read.map(|()| both).unwrap(),
        };
        assert_eq!(first, [0]);
        (writer, reader, both)
    }

    #[tokio::test]
    async fn what_is_written_comes_in_order() {
        let sent: Vec<u8> = (0..3_000_000_u32).map(|index| (index % 251) as u8).collect();
        let (mut writer, mut reader, both) = stream_between(pair()).await;
        let mut read = vec![0; sent.len()];
        let transfer = join(writer.write_all(&sent), reader.read_exact(&mut read));
        match select(both, pin!(transfer)).await {
            Either::Left((errors, _)) => panic!("{errors:?}"),
            Either::Right(((written, came), _)) => written.and(came).unwrap(),
        }
        assert!(read == sent);
    }

    #[tokio::test]
    async fn what_is_not_read_is_bounded() {
        let (mut writer, _reader, both) = stream_between(pair()).await;
        let mut written = 0;
        let write = async {
            loop {
                written += writer.write(&[0; 1000]).await.unwrap();
                assert!(written <= WINDOW, "{written}");
            }
        };
        let mut all = select(both, Box::pin(write));
        // As often as a task is woken, and then some: nothing more comes about.
        for _ in 0..10_000 {
            tokio::select! {
                biased;
                _ = &mut all => panic!("neither connection ends"),
                () = tokio::task::yield_now() => {}
            }
        }
        drop(all);
        assert!(written > WINDOW / 2, "{written}");
    }

    #[tokio::test]
    async fn a_peer_that_opens_too_many_streams_is_told_to_go() {
        let mut more = yamux::Config::default();
        more.set_max_num_streams(2 * STREAMS);
        let (mut near, mut far) = pair_with(more);
        let mut writers = Vec::new();
        for _ in 0..=STREAMS {
            let mut writer = open(&mut near).await.unwrap();
            writer.write_all(&[0]).await.unwrap();
            writers.push(writer);
        }
        let keep = poll_fn(|context| Pin::new(&mut far).poll(context).map(|polled| polled.map(drop)));
        match select(pin!(drive(near)), pin!(keep)).await {
            Either::Left((error, _)) => assert_eq!(error.to_string(), ConnectionError::Closed.to_string()),
            Either::Right((ended, _)) => panic!("{ended:?}"),
        }
        assert_eq!(far.opened.len(), STREAMS);
    }
}
