//! Running statistics: what values look like, and the lenses that divide them into cells.

use super::bounds::Bounds;
use super::codes::{code_of, implied_key};
use super::table::hash_number;
use std::cmp::Ordering;
use std::mem::size_of;

/// Fewer observed values than this say less than the operands do.
pub(super) const ENOUGH: usize = 64;
/// The most codes that a sample keeps.
const SAMPLE: usize = 256;
/// The most cells of a lens; cell 0 is absence, and two more are left free.
pub(super) const CELLS: usize = 253;

/// Codes seen lately: the first [`SAMPLE`] as they come, later ones in place of others.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    codes: Vec<u32>,
    seen: u32,
}

impl Sample {
    pub(super) fn add(&mut self, code: u32) {
        self.seen = self.seen.wrapping_add(1);
        if self.codes.len() < SAMPLE {
            self.codes.push(code);
            return;
        }
        // Late values replace one in four times: the sample turns over in about a thousand values, and follows a drift.
        let mixed = self.seen.wrapping_mul(0x9E37_79B9);
        if mixed >> 30 == 0 {
            self.codes[(mixed >> 16) as usize % SAMPLE] = code;
        }
    }

    pub(super) fn codes(&self) -> &[u32] {
        &self.codes
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.codes.capacity() * size_of::<u32>()
    }
}

/// For each cell some bits.
pub(super) type Posted = [u32; 256];

/// Divides the codes of a slot into cells of about equal probability, numbered from 1 in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Lens {
    /// The generation it was made for; 0 if it never was.
    pub(super) generation: u32,
    /// How probably an event had a value in the slot when it was made.
    pub(super) present: f32,
    /// Whether that was before it was known what values look like.
    is_early: bool,
    /// The least and the greatest code of the sample.
    least: u32,
    greatest: u32,
    /// The first codes of the cells 2, 3, ...
    bounds: Bounds,
    /// The probability, in 1/65535, of all cells up to this one.
    cumulative: Box<[u16]>,
    /// The probability of a value that is not frequent.
    one: f32,
    /// What a cell has in a sample by which the value it starts with is frequent.
    frequent: f32,
    /// The numbers from one cell to the next: few cells lie far apart, so that they are told apart by the upper bits of their numbers
    /// too.
    step: u8,
    /// By cell: the kinds of the key cells that hold it and under which entries were posted, as bits. See [`super::keys`].
    pub(super) posted: Option<Box<Posted>>,
}

impl Lens {
    /// From samples of codes, in any order.
    pub(super) fn new(generation: u32, present: f32, mut codes: Vec<u32>) -> Lens {
        codes.sort_unstable();
        let total = codes.len().max(1);
        let cells = CELLS.min(codes.len().max(1));
        let mut bounds: Vec<u32> = Vec::with_capacity(cells);
        let mut cumulative: Vec<u16> = Vec::with_capacity(cells);
        let share = |count: usize| (count * 65_535 / total) as u16;
        for cell in 1..cells {
            let start = cell * total / cells;
            let bound = codes[start];
            if bound > codes[0] && bounds.last().is_none_or(|&last| bound > last) {
                cumulative.push(share(codes.partition_point(|&code| code < bound)));
                bounds.push(bound);
            }
        }
        cumulative.push(65_535);
        Lens {
            generation,
            present,
            is_early: codes.len() < ENOUGH,
            least: codes.first().copied().unwrap_or(0),
            greatest: codes.last().copied().unwrap_or(0),
            bounds: Bounds::new(&bounds),
            one: rare_probability(&codes),
            frequent: RARE as f32 / total as f32 + 0.001,
            step: (CELLS / cumulative.len()) as u8,
            cumulative: cumulative.into(),
            posted: None,
        }
    }

    /// The cell of a code that is not absence's.
    #[inline]
    pub(super) fn cell(&self, code: u32) -> u8 {
        self.number(self.place(code))
    }

    /// Asks the processor for what finding a code's cell begins with.
    #[inline]
    pub(super) fn prefetch(&self) {
        self.bounds.prefetch();
    }

    /// Asks the processor for what stands about a cell.
    #[inline]
    pub(super) fn prefetch_posted(&self, cell: u8) {
        if let Some(posted) = &self.posted {
            super::simd::prefetch(&posted[usize::from(cell)]);
        }
    }

    /// How many cells lie before the one of a code.
    #[inline]
    fn place(&self, code: u32) -> usize {
        self.bounds.up_to(code)
    }

    #[inline]
    fn number(&self, place: usize) -> u8 {
        1 + place as u8 * self.step
    }

    /// The code that a cell starts with.
    fn start(&self, place: usize) -> u32 {
        place.checked_sub(1).and_then(|before| self.bounds.get(before)).unwrap_or(self.least)
    }

    /// The position of a key that is not absence's: its cell in the upper byte, and below where it lies inside of that. Positions
    /// are even and keep the order of keys; absence has 0.
    ///
    /// The value that a cell starts with, which a frequent value does, has a position of its own: see [`is_sharp`].
    #[inline]
    pub(super) fn position(&self, key: u64) -> u16 {
        let code = code_of(key);
        let place = self.place(code);
        let start = self.start(place);
        let inside = match key.cmp(&implied_key(start)) {
            Ordering::Less => 0,
            Ordering::Equal => START,
            Ordering::Greater if code == start => 2,
            Ordering::Greater => {
                let end = self.bounds.get(place).unwrap_or(self.greatest.saturating_add(1));
                let width = u64::from(end.saturating_sub(start)).max(1);
                3 + (u64::from(code - start) * 125 / width).min(124) as u16
            }
        };
        u16::from(self.number(place)) << 8 | inside << 1
    }

    /// The probability of the cells from `first` to `last`, given that there is a value.
    pub(super) fn probability(&self, first: u8, last: u8) -> f32 {
        let up_to = |cell: u8| match cell {
            0 => 0,
            _ => i32::from(self.cumulative[usize::from((cell - 1) / self.step).min(self.cumulative.len() - 1)]),
        };
        let share = up_to(last) - up_to(first - 1);
        share as f32 / 65_535.0 + 0.001
    }

    /// The probability of one code.
    pub(super) fn probability_of(&self, code: u32) -> f32 {
        self.probability_in(code, self.cell(code))
    }

    /// The probability of one code that lies in this cell.
    pub(super) fn probability_in(&self, code: u32, cell: u8) -> f32 {
        let whole = self.probability(cell, cell);
        // What is frequent has a cell that starts with it.
        let is_start = self.start(usize::from((cell - 1) / self.step)) == code;
        if is_start && whole > self.frequent { whole } else { self.one.min(whole) }
    }

    /// Whether events that look like this would have given quite another lens.
    pub(super) fn has_drifted(&self, present: f32, sample: &Sample) -> bool {
        if (present - self.present).abs() > 0.05 + 0.5 * present.min(self.present) {
            return true;
        }
        if self.is_early && sample.codes.len() >= ENOUGH {
            return true;
        }
        let total = sample.codes.len();
        if total < ENOUGH {
            return false;
        }
        let places: Vec<usize> = sample.codes.iter().map(|&code| self.place(code)).collect();
        let is_off = |last: usize| {
            let share = places.iter().filter(|&&place| place <= last).count() as f32 / total as f32;
            (share - self.probability(1, self.number(last))).abs() > 0.2
        };
        let cells = self.bounds.len() + 1;
        if (1..4).map(|quarter| cells * quarter / 4).filter(|&count| count > 0).any(|count| is_off(count - 1)) {
            return true;
        }
        // What was frequent has cells that start with it. If most of what is seen now is something else, there are more different
        // values than the few that gave these cells.
        let between = sample.codes.iter().zip(&places).filter(|&(&code, &place)| self.start(place) != code).count();
        cells < CELLS / 2 && 2 * between > total
    }

    pub(super) fn memory_usage(&self) -> usize {
        let posted = if self.posted.is_some() { size_of::<Posted>() } else { 0 };
        self.bounds.memory_usage() + size_of_val(&*self.cumulative) + posted
    }
}

/// How often a value stands in a sample at most that is not frequent there.
const RARE: usize = 2;

/// How probable one value is of those that are not frequent in a sorted sample: the fewer of them are in it twice, the more there are
/// elsewhere.
fn rare_probability(codes: &[u32]) -> f32 {
    let (mut once, mut twice) = (0, 0);
    for equal in codes.chunk_by(|a, b| a == b) {
        match equal.len() {
            1 => once += 1,
            RARE => twice += 1,
            _ => {}
        }
    }
    let rare = once + RARE * twice;
    // Pairs are what a square of as many has of equal ones; less than a half says no more than a half.
    (twice as f32).max(0.5) * 2.0 / (rare.max(1) * codes.len().max(1)) as f32
}

/// Where inside of its cell the value lies that the cell starts with.
const START: u16 = 1;

/// Whether no other key has this position.
pub(super) fn is_sharp(position: u16) -> bool {
    position & 255 == START << 1
}

/// The weight of what subscriptions say of the frequency of an attribute, in events.
const PRIOR: f32 = 16.0;

/// What matching has seen of one slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) present: f32,
    pub(super) sample: Sample,
}

/// What matching has seen: one event in [`Observations::EVERY`].
#[derive(Clone, Debug, Default)]
pub(super) struct Observations {
    pub(super) events: f32,
    pub(super) slots: Vec<Seen>,
}

impl Observations {
    /// How many events pass by for one that is looked at, on average.
    pub(super) const EVERY: u32 = 8;
    /// After so many, all counts are halved, so that old ones fade.
    const FADE: f32 = 8192.0;

    /// Whether the event of this number is to be looked at. Which ones are has no period, as that might be one of the events.
    #[inline]
    pub(super) fn wants(number: u32) -> bool {
        hash_number(number.into(), 0).is_multiple_of(Self::EVERY.into())
    }

    pub(super) fn begin(&mut self) {
        self.events += 1.0;
    }

    /// How probably an event has a value in a slot; `prior` is what subscriptions say of it.
    pub(super) fn present(&self, slot: u32, prior: f32) -> f32 {
        let seen = self.slots.get(slot as usize).map_or(0.0, |seen| seen.present);
        (seen + PRIOR * prior.min(1.0)) / (self.events + PRIOR)
    }

    pub(super) fn is_full(&self) -> bool {
        self.events >= Self::FADE
    }

    pub(super) fn fade(&mut self) {
        self.events /= 2.0;
        self.slots.iter_mut().for_each(|seen| seen.present /= 2.0);
    }

    pub(super) fn add(&mut self, slot: u32, code: u32) {
        let slot = slot as usize;
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, Seen::default());
        }
        self.slots[slot].present += 1.0;
        self.slots[slot].sample.add(code);
    }

    pub(super) fn forget(&mut self, slot: u32) {
        if let Some(seen) = self.slots.get_mut(slot as usize) {
            *seen = Seen::default();
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.slots.capacity() * size_of::<Seen>()
            + self.slots.iter().map(|seen| seen.sample.memory_usage()).sum::<usize>()
    }
}

/// How frequent hashes are, roughly.
#[derive(Clone, Debug, Default)]
pub(super) struct Popularity {
    counts: Vec<u32>,
    total: u32,
}

impl Popularity {
    const PLACES: usize = 4096;
    /// Fewer have no counts yet.
    const FEW: u32 = 256;
    /// All counts are halved when they sum up to so many.
    const MANY: u32 = 1 << 20;

    /// Counts a hash in; says its share of all, about.
    pub(super) fn share(&mut self, hash: u32) -> f32 {
        self.total += 1;
        if self.total < Self::FEW {
            return 0.0;
        }
        if self.counts.is_empty() {
            self.counts = vec![0; Self::PLACES];
        }
        if self.total == Self::MANY {
            self.total /= 2;
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
        let count = &mut self.counts[hash as usize % Self::PLACES];
        *count += 1;
        // What shares the place by chance is subtracted.
        (*count as f32 - self.total as f32 / Self::PLACES as f32).max(0.0) / self.total as f32
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.counts.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_about_equally_probable_and_in_order() {
        // Values as skewed as can be: powers.
        let codes: Vec<u32> = (0..1_000).map(|number| 10 + number * number * number).collect();
        let lens = Lens::new(1, 1.0, codes.clone());
        assert!(codes.windows(2).all(|pair| lens.cell(pair[0]) <= lens.cell(pair[1])));
        assert_eq!((lens.cell(1), lens.cell(u32::MAX)), (1, CELLS as u8));
        for cell in 1..=CELLS as u8 {
            assert!(lens.probability(cell, cell) < 0.008, "{cell}");
        }
        assert!((lens.probability(1, 128) - 0.5).abs() < 0.02);
    }

    #[test]
    fn a_frequent_code_has_a_cell_of_its_own() {
        let lens = Lens::new(1, 1.0, [vec![5; 50], vec![7; 30], (100..120).collect()].concat());
        assert!(lens.cell(5) < lens.cell(7) && lens.cell(7) < lens.cell(100));
        assert!((lens.probability_of(5) - 0.5).abs() < 0.02 && (lens.probability_of(7) - 0.3).abs() < 0.02);
        let empty = Lens::new(1, 1.0, Vec::new());
        assert_eq!((empty.cell(1), empty.cell(9)), (1, 1));
    }

    #[test]
    fn few_cells_lie_far_apart() {
        let lens = Lens::new(1, 1.0, (0..600).map(|number| 100 + number % 12).collect());
        let cells: Vec<u8> = (100..112).map(|code| lens.cell(code)).collect();
        assert!(cells.windows(2).all(|pair| pair[1] - pair[0] > 16) && cells[11] <= CELLS as u8, "{cells:?}");
        for (before, &cell) in cells.iter().enumerate() {
            assert!((lens.probability(cell, cell) - 1.0 / 12.0).abs() < 0.01);
            assert!((lens.probability(1, cell) - (before + 1) as f32 / 12.0).abs() < 0.01);
            assert!((lens.probability_of(100 + before as u32) - 1.0 / 12.0).abs() < 0.01);
        }
    }

    #[test]
    fn a_lens_of_few_cells_has_drifted_once_there_are_more_values() {
        let sample = |values: u32| {
            let mut sample = Sample::default();
            // In no order that the sample could be caught by.
            (0..10_000_u32).for_each(|number| sample.add(number.wrapping_mul(2_654_435_761) >> 8 & (values - 1)));
            sample
        };
        for values in [16, 64, 1 << 20] {
            let (few, all) = (sample(values.min(64)), sample(values));
            let codes = |sample: &Sample, number: usize| sample.codes()[..number].to_vec();
            assert!(!Lens::new(1, 1.0, codes(&few, 256)).has_drifted(1.0, &few), "{values}");
            let early = Lens::new(1, 1.0, codes(&all, 100));
            assert_eq!(early.has_drifted(1.0, &all), values > 100, "{values}");
            assert!(!Lens::new(1, 1.0, codes(&all, 256)).has_drifted(1.0, &all), "{values}");
        }
    }

    #[test]
    fn positions_keep_the_order_of_keys_and_tell_frequent_values_from_others() {
        let codes: Vec<u32> = (0..1_000).map(|number| 0x7FFF_F000 + number * number % 8_192 / 4).collect();
        let lens = Lens::new(1, 1.0, [codes, vec![0x7FFF_F800; 900], vec![0x8000_0010; 900]].concat());
        let keys =
            (0x7FFF_EFF0..0x8000_0900_u64).flat_map(|code| [0, 1, u64::from(u32::MAX)].map(|low| code << 32 | low));
        let (mut last, mut sharp) = ((0, 0), 0);
        for key in keys {
            let position = lens.position(key);
            assert!(position >= last.1 && position & 1 == 0 && (position >> 8) as u8 == lens.cell(code_of(key)));
            assert!(!is_sharp(last.1) || position > last.1, "{key:x} and {:x} have {position:x}", last.0);
            sharp += u32::from(is_sharp(position));
            last = (key, position);
        }
        assert!(sharp > 50, "{sharp}");
        assert!([0x7FFF_F800, 0x8000_0010].iter().all(|&code| is_sharp(lens.position(implied_key(code)))));
    }

    #[test]
    fn samples_follow_a_drift() {
        let mut sample = Sample::default();
        (0..2_000).for_each(|_| sample.add(1));
        (0..20_000).for_each(|_| sample.add(2));
        let old = sample.codes().iter().filter(|&&code| code == 1).count();
        assert!(old < 20 && sample.codes().len() == SAMPLE, "{old}");
    }
}
