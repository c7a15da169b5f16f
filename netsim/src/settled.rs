//! Networks that start at rest, as a start from nothing would have left them.
//!
//! A start from nothing floods every link of every broker to all others, which for thousands of brokers takes longer than
//! what is to be seen afterwards. Brokers that start at rest share the link states, as all share those that are flooded, and
//! the numbers under which they hold them, until they hear of another broker; all that a broker concludes is its own.

use crate::link::{Connection, End, Standing};
use crate::world::{Happening, World};
use enroute_broker::{LinkId, Members, Neighbour};

impl World {
    /// Starts all core brokers at once, but for clones, with all links that are not cut in sync. They must never have been up.
    /// Leaves start as always, and clients come as always.
    pub fn start_settled(&mut self) {
        self.disturb();
        let stays_down = |world: &World, host: &usize| world.is_leaf(*host) || world.settings.clones.contains_key(host);
        let core: Vec<usize> = (0..self.hosts.len()).filter(|host| !stays_down(self, host)).collect();
        for &host in &core {
            self.create(host);
        }
        let first = self.next_connection;
        let mut links = self.connect_all_hosts();
        let mut records = Vec::with_capacity(core.len());
        for &host in &core {
            let Some(broker) = &mut self.hosts[host].core else { continue };
            records.extend(broker.link_settled(std::mem::take(&mut links[host])).cloned());
        }
        let members = Members::new(records);
        for &host in &core {
            if let Some(broker) = &mut self.hosts[host].core {
                broker.know_settled(&members);
            }
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

    /// Puts a connection that counts on each link of the core whose ends are up, and gives for each broker its links.
    fn connect_all_hosts(&mut self) -> Vec<Vec<(LinkId, Neighbour)>> {
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
