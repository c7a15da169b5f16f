//! The peer: A-Tree (Ji, Jacobsen: A-Tree: A Dynamic Data Structure for Efficiently Indexing Arbitrary Boolean Expressions,
//! SIGMOD 2021), as the `a-tree` crate has it.
//!
//! It takes expressions as text, and events of its own. Both are made before the clock starts, so that its figures are of
//! its index (and parser) alone. It cannot say everything: no order and no prefixes of strings, no times, no mixture of
//! integers and floats in one attribute. What it cannot say is passed over, for all engines that are measured with it.
//!
//! Its floats are decimals: each float is given to it as the shortest decimal that stands for it.

use crate::contender::Contender;
use crate::workload::Kind;
use a_tree::{ATree, AttributeDefinition};
use enroute_filter::{Event, Filter, Number, Test, ValueRef, ValueSet};
use enroute_matcher::SubscriptionId;
use std::collections::BTreeMap;

/// The peer takes decimals as an `i64` and a number of places.
const DIGITS: usize = 18;

/// Writes filters in the peer's language.
#[derive(Clone)]
pub struct Language {
    kinds: BTreeMap<String, Kind>,
}

impl Language {
    /// Over these attributes.
    pub fn new(attributes: &[(String, Kind)]) -> Language {
        Language { kinds: attributes.iter().cloned().collect() }
    }

    /// The filter as an expression, if the language has one for it.
    pub fn expression(&self, filter: &Filter) -> Option<String> {
        let conjunctions: Option<Vec<String>> = filter
            .conjunctions()
            .iter()
            .map(|conjunction| {
                let constraints = conjunction.constraints();
                let tests: Option<Vec<String>> =
                    constraints.iter().map(|constraint| self.test(constraint.attribute(), constraint.test())).collect();
                tests.filter(|tests| !tests.is_empty()).map(|tests| tests.join(" and "))
            })
            .collect();
        conjunctions.filter(|all| !all.is_empty()).map(|all| all.join(" or "))
    }

    fn test(&self, attribute: &str, test: &Test) -> Option<String> {
        let kind = *self.kinds.get(attribute)?;
        match test {
            Test::Absent => Some(format!("{attribute} is null")),
            Test::Present => Some(format!("{attribute} is not null")),
            Test::In(set) if set.classes().count() != 1 => None,
            Test::In(set) => match kind {
                Kind::Bool => bools(attribute, set),
                Kind::Int => ints(attribute, set),
                Kind::Float => floats(attribute, set),
                Kind::String => strings(attribute, set),
                Kind::Time => None,
            },
        }
    }
}

fn bools(attribute: &str, set: &ValueSet) -> Option<String> {
    match (set.contains(ValueRef::Bool(false)), set.contains(ValueRef::Bool(true))) {
        (false, true) => Some(attribute.to_owned()),
        (true, false) => Some(format!("not ({attribute})")),
        (false, false) | (true, true) => None,
    }
}

/// The number, rounded to an integer if it is none; what lies beyond becomes the last there is.
fn integer(number: Number, round: impl Fn(f64) -> f64) -> i64 {
    match number.to_value() {
        ValueRef::Int(int) => int,
        _ => round(number.to_f64_rounded()) as i64,
    }
}

/// Alternatives of bounds, in parentheses if there are several. No alternative is no expression.
fn any(alternatives: Vec<String>) -> Option<String> {
    match alternatives.len() {
        0 => None,
        1 => alternatives.into_iter().next(),
        _ => Some(format!("({})", alternatives.join(" or "))),
    }
}

fn ints(attribute: &str, set: &ValueSet) -> Option<String> {
    // In an attribute of integers, a bound is as good as the next integer within.
    let integers: Vec<(i64, i64)> = set
        .numbers()
        .intervals()
        .map(|(first, last)| (integer(first, f64::ceil), integer(last, f64::floor)))
        .filter(|(first, last)| first <= last)
        .collect();
    let points = integers.iter().filter(|(first, last)| first == last).count();
    if points > 1 && points == integers.len() {
        let points: Vec<String> = integers.iter().map(|(point, _)| point.to_string()).collect();
        return Some(format!("{attribute} in [{}]", points.join(", ")));
    }
    if let [(i64::MIN, before), (after, i64::MAX)] = integers[..]
        && before.checked_add(2) == Some(after)
    {
        return Some(format!("{attribute} <> {}", before + 1));
    }
    any(integers
        .into_iter()
        .map(|interval| match interval {
            (i64::MIN, last) => format!("{attribute} <= {last}"),
            (first, i64::MAX) => format!("{attribute} >= {first}"),
            (first, last) if first == last => format!("{attribute} = {first}"),
            (first, last) => format!("({attribute} >= {first} and {attribute} <= {last})"),
        })
        .collect())
}

/// The shortest decimal that is read as this float, with a point in it. Decimals so made are in the order of the floats, so
/// that nothing is lost as long as both operands and values are written so.
fn decimal(number: Number) -> Option<String> {
    let mut text = number.to_f64_rounded().to_string();
    if !text.contains('.') {
        text.push_str(".0");
    }
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    (digits <= DIGITS).then_some(text)
}

fn floats(attribute: &str, set: &ValueSet) -> Option<String> {
    let intervals: Vec<(Number, Number)> = set.numbers().intervals().collect();
    if let [(first, before), (after, last)] = intervals[..]
        && (first, last) == (Number::MIN, Number::MAX)
        && let Some(between) = before.successor()
        && between.successor() == Some(after)
    {
        return Some(format!("{attribute} <> {}", decimal(between)?));
    }
    let alternatives: Option<Vec<String>> = intervals
        .into_iter()
        .map(|(first, last)| {
            if first == last {
                Some(format!("{attribute} = {}", decimal(first)?))
            } else if first == Number::MIN {
                Some(format!("{attribute} <= {}", decimal(last)?))
            } else if last == Number::MAX {
                Some(format!("{attribute} >= {}", decimal(first)?))
            } else {
                Some(format!("({attribute} >= {} and {attribute} <= {})", decimal(first)?, decimal(last)?))
            }
        })
        .collect();
    any(alternatives?)
}

fn strings(attribute: &str, set: &ValueSet) -> Option<String> {
    if set.has_patterns() {
        return None;
    }
    let intervals: Vec<(&str, Option<&str>)> = set.strings().intervals().collect();
    if let [("", Some(before)), (after, None)] = intervals[..]
        && is_next(before, after)
    {
        return Some(format!("{attribute} <> {}", quoted(before)?));
    }
    let points: Option<Vec<String>> = intervals
        .into_iter()
        .map(|(first, end)| end.filter(|end| is_next(first, end)).and_then(|_| quoted(first)))
        .collect();
    match &points?[..] {
        [] => None,
        [point] => Some(format!("{attribute} = {point}")),
        points => Some(format!("{attribute} in [{}]", points.join(", "))),
    }
}

/// Whether no string lies between the two.
fn is_next(string: &str, next: &str) -> bool {
    next.strip_prefix(string) == Some("\0")
}

fn quoted(string: &str) -> Option<String> {
    (!string.contains(['"', '\'', '\\'])).then(|| format!("\"{string}\""))
}

/// A float as the peer takes it: [`decimal`] without its point, and how many digits stand behind that.
fn digits_and_places(float: f64) -> (i64, u32) {
    let text = Number::from_f64(float).and_then(decimal).expect("the workloads' floats are short");
    let places = text.len() - text.find('.').map_or(text.len(), |point| point + 1);
    (text.replace('.', "").parse().expect("few digits"), places as u32)
}

/// The peer, as an engine to measure.
pub struct ATreePeer {
    tree: ATree<u64>,
    language: Language,
    batch: Vec<(SubscriptionId, String)>,
    events: Vec<a_tree::Event>,
}

impl ATreePeer {
    /// Without subscriptions, over these attributes.
    pub fn new(attributes: &[(String, Kind)]) -> ATreePeer {
        let definition = |(name, kind): &(String, Kind)| match kind {
            Kind::Bool => AttributeDefinition::boolean(name),
            Kind::Int => AttributeDefinition::integer(name),
            Kind::Float => AttributeDefinition::float(name),
            Kind::String | Kind::Time => AttributeDefinition::string(name),
        };
        let definitions: Vec<_> = attributes.iter().map(definition).collect();
        ATreePeer {
            tree: ATree::new(&definitions).expect("attributes are different"),
            language: Language::new(attributes),
            batch: Vec::new(),
            events: Vec::new(),
        }
    }

    fn event(&self, event: &Event) -> a_tree::Event {
        let mut builder = self.tree.make_event();
        for (name, value) in event.attributes() {
            let set = match (self.language.kinds.get(name), value) {
                (Some(Kind::Float), ValueRef::Int(int)) => builder.with_float(name, int, 0),
                (_, ValueRef::Float(float)) => {
                    let (digits, places) = digits_and_places(float);
                    builder.with_float(name, digits, places)
                }
                (_, ValueRef::Bool(bool)) => builder.with_boolean(name, bool),
                (_, ValueRef::Int(int)) => builder.with_integer(name, int),
                (_, ValueRef::String(string)) => builder.with_string(name, string),
                // No expression names a time.
                (_, ValueRef::Time(_)) => Ok(()),
            };
            set.expect("events hold what their attributes are said to");
        }
        builder.build().expect("what is not set is absent")
    }
}

impl Contender for ATreePeer {
    fn load(&mut self, batch: Vec<(SubscriptionId, Filter)>) {
        let said = |(id, filter): &(SubscriptionId, Filter)| {
            (*id, self.language.expression(filter).expect("others were passed over"))
        };
        self.batch = batch.iter().map(said).collect();
    }

    fn insert(&mut self, index: usize) {
        let (id, expression) = &self.batch[index];
        self.tree.insert(&id.0, expression).expect("the expression is of its language");
    }

    fn remove(&mut self, id: SubscriptionId) {
        self.tree.delete(&id.0);
    }

    fn prepare(&mut self, events: &[Event]) {
        self.events = events.iter().map(|event| self.event(event)).collect();
    }

    fn matches(&mut self, event: usize, out: &mut Vec<SubscriptionId>) {
        let report = self.tree.search(&self.events[event]).expect("the event is of its attributes");
        out.clear();
        out.extend(report.matches().iter().map(|id| SubscriptionId(**id)));
    }

    // Version 0.6.1 panics: its result has a place for each node there is, but nodes keep their numbers.
    fn survives_removal(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_in_the_language_of_the_peer() {
        let kinds = [("b", Kind::Bool), ("n", Kind::Int), ("f", Kind::Float), ("s", Kind::String), ("t", Kind::Time)];
        let language = Language::new(&kinds.map(|(name, kind)| (name.to_owned(), kind)));
        for (filter, expected) in [
            ("b", Some("b")),
            ("NOT b", Some("not (b)")),
            ("n > 5", Some("n >= 6")),
            ("n < 5.5", Some("n <= 5")),
            ("n <> 5", Some("n <> 5")),
            ("n = 5", Some("n = 5")),
            ("n IN (7, 5)", Some("n in [5, 7]")),
            ("n BETWEEN 5 AND 7", Some("(n >= 5 and n <= 7)")),
            ("n NOT BETWEEN 5 AND 7", Some("(n <= 4 or n >= 8)")),
            ("n IS NULL", Some("n is null")),
            ("n IS NOT NULL", Some("n is not null")),
            ("n = 5.5", None),
            ("f >= 0.5", Some("f >= 0.5")),
            ("f > 0.5", Some("f >= 0.5000000000000001")),
            ("f < 2", Some("f <= 1.9999999999999998")),
            ("f <> 2", Some("f <> 2.0")),
            ("f BETWEEN -0.25 AND 3", Some("(f >= -0.25 and f <= 3.0)")),
            ("s = 'x'", Some("s = \"x\"")),
            ("s <> 'x'", Some("s <> \"x\"")),
            ("s IN ('x', 'y')", Some("s in [\"x\", \"y\"]")),
            ("s < 'x'", None),
            ("s PREFIX 'x'", None),
            ("s SUFFIX 'x'", None),
            ("s = '\"'", None),
            ("n IN (1, 'x')", None),
            ("t > TIMESTAMP '2013-01-01T00:00:00Z'", None),
            ("unknown = 1", None),
            ("TRUE", None),
            ("FALSE", None),
            ("n = 1 AND s = 'x'", Some("n = 1 and s = \"x\"")),
            ("n = 1 AND b OR s = 'x'", Some("b and n = 1 or s = \"x\"")),
        ] {
            let found = language.expression(&Filter::parse(filter).unwrap());
            assert_eq!(found.as_deref(), expected, "{filter}");
            let mut peer = ATreePeer::new(&kinds.map(|(name, kind)| (name.to_owned(), kind)));
            if let Some(expression) = found {
                assert!(peer.tree.insert(&1, &expression).is_ok(), "{expression}");
            }
        }
    }

    #[test]
    fn floats_are_given_digit_by_digit() {
        for (float, expected) in [
            (0.5, (5, 1)),
            (-2.0, (-20, 1)),
            (20.714039999999997, (20_714_039_999_999_997, 15)),
            (1e9, (10_000_000_000, 1)),
        ] {
            assert_eq!(digits_and_places(float), expected, "{float}");
        }
    }
}
