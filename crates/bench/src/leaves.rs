//! Measures what goes over the uplinks of leaf brokers, by how much of what they want they tell their parent.
//!
//! The subscriptions are dealt out to the leaves in turn, all below one parent. Events that come to the parent go down to each
//! leaf that has announced something they match. Five ways to announce are compared:
//!
//! - *flooding*: nothing; every event goes down every uplink;
//! - *no covering*: each distinct subscription;
//! - *covering*: the roots of a covering forest;
//! - *merging*: what perfect merging makes of the roots;
//! - *imperfect*: the same, and then merged within a budget. A leaf learns from the events that come down to it, which are
//!   others than those that are counted.
//!
//! Events are counted in their own bytes; what a frame adds is the same for all.

use crate::report::short;
use crate::workload::Input;
use enroute_covering::{Budget, Forest, Merging, MergingConfig, RootChange};
use enroute_filter::{Conjunction, Event, Filter};
use enroute_matcher::{Enindex, Owner, Scratch, SubscriptionId};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many subscriptions, all leaves' together.
    pub subscriptions: usize,
    /// How many leaves.
    pub leaves: usize,
    /// So many events are counted; before, as many others are learnt from.
    pub events: usize,
    /// Of imperfect merging, for each leaf.
    pub budget: Budget,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// How many leaves.
    pub leaves: usize,
    /// How many events came to the parent.
    pub events: usize,
    /// One for each way to announce.
    pub ways: Vec<Way>,
    /// What was not as it should be; empty if all was right.
    pub differences: Vec<String>,
}

/// What one way to announce comes to; a mean over the uplinks.
#[derive(Clone, Debug, Serialize)]
pub struct Way {
    /// Its name.
    pub name: &'static str,
    /// Filters that a leaf announces.
    pub filters: f64,
    /// The bytes of their canonical forms.
    pub filter_bytes: f64,
    /// Events that go down an uplink.
    pub events: f64,
    /// Their bytes.
    pub event_bytes: f64,
    /// The share of the events that go down an uplink though nobody there wants them.
    pub false_interest: f64,
}

/// A leaf broker, as far as it announces what it wants.
struct Leaf {
    forest: Forest,
    merging: Merging,
    announced: BTreeSet<Arc<Conjunction>>,
}

impl Leaf {
    fn new(merging: MergingConfig) -> Leaf {
        Leaf { forest: Forest::new(), merging: Merging::new(merging), announced: BTreeSet::new() }
    }

    fn subscribe(&mut self, conjunction: &Conjunction) {
        let change = self.forest.insert(0, conjunction);
        self.announce(&change);
    }

    fn announce(&mut self, roots: &RootChange) {
        let change = self.merging.apply(roots);
        self.announced.extend(change.added);
        for gone in &change.removed {
            self.announced.remove(gone);
        }
    }

    /// An event that comes to the parent may come down, and teach something.
    fn learn(&mut self, event: &Event) {
        if self.announced.iter().any(|one| one.matches(event)) && self.merging.observe(event) {
            self.announce(&RootChange::default());
        }
    }
}

/// Measures.
pub fn measure(input: &Input, plan: &Plan) -> Report {
    let conjunctions = input.subscriptions().flat_map(|filter| filter.conjunctions().to_vec());
    let subscriptions: Vec<Conjunction> = conjunctions.take(plan.subscriptions).collect();
    let mut events = input.events();
    let lessons: Vec<Event> = events.by_ref().take(plan.events).collect();
    let events: Vec<Event> = events.take(plan.events).collect();
    let dealt = |leaf: usize| subscriptions.iter().skip(leaf).step_by(plan.leaves);

    let each: Vec<BTreeSet<Arc<Conjunction>>> =
        (0..plan.leaves).map(|leaf| dealt(leaf).map(|one| Arc::new(one.clone())).collect()).collect();
    let announced = |merging: MergingConfig, lessons: &[Event]| -> Vec<BTreeSet<Arc<Conjunction>>> {
        let leaf = |leaf: usize| {
            let mut broker = Leaf::new(merging);
            dealt(leaf).for_each(|one| broker.subscribe(one));
            lessons.iter().for_each(|event| broker.learn(event));
            broker.announced
        };
        (0..plan.leaves).map(leaf).collect()
    };
    let roots = announced(MergingConfig { perfect: false, imperfect: None }, &[]);
    let merged = announced(MergingConfig { perfect: true, imperfect: None }, &[]);
    let hulls = announced(MergingConfig { perfect: true, imperfect: Some(plan.budget) }, &lessons);

    let wanted = uplinks_of(&each, &events);
    let everybody: Vec<Vec<Owner>> = events.iter().map(|_| (0..plan.leaves as u64).map(Owner).collect()).collect();
    let mut ways = vec![Way::of("flooding", &vec![BTreeSet::new(); plan.leaves], &events, &everybody, &wanted)];
    let mut differences = Vec::new();
    for (name, told) in [("no covering", &each), ("covering", &roots), ("merging", &merged), ("imperfect", &hulls)] {
        let taken = uplinks_of(told, &events);
        let is_exact = name != "imperfect";
        let differs = |(taken, wanted): (&Vec<Owner>, &Vec<Owner>)| {
            if is_exact { taken != wanted } else { wanted.iter().any(|one| !taken.contains(one)) }
        };
        let differing = taken.iter().zip(&wanted).filter(|pair| differs(*pair)).count();
        if differing > 0 {
            differences.push(format!("{name}: {differing} events do not go where they are wanted"));
        }
        ways.push(Way::of(name, told, &events, &taken, &wanted));
    }
    Report { leaves: plan.leaves, events: events.len(), ways, differences }
}

/// For each event the leaves whose filters it matches, sorted.
fn uplinks_of(announced: &[BTreeSet<Arc<Conjunction>>], events: &[Event]) -> Vec<Vec<Owner>> {
    let mut matcher = Enindex::new();
    let filters = announced.iter().zip(0..).flat_map(|(filters, leaf)| filters.iter().map(move |one| (one, leaf)));
    for ((conjunction, leaf), id) in filters.zip(0..) {
        matcher.insert(SubscriptionId(id), Owner(leaf), &Filter::from(Conjunction::clone(conjunction)));
    }
    let mut scratch = Scratch::default();
    let uplinks = |event: &Event| {
        let mut owners = Vec::new();
        matcher.interested(event, &mut scratch, &mut owners);
        owners.sort_unstable();
        owners
    };
    events.iter().map(uplinks).collect()
}

impl Way {
    fn of(
        name: &'static str,
        announced: &[BTreeSet<Arc<Conjunction>>],
        events: &[Event],
        taken: &[Vec<Owner>],
        wanted: &[Vec<Owner>],
    ) -> Way {
        let leaves = announced.len() as f64;
        let count = |uplinks: &[Vec<Owner>]| uplinks.iter().map(Vec::len).sum::<usize>() as f64;
        let filter_bytes: usize = announced.iter().flatten().map(|one| one.to_bytes().len()).sum();
        let bytes = events.iter().zip(taken).map(|(event, uplinks)| event.as_bytes().len() * uplinks.len());
        Way {
            name,
            filters: announced.iter().map(BTreeSet::len).sum::<usize>() as f64 / leaves,
            filter_bytes: filter_bytes as f64 / leaves,
            events: count(taken) / leaves,
            event_bytes: bytes.sum::<usize>() as f64 / leaves,
            false_interest: 1.0 - count(wanted) / count(taken).max(1.0),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} leaves, {} events; for each uplink:", self.leaves, self.events)?;
        let titles = ["filters", "bytes", "events", "bytes", "false"];
        writeln!(f, "{:<12}{}", "", titles.map(|title| format!("{title:>12}")).concat())?;
        for Way { name, filters, filter_bytes, events, event_bytes, false_interest } in &self.ways {
            let figures = [filters, filter_bytes, events, event_bytes, false_interest];
            writeln!(f, "{name:<12}{}", figures.map(|figure| format!("{:>12}", short(*figure))).concat())?;
        }
        self.differences.iter().take(3).try_for_each(|difference| writeln!(f, "{difference}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    #[test]
    fn less_is_told_and_no_more_comes_but_of_imperfect_merging() {
        let budget = Budget { filters: 10, false_interest: 0.1 };
        let plan = Plan { subscriptions: 100, leaves: 4, events: 200, budget };
        let report = measure(&Workload::Flights.open(1), &plan);
        assert_eq!(report.differences, [""; 0]);
        let [flooding, each, covering, merging, imperfect] = &report.ways[..] else { panic!("{report}") };
        assert!(each.filters > covering.filters && covering.filters > merging.filters, "{report}");
        assert!(merging.filters > imperfect.filters, "{report}");
        assert!(flooding.events == 200.0 && flooding.event_bytes > imperfect.event_bytes, "{report}");
        assert_eq!([each, covering, merging].map(|way| way.false_interest), [0.0; 3]);
        assert!(flooding.false_interest > imperfect.false_interest, "{report}");
        assert!(each.event_bytes == covering.event_bytes && covering.event_bytes == merging.event_bytes);
    }
}
