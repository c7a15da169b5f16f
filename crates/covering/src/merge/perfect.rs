//! Perfect merging: conjunctions that differ in one attribute become one, whose values there are the union.
//!
//! It goes attribute by attribute, in the order of their names. At each, conjunctions that say the same of all other
//! attributes form a group; what a group becomes goes on to the next attribute, and from the last one out. So
//!
//! ```text
//!                               dest                                     origin
//! dest = A AND origin = X   ┐
//! dest = B AND origin = X   ┴──────  dest IN (A, B) AND origin = X  ┐
//! dest = A AND origin = Y   ┐                                       ├────  dest IN (A, B) AND origin IN (X, Y)
//! dest = B AND origin = Y   ┴──────  dest IN (A, B) AND origin = Y  ┘
//! ```
//!
//! Each group remembers its members, and how often it got each: a union comes apart when a member leaves. What comes out
//! depends on what is in, and not on how that came about. A change at one attribute is a few changes at the next, as a rule one
//! union for another.
//!
//! **Large groups.** A union of thousands of values would have to be told anew with each change of one of them. So members that
//! together take more than [`MAX_GROUP`] bytes are divided by the bits of a hash, as in a trie: into as few parts as are small
//! enough, each of which becomes a union of its own. That, too, depends on the members alone.

use enroute_filter::Conjunction;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// How many bytes of conjunctions become one: enough for some fifty that people write, and little enough to be told anew.
pub(crate) const MAX_GROUP: usize = 4 << 10;

/// Patterns are compared each with each, so fewer of them become one.
const PATTERN_WEIGHT: usize = 8;

/// Conjunctions, counted: how many more there are than before, or fewer.
pub(crate) type Changes = BTreeMap<Conjunction, i64>;

/// See the page of the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    members: BTreeMap<Place, Member>,
}

/// Members are in the order of their groups, within a group in that of their parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The hash of the attribute and of what is said of all others. Two groups may share it: nothing is merged on its word.
    group: u64,
    /// The hash of what is said of the attribute; its first bits are the part.
    part: u64,
    conjunction: Conjunction,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    count: i64,
    /// Against [`MAX_GROUP`].
    weight: usize,
}

/// Changes on their way through the attributes.
#[derive(Default)]
struct Stages {
    /// What comes to an attribute from those before it.
    waiting: BTreeMap<Arc<str>, Changes>,
    out: Changes,
}

impl Groups {
    /// Takes in changes and returns those of what comes out.
    pub(crate) fn apply(&mut self, changes: Changes) -> Changes {
        let mut stages = Stages::default();
        stages.pass_on(None, changes);
        while let Some((attribute, changes)) = stages.waiting.pop_first() {
            let mut merged = Changes::new();
            for (conjunction, count) in changes.into_iter().filter(|(_, count)| *count != 0) {
                self.change(&attribute, conjunction, count, &mut merged);
            }
            stages.pass_on(Some(&attribute), merged);
        }
        stages.out.retain(|_, count| *count != 0);
        stages.out
    }

    /// Counts a member of a group up or down, and notes how what its group becomes changes.
    fn change(&mut self, attribute: &str, conjunction: Conjunction, count: i64, out: &mut Changes) {
        let place = Place::of(attribute, conjunction);
        if let Some(member) = self.members.get_mut(&place) {
            member.count += count;
            if member.count != 0 {
                return;
            }
            let weight = self.members.remove(&place).map_or(0, |member| member.weight);
            self.tell(&place, weight, -1, out);
        } else {
            let weight = weight(&place.conjunction);
            self.tell(&place, weight, 1, out);
            self.members.insert(place, Member { count, weight });
        }
    }

    /// Notes how what its group becomes changes with a member that is not in it, or, if `sign` is -1, without that member.
    fn tell(&self, new: &Place, weight: usize, sign: i64, out: &mut Changes) {
        // The smallest part that needs no division without the new member.
        let depth = (0..u64::BITS).find(|&depth| is_small(self.part(new, depth))).unwrap_or(u64::BITS);
        let mut part: Vec<(&Place, usize)> = self.part(new, depth).collect();
        unions(&part, depth, -sign, out);
        part.insert(part.partition_point(|(place, _)| *place < new), (new, weight));
        unions(&part, depth, sign, out);
    }

    /// Those of a member's group whose part begins with the same bits, and their weights.
    fn part(&self, of: &Place, depth: u32) -> impl Iterator<Item = (&Place, usize)> {
        let rest = u64::MAX.checked_shr(depth).unwrap_or(0);
        let first = Place { group: of.group, part: of.part & !rest, conjunction: Conjunction::always() };
        let (group, last) = (of.group, of.part | rest);
        let from_first = self.members.range(first..).map(|(place, member)| (place, member.weight));
        from_first.take_while(move |(place, _)| place.group == group && place.part <= last)
    }
}

impl Stages {
    /// Passes on what comes from an attribute, or from outside.
    fn pass_on(&mut self, from: Option<&str>, changes: Changes) {
        for (conjunction, count) in changes {
            let mut attributes = conjunction.constraints().iter().map(|constraint| constraint.attribute());
            let to = match attributes.find(|attribute| from.is_none_or(|from| from < &***attribute)) {
                Some(next) => self.waiting.entry(Arc::clone(next)).or_default(),
                None => &mut self.out,
            };
            *to.entry(conjunction).or_default() += count;
        }
    }
}

impl Place {
    fn of(attribute: &str, conjunction: Conjunction) -> Place {
        let (mut group, mut part) = (DefaultHasher::new(), DefaultHasher::new());
        attribute.hash(&mut group);
        for constraint in conjunction.constraints() {
            if &**constraint.attribute() == attribute {
                constraint.test().hash(&mut part);
            } else {
                constraint.hash(&mut group);
            }
        }
        Place { group: group.finish(), part: part.finish(), conjunction }
    }
}

/// What a conjunction takes of [`MAX_GROUP`].
pub(crate) fn weight(conjunction: &Conjunction) -> usize {
    let bytes = conjunction.to_bytes().len();
    if conjunction.has_patterns() { PATTERN_WEIGHT * bytes } else { bytes }
}

/// Whether these may become one; a single one may be as large as it likes.
fn is_small<'a>(part: impl Iterator<Item = (&'a Place, usize)>) -> bool {
    let weights = part.map(|(_, weight)| weight).enumerate();
    weights
        .scan(0, |sum, (index, weight)| {
            *sum += weight;
            Some(index == 0 || *sum <= MAX_GROUP)
        })
        .all(|is_small| is_small)
}

/// Notes what a part of a group becomes, times `sign`, dividing it until it is small enough.
fn unions(part: &[(&Place, usize)], depth: u32, sign: i64, out: &mut Changes) {
    if depth < u64::BITS && !is_small(part.iter().copied()) {
        let next_bit = 1 << (u64::BITS - 1 - depth);
        let (zeros, ones) = part.split_at(part.partition_point(|(place, _)| place.part & next_bit == 0));
        unions(zeros, depth + 1, sign, out);
        unions(ones, depth + 1, sign, out);
        return;
    }
    let conjunctions: Vec<&Conjunction> = part.iter().map(|(place, _)| &place.conjunction).collect();
    for union in merged(&conjunctions) {
        *out.entry(union).or_default() += sign;
    }
}

/// Merges what can be. Usually that is all; not what is absent with anything but "present", nor what only shares a hash.
fn merged(conjunctions: &[&Conjunction]) -> Vec<Conjunction> {
    if let Some(union) = Conjunction::union(conjunctions) {
        return vec![union];
    }
    let (left, right) = conjunctions.split_at(conjunctions.len() / 2);
    if left.is_empty() {
        return Vec::new();
    }
    let mut unions = merged(left);
    for right in merged(right) {
        match unions.iter_mut().find_map(|left| Conjunction::union(&[left, &right]).map(|union| (left, union))) {
            Some((left, union)) => *left = union,
            None => unions.push(right),
        }
    }
    unions
}
