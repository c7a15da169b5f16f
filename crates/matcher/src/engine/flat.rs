//! A hash table of small items, for what is looked up most: an item is found by one access to memory, which can be asked for before.
//!
//! As in [`super::table`], buckets are split one at a time, so that no insertion moves more than one bucket's items. A bucket is
//! an array with linear probing; removing moves later items back, so that nothing is left of removed ones.

use std::mem::size_of;

/// A bucket with more items is split; its array has room for them and half as many again.
const MOST_ITEMS: usize = 704;
/// No bucket is split beyond this depth, so that equal hashes cannot make the directory explode.
const MOST_DEPTH: u32 = 20;

/// Items of a [`Flat`].
pub(super) trait Item: Copy + PartialEq {
    /// What stands where there is none.
    const VACANT: Self;
}

impl Item for (u32, u32) {
    const VACANT: Self = (u32::MAX, u32::MAX);
}

/// Items under hashes of 64 bits, which the caller computes.
#[derive(Clone, Debug)]
pub(super) struct Flat<T> {
    /// The bucket of each value of the `depth` lowest of the directory's bits of a hash.
    directory: Vec<u32>,
    buckets: Vec<Bucket<T>>,
    depth: u32,
}

#[derive(Clone, Debug)]
struct Bucket<T> {
    depth: u32,
    count: u32,
    /// Empty, or as long as a power of two.
    slots: Box<[T]>,
}

impl<T> Default for Flat<T> {
    fn default() -> Self {
        Flat { directory: Vec::new(), buckets: Vec::new(), depth: 0 }
    }
}

/// The bits of a hash that choose the bucket; the lowest choose the slot.
fn directory_bits(hash: u64) -> usize {
    (hash >> 28) as usize
}

impl<T: Item> Bucket<T> {
    /// The slots from the one of a hash on, each once.
    #[inline]
    fn slots_from(&self, hash: u64) -> impl Iterator<Item = usize> + use<T> {
        let length = self.slots.len();
        (0..length).map(move |step| (hash as usize).wrapping_add(step) & (length - 1))
    }

    #[inline]
    fn place(&self, hash: u64, mut equal: impl FnMut(&T) -> bool) -> Option<usize> {
        for place in self.slots_from(hash) {
            let item = &self.slots[place];
            if *item == T::VACANT {
                return None;
            }
            if equal(item) {
                return Some(place);
            }
        }
        None
    }

    fn insert(&mut self, hash: u64, item: T, hash_of: &impl Fn(&T) -> u64) {
        if (self.count as usize + 1) * 10 > self.slots.len() * 7 {
            let slots = vec![T::VACANT; (2 * self.slots.len()).max(4)].into();
            let old = std::mem::replace(&mut self.slots, slots);
            old.iter().filter(|item| **item != T::VACANT).for_each(|item| self.put(hash_of(item), *item));
        }
        self.put(hash, item);
        self.count += 1;
    }

    fn put(&mut self, hash: u64, item: T) {
        let place = self.slots_from(hash).find(|&place| self.slots[place] == T::VACANT);
        self.slots[place.expect("there is always a vacant slot")] = item;
    }

    fn remove(&mut self, mut gap: usize, hash_of: &impl Fn(&T) -> u64) {
        let mask = self.slots.len() - 1;
        let mut place = gap;
        loop {
            place = (place + 1) & mask;
            let item = self.slots[place];
            if item == T::VACANT {
                break;
            }
            // It may move back unless it would then stand before its own slot.
            let distance = place.wrapping_sub(hash_of(&item) as usize) & mask;
            if distance >= (place.wrapping_sub(gap) & mask) {
                self.slots[gap] = item;
                gap = place;
            }
        }
        self.slots[gap] = T::VACANT;
        self.count -= 1;
    }
}

impl<T: Item> Flat<T> {
    #[inline]
    fn bucket(&self, hash: u64) -> Option<&Bucket<T>> {
        let bucket = *self.directory.get(directory_bits(hash) & ((1 << self.depth) - 1))?;
        Some(&self.buckets[bucket as usize])
    }

    #[inline]
    fn bucket_mut(&mut self, hash: u64) -> Option<&mut Bucket<T>> {
        let bucket = *self.directory.get(directory_bits(hash) & ((1 << self.depth) - 1))?;
        Some(&mut self.buckets[bucket as usize])
    }

    /// Asks the processor for what finding an item of this hash will need.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        if let Some(bucket) = self.bucket(hash)
            && let Some(slot) = bucket.slots.get(hash as usize & bucket.slots.len().wrapping_sub(1))
        {
            super::simd::prefetch(slot);
        }
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, equal: impl FnMut(&T) -> bool) -> Option<&T> {
        let bucket = self.bucket(hash)?;
        bucket.place(hash, equal).map(|place| &bucket.slots[place])
    }

    pub(super) fn find_mut(&mut self, hash: u64, equal: impl FnMut(&T) -> bool) -> Option<&mut T> {
        let bucket = self.bucket_mut(hash)?;
        bucket.place(hash, equal).map(|place| &mut bucket.slots[place])
    }

    /// Adds an item that is not there yet.
    pub(super) fn insert(&mut self, hash: u64, item: T, hash_of: impl Fn(&T) -> u64) {
        if self.buckets.is_empty() {
            self.buckets.push(Bucket { depth: 0, count: 0, slots: Box::default() });
            self.directory.push(0);
        }
        while self.bucket(hash).is_some_and(|bucket| bucket.count as usize >= MOST_ITEMS && bucket.depth < MOST_DEPTH) {
            self.split(self.directory[directory_bits(hash) & ((1 << self.depth) - 1)], &hash_of);
        }
        self.bucket_mut(hash).expect("there is a bucket").insert(hash, item, &hash_of);
    }

    fn split(&mut self, number: u32, hash_of: &impl Fn(&T) -> u64) {
        let depth = self.buckets[number as usize].depth;
        if depth == self.depth {
            self.directory.extend_from_within(..);
            self.depth += 1;
        }
        let empty = || Bucket { depth: depth + 1, count: 0, slots: Box::default() };
        let old = std::mem::replace(&mut self.buckets[number as usize], empty());
        let (mut low, mut high) = (empty(), empty());
        for item in old.slots.iter().filter(|item| **item != T::VACANT) {
            let hash = hash_of(item);
            let half = if directory_bits(hash) >> depth & 1 == 0 { &mut low } else { &mut high };
            half.insert(hash, *item, hash_of);
        }
        self.buckets[number as usize] = low;
        let new = self.buckets.len() as u32;
        self.buckets.push(high);
        for (bits, bucket) in self.directory.iter_mut().enumerate() {
            if *bucket == number && bits >> depth & 1 == 1 {
                *bucket = new;
            }
        }
    }

    /// Removes the item that `equal` holds of, if there is one.
    pub(super) fn remove(&mut self, hash: u64, equal: impl FnMut(&T) -> bool, hash_of: impl Fn(&T) -> u64) {
        let Some(bucket) = self.bucket_mut(hash) else { return };
        if let Some(place) = bucket.place(hash, equal) {
            bucket.remove(place, &hash_of);
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        let slots: usize = self.buckets.iter().map(|bucket| size_of_val(&*bucket.slots)).sum();
        slots + self.buckets.capacity() * size_of::<Bucket<T>>() + self.directory.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::table::hash_number;
    use std::collections::BTreeSet;

    #[test]
    fn holds_what_was_inserted_and_not_removed() {
        let number_of = |item: &(u32, u32)| u64::from(item.0);
        // Hashes as they should be, some alike, all alike.
        for mask in [u64::MAX, 31, 0] {
            let hash = |item: &(u32, u32)| hash_number(number_of(item), 7) & mask;
            let (mut table, mut model, mut random) = (Flat::<(u32, u32)>::default(), BTreeSet::new(), 1_u64);
            for step in 0..12_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let number = (random >> 33) as u32 % if step < 6_000 { 900 } else { 300 };
                let item = (number, number ^ 1);
                let found = table.find(hash(&item), |other| *other == item).copied();
                assert_eq!(found, model.contains(&number).then_some(item));
                if model.insert(number) {
                    table.insert(hash(&item), item, hash);
                } else {
                    model.remove(&number);
                    table.remove(hash(&item), |other| *other == item, hash);
                }
            }
            for number in 0..900 {
                let item = (number, number ^ 1);
                assert_eq!(table.find(hash(&item), |other| *other == item).is_some(), model.contains(&number));
            }
        }
    }

    #[test]
    fn buckets_are_split() {
        let hash = |item: &(u32, u32)| hash_number(item.0.into(), 7);
        let mut table = Flat::<(u32, u32)>::default();
        (0..20_000).for_each(|number| table.insert(hash(&(number, 0)), (number, 0), hash));
        assert!(table.depth >= 5, "{}", table.depth);
        assert!((0..20_000).all(|number| table.find(hash(&(number, 0)), |item| item.0 == number).is_some()));
        (0..20_000).for_each(|number| table.remove(hash(&(number, 0)), |item| item.0 == number, hash));
        assert!(
            table
                .buckets
                .iter()
                .all(|bucket| bucket.count == 0 && bucket.slots.iter().all(|&item| item == Item::VACANT))
        );
    }
}
