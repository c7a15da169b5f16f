//! Finds nodes by a hash: linear hashing (Litwin, VLDB 1980).
//!
//! There is about a bucket for each node. With each node that comes one bucket is split, with each that goes two are
//! joined, so that no insertion waits for a whole table to grow. A node takes eight bytes.

use crate::nodes::NodeId;

const NONE: NodeId = NodeId(u32::MAX);

/// See the [module page](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    /// The first node of each bucket.
    buckets: Vec<NodeId>,
    /// By node: the next one of its bucket.
    next: Vec<NodeId>,
}

impl Directory {
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        if self.buckets.is_empty() {
            return None;
        }
        let mut id = self.buckets[self.bucket(hash)];
        while id != NONE && !is_it(id) {
            id = self.next[id.0 as usize];
        }
        (id != NONE).then_some(id)
    }

    /// Adds a node; `hash_of` says the hash of any.
    pub(crate) fn insert(&mut self, id: NodeId, hash: u64, hash_of: impl Fn(NodeId) -> u64) {
        let index = id.0 as usize;
        if index >= self.next.len() {
            reserve_little(&mut self.next);
            self.next.resize(index + 1, NONE);
        }
        reserve_little(&mut self.buckets);
        self.buckets.push(NONE);
        let last = self.buckets.len() - 1;
        if last > 0 {
            let split = buddy(last);
            let mut id = std::mem::replace(&mut self.buckets[split], NONE);
            while id != NONE {
                let next = self.next[id.0 as usize];
                self.link(id, hash_of(id));
                id = next;
            }
        }
        self.link(id, hash);
    }

    /// Removes a node that was added.
    pub(crate) fn remove(&mut self, id: NodeId, hash: u64, hash_of: impl Fn(NodeId) -> u64) {
        let bucket = self.bucket(hash);
        let after = self.next[id.0 as usize];
        if self.buckets[bucket] == id {
            self.buckets[bucket] = after;
        } else {
            let mut before = self.buckets[bucket];
            while self.next[before.0 as usize] != id {
                before = self.next[before.0 as usize];
            }
            self.next[before.0 as usize] = after;
        }
        let mut orphan = self.buckets.pop().expect("there is a bucket for each node");
        while orphan != NONE {
            let next = self.next[orphan.0 as usize];
            self.link(orphan, hash_of(orphan));
            orphan = next;
        }
    }

    fn link(&mut self, id: NodeId, hash: u64) {
        let bucket = self.bucket(hash);
        self.next[id.0 as usize] = std::mem::replace(&mut self.buckets[bucket], id);
    }

    /// The lowest bits of the hash; of those that name a bucket to come, one less.
    fn bucket(&self, hash: u64) -> usize {
        let mask = self.buckets.len().next_power_of_two() - 1;
        let bucket = hash as usize & mask;
        if bucket < self.buckets.len() { bucket } else { bucket & (mask >> 1) }
    }
}

/// The bucket that is split to fill a new one: its number without the highest bit.
fn buddy(bucket: usize) -> usize {
    bucket & !(1 << bucket.ilog2())
}

/// Makes room for one more, and not for twice as many.
fn reserve_little(ids: &mut Vec<NodeId>) {
    if ids.len() == ids.capacity() {
        ids.reserve_exact(ids.len() / 8 + 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_until_they_are_removed() {
        let hash_of = |id: NodeId| u64::from(id.0 / 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let mut directory = Directory::default();
        let find = |directory: &Directory, id| directory.find(hash_of(id), |other| other == id);
        for last in 0..1_000 {
            directory.insert(NodeId(last), hash_of(NodeId(last)), hash_of);
            assert!((0..=last).all(|id| find(&directory, NodeId(id)) == Some(NodeId(id))), "{last}");
        }
        for removed in 0..1_000 {
            directory.remove(NodeId(removed), hash_of(NodeId(removed)), hash_of);
            assert!((0..1_000).all(|id| find(&directory, NodeId(id)).is_some() == (id > removed)), "{removed}");
        }
        assert!(directory.buckets.is_empty());
    }
}
