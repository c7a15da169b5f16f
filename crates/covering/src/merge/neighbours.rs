//! Which neighbours in a sorted list of conjunctions to merge, the cheapest first.

use super::perfect::{MAX_GROUP, weight};
use enroute_filter::{Conjunction, Constraint, Event, Test};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The most that a hull may weigh: far less than what may be told.
const MAX_HULL: usize = 2 * MAX_GROUP;

/// Events that hulls should not match.
pub(crate) struct KeptOff<'a> {
    pub(crate) events: Vec<&'a Event>,
    /// How many of them may be matched.
    pub(crate) allowed: usize,
}

/// What came of merging.
pub(crate) struct Merged {
    /// The hulls, each with what it was made of.
    pub(crate) hulls: Vec<(Conjunction, Vec<Conjunction>)>,
    /// Whether it ended because of the checks.
    pub(crate) is_checked: bool,
}

/// Merges neighbours `surplus` times: first those whose hull matches the fewest of the lessons. Ends where more of the checks
/// would be matched than is allowed.
///
/// Matches each hull of two neighbours, and three for each time, against the lessons.
pub(crate) fn merge_neighbours(
    sorted: Vec<Conjunction>,
    surplus: usize,
    lessons: KeptOff<'_>,
    checks: KeptOff<'_>,
) -> Merged {
    let count = sorted.len();
    let place = |(index, conjunction): (usize, Conjunction)| Place {
        made_of: vec![conjunction.clone()],
        conjunction,
        previous: index.checked_sub(1),
        next: Some(index + 1).filter(|&next| next < count),
        changes: 0,
    };
    let places = sorted.into_iter().enumerate().map(place).collect();
    let mut neighbours = Neighbours { places, lessons, checks, candidates: BinaryHeap::new() };
    (0..count).for_each(|left| neighbours.propose(left));
    let is_checked = neighbours.merge(surplus);
    let hulls = neighbours.places.into_iter().filter(|place| place.made_of.len() > 1);
    Merged { hulls: hulls.map(|place| (place.conjunction, place.made_of)).collect(), is_checked }
}

struct Neighbours<'a> {
    places: Vec<Place>,
    lessons: KeptOff<'a>,
    checks: KeptOff<'a>,
    candidates: BinaryHeap<Reverse<Candidate>>,
}

/// A conjunction between its neighbours, by their indexes.
struct Place {
    conjunction: Conjunction,
    /// What was merged into it; nothing, once it is merged into its neighbour.
    made_of: Vec<Conjunction>,
    previous: Option<usize>,
    next: Option<usize>,
    changes: usize,
}

/// Two neighbours, as they were; the least are merged first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// How many of the lessons their hull matches.
    matched: usize,
    /// How many of their constraints the hull does not have, and how many it has with other values.
    lost: usize,
    widened: usize,
    left: usize,
    right: usize,
    /// The changes of both so far.
    as_of: (usize, usize),
}

impl KeptOff<'_> {
    fn matched(&self, hull: &Conjunction) -> usize {
        self.events.iter().filter(|event| hull.matches(event)).count()
    }

    /// Takes in that a hull is announced.
    fn announce(&mut self, hull: &Conjunction) {
        let before = self.events.len();
        self.events.retain(|event| !hull.matches(event));
        self.allowed -= before - self.events.len();
    }
}

impl Neighbours<'_> {
    /// Returns whether it ended because of the checks.
    fn merge(&mut self, mut surplus: usize) -> bool {
        while surplus > 0
            && let Some(Reverse(candidate)) = self.candidates.pop()
        {
            let Candidate { left, right, .. } = candidate;
            if candidate.as_of != (self.places[left].changes, self.places[right].changes) {
                continue;
            }
            let hull = hull(&self.places[left].conjunction, &self.places[right].conjunction);
            if self.lessons.matched(&hull) > self.lessons.allowed {
                continue;
            }
            // Passing over it and going on would be to learn from the checks, too.
            if self.checks.matched(&hull) > self.checks.allowed {
                return true;
            }
            surplus -= 1;
            self.lessons.announce(&hull);
            self.checks.announce(&hull);
            self.join(left, right, hull);
            self.propose(left);
            if let Some(previous) = self.places[left].previous {
                self.propose(previous);
            }
        }
        false
    }

    /// Considers merging a place with the next.
    fn propose(&mut self, left: usize) {
        let Some(right) = self.places[left].next else { return };
        let (a, b) = (&self.places[left], &self.places[right]);
        let hull = hull(&a.conjunction, &b.conjunction);
        let both = || a.conjunction.constraints().iter().chain(b.conjunction.constraints());
        let candidate = Candidate {
            matched: self.lessons.matched(&hull),
            lost: both().filter(|one| hull.test(one.attribute()).is_none()).count(),
            widened: both().filter(|one| hull.test(one.attribute()).is_some_and(|test| test != one.test())).count(),
            left,
            right,
            as_of: (a.changes, b.changes),
        };
        self.candidates.push(Reverse(candidate));
    }

    fn join(&mut self, left: usize, right: usize, hull: Conjunction) {
        let (made_of, next) = (std::mem::take(&mut self.places[right].made_of), self.places[right].next);
        self.places[right].changes += 1;
        let place = &mut self.places[left];
        place.conjunction = hull;
        place.made_of.extend(made_of);
        place.next = next;
        place.changes += 1;
        if let Some(next) = next {
            self.places[next].previous = Some(left);
        }
    }
}

/// What both conjunctions say of each attribute, where they both say something. What grows too large to be told says less.
fn hull(a: &Conjunction, b: &Conjunction) -> Conjunction {
    let both = a.constraints().iter().filter_map(|of_a| {
        let attribute = of_a.attribute();
        let union = Constraint::new(attribute.clone(), of_a.test().union(b.test(attribute)?)?);
        let is_large = Conjunction::new([union.clone()]).is_none_or(|alone| weight(&alone) > MAX_GROUP);
        Some(if is_large { Constraint::new(attribute.clone(), Test::Present) } else { union })
    });
    let hull = Conjunction::new(both).expect("each says something satisfiable of an attribute of its own");
    if weight(&hull) > MAX_HULL { Conjunction::always() } else { hull }
}
