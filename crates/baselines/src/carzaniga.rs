//! SIENA's covering poset: A. Carzaniga, D. S. Rosenblum, A. L. Wolf, *Design and Evaluation of a Wide-Area Event
//! Notification Service*, ACM TOCS 19(3), 2001; as it is matched with.
//!
//! Each distinct conjunction is a node with those that are equal to it; edges lead to its immediate covers and to
//! what it immediately covers. A new node goes between its immediate predecessors and successors, and edges that this
//! makes indirect go. When a node is empty, its predecessors are joined to its successors where no other path is
//! left. An event is tested on a queue, of the roots at first: a node that matches reports its conjunctions and
//! queues the successors that are not yet visited; one that fails ends the way. Inner nodes are results too.
//!
//! Silent: how predecessors and successors are found. SIENA walks the poset; we scan signatures of all
//! nodes, bits for their slots and their equalities, which gives the same and takes less time, as what a new node
//! covers may lie below nodes that it does not. The roots' first predicates stand in a column, so that most roots fail without being looked up.
//!
//! Covering is decided on what codes say, of all kinds of predicates; nothing but what codes cannot say is left to
//! the check.

use crate::coded::{Coded, CodedEvent, Kind, Predicate};
use crate::indexed::{Conjunctions, Grasp, Index};
use std::collections::HashMap;
use std::sync::Arc;

/// Nodes by number.
#[derive(Debug, Default)]
pub(crate) struct Poset {
    nodes: Vec<Node>,
    /// By node: bits for its slots, and for its equalities. What covers another has no bit that the other lacks.
    signatures: Vec<u128>,
    vacant: Vec<u32>,
    roots: Vec<Root>,
    by_coded: HashMap<Arc<Coded>, u32>,
    /// By conjunction: its node.
    node_of: Vec<u32>,
    /// By node: the event that visited it last.
    visited: Vec<u32>,
    event: u32,
    queue: Vec<u32>,
}

#[derive(Debug, Default)]
struct Node {
    coded: Arc<Coded>,
    /// Conjunctions equal to it. Empty if the node is vacant.
    members: Vec<u32>,
    /// Its immediate covers, and what it immediately covers.
    above: Vec<u32>,
    below: Vec<u32>,
    /// Its place among the roots, if it has no cover.
    root: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Root {
    node: u32,
    first: Predicate,
}

impl Predicate {
    /// Whether every value that `other` allows is allowed.
    fn covers(&self, points: &[u64], other: &Predicate, its_points: &[u64]) -> bool {
        let covers_hull = |low, high| match self.kind {
            Kind::In => self.low <= low && high <= self.high,
            Kind::NotIn => high < self.low || self.high < low,
            Kind::Points => low == high && self.holds(low, points),
            Kind::NotPoints => {
                let points = self.points(points);
                points[points.partition_point(|&point| point < low)..].first().is_none_or(|&point| high < point)
            }
            Kind::Absent => false,
        };
        self.slot == other.slot
            && match other.kind {
                Kind::In => covers_hull(other.low, other.high),
                Kind::Points => other.points(its_points).iter().all(|&point| self.holds(point, points)),
                Kind::Absent => self.kind == Kind::Absent,
                Kind::NotIn | Kind::NotPoints => match self.kind {
                    Kind::In => other.hull(its_points).is_some_and(|hull| covers_hull(hull.low, hull.high)),
                    Kind::NotIn if other.kind == Kind::NotIn => other.low <= self.low && self.high <= other.high,
                    Kind::NotIn => self.low == self.high && !other.holds(self.low, its_points),
                    Kind::NotPoints => self.points(points).iter().all(|&point| !other.holds(point, its_points)),
                    Kind::Points | Kind::Absent => false,
                },
            }
    }
}

impl Coded {
    /// Whether every event that fits `other` fits this.
    fn covers(&self, other: &Coded) -> bool {
        self.predicates
            .iter()
            .all(|mine| other.predicates.iter().any(|theirs| mine.covers(&self.points, theirs, &other.points)))
    }

    fn signature(&self) -> u128 {
        let bits = |predicate: &Predicate| {
            let slot = 1 << (predicate.slot % u64::BITS);
            // An equality covers nothing but the same.
            let mixed = (predicate.low ^ u64::from(predicate.slot)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let equality = if predicate.is_equality() { 1 << (u64::BITS + (mixed >> 58) as u32) } else { 0 };
            slot | equality
        };
        self.predicates.iter().fold(0, |signature, predicate| signature | bits(predicate))
    }
}

impl Poset {
    fn node(&self, number: u32) -> &Node {
        &self.nodes[number as usize]
    }

    /// The nodes that cover a conjunction, and those that it covers.
    fn covers_and_covered(&self, coded: &Coded) -> (Vec<u32>, Vec<u32>) {
        let signature = coded.signature();
        let (mut covers, mut covered) = (Vec::new(), Vec::new());
        for (number, &its) in self.signatures.iter().enumerate() {
            if its & !signature == 0 && self.nodes[number].coded.covers(coded) {
                covers.push(number as u32);
            }
            if signature & !its == 0 && coded.covers(&self.nodes[number].coded) {
                covered.push(number as u32);
            }
        }
        // A vacant node is TRUE to look at, but nobody's.
        covers.retain(|&number| !self.node(number).members.is_empty());
        covered.retain(|&number| !self.node(number).members.is_empty());
        (covers, covered)
    }

    fn allocate(&mut self, coded: Arc<Coded>) -> u32 {
        let signature = coded.signature();
        let node = Node { coded, ..Node::default() };
        if let Some(number) = self.vacant.pop() {
            self.nodes[number as usize] = node;
            self.signatures[number as usize] = signature;
            return number;
        }
        self.nodes.push(node);
        self.signatures.push(signature);
        self.visited.push(0);
        self.nodes.len() as u32 - 1
    }

    /// The node of a conjunction, made now if none is equal.
    fn node_for(&mut self, coded: &Coded) -> u32 {
        if let Some(&number) = self.by_coded.get(coded) {
            return number;
        }
        let (covers, covered) = self.covers_and_covered(coded);
        // Equal, though it is said otherwise.
        if let Some(&equal) = covers.iter().find(|number| covered.binary_search(number).is_ok()) {
            return equal;
        }
        let coded = Arc::new(coded.clone());
        let number = self.allocate(coded.clone());
        self.by_coded.insert(coded, number);
        let is_in = |set: &[u32], number: &u32| set.binary_search(number).is_ok();
        let immediate = |set: &[u32], farther: &dyn Fn(u32) -> Vec<u32>| -> Vec<u32> {
            set.iter().copied().filter(|&one| !farther(one).iter().any(|other| is_in(set, other))).collect()
        };
        let above = immediate(&covers, &|one| self.node(one).below.clone());
        let below = immediate(&covered, &|one| self.node(one).above.clone());
        for &upper in &above {
            let (indirect, direct): (Vec<u32>, Vec<u32>) =
                self.node(upper).below.iter().partition(|&lower| is_in(&below, lower));
            self.nodes[upper as usize].below = direct;
            self.nodes[upper as usize].below.push(number);
            indirect.iter().for_each(|&lower| self.nodes[lower as usize].above.retain(|&other| other != upper));
        }
        for &lower in &below {
            self.nodes[lower as usize].above.push(number);
            self.remove_root(lower);
        }
        let is_root = above.is_empty();
        (self.nodes[number as usize].above, self.nodes[number as usize].below) = (above, below);
        if is_root {
            self.add_root(number);
        }
        number
    }

    /// Takes out a node without members.
    fn remove_node(&mut self, number: u32) {
        self.remove_root(number);
        let Node { coded, above, below, .. } = std::mem::take(&mut self.nodes[number as usize]);
        self.by_coded.remove(&coded);
        self.signatures[number as usize] = 0;
        self.vacant.push(number);
        for &lower in &below {
            self.nodes[lower as usize].above.retain(|&other| other != number);
        }
        for &upper in &above {
            self.nodes[upper as usize].below.retain(|&other| other != number);
            for &lower in &below {
                let its = &self.node(lower).coded;
                let has_path = self.node(upper).below.iter().any(|&other| self.node(other).coded.covers(its));
                if !has_path {
                    self.nodes[upper as usize].below.push(lower);
                    self.nodes[lower as usize].above.push(upper);
                }
            }
        }
        for lower in below {
            if self.node(lower).above.is_empty() {
                self.add_root(lower);
            }
        }
    }

    fn add_root(&mut self, number: u32) {
        let always = Predicate::new(0, Kind::In, 0, u64::MAX);
        let first = self.node(number).coded.predicates.iter().copied();
        // The points of a set are elsewhere, and an event lacks what is absent: these are tested with the rest.
        let first = first.min_by_key(|predicate| (!predicate.is_equality(), predicate.kind != Kind::In));
        let first = first.filter(|first| matches!(first.kind, Kind::In | Kind::NotIn)).unwrap_or(always);
        self.nodes[number as usize].root = Some(self.roots.len() as u32);
        self.roots.push(Root { node: number, first });
    }

    fn remove_root(&mut self, number: u32) {
        let Some(place) = self.nodes[number as usize].root.take() else { return };
        self.roots.swap_remove(place as usize);
        if let Some(&moved) = self.roots.get(place as usize) {
            self.nodes[moved.node as usize].root = Some(place);
        }
    }
}

impl Index for Poset {
    const NAME: &'static str = "carzaniga";

    fn grasp(_: &Predicate) -> Grasp {
        Grasp::Exact
    }

    fn insert(&mut self, number: u32, conjunctions: &Conjunctions) {
        let node = self.node_for(conjunctions.coded(number));
        self.nodes[node as usize].members.push(number);
        if self.node_of.len() <= number as usize {
            self.node_of.resize(number as usize + 1, 0);
        }
        self.node_of[number as usize] = node;
    }

    fn remove(&mut self, number: u32, _: &Conjunctions) {
        let node = self.node_of[number as usize];
        let members = &mut self.nodes[node as usize].members;
        members.retain(|&other| other != number);
        if members.is_empty() {
            self.remove_node(node);
        }
    }

    fn find(&mut self, event: &CodedEvent, _: &Conjunctions, found: &mut Vec<u32>) {
        if self.event == u32::MAX {
            self.visited.fill(0);
            self.event = 0;
        }
        self.event += 1;
        for root in &self.roots {
            if root.first.holds(event.value(root.first.slot), &[]) {
                self.queue.push(root.node);
            }
        }
        while let Some(number) = self.queue.pop() {
            let node = &self.nodes[number as usize];
            if node.coded.holds(event) {
                found.extend(&node.members);
                for &lower in &node.below {
                    if std::mem::replace(&mut self.visited[lower as usize], self.event) != self.event {
                        self.queue.push(lower);
                    }
                }
            }
        }
    }

    fn memory_usage(&self) -> usize {
        let lists = |node: &Node| node.members.capacity() + node.above.capacity() + node.below.capacity();
        let numbers =
            self.vacant.capacity() + self.node_of.capacity() + self.visited.capacity() + self.queue.capacity();
        let nodes: usize =
            self.nodes.iter().map(|node| lists(node) * size_of::<u32>() + node.coded.memory_usage()).sum();
        nodes
            + self.nodes.capacity() * size_of::<Node>()
            + self.signatures.capacity() * size_of::<u128>()
            + self.roots.capacity() * size_of::<Root>()
            + self.by_coded.capacity() * size_of::<(Arc<Coded>, u32)>()
            + self.by_coded.len() * size_of::<Coded>()
            + numbers * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use crate::indexed::Indexed;
    use crate::samples::{PAPER, engine, event, found};
    use enroute_filter::Filter;
    use enroute_matcher::SubscriptionId;
    use std::collections::BTreeSet;

    /// The edges as they are, which must be the covering relation without what follows from it.
    fn edges(poset: &Poset) -> BTreeSet<(u32, u32)> {
        let live: Vec<u32> = (0..poset.nodes.len() as u32).filter(|&n| !poset.node(n).members.is_empty()).collect();
        let covers = |a: u32, b: u32| a != b && poset.node(a).coded.covers(&poset.node(b).coded);
        let mut expected = BTreeSet::new();
        for &a in &live {
            for &b in &live {
                if covers(a, b) && !live.iter().any(|&between| covers(a, between) && covers(between, b)) {
                    expected.insert((a, b));
                }
            }
            let is_root = !live.iter().any(|&other| covers(other, a));
            assert_eq!(poset.node(a).root.map(|place| poset.roots[place as usize].node), is_root.then_some(a));
        }
        let down = live.iter().flat_map(|&a| poset.node(a).below.iter().map(move |&b| (a, b)));
        let up = live.iter().flat_map(|&b| poset.node(b).above.iter().map(move |&a| (a, b)));
        assert_eq!(down.collect::<BTreeSet<_>>(), expected);
        assert_eq!(up.collect::<BTreeSet<_>>(), expected);
        expected
    }

    #[test]
    fn the_poset_of_the_example() {
        let mut engine = engine::<Poset>(&PAPER);
        // B = 3 covers s1 and s6. (Node i is subscription i + 1.)
        assert_eq!(edges(&engine.index), BTreeSet::from([(3, 0), (3, 5)]));
        let below = engine.conjunctions.coded(5).predicates.len();
        assert_eq!(below, 3);
        assert_eq!(found(&mut engine, &event(&[("A", 2), ("B", 3), ("C", 4), ("D", 6)])), [1, 4, 6]);
        // D >= 6 covers s5 and s6; equal subscriptions share its node.
        for id in [7, 8] {
            engine.insert(SubscriptionId(id), &Filter::parse("D >= 6").unwrap());
        }
        assert_eq!(edges(&engine.index), BTreeSet::from([(3, 0), (3, 5), (6, 4), (6, 5)]));
        assert_eq!(found(&mut engine, &event(&[("D", 9), ("E", 3)])), [5, 7, 8]);
        engine.remove(SubscriptionId(4));
        engine.remove(SubscriptionId(7));
        assert_eq!(edges(&engine.index), BTreeSet::from([(6, 4), (6, 5)]));
    }

    #[test]
    fn edges_are_immediate_after_any_updates() {
        let mut engine = Indexed::<Poset>::default();
        let mut random = 7_u64;
        let mut next = |bound: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % bound
        };
        let mut live = BTreeSet::new();
        let mut most = 0;
        for step in 0..400 {
            let id = next(40);
            if live.remove(&id) {
                assert!(engine.remove(SubscriptionId(id)));
            } else {
                let mut part = |name: &str| match next(7) {
                    0 => format!("{name} >= {}", next(4)),
                    1 => format!("{name} <= {}", next(4)),
                    2 => format!("{name} = {}", next(4)),
                    3 => format!("{name} <> {}", next(4)),
                    4 => format!("{name} in (0, {})", 1 + next(3)),
                    5 => format!("{name} not in (1, {})", 2 + next(3)),
                    _ => "true".into(),
                };
                let text = format!("{} and {}", part("a"), part("b"));
                engine.insert(SubscriptionId(id), &Filter::parse(&text).unwrap());
                live.insert(id);
            }
            if step % 5 == 0 && !live.is_empty() {
                most = most.max(edges(&engine.index).len());
            }
        }
        assert!(most > 20, "{most}");
    }
}
