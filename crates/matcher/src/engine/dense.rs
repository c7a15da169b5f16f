//! The dense case: entries without a key that events seldom have, as bitmaps of failure.
//!
//! For each slot and each *bucket* of its cells there is a bitmap of the entries that fail if the event's value lies there; a
//! further one is for events without a value. The bitmaps that an event selects, one for each slot, are united, and what is in none of
//! them is tested in its row. An entry costs nothing in slots it says nothing about, and its bits are 32 for each slot.

use super::keys::Weighed;
use super::reading::Reading;
use super::rows::Rows;
use super::simd::{STRIP, unite};
use std::mem::size_of;

/// The entries of a tile. Bitmaps of one tile lie together, so that an update touches few pages.
const TILE: usize = 4096;
const WORDS: usize = TILE / 64;
/// Buckets of eight cells, and the one of absence, which is the last.
const BUCKETS: usize = 33;
/// The most slots with bitmaps; predicates on others are tested in the row.
const MOST_SLOTS: usize = 64;

/// The entries without a good key, as seen through the lenses of one parity.
#[derive(Clone, Debug, Default)]
pub(super) struct Dense {
    /// The views that have bitmaps.
    views: Vec<u32>,
    tiles: Vec<Tile>,
}

#[derive(Clone, Debug, Default)]
struct Tile {
    rows: Vec<u32>,
    /// By view, as far as the tile has entries that say something about it: a bitmap for each bucket.
    failing: Vec<Box<[u64]>>,
}

#[inline]
fn bucket(cell: u8) -> usize {
    if cell == 0 { BUCKETS - 1 } else { (cell as usize - 1) / 8 }
}

impl Dense {
    pub(super) fn is_empty(&self) -> bool {
        self.tiles.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.tiles.last().map_or(0, |last| (self.tiles.len() - 1) * TILE + last.rows.len())
    }

    /// Adds an entry, and notes its place in its row.
    pub(super) fn insert(&mut self, row: u32, weighed: &[Weighed], rows: &mut Rows) {
        rows.header_mut(row)[4] = self.len() as u32;
        if self.tiles.last().is_none_or(|last| last.rows.len() == TILE) {
            self.tiles.push(Tile::default());
        }
        let tile = self.tiles.last_mut().expect("one was just made, if there was none");
        let place = tile.rows.len();
        tile.rows.push(row);
        for weighed in weighed {
            let number = match self.views.iter().position(|&view| view == weighed.view) {
                Some(number) => number,
                None if self.views.len() < MOST_SLOTS => {
                    self.views.push(weighed.view);
                    self.views.len() - 1
                }
                None => continue,
            };
            while tile.failing.len() <= number {
                tile.failing.push(vec![0; BUCKETS * WORDS].into());
            }
            let passing = passing(weighed);
            for bucket in (0..BUCKETS).filter(|bucket| passing >> bucket & 1 == 0) {
                tile.failing[number][bucket * WORDS + place / 64] |= 1 << (place % 64);
            }
        }
    }

    /// Removes the entry at a place; the last one takes it.
    pub(super) fn remove(&mut self, place: usize, rows: &mut Rows) {
        let (tile, inside) = (place / TILE, place % TILE);
        let last_tile = self.tiles.len() - 1;
        let row = self.tiles[last_tile].rows.pop().expect("no tile is empty");
        let last = self.tiles[last_tile].rows.len();
        let is_same = (tile, inside) == (last_tile, last);
        if !is_same {
            self.tiles[tile].rows[inside] = row;
            rows.header_mut(row)[4] = place as u32;
        }
        for number in 0..self.views.len() {
            for bucket in 0..BUCKETS {
                let take = |tile: &mut Tile| {
                    let Some(failing) = tile.failing.get_mut(number) else { return 0 };
                    let word = &mut failing[bucket * WORDS + last / 64];
                    let bit = *word >> (last % 64) & 1;
                    *word &= !(1 << (last % 64));
                    bit
                };
                let bit = take(&mut self.tiles[last_tile]);
                let target = &mut self.tiles[tile];
                if !is_same && target.failing.len() <= number && bit == 1 {
                    target.failing.resize_with(number + 1, || vec![0; BUCKETS * WORDS].into());
                }
                if !is_same && let Some(failing) = target.failing.get_mut(number) {
                    let word = &mut failing[bucket * WORDS + inside / 64];
                    *word = *word & !(1 << (inside % 64)) | bit << (inside % 64);
                }
            }
        }
        if self.tiles[last_tile].rows.is_empty() {
            self.tiles.pop();
        }
        if self.tiles.is_empty() {
            *self = Dense::default();
        }
    }

    /// Appends the rows that the event may match.
    pub(super) fn candidates(&self, reading: &mut Reading) {
        let Reading { cells, candidates, .. } = reading;
        let mut buckets = [0; MOST_SLOTS];
        for (place, &view) in buckets.iter_mut().zip(&self.views) {
            *place = bucket(cells[view as usize]);
        }
        for tile in &self.tiles {
            let words = tile.rows.len().div_ceil(64);
            let mut bitmaps: [&[u64]; MOST_SLOTS] = [&[]; MOST_SLOTS];
            for ((bitmap, bitmaps), &bucket) in bitmaps.iter_mut().zip(&tile.failing).zip(&buckets) {
                *bitmap = &bitmaps[bucket * WORDS..][..WORDS];
            }
            let mut failing = [0_u64; WORDS];
            unite(&mut failing[..words.next_multiple_of(STRIP)], &bitmaps[..tile.failing.len()]);
            for (number, failing) in failing[..words].iter().enumerate() {
                let count = (tile.rows.len() - number * 64).min(64);
                let mut left = !failing & (u64::MAX >> (64 - count));
                while left != 0 {
                    candidates.push(tile.rows[number * 64 + left.trailing_zeros() as usize]);
                    left &= left - 1;
                }
            }
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        let tile = |tile: &Tile| {
            tile.rows.capacity() * size_of::<u32>()
                + tile.failing.capacity() * size_of::<Box<[u64]>>()
                + tile.failing.len() * BUCKETS * WORDS * size_of::<u64>()
        };
        self.views.capacity() * size_of::<u32>()
            + self.tiles.capacity() * size_of::<Tile>()
            + self.tiles.iter().map(tile).sum::<usize>()
    }
}

/// The buckets in which the predicate may be true, as bits.
fn passing(weighed: &Weighed) -> u64 {
    if weighed.is_absence() {
        return 1 << (BUCKETS - 1);
    }
    let (first, last) = (u32::from(weighed.first), u32::from(weighed.first) + u32::from(weighed.span));
    let run = |first: u32, last: u32| {
        let (first, last) = (bucket(first.max(1) as u8), bucket(last.max(1) as u8));
        (u64::MAX >> (63 - (last - first))) << first
    };
    if last > 255 {
        // Around the end, through absence, which this never allows.
        return run(first, 255) | if last > 256 { run(1, last - 256) } else { 0 };
    }
    run(first, last)
}
