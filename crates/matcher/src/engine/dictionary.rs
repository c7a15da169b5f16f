//! Codes for the strings that operands of equality and sets name, and for the numbers of sets, slot by slot from 1 on.
//!
//! Most such strings are short: they stand in the hash table itself, so that a string is looked up by one access to memory.

use super::flat::{Flat, Item};
use super::pages::Pages;
use super::table::{fold, random_secrets};
use enroute_filter::RawText;
use std::hash::BuildHasher;
use std::mem::size_of;

/// The code of what no operand of the slot names.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// The most bytes of a short string.
const SHORT: usize = size_of::<u64>();
/// Marks the slot of a word that is not short.
const LONG: u32 = 1 << 31;

/// A string with a code, in its slot.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Word {
    /// The string itself if it is short, else its hash.
    text: u64,
    /// With [`LONG`] if it is not short.
    slot: u32,
    code: u32,
}

impl Item for Word {
    const VACANT: Word = Word { text: 0, slot: u32::MAX, code: 0 };
}

/// A string that may have a code.
#[derive(Clone, Copy, Debug)]
pub(super) enum Text<'a> {
    /// At most [`SHORT`] bytes, the last of which is not zero, as a little-endian number.
    Short(u64),
    Long(&'a [u8]),
}

impl<'a> Text<'a> {
    /// Of a string whose first bytes are this number.
    #[inline]
    fn new(head: u64, length: usize, bytes: impl FnOnce() -> &'a [u8]) -> Text<'a> {
        let is_short = length <= SHORT && (length == 0 || head >> (8 * (length - 1)) != 0);
        if is_short { Text::Short(head) } else { Text::Long(bytes()) }
    }

    pub(super) fn of(bytes: &'a [u8]) -> Text<'a> {
        let mut head = [0; SHORT];
        head.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        Text::new(u64::from_le_bytes(head), bytes.len(), || bytes)
    }

    /// As [`Text::of`] its bytes.
    #[inline]
    pub(super) fn of_raw(text: RawText<'a>) -> Text<'a> {
        Text::new(text.head() as u64, text.length(), || text.as_bytes())
    }
}

/// Interned strings of all slots.
#[derive(Clone, Debug)]
pub(super) struct Dictionary {
    words: Flat<Word>,
    hasher: foldhash::fast::RandomState,
    secrets: [u64; 2],
}

/// The codes of one slot that are in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Codes {
    /// By code, less 1.
    known: Pages<Known>,
}

/// What has a code.
#[derive(Clone, Debug)]
struct Known {
    /// As in its [`Word`].
    text: u64,
    users: u32,
    is_long: bool,
    /// Only if it is not short.
    bytes: Box<[u8]>,
}

impl Codes {
    pub(super) fn memory_usage(&self) -> usize {
        self.known.memory_usage() + self.known.iter().map(|known| known.bytes.len()).sum::<usize>()
    }
}

impl Default for Dictionary {
    fn default() -> Self {
        Dictionary { words: Flat::default(), hasher: Default::default(), secrets: random_secrets() }
    }
}

impl Dictionary {
    /// What stands in the table for a string of a slot: text and slot of its [`Word`].
    #[inline]
    fn key(&self, slot: u32, text: Text<'_>) -> (u64, u32) {
        match text {
            Text::Short(text) => (text, slot),
            Text::Long(bytes) => (self.hasher.hash_one(bytes), slot | LONG),
        }
    }

    #[inline]
    fn find(&self, (text, slot): (u64, u32), codes: Option<&Codes>, string: Text<'_>) -> Option<u32> {
        let is_it = |word: &Word| {
            word.text == text
                && word.slot == slot
                && match string {
                    Text::Short(_) => true,
                    Text::Long(bytes) => codes.is_some_and(|codes| *codes.known[word.code - 1].bytes == *bytes),
                }
        };
        self.words.find(hash((text, slot), self.secrets), is_it).map(|word| word.code)
    }

    /// Asks the processor for what looking up a short string will need; says its hash.
    #[inline]
    pub(super) fn ask(&self, slot: u32, text: u64) -> u64 {
        let hash = hash((text, slot), self.secrets);
        self.words.prefetch(hash);
        hash
    }

    /// The code of a short string with this hash, [`UNKNOWN`] if it has none.
    #[inline]
    pub(super) fn asked(&self, slot: u32, text: u64, hash: u64) -> u32 {
        let found = self.words.find(hash, |word| word.text == text && word.slot == slot);
        found.map_or(UNKNOWN, |word| word.code)
    }

    /// The code of a string, [`UNKNOWN`] if it has none; `codes` are those of the slot.
    #[inline]
    pub(super) fn code(&self, slot: u32, text: Text<'_>, codes: Option<&Codes>) -> u32 {
        self.find(self.key(slot, text), codes, text).unwrap_or(UNKNOWN)
    }

    /// One use more of a string; says its code.
    pub(super) fn acquire(&mut self, slot: u32, text: Text<'_>, codes: &mut Codes) -> u32 {
        let key = self.key(slot, text);
        if let Some(code) = self.find(key, Some(codes), text) {
            codes.known[code - 1].users += 1;
            return code;
        }
        let bytes = if let Text::Long(bytes) = text { bytes } else { &[] };
        let known = Known { text: key.0, users: 1, is_long: matches!(text, Text::Long(_)), bytes: bytes.into() };
        let code = codes.known.insert(known) + 1;
        let secrets = self.secrets;
        let word = Word { text: key.0, slot: key.1, code };
        self.words.insert(hash(key, secrets), word, |word| hash((word.text, word.slot), secrets));
        code
    }

    /// One use less of the string with this code.
    pub(super) fn release(&mut self, slot: u32, code: u32, codes: &mut Codes) {
        let known = &mut codes.known[code - 1];
        known.users -= 1;
        if known.users > 0 {
            return;
        }
        known.bytes = Box::default();
        let key = (known.text, if known.is_long { slot | LONG } else { slot });
        let word = Word { text: key.0, slot: key.1, code };
        let secrets = self.secrets;
        self.words.remove(hash(key, secrets), |other| *other == word, |word| hash((word.text, word.slot), secrets));
        codes.known.vacate(code - 1);
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.words.memory_usage()
    }
}

/// The hash of text and slot of a [`Word`].
#[inline]
fn hash((text, slot): (u64, u32), secrets: [u64; 2]) -> u64 {
    fold(text ^ secrets[0], u64::from(slot) ^ secrets[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_small_and_used_again() {
        for [a, b, c] in [["a", "b", "c"], ["no short a", "no short b", "no short c"], ["a", "a\0", "a\0\0"]] {
            let [a, b, c] = [a, b, c].map(|text| Text::of(text.as_bytes()));
            let (mut dictionary, mut codes) = (Dictionary::default(), Codes::default());
            assert_eq!(dictionary.acquire(3, a, &mut codes), 1);
            assert_eq!(dictionary.acquire(3, b, &mut codes), 2);
            assert_eq!(dictionary.acquire(3, a, &mut codes), 1);
            dictionary.release(3, 1, &mut codes);
            assert_eq!(dictionary.code(3, a, Some(&codes)), 1, "still in use");
            dictionary.release(3, 1, &mut codes);
            let found = [dictionary.code(3, a, Some(&codes)), dictionary.code(4, b, None)];
            assert_eq!(found, [UNKNOWN, UNKNOWN]);
            assert_eq!(dictionary.acquire(3, c, &mut codes), 1);
            assert_eq!([b, c].map(|text| dictionary.code(3, text, Some(&codes))), [2, 1]);
        }
    }

    #[test]
    fn strings_are_told_apart_whatever_their_length() {
        let texts = ["", "\0", "a", "a\0", "ab", "abcdefg", "abcdefg\0", "abcdefgh", "abcdefghi", "abcdefgh\0"];
        let (mut dictionary, mut codes) = (Dictionary::default(), Codes::default());
        for (text, code) in texts.iter().zip(1..) {
            assert_eq!(dictionary.code(1, Text::of(text.as_bytes()), Some(&codes)), UNKNOWN, "{text:?}");
            assert_eq!(dictionary.acquire(1, Text::of(text.as_bytes()), &mut codes), code);
        }
        for (text, code) in texts.iter().zip(1..) {
            // What follows a string in an event is no part of it.
            let event =
                enroute_filter::Event::builder().attribute("n", *text).payload(&b"payload"[..]).build().unwrap();
            let Some((_, enroute_filter::RawValue::String(raw))) = event.raw_attributes().next() else { panic!() };
            for text in [Text::of(text.as_bytes()), Text::of_raw(raw), Text::of_raw(RawText::from(*text))] {
                assert_eq!(dictionary.code(1, text, Some(&codes)), code, "{text:?}");
            }
        }
    }
}
