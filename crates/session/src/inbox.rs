//! Deliveries that wait for the application, and the credit the broker has for more.

use crate::Delivery;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Filled by the connection against credit, emptied by the application.
pub(crate) struct Inbox {
    state: Mutex<State>,
    window: usize,
    /// Something to take, or the end.
    filled: Notify,
    /// Room for a grant that is worth a frame.
    emptied: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Delivery>,
    /// Deliveries the broker may still send.
    granted: usize,
    ended: bool,
}

impl Inbox {
    /// At most `window` deliveries wait or are on their way.
    pub(crate) fn new(window: usize) -> Inbox {
        Inbox { state: Mutex::default(), window: window.max(1), filled: Notify::new(), emptied: Notify::new() }
    }

    /// A new connection: the credit of the one before is void.
    pub(crate) fn reset_credit(&self) {
        self.lock().granted = 0;
    }

    /// Waits until half of the window can be granted, and grants all there is room for.
    pub(crate) async fn grant(&self) -> u32 {
        loop {
            {
                let mut state = self.lock();
                if let Some(room) = self.room(&state) {
                    state.granted += room;
                    return u32::try_from(room).unwrap_or(u32::MAX);
                }
            }
            self.emptied.notified().await;
        }
    }

    /// Takes in deliveries; false if the broker had no credit for some, which are left.
    pub(crate) fn push(&self, deliveries: &mut Vec<Delivery>) -> bool {
        if deliveries.is_empty() {
            return true;
        }
        let mut state = self.lock();
        let count = deliveries.len().min(state.granted);
        state.granted -= count;
        state.waiting.extend(deliveries.drain(..count));
        drop(state);
        self.filled.notify_one();
        deliveries.is_empty()
    }

    /// No more will come.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.filled.notify_one();
    }

    /// Waits for the next delivery; `None` after the end.
    pub(crate) async fn next(&self) -> Option<Delivery> {
        loop {
            {
                let mut state = self.lock();
                let next = state.waiting.pop_front();
                if next.is_some() || state.ended {
                    if !state.waiting.is_empty() || state.ended {
                        // Somebody else may wait too, and only one was woken.
                        self.filled.notify_one();
                    }
                    self.tell_room(&state);
                    return next;
                }
            }
            self.filled.notified().await;
        }
    }

    /// The next delivery if one waits.
    pub(crate) fn try_next(&self) -> Option<Delivery> {
        let mut state = self.lock();
        let next = state.waiting.pop_front();
        self.tell_room(&state);
        next
    }

    /// Wakes whoever grants, once there is room for a grant.
    fn tell_room(&self, state: &State) {
        if self.room(state).is_some() {
            self.emptied.notify_one();
        }
    }

    /// The room there is, if it is worth a frame.
    fn room(&self, state: &State) -> Option<usize> {
        let room = self.window - (state.waiting.len() + state.granted).min(self.window);
        (room * 2 >= self.window).then_some(room)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use enroute_broker::{BrokerId, EventId};
    use enroute_filter::Event;
    use futures::FutureExt;

    fn delivery(sequence: u64) -> Delivery {
        let id = EventId { origin: BrokerId(1), incarnation: 1, sequence };
        Delivery { id, event: Event::builder().build().unwrap(), subscriptions: [].into() }
    }

    #[test]
    fn credit_is_never_more_than_room() {
        let inbox = Inbox::new(4);
        assert!(!inbox.push(&mut vec![delivery(0)]), "no credit yet");
        assert_eq!(inbox.grant().now_or_never(), Some(4));
        assert_eq!(inbox.grant().now_or_never(), None);
        for sequence in 1..=4 {
            assert!(inbox.push(&mut vec![delivery(sequence)]));
        }
        assert!(!inbox.push(&mut vec![delivery(5)]));
        assert_eq!(inbox.next().now_or_never().flatten().map(|d| d.id.sequence), Some(1));
        assert_eq!(inbox.grant().now_or_never(), None, "one place is not worth a frame");
        assert!(inbox.try_next().is_some());
        assert_eq!(inbox.grant().now_or_never(), Some(2));
        inbox.reset_credit();
        assert_eq!(inbox.grant().now_or_never(), Some(2), "what the lost connection was granted is granted again");
    }

    #[test]
    fn what_came_before_the_end_is_still_given() {
        let inbox = Inbox::new(4);
        assert_eq!(inbox.grant().now_or_never(), Some(4));
        assert!(inbox.push(&mut vec![delivery(1)]));
        inbox.end();
        assert!(inbox.next().now_or_never().unwrap().is_some());
        assert!(inbox.next().now_or_never().unwrap().is_none());
        assert!(inbox.next().now_or_never().unwrap().is_none());
    }
}
