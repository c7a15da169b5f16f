//! Shapes: what the predicates of an entry are about, and the words that say the rest of them.

use super::keys::{ALWAYS, SURELY, Weighed};
use super::rows::Kind;
use super::singles::{UNKNOWN_SHAPE, WORDS};
use super::table::hash_number;

/// The most predicates that stand in columns; those beyond are tested in the row.
pub(super) const MOST_COLUMNS: usize = 6;

/// What a predicate in columns is about, and so how many columns it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// Positions from one on.
    AtLeast,
    /// Positions up to one.
    AtMost,
    /// Positions from one to another, as the first one and how many follow.
    Range,
    /// Positions from one through the greatest and least to another, likewise.
    Outside,
    /// That there is no value.
    Absence,
    /// A value's code, up to 16 times so many.
    Codes(u8),
}

impl About {
    pub(super) fn columns(self) -> usize {
        match self {
            About::Absence => 0,
            About::AtLeast | About::AtMost => 1,
            About::Range | About::Outside => 2,
            About::Codes(words) => usize::from(words),
        }
    }

    /// Whether entries can be put in the order of their positions.
    pub(super) fn has_order(self) -> bool {
        match self {
            About::AtLeast | About::AtMost | About::Range => true,
            About::Outside | About::Absence | About::Codes(_) => false,
        }
    }

    fn number(self) -> u64 {
        match self {
            About::Codes(words) => words.into(),
            About::AtLeast => 9,
            About::AtMost => 10,
            About::Range => 11,
            About::Outside => 12,
            About::Absence => 13,
        }
    }
}

/// One predicate of an entry as columns take it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cellular {
    pub(super) view: u32,
    pub(super) about: About,
    /// As many as it takes columns.
    pub(super) words: [u16; 8],
    /// What it says about cells, and whether it surely is true of those strictly inside.
    word: u32,
    is_range: bool,
    probability: f32,
}

impl Cellular {
    fn new(weighed: &Weighed, probability: f32) -> Cellular {
        let [first, span] = weighed.positions;
        let mut words = [first, span, 0, 0, 0, 0, 0, 0];
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
            Kind::Outside | Kind::NotCodes => About::Outside,
            Kind::Codes | Kind::Keys | Kind::KeysWithLows | Kind::Edges | Kind::Test => {
                if first + span == u16::MAX {
                    About::AtLeast
                } else if first < 1 << 8 {
                    words[0] = first + span;
                    About::AtMost
                } else {
                    About::Range
                }
            }
        };
        let (word, is_range) = (weighed.word(), weighed.is_range());
        Cellular { view: weighed.view, about, words, word, is_range, probability }
    }
}

/// The predicates of an entry as columns take them, the least likely first.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    pub(super) cellular: Vec<Cellular>,
    /// Whether there is nothing else to test but the key.
    pub(super) is_complete: bool,
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

    /// What is said about cells. The words leave a doubt unless they say it all, and `is_alone` says whose the entry is.
    pub(super) fn words(&self, is_alone: bool) -> [u32; WORDS] {
        let mut words = [SURELY; WORDS];
        words.iter_mut().zip(&self.cellular).for_each(|(word, cellular)| *word = cellular.word);
        if !(self.is_complete && is_alone && self.cellular.iter().all(|cellular| cellular.is_range)) {
            words[WORDS - 1] = ALWAYS;
        }
        words
    }

    /// A hash of what the columns are about, in whatever order; never [`UNKNOWN_SHAPE`].
    pub(super) fn hash(&self) -> u32 {
        let hash = |cellular: &Cellular| hash_number(u64::from(cellular.view) << 4 | cellular.about.number(), 1);
        let sum = self.cellular.iter().map(hash).fold(u64::from(self.is_complete), u64::wrapping_add);
        ((sum >> 32) as u32 ^ sum as u32).max(UNKNOWN_SHAPE + 1)
    }
}
