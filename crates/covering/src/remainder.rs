//! What is left of a conjunction once all that other conjunctions match is taken away.
//!
//! A conjunction is a box: a set of values for each attribute. What a box leaves of another one is at most one box for each
//! of its attributes: `a < 5 AND b < 5` leaves of TRUE the boxes `a >= 5 or absent` and `a < 5 AND (b >= 5 or absent)`. So
//! one conjunction after the other is taken away from the boxes that those before it left, until a box has passed them all.

use enroute_filter::{Class, Conjunction, Event, PatternKind, StringSet, Symbol, Test, Value, ValueSet};
use std::collections::BTreeMap;

/// A character that hardly any pattern names.
const STRANGE: char = '\u{E000}';

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

    /// What `others` leave of `conjunction`. Those with patterns are passed over: not all that they leave can be said.
    pub(crate) fn remainder(&mut self, conjunction: &Conjunction, others: &[Conjunction]) -> Remainder {
        let others: Vec<&Conjunction> = others.iter().filter(|other| !other.has_patterns()).collect();
        self.take_away(Piece::of(conjunction), &others)
    }

    fn take_away(&mut self, mut piece: Piece, others: &[&Conjunction]) -> Remainder {
        let Some((first, others)) = others.split_first() else { return Remainder::Something(piece) };
        if self.steps_left == 0 {
            return Remainder::Unknown;
        }
        self.steps_left -= 1;
        let tests =
            || first.constraints().iter().map(|constraint| (constraint.attribute(), Slot::of(constraint.test())));
        if tests().any(|(attribute, test)| piece.slot(attribute).intersection(&test).is_empty()) {
            return self.take_away(piece, others);
        }
        for (attribute, test) in tests() {
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

    fn slot(&self, attribute: &str) -> Slot {
        self.0.get(attribute).cloned().unwrap_or_else(Slot::anything)
    }

    fn with(&self, attribute: &str, slot: Slot) -> Piece {
        let mut piece = self.clone();
        piece.0.insert(attribute.into(), slot);
        piece
    }

    /// An event of the box, if one is easily found; patterns may hide that there is none.
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

    fn is_empty(&self) -> bool {
        !self.absent && !self.nan && self.set.is_empty()
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
        let strings = string_examples(self.set.strings()).filter(|string| self.set.strings().contains(string));
        let nan = self.nan.then_some(Value::Float(f64::NAN));
        bools.chain(numbers).chain(times).chain(strings.map(Value::String)).chain(nan).next()
    }
}

/// Strings some of which are likely to be in the set: where intervals start, and what the simplest strings are that fit the
/// patterns, alone or behind such a start. First those longer than need be, which tell a pattern from a narrower one.
fn string_examples(strings: &StringSet) -> impl Iterator<Item = String> {
    let starts = strings.intervals().map(|(first, _)| first.to_owned());
    let fitting = strings.terms().iter().flat_map(|term| {
        let (ends, others): (Vec<_>, Vec<_>) =
            term.all_of().iter().partition(|pattern| matches!(pattern.kind(), PatternKind::Suffix(_)));
        let symbols: Vec<Symbol> = others.iter().chain(&ends).flat_map(|pattern| pattern.symbols()).collect();
        let alone = [true, false].map(|fill| simple_fit(&symbols, fill));
        let behind_starts = term.within().map(|(first, _)| format!("{first}{}", alone[1])).collect::<Vec<_>>();
        alone.into_iter().chain(behind_starts)
    });
    starts.chain(fitting)
}

/// A string that fits a pattern, with nothing or eight characters for each run.
fn simple_fit(symbols: &[Symbol], fill_runs: bool) -> String {
    let mut string = String::new();
    for symbol in symbols {
        match symbol {
            Symbol::Char(char) => string.push(*char),
            Symbol::One => string.push(STRANGE),
            Symbol::Many if fill_runs => string.extend([STRANGE; 8]),
            Symbol::Many => {}
        }
    }
    string
}
