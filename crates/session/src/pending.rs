//! What is asked on a connection and not answered yet.

use crate::ClientError;
use crate::keeper::{Request, Waiter};
use enroute_broker::RequestId;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Requests taken from the handles: those that are still to be sent, and those that are.
pub(crate) struct Pending {
    state: Mutex<Sent>,
    /// How many may be sent and not answered.
    max_requests: usize,
    /// There is room for more, or the last waiter is gone.
    answered: Notify,
}

/// What is sent, and what is next: numbers follow each other.
#[derive(Default)]
pub(crate) struct Sent {
    /// Taken, and not sent.
    pub(crate) unsent: VecDeque<Request>,
    /// The number of the first of `waiters`.
    first: u64,
    /// None if it has been answered; the first has not.
    waiters: VecDeque<Option<Waiter>>,
    unanswered: usize,
}

impl Pending {
    pub(crate) fn new(max_requests: usize, unsent: VecDeque<Request>) -> Pending {
        let state = Sent { unsent, first: 1, ..Sent::default() };
        Pending { state: Mutex::new(state), max_requests, answered: Notify::new() }
    }

    /// Waits until everything is answered.
    pub(crate) async fn settled(&self) {
        while self.lock().unanswered > 0 {
            self.answered.notified().await;
        }
    }

    /// Waits until the broker takes one more.
    pub(crate) async fn room(&self) {
        while !self.has_room(&self.lock()) {
            self.answered.notified().await;
        }
    }

    pub(crate) fn has_room(&self, sent: &Sent) -> bool {
        sent.unanswered < self.max_requests
    }

    /// Requests whose numbers follow each other have answers; the broker takes as many more.
    pub(crate) fn answered(
        &self,
        first: RequestId,
        count: u32,
        mut each: impl FnMut(RequestId, Waiter),
    ) -> Result<(), ClientError> {
        let mut sent = self.lock();
        let was_full = !self.has_room(&sent);
        for request in (first.0..=u64::MAX).take(count as usize).map(RequestId) {
            let waiter = sent.take(request);
            let unasked = || ClientError::protocol(format!("an answer to no request: {}", request.0));
            each(request, waiter.ok_or_else(unasked)?);
        }
        if was_full || sent.unanswered == 0 {
            self.answered.notify_one();
        }
        Ok(())
    }

    /// All that nobody will answer any more.
    pub(crate) fn abandoned(&self) -> Vec<Waiter> {
        let Sent { unsent, waiters, .. } = std::mem::take(&mut *self.lock());
        waiters.into_iter().flatten().chain(unsent.into_iter().filter_map(Request::into_waiter)).collect()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Sent> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sent {
    /// The number of the next request.
    pub(crate) fn next(&self) -> RequestId {
        RequestId(self.first + self.waiters.len() as u64)
    }

    /// A request has got the next number.
    pub(crate) fn push(&mut self, waiter: Waiter) {
        self.waiters.push_back(Some(waiter));
        self.unanswered += 1;
    }

    fn take(&mut self, request: RequestId) -> Option<Waiter> {
        let index = usize::try_from(request.0.checked_sub(self.first)?).ok()?;
        let waiter = self.waiters.get_mut(index)?.take()?;
        self.unanswered -= 1;
        while self.waiters.front().is_some_and(Option::is_none) {
            self.waiters.pop_front();
            self.first += 1;
        }
        Some(waiter)
    }
}
