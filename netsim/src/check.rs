//! What must be so when the network has settled.

use crate::oracle::Crossed;
use crate::paths::{Graph, links_in_tree};
use crate::world::{Settings, World};
use enroute_broker::{BrokerId, Counters, LeafStatus, Status, UplinkStatus};
use enroute_filter::Event;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The scope of a broker where nobody publishes, in its status.
const NOBODY: &str = "nobody";

/// Paths of which so many are looked through, all if there are no more: of larger networks those from some brokers, evenly drawn.
const PATHS: usize = 250_000;

impl World {
    /// Nothing waits, views are complete, and every broker sees the true network: who is reachable, over which cost, and the
    /// way back is the way there.
    pub(crate) fn check_settled(&mut self) {
        self.places = self.places();
        for host in 0..self.hosts.len() {
            let Some(status) = self.hosts[host].core.as_mut().map(|core| core.own_status()) else { continue };
            // A broker where nobody publishes is told nothing, and its view does not matter.
            // A leaf without a path to the core cannot know what is wanted beyond, and must say so.
            let (reaches_core, name) = (self.reaches_core(host), self.hosts[host].name.clone());
            let incomplete = !status.complete && status.scope != NOBODY && reaches_core;
            if status.complete && status.scope != NOBODY && !reaches_core {
                self.complain(format!("{name} says that its view is complete, and has no path to the core"));
            }
            if status.starting || incomplete || status.waiting_publications > 0 || status.parked_events > 0 {
                self.complain(format!(
                    "settled, but broker {name} is starting ({}), not complete ({}), holds publications ({}) or events ({})",
                    status.starting, incomplete, status.waiting_publications, status.parked_events
                ));
            }
        }
        let graph = self.graph();
        let every = (self.hosts.len() * self.hosts.len()).div_ceil(PATHS).max(1);
        let complaints: Vec<String> =
            (0..self.hosts.len()).step_by(every).flat_map(|host| self.check_routes(&graph, host)).collect();
        complaints.into_iter().for_each(|complaint| self.complain(complaint));
    }

    /// What is wrong with the routes of one broker.
    fn check_routes(&self, graph: &Graph, host: usize) -> Vec<String> {
        let Some(core) = &self.hosts[host].core else { return Vec::new() };
        let (distances, name) = (graph.distances(host), &self.hosts[host].name);
        let mut complaints = Vec::new();
        for (&id, &to) in self.places.iter().filter(|&(_, &to)| to != host) {
            let said = core.route_to(id).map(|(_, cost)| cost);
            if distances[to] != said {
                let (truth, other) = (distances[to], &self.hosts[to].name);
                complaints.push(format!("{name} says {other} is {said:?} away instead of {truth:?}"));
            }
        }
        let others = self.places.values().copied().filter(|&to| to != host);
        let reached = others.filter(|&to| self.next_hop(host, to).is_some());
        complaints.extend(asymmetries(graph, host, reached, |at, to| self.next_hop(at, to)));
        complaints
    }

    /// The broker that another one sends to on the way to a third, as it has it.
    fn next_hop(&self, at: usize, to: usize) -> Option<usize> {
        let (next, _) = self.hosts[at].core.as_ref()?.route_to(self.hosts[to].id)?;
        self.places.get(&next).copied()
    }

    fn places(&self) -> BTreeMap<BrokerId, usize> {
        // Of two with one identity, one that is up.
        let (mut down, up): (Vec<_>, Vec<_>) = self.hosts.iter().enumerate().partition(|(_, host)| host.core.is_none());
        down.extend(up);
        down.into_iter().map(|(place, host)| (host.id, place)).collect()
    }

    /// Each event of a calm time crossed exactly the links of the union of the shortest paths to those who want it.
    pub(crate) fn check_crossings(&mut self, crossed: &[Crossed]) {
        let graph = self.whole_graph();
        let tree = graph.shared_tree();
        for event in crossed {
            for percent in stretches(&graph, event) {
                *self.stretch.entry(percent).or_default() += 1;
            }
            self.calm_tree += links_in_tree(&tree, event.host, event.interested.iter().copied());
            let mut expected = BTreeSet::new();
            for &to in &event.interested {
                expected.extend(self.route(event.host, to));
            }
            self.calm_publications += 1;
            self.calm_crossings += event.crossings.len() as u64;
            self.calm_union += expected.len() as u64;
            let once: BTreeSet<[usize; 2]> = event.crossings.iter().copied().collect();
            for &[from, to] in once.difference(&expected) {
                if let Some(link) = self.link_between(from, to) {
                    self.tally.links[link].useless += 1;
                }
            }
            if once != expected || once.len() != event.crossings.len() {
                let missing: Vec<_> = expected.difference(&once).collect();
                let useless: Vec<_> = once.difference(&expected).collect();
                let (number, from, count) = (event.number, event.host, event.crossings.len());
                self.complain(format!(
                    "publication {number} of broker {from} crossed links {count} times, {} of them different; \
                     missing {missing:?}, useless {useless:?}",
                    once.len()
                ));
            }
        }
    }

    /// The links that an event must take from one broker to another: up from leaf to parent, over the core, down again; not
    /// higher up than it must.
    fn route(&self, from: usize, to: usize) -> Vec<[usize; 2]> {
        let (up, mut down) = (self.chain(from), self.chain(to));
        let meet = up.iter().position(|broker| down.contains(broker));
        let up = &up[..meet.map_or(up.len(), |place| place + 1)];
        let (Some(&top), Some(&core)) = (up.last(), down.last()) else { return Vec::new() };
        let turn = if meet.is_some() { top } else { core };
        let place = down.iter().position(|&broker| broker == turn).unwrap_or(0);
        down.truncate(place + 1);
        down.reverse();
        if meet.is_none() && (self.is_leaf(top) || self.is_leaf(core)) {
            return Vec::new();
        }
        let steps = |brokers: &[usize]| brokers.windows(2).map(|pair| [pair[0], pair[1]]).collect::<Vec<_>>();
        [steps(up), path(self.hosts.len(), top, turn, |at, to| self.next_hop(at, to)), steps(&down)].concat()
    }

    /// Compares all tables with those of a network built afresh with the links that are up, the brokers that are up and what
    /// their clients want now. Call it when the network has settled and all that is kept for a while has run out.
    ///
    /// What differs is told in [`World::complaints`].
    pub fn check_fresh(&mut self) {
        let mut fresh = self.fresh();
        if let Err(unsettled) = fresh.settle(Duration::from_secs(6), Duration::from_secs(600)) {
            return self.complain(format!("the fresh build does not settle: {unsettled}"));
        }
        for host in 0..self.hosts.len() {
            if self.hosts[host].core.is_none() {
                continue;
            }
            let (Some(mut mine), Some(other)) = (self.status(host), fresh.status(host)) else { continue };
            // A leaf without an uplink keeps, with events, the scope that they need; in a fresh build there are none.
            if mine.uplink.as_ref().is_some_and(|uplink| uplink.kept_events > 0) {
                mine.brokers
                    .iter_mut()
                    .filter(|it| it.scope == mine.scope)
                    .for_each(|it| it.scope.clone_from(&other.scope));
                mine.scope.clone_from(&other.scope);
            }
            let differences = differences(&plain(mine), &plain(other));
            if !differences.is_empty() {
                self.complain(format!("{} differs from a fresh build: {differences}", self.hosts[host].name));
            }
        }
    }

    fn fresh(&self) -> World {
        let up = self.connections.values().filter(|connection| connection.carries());
        let edges: BTreeSet<usize> = up.map(|connection| connection.edge).collect();
        let of_core = |edge: usize| !self.edges[edge].uplink && !self.edges[edge].is_loop();
        let uplinks =
            self.settings.uplinks.keys().map(|&leaf| (leaf, self.chain(leaf).get(1).copied().into_iter().collect()));
        let uplinks = uplinks.collect();
        let settings = Settings {
            brokers: self.settings.brokers.clone(),
            links: edges.iter().filter(|&&edge| of_core(edge)).map(|&edge| self.edges[edge].hosts).collect(),
            uplinks,
            ..self.settings.clone()
        };
        let mut fresh = World::new(Settings {
            link: crate::link::LinkSettings { self_dials: false, ..settings.link.clone() },
            ..settings
        });
        for (edge, &own) in fresh.edges.iter_mut().zip(edges.iter().filter(|&&edge| of_core(edge))) {
            (edge.costs, edge.delay) = (self.edges[own].costs, self.edges[own].delay);
        }
        for host in 0..self.hosts.len() {
            if self.hosts[host].core.is_some() {
                fresh.start(host);
            }
        }
        for client in &self.clients {
            let number = fresh.add_client(&client.name, client.host);
            if client.publishes_anything {
                fresh.publish(number, &Event::builder().build().expect("nothing is within all limits"));
            }
            for (name, filter) in &client.advertisements {
                fresh.advertise(number, name, filter.clone());
            }
            for (name, filter) in &client.subscriptions {
                fresh.subscribe(number, name, filter.clone());
            }
        }
        fresh
    }

    /// So many brokers have gone down because their identity is in use.
    pub(crate) fn expect_in_use(&mut self, brokers: u64) {
        let found = std::mem::take(&mut self.in_use);
        if found != brokers {
            self.complain(format!("{found} brokers have gone down because their identity is in use, not {brokers}"));
        }
    }

    /// No broker holds anything of anybody's interest: how it must be when nobody subscribes.
    pub fn check_empty(&mut self) {
        for host in 0..self.hosts.len() {
            let Some(status) = self.status(host) else { continue };
            let name = self.hosts[host].name.clone();
            let own = status.subscriptions + status.forest_nodes + status.forest_roots + status.announced;
            if own > 0 {
                self.complain(format!("nobody subscribes, but the forest of {name} is not empty"));
            }
            for broker in status.brokers.iter().filter(|broker| broker.interest + broker.announced > 0) {
                let (other, interest, announced) = (&broker.peer_id, broker.interest, broker.announced);
                self.complain(format!(
                    "nobody subscribes, but {name} holds {interest} filters of {other} and has told it {announced}"
                ));
            }
            let of_leaves: u64 = status.leaves.iter().map(|leaf| leaf.interest + leaf.told).sum();
            let of_uplink = status.uplink.map_or(0, |uplink| uplink.announced + uplink.interest);
            if of_leaves + of_uplink > 0 {
                self.complain(format!(
                    "nobody subscribes, but {name} holds {of_leaves} filters of leaves and {of_uplink} of its uplink"
                ));
            }
        }
    }
}

/// A status without what differs between two networks that are the same: lives, counts, numbers of links, events.
fn plain(mut status: Status) -> Status {
    status.incarnation = 0;
    status.complete |= status.scope == NOBODY;
    status.counters = Counters::default();
    for link in &mut status.links {
        link.link = 0;
        link.control_sent = 0;
        link.control_received = 0;
        link.events_sent = 0;
        link.events_received = 0;
    }
    for leaf in &mut status.leaves {
        *leaf = LeafStatus {
            link: 0,
            control_sent: 0,
            control_received: 0,
            events_sent: 0,
            events_received: 0,
            ..std::mem::take(leaf)
        };
    }
    status.leaves.sort_by(|a, b| a.id.cmp(&b.id));
    if let Some(uplink) = &mut status.uplink {
        *uplink = UplinkStatus {
            link: None,
            control_sent: 0,
            control_received: 0,
            events_sent: 0,
            events_received: 0,
            // No table: what leaves without an uplink have published, of which there is nothing in a fresh build.
            kept_events: 0,
            ..std::mem::take(uplink)
        };
    }
    status.links.sort_by(|a, b| a.neighbour.cmp(&b.neighbour));
    status
}

/// Where two statuses differ, in words.
fn differences(mine: &Status, other: &Status) -> String {
    let (mine, other) = (json(mine), json(other));
    let mut words = Vec::new();
    for (key, is) in &mine {
        let should = &other[key];
        match (is, should) {
            (Value::Array(is), Value::Array(should)) => {
                let only = |these: &[Value], those: &[Value]| -> Vec<String> {
                    these.iter().filter(|entry| !those.contains(entry)).map(Value::to_string).collect()
                };
                let (more, less) = (only(is, should), only(should, is));
                if !more.is_empty() || !less.is_empty() {
                    words.push(format!("{key} has {} instead of {}", more.join(", "), less.join(", ")));
                }
            }
            _ if is != should => words.push(format!("{key} is {is} instead of {should}")),
            _ => {}
        }
    }
    words.join("; ")
}

fn json(status: &Status) -> serde_json::Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => unreachable!("a status is a structure of plain fields"),
    }
}

/// The links from one broker to another as the brokers' tables have it; what was found if they lead nowhere.
fn path(brokers: usize, from: usize, to: usize, next_hop: impl Fn(usize, usize) -> Option<usize>) -> Vec<[usize; 2]> {
    let mut path = Vec::new();
    let mut at = from;
    while at != to && path.len() <= brokers {
        let Some(next) = next_hop(at, to) else { break };
        path.push([at, next]);
        at = next;
    }
    path
}

/// For each broker that wanted an event: the cost of the path by which it came, in percent of the least.
fn stretches(graph: &Graph, event: &Crossed) -> Vec<u64> {
    let mut costs = BTreeMap::from([(event.host, 0)]);
    for [from, to] in &event.crossings {
        if let (Some(&cost), Some(&link)) = (costs.get(from), graph.neighbours[*from].get(to)) {
            costs.entry(*to).or_insert(cost + link);
        }
    }
    let distances = graph.distances(event.host);
    let percent = |to: &usize| Some(costs.get(to)? * 100 / distances[*to].filter(|&least| least > 0)?);
    event.interested.iter().filter_map(percent).collect()
}

/// Brokers to which the paths from one do not arrive, cost more than the least, or differ there and back.
fn asymmetries(
    graph: &Graph,
    from: usize,
    reached: impl Iterator<Item = usize>,
    next_hop: impl Fn(usize, usize) -> Option<usize>,
) -> Vec<String> {
    let mut complaints = Vec::new();
    let (brokers, distances) = (graph.neighbours.len(), graph.distances(from));
    for to in reached {
        let there = path(brokers, from, to, &next_hop);
        let cost: Option<u64> = there.iter().map(|[a, b]| graph.neighbours[*a].get(b)).sum();
        if there.last().map(|link| link[1]) != Some(to) || cost != distances[to] {
            complaints.push(format!("the path from {from} to {to} is {there:?} at {cost:?}"));
        }
        let mut back = path(brokers, to, from, &next_hop);
        back.reverse();
        back.iter_mut().for_each(|link| link.reverse());
        if there != back {
            complaints.push(format!("the path from {from} to {to} is {there:?}, but back it is {back:?}"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found of tables that are given as (at, to, next).
    fn found(graph: &Graph, list: &[(usize, usize, usize)]) -> usize {
        let hops: BTreeMap<(usize, usize), usize> = list.iter().map(|&(at, to, next)| ((at, to), next)).collect();
        let of_one = |from: usize| {
            let reached = hops.keys().filter(|&&(at, _)| at == from).map(|&(_, to)| to);
            asymmetries(graph, from, reached, |at, to| hops.get(&(at, to)).copied()).len()
        };
        (0..graph.neighbours.len()).map(of_one).sum()
    }

    #[test]
    fn loops_detours_and_one_way_paths_are_found() {
        let square = [[0, 1], [1, 2], [2, 3], [3, 0]];
        let graph = Graph::new(4, square.into_iter().map(|link| (link, 1)));
        let good = [(0, 2, 1), (1, 2, 2), (2, 0, 1), (1, 0, 0), (0, 1, 1), (2, 1, 1)];
        assert_eq!(found(&graph, &[(0, 1, 1), (1, 0, 0)]), 0);
        assert_eq!(found(&graph, &good), 0);
        let one_way = [
            (0, 2, 1),
            (1, 2, 2),
            (2, 0, 3),
            (3, 0, 0),
            (1, 0, 0),
            (3, 2, 2),
            (0, 1, 1),
            (0, 3, 3),
            (2, 1, 1),
            (2, 3, 3),
        ];
        assert_eq!(found(&graph, &one_way), 2);
        assert!(found(&graph, &[(0, 2, 1), (1, 2, 0)]) > 0);
        let detour = [(0, 1, 3), (3, 1, 2), (2, 1, 1), (1, 0, 2), (2, 0, 3), (3, 0, 0)];
        assert!(found(&graph, &detour) > 0);
    }
}
