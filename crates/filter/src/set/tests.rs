use super::*;
use crate::samples::{self, candidates, test};
use crate::{Test, Value};
use proptest::prelude::*;

/// All that an attribute may be in the tests: each candidate, and absent.
fn states() -> Vec<Option<Value>> {
    candidates().into_iter().map(Some).chain([None]).collect()
}

fn passes(test: &Test, state: &Option<Value>) -> bool {
    test.matches(state.as_ref().map(Value::as_ref))
}

#[test]
fn intervals_are_joined_where_nothing_lies_between() {
    let number = |comparison, value: f64| ValueSet::compare(comparison, value.into());
    let next = 5.0_f64.next_up();
    assert_eq!(number(Comparison::Gt, 5.0), number(Comparison::Ge, next));
    assert_eq!(number(Comparison::Le, 5.0).union(&number(Comparison::Ge, next)), ValueSet::all_of(Class::Number));
    assert_ne!(number(Comparison::Gt, 50.0), number(Comparison::Ge, 51.0));
    let time = |comparison, time| ValueSet::compare(comparison, Timestamp(time).into());
    assert_eq!(time(Comparison::Gt, 5), time(Comparison::Ge, 6));
    let string = |comparison, string: &str| ValueSet::compare(comparison, string.into());
    assert_eq!(string(Comparison::Gt, "a"), string(Comparison::Ge, "a\0"));
}

#[test]
fn ways_to_write_one_set() {
    let (one, two, three) = (ValueRef::Int(1), ValueRef::Float(2.0), ValueRef::Int(3));
    let listed = Test::one_of([three, one, two, one]);
    let at = |value| Test::between(value, value);
    assert_eq!(Some(listed), at(three).union(&at(one)).and_then(|set| set.union(&at(ValueRef::Int(2)))));
    assert_eq!(Test::like("ab%", None).unwrap(), Test::prefix("ab"));
    assert_eq!(
        Test::prefix("ab"),
        Test::compare(Comparison::Ge, "ab").intersection(&Test::compare(Comparison::Lt, "ac")).unwrap()
    );
    assert_eq!(Test::like("ab", None).unwrap(), Test::compare(Comparison::Eq, "ab"));
    assert_eq!(Test::suffix(""), Test::In(ValueSet::all_of(Class::String)));
    assert_eq!(Test::like("%b%", None).unwrap(), Test::contains("b"));
}

#[test]
fn prefixes_end_where_the_next_string_starts() {
    for (prefix, end) in [
        ("", None),
        ("ab", Some("ac")),
        ("a\u{10ffff}", Some("b")),
        ("\u{10ffff}\u{10ffff}", None),
        ("\u{d7ff}", Some("\u{e000}")),
        ("a\u{7f}", Some("a\u{80}")),
    ] {
        let interval = prefix_interval(prefix);
        let found: Vec<_> = interval.iter().map(|interval| (&*interval.start, interval.end.as_deref())).collect();
        assert_eq!(found, [(prefix, end)]);
    }
}

#[test]
fn reading_a_set() {
    let set = ValueSet::one_of([ValueRef::Int(7), ValueRef::Bool(true), ValueRef::String("x")])
        .union(&ValueSet::compare(Comparison::Lt, ValueRef::Float(1.0)));
    assert_eq!(set.classes().collect::<Vec<_>>(), [Class::Bool, Class::Number, Class::String]);
    let below_one = Number::from_f64(1.0_f64.next_down()).unwrap();
    let seven = Number::from(7);
    assert_eq!(set.numbers().intervals().collect::<Vec<_>>(), [(Number::MIN, below_one), (seven, seven)]);
    assert_eq!(set.strings().intervals().collect::<Vec<_>>(), [("x", Some("x\0"))]);
    assert!(set.bools().contains(true) && !set.bools().contains(false));
    let times = ValueSet::compare(Comparison::Ne, Timestamp(0).into());
    let sides = [(Timestamp(i64::MIN), Timestamp(-1)), (Timestamp(1), Timestamp(i64::MAX))];
    assert_eq!(times.times().intervals().collect::<Vec<_>>(), sides);
}

#[test]
fn single_strings_need_no_pattern() {
    let listed = Test::one_of(["a", "ab", "ba"].map(ValueRef::from));
    let both = |a: &Test, b: &Test| a.intersection(b);
    let ends_with_a = Test::suffix("a");
    assert_eq!(both(&listed, &ends_with_a), Some(Test::one_of(["a", "ba"].map(ValueRef::from))));
    assert_eq!(both(&listed, &Test::suffix("c")), None);
    assert_eq!(listed.union(&ends_with_a).unwrap(), Test::compare(Comparison::Eq, "ab").union(&ends_with_a).unwrap());
    assert!(ends_with_a.covers(&Test::one_of(["a", "ba"].map(ValueRef::from))));
    assert!(!ends_with_a.overlaps(&Test::compare(Comparison::Eq, "ab")));
}

#[test]
fn patterns_that_say_nothing_are_left_out() {
    let unlike = Test::like("a%b", None).unwrap().complement();
    let from_b = Test::compare(Comparison::Ge, "b");
    assert_eq!(unlike.intersection(&from_b), Some(from_b.clone()));
    assert!(unlike.covers(&from_b));
    let (b, ab) = (Test::suffix("b"), Test::suffix("ab"));
    assert_eq!(b.intersection(&ab), Some(ab.clone()));
    assert_eq!(b.union(&ab), Some(b.clone()));
    assert_eq!(ab.intersection(&b.complement()), None);
    assert_eq!(b.intersection(&Test::suffix("c")), None);
    assert!(b.covers(&ab) && !ab.covers(&b));
    assert_eq!(unlike.complement(), Test::like("a%b", None).unwrap());
}

#[test]
fn nan_is_present_and_no_more() {
    let nan = Some(ValueRef::Float(f64::NAN));
    let all: Option<Test> = [Class::Bool, Class::Number, Class::String, Class::Time]
        .into_iter()
        .map(|class| Test::In(ValueSet::all_of(class)))
        .reduce(|a, b| a.union(&b).unwrap());
    let all = all.unwrap();
    assert!(Test::Present.matches(nan) && !all.matches(nan) && !Test::Absent.matches(nan));
    assert!(Test::Present.covers(&all) && !all.covers(&Test::Present));
    for comparison in [Comparison::Eq, Comparison::Ne, Comparison::Lt, Comparison::Ge] {
        assert!(Test::compare(comparison, f64::NAN).is_never());
    }
    assert!(Test::none_of([ValueRef::Int(1), ValueRef::Float(f64::NAN)]).is_never());
    assert_eq!(Test::one_of([ValueRef::Int(1), ValueRef::Float(f64::NAN)]), Test::compare(Comparison::Eq, 1));
}

#[test]
fn complements_stay_in_their_class() {
    assert!(Test::one_of([ValueRef::Int(1), ValueRef::from("a")]).complement().is_never());
    assert!(Test::none_of([ValueRef::Int(1), ValueRef::from("a")]).is_never());
    assert_eq!(Test::compare(Comparison::Eq, true).complement(), Test::compare(Comparison::Eq, false));
    assert_eq!(Test::compare(Comparison::Lt, 5).complement(), Test::compare(Comparison::Ge, 5));
    assert_eq!(Test::between(5, 3), Test::In(ValueSet::none()));
    assert_eq!(Test::not_between(5, 3), Test::In(ValueSet::all_of(Class::Number)));
    assert!(Test::between(5, "a").is_never());
    assert_eq!(Test::Absent.complement(), Test::Present);
}

proptest! {
    #![proptest_config(samples::cases(20_000))]

    #[test]
    fn algebra_agrees_with_direct_reading((spelling, test) in test(true)) {
        for state in states() {
            let value = state.as_ref().map(Value::as_ref);
            prop_assert_eq!(test.matches(value), spelling.holds(value), "{:?}", value);
        }
    }

    #[test]
    fn without_patterns_every_answer_is_exact((_, a) in test(false), (_, b) in test(false)) {
        prop_assert!(!a.has_patterns());
        let states = states();
        let all = |rule: fn(bool, bool) -> bool| states.iter().all(|state| rule(passes(&a, state), passes(&b, state)));
        prop_assert_eq!(a.covers(&b), all(|a, b| a || !b));
        prop_assert_eq!(a.overlaps(&b), !all(|a, b| !(a && b)));
        prop_assert_eq!(a == b, all(|a, b| a == b));
        prop_assert_eq!(a.intersection(&b).is_some(), a.overlaps(&b));
        prop_assert!(a.intersection(&b).is_none_or(|both| a.covers(&both) && b.covers(&both)));
    }

}

proptest! {
    #![proptest_config(samples::cases(8_000))]

    #[test]
    fn with_patterns_every_answer_is_sound((_, a) in test(true), (_, b) in test(true)) {
        for state in states() {
            let (in_a, in_b) = (passes(&a, &state), passes(&b, &state));
            prop_assert!(!a.covers(&b) || in_a || !in_b, "{:?}", state);
            prop_assert!(a.overlaps(&b) || !(in_a && in_b), "{:?}", state);
        }
        prop_assert!(a.covers(&a) && a.overlaps(&a));
        prop_assert_eq!(a.overlaps(&b), b.overlaps(&a));
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.union(&a), Some(a.clone()));
        if let Some(union) = a.union(&b) {
            prop_assert!(union.covers(&a) && union.covers(&b));
        }
    }

    #[test]
    fn complements_agree_within_the_class((_, test) in test(true)) {
        let Test::In(set) = test else { return Ok(()) };
        for class in [Class::Bool, Class::Number, Class::String, Class::Time] {
            let complement = set.complement_within(class);
            for value in candidates() {
                let is_nan = matches!(value, Value::Float(float) if float.is_nan());
                let expected = value.class() == class && !is_nan && !set.contains(value.as_ref());
                prop_assert_eq!(complement.contains(value.as_ref()), expected, "{:?}", value);
            }
        }
    }
}
