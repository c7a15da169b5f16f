//! The bytes between brokers, and between a client and its broker. No sockets: this crate turns values into bytes and back.
//!
//! # Streams
//!
//! A connection between two brokers has two long-lived streams: control ([`BROKER_PROTOCOL`]) and data ([`EVENT_PROTOCOL`]),
//! so that control never stands behind events. A client speaks [`CLIENT_PROTOCOL`] over a stream of its own. Every stream is
//! a sequence of frames:
//!
//! | bytes | what |
//! | --- | --- |
//! | 4 | length of all that follows in this frame, little-endian |
//! | 1 | kind, see [`Kind`] |
//! | length - 1 | content |
//!
//! | stream | first | then |
//! | --- | --- | --- |
//! | control | the dialling broker sends [`Hello`], the other answers with [`HelloAck`] or [`HelloRefused`] | both send [`ControlFrame::Message`], [`ControlFrame::KeepAlive`], at the end [`Goodbye`] |
//! | data | whoever opens it sends [`DataHello`], which says to which control stream it belongs; the other repeats it | [`DataFrame::Event`] |
//! | client | the client sends [`ClientHello`], the broker answers with [`ServerHello`] or [`HelloRefused`] | [`ClientFrame`]s one way, [`ServerFrame`]s the other |
//!
//! # Three kinds of content
//!
//! * What must be understood before a version is agreed upon (the hellos) is laid out by hand and will never change, but for
//!   more bytes at the end, which are skipped.
//! * What carries an event has a layout of its own, in which the event's bytes come last and untouched: encoding appends
//!   them as they are, decoding slices them out. They are not looked into here.
//! * All else is bincode: little-endian, variable-length integers. Bytes that
//!   are left over are an error.
//!
//! # Hostile input
//!
//! All bytes are hostile until checked. [`FrameReader`] refuses a frame by its length and kind before it keeps its content, so a
//! stream holds at most one largest frame. Counts are compared with a limit, and with the bytes that are there, before
//! anything is allocated for them. No type that travels contains itself, and filters travel as flat bytes: nothing a peer can
//! send makes a decoder recurse, so a depth bomb cannot be built. Every decoder consumes its input in one pass.

mod client;
mod codec;
mod control;
mod error;
mod event;
mod frame;
mod hello;
mod layout;
mod names;
mod text;

pub use client::{
    ClientFrame, ClientHello, MAX_DELIVERY_NAMES, MAX_NAME_BYTES, MAX_STATUS, ServerFrame, ServerHello, SlowSubscriber,
    encode_delivery, encode_publish,
};
pub use control::{ControlFrame, Goodbye, MAX_CONTROL, encode_message, message_size};
pub use error::WireError;
pub use event::{
    DataFrame, MAX_DESTINATIONS, MAX_EVENT, MAX_EXTENSION, encode_event_frame, encode_event_header, event_frame_size,
};
pub use frame::{Frame, FrameReader, Kind, Traffic, first_frame_size};
pub use hello::{DataHello, Hello, HelloAck, HelloRefused, MAX_HELLO, RefusalCode, VersionRange};
pub use names::Names;
pub use text::{MAX_TEXT, ShortText};

/// The name under which control streams between brokers are opened. The number is that of the framing, not of what is said:
/// that is agreed upon in the hello.
pub const BROKER_PROTOCOL: &str = "/enroute/broker/1";
/// The name under which data streams between brokers are opened.
pub const EVENT_PROTOCOL: &str = "/enroute/events/1";
/// The name under which clients open their stream.
pub const CLIENT_PROTOCOL: &str = "/enroute/client/1";

/// The versions of the protocol between brokers that this crate speaks.
pub const BROKER_VERSIONS: VersionRange = VersionRange { min: 1, max: 1 };
/// The versions of the client protocol that this crate speaks.
pub const CLIENT_VERSIONS: VersionRange = VersionRange { min: 1, max: 1 };
