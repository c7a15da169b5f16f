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
//! covers become its children, each keeping its own tree. The [index](crate::index) finds both.
//!
//! **Remove.** The children of an inner node go to its parent, which covers them too. The children of a root are inserted
//! anew, trees and all, each after all that may cover it: first those with few constraints, then those with wide ones. So
//! none of them covers a root that is there. On the way a *trail* is kept, the last child and its ancestors: most children
//! hang themselves under one of these, and need not ask the index. What is not on the way to the last child leaves the trail
//! for good, so that the trail costs as much as there are children. (Of a chain `a >= 1`, `a >= 2`, ... each link thus hangs under
//! the one before, and a removal of the greatest moves one; where two attributes are bounded, the trees are Cartesian trees,
//! in which most nodes have few children.)
//!
//! **Equivalents.** Two conjunctions that cover each other without being equal (possible with patterns only) are ordered by
//! [`Ord`]: the smaller one stands above, so that there is one root whoever came first.
//!
//! **TRUE** covers all, and stands beside the nodes: who comes to want everything, or no longer does, moves none of them.

use crate::covers;
use crate::index::{RootIndex, Width};
use crate::nodes::{NodeId, Nodes};
use crate::summary::PredicateSummary;
use enroute_filter::Conjunction;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Conjunctions with their owners, ordered by covering: a root is one that no other one covers. What the roots are depends
/// on what is in the forest, not on the order in which it came.
///
/// Owners are numbers of the caller's choice; the forest only tells them apart.
#[derive(Clone, Debug, Default)]
pub struct Forest {
    nodes: Nodes,
    index: RootIndex,
    root_count: usize,
    everything: Option<Everything>,
}

/// TRUE, if somebody wants it.
#[derive(Clone, Debug)]
struct Everything {
    conjunction: Conjunction,
    owners: BTreeSet<u64>,
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

/// The nodes that a change has made roots, and those that it has hung under others.
#[derive(Default)]
struct Moves {
    raised: Vec<NodeId>,
    lowered: Vec<NodeId>,
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
        if conjunction.constraints().is_empty() {
            return self.insert_everything(owner, conjunction);
        }
        let hash = self.nodes.hash(conjunction);
        if let Some(id) = self.nodes.find(conjunction, hash) {
            self.nodes.add_owner(id, owner);
            return RootChange::default();
        }
        let id = self.nodes.add(conjunction.clone(), hash, owner);
        let mut moves = Moves::default();
        self.place(id, true, &mut moves);
        self.change(moves, None)
    }

    /// Notes that `owner` no longer wants `conjunction`. Nothing changes if it is not known to want it.
    ///
    /// Costs an [insert](Forest::insert) of each child that a root leaves behind, at most.
    pub fn remove(&mut self, owner: u64, conjunction: &Conjunction) -> RootChange {
        if conjunction.constraints().is_empty() {
            return self.remove_everything(owner);
        }
        let hash = self.nodes.hash(conjunction);
        let Some(id) = self.nodes.find(conjunction, hash) else { return RootChange::default() };
        if !self.nodes.remove_owner(id, owner) {
            return RootChange::default();
        }
        let children = self.nodes.take_children(id);
        let mut moves = Moves::default();
        let leaving = match self.nodes.parent(id) {
            Some(parent) => {
                self.nodes.take(id);
                children.into_iter().for_each(|child| self.nodes.hang(child, parent));
                None
            }
            None => {
                self.index.remove(id, &self.nodes);
                self.root_count -= 1;
                self.place_orphans(children, &mut moves);
                Some(id)
            }
        };
        let change = self.change(moves, leaving);
        self.nodes.remove(id);
        change
    }

    /// The conjunctions that no other one covers, sorted. Goes through all conjunctions.
    pub fn roots(&self) -> impl ExactSizeIterator<Item = &Conjunction> {
        let roots = match &self.everything {
            Some(everything) => vec![&everything.conjunction],
            None => self.roots_below_everything(),
        };
        roots.into_iter()
    }

    /// As [`Forest::roots`], in no order that means anything.
    pub(crate) fn unsorted_roots(&self) -> impl Iterator<Item = &Conjunction> {
        let everything = self.everything.as_ref().map(|everything| &everything.conjunction);
        let below = everything.is_none().then(|| self.nodes.roots().map(|id| self.nodes.conjunction(id)));
        everything.into_iter().chain(below.into_iter().flatten())
    }

    /// How many distinct conjunctions there are.
    pub fn len(&self) -> usize {
        self.nodes.len() + usize::from(self.everything.is_some())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many of the conjunctions are roots.
    pub fn root_count(&self) -> usize {
        if self.everything.is_some() { 1 } else { self.root_count }
    }

    /// What the roots say of their attributes, for the 32 of which most of them speak, these first. TRUE does not count.
    ///
    /// Looks at each attribute, and sorts 16,384 predicates at most, of those attributes that come first: a few milliseconds.
    pub fn predicates(&self) -> Vec<PredicateSummary> {
        self.index.predicates(&self.nodes)
    }

    fn insert_everything(&mut self, owner: u64, conjunction: &Conjunction) -> RootChange {
        if let Some(everything) = &mut self.everything {
            everything.owners.insert(owner);
            return RootChange::default();
        }
        let removed = shared(self.roots_below_everything());
        self.everything = Some(Everything { conjunction: conjunction.clone(), owners: BTreeSet::from([owner]) });
        RootChange { added: shared([conjunction]), removed }
    }

    fn remove_everything(&mut self, owner: u64) -> RootChange {
        let Some(everything) = &mut self.everything else { return RootChange::default() };
        everything.owners.remove(&owner);
        if !everything.owners.is_empty() {
            return RootChange::default();
        }
        let removed = shared([&everything.conjunction]);
        self.everything = None;
        RootChange { added: shared(self.roots_below_everything()), removed }
    }

    fn roots_below_everything(&self) -> Vec<&Conjunction> {
        let mut roots: Vec<&Conjunction> = self.nodes.roots().map(|id| self.nodes.conjunction(id)).collect();
        roots.sort_unstable();
        roots
    }

    /// Finds the place of a node that has no parent and is no root; what hangs under it comes along. Returns the root that it
    /// hangs under now, if it is not one itself.
    ///
    /// `may_cover_roots` is whether it is worth looking.
    fn place(&mut self, id: NodeId, may_cover_roots: bool, moves: &mut Moves) -> Option<NodeId> {
        let nodes = &self.nodes;
        let mut reading = self.index.read(nodes.conjunction(id));
        if let Some(root) = self.index.find_coverer(&reading, |root| is_above(nodes, root, id)) {
            self.nodes.hang(id, root);
            return Some(root);
        }
        let narrowest = self.index.narrowest(&reading).expect("TRUE is no node");
        let covered = match may_cover_roots {
            true => self.index.find_covered(&reading, &narrowest, |root| is_above(nodes, id, root)),
            false => Vec::new(),
        };
        let number = self.index.insert(id, &mut reading, &narrowest, nodes);
        self.nodes.set_root_id(id, number);
        moves.raised.push(id);
        self.root_count = self.root_count + 1 - covered.len();
        for below in covered {
            self.index.remove(below, &self.nodes);
            self.nodes.hang(below, id);
            moves.lowered.push(below);
        }
        None
    }

    /// Finds the places of what hung under a root that is gone.
    fn place_orphans(&mut self, orphans: Vec<NodeId>, moves: &mut Moves) {
        let width = |id: NodeId| (self.index.read(self.nodes.conjunction(id)).width(), id);
        let mut orphans: Vec<(Width, NodeId)> = orphans.into_iter().map(width).collect();
        orphans.sort();
        let mut trail: Vec<NodeId> = Vec::new();
        let mut last_width = None;
        for (width, id) in orphans {
            while trail.last().is_some_and(|&last| !is_above(&self.nodes, last, id)) {
                trail.pop();
            }
            match trail.last() {
                Some(&parent) => self.nodes.hang(id, parent),
                None => {
                    // Of two that are as wide the later one may cover the earlier one. And with patterns covering may be
                    // known of an orphan and a root, though not of that root and the one that was above the orphan.
                    let may_cover_roots =
                        last_width.as_ref() == Some(&width) || self.nodes.conjunction(id).has_patterns();
                    trail.extend(self.place(id, may_cover_roots, moves));
                }
            }
            trail.push(id);
            last_width = Some(width);
        }
    }

    /// What others are to know of the moves, and of a root that is about to go.
    fn change(&self, mut moves: Moves, leaving: Option<NodeId>) -> RootChange {
        if self.everything.is_some() {
            return RootChange::default();
        }
        // What was raised and then lowered was no root before.
        moves.raised.sort_unstable();
        moves.lowered.retain(|id| moves.raised.binary_search(id).is_err());
        moves.raised.retain(|&id| self.nodes.is_root(id));
        let sorted = |ids: &mut dyn Iterator<Item = NodeId>| {
            let mut conjunctions: Vec<&Conjunction> = ids.map(|id| self.nodes.conjunction(id)).collect();
            conjunctions.sort_unstable();
            shared(conjunctions)
        };
        let added = sorted(&mut moves.raised.into_iter());
        RootChange { added, removed: sorted(&mut moves.lowered.into_iter().chain(leaving)) }
    }
}

fn shared<'a>(conjunctions: impl IntoIterator<Item = &'a Conjunction>) -> Vec<Arc<Conjunction>> {
    conjunctions.into_iter().map(|conjunction| Arc::new(conjunction.clone())).collect()
}

/// Whether `a` covers `b` and, if each covers the other, comes first.
fn stands_above(a: &Conjunction, b: &Conjunction) -> bool {
    #[cfg(test)]
    tests::COMPARISONS.set(tests::COMPARISONS.get() + 1);
    covers(a, b) && (a < b || !a.has_patterns() && !b.has_patterns() || !covers(b, a))
}

fn is_above(nodes: &Nodes, a: NodeId, b: NodeId) -> bool {
    stands_above(nodes.conjunction(a), nodes.conjunction(b))
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
