//! Measures merging: how much less is announced than the roots of the covering forest, and what a change of them costs.
//!
//! 1. **Insert.** All subscriptions go into a covering forest, one after the other, and each change of its roots is merged.
//!    With imperfect merging, an event is seen before each.
//! 2. **Compare.** What is announced is compared with the roots: how many, how many bytes, and whether they match the same of
//!    the workload's events; with imperfect merging, how many they match without need.
//! 3. **Remove.** A part of the subscriptions go; then all others, after which nothing may be announced.
//!
//! A change is timed by the thread's own time, without that of the forest that makes it.

use crate::clock::thread_time;
use crate::covering::{Times, microseconds};
use crate::random::Random;
use crate::report::short;
use crate::workload::Input;
use enroute_covering::{Forest, Merging, MergingConfig, RootChange};
use enroute_filter::{Conjunction, Event};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// One in so many is removed while removals are timed.
const REMOVED_PART: usize = 10;
/// The stream of random numbers that removals are drawn from.
const CHOSEN: u64 = 4;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many subscriptions.
    pub subscriptions: usize,
    /// How to merge.
    pub merging: MergingConfig,
    /// So many events are compared; those that imperfect merging sees are others.
    pub events: usize,
    /// Decides what is removed.
    pub seed: u64,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// How many conjunctions were inserted; equal ones count.
    pub subscriptions: usize,
    /// The roots when all were there.
    pub roots: Size,
    /// What was announced of them.
    pub announced: Size,
    /// The changes of the roots while subscriptions came.
    pub insert: Changes,
    /// The changes while a tenth of them went.
    pub remove: Changes,
    /// The share of the shown events that match what is announced but no root, as merging itself estimates it.
    pub estimated_false_interest: Option<f64>,
    /// The same of the compared events, counted.
    pub false_interest: f64,
    /// What was not as it should be; empty if all was right.
    pub differences: Vec<String>,
}

/// A set of conjunctions.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Size {
    /// How many.
    pub filters: usize,
    /// The bytes of their canonical forms.
    pub bytes: usize,
}

/// Changes of the roots.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Changes {
    /// What they took to merge.
    pub times: Times,
    /// The conjunctions that others had to be told of, added or removed, by change.
    pub told: f64,
    /// The conjunctions that they would have been told of without merging, by change.
    pub told_unmerged: f64,
    /// The bytes of what was told, by change.
    pub bytes: f64,
}

/// Measures.
pub fn measure(input: &Input, plan: &Plan) -> Report {
    let conjunctions = input.subscriptions().flat_map(|filter| filter.conjunctions().to_vec());
    let subscriptions: Vec<Conjunction> = conjunctions.take(plan.subscriptions).collect();
    let mut events = input.events();
    let (mut forest, mut merging) = (Forest::new(), Merging::new(plan.merging));
    let mut differences = Vec::new();

    let insert = merged(&mut merging, 0..subscriptions.len(), |index, merging| {
        if plan.merging.imperfect.is_some() {
            // What an event changes is told with the next change of the roots.
            events.next().iter().for_each(|event| _ = merging.observe(event));
        }
        forest.insert(index as u64, &subscriptions[index])
    });
    let (roots, announced) = (Size::of(forest.roots()), Size::of(merging.announced()));
    let false_interest = compare(&forest, &merging, plan, events, &mut differences);
    let estimated_false_interest = merging.false_interest();

    let mut random = Random::new(plan.seed, CHOSEN);
    let mut live: Vec<usize> = (0..subscriptions.len()).collect();
    let mut draw = || live.swap_remove(random.below(live.len()));
    let leaving: Vec<usize> = (0..subscriptions.len().div_ceil(REMOVED_PART)).map(|_| draw()).collect();
    let mut leave = |index| forest.remove(index as u64, &subscriptions[index]);
    let remove = merged(&mut merging, leaving, |index, _| leave(index));
    live.into_iter().for_each(|index| drop(merging.apply(&leave(index))));
    if merging.announced().len() > 0 {
        differences.push(format!("{} are announced when nothing is wanted", merging.announced().len()));
    }
    Report {
        subscriptions: subscriptions.len(),
        roots,
        announced,
        insert,
        remove,
        estimated_false_interest,
        false_interest,
        differences,
    }
}

/// Merges the changes that operations make; those that change no root do not count.
fn merged(
    merging: &mut Merging,
    operations: impl IntoIterator<Item = usize>,
    mut operate: impl FnMut(usize, &mut Merging) -> RootChange,
) -> Changes {
    let mut times = Vec::new();
    let (mut told, mut told_unmerged, mut bytes) = (0, 0, 0);
    for operation in operations {
        let change = operate(operation, merging);
        if change.is_empty() {
            continue;
        }
        let start = thread_time();
        let announced = merging.apply(&change);
        times.push(microseconds(thread_time() - start));
        let parts = |change: &RootChange| [change.added.clone(), change.removed.clone()].concat();
        let size = Size::of(parts(&announced).iter().map(Arc::as_ref));
        told += size.filters;
        bytes += size.bytes;
        told_unmerged += parts(&change).len();
    }
    let [told, told_unmerged, bytes] = [told, told_unmerged, bytes].map(|sum| sum as f64 / times.len().max(1) as f64);
    Changes { times: Times::of(times), told, told_unmerged, bytes }
}

impl Size {
    fn of<'a>(conjunctions: impl Iterator<Item = &'a Conjunction>) -> Size {
        conjunctions.fold(Size { filters: 0, bytes: 0 }, |size, conjunction| Size {
            filters: size.filters + 1,
            bytes: size.bytes + conjunction.to_bytes().len(),
        })
    }
}

/// The share of events that match what is announced though nobody wants them; none may be missed.
fn compare(
    forest: &Forest,
    merging: &Merging,
    plan: &Plan,
    events: impl Iterator<Item = Event>,
    differences: &mut Vec<String>,
) -> f64 {
    let roots: Vec<&Conjunction> = forest.roots().collect();
    let announced: Vec<&Conjunction> = merging.announced().collect();
    let mut unneeded = 0;
    for event in events.take(plan.events) {
        let matches = |conjunctions: &[&Conjunction]| conjunctions.iter().any(|one| one.matches(&event));
        match (matches(&roots), matches(&announced)) {
            (true, true) | (false, false) => {}
            (true, false) => differences.push(format!("wanted but not announced: {event:?}")),
            (false, true) if plan.merging.imperfect.is_some() => unneeded += 1,
            (false, true) => differences.push(format!("announced but not wanted: {event:?}")),
        }
    }
    f64::from(unneeded) / plan.events.max(1) as f64
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { subscriptions, roots, announced, false_interest, .. } = self;
        writeln!(f, "{subscriptions} subscriptions")?;
        writeln!(f, "{} roots of {} bytes", roots.filters, roots.bytes)?;
        writeln!(f, "{} announced of {} bytes", announced.filters, announced.bytes)?;
        if let Some(estimate) = self.estimated_false_interest {
            writeln!(f, "false interest {} (estimated {})", short(*false_interest), short(estimate))?;
        }
        let titles = ["changes", "mean us", "p50", "p99", "max", "told", "unmerged", "bytes"];
        writeln!(f, "{:<8}{}", "", titles.map(|title| format!("{title:>9}")).concat())?;
        for (name, changes) in [("insert", &self.insert), ("remove", &self.remove)] {
            let times = &changes.times;
            let figures = [
                times.mean,
                times.percentile_50,
                times.percentile_99,
                times.maximum,
                changes.told,
                changes.told_unmerged,
                changes.bytes,
            ];
            let figures = figures.map(|figure| format!("{:>9}", short(figure))).concat();
            writeln!(f, "{name:<8}{:>9}{figures}", times.operations)?;
        }
        for difference in self.differences.iter().take(3) {
            writeln!(f, "{difference}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;
    use enroute_covering::Budget;

    #[test]
    fn all_workloads_are_right_when_small() {
        for workload in [Workload::W1b, Workload::W3, Workload::Flights] {
            for imperfect in [None, Some(Budget { filters: 50, false_interest: 0.05 })] {
                let merging = MergingConfig { perfect: true, imperfect };
                let plan = Plan { subscriptions: 600, merging, events: 200, seed: 1 };
                let report = measure(&workload.open(1), &plan);
                assert_eq!(report.differences, [""; 0], "{}", workload.name());
                assert!(report.announced.filters <= report.roots.filters);
                assert!(report.estimated_false_interest.is_none_or(|estimate| estimate <= 0.05));
            }
        }
    }
}
