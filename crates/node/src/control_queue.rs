//! Control that waits for a neighbour: encoded, in order, never dropped.

use bytes::BytesMut;
use enroute_broker::Message;
use enroute_wire::WireError;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Filled by the event loop, emptied by the link's control writer.
pub(crate) struct ControlQueue {
    state: Mutex<State>,
    filled: Notify,
    bound_bytes: usize,
}

#[derive(Default)]
struct State {
    bytes: BytesMut,
    finished: bool,
}

/// Why control cannot be queued: the link is to be closed, since nothing of it may be left out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    #[error("the neighbour does not keep up: {waiting} bytes of control wait for it, at most {bound} may")]
    Overflow { waiting: usize, bound: usize },
    #[error("control that cannot be encoded: {0}")]
    Encode(#[from] WireError),
}

impl ControlQueue {
    pub(crate) fn new(bound_bytes: usize) -> ControlQueue {
        ControlQueue { state: Mutex::default(), filled: Notify::new(), bound_bytes }
    }

    /// Appends a message.
    pub(crate) fn push(&self, message: &Message) -> Result<(), ControlError> {
        let mut state = self.lock();
        if state.finished {
            return Ok(());
        }
        enroute_wire::encode_message(message, &mut state.bytes)?;
        let waiting = state.bytes.len();
        if waiting > self.bound_bytes {
            return Err(ControlError::Overflow { waiting, bound: self.bound_bytes });
        }
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Appends last words; nothing is taken in afterwards.
    pub(crate) fn finish(&self, last_words: &[u8]) {
        let mut state = self.lock();
        if !state.finished {
            state.bytes.extend_from_slice(last_words);
            state.finished = true;
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Waits for something to write and takes all of it; `None` when finished and empty.
    pub(crate) async fn take(&self) -> Option<BytesMut> {
        loop {
            {
                let mut state = self.lock();
                if !state.bytes.is_empty() {
                    return Some(state.bytes.split());
                }
                if state.finished {
                    return None;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Bytes waiting.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.lock().bytes.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn what_is_finished_is_drained_and_then_ends() {
        let queue = ControlQueue::new(100);
        assert!(queue.take().now_or_never().is_none(), "nothing to take yet");
        queue.push(&Message::Synced).unwrap();
        let bytes = queue.waiting_bytes();
        queue.finish(b"bye");
        queue.push(&Message::Synced).unwrap();
        let taken = queue.take().now_or_never().unwrap().unwrap();
        assert_eq!(taken.len(), bytes + 3);
        assert!(queue.take().now_or_never().unwrap().is_none());
    }

    #[test]
    fn too_much_is_an_error() {
        let queue = ControlQueue::new(1_000);
        let error = (0..=1_000).find_map(|_| queue.push(&Message::SyncedAck).err()).unwrap();
        assert!(error.to_string().contains("at most 1000 may"), "{error}");
    }
}
