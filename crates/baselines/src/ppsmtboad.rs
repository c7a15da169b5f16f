//! PPSMTBOAD, the Parallel Predicate Set Matching Tree Based on Attribute Division, of Zhang, Gao and Zeng.
//!
//! Equal predicates are stored once, divided by attribute, and arranged by covering into *predicate-set trees*: the
//! widest are roots, and each node stands under one closest cover. An event's values walk the trees of their
//! attributes, all attributes in parallel: a true predicate records its hits and passes on to its children, a false
//! one cuts off its subtree. Hits go from the *predicate-subscriber list* (here [`Users`]) into the *predicate match
//! table*, a row for each attribute; if no row has any, that is the end.
//!
//! The trees of one attribute are kept as the paper's shapes allow. `>=` and `<=` form chains, and a chain is a
//! sorted array: the walk from the widest stops at the first that is false, which is a binary search. Equalities
//! stand under the narrowest prefix, else the closest `>=`, else `<=`; they are sorted, so that of the children of a
//! true node the one that can be true is found by search. Prefixes stand under shorter prefixes, in a trie. `<>` are
//! roots without children (silent: of several closest covers these are the ones we take).
//!
//! "Intersecting" the rows, as the paper says, loses matches and reports wrong ones; meant is counting: a conjunction
//! matches when as many of its predicates are recorded as it has, and an attribute without hits does not end the
//! match. The *subscriber-subscription list* turns hits into subscriptions; here each subscription is a subscriber
//! of its own, and its conjunctions are numbered throughout.
//!
//! An interval of numbers is two predicates. Sets of points and intervals left out are left to the check, within
//! their hull; so is absence.

use crate::code;
use crate::coded::{CodedEvent, Kind, Predicate, Primitive, Primitives, is_text};
use crate::indexed::{Conjunctions, Grasp, Index};
use crate::operators::OperatorLists;
use crate::users::Users;
use std::collections::HashMap;

/// Predicate-set trees; `PARALLEL` walks them with as many threads as the machine runs at once, started for each
/// event.
#[derive(Debug, Default)]
pub(crate) struct Ppsmtboad<const PARALLEL: bool> {
    users: Users,
    /// By slot.
    trees: Vec<Trees>,
    /// The predicate match table: hits by place of the attribute in the event.
    rows: Vec<Vec<u32>>,
    /// By conjunction: how many distinct predicates it has.
    counts: Vec<u16>,
    /// The counts less what is recorded; equal to them between events.
    left: Vec<u16>,
    /// The conjunctions without predicates.
    always: Vec<u32>,
    /// How many threads walk; 0 before the first event.
    workers: usize,
}

/// The predicates of one slot, arranged by covering.
#[derive(Clone, Debug, Default)]
struct Trees {
    chains: OperatorLists,
    /// By the code of the prefix itself.
    prefixes: HashMap<u64, u32>,
    /// How many prefixes there are of each length in bytes.
    lengths: [u32; 8],
}

impl Trees {
    fn insert(&mut self, primitive: Primitive, predicate: u32) {
        match primitive {
            Primitive::Prefix(prefix) => {
                self.prefixes.insert(prefix, predicate);
                self.lengths[code::length(prefix)] += 1;
            }
            Primitive::Equal(_) | Primitive::AtLeast(_) | Primitive::AtMost(_) | Primitive::NotEqual(_) => {
                self.chains.insert(primitive, predicate);
            }
        }
    }

    fn remove(&mut self, primitive: Primitive, predicate: u32) {
        match primitive {
            Primitive::Prefix(prefix) => {
                self.prefixes.remove(&prefix);
                self.lengths[code::length(prefix)] -= 1;
            }
            Primitive::Equal(_) | Primitive::AtLeast(_) | Primitive::AtMost(_) | Primitive::NotEqual(_) => {
                self.chains.remove(primitive, predicate);
            }
        }
    }

    /// Records the hits of a value.
    fn walk(&self, value: u64, users: &Users, row: &mut Vec<u32>) {
        let mut record = |predicates: &[u32]| {
            predicates.iter().for_each(|&predicate| row.extend_from_slice(users.of(predicate)));
        };
        self.chains.each_true(value, &mut record);
        if !self.prefixes.is_empty() {
            for length in (1..=code::length(value).min(7)).filter(|&length| self.lengths[length] > 0) {
                let prefix = self.prefixes.get(&code::first_bytes(value, length));
                prefix.into_iter().for_each(|&predicate| record(&[predicate]));
            }
        }
    }

    fn memory_usage(&self) -> usize {
        self.chains.memory_usage() + self.prefixes.capacity() * size_of::<(u64, u32)>()
    }
}

/// A conjunction's predicates as the paper has them.
fn primitives(number: u32, conjunctions: &Conjunctions) -> Vec<(u32, Primitive)> {
    let coded = conjunctions.coded(number);
    let mut all = Vec::new();
    for predicate in &coded.predicates {
        let (slot, low, high) = (predicate.slot, predicate.low, predicate.high);
        let is_prefix = predicate.kind == Kind::In
            && is_text(slot)
            && low < high
            && code::of_prefix(low).is_some_and(|span| span.high == high);
        if is_prefix {
            all.push((slot, Primitive::Prefix(low)));
        } else if let Some(Primitives::All(primitives)) = predicate.primitives(&coded.points) {
            all.extend(primitives.into_iter().map(|primitive| (slot, primitive)));
        }
    }
    all
}

impl<const PARALLEL: bool> Ppsmtboad<PARALLEL> {
    /// Fills the match table: one row for each slot of the event.
    fn record(&mut self, seen: &[(u32, u64)]) {
        if self.rows.len() < seen.len() {
            self.rows.resize(seen.len(), Vec::new());
        }
        self.rows.iter_mut().for_each(Vec::clear);
        let (trees, users) = (&self.trees, &self.users);
        let walk = |seen: &[(u32, u64)], rows: &mut [Vec<u32>]| {
            for (&(slot, value), row) in seen.iter().zip(rows) {
                if let Some(trees) = trees.get(slot as usize) {
                    trees.walk(value, users, row);
                }
            }
        };
        if !PARALLEL {
            return walk(seen, &mut self.rows);
        }
        if self.workers == 0 {
            self.workers = std::thread::available_parallelism().map_or(1, usize::from);
        }
        let share = seen.len().div_ceil(self.workers).max(1);
        std::thread::scope(|scope| {
            let mut shares = seen.chunks(share).zip(self.rows.chunks_mut(share));
            let own = shares.next();
            shares.for_each(|(seen, rows)| {
                scope.spawn(move || walk(seen, rows));
            });
            own.into_iter().for_each(|(seen, rows)| walk(seen, rows));
        });
    }
}

impl<const PARALLEL: bool> Index for Ppsmtboad<PARALLEL> {
    const NAME: &'static str = if PARALLEL { "ppsmtboad-parallel" } else { "ppsmtboad" };

    fn grasp(predicate: &Predicate) -> Grasp {
        match predicate.kind {
            Kind::In | Kind::NotPoints => Grasp::Exact,
            Kind::NotIn if predicate.low == predicate.high => Grasp::Exact,
            Kind::NotIn | Kind::Points | Kind::Absent => Grasp::Not,
        }
    }

    fn insert(&mut self, number: u32, conjunctions: &Conjunctions) {
        let predicates = primitives(number, conjunctions);
        self.users.add(number, &predicates, |predicate, slot, primitive| {
            if self.trees.len() <= slot as usize {
                self.trees.resize(slot as usize + 1, Trees::default());
            }
            self.trees[slot as usize].insert(primitive, predicate);
        });
        if self.counts.len() <= number as usize {
            self.counts.resize(number as usize + 1, 0);
            self.left.resize(number as usize + 1, 0);
        }
        self.counts[number as usize] = predicates.len() as u16;
        self.left[number as usize] = predicates.len() as u16;
        if predicates.is_empty() {
            self.always.push(number);
        }
    }

    fn remove(&mut self, number: u32, _: &Conjunctions) {
        self.users.remove(number, |predicate, slot, primitive| self.trees[slot as usize].remove(primitive, predicate));
        self.left[number as usize] = 0;
        if std::mem::take(&mut self.counts[number as usize]) == 0 {
            self.always.retain(|&other| other != number);
        }
    }

    fn find(&mut self, event: &CodedEvent, _: &Conjunctions, found: &mut Vec<u32>) {
        found.extend(&self.always);
        self.record(&event.seen);
        if self.rows.iter().all(Vec::is_empty) {
            return;
        }
        for &conjunction in self.rows.iter().flatten() {
            let left = &mut self.left[conjunction as usize];
            *left -= 1;
            if *left == 0 {
                found.push(conjunction);
            }
        }
        self.left.copy_from_slice(&self.counts);
    }

    fn memory_usage(&self) -> usize {
        let rows: usize = self.rows.iter().map(Vec::capacity).sum();
        self.users.memory_usage()
            + self.trees.iter().map(Trees::memory_usage).sum::<usize>()
            + self.trees.capacity() * size_of::<Trees>()
            + (rows + self.always.capacity()) * size_of::<u32>()
            + (self.counts.capacity() + self.left.capacity()) * size_of::<u16>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::indexed::Indexed;
    use crate::samples::{EVENTS, PAPER, engine, event, found};
    use enroute_filter::{Event, Filter};
    use enroute_matcher::SubscriptionId;

    type Sequential = Ppsmtboad<false>;

    /// The closest cover that a predicate stands under, among those stored for its slot.
    fn cover(primitive: Primitive, stored: &[Primitive]) -> Option<Primitive> {
        let prefixes = stored.iter().copied().filter(|&other| match (other, primitive) {
            (Primitive::Prefix(_), Primitive::Equal(operand)) => other.holds(operand),
            (Primitive::Prefix(_), Primitive::Prefix(longer)) => other != primitive && other.holds(longer),
            _ => false,
        });
        let low = match primitive {
            Primitive::Equal(operand) | Primitive::AtLeast(operand) | Primitive::Prefix(operand) => Some(operand),
            Primitive::AtMost(_) | Primitive::NotEqual(_) => None,
        };
        let high = match primitive {
            Primitive::Equal(operand) | Primitive::AtMost(operand) => Some(operand),
            Primitive::Prefix(prefix) => code::of_prefix(prefix).map(|span| span.high),
            Primitive::AtLeast(_) | Primitive::NotEqual(_) => None,
        };
        let others = || stored.iter().copied().filter(|&other| other != primitive);
        let at_least = others().filter(|other| matches!(other, Primitive::AtLeast(bound) if low >= Some(*bound))).max();
        let at_most = others()
            .filter(|other| matches!(other, Primitive::AtMost(bound) if high.is_some_and(|high| high <= *bound)))
            .min();
        prefixes.max().or(at_least).or(at_most)
    }

    /// The walk of the paper over the trees as `cover` makes them: what is true, and how many tests that took.
    fn literal_walk(value: u64, parent: Option<Primitive>, stored: &[Primitive]) -> (Vec<Primitive>, usize) {
        let (mut all, mut tests) = (Vec::new(), 0);
        for &child in stored.iter().filter(|&&child| cover(child, stored) == parent) {
            tests += 1;
            if child.holds(value) {
                let (below, tests_below) = literal_walk(value, Some(child), stored);
                all.push(child);
                all.extend(below);
                tests += tests_below;
            }
        }
        (all, tests)
    }

    /// Walks the trees of all of an event's attributes as the paper does; checks that the engine records the same.
    fn tests(engine: &mut Indexed<Sequential>, event: &Event) -> usize {
        let mut coded = CodedEvent::default();
        engine.coder.read(event, &mut coded);
        engine.index.record(&coded.seen);
        let index = &engine.index;
        let predicates: Vec<(u32, Primitive)> =
            (0..index.users.counts().0 as u32).map(|number| index.users.predicate(number)).collect();
        let mut tests = 0;
        for (&(slot, value), row) in coded.seen.iter().zip(&index.rows) {
            let stored: Vec<Primitive> = predicates.iter().filter(|one| one.0 == slot).map(|one| one.1).collect();
            let (all, its_tests) = literal_walk(value, None, &stored);
            let number = |primitive| predicates.iter().position(|one| *one == (slot, primitive)).unwrap() as u32;
            let mut hits: Vec<u32> = all.into_iter().flat_map(|one| index.users.of(number(one))).copied().collect();
            let mut row = row.clone();
            hits.sort_unstable();
            row.sort_unstable();
            assert_eq!(hits, row);
            tests += its_tests;
        }
        tests
    }

    #[test]
    fn the_trees_of_the_example() {
        let engine = engine::<Sequential>(&PAPER);
        let users = &engine.index.users;
        let predicates: Vec<(u32, Primitive)> =
            (0..users.counts().0 as u32).map(|number| users.predicate(number)).collect();
        let edges = predicates.iter().filter_map(|&(slot, primitive)| {
            let stored: Vec<Primitive> = predicates.iter().filter(|one| one.0 == slot).map(|one| one.1).collect();
            Some((cover(primitive, &stored)?, primitive))
        });
        let code = |number: i64| code::of_number(number.into());
        let mut edges: Vec<_> = edges.collect();
        edges.sort_unstable();
        let expected = [
            (Primitive::AtLeast(code(6)), Primitive::AtLeast(code(8))),
            (Primitive::AtMost(code(4)), Primitive::Equal(code(3))),
            (Primitive::AtMost(code(8)), Primitive::Equal(code(2))),
        ];
        assert_eq!(edges, expected);
    }

    #[test]
    fn the_match_table_of_the_example() {
        let mut engine = engine::<Sequential>(&PAPER);
        assert_eq!(tests(&mut engine, &event(EVENTS[3].0)), 6);
        // By attribute; each value's row is followed by that of its presence, which nobody asks for. 2 is s3.
        let mut rows = engine.index.rows.clone();
        rows.iter_mut().for_each(|row| row.sort_unstable());
        assert_eq!(rows, [vec![2], vec![], vec![1, 2], vec![], vec![1, 2, 2, 4], vec![]]);
        assert_eq!(tests(&mut engine, &event(&[("B", 5)])), 1);
    }

    #[test]
    fn taken_literally_the_intersection_would_be_wrong() {
        let mut engine = engine::<Sequential>(&PAPER);
        assert_eq!(found(&mut engine, &event(&[("B", 3), ("C", 9)])), [4]);
        assert_eq!(found(&mut engine, &event(&[("D", 10)])), [0; 0]);
    }

    #[test]
    fn prefixes_are_a_trie() {
        let texts =
            ["a prefix 'N'", "a prefix 'N1'", "a prefix 'N12'", "a = 'N12'", "a >= 'M'", "a <= 'N2'", "a <> 'N1'"];
        let subscriptions: Vec<(u64, &str)> = (1..).zip(texts).collect();
        let mut engine = engine::<Sequential>(&subscriptions);
        for (value, matching) in [
            ("N12", vec![1, 2, 3, 4, 5, 6, 7]),
            ("N1", vec![1, 2, 5, 6]),
            ("N", vec![1, 5, 6, 7]),
            ("N12345678", vec![1, 2, 3, 5, 6, 7]),
            ("O", vec![5, 7]),
            ("", vec![6, 7]),
        ] {
            let event = Event::builder().attribute("a", value).build().unwrap();
            assert_eq!(found(&mut engine, &event), matching, "{value}");
            tests(&mut engine, &event);
        }
        assert_eq!(engine.index.trees.iter().map(|trees| trees.prefixes.len()).sum::<usize>(), 3);
        engine.remove(SubscriptionId(2));
        engine.insert(SubscriptionId(2), &Filter::parse("a prefix 'N12'").unwrap());
        let event = Event::builder().attribute("a", "N1").build().unwrap();
        assert_eq!(found(&mut engine, &event), [1, 5, 6]);
    }
}
