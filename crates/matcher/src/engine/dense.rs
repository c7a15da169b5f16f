//! The dense case: entries without a key that events seldom have, as bitmaps of failure.
//!
//! For each slot and each *bucket* of its cells there is a bitmap of the entries that fail if the event's value lies there; a
//! further one is for events without a value. The bitmaps that an event selects, one for each slot, are united. What is in none of
//! them is compared cell by cell with its [`Record`], and where that leaves a doubt, tested in its row. An entry costs nothing in
//! slots it says nothing about, and its bits are 33 for each slot.

use super::blocks::Whose;
use super::keys::Weighed;
use super::lists::SURE;
use super::pages::Pages;
use super::reading::Reading;
use super::rows::Rows;
use super::simd::{STRIP, prefetch, unite};
use crate::SubscriptionId;
use std::mem::size_of;

/// The entries of a tile. Its bitmaps are long enough to be read in long runs, and few enough that an update touches few pages.
const TILE: usize = 16_384;
/// Bitmaps have at first so many words, and are widened by and by.
const LEAST_WORDS: usize = STRIP;
/// Buckets of eight cells, and the one of absence, which is the last.
const BUCKETS: usize = 33;
/// The most slots with bitmaps; predicates on others are tested in the row.
const MOST_SLOTS: usize = 27;
/// Where a record says whether it says everything.
const WHOLE: usize = MOST_SLOTS;
/// Where a record has the id.
const ID: usize = 28;
/// The first cell and the span of what every cell is strictly inside of, absence too; there are no cells 254 and 255.
const ANY: (u8, u8) = (255, 255);

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
    /// Those behind the last row are of removed entries: the bitmaps still say that.
    records: Pages<Record>,
    /// By view, as far as the tile has entries that say something about it: a bitmap for each bucket.
    failing: Vec<Bitmaps>,
}

/// The bitmaps of a view in a tile, one for each bucket, one behind the other.
#[derive(Clone, Debug)]
struct Bitmaps {
    bits: Box<[u64]>,
    /// Of each bitmap.
    words: usize,
}

/// An entry in one cache line: by view, and behind that for whether this is all there is to say, the first cell and the span of
/// those it may be true in; then one half each of its subscription's id.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Record {
    firsts: [u8; 32],
    spans: [u8; 32],
}

impl Record {
    fn new(whose: Whose) -> Record {
        let mut record = Record { firsts: [ANY.0; 32], spans: [ANY.1; 32] };
        match whose {
            Whose::Only(SubscriptionId(id)) => {
                record.firsts[ID..].copy_from_slice(&((id >> 32) as u32).to_le_bytes());
                record.spans[ID..].copy_from_slice(&(id as u32).to_le_bytes());
            }
            Whose::Group(_) | Whose::Unsaid => record.leave_doubt(),
        }
        record
    }

    /// Notes that only the row says everything.
    fn leave_doubt(&mut self) {
        self.firsts[WHOLE] = 0;
    }

    fn id(&self) -> SubscriptionId {
        let half = |bytes: &[u8; 32]| u32::from_le_bytes([bytes[ID], bytes[ID + 1], bytes[ID + 2], bytes[ID + 3]]);
        SubscriptionId(u64::from(half(&self.firsts)) << 32 | u64::from(half(&self.spans)))
    }

    /// Whether an event with these cells may match, and whether it does for sure.
    #[inline]
    fn judge(&self, cells: &[u8; 32]) -> (bool, bool) {
        let (mut fails, mut doubts) = (0_u8, 0_u8);
        for (lane, cell) in cells.iter().enumerate() {
            let distance = cell.wrapping_sub(self.firsts[lane]);
            let is_used = if lane < ID { u8::MAX } else { 0 };
            fails |= if distance > self.spans[lane] { is_used } else { 0 };
            doubts |= if distance == 0 || distance >= self.spans[lane] { is_used } else { 0 };
        }
        (fails == 0, fails | doubts == 0)
    }

    /// The buckets in which the predicate on a view may be true, as bits.
    fn passing(&self, view: usize) -> u64 {
        let (first, span) = (self.firsts[view], self.spans[view]);
        if (first, span) == ANY {
            return u64::MAX;
        }
        if (first, span) == (0, 0) {
            return 1 << (BUCKETS - 1);
        }
        let (first, last) = (u32::from(first), u32::from(first) + u32::from(span));
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

    /// The buckets in which the predicate on a view fails, as bits.
    fn failing(&self, view: usize) -> u64 {
        !self.passing(view) & ((1 << BUCKETS) - 1)
    }
}

#[inline]
fn bucket(cell: u8) -> usize {
    if cell == 0 { BUCKETS - 1 } else { (cell as usize - 1) / 8 }
}

impl Bitmaps {
    fn new(words: usize) -> Bitmaps {
        Bitmaps { bits: vec![0; BUCKETS * words].into(), words }
    }

    #[inline]
    fn of_bucket(&self, bucket: usize) -> &[u64] {
        &self.bits[bucket * self.words..][..self.words]
    }

    fn flip(&mut self, bucket: usize, place: usize) {
        self.bits[bucket * self.words + place / 64] ^= 1 << (place % 64);
    }

    fn widen(&mut self, words: usize) {
        let mut wide = Bitmaps::new(words);
        for (to, from) in wide.bits.chunks_mut(words).zip(self.bits.chunks(self.words)) {
            to[..from.len()].copy_from_slice(from);
        }
        *self = wide;
    }
}

impl Tile {
    /// The words that bitmaps have when there are so many entries: room for a third more, so that those of one view can be widened at a
    /// time.
    fn words(entries: usize) -> usize {
        (entries / 48).next_power_of_two().clamp(LEAST_WORDS, TILE / 64)
    }

    /// Puts an entry behind the last one.
    fn push(&mut self, row: u32, record: Record, views: usize) {
        let place = self.rows.len();
        self.rows.push(row);
        let words = Tile::words(place);
        if let Some(narrow) = self.failing.iter_mut().find(|bitmaps| bitmaps.words < words) {
            narrow.widen(words);
        }
        if place == self.records.bound() {
            self.records.insert(Record::new(Whose::Unsaid));
        }
        self.set_record(place, record, views);
    }

    /// Puts another record in a place, and flips its bits wherever they differ; `views` is how many views there are.
    fn set_record(&mut self, place: usize, record: Record, views: usize) {
        let old = std::mem::replace(&mut self.records[place as u32], record);
        for view in 0..views {
            let mut differing = old.failing(view) ^ record.failing(view);
            if differing != 0 && self.failing.len() <= view {
                let words = Tile::words(self.rows.len());
                self.failing.resize_with(view + 1, || Bitmaps::new(words));
            }
            while differing != 0 {
                let bucket = differing.trailing_zeros() as usize;
                differing &= differing - 1;
                self.failing[view].flip(bucket, place);
            }
        }
    }
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
        let place = self.len();
        let header = rows.header_mut(row);
        header[4] = place as u32;
        let mut record = Record::new(Whose::of(header));
        for weighed in weighed {
            let number = match self.views.iter().position(|&view| view == weighed.view) {
                Some(number) => number,
                None if self.views.len() < MOST_SLOTS => {
                    self.views.push(weighed.view);
                    self.views.len() - 1
                }
                None => {
                    record.leave_doubt();
                    continue;
                }
            };
            (record.firsts[number], record.spans[number]) = weighed.cells();
            if !weighed.is_range() {
                record.leave_doubt();
            }
        }
        if self.tiles.last().is_none_or(|last| last.rows.len() == TILE) {
            self.tiles.push(Tile::default());
        }
        self.tiles.last_mut().expect("one was just made, if there was none").push(row, record, self.views.len());
    }

    /// Removes the entry at a place; the last one takes it.
    pub(super) fn remove(&mut self, place: usize, rows: &mut Rows) {
        let views = self.views.len();
        let last_tile = self.tiles.last_mut().expect("there is an entry to remove");
        let row = last_tile.rows.pop().expect("no tile is empty");
        let record = last_tile.records[last_tile.rows.len() as u32];
        if last_tile.rows.is_empty() {
            self.tiles.pop();
        }
        if place < self.len() {
            let (tile, inside) = (&mut self.tiles[place / TILE], place % TILE);
            tile.set_record(inside, record, views);
            tile.rows[inside] = row;
            rows.header_mut(row)[4] = place as u32;
        }
        if self.tiles.is_empty() {
            *self = Dense::default();
        }
    }

    /// Notes that it takes the row to know whose an entry is.
    pub(super) fn forget_whose(&mut self, place: usize) {
        self.tiles[place / TILE].records[(place % TILE) as u32].leave_doubt();
    }

    /// Appends the rows that the event may match, with [`SURE`] if it does. If ids are wanted, they are noted instead where there is
    /// no doubt.
    pub(super) fn candidates(&self, reading: &mut Reading) {
        let mut cells = [0; 32];
        for (cell, &view) in cells.iter_mut().zip(&self.views) {
            *cell = reading.cells[view as usize];
        }
        let mut places = std::mem::take(&mut reading.places);
        places.clear();
        // The survivors of a tile are judged while the next one's bitmaps are read, when their records have come from memory.
        let (mut last, mut judged) = (None, 0);
        for tile in &self.tiles {
            let found = places.len();
            tile.survivors(&cells, &mut places);
            if let Some(last) = last.replace(tile) {
                last.judge(&places[judged..found], &cells, reading);
            }
            judged = found;
        }
        if let Some(last) = last {
            last.judge(&places[judged..], &cells, reading);
        }
        reading.places = places;
    }

    pub(super) fn memory_usage(&self) -> usize {
        let tile = |tile: &Tile| {
            tile.rows.capacity() * size_of::<u32>()
                + tile.records.memory_usage()
                + tile.failing.capacity() * size_of::<Bitmaps>()
                + tile.failing.iter().map(|bitmaps| size_of_val(&*bitmaps.bits)).sum::<usize>()
        };
        self.views.capacity() * size_of::<u32>()
            + self.tiles.capacity() * size_of::<Tile>()
            + self.tiles.iter().map(tile).sum::<usize>()
    }
}

impl Tile {
    /// Appends those of some entries that an event with these cells may match, as [`Dense::candidates`] does.
    fn judge(&self, places: &[u32], cells: &[u8; 32], reading: &mut Reading) {
        for &place in places {
            let record = &self.records[place];
            let row = || self.rows[place as usize];
            match record.judge(cells) {
                (false, _) => {}
                (true, false) => reading.candidates.push(row()),
                (true, true) if reading.has_inexact => reading.candidates.push(row()),
                (true, true) if reading.wants_ids => reading.ids.push(record.id()),
                (true, true) => reading.candidates.push(row() | SURE),
            }
        }
    }

    /// Appends the places of entries that are in none of the bitmaps that an event with these cells selects, and asks the processor
    /// for their records.
    fn survivors(&self, cells: &[u8; 32], places: &mut Vec<u32>) {
        let words = self.rows.len().div_ceil(64);
        let mut bitmaps: [&[u64]; MOST_SLOTS] = [&[]; MOST_SLOTS];
        for ((bitmap, bitmaps), &cell) in bitmaps.iter_mut().zip(&self.failing).zip(cells) {
            *bitmap = bitmaps.of_bucket(bucket(cell));
        }
        let mut failing = [0_u64; TILE / 64];
        unite(&mut failing[..words.next_multiple_of(STRIP)], &bitmaps[..self.failing.len()]);
        for (number, failing) in failing[..words].iter().enumerate() {
            let count = (self.rows.len() - number * 64).min(64);
            let mut left = !failing & (u64::MAX >> (64 - count));
            while left != 0 {
                let place = number * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                prefetch(&self.records[place as u32]);
                places.push(place as u32);
            }
        }
    }
}
