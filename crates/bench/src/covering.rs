//! Measures the covering forest: what a subscription costs that comes or goes, and what it takes.
//!
//! 1. **Insert.** All subscriptions, one after the other. What is in use afterwards, their own bytes aside, is the forest's.
//! 2. **Compare.** Some further ones are inserted and removed again, and looked up in a scan of the roots: each root has a
//!    signature of 64 bits that says which attributes it speaks of, and is compared only if that does not rule it out.
//! 3. **Remove.** A part of them, in random order; then the others, after which nothing may be left.
//! 4. **Storm.** 20 roots that cover 2,100 each leave one after the other, among 80,000. No child covers another one, so
//!    that all become roots.
//!
//! Each operation is timed by the thread's own time, the two readings of the clock included. After 1, and within 3, some of
//! the subscriptions are compared with all others, to see whether they are roots where they should be.

use crate::allocation::live_bytes;
use crate::clock::thread_time;
use crate::random::Random;
use crate::report::{percentile, short};
use crate::workload::Input;
use enroute_covering::{Forest, covers};
use enroute_filter::{Comparison, Conjunction, Constraint};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// One in so many is removed while removals are timed.
const REMOVED_PART: usize = 10;
/// At least so much thread time goes into the scan, for as many operations as that is enough.
const SCAN_TIME: Duration = Duration::from_secs(5);
/// At most so many operations are compared.
const MOST_COMPARED: usize = 10_000;
/// The stream of random numbers that removals and samples are drawn from.
const CHOSEN: u64 = 4;

const STORM_ROOTS: i64 = 20;
const STORM_CHILDREN: i64 = 2_100;
const STORM_SUBSCRIPTIONS: i64 = 80_000;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many subscriptions.
    pub subscriptions: usize,
    /// How many of them are compared with all others, twice.
    pub checked: usize,
    /// Decides what is removed and compared.
    pub seed: u64,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// How many conjunctions were inserted; equal ones count.
    pub subscriptions: usize,
    /// How many of them were roots.
    pub roots: usize,
    /// All of the insertions.
    pub insert: Times,
    /// A tenth of the removals, the first.
    pub remove: Times,
    /// Bytes in use by a subscription, beyond its own.
    pub bytes_per_subscription: f64,
    /// The forest beside a scan.
    pub scan: Comparisons,
    /// See the [module page](self).
    pub storm: Storm,
    /// What was not as it should be; empty if all was right.
    pub differences: Vec<String>,
}

/// Microseconds an operation.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    /// How many operations.
    pub operations: usize,
    /// Their mean.
    pub mean: f64,
    /// Half of them took at most this.
    pub percentile_50: f64,
    /// 99 in 100 of them took at most this.
    pub percentile_99: f64,
    /// The slowest.
    pub maximum: f64,
}

/// The same insertions in the forest and as look-ups in the scan.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Comparisons {
    /// How many insertions.
    pub operations: usize,
    /// Microseconds of an insertion into the forest, as a mean.
    pub forest_microseconds: f64,
    /// Microseconds of a scan, for one root that covers the new one or else all that it covers, as a mean.
    pub scan_microseconds: f64,
    /// How many times faster the forest was.
    pub times_faster: f64,
}

/// The removal storm.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Storm {
    /// Milliseconds of all removals.
    pub milliseconds: f64,
    /// Milliseconds of the slowest.
    pub slowest_milliseconds: f64,
}

/// Measures.
pub fn measure(input: &Input, plan: &Plan) -> Report {
    let mut stream = input.subscriptions().flat_map(|filter| filter.conjunctions().to_vec());
    let subscriptions: Vec<Conjunction> = stream.by_ref().take(plan.subscriptions).collect();
    let mut random = Random::new(plan.seed, CHOSEN);
    let mut differences = Vec::new();
    let mut forest = Forest::new();

    let bytes_before = live_bytes();
    let insert = timed(0..subscriptions.len(), |index| drop(forest.insert(index as u64, &subscriptions[index])));
    let bytes = live_bytes().saturating_sub(bytes_before);
    let roots = forest.root_count();
    let mut live: Vec<usize> = (0..subscriptions.len()).collect();
    check("all inserted", &forest, &subscriptions, &live, plan.checked, &mut random, &mut differences);

    let scan = compare(&mut forest, stream, &mut differences);

    let mut draw = || live.swap_remove(random.below(live.len()));
    let leaving: Vec<usize> = (0..subscriptions.len().div_ceil(REMOVED_PART)).map(|_| draw()).collect();
    let remove = timed(leaving, |index| drop(forest.remove(index as u64, &subscriptions[index])));
    check("some removed", &forest, &subscriptions, &live, plan.checked, &mut random, &mut differences);
    live.into_iter().for_each(|index| drop(forest.remove(index as u64, &subscriptions[index])));
    if !forest.is_empty() {
        differences.push(format!("{} conjunctions are left when all have been removed", forest.len()));
    }
    Report {
        subscriptions: subscriptions.len(),
        roots,
        insert,
        remove,
        bytes_per_subscription: bytes as f64 / subscriptions.len() as f64,
        scan,
        storm: storm(&mut differences),
        differences,
    }
}

fn timed(operations: impl IntoIterator<Item = usize>, mut operate: impl FnMut(usize)) -> Times {
    let time = |index| {
        let start = thread_time();
        operate(index);
        microseconds(thread_time() - start)
    };
    Times::of(operations.into_iter().map(time).collect())
}

pub(crate) fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

impl Times {
    pub(crate) fn of(mut times: Vec<f64>) -> Times {
        times.sort_unstable_by(f64::total_cmp);
        let at = |percent| percentile(&times, percent).unwrap_or_default();
        Times {
            operations: times.len(),
            mean: times.iter().sum::<f64>() / times.len().max(1) as f64,
            percentile_50: at(50),
            percentile_99: at(99),
            maximum: at(100),
        }
    }
}

/// Compares some of the live subscriptions with all others. One is a root if no other one covers it.
fn check(
    when: &str,
    forest: &Forest,
    subscriptions: &[Conjunction],
    live: &[usize],
    count: usize,
    random: &mut Random,
    differences: &mut Vec<String>,
) {
    let roots: BTreeSet<&Conjunction> = forest.roots().collect();
    if roots.len() != forest.root_count() {
        differences.push(format!("{when}: {} roots are {}", forest.root_count(), roots.len()));
    }
    let mut sample: Vec<&Conjunction> = (0..count).map(|_| &subscriptions[*random.pick(live)]).collect();
    // Where few are roots, hardly any would be among the sample.
    let some_roots: Vec<&Conjunction> = roots.iter().copied().collect();
    sample.extend((0..count).map(|_| *random.pick(&some_roots)));
    for conjunction in sample {
        let is_covered = live.iter().map(|&index| &subscriptions[index]).any(|other| {
            // Of two that cover each other, which patterns may do, the lesser one is the root.
            covers(other, conjunction) && other != conjunction && (other < conjunction || !covers(conjunction, other))
        });
        if is_covered == roots.contains(conjunction) {
            let is = if is_covered { "is a root though covered" } else { "is no root though nothing covers it" };
            differences.push(format!("{when}: {conjunction:?} {is}"));
        }
    }
}

/// The roots as a list with signatures.
struct Scan<'a> {
    signatures: Vec<u64>,
    roots: Vec<&'a Conjunction>,
}

impl<'a> Scan<'a> {
    fn of(forest: &'a Forest) -> Scan<'a> {
        let roots: Vec<&Conjunction> = forest.roots().collect();
        Scan { signatures: roots.iter().map(|root| signature(root)).collect(), roots }
    }

    /// Whether a root covers the conjunction, and if not, how many it covers.
    fn look_up(&self, conjunction: &Conjunction) -> (bool, usize) {
        let mine = signature(conjunction);
        let pairs = || self.signatures.iter().zip(&self.roots);
        if pairs().any(|(theirs, root)| theirs & !mine == 0 && covers(root, conjunction)) {
            return (true, 0);
        }
        let covered = pairs().filter(|(theirs, root)| mine & !**theirs == 0 && covers(conjunction, root));
        (false, covered.count())
    }
}

/// A bit for each attribute, though others may share it.
fn signature(conjunction: &Conjunction) -> u64 {
    conjunction.constraints().iter().fold(0, |bits, constraint| {
        let mut hasher = DefaultHasher::new();
        constraint.attribute().hash(&mut hasher);
        bits | 1 << (hasher.finish() % 64)
    })
}

/// Looks further subscriptions up in a scan, then inserts each into the forest and removes it again.
fn compare(
    forest: &mut Forest,
    further: impl Iterator<Item = Conjunction>,
    differences: &mut Vec<String>,
) -> Comparisons {
    const NEW_OWNER: u64 = u64::MAX;
    let mut scanning = Duration::ZERO;
    let scan = Scan::of(forest);
    let mut looked_up = Vec::new();
    for conjunction in further.take(MOST_COMPARED) {
        let start = thread_time();
        let found = scan.look_up(&conjunction);
        scanning += thread_time() - start;
        looked_up.push((conjunction, found));
        if scanning > SCAN_TIME {
            break;
        }
    }
    let mut inserting = Duration::ZERO;
    for (conjunction, (is_covered, covered)) in &looked_up {
        let start = thread_time();
        let change = forest.insert(NEW_OWNER, conjunction);
        inserting += thread_time() - start;
        if (change.added.is_empty(), change.removed.len()) != (*is_covered, *covered) {
            differences.push(format!("the scan finds {is_covered}, {covered} for {conjunction:?}: {change:?}"));
        }
        forest.remove(NEW_OWNER, conjunction);
    }
    let operations = looked_up.len();
    let [scan_microseconds, forest_microseconds] =
        [scanning, inserting].map(|time| microseconds(time) / operations as f64);
    let times_faster = scan_microseconds / forest_microseconds;
    Comparisons { operations, forest_microseconds, scan_microseconds, times_faster }
}

fn storm(differences: &mut Vec<String>) -> Storm {
    let topic = |topic: i64| Constraint::compare("topic", Comparison::Eq, topic);
    let one_of = |index: i64, topics: i64| {
        let constraints = [
            topic(index % topics),
            Constraint::compare("account", Comparison::Eq, index / topics),
            Constraint::compare("amount", Comparison::Ge, index * 7_919 % 10_007),
        ];
        Conjunction::new(constraints).expect("constraints on different attributes")
    };
    let cover = |index: i64| Conjunction::new([topic(index)]).expect("one constraint");
    let mut forest = Forest::new();
    for index in 0..STORM_ROOTS * STORM_CHILDREN {
        forest.insert(1, &one_of(index, STORM_ROOTS));
    }
    for index in STORM_ROOTS * STORM_CHILDREN..STORM_SUBSCRIPTIONS - STORM_ROOTS {
        let other = [topic(index), Constraint::compare("amount", Comparison::Ge, index * 7_919 % 10_007)];
        forest.insert(2, &Conjunction::new(other).expect("constraints on different attributes"));
    }
    (0..STORM_ROOTS).for_each(|index| drop(forest.insert(3, &cover(index))));
    let remove = |index| {
        let revealed = forest.remove(3, &cover(index as i64)).added.len();
        if revealed != STORM_CHILDREN as usize {
            differences.push(format!("a root of the storm reveals {revealed} children"));
        }
    };
    let times = timed(0..STORM_ROOTS as usize, remove);
    Storm { milliseconds: times.mean * STORM_ROOTS as f64 / 1e3, slowest_milliseconds: times.maximum / 1e3 }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { subscriptions, roots, bytes_per_subscription, scan, storm, .. } = self;
        let bytes = short(*bytes_per_subscription);
        writeln!(f, "{subscriptions} subscriptions, {roots} roots, {bytes} bytes a subscription beyond itself")?;
        writeln!(f, "{:<8}{:>11}{:>9}{:>9}{:>9}{:>9}", "", "operations", "mean us", "p50", "p99", "max")?;
        for (name, times) in [("insert", &self.insert), ("remove", &self.remove)] {
            let [mean, half, most, maximum] =
                [times.mean, times.percentile_50, times.percentile_99, times.maximum].map(short);
            writeln!(f, "{name:<8}{:>11}{mean:>9}{half:>9}{most:>9}{maximum:>9}", times.operations)?;
        }
        writeln!(
            f,
            "{} insertions: {} us, by a scan with signatures {} us; {} times faster",
            scan.operations,
            short(scan.forest_microseconds),
            short(scan.scan_microseconds),
            short(scan.times_faster)
        )?;
        writeln!(
            f,
            "storm: {STORM_ROOTS} roots over {STORM_CHILDREN} each removed in {} ms, the slowest in {} ms",
            short(storm.milliseconds),
            short(storm.slowest_milliseconds)
        )?;
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

    #[test]
    fn all_workloads_are_right_when_small() {
        for workload in [Workload::W1b, Workload::W2, Workload::W3, Workload::W4, Workload::Flights] {
            let plan = Plan { subscriptions: 400, checked: 100, seed: 1 };
            let report = measure(&workload.open(1), &plan);
            assert_eq!(report.differences, [""; 0], "{}", workload.name());
            assert!(report.roots > 0);
        }
    }
}
