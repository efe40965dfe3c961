//! JSON files that hold everything in one value, and what can be saved of them when they are damaged.
//!
//! A file that was cut off while it was written is no JSON any more, but all that stands before the damage is whole.
//! [`Whole`] reads a file of one object or array and, if it is torn, every complete field and element up to there.
//! [`rows`] reads files of many values: one array, JSON Lines, or values one after the other.

use bytestring::ByteString;

use crate::conversation::Skipped;
use crate::json::{JsonErrorKind, Kind, Raw, Text};

/// A file of one JSON object or array, as far as it can be read.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Whole {
    /// The elements, if the file is an array.
    pub(crate) elements: Option<Vec<Raw>>,
    /// The complete fields, if the file is an object.
    fields: Vec<(Text, Raw)>,
    /// The array or object field in which the damage is.
    torn: Option<Torn>,
    /// What was passed over.
    pub(crate) skipped: Vec<Skipped>,
}

#[derive(Debug, PartialEq)]
struct Torn {
    name: Text,
    elements: Vec<Raw>,
}

impl Whole {
    /// Reads `text`. `None` if it begins neither as an object nor as an array.
    pub(crate) fn read(text: &ByteString) -> Option<Self> {
        let opening = text.trim_start().bytes().next();
        if !matches!(opening, Some(b'{' | b'[')) {
            return None;
        }
        // Going from member to member checks and finds them in one pass, whether the file is whole or not.
        let mut walk = Walk { text, at: 0 };
        let mut whole = Self::default();
        if walk.take(b'[') {
            let (elements, _) = walk.elements();
            whole.elements = Some(elements);
        } else if walk.take(b'{') {
            walk.fields(&mut whole);
        }
        if !text[walk.at..].trim().is_empty() {
            whole.skipped.push(Skipped {
                line: line_of(text, walk.at),
                bytes: text.len() - walk.at,
                reason: "damaged JSON: everything from here on was passed over".to_owned(),
            });
        }
        Some(whole)
    }

    /// The field `name`, if it is complete.
    pub(crate) fn field(&self, name: &str) -> Option<&Raw> {
        self.fields
            .iter()
            .rfind(|(key, _)| key.decode() == name)
            .map(|(_, value)| value)
    }

    /// The elements of the array field `name`: all of them, or those before the damage.
    pub(crate) fn array(&self, name: &str) -> Option<Vec<Raw>> {
        if let Some(value) = self.field(name) {
            return (value.kind() == Kind::Array).then(|| value.array().collect());
        }
        self.torn
            .as_ref()
            .filter(|torn| torn.name.decode() == name)
            .map(|torn| torn.elements.clone())
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

/// Reads every value of `text`, in time linear to its length whatever the damage.
pub(crate) fn rows(text: &ByteString) -> Rows {
    let mut found = Rows::default();
    let mut walk = Walk { text, at: 0 };
    if walk.take(b'[') {
        // One big array, whole or torn; unless another value follows, as in lines that are arrays.
        let (elements, is_closed) = walk.elements();
        walk.skip_space();
        let rest = &text[walk.at..];
        if !elements.is_empty() && !(is_closed && rest.starts_with(['[', '{'])) {
            found.rows = elements.into_iter().map(|row| (0, row)).collect();
            if !rest.is_empty() {
                found.skip(line_of(text, walk.at), rest.len());
            }
            return found;
        }
        walk.at = 0;
    }
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
                found.skip(line, walk.at - start);
            }
        }
    }
}

impl Rows {
    fn skip(&mut self, line: usize, bytes: usize) {
        let reason = "not valid JSON".to_owned();
        match self.skipped.last_mut() {
            // A run of damaged lines is one report, so that a file of another kind does not fill the list.
            Some(last) if self.rows.is_empty() && last.reason == reason => last.bytes += bytes,
            _ => self.skipped.push(Skipped {
                line,
                bytes,
                reason,
            }),
        }
    }
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

/// The line of byte `at`, counted from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + newlines(text, 0, at)
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

    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let is_there = self.text.as_bytes().get(self.at) == Some(&byte);
        if is_there {
            self.at += 1;
        }
        is_there
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

    /// The elements of an array whose bracket has been passed, and whether it was closed.
    fn elements(&mut self) -> (Vec<Raw>, bool) {
        let mut elements = Vec::new();
        loop {
            self.skip_space();
            if self.take(b']') {
                return (elements, true);
            }
            let start = self.at;
            if !elements.is_empty() && !self.take(b',') {
                return (elements, false);
            }
            self.skip_space();
            match self.value() {
                // A number at the very end may have lost digits.
                Ok(value) if value.kind() != Kind::Number || self.at < self.text.len() => {
                    elements.push(value);
                }
                _ => {
                    self.at = start;
                    return (elements, false);
                }
            }
        }
    }

    /// The fields of an object whose brace has been passed.
    fn fields(&mut self, whole: &mut Whole) {
        let mut is_first = true;
        loop {
            if self.take(b'}') {
                return;
            }
            let start = self.at;
            if !is_first && !self.take(b',') {
                return;
            }
            is_first = false;
            self.skip_space();
            let Some(name) = self.value().ok().and_then(|key| key.as_text()) else {
                self.at = start;
                return;
            };
            if !self.take(b':') {
                self.at = start;
                return;
            }
            self.skip_space();
            let value_start = self.at;
            if let Ok(value) = self.value() {
                whole.fields.push((name, value));
                continue;
            }
            self.at = value_start;
            if self.take(b'[') {
                let (elements, _) = self.elements();
                whole.torn = Some(Torn { name, elements });
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(values: &[Raw]) -> Vec<&str> {
        values.iter().map(Raw::as_str).collect()
    }

    #[test]
    fn an_array_torn_in_an_element_keeps_the_elements_before() {
        let whole = Whole::read(&"[{\"a\":1},\n{\"b\":2},\n{\"c\":\"to".into()).unwrap();
        assert_eq!(
            strings(&whole.elements.unwrap()),
            ["{\"a\":1}", "{\"b\":2}"]
        );
        assert_eq!(whole.skipped[0].line, 2);
    }

    #[test]
    fn an_object_torn_in_an_array_keeps_its_fields_and_elements() {
        let whole = Whole::read(&"{\"t\": \"x\", \"list\": [1, 2, {\"x\": ".into()).unwrap();
        assert_eq!(whole.field("t").unwrap().as_str(), "\"x\"");
        assert_eq!(strings(&whole.array("list").unwrap()), ["1", "2"]);
        assert_eq!(whole.array("t"), None);
        assert_eq!(whole.skipped.len(), 1);
    }

    #[test]
    fn a_whole_object_skips_nothing() {
        let whole = Whole::read(&" {\"list\": [1], \"t\": 2} ".into()).unwrap();
        assert_eq!(strings(&whole.array("list").unwrap()), ["1"]);
        assert_eq!(whole.skipped, []);
        assert_eq!(Whole::read(&"text".into()), None);
    }

    fn check_rows(text: &str, values: &[(usize, &str)], skipped: &[(usize, usize)]) {
        let found = rows(&text.into());
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
            let text = ByteString::from(text);
            let _ = Whole::read(&text);
            let _ = rows(&text);
        }
    }
}
