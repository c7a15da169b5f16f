//! The events, and the subscriptions of others.

use crate::forward::role::STAMP;
use crate::random::Random;
use enroute_filter::{Event, Filter, Limits, Value};

/// Symbols that events and foreign subscriptions speak of.
const SYMBOLS: usize = 10_000;
/// Different events; they come round again.
const DIFFERENT: usize = 1_024;

/// Events of some size, made beforehand but for their payload: what encoding attributes costs is the application's, in which
/// peers have no share.
#[derive(Debug)]
pub struct Events {
    events: Vec<Event>,
    payload: Vec<u8>,
    next: usize,
    limits: Limits,
}

impl Events {
    /// Events of `body` bytes, attributes and payload: ten attributes where there is room for them.
    pub fn new(body: usize) -> Events {
        let mut random = Random::new(1, 0);
        let events = (0..DIFFERENT).map(|index| event(&mut random, index, body)).collect();
        Events { events, payload: Vec::new(), next: 0, limits: Limits::default() }
    }

    /// The next event, with the moment of sending at the end of its payload.
    pub fn next(&mut self, moment: u64) -> Event {
        self.next = (self.next + 1) % self.events.len();
        let event = &self.events[self.next];
        self.payload.resize(event.payload().len(), 0);
        let stamp = self.payload.len() - STAMP;
        self.payload[stamp..].copy_from_slice(&moment.to_le_bytes());
        event.with_payload(&self.payload, &self.limits).expect("as long as before")
    }
}

/// The moment of sending that an event carries.
pub fn moment_in(event: &Event) -> u64 {
    event.as_bytes().last_chunk().map_or(0, |stamp| u64::from_le_bytes(*stamp))
}

fn event(random: &mut Random, index: usize, body: usize) -> Event {
    let attributes: [(&str, Value); 10] = [
        ("venue", "X".into()),
        ("sym", format!("S{}", random.below(SYMBOLS)).into()),
        ("price", (100.0 + 100.0 * random.unit()).into()),
        ("vol", (random.below(100_000) as i64).into()),
        ("side", if random.chance(0.5) { "buy" } else { "sell" }.into()),
        ("seq", (index as i64).into()),
        ("bid", (100.0 + 100.0 * random.unit()).into()),
        ("ask", (100.0 + 100.0 * random.unit()).into()),
        ("last", random.chance(0.5).into()),
        ("lot", (random.below(1_000) as i64).into()),
    ];
    let count = if body < 300 { 2 } else { attributes.len() };
    let with = |payload: usize| {
        let builder = attributes
            .iter()
            .take(count)
            .fold(Event::builder(), |builder, (name, value)| builder.attribute(*name, value.clone()));
        builder.payload(vec![0; payload]).build().expect("within the limits")
    };
    let bare = with(0).as_bytes().len();
    with(body.saturating_sub(bare).max(STAMP))
}

/// What the subscribers want: everything.
pub fn wanted() -> Filter {
    "venue = 'X'".parse().expect("a filter")
}

/// Subscriptions as others may have them: a symbol, a narrow band of prices and a large volume. Hardly any event matches one.
pub fn foreign(count: usize) -> impl Iterator<Item = Filter> {
    let mut random = Random::new(1, 1);
    (0..count).map(move |_| {
        let price = 100.0 + 100.0 * random.unit();
        let (symbol, volume) = (random.below(SYMBOLS), 99_000 + random.below(1_000));
        let text = format!("sym = 'S{symbol}' AND price BETWEEN {price:.3} AND {:.3} AND vol >= {volume}", price + 0.1);
        text.parse().expect("a filter")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn events_have_their_size_and_are_wanted_by_those_who_should() {
        let foreign: Vec<Filter> = foreign(100).collect();
        for body in [100, 300, 1_024, 16_384] {
            let mut events = Events::new(body);
            for moment in 1..2_000 {
                let event = events.next(moment);
                assert_eq!((event.as_bytes().len(), moment_in(&event)), (body, moment));
                assert!(wanted().matches(&event));
                assert!(!foreign.iter().any(|filter| filter.matches(&event)), "{event:?}");
            }
        }
    }
}
