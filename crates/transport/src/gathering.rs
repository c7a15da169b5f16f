//! A stream that is written and read in larger pieces than those who use it ask for.

use futures::io::{AsyncRead, AsyncWrite};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Bytes that are written and read at a time when there is much.
pub(crate) const MUCH: usize = 64 << 10;
/// What has so many bytes is written by itself, which saves a copy, if nothing waits that it could be written with.
const ENOUGH: usize = 32 << 10;
/// A read that brings less is not followed by a large one.
pub(crate) const LITTLE: usize = 4 << 10;

/// Puts off a flush behind new bytes, unless much waits: whoever flushes is woken at once, and is not put off again.
pub(crate) fn put_off(is_fresh: &mut bool, waiting: usize, context: &Context<'_>) -> Poll<()> {
    if std::mem::take(is_fresh) && waiting < MUCH - LITTLE {
        context.waker().wake_by_ref();
        return Poll::Pending;
    }
    Poll::Ready(())
}

/// A stream around another one.
///
/// A flush behind new bytes is put off until the task has done what else it can: it asks to be woken at once, and flushes when it is
/// asked again without having been written to, or when a large piece has come together. What is little is read as it is asked
/// for; after a read that was filled, a large piece is read. Buffers are held only while they have something, or much comes.
#[derive(Debug)]
pub struct Gathering<S> {
    stream: S,
    /// What is to be written from `written` on.
    outgoing: Vec<u8>,
    written: usize,
    /// Whether there has been a write since the last flush.
    is_fresh: bool,
    /// What has been read, of which `taken..arrived` is still to be handed on.
    incoming: Box<[u8]>,
    taken: usize,
    arrived: usize,
    comes_much: bool,
}

impl<S> Gathering<S> {
    /// Around a stream.
    pub fn new(stream: S) -> Gathering<S> {
        Gathering {
            stream,
            outgoing: Vec::new(),
            written: 0,
            is_fresh: false,
            incoming: Box::default(),
            taken: 0,
            arrived: 0,
            comes_much: false,
        }
    }

    fn waiting(&self) -> usize {
        self.outgoing.len() - self.written
    }
}

impl<S: AsyncWrite + Unpin> Gathering<S> {
    /// Writes all that waits.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.waiting() > 0 {
            let rest = &self.outgoing[self.written..];
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        (self.outgoing, self.written) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathering<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.waiting() > 0 && this.waiting() + bytes.len() > MUCH {
            ready!(this.poll_drain(context))?;
        }
        if this.waiting() == 0 && bytes.len() >= ENOUGH {
            return Pin::new(&mut this.stream).poll_write(context, bytes);
        }
        if this.outgoing.is_empty() && bytes.len() >= LITTLE {
            this.outgoing.reserve(MUCH);
        }
        // Whoever takes it little by little, and never all, would else make it grow without an end.
        this.outgoing.drain(..std::mem::take(&mut this.written));
        this.outgoing.extend_from_slice(bytes);
        this.is_fresh = true;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let waiting = this.waiting();
        ready!(put_off(&mut this.is_fresh, waiting, context));
        ready!(this.poll_drain(context))?;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(context))?;
        Pin::new(&mut this.stream).poll_close(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathering<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.taken == this.arrived {
            if !this.comes_much || bytes.len() >= MUCH {
                let count = ready!(Pin::new(&mut this.stream).poll_read(context, bytes))?;
                this.comes_much = count == bytes.len() && count >= LITTLE;
                return Poll::Ready(Ok(count));
            }
            if this.incoming.is_empty() {
                this.incoming = vec![0; MUCH].into();
            }
            this.arrived = 0;
            this.taken = 0;
            this.arrived = ready!(Pin::new(&mut this.stream).poll_read(context, &mut this.incoming))?;
            this.comes_much = this.arrived >= LITTLE;
        }
        let count = bytes.len().min(this.arrived - this.taken);
        bytes[..count].copy_from_slice(&this.incoming[this.taken..this.taken + count]);
        this.taken += count;
        if this.taken == this.arrived && !this.comes_much {
            (this.incoming, this.taken, this.arrived) = (Box::default(), 0, 0);
        }
        Poll::Ready(Ok(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::task::noop_waker;

    /// Takes and gives what it is asked for, at most so much at a time, and counts the calls.
    #[derive(Default)]
    struct Counting {
        written: Vec<u8>,
        writes: usize,
        to_read: Vec<u8>,
        reads: usize,
        /// How much more it takes and gives before it has to be waited for.
        room: usize,
    }

    impl AsyncWrite for Counting {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let count = bytes.len().min(self.room);
            self.room -= count;
            self.writes += 1;
            self.written.extend_from_slice(&bytes[..count]);
            if count == 0 { Poll::Pending } else { Poll::Ready(Ok(count)) }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncRead for Counting {
        fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
            let count = bytes.len().min(self.room).min(self.to_read.len());
            self.room -= count;
            self.reads += 1;
            bytes[..count].copy_from_slice(&self.to_read[..count]);
            self.to_read.drain(..count);
            Poll::Ready(Ok(count))
        }
    }

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|index| (index % 251) as u8).collect()
    }

    fn write(stream: &mut Gathering<Counting>, bytes: &[u8]) -> Poll<usize> {
        let waker = noop_waker();
        Pin::new(stream).poll_write(&mut Context::from_waker(&waker), bytes).map(Result::unwrap)
    }

    fn flush(stream: &mut Gathering<Counting>) -> bool {
        let waker = noop_waker();
        Pin::new(stream).poll_flush(&mut Context::from_waker(&waker)).map(Result::unwrap).is_ready()
    }

    #[test]
    fn frames_that_are_flushed_one_by_one_are_written_together() {
        let mut stream = Gathering::new(Counting { room: usize::MAX, ..Counting::default() });
        let sent = pattern(150_000);
        for frame in sent.chunks(10_000) {
            assert_eq!(write(&mut stream, frame), Poll::Ready(frame.len()));
            flush(&mut stream);
        }
        while !flush(&mut stream) {}
        assert!(stream.stream.written == sent);
        assert_eq!(stream.stream.writes, 3, "of 64 KiB at most");
        assert_eq!(stream.outgoing.capacity(), 0);
    }

    #[test]
    fn a_flush_that_is_put_off_comes_with_the_next_poll() {
        let mut stream = Gathering::new(Counting { room: usize::MAX, ..Counting::default() });
        let (waker, count) = futures_test_waker();
        assert_eq!(write(&mut stream, b"little"), Poll::Ready(6));
        assert!(Pin::new(&mut stream).poll_flush(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(count.0.load(std::sync::atomic::Ordering::Relaxed), 1, "whoever is put off is woken");
        assert!(flush(&mut stream));
        assert_eq!(stream.stream.written, b"little");
    }

    struct Count(std::sync::atomic::AtomicUsize);

    impl std::task::Wake for Count {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    fn futures_test_waker() -> (std::task::Waker, std::sync::Arc<Count>) {
        let count = std::sync::Arc::new(Count(Default::default()));
        (std::sync::Arc::clone(&count).into(), count)
    }

    #[test]
    fn a_stream_that_takes_nothing_bounds_what_waits() {
        let mut stream = Gathering::new(Counting::default());
        let frame = pattern(16_000);
        let taken = (0..100).take_while(|_| write(&mut stream, &frame).is_ready()).count();
        assert_eq!(taken, MUCH / frame.len());
        assert!(!flush(&mut stream) && !flush(&mut stream));
        while !flush(&mut stream) {
            stream.stream.room = 1_000;
        }
        assert!(stream.stream.written == frame.repeat(taken));
    }

    #[test]
    fn a_stream_that_never_takes_all_makes_nothing_grow() {
        let mut stream = Gathering::new(Counting::default());
        let (waker, sent) = (noop_waker(), pattern(1_000_000));
        let context = &mut Context::from_waker(&waker);
        assert!(Pin::new(&mut stream).poll_write(context, &sent[..30_000]).is_ready());
        for frame in sent[30_000..].chunks(1_000) {
            stream.stream.room = 1_000;
            assert!(Pin::new(&mut stream).poll_flush(context).is_pending());
            assert!(Pin::new(&mut stream).poll_flush(context).is_pending());
            assert!(Pin::new(&mut stream).poll_write(context, frame).is_ready());
            assert!(stream.outgoing.len() <= MUCH, "{}", stream.outgoing.len());
        }
        stream.stream.room = usize::MAX;
        while Pin::new(&mut stream).poll_flush(context).is_pending() {}
        assert!(stream.stream.written == sent);
    }

    #[test]
    fn much_is_read_at_once_and_handed_on_as_asked() {
        let sent = pattern(300_000);
        let mut stream = Gathering::new(Counting { to_read: sent.clone(), room: usize::MAX, ..Counting::default() });
        let (waker, mut read, mut bytes) = (noop_waker(), Vec::new(), [0; 8 << 10]);
        let mut poll = |stream: &mut Gathering<Counting>| {
            let context = &mut Context::from_waker(&waker);
            let Poll::Ready(count) = Pin::new(stream).poll_read(context, &mut bytes) else { panic!("never pending") };
            let count = count.unwrap();
            read.extend_from_slice(&bytes[..count]);
            count
        };
        while poll(&mut stream) > 0 {}
        assert!(read == sent);
        assert!(stream.stream.reads < 300_000 / MUCH + 4, "{}", stream.stream.reads);
        assert!(stream.incoming.is_empty(), "an idle stream holds no buffer");
    }
}
