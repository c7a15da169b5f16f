//! Quenching, the parent's side: leaves that publish are told what others want of it, so that they need not send the rest.
//!
//! A leaf with a scope holds what overlaps it of everybody else's interest: that of the clients here, of the other
//! leaves, and of the network beyond. It may rely on that while it has a lease. As long as it has one, the parent
//! acknowledges nobody's interest, nor answers a subscription, before the leaf holds it too; the parent reckons with the
//! lease for longer than the leaf does. Leases are given while the view of what others want is complete, and revoked when
//! it no longer is.

use crate::broker::Broker;
use crate::channel::WINDOW;
use crate::interest::Source;
use crate::received::Changes;
use crate::timers::Timer;
use crate::told::Told;
use crate::topology::ScopeView;
use crate::{AnnouncedFilter, BrokerId, Interest, LeafMessage, LinkId, Output, RoutedBody, Time};
use enroute_covering::RootChange;
use enroute_filter::Conjunction;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How one leaf is quenched.
#[derive(Debug, Default)]
pub(crate) struct Quenched {
    pub(crate) told: Told,
    /// Whether it is told "anything", since the rest is more than it can hold.
    everything: bool,
    /// The last question for a lease, and when it came; none if it is answered.
    asked: Option<(u64, Time)>,
    /// Whether the last word was a lease.
    granted: bool,
    /// Until when the leaf is reckoned with.
    until: Time,
    /// When it last acknowledged something, or was told something that it owes an acknowledgement for.
    moved_at: Time,
}

impl Quenched {
    /// Whether the leaf does not rely on less than the interest as it was at a version.
    pub(crate) fn holds(&self, version: u64, now: Time) -> bool {
        self.until <= now || self.told.holds(version)
    }
}

/// A filter that is wanted.
#[derive(Debug)]
struct Wanted {
    conjunction: Arc<Conjunction>,
    /// How many want it: the clients together, each leaf, each broker beyond.
    sources: usize,
}

/// An acknowledgement that waits until the quenched leaves hold what it acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owed {
    /// To another core broker.
    Channel { to: BrokerId, epoch: u64, received: u64 },
    /// To the own parent.
    Uplink { link: LinkId, step: u64 },
}

impl Owed {
    /// Whether both are to the same broker, so that the later one says what the earlier one would.
    fn is_to_same(&self, other: &Owed) -> bool {
        match (self, other) {
            (Owed::Channel { to, .. }, Owed::Channel { to: other, .. }) => to == other,
            (Owed::Uplink { link, .. }, Owed::Uplink { link: other, .. }) => link == other,
            (Owed::Channel { .. }, Owed::Uplink { .. }) | (Owed::Uplink { .. }, Owed::Channel { .. }) => false,
        }
    }
}

/// What all leaves that are quenched have in common.
#[derive(Debug, Default)]
pub(crate) struct Quench {
    /// What anybody wants; kept only while a leaf is quenched.
    wanted: Option<BTreeMap<AnnouncedFilter, Wanted>>,
    /// Each with the version that it acknowledges, which do not descend; at most [`WINDOW`] to one broker. Whoever keeps to the rules
    /// waits for these before it says more.
    owed: VecDeque<(u64, Owed)>,
}

impl Quench {
    pub(crate) fn is_active(&self) -> bool {
        self.wanted.is_some()
    }
}

impl Broker {
    /// A leaf has a new scope: it is told anew what others want of it.
    pub(crate) fn quench(&mut self, link: LinkId, scope_version: u64, out: &mut Vec<Output>) {
        let Some(leaf) = self.leaves.get_mut(link) else { return };
        if leaf.scope == ScopeView::Nobody {
            leaf.quenched = None;
            return self.on_quenching_ended(out);
        }
        let quenched = leaf.quenched.get_or_insert_default();
        quenched.everything = false;
        quenched.told.tell_whole(scope_version);
        if !self.quench.is_active() {
            self.collect_wanted();
        }
        self.tell_quenched_next(link, out);
    }

    /// A leaf is not quenched any more.
    pub(crate) fn on_quenching_ended(&mut self, out: &mut Vec<Output>) {
        if self.leaves.iter().all(|(_, leaf)| leaf.quenched.is_none()) {
            self.quench.wanted = None;
        }
        self.pay_owed(out);
    }

    /// Collects what everybody wants.
    fn collect_wanted(&mut self) {
        let mut wanted: BTreeMap<AnnouncedFilter, Wanted> = BTreeMap::new();
        let mut add = |conjunction: &Conjunction| {
            let new = || Wanted { conjunction: Arc::new(conjunction.clone()), sources: 0 };
            wanted.entry(AnnouncedFilter::of(conjunction)).or_insert_with(new).sources += 1;
        };
        self.interest.clients().roots().for_each(&mut add);
        let of_leaves = self.leaves.iter().flat_map(|(_, leaf)| leaf.filters.iter());
        let of_uplink = self.uplink.iter().flat_map(|uplink| uplink.others.filters());
        of_leaves.chain(of_uplink).for_each(|(filter, _)| add(&filter.or_always()));
        self.remote.filters().for_each(|filter| add(&filter.or_always()));
        self.quench.wanted = Some(wanted);
    }

    /// All that is known of others' interest has been forgotten or replaced.
    pub(crate) fn quench_anew(&mut self, out: &mut Vec<Output>) {
        self.watches.doubt_beyond();
        if self.quench.is_active() {
            self.collect_wanted();
            for (_, leaf) in self.leaves.iter_mut() {
                let scope_version = leaf.quenched.as_ref().map_or(0, |quenched| quenched.told.scope_version);
                leaf.quenched.iter_mut().for_each(|quenched| quenched.told.tell_whole(scope_version));
            }
            self.tell_all_quenched_next(out);
        }
    }

    /// What the rest of the network wants has changed.
    pub(crate) fn beyond_interest_changed(&mut self, changes: &Changes, out: &mut Vec<Output>) {
        if self.quench.is_active() || !self.watches.is_empty() {
            let all =
                |list: &[(AnnouncedFilter, _)]| list.iter().map(|(filter, _)| Arc::new(filter.or_always())).collect();
            let change = RootChange { added: all(&changes.added), removed: all(&changes.removed) };
            self.tell_interest(Source::Beyond, &change, &RootChange::default(), out);
        }
    }

    /// What a source wants has changed: the leaves whose scope it overlaps are told, but for that source. What several want
    /// is told once.
    pub(crate) fn tell_quenched(&mut self, source: Source, change: &RootChange, out: &mut Vec<Output>) {
        let version = self.announcements.version;
        let Some(wanted) = &mut self.quench.wanted else { return };
        let added = change.added.iter().map(|conjunction| (conjunction, true));
        for (conjunction, is_added) in added.chain(change.removed.iter().map(|conjunction| (conjunction, false))) {
            let filter = AnnouncedFilter::of(conjunction);
            let new = || Wanted { conjunction: conjunction.clone(), sources: 0 };
            let entry = wanted.entry(filter.clone()).or_insert_with(new);
            let without_it = if is_added { entry.sources } else { entry.sources.saturating_sub(1) };
            entry.sources = without_it + usize::from(is_added);
            for (_, leaf) in self.leaves.iter_mut().filter(|&(link, _)| source != Source::Leaf(link)) {
                let others = without_it - usize::from(leaf.filters.contains(&filter)).min(without_it);
                let Some(quenched) = leaf.quenched.as_mut().filter(|quenched| !quenched.everything) else { continue };
                if others == 0 && leaf.scope.overlaps(conjunction) {
                    quenched.told.gather(&filter, is_added, version);
                }
            }
            if entry.sources == 0 {
                wanted.remove(&filter);
            }
        }
        self.tell_all_quenched_next(out);
    }

    fn tell_all_quenched_next(&mut self, out: &mut Vec<Output>) {
        for link in self.leaves.attached() {
            self.tell_quenched_next(link, out);
        }
    }

    /// Sends a quenched leaf the next step, if there is one and not too much is under way.
    fn tell_quenched_next(&mut self, link: LinkId, out: &mut Vec<Output>) {
        let Some(wanted) = &self.quench.wanted else { return };
        let Some(leaf) = self.leaves.get_mut(link) else { return };
        let (scope, own, table) = (&leaf.scope, &leaf.filters, leaf.table);
        let Some(Quenched { told, everything, moved_at, .. }) = &mut leaf.quenched else { return };
        if told.filters_next() > table as u64 && !*everything {
            told.tell_whole(told.scope_version);
        }
        let of_others = |(filter, wanted): &(&AnnouncedFilter, &Wanted)| {
            wanted.sources > usize::from(own.contains(filter)) && scope.overlaps(&wanted.conjunction)
        };
        let number = told.next_number();
        let step = told.next_step(number, false, || {
            let wanted = wanted.iter().filter(of_others).map(|(filter, _)| filter.clone());
            let wanted: Vec<AnnouncedFilter> = wanted.take(table.saturating_add(1)).collect();
            *everything = wanted.len() > table;
            if *everything { vec![AnnouncedFilter::of(&Conjunction::always())] } else { wanted }
        });
        let Some(step) = step else { return };
        if told.under_way() == 0 {
            *moved_at = self.now;
        }
        told.sent(number, step.since);
        let scope_version = told.scope_version;
        for part in step.parts {
            self.send_to_leaf(link, LeafMessage::Interest(Interest::new(scope_version, part)), out);
        }
    }

    /// A quenched leaf holds a step.
    pub(crate) fn on_leaf_holds(&mut self, link: LinkId, step: u64, out: &mut Vec<Output>) {
        let Some(leaf) = self.leaves.get_mut(link) else { return };
        let id = leaf.id;
        let Some(quenched) = &mut leaf.quenched else { return };
        quenched.told.acknowledge(step);
        quenched.moved_at = self.now;
        self.tell_quenched_next(link, out);
        self.judge_lease(link, false, out);
        self.end_waits_for(id, out);
        self.pay_owed(out);
    }

    /// Acknowledges at once, or when the quenched leaves hold the present version.
    pub(crate) fn owe(&mut self, owed: Owed, out: &mut Vec<Output>) {
        let (version, all) = (self.announcements.version, &mut self.quench.owed);
        let same = (0..all.len()).filter(|&place| all[place].1.is_to_same(&owed));
        let (count, last) = same.fold((0, None), |(count, _), place| (count + 1, Some(place)));
        match last {
            // Said again; the earlier one says as much, and sooner.
            Some(place) if all[place].1 == owed => {}
            Some(place) if all[place].0 == version => all[place].1 = owed,
            Some(place) if count == WINDOW => {
                all.remove(place);
                all.push_back((version, owed));
            }
            Some(_) | None => all.push_back((version, owed)),
        }
        self.pay_owed(out);
    }

    fn pay_owed(&mut self, out: &mut Vec<Output>) {
        while let Some(&(version, owed)) = self.quench.owed.front()
            && self.leaves_hold(version)
        {
            self.quench.owed.pop_front();
            match owed {
                Owed::Channel { to, epoch, received } => {
                    self.send_routed(to, RoutedBody::Ack { epoch, received }, out);
                }
                Owed::Uplink { link, step } => self.send_held_up(link, step, out),
            }
        }
    }

    fn leaves_hold(&self, version: u64) -> bool {
        self.leaves.iter().filter_map(|(_, leaf)| leaf.quenched.as_ref()).all(|it| it.holds(version, self.now))
    }

    pub(crate) fn on_renew(&mut self, link: LinkId, number: u64, out: &mut Vec<Output>) {
        let now = self.now;
        if let Some(quenched) = self.leaves.get_mut(link).and_then(|leaf| leaf.quenched.as_mut()) {
            quenched.asked = Some((number, now));
            self.judge_lease(link, false, out);
        }
    }

    /// The view has changed, or the own lease is renewed: leases are revoked, or those that are asked for given.
    pub(crate) fn judge_leases(&mut self, renewed: bool, out: &mut Vec<Output>) {
        for link in self.leaves.attached() {
            self.judge_lease(link, renewed, out);
        }
    }

    /// In a leaf broker, whoever below has a lease already gets the next one when the own one is `renewed`, so that it lasts
    /// as long, however many leaves there are in between.
    fn judge_lease(&mut self, link: LinkId, renewed: bool, out: &mut Vec<Output>) {
        let complete = self.view_is_complete();
        let own = self.uplink.as_ref().map(|uplink| uplink.lease_until());
        let Some(quenched) = self.leaves.get_mut(link).and_then(|leaf| leaf.quenched.as_mut()) else { return };
        // Those who wait for a leaf must not wait for ever for one that renews its lease and acknowledges nothing.
        let stalled = quenched.told.under_way() > 0 && self.now.since(quenched.moved_at) > 2 * self.config.lease_margin;
        if complete && quenched.told.all_sent() && !stalled {
            let put_off = own.is_some() && quenched.granted && !renewed;
            let Some((number, asked_at)) = quenched.asked.take_if(|_| !put_off) else { return };
            // No longer than the own one: whoever gave that reckons with nobody below.
            let lasts = own.map_or(self.config.lease, |until| until.since(asked_at));
            quenched.granted = true;
            quenched.until = self.now + self.config.lease_margin;
            self.timers.set(Timer::Lease(link), Some(quenched.until));
            let lasts_us = u64::try_from(lasts.as_micros()).unwrap_or(u64::MAX);
            self.send_to_leaf(link, LeafMessage::Lease { number, lasts_us }, out);
        } else if !complete && std::mem::take(&mut quenched.granted) {
            self.send_to_leaf(link, LeafMessage::Revoke, out);
        }
    }

    /// A leaf's lease has run out for sure: nobody waits for it any more.
    pub(crate) fn on_lease_over(&mut self, link: LinkId, out: &mut Vec<Output>) {
        if let Some(leaf) = self.leaves.get(link) {
            self.end_waits_for(leaf.id, out);
            self.pay_owed(out);
        }
    }
}
