use super::*;
use enroute_filter::{Class, ValueRef};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

const SEED: u64 = 1;

/// Digests of the first 1,000 subscriptions and events, in their byte forms.
const DIGESTS: [(Workload, u64, u64); 7] = [
    (Workload::W1, 137_005_279_275_773_811, 16_443_948_204_265_221_240),
    (Workload::W1b, 3_912_847_898_847_142_917, 16_770_546_519_624_178_291),
    (Workload::W2, 16_462_096_378_805_771_509, 3_620_213_241_209_231_566),
    (Workload::W3, 15_756_940_334_171_099_341, 14_548_988_721_173_203_065),
    (Workload::W4, 12_389_742_335_873_364_037, 5_652_987_906_574_123_126),
    (Workload::W4b, 12_493_785_462_778_369_454, 5_652_987_906_574_123_126),
    (Workload::Flights, 3_526_174_194_710_458_578, 7_607_242_268_157_687_304),
];

fn digest(inputs: impl Iterator<Item = Vec<u8>>) -> u64 {
    let digests: Vec<u8> = inputs.take(1_000).flat_map(|bytes| xxh3_64(&bytes).to_le_bytes()).collect();
    xxh3_64(&digests)
}

#[test]
fn inputs_are_pinned() {
    let found = Workload::ALL.map(|workload| {
        let input = workload.open(SEED);
        let filters = digest(input.subscriptions().map(|filter| filter.to_bytes()));
        (workload, filters, digest(input.events().map(|event| event.as_bytes().to_vec())))
    });
    assert_eq!(found, DIGESTS);
}

#[test]
fn another_seed_gives_another_input() {
    for workload in Workload::ALL {
        let digests = |seed| digest(workload.open(seed).subscriptions().map(|filter| filter.to_bytes()));
        assert_ne!(digests(SEED), digests(SEED + 1), "{}", workload.name());
    }
}

/// How many of `subscriptions` an event matches, as a mean over `events`, and as if there were 100,000.
fn matches_at_100k(workload: Workload, subscriptions: usize, events: usize) -> f64 {
    let input = workload.open(SEED);
    let events: Vec<Event> = input.events().take(events).collect();
    let filters = input.subscriptions().take(subscriptions);
    let matches: usize = filters.map(|filter| events.iter().filter(|event| filter.matches(event)).count()).sum();
    matches as f64 / events.len() as f64 / subscriptions as f64 * 100_000.0
}

#[test]
fn events_match_as_many_subscriptions_as_they_should() {
    for (workload, expected) in [
        // Practically nothing.
        (Workload::W1, 0.0..1.0),
        (Workload::W1b, 5.0..10.0),
        (Workload::W2, 20.0..35.0),
        (Workload::W3, 190.0..270.0),
        // 0.5 and 0.7 to the tenth power; events differ much, so that the means do.
        (Workload::W4, 85.0..115.0),
        (Workload::W4b, 2_600.0..3_100.0),
        (Workload::Flights, 3_200.0..3_900.0),
    ] {
        let found = matches_at_100k(workload, 1_500, 1_500);
        assert!(expected.contains(&found), "{}: {found} at 100,000, {expected:?} expected", workload.name());
    }
}

#[test]
fn w1_has_the_proportions_of_its_paper() {
    let input = Workload::W1.open(SEED);
    let kinds: BTreeMap<String, Kind> = input.attributes().into_iter().collect();
    let count = |kind| kinds.values().filter(|found| **found == kind).count();
    assert_eq!(
        [Kind::Int, Kind::Float, Kind::String, Kind::Bool, Kind::Time].map(count),
        [240, 120, 120, 120, 0],
        "different names, two fifths of them of integers"
    );
    let lengths: Vec<usize> =
        input.subscriptions().take(2_000).map(|filter| filter.conjunctions()[0].constraints().len()).collect();
    assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&5), Some(&20)));
    let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
    assert!((12.2..12.8).contains(&mean), "{mean}");
    assert!(input.events().take(100).all(|event| event.attribute_count() == 25));
}

#[test]
fn w3_has_the_proportions_of_its_definition() {
    let input = Workload::W3.open(SEED);
    let filters: Vec<Filter> = input.subscriptions().take(5_000).collect();
    let part = |attribute: &str| {
        let with = filters.iter().filter(|filter| filter.conjunctions()[0].test(attribute).is_some()).count();
        with as f64 / filters.len() as f64
    };
    for (attribute, expected) in [
        ("symbol", 0.8),
        ("price", 0.8),
        ("sector", 0.2),
        ("change", 0.2),
        ("volume", 0.6),
        ("exchange", 0.5),
        ("second", 0.25),
    ] {
        let found = part(attribute);
        assert!((found - expected).abs() < 0.03, "{attribute}: {found}, {expected} expected");
    }
    assert!(input.events().take(100).all(|event| event.attribute_count() == 10));
}

#[test]
fn flights_are_the_whole_month() {
    let generator = flights::Flights::read();
    let mut random = Random::new(SEED, EVENTS);
    let mut all: Vec<Event> = (0..29_230).map(|number| generator.event(number, &mut random)).collect();
    let weather = all.iter().filter(|event| event.get("kind") == Some("weather".into())).count();
    assert_eq!(weather, 2_226);
    all.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    all.dedup();
    assert_eq!(all.len(), 29_230, "no event of the month is like another, so none came twice");
}

#[test]
fn attributes_name_all_that_filters_and_events_use() {
    for workload in Workload::ALL {
        let input = workload.open(SEED);
        let kinds: BTreeMap<String, Kind> = input.attributes().into_iter().collect();
        for filter in input.subscriptions().take(300) {
            for constraint in filter.conjunctions()[0].constraints() {
                assert!(kinds.contains_key(&**constraint.attribute()), "{}", constraint.attribute());
            }
        }
        for event in input.events().take(300) {
            for (name, value) in event.attributes() {
                let fits = match kinds[name] {
                    Kind::Bool => matches!(value, ValueRef::Bool(_)),
                    Kind::Int => matches!(value, ValueRef::Int(_)),
                    Kind::Float => value.class() == Class::Number,
                    Kind::String => value.class() == Class::String,
                    Kind::Time => value.class() == Class::Time,
                };
                assert!(fits, "{}: {name} is {value:?}", workload.name());
            }
        }
    }
}
