//! A socket that gives and takes as much as it likes at a time.

use futures::io::{AsyncRead, AsyncWrite};
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

/// What a socket has, and what it has been asked since that was last reset.
#[derive(Default)]
pub(super) struct Inner {
    pub(super) incoming: VecDeque<u8>,
    pub(super) outgoing: Vec<u8>,
    /// How many bytes more it takes, and gives, at a time.
    pub(super) room: usize,
    pub(super) piece: usize,
    /// Nothing comes after what is here.
    pub(super) is_ended: bool,
    pub(super) is_closed: bool,
    /// Whether it has said that nothing is here, or that it takes nothing more, and would wake whoever has asked.
    pub(super) awaited: bool,
    random: u64,
}

impl Inner {
    /// A random size, or nothing, which is to be asked for again.
    fn some(&mut self, most: usize) -> Option<usize> {
        self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let drawn = (self.random >> 33) as usize;
        (self.piece == usize::MAX || !drawn.is_multiple_of(5)).then(|| (1 + drawn % self.piece).min(most))
    }
}

#[derive(Clone, Default)]
pub(super) struct Socket(Arc<Mutex<Inner>>);

impl Socket {
    pub(super) fn new(piece: usize, random: u64) -> Socket {
        Socket(Arc::new(Mutex::new(Inner { room: usize::MAX, piece, random, ..Inner::default() })))
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut inner = self.inner();
        let here = inner.incoming.len();
        if here == 0 && inner.is_ended {
            return Poll::Ready(Ok(0));
        }
        match inner.some(here.min(bytes.len())) {
            Some(count) if count > 0 => {
                inner.incoming.drain(..count).zip(bytes).for_each(|(byte, place)| *place = byte);
                Poll::Ready(Ok(count))
            }
            Some(_) | None => {
                inner.awaited = true;
                Poll::Pending
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut inner = self.inner();
        assert!(!inner.is_closed && !bytes.is_empty());
        let room = inner.room;
        match inner.some(room.min(bytes.len())) {
            Some(count) if count > 0 => {
                inner.outgoing.extend_from_slice(&bytes[..count]);
                inner.room -= count;
                Poll::Ready(Ok(count))
            }
            Some(_) | None => {
                inner.awaited = true;
                Poll::Pending
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().is_closed = true;
        Poll::Ready(Ok(()))
    }
}
