//! Values, events, constraints and the filter language of Enroute.
//!
//! A [`Filter`] is what a subscription asks for: a disjunction of [`Conjunction`]s, each a set of [`Constraint`]s, at most
//! one for an attribute. An [`Event`] is what is published: named, single-valued attributes and an opaque payload.
//! [`Filter::matches`] is the one simple truth that every engine, index and broker is tested against.

mod event;
mod filter;
mod limits;
mod value;

pub use event::{Attributes, Event, EventBuilder, EventError};
pub use filter::{Conjunction, Constraint, DecodeError, Filter, Test};
pub use limits::{Limit, LimitExceeded, Limits};
pub use value::{Timestamp, Value, ValueRef};
