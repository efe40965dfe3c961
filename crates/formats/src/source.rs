//! A source: the text of a file, and the result of reading it.
//!
//! [`SourceText::from_bytes`] turns the bytes of a file into a text. A healthy file is not copied. Byte-order marks are
//! removed (UTF-16 is decoded), runs of NUL bytes that a crash left behind are removed, bytes that are not UTF-8 become
//! U+FFFD; each repair is reported with its line. A text in which no byte beyond ASCII is UTF-8 is read as Windows-1252.
//! Carriage returns stay: they are part of the text.

mod windows_1252;

use bytestring::ByteString;
use throughline_transcript::conversation::Conversation;

/// Everything that was found in one source.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Name of the format, as in `--from`.
    pub format: &'static str,
    /// The conversations, in the order of the source.
    pub conversations: Vec<Conversation>,
    /// What could not be read.
    pub skipped: Vec<SkippedPart>,
}

/// A piece of the source that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedPart {
    /// Line, counted from 1.
    pub line: usize,
    /// Number of skipped bytes; 0 for a note about the source, of which nothing was skipped.
    pub bytes: usize,
    /// The reason, in words for the user.
    pub reason: String,
}

/// Why nothing could be read from a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The source has no bytes, or only white space.
    #[error("the input is empty")]
    Empty,
    /// No format recognised it.
    #[error("the input is none of the {} known formats", tried.len())]
    UnknownFormat {
        /// The formats that were tried.
        tried: Vec<&'static str>,
    },
    /// The named format does not fit.
    #[error("the input is not {format}: {reason}")]
    NotThatFormat {
        /// The format that was asked for.
        format: &'static str,
        /// What is missing or wrong, and where.
        reason: String,
    },
    /// It is of the format, and nothing is said in it.
    #[error("the input is {format}, but there is no message in it")]
    NoMessage {
        /// The format that was recognised.
        format: &'static str,
    },
    /// It looks like the format, but what was read cannot be all of it.
    #[error("the input looks like {format}, but {reason}")]
    Misread {
        /// The format that it looks like.
        format: &'static str,
        /// What is missing, in words for the user.
        reason: String,
    },
    /// There is no format of that name.
    #[error("there is no format {name:?} (known: {})", known.join(", "))]
    NoSuchFormat {
        /// What was asked for.
        name: String,
        /// The names that exist.
        known: Vec<&'static str>,
    },
}

/// A source's text, and how it was repaired so that it is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// Valid UTF-8, without a byte-order mark.
    pub text: ByteString,
    /// Bytes that were not UTF-8 and NUL runs, by line.
    pub skipped: Vec<SkippedPart>,
}

/// How many skipped pieces are listed one by one. Later ones are added to the last entry.
pub const SKIPPED_MAX: usize = 1000;

impl SourceText {
    /// Makes a text of the bytes of a file. Nothing is copied if they are UTF-8 without NUL bytes.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        let mut skipped = Vec::new();
        let text = match String::from_utf8(decode_utf16(bytes, &mut skipped)) {
            Ok(text) => text,
            Err(error) if windows_1252::is_likely(error.as_bytes()) => {
                windows_1252::decode(error.as_bytes(), &mut skipped)
            }
            Err(error) => replace_invalid(error.as_bytes(), &mut skipped),
        };
        let text = ByteString::from(without_nul(text, &mut skipped));
        let text = match text.strip_prefix('\u{feff}') {
            Some(rest) => text.slice_ref(rest),
            None => text,
        };
        skipped.sort_by_key(|piece| piece.line);
        Self { text, skipped }
    }

    /// A text that is one already.
    #[must_use]
    pub fn from_text(text: impl Into<ByteString>) -> Self {
        Self {
            text: text.into(),
            skipped: Vec::new(),
        }
    }
}

/// Adds an entry, or adds to the last one where the list is full.
pub fn add_skipped(skipped: &mut Vec<SkippedPart>, line: usize, bytes: usize, reason: &str) {
    if skipped.len() < SKIPPED_MAX {
        skipped.push(SkippedPart {
            line,
            bytes,
            reason: reason.to_owned(),
        });
    } else if let Some(last) = skipped.last_mut() {
        last.bytes += bytes;
        if !last.reason.ends_with("further places") {
            last.reason = format!("{}, and further places", last.reason);
        }
    }
}

/// Text in UTF-16 announces itself by a byte-order mark. Everything else stays as it is.
fn decode_utf16(bytes: Vec<u8>, skipped: &mut Vec<SkippedPart>) -> Vec<u8> {
    let unit: fn([u8; 2]) -> u16 = match bytes.as_slice() {
        // Two NULs after the mark: UTF-32, or nothing that is text.
        [0xff, 0xfe, 0, 0, ..] => return bytes,
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return bytes,
    };
    let (pairs, rest) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len());
    let mut line = 1;
    for scalar in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        match scalar {
            Ok(scalar) => {
                line += usize::from(scalar == '\n');
                text.push(scalar);
            }
            Err(_) => {
                text.push(char::REPLACEMENT_CHARACTER);
                add_skipped(skipped, line, 2, "half a UTF-16 character was replaced");
            }
        }
    }
    if !rest.is_empty() {
        add_skipped(
            skipped,
            line,
            rest.len(),
            "half a UTF-16 character at the end",
        );
    }
    text.into_bytes()
}

/// Replaces what is not UTF-8, with one entry for each line that has some.
fn replace_invalid(bytes: &[u8], skipped: &mut Vec<SkippedPart>) -> String {
    let mut text = String::with_capacity(bytes.len() + 16);
    let mut line = 1;
    let mut open: Option<(usize, usize)> = None;
    for chunk in bytes.utf8_chunks() {
        line += newlines(chunk.valid());
        text.push_str(chunk.valid());
        if chunk.invalid().is_empty() {
            continue;
        }
        text.push(char::REPLACEMENT_CHARACTER);
        let count = chunk.invalid().len();
        open = match open {
            Some((at, bytes)) if at == line => Some((at, bytes + count)),
            earlier => {
                report_invalid(earlier, skipped);
                Some((line, count))
            }
        };
    }
    report_invalid(open, skipped);
    text
}

fn report_invalid(found: Option<(usize, usize)>, skipped: &mut Vec<SkippedPart>) {
    if let Some((line, bytes)) = found {
        add_skipped(
            skipped,
            line,
            bytes,
            "bytes that are not UTF-8 were replaced",
        );
    }
}

fn without_nul(text: String, skipped: &mut Vec<SkippedPart>) -> String {
    let Some(first) = memchr::memchr(0, text.as_bytes()) else {
        return text;
    };
    let mut clean = String::with_capacity(text.len());
    let (mut line, mut at, mut nul) = (1, 0, first);
    loop {
        clean.push_str(&text[at..nul]);
        line += newlines(&text[at..nul]);
        let run = text.as_bytes()[nul..]
            .iter()
            .take_while(|byte| **byte == 0)
            .count();
        add_skipped(skipped, line, run, "NUL bytes were taken out");
        at = nul + run;
        match memchr::memchr(0, &text.as_bytes()[at..]) {
            Some(found) => nul = at + found,
            None => break,
        }
    }
    clean.push_str(&text[at..]);
    clean
}

fn newlines(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], text: &str, skipped: &[(usize, usize, &str)]) {
        let source = SourceText::from_bytes(bytes.to_vec());
        assert_eq!(source.text, text);
        let found: Vec<_> = source
            .skipped
            .iter()
            .map(|piece| (piece.line, piece.bytes, piece.reason.as_str()))
            .collect();
        assert_eq!(found, skipped);
    }

    const INVALID: &str = "bytes that are not UTF-8 were replaced";
    const NUL: &str = "NUL bytes were taken out";

    #[test]
    fn healthy_text_is_not_copied() {
        let bytes = "{\"a\": \"é\"}\r\n".as_bytes().to_vec();
        let address = bytes.as_ptr();
        let source = SourceText::from_bytes(bytes);
        assert_eq!(source.text.as_ptr(), address);
        assert_eq!(source.skipped, []);
    }

    #[test]
    fn byte_order_marks_are_taken_off() {
        check(b"\xef\xbb\xbfhi", "hi", &[]);
        check(b"\xff\xfeh\0i\0\n\0", "hi\n", &[]);
        check(b"\xfe\xff\0h\x20\xac", "h€", &[]);
        check(b"", "", &[]);
    }

    #[test]
    fn damage_is_repaired_and_reported_by_line() {
        check(
            b"a\nb\xff\xfe c \xc3\nd",
            "a\nb\u{fffd}\u{fffd} c \u{fffd}\nd",
            &[(2, 3, INVALID)],
        );
        check(b"a\xe2\x82", "a\u{fffd}", &[(1, 2, INVALID)]);
        check(b"a\n\0\0\0b\n\0", "a\nb\n", &[(2, 3, NUL), (3, 1, NUL)]);
        check(
            b"\xff\xfeh\0\x3d\xd8i\0\0",
            "h\u{fffd}i",
            &[
                (1, 2, "half a UTF-16 character was replaced"),
                (1, 1, "half a UTF-16 character at the end"),
            ],
        );
    }

    #[test]
    fn the_list_of_damage_has_a_limit() {
        let source = SourceText::from_bytes(b"\xff\n".repeat(SKIPPED_MAX + 5));
        assert_eq!(source.skipped.len(), SKIPPED_MAX);
        assert_eq!(source.skipped.last().unwrap().bytes, 6);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_become_text(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
            let source = SourceText::from_bytes(bytes);
            proptest::prop_assert!(!source.text.contains('\0'));
        }
    }
}
