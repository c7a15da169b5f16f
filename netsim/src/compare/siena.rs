//! SIENA's scheme, plain: one spanning tree for all, subscriptions forwarded along it as far as nothing covers them, events
//! matched again at every broker (Carzaniga, Rosenblum, Wolf: Design and evaluation of a wide-area event notification service,
//! 2001; subscription forwarding). The tree is that of the shortest paths from one broker. SIENA mends nothing when a link or
//! broker fails; here it does, in no time and for no byte, as soon as the link is found dead: the best that could be.

use crate::paths::Graph;
use crate::workload::{Links, Trip};
use enroute_broker::{AnnouncedFilter, Digest, Interest, InterestPart, LeafMessage, Message};
use enroute_covering::{Forest, RootChange, RootDifference};
use enroute_filter::{Conjunction, Event, Filter};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Stands for a broker's own clients, where else a neighbour's number stands.
const CLIENTS: u64 = u64::MAX;

/// What a broker of the tree holds.
#[derive(Default)]
struct Node {
    /// By neighbour in the tree: what it wants, as it has told.
    wanted: BTreeMap<usize, BTreeMap<AnnouncedFilter, Conjunction>>,
    /// By neighbour in the tree: what it has been told, which is the roots over all that others here want.
    told: BTreeMap<usize, Forest>,
    /// How many subscriptions of the own clients want a conjunction.
    own: BTreeMap<AnnouncedFilter, u64>,
}

/// See the module's page.
pub(super) struct Siena {
    nodes: Vec<Node>,
    control_bytes: u64,
}

impl Siena {
    pub(super) fn new(graph: &Graph) -> Siena {
        let mut nodes: Vec<Node> = graph.neighbours.iter().map(|_| Node::default()).collect();
        for (broker, towards_root) in graph.shared_tree().into_iter().enumerate() {
            if let Some(next) = towards_root {
                for (one, other) in [(broker, next), (next, broker)] {
                    nodes[one].told.insert(other, Forest::new());
                    nodes[one].wanted.insert(other, BTreeMap::new());
                }
            }
        }
        Siena { nodes, control_bytes: 0 }
    }

    /// The same over other links, with what still stands: brokers and what their clients want.
    pub(super) fn mended<'a>(&self, graph: &Graph, wanted: impl Iterator<Item = (usize, &'a Filter)>) -> Siena {
        let mut mended = Siena::new(graph);
        wanted.for_each(|(broker, filter)| mended.replace(broker, Some(filter), None));
        Siena { control_bytes: self.control_bytes, ..mended }
    }

    /// Bytes of all that brokers have told each other.
    pub(super) fn control_bytes(&self) -> u64 {
        self.control_bytes
    }

    /// A client at a broker subscribes, or does not any more, or wants one thing in place of another.
    pub(super) fn replace(&mut self, broker: usize, new: Option<&Filter>, old: Option<&Filter>) {
        let mut change = RootChange::default();
        for conjunction in new.into_iter().flat_map(Filter::conjunctions) {
            let count = self.nodes[broker].own.entry(AnnouncedFilter::of(conjunction)).or_default();
            *count += 1;
            if *count == 1 {
                change.added.push(Arc::new(conjunction.clone()));
            }
        }
        for conjunction in old.into_iter().flat_map(Filter::conjunctions) {
            let announced = AnnouncedFilter::of(conjunction);
            let Some(count) = self.nodes[broker].own.get_mut(&announced) else { continue };
            *count -= 1;
            if *count == 0 {
                self.nodes[broker].own.remove(&announced);
                change.removed.push(Arc::new(conjunction.clone()));
            }
        }
        self.spread(broker, CLIENTS, change);
    }

    /// What a source at a broker wants has changed: whoever is told of it learns what changes, in one message.
    fn spread(&mut self, broker: usize, source: u64, change: RootChange) {
        let mut queue = VecDeque::from([(broker, source, change)]);
        while let Some((broker, source, change)) = queue.pop_front() {
            let neighbours: Vec<usize> = self.nodes[broker].told.keys().copied().collect();
            for neighbour in neighbours.into_iter().filter(|&neighbour| neighbour as u64 != source) {
                let Some(told) = self.nodes[broker].told.get_mut(&neighbour) else { continue };
                let mut roots = RootDifference::default();
                change.added.iter().for_each(|added| roots.apply(told.insert(source, added)));
                change.removed.iter().for_each(|removed| roots.apply(told.remove(source, removed)));
                let roots = roots.into_change();
                if !roots.is_empty() {
                    self.control_bytes += message_bytes(&roots);
                    self.learn(neighbour, broker, &roots);
                    queue.push_back((neighbour, broker as u64, roots));
                }
            }
        }
    }

    fn learn(&mut self, broker: usize, from: usize, change: &RootChange) {
        let Some(wanted) = self.nodes[broker].wanted.get_mut(&from) else { return };
        for added in &change.added {
            wanted.insert(AnnouncedFilter::of(added), (**added).clone());
        }
        for removed in &change.removed {
            wanted.remove(&AnnouncedFilter::of(removed));
        }
    }

    /// An event goes from broker to broker, to each neighbour that wants it but the one that it came from, over links that
    /// carry it or not.
    pub(super) fn publish(
        &self,
        origin: usize,
        event: &Event,
        clients: &BTreeMap<usize, u64>,
        bytes: u64,
        links: &Links,
    ) -> Trip {
        let mut trip = Trip { origin, ..Trip::default() };
        let mut queue = VecDeque::from([(origin, origin)]);
        while let Some((broker, from)) = queue.pop_front() {
            trip.arrive(broker, clients);
            for (&to, wanted) in &self.nodes[broker].wanted {
                let is_wanted = || wanted.values().any(|conjunction| conjunction.matches(event));
                if to != from && links.carry(broker, to) && is_wanted() {
                    trip.crossings.push(([broker, to], bytes));
                    queue.push_back((to, broker));
                }
            }
        }
        trip
    }
}

/// What a change takes as a message between two brokers.
fn message_bytes(change: &RootChange) -> u64 {
    let encode = |list: &[Arc<Conjunction>]| list.iter().map(|it| AnnouncedFilter::of(it)).collect();
    let part = InterestPart {
        version: 1,
        whole: false,
        added: encode(&change.added),
        removed: encode(&change.removed),
        last: true,
        digest: Digest::default(),
    };
    enroute_wire::message_size(&Message::Leaf(LeafMessage::Interest(Interest::new(1, part)))) as u64
}
