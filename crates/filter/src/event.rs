//! Events: attributes and payload in one immutable run of bytes, which is also what travels.

use crate::{Limits, Value, ValueRef};
use bytes::Bytes;

/// What is published: an immutable, validated run of bytes. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    bytes: Bytes,
}

/// Collects attributes and payload; see [`Event::builder`].
#[derive(Clone, Debug, Default)]
pub struct EventBuilder {}

/// Why attributes and payload, or bytes, are no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// Placeholder until the module is written.
    #[error("malformed")]
    Malformed,
}

impl Event {
    /// Starts an event.
    pub fn builder() -> EventBuilder {
        EventBuilder::default()
    }
    /// Checks bytes that came from elsewhere against the layout and `limits`; keeps them without copying.
    pub fn from_bytes(bytes: Bytes, limits: &Limits) -> Result<Event, EventError> {
        let _ = (bytes, limits);
        todo!()
    }
    /// The bytes that travel.
    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }
    /// The value of an attribute, if present.
    pub fn get(&self, name: &str) -> Option<ValueRef<'_>> {
        let _ = name;
        todo!()
    }
    /// All attributes, sorted by name.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
        std::iter::empty()
    }
    /// The opaque payload.
    pub fn payload(&self) -> Bytes {
        todo!()
    }
}

impl EventBuilder {
    /// Sets an attribute; a second value for one name is an error of [`EventBuilder::build`].
    pub fn attribute(self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        let _ = (name.into(), value.into());
        todo!()
    }
    /// Sets the payload.
    pub fn payload(self, payload: impl Into<Bytes>) -> Self {
        let _ = payload.into();
        todo!()
    }
    /// Encodes the event.
    pub fn build(self) -> Result<Event, EventError> {
        todo!()
    }
}
