//! `covers` and `overlaps`, of conjunctions and of filters. What is decided stands in the page of the crate.

use crate::pattern;
use crate::remainder::{Piece, Remainder, Subtraction};
use enroute_filter::{Conjunction, Filter, Test};
use serde::{Deserialize, Serialize};

/// How two filters stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Relation {
    /// The first of these that is known to hold.
    #[serde(rename = "relation")]
    pub kind: Kind,
    /// Whether more is known not to hold. Without it, [`Kind::Covers`] might be [`Kind::Equal`] in truth, likewise
    /// [`Kind::Covered`], and [`Kind::Overlaps`] anything.
    pub exact: bool,
}

/// See [`Relation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Both match the same events.
    Equal,
    /// The first matches all that the second does.
    Covers,
    /// The second matches all that the first does.
    Covered,
    /// Some event matches both, or nobody knows better.
    Overlaps,
    /// No event matches both.
    Disjoint,
}

/// What is known of a question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    Undecided,
}

/// Whether every event that matches `g` matches `f`. A yes is always right; a no mostly, see the page of the crate.
///
/// Linear in the size of both where patterns do not matter, bounded in any case.
pub fn covers(f: &Conjunction, g: &Conjunction) -> bool {
    let mut is_obvious = true;
    let might_cover = all_cover(f, g, |f, g| {
        f.covers(g) || {
            is_obvious = false;
            pattern::might_cover(f, g)
        }
    });
    might_cover && (is_obvious || all_cover(f, g, |f, g| f.covers(g) || pattern::does_cover(f, g)))
}

/// Whether `covers` holds between each test of `f` and the one that `g` has on the same attribute.
fn all_cover(f: &Conjunction, g: &Conjunction, mut covers: impl FnMut(&Test, &Test) -> bool) -> bool {
    let mut of_g = g.constraints().iter();
    f.constraints().len() <= g.constraints().len()
        && f.constraints().iter().all(|f| {
            let g = of_g.find(|g| g.attribute() >= f.attribute());
            g.is_some_and(|g| g.attribute() == f.attribute() && covers(f.test(), g.test()))
        })
}

/// Whether some event matches both. A no is always right; a yes mostly, see the page of the crate.
///
/// Linear in the size of both where patterns do not matter, bounded in any case.
pub fn overlaps(f: &Conjunction, g: &Conjunction) -> bool {
    f.overlaps(g)
        && !f.constraints().iter().any(|constraint| {
            let of_g = g.test(constraint.attribute());
            of_g.is_some_and(|of_g| pattern::are_disjoint(constraint.test(), of_g))
        })
}

/// Whether every event that matches `g` matches `f`. A yes is always right; a no where nothing has patterns, and the filters
/// are not so large and so much entangled that the bounded search ends.
///
/// Mostly the conjunctions of one times those of the other, bounded in any case.
pub fn filter_covers(f: &Filter, g: &Filter) -> bool {
    whether_covers(f, g) == Answer::Yes
}

/// Whether some event matches both. A no is always right; a yes mostly, see the page of the crate.
///
/// The conjunctions of one times those of the other.
pub fn filter_overlaps(f: &Filter, g: &Filter) -> bool {
    whether_overlaps(f, g) != Answer::No
}

/// How `f` stands to `g`: `Covers` is "f covers g", `Covered` is "g covers f".
///
/// ```
/// use enroute_covering::{Kind, relation};
/// use enroute_filter::{Comparison, Conjunction, Constraint, Filter};
///
/// let at_least = |least: i64| {
///     let constraint = Constraint::compare("dep_delay", Comparison::Ge, least);
///     Filter::from(Conjunction::new([constraint]).expect("satisfiable"))
/// };
/// assert_eq!(relation(&at_least(30), &at_least(60)).kind, Kind::Covers);
/// ```
pub fn relation(f: &Filter, g: &Filter) -> Relation {
    let (covers, covered) = (whether_covers(f, g), whether_covers(g, f));
    let exactly = |kind| Relation { kind, exact: true };
    match (covers, covered) {
        (Answer::Yes, Answer::Yes) => exactly(Kind::Equal),
        (Answer::Yes, _) => Relation { kind: Kind::Covers, exact: covered == Answer::No },
        (_, Answer::Yes) => Relation { kind: Kind::Covered, exact: covers == Answer::No },
        (Answer::No | Answer::Undecided, Answer::No | Answer::Undecided) => match whether_overlaps(f, g) {
            Answer::No => exactly(Kind::Disjoint),
            Answer::Yes => Relation { kind: Kind::Overlaps, exact: covers == Answer::No && covered == Answer::No },
            Answer::Undecided => Relation { kind: Kind::Overlaps, exact: false },
        },
    }
}

fn whether_covers(f: &Filter, g: &Filter) -> Answer {
    let mut subtraction = Subtraction::new();
    let mut answer = Answer::Yes;
    for conjunction in g.conjunctions() {
        if f.conjunctions().iter().any(|single| covers(single, conjunction)) {
            continue;
        }
        match subtraction.remainder(conjunction, f.conjunctions()) {
            Remainder::Nothing => {}
            Remainder::Unknown => answer = Answer::Undecided,
            Remainder::Something(piece) => {
                let certain = !has_patterns(f) && !conjunction.has_patterns();
                let shown = || piece.example().is_some_and(|event| conjunction.matches(&event) && !f.matches(&event));
                if certain || shown() {
                    return Answer::No;
                }
                answer = Answer::Undecided;
            }
        }
    }
    answer
}

fn whether_overlaps(f: &Filter, g: &Filter) -> Answer {
    let mut answer = Answer::No;
    for (f, g) in pairs(f, g).filter(|(f, g)| overlaps(f, g)) {
        if !f.has_patterns() && !g.has_patterns() {
            return Answer::Yes;
        }
        let Some(both) = f.and(g).map(|both| Piece::of(&both)).filter(|both| !both.is_empty()) else { continue };
        if both.example().is_some_and(|event| f.matches(&event) && g.matches(&event)) {
            return Answer::Yes;
        }
        answer = Answer::Undecided;
    }
    answer
}

fn has_patterns(filter: &Filter) -> bool {
    filter.conjunctions().iter().any(Conjunction::has_patterns)
}

fn pairs<'a>(f: &'a Filter, g: &'a Filter) -> impl Iterator<Item = (&'a Conjunction, &'a Conjunction)> {
    f.conjunctions().iter().flat_map(|f| g.conjunctions().iter().map(move |g| (f, g)))
}

#[cfg(test)]
mod tests;
