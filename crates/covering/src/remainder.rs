//! What is left of a conjunction once all that other conjunctions match is taken away.
//!
//! A conjunction is a box: a set of values for each attribute. What a box leaves of another one is at most one box for each
//! of its attributes: `a < 5 AND b < 5` leaves of TRUE the boxes `a >= 5 or absent` and `a < 5 AND (b >= 5 or absent)`. So
//! one conjunction after the other is taken away from the boxes that those before it left, until a box has passed them all.

use crate::pattern::{Found, find_string};
use enroute_filter::{Class, Conjunction, Event, Test, Value, ValueSet};
use std::collections::BTreeMap;

/// What a step costs that has to do with patterns, compared with others.
const PATTERN_STEP: usize = 64;

/// Into how many terms the patterns of one attribute may multiply.
const MAX_TERMS: usize = 64;

/// Takes conjunctions away from others. In the worst case the boxes multiply, so the work is bounded.
pub(crate) struct Subtraction {
    steps_left: usize,
}

/// What is left.
pub(crate) enum Remainder {
    Nothing,
    /// A box that is part of it.
    Something(Piece),
    /// It would take too long to say.
    Unknown,
}

/// A box: the values that attributes may take, where not all.
#[derive(Clone)]
pub(crate) struct Piece(BTreeMap<Box<str>, Slot>);

/// What one attribute may be, absent included.
#[derive(Clone)]
struct Slot {
    absent: bool,
    nan: bool,
    set: ValueSet,
}

impl Subtraction {
    /// For one question; enough for any filter that a person would write.
    pub(crate) fn new() -> Subtraction {
        Subtraction { steps_left: 4_096 }
    }

    /// What `others` leave of `conjunction`; more than that where patterns become too many.
    pub(crate) fn remainder(&mut self, conjunction: &Conjunction, others: &[Conjunction]) -> Remainder {
        let piece = Piece::of(conjunction);
        if piece.is_empty() { Remainder::Nothing } else { self.take_away(piece, others) }
    }

    fn take_away(&mut self, mut piece: Piece, others: &[Conjunction]) -> Remainder {
        let Some((first, others)) = others.split_first() else { return Remainder::Something(piece) };
        let tests: Vec<(&str, Slot)> =
            first.constraints().iter().map(|each| (&**each.attribute(), Slot::of(each.test()))).collect();
        let has_patterns = tests.iter().any(|(attribute, test)| {
            test.set.has_patterns() || piece.0.get(*attribute).is_some_and(|slot| slot.set.has_patterns())
        });
        let Some(left) = self.steps_left.checked_sub(if has_patterns { PATTERN_STEP } else { 1 }) else {
            return Remainder::Unknown;
        };
        self.steps_left = left;
        let passes_by = |(attribute, test): &(&str, Slot)| {
            let slot = piece.slot(attribute);
            slot.terms_without(test) > MAX_TERMS || slot.intersection(test).is_empty()
        };
        if tests.iter().any(passes_by) {
            return self.take_away(piece, others);
        }
        for (attribute, test) in tests {
            let slot = piece.slot(attribute);
            let outside = slot.difference(&test);
            if !outside.is_empty() {
                match self.take_away(piece.with(attribute, outside), others) {
                    Remainder::Nothing => {}
                    left @ (Remainder::Something(_) | Remainder::Unknown) => return left,
                }
            }
            piece = piece.with(attribute, slot.intersection(&test));
        }
        Remainder::Nothing
    }
}

impl Piece {
    pub(crate) fn of(conjunction: &Conjunction) -> Piece {
        let slots = conjunction.constraints().iter();
        Piece(slots.map(|constraint| (Box::from(&**constraint.attribute()), Slot::of(constraint.test()))).collect())
    }

    /// Whether it holds no event. A yes is always right, a no where patterns are not too complicated.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.values().any(Slot::is_empty)
    }

    fn slot(&self, attribute: &str) -> Slot {
        self.0.get(attribute).cloned().unwrap_or_else(Slot::anything)
    }

    fn with(&self, attribute: &str, slot: Slot) -> Piece {
        let mut piece = self.clone();
        piece.0.insert(attribute.into(), slot);
        piece
    }

    /// An event of the box, if one is found; patterns may make that too hard.
    pub(crate) fn example(&self) -> Option<Event> {
        let mut event = Event::builder();
        for (attribute, slot) in &self.0 {
            if !slot.absent {
                event = event.attribute(&**attribute, slot.example()?);
            }
        }
        event.build().ok()
    }
}

impl Slot {
    fn anything() -> Slot {
        Slot { absent: true, ..Slot::of(&Test::Present) }
    }

    fn of(test: &Test) -> Slot {
        match test {
            Test::Absent => Slot { absent: true, nan: false, set: ValueSet::none() },
            Test::Present => {
                let classes = [Class::Bool, Class::Number, Class::String, Class::Time].map(ValueSet::all_of);
                let set = classes.iter().fold(ValueSet::none(), |all, class| all.union(class));
                Slot { absent: false, nan: true, set }
            }
            Test::In(set) => Slot { absent: false, nan: false, set: set.clone() },
        }
    }

    /// A yes is always right, a no where patterns are not too complicated.
    fn is_empty(&self) -> bool {
        if self.absent || self.nan || !self.set.has_patterns() {
            return !self.absent && !self.nan && self.set.is_empty();
        }
        self.set.classes().eq([Class::String]) && matches!(find_string(&[self.set.strings()], &[]), Found::Nothing)
    }

    /// How many terms the [difference](Slot::difference) may take to say.
    fn terms_without(&self, other: &Slot) -> usize {
        let of_complement = other
            .set
            .strings()
            .terms()
            .iter()
            .fold(1_usize, |product, term| product.saturating_mul(1 + term.all_of().len() + term.none_of().len()));
        of_complement.saturating_mul(1 + self.set.strings().terms().len())
    }

    fn intersection(&self, other: &Slot) -> Slot {
        Slot { absent: self.absent && other.absent, nan: self.nan && other.nan, set: self.set.intersection(&other.set) }
    }

    fn difference(&self, other: &Slot) -> Slot {
        let outside = self.set.classes().map(|class| self.set.intersection(&other.set.complement_within(class)));
        Slot {
            absent: self.absent && !other.absent,
            nan: self.nan && !other.nan,
            set: outside.fold(ValueSet::none(), |all, class| all.union(&class)),
        }
    }

    /// A value that the attribute may be.
    fn example(&self) -> Option<Value> {
        let bools = [false, true].into_iter().filter(|&value| self.set.bools().contains(value)).map(Value::Bool);
        let numbers = self.set.numbers().intervals().map(|(first, _)| first.to_value().to_value());
        let times = self.set.times().intervals().map(|(first, _)| Value::Time(first));
        let strings =
            std::iter::once_with(|| find_string(&[self.set.strings()], &[])).filter_map(|found| match found {
                Found::String(string) => Some(Value::String(string)),
                Found::Nothing | Found::Undecided => None,
            });
        let nan = self.nan.then_some(Value::Float(f64::NAN));
        bools.chain(numbers).chain(times).chain(strings).chain(nan).next()
    }
}
