//! Flooded records: link states and scopes, from their origin to all.

use crate::broker::Broker;
use crate::timers::Timer;
use crate::topology::Accepted;
use crate::{BrokerId, CloseReason, LinkId, LinkState, MAX_ADDRESSES, Message, Notice, Output, ScopeRecord, Version};
use std::sync::Arc;
use std::time::Duration;

/// A broker that hears somebody else speak under its name jumps above it at most this often within [`JUMPS_WITHIN`]; the
/// next time it goes down.
const JUMPS: usize = 2;

/// See [`JUMPS`].
const JUMPS_WITHIN: Duration = Duration::from_secs(60);

/// Bytes of an address; the wire carries no longer text.
const MAX_ADDRESS: usize = 256;

impl Broker {
    /// Writes the own link state anew into the tables, under the next version.
    pub(crate) fn renew_link_state(&mut self) {
        self.link_state_sequence += 1;
        let version = Version { incarnation: self.identity.incarnation, sequence: self.link_state_sequence };
        let record = LinkState {
            origin: self.identity.id,
            peer_id: self.identity.peer_id.clone(),
            start_nonce: self.identity.start_nonce,
            version,
            starting: self.starting,
            addresses: tellable(&self.identity.addresses),
            links: self.links.listed(),
        };
        self.topology.accept_link_state(Arc::new(record));
        self.unsettled.routes = true;
    }

    /// Tells a change of the own links or addresses: a first one at once, those that follow soon after together.
    pub(crate) fn update_link_state(&mut self, out: &mut Vec<Output>) {
        let unchanged = self.topology.link_state(self.identity.id).is_some_and(|told| {
            told.starting == self.starting
                && told.links == self.links.listed()
                && told.addresses == tellable(&self.identity.addresses)
        });
        if unchanged {
            return;
        }
        self.renew_link_state();
        match self.flooded_at {
            Some(at) if self.now < at + self.config.coalesce => {
                self.timers.start(Timer::FloodLinkState, at + self.config.coalesce);
            }
            Some(_) | None => self.flood_link_state(out),
        }
    }

    pub(crate) fn flood_link_state(&mut self, out: &mut Vec<Output>) {
        self.timers.set(Timer::FloodLinkState, None);
        self.flooded_at = Some(self.now);
        if let Some(record) = self.topology.link_state(self.identity.id).cloned() {
            self.flood(&Message::LinkState(record), None, out);
        }
    }

    pub(crate) fn on_link_state(&mut self, link: LinkId, record: Arc<LinkState>, out: &mut Vec<Output>) {
        if let Err(what) = check_link_state(&record, self.config.links) {
            return self.close(link, CloseReason::Violation(what.into()), out);
        }
        let origin = record.origin;
        if origin == self.identity.id {
            return self.on_own_link_state(&record, out);
        }
        self.put_off_purge(origin);
        match self.topology.accept_link_state(record.clone()) {
            Accepted::Old => {}
            Accepted::Full => {
                let what = format!("a record, with {} brokers known already", self.config.brokers);
                out.push(Output::Notice(Notice::Unreadable { broker: origin, what }));
            }
            Accepted::Clash { held_by } => {
                let refused = record.peer_id.clone();
                out.push(Output::Notice(Notice::IdClash { id: origin, held_by, refused }));
            }
            Accepted::New { new_life, links_changed } => {
                if new_life {
                    self.forget_life(origin, out);
                }
                self.unsettled.routes |= new_life || links_changed;
                self.view_changed_by(origin);
                self.flood(&Message::LinkState(record), Some(link), out);
                self.answer_scope(origin, out);
            }
        }
    }

    /// A neighbour speaks of a broker that is out of reach here: it can reach it, and will not say the same once more when
    /// this broker can too. So nothing is forgotten before the links in between are in sync.
    fn put_off_purge(&mut self, broker: BrokerId) {
        if self.topology.unreachable_since(broker).is_some() {
            self.timers.set(Timer::Purge(broker), Some(self.now + self.config.grace));
        }
    }

    /// What is said under this broker's own name, and is not an echo of its own words, comes from another life: an
    /// earlier one is outdone already; to a later one this broker must not yield.
    fn on_own_link_state(&mut self, record: &LinkState, out: &mut Vec<Output>) {
        let Some(own) = self.topology.link_state(self.identity.id) else { return };
        let echo = record.start_nonce == own.start_nonce && record.version <= own.version;
        if !echo && record.version >= own.version {
            self.jump_above(record.version.incarnation, out);
        }
    }

    /// Another life speaks under this broker's name: jumps above it and says everything again. After three times in a
    /// minute it is no accident.
    fn jump_above(&mut self, incarnation: u64, out: &mut Vec<Output>) {
        self.jumps.push_back(self.now);
        while self.jumps.front().is_some_and(|&at| self.now.since(at) > JUMPS_WITHIN) {
            self.jumps.pop_front();
        }
        if self.jumps.len() > JUMPS {
            out.push(Output::IdentityInUse);
            return;
        }
        let Some(incarnation) = incarnation.checked_add(1) else {
            out.push(Output::IdentityInUse);
            return;
        };
        self.identity.incarnation = incarnation;
        out.push(Output::StoreIncarnation(incarnation));
        out.push(Output::Notice(Notice::Impersonated { incarnation }));
        let others: Vec<BrokerId> = self.channels.keys().copied().collect();
        for broker in others {
            self.drop_channel(broker);
            self.announcements.forget(broker);
        }
        self.remote.clear();
        self.view_changed_throughout();
        self.quench_anew(out);
        self.last_event = 0;
        self.link_state_sequence = 0;
        self.renew_link_state();
        self.flood_link_state(out);
        self.tell_scope_anew(out);
        let publishers: Vec<BrokerId> = self.topology.publishers().map(|(broker, _)| broker).collect();
        for broker in publishers {
            self.answer_scope(broker, out);
        }
    }

    pub(crate) fn on_scope(&mut self, link: LinkId, record: Arc<ScopeRecord>, out: &mut Vec<Output>) {
        let origin = record.origin;
        if origin == self.identity.id {
            if record.version.incarnation > self.identity.incarnation {
                self.jump_above(record.version.incarnation, out);
            }
            return;
        }
        self.put_off_purge(origin);
        match self.topology.accept_scope(record.clone()) {
            Accepted::Old | Accepted::Full | Accepted::Clash { .. } => {}
            Accepted::New { new_life, links_changed: _ } => {
                self.unsettled.routes |= new_life;
                self.unsettled.scopes = true;
                self.flood(&Message::Scope(record), Some(link), out);
                self.answer_scope(origin, out);
            }
        }
    }
}

/// Of a broker's own addresses those that it can tell: with more, nobody would take its link state.
fn tellable(addresses: &[String]) -> Vec<String> {
    addresses.iter().filter(|address| address.len() <= MAX_ADDRESS).take(MAX_ADDRESSES).cloned().collect()
}

/// Whether a link state from elsewhere keeps within what it may say.
fn check_link_state(record: &LinkState, max_links: usize) -> Result<(), &'static str> {
    if BrokerId::of_peer(&record.peer_id) != record.origin {
        return Err("a link state whose origin is not the hash of its peer id");
    }
    if record.links.len() > max_links {
        return Err("a link state with too many links");
    }
    if !record.links.is_sorted_by(|a, b| a.neighbour < b.neighbour) {
        return Err("a link state whose links are not sorted");
    }
    if record.links.iter().any(|link| link.cost == 0 || link.neighbour == record.origin) {
        return Err("a link state with a link that costs nothing or leads nowhere");
    }
    if record.addresses.len() > MAX_ADDRESSES || record.addresses.iter().any(|address| address.len() > MAX_ADDRESS) {
        return Err("a link state with too many or too long addresses");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Identity, Input, Neighbour, Role, Scope, Time};

    #[test]
    fn others_take_the_link_state_of_a_broker_with_very_many_addresses() {
        let addresses = (0..100).map(|port| format!("/ip4/127.0.0.1/tcp/{port}"));
        let identity = Identity {
            id: BrokerId::of_peer("a"),
            peer_id: "a".into(),
            incarnation: 1,
            start_nonce: 1,
            addresses: std::iter::once("x".repeat(MAX_ADDRESS + 1)).chain(addresses).collect(),
        };
        let broker = Broker::new(identity.clone(), Config::default(), Time(0));
        let record = broker.topology.link_state(identity.id).expect("its own");
        assert_eq!(check_link_state(record, 0), Ok(()));
        assert_eq!(record.addresses, identity.addresses[1..=MAX_ADDRESSES]);
    }

    /// A broker that begins its first life as `peer`.
    fn identity(peer: &str) -> Identity {
        Identity {
            id: BrokerId::of_peer(peer),
            peer_id: peer.into(),
            incarnation: 1,
            start_nonce: 1,
            addresses: vec![],
        }
    }

    /// A broker with links to others, over which nothing has come yet.
    fn linked(config: Config, links: &[(LinkId, &str)]) -> Broker {
        let own = identity("a");
        let mut broker = Broker::new(own.clone(), config, Time(0));
        let mut out = Vec::new();
        for &(link, peer) in links {
            let other = identity(peer);
            let neighbour = Neighbour {
                broker: other.id,
                role: Role::Core,
                peer_id: other.peer_id,
                incarnation: 1,
                start_nonce: 1,
                dialled_by: own.id,
                dial: 1,
                cost: 1,
                told_incarnation: 1,
            };
            broker.handle(Input::LinkUp { link, neighbour }, Time(0), &mut out);
        }
        broker
    }

    /// Scopes of brokers that nobody knows take places for a while only, whatever life they claim to be of.
    #[test]
    fn invented_scopes_do_not_take_all_places_for_good() {
        for incarnation in [0, 1] {
            let config = Config { brokers: 4, ..Config::default() };
            let forgotten = Time(0) + config.grace;
            let mut broker = linked(config, &[(LinkId(1), "b")]);
            let mut hear = |at, origin: &str, incarnation| {
                let (origin, version) = (BrokerId::of_peer(origin), Version { incarnation, sequence: 1 });
                let record = Arc::new(ScopeRecord { origin, version, scope: Scope::Anything });
                broker.handle(Input::Message { link: LinkId(1), message: Message::Scope(record) }, at, &mut Vec::new());
                broker.topology.scope_record(origin).is_some()
            };
            let taken = ["x", "y", "z", "w"].map(|invented| hear(Time(0), invented, incarnation));
            assert_eq!(taken, [true, true, true, false], "there is room for three besides itself");
            assert!(hear(forgotten, "honest", 1), "those of life {incarnation} are still there");
        }
    }

    /// What is due when a link goes is not said over it any more.
    #[test]
    fn nothing_goes_over_a_link_that_is_gone() {
        let config = Config::default();
        let due = Time(0) + config.coalesce;
        let links = [(LinkId(1), "b"), (LinkId(2), "c")];
        let mut broker = linked(config, &links);
        let mut changed = |at, input| {
            let mut out = Vec::new();
            broker.handle(input, at, &mut out);
            let told = |&(link, _): &(LinkId, _)| {
                out.iter().any(|output| match output {
                    Output::Send { link: over, message: Message::LinkState(_) } => *over == link,
                    _ => false,
                })
            };
            links.iter().map(told).collect::<Vec<_>>()
        };
        assert_eq!(changed(Time(0), Input::Addresses(vec!["one".into()])), [true, true]);
        assert_eq!(changed(Time(0), Input::Addresses(vec!["two".into()])), [false, false]);
        assert_eq!(changed(due, Input::LinkDown { link: LinkId(1), unsent: vec![] }), [false, true]);
    }
}
