//! Links to neighbours: how a new connection becomes a link that carries events.
//!
//! Both ends of a new connection offer the versions of the records they hold (of origins they can reach: what is being
//! forgotten must not return), send what the other's offer lacks, and say `Synced`; the other answers `SyncedAck`. When
//! a broker has both, the two hold the same and it lists the link in its link state. The edge exists when both ends list it.

use crate::broker::Broker;
use crate::cost::{Cost, DAMPING, Effect};
use crate::passing::Gathered;
use crate::{BrokerId, CloseReason, EventFrame, Held, LinkEnd, LinkId, Message, Neighbour, Output, Role, Version};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Records named in one part of an offer: far below the frame limit.
const OFFER_PART: usize = 4_096;

/// One connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) neighbour: Neighbour,
    nonce: u64,
    pub(crate) cost: Cost,
    offered: BTreeMap<BrokerId, (Version, Version)>,
    they_synced: bool,
    we_synced: bool,
    pub(crate) counts: LinkCounts,
    /// Routed control that is about to go over it.
    pub(crate) letters: Gathered,
}

/// What a link has carried.
#[derive(Debug, Default)]
pub(crate) struct LinkCounts {
    pub(crate) control_sent: u64,
    pub(crate) control_received: u64,
    pub(crate) events_sent: u64,
    pub(crate) events_received: u64,
}

impl Link {
    fn new(neighbour: Neighbour, nonce: u64, in_sync: bool) -> Link {
        let (cost, offered) = (Cost::new(neighbour.cost), BTreeMap::new());
        let (they_synced, we_synced) = (in_sync, in_sync);
        let (counts, letters) = (LinkCounts::default(), Gathered::default());
        Link { neighbour, nonce, cost, offered, they_synced, we_synced, counts, letters }
    }

    /// Whether both directions are in sync.
    pub(crate) fn in_sync(&self) -> bool {
        self.they_synced && self.we_synced
    }
}

/// All connections, at most one of which is in use for each neighbour.
#[derive(Debug, Default)]
pub(crate) struct Links {
    links: BTreeMap<LinkId, Link>,
    by_neighbour: BTreeMap<BrokerId, LinkId>,
}

impl Links {
    pub(crate) fn get(&self, link: LinkId) -> Option<&Link> {
        self.links.get(&link)
    }

    pub(crate) fn get_mut(&mut self, link: LinkId) -> Option<&mut Link> {
        self.links.get_mut(&link)
    }

    /// The connection in use to a neighbour.
    pub(crate) fn to(&self, neighbour: BrokerId) -> Option<LinkId> {
        self.by_neighbour.get(&neighbour).copied()
    }

    /// The brokers at the other ends.
    pub(crate) fn neighbours(&self) -> impl Iterator<Item = BrokerId> {
        self.by_neighbour.keys().copied()
    }

    pub(crate) fn ids(&self) -> Vec<LinkId> {
        self.links.keys().copied().collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        self.links.iter().map(|(&id, link)| (id, link))
    }

    fn remove(&mut self, id: LinkId) -> Option<Link> {
        let link = self.links.remove(&id)?;
        if self.to(link.neighbour.broker) == Some(id) {
            self.by_neighbour.remove(&link.neighbour.broker);
        }
        Some(link)
    }

    /// The links that are listed in the own link state.
    pub(crate) fn listed(&self) -> Vec<LinkEnd> {
        let end = |(&neighbour, id): (&BrokerId, &LinkId)| {
            let link = self.links.get(id).filter(|link| link.in_sync())?;
            Some(LinkEnd { neighbour, cost: link.cost.get(), nonce: link.nonce })
        };
        self.by_neighbour.iter().filter_map(end).collect()
    }
}

/// Equal at both ends, and another one in each pair of lives.
fn link_nonce(mut lives: [(BrokerId, u64, u64); 2]) -> u64 {
    lives.sort_unstable();
    let mut bytes = Vec::with_capacity(48);
    for (broker, incarnation, start_nonce) in lives {
        for number in [broker.0, incarnation, start_nonce] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
    xxhash_rust::xxh3::xxh3_64(&bytes)
}

/// Of two connections to one broker: whether the newer is kept. Both ends judge alike: a later life of the neighbour
/// wins, then the later of two dials by one side, then the one dialled by the lower id.
fn newer_wins(older: &Neighbour, newer: &Neighbour) -> bool {
    if older.incarnation != newer.incarnation {
        return newer.incarnation > older.incarnation;
    }
    if older.dialled_by == newer.dialled_by {
        return newer.dial > older.dial;
    }
    newer.dialled_by < older.dialled_by
}

/// A neighbour has the id of another peer.
fn clash(held_by: Arc<str>, refused: &Neighbour) -> CloseReason {
    CloseReason::IdClash { id: refused.broker, held_by, refused: refused.peer_id.clone() }
}

impl Broker {
    /// The nonce of the link to a neighbour, as both ends list it.
    pub fn link_nonce(&self, neighbour: BrokerId) -> Option<u64> {
        self.links.get(self.links.to(neighbour)?).map(|link| link.nonce)
    }

    pub(crate) fn on_link_up(&mut self, id: LinkId, neighbour: Neighbour, out: &mut Vec<Output>) {
        match neighbour.role {
            Role::Core => self.on_core_up(id, neighbour, out),
            Role::Leaf => self.on_leaf_up(id, neighbour, out),
            Role::Parent => self.on_parent_up(id, neighbour, out),
        }
    }

    fn on_core_up(&mut self, id: LinkId, neighbour: Neighbour, out: &mut Vec<Output>) {
        if let Err(reason) = self.admit(&neighbour) {
            out.push(Output::CloseLink { link: id, reason });
            return;
        }
        let broker = neighbour.broker;
        let (mut same_lives, mut cost) = (false, None);
        if let Some(older_id) = self.links.to(broker) {
            let older = &self.links.links[&older_id];
            if !newer_wins(&older.neighbour, &neighbour) {
                out.push(Output::CloseLink { link: id, reason: CloseReason::Duplicate });
                return;
            }
            same_lives = older.neighbour.incarnation == neighbour.incarnation
                && older.neighbour.start_nonce == neighbour.start_nonce
                && older.neighbour.told_incarnation == neighbour.told_incarnation
                && older.in_sync();
            cost = self.take_link_away(older_id).filter(|_| same_lives).map(|older| older.cost);
            out.push(Output::CloseLink { link: older_id, reason: CloseReason::Duplicate });
        }
        // A link that replaces one between the same lives keeps its place in the tables: no link goes down for it.
        self.use_link(id, neighbour, same_lives, cost);
        self.offer(id, out);
    }

    /// A link to a core broker is gone; what was to go over it next goes another way when the tables know.
    fn take_link_away(&mut self, id: LinkId) -> Option<Link> {
        let mut link = self.links.remove(id)?;
        self.unsettled.stray.append(&mut link.letters.take().0);
        Some(link)
    }

    /// A connection becomes the link to its neighbour.
    pub(crate) fn use_link(&mut self, id: LinkId, neighbour: Neighbour, in_sync: bool, cost: Option<Cost>) {
        let broker = neighbour.broker;
        let me = (self.identity.id, neighbour.told_incarnation, self.identity.start_nonce);
        let nonce = link_nonce([me, (broker, neighbour.incarnation, neighbour.start_nonce)]);
        let mut link = Link::new(neighbour, nonce, in_sync);
        link.cost = cost.unwrap_or(link.cost);
        self.links.links.insert(id, link);
        self.links.by_neighbour.insert(broker, id);
        self.links_changed();
    }

    /// Takes in how long something took to the other end and back.
    pub(crate) fn on_round_trip(&mut self, id: LinkId, took: Duration) {
        let may_change = self.cost_changed_at.is_none_or(|at| self.now.since(at) >= DAMPING);
        let Some(link) = self.links.get_mut(id).filter(|_| self.config.measured) else { return };
        match link.cost.measure(took, self.now, may_change) {
            Effect::Same => return,
            Effect::Known => {}
            Effect::Changed => self.cost_changed_at = Some(self.now),
        }
        self.links_changed();
    }

    fn admit(&self, neighbour: &Neighbour) -> Result<(), CloseReason> {
        if self.uplink.is_some() {
            return Err(CloseReason::Violation("a leaf broker is linked by its uplink only".into()));
        }
        if neighbour.broker == self.identity.id && neighbour.peer_id == self.identity.peer_id {
            return Err(CloseReason::Oneself);
        }
        if neighbour.broker == self.identity.id {
            return Err(clash(self.identity.peer_id.clone(), neighbour));
        }
        if BrokerId::of_peer(&neighbour.peer_id) != neighbour.broker {
            return Err(CloseReason::Violation("a broker id that is not the hash of its peer id".into()));
        }
        if self.links.links.len() >= self.config.links {
            return Err(CloseReason::Violation(format!("this broker holds its limit of {} links", self.config.links)));
        }
        match self.topology.link_state(neighbour.broker) {
            Some(held) if held.peer_id != neighbour.peer_id => Err(clash(held.peer_id.clone(), neighbour)),
            Some(held) if held.version.incarnation > neighbour.incarnation => Err(CloseReason::OldIncarnation),
            Some(_) | None => Ok(()),
        }
    }

    fn offer(&mut self, link: LinkId, out: &mut Vec<Output>) {
        let held = self.topology.offer();
        let parts = held.len().div_ceil(OFFER_PART).max(1);
        for part in 0..parts {
            let from = part * OFFER_PART;
            let held = held[from..held.len().min(from + OFFER_PART)].to_vec();
            self.send(link, Message::Offer { held, last: part + 1 == parts }, out);
        }
    }

    pub(crate) fn on_link_down(&mut self, id: LinkId, unsent: Vec<EventFrame>, out: &mut Vec<Output>) {
        if self.is_uplink(id) {
            self.forget_parent(out);
            return self.keep_unsent(unsent);
        }
        if self.leaves.get(id).is_some() {
            self.counters.lost_with_leaf += unsent.len() as u64;
            return self.forget_leaf(id, out);
        }
        if self.take_link_away(id).is_some() {
            self.links_changed();
        }
        if self.uplink.is_some() {
            // Of a link that was closed here. What was on its way up, not down, still is.
            let up = unsent.into_iter().filter(|frame| frame.hop_limit > 0).collect();
            return self.keep_unsent(up);
        }
        // The tables first, so that the events find their new way.
        self.settle(out);
        for frame in unsent {
            self.split(frame, None, out);
        }
    }

    pub(crate) fn on_offer(&mut self, id: LinkId, held: Vec<Held>, last: bool, out: &mut Vec<Output>) {
        let capacity = self.config.brokers;
        let Some(link) = self.links.get_mut(id) else { return };
        link.offered.extend(held.into_iter().map(|held| (held.origin, (held.links, held.scope))));
        if link.offered.len() > capacity {
            self.close(id, CloseReason::Violation(format!("an offer of more than {capacity} brokers")), out);
            return;
        }
        if !last {
            return;
        }
        let offered = std::mem::take(&mut link.offered);
        self.topology.withhold_unreachable();
        for held in self.topology.offer() {
            let (links, scope) = offered.get(&held.origin).copied().unwrap_or_default();
            if held.links > links {
                self.send_link_state(id, held.origin, out);
            }
            if held.scope > scope {
                self.send_scope(id, held.origin, out);
            }
        }
        self.send(id, Message::Synced, out);
    }

    pub(crate) fn on_synced(&mut self, id: LinkId, out: &mut Vec<Output>) {
        let Some(link) = self.links.get_mut(id) else { return };
        link.they_synced = true;
        self.send(id, Message::SyncedAck, out);
        self.links_changed();
    }

    pub(crate) fn on_synced_ack(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(id) else { return };
        link.we_synced = true;
        self.links_changed();
    }

    pub(crate) fn send_link_state(&mut self, link: LinkId, origin: BrokerId, out: &mut Vec<Output>) {
        if let Some(record) = self.topology.link_state(origin).cloned() {
            self.send(link, Message::LinkState(record), out);
        }
    }

    pub(crate) fn send_scope(&mut self, link: LinkId, origin: BrokerId, out: &mut Vec<Output>) {
        if let Some(record) = self.topology.scope_record(origin).cloned() {
            self.send(link, Message::Scope(record), out);
        }
    }

    /// Sends and counts a control message.
    pub(crate) fn send(&mut self, link: LinkId, message: Message, out: &mut Vec<Output>) {
        if let Some(link) = self.links.get_mut(link) {
            link.counts.control_sent += 1;
        }
        out.push(Output::Send { link, message });
    }

    /// Sends a message to all neighbours but the one it came from.
    pub(crate) fn flood(&mut self, message: &Message, from: Option<LinkId>, out: &mut Vec<Output>) {
        for link in self.links.ids() {
            if Some(link) != from {
                self.send(link, message.clone(), out);
            }
        }
    }

    /// Closes a link, and forgets who was at its other end.
    pub(crate) fn close(&mut self, link: LinkId, reason: CloseReason, out: &mut Vec<Output>) {
        out.push(Output::CloseLink { link, reason });
        if self.take_link_away(link).is_some() {
            self.links_changed();
        } else if self.is_uplink(link) {
            self.forget_parent(out);
        } else {
            self.forget_leaf(link, out);
        }
    }
}
