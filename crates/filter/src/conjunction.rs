//! Conjunctions of constraints in canonical form.

use crate::{Constraint, Event, Test};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Constraints on distinct attributes, sorted by attribute; none at all is TRUE. Never unsatisfiable. Cloning is cheap.
///
/// Two conjunctions without patterns are equal exactly if they match the same events.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conjunction {
    constraints: Arc<[Constraint]>,
}

impl Conjunction {
    /// TRUE.
    pub fn always() -> Conjunction {
        Conjunction { constraints: Arc::default() }
    }

    /// What satisfies all constraints, of which several may be on one attribute; `None` if nothing does.
    ///
    /// Patterns on one attribute may multiply. Where the constraints come from somebody else, use
    /// [`Filter::and`](crate::Filter::and), which bounds that.
    pub fn new(constraints: impl IntoIterator<Item = Constraint>) -> Option<Conjunction> {
        let mut tests: BTreeMap<Arc<str>, Test> = BTreeMap::new();
        for constraint in constraints {
            let both = match tests.get(constraint.attribute()) {
                Some(test) => test.intersection(constraint.test())?,
                None if constraint.test().is_never() => return None,
                None => constraint.test().clone(),
            };
            tests.insert(constraint.attribute().clone(), both);
        }
        Some(Conjunction::from_sorted(
            tests.into_iter().map(|(attribute, test)| Constraint::new(attribute, test)).collect(),
        ))
    }

    /// From satisfiable constraints on distinct attributes, sorted by attribute.
    pub(crate) fn from_sorted(constraints: Vec<Constraint>) -> Conjunction {
        Conjunction { constraints: constraints.into() }
    }

    /// The constraints, sorted by attribute.
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// What is said of an attribute, if anything; binary search.
    pub fn test(&self, attribute: &str) -> Option<&Test> {
        let found = self.constraints.binary_search_by(|constraint| (**constraint.attribute()).cmp(attribute));
        found.ok().map(|index| self.constraints[index].test())
    }

    /// Whether the event satisfies every constraint.
    pub fn matches(&self, event: &Event) -> bool {
        self.constraints.iter().all(|constraint| constraint.matches(event.get(constraint.attribute())))
    }

    /// Whether patterns are involved. Between conjunctions without, [`covers`](Conjunction::covers) and
    /// [`overlaps`](Conjunction::overlaps) are exact.
    pub fn has_patterns(&self) -> bool {
        self.constraints.iter().any(|constraint| constraint.test().has_patterns())
    }

    /// How many patterns are named.
    pub(crate) fn pattern_count(&self) -> usize {
        let count = |constraint: &Constraint| match constraint.test() {
            Test::Absent | Test::Present => 0,
            Test::In(set) => set.strings().pattern_count(),
        };
        self.constraints.iter().map(count).sum()
    }

    /// Whether every event that matches `other` matches this. Exact without patterns; where those leave it undecided, no.
    ///
    /// Holds if each constraint covers the other's on the same attribute; an attribute of which the other says nothing may
    /// be absent as well as anything else, which no constraint allows. Linear in the size of both.
    pub fn covers(&self, other: &Conjunction) -> bool {
        let mut theirs = other.constraints.iter();
        self.constraints.len() <= other.constraints.len()
            && self.constraints.iter().all(|mine| {
                theirs
                    .find(|theirs| theirs.attribute() >= mine.attribute())
                    .is_some_and(|theirs| theirs.attribute() == mine.attribute() && mine.test().covers(theirs.test()))
            })
    }

    /// Whether some event matches both. Exact without patterns; where those leave it undecided, yes.
    pub fn overlaps(&self, other: &Conjunction) -> bool {
        pairs(self, other).all(|pair| match pair {
            Pair::Left(_) | Pair::Right(_) => true,
            Pair::Both(mine, theirs) => mine.test().overlaps(theirs.test()),
        })
    }

    /// What matches both; `None` if nothing does. Patterns on one attribute may multiply, see [`Conjunction::new`].
    pub fn and(&self, other: &Conjunction) -> Option<Conjunction> {
        let constraints: Option<Vec<Constraint>> = pairs(self, other)
            .map(|pair| match pair {
                Pair::Left(only) | Pair::Right(only) => Some(only.clone()),
                Pair::Both(mine, theirs) => {
                    Some(Constraint::new(mine.attribute().clone(), mine.test().intersection(theirs.test())?))
                }
            })
            .collect();
        constraints.map(Conjunction::from_sorted)
    }

    /// What matches any of some conjunctions, if they differ in one constraint only and one conjunction says so.
    ///
    /// Linear in their sizes, apart from sorting and from patterns, which are compared each with each.
    pub fn union(conjunctions: &[&Conjunction]) -> Option<Conjunction> {
        let (first, others) = conjunctions.split_first()?;
        let differs = |(mine, theirs): (&Constraint, &Constraint)| mine != theirs;
        let mut differing =
            others.iter().map(|other| first.constraints.iter().zip(&*other.constraints).position(differs));
        let index = differing.find_map(|index| index).unwrap_or(first.constraints.len());
        let (before, behind) = first.constraints.split_at(index);
        let Some((constraint, behind)) = behind.split_first() else {
            // All are the same, unless some say more than the first.
            return others.iter().all(|other| other == first).then(|| Conjunction::clone(first));
        };
        let mut tests = vec![constraint.test()];
        for other in others {
            let constraints = other.constraints.get(..index)?.eq(before).then(|| &other.constraints[index..])?;
            let (theirs, theirs_behind) = constraints.split_first()?;
            if theirs.attribute() != constraint.attribute() || theirs_behind != behind {
                return None;
            }
            tests.push(theirs.test());
        }
        // Absent or present: the attribute may be anything.
        let is_anything = tests.contains(&&Test::Absent) && tests.contains(&&Test::Present);
        let union = if is_anything { None } else { Some(Test::union_of(&tests)?) };
        let union = union.map(|test| Constraint::new(Arc::clone(constraint.attribute()), test));
        Some(Conjunction::from_sorted(before.iter().cloned().chain(union).chain(behind.iter().cloned()).collect()))
    }
}

/// What two conjunctions say of one attribute.
pub(crate) enum Pair<'a> {
    Left(&'a Constraint),
    Right(&'a Constraint),
    Both(&'a Constraint, &'a Constraint),
}

/// Walks the constraints of two conjunctions side by side, by attribute.
pub(crate) fn pairs<'a>(left: &'a Conjunction, right: &'a Conjunction) -> impl Iterator<Item = Pair<'a>> {
    let mut left = left.constraints.iter().peekable();
    let mut right = right.constraints.iter().peekable();
    std::iter::from_fn(move || {
        let order = match (left.peek(), right.peek()) {
            (Some(left), Some(right)) => left.attribute().cmp(right.attribute()),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        match order {
            Ordering::Less => left.next().map(Pair::Left),
            Ordering::Greater => right.next().map(Pair::Right),
            Ordering::Equal => left.next().zip(right.next()).map(|(left, right)| Pair::Both(left, right)),
        }
    })
}
