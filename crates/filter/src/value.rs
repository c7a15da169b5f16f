//! Values of attributes, and their classes.

/// A moment: nanoseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// An owned value of an attribute. Integers and floats are one class, compared by mathematical value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Only equal or not equal.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A number; NaN equals nothing, satisfies nothing, and comes in only through the API.
    Float(f64),
    /// Ordered by code points.
    String(String),
    /// A moment in UTC.
    Time(Timestamp),
}

/// A borrowed [`Value`], as an [`Event`](crate::Event) hands it out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// See [`Value::Bool`].
    Bool(bool),
    /// See [`Value::Int`].
    Int(i64),
    /// See [`Value::Float`].
    Float(f64),
    /// See [`Value::String`].
    String(&'a str),
    /// See [`Value::Time`].
    Time(Timestamp),
}
