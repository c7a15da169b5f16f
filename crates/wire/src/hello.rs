//! What is said before anything else. These layouts are frozen: they must be understood by brokers of any version. A later
//! version may only append to them; what is appended is skipped here.

use crate::frame::put_frame;
use crate::layout::{Reader, put_text};
use crate::{BROKER_VERSIONS, Frame, Kind, ShortText, WireError};
use bytes::{BufMut, BytesMut};
use enroute_broker::{BrokerId, Role};
use std::fmt;

/// Bytes that a hello of any kind, its answer or a goodbye may have.
pub const MAX_HELLO: usize = 4 * 1024;

/// Versions of a protocol from the lowest to the highest spoken, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionRange {
    /// The lowest.
    pub min: u16,
    /// The highest.
    pub max: u16,
}

impl VersionRange {
    /// The highest version that both sides speak.
    ///
    /// # Errors
    /// [`WireError::NoCommonVersion`], with `self` as ours.
    pub fn highest_common(self, theirs: VersionRange) -> Result<u16, WireError> {
        let version = self.max.min(theirs.max);
        if version >= self.min.max(theirs.min) {
            Ok(version)
        } else {
            Err(WireError::NoCommonVersion { ours: self, theirs })
        }
    }

    pub(crate) fn put(self, out: &mut BytesMut) {
        out.put_u16_le(self.min);
        out.put_u16_le(self.max);
    }

    /// Reads a range and requires a version in common with `ours`: only then may the rest be looked at.
    pub(crate) fn read(reader: &mut Reader, ours: VersionRange) -> Result<VersionRange, WireError> {
        let theirs = VersionRange { min: reader.u16("lowest version")?, max: reader.u16("highest version")? };
        if theirs.min > theirs.max {
            return Err(reader.malformed(format!("the versions {theirs} are upside down")));
        }
        ours.highest_common(theirs)?;
        Ok(theirs)
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max { write!(f, "{}", self.min) } else { write!(f, "{} to {}", self.min, self.max) }
    }
}

/// A broker introduces itself. Layout: lowest and highest version, two bytes each; broker id, incarnation, start nonce,
/// dialling broker, dial, eight bytes each; length of the software's name in two bytes; the name; the role, one byte: 0 core, 1
/// leaf, 2 parent; whether it can do without the link, one byte: 0 or 1. A hello that ends before the role is that of a core broker, and
/// one that ends before the last byte cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The versions it speaks.
    pub versions: VersionRange,
    /// Its id.
    pub broker: BrokerId,
    /// Its incarnation.
    pub incarnation: u64,
    /// Its start nonce.
    pub start_nonce: u64,
    /// The broker that dialled this connection: the speaker's id in the hello, the other's in the answer.
    pub dialled_by: BrokerId,
    /// The how-manieth dial of the one who dialled it is; the answer repeats it. With `dialled_by` it names the link.
    pub dial: u64,
    /// Name and version of the software, for people.
    pub software: ShortText,
    /// What it is on this link. Only a leaf dials its parent, and that answers as such.
    pub role: Role,
    /// Whether it has another path to whom it has dialled, and may be refused if there is no room for more links. Of an answer it
    /// says nothing.
    pub spare: bool,
}

impl Hello {
    pub(crate) fn put(&self, out: &mut BytesMut) {
        self.versions.put(out);
        for number in [self.broker.0, self.incarnation, self.start_nonce, self.dialled_by.0, self.dial] {
            out.put_u64_le(number);
        }
        put_text(out, &self.software);
        out.put_u8(match self.role {
            Role::Core => 0,
            Role::Leaf => 1,
            Role::Parent => 2,
        });
        out.put_u8(u8::from(self.spare));
    }

    /// Fails with [`WireError::NoCommonVersion`] before it looks at anything that a later version might have changed.
    pub(crate) fn read(reader: &mut Reader) -> Result<Hello, WireError> {
        Ok(Hello {
            versions: VersionRange::read(reader, BROKER_VERSIONS)?,
            broker: BrokerId(reader.u64("broker id")?),
            incarnation: reader.u64("incarnation")?,
            start_nonce: reader.u64("start nonce")?,
            dialled_by: BrokerId(reader.u64("dialling broker")?),
            dial: reader.u64("dial")?,
            software: reader.text("software")?,
            role: read_role(reader)?,
            spare: read_spare(reader)?,
        })
    }
}

fn read_role(reader: &mut Reader) -> Result<Role, WireError> {
    if reader.is_empty() {
        return Ok(Role::Core);
    }
    match reader.u8("role")? {
        0 => Ok(Role::Core),
        1 => Ok(Role::Leaf),
        2 => Ok(Role::Parent),
        byte => Err(reader.malformed(format!("unknown role {byte}"))),
    }
}

fn read_spare(reader: &mut Reader) -> Result<bool, WireError> {
    if reader.is_empty() {
        return Ok(false);
    }
    match reader.u8("spare")? {
        0 => Ok(false),
        1 => Ok(true),
        byte => Err(reader.malformed(format!("{byte} is neither yes nor no"))),
    }
}

/// The answer to a [`Hello`] that is accepted. Layout: the version, two bytes; a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelloAck {
    /// The version that is spoken from now on: the highest that both know.
    pub version: u16,
    /// The answering broker's own hello.
    pub hello: Hello,
}

impl HelloAck {
    pub(crate) fn put(&self, out: &mut BytesMut) {
        out.put_u16_le(self.version);
        self.hello.put(out);
    }

    pub(crate) fn read(reader: &mut Reader) -> Result<HelloAck, WireError> {
        let version = reader.u16("version")?;
        let hello = Hello::read(reader)?;
        let expected = BROKER_VERSIONS.highest_common(hello.versions)?;
        if version != expected {
            return Err(reader.malformed(format!("version {version} was chosen instead of {expected}")));
        }
        Ok(HelloAck { version, hello })
    }
}

/// Why a hello is refused, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalCode {
    /// No version in common.
    Version,
    /// Not on the allow-list.
    NotAllowed,
    /// The caller has called itself.
    Oneself,
    /// Going down.
    ShuttingDown,
    /// The hello could not be read.
    Unreadable,
    /// Too many connections; another time perhaps.
    Busy,
    /// A reason that this version does not know.
    Other(u8),
}

impl RefusalCode {
    fn to_byte(self) -> u8 {
        match self {
            RefusalCode::Version => 1,
            RefusalCode::NotAllowed => 2,
            RefusalCode::Oneself => 3,
            RefusalCode::ShuttingDown => 4,
            RefusalCode::Unreadable => 5,
            RefusalCode::Busy => 6,
            RefusalCode::Other(byte) => byte,
        }
    }

    fn from_byte(byte: u8) -> RefusalCode {
        match byte {
            1 => RefusalCode::Version,
            2 => RefusalCode::NotAllowed,
            3 => RefusalCode::Oneself,
            4 => RefusalCode::ShuttingDown,
            5 => RefusalCode::Unreadable,
            6 => RefusalCode::Busy,
            _ => RefusalCode::Other(byte),
        }
    }
}

/// The answer to a hello that is not accepted; the stream ends after it. Layout: the code, one byte; length of the text in two
/// bytes; the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelloRefused {
    /// Why, for programs.
    pub code: RefusalCode,
    /// Why, for people.
    pub text: ShortText,
}

impl HelloRefused {
    /// A refusal with its reason.
    pub fn new(code: RefusalCode, text: impl Into<String>) -> HelloRefused {
        HelloRefused { code, text: ShortText::clip(text) }
    }

    pub(crate) fn put(&self, out: &mut BytesMut) {
        out.put_u8(self.code.to_byte());
        put_text(out, &self.text);
    }

    pub(crate) fn read(reader: &mut Reader) -> Result<HelloRefused, WireError> {
        Ok(HelloRefused { code: RefusalCode::from_byte(reader.u8("code")?), text: reader.text("text")? })
    }
}

impl From<&WireError> for HelloRefused {
    /// The refusal of a hello that could not be read. Seen from the other side: its versions come first.
    fn from(error: &WireError) -> HelloRefused {
        match error {
            WireError::NoCommonVersion { ours, theirs } => {
                let seen_from_there = WireError::NoCommonVersion { ours: *theirs, theirs: *ours };
                HelloRefused::new(RefusalCode::Version, seen_from_there.to_string())
            }
            WireError::EmptyFrame
            | WireError::UnknownKind { .. }
            | WireError::Misplaced { .. }
            | WireError::TooLong { .. }
            | WireError::TooMany { .. }
            | WireError::TextTooLong { .. }
            | WireError::Truncated { .. }
            | WireError::Malformed { .. }
            | WireError::LeftOver { .. }
            | WireError::EventVersion { .. }
            | WireError::EventMode { .. } => HelloRefused::new(RefusalCode::Unreadable, error.to_string()),
        }
    }
}

/// The first frame of a data stream: to which link it belongs. Layout: eight bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHello {
    /// As in the link's [`Hello`].
    pub dialled_by: BrokerId,
    /// As in the link's [`Hello`].
    pub dial: u64,
}

impl DataHello {
    pub(crate) fn put_frame(&self, out: &mut BytesMut) -> Result<(), WireError> {
        put_frame(out, Kind::DataHello, |out| {
            out.put_u64_le(self.dialled_by.0);
            out.put_u64_le(self.dial);
            Ok(())
        })
    }

    pub(crate) fn read(frame: &Frame) -> Result<DataHello, WireError> {
        let mut reader = Reader::new(frame.kind, frame.content.clone());
        Ok(DataHello { dialled_by: BrokerId(reader.u64("dialling broker")?), dial: reader.u64("dial")? })
    }
}
