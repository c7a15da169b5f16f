//! The production engine: the Enindex of the paper with its key sharpened, and everything laid out for the processor.
//!
//! # How it works
//!
//! - **Entries.** Each conjunction of a filter is an entry, a *row* of 32-bit words ([`rows`]). Equal conjunctions are one entry,
//!   whoever asks for them ([`subscribers`]). The conjunctions of a disjunction have the paper's one colour: whichever
//!   matches first reports the subscription, the others find it reported.
//! - **Predicate lists.** A predicate is about a *slot*, one aspect of an attribute ([`slots`]), and compares *codes*, which keep
//!   the order of values in 32 bits ([`codes`]); where codes are equal, lower bits decide. Strings that operands name have codes
//!   of their own ([`dictionary`]). What codes cannot say is a test, stored once ([`sets`]). Tests of patterns are
//!   slots, found by the pieces of text they need ([`patterns`]). [`translate`] says what becomes what.
//! - **Statistics.** Each slot has a *lens* that divides its codes into at most 253 *cells* of about equal probability
//!   ([`statistics`]), at first by what operands say, then by what events have.
//! - **Keys.** The paper lists an entry under an attribute that each match contains. Here it is listed under a predicate that each
//!   match satisfies, the one that events seldom do: under its code if it allows one only, else under a cell, or a run of
//!   cells ([`keys`]). An event looks at the lists of its own codes and cells, and passes over those of which
//!   all entries say about one view what it fails ([`gates`]).
//! - **Subscription lists.** A list ([`lists`]) has beside each entry its predicates as words about cells; the first stand in a
//!   column of their own and are tested first ([`singles`]). Entries of a shape that is frequent there (the same slots; [`shapes`]) stand in columns, 32 of which are
//!   compared at once ([`columns`], [`blocks`], [`simd`]). An event strictly inside of all ranges matches for sure; whatever else is
//!   left is tested in its row ([`reading`]).
//! - **The dense case.** An entry all of whose predicates are likely is not listed at all, but has its bits in bitmaps of
//!   what fails ([`dense`]).
//! - **No rebuild.** Tables, arenas and lists grow piece by piece ([`table`], [`flat`], [`pages`]); removing moves the last entry of a list
//!   into the gap. When lenses no longer fit what is seen, or the number of entries has grown by a factor of four, new lenses
//!   are made and entries placed anew, a few with each insert ([`placement`]).
//!
//! Candidates by cells and codes are always more than what matches, never less; so what statistics say decides about time only,
//! and results are exact.

mod blocks;
mod bounds;
mod codes;
mod columns;
mod dense;
mod dictionary;
mod flat;
mod gates;
mod keys;
mod lists;
mod pages;
mod patterns;
mod placement;
mod reading;
mod rows;
mod sets;
mod shapes;
mod simd;
mod singles;
mod slots;
mod statistics;
mod subscribers;
mod table;
#[cfg(test)]
mod tests;
mod translate;

use crate::scratch::Counts;
use crate::{Owner, Scratch, SubscriptionId};
use dense::Dense;
use enroute_filter::{Conjunction, Event, Filter};
use flat::Flat;
use keys::{keys_of, view};
use lists::{Lists, SURE};
use reading::Generations;
pub(crate) use reading::Reading;
use rows::{ALONE, Predicate, Rows, SHARED, predicates};
use sets::Sets;
use slots::Slots;
use statistics::{Observations, Popularity};
use std::sync::{Mutex, PoisonError};
use subscribers::{Found, Group, Subscribers};
use table::hash_number;
use translate::Translator;

/// How many rows ahead the processor is told what will be needed.
const AHEAD: usize = 12;

/// The production engine: entries under keys that events seldom have, laid out for the processor, exact whatever it has seen.
///
/// Inserting and removing cost about the predicates of the subscription, and a bounded share of following the statistics;
/// nothing is ever rebuilt.
#[derive(Debug)]
pub struct Enindex {
    slots: Slots,
    sets: Sets,
    rows: Rows,
    row_count: usize,
    /// A piece of the hash of an entry's predicates, and its row.
    by_predicates: Flat<(u32, u32)>,
    lists: Lists,
    unkeyed: usize,
    /// By parity of the lenses.
    dense: [Dense; 2],
    /// Of keys with shapes.
    popularity: Popularity,
    subscribers: Subscribers,
    generations: Generations,
    /// The subscriptions whose entries are still to be placed anew.
    sweep: std::ops::Range<u32>,
    drift: placement::Drift,
    /// Inserts since the generation began.
    updates: usize,
    /// How many rows there were when the generation began.
    rows_then: usize,
    observations: Mutex<Observations>,
    secret: u64,
}

impl Default for Enindex {
    fn default() -> Self {
        use std::hash::BuildHasher;
        let secret = foldhash::fast::RandomState::default().hash_one(0);
        Enindex {
            slots: Slots::default(),
            sets: Sets::new(secret),
            rows: Rows::default(),
            row_count: 0,
            by_predicates: Flat::default(),
            lists: Lists::new(secret),
            unkeyed: 0,
            dense: Default::default(),
            popularity: Popularity::default(),
            subscribers: Subscribers::new(secret),
            generations: Generations { current: 1, is_mixed: false },
            sweep: 0..0,
            drift: placement::Drift::default(),
            updates: 0,
            rows_then: 0,
            observations: Mutex::default(),
            secret,
        }
    }
}

impl Enindex {
    /// An engine without subscriptions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a subscription; false, and nothing changes, if the id is there already.
    pub fn insert(&mut self, id: SubscriptionId, owner: Owner, filter: &Filter) -> bool {
        if self.contains(id) {
            return false;
        }
        self.adapt();
        let (number, owner) = self.subscribers.insert(id, owner);
        match filter.conjunctions() {
            [conjunction] => {
                let row = self.insert_entry(number, owner, conjunction, ALONE);
                let is_only_ones = self.rows.row(row)[0] & SHARED == 0;
                self.subscribers.set_rows(number, &[row], is_only_ones);
            }
            conjunctions => {
                let rows: Vec<u32> =
                    conjunctions.iter().map(|conjunction| self.insert_entry(number, owner, conjunction, 0)).collect();
                self.subscribers.set_rows(number, &rows, false);
            }
        }
        true
    }

    /// Finds or stores the entry of a conjunction, for one subscription more; says its row.
    fn insert_entry(&mut self, subscription: u32, owner: u32, conjunction: &Conjunction, flags: u32) -> u32 {
        let mut translator = Translator { slots: &mut self.slots, sets: &mut self.sets };
        let predicates: Vec<Predicate> =
            conjunction.constraints().iter().map(|constraint| translator.acquire(constraint)).collect();
        let piece = self.piece(predicates.iter().copied());
        let found = self
            .by_predicates
            .find(spread(piece), |&(other, row)| other == piece && is_same(self.rows.row(row), &predicates));
        if let Some(&(_, row)) = found {
            self.release(&predicates);
            self.share(row, subscription, owner, flags);
            return row;
        }
        let row = self.store(subscription, owner, flags, predicates);
        self.by_predicates.insert(spread(piece), (piece, row), |&(piece, _)| spread(piece));
        row
    }

    /// A piece of a hash that does not depend on the order of the predicates.
    fn piece(&self, predicates: impl Iterator<Item = Predicate>) -> u32 {
        let hash = |predicate: Predicate| {
            let [a, b, c, d] = predicate.words.map(u64::from);
            let head = hash_number(u64::from(predicate.slot) << 4 | predicate.kind as u64, self.secret);
            hash_number(hash_number(a << 32 | b, head) ^ (c << 32 | d), self.secret)
        };
        let sum = predicates.map(hash).fold(0_u64, u64::wrapping_add);
        (sum >> 32) as u32 ^ sum as u32
    }

    fn release(&mut self, predicates: &[Predicate]) {
        for predicate in predicates {
            let mut translator = Translator { slots: &mut self.slots, sets: &mut self.sets };
            if let Some(slot) = translator.release(predicate) {
                self.observations.get_mut().unwrap_or_else(PoisonError::into_inner).forget(slot);
            }
        }
    }

    /// Adds a subscription to an entry that is there.
    fn share(&mut self, row: u32, subscription: u32, owner: u32, flags: u32) {
        self.place_anew(row);
        let header = self.rows.header_mut(row);
        if header[0] & SHARED == 0 {
            self.subscribers.share_row(header[0]);
            let mut group = Group::default();
            group.add(header[0], (header[5] & ALONE != 0).then(|| rows::id(header)), header[1]);
            header[0] = self.subscribers.groups.insert(group) | SHARED;
            let key = self.lists.key(header);
            if key >> 32 == keys::DENSE >> 32 {
                self.dense[(key & 1) as usize].forget_whose(header[4] as usize);
            } else {
                self.lists.set_shared(header, header[0] & !SHARED);
            }
        }
        let number = header[0] & !SHARED;
        let only = (flags & ALONE != 0).then(|| self.subscribers.id(subscription));
        self.subscribers.groups[number].add(subscription, only, owner);
    }

    /// Removes a subscription; false if there is none of this id.
    pub fn remove(&mut self, id: SubscriptionId) -> bool {
        let number = match self.subscribers.find(id, &self.rows) {
            None => return false,
            Some(Found::Row(row)) => {
                let [number, owner, ..] = *self.rows.header_mut(row);
                self.subscribers.prefetch_subscription(number);
                self.remove_entry(row, number, owner);
                number
            }
            Some(Found::Subscription(number)) => {
                let owner = self.subscribers.owner_of(number);
                for place in 0..self.subscribers.rows(number).len() {
                    let row = self.subscribers.rows(number)[place];
                    self.remove_entry(row, number, owner);
                }
                number
            }
        };
        self.subscribers.remove(number);
        if self.is_empty() {
            *self = Enindex::default();
        }
        true
    }

    /// Takes a subscription off an entry, and the entry away if that was the last.
    fn remove_entry(&mut self, row: u32, subscription: u32, owner: u32) {
        let subscriber = self.rows.header_mut(row)[0];
        if subscriber & SHARED != 0 {
            let number = subscriber & !SHARED;
            let is_alone = self.subscribers.rows(subscription).len() == 1;
            let only = is_alone.then(|| self.subscribers.id(subscription));
            if !self.subscribers.groups[number].remove(subscription, only, owner) {
                return;
            }
            self.subscribers.groups[number] = Group::default();
            self.subscribers.groups.vacate(number);
        }
        let words = self.rows.row(row);
        // Each of these is far away in memory: all are asked for before any is needed.
        self.lists.prefetch(words);
        let piece = self.piece(predicates(words));
        self.by_predicates.prefetch(spread(piece));
        self.lists.prefetch_place(words);
        self.by_predicates.remove(spread(piece), |&(_, other)| other == row, |&(piece, _)| spread(piece));
        self.displace(row);
        let mut translator = Translator { slots: &mut self.slots, sets: &mut self.sets };
        for predicate in predicates(self.rows.row(row)) {
            if let Some(slot) = translator.release(&predicate) {
                self.observations.get_mut().unwrap_or_else(PoisonError::into_inner).forget(slot);
            }
        }
        self.rows.remove(row);
        self.row_count -= 1;
    }

    /// The subscriptions that the event matches, each once, in no order of meaning, in place of what `out` held.
    pub fn matches(&self, event: &Event, scratch: &mut Scratch, out: &mut Vec<SubscriptionId>) {
        out.clear();
        let Scratch { marks, reading, counts } = scratch;
        marks.begin(self.subscribers.bound());
        reading.wants_ids = true;
        self.gather(event, reading, counts);
        std::mem::swap(out, &mut reading.ids);
        for (place, &candidate) in reading.candidates.iter().enumerate() {
            if let Some(later) = reading.candidates.get(place + AHEAD) {
                self.rows.prefetch(later & !SURE);
            }
            let row = self.rows.row(candidate & !SURE);
            if candidate & SURE == 0 && !reading.satisfies(row, event, &self.slots, &self.sets) {
                continue;
            }
            if row[0] & SHARED != 0 {
                reading.groups.push(row[0] & !SHARED);
            } else if row[5] & ALONE != 0 || marks.report(row[0]) {
                out.push(rows::id(row));
            }
        }
        for (place, &number) in reading.groups.iter().enumerate() {
            self.subscribers.prefetch(&reading.groups[place..]);
            let group = &self.subscribers.groups[number];
            out.extend_from_slice(&group.alone);
            let others = group.others.iter().filter(|&&subscription| marks.report(subscription));
            out.extend(others.map(|&subscription| self.subscribers.id(subscription)));
        }
    }

    /// The owners of at least one subscription that the event matches, sorted, in place of what `out` held.
    ///
    /// No subscription of an owner is tested after the first that matches.
    pub fn interested(&self, event: &Event, scratch: &mut Scratch, out: &mut Vec<Owner>) {
        out.clear();
        let Scratch { marks, reading, counts } = scratch;
        marks.begin(self.subscribers.owner_bound());
        reading.wants_ids = false;
        self.gather(event, reading, counts);
        for &candidate in &reading.candidates {
            if out.len() == self.subscribers.owner_count() {
                break;
            }
            let row = self.rows.row(candidate & !SURE);
            let satisfies = || candidate & SURE != 0 || reading.satisfies(row, event, &self.slots, &self.sets);
            if row[0] & SHARED == 0 {
                if !marks.is_reported(row[1]) && satisfies() {
                    marks.report(row[1]);
                    out.push(self.subscribers.owner(row[1]));
                }
                continue;
            }
            let owners = || self.subscribers.groups[row[0] & !SHARED].owners.keys().copied();
            if owners().any(|owner| !marks.is_reported(owner)) && satisfies() {
                out.extend(owners().filter(|&owner| marks.report(owner)).map(|owner| self.subscribers.owner(owner)));
            }
        }
        out.sort_unstable();
    }

    /// Reads the event, and collects the rows that it may match.
    fn gather(&self, event: &Event, reading: &mut Reading, counts: &mut Counts) {
        reading.read(event, &self.slots, &self.sets);
        if self.unkeyed > 0 {
            self.lists.ask(keys::UNKEYED, true, reading);
        }
        // Words, and what is listed under them, come from memory while other slots are seen to.
        let words = reading.present.len();
        reading.view(0..words, &self.slots, self.generations);
        reading.read_words(&self.slots);
        let all = reading.present.len();
        reading.view(words..all, &self.slots, self.generations);
        (words..all).chain(0..words).for_each(|place| self.ask(place, reading));
        for dense in self.dense.iter().filter(|dense| !dense.is_empty()) {
            dense.candidates(reading);
        }
        self.lists.scan(reading);
        counts.tested = reading.candidates.len();
        counts.events = counts.events.wrapping_add(1);
        if Observations::wants(counts.events) {
            self.observe(reading);
        }
    }

    /// Notes the keys that an event has by one of its slots.
    #[inline]
    fn ask(&self, place: usize, reading: &mut Reading) {
        let number = reading.present[place];
        let slot = &self.slots[number];
        if slot.equalities > 0 {
            let key = reading.keys[number as usize];
            let code = codes::code_of(key);
            self.lists.ask(keys::equality(number, code), reading.is_short(slot.aspect, key), reading);
        }
        for (parity, lens) in (0..).zip(&slot.lenses) {
            if self.generations.is_live(lens.generation, parity) {
                let view = view(number, parity);
                for key in keys_of(lens, view, reading.cells[view as usize]) {
                    self.lists.ask(key, true, reading);
                }
            }
        }
    }

    /// How many subscriptions there are.
    pub fn len(&self) -> usize {
        self.subscribers.len()
    }

    /// Whether there is no subscription.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is a subscription of this id.
    pub fn contains(&self, id: SubscriptionId) -> bool {
        self.subscribers.find(id, &self.rows).is_some()
    }

    /// An estimate of the bytes in use. Linear in the subscriptions.
    pub fn memory_usage(&self) -> usize {
        let observations = self.observations.lock().unwrap_or_else(PoisonError::into_inner).memory_usage();
        self.slots.memory_usage()
            + self.sets.memory_usage()
            + self.rows.memory_usage()
            + self.by_predicates.memory_usage()
            + self.lists.memory_usage()
            + self.subscribers.memory_usage()
            + self.dense.iter().map(Dense::memory_usage).sum::<usize>()
            + self.popularity.memory_usage()
            + observations
    }
}

fn spread(piece: u32) -> u64 {
    hash_number(piece.into(), 0)
}

/// Whether a row has these predicates, in whatever order; none occurs twice, as each is on another attribute.
fn is_same(row: &[u32], theirs: &[Predicate]) -> bool {
    const FEW: usize = 32;
    let mut mine: Vec<Predicate> = predicates(row).collect();
    if mine.len() != theirs.len() || theirs.len() <= FEW {
        return mine.len() == theirs.len() && mine.iter().all(|predicate| theirs.contains(predicate));
    }
    let mut theirs = theirs.to_vec();
    mine.sort_unstable_by_key(|predicate| predicate.slot);
    theirs.sort_unstable_by_key(|predicate| predicate.slot);
    mine == theirs
}
