//! Sets of points of an ordered line, as sorted intervals: the one algebra behind numbers, times and strings.

use std::borrow::Borrow;
use std::cmp::Ordering;

/// A line on which every point but the last is followed by a next one.
pub(crate) trait Line: Ord + Clone {
    /// The least point.
    fn least() -> Self;
    /// The next point; `None` after the last.
    fn successor(&self) -> Option<Self>;
}

/// The points from `start` on, and before `end`; without an `end`, all that follow. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Interval<P> {
    pub(crate) start: P,
    pub(crate) end: Option<P>,
}

/// Intervals in ascending order that neither overlap nor touch: each set of points has exactly one such form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Intervals<P>(Vec<Interval<P>>);

/// Compares ends; no end lies beyond every other.
fn compare_ends<P: Ord>(a: Option<&P>, b: Option<&P>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.cmp(b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

impl<P: Line> Interval<P> {
    /// Whether the interval is a single point.
    pub(crate) fn is_point(&self) -> bool {
        self.end == self.start.successor()
    }

    /// Whether `point` lies beyond the interval.
    fn ends_before<Q: Ord + ?Sized>(&self, point: &Q) -> bool
    where
        P: Borrow<Q>,
    {
        self.end.as_ref().is_some_and(|end| end.borrow() <= point)
    }
}

impl<P: Line> Intervals<P> {
    /// No point.
    pub(crate) const fn none() -> Self {
        Intervals(Vec::new())
    }

    /// The whole line.
    pub(crate) fn all() -> Self {
        Intervals::from_start(P::least())
    }

    /// The points from `start` on.
    pub(crate) fn from_start(start: P) -> Self {
        Intervals(vec![Interval { start, end: None }])
    }

    /// The points from `start` on and before `end`.
    pub(crate) fn half_open(start: P, end: P) -> Self {
        if start < end { Intervals(vec![Interval { start, end: Some(end) }]) } else { Intervals::none() }
    }

    /// The points from `first` to `last`, both included.
    pub(crate) fn closed(first: P, last: &P) -> Self {
        match last.successor() {
            Some(end) => Intervals::half_open(first, end),
            None => Intervals::from_start(first),
        }
    }

    /// Single points, in any order.
    pub(crate) fn points(points: impl IntoIterator<Item = P>) -> Self {
        let intervals = points.into_iter().map(|start| Interval { end: start.successor(), start });
        Intervals::merged(intervals.collect())
    }

    /// The union of intervals in any order.
    pub(crate) fn merged(mut intervals: Vec<Interval<P>>) -> Self {
        intervals.sort_unstable_by(|a, b| a.start.cmp(&b.start));
        intervals.dedup_by(|next, last| {
            let joins = last.end.as_ref().is_none_or(|end| *end >= next.start);
            if joins && compare_ends(last.end.as_ref(), next.end.as_ref()) == Ordering::Less {
                last.end = next.end.take();
            }
            joins
        });
        Intervals(intervals)
    }

    /// Takes intervals as they are if they are in canonical form.
    pub(crate) fn from_canonical(intervals: Vec<Interval<P>>) -> Option<Self> {
        let not_empty = intervals.iter().all(|interval| !interval.ends_before(&interval.start));
        let apart = intervals.windows(2).all(|pair| pair[0].end.as_ref().is_some_and(|end| *end < pair[1].start));
        (not_empty && apart).then_some(Intervals(intervals))
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Interval<P>> {
        self.0.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Binary search.
    pub(crate) fn contains<Q: Ord + ?Sized>(&self, point: &Q) -> bool
    where
        P: Borrow<Q>,
    {
        let later = self.0.partition_point(|interval| interval.start.borrow() <= point);
        later > 0 && !self.0[later - 1].ends_before(point)
    }

    pub(crate) fn union<'a>(sets: impl Iterator<Item = &'a Self>) -> Self
    where
        P: 'a,
    {
        Intervals::merged(sets.flat_map(|set| &set.0).cloned().collect())
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let mut shared = Vec::new();
        self.sweep(other, |a, b| {
            let start = (&a.start).max(&b.start).clone();
            let shorter = compare_ends(a.end.as_ref(), b.end.as_ref()) == Ordering::Less;
            let end = if shorter { &a.end } else { &b.end };
            shared.push(Interval { start, end: end.clone() });
            true
        });
        Intervals(shared)
    }

    pub(crate) fn complement(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.0.len() + 1);
        let mut gap_start = Some(P::least());
        for interval in &self.0 {
            if let Some(start) = gap_start
                && start < interval.start
            {
                gaps.push(Interval { start, end: Some(interval.start.clone()) });
            }
            gap_start = interval.end.clone();
        }
        gaps.extend(gap_start.map(|start| Interval { start, end: None }));
        Intervals(gaps)
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.intersection(&other.complement())
    }

    /// Whether every point of `other` is one of these.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let mut mine = self.0.iter().peekable();
        other.0.iter().all(|theirs| {
            while mine.next_if(|mine| mine.ends_before(&theirs.start)).is_some() {}
            mine.peek().is_some_and(|mine| {
                mine.start <= theirs.start && compare_ends(mine.end.as_ref(), theirs.end.as_ref()) != Ordering::Less
            })
        })
    }

    /// Whether a point is in both.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let mut found = false;
        self.sweep(other, |_, _| {
            found = true;
            false
        });
        found
    }

    /// Walks both lists once and calls `on_pair` for each two intervals that share a point, until it returns false.
    fn sweep<'a>(&'a self, other: &'a Self, mut on_pair: impl FnMut(&'a Interval<P>, &'a Interval<P>) -> bool) {
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(a), Some(b)) = (mine.peek(), theirs.peek()) {
            let (a, b) = (*a, *b);
            if !a.ends_before(&b.start) && !b.ends_before(&a.start) && !on_pair(a, b) {
                return;
            }
            if compare_ends(a.end.as_ref(), b.end.as_ref()) == Ordering::Less {
                mine.next();
            } else {
                theirs.next();
            }
        }
    }
}

impl<P> IntoIterator for Intervals<P> {
    type Item = Interval<P>;
    type IntoIter = std::vec::IntoIter<Interval<P>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
