//! What all systems share: subscriptions and their conjunctions, numbered and coded, and the check of candidates.

use crate::Engine;
use crate::coded::{Coded, CodedEvent, Coder, Kind, Predicate};
use enroute_filter::{Conjunction, Event, Filter};
use enroute_matcher::SubscriptionId;
use std::collections::HashMap;

/// A system of the literature: it indexes numbered conjunctions, of what its paper can say.
pub(crate) trait Index: Default {
    /// What the system is called on a command line.
    const NAME: &'static str;

    /// How well the index can say a predicate.
    fn grasp(predicate: &Predicate) -> Grasp;

    /// Adds the conjunction `number`, which is in `conjunctions` already.
    fn insert(&mut self, number: u32, conjunctions: &Conjunctions);

    /// Removes the conjunction `number`, which is in `conjunctions` still.
    fn remove(&mut self, number: u32, conjunctions: &Conjunctions);

    /// Appends the numbers of the conjunctions that the event fits, each once, in any order.
    fn find(&mut self, event: &CodedEvent, conjunctions: &Conjunctions, found: &mut Vec<u32>);

    /// An estimate of the bytes in use.
    fn memory_usage(&self) -> usize;
}

/// How well an index can say a predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grasp {
    /// Wholly.
    Exact,
    /// Some events that fail it are taken to satisfy it.
    Wider,
    /// Not; its hull is tried instead, and if that is not grasped either, the conjunction goes without.
    Not,
}

/// The conjunctions of an engine by number.
#[derive(Debug, Default)]
pub(crate) struct Conjunctions(Vec<Stored>);

#[derive(Debug)]
struct Stored {
    /// As far as the index grasps it.
    coded: Coded,
    subscription: SubscriptionId,
    /// The subscription's next conjunction.
    next: Option<u32>,
    /// The conjunction itself, if candidates must be checked.
    check: Option<Box<Conjunction>>,
}

impl Conjunctions {
    pub(crate) fn coded(&self, number: u32) -> &Coded {
        &self.0[number as usize].coded
    }
}

/// An [`Engine`] around an [`Index`].
#[derive(Debug, Default)]
pub(crate) struct Indexed<I> {
    pub(crate) index: I,
    pub(crate) coder: Coder,
    pub(crate) conjunctions: Conjunctions,
    vacant: Vec<u32>,
    /// The first conjunction of each subscription.
    subscriptions: HashMap<SubscriptionId, Option<u32>>,
    /// How many conjunctions are not the first of their subscription, so that it may be found twice.
    further: usize,
    event: CodedEvent,
    found: Vec<u32>,
}

impl<I: Index> Indexed<I> {
    fn insert_conjunction(
        &mut self,
        subscription: SubscriptionId,
        next: Option<u32>,
        conjunction: &Conjunction,
    ) -> u32 {
        let (coded, mut exact) = self.coder.conjunction(conjunction);
        let mut kept = Vec::with_capacity(coded.predicates.len());
        for predicate in &coded.predicates {
            let grasp = I::grasp(predicate);
            exact &= grasp == Grasp::Exact;
            let hull = || predicate.hull(&coded.points).filter(|hull| I::grasp(hull) != Grasp::Not);
            kept.extend(if grasp == Grasp::Not { hull() } else { Some(*predicate) });
        }
        let needs_points = kept.iter().any(|predicate| matches!(predicate.kind, Kind::Points | Kind::NotPoints));
        let points = if needs_points { coded.points } else { Box::default() };
        let stored = Stored {
            coded: Coded { predicates: kept.into(), points },
            subscription,
            next,
            check: (!exact).then(|| Box::new(conjunction.clone())),
        };
        let number = match self.vacant.pop() {
            Some(number) => {
                self.conjunctions.0[number as usize] = stored;
                number
            }
            None => {
                self.conjunctions.0.push(stored);
                u32::try_from(self.conjunctions.0.len() - 1).expect("fewer than 2^32 conjunctions fit into memory")
            }
        };
        self.further += usize::from(next.is_some());
        self.index.insert(number, &self.conjunctions);
        number
    }
}

impl<I: Index> Engine for Indexed<I> {
    fn name(&self) -> &'static str {
        I::NAME
    }

    fn insert(&mut self, id: SubscriptionId, filter: &Filter) -> bool {
        if self.subscriptions.contains_key(&id) {
            return false;
        }
        let mut first = None;
        for conjunction in filter.conjunctions() {
            first = Some(self.insert_conjunction(id, first, conjunction));
        }
        self.subscriptions.insert(id, first);
        true
    }

    fn remove(&mut self, id: SubscriptionId) -> bool {
        let Some(mut number) = self.subscriptions.remove(&id) else { return false };
        while let Some(current) = number {
            self.index.remove(current, &self.conjunctions);
            let stored = &mut self.conjunctions.0[current as usize];
            number = stored.next;
            self.further -= usize::from(number.is_some());
            (stored.coded, stored.check) = (Coded::default(), None);
            self.vacant.push(current);
        }
        if self.subscriptions.is_empty() {
            *self = Self::default();
        }
        true
    }

    fn matches(&mut self, event: &Event, out: &mut Vec<SubscriptionId>) {
        out.clear();
        self.found.clear();
        self.coder.read(event, &mut self.event);
        self.index.find(&self.event, &self.conjunctions, &mut self.found);
        for &number in &self.found {
            let stored = &self.conjunctions.0[number as usize];
            if stored.check.as_ref().is_none_or(|conjunction| conjunction.matches(event)) {
                out.push(stored.subscription);
            }
        }
        if self.further > 0 {
            out.sort_unstable();
            out.dedup();
        }
    }

    fn len(&self) -> usize {
        self.subscriptions.len()
    }

    fn memory_usage(&self) -> usize {
        let stored = |stored: &Stored| {
            stored.coded.memory_usage() + stored.check.as_ref().map_or(0, |_| size_of::<Conjunction>())
        };
        self.index.memory_usage()
            + self.coder.memory_usage()
            + self.conjunctions.0.iter().map(stored).sum::<usize>()
            + self.conjunctions.0.capacity() * size_of::<Stored>()
            + self.vacant.capacity() * size_of::<u32>()
            + self.subscriptions.capacity() * size_of::<(SubscriptionId, Option<u32>)>()
    }
}
