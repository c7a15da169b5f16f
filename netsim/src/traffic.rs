//! Events and filters to simulate with: random ones over a domain so small that filters cover each other and match often,
//! and recorded ones from a file.

use crate::{Random, ScenarioError};
use enroute_filter::{Event, Filter, JsonReader};
use flate2::read::GzDecoder;
use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::num::{NonZeroU8, NonZeroU16};
use std::path::Path;

/// What random events and filters are about.
///
/// The attributes are integers, strings and halves by turns: with 3 attributes and 4 values `a` from 0 to 3, `b` from 'p' to 's', and
/// `c` from 0 to 3 in halves. That gives some 6,000 conjunctions, and the widest are drawn soon: about a dozen roots stand for a hundred of
/// them and for any number more, and an event matches many. With 20 attributes there are some 50 roots of a hundred,
/// 120 of a thousand; more values alone change little, since one constraint then covers more as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Domain {
    /// How many attributes there are, of which an event has three in four and a filter mostly one to three. Advertisements are about
    /// the first three.
    pub attributes: NonZeroU8,
    /// How many integers, from 0 on, or strings an attribute can be.
    pub values: NonZeroU16,
}

impl Default for Domain {
    fn default() -> Domain {
        Domain { attributes: NonZeroU8::MIN.saturating_add(2), values: NonZeroU16::MIN.saturating_add(3) }
    }
}

/// Draws events and filters.
#[derive(Debug)]
pub struct Traffic {
    random: Random,
    attributes: Vec<Attribute>,
    /// How many each attribute can have.
    values: u16,
}

#[derive(Debug)]
struct Attribute {
    name: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Integer,
    String,
    Halves,
}

/// The digits of strings, which have as many as it takes to tell all apart.
const LETTERS: [char; 4] = ['p', 'q', 'r', 's'];

impl Traffic {
    /// All drawn from this generator, over the default domain.
    pub fn new(random: Random) -> Traffic {
        Traffic::over(Domain::default(), random)
    }

    /// All drawn from this generator, over a domain.
    pub fn over(domain: Domain, random: Random) -> Traffic {
        let attribute = |(place, kind): (u8, Kind)| {
            let letter = char::from(b'a' + place % 26);
            let name = if place < 26 { letter.to_string() } else { format!("{letter}{}", place / 26) };
            Attribute { name, kind }
        };
        let kinds = [Kind::Integer, Kind::String, Kind::Halves].into_iter().cycle();
        let attributes = (0..domain.attributes.get()).zip(kinds).map(attribute).collect();
        Traffic { random, attributes, values: domain.values.get() }
    }

    /// An event; each attribute is there three times out of four.
    pub fn event(&mut self) -> Event {
        let mut event = Event::builder();
        for place in 0..self.attributes.len() {
            if self.chance(3, 4) {
                let Traffic { random, attributes, values } = self;
                let Attribute { name, kind } = &attributes[place];
                event = match kind {
                    Kind::Integer => event.attribute(name, random.random_range(0..i64::from(*values))),
                    Kind::String => event.attribute(name, string(random, *values).as_str()),
                    Kind::Halves => {
                        event.attribute(name, f64::from(random.random_range(0..2 * i32::from(*values) - 1)) / 2.0)
                    }
                };
            }
        }
        event.build().expect("so few short attributes are within all limits")
    }

    /// A filter: one to three constraints, and sometimes two such conjunctions.
    pub fn filter(&mut self) -> Filter {
        let mut text = self.conjunction();
        if self.chance(1, 5) {
            text = format!("{text} OR {}", self.conjunction());
        }
        Filter::parse(&text).expect("made from the grammar")
    }

    /// A filter that matches much: what a publisher advertises.
    pub fn broad_filter(&mut self) -> Filter {
        let text = match self.random.random_range(0..4) {
            0 => format!("a <= {}", self.random.random_range(1..i32::from(self.values).max(2))),
            1 => format!("b >= '{}'", string(&mut self.random, self.values)),
            2 => format!("c < {}", self.random.random_range(1..i32::from(self.values).max(2))),
            _ => format!("a IS NULL OR a >= {}", self.random.random_range(0..i32::from(self.values - 1).max(1))),
        };
        Filter::parse(&text).expect("made from the grammar")
    }

    fn conjunction(&mut self) -> String {
        let constraints = self.random.random_range(1..=3);
        let mut parts = Vec::new();
        let attributes = self.attributes.len();
        for place in 0..attributes {
            if self.random.random_range(0..attributes as i32) < constraints {
                parts.push(self.constraint(place));
            }
        }
        if parts.is_empty() {
            // The seeds of the default domain have always given the first.
            let place = if attributes <= 3 { 0 } else { self.random.random_range(0..attributes) };
            parts.push(self.constraint(place));
        }
        parts.join(" AND ")
    }

    fn constraint(&mut self, place: usize) -> String {
        let Traffic { random, attributes, values } = self;
        let Attribute { name: attribute, kind } = &attributes[place];
        let value = match kind {
            Kind::String => format!("'{}'", string(random, *values)),
            Kind::Integer | Kind::Halves => random.random_range(0..i32::from(*values)).to_string(),
        };
        match self.random.random_range(0..8) {
            0 | 1 => format!("{attribute} = {value}"),
            2 | 3 => format!("{attribute} >= {value}"),
            4 | 5 => format!("{attribute} <= {value}"),
            6 => format!("{attribute} <> {value}"),
            _ => format!("{attribute} IS NULL"),
        }
    }

    fn chance(&mut self, numerator: u32, denominator: u32) -> bool {
        self.random.random_ratio(numerator, denominator)
    }
}

/// One of so many strings, in the order of numbers.
fn string(random: &mut Random, values: u16) -> String {
    let number = random.random_range(0..usize::from(values));
    let digits = usize::from(values - 1).checked_ilog(LETTERS.len()).unwrap_or(0);
    (0..=digits).rev().map(|digit| LETTERS[number / LETTERS.len().pow(digit) % LETTERS.len()]).collect()
}

/// Reads an event from a line of JSON.
///
/// # Errors
/// If it is no event.
pub fn read_event(line: &str) -> Result<Event, ScenarioError> {
    JsonReader::default().read(line).map(|(event, _)| event).map_err(|error| ScenarioError::Event(error.to_string()))
}

/// Reads a filter.
///
/// # Errors
/// If it is none; the text shows where.
pub fn read_filter(text: &str) -> Result<Filter, ScenarioError> {
    Filter::parse(text).map_err(|error| ScenarioError::Filter(error.render(text)))
}

/// Reads events from a file of JSON lines, which may be compressed with gzip (by its name, `.gz`).
///
/// # Errors
/// If the file cannot be read or a line is no event.
pub fn read_events(path: &Path) -> Result<Vec<Event>, ScenarioError> {
    let failed = |line: usize, reason: String| ScenarioError::Events { path: path.to_owned(), line, reason };
    let file = File::open(path).map_err(|error| failed(0, error.to_string()))?;
    let zipped = path.extension().is_some_and(|extension| extension == "gz");
    let bytes: Box<dyn Read> = if zipped { Box::new(GzDecoder::new(file)) } else { Box::new(file) };
    let reader = JsonReader::default();
    let mut events = Vec::new();
    for (number, line) in BufReader::new(bytes).lines().enumerate() {
        let line = line.map_err(|error| failed(number + 1, error.to_string()))?;
        if !line.trim().is_empty() {
            events.push(reader.read(&line).map_err(|error| failed(number + 1, error.to_string()))?.0);
        }
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded;
    use enroute_covering::Forest;
    use std::collections::BTreeSet;

    fn domain(attributes: u8, values: u16) -> Domain {
        let [attributes, values] = [attributes.into(), values].map(|number| NonZeroU16::new(number).expect("not 0"));
        Domain { attributes: attributes.try_into().expect("few"), values }
    }

    /// How many roots stand for 300 random conjunctions.
    fn roots(domain: Domain) -> usize {
        let mut traffic = Traffic::over(domain, seeded(1, "roots"));
        let mut forest = Forest::new();
        for conjunction in (0..).flat_map(|_| traffic.filter().conjunctions().to_vec()).take(300) {
            forest.insert(1, &conjunction);
        }
        forest.root_count()
    }

    #[test]
    fn few_roots_stand_for_many_filters_unless_the_domain_is_wide() {
        let [narrow, wide] = [Domain::default(), domain(20, 1_000)].map(roots);
        assert!(narrow < 20 && wide > 50, "{narrow} and {wide} roots");
    }

    #[test]
    fn any_domain_gives_events_and_filters_over_all_of_it() {
        for (attributes, values) in [(1, 1), (2, 3), (3, 4), (3, 5), (60, 70), (255, u16::MAX)] {
            let mut traffic = Traffic::over(domain(attributes, values), seeded(1, "any"));
            let (mut names, mut strings) = (BTreeSet::new(), BTreeSet::new());
            for _ in 0..500 {
                let event = traffic.event();
                names.extend(event.attributes().map(|(name, _)| name.to_owned()));
                strings.insert(string(&mut traffic.random, values));
                traffic.filter();
                traffic.broad_filter();
            }
            assert_eq!(names.len(), usize::from(attributes));
            assert!(strings.len() == usize::from(values) || values > 70, "{strings:?}");
            assert!(strings.iter().map(String::len).collect::<BTreeSet<_>>().len() == 1, "{strings:?}");
        }
    }
}
