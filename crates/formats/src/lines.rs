//! Records of a JSONL file: one JSON value per line. Damaged files are read too.
//!
//! A bad line never ends the reading. Unreadable text is reported in [`Lines::skipped`], and the reader searches for
//! records after it: a record that was appended to a torn one (the writer died in the middle of a line) is found, even
//! on the same line.
//!
//! ```
//! use throughline_formats::source::SourceText;
//! use throughline_formats::lines::Lines;
//!
//! let source = SourceText::from_text("{\"n\":1}\n{\"n\":{\"n\":2}\n{\"n\":3}");
//! let mut lines = Lines::new(&source, &[]);
//! let mut found = Vec::new();
//! while let Some(line) = lines.advance() {
//!     found.push((line, lines.record().field("n").unwrap().as_str().to_owned()));
//! }
//! let values = [(1, "1"), (2, "2"), (3, "3")];
//! assert_eq!(found, values.map(|(line, value)| (line, value.to_owned())));
//! // `{"n":` on line 2 is the torn one.
//! assert_eq!((lines.skipped()[0].line, lines.skipped()[0].bytes), (2, 5));
//! ```

use bytestring::ByteString;
use throughline_transcript::json::tape::{Tape, View};
use throughline_transcript::json::{JsonErrorKind, Raw};

use crate::source::add_skipped;
use crate::source::{SkippedPart, SourceText};

/// How many times its own length may be read of a bad line, and how many bytes at least, to find a record in it.
const RESUME_TIMES_MAX: usize = 4;
const RESUME_BYTES_MIN: usize = 64 * 1024;

/// Reader of the records of a JSONL file.
///
/// Call [`Lines::advance`], then look at [`Lines::record`]. As an iterator it gives each record as [`Raw`].
pub struct Lines<'a> {
    source: &'a ByteString,
    opaque: &'a [&'a str],
    tape: Tape,
    /// Where to continue reading.
    at: usize,
    /// Where the line of `at` ends.
    line_end: usize,
    line: usize,
    skipped: Vec<SkippedPart>,
}

impl<'a> Lines<'a> {
    /// Starts at the first line. Values under the keys in `opaque` are not looked into, see [`Tape::parse`].
    #[must_use]
    pub fn new(source: &'a SourceText, opaque: &'a [&'a str]) -> Self {
        Self {
            source: &source.text,
            opaque,
            tape: Tape::default(),
            at: 0,
            line_end: 0,
            line: 0,
            skipped: Vec::new(),
        }
    }

    /// Goes to the next record and returns its line, counted from 1.
    pub fn advance(&mut self) -> Option<usize> {
        loop {
            while self.at >= self.line_end {
                self.next_line()?;
            }
            let start = self.at;
            match self
                .tape
                .parse(self.source, start..self.line_end, self.opaque)
            {
                Ok(end) => {
                    self.at = self.skip_space(end);
                    return Some(self.line);
                }
                Err(error) => {
                    let reason = self.reason(error.kind);
                    self.at = self.resume(start);
                    add_skipped(&mut self.skipped, self.line, self.at - start, &reason);
                }
            }
        }
    }

    /// The record that [`Lines::advance`] went to.
    #[must_use]
    pub fn record(&self) -> View<'_> {
        self.tape.root(self.source)
    }

    /// Hands every record to `add`, with its line, and reports those that it does not take as skipped. Whether it took one.
    pub(crate) fn read_records(
        &mut self,
        reason: &str,
        mut add: impl FnMut(View<'_>, usize) -> bool,
    ) -> bool {
        let mut is_found = false;
        while let Some(line) = self.advance() {
            if add(self.record(), line) {
                is_found = true;
            } else {
                self.reject(reason);
            }
        }
        is_found
    }

    /// Reports the current record as skipped, for formats that find something in it that is not theirs.
    pub fn reject(&mut self, reason: &str) {
        let bytes = self.record().as_str().len();
        add_skipped(&mut self.skipped, self.line, bytes, reason);
    }

    /// What could not be read so far.
    #[must_use]
    pub fn skipped(&self) -> &[SkippedPart] {
        &self.skipped
    }

    /// What could not be read.
    #[must_use]
    pub fn into_skipped(self) -> Vec<SkippedPart> {
        self.skipped
    }

    fn next_line(&mut self) -> Option<()> {
        let bytes = self.source.as_bytes();
        // Between lines `at` is at the line feed, except before the first line.
        let start = if self.line == 0 { 0 } else { self.line_end + 1 };
        if start >= bytes.len() {
            self.at = bytes.len();
            self.line_end = bytes.len();
            return None;
        }
        self.line += 1;
        self.line_end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at);
        self.at = self.skip_space(start);
        Some(())
    }

    fn skip_space(&self, mut at: usize) -> usize {
        let bytes = self.source.as_bytes();
        while at < self.line_end && bytes[at].is_ascii_whitespace() {
            at += 1;
        }
        at
    }

    fn reason(&self, kind: JsonErrorKind) -> String {
        let is_last = self.line_end == self.source.len();
        match kind {
            JsonErrorKind::UnexpectedEnd if is_last => "the last line is torn off".to_owned(),
            JsonErrorKind::UnexpectedEnd => "the line is torn off".to_owned(),
            _ => format!("not JSON: {kind}"),
        }
    }

    /// Where the next whole record begins behind a torn one at `start`: it must reach the end of the line, or another
    /// record must follow it. A part of the torn record does neither, because the rest of that record follows.
    fn resume(&mut self, start: usize) -> usize {
        let bytes = self.source.as_bytes();
        let mut at = start + 1;
        let mut budget = (self.line_end - start) * RESUME_TIMES_MAX + RESUME_BYTES_MIN;
        loop {
            let rest = bytes.get(at..self.line_end).unwrap_or_default();
            let Some(found) = memchr::memmem::find(rest, b"{\"") else {
                return self.line_end;
            };
            let candidate = at + found;
            let parsed = self
                .tape
                .parse(self.source, candidate..self.line_end, self.opaque);
            let read_to = match &parsed {
                Ok(end) => *end,
                Err(error) => error.offset.max(candidate + 1),
            };
            if let Ok(end) = parsed {
                let next = self.skip_space(end);
                if next == self.line_end || bytes[next] == b'{' {
                    return candidate;
                }
                // Whatever is inside of this value ends before it does.
                at = end;
            } else {
                at = candidate + 2;
            }
            let Some(left) = budget.checked_sub(read_to - candidate) else {
                return self.line_end;
            };
            budget = left;
        }
    }
}

impl Iterator for Lines<'_> {
    type Item = (usize, Raw);

    fn next(&mut self) -> Option<(usize, Raw)> {
        let line = self.advance()?;
        Some((line, self.record().raw()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, records: &[(usize, &str)], skipped: &[(usize, usize, &str)]) {
        let source = SourceText::from_bytes(text.as_bytes().to_vec());
        let mut lines = Lines::new(&source, &[]);
        let found: Vec<_> = lines
            .by_ref()
            .map(|(line, raw)| (line, raw.as_str().to_owned()))
            .collect();
        let found: Vec<_> = found.iter().map(|(l, raw)| (*l, raw.as_str())).collect();
        assert_eq!(found, records);
        let found: Vec<_> = lines
            .skipped()
            .iter()
            .map(|piece| (piece.line, piece.bytes, piece.reason.as_str()))
            .collect();
        assert_eq!(found, skipped);
    }

    const TORN: &str = "the line is torn off";
    const CHARACTER: &str = "not JSON: unexpected character";

    #[test]
    fn good_lines_are_counted_from_one() {
        check("", &[], &[]);
        check("\n\n", &[], &[]);
        check(
            "{}\r\n\r\n [1] \n2",
            &[(1, "{}"), (3, "[1]"), (4, "2")],
            &[],
        );
    }

    #[test]
    fn a_torn_last_line_is_reported() {
        check(
            "{\"a\":1}\n{\"a\":\"b",
            &[(1, "{\"a\":1}")],
            &[(2, 7, "the last line is torn off")],
        );
    }

    #[test]
    fn glued_records_are_both_read() {
        check(
            "{\"a\":1}{\"b\":2} {\"c\":3}\n",
            &[(1, "{\"a\":1}"), (1, "{\"b\":2}"), (1, "{\"c\":3}")],
            &[],
        );
    }

    #[test]
    fn a_record_glued_to_a_torn_one_is_found() {
        // Torn outside of a string, inside of one, and with whole values in the torn part.
        check("{\"a\":[1,{\"b\":2},\n{}", &[(2, "{}")], &[(1, 16, TORN)]);
        check(
            "{\"a\":{\"x\":1},{\"b\":2}\n",
            &[(1, "{\"b\":2}")],
            &[(1, 13, CHARACTER)],
        );
        check(
            "{\"a\":\"text {\"b\":{\"c\":2}}\n",
            &[(1, "{\"b\":{\"c\":2}}")],
            &[(1, 11, CHARACTER)],
        );
        check(
            "{\"a\":\"te\0\0\0{\"b\":2}{\"c\":3}\n",
            &[(1, "{\"b\":2}"), (1, "{\"c\":3}")],
            &[(1, 8, CHARACTER)],
        );
    }

    #[test]
    fn garbage_does_not_end_the_reading() {
        check(
            "{\"a\":1}\nnoise\n{\"b\":2} tail\n{\"c\":3}\n",
            &[(1, "{\"a\":1}"), (3, "{\"b\":2}"), (4, "{\"c\":3}")],
            &[(2, 5, CHARACTER), (3, 4, CHARACTER)],
        );
    }

    #[test]
    fn bad_lines_take_linear_time() {
        // Every start would be read to the end of the line.
        let text = "{\"a\":[\"".repeat(200_000);
        let source = SourceText::from_text(text);
        assert_eq!(Lines::new(&source, &[]).count(), 0);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_passed_whole(text in "[{}\\[\\]\"a:,1 \n\\\\]{0,64}") {
            let source = SourceText::from_text(text);
            let mut lines = Lines::new(&source, &["a"]);
            while lines.advance().is_some() {}
            proptest::prop_assert_eq!(lines.at, source.text.len());
        }
    }
}
