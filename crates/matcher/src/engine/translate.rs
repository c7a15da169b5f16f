//! From constraints to predicates of rows.
//!
//! | the constraint allows | becomes |
//! | --- | --- |
//! | absence, presence | `Absent`, the code 1, of the attribute's presence |
//! | bools | codes of the bool |
//! | one interval of numbers or times | keys |
//! | all numbers or times but an interval | keys outside |
//! | one string | the code of the word |
//! | a few of the first 128 strings or numbers that sets of the attribute name | the mask of codes of the word or numeral |
//! | all strings but one | not this code of the word |
//! | one interval of strings | codes of the order, with a test at the edges where four bytes do not decide |
//! | patterns with literals | the code 1 of the pattern's slot |
//! | anything else | codes that may pass, and a test |

use super::codes::{Key, code_of, implied_low, is_least_of_code, string_code};
use super::rows::{Kind, Predicate};
use super::sets::Sets;
use super::slots::{Aspect, Slots};
use enroute_filter::{Class, Constraint, Test, ValueSet};

/// Most strings of a set that become a mask.
const MOST_WORDS: usize = 128;

/// Turns constraints into predicates, and gives back what predicates use.
pub(super) struct Translator<'a> {
    pub(super) slots: &'a mut Slots,
    pub(super) sets: &'a mut Sets,
}

impl Translator<'_> {
    /// The predicate of a constraint; everything it names is in use once more.
    pub(super) fn acquire(&mut self, constraint: &Constraint) -> Predicate {
        let set = match constraint.test() {
            Test::Absent => return self.codes(constraint, Aspect::Present, Kind::Absent, 0, 0),
            Test::Present => return self.codes(constraint, Aspect::Present, Kind::Codes, 1, 1),
            Test::In(set) => set,
        };
        let mut classes = set.classes();
        let predicate = match (classes.next(), classes.next()) {
            (Some(Class::Bool), None) => {
                let first = if set.bools().contains(false) { 1 } else { 2 };
                let last = if set.bools().contains(true) { 2 } else { 1 };
                Some(self.codes(constraint, Aspect::Bool, Kind::Codes, first, last))
            }
            (Some(Class::Number), None) => {
                let intervals = set.numbers().intervals();
                let keys = intervals.map(|(first, last)| (Key::of_number(first), Key::of_number(last)));
                self.keys(constraint, Aspect::Number, keys)
            }
            (Some(Class::Time), None) => {
                let intervals = set.times().intervals();
                let keys = intervals.map(|(first, last)| (Key::of_time(first), Key::of_time(last)));
                self.keys(constraint, Aspect::Time, keys)
            }
            (Some(Class::String), None) => Some(self.strings(constraint, set)),
            (None, _) | (Some(_), Some(_)) => None,
        };
        predicate.unwrap_or_else(|| self.tested(constraint, Aspect::Present, 1, 1))
    }

    fn codes(&mut self, constraint: &Constraint, aspect: Aspect, kind: Kind, first: u32, last: u32) -> Predicate {
        let slot = self.slots.acquire(constraint.attribute(), aspect);
        Predicate { slot, kind, words: [first, last, 0, 0] }
    }

    /// What codes alone do not decide.
    fn tested(&mut self, constraint: &Constraint, aspect: Aspect, first: u32, last: u32) -> Predicate {
        let slot = self.slots.acquire(constraint.attribute(), aspect);
        let test = self.sets.acquire(constraint, self.slots);
        Predicate { slot, kind: Kind::Test, words: [first, last, test, 0] }
    }

    fn keys(
        &mut self,
        constraint: &Constraint,
        aspect: Aspect,
        intervals: impl ExactSizeIterator<Item = (Key, Key)>,
    ) -> Option<Predicate> {
        let intervals: Vec<(Key, Key)> = intervals.collect();
        let (least, greatest) = (intervals[0].0, intervals[intervals.len() - 1].1);
        // The least of all times has no key of its own, but as a first one it is no bound at all.
        let starts_exactly = least.is_exact || is_least_time(constraint);
        let is_exact =
            |&(first, last): &(Key, Key)| (first.is_exact || first == least && starts_exactly) && last.is_exact;
        if let [(first, last)] = intervals[..]
            && intervals.iter().all(is_exact)
        {
            return Some(self.interval(constraint, aspect, if first.is_exact { first.bits } else { 0 }, last.bits));
        }
        let is_number = |&(first, last): &(Key, Key)| first == last && first.is_exact && aspect == Aspect::Number;
        if intervals.len() <= MOST_WORDS && intervals.iter().all(is_number) {
            let words = intervals.iter().map(|(key, _)| key.bits.to_le_bytes());
            if let Some(predicate) = self.words(constraint, Aspect::Numeral, words) {
                return Some(predicate);
            }
        }
        if intervals.len() > 2 || !intervals.iter().all(is_exact) || !is_whole_line(constraint) {
            return Some(self.tested(constraint, aspect, code_of(least.bits), code_of(greatest.bits)));
        }
        let slot = self.slots.acquire(constraint.attribute(), aspect);
        let (up_to, from) = (intervals[0].1.bits, intervals[1].0.bits);
        let words = [code_of(up_to), code_of(from), up_to as u32, from as u32];
        Some(Predicate { slot, kind: Kind::Outside, words })
    }

    fn interval(&mut self, constraint: &Constraint, aspect: Aspect, first: u64, last: u64) -> Predicate {
        let slot = self.slots.acquire(constraint.attribute(), aspect);
        let is_implied = |key: u64| key as u32 == implied_low(code_of(key));
        let kind = if is_implied(first) && is_implied(last) { Kind::Keys } else { Kind::KeysWithLows };
        let lows = if kind == Kind::Keys { [0, 0] } else { [first as u32, last as u32] };
        Predicate { slot, kind, words: [code_of(first), code_of(last), lows[0], lows[1]] }
    }

    fn strings(&mut self, constraint: &Constraint, set: &ValueSet) -> Predicate {
        if set.has_patterns() {
            if let Some(test) = self.sets.acquire_pattern(constraint, set, self.slots) {
                let slot = self.sets[test].slot;
                return Predicate { slot, kind: Kind::Codes, words: [1, 1, 0, 0] };
            }
            return self.tested(constraint, Aspect::Order, 1, u32::MAX);
        }
        let is_point = |(first, end): (&str, Option<&str>)| {
            end.is_some_and(|end| end.strip_prefix(first).is_some_and(|rest| rest == "\0"))
        };
        let intervals = set.strings().intervals();
        if intervals.len() <= MOST_WORDS && set.strings().intervals().all(is_point) {
            let words = set.strings().intervals().map(|(first, _)| first.as_bytes());
            if let Some(predicate) = self.words(constraint, Aspect::Word, words) {
                return predicate;
            }
        }
        let mut intervals = set.strings().intervals();
        match (intervals.next(), intervals.next(), intervals.next()) {
            (Some((first, end)), None, None) => self.string_interval(constraint, first, end),
            (Some(("", Some(hole))), Some((after, None)), None) if is_point((hole, Some(after))) => {
                let slot = self.slots.acquire(constraint.attribute(), Aspect::Word);
                let code = self.slots.acquire_word(slot, hole.as_bytes());
                Predicate { slot, kind: Kind::NotCodes, words: [code, code, 0, 0] }
            }
            (first, ..) => {
                let first = first.map_or(1, |(first, _)| string_code(first));
                let last = set.strings().intervals().last().and_then(|(_, end)| end);
                self.tested(constraint, Aspect::Order, first, last.map_or(u32::MAX, string_code))
            }
        }
    }

    fn string_interval(&mut self, constraint: &Constraint, first: &str, end: Option<&str>) -> Predicate {
        let (first_code, is_first_sharp) = (string_code(first), is_least_of_code(first));
        let (last_code, is_last_sharp) = match end {
            None => (u32::MAX, true),
            Some(end) if is_least_of_code(end) => (string_code(end) - 1, true),
            Some(end) => (string_code(end), false),
        };
        if is_first_sharp && is_last_sharp {
            return self.codes(constraint, Aspect::Order, Kind::Codes, first_code, last_code);
        }
        Predicate { kind: Kind::Edges, ..self.tested(constraint, Aspect::Order, first_code, last_code) }
    }

    /// One of some words of the dictionary; none, and nothing changes, if their codes do not fit a mask.
    fn words(
        &mut self,
        constraint: &Constraint,
        aspect: Aspect,
        words: impl Iterator<Item = impl AsRef<[u8]>>,
    ) -> Option<Predicate> {
        let slot = self.slots.acquire(constraint.attribute(), aspect);
        let codes: Vec<u32> = words.map(|word| self.slots.acquire_word(slot, word.as_ref())).collect();
        if let [code] = codes[..] {
            return Some(Predicate { slot, kind: Kind::Codes, words: [code, code, 0, 0] });
        }
        let greatest = codes.iter().copied().max().unwrap_or(0);
        if greatest <= 128 {
            let mut words = [0; 4];
            codes.iter().for_each(|code| words[(code - 1) as usize / 32] |= 1 << ((code - 1) % 32));
            let kind = if greatest <= 64 { Kind::Mask } else { Kind::WideMask };
            return Some(Predicate { slot, kind, words });
        }
        codes.iter().for_each(|&code| self.slots.release_word(slot, code));
        self.slots.release(slot);
        None
    }

    /// Gives back what a predicate uses. Says the slot if nobody uses it any more.
    pub(super) fn release(&mut self, predicate: &Predicate) -> Option<u32> {
        let (slot, aspect) = (predicate.slot, self.slots[predicate.slot].aspect);
        if matches!(aspect, Aspect::Word | Aspect::Numeral) {
            match predicate.kind {
                Kind::Codes | Kind::NotCodes => self.slots.release_word(slot, predicate.first()),
                Kind::Mask | Kind::WideMask => {
                    predicate.codes().for_each(|code| self.slots.release_word(slot, code));
                }
                Kind::Keys | Kind::KeysWithLows | Kind::Outside | Kind::Edges | Kind::Test | Kind::Absent => {}
            }
        }
        let is_last = self.slots.release(slot);
        if let Aspect::Pattern(test) = aspect {
            self.sets.release(test, self.slots);
        }
        if let Some(test) = predicate.test() {
            self.sets.release(test, self.slots);
        }
        is_last.then_some(slot)
    }
}

/// Whether a set of times starts with the least of all.
fn is_least_time(constraint: &Constraint) -> bool {
    match constraint.test() {
        Test::Absent | Test::Present => false,
        Test::In(set) => set.times().intervals().next().is_some_and(|(first, _)| first.0 == i64::MIN),
    }
}

/// Whether a set of numbers or times reaches from the least to the greatest of its class.
fn is_whole_line(constraint: &Constraint) -> bool {
    let Test::In(set) = constraint.test() else { return false };
    let mut numbers = set.numbers().intervals();
    let mut times = set.times().intervals();
    match (numbers.next(), numbers.last(), times.next(), times.last()) {
        (Some((first, _)), Some((_, last)), None, None) => {
            (first, last) == (enroute_filter::Number::MIN, enroute_filter::Number::MAX)
        }
        (None, None, Some((first, _)), Some((_, last))) => first.0 == i64::MIN && last.0 == i64::MAX,
        _ => false,
    }
}
