//! Predicates: an operator and an operand, about one attribute.

use enroute_filter::{Number, Timestamp, ValueRef, ValueSet};
use std::cmp::Ordering;
use std::sync::Arc;

/// A test of one attribute. Every predicate but [`Absent`](Predicate::Absent) implies that the attribute is present.
///
/// The order (operator, class of the operand, operand) makes each list P(operator) of an attribute, per class, a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Predicate {
    /// `=`
    Equal(Operand),
    /// `>=`
    AtLeast(Operand),
    /// `<=`, of numbers and times.
    AtMost(Operand),
    /// `<`, of strings: their intervals have no last element to name.
    Below(Arc<str>),
    /// `<>`, within the operand's class.
    NotEqual(Operand),
    /// Strings that begin like this.
    Prefix(Arc<str>),
    /// Any other set of values: many points, several intervals or classes, patterns.
    OneOf(Arc<ValueSet>),
    /// `IS NOT NULL`
    Present,
    /// `IS NULL`
    Absent,
}

/// What a predicate compares with, ordered class by class.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operand {
    Bool(bool),
    Number(Number),
    Time(Timestamp),
    String(Arc<str>),
}

/// The value of an event's attribute, made ready for comparing once per event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reading<'e> {
    Bool(bool),
    Number(Number),
    /// NaN: there, but in no set of values.
    NotANumber,
    Time(Timestamp),
    String(&'e str),
}

impl Predicate {
    /// Whether an event satisfies the predicate that has this reading of its attribute, or no such attribute.
    pub(crate) fn holds(&self, reading: Option<Reading<'_>>) -> bool {
        let Some(reading) = reading else { return *self == Predicate::Absent };
        match self {
            Predicate::Equal(operand) => reading.compare(operand) == Some(Ordering::Equal),
            Predicate::AtLeast(operand) => reading.compare(operand).is_some_and(Ordering::is_ge),
            Predicate::AtMost(operand) => reading.compare(operand).is_some_and(Ordering::is_le),
            Predicate::NotEqual(operand) => reading.compare(operand).is_some_and(Ordering::is_ne),
            Predicate::Below(end) => matches!(reading, Reading::String(string) if string < &**end),
            Predicate::Prefix(prefix) => matches!(reading, Reading::String(string) if string.starts_with(&**prefix)),
            Predicate::OneOf(set) => reading.value().is_some_and(|value| set.contains(value)),
            Predicate::Present => true,
            Predicate::Absent => false,
        }
    }

    /// An estimate of the bytes that it owns.
    pub(crate) fn heap(&self) -> usize {
        match self {
            Predicate::Equal(operand)
            | Predicate::AtLeast(operand)
            | Predicate::AtMost(operand)
            | Predicate::NotEqual(operand) => match operand {
                Operand::String(string) => string.len(),
                Operand::Bool(_) | Operand::Number(_) | Operand::Time(_) => 0,
            },
            Predicate::Below(string) | Predicate::Prefix(string) => string.len(),
            Predicate::OneOf(set) => size_of::<ValueSet>() + set_heap(set),
            Predicate::Present | Predicate::Absent => 0,
        }
    }
}

impl Operand {
    /// The least value of its class.
    pub(crate) fn least(&self) -> Operand {
        match self {
            Operand::Bool(_) => Operand::Bool(false),
            Operand::Number(_) => Operand::Number(Number::MIN),
            Operand::Time(_) => Operand::Time(Timestamp(i64::MIN)),
            Operand::String(_) => Operand::String("".into()),
        }
    }

    /// The greatest value of its class; strings have none.
    pub(crate) fn greatest(&self) -> Option<Operand> {
        match self {
            Operand::Bool(_) => Some(Operand::Bool(true)),
            Operand::Number(_) => Some(Operand::Number(Number::MAX)),
            Operand::Time(_) => Some(Operand::Time(Timestamp(i64::MAX))),
            Operand::String(_) => None,
        }
    }
}

impl<'e> From<ValueRef<'e>> for Reading<'e> {
    fn from(value: ValueRef<'e>) -> Self {
        match value {
            ValueRef::Bool(bool) => Reading::Bool(bool),
            ValueRef::Int(int) => Reading::Number(int.into()),
            ValueRef::Float(float) => Number::from_f64(float).map_or(Reading::NotANumber, Reading::Number),
            ValueRef::String(string) => Reading::String(string),
            ValueRef::Time(time) => Reading::Time(time),
        }
    }
}

impl<'e> Reading<'e> {
    fn value(self) -> Option<ValueRef<'e>> {
        match self {
            Reading::Bool(bool) => Some(ValueRef::Bool(bool)),
            Reading::Number(number) => Some(number.to_value()),
            Reading::NotANumber => None,
            Reading::Time(time) => Some(ValueRef::Time(time)),
            Reading::String(string) => Some(ValueRef::String(string)),
        }
    }

    /// How the reading compares with an operand of its class; none if that is of another class.
    fn compare(self, operand: &Operand) -> Option<Ordering> {
        match (self, operand) {
            (Reading::Bool(bool), Operand::Bool(operand)) => Some(bool.cmp(operand)),
            (Reading::Number(number), Operand::Number(operand)) => Some(number.cmp(operand)),
            (Reading::Time(time), Operand::Time(operand)) => Some(time.cmp(operand)),
            (Reading::String(string), Operand::String(operand)) => Some(string.cmp(operand)),
            _ => None,
        }
    }
}

/// An estimate of the bytes that a set owns.
fn set_heap(set: &ValueSet) -> usize {
    let text = |(start, end): (&str, Option<&str>)| {
        start.len() + end.map_or(0, str::len) + size_of::<(Box<str>, Option<Box<str>>)>()
    };
    let numbers = set.numbers().intervals().len() * size_of::<(Number, Option<Number>)>();
    let times = set.times().intervals().len() * size_of::<(Timestamp, Option<Timestamp>)>();
    let terms = set.strings().terms().iter().map(|term| {
        let patterns = term.all_of().iter().chain(term.none_of());
        size_of_val(term)
            + term.within().map(text).sum::<usize>()
            + patterns.map(|pattern| pattern.symbols().len() * size_of::<char>()).sum::<usize>()
    });
    numbers + times + set.strings().intervals().map(text).sum::<usize>() + terms.sum::<usize>()
}
