//! Measures what becomes of events on a network, whatever the scheme.

use super::{Loss, Scheme};
use crate::paths::Graph;
use crate::workload::Trip;
use std::collections::{BTreeMap, BTreeSet};

/// Sums up the ways of events.
pub(super) struct Meter<'a> {
    graph: &'a Graph,
    /// The least costs from a broker to all, for those asked so far.
    distances: BTreeMap<usize, Vec<Option<u64>>>,
    deliveries: u64,
    crossings: u64,
    bytes: u64,
    useless_bytes: u64,
    /// Sum of the quotients, and how many they are.
    stretch: (f64, u64),
    links: BTreeMap<[usize; 2], u64>,
    losses: Vec<Loss>,
    /// Since the network last settled.
    expected: u64,
    lost: u64,
}

impl<'a> Meter<'a> {
    pub(super) fn new(graph: &'a Graph) -> Meter<'a> {
        Meter {
            graph,
            distances: BTreeMap::new(),
            deliveries: 0,
            crossings: 0,
            bytes: 0,
            useless_bytes: 0,
            stretch: (0.0, 0),
            links: BTreeMap::new(),
            losses: Vec::new(),
            expected: 0,
            lost: 0,
        }
    }

    /// Takes in the way of one event: where it came first is the way by which it was had there, all else was for nothing.
    pub(super) fn take(&mut self, trip: &Trip) {
        let mut from = BTreeMap::from([(trip.origin, trip.origin)]);
        let mut first = BTreeSet::new();
        for (number, &([a, b], _)) in trip.crossings.iter().enumerate() {
            if from.contains_key(&a) && !from.contains_key(&b) {
                from.insert(b, a);
                first.insert((number, [a, b]));
            }
        }
        let mut useful = BTreeSet::new();
        for &home in trip.homes.iter().filter(|&&home| home != trip.origin) {
            let way: Vec<[usize; 2]> = way(&from, trip.origin, home);
            self.stretch(trip.origin, home, &way);
            useful.extend(way);
        }
        for (number, &(hop, bytes)) in trip.crossings.iter().enumerate() {
            self.crossings += 1;
            self.bytes += bytes;
            if !(first.contains(&(number, hop)) && useful.contains(&hop)) {
                self.useless_bytes += bytes;
            }
            let [a, b] = hop;
            *self.links.entry([a.min(b), a.max(b)]).or_default() += 1;
        }
        self.deliveries += trip.deliveries;
    }

    /// So many clients want an event that has been taken in, and so many have it.
    pub(super) fn expect(&mut self, wanted: u64, had: u64) {
        self.expected += wanted;
        self.lost += wanted - had;
    }

    /// The network has settled.
    pub(super) fn settled(&mut self, step: usize) {
        let [expected, lost] = [&mut self.expected, &mut self.lost].map(std::mem::take);
        self.losses.push(Loss { step, expected, lost });
    }

    fn stretch(&mut self, origin: usize, home: usize, way: &[[usize; 2]]) {
        let distances = self.distances.entry(origin).or_insert_with(|| self.graph.distances(origin));
        let cost: Option<u64> = way.iter().map(|[a, b]| self.graph.neighbours[*a].get(b)).sum();
        if let (Some(shortest @ 1..), Some(cost)) = (distances[home], cost) {
            self.stretch.0 += cost as f64 / shortest as f64;
            self.stretch.1 += 1;
        }
    }

    pub(super) fn scheme(self, name: &'static str, control_bytes: u64) -> Scheme {
        Scheme {
            name,
            deliveries: self.deliveries,
            crossings: self.crossings,
            event_bytes: self.bytes,
            useless_bytes: self.useless_bytes,
            stretch: if self.stretch.1 == 0 { 1.0 } else { self.stretch.0 / self.stretch.1 as f64 },
            control_bytes,
            busiest: self.links.values().copied().max().unwrap_or(0),
            losses: self.losses,
        }
    }
}

/// The links by which an event came from its origin to a broker.
fn way(from: &BTreeMap<usize, usize>, origin: usize, home: usize) -> Vec<[usize; 2]> {
    let mut way = Vec::new();
    let mut at = home;
    while at != origin {
        let Some(&before) = from.get(&at) else { break };
        way.push([before, at]);
        at = before;
    }
    way
}
