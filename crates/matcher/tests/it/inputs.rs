//! Random filters and events on domains so small that they meet.

use enroute_filter::{Comparison, Conjunction, Constraint, Event, Filter, Limits, Test, Timestamp, Value};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use std::collections::BTreeMap;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Values of all classes; more often than not a small number, since those are what ranges are about.
fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => (0..4_i64).prop_map(Value::Int),
        2 => select(vec![1.0, 1.5, 1.0_f64.next_up(), 1.0_f64.next_down(), -0.0, f64::INFINITY, f64::NEG_INFINITY]).prop_map(Value::Float),
        // One number apart, and the same f64.
        1 => select(vec![1 << 53, (1 << 53) + 1, i64::MIN, i64::MAX]).prop_map(Value::Int),
        1 => any::<bool>().prop_map(Value::Bool),
        3 => select(vec!["", "a", "ab", "abc", "b", "a\0", "\u{10ffff}", "é"]).prop_map(Value::from),
        1 => select(vec![0, 1, 2, i64::MIN, i64::MAX]).prop_map(|time| Value::Time(Timestamp(time))),
    ]
}

fn test() -> impl Strategy<Value = Test> {
    use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
    let comparison = select(vec![Eq, Ne, Lt, Le, Gt, Ge]);
    let values = |count| proptest::collection::vec(value(), count);
    let text = || select(vec!["", "a", "b", "ab", "c", "\u{10ffff}"]);
    prop_oneof![
        8 => (comparison, value()).prop_map(|(comparison, value)| Test::compare(comparison, &value)),
        3 => (value(), value()).prop_map(|(low, high)| Test::between(&low, &high)),
        1 => (value(), value()).prop_map(|(low, high)| Test::not_between(&low, &high)),
        3 => values(1..4).prop_map(|values| Test::one_of(values.iter().map(Value::as_ref))),
        1 => values(9..20).prop_map(|values| Test::one_of(values.iter().map(Value::as_ref))),
        1 => values(1..3).prop_map(|values| Test::none_of(values.iter().map(Value::as_ref))),
        1 => text().prop_map(Test::prefix),
        1 => text().prop_map(Test::suffix),
        1 => text().prop_map(Test::contains),
        1 => select(vec!["a_%", "_", "%b%", "a%c"]).prop_map(|pattern| Test::like(pattern, None).unwrap()),
        1 => Just(Test::Present),
        2 => Just(Test::Absent),
    ]
}

fn constraint() -> impl Strategy<Value = Constraint> {
    (select(&NAMES[..]), test()).prop_map(|(name, test)| Constraint::new(name, test))
}

fn conjunction(constraints: Vec<Constraint>) -> Filter {
    Conjunction::new(constraints).map_or_else(Filter::never, Filter::from)
}

/// Conjunctions, disjunctions of them, conjunctions of disjunctions (what can be coloured), and the constants.
pub(crate) fn filter() -> impl Strategy<Value = Filter> {
    let limits = Limits::default();
    let constraints = |most| proptest::collection::vec(constraint(), 1..=most);
    let all = |filters: Vec<Filter>| {
        filters.iter().fold(Filter::always(), |all, one| all.and(one, &Limits::default()).unwrap())
    };
    prop_oneof![
        6 => constraints(4).prop_map(conjunction),
        3 => proptest::collection::vec(constraints(3), 1..4).prop_map(move |disjunction| {
            Filter::any_of(disjunction.into_iter().filter_map(Conjunction::new), &limits).unwrap()
        }),
        3 => proptest::collection::vec(constraints(3), 1..4).prop_map(move |factors| {
            let any = |factor: Vec<Constraint>| {
                let single = factor.into_iter().filter_map(|one| Conjunction::new([one]));
                Filter::any_of(single, &Limits::default()).unwrap()
            };
            all(factors.into_iter().map(any).collect())
        }),
        1 => select(vec![Filter::always(), Filter::never()]),
    ]
}

/// Some of the names with a value each; NaN now and then, and a name that no filter knows.
pub(crate) fn event() -> impl Strategy<Value = Event> {
    let value = || prop_oneof![20 => value(), 1 => Just(Value::Float(f64::NAN))];
    let names = subsequence([&NAMES[..], &["unknown"]].concat(), 0..=6);
    let event = names.prop_flat_map(move |names| {
        let values = proptest::collection::vec(value(), names.len());
        values.prop_map(move |values| names.iter().copied().zip(values).collect::<BTreeMap<_, _>>())
    });
    event.prop_map(|attributes| {
        let set = |builder: enroute_filter::EventBuilder, (name, value): (&str, Value)| builder.attribute(name, value);
        attributes.into_iter().fold(Event::builder(), set).build().unwrap()
    })
}
