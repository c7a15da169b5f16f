//! Which tests of patterns a string may pass: those one of whose grams it contains.
//!
//! A gram is a run of at most [`LONGEST`] bytes that a string cannot lack if it passes: part of a literal of SUFFIX, CONTAINS or
//! LIKE. Each test is listed under one gram for each of its terms, the one that has the fewest tests so far. An event's string is
//! walked once, whatever the number of patterns; and unlike an automaton over all of them, grams come and go one by one.

use super::table::{Table, hash_number};
use enroute_filter::{Pattern, PatternKind, StringSet, Symbol};
use std::mem::size_of;

const LONGEST: usize = 4;

/// Tests by gram.
#[derive(Clone, Debug, Default)]
pub(super) struct Grams {
    lists: Table<Gram>,
    /// How many grams there are of each length, less one.
    lengths: [usize; LONGEST],
    secret: u64,
}

#[derive(Clone, Debug)]
struct Gram {
    key: u64,
    tests: Vec<u32>,
}

fn key(attribute: u32, bytes: &[u8]) -> u64 {
    let text = bytes.iter().fold(0, |text, &byte| text << 8 | u64::from(byte));
    u64::from(attribute) << 35 | (bytes.len() as u64) << 32 | text
}

fn length_of(key: u64) -> usize {
    (key >> 32 & 7) as usize
}

/// The longest literal that strings have which fit the pattern; empty if there is none.
fn literal(pattern: &Pattern) -> String {
    match pattern.kind() {
        PatternKind::Suffix(text) | PatternKind::Contains(text) => text.to_owned(),
        PatternKind::Like(symbols) => {
            let runs = symbols.split(|symbol| !matches!(symbol, Symbol::Char(_)));
            let text = |run: &[Symbol]| -> String {
                run.iter()
                    .filter_map(|symbol| if let Symbol::Char(char) = symbol { Some(*char) } else { None })
                    .collect()
            };
            runs.map(text).max_by_key(String::len).unwrap_or_default()
        }
    }
}

/// For each term of a set of strings a literal that all its strings contain; none if some term has no literal, or if there are
/// strings in the set that need no pattern.
pub(super) fn literals(strings: &StringSet) -> Option<Vec<String>> {
    if strings.intervals().len() > 0 || strings.terms().is_empty() {
        return None;
    }
    let of_term = |term: &enroute_filter::StringTerm| {
        term.all_of().iter().map(literal).max_by_key(String::len).filter(|literal| !literal.is_empty())
    };
    strings.terms().iter().map(of_term).collect()
}

impl Grams {
    pub(super) fn new(secret: u64) -> Grams {
        Grams { secret, ..Grams::default() }
    }

    /// Lists a test under a gram of the literal; says which.
    pub(super) fn add(&mut self, attribute: u32, literal: &str, test: u32) -> u64 {
        let bytes = literal.as_bytes();
        let windows = bytes.windows(LONGEST.min(bytes.len())).take(256).map(|window| key(attribute, window));
        let key = windows.min_by_key(|&key| self.tests(key).len()).expect("no literal is empty");
        let (hash, secret) = (hash_number(key, self.secret), self.secret);
        match self.lists.find_mut(hash, |gram| gram.key == key) {
            Some(gram) => gram.tests.push(test),
            None => {
                self.lengths[length_of(key) - 1] += 1;
                self.lists.insert(hash, Gram { key, tests: vec![test] }, |gram| hash_number(gram.key, secret));
            }
        }
        key
    }

    pub(super) fn remove(&mut self, key: u64, test: u32) {
        let hash = hash_number(key, self.secret);
        let gram = self.lists.find_mut(hash, |gram| gram.key == key).expect("a test in use is listed");
        let place = gram.tests.iter().position(|&other| other == test).expect("a test in use is listed");
        gram.tests.swap_remove(place);
        if gram.tests.is_empty() {
            self.lists.remove(hash, |gram| gram.key == key);
            self.lengths[length_of(key) - 1] -= 1;
        }
    }

    fn tests(&self, key: u64) -> &[u32] {
        self.lists.find(hash_number(key, self.secret), |gram| gram.key == key).map_or(&[], |gram| &gram.tests)
    }

    /// Appends the tests of an attribute that its string may pass; some maybe several times.
    pub(super) fn candidates(&self, attribute: u32, string: &str, out: &mut Vec<u32>) {
        for length in 1..=LONGEST {
            if self.lengths[length - 1] > 0 {
                for window in string.as_bytes().windows(length) {
                    out.extend_from_slice(self.tests(key(attribute, window)));
                }
            }
        }
    }

    pub(super) fn memory_usage(&self) -> usize {
        self.lists.memory_usage()
            + self.lists.iter().map(|gram| gram.tests.capacity() * size_of::<u32>()).sum::<usize>()
    }
}
