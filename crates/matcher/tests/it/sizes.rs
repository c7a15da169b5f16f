//! Much of one kind: long strings, long lists of one shape, large sets, wide and deep disjunctions.

use crate::chance::Random;
use enroute_filter::{Comparison, Conjunction, Constraint, Event, Filter, Limit, Limits, Test, Value};
use enroute_matcher::{Enindex, NaiveScan, Owner, Scratch, SubscriptionId};

/// An engine beside the scan.
#[derive(Default)]
struct Pair {
    engine: Enindex,
    naive: NaiveScan,
    scratch: Scratch,
}

impl Pair {
    fn insert(&mut self, id: u64, filter: &Filter) {
        assert!(self.engine.insert(SubscriptionId(id), Owner(id % 7), filter));
        assert!(self.naive.insert(SubscriptionId(id), Owner(id % 7), filter));
    }

    fn remove(&mut self, id: u64) {
        assert!(self.engine.remove(SubscriptionId(id)) && self.naive.remove(SubscriptionId(id)));
    }

    /// How many subscriptions the event matches.
    fn compare(&mut self, event: &Event) -> usize {
        let (mut ids, mut expected_ids) = (Vec::new(), Vec::new());
        self.engine.matches(event, &mut self.scratch, &mut ids);
        ids.sort_unstable();
        self.naive.matches(event, &mut self.scratch, &mut expected_ids);
        assert_eq!(ids, expected_ids, "{event:?}");
        let (mut owners, mut expected_owners) = (Vec::new(), Vec::new());
        self.engine.interested(event, &mut self.scratch, &mut owners);
        self.naive.interested(event, &mut self.scratch, &mut expected_owners);
        assert_eq!(owners, expected_owners, "{event:?}");
        ids.len()
    }
}

fn event(value: &Value) -> Event {
    Event::builder().attribute("a", value.clone()).build().expect("not too long")
}

#[test]
fn strings_as_long_as_events_may_be() {
    let mut pair = Pair::default();
    let long = "lorem ".repeat(10_900);
    let texts = [long.clone(), format!("{long}a"), format!("{long}b"), format!("b{long}")];
    let tests = |text: &str| {
        use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
        let comparisons = [Eq, Ne, Lt, Le, Gt, Ge].map(|comparison| Test::compare(comparison, text));
        let others =
            [Test::prefix(text), Test::suffix(&text[text.len() - 9..]), Test::contains("m a"), Test::contains("mb")];
        comparisons.into_iter().chain(others)
    };
    let tests: Vec<Test> = texts.iter().flat_map(|text| tests(text)).collect();
    for (id, test) in (0..).zip(&tests) {
        pair.insert(id, &Conjunction::new([Constraint::new("a", test.clone())]).expect("none is empty").into());
    }
    let matches: usize = texts.iter().map(|text| pair.compare(&event(&Value::from(text.as_str())))).sum();
    assert!(matches > tests.len(), "{matches}");
    (0..tests.len() as u64).step_by(2).for_each(|id| pair.remove(id));
    texts.iter().for_each(|text| assert!(pair.compare(&event(&Value::from(text.as_str()))) > 0));
}

/// One symbol, one shape: more than fit into one block of columns, by and by fewer again.
#[test]
fn thousands_of_one_shape_under_one_key() {
    let mut random = Random(5);
    let mut pair = Pair::default();
    let quote = |random: &mut Random| {
        let event = Event::builder().attribute("symbol", "X").attribute("price", random.below(1_000) as i64);
        event.attribute("lot", random.below(50) as i64).build().expect("short")
    };
    let filter = |random: &mut Random| {
        let price = random.below(1_000) as i64;
        let constraints = [
            Constraint::compare("symbol", Comparison::Eq, "X"),
            Constraint::new("price", Test::between(price, price + 100)),
            Constraint::compare("lot", Comparison::Ge, random.below(50) as i64),
        ];
        Conjunction::new(constraints).expect("none is empty").into()
    };
    let mut live: Vec<u64> = Vec::new();
    let mut next = 0;
    for most in [300, 3_300, 1_000, 2_100, 1_030, 3] {
        while live.len() < most {
            pair.insert(next, &filter(&mut random));
            live.push(next);
            next += 1;
        }
        while live.len() > most {
            pair.remove(live.swap_remove(random.below(live.len() as u64) as usize));
        }
        // Other symbols are far more frequent, so that this one becomes the key, and not a price.
        for number in 0..2_000 {
            let event = Event::builder().attribute("symbol", format!("Y{number}")).attribute("price", number);
            let event = event.attribute("lot", 50).build().expect("short");
            pair.engine.matches(&event, &mut pair.scratch, &mut Vec::new());
        }
        let matches: usize = (0..40).map(|_| pair.compare(&quote(&mut random))).sum();
        assert!(most < 100 || matches > most, "{matches} of {most}");
    }
}

/// Entries that come when their list has a group of their shape, each a little beyond all that were there before.
#[test]
fn a_list_is_looked_into_wherever_its_group_has_grown_to() {
    let mut pair = Pair::default();
    let insert = |pair: &mut Pair, id: u64, symbol: &str, price: Test| {
        let constraints = [Constraint::compare("symbol", Comparison::Eq, symbol), Constraint::new("price", price)];
        pair.insert(id, &Conjunction::new(constraints).expect("none is empty").into());
    };
    // So many symbols that these are the keys, and limits that tell how prices are spread.
    for id in 1_000..1_600 {
        insert(&mut pair, id, &format!("Y{id}"), Test::compare(Comparison::Ge, (id * 7_919 % 10_000) as i64));
    }
    for id in 0..200 {
        // Upwards, then downwards.
        let step = 40 * (id as i64 % 100 + 1);
        let (low, high, newest) = if id < 100 { (step - 300, step, step) } else { (-step, 300 - step, -step) };
        insert(&mut pair, id, "X", Test::between(5_000 + low, 5_000 + high));
        let event = Event::builder().attribute("symbol", "X").attribute("price", 5_000 + newest);
        assert!(pair.compare(&event.build().expect("short")) > 0);
    }
}

/// Entries of late attributes get the places of early ones, in bitmaps that said nothing about those attributes.
#[test]
fn thousands_in_bitmaps_while_attributes_come_and_go() {
    const SUBSCRIPTIONS: u64 = 9_000;
    const LATE: u64 = 600;
    let mut random = Random(10);
    let mut pair = Pair::default();
    // Wide ranges on half of eight attributes: no key is worth while, and no shape frequent.
    let wide = |kind: &str, random: &mut Random| {
        let constraints = (0..8).filter_map(|number| {
            let start = random.below(400) as i64;
            let range = Test::between(start, start + 600);
            (random.below(2) == 0).then(|| Constraint::new(format!("{kind}{number}"), range))
        });
        Filter::from(Conjunction::new(constraints.collect::<Vec<_>>()).expect("none is empty"))
    };
    let point = |random: &mut Random| {
        let point = (0..8).fold(Event::builder(), |event, number| {
            let event = event.attribute(format!("early{number}"), random.below(1_000) as i64);
            event.attribute(format!("late{number}"), random.below(1_000) as i64)
        });
        point.build().expect("short")
    };
    let mut early: Vec<u64> = (0..SUBSCRIPTIONS).collect();
    early.iter().for_each(|&id| pair.insert(id, &wide("early", &mut random)));
    // Some of the late attributes stay, so that it is known that all events have them.
    (SUBSCRIPTIONS..SUBSCRIPTIONS + 20).for_each(|id| pair.insert(id, &wide("late", &mut random)));
    for _ in 0..2_000 {
        pair.engine.matches(&point(&mut random), &mut pair.scratch, &mut Vec::new());
    }
    let mut next = SUBSCRIPTIONS + 20;
    let mut matches = 0;
    // In some of the rounds the late ones come after all others have been placed anew.
    for _ in 0..16 {
        for id in next..next + LATE {
            pair.insert(id, &wide("late", &mut random));
        }
        for step in 0..LATE {
            pair.remove(early.swap_remove(random.below(early.len() as u64) as usize));
            if step % 100 == 0 {
                matches += pair.compare(&point(&mut random));
            }
        }
        (next..next + LATE).for_each(|id| pair.remove(id));
        next += LATE;
        for id in next..next + LATE {
            pair.insert(id, &wide("early", &mut random));
            early.push(id);
        }
        next += LATE;
    }
    assert!(matches > 10_000, "{matches}");
}

#[test]
fn sets_of_more_words_than_a_mask_has_bits() {
    let mut random = Random(6);
    let mut pair = Pair::default();
    let word = |number: u64| Value::from(format!("w{number}").as_str());
    let filter = |id: u64, random: &mut Random| {
        let values: Vec<Value> = match id % 3 {
            // Many of many, so that codes beyond any mask's come into use.
            0 => (0..200).map(|_| word(random.below(400))).collect(),
            1 => (0..2 + random.below(8)).map(|_| word(random.below(400))).collect(),
            _ => (0..150).map(|_| Value::Int(random.below(400) as i64)).collect(),
        };
        let values = values.iter().map(Value::as_ref);
        let test = if random.below(4) == 0 { Test::none_of(values) } else { Test::one_of(values) };
        Filter::from(Conjunction::new([Constraint::new("a", test)]).expect("none is empty"))
    };
    (0..400).for_each(|id| pair.insert(id, &filter(id, &mut random)));
    let mut matches = 0;
    for round in 0..400 {
        matches += pair.compare(&event(&word(random.below(401))));
        matches += pair.compare(&event(&Value::Int(random.below(401) as i64)));
        // Codes become free and are given to other words.
        pair.remove(round);
        if round % 4 > 0 {
            pair.insert(400 + round, &filter(round, &mut random));
        }
    }
    assert!(matches > 20_000, "{matches}");
}

#[test]
fn as_many_conjunctions_as_a_filter_may_have() {
    let mut random = Random(7);
    let mut pair = Pair::default();
    let most = Limits::default().maximum(Limit::Conjunctions) as i64;
    for id in 0..60 {
        let count = [most, 129, 128, 2][id as usize % 4];
        let conjunctions = (0..count).map(|number| {
            let constraints = [
                Constraint::compare("a", Comparison::Eq, number * 3 + random.below(3) as i64),
                // Different ones, so that no two conjunctions become one.
                Constraint::compare(format!("b{}", number % 30), Comparison::Ge, number),
            ];
            Conjunction::new(constraints).expect("none is empty")
        });
        let filter = Filter::any_of(conjunctions.collect::<Vec<_>>(), &Limits::default()).expect("as many as may be");
        assert_eq!(filter.conjunctions().len(), count as usize);
        pair.insert(id, &filter);
    }
    let mut matches = 0;
    for round in 0..200 {
        let event = (0..30)
            .fold(Event::builder().attribute("a", random.below(3 * most as u64) as i64), |event, number| {
                event.attribute(format!("b{number}"), random.below(400) as i64)
            });
        matches += pair.compare(&event.build().expect("short"));
        if round % 4 == 0 && round / 4 < 40 {
            pair.remove(round / 4);
        }
    }
    assert!(matches > 500, "{matches}");
}

#[test]
fn disjunctions_as_deep_as_a_filter_may_be() {
    let mut pair = Pair::default();
    // One more level each, and-ed and or-ed in turn, so that nothing can be flattened.
    let deep = |levels: usize| {
        let start = "a = 0".to_owned();
        (1..=levels).fold(start, |text, level| {
            let operator = if level % 2 == 0 { "AND" } else { "OR" };
            format!("({text}) {operator} b{} >= {level}", level % 20)
        })
    };
    for (id, levels) in (0..).zip([0, 1, 2, 7, 20, 40, 63]) {
        pair.insert(id, &Filter::parse(&deep(levels)).unwrap_or_else(|error| panic!("{levels} levels: {error}")));
    }
    // A conjunction of disjunctions: each event has to satisfy each of the factors.
    pair.insert(
        100,
        &Filter::parse("(a = 1 OR b1 = 1) AND (a = 2 OR b2 = 1) AND (a = 3 OR b3 = 1) AND (a = 4 OR b4 = 1)").unwrap(),
    );
    pair.insert(101, &Filter::parse("NOT ((a = 1 AND b1 = 1) OR (a = 2 AND NOT (b2 = 1 OR b3 = 1)))").unwrap());
    pair.insert(102, &Filter::always());
    pair.insert(103, &Filter::never());
    let mut random = Random(8);
    let mut matches = 0;
    for _ in 0..500 {
        let event = (0..20).fold(Event::builder().attribute("a", random.below(5) as i64), |event, number| {
            if random.below(5) == 0 { event } else { event.attribute(format!("b{number}"), random.below(70) as i64) }
        });
        matches += pair.compare(&event.build().expect("short"));
    }
    assert!(matches > 1_000, "{matches}");
    (0..7).chain(100..104).for_each(|id| pair.remove(id));
    assert!(pair.engine.is_empty());
}
