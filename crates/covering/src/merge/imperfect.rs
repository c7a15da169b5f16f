//! Imperfect merging: some of what is wanted is announced as something that covers it, a *hull*, which matches more.
//!
//! The hull of two conjunctions says what both of them say, attribute by attribute: the union of their values, and nothing of
//! what only one of them constrains. What a hull matches without need is false interest. How much that is, is estimated from
//! samples of the events that were seen: the share of them that something announced matches though nobody wants it.
//!
//! **Making hulls.** When more is announced than the budget allows, all of it is sorted, so that neighbours are much alike, and
//! neighbours are merged: first those whose hull matches the fewest further events of the sample; among these, those whose
//! hull says most of what they say. That ends a little below the budget, so that it does not begin anew with each change,
//! or where there would be more false interest than the budget allows.
//!
//! **Two samples.** Hulls that are chosen because they match none of some events match all the more of others. So every
//! other event goes into a second sample, which decides nothing but where merging ends; after that nothing is merged until
//! this sample has been renewed. The estimate is taken to be one event worse than it is, so that nothing is merged on no
//! evidence.
//!
//! **Giving hulls up.** A hull is made of parts. When half of them are gone, or when there is more false interest than the
//! budget allows, because other events come or because what wanted them is gone, the parts stand for themselves again.
//!
//! So what is announced depends on the order of what happened. It always covers all that is wanted.

use super::Budget;
use super::neighbours::{KeptOff, merge_neighbours};
use super::sample::{MAX_EVENTS, Sample};
use crate::{Forest, RootChange, RootDifference};
use enroute_filter::{Conjunction, Event};
use std::collections::{BTreeMap, BTreeSet};

/// At most so many are considered at a time, so that no change takes long; the others when their turn comes.
const MAX_NEIGHBOURS: usize = 1_024;

/// The owners in the forest.
const PARTS: u64 = 0;
const HULLS: u64 = 1;

/// See the page of the module.
#[derive(Clone, Debug)]
pub(crate) struct Hulls {
    budget: Budget,
    /// What is wanted, and the hull that was made of it, if any.
    parts: BTreeMap<Conjunction, Option<Conjunction>>,
    hulls: BTreeMap<Conjunction, Hull>,
    /// Parts and hulls; the roots are announced.
    forest: Forest,
    /// What hulls are chosen by.
    lessons: Sample,
    /// What tells whether they were chosen well.
    checks: Sample,
    /// How many checks must have been drawn before anything is merged.
    renewed_at: u64,
    /// Where in what is announced the next attempt to merge begins.
    turn: usize,
    /// How much may be announced before another attempt to merge is worth while; not less than the budget.
    patience: usize,
}

#[derive(Clone, Debug, Default)]
struct Hull {
    parts: BTreeSet<Conjunction>,
    /// Of how many parts it was made.
    made_of: usize,
}

impl Hulls {
    pub(crate) fn new(budget: Budget) -> Hulls {
        Hulls {
            patience: budget.filters,
            budget,
            parts: BTreeMap::new(),
            hulls: BTreeMap::new(),
            forest: Forest::new(),
            lessons: Sample::default(),
            checks: Sample::default(),
            renewed_at: 0,
            turn: 0,
        }
    }

    /// What is announced, sorted.
    pub(crate) fn announced(&self) -> impl ExactSizeIterator<Item = &Conjunction> {
        self.forest.roots()
    }

    /// The share of the checks that something announced matches though nobody wants them; `None` without any.
    pub(crate) fn false_interest(&self) -> Option<f64> {
        self.checks.false_interest()
    }

    /// Sees an event, which may change the estimate. Says whether to act upon it before the next change.
    pub(crate) fn observe(&mut self, event: &Event) -> bool {
        let (parts, forest, known) = (&self.parts, &self.forest, self.lessons.len() + self.checks.len());
        let is_lesson = self.lessons.seen() == self.checks.seen();
        let sample = if is_lesson { &mut self.lessons } else { &mut self.checks };
        let drawn = sample.observe(event, |event| {
            let wanted = parts.keys().filter(|part| part.matches(event)).count();
            (wanted, forest.unsorted_roots().filter(|root| root.matches(event)).count())
        });
        if !drawn {
            return false;
        }
        let evidence = self.lessons.len() + self.checks.len();
        if evidence > known {
            // The more evidence, the more may be merged.
            self.patience = self.budget.filters;
        }
        let may_merge =
            evidence > known && evidence.is_power_of_two() && self.forest.root_count() > self.budget.filters;
        may_merge || self.worst_hull(&self.lessons).is_some() || self.worst_hull(&self.checks).is_some()
    }

    /// Takes in a change of what is wanted and returns that of what is announced.
    pub(crate) fn apply(&mut self, change: &RootChange) -> RootChange {
        let mut difference = RootDifference::default();
        for part in &change.added {
            self.samples().for_each(|sample| sample.want(part));
            self.parts.insert(Conjunction::clone(part), None);
            let change = self.forest.insert(PARTS, part);
            self.note(change, &mut difference);
        }
        for part in &change.removed {
            self.samples().for_each(|sample| sample.unwant(part));
            let change = self.forest.remove(PARTS, part);
            self.note(change, &mut difference);
            self.leave_hull(part, &mut difference);
        }
        self.lessen_false_interest(&mut difference);
        self.patience = self.patience.min(self.patience_from_now());
        if self.forest.root_count() > self.patience {
            self.make_hulls(&mut difference);
            self.patience = self.patience_from_now();
        }
        difference.into_change()
    }

    fn note(&mut self, change: RootChange, difference: &mut RootDifference) {
        for sample in self.samples() {
            change.added.iter().for_each(|root| sample.announce(root));
            change.removed.iter().for_each(|root| sample.withdraw(root));
        }
        difference.apply(change);
    }

    fn samples(&mut self) -> impl Iterator<Item = &mut Sample> {
        [&mut self.lessons, &mut self.checks].into_iter()
    }

    fn patience_from_now(&self) -> usize {
        let announced = self.forest.root_count();
        (announced + announced.min(MAX_NEIGHBOURS) / 8).max(self.budget.filters)
    }

    /// Takes a part that is gone out of its hull.
    fn leave_hull(&mut self, part: &Conjunction, difference: &mut RootDifference) {
        let Some(conjunction) = self.parts.remove(part).flatten() else { return };
        let Some(hull) = self.hulls.get_mut(&conjunction) else { return };
        hull.parts.remove(part);
        if 2 * hull.parts.len() < hull.made_of {
            self.give_up(&conjunction, difference);
        }
    }

    fn give_up(&mut self, conjunction: &Conjunction, difference: &mut RootDifference) {
        let Some(hull) = self.hulls.remove(conjunction) else { return };
        for part in hull.parts {
            self.parts.insert(part, None);
        }
        let change = self.forest.remove(HULLS, conjunction);
        self.note(change, difference);
    }

    /// Gives up hulls until the estimate is within the budget, the worst ones first.
    fn lessen_false_interest(&mut self, difference: &mut RootDifference) {
        while let Some(worst) = self.worst_hull(&self.lessons).or_else(|| self.worst_hull(&self.checks)).cloned() {
            self.give_up(&worst, difference);
        }
    }

    /// The hull to blame most for false interest, if there is more of it in a sample than the budget allows.
    fn worst_hull(&self, sample: &Sample) -> Option<&Conjunction> {
        let unwanted: Vec<&Event> = sample.unwanted_announced().collect();
        let matched = |hull: &Conjunction| unwanted.iter().filter(|event| hull.matches(event)).count();
        let is_too_much = unwanted.len() > self.allowed(sample).unwrap_or(0);
        is_too_much.then(|| self.hulls.keys().max_by_key(|hull| matched(hull)))?
    }

    /// How many events of a sample may be false interest; `None` if there is too little evidence to merge anything.
    fn allowed(&self, sample: &Sample) -> Option<usize> {
        let allowed = self.budget.false_interest * (sample.len() + 1) as f64;
        (allowed >= 1.0).then(|| allowed as usize - 1)
    }

    /// What a sample asks of further hulls; `None` if there must be none.
    fn kept_off<'a>(&self, sample: &'a Sample) -> Option<KeptOff<'a>> {
        let allowed = self.allowed(sample)?.checked_sub(sample.unwanted_announced().count())?;
        Some(KeptOff { events: sample.unwanted_kept_off().collect(), allowed })
    }

    /// Merges until what is announced is within the budget, or false interest would not be.
    fn make_hulls(&mut self, difference: &mut RootDifference) {
        let samples = self.kept_off(&self.lessons).zip(self.kept_off(&self.checks));
        let Some((lessons, checks)) = samples.filter(|_| self.checks.drawn() >= self.renewed_at) else { return };
        let aim = self.budget.filters - self.budget.filters.min(MAX_NEIGHBOURS) / 8;
        let surplus = self.forest.root_count().saturating_sub(aim.max(1));
        let roots: Vec<Conjunction> = self.forest.roots().skip(self.turn).take(MAX_NEIGHBOURS).cloned().collect();
        let merged = merge_neighbours(roots, surplus, lessons, checks);
        self.turn += MAX_NEIGHBOURS;
        if self.turn >= self.forest.root_count() {
            self.turn = 0;
        }
        if merged.is_checked {
            self.renewed_at = self.checks.drawn() + MAX_EVENTS as u64;
        }
        for (hull, made_of) in merged.hulls {
            self.make_hull(hull, &made_of, difference);
        }
    }

    /// Makes a hull of parts and of other hulls, which it replaces.
    fn make_hull(&mut self, conjunction: Conjunction, merged: &[Conjunction], difference: &mut RootDifference) {
        let change = self.forest.insert(HULLS, &conjunction);
        self.note(change, difference);
        let mut hull = self.hulls.remove(&conjunction).unwrap_or_default();
        for one in merged {
            if self.parts.contains_key(one) {
                hull.parts.insert(one.clone());
            }
            if let Some(replaced) = self.hulls.remove(one) {
                hull.parts.extend(replaced.parts);
                let change = self.forest.remove(HULLS, one);
                self.note(change, difference);
            }
        }
        for part in &hull.parts {
            self.parts.insert(part.clone(), Some(conjunction.clone()));
        }
        hull.made_of = hull.parts.len();
        self.hulls.insert(conjunction, hull);
    }
}
