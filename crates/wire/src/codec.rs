//! bincode, and nothing else in the project knows of it.

use crate::{Kind, MAX_CONTROL, ShortText, WireError};
use bincode::config::{Configuration, Limit, LittleEndian, Varint};
use bincode::enc::write::{SizeWriter, Writer};
use bincode::error::EncodeError;
use bytes::BytesMut;
use serde::{Serialize, de::DeserializeOwned};

/// What a decoder may claim. bincode counts integers by their full width however short they stand in the bytes, and no
/// integer of a list is wider than eight bytes: content within [`MAX_CONTROL`] never fails for this limit (the last term is
/// for a digest), while a length that lies by more does, before anything is allocated for it. Lists grow as their elements
/// are read, whatever length they claim. An empty filter is a byte on the wire and 32 in memory, thrice that while the list
/// grows: decoding takes less than a hundred times the memory of its input, besides this limit.
const MAX_CLAIM: usize = 8 * MAX_CONTROL + 64;

const CONFIGURATION: Configuration<LittleEndian, Varint, Limit<MAX_CLAIM>> =
    bincode::config::standard().with_limit::<MAX_CLAIM>();

struct Appender<'a>(&'a mut BytesMut);

impl Writer for Appender<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Appends a value.
pub(crate) fn put<T: Serialize>(out: &mut BytesMut, kind: Kind, value: &T) -> Result<(), WireError> {
    bincode::serde::encode_into_writer(value, Appender(out), CONFIGURATION).map_err(|error| malformed(kind, &error))
}

/// Bytes that [`put`] appends. A value that cannot be encoded has none.
pub(crate) fn size<T: Serialize>(value: &T) -> usize {
    let mut counter = SizeWriter::default();
    match bincode::serde::encode_into_writer(value, &mut counter, CONFIGURATION) {
        Ok(()) => counter.bytes_written,
        Err(_) => 0,
    }
}

/// Reads a value that must fill `content`.
pub(crate) fn read<T: DeserializeOwned>(kind: Kind, content: &[u8]) -> Result<T, WireError> {
    let (value, used) =
        bincode::serde::decode_from_slice(content, CONFIGURATION).map_err(|error| malformed(kind, &error))?;
    match content.len() - used {
        0 => Ok(value),
        count => Err(WireError::LeftOver { kind, count }),
    }
}

/// The error's text may quote what came: it is clipped.
fn malformed(kind: Kind, error: &impl ToString) -> WireError {
    WireError::Malformed { kind, what: ShortText::clip(error.to_string()).to_string() }
}
