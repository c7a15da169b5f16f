//! Events from JSON and to JSON.

use enroute_filter::{Event, JsonError, JsonReader, Limit, LimitExceeded, Limits, Timestamp, Value, ValueRef};
use proptest::prelude::*;

fn read(text: &str) -> Result<(Event, usize), JsonError> {
    JsonReader::default().read(text)
}

#[track_caller]
fn attributes(text: &str, expected: &[(&str, Value)]) {
    let (event, _) = read(text).unwrap();
    let found: Vec<_> = event.attributes().map(|(name, value)| (name, value.to_value())).collect();
    assert_eq!(found, expected, "{text}");
}

#[track_caller]
fn refused(text: &str, message: &str) {
    let error = read(text).unwrap_err().to_string();
    assert!(error.contains(message), "{text}: {error}");
}

#[test]
fn scalars_become_attributes() {
    attributes("{}", &[]);
    attributes(
        " {\"s\" : \"x\", \"i\":-7 , \"f\":1.5,\n\"t\":true,\"u\":false,\"n\":null}\r\n",
        &[
            ("f", Value::Float(1.5)),
            ("i", Value::Int(-7)),
            ("s", Value::from("x")),
            ("t", Value::Bool(true)),
            ("u", Value::Bool(false)),
        ],
    );
}

#[test]
fn objects_flatten_to_dotted_names() {
    attributes(
        r#"{"a":{"b":{"c":1},"d":2},"a.e":3,"x":{},"":{"y":4}}"#,
        &[(".y", Value::Int(4)), ("a.b.c", Value::Int(1)), ("a.d", Value::Int(2)), ("a.e", Value::Int(3))],
    );
}

#[test]
fn arrays_are_dropped_and_counted_or_refused() {
    let text = r#"{"a":[1,[2]],"b":{"c":[]},"d":1}"#;
    let (event, arrays) = read(text).unwrap();
    assert_eq!((event.attribute_count(), arrays), (1, 2));
    let strict = JsonReader { strict: true, ..JsonReader::default() };
    assert!(matches!(strict.read(r#"{"d":1,"b":{"c":[]}}"#), Err(JsonError::Array(name)) if name == "b.c"));
    assert!(strict.read(r#"{"d":1}"#).is_ok());
}

#[test]
fn numbers_keep_their_value() {
    attributes(
        r#"{"a":9223372036854775807,"b":-9223372036854775808,"c":-0,"d":1e2,"e":9223372036854775808.0,"f":0.1,"g":1e-400}"#,
        &[
            ("a", Value::Int(i64::MAX)),
            ("b", Value::Int(i64::MIN)),
            ("c", Value::Int(0)),
            ("d", Value::Float(100.0)),
            ("e", Value::Float(9_223_372_036_854_775_808.0)),
            ("f", Value::Float(0.1)),
            ("g", Value::Float(0.0)),
        ],
    );
    for text in ["9223372036854775808", "-9223372036854775809", "18446744073709551616"] {
        let result = read(&format!("{{\"x\":{{\"y\":{text}}}}}"));
        let Err(JsonError::IntegerOutOfRange { attribute, number }) = result else { panic!("{text}: {result:?}") };
        assert_eq!((attribute.as_str(), number.as_str()), ("x.y", text));
    }
    refused(r#"{"x":1e400}"#, "\"x\": number 1e400 is out of range");
    refused(&format!("{{\"x\":{}}}", "9".repeat(100_000)), "999… is beyond 64 bits");
    for text in ["01", "1.", ".5", "+1", "1e", "NaN", "Infinity", "0x1", "-"] {
        refused(&format!("{{\"x\":{text}}}"), "not a JSON object");
    }
}

#[test]
fn two_members_of_one_name_are_refused() {
    for (text, name) in [
        (r#"{"a":1,"a":1}"#, "a"),
        (r#"{"a.b":1,"a":{"b":2}}"#, "a.b"),
        (r#"{"a":null,"a":1}"#, "a"),
        (r#"{"a":1,"b":2,"a":[]}"#, "a"),
        (r#"{"a":{"b":1},"a":{"c":1}}"#, "a"),
        (r#"{"a":1,"\u0061":2}"#, "a"),
    ] {
        assert!(matches!(read(text), Err(JsonError::Duplicate(found)) if found == name), "{text}");
    }
}

#[test]
fn strings_are_unescaped() {
    attributes(
        r#"{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude80é","\u0062":"","c":"\u0000"}"#,
        &[("a", Value::from("\"\\/\u{8}\u{c}\n\r\té\u{1F680}é")), ("b", Value::from("")), ("c", Value::from("\0"))],
    );
    for text in [r#""\ud83d""#, r#""\ude80""#, r#""\ud83dx""#, r#""\x41""#, r#""\u12"#, "\"a\nb\"", "'a'", r#""a"#] {
        refused(&format!("{{\"x\":{text}}}"), "not a JSON object");
    }
}

#[test]
fn what_is_no_object_is_refused() {
    for text in [
        "",
        " ",
        "1",
        "null",
        "[]",
        "\"a\"",
        "{",
        "}",
        "{}{}",
        "{} x",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "\u{feff}{}",
    ] {
        refused(text, "not a JSON object");
    }
    refused("[1]", "expected a JSON object");
    refused("{\"\":1}", "empty name");
}

#[test]
fn times_are_read_where_asked() {
    let reader = JsonReader { times: vec!["t".to_owned(), "a.t".to_owned()], ..JsonReader::default() };
    let (event, _) = reader
        .read(r#"{"t":"1970-01-01T00:00:01Z","a":{"t":"1970-01-01T01:00:00+01:00"},"u":"1970-01-01T00:00:01Z"}"#)
        .unwrap();
    assert_eq!(event.get("t"), Some(ValueRef::Time(Timestamp(1_000_000_000))));
    assert_eq!(event.get("a.t"), Some(ValueRef::Time(Timestamp(0))));
    assert_eq!(event.get("u"), Some(ValueRef::String("1970-01-01T00:00:01Z")));
    assert_eq!(reader.read(r#"{"t":5}"#).unwrap().0.get("t"), Some(ValueRef::Int(5)));
    assert!(matches!(reader.read(r#"{"t":"today"}"#), Err(JsonError::Time { attribute, .. }) if attribute == "t"));
}

#[test]
fn limits_hold() {
    let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    assert!(read(&nested(64)).is_ok());
    for depth in [65, 100_000] {
        let Err(JsonError::Limit(excess)) = read(&nested(depth)) else { panic!("{depth}") };
        assert_eq!(excess, LimitExceeded { limit: Limit::Nesting, found: 65, maximum: 64 });
    }
    // Cut short, and of arrays.
    assert!(read(&"{\"a\":".repeat(100_000)).is_err());
    assert!(read(&format!("{{\"a\":{}", "[".repeat(100_000))).is_err());
    assert_eq!(read(&format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000))).unwrap().1, 1);

    let limits = Limits::default().lowered(Limit::Attributes, 1).lowered(Limit::AttributeName, 3);
    let reader = JsonReader { limits, ..JsonReader::default() };
    let limit = |text| match reader.read(text) {
        Err(JsonError::Limit(excess)) => Some(excess.limit),
        _ => None,
    };
    assert_eq!(limit(r#"{"a":{"b":1}}"#), None);
    assert_eq!(limit(r#"{"a":{"bc":1}}"#), Some(Limit::AttributeName));
    assert_eq!(limit(r#"{"a":1,"b":2}"#), Some(Limit::Attributes));
    refused(&format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20)), "attribute_data");
}

#[test]
fn json_out_is_one_flat_object() {
    let event = Event::builder()
        .attribute("t", Timestamp(1_500_000_000))
        .attribute("s", "a\"\\\n\u{1F680}")
        .attribute("i", -5_i64)
        .attribute("f", 0.1)
        .attribute("whole", 5.0)
        .attribute("large", 1e300)
        .attribute("nan", f64::NAN)
        .attribute("infinite", f64::INFINITY)
        .attribute("a.b", true)
        .payload(&b"not shown"[..])
        .build()
        .unwrap();
    let expected = r#"{"a.b":true,"f":0.1,"i":-5,"infinite":null,"large":1e+300,"nan":null,"s":"a\"\\\n🚀","t":"1970-01-01T00:00:01.5Z","whole":5.0}"#;
    assert_eq!(event.to_json(), expected);
    assert_eq!(Event::builder().build().unwrap().to_json(), "{}");
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_filter("JSON knows finite numbers only", |float| float.is_finite()).prop_map(Value::Float),
        any::<String>().prop_map(Value::String),
        any::<i64>().prop_map(|ns| Value::Time(Timestamp(ns))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn what_is_written_is_read_back(values in proptest::collection::btree_map("\\PC{1,9}|[a-c]\\.[a-c]", value(), 0..6)) {
        let is_time = |value: &Value| matches!(value, Value::Time(_));
        let times = values.iter().filter(|(_, value)| is_time(value)).map(|(name, _)| name.clone()).collect();
        let builder = values.into_iter().fold(Event::builder(), |builder, (name, value)| builder.attribute(name, value));
        let event = builder.build().unwrap();
        let reader = JsonReader { times, ..JsonReader::default() };
        prop_assert_eq!(reader.read(&event.to_json()).unwrap().0, event);
    }

    #[test]
    fn any_text_is_an_event_or_an_error(text in "[{}\\[\\],:\"\\\\a.\\-0-9eu ]{0,40}") {
        if let Ok((event, _)) = read(&text) {
            prop_assert_eq!(read(&event.to_json()).unwrap().0, event);
        }
        if let Ok((event, _)) = read(&format!("{{\"a\":{text}}}")) {
            prop_assert_eq!(read(&event.to_json()).unwrap().0, event);
        }
    }
}
