//! Random filters and events, on small domains so that boundaries meet.

use enroute_filter::{
    Comparison, Conjunction, Constraint, Event, Expression, Filter, Operator, Test, Timestamp, Value,
};
use proptest::prelude::*;
use proptest::sample::select;

const ATTRIBUTES: [&str; 3] = ["a", "b", "c d"];
const TWO_TO_53: i64 = 1 << 53;

fn numbers() -> Vec<Value> {
    let ints = [0, 1, 2, TWO_TO_53, TWO_TO_53 + 1, i64::MAX, i64::MIN].map(Value::Int);
    let floats = [
        -0.0,
        0.0_f64.next_up(),
        1.0_f64.next_down(),
        1.0,
        1.0_f64.next_up(),
        1.5,
        TWO_TO_53 as f64,
        i64::MAX as f64,
        f64::MAX,
        f64::MIN,
    ];
    ints.into_iter().chain(floats.map(Value::Float)).collect()
}

fn strings() -> Vec<Value> {
    ["", "a", "a\0", "ab", "aab", "abb", "b", "ba", "c'", "%", "ü", "\u{10FFFF}"].map(Value::from).into()
}

fn times() -> Vec<Value> {
    [i64::MIN, -1, 0, 1, 2_000_000_000].map(|ns| Value::Time(Timestamp(ns))).into()
}

/// What the language has a literal for.
fn literal() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => select(numbers()),
        4 => select(strings()),
        1 => select(times()),
        1 => any::<bool>().prop_map(Value::Bool),
    ]
}

fn ordered_literal() -> impl Strategy<Value = Value> {
    literal().prop_filter("booleans have no order", |value| !matches!(value, Value::Bool(_)))
}

/// What an event may hold as well: values beside and beyond all literals.
fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        20 => literal(),
        1 => select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]).prop_map(Value::Float),
        1 => any::<i64>().prop_map(Value::Int),
        1 => any::<f64>().prop_map(Value::Float),
        1 => "[ab%_]{0,4}".prop_map(Value::String),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let absent_or = || proptest::option::weighted(0.8, value());
    (absent_or(), absent_or(), absent_or()).prop_map(|(a, b, c)| {
        let values = ATTRIBUTES.into_iter().zip([a, b, c]);
        let builder = values.fold(Event::builder(), |builder, (name, value)| match value {
            Some(value) => builder.attribute(name, value),
            None => builder,
        });
        builder.build().unwrap()
    })
}

fn comparison() -> impl Strategy<Value = Comparison> {
    use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
    select(vec![Eq, Ne, Lt, Le, Gt, Ge])
}

/// Comparisons, IN and BETWEEN: all that is sets of intervals.
fn interval_operator() -> impl Strategy<Value = Operator> {
    let compare =
        (comparison(), ordered_literal()).prop_map(|(comparison, value)| Operator::Compare(comparison, value));
    let equals = literal().prop_map(|value| Operator::Compare(Comparison::Eq, value));
    let one_of = proptest::collection::vec(literal(), 1..4).prop_map(Operator::In);
    let between = (ordered_literal(), ordered_literal()).prop_map(|(low, high)| Operator::Between(low, high));
    prop_oneof![4 => compare, 1 => equals, 1 => one_of, 2 => between]
}

fn operator() -> impl Strategy<Value = Operator> {
    let text = || "[ab]{0,2}";
    let like = ("[ab%_]{0,4}", any::<bool>()).prop_map(|(pattern, escaped)| Operator::Like {
        pattern: if escaped { pattern.replace('_', "!_") } else { pattern },
        escape: escaped.then_some('!'),
    });
    prop_oneof![
        8 => interval_operator(),
        1 => Just(Operator::IsNull),
        1 => text().prop_map(Operator::Prefix),
        1 => text().prop_map(Operator::Suffix),
        1 => text().prop_map(Operator::Contains),
        3 => like,
    ]
}

fn expression_over(
    attributes: Vec<&'static str>,
    operator: BoxedStrategy<Operator>,
) -> impl Strategy<Value = Expression> {
    let constraint = (select(attributes), operator)
        .prop_map(|(attribute, operator)| Expression::Constraint { attribute: attribute.to_owned(), operator });
    let leaf = prop_oneof![20 => constraint, 1 => any::<bool>().prop_map(Expression::Constant)];
    leaf.prop_recursive(4, 12, 3, |inner| {
        let operands = || proptest::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            operands().prop_map(Expression::And),
            operands().prop_map(Expression::Or),
            inner.clone().prop_map(|operand| Expression::Not(Box::new(operand))),
        ]
    })
}

fn expression() -> impl Strategy<Value = Expression> {
    expression_over(ATTRIBUTES.into(), operator().boxed())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// 500,000 pairs of a filter and an event.
    #[test]
    fn the_canonical_form_is_true_where_the_tree_is(
        expression in expression(),
        events in proptest::collection::vec(event(), 50),
    ) {
        let text = expression.to_string();
        let filter = Filter::parse(&text).unwrap();
        let parsed = Expression::parse(&text).unwrap();
        for event in events {
            let truth = expression.evaluate(&event);
            prop_assert_eq!(parsed.evaluate(&event), truth, "{} as read back on {:?}", text, event);
            prop_assert_eq!(filter.matches(&event), truth == Some(true), "{} as {} on {:?}", text, filter, event);
        }
    }

    #[test]
    fn canonical_text_reads_back_as_the_same_form(expression in expression()) {
        let filter = Filter::parse(&expression.to_string()).unwrap();
        let text = filter.to_string();
        prop_assert_eq!(Filter::parse(&text), Ok(filter.clone()), "{}", text);
        for conjunction in filter.conjunctions() {
            prop_assert_eq!(Filter::parse(&conjunction.to_string()), Ok(Filter::from(conjunction.clone())));
            for constraint in conjunction.constraints() {
                let alone = Conjunction::new([constraint.clone()]).unwrap();
                prop_assert_eq!(Filter::parse(&constraint.to_string()), Ok(Filter::from(alone)));
            }
        }
    }
}

/// Found by chance: 'a' ends an interval and is in the pattern's complement too, beside which it stands with another class or alone.
#[test]
fn the_string_at_the_end_of_an_interval_stays_with_it() {
    let text = "NOT (b BETWEEN 'a\0' AND TIMESTAMP '2013-01-01T00:00:00Z' AND b LIKE 'a_')";
    let filter = Filter::parse(text).unwrap();
    assert_eq!(Filter::parse(&filter.to_string()), Ok(filter));
}

/// Values that tell any two sets apart whose boundaries are 0, 1, 'a' and 'b'.
fn candidates() -> Vec<Event> {
    let floats =
        [f64::NEG_INFINITY, -1.0, 0.0_f64.next_down(), 0.0_f64.next_up(), 0.5, 1.0_f64.next_down(), 1.0_f64.next_up()];
    let numbers = floats.into_iter().chain([2.0, f64::INFINITY, f64::NAN]).map(Value::Float);
    let boundaries = [Value::Int(0), Value::Int(1)];
    let strings = ["", "A", "a", "a\0", "aa", "b", "b\0", "c"].map(Value::from);
    let others = [Value::Bool(true), Value::Bool(false), Value::Time(Timestamp(0))];
    let values = numbers.chain(boundaries).chain(strings).chain(others);
    let mut events: Vec<_> = values.map(|value| Event::builder().attribute("a", value).build().unwrap()).collect();
    events.push(Event::builder().build().unwrap());
    events
}

fn one_attribute() -> impl Strategy<Value = Expression> {
    let literal = || select(vec![Value::Int(0), Value::Int(1), Value::from("a"), Value::from("b")]);
    let compare = (comparison(), literal()).prop_map(|(comparison, value)| Operator::Compare(comparison, value));
    let bools = any::<bool>().prop_map(|value| Operator::Compare(Comparison::Eq, Value::Bool(value)));
    let one_of = proptest::collection::vec(literal(), 1..4).prop_map(Operator::In);
    let between = (literal(), literal()).prop_map(|(low, high)| Operator::Between(low, high));
    let operator = prop_oneof![8 => compare, 1 => bools, 2 => one_of, 2 => between, 1 => Just(Operator::IsNull)];
    expression_over(vec!["a"], operator.boxed())
}

/// Writes the same in other words.
fn respelled(expression: &Expression) -> Expression {
    let constraint = |attribute: &String, operator| Expression::Constraint { attribute: attribute.clone(), operator };
    let compare =
        |attribute, comparison, value: &Value| constraint(attribute, Operator::Compare(comparison, value.clone()));
    let not = |operand| Expression::Not(Box::new(operand));
    let each = |operands: &[Expression]| operands.iter().rev().map(respelled).collect::<Vec<_>>();
    match expression {
        Expression::Constant(value) => not(Expression::Constant(!value)),
        Expression::Not(operand) => not(respelled(operand)),
        Expression::And(operands) => not(Expression::Or(each(operands).into_iter().map(not).collect())),
        Expression::Or(operands) => not(Expression::And(each(operands).into_iter().map(not).collect())),
        Expression::Constraint { attribute, operator } => match operator {
            Operator::Compare(comparison, value) => not(compare(attribute, comparison.negated(), value)),
            Operator::In(values) => {
                let mut operands: Vec<_> =
                    values.iter().rev().map(|value| compare(attribute, Comparison::Eq, value)).collect();
                operands.push(Expression::Constant(false));
                Expression::Or(operands)
            }
            Operator::Between(low, high) => {
                Expression::And(vec![compare(attribute, Comparison::Le, high), compare(attribute, Comparison::Ge, low)])
            }
            operator => constraint(attribute, operator.clone()),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn other_words_give_the_same_form(expression in one_attribute()) {
        let other = respelled(&expression);
        prop_assert_eq!(Filter::parse(&other.to_string()), Filter::parse(&expression.to_string()));
    }

    #[test]
    fn one_attribute_forms_are_equal_exactly_if_they_match_the_same(left in one_attribute(), right in one_attribute()) {
        let truth = |expression: &Expression| {
            candidates().iter().map(|event| expression.evaluate(event) == Some(true)).collect::<Vec<_>>()
        };
        let form = |expression: &Expression| Filter::parse(&expression.to_string()).unwrap();
        prop_assert_eq!(truth(&left) == truth(&right), form(&left) == form(&right), "{} and {}", left, right);
    }

    #[test]
    fn any_text_is_a_filter_or_an_error_within_it(text in "([ab]|[=<>!]|[-+.0-9]|['\"`(),%_]|and|or|not|in|is|null|like|between| |ü){0,24}") {
        match Filter::parse(&text) {
            Ok(filter) => prop_assert_eq!(Filter::parse(&filter.to_string()), Ok(filter)),
            Err(error) => {
                prop_assert!(text.get(error.span.clone()).is_some(), "{}: {}", text, error);
                prop_assert_eq!(error.render(&text).lines().count(), 5);
            }
        }
    }
}

/// Forms that only the API can make have a text, too.
#[test]
fn infinities_can_be_written() {
    use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
    for float in [f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, f64::MIN_POSITIVE] {
        for comparison in [Eq, Ne, Lt, Le, Gt, Ge] {
            let constraint = Constraint::compare("x", comparison, float);
            let filter = Conjunction::new([constraint]).map_or_else(Filter::never, Filter::from);
            assert_eq!(Filter::parse(&filter.to_string()).as_ref(), Ok(&filter), "{comparison:?} {float}: {filter}");
        }
    }
    assert_eq!(Constraint::new("x", Test::one_of([])).to_string(), "FALSE");
}

/// A matcher that backtracks over every `%` would need more steps than there are atoms.
#[test]
fn like_does_not_backtrack_exponentially() {
    let pattern = format!("{}%b", "%a".repeat(100));
    let (filter, expression) =
        (Filter::parse(&format!("x like '{pattern}'")), Expression::parse(&format!("x like '{pattern}'")));
    for (string, matches) in
        [("a".repeat(5_000), false), ("a".repeat(5_000) + "b", true), ("a".repeat(99) + "b", false)]
    {
        let event = Event::builder().attribute("x", string).build().unwrap();
        assert_eq!(filter.as_ref().unwrap().matches(&event), matches);
        assert_eq!(expression.as_ref().unwrap().evaluate(&event), Some(matches));
    }
}
