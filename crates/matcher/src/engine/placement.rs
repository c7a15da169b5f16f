//! Where entries are posted, and how that follows the statistics.
//!
//! Lenses are made in generations. When one begins, entries stay where they are; each insert and remove then places those of a few
//! subscriptions anew, so that no operation stalls, and each slot gets its lens when an entry first needs it. Until the
//! last entry has been placed anew, events are seen through the lenses of both generations.

use super::keys::{ALWAYS, Choice, UNKEYED, Weighed, equality_slot, view};
use super::lists::Posted;
use super::reading::Reading;
use super::rows::{HEADER, Kind, Predicate, predicates};
use super::statistics::Lens;
use super::{Engine, codes};
use std::sync::PoisonError;

/// How many subscriptions an insert or remove places anew while a generation takes over from the one before.
const PLACED_ANEW: usize = 2;
/// A generation is not replaced before so many inserts and removes.
const LEAST_UPDATES: usize = 256;
/// Fewer observed values than this say less than the operands do.
const ENOUGH: usize = 64;
/// The weight of what subscriptions say of the frequency of an attribute, in events.
const PRIOR: f32 = 16.0;

/// Marks rows placed by lenses of odd generations.
const PARITY: u32 = 1 << 16;

impl Engine {
    /// Stores a new entry and posts it.
    pub(super) fn store(&mut self, subscription: u32, owner: u32, predicates: Vec<Predicate>) -> u32 {
        for predicate in &predicates {
            let (first, last) = (predicate.first(), predicate.last());
            let operands = &mut self.slots[predicate.slot].operands;
            match predicate.kind {
                Kind::Absent => {}
                Kind::Mask => {
                    let mask = predicate.mask();
                    (1..=64).filter(|code| mask >> (code - 1) & 1 == 1).for_each(|code| operands.add(code));
                }
                _ if first == last => operands.add(first),
                _ => {
                    // The ends of the line are no operands.
                    [first, last].into_iter().filter(|&code| !is_end(code)).for_each(|code| operands.add(code));
                }
            }
        }
        self.row_count += 1;
        let mut weighed = self.weigh(predicates.into_iter());
        weighed.sort_by(|a, b| a.probability().total_cmp(&b.probability()));
        let mut words = vec![0; HEADER];
        words[0] = subscription;
        words[1] = owner;
        weighed.iter().for_each(|weighed| weighed.predicate.write(&mut words));
        let row = self.rows.insert(words);
        self.post(row, &weighed);
        row
    }

    /// Looks at predicates through the lenses of the current generation, which are made where they are missing.
    fn weigh(&mut self, predicates: impl Iterator<Item = Predicate>) -> Vec<Weighed> {
        let (current, parity) = (self.generations.current, self.generations.parity());
        let observations = self.observations.get_mut().unwrap_or_else(PoisonError::into_inner);
        let rows = self.row_count as f32;
        predicates
            .map(|predicate| {
                let slot = &mut self.slots[predicate.slot];
                let seen = observations.slots.get(predicate.slot as usize);
                if slot.lenses[parity as usize].generation != current {
                    let mut codes = seen.map_or_else(Vec::new, |seen| seen.sample.codes().to_vec());
                    if codes.len() < ENOUGH {
                        codes.extend_from_slice(slot.operands.codes());
                    }
                    slot.lenses[parity as usize] = Lens::new(current, codes);
                }
                let prior = slot.users as f32 / rows;
                let present =
                    (seen.map_or(0.0, |seen| seen.present) + PRIOR * prior.min(1.0)) / (observations.events + PRIOR);
                let lens = &slot.lenses[parity as usize];
                Weighed::new(predicate, view(predicate.slot, parity), lens, present.clamp(0.0001, 1.0))
            })
            .collect()
    }

    /// Chooses the key of a stored entry, and posts it there.
    fn post(&mut self, row: u32, weighed: &[Weighed]) {
        let parity = self.generations.parity();
        let lens = |weighed: &Weighed| &self.slots[weighed.predicate.slot].lenses[parity as usize];
        let keys = weighed.iter().enumerate().filter_map(|(place, weighed)| {
            weighed.key(lens(weighed)).map(|(choice, probability)| (place, choice, probability))
        });
        let (key_place, choice, key_probability) =
            keys.min_by(|a, b| a.2.total_cmp(&b.2)).unwrap_or((usize::MAX, Choice::Unkeyed, 1.0));
        match choice {
            Choice::Unkeyed => self.unkeyed += 1,
            Choice::Equality(slot, _) => self.slots[slot].equalities += 1,
            Choice::Cell(_, key_cell) => {
                key_cell.post(&mut self.slots[weighed[key_place].predicate.slot].lenses[parity as usize]);
            }
        }
        // Of what is left to test, the two least likely, given the key.
        let mut words = [(1.0, ALWAYS); 2];
        for (place, weighed) in weighed.iter().enumerate() {
            let probability = match choice {
                Choice::Equality(..) if place == key_place => continue,
                _ if place == key_place => weighed.probability() / key_probability,
                _ => weighed.probability(),
            };
            if probability < words[0].0 {
                words = [(probability, weighed.word()), words[0]];
            } else if probability < words[1].0 {
                words[1] = (probability, weighed.word());
            }
        }
        let header = self.rows.header_mut(row);
        header[5] = header[5] & !PARITY | if parity == 1 { PARITY } else { 0 };
        self.lists.insert(choice.key(), Posted { row, words: words.map(|(_, word)| word) }, &mut self.rows);
    }

    /// Takes an entry from where it is posted.
    pub(super) fn displace(&mut self, row: u32) {
        let header = self.rows.header_mut(row);
        let key = u64::from(header[2]) << 32 | u64::from(header[3]);
        if key == UNKEYED {
            self.unkeyed -= 1;
        } else if let Some(slot) = equality_slot(key) {
            self.slots[slot].equalities -= 1;
        }
        self.lists.remove(row, &mut self.rows);
    }

    /// Does the share of one update in following the statistics.
    pub(super) fn adapt(&mut self) {
        self.updates += 1;
        if self.generations.is_mixed {
            for _ in 0..PLACED_ANEW {
                self.place_next_anew();
            }
        } else if self.updates >= LEAST_UPDATES.max(self.row_count) {
            self.updates = 0;
            self.sweep = 0;
            self.generations.current += 1;
            self.generations.is_mixed = true;
        }
    }

    fn place_next_anew(&mut self) {
        if self.sweep as usize >= self.subscribers.bound() {
            self.generations.is_mixed = false;
            return;
        }
        let parity = if self.generations.parity() == 1 { PARITY } else { 0 };
        for place in 0..self.subscribers.rows(self.sweep).len() {
            let row = self.subscribers.rows(self.sweep)[place];
            if self.rows.row(row)[5] & PARITY != parity {
                let predicates: Vec<Predicate> = predicates(self.rows.row(row)).collect();
                self.displace(row);
                let weighed = self.weigh(predicates.into_iter());
                self.post(row, &weighed);
            }
        }
        self.sweep += 1;
    }

    /// Adds an event to the statistics, unless another thread is just doing that.
    pub(super) fn observe(&self, reading: &Reading) {
        let Ok(mut observations) = self.observations.try_lock() else { return };
        if observations.is_full() {
            observations.fade();
        }
        observations.begin();
        for &slot in &reading.present {
            observations.add(slot, codes::code_of(reading.keys[slot as usize]));
        }
    }
}

/// Whether a code is where every range of its kind that has no bound ends.
fn is_end(code: u32) -> bool {
    // Infinity and its negative, and the ends of all codes.
    matches!(code, 0 | 1 | u32::MAX | 0xFFF0_0000 | 0x000F_FFFF)
}
