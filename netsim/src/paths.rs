//! The true network: who can reach whom, over time, and at what cost.

use enroute_broker::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Which brokers could reach each other, at every time so far.
///
/// A link counts some time after both brokers have it, so that they have had the time to sync and to tell the others, and
/// until it breaks.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// From a time on, for each broker the number of the part of the network it is in.
    history: Vec<(Time, Vec<usize>)>,
}

impl Paths {
    /// From now on these links count.
    pub(crate) fn record(&mut self, now: Time, brokers: usize, links: impl Iterator<Item = [usize; 2]>) {
        let mut parts: Vec<usize> = (0..brokers).collect();
        for [a, b] in links {
            let (a, b) = (root(&parts, a), root(&parts, b));
            parts[a.max(b)] = a.min(b);
        }
        let parts = (0..brokers).map(|broker| root(&parts, broker)).collect();
        if self.history.last().is_none_or(|(_, last)| *last != parts) {
            self.history.push((now, parts));
        }
    }

    /// Whether two brokers could reach each other all the time from one moment to another. Before anything is recorded there
    /// are no links.
    pub(crate) fn joined(&self, a: usize, b: usize, from: Time, to: Time) -> bool {
        let first = self.history.partition_point(|&(time, _)| time <= from).saturating_sub(1);
        let known = self.history.first().is_some_and(|&(time, _)| time <= from);
        let mut during = self.history[first..].iter().take_while(|&&(time, _)| time <= to);
        known && during.all(|(_, parts)| parts[a] == parts[b])
    }

    /// Forgets all but the present.
    pub(crate) fn forget(&mut self) {
        let last = self.history.pop();
        self.history.clear();
        self.history.extend(last);
    }
}

fn root(parts: &[usize], mut broker: usize) -> usize {
    while parts[broker] != broker {
        broker = parts[broker];
    }
    broker
}

/// The links that are up: for each broker its neighbours and what the link costs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Graph {
    pub(crate) neighbours: Vec<BTreeMap<usize, u64>>,
}

impl Graph {
    pub(crate) fn new(brokers: usize, links: impl Iterator<Item = ([usize; 2], u64)>) -> Graph {
        let mut neighbours = vec![BTreeMap::new(); brokers];
        for ([a, b], cost) in links {
            neighbours[a].insert(b, cost);
            neighbours[b].insert(a, cost);
        }
        Graph { neighbours }
    }

    /// The least cost of a path from one broker to each; none where there is no path.
    pub(crate) fn distances(&self, from: usize) -> Vec<Option<u64>> {
        let mut distances = vec![None; self.neighbours.len()];
        let mut queue = BinaryHeap::from([Reverse((0, from))]);
        while let Some(Reverse((distance, broker))) = queue.pop() {
            if distances[broker].is_some() {
                continue;
            }
            distances[broker] = Some(distance);
            queue.extend(self.neighbours[broker].iter().map(|(&next, &cost)| Reverse((distance + cost, next))));
        }
        distances
    }

    /// One tree for all: the shortest paths from the first broker. For each broker the next one towards it. Where the network
    /// is in parts, each part has its tree.
    pub(crate) fn shared_tree(&self) -> Vec<Option<usize>> {
        let mut tree = vec![None; self.neighbours.len()];
        let mut placed = vec![false; self.neighbours.len()];
        for root in 0..self.neighbours.len() {
            if placed[root] {
                continue;
            }
            let distances = self.distances(root);
            for (broker, distance) in distances.iter().enumerate() {
                let Some(distance) = distance else { continue };
                placed[broker] = true;
                let nearer = |&(&next, &cost): &(&usize, &u64)| distances[next].map(|d| d + cost) == Some(*distance);
                tree[broker] = self.neighbours[broker].iter().find(nearer).map(|(&next, _)| next);
            }
        }
        tree
    }

    /// How many copies go over links if every broker sends an event that is new to it to all neighbours but the one it
    /// came from.
    pub(crate) fn flooding(&self, from: usize) -> u64 {
        let reached: Vec<usize> = self.distances(from).iter().enumerate().filter_map(|(to, d)| d.map(|_| to)).collect();
        let ends: usize = reached.iter().map(|&broker| self.neighbours[broker].len()).sum();
        (ends + 1 - reached.len()) as u64
    }
}

/// How many links of a tree lie between a broker and others, all together.
pub(crate) fn links_in_tree(tree: &[Option<usize>], from: usize, to: impl Iterator<Item = usize>) -> u64 {
    let up = |broker: usize| std::iter::successors(Some(broker), |&at| tree[at]);
    let own: Vec<usize> = up(from).collect();
    let mut links: BTreeSet<usize> = BTreeSet::new();
    for to in to {
        // Up from both to where they meet; a link is known by its lower end.
        let theirs: Vec<usize> = up(to).collect();
        let common = own.iter().rev().zip(theirs.iter().rev()).take_while(|(a, b)| a == b).count();
        links.extend(&own[..own.len() - common]);
        links.extend(&theirs[..theirs.len() - common]);
    }
    links.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_network_are_known_for_every_time() {
        let mut paths = Paths::default();
        assert!(!paths.joined(0, 2, Time(0), Time(99)));
        paths.record(Time(5), 3, [[0, 1], [1, 2]].into_iter());
        assert!(!paths.joined(0, 2, Time(4), Time(4)) && !paths.joined(0, 2, Time(4), Time(9)));
        paths.record(Time(100), 3, [[0, 1]].into_iter());
        paths.record(Time(200), 3, [[0, 1], [0, 2]].into_iter());
        assert!(paths.joined(0, 2, Time(10), Time(99)));
        assert!(!paths.joined(0, 2, Time(10), Time(100)));
        assert!(!paths.joined(0, 2, Time(150), Time(250)));
        assert!(paths.joined(0, 2, Time(200), Time(900)));
        assert!(paths.joined(0, 1, Time(5), Time(900)));
    }

    #[test]
    fn a_ring_of_four_floods_five_copies() {
        let ring = [[0, 1], [1, 2], [2, 3], [3, 0]];
        let graph = Graph::new(4, ring.into_iter().map(|link| (link, 1)));
        assert_eq!(graph.flooding(0), 5);
        assert_eq!(graph.distances(0), [Some(0), Some(1), Some(2), Some(1)]);
    }

    #[test]
    fn a_shared_tree_goes_round_where_a_ring_would_not() {
        let ring = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]];
        let tree = Graph::new(5, ring.into_iter().map(|link| (link, 1))).shared_tree();
        assert_eq!(tree, [None, Some(0), Some(1), Some(4), Some(0)]);
        assert_eq!(links_in_tree(&tree, 2, [3].into_iter()), 4);
        assert_eq!(links_in_tree(&tree, 2, [1, 0, 3].into_iter()), 4);
        assert_eq!(links_in_tree(&tree, 2, [2].into_iter()), 0);
    }

    #[test]
    fn each_part_of_a_network_has_a_tree_of_its_own() {
        let parts = [[0, 1], [2, 3], [3, 4], [4, 2]];
        let tree = Graph::new(6, parts.into_iter().map(|link| (link, 1))).shared_tree();
        assert_eq!(tree, [None, Some(0), None, Some(2), Some(2), None]);
        assert_eq!(links_in_tree(&tree, 3, [4].into_iter()), 2);
        assert_eq!(links_in_tree(&tree, 1, [0].into_iter()), 1);
    }

    #[test]
    fn costs_decide_and_the_unreachable_have_no_distance() {
        let graph = Graph::new(4, [([0, 1], 5), ([0, 2], 1), ([2, 1], 2)].into_iter());
        assert_eq!(graph.distances(0), [Some(0), Some(3), Some(1), None]);
        assert_eq!(graph.flooding(3), 0);
    }
}
