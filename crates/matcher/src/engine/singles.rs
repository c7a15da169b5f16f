//! Singles: the entries of a list that are in no group.
//!
//! Beside each entry stand two of its predicates as words about cells ([`super::keys::Weighed::word`]), the ones least likely to be
//! true of an event that has the key. Most entries end there. Behind the heads of all entries follow their details: further
//! words, and the id of the subscription. An event strictly inside of all ranges matches for sure, and then the row is not
//! needed; where that cannot be said by words, one of them is [`ALWAYS`], which nothing is strictly inside of.

use super::keys::{ALWAYS, is_surely_inside, passes};
use super::lists::SURE;
use super::reading::Reading;
use crate::SubscriptionId;

/// Words in the head of an entry: its row, and two of its predicates.
const HEAD: usize = 3;
/// In its details: the id, and more predicates.
const DETAILS: usize = 6;
/// The number of words about cells.
pub(super) const WORDS: usize = 6;
/// How many entries are looked at for those of one shape, and how many there have to be among them.
const WINDOW: usize = 128;
const FREQUENT: usize = 7;

/// An entry to be posted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Single {
    pub(super) row: u32,
    /// What its predicates say about cells, the least likely first.
    pub(super) words: [u32; WORDS],
    /// Of its only subscription.
    pub(super) id: SubscriptionId,
    /// The hash of its shape.
    pub(super) shape: u32,
}

/// See the [module's page](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Singles {
    /// For each entry that there is room for a head, then for each a shape, then for each its details.
    words: Box<[u32]>,
    count: u32,
    capacity: u32,
}

impl Singles {
    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    pub(super) fn row(&self, place: usize) -> u32 {
        self.words[place * HEAD]
    }

    /// The first word about the cells of an entry.
    pub(super) fn first_word(&self, place: usize) -> u32 {
        self.words[place * HEAD + 1]
    }

    /// Where the parts of an entry stand: the head, the shape, the details.
    fn parts(&self, place: usize) -> [std::ops::Range<usize>; 3] {
        let capacity = self.capacity as usize;
        let (head, shape) = (place * HEAD, capacity * HEAD + place);
        let details = capacity * (HEAD + 1) + place * DETAILS;
        [head..head + HEAD, shape..shape + 1, details..details + DETAILS]
    }

    pub(super) fn push(&mut self, single: &Single) {
        if self.count == self.capacity {
            self.resize((self.capacity + self.capacity / 2).max(self.capacity + 2));
        }
        self.count += 1;
        let [head, shape, details] = self.parts(self.len() - 1);
        let [first, second, ref more @ ..] = single.words;
        self.words[head].copy_from_slice(&[single.row, first, second]);
        self.words[shape][0] = single.shape;
        let details = &mut self.words[details];
        details[..2].copy_from_slice(&[(single.id.0 >> 32) as u32, single.id.0 as u32]);
        details[2..].copy_from_slice(more);
    }

    fn resize(&mut self, capacity: u32) {
        let words = vec![0_u32; capacity as usize * (HEAD + 1 + DETAILS)].into();
        let other = std::mem::replace(self, Singles { words, count: self.count, capacity });
        for place in 0..self.len() {
            for (to, from) in self.parts(place).into_iter().zip(other.parts(place)) {
                self.words[to].copy_from_slice(&other.words[from]);
            }
        }
    }

    /// Removes an entry; the last one takes its place. Says the row of that one, unless it was the last itself.
    pub(super) fn swap_remove(&mut self, place: usize) -> Option<u32> {
        self.count -= 1;
        let last = self.len();
        for (to, from) in self.parts(place).into_iter().zip(self.parts(last)) {
            self.words.copy_within(from, to.start);
        }
        let moved = (place < last).then(|| self.row(place));
        if self.count * 4 < self.capacity && self.capacity > 4 {
            self.resize(self.count * 2);
        }
        moved
    }

    /// Notes that it takes the row to know whose an entry is.
    pub(super) fn forget_whose(&mut self, place: usize) {
        let [_, _, details] = self.parts(place);
        self.words[details.end - 1] = ALWAYS;
    }

    /// The rows of late entries of this shape, if there are so many that it is worth while to have a group for them.
    pub(super) fn frequent(&self, shape: u32) -> Option<Vec<u32>> {
        let [_, start, _] = self.parts(0);
        let shapes = &self.words[start.start..][..self.len()];
        let from = shapes.len().saturating_sub(WINDOW);
        let is_such = |place: &usize| shapes[*place] == shape;
        let count = (from..shapes.len()).filter(is_such).count();
        (count >= FREQUENT).then(|| (from..shapes.len()).filter(is_such).map(|place| self.row(place)).collect())
    }

    /// Asks the processor for what a scan begins with.
    #[inline]
    pub(super) fn prefetch(&self) {
        const LINE: usize = 16;
        self.words[..(self.len() * HEAD).min(4 * LINE)].iter().step_by(LINE).for_each(super::simd::prefetch);
    }

    /// Asks the processor for what removing an entry will need.
    pub(super) fn prefetch_place(&self, place: usize) {
        for part in [place, self.len() - 1].into_iter().flat_map(|place| self.parts(place)) {
            super::simd::prefetch(&self.words[part.start]);
        }
    }

    /// Appends the rows of entries that the event may match, with [`SURE`] if it does, provided that the key leaves no doubt. If
    /// ids are wanted, they are noted instead where there is no doubt.
    #[inline]
    pub(super) fn scan(&self, is_key_sure: bool, reading: &mut Reading) {
        let Reading { cells, places, .. } = &mut *reading;
        places.resize(self.len().max(places.len()), 0);
        let mut count = 0;
        for (place, head) in self.words[..self.len() * HEAD].as_chunks::<HEAD>().0.iter().enumerate() {
            // Without a branch, as nobody could predict it.
            places[count] = place as u32;
            count += usize::from(passes(head[1], cells) & passes(head[2], cells));
        }
        let is_key_sure = is_key_sure && !reading.has_inexact;
        for number in 0..count {
            self.decide(reading.places[number] as usize, is_key_sure, reading);
        }
    }

    /// Looks at the details of an entry whose head passed.
    #[inline]
    fn decide(&self, place: usize, is_key_sure: bool, reading: &mut Reading) {
        let [head, _, details] = self.parts(place);
        let (head, details) = (&self.words[head], &self.words[details]);
        let words = || head[1..].iter().chain(&details[2..]);
        if !words().all(|&word| passes(word, &reading.cells)) {
            return;
        }
        let is_sure = is_key_sure && words().all(|&word| is_surely_inside(word, &reading.cells));
        if is_sure && reading.wants_ids {
            reading.ids.push(SubscriptionId(u64::from(details[0]) << 32 | u64::from(details[1])));
        } else {
            reading.candidates.push(if is_sure { head[0] | SURE } else { head[0] });
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        size_of_val(&*self.words)
    }
}
