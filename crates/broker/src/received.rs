//! The holding end of a set of filters that another broker tells in steps.

use crate::{AnnouncedFilter, Digest, InterestPart};
use enroute_matcher::SubscriptionId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What one broker has told, but for the filters themselves: whoever holds these applies the steps, and says so.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// The sequence of the scope that the set answers.
    pub(crate) scope_version: u64,
    /// Whether the digest came out as its origin said.
    pub(crate) right: bool,
    digest: Digest,
    /// The parts of a step whose last part has not come: most of the time there are none.
    staged: Option<Box<Step>>,
}

/// A step, or its parts so far: what is added, then removed; of a `whole`, all goes that is not added.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) whole: bool,
    pub(crate) added: Vec<AnnouncedFilter>,
    pub(crate) removed: Vec<AnnouncedFilter>,
}

/// What became of a message.
#[derive(Debug)]
pub(crate) enum Taken {
    /// It is a part of a step that has not ended.
    Part,
    /// A step is complete, and is to be applied.
    Step(Step),
    /// There would be more filters than allowed: the set cannot be used any more.
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
        let mut received = Received::default();
        received.applied(scope_version, Digest::default(), changes);
        received.right = true;
        received
    }

    /// Forgets the parts of a step whose other parts will not come.
    pub(crate) fn unstage(&mut self) {
        self.staged = None;
    }

    /// Takes in a message; with the last one of a step, that is to be applied to the set, which has `len` filters. After that
    /// [`Received::applied`] must follow.
    pub(crate) fn take(
        &mut self,
        part: Arc<InterestPart>,
        limit: usize,
        len: usize,
        contains: impl Fn(&AnnouncedFilter) -> bool,
    ) -> Taken {
        let InterestPart { version: _, whole, added, removed, last, digest: _ } = Arc::unwrap_or_clone(part);
        let mut staged = self.staged.take().unwrap_or_default();
        staged.added.extend(added);
        staged.removed.extend(removed);
        // Who replaces everything by as much has a step of twice that.
        if staged.added.len().max(staged.removed.len()) > limit {
            self.right = false;
            return Taken::TooMany;
        }
        if !last {
            self.staged = Some(staged);
            return Taken::Part;
        }
        let step = Step { whole, ..*staged };
        if step.len_after(len, contains) > limit {
            self.right = false;
            return Taken::TooMany;
        }
        Taken::Step(step)
    }

    /// A step has been applied, with these changes; its digest says whether the set is right now.
    pub(crate) fn applied(&mut self, scope_version: u64, digest: Digest, changes: &Changes) {
        self.digest = changes.added.iter().fold(self.digest, |digest, (filter, _)| digest.with(filter));
        self.digest = changes.removed.iter().fold(self.digest, |digest, (filter, _)| digest.without(filter));
        self.scope_version = scope_version;
        self.right = self.digest == digest;
    }
}

impl Step {
    /// How many filters there would be after it, or more: what is added may be here already, or come twice. What is removed
    /// counts if it is here, once.
    fn len_after(&self, len: usize, contains: impl Fn(&AnnouncedFilter) -> bool) -> usize {
        if self.whole {
            return self.added.len();
        }
        let gone: BTreeSet<&AnnouncedFilter> = self.removed.iter().filter(|filter| contains(filter)).collect();
        len + self.added.len() - gone.len()
    }
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

    /// Applies a step; new filters get ids from `last_id` on.
    pub(crate) fn change(&mut self, step: Step, last_id: &mut u64) -> Changes {
        let gone = if step.whole {
            let kept: BTreeSet<&AnnouncedFilter> = step.added.iter().collect();
            self.0.keys().filter(|filter| !kept.contains(filter)).cloned().collect()
        } else {
            step.removed
        };
        let mut changes = Changes::default();
        for filter in step.added {
            changes.added.extend(self.add(&filter, last_id).map(|id| (filter, id)));
        }
        for filter in gone {
            changes.removed.extend(self.remove(&filter).map(|id| (filter, id)));
        }
        changes
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

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(names: &[&'static str]) -> Vec<AnnouncedFilter> {
        names.iter().map(|name| AnnouncedFilter(name.as_bytes().into())).collect()
    }

    fn step(added: &[&'static str], removed: &[&'static str]) -> InterestPart {
        let (added, removed) = (filters(added), filters(removed));
        InterestPart { version: 1, whole: false, added, removed, last: true, digest: Digest::default() }
    }

    #[test]
    fn a_step_may_replace_everything_and_what_is_not_there_makes_no_room() {
        let (mut received, mut filters, mut last_id) = (Received::default(), Numbered::default(), 0);
        let mut take = |part: InterestPart| {
            let Taken::Step(step) = received.take(part.into(), 2, filters.len(), |it| filters.contains(it)) else {
                return None;
            };
            filters.change(step, &mut last_id);
            Some(filters.len())
        };
        assert_eq!(take(step(&["a", "b"], &[])), Some(2));
        assert_eq!(take(step(&["c", "d"], &["a", "b"])), Some(2));
        assert_eq!(take(step(&["e"], &["a"])), None, "it is gone already");
        assert_eq!(take(step(&["e"], &["c", "c"])), Some(2));
        assert_eq!(take(step(&["f", "g"], &["d", "d"])), None, "it goes but once");
        assert_eq!(take(step(&["f", "g", "h"], &["d", "e"])), None);
        assert_eq!(take(step(&[], &["d", "e", "f"])), None);
        assert_eq!(take(InterestPart { whole: true, ..step(&["f", "g"], &[]) }), Some(2));
    }
}
