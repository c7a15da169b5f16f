//! Names of subscriptions in deliveries: from one delivery to the next they are mostly the same.

use crate::layout::{Reader, varint_size};
use crate::{Kind, MAX_DELIVERY_NAMES, MAX_NAME_BYTES, WireError};
use std::sync::Arc;

/// Lists that are kept, and how many bytes one of them may have.
const KEPT: usize = 16;
const KEPT_BYTES: usize = 4 << 10;

/// The lists of names that the latest deliveries of a connection had, so that they share them.
#[derive(Debug, Default)]
pub struct Names {
    /// The latest first.
    lists: Vec<List>,
}

#[derive(Debug)]
struct List {
    bytes: Box<[u8]>,
    names: Arc<[Arc<str>]>,
}

impl Names {
    /// Reads a list.
    pub(crate) fn read(&mut self, reader: &mut Reader) -> Result<Arc<[Arc<str>]>, WireError> {
        // No list's bytes begin with those of another: what begins with the bytes of a list is that list.
        let known = self.lists.iter().position(|list| reader.peek().starts_with(&list.bytes));
        let Some(place) = known else { return self.read_new(reader) };
        self.lists[..=place].rotate_right(1);
        let list = &self.lists[0];
        reader.skip(list.bytes.len(), "names")?;
        Ok(Arc::clone(&list.names))
    }

    fn read_new(&mut self, reader: &mut Reader) -> Result<Arc<[Arc<str>]>, WireError> {
        let start = reader.peek()[..reader.peek().len().min(KEPT_BYTES)].to_vec();
        let count = reader.count("names", MAX_DELIVERY_NAMES)?;
        let mut size = varint_size(count as u64);
        let mut names: Vec<Arc<str>> = Vec::new();
        for _ in 0..count {
            let length = reader.count("bytes of a name", MAX_NAME_BYTES)?;
            size += varint_size(length as u64) + length;
            check_names(size)?;
            let name = reader.bytes(length, "name")?;
            let name = std::str::from_utf8(&name).map_err(|_| reader.malformed("a name is not UTF-8"))?;
            names.push(name.into());
        }
        let names: Arc<[Arc<str>]> = names.into();
        if let Some(bytes) = start.get(..size) {
            self.lists.truncate(KEPT - 1);
            self.lists.insert(0, List { bytes: bytes.into(), names: Arc::clone(&names) });
        }
        Ok(names)
    }
}

pub(crate) fn check_names(found: usize) -> Result<(), WireError> {
    if found <= MAX_DELIVERY_NAMES {
        return Ok(());
    }
    let (found, limit) = (found as u64, MAX_DELIVERY_NAMES as u64);
    Err(WireError::TooMany { kind: Kind::Delivery, what: "bytes of names", found, limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::put_varint;
    use bytes::{BufMut, Bytes, BytesMut};

    /// Reads a list of names with something behind it, which must be left.
    fn read(names: &mut Names, list: &[&str]) -> Arc<[Arc<str>]> {
        let mut bytes = BytesMut::new();
        put_varint(&mut bytes, list.len() as u64);
        for name in list {
            put_varint(&mut bytes, name.len() as u64);
            bytes.put_slice(name.as_bytes());
        }
        bytes.put_slice(b"rest");
        let mut reader = Reader::new(Kind::Delivery, bytes.freeze());
        let read = names.read(&mut reader).unwrap();
        assert_eq!(reader.peek(), b"rest");
        read
    }

    #[test]
    fn lists_are_shared_while_they_come_again_and_read_rightly_always() {
        let mut names = Names::default();
        let long = "x".repeat(MAX_NAME_BYTES);
        let too_long_to_keep = vec![&*long; KEPT_BYTES / MAX_NAME_BYTES];
        let lists: [&[&str]; 6] = [&["a"], &["a", "b"], &[], &["ab"], &too_long_to_keep, &["", "a"]];
        for round in 0..3 {
            for list in lists {
                let read_now = read(&mut names, list);
                assert!(read_now.iter().map(|name| &**name).eq(list.iter().copied()), "{list:?}, round {round}");
            }
        }
        let (first, again) = (read(&mut names, &["a"]), read(&mut names, &["a"]));
        assert!(Arc::ptr_eq(&first, &again));
        for number in 0..KEPT {
            read(&mut names, &[&number.to_string()]);
        }
        assert!(!Arc::ptr_eq(&first, &read(&mut names, &["a"])), "what has not come for long is forgotten");
        assert_eq!(names.lists.len(), KEPT);
    }

    #[test]
    fn what_is_no_list_is_refused_and_leaves_nothing() {
        let mut names = Names::default();
        for bytes in [&[1][..], &[1, 2, 0xff, 0xff], &[2, 1, b'a'], &[1, 3, b'a']] {
            assert!(names.read(&mut Reader::new(Kind::Delivery, Bytes::copy_from_slice(bytes))).is_err(), "{bytes:?}");
        }
        assert!(names.lists.is_empty());
    }
}
