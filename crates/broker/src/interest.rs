//! The own interest: what the clients and the leaves below want of the rest of the network, and who is told of a change.

use crate::broker::Broker;
use crate::{LinkId, Output};
use enroute_covering::{Forest, Merging, MergingConfig, PredicateSummary, RootChange, RootDifference};
use enroute_filter::{Conjunction, Event};
use enroute_matcher::SubscriptionId;
use std::borrow::Cow;

/// Under this number the roots of the clients' forest stand in that over all; ids of subscriptions are never so large.
const CLIENTS: u64 = u64::MAX;

/// Where interest comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The own clients.
    Clients,
    /// The leaf broker at the other end of this link, and all below it.
    Leaf(LinkId),
    /// The rest of the network.
    Beyond,
}

/// Covering, hop by hop: a forest over what the clients want, and one over its roots and what the leaves below want, whose
/// roots are announced, merged or as they are.
#[derive(Debug)]
pub(crate) struct LocalInterest {
    clients: Forest,
    all: Forest,
    merging: Option<Merging>,
}

impl LocalInterest {
    pub(crate) fn new(config: MergingConfig) -> LocalInterest {
        let merging = (config != MergingConfig::default()).then(|| Merging::new(config));
        LocalInterest { clients: Forest::new(), all: Forest::new(), merging }
    }

    /// The forest over the clients' subscriptions.
    pub(crate) fn clients(&self) -> &Forest {
        &self.clients
    }

    /// How many roots there are over all.
    pub(crate) fn root_count(&self) -> usize {
        self.all.root_count()
    }

    /// What the roots over all say of their attributes.
    pub(crate) fn predicates(&self) -> Vec<PredicateSummary> {
        self.all.predicates()
    }

    /// The share of the seen events that match what is announced though nobody wants them, as merging estimates it.
    pub(crate) fn false_interest(&self) -> Option<f64> {
        self.merging.as_ref()?.false_interest()
    }

    /// An event has been matched here. Says whether something else is to be announced for what it teaches.
    pub(crate) fn observe(&mut self, event: &Event) -> bool {
        self.merging.as_mut().is_some_and(|merging| merging.observe(event))
    }

    /// What a change of the roots over all changes for others.
    fn merge<'a>(&mut self, roots: &'a RootChange) -> Cow<'a, RootChange> {
        match &mut self.merging {
            Some(merging) if !roots.is_empty() => Cow::Owned(merging.apply(roots)),
            Some(_) | None => Cow::Borrowed(roots),
        }
    }

    /// A client wants this, by a subscription with that id.
    pub(crate) fn insert(&mut self, id: SubscriptionId, conjunction: &Conjunction) -> RootChange {
        self.clients.insert(id.0, conjunction)
    }

    /// A client does not want this any more.
    pub(crate) fn remove(&mut self, id: SubscriptionId, conjunction: &Conjunction) -> RootChange {
        self.clients.remove(id.0, conjunction)
    }

    /// A leaf wants this, known by that id.
    pub(crate) fn insert_of_leaf(&mut self, id: SubscriptionId, conjunction: &Conjunction) -> RootChange {
        self.all.insert(id.0, conjunction)
    }

    /// A leaf does not want this any more.
    pub(crate) fn remove_of_leaf(&mut self, id: SubscriptionId, conjunction: &Conjunction) -> RootChange {
        self.all.remove(id.0, conjunction)
    }

    /// Takes on a change of the clients' roots, and gives what it changes in those over all.
    fn clients_changed(&mut self, change: &RootChange) -> RootChange {
        let mut roots = RootDifference::default();
        for root in &change.added {
            roots.apply(self.all.insert(CLIENTS, root));
        }
        for root in &change.removed {
            roots.apply(self.all.remove(CLIENTS, root));
        }
        roots.into_change()
    }
}

impl Broker {
    /// The roots of the clients' forest have changed.
    pub(crate) fn clients_interest_changed(&mut self, change: &RootChange, out: &mut Vec<Output>) {
        if !change.is_empty() {
            let roots = self.interest.clients_changed(change);
            self.tell_interest(Source::Clients, change, &roots, out);
        }
    }

    /// What one source wants has changed, and with it the roots over all: who is concerned is told.
    pub(crate) fn tell_interest(
        &mut self,
        source: Source,
        change: &RootChange,
        roots: &RootChange,
        out: &mut Vec<Output>,
    ) {
        self.watches.note(source, change.added.iter().map(|it| &**it), change.removed.iter().map(|it| &**it));
        let announced = self.interest.merge(roots);
        if !announced.is_empty() || self.quench.is_active() {
            self.announcements.version += 1;
        }
        self.announce_change(&announced, out);
        self.tell_quenched(source, change, out);
    }

    /// Events have shown that the same roots should be announced otherwise.
    pub(crate) fn announce_as_learnt(&mut self, out: &mut Vec<Output>) {
        let Some(merging) = &mut self.interest.merging else { return };
        let change = merging.apply(&RootChange::default());
        if !change.is_empty() {
            self.announcements.version += 1;
            self.announce_change(&change, out);
        }
    }
}
