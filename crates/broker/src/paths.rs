//! Shortest paths that two ends, and every broker between them, agree on.
//!
//! A path is judged by the sum of its link costs and then by the sum of 48-bit hashes of its links' unordered ends. With
//! the second sum no two paths are equal (but by an accident of hashing), so that the best path from a to b is the best
//! path from b to a, and each part of a best path is a best path: what one broker expects another to do, the other does.

use crate::{BrokerId, LinkEnd, LinkState};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

/// The length of a path, in the order of preference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Distance {
    /// Sum of the link costs.
    pub(crate) cost: u64,
    /// Sum of the hashes: 2^16 links do not wrap it.
    tie: u64,
}

/// How to reach a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The neighbour on the path.
    pub(crate) next_hop: BrokerId,
    /// The length of the path.
    pub(crate) distance: Distance,
    /// The number of its links.
    pub(crate) hops: u16,
}

/// A 48-bit hash of the unordered pair.
fn pair_hash(a: BrokerId, b: BrokerId) -> u64 {
    let (low, high) = (a.min(b).0, a.max(b).0);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&low.to_le_bytes());
    bytes[8..].copy_from_slice(&high.to_le_bytes());
    xxhash_rust::xxh3::xxh3_64(&bytes) >> 16
}

/// The cost of the edge from a broker to the neighbour at `end`, if the neighbour lists it too and speaks of the same lives
/// of the two.
fn edge_cost(from: BrokerId, end: &LinkEnd, neighbour: &LinkState) -> Option<u64> {
    let back = neighbour.links.binary_search_by_key(&from, |link| link.neighbour).ok()?;
    let back = &neighbour.links[back];
    (back.nonce == end.nonce).then(|| u64::from(end.cost.max(back.cost).max(1)))
}

/// The routes from `me` to all brokers that can be reached, itself not among them. O((brokers + links) log brokers).
pub(crate) fn shortest_paths(me: BrokerId, records: &BTreeMap<BrokerId, Arc<LinkState>>) -> BTreeMap<BrokerId, Route> {
    let mut routes = BTreeMap::new();
    let mut queue = BinaryHeap::from([Reverse((Distance::default(), me, me, 0u16))]);
    while let Some(Reverse((distance, broker, next_hop, hops))) = queue.pop() {
        if (broker == me && hops > 0) || routes.contains_key(&broker) {
            continue;
        }
        if broker != me {
            routes.insert(broker, Route { next_hop, distance, hops });
        }
        let Some(record) = records.get(&broker) else { continue };
        for end in &record.links {
            let Some(cost) = records.get(&end.neighbour).and_then(|other| edge_cost(broker, end, other)) else {
                continue;
            };
            let onward = Distance {
                cost: distance.cost.saturating_add(cost),
                tie: distance.tie.saturating_add(pair_hash(broker, end.neighbour)),
            };
            let first = if broker == me { end.neighbour } else { next_hop };
            queue.push(Reverse((onward, end.neighbour, first, hops.saturating_add(1))));
        }
    }
    routes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;

    fn network(edges: &[(u64, u64, u32)]) -> BTreeMap<BrokerId, Arc<LinkState>> {
        let mut links: BTreeMap<BrokerId, Vec<LinkEnd>> = BTreeMap::new();
        for &(a, b, cost) in edges {
            links.entry(BrokerId(a)).or_default().push(LinkEnd { neighbour: BrokerId(b), cost, nonce: a ^ b });
            links.entry(BrokerId(b)).or_default().push(LinkEnd { neighbour: BrokerId(a), cost: 1, nonce: a ^ b });
        }
        let record = |(origin, mut links): (BrokerId, Vec<LinkEnd>)| {
            links.sort_by_key(|link| link.neighbour);
            let version = Version { incarnation: 1, sequence: 1 };
            let record = LinkState {
                origin,
                peer_id: "".into(),
                start_nonce: 0,
                version,
                starting: false,
                addresses: vec![],
                links,
            };
            (origin, Arc::new(record))
        };
        links.into_iter().map(record).collect()
    }

    /// All simple paths, the obvious way.
    fn best(
        records: &BTreeMap<BrokerId, Arc<LinkState>>,
        from: BrokerId,
        to: BrokerId,
    ) -> Option<(Distance, Vec<BrokerId>)> {
        let mut found: Option<(Distance, Vec<BrokerId>)> = None;
        let mut stack = vec![(Distance::default(), vec![from])];
        while let Some((distance, path)) = stack.pop() {
            let last = path[path.len() - 1];
            if last == to {
                if found.as_ref().is_none_or(|(best, _)| distance < *best) {
                    found = Some((distance, path));
                }
                continue;
            }
            let record = &records[&last];
            for end in &record.links {
                let Some(cost) = edge_cost(last, end, &records[&end.neighbour]) else { continue };
                if !path.contains(&end.neighbour) {
                    let mut path = path.clone();
                    path.push(end.neighbour);
                    let tie = distance.tie + pair_hash(last, end.neighbour);
                    stack.push((Distance { cost: distance.cost + cost, tie }, path));
                }
            }
        }
        found
    }

    #[test]
    fn routes_are_the_best_of_all_paths_and_symmetric() {
        let grid = [(1, 2, 1), (2, 3, 1), (4, 5, 1), (5, 6, 2), (1, 4, 1), (2, 5, 3), (3, 6, 1), (6, 7, 1), (3, 7, 2)];
        let records = network(&grid);
        for &from in records.keys() {
            let routes = shortest_paths(from, &records);
            assert_eq!(routes.len(), records.len() - 1);
            for (&to, route) in &routes {
                let (distance, path) = best(&records, from, to).unwrap();
                assert_eq!((route.distance, route.next_hop), (distance, path[1]), "{from} to {to}");
                assert_eq!(usize::from(route.hops), path.len() - 1);
                assert_eq!(shortest_paths(to, &records)[&from].next_hop, path[path.len() - 2]);
            }
        }
    }

    #[test]
    fn an_edge_needs_both_ends_and_one_nonce() {
        let mut records = network(&[(1, 2, 1), (2, 3, 1)]);
        let mut half = (*records[&BrokerId(3)]).clone();
        half.links[0].nonce += 1;
        records.insert(BrokerId(3), Arc::new(half));
        let routes = shortest_paths(BrokerId(1), &records);
        assert_eq!(routes.keys().copied().collect::<Vec<_>>(), [BrokerId(2)]);
    }
}
