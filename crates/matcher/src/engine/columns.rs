//! Groups: entries of one list with predicates on the same slots, laid out in columns of 16-bit words.
//!
//! A range stands in two columns, as its first position and its span. A set stands in as many as its mask has words, of which
//! an event looks at one. Where the event's position lies strictly inside all ranges, and nothing else was to be tested, the
//! entry matches, and its row is not needed to know.

use super::keys::Weighed;
use super::lists::SURE;
use super::reading::Reading;
use super::rows::{Kind, SHARED};
use super::simd::{LANES, Probe, Test, Verdict, judge};
use super::{codes::code_of, table::hash_number};
use crate::SubscriptionId;
use std::mem::size_of;

/// The most predicates that stand in columns; those beyond are tested in the row.
pub(super) const MOST_COLUMNS: usize = 6;
/// The most entries of a block, a power of two.
const BLOCK: usize = 1024;

/// What a predicate in columns is about, and how many columns it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// A value's position.
    Range,
    /// That there is no value, as a range of positions.
    Absence,
    /// A value's code, up to 16 times so many.
    Codes(u8),
}

impl About {
    fn columns(self) -> usize {
        match self {
            About::Range | About::Absence => 2,
            About::Codes(words) => usize::from(words),
        }
    }
}

/// One predicate of an entry as columns take it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cellular {
    view: u32,
    about: About,
    words: [u16; 8],
    probability: f32,
}

impl Cellular {
    fn new(weighed: &Weighed, probability: f32) -> Cellular {
        let mut words = [0; 8];
        let about = match weighed.predicate.kind {
            Kind::Mask | Kind::WideMask => {
                let mask = weighed.predicate.mask();
                (0..8).for_each(|word| words[word] = (mask >> (16 * word)) as u16);
                About::Codes(match mask.leading_zeros() {
                    0..64 => 8,
                    64..112 => 4,
                    _ => 1,
                })
            }
            Kind::Absent => About::Absence,
            Kind::Codes
            | Kind::Keys
            | Kind::KeysWithLows
            | Kind::Edges
            | Kind::Outside
            | Kind::NotCodes
            | Kind::Test => About::Range,
        };
        if matches!(about, About::Range | About::Absence) {
            words[..2].copy_from_slice(&weighed.positions);
        }
        Cellular { view: weighed.view, about, words, probability }
    }
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
            shape.is_complete &= weighed.predicate.kind != Kind::Test;
            shape.cellular.push(Cellular::new(&weighed, probability));
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
        let hash = |cellular: &Cellular| {
            let about = match cellular.about {
                About::Range => 0,
                About::Absence => 9,
                About::Codes(words) => u64::from(words),
            };
            hash_number(u64::from(cellular.view) << 4 | about, 1)
        };
        let sum = self.cellular.iter().map(hash).fold(u64::from(self.is_complete), u64::wrapping_add);
        (sum >> 32) as u32 ^ sum as u32
    }
}

/// Entries of one shape.
#[derive(Clone, Debug)]
pub(super) struct Group {
    predicates: Box<[(u32, About)]>,
    is_complete: bool,
    /// All but the last are full.
    blocks: Vec<Block>,
}

#[derive(Clone, Debug)]
struct Block {
    rows: Vec<u32>,
    /// Whose the entry is, if that can be said in a word: of the only subscription, the id; of a group of them, its number.
    whose: Vec<u64>,
    /// By entry, [`LANES`] in a word: whether it is an id, and whether a group, that stands there.
    kinds: Vec<[u32; 2]>,
    /// The entries that there is room for, a multiple of [`LANES`].
    capacity: usize,
    /// Column by column.
    words: Vec<u16>,
}

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
        } else if header[5] & super::rows::ALONE != 0 {
            Whose::Only(super::rows::id(header))
        } else {
            Whose::Unsaid
        }
    }
}

impl Block {
    fn with_capacity(capacity: usize, columns: usize) -> Block {
        Block {
            rows: Vec::with_capacity(capacity),
            whose: vec![0; capacity],
            kinds: vec![[0; 2]; capacity / LANES],
            capacity,
            words: vec![0; columns * capacity],
        }
    }

    fn resize(&mut self, capacity: usize, columns: usize) {
        let mut other = Block::with_capacity(capacity, columns);
        let length = self.rows.len();
        other.rows.extend_from_slice(&self.rows);
        other.whose[..length].copy_from_slice(&self.whose[..length]);
        let kinds = length.div_ceil(LANES);
        other.kinds[..kinds].copy_from_slice(&self.kinds[..kinds]);
        for column in 0..columns {
            other.words[column * capacity..][..length].copy_from_slice(&self.words[column * self.capacity..][..length]);
        }
        *self = other;
    }

    fn set_whose(&mut self, place: usize, whose: Whose) {
        let bit = 1 << (place % LANES);
        let kinds = &mut self.kinds[place / LANES];
        kinds.iter_mut().for_each(|kind| *kind &= !bit);
        match whose {
            Whose::Only(id) => {
                self.whose[place] = id.0;
                kinds[0] |= bit;
            }
            Whose::Group(group) => {
                self.whose[place] = group.into();
                kinds[1] |= bit;
            }
            Whose::Unsaid => {}
        }
    }

    fn whose(&self, place: usize) -> Whose {
        let is = |kind: u32| kind >> (place % LANES) & 1 == 1;
        match self.kinds[place / LANES] {
            [only, _] if is(only) => Whose::Only(SubscriptionId(self.whose[place])),
            [_, group] if is(group) => Whose::Group(self.whose[place] as u32),
            _ => Whose::Unsaid,
        }
    }
}

impl Group {
    pub(super) fn new(shape: &Shape) -> Group {
        let predicates = shape.cellular.iter().map(|cellular| (cellular.view, cellular.about)).collect();
        Group { predicates, is_complete: shape.is_complete, blocks: Vec::new() }
    }

    /// Whether entries of this shape belong here.
    pub(super) fn is_of(&self, shape: &Shape) -> bool {
        let has = |cellular: &Cellular| self.predicates.contains(&(cellular.view, cellular.about));
        self.is_complete == shape.is_complete
            && self.predicates.len() == shape.cellular.len()
            && shape.cellular.iter().all(has)
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.last().map_or(0, |last| (self.blocks.len() - 1) * BLOCK + last.rows.len())
    }

    fn columns(&self) -> usize {
        self.predicates.iter().map(|(_, about)| about.columns()).sum()
    }

    /// Appends an entry.
    pub(super) fn push(&mut self, row: u32, whose: Whose, shape: &Shape) {
        let columns = self.columns();
        if self.blocks.last().is_none_or(|last| last.rows.len() == BLOCK) {
            self.blocks.push(Block::with_capacity(LANES, columns));
        }
        let block = self.blocks.last_mut().expect("one was just made, if there was none");
        if block.rows.len() == block.capacity {
            block.resize(2 * block.capacity, columns);
        }
        let place = block.rows.len();
        block.rows.push(row);
        block.set_whose(place, whose);
        let mut column = 0;
        for predicate in &self.predicates {
            let cellular = shape.cellular.iter().find(|cellular| (cellular.view, cellular.about) == *predicate);
            let words = cellular.map_or([u16::MAX; 8], |cellular| cellular.words);
            for word in &words[..predicate.1.columns()] {
                block.words[column * block.capacity + place] = *word;
                column += 1;
            }
        }
    }

    /// Removes an entry; the last one takes its place. Says the row of that one, unless it was the last itself.
    pub(super) fn swap_remove(&mut self, place: usize) -> Option<u32> {
        let (length, columns) = (self.len() - 1, self.columns());
        let last = self.blocks.last_mut().expect("a group with entries has a block");
        let row = last.rows.pop().expect("no block is empty");
        let from = last.rows.len();
        if place != length {
            let whose = last.whose(from);
            let (to, from_block) = (place % BLOCK, self.blocks.len() - 1);
            let block = place / BLOCK;
            self.blocks[block].rows[to] = row;
            self.blocks[block].set_whose(to, whose);
            for column in 0..columns {
                let from_words = &self.blocks[from_block];
                let word = from_words.words[column * from_words.capacity + from];
                let capacity = self.blocks[block].capacity;
                self.blocks[block].words[column * capacity + to] = word;
            }
        }
        let last = self.blocks.last_mut().expect("as before");
        if last.rows.is_empty() {
            self.blocks.pop();
        } else if last.rows.len() * 4 < last.capacity && last.capacity > LANES {
            last.resize(last.capacity / 2, columns);
        }
        (place != length).then_some(row)
    }

    /// Notes that an entry is a group's now.
    pub(super) fn set_shared(&mut self, place: usize, group: u32) {
        self.blocks[place / BLOCK].set_whose(place % BLOCK, Whose::Group(group));
    }

    /// Fills in what the event has for each predicate; how many, and whether verdicts can be sure. None if the event has no value
    /// where all entries want one.
    fn probes(&self, reading: &Reading, probes: &mut [Probe; MOST_COLUMNS]) -> Option<()> {
        let mut column = 0;
        for (probe, &(view, about)) in probes.iter_mut().zip(&self.predicates) {
            let position = reading.positions[view as usize];
            *probe = match about {
                About::Range if position == 0 => return None,
                About::Absence if position != 0 => return None,
                About::Range | About::Absence => Probe { column, test: Test::Range(position) },
                About::Codes(words) => {
                    let place = code_of(reading.keys[view as usize / 2]).wrapping_sub(1);
                    if place >= 16 * u32::from(words) {
                        return None;
                    }
                    Probe { column: column + place as u16 / 16, test: Test::Mask(1 << (place % 16)) }
                }
            };
            column += about.columns() as u16;
        }
        Some(())
    }

    /// Appends the rows that the event may match; with [`SURE`] if it does, provided that the key leaves no doubt. If ids are
    /// wanted, ids or groups are noted instead where there is no doubt.
    pub(super) fn candidates(&self, reading: &mut Reading, is_key_sure: bool) {
        let mut probes = [Probe { column: 0, test: Test::Mask(0) }; MOST_COLUMNS];
        let Some(()) = self.probes(reading, &mut probes) else { return };
        let probes = &probes[..self.predicates.len()];
        let is_sure = self.is_complete && is_key_sure && !reading.has_inexact;
        let mut verdicts = [Verdict::default(); BLOCK / LANES];
        for block in &self.blocks {
            let length = block.rows.len();
            let verdicts = &mut verdicts[..length.div_ceil(LANES)];
            judge(probes, &block.words, block.capacity, verdicts);
            verdicts.last_mut().expect("no block is empty").maybe &= u32::MAX >> (LANES - 1 - (length - 1) % LANES);
            for (number, verdict) in verdicts.iter().enumerate() {
                if verdict.maybe != 0 {
                    block.note(number * LANES, verdict, is_sure, reading);
                }
            }
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        let block = |block: &Block| {
            let entry = size_of::<u32>() + size_of::<u64>();
            let words = block.words.capacity() * size_of::<u16>();
            size_of::<Block>() + block.capacity * entry + block.kinds.capacity() * size_of::<[u32; 2]>() + words
        };
        size_of_val(&*self.predicates) + self.blocks.iter().map(block).sum::<usize>()
    }
}

impl Block {
    /// Notes what of the entries from `start` on may match.
    #[inline]
    fn note(&self, start: usize, verdict: &Verdict, is_sure: bool, reading: &mut Reading) {
        let (mut maybe, surely) = (verdict.maybe, if is_sure { verdict.surely & verdict.maybe } else { 0 });
        if reading.wants_ids {
            let [only, group] = self.kinds[start / LANES].map(|kind| kind & surely);
            let whose = &self.whose[start..start + LANES];
            reading.ids.extend(lanes_of(only).map(|lane| SubscriptionId(whose[lane])));
            reading.groups.extend(lanes_of(group).map(|lane| whose[lane] as u32));
            maybe &= !(only | group);
        }
        for lane in lanes_of(maybe) {
            let sure = if surely >> lane & 1 == 1 { SURE } else { 0 };
            reading.candidates.push(self.rows[start + lane] | sure);
        }
    }
}

/// The places of the ones.
#[inline]
fn lanes_of(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let lane = bits.trailing_zeros() as usize;
        bits &= bits - 1;
        Some(lane)
    })
}
