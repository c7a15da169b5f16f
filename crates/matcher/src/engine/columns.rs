//! Groups: entries of one list with predicates on the same slots, laid out in columns.
//!
//! A column is two bytes for each entry: the first cell and the span of a range, or the mask of a set. Where the event's cell lies
//! strictly inside all ranges, and nothing else was to be tested, the entry matches, and its row is not needed to know.

use super::keys::Weighed;
use super::reading::Reading;
use super::rows::Kind;
use super::simd::{LANES, Probe, judge};
use super::{codes::code_of, lists::SURE};
use crate::SubscriptionId;
use std::mem::size_of;

/// The most columns of a group; predicates beyond are tested in the row.
pub(super) const MOST_COLUMNS: usize = 6;
/// The most entries of a block, a power of two.
const BLOCK: usize = 1024;

/// Marks entries whose subscription's id stands beside them.
const DIRECT: u32 = 1 << 31;

/// What a column is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum About {
    /// A value's cell.
    Cell,
    /// A value's code, folded to 16.
    Code,
    /// That there is no value.
    Absence,
}

/// One predicate of an entry as a column takes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cellular {
    view: u32,
    about: About,
    bytes: [u8; 2],
    probability: f32,
}

/// The predicates of an entry as columns take them, the least likely first.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    cellular: Vec<Cellular>,
    /// Whether there is nothing else to test but the key.
    is_complete: bool,
}

impl Shape {
    /// Of predicates with the probability of each, given the key.
    pub(super) fn new(weighed: impl Iterator<Item = (Weighed, f32)>) -> Shape {
        let mut shape = Shape { cellular: Vec::new(), is_complete: true };
        for (weighed, probability) in weighed {
            let (about, bytes) = match weighed.predicate.kind {
                Kind::Codes | Kind::Keys | Kind::KeysWithLows | Kind::Edges => {
                    (About::Cell, [weighed.first, weighed.span])
                }
                Kind::Outside | Kind::NotCodes => (About::Cell, weighed.outside),
                Kind::Mask | Kind::WideMask => {
                    let mask = weighed.predicate.mask();
                    shape.is_complete &= mask >> 16 == 0;
                    let folded = (0..8).fold(0, |folded, part| folded | (mask >> (16 * part)) as u16);
                    (About::Code, folded.to_le_bytes())
                }
                Kind::Test => {
                    shape.is_complete = false;
                    (About::Cell, [weighed.first, weighed.span])
                }
                // Strictly inside of this lies cell 0, which is what there is where there is nothing.
                Kind::Absent => (About::Absence, [255, 255]),
            };
            shape.cellular.push(Cellular { view: weighed.view, about, bytes, probability });
        }
        shape.cellular.sort_by(|a, b| a.probability.total_cmp(&b.probability));
        if shape.cellular.len() > MOST_COLUMNS {
            shape.cellular.truncate(MOST_COLUMNS);
            shape.is_complete = false;
        }
        shape
    }

    pub(super) fn is_incomplete(&mut self) {
        self.is_complete = false;
    }

    /// Whether there are columns at all.
    pub(super) fn is_empty(&self) -> bool {
        self.cellular.is_empty()
    }

    /// A hash of what the columns are about, in whatever order.
    pub(super) fn hash(&self) -> u32 {
        let hash =
            |cellular: &Cellular| super::table::hash_number(u64::from(cellular.view) << 2 | cellular.about as u64, 1);
        let sum = self.cellular.iter().map(hash).fold(u64::from(self.is_complete), u64::wrapping_add);
        (sum >> 32) as u32 ^ sum as u32
    }
}

/// Entries of one shape.
#[derive(Clone, Debug)]
pub(super) struct Group {
    columns: Box<[(u32, About)]>,
    is_complete: bool,
    /// All but the last are full.
    blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
struct Block {
    /// With [`DIRECT`] where the id says it all.
    rows: Vec<u32>,
    /// Of the only subscription, where [`DIRECT`] says so.
    ids: Vec<SubscriptionId>,
    /// The entries that there is room for, a multiple of [`LANES`].
    capacity: usize,
    /// By column: firsts (or low masks), then spans (or high masks).
    bytes: Vec<u8>,
}

impl Block {
    fn with_capacity(capacity: usize, columns: usize) -> Block {
        Block { rows: Vec::new(), ids: Vec::new(), capacity, bytes: vec![0; 2 * columns * capacity] }
    }

    fn resize(&mut self, capacity: usize, columns: usize) {
        let mut other = Block::with_capacity(capacity, columns);
        (other.rows, other.ids) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.ids));
        for column in 0..2 * columns {
            let length = other.rows.len();
            other.bytes[column * capacity..][..length].copy_from_slice(&self.bytes[column * self.capacity..][..length]);
        }
        *self = other;
    }
}

impl Group {
    pub(super) fn new(shape: &Shape) -> Group {
        let columns = shape.cellular.iter().map(|cellular| (cellular.view, cellular.about)).collect();
        Group { columns, is_complete: shape.is_complete, blocks: Vec::new() }
    }

    /// Whether entries of this shape belong here.
    pub(super) fn is_of(&self, shape: &Shape) -> bool {
        let has = |cellular: &Cellular| self.columns.contains(&(cellular.view, cellular.about));
        self.is_complete == shape.is_complete
            && self.columns.len() == shape.cellular.len()
            && shape.cellular.iter().all(has)
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.last().map_or(0, |last| (self.blocks.len() - 1) * BLOCK + last.rows.len())
    }

    /// Appends an entry, with the id of its subscription if that is its only one and has no other entry.
    pub(super) fn push(&mut self, row: u32, only: Option<SubscriptionId>, shape: &Shape) {
        let columns = self.columns.len();
        if self.blocks.last().is_none_or(|last| last.rows.len() == BLOCK) {
            self.blocks.push(Block::with_capacity(LANES, columns));
        }
        let block = self.blocks.last_mut().expect("one was just made, if there was none");
        if block.rows.len() == block.capacity {
            block.resize(2 * block.capacity, columns);
        }
        let place = block.rows.len();
        block.rows.push(if only.is_some() { row | DIRECT } else { row });
        block.ids.push(only.unwrap_or(SubscriptionId(0)));
        for (number, column) in self.columns.iter().enumerate() {
            let cellular = shape.cellular.iter().find(|cellular| (cellular.view, cellular.about) == *column);
            let bytes = cellular.map_or([0, 255], |cellular| cellular.bytes);
            for (half, byte) in bytes.into_iter().enumerate() {
                block.bytes[(2 * number + half) * block.capacity + place] = byte;
            }
        }
    }

    /// Removes an entry; the last one takes its place. Says the row of that one, unless it was the last itself.
    pub(super) fn swap_remove(&mut self, place: usize) -> Option<u32> {
        let columns = self.columns.len();
        let last = self.blocks.last_mut().expect("a group with entries has a block");
        let row = last.rows.pop().expect("no block is empty");
        let id = last.ids.pop().expect("each entry has an id");
        let from = last.rows.len();
        let capacity = last.capacity;
        let bytes: Vec<u8> = (0..2 * columns).map(|column| last.bytes[column * capacity + from]).collect();
        if last.rows.is_empty() {
            self.blocks.pop();
        } else if last.rows.len() * 4 < capacity && capacity > LANES {
            last.resize(capacity / 2, columns);
        }
        if place == self.len() {
            return None;
        }
        let block = &mut self.blocks[place / BLOCK];
        block.rows[place % BLOCK] = row;
        block.ids[place % BLOCK] = id;
        for (column, byte) in bytes.into_iter().enumerate() {
            block.bytes[column * block.capacity + place % BLOCK] = byte;
        }
        Some(row & !DIRECT)
    }

    /// Notes that an entry has more than one subscription now.
    pub(super) fn set_shared(&mut self, place: usize) {
        self.blocks[place / BLOCK].rows[place % BLOCK] &= !DIRECT;
    }

    /// Appends the rows that the event may match; with [`SURE`] if it does, provided that the key leaves no doubt. If ids are
    /// wanted, those go to the ids instead that say it all.
    pub(super) fn candidates(&self, reading: &mut Reading, is_key_sure: bool) {
        let mut probes = [Probe::Range(0); MOST_COLUMNS];
        let mut is_sure = self.is_complete && is_key_sure;
        for (probe, &(view, about)) in probes.iter_mut().zip(&self.columns) {
            let cell = reading.cells[view as usize];
            match about {
                About::Cell if cell == 0 => return,
                About::Cell => *probe = Probe::Range(cell),
                About::Absence if cell != 0 => return,
                About::Absence => *probe = Probe::Range(0),
                About::Code => {
                    let code = code_of(reading.keys[view as usize / 2]);
                    if code == 0 {
                        return;
                    }
                    is_sure &= code <= 16;
                    *probe = Probe::Mask((1_u16 << ((code - 1) & 15)).to_le_bytes());
                }
            }
        }
        let probes = &probes[..self.columns.len()];
        for block in &self.blocks {
            for start in (0..block.rows.len()).step_by(LANES) {
                let rows = &block.rows[start..block.rows.len().min(start + LANES)];
                let verdict = judge(probes, &block.bytes, block.capacity, start);
                let surely = if is_sure { verdict.surely } else { 0 };
                let mut maybe = verdict.maybe & (u64::MAX >> (LANES - rows.len()));
                if reading.wants_ids {
                    let mut direct = maybe & surely;
                    while direct != 0 {
                        let lane = direct.trailing_zeros() as usize;
                        direct &= direct - 1;
                        if rows[lane] & DIRECT != 0 {
                            maybe &= !(1 << lane);
                            reading.ids.push(block.ids[start + lane]);
                        }
                    }
                }
                while maybe != 0 {
                    let lane = maybe.trailing_zeros();
                    maybe &= maybe - 1;
                    let sure = if surely >> lane & 1 == 1 { SURE } else { 0 };
                    reading.candidates.push(rows[lane as usize] & !DIRECT | sure);
                }
            }
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        let block = |block: &Block| size_of::<Block>() + block.rows.capacity() * 12 + block.bytes.capacity();
        size_of_val(&*self.columns) + self.blocks.iter().map(block).sum::<usize>()
    }
}
