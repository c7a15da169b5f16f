use super::*;
use crate::samples::compare_wide;
use proptest::prelude::*;
use std::hash::DefaultHasher;

fn float(float: f64) -> Number {
    Number::from_f64(float).unwrap()
}

fn int(int: i64) -> Number {
    Number::from(int)
}

fn hash(number: Number) -> u64 {
    let mut hasher = DefaultHasher::new();
    number.hash(&mut hasher);
    hasher.finish()
}

/// Integers and floats, near the places where they part as well as anywhere.
fn number() -> impl Strategy<Value = Number> {
    let landmarks = [0, 1, -1, 1 << 53, -(1 << 53), i64::MAX, i64::MIN];
    let near =
        (proptest::sample::select(landmarks.to_vec()), -3_i64..=3, any::<bool>()).prop_map(|(at, by, as_float)| {
            let near = at.saturating_add(by);
            if as_float { float(near as f64 + by as f64 / 4.0) } else { int(near) }
        });
    let any_float = any::<u64>().prop_filter_map("NaN", |bits| Number::from_f64(f64::from_bits(bits)));
    prop_oneof![near, any::<i64>().prop_map(Number::from), any_float]
}

#[test]
fn the_line_is_ordered_by_mathematical_value() {
    let two_53 = 1_i64 << 53;
    let ascending = [
        Number::MIN,
        float(f64::MIN),
        float(-TWO_POW_63.next_up()),
        int(i64::MIN),
        int(i64::MIN + 1),
        int(-two_53 - 1),
        float(-two_53 as f64),
        float(-1.5),
        int(-1),
        float(-f64::from_bits(1)),
        int(0),
        float(f64::from_bits(1)),
        float(1.0_f64.next_down()),
        int(1),
        float(1.0_f64.next_up()),
        float((1_i64 << 51) as f64 + 0.5),
        float(two_53 as f64),
        int(two_53 + 1),
        float(two_53 as f64 + 2.0),
        int(i64::MAX),
        float(TWO_POW_63),
        float(f64::MAX),
        Number::MAX,
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(a.cmp(b), i.cmp(&j), "{a:?} {b:?}");
        }
    }
}

#[test]
fn equal_numbers_are_one() {
    for (a, b) in [(float(-0.0), int(0)), (float(2.0), int(2)), (float(-TWO_POW_63), int(i64::MIN))] {
        assert_eq!(a, b);
        assert_eq!(hash(a), hash(b));
        assert_eq!(a.to_value(), b.to_value());
    }
    assert_eq!(Number::from_f64(f64::NAN), None);
    assert_eq!(Number::MAX, float(f64::INFINITY));
    assert_eq!(Number::MIN, float(f64::NEG_INFINITY));
}

#[test]
fn the_line_has_two_ends() {
    assert_eq!(Number::MAX.successor(), None);
    assert_eq!(Number::MIN.predecessor(), None);
    assert_eq!(int(i64::MAX).successor(), Some(float(TWO_POW_63)));
    assert_eq!(int(1 << 53).successor(), Some(int((1 << 53) + 1)));
    assert_eq!(int(50).successor(), Some(float(50.0_f64.next_up())));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn neighbours_have_nothing_between(a in number(), b in number()) {
        if let Some(next) = a.successor() {
            prop_assert!(a < next);
            prop_assert_eq!(next.predecessor(), Some(a));
            prop_assert!(b <= a || b >= next);
        }
        if let Some(last) = a.predecessor() {
            prop_assert!(last < a);
            prop_assert_eq!(last.successor(), Some(a));
        }
    }

    #[test]
    fn comparing_loses_nothing(whole in any::<i64>(), near in -2_i64..3, bits in any::<u64>()) {
        let nearby = (whole as f64) + near as f64;
        for other in [nearby, f64::from_bits(bits)] {
            let order = Number::from_f64(other).map(|other| int(whole).cmp(&other));
            prop_assert_eq!(order, compare_wide(whole, other));
        }
    }

    #[test]
    fn rounding_keeps_the_order(a in number(), b in number()) {
        prop_assert!(a > b || a.to_f64_rounded() <= b.to_f64_rounded());
        prop_assert_eq!(a.partial_cmp(&b).map(Ordering::reverse), b.partial_cmp(&a));
        prop_assert!(a != b || hash(a) == hash(b));
    }
}
