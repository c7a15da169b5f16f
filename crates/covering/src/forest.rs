//! The covering forest: conjunctions ordered by covering, its roots being all that anybody else needs to know.
//!
//! Each distinct conjunction is one node with the set of its owners. A node that another one covers hangs under *one* such
//! node (any of them: the forest answers what its roots are, not who else covers whom), so that
//!
//! 1. a parent covers its children;
//! 2. no root is covered by any other node;
//! 3. each node has an owner.
//!
//! From these follows that the roots are the maximal conjunctions, whatever was inserted and removed in whatever order.
//!
//! **Insert.** If a root covers the new conjunction, it becomes that root's child. Else it is a root, and the roots that it
//! covers become its children, each keeping its own tree.
//!
//! **Remove.** The children of an inner node go to its parent, which covers them too. The children of a root are first
//! paired: neighbours in sorted order are compared, and one that covers the other takes it as a child, until no pair is
//! left to join. (As in a pairing heap, this keeps a long chain `a >= 1`, `a >= 2`, ... from being walked anew with each
//! removal of its greatest member.) Those that remain are inserted anew, trees and all.
//!
//! **Equivalents.** Two conjunctions that cover each other without being equal (possible with patterns only) are ordered by
//! [`Ord`]: the smaller one stands above, so that there is one root whoever came first.

use crate::covers;
use crate::index::{NodeId, RootIndex};
use enroute_filter::Conjunction;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Conjunctions with their owners, ordered by covering: a root is one that no other one covers. What the roots are depends
/// on what is in the forest, not on the order in which it came.
///
/// Owners are numbers of the caller's choice; the forest only tells them apart.
#[derive(Clone, Debug, Default)]
pub struct Forest {
    ids: BTreeMap<Arc<Conjunction>, NodeId>,
    nodes: BTreeMap<NodeId, Node>,
    roots: BTreeSet<Arc<Conjunction>>,
    index: RootIndex,
    next_id: NodeId,
}

#[derive(Clone, Debug)]
struct Node {
    conjunction: Arc<Conjunction>,
    owners: BTreeSet<u64>,
    parent: Option<NodeId>,
    children: BTreeSet<NodeId>,
}

/// What an insert or a remove changed in the set of roots: the difference between what it is and what it was.
///
/// Both lists are sorted, and no conjunction is in both. Whoever tells others applies `added` before `removed`, so that no
/// event falls between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RootChange {
    /// Roots now that were none before.
    pub added: Vec<Arc<Conjunction>>,
    /// Roots before that are none now.
    pub removed: Vec<Arc<Conjunction>>,
}

impl RootChange {
    /// Whether the roots are what they were.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

/// The net change of the roots over several changes of a forest: what becomes a root and what stops being one. What does both
/// cancels out.
#[derive(Clone, Debug, Default)]
pub struct RootDifference {
    added: BTreeSet<Arc<Conjunction>>,
    removed: BTreeSet<Arc<Conjunction>>,
}

impl Forest {
    /// A forest without conjunctions.
    pub fn new() -> Forest {
        Forest::default()
    }

    /// Notes that `owner` wants `conjunction`. Nothing changes if it is known to want it already.
    ///
    /// Costs the look-up of a root that covers it and, if there is none, of the roots that it covers.
    pub fn insert(&mut self, owner: u64, conjunction: &Conjunction) -> RootChange {
        if let Some(&id) = self.ids.get(conjunction) {
            self.node_mut(id).owners.insert(owner);
            return RootChange::default();
        }
        let id = self.next_id;
        self.next_id = id.next();
        let conjunction = Arc::new(conjunction.clone());
        self.ids.insert(Arc::clone(&conjunction), id);
        let owners = BTreeSet::from([owner]);
        self.nodes.insert(id, Node { conjunction, owners, parent: None, children: BTreeSet::new() });
        let mut difference = RootDifference::default();
        self.place(id, &mut difference);
        difference.into_change()
    }

    /// Notes that `owner` no longer wants `conjunction`. Nothing changes if it is not known to want it.
    ///
    /// Costs an [insert](Forest::insert) of each child that a root leaves behind.
    pub fn remove(&mut self, owner: u64, conjunction: &Conjunction) -> RootChange {
        let Some(&id) = self.ids.get(conjunction) else { return RootChange::default() };
        let owners = &mut self.node_mut(id).owners;
        owners.remove(&owner);
        if !owners.is_empty() {
            return RootChange::default();
        }
        let node = self.nodes.remove(&id).expect("each id has a node");
        self.ids.remove(&node.conjunction);
        let mut difference = RootDifference::default();
        match node.parent {
            Some(parent) => {
                self.node_mut(parent).children.remove(&id);
                for child in node.children {
                    self.hang(child, parent);
                }
            }
            None => {
                self.unroot(id, &node.conjunction, &mut difference);
                for child in self.paired(node.children) {
                    self.place(child, &mut difference);
                }
            }
        }
        difference.into_change()
    }

    /// The conjunctions that no other one covers, sorted.
    pub fn roots(&self) -> impl ExactSizeIterator<Item = &Arc<Conjunction>> {
        self.roots.iter()
    }

    /// How many distinct conjunctions there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many of the conjunctions are roots.
    pub fn root_count(&self) -> usize {
        self.roots.len()
    }

    /// Finds the place of a node that has no parent and is no root; what hangs under it comes along.
    fn place(&mut self, id: NodeId, difference: &mut RootDifference) {
        let conjunction = Arc::clone(&self.node(id).conjunction);
        if let Some(root) = self.index.find_coverer(&conjunction, |root| stands_above(root, &conjunction)) {
            self.hang(id, root);
            return;
        }
        for (below, covered) in self.index.find_covered(&conjunction, |root| stands_above(&conjunction, root)) {
            self.unroot(below, &covered, difference);
            self.hang(below, id);
        }
        self.index.insert(id, &conjunction);
        self.roots.insert(Arc::clone(&conjunction));
        difference.add(conjunction);
    }

    fn unroot(&mut self, id: NodeId, conjunction: &Arc<Conjunction>, difference: &mut RootDifference) {
        self.index.remove(id, conjunction);
        self.roots.remove(conjunction);
        difference.remove(Arc::clone(conjunction));
    }

    fn hang(&mut self, child: NodeId, parent: NodeId) {
        self.node_mut(child).parent = Some(parent);
        self.node_mut(parent).children.insert(child);
    }

    /// Orphans a removed root's children, lets neighbours that cover one another join, and returns the others, sorted.
    fn paired(&mut self, children: BTreeSet<NodeId>) -> Vec<NodeId> {
        let mut orphans: Vec<NodeId> = children.into_iter().collect();
        for &orphan in &orphans {
            self.node_mut(orphan).parent = None;
        }
        orphans.sort_by(|&a, &b| self.node(a).conjunction.cmp(&self.node(b).conjunction));
        loop {
            let before = orphans.len();
            let mut left = Vec::with_capacity(before);
            for pair in orphans.chunks(2) {
                match *pair {
                    [a, b] if self.is_above(a, b) => {
                        self.hang(b, a);
                        left.push(a);
                    }
                    [a, b] if self.is_above(b, a) => {
                        self.hang(a, b);
                        left.push(b);
                    }
                    _ => left.extend_from_slice(pair),
                }
            }
            orphans = left;
            if orphans.len() == before {
                return orphans;
            }
        }
    }

    fn is_above(&self, a: NodeId, b: NodeId) -> bool {
        stands_above(&self.node(a).conjunction, &self.node(b).conjunction)
    }

    fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(&id).expect("ids are of nodes")
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes.get_mut(&id).expect("ids are of nodes")
    }
}

/// Whether `a` covers `b` and, if each covers the other, comes first.
fn stands_above(a: &Conjunction, b: &Conjunction) -> bool {
    covers(a, b) && (a < b || !covers(b, a))
}

impl RootDifference {
    /// Takes in a further change.
    pub fn apply(&mut self, change: RootChange) {
        change.added.into_iter().for_each(|root| self.add(root));
        change.removed.into_iter().for_each(|root| self.remove(root));
    }

    /// All changes as one.
    pub fn into_change(self) -> RootChange {
        RootChange { added: self.added.into_iter().collect(), removed: self.removed.into_iter().collect() }
    }

    fn add(&mut self, root: Arc<Conjunction>) {
        if !self.removed.remove(&root) {
            self.added.insert(root);
        }
    }

    fn remove(&mut self, root: Arc<Conjunction>) {
        if !self.added.remove(&root) {
            self.removed.insert(root);
        }
    }
}

#[cfg(test)]
mod tests;
