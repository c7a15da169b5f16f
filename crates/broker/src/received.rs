//! The holding end of a set of filters that another broker tells in steps.

use crate::{AnnouncedFilter, Digest, Interest};
use enroute_matcher::SubscriptionId;
use std::collections::{BTreeMap, BTreeSet};

/// What one broker has told.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// The sequence of the scope that the set answers.
    pub(crate) scope_version: u64,
    /// Whether the digest came out as its origin said.
    pub(crate) right: bool,
    filters: BTreeMap<AnnouncedFilter, SubscriptionId>,
    digest: Digest,
    /// The parts of a step whose last part has not come: added and removed.
    staged: (Vec<AnnouncedFilter>, Vec<AnnouncedFilter>),
}

/// What became of a message.
#[derive(Debug)]
pub(crate) enum Taken {
    /// It is a part of a step that has not ended.
    Part,
    /// A step is complete; whether the set is right now, [`Received::right`] says.
    Step(Changes),
    /// There would be more filters than allowed: the set is as it was, and cannot be used any more.
    TooMany,
}

/// What a step changed, each filter with the id that it is known by here.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Applied first.
    pub(crate) added: Vec<(AnnouncedFilter, SubscriptionId)>,
    /// Applied second.
    pub(crate) removed: Vec<(AnnouncedFilter, SubscriptionId)>,
}

impl Received {
    /// How many filters there are.
    pub(crate) fn len(&self) -> usize {
        self.filters.len()
    }

    /// Whether a filter is in the set.
    pub(crate) fn contains(&self, filter: &AnnouncedFilter) -> bool {
        self.filters.contains_key(filter)
    }

    /// All filters, in order.
    pub(crate) fn filters(&self) -> impl Iterator<Item = (&AnnouncedFilter, SubscriptionId)> {
        self.filters.iter().map(|(filter, &id)| (filter, id))
    }

    /// Forgets the parts of a step whose other parts will not come.
    pub(crate) fn unstage(&mut self) {
        self.staged = Default::default();
    }

    /// Takes in a message. New filters get ids from `last_id` on.
    pub(crate) fn take(&mut self, interest: Interest, limit: usize, last_id: &mut u64) -> Taken {
        self.staged.0.extend(interest.added);
        self.staged.1.extend(interest.removed);
        // Who replaces everything by as much has a step of twice that.
        if self.staged.0.len().max(self.staged.1.len()) > limit {
            self.unstage();
            self.right = false;
            return Taken::TooMany;
        }
        if !interest.last {
            return Taken::Part;
        }
        let (added, removed) = std::mem::take(&mut self.staged);
        if self.len_after(interest.whole, &added, &removed) > limit {
            self.right = false;
            return Taken::TooMany;
        }
        // Of a whole, what is not in it goes; adds come before removes either way.
        let gone = if interest.whole {
            let kept: BTreeSet<&AnnouncedFilter> = added.iter().collect();
            self.filters.keys().filter(|filter| !kept.contains(filter)).cloned().collect()
        } else {
            removed
        };
        let mut changes = Changes::default();
        for filter in added {
            changes.added.extend(self.add(&filter, last_id).map(|id| (filter, id)));
        }
        for filter in gone {
            changes.removed.extend(self.remove(&filter).map(|id| (filter, id)));
        }
        self.scope_version = interest.scope_version;
        self.right = self.digest == interest.digest;
        Taken::Step(changes)
    }

    /// How many filters there would be after a step, or more: what is added may be here already, or come twice. What is removed
    /// counts if it is here, once.
    fn len_after(&self, whole: bool, added: &[AnnouncedFilter], removed: &[AnnouncedFilter]) -> usize {
        if whole {
            return added.len();
        }
        let gone: BTreeSet<&AnnouncedFilter> = removed.iter().filter(|filter| self.contains(filter)).collect();
        self.filters.len() + added.len() - gone.len()
    }

    /// Adds a filter, and gives its id if it is new.
    pub(crate) fn add(&mut self, filter: &AnnouncedFilter, last_id: &mut u64) -> Option<SubscriptionId> {
        if self.contains(filter) {
            return None;
        }
        *last_id += 1;
        self.digest = self.digest.with(filter);
        self.filters.insert(filter.clone(), SubscriptionId(*last_id));
        Some(SubscriptionId(*last_id))
    }

    fn remove(&mut self, filter: &AnnouncedFilter) -> Option<SubscriptionId> {
        let id = self.filters.remove(filter)?;
        self.digest = self.digest.without(filter);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(names: &[&'static str]) -> Vec<AnnouncedFilter> {
        names.iter().map(|name| AnnouncedFilter(name.as_bytes().into())).collect()
    }

    fn step(added: &[&'static str], removed: &[&'static str]) -> Interest {
        let (added, removed) = (filters(added), filters(removed));
        Interest { version: 1, scope_version: 1, whole: false, added, removed, last: true, digest: Digest::default() }
    }

    #[test]
    fn a_step_may_replace_everything_and_what_is_not_there_makes_no_room() {
        let (mut received, mut last_id) = (Received::default(), 0);
        let mut take = |interest| match received.take(interest, 2, &mut last_id) {
            Taken::Step(_) => Some(received.len()),
            Taken::Part | Taken::TooMany => None,
        };
        assert_eq!(take(step(&["a", "b"], &[])), Some(2));
        assert_eq!(take(step(&["c", "d"], &["a", "b"])), Some(2));
        assert_eq!(take(step(&["e"], &["a"])), None, "it is gone already");
        assert_eq!(take(step(&["e"], &["c", "c"])), Some(2));
        assert_eq!(take(step(&["f", "g"], &["d", "d"])), None, "it goes but once");
        assert_eq!(take(step(&["f", "g", "h"], &["d", "e"])), None);
        assert_eq!(take(step(&[], &["d", "e", "f"])), None);
        assert_eq!(take(Interest { whole: true, ..step(&["f", "g"], &[]) }), Some(2));
    }
}
