//! JSON files that hold everything in one value, and files of many values, whatever state they are in.
//!
//! [`Whole`] reads a file of one object or array, as far as it is whole: [`Document`] closes what is torn. [`rows`]
//! reads files of many values: one array, JSON Lines, or values one after the other.

use bytestring::ByteString;

use crate::conversation::{Skipped, SourceText};
use crate::document::Document;
use crate::json::{JsonErrorKind, Kind, Raw};
use crate::source::add_skipped;

/// A file of one JSON object or array, as far as it can be read.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Whole {
    /// The elements, if the file is an array.
    pub(crate) elements: Option<Vec<Raw>>,
    /// The fields, if the file is an object.
    fields: Vec<(String, Raw)>,
    /// What was passed over.
    pub(crate) skipped: Vec<Skipped>,
}

impl Whole {
    /// Reads `source`. `None` if it begins neither as an object nor as an array.
    pub(crate) fn read(source: &SourceText) -> Option<Self> {
        if !source.text.trim_start().starts_with(['{', '[']) {
            return None;
        }
        let document = Document::read(source, &[], "", |_| false).ok()?;
        let root = document.root();
        Some(Self {
            elements: root
                .is_array()
                .then(|| root.elements().map(|element| element.raw()).collect()),
            fields: root
                .fields()
                .map(|(name, value)| (name.into_owned(), value.raw()))
                .collect(),
            skipped: document.skipped,
        })
    }

    /// The field `name`.
    pub(crate) fn field(&self, name: &str) -> Option<&Raw> {
        self.fields
            .iter()
            .rfind(|(key, _)| key == name)
            .map(|(_, value)| value)
    }

    /// The elements of the array field `name`.
    pub(crate) fn array(&self, name: &str) -> Option<Vec<Raw>> {
        let value = self.field(name)?;
        (value.kind() == Kind::Array).then(|| value.array().collect())
    }
}

/// The values of a file of many: the elements of one array, JSON Lines, or values that follow each other.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Rows {
    /// Each value with the line on which it begins; line 0 for the elements of an array.
    pub(crate) rows: Vec<(usize, Raw)>,
    /// What was passed over.
    pub(crate) skipped: Vec<Skipped>,
}

/// Reads every value of `source`, in time linear to its length whatever the damage.
pub(crate) fn rows(source: &SourceText) -> Rows {
    let text = &source.text;
    if text.trim_start().starts_with('[')
        && let Some(whole) = Whole::read(source)
    {
        // One big array, whole or torn; unless other values follow, as in lines that are arrays.
        let is_alone = |piece: &Skipped| !text_behind(text, piece).starts_with(['[', '{']);
        if whole.skipped.iter().all(is_alone) {
            let elements = whole.elements.unwrap_or_default();
            return Rows {
                rows: elements.into_iter().map(|row| (0, row)).collect(),
                skipped: whole.skipped,
            };
        }
    }
    let mut found = Rows::default();
    let mut walk = Walk { text, at: 0 };
    let mut line = 1;
    let mut counted = 0;
    loop {
        walk.skip_space();
        if walk.at >= text.len() {
            return found;
        }
        let start = walk.at;
        line += newlines(text, counted, start);
        counted = start;
        match walk.value() {
            Ok(value) => found.rows.push((line, value)),
            Err((kind, error_at)) => {
                walk.at = if kind == JsonErrorKind::UnexpectedEnd {
                    text.len()
                } else {
                    resume_at(text, start, error_at)
                };
                let skipped = walk.at - start;
                add_skipped(&mut found.skipped, line, skipped, "not valid JSON");
            }
        }
    }
}

/// What was passed over at the end of `text`.
fn text_behind<'a>(text: &'a str, piece: &Skipped) -> &'a str {
    let text = text.trim_end();
    text.get(text.len().saturating_sub(piece.bytes)..)
        .unwrap_or_default()
}

/// Where to go on after a value that began at `start` stopped being JSON at `error_at`: the line of the error, or the
/// one after it if the value began on that line. Going on where the error is keeps the whole linear.
fn resume_at(text: &str, start: usize, error_at: usize) -> usize {
    let bytes = text.as_bytes();
    let error_at = error_at.min(bytes.len());
    let line_start = memchr::memrchr(b'\n', &bytes[..error_at]).map_or(0, |at| at + 1);
    if line_start > start {
        return line_start;
    }
    memchr::memchr(b'\n', &bytes[error_at..]).map_or(bytes.len(), |at| error_at + at + 1)
}

fn newlines(text: &str, from: usize, to: usize) -> usize {
    memchr::memchr_iter(b'\n', &text.as_bytes()[from..to]).count()
}

struct Walk<'a> {
    text: &'a ByteString,
    at: usize,
}

impl Walk<'_> {
    fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(self.at) {
            self.at += 1;
        }
    }

    /// One value; the error says what is wrong and at which byte of the text.
    fn value(&mut self) -> Result<Raw, (JsonErrorKind, usize)> {
        let Some(rest) = self.text.get(self.at..) else {
            return Err((JsonErrorKind::UnexpectedCharacter, self.at));
        };
        match Raw::parse_prefix(&self.text.slice_ref(rest)) {
            Ok((value, end)) => {
                self.at += end;
                Ok(value)
            }
            Err(error) => Err((error.kind, self.at + error.offset)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_torn_is_closed() {
        let whole = Whole::read(&SourceText::from_text(
            "{\"t\": \"x\", \"list\": [1, {\"x\": 2}, {\"y\": ",
        ))
        .unwrap();
        assert_eq!(whole.field("t").unwrap().as_str(), "\"x\"");
        let list = whole.array("list").unwrap();
        assert_eq!(
            list[..2],
            [Raw::parse("1").unwrap(), Raw::parse("{\"x\": 2}").unwrap()]
        );
        assert_eq!(whole.array("t"), None);
        assert_eq!(whole.skipped.len(), 1);
        assert_eq!(Whole::read(&SourceText::from_text("text")), None);
    }

    fn check_rows(text: &str, values: &[(usize, &str)], skipped: &[(usize, usize)]) {
        let found = rows(&SourceText::from_text(text));
        let read: Vec<_> = found
            .rows
            .iter()
            .map(|(line, value)| (*line, value.as_str()))
            .collect();
        assert_eq!(read, values, "{text}");
        let passed: Vec<_> = found.skipped.iter().map(|s| (s.line, s.bytes)).collect();
        assert_eq!(passed, skipped, "{text}");
    }

    #[test]
    fn rows_are_read_from_every_layout() {
        check_rows("{}\n{\"a\":1}\n", &[(1, "{}"), (2, "{\"a\":1}")], &[]);
        check_rows("[{},[1]]", &[(0, "{}"), (0, "[1]")], &[]);
        check_rows("{\n}{}", &[(1, "{\n}"), (2, "{}")], &[]);
        check_rows("[1]\n[2]", &[(1, "[1]"), (2, "[2]")], &[]);
        check_rows("[{}, {\"a\"", &[(0, "{}")], &[(1, 6)]);
    }

    #[test]
    fn rows_go_on_after_a_damaged_line() {
        check_rows(
            "{}\n{\"a\": \"torn\n{\"b\":1}\n",
            &[(1, "{}"), (3, "{\"b\":1}")],
            &[(2, 12)],
        );
        check_rows("{}\n{\"torn", &[(1, "{}")], &[(2, 6)]);
        check_rows("\0\0\n{}", &[(2, "{}")], &[(1, 3)]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(text in "[\\[\\]{}:,\"\\\\a1é \n\u{0}]{0,60}") {
            let source = SourceText::from_text(text);
            let _ = Whole::read(&source);
            let _ = rows(&source);
        }
    }
}
