//! Tests only: small domains, so that covering really happens, with the events that tell all their filters apart.

use enroute_filter::{
    Class, Comparison, Conjunction, Constraint, Event, Filter, Limits, Number, Test, Timestamp, Value, ValueRef,
    ValueSet,
};
use proptest::prelude::*;
use std::sync::Arc;

pub(crate) const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const STRINGS: [&str; 4] = ["", "a", "ab", "b"];
const COMPARISONS: [Comparison; 6] =
    [Comparison::Eq, Comparison::Ne, Comparison::Lt, Comparison::Le, Comparison::Gt, Comparison::Ge];

/// Tests on the numbers 0 to 3, and of presence.
pub(crate) fn number_tests() -> Vec<Test> {
    let mut tests = vec![Test::Absent, Test::Present, Test::In(ValueSet::all_of(Class::Number))];
    for value in 0..4 {
        tests.extend(COMPARISONS.map(|comparison| Test::compare(comparison, value)));
        tests.extend((value + 1..4).map(|high| Test::between(value, high)));
        tests.extend((value + 1..4).map(|other| Test::one_of([value.into(), other.into()])));
        tests.extend((value + 1..4).map(|high| Test::not_between(value, high)));
    }
    distinct(tests)
}

/// Tests without patterns on some values of all classes.
pub(crate) fn mixed_tests() -> Vec<Test> {
    let mut tests = vec![Test::Absent, Test::Present];
    tests.extend(
        [Class::Bool, Class::Number, Class::String, Class::Time].map(|class| Test::In(ValueSet::all_of(class))),
    );
    for value in values() {
        tests.extend(COMPARISONS.map(|comparison| Test::compare(comparison, &value)));
    }
    tests.extend(STRINGS.map(Test::prefix));
    tests.extend(STRINGS.map(|prefix| Test::prefix(prefix).complement()));
    tests.push(Test::one_of([ValueRef::Int(1), ValueRef::String("a"), ValueRef::Bool(true)]));
    tests.push(Test::one_of([ValueRef::Int(1), ValueRef::String("a")]));
    tests.push(Test::one_of([ValueRef::String("a"), ValueRef::String("b")]));
    tests.push(Test::between(0, 1));
    tests.push(Test::between("a", "b"));
    distinct(tests)
}

/// Tests with patterns, their complements, and unions with sets of strings.
pub(crate) fn pattern_tests() -> Vec<Test> {
    let like = |pattern| Test::like(pattern, None).expect("has no escape");
    let mut tests = vec![Test::suffix("b"), Test::suffix("ab"), Test::contains("a"), Test::contains("ab")];
    tests.extend(["a%b", "%a%b", "_", "_b", "a_", "%a%b%", "__%", "ab_%"].map(like));
    tests.extend(tests.clone().iter().map(Test::complement));
    let unions: Vec<Test> = tests
        .iter()
        .flat_map(|test| {
            [Test::prefix("a"), Test::compare(Comparison::Ne, "ab"), tests[2].clone()].map(|set| set.union(test))
        })
        .flatten()
        .collect();
    let intersections: Vec<Test> = tests.iter().filter_map(|test| test.intersection(&Test::prefix("a"))).collect();
    tests.extend(unions);
    tests.extend(intersections);
    distinct(tests)
}

fn distinct(mut tests: Vec<Test>) -> Vec<Test> {
    tests.retain(|test| !test.is_never());
    tests.sort_unstable();
    tests.dedup();
    tests
}

fn values() -> Vec<Value> {
    let scalars = [Value::from(true), Value::from(1), Value::from(2.5), Value::from(Timestamp(7))];
    scalars.into_iter().chain(STRINGS.map(Value::from)).collect()
}

/// Values at, and right beside, every boundary of the numbers' tests; `None` is "absent".
pub(crate) fn number_points() -> Vec<Option<Value>> {
    let mut points = vec![None, Some(Value::Float(f64::NAN)), Some(Value::from("a"))];
    for value in 0..4 {
        points.extend(beside_number(Number::from(value)));
    }
    points
}

/// Values at, and right beside, every boundary of the mixed tests and of prefixes, and strings that tell patterns apart.
pub(crate) fn mixed_points() -> Vec<Option<Value>> {
    let mut points = vec![None, Some(Value::Float(f64::NAN)), Some(Value::Bool(false)), Some(Value::Bool(true))];
    points.extend([0.0, 1.0, 2.5].into_iter().filter_map(Number::from_f64).flat_map(beside_number));
    points.extend([6, 7, 8].map(|time| Some(Value::Time(Timestamp(time)))));
    points.extend(STRINGS.map(|string| Some(Value::from(string))));
    points.extend(STRINGS.map(|string| Some(Value::from(format!("{string}\0")))));
    points.extend(["c", "ac", "abc", "ba", "bb", "bab", "aab", "aba", "é"].map(|string| Some(Value::from(string))));
    points
}

fn beside_number(number: Number) -> [Option<Value>; 3] {
    [number.predecessor(), Some(number), number.successor()].map(|near| near.map(|near| near.to_value().to_value()))
}

/// One event for each combination of points for the first so many names.
pub(crate) fn events(points: &[Option<Value>], names: usize) -> Vec<Event> {
    let mut builders = vec![Event::builder()];
    for name in &NAMES[..names] {
        let with_point = |builder: &enroute_filter::EventBuilder| {
            let builder = builder.clone();
            let event = move |point: &Option<Value>| match point {
                Some(value) => builder.clone().attribute(*name, value.clone()),
                None => builder.clone(),
            };
            points.iter().map(event).collect::<Vec<_>>()
        };
        builders = builders.iter().flat_map(with_point).collect();
    }
    builders.into_iter().map(|builder| builder.build().expect("is small")).collect()
}

/// Conjunctions of tests on some of the first so many names.
pub(crate) fn conjunction(tests: Vec<Test>, names: usize) -> impl Strategy<Value = Conjunction> {
    let test = proptest::option::of(proptest::sample::select(tests));
    proptest::collection::vec(test, names).prop_map(|tests| {
        let named = NAMES.iter().zip(tests).filter_map(|(name, test)| Some(Constraint::new(*name, test?)));
        Conjunction::new(named).expect("each attribute has one test, and something passes it")
    })
}

/// Disjunctions of up to three such conjunctions.
pub(crate) fn filter(tests: Vec<Test>, names: usize) -> impl Strategy<Value = Filter> {
    proptest::collection::vec(conjunction(tests, names), 0..=3)
        .prop_map(|conjunctions| Filter::any_of(conjunctions, &Limits::default()).expect("is small"))
}

/// A conjunction of one constraint.
pub(crate) fn single(name: &str, test: Test) -> Conjunction {
    Conjunction::new([Constraint::new(Arc::from(name), test)]).expect("satisfiable")
}
