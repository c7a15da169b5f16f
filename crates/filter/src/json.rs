//! Events from JSON and to JSON.
//!
//! In: the scalar leaves of one object become attributes, nested objects flatten to dotted names, null is absence, arrays
//! are no attributes. JSON has no times; the reader is told which attributes are some. Out: one flat object.

use crate::{Event, EventError, Limit, LimitExceeded, Limits, Timestamp, TimestampError, ValueRef};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Reads events from JSON.
///
/// ```
/// # use enroute_filter::{JsonReader, ValueRef};
/// let reader = JsonReader { times: vec!["at".to_owned()], ..JsonReader::default() };
/// let (event, arrays) = reader.read(r#"{"at":"2013-01-01T06:00:00Z","wind":{"gust":41.5},"tags":["a","b"]}"#)?;
/// assert_eq!(event.get("wind.gust"), Some(ValueRef::Float(41.5)));
/// assert_eq!(arrays, 1);
/// # Ok::<(), enroute_filter::JsonError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct JsonReader {
    /// Attributes (by their flattened names) whose strings are RFC 3339 times. Values of other kinds stay what they are.
    pub times: Vec<String>,
    /// Refuse arrays instead of dropping them.
    pub strict: bool,
    /// Limits of the events, and of the nesting of objects.
    pub limits: Limits,
}

/// Why a text is no event.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// Not a JSON object.
    #[error("not a JSON object: {0}")]
    Syntax(#[from] serde_json::Error),
    /// An array, under [`JsonReader::strict`].
    #[error("{0:?} is an array; an attribute has one value")]
    Array(String),
    /// An integer outside i64.
    #[error("{attribute:?}: integer {number} is beyond 64 bits; write it as a string or a float")]
    IntegerOutOfRange {
        /// Where.
        attribute: String,
        /// The number as it was written, shortened.
        number: String,
    },
    /// A number beyond the largest float.
    #[error("{attribute:?}: number {number} is out of range")]
    FloatOutOfRange {
        /// Where.
        attribute: String,
        /// The number as it was written, shortened.
        number: String,
    },
    /// Two members of one name, as written or once flattened.
    #[error("two members are called {0:?}")]
    Duplicate(String),
    /// A string of a time attribute is no time.
    #[error("{attribute:?}: {error}")]
    Time {
        /// Where.
        attribute: String,
        /// Why.
        error: TimestampError,
    },
    /// Objects nested too deeply.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The attributes are no event.
    #[error(transparent)]
    Event(EventError),
}

impl From<EventError> for JsonError {
    fn from(error: EventError) -> JsonError {
        match error {
            EventError::Limit(excess) => JsonError::Limit(excess),
            EventError::DuplicateAttribute(name) => JsonError::Duplicate(name),
            EventError::EmptyName | EventError::Malformed(_) => JsonError::Event(error),
        }
    }
}

impl JsonReader {
    /// Reads one JSON object as an event without payload; also says how many arrays were dropped.
    ///
    /// # Errors
    /// See [`JsonError`]. Time is linear in the text, times the nesting of objects, which is limited.
    pub fn read(&self, text: &str) -> Result<(Event, usize), JsonError> {
        let mut collected = Collected::default();
        self.object(text, "", 1, &mut collected)?;
        let Collected { leaves, mut valueless, arrays } = collected;
        let mut attributes: Vec<_> = leaves.iter().map(|(name, leaf)| (name.as_ref(), leaf.as_value())).collect();
        let event = Event::encode(&mut attributes, &[], &self.limits)?;
        // What gives no attribute may not share its name with anything either.
        valueless.sort_unstable();
        let twice = valueless.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| &pair[0]);
        match twice.or_else(|| valueless.iter().find(|name| event.get(name).is_some())) {
            Some(name) => Err(JsonError::Duplicate(name.to_string())),
            None => Ok((event, arrays)),
        }
    }

    /// Collects what an object holds. `prefix` is its name with a dot behind it, or empty; `depth` counts from 1.
    fn object<'t>(
        &self,
        text: &'t str,
        prefix: &str,
        depth: usize,
        collected: &mut Collected<'t>,
    ) -> Result<(), JsonError> {
        self.limits.check(Limit::Nesting, depth)?;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let members = deserializer.deserialize_map(Members)?;
        deserializer.end()?;
        collected.leaves.reserve(members.len());
        for (key, raw) in members {
            let name = if prefix.is_empty() { key } else { Cow::Owned(format!("{prefix}{key}")) };
            // Before a longer name is made of it.
            self.limits.check(Limit::AttributeName, name.len())?;
            let raw = raw.get();
            match raw.as_bytes().first() {
                Some(b'{') => {
                    self.object(raw, &format!("{name}."), depth + 1, collected)?;
                    collected.valueless.push(name);
                }
                Some(b'[') if self.strict => return Err(JsonError::Array(name.into_owned())),
                Some(b'[') => {
                    collected.arrays += 1;
                    collected.valueless.push(name);
                }
                Some(b'n') => collected.valueless.push(name),
                _ => {
                    let leaf = self.leaf(&name, raw)?;
                    collected.leaves.push((name, leaf));
                }
            }
        }
        Ok(())
    }

    /// A scalar but null. `raw` was checked to be JSON, but for what its escapes stand for and the size of its numbers.
    fn leaf<'t>(&self, name: &str, raw: &'t str) -> Result<Leaf<'t>, JsonError> {
        match raw.as_bytes().first() {
            Some(b'"') => {
                let inner = raw.get(1..raw.len() - 1).unwrap_or_default();
                let string =
                    if inner.contains('\\') { Cow::Owned(serde_json::from_str(raw)?) } else { Cow::Borrowed(inner) };
                if !self.times.iter().any(|time| time == name) {
                    return Ok(Leaf::String(string));
                }
                let time = string.parse().map_err(|error| JsonError::Time { attribute: name.to_owned(), error })?;
                Ok(Leaf::Time(time))
            }
            Some(b't') => Ok(Leaf::Bool(true)),
            Some(b'f') => Ok(Leaf::Bool(false)),
            _ if raw.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()) => raw
                .parse()
                .map(Leaf::Int)
                .map_err(|_| JsonError::IntegerOutOfRange { attribute: name.to_owned(), number: shortened(raw) }),
            _ => match raw.parse::<f64>() {
                Ok(float) if float.is_finite() => Ok(Leaf::Float(float)),
                Ok(_) | Err(_) => {
                    Err(JsonError::FloatOutOfRange { attribute: name.to_owned(), number: shortened(raw) })
                }
            },
        }
    }
}

fn shortened(number: &str) -> String {
    match number.get(..40) {
        Some(start) if number.len() > 40 => format!("{start}…"),
        Some(_) | None => number.to_owned(),
    }
}

/// What the objects of one text hold, by flattened name.
#[derive(Default)]
struct Collected<'t> {
    leaves: Vec<(Cow<'t, str>, Leaf<'t>)>,
    /// Members that give no attribute by themselves: objects, arrays and nulls.
    valueless: Vec<Cow<'t, str>>,
    arrays: usize,
}

/// A scalar; strings without escapes are borrowed from the text.
enum Leaf<'t> {
    Bool(bool),
    Int(i64),
    Float(f64),
    String(Cow<'t, str>),
    Time(Timestamp),
}

impl Leaf<'_> {
    fn as_value(&self) -> ValueRef<'_> {
        match self {
            Leaf::Bool(value) => ValueRef::Bool(*value),
            Leaf::Int(value) => ValueRef::Int(*value),
            Leaf::Float(value) => ValueRef::Float(*value),
            Leaf::String(value) => ValueRef::String(value),
            Leaf::Time(value) => ValueRef::Time(*value),
        }
    }
}

/// Reads the members of one object, their values unread: what serde would make of a number loses digits.
struct Members;

impl<'t> Visitor<'t> for Members {
    type Value = Vec<(Cow<'t, str>, &'t RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(16);
        while let Some(key) = map.next_key_seed(Key)? {
            members.push((key, map.next_value()?));
        }
        Ok(members)
    }
}

/// Reads a member's name, borrowed where it has no escapes.
struct Key;

impl<'t> DeserializeSeed<'t> for Key {
    type Value = Cow<'t, str>;

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'t> Visitor<'t> for Key {
    type Value = Cow<'t, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_borrowed_str<E>(self, name: &'t str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

impl Event {
    /// The attributes as one flat JSON object: times in RFC 3339, floats as short as they read back the same, NaN and
    /// infinities as null.
    pub fn to_json(&self) -> String {
        // A map of scalars under string keys always serialises.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The attributes as a flat map, without the payload; in binary formats the event's own bytes.
impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(self.as_bytes());
        }
        let mut map = serializer.serialize_map(Some(self.attribute_count()))?;
        for (name, value) in self.attributes() {
            map.serialize_entry(name, &value)?;
        }
        map.end()
    }
}

/// As a bare scalar; a time as RFC 3339 text.
impl Serialize for ValueRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            ValueRef::Bool(value) => serializer.serialize_bool(value),
            ValueRef::Int(value) => serializer.serialize_i64(value),
            ValueRef::Float(value) => serializer.serialize_f64(value),
            ValueRef::String(value) => serializer.serialize_str(value),
            ValueRef::Time(value) => serializer.collect_str(&value),
        }
    }
}
