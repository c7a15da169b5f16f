//! What is known of all brokers: their link states, their scopes, and the routes that follow.

use crate::paths::{Records, Route, Routes};
use crate::scope::MAX_FILTERS;
use crate::{AnnouncedFilter, BrokerId, Held, LinkState, Scope, ScopeRecord, Time, Version};
use enroute_covering::overlaps;
use enroute_filter::{Conjunction, Filter};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A scope with its filters decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ScopeView {
    /// Nobody publishes.
    #[default]
    Nobody,
    /// Whatever is published may come.
    Anything,
    /// Only events that match one of these come.
    Filters(Vec<Conjunction>),
}

impl ScopeView {
    /// Decodes a scope. What cannot be read, or is more than anybody needs to look through, may be anything: reading it as
    /// less would lose events.
    pub(crate) fn read(scope: &Scope) -> ScopeView {
        match scope {
            Scope::Nobody => ScopeView::Nobody,
            Scope::Anything => ScopeView::Anything,
            Scope::Filters(filters) if filters.len() > MAX_FILTERS => ScopeView::Anything,
            Scope::Filters(filters) => match filters.iter().map(AnnouncedFilter::conjunction).collect() {
                Ok(conjunctions) => ScopeView::Filters(conjunctions),
                Err(_) => ScopeView::Anything,
            },
        }
    }

    /// Whether an event within this scope could match the filter.
    pub(crate) fn overlaps_any(&self, filter: &Filter) -> bool {
        filter.conjunctions().iter().any(|conjunction| self.overlaps(conjunction))
    }

    /// Whether an event within this scope could match the conjunction.
    pub(crate) fn overlaps(&self, conjunction: &Conjunction) -> bool {
        match self {
            ScopeView::Nobody => false,
            ScopeView::Anything => true,
            ScopeView::Filters(filters) => filters.iter().any(|filter| overlaps(filter, conjunction)),
        }
    }
}

/// What is held of one broker.
#[derive(Debug, Default)]
struct Known {
    scope_version: Version,
    scope_record: Option<Arc<ScopeRecord>>,
    scope: ScopeView,
    /// Since when there is no path to it; none while there is.
    unreachable_since: Option<Time>,
    /// Whether a neighbour was not told of it because there was no path to it then.
    withheld: bool,
}

/// What a record did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// It is no newer than what is held.
    Old,
    /// Taken in. For link states: whether it begins a new life of its origin, and whether its links are other ones.
    New {
        /// The first record of this incarnation.
        new_life: bool,
        /// Routes may change.
        links_changed: bool,
    },
    /// Its peer id is not that of the broker known under this id.
    Clash {
        /// The peer known under the id.
        held_by: Arc<str>,
    },
    /// There are too many brokers.
    Full,
}

/// How reachability changed with a new computation of the routes.
#[derive(Debug, Default)]
pub(crate) struct RouteChange {
    /// Brokers that there is a path to now, and was none.
    pub(crate) appeared: Vec<BrokerId>,
    /// Brokers that there was a path to, and is none now.
    pub(crate) vanished: Vec<BrokerId>,
    /// Brokers whose path begins with another neighbour than before.
    pub(crate) moved: Vec<BrokerId>,
}

/// The network as this broker knows it.
#[derive(Debug)]
pub(crate) struct Topology {
    me: BrokerId,
    capacity: usize,
    link_states: Records,
    known: BTreeMap<BrokerId, Known>,
    routes: Routes,
    /// The brokers of which something is new since the routes were computed, and the link states they had then.
    changed: BTreeMap<BrokerId, Option<Arc<LinkState>>>,
}

impl Topology {
    pub(crate) fn new(me: BrokerId, capacity: usize) -> Topology {
        let (link_states, known, changed) = (Records::new(), BTreeMap::new(), BTreeMap::new());
        Topology { me, capacity, link_states, known, routes: Routes::new(me), changed }
    }

    pub(crate) fn link_state(&self, broker: BrokerId) -> Option<&Arc<LinkState>> {
        self.link_states.get(&broker)
    }

    pub(crate) fn scope_record(&self, broker: BrokerId) -> Option<&Arc<ScopeRecord>> {
        self.known.get(&broker)?.scope_record.as_ref()
    }

    /// The scope of a broker that is known in its present life.
    pub(crate) fn scope(&self, broker: BrokerId) -> &ScopeView {
        const NOBODY: &ScopeView = &ScopeView::Nobody;
        self.known.get(&broker).map_or(NOBODY, |known| &known.scope)
    }

    pub(crate) fn scope_version(&self, broker: BrokerId) -> Version {
        self.known.get(&broker).map_or(Version::default(), |known| known.scope_version)
    }

    /// The present incarnation of a broker whose link state is held.
    pub(crate) fn incarnation(&self, broker: BrokerId) -> Option<u64> {
        self.link_states.get(&broker).map(|record| record.version.incarnation)
    }

    pub(crate) fn route(&self, broker: BrokerId) -> Option<&Route> {
        self.routes.get(broker)
    }

    /// All brokers that there is a path to, in order of their ids; oneself not among them.
    pub(crate) fn reachable(&self) -> impl Iterator<Item = BrokerId> {
        self.routes.destinations()
    }

    /// The neighbours of all that can be reached, as these list them: among them those that do not list the link yet.
    pub(crate) fn listed_by_reachable(&self) -> impl Iterator<Item = BrokerId> {
        let records = self.reachable().chain([self.me]).filter_map(|broker| self.link_states.get(&broker));
        records.flat_map(|record| record.links.iter().map(|link| link.neighbour))
    }

    /// All link states that are held, the own one among them.
    pub(crate) fn link_states(&self) -> impl Iterator<Item = &Arc<LinkState>> {
        self.link_states.values()
    }

    /// All brokers of which a link state is held, oneself among them.
    pub(crate) fn brokers(&self) -> impl Iterator<Item = BrokerId> {
        self.link_states.keys().copied()
    }

    /// The brokers whose clients publish, with what; those of whom no link state is held are not among them.
    pub(crate) fn publishers(&self) -> impl Iterator<Item = (BrokerId, &ScopeView)> {
        let publishes = |(broker, known): &(&BrokerId, &Known)| {
            known.scope != ScopeView::Nobody && self.link_states.contains_key(broker)
        };
        self.known.iter().filter(publishes).map(|(&broker, known)| (broker, &known.scope))
    }

    pub(crate) fn unreachable_since(&self, broker: BrokerId) -> Option<Time> {
        self.known.get(&broker)?.unreachable_since
    }

    /// What can be offered to a new neighbour: the origins that there is a path to, and oneself.
    pub(crate) fn offer(&self) -> Vec<Held> {
        let held = |(&origin, record): (&BrokerId, &Arc<LinkState>)| {
            let offered = origin == self.me || self.routes.get(origin).is_some();
            offered.then(|| Held { origin, links: record.version, scope: self.scope_version(origin) })
        };
        self.link_states.iter().filter_map(held).collect()
    }

    /// A neighbour is told of what can be reached only: notes which brokers were left out.
    pub(crate) fn withhold_unreachable(&mut self) {
        for known in self.known.values_mut().filter(|known| known.unreachable_since.is_some()) {
            known.withheld = true;
        }
    }

    /// Whether some neighbour was not told of a broker; not so any more after this.
    pub(crate) fn take_withheld(&mut self, broker: BrokerId) -> bool {
        self.known.get_mut(&broker).is_some_and(|known| std::mem::take(&mut known.withheld))
    }

    /// Takes in a link state if it is newer than what is held.
    pub(crate) fn accept_link_state(&mut self, record: Arc<LinkState>) -> Accepted {
        let origin = record.origin;
        let (new_life, links_changed) = match self.link_states.get(&origin) {
            Some(held) if held.peer_id != record.peer_id => return Accepted::Clash { held_by: held.peer_id.clone() },
            Some(held) if held.version >= record.version => return Accepted::Old,
            Some(held) => (held.version.incarnation < record.version.incarnation, held.links != record.links),
            None if self.link_states.len() >= self.capacity => return Accepted::Full,
            None => (true, true),
        };
        let known = self.known.entry(origin).or_default();
        if known.scope_version.incarnation < record.version.incarnation {
            let Known { unreachable_since, withheld, .. } = *known;
            *known = Known { unreachable_since, withheld, ..Known::default() };
        }
        let old = self.link_states.insert(origin, record);
        self.changed.entry(origin).or_insert(old);
        Accepted::New { new_life, links_changed }
    }

    /// Takes in a scope if it is newer than what is held and not of an earlier life. It may come before the link state of
    /// its origin and is kept then.
    pub(crate) fn accept_scope(&mut self, record: Arc<ScopeRecord>) -> Accepted {
        let present = self.incarnation(record.origin).unwrap_or(0);
        if !self.known.contains_key(&record.origin) && self.known.len() >= self.capacity {
            return Accepted::Full;
        }
        let known = self.known.entry(record.origin).or_default();
        if record.version <= known.scope_version || record.version.incarnation < present {
            return Accepted::Old;
        }
        let new_life = known.scope_version.incarnation < record.version.incarnation;
        self.changed.entry(record.origin).or_insert_with(|| self.link_states.get(&record.origin).cloned());
        known.scope_version = record.version;
        known.scope = ScopeView::read(&record.scope);
        known.scope_record = Some(record);
        Accepted::New { new_life, links_changed: false }
    }

    /// Computes the routes that are other ones now, and says what changed.
    pub(crate) fn update_routes(&mut self, now: Time) -> RouteChange {
        let changed = std::mem::take(&mut self.changed);
        let before = self.routes.update(&changed, &self.link_states);
        let mut change = RouteChange::default();
        for (&broker, old) in &before {
            match (old, self.routes.get(broker)) {
                (None, Some(_)) => change.appeared.push(broker),
                (Some(old), Some(new)) if old.next_hop != new.next_hop => change.moved.push(broker),
                (Some(_) | None, Some(_) | None) => {}
            }
        }
        let judged: BTreeSet<BrokerId> = before.keys().chain(changed.keys()).copied().collect();
        for broker in judged {
            let reachable = broker == self.me || self.routes.get(broker).is_some();
            let Some(known) = self.known.get_mut(&broker) else { continue };
            if reachable {
                known.unreachable_since = None;
            } else if known.unreachable_since.is_none() {
                known.unreachable_since = Some(now);
                // A neighbour may forget it before this broker does, and is told again when it comes back.
                known.withheld = true;
                change.vanished.push(broker);
            }
        }
        change
    }

    /// Forgets a broker.
    pub(crate) fn purge(&mut self, broker: BrokerId) {
        self.link_states.remove(&broker);
        self.known.remove(&broker);
    }
}
