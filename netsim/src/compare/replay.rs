//! What flooding and the shared tree make of what was asked, over the links that there were.
//!
//! An event takes no time on its way. It does not arrive over a link that is dead; when the first broker at an end of that has
//! found out, in the time that this took among the brokers of the run, everybody knows and goes by the links that are left.

use super::meter::Meter;
use super::siena::Siena;
use crate::paths::Graph;
use crate::workload::{Asked, Links, Trip};
use enroute_broker::{BrokerId, EventFrame, EventId};
use enroute_filter::{Event, Filter};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// See the module's page.
pub(super) struct Replay<'a> {
    /// For each client its broker.
    homes: &'a [usize],
    links: Links,
    subscriptions: Subscriptions,
    siena: Siena,
    pub(super) flooding: Meter<'a>,
    pub(super) tree: Meter<'a>,
    /// How many events were published.
    pub(super) events: usize,
}

impl<'a> Replay<'a> {
    /// Of clients at these brokers, over links that are all whole at first.
    pub(super) fn new(homes: &'a [usize], graph: &'a Graph) -> Replay<'a> {
        Replay {
            homes,
            links: Links::whole(graph.clone()),
            subscriptions: Subscriptions::default(),
            siena: Siena::new(graph),
            flooding: Meter::new(graph),
            tree: Meter::new(graph),
            events: 0,
        }
    }

    /// Bytes of all that the brokers of the tree have told each other.
    pub(super) fn control_bytes(&self) -> u64 {
        self.siena.control_bytes()
    }

    pub(super) fn take(&mut self, asked: Asked) {
        match asked {
            Asked::Subscribe { client, name, filter } => {
                let home = self.homes[client];
                let before = self.subscriptions.0.insert((client, name), (home, filter.clone()));
                self.siena.replace(home, Some(&filter), before.as_ref().map(|(_, filter)| filter));
            }
            Asked::Unsubscribe { client, name } => {
                if let Some((home, filter)) = self.subscriptions.0.remove(&(client, name)) {
                    self.siena.replace(home, None, Some(&filter));
                }
            }
            Asked::Publish { client, event } => self.publish(self.homes[client], &event),
            Asked::Links(links) if links == self.links => {}
            Asked::Links(links) => {
                self.siena = self.siena.mended(&links.graph, self.subscriptions.iter());
                self.links = links;
            }
            Asked::Settled { step } => [&mut self.flooding, &mut self.tree].into_iter().for_each(|it| it.settled(step)),
        }
    }

    fn publish(&mut self, home: usize, event: &Event) {
        self.events += 1;
        let (wanted, bytes) = (self.subscriptions.wanted(event), plain_frame(event));
        let flooded = flood(&self.links, home, &wanted, bytes);
        let told = self.siena.publish(home, event, &wanted, bytes, &self.links);
        for (meter, trip) in [(&mut self.flooding, flooded), (&mut self.tree, told)] {
            meter.take(&trip);
            meter.expect(wanted.values().sum(), trip.deliveries);
        }
    }
}

/// All subscriptions that stand, by client and name, each with its broker.
#[derive(Default)]
struct Subscriptions(BTreeMap<(usize, Arc<str>), (usize, Filter)>);

impl Subscriptions {
    /// Each with its broker.
    fn iter(&self) -> impl Iterator<Item = (usize, &Filter)> {
        self.0.values().map(|(home, filter)| (*home, filter))
    }

    /// The brokers with clients that want an event, and how many of these each has.
    fn wanted(&self, event: &Event) -> BTreeMap<usize, u64> {
        let mut wanted = BTreeMap::new();
        let mut last = None;
        for ((client, _), (home, filter)) in &self.0 {
            if last != Some(*client) && filter.matches(event) {
                last = Some(*client);
                *wanted.entry(*home).or_default() += 1;
            }
        }
        wanted
    }
}

/// The bytes of an event in a frame that names one destination: what a scheme without destinations would send at least.
fn plain_frame(event: &Event) -> u64 {
    let id = EventId { origin: BrokerId(u64::MAX), incarnation: 1 << 40, sequence: 1 << 20 };
    let frame = EventFrame {
        id,
        hop_limit: 16,
        destinations: std::iter::once(BrokerId(u64::MAX)).collect(),
        event: event.as_bytes().clone(),
    };
    enroute_wire::event_frame_size(&frame) as u64
}

/// Every broker sends an event that is new to it to all its neighbours but the one that it came from, over links that carry it
/// or not.
fn flood(links: &Links, origin: usize, wanted: &BTreeMap<usize, u64>, bytes: u64) -> Trip {
    let mut trip = Trip { origin, ..Trip::default() };
    let neighbours = &links.graph.neighbours;
    let mut reached = vec![false; neighbours.len()];
    reached[origin] = true;
    let mut queue = VecDeque::from([(origin, origin)]);
    while let Some((broker, from)) = queue.pop_front() {
        trip.arrive(broker, wanted);
        for &to in neighbours[broker].keys().filter(|&&to| to != from && links.carry(broker, to)) {
            trip.crossings.push(([broker, to], bytes));
            if !std::mem::replace(&mut reached[to], true) {
                queue.push_back((to, broker));
            }
        }
    }
    trip
}

impl Trip {
    pub(super) fn arrive(&mut self, at: usize, wanted: &BTreeMap<usize, u64>) {
        if let Some(clients) = wanted.get(&at) {
            self.homes.insert(at);
            self.deliveries += clients;
        }
    }
}
