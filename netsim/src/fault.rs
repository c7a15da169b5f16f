//! Dials, breaks, crashes and restarts.

use crate::link::{Connection, End, Standing};
use crate::world::{Happening, World};
use enroute_broker::{Broker, Config, EventFrame, Identity, Input, Neighbour, Role, Time};
use rand::Rng;
use std::collections::BTreeSet;
use std::time::Duration;

/// Real incarnations are at least the Unix time in milliseconds; this stands for the day the world begins.
const FIRST_DAY: u64 = 1_700_000_000_000;

impl World {
    /// Starts all brokers that are down, but for clones.
    pub fn start_all(&mut self) {
        for host in 0..self.hosts.len() {
            if !self.settings.clones.contains_key(&host) {
                self.start(host);
            }
        }
    }

    /// Starts a broker that is down: it dials its neighbours and is dialled, its clients come and place all again.
    pub fn start(&mut self, host: usize) {
        if self.hosts[host].core.is_some() {
            return;
        }
        self.disturb();
        self.create(host);
        self.restart_timer(host);
        self.dial_at_start(host);
        self.wake_leaves();
        self.connect_clients_soon(host);
    }

    /// Makes a broker out of what its machine has stored.
    pub(crate) fn create(&mut self, host: usize) {
        self.trace(host, &"starts");
        let milliseconds = FIRST_DAY + self.now.0 / 1_000;
        self.links_change();
        let start_nonce = self.random.next_u64();
        if let Some(&original) = self.settings.clones.get(&host) {
            self.hosts[host].incarnation = self.hosts[host].incarnation.max(self.hosts[original].incarnation);
        }
        let broker = &mut self.hosts[host];
        broker.life += 1;
        broker.dials = 0;
        broker.written_off = 0;
        self.down.remove(&broker.id);
        broker.incarnation = milliseconds.max(broker.incarnation + 1);
        broker.start_nonce = start_nonce;
        let identity = Identity {
            id: broker.id,
            peer_id: broker.peer_id.clone(),
            incarnation: broker.incarnation,
            start_nonce,
            addresses: vec![format!("/memory/{}", broker.name)],
        };
        let config = Config { leaf: self.settings.uplinks.contains_key(&host), ..self.settings.config.clone() };
        broker.core = Some(match &self.shared {
            Some(shared) => Broker::with_filters(identity, config, self.now, Box::new(shared.place())),
            None => Broker::new(identity, config, self.now),
        });
    }

    fn dial_at_start(&mut self, host: usize) {
        self.hosts[host].untried.clear();
        for edge in 0..self.edges.len() {
            for side in 0..2 {
                let (own, other) = (self.edges[edge].hosts[side], self.edges[edge].hosts[1 - side]);
                if !self.edges[edge].dials[side] {
                    continue;
                }
                if self.edges[edge].uplink {
                    if own == host {
                        self.hosts[host].untried.insert(edge);
                    }
                } else if own == host {
                    let at = self.after([0, 5_000]);
                    self.schedule(at, Happening::Dial { edge, side, life: self.hosts[host].life });
                    if own != other {
                        self.hosts[host].untried.insert(edge);
                    }
                } else if other == host && self.hosts[own].core.is_some() {
                    let at = self.after(self.settings.link.redial_us);
                    self.schedule(at, Happening::Dial { edge, side, life: self.hosts[own].life });
                }
            }
        }
        if self.hosts[host].untried.is_empty() {
            self.give(host, Input::PeersTried);
        }
    }

    /// The outcome of a dial at the start is known.
    pub(crate) fn tried(&mut self, host: usize, edge: usize) {
        if self.hosts[host].untried.remove(&edge) && self.hosts[host].untried.is_empty() {
            self.give(host, Input::PeersTried);
        }
    }

    pub(crate) fn on_dial(&mut self, edge: usize, side: usize, life: u64) {
        let host = self.edges[edge].hosts[side];
        let other = self.edges[edge].hosts[1 - side];
        if self.hosts[host].life != life || self.hosts[host].core.is_none() {
            return;
        }
        // One that hears of the other's dial only after its own makes a double dial; one that has a link does not dial.
        let mut of_edge = self.connections.values().filter(|connection| connection.edge == edge);
        if of_edge.any(|connection| match connection.ends[side].standing {
            Standing::Up => true,
            Standing::Opening => connection.dialler == side,
            Standing::Closed | Standing::Gone => false,
        }) {
            return;
        }
        if self.edges[edge].cut || self.hosts[other].core.is_none() {
            self.tried(host, edge);
            return;
        }
        self.open(edge, side);
    }

    /// A broker dials a neighbour that it may have a link to already, as one does that has not been told: no fault, and
    /// nothing may be lost by it.
    pub fn dial_again(&mut self, link: usize, side: usize) {
        // A leaf's uplink never dials it.
        let side = if self.edges[link].uplink { 0 } else { side };
        let up = self.edges[link].hosts.iter().all(|&host| self.hosts[host].core.is_some());
        if up && !self.edges[link].cut {
            self.open(link, side);
        }
    }

    /// As [`World::dial_again`], by the broker that dials.
    pub(crate) fn dial_again_from(&mut self, link: usize, from: usize) {
        self.dial_again(link, usize::from(self.edges[link].hosts[0] != from));
    }

    /// A new connection, whose ends come up in their own time.
    pub(crate) fn open(&mut self, edge: usize, side: usize) {
        let host = self.edges[edge].hosts[side];
        self.hosts[host].dials += 1;
        let dial = self.hosts[host].dials;
        let delay = self.edges[edge].delay;
        // The one that is dialled has the link when it has answered, the one that dials when the answer has come.
        let answered = self.after([delay, 2 * delay]);
        let comes = answered + Duration::from_micros(delay);
        let ends = [0, 1].map(|end| End::new(if end == side { comes } else { answered }));
        let number = self.next_connection;
        self.next_connection += 1;
        for (side, end) in ends.iter().enumerate() {
            self.schedule(end.up_at, Happening::Up { connection: number, side });
        }
        let told = self.edges[edge].hosts.map(|host| self.hosts[host].incarnation);
        self.connections.insert(number, Connection { edge, dialler: side, dial, told, broken: None, ends });
    }

    pub(crate) fn on_up(&mut self, number: u64, side: usize) {
        self.links_change();
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if connection.broken.is_some() || connection.ends[side].standing != Standing::Opening {
            return;
        }
        connection.ends[side].standing = Standing::Up;
        let edge = connection.edge;
        let hosts = self.edges[edge].hosts;
        let neighbour = self.neighbour(&self.connections[&number], side);
        self.give(hosts[side], Input::LinkUp { link: Connection::link(number, side), neighbour });
        match self.edges[edge].uplink {
            false => self.tried(hosts[side], edge),
            true if side == 0 => self.on_uplink_up(hosts[0]),
            true => {}
        }
        self.schedule(self.now + self.allowance(), Happening::Counted);
        self.on_probe(number, side);
    }

    /// Who is at the other end of a connection, as a side's driver tells its broker.
    pub(crate) fn neighbour(&self, connection: &Connection, side: usize) -> Neighbour {
        let &Connection { edge, dialler, dial, told, .. } = connection;
        let hosts = self.edges[edge].hosts;
        let other = &self.hosts[hosts[1 - side]];
        Neighbour {
            broker: other.id,
            role: match (self.edges[edge].uplink, side) {
                (false, _) => Role::Core,
                (true, 0) => Role::Parent,
                (true, _) => Role::Leaf,
            },
            peer_id: other.peer_id.clone(),
            incarnation: told[1 - side],
            start_nonce: other.start_nonce,
            told_incarnation: told[side],
            dialled_by: self.hosts[hosts[dialler]].id,
            dial,
            cost: self.edges[edge].costs[side],
        }
    }

    /// The broker at a side closes its end.
    pub(crate) fn close_end(&mut self, number: u64, side: usize, again: bool) {
        self.links_change();
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.ends[side].standing = Standing::Closed;
        let edge = connection.edge;
        let delay = Duration::from_micros(self.edges[edge].delay);
        if connection.broken.is_none() {
            let end = connection.ends[side].last_arrival().max(connection.ends[1 - side].up_at).max(self.now + delay);
            self.schedule(end, Happening::Ended { connection: number, side: 1 - side });
        }
        if again {
            self.redial(edge, side);
        }
        self.count_links();
    }

    pub(crate) fn on_ended(&mut self, number: u64, side: usize) {
        self.links_change();
        let Some(connection) = self.connections.get_mut(&number) else { return };
        if connection.broken.is_some() {
            return;
        }
        let edge = connection.edge;
        let (standing, doubled) = (connection.ends[side].standing, connection.ends[1 - side].doubled);
        if standing != Standing::Closed {
            connection.ends[side].standing = Standing::Gone;
        }
        if connection.is_over() {
            self.connections.remove(&number);
        }
        let host = self.edges[edge].hosts[side];
        if standing == Standing::Up {
            self.give(host, Input::LinkDown { link: Connection::link(number, side), unsent: Vec::new() });
            if doubled {
                self.check_doubled(edge, side);
            }
            self.redial(edge, side);
        }
        if standing == Standing::Opening {
            self.redial(edge, side);
        }
        self.tried(host, edge);
        self.count_links();
    }

    /// The broker at a side dials again, if that is its part.
    fn redial(&mut self, edge: usize, side: usize) {
        let host = self.edges[edge].hosts[side];
        if self.edges[edge].uplink {
            if side == 0 {
                self.on_uplink_lost(host);
            }
        } else if self.edges[edge].dials[side] && !self.edges[edge].is_loop() {
            let at = self.after(self.settings.link.redial_us);
            self.schedule(at, Happening::Dial { edge, side, life: self.hosts[host].life });
        }
    }

    /// Breaks a link: what is in flight is lost, each end learns of it in its own time, and no dial succeeds until
    /// [`World::heal`].
    pub fn cut(&mut self, link: usize) {
        if !self.edges[link].cut {
            self.disturb();
            self.trace_link(link, &"cut");
            self.edges[link].cut = true;
            self.break_connections(|_, connection| connection.edge == link);
        }
    }

    /// Makes a cut link whole, so that it is dialled again, and lifts all rules from it.
    pub fn heal(&mut self, link: usize) {
        self.lift_rules(link);
        self.make_whole(link);
    }

    pub(crate) fn make_whole(&mut self, link: usize) {
        if !self.edges[link].cut {
            return;
        }
        self.disturb();
        self.trace_link(link, &"healed");
        self.edges[link].cut = false;
        self.healed_at = self.now;
        self.wake_leaves();
        for side in 0..2 {
            if self.hosts[self.edges[link].hosts[side]].core.is_some() {
                self.redial(link, side);
            }
        }
    }

    /// Heals all links.
    pub fn heal_all(&mut self) {
        for link in 0..self.edges.len() {
            self.heal(link);
        }
    }

    /// Cuts all links between brokers of different groups; those in no group make a group of their own.
    pub fn partition(&mut self, groups: &[Vec<usize>]) {
        let group = |host: usize| groups.iter().position(|group| group.contains(&host));
        for link in 0..self.edges.len() {
            let [a, b] = self.edges[link].hosts;
            if group(a) != group(b) {
                self.cut(link);
            }
        }
    }

    /// A broker is gone from one moment to the next, with all it had in memory; its links break.
    pub fn crash(&mut self, host: usize) {
        if self.hosts[host].core.take().is_none() {
            return;
        }
        self.disturb();
        self.trace(host, &"crashes");
        let waiting = std::mem::take(&mut self.hosts[host].waiting);
        self.hosts[host].untried.clear();
        self.down.insert(self.hosts[host].id, self.now);
        self.oracle.crashed((host, self.hosts[host].id), &waiting, self.now);
        let own: Vec<(u64, usize)> = self
            .connections
            .iter()
            .flat_map(|(&number, connection)| [(number, 0, connection), (number, 1, connection)])
            .filter(|&(_, side, connection)| self.edges[connection.edge].hosts[side] == host)
            .map(|(number, side, _)| (number, side))
            .collect();
        let numbers: BTreeSet<u64> = own.iter().map(|&(number, _)| number).collect();
        for (number, side) in own {
            self.lose(number, side);
        }
        self.break_connections(|number, _| numbers.contains(&number));
        self.disconnect_clients(host);
    }

    /// An end has gone with all it had sent.
    fn lose(&mut self, number: u64, side: usize) {
        self.links_change();
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.ends[side].standing = Standing::Gone;
        connection.ends[side].control.clear();
        let (begun, untouched) = connection.ends[side].events.break_at(Time(0));
        let edge = connection.edge;
        for frame in begun.into_iter().chain(untouched) {
            self.lose_event(edge, side, &frame);
        }
    }

    /// An event goes down with a link that it was sent on from a side.
    fn lose_event(&mut self, edge: usize, side: usize, frame: &EventFrame) {
        if self.edges[edge].uplink {
            let below = self.leaves_below(self.edges[edge].hosts[0]);
            self.oracle.hop_lost(side == 0, below, frame, self.now);
        } else {
            self.oracle.lost(frame, self.now);
        }
    }

    /// Breaks those connections that are whole, by their numbers.
    fn break_connections(&mut self, which: impl Fn(u64, &Connection) -> bool) {
        let whole = |(&number, connection): (&u64, &Connection)| {
            (connection.broken.is_none() && which(number, connection)).then_some(number)
        };
        let numbers: Vec<u64> = self.connections.iter().filter_map(whole).collect();
        self.links_change();
        for number in numbers {
            for side in 0..2 {
                let at = self.after(self.settings.link.detection_us);
                self.schedule(at, Happening::Down { connection: number, side });
            }
            if let Some(connection) = self.connections.get_mut(&number) {
                connection.broken = Some(self.now);
            }
        }
        self.count_links();
    }

    pub(crate) fn on_down(&mut self, number: u64, side: usize) {
        self.links_change();
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let broken = connection.broken.unwrap_or(self.now);
        let edge = connection.edge;
        let host = self.edges[edge].hosts[side];
        let standing = connection.ends[side].standing;
        connection.ends[side].standing = Standing::Gone;
        connection.ends[side].control.clear();
        let (mut lost, mut unsent) = connection.ends[side].events.break_at(broken);
        if connection.is_over() {
            self.connections.remove(&number);
        }
        // The transport had taken some that never left the machine.
        let taken = crate::link::draw(&mut self.random, [0, unsent.len() as u64]) as usize;
        let kept = if standing == Standing::Up { unsent.split_off(taken) } else { Vec::new() };
        lost.append(&mut unsent);
        for frame in &lost {
            self.lose_event(edge, side, frame);
        }
        for frame in &kept {
            match (self.edges[edge].uplink, side) {
                (false, _) => self.oracle.returned(self.hosts[host].id, frame, self.now),
                (true, 0) => self.oracle.hop_returned(host, frame, self.now),
                // A parent has no use for what was for a leaf that is gone.
                (true, _) => self.lose_event(edge, side, frame),
            }
        }
        match standing {
            Standing::Up => {
                let unsent = kept.iter().map(|frame| frame.id).collect();
                self.give(host, Input::LinkDown { link: Connection::link(number, side), unsent: kept });
                if self.edges[edge].uplink && side == 0 {
                    self.check_kept(host, unsent);
                }
                self.redial(edge, side);
            }
            Standing::Opening => {
                self.tried(host, edge);
                self.redial(edge, side);
            }
            Standing::Closed | Standing::Gone => {}
        }
    }

    /// How long a new link is not counted on: its ends sync, then tell all others.
    pub(crate) fn allowance(&self) -> Duration {
        let [low, high] = self.settings.link.delay_us;
        Duration::from_micros(1_000_000 + 20 * (low.max(high) + self.slowest))
    }

    /// Records which brokers can count on reaching each other now. A link that counts goes on counting when a second
    /// connection takes over.
    pub(crate) fn count_links(&mut self) {
        let allowance = self.allowance();
        let held = |end: &End| matches!(end.standing, Standing::Up | Standing::Closed);
        let mut counted = vec![false; self.edges.len()];
        for connection in self.connections.values() {
            let since = connection.ends[0].up_at.max(connection.ends[1].up_at).max(self.stalled_until);
            let whole = connection.broken.is_none() && connection.ends.iter().all(held);
            let old = self.now.since(since) >= allowance || self.edges[connection.edge].counted;
            counted[connection.edge] |= whole && old;
        }
        for (edge, counted) in self.edges.iter_mut().zip(counted) {
            edge.counted = counted;
        }
        let links = self.edges.iter().filter(|edge| edge.counted).map(|edge| edge.hosts);
        self.paths.record(self.now, self.hosts.len(), links);
    }
}
