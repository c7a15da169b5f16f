//! The holding end of a set of filters that another broker tells in steps.

use crate::{AnnouncedFilter, Digest, Interest};
use enroute_matcher::SubscriptionId;
use std::collections::{BTreeMap, BTreeSet};

/// What one broker has told, but for the filters themselves, which stand in a [`FilterSet`].
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// The sequence of the scope that the set answers.
    pub(crate) scope_version: u64,
    /// Whether the digest came out as its origin said.
    pub(crate) right: bool,
    digest: Digest,
    /// The parts of a step whose last part has not come: most of the time there are none.
    staged: Option<Box<Staged>>,
}

/// Parts of a step.
#[derive(Debug, Default)]
struct Staged {
    added: Vec<AnnouncedFilter>,
    removed: Vec<AnnouncedFilter>,
}

/// The filters that one broker has told.
pub(crate) trait FilterSet {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether a filter is in the set.
    fn contains(&self, filter: &AnnouncedFilter) -> bool;

    /// Adds what is not there, then removes what is; of a `whole`, all goes that is not added.
    fn change(&mut self, whole: bool, added: Vec<AnnouncedFilter>, removed: Vec<AnnouncedFilter>) -> Changes;
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

/// What a step changed in a set of filters, each filter with the id that it is known by here.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// What was not there before. Applied first.
    pub added: Vec<(AnnouncedFilter, SubscriptionId)>,
    /// What was there. Applied second.
    pub removed: Vec<(AnnouncedFilter, SubscriptionId)>,
}

impl Received {
    /// Of a set that is taken for right, whatever its origin says: it was empty and has been changed like this.
    pub(crate) fn taken_for(scope_version: u64, changes: &Changes) -> Received {
        let mut received = Received { scope_version, right: true, ..Received::default() };
        received.reckon(changes);
        received
    }

    fn reckon(&mut self, changes: &Changes) {
        self.digest = changes.added.iter().fold(self.digest, |digest, (filter, _)| digest.with(filter));
        self.digest = changes.removed.iter().fold(self.digest, |digest, (filter, _)| digest.without(filter));
    }

    /// Forgets the parts of a step whose other parts will not come.
    pub(crate) fn unstage(&mut self) {
        self.staged = None;
    }

    /// Takes in a message, and changes the set with the last one of a step.
    pub(crate) fn take(&mut self, interest: Interest, limit: usize, set: &mut impl FilterSet) -> Taken {
        let mut staged = self.staged.take().unwrap_or_default();
        staged.added.extend(interest.added);
        staged.removed.extend(interest.removed);
        // Who replaces everything by as much has a step of twice that.
        if staged.added.len().max(staged.removed.len()) > limit {
            self.right = false;
            return Taken::TooMany;
        }
        if !interest.last {
            self.staged = Some(staged);
            return Taken::Part;
        }
        let Staged { added, removed } = *staged;
        if len_after(set, interest.whole, &added, &removed) > limit {
            self.right = false;
            return Taken::TooMany;
        }
        let changes = set.change(interest.whole, added, removed);
        self.reckon(&changes);
        self.scope_version = interest.scope_version;
        self.right = self.digest == interest.digest;
        Taken::Step(changes)
    }
}

/// How many filters there would be after a step, or more: what is added may be here already, or come twice. What is removed
/// counts if it is here, once.
fn len_after(set: &impl FilterSet, whole: bool, added: &[AnnouncedFilter], removed: &[AnnouncedFilter]) -> usize {
    if whole {
        return added.len();
    }
    let gone: BTreeSet<&AnnouncedFilter> = removed.iter().filter(|filter| set.contains(filter)).collect();
    set.len() + added.len() - gone.len()
}

/// Filters with the ids that they are known by here.
#[derive(Debug, Default)]
pub(crate) struct Numbered(BTreeMap<AnnouncedFilter, SubscriptionId>);

impl Numbered {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether a filter is among them.
    pub(crate) fn contains(&self, filter: &AnnouncedFilter) -> bool {
        self.0.contains_key(filter)
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&AnnouncedFilter, SubscriptionId)> {
        self.0.iter().map(|(filter, &id)| (filter, id))
    }

    /// As a set whose new filters get ids from `last_id` on.
    pub(crate) fn with_ids<'a>(&'a mut self, last_id: &'a mut u64) -> Numbering<'a> {
        Numbering { filters: self, last_id }
    }

    /// Adds a filter, and gives its id if it is new.
    fn add(&mut self, filter: &AnnouncedFilter, last_id: &mut u64) -> Option<SubscriptionId> {
        if self.contains(filter) {
            return None;
        }
        *last_id += 1;
        self.0.insert(filter.clone(), SubscriptionId(*last_id));
        Some(SubscriptionId(*last_id))
    }

    fn remove(&mut self, filter: &AnnouncedFilter) -> Option<SubscriptionId> {
        self.0.remove(filter)
    }
}

/// See [`Numbered::with_ids`].
pub(crate) struct Numbering<'a> {
    filters: &'a mut Numbered,
    last_id: &'a mut u64,
}

impl FilterSet for Numbering<'_> {
    fn len(&self) -> usize {
        self.filters.len()
    }

    fn contains(&self, filter: &AnnouncedFilter) -> bool {
        self.filters.contains(filter)
    }

    fn change(&mut self, whole: bool, added: Vec<AnnouncedFilter>, removed: Vec<AnnouncedFilter>) -> Changes {
        let gone = if whole {
            let kept: BTreeSet<&AnnouncedFilter> = added.iter().collect();
            self.filters.0.keys().filter(|filter| !kept.contains(filter)).cloned().collect()
        } else {
            removed
        };
        let mut changes = Changes::default();
        for filter in added {
            changes.added.extend(self.filters.add(&filter, self.last_id).map(|id| (filter, id)));
        }
        for filter in gone {
            changes.removed.extend(self.filters.remove(&filter).map(|id| (filter, id)));
        }
        changes
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
        let (mut received, mut filters, mut last_id) = (Received::default(), Numbered::default(), 0);
        let mut take = |interest| {
            let taken = received.take(interest, 2, &mut filters.with_ids(&mut last_id));
            matches!(taken, Taken::Step(_)).then(|| filters.len())
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
