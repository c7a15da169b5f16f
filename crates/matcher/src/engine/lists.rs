//! Subscription lists: the entries under each key.
//!
//! A key with one entry has no list: the entry stands in the table of keys itself. Beside each entry stand two of its predicates,
//! as words about cells ([`super::keys::Weighed::word`]), the ones least likely to be true of an event that has the key. Most
//! entries end there, and their rows are never touched.

use super::keys::{ALWAYS, passes};
use super::pages::Pages;
use super::rows::Rows;
use super::table::{Table, hash_number};
use std::mem::size_of;

/// Marks an entry that stands in the table of keys.
const INLINE: u32 = 1 << 31;

/// An entry in a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posted {
    pub(super) row: u32,
    pub(super) words: [u32; 2],
}

#[derive(Clone, Copy, Debug)]
struct Posting {
    key: u64,
    /// A row with [`INLINE`], or the number of a list.
    list: u32,
    /// The first word of the row that stands here.
    word: u32,
}

/// All subscription lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    postings: Table<Posting>,
    lists: Pages<Vec<Posted>>,
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

    /// Posts an entry under a key, and writes key and place into its row.
    pub(super) fn insert(&mut self, key: u64, posted: Posted, rows: &mut Rows) {
        let (hash, secret) = (self.hash(key), self.secret);
        let header = rows.header_mut(posted.row);
        header[2] = (key >> 32) as u32;
        header[3] = key as u32;
        header[4] = 0;
        let Some(posting) = self.postings.find_mut(hash, |posting| posting.key == key) else {
            let posting = Posting { key, list: posted.row | INLINE, word: posted.words[0] };
            self.postings.insert(hash, posting, |posting| hash_number(posting.key, secret));
            return;
        };
        if posting.list & INLINE != 0 {
            let first = Posted { row: posting.list & !INLINE, words: [posting.word, ALWAYS] };
            posting.list = self.lists.insert(vec![first]);
        }
        let list = &mut self.lists[posting.list];
        header[4] = list.len() as u32;
        list.push(posted);
    }

    /// Takes an entry out of its list: the last of the list takes its place.
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
        let place = header[4] as usize;
        list.swap_remove(place);
        if let Some(moved) = list.get(place) {
            rows.header_mut(moved.row)[4] = place as u32;
        }
        if let [last] = list[..] {
            *posting = Posting { key, list: last.row | INLINE, word: last.words[0] };
            *list = Vec::new();
            self.lists.vacate(number);
        } else if list.len() * 4 < list.capacity() {
            list.shrink_to(list.len() * 2);
        }
    }

    /// Appends the rows under a key that the event with these cells may match.
    #[inline]
    pub(super) fn candidates(&self, key: u64, cells: &[u8], out: &mut Vec<u32>) {
        let Some(posting) = self.postings.find(self.hash(key), |posting| posting.key == key) else { return };
        if posting.list & INLINE != 0 {
            if passes(posting.word, cells) {
                out.push(posting.list & !INLINE);
            }
            return;
        }
        let list = &self.lists[posting.list];
        let start = out.len();
        out.resize(start + list.len(), 0);
        let found = &mut out[start..];
        let mut count = 0;
        for posted in list {
            // Without a branch, as nobody could predict it.
            found[count] = posted.row;
            count += usize::from(passes(posted.words[0], cells) & passes(posted.words[1], cells));
        }
        out.truncate(start + count);
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.postings.memory_usage()
            + self.lists.memory_usage()
            + self.lists.iter().map(|list| list.capacity() * size_of::<Posted>()).sum::<usize>()
    }
}
