//! The best scan without an index: every conjunction is tested, in a layout that suits the machine.
//!
//! A predicate is tested in twelve bytes: an interval of 32-bit codes, the upper halves of the 64-bit ones, or, of an
//! equality, a hash. `naive-rows` tests conjunction by conjunction, each a row, up to the first predicate that is
//! false. `naive` has the first predicates of all conjunctions side by side in a column, since most conjunctions fail
//! there, and the others in rows. Within a conjunction equalities come first and inequalities last, as these are
//! likely to fail, and to hold: that is all that is known beforehand. What passes so far is tested exactly, on the
//! 64-bit codes.
//!
//! Everything but what codes cannot say is tested here.

use crate::coded::{Coded, CodedEvent, Kind, Predicate};
use crate::indexed::{Conjunctions, Grasp, Index};

/// Rows of predicates; with a `COLUMN` for the first of each, or without.
#[derive(Debug, Default)]
pub(crate) struct Naive<const COLUMN: bool> {
    /// The first test of each row, if they are a column.
    firsts: Vec<Test>,
    /// Where in `others` each row's other tests are.
    others_of: Vec<Part>,
    /// The conjunction of each row.
    numbers: Vec<u32>,
    /// The row of each conjunction.
    rows: Vec<u32>,
    others: Vec<Test>,
    /// How many of `others` belong to no row any more.
    garbage: usize,
    /// What the event has, by place.
    values: Vec<u32>,
    /// Which of `values` are not 0.
    set: Vec<u32>,
}

/// That the value at a place is at least `low` and at most `low + span`. All that satisfies the predicate passes.
#[derive(Clone, Copy, Debug)]
struct Test {
    place: u32,
    low: u32,
    span: u32,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    start: u32,
    len: u32,
}

/// The upper half of a code; not 0, which is what an absent attribute has.
fn upper_half(code: u64) -> u32 {
    ((code >> 32) as u32).max(1)
}

/// A hash of a code; not 0 either.
fn hash(code: u64) -> u32 {
    ((code.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32).max(1)
}

/// Where the upper half of what an event has in a slot is; its hash comes next.
fn place(slot: u32) -> u32 {
    2 * slot
}

impl Test {
    /// True of any event, as the test of the conjunction TRUE.
    const ALWAYS: Test = Test { place: 0, low: 0, span: u32::MAX };

    fn new(predicate: &Predicate, points: &[u64]) -> Test {
        let place = place(predicate.slot);
        match predicate.hull(points) {
            Some(hull) if hull.is_equality() => Test { place: place + 1, low: hash(hull.low), span: 0 },
            Some(hull) => {
                let (low, high) = (upper_half(hull.low), upper_half(hull.high));
                Test { place, low, span: high - low }
            }
            None => Test { place, low: 0, span: 0 },
        }
    }

    fn holds(&self, values: &[u32]) -> bool {
        // Of a place that no event has reached yet.
        let value = values.get(self.place as usize).copied().unwrap_or(0);
        value.wrapping_sub(self.low) <= self.span
    }
}

/// Whether a predicate is likely to be false: 0 most.
fn rank(predicate: &Predicate) -> u8 {
    match predicate.kind {
        Kind::In if predicate.is_equality() => 0,
        Kind::Points => 1,
        Kind::In => 2,
        Kind::Absent => 3,
        Kind::NotIn | Kind::NotPoints => 4,
    }
}

impl<const COLUMN: bool> Naive<COLUMN> {
    /// Appends a row.
    fn push(&mut self, number: u32, coded: &Coded) {
        let mut predicates = coded.predicates.to_vec();
        predicates.sort_by_key(rank);
        let mut tests = predicates.iter().map(|predicate| Test::new(predicate, &coded.points));
        if COLUMN {
            self.firsts.push(tests.next().unwrap_or(Test::ALWAYS));
        }
        let start = self.others.len() as u32;
        self.others.extend(tests);
        self.others_of.push(Part { start, len: self.others.len() as u32 - start });
        self.numbers.push(number);
        if self.rows.len() <= number as usize {
            self.rows.resize(number as usize + 1, 0);
        }
        self.rows[number as usize] = self.numbers.len() as u32 - 1;
    }

    /// Lays all rows out anew, without gaps.
    fn compact(&mut self, conjunctions: &Conjunctions) {
        let old = std::mem::take(self);
        for number in old.numbers {
            self.push(number, conjunctions.coded(number));
        }
    }

    fn read(&mut self, event: &CodedEvent) {
        for place in self.set.drain(..) {
            self.values[place as usize] = 0;
        }
        for &(slot, code) in &event.seen {
            let place = place(slot);
            if self.values.len() <= place as usize + 1 {
                self.values.resize(place as usize + 2, 0);
            }
            self.values[place as usize] = upper_half(code);
            self.values[place as usize + 1] = hash(code);
            self.set.extend([place, place + 1]);
        }
    }
}

impl<const COLUMN: bool> Index for Naive<COLUMN> {
    const NAME: &'static str = if COLUMN { "naive" } else { "naive-rows" };

    fn grasp(_: &Predicate) -> Grasp {
        Grasp::Exact
    }

    fn insert(&mut self, number: u32, conjunctions: &Conjunctions) {
        self.push(number, conjunctions.coded(number));
    }

    fn remove(&mut self, number: u32, conjunctions: &Conjunctions) {
        let row = self.rows[number as usize] as usize;
        if COLUMN {
            self.firsts.swap_remove(row);
        }
        self.numbers.swap_remove(row);
        self.garbage += self.others_of.swap_remove(row).len as usize;
        if let Some(&moved) = self.numbers.get(row) {
            self.rows[moved as usize] = row as u32;
        }
        if self.garbage > 1_000 + self.others.len() / 2 {
            self.compact(conjunctions);
        }
    }

    fn find(&mut self, event: &CodedEvent, conjunctions: &Conjunctions, found: &mut Vec<u32>) {
        self.read(event);
        let mut test = |row: usize| {
            let Part { start, len } = self.others_of[row];
            let others = &self.others[start as usize..][..len as usize];
            let number = self.numbers[row];
            if others.iter().all(|other| other.holds(&self.values)) && conjunctions.coded(number).holds(event) {
                found.push(number);
            }
        };
        if COLUMN {
            let firsts = self.firsts.iter().enumerate();
            firsts.filter(|(_, first)| first.holds(&self.values)).for_each(|(row, _)| test(row));
        } else {
            (0..self.numbers.len()).for_each(test);
        }
    }

    fn memory_usage(&self) -> usize {
        let numbers = self.numbers.capacity() + self.rows.capacity() + self.values.capacity() + self.set.capacity();
        (self.firsts.capacity() + self.others.capacity()) * size_of::<Test>()
            + self.others_of.capacity() * size_of::<Part>()
            + numbers * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::indexed::Indexed;
    use enroute_filter::Filter;
    use enroute_matcher::SubscriptionId;

    #[test]
    fn removing_leaves_no_gaps_for_long() {
        removing(Indexed::<Naive<true>>::default());
        removing(Indexed::<Naive<false>>::default());
    }

    fn removing<const COLUMN: bool>(mut engine: Indexed<Naive<COLUMN>>) {
        let filter = |id: u64| Filter::parse(&format!("a = {id} and b in (1, {id}, 5000) and c > 2")).unwrap();
        for id in 0..4_000 {
            engine.insert(SubscriptionId(id), &filter(id));
        }
        (0..3_900).for_each(|id| assert!(engine.remove(SubscriptionId(id))));
        let index = &engine.index;
        assert_eq!((index.firsts.len(), index.numbers.len()), (if COLUMN { 100 } else { 0 }, 100));
        assert!(index.others.len() < 1_500, "{}", index.others.len());
        let event = enroute_filter::Event::builder().attribute("a", 3_950).attribute("b", 1).attribute("c", 3);
        let mut found = Vec::new();
        engine.matches(&event.build().unwrap(), &mut found);
        assert_eq!(found, [SubscriptionId(3_950)]);
    }
}
