//! Values, events, constraints and the filter language of Enroute.
//!
//! A [`Filter`] is what a subscription asks for: a disjunction of [`Conjunction`]s, each a set of [`Constraint`]s, at most
//! one for an attribute. An [`Event`] is what is published: named, single-valued attributes and an opaque payload.
//! [`Filter::matches`] is the one simple truth that every engine, index and broker is tested against.

mod codec;
mod conjunction;
mod constraint;
mod event;
mod filter;
mod json;
mod language;
mod limits;
mod number;
mod pattern;
#[cfg(test)]
mod samples;
mod serialize;
mod set;
mod timestamp;
mod value;

pub use codec::DecodeError;
pub use conjunction::Conjunction;
pub use constraint::{Constraint, Test};
pub use event::{Attributes, Event, EventBuilder, EventError, RawAttributes, RawText, RawValue};
pub use filter::Filter;
pub use json::{JsonError, JsonReader};
pub use language::{Explanation, Expression, Operator, ParseError, ParseErrorKind, Warning, WarningKind};
pub use limits::{Limit, LimitExceeded, Limits};
pub use number::Number;
pub use pattern::{Pattern, PatternError, PatternKind, Symbol};
pub use set::{BoolSet, Comparison, NumberSet, StringSet, StringTerm, TimeSet, ValueSet};
pub use timestamp::{Timestamp, TimestampError};
pub use value::{Class, Value, ValueRef};
