//! The counting algorithm of Yan and Garcia-Molina (1994), over deduplicated predicates in sorted lists.

use crate::predicate::Predicate;
use crate::predicates::PredicateLists;
use crate::slab::Slab;
use crate::{Owner, Scratch, SubscriptionId, split};
use enroute_filter::{Conjunction, Event, Filter};
use std::collections::{BTreeSet, HashMap};

/// Finds all true predicates of an event, counts for each conjunction how many of its own are among them, and reports
/// those that are complete.
///
/// The second reference: it shares the predicate lists with the [`Enindex`](crate::Enindex), but neither key attributes
/// nor colours. A set of points counts as one, since a value equals at most one of them. Inserting and removing are
/// linear in the predicates of the subscription (times the logarithm of the lists).
#[derive(Clone, Debug, Default)]
pub struct Counting {
    predicates: PredicateLists,
    /// By predicate: the conjunctions that need it, each with the place of that need among its needs.
    users: Vec<Vec<User>>,
    conjunctions: Slab<Counted>,
    /// The conjunctions of each subscription.
    subscriptions: HashMap<SubscriptionId, Vec<u32>>,
    /// The conjunctions that need nothing.
    always: BTreeSet<u32>,
}

#[derive(Clone, Copy, Debug)]
struct User {
    conjunction: u32,
    need: u32,
}

#[derive(Clone, Debug)]
struct Counted {
    subscription: SubscriptionId,
    owner: Owner,
    /// How many predicates are true of every event that matches.
    count: u32,
    needs: Box<[Need]>,
}

#[derive(Clone, Copy, Debug)]
struct Need {
    predicate: u32,
    /// Where the conjunction stands among the predicate's users.
    position: u32,
}

impl Counting {
    /// An engine without subscriptions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a subscription; false, and nothing changes, if the id is there already.
    pub fn insert(&mut self, id: SubscriptionId, owner: Owner, filter: &Filter) -> bool {
        if self.contains(id) {
            return false;
        }
        let numbers = filter.conjunctions().iter().map(|conjunction| self.insert_conjunction(id, owner, conjunction));
        let numbers = numbers.collect();
        self.subscriptions.insert(id, numbers);
        true
    }

    fn insert_conjunction(&mut self, subscription: SubscriptionId, owner: Owner, conjunction: &Conjunction) -> u32 {
        let mut predicates = Vec::new();
        let mut count = 0;
        for constraint in conjunction.constraints() {
            for group in split::groups(constraint.test()) {
                count += 1;
                predicates
                    .extend(group.iter().map(|one: &Predicate| self.predicates.acquire(constraint.attribute(), one)));
            }
        }
        let number = self.conjunctions.insert(Counted { subscription, owner, count, needs: Box::default() });
        self.users.resize_with(self.predicates.predicate_bound(), Vec::new);
        let need = |(need, predicate): (usize, u32)| {
            let users = &mut self.users[predicate as usize];
            users.push(User { conjunction: number, need: need as u32 });
            Need { predicate, position: users.len() as u32 - 1 }
        };
        self.conjunctions[number].needs = predicates.into_iter().enumerate().map(need).collect();
        if count == 0 {
            self.always.insert(number);
        }
        number
    }

    /// Removes a subscription; false if there is none of this id.
    pub fn remove(&mut self, id: SubscriptionId) -> bool {
        let Some(numbers) = self.subscriptions.remove(&id) else { return false };
        for number in numbers {
            self.remove_conjunction(number);
        }
        if self.is_empty() {
            *self = Self::default();
        }
        true
    }

    fn remove_conjunction(&mut self, number: u32) {
        for place in 0..self.conjunctions[number].needs.len() {
            let Need { predicate, position } = self.conjunctions[number].needs[place];
            let users = &mut self.users[predicate as usize];
            users.swap_remove(position as usize);
            if let Some(&moved) = users.get(position as usize) {
                self.conjunctions[moved.conjunction].needs[moved.need as usize].position = position;
            }
            if self.predicates.release(predicate) {
                *users = Vec::new();
            }
        }
        if self.conjunctions.remove(number).count == 0 {
            self.always.remove(&number);
        }
    }

    /// The subscriptions that the event matches, sorted, in place of what `out` held.
    pub fn matches(&self, event: &Event, scratch: &mut Scratch, out: &mut Vec<SubscriptionId>) {
        out.clear();
        self.each_match(event, scratch, |conjunction| out.push(conjunction.subscription));
        out.sort_unstable();
        out.dedup();
    }

    /// The owners of at least one subscription that the event matches, sorted, in place of what `out` held.
    ///
    /// Counting knows of no match before it has counted all: there is nothing to stop early.
    pub fn interested(&self, event: &Event, scratch: &mut Scratch, out: &mut Vec<Owner>) {
        out.clear();
        self.each_match(event, scratch, |conjunction| out.push(conjunction.owner));
        out.sort_unstable();
        out.dedup();
    }

    fn each_match(&self, event: &Event, scratch: &mut Scratch, mut report: impl FnMut(&Counted)) {
        scratch.begin(0, self.predicates.attribute_bound(), 0);
        if scratch.counts.len() < self.conjunctions.bound() {
            scratch.counts.resize(self.conjunctions.bound(), 0);
        }
        let count = |scratch: &mut Scratch, predicate: u32| {
            for user in &self.users[predicate as usize] {
                let count = &mut scratch.counts[user.conjunction as usize];
                if *count == 0 {
                    scratch.touched.push(user.conjunction);
                }
                *count += 1;
            }
        };
        self.predicates.read(event, |attribute, reading| {
            scratch.set_reading(attribute, 0);
            self.predicates.each_true(attribute, reading, |predicate| count(scratch, predicate));
        });
        for (attribute, absent) in self.predicates.absences() {
            if scratch.reading(attribute).is_none() {
                count(scratch, absent);
            }
        }
        scratch.tested = scratch.touched.len() + self.always.len();
        while let Some(number) = scratch.touched.pop() {
            let conjunction = &self.conjunctions[number];
            if std::mem::take(&mut scratch.counts[number as usize]) == conjunction.count {
                report(conjunction);
            }
        }
        self.always.iter().for_each(|&number| report(&self.conjunctions[number]));
    }

    /// How many subscriptions there are.
    pub fn len(&self) -> usize {
        self.subscriptions.len()
    }

    /// Whether there is no subscription.
    pub fn is_empty(&self) -> bool {
        self.subscriptions.is_empty()
    }

    /// Whether there is a subscription of this id.
    pub fn contains(&self, id: SubscriptionId) -> bool {
        self.subscriptions.contains_key(&id)
    }

    /// An estimate of the bytes in use. Linear in the subscriptions.
    pub fn memory_usage(&self) -> usize {
        let users: usize = self.users.iter().map(|users| users.capacity() * size_of::<User>()).sum();
        let needs: usize = self.conjunctions.values().map(|counted| size_of_val(&*counted.needs)).sum();
        let numbers: usize = self.subscriptions.values().map(|numbers| numbers.capacity() * size_of::<u32>()).sum();
        self.predicates.memory_usage()
            + self.conjunctions.memory_usage()
            + users
            + needs
            + numbers
            + self.users.capacity() * size_of::<Vec<User>>()
            + self.subscriptions.capacity() * size_of::<(SubscriptionId, Vec<u32>)>()
            + self.always.len() * size_of::<u32>()
    }
}
