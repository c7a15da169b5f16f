//! Imperfect merging: some of what is wanted is announced as something that covers it, a *hull*, which matches more.
//!
//! The hull of two conjunctions says what both of them say, attribute by attribute: the union of their values, and nothing of
//! what only one of them constrains. What a hull matches without need is false interest. How much that is, is estimated from a
//! sample of the events that were seen: the share of them that something announced matches though nobody wants it.
//!
//! **Making hulls.** When more is announced than the budget allows, all of it is sorted, so that neighbours are much alike, and
//! neighbours are merged: first those whose hull matches the fewest further events of the sample; among these, those whose
//! hull says most of what they say. That ends a little below the budget, so that it does not begin anew with each change,
//! or where every hull would mean more false interest than the budget allows. The estimate is taken to be one event worse than it
//! is, so that nothing is merged on no evidence.
//!
//! **Giving hulls up.** A hull is made of parts. When half of them are gone, or when there is more false interest than the
//! budget allows, because other events come or because what wanted them is gone, the parts stand for themselves again.
//!
//! So what is announced depends on the order of what happened. It always covers all that is wanted.

use super::Budget;
use super::neighbours::merge_neighbours;
use super::sample::Sample;
use crate::{Forest, RootChange, RootDifference};
use enroute_filter::{Conjunction, Event};
use std::collections::{BTreeMap, BTreeSet};

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
    sample: Sample,
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
            sample: Sample::default(),
        }
    }

    /// What is announced, sorted.
    pub(crate) fn announced(&self) -> impl ExactSizeIterator<Item = &Conjunction> {
        self.forest.roots()
    }

    /// The share of the sampled events that something announced matches though nobody wants them; `None` without a sample.
    pub(crate) fn false_interest(&self) -> Option<f64> {
        let unwanted = self.sample.unwanted_announced().count();
        (self.sample.len() > 0).then(|| unwanted as f64 / self.sample.len() as f64)
    }

    /// Sees an event, which may change the estimate; acted upon with the next change.
    pub(crate) fn observe(&mut self, event: &Event) {
        let (parts, forest, sampled) = (&self.parts, &self.forest, self.sample.len());
        self.sample.observe(event, |event| {
            let wanted = parts.keys().filter(|part| part.matches(event)).count();
            (wanted, forest.roots().filter(|root| root.matches(event)).count())
        });
        if self.sample.len() > sampled {
            // The more evidence, the more may be merged.
            self.patience = self.budget.filters;
        }
    }

    /// Takes in a change of what is wanted and returns that of what is announced.
    pub(crate) fn apply(&mut self, change: &RootChange) -> RootChange {
        let mut difference = RootDifference::default();
        for part in &change.added {
            self.sample.want(part);
            self.parts.insert(Conjunction::clone(part), None);
            let change = self.forest.insert(PARTS, part);
            self.note(change, &mut difference);
        }
        for part in &change.removed {
            self.sample.unwant(part);
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
        change.added.iter().for_each(|root| self.sample.announce(root));
        change.removed.iter().for_each(|root| self.sample.withdraw(root));
        difference.apply(change);
    }

    fn patience_from_now(&self) -> usize {
        let announced = self.forest.root_count();
        (announced + announced / 8).max(self.budget.filters)
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
        let allowed = self.allowed_unwanted().unwrap_or(0);
        loop {
            let unwanted: Vec<&Event> = self.sample.unwanted_announced().collect();
            if unwanted.len() <= allowed {
                return;
            }
            let matched = |hull: &Conjunction| unwanted.iter().filter(|event| hull.matches(event)).count();
            let Some(worst) = self.hulls.keys().max_by_key(|hull| matched(hull)).cloned() else { return };
            self.give_up(&worst, difference);
        }
    }

    /// How many events of the sample may be false interest; `None` if there is too little evidence to merge anything.
    fn allowed_unwanted(&self) -> Option<usize> {
        let allowed = self.budget.false_interest * (self.sample.len() + 1) as f64;
        (allowed >= 1.0).then(|| allowed as usize - 1)
    }

    /// Merges until what is announced is within the budget, or false interest would not be.
    fn make_hulls(&mut self, difference: &mut RootDifference) {
        let unwanted = self.sample.unwanted_announced().count();
        let Some(further) = self.allowed_unwanted().and_then(|allowed| allowed.checked_sub(unwanted)) else { return };
        let roots: Vec<Conjunction> = self.forest.roots().cloned().collect();
        let aim = self.budget.filters - self.budget.filters / 8;
        let surplus = roots.len().saturating_sub(aim.max(1));
        let kept_off = self.sample.unwanted_kept_off().collect();
        for (hull, merged) in merge_neighbours(roots, surplus, kept_off, further) {
            self.make_hull(hull, &merged, difference);
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
