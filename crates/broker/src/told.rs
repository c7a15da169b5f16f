//! The telling end of a set of filters that another broker holds a copy of: what it has been told, and what not yet.
//!
//! The set is told whole at first, and afterwards in steps: what is added, what is removed, and the digest of all that
//! results. While [`STEPS`] steps are not acknowledged, changes gather and cancel out, and go as one step later. What is pressing
//! goes all the same, up to [`MOST_STEPS`].

use crate::{AnnouncedFilter, Digest, InterestPart};
use std::collections::{BTreeMap, VecDeque};

/// Steps under way to one broker before further changes gather.
pub(crate) const STEPS: usize = 8;

/// Steps under way to one broker at most.
pub(crate) const MOST_STEPS: usize = 64;

/// Bytes of filters in one message; a larger step takes several.
const CHUNK: usize = 64 << 10;

/// What one broker has been told. Most are told nothing most of the time: then it takes no more than these numbers.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// The sequence of its scope that was answered.
    pub(crate) scope_version: u64,
    digest: Digest,
    filters: u64,
    /// Counts the steps.
    steps: u64,
    /// None while there is nothing of it.
    pending: Option<Box<Pending>>,
}

/// What has not been told yet, or not acknowledged.
#[derive(Debug, Default)]
struct Pending {
    /// Changes not told yet (true: added), each a difference to what was told.
    gathered: BTreeMap<AnnouncedFilter, bool>,
    /// The version of the oldest gathered change.
    gathered_since: u64,
    /// Steps not acknowledged: the mark of each, and the version of the oldest change in it.
    under_way: VecDeque<(u64, u64)>,
    /// The whole is wanted, as the answer to this version of the scope; it waits while too much is under way.
    whole_due: Option<u64>,
}

impl Pending {
    /// Whether all that is known has been sent.
    fn is_all_sent(&self) -> bool {
        self.whole_due.is_none() && self.gathered.is_empty()
    }
}

/// A step to be sent.
#[derive(Debug)]
pub(crate) struct Step {
    /// The version of the oldest change in it; 0 for a whole, which has them all.
    pub(crate) since: u64,
    /// Its parts, in order; at least one.
    pub(crate) parts: Vec<InterestPart>,
}

impl Told {
    /// How many filters it has been told.
    pub(crate) fn filters(&self) -> u64 {
        self.filters
    }

    /// How many filters it will have been told with the next step.
    pub(crate) fn filters_next(&self) -> u64 {
        let Some(Pending { gathered, .. }) = self.pending.as_deref() else { return self.filters };
        let added = gathered.values().filter(|&&is_added| is_added).count() as u64;
        (self.filters + added).saturating_sub(gathered.len() as u64 - added)
    }

    /// How many steps are not acknowledged.
    pub(crate) fn under_way(&self) -> usize {
        self.pending.as_ref().map_or(0, |pending| pending.under_way.len())
    }

    /// Whether all that is known has been sent.
    pub(crate) fn all_sent(&self) -> bool {
        self.pending.as_ref().is_none_or(|pending| pending.is_all_sent())
    }

    /// Whether it holds the set as it was at a version: it has acknowledged all changes up to that one.
    pub(crate) fn holds(&self, version: u64) -> bool {
        self.pending.as_ref().is_none_or(|pending| {
            pending.whole_due.is_none()
                && pending.under_way.front().is_none_or(|&(_, since)| since > version)
                && (pending.gathered.is_empty() || pending.gathered_since > version)
        })
    }

    /// Adds a change to those not told yet; a change and its opposite cancel out.
    pub(crate) fn gather(&mut self, filter: &AnnouncedFilter, added: bool, version: u64) {
        let pending = self.pending.get_or_insert_default();
        if pending.whole_due.is_some() {
            return;
        }
        if pending.gathered.is_empty() {
            pending.gathered_since = version;
        }
        if pending.gathered.insert(filter.clone(), added).is_some_and(|before| before != added) {
            pending.gathered.remove(filter);
        }
        self.rest();
    }

    /// The set is to be told from nothing.
    pub(crate) fn tell_whole(&mut self, scope_version: u64) {
        let pending = self.pending.get_or_insert_default();
        pending.whole_due = Some(scope_version);
        pending.gathered.clear();
    }

    /// The number of the next step, counted from 1.
    pub(crate) fn next_number(&self) -> u64 {
        self.steps + 1
    }

    /// What is to be sent next, if anything, and if not too much is under way for one that is `pressing` or not: the whole that `whole` gives, if that is
    /// due, else what has gathered. The parts bear `version`; [`Told::sent`] must follow.
    pub(crate) fn next_step(
        &mut self,
        version: u64,
        pressing: bool,
        whole: impl FnOnce() -> Vec<AnnouncedFilter>,
    ) -> Option<Step> {
        let most = if pressing { MOST_STEPS } else { STEPS };
        let pending = self.pending.as_mut().filter(|it| it.under_way.len() < most && !it.is_all_sent())?;
        self.steps += 1;
        let is_whole = pending.whole_due.is_some();
        let (since, added, removed) = match pending.whole_due.take() {
            Some(scope_version) => {
                self.scope_version = scope_version;
                self.digest = Digest::default();
                self.filters = 0;
                (0, whole(), Vec::new())
            }
            None => {
                let (added, removed): (Vec<_>, Vec<_>) =
                    std::mem::take(&mut pending.gathered).into_iter().partition(|&(_, is_added)| is_added);
                let filters = |changes: Vec<(AnnouncedFilter, bool)>| changes.into_iter().map(|(it, _)| it).collect();
                (pending.gathered_since, filters(added), filters(removed))
            }
        };
        self.reckon(&added, &removed);
        let parts = parts(added, removed);
        let last = parts.len() - 1;
        let part = |(index, (added, removed))| InterestPart {
            version,
            whole: is_whole,
            added,
            removed,
            last: index == last,
            digest: self.digest,
        };
        Some(Step { since, parts: parts.into_iter().enumerate().map(part).collect() })
    }

    fn reckon(&mut self, added: &[AnnouncedFilter], removed: &[AnnouncedFilter]) {
        self.digest = added.iter().fold(self.digest, Digest::with);
        self.digest = removed.iter().fold(self.digest, Digest::without);
        // The scope of a broker's new life may come before its link state; until then a change can take away what was never
        // told. The whole that follows puts it right.
        self.filters = (self.filters + added.len() as u64).saturating_sub(removed.len() as u64);
    }

    /// A step has been sent; the acknowledgement of `mark` will be that of the step.
    pub(crate) fn sent(&mut self, mark: u64, since: u64) {
        self.pending.get_or_insert_default().under_way.push_back((mark, since));
    }

    /// All steps up to that mark are acknowledged.
    pub(crate) fn acknowledge(&mut self, mark: u64) {
        let Some(pending) = &mut self.pending else { return };
        while pending.under_way.pop_front_if(|&mut (first, _)| first <= mark).is_some() {}
        self.rest();
    }

    /// Keeps no room for what there is none of.
    fn rest(&mut self) {
        self.pending.take_if(|pending| pending.under_way.is_empty() && pending.is_all_sent());
    }
}

/// Cuts a step into parts, added and removed, of at most [`CHUNK`] bytes (or one filter), at least one part.
fn parts(
    added: Vec<AnnouncedFilter>,
    removed: Vec<AnnouncedFilter>,
) -> Vec<(Vec<AnnouncedFilter>, Vec<AnnouncedFilter>)> {
    let mut parts = vec![(Vec::new(), Vec::new())];
    let mut bytes = 0;
    let changes = added.into_iter().map(|filter| (filter, true));
    for (filter, is_added) in changes.chain(removed.into_iter().map(|filter| (filter, false))) {
        if bytes > 0 && bytes + filter.0.len() > CHUNK {
            parts.push((Vec::new(), Vec::new()));
            bytes = 0;
        }
        bytes += filter.0.len().max(1);
        let (added, removed) = parts.last_mut().expect("there is always one part");
        if is_added { added.push(filter) } else { removed.push(filter) }
    }
    parts
}
