//! Frames: their kinds, where each may stand, how long each may be, and how a stream of bytes falls into them.

use crate::client::RECEIPTS;
use crate::{MAX_CONTROL, MAX_DELIVERY_NAMES, MAX_EVENT, MAX_HELLO, MAX_STATUS, WireError, event};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::fmt;

/// Bytes of a frame before its content: length and kind.
pub(crate) const PREFIX: usize = 5;

/// What comes to a client may wait in the application for long: content up to this is copied out of the reader's buffer, so
/// that it holds its own bytes and not the whole buffer it came in. Above it, copying would cost more than the sharing wastes.
/// Brokers keep no frame as it came, but pass on its bytes or decode it.
const COPIED: usize = 16 * 1024;

/// Which direction of which stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Control between brokers.
    Control,
    /// Events between brokers.
    Data,
    /// From a client to its broker.
    FromClient,
    /// From a broker to its client.
    ToClient,
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Traffic::Control => "broker control",
            Traffic::Data => "broker data",
            Traffic::FromClient => "client-to-broker",
            Traffic::ToClient => "broker-to-client",
        })
    }
}

/// What a frame contains. The numbers are those on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// [`Hello`](crate::Hello).
    Hello = 0x01,
    /// [`HelloAck`](crate::HelloAck).
    HelloAck = 0x02,
    /// [`HelloRefused`](crate::HelloRefused), to a broker or a client.
    HelloRefused = 0x03,
    /// [`Goodbye`](crate::Goodbye), from either end of any stream but data.
    Goodbye = 0x04,
    /// Nothing but a sign of life.
    KeepAlive = 0x05,
    /// A [`Message`](enroute_broker::Message).
    Message = 0x06,
    /// [`DataHello`](crate::DataHello).
    DataHello = 0x10,
    /// An [`EventFrame`](enroute_broker::EventFrame).
    Event = 0x11,
    /// [`ClientHello`](crate::ClientHello).
    ClientHello = 0x20,
    /// [`ServerHello`](crate::ServerHello).
    ServerHello = 0x21,
    /// A [`Command`](enroute_broker::Command) with the number of the request.
    Request = 0x22,
    /// An event to publish, with the number of the request.
    Publish = 0x23,
    /// A question for the broker's status.
    StatusRequest = 0x24,
    /// A [`Reply`](enroute_broker::Reply).
    Reply = 0x25,
    /// The broker's status.
    Status = 0x26,
    /// A [`Delivery`](enroute_broker::Delivery).
    Delivery = 0x27,
    /// How many more deliveries a client has room for.
    Credit = 0x28,
    /// The answers to publications that follow each other.
    Receipts = 0x29,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 18] = [
        Kind::Hello,
        Kind::HelloAck,
        Kind::HelloRefused,
        Kind::Goodbye,
        Kind::KeepAlive,
        Kind::Message,
        Kind::DataHello,
        Kind::Event,
        Kind::ClientHello,
        Kind::ServerHello,
        Kind::Request,
        Kind::Publish,
        Kind::StatusRequest,
        Kind::Reply,
        Kind::Status,
        Kind::Delivery,
        Kind::Credit,
        Kind::Receipts,
    ];

    fn from_byte(byte: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// Where such frames may stand.
    pub const fn places(self) -> &'static [Traffic] {
        match self {
            Kind::Hello | Kind::HelloAck | Kind::KeepAlive | Kind::Message => &[Traffic::Control],
            Kind::HelloRefused => &[Traffic::Control, Traffic::ToClient],
            Kind::Goodbye => &[Traffic::Control, Traffic::FromClient, Traffic::ToClient],
            Kind::DataHello | Kind::Event => &[Traffic::Data],
            Kind::ClientHello | Kind::Request | Kind::Publish | Kind::StatusRequest | Kind::Credit => {
                &[Traffic::FromClient]
            }
            Kind::ServerHello | Kind::Reply | Kind::Status | Kind::Delivery | Kind::Receipts => &[Traffic::ToClient],
        }
    }

    /// How many bytes the content may have.
    pub const fn max_content(self) -> usize {
        match self {
            Kind::Hello | Kind::HelloAck | Kind::HelloRefused | Kind::Goodbye => MAX_HELLO,
            Kind::DataHello | Kind::ClientHello | Kind::ServerHello => MAX_HELLO,
            Kind::KeepAlive => 0,
            Kind::Message | Kind::Request | Kind::Reply => MAX_CONTROL,
            Kind::Event => event::MAX_HEADER + MAX_EVENT,
            Kind::Publish => 8 + MAX_EVENT,
            Kind::StatusRequest => 8,
            Kind::Credit => 4,
            Kind::Receipts => RECEIPTS,
            Kind::Status => MAX_STATUS,
            Kind::Delivery => event::EVENT_ID + MAX_DELIVERY_NAMES + MAX_EVENT,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Kind::Hello => "hello",
            Kind::HelloAck => "hello acknowledgement",
            Kind::HelloRefused => "hello refusal",
            Kind::Goodbye => "goodbye",
            Kind::KeepAlive => "keep-alive",
            Kind::Message => "control message",
            Kind::DataHello => "data hello",
            Kind::Event => "event",
            Kind::ClientHello => "client hello",
            Kind::ServerHello => "server hello",
            Kind::Request => "request",
            Kind::Publish => "publish",
            Kind::StatusRequest => "status request",
            Kind::Reply => "reply",
            Kind::Status => "status",
            Kind::Delivery => "delivery",
            Kind::Credit => "credit",
            Kind::Receipts => "receipts",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A frame, of which the kind and the length are known to be right, and the content is not yet looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it contains.
    pub kind: Kind,
    /// Its content.
    pub content: Bytes,
}

impl Frame {
    /// Bytes that it took on the stream.
    pub fn size(&self) -> usize {
        PREFIX + self.content.len()
    }

    /// The error for a kind that a stream does not carry.
    pub(crate) fn misplaced(&self, traffic: Traffic) -> WireError {
        WireError::Misplaced { kind: self.kind, traffic }
    }
}

/// Splits one direction of a stream into frames, however the bytes arrive.
///
/// Take out all whole frames before reading more: then it never holds more than twice the largest frame allowed on this stream
/// and one read.
#[derive(Debug)]
pub struct FrameReader {
    traffic: Traffic,
    /// What has been read.
    buffer: BytesMut,
    /// What can be read into, right behind `buffer`.
    room: BytesMut,
}

impl FrameReader {
    /// A reader at the beginning of a stream.
    pub fn new(traffic: Traffic) -> FrameReader {
        FrameReader { traffic, buffer: BytesMut::new(), room: BytesMut::new() }
    }

    /// Where to read into: `size` bytes, or less if more than little was left of those before. How many have been read is to be
    /// [said](FrameReader::filled).
    pub fn room(&mut self, size: usize) -> &mut [u8] {
        let (little, much) = (size / 8, size.saturating_mul(4));
        if self.room.len() <= little || self.room.len() > much {
            let read = self.buffer.len();
            // As much again as is here, so that a long frame is not copied more than twice.
            let more = size.max(read).max(1);
            if std::mem::take(&mut self.room).len() > much {
                self.buffer = BytesMut::from(&self.buffer[..]);
            }
            // Memory that no frame holds any more is used again.
            self.buffer.reserve(more);
            self.buffer.resize(read + more, 0);
            self.room = self.buffer.split_off(read);
        }
        let size = size.clamp(1, self.room.len());
        &mut self.room[..size]
    }

    /// So many bytes have been read into the room.
    pub fn filled(&mut self, count: usize) {
        // They are neighbours: nothing is copied.
        self.buffer.unsplit(self.room.split_to(count));
    }

    /// Takes in bytes as they came.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.room(bytes.len());
            let count = room.len();
            room.copy_from_slice(&bytes[..count]);
            self.filled(count);
            bytes = &bytes[count..];
        }
    }

    /// The next frame, if it is there as a whole.
    ///
    /// # Errors
    /// As soon as length and kind are known: if the kind is unknown or has no place on this stream, or the frame is too long.
    /// An error is final; every further call returns it again.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, WireError> {
        let Some(prefix) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*prefix) as usize;
        let Some(content_length) = length.checked_sub(1) else { return Err(WireError::EmptyFrame) };
        let Some(&byte) = self.buffer.get(4) else { return Ok(None) };
        let kind = Kind::from_byte(byte).ok_or(WireError::UnknownKind { kind: byte, traffic: self.traffic })?;
        if !kind.places().contains(&self.traffic) {
            return Err(WireError::Misplaced { kind, traffic: self.traffic });
        }
        check_length(kind, content_length)?;
        if self.buffer.len() < PREFIX + content_length {
            return Ok(None);
        }
        self.buffer.advance(PREFIX);
        let content = if self.traffic == Traffic::ToClient && content_length <= COPIED {
            let content = Bytes::copy_from_slice(&self.buffer[..content_length]);
            self.buffer.advance(content_length);
            content
        } else {
            self.buffer.split_to(content_length).freeze()
        };
        Ok(Some(Frame { kind, content }))
    }

    /// Bytes pushed and not yet returned: more than none at the end of a stream means that it broke off within a frame.
    pub fn pending(&self) -> usize {
        self.buffer.len()
    }
}

/// Bytes of the frame that `bytes`, which are not empty, begin with; no more than there are.
pub fn first_frame_size(bytes: &[u8]) -> usize {
    let length = bytes.first_chunk::<4>().map_or(usize::MAX, |prefix| u32::from_le_bytes(*prefix) as usize);
    length.saturating_add(4).min(bytes.len())
}

/// Appends a frame whose content `fill` appends. After an error `out` is as it was.
pub(crate) fn put_frame(
    out: &mut BytesMut,
    kind: Kind,
    fill: impl FnOnce(&mut BytesMut) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let start = out.len();
    out.put_u32_le(0);
    out.put_u8(kind as u8);
    let filled = fill(out).and_then(|()| check_length(kind, out.len() - start - PREFIX));
    match filled {
        Ok(()) => {
            let length = frame_length(out.len() - start - PREFIX);
            out[start..start + 4].copy_from_slice(&length);
        }
        Err(_) => out.truncate(start),
    }
    filled
}

/// The first four bytes of a frame.
pub(crate) fn frame_length(content_length: usize) -> [u8; 4] {
    u32::try_from(content_length + 1).expect("limits of content are far below 4 GiB").to_le_bytes()
}

pub(crate) fn check_length(kind: Kind, found: usize) -> Result<(), WireError> {
    let limit = kind.max_content();
    if found <= limit { Ok(()) } else { Err(WireError::TooLong { kind, found, limit }) }
}
