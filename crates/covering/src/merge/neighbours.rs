//! Which neighbours in a sorted list of conjunctions to merge, the cheapest first.

use super::perfect::{MAX_GROUP, weight};
use enroute_filter::{Conjunction, Constraint, Event, Test};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The most that a hull may weigh: far less than what may be told.
const MAX_HULL: usize = 2 * MAX_GROUP;

/// Merges neighbours `surplus` times, as long as the hulls match no more than `further` of the events that are to be kept off.
/// Returns the hulls, each with what it was made of.
///
/// Matches each hull of two neighbours, and three for each time, against the events.
pub(crate) fn merge_neighbours(
    sorted: Vec<Conjunction>,
    surplus: usize,
    kept_off: Vec<&Event>,
    further: usize,
) -> Vec<(Conjunction, Vec<Conjunction>)> {
    let count = sorted.len();
    let place = |(index, conjunction): (usize, Conjunction)| Place {
        made_of: vec![conjunction.clone()],
        conjunction,
        previous: index.checked_sub(1),
        next: Some(index + 1).filter(|&next| next < count),
        changes: 0,
    };
    let places = sorted.into_iter().enumerate().map(place).collect();
    let mut neighbours = Neighbours { places, kept_off, candidates: BinaryHeap::new() };
    (0..count).for_each(|left| neighbours.propose(left));
    neighbours.merge(surplus, further);
    let hulls = neighbours.places.into_iter().filter(|place| place.made_of.len() > 1);
    hulls.map(|place| (place.conjunction, place.made_of)).collect()
}

struct Neighbours<'a> {
    places: Vec<Place>,
    kept_off: Vec<&'a Event>,
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
    /// How many events that are to be kept off their hull matches.
    matched: usize,
    /// How many of their constraints the hull does not have, and how many it has with other values.
    lost: usize,
    widened: usize,
    left: usize,
    right: usize,
    /// The changes of both so far.
    as_of: (usize, usize),
}

impl Neighbours<'_> {
    fn merge(&mut self, mut surplus: usize, mut further: usize) {
        while surplus > 0
            && let Some(Reverse(candidate)) = self.candidates.pop()
        {
            let Candidate { left, right, .. } = candidate;
            if candidate.as_of != (self.places[left].changes, self.places[right].changes) {
                continue;
            }
            let hull = hull(&self.places[left].conjunction, &self.places[right].conjunction);
            let matched = self.matched(&hull);
            if matched > further {
                continue;
            }
            further -= matched;
            surplus -= 1;
            self.kept_off.retain(|event| !hull.matches(event));
            self.join(left, right, hull);
            self.propose(left);
            if let Some(previous) = self.places[left].previous {
                self.propose(previous);
            }
        }
    }

    /// Considers merging a place with the next.
    fn propose(&mut self, left: usize) {
        let Some(right) = self.places[left].next else { return };
        let (a, b) = (&self.places[left], &self.places[right]);
        let hull = hull(&a.conjunction, &b.conjunction);
        let both = || a.conjunction.constraints().iter().chain(b.conjunction.constraints());
        let candidate = Candidate {
            matched: self.matched(&hull),
            lost: both().filter(|one| hull.test(one.attribute()).is_none()).count(),
            widened: both().filter(|one| hull.test(one.attribute()).is_some_and(|test| test != one.test())).count(),
            left,
            right,
            as_of: (a.changes, b.changes),
        };
        self.candidates.push(Reverse(candidate));
    }

    fn matched(&self, hull: &Conjunction) -> usize {
        self.kept_off.iter().filter(|event| hull.matches(event)).count()
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
