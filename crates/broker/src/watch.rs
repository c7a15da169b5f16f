//! Watched filters: who would publish only what somebody wants is told when that changes, and need not even make the event.
//!
//! Of each it is kept whether anybody's interest overlaps it. What is added to an interest is compared by itself; only when
//! something is gone that overlapped is everything looked through again, and only as far as the first that does.

use crate::broker::Broker;
use crate::interest::Source;
use crate::topology::ScopeView;
use crate::{AnnouncedFilter, Interested};
use enroute_covering::{covers, overlaps};
use enroute_filter::{Conjunction, Event, Filter};
use std::borrow::Borrow;
use std::collections::BTreeMap;

/// A watched filter; the driver numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchId(pub u64);

/// What is known of a watched filter.
#[derive(Debug)]
struct Watched {
    filter: Filter,
    /// Whether a client or leaf here wants some of it; none if that has to be found out anew.
    here: Option<bool>,
    /// Likewise, of the rest of the network.
    beyond: Option<bool>,
    told: Option<Interested>,
}

/// All watched filters.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    watched: BTreeMap<WatchId, Watched>,
    /// Whether an answer may be another one than was told.
    stale: bool,
}

impl Watches {
    pub(crate) fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    /// An interest has changed.
    pub(crate) fn note<'a>(
        &mut self,
        source: Source,
        added: impl Iterator<Item = &'a Conjunction> + Clone,
        removed: impl Iterator<Item = &'a Conjunction> + Clone,
    ) {
        for Watched { filter, here, beyond, .. } in self.watched.values_mut() {
            let wanted = if source == Source::Beyond { beyond } else { here };
            if *wanted == Some(true) && overlaps_any(filter, removed.clone()) {
                *wanted = None;
            }
            if *wanted != Some(true) && overlaps_any(filter, added.clone()) {
                *wanted = Some(true);
            }
        }
        self.stale = true;
    }

    /// Something has changed that an answer depends on.
    pub(crate) fn doubt(&mut self) {
        self.stale = true;
    }

    /// What the rest of the network wants has been forgotten or replaced.
    pub(crate) fn doubt_beyond(&mut self) {
        self.watched.values_mut().for_each(|watched| watched.beyond = None);
        self.stale = true;
    }
}

fn overlaps_any<'a>(filter: &Filter, mut conjunctions: impl Iterator<Item = &'a Conjunction>) -> bool {
    conjunctions.any(|conjunction| filter.conjunctions().iter().any(|own| overlaps(own, conjunction)))
}

impl Broker {
    /// Begins to watch a filter; the first answer comes with the next [`Broker::take_watched`].
    pub fn watch(&mut self, watch: WatchId, filter: Filter) {
        let watched = Watched { filter, here: None, beyond: None, told: None };
        self.watches.watched.insert(watch, watched);
        self.watches.doubt();
    }

    /// Forgets a watched filter.
    pub fn unwatch(&mut self, watch: WatchId) {
        self.watches.watched.remove(&watch);
    }

    /// The answers that have changed since they were last taken: whether anybody may want some event that matches the filter.
    /// It is no only for a filter within the scope, since beyond that others do not say what they want. To be asked after
    /// each input; costs nothing if nothing has changed.
    pub fn take_watched(&mut self) -> Vec<(WatchId, Interested)> {
        if !std::mem::take(&mut self.watches.stale) {
            return Vec::new();
        }
        let complete = self.view_is_complete();
        let mut watches = std::mem::take(&mut self.watches.watched);
        let mut answers = Vec::new();
        for (&watch, watched) in &mut watches {
            let Watched { filter, here, beyond, told } = watched;
            let here = *here.get_or_insert_with(|| self.is_wanted_here(filter));
            let beyond = *beyond.get_or_insert_with(|| self.is_wanted_beyond(filter));
            let answer = if here || (beyond && self.relies_on_others()) {
                Interested::Yes
            } else if complete && self.has_in_scope(filter) {
                Interested::No
            } else {
                Interested::Unknown
            };
            if told.replace(answer) != Some(answer) {
                answers.push((watch, answer));
            }
        }
        self.watches.watched = watches;
        answers
    }

    /// Whether what is held of others' interest holds: a leaf broker needs a lease for that.
    fn relies_on_others(&self) -> bool {
        self.uplink.is_none() || self.is_leased()
    }

    fn is_wanted_here(&self, filter: &Filter) -> bool {
        let of_leaves = self.leaves.iter().flat_map(|(_, leaf)| leaf.filters.iter());
        overlaps_any(filter, self.interest.clients().roots())
            || overlaps_any_announced(filter, of_leaves.map(|(filter, _)| filter))
    }

    fn is_wanted_beyond(&self, filter: &Filter) -> bool {
        match &self.uplink {
            Some(uplink) => overlaps_any_announced(filter, uplink.others.filters().map(|(filter, _)| filter)),
            None => overlaps_any_announced(filter, self.remote.filters()),
        }
    }

    /// Whether everything that matches a filter is within the scope that others know.
    fn has_in_scope(&self, filter: &Filter) -> bool {
        match self.topology.scope(self.identity.id) {
            ScopeView::Nobody => false,
            ScopeView::Anything => true,
            ScopeView::Filters(roots) => {
                filter.conjunctions().iter().all(|own| roots.iter().any(|root| covers(root, own)))
            }
        }
    }

    /// Whether an event is within the scope that others know.
    pub(crate) fn has_event_in_scope(&self, event: &Event) -> bool {
        match self.topology.scope(self.identity.id) {
            ScopeView::Nobody => false,
            ScopeView::Anything => true,
            ScopeView::Filters(roots) => roots.iter().any(|root| root.matches(event)),
        }
    }
}

fn overlaps_any_announced(filter: &Filter, mut announced: impl Iterator<Item = impl Borrow<AnnouncedFilter>>) -> bool {
    announced.any(|announced| overlaps_any(filter, std::iter::once(&announced.borrow().or_always())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conjunctions(texts: &[&str]) -> Vec<Conjunction> {
        let filters = texts.iter().map(|text| Filter::parse(text).expect("a filter"));
        filters.flat_map(|filter| filter.conjunctions().to_vec()).collect()
    }

    #[test]
    fn all_is_looked_through_again_only_when_something_is_gone_that_overlapped() {
        let mut watches = Watches::default();
        let filter = Filter::parse("n >= 0 AND n < 10 OR kind = 'x'").expect("a filter");
        let watched = Watched { filter, here: Some(false), beyond: Some(false), told: None };
        watches.watched.insert(WatchId(1), watched);
        let cases: [(Source, &[&str], &[&str], _, _); 7] = [
            (
                Source::Clients,
                &["n < 0 AND kind = 'y'", "n > 9.5 AND n < 9.75 AND kind = 'y'"],
                &[],
                Some(true),
                Some(false),
            ),
            (Source::Clients, &[], &["n < 0 AND kind = 'y'"], Some(true), Some(false)),
            (Source::Beyond, &["n = 10 AND kind = 'y'"], &[], Some(true), Some(false)),
            (Source::Beyond, &["n = 10"], &[], Some(true), Some(true)),
            (Source::Beyond, &["kind PREFIX 'x'"], &["n = 10"], Some(true), Some(true)),
            (Source::Beyond, &[], &["kind PREFIX 'x'"], Some(true), None),
            (Source::Leaf(crate::LinkId(1)), &[], &["n = 9"], None, None),
        ];
        for (number, (source, added, removed, here, beyond)) in cases.into_iter().enumerate() {
            let (added, removed) = (conjunctions(added), conjunctions(removed));
            watches.note(source, added.iter(), removed.iter());
            let watched = &watches.watched[&WatchId(1)];
            assert_eq!((watched.here, watched.beyond), (here, beyond), "case {number}");
        }
    }
}
