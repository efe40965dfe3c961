//! Files of many JSON values: one array, JSON Lines, or concatenated values. Damaged files are read too.

use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::{JsonErrorKind, Raw};

use crate::document::{Document, LineCounter, has_any};
use crate::source::add_skipped;
use crate::source::{ReadError, SkippedPart, Source, SourceText};

/// The values of a file of many: the elements of one array, JSON Lines, or values that follow each other.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Rows {
    /// Each value with the line on which it begins; line 0 for the elements of an array.
    pub(crate) rows: Vec<(usize, Raw)>,
    /// The parts that could not be read.
    pub(crate) skipped: Vec<SkippedPart>,
}

impl Rows {
    /// The source of a format whose rows are conversations, each of them read by `conversation`. `wanted` says in words
    /// what a row must have.
    ///
    /// Conversations without messages are left out: they were opened and never used.
    pub(crate) fn into_source(
        self,
        format: &'static str,
        wanted: &str,
        conversation: impl Fn(&Raw, usize) -> Option<Conversation>,
    ) -> Result<Source, ReadError> {
        let mut skipped = self.skipped;
        let mut conversations = Vec::new();
        for (line, row) in self.rows {
            match conversation(&row, line) {
                Some(found) => conversations.push(found),
                None => add_skipped(&mut skipped, line, row.len(), &format!("no {wanted} in it")),
            }
        }
        let is_recognised = !conversations.is_empty();
        conversations.retain(|conversation| !conversation.messages.is_empty());
        if is_recognised && conversations.is_empty() {
            return Err(ReadError::NoMessage { format });
        }
        if conversations.is_empty() {
            return Err(ReadError::NotThatFormat {
                format,
                reason: format!("no object with {wanted} in it"),
            });
        }
        Ok(Source {
            format,
            conversations,
            skipped,
        })
    }
}

/// Reads every value of `source`, in time linear in its length however it is damaged.
///
/// Behind the place where an array breaks, the objects that have one of `keys` are taken for further rows.
pub(crate) fn rows(source: &SourceText, keys: &[&str]) -> Rows {
    let text = &source.text;
    if text.trim_start().starts_with('[')
        && let Ok(document) = Document::read(source, &[], "", has_any(keys))
        && !document.is_followed
    {
        let elements = document.elements().unwrap_or_default();
        return Rows {
            rows: elements.into_iter().map(|row| (0, row)).collect(),
            skipped: document.skipped,
        };
    }
    let mut found = Rows::default();
    let mut lines = LineCounter::default();
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let start = at + rest.len() - rest.trim_start().len();
        if start >= text.len() {
            return found;
        }
        let line = lines.line(text, start);
        match Raw::parse_prefix(&text.slice_ref(&text[start..])) {
            Ok((value, length)) => {
                found.rows.push((line, value));
                at = start + length;
            }
            Err(error) => {
                at = match error.kind {
                    JsonErrorKind::UnexpectedEnd => text.len(),
                    _ => resume_at(text, start, start + error.offset),
                };
                add_skipped(&mut found.skipped, line, at - start, "not valid JSON");
            }
        }
    }
}

/// Where to continue after a value that began at `start` stopped being JSON at `error_at`: the line of the error, or the
/// one after it if the value began on that line. Continuing at the error keeps the reading linear.
fn resume_at(text: &str, start: usize, error_at: usize) -> usize {
    let bytes = text.as_bytes();
    let error_at = error_at.min(bytes.len());
    let line_start = memchr::memrchr(b'\n', &bytes[..error_at]).map_or(0, |at| at + 1);
    if line_start > start {
        return line_start;
    }
    memchr::memchr(b'\n', &bytes[error_at..]).map_or(bytes.len(), |at| error_at + at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_rows(text: &str, values: &[(usize, &str)], skipped: &[(usize, usize)]) {
        let found = rows(&SourceText::from_text(text), &["b"]);
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
        check_rows(
            "[{\"b\":1},\n{\"b\" 2, \"c\":{\"d\":1}},\n{\"b\":3}]",
            &[(0, "{\"b\":1}"), (0, "{\"b\":3}")],
            &[(2, 25)],
        );
        check_rows("\0\0\n{}", &[(2, "{}")], &[(1, 3)]);
    }
}
