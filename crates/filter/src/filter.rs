//! Filters in canonical form: disjunctions of conjunctions.

use crate::conjunction::{Pair, pairs};
use crate::{Conjunction, Event, Limit, LimitExceeded, Limits, Test};
use std::sync::Arc;

/// A disjunction of conjunctions in canonical form. None at all is FALSE; one empty conjunction is TRUE.
///
/// The conjunctions are sorted; none is covered by another, and no two differ in one attribute only. For one conjunction
/// without patterns equal forms mean equal filters, however they were written; for disjunctions over several attributes
/// no such form exists, but the same parts always give the same filter.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Filter {
    conjunctions: Vec<Conjunction>,
}

impl Filter {
    /// TRUE.
    pub fn always() -> Filter {
        Filter::from(Conjunction::always())
    }

    /// FALSE.
    pub fn never() -> Filter {
        Filter { conjunctions: Vec::new() }
    }

    /// What matches any of some conjunctions. Quadratic in their number at worst.
    ///
    /// # Errors
    /// The result needs more conjunctions, patterns or bytes than `limits` allow.
    pub fn any_of(
        conjunctions: impl IntoIterator<Item = Conjunction>,
        limits: &Limits,
    ) -> Result<Filter, LimitExceeded> {
        let mut union = Union::new(limits);
        for conjunction in conjunctions {
            union.add(conjunction)?;
        }
        union.finish()
    }

    /// What matches either. Quadratic in the number of conjunctions at worst.
    ///
    /// # Errors
    /// The result needs more conjunctions, patterns or bytes than `limits` allow.
    pub fn or(&self, other: &Filter, limits: &Limits) -> Result<Filter, LimitExceeded> {
        Filter::any_of(self.conjunctions.iter().chain(&other.conjunctions).cloned(), limits)
    }

    /// What matches both: each conjunction with each of the other filter, so the number of conjunctions may multiply.
    ///
    /// # Errors
    /// The result needs more conjunctions, patterns or bytes than `limits` allow; found out before much more than that is built.
    pub fn and(&self, other: &Filter, limits: &Limits) -> Result<Filter, LimitExceeded> {
        let mut union = Union::new(limits);
        for mine in &self.conjunctions {
            for theirs in &other.conjunctions {
                check_patterns_of_product(mine, theirs, limits)?;
                if let Some(both) = mine.and(theirs) {
                    union.add(both)?;
                }
            }
        }
        union.finish()
    }

    /// Takes conjunctions as they are if they are in canonical form.
    pub(crate) fn from_canonical(conjunctions: Vec<Conjunction>) -> Option<Filter> {
        let sorted = conjunctions.windows(2).all(|pair| pair[0] < pair[1]);
        let irreducible = || {
            conjunctions.iter().enumerate().all(|(index, one)| {
                let mut others = conjunctions[index + 1..].iter();
                others.all(|other| {
                    !one.covers(other) && !other.covers(one) && Conjunction::union(&[one, other]).is_none()
                })
            })
        };
        (sorted && irreducible()).then_some(Filter { conjunctions })
    }

    /// The conjunctions, sorted.
    pub fn conjunctions(&self) -> &[Conjunction] {
        &self.conjunctions
    }

    /// Whether any conjunction matches.
    pub fn matches(&self, event: &Event) -> bool {
        self.conjunctions.iter().any(|conjunction| conjunction.matches(event))
    }

    /// The attributes that every event that matches has, sorted; none of FALSE.
    pub fn required_attributes(&self) -> Vec<Arc<str>> {
        let Some((first, others)) = self.conjunctions.split_first() else { return Vec::new() };
        let requires = |conjunction: &Conjunction, attribute: &str| match conjunction.test(attribute) {
            None | Some(Test::Absent) => false,
            Some(Test::Present | Test::In(_)) => true,
        };
        let attributes = first.constraints().iter().map(|constraint| constraint.attribute().clone());
        attributes
            .filter(|attribute| requires(first, attribute) && others.iter().all(|other| requires(other, attribute)))
            .collect()
    }
}

impl From<Conjunction> for Filter {
    fn from(conjunction: Conjunction) -> Filter {
        Filter { conjunctions: vec![conjunction] }
    }
}

/// Refuses a product of conjunctions whose terms of patterns would multiply far beyond what a filter may hold.
fn check_patterns_of_product(left: &Conjunction, right: &Conjunction, limits: &Limits) -> Result<(), LimitExceeded> {
    let maximum = limits.maximum(Limit::Patterns);
    for pair in pairs(left, right) {
        if let Pair::Both(left, right) = pair
            && let (Test::In(left), Test::In(right)) = (left.test(), right.test())
            && left != right
        {
            let (left, right) = (left.strings(), right.strings());
            let found = left.terms().len() * right.pattern_count() + right.terms().len() * left.pattern_count();
            // Many of them may turn out redundant, so somewhat more than the limit is tried.
            if found / 4 > maximum {
                return Err(LimitExceeded { limit: Limit::Patterns, found, maximum });
            }
        }
    }
    Ok(())
}

/// A union of conjunctions under construction, normalised whenever it has grown well beyond the limits.
struct Union<'a> {
    limits: &'a Limits,
    conjunctions: Vec<Conjunction>,
    /// Conjunctions and patterns so far.
    weight: usize,
    /// Bytes of the conjunctions so far.
    bytes: usize,
}

impl<'a> Union<'a> {
    fn new(limits: &'a Limits) -> Union<'a> {
        Union { limits, conjunctions: Vec::new(), weight: 0, bytes: 0 }
    }

    fn add(&mut self, conjunction: Conjunction) -> Result<(), LimitExceeded> {
        self.weight += 1 + conjunction.pattern_count();
        self.bytes += conjunction.to_bytes().len();
        self.conjunctions.push(conjunction);
        let maximum = |limit| self.limits.maximum(limit);
        let is_large = self.weight > 2 * (maximum(Limit::Conjunctions) + maximum(Limit::Patterns))
            || self.bytes > 4 * maximum(Limit::FilterBytes);
        if is_large { self.normalise() } else { Ok(()) }
    }

    /// Absorbs and merges until nothing changes, in an order that depends on the conjunctions alone.
    fn normalise(&mut self) -> Result<(), LimitExceeded> {
        let mut conjunctions = std::mem::take(&mut self.conjunctions);
        conjunctions.sort_unstable();
        for conjunction in conjunctions {
            insert(&mut self.conjunctions, conjunction);
        }
        self.conjunctions.sort_unstable();
        let patterns = self.conjunctions.iter().map(Conjunction::pattern_count).sum();
        self.weight = self.conjunctions.len() + patterns;
        // The filter's own version and count add at most two bytes.
        self.bytes = 2 + self.conjunctions.iter().map(|conjunction| conjunction.to_bytes().len()).sum::<usize>();
        self.limits.check(Limit::Conjunctions, self.conjunctions.len())?;
        self.limits.check(Limit::Patterns, patterns)?;
        self.limits.check(Limit::FilterBytes, self.bytes)
    }

    fn finish(mut self) -> Result<Filter, LimitExceeded> {
        self.normalise()?;
        Ok(Filter { conjunctions: self.conjunctions })
    }
}

/// Adds a conjunction to ones that can neither absorb nor merge with each other, so that this holds again.
///
/// What can merge does, even where one absorbs the other: absorbing decides single strings by the patterns of the other, and
/// would take the string at the end of an interval out of it or not, by what else its conjunction says.
fn insert(kept: &mut Vec<Conjunction>, mut new: Conjunction) {
    let absorbs = |one: &Conjunction, other: &Conjunction| {
        one.covers(other) && Conjunction::union(&[one, other]).is_none_or(|both| both == *one)
    };
    loop {
        if kept.iter().any(|old| absorbs(old, &new)) {
            return;
        }
        kept.retain(|old| !absorbs(&new, old));
        let merged = kept.iter().enumerate().find_map(|(index, old)| Some((index, Conjunction::union(&[old, &new])?)));
        match merged {
            Some((index, merged)) => {
                kept.remove(index);
                new = merged;
            }
            None => {
                kept.push(new);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
