//! Keys: what an entry is posted under, chosen by how seldom an event has it.
//!
//! The paper's key attribute, sharpened: not an attribute that each match contains, but a predicate on it. An entry whose
//! predicate allows a single code is posted under this code. One that allows a range is posted under the smallest *key cell* that
//! holds the range: a run of 2^s cells of the slot's lens, on one of two grids, the second of which is shifted by half a run. So a
//! range has a key cell of at most about four times its own probability, and a value lies in 17 key cells at most.

use super::rows::{Kind, Predicate};
use super::simd::ones;
use super::slots::Aspect;
use super::statistics::{Lens, is_sharp};

/// The largest s.
const WHOLE: u32 = 8;

/// The key of entries without any other.
pub(super) const UNKEYED: u64 = 2 << 32;

/// The key of entries in the bitmaps of a parity.
pub(super) const DENSE: u64 = 3 << 32;

/// Entries under one code of a slot.
#[inline]
pub(super) fn equality(slot: u32, code: u32) -> u64 {
    u64::from(slot << 2) << 32 | u64::from(code)
}

/// The slot of a key that is an equality's.
pub(super) fn equality_slot(key: u64) -> Option<u32> {
    let tag = (key >> 32) as u32;
    (tag & 3 == 0).then_some(tag >> 2)
}

/// Entries under a key cell; `view` is a slot's lens, see [`view`].
#[inline]
fn cell(view: u32, kind: u32, index: u32) -> u64 {
    u64::from(view << 2 | 1) << 32 | u64::from(kind << 9 | index)
}

/// The number of a slot's lens of this parity.
#[inline]
pub(super) fn view(slot: u32, parity: u32) -> u32 {
    slot << 1 | parity
}

/// Kinds of key cells: 2 s, plus 1 on the second grid, of which there is none with s = 0.
const KINDS: u32 = 2 * WHOLE + 1;

/// The key cell of one kind that a cell lies in.
#[inline]
fn index(kind: u32, cell: u8) -> u32 {
    let size = kind.div_ceil(2);
    let shift = if kind & 1 == 1 { (1_u32 << size) >> 1 } else { 0 };
    (u32::from(cell) + shift) >> size
}

/// A key cell: its kind and place in its grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyCell {
    kind: u32,
    index: u32,
}

impl KeyCell {
    /// The smallest that holds a range of cells. Kind 0 is single cells; then per size the shifted grid and the plain one.
    pub(super) fn around(first: u8, last: u8) -> KeyCell {
        // Smaller ones are too small for the width.
        let least = (u8::BITS - (last - first).leading_zeros()) * 2;
        let kinds = least.saturating_sub(1).min(KINDS - 1)..KINDS;
        let kind = kinds.into_iter().find(|&kind| index(kind, first) == index(kind, last)).unwrap_or(KINDS - 1);
        KeyCell { kind, index: index(kind, first) }
    }

    /// Its first and last cell.
    pub(super) fn cells(self) -> (u8, u8) {
        let size = self.kind.div_ceil(2);
        let shift = if self.kind & 1 == 1 { (1_u32 << size) >> 1 } else { 0 };
        let first = (self.index << size).saturating_sub(shift).max(1);
        let last = ((self.index + 1) << size) - shift - 1;
        (first as u8, last.min(255) as u8)
    }

    pub(super) fn key(self, view: u32) -> u64 {
        cell(view, self.kind, self.index)
    }

    /// Notes in the lens that entries are posted here.
    pub(super) fn post(self, lens: &mut Lens) {
        let posted = lens.posted.get_or_insert_with(|| Box::new([0; 256]));
        let (first, last) = self.cells();
        if posted[usize::from(first)] >> self.kind & 1 == 0 {
            posted[usize::from(first)..=usize::from(last)].iter_mut().for_each(|kinds| *kinds |= 1 << self.kind);
        }
    }
}

/// The keys of the key cells that hold a cell and under which entries were posted.
#[inline]
pub(super) fn keys_of(lens: &Lens, view: u32, cell_of_value: u8) -> impl Iterator<Item = u64> {
    let kinds = lens.posted.as_ref().map_or(0, |posted| posted[usize::from(cell_of_value)]);
    ones(kinds).map(move |kind| cell(view, kind as u32, index(kind as u32, cell_of_value)))
}

/// A predicate seen through its slot's lens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighed {
    pub(super) predicate: Predicate,
    pub(super) view: u32,
    /// The cells it may be true in, from the first on and `span` more, cyclically; cell 0 is absence.
    pub(super) first: u8,
    pub(super) span: u8,
    /// The positions it may be true at, as the cells; strictly inside it surely is true, unless by a test or a mask.
    pub(super) positions: [u16; 2],
    /// How probably an event has a value in the slot.
    pub(super) present: f32,
    /// How probably the predicate is true, if so.
    pub(super) truth: f32,
}

impl Weighed {
    pub(super) fn new(predicate: Predicate, aspect: Aspect, view: u32, lens: &Lens, present: f32) -> Weighed {
        let keys = predicate.keys();
        let from = lens.position(keys.0.max(1 << 32));
        let to = if keys.1 == keys.0 { from } else { lens.position(keys.1.max(1 << 32)) };
        let positions = positions(&predicate, aspect, [from, to]);
        // Those of the first and the last code.
        let (start, end) = ((from >> 8) as u8, (to >> 8) as u8);
        let (first, span, truth) = match predicate.kind {
            Kind::Codes | Kind::Keys | Kind::KeysWithLows | Kind::Edges | Kind::Test => {
                let first = predicate.first();
                let is_one = first == predicate.last();
                let share = if is_one { lens.probability_in(first, start) } else { lens.probability(start, end) };
                (start, end - start, share)
            }
            Kind::Mask | Kind::WideMask => {
                let mask = predicate.mask();
                let (start, end) = (lens.cell(mask.trailing_zeros() + 1), lens.cell(128 - mask.leading_zeros()));
                (start, end - start, predicate.codes().map(|code| lens.probability_of(code)).sum::<f32>().min(1.0))
            }
            Kind::Outside => {
                let (below, above) = (start, end);
                let inside = if above > below + 1 { lens.probability(below + 1, above - 1) } else { 0.0 };
                let span = if above > below { below.wrapping_sub(above) } else { 255 };
                // Cyclically from above to below takes in absence, which pays only where much else is excluded.
                if inside > 0.5 { (above, span, 1.0 - inside) } else { (1, 254, 1.0 - inside) }
            }
            Kind::NotCodes => (1, 254, 1.0),
            Kind::Absent => (0, 0, 1.0 - present),
        };
        Weighed { predicate, view, first, span, positions, present, truth: truth.clamp(0.0001, 1.0) }
    }

    fn is_absence(&self) -> bool {
        self.predicate.kind == Kind::Absent
    }

    /// How probably it is true of an event.
    pub(super) fn probability(&self) -> f32 {
        if self.is_absence() { self.truth } else { self.present * self.truth }
    }

    /// Whether the predicate allows a single code.
    fn is_equality(&self) -> bool {
        let first_and_last = (self.predicate.first(), self.predicate.last());
        match self.predicate.kind {
            Kind::Codes | Kind::Keys | Kind::KeysWithLows | Kind::Edges | Kind::Test => {
                first_and_last.0 == first_and_last.1
            }
            Kind::Outside | Kind::NotCodes | Kind::Mask | Kind::WideMask | Kind::Absent => false,
        }
    }

    /// The key cell of its range; the whole of the slot if it has none that could be smaller.
    fn key_cell(&self) -> KeyCell {
        let last = u16::from(self.first) + u16::from(self.span);
        if last > 255 { KeyCell::around(1, 255) } else { KeyCell::around(self.first, last as u8) }
    }

    /// The key that it gives, if it can, and how probably an event has that.
    pub(super) fn key(&self, lens: &Lens) -> Option<(Choice, f32)> {
        if self.is_absence() {
            return None;
        }
        if self.is_equality() {
            return Some((Choice::Equality(self.predicate.slot, self.predicate.first()), self.probability()));
        }
        let key_cell = self.key_cell();
        let (first, last) = key_cell.cells();
        Some((Choice::Cell(self.view, key_cell), self.present * lens.probability(first, last)))
    }

    /// The first of its cells and the span. Where there is no end above, as far as can be, so that no value is at it.
    pub(super) fn cells(&self) -> (u8, u8) {
        let [first, span] = self.positions;
        let is_open = self.is_range() && first + span == u16::MAX;
        (self.first, if is_open { u8::MAX - self.first } else { self.span })
    }

    /// The test of its cells as one word: view (16 bits), first cell, span. What does not fit is always true.
    pub(super) fn word(&self) -> u32 {
        let (first, span) = self.cells();
        if self.view < 1 << 16 { self.view << 16 | u32::from(first) << 8 | u32::from(span) } else { ALWAYS }
    }

    /// Whether what lies strictly inside of its cells or positions surely satisfies it.
    pub(super) fn is_range(&self) -> bool {
        match self.predicate.kind {
            Kind::Codes | Kind::Keys | Kind::KeysWithLows | Kind::Edges => true,
            Kind::Outside | Kind::NotCodes | Kind::Mask | Kind::WideMask | Kind::Absent | Kind::Test => false,
        }
    }
}

/// Where a predicate may be true, whose keys have these positions: the first position, and how many more follow, cyclically. Both
/// ends are odd, so that no event has them, where an event beside them leaves no doubt.
fn positions(predicate: &Predicate, aspect: Aspect, [from, to]: [u16; 2]) -> [u16; 2] {
    const BEFORE_ALL: u16 = 255;
    const BEHIND_ALL: u16 = u16::MAX;
    let sharpen = |position: u16, sharp: u16| if is_sharp(position) { sharp } else { position };
    let (from, to) = match predicate.kind {
        Kind::Codes | Kind::Keys | Kind::KeysWithLows => {
            let ((first, last), (least, greatest)) = (predicate.keys(), aspect.ends());
            (
                if first <= least { BEFORE_ALL } else { sharpen(from, from - 1) },
                if last >= greatest { BEHIND_ALL } else { sharpen(to, to + 1) },
            )
        }
        Kind::Edges | Kind::Test => (from, to),
        Kind::Outside => {
            let (below, above) = (from, to);
            match above > below {
                true => (sharpen(above, above - 1), sharpen(below, below + 1)),
                // Only there is a doubt.
                false => (above, above - 1),
            }
        }
        Kind::NotCodes => (sharpen(from, from + 1), from - 1),
        Kind::Mask | Kind::WideMask => (BEFORE_ALL, BEHIND_ALL),
        Kind::Absent => (BEHIND_ALL, 1),
    };
    [from, to.wrapping_sub(from)]
}

/// The word that is true of every event: slot 0 always has the cell 1.
pub(super) const ALWAYS: u32 = 1 << 8;

/// Whether a word is true of the event with these cells by view.
#[inline]
pub(super) fn passes(word: u32, cells: &[u8]) -> bool {
    cells[(word >> 16) as usize].wrapping_sub((word >> 8) as u8) <= word as u8
}

/// The word that is surely true of every event.
pub(super) const SURELY: u32 = 2;

/// Whether the event's cell lies strictly inside of those of a word.
#[inline]
pub(super) fn is_surely_inside(word: u32, cells: &[u8]) -> bool {
    let distance = cells[(word >> 16) as usize].wrapping_sub((word >> 8) as u8);
    distance > 0 && distance < word as u8
}

/// What an entry is posted under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Unkeyed,
    /// In the bitmaps of this parity.
    Dense(u32),
    Equality(u32, u32),
    Cell(u32, KeyCell),
}

impl Choice {
    pub(super) fn key(self) -> u64 {
        match self {
            Choice::Unkeyed => UNKEYED,
            Choice::Dense(parity) => DENSE | u64::from(parity),
            Choice::Equality(slot, code) => equality(slot, code),
            Choice::Cell(view, key_cell) => key_cell.key(view),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_cell_holds_its_range_and_an_event_in_the_range_asks_for_it() {
        for first in 1..=255_u8 {
            for last in first..=255 {
                let key_cell = KeyCell::around(first, last);
                let (start, end) = key_cell.cells();
                assert!(start <= first && last <= end, "{first} {last} {key_cell:?}");
                let width = u32::from(last - first) + 1;
                assert!(u32::from(end - start) < 4 * width, "{first} {last} {key_cell:?}");
                let mut lens = Lens::default();
                key_cell.post(&mut lens);
                for cell in [first, last] {
                    assert!(keys_of(&lens, 6, cell).any(|key| key == key_cell.key(6)));
                }
            }
        }
    }
}
