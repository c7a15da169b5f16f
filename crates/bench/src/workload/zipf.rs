//! Attributes of very different frequency, drawn by Zipf's law.
//!
//! A subscription has 3 to 7 predicates on different attributes, `=`, `<=` or `>=` an integer from 0 on, all uniform; an
//! event has 10 to 30 attributes. Workload `w2` has 1,000 attributes and 10,000 values.

use super::{Generator, Kind, conjunction};
use crate::random::{Random, Zipf};
use enroute_filter::{Comparison, Constraint, Event, Filter};
use std::sync::Arc;

const COMPARISONS: [Comparison; 3] = [Comparison::Eq, Comparison::Le, Comparison::Ge];

/// See the module.
pub struct ZipfAttributes {
    attributes: Vec<Arc<str>>,
    frequency: Zipf,
    values: usize,
}

impl ZipfAttributes {
    /// With so many attributes (at least 30), and values each.
    pub fn new(attributes: usize, values: usize) -> ZipfAttributes {
        let names = (0..attributes).map(|index| format!("a{index:03}").into()).collect();
        ZipfAttributes { attributes: names, frequency: Zipf::new(attributes), values }
    }

    fn draw(&self, fewest: usize, most: usize, random: &mut Random) -> Vec<usize> {
        let count = random.between(fewest, most);
        random.distinct(count, |random| self.frequency.draw(random))
    }
}

impl Generator for ZipfAttributes {
    fn attributes(&self) -> Vec<(String, Kind)> {
        self.attributes.iter().map(|name| (name.to_string(), Kind::Int)).collect()
    }

    fn filter(&self, random: &mut Random) -> Filter {
        let attributes = self.draw(3, 7, random);
        conjunction(attributes.into_iter().map(|attribute| {
            let comparison = *random.pick(&COMPARISONS);
            Constraint::compare(self.attributes[attribute].clone(), comparison, random.below(self.values) as i64)
        }))
    }

    fn event(&self, _number: usize, random: &mut Random) -> Event {
        let event = self.draw(10, 30, random).into_iter().fold(Event::builder(), |event, attribute| {
            event.attribute(&*self.attributes[attribute], random.below(self.values) as i64)
        });
        event.build().expect("attributes are distinct and few")
    }
}
