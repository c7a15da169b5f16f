//! Enough subscriptions that lists, trees and blocks split, and shrink again.

use enroute_baselines::{Engine, all};
use enroute_filter::{Comparison, Conjunction, Constraint, Event, Filter, Test, Value};
use enroute_matcher::SubscriptionId;

const SUBSCRIPTIONS: u64 = 4_000;
const ATTRIBUTES: u64 = 9;
const EVENTS: u64 = 150;

/// A generator that is good enough for inputs.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// Integers, floats and words, by attribute.
    fn value(&mut self, attribute: u64) -> Value {
        match attribute % 3 {
            0 => Value::Int(self.below(200) as i64 - 50),
            1 => Value::Float(self.below(4_000) as f64 / 100.0 - 5.0),
            _ => {
                let letters = (0..2 + self.below(8)).map(|_| char::from(b'a' + self.below(3) as u8));
                Value::String(letters.collect())
            }
        }
    }

    fn test(&mut self, attribute: u64) -> Test {
        let (one, other) = (self.value(attribute), self.value(attribute));
        match self.below(8) {
            0 | 1 => Test::compare(Comparison::Ge, &one),
            2 | 3 => Test::compare(Comparison::Le, &one),
            4 => Test::between(&one, &other),
            5 => Test::compare(Comparison::Ne, &one),
            6 => Test::one_of([one.as_ref(), other.as_ref()]),
            _ => match &one {
                Value::String(string) => Test::prefix(&string[..2]),
                _ => Test::compare(Comparison::Eq, &one),
            },
        }
    }

    fn filter(&mut self) -> Filter {
        let constraints = (0..2 + self.below(3)).map(|_| {
            let attribute = self.below(ATTRIBUTES);
            Constraint::new(format!("a{attribute}"), self.test(attribute))
        });
        Conjunction::new(constraints.collect::<Vec<_>>()).map_or_else(Filter::never, Filter::from)
    }

    fn event(&mut self) -> Event {
        let mut builder = Event::builder();
        for attribute in 0..ATTRIBUTES {
            if self.below(4) > 0 {
                builder = builder.attribute(format!("a{attribute}"), self.value(attribute));
            }
        }
        builder.build().unwrap()
    }
}

#[test]
fn all_systems_agree_on_thousands() {
    let mut random = Random(2_013);
    let mut engines = all();
    let mut filters: Vec<Filter> = Vec::new();
    for id in 0..SUBSCRIPTIONS {
        // Every eighth is one that is there already.
        let filter = if id % 8 == 7 { filters[random.below(id) as usize].clone() } else { random.filter() };
        filters.push(filter.clone());
        engines.iter_mut().for_each(|engine| assert!(engine.insert(SubscriptionId(id), &filter)));
    }
    let full = compare(&mut engines, &mut random);
    assert!(full > EVENTS as usize * 50, "{full}");
    let sizes: Vec<usize> = engines.iter().map(|engine| engine.memory_usage()).collect();
    for id in (0..SUBSCRIPTIONS).filter(|id| id % 10 > 0) {
        engines.iter_mut().for_each(|engine| assert!(engine.remove(SubscriptionId(id)), "{}", engine.name()));
    }
    let few = compare(&mut engines, &mut random);
    assert!((full / 20..full / 5).contains(&few), "{few} of {full}");
    // Back again, in numbers that others had.
    for id in (0..SUBSCRIPTIONS).rev().filter(|id| id % 10 > 0) {
        engines.iter_mut().for_each(|engine| assert!(engine.insert(SubscriptionId(id), &filters[id as usize])));
    }
    compare(&mut engines, &mut random);
    for (engine, size) in engines.iter().zip(sizes) {
        assert!(engine.memory_usage() < 2 * size, "{}: {} after {size}", engine.name(), engine.memory_usage());
    }
}

/// Matches events with all engines; how many matches there were.
fn compare(engines: &mut [Box<dyn Engine>], random: &mut Random) -> usize {
    let (mut expected, mut found, mut matches) = (Vec::new(), Vec::new(), 0);
    for _ in 0..EVENTS {
        let event = random.event();
        engines[0].matches(&event, &mut expected);
        expected.sort_unstable();
        matches += expected.len();
        for engine in &mut engines[1..] {
            engine.matches(&event, &mut found);
            found.sort_unstable();
            assert_eq!(found, expected, "{} on {event:?}", engine.name());
        }
    }
    matches
}
