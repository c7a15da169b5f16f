//! What the demo replays, over which brokers, and who asks for what.

use crate::failure::Failure;
use crate::lines::Lines;
use enroute_filter::{Event, Filter, JsonReader, Timestamp, ValueRef};

/// Flights and weather of January 2013 at New York's three airports; see `examples/data/README.md`.
const STREAM: &[u8] = include_bytes!("../../../../../examples/data/nyc-2013-01.jsonl.gz");

/// The brokers, the leaves last; everywhere else in the demo a broker is its position here.
pub(super) const BROKERS: [&str; 8] = ["hub", "EWR", "east", "LGA", "west", "south", "JFK", "desk"];

/// How many of them are core brokers.
pub(super) const CORE: usize = 6;

/// The brokers at which events are published: those of the airport that is the event's `origin`.
pub(super) const AIRPORTS: [usize; 3] = [1, 6, 3];

/// A ring of the core brokers, two chords, and the uplinks of the leaves.
pub(super) const LINKS: [(usize, usize); 10] =
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (0, 3), (2, 5), (2, 6), (4, 7)];

/// The broker that a leaf hangs off; none for a core broker.
pub(super) fn parent(broker: usize) -> Option<usize> {
    LINKS.into_iter().find(|&(_, leaf)| leaf == broker && leaf >= CORE).map(|(parent, _)| parent)
}

/// Who asks for what: a broker and a filter; each is a client of its own.
pub(super) const SUBSCRIPTIONS: [(usize, &str); 6] = [
    (0, "kind='flight' and dest='SFO' and dep_delay>=60"),
    (0, "kind='flight' and dep_time is null"),
    (7, "kind='flight' and origin='JFK' and dest in ('LAX','SFO','SEA') and arr_delay>30"),
    (4, "manufacturer like 'BOEING%' and seats>300"),
    (5, "kind='flight' and dest_lat between 24.5 and 31 and dest_lon between -87.7 and -79.9"),
    (5, "kind='weather' and (wind_gust>=40 or visib<1)"),
];

/// What each subscriber asks for besides, so that it knows when it has seen everything: after its last event every airport
/// publishes one event of this kind, which nothing overtakes.
pub(super) const END_KIND: &str = "demo-end";

/// An event of the stream.
pub(super) struct Entry {
    /// The broker that publishes it.
    pub(super) airport: usize,
    /// The hour it belongs to.
    pub(super) hour: Timestamp,
    pub(super) event: Event,
}

/// All events, in order of time.
pub(super) fn stream() -> Result<Vec<Entry>, Failure> {
    let unreadable = |line: u64, what: &dyn std::fmt::Display| Failure::new(format!("line {line} of the data: {what}"));
    let reader = JsonReader { times: vec!["time_hour".to_owned()], ..JsonReader::default() };
    let mut lines = Lines::of(Box::new(STREAM));
    let mut entries = Vec::new();
    while let Some(line) = lines.next().map_err(|error| unreadable(0, &error))? {
        let text = line.text.map_err(|error| unreadable(line.number, &error))?;
        let event = reader.read(text).map_err(|error| unreadable(line.number, &error))?.0;
        let airport = match event.get("origin") {
            Some(ValueRef::String(origin)) => AIRPORTS.into_iter().find(|&broker| BROKERS[broker] == origin),
            _ => None,
        };
        let airport = airport.ok_or_else(|| unreadable(line.number, &"no airport"))?;
        let Some(ValueRef::Time(hour)) = event.get("time_hour") else {
            return Err(unreadable(line.number, &"no time"));
        };
        entries.push(Entry { airport, hour, event });
    }
    Ok(entries)
}

/// The filters of [`SUBSCRIPTIONS`].
pub(super) fn filters() -> Result<[Filter; SUBSCRIPTIONS.len()], Failure> {
    let mut filters = std::array::from_fn(|_| Filter::never());
    for (filter, (_, text)) in filters.iter_mut().zip(SUBSCRIPTIONS) {
        *filter = crate::filter_text::parse(text)?;
    }
    Ok(filters)
}

/// The last event of an airport.
pub(super) fn end_of(airport: usize) -> Result<Event, Failure> {
    let builder = Event::builder().attribute("kind", END_KIND).attribute("origin", BROKERS[airport]);
    builder.build().map_err(|error| Failure::new("cannot make an event").because(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direct_scan_finds_what_is_known_of_january() {
        let entries = stream().unwrap();
        let filters = filters().unwrap();
        let counts = filters.map(|filter| entries.iter().filter(|entry| filter.matches(&entry.event)).count());
        assert_eq!(entries.len(), 29_230);
        assert_eq!(counts, [31, 521, 113, 132, 5144, 151]);
        assert!(entries.is_sorted_by_key(|entry| entry.hour));
    }
}
