//! Where entries are posted, and how that follows the statistics.
//!
//! Lenses are made in generations. When one begins, entries stay where they are; each insert then places a few of them anew, so
//! that no operation stalls, and each slot gets its lens when an entry first needs it. An entry that gets a further subscription
//! is placed anew at once, so all entries of a subscription that came after the generation began are of that generation. Until
//! the last entry has been placed anew, events are seen through the lenses of both generations.

use super::keys::{Choice, DENSE, UNKEYED, Weighed, equality_slot, view};
use super::reading::Reading;
use super::rows::{HEADER, Kind, PARITY, Predicate, predicates, set_key};
use super::shapes::Shape;
use super::statistics::{ENOUGH, Lens};
use super::table::hash_number;
use super::{Enindex, codes};
use std::sync::PoisonError;

/// How many entries an insert places anew while a generation takes over from the one before (and what else belongs to the last
/// one's subscription), and how many subscriptions it looks at for that.
const PLACED_ANEW: usize = 2;
const LOOKED_AT: usize = 16;
/// A generation is replaced when there are so many times the entries that it began with, or when the lenses have drifted through
/// which more than one in so many predicates is seen.
const GROWTH: usize = 4;
const DRIFTED: u64 = 16;
/// The first is not replaced before there are so many entries, and none for drift before so many inserts.
const LEAST: usize = 256;
/// Keys that events have more often than this are worse than bitmaps.
const DENSE_FROM: f32 = 0.1;
/// Among fewer entries there are no bitmaps.
const FEWEST_DENSE: usize = 4096;
/// Shapes of at least so many entries under one key are frequent.
const FREQUENT: f32 = 128.0;
/// Drift is looked for once so many events were observed.
const ENOUGH_EVENTS: f32 = 128.0;

/// How far the search for drift has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drift {
    next: u32,
    /// Predicates on the slots that were looked at, and on those that have drifted.
    looked_at: u64,
    drifted: u64,
}

impl Enindex {
    /// Stores a new entry and posts it.
    pub(super) fn store(&mut self, subscription: u32, owner: u32, flags: u32, predicates: Vec<Predicate>) -> u32 {
        for predicate in &predicates {
            let (first, last) = (predicate.first(), predicate.last());
            let operands = &mut self.slots[predicate.slot].operands;
            match predicate.kind {
                Kind::Absent => {}
                Kind::Mask | Kind::WideMask => predicate.codes().for_each(|code| operands.add(code)),
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
        words[5] = flags;
        let id = self.subscribers.id(subscription).0;
        (words[6], words[7]) = ((id >> 32) as u32, id as u32);
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
                let prior = slot.users as f32 / rows;
                let present = observations.present(predicate.slot, prior).clamp(0.0001, 1.0);
                if slot.lenses[parity as usize].generation != current {
                    let mut codes = seen.map_or_else(Vec::new, |seen| seen.sample.codes().to_vec());
                    if codes.len() < ENOUGH {
                        codes.extend_from_slice(slot.operands.codes());
                    }
                    slot.lenses[parity as usize] = Lens::new(current, present, codes);
                }
                let lens = &slot.lenses[parity as usize];
                Weighed::new(predicate, slot.aspect, view(predicate.slot, parity), lens, present)
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
        // What is left to test, with the probability of each, given the key.
        let rest = weighed.iter().enumerate().filter_map(|(place, weighed)| match choice {
            Choice::Equality(..) if place == key_place => None,
            _ if place == key_place => Some((*weighed, weighed.probability() / key_probability)),
            _ => Some((*weighed, weighed.probability())),
        });
        let mut shape = Shape::new(rest);
        if let Choice::Equality(..) = choice
            && !matches!(weighed[key_place].predicate.kind, Kind::Codes | Kind::Keys)
        {
            shape.is_incomplete();
        }
        let share = self.popularity.share(hash_number(choice.key(), shape.hash().into()) as u32);
        let choice = if self.is_dense(weighed, key_probability, share) { Choice::Dense(parity) } else { choice };
        let key = choice.key();
        let header = self.rows.header_mut(row);
        set_key(header, key);
        header[5] = header[5] & !PARITY | if parity == 1 { PARITY } else { 0 };
        match choice {
            Choice::Unkeyed => self.unkeyed += 1,
            Choice::Equality(slot, _) => self.slots[slot].equalities += 1,
            Choice::Cell(_, key_cell) => {
                key_cell.post(&mut self.slots[weighed[key_place].predicate.slot].lenses[parity as usize]);
            }
            Choice::Dense(_) => return self.dense[parity as usize].insert(row, weighed, &mut self.rows),
        }
        for row in self.lists.insert(key, row, &shape, &mut self.rows) {
            self.displace(row);
            self.post_anew(row);
        }
    }

    /// Posts an entry once more that was displaced.
    fn post_anew(&mut self, row: u32) {
        let predicates: Vec<Predicate> = predicates(self.rows.row(row)).collect();
        let weighed = self.weigh(predicates.into_iter());
        self.post(row, &weighed);
    }

    /// Whether an entry is better off among the bitmaps than under a key that this part of all events has. Where this part of all
    /// entries has its key and shape, and these are many, they are compared so fast that it never is.
    fn is_dense(&self, weighed: &[Weighed], key_probability: f32, share: f32) -> bool {
        key_probability > DENSE_FROM
            && self.row_count >= FEWEST_DENSE
            && share * (self.row_count as f32) < FREQUENT
            && weighed.iter().all(|weighed| weighed.present > DENSE_FROM)
            && !weighed.is_empty()
    }

    /// Takes an entry from where it is posted.
    pub(super) fn displace(&mut self, row: u32) {
        let header = self.rows.header_mut(row);
        let key = self.lists.key(header);
        if key >> 32 == DENSE >> 32 {
            let place = header[4] as usize;
            return self.dense[(key & 1) as usize].remove(place, &mut self.rows);
        }
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
            self.place_some_anew();
        } else if self.row_count >= LEAST.max(GROWTH * self.rows_then) || self.has_drifted() {
            self.updates = 0;
            self.rows_then = self.row_count;
            self.sweep = 0..self.subscribers.bound() as u32;
            self.generations.current += 1;
            self.generations.is_mixed = true;
        }
    }

    /// Looks at one slot; at the end of a round through all, says whether those of many predicates have drifted.
    fn has_drifted(&mut self) -> bool {
        let observations = self.observations.get_mut().unwrap_or_else(PoisonError::into_inner);
        if observations.events < ENOUGH_EVENTS || self.updates < LEAST {
            return false;
        }
        self.drift.next += 1;
        if self.drift.next as usize >= self.slots.bound() {
            let drift = std::mem::take(&mut self.drift);
            return drift.drifted * DRIFTED > drift.looked_at;
        }
        let number = self.drift.next;
        let slot = &self.slots[number];
        let lens = &slot.lenses[self.generations.parity() as usize];
        if slot.users > 0 && lens.generation == self.generations.current {
            let present = observations.present(number, slot.users as f32 / self.row_count as f32);
            let users = u64::from(slot.users);
            self.drift.looked_at += users;
            if observations.slots.get(number as usize).is_some_and(|seen| lens.has_drifted(present, &seen.sample)) {
                self.drift.drifted += users;
            }
        }
        false
    }

    /// Places the entries of a few subscriptions anew that were placed in the generation before.
    fn place_some_anew(&mut self) {
        let (mut looked_at, mut placed) = (0, 0);
        while looked_at < LOOKED_AT && placed < PLACED_ANEW {
            let Some(subscription) = self.sweep.next() else {
                self.generations.is_mixed = false;
                return;
            };
            looked_at += 1;
            for place in 0..self.subscribers.rows(subscription).len() {
                let row = self.subscribers.rows(subscription)[place];
                placed += usize::from(self.place_anew(row));
            }
        }
    }

    /// Places an entry anew if that was last done in the generation before; says whether it was.
    ///
    /// Besides the sweep, whoever adds a subscription to an entry has to do this: the sweep may be past the new one's number, and
    /// the old ones may be removed before it comes to theirs.
    pub(super) fn place_anew(&mut self, row: u32) -> bool {
        let parity = if self.generations.parity() == 1 { PARITY } else { 0 };
        if self.rows.row(row)[5] & PARITY == parity {
            return false;
        }
        self.displace(row);
        self.post_anew(row);
        true
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
