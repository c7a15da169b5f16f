//! The flights and the weather of January 2013, New York: the stream of the demonstration, by direct scan.

use enroute_filter::{Event, Expression, Filter, JsonReader, Limits};
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader};

const EVENTS: usize = 29_230;

const FILTERS: [(&str, usize); 6] = [
    ("kind='flight' and dest='SFO' and dep_delay>=60", 31),
    ("kind='flight' and origin='JFK' and dest in ('LAX','SFO','SEA') and arr_delay>30", 113),
    ("kind='flight' and dep_time is null", 521),
    ("kind='weather' and (wind_gust>=40 or visib<1)", 151),
    ("kind='flight' and dest_lat between 24.5 and 31 and dest_lon between -87.7 and -79.9", 5_144),
    ("manufacturer like 'BOEING%' and seats>300", 132),
];

fn lines() -> impl Iterator<Item = String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/nyc-2013-01.jsonl.gz");
    let file = File::open(path).expect("the data is part of the repository");
    BufReader::new(GzDecoder::new(file)).lines().map(|line| line.expect("the data is whole"))
}

#[test]
fn every_line_is_an_event_and_the_six_filters_count_as_expected() {
    let reader = JsonReader::default();
    let filters = FILTERS.map(|(text, _)| (Filter::parse(text).unwrap(), Expression::parse(text).unwrap()));
    let mut counts = [0; FILTERS.len()];
    let mut events = 0;
    for line in lines() {
        let (event, arrays) = reader.read(&line).unwrap();
        assert_eq!(arrays, 0);
        assert!((13..=26).contains(&event.attribute_count()), "{event:?}");
        for ((filter, expression), count) in filters.iter().zip(&mut counts) {
            let matches = filter.matches(&event);
            assert_eq!(matches, expression.evaluate(&event) == Some(true), "{filter:?} on {event:?}");
            *count += usize::from(matches);
        }
        events += 1;
    }
    assert_eq!(events, EVENTS);
    assert_eq!(counts, FILTERS.map(|(_, expected)| expected));
}

#[test]
fn every_line_comes_back_from_bytes_and_from_json() {
    let reader = JsonReader { times: vec!["time_hour".to_owned()], ..JsonReader::default() };
    for line in lines() {
        let (event, _) = reader.read(&line).unwrap();
        assert_eq!(Event::from_bytes(event.as_bytes().clone(), &Limits::default()).unwrap(), event);
        assert_eq!(reader.read(&event.to_json()).unwrap().0, event);
    }
}
