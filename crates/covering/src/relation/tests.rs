use super::*;
use crate::domain::{
    self, conjunction, events, mixed_points, mixed_tests, number_points, number_tests, pattern_tests, single,
};
use enroute_filter::{Class, Comparison, Constraint, Event, Limits, Test, ValueSet};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

static NUMBER_EVENTS: LazyLock<Vec<Event>> = LazyLock::new(|| events(&number_points(), 3));
static MIXED_EVENTS: LazyLock<Vec<Event>> = LazyLock::new(|| events(&mixed_points(), 2));

fn all_tests() -> Vec<Test> {
    [mixed_tests(), pattern_tests()].concat()
}

/// What the events show of two filters: whether some match both, f only, g only.
fn shown(events: &[Event], f: impl Fn(&Event) -> bool, g: impl Fn(&Event) -> bool) -> (bool, bool, bool) {
    events.iter().fold((false, false, false), |(both, f_only, g_only), event| {
        let (f, g) = (f(event), g(event));
        (both || f && g, f_only || f && !g, g_only || g && !f)
    })
}

fn filter_shown(events: &[Event], f: &Filter, g: &Filter) -> (bool, bool, bool) {
    shown(events, |event| f.matches(event), |event| g.matches(event))
}

/// The relation where the events show everything.
fn true_kind((both, f_only, g_only): (bool, bool, bool)) -> Kind {
    match (f_only, g_only, both) {
        (false, false, _) => Kind::Equal,
        (true, false, _) => Kind::Covers,
        (false, true, _) => Kind::Covered,
        (true, true, true) => Kind::Overlaps,
        (true, true, false) => Kind::Disjoint,
    }
}

#[test]
fn covers_of_tests_is_a_preorder() {
    let tests: Vec<Conjunction> = all_tests().into_iter().map(|test| single("a", test)).collect();
    let covered: Vec<Vec<usize>> =
        tests.iter().map(|f| (0..tests.len()).filter(|&g| covers(f, &tests[g])).collect()).collect();
    let mut chains = 0;
    for f in 0..tests.len() {
        assert!(covered[f].contains(&f), "{:?}", tests[f]);
        for &g in &covered[f] {
            for h in &covered[g] {
                assert!(covered[f].contains(h), "f {:?}\ng {:?}\nh {:?}", tests[f], tests[g], tests[*h]);
                chains += usize::from(f != g && g != *h);
            }
        }
    }
    assert!(chains > 10_000, "{chains}");
}

#[test]
fn tests_are_decided_as_the_points_show() {
    let (tests, events) = (all_tests(), events(&mixed_points(), 1));
    for f in tests.iter().map(|test| single("a", test.clone())) {
        for g in tests.iter().map(|test| single("a", test.clone())) {
            let (both, _, g_only) = shown(&events, |event| f.matches(event), |event| g.matches(event));
            let exact = !f.has_patterns() && !g.has_patterns();
            assert!(!covers(&f, &g) || !g_only, "{f:?} does not cover {g:?}");
            assert!(overlaps(&f, &g) || !both, "{f:?} overlaps {g:?}");
            assert!(!exact || covers(&f, &g) != g_only && overlaps(&f, &g) == both, "{f:?} and {g:?}");
            assert_eq!(overlaps(&f, &g), overlaps(&g, &f), "{f:?} and {g:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn covers_is_a_preorder(
        f in conjunction(number_tests(), 2), g in conjunction(number_tests(), 3), h in conjunction(number_tests(), 3),
    ) {
        prop_assert!(covers(&f, &f));
        let below_f = f.and(&g);
        let below_both = below_f.as_ref().and_then(|below| below.and(&h));
        let chain: Vec<&Conjunction> = [Some(&f), below_f.as_ref(), below_both.as_ref()].into_iter().flatten().collect();
        for (index, upper) in chain.iter().enumerate() {
            for lower in &chain[index..] {
                prop_assert!(covers(upper, lower));
            }
        }
        if covers(&f, &g) && covers(&g, &h) {
            prop_assert!(covers(&f, &h));
        }
    }

    #[test]
    fn conjunctions_of_numbers_are_decided_exactly(
        f in conjunction(number_tests(), 3), g in conjunction(number_tests(), 3),
    ) {
        let (both, f_only, g_only) = shown(&NUMBER_EVENTS, |event| f.matches(event), |event| g.matches(event));
        prop_assert_eq!(covers(&f, &g), !g_only);
        prop_assert_eq!(covers(&g, &f), !f_only);
        prop_assert_eq!(overlaps(&f, &g), both);
    }

    #[test]
    fn conjunctions_of_all_classes_are_decided_exactly(
        f in conjunction(mixed_tests(), 2), g in conjunction(mixed_tests(), 2),
    ) {
        let (both, f_only, g_only) = shown(&MIXED_EVENTS, |event| f.matches(event), |event| g.matches(event));
        prop_assert_eq!(covers(&f, &g), !g_only);
        prop_assert_eq!(covers(&g, &f), !f_only);
        prop_assert_eq!(overlaps(&f, &g), both);
    }

    #[test]
    fn filters_of_numbers_are_decided_exactly(
        f in domain::filter(number_tests(), 3), g in domain::filter(number_tests(), 3),
    ) {
        let shown = filter_shown(&NUMBER_EVENTS, &f, &g);
        prop_assert_eq!(relation(&f, &g), Relation { kind: true_kind(shown), exact: true });
        prop_assert_eq!(filter_covers(&f, &g), !shown.2);
        prop_assert_eq!(filter_overlaps(&f, &g), shown.0);
    }

    #[test]
    fn filters_of_all_classes_are_decided_exactly(
        f in domain::filter(mixed_tests(), 2), g in domain::filter(mixed_tests(), 2),
    ) {
        let kind = true_kind(filter_shown(&MIXED_EVENTS, &f, &g));
        prop_assert_eq!(relation(&f, &g), Relation { kind, exact: true });
    }

    #[test]
    fn what_is_said_of_patterns_is_true(
        f in domain::filter(all_tests(), 2), g in domain::filter(all_tests(), 2),
    ) {
        let (both, f_only, g_only) = filter_shown(&MIXED_EVENTS, &f, &g);
        prop_assert!(!filter_covers(&f, &g) || !g_only);
        prop_assert!(filter_overlaps(&f, &g) || !both);
        let said = relation(&f, &g);
        match said.kind {
            Kind::Equal => prop_assert!(!f_only && !g_only),
            Kind::Covers => prop_assert!(!g_only),
            Kind::Covered => prop_assert!(!f_only),
            Kind::Disjoint => prop_assert!(!both),
            Kind::Overlaps => {}
        }
        prop_assert!(said.exact, "{} against {}", f, g);
        let mirrored = relation(&g, &f);
        let expected = match said.kind {
            Kind::Covers => Kind::Covered,
            Kind::Covered => Kind::Covers,
            same @ (Kind::Equal | Kind::Overlaps | Kind::Disjoint) => same,
        };
        prop_assert_eq!(mirrored, Relation { kind: expected, exact: true });
    }

    #[test]
    fn what_was_one_filter_is_covered_by_its_parts(
        f in domain::filter(number_tests(), 3), g in domain::filter(number_tests(), 3),
    ) {
        let limits = Limits::default();
        let either = f.or(&g, &limits).expect("is small");
        let both = f.and(&g, &limits).expect("is small");
        prop_assert!(filter_covers(&either, &f) && filter_covers(&either, &g));
        prop_assert!(filter_covers(&f, &both) && filter_covers(&g, &both));
        prop_assert_eq!(filter_overlaps(&f, &g), !both.conjunctions().is_empty());
    }
}

/// Seven holes for eight pigeons: somebody sits nowhere, or two sit in one hole. Always so, but known to be hard to find out
/// by cases.
#[test]
fn a_hopeless_search_ends() {
    let sits = |pigeon: usize, hole: usize, yes: bool| {
        Constraint::compare(format!("pigeon {pigeon} in {hole}"), Comparison::Eq, yes)
    };
    let nowhere = (0..8).map(|pigeon| (0..7).map(|hole| sits(pigeon, hole, false)).collect::<Vec<_>>());
    let pairs = (0..8).flat_map(|one| (0..one).map(move |other| (one, other)));
    let together =
        pairs.flat_map(|(one, other)| (0..7).map(move |hole| vec![sits(one, hole, true), sits(other, hole, true)]));
    let conjunctions = nowhere.chain(together).filter_map(Conjunction::new);
    let f = Filter::any_of(conjunctions, &Limits::default()).expect("within the limits");

    let bools = (0..8).flat_map(|pigeon| (0..7).map(move |hole| (pigeon, hole)));
    let is_bool = |(pigeon, hole)| {
        let attribute = Arc::clone(sits(pigeon, hole, true).attribute());
        Constraint::new(attribute, Test::In(ValueSet::all_of(Class::Bool)))
    };
    let g = Filter::from(Conjunction::new(bools.map(is_bool)).expect("satisfiable"));
    assert!(!filter_covers(&f, &g));
    assert_eq!(relation(&f, &g), Relation { kind: Kind::Overlaps, exact: false });
}
