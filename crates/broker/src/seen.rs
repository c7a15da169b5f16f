//! The seen-window: events that came from a leaf or from an uplink are known again if they come once more.
//!
//! A leaf that changes its uplink can be sent one event over both, and while paths in a tree of leaves are being told, an
//! event can come round to where it was. For each life of an origin the sequences seen are kept as bits. What is older than
//! the last [`SPAN`] of them counts as seen: it is dropped rather than delivered twice.

use crate::{EventId, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Sequences of one origin that are told apart.
const SPAN: u64 = 65_536;

/// Words of 64 bits that all origins may take together; beyond, the origins that have been silent longest are forgotten.
const MAX_WORDS: usize = 131_072;

/// The life of a broker in which it published: id and incarnation.
type Life = (u64, u64);

/// One life of an origin.
#[derive(Debug, Default)]
struct Origin {
    /// Bits by sequence / 64.
    words: BTreeMap<u64, u64>,
    last: Time,
}

/// What has been seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    origins: BTreeMap<Life, Origin>,
    by_age: BTreeSet<(Time, Life)>,
    words: usize,
}

impl Seen {
    /// Notes an event, and says whether it is new. Origins that have been silent for `remembered` are forgotten.
    pub(crate) fn is_new(&mut self, id: EventId, now: Time, remembered: Duration) -> bool {
        self.forget_silent(now, remembered);
        let life = (id.origin.0, id.incarnation);
        let origin = self.origins.entry(life).or_default();
        self.by_age.remove(&(origin.last, life));
        self.by_age.insert((now, life));
        origin.last = now;
        let (word, bit) = (id.sequence / 64, 1 << (id.sequence % 64));
        let newest = origin.words.last_key_value().map_or(word, |(&newest, _)| newest.max(word));
        let oldest = (newest + 1).saturating_sub(SPAN / 64);
        if word < oldest {
            return false;
        }
        let before = origin.words.len();
        let bits = origin.words.entry(word).or_default();
        let is_new = *bits & bit == 0;
        *bits |= bit;
        while origin.words.first_key_value().is_some_and(|(&first, _)| first < oldest) {
            origin.words.pop_first();
        }
        self.words = self.words + origin.words.len() - before;
        self.make_room(life);
        is_new
    }

    fn forget_silent(&mut self, now: Time, remembered: Duration) {
        while let Some(&(last, life)) = self.by_age.first()
            && last + remembered < now
        {
            self.forget(last, life);
        }
    }

    fn make_room(&mut self, kept: Life) {
        while self.words > MAX_WORDS
            && let Some(&(last, life)) = self.by_age.iter().find(|(_, life)| *life != kept)
        {
            self.forget(last, life);
        }
    }

    fn forget(&mut self, last: Time, life: Life) {
        self.by_age.remove(&(last, life));
        self.words -= self.origins.remove(&life).map_or(0, |origin| origin.words.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BrokerId;

    const REMEMBERED: Duration = Duration::from_secs(60);

    fn id(origin: u64, sequence: u64) -> EventId {
        EventId { origin: BrokerId(origin), incarnation: 1, sequence }
    }

    #[test]
    fn each_event_is_new_once_whatever_the_order() {
        let mut seen = Seen::default();
        for sequence in [5, 1, 700, 64, 63, 2, 699] {
            assert!(seen.is_new(id(1, sequence), Time(0), REMEMBERED), "{sequence}");
            assert!(!seen.is_new(id(1, sequence), Time(0), REMEMBERED), "{sequence}");
            assert!(seen.is_new(id(2, sequence), Time(0), REMEMBERED), "{sequence} of another origin");
        }
        let later_life = EventId { incarnation: 2, ..id(1, 5) };
        assert!(seen.is_new(later_life, Time(0), REMEMBERED));
    }

    #[test]
    fn what_is_too_old_to_tell_counts_as_seen() {
        let mut seen = Seen::default();
        assert!(seen.is_new(id(1, 10 * SPAN), Time(0), REMEMBERED));
        assert!(seen.is_new(id(1, 9 * SPAN + 64), Time(0), REMEMBERED));
        assert!(!seen.is_new(id(1, 9 * SPAN), Time(0), REMEMBERED));
        assert!(seen.is_new(id(1, u64::MAX), Time(0), REMEMBERED));
        assert!(!seen.is_new(id(1, 10 * SPAN + 1), Time(0), REMEMBERED));
    }

    #[test]
    fn the_silent_are_forgotten_and_room_is_bounded() {
        let mut seen = Seen::default();
        assert!(seen.is_new(id(1, 1), Time(0), REMEMBERED));
        assert!(seen.is_new(id(2, 1), Time(60_000_001), REMEMBERED));
        assert!(seen.is_new(id(1, 1), Time(60_000_001), REMEMBERED), "forgotten by now");
        for origin in 0..2 * MAX_WORDS as u64 {
            assert!(seen.is_new(id(origin, 1_000), Time(60_000_002 + origin), REMEMBERED));
        }
        assert_eq!((seen.words, seen.origins.len(), seen.by_age.len()), (MAX_WORDS, MAX_WORDS, MAX_WORDS));
        assert!(!seen.is_new(id(2 * MAX_WORDS as u64 - 1, 1_000), Time(70_000_000), REMEMBERED));
        for origin in (0..2 * MAX_WORDS as u64).rev() {
            seen.is_new(id(origin, 1_000), Time(80_000_000), REMEMBERED);
        }
        assert_eq!(seen.words, MAX_WORDS, "all in one moment, each before the others in the order");
    }
}
