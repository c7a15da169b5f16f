//! Counting: T. W. Yan, H. Garcia-Molina, *Index Structures for Selective Dissemination of Information Under the
//! Boolean Model*, ACM TODS 19(2), 1994; in the form for predicates that the later papers compare themselves with.
//!
//! Each distinct predicate is stored once, in a list by attribute and operator, sorted by operand. An event finds in
//! each list of its attributes by one binary search the predicates that are true: all operands from one end up to the
//! value, the equal one, or (of inequalities) all but the equal one. Each true predicate takes one off the counts of
//! its users, and a count of zero is a match.
//!
//! Silent: how counts are reset (we: all are copied anew after each event). An interval is two predicates; a set of
//! points, or an interval left out, counts one for any of its alternatives, of which at most one is true. Absence is
//! left to the check.

use crate::coded::{CodedEvent, Kind, Predicate, Primitives};
use crate::indexed::{Conjunctions, Grasp, Index};
use crate::operators::OperatorLists;
use crate::users::Users;

/// Sorted lists of distinct predicates.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    users: Users,
    /// By slot.
    lists: Vec<OperatorLists>,
    /// How many predicates are true of every match; 0 also of numbers that are no conjunctions.
    counts: Vec<u16>,
    /// The counts less what the event has taken off; equal to them between events.
    left: Vec<u16>,
    /// The conjunctions that need nothing.
    always: Vec<u32>,
    /// The users of what is true of one attribute of an event.
    hits: Vec<u32>,
}

impl Index for Counting {
    const NAME: &'static str = "counting";

    fn grasp(predicate: &Predicate) -> Grasp {
        if predicate.kind == Kind::Absent { Grasp::Not } else { Grasp::Exact }
    }

    fn insert(&mut self, number: u32, conjunctions: &Conjunctions) {
        let coded = conjunctions.coded(number);
        let (mut predicates, mut count) = (Vec::new(), 0);
        for predicate in &coded.predicates {
            match predicate.primitives(&coded.points) {
                Some(Primitives::All(all)) => {
                    count += all.len() as u16;
                    predicates.extend(all.into_iter().map(|primitive| (predicate.slot, primitive)));
                }
                Some(Primitives::One(one)) => {
                    count += 1;
                    predicates.extend(one.into_iter().map(|primitive| (predicate.slot, primitive)));
                }
                None => {}
            }
        }
        self.users.add(number, &predicates, |predicate, slot, primitive| {
            if self.lists.len() <= slot as usize {
                self.lists.resize(slot as usize + 1, OperatorLists::default());
            }
            self.lists[slot as usize].insert(primitive, predicate);
        });
        if self.counts.len() <= number as usize {
            self.counts.resize(number as usize + 1, 0);
            self.left.resize(number as usize + 1, 0);
        }
        self.counts[number as usize] = count;
        self.left[number as usize] = count;
        if count == 0 {
            self.always.push(number);
        }
    }

    fn remove(&mut self, number: u32, _: &Conjunctions) {
        self.users.remove(number, |predicate, slot, primitive| self.lists[slot as usize].remove(primitive, predicate));
        if std::mem::take(&mut self.counts[number as usize]) == 0 {
            self.always.retain(|&other| other != number);
        }
        self.left[number as usize] = 0;
    }

    fn find(&mut self, event: &CodedEvent, _: &Conjunctions, found: &mut Vec<u32>) {
        let Counting { users, lists, counts, left, always, hits } = self;
        found.extend(&*always);
        for &(slot, value) in &event.seen {
            let Some(lists) = lists.get(slot as usize) else { continue };
            // Gathering first lets the machine wait for many lists of users at once.
            hits.clear();
            lists.each_true(value, |predicates| {
                predicates.iter().for_each(|&predicate| hits.extend_from_slice(users.of(predicate)));
            });
            for &conjunction in &*hits {
                let left = &mut left[conjunction as usize];
                *left -= 1;
                if *left == 0 {
                    found.push(conjunction);
                }
            }
        }
        left.copy_from_slice(counts);
    }

    fn memory_usage(&self) -> usize {
        self.users.memory_usage()
            + self.lists.iter().map(OperatorLists::memory_usage).sum::<usize>()
            + self.lists.capacity() * size_of::<OperatorLists>()
            + (self.counts.capacity() + self.left.capacity()) * size_of::<u16>()
            + (self.always.capacity() + self.hits.capacity()) * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{PAPER, engine, event, found};

    #[test]
    fn each_distinct_predicate_is_stored_once() {
        let mut engine = engine::<Counting>(&PAPER);
        // 10 for 15 uses, as in algorithm 2 of the Enindex paper.
        assert_eq!(engine.index.users.counts(), (10, 15));
        assert_eq!(engine.index.counts, [2, 3, 4, 1, 2, 3]);
        assert_eq!(found(&mut engine, &event(&[("B", 1), ("C", 6), ("E", 5)])), [3]);
        assert_eq!(engine.index.left, engine.index.counts);
        assert_eq!(found(&mut engine, &event(&[("D", 10), ("E", 5)])), [5]);
    }
}
