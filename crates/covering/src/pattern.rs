//! Tests with patterns, and sets of strings as languages: whether a string is in some sets and not in others.
//!
//! A set is made of intervals and of patterns with `%` and `_`. Both can be followed along a string that is read one
//! character after the other: of a bound of an interval, whether what was read is its beginning, less or greater; of a
//! pattern, the places in it where what was read may end. Characters that nobody names differ only in which named ones they
//! lie between, so one of each kind is enough, and there are finitely many states. Going through them, breadth first, ends
//! at the shortest string that is asked for, or shows that there is none.
//!
//! The states may be very many (`%a____________` alone has thousands), so the search is bounded.

use crate::span::Code;
use enroute_filter::{Pattern, StringSet, Symbol, Test, ValueSet};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Characters that are followed along bounds and patterns in one search, counted for each of them. Enough for what people
/// write, and done within a millisecond.
const MAX_STEPS: usize = 1 << 13;

/// Places in a pattern are the bits of a word.
const MAX_SYMBOLS: usize = u128::BITS as usize - 1;

/// Of two tests the first of which does not obviously cover the second: whether patterns may make it do so after all.
///
/// Only if the strings of the first, as far as intervals tell, reach from the first to the last of the second: what does
/// not reach as far is not found by the forest's index, which knows no more of patterns than that.
pub(crate) fn might_cover(f: &Test, g: &Test) -> bool {
    sets_with_patterns(f, g)
        .is_some_and(|(f, g)| f.covers_apart_from_strings(g) && reaches_as_far(f.strings(), g.strings()))
}

/// Of tests that [`might_cover`], whether the first does cover the second. Bounded: a no where that is not enough.
pub(crate) fn does_cover(f: &Test, g: &Test) -> bool {
    let Some((f, g)) = sets_with_patterns(f, g) else { return false };
    let (f, g) = (f.strings(), g.strings());
    !is_refuted(f, g) && matches!(find_string(&[g], &[f]), Found::Nothing)
}

/// Whether a string that is easily made up is in `g` and not in `f`. So it is of most sets that do not cover each other, and
/// it takes but a small part of what a search takes.
fn is_refuted(f: &StringSet, g: &StringSet) -> bool {
    let guesses = g.terms().iter().flat_map(|term| {
        let fitting = |run: usize| -> String { term.all_of().iter().flat_map(|it| filled_in(it, run)).collect() };
        [fitting(0), fitting(3)]
    });
    guesses.into_iter().any(|guess| g.contains(&guess) && !f.contains(&guess))
}

/// The symbols of a pattern with a character that hardly anybody names in place of each `_`, and so many in place of each `%`.
fn filled_in(pattern: &Pattern, run: usize) -> impl Iterator<Item = char> {
    pattern.symbols().into_iter().flat_map(move |symbol| match symbol {
        Symbol::Char(char) => std::iter::repeat_n(char, 1),
        Symbol::One => std::iter::repeat_n('\u{E000}', 1),
        Symbol::Many => std::iter::repeat_n('\u{E000}', run),
    })
}

/// Of two tests that are not obviously disjoint, whether patterns make them so all the same. Bounded: a no where that is not
/// enough.
pub(crate) fn are_disjoint(f: &Test, g: &Test) -> bool {
    let Some((f, g)) = sets_with_patterns(f, g) else { return false };
    if f.overlaps_apart_from_strings(g) {
        return false;
    }
    let (f, g) = (f.strings(), g.strings());
    !meet(f, g) && matches!(find_string(&[f, g], &[]), Found::Nothing)
}

/// Whether a string that is easily made up is in both. So it is of most sets that overlap.
fn meet(f: &StringSet, g: &StringSet) -> bool {
    let start = |set| intervals(set).map(|(start, _)| start).min().unwrap_or_default();
    let fitting = |set: &StringSet| -> String {
        set.terms().first().iter().flat_map(|term| term.all_of()).flat_map(|pattern| filled_in(pattern, 0)).collect()
    };
    let one_behind_the_other = |first, second| [start(first), &fitting(first), &fitting(second)].concat();
    [one_behind_the_other(f, g), one_behind_the_other(g, f)].iter().any(|guess| f.contains(guess) && g.contains(guess))
}

fn sets_with_patterns<'a>(f: &'a Test, g: &'a Test) -> Option<(&'a ValueSet, &'a ValueSet)> {
    match (f, g) {
        (Test::In(f), Test::In(g)) if f.has_patterns() || g.has_patterns() => Some((f, g)),
        (Test::In(_) | Test::Absent | Test::Present, _) => None,
    }
}

/// Whether no string of `g` is less than all of `f`, or greater, going by the intervals in which their terms lie. Of where they
/// begin it is what the index knows that counts: `s > ''` begins behind `s CONTAINS 'a'`, but not for the index, and covers it.
fn reaches_as_far(f: &StringSet, g: &StringSet) -> bool {
    let first = |set| intervals(set).map(|(start, _)| start).min().map(Code::of_string);
    let behind = |set| intervals(set).map(|(_, end)| (end.is_none(), end)).max();
    first(g).is_none_or(|g| first(f).is_some_and(|f| f <= g)) && behind(f) >= behind(g)
}

/// All intervals that a set names: first string, and the first one behind; without that, all that follow.
fn intervals(set: &StringSet) -> impl Iterator<Item = (&str, Option<&str>)> {
    set.intervals().chain(set.terms().iter().flat_map(|term| term.within()))
}

/// What a search found.
pub(crate) enum Found {
    /// There is no such string.
    Nothing,
    /// A shortest one.
    String(String),
    /// It would take too long to say.
    Undecided,
}

/// Looks for a string that is in all of some sets and in none of some others.
pub(crate) fn find_string(inside: &[&StringSet], outside: &[&StringSet]) -> Found {
    let Some(reader) = Reader::new(inside.iter().chain(outside)) else { return Found::Undecided };
    let is_found = |state: &State| {
        inside.iter().all(|set| reader.contains(set, state)) && !outside.iter().any(|set| reader.contains(set, state))
    };
    let mut visited = vec![Visited { state: reader.start(), last: None }];
    let mut known = HashSet::from([reader.start()]);
    let mut steps_left = MAX_STEPS;
    let mut next = 0;
    while let Some(visit) = visited.get(next) {
        if is_found(&visit.state) {
            return Found::String(spelled(&visited, next));
        }
        let Some(left) = steps_left.checked_sub(reader.alphabet.len() * visit.state.len()) else {
            return Found::Undecided;
        };
        steps_left = left;
        for &char in &reader.alphabet {
            let state = reader.step(&visited[next].state, char);
            if known.insert(state.clone()) {
                visited.push(Visited { state, last: Some((next, char)) });
            }
        }
        next += 1;
    }
    Found::Nothing
}

/// Where what was read stands: first one word for each bound, then one for each pattern.
type State = Box<[u128]>;

struct Visited {
    state: State,
    /// From which visited state it was reached, and by what character.
    last: Option<(usize, char)>,
}

fn spelled(visited: &[Visited], end: usize) -> String {
    let reversed: Vec<char> =
        std::iter::successors(visited[end].last, |&(from, _)| visited[from].last).map(|(_, char)| char).collect();
    reversed.into_iter().rev().collect()
}

/// Follows bounds and patterns along a string.
struct Reader<'a> {
    /// The index of each bound's word; not of the empty string, which every string reaches.
    bounds: BTreeMap<&'a str, usize>,
    /// The index of each pattern's word.
    patterns: BTreeMap<&'a Pattern, usize>,
    /// The bounds' characters, then nothing for the patterns.
    characters: Vec<Vec<char>>,
    places: Vec<Places>,
    alphabet: Vec<char>,
}

/// What was read is less than the bound, and stays so.
const LESS: u128 = u128::MAX;
/// What was read is greater than the bound, and stays so.
const GREATER: u128 = u128::MAX - 1;

/// The places of a pattern, as bits: place n has the first n symbols behind it.
struct Places {
    end: u128,
    /// Before any one character, and before any run.
    ones: u128,
    runs: u128,
    /// Before each character.
    before: BTreeMap<char, u128>,
}

impl<'a> Reader<'a> {
    /// `None` if a pattern is too long.
    fn new<'b>(sets: impl Iterator<Item = &'b &'a StringSet>) -> Option<Reader<'a>>
    where
        'a: 'b,
    {
        let (mut bounds, mut patterns) = (BTreeSet::new(), BTreeSet::new());
        for set in sets {
            let named = intervals(set).flat_map(|(start, end)| [Some(start), end]).flatten();
            bounds.extend(named.filter(|bound| !bound.is_empty()));
            patterns.extend(set.terms().iter().flat_map(|term| term.all_of().iter().chain(term.none_of())));
        }
        let characters: Vec<Vec<char>> = bounds.iter().map(|bound| bound.chars().collect()).collect();
        let places = patterns.iter().map(|pattern| Places::of(pattern)).collect::<Option<Vec<_>>>()?;
        let in_patterns = places.iter().flat_map(|places| places.before.keys()).copied().collect();
        let in_bounds = characters.iter().flatten().copied().collect();
        let first_pattern = bounds.len();
        Some(Reader {
            bounds: bounds.into_iter().zip(0..).collect(),
            patterns: patterns.into_iter().zip(first_pattern..).collect(),
            characters,
            places,
            alphabet: alphabet(&in_bounds, &in_patterns),
        })
    }

    fn start(&self) -> State {
        let patterns = self.places.iter().map(|places| places.closed(1));
        self.characters.iter().map(|_| 0).chain(patterns).collect()
    }

    fn step(&self, state: &State, char: char) -> State {
        let (bounds, patterns) = state.split_at(self.characters.len());
        let bounds = bounds.iter().zip(&self.characters).map(|(&read, bound)| match read {
            LESS | GREATER => read,
            _ => match bound.get(read as usize) {
                Some(next) if char < *next => LESS,
                Some(next) if char == *next => read + 1,
                // Greater than the bound's next character, or longer than the bound.
                Some(_) | None => GREATER,
            },
        });
        let patterns = patterns.iter().zip(&self.places).map(|(&at, places)| places.step(at, char));
        bounds.chain(patterns).collect()
    }

    /// Whether the string read so far, if it ends here, is in a set that the reader was made for.
    fn contains(&self, set: &StringSet, state: &State) -> bool {
        self.is_within(set.intervals(), state)
            || set.terms().iter().any(|term| {
                self.is_within(term.within(), state)
                    && term.all_of().iter().all(|pattern| self.fits(pattern, state))
                    && !term.none_of().iter().any(|pattern| self.fits(pattern, state))
            })
    }

    fn is_within<'b>(&self, mut intervals: impl Iterator<Item = (&'b str, Option<&'b str>)>, state: &State) -> bool {
        let reaches = |bound: &str| {
            let Some(&index) = self.bounds.get(bound) else { return true };
            match state[index] {
                LESS => false,
                GREATER => true,
                read => read as usize == self.characters[index].len(),
            }
        };
        intervals.any(|(start, end)| reaches(start) && !end.is_some_and(reaches))
    }

    fn fits(&self, pattern: &Pattern, state: &State) -> bool {
        let index = self.patterns[pattern];
        state[index] & self.places[index - self.characters.len()].end != 0
    }
}

impl Places {
    fn of(pattern: &Pattern) -> Option<Places> {
        let symbols = pattern.symbols();
        if symbols.len() > MAX_SYMBOLS {
            return None;
        }
        let mut places = Places { end: 1 << symbols.len(), ones: 0, runs: 0, before: BTreeMap::new() };
        for (index, symbol) in symbols.iter().enumerate() {
            match symbol {
                Symbol::Char(char) => *places.before.entry(*char).or_default() |= 1 << index,
                Symbol::One => places.ones |= 1 << index,
                Symbol::Many => places.runs |= 1 << index,
            }
        }
        Some(places)
    }

    fn step(&self, at: u128, char: char) -> u128 {
        let moving = self.ones | self.before.get(&char).copied().unwrap_or(0);
        self.closed((at & moving) << 1 | at & self.runs)
    }

    /// Adds the places behind runs that may be empty. What stands before the last run that was reached is left out: all
    /// that fits from there fits from the run as well.
    fn closed(&self, at: u128) -> u128 {
        let at = at | (at & self.runs) << 1;
        match (at & self.runs).checked_ilog2() {
            Some(last_run) => at & (u128::MAX << last_run),
            None => at,
        }
    }
}

/// The characters of bounds and of patterns, ascending, and of the others one before, between and behind those of bounds.
fn alphabet(in_bounds: &BTreeSet<char>, in_patterns: &BTreeSet<char>) -> Vec<char> {
    let mut alphabet: BTreeSet<char> = in_bounds | in_patterns;
    let mut start = Some(char::MIN);
    for end in in_bounds.iter().copied().map(Some).chain([None]) {
        let between = start.map(|start| start..=char::MAX).into_iter().flatten();
        let other = between.take_while(|char| Some(*char) != end).find(|char| !in_patterns.contains(char));
        alphabet.extend(other);
        start = end.and_then(|end| (end..=char::MAX).nth(1));
    }
    alphabet.into_iter().collect()
}

#[cfg(test)]
mod tests;
