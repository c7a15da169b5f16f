//! Where the filters of other brokers stand, and which brokers an event matches.

use crate::received::{Changes, Numbered, Step};
use crate::{AnnouncedFilter, BrokerId};
use enroute_filter::{Event, Filter};
use enroute_matcher::{Enindex, Owner, Scratch};
use std::collections::BTreeMap;

/// What a broker holds of what others want: of each origin a set of filters. How the sets came about, and whether they are right,
/// the broker knows by itself.
///
/// A broker has its own, [`Broker::new`](crate::Broker::new) sees to that. Many brokers in one process may be given ones that
/// keep equal sets once ([`Broker::with_filters`](crate::Broker::with_filters)); each answers as if it were alone.
pub trait RemoteFilters: Send {
    /// How many filters there are of an origin.
    fn count(&self, origin: BrokerId) -> usize;

    /// Whether a filter is in the set of an origin.
    fn contains(&self, origin: BrokerId, filter: &AnnouncedFilter) -> bool;

    /// Adds to the set of an origin what is not there, then removes what is; of a `whole`, all goes that is not added.
    fn change(
        &mut self,
        origin: BrokerId,
        whole: bool,
        added: Vec<AnnouncedFilter>,
        removed: Vec<AnnouncedFilter>,
    ) -> Changes;

    /// Forgets the set of an origin, and says what was in it.
    fn forget(&mut self, origin: BrokerId) -> Changes;

    /// Forgets everything.
    fn clear(&mut self);

    /// All filters, as often as they are in sets.
    fn filters(&self) -> Box<dyn Iterator<Item = AnnouncedFilter> + '_>;

    /// Appends the origins that want an event, in order of their ids.
    fn interested(&mut self, event: &Event, origins: &mut Vec<Owner>);
}

/// The filters of others, and a matcher over them, of one broker alone.
#[derive(Default)]
pub(crate) struct OwnFilters {
    sets: BTreeMap<BrokerId, Numbered>,
    matcher: Enindex,
    scratch: Scratch,
    last_id: u64,
}

impl RemoteFilters for OwnFilters {
    fn count(&self, origin: BrokerId) -> usize {
        self.sets.get(&origin).map_or(0, Numbered::len)
    }

    fn contains(&self, origin: BrokerId, filter: &AnnouncedFilter) -> bool {
        self.sets.get(&origin).is_some_and(|set| set.contains(filter))
    }

    fn change(
        &mut self,
        origin: BrokerId,
        whole: bool,
        added: Vec<AnnouncedFilter>,
        removed: Vec<AnnouncedFilter>,
    ) -> Changes {
        let set = self.sets.entry(origin).or_default();
        let changes = set.change(Step { whole, added, removed }, &mut self.last_id);
        for (filter, id) in &changes.added {
            self.matcher.insert(*id, Owner(origin.0), &Filter::from(filter.or_always()));
        }
        for (_, id) in &changes.removed {
            self.matcher.remove(*id);
        }
        changes
    }

    fn forget(&mut self, origin: BrokerId) -> Changes {
        let Some(set) = self.sets.remove(&origin) else { return Changes::default() };
        let removed: Vec<_> = set.iter().map(|(filter, id)| (filter.clone(), id)).collect();
        for (_, id) in &removed {
            self.matcher.remove(*id);
        }
        Changes { added: Vec::new(), removed }
    }

    fn clear(&mut self) {
        *self = OwnFilters { last_id: self.last_id, ..OwnFilters::default() };
    }

    fn filters(&self) -> Box<dyn Iterator<Item = AnnouncedFilter> + '_> {
        Box::new(self.sets.values().flat_map(Numbered::iter).map(|(filter, _)| filter.clone()))
    }

    fn interested(&mut self, event: &Event, origins: &mut Vec<Owner>) {
        // Not even reading the event pays where nobody else wants anything.
        if !self.matcher.is_empty() {
            self.matcher.interested(event, &mut self.scratch, origins);
        }
    }
}
