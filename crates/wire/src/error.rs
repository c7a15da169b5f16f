//! What can be wrong with bytes, or with what is to become bytes.

use crate::{Kind, Traffic, VersionRange};

/// Why bytes cannot be read, or a value cannot be sent. After an error in reading, the stream is of no more use: close it and
/// tell the peer this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A frame that has not even a kind.
    #[error("an empty frame")]
    EmptyFrame,
    /// A kind of frame that this version does not know.
    #[error("unknown kind of frame {kind:#04x} on a {traffic} stream; if the peer speaks this protocol, it is newer")]
    UnknownKind {
        /// The kind as it came.
        kind: u8,
        /// Where it came.
        traffic: Traffic,
    },
    /// A frame that has no place where it came.
    #[error("a {kind} frame has no place on a {traffic} stream")]
    Misplaced {
        /// The kind.
        kind: Kind,
        /// Where it came.
        traffic: Traffic,
    },
    /// A frame beyond the limit of its kind.
    #[error("a {kind} frame of {found} bytes: at most {limit} are allowed")]
    TooLong {
        /// The kind.
        kind: Kind,
        /// Bytes of content that were announced, or that would have been sent.
        found: usize,
        /// Bytes of content allowed.
        limit: usize,
    },
    /// Too many of something in a frame.
    #[error("a {kind} frame with {found} {what}: at most {limit} are allowed")]
    TooMany {
        /// The kind.
        kind: Kind,
        /// Of what there are too many, in the plural.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many may be.
        limit: u64,
    },
    /// A text in a frame beyond its limit.
    #[error("a {kind} frame with a {what} of {found} bytes: at most {limit} are allowed")]
    TextTooLong {
        /// The kind.
        kind: Kind,
        /// Which text.
        what: &'static str,
        /// Its bytes.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// Content that ends in the middle of something.
    #[error("a {kind} frame that ends within its {what}")]
    Truncated {
        /// The kind.
        kind: Kind,
        /// What was being read.
        what: &'static str,
    },
    /// Bytes that break the layout.
    #[error("a malformed {kind} frame: {what}")]
    Malformed {
        /// The kind.
        kind: Kind,
        /// What is wrong.
        what: String,
    },
    /// Bytes after the end of what a frame says.
    #[error("a {kind} frame with {count} bytes left over")]
    LeftOver {
        /// The kind.
        kind: Kind,
        /// How many.
        count: usize,
    },
    /// An event frame in a layout that this version does not know.
    #[error("an event frame of layout version {found}: only version {known} is known")]
    EventVersion {
        /// The version it has.
        found: u8,
        /// The version this crate reads.
        known: u8,
    },
    /// An event frame in a delivery mode that this version does not know.
    #[error("an event frame in delivery mode {found}: only mode {known} (best effort) is known")]
    EventMode {
        /// The mode it has.
        found: u8,
        /// The mode this crate knows.
        known: u8,
    },
    /// No version of the protocol is spoken by both sides.
    #[error("no common protocol version: this side speaks {ours}, the other {theirs}; upgrade the older of the two")]
    NoCommonVersion {
        /// What this side speaks.
        ours: VersionRange,
        /// What the other side speaks.
        theirs: VersionRange,
    },
}
