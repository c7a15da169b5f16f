//! Texts for people, bounded.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of the longest [`ShortText`], and of any other text in control frames.
pub const MAX_TEXT: usize = 256;

/// A text of at most [`MAX_TEXT`] bytes, such as a reason or a software version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct ShortText(String);

impl ShortText {
    /// The text, cut off at the last character that ends within [`MAX_TEXT`] bytes.
    pub fn clip(text: impl Into<String>) -> ShortText {
        let mut text = text.into();
        let end = text.floor_char_boundary(MAX_TEXT);
        text.truncate(end);
        ShortText(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ShortText {
    type Error = &'static str;

    /// The whole text or nothing.
    fn try_from(text: String) -> Result<ShortText, &'static str> {
        if text.len() <= MAX_TEXT { Ok(ShortText(text)) } else { Err("a text of more than 256 bytes") }
    }
}

impl fmt::Display for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipping_keeps_characters_whole() {
        assert_eq!(ShortText::clip("short").as_str(), "short");
        let long = "é".repeat(MAX_TEXT);
        assert_eq!(ShortText::clip(long.clone()).as_str(), "é".repeat(MAX_TEXT / 2));
        assert_eq!(ShortText::clip(format!("x{long}")).as_str().len(), MAX_TEXT - 1);
        assert!(ShortText::try_from("x".repeat(MAX_TEXT)).is_ok());
        assert!(ShortText::try_from("x".repeat(MAX_TEXT + 1)).is_err());
    }
}
