//! Reading and writing content that is laid out by hand: fixed little-endian integers, varints, texts.
//!
//! A varint is LEB128: seven bits a byte, the lowest first, the high bit set in all bytes but the last. Only the shortest form
//! of a number is accepted.

use crate::{Kind, MAX_TEXT, ShortText, WireError};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Bytes of the longest varint.
const MAX_VARINT: usize = 10;

/// What is left of a frame's content.
pub(crate) struct Reader {
    kind: Kind,
    rest: Bytes,
}

impl Reader {
    pub(crate) fn new(kind: Kind, content: Bytes) -> Reader {
        Reader { kind, rest: content }
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, WireError> {
        self.rest.try_get_u8().map_err(|_| self.truncated(what))
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, WireError> {
        self.rest.try_get_u16_le().map_err(|_| self.truncated(what))
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, WireError> {
        self.rest.try_get_u32_le().map_err(|_| self.truncated(what))
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, WireError> {
        self.rest.try_get_u64_le().map_err(|_| self.truncated(what))
    }

    pub(crate) fn varint(&mut self, what: &'static str) -> Result<u64, WireError> {
        let mut value = 0;
        for index in 0..MAX_VARINT {
            let byte = *self.rest.get(index).ok_or_else(|| self.truncated(what))?;
            let bits = u64::from(byte & 0x7f);
            if index == MAX_VARINT - 1 && bits > 1 {
                return Err(self.malformed(format!("{what} exceeds 64 bits")));
            }
            value |= bits << (7 * index);
            if byte & 0x80 == 0 {
                if byte == 0 && index > 0 {
                    return Err(self.malformed(format!("{what} is not in its shortest form")));
                }
                self.rest.advance(index + 1);
                return Ok(value);
            }
        }
        Err(self.malformed(format!("{what} exceeds 64 bits")))
    }

    /// A count of things that take at least one byte each: at most `limit`, and no more than bytes are left, so that it is
    /// safe to allocate for it.
    pub(crate) fn count(&mut self, what: &'static str, limit: usize) -> Result<usize, WireError> {
        let found = self.varint(what)?;
        if found > limit as u64 {
            return Err(WireError::TooMany { kind: self.kind, what, found, limit: limit as u64 });
        }
        if found > self.rest.len() as u64 {
            return Err(self.truncated(what));
        }
        Ok(found as usize)
    }

    /// The next bytes; they share the content's memory.
    pub(crate) fn bytes(&mut self, count: usize, what: &'static str) -> Result<Bytes, WireError> {
        if count > self.rest.len() { Err(self.truncated(what)) } else { Ok(self.rest.split_to(count)) }
    }

    /// Passes over the next bytes.
    pub(crate) fn skip(&mut self, count: usize, what: &'static str) -> Result<(), WireError> {
        if count > self.rest.len() {
            return Err(self.truncated(what));
        }
        self.rest.advance(count);
        Ok(())
    }

    /// All that is left, to look at.
    pub(crate) fn peek(&self) -> &[u8] {
        &self.rest
    }

    /// A text after its length in two bytes.
    pub(crate) fn text(&mut self, what: &'static str) -> Result<ShortText, WireError> {
        let length = usize::from(self.u16(what)?);
        if length > MAX_TEXT {
            return Err(WireError::TextTooLong { kind: self.kind, what, found: length, limit: MAX_TEXT });
        }
        let bytes = self.bytes(length, what)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| self.malformed(format!("{what} is not UTF-8")))?;
        Ok(ShortText::clip(text))
    }

    /// All that is left; it shares the content's memory.
    pub(crate) fn rest(self) -> Bytes {
        self.rest
    }

    /// Nothing may be left.
    pub(crate) fn finish(self) -> Result<(), WireError> {
        match self.rest.len() {
            0 => Ok(()),
            count => Err(WireError::LeftOver { kind: self.kind, count }),
        }
    }

    pub(crate) fn malformed(&self, what: impl Into<String>) -> WireError {
        WireError::Malformed { kind: self.kind, what: what.into() }
    }

    fn truncated(&self, what: &'static str) -> WireError {
        WireError::Truncated { kind: self.kind, what }
    }
}

pub(crate) fn put_varint(out: &mut BytesMut, mut value: u64) {
    while value >= 0x80 {
        out.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

/// Bytes that [`put_varint`] writes.
pub(crate) fn varint_size(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

pub(crate) fn put_text(out: &mut BytesMut, text: &ShortText) {
    let length = u16::try_from(text.as_str().len()).expect("a short text is short");
    out.put_u16_le(length);
    out.put_slice(text.as_str().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<u64, WireError> {
        let mut reader = Reader::new(Kind::Event, Bytes::copy_from_slice(bytes));
        let value = reader.varint("number")?;
        reader.finish()?;
        Ok(value)
    }

    #[test]
    fn varints_return_and_have_one_form() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1 << shift) - 1, (1 << shift) + 1, u64::MAX >> shift] {
                let mut bytes = BytesMut::new();
                put_varint(&mut bytes, value);
                assert_eq!(bytes.len(), varint_size(value), "{value}");
                assert_eq!(read(&bytes), Ok(value));
                assert!(matches!(read(&bytes[..bytes.len() - 1]), Err(WireError::Truncated { .. })));
            }
        }
        let overlong = [[0x80, 0x00], [0xff, 0x00]];
        assert!(overlong.iter().all(|bytes| matches!(read(bytes), Err(WireError::Malformed { .. }))));
        let mut too_large = [0xff; 10];
        too_large[9] = 2;
        assert!(matches!(read(&too_large), Err(WireError::Malformed { .. })));
        assert!(matches!(read(&[0xff; 11]), Err(WireError::Malformed { .. })));
    }

    #[test]
    fn counts_are_bounded_by_limit_and_by_what_is_there() {
        let count = |bytes: &'static [u8]| Reader::new(Kind::Event, Bytes::from_static(bytes)).count("things", 3);
        assert_eq!(count(&[2, 0, 0]), Ok(2));
        assert!(matches!(count(&[2, 0]), Err(WireError::Truncated { .. })));
        assert!(matches!(count(&[4, 0, 0, 0, 0]), Err(WireError::TooMany { found: 4, limit: 3, .. })));
    }
}
