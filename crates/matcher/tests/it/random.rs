//! Every engine does what the naive scan does, whatever is inserted and removed.

use crate::engine::engines;
use crate::inputs;
use enroute_filter::{Event, Filter};
use enroute_matcher::{Owner, Scratch, SubscriptionId};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
enum Operation {
    Insert(SubscriptionId, Owner, Filter),
    Remove(SubscriptionId),
    Match(Event),
}

const OPERATIONS: usize = 400;
const CASES: u32 = 300;

fn operation() -> impl Strategy<Value = Operation> {
    let id = || (0..60_u64).prop_map(SubscriptionId);
    let owner = (0..6_u64).prop_map(Owner);
    prop_oneof![
        4 => (id(), owner, inputs::filter()).prop_map(|(id, owner, filter)| Operation::Insert(id, owner, filter)),
        2 => id().prop_map(Operation::Remove),
        6 => inputs::event().prop_map(Operation::Match),
    ]
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() })
}

#[test]
fn all_engines_agree_with_the_naive_scan() {
    let (events, matches) = (Cell::new(0), Cell::new(0));
    let operations = proptest::collection::vec(operation(), OPERATIONS);
    let result = runner(CASES).run(&operations, |operations| {
        let mut engines = engines();
        let empty: Vec<usize> = engines.iter().map(|engine| engine.memory_usage()).collect();
        let mut present = BTreeSet::new();
        // One scratch for all, as nothing in it may depend on the engine it last served.
        let mut scratch = Scratch::default();
        for operation in &operations {
            match operation {
                Operation::Insert(id, owner, filter) => {
                    let new = present.insert(*id);
                    for engine in &mut engines {
                        prop_assert_eq!(engine.insert(*id, *owner, filter), new, "{}", engine.name());
                    }
                }
                Operation::Remove(id) => {
                    let old = present.remove(id);
                    for engine in &mut engines {
                        prop_assert_eq!(engine.remove(*id), old, "{}", engine.name());
                        prop_assert!(!engine.contains(*id));
                    }
                }
                Operation::Match(event) => {
                    let (mut ids, mut owners) = (Vec::new(), Vec::new());
                    engines[0].matches(event, &mut scratch, &mut ids);
                    engines[0].interested(event, &mut scratch, &mut owners);
                    events.set(events.get() + present.len());
                    matches.set(matches.get() + ids.len());
                    for engine in &engines[1..] {
                        let (mut its_ids, mut its_owners) = (vec![SubscriptionId(0)], vec![Owner(0)]);
                        engine.matches(event, &mut scratch, &mut its_ids);
                        engine.interested(event, &mut scratch, &mut its_owners);
                        prop_assert_eq!(&its_ids, &ids, "{} on {:?}", engine.name(), event);
                        prop_assert_eq!(&its_owners, &owners, "{} on {:?}", engine.name(), event);
                    }
                }
            }
            for engine in &engines {
                prop_assert_eq!((engine.len(), engine.is_empty()), (present.len(), present.is_empty()));
            }
        }
        for (engine, empty) in engines.iter_mut().zip(empty) {
            prop_assert!(present.iter().all(|id| engine.contains(*id) && engine.remove(*id)));
            prop_assert_eq!(engine.memory_usage(), empty, "{}", engine.name());
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    let share = matches.get() * 100 / events.get();
    assert!((3..50).contains(&share), "the inputs are to match now and then: {share} %");
}

#[test]
fn an_id_that_was_removed_may_come_again_with_another_filter() {
    let event = Event::builder().attribute("a", 1).build().unwrap();
    let mut scratch = Scratch::default();
    for mut engine in engines() {
        let (id, owner) = (SubscriptionId(u64::MAX), Owner(3));
        for filter in [Filter::always(), Filter::never(), Filter::always()] {
            let expected: &[Owner] = if filter == Filter::never() { &[] } else { &[owner] };
            assert!(engine.insert(id, owner, &filter) && !engine.insert(id, Owner(4), &Filter::never()));
            let mut owners = Vec::new();
            engine.interested(&event, &mut scratch, &mut owners);
            assert_eq!(owners, expected, "{}", engine.name());
            assert!(engine.remove(id) && !engine.remove(id));
        }
    }
}
