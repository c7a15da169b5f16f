//! Conjunctions and events in codes, which is what the indexes work on.
//!
//! Each pair of an attribute and a class is a *slot*, and each attribute has one more, for its presence. An event
//! sets the slot of each of its attributes' values, and of their presence; a constraint becomes one predicate about
//! one slot.

use crate::code::{self, ABSENT, GREATEST, LEAST, Span};
use enroute_filter::{Class, Conjunction, Event, Number, Test, ValueRef, ValueSet};
use std::collections::HashMap;
use std::sync::Arc;

const SLOTS_PER_ATTRIBUTE: u32 = 5;
const PRESENCE: u32 = 4;
/// Sets of more points than this, or of points and wider intervals, are known by their hull only.
const MOST_POINTS: usize = 1_000;

/// What is said of one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Predicate {
    pub(crate) slot: u32,
    pub(crate) kind: Kind,
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// How a predicate reads its two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// At least `low` and at most `high`.
    In,
    /// There, but not in that interval.
    NotIn,
    /// One of the conjunction's points, from number `low` to before number `high`.
    Points,
    /// There, but none of those points.
    NotPoints,
    /// Not there.
    Absent,
}

/// A conjunction in codes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Coded {
    /// At most one for each slot; none is always true.
    pub(crate) predicates: Box<[Predicate]>,
    /// Sorted within each predicate's part.
    pub(crate) points: Box<[u64]>,
}

/// An event in codes.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodedEvent {
    /// The slots that the event has, each with the code of its value, in the order of the attributes' names.
    pub(crate) seen: Vec<(u32, u64)>,
    /// The same by slot; [`ABSENT`] in all others.
    by_slot: Vec<u64>,
}

/// Gives out the slots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coder {
    attributes: HashMap<Arc<str>, u32>,
}

impl Predicate {
    pub(crate) fn new(slot: u32, kind: Kind, low: u64, high: u64) -> Predicate {
        Predicate { slot, kind, low, high }
    }

    /// Whether it is true of what an event has in its slot.
    #[inline]
    pub(crate) fn holds(&self, value: u64, points: &[u64]) -> bool {
        let within = value.wrapping_sub(self.low) <= self.high.wrapping_sub(self.low);
        match self.kind {
            Kind::In => within,
            Kind::NotIn => !within && value != ABSENT,
            Kind::Points => self.points(points).binary_search(&value).is_ok(),
            Kind::NotPoints => value != ABSENT && self.points(points).binary_search(&value).is_err(),
            Kind::Absent => value == ABSENT,
        }
    }

    /// The points it allows, or does not.
    pub(crate) fn points<'p>(&self, points: &'p [u64]) -> &'p [u64] {
        &points[self.low as usize..self.high as usize]
    }

    /// An interval that holds all it allows; none if it allows absence.
    pub(crate) fn hull(&self, points: &[u64]) -> Option<Predicate> {
        let (low, high) = match self.kind {
            Kind::In => (self.low, self.high),
            Kind::NotIn | Kind::NotPoints => (LEAST, GREATEST),
            Kind::Points => {
                let points = self.points(points);
                (*points.first()?, *points.last()?)
            }
            Kind::Absent => return None,
        };
        Some(Predicate { kind: Kind::In, low, high, ..*self })
    }

    pub(crate) fn is_equality(&self) -> bool {
        self.kind == Kind::In && self.low == self.high
    }
}

/// An operator of the papers, with its operand in codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Primitive {
    Equal(u64),
    AtLeast(u64),
    AtMost(u64),
    NotEqual(u64),
    /// Begins with the string that has this code, of at most seven bytes; only where a paper has such an operator.
    Prefix(u64),
}

impl Primitive {
    #[inline]
    pub(crate) fn holds(self, value: u64) -> bool {
        match self {
            Primitive::Equal(operand) => value == operand,
            Primitive::AtLeast(operand) => value >= operand,
            Primitive::AtMost(operand) => value <= operand && value != ABSENT,
            Primitive::NotEqual(operand) => value != operand && value != ABSENT,
            Primitive::Prefix(prefix) => code::begins_with(value, prefix),
        }
    }
}

/// A predicate as the papers' operators, all of them distinct.
pub(crate) enum Primitives {
    /// All must be true.
    All(Vec<Primitive>),
    /// One must be true; no two ever are.
    One(Vec<Primitive>),
}

impl Predicate {
    /// Splits an interval into its ends, a set into its points. None if absence is allowed: no paper has that.
    pub(crate) fn primitives(&self, points: &[u64]) -> Option<Primitives> {
        let (low, high) = (self.low, self.high);
        Some(match self.kind {
            Kind::In if low == high => Primitives::All(vec![Primitive::Equal(low)]),
            Kind::In if high == GREATEST => Primitives::All(vec![Primitive::AtLeast(low)]),
            Kind::In if low == LEAST => Primitives::All(vec![Primitive::AtMost(high)]),
            Kind::In => Primitives::All(vec![Primitive::AtLeast(low), Primitive::AtMost(high)]),
            Kind::NotIn if low == high => Primitives::All(vec![Primitive::NotEqual(low)]),
            Kind::NotIn => Primitives::One(vec![Primitive::AtMost(low - 1), Primitive::AtLeast(high + 1)]),
            Kind::Points => Primitives::One(self.points(points).iter().copied().map(Primitive::Equal).collect()),
            Kind::NotPoints => Primitives::All(self.points(points).iter().copied().map(Primitive::NotEqual).collect()),
            Kind::Absent => return None,
        })
    }
}

impl Coded {
    /// Whether all predicates are true; stops at the first that is not.
    #[inline]
    pub(crate) fn holds(&self, event: &CodedEvent) -> bool {
        self.predicates.iter().all(|predicate| predicate.holds(event.value(predicate.slot), &self.points))
    }

    pub(crate) fn memory_usage(&self) -> usize {
        size_of_val(&*self.predicates) + size_of_val(&*self.points)
    }
}

impl CodedEvent {
    /// What the event has in a slot, or [`ABSENT`].
    #[inline]
    pub(crate) fn value(&self, slot: u32) -> u64 {
        self.by_slot.get(slot as usize).copied().unwrap_or(ABSENT)
    }
}

impl Coder {
    /// Codes of a conjunction, and whether they say all of it: if not, some events that fit them do not match.
    pub(crate) fn conjunction(&mut self, conjunction: &Conjunction) -> (Coded, bool) {
        let (mut predicates, mut points, mut exact) = (Vec::new(), Vec::new(), true);
        for constraint in conjunction.constraints() {
            let attribute = self.attribute(constraint.attribute());
            let (predicate, is_exact) = predicate(attribute, constraint.test(), &mut points);
            predicates.push(predicate);
            exact &= is_exact;
        }
        (Coded { predicates: predicates.into(), points: points.into() }, exact)
    }

    /// The first slot of an attribute.
    fn attribute(&mut self, name: &Arc<str>) -> u32 {
        if let Some(&slot) = self.attributes.get(name) {
            return slot;
        }
        let slot = self.attributes.len() as u32 * SLOTS_PER_ATTRIBUTE;
        self.attributes.insert(name.clone(), slot);
        slot
    }

    /// The codes of an event, in place of those of another.
    pub(crate) fn read(&self, event: &Event, coded: &mut CodedEvent) {
        for (slot, _) in coded.seen.drain(..) {
            coded.by_slot[slot as usize] = ABSENT;
        }
        coded.by_slot.resize(self.attributes.len() * SLOTS_PER_ATTRIBUTE as usize, ABSENT);
        for (name, value) in event.attributes() {
            let Some(&attribute) = self.attributes.get(name) else { continue };
            let of_number = |number| Some((Class::Number, code::of_number(number)));
            let value = match value {
                ValueRef::Bool(bool) => Some((Class::Bool, code::of_bool(bool))),
                ValueRef::Int(int) => of_number(Number::from(int)),
                // NaN is there, but in no set of values.
                ValueRef::Float(float) => Number::from_f64(float).and_then(of_number),
                ValueRef::String(string) => Some((Class::String, code::of_string(string))),
                ValueRef::Time(time) => Some((Class::Time, code::of_time(time))),
            };
            if let Some((class, code)) = value {
                coded.seen.push((attribute + class as u32, code));
            }
            coded.seen.push((attribute + PRESENCE, LEAST));
        }
        for &(slot, code) in &coded.seen {
            coded.by_slot[slot as usize] = code;
        }
    }

    pub(crate) fn memory_usage(&self) -> usize {
        let names: usize = self.attributes.keys().map(|name| name.len()).sum();
        names + self.attributes.capacity() * size_of::<(Arc<str>, u32)>()
    }
}

/// Whether the slot is about numbers.
pub(crate) fn is_numeric(slot: u32) -> bool {
    slot % SLOTS_PER_ATTRIBUTE == Class::Number as u32
}

/// Whether the slot is about strings.
pub(crate) fn is_text(slot: u32) -> bool {
    slot % SLOTS_PER_ATTRIBUTE == Class::String as u32
}

fn predicate(attribute: u32, test: &Test, points: &mut Vec<u64>) -> (Predicate, bool) {
    let presence = |kind| Predicate::new(attribute + PRESENCE, kind, LEAST, LEAST);
    let set = match test {
        Test::Absent => return (presence(Kind::Absent), true),
        Test::Present => return (presence(Kind::In), true),
        Test::In(set) => set,
    };
    let mut classes = set.classes();
    let (Some(class), None) = (classes.next(), classes.next()) else { return (presence(Kind::In), false) };
    let slot = attribute + class as u32;
    let spans = spans(class, set);
    let exact = spans.iter().all(|span| span.exact);
    let whole = |spans: &[Span]| spans[0].low == LEAST && spans[spans.len() - 1].high == GREATEST;
    let points_at = |kind, codes: Vec<u64>, points: &mut Vec<u64>| {
        let first = points.len();
        points.extend(codes);
        Predicate::new(slot, kind, first as u64, points.len() as u64)
    };
    if let [only] = spans[..] {
        return (Predicate::new(slot, Kind::In, only.low, only.high), exact);
    }
    if spans.len() <= MOST_POINTS && spans.iter().all(|span| span.low == span.high) {
        let mut codes: Vec<u64> = spans.iter().map(|span| span.low).collect();
        codes.dedup();
        return (points_at(Kind::Points, codes, points), exact);
    }
    if exact && spans.len() <= MOST_POINTS && whole(&spans) {
        let holes: Vec<(u64, u64)> = spans.windows(2).map(|pair| (pair[0].high + 1, pair[1].low - 1)).collect();
        if let [(low, high)] = holes[..] {
            return (Predicate::new(slot, Kind::NotIn, low, high), true);
        }
        if holes.iter().all(|(low, high)| low == high) {
            let codes = holes.into_iter().map(|(low, _)| low).collect();
            return (points_at(Kind::NotPoints, codes, points), true);
        }
    }
    let low = spans.iter().map(|span| span.low).min().unwrap_or(LEAST);
    let high = spans.iter().map(|span| span.high).max().unwrap_or(GREATEST);
    (Predicate::new(slot, Kind::In, low, high), false)
}

/// What a set has of a class, ascending; with what its patterns lie within.
fn spans(class: Class, set: &ValueSet) -> Vec<Span> {
    match class {
        Class::Bool => {
            let bools = [false, true].into_iter().filter(|&bool| set.bools().contains(bool)).map(code::of_bool);
            let low_and_high = bools.clone().min().zip(bools.max());
            low_and_high.map(|(low, high)| Span { low, high, exact: true }).into_iter().collect()
        }
        Class::Number => set.numbers().intervals().map(code::of_numbers).collect(),
        Class::Time => set.times().intervals().map(code::of_times).collect(),
        Class::String => {
            let terms = set.strings().terms().iter().flat_map(|term| term.within());
            let terms = terms.map(|within| Span { exact: false, ..code::of_strings(within) });
            set.strings().intervals().map(code::of_strings).chain(terms).collect()
        }
    }
}
