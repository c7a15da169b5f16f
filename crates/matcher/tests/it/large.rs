//! Thousands of subscriptions, so that lists become long, shapes frequent and bitmaps worth while.

use crate::chance::Random;
use enroute_filter::{Comparison, Conjunction, Constraint, Event, EventBuilder, Filter, Test, Value};
use enroute_matcher::{Enindex, NaiveScan, Owner, Scratch, SubscriptionId};

const VENUES: [&str; 20] =
    ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"];

/// Quotes: few symbols and shapes, all kinds of predicates that stand in columns.
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

/// Boxes: wide ranges over half of some attributes that every event has.
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

/// Inserts, removes and matches on both engines; says how many matches there were.
fn compare(filter: fn(&mut Random) -> Filter, event: fn(&mut Random) -> Event, count: u64) -> usize {
    let mut random = Random(count);
    let (mut engine, mut naive) = (Enindex::new(), NaiveScan::new());
    let mut scratch = Scratch::default();
    let (mut found, mut expected, mut total) = (Vec::new(), Vec::new(), 0);
    let (mut owners, mut expected_owners) = (Vec::new(), Vec::new());
    for step in 0..3 * count {
        let id = SubscriptionId(random.below(count));
        let owner = Owner(id.0 % 500);
        if step < count || random.below(2) == 0 {
            let filter = filter(&mut random);
            assert_eq!(engine.insert(id, owner, &filter), naive.insert(id, owner, &filter));
        } else {
            assert_eq!(engine.remove(id), naive.remove(id));
        }
        if step % (count / 60) == 0 {
            let event = event(&mut random);
            engine.matches(&event, &mut scratch, &mut found);
            naive.matches(&event, &mut scratch, &mut expected);
            assert_eq!(found, expected, "after {step} updates, {event:?}");
            engine.interested(&event, &mut scratch, &mut owners);
            naive.interested(&event, &mut scratch, &mut expected_owners);
            assert_eq!(owners, expected_owners);
            total += found.len();
        }
    }
    assert_eq!(engine.len(), naive.len());
    for id in 0..count {
        assert_eq!(engine.remove(SubscriptionId(id)), naive.remove(SubscriptionId(id)));
    }
    assert_eq!(engine.memory_usage(), Enindex::new().memory_usage());
    total
}

#[test]
fn frequent_shapes() {
    assert!(compare(quote_filter, quote, 6_000) > 20_000);
}

#[test]
fn wide_ranges_on_few_attributes() {
    assert!(compare(box_filter, point, 9_000) > 2_000);
}
