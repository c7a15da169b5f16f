//! REIN: S. Qian, J. Cao, Y. Zhu, M. Li, *REIN: A Fast Event Matching Approach for Content-Based Publish/Subscribe
//! Systems*, INFOCOM 2014.
//!
//! Looks for what does not match. Each attribute has buckets of the low ends of the intervals on it, and of the high
//! ends. A value marks all conjunctions whose low end is above it: in its own bucket by comparing, of the buckets
//! behind it all; and all whose high end is below it. An absent attribute marks all its users. What is unmarked at
//! the end matches.
//!
//! Silent: how many buckets, over what domain; we: each as soon as it is full is halved, so that all hold a like
//! number (which is what a [`SortedList`] is), and within a bucket entries are sorted. Conjunctions are all
//! intervals: an equality is one of a single point. Of sets of points the hull is, of values left out the class; both
//! are left to the check, and so is absence.

use crate::code::{ABSENT, GREATEST};
use crate::coded::{CodedEvent, Kind, Predicate};
use crate::indexed::{Conjunctions, Grasp, Index};
use crate::sorted::SortedList;

/// Ends of intervals, and bits.
#[derive(Debug, Default)]
pub(crate) struct Rein {
    /// By slot.
    ends: Vec<Ends>,
    /// By conjunction: set if there is none of this number.
    vacant: Vec<u64>,
    /// The same with all conjunctions that an event has been found to fail.
    marked: Vec<u64>,
}

/// The intervals on one slot.
#[derive(Clone, Debug, Default)]
struct Ends {
    /// Of all users.
    lows: SortedList,
    /// Of those that have one.
    highs: SortedList,
}

const BITS: u32 = u64::BITS;

impl Index for Rein {
    const NAME: &'static str = "rein";

    fn grasp(predicate: &Predicate) -> Grasp {
        if predicate.kind == Kind::In { Grasp::Exact } else { Grasp::Not }
    }

    fn insert(&mut self, number: u32, conjunctions: &Conjunctions) {
        for predicate in &conjunctions.coded(number).predicates {
            if self.ends.len() <= predicate.slot as usize {
                self.ends.resize(predicate.slot as usize + 1, Ends::default());
            }
            let ends = &mut self.ends[predicate.slot as usize];
            ends.lows.insert(predicate.low, number);
            if predicate.high < GREATEST {
                ends.highs.insert(predicate.high, number);
            }
        }
        let (word, bit) = (number / BITS, number % BITS);
        if self.vacant.len() <= word as usize {
            self.vacant.resize(word as usize + 1, u64::MAX);
        }
        self.vacant[word as usize] &= !(1 << bit);
    }

    fn remove(&mut self, number: u32, conjunctions: &Conjunctions) {
        for predicate in &conjunctions.coded(number).predicates {
            let ends = &mut self.ends[predicate.slot as usize];
            ends.lows.remove(predicate.low, number);
            if predicate.high < GREATEST {
                ends.highs.remove(predicate.high, number);
            }
        }
        self.vacant[(number / BITS) as usize] |= 1 << (number % BITS);
    }

    fn find(&mut self, event: &CodedEvent, _: &Conjunctions, found: &mut Vec<u32>) {
        let Rein { ends, vacant, marked } = self;
        marked.clear();
        marked.extend_from_slice(vacant);
        let mut mark = |numbers: &[u32]| {
            for number in numbers {
                marked[(number / BITS) as usize] |= 1 << (number % BITS);
            }
        };
        for (slot, ends) in ends.iter().enumerate().filter(|(_, ends)| !ends.lows.is_empty()) {
            let value = event.value(slot as u32);
            if value == ABSENT {
                ends.lows.all().for_each(&mut mark);
            } else {
                ends.lows.at_least(value + 1).for_each(&mut mark);
                ends.highs.below(value).for_each(&mut mark);
            }
        }
        for (word, &bits) in marked.iter().enumerate() {
            let mut unmarked = !bits;
            while unmarked != 0 {
                found.push(word as u32 * BITS + unmarked.trailing_zeros());
                unmarked &= unmarked - 1;
            }
        }
    }

    fn memory_usage(&self) -> usize {
        let ends = |ends: &Ends| ends.lows.memory_usage() + ends.highs.memory_usage();
        self.ends.iter().map(ends).sum::<usize>()
            + self.ends.capacity() * size_of::<Ends>()
            + (self.vacant.capacity() + self.marked.capacity()) * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{EVENTS, PAPER, engine, event, found};

    #[test]
    fn what_fails_is_marked() {
        let mut engine = engine::<Rein>(&PAPER);
        // s3 alone is unmarked; the bits above belong to no conjunction.
        assert_eq!(found(&mut engine, &event(EVENTS[3].0)), [3]);
        assert_eq!(engine.index.marked, [!(1 << 2)]);
        assert_eq!(found(&mut engine, &event(EVENTS[0].0)), [0; 0]);
        assert_eq!(engine.index.marked, [u64::MAX]);
    }
}
