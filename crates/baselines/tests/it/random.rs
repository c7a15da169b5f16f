//! Every system does what the naive scan does, whatever is inserted and removed: all kinds of constraints, on domains
//! so small that they meet.

use crate::inputs;
use enroute_baselines::all;
use enroute_filter::{Event, Filter};
use enroute_matcher::SubscriptionId;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
enum Operation {
    Insert(SubscriptionId, Filter),
    Remove(SubscriptionId),
    Match(Event),
}

const OPERATIONS: usize = 400;
const CASES: u32 = 150;

fn operation() -> impl Strategy<Value = Operation> {
    let id = || (0..60_u64).prop_map(SubscriptionId);
    prop_oneof![
        4 => (id(), inputs::filter()).prop_map(|(id, filter)| Operation::Insert(id, filter)),
        2 => id().prop_map(Operation::Remove),
        6 => inputs::event().prop_map(Operation::Match),
    ]
}

#[test]
fn all_systems_agree_with_the_naive_scan() {
    let (pairs, matches) = (Cell::new(0), Cell::new(0));
    let config = Config { cases: CASES, failure_persistence: None, max_shrink_iters: 5_000, ..Config::default() };
    let operations = proptest::collection::vec(operation(), OPERATIONS);
    let result = TestRunner::new(config).run(&operations, |operations| {
        let mut engines = all();
        let mut present = BTreeSet::new();
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        for operation in &operations {
            match operation {
                Operation::Insert(id, filter) => {
                    let new = present.insert(*id);
                    for engine in &mut engines {
                        prop_assert_eq!(engine.insert(*id, filter), new, "{}", engine.name());
                    }
                }
                Operation::Remove(id) => {
                    let old = present.remove(id);
                    for engine in &mut engines {
                        prop_assert_eq!(engine.remove(*id), old, "{}", engine.name());
                    }
                }
                Operation::Match(event) => {
                    engines[0].matches(event, &mut expected);
                    expected.sort_unstable();
                    pairs.set(pairs.get() + present.len());
                    matches.set(matches.get() + expected.len());
                    for engine in &mut engines[1..] {
                        found.push(SubscriptionId(0));
                        engine.matches(event, &mut found);
                        found.sort_unstable();
                        prop_assert_eq!(&found, &expected, "{} on {:?}", engine.name(), event);
                    }
                }
            }
            for engine in &engines {
                prop_assert_eq!((engine.len(), engine.is_empty()), (present.len(), present.is_empty()));
            }
        }
        for engine in &mut engines {
            let full = engine.memory_usage();
            prop_assert!(present.iter().all(|id| engine.remove(*id)), "{}", engine.name());
            prop_assert!(engine.memory_usage() < full, "{}", engine.name());
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let share = matches.get() * 100 / pairs.get();
    assert!((3..50).contains(&share), "the inputs are to match now and then: {share} %");
}
