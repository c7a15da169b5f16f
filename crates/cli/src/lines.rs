//! Lines of a file or of standard input, numbered and bounded.

use crate::failure::Failure;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The longest line that is read. Larger than any event or filter within its limits, so that those get an error of their own.
pub(crate) const LONGEST: usize = 16 << 20;

const BUFFER: usize = 64 << 10;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads line by line, gzip or plain.
pub(crate) struct Lines {
    reader: BufReader<Box<dyn Read + Send>>,
    number: u64,
    buffer: Vec<u8>,
}

/// A line, or why it is none.
pub(crate) struct Line<'a> {
    /// Counts from 1.
    pub(crate) number: u64,
    pub(crate) text: Result<&'a str, String>,
}

impl Lines {
    /// Opens a file; none or `-` is standard input. What starts as gzip does is decompressed. Nothing is read yet.
    pub(crate) fn open(file: Option<&Path>) -> Result<Lines, Failure> {
        let reader: Box<dyn Read + Send> = match file {
            Some(path) if path != Path::new("-") => {
                let file = File::open(path);
                Box::new(file.map_err(|error| Failure::new(format!("cannot open {}", path.display())).because(&error))?)
            }
            _ => Box::new(io::stdin()),
        };
        Ok(Lines::of(reader))
    }

    pub(crate) fn of(reader: Box<dyn Read + Send>) -> Lines {
        Lines { reader: BufReader::with_capacity(BUFFER, reader), number: 0, buffer: Vec::new() }
    }

    fn decompress_if_gzip(&mut self) -> io::Result<()> {
        if self.reader.fill_buf()?.starts_with(&GZIP_MAGIC) {
            let compressed = std::mem::replace(&mut self.reader, BufReader::new(Box::new(io::empty())));
            self.reader = BufReader::with_capacity(BUFFER, Box::new(MultiGzDecoder::new(compressed)));
        }
        Ok(())
    }

    /// The next line without its end; none at the end. A line that is too long or no UTF-8 is skipped to its end.
    ///
    /// # Errors
    /// What the operating system or the decompression reports; there is no next line after that.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if self.number == 0 {
            self.decompress_if_gzip()?;
        }
        self.buffer.clear();
        let mut length = 0;
        loop {
            let available = self.reader.fill_buf()?;
            if available.is_empty() {
                break;
            }
            let end = available.iter().position(|&byte| byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            length += part.len();
            if length <= LONGEST {
                self.buffer.extend_from_slice(part);
            }
            let consumed = part.len() + usize::from(end.is_some());
            self.reader.consume(consumed);
            if end.is_some() {
                return Ok(Some(self.line(length)));
            }
        }
        Ok(if length == 0 { None } else { Some(self.line(length)) })
    }

    /// Whether the next line is here already, so that [`Lines::next`] does not wait.
    pub(crate) fn is_ready(&self) -> bool {
        self.reader.buffer().contains(&b'\n')
    }

    fn line(&mut self, length: usize) -> Line<'_> {
        self.number += 1;
        let text = if length > LONGEST {
            Err(format!("the line is longer than {} MiB", LONGEST >> 20))
        } else {
            let bytes = self.buffer.strip_suffix(b"\r").unwrap_or(&self.buffer);
            std::str::from_utf8(bytes).map_err(|error| format!("the line is not UTF-8: {error}"))
        };
        Line { number: self.number, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Write};

    fn read(bytes: Vec<u8>) -> Vec<(u64, Result<String, ()>)> {
        let mut lines = Lines::of(Box::new(Cursor::new(bytes)));
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((line.number, line.text.map(str::to_owned).map_err(|_| ())));
        }
        all
    }

    #[test]
    fn every_kind_of_line_end() {
        let expected = [(1, Ok("a".to_owned())), (2, Ok(String::new())), (3, Ok("b".to_owned()))];
        for text in ["a\n\nb\n", "a\r\n\r\nb\r\n", "a\n\nb"] {
            assert_eq!(read(text.into()), expected, "{text:?}");
        }
        assert_eq!(read(Vec::new()), []);
    }

    #[test]
    fn bad_lines_are_skipped_and_counted() {
        let mut bytes = vec![b'x'; LONGEST + 1];
        bytes.extend_from_slice(b"\n\xff\nok\n");
        assert_eq!(read(bytes), [(1, Err(())), (2, Err(())), (3, Ok("ok".to_owned()))]);
    }

    #[test]
    fn gzip_is_noticed() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"a\nb\n").unwrap();
        let mut bytes = encoder.finish().unwrap();
        assert_eq!(read(bytes.clone()).len(), 2);
        bytes.truncate(bytes.len() - 6);
        let mut lines = Lines::of(Box::new(Cursor::new(bytes)));
        let failed =
            std::iter::repeat_with(|| lines.next().map(|line| line.is_some())).take(4).any(|next| next.is_err());
        assert!(failed, "a file cut short must be an error");
    }
}
