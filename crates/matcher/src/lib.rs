//! The Enindex and its reference engines: events to matching subscriptions, or to the owners interested.
//!
//! A subscription is a [`Filter`](enroute_filter::Filter) with an id and an owner; at a broker the owners are its clients,
//! or the other brokers. The engines answer the same two questions through the same methods, `matches` (which
//! subscriptions does this event match?) and `interested` (whose?):
//!
//! - [`NaiveScan`] tests one filter after the other. It is the truth.
//! - [`Counting`] finds all true predicates, and counts per conjunction.
//! - [`Enindex`] is the index of the paper.
//! - [`Engine`] is what brokers use: the Enindex with sharper keys, in codes and columns.
//!
//! All matching is through `&self`; what it writes is in a [`Scratch`], one for each thread, which any engine takes.
//!
//! ```
//! use enroute_filter::{Comparison, Conjunction, Constraint, Event, Filter};
//! use enroute_matcher::{Enindex, Owner, Scratch, SubscriptionId};
//!
//! let mut index = Enindex::new();
//! let late = Conjunction::new([Constraint::compare("dep_delay", Comparison::Ge, 60)]).unwrap();
//! index.insert(SubscriptionId(1), Owner(7), &Filter::from(late));
//!
//! let event = Event::builder().attribute("dep_delay", 75).build().unwrap();
//! let (mut scratch, mut ids) = (Scratch::default(), Vec::new());
//! index.matches(&event, &mut scratch, &mut ids);
//! assert_eq!(ids, [SubscriptionId(1)]);
//! ```
//!
//! # The Enindex
//!
//! After Cui, Wu, Zhou et al., Knowledge-Based Systems 110 (2016), 110-120. Four structures:
//!
//! - **Predicate lists.** A conjunction's constraints are split into predicates (attribute, operator, operand): `E between 2
//!   and 9` into `E >= 2` and `E <= 9`. Each distinct predicate is stored once, sorted by attribute, operator and operand.
//! - **Entries.** What the paper calls a subscription: pointers to predicates, and their count. A filter that is a
//!   conjunction is one entry. A disjunction is one entry if it is a product of small disjunctions: the pointers of such a
//!   disjunction share a *colour*, which adds one to the count and is taken off it once. Any other disjunction is an entry
//!   for each conjunction, and the subscription is reported once.
//! - **Key attributes and subscription lists.** Each entry is in the list L(a) of one of its attributes, a *key* that every
//!   event it matches must contain. If all such events contain one of several attributes, but none contains always the
//!   same, it is in the list of each. If events may match without any attribute (TRUE, `a IS NULL`), it is in a short list
//!   that every event is tested against.
//! - **Counts.** An event visits the lists of its own attributes. It takes one off an entry's count for each plain pointer
//!   to a true predicate and for each colour that has one; nothing left is a match. The count taken down is a copy, so
//!   that there is nothing to restore, and an entry is given up at the first plain pointer to a false predicate.
//!
//! Each predicate's truth is found at most once for an event, when first asked for.
//!
//! An event costs about |A| + |L|: the key attributes, and the mean length of a list. [`Enindex::build`] takes few keys, as
//! the paper's algorithm 1 does; inserting and removing keep both numbers near the root of the number of entries. A new
//! entry opens a list while |A|² < |S|, under the attribute most entries have; else it goes to the shortest list that may
//! hold it. While |A|² > 4 |S|, each update moves a few entries out of the shortest list; from lists with |L|² > 4 |S|, a
//! few to ones at most half as long. There is no rebuild.
//!
//! # From constraints to predicates
//!
//! | the constraint allows | becomes |
//! | --- | --- |
//! | absence, presence | a predicate of its own kind |
//! | one point | `=` |
//! | a class but one point | `<>` |
//! | one interval of numbers or times | `>=` and `<=`, or one of them if the other is always true |
//! | strings of one prefix | a prefix |
//! | one interval of strings | `>=` and `<`, or one of them |
//! | up to eight points of any classes | a colour with an `=` for each |
//! | anything else: more points, several intervals, patterns | one predicate that tests the whole set |
//!
//! Inside a colour that spans attributes, a constraint that takes two predicates becomes one that tests the whole set.

mod counting;
mod engine;
mod enindex;
mod naive;
mod predicate;
mod predicates;
mod scratch;
mod slab;
mod split;

pub use counting::Counting;
pub use engine::Engine;
pub use enindex::Enindex;
pub use naive::NaiveScan;
pub use scratch::Scratch;

/// Names a subscription; an engine holds each id once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId(pub u64);

/// Whose a subscription is: what [`Enindex::interested`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u64);
