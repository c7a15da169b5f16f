//! The nodes of a forest: conjunctions with their owners, and the trees they form.

use crate::directory::{Directory, reserve_little};
use enroute_filter::Conjunction;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;

/// A node of a forest. The number of a removed node is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) u32);

/// A root, as the index knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RootId(pub(crate) u32);

/// In place of a node, where there is none.
const NONE: NodeId = NodeId(u32::MAX);

/// In place of the parent of what is no node at present.
const UNUSED: NodeId = NodeId(u32::MAX - 1);

/// Forty bytes, as there are millions.
#[derive(Clone, Debug)]
struct Node {
    conjunction: Conjunction,
    /// One of its owners; the others are in [`Nodes::more_owners`].
    owner: u64,
    /// [`NONE`] of a root.
    parent: NodeId,
    first_child: NodeId,
    /// The next of the parent's children. Of a root, which has no siblings, its number in the index.
    next: NodeId,
    previous: NodeId,
}

/// See the [module page](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    nodes: Vec<Node>,
    unused: Vec<NodeId>,
    directory: Directory,
    more_owners: BTreeMap<NodeId, BTreeSet<u64>>,
    hasher: foldhash::fast::RandomState,
}

impl Nodes {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len() - self.unused.len()
    }

    /// For how many there is room.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.nodes.capacity()
    }

    /// To be handed to [`find`](Self::find) and [`add`](Self::add).
    pub(crate) fn hash(&self, conjunction: &Conjunction) -> u32 {
        self.hasher.hash_one(conjunction) as u32
    }

    /// The node of a conjunction.
    pub(crate) fn find(&self, conjunction: &Conjunction, hash: u32) -> Option<NodeId> {
        self.directory.find(hash, |id| self.conjunction(id) == conjunction)
    }

    /// A new node, without a place in the forest yet, for a conjunction that has none.
    pub(crate) fn add(&mut self, conjunction: Conjunction, hash: u32, owner: u64) -> NodeId {
        let node = Node { conjunction, owner, parent: NONE, first_child: NONE, next: NONE, previous: NONE };
        let id = match self.unused.pop() {
            Some(id) => {
                self.nodes[id.0 as usize] = node;
                id
            }
            None => {
                reserve_little(&mut self.nodes);
                self.nodes.push(node);
                NodeId(self.nodes.len() as u32 - 1)
            }
        };
        self.directory.insert(id, hash);
        id
    }

    /// Removes a node without parent and children.
    pub(crate) fn remove(&mut self, id: NodeId) {
        self.directory.remove(id);
        let node = self.node_mut(id);
        node.parent = UNUSED;
        node.conjunction = Conjunction::always();
        self.unused.push(id);
        if self.len() == 0 {
            // Nothing is kept of a forest that was once large.
            *self = Nodes { hasher: self.hasher.clone(), ..Nodes::default() };
        }
    }

    pub(crate) fn conjunction(&self, id: NodeId) -> &Conjunction {
        &self.node(id).conjunction
    }

    pub(crate) fn add_owner(&mut self, id: NodeId, owner: u64) {
        if self.node(id).owner != owner {
            self.more_owners.entry(id).or_default().insert(owner);
        }
    }

    /// Removes an owner; says whether that was the last one. Then it stays until the node goes.
    pub(crate) fn remove_owner(&mut self, id: NodeId, owner: u64) -> bool {
        let is_first = self.node(id).owner == owner;
        let Some(others) = self.more_owners.get_mut(&id) else { return is_first };
        if is_first {
            let heir = others.pop_first().expect("no set of owners is empty");
            self.nodes[id.0 as usize].owner = heir;
        } else {
            others.remove(&owner);
        }
        if others.is_empty() {
            self.more_owners.remove(&id);
        }
        false
    }

    pub(crate) fn is_root(&self, id: NodeId) -> bool {
        self.node(id).parent == NONE
    }

    /// All nodes without a parent.
    pub(crate) fn roots(&self) -> impl Iterator<Item = NodeId> {
        (0..self.nodes.len() as u32).map(NodeId).filter(|&id| self.is_root(id))
    }

    pub(crate) fn root_id(&self, root: NodeId) -> RootId {
        debug_assert!(self.is_root(root));
        RootId(self.node(root).next.0)
    }

    pub(crate) fn set_root_id(&mut self, root: NodeId, number: RootId) {
        self.node_mut(root).next = NodeId(number.0);
    }

    pub(crate) fn parent(&self, id: NodeId) -> Option<NodeId> {
        Some(self.node(id).parent).filter(|&parent| parent != NONE)
    }

    /// The children, the last one hung first.
    pub(crate) fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let some = |id: NodeId| (id != NONE).then_some(id);
        std::iter::successors(some(self.node(id).first_child), move |&child| some(self.node(child).next))
    }

    /// Hangs a node without a parent, and with it what hangs below.
    pub(crate) fn hang(&mut self, child: NodeId, parent: NodeId) {
        let next = std::mem::replace(&mut self.node_mut(parent).first_child, child);
        if next != NONE {
            self.node_mut(next).previous = child;
        }
        let node = self.node_mut(child);
        (node.parent, node.previous, node.next) = (parent, NONE, next);
    }

    /// Takes a node from its parent.
    pub(crate) fn take(&mut self, child: NodeId) {
        let Node { parent, previous, next, .. } = *self.node(child);
        if previous == NONE {
            self.node_mut(parent).first_child = next;
        } else {
            self.node_mut(previous).next = next;
        }
        if next != NONE {
            self.node_mut(next).previous = previous;
        }
        self.node_mut(child).parent = NONE;
    }

    /// Takes all children of a node from it.
    pub(crate) fn take_children(&mut self, parent: NodeId) -> Vec<NodeId> {
        let children: Vec<NodeId> = self.children(parent).collect();
        for &child in &children {
            self.node_mut(child).parent = NONE;
        }
        self.node_mut(parent).first_child = NONE;
        children
    }

    fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }
}
