//! Canonical forms and syntax trees as text that parses back to the same.
//!
//! One canonical form can be written in many ways; this picks the one people would: `x > 5` rather than `>=` the number
//! after 5, BETWEEN, IN, PREFIX, and `<>` for a line with single points missing.

use super::expression::{Expression, Operator};
use super::lexer::is_bare_name;
use crate::pattern::{Pattern, PatternKind, Symbol};
use crate::set::{Interval, Intervals, Line, StringTerm, prefix_interval};
use crate::{Comparison, Conjunction, Constraint, Filter, Limit, Number, Test, Timestamp, Value, ValueRef, ValueSet};
use std::fmt;

/// A text, and how tightly it holds together.
struct Piece {
    text: String,
    binding: Binding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binding {
    Or,
    And,
    /// Needs no parentheses anywhere.
    Tight,
}

impl Piece {
    fn tight(text: String) -> Piece {
        Piece { text, binding: Binding::Tight }
    }

    fn parenthesised_if(self, needed: bool) -> String {
        if needed { format!("({})", self.text) } else { self.text }
    }

    /// Any of the pieces; FALSE if there is none. AND inside of OR gets parentheses for the reader's sake.
    fn any(pieces: Vec<Piece>) -> Piece {
        Piece::joined(pieces, " OR ", Binding::Or, "FALSE")
    }

    /// All of the pieces; TRUE if there is none.
    fn all(pieces: Vec<Piece>) -> Piece {
        Piece::joined(pieces, " AND ", Binding::And, "TRUE")
    }

    fn joined(mut pieces: Vec<Piece>, word: &str, binding: Binding, nothing: &str) -> Piece {
        match pieces.len() {
            0 => Piece::tight(nothing.to_owned()),
            1 => pieces.remove(0),
            _ => {
                let loose = |piece: &Piece| piece.binding != Binding::Tight && piece.binding != binding;
                let texts = pieces.into_iter().map(|piece| {
                    let needed = loose(&piece);
                    piece.parenthesised_if(needed)
                });
                Piece { text: texts.collect::<Vec<_>>().join(word), binding }
            }
        }
    }
}

impl fmt::Display for Filter {
    /// The canonical form as text. [`Filter::parse`] gives back an equal filter, provided that the text is within its limits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Piece::any(self.conjunctions().iter().map(conjunction).collect()).text)
    }
}

impl fmt::Display for Conjunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&conjunction(self).text)
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&constraint(self).text)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&expression(self).text)
    }
}

fn conjunction(conjunction: &Conjunction) -> Piece {
    Piece::all(conjunction.constraints().iter().map(constraint).collect())
}

fn constraint(constraint: &Constraint) -> Piece {
    let attribute = attribute(constraint.attribute());
    match constraint.test() {
        Test::Absent => Piece::tight(format!("{attribute} IS NULL")),
        Test::Present => Piece::tight(format!("{attribute} IS NOT NULL")),
        Test::In(set) => value_set(&attribute, set),
    }
}

/// `attribute` is as it stands in a filter, here and below.
fn value_set(attribute: &str, set: &ValueSet) -> Piece {
    let mut points = Vec::new();
    for value in [true, false] {
        if set.bools().contains(value) {
            points.extend(literal(ValueRef::Bool(value)));
        }
    }
    let numbers = line(attribute, &set.numbers().0, &mut points);
    let strings = line(attribute, &set.strings().intervals, &mut points);
    let terms: Vec<_> = set.strings().terms().iter().map(|term| string_term(attribute, term)).collect();
    let times = line(attribute, &set.times().0, &mut points);

    let mut pieces = one_of(attribute, &points);
    pieces.extend(numbers.into_iter().chain(strings).chain(terms).chain(times));
    Piece::any(pieces)
}

/// `=` or IN, of as few as hold the values.
fn one_of(attribute: &str, literals: &[String]) -> Vec<Piece> {
    listed(attribute, literals, ["=", "IN"])
}

/// `<>` or NOT IN, of as few as hold the values.
fn none_of(attribute: &str, literals: &[String]) -> Vec<Piece> {
    listed(attribute, literals, ["<>", "NOT IN"])
}

/// The operators are that for a single value and that for several.
fn listed(attribute: &str, literals: &[String], [single, several]: [&str; 2]) -> Vec<Piece> {
    let list = |literals: &[String]| match literals {
        [literal] => format!("{attribute} {single} {literal}"),
        _ => format!("{attribute} {several} ({})", literals.join(", ")),
    };
    literals.chunks(Limit::InValues.default_maximum()).map(|literals| Piece::tight(list(literals))).collect()
}

/// A point of a line, for printing.
trait Printed: Line {
    /// The point as a literal; `None` for infinities, which have none.
    fn literal(&self) -> Option<String>;
    /// The point before, if there is one.
    fn before(&self) -> Option<Self>;
    /// The interval in a word of its own, if there is one.
    fn named(interval: &Interval<Self>) -> Option<Named>;
    /// The whole line.
    fn everything(attribute: &str) -> Piece;
}

/// What an interval of strings may be called.
struct Named {
    operator: &'static str,
    operand: String,
}

impl Printed for Number {
    fn literal(&self) -> Option<String> {
        literal(self.to_value())
    }
    fn before(&self) -> Option<Number> {
        self.predecessor()
    }
    fn named(_: &Interval<Number>) -> Option<Named> {
        None
    }
    fn everything(attribute: &str) -> Piece {
        let pieces = [format!("{attribute} < 0"), format!("{attribute} >= 0")];
        Piece::any(pieces.map(Piece::tight).into())
    }
}

impl Printed for Timestamp {
    fn literal(&self) -> Option<String> {
        literal(ValueRef::Time(*self))
    }
    fn before(&self) -> Option<Timestamp> {
        self.0.checked_sub(1).map(Timestamp)
    }
    fn named(_: &Interval<Timestamp>) -> Option<Named> {
        None
    }
    fn everything(attribute: &str) -> Piece {
        Piece::tight(format!("{attribute} >= {}", time_literal(Timestamp::least())))
    }
}

impl Printed for Box<str> {
    fn literal(&self) -> Option<String> {
        literal(ValueRef::String(self))
    }
    fn before(&self) -> Option<Box<str>> {
        self.strip_suffix('\0').map(Box::from)
    }
    fn named(interval: &Interval<Box<str>>) -> Option<Named> {
        let is_prefix = !interval.start.is_empty() && interval.is_prefix();
        is_prefix.then(|| Named { operator: "PREFIX", operand: string_literal(&interval.start) })
    }
    fn everything(attribute: &str) -> Piece {
        Piece::tight(format!("{attribute} LIKE '%'"))
    }
}

/// What a class says; single points go to `points`, to share one IN with those of other classes.
fn line<P: Printed>(attribute: &str, intervals: &Intervals<P>, points: &mut Vec<String>) -> Vec<Piece> {
    if let Some(all_but) = all_but(attribute, &intervals.complement()) {
        return vec![all_but];
    }
    let (single, wide): (Vec<_>, Vec<_>) =
        intervals.iter().partition(|interval| interval.is_point() && interval.start.literal().is_some());
    points.extend(single.into_iter().filter_map(|interval| interval.start.literal()));

    // Intervals with a point between each two are one interval without these points.
    let missing = |last: &Interval<P>, next: &Interval<P>| {
        last.end.as_ref().filter(|end| end.successor().as_ref() == Some(&next.start)).and_then(Printed::literal)
    };
    let mut pieces = Vec::new();
    for group in wide.chunk_by(|last, next| missing(last, next).is_some()) {
        let [first, .., last] = group else {
            pieces.extend(group.iter().map(|interval| range(attribute, interval)));
            continue;
        };
        let hull = Interval { start: first.start.clone(), end: last.end.clone() };
        let mut all = vec![range(attribute, &hull)];
        let gaps: Vec<_> = group.windows(2).filter_map(|pair| missing(pair[0], pair[1])).collect();
        all.append(&mut none_of(attribute, &gaps));
        pieces.push(Piece::all(all));
    }
    pieces
}

/// The whole line but for single points and named intervals; `None` if more is missing.
fn all_but<P: Printed>(attribute: &str, missing: &Intervals<P>) -> Option<Piece> {
    if missing.is_empty() {
        return Some(P::everything(attribute));
    }
    let mut points = Vec::new();
    let mut pieces = Vec::new();
    for interval in missing.iter() {
        if interval.is_point() {
            points.push(interval.start.literal()?);
        } else {
            let Named { operator, operand } = P::named(interval)?;
            pieces.push(Piece::tight(format!("{attribute} NOT {operator} {operand}")));
        }
    }
    let mut all = none_of(attribute, &points);
    all.append(&mut pieces);
    Some(Piece::all(all))
}

/// One end of an interval: the literal, and whether it belongs to the interval.
type End = (String, bool);

/// An interval that is not the whole line.
fn range<P: Printed>(attribute: &str, interval: &Interval<P>) -> Piece {
    if let Some(Named { operator, operand }) = P::named(interval) {
        return Piece::tight(format!("{attribute} {operator} {operand}"));
    }
    // Each end can be written as a point within or the point beyond; the shorter literal is the one that was meant.
    let low: Option<End> = if interval.start == P::least() {
        None
    } else {
        shorter(interval.start.literal(), interval.start.before().and_then(|point| point.literal()))
    };
    let high: Option<End> =
        interval.end.as_ref().and_then(|end| shorter(end.before().and_then(|point| point.literal()), end.literal()));
    match (low, high) {
        (Some((low, true)), Some((high, true))) => Piece::tight(format!("{attribute} BETWEEN {low} AND {high}")),
        (low, high) => {
            let low = low.map(|(literal, within)| format!("{attribute} {} {literal}", if within { ">=" } else { ">" }));
            let high =
                high.map(|(literal, within)| format!("{attribute} {} {literal}", if within { "<=" } else { "<" }));
            Piece::all(low.into_iter().chain(high).map(Piece::tight).collect())
        }
    }
}

fn shorter(within: Option<String>, beyond: Option<String>) -> Option<End> {
    match (within, beyond) {
        (Some(within), Some(beyond)) if beyond.len() < within.len() => Some((beyond, false)),
        (Some(within), _) => Some((within, true)),
        (None, beyond) => beyond.map(|beyond| (beyond, false)),
    }
}

fn string_term(attribute: &str, term: &StringTerm) -> Piece {
    let implied = term.all_of().iter().fold(Intervals::all(), |implied: Intervals<Box<str>>, pattern| {
        implied.intersection(&prefix_interval(&pattern.literal_prefix()))
    });
    let mut pieces = Vec::new();
    if term.within != implied {
        let mut points = Vec::new();
        let intervals = line(attribute, &term.within, &mut points);
        pieces.push(Piece::any(one_of(attribute, &points).into_iter().chain(intervals).collect()));
    }
    pieces.extend(term.all_of().iter().map(|pattern| like(attribute, "", pattern)));
    pieces.extend(term.none_of().iter().map(|pattern| like(attribute, "NOT ", pattern)));
    Piece::all(pieces)
}

fn like(attribute: &str, not: &str, pattern: &Pattern) -> Piece {
    Piece::tight(match pattern.kind() {
        PatternKind::Suffix(suffix) => format!("{attribute} {not}SUFFIX {}", string_literal(suffix)),
        PatternKind::Contains(part) => format!("{attribute} {not}CONTAINS {}", string_literal(part)),
        PatternKind::Like(symbols) => {
            let needs_escape = symbols.iter().any(|symbol| matches!(symbol, Symbol::Char('%' | '_')));
            let mut text = String::new();
            for symbol in symbols {
                match symbol {
                    Symbol::Char(character) => {
                        if needs_escape && matches!(character, '%' | '_' | '\\') {
                            text.push('\\');
                        }
                        text.push(*character);
                    }
                    Symbol::One => text.push('_'),
                    Symbol::Many => text.push('%'),
                }
            }
            let escape = if needs_escape { " ESCAPE '\\'" } else { "" };
            format!("{attribute} {not}LIKE {}{escape}", string_literal(&text))
        }
    })
}

fn expression(expression: &Expression) -> Piece {
    match expression {
        Expression::Constant(value) => Piece::tight(if *value { "TRUE" } else { "FALSE" }.to_owned()),
        Expression::And(operands) => Piece::all(operands.iter().map(self::expression).collect()),
        Expression::Or(operands) => Piece::any(operands.iter().map(self::expression).collect()),
        Expression::Constraint { attribute, operator } => {
            Piece::tight(self::operator(&self::attribute(attribute), "", operator))
        }
        Expression::Not(operand) => Piece::tight(match &**operand {
            Expression::Constraint { attribute, operator } => {
                self::operator(&self::attribute(attribute), "NOT ", operator)
            }
            operand => {
                let piece = self::expression(operand);
                let loose = piece.binding != Binding::Tight;
                format!("NOT {}", piece.parenthesised_if(loose))
            }
        }),
    }
}

/// What is said of one attribute; `not` is empty or "NOT ".
fn operator(attribute: &str, not: &str, operator: &Operator) -> String {
    match operator {
        Operator::IsNull => format!("{attribute} IS {not}NULL"),
        Operator::Compare(comparison, operand) => {
            format!("{not}{attribute} {} {}", comparison_text(*comparison), value_text(operand))
        }
        Operator::In(operands) => {
            let operands: Vec<_> = operands.iter().map(value_text).collect();
            format!("{attribute} {not}IN ({})", operands.join(", "))
        }
        Operator::Between(low, high) => {
            format!("{attribute} {not}BETWEEN {} AND {}", value_text(low), value_text(high))
        }
        Operator::Like { pattern, escape } => {
            let escape =
                escape.map_or_else(String::new, |escape| format!(" ESCAPE {}", string_literal(&escape.to_string())));
            format!("{attribute} {not}LIKE {}{escape}", string_literal(pattern))
        }
        Operator::Prefix(prefix) => format!("{attribute} {not}PREFIX {}", string_literal(prefix)),
        Operator::Suffix(suffix) => format!("{attribute} {not}SUFFIX {}", string_literal(suffix)),
        Operator::Contains(part) => format!("{attribute} {not}CONTAINS {}", string_literal(part)),
    }
}

fn comparison_text(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Eq => "=",
        Comparison::Ne => "<>",
        Comparison::Lt => "<",
        Comparison::Le => "<=",
        Comparison::Gt => ">",
        Comparison::Ge => ">=",
    }
}

/// Trees that were parsed hold neither infinities nor NaN, so every value has a literal.
fn value_text(value: &Value) -> String {
    literal(value.as_ref()).unwrap_or_else(|| "NULL".to_owned())
}

/// As it stands in a filter; `None` for infinities and NaN, which the language has no literal for.
fn literal(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Bool(value) => Some(if value { "TRUE" } else { "FALSE" }.to_owned()),
        ValueRef::Int(value) => Some(value.to_string()),
        // Always with a point or an exponent, and never one of them longer than needed.
        ValueRef::Float(value) => value.is_finite().then(|| format!("{value:?}")),
        ValueRef::String(value) => Some(string_literal(value)),
        ValueRef::Time(value) => Some(time_literal(value)),
    }
}

pub(super) fn string_literal(string: &str) -> String {
    format!("'{}'", string.replace('\'', "''"))
}

fn time_literal(time: Timestamp) -> String {
    format!("TIMESTAMP '{time}'")
}

/// An attribute as it stands in a filter.
pub(super) fn attribute(name: &str) -> String {
    if is_bare_name(name) { name.to_owned() } else { format!("`{}`", name.replace('`', "``")) }
}
