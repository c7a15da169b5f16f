//! Rows: each entry (a conjunction, and who asks for it) as a run of 32-bit words in an arena of pages.
//!
//! | word | what |
//! | --- | --- |
//! | 0 | the subscriber: a subscription's number, or with [`SHARED`] that of a group of subscriptions |
//! | 1 | the subscriber's owner, unless it is a group |
//! | 2, 3 | the key under which the entry is posted; with [`LISTED`] the number of the list that has this key, instead |
//! | 4 | the place in the subscription list of that key |
//! | 5 | words of the row (24 bits), [`PARITY`], [`ALONE`], [`LISTED`] |
//! | 6, 7 | the id of the subscription, unless it is a group |
//! | 8... | the predicates, the least likely first |
//!
//! A predicate is `slot << 4 | kind`, a first and a last code, and the words its [`Kind`] adds.

use super::codes::{implied_key, with_low};
use crate::SubscriptionId;
use std::mem::size_of;

pub(super) const HEADER: usize = 8;
/// In word 5: marks rows placed by lenses of odd generations.
pub(super) const PARITY: u32 = 1 << 24;
/// In word 5: marks rows whose subscriber, if it is a subscription, has no other row.
pub(super) const ALONE: u32 = 1 << 25;
/// In word 5: marks rows that stand in a list, so that removing them does not begin with looking up the key.
pub(super) const LISTED: u32 = 1 << 26;
/// Marks a subscriber that is a group.
pub(super) const SHARED: u32 = 1 << 31;
const PAGE: usize = 1 << 14;
/// The bits of word 5 that are the length.
const LENGTH: u32 = (1 << 24) - 1;
const NONE: u32 = u32::MAX;

/// What a predicate's words say. Each but `Absent` asks for a value in the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// First to last code; codes decide.
    Codes = 0,
    /// First to last key; their lows are the implied ones.
    Keys = 1,
    /// First to last key; two words with their lows.
    KeysWithLows = 2,
    /// At most the first key, or at least the last; two words with their lows.
    Outside = 3,
    /// No code from first to last.
    NotCodes = 4,
    /// First to last code, and where the code is the first or the last the test must pass; one word with its number.
    Edges = 5,
    /// First to last code, and the test must pass; one word with its number.
    Test = 6,
    /// The codes 1 to 64 of which the first and last word are the mask.
    Mask = 7,
    /// No value.
    Absent = 8,
    /// The codes 1 to 128 of which the four words are the mask.
    WideMask = 9,
}

impl Kind {
    pub(super) const ALL: [Kind; 16] = [
        Kind::Codes,
        Kind::Keys,
        Kind::KeysWithLows,
        Kind::Outside,
        Kind::NotCodes,
        Kind::Edges,
        Kind::Test,
        Kind::Mask,
        Kind::Absent,
        Kind::WideMask,
        // Nobody writes these; they are here so that no number of four bits is out of bounds.
        Kind::Absent,
        Kind::Absent,
        Kind::Absent,
        Kind::Absent,
        Kind::Absent,
        Kind::Absent,
    ];

    #[inline]
    pub(super) fn words(self) -> usize {
        match self {
            Kind::Codes | Kind::Keys | Kind::NotCodes | Kind::Mask | Kind::Absent => 3,
            Kind::KeysWithLows | Kind::Outside | Kind::WideMask => 5,
            Kind::Edges | Kind::Test => 4,
        }
    }
}

/// A predicate as it stands in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Predicate {
    pub(super) slot: u32,
    pub(super) kind: Kind,
    /// First code, last code, and what the kind adds; the rest is zero.
    pub(super) words: [u32; 4],
}

impl Predicate {
    /// Reads the predicate at the front of some words, and says how many it takes.
    #[inline]
    pub(super) fn read(words: &[u32]) -> (Predicate, usize) {
        let kind = Kind::ALL[words[0] as usize & 15];
        let mut rest = [0; 4];
        let length = kind.words();
        rest[..length - 1].copy_from_slice(&words[1..length]);
        (Predicate { slot: words[0] >> 4, kind, words: rest }, length)
    }

    pub(super) fn first(&self) -> u32 {
        self.words[0]
    }

    pub(super) fn last(&self) -> u32 {
        self.words[1]
    }

    /// Its first and last key, or what it lies outside of; where a test decides, the ends of what may pass.
    #[inline]
    pub(super) fn keys(&self) -> (u64, u64) {
        let (first, last) = (self.first(), self.last());
        match self.kind {
            Kind::KeysWithLows | Kind::Outside => (with_low(first, self.words[2]), with_low(last, self.words[3])),
            Kind::Test => (with_low(first, 0), with_low(last, u32::MAX)),
            Kind::Codes | Kind::Keys | Kind::NotCodes | Kind::Edges | Kind::Mask | Kind::WideMask | Kind::Absent => {
                (implied_key(first), implied_key(last))
            }
        }
    }

    /// The mask of its codes less 1, if it is one.
    #[inline]
    pub(super) fn mask(&self) -> u128 {
        self.words.iter().rev().fold(0, |mask, &word| mask << 32 | u128::from(word))
    }

    /// The codes of its mask.
    pub(super) fn codes(&self) -> impl Iterator<Item = u32> {
        let mask = self.mask();
        (1..=128).filter(move |code| mask >> (code - 1) & 1 == 1)
    }

    /// The number of its test, if it has one.
    pub(super) fn test(&self) -> Option<u32> {
        matches!(self.kind, Kind::Edges | Kind::Test).then_some(self.words[2])
    }

    pub(super) fn write(&self, row: &mut Vec<u32>) {
        row.push(self.slot << 4 | self.kind as u32);
        row.extend_from_slice(&self.words[..self.kind.words() - 1]);
    }
}

/// The id of a row's subscription, if that is its only one.
#[inline]
pub(super) fn id(row: &[u32]) -> SubscriptionId {
    SubscriptionId(u64::from(row[6]) << 32 | u64::from(row[7]))
}

/// The key in a row that is in no list.
#[inline]
pub(super) fn key(header: &[u32]) -> u64 {
    u64::from(header[2]) << 32 | u64::from(header[3])
}

/// Notes the key of a row that is in no list.
pub(super) fn set_key(header: &mut [u32; HEADER], key: u64) {
    header[2] = (key >> 32) as u32;
    header[3] = key as u32;
    header[5] &= !LISTED;
}

/// The predicates of a row.
pub(super) fn predicates(row: &[u32]) -> impl Iterator<Item = Predicate> {
    let mut rest = &row[HEADER..];
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (predicate, length) = Predicate::read(rest);
        rest = &rest[length..];
        Some(predicate)
    })
}

/// The arena. A row is named by where it starts; places of removed rows are used again for rows of the same length.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    pages: Vec<Vec<u32>>,
    /// By length: the first vacant place, each of which names the next in its first word.
    vacant: Vec<u32>,
    /// The page that is being filled.
    open: Option<usize>,
    /// Pages that once held a row longer than a page, by itself.
    empty_pages: Vec<usize>,
}

impl Rows {
    #[inline]
    pub(super) fn row(&self, row: u32) -> &[u32] {
        let words = &self.pages[row as usize / PAGE][row as usize % PAGE..];
        &words[..(words[5] & LENGTH) as usize]
    }

    /// Asks the processor to have a row at hand soon.
    #[inline]
    pub(super) fn prefetch(&self, row: u32) {
        let words = &self.pages[row as usize / PAGE][row as usize % PAGE..];
        super::simd::prefetch(&words[0]);
        // Most rows reach into a second cache line.
        if let Some(word) = words.get(16) {
            super::simd::prefetch(word);
        }
    }

    /// The words before the predicates.
    pub(super) fn header_mut(&mut self, row: u32) -> &mut [u32; HEADER] {
        let words = &mut self.pages[row as usize / PAGE][row as usize % PAGE..];
        words.first_chunk_mut().expect("every row has a header")
    }

    /// Keeps a row, whose length is filled in; says where it starts.
    pub(super) fn insert(&mut self, mut row: Vec<u32>) -> u32 {
        let length = row.len();
        assert!(length <= LENGTH as usize, "limits keep filters far smaller");
        row[5] = row[5] & !LENGTH | length as u32;
        if length > PAGE {
            let page = self.empty_pages.pop().unwrap_or_else(|| {
                self.pages.push(Vec::new());
                self.pages.len() - 1
            });
            self.pages[page] = row;
            return number(page * PAGE);
        }
        if self.vacant.len() <= length {
            self.vacant.resize(length + 1, NONE);
        }
        let place = self.vacant[length];
        if place != NONE {
            let words = &mut self.pages[place as usize / PAGE][place as usize % PAGE..][..length];
            self.vacant[length] = words[0];
            words.copy_from_slice(&row);
            return place;
        }
        let page = match self.open {
            Some(page) if self.pages[page].len() + length <= PAGE => page,
            _ => {
                // The first page grows as it is filled, so that a small engine is small.
                self.pages.push(if self.pages.is_empty() { Vec::new() } else { Vec::with_capacity(PAGE) });
                self.pages.len() - 1
            }
        };
        self.open = Some(page);
        let start = page * PAGE + self.pages[page].len();
        self.pages[page].extend_from_slice(&row);
        number(start)
    }

    pub(super) fn remove(&mut self, row: u32) {
        let words = &mut self.pages[row as usize / PAGE][row as usize % PAGE..];
        let length = (words[5] & LENGTH) as usize;
        if length > PAGE {
            self.pages[row as usize / PAGE] = Vec::new();
            self.empty_pages.push(row as usize / PAGE);
            return;
        }
        words[0] = self.vacant[length];
        self.vacant[length] = row;
    }

    pub(super) fn memory_usage(&self) -> usize {
        let pages: usize = self.pages.iter().map(|page| page.capacity() * size_of::<u32>()).sum();
        pages + self.pages.capacity() * size_of::<Vec<u32>>() + self.vacant.capacity() * size_of::<u32>()
    }
}

/// The number of a row that starts here.
fn number(start: usize) -> u32 {
    u32::try_from(start).ok().filter(|start| start & SHARED == 0).expect("rows take less than 8 GiB")
}
