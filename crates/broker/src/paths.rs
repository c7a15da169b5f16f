//! Shortest paths that two ends, and every broker between them, agree on.
//!
//! A path is judged by the sum of its link costs and then by the sum of 48-bit hashes of its links' unordered ends. With
//! the second sum no two paths are equal (but by an accident of hashing), so that the best path from a to b is the best
//! path from b to a, and each part of a best path is a best path: what one broker expects another to do, the other does.

use crate::records::{Records, length};
use crate::{BrokerId, LinkState};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::num::NonZeroU16;
use std::sync::Arc;

/// The length of a path, in the order of preference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Distance {
    /// Sum of the link costs.
    pub(crate) cost: u64,
    /// Sum of the hashes: 2^16 links do not wrap it.
    tie: u64,
}

impl Distance {
    /// The length of a link between two brokers.
    pub(crate) fn of_link(cost: u32, a: BrokerId, b: BrokerId) -> Distance {
        Distance { cost: u64::from(cost), tie: pair_hash(a, b) }
    }

    fn plus(self, link: Distance) -> Distance {
        Distance { cost: self.cost.saturating_add(link.cost), tie: self.tie.saturating_add(link.tie) }
    }
}

/// How to reach a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The neighbour on the path.
    pub(crate) next_hop: BrokerId,
    /// The length of the path.
    pub(crate) distance: Distance,
    /// The number of the last broker before the destination.
    parent: u32,
    /// The number of its links.
    pub(crate) hops: NonZeroU16,
}

/// A 48-bit hash of the unordered pair.
fn pair_hash(a: BrokerId, b: BrokerId) -> u64 {
    let (low, high) = (a.min(b).0, a.max(b).0);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&low.to_le_bytes());
    bytes[8..].copy_from_slice(&high.to_le_bytes());
    xxhash_rust::xxh3::xxh3_64(&bytes) >> 16
}

/// Routes from one broker to all that can be reached, kept up to date record by record.
#[derive(Debug)]
pub(crate) struct Routes {
    /// The own number.
    me: u32,
    /// By the number of the destination; oneself not among them.
    routes: Vec<Option<Route>>,
}

/// An offer to reach a broker over a neighbour of it: length of the path, the numbers of the broker and of the neighbour.
type Offer = Reverse<(Distance, u32, u32)>;

/// By the numbers of brokers: what was before a change.
pub(crate) type Before<T> = BTreeMap<u32, Option<T>>;

impl Routes {
    pub(crate) fn new(me: u32) -> Routes {
        Routes { me, routes: Vec::new() }
    }

    /// All routes at once: what [`Routes::update`] would make of these records, all of which are new.
    pub(crate) fn from_nothing(me: u32, records: &Records) -> Routes {
        let (mut routes, mut offers) = (Routes::new(me), BinaryHeap::new());
        routes.each_link(me, records, |neighbour, link| routes.offer(me, neighbour, link, &mut offers));
        routes.take_offers(offers, records, |_, _| {});
        routes
    }

    /// The route to the broker with a number.
    pub(crate) fn get(&self, broker: u32) -> Option<&Route> {
        self.routes.get(broker as usize)?.as_ref()
    }

    /// Takes in that some records are other ones than before (of each: what it was, if there was one), and returns for each
    /// broker whose route changed the route it had.
    ///
    /// What hangs, in the tree of all best paths, on a link that is gone or costs something else is cut off; then the shortest
    /// offers first, as Dijkstra's algorithm has it, brokers are reached anew that were cut off or can be reached better. So the
    /// cost is about that of the routes that change and the links at their ends, times a logarithm; not that of all brokers.
    pub(crate) fn update(&mut self, changed: &Before<Arc<LinkState>>, records: &Records) -> Before<Route> {
        let mut before = Before::new();
        for (&origin, old) in changed {
            self.cut_changed_links(origin, old.as_deref(), records, &mut before);
        }
        let mut offers = BinaryHeap::new();
        for &broker in before.keys() {
            self.each_link(broker, records, |neighbour, link| self.offer(neighbour, broker, link, &mut offers));
        }
        for &origin in changed.keys() {
            self.each_link(origin, records, |neighbour, link| {
                self.offer(neighbour, origin, link, &mut offers);
                self.offer(origin, neighbour, link, &mut offers);
            });
        }
        self.take_offers(offers, records, |broker, old| {
            before.entry(broker).or_insert(old);
        });
        before.retain(|&broker, old| self.get(broker) != old.as_ref());
        before
    }

    /// Cuts off the origin of a changed record, and all that hangs on it, where the link to the parent is not what it was.
    fn cut_changed_links(
        &mut self,
        origin: u32,
        old: Option<&LinkState>,
        records: &Records,
        before: &mut Before<Route>,
    ) {
        let listed = old.into_iter().flat_map(|old| &old.links);
        let children = listed.filter_map(|link| records.numbers.get(link.neighbour));
        let on_it: Vec<u32> = children.filter(|&child| self.parent(child) == Some(origin)).chain([origin]).collect();
        for child in on_it {
            let Some(route) = self.get(child) else { continue };
            let present =
                records.at(child).zip(records.at(route.parent)).and_then(|(child, parent)| length(parent, child));
            if present.is_none_or(|link| self.distance(route.parent).map(|to| to.plus(link)) != Some(route.distance)) {
                self.cut(child, records, before);
            }
        }
    }

    /// Cuts off a broker and all that hangs on it.
    fn cut(&mut self, broker: u32, records: &Records, before: &mut Before<Route>) {
        let mut cut = vec![broker];
        while let Some(broker) = cut.pop() {
            let Some(route) = self.routes.get_mut(broker as usize).and_then(Option::take) else { continue };
            before.entry(broker).or_insert(Some(route));
            let links = records.at(broker).into_iter().flat_map(|record| &record.links);
            let neighbours = links.filter_map(|link| records.numbers.get(link.neighbour));
            cut.extend(neighbours.filter(|&child| self.parent(child) == Some(broker)));
        }
    }

    /// Takes the shortest offers first, each where it is better than what there is, and makes those that follow from it. Calls with
    /// each broker that is reached another way, and the route that it had.
    fn take_offers(
        &mut self,
        mut offers: BinaryHeap<Offer>,
        records: &Records,
        mut note: impl FnMut(u32, Option<Route>),
    ) {
        while let Some(Reverse((distance, broker, parent))) = offers.pop() {
            if self.distance(broker).is_some_and(|present| present <= distance) {
                continue;
            }
            let Some(record) = records.at(broker) else { continue };
            let (next_hop, hops) = match self.get(parent) {
                Some(onto) => (onto.next_hop, onto.hops.saturating_add(1)),
                None => (record.origin, NonZeroU16::MIN),
            };
            if self.routes.len() <= broker as usize {
                self.routes.resize(broker as usize + 1, None);
            }
            let old = self.routes[broker as usize].replace(Route { next_hop, distance, parent, hops });
            note(broker, old);
            self.each_link(broker, records, |neighbour, link| self.offer(broker, neighbour, link, &mut offers));
        }
    }

    /// Offers `from` as the parent of `to`, if that is better than what there is.
    fn offer(&self, from: u32, to: u32, link: Distance, offers: &mut BinaryHeap<Offer>) {
        let Some(distance) = self.distance(from).map(|to_it| to_it.plus(link)) else { return };
        if self.distance(to).is_none_or(|present| distance < present) {
            offers.push(Reverse((distance, to, from)));
        }
    }

    /// Calls with the number of each neighbour of a broker and the length of the link.
    fn each_link(&self, broker: u32, records: &Records, mut each: impl FnMut(u32, Distance)) {
        records.links_of(broker).iter().for_each(|&(neighbour, length)| each(neighbour, length));
    }

    /// How far a broker is; none if it cannot be reached.
    fn distance(&self, broker: u32) -> Option<Distance> {
        if broker == self.me { Some(Distance::default()) } else { Some(self.get(broker)?.distance) }
    }

    /// The last broker before this one on the path to it.
    fn parent(&self, broker: u32) -> Option<u32> {
        self.get(broker).map(|route| route.parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkEnd;

    /// Dijkstra's algorithm from nothing: what the routes kept up to date must be.
    fn shortest_paths(me: BrokerId, records: &Records) -> BTreeMap<BrokerId, Route> {
        let mut routes = BTreeMap::new();
        let number = |broker| records.numbers.get(broker).unwrap();
        let mut queue = BinaryHeap::from([Reverse((Distance::default(), me, me, me, 0u16))]);
        while let Some(Reverse((distance, broker, parent, next_hop, hops))) = queue.pop() {
            if (broker == me && hops > 0) || routes.contains_key(&broker) {
                continue;
            }
            if let Some(hops) = NonZeroU16::new(hops) {
                routes.insert(broker, Route { next_hop, parent: number(parent), distance, hops });
            }
            for end in records.get(broker).into_iter().flat_map(|record| &record.links) {
                if let Some(link) = records.link(broker, end.neighbour) {
                    let first = if broker == me { end.neighbour } else { next_hop };
                    queue.push(Reverse((distance.plus(link), end.neighbour, broker, first, hops + 1)));
                }
            }
        }
        routes
    }

    fn network(edges: &[(u64, u64, u32)]) -> Records {
        let mut links: BTreeMap<BrokerId, Vec<LinkEnd>> = BTreeMap::new();
        for &(a, b, cost) in edges {
            links.entry(BrokerId(a)).or_default().push(LinkEnd { neighbour: BrokerId(b), cost, nonce: a ^ b });
            links.entry(BrokerId(b)).or_default().push(LinkEnd { neighbour: BrokerId(a), cost: 1, nonce: a ^ b });
        }
        let record = |(origin, mut links): (BrokerId, Vec<LinkEnd>)| {
            links.sort_by_key(|link| link.neighbour);
            Arc::new(LinkState::listing(origin, links))
        };
        let mut records = Records::default();
        for origin in links {
            records.insert(record(origin));
        }
        records
    }

    /// All simple paths, the obvious way.
    fn best(records: &Records, from: BrokerId, to: BrokerId) -> Option<(Distance, Vec<BrokerId>)> {
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
            let record = records.get(last).unwrap();
            for end in &record.links {
                let Some(link) = records.link(last, end.neighbour) else { continue };
                if !path.contains(&end.neighbour) {
                    let mut path = path.clone();
                    path.push(end.neighbour);
                    stack.push((distance.plus(link), path));
                }
            }
        }
        found
    }

    #[test]
    fn routes_are_the_best_of_all_paths_and_symmetric() {
        let grid = [(1, 2, 1), (2, 3, 1), (4, 5, 1), (5, 6, 2), (1, 4, 1), (2, 5, 3), (3, 6, 1), (6, 7, 1), (3, 7, 2)];
        let records = network(&grid);
        for from in (1..=7).map(BrokerId) {
            let routes = shortest_paths(from, &records);
            assert_eq!(routes.len(), records.len() - 1);
            for (&to, route) in &routes {
                let (distance, path) = best(&records, from, to).unwrap();
                assert_eq!((route.distance, route.next_hop), (distance, path[1]), "{from} to {to}");
                assert_eq!(usize::from(route.hops.get()), path.len() - 1);
                assert_eq!(shortest_paths(to, &records)[&from].next_hop, path[path.len() - 2]);
            }
        }
    }

    #[test]
    fn an_edge_needs_both_ends_and_one_nonce() {
        let mut records = network(&[(1, 2, 1), (2, 3, 1)]);
        let mut half = (**records.get(BrokerId(3)).unwrap()).clone();
        half.links[0].nonce += 1;
        records.insert(Arc::new(half));
        let routes = shortest_paths(BrokerId(1), &records);
        assert_eq!(routes.keys().copied().collect::<Vec<_>>(), [BrokerId(2)]);
    }

    /// Random changes of random networks, several at once: the routes kept up to date are those computed from nothing, and what
    /// is said to have changed is what has.
    #[test]
    fn updates_give_what_a_computation_from_nothing_gives() {
        let mut random = 1_u64;
        let mut below = move |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % bound
        };
        let (mut cut_off, mut moved) = (0, 0);
        for _ in 0..60 {
            let brokers = 3 + below(12);
            let me = BrokerId(1);
            let mut records = Records::default();
            let mut routes = Routes::new(records.numbers.take(me));
            for _ in 0..60 {
                let mut changed = BTreeMap::new();
                for _ in 0..=below(3) {
                    let origin = BrokerId(1 + below(brokers));
                    let old = records.get(origin).cloned();
                    let neighbours: Vec<BrokerId> = (1..=brokers).map(BrokerId).filter(|id| *id != origin).collect();
                    let keep = below(4) > 0;
                    let links = neighbours.into_iter().filter_map(|neighbour| {
                        let held =
                            old.as_ref().and_then(|old| old.links.iter().find(|link| link.neighbour == neighbour));
                        match held {
                            Some(link) if keep && below(6) > 0 => Some(*link),
                            _ if below(3) > 0 => None,
                            // Now and then the ends speak of different lives.
                            _ => {
                                Some(LinkEnd { neighbour, cost: 1 + below(3) as u32, nonce: u64::from(below(9) == 0) })
                            }
                        }
                    });
                    let record = LinkState::listing(origin, links.collect());
                    let (number, old) = records.insert(Arc::new(record));
                    changed.entry(number).or_insert(old);
                }
                let old_routes = Routes { me: routes.me, routes: routes.routes.clone() };
                let before = routes.update(&changed, &records);
                let expected = shortest_paths(me, &records);
                let anew = Routes::from_nothing(routes.me, &records);
                for broker in (1..=brokers).map(BrokerId) {
                    let new = expected.get(&broker);
                    let Some(number) = records.numbers.get(broker) else {
                        assert_eq!(new, None);
                        continue;
                    };
                    assert_eq!((routes.get(number), anew.get(number)), (new, new));
                    let old = old_routes.get(number);
                    assert_eq!(before.get(&number), (old != new).then(|| old.copied()).as_ref());
                    cut_off += u32::from(old.is_some() && new.is_none());
                    moved += u32::from(old.is_some() && new.is_some() && old != new);
                }
            }
        }
        assert!(cut_off > 500 && moved > 2_000, "the changes are to matter: {cut_off} {moved}");
    }
}
