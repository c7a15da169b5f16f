//! The generator of the PPSMTBOAD paper (Zhang, Gao, Zeng: Parallel Predicate Set Matching Tree Based on Attribute Division).
//!
//! Attributes are words of five letters out of 24; two fifths of them hold integers, a fifth each floats, strings, bools.
//! A subscription has a uniform number of predicates on different attributes, whose operators are uniform among those that
//! the type has: `<`, `>`, `=`, `<>` on numbers, these and PREFIX on strings, `=` and `<>` on bools. Numbers go from 0 to
//! 1,000, floats by hundredths; strings come from a table of 600 words.
//!
//! What the paper leaves open, and what is taken: its fifth operator cannot be read in the copy we have (PREFIX, of one to
//! three letters); the size of an event in its first experiment is not given (25 attributes, as in the second).

use super::{Generator, Kind, conjunction};
use crate::random::Random;
use enroute_filter::{Comparison, Constraint, Event, Filter, Test, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

const LETTERS: usize = 24;
const WORD: usize = 5;
const STRINGS: usize = 600;
const EVENT_ATTRIBUTES: usize = 25;
const COMPARISONS: [Comparison; 4] = [Comparison::Lt, Comparison::Gt, Comparison::Eq, Comparison::Ne];
/// Two fifths integers, a fifth each of the others.
const KINDS: [Kind; 5] = [Kind::Int, Kind::Float, Kind::Int, Kind::String, Kind::Bool];

/// See the module.
pub struct Predicates {
    attributes: Vec<Arc<str>>,
    strings: Vec<String>,
    fewest: usize,
    most: usize,
}

impl Predicates {
    /// Over so many attributes (at least 25), with `fewest` to `most` predicates in a subscription.
    pub fn new(attributes: usize, fewest: usize, most: usize, random: &mut Random) -> Predicates {
        let attributes = words(attributes, random).into_iter().map(Arc::from).collect();
        Predicates { attributes, strings: words(STRINGS, random), fewest, most }
    }

    fn kind(attribute: usize) -> Kind {
        KINDS[attribute % KINDS.len()]
    }

    fn value(&self, kind: Kind, random: &mut Random) -> Value {
        match kind {
            Kind::Bool => Value::Bool(random.below(2) == 1),
            Kind::Int => Value::Int(random.between(0, 1_000) as i64),
            Kind::Float => Value::Float(random.between(0, 100_000) as f64 / 100.0),
            Kind::String => Value::String(random.pick(&self.strings).clone()),
            Kind::Time => unreachable!("the paper has no times"),
        }
    }

    fn test(&self, kind: Kind, random: &mut Random) -> Test {
        let operators = match kind {
            Kind::Bool | Kind::Time => &COMPARISONS[2..],
            Kind::Int | Kind::Float => &COMPARISONS[..],
            Kind::String if random.below(COMPARISONS.len() + 1) == 0 => {
                let word = random.pick(&self.strings).clone();
                return Test::prefix(&word[..random.between(1, 3)]);
            }
            Kind::String => &COMPARISONS[..],
        };
        let operator = *random.pick(operators);
        Test::compare(operator, &self.value(kind, random))
    }
}

/// So many different words.
fn words(count: usize, random: &mut Random) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut words = Vec::with_capacity(count);
    while words.len() < count {
        let word: String = (0..WORD).map(|_| char::from(b'a' + random.below(LETTERS) as u8)).collect();
        if seen.insert(word.clone()) {
            words.push(word);
        }
    }
    words
}

impl Generator for Predicates {
    fn attributes(&self) -> Vec<(String, Kind)> {
        self.attributes.iter().enumerate().map(|(index, name)| (name.to_string(), Self::kind(index))).collect()
    }

    fn filter(&self, random: &mut Random) -> Filter {
        let count = random.between(self.fewest, self.most);
        let attributes = random.distinct(count, |random| random.below(self.attributes.len()));
        conjunction(attributes.into_iter().map(|attribute| {
            let test = self.test(Self::kind(attribute), random);
            Constraint::new(self.attributes[attribute].clone(), test)
        }))
    }

    fn event(&self, _number: usize, random: &mut Random) -> Event {
        let attributes = random.distinct(EVENT_ATTRIBUTES, |random| random.below(self.attributes.len()));
        let event = attributes.into_iter().fold(Event::builder(), |event, attribute| {
            event.attribute(&*self.attributes[attribute], self.value(Self::kind(attribute), random))
        });
        event.build().expect("attributes are distinct and few")
    }
}
