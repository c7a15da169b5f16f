//! Events that wait for a neighbour: bounded, and known one by one until their first byte has gone out.

use bytes::BytesMut;
use enroute_broker::EventFrame;
use enroute_wire::WireError;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Up to this many bytes of events are put into one write.
const BATCH_BYTES: usize = 64 << 10;

/// What an event is reckoned to take besides its body.
const OVERHEAD_BYTES: usize = 128;

/// Filled by the event loop, emptied by the link's event writer; what is untouched when the link dies is taken back.
pub(crate) struct EventQueue {
    state: Mutex<State>,
    filled: Notify,
    bound_events: usize,
    bound_bytes: usize,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<EventFrame>,
    /// Sum of the reckoned sizes of `waiting`.
    bytes: usize,
    /// Encoded, but not begun to be written: each with the place of its first byte in the writer's buffer.
    encoded: VecDeque<(usize, EventFrame)>,
    finished: bool,
}

impl EventQueue {
    pub(crate) fn new(bound_events: usize, bound_bytes: usize) -> EventQueue {
        EventQueue { state: Mutex::default(), filled: Notify::new(), bound_events, bound_bytes }
    }

    /// Appends an event; false if it is dropped because too much waits.
    pub(crate) fn push(&self, frame: EventFrame) -> bool {
        let size = size_of_event(&frame);
        let mut state = self.lock();
        let full = state.waiting.len() >= self.bound_events
            || (state.bytes.saturating_add(size) > self.bound_bytes && !state.waiting.is_empty());
        if full || state.finished {
            return false;
        }
        state.bytes += size;
        state.waiting.push_back(frame);
        drop(state);
        self.filled.notify_one();
        true
    }

    /// Nothing is taken in any more; what waits still goes out.
    pub(crate) fn finish(&self) {
        self.lock().finished = true;
        self.filled.notify_one();
    }

    /// Waits for events and encodes a batch of them into `buffer`, which must be empty. False when finished and empty.
    ///
    /// # Errors
    /// An event that cannot be encoded, which the core never gives; it is left out of the queue.
    pub(crate) async fn encode_batch(&self, buffer: &mut BytesMut) -> Result<bool, WireError> {
        loop {
            {
                let mut state = self.lock();
                state.encoded.clear();
                while buffer.len() < BATCH_BYTES
                    && let Some(frame) = state.waiting.pop_front()
                {
                    state.bytes -= size_of_event(&frame);
                    let start = buffer.len();
                    enroute_wire::encode_event_frame(&frame, buffer)?;
                    state.encoded.push_back((start, frame));
                }
                if !buffer.is_empty() {
                    return Ok(true);
                }
                if state.finished {
                    return Ok(false);
                }
            }
            self.filled.notified().await;
        }
    }

    /// The first `bytes` of the batch have gone to the transport: the events begun are out of our hands. Returns how many.
    pub(crate) fn written(&self, bytes: usize) -> u64 {
        let mut state = self.lock();
        let begun = state.encoded.iter().take_while(|(start, _)| *start < bytes).count();
        state.encoded.drain(..begun);
        begun as u64
    }

    /// Ends the queue and takes back all events of which no byte has gone out, in order.
    pub(crate) fn take_unsent(&self) -> Vec<EventFrame> {
        let mut state = self.lock();
        state.finished = true;
        state.bytes = 0;
        let State { waiting, encoded, .. } = &mut *state;
        encoded.drain(..).map(|(_, frame)| frame).chain(waiting.drain(..)).collect()
    }

    /// Events waiting.
    pub(crate) fn waiting(&self) -> usize {
        let state = self.lock();
        state.waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size_of_event(frame: &EventFrame) -> usize {
    frame.event.len() + frame.destinations.len() * 8 + OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use enroute_broker::{BrokerId, EventId};
    use futures::FutureExt;

    fn frame(sequence: u64, size: usize) -> EventFrame {
        let id = EventId { origin: BrokerId(1), incarnation: 1, sequence };
        EventFrame { hop_limit: 20, destinations: vec![BrokerId(2)], id, event: vec![0; size].into() }
    }

    fn sequences(frames: &[EventFrame]) -> Vec<u64> {
        frames.iter().map(|frame| frame.id.sequence).collect()
    }

    #[test]
    fn the_newest_are_dropped_when_full() {
        let by_count = EventQueue::new(2, usize::MAX);
        assert!(by_count.push(frame(1, 1)) && by_count.push(frame(2, 1)) && !by_count.push(frame(3, 1)));
        assert_eq!(sequences(&by_count.take_unsent()), [1, 2]);
        let by_bytes = EventQueue::new(100, 10_000);
        assert!(by_bytes.push(frame(1, 9_000)) && !by_bytes.push(frame(2, 9_000)) && by_bytes.push(frame(3, 10)));
        let alone = EventQueue::new(100, 10);
        assert!(alone.push(frame(1, 9_000)), "a single event larger than the bound still passes");
        assert!(!alone.push(frame(2, 0)));
    }

    #[test]
    fn only_events_without_a_byte_out_come_back() {
        let queue = EventQueue::new(100, usize::MAX);
        for sequence in 1..=4 {
            assert!(queue.push(frame(sequence, 100)));
        }
        let mut buffer = BytesMut::new();
        assert!(queue.encode_batch(&mut buffer).now_or_never().unwrap().unwrap());
        assert!(queue.push(frame(5, 100)));
        let one = buffer.len() / 4;
        assert_eq!(queue.written(0), 0);
        assert_eq!(queue.written(one), 1, "exactly the first");
        assert_eq!(queue.written(one + 1), 1, "one byte of the second");
        assert_eq!(sequences(&queue.take_unsent()), [3, 4, 5]);
        assert!(!queue.push(frame(6, 1)), "what is taken back is closed");
    }

    #[test]
    fn a_batch_is_bounded_and_a_finished_queue_ends() {
        let queue = EventQueue::new(1_000, usize::MAX);
        for sequence in 0..100 {
            assert!(queue.push(frame(sequence, 4_000)));
        }
        queue.finish();
        let mut batches = Vec::new();
        loop {
            let mut buffer = BytesMut::new();
            if !queue.encode_batch(&mut buffer).now_or_never().unwrap().unwrap() {
                break;
            }
            batches.push(buffer.len());
            queue.written(buffer.len());
        }
        assert!(batches.len() > 5 && batches.iter().all(|&size| size < BATCH_BYTES + 5_000), "{batches:?}");
    }
}
