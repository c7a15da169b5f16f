//! Numbers as one line: every `i64` and every `f64` but NaN, ordered by mathematical value.
//!
//! The line is discrete: each number but the last has a [successor](Number::successor), the next integer or the next
//! float, whichever is nearer. So every set of numbers that comparisons can describe is a list of closed intervals, in
//! exactly one way.

use crate::ValueRef;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// 2^63, the first float above every `i64`.
const TWO_POW_63: f64 = 9_223_372_036_854_775_808.0;
/// 2^53: from here on every float is an integer.
const TWO_POW_53: i64 = 1 << 53;

/// A number: an integer or a float, never NaN. Equal numbers are one and the same: 2 and 2.0, 0 and -0.
#[derive(Clone, Copy, Debug)]
pub struct Number(Repr);

/// Canonical: a float that is an `i64` is kept as `Int`, so a `Float` is never equal to an `Int`.
#[derive(Clone, Copy, Debug)]
enum Repr {
    Int(i64),
    Float(f64),
}

impl Number {
    /// The least number, negative infinity.
    pub const MIN: Number = Number(Repr::Float(f64::NEG_INFINITY));
    /// The greatest number, infinity.
    pub const MAX: Number = Number(Repr::Float(f64::INFINITY));

    /// The number a float stands for; `None` for NaN.
    pub fn from_f64(float: f64) -> Option<Number> {
        if float.is_nan() {
            return None;
        }
        let fits = (-TWO_POW_63..TWO_POW_63).contains(&float);
        if fits && float.trunc() == float {
            return Some(Number(Repr::Int(float as i64)));
        }
        Some(Number(Repr::Float(float)))
    }

    /// The number as a value: an integer wherever it is one that fits `i64`, else a float.
    pub fn to_value(self) -> ValueRef<'static> {
        match self.0 {
            Repr::Int(int) => ValueRef::Int(int),
            Repr::Float(float) => ValueRef::Float(float),
        }
    }

    /// The nearest `f64`. Keeps the order, though different integers beyond 2^53 may become the same float.
    pub fn to_f64_rounded(self) -> f64 {
        match self.0 {
            Repr::Int(int) => int as f64,
            Repr::Float(float) => float,
        }
    }

    /// The least number that is greater; `None` for infinity.
    pub fn successor(self) -> Option<Number> {
        match self.0 {
            // The next float is at most the next integer.
            Repr::Int(int) if -TWO_POW_53 < int && int < TWO_POW_53 => Number::from_f64((int as f64).next_up()),
            // All floats around are integers.
            Repr::Int(i64::MAX) => Some(Number(Repr::Float(TWO_POW_63))),
            Repr::Int(int) => Some(Number(Repr::Int(int + 1))),
            Repr::Float(f64::INFINITY) => None,
            Repr::Float(float) => Number::from_f64(float.next_up()),
        }
    }

    /// The greatest number that is less; `None` for negative infinity.
    pub fn predecessor(self) -> Option<Number> {
        match self.0 {
            Repr::Int(int) if -TWO_POW_53 < int && int < TWO_POW_53 => Number::from_f64((int as f64).next_down()),
            Repr::Int(i64::MIN) => Some(Number(Repr::Float((-TWO_POW_63).next_down()))),
            Repr::Int(int) => Some(Number(Repr::Int(int - 1))),
            Repr::Float(f64::NEG_INFINITY) => None,
            Repr::Float(TWO_POW_63) => Some(Number(Repr::Int(i64::MAX))),
            Repr::Float(float) => Number::from_f64(float.next_down()),
        }
    }
}

impl From<i64> for Number {
    fn from(int: i64) -> Number {
        Number(Repr::Int(int))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        match (self.0, other.0) {
            (Repr::Int(a), Repr::Int(b)) => a.cmp(&b),
            // Neither NaN nor -0 is ever kept, so this is the mathematical order.
            (Repr::Float(a), Repr::Float(b)) => a.total_cmp(&b),
            (Repr::Int(int), Repr::Float(float)) => compare_int_float(int, float),
            (Repr::Float(float), Repr::Int(int)) => compare_int_float(int, float).reverse(),
        }
    }
}

/// Compares with a float that is no `i64`: one beyond their range, or one with a fraction (then far below 2^53).
fn compare_int_float(int: i64, float: f64) -> Ordering {
    if float >= TWO_POW_63 {
        Ordering::Less
    } else if float < -TWO_POW_63 {
        Ordering::Greater
    } else if int <= float.floor() as i64 {
        Ordering::Less
    } else {
        Ordering::Greater
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.0 {
            Repr::Int(int) => int.hash(state),
            Repr::Float(float) => float.to_bits().hash(state),
        }
    }
}

#[cfg(test)]
mod tests;
