//! A hash table whose every insertion is cheap: extendible hashing over small tables, one of which is split at a time.
//!
//! An ordinary table of a million items takes milliseconds when it grows. Here at most [`MOST_ITEMS`] are moved at once.

use hashbrown::HashTable;
use std::mem::size_of;

/// A bucket with more is split. To hash an item anew may mean to fetch much from memory.
const MOST_ITEMS: usize = 224;
/// No bucket is split beyond this depth, so that equal hashes cannot make the directory explode.
const MOST_DEPTH: u32 = 20;

/// Items under hashes of 64 bits, which the caller computes.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    /// The bucket of each value of the `depth` lowest of the directory's bits of a hash.
    directory: Vec<u32>,
    buckets: Vec<Bucket<T>>,
    depth: u32,
}

#[derive(Clone, Debug)]
struct Bucket<T> {
    depth: u32,
    items: HashTable<T>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { directory: Vec::new(), buckets: Vec::new(), depth: 0 }
    }
}

/// The bits of a hash that choose the bucket; the table inside uses the lowest and the seven highest.
fn directory_bits(hash: u64) -> usize {
    (hash >> 28) as usize
}

impl<T> Table<T> {
    #[inline]
    fn bucket(&self, hash: u64) -> usize {
        self.directory[directory_bits(hash) & ((1 << self.depth) - 1)] as usize
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, equal: impl FnMut(&T) -> bool) -> Option<&T> {
        if self.buckets.is_empty() {
            return None;
        }
        self.buckets[self.bucket(hash)].items.find(hash, equal)
    }

    pub(super) fn find_mut(&mut self, hash: u64, equal: impl FnMut(&T) -> bool) -> Option<&mut T> {
        if self.buckets.is_empty() {
            return None;
        }
        let bucket = self.bucket(hash);
        self.buckets[bucket].items.find_mut(hash, equal)
    }

    /// Adds an item that is not there yet.
    pub(super) fn insert(&mut self, hash: u64, item: T, hash_of: impl Fn(&T) -> u64) {
        if self.buckets.is_empty() {
            self.buckets.push(Bucket { depth: 0, items: HashTable::new() });
            self.directory.push(0);
        }
        let mut bucket = self.bucket(hash);
        while self.buckets[bucket].items.len() >= MOST_ITEMS && self.buckets[bucket].depth < MOST_DEPTH {
            self.split(bucket, &hash_of);
            bucket = self.bucket(hash);
        }
        let items = &mut self.buckets[bucket].items;
        if items.len() == items.capacity() {
            // What fills it may be marks of removed items, which growing by itself would take for items.
            let old = std::mem::replace(items, HashTable::with_capacity(items.len() + items.len() / 16 + 1));
            for item in old {
                items.insert_unique(hash_of(&item), item, &hash_of);
            }
        }
        items.insert_unique(hash, item, hash_of);
    }

    fn split(&mut self, bucket: usize, hash_of: &impl Fn(&T) -> u64) {
        let depth = self.buckets[bucket].depth;
        if depth == self.depth {
            self.directory.extend_from_within(..);
            self.depth += 1;
        }
        let items = std::mem::take(&mut self.buckets[bucket].items);
        let (mut low, mut high) = (HashTable::new(), HashTable::new());
        for item in items {
            let hash = hash_of(&item);
            let half = if directory_bits(hash) >> depth & 1 == 0 { &mut low } else { &mut high };
            half.insert_unique(hash, item, hash_of);
        }
        self.buckets[bucket] = Bucket { depth: depth + 1, items: low };
        let new = self.buckets.len() as u32;
        self.buckets.push(Bucket { depth: depth + 1, items: high });
        for (bits, place) in self.directory.iter_mut().enumerate() {
            if *place as usize == bucket && bits >> depth & 1 == 1 {
                *place = new;
            }
        }
    }

    pub(super) fn remove(&mut self, hash: u64, equal: impl FnMut(&T) -> bool) -> Option<T> {
        if self.buckets.is_empty() {
            return None;
        }
        let bucket = self.bucket(hash);
        self.buckets[bucket].items.find_entry(hash, equal).ok().map(|entry| entry.remove().0)
    }

    /// All items, in no order that may influence anything seen.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.buckets.iter().flat_map(|bucket| bucket.items.iter())
    }

    /// Bytes of the table, without what its items own.
    pub(super) fn memory_usage(&self) -> usize {
        let items: usize = self.buckets.iter().map(|bucket| bucket.items.allocation_size()).sum();
        items + self.buckets.capacity() * size_of::<Bucket<T>>() + self.directory.capacity() * size_of::<u32>()
    }
}

/// The product of two numbers, folded: a hash of both as good as their secrets are.
#[inline]
pub(super) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// Numbers that nobody can guess.
pub(super) fn random_secrets() -> [u64; 2] {
    use std::hash::BuildHasher;
    let hasher = foldhash::fast::RandomState::default();
    [hasher.hash_one(0), hasher.hash_one(1)]
}

/// A number's hash: enough for numbers that nobody chooses, mixed with a secret of the table's owner for those somebody may.
#[inline]
pub(super) fn hash_number(number: u64, secret: u64) -> u64 {
    let once = fold(number ^ secret, 0x9E37_79B9_7F4A_7C15);
    fold(once ^ 0x5851_F42D_4C95_7F2D, 0xF39C_C060_5CED_C835)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_inserted_and_not_removed() {
        let hash = |&number: &u64| hash_number(number, 7);
        let mut table = Table::default();
        for number in 0..20_000 {
            table.insert(hash(&number), number, hash);
        }
        assert!(table.depth >= 4, "buckets are split: {}", table.depth);
        for number in (0..20_000).step_by(2) {
            assert_eq!(table.remove(hash(&number), |&item| item == number), Some(number));
        }
        for number in 0..20_001 {
            let found = table.find(hash(&number), |&item| item == number).is_some();
            assert_eq!(found, number % 2 == 1 && number < 20_000);
        }
        assert_eq!(table.iter().count(), 10_000);
    }

    #[test]
    fn equal_hashes_stay_together() {
        let mut table = Table::default();
        for number in 0..3_000_u64 {
            table.insert(5, number, |_| 5);
        }
        assert!(table.find(5, |&item| item == 2_999).is_some());
        assert!(table.depth <= MOST_DEPTH);
    }
}
