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
//! - **Patterns** (`SUFFIX`, `CONTAINS`, general `LIKE`; not `PREFIX`, which is an interval): as far as they can be compared
//!   constraint by constraint. Several pattern constraints that cover another one only together are not found out, nor
//!   are all that exclude each other. Whether a no to `covers`, or a yes to `overlaps`, is certain, [`relation`] finds out by
//!   looking for an event that shows it.
//!
//! # The forest
//!
//! The [`Forest`] keeps the conjunctions of many owners ordered by covering, and says with each change which ones became
//! roots and which stopped being any: the roots are all that other brokers need to know.

#[cfg(test)]
mod domain;
mod forest;
mod index;
mod relation;
mod remainder;
mod span;

pub use forest::{Forest, RootChange, RootDifference};
pub use relation::{Kind, Relation, covers, filter_covers, filter_overlaps, overlaps, relation};
