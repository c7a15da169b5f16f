//! Events that wait for an uplink.

use crate::EventId;
use enroute_filter::Event;
use std::collections::VecDeque;

/// An event with its id and hop limit.
pub(crate) type KeptEvent = (EventId, u16, Event);

/// Events that are to go up, in order.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    events: VecDeque<KeptEvent>,
    bytes: usize,
}

impl Kept {
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The ids of all, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = EventId> {
        self.events.iter().map(|&(id, _, _)| id)
    }

    /// Keeps an event, behind all others.
    pub(crate) fn push(&mut self, mut kept: KeptEvent) {
        kept.2 = kept.2.unshared();
        self.bytes += kept.2.as_bytes().len();
        self.events.push_back(kept);
    }

    /// Keeps an event that has been on its way up already, before all others.
    pub(crate) fn put_back(&mut self, mut kept: KeptEvent) {
        kept.2 = kept.2.unshared();
        self.bytes += kept.2.as_bytes().len();
        self.events.push_front(kept);
    }

    /// The oldest event.
    pub(crate) fn pop(&mut self) -> Option<KeptEvent> {
        let kept = self.events.pop_front()?;
        self.bytes -= kept.2.as_bytes().len();
        Some(kept)
    }

    /// Drops the oldest events until no more than so many are left, of no more than so many bytes; says how many.
    pub(crate) fn bound(&mut self, events: usize, bytes: usize) -> u64 {
        let mut dropped = 0;
        while (self.events.len() > events || self.bytes > bytes) && self.pop().is_some() {
            dropped += 1;
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BrokerId;

    #[test]
    fn the_oldest_go_first_by_count_and_by_bytes() {
        let event = Event::builder().attribute("x", 1).build().expect("an event");
        let size = event.as_bytes().len();
        let id = |sequence| EventId { origin: BrokerId(1), incarnation: 1, sequence };
        let mut kept = Kept::default();
        (2..=5).for_each(|sequence| kept.push((id(sequence), 9, event.clone())));
        kept.put_back((id(1), 9, event.clone()));
        assert_eq!(kept.bound(4, 100 * size), 1);
        assert_eq!(kept.bound(4, 3 * size + 1), 1);
        let left: Vec<u64> = std::iter::from_fn(|| kept.pop()).map(|(id, _, _)| id.sequence).collect();
        assert_eq!((left, kept.bytes, kept.is_empty()), (vec![3, 4, 5], 0, true));
    }
}
