//! The workloads: subscriptions and events, seeded, the same for everybody.
//!
//! | name | subscriptions | events |
//! | --- | --- | --- |
//! | `w1` | the generator of the PPSMTBOAD paper: 600 attributes, 5-20 predicates of any type and operator ([`predicates`]) | 25 of the 600 attributes |
//! | `w1b` | the same with 50 attributes and 5-15 predicates, so that something matches | 25 of the 50 |
//! | `w2` | attributes by Zipf's law, `=`, `<=` and `>=` on integers ([`zipf`]) | 10-30 attributes by the same law |
//! | `w3` | stock quotes ([`stocks`]) | ten attributes |
//! | `w4`, `w4b` | 10 wide ranges over 20 attributes ([`ranges`]) | all 20 |
//! | `flights` | what people may want to know of a month of flights and weather ([`flights`]) | that month |

pub mod flights;
pub mod predicates;
pub mod ranges;
pub mod stocks;
pub mod zipf;

use crate::random::Random;
use enroute_filter::{Conjunction, Constraint, Event, Filter};

/// What a workload's attribute holds, in all of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bools.
    Bool,
    /// Integers only.
    Int,
    /// Numbers, some of which are no integers.
    Float,
    /// Strings.
    String,
    /// Times.
    Time,
}

/// Draws subscriptions and events. All state is in the [`Random`], so that one generator serves many streams.
pub trait Generator {
    /// The attributes of its events and filters, each once.
    fn attributes(&self) -> Vec<(String, Kind)>;
    /// The next subscription.
    fn filter(&self, random: &mut Random) -> Filter;
    /// The next event; `number` counts them from 0.
    fn event(&self, number: usize, random: &mut Random) -> Event;
}

/// The workloads by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Workload {
    /// The PPSMTBOAD paper's generator, 600 attributes
    W1,
    /// The same with 50 attributes
    W1b,
    /// Attributes by Zipf's law
    W2,
    /// Stock quotes
    W3,
    /// Ten ranges of half the domain
    W4,
    /// Ten ranges of 0.7 of the domain
    W4b,
    /// A month of flights and weather
    Flights,
}

/// Streams of a seed, so that what one draws does not depend on how much another has drawn.
const TABLES: u64 = 0;
const SUBSCRIPTIONS: u64 = 1;
const EVENTS: u64 = 2;

impl Workload {
    /// All of them.
    pub const ALL: [Workload; 7] =
        [Workload::W1, Workload::W1b, Workload::W2, Workload::W3, Workload::W4, Workload::W4b, Workload::Flights];

    /// As the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            Workload::W1 => "w1",
            Workload::W1b => "w1b",
            Workload::W2 => "w2",
            Workload::W3 => "w3",
            Workload::W4 => "w4",
            Workload::W4b => "w4b",
            Workload::Flights => "flights",
        }
    }

    /// Draws the tables of the workload (names, base prices).
    pub fn open(self, seed: u64) -> Input {
        let mut random = Random::new(seed, TABLES);
        let generator: Box<dyn Generator> = match self {
            Workload::W1 => Box::new(predicates::Predicates::new(600, 5, 20, &mut random)),
            Workload::W1b => Box::new(predicates::Predicates::new(50, 5, 15, &mut random)),
            Workload::W2 => Box::new(zipf::ZipfAttributes::new(1_000, 10_000)),
            Workload::W3 => Box::new(stocks::Stocks::new(&mut random)),
            Workload::W4 => Box::new(ranges::Ranges::new(0.5)),
            Workload::W4b => Box::new(ranges::Ranges::new(0.7)),
            Workload::Flights => Box::new(flights::Flights::read()),
        };
        Input::new(generator, seed)
    }
}

/// A generator and a seed.
pub struct Input {
    generator: Box<dyn Generator>,
    seed: u64,
}

impl Input {
    /// What `generator` draws with `seed`.
    pub fn new(generator: Box<dyn Generator>, seed: u64) -> Input {
        Input { generator, seed }
    }

    /// The attributes, each once.
    pub fn attributes(&self) -> Vec<(String, Kind)> {
        self.generator.attributes()
    }

    /// The subscriptions, from the first on, without end; the same each time.
    pub fn subscriptions(&self) -> impl Iterator<Item = Filter> {
        let mut random = Random::new(self.seed, SUBSCRIPTIONS);
        std::iter::from_fn(move || Some(self.generator.filter(&mut random)))
    }

    /// The events, from the first on, without end; the same each time.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        let mut random = Random::new(self.seed, EVENTS);
        (0..).map(move |number| self.generator.event(number, &mut random))
    }
}

/// The filter of some constraints on different attributes.
fn conjunction(constraints: impl IntoIterator<Item = Constraint>) -> Filter {
    Conjunction::new(constraints).expect("constraints on different attributes, none of them empty").into()
}

#[cfg(test)]
mod tests;
