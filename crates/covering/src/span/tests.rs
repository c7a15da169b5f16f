use super::*;
use crate::domain::{mixed_tests, number_tests, pattern_tests};
use enroute_filter::Comparison;

#[test]
fn a_test_that_covers_another_is_where_the_other_looks_for_it() {
    let long = "x".repeat(2 * MAX_STRING);
    let mut tests = [number_tests(), mixed_tests(), pattern_tests()].concat();
    for beginning in ["", "a common", "a common beginning", &long] {
        for string in ["", "a", "b", "\0", "é"].map(|end| format!("{beginning}{end}")) {
            let comparisons = [Comparison::Eq, Comparison::Ge, Comparison::Lt];
            tests.extend(comparisons.map(|comparison| Test::compare(comparison, &*string)));
            tests.push(Test::between(&*string, &*format!("{string}bc")));
            tests.push(Test::prefix(&string));
        }
    }
    for low in [-1e300, -70_000.0, -3.0, 0.0, 0.1, 17.0, 1e18] {
        tests.extend([0.0, 0.1, 5.0, 90_000.0, 1e30].map(|width| Test::between(low, low + width)));
    }
    tests.retain(|test| !test.is_never());
    let contains = |keys: Option<Keys>, key: Code| keys.is_some_and(|(first, last)| first <= key && key <= last);
    let (mut covering, mut in_a_cell) = (0, 0);
    for upper in &tests {
        for lower in tests.iter().filter(|lower| upper.covers(lower)) {
            let (outer, inner) = (Span::of(upper), Span::of(lower));
            let (outer_group, inner_group) = (outer.group, inner.group);
            assert!(outer.outline().may_contain(inner.outline()), "{upper:?} and {lower:?}");
            let cell = outer.outline().cell();
            assert!(cell.is_none() || cell == inner.outline().cell(), "{upper:?} and {lower:?}");
            in_a_cell += usize::from(cell.is_some() && outer_group.kind != Kind::Point);
            assert!(contains(inner.keys_of_covering(outer_group), outer.clone().key()), "{upper:?} and {lower:?}");
            assert!(contains(outer.keys_of_covered(inner_group), inner.key()), "{upper:?} and {lower:?}");
            covering += 1;
        }
    }
    assert!(covering > 1_000 && in_a_cell > 100, "{covering}, {in_a_cell}");
    let mut ordered: Vec<_> = tests.iter().map(Span::of).map(|span| (span.group, span.clone().key(), span)).collect();
    ordered.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    assert!(ordered.is_sorted_by_key(|(_, _, span)| span.outline().rank()));
}
