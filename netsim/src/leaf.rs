//! Leaf brokers: how their machines go about their uplinks, and who truly hangs off whom.

use crate::link::{Connection, Standing};
use crate::world::{Happening, World};
use enroute_broker::{BrokerId, EventId, Time};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::Random;

/// After so many fruitless dials for each of its uplinks a leaf waits for [`SLOW`] between two.
const QUICK_ROUNDS: usize = 2;

/// Longer than a network is quiet that counts as settled: a leaf that nobody can take in does not keep it busy.
const SLOW: Duration = Duration::from_secs(10);

/// An uplink that has lasted so long was not fruitless.
const LASTING: Duration = Duration::from_secs(1);

/// Leaf brokers below the core: how many, and where they may hang.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaves {
    /// How many there are; they are called `l00`, `l01`, ….
    pub count: usize,
    /// How many levels they form: those of the first hang off core brokers, those of the others off leaves of the level above.
    #[serde(default = "one")]
    pub depth: usize,
    /// Uplinks that each may choose from, as far as there are so many.
    #[serde(default = "one")]
    pub uplinks: usize,
    /// Whether all brokers may be uplinks, whatever their level, so that leaves may be each other's.
    #[serde(default)]
    pub anywhere: bool,
}

fn one() -> usize {
    1
}

impl Leaves {
    /// The names of the leaves, in order.
    pub fn names(&self) -> Vec<String> {
        let width = self.count.saturating_sub(1).to_string().len().max(2);
        (0..self.count).map(|number| format!("l{number:0width$}")).collect()
    }

    /// For each leaf the places of its uplinks, in the order in which it tries them; the core brokers have the places before
    /// the leaves.
    pub fn uplinks(&self, core: usize, random: &mut Random) -> Vec<Vec<usize>> {
        let level = |leaf: usize| 1 + leaf * self.depth.max(1) / self.count.max(1);
        let uplinks = |leaf: usize| {
            let above = (0..core + self.count).filter(|&place| match place.checked_sub(core) {
                Some(other) if self.anywhere => other != leaf,
                Some(other) => level(other) + 1 == level(leaf),
                None => self.anywhere || level(leaf) == 1,
            });
            let mut above: Vec<usize> = above.collect();
            let draw = |_| (!above.is_empty()).then(|| above.swap_remove(random.random_range(0..above.len())));
            (0..self.uplinks).filter_map(draw).collect()
        };
        (0..self.count).map(uplinks).collect()
    }
}

/// How a leaf's machine goes about its uplinks; a core broker has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uplinks {
    /// The links to them, in the order in which they are tried.
    pub(crate) edges: Vec<usize>,
    next: usize,
    /// Dials since the last uplink that lasted.
    fruitless: usize,
    /// Counts the dials, so that one that is put off is not made.
    dials: u64,
    up_since: Time,
}

impl World {
    pub(crate) fn is_leaf(&self, host: usize) -> bool {
        self.settings.uplinks.contains_key(&host)
    }

    /// Whether a leaf's machine has a connection to an uplink, or is about to.
    fn has_uplink(&self, host: usize) -> bool {
        self.connections.values().any(|connection| {
            let edge = &self.edges[connection.edge];
            let standing = connection.ends[0].standing;
            edge.uplink && edge.hosts[0] == host && matches!(standing, Standing::Opening | Standing::Up)
        })
    }

    /// A leaf's machine dials its next uplink after a while.
    pub(crate) fn dial_uplink_later(&mut self, host: usize) {
        if self.hosts[host].core.is_none() || self.hosts[host].uplinks.edges.is_empty() || self.has_uplink(host) {
            return;
        }
        let slow = self.hosts[host].uplinks.fruitless >= QUICK_ROUNDS * self.hosts[host].uplinks.edges.len();
        let at = if slow { self.now + SLOW } else { self.after(self.settings.link.redial_us) };
        let machine = &mut self.hosts[host];
        machine.uplinks.dials += 1;
        let (life, number) = (machine.life, machine.uplinks.dials);
        self.schedule(at, Happening::DialUplink { host, life, number, slow });
    }

    pub(crate) fn on_dial_uplink(&mut self, host: usize, life: u64, number: u64) {
        let machine = &mut self.hosts[host];
        if machine.life != life || machine.core.is_none() || machine.uplinks.dials != number {
            return;
        }
        let uplinks = &mut machine.uplinks;
        let edge = uplinks.edges[uplinks.next];
        uplinks.next = (uplinks.next + 1) % uplinks.edges.len();
        uplinks.fruitless += 1;
        if self.has_uplink(host) {
            return;
        }
        let parent = self.edges[edge].hosts[1];
        if self.edges[edge].cut || self.hosts[parent].core.is_none() {
            self.tried(host, edge);
            self.dial_uplink_later(host);
        } else {
            self.open(edge, 0);
        }
    }

    /// A leaf's machine has a connection to an uplink.
    pub(crate) fn on_uplink_up(&mut self, host: usize) {
        self.hosts[host].uplinks.up_since = self.now;
        for edge in self.hosts[host].uplinks.edges.clone() {
            self.tried(host, edge);
        }
    }

    /// A leaf's machine has lost a connection to an uplink.
    pub(crate) fn on_uplink_lost(&mut self, host: usize) {
        if self.now.since(self.hosts[host].uplinks.up_since) >= LASTING {
            self.hosts[host].uplinks.fruitless = 0;
        }
        self.dial_uplink_later(host);
    }

    /// Something is there again: leaves without an uplink try at once.
    pub(crate) fn wake_leaves(&mut self) {
        for host in self.settings.uplinks.keys().copied().collect::<Vec<_>>() {
            self.hosts[host].uplinks.fruitless = 0;
            self.dial_uplink_later(host);
        }
    }

    /// The broker that a leaf hangs off, over a connection that both use.
    fn parent(&self, host: usize) -> Option<usize> {
        if !self.is_leaf(host) {
            return None;
        }
        let hangs = |connection: &&Connection| {
            let edge = &self.edges[connection.edge];
            edge.uplink && edge.hosts[0] == host && connection.carries()
        };
        self.connections.values().find(hangs).map(|connection| self.edges[connection.edge].hosts[1])
    }

    /// A broker, what it hangs off, and so on.
    pub(crate) fn chain(&self, host: usize) -> Vec<usize> {
        let mut chain = vec![host];
        while let Some(parent) = chain.last().and_then(|&last| self.parent(last)) {
            if chain.contains(&parent) {
                break;
            }
            chain.push(parent);
        }
        chain
    }

    /// A leaf and all leaves that hang off it, over however many others.
    pub(crate) fn leaves_below(&self, leaf: usize) -> Vec<usize> {
        self.settings.uplinks.keys().copied().filter(|&other| self.chain(other).contains(&leaf)).collect()
    }

    /// For each leaf the core broker that it hangs off, if it does.
    pub(crate) fn tops(&self) -> BTreeMap<usize, BrokerId> {
        let top = |leaf: usize| self.chain(leaf).last().copied().filter(|&top| !self.is_leaf(top));
        self.settings.uplinks.keys().filter_map(|&leaf| Some((leaf, self.hosts[top(leaf)?].id))).collect()
    }

    /// Whether a broker is in the core or hangs off it, over however many leaves.
    pub(crate) fn reaches_core(&self, host: usize) -> bool {
        self.chain(host).last().is_some_and(|&last| !self.is_leaf(last))
    }

    /// Whether a leaf without an uplink could have one: then the network is not at rest.
    pub(crate) fn a_leaf_may_attach(&self) -> bool {
        let may = |edge: &crate::link::Edge| {
            let [leaf, parent] = edge.hosts;
            let both_up = [leaf, parent].iter().all(|&host| self.hosts[host].core.is_some());
            edge.uplink && !edge.cut && both_up && !self.reaches_core(leaf) && {
                self.reaches_core(parent) && !self.chain(parent).contains(&leaf)
            }
        };
        !self.settings.uplinks.is_empty() && self.edges.iter().any(may)
    }

    /// Notes what waits in a broker to go up, and what has ended its wait.
    pub(crate) fn note_waiting(&mut self, host: usize) {
        let Some(core) = &self.hosts[host].core else { return };
        if self.settings.uplinks.is_empty() {
            return;
        }
        let waiting: BTreeSet<EventId> = core.waiting_to_go_up().collect();
        let before = std::mem::replace(&mut self.hosts[host].waiting, waiting);
        let gone: Vec<EventId> = before.difference(&self.hosts[host].waiting).copied().collect();
        for &id in &gone {
            self.oracle.wait_ended(id, self.now);
        }
        if !gone.is_empty() && self.is_cut_off(host) {
            let name = self.hosts[host].name.clone();
            self.complain(format!("{name} has no uplink, and does not keep {gone:?} any more"));
        }
    }

    /// Whether a leaf has no connection to an uplink: all that is published there is kept, and nothing of it is given up.
    fn is_cut_off(&self, host: usize) -> bool {
        self.is_leaf(host)
            && !self.connections.values().any(|connection| {
                let edge = &self.edges[connection.edge];
                edge.uplink && edge.hosts[0] == host && connection.ends[0].standing == Standing::Up
            })
    }

    /// An event has been published at a broker: a leaf without an uplink keeps it for the next one.
    pub(crate) fn check_published(&mut self, host: usize, id: EventId) {
        let Some(core) = &self.hosts[host].core else { return };
        if self.is_cut_off(host) && !core.waiting_to_go_up().any(|kept| kept == id) {
            let name = self.hosts[host].name.clone();
            self.complain(format!("{name} has no uplink, and does not keep {id}, which was published there"));
        }
    }

    /// What an uplink had not begun to send when it broke waits in the leaf for the next one, in order.
    pub(crate) fn check_kept(&mut self, host: usize, unsent: Vec<EventId>) {
        let Some(core) = &self.hosts[host].core else { return };
        let kept: Vec<EventId> = core.waiting_to_go_up().filter(|id| unsent.contains(id)).collect();
        if kept != unsent {
            let name = self.hosts[host].name.clone();
            self.complain(format!("{name} keeps {kept:?} of the events {unsent:?} that it had not begun to send up"));
        }
    }

    /// What the leaves say of themselves against what is.
    pub(crate) fn check_leaves(&mut self) {
        for host in self.settings.uplinks.keys().copied().collect::<Vec<_>>() {
            let Some(status) = self.status(host) else { continue };
            let truth = if self.reaches_core(host) { self.chain(host).split_off(1) } else { Vec::new() };
            let truth: Vec<String> = truth.into_iter().map(|host| self.hosts[host].id.to_string()).collect();
            let uplink = status.uplink.unwrap_or_default();
            let name = self.hosts[host].name.clone();
            if uplink.path != truth {
                self.complain(format!("{name} says its path is {:?} instead of {truth:?}", uplink.path));
            }
            if !truth.is_empty() && uplink.kept_events > 0 {
                self.complain(format!("{name} keeps {} events though it has an uplink", uplink.kept_events));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded;

    #[test]
    fn leaves_hang_off_the_level_above() {
        let leaves = Leaves { count: 6, depth: 3, uplinks: 2, anywhere: false };
        assert_eq!(leaves.names()[5], "l05");
        for seed in 0..20 {
            let uplinks = leaves.uplinks(4, &mut seeded(seed, "leaves"));
            for (leaf, uplinks) in uplinks.iter().enumerate() {
                let above = [0..4, 4..6, 6..8][leaf / 2].clone();
                assert!(uplinks.len() == 2 && uplinks[0] != uplinks[1], "{uplinks:?}");
                assert!(uplinks.iter().all(|uplink| above.contains(uplink)), "{leaf}: {uplinks:?}");
            }
        }
        let anywhere = Leaves { anywhere: true, uplinks: 9, ..leaves };
        for (leaf, uplinks) in anywhere.uplinks(4, &mut seeded(1, "leaves")).into_iter().enumerate() {
            assert!(uplinks.len() == 9 && !uplinks.contains(&(4 + leaf)), "{leaf}: {uplinks:?}");
        }
    }
}
