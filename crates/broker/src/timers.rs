//! All timers of the core, as plain values.

use crate::{BrokerId, LinkId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// What a timer is for; each runs at most once at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The broker stops counting as starting.
    Started,
    /// The own link state has changes that are not flooded yet.
    FloodLinkState,
    /// Unacknowledged messages of a channel go out again.
    Resend(BrokerId),
    /// Letters that have gathered for a link go.
    PassOn(LinkId),
    /// An interest that did not come out right, or has not come, is asked for.
    Resync(BrokerId),
    /// A broker has been unreachable for so long that no wait is for it any more.
    Unreachable(BrokerId),
    /// A broker has been unreachable for so long that it is forgotten.
    Purge(BrokerId),
    /// The first waiting publication has waited long enough.
    Publish,
    /// The first waiting subscription or advertisement has.
    Answer,
    /// The first parked event has.
    Park,
    /// The first part of the scope that is no longer needed is given up.
    Narrow,
    /// The own scope has changes that are not told yet.
    TellScope,
    /// A leaf below has no lease any more, whatever it heard.
    Lease(LinkId),
    /// A lease of others' interest is to be asked for again.
    Renew,
    /// The lease of others' interest has run out.
    LeaseEnd,
    /// What has gathered for the parent is told it, though much is not acknowledged.
    AnnounceUp,
    /// The parent has been without a path to the core for long enough.
    Path,
}

/// The timers that run.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_timer: BTreeMap<Timer, Time>,
    by_time: BTreeSet<(Time, Timer)>,
}

impl Timers {
    /// When the first one runs out.
    pub(crate) fn next(&self) -> Option<Time> {
        self.by_time.first().map(|&(at, _)| at)
    }

    /// Starts or moves a timer; `None` stops it.
    pub(crate) fn set(&mut self, timer: Timer, at: Option<Time>) {
        let before = match at {
            Some(at) => self.by_timer.insert(timer, at),
            None => self.by_timer.remove(&timer),
        };
        if let Some(before) = before {
            self.by_time.remove(&(before, timer));
        }
        if let Some(at) = at {
            self.by_time.insert((at, timer));
        }
    }

    /// Starts a timer unless it runs already.
    pub(crate) fn start(&mut self, timer: Timer, at: Time) {
        if !self.by_timer.contains_key(&timer) {
            self.set(timer, Some(at));
        }
    }

    /// Stops and returns the first timer that has run out by `now`.
    pub(crate) fn pop(&mut self, now: Time) -> Option<Timer> {
        let &(at, timer) = self.by_time.first()?;
        if at > now {
            return None;
        }
        self.set(timer, None);
        Some(timer)
    }
}
