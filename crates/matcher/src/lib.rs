//! The Enindex and the scan it is tested against: events to matching subscriptions, or to the owners interested.
//!
//! A subscription is a [`Filter`](enroute_filter::Filter) with an id and an owner; at a broker the owners are its clients,
//! or the other brokers. Both engines answer the same two questions through the same methods, `matches` (which
//! subscriptions does this event match?) and `interested` (whose?):
//!
//! - [`Enindex`] is what brokers use: the index of Cui, Wu, Zhou et al. (Knowledge-Based Systems 110, 2016) with its key sharpened
//!   from an attribute to a predicate, laid out for the processor. How it works is told in `engine/mod.rs`.
//! - [`NaiveScan`] tests one filter after the other. It is the truth.
//!
//! The index as the paper has it, and the other systems of the literature, are in `enroute-baselines`.
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

mod engine;
mod naive;
mod scratch;

pub use engine::Enindex;
pub use naive::NaiveScan;
pub use scratch::Scratch;

/// Names a subscription; an engine holds each id once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct SubscriptionId(pub u64);

/// Whose a subscription is: what [`Enindex::interested`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u64);
