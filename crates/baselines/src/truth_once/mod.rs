//! The Enindex of Cui, Wu, Zhou et al. (Knowledge-Based Systems 110, 2016, 110-120) with colours and balance, each predicate's truth
//! found once. (To the letter, anew for each subscription: `enindex.rs`.) Four structures:
//!
//! - **Predicate lists.** A conjunction's constraints are split into predicates (attribute, operator, operand): `E between 2
//!   and 9` into `E >= 2` and `E <= 9`. Each distinct predicate is stored once, sorted by attribute, operator and operand.
//! - **Entries.** What the paper calls a subscription: pointers to predicates, and their count. A filter that is a
//!   conjunction is one entry. A disjunction is one entry if it is a product of small disjunctions: the pointers of such a
//!   disjunction share a *colour*, which adds one to the count and is taken off it once. Any other disjunction is an entry
//!   for each conjunction, and the subscription is reported once.
//! - **Key attributes and subscription lists.** Each entry is in the list L(a) of one of its attributes, a *key* that every
//!   event it matches must contain. If all such events contain one of several attributes, but none contains always the
//!   same, it is in the list of each. If events may match without any attribute (TRUE, `a IS NULL`), it is in a short list
//!   that every event is tested against.
//! - **Counts.** An event visits the lists of its own attributes. It takes one off an entry's count for each plain pointer
//!   to a true predicate and for each colour that has one; nothing left is a match. The count taken down is a copy, so
//!   that there is nothing to restore, and an entry is given up at the first plain pointer to a false predicate.
//!
//! Each predicate's truth is found at most once for an event, when first asked for.
//!
//! An event costs about |A| + |L|: the key attributes, and the mean length of a list. [`Enindex::build`] takes few keys, as
//! the paper's algorithm 1 does; inserting and removing keep both numbers near the root of the number of entries. A new
//! entry opens a list while |A|² < |S|, under the attribute most entries have; else it goes to the shortest list that may
//! hold it. While |A|² > 4 |S|, each update moves a few entries out of the shortest list; from lists with |L|² > 4 |S|, a
//! few to ones at most half as long. There is no rebuild.
//!
//! # From constraints to predicates
//!
//! | the constraint allows | becomes |
//! | --- | --- |
//! | absence, presence | a predicate of its own kind |
//! | one point | `=` |
//! | a class but one point | `<>` |
//! | one interval of numbers or times | `>=` and `<=`, or one of them if the other is always true |
//! | strings of one prefix | a prefix |
//! | one interval of strings | `>=` and `<`, or one of them |
//! | up to eight points of any classes | a colour with an `=` for each |
//! | anything else: more points, several intervals, patterns | one predicate that tests the whole set |
//!
//! Inside a colour that spans attributes, a constraint that takes two predicates becomes one that tests the whole set.

#[cfg(test)]
mod build;
mod colours;
mod entry;
mod lists;
mod predicate;
mod predicates;
mod scratch;
mod slab;
mod split;
#[cfg(test)]
mod tests;

use crate::Engine;
use colours::Group;
use enroute_filter::{Event, Filter};
use enroute_matcher::SubscriptionId;
use entry::{Entry, PLAIN, Pointer};
use lists::SubscriptionLists;
use predicate::Reading;
use predicates::PredicateLists;
use scratch::Scratch;
use slab::Slab;
use std::collections::HashMap;

/// Subscriptions grouped by key attribute, over predicates that are stored once. See the [module page](self).
///
/// Inserting and removing cost about the predicates of the subscription, each times the logarithm of a list; nothing is
/// ever rebuilt. The same inserts and removes always give the same index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Enindex {
    predicates: PredicateLists,
    entries: Slab<Entry>,
    lists: SubscriptionLists,
    subscriptions: Slab<Subscription>,
    by_id: HashMap<SubscriptionId, u32>,
    scratch: Scratch,
}

#[derive(Clone, Debug)]
struct Subscription {
    id: SubscriptionId,
    entries: Box<[u32]>,
}

impl Enindex {
    /// Stores a subscription with its entries and predicates, listed nowhere yet. None if the id is there already.
    fn store(&mut self, id: SubscriptionId, filter: &Filter) -> Option<Box<[u32]>> {
        if self.by_id.contains_key(&id) {
            return None;
        }
        let subscription = self.subscriptions.insert(Subscription { id, entries: Box::default() });
        self.by_id.insert(id, subscription);
        let mut numbers = Vec::new();
        for groups in colours::entries(filter) {
            let entry = self.entry(subscription, &groups);
            self.lists.count_users(&entry.keys);
            numbers.push(self.entries.insert(entry));
        }
        let numbers = numbers.into_boxed_slice();
        self.subscriptions[subscription].entries = numbers.clone();
        Some(numbers)
    }

    /// Algorithms 2 and 3 for one entry: finds or stores its predicates, and points to them.
    fn entry(&mut self, subscription: u32, groups: &[Group]) -> Entry {
        let (mut plain, mut coloured, mut colour) = (Vec::new(), Vec::new(), PLAIN);
        for group in groups {
            let is_plain = group.len() == 1;
            colour += u32::from(!is_plain);
            for (attribute, predicate) in group {
                let predicate = self.predicates.acquire(attribute, predicate);
                if is_plain {
                    plain.push(Pointer { predicate, colour: PLAIN });
                } else {
                    coloured.push(Pointer { predicate, colour });
                }
            }
        }
        plain.append(&mut coloured);
        let count = groups.len() as u32;
        let keys = colours::keys(&plain, &self.predicates);
        Entry { subscription, count, pointers: plain.into(), keys, postings: Vec::new() }
    }

    /// Algorithm 4 but for the counting: every entry in the lists of the event's attributes, and those without a key.
    fn visit<'e>(
        &self,
        event: &'e Event,
        scratch: &mut Scratch,
        mut test: impl FnMut(&Entry, &[Reading<'e>], &mut Scratch),
    ) {
        let mut readings = Vec::with_capacity(event.attribute_count());
        let mut keys = Vec::with_capacity(event.attribute_count());
        self.predicates.read(event, |attribute, reading| {
            scratch.set_reading(attribute, readings.len());
            readings.push(reading);
            keys.push(attribute);
        });
        let listed = keys.iter().flat_map(|&attribute| self.lists.list(attribute));
        for &number in self.lists.unkeyed().iter().chain(listed) {
            test(&self.entries[number], &readings, scratch);
        }
    }

    /// The count of an entry, less what the event takes off it: one for each plain pointer to a true predicate, and one
    /// for each colour with such a pointer. The entry matches if nothing is left.
    ///
    /// `STOP`s at the first plain pointer to a false predicate, after which something is left in any case.
    fn left_over<const STOP: bool>(&self, entry: &Entry, readings: &[Reading<'_>], scratch: &mut Scratch) -> u32 {
        let mut left = entry.count;
        let mut last_taken = PLAIN;
        for pointer in &entry.pointers {
            let plain = pointer.colour == PLAIN;
            if !plain && pointer.colour == last_taken {
                continue;
            }
            let truth = scratch.truth(pointer.predicate, |scratch| {
                let place = scratch.reading(self.predicates.attribute(pointer.predicate));
                self.predicates.predicate(pointer.predicate).holds(place.map(|place| readings[place]))
            });
            if truth {
                left -= 1;
                last_taken = pointer.colour;
            } else if plain && STOP {
                break;
            }
        }
        left
    }
}

impl Engine for Enindex {
    fn name(&self) -> &'static str {
        "enindex"
    }

    /// Costs about the predicates of the subscription, each times the logarithm of a list; nothing is ever rebuilt. The same
    /// inserts and removes always give the same index.
    fn insert(&mut self, id: SubscriptionId, filter: &Filter) -> bool {
        let Some(entries) = self.store(id, filter) else { return false };
        for number in entries {
            self.lists.add(number, &mut self.entries, &self.predicates);
        }
        true
    }

    fn remove(&mut self, id: SubscriptionId) -> bool {
        let Some(number) = self.by_id.remove(&id) else { return false };
        let subscription = self.subscriptions.remove(number);
        for &number in &subscription.entries {
            let entry = self.entries.remove(number);
            self.lists.remove(&entry, &mut self.entries, &self.predicates);
            for pointer in &entry.pointers {
                self.predicates.release(pointer.predicate);
            }
        }
        if self.is_empty() {
            *self = Self::default();
        }
        true
    }

    fn matches(&mut self, event: &Event, out: &mut Vec<SubscriptionId>) {
        out.clear();
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.begin(self.predicates.predicate_bound(), self.predicates.attribute_bound(), self.subscriptions.bound());
        self.visit(event, &mut scratch, |entry, readings, scratch| {
            if self.left_over::<true>(entry, readings, scratch) == 0 && scratch.report(entry.subscription) {
                out.push(self.subscriptions[entry.subscription].id);
            }
        });
        self.scratch = scratch;
        out.sort_unstable();
    }

    fn len(&self) -> usize {
        self.by_id.len()
    }

    fn memory_usage(&self) -> usize {
        let entry = |entry: &Entry| {
            size_of_val(&*entry.pointers)
                + entry.keys.memory_usage()
                + entry.postings.capacity() * size_of::<entry::Posting>()
        };
        let numbers: usize = self.subscriptions.values().map(|subscription| size_of_val(&*subscription.entries)).sum();
        self.predicates.memory_usage()
            + self.entries.memory_usage()
            + self.entries.values().map(entry).sum::<usize>()
            + self.lists.memory_usage()
            + self.subscriptions.memory_usage()
            + numbers
            + self.by_id.capacity() * size_of::<(SubscriptionId, u32)>()
    }
}
