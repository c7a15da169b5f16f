use super::*;
use crate::samples::{self, Spelling, candidates};
use crate::{Comparison, Constraint, Value};
use proptest::prelude::*;
use proptest::sample::select;

const NAMES: [&str; 3] = ["a", "b", "c"];

fn is(attribute: &str, comparison: Comparison, value: i64) -> Filter {
    Conjunction::new([Constraint::compare(attribute, comparison, value)]).unwrap().into()
}

fn equals(attribute: &str, value: i64) -> Filter {
    is(attribute, Comparison::Eq, value)
}

fn and(a: &Filter, b: &Filter) -> Filter {
    a.and(b, &Limits::default()).unwrap()
}

fn or(a: &Filter, b: &Filter) -> Filter {
    a.or(b, &Limits::default()).unwrap()
}

/// A filter as written.
#[derive(Clone, Debug)]
enum Formula {
    Leaf(&'static str, Spelling),
    And(Box<Formula>, Box<Formula>),
    Or(Box<Formula>, Box<Formula>),
}

impl Formula {
    fn filter(&self) -> Filter {
        match self {
            Formula::Leaf(name, spelling) => {
                let test = spelling.test().map(|test| Constraint::new(*name, test));
                test.and_then(|constraint| Conjunction::new([constraint])).map_or_else(Filter::never, Filter::from)
            }
            Formula::And(a, b) => and(&a.filter(), &b.filter()),
            Formula::Or(a, b) => or(&a.filter(), &b.filter()),
        }
    }

    fn holds(&self, event: &Event) -> bool {
        match self {
            Formula::Leaf(name, spelling) => spelling.holds(event.get(name)),
            Formula::And(a, b) => a.holds(event) && b.holds(event),
            Formula::Or(a, b) => a.holds(event) || b.holds(event),
        }
    }
}

fn formula() -> impl Strategy<Value = Formula> {
    let leaf =
        (select(&NAMES[..]), samples::test(true)).prop_map(|(name, (spelling, _))| Formula::Leaf(name, spelling));
    leaf.prop_recursive(4, 12, 2, |inner| {
        (inner.clone(), inner, any::<bool>()).prop_map(|(a, b, both)| {
            let (a, b) = (Box::new(a), Box::new(b));
            if both { Formula::And(a, b) } else { Formula::Or(a, b) }
        })
    })
}

fn event() -> impl Strategy<Value = Event> {
    let values = proptest::collection::vec(proptest::option::weighted(0.8, select(candidates())), NAMES.len());
    values.prop_map(|values| {
        let attributes = NAMES.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?)));
        attributes.fold(Event::builder(), |builder, (name, value)| builder.attribute(name, value)).build().unwrap()
    })
}

/// Constraints on up to two attributes, without patterns.
fn conjunction() -> impl Strategy<Value = Conjunction> {
    let test = || proptest::option::of(samples::test(false));
    (test(), test()).prop_map(|(a, b)| {
        let constraint = |name: &str, test: Option<(Spelling, Test)>| test.map(|(_, test)| Constraint::new(name, test));
        Conjunction::new(constraint("a", a).into_iter().chain(constraint("b", b))).unwrap()
    })
}

/// Whether it matches, for all combinations of what two attributes may be.
fn outcomes(conjunction: &Conjunction) -> Vec<bool> {
    let states: Vec<_> = candidates().into_iter().map(Some).chain([None]).collect();
    let passes = |name: &str| -> Vec<bool> {
        let test = conjunction.test(name);
        let state = |state: &Option<Value>| test.is_none_or(|test| test.matches(state.as_ref().map(Value::as_ref)));
        states.iter().map(state).collect()
    };
    let (a, b) = (passes("a"), passes("b"));
    a.iter().flat_map(|a| b.iter().map(move |b| *a && *b)).collect()
}

proptest! {
    #![proptest_config(samples::cases(4_000))]

    #[test]
    fn filters_match_what_their_formula_says(formula in formula(), events in proptest::collection::vec(event(), 12)) {
        let filter = formula.filter();
        for event in events {
            prop_assert_eq!(filter.matches(&event), formula.holds(&event), "{:?} on {:?}", &filter, event);
        }
        let conjunctions = filter.conjunctions().to_vec();
        prop_assert_eq!(Filter::from_canonical(conjunctions), Some(filter.clone()));
        prop_assert_eq!(or(&filter, &filter), filter);
    }

    #[test]
    fn order_of_writing_does_not_matter(a in formula(), b in formula()) {
        let (a, b) = (a.filter(), b.filter());
        prop_assert_eq!(and(&a, &b), and(&b, &a));
        prop_assert_eq!(or(&a, &b), or(&b, &a));
        prop_assert_eq!(and(&a, &Filter::always()), a.clone());
        prop_assert_eq!(or(&a, &Filter::never()), a.clone());
        prop_assert_eq!(and(&a, &Filter::never()), Filter::never());
        prop_assert_eq!(or(&a, &Filter::always()), Filter::always());
    }

    #[test]
    fn required_attributes_are_in_every_match(formula in formula(), event in event()) {
        let filter = formula.filter();
        if filter.matches(&event) {
            for attribute in filter.required_attributes() {
                prop_assert!(event.get(&attribute).is_some());
            }
        }
    }
}

proptest! {
    #![proptest_config(samples::cases(3_000))]

    #[test]
    fn conjunctions_without_patterns_are_compared_exactly(f in conjunction(), g in conjunction()) {
        let (of_f, of_g) = (outcomes(&f), outcomes(&g));
        let all = |rule: fn(bool, bool) -> bool| of_f.iter().zip(&of_g).all(|(f, g)| rule(*f, *g));
        prop_assert_eq!(f.covers(&g), all(|f, g| f || !g));
        prop_assert_eq!(f.overlaps(&g), !all(|f, g| !(f && g)));
        prop_assert_eq!(f == g, all(|f, g| f == g));
        prop_assert_eq!(f.and(&g).is_some(), f.overlaps(&g));
        if let Some(both) = f.and(&g) {
            prop_assert!(f.covers(&both) && g.covers(&both));
        }
    }
}

#[test]
fn conjunctions_absorb_and_merge() {
    let (one, two) = (equals("a", 1), equals("a", 2));
    let x = equals("x", 0);
    let both = or(&and(&one, &x), &and(&two, &x));
    assert_eq!(both.conjunctions().len(), 1);
    assert_eq!(both, and(&x, &or(&two, &one)));
    assert_eq!(or(&one, &and(&one, &x)), one);
    assert_eq!(and(&one, &two), Filter::never());
    let absent = Filter::from(Conjunction::new([Constraint::new("a", Test::Absent)]).unwrap());
    let present = Filter::from(Conjunction::new([Constraint::new("a", Test::Present)]).unwrap());
    assert_eq!(or(&absent, &present), Filter::always());
    assert_eq!(or(&one, &present), present);
    assert_eq!(or(&absent, &one).conjunctions().len(), 2);
    let corners = [(1, 1), (1, 2), (2, 1), (2, 2)].map(|(a, x)| and(&equals("a", a), &equals("x", x)));
    let square = corners.iter().fold(Filter::never(), |filter, corner| or(&filter, corner));
    assert_eq!(square, and(&or(&one, &two), &or(&equals("x", 1), &equals("x", 2))));
}

#[test]
fn several_constraints_on_one_attribute_become_one() {
    let from = |constraints: Vec<Constraint>| Conjunction::new(constraints);
    let at_least = |value: i64| Constraint::compare("a", Comparison::Ge, value);
    let at_most = |value: i64| Constraint::compare("a", Comparison::Le, value);
    assert_eq!(from(vec![at_least(3), at_most(3)]), from(vec![Constraint::compare("a", Comparison::Eq, 3)]));
    assert_eq!(from(vec![at_least(4), at_most(3)]), None);
    assert_eq!(from(vec![Constraint::compare("a", Comparison::Eq, f64::NAN)]), None);
    assert_eq!(from(vec![at_least(4), Constraint::new("a", Test::Absent)]), None);
    assert_eq!(from(vec![]), Some(Conjunction::always()));
}

#[test]
fn required_attributes() {
    let absent = Filter::from(Conjunction::new([Constraint::new("c", Test::Absent)]).unwrap());
    let filter = or(&and(&equals("a", 1), &equals("b", 1)), &and(&equals("a", 2), &and(&equals("d", 2), &absent)));
    assert_eq!(filter.required_attributes(), [Arc::from("a")]);
    assert!(Filter::never().required_attributes().is_empty());
    assert!(Filter::always().required_attributes().is_empty());
}

/// `(a0 = 1 OR b0 = 1) AND (a1 = 1 OR b1 = 1) AND …`, which has 2^n conjunctions.
fn product(factors: usize) -> Result<Filter, LimitExceeded> {
    (0..factors).try_fold(Filter::always(), |filter, index| {
        let (a, b) = (equals(&format!("a{index}"), 1), equals(&format!("b{index}"), 1));
        filter.and(&or(&a, &b), &Limits::default())
    })
}

#[test]
fn products_stop_at_the_limit() {
    assert_eq!(product(8).unwrap().conjunctions().len(), 256);
    let excess = product(9).unwrap_err();
    assert_eq!((excess.limit, excess.maximum), (Limit::Conjunctions, 256));
    let seven = product(7).unwrap();
    let excess = seven.and(&product(8).unwrap(), &Limits::default().lowered(Limit::Conjunctions, 100)).unwrap_err();
    assert_eq!((excess.limit, excess.maximum), (Limit::Conjunctions, 100));
    let squared = product(8).unwrap();
    assert_eq!(and(&squared, &squared), squared);
}

#[test]
fn patterns_stop_at_the_limit() {
    let ends = |from: u32, count: u32| {
        (from..from + count).fold(Filter::never(), |filter, index| {
            let test = Test::like(&format!("%{index}_%"), None).unwrap();
            or(&filter, &Conjunction::new([Constraint::new("a", test)]).unwrap().into())
        })
    };
    assert_eq!(ends(1000, 250).conjunctions().len(), 1);
    let (some, others) = (ends(10, 16), ends(30, 17));
    let limits = Limits::default();
    let excess = some.and(&others, &limits).and_then(|both| both.and(&ends(50, 20), &limits)).unwrap_err();
    assert_eq!((excess.limit, excess.maximum), (Limit::Patterns, 512));
}

#[test]
fn bytes_stop_at_the_limit() {
    let long = |letter: &str| {
        let test = Test::compare(Comparison::Eq, &*letter.repeat(40_000));
        Filter::from(Conjunction::new([Constraint::new(letter, test)]).unwrap())
    };
    for result in [long("a").or(&long("b"), &Limits::default()), long("a").and(&long("b"), &Limits::default())] {
        let excess = result.unwrap_err();
        assert_eq!((excess.limit, excess.maximum), (Limit::FilterBytes, 65_536));
    }
    assert!(long("a").or(&long("a"), &Limits::default()).is_ok());
}

#[test]
fn conjunctions_that_differ_in_one_constraint_have_a_union() {
    let conjunction = |text: &str| {
        let filter = Filter::parse(text).unwrap();
        assert_eq!(filter.conjunctions().len(), 1, "{text}");
        filter.conjunctions()[0].clone()
    };
    for (parts, expected) in [
        (&["a = 1 AND b = 1"][..], Some("a = 1 AND b = 1")),
        (&["a = 1 AND b = 1", "a = 1 AND b = 1"], Some("a = 1 AND b = 1")),
        (&["a = 1 AND b = 1", "a = 3 AND b = 1", "a = 'x' AND b = 1"], Some("a IN (1, 3, 'x') AND b = 1")),
        (&["a < 1 AND b = 1", "a >= 1 AND b = 1", "a < 0 AND b = 1"], Some("(a < 0 OR a >= 0) AND b = 1")),
        (&["a = 1 AND b = 1", "a = 1 AND b = 1", "a = 1 AND b = 2"], Some("a = 1 AND b IN (1, 2)")),
        (&["a = 1", "a IS NOT NULL", "a IS NULL"], Some("TRUE")),
        (&["a = 1", "a IS NULL"], None),
        (&["a = 1 AND b = 1", "a = 2 AND b = 2"], None),
        (&["a = 1 AND b = 1", "a = 2 AND b = 1", "a = 1 AND b = 2"], None),
        (&["a = 1", "a = 1 AND b = 1"], None),
        (&["a = 1 AND b = 1", "a = 1"], None),
        (&["a = 1 AND b = 1", "a = 2", "a = 3 AND b = 1"], None),
        (&["a = 1 AND b = 1", "a = 1 AND c = 1"], None),
        (&[], None),
    ] {
        let conjunctions: Vec<Conjunction> = parts.iter().map(|text| conjunction(text)).collect();
        let union = Conjunction::union(&conjunctions.iter().collect::<Vec<_>>());
        assert_eq!(union, expected.map(conjunction), "{parts:?}");
    }
}
