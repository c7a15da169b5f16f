//! Thousands of subscriptions against the naive scan.

use crate::chance::Random;
use crate::workloads::{BOXES, QUOTES, Workload, ZIPF};
use enroute_matcher::{Enindex, NaiveScan, Owner, Scratch, SubscriptionId};

/// Inserts, removes and matches on both engines; says how many matches there were.
fn compare(workload: Workload, count: u64) -> usize {
    let mut random = Random(count);
    let (mut engine, mut naive) = (Enindex::new(), NaiveScan::new());
    let mut scratch = Scratch::default();
    let (mut found, mut expected, mut total) = (Vec::new(), Vec::new(), 0);
    let (mut owners, mut expected_owners) = (Vec::new(), Vec::new());
    for step in 0..3 * count {
        let id = SubscriptionId(random.below(count));
        let owner = Owner(id.0 % 500);
        if step < count || random.below(2) == 0 {
            let filter = (workload.filter)(&mut random);
            assert_eq!(engine.insert(id, owner, &filter), naive.insert(id, owner, &filter));
        } else {
            assert_eq!(engine.remove(id), naive.remove(id));
        }
        if step % (count / 60) == 0 {
            let event = (workload.event)(&mut random);
            engine.matches(&event, &mut scratch, &mut found);
            found.sort_unstable();
            naive.matches(&event, &mut scratch, &mut expected);
            assert_eq!(found, expected, "after {step} updates, {event:?}");
            engine.interested(&event, &mut scratch, &mut owners);
            naive.interested(&event, &mut scratch, &mut expected_owners);
            assert_eq!(owners, expected_owners);
            total += found.len();
        }
    }
    assert_eq!(engine.len(), naive.len());
    for id in 0..count {
        assert_eq!(engine.remove(SubscriptionId(id)), naive.remove(SubscriptionId(id)));
    }
    assert_eq!(engine.memory_usage(), Enindex::new().memory_usage());
    total
}

#[test]
fn frequent_shapes() {
    assert!(compare(QUOTES, 6_000) > 20_000);
}

#[test]
fn wide_ranges_on_few_attributes() {
    assert!(compare(BOXES, 9_000) > 2_000);
}

#[test]
fn many_attributes() {
    let found = compare(ZIPF, 9_000);
    assert!(found > 150, "{found}");
}
