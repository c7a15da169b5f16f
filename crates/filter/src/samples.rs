//! Small domains for property tests, in which filters really meet: a few values and all that lie directly beside them, and
//! tests of one attribute as expressions, with a direct reading of each as its truth.

use crate::set::Line;
use crate::{Comparison, Number, Test, Timestamp, Value, ValueRef};
use proptest::prelude::*;
use proptest::sample::select;
use std::cmp::Ordering;

const COMPARISONS: [Comparison; 6] =
    [Comparison::Eq, Comparison::Ne, Comparison::Lt, Comparison::Le, Comparison::Gt, Comparison::Ge];

const PATTERNS: [&str; 10] = ["%a", "%b", "%ab", "%a%", "a%b", "_", "_%", "%_b", "__", "a%a%"];

/// A test of one attribute, as it might be written.
#[derive(Clone, Debug)]
pub(crate) enum Spelling {
    Absent,
    Present,
    Compare(Comparison, Value),
    OneOf(Vec<Value>),
    NoneOf(Vec<Value>),
    Between(Value, Value),
    NotBetween(Value, Value),
    Prefix(&'static str),
    Like(&'static str),
    NotLike(&'static str),
    And(Box<Spelling>, Box<Spelling>),
    Or(Box<Spelling>, Box<Spelling>),
}

impl Spelling {
    /// The test by means of the algebra; `None` if it is not one test, or never true.
    pub(crate) fn test(&self) -> Option<Test> {
        let refs = |values: &'_ [Value]| values.iter().map(Value::to_owned).collect::<Vec<_>>();
        let test = match self {
            Spelling::Absent => Test::Absent,
            Spelling::Present => Test::Present,
            Spelling::Compare(comparison, value) => Test::compare(*comparison, value),
            Spelling::OneOf(values) => Test::one_of(refs(values).iter().map(Value::as_ref)),
            Spelling::NoneOf(values) => Test::none_of(refs(values).iter().map(Value::as_ref)),
            Spelling::Between(low, high) => Test::between(low, high),
            Spelling::NotBetween(low, high) => Test::not_between(low, high),
            Spelling::Prefix(prefix) => Test::prefix(prefix),
            Spelling::Like(pattern) => Test::like(pattern, None).unwrap(),
            Spelling::NotLike(pattern) => Test::like(pattern, None).unwrap().complement(),
            Spelling::And(a, b) => a.test()?.intersection(&b.test()?)?,
            Spelling::Or(a, b) => match (a.test(), b.test()) {
                (Some(a), Some(b)) => a.union(&b)?,
                (a, b) => a.or(b)?,
            },
        };
        (!test.is_never()).then_some(test)
    }

    /// Whether it is true of a value, by direct reading.
    pub(crate) fn holds(&self, value: Option<ValueRef<'_>>) -> bool {
        let is = |comparison, operand: &Value| value.is_some_and(|value| compares(comparison, value, operand.as_ref()));
        let fits = |pattern: &str| match value {
            Some(ValueRef::String(string)) => Some(like(pattern, string)),
            _ => None,
        };
        match self {
            Spelling::Absent => value.is_none(),
            Spelling::Present => value.is_some(),
            Spelling::Compare(comparison, operand) => is(*comparison, operand),
            Spelling::OneOf(operands) => operands.iter().any(|operand| is(Comparison::Eq, operand)),
            Spelling::NoneOf(operands) => value.is_some() && operands.iter().all(|operand| is(Comparison::Ne, operand)),
            Spelling::Between(low, high) => is(Comparison::Ge, low) && is(Comparison::Le, high),
            Spelling::NotBetween(low, high) => is(Comparison::Lt, low) || is(Comparison::Gt, high),
            Spelling::Prefix(prefix) => matches!(value, Some(ValueRef::String(string)) if string.starts_with(prefix)),
            Spelling::Like(pattern) => fits(pattern) == Some(true),
            Spelling::NotLike(pattern) => fits(pattern) == Some(false),
            Spelling::And(a, b) => a.holds(value) && b.holds(value),
            Spelling::Or(a, b) => a.holds(value) || b.holds(value),
        }
    }
}

/// Compares by way of wider types than the algebra uses.
fn compares(comparison: Comparison, value: ValueRef<'_>, operand: ValueRef<'_>) -> bool {
    let order = match (value, operand) {
        (ValueRef::Bool(a), ValueRef::Bool(b)) => {
            return matches!((comparison, a == b), (Comparison::Eq, true) | (Comparison::Ne, false));
        }
        (ValueRef::Int(a), ValueRef::Int(b)) => Some(a.cmp(&b)),
        (ValueRef::Float(a), ValueRef::Float(b)) => a.partial_cmp(&b),
        (ValueRef::Int(a), ValueRef::Float(b)) => compare_wide(a, b),
        (ValueRef::Float(a), ValueRef::Int(b)) => compare_wide(b, a).map(Ordering::reverse),
        (ValueRef::String(a), ValueRef::String(b)) => Some(a.chars().cmp(b.chars())),
        (ValueRef::Time(a), ValueRef::Time(b)) => Some(a.0.cmp(&b.0)),
        _ => None,
    };
    match comparison {
        Comparison::Eq => order.is_some_and(Ordering::is_eq),
        Comparison::Ne => order.is_some_and(Ordering::is_ne),
        Comparison::Lt => order.is_some_and(Ordering::is_lt),
        Comparison::Le => order.is_some_and(Ordering::is_le),
        Comparison::Gt => order.is_some_and(Ordering::is_gt),
        Comparison::Ge => order.is_some_and(Ordering::is_ge),
    }
}

/// An integer against a float's integral part as 128 bits, then against its fraction.
pub(crate) fn compare_wide(int: i64, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    let by_integral = i128::from(int).cmp(&(float.trunc() as i128));
    Some(by_integral.then_with(|| 0.0.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal)))
}

/// LIKE by plain recursion.
pub(crate) fn like(pattern: &str, text: &str) -> bool {
    let rest = |text: &str| text.chars().next().map(|first| text[first.len_utf8()..].to_owned());
    match (pattern.chars().next(), rest(pattern)) {
        (Some('%'), Some(behind)) => like(&behind, text) || rest(text).is_some_and(|text| like(pattern, &text)),
        (Some('_'), Some(behind)) => rest(text).is_some_and(|text| like(&behind, &text)),
        (Some(char), Some(behind)) => text.starts_with(char) && rest(text).is_some_and(|text| like(&behind, &text)),
        _ => text.is_empty(),
    }
}

fn operands() -> Vec<Value> {
    let numbers = [
        Value::Int(0),
        Value::Float(-0.0),
        Value::Int(1),
        Value::Float(1.5),
        Value::Int((1 << 53) + 1),
        Value::Float(9_007_199_254_740_992.0),
        Value::Int(i64::MAX),
        Value::Float(9_223_372_036_854_775_808.0),
        Value::Float(f64::INFINITY),
    ];
    let strings = ["", "a", "ab", "b", "\u{10ffff}"].map(Value::from);
    let times = [i64::MIN, 0, 7].map(|time| Value::Time(Timestamp(time)));
    let others = [Value::Bool(true), Value::Bool(false), Value::Float(f64::NAN)];
    numbers.into_iter().chain(strings).chain(times).chain(others).collect()
}

/// The operands that tests are made of, what lies directly beside them, and some strings that fit patterns: at least one
/// value from every region that tests of these operands can tell apart. Each number occurs as an integer and as a float
/// where it is both.
pub(crate) fn candidates() -> Vec<Value> {
    let mut candidates = operands();
    for operand in operands() {
        match operand {
            Value::Int(_) | Value::Float(_) => {
                let number = match operand {
                    Value::Int(int) => Some(Number::from(int)),
                    Value::Float(float) => Number::from_f64(float),
                    _ => None,
                };
                let Some(number) = number else { continue };
                let around = [number.predecessor(), Some(number), number.successor()];
                for number in around.into_iter().flatten() {
                    candidates.push(number.to_value().to_value());
                    let float = number.to_f64_rounded();
                    candidates.extend((Number::from_f64(float) == Some(number)).then_some(Value::Float(float)));
                }
            }
            Value::Time(Timestamp(time)) => {
                candidates.extend([time.saturating_sub(1), time + 1].map(|time| Value::Time(Timestamp(time))));
            }
            Value::String(string) => candidates.push(Value::String(format!("{string}\0"))),
            Value::Bool(_) => {}
        }
    }
    candidates.push(Value::Float(f64::NEG_INFINITY));
    candidates.push(Value::Time(Timestamp(i64::MAX)));
    // The first strings behind the prefixes, and a few more.
    candidates.extend(["ac", "c", "ba", "aa", "aab", "abb", "aba", "bab", "z", "zz"].map(Value::from));
    let least = Value::String(Box::<str>::least().into());
    assert!(candidates.contains(&least));
    candidates
}

/// A property's number of cases. About half of the spellings are no single test, and are passed over.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { max_local_rejects: 100 * cases, ..ProptestConfig::with_cases(cases) }
}

fn operand() -> impl Strategy<Value = Value> + Clone {
    select(operands())
}

/// Tests of one comparison each.
fn leaf(with_patterns: bool) -> BoxedStrategy<Spelling> {
    let values = proptest::collection::vec(operand(), 0..4);
    let leaf = prop_oneof![
        1 => Just(Spelling::Absent),
        1 => Just(Spelling::Present),
        4 => (select(&COMPARISONS[..]), operand()).prop_map(|(comparison, value)| Spelling::Compare(comparison, value)),
        1 => values.clone().prop_map(Spelling::OneOf),
        1 => values.prop_map(Spelling::NoneOf),
        1 => (operand(), operand()).prop_map(|(low, high)| Spelling::Between(low, high)),
        1 => (operand(), operand()).prop_map(|(low, high)| Spelling::NotBetween(low, high)),
        1 => select(&["", "a", "ab", "\u{10ffff}"][..]).prop_map(Spelling::Prefix),
    ];
    if with_patterns {
        let pattern = select(&PATTERNS[..]);
        prop_oneof![
            2 => leaf,
            1 => pattern.clone().prop_map(Spelling::Like),
            1 => pattern.prop_map(Spelling::NotLike),
        ]
        .boxed()
    } else {
        leaf.boxed()
    }
}

/// Tests of one attribute, put together of a few comparisons.
fn spelling(with_patterns: bool) -> impl Strategy<Value = Spelling> {
    leaf(with_patterns).prop_recursive(3, 6, 2, |inner| {
        (inner.clone(), inner, any::<bool>()).prop_map(|(a, b, both)| {
            let (a, b) = (Box::new(a), Box::new(b));
            if both { Spelling::And(a, b) } else { Spelling::Or(a, b) }
        })
    })
}

/// A spelling with the test it stands for.
pub(crate) fn test(with_patterns: bool) -> impl Strategy<Value = (Spelling, Test)> {
    spelling(with_patterns).prop_filter_map("never true, or not one test", |spelling| {
        let test = spelling.test()?;
        // A part that is not one test (absent, or one of a set) is left out by `test`.
        let faithful = !contains_split_union(&spelling);
        faithful.then_some((spelling, test))
    })
}

fn contains_split_union(spelling: &Spelling) -> bool {
    match spelling {
        Spelling::Or(a, b) => {
            let split = matches!((a.test(), b.test()), (Some(a), Some(b)) if a.union(&b).is_none());
            split || contains_split_union(a) || contains_split_union(b)
        }
        Spelling::And(a, b) => contains_split_union(a) || contains_split_union(b),
        _ => false,
    }
}
