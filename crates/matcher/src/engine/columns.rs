//! Groups: entries of one list with predicates on the same slots, laid out in columns of 16-bit words.
//!
//! What a predicate takes is told in [`super::shapes`]. Where the event's position lies strictly inside of what all of them
//! allow, and nothing else was to be tested, the entry matches, and its row is not needed to know.
//!
//! A group's blocks divide its entries by the order of one predicate's positions, as the leaves of a B-tree would. So most
//! blocks are passed over as a whole, or need no look at this predicate.

use super::blocks::{BLOCK, Block, Whose};
use super::codes::code_of;
use super::reading::Reading;
use super::shapes::{About, MOST_COLUMNS, Shape};
use super::simd::{LANES, Probe, Test, Verdict, judge};
use std::mem::size_of;

/// The most blocks of a group.
const MOST_BLOCKS: usize = 1024;

/// Entries of one shape.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The first one is that by which entries are ordered, if any can be.
    predicates: Box<[(u32, About)]>,
    is_complete: bool,
    /// Some may be empty.
    blocks: Vec<Block>,
    count: usize,
}

/// Where an entry has its place in the order of its group, and its last position.
fn place_and_reach(about: About, words: &[u16]) -> (u16, u16) {
    match about {
        About::AtLeast | About::AtMost => (words[0], words[0]),
        About::Range => (words[0], words[0] + words[1]),
        About::Outside | About::Absence | About::Codes(_) => (0, 0),
    }
}

impl Group {
    pub(super) fn new(shape: &Shape) -> Group {
        let mut predicates: Vec<(u32, About)> =
            shape.cellular.iter().map(|cellular| (cellular.view, cellular.about)).collect();
        if let Some(ordered) = predicates.iter().position(|(_, about)| about.has_order()) {
            predicates[..=ordered].rotate_right(1);
        }
        Group { predicates: predicates.into(), is_complete: shape.is_complete, blocks: Vec::new(), count: 0 }
    }

    /// Whether entries of this shape belong here.
    pub(super) fn is_of(&self, shape: &Shape) -> bool {
        self.is_complete == shape.is_complete
            && self.predicates.len() == shape.cellular.len()
            && shape.cellular.iter().all(|cellular| self.predicates.contains(&(cellular.view, cellular.about)))
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Whether one more entry finds a place for sure.
    pub(super) fn has_room(&self) -> bool {
        self.blocks.len() < MOST_BLOCKS
    }

    fn columns(&self) -> usize {
        self.predicates.iter().map(|(_, about)| about.columns()).sum()
    }

    /// Adds an entry. Tells `moved` of it, and of others that got another place, the row and the place.
    pub(super) fn push(&mut self, row: u32, whose: Whose, shape: &Shape, mut moved: impl FnMut(u32, usize)) {
        let mut words = [0; 8 * MOST_COLUMNS];
        let mut columns = 0;
        for predicate in &self.predicates {
            let cellular = shape.cellular.iter().find(|cellular| (cellular.view, cellular.about) == *predicate);
            let cellular = cellular.expect("the entry is of the shape");
            let count = predicate.1.columns();
            words[columns..][..count].copy_from_slice(&cellular.words[..count]);
            columns += count;
        }
        let block = self.block_for(place_and_reach(self.predicates[0].1, &words).0, &mut moved);
        self.push_to(block, row, whose, &words[..columns], &mut moved);
        self.count += 1;
    }

    fn push_to(&mut self, number: usize, row: u32, whose: Whose, words: &[u16], moved: &mut impl FnMut(u32, usize)) {
        let block = &mut self.blocks[number];
        if block.len() == 0 {
            block.places = [u16::MAX, 0];
            block.reach = 0;
        }
        let lane = block.push(row, whose, words.len());
        for (column, word) in words.iter().enumerate() {
            block.words[column * block.capacity + lane] = *word;
        }
        let (place, reach) = place_and_reach(self.predicates[0].1, words);
        block.places = [block.places[0].min(place), block.places[1].max(place)];
        block.reach = block.reach.max(reach);
        moved(row, number * BLOCK + lane);
    }

    /// The block for an entry with this place in the order; it is not full.
    fn block_for(&mut self, place: u16, moved: &mut impl FnMut(u32, usize)) -> usize {
        let in_order = |(_, block): &(usize, &Block)| (block.from, !block.is_full());
        let found = self.blocks.iter().enumerate().filter(|(_, block)| block.from <= place).max_by_key(in_order);
        let Some((number, block)) = found else { return self.new_block(0) };
        if !block.is_full() {
            return number;
        }
        let places = &block.words[..if self.predicates[0].1.has_order() { BLOCK } else { 0 }];
        let mut sorted = places.to_vec();
        sorted.sort_unstable();
        let Some(&middle) = sorted.get(BLOCK / 2).filter(|&&middle| middle > sorted[0]) else {
            // They are all about the same.
            return self.new_block(place);
        };
        let other = self.new_block(middle);
        let columns = self.columns();
        for lane in (0..BLOCK).rev() {
            let block = &mut self.blocks[number];
            if block.words[lane] < middle {
                continue;
            }
            let words: Vec<u16> = (0..columns).map(|column| block.words[column * block.capacity + lane]).collect();
            let (row, whose) = (block.row(lane), block.whose(lane));
            if let Some(last) = block.swap_remove(lane, columns) {
                moved(last, number * BLOCK + lane);
            }
            self.push_to(other, row, whose, &words, moved);
        }
        self.blocks[number].places[1] = middle - 1;
        if place < middle { number } else { other }
    }

    /// An empty block, for entries from this place on.
    fn new_block(&mut self, from: u16) -> usize {
        let block = Block::new(self.columns(), from);
        if let Some(empty) = self.blocks.iter().position(|block| block.len() == 0) {
            self.blocks[empty] = block;
            return empty;
        }
        self.blocks.push(block);
        self.blocks.len() - 1
    }

    /// Removes an entry; another takes its place. Says the row of that one, if there is one.
    pub(super) fn swap_remove(&mut self, place: usize) -> Option<u32> {
        let columns = self.columns();
        self.count -= 1;
        self.blocks[place / BLOCK].swap_remove(place % BLOCK, columns)
    }

    /// Notes that an entry is a group's now.
    pub(super) fn set_shared(&mut self, place: usize, group: u32) {
        self.blocks[place / BLOCK].set_whose(place % BLOCK, Whose::Group(group));
    }

    /// Asks the processor for what a look at its blocks begins with.
    pub(super) fn prefetch(&self) {
        self.predicates.first().into_iter().for_each(super::simd::prefetch);
        self.blocks.first().into_iter().for_each(super::simd::prefetch);
    }

    /// Asks the processor for the beginning of the first block's columns.
    pub(super) fn prefetch_columns(&self) {
        let Some(block) = self.blocks.first() else { return };
        block.words.chunks(block.capacity).filter_map(|column| column.first()).for_each(super::simd::prefetch);
    }

    /// Fills in what the event has for each predicate, and says the count. None if the event has no value where all entries want
    /// one.
    fn probes(&self, reading: &Reading, probes: &mut [Probe; MOST_COLUMNS]) -> Option<usize> {
        let (mut column, mut count) = (0, 0);
        for &(view, about) in &self.predicates {
            let position = reading.positions[view as usize];
            if (position == 0) != (about == About::Absence) {
                return None;
            }
            let test = match about {
                About::Absence => continue,
                About::AtLeast => Test::AtLeast(position),
                About::AtMost => Test::AtMost(position),
                About::Range | About::Outside => Test::Range(position),
                About::Codes(words) => {
                    let place = code_of(reading.keys[view as usize / 2]).wrapping_sub(1);
                    if place >= 16 * u32::from(words) {
                        return None;
                    }
                    probes[count] = Probe { column: column + place as u16 / 16, test: Test::Mask(1 << (place % 16)) };
                    column += u16::from(words);
                    count += 1;
                    continue;
                }
            };
            probes[count] = Probe { column, test };
            column += about.columns() as u16;
            count += 1;
        }
        Some(count)
    }

    /// Appends the rows that the event may match; with [`SURE`](super::lists::SURE) if it does, provided that the key leaves no
    /// doubt. If ids are wanted, ids or groups are noted instead where there is no doubt.
    pub(super) fn candidates(&self, reading: &mut Reading, is_key_sure: bool) {
        let mut probes = [Probe { column: 0, test: Test::Mask(0) }; MOST_COLUMNS];
        let Some(count) = self.probes(reading, &mut probes) else { return };
        let probes = &probes[..count];
        let is_sure = self.is_complete && is_key_sure && !reading.has_inexact;
        let mut verdicts = [Verdict::default(); BLOCK / LANES];
        for block in self.blocks.iter().filter(|block| block.len() > 0) {
            let [least, greatest] = block.places;
            // Whether none of the block can match for this predicate, and whether all of it surely do.
            let (is_none, is_all) = match probes.first().map(|probe| probe.test) {
                Some(Test::AtLeast(position)) => (position < least, position > greatest),
                Some(Test::AtMost(position)) => (position > greatest, position < least),
                Some(Test::Range(position)) if self.predicates[0].1 == About::Range => {
                    (position < least || position > block.reach, false)
                }
                Some(Test::Range(_) | Test::Mask(_)) | None => (false, false),
            };
            if is_none {
                continue;
            }
            let length = block.len();
            let verdicts = &mut verdicts[..length.div_ceil(LANES)];
            judge(&probes[usize::from(is_all)..], &block.words, block.capacity, verdicts);
            verdicts.last_mut().expect("no block is empty").maybe &= u32::MAX >> (LANES - 1 - (length - 1) % LANES);
            block.note(verdicts, is_sure, reading);
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        size_of_val(&*self.predicates)
            + self.blocks.iter().map(Block::memory_usage).sum::<usize>()
            + (self.blocks.capacity() - self.blocks.len()) * size_of::<Block>()
    }
}
