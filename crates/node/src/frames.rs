//! Frames off a byte stream, and bytes onto it.

use enroute_wire::{Frame, FrameReader, Traffic, WireError};
use futures::FutureExt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};

/// Bytes read at a time: there may be very many streams, and only few bring much. A read that is filled is followed by larger
/// ones, until one brings little.
const CHUNK: usize = 8 << 10;
const LARGE_CHUNK: usize = 64 << 10;
const LITTLE: usize = 1 << 10;

/// One direction of a stream, cut into frames.
pub(crate) struct Frames<R> {
    reader: R,
    frames: FrameReader,
    at_a_time: usize,
    reads: Arc<AtomicU64>,
}

/// Why there are no more frames.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FramesError {
    #[error(transparent)]
    Wire(#[from] WireError),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the stream broke off within a frame")]
    BrokenOff,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(crate) fn new(reader: R, traffic: Traffic) -> Frames<R> {
        Frames { reader, frames: FrameReader::new(traffic), at_a_time: CHUNK, reads: Arc::default() }
    }

    /// Grows with every read that has brought something, be it only a part of a frame.
    pub(crate) fn reads(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.reads)
    }

    /// Waits for a frame; `None` if the stream has ended after a whole frame. Cancelling the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, FramesError> {
        loop {
            if let Some(frame) = self.frames.next_frame()? {
                return Ok(Some(frame));
            }
            let room = self.frames.room(self.at_a_time);
            let size = room.len();
            let count = self.reader.read(room).await?;
            if count == 0 {
                return if self.frames.pending() == 0 { Ok(None) } else { Err(FramesError::BrokenOff) };
            }
            self.take_in(count, size);
        }
    }

    /// So many bytes have been read, of a room of so many.
    fn take_in(&mut self, count: usize, size: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.frames.filled(count);
        if count <= LITTLE {
            self.at_a_time = CHUNK;
        } else if count == size {
            self.at_a_time = LARGE_CHUNK;
        }
    }

    /// A further frame if it is here already, or can be read without waiting. The end of the stream is told by
    /// [`Frames::next`], which must be called next when there is none here.
    pub(crate) fn next_ready(&mut self) -> Result<Option<Frame>, FramesError> {
        loop {
            if let Some(frame) = self.frames.next_frame()? {
                return Ok(Some(frame));
            }
            let room = self.frames.room(self.at_a_time);
            let size = room.len();
            match self.reader.read(room).now_or_never() {
                None | Some(Ok(0)) => return Ok(None),
                Some(Ok(count)) => self.take_in(count, size),
                Some(Err(error)) => return Err(error.into()),
            }
        }
    }

    pub(crate) fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }
}

impl<S: AsyncRead + AsyncWrite> Frames<S> {
    /// After the hellos: the same frames over the reading half of the stream, and the half to write to.
    pub(crate) fn split(self) -> (Frames<ReadHalf<S>>, WriteHalf<S>) {
        let (reader, writer) = tokio::io::split(self.reader);
        (Frames { reader, frames: self.frames, at_a_time: self.at_a_time, reads: self.reads }, writer)
    }
}

/// Writes and flushes.
pub(crate) async fn write<W: AsyncWrite + Unpin>(writer: &mut W, bytes: &[u8]) -> io::Result<()> {
    writer.write_all(bytes).await?;
    writer.flush().await
}
