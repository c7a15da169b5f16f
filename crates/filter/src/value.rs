//! Values of attributes, and their classes.

use crate::Timestamp;

/// An owned value of an attribute. Integers and floats are one class, compared by mathematical value.
///
/// `==` is the equality of Rust values, kind by kind (`Int(1)` is not `Float(1.0)`); what a filter sees is [`Number`](crate::Number)'s.
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

/// What values can be compared with each other: only those of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// True and false.
    Bool,
    /// Integers and floats.
    Number,
    /// Strings.
    String,
    /// Moments.
    Time,
}

impl Value {
    /// The value, borrowed.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Bool(bool) => ValueRef::Bool(*bool),
            Value::Int(int) => ValueRef::Int(*int),
            Value::Float(float) => ValueRef::Float(*float),
            Value::String(string) => ValueRef::String(string),
            Value::Time(time) => ValueRef::Time(*time),
        }
    }

    /// Its class.
    pub fn class(&self) -> Class {
        self.as_ref().class()
    }
}

impl ValueRef<'_> {
    /// The value, owned.
    pub fn to_value(self) -> Value {
        match self {
            ValueRef::Bool(bool) => Value::Bool(bool),
            ValueRef::Int(int) => Value::Int(int),
            ValueRef::Float(float) => Value::Float(float),
            ValueRef::String(string) => Value::String(string.to_owned()),
            ValueRef::Time(time) => Value::Time(time),
        }
    }

    /// Its class.
    pub fn class(self) -> Class {
        match self {
            ValueRef::Bool(_) => Class::Bool,
            ValueRef::Int(_) | ValueRef::Float(_) => Class::Number,
            ValueRef::String(_) => Class::String,
            ValueRef::Time(_) => Class::Time,
        }
    }
}

macro_rules! from {
    ($($type:ty, $class:ident);*) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Value {
                Value::$class(value.into())
            }
        }
        impl From<$type> for ValueRef<'_> {
            fn from(value: $type) -> Self {
                ValueRef::$class(value.into())
            }
        }
    )*};
}

from!(bool, Bool; i64, Int; i32, Int; u32, Int; f64, Float; Timestamp, Time);

impl From<&str> for Value {
    fn from(string: &str) -> Value {
        Value::String(string.to_owned())
    }
}

impl From<String> for Value {
    fn from(string: String) -> Value {
        Value::String(string)
    }
}

impl<'a> From<&'a str> for ValueRef<'a> {
    fn from(string: &'a str) -> ValueRef<'a> {
        ValueRef::String(string)
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> ValueRef<'a> {
        value.as_ref()
    }
}
