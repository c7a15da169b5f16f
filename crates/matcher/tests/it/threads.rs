//! One engine, several threads, a scratch each.

use crate::chance::Random;
use crate::workloads::{BOXES, QUOTES, Workload, ZIPF};
use enroute_filter::Event;
use enroute_matcher::{Enindex, NaiveScan, Owner, Scratch, SubscriptionId};
use std::thread;

const SUBSCRIPTIONS: u64 = 4_000;
const EVENTS: usize = 200;
const THREADS: usize = 4;

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Enindex>();
    is_shared::<NaiveScan>();
    is_shared::<Scratch>();
};

type Answer = (Vec<SubscriptionId>, Vec<Owner>);

fn answer(engine: &Enindex, event: &Event, scratch: &mut Scratch) -> Answer {
    let (mut ids, mut owners) = (Vec::new(), Vec::new());
    engine.matches(event, scratch, &mut ids);
    ids.sort_unstable();
    engine.interested(event, scratch, &mut owners);
    (ids, owners)
}

/// All threads ask about all events, each from another one on; between the rounds entries are placed by what they saw.
fn threads_find_the_same(workload: Workload) {
    let mut random = Random(9);
    let (mut engine, mut naive) = (Enindex::new(), NaiveScan::new());
    let events: Vec<Event> = (0..EVENTS).map(|_| (workload.event)(&mut random)).collect();
    for round in 0..3 {
        for id in 0..SUBSCRIPTIONS {
            let (id, filter) = (SubscriptionId(round * SUBSCRIPTIONS + id), (workload.filter)(&mut random));
            assert!(engine.insert(id, Owner(id.0 % 400), &filter) && naive.insert(id, Owner(id.0 % 400), &filter));
            if round > 0 {
                let old = SubscriptionId(id.0 - SUBSCRIPTIONS);
                assert!(engine.remove(old) && naive.remove(old));
            }
        }
        let mut scratch = Scratch::default();
        let expected: Vec<Answer> = events.iter().map(|event| answer(&engine, event, &mut scratch)).collect();
        for (event, (ids, owners)) in events.iter().zip(&expected).step_by(8) {
            let (mut true_ids, mut true_owners) = (Vec::new(), Vec::new());
            naive.matches(event, &mut scratch, &mut true_ids);
            naive.interested(event, &mut scratch, &mut true_owners);
            assert_eq!((ids, owners), (&true_ids, &true_owners));
        }
        let (engine, events, expected) = (&engine, &events, &expected);
        let ask = |first: usize| {
            let mut scratch = Scratch::default();
            for place in (0..5 * EVENTS).map(|step| (first * EVENTS / THREADS + step) % EVENTS) {
                assert_eq!(answer(engine, &events[place], &mut scratch), expected[place], "{:?}", events[place]);
            }
        };
        thread::scope(|scope| (0..THREADS).for_each(|first| drop(scope.spawn(move || ask(first)))));
    }
}

#[test]
fn threads_find_the_same_in_bitmaps() {
    threads_find_the_same(BOXES);
}

#[test]
fn threads_find_the_same_in_columns() {
    threads_find_the_same(QUOTES);
}

#[test]
fn threads_find_the_same_in_lists() {
    threads_find_the_same(ZIPF);
}
