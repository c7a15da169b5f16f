//! Attributes, and the slots into which their values are read.
//!
//! A slot is one aspect of an attribute that predicates ask about: that it is there, its value as a bool, a number or a time,
//! its string in the order of strings, which of the strings that operands name it is, whether it passes some test of
//! patterns. Slots exist while a predicate uses them. Slot 0 belongs to no attribute and always has the code 1.

use super::codes::{Key, code_of, implied_key};
use super::dictionary::{Codes, Dictionary, Text};
use super::flat::Flat;
use super::pages::Pages;
use super::statistics::{Lens, Sample};
use super::table::{fold, random_secrets};
use enroute_filter::{Number, RawText};
use std::hash::BuildHasher;
use std::mem::size_of;
use std::sync::Arc;

pub(super) const NO_SLOT: u32 = u32::MAX;

/// Which aspect of its attribute a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aspect {
    /// 1 if there is a value.
    Present,
    /// 1 for false, 2 for true.
    Bool,
    /// The key of a number.
    Number,
    /// The key of a time.
    Time,
    /// The code of a string in the order of strings.
    Order,
    /// The code of a string in the dictionary.
    Word,
    /// The code of a number in the dictionary.
    Numeral,
    /// 1 if the test of this number passes, which only strings can.
    Pattern(u32),
}

/// How many aspects an attribute has one slot for each of; patterns have as many slots as there are tests.
const ASPECTS: usize = 7;

impl Aspect {
    /// The least and the greatest key that it may have.
    pub(super) fn ends(self) -> (u64, u64) {
        match self {
            Aspect::Number => (Key::of_number(Number::MIN).bits, Key::of_number(Number::MAX).bits),
            Aspect::Time => (1 << 32, u64::MAX),
            Aspect::Present | Aspect::Bool | Aspect::Order | Aspect::Word | Aspect::Numeral | Aspect::Pattern(_) => {
                (implied_key(1), implied_key(u32::MAX))
            }
        }
    }

    /// The key that stands for what a slot's key says: codes alone have the low that they imply.
    #[inline]
    pub(super) fn full_key(self, key: u64) -> u64 {
        match self {
            Aspect::Number | Aspect::Time => key,
            Aspect::Present | Aspect::Bool | Aspect::Order | Aspect::Word | Aspect::Numeral | Aspect::Pattern(_) => {
                implied_key(code_of(key))
            }
        }
    }

    fn index(self) -> Option<usize> {
        match self {
            Aspect::Present => Some(0),
            Aspect::Bool => Some(1),
            Aspect::Number => Some(2),
            Aspect::Time => Some(3),
            Aspect::Order => Some(4),
            Aspect::Word => Some(5),
            Aspect::Numeral => Some(6),
            Aspect::Pattern(_) => None,
        }
    }
}

/// An attribute that some predicate names.
#[derive(Clone, Debug)]
pub(super) struct Attribute {
    pub(super) name: Arc<str>,
    /// The first bytes of the name: see [`RawText::head`].
    head: u128,
    /// Uses by slots and tests.
    users: u32,
    /// By aspect; [`NO_SLOT`] where there is none.
    slots: [u32; ASPECTS],
    /// Its tests of patterns, if there are any: see [`super::patterns`].
    pub(super) has_patterns: bool,
}

/// A slot. See the [module's page](self).
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) attribute: u32,
    pub(super) aspect: Aspect,
    /// How many predicates use it.
    pub(super) users: u32,
    /// How many entries are posted under an equality of this slot.
    pub(super) equalities: u32,
    /// Operands, which tell something of values as long as no event was seen.
    pub(super) operands: Sample,
    /// By parity of the generation.
    pub(super) lenses: [Lens; 2],
    words: Option<Box<Codes>>,
}

/// All attributes and slots.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    attributes: Pages<Attribute>,
    /// A piece of the hash of a name, and its attribute.
    by_name: Flat<(u32, u32)>,
    names: Names,
    slots: Vec<Slot>,
    vacant: Vec<u32>,
    dictionary: Dictionary,
    hasher: foldhash::fast::RandomState,
    secrets: [u64; 2],
}

impl Default for Slots {
    fn default() -> Self {
        Slots {
            attributes: Pages::default(),
            by_name: Flat::default(),
            names: Names::default(),
            slots: Vec::new(),
            vacant: Vec::new(),
            dictionary: Dictionary::default(),
            hasher: Default::default(),
            secrets: random_secrets(),
        }
    }
}

/// Tells most names that no predicate has from those that some has or had, as long as there are few: events may have many attributes
/// that nobody asks for.
#[derive(Clone, Debug, Default)]
struct Names([u64; 4]);

impl Names {
    /// The word and the bit of a name.
    #[inline]
    fn place(name: RawText<'_>) -> (usize, u64) {
        let [first, .., last] = *name.as_bytes() else { return (0, 1) };
        let mixed = first ^ last.rotate_left(3) ^ (name.length() as u8).rotate_left(5);
        (usize::from(mixed >> 6), 1 << (mixed & 63))
    }

    fn add(&mut self, name: RawText<'_>) {
        let (word, bit) = Names::place(name);
        self.0[word] |= bit;
    }

    #[inline]
    fn may_have(&self, name: RawText<'_>) -> bool {
        let (word, bit) = Names::place(name);
        self.0[word] & bit != 0
    }
}

impl Slots {
    /// The number of the attribute of this name, if there is a predicate on it.
    #[inline]
    pub(super) fn attribute_number(&self, name: RawText<'_>) -> Option<u32> {
        if !self.names.may_have(name) {
            return None;
        }
        let (head, hash) = (name.head(), self.hash(name));
        let found = self
            .by_name
            .find(hash, |&(piece, number)| piece == piece_of(hash) && self.attributes[number].has_name(name, head));
        found.map(|&(_, number)| number)
    }

    #[inline]
    fn hash(&self, name: RawText<'_>) -> u64 {
        if name.length() <= HEAD {
            let head = name.head();
            return fold(head as u64 ^ self.secrets[0], (head >> 64) as u64 ^ self.secrets[1]);
        }
        self.hasher.hash_one(name.as_bytes())
    }

    /// Asks the processor for what looking up a short word will need; says its hash.
    #[inline]
    pub(super) fn ask_word(&self, slot: u32, text: u64) -> u64 {
        self.dictionary.ask(slot, text)
    }

    /// The code of a short word with this hash.
    #[inline]
    pub(super) fn asked_word(&self, slot: u32, text: u64, hash: u64) -> u32 {
        self.dictionary.asked(slot, text, hash)
    }

    /// The code of a string in a slot of words.
    #[inline]
    pub(super) fn word(&self, slot: u32, text: Text<'_>) -> u32 {
        self.dictionary.code(slot, text, self.slots[slot as usize].words.as_deref())
    }

    #[inline]
    pub(super) fn attribute_at(&self, number: u32) -> &Attribute {
        &self.attributes[number]
    }

    /// The attribute of a slot.
    pub(super) fn attribute_of(&self, slot: u32) -> &Attribute {
        &self.attributes[self.slots[slot as usize].attribute]
    }

    /// One use more of an attribute.
    pub(super) fn acquire_attribute(&mut self, name: &Arc<str>) -> u32 {
        let raw = RawText::from(&**name);
        if let Some(number) = self.attribute_number(raw) {
            self.attributes[number].users += 1;
            return number;
        }
        let attribute = Attribute {
            name: name.clone(),
            head: raw.head(),
            users: 1,
            slots: [NO_SLOT; ASPECTS],
            has_patterns: false,
        };
        let number = self.attributes.insert(attribute);
        self.names.add(raw);
        let mut by_name = std::mem::take(&mut self.by_name);
        let hash_of = |&(_, number): &(u32, u32)| self.hash(RawText::from(&*self.attributes[number].name));
        let hash = self.hash(raw);
        by_name.insert(hash, (piece_of(hash), number), hash_of);
        self.by_name = by_name;
        number
    }

    /// One use less of an attribute.
    pub(super) fn release_attribute(&mut self, number: u32) {
        self.attributes[number].users -= 1;
        if self.attributes[number].users == 0 {
            let mut by_name = std::mem::take(&mut self.by_name);
            let hash_of = |&(_, number): &(u32, u32)| self.hash(RawText::from(&*self.attributes[number].name));
            by_name.remove(hash_of(&(0, number)), |&(_, other)| other == number, hash_of);
            self.by_name = by_name;
            self.attributes[number].name = Arc::from("");
            self.attributes.vacate(number);
        }
    }

    pub(super) fn attribute_mut(&mut self, number: u32) -> &mut Attribute {
        &mut self.attributes[number]
    }

    /// One use more of an aspect of an attribute; says its slot.
    pub(super) fn acquire(&mut self, name: &Arc<str>, aspect: Aspect) -> u32 {
        let known = aspect.index().and_then(|index| {
            self.attribute_number(RawText::from(&**name)).map(|number| self.attributes[number].slots[index])
        });
        if let Some(slot) = known.filter(|&slot| slot != NO_SLOT) {
            self.slots[slot as usize].users += 1;
            return slot;
        }
        let attribute = self.acquire_attribute(name);
        if self.slots.is_empty() {
            self.slots.push(Slot::new(attribute, Aspect::Present));
        }
        let new = Slot::new(attribute, aspect);
        let slot = match self.vacant.pop() {
            Some(slot) => {
                self.slots[slot as usize] = new;
                slot
            }
            None => {
                self.slots.push(new);
                self.slots.len() as u32 - 1
            }
        };
        if let Some(index) = aspect.index() {
            self.attributes[attribute].slots[index] = slot;
        }
        slot
    }

    /// One more use of a slot that is in use.
    pub(super) fn use_again(&mut self, slot: u32) {
        self.slots[slot as usize].users += 1;
    }

    /// One use less of a slot; whether that was the last.
    pub(super) fn release(&mut self, slot: u32) -> bool {
        let place = &mut self.slots[slot as usize];
        place.users -= 1;
        if place.users > 0 {
            return false;
        }
        let Slot { attribute, aspect, .. } = *place;
        *place = Slot::new(attribute, aspect);
        place.users = 0;
        if let Some(index) = aspect.index() {
            self.attributes[attribute].slots[index] = NO_SLOT;
        }
        self.vacant.push(slot);
        self.release_attribute(attribute);
        true
    }

    /// One use more of a string as an operand in a slot of words; says its code.
    pub(super) fn acquire_word(&mut self, slot: u32, text: &[u8]) -> u32 {
        let codes = self.slots[slot as usize].words.get_or_insert_default();
        self.dictionary.acquire(slot, Text::of(text), codes)
    }

    /// One use less of the string with this code.
    pub(super) fn release_word(&mut self, slot: u32, code: u32) {
        let codes = self.slots[slot as usize].words.as_mut().expect("a slot with words in use");
        self.dictionary.release(slot, code, codes);
    }

    /// Every slot's number is smaller.
    pub(super) fn bound(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn memory_usage(&self) -> usize {
        let slot = |slot: &Slot| {
            slot.operands.memory_usage()
                + slot.lenses.iter().map(Lens::memory_usage).sum::<usize>()
                + slot.words.as_ref().map_or(0, |words| size_of::<Codes>() + words.memory_usage())
        };
        self.attributes.memory_usage()
            + self.attributes.iter().map(|attribute| attribute.name.len() + 16).sum::<usize>()
            + self.by_name.memory_usage()
            + self.slots.capacity() * size_of::<Slot>()
            + self.slots.iter().map(slot).sum::<usize>()
            + self.vacant.capacity() * size_of::<u32>()
            + self.dictionary.memory_usage()
    }
}

/// The most bytes of a name that its head says all of.
const HEAD: usize = size_of::<u128>();

/// What stands of a hash in the table of names.
#[inline]
fn piece_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl Attribute {
    /// Whether this is its name, which has this head.
    #[inline]
    fn has_name(&self, name: RawText<'_>, head: u128) -> bool {
        self.head == head
            && self.name.len() == name.length()
            && (name.length() <= HEAD || *self.name.as_bytes() == *name.as_bytes())
    }

    #[inline]
    pub(super) fn slot(&self, aspect: Aspect) -> u32 {
        aspect.index().map_or(NO_SLOT, |index| self.slots[index])
    }
}

impl Slot {
    fn new(attribute: u32, aspect: Aspect) -> Slot {
        Slot {
            attribute,
            aspect,
            users: 1,
            equalities: 0,
            operands: Sample::default(),
            lenses: Default::default(),
            words: None,
        }
    }
}

impl std::ops::Index<u32> for Slots {
    type Output = Slot;

    #[inline]
    fn index(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }
}

impl std::ops::IndexMut<u32> for Slots {
    fn index_mut(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }
}
