//! Random histories of several brokers that share, each compared with plain sets of its own.

use super::*;
use crate::{Random, seeded};
use enroute_filter::Conjunction;
use rand::RngExt;
use std::collections::BTreeSet;

const ORIGINS: u64 = 5;

/// What one broker must hold.
type Plain = BTreeMap<BrokerId, BTreeSet<AnnouncedFilter>>;

/// One of 24 filters, the last of which cannot be read.
fn filter(random: &mut Random) -> AnnouncedFilter {
    let number = random.random_range(0..24);
    if number == 23 {
        return AnnouncedFilter(b"unreadable".as_slice().into());
    }
    let text = format!("a = {} AND b >= {}", number % 6, number / 6);
    AnnouncedFilter::of(&Filter::parse(&text).expect("a filter").conjunctions()[0])
}

fn filters(random: &mut Random) -> Vec<AnnouncedFilter> {
    (0..random.random_range(0..5)).map(|_| filter(random)).collect()
}

/// Changes a plain set, and says what that changed, without ids, in order.
fn change(
    set: &mut BTreeSet<AnnouncedFilter>,
    whole: bool,
    added: &[AnnouncedFilter],
    removed: &[AnnouncedFilter],
) -> [BTreeSet<AnnouncedFilter>; 2] {
    let new: BTreeSet<_> = added.iter().filter(|filter| set.insert((*filter).clone())).cloned().collect();
    let gone: BTreeSet<_> = match whole {
        true => set.extract_if(.., |filter| !added.contains(filter)).collect(),
        false => removed.iter().filter(|filter| set.remove(filter)).cloned().collect(),
    };
    [new, gone]
}

fn without_ids(changes: Changes) -> [BTreeSet<AnnouncedFilter>; 2] {
    [changes.added, changes.removed].map(|list| {
        let (count, set) = (list.len(), list.into_iter().map(|(filter, _)| filter).collect::<BTreeSet<_>>());
        assert_eq!(set.len(), count, "each is named once");
        set
    })
}

fn interested(held: &Plain, event: &Event) -> Vec<Owner> {
    let wants =
        |filter: &AnnouncedFilter| filter.conjunction().unwrap_or_else(|_| Conjunction::always()).matches(event);
    held.iter().filter(|(_, set)| set.iter().any(wants)).map(|(origin, _)| Owner(origin.0)).collect()
}

fn compare(place: &mut impl RemoteFilters, plain: &Plain, random: &mut Random) {
    for origin in (0..ORIGINS).map(BrokerId) {
        let set = plain.get(&origin);
        assert_eq!(place.count(origin), set.map_or(0, BTreeSet::len));
        let asked = filter(random);
        assert_eq!(place.contains(origin, &asked), set.is_some_and(|set| set.contains(&asked)));
    }
    let (a, b) = (random.random_range(0..6i64), random.random_range(0..4i64));
    let event = Event::builder().attribute("a", a).attribute("b", b).build().expect("two attributes");
    let mut found = Vec::new();
    place.interested(&event, &mut found);
    assert_eq!(found, interested(plain, &event));
    let mut all: Vec<AnnouncedFilter> = place.filters().collect();
    all.sort_unstable();
    let mut expected: Vec<AnnouncedFilter> = plain.values().flatten().cloned().collect();
    expected.sort_unstable();
    assert_eq!(all, expected);
}

#[test]
fn each_of_those_that_share_holds_what_it_would_hold_alone() {
    for seed in 0..20 {
        let mut random = seeded(seed, "shared");
        let shared = SharedFilters::default();
        let mut brokers: Vec<_> = (0..4).map(|_| (shared.place(), Plain::new())).collect();
        for _ in 0..400 {
            let (number, origin) = (random.random_range(0..brokers.len()), BrokerId(random.random_range(0..ORIGINS)));
            let (place, plain) = &mut brokers[number];
            match random.random_range(0..20) {
                0 => {
                    let gone = plain.remove(&origin).unwrap_or_default();
                    assert_eq!(without_ids(place.forget(origin)), [BTreeSet::new(), gone]);
                }
                1 => {
                    place.clear();
                    plain.clear();
                }
                // A crash, and the start of another life.
                2 => (*place, *plain) = (shared.place(), Plain::new()),
                kind => {
                    let (whole, added, removed) = (kind < 8, filters(&mut random), filters(&mut random));
                    let expected = change(plain.entry(origin).or_default(), whole, &added, &removed);
                    assert_eq!(without_ids(place.change(origin, whole, added, removed)), expected);
                }
            }
            let (place, plain) = &mut brokers[number];
            compare(place, plain, &mut random);
        }
        brokers.iter_mut().for_each(|(place, plain)| compare(place, plain, &mut random));
        drop(brokers);
        let index = shared.index();
        assert!(index.matcher.is_empty() && index.filter_numbers.is_empty() && index.set_numbers.is_empty());
        assert!(index.filters.slots.iter().all(Option::is_none) && index.sets.slots.iter().all(Option::is_none));
    }
}

#[test]
fn what_many_hold_stands_once() {
    let shared = SharedFilters::default();
    let mut places: Vec<_> = (0..50).map(|_| shared.place()).collect();
    let told: Vec<AnnouncedFilter> = (0..9).map(|_| filter(&mut seeded(1, "told"))).collect();
    for place in &mut places {
        for origin in (0..ORIGINS).map(BrokerId) {
            place.change(origin, true, told.clone(), Vec::new());
        }
    }
    assert_eq!(shared.index().set_numbers.len(), 1);
    // Who has missed a step holds another set than the others.
    places[7].change(BrokerId(3), false, Vec::new(), told);
    assert_eq!((places[7].count(BrokerId(3)), places[8].count(BrokerId(3))), (0, 1));
}
