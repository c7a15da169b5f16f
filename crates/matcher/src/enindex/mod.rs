//! The Enindex of Cui, Wu, Zhou et al. (Knowledge-Based Systems 110, 2016).

mod build;
mod colours;
mod entry;
mod lists;
#[cfg(test)]
mod tests;

use crate::predicate::Reading;
use crate::predicates::PredicateLists;
use crate::slab::Slab;
use crate::{Owner, Scratch, SubscriptionId};
use colours::Group;
use enroute_filter::{Event, Filter};
use entry::{Entry, PLAIN, Pointer};
use lists::SubscriptionLists;
use std::collections::HashMap;

/// Subscriptions grouped by key attribute, over predicates that are stored once. See the [crate's page](crate).
///
/// Inserting and removing cost about the predicates of the subscription, each times the logarithm of a list; nothing is
/// ever rebuilt. The same inserts and removes always give the same index.
#[derive(Clone, Debug, Default)]
pub struct Enindex {
    predicates: PredicateLists,
    entries: Slab<Entry>,
    lists: SubscriptionLists,
    subscriptions: Slab<Subscription>,
    by_id: HashMap<SubscriptionId, u32>,
    owners: Slab<OwnerUse>,
    by_owner: HashMap<Owner, u32>,
}

#[derive(Clone, Debug)]
struct Subscription {
    id: SubscriptionId,
    owner: u32,
    entries: Box<[u32]>,
}

#[derive(Clone, Debug)]
struct OwnerUse {
    owner: Owner,
    subscriptions: usize,
}

impl Enindex {
    /// An index without subscriptions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a subscription; false, and nothing changes, if the id is there already.
    pub fn insert(&mut self, id: SubscriptionId, owner: Owner, filter: &Filter) -> bool {
        let Some(entries) = self.store(id, owner, filter) else { return false };
        for number in entries {
            self.lists.add(number, &mut self.entries, &self.predicates);
        }
        true
    }

    /// Stores a subscription with its entries and predicates, listed nowhere yet. None if the id is there already.
    fn store(&mut self, id: SubscriptionId, owner: Owner, filter: &Filter) -> Option<Box<[u32]>> {
        if self.contains(id) {
            return None;
        }
        let owner = self.acquire_owner(owner);
        let subscription = self.subscriptions.insert(Subscription { id, owner, entries: Box::default() });
        self.by_id.insert(id, subscription);
        let mut numbers = Vec::new();
        for groups in colours::entries(filter) {
            let entry = self.entry(subscription, owner, &groups);
            self.lists.count_users(&entry.keys);
            numbers.push(self.entries.insert(entry));
        }
        let numbers = numbers.into_boxed_slice();
        self.subscriptions[subscription].entries = numbers.clone();
        Some(numbers)
    }

    /// Algorithms 2 and 3 for one entry: finds or stores its predicates, and points to them.
    fn entry(&mut self, subscription: u32, owner: u32, groups: &[Group]) -> Entry {
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
        Entry { subscription, owner, count, pointers: plain.into(), keys, postings: Vec::new() }
    }

    fn acquire_owner(&mut self, owner: Owner) -> u32 {
        let number = match self.by_owner.get(&owner) {
            Some(&number) => number,
            None => {
                let number = self.owners.insert(OwnerUse { owner, subscriptions: 0 });
                self.by_owner.insert(owner, number);
                number
            }
        };
        self.owners[number].subscriptions += 1;
        number
    }

    /// Removes a subscription; false if there is none of this id.
    pub fn remove(&mut self, id: SubscriptionId) -> bool {
        let Some(number) = self.by_id.remove(&id) else { return false };
        let subscription = self.subscriptions.remove(number);
        for &number in &subscription.entries {
            let entry = self.entries.remove(number);
            self.lists.remove(&entry, &mut self.entries, &self.predicates);
            for pointer in &entry.pointers {
                self.predicates.release(pointer.predicate);
            }
        }
        let owner = &mut self.owners[subscription.owner];
        owner.subscriptions -= 1;
        if owner.subscriptions == 0 {
            self.by_owner.remove(&owner.owner);
            self.owners.remove(subscription.owner);
        }
        if self.is_empty() {
            *self = Self::default();
        }
        true
    }

    /// The subscriptions that the event matches, sorted, in place of what `out` held.
    pub fn matches(&self, event: &Event, scratch: &mut Scratch, out: &mut Vec<SubscriptionId>) {
        out.clear();
        scratch.begin(self.predicates.predicate_bound(), self.predicates.attribute_bound(), self.subscriptions.bound());
        self.visit(event, scratch, |entry, readings, scratch| {
            if self.left_over::<true>(entry, readings, scratch) == 0 && scratch.report(entry.subscription) {
                out.push(self.subscriptions[entry.subscription].id);
            }
        });
        out.sort_unstable();
    }

    /// The owners of at least one subscription that the event matches, sorted, in place of what `out` held.
    ///
    /// No subscription of an owner is tested after the first that matches.
    pub fn interested(&self, event: &Event, scratch: &mut Scratch, out: &mut Vec<Owner>) {
        out.clear();
        scratch.begin(self.predicates.predicate_bound(), self.predicates.attribute_bound(), self.owners.bound());
        self.visit(event, scratch, |entry, readings, scratch| {
            if !scratch.is_reported(entry.owner) && self.left_over::<true>(entry, readings, scratch) == 0 {
                scratch.report(entry.owner);
                out.push(self.owners[entry.owner].owner);
            }
        });
        out.sort_unstable();
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
        scratch.tested += 1;
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

    /// How many subscriptions there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there is no subscription.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Whether there is a subscription of this id.
    pub fn contains(&self, id: SubscriptionId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// An estimate of the bytes in use. Linear in the subscriptions.
    pub fn memory_usage(&self) -> usize {
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
            + self.owners.memory_usage()
            + self.by_id.capacity() * size_of::<(SubscriptionId, u32)>()
            + self.by_owner.capacity() * size_of::<(Owner, u32)>()
    }
}
