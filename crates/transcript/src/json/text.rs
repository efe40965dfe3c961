//! String values: slices of the source, decoded when they are read and encoded again only when we write them.

use std::borrow::Cow;
use std::fmt;

use bytestring::ByteString;

/// A string value: a slice of the source that is decoded when it is looked at.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Text(TextKind);

#[derive(Clone, PartialEq, Eq, Hash)]
enum TextKind {
    /// The characters themselves.
    Plain(ByteString),
    /// The inside of a JSON string literal that holds at least one escape.
    Escaped(ByteString),
}

impl Text {
    /// A text that is its own source.
    #[must_use]
    pub fn plain(text: impl Into<ByteString>) -> Self {
        Self(TextKind::Plain(text.into()))
    }

    /// The inside of a JSON string literal.
    pub(super) fn inside(literal: ByteString, is_escaped: bool) -> Self {
        Self(if is_escaped {
            TextKind::Escaped(literal)
        } else {
            TextKind::Plain(literal)
        })
    }

    /// The characters. A surrogate without its other half becomes U+FFFD.
    #[must_use]
    pub fn decode(&self) -> Cow<'_, str> {
        match &self.0 {
            TextKind::Plain(text) => Cow::Borrowed(text),
            TextKind::Escaped(text) => Cow::Owned(unescape(text)),
        }
    }

    /// The characters, if the source holds them without escapes.
    #[must_use]
    pub fn as_plain(&self) -> Option<&str> {
        match &self.0 {
            TextKind::Plain(text) => Some(text),
            TextKind::Escaped(_) => None,
        }
    }

    /// Appends the characters to `buffer`, for readers that keep one buffer for many texts.
    pub fn decode_into(&self, buffer: &mut String) {
        match &self.0 {
            TextKind::Plain(text) => buffer.push_str(text),
            TextKind::Escaped(text) => unescape_into(text, buffer),
        }
    }

    /// The characters as a shared string. Without escapes in the source this copies nothing.
    #[must_use]
    pub fn to_bytestring(&self) -> ByteString {
        match &self.0 {
            TextKind::Plain(text) => text.clone(),
            TextKind::Escaped(text) => unescape(text).into(),
        }
    }

    /// The start of the text: what the first `bytes` bytes of the source hold, without a half character or escape.
    #[must_use]
    pub fn prefix(&self, bytes: usize) -> Cow<'_, str> {
        match &self.0 {
            TextKind::Plain(text) => Cow::Borrowed(&text[..text.floor_char_boundary(bytes)]),
            TextKind::Escaped(text) => {
                let mut end = text.floor_char_boundary(bytes);
                // The longest escape is a pair of surrogates, 12 bytes. Cut before a backslash that is not itself
                // escaped, if one is that near.
                if end < text.len() {
                    let head = &text.as_bytes()[..end];
                    if let Some(at) = memchr::memrchr(b'\\', head)
                        && end - at < 12
                    {
                        let run = head[..=at].iter().rev().take_while(|byte| **byte == b'\\');
                        end = at + 1 - run.count();
                    }
                }
                let mut start = unescape(&text[..end]);
                if start.ends_with(char::REPLACEMENT_CHARACTER) {
                    start.pop();
                }
                Cow::Owned(start)
            }
        }
    }

    /// Length in the source, bytes, escapes included.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        match &self.0 {
            TextKind::Plain(text) | TextKind::Escaped(text) => text.len(),
        }
    }

    /// Whether there is nothing but white space in it. Looks no further than the first other character.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        match &self.0 {
            TextKind::Plain(text) => text.trim_start().is_empty(),
            TextKind::Escaped(text) => is_blank_escaped(text),
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::plain(text)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.decode(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.decode())
    }
}

pub(super) fn unescape(escaped: &str) -> String {
    let mut out = String::with_capacity(escaped.len());
    unescape_into(escaped, &mut out);
    out
}

fn unescape_into(escaped: &str, out: &mut String) {
    let bytes = escaped.as_bytes();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        out.push_str(&escaped[at..at + found]);
        at += found + 2;
        match bytes.get(at - 1) {
            Some(b'n') => out.push('\n'),
            Some(b't') => out.push('\t'),
            Some(b'r') => out.push('\r'),
            Some(b'b') => out.push('\u{8}'),
            Some(b'f') => out.push('\u{c}'),
            Some(b'u') => {
                let unit = hex4(bytes, at);
                at += 4;
                let (scalar, used) = match unit {
                    Some(high @ 0xd800..=0xdbff) => {
                        match (bytes.get(at..at + 2), hex4(bytes, at + 2)) {
                            (Some(b"\\u"), Some(low @ 0xdc00..=0xdfff)) => (
                                char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)),
                                6,
                            ),
                            _ => (None, 0),
                        }
                    }
                    Some(unit) => (char::from_u32(unit), 0),
                    None => (None, 0),
                };
                out.push(scalar.unwrap_or(char::REPLACEMENT_CHARACTER));
                at += used;
            }
            Some(other) => out.push(char::from(*other)),
            None => {}
        }
        at = at.min(bytes.len());
    }
    out.push_str(&escaped[at..]);
}

/// Whether an escaped text decodes to white space, without decoding it.
fn is_blank_escaped(escaped: &str) -> bool {
    let mut chars = escaped.chars();
    while let Some(char) = chars.next() {
        let decoded = match char {
            '\\' => match chars.next() {
                Some('n' | 't' | 'r' | 'f') => ' ',
                Some('u') => {
                    let unit = hex4(chars.as_str().as_bytes(), 0).and_then(char::from_u32);
                    chars.by_ref().take(4).for_each(drop);
                    unit.unwrap_or(char::REPLACEMENT_CHARACTER)
                }
                _ => return false,
            },
            other => other,
        };
        if !decoded.is_whitespace() {
            return false;
        }
    }
    true
}

fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = std::str::from_utf8(bytes.get(at..at + 4)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

/// `text` as a JSON string literal, quotes included.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    write_string(text, &mut literal);
    literal
}

/// Appends `text` to `out` as a JSON string literal, quotes included.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut clean_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[clean_from..at]);
        if escape.is_empty() {
            out.push_str(&format!("\\u{byte:04x}"));
        } else {
            out.push_str(escape);
        }
        clean_from = at + 1;
    }
    out.push_str(&text[clean_from..]);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Raw;

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        let text = |literal: &str| {
            Raw::parse(literal)
                .unwrap()
                .as_text()
                .unwrap()
                .decode()
                .into_owned()
        };
        assert_eq!(
            text(r#""ok \ud83d cut, \ud83d\ude00 whole, \ude00 tail""#),
            "ok \u{fffd} cut, 😀 whole, \u{fffd} tail"
        );
        assert_eq!(
            text(r#""\ud83d\u0041\ud83d\ud83d\ude00\ud83d""#),
            "\u{fffd}A\u{fffd}😀\u{fffd}"
        );
    }

    #[test]
    fn prefixes_end_between_characters() {
        let check = |literal: &str, bytes: usize, expected: &str| {
            let text = Raw::parse(literal).unwrap().as_text().unwrap();
            assert_eq!(text.prefix(bytes), expected, "{literal} {bytes}");
        };
        check(r#""aé""#, 2, "a");
        check(r#""aé""#, 99, "aé");
        check(r#""ab\ncd""#, 3, "ab");
        check(r#""ab\\cd""#, 4, "ab");
        check(r#""ab\u00e9cd""#, 7, "ab");
        check(r#""ab\ud83d\ude00cd, and so on""#, 9, "ab");
        check(r#""ab\ud83d\ude00cd""#, 99, "ab😀cd");
    }

    #[test]
    fn written_strings_read_back() {
        let text = "a\"b\\c\n\t\u{1}é😀";
        let mut literal = String::new();
        write_string(text, &mut literal);
        assert_eq!(
            Raw::parse(literal).unwrap().as_text().unwrap().decode(),
            text
        );
    }

    #[test]
    fn blank_texts_are_detected_without_decoding() {
        for (literal, expected) in [
            (r#""""#, true),
            (r#"" \n\t\u00a0\f""#, true),
            (r#""\n \b""#, false),
            (r#""\u0041""#, false),
            (r#""\ud83d\ude00""#, false),
            (r#"" \\ ""#, false),
        ] {
            let text = Raw::parse(literal).unwrap().as_text().unwrap();
            assert_eq!(text.is_blank(), expected, "{literal}");
            assert_eq!(text.decode().trim().is_empty(), expected, "{literal}");
        }
    }

    proptest::proptest! {
        #[test]
        fn strings_decode_as_in_serde_json(text in "\\PC*") {
            let literal = serde_json::to_string(&text).unwrap();
            let read = Raw::parse(literal).unwrap().as_text().unwrap();
            proptest::prop_assert_eq!(read.decode(), text);
        }
    }
}
