//! OpIndex: D. Zhang, C.-Y. Chan, K.-L. Tan, *An Efficient Publish/Subscribe Index for E-Commerce Databases*, PVLDB
//! 7(8), 2014.
//!
//! Two levels. Each conjunction has a *pivot*, the attribute of its own that the fewest conjunctions use. Under a
//! pivot there is for each operator and attribute a list of (operand, conjunction), sorted by operand, and an array
//! of counters. An event looks at the pivots that it has: there it finds in each list of its attributes the true
//! entries, takes each off the counter of its conjunction, and reports those that reach zero. Counters are copied
//! before.
//!
//! Silent: what "rarest" means while conjunctions come and go (we: of those there are when the conjunction is
//! inserted; ties to the attribute known first). An interval is two entries. Of a set of points each is an entry, of
//! which one counts, as of the two sides of an interval left out. Absence is left to the check.

use crate::coded::{CodedEvent, Kind, Predicate, Primitive, Primitives};
use crate::indexed::{Conjunctions, Grasp, Index};
use crate::operators::OperatorLists;
use std::collections::HashMap;

/// Pivots by slot.
#[derive(Debug, Default)]
pub(crate) struct OpIndex {
    pivots: Vec<Option<Box<Pivot>>>,
    /// By slot: how many conjunctions use it.
    uses: Vec<u32>,
    /// By conjunction: its pivot, and its number there.
    places: Vec<Place>,
    /// The conjunctions without attributes.
    always: Vec<u32>,
    /// The counters while an event is matched.
    counters: Vec<u16>,
}

/// The conjunctions of one pivot.
#[derive(Debug, Default)]
struct Pivot {
    /// By slot: entries (operand, number within the pivot).
    lists: HashMap<u32, OperatorLists>,
    /// By number within the pivot: how many entries are true of every match.
    counts: Vec<u16>,
    conjunctions: Vec<u32>,
    vacant: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    pivot: Option<u32>,
    number: u32,
}

/// A conjunction's entries, and how many of them are true of every match.
fn entries(number: u32, conjunctions: &Conjunctions) -> (Vec<(u32, Primitive)>, u16) {
    let coded = conjunctions.coded(number);
    let (mut entries, mut count) = (Vec::new(), 0);
    for predicate in &coded.predicates {
        let primitives = match predicate.primitives(&coded.points) {
            Some(Primitives::All(all)) => {
                count += all.len() as u16;
                all
            }
            Some(Primitives::One(one)) => {
                count += 1;
                one
            }
            None => continue,
        };
        entries.extend(primitives.into_iter().map(|primitive| (predicate.slot, primitive)));
    }
    (entries, count)
}

impl Pivot {
    fn insert(&mut self, conjunction: u32, entries: &[(u32, Primitive)], count: u16) -> u32 {
        let number = match self.vacant.pop() {
            Some(number) => number,
            None => {
                self.counts.push(0);
                self.conjunctions.push(0);
                self.counts.len() as u32 - 1
            }
        };
        self.counts[number as usize] = count;
        self.conjunctions[number as usize] = conjunction;
        for &(slot, primitive) in entries {
            self.lists.entry(slot).or_default().insert(primitive, number);
        }
        number
    }

    fn remove(&mut self, number: u32, entries: &[(u32, Primitive)]) {
        for &(slot, primitive) in entries {
            if let Some(lists) = self.lists.get_mut(&slot) {
                lists.remove(primitive, number);
                if lists.is_empty() {
                    self.lists.remove(&slot);
                }
            }
        }
        self.vacant.push(number);
    }

    fn find(&self, event: &CodedEvent, counters: &mut Vec<u16>, found: &mut Vec<u32>) {
        counters.clear();
        counters.extend_from_slice(&self.counts);
        for (slot, value) in &event.seen {
            let Some(lists) = self.lists.get(slot) else { continue };
            lists.each_true(*value, |numbers| {
                for &number in numbers {
                    let counter = &mut counters[number as usize];
                    *counter -= 1;
                    if *counter == 0 {
                        found.push(self.conjunctions[number as usize]);
                    }
                }
            });
        }
    }

    fn memory_usage(&self) -> usize {
        self.lists.values().map(OperatorLists::memory_usage).sum::<usize>()
            + self.lists.capacity() * size_of::<(u32, OperatorLists)>()
            + self.counts.capacity() * size_of::<u16>()
            + (self.conjunctions.capacity() + self.vacant.capacity()) * size_of::<u32>()
            + size_of::<Pivot>()
    }
}

impl Index for OpIndex {
    const NAME: &'static str = "opindex";

    fn grasp(predicate: &Predicate) -> Grasp {
        if predicate.kind == Kind::Absent { Grasp::Not } else { Grasp::Exact }
    }

    fn insert(&mut self, number: u32, conjunctions: &Conjunctions) {
        let slots = conjunctions.coded(number).predicates.iter().map(|predicate| predicate.slot);
        for slot in slots.clone() {
            if self.pivots.len() <= slot as usize {
                self.pivots.resize_with(slot as usize + 1, || None);
                self.uses.resize(slot as usize + 1, 0);
            }
            self.uses[slot as usize] += 1;
        }
        if self.places.len() <= number as usize {
            self.places.resize(number as usize + 1, Place::default());
        }
        let pivot = slots.min_by_key(|&slot| (self.uses[slot as usize], slot));
        self.places[number as usize].pivot = pivot;
        if let Some(pivot) = pivot {
            let (entries, count) = entries(number, conjunctions);
            let pivot = self.pivots[pivot as usize].get_or_insert_default();
            self.places[number as usize].number = pivot.insert(number, &entries, count);
        } else {
            self.always.push(number);
        }
    }

    fn remove(&mut self, number: u32, conjunctions: &Conjunctions) {
        for predicate in &conjunctions.coded(number).predicates {
            self.uses[predicate.slot as usize] -= 1;
        }
        let place = self.places[number as usize];
        let Some(slot) = place.pivot else {
            self.always.retain(|&other| other != number);
            return;
        };
        if let Some(pivot) = &mut self.pivots[slot as usize] {
            pivot.remove(place.number, &entries(number, conjunctions).0);
            if pivot.vacant.len() == pivot.counts.len() {
                self.pivots[slot as usize] = None;
            }
        }
    }

    fn find(&mut self, event: &CodedEvent, _: &Conjunctions, found: &mut Vec<u32>) {
        found.extend(&self.always);
        for &(slot, _) in &event.seen {
            if let Some(Some(pivot)) = self.pivots.get(slot as usize) {
                pivot.find(event, &mut self.counters, found);
            }
        }
    }

    fn memory_usage(&self) -> usize {
        self.pivots.iter().flatten().map(|pivot| pivot.memory_usage()).sum::<usize>()
            + self.pivots.capacity() * size_of::<Option<Box<Pivot>>>()
            + (self.uses.capacity() + self.always.capacity()) * size_of::<u32>()
            + self.places.capacity() * size_of::<Place>()
            + self.counters.capacity() * size_of::<u16>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::samples::{PAPER, engine, event, found};
    use enroute_matcher::SubscriptionId;

    #[test]
    fn the_pivot_is_the_rarest_attribute() {
        let mut engine = engine::<OpIndex>(&PAPER);
        let pivots: Vec<u32> = engine.index.places.iter().map(|place| place.pivot.unwrap()).collect();
        // Attributes in the order they came. When s1 came, A and B had one user each: A, the first, is its pivot.
        let [a, b, c, e, d] = [0, 1, 2, 3, 4].map(|attribute| attribute * 5 + 1);
        assert_eq!(pivots, [a, c, b, b, d, d]);
        assert_eq!(engine.index.uses[e as usize], 3);
        // D alone has two conjunctions with five entries.
        let pivot = engine.index.pivots[d as usize].as_ref().unwrap();
        assert_eq!(pivot.counts, [2, 3]);
        assert_eq!(found(&mut engine, &event(&[("D", 10), ("E", 5)])), [5]);
        assert!(engine.remove(SubscriptionId(5)) && engine.remove(SubscriptionId(6)));
        assert!(engine.index.pivots[d as usize].is_none());
    }
}
