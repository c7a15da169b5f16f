//! Codes for the strings that operands of equality and sets name, and for the numbers of sets, slot by slot from 1 on.

use super::pages::Pages;
use super::table::Table;
use std::hash::BuildHasher;

/// The code of what no operand of the slot names.
pub(super) const UNKNOWN: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Word {
    slot: u32,
    code: u32,
    users: u32,
    text: Box<[u8]>,
}

/// Interned strings of all slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Dictionary {
    words: Table<Word>,
    hasher: foldhash::fast::RandomState,
}

/// The codes of one slot that are in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Codes {
    /// By code, less 1: the hash of the string and how to tell it from others of that hash is the dictionary's matter.
    hashes: Pages<u64>,
}

impl Codes {
    pub(super) fn memory_usage(&self) -> usize {
        self.hashes.memory_usage()
    }
}

impl Dictionary {
    #[inline]
    fn hash(&self, slot: u32, text: &[u8]) -> u64 {
        // One hash over the text; the slot is mixed in at the end.
        super::table::hash_number(self.hasher.hash_one(text), u64::from(slot))
    }

    /// The code of a string, [`UNKNOWN`] if it has none.
    #[inline]
    pub(super) fn code(&self, slot: u32, text: &[u8]) -> u32 {
        let found = self.words.find(self.hash(slot, text), |word| word.slot == slot && *word.text == *text);
        found.map_or(UNKNOWN, |word| word.code)
    }

    /// One use more of a string; says its code.
    pub(super) fn acquire(&mut self, slot: u32, text: &[u8], codes: &mut Codes) -> u32 {
        let hash = self.hash(slot, text);
        if let Some(word) = self.words.find_mut(hash, |word| word.slot == slot && *word.text == *text) {
            word.users += 1;
            return word.code;
        }
        let code = codes.hashes.insert(hash) + 1;
        let hasher = &self.hasher;
        self.words.insert(hash, Word { slot, code, users: 1, text: text.into() }, |word| {
            super::table::hash_number(hasher.hash_one(&*word.text), u64::from(word.slot))
        });
        code
    }

    /// One use less of the string with this code.
    pub(super) fn release(&mut self, slot: u32, code: u32, codes: &mut Codes) {
        let hash = codes.hashes[code - 1];
        let same = |word: &Word| word.slot == slot && word.code == code;
        let word = self.words.find_mut(hash, same).expect("a code in use has a string");
        word.users -= 1;
        if word.users == 0 {
            self.words.remove(hash, same);
            codes.hashes.vacate(code - 1);
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.words.memory_usage() + self.words.iter().map(|word| word.text.len()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_small_and_used_again() {
        let (mut dictionary, mut codes) = (Dictionary::default(), Codes::default());
        assert_eq!(dictionary.acquire(3, b"a", &mut codes), 1);
        assert_eq!(dictionary.acquire(3, b"b", &mut codes), 2);
        assert_eq!(dictionary.acquire(3, b"a", &mut codes), 1);
        dictionary.release(3, 1, &mut codes);
        assert_eq!(dictionary.code(3, b"a"), 1, "still in use");
        dictionary.release(3, 1, &mut codes);
        assert_eq!((dictionary.code(3, b"a"), dictionary.code(4, b"b")), (UNKNOWN, UNKNOWN));
        assert_eq!(dictionary.acquire(3, b"c", &mut codes), 1);
    }
}
