//! Subscription lists: the entries under each key.
//!
//! A key with one entry has no list: the entry stands in the table of keys itself. In longer lists, entries of a shape that is
//! frequent there stand in groups of their own: see [`super::columns`]. For the others see [`super::singles`].

use super::blocks::Whose;
use super::columns::Group;
use super::flat::{Flat, Item};
use super::gates;
use super::keys::{ALWAYS, passes};
use super::pages::Pages;
use super::reading::Reading;
use super::rows::{self, HEADER, LISTED, Rows};
use super::shapes::Shape;
use super::singles::{Single, Singles, UNKNOWN_SHAPE};
use super::table::hash_number;
use crate::SubscriptionId;
use std::mem::size_of;

/// Marks an entry that stands in the table of keys.
const INLINE: u32 = 1 << 31;

/// Marks candidates that match without further test.
pub(super) const SURE: u32 = 1 << 31;
/// Marks places in groups: 11 bits for the group, 20 for the place in it.
const GROUPED: u32 = 1 << 31;
const GROUP_BITS: u32 = 11;
const PLACE_BITS: u32 = 20;
/// Of lists of this length all is known that a gate is chosen by.
const LEAST_GATED: usize = 4;
/// In longer lists no gate is chosen anew, for which all entries would have to be walked through.
const MOST_GATED: usize = 4_096;
/// Lists have groups from this length on.
const LEAST_LIST: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Posting {
    key: u64,
    /// A row with [`INLINE`], or the number of a list.
    list: u32,
    /// The first word of the row that stands here, or the list's gate: see [`super::gates`].
    word: u32,
}

impl Item for Posting {
    const VACANT: Posting = Posting { key: u64::MAX, list: u32::MAX, word: 0 };
}

/// The entries under one key; in one cache line.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct List {
    key: u64,
    singles: Singles,
    groups: Vec<Group>,
    grouped: u32,
    /// Entries that came since the gate was chosen.
    since: u32,
}

impl List {
    fn len(&self) -> usize {
        self.singles.len() + self.grouped as usize
    }

    #[inline]
    fn scan(&self, is_key_sure: bool, reading: &mut Reading) {
        self.groups.iter().for_each(Group::prefetch);
        self.singles.scan(is_key_sure, reading);
        for (place, group) in self.groups.iter().enumerate() {
            if let Some(next) = self.groups.get(place + 1) {
                next.prefetch_columns();
            }
            group.candidates(reading, is_key_sure);
        }
    }

    /// The list's gate when an entry has come: chosen anew now and then, else widened.
    fn gate(&mut self, gate: u32, single: &Single) -> u32 {
        self.since += 1;
        let due = if gate == ALWAYS { self.len() / 16 } else { self.len() };
        let may_choose = (LEAST_GATED..=MOST_GATED).contains(&self.len()) && self.grouped == 0;
        if !may_choose || (self.since as usize) < due {
            return gates::widened(gate, &single.words);
        }
        self.since = 0;
        // From the last one on: in the middle of a generation those before may have been placed in the one before.
        gates::around((0..self.singles.len()).rev().map(|place| self.singles.words(place)))
    }

    /// The group of a shape, if there is one.
    fn group_of(&self, shape: &Shape) -> Option<usize> {
        self.groups.iter().position(|group| group.is_of(shape) && group.has_room())
    }

    /// A new group for a shape, if there may be one more.
    fn new_group(&mut self, shape: &Shape) -> Option<usize> {
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
    postings: Flat<Posting>,
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

    /// Posts an entry under the key that stands in its row, and writes its place there. Says the rows that are to be posted once more,
    /// as there is a group for them now, or as more is to be known of them.
    pub(super) fn insert(&mut self, key: u64, row: u32, shape: &Shape, rows: &mut Rows) -> Vec<u32> {
        let (hash, secret) = (self.hash(key), self.secret);
        let whose = Whose::of(rows.header_mut(row));
        let single = single(row, whose, shape);
        let Some(posting) = self.postings.find_mut(hash, |posting| posting.key == key) else {
            rows.header_mut(row)[4] = 0;
            let posting = Posting { key, list: row | INLINE, word: single.words[0] };
            self.postings.insert(hash, posting, |posting| hash_number(posting.key, secret));
            return Vec::new();
        };
        if posting.list & INLINE != 0 {
            // The rest of its words stays unknown until there are enough entries to choose a gate for.
            let words = std::array::from_fn(|place| if place == 0 { posting.word } else { ALWAYS });
            let first = Single { row: posting.list & !INLINE, words, id: SubscriptionId(0), shape: UNKNOWN_SHAPE };
            posting.list = self.lists.insert(List { key, ..List::default() });
            self.lists[posting.list].singles.push(&first);
            set_list(rows.header_mut(first.row), posting.list);
        }
        set_list(rows.header_mut(row), posting.list);
        let list = &mut self.lists[posting.list];
        let (mut group, mut others) = (None, Vec::new());
        if list.len() >= LEAST_LIST && !shape.is_empty() {
            group = list.group_of(shape);
            if group.is_none()
                && let Some(frequent) = list.singles.frequent(single.shape)
            {
                (group, others) = (list.new_group(shape), frequent);
            }
        }
        let Some(group) = group else {
            rows.header_mut(row)[4] = list.singles.len() as u32;
            list.singles.push(&single);
            posting.word = list.gate(posting.word, &single);
            return if list.len() == LEAST_GATED { list.singles.unknown().into_iter().collect() } else { Vec::new() };
        };
        let group_bits = GROUPED | (group as u32) << PLACE_BITS;
        list.groups[group].push(row, whose, shape, |row, place| {
            rows.header_mut(row)[4] = group_bits | place as u32;
        });
        list.grouped += 1;
        posting.word = list.gate(posting.word, &single);
        others
    }

    /// The key under which a row with this header is posted.
    pub(super) fn key(&self, header: &[u32; HEADER]) -> u64 {
        if header[5] & LISTED != 0 { self.lists[header[2]].key } else { rows::key(header) }
    }

    /// Notes that the entry with this header is a group's now, of subscriptions.
    pub(super) fn set_shared(&mut self, header: &[u32; HEADER], subscribers: u32) {
        if header[5] & LISTED == 0 {
            return;
        }
        let (list, place) = (&mut self.lists[header[2]], header[4]);
        if place & GROUPED != 0 {
            let group = (place >> PLACE_BITS & ((1 << GROUP_BITS) - 1)) as usize;
            list.groups[group].set_shared((place & ((1 << PLACE_BITS) - 1)) as usize, subscribers);
        } else {
            list.singles.forget_whose(place as usize);
        }
    }

    /// Takes an entry out of its list: the last of the list, or of its group, takes its place.
    pub(super) fn remove(&mut self, row: u32, rows: &mut Rows) {
        let header = *rows.header_mut(row);
        if header[5] & LISTED == 0 {
            return self.remove_posting(rows::key(&header));
        }
        let (number, place) = (header[2], header[4]);
        let list = &mut self.lists[number];
        let key = list.key;
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
            if let Some(moved) = list.singles.swap_remove(place as usize) {
                rows.header_mut(moved)[4] = place;
            }
        }
        match (list.singles.len(), list.grouped) {
            (0, 0) => self.remove_posting(key),
            (1, 0) => {
                let (row, word) = (list.singles.row(0), list.singles.first_word(0));
                rows::set_key(rows.header_mut(row), key);
                let hash = self.hash(key);
                let posting = self.postings.find_mut(hash, |posting| posting.key == key);
                *posting.expect("every list has a key") = Posting { key, list: row | INLINE, word };
            }
            _ => return,
        }
        self.lists[number] = List::default();
        self.lists.vacate(number);
    }

    fn remove_posting(&mut self, key: u64) {
        let (hash, secret) = (self.hash(key), self.secret);
        self.postings.remove(hash, |posting| posting.key == key, |posting| hash_number(posting.key, secret));
    }

    /// Notes a key of the event, to be looked up with all others ([`Lists::scan`]), when what that needs has come from memory.
    #[inline]
    pub(super) fn ask(&self, key: u64, is_key_sure: bool, reading: &mut Reading) {
        let hash = self.hash(key);
        self.postings.prefetch(hash);
        reading.asked.push((hash, key, is_key_sure));
    }

    /// Appends the rows under the noted keys that the event may match; marked [`SURE`] if it does, provided that the key leaves no
    /// doubt.
    pub(super) fn scan(&self, reading: &mut Reading) {
        for place in 0..reading.asked.len() {
            let (hash, key, is_key_sure) = reading.asked[place];
            let Some(posting) = self.postings.find(hash, |posting| posting.key == key) else { continue };
            if !passes(posting.word, &reading.cells) {
                continue;
            }
            if posting.list & INLINE == 0 {
                super::simd::prefetch(&self.lists[posting.list]);
                reading.lists.push((posting.list, is_key_sure));
            } else {
                reading.candidates.push(posting.list & !INLINE);
            }
        }
        for &(number, _) in &reading.lists {
            let list = &self.lists[number];
            list.singles.prefetch();
            list.groups.first().into_iter().for_each(super::simd::prefetch);
        }
        for place in 0..reading.lists.len() {
            let (number, is_key_sure) = reading.lists[place];
            self.lists[number].scan(is_key_sure, reading);
        }
    }

    /// Asks the processor for what removing the entry with this header will need.
    pub(super) fn prefetch(&self, header: &[u32]) {
        if header[5] & LISTED != 0 {
            super::simd::prefetch(&self.lists[header[2]]);
        } else {
            self.postings.prefetch(self.hash(rows::key(header)));
        }
    }

    /// Asks the processor for what stands in the list of the entry with this header, once the list itself is at hand.
    pub(super) fn prefetch_place(&self, header: &[u32]) {
        if header[5] & LISTED != 0 && header[4] & GROUPED == 0 {
            self.lists[header[2]].singles.prefetch_place(header[4] as usize);
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        let list = |list: &List| {
            list.singles.memory_usage()
                + list.groups.capacity() * size_of::<Group>()
                + list.groups.iter().map(Group::memory_usage).sum::<usize>()
        };
        self.postings.memory_usage() + self.lists.memory_usage() + self.lists.iter().map(list).sum::<usize>()
    }
}

/// Notes the list of a row in its header.
fn set_list(header: &mut [u32; HEADER], list: u32) {
    header[2] = list;
    header[5] |= LISTED;
}

fn single(row: u32, whose: Whose, shape: &Shape) -> Single {
    let (id, is_alone) = match whose {
        Whose::Only(id) => (id, true),
        Whose::Group(_) | Whose::Unsaid => (SubscriptionId(0), false),
    };
    Single { row, words: shape.words(is_alone), id, shape: shape.hash() }
}
