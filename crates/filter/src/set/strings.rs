//! Sets of strings: intervals, and patterns where those do not suffice.

use super::{Interval, Intervals, Line};
use crate::Pattern;
use crate::pattern::Like;

/// A set of strings: intervals in the order of code points, and terms that need patterns to say.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringSet {
    pub(crate) intervals: Intervals<Box<str>>,
    /// Sorted; each pair of pattern lists occurs once.
    pub(crate) terms: Vec<StringTerm>,
}

/// The strings within some intervals that fit all of some patterns and none of some others.
///
/// At least one pattern is named. The intervals are no single points (which are decided at once), and lie within what the
/// literal prefixes of the patterns allow.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StringTerm {
    pub(crate) all_of: Vec<Pattern>,
    pub(crate) none_of: Vec<Pattern>,
    pub(crate) within: Intervals<Box<str>>,
}

impl Line for Box<str> {
    fn least() -> Box<str> {
        Box::from("")
    }
    fn successor(&self) -> Option<Box<str>> {
        Some(format!("{self}\0").into())
    }
}

impl Interval<Box<str>> {
    /// Whether it is all strings that start with its first.
    pub(crate) fn is_prefix(&self) -> bool {
        prefix_interval(&self.start).iter().eq([self])
    }
}

/// The strings that start with `prefix`.
pub(crate) fn prefix_interval(prefix: &str) -> Intervals<Box<str>> {
    let mut characters: Vec<char> = prefix.chars().collect();
    while let Some(last) = characters.pop() {
        // Steps over the surrogates; after the last character of all comes what follows the one before it.
        if let Some(next) = (last..=char::MAX).nth(1) {
            characters.push(next);
            return Intervals::half_open(prefix.into(), characters.into_iter().collect::<String>().into());
        }
    }
    Intervals::from_start(prefix.into())
}

impl From<Intervals<Box<str>>> for StringSet {
    fn from(intervals: Intervals<Box<str>>) -> StringSet {
        StringSet { intervals, terms: Vec::new() }
    }
}

impl From<Like> for StringSet {
    fn from(like: Like) -> StringSet {
        match like {
            Like::Exactly(string) => Intervals::points([string.into()]).into(),
            Like::Prefix(prefix) => prefix_interval(&prefix).into(),
            Like::LongerPrefix(prefix) => {
                prefix_interval(&prefix).difference(&Intervals::points([prefix.into()])).into()
            }
            Like::Pattern(pattern) => {
                let term = StringTerm { all_of: vec![pattern], none_of: Vec::new(), within: Intervals::all() };
                StringSet::normalised(Intervals::none(), vec![term])
            }
        }
    }
}

impl StringTerm {
    /// The intervals it lies within, ascending: first string, and the first one behind; without that, all that follow.
    pub fn within(&self) -> impl ExactSizeIterator<Item = (&str, Option<&str>)> {
        self.within.iter().map(|interval| (&*interval.start, interval.end.as_deref()))
    }

    /// The patterns that all have to fit, sorted.
    pub fn all_of(&self) -> &[Pattern] {
        &self.all_of
    }

    /// The patterns none of which may fit, sorted.
    pub fn none_of(&self) -> &[Pattern] {
        &self.none_of
    }

    fn contains(&self, string: &str) -> bool {
        self.within.contains(string) && self.fits_patterns(string)
    }

    fn fits_patterns(&self, string: &str) -> bool {
        self.all_of.iter().all(|pattern| pattern.matches(string))
            && !self.none_of.iter().any(|pattern| pattern.matches(string))
    }

    /// Takes in the intervals of a term with the same patterns; says whether it is one.
    fn join(&mut self, other: &StringTerm) -> bool {
        let same_patterns = self.all_of == other.all_of && self.none_of == other.none_of;
        if same_patterns {
            self.within = Intervals::union([&self.within, &other.within].into_iter());
        }
        same_patterns
    }

    fn intersection(&self, other: &StringTerm) -> StringTerm {
        StringTerm {
            all_of: [&self.all_of[..], &other.all_of].concat(),
            none_of: [&self.none_of[..], &other.none_of].concat(),
            within: self.within.intersection(&other.within),
        }
    }

    /// Drops what says nothing. What turns out to need no pattern goes to `decided`: single strings that fit, or all of the
    /// intervals once no pattern is left. `None` if nothing else remains.
    fn reduced(mut self, decided: &mut Vec<Interval<Box<str>>>) -> Option<StringTerm> {
        for pattern in &self.all_of {
            self.within = self.within.intersection(&prefix_interval(&pattern.literal_prefix()));
        }
        let within = std::mem::replace(&mut self.within, Intervals::none());
        let (single, wide): (Vec<_>, Vec<_>) = within.into_iter().partition(Interval::is_point);
        decided.extend(single.into_iter().filter(|interval| self.fits_patterns(&interval.start)));
        self.within = Intervals::merged(wide);

        keep_least_redundant(&mut self.all_of, |kept, dropped| kept.inclusion(dropped) == Some(true));
        self.none_of.retain(|pattern| {
            prefix_interval(&pattern.literal_prefix()).overlaps(&self.within)
                && !self.all_of.iter().any(|fitting| fitting.is_disjoint(pattern))
        });
        keep_least_redundant(&mut self.none_of, |kept, dropped| dropped.inclusion(kept) == Some(true));

        if self.all_of.is_empty() && self.none_of.is_empty() {
            decided.extend(self.within);
            return None;
        }
        let contradicts = self.all_of.iter().enumerate().any(|(index, pattern)| {
            self.none_of.iter().any(|other| pattern.inclusion(other) == Some(true))
                || self.all_of[index + 1..].iter().any(|other| pattern.is_disjoint(other))
        });
        (!self.within.is_empty() && !contradicts).then_some(self)
    }

    /// Whether every string of `other` is in this term; false also where that is not decided.
    fn covers(&self, other: &StringTerm) -> bool {
        self.within.covers(&other.within)
            && self.all_of.iter().all(|mine| other.all_of.iter().any(|theirs| theirs.inclusion(mine) == Some(true)))
            && self.none_of.iter().all(|mine| {
                other.none_of.iter().any(|theirs| mine.inclusion(theirs) == Some(true))
                    || other.all_of.iter().any(|theirs| theirs.is_disjoint(mine))
                    || !prefix_interval(&mine.literal_prefix()).overlaps(&other.within)
            })
    }
}

/// Sorts, and drops each pattern that another one, which stays, makes redundant.
fn keep_least_redundant(patterns: &mut Vec<Pattern>, makes_redundant: impl Fn(&Pattern, &Pattern) -> bool) {
    patterns.sort_unstable();
    patterns.dedup();
    let mut index = 0;
    while index < patterns.len() {
        let others = patterns.iter().enumerate().filter(|(other, _)| *other != index);
        if others.clone().any(|(_, other)| makes_redundant(other, &patterns[index])) {
            patterns.remove(index);
        } else {
            index += 1;
        }
    }
}

/// Adds a term to ones of which none covers another, so that this holds again. Of two that cover each other the lesser stays,
/// whichever came first.
fn insert(terms: &mut Vec<StringTerm>, new: StringTerm) {
    if terms.iter().any(|old| old.covers(&new) && (*old < new || !new.covers(old))) {
        return;
    }
    terms.retain(|old| !new.covers(old));
    terms.push(new);
}

impl StringSet {
    /// No string.
    pub(crate) fn none() -> StringSet {
        Intervals::none().into()
    }

    /// Brings intervals and terms into the form all sets have. Compares each term with each.
    pub(crate) fn normalised(intervals: Intervals<Box<str>>, terms: Vec<StringTerm>) -> StringSet {
        if terms.is_empty() {
            return intervals.into();
        }
        let mut decided: Vec<_> = intervals.into_iter().collect();
        let terms: Vec<StringTerm> = terms.into_iter().filter_map(|term| term.reduced(&mut decided)).collect();
        StringSet::from(Intervals::merged(decided)).with_terms(terms)
    }

    /// The set with some terms more, which are reduced already. Compares each with those that are there.
    fn with_terms(mut self, mut new: Vec<StringTerm>) -> StringSet {
        new.sort_unstable();
        new.dedup_by(|next, last| last.join(next));
        for term in &mut new {
            self.terms.retain(|old| !term.join(old));
        }
        self.terms.retain(|term| !self.intervals.covers(&term.within));
        for term in new {
            if !self.intervals.covers(&term.within) {
                insert(&mut self.terms, term);
            }
        }
        self.terms.sort_unstable();
        if !self.terms.is_empty() {
            let in_a_term = |string: &str| self.terms.iter().any(|term| term.contains(string));
            let intervals = self.intervals.into_iter();
            let kept = intervals.filter(|interval| !interval.is_point() || !in_a_term(&interval.start));
            self.intervals = Intervals::merged(kept.collect());
        }
        self
    }

    /// Its intervals, ascending: first string, and the first one behind; without that, all that follow.
    pub fn intervals(&self) -> impl ExactSizeIterator<Item = (&str, Option<&str>)> {
        self.intervals.iter().map(|interval| (&*interval.start, interval.end.as_deref()))
    }

    /// What the intervals leave out: strings described by patterns.
    pub fn terms(&self) -> &[StringTerm] {
        &self.terms
    }

    /// How many patterns its terms name.
    pub(crate) fn pattern_count(&self) -> usize {
        self.terms.iter().map(|term| term.all_of.len() + term.none_of.len()).sum()
    }

    /// Whether nothing is in the set. With terms it may count as not empty though no string fits.
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty() && self.terms.is_empty()
    }

    /// Whether `string` is in the set: a binary search, then one pattern after the other.
    pub fn contains(&self, string: &str) -> bool {
        self.intervals.contains(string) || self.terms.iter().any(|term| term.contains(string))
    }

    pub(crate) fn covers(&self, other: &StringSet) -> bool {
        let terms_covered = other
            .terms
            .iter()
            .all(|theirs| self.covers_intervals(&theirs.within) || self.terms.iter().any(|mine| mine.covers(theirs)));
        terms_covered && self.covers_intervals(&other.intervals)
    }

    /// Whether all these strings are in the set. What the intervals do not cover can be told of single strings only.
    fn covers_intervals(&self, intervals: &Intervals<Box<str>>) -> bool {
        if self.terms.is_empty() || self.intervals.covers(intervals) {
            return self.intervals.covers(intervals);
        }
        let rest = intervals.difference(&self.intervals);
        rest.iter().all(|interval| interval.is_point() && self.terms.iter().any(|term| term.contains(&interval.start)))
    }

    pub(crate) fn overlaps(&self, other: &StringSet) -> bool {
        self.intervals.overlaps(&other.intervals)
            || (!self.terms.is_empty() || !other.terms.is_empty()) && !self.intersection(other).is_empty()
    }

    /// The strings that are in any of some sets.
    pub(crate) fn union<'a>(sets: impl Iterator<Item = &'a StringSet> + Clone) -> StringSet {
        let intervals = Intervals::union(sets.clone().map(|set| &set.intervals));
        let terms = sets.flat_map(|set| &set.terms).cloned().collect();
        StringSet::from(intervals).with_terms(terms)
    }

    /// Every term with every term and interval of the other: the terms may multiply.
    pub(crate) fn intersection(&self, other: &StringSet) -> StringSet {
        let mut terms = Vec::new();
        for mine in &self.terms {
            terms.extend(other.terms.iter().map(|theirs| mine.intersection(theirs)));
            terms.push(StringTerm { within: mine.within.intersection(&other.intervals), ..mine.clone() });
        }
        for theirs in &other.terms {
            terms.push(StringTerm { within: theirs.within.intersection(&self.intervals), ..theirs.clone() });
        }
        StringSet::normalised(self.intervals.intersection(&other.intervals), terms)
    }

    /// What is outside of the intervals, and of each term outside its intervals or against one of its patterns.
    pub(crate) fn complement(&self) -> StringSet {
        self.terms.iter().fold(self.intervals.complement().into(), |rest: StringSet, term| {
            let single = |all_of, none_of| StringTerm { all_of, none_of, within: Intervals::all() };
            let misfit = term.all_of.iter().map(|pattern| single(Vec::new(), vec![pattern.clone()]));
            let fit = term.none_of.iter().map(|pattern| single(vec![pattern.clone()], Vec::new()));
            rest.intersection(&StringSet::normalised(term.within.complement(), misfit.chain(fit).collect()))
        })
    }
}
