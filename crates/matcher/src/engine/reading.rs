//! Reading an event into slots, and testing rows against it.

use super::codes::{Key, code_of, head_code, implied_key, implied_low, number_of, time_of, with_low};
use super::dictionary::{Text, UNKNOWN};
use super::keys::view;
use super::rows::{HEADER, Kind};
use super::sets::Sets;
use super::slots::{Aspect, NO_SLOT, Slots};
use crate::SubscriptionId;
use enroute_filter::{Event, Number, RawText, RawValue, ValueRef};

/// An event as slots see it. All that the event says nothing about is zero, but what slot 0 has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// By slot: the key of the value (where that is a code, above a low of 0), 0 for none.
    pub(super) keys: Vec<u64>,
    /// By view: the cell of the value, 0 for none. Three more.
    pub(super) cells: Vec<u8>,
    /// By view: the position of the value, 0 for none.
    pub(super) positions: Vec<u16>,
    /// The slots that have a value.
    pub(super) present: Vec<u32>,
    /// Whether some value shares its key with others.
    pub(super) has_inexact: bool,
    /// Rows that the event may match.
    pub(super) candidates: Vec<u32>,
    /// Keys to be looked up: hash, key, and whether it leaves no doubt.
    pub(super) asked: Vec<(u64, u64, bool)>,
    /// Lists to be scanned, and whether their keys leave no doubt.
    pub(super) lists: Vec<(u32, bool)>,
    /// Whether ids of subscriptions are wanted, rather than owners.
    pub(super) wants_ids: bool,
    /// Subscriptions that the event matches for sure, found without looking at their rows.
    pub(super) ids: Vec<SubscriptionId>,
    /// Groups of subscriptions, found likewise.
    pub(super) groups: Vec<u32>,
    /// Places in a list that is being scanned.
    pub(super) places: Vec<u32>,
    /// Words to be looked up: slot, text, and hash.
    words: Vec<(u32, u64, u64)>,
    patterns: Vec<u32>,
}

/// Which parities have entries, and the generations of their lenses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Generations {
    pub(super) current: u32,
    /// Whether entries of the generation before are left.
    pub(super) is_mixed: bool,
}

impl Generations {
    pub(super) fn parity(self) -> u32 {
        self.current & 1
    }

    /// Whether entries may have been placed by a lens of this generation.
    pub(super) fn is_live(self, generation: u32, parity: u32) -> bool {
        generation != 0 && (self.is_mixed || parity == self.parity())
    }
}

impl Reading {
    /// Fills in the slots of an event's attributes, in place of those of the event before, except for words: those are noted, to be
    /// looked up when what that needs has come from memory.
    #[inline]
    pub(super) fn read(&mut self, event: &Event, slots: &Slots, sets: &Sets) {
        self.clear();
        let bound = slots.bound().max(1);
        if self.keys.len() < bound {
            self.keys.resize(bound, 0);
            // Three more, as vector code reads four at once.
            self.cells.resize(2 * bound + 3, 0);
            self.positions.resize(2 * bound, 0);
            self.keys[0] = 1 << 32;
            self.cells[..2].fill(1);
        }
        for (name, value) in event.raw_attributes() {
            let Some(number) = slots.attribute_number(name) else { continue };
            let attribute = slots.attribute_at(number);
            self.set(attribute.slot(Aspect::Present), 1 << 32);
            match value {
                RawValue::Bool(bool) => self.set(attribute.slot(Aspect::Bool), (1 + u64::from(bool)) << 32),
                RawValue::Int(_) | RawValue::Float(_) => {
                    self.set_key(attribute.slot(Aspect::Number), value);
                    self.set_numeral(attribute.slot(Aspect::Numeral), value, slots);
                }
                RawValue::Time(_) => self.set_key(attribute.slot(Aspect::Time), value),
                RawValue::String(string) => {
                    self.set(attribute.slot(Aspect::Order), u64::from(head_code(string.head())) << 32);
                    let word = attribute.slot(Aspect::Word);
                    if word != NO_SLOT {
                        match Text::of_raw(string) {
                            Text::Short(text) => self.words.push((word, text, slots.ask_word(word, text))),
                            text @ Text::Long(_) => self.set(word, u64::from(slots.word(word, text)) << 32),
                        }
                    }
                    if attribute.has_patterns {
                        self.read_patterns(number, string, sets);
                    }
                }
            }
        }
    }

    /// Looks up the words that were noted.
    #[inline]
    pub(super) fn read_words(&mut self, slots: &Slots) {
        for place in 0..self.words.len() {
            let (slot, text, hash) = self.words[place];
            self.set(slot, u64::from(slots.asked_word(slot, text, hash)) << 32);
        }
    }

    /// Fills in the cells of slots that have a value, from one of them on.
    #[inline]
    pub(super) fn view(&mut self, places: std::ops::Range<usize>, slots: &Slots, generations: Generations) {
        // All that lies far away is asked for before any of it is needed.
        for &number in &self.present[places.clone()] {
            super::simd::prefetch(&slots[number].lenses[generations.parity() as usize]);
        }
        for &number in &self.present[places.clone()] {
            slots[number].lenses[generations.parity() as usize].prefetch();
        }
        for &number in &self.present[places.clone()] {
            let slot = &slots[number];
            let key = slot.aspect.full_key(self.keys[number as usize]);
            for (parity, lens) in (0..).zip(&slot.lenses) {
                if generations.is_live(lens.generation, parity) {
                    let (view, position) = (view(number, parity) as usize, lens.position(key));
                    self.positions[view] = position;
                    self.cells[view] = (position >> 8) as u8;
                    lens.prefetch_posted(self.cells[view]);
                }
            }
        }
    }

    #[inline]
    fn set(&mut self, slot: u32, key: u64) {
        if slot != NO_SLOT {
            self.keys[slot as usize] = key;
            self.present.push(slot);
        }
    }

    fn set_key(&mut self, slot: u32, value: RawValue<'_>) {
        if slot != NO_SLOT
            && let Some(key) = Key::of_value(value)
        {
            self.has_inexact |= !key.is_exact;
            self.set(slot, key.bits);
        }
    }

    fn set_numeral(&mut self, slot: u32, value: RawValue<'_>, slots: &Slots) {
        if slot != NO_SLOT
            && let Some(key) = Key::of_value(value)
        {
            // A number that shares its key with others is none of those in the dictionary.
            let code = if key.is_exact { slots.word(slot, Text::of(&key.bits.to_le_bytes())) } else { UNKNOWN };
            self.set(slot, u64::from(code) << 32);
        }
    }

    fn read_patterns(&mut self, attribute: u32, string: RawText<'_>, sets: &Sets) {
        let string = string.to_str();
        let mut patterns = std::mem::take(&mut self.patterns);
        sets.grams.candidates(attribute, string, &mut patterns);
        patterns.sort_unstable();
        patterns.dedup();
        for &test in &patterns {
            if sets[test].constraint.matches(Some(ValueRef::String(string))) {
                self.set(sets[test].slot, 1 << 32);
            }
        }
        patterns.clear();
        self.patterns = patterns;
    }

    /// Makes all zero again.
    fn clear(&mut self) {
        for &slot in &self.present {
            self.keys[slot as usize] = 0;
            for parity in 0..2 {
                self.cells[view(slot, parity) as usize] = 0;
                self.positions[view(slot, parity) as usize] = 0;
            }
        }
        self.present.clear();
        self.words.clear();
        self.candidates.clear();
        self.ids.clear();
        self.groups.clear();
        self.asked.clear();
        self.lists.clear();
        self.has_inexact = false;
    }

    /// Whether equality of the code alone is equality with an operand of implied low.
    #[inline]
    pub(super) fn is_short(&self, aspect: Aspect, key: u64) -> bool {
        match aspect {
            Aspect::Number | Aspect::Time => !self.has_inexact && key as u32 == implied_low(code_of(key)),
            Aspect::Present | Aspect::Bool | Aspect::Order | Aspect::Word | Aspect::Numeral | Aspect::Pattern(_) => {
                true
            }
        }
    }

    /// Whether the event satisfies all predicates of a row.
    #[inline]
    pub(super) fn satisfies(&self, row: &[u32], event: &Event, slots: &Slots, sets: &Sets) -> bool {
        let mut rest = &row[HEADER..];
        while let [head, first, last, ..] = *rest {
            let (slot, kind) = (head >> 4, Kind::ALL[head as usize & 15]);
            let key = self.keys[slot as usize];
            let code = code_of(key);
            let is_within = first <= code && code <= last && key != 0;
            let holds = match kind {
                Kind::Codes => is_within,
                Kind::Keys => {
                    is_within && {
                        let keys = (implied_key(first), implied_key(last));
                        self.is_between(slot, key, keys, event, slots)
                    }
                }
                Kind::KeysWithLows => {
                    is_within && {
                        let keys = (with_low(first, rest[3]), with_low(last, rest[4]));
                        self.is_between(slot, key, keys, event, slots)
                    }
                }
                Kind::Outside => {
                    let (below, above) = (with_low(first, rest[3]), with_low(last, rest[4]));
                    key != 0
                        && (self.is_between(slot, key, (0, below), event, slots)
                            || self.is_between(slot, key, (above, u64::MAX), event, slots))
                }
                Kind::NotCodes => key != 0 && !is_within,
                Kind::Edges => is_within && ((code != first && code != last) || passes_test(rest[3], event, sets)),
                Kind::Test => is_within && passes_test(rest[3], event, sets),
                Kind::Mask | Kind::WideMask => {
                    let words = &rest[1..kind.words()];
                    let place = code.wrapping_sub(1);
                    words.get(place as usize / 32).is_some_and(|word| word >> (place % 32) & 1 == 1)
                }
                Kind::Absent => key == 0,
            };
            if !holds {
                return false;
            }
            rest = &rest[kind.words()..];
        }
        true
    }

    /// Whether the slot's value lies between those of two keys. The keys say it, unless the value shares its with others.
    #[inline]
    fn is_between(&self, slot: u32, key: u64, (first, last): (u64, u64), event: &Event, slots: &Slots) -> bool {
        if self.has_inexact && (key == first || key == last) {
            return is_between_exactly(slot, (first, last), event, slots);
        }
        first <= key && key <= last
    }
}

#[cold]
fn is_between_exactly(slot: u32, (first, last): (u64, u64), event: &Event, slots: &Slots) -> bool {
    let value = event.get(&slots.attribute_of(slot).name);
    // Keys beyond those of all values are no bounds.
    let number = match value {
        Some(ValueRef::Int(int)) => Number::from(int),
        Some(ValueRef::Float(float)) => match Number::from_f64(float) {
            Some(number) => number,
            None => return false,
        },
        Some(ValueRef::Time(time)) => {
            return (first == 0 || time_of(first) <= time) && (last == u64::MAX || time <= time_of(last));
        }
        Some(ValueRef::Bool(_) | ValueRef::String(_)) | None => return false,
    };
    (first == 0 || number_of(first) <= number) && (last == u64::MAX || number <= number_of(last))
}

#[cold]
fn passes_test(test: u32, event: &Event, sets: &Sets) -> bool {
    let constraint = &sets[test].constraint;
    constraint.matches(event.get(constraint.attribute()))
}
