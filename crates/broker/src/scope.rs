//! The own scope: what the clients here, and the leaves below, may publish. It grows at once and shrinks late, since every change
//! makes all other brokers answer. For the same reason changes that follow soon after one that was told are told together; until
//! then the view of what others want is complete at most for events within the scope that was told.

use crate::broker::Broker;
use crate::timers::Timer;
use crate::topology::ScopeView;
use crate::{AnnouncedFilter, Message, Output, Scope, ScopeRecord, Time, Version};
use enroute_covering::Forest;
use enroute_filter::Conjunction;
use std::collections::VecDeque;
use std::sync::Arc;

/// Filters in a scope; with more it is simply "anything".
pub(crate) const MAX_FILTERS: usize = 256;

/// Bytes of filters in a scope, likewise.
const MAX_BYTES: usize = 128 << 10;

/// Parts of the scope that may wait to be given up; beyond, the oldest go early.
const MAX_RETIRING: usize = 65_536;

/// Something that widens the scope.
#[derive(Debug)]
enum Part {
    /// An advertised conjunction, under the number of its advertisement.
    Advertised(u64, Conjunction),
    /// A client that publishes without having advertised.
    Anything,
}

/// The own scope and what it is made of.
#[derive(Debug, Default)]
pub(crate) struct OwnScope {
    forest: Forest,
    /// Clients that publish without having advertised, and those that did until lately.
    anything: usize,
    retiring: VecDeque<(Time, Part)>,
    /// What is told.
    told: Scope,
    sequence: u64,
    /// When it was last told.
    told_at: Option<Time>,
    /// Whether it has changed since and is still to be told.
    pending: bool,
    /// The sequence of the last scope with which all was forgotten that others want, as nobody published any more.
    forgotten_with: u64,
}

impl OwnScope {
    /// The sequence of the scope record that is told.
    pub(crate) fn version(&self) -> u64 {
        self.sequence
    }

    /// Whether somebody publishes.
    pub(crate) fn is_nobody(&self) -> bool {
        self.told == Scope::Nobody
    }

    /// Whether what others want of a version of the scope has been forgotten since. What is still under way of that, wholes and
    /// changes, says nothing any more: a scope that came later is answered with a whole of its own.
    pub(crate) fn is_forgotten(&self, version: u64) -> bool {
        version < self.forgotten_with
    }

    /// Whether others have still to be told the scope as it is now, wider or narrower than what they know.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending
    }

    /// The scope that is told.
    pub(crate) fn told(&self) -> &Scope {
        &self.told
    }

    fn present(&self) -> Scope {
        // Asked first, as collecting the roots costs a walk through the forest.
        if self.anything > 0 || self.forest.root_count() > MAX_FILTERS {
            return Scope::Anything;
        }
        let roots: Vec<AnnouncedFilter> = self.forest.roots().map(AnnouncedFilter::of).collect();
        let bytes: usize = roots.iter().map(|root| root.0.len()).sum();
        match roots.len() {
            0 => Scope::Nobody,
            _ if bytes > MAX_BYTES => Scope::Anything,
            _ => Scope::Filters(roots),
        }
    }

    fn give_up(&mut self, part: &Part) {
        match part {
            Part::Advertised(number, conjunction) => {
                self.forest.remove(*number, conjunction);
            }
            Part::Anything => self.anything -= 1,
        }
    }
}

/// The filters of a scope, each with its number.
fn filters_of((number, scope): (u64, &ScopeView)) -> impl Iterator<Item = (u64, &Conjunction)> {
    let filters: &[Conjunction] = match scope {
        ScopeView::Nobody | ScopeView::Anything => &[],
        ScopeView::Filters(filters) => filters,
    };
    filters.iter().map(move |filter| (number, filter))
}

impl Broker {
    /// A client advertises under a new number.
    pub(crate) fn widen_scope(&mut self, number: u64, conjunctions: &[Conjunction], out: &mut Vec<Output>) {
        for conjunction in conjunctions {
            self.scope.forest.insert(number, conjunction);
        }
        self.tell_scope(out);
    }

    /// A client publishes without having advertised.
    pub(crate) fn widen_scope_to_anything(&mut self, out: &mut Vec<Output>) {
        self.scope.anything += 1;
        self.tell_scope(out);
    }

    /// An advertisement is gone; the scope keeps it for a while.
    pub(crate) fn retire_advertisement(&mut self, number: u64, conjunctions: &[Conjunction]) {
        for conjunction in conjunctions {
            self.retire(Part::Advertised(number, conjunction.clone()));
        }
    }

    /// A client that published without having advertised is gone, or has advertised now.
    pub(crate) fn retire_anything(&mut self) {
        self.retire(Part::Anything);
    }

    /// A leaf has another scope, which stands under another number. It has waited with what it does not need any more.
    pub(crate) fn replace_scope_of_leaf(
        &mut self,
        old: (u64, &ScopeView),
        new: (u64, &ScopeView),
        out: &mut Vec<Output>,
    ) {
        for (number, conjunction) in filters_of(new) {
            self.scope.forest.insert(number, conjunction);
        }
        for (number, conjunction) in filters_of(old) {
            self.scope.forest.remove(number, conjunction);
        }
        self.scope.anything += usize::from(*new.1 == ScopeView::Anything);
        self.scope.anything -= usize::from(*old.1 == ScopeView::Anything);
        self.tell_scope(out);
    }

    /// A leaf is gone; its scope is kept for a while.
    pub(crate) fn retire_scope_of_leaf(&mut self, number: u64, scope: &ScopeView) {
        match scope {
            ScopeView::Nobody => {}
            ScopeView::Anything => self.retire_anything(),
            ScopeView::Filters(filters) => self.retire_advertisement(number, filters),
        }
    }

    fn retire(&mut self, part: Part) {
        let at = self.now + self.config.narrowing;
        self.scope.retiring.push_back((at, part));
        if self.scope.retiring.len() > MAX_RETIRING
            && let Some((_, oldest)) = self.scope.retiring.pop_front()
        {
            self.scope.give_up(&oldest);
        }
        self.timers.set(Timer::Narrow, self.scope.retiring.front().map(|&(at, _)| at));
    }

    /// Gives up the parts of the scope that have not been needed for long enough. A leaf broker needs them all as long as it keeps
    /// events: others would say nothing of what they want of these.
    pub(crate) fn on_narrow(&mut self, out: &mut Vec<Output>) {
        if self.uplink.as_ref().is_some_and(|uplink| !uplink.kept.is_empty()) {
            return self.timers.set(Timer::Narrow, Some(self.now + self.config.publish_wait));
        }
        while let Some((_, part)) = self.scope.retiring.pop_front_if(|(at, _)| *at <= self.now) {
            self.scope.give_up(&part);
        }
        self.timers.set(Timer::Narrow, self.scope.retiring.front().map(|&(at, _)| at));
        self.tell_scope(out);
    }

    /// Tells the scope if it is another one: a first change at once, those that follow soon after together.
    pub(crate) fn tell_scope(&mut self, out: &mut Vec<Output>) {
        let present = self.scope.present();
        let changed = present != self.scope.told;
        let due = self.scope.told_at.map_or(self.now, |at| at + self.config.scope_pause);
        let pending = changed && due > self.now;
        self.timers.set(Timer::TellScope, pending.then_some(due));
        if std::mem::replace(&mut self.scope.pending, pending) != pending {
            self.view_changed();
        }
        if changed && !pending {
            self.scope.told = present;
            self.tell_scope_anew(out);
        }
    }

    /// Tells the own scope to all, under a new version.
    pub(crate) fn tell_scope_anew(&mut self, out: &mut Vec<Output>) {
        self.scope.sequence += 1;
        self.scope.told_at = Some(self.now);
        let version = Version { incarnation: self.identity.incarnation, sequence: self.scope.sequence };
        let scope = self.scope.told.clone();
        let record = Arc::new(ScopeRecord { origin: self.identity.id, version, scope });
        self.topology.accept_scope(record.clone());
        if self.scope.is_nobody() {
            self.scope.forgotten_with = self.scope.sequence;
            self.remote.clear();
            self.uplink.iter_mut().for_each(|uplink| uplink.others.clear());
            self.quench_anew(out);
        }
        self.flood(&Message::Scope(record), None, out);
        self.tell_scope_up(out);
        self.view_changed_throughout();
    }
}
