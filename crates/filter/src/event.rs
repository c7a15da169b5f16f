//! Events: attributes and payload in one immutable run of bytes, which is also what travels.
//!
//! An event is encoded once, by its publisher. Every broker on its way checks the bytes once ([`Event::from_bytes`]), keeps
//! them as they came and reads them in place. One set of attributes and one payload have exactly one encoding.
//!
//! # Layout, version 1
//!
//! All integers are little-endian.
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | version: 1 |
//! | 1 | zero |
//! | 2 | number of attributes, n |
//! | 4 | length of the text, t |
//! | 4 | length of the payload, p |
//! | 12 n | the table: one entry for each attribute, strictly ascending by name |
//! | t | the text, UTF-8: for each attribute its name and, if the value is a string, the string |
//! | p | the payload |
//!
//! An entry of the table:
//!
//! | bytes | what |
//! | --- | --- |
//! | 2 | where in the text the name starts: exactly where the attribute before ends |
//! | 1 | length of the name, at least 1 |
//! | 1 | class of the value: 0 bool, 1 integer, 2 float, 3 string, 4 time |
//! | 8 | the value: 0 or 1; i64; bits of the f64; length of the string, which follows the name; i64 nanoseconds since the epoch |
//!
//! Entries have a fixed size, so that one attribute is found by binary search and all are read by a linear walk. Starts fit
//! two bytes since table and text together are at most 64 KiB.

use crate::{Limit, LimitExceeded, Limits, Timestamp, Value, ValueRef};
use bytes::Bytes;
use std::cmp::Ordering;
use std::fmt;

mod raw;
#[cfg(test)]
mod tests;

pub use raw::{RawAttributes, RawText, RawValue};

const VERSION: u8 = 1;
const HEADER: usize = 12;
const ENTRY: usize = 12;

const CLASS_BOOL: u8 = 0;
const CLASS_INT: u8 = 1;
const CLASS_FLOAT: u8 = 2;
const CLASS_STRING: u8 = 3;
const CLASS_TIME: u8 = 4;

/// What is published: an immutable, validated run of bytes. Cloning is cheap.
///
/// Equality is that of the bytes: same attributes, same values bit by bit, same payload.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Event {
    bytes: Bytes,
}

/// Collects attributes and payload; see [`Event::builder`].
#[derive(Clone, Debug, Default)]
pub struct EventBuilder {
    attributes: Vec<(String, Value)>,
    payload: Bytes,
}

/// Why attributes and payload, or bytes, are no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// An attribute was set twice.
    #[error("attribute {0:?} is set twice")]
    DuplicateAttribute(String),
    /// An attribute has the empty string as its name.
    #[error("an attribute has an empty name")]
    EmptyName,
    /// The event is larger than allowed.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// Bytes are not laid out as an event.
    #[error("malformed event: {0}")]
    Malformed(&'static str),
}

impl Event {
    /// Starts an event.
    pub fn builder() -> EventBuilder {
        EventBuilder::default()
    }

    /// Checks bytes that came from elsewhere against the layout and `limits`; keeps them without copying.
    ///
    /// # Errors
    /// [`EventError::Malformed`] and [`EventError::Limit`]. Linear in the table and the text, no allocation.
    pub fn from_bytes(bytes: Bytes, limits: &Limits) -> Result<Event, EventError> {
        check(&bytes, limits)?;
        Ok(Event { bytes })
    }

    /// The bytes that travel.
    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The same event in memory of its own: the bytes of one that was read may be a piece of a much larger read, which is kept
    /// as a whole while the event is.
    #[must_use]
    pub fn unshared(&self) -> Event {
        Event { bytes: Bytes::copy_from_slice(&self.bytes) }
    }

    /// The value of an attribute, if present. Logarithmic in the number of attributes.
    pub fn get(&self, name: &str) -> Option<ValueRef<'_>> {
        let (table, text) = self.parts();
        let (mut low, mut high) = (0, table.len());
        while low < high {
            let middle = (low + high) / 2;
            let entry = Entry(&table[middle]);
            match text.get(entry.name()).unwrap_or_default().cmp(name.as_bytes()) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => {
                    return Some(entry.value(|range| utf8(text.get(range).unwrap_or_default())));
                }
            }
        }
        None
    }

    /// All attributes, sorted by name (byte order).
    pub fn attributes(&self) -> Attributes<'_> {
        let (table, text) = self.parts();
        // The one UTF-8 check of the whole text costs less than one for every name and string.
        Attributes { table: table.iter(), text: utf8(text) }
    }

    /// All attributes, sorted by name, without a check that costs anything: for indexes.
    #[inline]
    pub fn raw_attributes(&self) -> RawAttributes<'_> {
        let table = self.parts().0;
        let rest = self.bytes.get(HEADER + table.len() * ENTRY..).unwrap_or_default();
        RawAttributes { table: table.iter(), rest }
    }

    /// How many attributes there are.
    pub fn attribute_count(&self) -> usize {
        self.parts().0.len()
    }

    /// The opaque payload; shares the event's memory.
    pub fn payload(&self) -> Bytes {
        let (table, text) = self.parts();
        self.bytes.slice(HEADER + table.len() * ENTRY + text.len()..)
    }

    /// An event with the same attributes and another payload: for whoever publishes much of which only that changes. Costs a
    /// copy.
    ///
    /// # Errors
    /// [`EventError::Limit`] if the payload is longer than allowed.
    pub fn with_payload(&self, payload: &[u8], limits: &Limits) -> Result<Event, EventError> {
        limits.check(Limit::Payload, payload.len())?;
        let (table, text) = self.parts();
        let header = Header { count: table.len(), text: text.len(), payload: payload.len() };
        let mut bytes = Vec::with_capacity(HEADER + table.len() * ENTRY + text.len() + payload.len());
        bytes.extend_from_slice(&header.to_bytes());
        bytes.extend_from_slice(table.as_flattened());
        bytes.extend_from_slice(text);
        bytes.extend_from_slice(payload);
        Ok(Event { bytes: bytes.into() })
    }

    /// A builder with this event's attributes and payload.
    pub fn to_builder(&self) -> EventBuilder {
        let attributes = self.attributes().map(|(name, value)| (name.to_owned(), value.to_value())).collect();
        EventBuilder { attributes, payload: self.payload() }
    }

    /// Table and text. The bytes were checked when the event was made, so none of the fallbacks is ever taken.
    #[inline]
    fn parts(&self) -> (&[[u8; ENTRY]], &[u8]) {
        let Some((header, rest)) = self.bytes.split_first_chunk::<HEADER>() else { return (&[], &[]) };
        let header = Header::read(header);
        let Some((table, rest)) = rest.split_at_checked(header.count * ENTRY) else { return (&[], &[]) };
        (table.as_chunks::<ENTRY>().0, rest.get(..header.text).unwrap_or_default())
    }

    /// Encodes attributes in any order; `attributes` is left sorted.
    pub(crate) fn encode(
        attributes: &mut [(&str, ValueRef<'_>)],
        payload: &[u8],
        limits: &Limits,
    ) -> Result<Event, EventError> {
        limits.check(Limit::Attributes, attributes.len())?;
        limits.check(Limit::Payload, payload.len())?;
        attributes.sort_unstable_by_key(|&(name, _)| name);
        let mut text = 0;
        for (name, value) in attributes.iter() {
            limits.check(Limit::AttributeName, name.len())?;
            if name.is_empty() {
                return Err(EventError::EmptyName);
            }
            text += name.len() + if let ValueRef::String(string) = value { string.len() } else { 0 };
        }
        limits.check(Limit::AttributeData, attributes.len() * ENTRY + text)?;
        if let Some(pair) = attributes.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(EventError::DuplicateAttribute(pair[0].0.to_owned()));
        }

        let mut bytes = Vec::with_capacity(HEADER + attributes.len() * ENTRY + text + payload.len());
        bytes.extend_from_slice(&Header { count: attributes.len(), text, payload: payload.len() }.to_bytes());
        let mut start = 0;
        for (name, value) in attributes.iter() {
            bytes.extend_from_slice(&entry(start, name, value));
            start += name.len() + if let ValueRef::String(string) = value { string.len() } else { 0 };
        }
        for (name, value) in attributes.iter() {
            bytes.extend_from_slice(name.as_bytes());
            if let ValueRef::String(string) = value {
                bytes.extend_from_slice(string.as_bytes());
            }
        }
        bytes.extend_from_slice(payload);
        Ok(Event { bytes: bytes.into() })
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        map.entries(self.attributes());
        let payload = self.payload().len();
        if payload > 0 {
            map.entry(&"payload bytes", &payload);
        }
        map.finish()
    }
}

impl EventBuilder {
    /// Sets an attribute; a second value for one name is an error of [`EventBuilder::build`].
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.attributes.push((name.into(), value.into()));
        self
    }

    /// Sets the payload.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Encodes the event within the default limits.
    ///
    /// # Errors
    /// [`EventError::DuplicateAttribute`], [`EventError::EmptyName`], [`EventError::Limit`].
    pub fn build(self) -> Result<Event, EventError> {
        self.build_with(&Limits::default())
    }

    /// Encodes the event within the given limits.
    ///
    /// # Errors
    /// As [`EventBuilder::build`].
    pub fn build_with(self, limits: &Limits) -> Result<Event, EventError> {
        let mut attributes: Vec<_> =
            self.attributes.iter().map(|(name, value)| (name.as_str(), value.as_ref())).collect();
        Event::encode(&mut attributes, &self.payload, limits)
    }
}

/// The attributes of an event, sorted by name; see [`Event::attributes`].
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    table: std::slice::Iter<'a, [u8; ENTRY]>,
    text: &'a str,
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a str, ValueRef<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = Entry(self.table.next()?);
        let text = self.text;
        let name = text.get(entry.name()).unwrap_or_default();
        Some((name, entry.value(|range| text.get(range).unwrap_or_default())))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.table.size_hint()
    }
}

impl ExactSizeIterator for Attributes<'_> {}

/// The lengths at the front of the bytes.
struct Header {
    count: usize,
    text: usize,
    payload: usize,
}

impl Header {
    fn read(bytes: &[u8; HEADER]) -> Header {
        let [_, _, c0, c1, t0, t1, t2, t3, p0, p1, p2, p3] = *bytes;
        Header {
            count: u16::from_le_bytes([c0, c1]) as usize,
            text: u32::from_le_bytes([t0, t1, t2, t3]) as usize,
            payload: u32::from_le_bytes([p0, p1, p2, p3]) as usize,
        }
    }

    /// The limits keep all three well inside their widths.
    fn to_bytes(&self) -> [u8; HEADER] {
        let [c0, c1] = (self.count as u16).to_le_bytes();
        let [t0, t1, t2, t3] = (self.text as u32).to_le_bytes();
        let [p0, p1, p2, p3] = (self.payload as u32).to_le_bytes();
        [VERSION, 0, c0, c1, t0, t1, t2, t3, p0, p1, p2, p3]
    }
}

/// One entry of the table.
struct Entry<'a>(&'a [u8; ENTRY]);

impl Entry<'_> {
    fn name(&self) -> std::ops::Range<usize> {
        let start = u16::from_le_bytes([self.0[0], self.0[1]]) as usize;
        start..start + self.name_length()
    }

    #[inline]
    fn name_length(&self) -> usize {
        self.0[2] as usize
    }

    #[inline]
    fn class(&self) -> u8 {
        self.0[3]
    }

    #[inline]
    fn word(&self) -> u64 {
        let [.., a, b, c, d, e, f, g, h] = *self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// `string` reads a range of the text.
    #[inline]
    fn value<'t>(&self, string: impl FnOnce(std::ops::Range<usize>) -> &'t str) -> ValueRef<'t> {
        let word = self.word();
        match self.class() {
            CLASS_BOOL => ValueRef::Bool(word != 0),
            CLASS_INT => ValueRef::Int(word as i64),
            CLASS_FLOAT => ValueRef::Float(f64::from_bits(word)),
            CLASS_TIME => ValueRef::Time(Timestamp(word as i64)),
            // Checked when the event was made: nothing else is left.
            _ => {
                let start = self.name().end;
                ValueRef::String(string(start..start.saturating_add(word as usize)))
            }
        }
    }
}

/// The limits keep start and length well inside their widths.
fn entry(start: usize, name: &str, value: &ValueRef<'_>) -> [u8; ENTRY] {
    let (class, word) = match *value {
        ValueRef::Bool(value) => (CLASS_BOOL, value as u64),
        ValueRef::Int(value) => (CLASS_INT, value as u64),
        ValueRef::Float(value) => (CLASS_FLOAT, value.to_bits()),
        ValueRef::String(value) => (CLASS_STRING, value.len() as u64),
        ValueRef::Time(value) => (CLASS_TIME, value.0 as u64),
    };
    let [s0, s1] = (start as u16).to_le_bytes();
    let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
    [s0, s1, name.len() as u8, class, a, b, c, d, e, f, g, h]
}

/// Whether bytes are an event, as the module's page says.
fn check(bytes: &[u8], limits: &Limits) -> Result<(), EventError> {
    let malformed = |what| Err(EventError::Malformed(what));
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else { return malformed("header cut short") };
    if header[0] != VERSION {
        return malformed("unknown version");
    }
    if header[1] != 0 {
        return malformed("reserved byte is not zero");
    }
    let Header { count, text, payload } = Header::read(header);
    limits.check(Limit::Attributes, count)?;
    limits.check(Limit::AttributeData, (count * ENTRY).saturating_add(text))?;
    limits.check(Limit::Payload, payload)?;
    if rest.len() != count * ENTRY + text + payload {
        return malformed("lengths do not add up");
    }
    let (table, rest) = rest.split_at(count * ENTRY);
    check_table(table, text, rest, limits)
}

/// Whether attributes are as the module's page says; `text` is how many of the bytes behind their table are theirs.
fn check_table(table: &[u8], text: usize, rest: &[u8], limits: &Limits) -> Result<(), EventError> {
    let malformed = |what| Err(EventError::Malformed(what));
    let text = &rest[..text];
    let is_ascii = text.is_ascii();
    if !is_ascii && std::str::from_utf8(text).is_err() {
        return malformed("text is not UTF-8");
    }
    let is_boundary = |end: usize| match text.get(end) {
        // No byte but those that continue a character looks like this.
        Some(byte) => is_ascii || byte & 0xC0 != 0x80,
        None => end == text.len(),
    };
    let mut end = 0;
    let (mut before, mut head_before): (&[u8], u64) = (&[], 0);
    for entry in table.as_chunks::<ENTRY>().0 {
        let entry = Entry(entry);
        let name = entry.name();
        limits.check(Limit::AttributeName, name.len())?;
        if name.start != end {
            return malformed("a name does not start where the attribute before ends");
        }
        end = name.end;
        if !is_boundary(end) {
            return malformed("a name reaches beyond the text or cuts a character");
        }
        // The first name is compared with "", which also keeps the empty name out. Mostly the heads tell already.
        let (name, head) = (&text[name.clone()], head(&rest[name.start..], name.len()));
        if head <= head_before && name <= before {
            return malformed("names are empty, unsorted or repeated");
        }
        (before, head_before) = (name, head);
        match (entry.class(), entry.word()) {
            (CLASS_BOOL, 0 | 1) | (CLASS_INT | CLASS_FLOAT | CLASS_TIME, _) => {}
            (CLASS_STRING, length) if length <= text.len() as u64 => {
                end += length as usize;
                if !is_boundary(end) {
                    return malformed("a string reaches beyond the text or cuts a character");
                }
            }
            (CLASS_BOOL, _) => return malformed("a bool is neither 0 nor 1"),
            (CLASS_STRING, _) => return malformed("a string reaches beyond the text"),
            (_, _) => return malformed("unknown class of value"),
        }
    }
    if end != text.len() { malformed("text that belongs to no attribute") } else { Ok(()) }
}

/// The first eight bytes of a name as a number in the order of names, zero where it has fewer; `from` may go on behind it.
#[inline]
fn head(from: &[u8], length: usize) -> u64 {
    const BYTES: usize = size_of::<u64>();
    let Some(bytes) = from.first_chunk::<BYTES>() else {
        let mut bytes = [0; BYTES];
        bytes.iter_mut().zip(&from[..length.min(from.len())]).for_each(|(to, from)| *to = *from);
        return u64::from_be_bytes(bytes);
    };
    let bits = u64::from_be_bytes(*bytes);
    if length >= BYTES { bits } else { bits & !(u64::MAX >> (8 * length)) }
}

/// Bytes that are known to be UTF-8.
fn utf8(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
