use super::*;
use proptest::prelude::*;

fn sample() -> Event {
    Event::builder()
        .attribute("time", Value::Time(Timestamp(-7)))
        .attribute("int", Value::Int(i64::MIN))
        .attribute("float", Value::Float(-0.0))
        .attribute("bool", Value::Bool(true))
        .attribute("städt", Value::String("Köln \u{1F680}".to_owned()))
        .attribute("empty", Value::String(String::new()))
        .payload(&b"opaque"[..])
        .build()
        .unwrap()
}

fn read(bytes: Vec<u8>) -> Result<Event, EventError> {
    Event::from_bytes(bytes.into(), &Limits::default())
}

/// Reads all there is to read, both ways; the result only keeps the reads from being optimised away.
fn touch(event: &Event) -> usize {
    assert_eq!(event.raw_attributes().len(), event.attribute_count());
    for ((name, value), (raw_name, raw)) in event.attributes().zip(event.raw_attributes()) {
        assert_eq!(raw_name.to_str(), name);
        match (value, raw) {
            (ValueRef::Bool(value), RawValue::Bool(raw)) => assert_eq!(raw, value),
            (ValueRef::Int(value), RawValue::Int(raw)) => assert_eq!(raw, value),
            (ValueRef::Float(value), RawValue::Float(raw)) => assert_eq!(raw.to_bits(), value.to_bits()),
            (ValueRef::Time(value), RawValue::Time(raw)) => assert_eq!(raw, value),
            (ValueRef::String(value), RawValue::String(raw)) => check_text(raw, value),
            (value, raw) => panic!("{name}: {raw:?} instead of {value:?}"),
        }
        check_text(raw_name, name);
    }
    let by_name = event.attributes().filter(|(name, _)| event.get(name).is_some()).count();
    assert_eq!(by_name, event.attribute_count());
    event.payload().len() + format!("{event:?}").len()
}

fn check_text(raw: RawText<'_>, text: &str) {
    let mut head = [0; 16];
    let length = text.len().min(16);
    head[..length].copy_from_slice(&text.as_bytes()[..length]);
    for raw in [raw, RawText::from(text)] {
        assert_eq!((raw.as_bytes(), raw.to_str(), raw.length()), (text.as_bytes(), text, text.len()));
        assert_eq!(raw.head(), u128::from_le_bytes(head), "{text:?}");
    }
}

#[test]
fn attributes_come_sorted_and_are_found_by_name() {
    let event = sample();
    let attributes: Vec<_> = event.attributes().collect();
    let expected = [
        ("bool", ValueRef::Bool(true)),
        ("empty", ValueRef::String("")),
        ("float", ValueRef::Float(-0.0)),
        ("int", ValueRef::Int(i64::MIN)),
        ("städt", ValueRef::String("Köln \u{1F680}")),
        ("time", ValueRef::Time(Timestamp(-7))),
    ];
    assert_eq!(attributes, expected);
    assert_eq!(event.attributes().len(), 6);
    for (name, value) in expected {
        assert_eq!(event.get(name), Some(value));
    }
    for absent in ["", "a", "boo", "boolx", "städ", "zzz"] {
        assert_eq!(event.get(absent), None);
    }
    assert_eq!(event.payload(), &b"opaque"[..]);
}

#[test]
fn the_layout_is_the_documented_one() {
    let event = Event::builder()
        .attribute("b", Value::Int(-2))
        .attribute("a", Value::String("xyz".to_owned()))
        .payload(&b"!"[..])
        .build()
        .unwrap();
    let mut expected = vec![1, 0, 2, 0, 5, 0, 0, 0, 1, 0, 0, 0];
    expected.extend([0, 0, 1, 3, 3, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([4, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    expected.extend(b"axyzb!");
    assert_eq!(event.as_bytes(), &expected);
}

#[test]
fn bytes_are_kept_without_copying() {
    let event = sample();
    let again = Event::from_bytes(event.as_bytes().clone(), &Limits::default()).unwrap();
    assert_eq!(again, event);
    assert_eq!(again.as_bytes().as_ptr(), event.as_bytes().as_ptr());
    assert_eq!(again.to_builder().build().unwrap(), event);
    let empty = Event::builder().build().unwrap();
    assert_eq!(read(empty.as_bytes().to_vec()).unwrap(), empty);
    assert_eq!((empty.attribute_count(), empty.payload().len()), (0, 0));
}

#[test]
fn builders_refuse_what_is_no_event() {
    let twice = Event::builder().attribute("a", Value::Int(1)).attribute("a", Value::Bool(true)).build();
    assert_eq!(twice, Err(EventError::DuplicateAttribute("a".to_owned())));
    assert_eq!(Event::builder().attribute("", Value::Int(1)).build(), Err(EventError::EmptyName));
}

fn exceeded(limit: Limit, found: usize) -> Result<Event, EventError> {
    Err(EventError::Limit(LimitExceeded { limit, found, maximum: limit.default_maximum() }))
}

#[test]
fn each_limit_is_held_to_the_byte() {
    let named = |length: usize| Event::builder().attribute("x".repeat(length), Value::Bool(true)).build();
    assert!(named(255).is_ok());
    assert_eq!(named(256), exceeded(Limit::AttributeName, 256));

    let many = |count| (0..count).fold(Event::builder(), |b, i| b.attribute(format!("a{i}"), Value::Int(i))).build();
    assert!(read(many(256).unwrap().as_bytes().to_vec()).is_ok());
    assert_eq!(many(257), exceeded(Limit::Attributes, 257));

    let long = |length: usize| Event::builder().attribute("x", Value::String("y".repeat(length))).build();
    let most = 64 * 1024 - ENTRY - 1;
    assert_eq!(read(long(most).unwrap().as_bytes().to_vec()).unwrap(), long(most).unwrap());
    assert_eq!(long(most + 1), exceeded(Limit::AttributeData, 64 * 1024 + 1));

    let payload = |length| Event::builder().payload(vec![0; length]).build();
    assert!(read(payload(1 << 20).unwrap().as_bytes().to_vec()).is_ok());
    assert_eq!(payload((1 << 20) + 1), exceeded(Limit::Payload, (1 << 20) + 1));
}

#[test]
fn a_reader_with_lower_limits_refuses() {
    let bytes = sample().as_bytes().clone();
    for (limit, found, maximum) in [
        (Limit::Attributes, 6, 5),
        (Limit::AttributeName, 6, 5),
        (Limit::AttributeData, 6 * ENTRY + 27 + 10, 100),
        (Limit::Payload, 6, 5),
    ] {
        let refused = Event::from_bytes(bytes.clone(), &Limits::default().lowered(limit, maximum)).unwrap_err();
        assert_eq!(refused, EventError::Limit(LimitExceeded { limit, found, maximum }));
    }
}

#[test]
fn malformed_bytes_are_named() {
    let good = Event::builder()
        .attribute("a", Value::String("é".to_owned()))
        .attribute("b", Value::Bool(true))
        .build()
        .unwrap()
        .as_bytes()
        .to_vec();
    let first = HEADER;
    let second = HEADER + ENTRY;
    let text = second + ENTRY;
    for (at, byte, expected) in [
        (0, 2, "unknown version"),
        (1, 1, "reserved byte is not zero"),
        (4, 5, "lengths do not add up"),
        (first, 1, "a name does not start where the attribute before ends"),
        (first + 2, 2, "a name reaches beyond the text or cuts a character"),
        (first + 2, 0, "names are empty, unsorted or repeated"),
        (first + 3, 9, "unknown class of value"),
        (first + 4, 1, "a string reaches beyond the text or cuts a character"),
        (first + 9, 1, "a string reaches beyond the text"),
        (second, 4, "a name does not start where the attribute before ends"),
        (second + 4, 2, "a bool is neither 0 nor 1"),
        (text + 3, b'a', "names are empty, unsorted or repeated"),
        (text + 1, 0xff, "text is not UTF-8"),
    ] {
        let mut bad = good.clone();
        bad[at] = byte;
        assert_eq!(read(bad), Err(EventError::Malformed(expected)), "byte {at} = {byte}");
    }
    let mut longer = good.clone();
    longer.push(0);
    assert_eq!(read(longer), Err(EventError::Malformed("lengths do not add up")));
    for length in 0..good.len() {
        assert!(read(good[..length].to_vec()).is_err(), "{length} bytes");
    }
    let mut unowned = good;
    unowned[4] += 1;
    unowned.push(b'x');
    assert_eq!(read(unowned), Err(EventError::Malformed("text that belongs to no attribute")));
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<u64>().prop_map(|bits| Value::Float(f64::from_bits(bits))),
        "\\PC{0,8}".prop_map(Value::String),
        any::<i64>().prop_map(|ns| Value::Time(Timestamp(ns))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_built_is_what_is_read(
        attributes in proptest::collection::btree_map("\\PC{1,6}", value(), 0..8),
        payload in proptest::collection::vec(any::<u8>(), 0..16),
    ) {
        let mut builder = Event::builder().payload(payload.clone());
        for (name, value) in attributes.iter().rev() {
            builder = builder.attribute(name.clone(), value.clone());
        }
        let event = read(builder.build().unwrap().as_bytes().to_vec()).unwrap();
        let bits = |value: &ValueRef<'_>| if let ValueRef::Float(f) = value { Some(f.to_bits()) } else { None };
        prop_assert_eq!(event.attribute_count(), attributes.len());
        for ((name, value), (expected_name, expected)) in event.attributes().zip(&attributes) {
            prop_assert_eq!(name, expected_name);
            let expected = expected.as_ref();
            prop_assert!(bits(&value) == bits(&expected) && (bits(&value).is_some() || value == expected));
        }
        prop_assert_eq!(event.payload(), payload);
        touch(&event);
    }

    #[test]
    fn names_and_strings_are_checked_as_a_whole_text_would_be(
        mut texts in proptest::collection::vec("(aaaaaa|aaaaaaaa)?[a\u{0}]{0,5}", 1..6),
        is_sorted in prop::bool::weighted(0.8),
        repeats in prop::bool::weighted(0.2),
        last in prop_oneof![Just("büüüüü"), Just("bccccccccccc")],
        cut in any::<prop::sample::Index>(),
        payload in "[z\u{0}]{0,9}",
    ) {
        if is_sorted {
            texts.sort();
            texts.dedup();
        }
        if repeats {
            texts.extend_from_within(texts.len() - 1..);
        }
        // An event of names alone, in whatever order and cut wherever: it is one if all names are text and ascend.
        let text = texts.concat() + last;
        let mut ends: Vec<usize> = texts.iter().scan(0, |end, text| { *end += text.len(); Some(*end) }).collect();
        ends.extend([texts.concat().len() + cut.index(last.len()), text.len()]);
        ends.sort_unstable();
        let mut bytes = Header { count: ends.len(), text: text.len(), payload: payload.len() }.to_bytes().to_vec();
        let starts = || std::iter::once(0).chain(ends.iter().copied());
        for (start, end) in starts().zip(&ends) {
            bytes.extend([start as u8, 0, (end - start) as u8, CLASS_INT, 0, 0, 0, 0, 0, 0, 0, 0]);
        }
        bytes.extend(text.as_bytes());
        bytes.extend(payload.as_bytes());
        let names: Vec<Option<&str>> = starts().zip(&ends).map(|(start, end)| text.get(start..*end)).collect();
        let is_event = names.iter().all(|name| name.is_some_and(|name| !name.is_empty()))
            && names.windows(2).all(|pair| pair[0] < pair[1]);
        prop_assert_eq!(read(bytes).is_ok(), is_event, "{:?}", names);
    }

    #[test]
    fn random_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Some(first) = bytes.first_mut() {
            *first = VERSION;
        }
        if let Ok(event) = read(bytes) {
            touch(&event);
        }
    }

    #[test]
    fn mutated_bytes_are_refused_or_read_safely(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = sample().as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(event) = read(bytes.clone()) {
            touch(&event);
            // One encoding for one content: what is accepted is what a builder would have written.
            prop_assert_eq!(event.to_builder().build().unwrap().as_bytes().to_vec(), bytes);
        }
    }
}

#[test]
fn an_unshared_event_lets_go_of_what_it_was_read_with() {
    let event = Event::builder().attribute("n", 1).payload(b"payload".as_slice()).build().unwrap();
    let mut read = event.as_bytes().to_vec();
    read.extend_from_slice(&[0; 1_000]);
    let read = Bytes::from(read);
    let shared = Event::from_bytes(read.slice(..event.as_bytes().len()), &Limits::default()).unwrap();
    let unshared = shared.unshared();
    drop(shared);
    assert!(read.is_unique());
    assert_eq!(unshared, event);
}
