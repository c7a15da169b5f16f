//! The running example of the Enindex paper, which all systems are tested on.

use crate::Engine;
use crate::indexed::{Index, Indexed};
use enroute_filter::{Event, Filter, Value};
use enroute_matcher::SubscriptionId;

/// s1 to s6.
pub(crate) const PAPER: [(u64, &str); 6] = [
    (1, "A = 2 and B = 3"),
    (2, "A <= 8 and C = 6 and E >= 2"),
    (3, "B <= 4 and C = 6 and E between 2 and 9"),
    (4, "B = 3"),
    (5, "D >= 8 and E <= 9"),
    (6, "B = 3 and C <= 4 and D >= 6"),
];

/// An event's attributes, and the subscriptions that it matches.
pub(crate) struct Sample(pub(crate) &'static [(&'static str, i64)], pub(crate) &'static [u64]);

/// b2 to b5.
pub(crate) const EVENTS: [Sample; 4] = [
    Sample(&[("D", 10)], &[]),
    Sample(&[("D", 10), ("E", 5)], &[5]),
    Sample(&[("A", 2), ("E", 6)], &[]),
    Sample(&[("B", 1), ("C", 6), ("E", 5)], &[3]),
];

pub(crate) fn event(attributes: &[(&str, i64)]) -> Event {
    let builder =
        attributes.iter().fold(Event::builder(), |builder, &(name, value)| builder.attribute(name, Value::Int(value)));
    builder.build().unwrap()
}

/// An engine with these subscriptions.
pub(crate) fn engine<I: Index>(subscriptions: &[(u64, &str)]) -> Indexed<I> {
    let mut engine = Indexed::default();
    for &(id, text) in subscriptions {
        assert!(engine.insert(SubscriptionId(id), &Filter::parse(text).unwrap()));
    }
    engine
}

pub(crate) fn found(engine: &mut dyn Engine, event: &Event) -> Vec<u64> {
    let mut found = vec![SubscriptionId(99)];
    engine.matches(event, &mut found);
    found.sort_unstable();
    found.into_iter().map(|id| id.0).collect()
}

#[test]
fn every_system_answers_the_example() {
    for mut engine in crate::all() {
        for (id, text) in PAPER {
            engine.insert(SubscriptionId(id), &Filter::parse(text).unwrap());
        }
        for Sample(attributes, matching) in EVENTS {
            assert_eq!(found(&mut *engine, &event(attributes)), matching, "{}: {attributes:?}", engine.name());
        }
        // After the update of algorithm 5, and with the subscription of section 4.2.
        assert!(engine.remove(SubscriptionId(3)));
        engine.insert(SubscriptionId(7), &Filter::parse("D >= 6").unwrap());
        let s8 = "(B in (3, 6) or E >= 2) and (A <= 8 or D >= 6) and C <= 4";
        engine.insert(SubscriptionId(8), &Filter::parse(s8).unwrap());
        let events = [
            Sample(&[("D", 10)], &[7]),
            Sample(&[("D", 10), ("E", 5)], &[5, 7]),
            Sample(&[("A", 2), ("E", 6)], &[]),
            Sample(&[("B", 1), ("C", 6), ("E", 5)], &[]),
            Sample(&[("A", 2), ("B", 3), ("C", 4)], &[1, 4, 8]),
            Sample(&[("B", 6), ("C", 1), ("D", 7)], &[7, 8]),
            Sample(&[("A", 8), ("C", 4), ("E", 2)], &[8]),
            Sample(&[("C", 4), ("D", 7), ("E", 1)], &[7]),
            Sample(&[("B", 6), ("C", 1), ("D", 5)], &[]),
        ];
        for Sample(attributes, matching) in events {
            assert_eq!(found(&mut *engine, &event(attributes)), matching, "{}: {attributes:?}", engine.name());
        }
    }
}
