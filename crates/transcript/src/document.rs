//! A source that is one JSON value, read as far as it is whole.

use bytestring::ByteString;

use crate::conversation::{ReadError, Skipped, SourceText};
use crate::json::tape::{Tape, View};
use crate::source::add_skipped;

/// A JSON document with a table of its values.
pub(crate) struct Document {
    text: ByteString,
    tape: Tape,
    /// What stands behind the part that is whole.
    pub(crate) skipped: Vec<Skipped>,
}

impl Document {
    /// Reads the value at the start of `source`. A document that is torn off or broken is read up to there.
    pub(crate) fn read(
        source: &SourceText,
        opaque: &[&str],
        format: &'static str,
    ) -> Result<Self, ReadError> {
        let mut tape = Tape::default();
        let mut skipped = Vec::new();
        let text = source.text.clone();
        let error = match tape.parse(&text, 0..text.len(), opaque) {
            Ok(end) => {
                let rest = text[end..].trim();
                if !rest.is_empty() {
                    let line = LineCounter::default().line(&text, end);
                    add_skipped(
                        &mut skipped,
                        line,
                        rest.len(),
                        "more text after the document",
                    );
                }
                return Ok(Self {
                    text,
                    tape,
                    skipped,
                });
            }
            Err(error) => error,
        };
        let line = LineCounter::default().line(&text, error.offset);
        let refusal = || ReadError::NotThatFormat {
            format,
            reason: format!("line {line}: {}", error.kind),
        };
        let repair = tape.repair().ok_or_else(refusal)?.clone();
        let repaired = ByteString::from([&text[..repair.cut], &repair.closing].concat());
        tape.parse(&repaired, 0..repaired.len(), opaque)
            .map_err(|_| refusal())?;
        add_skipped(
            &mut skipped,
            line,
            text.len() - repair.cut,
            &format!("the document is torn off or broken here ({})", error.kind),
        );
        Ok(Self {
            text: repaired,
            tape,
            skipped,
        })
    }

    /// The document's value.
    pub(crate) fn root(&self) -> View<'_> {
        self.tape.root(&self.text)
    }

    /// Its text.
    pub(crate) fn text(&self) -> &ByteString {
        &self.text
    }
}

/// Counts lines for places that are asked for in the order of the text.
#[derive(Default)]
pub(crate) struct LineCounter {
    at: usize,
    newlines: usize,
}

impl LineCounter {
    /// The line of byte `offset`, counted from 1. Places before the last one asked for get the last one's line.
    pub(crate) fn line(&mut self, text: &str, offset: usize) -> usize {
        if let Some(between) = text.as_bytes().get(self.at..offset) {
            self.newlines += memchr::memchr_iter(b'\n', between).count();
            self.at = offset;
        }
        self.newlines + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, value: &str, skipped: &[(usize, usize)]) {
        let document = Document::read(&SourceText::from_text(text), &[], "test").unwrap();
        assert_eq!(document.root().as_str(), value);
        let found: Vec<_> = document
            .skipped
            .iter()
            .map(|piece| (piece.line, piece.bytes))
            .collect();
        assert_eq!(found, skipped);
    }

    #[test]
    fn documents_are_read_as_far_as_they_are_whole() {
        check(" {\"a\":1}\n", "{\"a\":1}", &[]);
        check("{\"a\":1}\n{\"a\":2}", "{\"a\":1}", &[(1, 7)]);
        check("{\"a\":[1,\n2,\n\"x", "{\"a\":[1,\n2]}", &[(3, 4)]);
        check("[{\"a\":1},\n{\"a\" 2}]", "[{\"a\":1}]", &[(2, 10)]);
    }

    #[test]
    fn what_is_no_document_is_refused() {
        let error = Document::read(&SourceText::from_text("hello"), &[], "test").err();
        assert!(matches!(error, Some(ReadError::NotThatFormat { .. })));
    }
}
