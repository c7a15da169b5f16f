//! The leaf brokers below this one: attached, each with what it wants and may publish.
//!
//! To its parent a leaf is much like a client: what it wants stands in the same matcher, what it may publish widens the same
//! scope. It is taken in if the parent has a path to the core that does not lead through the leaf. A later attachment of
//! the leaf, here or elsewhere, ends an earlier one.

use crate::broker::Broker;
use crate::interest::Source;
use crate::links::LinkCounts;
use crate::quench::Quenched;
use crate::received::{Numbered, Received, Taken};
use crate::told::MOST_STEPS;
use crate::topology::ScopeView;
use crate::waits::Asker;
use crate::{
    AnnouncedFilter, Attach, BrokerId, CloseReason, Detach, EventId, Interest, LeafMessage, LinkId, MAX_PATH, Message,
    Neighbour, Output, Payload, Scope,
};
use enroute_covering::{RootChange, RootDifference};
use enroute_filter::{Conjunction, Filter};
use enroute_matcher::SubscriptionId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Links of leaves that have moved, of which events may still come.
const MAX_MOVED: usize = 1_024;

/// Messages to another core broker that may wait before no more leaves are taken leave of there.
const MAX_DETACHES: usize = 64;

/// One leaf below, or one that is about to attach.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) id: BrokerId,
    pub(crate) peer_id: Arc<str>,
    incarnation: u64,
    /// Of its attachment; none before.
    epoch: Option<u64>,
    /// Whether it has hung nowhere else in its life.
    only_here: bool,
    /// Filters that it can hold.
    pub(crate) table: usize,
    pub(crate) interest: Received,
    pub(crate) filters: Numbered,
    scope_version: u64,
    pub(crate) scope: ScopeView,
    /// The number under which the own scope knows this scope.
    scope_number: u64,
    pub(crate) quenched: Option<Quenched>,
    pub(crate) counts: LinkCounts,
}

/// All links to leaves.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    by_link: BTreeMap<LinkId, Leaf>,
    attached: BTreeMap<BrokerId, LinkId>,
    moved: BTreeSet<LinkId>,
}

impl Leaves {
    pub(crate) fn get(&self, link: LinkId) -> Option<&Leaf> {
        self.by_link.get(&link)
    }

    pub(crate) fn get_mut(&mut self, link: LinkId) -> Option<&mut Leaf> {
        self.by_link.get_mut(&link)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LinkId, &Leaf)> {
        self.by_link.iter().map(|(&link, leaf)| (link, leaf))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (LinkId, &mut Leaf)> {
        self.by_link.iter_mut().map(|(&link, leaf)| (link, leaf))
    }

    /// The link to an attached leaf.
    pub(crate) fn to(&self, leaf: BrokerId) -> Option<LinkId> {
        self.attached.get(&leaf).copied()
    }

    /// The links to all attached leaves.
    pub(crate) fn attached(&self) -> Vec<LinkId> {
        self.attached.values().copied().collect()
    }

    /// Whether an event cannot have come up over this link: the leaf that published it hangs here by another one, and has hung
    /// nowhere else in that life. (Below a leaf broker, events can come round.)
    pub(crate) fn is_claimed(&self, link: LinkId, id: EventId) -> bool {
        let own = self.to(id.origin).filter(|&own| own != link);
        let own = own.and_then(|own| self.get(own));
        own.is_some_and(|leaf| leaf.only_here && leaf.incarnation == id.incarnation)
    }

    /// Whether events of a leaf come, or may still come, over this link.
    pub(crate) fn may_send(&self, link: LinkId) -> bool {
        self.by_link.get(&link).is_some_and(|leaf| leaf.epoch.is_some()) || self.moved.contains(&link)
    }

    fn remove(&mut self, link: LinkId) -> Option<Leaf> {
        let leaf = self.by_link.remove(&link)?;
        if self.to(leaf.id) == Some(link) {
            self.attached.remove(&leaf.id);
        }
        Some(leaf)
    }

    fn note_moved(&mut self, link: LinkId) {
        self.moved.insert(link);
        if self.moved.len() > MAX_MOVED {
            self.moved.pop_first();
        }
    }
}

impl Broker {
    /// A leaf has dialled; it is taken in when it asks for it.
    pub(crate) fn on_leaf_up(&mut self, link: LinkId, neighbour: Neighbour, out: &mut Vec<Output>) {
        let limit = self.config.leaves;
        let reason = if neighbour.broker == self.identity.id {
            CloseReason::Oneself
        } else if BrokerId::of_peer(&neighbour.peer_id) != neighbour.broker {
            CloseReason::Violation("a broker id that is not the hash of its peer id".into())
        } else if self.leaves.by_link.len() >= limit {
            CloseReason::Full { limit: limit as u64 }
        } else {
            let leaf = Leaf {
                id: neighbour.broker,
                peer_id: neighbour.peer_id,
                incarnation: neighbour.incarnation,
                epoch: None,
                only_here: false,
                table: 0,
                interest: Received::default(),
                filters: Numbered::default(),
                scope_version: 0,
                scope: ScopeView::Nobody,
                scope_number: 0,
                quenched: None,
                counts: LinkCounts::default(),
            };
            self.leaves.by_link.insert(link, leaf);
            return;
        };
        out.push(Output::CloseLink { link, reason });
    }

    pub(crate) fn on_message_from_leaf(&mut self, link: LinkId, message: LeafMessage, out: &mut Vec<Output>) {
        let Some(leaf) = self.leaves.get_mut(link) else { return };
        leaf.counts.control_received += 1;
        if leaf.epoch.is_some() == matches!(message, LeafMessage::Attach(_)) {
            let what = "a leaf that does not attach first, or does so twice";
            return self.close(link, CloseReason::Violation(what.into()), out);
        }
        match message {
            LeafMessage::Attach(attach) => self.on_attach(link, attach, out),
            LeafMessage::Interest(interest) => self.on_leaf_interest(link, interest, out),
            LeafMessage::Held { step, brokers: _, missing: _ } => self.on_leaf_holds(link, step, out),
            LeafMessage::Scope { version, scope } => self.on_leaf_scope(link, version, &scope, out),
            LeafMessage::Renew { number } => self.on_renew(link, number, out),
            LeafMessage::Detach(detach) if detach.path.len() <= MAX_PATH => self.on_detach(detach, true, out),
            LeafMessage::Detach(_) | LeafMessage::Path(_) | LeafMessage::Lease { .. } | LeafMessage::Revoke => {
                let what = "a leaf that says what only a parent may say, or too much";
                self.close(link, CloseReason::Violation(what.into()), out);
            }
        }
    }

    pub(crate) fn send_to_leaf(&mut self, link: LinkId, message: LeafMessage, out: &mut Vec<Output>) {
        if let Some(leaf) = self.leaves.get_mut(link) {
            leaf.counts.control_sent += 1;
            out.push(Output::Send { link, message: Message::Leaf(message) });
        }
    }

    fn on_attach(&mut self, link: LinkId, attach: Attach, out: &mut Vec<Output>) {
        let path = self.live_path();
        let Some(leaf) = self.leaves.get_mut(link) else { return };
        let (id, incarnation, epoch) = (leaf.id, leaf.incarnation, attach.epoch);
        let refusal = if attach.previous.len() > MAX_PATH {
            Some(CloseReason::Violation(format!("a path of more than {MAX_PATH} brokers")))
        } else if path.is_empty() {
            Some(CloseReason::NoPath)
        } else if path.contains(&id) {
            Some(CloseReason::Cycle)
        } else if path.len() >= MAX_PATH {
            Some(CloseReason::Full { limit: MAX_PATH as u64 })
        } else {
            None
        };
        if let Some(reason) = refusal {
            return self.close(link, reason, out);
        }
        if let Some(held) = self.leaves.to(id) {
            if !self.is_earlier(held, incarnation, epoch) {
                return self.close(link, CloseReason::Moved, out);
            }
            self.let_go(held, out);
        }
        if let Some(leaf) = self.leaves.get_mut(link) {
            (leaf.epoch, leaf.table) = (Some(epoch), attach.table as usize);
            leaf.only_here = attach.previous.is_empty();
        }
        self.leaves.attached.insert(id, link);
        self.send_to_leaf(link, LeafMessage::Path(path), out);
        if attach.previous.first().is_some_and(|&old| old != self.identity.id) {
            self.on_detach(Detach { leaf: id, incarnation, epoch, path: attach.previous }, true, out);
        }
    }

    /// The own path to the core, oneself first; empty if there is none.
    pub(crate) fn live_path(&self) -> Vec<BrokerId> {
        match &self.uplink {
            None => vec![self.identity.id],
            Some(uplink) if uplink.path().is_empty() => Vec::new(),
            Some(uplink) => [&[self.identity.id], uplink.path()].concat(),
        }
    }

    /// The own path has changed: all leaves are told.
    pub(crate) fn tell_path(&mut self, out: &mut Vec<Output>) {
        let path = self.live_path();
        for link in self.leaves.attached() {
            self.send_to_leaf(link, LeafMessage::Path(path.clone()), out);
        }
    }

    /// Whether what is attached by a link is an earlier attachment than the one given.
    fn is_earlier(&self, link: LinkId, incarnation: u64, epoch: u64) -> bool {
        let attachment = |leaf: &Leaf| Some((leaf.incarnation, leaf.epoch?));
        self.leaves.get(link).and_then(attachment).is_some_and(|held| held < (incarnation, epoch))
    }

    /// A leaf is attached elsewhere; what it had sent before still counts.
    fn let_go(&mut self, link: LinkId, out: &mut Vec<Output>) {
        self.close(link, CloseReason::Moved, out);
        self.leaves.note_moved(link);
    }

    /// A leaf has moved. Goes up until it meets the old path, or over the core to where that ends, and down along it.
    pub(crate) fn on_detach(&mut self, detach: Detach, from_below: bool, out: &mut Vec<Output>) {
        if let Some(link) = self.leaves.to(detach.leaf)
            && self.is_earlier(link, detach.incarnation, detach.epoch)
        {
            self.let_go(link, out);
        }
        match detach.path.iter().position(|&broker| broker == self.identity.id) {
            Some(0) => {}
            Some(place) => {
                if let Some(link) = self.leaves.to(detach.path[place - 1]) {
                    self.send_to_leaf(link, LeafMessage::Detach(detach), out);
                }
            }
            None if !from_below => {}
            None if self.uplink.is_some() => self.send_up(LeafMessage::Detach(detach), out),
            None => {
                // Without a path to the old core broker the epoch settles it when they meet.
                let core = detach.path.last().copied().filter(|&core| self.topology.route(core).is_some());
                let room =
                    |core: &BrokerId| self.channels.get(core).is_none_or(|it| it.unacknowledged() < MAX_DETACHES);
                if let Some(core) = core.filter(room) {
                    self.tell(core, Payload::Detach(detach), out);
                }
            }
        }
    }

    fn on_leaf_interest(&mut self, link: LinkId, interest: Interest, out: &mut Vec<Output>) {
        let Interest { scope_version, part } = interest;
        let (step, digest) = (part.version, part.digest);
        let limit = self.config.filters_per_broker;
        let Some(Leaf { interest: received, filters, .. }) = self.leaves.get_mut(link) else { return };
        let changes = match received.take(part, limit, filters.len(), |filter| filters.contains(filter)) {
            Taken::Part => return,
            Taken::TooMany => {
                let what = format!("an interest of more than {limit} filters");
                return self.close(link, CloseReason::Violation(what), out);
            }
            Taken::Step(changed) => filters.change(changed, self.clients.last_id()),
        };
        received.applied(scope_version, digest, &changes);
        let added = read_all(&changes.added);
        let readable = added.len() == changes.added.len();
        let good = readable && received.right && self.waits.asked_by_leaf(link) < MOST_STEPS;
        self.change_leaf_interest(link, added, read_all(&changes.removed), out);
        if !good {
            let what = "an interest that cannot be read, does not come out right, or is told without waiting";
            return self.close(link, CloseReason::Violation(what.into()), out);
        }
        let everything = Arc::new(Filter::always());
        self.await_force(Asker::Leaf { link, step }, everything, out);
    }

    fn change_leaf_interest(&mut self, link: LinkId, added: Vec<Known>, removed: Vec<Known>, out: &mut Vec<Output>) {
        let (mut change, mut roots) = (RootChange::default(), RootDifference::default());
        for (conjunction, id) in added {
            self.clients.insert_of_leaf(link, id, &conjunction);
            roots.apply(self.interest.insert_of_leaf(id, &conjunction));
            change.added.push(Arc::new(conjunction));
        }
        for (conjunction, id) in removed {
            self.clients.remove_of_leaf(id);
            roots.apply(self.interest.remove_of_leaf(id, &conjunction));
            change.removed.push(Arc::new(conjunction));
        }
        self.tell_interest(Source::Leaf(link), &change, &roots.into_change(), out);
    }

    fn on_leaf_scope(&mut self, link: LinkId, version: u64, scope: &Scope, out: &mut Vec<Output>) {
        *self.clients.last_id() += 1;
        let number = *self.clients.last_id();
        let Some(leaf) = self.leaves.get_mut(link) else { return };
        if version <= leaf.scope_version {
            return self.close(link, CloseReason::Violation("a scope that is not newer".into()), out);
        }
        leaf.scope_version = version;
        let scope = ScopeView::read(scope);
        let before = std::mem::replace(&mut leaf.scope, scope.clone());
        let number_before = std::mem::replace(&mut leaf.scope_number, number);
        self.replace_scope_of_leaf((number_before, &before), (number, &scope), out);
        self.quench(link, version, out);
    }

    /// A leaf is gone, with all it wanted.
    pub(crate) fn forget_leaf(&mut self, link: LinkId, out: &mut Vec<Output>) {
        let Some(leaf) = self.leaves.remove(link) else { return };
        self.drop_waits_of_leaf(link);
        let filters: Vec<_> = leaf.filters.iter().map(|(filter, id)| (filter.clone(), id)).collect();
        self.change_leaf_interest(link, Vec::new(), read_all(&filters), out);
        self.retire_scope_of_leaf(leaf.scope_number, &leaf.scope);
        self.on_quenching_ended(out);
        self.unsettled.scopes = true;
    }
}

/// A conjunction with the id that it is known by here.
type Known = (Conjunction, SubscriptionId);

/// Those that can be read.
fn read_all(filters: &[(AnnouncedFilter, SubscriptionId)]) -> Vec<Known> {
    filters.iter().filter_map(|(filter, id)| Some((filter.conjunction().ok()?, *id))).collect()
}
