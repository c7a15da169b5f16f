//! Finds nodes by a hash: linear hashing (Litwin, VLDB 1980).
//!
//! There is a bucket for each node. With each node that comes one bucket is split, with each that goes two are joined, so
//! that no insertion waits for a whole table to grow. A node takes twelve bytes.

use crate::nodes::NodeId;

const NONE: NodeId = NodeId(u32::MAX);

/// See the [module page](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    /// The first node of each bucket.
    buckets: Vec<NodeId>,
    /// By node.
    links: Vec<Link>,
}

#[derive(Clone, Debug)]
struct Link {
    /// The next node of the bucket.
    next: NodeId,
    /// Kept, as it takes several times as long to compute it anew.
    hash: u32,
}

impl Directory {
    /// The node with this hash for which `is_it` says yes.
    pub(crate) fn find(&self, hash: u32, is_it: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        let mut id = *self.buckets.get(self.bucket(hash))?;
        while id != NONE {
            let link = self.link(id);
            if link.hash == hash && is_it(id) {
                return Some(id);
            }
            id = link.next;
        }
        None
    }

    pub(crate) fn insert(&mut self, id: NodeId, hash: u32) {
        reserve_little(&mut self.buckets);
        self.buckets.push(NONE);
        let last = self.buckets.len() - 1;
        if last > 0 {
            // It takes nodes from the bucket whose number lacks the highest bit.
            self.spread(last & !(1 << last.ilog2()));
        }
        if id.0 as usize >= self.links.len() {
            reserve_little(&mut self.links);
            self.links.resize(id.0 as usize + 1, Link { next: NONE, hash: 0 });
        }
        self.links[id.0 as usize].hash = hash;
        self.put(id);
    }

    /// Removes a node that is there.
    pub(crate) fn remove(&mut self, id: NodeId) {
        let Link { next, hash } = *self.link(id);
        let bucket = self.bucket(hash);
        if self.buckets[bucket] == id {
            self.buckets[bucket] = next;
        } else {
            let mut before = self.buckets[bucket];
            while self.link(before).next != id {
                before = self.link(before).next;
            }
            self.links[before.0 as usize].next = next;
        }
        let first = self.buckets.pop().expect("there is a bucket for each node");
        self.put_all(first);
    }

    /// Puts the nodes of a bucket where they belong now.
    fn spread(&mut self, bucket: usize) {
        let first = std::mem::replace(&mut self.buckets[bucket], NONE);
        self.put_all(first);
    }

    fn put_all(&mut self, mut id: NodeId) {
        while id != NONE {
            let next = self.link(id).next;
            self.put(id);
            id = next;
        }
    }

    fn put(&mut self, id: NodeId) {
        let bucket = self.bucket(self.link(id).hash);
        self.links[id.0 as usize].next = std::mem::replace(&mut self.buckets[bucket], id);
    }

    /// The lowest bits of the hash; of those that name a bucket to come, one less.
    fn bucket(&self, hash: u32) -> usize {
        let mask = self.buckets.len().next_power_of_two() - 1;
        let bucket = hash as usize & mask;
        if bucket < self.buckets.len() { bucket } else { bucket & (mask >> 1) }
    }

    fn link(&self, id: NodeId) -> &Link {
        &self.links[id.0 as usize]
    }
}

/// Makes room for one more, and not for twice as many: there are millions.
pub(crate) fn reserve_little<T>(items: &mut Vec<T>) {
    if items.len() == items.capacity() {
        items.reserve_exact(items.len() / 16 + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_until_they_are_removed() {
        let hash_of = |id: u32| (id / 3).wrapping_mul(0x9E37_79B1);
        let find = |directory: &Directory, id| directory.find(hash_of(id), |other| other.0 == id);
        let mut directory = Directory::default();
        for last in 0..1_000 {
            directory.insert(NodeId(last), hash_of(last));
            assert!((0..=last).all(|id| find(&directory, id) == Some(NodeId(id))), "{last}");
        }
        for removed in 0..1_000 {
            directory.remove(NodeId(removed));
            assert!((0..1_000).all(|id| find(&directory, id).is_some() == (id > removed)), "{removed}");
        }
        assert!(directory.buckets.is_empty());
    }
}
