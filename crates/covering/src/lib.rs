//! Covering and overlapping of filters, and the covering forest.
//!
//! **f covers g** if every event that matches g matches f: whoever gets all that f asks for needs not hear of g. **f and g
//! overlap** if some event could match both: whoever publishes only what matches f need not tell those who ask for g
//! unless they overlap. [`covers`] and [`overlaps`] decide it for conjunctions, [`filter_covers`] and [`filter_overlaps`] for
//! filters, [`relation`] says all there is to say of two filters.
//!
//! A wrong yes of `covers` loses events, a wrong no costs traffic; for `overlaps` it is the other way round. So where
//! something is not decided, `covers` says no and `overlaps` says yes.
//!
//! # What is decided
//!
//! - **Conjunctions without patterns** (all constraints are intervals or sets of values, `IS NULL` or `IS NOT NULL`): both
//!   questions, exactly. f covers g if on each attribute that f speaks of, g allows no more than f does; they overlap if no
//!   attribute that both speak of keeps them apart.
//! - **Filters without patterns**: both questions, exactly, also where only several conjunctions of f together cover one of
//!   g (`a < 5 AND b = 1 OR a >= 5` covers `b = 1 AND a > 0`). The search for what f leaves of g is bounded, though: filters of
//!   very many conjunctions over the same attributes may be left undecided.
//! - **Patterns** (`SUFFIX`, `CONTAINS`, general `LIKE`; not `PREFIX`, which is an interval), also negated, several on one
//!   attribute, together with intervals and values, and several conjunctions of f that cover g together: as sets of strings,
//!   exactly, as long as a bounded search suffices. It does not for patterns of more than 127 characters, for many `_`
//!   behind a `%` (`%a____________`: whether it fits depends on where each `a` stood), and for many patterns, or patterns and
//!   many values, at once on one attribute. What those leave undecided is compared pattern by pattern. Apart from size, [`covers`] of conjunctions says
//!   no in two cases where it might say yes: if patterns of g contradict each other in a way that only the search finds out,
//!   and if the intervals among which patterns of g are kept reach beyond f though no string that fits does (`s IN ('a',
//!   'b', 'c')` and `s LIKE '_' AND s BETWEEN 'a' AND 'cz'`). Whether a no to `covers`, or a yes to `overlaps`, is certain,
//!   [`relation`] finds out by looking for an event that shows it.
//!
//! `covers` is reflexive, and as far as all is decided transitive.
//!
//! # The forest
//!
//! The [`Forest`] keeps the conjunctions of many owners ordered by covering, and says with each change which ones became
//! roots and which stopped being any: the roots are all that other brokers need to know.
//!
//! What a change costs depends little on how many conjunctions there are. Roots are looked up by what they say of their
//! attributes: for each there is a forest of predicates, again ordered by covering, which is a sorted list (see
//! [`Forest::predicates`] for its size and depth). A look-up ends in a few hundred candidates at most where one of the
//! constraints is selective: single values, intervals, prefixes, `<>`. What it does not narrow down are wide intervals that
//! all overlap and larger sets of scattered values; and patterns, of which those that name other characters are passed
//! over. Those are looked at one by one, if nothing else that their conjunctions ask for tells them apart. So are conjunctions
//! of more than 256 constraints, whatever they ask for.
//!
//! # Merging
//!
//! [`Merging`] makes fewer of the roots: without changing what matches, or, within a budget, by announcing somewhat more than
//! is wanted.

mod directory;
#[cfg(test)]
mod domain;
mod forest;
mod index;
mod merge;
mod nodes;
mod pattern;
mod predicate_forest;
mod relation;
mod remainder;
mod span;
mod summary;

pub use forest::{Forest, RootChange, RootDifference};
pub use merge::{Budget, Merging, MergingConfig};
pub use relation::{Kind, Relation, covers, filter_covers, filter_overlaps, overlaps, relation};
pub use summary::{PredicateShape, PredicateSummary};
