//! Wide ranges, the dense case: 20 attributes, all in each event; subscriptions of 10 ranges on different attributes.
//!
//! Values are integers from 0 to 9,999. A range is as wide as a given part of that, and anywhere within.

use super::{Generator, Kind, conjunction};
use crate::random::Random;
use enroute_filter::{Constraint, Event, Filter, Test};
use std::sync::Arc;

const ATTRIBUTES: usize = 20;
const PREDICATES: usize = 10;
const VALUES: usize = 10_000;

/// See the module.
pub struct Ranges {
    attributes: Vec<Arc<str>>,
    /// How many values a range allows.
    width: usize,
}

impl Ranges {
    /// With ranges of this part of the domain.
    pub fn new(part: f64) -> Ranges {
        let attributes = (0..ATTRIBUTES).map(|index| format!("a{index:02}").into()).collect();
        Ranges { attributes, width: (part * VALUES as f64) as usize }
    }
}

impl Generator for Ranges {
    fn attributes(&self) -> Vec<(String, Kind)> {
        self.attributes.iter().map(|name| (name.to_string(), Kind::Int)).collect()
    }

    fn filter(&self, random: &mut Random) -> Filter {
        let attributes = random.distinct(PREDICATES, |random| random.below(ATTRIBUTES));
        conjunction(attributes.into_iter().map(|attribute| {
            let first = random.between(0, VALUES - self.width);
            let test = Test::between(first as i64, (first + self.width - 1) as i64);
            Constraint::new(self.attributes[attribute].clone(), test)
        }))
    }

    fn event(&self, _number: usize, random: &mut Random) -> Event {
        let event = self
            .attributes
            .iter()
            .fold(Event::builder(), |event, attribute| event.attribute(&**attribute, random.below(VALUES) as i64));
        event.build().expect("attributes are distinct and few")
    }
}
