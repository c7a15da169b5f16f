//! K-index: S. E. Whang, C. Brower, J. Shanmugasundaram et al., *Indexing Boolean Expressions*, PVLDB 2(1), 2009.
//!
//! A conjunction is made of `in` and `not in` sets of values; K is the number of its `in`. For each K there are
//! posting lists by (attribute, value), of conjunctions and whether they have the value `in` or `not in`, sorted,
//! `not in` first. An event goes through K from the largest there is, or its own size, down to 0. It takes the lists
//! of its values; for K = 0 also the list Z of all conjunctions without `in`, and then K counts as 1. With fewer than
//! K lists the K is done. Otherwise, over and over: the lists are ordered by their current entries; if the K-th is at
//! its end, the K is done; if the first and the K-th are at different conjunctions, none before the K-th's can match,
//! and the first K lists skip to that; else the conjunction is rejected if its first entry is a `not in`, and
//! reported if not, and all lists at it move on.
//!
//! Ranges are enumerated, which suits small domains only. We: in cells of the codes (for numbers sixteen to each
//! power of two), up to 64 of them, and the check decides; longer ranges are left to the check altogether. So is
//! absence; and that the attribute of a `not in` is present, which the paper does not ask for.

use crate::coded::{CodedEvent, Kind, Predicate};
use crate::indexed::{Conjunctions, Grasp, Index};
use std::collections::HashMap;

/// Posting lists by (attribute, value) and K.
#[derive(Debug, Default)]
pub(crate) struct KIndex {
    lists: HashMap<Key, Vec<List>>,
    /// The conjunctions without `in`.
    without_in: Vec<Entry>,
}

/// The entries of one K; sorted.
#[derive(Clone, Debug)]
struct List {
    k: u32,
    entries: Vec<Entry>,
}

/// A value of a slot, or a cell of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    slot: u32,
    is_cell: bool,
    value: u64,
}

/// A conjunction that has a value `in` or `not in`, in one number; its order is the lists'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u32);

impl Entry {
    fn new(conjunction: u32, is_in: bool) -> Entry {
        Entry(conjunction << 1 | u32::from(is_in))
    }

    fn conjunction(self) -> u32 {
        self.0 >> 1
    }

    fn is_in(self) -> bool {
        self.0 & 1 == 1
    }
}

/// So many low bits are the place within a cell.
const CELL: u32 = 48;
const MOST_CELLS: u64 = 64;

impl Predicate {
    /// How many cells its interval meets.
    fn cells(&self) -> u64 {
        (self.high >> CELL) - (self.low >> CELL) + 1
    }

    /// The keys it is listed under, and whether these are its `in`.
    fn keys(&self, points: &[u64]) -> (Vec<Key>, bool) {
        let slot = self.slot;
        let exact = |value| Key { slot, is_cell: false, value };
        match self.kind {
            Kind::In if self.low == self.high => (vec![exact(self.low)], true),
            Kind::In => {
                let cells = self.low >> CELL..=self.high >> CELL;
                (cells.map(|value| Key { slot, is_cell: true, value }).collect(), true)
            }
            Kind::NotIn => (vec![exact(self.low)], false),
            Kind::Points => (self.points(points).iter().copied().map(exact).collect(), true),
            Kind::NotPoints => (self.points(points).iter().copied().map(exact).collect(), false),
            Kind::Absent => (Vec::new(), false),
        }
    }
}

impl KIndex {
    /// The number of `in`, and all postings, of a conjunction.
    fn postings(number: u32, conjunctions: &Conjunctions) -> (u32, Vec<(Key, bool)>) {
        let coded = conjunctions.coded(number);
        let (mut k, mut postings) = (0, Vec::new());
        for predicate in &coded.predicates {
            let (keys, is_in) = predicate.keys(&coded.points);
            k += u32::from(is_in);
            postings.extend(keys.into_iter().map(|key| (key, is_in)));
        }
        (k, postings)
    }
}

fn insert(entries: &mut Vec<Entry>, entry: Entry) {
    let place = entries.partition_point(|&other| other < entry);
    entries.insert(place, entry);
}

fn remove(entries: &mut Vec<Entry>, entry: Entry) {
    if let Ok(place) = entries.binary_search(&entry) {
        entries.remove(place);
    }
}

/// The rest of a list from the first entry of this conjunction, or a later one, on.
fn skip_to(list: &[Entry], conjunction: u32) -> &[Entry] {
    // Gallops, as the next is mostly near.
    let mut bound = 1;
    while bound < list.len() && list[bound].conjunction() < conjunction {
        bound *= 2;
    }
    let near = &list[..list.len().min(bound + 1)];
    &list[near.partition_point(|entry| entry.conjunction() < conjunction)..]
}

/// By current entry; what is at its end comes last.
fn order(list: &[Entry]) -> (bool, Option<&Entry>) {
    (list.is_empty(), list.first())
}

/// Restores the order after the first lists moved on.
fn sort_first(lists: &mut [&[Entry]], moved: usize) {
    for index in (0..moved).rev() {
        let mut place = index;
        while place + 1 < lists.len() && order(lists[place + 1]) < order(lists[place]) {
            lists.swap(place, place + 1);
            place += 1;
        }
    }
}

/// The conjunctions that stand in at least K lists with `in`, and in none with `not in`.
fn conjunctions_in(lists: &mut [&[Entry]], k: usize, found: &mut Vec<u32>) {
    if lists.len() < k {
        return;
    }
    lists.sort_unstable_by(|a, b| order(a).cmp(&order(b)));
    while let Some(kth) = lists[k - 1].first() {
        let (first, next) = (lists[0][0], kth.conjunction());
        if first.conjunction() != next {
            for list in &mut lists[..k] {
                *list = skip_to(list, next);
            }
            sort_first(lists, k);
            continue;
        }
        if first.is_in() {
            found.push(next);
        }
        let at_it =
            lists.iter().take_while(|list| list.first().is_some_and(|entry| entry.conjunction() == next)).count();
        for list in &mut lists[..at_it] {
            *list = skip_to(list, next + 1);
        }
        sort_first(lists, at_it);
    }
}

impl Index for KIndex {
    const NAME: &'static str = "k-index";

    fn grasp(predicate: &Predicate) -> Grasp {
        match predicate.kind {
            Kind::Points => Grasp::Exact,
            Kind::In if predicate.low == predicate.high => Grasp::Exact,
            Kind::In if predicate.cells() <= MOST_CELLS => Grasp::Wider,
            Kind::NotPoints => Grasp::Wider,
            Kind::NotIn if predicate.low == predicate.high => Grasp::Wider,
            Kind::In | Kind::NotIn | Kind::Absent => Grasp::Not,
        }
    }

    fn insert(&mut self, number: u32, conjunctions: &Conjunctions) {
        let (k, postings) = Self::postings(number, conjunctions);
        for (key, is_in) in postings {
            let lists = self.lists.entry(key).or_default();
            let place = lists.partition_point(|list| list.k < k);
            if lists.get(place).is_none_or(|list| list.k != k) {
                lists.insert(place, List { k, entries: Vec::new() });
            }
            insert(&mut lists[place].entries, Entry::new(number, is_in));
        }
        if k == 0 {
            insert(&mut self.without_in, Entry::new(number, true));
        }
    }

    fn remove(&mut self, number: u32, conjunctions: &Conjunctions) {
        let (k, postings) = Self::postings(number, conjunctions);
        for (key, is_in) in postings {
            if let Some(lists) = self.lists.get_mut(&key) {
                lists.iter_mut().filter(|list| list.k == k).for_each(|list| {
                    remove(&mut list.entries, Entry::new(number, is_in));
                });
                lists.retain(|list| !list.entries.is_empty());
                if lists.is_empty() {
                    self.lists.remove(&key);
                }
            }
        }
        if k == 0 {
            remove(&mut self.without_in, Entry::new(number, true));
        }
    }

    fn find(&mut self, event: &CodedEvent, _: &Conjunctions, found: &mut Vec<u32>) {
        let mut by_k: Vec<Vec<&[Entry]>> = vec![Vec::new()];
        for &(slot, value) in &event.seen {
            for key in [Key { slot, is_cell: false, value }, Key { slot, is_cell: true, value: value >> CELL }] {
                for list in self.lists.get(&key).into_iter().flatten() {
                    let k = list.k as usize;
                    if by_k.len() <= k {
                        by_k.resize(k + 1, Vec::new());
                    }
                    by_k[k].push(&list.entries);
                }
            }
        }
        by_k[0].push(&self.without_in);
        for (k, mut lists) in by_k.into_iter().enumerate().rev() {
            conjunctions_in(&mut lists, k.max(1), found);
        }
    }

    fn memory_usage(&self) -> usize {
        let list = |list: &List| list.entries.capacity() * size_of::<Entry>() + size_of::<List>();
        self.lists.values().flatten().map(list).sum::<usize>()
            + self.lists.capacity() * size_of::<(Key, Vec<List>)>()
            + self.without_in.capacity() * size_of::<Entry>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::indexed::Indexed;
    use crate::samples::{engine, found};
    use enroute_filter::Event;
    use enroute_matcher::SubscriptionId;

    #[test]
    fn the_example_of_the_paper() {
        let mut engine: Indexed<KIndex> = engine(&[
            (1, "age = 3 and state = 'NY'"),
            (2, "age = 3 and gender = 'F'"),
            (3, "age = 3 and gender = 'M' and state <> 'CA'"),
            (4, "state = 'CA' and gender = 'M'"),
            (5, "age in (3, 4)"),
            (6, "state not in ('CA', 'NY')"),
        ]);
        let ks: Vec<u32> = (0..6).map(|number| KIndex::postings(number, &engine.conjunctions).0).collect();
        assert_eq!(ks, [2, 2, 2, 2, 1, 0]);
        let event = |age: i64, state: &str| {
            let builder = Event::builder().attribute("age", age).attribute("state", state);
            builder.attribute("gender", "M").build().unwrap()
        };
        assert_eq!(found(&mut engine, &event(3, "CA")), [4, 5]);
        assert_eq!(found(&mut engine, &event(4, "TX")), [5, 6]);
        assert_eq!(found(&mut engine, &event(3, "TX")), [3, 5, 6]);
        (1..6).for_each(|id| assert!(engine.remove(SubscriptionId(id))));
        // c6 alone is left: its two values, and Z.
        assert_eq!((engine.index.lists.len(), engine.index.without_in.len()), (2, 1));
    }

    #[test]
    fn short_ranges_are_enumerated() {
        let mut engine: Indexed<KIndex> =
            engine(&[(1, "a between 20 and 40"), (2, "a >= 20"), (3, "a between 3 and 5")]);
        let ks: Vec<u32> = (0..3).map(|number| KIndex::postings(number, &engine.conjunctions).0).collect();
        assert_eq!(ks, [1, 0, 1]);
        let event = |a: f64| Event::builder().attribute("a", a).build().unwrap();
        assert_eq!(found(&mut engine, &event(40.0)), [1, 2]);
        assert_eq!(found(&mut engine, &event(40.01)), [2]);
        assert_eq!(found(&mut engine, &event(3.5)), [3]);
    }
}
