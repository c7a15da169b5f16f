//! Frames that wait to be written, already encoded: what waits holds its own bytes and not those of the read it came with, and
//! a writer takes a write's worth without touching single frames.

use bytes::{Buf, BytesMut};
use enroute_wire::{WireError, first_frame_size};
use std::collections::VecDeque;

/// A piece with more than so many bytes is a single frame. With its head it is still one frame of the multiplexer; and when it lacks
/// but a small frame, it is so much that the transport does not wait for more before it writes.
const PIECE: usize = 62 << 10;
/// Bytes that a piece begins with at least.
const SMALLEST: usize = 512;
/// One that has become so long gets room for all that a piece may have: growing by and by would copy it again and again, and
/// blocks of many sizes come and go at a price.
const LONG: usize = PIECE / 4;

/// A queue of frames, in pieces.
#[derive(Default)]
pub(crate) struct Encoded {
    /// None is empty.
    pieces: VecDeque<Piece>,
    frames: usize,
    bytes: usize,
    /// Bytes of the piece that was taken last: the next one is likely to become as long.
    usual: usize,
}

/// Whole frames, one behind the other.
pub(crate) struct Piece {
    pub(crate) bytes: BytesMut,
    pub(crate) frames: usize,
}

impl Encoded {
    /// Frames that wait.
    pub(crate) fn frames(&self) -> usize {
        self.frames
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends the frame that `encode` appends, which has about `size` bytes.
    ///
    /// # Errors
    /// Those of `encode`, which must have appended nothing then.
    pub(crate) fn push(
        &mut self,
        size: usize,
        encode: impl FnOnce(&mut BytesMut) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        match self.pieces.back_mut().filter(|piece| piece.bytes.len() + size <= PIECE) {
            Some(piece) => {
                let before = piece.bytes.len();
                if before + size >= LONG && piece.bytes.capacity() - before < size {
                    piece.bytes.reserve(PIECE - before);
                }
                encode(&mut piece.bytes)?;
                piece.frames += 1;
                self.bytes += piece.bytes.len() - before;
            }
            None => {
                let usual = self.usual.max(size);
                let room = if usual >= LONG { size.max(PIECE) } else { usual.max(SMALLEST) };
                let mut bytes = BytesMut::with_capacity(room);
                encode(&mut bytes)?;
                self.bytes += bytes.len();
                self.pieces.push_back(Piece { bytes, frames: 1 });
            }
        }
        self.frames += 1;
        Ok(())
    }

    /// Takes the oldest frames: a piece, or as much of it as has at most `limit` frames.
    pub(crate) fn take(&mut self, limit: usize) -> Option<Piece> {
        let first = self.pieces.front_mut().filter(|_| limit > 0)?;
        let taken = if first.frames <= limit {
            self.pieces.pop_front()?
        } else {
            let size = (0..limit).fold(0, |size, _| size + first_frame_size(&first.bytes[size..]));
            first.frames -= limit;
            Piece { bytes: first.bytes.split_to(size), frames: limit }
        };
        self.usual = taken.bytes.len();
        self.frames -= taken.frames;
        self.bytes -= taken.bytes.len();
        Some(taken)
    }

    /// Drops the oldest frame; false if there is none.
    pub(crate) fn drop_oldest(&mut self) -> bool {
        let Some(first) = self.pieces.front_mut() else { return false };
        let size = first_frame_size(&first.bytes);
        self.frames -= 1;
        self.bytes -= size;
        first.frames -= 1;
        if first.frames == 0 {
            self.pieces.pop_front();
        } else {
            first.bytes.advance(size);
        }
        true
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        *self = Encoded::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use enroute_wire::ClientFrame;

    /// A frame of a hundred and some bytes that begins with a number.
    fn push(encoded: &mut Encoded, number: u64) {
        let request = enroute_broker::RequestId(number);
        let frame = ClientFrame::Publish { request, event: vec![0; 100].into() };
        encoded.push(113, |out| frame.encode(out)).unwrap();
    }

    fn numbers(mut bytes: &[u8]) -> Vec<u64> {
        let mut numbers = Vec::new();
        while !bytes.is_empty() {
            numbers.push(u64::from_le_bytes(bytes[5..13].try_into().unwrap()));
            bytes = &bytes[first_frame_size(bytes)..];
        }
        numbers
    }

    #[test]
    fn frames_leave_in_order_by_pieces_by_count_and_one_by_one() {
        let mut encoded = Encoded::default();
        (0..2_000).for_each(|number| push(&mut encoded, number));
        let size = encoded.bytes() / 2_000;
        assert!(encoded.take(0).is_none());
        let some = encoded.take(3).unwrap();
        assert_eq!((numbers(&some.bytes), some.frames), (vec![0, 1, 2], 3));
        assert!(encoded.drop_oldest());
        let mut next = 4;
        while let Some(piece) = encoded.take(usize::MAX) {
            assert!(piece.bytes.len() < PIECE + size, "a piece is a write");
            assert_eq!(numbers(&piece.bytes), (next..next + piece.frames as u64).collect::<Vec<_>>());
            next += piece.frames as u64;
            assert_eq!((encoded.frames(), encoded.bytes()), (2_000 - next as usize, (2_000 - next as usize) * size));
        }
        assert_eq!(next, 2_000);
        assert!(!encoded.drop_oldest());
    }

    #[test]
    fn no_piece_is_moved_to_a_larger_place() {
        for size in [100, 16_000, 70_000] {
            let mut encoded = Encoded::default();
            let frame = ClientFrame::Publish { request: enroute_broker::RequestId(1), event: vec![0; size].into() };
            let push = |encoded: &mut Encoded| encoded.push(size + 13, |out| frame.encode(out)).unwrap();
            while encoded.pieces.len() < 2 {
                push(&mut encoded);
            }
            encoded.take(usize::MAX);
            (0..2_000).for_each(|_| push(&mut encoded));
            // It is known by now that pieces become long.
            assert!(encoded.pieces.len() > 2);
            for piece in encoded.pieces.iter().skip(1) {
                assert_eq!(piece.bytes.capacity(), PIECE.max(size + 13));
            }
        }
    }

    #[test]
    fn what_cannot_be_encoded_leaves_no_trace() {
        let mut encoded = Encoded::default();
        let failure = |_: &mut BytesMut| Err(WireError::EmptyFrame);
        assert!(encoded.push(1, failure).is_err());
        assert!(encoded.take(1).is_none());
        push(&mut encoded, 1);
        assert!(encoded.push(1, failure).is_err());
        assert_eq!((encoded.frames(), encoded.take(9).unwrap().frames), (1, 1));
    }
}
