//! Sets of values: what a constraint lets its attribute be, class by class.

mod intervals;
mod strings;

use crate::{Class, Number, Timestamp, ValueRef};
pub(crate) use intervals::{Interval, Intervals, Line};
pub(crate) use strings::prefix_interval;
pub use strings::{StringSet, StringTerm};

/// How a value is compared with an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Comparison {
    /// `=`
    Eq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl Comparison {
    /// What is true of two comparable values exactly where this is false.
    pub fn negated(self) -> Comparison {
        match self {
            Comparison::Eq => Comparison::Ne,
            Comparison::Ne => Comparison::Eq,
            Comparison::Lt => Comparison::Ge,
            Comparison::Le => Comparison::Gt,
            Comparison::Gt => Comparison::Le,
            Comparison::Ge => Comparison::Lt,
        }
    }

    /// The same comparison with its sides exchanged.
    pub fn flipped(self) -> Comparison {
        match self {
            Comparison::Eq => Comparison::Eq,
            Comparison::Ne => Comparison::Ne,
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
            Comparison::Gt => Comparison::Lt,
            Comparison::Ge => Comparison::Le,
        }
    }
}

/// A set of bools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoolSet {
    has_false: bool,
    has_true: bool,
}

/// A set of numbers: closed intervals, ascending, with at least one number between each two. NaN is in none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NumberSet(pub(crate) Intervals<Number>);

/// A set of moments: closed intervals, ascending, with at least one nanosecond between each two.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimeSet(pub(crate) Intervals<Timestamp>);

/// A set of values, with a part for each class. Equal sets have equal forms, unless they need patterns to say.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueSet {
    pub(crate) bools: BoolSet,
    pub(crate) numbers: NumberSet,
    pub(crate) times: TimeSet,
    pub(crate) strings: StringSet,
}

impl Line for Number {
    fn least() -> Number {
        Number::MIN
    }
    fn successor(&self) -> Option<Number> {
        Number::successor(*self)
    }
}

impl Line for Timestamp {
    fn least() -> Timestamp {
        Timestamp(i64::MIN)
    }
    fn successor(&self) -> Option<Timestamp> {
        self.0.checked_add(1).map(Timestamp)
    }
}

impl BoolSet {
    pub(crate) fn from_membership(has_false: bool, has_true: bool) -> BoolSet {
        BoolSet { has_false, has_true }
    }

    /// Whether `value` is in the set.
    pub fn contains(self, value: bool) -> bool {
        if value { self.has_true } else { self.has_false }
    }

    /// Whether nothing is in the set.
    pub fn is_empty(self) -> bool {
        self == BoolSet::default()
    }

    fn combine(self, other: BoolSet, rule: impl Fn(bool, bool) -> bool) -> BoolSet {
        BoolSet { has_false: rule(self.has_false, other.has_false), has_true: rule(self.has_true, other.has_true) }
    }
}

impl NumberSet {
    /// Whether `number` is in the set; binary search.
    pub fn contains(&self, number: Number) -> bool {
        self.0.contains(&number)
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its intervals, ascending, as first and last number.
    pub fn intervals(&self) -> impl ExactSizeIterator<Item = (Number, Number)> {
        self.0.iter().map(|interval| {
            let last = interval.end.map_or(Some(Number::MAX), Number::predecessor);
            (interval.start, last.unwrap_or(interval.start))
        })
    }
}

impl TimeSet {
    /// Whether `time` is in the set; binary search.
    pub fn contains(&self, time: Timestamp) -> bool {
        self.0.contains(&time)
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its intervals, ascending, as first and last moment.
    pub fn intervals(&self) -> impl ExactSizeIterator<Item = (Timestamp, Timestamp)> {
        self.0.iter().map(|interval| {
            let last = interval.end.map_or(i64::MAX, |end| end.0.saturating_sub(1));
            (interval.start, Timestamp(last))
        })
    }
}

impl From<BoolSet> for ValueSet {
    fn from(bools: BoolSet) -> ValueSet {
        ValueSet { bools, ..ValueSet::none() }
    }
}

impl From<NumberSet> for ValueSet {
    fn from(numbers: NumberSet) -> ValueSet {
        ValueSet { numbers, ..ValueSet::none() }
    }
}

impl From<TimeSet> for ValueSet {
    fn from(times: TimeSet) -> ValueSet {
        ValueSet { times, ..ValueSet::none() }
    }
}

impl From<StringSet> for ValueSet {
    fn from(strings: StringSet) -> ValueSet {
        ValueSet { strings, ..ValueSet::none() }
    }
}

impl ValueSet {
    /// No value.
    pub fn none() -> ValueSet {
        ValueSet {
            bools: BoolSet::default(),
            numbers: NumberSet(Intervals::none()),
            times: TimeSet(Intervals::none()),
            strings: StringSet::none(),
        }
    }

    /// Every value of a class.
    pub fn all_of(class: Class) -> ValueSet {
        match class {
            Class::Bool => BoolSet::from_membership(true, true).into(),
            Class::Number => NumberSet(Intervals::all()).into(),
            Class::Time => TimeSet(Intervals::all()).into(),
            Class::String => StringSet::from(Intervals::all()).into(),
        }
    }

    /// The values for which the comparison with `operand` is true: values of its class only, and none if it is NaN.
    /// Bools have no order: `<` and its like are true of none.
    pub fn compare(comparison: Comparison, operand: ValueRef<'_>) -> ValueSet {
        let number = |number| NumberSet(compare_on(comparison, number)).into();
        match operand {
            ValueRef::Bool(bool) => match comparison {
                Comparison::Eq => BoolSet::from_membership(!bool, bool).into(),
                Comparison::Ne => BoolSet::from_membership(bool, !bool).into(),
                Comparison::Lt | Comparison::Le | Comparison::Gt | Comparison::Ge => ValueSet::none(),
            },
            ValueRef::Int(int) => number(Number::from(int)),
            ValueRef::Float(float) => Number::from_f64(float).map_or_else(ValueSet::none, number),
            ValueRef::Time(time) => TimeSet(compare_on(comparison, time)).into(),
            ValueRef::String(string) => StringSet::from(compare_on(comparison, Box::from(string))).into(),
        }
    }

    /// These values, of whatever classes; a NaN among them adds nothing.
    pub fn one_of<'a>(values: impl IntoIterator<Item = ValueRef<'a>>) -> ValueSet {
        let mut bools = BoolSet::default();
        let (mut numbers, mut times, mut strings) = (Vec::new(), Vec::new(), Vec::new());
        for value in values {
            match value {
                ValueRef::Bool(true) => bools.has_true = true,
                ValueRef::Bool(false) => bools.has_false = true,
                ValueRef::Int(int) => numbers.push(Number::from(int)),
                ValueRef::Float(float) => numbers.extend(Number::from_f64(float)),
                ValueRef::Time(time) => times.push(time),
                ValueRef::String(string) => strings.push(Box::from(string)),
            }
        }
        ValueSet {
            bools,
            numbers: NumberSet(Intervals::points(numbers)),
            times: TimeSet(Intervals::points(times)),
            strings: StringSet::from(Intervals::points(strings)),
        }
    }

    /// The part that is bools.
    pub fn bools(&self) -> BoolSet {
        self.bools
    }

    /// The part that is numbers.
    pub fn numbers(&self) -> &NumberSet {
        &self.numbers
    }

    /// The part that is times.
    pub fn times(&self) -> &TimeSet {
        &self.times
    }

    /// The part that is strings.
    pub fn strings(&self) -> &StringSet {
        &self.strings
    }

    /// The classes of which it has values, ascending.
    pub fn classes(&self) -> impl Iterator<Item = Class> {
        [
            (Class::Bool, self.bools.is_empty()),
            (Class::Number, self.numbers.is_empty()),
            (Class::String, self.strings.is_empty()),
            (Class::Time, self.times.is_empty()),
        ]
        .into_iter()
        .filter_map(|(class, is_empty)| (!is_empty).then_some(class))
    }

    /// Whether patterns are needed to say what is in the set. Without, all answers about it are exact.
    pub fn has_patterns(&self) -> bool {
        !self.strings.terms().is_empty()
    }

    /// Whether nothing is in the set. With patterns a set may count as not empty though no string fits.
    pub fn is_empty(&self) -> bool {
        self.classes().next().is_none()
    }

    /// Whether `value` is in the set. NaN is in none.
    pub fn contains(&self, value: ValueRef<'_>) -> bool {
        match value {
            ValueRef::Bool(bool) => self.bools.contains(bool),
            ValueRef::Int(int) => self.numbers.contains(Number::from(int)),
            ValueRef::Float(float) => Number::from_f64(float).is_some_and(|number| self.numbers.contains(number)),
            ValueRef::Time(time) => self.times.contains(time),
            ValueRef::String(string) => self.strings.contains(string),
        }
    }

    /// Whether every value of `other` is in this set; false also where patterns leave that undecided.
    pub fn covers(&self, other: &ValueSet) -> bool {
        self.covers_apart_from_strings(other) && self.strings.covers(&other.strings)
    }

    /// Whether every bool, number and time of `other` is in this set.
    pub fn covers_apart_from_strings(&self, other: &ValueSet) -> bool {
        self.bools.combine(other.bools, |mine, theirs| mine && theirs) == other.bools
            && self.numbers.0.covers(&other.numbers.0)
            && self.times.0.covers(&other.times.0)
    }

    /// Whether some value is in both; true also where patterns leave that undecided.
    pub fn overlaps(&self, other: &ValueSet) -> bool {
        self.overlaps_apart_from_strings(other) || self.strings.overlaps(&other.strings)
    }

    /// Whether some bool, number or time is in both.
    pub fn overlaps_apart_from_strings(&self, other: &ValueSet) -> bool {
        !self.bools.combine(other.bools, |mine, theirs| mine && theirs).is_empty()
            || self.numbers.0.overlaps(&other.numbers.0)
            || self.times.0.overlaps(&other.times.0)
    }

    /// The values that are in either.
    pub fn union(&self, other: &ValueSet) -> ValueSet {
        ValueSet::union_of(&[self, other])
    }

    /// The values that are in any of some sets. Sorts their intervals; patterns are compared each with each.
    pub fn union_of(sets: &[&ValueSet]) -> ValueSet {
        let no_bools = BoolSet::default();
        ValueSet {
            bools: sets.iter().fold(no_bools, |all, set| all.combine(set.bools, |all, one| all || one)),
            numbers: NumberSet(Intervals::union(sets.iter().map(|set| &set.numbers.0))),
            times: TimeSet(Intervals::union(sets.iter().map(|set| &set.times.0))),
            strings: StringSet::union(sets.iter().map(|set| &set.strings)),
        }
    }

    /// The values that are in both.
    pub fn intersection(&self, other: &ValueSet) -> ValueSet {
        ValueSet {
            bools: self.bools.combine(other.bools, |mine, theirs| mine && theirs),
            numbers: NumberSet(self.numbers.0.intersection(&other.numbers.0)),
            times: TimeSet(self.times.0.intersection(&other.times.0)),
            strings: self.strings.intersection(&other.strings),
        }
    }

    /// The values of `class` that are not in the set. With many pattern terms the result may be large: they multiply.
    pub fn complement_within(&self, class: Class) -> ValueSet {
        match class {
            Class::Bool => self.bools.combine(BoolSet::default(), |mine, _| !mine).into(),
            Class::Number => NumberSet(self.numbers.0.complement()).into(),
            Class::Time => TimeSet(self.times.0.complement()).into(),
            Class::String => self.strings.complement().into(),
        }
    }
}

/// The points of a line for which the comparison with `operand` is true.
fn compare_on<P: Line>(comparison: Comparison, operand: P) -> Intervals<P> {
    match comparison {
        Comparison::Eq => Intervals::points([operand]),
        Comparison::Ne => Intervals::points([operand]).complement(),
        Comparison::Lt => Intervals::half_open(P::least(), operand),
        Comparison::Le => Intervals::closed(P::least(), &operand),
        Comparison::Gt => Intervals::closed(P::least(), &operand).complement(),
        Comparison::Ge => Intervals::from_start(operand),
    }
}

#[cfg(test)]
mod tests;
