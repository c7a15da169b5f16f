//! The canonical form of filters as bytes.

use crate::Filter;

/// Why bytes are no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed filter: {0}")]
pub struct DecodeError(pub &'static str);

impl Filter {
    /// The canonical form as bytes, versioned; equal filters give equal bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        todo!()
    }
    /// Reads and checks what [`Filter::to_bytes`] wrote; anything not canonical is an error.
    pub fn from_bytes(bytes: &[u8]) -> Result<Filter, DecodeError> {
        let _ = bytes;
        todo!()
    }
}
