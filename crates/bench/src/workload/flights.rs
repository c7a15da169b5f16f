//! Flights and weather of New York's airports in January 2013, and what people may want to know of them.
//!
//! The events are the month's 29,230, each once before any comes again, in an order that jumps over the month, so that
//! any number of them is a fair sample. The subscriptions take their operands from events drawn at random:
//!
//! | part | a subscription |
//! | --- | --- |
//! | 25 % | `origin =`, `dest =`, a delay bound |
//! | 20 % | `carrier =`, and a delay bound or, as often, a delay `NOT BETWEEN` |
//! | 15 % | `origin =`, `dest IN` 2 to 8 |
//! | 10 % | a box around a destination, half a degree to five each way |
//! | 10 % | `tailnum PREFIX` of three or four characters, a bound on a delay, the distance or the time in the air |
//! | 10 % | `origin =`, bounds on one to three of `temp`, `wind_gust`, `visib`, `pressure` |
//! | 5 % | `dep_time IS NULL` or `arr_time IS NULL`, and `origin =` or `carrier =` |
//! | 5 % | `manufacturer LIKE 'X%'`, a bound on `seats` |
//!
//! A delay bound is `dep_delay` or `arr_delay`, `>=` in two cases of three, else `<=`; other bounds are `>=` or `<=`.

use super::{Generator, Kind, conjunction};
use crate::random::Random;
use enroute_filter::{Comparison, Constraint, Event, Filter, JsonReader, Test, Value, ValueRef};
use std::collections::BTreeMap;
use std::io::Read;

static STREAM: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/nyc-2013-01.jsonl.gz"));

/// Prime, and no divisor of the number of events.
const STRIDE: usize = 10_007;
const DELAYS: [&str; 2] = ["dep_delay", "arr_delay"];
const TAIL_BOUNDS: [&str; 4] = ["dep_delay", "arr_delay", "distance", "air_time"];
const WEATHER: [&str; 4] = ["temp", "wind_gust", "visib", "pressure"];

/// See the module.
pub struct Flights {
    events: Vec<Event>,
    /// By attribute: the events that have it.
    with_attribute: BTreeMap<String, Vec<usize>>,
}

impl Flights {
    /// Reads the month, which is part of the program.
    pub fn read() -> Flights {
        let mut text = String::new();
        flate2::read::GzDecoder::new(STREAM).read_to_string(&mut text).expect("the stream is compressed text");
        let reader = JsonReader { times: vec!["time_hour".to_owned()], ..JsonReader::default() };
        let read = |line| reader.read(line).expect("each line of the stream is an event").0;
        let events: Vec<Event> = text.lines().map(read).collect();
        let mut with_attribute: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (number, event) in events.iter().enumerate() {
            for (name, _) in event.attributes() {
                with_attribute.entry(name.to_owned()).or_default().push(number);
            }
        }
        Flights { events, with_attribute }
    }

    /// An event that has the attribute.
    fn event_with(&self, attribute: &str, random: &mut Random) -> &Event {
        &self.events[*random.pick(&self.with_attribute[attribute])]
    }

    /// The attribute's value in some event that has it.
    fn value(&self, attribute: &str, random: &mut Random) -> ValueRef<'_> {
        self.event_with(attribute, random).get(attribute).expect("the event has the attribute")
    }

    fn equals(&self, attribute: &str, random: &mut Random) -> Constraint {
        Constraint::compare(attribute, Comparison::Eq, self.value(attribute, random))
    }

    fn bound(&self, attribute: &str, random: &mut Random) -> Constraint {
        let comparison = *random.pick(&[Comparison::Ge, Comparison::Le]);
        Constraint::compare(attribute, comparison, self.value(attribute, random))
    }

    fn delay_bound(&self, random: &mut Random) -> Constraint {
        let comparison = *random.pick(&[Comparison::Ge, Comparison::Ge, Comparison::Le]);
        let attribute = *random.pick(&DELAYS);
        Constraint::compare(attribute, comparison, self.value(attribute, random))
    }

    fn delay_not_between(&self, random: &mut Random) -> Constraint {
        let attribute = *random.pick(&DELAYS);
        let (one, other) = (number(self.value(attribute, random)), number(self.value(attribute, random)));
        Constraint::new(attribute, Test::not_between(one.min(other), one.max(other)))
    }

    fn route(&self, random: &mut Random) -> Vec<Constraint> {
        let flight = self.event_with("dest", random);
        let mut constraints = same(flight, &["origin", "dest"]);
        constraints.push(self.delay_bound(random));
        constraints
    }

    fn carrier(&self, random: &mut Random) -> Vec<Constraint> {
        let delay = if random.chance(0.5) { self.delay_bound(random) } else { self.delay_not_between(random) };
        vec![self.equals("carrier", random), delay]
    }

    fn destinations(&self, random: &mut Random) -> Vec<Constraint> {
        let count = random.between(2, 8);
        let mut destinations: Vec<Value> = Vec::with_capacity(count);
        while destinations.len() < count {
            let destination = self.value("dest", random).to_value();
            if !destinations.contains(&destination) {
                destinations.push(destination);
            }
        }
        let one_of = Test::one_of(destinations.iter().map(Value::as_ref));
        vec![self.equals("origin", random), Constraint::new("dest", one_of)]
    }

    fn region(&self, random: &mut Random) -> Vec<Constraint> {
        let flight = self.event_with("dest_lat", random);
        let side = |attribute: &str, random: &mut Random| {
            let (middle, reach) = (flight.get(attribute).map_or(0.0, number), 0.5 + 4.5 * random.unit());
            let hundredth = |degrees: f64| (degrees * 100.0).round() / 100.0;
            Constraint::new(attribute, Test::between(hundredth(middle - reach), hundredth(middle + reach)))
        };
        vec![side("dest_lat", random), side("dest_lon", random)]
    }

    fn tail_number(&self, random: &mut Random) -> Vec<Constraint> {
        let length = random.between(3, 4);
        let prefix = Test::prefix(&start(self.value("tailnum", random), length));
        let bound = self.bound(TAIL_BOUNDS[random.below(TAIL_BOUNDS.len())], random);
        vec![Constraint::new("tailnum", prefix), bound]
    }

    fn weather(&self, random: &mut Random) -> Vec<Constraint> {
        let count = random.between(1, 3);
        let attributes = random.distinct(count, |random| random.below(WEATHER.len()));
        let origin = self.equals("origin", random);
        let bounds = attributes.into_iter().map(|attribute| self.bound(WEATHER[attribute], random));
        std::iter::once(origin).chain(bounds.collect::<Vec<_>>()).collect()
    }

    fn missing(&self, random: &mut Random) -> Vec<Constraint> {
        let absent = *random.pick(&["dep_time", "arr_time"]);
        let whose = *random.pick(&["origin", "carrier"]);
        vec![Constraint::new(absent, Test::Absent), self.equals(whose, random)]
    }

    fn maker(&self, random: &mut Random) -> Vec<Constraint> {
        let pattern = format!("{}%", start(self.value("manufacturer", random), 1));
        let like = Test::like(&pattern, None).expect("a letter and a percent sign");
        vec![Constraint::new("manufacturer", like), self.bound("seats", random)]
    }
}

/// `=` to what the event says of each attribute.
fn same(event: &Event, attributes: &[&str]) -> Vec<Constraint> {
    let same = |attribute: &&str| Some(Constraint::compare(*attribute, Comparison::Eq, event.get(attribute)?));
    attributes.iter().filter_map(same).collect()
}

fn number(value: ValueRef<'_>) -> f64 {
    match value {
        ValueRef::Int(int) => int as f64,
        ValueRef::Float(float) => float,
        ValueRef::Bool(_) | ValueRef::String(_) | ValueRef::Time(_) => unreachable!("the attribute holds numbers"),
    }
}

/// The first characters of a string.
fn start(value: ValueRef<'_>, characters: usize) -> String {
    match value {
        ValueRef::String(string) => string.chars().take(characters).collect(),
        ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Float(_) | ValueRef::Time(_) => {
            unreachable!("the attribute holds strings")
        }
    }
}

impl Generator for Flights {
    fn attributes(&self) -> Vec<(String, Kind)> {
        let kind_of = |event: &Event, name: &str| match event.get(name) {
            None => unreachable!("the event has the attribute"),
            Some(ValueRef::Bool(_)) => Kind::Bool,
            Some(ValueRef::Int(_)) => Kind::Int,
            Some(ValueRef::Float(_)) => Kind::Float,
            Some(ValueRef::String(_)) => Kind::String,
            Some(ValueRef::Time(_)) => Kind::Time,
        };
        let attribute = |(name, numbers): (&String, &Vec<usize>)| {
            let mut kinds = numbers.iter().map(|number| kind_of(&self.events[*number], name));
            let first = kinds.next().expect("an attribute is of some event");
            // Floats that happen to be integers are written as such.
            let kind = if kinds.any(|kind| kind == Kind::Float) { Kind::Float } else { first };
            (name.clone(), kind)
        };
        self.with_attribute.iter().map(attribute).collect()
    }

    fn filter(&self, random: &mut Random) -> Filter {
        conjunction(match random.below(100) {
            0..25 => self.route(random),
            25..45 => self.carrier(random),
            45..60 => self.destinations(random),
            60..70 => self.region(random),
            70..80 => self.tail_number(random),
            80..90 => self.weather(random),
            90..95 => self.missing(random),
            _ => self.maker(random),
        })
    }

    fn event(&self, number: usize, _random: &mut Random) -> Event {
        self.events[number * STRIDE % self.events.len()].clone()
    }
}
