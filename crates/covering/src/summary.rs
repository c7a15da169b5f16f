//! What the predicate forests of a covering forest look like, for whoever watches a broker.

use crate::span::{Code, Span};
use enroute_filter::Test;
use std::cmp::Ordering;
use std::sync::Arc;

/// What the roots of a [`Forest`](crate::Forest) say of one attribute, as a forest of predicates ordered by covering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredicateSummary {
    /// The attribute.
    pub attribute: Arc<str>,
    /// How many roots speak of it.
    pub users: usize,
    /// What they say; `None` if that is too much to look through.
    pub shape: Option<PredicateShape>,
}

/// The predicates of one attribute, ordered by covering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredicateShape {
    /// How many different ones there are.
    pub predicates: usize,
    /// How many stand one below the other at most: `>= 1`, `>= 2`, `between 3 and 5`, `= 4` is four deep. Sets with gaps count
    /// as the interval that they lie in.
    pub depth: usize,
}

impl PredicateShape {
    /// Of one test for each root that speaks of the attribute.
    pub(crate) fn of(mut tests: Vec<&Test>) -> PredicateShape {
        tests.sort_unstable();
        tests.dedup();
        PredicateShape { predicates: tests.len(), depth: depth(&tests) }
    }
}

/// The length of the longest chain of different spans, each of which contains the next one.
fn depth(tests: &[&Test]) -> usize {
    let mut spans: Vec<Span> = tests.iter().map(|test| Span::of(test)).collect();
    spans.sort_unstable_by(Span::wider_first);
    spans.dedup_by(|next, last| next.wider_first(last) == Ordering::Equal);
    // In this order a span contains exactly those behind it, on its line, that end no later. So the chains are the sequences
    // of ends that never grow. By its length less one: the end, as late as can be, of a chain.
    let above = usize::from(spans.first().is_some_and(Span::is_mixed));
    let lines = spans[above..].chunk_by(|a, b| a.is_on_line_of(b));
    let deepest = lines.map(|line| {
        let mut ends: Vec<Code> = Vec::new();
        for (_, high) in line.iter().map(Span::ends) {
            let length = ends.partition_point(|end| *end >= high);
            match ends.get_mut(length) {
                Some(end) => *end = high,
                None => ends.push(high),
            }
        }
        ends.len()
    });
    above + deepest.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use enroute_filter::Comparison;

    fn shape(tests: &[Test]) -> (usize, usize) {
        let shape = PredicateShape::of(tests.iter().collect());
        (shape.predicates, shape.depth)
    }

    #[test]
    fn equal_predicates_count_once_and_nested_ones_are_deep() {
        let at_least = |least: i64| Test::compare(Comparison::Ge, least);
        let one = Test::compare(Comparison::Eq, 1);
        assert_eq!(shape(&[one.clone(), one.clone()]), (1, 1));
        assert_eq!(shape(&[at_least(3), at_least(2), at_least(3)]), (2, 2));
        let nested = [at_least(1), at_least(2), Test::between(3, 5), Test::compare(Comparison::Eq, 4)];
        assert_eq!(shape(&nested), (4, 4));
        let apart = [Test::between(1, 2), Test::between(3, 4), Test::compare(Comparison::Eq, "a"), Test::Absent];
        assert_eq!(shape(&apart), (4, 1));
        let below_any =
            [Test::Present, Test::between(1, 9), Test::between(2, 3), Test::between(3, 12), Test::prefix("a")];
        assert_eq!(shape(&below_any), (5, 3));
        assert_eq!(shape(&[]), (0, 0));
    }
}
