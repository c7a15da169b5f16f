//! Patterns of strings: those of LIKE, SUFFIX and CONTAINS that are no interval.

use std::fmt;

/// Patterns whose lengths multiply to more than this are not compared, so that comparing stays cheap.
const MAX_COMPARED: usize = 1 << 14;

/// A pattern of strings, in canonical form: patterns written differently that mean the same are equal.
///
/// Never one that an interval says as well: a string without wildcards, any string at all, a prefix, or one that goes on
/// (`abc_%`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern(Shape);

/// What LIKE's text may turn out to be, once read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Like {
    Exactly(String),
    Prefix(String),
    /// What starts with this and goes on.
    LongerPrefix(String),
    Pattern(Pattern),
}

/// Why a text is no pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the escape character must be followed by %, _ or itself")]
pub struct PatternError {
    /// Where in the pattern's text the escape character stands, in bytes.
    pub at: usize,
}

/// The forms of a [`Pattern`], for engines that index them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternKind<'a> {
    /// Ends with this, which is not empty.
    Suffix(&'a str),
    /// Contains this, which is not empty.
    Contains(&'a str),
    /// Any other LIKE.
    Like(&'a [Symbol]),
}

/// An element of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symbol {
    /// This character.
    Char(char),
    /// Any one character, `_`.
    One,
    /// Any run of characters, `%`.
    Many,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Shape {
    Suffix(Box<str>),
    Contains(Box<str>),
    /// Within a run of wildcards the `One`s come first, and there is at most one `Many`.
    Like(Box<[Symbol]>),
}

impl Pattern {
    /// Reads LIKE's text: `%` is any run of characters, `_` any one, and `escape` takes the next `%`, `_` or `escape` literally.
    pub(crate) fn like(text: &str, escape: Option<char>) -> Result<Like, PatternError> {
        let mut symbols = Vec::with_capacity(text.len());
        let mut characters = text.char_indices();
        while let Some((at, character)) = characters.next() {
            symbols.push(match character {
                _ if Some(character) == escape => match characters.next() {
                    Some((_, next)) if matches!(next, '%' | '_') || Some(next) == escape => Symbol::Char(next),
                    _ => return Err(PatternError { at }),
                },
                '%' => Symbol::Many,
                '_' => Symbol::One,
                _ => Symbol::Char(character),
            });
        }
        Ok(Pattern::from_symbols(symbols))
    }

    /// Strings that end with `suffix`, as LIKE `'%suffix'` would say it.
    pub(crate) fn suffix(suffix: &str) -> Like {
        Pattern::from_symbols(std::iter::once(Symbol::Many).chain(suffix.chars().map(Symbol::Char)).collect())
    }

    /// Strings that contain `part`, as LIKE `'%part%'` would say it.
    pub(crate) fn contains(part: &str) -> Like {
        let around = std::iter::once(Symbol::Many);
        Pattern::from_symbols(around.clone().chain(part.chars().map(Symbol::Char)).chain(around).collect())
    }

    /// Brings symbols into canonical form.
    pub(crate) fn from_symbols(mut symbols: Vec<Symbol>) -> Like {
        for run in symbols.chunk_by_mut(|a, b| !matches!(a, Symbol::Char(_)) && !matches!(b, Symbol::Char(_))) {
            run.sort_unstable();
        }
        symbols.dedup_by(|a, b| *a == Symbol::Many && *b == Symbol::Many);

        let literal = |symbols: &[Symbol]| -> Option<String> {
            symbols.iter().map(|symbol| if let Symbol::Char(char) = symbol { Some(*char) } else { None }).collect()
        };
        if let Some(whole) = literal(&symbols) {
            return Like::Exactly(whole);
        }
        if let [start @ .., Symbol::Many] = &symbols[..]
            && let Some(prefix) = literal(start)
        {
            return Like::Prefix(prefix);
        }
        if let [start @ .., Symbol::One, Symbol::Many] = &symbols[..]
            && let Some(prefix) = literal(start)
        {
            return Like::LongerPrefix(prefix);
        }
        let shape = match &symbols[..] {
            [Symbol::Many, end @ ..] if let Some(suffix) = literal(end) => Shape::Suffix(suffix.into()),
            [Symbol::Many, part @ .., Symbol::Many] if let Some(part) = literal(part) => Shape::Contains(part.into()),
            _ => Shape::Like(symbols.into()),
        };
        Like::Pattern(Pattern(shape))
    }

    /// Which form it has.
    pub fn kind(&self) -> PatternKind<'_> {
        match &self.0 {
            Shape::Suffix(suffix) => PatternKind::Suffix(suffix),
            Shape::Contains(part) => PatternKind::Contains(part),
            Shape::Like(symbols) => PatternKind::Like(symbols),
        }
    }

    /// Its elements, in order.
    pub fn symbols(&self) -> Vec<Symbol> {
        let literal = |text: &str| text.chars().map(Symbol::Char).collect::<Vec<_>>();
        match &self.0 {
            Shape::Suffix(suffix) => [vec![Symbol::Many], literal(suffix)].concat(),
            Shape::Contains(part) => [vec![Symbol::Many], literal(part), vec![Symbol::Many]].concat(),
            Shape::Like(symbols) => symbols.to_vec(),
        }
    }

    /// Whether `text` fits. Takes at most as many steps as the lengths multiply to; linear for suffix and contains.
    pub fn matches(&self, text: &str) -> bool {
        match &self.0 {
            Shape::Suffix(suffix) => text.ends_with(&**suffix),
            Shape::Contains(part) => text.contains(&**part),
            Shape::Like(symbols) => fits(symbols, text.chars().map(Symbol::Char)),
        }
    }

    /// What every string that fits starts with; may be empty.
    pub fn literal_prefix(&self) -> String {
        match &self.0 {
            Shape::Suffix(_) | Shape::Contains(_) => String::new(),
            Shape::Like(symbols) => symbols
                .iter()
                .map_while(|symbol| if let Symbol::Char(char) = symbol { Some(*char) } else { None })
                .collect(),
        }
    }

    /// Whether every string that fits this pattern fits `other` too; `None` where that is not decided.
    ///
    /// A yes comes from fitting this pattern's symbols themselves into `other`, a no from a string that fits only this
    /// one: this pattern with each wildcard filled in by a character strange to `other`, the runs left empty or long.
    pub fn inclusion(&self, other: &Pattern) -> Option<bool> {
        match (&self.0, &other.0) {
            (Shape::Suffix(mine), Shape::Suffix(theirs)) => return Some(mine.ends_with(&**theirs)),
            (Shape::Suffix(mine) | Shape::Contains(mine), Shape::Contains(theirs)) => {
                return Some(mine.contains(&**theirs));
            }
            (Shape::Contains(_), Shape::Suffix(_)) => return Some(false),
            (Shape::Like(mine), Shape::Like(theirs)) if mine == theirs => return Some(true),
            (Shape::Like(_), _) | (_, Shape::Like(_)) => {}
        }
        let (mine, theirs) = (self.symbols(), other.symbols());
        let run = theirs.len() + 1;
        if mine.len() * theirs.len() > MAX_COMPARED {
            return None;
        }
        if fits(&theirs, mine.iter().copied()) {
            return Some(true);
        }
        let strange = ('\u{E000}'..).find(|char| !theirs.contains(&Symbol::Char(*char)))?;
        let filled_in = |run: usize| {
            mine.iter().flat_map(move |symbol| match symbol {
                Symbol::Char(_) => std::iter::repeat_n(*symbol, 1),
                Symbol::One => std::iter::repeat_n(Symbol::Char(strange), 1),
                Symbol::Many => std::iter::repeat_n(Symbol::Char(strange), run),
            })
        };
        let refuted = !fits(&theirs, filled_in(0)) || !fits(&theirs, filled_in(run));
        refuted.then_some(false)
    }

    /// Whether no string fits both; false also where that is not decided. Only two suffixes are ever told apart:
    /// prefixes are intervals, which the sets that hold patterns keep beside them.
    pub fn is_disjoint(&self, other: &Pattern) -> bool {
        match (&self.0, &other.0) {
            (Shape::Contains(_), _) | (_, Shape::Contains(_)) => return false,
            (Shape::Suffix(mine), Shape::Suffix(theirs)) => {
                return !mine.ends_with(&**theirs) && !theirs.ends_with(&**mine);
            }
            (Shape::Like(_), _) | (_, Shape::Like(_)) => {}
        }
        let (mine, theirs) = (self.symbols(), other.symbols());
        for (a, b) in mine.iter().rev().zip(theirs.iter().rev()) {
            match (a, b) {
                (Symbol::Many, _) | (_, Symbol::Many) => return false,
                (Symbol::Char(a), Symbol::Char(b)) if a != b => return true,
                (Symbol::Char(_) | Symbol::One, Symbol::Char(_) | Symbol::One) => {}
            }
        }
        // One is as long as the other's end; both without a run (they would have stopped the loop) fix the length.
        mine.len() != theirs.len() && !mine.contains(&Symbol::Many) && !theirs.contains(&Symbol::Many)
    }
}

/// Whether `text` fits a pattern; a text may itself hold wildcards, which fit only wildcards at least as wide.
///
/// Greedy: after a mismatch only the latest `Many` takes in one symbol more. An earlier one never needs to, as it
/// stopped at the first place from which the pattern up to the latest fits.
fn fits(pattern: &[Symbol], mut text: impl Iterator<Item = Symbol> + Clone) -> bool {
    let mut next = 0;
    // Where to go on after a mismatch: behind the latest `Many`, and the text that it does not take in yet.
    let mut retry = None;
    loop {
        if pattern.get(next) == Some(&Symbol::Many) {
            next += 1;
            if next == pattern.len() {
                return true;
            }
            retry = Some((next, text.clone()));
            continue;
        }
        let symbol = text.next();
        let fits = match (pattern.get(next), symbol) {
            (None, None) => return true,
            (Some(Symbol::Char(expected)), Some(Symbol::Char(found))) => *expected == found,
            (Some(Symbol::One), Some(Symbol::Char(_) | Symbol::One)) => true,
            (_, None) => return false,
            (_, Some(_)) => false,
        };
        if fits {
            next += 1;
            continue;
        }
        let Some((behind_many, rest)) = &mut retry else { return false };
        if rest.next().is_none() {
            return false;
        }
        next = *behind_many;
        text = rest.clone();
    }
}

/// As LIKE's text; a literal `%`, `_` or `\` is escaped by `\`.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for symbol in self.symbols() {
            match symbol {
                Symbol::Char(char @ ('%' | '_' | '\\')) => write!(f, "\\{char}")?,
                Symbol::Char(char) => write!(f, "{char}")?,
                Symbol::One => f.write_str("_")?,
                Symbol::Many => f.write_str("%")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
