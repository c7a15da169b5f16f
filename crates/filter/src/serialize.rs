//! Filters under serde: text for people's formats, the canonical bytes for programs' formats.

use crate::{Conjunction, Filter};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;

impl Serialize for Filter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_bytes(&self.to_bytes())
        }
    }
}

impl<'de> Deserialize<'de> for Filter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Filter, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_str(FilterVisitor)
        } else {
            deserializer.deserialize_bytes(FilterVisitor)
        }
    }
}

impl Serialize for Conjunction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Filter::from(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Conjunction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Conjunction, D::Error> {
        match Filter::deserialize(deserializer)?.conjunctions() {
            [conjunction] => Ok(conjunction.clone()),
            others => Err(D::Error::custom(format!("expected one conjunction, found {}", others.len()))),
        }
    }
}

struct FilterVisitor;

impl Visitor<'_> for FilterVisitor {
    type Value = Filter;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a filter, as text or in its canonical bytes")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Filter, E> {
        Filter::parse(text).map_err(E::custom)
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Filter, E> {
        Filter::from_bytes(bytes).map_err(E::custom)
    }
}
