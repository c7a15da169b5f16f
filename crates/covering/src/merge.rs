//! Merging: of what a broker's clients want, less is announced than the roots of the covering forest.
//!
//! **Perfect** merging makes one of conjunctions that differ in one attribute only: what matches stays the same. It comes
//! apart again when one of them leaves, and what is announced depends on the roots alone, not on how they came about.
//!
//! **Imperfect** merging announces something that matches more, within a budget: so many filters, and so much false interest, as
//! estimated from the events that were seen. What is announced always covers the roots, but depends on what happened when.
//!
//! Both may be done, one after the other. What came out of the first may cover what was no root's child before, so it goes
//! through a forest of its own.

mod imperfect;
mod neighbours;
mod perfect;
mod sample;

use crate::{Forest, RootChange, RootDifference};
use enroute_filter::{Conjunction, Event};
use imperfect::Hulls;
use perfect::{Changes, Groups};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which merging to do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MergingConfig {
    /// Make one of conjunctions that differ in one attribute only.
    pub perfect: bool,
    /// Announce what matches more than is wanted, within a budget.
    pub imperfect: Option<Budget>,
}

/// How far imperfect merging goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// The most filters to announce. More are announced where false interest would pass its bound.
    pub filters: usize,
    /// The greatest share of the seen events, from 0 to 1, that may match what is announced though nobody wants them. It is
    /// estimated from 512 events: less than 0.002 is never sure, so nothing is merged.
    pub false_interest: f64,
}

/// Takes in how roots change, and tells how what is to be announced changes.
///
/// ```
/// use enroute_covering::{Forest, Merging, MergingConfig};
/// use enroute_filter::Filter;
///
/// let (mut forest, mut merging) = (Forest::new(), Merging::new(MergingConfig { perfect: true, imperfect: None }));
/// for (owner, text) in ["dest = 'SFO' AND delay > 60", "dest = 'LAX' AND delay > 60"].into_iter().enumerate() {
///     let filter = Filter::parse(text).expect("is a filter");
///     for conjunction in filter.conjunctions() {
///         merging.apply(&forest.insert(owner as u64, conjunction));
///     }
/// }
/// let merged = Filter::parse("dest IN ('LAX', 'SFO') AND delay > 60").expect("is a filter");
/// assert!(merging.announced().eq(merged.conjunctions()));
/// ```
#[derive(Clone, Debug)]
pub struct Merging {
    /// Empty without perfect merging.
    groups: Option<Groups>,
    /// How many groups made the same.
    counts: BTreeMap<Conjunction, i64>,
    /// All that the groups made, or that was a root.
    merged: Forest,
    hulls: Option<Hulls>,
}

impl Merging {
    /// Without roots.
    pub fn new(config: MergingConfig) -> Merging {
        Merging {
            groups: config.perfect.then(Groups::default),
            counts: BTreeMap::new(),
            merged: Forest::new(),
            hulls: config.imperfect.map(Hulls::new),
        }
    }

    /// Takes in a change of the roots, one after the other as a forest tells them, and returns that of what is announced.
    ///
    /// Each root is looked up once for each of its attributes; a group that changes, of a few kilobytes at most, is made anew.
    /// With imperfect merging, what changes is matched against a sample of events, and from time to time all that is announced.
    pub fn apply(&mut self, change: &RootChange) -> RootChange {
        let counted = |roots: &[Arc<Conjunction>], count| -> Vec<(Conjunction, i64)> {
            roots.iter().map(|root| (Conjunction::clone(root), count)).collect()
        };
        let roots: Changes = [counted(&change.added, 1), counted(&change.removed, -1)].into_iter().flatten().collect();
        let changes = match &mut self.groups {
            Some(groups) => groups.apply(roots),
            None => roots,
        };
        let change = self.count(changes);
        match &mut self.hulls {
            Some(hulls) => hulls.apply(&change),
            None => change,
        }
    }

    /// Sees an event, on which the estimate of false interest is based. Costs little: only now and then one is looked at more
    /// closely. Whoever sees very many may show a part of them only.
    ///
    /// Says whether something else should be announced now, though no root has changed, since there is more false interest than the
    /// budget allows or more can be merged: [`Merging::apply`] with an empty change says what.
    pub fn observe(&mut self, event: &Event) -> bool {
        self.hulls.as_mut().is_some_and(|hulls| hulls.observe(event))
    }

    /// What is announced, sorted.
    pub fn announced(&self) -> impl ExactSizeIterator<Item = &Conjunction> {
        let announced: Vec<&Conjunction> = match &self.hulls {
            Some(hulls) => hulls.announced().collect(),
            None => self.merged.roots().collect(),
        };
        announced.into_iter()
    }

    /// The share of the seen events, from 0 to 1, that match what is announced but no root, as estimated from a sample of some
    /// hundreds. `None` without imperfect merging (there is no false interest then), and before two events were seen.
    pub fn false_interest(&self) -> Option<f64> {
        self.hulls.as_ref()?.false_interest()
    }

    /// Brings the forest up to date; what comes before what goes, which then has something to hang its children under.
    fn count(&mut self, changes: Changes) -> RootChange {
        let mut difference = RootDifference::default();
        let mut gone = Vec::new();
        for (conjunction, change) in changes {
            let count = self.counts.entry(conjunction.clone()).or_default();
            let was_there = *count > 0;
            *count += change;
            match (was_there, *count > 0) {
                (false, true) => difference.apply(self.merged.insert(0, &conjunction)),
                (true, false) => gone.push(conjunction),
                (true, true) | (false, false) => {}
            }
        }
        for conjunction in gone {
            self.counts.remove(&conjunction);
            difference.apply(self.merged.remove(0, &conjunction));
        }
        difference.into_change()
    }
}

#[cfg(test)]
mod tests;
