//! An event's attributes as they stand in its bytes: for who reads many events and needs no `str`.

use super::{CLASS_BOOL, CLASS_FLOAT, CLASS_INT, CLASS_TIME, ENTRY, Entry};
use crate::Timestamp;

/// The attributes of an event, sorted by name; see [`Event::raw_attributes`](crate::Event::raw_attributes).
#[derive(Clone, Debug)]
pub struct RawAttributes<'a> {
    pub(super) table: std::slice::Iter<'a, [u8; ENTRY]>,
    /// The event's bytes from the next name on.
    pub(super) rest: &'a [u8],
}

/// A [`ValueRef`](crate::ValueRef) whose string is not known to the compiler to be one.
#[derive(Clone, Copy, Debug)]
pub enum RawValue<'a> {
    /// See [`Value::Bool`](crate::Value::Bool).
    Bool(bool),
    /// See [`Value::Int`](crate::Value::Int).
    Int(i64),
    /// See [`Value::Float`](crate::Value::Float).
    Float(f64),
    /// See [`Value::String`](crate::Value::String).
    String(RawText<'a>),
    /// See [`Value::Time`](crate::Value::Time).
    Time(Timestamp),
}

/// A name or a string, with whatever follows it in memory: so its first bytes can be read all at once.
#[derive(Clone, Copy, Debug)]
pub struct RawText<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> RawText<'a> {
    /// Its bytes, which are UTF-8.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.rest.get(..self.length).unwrap_or_default()
    }

    /// Its bytes as a string. Linear: they are checked once more.
    pub fn to_str(self) -> &'a str {
        super::utf8(self.as_bytes())
    }

    /// How many bytes it has.
    #[inline]
    pub fn length(self) -> usize {
        self.length
    }

    /// Its first 16 bytes as a little-endian number; bytes that it does not have are zero.
    #[inline]
    pub fn head(self) -> u128 {
        const BYTES: usize = size_of::<u128>();
        let Some(bytes) = self.rest.first_chunk::<BYTES>() else {
            let mut bytes = [0; BYTES];
            bytes.iter_mut().zip(self.as_bytes()).for_each(|(to, from)| *to = *from);
            return u128::from_le_bytes(bytes);
        };
        let bits = u128::from_le_bytes(*bytes);
        if self.length >= BYTES { bits } else { bits & ((1 << (8 * self.length)) - 1) }
    }
}

impl<'a> From<&'a str> for RawText<'a> {
    fn from(text: &'a str) -> RawText<'a> {
        RawText { rest: text.as_bytes(), length: text.len() }
    }
}

impl<'a> RawAttributes<'a> {
    /// The text of the next bytes.
    #[inline]
    fn take(&mut self, length: usize) -> RawText<'a> {
        let text = RawText { rest: self.rest, length };
        self.rest = self.rest.get(length..).unwrap_or_default();
        text
    }
}

impl<'a> Iterator for RawAttributes<'a> {
    type Item = (RawText<'a>, RawValue<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = Entry(self.table.next()?);
        let name = self.take(entry.name_length());
        let word = entry.word();
        let value = match entry.class() {
            CLASS_BOOL => RawValue::Bool(word != 0),
            CLASS_INT => RawValue::Int(word as i64),
            CLASS_FLOAT => RawValue::Float(f64::from_bits(word)),
            CLASS_TIME => RawValue::Time(Timestamp(word as i64)),
            // Checked when the event was made: nothing else is left.
            _ => RawValue::String(self.take(word as usize)),
        };
        Some((name, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.table.size_hint()
    }
}

impl ExactSizeIterator for RawAttributes<'_> {}
