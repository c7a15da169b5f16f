//! What waits for a client: answers, which are never dropped, and deliveries, which are bounded.

use crate::encoded::Encoded;
use bytes::BytesMut;
use enroute_broker::{Delivery, Receipt, Reply, RequestId};
use enroute_session::SlowSubscriber;
use enroute_wire::{Goodbye, ServerFrame, WireError, encode_delivery};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::Instant;

/// Up to this many bytes of answers are put into one write.
const BATCH_BYTES: usize = 64 << 10;
/// What a delivery has besides its event, if the names with it are few and short.
const DELIVERY_HEAD: usize = 64;

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
    deliveries: Encoded,
    /// Deliveries the client has room for.
    credit: u64,
    delivered: u64,
    dropped: u64,
    /// Held back from those who published what is too much, and until when at most.
    permits: Vec<(Instant, OwnedSemaphorePermit)>,
    goodbye: Option<Goodbye>,
    finished: bool,
}

/// An answer, and what the next one like it waits for.
struct Answer {
    frame: ServerFrame,
    _permit: Option<OwnedSemaphorePermit>,
}

/// What is to be written to a client next.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Answers, or the last words.
    pub(crate) answers: BytesMut,
    /// How many requests are answered.
    pub(crate) answered: usize,
    pub(crate) deliveries: BytesMut,
}

/// What an [`Outbox`] counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OutboxCounts {
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    pub(crate) waiting: usize,
    pub(crate) waiting_bytes: usize,
}

/// What has been put into a queue, and whether whoever empties it is to be woken.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    pub(crate) put: Put,
    pub(crate) wakes: Wakes,
}

/// When whoever empties a queue is to be woken. That is left to whoever has filled it, so that a batch of events is written as
/// one and not by its first event and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakes {
    /// It has been already, or there is nothing for it to do.
    Nobody,
    /// When all is queued that has come together.
    WithBatch,
    /// Now: more than half of what may wait does, and the rest of a batch could be too much while it sleeps.
    AtOnce,
}

impl Wakes {
    /// For something that was the `first` to wait; and before it, and with it, at most half waited of what may.
    pub(crate) fn of_put(first: bool, half_empty_before: bool, half_empty_now: bool) -> Wakes {
        match (half_empty_before && !half_empty_now, first) {
            (true, _) => Wakes::AtOnce,
            (false, true) => Wakes::WithBatch,
            (false, false) => Wakes::Nobody,
        }
    }
}

/// What has become of something that was put into a bounded queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// It waits, or it or another has been dropped and counted.
    Done,
    /// It waits, but whoever published it should be held back.
    PushBack,
    /// Too much was waiting for a client, which is being cut off.
    CutOff,
}

impl Outbox {
    pub(crate) fn new(policy: SlowSubscriber, bound_events: usize, bound_bytes: usize) -> Outbox {
        Outbox { state: Mutex::default(), filled: Notify::new(), policy, bound_events, bound_bytes }
    }

    pub(crate) fn policy(&self) -> SlowSubscriber {
        self.policy
    }

    /// Appends the answer to a request; whether that [wakes](Outbox::wake). There are never more than the client may have requests
    /// outstanding. Receipts that continue each other become one.
    #[must_use]
    pub(crate) fn reply(&self, request: RequestId, reply: Reply) -> bool {
        let mut state = self.lock();
        let first = state.answers.is_empty();
        if let Reply::Published(receipt) = reply {
            let last = state.answers.back_mut().map(|answer| &mut answer.frame);
            if let Some(ServerFrame::Receipts { first, count, receipt: begun }) = last
                && continues(*first, *count, begun, request, &receipt)
            {
                *count += 1;
                return false;
            }
            state.push_answer(ServerFrame::Receipts { first: request, count: 1, receipt }, None);
        } else {
            state.push_answer(ServerFrame::Reply { request, reply }, None);
        }
        first
    }

    /// Wakes the client's writer: something has been put in.
    pub(crate) fn wake(&self) {
        self.filled.notify_one();
    }

    /// Appends an answer that may be long: the permit is given back when it has left the queue, so that no more of its kind
    /// wait than there are permits.
    pub(crate) fn answer_holding(&self, frame: ServerFrame, permit: OwnedSemaphorePermit) {
        self.lock().push_answer(frame, Some(permit));
        self.filled.notify_one();
    }

    /// Appends a delivery, by the client's policy.
    pub(crate) fn deliver(&self, delivery: &Delivery) -> Queued {
        let quiet = |put| Queued { put, wakes: Wakes::Nobody };
        let size = delivery.event.len();
        let mut state = self.lock();
        if state.finished {
            return quiet(Put::Done);
        }
        let full = self.exceeds(&state, size, 1);
        let outcome = match self.policy {
            SlowSubscriber::DropOldest => {
                while self.exceeds(&state, size, 1) && state.deliveries.drop_oldest() {
                    state.dropped += 1;
                }
                Put::Done
            }
            SlowSubscriber::DropNewest if full => {
                state.dropped += 1;
                return quiet(Put::Done);
            }
            SlowSubscriber::Disconnect if full => {
                state.dropped += 1 + state.deliveries.frames() as u64;
                state.deliveries.clear();
                state.goodbye = Some(Goodbye::TooSlow);
                state.finished = true;
                return Queued { put: Put::CutOff, wakes: Wakes::WithBatch };
            }
            // What was under way when the publishers were held back is still taken, as much again as may wait.
            SlowSubscriber::PushBack if self.exceeds(&state, size, 2) => {
                state.dropped += 1;
                return quiet(Put::PushBack);
            }
            SlowSubscriber::PushBack if full => Put::PushBack,
            SlowSubscriber::DropNewest | SlowSubscriber::Disconnect | SlowSubscriber::PushBack => Put::Done,
        };
        let (first, half_empty) = (state.deliveries.frames() == 0, self.is_half_empty(&state));
        if let Err(error) = state.deliveries.push(size + DELIVERY_HEAD, |out| encode_delivery(delivery, out)) {
            tracing::error!(%error, "a delivery that cannot be encoded is dropped");
            state.dropped += 1;
        }
        // Whoever left some behind lacked credit, and hears of more of that.
        let wakes = match state.credit {
            0 => Wakes::Nobody,
            _ => Wakes::of_put(first, half_empty, self.is_half_empty(&state)),
        };
        Queued { put: outcome, wakes }
    }

    /// Whether at most half waits of what may.
    fn is_half_empty(&self, state: &State) -> bool {
        state.deliveries.frames() * 2 <= self.bound_events && state.deliveries.bytes() * 2 <= self.bound_bytes
    }

    /// Whether one more of `size` bytes is more than `times` the bounds. A single one always passes.
    fn exceeds(&self, state: &State, size: usize, times: usize) -> bool {
        let (events, bytes) = (state.deliveries.frames(), state.deliveries.bytes());
        events > 0
            && (events >= self.bound_events.saturating_mul(times)
                || bytes.saturating_add(size) > self.bound_bytes.saturating_mul(times))
    }

    /// Keeps a publisher from going on until less waits, or until it is [released](Outbox::release).
    pub(crate) fn hold(&self, permit: OwnedSemaphorePermit, until: Instant) {
        self.lock().permits.push((until, permit));
    }

    /// Lets those publishers go on that were to be held until `now` at most.
    pub(crate) fn release(&self, now: Instant) {
        self.lock().permits.retain(|(until, _)| *until > now);
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
    }

    /// Waits for something to send and takes a write's worth of it; `None` after the end.
    ///
    /// # Errors
    /// An answer that cannot be encoded, which the core never gives; it is left out.
    pub(crate) async fn take(&self) -> Result<Option<Batch>, WireError> {
        loop {
            {
                let mut state = self.lock();
                let batch = state.take_batch()?;
                if self.is_half_empty(&state) {
                    state.permits.clear();
                }
                if batch.is_some() || (state.finished && state.goodbye.is_none()) {
                    return Ok(batch);
                }
            }
            self.filled.notified().await;
        }
    }

    pub(crate) fn counts(&self) -> OutboxCounts {
        let state = self.lock();
        OutboxCounts {
            delivered: state.delivered,
            dropped: state.dropped,
            waiting: state.deliveries.frames(),
            waiting_bytes: state.deliveries.bytes(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push_answer(&mut self, frame: ServerFrame, permit: Option<OwnedSemaphorePermit>) {
        if !self.finished {
            self.answers.push_back(Answer { frame, _permit: permit });
        }
    }

    fn take_batch(&mut self) -> Result<Option<Batch>, WireError> {
        let mut batch = Batch::default();
        while batch.answers.len() < BATCH_BYTES
            && let Some(answer) = self.answers.pop_front()
        {
            batch.answered += match &answer.frame {
                ServerFrame::Receipts { count, .. } => *count as usize,
                _ => 1,
            };
            answer.frame.encode(&mut batch.answers)?;
        }
        let credit = usize::try_from(self.credit).unwrap_or(usize::MAX);
        if let Some(piece) = self.deliveries.take(credit) {
            self.credit -= piece.frames as u64;
            self.delivered += piece.frames as u64;
            batch.deliveries = piece.bytes;
        }
        if batch.answers.is_empty()
            && batch.deliveries.is_empty()
            && let Some(goodbye) = self.goodbye.take()
        {
            ServerFrame::Goodbye(goodbye).encode(&mut batch.answers)?;
        }
        Ok((!batch.answers.is_empty() || !batch.deliveries.is_empty()).then_some(batch))
    }
}

/// Whether a receipt is the next after `count` receipts that begin with another: it differs in its numbers alone, and they follow.
fn continues(first: RequestId, count: u32, begun: &Receipt, request: RequestId, receipt: &Receipt) -> bool {
    let mut expected = *begun;
    expected.id.sequence += u64::from(count);
    first.0.checked_add(u64::from(count)) == Some(request.0) && *receipt == expected && count < u32::MAX
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
        Delivery { id, event: vec![0; 100].into(), subscriptions: [].into() }
    }

    #[test]
    fn a_long_answer_holds_back_the_next_until_it_leaves() {
        let (outbox, one) = (Outbox::new(SlowSubscriber::DropOldest, 2, 1 << 20), Arc::new(Semaphore::new(1)));
        let permit = Arc::clone(&one).try_acquire_owned().unwrap();
        let status = ServerFrame::Status { request: enroute_broker::RequestId(1), json: "{}".into() };
        outbox.answer_holding(status, permit);
        assert_eq!(one.available_permits(), 0);
        assert_eq!(outbox.take().now_or_never().unwrap().unwrap().unwrap().answered, 1);
        assert_eq!(one.available_permits(), 1);
    }

    /// Fills an outbox of two with deliveries 1 to 5.
    fn filled(policy: SlowSubscriber) -> (Outbox, Vec<Put>) {
        let outbox = Outbox::new(policy, 2, usize::MAX);
        let puts = (1..=5).map(|sequence| outbox.deliver(&delivery(sequence)).put).collect();
        (outbox, puts)
    }

    fn sent(outbox: &Outbox) -> Vec<ServerFrame> {
        let mut frames = FrameReader::new(Traffic::ToClient);
        while let Some(Ok(Some(batch))) = outbox.take().now_or_never() {
            frames.push(&batch.answers);
            frames.push(&batch.deliveries);
        }
        std::iter::from_fn(|| frames.next_frame().unwrap()).map(|frame| ServerFrame::decode(frame).unwrap()).collect()
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
        assert!(outbox.reply(RequestId(1), Reply::Withdrawn));
        assert_eq!(sent(&outbox), [ServerFrame::Reply { request: RequestId(1), reply: Reply::Withdrawn }]);
        outbox.add_credit(1);
        assert_eq!(sequences(&sent(&outbox)), [4]);
        assert_eq!(outbox.counts().waiting, 1);
    }

    #[test]
    fn what_waits_already_wakes_nobody_again() {
        let outbox = Outbox::new(SlowSubscriber::PushBack, 4, usize::MAX);
        let wakes = |sequence| outbox.deliver(&delivery(sequence)).wakes;
        assert_eq!(wakes(1), Wakes::Nobody, "whoever has no credit hears of that");
        outbox.add_credit(3);
        assert_eq!(sequences(&sent(&outbox)), [1]);
        assert_eq!([2, 3].map(wakes), [Wakes::WithBatch, Wakes::Nobody]);
        assert_eq!(sequences(&sent(&outbox)), [2, 3]);
        assert_eq!(wakes(4), Wakes::Nobody, "the credit is used up");
    }

    #[test]
    fn who_has_more_than_half_of_what_may_wait_is_woken_at_once() {
        let waking = |bound_events, bound_bytes| {
            let outbox = Outbox::new(SlowSubscriber::DropNewest, bound_events, bound_bytes);
            outbox.add_credit(9);
            [1, 2, 3, 4, 5].map(|sequence| outbox.deliver(&delivery(sequence)).wakes)
        };
        use Wakes::{AtOnce, Nobody, WithBatch};
        assert_eq!(waking(4, usize::MAX), [WithBatch, Nobody, AtOnce, Nobody, Nobody]);
        assert_eq!(waking(100, 400), [WithBatch, AtOnce, Nobody, Nobody, Nobody], "of over 100 bytes each");
        assert_eq!(waking(1, usize::MAX), [AtOnce, Nobody, Nobody, Nobody, Nobody]);
    }

    #[test]
    fn held_publishers_go_on_when_less_waits() {
        let (outbox, _) = filled(SlowSubscriber::PushBack);
        let permits = Arc::new(Semaphore::new(1));
        let (now, later) = (Instant::now(), Instant::now() + std::time::Duration::from_secs(1));
        outbox.hold(permits.clone().try_acquire_owned().unwrap(), later);
        outbox.add_credit(1);
        sent(&outbox);
        assert_eq!(permits.available_permits(), 0, "three of two still wait");
        outbox.add_credit(2);
        sent(&outbox);
        assert_eq!(permits.available_permits(), 1);
        outbox.hold(permits.clone().try_acquire_owned().unwrap(), later);
        outbox.release(now);
        assert_eq!(permits.available_permits(), 0, "the time of those held before is no concern of it");
        outbox.release(later);
        assert_eq!(permits.available_permits(), 1);
    }

    #[test]
    fn receipts_that_continue_each_other_are_one_answer() {
        let outbox = Outbox::new(SlowSubscriber::DropOldest, 2, 1 << 20);
        let receipt = |sequence, destinations| Receipt { id: delivery(sequence).id, destinations, complete: true };
        let published = [(1, 11, 0), (2, 12, 0), (3, 13, 0), (4, 14, 7), (5, 15, 7), (6, 17, 7), (8, 18, 7)];
        let wakes = published.map(|(request, sequence, destinations)| {
            outbox.reply(RequestId(request), Reply::Published(receipt(sequence, destinations)))
        });
        assert_eq!(wakes, [true, false, false, false, false, false, false]);
        let batch = outbox.take().now_or_never().unwrap().unwrap().unwrap();
        assert_eq!(batch.answered, published.len());
        let mut frames = FrameReader::new(Traffic::ToClient);
        frames.push(&batch.answers);
        let frames = std::iter::from_fn(|| frames.next_frame().unwrap());
        let frames: Vec<ServerFrame> = frames.map(|frame| ServerFrame::decode(frame).unwrap()).collect();
        let runs = [(1, 3, 11, 0), (4, 2, 14, 7), (6, 1, 17, 7), (8, 1, 18, 7)];
        assert_eq!(
            frames,
            runs.map(|(first, count, sequence, destinations)| ServerFrame::Receipts {
                first: RequestId(first),
                count,
                receipt: receipt(sequence, destinations)
            })
        );
    }

    #[test]
    fn last_words_come_last() {
        let (outbox, _) = filled(SlowSubscriber::DropNewest);
        outbox.add_credit(1);
        outbox.finish(Goodbye::ShuttingDown);
        assert_eq!(outbox.deliver(&delivery(9)), Queued { put: Put::Done, wakes: Wakes::Nobody });
        let frames = sent(&outbox);
        assert_eq!(sequences(&frames), [1, 0]);
        assert_eq!(frames[1], ServerFrame::Goodbye(Goodbye::ShuttingDown));
        assert!(outbox.take().now_or_never().unwrap().unwrap().is_none());
    }
}
