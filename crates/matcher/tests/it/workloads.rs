//! Kinds of subscriptions and events at a size where lists become long, shapes frequent and bitmaps worth while.

use crate::chance::Random;
use enroute_filter::{Comparison, Conjunction, Constraint, Event, EventBuilder, Filter, Test, Value};

/// Where filters and events come from.
#[derive(Clone, Copy)]
pub(crate) struct Workload {
    pub(crate) filter: fn(&mut Random) -> Filter,
    pub(crate) event: fn(&mut Random) -> Event,
}

/// Many attributes of very different frequency.
pub(crate) const ZIPF: Workload = Workload { filter: zipf_filter, event: zipf_event };
/// Quotes: few symbols and shapes, all kinds of predicates that stand in columns.
pub(crate) const QUOTES: Workload = Workload { filter: quote_filter, event: quote };
/// Boxes: wide ranges over half of some attributes that every event has.
pub(crate) const BOXES: Workload = Workload { filter: box_filter, event: point };

/// So many different attributes of 300, by Zipf's law: the tenth a tenth as often as the first.
fn zipf_attributes(count: u64, random: &mut Random) -> Vec<u64> {
    let mut drawn = Vec::new();
    while drawn.len() < count as usize {
        let attribute = 300_f64.powf(random.float(10) / 10.0) as u64;
        if !drawn.contains(&attribute) {
            drawn.push(attribute);
        }
    }
    drawn
}

fn zipf_filter(random: &mut Random) -> Filter {
    let count = 3 + random.below(5);
    let constraints = zipf_attributes(count, random).into_iter().map(|attribute| {
        let comparison = *random.pick(&[Comparison::Eq, Comparison::Le, Comparison::Ge]);
        Constraint::compare(format!("z{attribute}"), comparison, random.below(10_000) as i64)
    });
    Conjunction::new(constraints.collect::<Vec<_>>()).expect("different attributes").into()
}

fn zipf_event(random: &mut Random) -> Event {
    let count = 10 + random.below(21);
    let builder = zipf_attributes(count, random).into_iter().fold(Event::builder(), |event, attribute| {
        event.attribute(format!("z{attribute}"), random.below(10_000) as i64)
    });
    builder.build().unwrap()
}

const VENUES: [&str; 20] =
    ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"];

fn quote_filter(random: &mut Random) -> Filter {
    let mut constraints = Vec::new();
    let mut add = |name: &str, test: Test| constraints.push(Constraint::new(name, test));
    if random.below(4) > 0 {
        add("symbol", Test::compare(Comparison::Eq, format!("S{}", random.below(6)).as_str()));
    }
    let price = random.float(100);
    match random.below(4) {
        0 => add("price", Test::compare(Comparison::Ge, price)),
        1 => add("price", Test::compare(Comparison::Lt, price)),
        2 => add("price", Test::between(price, price + 20.0)),
        _ => add("price", Test::not_between(price, price + 20.0)),
    }
    if random.below(2) == 0 {
        let count = 2 + random.below(5);
        let venues: Vec<Value> =
            (0..count).map(|_| Value::from(VENUES[random.below(VENUES.len() as u64) as usize])).collect();
        add("venue", Test::one_of(venues.iter().map(Value::as_ref)));
    }
    match random.below(8) {
        0 => add("halted", Test::Absent),
        1 => add("halted", Test::Present),
        2 => add("lot", Test::compare(Comparison::Ne, random.below(10) as i64)),
        3 => add("lot", Test::compare(Comparison::Eq, random.below(10) as i64)),
        4 => add("venue", Test::compare(Comparison::Gt, VENUES[random.below(20) as usize])),
        5 => add("note", Test::contains(&format!("x{}", random.below(30)))),
        _ => {}
    }
    Conjunction::new(constraints).map_or_else(Filter::never, Filter::from)
}

fn quote(random: &mut Random) -> Event {
    let mut event = Event::builder().attribute("symbol", format!("S{}", random.below(6)));
    event = if random.below(3) == 0 {
        event.attribute("price", random.below(100) as i64)
    } else {
        event.attribute("price", random.float(100))
    };
    let optional = |event: EventBuilder, random: &mut Random, name: &str, value: Value| {
        if random.below(5) > 0 { event.attribute(name, value) } else { event }
    };
    let venue = VENUES[random.below(VENUES.len() as u64) as usize];
    event = optional(event, random, "venue", venue.into());
    let lot = random.below(10) as i64;
    event = optional(event, random, "lot", lot.into());
    let note = format!("x{} x{}", random.below(40), random.below(40));
    event = optional(event, random, "note", note.into());
    if random.below(4) == 0 { event.attribute("halted", true) } else { event }.build().unwrap()
}

fn box_filter(random: &mut Random) -> Filter {
    let mut constraints = Vec::new();
    for number in 0..12 {
        if random.below(2) == 0 {
            let start = random.float(5);
            let test = match random.below(5) {
                0 => Test::not_between(start + 2.0, start + 3.0),
                1 => Test::not_between(start, start + 9.0),
                _ => Test::between(start, start + 5.0),
            };
            constraints.push(Constraint::new(format!("d{number}"), test));
        }
    }
    Conjunction::new(constraints).map_or_else(Filter::never, Filter::from)
}

fn point(random: &mut Random) -> Event {
    let builder = (0..12).fold(Event::builder(), |event, number| {
        if random.below(12) == 0 { event } else { event.attribute(format!("d{number}"), random.float(10)) }
    });
    builder.build().unwrap()
}
