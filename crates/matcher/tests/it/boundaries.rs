//! Values where something ends: integers that are no f64, infinities, zeros, the first and last times, strings that differ only at
//! their ends. Every operator meets every pair of them.

use enroute_filter::{Comparison, Conjunction, Constraint, Event, Filter, Test, Timestamp, Value};
use enroute_matcher::{Enindex, Owner, Scratch, SubscriptionId};

const COMPARISONS: [Comparison; 6] =
    [Comparison::Eq, Comparison::Ne, Comparison::Lt, Comparison::Le, Comparison::Gt, Comparison::Ge];

fn numbers() -> Vec<Value> {
    const FLOATS: i64 = 1 << 53;
    let ints = [
        FLOATS - 1,
        FLOATS,
        FLOATS + 1,
        FLOATS + 2,
        FLOATS + 3,
        -FLOATS - 1,
        -FLOATS,
        // Between two neighbouring f64 that are 1,024 apart, and those.
        i64::MAX - 1_023,
        i64::MAX - 1_022,
        i64::MAX - 511,
        i64::MAX - 1,
        i64::MAX,
        i64::MIN,
        i64::MIN + 1,
        -1,
        0,
        1,
    ];
    let large = FLOATS as f64;
    let floats = [
        f64::NEG_INFINITY,
        f64::MIN,
        i64::MIN as f64,
        (i64::MIN as f64).next_down(),
        -large,
        -1.0,
        -f64::MIN_POSITIVE,
        -0.0,
        0.0,
        5e-324,
        1.0_f64.next_down(),
        1.0,
        1.0_f64.next_up(),
        large.next_down(),
        large,
        large.next_up(),
        i64::MAX as f64,
        (i64::MAX as f64).next_down(),
        f64::MAX,
        f64::INFINITY,
    ];
    ints.into_iter().map(Value::Int).chain(floats.into_iter().map(Value::Float)).collect()
}

fn times() -> Vec<Value> {
    // Codes are the upper 32 bits.
    let nanoseconds = [i64::MIN, i64::MIN + 1, i64::MIN + (1 << 32), -1, 0, 1, (1 << 32) - 1, 1 << 32, i64::MAX];
    nanoseconds.into_iter().map(|time| Value::Time(Timestamp(time))).collect()
}

fn strings() -> Vec<Value> {
    let long = "x".repeat(1_000);
    let ends = ["", "\0", "\u{1}"].map(|end| format!("{long}{end}"));
    let short = [
        "",
        "\0",
        "\0\0",
        "\0\0\0\0",
        "\0\0\0\u{1}",
        "a",
        "a\0",
        "ab",
        "abc",
        "abcd",
        "abcd\0",
        "abcde",
        "abce",
        "b",
        "\u{d7ff}",
        "\u{e000}",
        "\u{ffff}",
        "\u{10000}",
        "\u{10ffff}",
        "\u{10ffff}\u{10ffff}",
    ];
    short.into_iter().map(Value::from).chain(ends.into_iter().map(Value::String)).collect()
}

/// Every operator with every operand, every pair of operands, and each test's complement.
fn tests(values: &[Value]) -> Vec<Test> {
    let mut tests = vec![Test::Present, Test::Absent];
    for value in values {
        tests.extend(COMPARISONS.map(|comparison| Test::compare(comparison, value)));
        for other in values {
            tests.push(Test::between(value, other));
            tests.push(Test::not_between(value, other));
            tests.push(Test::one_of([value.as_ref(), other.as_ref()]));
            tests.push(Test::none_of([value.as_ref(), other.as_ref()]));
        }
        if let Value::String(text) = value {
            tests.extend([Test::prefix(text), Test::suffix(text), Test::contains(text)]);
            tests.extend([Test::prefix(text).complement(), Test::contains(text).complement()]);
        }
    }
    tests
}

fn event(value: &Value) -> Event {
    Event::builder().attribute("a", value.clone()).build().expect("short")
}

/// Puts every test in one engine, and asks about every value.
fn every_test_meets_every_value(values: &[Value]) {
    let tests = tests(values);
    let (mut engine, mut scratch, mut found) = (Enindex::new(), Scratch::default(), Vec::new());
    let filter =
        |test: &Test| Conjunction::new([Constraint::new("a", test.clone())]).map_or_else(Filter::never, Filter::from);
    let filters: Vec<Filter> = tests.iter().map(filter).collect();
    // Inserting twice makes the second half through lenses of what the first half asked for and events had.
    for round in 0..2 {
        for (id, filter) in (round * filters.len() as u64..).zip(&filters) {
            assert!(engine.insert(SubscriptionId(id), Owner(0), filter));
        }
        for value in values.iter().chain(&[Value::Float(f64::NAN), Value::Bool(true)]) {
            let event = event(value);
            engine.matches(&event, &mut scratch, &mut found);
            found.sort_unstable();
            let all = (0..=round).flat_map(|_| &filters);
            let expected: Vec<SubscriptionId> =
                all.zip(0..).filter(|(filter, _)| filter.matches(&event)).map(|(_, id)| SubscriptionId(id)).collect();
            assert_eq!(found, expected, "{value:?}");
        }
    }
}

#[test]
fn numbers_at_their_ends() {
    every_test_meets_every_value(&numbers());
}

#[test]
fn times_at_their_ends() {
    every_test_meets_every_value(&times());
}

#[test]
fn strings_at_their_ends() {
    every_test_meets_every_value(&strings());
}

#[test]
fn names_at_their_ends() {
    // Of up to 16 bytes the first say all. Names alike but for zeros behind them, or but for what comes behind 8 or 16 bytes.
    let (eight, sixteen) = ("abcdefgh", "0123456789abcdef");
    let names = ["a".to_owned(), "a\0".into(), "a\0\0".into(), "\0".into(), "\0\0".into(), "é".into(), "éé".into()];
    let longer = [eight, sixteen].into_iter().flat_map(|name| {
        let cut = name[..name.len() - 1].to_owned();
        [format!("{cut}\0"), cut, name.to_owned(), format!("{name}\0"), format!("{name}y"), format!("{name}z")]
    });
    let names: Vec<String> = names.into_iter().chain(longer).collect();
    let (mut engine, mut scratch) = (Enindex::new(), Scratch::default());
    let ids = |engine: &Enindex, scratch: &mut Scratch, name: &str| {
        let mut ids = Vec::new();
        let event = Event::builder().attribute(name, 1).payload(b"payload".as_slice());
        engine.matches(&event.build().expect("short"), scratch, &mut ids);
        ids
    };
    for (number, name) in (0..).zip(&names) {
        assert_eq!(ids(&engine, &mut scratch, name), [], "{name:?} is not there yet");
        let present = Constraint::new(name.as_str(), Test::Present);
        let filter = Conjunction::new([present]).expect("not empty").into();
        assert!(engine.insert(SubscriptionId(number), Owner(1), &filter));
    }
    for (number, name) in (0..).zip(&names) {
        assert_eq!(ids(&engine, &mut scratch, name), [SubscriptionId(number)], "{name:?}");
        assert!(engine.remove(SubscriptionId(number)));
        assert_eq!(ids(&engine, &mut scratch, name), [], "{name:?} is no longer there");
    }
}
