//! The data stream between two brokers: events on their way.
//!
//! # Layout of an event frame's content, version 1
//!
//! | bytes | what |
//! | --- | --- |
//! | 1 | version: 1 |
//! | 1 | delivery mode: 0 best effort |
//! | 1 | flags: bit 0, each destination is followed by a slot; the other bits are zero |
//! | 2 | hop limit, little-endian |
//! | varint | number of destinations, at least 1 |
//! | for each | varint: its id less the one before, the first less zero; strictly ascending |
//! | | if there are slots, varint: 0 for none, else 1 + the number of the last event of this source to this destination, by which reliable delivery will know of gaps. Skipped today, never written |
//! | varint | length of the extensions |
//! | that many | extensions, skipped |
//! | 24 | the event's id: origin, incarnation, sequence, little-endian |
//! | the rest | the event, in its own layout ([`enroute_filter::Event`]), neither copied nor looked into |
//!
//! A broker writes a new header in front of the same bytes. Ids are evenly spread, so that a destination among n takes about
//! 64 - log2(n) bits.

use crate::frame::{PREFIX, check_length, frame_length};
use crate::layout::{Reader, put_varint, varint_size};
use crate::{DataHello, Frame, Kind, Traffic, WireError};
use bytes::{BufMut, Bytes, BytesMut};
use enroute_broker::{BrokerId, EventFrame, EventId};
use enroute_filter::Limit;
use smallvec::SmallVec;

const VERSION: u8 = 1;
const BEST_EFFORT: u8 = 0;
const FLAG_SLOTS: u8 = 1;

/// Bytes of an event's id.
pub(crate) const EVENT_ID: usize = 24;

/// Destinations of one frame.
pub const MAX_DESTINATIONS: usize = 65_536;
/// Bytes of extensions that are skipped.
pub const MAX_EXTENSION: usize = 4 * 1024;
/// Bytes of an event in its own layout: header, attributes, payload.
pub const MAX_EVENT: usize = 12 + Limit::AttributeData.default_maximum() + Limit::Payload.default_maximum();
/// Bytes before the event: a destination and its slot are a varint of at most ten bytes each.
pub(crate) const MAX_HEADER: usize = 64 + MAX_EXTENSION + 20 * MAX_DESTINATIONS;

/// A frame of the data stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataFrame {
    /// First, from the one who opened the stream.
    Hello(DataHello),
    /// An event.
    Event(EventFrame),
}

impl DataFrame {
    /// Reads a frame's content. The event in it is a piece of the frame's and is not checked.
    ///
    /// # Errors
    /// If the content does not keep to its layout and limits, or the frame has no place on a data stream.
    pub fn decode(frame: Frame) -> Result<DataFrame, WireError> {
        match frame.kind {
            Kind::DataHello => Ok(DataFrame::Hello(DataHello::read(&frame)?)),
            Kind::Event => Ok(DataFrame::Event(read_event(frame)?)),
            _ => Err(frame.misplaced(Traffic::Data)),
        }
    }

    /// Appends the frame.
    ///
    /// # Errors
    /// As [`encode_event_header`]; `out` is then as it was.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), WireError> {
        match self {
            DataFrame::Hello(hello) => hello.put_frame(out),
            DataFrame::Event(frame) => encode_event_frame(frame, out),
        }
    }
}

/// Appends an event as a frame.
///
/// # Errors
/// As [`encode_event_header`]; `out` is then as it was.
pub fn encode_event_frame(frame: &EventFrame, out: &mut BytesMut) -> Result<(), WireError> {
    encode_event_header(frame, out)?;
    out.extend_from_slice(&frame.event);
    Ok(())
}

/// Appends all of an event's frame but the event itself, which must follow as it is: for writers that gather.
///
/// # Errors
/// If destinations are missing, not strictly ascending or too many, or the event is too long; `out` is then as it was.
pub fn encode_event_header(frame: &EventFrame, out: &mut BytesMut) -> Result<(), WireError> {
    let kind = Kind::Event;
    check_destinations(&frame.destinations)?;
    check_event(kind, &frame.event)?;
    let content_length = header_size(frame) + frame.event.len();
    check_length(kind, content_length)?;
    out.reserve(PREFIX + content_length);
    out.put_slice(&frame_length(content_length));
    out.put_u8(kind as u8);
    out.put_slice(&[VERSION, BEST_EFFORT, 0]);
    out.put_u16_le(frame.hop_limit);
    put_varint(out, frame.destinations.len() as u64);
    for difference in differences(&frame.destinations) {
        put_varint(out, difference);
    }
    put_varint(out, 0);
    put_event_id(out, frame.id);
    Ok(())
}

/// Bytes of the frame that [`encode_event_frame`] appends.
pub fn event_frame_size(frame: &EventFrame) -> usize {
    PREFIX + header_size(frame) + frame.event.len()
}

fn header_size(frame: &EventFrame) -> usize {
    let destinations: usize = differences(&frame.destinations).map(varint_size).sum();
    5 + varint_size(frame.destinations.len() as u64) + destinations + 1 + EVENT_ID
}

/// Each id less the one before; wraps if they are not ascending, which [`check_destinations`] rules out.
fn differences(destinations: &[BrokerId]) -> impl Iterator<Item = u64> {
    let before = std::iter::once(0).chain(destinations.iter().map(|id| id.0));
    destinations.iter().zip(before).map(|(id, before)| id.0.wrapping_sub(before))
}

fn check_destinations(destinations: &[BrokerId]) -> Result<(), WireError> {
    let kind = Kind::Event;
    let (found, limit) = (destinations.len() as u64, MAX_DESTINATIONS as u64);
    if found > limit {
        Err(WireError::TooMany { kind, what: "destinations", found, limit })
    } else if destinations.is_empty() {
        Err(WireError::Malformed { kind, what: "no destination".into() })
    } else if !destinations.is_sorted_by(|a, b| a < b) {
        Err(WireError::Malformed { kind, what: "destinations are not strictly ascending".into() })
    } else {
        Ok(())
    }
}

fn read_event(frame: Frame) -> Result<EventFrame, WireError> {
    let kind = frame.kind;
    let mut reader = Reader::new(kind, frame.content);
    let version = reader.u8("version")?;
    if version != VERSION {
        return Err(WireError::EventVersion { found: version, known: VERSION });
    }
    let mode = reader.u8("delivery mode")?;
    if mode != BEST_EFFORT {
        return Err(WireError::EventMode { found: mode, known: BEST_EFFORT });
    }
    let flags = reader.u8("flags")?;
    if flags & !FLAG_SLOTS != 0 {
        return Err(reader.malformed(format!("unknown flags {flags:#04x}")));
    }
    let hop_limit = reader.u16("hop limit")?;
    let destinations = read_destinations(&mut reader, flags & FLAG_SLOTS != 0)?;
    let extension = reader.count("bytes of extensions", MAX_EXTENSION)?;
    reader.skip(extension, "extensions")?;
    let id = read_event_id(&mut reader)?;
    let event = read_event_bytes(kind, reader)?;
    Ok(EventFrame { hop_limit, destinations, id, event })
}

fn read_destinations(reader: &mut Reader, slots: bool) -> Result<SmallVec<[BrokerId; 2]>, WireError> {
    let count = reader.count("destinations", MAX_DESTINATIONS)?;
    if count == 0 {
        return Err(reader.malformed("no destination"));
    }
    let mut destinations = SmallVec::with_capacity(count);
    let mut id = 0u64;
    for index in 0..count {
        let difference = reader.varint("destinations")?;
        if difference == 0 && index > 0 {
            return Err(reader.malformed("a destination stands twice"));
        }
        id = id.checked_add(difference).ok_or_else(|| reader.malformed("a destination exceeds 64 bits"))?;
        destinations.push(BrokerId(id));
        if slots {
            reader.varint("slot of a destination")?;
        }
    }
    Ok(destinations)
}

pub(crate) fn put_event_id(out: &mut BytesMut, id: EventId) {
    out.put_u64_le(id.origin.0);
    out.put_u64_le(id.incarnation);
    out.put_u64_le(id.sequence);
}

pub(crate) fn read_event_id(reader: &mut Reader) -> Result<EventId, WireError> {
    Ok(EventId {
        origin: BrokerId(reader.u64("event id")?),
        incarnation: reader.u64("event id")?,
        sequence: reader.u64("event id")?,
    })
}

/// The rest of a frame is an event; only its length is looked at.
pub(crate) fn read_event_bytes(kind: Kind, reader: Reader) -> Result<Bytes, WireError> {
    let event = reader.rest();
    check_event(kind, &event)?;
    Ok(event)
}

pub(crate) fn check_event(kind: Kind, event: &Bytes) -> Result<(), WireError> {
    let (found, limit) = (event.len(), MAX_EVENT);
    if found <= limit { Ok(()) } else { Err(WireError::TooLong { kind, found, limit }) }
}
