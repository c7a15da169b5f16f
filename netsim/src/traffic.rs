//! Events and filters to simulate with: random ones over a domain so small that filters cover each other and match often,
//! and recorded ones from a file.

use crate::{Random, ScenarioError};
use enroute_filter::{Event, Filter, JsonReader};
use flate2::read::GzDecoder;
use rand::RngExt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Draws events and filters over three attributes: `a` from 0 to 3, `b` from 'p' to 's', `c` from 0 to 3 in halves.
#[derive(Debug)]
pub struct Traffic {
    random: Random,
}

const LETTERS: [&str; 4] = ["p", "q", "r", "s"];

impl Traffic {
    /// All drawn from this generator.
    pub fn new(random: Random) -> Traffic {
        Traffic { random }
    }

    /// An event; each attribute is there three times out of four.
    pub fn event(&mut self) -> Event {
        let mut event = Event::builder();
        if self.chance(3, 4) {
            event = event.attribute("a", self.random.random_range(0..4i64));
        }
        if self.chance(3, 4) {
            event = event.attribute("b", self.letter());
        }
        if self.chance(3, 4) {
            event = event.attribute("c", f64::from(self.random.random_range(0..7i32)) / 2.0);
        }
        event.build().expect("three short attributes are within all limits")
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
            0 => format!("a <= {}", self.random.random_range(1..4)),
            1 => format!("b >= '{}'", self.letter()),
            2 => format!("c < {}", self.random.random_range(1..4)),
            _ => format!("a IS NULL OR a >= {}", self.random.random_range(0..3)),
        };
        Filter::parse(&text).expect("made from the grammar")
    }

    fn conjunction(&mut self) -> String {
        let constraints = self.random.random_range(1..=3);
        let mut parts = Vec::new();
        for attribute in ["a", "b", "c"] {
            if self.random.random_range(0..3) < constraints {
                parts.push(self.constraint(attribute));
            }
        }
        if parts.is_empty() { self.constraint("a") } else { parts.join(" AND ") }
    }

    fn constraint(&mut self, attribute: &str) -> String {
        let value =
            if attribute == "b" { format!("'{}'", self.letter()) } else { self.random.random_range(0..4).to_string() };
        match self.random.random_range(0..8) {
            0 | 1 => format!("{attribute} = {value}"),
            2 | 3 => format!("{attribute} >= {value}"),
            4 | 5 => format!("{attribute} <= {value}"),
            6 => format!("{attribute} <> {value}"),
            _ => format!("{attribute} IS NULL"),
        }
    }

    fn letter(&mut self) -> &'static str {
        LETTERS[self.random.random_range(0..LETTERS.len())]
    }

    fn chance(&mut self, numerator: u32, denominator: u32) -> bool {
        self.random.random_ratio(numerator, denominator)
    }
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
