//! Frames off a byte stream.

use enroute_wire::{Frame, FrameReader, Traffic, WireError};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes read at a time.
const CHUNK: usize = 64 << 10;

/// One direction of a stream, cut into frames.
pub(crate) struct Frames<R> {
    reader: R,
    frames: FrameReader,
    chunk: Box<[u8]>,
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
        Frames { reader, frames: FrameReader::new(traffic), chunk: vec![0; CHUNK].into() }
    }

    /// Waits for a frame; `None` if the stream has ended after a whole frame. Cancelling the wait loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, FramesError> {
        loop {
            if let Some(frame) = self.frames.next_frame()? {
                return Ok(Some(frame));
            }
            let count = self.reader.read(&mut self.chunk).await?;
            if count == 0 {
                return if self.frames.pending() == 0 { Ok(None) } else { Err(FramesError::BrokenOff) };
            }
            self.frames.push(&self.chunk[..count]);
        }
    }

    /// A further frame if it has been read as a whole already.
    pub(crate) fn next_buffered(&mut self) -> Result<Option<Frame>, WireError> {
        self.frames.next_frame()
    }

    /// The same frames over a part of the same stream: for streams that are split after the hello.
    pub(crate) fn map<T>(self, change: impl FnOnce(R) -> T) -> Frames<T> {
        Frames { reader: change(self.reader), frames: self.frames, chunk: self.chunk }
    }

    pub(crate) fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }
}
