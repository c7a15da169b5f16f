//! The client protocol: a client and its broker.
//!
//! The client sends requests, each with a number of its own choice; every request gets exactly one answer, in any order. The
//! receipts of publications whose numbers follow each other, and whose events' sequences do, may come as one. Deliveries come in between, as many as the client has given credit for: answers never wait behind deliveries that
//! the client does not take. The hellos are laid out by hand, as are all frames with an event:
//!
//! | frame | layout |
//! | --- | --- |
//! | client hello | lowest and highest version, two bytes each; policy, one byte; software: length in two bytes, text |
//! | server hello | version, two bytes; broker id, eight bytes; requests, four bytes; number of limits, one byte; each limit, eight bytes, in the order of [`Limit::ALL`]; software |
//! | publish | number of the request, eight bytes; the event |
//! | status request | number of the request, eight bytes |
//! | credit | further deliveries the client has room for, four bytes |
//! | status | number of the request, eight bytes; the status as JSON text |
//! | receipts | number of the first request, eight bytes; how many, four bytes, at least 1; destinations, four bytes; complete, one byte: 0 or 1; id of the first event, 24 bytes |
//! | delivery | event id, 24 bytes; varint: number of names; for each, varint: its length, and the name; the event |

use crate::control::check_text;
use crate::event::{EVENT_ID, check_event, put_event_id, read_event_bytes, read_event_id};
use crate::frame::put_frame;
use crate::hello::VersionRange;
use crate::layout::{Reader, put_text, put_varint};
use crate::names::{Names, check_names};
use crate::{CLIENT_VERSIONS, Frame, Goodbye, HelloRefused, Kind, MAX_TEXT, ShortText, Traffic, WireError, codec};
use bytes::{BufMut, Bytes, BytesMut};
use enroute_broker::{BrokerId, Command, Delivery, Receipt, Reply, RequestId};
use enroute_filter::{Limit, Limits};
use serde::{Deserialize, Serialize};

/// Bytes that a subscription's or advertisement's name may have.
pub const MAX_NAME_BYTES: usize = MAX_TEXT;
/// Bytes that the names in one delivery may have, their lengths included.
pub const MAX_DELIVERY_NAMES: usize = 16 * 1024 * 1024;
/// Bytes that a status may have.
pub const MAX_STATUS: usize = 16 * 1024 * 1024;

/// Bytes of a receipts frame's content.
pub(crate) const RECEIPTS: usize = 8 + 4 + 4 + 1 + EVENT_ID;

/// What becomes of deliveries to a client that does not read them as fast as they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowSubscriber {
    /// The oldest waiting delivery is dropped.
    DropOldest,
    /// The new delivery is dropped.
    DropNewest,
    /// The client is cut off.
    Disconnect,
    /// Publishers have to wait.
    PushBack,
}

impl SlowSubscriber {
    const ALL: [SlowSubscriber; 4] =
        [SlowSubscriber::DropOldest, SlowSubscriber::DropNewest, SlowSubscriber::Disconnect, SlowSubscriber::PushBack];

    /// On the wire, 0 stands for the broker's default.
    fn to_byte(policy: Option<SlowSubscriber>) -> u8 {
        match policy {
            None => 0,
            Some(SlowSubscriber::DropOldest) => 1,
            Some(SlowSubscriber::DropNewest) => 2,
            Some(SlowSubscriber::Disconnect) => 3,
            Some(SlowSubscriber::PushBack) => 4,
        }
    }

    fn read(reader: &mut Reader) -> Result<Option<SlowSubscriber>, WireError> {
        let byte = reader.u8("policy")?;
        if byte == 0 {
            return Ok(None);
        }
        let known = SlowSubscriber::ALL.into_iter().find(|policy| SlowSubscriber::to_byte(Some(*policy)) == byte);
        known.map(Some).ok_or_else(|| reader.malformed(format!("unknown policy {byte}")))
    }
}

/// A client introduces itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHello {
    /// The versions of the client protocol it speaks.
    pub versions: VersionRange,
    /// What becomes of its deliveries if it is slow; the broker's default if it does not say.
    pub slow_subscriber: Option<SlowSubscriber>,
    /// Name and version of the software, for people.
    pub software: ShortText,
}

impl ClientHello {
    fn put(&self, out: &mut BytesMut) {
        self.versions.put(out);
        out.put_u8(SlowSubscriber::to_byte(self.slow_subscriber));
        put_text(out, &self.software);
    }

    fn read(reader: &mut Reader) -> Result<ClientHello, WireError> {
        Ok(ClientHello {
            versions: VersionRange::read(reader, CLIENT_VERSIONS)?,
            slow_subscriber: SlowSubscriber::read(reader)?,
            software: reader.text("software")?,
        })
    }
}

/// The broker accepts a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHello {
    /// The version that is spoken from now on: the highest that both know.
    pub version: u16,
    /// The broker's id.
    pub broker: BrokerId,
    /// Requests that may be unanswered at a time; the broker reads no further then.
    pub max_requests: u32,
    /// What filters and events must keep to.
    pub limits: Limits,
    /// Name and version of the software, for people.
    pub software: ShortText,
}

impl ServerHello {
    fn put(&self, out: &mut BytesMut) {
        out.put_u16_le(self.version);
        out.put_u64_le(self.broker.0);
        out.put_u32_le(self.max_requests);
        out.put_u8(u8::try_from(Limit::ALL.len()).expect("there are few limits"));
        for limit in Limit::ALL {
            out.put_u64_le(self.limits.maximum(limit) as u64);
        }
        put_text(out, &self.software);
    }

    fn read(reader: &mut Reader) -> Result<ServerHello, WireError> {
        let version = reader.u16("version")?;
        let chosen = VersionRange { min: version, max: version };
        CLIENT_VERSIONS.highest_common(chosen)?;
        let broker = BrokerId(reader.u64("broker id")?);
        let max_requests = reader.u32("number of requests")?;
        let mut limits = Limits::default();
        // A newer broker may have limits that are not known here.
        for index in 0..reader.u8("number of limits")? {
            let maximum = usize::try_from(reader.u64("limits")?).unwrap_or(usize::MAX);
            if let Some(limit) = Limit::ALL.get(usize::from(index)) {
                limits = limits.lowered(*limit, maximum);
            }
        }
        Ok(ServerHello { version, broker, max_requests, limits, software: reader.text("software")? })
    }
}

/// A frame from a client to its broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientFrame {
    /// First.
    Hello(ClientHello),
    /// Subscribe, advertise and the like; answered with [`ServerFrame::Reply`].
    Request {
        /// The number of the request.
        request: RequestId,
        /// What is asked.
        command: Command,
    },
    /// Publish; answered with [`ServerFrame::Reply`].
    Publish {
        /// The number of the request.
        request: RequestId,
        /// The event in its own layout, not yet checked.
        event: Bytes,
    },
    /// How are you? Answered with [`ServerFrame::Status`].
    StatusRequest {
        /// The number of the request.
        request: RequestId,
    },
    /// Room for this many more deliveries. There is none before the first of these.
    Credit {
        /// How many more.
        deliveries: u32,
    },
    /// Last.
    Goodbye(Goodbye),
}

impl ClientFrame {
    /// Reads a frame's content. An event in it is a piece of the frame's and is not checked.
    ///
    /// # Errors
    /// If the content does not keep to its layout and limits, or no client may send such a frame.
    pub fn decode(frame: Frame) -> Result<ClientFrame, WireError> {
        let kind = frame.kind;
        let mut reader = Reader::new(kind, frame.content);
        match kind {
            Kind::ClientHello => Ok(ClientFrame::Hello(ClientHello::read(&mut reader)?)),
            Kind::Request => {
                let (request, command) = codec::read(kind, reader.peek())?;
                check_text(kind, "name", name_of(&command))?;
                Ok(ClientFrame::Request { request, command })
            }
            Kind::Publish => {
                let request = read_request_id(&mut reader)?;
                Ok(ClientFrame::Publish { request, event: read_event_bytes(kind, reader)? })
            }
            Kind::StatusRequest => {
                let request = read_request_id(&mut reader)?;
                reader.finish()?;
                Ok(ClientFrame::StatusRequest { request })
            }
            Kind::Credit => {
                let deliveries = reader.u32("deliveries")?;
                reader.finish()?;
                Ok(ClientFrame::Credit { deliveries })
            }
            Kind::Goodbye => Ok(ClientFrame::Goodbye(codec::read(kind, reader.peek())?)),
            _ => Err(WireError::Misplaced { kind, traffic: Traffic::FromClient }),
        }
    }

    /// Appends the frame.
    ///
    /// # Errors
    /// If a name, filter or event is beyond the limits; `out` is then as it was.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), WireError> {
        match self {
            ClientFrame::Hello(hello) => put_frame(out, Kind::ClientHello, |out| {
                hello.put(out);
                Ok(())
            }),
            ClientFrame::Request { request, command } => put_frame(out, Kind::Request, |out| {
                check_text(Kind::Request, "name", name_of(command))?;
                codec::put(out, Kind::Request, &(request, command))
            }),
            ClientFrame::Publish { request, event } => encode_publish(*request, event, out),
            ClientFrame::StatusRequest { request } => put_frame(out, Kind::StatusRequest, |out| {
                out.put_u64_le(request.0);
                Ok(())
            }),
            ClientFrame::Credit { deliveries } => put_frame(out, Kind::Credit, |out| {
                out.put_u32_le(*deliveries);
                Ok(())
            }),
            ClientFrame::Goodbye(goodbye) => goodbye.put_frame(out),
        }
    }
}

/// Appends the frame of a publication.
///
/// # Errors
/// If the event is beyond the limits; `out` is then as it was.
pub fn encode_publish(request: RequestId, event: &[u8], out: &mut BytesMut) -> Result<(), WireError> {
    put_frame(out, Kind::Publish, |out| {
        out.put_u64_le(request.0);
        out.put_slice(event);
        Ok(())
    })
}

fn name_of(command: &Command) -> &str {
    match command {
        Command::Subscribe { name, .. }
        | Command::Unsubscribe { name }
        | Command::Advertise { name, .. }
        | Command::Unadvertise { name } => name,
    }
}

fn read_request_id(reader: &mut Reader) -> Result<RequestId, WireError> {
    Ok(RequestId(reader.u64("number of the request")?))
}

/// A frame from a broker to its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerFrame {
    /// First: accepted.
    Hello(ServerHello),
    /// First: refused.
    HelloRefused(HelloRefused),
    /// The answer to a request.
    Reply {
        /// The number of the request.
        request: RequestId,
        /// The answer.
        reply: Reply,
    },
    /// The answers to publications whose numbers follow each other; their events' sequences do too, and else the receipts are
    /// the same.
    Receipts {
        /// The number of the first request.
        first: RequestId,
        /// How many they are, at least one.
        count: u32,
        /// The receipt of the first.
        receipt: Receipt,
    },
    /// The answer to [`ClientFrame::StatusRequest`].
    Status {
        /// The number of the request.
        request: RequestId,
        /// The status as a JSON object.
        json: String,
    },
    /// An event; it is not checked again by this crate.
    Delivery(Delivery),
    /// Last.
    Goodbye(Goodbye),
}

impl ServerFrame {
    /// Reads a frame's content. An event in it is a piece of the frame's and is not checked.
    ///
    /// # Errors
    /// If the content does not keep to its layout and limits, or no broker may send such a frame to a client.
    pub fn decode(frame: Frame) -> Result<ServerFrame, WireError> {
        ServerFrame::decode_sharing(frame, &mut Names::default())
    }

    /// As [`ServerFrame::decode`]; a delivery shares its names with those before it on the same connection.
    ///
    /// # Errors
    /// As [`ServerFrame::decode`].
    pub fn decode_sharing(frame: Frame, names: &mut Names) -> Result<ServerFrame, WireError> {
        let kind = frame.kind;
        let mut reader = Reader::new(kind, frame.content);
        match kind {
            Kind::ServerHello => Ok(ServerFrame::Hello(ServerHello::read(&mut reader)?)),
            Kind::HelloRefused => Ok(ServerFrame::HelloRefused(HelloRefused::read(&mut reader)?)),
            Kind::Reply => {
                let (request, reply) = codec::read(kind, reader.peek())?;
                Ok(ServerFrame::Reply { request, reply })
            }
            Kind::Receipts => read_receipts(reader),
            Kind::Status => {
                let request = read_request_id(&mut reader)?;
                let json = String::from_utf8(reader.rest().into())
                    .map_err(|_| WireError::Malformed { kind, what: "the status is not UTF-8".into() })?;
                Ok(ServerFrame::Status { request, json })
            }
            Kind::Delivery => Ok(ServerFrame::Delivery(read_delivery(kind, reader, names)?)),
            Kind::Goodbye => Ok(ServerFrame::Goodbye(codec::read(kind, reader.peek())?)),
            _ => Err(WireError::Misplaced { kind, traffic: Traffic::ToClient }),
        }
    }

    /// Appends the frame.
    ///
    /// # Errors
    /// If a reply, a status, an event or the names with it are beyond the limits; `out` is then as it was.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), WireError> {
        match self {
            ServerFrame::Hello(hello) => put_frame(out, Kind::ServerHello, |out| {
                hello.put(out);
                Ok(())
            }),
            ServerFrame::HelloRefused(refused) => put_frame(out, Kind::HelloRefused, |out| {
                refused.put(out);
                Ok(())
            }),
            ServerFrame::Reply { request, reply } => {
                put_frame(out, Kind::Reply, |out| codec::put(out, Kind::Reply, &(request, reply)))
            }
            ServerFrame::Status { request, json } => put_frame(out, Kind::Status, |out| {
                out.put_u64_le(request.0);
                out.put_slice(json.as_bytes());
                Ok(())
            }),
            ServerFrame::Receipts { first, count, receipt } => put_frame(out, Kind::Receipts, |out| {
                out.put_u64_le(first.0);
                out.put_u32_le(*count);
                out.put_u32_le(receipt.destinations);
                out.put_u8(receipt.complete.into());
                put_event_id(out, receipt.id);
                Ok(())
            }),
            ServerFrame::Delivery(delivery) => encode_delivery(delivery, out),
            ServerFrame::Goodbye(goodbye) => goodbye.put_frame(out),
        }
    }
}

fn read_receipts(mut reader: Reader) -> Result<ServerFrame, WireError> {
    let first = RequestId(reader.u64("number of the first request")?);
    let count = reader.u32("number of receipts")?;
    let destinations = reader.u32("destinations")?;
    let complete = reader.u8("complete")?;
    if count == 0 || complete > 1 {
        return Err(reader.malformed("no receipt, or neither complete nor not"));
    }
    let id = read_event_id(&mut reader)?;
    let last = u64::from(count - 1);
    if first.0.checked_add(last).is_none() || id.sequence.checked_add(last).is_none() {
        return Err(reader.malformed("more receipts than there are numbers"));
    }
    reader.finish()?;
    Ok(ServerFrame::Receipts { first, count, receipt: Receipt { id, destinations, complete: complete == 1 } })
}

/// Appends a delivery as a frame.
///
/// # Errors
/// If the event or the names with it are beyond the limits; `out` is then as it was.
pub fn encode_delivery(delivery: &Delivery, out: &mut BytesMut) -> Result<(), WireError> {
    put_frame(out, Kind::Delivery, |out| put_delivery(delivery, out))
}

fn put_delivery(delivery: &Delivery, out: &mut BytesMut) -> Result<(), WireError> {
    let kind = Kind::Delivery;
    put_event_id(out, delivery.id);
    let start = out.len();
    put_varint(out, delivery.subscriptions.len() as u64);
    for name in delivery.subscriptions.iter() {
        check_text(kind, "name", name)?;
        put_varint(out, name.len() as u64);
        out.put_slice(name.as_bytes());
    }
    check_names(out.len() - start)?;
    check_event(kind, &delivery.event)?;
    out.put_slice(&delivery.event);
    Ok(())
}

fn read_delivery(kind: Kind, mut reader: Reader, names: &mut Names) -> Result<Delivery, WireError> {
    let id = read_event_id(&mut reader)?;
    let subscriptions = names.read(&mut reader)?;
    Ok(Delivery { id, event: read_event_bytes(kind, reader)?, subscriptions })
}
