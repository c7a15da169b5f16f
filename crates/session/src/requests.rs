//! Requests on their way from the handles to the session's task, and the receipts of publications on theirs back, all under one
//! lock: a publication has no channel of its own, and the task takes and answers many at a time.

use crate::ClientError;
use crate::keeper::Request;
use crate::receipts::{Receipts, Ticket};
use enroute_broker::Receipt;
use enroute_filter::Event;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::Notify;

/// Requests that may wait to be sent; the broker has a bound of its own on those that are sent.
const REQUESTS: usize = 256;

/// Filled by the handles, emptied by the session's task.
#[derive(Default)]
pub(crate) struct Requests {
    state: Mutex<State>,
    /// Something to take, or nobody who could bring anything.
    filled: Notify,
    /// Room for more, or the end.
    emptied: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Request>,
    receipts: Receipts,
    /// The last handle is gone.
    abandoned: bool,
    /// The session's task is gone.
    ended: bool,
}

impl Requests {
    /// Hands over a request when there is room.
    pub(crate) async fn put(&self, request: Request) -> Result<(), ClientError> {
        self.enter(self.room().await?, request);
        Ok(())
    }

    /// Hands over a publication when there is room.
    pub(crate) async fn publish(&self, event: Event) -> Result<Ticket, ClientError> {
        let mut state = self.room().await?;
        let ticket = state.receipts.open();
        self.enter(state, Request::Publish { event, ticket });
        Ok(ticket)
    }

    async fn room(&self) -> Result<MutexGuard<'_, State>, ClientError> {
        loop {
            // Begins to listen before it looks.
            let emptied = self.emptied.notified();
            {
                let state = self.lock();
                if state.ended {
                    return Err(over());
                }
                if state.waiting.len() < REQUESTS {
                    return Ok(state);
                }
            }
            emptied.await;
        }
    }

    fn enter(&self, mut state: MutexGuard<'_, State>, request: Request) {
        let first = state.waiting.is_empty();
        state.waiting.push_back(request);
        drop(state);
        if first {
            self.filled.notify_one();
        }
    }

    /// Waits for requests and takes all there are, into what must be empty; false if none will come any more. Cancelling the
    /// wait loses nothing.
    pub(crate) async fn take(&self, taken: &mut VecDeque<Request>) -> bool {
        loop {
            {
                let mut state = self.lock();
                if !state.waiting.is_empty() {
                    std::mem::swap(&mut state.waiting, taken);
                    drop(state);
                    self.emptied.notify_waiters();
                    return true;
                }
                if state.abandoned {
                    return false;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Answers publications; `answers` is left empty.
    pub(crate) fn answer(&self, answers: &mut Vec<(Ticket, Result<Receipt, ClientError>)>) {
        if answers.is_empty() {
            return;
        }
        let mut state = self.lock();
        let mut woken = Vec::new();
        woken.extend(answers.drain(..).filter_map(|(ticket, answer)| state.receipts.answer(ticket, answer)));
        drop(state);
        woken.into_iter().for_each(|waker| waker.wake());
    }

    /// Waits for a receipt, which can be had once.
    pub(crate) fn poll(&self, ticket: Ticket, context: &Context<'_>) -> Poll<Result<Receipt, ClientError>> {
        self.lock().receipts.poll(ticket, context)
    }

    /// Nobody will ask for the receipt.
    pub(crate) fn drop_ticket(&self, ticket: Ticket) {
        self.lock().receipts.drop_ticket(ticket);
    }

    /// No handle will bring anything any more.
    pub(crate) fn abandon(&self) {
        self.lock().abandoned = true;
        self.filled.notify_one();
    }

    /// Nobody takes anything any more: whoever still waits is told.
    fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        let waiting = std::mem::take(&mut state.waiting);
        let woken = state.receipts.answer_all(&over());
        drop(state);
        self.emptied.notify_waiters();
        woken.into_iter().for_each(|waker| waker.wake());
        // Whoever waits for another answer than a receipt sees its sender go.
        drop(waiting);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session's task' end of the requests, which ends them when it is dropped, however that comes.
pub(crate) struct Taker(pub(crate) std::sync::Arc<Requests>);

impl Drop for Taker {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The session's task is gone.
pub(crate) fn over() -> ClientError {
    ClientError::disconnected("the session is over")
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn event() -> Event {
        Event::builder().build().unwrap()
    }

    #[test]
    fn a_full_queue_makes_wait_until_it_is_taken() {
        let requests = Requests::default();
        for _ in 0..REQUESTS {
            requests.publish(event()).now_or_never().expect("room").unwrap();
        }
        let mut one_more = std::pin::pin!(requests.publish(event()));
        assert!(one_more.as_mut().now_or_never().is_none());
        let mut taken = VecDeque::new();
        assert_eq!(requests.take(&mut taken).now_or_never(), Some(true));
        assert_eq!(taken.len(), REQUESTS);
        assert!(one_more.now_or_never().is_some());
        taken.clear();
        requests.abandon();
        assert_eq!(requests.take(&mut taken).now_or_never(), Some(true), "what was handed over comes before the end");
        taken.clear();
        assert_eq!(requests.take(&mut taken).now_or_never(), Some(false));
    }

    #[test]
    fn the_end_is_told_to_all_who_wait() {
        let requests = std::sync::Arc::new(Requests::default());
        let taker = Taker(std::sync::Arc::clone(&requests));
        let ticket = requests.publish(event()).now_or_never().unwrap().unwrap();
        let mut waiting = None;
        for _ in 0..REQUESTS {
            let mut publish = Box::pin(requests.publish(event()));
            if publish.as_mut().now_or_never().is_none() {
                waiting = Some(publish);
            }
        }
        drop(taker);
        assert!(waiting.expect("the last finds no room").now_or_never().unwrap().is_err());
        let context = Context::from_waker(std::task::Waker::noop());
        assert_eq!(requests.poll(ticket, &context), Poll::Ready(Err(over())));
        assert!(requests.publish(event()).now_or_never().unwrap().is_err());
    }
}
