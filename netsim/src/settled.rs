//! Networks that start at rest, as a start from nothing would have left them.
//!
//! A start from nothing floods every link of every broker to all others, which for thousands of brokers takes longer than
//! what is to be seen afterwards. Brokers that start at rest share the link states, as all share those that are flooded, and
//! the numbers under which they hold them, until they hear of another broker; all that a broker concludes is its own. What they hold
//! of each other's interest stands in one place for all of them ([`crate::shared`]).
//!
//! So that clients, too, can have at rest what they want and what they publish, scopes and all that brokers say from end to end
//! is there at once at first: the brokers' answers are as ever, only the ways are left out.

use crate::link::{Connection, End, Standing};
use crate::world::{Happening, World};
use enroute_broker::{Broker, BrokerId, Input, Letters, LinkId, Members, Message, Neighbour, Version};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

/// Words that may wait to be told; with more, the memory that they take would be seen.
pub(crate) const MOST_WORDS: usize = 500_000;

/// Words of brokers to others that are there at once: scopes, and what is said from end to end.
#[derive(Debug, Default)]
pub(crate) struct AtOnce {
    /// By host: a link over which they come. Without one, nobody can be reached.
    links: Vec<Option<LinkId>>,
    hosts: BTreeMap<BrokerId, usize>,
    /// By host: what it is to be told. Host by host, since each is far away in memory.
    words: BTreeMap<usize, Vec<Message>>,
    /// How many words there are, and whether somebody is about to tell them.
    count: usize,
    telling: bool,
    /// The last scope that was told.
    last_scope: Option<(BrokerId, Version)>,
}

impl AtOnce {
    fn add(&mut self, host: usize, message: Message) {
        self.words.entry(host).or_default().push(message);
        self.count += 1;
    }
}

impl World {
    /// Starts all core brokers at once, but for clones, with all links that are not cut in sync. They must never have been up.
    /// Leaves start as always, and clients come as always. Until [`World::go_on`] scopes, and what brokers say from end to end,
    /// are there at once and counted nowhere, so that what clients place until then is at rest too.
    pub fn start_settled(&mut self) {
        self.disturb();
        self.share_filters();
        let stays_down = |world: &World, host: &usize| world.is_leaf(*host) || world.settings.clones.contains_key(host);
        let core: Vec<usize> = (0..self.hosts.len()).filter(|host| !stays_down(self, host)).collect();
        for &host in &core {
            self.create(host);
        }
        let first = self.next_connection;
        let mut links = self.connect_all_hosts();
        let a_link = links.iter().map(|links| links.first().map(|&(link, _)| link)).collect();
        let mut records = Vec::with_capacity(core.len());
        for &host in &core {
            let Some(broker) = &mut self.hosts[host].core else { continue };
            broker.gather_for(Duration::ZERO);
            records.extend(broker.link_settled(std::mem::take(&mut links[host])).cloned());
        }
        let hosts = core.iter().map(|&host| (self.hosts[host].id, host)).collect();
        self.at_once = Some(AtOnce { links: a_link, hosts, ..AtOnce::default() });
        let members = Members::new(records);
        self.know_all(&members);
        for &host in &core {
            self.restart_timer(host);
            self.connect_clients_soon(host);
        }
        self.count_links();
        for number in first..self.next_connection {
            (0..2).for_each(|side| self.on_probe(number, side));
        }
        for leaf in self.settings.uplinks.keys().copied().collect::<Vec<_>>() {
            self.start(leaf);
        }
    }

    /// From now on brokers that start hold each other's interest in one place for all, which changes nothing but the memory that
    /// it takes.
    pub fn share_filters(&mut self) {
        self.shared.get_or_insert_default();
    }

    /// From now on everything takes its way and its time.
    pub fn go_on(&mut self) {
        self.tell_at_once(0);
        if self.at_once.take().is_some() {
            let gather = self.settings.config.gather;
            self.hosts.iter_mut().filter_map(|host| host.core.as_mut()).for_each(|broker| broker.gather_for(gather));
        }
    }

    /// While words are there at once: takes those that are, and leaves what goes over a link all the same.
    pub(crate) fn take_word(&mut self, from: usize, message: Message) -> Option<Message> {
        let Some(at_once) = &mut self.at_once else { return Some(message) };
        match &message {
            // It has been told to all by its origin, and is not flooded further.
            Message::Scope(record) if record.origin != self.hosts[from].id => {}
            Message::Scope(record) => {
                // Once, though it is sent over every link.
                let scope = Some((record.origin, record.version));
                if std::mem::replace(&mut at_once.last_scope, scope) != scope {
                    let others: Vec<usize> = at_once.hosts.values().copied().filter(|&host| host != from).collect();
                    others.into_iter().for_each(|host| at_once.add(host, message.clone()));
                }
            }
            Message::Routed(Letters(letters)) => {
                for letter in letters {
                    if let Some(&host) = at_once.hosts.get(&letter.destination.broker) {
                        at_once.add(host, Message::Routed(Letters(vec![letter.clone()])));
                    }
                }
            }
            Message::Offer { .. } | Message::Synced | Message::SyncedAck | Message::LinkState(_) | Message::Leaf(_) => {
                return Some(message);
            }
        }
        None
    }

    /// Gives the words that are there at once to those they are for, and the answers, and so on, if there are more than `most`.
    pub(crate) fn tell_at_once(&mut self, most: usize) {
        let Some(at_once) = self.at_once.as_mut().filter(|at_once| at_once.count > most && !at_once.telling) else {
            return;
        };
        at_once.telling = true;
        while let Some(at_once) = self.at_once.as_mut().filter(|at_once| at_once.count > 0) {
            at_once.count = 0;
            for (host, words) in std::mem::take(&mut at_once.words) {
                words.into_iter().for_each(|message| self.tell_word(host, message));
            }
        }
        self.at_once.iter_mut().for_each(|at_once| at_once.telling = false);
    }

    fn tell_word(&mut self, host: usize, message: Message) {
        let link = self.at_once.as_ref().and_then(|at_once| at_once.links[host]);
        let out_of_reach = match (&self.hosts[host].core, &message) {
            (None, _) => true,
            (Some(core), Message::Scope(record)) => core.route_to(record.origin).is_none(),
            (Some(_), _) => false,
        };
        if let Some(link) = link.filter(|_| !out_of_reach) {
            self.give(host, Input::Message { link, message });
        }
    }

    /// Each broker that is up knows all members, and the ways to them, which it computes by itself: on all processors.
    fn know_all(&mut self, members: &Members) {
        let mut brokers: Vec<&mut Broker> = self.hosts.iter_mut().filter_map(|host| host.core.as_mut()).collect();
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let share = brokers.len().div_ceil(processors).max(1);
        std::thread::scope(|scope| {
            for brokers in brokers.chunks_mut(share) {
                scope.spawn(|| brokers.iter_mut().for_each(|broker| broker.know_settled(members)));
            }
        });
    }

    /// Puts a connection that counts on each link of the core whose ends are up, and gives for each broker its links.
    fn connect_all_hosts(&mut self) -> Vec<Vec<(LinkId, Neighbour)>> {
        self.links_change();
        let mut links = vec![Vec::new(); self.hosts.len()];
        for edge in 0..self.edges.len() {
            let hosts = self.edges[edge].hosts;
            let both_up = hosts.iter().all(|&host| self.hosts[host].core.is_some());
            if self.edges[edge].is_loop() || self.edges[edge].uplink || self.edges[edge].cut || !both_up {
                continue;
            }
            let dialler = usize::from(!self.edges[edge].dials[0]);
            self.hosts[hosts[dialler]].dials += 1;
            let dial = self.hosts[hosts[dialler]].dials;
            let told = hosts.map(|host| self.hosts[host].incarnation);
            let ends = [0, 1].map(|_| End { standing: Standing::Up, ..End::new(self.now) });
            let connection = Connection { edge, dialler, dial, told, broken: None, ends };
            for side in 0..2 {
                let link = Connection::link(self.next_connection, side);
                links[hosts[side]].push((link, self.neighbour(&connection, side)));
            }
            self.connections.insert(self.next_connection, connection);
            self.next_connection += 1;
            self.edges[edge].counted = true;
        }
        links
    }

    /// The clients of a broker that has just started come in their own time.
    pub(crate) fn connect_clients_soon(&mut self, host: usize) {
        for client in 0..self.clients.len() {
            if self.clients[client].host == host {
                let at = self.after([1_000, 10_000]);
                self.schedule(at, Happening::Connect { client, life: self.hosts[host].life });
            }
        }
    }
}
