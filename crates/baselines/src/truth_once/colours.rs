//! From filters to coloured groups (section 4.2 of the paper).
//!
//! A filter arrives as a disjunction of conjunctions; the paper's subscription is the opposite, a conjunction of small
//! disjunctions: `(B in (3, 6) or E >= 2) and (A <= 8 or D >= 6) and C <= 4` reaches us as four conjunctions. Here the
//! conjunctions are recognised as such a product where they are one. Where they are not, as in `A = 1 and B = 2 or C = 3`,
//! the filter becomes one entry for each conjunction.

use super::entry::{Keys, PLAIN, Pointer};
use super::predicate::Predicate;
use super::predicates::PredicateLists;
use super::split;
use enroute_filter::{Conjunction, Constraint, Filter};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Predicates of which at least one must be true. A group of one becomes a plain pointer, a larger one a colour.
pub(super) type Group = Vec<(Arc<str>, Predicate)>;

/// The groups of each entry that a filter needs; an entry matches if all its groups do.
pub(super) fn entries(filter: &Filter) -> Vec<Vec<Group>> {
    let conjunctions = filter.conjunctions();
    if let Some(product) = product(conjunctions) {
        return vec![product.iter().flat_map(|alternatives| groups(alternatives)).collect()];
    }
    let single =
        |conjunction: &Conjunction| conjunction.constraints().iter().flat_map(|only| groups(&[only])).collect();
    conjunctions.iter().map(single).collect()
}

/// Constraints of which one must hold, as groups of predicates.
fn groups(alternatives: &[&Constraint]) -> Vec<Group> {
    let name = |constraint: &Constraint, predicates: Vec<Predicate>| -> Group {
        predicates.into_iter().map(|predicate| (constraint.attribute().clone(), predicate)).collect()
    };
    match alternatives {
        [only] => split::groups(only.test()).into_iter().map(|group| name(only, group)).collect(),
        _ => vec![alternatives.iter().flat_map(|one| name(one, split::alternatives(one.test()))).collect()],
    }
}

/// The conjunctions as a product of disjunctions, if they are one.
///
/// Constraints that never stand in one conjunction are taken for alternatives. They are a factor if one of them stands
/// in every conjunction; and if all are factors, and there are as many conjunctions as the factors have combinations,
/// the conjunctions, being distinct, are exactly these combinations.
fn product(conjunctions: &[Conjunction]) -> Option<Vec<Vec<&Constraint>>> {
    let width = conjunctions.first()?.constraints().len();
    if conjunctions.iter().any(|conjunction| conjunction.constraints().len() != width) {
        return None;
    }
    let mut rows: BTreeMap<&Constraint, BTreeSet<usize>> = BTreeMap::new();
    for (row, conjunction) in conjunctions.iter().enumerate() {
        for constraint in conjunction.constraints() {
            rows.entry(constraint).or_default().insert(row);
        }
    }
    let mut factors = Vec::new();
    let mut combinations = 1_usize;
    while let Some((first, mut covered)) = rows.pop_first() {
        let mut factor = vec![first];
        for (constraint, its_rows) in &rows {
            if covered.is_disjoint(its_rows) {
                factor.push(constraint);
                covered.extend(its_rows);
            }
        }
        if covered.len() != conjunctions.len() {
            return None;
        }
        rows.retain(|constraint, _| !factor.contains(constraint));
        combinations = combinations.checked_mul(factor.len())?;
        factors.push(factor);
    }
    (combinations == conjunctions.len()).then_some(factors)
}

/// The attributes that an entry with these pointers may be listed under.
///
/// The paper lists an entry under any of its attributes, and so loses matches: an event need not have the attribute of a
/// coloured pointer. A key must be an attribute that every match contains: that of a plain pointer, or one shared by all
/// pointers of a colour. If there is none, but a colour whose predicates all want their attribute present, every match
/// contains at least one of that colour's attributes; the entry is listed under all of them, of the colour with the
/// fewest.
pub(super) fn keys(pointers: &[Pointer], predicates: &PredicateLists) -> Keys {
    let mut any = Vec::new();
    let mut all: Option<Vec<u32>> = None;
    let groups = pointers.chunk_by(|a, b| a.colour == b.colour && a.colour != PLAIN);
    for group in groups {
        if group.iter().any(|pointer| *predicates.predicate(pointer.predicate) == Predicate::Absent) {
            continue;
        }
        let mut attributes: Vec<u32> = group.iter().map(|pointer| predicates.attribute(pointer.predicate)).collect();
        attributes.sort_unstable();
        attributes.dedup();
        if let [attribute] = attributes[..] {
            any.push(attribute);
        } else if all.as_ref().is_none_or(|fewest| attributes.len() < fewest.len()) {
            all = Some(attributes);
        }
    }
    any.sort_unstable();
    any.dedup();
    match all {
        _ if !any.is_empty() => Keys::Any(any),
        Some(attributes) => Keys::All(attributes),
        None => Keys::None,
    }
}
