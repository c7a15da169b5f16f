use super::*;
use enroute_filter::{Comparison, Conjunction, Constraint, Test};

fn equal(name: &str, value: i64) -> Constraint {
    Constraint::compare(name, Comparison::Eq, value)
}

fn filter(constraints: impl IntoIterator<Item = Constraint>) -> Filter {
    Conjunction::new(constraints).unwrap().into()
}

fn event<'a>(attributes: impl IntoIterator<Item = (&'a str, i64)>) -> Event {
    let builder = attributes.into_iter().fold(Event::builder(), |event, (name, value)| event.attribute(name, value));
    builder.build().unwrap()
}

/// How many entries are posted under an equality of a number.
fn posted(engine: &Enindex, name: &str) -> u32 {
    let attribute = engine.slots.attribute_number(name.into()).unwrap();
    let slot = engine.slots.attribute_at(attribute).slot(slots::Aspect::Number);
    engine.slots[slot].equalities
}

#[test]
fn an_empty_engine_is_small() {
    assert!(size_of::<Enindex>() + Enindex::new().memory_usage() <= 4096);
}

#[test]
fn keys_follow_the_events() {
    let (mut engine, mut scratch, mut found) = (Enindex::new(), Scratch::default(), Vec::new());
    let insert = |engine: &mut Enindex, number: i64| {
        let filter = filter([equal("a", number % 100), equal("b", number / 100 % 100)]);
        engine.insert(SubscriptionId(number as u64), Owner(0), &filter);
    };
    (0..2_000).for_each(|number| insert(&mut engine, number));
    // First b is rare, then a.
    for (rare, frequent) in [("b", "a"), ("a", "b")] {
        for number in 0..40_000 {
            let event = event([(frequent, 7)].into_iter().chain((number % 50 == 0).then_some((rare, 3))));
            engine.matches(&event, &mut scratch, &mut found);
            assert!(found.is_empty() == (number % 50 != 0));
        }
        let start = engine.len() as i64;
        (start..start + 4_000).for_each(|number| insert(&mut engine, number));
        assert!(posted(&engine, rare) > 20 * posted(&engine, frequent), "{rare}: {}", posted(&engine, rare));
    }
}

#[test]
fn a_refused_insert_leaves_no_trace() {
    let mut engine = Enindex::new();
    // As many as make the next insert begin a generation.
    for number in 0..256 {
        assert!(engine.insert(SubscriptionId(number), Owner(0), &filter([equal("a", number as i64)])));
    }
    let before = format!("{engine:?}");
    assert!(!engine.insert(SubscriptionId(7), Owner(1), &filter([equal("b", 1)])));
    assert_eq!(format!("{engine:?}"), before);
}

#[test]
fn equal_filters_are_one_entry() {
    let mut engine = Enindex::new();
    for number in 0..1_000 {
        engine.insert(SubscriptionId(number), Owner(number % 7), &filter([equal("a", 1), equal("b", 2)]));
    }
    assert_eq!(engine.row_count, 1);
    let (mut scratch, mut owners) = (Scratch::default(), Vec::new());
    engine.interested(&event([("a", 1), ("b", 2)]), &mut scratch, &mut owners);
    assert_eq!(owners.len(), 7);
}

#[test]
fn huge_conjunctions_are_rows_of_their_own_pages() {
    let (mut engine, mut scratch, mut found) = (Enindex::new(), Scratch::default(), Vec::new());
    let huge = |from: i64| {
        let at_least = |number: i64| Constraint::compare(format!("x{number}"), Comparison::Gt, number);
        filter((from..from + 6_000).map(at_least))
    };
    let small = filter([equal("x1", 7)]);
    for round in 0..3 {
        for (id, filter) in [(0, huge(0)), (1, small.clone()), (2, huge(0)), (3, huge(1))] {
            assert!(engine.insert(SubscriptionId(id), Owner(id), &filter));
        }
        assert_eq!(engine.row_count, 3);
        engine.matches(&event([("x1", 7), ("x2", round)]), &mut scratch, &mut found);
        assert_eq!(found, [SubscriptionId(1)]);
        let pages = engine.rows.memory_usage();
        for id in [3, 0, 2] {
            assert!(engine.remove(SubscriptionId(id)));
        }
        assert!(engine.rows.memory_usage() < pages / 2);
        assert!(engine.remove(SubscriptionId(1)));
    }
}

#[test]
fn many_patterns_cost_one_walk() {
    let (mut engine, mut scratch, mut found) = (Enindex::new(), Scratch::default(), Vec::new());
    // Names in base 26 are as different as words are.
    let word = |number: u64| -> String {
        (0..5).map(|place| char::from(b'a' + (number / 26_u64.pow(place) * 7 % 26) as u8)).collect()
    };
    for number in 0..12_000_u64 {
        let test = match number % 3 {
            0 => Test::contains(&word(number)),
            1 => Test::suffix(&word(number)),
            _ => Test::like(&format!("%{}_x%", word(number)), None).unwrap(),
        };
        engine.insert(SubscriptionId(number), Owner(0), &filter([Constraint::new("text", test)]));
    }
    for number in (0..12_000).step_by(101) {
        let text = format!("xx{}yx zz{}", word(number), word(number + 1));
        let event = Event::builder().attribute("text", text.as_str()).build().unwrap();
        engine.matches(&event, &mut scratch, &mut found);
        found.sort_unstable();
        let expected: Vec<SubscriptionId> = (0..12_000)
            .filter(|&id| match id % 3 {
                0 => text.contains(&word(id)),
                1 => text.ends_with(&word(id)),
                _ => text
                    .match_indices(&word(id))
                    .any(|(at, _)| text.get(at + 6..).is_some_and(|rest| rest.starts_with('x'))),
            })
            .map(SubscriptionId)
            .collect();
        assert_eq!(found, expected, "{text}");
        assert!(scratch.counts.tested <= found.len(), "only what matches is looked at");
    }
    let full = engine.memory_usage();
    (1..12_000).for_each(|number| assert!(engine.remove(SubscriptionId(number))));
    assert!(engine.memory_usage() < full);
}

#[test]
fn churn_keeps_memory_level() {
    let mut engine = Enindex::new();
    let nth = |number: u64| {
        let number = number as i64;
        let low = number * 7_919 % 1_000;
        let range = Test::between(low, low + 1 + number % 50);
        filter([equal(&format!("a{}", number % 40), number * 31 % 500), Constraint::new("b", range)])
    };
    let mut peak = 0;
    for number in 0..60_000_u64 {
        engine.insert(SubscriptionId(number), Owner(number % 100), &nth(number));
        if number >= 3_000 {
            engine.remove(SubscriptionId(number - 3_000));
        }
        if number % 1_000 == 999 {
            match number {
                0..20_000 => peak = peak.max(engine.memory_usage()),
                _ => assert!(engine.memory_usage() < peak * 11 / 10, "{} after {number}", engine.memory_usage()),
            }
        }
    }
}

#[test]
fn groups_of_many_blocks_find_what_a_scan_finds() {
    let (mut engine, mut naive, mut scratch) = (Enindex::new(), crate::NaiveScan::new(), Scratch::default());
    let nth = |number: i64| {
        // A third each from below, from above, and narrow; some bounds are alike, and events lie at some.
        let bound = number * 7_919 % 3_001 / 2;
        let price = match number % 3 {
            0 => Constraint::compare("price", Comparison::Ge, bound),
            1 => Constraint::compare("price", Comparison::Le, bound),
            _ => Constraint::new("price", Test::between(bound, bound + 40)),
        };
        let mut constraints = vec![equal("symbol", 7), price];
        if number % 2 == 0 {
            constraints.push(Constraint::compare("volume", Comparison::Gt, number % 100));
        }
        filter(constraints)
    };
    let (mut found, mut expected, mut watching) = (Vec::new(), Vec::new(), Scratch::default());
    let mut compare = |engine: &Enindex, naive: &crate::NaiveScan| {
        for price in [0, 1, 399, 400, 750, 1_111, 1_500, 1_501] {
            let event = event([("symbol", 7), ("price", price), ("volume", price % 90)]);
            engine.matches(&event, &mut scratch, &mut found);
            found.sort_unstable();
            naive.matches(&event, &mut scratch, &mut expected);
            assert_eq!(found, expected, "{price}");
        }
    };
    for number in 0..15_000 {
        let (id, owner) = (SubscriptionId(number as u64), Owner(number as u64 % 9));
        engine.insert(id, owner, &nth(number));
        naive.insert(id, owner, &nth(number));
        if number == 300 {
            // Symbols turn out to be better keys than prices.
            for other in 0..4_000 {
                let event = event([("symbol", 10 + other % 500), ("price", other * 13 % 1_500), ("volume", 1)]);
                engine.matches(&event, &mut watching, &mut Vec::new());
            }
        }
    }
    compare(&engine, &naive);
    for number in (0..15_000).filter(|number| number % 5 > 0) {
        assert!(engine.remove(SubscriptionId(number)) && naive.remove(SubscriptionId(number)));
    }
    compare(&engine, &naive);
    for number in 15_000..25_000 {
        let (id, owner) = (SubscriptionId(number as u64), Owner(0));
        engine.insert(id, owner, &nth(number));
        naive.insert(id, owner, &nth(number));
    }
    compare(&engine, &naive);
}

#[test]
fn a_late_and_rare_attribute_is_divided_into_cells_too() {
    let (mut engine, mut scratch, mut found) = (Enindex::new(), Scratch::default(), Vec::new());
    let names: Vec<String> = (0..20).map(|number| format!("a{number}")).collect();
    let event = |number: i64| {
        let names = names.iter().map(String::as_str).chain((number % 25 == 0).then_some("late"));
        event(names.zip(0..).map(|(name, place)| (name, (number * 104_729 + place * 31) % 10_000)))
    };
    for number in 0..12_000 {
        // From the second third on a tenth of the new ones is about another attribute.
        let name = if number > 4_000 && number % 10 == 0 { "late" } else { &names[number as usize % 20] };
        let low = number * 7_919 % 10_000;
        let filter = filter([Constraint::new(name, Test::between(low, low + 10))]);
        engine.insert(SubscriptionId(number as u64), Owner(0), &filter);
        if number >= 4_000 {
            assert!(engine.remove(SubscriptionId(number as u64 - 4_000)));
        }
        (4 * number..4 * number + 4).for_each(|number| engine.matches(&event(number), &mut scratch, &mut found));
    }
    let mut tested = 0;
    for number in 0..100 {
        engine.matches(&event(25 * number), &mut scratch, &mut found);
        tested += scratch.counts.tested;
    }
    assert!(tested < 6_000, "400 entries are about the late attribute, and events test {tested} / 100");
}

#[test]
fn of_events_that_come_in_turns_all_are_looked_at() {
    let (mut engine, mut scratch, mut found) = (Enindex::new(), Scratch::default(), Vec::new());
    engine.insert(SubscriptionId(0), Owner(0), &filter([equal("a", 1)]));
    let turn = 4 * i64::from(Observations::EVERY);
    for number in 0..64 * turn {
        engine.matches(&event([("a", number % turn)]), &mut scratch, &mut found);
    }
    let observations = engine.observations.get_mut().unwrap();
    let seen: std::collections::BTreeSet<u32> = observations.slots[1].sample.codes().iter().copied().collect();
    assert_eq!(seen.len(), turn as usize);
    let expected = 64 * turn / i64::from(Observations::EVERY);
    assert!((observations.events as i64 - expected).abs() < expected / 4, "{}", observations.events);
}
