//! What waits for a client: answers, which are never dropped, and deliveries, which are bounded.

use bytes::BytesMut;
use enroute_broker::Delivery;
use enroute_session::SlowSubscriber;
use enroute_wire::{Goodbye, ServerFrame, WireError};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit};

/// Up to this many bytes are put into one write.
const BATCH_BYTES: usize = 64 << 10;
/// What a delivery is reckoned to take besides its event.
const OVERHEAD_BYTES: usize = 128;

/// Filled by the event loop, emptied by the client's writer.
pub(crate) struct Outbox {
    state: Mutex<State>,
    filled: Notify,
    policy: SlowSubscriber,
    bound_events: usize,
    bound_bytes: usize,
}

#[derive(Default)]
struct State {
    answers: VecDeque<Answer>,
    deliveries: VecDeque<Delivery>,
    /// Sum of the reckoned sizes of `deliveries`.
    bytes: usize,
    /// Deliveries the client has room for.
    credit: u64,
    delivered: u64,
    dropped: u64,
    /// Held back from those who published what is too much.
    permits: Vec<OwnedSemaphorePermit>,
    goodbye: Option<Goodbye>,
    finished: bool,
}

/// An answer, and what the next one like it waits for.
struct Answer {
    frame: ServerFrame,
    _permit: Option<OwnedSemaphorePermit>,
}

/// What an [`Outbox`] counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutboxCounts {
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    pub(crate) waiting: usize,
    pub(crate) waiting_bytes: usize,
}

/// What has become of a delivery that was put into an [`Outbox`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// It waits, or it or another has been dropped and counted.
    Done,
    /// It waits, but whoever published it should be held back.
    PushBack,
    /// Too much was waiting; the client is being cut off.
    CutOff,
}

impl Outbox {
    pub(crate) fn new(policy: SlowSubscriber, bound_events: usize, bound_bytes: usize) -> Outbox {
        Outbox { state: Mutex::default(), filled: Notify::new(), policy, bound_events, bound_bytes }
    }

    pub(crate) fn policy(&self) -> SlowSubscriber {
        self.policy
    }

    /// Appends an answer. There are never more than the client may have requests outstanding.
    pub(crate) fn answer(&self, frame: ServerFrame) {
        self.push_answer(Answer { frame, _permit: None });
    }

    /// Appends an answer that may be long: the permit is given back when it has left the queue, so that no more of its kind
    /// wait than there are permits.
    pub(crate) fn answer_holding(&self, frame: ServerFrame, permit: OwnedSemaphorePermit) {
        self.push_answer(Answer { frame, _permit: Some(permit) });
    }

    fn push_answer(&self, answer: Answer) {
        let mut state = self.lock();
        if !state.finished {
            state.answers.push_back(answer);
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Appends a delivery, by the client's policy.
    pub(crate) fn deliver(&self, delivery: Delivery) -> Put {
        let size = size_of_delivery(&delivery);
        let mut state = self.lock();
        if state.finished {
            return Put::Done;
        }
        let full = self.exceeds(&state, size, 1);
        let outcome = match self.policy {
            SlowSubscriber::DropOldest => {
                while self.exceeds(&state, size, 1)
                    && let Some(oldest) = state.deliveries.pop_front()
                {
                    state.bytes -= size_of_delivery(&oldest);
                    state.dropped += 1;
                }
                Put::Done
            }
            SlowSubscriber::DropNewest if full => {
                state.dropped += 1;
                return Put::Done;
            }
            SlowSubscriber::Disconnect if full => {
                state.dropped += 1 + state.deliveries.len() as u64;
                state.deliveries.clear();
                state.bytes = 0;
                state.goodbye = Some(Goodbye::TooSlow);
                state.finished = true;
                drop(state);
                self.filled.notify_one();
                return Put::CutOff;
            }
            // What was under way when the publishers were held back is still taken, as much again as may wait.
            SlowSubscriber::PushBack if self.exceeds(&state, size, 2) => {
                state.dropped += 1;
                return Put::PushBack;
            }
            SlowSubscriber::PushBack if full => Put::PushBack,
            SlowSubscriber::DropNewest | SlowSubscriber::Disconnect | SlowSubscriber::PushBack => Put::Done,
        };
        state.bytes += size;
        state.deliveries.push_back(delivery);
        let wake = state.credit > 0;
        drop(state);
        if wake {
            self.filled.notify_one();
        }
        outcome
    }

    /// Whether one more of `size` bytes is more than `times` the bounds. A single one always passes.
    fn exceeds(&self, state: &State, size: usize, times: usize) -> bool {
        !state.deliveries.is_empty()
            && (state.deliveries.len() >= self.bound_events.saturating_mul(times)
                || state.bytes.saturating_add(size) > self.bound_bytes.saturating_mul(times))
    }

    /// Keeps a publisher from going on until less waits, or until [`Outbox::release`].
    pub(crate) fn hold(&self, permit: OwnedSemaphorePermit) {
        self.lock().permits.push(permit);
    }

    /// Lets held publishers go on.
    pub(crate) fn release(&self) {
        self.lock().permits.clear();
    }

    /// The client has room for more.
    pub(crate) fn add_credit(&self, deliveries: u32) {
        let mut state = self.lock();
        state.credit = state.credit.saturating_add(u64::from(deliveries));
        drop(state);
        self.filled.notify_one();
    }

    /// Takes nothing in any more. Answers that wait still go out, and deliveries as far as there is credit; then the goodbye.
    pub(crate) fn finish(&self, goodbye: Goodbye) {
        let mut state = self.lock();
        if !state.finished {
            state.finished = true;
            state.goodbye = Some(goodbye);
        }
        state.permits.clear();
        drop(state);
        self.filled.notify_one();
    }

    /// Drops all that waits: nobody will take it any more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.finished = true;
        state.answers.clear();
        state.deliveries.clear();
        state.permits.clear();
        state.bytes = 0;
    }

    /// Waits for something to send and encodes a batch of it into `buffer`. Returns how many answers are in it; `None` after
    /// the end.
    ///
    /// # Errors
    /// Something that cannot be encoded, which the core never gives; it is left out.
    pub(crate) async fn encode_batch(&self, buffer: &mut BytesMut) -> Result<Option<usize>, WireError> {
        loop {
            if let Some(answers) = self.try_encode_batch(buffer)? {
                return Ok(Some(answers));
            }
            {
                let state = self.lock();
                if state.finished && state.goodbye.is_none() {
                    return Ok(None);
                }
            }
            self.filled.notified().await;
        }
    }

    fn try_encode_batch(&self, buffer: &mut BytesMut) -> Result<Option<usize>, WireError> {
        let mut state = self.lock();
        let mut answers = 0;
        while buffer.len() < BATCH_BYTES
            && let Some(answer) = state.answers.pop_front()
        {
            answers += 1;
            answer.frame.encode(buffer)?;
        }
        while buffer.len() < BATCH_BYTES
            && state.credit > 0
            && let Some(delivery) = state.deliveries.pop_front()
        {
            state.bytes -= size_of_delivery(&delivery);
            state.credit -= 1;
            state.delivered += 1;
            ServerFrame::Delivery(delivery).encode(buffer)?;
        }
        if state.deliveries.len() * 2 <= self.bound_events && state.bytes * 2 <= self.bound_bytes {
            state.permits.clear();
        }
        if buffer.is_empty()
            && let Some(goodbye) = state.goodbye.take()
        {
            ServerFrame::Goodbye(goodbye).encode(buffer)?;
        }
        Ok((!buffer.is_empty()).then_some(answers))
    }

    pub(crate) fn counts(&self) -> OutboxCounts {
        let state = self.lock();
        OutboxCounts {
            delivered: state.delivered,
            dropped: state.dropped,
            waiting: state.deliveries.len(),
            waiting_bytes: state.bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size_of_delivery(delivery: &Delivery) -> usize {
    let names: usize = delivery.subscriptions.iter().map(|name| name.len() + 16).sum();
    delivery.event.len() + names + OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use enroute_broker::{BrokerId, EventId};
    use enroute_wire::{FrameReader, Traffic};
    use futures::FutureExt;
    use std::sync::Arc;
    use tokio::sync::Semaphore;

    fn delivery(sequence: u64) -> Delivery {
        let id = EventId { origin: BrokerId(1), incarnation: 1, sequence };
        Delivery { id, event: vec![0; 100].into(), subscriptions: Vec::new() }
    }

    #[test]
    fn a_long_answer_holds_back_the_next_until_it_leaves() {
        let (outbox, one) = (Outbox::new(SlowSubscriber::DropOldest, 2, 1 << 20), Arc::new(Semaphore::new(1)));
        let permit = Arc::clone(&one).try_acquire_owned().unwrap();
        let status = ServerFrame::Status { request: enroute_broker::RequestId(1), json: "{}".into() };
        outbox.answer_holding(status, permit);
        assert_eq!(one.available_permits(), 0);
        let mut buffer = BytesMut::new();
        assert_eq!(outbox.encode_batch(&mut buffer).now_or_never().unwrap().unwrap(), Some(1));
        assert_eq!(one.available_permits(), 1);
    }

    /// Fills an outbox of two with deliveries 1 to 5.
    fn filled(policy: SlowSubscriber) -> (Outbox, Vec<Put>) {
        let outbox = Outbox::new(policy, 2, usize::MAX);
        let puts = (1..=5).map(|sequence| outbox.deliver(delivery(sequence))).collect();
        (outbox, puts)
    }

    fn sent(outbox: &Outbox) -> Vec<ServerFrame> {
        let mut buffer = BytesMut::new();
        let mut frames = FrameReader::new(Traffic::ToClient);
        while let Some(Ok(Some(_))) = outbox.encode_batch(&mut buffer).now_or_never() {
            frames.push(&buffer.split());
        }
        std::iter::from_fn(|| frames.next_frame().unwrap()).map(|frame| ServerFrame::decode(&frame).unwrap()).collect()
    }

    fn sequences(frames: &[ServerFrame]) -> Vec<u64> {
        let sequence = |frame: &ServerFrame| match frame {
            ServerFrame::Delivery(delivery) => delivery.id.sequence,
            _ => 0,
        };
        frames.iter().map(sequence).collect()
    }

    #[test]
    fn policies_differ_in_what_is_lost() {
        let (outbox, puts) = filled(SlowSubscriber::DropOldest);
        outbox.add_credit(9);
        assert_eq!((sequences(&sent(&outbox)), outbox.counts().dropped), (vec![4, 5], 3));
        assert_eq!(puts, [Put::Done; 5]);

        let (outbox, puts) = filled(SlowSubscriber::DropNewest);
        outbox.add_credit(9);
        assert_eq!((sequences(&sent(&outbox)), outbox.counts().dropped), (vec![1, 2], 3));
        assert_eq!(puts, [Put::Done; 5]);

        let (outbox, puts) = filled(SlowSubscriber::Disconnect);
        outbox.add_credit(9);
        assert_eq!(sent(&outbox), [ServerFrame::Goodbye(Goodbye::TooSlow)]);
        assert_eq!((puts[2], outbox.counts().dropped), (Put::CutOff, 3));

        let (outbox, puts) = filled(SlowSubscriber::PushBack);
        outbox.add_credit(9);
        assert_eq!((sequences(&sent(&outbox)), outbox.counts().dropped), (vec![1, 2, 3, 4], 1));
        assert_eq!(puts, [Put::Done, Put::Done, Put::PushBack, Put::PushBack, Put::PushBack]);
    }

    #[test]
    fn answers_pass_deliveries_without_credit() {
        let (outbox, _) = filled(SlowSubscriber::DropOldest);
        let status = ServerFrame::Status { request: enroute_broker::RequestId(1), json: "{}".into() };
        outbox.answer(status.clone());
        assert_eq!(sent(&outbox), [status]);
        outbox.add_credit(1);
        assert_eq!(sequences(&sent(&outbox)), [4]);
        assert_eq!(outbox.counts().waiting, 1);
    }

    #[test]
    fn held_publishers_go_on_when_less_waits() {
        let (outbox, _) = filled(SlowSubscriber::PushBack);
        let permits = Arc::new(Semaphore::new(1));
        outbox.hold(permits.clone().try_acquire_owned().unwrap());
        outbox.add_credit(1);
        sent(&outbox);
        assert_eq!(permits.available_permits(), 0, "three of two still wait");
        outbox.add_credit(2);
        sent(&outbox);
        assert_eq!(permits.available_permits(), 1);
        outbox.hold(permits.clone().try_acquire_owned().unwrap());
        outbox.release();
        assert_eq!(permits.available_permits(), 1);
    }

    #[test]
    fn last_words_come_last() {
        let (outbox, _) = filled(SlowSubscriber::DropNewest);
        outbox.add_credit(1);
        outbox.finish(Goodbye::ShuttingDown);
        assert_eq!(outbox.deliver(delivery(9)), Put::Done);
        let frames = sent(&outbox);
        assert_eq!(sequences(&frames), [1, 0]);
        assert_eq!(frames[1], ServerFrame::Goodbye(Goodbye::ShuttingDown));
        assert!(outbox.encode_batch(&mut BytesMut::new()).now_or_never().unwrap().unwrap().is_none());
    }
}
