//! The control stream between two brokers.

use crate::frame::{PREFIX, put_frame};
use crate::layout::Reader;
use crate::{Frame, Hello, HelloAck, HelloRefused, Kind, MAX_TEXT, ShortText, Traffic, WireError, codec};
use bytes::BytesMut;
use enroute_broker::{CloseReason, LinkState, MAX_ADDRESSES, MAX_LETTERS_BYTES, Message};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Bytes that a control message, a client's request or the reply to one may have.
pub const MAX_CONTROL: usize = 1024 * 1024;

/// Besides letters a message has its kind, and how many lives, parts and letters there are.
const _: () = assert!(MAX_LETTERS_BYTES + 1 + 3 * 9 <= MAX_CONTROL);

/// A frame of the control stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlFrame {
    /// First, from the one who dialled.
    Hello(Hello),
    /// First, from the other: accepted.
    HelloAck(HelloAck),
    /// First, from the other: refused.
    HelloRefused(HelloRefused),
    /// What brokers have to say to each other.
    Message(Message),
    /// A sign of life.
    KeepAlive,
    /// Last.
    Goodbye(Goodbye),
}

impl ControlFrame {
    /// Reads a frame's content.
    ///
    /// # Errors
    /// If the content does not keep to its layout and limits, or the frame has no place on a control stream.
    pub fn decode(frame: &Frame) -> Result<ControlFrame, WireError> {
        let mut reader = Reader::new(frame.kind, frame.content.clone());
        match frame.kind {
            Kind::Hello => Ok(ControlFrame::Hello(Hello::read(&mut reader)?)),
            Kind::HelloAck => Ok(ControlFrame::HelloAck(HelloAck::read(&mut reader)?)),
            Kind::HelloRefused => Ok(ControlFrame::HelloRefused(HelloRefused::read(&mut reader)?)),
            Kind::Message => {
                let message = codec::read(frame.kind, &frame.content)?;
                check_texts(&message)?;
                Ok(ControlFrame::Message(message))
            }
            Kind::KeepAlive => reader.finish().map(|()| ControlFrame::KeepAlive),
            Kind::Goodbye => Ok(ControlFrame::Goodbye(codec::read(frame.kind, &frame.content)?)),
            _ => Err(frame.misplaced(Traffic::Control)),
        }
    }

    /// Appends the frame.
    ///
    /// # Errors
    /// Only for a message beyond the limits; `out` is then as it was.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), WireError> {
        match self {
            ControlFrame::Hello(hello) => put_frame(out, Kind::Hello, |out| {
                hello.put(out);
                Ok(())
            }),
            ControlFrame::HelloAck(ack) => put_frame(out, Kind::HelloAck, |out| {
                ack.put(out);
                Ok(())
            }),
            ControlFrame::HelloRefused(refused) => put_frame(out, Kind::HelloRefused, |out| {
                refused.put(out);
                Ok(())
            }),
            ControlFrame::Message(message) => encode_message(message, out),
            ControlFrame::KeepAlive => put_frame(out, Kind::KeepAlive, |_| Ok(())),
            ControlFrame::Goodbye(goodbye) => goodbye.put_frame(out),
        }
    }
}

/// Appends a control message as a frame.
///
/// # Errors
/// If the message is beyond the limits; `out` is then as it was.
pub fn encode_message(message: &Message, out: &mut BytesMut) -> Result<(), WireError> {
    check_texts(message)?;
    put_frame(out, Kind::Message, |out| codec::put(out, Kind::Message, message))
}

/// Bytes of the frame that [`encode_message`] appends.
pub fn message_size(message: &Message) -> usize {
    PREFIX + codec::size(message)
}

/// What a broker says of itself is spread over the whole network: its texts are bounded at the first step.
fn check_texts(message: &Message) -> Result<(), WireError> {
    match message {
        Message::LinkState(state) => check_link_state(state),
        Message::Offer { .. }
        | Message::Synced
        | Message::SyncedAck
        | Message::Scope(_)
        | Message::Routed(_)
        | Message::Leaf(_) => Ok(()),
    }
}

fn check_link_state(state: &LinkState) -> Result<(), WireError> {
    let kind = Kind::Message;
    check_text(kind, "peer id", &state.peer_id)?;
    if state.addresses.len() > MAX_ADDRESSES {
        let (found, limit) = (state.addresses.len() as u64, MAX_ADDRESSES as u64);
        return Err(WireError::TooMany { kind, what: "addresses", found, limit });
    }
    state.addresses.iter().try_for_each(|address| check_text(kind, "address", address))
}

pub(crate) fn check_text(kind: Kind, what: &'static str, text: &str) -> Result<(), WireError> {
    if text.len() <= MAX_TEXT {
        Ok(())
    } else {
        Err(WireError::TextTooLong { kind, what, found: text.len(), limit: MAX_TEXT })
    }
}

/// Why the sender closes a stream between brokers, or between a client and its broker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Goodbye {
    /// It goes down, or is done.
    #[error("it is shutting down")]
    ShuttingDown,
    /// Its core wants the link closed.
    #[error(transparent)]
    Closed(CloseReason),
    /// It cannot read what came.
    #[error("it could not read what was sent: {0}")]
    Unreadable(ShortText),
    /// The receiver has said nothing for too long.
    #[error("it heard nothing for too long")]
    Silent,
    /// Too much was waiting for the receiver: control between brokers, or deliveries to a client that asked to be cut off
    /// then.
    #[error("too much was waiting to be sent")]
    TooSlow,
    /// Something else.
    #[error("{0}")]
    Other(ShortText),
}

impl Goodbye {
    /// Appends the frame; texts that are too long are clipped.
    pub(crate) fn put_frame(&self, out: &mut BytesMut) -> Result<(), WireError> {
        put_frame(out, Kind::Goodbye, |out| codec::put(out, Kind::Goodbye, &self.clipped()))
    }

    fn clipped(&self) -> Goodbye {
        let clip = |text: &str| ShortText::clip(text).to_string();
        match self {
            Goodbye::Closed(CloseReason::Violation(text)) => Goodbye::Closed(CloseReason::Violation(clip(text))),
            Goodbye::Closed(CloseReason::IdClash { id, held_by, refused }) => {
                let (held_by, refused) = (Arc::from(clip(held_by)), Arc::from(clip(refused)));
                Goodbye::Closed(CloseReason::IdClash { id: *id, held_by, refused })
            }
            Goodbye::Closed(
                CloseReason::Duplicate
                | CloseReason::Oneself
                | CloseReason::OldIncarnation
                | CloseReason::NoPath
                | CloseReason::Cycle
                | CloseReason::Moved
                | CloseReason::Full { .. },
            )
            | Goodbye::ShuttingDown
            | Goodbye::Unreadable(_)
            | Goodbye::Silent
            | Goodbye::TooSlow
            | Goodbye::Other(_) => self.clone(),
        }
    }
}
