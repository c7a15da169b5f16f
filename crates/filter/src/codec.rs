//! The canonical form of filters and conjunctions as bytes: what travels between brokers, and what digests are taken of.
//!
//! The first byte is the version of the layout. Then, with every count and length a varint (LEB128) in front:
//!
//! ```text
//! filter      = version, count, conjunctions
//! conjunction = count, constraints               (with the version in front where it stands alone)
//! constraint  = attribute as a string, test
//! test        = 0 absent | 1 present | the parts that follow, as bits: 2 false, 4 true, 8 numbers, 16 times,
//!               32 intervals of strings, 64 terms with patterns
//! numbers     = count, intervals: a byte with the form of the first number in its low half, of the last in its high half
//!               (0 integer, 1 float, 2 infinite, 3 the same as the first), then the two
//! times       = count, intervals: first, then the nanoseconds from there to the last
//! strings     = count, intervals: first, then 0 for only that, 1 for all that follow, 2 for all that start with it,
//!               3 and the first string behind
//! terms       = count, terms: intervals, count, patterns that all fit, count, patterns none of which fits
//! pattern     = LIKE's text as a string, with a backslash before a literal `%`, `_` or backslash
//! string      = length, UTF-8
//! ```
//!
//! Integers are zigzag varints, floats eight bytes, little-endian. There is exactly one way to write a filter: what is
//! read is written again and has to give the same bytes. Nothing nests, and nothing is reserved on the word of a count.

use crate::pattern::{Like, Pattern};
use crate::set::{BoolSet, Interval, Intervals, Line, NumberSet, StringSet, StringTerm, TimeSet, prefix_interval};
use crate::{Conjunction, Constraint, Filter, Limit, Number, Test, Timestamp, ValueRef, ValueSet};

/// The version of the layout.
const VERSION: u8 = 1;

const ABSENT: u8 = 0;
const PRESENT: u8 = 1;
const HAS_FALSE: u8 = 2;
const HAS_TRUE: u8 = 4;
const HAS_NUMBERS: u8 = 8;
const HAS_TIMES: u8 = 16;
const HAS_STRINGS: u8 = 32;
const HAS_TERMS: u8 = 64;
const ALL_PARTS: u8 = HAS_FALSE | HAS_TRUE | HAS_NUMBERS | HAS_TIMES | HAS_STRINGS | HAS_TERMS;

const INT: u8 = 0;
const FLOAT: u8 = 1;
const INFINITE: u8 = 2;
const SAME: u8 = 3;

const ONLY: u8 = 0;
const ALL_FOLLOWING: u8 = 1;
const ALL_STARTING_WITH: u8 = 2;
const UP_TO: u8 = 3;

/// Why bytes are no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed filter: {0}")]
pub struct DecodeError(pub &'static str);

const NOT_CANONICAL: DecodeError = DecodeError("not in canonical form");

impl Filter {
    /// The canonical form as bytes, versioned; equal filters give equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer(vec![VERSION]);
        writer.list(self.conjunctions(), Writer::conjunction);
        writer.0
    }

    /// Reads and checks what [`Filter::to_bytes`] wrote.
    ///
    /// # Errors
    /// Anything that is not canonical, or exceeds the default [`Limits`](crate::Limits).
    pub fn from_bytes(bytes: &[u8]) -> Result<Filter, DecodeError> {
        let mut reader = Reader::new(bytes)?;
        let conjunctions = reader.list(Reader::conjunction)?;
        if conjunctions.len() > Limit::Conjunctions.default_maximum() {
            return Err(DecodeError("too many conjunctions"));
        }
        reader.finish()?;
        let filter = Filter::from_canonical(conjunctions).ok_or(NOT_CANONICAL)?;
        if filter.to_bytes() == bytes { Ok(filter) } else { Err(NOT_CANONICAL) }
    }
}

impl Conjunction {
    /// The canonical form as bytes, versioned; equal conjunctions give equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer(vec![VERSION]);
        writer.conjunction(self);
        writer.0
    }

    /// Reads and checks what [`Conjunction::to_bytes`] wrote.
    ///
    /// # Errors
    /// Anything that is not canonical, or exceeds the default [`Limits`](crate::Limits).
    pub fn from_bytes(bytes: &[u8]) -> Result<Conjunction, DecodeError> {
        let mut reader = Reader::new(bytes)?;
        let conjunction = reader.conjunction()?;
        reader.finish()?;
        if conjunction.to_bytes() == bytes { Ok(conjunction) } else { Err(NOT_CANONICAL) }
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn int(&mut self, value: i64) {
        self.varint((value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned());
    }

    fn string(&mut self, string: &str) {
        self.varint(string.len() as u64);
        self.0.extend_from_slice(string.as_bytes());
    }

    fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
        write: impl Fn(&mut Self, T),
    ) {
        let items = items.into_iter();
        self.varint(items.len() as u64);
        items.for_each(|item| write(self, item));
    }

    fn conjunction(&mut self, conjunction: &Conjunction) {
        self.list(conjunction.constraints(), |writer, constraint| {
            writer.string(constraint.attribute());
            match constraint.test() {
                Test::Absent => writer.0.push(ABSENT),
                Test::Present => writer.0.push(PRESENT),
                Test::In(set) => writer.set(set),
            }
        });
    }

    fn set(&mut self, set: &ValueSet) {
        let parts = [
            (HAS_FALSE, set.bools.contains(false)),
            (HAS_TRUE, set.bools.contains(true)),
            (HAS_NUMBERS, !set.numbers.is_empty()),
            (HAS_TIMES, !set.times.is_empty()),
            (HAS_STRINGS, !set.strings.intervals.is_empty()),
            (HAS_TERMS, !set.strings.terms.is_empty()),
        ];
        self.0.push(parts.iter().filter(|(_, is_there)| *is_there).map(|(bit, _)| bit).sum());
        if !set.numbers.is_empty() {
            self.list(set.numbers.intervals(), |writer, (first, last)| writer.numbers(first, last));
        }
        if !set.times.is_empty() {
            self.list(set.times.intervals(), |writer, (first, last)| {
                writer.int(first.0);
                writer.varint(last.0.wrapping_sub(first.0).cast_unsigned());
            });
        }
        if !set.strings.intervals.is_empty() {
            self.strings(&set.strings.intervals);
        }
        if !set.strings.terms.is_empty() {
            self.list(&set.strings.terms, |writer, term| {
                writer.strings(&term.within);
                writer.list(&term.all_of, |writer, pattern| writer.string(&pattern.to_string()));
                writer.list(&term.none_of, |writer, pattern| writer.string(&pattern.to_string()));
            });
        }
    }

    fn numbers(&mut self, first: Number, last: Number) {
        let form = |number: Number| match number.to_value() {
            ValueRef::Int(_) => INT,
            _ => FLOAT,
        };
        let first_form = if first == Number::MIN { INFINITE } else { form(first) };
        let last_form = if last == first {
            SAME
        } else if last == Number::MAX {
            INFINITE
        } else {
            form(last)
        };
        self.0.push(first_form | last_form << 4);
        for (form, number) in [(first_form, first), (last_form, last)] {
            match number.to_value() {
                _ if form == INFINITE || form == SAME => {}
                ValueRef::Int(int) => self.int(int),
                ValueRef::Float(float) => self.0.extend(float.to_le_bytes()),
                ValueRef::Bool(_) | ValueRef::String(_) | ValueRef::Time(_) => {
                    unreachable!("a number is no other value")
                }
            }
        }
    }

    fn strings(&mut self, intervals: &Intervals<Box<str>>) {
        self.list(intervals.iter(), |writer, interval| {
            writer.string(&interval.start);
            match &interval.end {
                None => writer.0.push(ALL_FOLLOWING),
                Some(_) if interval.is_point() => writer.0.push(ONLY),
                Some(_) if interval.is_prefix() => writer.0.push(ALL_STARTING_WITH),
                Some(end) => {
                    writer.0.push(UP_TO);
                    writer.string(end);
                }
            }
        });
    }
}

/// What is still to be read.
struct Reader<'a> {
    rest: &'a [u8],
    patterns: usize,
}

impl<'a> Reader<'a> {
    /// Checks size and version.
    fn new(bytes: &'a [u8]) -> Result<Reader<'a>, DecodeError> {
        if bytes.len() > Limit::FilterBytes.default_maximum() {
            return Err(DecodeError("too long"));
        }
        let mut reader = Reader { rest: bytes, patterns: 0 };
        if reader.byte()? == VERSION { Ok(reader) } else { Err(DecodeError("unknown version")) }
    }

    fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError("bytes are left over")) }
    }

    fn bytes(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(DecodeError("cut short"))?;
        self.rest = rest;
        Ok(bytes)
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        Ok(self.bytes(1)?[0])
    }

    fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError("a number is too long"))
    }

    fn int(&mut self) -> Result<i64, DecodeError> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    fn string(&mut self) -> Result<&'a str, DecodeError> {
        let length = usize::try_from(self.varint()?).map_err(|_| DecodeError("cut short"))?;
        std::str::from_utf8(self.bytes(length)?).map_err(|_| DecodeError("a string is not UTF-8"))
    }

    /// Every item takes at least a byte, so a false count ends with the bytes.
    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Result<T, DecodeError>) -> Result<Vec<T>, DecodeError> {
        let count = self.varint()?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(read(self)?);
        }
        Ok(items)
    }

    fn conjunction(&mut self) -> Result<Conjunction, DecodeError> {
        let constraints = self.list(Reader::constraint)?;
        let sorted = constraints.windows(2).all(|pair| pair[0].attribute() < pair[1].attribute());
        if sorted { Ok(Conjunction::from_sorted(constraints)) } else { Err(NOT_CANONICAL) }
    }

    fn constraint(&mut self) -> Result<Constraint, DecodeError> {
        let attribute = self.string()?;
        if attribute.is_empty() {
            return Err(DecodeError("an attribute has no name"));
        }
        if attribute.len() > Limit::AttributeName.default_maximum() {
            return Err(DecodeError("an attribute's name is too long"));
        }
        let test = match self.byte()? {
            ABSENT => Test::Absent,
            PRESENT => Test::Present,
            parts if parts & !ALL_PARTS == 0 => Test::In(self.set(parts)?),
            _ => return Err(DecodeError("unknown test")),
        };
        Ok(Constraint::new(attribute, test))
    }

    fn set(&mut self, parts: u8) -> Result<ValueSet, DecodeError> {
        let bools = BoolSet::from_membership(parts & HAS_FALSE != 0, parts & HAS_TRUE != 0);
        let numbers = if parts & HAS_NUMBERS != 0 { self.intervals(Reader::numbers)? } else { Intervals::none() };
        let times = if parts & HAS_TIMES != 0 { self.intervals(Reader::times)? } else { Intervals::none() };
        let intervals = if parts & HAS_STRINGS != 0 { self.intervals(Reader::strings)? } else { Intervals::none() };
        let mut strings = StringSet::from(intervals);
        if parts & HAS_TERMS != 0 {
            strings.terms = self.list(Reader::term)?;
            // Bounds what comes next, which compares each term with each.
            self.patterns += strings.pattern_count();
            if strings.terms.iter().any(|term| term.all_of.is_empty() && term.none_of.is_empty()) {
                return Err(NOT_CANONICAL);
            }
            if self.patterns > Limit::Patterns.default_maximum() {
                return Err(DecodeError("too many patterns"));
            }
            if StringSet::normalised(strings.intervals.clone(), strings.terms.clone()) != strings {
                return Err(NOT_CANONICAL);
            }
        }
        Ok(ValueSet { bools, numbers: NumberSet(numbers), times: TimeSet(times), strings })
    }

    fn intervals<P: Line>(
        &mut self,
        read: impl Fn(&mut Self) -> Result<Interval<P>, DecodeError>,
    ) -> Result<Intervals<P>, DecodeError> {
        let intervals = self.list(read)?;
        Intervals::from_canonical(intervals).ok_or(NOT_CANONICAL)
    }

    fn numbers(&mut self) -> Result<Interval<Number>, DecodeError> {
        let forms = self.byte()?;
        let first = match forms & 0xf {
            INFINITE => Number::MIN,
            form => self.number(form)?,
        };
        let last = match forms >> 4 {
            SAME => first,
            INFINITE => Number::MAX,
            form => self.number(form)?,
        };
        Ok(Interval { start: first, end: last.successor() })
    }

    fn number(&mut self, form: u8) -> Result<Number, DecodeError> {
        match form {
            INT => Ok(Number::from(self.int()?)),
            FLOAT => {
                let bytes = self.bytes(8)?.first_chunk().ok_or(DecodeError("cut short"))?;
                Number::from_f64(f64::from_le_bytes(*bytes)).ok_or(NOT_CANONICAL)
            }
            _ => Err(DecodeError("unknown form of a number")),
        }
    }

    fn times(&mut self) -> Result<Interval<Timestamp>, DecodeError> {
        let first = self.int()?;
        let last = first.checked_add_unsigned(self.varint()?).ok_or(DecodeError("a time is out of range"))?;
        Ok(Interval { start: Timestamp(first), end: Timestamp(last).successor() })
    }

    fn strings(&mut self) -> Result<Interval<Box<str>>, DecodeError> {
        let start: Box<str> = self.string()?.into();
        let end = match self.byte()? {
            ALL_FOLLOWING => None,
            ONLY => start.successor(),
            ALL_STARTING_WITH => prefix_interval(&start).into_iter().next().and_then(|interval| interval.end),
            UP_TO => Some(self.string()?.into()),
            _ => return Err(DecodeError("unknown form of an interval")),
        };
        Ok(Interval { start, end })
    }

    fn term(&mut self) -> Result<StringTerm, DecodeError> {
        let within = self.intervals(Reader::strings)?;
        Ok(StringTerm { within, all_of: self.list(Reader::pattern)?, none_of: self.list(Reader::pattern)? })
    }

    fn pattern(&mut self) -> Result<Pattern, DecodeError> {
        match Pattern::like(self.string()?, Some('\\')) {
            Ok(Like::Pattern(pattern)) => Ok(pattern),
            Ok(Like::Exactly(_) | Like::Prefix(_) | Like::LongerPrefix(_)) => Err(NOT_CANONICAL),
            Err(_) => Err(DecodeError("malformed pattern")),
        }
    }
}

#[cfg(test)]
mod tests;
