//! Blocks: up to [`BLOCK`] entries of a group, column by column.

use super::lists::SURE;
use super::reading::Reading;
use super::rows::{ALONE, SHARED, id};
use super::simd::{LANES, Verdict, choose, ones};
use crate::SubscriptionId;
use std::mem::size_of;

/// The most entries of a block, a power of two.
pub(super) const BLOCK: usize = 1024;

/// What can be said of whose an entry is without its row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose {
    /// The only subscription's, which has no other entry.
    Only(SubscriptionId),
    /// A group's.
    Group(u32),
    /// It takes the row to know.
    Unsaid,
}

impl Whose {
    /// As it is in a row with this header.
    pub(super) fn of(header: &[u32]) -> Whose {
        if header[0] & SHARED != 0 {
            Whose::Group(header[0] & !SHARED)
        } else if header[5] & ALONE != 0 {
            Whose::Only(id(header))
        } else {
            Whose::Unsaid
        }
    }
}

/// Some entries of a group.
#[derive(Clone, Debug)]
pub(super) struct Block {
    rows: Vec<u32>,
    /// Whose the entry is, if that can be said in a word: of the only subscription, the id; of a group of them, its number.
    whose: Vec<SubscriptionId>,
    /// By entry, [`LANES`] in a word: whether it is an id, and whether a group, that stands there.
    kinds: Vec<[u32; 2]>,
    /// The entries that there is room for, a multiple of [`LANES`].
    pub(super) capacity: usize,
    /// Column by column.
    pub(super) words: Vec<u16>,
    /// Entries before this place in the group's order stand in other blocks, if there are any.
    pub(super) from: u16,
    /// The least and the greatest place in the group's order of entries that were here since it was empty.
    pub(super) places: [u16; 2],
    /// The greatest last position of such.
    pub(super) reach: u16,
}

impl Block {
    pub(super) fn new(columns: usize, from: u16) -> Block {
        Block { from, places: [u16::MAX, 0], reach: 0, ..Block::with_capacity(LANES, columns) }
    }

    fn with_capacity(capacity: usize, columns: usize) -> Block {
        Block {
            rows: Vec::with_capacity(capacity),
            whose: vec![SubscriptionId(0); capacity],
            kinds: vec![[0; 2]; capacity / LANES],
            capacity,
            words: vec![0; columns * capacity],
            from: 0,
            places: [u16::MAX, 0],
            reach: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows.len() == BLOCK
    }

    fn resize(&mut self, capacity: usize, columns: usize) {
        let mut other = Block::with_capacity(capacity, columns);
        let length = self.len();
        other.rows.extend_from_slice(&self.rows);
        other.whose[..length].copy_from_slice(&self.whose[..length]);
        let kinds = length.div_ceil(LANES);
        other.kinds[..kinds].copy_from_slice(&self.kinds[..kinds]);
        for column in 0..columns {
            other.words[column * capacity..][..length].copy_from_slice(&self.words[column * self.capacity..][..length]);
        }
        *self = Block { from: self.from, places: self.places, reach: self.reach, ..other };
    }

    /// Appends an entry to a block that is not full; says where. Its words are still to be written.
    pub(super) fn push(&mut self, row: u32, whose: Whose, columns: usize) -> usize {
        if self.len() == self.capacity {
            let more = (self.capacity / 4).max(1).next_multiple_of(LANES);
            self.resize((self.capacity + more).min(BLOCK), columns);
        }
        self.rows.push(row);
        self.set_whose(self.len() - 1, whose);
        self.len() - 1
    }

    /// Removes an entry; the last one takes its place. Says the row of that one, unless it was the last itself.
    pub(super) fn swap_remove(&mut self, lane: usize, columns: usize) -> Option<u32> {
        let last = self.len() - 1;
        self.set_whose(lane, self.whose(last));
        for column in 0..columns {
            self.words[column * self.capacity + lane] = self.words[column * self.capacity + last];
        }
        self.rows.swap_remove(lane);
        let moved = self.rows.get(lane).copied();
        if self.len() * 4 < self.capacity && self.capacity > LANES {
            self.resize((self.capacity / 2).next_multiple_of(LANES), columns);
        }
        moved
    }

    pub(super) fn row(&self, lane: usize) -> u32 {
        self.rows[lane]
    }

    /// Notes whose an entry is.
    pub(super) fn set_whose(&mut self, lane: usize, whose: Whose) {
        let bit = 1 << (lane % LANES);
        let kinds = &mut self.kinds[lane / LANES];
        kinds.iter_mut().for_each(|kind| *kind &= !bit);
        match whose {
            Whose::Only(id) => {
                self.whose[lane] = id;
                kinds[0] |= bit;
            }
            Whose::Group(group) => {
                self.whose[lane] = SubscriptionId(group.into());
                kinds[1] |= bit;
            }
            Whose::Unsaid => {}
        }
    }

    pub(super) fn whose(&self, lane: usize) -> Whose {
        let is = |kind: u32| kind >> (lane % LANES) & 1 == 1;
        match self.kinds[lane / LANES] {
            [only, _] if is(only) => Whose::Only(self.whose[lane]),
            [_, group] if is(group) => Whose::Group(self.whose[lane].0 as u32),
            _ => Whose::Unsaid,
        }
    }

    /// Notes what of its entries may match.
    pub(super) fn note(&self, verdicts: &[Verdict], is_sure: bool, reading: &mut Reading) {
        let wants_whose = reading.wants_ids && is_sure;
        let mut chosen = [0; BLOCK / LANES];
        for (number, verdict) in verdicts.iter().enumerate() {
            let (mut maybe, surely) = (verdict.maybe, if is_sure { verdict.surely & verdict.maybe } else { 0 });
            if wants_whose {
                let [only, group] = self.kinds[number].map(|kind| kind & surely);
                chosen[number] = only;
                reading.groups.extend(ones(group).map(|lane| self.whose[number * LANES + lane].0 as u32));
                maybe &= !(only | group);
            }
            for lane in ones(maybe) {
                let sure = if surely >> lane & 1 == 1 { SURE } else { 0 };
                reading.candidates.push(self.rows[number * LANES + lane] | sure);
            }
        }
        if wants_whose {
            choose(&self.whose, &chosen[..verdicts.len()], &mut reading.ids);
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        let entry = size_of::<u32>() + size_of::<SubscriptionId>();
        let kinds = self.kinds.capacity() * size_of::<[u32; 2]>();
        size_of::<Block>() + self.capacity * entry + kinds + self.words.capacity() * size_of::<u16>()
    }
}
