//! The broker itself: its parts, the one entry point, and what follows from changes.

use crate::announce::Announcements;
use crate::channel::Channel;
use crate::clients::Clients;
use crate::filters::{OwnFilters, RemoteFilters};
use crate::forward::Parked;
use crate::interest::LocalInterest;
use crate::leaves::Leaves;
use crate::links::{Link, Links};
use crate::publish::WaitingPublications;
use crate::quench::Quench;
use crate::remote::RemoteInterest;
use crate::scope::OwnScope;
use crate::seen::Seen;
use crate::timers::{Timer, Timers};
use crate::topology::Topology;
use crate::uplink::Uplink;
use crate::view::View;
use crate::waits::Waits;
use crate::watch::Watches;
use crate::{
    BrokerId, CloseReason, Config, Counters, Identity, Input, LeafMessage, LinkId, LinkState, Message, Output, Routed,
    Time,
};
use enroute_matcher::Owner;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A broker without sockets, clock or randomness of its own: see [`Broker::handle`].
pub struct Broker {
    pub(crate) identity: Identity,
    pub(crate) config: Config,
    pub(crate) now: Time,
    pub(crate) timers: Timers,
    pub(crate) counters: Counters,

    pub(crate) links: Links,
    pub(crate) topology: Topology,
    pub(crate) starting: bool,
    pub(crate) peers_tried: bool,
    /// The sequence of the own link state, and when it was last flooded.
    pub(crate) link_state_sequence: u64,
    pub(crate) flooded_at: Option<Time>,
    /// When a link that had been in use for some time last changed its cost.
    pub(crate) cost_changed_at: Option<Time>,
    /// When this broker has had to jump above another that speaks under its name.
    pub(crate) jumps: VecDeque<Time>,

    pub(crate) channels: BTreeMap<BrokerId, Channel>,
    pub(crate) last_epoch: u64,
    pub(crate) announcements: Announcements,
    pub(crate) remote: RemoteInterest,

    pub(crate) clients: Clients,
    pub(crate) interest: LocalInterest,
    pub(crate) scope: OwnScope,
    pub(crate) waits: Waits,
    pub(crate) watches: Watches,

    pub(crate) leaves: Leaves,
    pub(crate) quench: Quench,
    /// None in a core broker.
    pub(crate) uplink: Option<Uplink>,
    pub(crate) seen: Seen,

    pub(crate) waiting: WaitingPublications,
    pub(crate) view: View,
    pub(crate) last_event: u64,
    pub(crate) parked: Parked,
    /// Room for the matcher's answer, kept from event to event.
    pub(crate) owners: Vec<Owner>,

    pub(crate) unsettled: Unsettled,
}

/// What has changed and has consequences that are still to be drawn, once, at the end of an input.
#[derive(Debug, Default)]
pub(crate) struct Unsettled {
    /// The own links.
    pub(crate) links: bool,
    /// Anybody's links.
    pub(crate) routes: bool,
    /// What the completeness of the view depends on.
    pub(crate) view: bool,
    /// Scopes of others.
    pub(crate) scopes: bool,
    /// What events have taught about what to announce.
    pub(crate) merging: bool,
    /// Links for which routed control has gathered.
    pub(crate) letters: BTreeSet<LinkId>,
    /// What had gathered for links that are gone.
    pub(crate) stray: Vec<Routed>,
}

impl Broker {
    /// A broker that starts at `now`.
    pub fn new(identity: Identity, config: Config, now: Time) -> Broker {
        Broker::with_filters(identity, config, now, Box::new(OwnFilters::default()))
    }

    /// As [`Broker::new`], with a place for the filters of other brokers, in which there are none yet.
    pub fn with_filters(identity: Identity, config: Config, now: Time, filters: Box<dyn RemoteFilters>) -> Broker {
        let mut broker = Broker {
            topology: Topology::new(identity.id, config.brokers),
            now,
            timers: Timers::default(),
            counters: Counters::default(),
            links: Links::default(),
            starting: true,
            peers_tried: false,
            link_state_sequence: 0,
            flooded_at: None,
            cost_changed_at: None,
            jumps: VecDeque::new(),
            channels: BTreeMap::new(),
            last_epoch: 0,
            announcements: Announcements::default(),
            remote: RemoteInterest::new(filters),
            clients: Clients::default(),
            interest: LocalInterest::new(config.merging),
            scope: OwnScope::default(),
            waits: Waits::default(),
            watches: Watches::default(),
            leaves: Leaves::default(),
            quench: Quench::default(),
            uplink: config.leaf.then(Uplink::new),
            seen: Seen::default(),
            waiting: WaitingPublications::default(),
            view: View::default(),
            last_event: 0,
            parked: Parked::default(),
            owners: Vec::new(),
            unsettled: Unsettled::default(),
            identity,
            config,
        };
        broker.timers.set(Timer::Started, Some(now + broker.config.starting));
        broker.timers.set(Timer::Path, broker.config.leaf.then_some(now + broker.config.path_wait));
        broker.renew_link_state();
        broker.topology.update_routes(now);
        broker
    }

    /// The own id.
    pub fn id(&self) -> BrokerId {
        self.identity.id
    }

    /// The present incarnation, for hellos; it may grow while the broker lives.
    pub fn incarnation(&self) -> u64 {
        self.identity.incarnation
    }

    /// The link states of all brokers that are known, this one among them, in order of their ids, each with whether there is a path
    /// to it. A driver that chooses neighbours by itself chooses from these.
    pub fn members(&self) -> impl Iterator<Item = (&Arc<LinkState>, bool)> {
        self.topology.link_states()
    }

    /// When [`Input::Timer`] is wanted next, if nothing else happens before.
    pub fn wake_at(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Takes in one thing that happened at `now`, which never runs backwards, and appends to `out` what is to be done, in
    /// order. The same inputs at the same times give the same outputs.
    pub fn handle(&mut self, input: Input, now: Time, out: &mut Vec<Output>) {
        self.now = self.now.max(now);
        // Nothing more goes over a link that is gone, also not what is due.
        let gone = matches!(input, Input::LinkDown { .. });
        if !gone {
            self.on_timers(out);
        }
        match input {
            Input::LinkUp { link, neighbour } => self.on_link_up(link, neighbour, out),
            Input::LinkDown { link, unsent } => self.on_link_down(link, unsent, out),
            Input::RoundTrip { link, took } => self.on_round_trip(link, took),
            Input::Addresses(addresses) => {
                self.identity.addresses = addresses;
                self.links_changed();
            }
            Input::Message { link, message } => self.on_message(link, message, out),
            Input::Event { link, frame } => self.on_event(link, frame, out),
            Input::ClientConnected { client } => self.on_client_connected(client),
            Input::ClientDisconnected { client } => self.on_client_disconnected(client, out),
            Input::Command { client, request, command } => self.on_command(client, request, command, out),
            Input::Publish { client, request, event } => self.on_publish(client, request, event, out),
            Input::PeersTried => {
                self.peers_tried = true;
                self.end_start_if_ready();
            }
            Input::Timer => {}
        }
        if gone {
            self.on_timers(out);
        }
        self.settle(out);
        self.send_gathered(out);
    }

    fn on_timers(&mut self, out: &mut Vec<Output>) {
        while let Some(timer) = self.timers.pop(self.now) {
            self.on_timer(timer, out);
        }
    }

    fn on_message(&mut self, link: LinkId, message: Message, out: &mut Vec<Output>) {
        match self.links.get_mut(link) {
            Some(from) => from.counts.control_received += 1,
            None if matches!(message, Message::Leaf(_)) => {}
            None => return self.on_misplaced(link, out),
        }
        match message {
            Message::Offer { held, last } => self.on_offer(link, held, last, out),
            Message::Synced => self.on_synced(link, out),
            Message::SyncedAck => self.on_synced_ack(link),
            Message::LinkState(record) => self.on_link_state(link, record, out),
            Message::Scope(record) => self.on_scope(link, record, out),
            Message::Routed(letters) => self.on_letters(letters, out),
            Message::Leaf(message) => self.on_leaf_message(link, message, out),
        }
    }

    fn on_leaf_message(&mut self, link: LinkId, message: LeafMessage, out: &mut Vec<Output>) {
        if self.is_uplink(link) {
            self.on_message_from_parent(link, message, out);
        } else if self.leaves.get(link).is_some() {
            self.on_message_from_leaf(link, message, out);
        } else if self.links.get(link).is_some() {
            self.close(link, CloseReason::Violation("words between leaf and parent, between core brokers".into()), out);
        }
    }

    /// What core brokers say to each other has come over another link, or was under way on one that is closed: then the sync
    /// of the next link brings what it said.
    fn on_misplaced(&mut self, link: LinkId, out: &mut Vec<Output>) {
        if self.is_uplink(link) || self.leaves.get(link).is_some() {
            self.close(link, CloseReason::Violation("words between core brokers, between leaf and parent".into()), out);
        }
    }

    fn on_timer(&mut self, timer: Timer, out: &mut Vec<Output>) {
        match timer {
            Timer::Started => self.end_start(),
            Timer::FloodLinkState => self.flood_link_state(out),
            Timer::Resend(broker) => self.resend(broker, out),
            Timer::PassOn(link) => _ = self.unsettled.letters.insert(link),
            Timer::Resync(broker) => self.on_resync_due(broker, out),
            Timer::Unreachable(_) => self.check_waits(out),
            Timer::Purge(broker) => self.purge(broker, out),
            Timer::Publish => self.on_publication_due(out),
            Timer::Answer => self.on_answers_due(out),
            Timer::Park => self.on_parked_due(out),
            Timer::Narrow => self.on_narrow(out),
            Timer::TellScope => self.tell_scope(out),
            Timer::Lease(link) => self.on_lease_over(link, out),
            Timer::Renew => self.renew(out),
            Timer::LeaseEnd => self.end_lease(),
            Timer::AnnounceUp => self.announce_up(out),
            Timer::Path => self.on_path_overdue(out),
        }
    }

    /// Draws the consequences of all changes, each once.
    pub(crate) fn settle(&mut self, out: &mut Vec<Output>) {
        while self.unsettled.links || self.unsettled.routes {
            if std::mem::take(&mut self.unsettled.links) {
                self.update_link_state(out);
            }
            if std::mem::take(&mut self.unsettled.routes) {
                self.update_routes(out);
            }
            self.end_start_if_ready();
        }
        for letter in std::mem::take(&mut self.unsettled.stray) {
            self.pass_on(letter, out);
        }
        if std::mem::take(&mut self.unsettled.merging) {
            self.announce_as_learnt(out);
        }
        let scopes = std::mem::take(&mut self.unsettled.scopes);
        let view = std::mem::take(&mut self.unsettled.view);
        if scopes || view {
            self.check_waits(out);
        }
        if view {
            self.watches.doubt();
            self.publish_waiting(out);
            self.judge_leases(false, out);
        }
    }

    fn update_routes(&mut self, out: &mut Vec<Output>) {
        let change = self.topology.update_routes(self.now);
        for &broker in change.vanished.iter().chain(&change.appeared) {
            self.view_changed_by(broker);
        }
        for &broker in &change.vanished {
            self.timers.set(Timer::Unreachable(broker), Some(self.now + self.config.unreachable));
            self.timers.set(Timer::Purge(broker), Some(self.now + self.config.grace));
        }
        for &broker in &change.appeared {
            self.timers.set(Timer::Unreachable(broker), None);
            self.timers.set(Timer::Purge(broker), None);
            self.on_appeared(broker, out);
        }
        for &broker in change.appeared.iter().chain(&change.moved) {
            self.on_path_changed(broker, out);
        }
        self.unsettled.scopes = true;
        self.view_changed();
        self.unpark(out);
    }

    /// There is a path to a broker and was none. A neighbour may not know of it: what is out of reach is not offered.
    fn on_appeared(&mut self, broker: BrokerId, out: &mut Vec<Output>) {
        if self.topology.take_withheld(broker) {
            for link in self.links.ids() {
                self.send_link_state(link, broker, out);
                self.send_scope(link, broker, out);
            }
        }
        self.answer_scope(broker, out);
    }

    /// Forgets a broker that has been out of reach for the time of grace.
    fn purge(&mut self, broker: BrokerId, out: &mut Vec<Output>) {
        self.topology.purge(broker);
        self.forget_life(broker, out);
        self.timers.set(Timer::Unreachable(broker), None);
        self.unsettled.scopes = true;
    }

    /// Forgets all that was said by, and to, an earlier life of a broker.
    pub(crate) fn forget_life(&mut self, broker: BrokerId, out: &mut Vec<Output>) {
        self.drop_channel(broker);
        self.announcements.forget(broker);
        self.forget_interest(broker, out);
        self.timers.set(Timer::Resync(broker), None);
        self.view.forget(broker);
        self.view_changed_by(broker);
    }

    /// The own links have changed, or a link's state of sync.
    pub(crate) fn links_changed(&mut self) {
        self.unsettled.links = true;
        // Who is at the other end may be about to become reachable.
        self.view_changed();
    }

    /// Every configured peer has been tried, and every link is in sync and in the topology: before the neighbour has listed
    /// it too, those behind it would not be waited for. A leaf broker is not about to be taken in.
    fn end_start_if_ready(&mut self) {
        if !self.starting {
            return;
        }
        let stands = |link: &Link| link.in_sync() && self.topology.route(link.neighbour.broker).is_some();
        let attaching = self.uplink.as_ref().is_some_and(|it| it.parent.is_some() && it.attached().is_none());
        if self.peers_tried && !attaching && self.links.iter().all(|(_, link)| stands(link)) {
            self.end_start();
        }
    }

    pub(crate) fn end_start(&mut self) {
        if std::mem::take(&mut self.starting) {
            self.timers.set(Timer::Started, None);
            self.links_changed();
            self.view_changed();
        }
    }
}
