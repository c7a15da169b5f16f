//! Subscription lists: the entries under each key.
//!
//! A key with one entry has no list: the entry stands in the table of keys itself. Beside each entry stand two of its predicates,
//! as words about cells ([`super::keys::Weighed::word`]), the ones least likely to be true of an event that has the key. Most
//! entries end there, and their rows are never touched. In longer lists, entries of a shape that is frequent stand in groups of
//! their own: see [`super::columns`].

use super::blocks::Whose;
use super::columns::Group;
use super::keys::{ALWAYS, passes};
use super::pages::Pages;
use super::reading::Reading;
use super::rows::Rows;
use super::shapes::Shape;
use super::table::{Table, hash_number};
use std::mem::size_of;

/// Marks an entry that stands in the table of keys.
const INLINE: u32 = 1 << 31;

/// Marks candidates that match without further test.
pub(super) const SURE: u32 = 1 << 31;
/// Marks places in groups: 11 bits for the group, 20 for the place in it.
const GROUPED: u32 = 1 << 31;
const GROUP_BITS: u32 = 11;
const PLACE_BITS: u32 = 20;
/// Lists have groups from this length on, for shapes of which at least [`LEAST_GROUP`] entries are to be expected.
const LEAST_LIST: usize = 16;
const LEAST_GROUP: f32 = 2.0;

/// An entry to be posted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted {
    pub(super) row: u32,
    pub(super) words: [u32; 2],
    /// Kept in groups only.
    pub(super) whose: Whose,
}

/// An entry in a list that is in no group.
#[derive(Clone, Copy, Debug)]
struct Single {
    row: u32,
    words: [u32; 2],
}

#[derive(Clone, Copy, Debug)]
struct Posting {
    key: u64,
    /// A row with [`INLINE`], or the number of a list.
    list: u32,
    /// The first word of the row that stands here.
    word: u32,
}

/// The entries under one key.
#[derive(Clone, Debug, Default)]
struct List {
    entries: Vec<Single>,
    groups: Vec<Group>,
    grouped: u32,
}

impl List {
    fn len(&self) -> usize {
        self.entries.len() + self.grouped as usize
    }

    #[inline]
    fn scan(&self, is_key_sure: bool, reading: &mut Reading) {
        let Reading { cells, candidates, .. } = &mut *reading;
        let start = candidates.len();
        candidates.resize(start + self.entries.len(), 0);
        let found = &mut candidates[start..];
        let mut count = 0;
        for posted in &self.entries {
            // Without a branch, as nobody could predict it.
            found[count] = posted.row;
            count += usize::from(passes(posted.words[0], cells) & passes(posted.words[1], cells));
        }
        candidates.truncate(start + count);
        for group in &self.groups {
            group.candidates(reading, is_key_sure);
        }
    }

    /// The group for an entry of this shape, if it is to stand in one; `share` of all entries are of the shape.
    fn group(&mut self, shape: &Shape, share: f32) -> Option<usize> {
        if self.len() < LEAST_LIST || shape.is_empty() {
            return None;
        }
        if let Some(place) = self.groups.iter().position(|group| group.is_of(shape) && group.has_room()) {
            return Some(place);
        }
        if share * (self.len() as f32) < LEAST_GROUP {
            return None;
        }
        if let Some(empty) = self.groups.iter().position(|group| group.len() == 0) {
            self.groups[empty] = Group::new(shape);
            return Some(empty);
        }
        if self.groups.len() >= 1 << GROUP_BITS {
            return None;
        }
        self.groups.push(Group::new(shape));
        Some(self.groups.len() - 1)
    }
}

/// All subscription lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    postings: Table<Posting>,
    lists: Pages<List>,
    secret: u64,
}

impl Lists {
    pub(super) fn new(secret: u64) -> Lists {
        Lists { secret, ..Lists::default() }
    }

    #[inline]
    fn hash(&self, key: u64) -> u64 {
        hash_number(key, self.secret)
    }

    /// Posts an entry under the key that stands in its row, and writes its place there. About `share` of all entries are of its shape.
    pub(super) fn insert(&mut self, key: u64, posted: Posted, shape: &Shape, share: f32, rows: &mut Rows) {
        let (hash, secret) = (self.hash(key), self.secret);
        let header = rows.header_mut(posted.row);
        header[4] = 0;
        let Some(posting) = self.postings.find_mut(hash, |posting| posting.key == key) else {
            let posting = Posting { key, list: posted.row | INLINE, word: posted.words[0] };
            self.postings.insert(hash, posting, |posting| hash_number(posting.key, secret));
            return;
        };
        if posting.list & INLINE != 0 {
            let first = Single { row: posting.list & !INLINE, words: [posting.word, ALWAYS] };
            posting.list = self.lists.insert(List { entries: vec![first], ..List::default() });
        }
        let list = &mut self.lists[posting.list];
        match list.group(shape, share) {
            Some(group) => {
                let group_bits = GROUPED | (group as u32) << PLACE_BITS;
                list.groups[group].push(posted.row, posted.whose, shape, |row, place| {
                    rows.header_mut(row)[4] = group_bits | place as u32;
                });
                list.grouped += 1;
            }
            None => {
                header[4] = list.entries.len() as u32;
                list.entries.push(Single { row: posted.row, words: posted.words });
            }
        }
    }

    /// Notes that an entry is a group's now, of subscriptions.
    pub(super) fn set_shared(&mut self, key: u64, place: u32, subscribers: u32) {
        let hash = self.hash(key);
        if place & GROUPED != 0
            && let Some(posting) = self.postings.find(hash, |posting| posting.key == key)
        {
            let group = (place >> PLACE_BITS & ((1 << GROUP_BITS) - 1)) as usize;
            self.lists[posting.list].groups[group].set_shared((place & ((1 << PLACE_BITS) - 1)) as usize, subscribers);
        }
    }

    /// Takes an entry out of its list: the last of the list, or of its group, takes its place.
    pub(super) fn remove(&mut self, row: u32, rows: &mut Rows) {
        let header = *rows.header_mut(row);
        let key = u64::from(header[2]) << 32 | u64::from(header[3]);
        let hash = self.hash(key);
        let posting = self.postings.find_mut(hash, |posting| posting.key == key).expect("every entry is posted");
        if posting.list & INLINE != 0 {
            self.postings.remove(hash, |posting| posting.key == key);
            return;
        }
        let number = posting.list;
        let list = &mut self.lists[number];
        let place = header[4];
        if place & GROUPED != 0 {
            let group = (place >> PLACE_BITS & ((1 << GROUP_BITS) - 1)) as usize;
            let moved = list.groups[group].swap_remove((place & ((1 << PLACE_BITS) - 1)) as usize);
            if let Some(moved) = moved {
                rows.header_mut(moved)[4] = place;
            }
            list.grouped -= 1;
            if list.grouped == 0 {
                list.groups = Vec::new();
            }
        } else {
            list.entries.swap_remove(place as usize);
            if let Some(moved) = list.entries.get(place as usize) {
                rows.header_mut(moved.row)[4] = place;
            }
            if list.entries.len() * 4 < list.entries.capacity() {
                list.entries.shrink_to(list.entries.len() * 2);
            }
        }
        match (&list.entries[..], list.grouped) {
            ([], 0) => {
                self.postings.remove(hash, |posting| posting.key == key);
            }
            ([last], 0) => *posting = Posting { key, list: last.row | INLINE, word: last.words[0] },
            _ => return,
        }
        self.lists[number] = List::default();
        self.lists.vacate(number);
    }

    /// Looks a key of the event up. An entry that stands there alone becomes a candidate; a list is noted, to be scanned with all
    /// others ([`Lists::scan`]), when what it needs has come from memory.
    #[inline]
    pub(super) fn look_up(&self, key: u64, is_key_sure: bool, reading: &mut Reading) {
        let Some(posting) = self.postings.find(self.hash(key), |posting| posting.key == key) else { return };
        if posting.list & INLINE != 0 {
            if passes(posting.word, &reading.cells) {
                reading.candidates.push(posting.list & !INLINE);
            }
            return;
        }
        super::simd::prefetch(&self.lists[posting.list]);
        reading.lists.push((posting.list, is_key_sure));
    }

    /// Appends the rows in the noted lists that the event may match; marked [`SURE`] if it does, provided that the key leaves no
    /// doubt.
    pub(super) fn scan(&self, reading: &mut Reading) {
        for &(number, _) in &reading.lists {
            if let Some(first) = self.lists[number].entries.first() {
                super::simd::prefetch(first);
            }
        }
        for place in 0..reading.lists.len() {
            let (number, is_key_sure) = reading.lists[place];
            self.lists[number].scan(is_key_sure, reading);
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        let list = |list: &List| {
            list.entries.capacity() * size_of::<Single>()
                + list.groups.capacity() * size_of::<Group>()
                + list.groups.iter().map(Group::memory_usage).sum::<usize>()
        };
        self.postings.memory_usage() + self.lists.memory_usage() + self.lists.iter().map(list).sum::<usize>()
    }
}
