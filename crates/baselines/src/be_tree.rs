//! BE-tree: M. Sadoghi, H.-A. Jacobsen, *BE-Tree: An Index Structure to Efficiently Match Boolean Expressions over
//! High-Dimensional Discrete Space*, SIGMOD 2011.
//!
//! A c-node has a leaf, a short list of conjunctions, and p-nodes, one for an attribute each. A p-node divides its
//! attribute's domain by halving, over and over, into intervals with a c-node each. Inserting goes to the p-node that
//! has the most conjunctions below it, among the attributes of the conjunction, down to the smallest interval that
//! encloses its predicate, and so on from the c-node there; without such a p-node it stays in the leaf. A leaf that
//! overflows is relieved by halving its interval: what fits a half moves there; if it is still over, by a new p-node
//! on the attribute that most of its conjunctions have. Matching tests the leaf, and goes down each p-node the event
//! has an attribute for, along the intervals that hold the value. Empty nodes go.
//!
//! Silent: what a leaf that nothing relieves does (we: holds twice as many from then on), ties (the attribute known
//! first), predicates that are no intervals (of sets of points the hull is taken, `<>` and absence are tested in the
//! leaf only), and the domain, which is given there. Here it is all values. So an interval without an end is not
//! halved, but divided in the middle of the bounds of what is in its leaf, or, if that is farther, at twice the width
//! that was divided off before it. And if all in a leaf has the same bounds, the halvings down to these are made at
//! once. Leaves test all that codes can say, so only the rest is left to the check.

use crate::code::{self, ABSENT, GREATEST, LEAST};
use crate::coded::{CodedEvent, Kind, Predicate, is_numeric};
use crate::indexed::{Conjunctions, Grasp, Index};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// So many conjunctions a leaf holds at first.
const MAX_CAP: usize = 5;

/// Nodes by number; the root is c-node 0.
#[derive(Debug)]
pub(crate) struct BeTree {
    c_nodes: Arena<CNode>,
    p_nodes: Arena<PNode>,
    intervals: Arena<Interval>,
    /// By conjunction: the c-node that has it in its leaf.
    place: Vec<u32>,
}

#[derive(Debug, Default)]
struct CNode {
    leaf: Vec<u32>,
    capacity: usize,
    p_nodes: Vec<u32>,
    /// The interval whose c-node it is; none of the root.
    interval: Option<u32>,
}

#[derive(Debug, Default)]
struct PNode {
    slot: u32,
    /// The interval of the whole domain.
    top: u32,
    c_node: u32,
    /// How many conjunctions are below.
    size: usize,
}

#[derive(Debug, Default)]
struct Interval {
    low: u64,
    high: u64,
    /// The end of its lower half, once it is divided.
    middle: Option<u64>,
    c_node: u32,
    halves: [Option<u32>; 2],
    parent: Option<u32>,
    p_node: u32,
}

#[derive(Debug, Default)]
struct Arena<T> {
    items: Vec<T>,
    vacant: Vec<u32>,
}

impl<T: Default> Arena<T> {
    fn insert(&mut self, item: T) -> u32 {
        if let Some(number) = self.vacant.pop() {
            self.items[number as usize] = item;
            return number;
        }
        self.items.push(item);
        self.items.len() as u32 - 1
    }

    fn remove(&mut self, number: u32) -> T {
        self.vacant.push(number);
        std::mem::take(&mut self.items[number as usize])
    }
}

impl<T> std::ops::Index<u32> for Arena<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        &self.items[number as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Arena<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.items[number as usize]
    }
}

impl Default for BeTree {
    fn default() -> Self {
        let mut c_nodes = Arena::default();
        c_nodes.insert(CNode { capacity: MAX_CAP, ..CNode::default() });
        BeTree { c_nodes, p_nodes: Arena::default(), intervals: Arena::default(), place: Vec::new() }
    }
}

/// Where a code lies on a line on which halving is meant: numbers by value, as their codes are a logarithmic scale.
fn position(slot: u32, code: u64) -> f64 {
    if is_numeric(slot) { code::to_float(code) } else { code as f64 }
}

/// A code near a position.
fn code_at(slot: u32, position: f64) -> u64 {
    let number = enroute_filter::Number::from_f64(position).filter(|_| is_numeric(slot));
    number.map_or(position as u64, code::of_number)
}

/// The interval a conjunction allows on a slot, if it can be told by one.
fn bounds(number: u32, slot: u32, conjunctions: &Conjunctions) -> Option<(u64, u64)> {
    let coded = conjunctions.coded(number);
    let predicate = coded.predicates.iter().find(|predicate| predicate.slot == slot)?;
    is_indexed(predicate).then(|| predicate.hull(&coded.points).map(|hull| (hull.low, hull.high)))?
}

fn is_indexed(predicate: &Predicate) -> bool {
    match predicate.kind {
        Kind::In | Kind::Points => true,
        Kind::NotIn | Kind::NotPoints | Kind::Absent => false,
    }
}

impl BeTree {
    /// Puts a conjunction where it belongs in or below a c-node.
    fn insert_below(&mut self, mut c_node: u32, number: u32, conjunctions: &Conjunctions) {
        loop {
            let usable = self.c_nodes[c_node].p_nodes.iter().copied().filter_map(|p_node| {
                let slot = self.p_nodes[p_node].slot;
                Some((self.p_nodes[p_node].size, Reverse(slot), p_node, bounds(number, slot, conjunctions)?))
            });
            let Some((_, _, p_node, bounds)) = usable.max() else { break };
            self.p_nodes[p_node].size += 1;
            let mut interval = self.p_nodes[p_node].top;
            while let Some(half) = self.half_around(interval, bounds) {
                interval = half;
            }
            c_node = self.intervals[interval].c_node;
        }
        let node = &mut self.c_nodes[c_node];
        node.leaf.push(number);
        self.place[number as usize] = c_node;
        if node.leaf.len() > node.capacity {
            self.relieve(c_node, conjunctions);
        }
    }

    /// The half of an interval, if it exists, that encloses some bounds.
    fn half_around(&self, interval: u32, bounds: (u64, u64)) -> Option<u32> {
        let halves = self.intervals[interval].halves;
        halves.into_iter().flatten().find(|&half| {
            let Interval { low, high, .. } = self.intervals[half];
            encloses((low, high), bounds)
        })
    }

    /// Makes room in a leaf that overflows.
    fn relieve(&mut self, c_node: u32, conjunctions: &Conjunctions) {
        if let Some(interval) = self.c_nodes[c_node].interval {
            self.halve(interval, conjunctions);
        }
        while self.c_nodes[c_node].leaf.len() > self.c_nodes[c_node].capacity {
            let Some(slot) = self.commonest_unused(c_node, conjunctions) else {
                self.c_nodes[c_node].capacity *= 2;
                return;
            };
            self.add_p_node(c_node, slot, conjunctions);
        }
    }

    /// Moves what fits a half that does not exist yet into it.
    fn halve(&mut self, interval: u32, conjunctions: &Conjunctions) {
        let Interval { low, high, c_node, p_node, .. } = self.intervals[interval];
        let slot = self.p_nodes[p_node].slot;
        let Some(middle) = self.intervals[interval].middle.or_else(|| self.middle(interval, slot, conjunctions)) else {
            return;
        };
        self.intervals[interval].middle = Some(middle);
        for (side, half) in [(low, middle), (middle + 1, high)].into_iter().enumerate() {
            if self.intervals[interval].halves[side].is_some() {
                continue;
            }
            let leaf = std::mem::take(&mut self.c_nodes[c_node].leaf);
            let fits = |&number: &u32| bounds(number, slot, conjunctions).is_some_and(|bounds| encloses(half, bounds));
            let (moved, kept): (Vec<u32>, Vec<u32>) = leaf.into_iter().partition(fits);
            self.c_nodes[c_node].leaf = kept;
            if !moved.is_empty() {
                let child = self.add_interval(half, Some(interval), p_node);
                self.intervals[interval].halves[side] = Some(child);
                let below = self.intervals[child].c_node;
                moved.into_iter().for_each(|number| self.insert_below(below, number, conjunctions));
            }
        }
    }

    /// Where an interval is divided; none if that would help nothing.
    fn middle(&self, interval: u32, slot: u32, conjunctions: &Conjunctions) -> Option<u64> {
        let Interval { low, high, c_node, parent, .. } = self.intervals[interval];
        let all = self.c_nodes[c_node].leaf.iter().filter_map(|&number| bounds(number, slot, conjunctions));
        let first = all.clone().next()?;
        if all.clone().all(|bounds| bounds == first) {
            return if first.1 < high { Some(first.1) } else { (low < first.0).then(|| first.0 - 1) };
        }
        let ends = all.flat_map(|(low, high)| [low, high]).filter(|&end| LEAST < end && end < GREATEST);
        let (least, greatest) = ends.clone().min().zip(ends.max())?;
        let at = |code| position(slot, code);
        let mean = at(least) / 2.0 + at(greatest) / 2.0;
        let parent = parent.map(|parent| &self.intervals[parent]);
        let middle = match (low == LEAST, high == GREATEST) {
            (true, true) => mean,
            (false, false) => at(low) / 2.0 + at(high) / 2.0,
            (false, true) => match parent {
                Some(parent) if parent.low > LEAST => mean.max(at(low) + 2.0 * (at(low) - at(parent.low))),
                _ => mean,
            },
            (true, false) => match parent {
                Some(parent) if parent.high < GREATEST => mean.min(at(high) - 2.0 * (at(parent.high) - at(high))),
                _ => mean,
            },
        };
        let middle = code_at(slot, middle);
        Some(if (low..high).contains(&middle) { middle } else { low + (high - low) / 2 })
    }

    fn add_interval(&mut self, (low, high): (u64, u64), parent: Option<u32>, p_node: u32) -> u32 {
        let c_node = self.c_nodes.insert(CNode { capacity: MAX_CAP, ..CNode::default() });
        let halves = [None; 2];
        let interval = self.intervals.insert(Interval { low, high, middle: None, c_node, halves, parent, p_node });
        self.c_nodes[c_node].interval = Some(interval);
        interval
    }

    /// The slot, not used on the way to this c-node, that most of its leaf have bounds on; none if it would not
    /// gather two.
    fn commonest_unused(&self, c_node: u32, conjunctions: &Conjunctions) -> Option<u32> {
        let mut used = Vec::new();
        let mut current = c_node;
        while let Some(interval) = self.c_nodes[current].interval {
            let p_node = &self.p_nodes[self.intervals[interval].p_node];
            used.push(p_node.slot);
            current = p_node.c_node;
        }
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for &number in &self.c_nodes[c_node].leaf {
            let predicates = conjunctions.coded(number).predicates.iter().filter(|predicate| is_indexed(predicate));
            predicates.for_each(|predicate| *counts.entry(predicate.slot).or_default() += 1);
        }
        counts.retain(|slot, count| *count >= 2 && !used.contains(slot));
        counts.into_iter().max_by_key(|&(slot, count)| (count, Reverse(slot))).map(|(slot, _)| slot)
    }

    /// Moves what has bounds on the slot from the leaf to a new p-node.
    fn add_p_node(&mut self, c_node: u32, slot: u32, conjunctions: &Conjunctions) {
        let leaf = std::mem::take(&mut self.c_nodes[c_node].leaf);
        let (moved, kept): (Vec<u32>, Vec<u32>) =
            leaf.into_iter().partition(|&number| bounds(number, slot, conjunctions).is_some());
        self.c_nodes[c_node].leaf = kept;
        let p_node = self.p_nodes.insert(PNode { slot, c_node, ..PNode::default() });
        self.p_nodes[p_node].top = self.add_interval((LEAST, GREATEST), None, p_node);
        self.c_nodes[c_node].p_nodes.push(p_node);
        moved.into_iter().for_each(|number| self.insert_below(c_node, number, conjunctions));
    }

    /// From a c-node up: conjunctions below are one less, and empty nodes go.
    fn prune(&mut self, mut c_node: u32) {
        while let Some(mut interval) = self.c_nodes[c_node].interval {
            let p_node = self.intervals[interval].p_node;
            self.p_nodes[p_node].size -= 1;
            let above = self.p_nodes[p_node].c_node;
            loop {
                let Interval { c_node, halves, parent, .. } = self.intervals[interval];
                let node = &self.c_nodes[c_node];
                if !node.leaf.is_empty() || !node.p_nodes.is_empty() || halves != [None; 2] {
                    break;
                }
                self.c_nodes.remove(c_node);
                self.intervals.remove(interval);
                let Some(parent) = parent else {
                    self.p_nodes.remove(p_node);
                    self.c_nodes[above].p_nodes.retain(|&other| other != p_node);
                    break;
                };
                for half in &mut self.intervals[parent].halves {
                    half.take_if(|half| *half == interval);
                }
                interval = parent;
            }
            c_node = above;
        }
    }

    fn find_below(&self, c_node: u32, event: &CodedEvent, conjunctions: &Conjunctions, found: &mut Vec<u32>) {
        let node = &self.c_nodes[c_node];
        found.extend(node.leaf.iter().filter(|&&number| conjunctions.coded(number).holds(event)));
        for &p_node in &node.p_nodes {
            let PNode { slot, top, .. } = self.p_nodes[p_node];
            let value = event.value(slot);
            if value == ABSENT {
                continue;
            }
            let mut interval = Some(top);
            while let Some(current) = interval {
                self.find_below(self.intervals[current].c_node, event, conjunctions, found);
                interval = self.half_around(current, (value, value));
            }
        }
    }
}

fn encloses((low, high): (u64, u64), inner: (u64, u64)) -> bool {
    low <= inner.0 && inner.1 <= high
}

impl Index for BeTree {
    const NAME: &'static str = "be-tree";

    fn grasp(_: &Predicate) -> Grasp {
        Grasp::Exact
    }

    fn insert(&mut self, number: u32, conjunctions: &Conjunctions) {
        if self.place.len() <= number as usize {
            self.place.resize(number as usize + 1, 0);
        }
        self.insert_below(0, number, conjunctions);
    }

    fn remove(&mut self, number: u32, _: &Conjunctions) {
        let c_node = self.place[number as usize];
        self.c_nodes[c_node].leaf.retain(|&other| other != number);
        self.prune(c_node);
    }

    fn find(&mut self, event: &CodedEvent, conjunctions: &Conjunctions, found: &mut Vec<u32>) {
        self.find_below(0, event, conjunctions, found);
    }

    fn memory_usage(&self) -> usize {
        let lists: usize = self.c_nodes.items.iter().map(|node| node.leaf.capacity() + node.p_nodes.capacity()).sum();
        self.c_nodes.items.capacity() * size_of::<CNode>()
            + self.p_nodes.items.capacity() * size_of::<PNode>()
            + self.intervals.items.capacity() * size_of::<Interval>()
            + (lists + self.place.capacity()) * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::indexed::Indexed;
    use crate::samples::{PAPER, engine, event, found};
    use enroute_filter::{Event, Filter};
    use enroute_matcher::SubscriptionId;

    fn live<T>(arena: &Arena<T>) -> usize {
        arena.items.len() - arena.vacant.len()
    }

    #[test]
    fn six_are_one_more_than_a_leaf_holds() {
        let mut engine = engine::<BeTree>(&PAPER);
        let tree = &engine.index;
        // The commonest attribute is B, of s1, s3, s4 and s6; those fit its leaf. The others stay.
        assert_eq!((live(&tree.p_nodes), live(&tree.intervals), live(&tree.c_nodes)), (1, 1, 2));
        assert_eq!((&tree.c_nodes[0].leaf[..], &tree.c_nodes[1].leaf[..]), (&[1, 4][..], &[0, 2, 3, 5][..]));
        assert_eq!(found(&mut engine, &event(&[("B", 1), ("C", 6), ("E", 5)])), [3]);
    }

    #[test]
    fn intervals_are_halved_and_empty_nodes_go() {
        let mut engine = Indexed::<BeTree>::default();
        let filter = |id: u64| Filter::parse(&format!("a between {id} and {} and b = {}", id + 3, id % 5)).unwrap();
        (0..1_000).for_each(|id| assert!(engine.insert(SubscriptionId(id), &filter(id))));
        let tree = &engine.index;
        let longest = tree.c_nodes.items.iter().map(|node| node.leaf.len()).max();
        assert!(longest <= Some(2 * MAX_CAP) && live(&tree.intervals) > 100, "{longest:?}");
        for value in 0..1_003_u64 {
            let event = Event::builder().attribute("a", value as i64).attribute("b", 2).build().unwrap();
            let expected: Vec<u64> =
                (value.saturating_sub(3)..=value).filter(|id| *id < 1_000 && id % 5 == 2).collect();
            assert_eq!(found(&mut engine, &event), expected);
        }
        // One is kept, as an engine without any begins anew.
        (1..1_000).for_each(|id| assert!(engine.remove(SubscriptionId(id))));
        let tree = &engine.index;
        assert!(
            live(&tree.p_nodes) <= 2 && live(&tree.c_nodes) < 30,
            "{} {}",
            live(&tree.p_nodes),
            live(&tree.c_nodes)
        );
        assert_eq!(tree.c_nodes.items.iter().map(|node| node.leaf.len()).sum::<usize>(), 1);
    }
}
