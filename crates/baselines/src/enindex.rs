//! The Enindex to the letter: W. Cui, Y. Wu, Z. Zhou et al., Knowledge-Based Systems 110, 2016, 110-120.
//!
//! Subscriptions stand in the list L(a) of one of their attributes, a key; each has pointers to its predicates, which
//! are stored once, and their count. Algorithm 4 as printed: for each key attribute of the event and each
//! subscription in its list, every predicate on an attribute of the event is evaluated, anew for each subscription,
//! and each true one taken off the count; zero is a match. Nothing is given up early. (The variant that finds each
//! predicate's truth once per event is the engine `enindex`.)
//!
//! Algorithm 5 and the balance of section 4.1: an emptied list leaves the key set. Silent are the thresholds; we: a
//! new subscription opens a list, under the attribute that most subscriptions use, while |A|² < |S| or if it has no
//! key, else goes to its shortest; while |A|² > 4 |S|, each update moves a few entries of the shortest list
//! elsewhere. Ties go to the attribute known first. Counts are copied, so that there is nothing to restore.
//!
//! A set of points is a disjunction (section 4.2): its pointers share a colour, which is taken off once. All pointers
//! of a colour are on one attribute here, so any attribute of a subscription may be its key. An interval left out is
//! a colour too, of `<=` and `>=`. Absence is left to the check. A conjunction of
//! no attribute is tested against every event.

use crate::coded::{CodedEvent, Kind, Predicate, Primitive, Primitives};
use crate::indexed::{Conjunctions, Grasp, Index};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

/// Subscription lists, predicate lists, and pointers in between.
#[derive(Debug, Default)]
pub(crate) struct Enindex {
    predicates: Vec<Stored>,
    numbers: HashMap<(u32, Primitive), u32>,
    vacant: Vec<u32>,
    /// By conjunction.
    entries: Vec<Entry>,
    /// How many entries there are.
    len: usize,
    /// L(a) by slot.
    lists: Vec<Vec<u32>>,
    /// By slot: how many entries may be listed there.
    users: Vec<u32>,
    /// The lists that are not empty: (length, slot).
    by_length: BTreeSet<(usize, u32)>,
    /// The entries without any attribute.
    unkeyed: Vec<u32>,
    /// Up to here, in the order of `by_length`, no list could be dissolved.
    stuck: Option<(usize, u32)>,
}

#[derive(Clone, Debug)]
struct Stored {
    slot: u32,
    primitive: Primitive,
    users: u32,
}

/// What the paper calls a subscription.
#[derive(Clone, Debug, Default)]
struct Entry {
    pointers: Box<[Pointer]>,
    count: u32,
    /// The slot of its list; none for the entries without any.
    key: Option<u32>,
    place: u32,
}

#[derive(Clone, Copy, Debug)]
struct Pointer {
    predicate: u32,
    /// [`PLAIN`], or from 1 the disjunction that it belongs to.
    colour: u32,
}

const PLAIN: u32 = 0;
/// How many entries an update tries to move out of a list that is to be dissolved.
const MOVES: usize = 4;

impl Enindex {
    /// Algorithms 2 and 3 for one predicate.
    fn point_to(&mut self, slot: u32, primitive: Primitive) -> u32 {
        if let Some(&number) = self.numbers.get(&(slot, primitive)) {
            self.predicates[number as usize].users += 1;
            return number;
        }
        let stored = Stored { slot, primitive, users: 1 };
        let number = match self.vacant.pop() {
            Some(number) => {
                self.predicates[number as usize] = stored;
                number
            }
            None => {
                self.predicates.push(stored);
                self.predicates.len() as u32 - 1
            }
        };
        self.numbers.insert((slot, primitive), number);
        number
    }

    fn entry(&mut self, number: u32, conjunctions: &Conjunctions) -> Entry {
        let coded = conjunctions.coded(number);
        let (mut pointers, mut count, mut last_colour) = (Vec::new(), 0, PLAIN);
        for predicate in &coded.predicates {
            let (primitives, colour) = match predicate.primitives(&coded.points) {
                Some(Primitives::All(all)) => {
                    count += all.len() as u32;
                    (all, PLAIN)
                }
                Some(Primitives::One(one)) => {
                    count += 1;
                    last_colour += 1;
                    (one, last_colour)
                }
                None => continue,
            };
            for primitive in primitives {
                pointers.push(Pointer { predicate: self.point_to(predicate.slot, primitive), colour });
            }
        }
        Entry { pointers: pointers.into(), count, key: None, place: 0 }
    }

    /// The list for a new entry.
    fn choose(&self, candidates: impl Iterator<Item = u32> + Clone) -> Option<u32> {
        let length = |slot: u32| self.lists[slot as usize].len();
        let closed = candidates.clone().filter(|&slot| length(slot) == 0);
        let commonest = closed.min_by_key(|&slot| (Reverse(self.users[slot as usize]), slot));
        let shortest = candidates.filter(|&slot| length(slot) > 0).min_by_key(|&slot| (length(slot), slot));
        let too_few = self.by_length.len().pow(2) < self.len;
        if too_few { commonest.or(shortest) } else { shortest.or(commonest) }
    }

    fn post(&mut self, number: u32, key: Option<u32>) {
        let list = key.map_or(&mut self.unkeyed, |slot| &mut self.lists[slot as usize]);
        let entry = &mut self.entries[number as usize];
        (entry.key, entry.place) = (key, list.len() as u32);
        list.push(number);
        if let Some(slot) = key {
            self.by_length.remove(&(list.len() - 1, slot));
            self.by_length.insert((list.len(), slot));
        }
    }

    fn unpost(&mut self, number: u32) {
        let Entry { key, place, .. } = self.entries[number as usize];
        let list = key.map_or(&mut self.unkeyed, |slot| &mut self.lists[slot as usize]);
        list.swap_remove(place as usize);
        if let Some(&moved) = list.get(place as usize) {
            self.entries[moved as usize].place = place;
        }
        if let Some(slot) = key {
            self.by_length.remove(&(list.len() + 1, slot));
            if !list.is_empty() {
                self.by_length.insert((list.len(), slot));
            }
        }
    }

    /// While there are too many lists, moves a few entries out of the shortest that can be emptied.
    fn dissolve(&mut self, conjunctions: &Conjunctions) {
        for _ in 0..MOVES {
            if self.by_length.len().pow(2) <= 4 * self.len {
                return;
            }
            let from = self.stuck.map_or(Bound::Unbounded, Bound::Excluded);
            let Some(&(length, slot)) = self.by_length.range((from, Bound::Unbounded)).next() else {
                self.stuck = None;
                return;
            };
            let number = self.lists[slot as usize][length - 1];
            let others = slots(number, conjunctions).filter(|&other| other != slot);
            let open = others.map(|other| (self.lists[other as usize].len(), other)).filter(|&(length, _)| length > 0);
            match open.min() {
                Some((_, other)) => {
                    self.unpost(number);
                    self.post(number, Some(other));
                }
                None => self.stuck = Some((length, slot)),
            }
        }
    }

    /// Algorithm 4 for one entry: its count, less one for each true plain pointer and each colour with a true one.
    fn left_over(&self, number: u32, event: &CodedEvent) -> u32 {
        let entry = &self.entries[number as usize];
        let (mut left, mut last_taken) = (entry.count, PLAIN);
        for pointer in &entry.pointers {
            let Stored { slot, primitive, .. } = self.predicates[pointer.predicate as usize];
            let is_taken = pointer.colour != PLAIN && pointer.colour == last_taken;
            if primitive.holds(event.value(slot)) && !is_taken {
                left -= 1;
                last_taken = pointer.colour;
            }
        }
        left
    }

    /// The entries that an event is tested against.
    fn visited<'a>(&'a self, event: &'a CodedEvent) -> impl Iterator<Item = u32> {
        let listed = event.seen.iter().filter_map(|&(slot, _)| self.lists.get(slot as usize));
        self.unkeyed.iter().chain(listed.flatten()).copied()
    }
}

fn slots(number: u32, conjunctions: &Conjunctions) -> impl Iterator<Item = u32> + Clone {
    conjunctions.coded(number).predicates.iter().map(|predicate| predicate.slot)
}

impl Index for Enindex {
    const NAME: &'static str = "enindex-letter";

    fn grasp(predicate: &Predicate) -> Grasp {
        if predicate.kind == Kind::Absent { Grasp::Not } else { Grasp::Exact }
    }

    fn insert(&mut self, number: u32, conjunctions: &Conjunctions) {
        for slot in slots(number, conjunctions) {
            if self.lists.len() <= slot as usize {
                self.lists.resize(slot as usize + 1, Vec::new());
                self.users.resize(slot as usize + 1, 0);
            }
            self.users[slot as usize] += 1;
        }
        let entry = self.entry(number, conjunctions);
        if self.entries.len() <= number as usize {
            self.entries.resize(number as usize + 1, Entry::default());
        }
        self.entries[number as usize] = entry;
        self.len += 1;
        let key = self.choose(slots(number, conjunctions));
        self.post(number, key);
        self.dissolve(conjunctions);
    }

    fn remove(&mut self, number: u32, conjunctions: &Conjunctions) {
        self.unpost(number);
        self.len -= 1;
        for slot in slots(number, conjunctions) {
            self.users[slot as usize] -= 1;
        }
        for pointer in std::mem::take(&mut self.entries[number as usize]).pointers {
            let stored = &mut self.predicates[pointer.predicate as usize];
            stored.users -= 1;
            if stored.users == 0 {
                self.numbers.remove(&(stored.slot, stored.primitive));
                self.vacant.push(pointer.predicate);
            }
        }
        self.dissolve(conjunctions);
    }

    fn find(&mut self, event: &CodedEvent, _: &Conjunctions, found: &mut Vec<u32>) {
        found.extend(self.visited(event).filter(|&number| self.left_over(number, event) == 0));
    }

    fn memory_usage(&self) -> usize {
        let pointers: usize = self.entries.iter().map(|entry| size_of_val(&*entry.pointers)).sum();
        let listed: usize = self.lists.iter().map(Vec::capacity).sum();
        pointers
            + self.predicates.capacity() * size_of::<Stored>()
            + self.numbers.capacity() * size_of::<((u32, Primitive), u32)>()
            + self.entries.capacity() * size_of::<Entry>()
            + (listed + self.vacant.capacity() + self.users.capacity() + self.unkeyed.capacity()) * size_of::<u32>()
            + self.lists.capacity() * size_of::<Vec<u32>>()
            + self.by_length.len() * size_of::<(usize, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::indexed::Indexed;
    use crate::samples::{EVENTS, PAPER, Sample, engine, event};
    use enroute_filter::{Event, Filter};
    use enroute_matcher::SubscriptionId;
    use std::collections::BTreeMap;

    /// The slot of numbers of the paper's attribute.
    fn slot(engine: &Indexed<Enindex>, attribute: char) -> u32 {
        let event = event(&[(&attribute.to_string(), 1)]);
        let mut coded = CodedEvent::default();
        engine.coder.read(&event, &mut coded);
        coded.seen[0].0
    }

    /// Lists s1 to s6 where algorithm 1 does. (Conjunction i is subscription i + 1.)
    fn as_algorithm_1(engine: &mut Indexed<Enindex>) {
        for (attribute, numbers) in [('B', vec![0, 2, 3, 5]), ('E', vec![1, 4])] {
            let key = slot(engine, attribute);
            for number in numbers {
                engine.index.unpost(number);
                engine.index.post(number, Some(key));
            }
        }
    }

    fn left_overs(engine: &Indexed<Enindex>, event: &Event) -> BTreeMap<u32, u32> {
        let mut coded = CodedEvent::default();
        engine.coder.read(event, &mut coded);
        let index = &engine.index;
        index.visited(&coded).map(|number| (number + 1, index.left_over(number, &coded))).collect()
    }

    fn stored(index: &Enindex) -> (usize, usize) {
        (index.numbers.len(), index.entries.iter().map(|entry| entry.pointers.len()).sum())
    }

    #[test]
    fn predicates_pointers_and_counts() {
        let engine = engine::<Enindex>(&PAPER);
        assert_eq!(stored(&engine.index), (10, 15));
        let counts: Vec<u32> = engine.index.entries.iter().map(|entry| entry.count).collect();
        assert_eq!(counts, [2, 3, 4, 1, 2, 3]);
        let mut shared: Vec<u32> = engine.index.predicates.iter().map(|stored| stored.users).collect();
        shared.sort_unstable();
        assert_eq!(shared, [1, 1, 1, 1, 1, 1, 2, 2, 2, 3]);
    }

    #[test]
    fn what_is_left_of_the_counts() {
        let mut engine = engine::<Enindex>(&PAPER);
        as_algorithm_1(&mut engine);
        let left = EVENTS.map(|Sample(attributes, _)| left_overs(&engine, &event(attributes)));
        assert_eq!(left[0], BTreeMap::new());
        assert_eq!(left[1], BTreeMap::from([(2, 2), (5, 0)]));
        assert_eq!(left[2], BTreeMap::from([(2, 1), (5, 1)]));
        assert_eq!(left[3], BTreeMap::from([(1, 2), (3, 0), (4, 1), (6, 3), (2, 1), (5, 1)]));
    }

    #[test]
    fn updates() {
        let mut engine = engine::<Enindex>(&PAPER);
        as_algorithm_1(&mut engine);
        // Only B <= 4 goes; then D >= 6 is there already.
        engine.remove(SubscriptionId(3));
        assert_eq!(stored(&engine.index), (9, 11));
        engine.insert(SubscriptionId(7), &Filter::parse("D >= 6").unwrap());
        assert_eq!(stored(&engine.index), (9, 12));
        let lists = ['A', 'B', 'C', 'D', 'E'].map(|attribute| {
            let mut list = engine.index.lists[slot(&engine, attribute) as usize].clone();
            list.sort_unstable();
            list
        });
        // Conjunction 2, once s3, is s7 now.
        assert_eq!(lists, [vec![], vec![0, 3, 5], vec![], vec![2], vec![1, 4]]);
    }

    #[test]
    fn balance() {
        let mut engine = Indexed::<Enindex>::default();
        for id in 0..2_000_u64 {
            let name = |step: u64| format!("a{} = {id}", (id * step + id / 7) % 61);
            let text = ["common = 1".into(), name(11), name(29), name(43)].join(" and ");
            engine.insert(SubscriptionId(id), &Filter::parse(&text).unwrap());
        }
        let many = engine.index.by_length.len();
        assert!((40..=90).contains(&many), "{many}");
        (30..2_000).for_each(|id| assert!(engine.remove(SubscriptionId(id))));
        let few = engine.index.by_length.len();
        assert!(few.pow(2) <= 4 * 30, "{few}");
        assert_eq!(engine.index.lists.iter().map(Vec::len).sum::<usize>(), 30);
    }
}
