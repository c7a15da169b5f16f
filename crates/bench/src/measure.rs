//! Measures engines side by side on one input.
//!
//! 1. **Slowest update.** Each engine is built with removals in between, each operation timed alone, by the thread's own time:
//!    first, before there is memory of others that the allocator might give back in the middle of an update.
//! 2. **Build.** Each engine draws the same subscriptions, in batches, in turn with the others. A batch is timed as a
//!    whole, by the thread's own time; what it leaves in use, once its filters are dropped, is the engine's memory.
//! 3. **Match.** After a round that is not counted, in which it shows for how many events an engine has the time, rounds
//!    go from engine to engine, so that whatever slows the machine down slows all of them. In each an engine gets as many
//!    other events first, which are not timed: it finds the processor's caches as its own work leaves them, not as a scan of
//!    another engine does. Each event is timed by the clock, as an engine may use several threads, and of its times in the
//!    rounds the least and the median are taken, so that an event during which another program ran counts for little.
//! 4. **Remove.** A part of the subscriptions, in random order, in batches, by the thread's own time.
//!
//! Results are checked twice: for the first events against [`Filter::matches`] of every subscription, before and after the
//! removals; for all events of the uncounted round against each other.

use crate::allocation::live_bytes;
use crate::clock::thread_time;
use crate::contender::{self, A_TREE, Contender, NAIVE, SCAN};
use crate::random::Random;
use crate::report::{EngineReport, Report};
use crate::workload::Input;
use enroute_filter::{Event, Filter};
use enroute_matcher::SubscriptionId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_64;

const BATCH: usize = 1_024;
/// At most so many subscriptions are removed.
const REMOVALS: usize = 100_000;
/// In the build that looks for the slowest update, one removal follows so many insertions.
const INSERTS_A_REMOVAL: usize = 10;
/// Looking for the slowest update of an engine is given up if it takes longer.
const SLOWEST: Duration = Duration::from_secs(60);
/// The stream of random numbers that removals are drawn from.
const REMOVED: u64 = 3;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The engines, by name, each once.
    pub engines: Vec<&'static str>,
    /// How many subscriptions.
    pub subscriptions: usize,
    /// How many events at most.
    pub events: usize,
    /// How many of them are also checked against [`Filter::matches`].
    pub checked: usize,
    /// How many rounds over the events, besides the first.
    pub rounds: usize,
    /// How long one engine may take for matching, and how long for removing.
    pub time: Duration,
    /// How long one engine may take for its build before it is given up.
    pub build_time: Duration,
    /// Whether to look for the slowest update, of the engines that take no longer than a minute for all of them.
    pub slowest: bool,
    /// Decides what is removed.
    pub seed: u64,
}

/// Measures. What an engine answers may be as wrong as it likes: the report says so.
///
/// # Panics
/// An engine of the plan is not among [`contender::names`], or refuses a subscription.
pub fn measure(input: &Input, plan: &Plan) -> Report {
    // The second half is what engines get before they are timed.
    let events: Vec<Event> = input.events().take(2 * plan.events).collect();
    let (truth, passed_over) = truth(input, plan, &events[..plan.checked.min(plan.events)]);
    let slowest = |name| if plan.slowest { slowest_updates(input, plan, name) } else { None };
    let slowest: Vec<Option<[Duration; 2]>> = plan.engines.iter().map(|name| slowest(*name)).collect();
    let mut runs: Vec<Run> = plan.engines.iter().map(|name| Run::new(name, input)).collect();
    for (run, slowest) in runs.iter_mut().zip(slowest) {
        run.slowest = slowest;
    }
    build(input, plan, &mut runs);
    for run in &mut runs {
        run.warm_up(&events, plan, &truth);
    }
    for _ in 0..plan.rounds {
        for run in &mut runs {
            run.round(plan.events);
        }
    }
    compare(&mut runs);
    for run in &mut runs {
        run.remove(plan, &truth);
        // From here on only the figures are of use.
        run.contender = None;
    }
    let engines = runs.iter().map(|run| run.report(&runs)).collect();
    Report { subscriptions: plan.subscriptions, passed_over, events: plan.events, rounds: plan.rounds, engines }
}

/// Whether every engine of the plan can say a filter.
fn can_say(input: &Input, plan: &Plan) -> Box<dyn Fn(&Filter) -> bool> {
    #[cfg(feature = "a-tree")]
    if plan.engines.contains(&A_TREE) {
        let language = crate::atree::Language::new(&input.attributes());
        return Box::new(move |filter| language.expression(filter).is_some());
    }
    let _ = (input, plan);
    Box::new(|_| true)
}

/// The subscriptions that every engine of the plan can say, with ids from 0, without end.
fn subscriptions<'a>(input: &'a Input, plan: &Plan) -> impl Iterator<Item = (SubscriptionId, Filter)> + use<'a> {
    (0..).map(SubscriptionId).zip(input.subscriptions().filter(can_say(input, plan)))
}

/// By event: the subscriptions that match, as [`Filter::matches`] has it; and how many were drawn that an engine cannot say.
fn truth(input: &Input, plan: &Plan, events: &[Event]) -> (Vec<Vec<SubscriptionId>>, usize) {
    let can_say = can_say(input, plan);
    let mut truth = vec![Vec::new(); events.len()];
    let (mut taken, mut passed_over) = (0, 0);
    for filter in input.subscriptions() {
        if taken == plan.subscriptions {
            break;
        } else if !can_say(&filter) {
            passed_over += 1;
            continue;
        }
        for (event, matching) in events.iter().zip(&mut truth) {
            if filter.matches(event) {
                matching.push(SubscriptionId(taken as u64));
            }
        }
        taken += 1;
    }
    (truth, passed_over)
}

/// Inserts the subscriptions into all engines, a batch at a time.
fn build(input: &Input, plan: &Plan, runs: &mut [Run]) {
    let mut streams: Vec<_> = runs.iter().map(|_| subscriptions(input, plan)).collect();
    for first in (0..plan.subscriptions).step_by(BATCH) {
        let count = BATCH.min(plan.subscriptions - first);
        for (run, stream) in runs.iter_mut().zip(&mut streams) {
            run.insert(stream, count, plan.build_time);
        }
    }
    for run in runs {
        run.is_complete = run.contender.is_some();
    }
}

/// Compares what the engines found, event by event, with what the plainest of them found.
fn compare(runs: &mut [Run]) {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|index| match runs[*index].name {
        SCAN => 0,
        NAIVE => 1,
        _ => 2,
    });
    let longest = runs.iter().map(|run| run.digests.len()).max().unwrap_or(0);
    for event in 0..longest {
        let mut found = order.iter().filter(|index| event < runs[**index].digests.len());
        let Some(reference) = found.next() else { continue };
        let (name, digest) = (runs[*reference].name, runs[*reference].digests[event]);
        let others: Vec<usize> = found.copied().collect();
        for other in others {
            if runs[other].digests[event] != digest {
                runs[other].differences.push(format!("event {event}: not what {name} finds"));
            }
        }
    }
}

/// One engine, and its figures so far.
pub(crate) struct Run {
    pub(crate) name: &'static str,
    /// Gone once it is given up or done with.
    contender: Option<Box<dyn Contender>>,
    /// All subscriptions are in.
    pub(crate) is_complete: bool,
    pub(crate) inserted: usize,
    pub(crate) inserting: Duration,
    /// What the subscriptions left in use.
    pub(crate) bytes: i64,
    /// By event of the uncounted round: a digest of the ids found.
    digests: Vec<u64>,
    pub(crate) matches: usize,
    /// By round and event.
    pub(crate) times: Vec<Vec<Duration>>,
    pub(crate) removed: usize,
    pub(crate) removing: Duration,
    /// The slowest insertion and the slowest removal.
    pub(crate) slowest: Option<[Duration; 2]>,
    /// Where the results were wrong.
    pub(crate) differences: Vec<String>,
}

impl Run {
    fn new(name: &'static str, input: &Input) -> Run {
        let contender = contender::open(name, &input.attributes());
        assert!(contender.is_some(), "no engine is called {name}");
        Run {
            name,
            contender,
            is_complete: false,
            inserted: 0,
            inserting: Duration::ZERO,
            bytes: 0,
            digests: Vec::new(),
            matches: 0,
            times: Vec::new(),
            removed: 0,
            removing: Duration::ZERO,
            slowest: None,
            differences: Vec::new(),
        }
    }

    /// Inserts the next `count` subscriptions, unless the engine is given up.
    fn insert(
        &mut self,
        stream: &mut impl Iterator<Item = (SubscriptionId, Filter)>,
        count: usize,
        build_time: Duration,
    ) {
        let Some(contender) = &mut self.contender else { return };
        let bytes_before = live_bytes();
        contender.load(stream.take(count).collect());
        let start = thread_time();
        for index in 0..count {
            contender.insert(index);
        }
        self.inserting += thread_time() - start;
        contender.load(Vec::new());
        self.bytes += live_bytes() as i64 - bytes_before as i64;
        self.inserted += count;
        if self.inserting > build_time {
            self.contender = None;
        }
    }

    /// The uncounted round: as many events as there is time for, each result checked.
    fn warm_up(&mut self, events: &[Event], plan: &Plan, truth: &[Vec<SubscriptionId>]) {
        let Some(contender) = &mut self.contender else { return };
        contender.prepare(events);
        let time = plan.time / (2 * plan.rounds as u32 + 1);
        let mut taken = Duration::ZERO;
        let mut found = Vec::new();
        for event in 0..plan.events {
            let start = Instant::now();
            contender.matches(event, &mut found);
            taken += start.elapsed();
            found.sort_unstable();
            self.matches += found.len();
            let bytes: Vec<u8> = found.iter().flat_map(|id| id.0.to_le_bytes()).collect();
            self.digests.push(xxh3_64(&bytes));
            if truth.get(event).is_some_and(|expected| found != *expected) {
                self.differences.push(format!("event {event}: not what Filter::matches finds"));
            }
            if taken > time {
                break;
            }
        }
    }

    /// A counted round over the events of the uncounted one, after as many of those from `others` on.
    fn round(&mut self, others: usize) {
        let Some(contender) = &mut self.contender else { return };
        let mut found = Vec::new();
        for event in 0..self.digests.len() {
            contender.matches(others + event, &mut found);
        }
        let times = (0..self.digests.len()).map(|event| {
            let start = Instant::now();
            contender.matches(event, &mut found);
            start.elapsed()
        });
        self.times.push(times.collect());
    }

    /// Removes a part of the subscriptions, and checks that they are gone, and no others.
    fn remove(&mut self, plan: &Plan, truth: &[Vec<SubscriptionId>]) {
        let Some(contender) = &mut self.contender else { return };
        let mut random = Random::new(plan.seed, REMOVED);
        let count = REMOVALS.min(plan.subscriptions.div_ceil(2));
        let mut ids: Vec<usize> = (0..plan.subscriptions).collect();
        for place in 0..count {
            ids.swap(place, random.between(place, plan.subscriptions - 1));
        }
        for batch in ids[..count].chunks(BATCH) {
            let start = thread_time();
            for id in batch {
                contender.remove(SubscriptionId(*id as u64));
            }
            self.removing += thread_time() - start;
            self.removed += batch.len();
            if self.removing > plan.time {
                break;
            }
        }
        if !contender.survives_removal() {
            return;
        }
        let removed: BTreeSet<u64> = ids[..self.removed].iter().map(|id| *id as u64).collect();
        let mut found = Vec::new();
        for (event, before) in truth.iter().enumerate().take(self.digests.len()) {
            contender.matches(event, &mut found);
            found.sort_unstable();
            if !before.iter().filter(|id| !removed.contains(&id.0)).eq(&found) {
                self.differences.push(format!("event {event}: not what Filter::matches finds after removals"));
            }
        }
    }

    /// By event: the least and the median of its times in the rounds.
    pub(crate) fn least_and_median_times(&self) -> Vec<(Duration, Duration)> {
        let of_event = |event| {
            let mut times: Vec<Duration> = self.times.iter().map(|round| round[event]).collect();
            times.sort_unstable();
            (times[0], times[times.len() / 2])
        };
        (0..self.times.first().map_or(0, Vec::len)).map(of_event).collect()
    }

    fn report(&self, all: &[Run]) -> EngineReport {
        let references = all.iter().filter(|run| [NAIVE, A_TREE].contains(&run.name) && run.name != self.name);
        let ratio = |run: &Run| {
            let (mine, theirs) = (self.least_and_median_times(), run.least_and_median_times());
            let common = mine.len().min(theirs.len());
            let sum = |times: &[(Duration, Duration)]| {
                times[..common].iter().map(|(least, _)| least.as_secs_f64()).sum::<f64>()
            };
            (common > 0).then(|| (run.name.to_owned(), sum(&theirs) / sum(&mine)))
        };
        let times_faster: BTreeMap<String, f64> = references.filter_map(ratio).collect();
        EngineReport::new(self, times_faster)
    }
}

/// The slowest insertion and the slowest removal while an engine is built to the size of the plan, in thread time. None if that
/// takes too long.
fn slowest_updates(input: &Input, plan: &Plan, name: &str) -> Option<[Duration; 2]> {
    let mut contender = contender::open(name, &input.attributes()).expect("every engine of a plan is there");
    let mut random = Random::new(plan.seed, REMOVED);
    let mut stream = subscriptions(input, plan);
    let mut live: Vec<SubscriptionId> = Vec::with_capacity(plan.subscriptions);
    let mut slowest = [Duration::ZERO; 2];
    let mut inserted = 0_usize;
    let begin = thread_time();
    while live.len() < plan.subscriptions {
        if thread_time() - begin > SLOWEST {
            return None;
        }
        let batch: Vec<_> = stream.by_ref().take(BATCH.min(plan.subscriptions - live.len())).collect();
        let ids: Vec<SubscriptionId> = batch.iter().map(|(id, _)| *id).collect();
        contender.load(batch);
        for (index, id) in ids.into_iter().enumerate() {
            let start = thread_time();
            contender.insert(index);
            slowest[0] = slowest[0].max(thread_time() - start);
            live.push(id);
            inserted += 1;
            if inserted.is_multiple_of(INSERTS_A_REMOVAL) {
                let victim = live.swap_remove(random.below(live.len()));
                let start = thread_time();
                contender.remove(victim);
                slowest[1] = slowest[1].max(thread_time() - start);
            }
        }
    }
    Some(slowest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    fn plan() -> Plan {
        Plan {
            engines: vec![SCAN],
            subscriptions: 200,
            events: 20,
            checked: 20,
            rounds: 1,
            time: Duration::from_secs(3_600),
            build_time: Duration::from_secs(3_600),
            slowest: false,
            seed: 1,
        }
    }

    #[test]
    fn a_result_unlike_the_scans_is_a_difference_of_the_other() {
        let input = Workload::W2.open(1);
        let mut runs = ["counting", SCAN, NAIVE].map(|name| Run::new(name, &input));
        runs[0].digests = vec![1, 5, 3, 8];
        runs[1].digests = vec![1, 2];
        runs[2].digests = vec![1, 2, 4];
        compare(&mut runs);
        assert_eq!(runs[0].differences, ["event 1: not what scan finds", "event 2: not what naive finds"]);
        assert!(runs[1].differences.is_empty() && runs[2].differences.is_empty());
    }

    #[test]
    fn a_result_unlike_the_truth_is_a_difference_before_and_after_removals() {
        let (input, plan) = (Workload::W4b.open(1), plan());
        let events: Vec<Event> = input.events().take(plan.events).collect();
        let (mut truth, _) = truth(&input, &plan, &events);
        let differences_if_true = |truth: &[Vec<SubscriptionId>]| {
            let mut runs = [Run::new(SCAN, &input)];
            build(&input, &plan, &mut runs);
            runs[0].warm_up(&events, &plan, truth);
            runs[0].remove(&plan, truth);
            runs[0].differences.clone()
        };
        assert!(truth.iter().any(|matching| !matching.is_empty()));
        assert_eq!(differences_if_true(&truth), Vec::<String>::new());
        // No subscription has this id, so none is removed.
        truth[7].push(SubscriptionId(1_000));
        assert_eq!(
            differences_if_true(&truth),
            ["event 7: not what Filter::matches finds", "event 7: not what Filter::matches finds after removals"]
        );
    }

    #[test]
    fn an_event_has_the_least_and_the_median_of_its_times() {
        let mut run = Run::new(SCAN, &Workload::W2.open(1));
        let round = |times: [u64; 2]| times.map(Duration::from_micros).to_vec();
        run.times = vec![round([9, 1]), round([5, 2]), round([7, 900])];
        let expected =
            [(5, 7), (1, 2)].map(|(least, median)| (Duration::from_micros(least), Duration::from_micros(median)));
        assert_eq!(run.least_and_median_times(), expected);
    }
}
