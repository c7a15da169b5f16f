//! The same workload under three schemes: flooding, one shared tree with covering hop by hop, and the brokers' own.
//!
//! A scenario runs as always, but without its faults; what its clients ask is then done once more by the other schemes,
//! over the links that were up at the end.

mod meter;
mod siena;

use crate::paths::Graph;
use crate::report::table;
use crate::run::Run;
use crate::scenario::{Scenario, ScenarioError};
use crate::step::Step;
use crate::workload::{Asked, Trip, Workload};
use enroute_broker::{BrokerId, EventFrame, EventId};
use enroute_filter::{Event, Filter};
use meter::Meter;
use serde::Serialize;
use siena::Siena;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The schemes side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Of the scenario.
    pub name: String,
    /// Everything random came from this.
    pub seed: u64,
    /// How many there are.
    pub brokers: usize,
    /// How many were up at the end.
    pub links: usize,
    /// Events published.
    pub events: usize,
    /// Flooding, the shared tree, and the brokers' own.
    pub schemes: [Scheme; 3],
    /// What is wrong with the run of the brokers' own, in words.
    pub complaints: Vec<String>,
}

/// What one scheme made of the workload.
#[derive(Clone, Debug, Serialize)]
pub struct Scheme {
    /// Its name.
    pub name: &'static str,
    /// Events handed to clients.
    pub deliveries: u64,
    /// Times that an event went over a link.
    pub crossings: u64,
    /// Their bytes, as frames.
    pub event_bytes: u64,
    /// Of these, bytes on links that led to nobody who wanted the event.
    pub useless_bytes: u64,
    /// Mean over all events and brokers that wanted them: the cost of the path taken, by that of the shortest.
    pub stretch: f64,
    /// Bytes of control messages, as frames. Of the brokers' own this is all there is, of the tree only what covering tells.
    pub control_bytes: u64,
    /// Events on the link that carried most.
    pub busiest: u64,
}

/// Runs a scenario without its faults, and its workload under the other schemes.
///
/// # Errors
/// What is wrong with the scenario.
pub fn compare(mut scenario: Scenario, seed: u64) -> Result<Comparison, ScenarioError> {
    scenario.steps.retain(|step| !step.is_fault());
    for step in &mut scenario.steps {
        if let Step::Chaos(chaos) = step {
            (chaos.cut, chaos.heal, chaos.crash, chaos.restart) = (0, 0, 0, 0);
        }
    }
    let mut run = Run::new(scenario, seed)?;
    run.world_mut().record_workload();
    let (report, world) = run.run_and_keep()?;
    let Workload { asked, trips } = world.take_workload();
    let (graph, homes) = (world.whole_graph(), world.homes());
    let mut flooding = Meter::new(&graph);
    let mut tree = Meter::new(&graph);
    let mut own = Meter::new(&graph);
    trips.values().for_each(|trip| own.take(trip));
    let mut siena = Siena::new(&graph);
    let mut subscriptions = Subscriptions::default();
    let mut events = 0;
    for asked in asked {
        match asked {
            Asked::Subscribe { client, name, filter } => {
                let before = subscriptions.0.insert((client, name), (homes[client], filter.clone()));
                siena.replace(homes[client], Some(&filter), before.as_ref().map(|(_, filter)| filter));
            }
            Asked::Unsubscribe { client, name } => {
                if let Some((home, filter)) = subscriptions.0.remove(&(client, name)) {
                    siena.replace(home, None, Some(&filter));
                }
            }
            Asked::Publish { client, event } => {
                events += 1;
                let (wanted, bytes) = (subscriptions.wanted(&event), plain_frame(&event));
                flooding.take(&flood(&graph, homes[client], &wanted, bytes));
                tree.take(&siena.publish(homes[client], &event, &wanted, bytes));
            }
        }
    }
    let control = report.control.values().map(|count| count.bytes).sum();
    Ok(Comparison {
        name: report.name,
        seed,
        brokers: report.brokers,
        links: graph.neighbours.iter().map(BTreeMap::len).sum::<usize>() / 2,
        events,
        schemes: [
            flooding.scheme("flooding", 0),
            tree.scheme("one shared tree, covering", siena.control_bytes()),
            own.scheme("enroute", control),
        ],
        complaints: report.complaints,
    })
}

/// All subscriptions that stand, by client and name, each with its broker.
#[derive(Default)]
struct Subscriptions(BTreeMap<(usize, Arc<str>), (usize, Filter)>);

impl Subscriptions {
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

/// Every broker sends an event that is new to it to all its neighbours but the one that it came from.
fn flood(graph: &Graph, origin: usize, wanted: &BTreeMap<usize, u64>, bytes: u64) -> Trip {
    let mut trip = Trip { origin, ..Trip::default() };
    let mut reached = vec![false; graph.neighbours.len()];
    reached[origin] = true;
    let mut queue = std::collections::VecDeque::from([(origin, origin)]);
    while let Some((broker, from)) = queue.pop_front() {
        trip.arrive(broker, wanted);
        for &to in graph.neighbours[broker].keys().filter(|&&to| to != from) {
            trip.crossings.push(([broker, to], bytes));
            if !std::mem::replace(&mut reached[to], true) {
                queue.push_back((to, broker));
            }
        }
    }
    trip
}

impl Trip {
    fn arrive(&mut self, at: usize, wanted: &BTreeMap<usize, u64>) {
        if let Some(clients) = wanted.get(&at) {
            self.homes.insert(at);
            self.deliveries += clients;
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { name, seed, brokers, links, events, .. } = self;
        writeln!(f, "{name}: {brokers} brokers, {links} links, seed {seed}; {events} events, no faults\n")?;
        let head = [
            "scheme",
            "deliveries",
            "crossings",
            "an event",
            "event bytes",
            "useless bytes",
            "stretch",
            "control bytes",
            "busiest link",
        ];
        let cells = |scheme: &Scheme| {
            vec![
                scheme.name.to_owned(),
                scheme.deliveries.to_string(),
                scheme.crossings.to_string(),
                format!("{:.2}", scheme.crossings as f64 / (*events).max(1) as f64),
                scheme.event_bytes.to_string(),
                scheme.useless_bytes.to_string(),
                format!("{:.2}", scheme.stretch),
                scheme.control_bytes.to_string(),
                scheme.busiest.to_string(),
            ]
        };
        let lines: Vec<Vec<String>> = self.schemes.iter().map(cells).collect();
        table(f, &head, &lines)?;
        self.complaints.iter().try_for_each(|complaint| writeln!(f, "  wrong: {complaint}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_schemes_deliver_the_same_and_the_tree_goes_round() {
        let text = "
            topology = { shape = 'ring', brokers = 7 }
            clients_per_broker = 1
            subscriptions_per_client = 2
            [[step]]
            do = 'settle'
            [[step]]
            do = 'publish'
            count = 200
            [[step]]
            do = 'settle'
            [[step]]
            do = 'cut'
            link = ['b00', 'b01']";
        let compared = compare(Scenario::parse(text).expect("a scenario"), 3).expect("a good scenario");
        let [flooding, tree, own] = &compared.schemes;
        assert_eq!((compared.events, &compared.complaints[..]), (200, &[] as &[String]));
        assert_eq!([flooding.deliveries, tree.deliveries], [own.deliveries; 2], "{compared}");
        // On a ring of seven, each broker but the one that came first sends to one neighbour, the last two to each other.
        assert_eq!(flooding.crossings, 200 * 8);
        assert!(own.crossings < tree.crossings && tree.crossings < flooding.crossings, "{compared}");
        assert_eq!((own.useless_bytes, tree.useless_bytes), (0, 0), "{compared}");
        assert!(flooding.useless_bytes > 0 && own.stretch == 1.0 && tree.stretch > 1.0, "{compared}");
    }
}
