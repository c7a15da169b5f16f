//! The naive scan: the truth that the other engines are tested against.

use crate::{Owner, Scratch, SubscriptionId};
use enroute_filter::{Event, Filter};
use std::collections::{BTreeMap, BTreeSet};

/// Tests [`Filter::matches`] of one subscription after the other.
#[derive(Clone, Debug, Default)]
pub struct NaiveScan {
    subscriptions: BTreeMap<SubscriptionId, (Owner, Filter)>,
    by_owner: BTreeMap<Owner, BTreeSet<SubscriptionId>>,
}

impl NaiveScan {
    /// An engine without subscriptions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a subscription; false, and nothing changes, if the id is there already.
    pub fn insert(&mut self, id: SubscriptionId, owner: Owner, filter: &Filter) -> bool {
        if self.contains(id) {
            return false;
        }
        self.subscriptions.insert(id, (owner, filter.clone()));
        self.by_owner.entry(owner).or_default().insert(id);
        true
    }

    /// Removes a subscription; false if there is none of this id.
    pub fn remove(&mut self, id: SubscriptionId) -> bool {
        let Some((owner, _)) = self.subscriptions.remove(&id) else { return false };
        let ids = self.by_owner.get_mut(&owner).expect("every subscription stands under its owner");
        ids.remove(&id);
        if ids.is_empty() {
            self.by_owner.remove(&owner);
        }
        true
    }

    /// The subscriptions that the event matches, each once, in no order of meaning, in place of what `out` held.
    pub fn matches(&self, event: &Event, scratch: &mut Scratch, out: &mut Vec<SubscriptionId>) {
        scratch.counts.tested = self.subscriptions.len();
        out.clear();
        out.extend(self.subscriptions.iter().filter(|(_, (_, filter))| filter.matches(event)).map(|(id, _)| *id));
    }

    /// The owners of at least one subscription that the event matches, sorted, in place of what `out` held.
    pub fn interested(&self, event: &Event, scratch: &mut Scratch, out: &mut Vec<Owner>) {
        scratch.counts.tested = 0;
        out.clear();
        for (owner, ids) in &self.by_owner {
            let interested = ids.iter().any(|id| {
                scratch.counts.tested += 1;
                self.subscriptions[id].1.matches(event)
            });
            if interested {
                out.push(*owner);
            }
        }
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
        let subscription = size_of::<(SubscriptionId, (Owner, Filter))>() + size_of::<SubscriptionId>();
        let owner = size_of::<(Owner, BTreeSet<SubscriptionId>)>();
        let filters: usize = self.subscriptions.values().map(|(_, filter)| filter_heap(filter)).sum();
        self.subscriptions.len() * subscription + self.by_owner.len() * owner + filters
    }
}

/// An estimate of what a filter owns: its fixed parts, and its operands as they travel.
fn filter_heap(filter: &Filter) -> usize {
    let fixed: usize = filter
        .conjunctions()
        .iter()
        .map(|conjunction| size_of_val(conjunction) + size_of_val(conjunction.constraints()))
        .sum();
    fixed + filter.to_bytes().len()
}
