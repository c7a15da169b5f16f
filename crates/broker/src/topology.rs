//! What is known of all brokers: their link states, their scopes, and the routes that follow.

use crate::paths::{Before, Route, Routes};
use crate::records::Records;
use crate::scope::MAX_FILTERS;
use crate::{AnnouncedFilter, BrokerId, Held, LinkState, Scope, ScopeRecord, Time, Version};
use enroute_covering::overlaps;
use enroute_filter::{Conjunction, Filter};
use std::collections::btree_map::Entry;
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
            Scope::Filters(filters) => {
                match filters.iter().map(AnnouncedFilter::conjunction).collect::<Result<Vec<_>, _>>() {
                    Ok(conjunctions) if !conjunctions.contains(&Conjunction::always()) => {
                        ScopeView::Filters(conjunctions)
                    }
                    Ok(_) | Err(_) => ScopeView::Anything,
                }
            }
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

/// What a broker has last said of its scope.
#[derive(Clone, Debug)]
struct Known {
    record: Arc<ScopeRecord>,
    scope: ScopeView,
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

/// The network as this broker knows it. Of each broker it holds the link state and the route to it, in arrays; of those with
/// something to it, what that is: most publish nothing and can be reached.
#[derive(Debug)]
pub(crate) struct Topology {
    me: BrokerId,
    capacity: usize,
    link_states: Records,
    routes: Routes,
    scopes: BTreeMap<BrokerId, Known>,
    /// The known brokers that there is no path to, and since when.
    unreachable: BTreeMap<BrokerId, Time>,
    /// The brokers that a neighbour was not told of because there was no path to them then.
    withheld: BTreeSet<BrokerId>,
    /// The brokers of which something is new since the routes were computed, and the link states they had then.
    changed: Before<Arc<LinkState>>,
}

impl Topology {
    pub(crate) fn new(me: BrokerId, capacity: usize) -> Topology {
        let mut link_states = Records::default();
        let routes = Routes::new(link_states.numbers.take(me));
        Topology {
            me,
            capacity,
            link_states,
            routes,
            scopes: BTreeMap::new(),
            unreachable: BTreeMap::new(),
            withheld: BTreeSet::new(),
            changed: Before::new(),
        }
    }

    /// Holds these link states instead of those that it held, and the routes that follow.
    pub(crate) fn begin(&mut self, mut link_states: Records, now: Time) {
        self.routes = Routes::from_nothing(link_states.numbers.take(self.me), &link_states);
        self.changed.clear();
        let out_of_reach = |&(broker, number): &(BrokerId, u32)| broker != self.me && self.routes.get(number).is_none();
        self.unreachable = link_states.numbers.iter().filter(out_of_reach).map(|(broker, _)| (broker, now)).collect();
        self.withheld = self.unreachable.keys().copied().collect();
        self.link_states = link_states;
    }

    pub(crate) fn link_state(&self, broker: BrokerId) -> Option<&Arc<LinkState>> {
        self.link_states.get(broker)
    }

    pub(crate) fn scope_record(&self, broker: BrokerId) -> Option<&Arc<ScopeRecord>> {
        self.scopes.get(&broker).map(|known| &known.record)
    }

    /// The scope of a broker that is known in its present life.
    pub(crate) fn scope(&self, broker: BrokerId) -> &ScopeView {
        const NOBODY: &ScopeView = &ScopeView::Nobody;
        self.scopes.get(&broker).map_or(NOBODY, |known| &known.scope)
    }

    pub(crate) fn scope_version(&self, broker: BrokerId) -> Version {
        self.scopes.get(&broker).map_or(Version::default(), |known| known.record.version)
    }

    /// The present incarnation of a broker whose link state is held.
    pub(crate) fn incarnation(&self, broker: BrokerId) -> Option<u64> {
        self.link_state(broker).map(|record| record.version.incarnation)
    }

    pub(crate) fn route(&self, broker: BrokerId) -> Option<&Route> {
        self.routes.get(self.link_states.numbers.get(broker)?)
    }

    /// All brokers that there is a path to, in order of their ids; oneself not among them.
    pub(crate) fn reachable(&self) -> impl Iterator<Item = BrokerId> {
        let reached = |&(_, number): &(BrokerId, u32)| self.routes.get(number).is_some();
        self.link_states.numbers.iter().filter(reached).map(|(broker, _)| broker)
    }

    /// Brokers without a path to them that one with a path, or this one, lists as a neighbour: those that do not list the link yet.
    pub(crate) fn about_to_be_reachable(&self) -> impl Iterator<Item = BrokerId> {
        let in_reach = |broker: BrokerId| broker == self.me || self.route(broker).is_some();
        let coming = move |&(to, from): &(BrokerId, BrokerId)| !in_reach(to) && in_reach(from);
        self.link_states.half_links().filter(coming).map(|(to, _)| to)
    }

    /// All link states that are held, the own one among them, each with whether there is a path to its origin; in order of the ids.
    pub(crate) fn link_states(&self) -> impl Iterator<Item = (&Arc<LinkState>, bool)> {
        self.link_states
            .iter()
            .map(|(number, record)| (record, record.origin == self.me || self.routes.get(number).is_some()))
    }

    /// The number of brokers that there are link states of, this one included.
    pub(crate) fn len(&self) -> usize {
        self.link_states.len()
    }

    /// All brokers of which a link state is held, oneself among them.
    pub(crate) fn brokers(&self) -> impl Iterator<Item = BrokerId> {
        self.link_states.iter().map(|(_, record)| record.origin)
    }

    /// The brokers whose clients publish, with what; those of whom no link state is held are not among them.
    pub(crate) fn publishers(&self) -> impl Iterator<Item = (BrokerId, &ScopeView)> {
        let publishes = |(broker, known): &(&BrokerId, &Known)| {
            known.scope != ScopeView::Nobody && self.link_states.get(**broker).is_some()
        };
        self.scopes.iter().filter(publishes).map(|(&broker, known)| (broker, &known.scope))
    }

    pub(crate) fn unreachable_since(&self, broker: BrokerId) -> Option<Time> {
        self.unreachable.get(&broker).copied()
    }

    /// What can be offered to a new neighbour: the origins that there is a path to, and oneself.
    pub(crate) fn offer(&self) -> Vec<Held> {
        let held = |record: &LinkState| {
            let origin = record.origin;
            Held { origin, links: record.version, scope: self.scope_version(origin) }
        };
        self.link_states().filter(|(_, in_reach)| *in_reach).map(|(record, _)| held(record)).collect()
    }

    /// A neighbour is told of what can be reached only: notes which brokers were left out.
    pub(crate) fn withhold_unreachable(&mut self) {
        self.withheld.extend(self.unreachable.keys());
    }

    /// Whether some neighbour was not told of a broker; not so any more after this.
    pub(crate) fn take_withheld(&mut self, broker: BrokerId) -> bool {
        self.withheld.remove(&broker)
    }

    /// Takes in a link state if it is newer than what is held.
    pub(crate) fn accept_link_state(&mut self, record: Arc<LinkState>) -> Accepted {
        let origin = record.origin;
        let (new_life, links_changed) = match self.link_state(origin) {
            Some(held) if held.peer_id != record.peer_id => return Accepted::Clash { held_by: held.peer_id.clone() },
            Some(held) if held.version >= record.version => return Accepted::Old,
            Some(held) => (held.version.incarnation < record.version.incarnation, held.links != record.links),
            None if self.link_states.len() >= self.capacity => return Accepted::Full,
            None => (true, true),
        };
        if self.scope_version(origin).incarnation < record.version.incarnation {
            self.scopes.remove(&origin);
        }
        let (number, old) = self.link_states.insert(record);
        self.changed.entry(number).or_insert(old);
        Accepted::New { new_life, links_changed }
    }

    /// Takes in a scope if it is newer than what is held and not of an earlier life. It may come before the link state of
    /// its origin and is kept then.
    pub(crate) fn accept_scope(&mut self, record: Arc<ScopeRecord>) -> Accepted {
        let (origin, version) = (record.origin, record.version);
        let present = self.incarnation(origin);
        let numbers = &self.link_states.numbers;
        if !numbers.is_known(origin) && numbers.len() >= self.capacity {
            return Accepted::Full;
        }
        let held = self.scope_version(origin);
        if version <= held || present.is_some_and(|present| version.incarnation < present) {
            return Accepted::Old;
        }
        // Whether there is a path to one whose link state is held has been judged with that. Any incarnation may be the first,
        // 0 too: who is never judged would never be forgotten.
        let first = held == Version::default() || held.incarnation < version.incarnation;
        let new_life = first && present != Some(version.incarnation);
        let number = self.link_states.numbers.take(origin);
        if new_life {
            self.changed.entry(number).or_insert_with(|| self.link_states.at(number).cloned());
        }
        let scope = ScopeView::read(&record.scope);
        self.scopes.insert(origin, Known { record, scope });
        Accepted::New { new_life, links_changed: false }
    }

    /// Computes the routes that are other ones now, and says what changed.
    pub(crate) fn update_routes(&mut self, now: Time) -> RouteChange {
        let changed = std::mem::take(&mut self.changed);
        let before = self.routes.update(&changed, &self.link_states);
        let mut change = RouteChange::default();
        let judged: BTreeSet<u32> = before.keys().chain(changed.keys()).copied().collect();
        let named = judged.iter().filter_map(|&number| Some((self.link_states.numbers.id(number)?, number)));
        let mut named: Vec<(BrokerId, u32)> = named.collect();
        // What follows is done in an order that does not depend on who was heard of first.
        named.sort_unstable();
        for (broker, number) in named {
            let present = self.routes.get(number);
            match (before.get(&number), present) {
                (Some(None), Some(_)) => change.appeared.push(broker),
                (Some(Some(old)), Some(new)) if old.next_hop != new.next_hop => change.moved.push(broker),
                (Some(_) | None, Some(_) | None) => {}
            }
            if broker == self.me || present.is_some() {
                self.unreachable.remove(&broker);
            } else if let Entry::Vacant(unreachable) = self.unreachable.entry(broker) {
                unreachable.insert(now);
                // A neighbour may forget it before this broker does, and is told again when it comes back.
                self.withheld.insert(broker);
                change.vanished.push(broker);
            }
        }
        change
    }

    /// Forgets a broker.
    pub(crate) fn purge(&mut self, broker: BrokerId) {
        if let Some(number) = self.link_states.numbers.get(broker) {
            self.changed.remove(&number);
        }
        self.link_states.remove(broker);
        self.link_states.numbers.give_up(broker);
        self.scopes.remove(&broker);
        self.unreachable.remove(&broker);
        self.withheld.remove(&broker);
    }
}
