//! The own interest: what the clients and the leaves below want of the rest of the network, and who is told of a change.

use crate::broker::Broker;
use crate::{LinkId, Output};
use enroute_covering::{Forest, RootChange, RootDifference};
use enroute_filter::Conjunction;
use enroute_matcher::SubscriptionId;

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

/// Covering, hop by hop: a forest over what the clients want, and one over its roots and what the leaves below want.
#[derive(Debug, Default)]
pub(crate) struct LocalInterest {
    clients: Forest,
    all: Forest,
}

impl LocalInterest {
    /// The forest over the clients' subscriptions.
    pub(crate) fn clients(&self) -> &Forest {
        &self.clients
    }

    /// How many filters others are told.
    pub(crate) fn root_count(&self) -> usize {
        self.all.root_count()
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

    /// Takes on a change of the clients' roots, and gives what it changes for others.
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
        if !roots.is_empty() || self.quench.is_active() {
            self.announcements.version += 1;
        }
        self.announce_change(roots, out);
        self.tell_quenched(source, change, out);
    }
}
