//! Where on a line the values lie that a test accepts.
//!
//! Each class of values has a line of its own. A place on it is a [`Code`], which keeps the order of the values, though not
//! every difference (of a number, the nearest f64; of a string, the beginning): good enough to narrow down, never to decide.
//!
//! What the index relies on: a test that covers another one has a span that contains the other's, and each is among what
//! the other's [`Span::keys_of_covering`] and [`Span::keys_of_covered`] name.

use enroute_filter::{
    Class, Number, NumberSet, Pattern, PatternKind, StringSet, Symbol, Test, TimeSet, Timestamp, ValueSet,
};
use std::cmp::{Ordering, Reverse};
use std::hash::{BuildHasher, Hash};

/// How many bytes of a string count: enough for what topics and paths have in common, few enough to bound the work.
const MAX_STRING: usize = 64;

/// Where in an outline's ends the line is.
const LINE_SHIFT: u32 = 29;

const POINT: u8 = 0;
const LEFT: u8 = 1;
const PATTERN: u8 = 4;
const STRING_LINE: u32 = Line::String as u32;
/// Digits that are alike in a cell: of numbers, what is between two powers of two is 16 cells.
const CELL_DIGITS: u8 = 4;
/// Behind all of [`Kind::Inner`].
const HOLE: u8 = PATTERN + 1 + 16 + 2 * (MAX_STRING as u8 - 8) + 1;

/// What the values of a test are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Line {
    Bool,
    Number,
    String,
    Time,
    /// Its only place is "no value".
    Absent,
    /// Of several classes, or any value at all.
    Mixed,
}

/// Which part of its line a span takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A single value.
    Point,
    /// From the line's beginning: `<=`.
    Left,
    /// To the line's end: `>=`.
    Right,
    /// All of it, perhaps with several gaps.
    All,
    /// What fits a pattern that may begin with anything.
    Pattern,
    /// Something between, whose ends begin with so many equal hexadecimal digits and no more.
    Inner(u8),
    /// All of it but for a hole, `<>`, the ends of which begin with so many equal digits, or more. What contains it has a hole
    /// that it contains.
    Hole(u8),
}

/// More equal digits of the ends of a hole are not counted.
const MAX_HOLE_DIGITS: u8 = u8::MAX - HOLE;

/// The spans of one kind on one line; their order is that of their [keys](Span::key).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Group {
    line: Line,
    kind: Kind,
}

/// A place on a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Code {
    head: u64,
    /// Of a string, what follows the first eight bytes.
    rest: Box<[u8]>,
}

/// The least and the greatest code of the values that a test accepts; of those around a hole, of the hole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) group: Group,
    low: Code,
    high: Code,
    /// Tells single values of one code apart; of a pattern, the pieces that what fits it contains, as bits. Of anything else 0.
    hash: u64,
}

/// Of a group, all spans from the first key to the second, both included.
pub(crate) type Keys = (Code, Code);

/// A span in few bytes, to be compared at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outline {
    /// Of the kind, its [`Kind::number`].
    pub(crate) kind: u8,
    /// The line, and the first bits of the low code. Of a pattern, half of its pieces.
    pub(crate) low: u32,
    /// Likewise of the high code; of a single value, a hash of it; of a pattern, the other half.
    pub(crate) high: u32,
}

impl Ord for Code {
    fn cmp(&self, other: &Code) -> Ordering {
        self.head.cmp(&other.head).then_with(|| match self.rest.is_empty() && other.rest.is_empty() {
            // So it is mostly, and a call for it costs more than all the rest.
            true => Ordering::Equal,
            false => self.rest.cmp(&other.rest),
        })
    }
}

impl PartialOrd for Code {
    fn partial_cmp(&self, other: &Code) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Code {
    fn new(head: u64) -> Code {
        Code { head, rest: Box::default() }
    }

    /// Behind all others.
    fn greatest() -> Code {
        Code::new(u64::MAX)
    }

    pub(crate) fn of_string(string: &str) -> Code {
        let bytes = &string.as_bytes()[..string.len().min(MAX_STRING)];
        let (first, rest) = bytes.split_at(bytes.len().min(8));
        let mut head = [0; 8];
        head[..first.len()].copy_from_slice(first);
        Code { head: u64::from_be_bytes(head), rest: rest.into() }
    }

    fn of_number(float: f64) -> Code {
        let bits = float.to_bits();
        // The usual trick: the bits of floats, read as integers, are in order, the negative ones in reverse.
        Code::new(if bits >> 63 == 0 { bits | 1 << 63 } else { !bits })
    }

    fn of_time(time: Timestamp) -> Code {
        Code::new(time.0 as u64 ^ 1 << 63)
    }

    /// How many hexadecimal digits two codes begin with alike.
    fn common_digits(&self, other: &Code) -> u8 {
        if self.head != other.head {
            return ((self.head ^ other.head).leading_zeros() / 4) as u8;
        }
        let alike = self.rest.iter().zip(&other.rest).take_while(|(a, b)| a == b).count();
        let next = self.rest.get(alike).zip(other.rest.get(alike)).map_or(0, |(a, b)| (a ^ b).leading_zeros() / 4);
        (16 + 2 * alike as u32 + next) as u8
    }

    /// The least code that begins with the same so many digits.
    fn cell(&self, digits: u8) -> Code {
        match digits {
            0 => Code::default(),
            1..16 => Code::new(self.head & u64::MAX << (64 - 4 * u32::from(digits))),
            16.. => {
                let digits = usize::from(digits - 16);
                let mut rest = self.rest[..digits.div_ceil(2).min(self.rest.len())].to_vec();
                if digits % 2 == 1
                    && let Some(last) = rest.get_mut(digits / 2)
                {
                    *last &= 0xF0;
                }
                Code { head: self.head, rest: rest.into() }
            }
        }
    }
}

impl Kind {
    /// Keeps the order.
    fn number(self) -> u8 {
        match self {
            Kind::Point => POINT,
            Kind::Left => LEFT,
            Kind::Right => 2,
            Kind::All => 3,
            Kind::Pattern => PATTERN,
            Kind::Inner(digits) => PATTERN + 1 + digits,
            Kind::Hole(digits) => HOLE + digits,
        }
    }
}

impl Line {
    /// The codes of its least and its greatest value.
    fn ends(self) -> (Code, Code) {
        match self {
            Line::Bool => (Code::new(0), Code::new(1)),
            Line::Number => (Code::of_number(f64::NEG_INFINITY), Code::of_number(f64::INFINITY)),
            Line::String | Line::Time | Line::Mixed => (Code::default(), Code::greatest()),
            Line::Absent => (Code::default(), Code::default()),
        }
    }
}

impl Span {
    /// The span of a test. Of patterns it knows the intervals they are kept with.
    pub(crate) fn of(test: &Test) -> Span {
        match test {
            Test::Absent => Span::point(Line::Absent, Code::default(), 0),
            Test::Present => Span::all(Line::Mixed),
            Test::In(set) => {
                let mut classes = set.classes();
                match (classes.next(), classes.next()) {
                    (Some(class), None) => Span::of_class(class, set),
                    (None, _) | (Some(_), Some(_)) => Span::all(Line::Mixed),
                }
            }
        }
    }

    /// The span of a set of values of one class.
    fn of_class(class: Class, set: &ValueSet) -> Span {
        match class {
            Class::Bool => match (set.bools().contains(false), set.bools().contains(true)) {
                (true, true) => Span::all(Line::Bool),
                (_, has_true) => Span::point(Line::Bool, Code::new(has_true.into()), has_true),
            },
            Class::Number => Span::of_numbers(set.numbers()),
            Class::Time => Span::of_times(set.times()),
            Class::String => Span::of_strings(set.strings()),
        }
    }

    fn of_numbers(set: &NumberSet) -> Span {
        let code = |number: Number| Code::of_number(number.to_f64_rounded());
        let hole = |before: Number, behind: Number| Some((before.successor()?, behind.predecessor()?));
        Span::of_intervals(Line::Number, set.intervals(), code, hole)
    }

    fn of_times(set: &TimeSet) -> Span {
        let hole = |before: Timestamp, behind: Timestamp| {
            Some((Timestamp(before.0.checked_add(1)?), Timestamp(behind.0.checked_sub(1)?)))
        };
        Span::of_intervals(Line::Time, set.intervals(), Code::of_time, hole)
    }

    /// `hole` says the first and the last value between two values.
    fn of_intervals<V: Copy + PartialEq + Hash>(
        line: Line,
        mut intervals: impl ExactSizeIterator<Item = (V, V)>,
        code: impl Fn(V) -> Code,
        hole: impl Fn(V, V) -> Option<(V, V)>,
    ) -> Span {
        let count = intervals.len();
        let Some((low, end)) = intervals.next() else { return Span::all(line) };
        if count == 1 && low == end {
            return Span::point(line, code(low), low);
        }
        let (start, high) = intervals.last().unwrap_or((low, end));
        let span = Span::between(line, code(low), code(high));
        match hole(end, start) {
            Some((first, last)) if count == 2 && span.group.kind == Kind::All => {
                Span::around(line, code(first), code(last))
            }
            _ => span,
        }
    }

    fn of_strings(set: &StringSet) -> Span {
        let terms = set.terms().iter().flat_map(|term| term.within());
        let intervals: Vec<(&str, Option<&str>)> = set.intervals().chain(terms).collect();
        if let [("", Some(first)), (behind, None)] = intervals[..]
            && set.terms().is_empty()
        {
            return Span::around(Line::String, Code::of_string(first), Code::of_string(behind));
        }
        if let [term] = set.terms()
            && let ([pattern], []) = (term.all_of(), term.none_of())
            && let [("", None)] = intervals[..]
        {
            let group = Group { line: Line::String, kind: Kind::Pattern };
            return Span { group, hash: pieces(pattern), ..Span::all(Line::String) };
        }
        let low = intervals.iter().map(|(low, _)| *low).min();
        let behind = intervals.iter().map(|(_, behind)| *behind).max_by_key(|behind| (behind.is_none(), *behind));
        let (Some(low), Some(behind)) = (low, behind) else { return Span::all(Line::String) };
        let is_point = intervals.len() == 1 && behind.and_then(|behind| behind.strip_prefix(low)) == Some("\0");
        if is_point {
            return Span::point(Line::String, Code::of_string(low), low);
        }
        Span::between(Line::String, Code::of_string(low), behind.map_or_else(Code::greatest, Code::of_string))
    }

    fn around(line: Line, low: Code, high: Code) -> Span {
        let kind = Kind::Hole(low.common_digits(&high).min(MAX_HOLE_DIGITS));
        Span { group: Group { line, kind }, low, high, hash: 0 }
    }

    fn point(line: Line, code: Code, value: impl Hash) -> Span {
        let hash = foldhash::fast::FixedState::default().hash_one(value);
        Span { group: Group { line, kind: Kind::Point }, low: code.clone(), high: code, hash }
    }

    fn all(line: Line) -> Span {
        let (low, high) = line.ends();
        Span { group: Group { line, kind: Kind::All }, low, high, hash: 0 }
    }

    fn between(line: Line, low: Code, high: Code) -> Span {
        let (first, last) = line.ends();
        let kind = match (low == first, high == last) {
            (true, true) => Kind::All,
            (true, false) => Kind::Left,
            (false, true) => Kind::Right,
            (false, false) => Kind::Inner(low.common_digits(&high)),
        };
        Span { group: Group { line, kind }, low, high, hash: 0 }
    }

    /// What orders it within its group: the end that is not the line's own, of two the low one.
    pub(crate) fn key(self) -> Code {
        match self.group.kind {
            Kind::Left => self.high,
            Kind::Point | Kind::Right | Kind::All | Kind::Pattern | Kind::Inner(_) | Kind::Hole(_) => self.low,
        }
    }

    /// Which spans of a group may contain this one.
    pub(crate) fn keys_of_covering(&self, group: Group) -> Option<Keys> {
        let Group { line, kind } = self.group;
        if group.line == Line::Mixed {
            return (line != Line::Absent).then(everywhere);
        }
        if group.line != line {
            return None;
        }
        match (group.kind, kind) {
            (Kind::Point, Kind::Point) => Some((self.low.clone(), self.low.clone())),
            (Kind::Left, Kind::Point | Kind::Left | Kind::Inner(_)) => Some((self.high.clone(), Code::greatest())),
            (Kind::Right, Kind::Point | Kind::Right | Kind::Inner(_)) => Some((Code::default(), self.low.clone())),
            // It begins in the cell that is common to both its ends, as this span does.
            (Kind::Inner(digits), Kind::Point) => Some((self.low.cell(digits), self.low.clone())),
            (Kind::Inner(digits), Kind::Inner(mine)) => {
                (digits <= mine).then(|| (self.low.cell(digits), self.low.clone()))
            }
            (Kind::Hole(digits), Kind::Hole(mine)) => (digits >= mine).then(|| (self.low.clone(), self.high.clone())),
            (Kind::All | Kind::Pattern | Kind::Hole(_), _) => Some(everywhere()),
            (Kind::Point, Kind::Left | Kind::Right | Kind::All | Kind::Pattern | Kind::Inner(_) | Kind::Hole(_))
            | (Kind::Left, Kind::Right | Kind::All | Kind::Pattern | Kind::Hole(_))
            | (Kind::Right, Kind::Left | Kind::All | Kind::Pattern | Kind::Hole(_))
            | (Kind::Inner(_), Kind::Left | Kind::Right | Kind::All | Kind::Pattern | Kind::Hole(_)) => None,
        }
    }

    /// Which spans of a group this one may contain.
    pub(crate) fn keys_of_covered(&self, group: Group) -> Option<Keys> {
        let Group { line, kind } = self.group;
        if line == Line::Mixed {
            return Some(everywhere());
        }
        if group.line != line {
            return None;
        }
        let low_within = || Some((self.low.clone(), self.high.clone()));
        match (group.kind, kind) {
            (Kind::Hole(digits), Kind::Hole(mine)) => {
                (digits <= mine).then(|| (self.low.cell(digits), self.low.clone()))
            }
            (_, Kind::All | Kind::Pattern | Kind::Hole(_)) => Some(everywhere()),
            (Kind::Point, Kind::Point | Kind::Left | Kind::Right | Kind::Inner(_)) => low_within(),
            (Kind::Left, Kind::Left) => Some((Code::default(), self.high.clone())),
            (Kind::Right, Kind::Right) => Some((self.low.clone(), Code::greatest())),
            (Kind::Inner(_), Kind::Left | Kind::Right) => low_within(),
            (Kind::Inner(digits), Kind::Inner(mine)) => (digits >= mine).then(low_within).flatten(),
            (Kind::Left, Kind::Point | Kind::Right | Kind::Inner(_))
            | (Kind::Right, Kind::Point | Kind::Left | Kind::Inner(_))
            | (Kind::All | Kind::Pattern | Kind::Hole(_), Kind::Point | Kind::Left | Kind::Right | Kind::Inner(_))
            | (Kind::Inner(_), Kind::Point) => None,
        }
    }

    /// Whether it may hold values of several classes.
    pub(crate) fn is_mixed(&self) -> bool {
        self.group.line == Line::Mixed
    }

    pub(crate) fn is_on_line_of(&self, other: &Span) -> bool {
        self.group.line == other.group.line
    }

    /// The codes of its least and its greatest value.
    pub(crate) fn ends(&self) -> (Code, Code) {
        match self.group.kind {
            Kind::Hole(_) => self.group.line.ends(),
            Kind::Point | Kind::Left | Kind::Right | Kind::All | Kind::Pattern | Kind::Inner(_) => {
                (self.low.clone(), self.high.clone())
            }
        }
    }

    /// Orders spans such that each comes behind those that contain it: the line, the low end, and the high end reversed.
    pub(crate) fn wider_first(&self, other: &Span) -> Ordering {
        let line = |span: &Span| (Reverse(span.is_mixed()), span.group.line);
        let ((low, high), (other_low, other_high)) = (self.ends(), other.ends());
        line(self).cmp(&line(other)).then_with(|| low.cmp(&other_low)).then_with(|| other_high.cmp(&high))
    }

    /// The span in few bytes.
    pub(crate) fn outline(&self) -> Outline {
        let kind = self.group.kind.number();
        if self.is_mixed() {
            return Outline { kind, low: 0, high: u32::MAX };
        }
        let short = |code: &Code| (self.group.line as u32) << LINE_SHIFT | (code.head >> 35) as u32;
        let (low, high) = self.ends();
        let (low, high) = match self.group.kind {
            Kind::Point => (short(&low), self.hash as u32),
            Kind::Pattern => (self.hash as u32, (self.hash >> 32) as u32),
            Kind::Left | Kind::Right | Kind::All | Kind::Inner(_) | Kind::Hole(_) => (short(&low), short(&high)),
        };
        Outline { kind, low, high }
    }
}

/// The characters that a pattern names, and those that follow one another, as bits.
///
/// If one pattern includes another one, what it names is named by the other one: the other one's strings may have, for
/// each of its wildcards, a character that nobody names.
fn pieces(pattern: &Pattern) -> u64 {
    let bit = |piece: &[char]| 1 << (foldhash::fast::FixedState::default().hash_one(piece) % 64);
    let bits = |text: &[char]| text.windows(2).chain(text.chunks(1)).map(bit).fold(0, |all, bit: u64| all | bit);
    let characters = |text: &str| text.chars().collect::<Vec<char>>();
    match pattern.kind() {
        PatternKind::Suffix(text) | PatternKind::Contains(text) => bits(&characters(text)),
        PatternKind::Like(symbols) => {
            let named = |symbol: &Symbol| match symbol {
                Symbol::Char(character) => Some(*character),
                Symbol::One | Symbol::Many => None,
            };
            let texts = symbols.split(|symbol| named(symbol).is_none());
            texts
                .map(|text| bits(&text.iter().filter_map(named).collect::<Vec<char>>()))
                .fold(0, |all, bits| all | bits)
        }
    }
}

impl Outline {
    pub(crate) fn is_point(self) -> bool {
        self.kind == POINT
    }

    /// The least and the greatest place, both of the low one's form.
    pub(crate) fn ends(self) -> (u32, u32) {
        match self.kind {
            POINT => (self.low, self.low),
            PATTERN => (STRING_LINE << LINE_SHIFT, ((STRING_LINE + 1) << LINE_SHIFT) - 1),
            _ => (self.low, self.high),
        }
    }

    /// The cell of its line in which the span is as a whole, if it is in one. Whatever a span contains is in the same.
    pub(crate) fn cell(self) -> Option<u32> {
        let common = match self.kind {
            POINT => u8::MAX,
            kind if kind > PATTERN && kind < HOLE => kind - PATTERN - 1,
            _ => 0,
        };
        let begins = self.low << (u32::BITS - LINE_SHIFT);
        (common >= CELL_DIGITS).then_some(begins >> (u32::BITS - 4 * u32::from(CELL_DIGITS)))
    }

    /// Whether the span may contain the other one.
    pub(crate) fn may_contain(self, other: Outline) -> bool {
        match (self.kind, other.kind) {
            (POINT, _) => self == other,
            (PATTERN, PATTERN) => self.low & !other.low == 0 && self.high & !other.high == 0,
            _ => {
                let ((low, high), (first, last)) = (self.ends(), other.ends());
                low <= first && last <= high
            }
        }
    }

    /// Orders outlines as the groups and keys of their spans are, though different ones may share a rank.
    pub(crate) fn rank(self) -> u64 {
        let (low, high) = self.ends();
        let end = if self.kind == LEFT { high } else { low };
        u64::from(high >> LINE_SHIFT) << 40 | u64::from(self.kind) << 32 | u64::from(end)
    }
}

fn everywhere() -> Keys {
    (Code::default(), Code::greatest())
}

#[cfg(test)]
mod tests;
