//! Where on one line the values lie that a test accepts.
//!
//! A place on the line is a [`Code`]: a byte for the class and bytes that keep the order of the class's values, if not every
//! difference (of a number, the nearest f64; of a string, the beginning). That is good enough to narrow down, never to decide.

use enroute_filter::{Number, StringSet, Test, Timestamp, ValueRef, ValueSet};
use std::hash::{DefaultHasher, Hash, Hasher};

const BOOL: u8 = 1;
const NUMBER: u8 = 2;
const STRING: u8 = 3;
const TIME: u8 = 4;
/// Behind all values: what a test says that wants none.
const ABSENT: u8 = 5;

/// How many bytes of a string count: enough for what topics and paths have in common, few enough to bound the work.
const MAX_STRING: usize = 63;

/// The level of the cells of single values, below those of all bits.
const SINGLE: u16 = u16::MAX;

/// A place on the line.
pub(crate) type Code = Box<[u8]>;

/// The least and the greatest code of the values that a test accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) low: Code,
    pub(crate) high: Code,
    /// Tells single values of one code apart: a hash of the value, never 0; 0 if the test accepts several.
    pub(crate) single: u64,
}

/// A piece of the line: all codes that begin with the same bits, or a single value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    /// How many bits are the same, 0 being the whole line; or [`SINGLE`].
    pub(crate) level: u16,
    bits: Code,
    single: u64,
}

impl Span {
    /// The span of a test. Of patterns it knows only the intervals they are kept with, which is all that counts: a test that
    /// covers another one has those of the other within its own.
    pub(crate) fn of(test: &Test) -> Span {
        match test {
            Test::Absent => Span { low: code(ABSENT, []), high: code(ABSENT, []), single: 1 },
            Test::Present => Span { low: code(0, []), high: code(ABSENT, []), single: 0 },
            Test::In(set) => {
                if let Some(span) = single_value(set) {
                    return span;
                }
                let mut span = Span { low: code(u8::MAX, []), high: code(0, []), single: 0 };
                for value in [false, true] {
                    if set.bools().contains(value) {
                        span.reach(bool_code(value), bool_code(value));
                    }
                }
                for (first, last) in set.numbers().intervals() {
                    span.reach(number_code(first), number_code(last));
                }
                for (first, last) in set.times().intervals() {
                    span.reach(time_code(first), time_code(last));
                }
                span.reach_strings(set.strings());
                span
            }
        }
    }

    fn reach(&mut self, low: Code, high: Code) {
        if low < self.low {
            self.low = low;
        }
        if high > self.high {
            self.high = high;
        }
    }

    fn reach_strings(&mut self, strings: &StringSet) {
        let terms = strings.terms().iter().flat_map(|term| term.within());
        for (first, behind) in strings.intervals().chain(terms) {
            self.reach(string_code(first), behind.map_or_else(|| code(TIME, []), string_code));
        }
    }

    /// The smallest cell that holds the span.
    pub(crate) fn cell(&self) -> Cell {
        let level = if self.single == 0 { common_bits(&self.low, &self.high) } else { SINGLE };
        Cell::new(&self.low, level, self.single)
    }

    /// Those of the levels, ascending, on which a cell holds the span, with these cells.
    pub(crate) fn cells_at<'a>(&'a self, levels: impl Iterator<Item = u16> + 'a) -> impl Iterator<Item = Cell> + 'a {
        let (deepest, single) = match self.single {
            0 => (common_bits(&self.low, &self.high), false),
            _ => (8 * self.low.len() as u16, true),
        };
        let holds = move |&level: &u16| level <= deepest || single && level == SINGLE;
        levels.filter(holds).map(|level| Cell::new(&self.low, level, if level == SINGLE { self.single } else { 0 }))
    }
}

impl Cell {
    /// The cell of a level that holds a code.
    fn new(code: &[u8], level: u16, single: u64) -> Cell {
        let mut bits = Code::from(&code[..code.len().min(usize::from(level.div_ceil(8)))]);
        if level != SINGLE
            && !level.is_multiple_of(8)
            && let Some(last) = bits.last_mut()
        {
            *last &= 0xFF << (8 - level % 8);
        }
        Cell { level, bits, single }
    }
}

/// How many bits two codes begin with alike.
fn common_bits(a: &[u8], b: &[u8]) -> u16 {
    let alike = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let next = a.get(alike).zip(b.get(alike)).map_or(0, |(a, b)| (a ^ b).leading_zeros());
    (8 * alike as u32 + next) as u16
}

fn code(class: u8, bytes: impl IntoIterator<Item = u8>) -> Code {
    std::iter::once(class).chain(bytes).collect()
}

fn bool_code(value: bool) -> Code {
    code(BOOL, [u8::from(value)])
}

fn number_code(number: Number) -> Code {
    let bits = number.to_f64_rounded().to_bits();
    // The usual trick: the bits of floats, read as integers, are in order, the negative ones in reverse.
    let ordered = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
    code(NUMBER, ordered.to_be_bytes())
}

fn time_code(time: Timestamp) -> Code {
    code(TIME, (time.0 as u64 ^ 1 << 63).to_be_bytes())
}

fn string_code(string: &str) -> Code {
    code(STRING, string.bytes().take(MAX_STRING))
}

/// The span of a set that is one value.
fn single_value(set: &ValueSet) -> Option<Span> {
    let bools = [false, true].into_iter().filter(|&value| set.bools().contains(value)).map(ValueRef::Bool);
    let numbers = set.numbers().intervals().map(|(first, last)| (first == last).then(|| first.to_value()));
    let times = set.times().intervals().map(|(first, last)| (first == last).then_some(ValueRef::Time(first)));
    let strings = set.strings().intervals().map(|(first, behind)| {
        let is_single = behind.and_then(|behind| behind.strip_prefix(first)) == Some("\0");
        is_single.then_some(ValueRef::String(first))
    });
    let mut parts = bools.map(Some).chain(numbers).chain(times).chain(strings);
    let (Some(Some(value)), None, true) = (parts.next(), parts.next(), set.strings().terms().is_empty()) else {
        return None;
    };
    let mut hasher = DefaultHasher::new();
    let code = match value {
        ValueRef::Bool(value) => bool_code(value),
        ValueRef::Int(value) => {
            value.hash(&mut hasher);
            number_code(Number::from(value))
        }
        ValueRef::Float(value) => number_code(Number::from_f64(value)?),
        ValueRef::Time(value) => {
            value.0.hash(&mut hasher);
            time_code(value)
        }
        ValueRef::String(value) => {
            value.hash(&mut hasher);
            string_code(value)
        }
    };
    Some(Span { low: code.clone(), high: code, single: hasher.finish().max(1) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{mixed_tests, number_tests, pattern_tests};
    use enroute_filter::Comparison;

    /// What the index relies on.
    #[test]
    fn a_test_that_covers_another_spans_it() {
        let long = "x".repeat(2 * MAX_STRING);
        let mut tests = [number_tests(), mixed_tests(), pattern_tests()].concat();
        for string in ["", "a", "\0", "é"].map(|end| format!("{long}{end}")) {
            tests.extend(
                [Comparison::Eq, Comparison::Ge, Comparison::Lt].map(|comparison| Test::compare(comparison, &*string)),
            );
            tests.push(Test::prefix(&string));
        }
        let mut covering = 0;
        for upper in &tests {
            for lower in tests.iter().filter(|lower| upper.covers(lower)) {
                let (outer, inner) = (Span::of(upper), Span::of(lower));
                let cell = outer.cell();
                assert_eq!(inner.cells_at([cell.level].into_iter()).next(), Some(cell), "{upper:?} and {lower:?}");
                assert!((&outer.low..=&outer.high).contains(&&inner.low), "{upper:?} and {lower:?}");
                assert!(outer.single == 0 || outer == inner, "{upper:?} and {lower:?}");
                covering += 1;
            }
        }
        assert!(covering > 1_000, "{covering}");
    }
}
