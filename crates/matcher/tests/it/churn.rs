//! Thousands of inserts, removes and events on few names and values: entries are shared, come and go while a generation of
//! lenses takes over from the one before, and statistics drift under them.

use crate::chance::Random;
use enroute_filter::{Comparison, Conjunction, Constraint, Event, Filter, Limits, Test, Value};
use enroute_matcher::{Enindex, NaiveScan, Owner, Scratch, SubscriptionId};

const NAMES: [&str; 3] = ["a", "b", "c"];
const STRINGS: [&str; 5] = ["p", "q", "r", "s", "t"];
const COMPARISONS: [Comparison; 6] =
    [Comparison::Eq, Comparison::Ne, Comparison::Lt, Comparison::Le, Comparison::Gt, Comparison::Ge];

/// How likely values are: with a skew, low ones or high ones are.
#[derive(Clone, Copy)]
enum Skew {
    None,
    Low,
    High,
}

impl Skew {
    fn below(self, count: u64, random: &mut Random) -> u64 {
        let (one, other) = (random.below(count), random.below(count));
        match self {
            Skew::None => one,
            Skew::Low => one.min(other),
            Skew::High => one.max(other),
        }
    }
}

/// A value of the class that the name mostly has, and now and then of another.
fn value(name: &str, skew: Skew, random: &mut Random) -> Value {
    let name = if random.below(20) == 0 { NAMES[random.below(3) as usize] } else { name };
    match name {
        "a" => Value::Int(skew.below(4, random) as i64),
        "b" => Value::from(STRINGS[skew.below(5, random) as usize]),
        _ => Value::Float(skew.below(4, random) as f64 / 2.0),
    }
}

fn test(name: &str, random: &mut Random) -> Test {
    let value = |random: &mut Random| value(name, Skew::None, random);
    match random.below(16) {
        0 => Test::Absent,
        1 => Test::Present,
        2 => Test::between(&value(random), &value(random)),
        3 => Test::not_between(&value(random), &value(random)),
        kind @ (4 | 5) => {
            let values: Vec<Value> = (0..2 + random.below(2)).map(|_| value(random)).collect();
            let values = values.iter().map(Value::as_ref);
            if kind == 4 { Test::one_of(values) } else { Test::none_of(values) }
        }
        6 => match random.below(3) {
            0 => Test::prefix(STRINGS[random.below(5) as usize]),
            1 => Test::suffix(STRINGS[random.below(5) as usize]),
            _ => Test::contains(STRINGS[random.below(5) as usize]),
        },
        _ => Test::compare(COMPARISONS[random.below(6) as usize], &value(random)),
    }
}

/// A conjunction, most often of one predicate, as those are soon shared.
fn conjunction(random: &mut Random) -> Option<Conjunction> {
    let all = random.below(3) == 0;
    let only = random.below(3) as usize;
    let names = NAMES.iter().enumerate().filter(|&(place, _)| all || place == only).map(|(_, name)| *name);
    Conjunction::new(names.map(|name| Constraint::new(name, test(name, random))).collect::<Vec<_>>())
}

fn filter(random: &mut Random) -> Filter {
    let count = if random.below(5) == 0 { 2 + random.below(2) } else { 1 };
    let conjunctions: Vec<Conjunction> = (0..count).filter_map(|_| conjunction(random)).collect();
    Filter::any_of(conjunctions, &Limits::default()).unwrap()
}

fn event(skew: Skew, random: &mut Random) -> Event {
    let rare = NAMES[random.below(3) as usize];
    let mut event = Event::builder();
    for name in NAMES {
        let is_there = random.below(4) > 0 && (name != rare || random.below(2) == 0);
        if is_there {
            event = event.attribute(name, value(name, skew, random));
        }
    }
    event.build().unwrap()
}

/// Lets the number of subscriptions rise to `most` and fall to 2, again and again, with events in between.
fn churn(seed: u64, most: usize, operations: usize) {
    let random = &mut Random(seed);
    let (mut naive, mut engine) = (NaiveScan::new(), Enindex::new());
    let mut scratch = Scratch::default();
    let mut live: Vec<SubscriptionId> = Vec::new();
    let (mut is_rising, mut skew) = (true, Skew::None);
    let (mut matches, mut tried) = (0, 0);
    for operation in 0..operations {
        if operation % 1_500 == 0 {
            skew = [Skew::None, Skew::Low, Skew::High][random.below(3) as usize];
        }
        is_rising = if is_rising { live.len() < most } else { live.len() <= 2 };
        let is_against = random.below(4) == 0;
        if random.below(5) < 2 {
            let event = event(skew, random);
            let (mut ids, mut expected_ids) = (Vec::new(), Vec::new());
            naive.matches(&event, &mut scratch, &mut expected_ids);
            engine.matches(&event, &mut scratch, &mut ids);
            assert_eq!(ids, expected_ids, "seed {seed}, most {most}, operation {operation}, {event:?}");
            let (mut owners, mut expected_owners) = (Vec::new(), Vec::new());
            naive.interested(&event, &mut scratch, &mut expected_owners);
            engine.interested(&event, &mut scratch, &mut owners);
            assert_eq!(owners, expected_owners, "seed {seed}, most {most}, operation {operation}, {event:?}");
            matches += ids.len();
            tried += live.len();
        } else if live.is_empty() || is_rising != is_against {
            // Ids come again, and now and then one that is there.
            let id = SubscriptionId(random.below(4 * most as u64));
            let (owner, filter) = (Owner(random.below(12)), filter(random));
            let is_new = naive.insert(id, owner, &filter);
            assert_eq!(engine.insert(id, owner, &filter), is_new);
            if is_new {
                live.push(id);
            }
        } else {
            let id = live.swap_remove(random.below(live.len() as u64) as usize);
            assert!(naive.remove(id) && engine.remove(id));
        }
        assert_eq!(engine.len(), live.len());
    }
    let share = matches * 100 / tried;
    assert!((20..60).contains(&share), "about a third is to match: {share} %");
}

#[test]
fn shared_entries_come_and_go_across_generations() {
    for seed in 0..3 {
        for most in [10, 60, 300, 600] {
            churn(seed, most, 6_000);
        }
    }
}
