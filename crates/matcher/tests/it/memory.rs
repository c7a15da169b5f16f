//! What an engine takes, as an allocator counts it: next to nothing when it is empty, and no more for having been used long.

use crate::allocation::{asked, held};
use crate::chance::{Random, seed};
use crate::workloads::{BOXES, QUOTES, Workload, ZIPF};
use enroute_matcher::{Enindex, Owner, Scratch, SubscriptionId};

/// What an empty engine may take, itself included.
const EMPTY: usize = 4096;
const SUBSCRIPTIONS: usize = 8_000;
/// The most that one update may ask for. What memory costs when it is touched first is most of what makes an update slow.
const AT_ONCE: usize = 256 << 10;
/// In a turn as many subscriptions are replaced as there are. The first turns may still bring the peak.
const FIRST_TURNS: usize = 4;
const TURNS: usize = 16;

/// An engine whose subscriptions come and go.
struct Churn {
    workload: Workload,
    random: Random,
    live: Vec<SubscriptionId>,
    next: u64,
    /// What the thread held before there was an engine. From then on nothing else may be kept, not even output.
    held_before: isize,
    engine: Enindex,
    scratch: Scratch,
}

impl Churn {
    fn new(workload: Workload, seed: u64) -> Churn {
        let live = Vec::with_capacity(SUBSCRIPTIONS);
        let held_before = held();
        let (engine, scratch) = (Enindex::new(), Scratch::default());
        Churn { workload, random: Random(seed), live, next: 0, held_before, engine, scratch }
    }

    fn insert(&mut self) {
        let (id, filter) = (SubscriptionId(self.next), (self.workload.filter)(&mut self.random));
        self.next += 1;
        self.live.push(id);
        assert!(self.engine.insert(id, Owner(id.0 % 100), &filter));
    }

    fn remove(&mut self) {
        let id = self.live.swap_remove(self.random.below(self.live.len() as u64) as usize);
        assert!(self.engine.remove(id));
    }

    /// What the engine takes by itself and beside what it says that it takes.
    fn taken_and_said(&mut self) -> [usize; 2] {
        // What matching needs is not the engine's.
        self.scratch = Scratch::default();
        let taken = usize::try_from(held() - self.held_before).expect("no more is given back than was taken");
        [taken, self.engine.memory_usage()]
    }

    /// Replaces as many subscriptions as there are; says the most that was taken and said on the way.
    fn turn(&mut self) -> [usize; 2] {
        let mut most = [0, 0];
        for step in 0..SUBSCRIPTIONS {
            self.remove();
            self.insert();
            if step % 10 == 0 {
                let event = (self.workload.event)(&mut self.random);
                self.engine.matches(&event, &mut self.scratch, &mut Vec::new());
            }
            if step % 500 == 0 {
                let now = self.taken_and_said();
                most = [most[0].max(now[0]), most[1].max(now[1])];
            }
        }
        most
    }
}

/// Turns an engine over: neither what it takes nor what it says it takes may grow.
fn stays_level(workload: Workload) {
    let seed = seed(3);
    let mut churn = Churn::new(workload, seed);
    (0..SUBSCRIPTIONS).for_each(|_| churn.insert());
    let mut most = [0, 0];
    for turn in 1..=TURNS {
        let now = churn.turn();
        if turn <= FIRST_TURNS {
            most = [most[0].max(now[0]), most[1].max(now[1])];
        }
        let is_level = now[0] <= most[0] * 11 / 10 && now[1] <= most[1] * 11 / 10;
        assert!(is_level, "seed {seed}, turn {turn}: {now:?} bytes after at most {most:?}");
        assert!(now[0].abs_diff(now[1]) < now[0] / 10, "what an engine says is about what it takes: {now:?}");
    }
    while !churn.live.is_empty() {
        churn.remove();
    }
    let [left, said] = churn.taken_and_said();
    assert!(size_of::<Enindex>() + left <= EMPTY, "{left} bytes are left when all is removed");
    assert_eq!(left, said);
}

/// Builds an engine large enough for all that grows to grow, and takes it down again.
fn asks_for_little_at_once(workload: Workload) {
    let seed = seed(4);
    let mut churn = Churn::new(workload, seed);
    for number in 0..5 * SUBSCRIPTIONS {
        let (id, filter) = (SubscriptionId(number as u64), (churn.workload.filter)(&mut churn.random));
        let before = asked();
        assert!(churn.engine.insert(id, Owner(0), &filter));
        assert!(asked() - before <= AT_ONCE, "seed {seed}: insert {number} asks for {}", asked() - before);
    }
    for number in 0..5 * SUBSCRIPTIONS {
        let before = asked();
        assert!(churn.engine.remove(SubscriptionId(number as u64)));
        assert!(asked() - before <= AT_ONCE, "seed {seed}: removal {number} asks for {}", asked() - before);
    }
}

#[test]
fn no_update_asks_for_much_at_once() {
    for workload in [ZIPF, QUOTES, BOXES] {
        asks_for_little_at_once(workload);
    }
}

#[test]
fn an_empty_engine_is_small() {
    let before = held();
    let engine = Box::new(Enindex::new());
    let taken = (held() - before) as usize;
    assert!(taken <= EMPTY, "{taken}");
    assert_eq!(taken, size_of::<Enindex>() + engine.memory_usage());
}

#[test]
fn churn_of_many_attributes_keeps_memory_level() {
    stays_level(ZIPF);
}

#[test]
fn churn_of_quotes_keeps_memory_level() {
    stays_level(QUOTES);
}

#[test]
fn churn_of_boxes_keeps_memory_level() {
    stays_level(BOXES);
}
