//! Singles: the entries of a list that are in no group.
//!
//! Of each entry one predicate, the one least likely to be true of an event that has the key, stands as a word about cells
//! ([`super::keys::Weighed::word`]) in a column of all entries' first words, which is all that most of a scan reads. Then follow a
//! column of second words, and the details: further words, and the id of the subscription. An event strictly inside of all ranges
//! matches for sure, and then the row is not needed; where that cannot be said by words, one of them is [`ALWAYS`], which nothing is
//! strictly inside of.

use super::keys::{ALWAYS, is_surely_inside, passes};
use super::lists::SURE;
use super::reading::Reading;
use super::simd::find_passing;
use crate::SubscriptionId;

/// The columns of one word for each entry: two of its predicates, the shape, and the row.
const COLUMNS: usize = 4;
const FIRST: usize = 0;
const SECOND: usize = 1;
const SHAPE: usize = 2;
const ROW: usize = 3;
/// The words of an entry's details: the id, and more predicates.
const DETAILS: usize = 6;
/// The number of words about cells.
pub(super) const WORDS: usize = 6;
/// How many entries are looked at for those of one shape, and how many there have to be among them.
const WINDOW: usize = 128;
const FREQUENT: usize = 7;

/// The shape of an entry of which only the first word is known.
pub(super) const UNKNOWN_SHAPE: u32 = 0;

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
    /// Column by column a word for each entry that there is room for, then for each its details.
    words: Box<[u32]>,
    count: u32,
    capacity: u32,
}

impl Singles {
    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// Where a word of a column stands.
    fn at(&self, column: usize, place: usize) -> usize {
        column * self.capacity as usize + place
    }

    fn details(&self, place: usize) -> std::ops::Range<usize> {
        let start = self.at(COLUMNS, 0) + place * DETAILS;
        start..start + DETAILS
    }

    pub(super) fn row(&self, place: usize) -> u32 {
        self.words[self.at(ROW, place)]
    }

    /// The first word about the cells of an entry.
    pub(super) fn first_word(&self, place: usize) -> u32 {
        self.words[self.at(FIRST, place)]
    }

    /// What is said about the cells of an entry.
    pub(super) fn words(&self, place: usize) -> [u32; WORDS] {
        let [first, second] = [FIRST, SECOND].map(|column| self.words[self.at(column, place)]);
        let [_, _, a, b, c, d] = *self.words[self.details(place)].first_chunk().expect("details are so many words");
        [first, second, a, b, c, d]
    }

    /// The row of the first entry, if only its first word was known when it was posted.
    pub(super) fn unknown(&self) -> Option<u32> {
        (self.len() > 0 && self.words[self.at(SHAPE, 0)] == UNKNOWN_SHAPE).then(|| self.row(0))
    }

    pub(super) fn push(&mut self, single: &Single) {
        if self.count == self.capacity {
            self.resize((self.capacity + self.capacity / 2).max(self.capacity + 2));
        }
        self.count += 1;
        let place = self.len() - 1;
        let [first, second, ref more @ ..] = single.words;
        for (column, word) in [(FIRST, first), (SECOND, second), (SHAPE, single.shape), (ROW, single.row)] {
            self.words[self.at(column, place)] = word;
        }
        let details = self.details(place);
        let details = &mut self.words[details];
        details[..2].copy_from_slice(&[(single.id.0 >> 32) as u32, single.id.0 as u32]);
        details[2..].copy_from_slice(more);
    }

    fn resize(&mut self, capacity: u32) {
        let words = vec![0_u32; capacity as usize * (COLUMNS + DETAILS)].into();
        let other = std::mem::replace(self, Singles { words, count: self.count, capacity });
        let count = self.len();
        let (columns, details) = ((0..COLUMNS).map(|column| (column, count)), (COLUMNS, count * DETAILS));
        for (column, count) in columns.chain([details]) {
            let (to, from) = (self.at(column, 0), other.at(column, 0));
            self.words[to..][..count].copy_from_slice(&other.words[from..][..count]);
        }
    }

    /// Removes an entry; the last one takes its place. Says the row of that one, unless it was the last itself.
    pub(super) fn swap_remove(&mut self, place: usize) -> Option<u32> {
        self.count -= 1;
        let last = self.len();
        for column in 0..COLUMNS {
            self.words[self.at(column, place)] = self.words[self.at(column, last)];
        }
        self.words.copy_within(self.details(last), self.details(place).start);
        let moved = (place < last).then(|| self.row(place));
        if self.count * 4 < self.capacity && self.capacity > 4 {
            self.resize(self.count * 2);
        }
        moved
    }

    /// Notes that it takes the row to know whose an entry is.
    pub(super) fn forget_whose(&mut self, place: usize) {
        self.words[self.details(place).end - 1] = ALWAYS;
    }

    /// The rows of late entries of this shape, if there are so many that it is worth while to have a group for them.
    pub(super) fn frequent(&self, shape: u32) -> Option<Vec<u32>> {
        let shapes = &self.words[self.at(SHAPE, 0)..][..self.len()];
        let from = shapes.len().saturating_sub(WINDOW);
        let is_such = |place: &usize| shapes[*place] == shape;
        let count = (from..shapes.len()).filter(is_such).count();
        (count >= FREQUENT).then(|| (from..shapes.len()).filter(is_such).map(|place| self.row(place)).collect())
    }

    /// Asks the processor for what a scan begins with.
    #[inline]
    pub(super) fn prefetch(&self) {
        const LINE: usize = 16;
        self.words[..self.len().min(4 * LINE)].iter().step_by(LINE).for_each(super::simd::prefetch);
    }

    /// Asks the processor for what removing an entry will need.
    pub(super) fn prefetch_place(&self, place: usize) {
        for place in [place, self.len() - 1] {
            for column in 0..COLUMNS {
                super::simd::prefetch(&self.words[self.at(column, place)]);
            }
            super::simd::prefetch(&self.words[self.details(place).start]);
        }
    }

    /// Appends the rows of entries that the event may match, with [`SURE`] if it does, provided that the key leaves no doubt. If
    /// ids are wanted, they are noted instead where there is no doubt.
    #[inline]
    pub(super) fn scan(&self, is_key_sure: bool, reading: &mut Reading) {
        reading.places.clear();
        find_passing(&self.words[..self.len()], &reading.cells, &mut reading.places);
        let is_key_sure = is_key_sure && !reading.has_inexact;
        for number in 0..reading.places.len() {
            self.decide(reading.places[number] as usize, is_key_sure, reading);
        }
    }

    /// Looks at the rest of an entry whose first word passed.
    #[inline]
    fn decide(&self, place: usize, is_key_sure: bool, reading: &mut Reading) {
        let heads = [FIRST, SECOND].map(|column| self.words[self.at(column, place)]);
        if !passes(heads[1], &reading.cells) {
            return;
        }
        let details = &self.words[self.details(place)];
        let words = || heads.iter().chain(&details[2..]);
        if !words().all(|&word| passes(word, &reading.cells)) {
            return;
        }
        let is_sure = is_key_sure && words().all(|&word| is_surely_inside(word, &reading.cells));
        if is_sure && reading.wants_ids {
            reading.ids.push(SubscriptionId(u64::from(details[0]) << 32 | u64::from(details[1])));
        } else {
            let row = self.row(place);
            reading.candidates.push(if is_sure { row | SURE } else { row });
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        size_of_val(&*self.words)
    }
}
