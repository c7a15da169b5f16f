//! Events that wait for a neighbour: bounded, and known one by one until their first byte has gone out.

use crate::config::FullLink;
use crate::encoded::Encoded;
use crate::outbox::{Put, Queued, Wakes};
use bytes::Bytes;
use enroute_broker::EventFrame;
use enroute_wire::{
    DataFrame, FrameReader, Traffic, WireError, encode_event_frame, event_frame_size, first_frame_size,
};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::Instant;

/// Filled by the event loop, emptied by the link's event writer; what is untouched when the link dies is taken back.
pub(crate) struct EventQueue {
    state: Mutex<State>,
    filled: Notify,
    policy: FullLink,
    bound_events: usize,
    bound_bytes: usize,
}

#[derive(Default)]
struct State {
    waiting: Encoded,
    /// What the writer has taken last.
    writing: Bytes,
    /// Where in `writing` the first event stands of which no byte has gone out.
    begun: usize,
    dropped: u64,
    /// Held back from those who brought what is too much, and until when at most.
    permits: Vec<(Instant, OwnedSemaphorePermit)>,
    finished: bool,
}

impl EventQueue {
    pub(crate) fn new(policy: FullLink, bound_events: usize, bound_bytes: usize) -> EventQueue {
        EventQueue { state: Mutex::default(), filled: Notify::new(), policy, bound_events, bound_bytes }
    }

    /// Appends an event, by the policy.
    ///
    /// # Errors
    /// An event that cannot be encoded, which the core never gives; it is dropped.
    pub(crate) fn push(&self, frame: &EventFrame) -> Result<Queued, WireError> {
        let size = event_frame_size(frame);
        let mut state = self.lock();
        let (taken, put) = match self.policy {
            FullLink::Drop => (!self.exceeds(&state, size, 1), Put::Done),
            // What was under way when its sources were held back is still taken, as much again as may wait.
            FullLink::PushBack if self.exceeds(&state, size, 1) => (!self.exceeds(&state, size, 2), Put::PushBack),
            FullLink::PushBack => (true, Put::Done),
        };
        if !taken || state.finished {
            state.dropped += 1;
            return Ok(Queued { put, wakes: Wakes::Nobody });
        }
        let (first, half_empty) = (state.waiting.frames() == 0, self.is_half_empty(&state));
        if let Err(error) = state.waiting.push(size, |out| encode_event_frame(frame, out)) {
            state.dropped += 1;
            return Err(error);
        }
        Ok(Queued { put, wakes: Wakes::of_put(first, half_empty, self.is_half_empty(&state)) })
    }

    /// Whether at most half waits of what may.
    fn is_half_empty(&self, state: &State) -> bool {
        state.waiting.frames() * 2 <= self.bound_events && state.waiting.bytes() * 2 <= self.bound_bytes
    }

    /// Wakes the link's event writer: something has been put in.
    pub(crate) fn wake(&self) {
        self.filled.notify_one();
    }

    /// Whether one more of `size` bytes is more than `times` the bounds. A single one always passes.
    fn exceeds(&self, state: &State, size: usize, times: usize) -> bool {
        let (events, bytes) = (state.waiting.frames(), state.waiting.bytes());
        events >= self.bound_events.saturating_mul(times)
            || (events > 0 && bytes.saturating_add(size) > self.bound_bytes.saturating_mul(times))
    }

    /// Keeps a source from going on until less waits, or until it is [released](EventQueue::release).
    pub(crate) fn hold(&self, permit: OwnedSemaphorePermit, until: Instant) {
        let mut state = self.lock();
        if !state.finished {
            state.permits.push((until, permit));
        }
    }

    /// Lets those sources go on that were to be held until `now` at most.
    pub(crate) fn release(&self, now: Instant) {
        self.lock().permits.retain(|(until, _)| *until > now);
    }

    /// Nothing is taken in any more; what waits still goes out.
    pub(crate) fn finish(&self) {
        let mut state = self.lock();
        state.finished = true;
        state.permits.clear();
        drop(state);
        self.filled.notify_one();
    }

    /// Waits for events and takes a write's worth of them; `None` when finished and empty.
    pub(crate) async fn take(&self) -> Option<Bytes> {
        loop {
            {
                let mut state = self.lock();
                if let Some(piece) = state.waiting.take(usize::MAX) {
                    if self.is_half_empty(&state) {
                        state.permits.clear();
                    }
                    state.writing = piece.bytes.freeze();
                    state.begun = 0;
                    return Some(state.writing.clone());
                }
                state.writing = Bytes::new();
                if state.finished {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }

    /// The first `bytes` of what was taken last have gone to the transport: the events begun are out of our hands. Returns how
    /// many more than before.
    pub(crate) fn written(&self, bytes: usize) -> u64 {
        let mut state = self.lock();
        let mut events = 0;
        while state.begun < bytes.min(state.writing.len()) {
            state.begun += first_frame_size(&state.writing[state.begun..]);
            events += 1;
        }
        events
    }

    /// Ends the queue and takes back all events of which no byte has gone out, in order.
    pub(crate) fn take_unsent(&self) -> Vec<EventFrame> {
        let mut state = self.lock();
        state.finished = true;
        state.permits.clear();
        let (writing, begun) = (std::mem::take(&mut state.writing), std::mem::take(&mut state.begun));
        let mut unsent = Vec::new();
        let mut frames = FrameReader::new(Traffic::Data);
        let mut read = |bytes: &[u8]| {
            frames.push(bytes);
            while let Ok(Some(frame)) = frames.next_frame() {
                // What this side has encoded is read again.
                if let Ok(DataFrame::Event(event)) = DataFrame::decode(frame) {
                    unsent.push(event);
                }
            }
        };
        read(writing.get(begun..).unwrap_or_default());
        while let Some(piece) = state.waiting.take(usize::MAX) {
            read(&piece.bytes);
        }
        unsent
    }

    /// Events dropped because too much waited.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Events waiting.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting.frames()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use enroute_broker::{BrokerId, EventId};
    use futures::FutureExt;

    fn frame(sequence: u64, size: usize) -> EventFrame {
        let id = EventId { origin: BrokerId(1), incarnation: 1, sequence };
        EventFrame { hop_limit: 20, destinations: [BrokerId(2)].into_iter().collect(), id, event: vec![0; size].into() }
    }

    fn queue(bound_events: usize, bound_bytes: usize) -> EventQueue {
        EventQueue::new(FullLink::Drop, bound_events, bound_bytes)
    }

    /// Whether it was taken.
    fn push(queue: &EventQueue, sequence: u64, size: usize) -> bool {
        let before = queue.dropped();
        assert_eq!(queue.push(&frame(sequence, size)).unwrap().put, Put::Done);
        queue.dropped() == before
    }

    fn sequences(frames: &[EventFrame]) -> Vec<u64> {
        frames.iter().map(|frame| frame.id.sequence).collect()
    }

    #[test]
    fn the_newest_are_dropped_when_full() {
        let by_count = queue(2, usize::MAX);
        assert!(push(&by_count, 1, 1) && push(&by_count, 2, 1) && !push(&by_count, 3, 1));
        assert_eq!(sequences(&by_count.take_unsent()), [1, 2]);
        let by_bytes = queue(100, 10_000);
        assert!(push(&by_bytes, 1, 9_000) && !push(&by_bytes, 2, 9_000) && push(&by_bytes, 3, 10));
        let alone = queue(100, 10);
        assert!(push(&alone, 1, 9_000), "a single event larger than the bound still passes");
        assert!(!push(&alone, 2, 0));
    }

    #[test]
    fn only_events_without_a_byte_out_come_back() {
        let queue = queue(100, usize::MAX);
        for sequence in 1..=4 {
            assert!(push(&queue, sequence, 100));
        }
        let taken = queue.take().now_or_never().unwrap().unwrap();
        assert!(push(&queue, 5, 100));
        let one = taken.len() / 4;
        assert_eq!(queue.written(0), 0);
        assert_eq!(queue.written(one), 1, "exactly the first");
        assert_eq!(queue.written(one + 1), 1, "one byte of the second");
        let unsent = queue.take_unsent();
        assert_eq!(sequences(&unsent), [3, 4, 5]);
        assert_eq!(unsent[2], frame(5, 100), "as it was");
        assert!(!push(&queue, 6, 1), "what is taken back is closed");
    }

    #[test]
    fn who_pushes_back_takes_what_was_under_way_and_lets_go_when_less_waits() {
        let queue = EventQueue::new(FullLink::PushBack, 2, usize::MAX);
        let put = |sequence| queue.push(&frame(sequence, 30_000)).unwrap().put;
        assert_eq!([1, 2, 3, 4, 5].map(put), [Put::Done, Put::Done, Put::PushBack, Put::PushBack, Put::PushBack]);
        assert_eq!((queue.waiting(), queue.dropped()), (4, 1));
        let sources = std::sync::Arc::new(tokio::sync::Semaphore::new(1));
        let (now, later) = (Instant::now(), Instant::now() + std::time::Duration::from_secs(1));
        queue.hold(sources.clone().try_acquire_owned().unwrap(), later);
        queue.take().now_or_never().unwrap().unwrap();
        assert_eq!((queue.waiting(), sources.available_permits()), (2, 0));
        queue.take().now_or_never().unwrap().unwrap();
        assert_eq!((queue.waiting(), sources.available_permits()), (0, 1));
        queue.hold(sources.clone().try_acquire_owned().unwrap(), later);
        queue.release(now);
        assert_eq!(sources.available_permits(), 0, "the time of those held before is no concern of it");
        queue.release(later);
        assert_eq!(sources.available_permits(), 1);
    }

    #[test]
    fn a_writer_that_has_more_than_half_of_what_may_wait_is_woken_at_once() {
        let waking = |bound_events, bound_bytes| {
            let queue = queue(bound_events, bound_bytes);
            [1, 2, 3, 4, 5].map(|sequence| queue.push(&frame(sequence, 100)).unwrap().wakes)
        };
        use Wakes::{AtOnce, Nobody, WithBatch};
        assert_eq!(waking(4, usize::MAX), [WithBatch, Nobody, AtOnce, Nobody, Nobody]);
        assert_eq!(waking(100, 400), [WithBatch, AtOnce, Nobody, Nobody, Nobody], "of over 100 bytes each");
    }

    #[test]
    fn a_write_is_bounded_and_a_finished_queue_ends() {
        let queue = queue(1_000, usize::MAX);
        for sequence in 0..100 {
            assert!(push(&queue, sequence, 4_000));
        }
        queue.finish();
        let (mut sizes, mut events) = (Vec::new(), 0);
        while let Some(taken) = queue.take().now_or_never().unwrap() {
            sizes.push(taken.len());
            events += queue.written(taken.len());
        }
        assert!(sizes.len() > 5 && sizes.iter().all(|&size| size < 70_000), "{sizes:?}");
        assert_eq!((events, queue.take_unsent().len()), (100, 0));
    }
}
