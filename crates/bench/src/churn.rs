//! What becomes of an engine whose subscriptions come and go while their number stays the same.
//!
//! In a turn as many subscriptions are removed, at random, as there are, each followed by the insertion of a new one. After
//! each turn matching is timed on the same events, and the bytes in use are counted. Neither should grow. In the end a new engine
//! takes the subscriptions that are left, and both are timed in turns: that ratio holds on a noisy machine too.

use crate::allocation::live_bytes;
use crate::clock::thread_time;
use crate::contender::{self, Contender};
use crate::random::Random;
use crate::report::short;
use crate::workload::Input;
use enroute_filter::{Event, Filter};
use enroute_matcher::SubscriptionId;
use std::fmt;
use std::time::{Duration, Instant};

const BATCH: usize = 1_024;
const ROUNDS: usize = 5;
/// How many events are checked against [`enroute_filter::Filter::matches`] in the end.
const CHECKED: usize = 32;
/// The stream of random numbers that removals are drawn from.
const REMOVED: u64 = 3;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The engine; one that can match after removals.
    pub engine: &'static str,
    /// How many subscriptions there are at any time.
    pub subscriptions: usize,
    /// How often all of them, as a number, are replaced.
    pub turns: usize,
    /// How many events matching is timed on.
    pub events: usize,
    /// Decides what is removed.
    pub seed: u64,
}

/// The engine after the build, and after each turn.
#[derive(Clone, Debug)]
pub struct Churn {
    /// The first is of the build.
    pub turns: Vec<Turn>,
    /// How much longer than a new engine with the same subscriptions it takes for an event in the end.
    pub time_to_new: f64,
    /// Events for which the engine finds something else than it should in the end.
    pub differences: usize,
}

/// What was measured after the build, or after a turn.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// Of a removal and an insertion; after the build, of an insertion.
    pub update_nanoseconds: f64,
    /// Of an event: its least time in five rounds, as a mean.
    pub microseconds: f64,
    /// In use by a subscription.
    pub bytes_per_subscription: f64,
}

/// Builds the engine, and turns it over.
///
/// # Panics
/// No engine has the name of the plan.
pub fn churn(input: &Input, plan: &Plan) -> Churn {
    let events: Vec<Event> = input.events().take(plan.events).collect();
    let mut contender = contender::open(plan.engine, &input.attributes()).expect("the engine exists");
    let mut random = Random::new(plan.seed, REMOVED);
    let mut stream = (0..).map(SubscriptionId).zip(input.subscriptions());
    let mut live: Vec<SubscriptionId> = Vec::with_capacity(plan.subscriptions);
    let mut bytes = 0_i64;
    let mut turns = Vec::new();
    contender.prepare(&events);
    for turn in 0..=plan.turns {
        let mut taken = Duration::ZERO;
        for first in (0..plan.subscriptions).step_by(BATCH) {
            let count = BATCH.min(plan.subscriptions - first);
            let removals = if turn == 0 { 0 } else { count };
            let victims: Vec<_> = (0..removals).map(|_| live.swap_remove(random.below(live.len()))).collect();
            let bytes_before = live_bytes();
            let batch: Vec<_> = stream.by_ref().take(count).collect();
            live.extend(batch.iter().map(|(id, _)| *id));
            contender.load(batch);
            let start = thread_time();
            for index in 0..count {
                if let Some(victim) = victims.get(index) {
                    contender.remove(*victim);
                }
                contender.insert(index);
            }
            taken += thread_time() - start;
            contender.load(Vec::new());
            bytes += live_bytes() as i64 - bytes_before as i64;
        }
        turns.push(Turn {
            update_nanoseconds: taken.as_secs_f64() * 1e9 / plan.subscriptions as f64,
            microseconds: matching_microseconds([&mut *contender], events.len())[0],
            bytes_per_subscription: bytes as f64 / plan.subscriptions as f64,
        });
    }
    live.sort_unstable();
    let mut new = contender::open(plan.engine, &input.attributes()).expect("the engine exists");
    fill(&mut *new, input, &live);
    new.prepare(&events);
    let [old_microseconds, new_microseconds] = matching_microseconds([&mut *contender, &mut *new], events.len());
    drop(new);
    let differences = differences(input, &live, &events[..CHECKED.min(events.len())], &mut *contender);
    Churn { turns, time_to_new: old_microseconds / new_microseconds, differences }
}

/// The subscriptions with these ids, which are sorted.
fn of_ids<'a>(input: &'a Input, ids: &'a [SubscriptionId]) -> impl Iterator<Item = (SubscriptionId, Filter)> {
    let last = ids.last().map_or(0, |id| id.0 + 1);
    let all = (0..last).map(SubscriptionId).zip(input.subscriptions());
    all.filter(|(id, _)| ids.binary_search(id).is_ok())
}

fn fill(contender: &mut dyn Contender, input: &Input, ids: &[SubscriptionId]) {
    let mut stream = of_ids(input, ids);
    for first in (0..ids.len()).step_by(BATCH) {
        let count = BATCH.min(ids.len() - first);
        contender.load(stream.by_ref().take(count).collect());
        (0..count).for_each(|index| contender.insert(index));
    }
    contender.load(Vec::new());
}

/// Of an event: its least time in some rounds, as a mean, for contenders that take turns.
fn matching_microseconds<const COUNT: usize>(
    mut contenders: [&mut dyn Contender; COUNT],
    events: usize,
) -> [f64; COUNT] {
    let mut least = vec![[Duration::MAX; COUNT]; events];
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        for (place, contender) in contenders.iter_mut().enumerate() {
            for (event, least) in least.iter_mut().enumerate() {
                let start = Instant::now();
                contender.matches(event, &mut found);
                least[place] = start.elapsed().min(least[place]);
            }
        }
    }
    let mean = |place: usize| {
        least.iter().map(|least| least[place]).sum::<Duration>().as_secs_f64() * 1e6 / events.max(1) as f64
    };
    std::array::from_fn(mean)
}

/// How many of the events match other subscriptions than they should. `live` is sorted.
fn differences(input: &Input, live: &[SubscriptionId], events: &[Event], contender: &mut dyn Contender) -> usize {
    let mut expected = vec![Vec::new(); events.len()];
    for (id, filter) in of_ids(input, live) {
        for (event, expected) in events.iter().zip(&mut expected) {
            expected.extend(filter.matches(event).then_some(id));
        }
    }
    let mut found = Vec::new();
    let differs = |(event, expected): (usize, &Vec<SubscriptionId>)| {
        contender.matches(event, &mut found);
        found.sort_unstable();
        found != *expected
    };
    expected.iter().enumerate().map(differs).filter(|differs| *differs).count()
}

impl fmt::Display for Churn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>6}  {:>10}  {:>10}  {:>10}  {:>8}", "turn", "us/event", "to first", "update ns", "bytes/sub")?;
        for (number, turn) in self.turns.iter().enumerate() {
            let to_first = turn.microseconds / self.turns[0].microseconds;
            let [time, update, bytes] =
                [turn.microseconds, turn.update_nanoseconds, turn.bytes_per_subscription].map(short);
            writeln!(f, "{number:>6}  {time:>10}  {to_first:>10.3}  {update:>10}  {bytes:>8}")?;
        }
        let (first, last) = (&self.turns[0], self.turns.last().expect("there was a build"));
        let to_first =
            [last.microseconds / first.microseconds, last.bytes_per_subscription / first.bytes_per_subscription];
        writeln!(f, "in the end: {:.3} times the time of the build, {:.3} times its bytes", to_first[0], to_first[1])?;
        writeln!(f, "beside a new engine with the same subscriptions: {:.3} times its time", self.time_to_new)
    }
}
