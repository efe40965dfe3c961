//! A source that is one JSON value, read as far as it is complete.

use std::ops::Range;

use bytestring::ByteString;
use throughline_transcript::json::Raw;
use throughline_transcript::json::tape::{Repair, Tape, View};

use crate::source::add_skipped;
use crate::source::{ReadError, SkippedPart, SourceText};

/// A JSON document with a table of its values.
pub(crate) struct Document {
    text: ByteString,
    tape: Tape,
    /// The unreadable text behind the complete part.
    pub(crate) skipped: Vec<SkippedPart>,
    /// Whether another array or object follows a document that is whole.
    pub(crate) is_followed: bool,
}

/// Limit of the search for elements behind a break: the bytes read are at most this multiple of the bytes there.
const SEARCH_TIMES_MAX: usize = 4;

impl Document {
    /// Reads the value at the start of `source`.
    ///
    /// A document that is torn off or broken is read up to there; behind the break, objects for which `is_element`
    /// holds are taken for further elements of the list that it broke in.
    pub(crate) fn read(
        source: &SourceText,
        opaque: &[&str],
        format: &'static str,
        is_element: impl Fn(View<'_>) -> bool,
    ) -> Result<Self, ReadError> {
        let mut tape = Tape::default();
        let mut skipped = Vec::new();
        let text = source.text.clone();
        let error = match tape.parse(&text, 0..text.len(), opaque) {
            Ok(end) => {
                let rest = text[end..].trim();
                if !rest.is_empty() {
                    let line = LineCounter::default().line(&text, end);
                    let reason = "more text after the document";
                    add_skipped(&mut skipped, line, rest.len(), reason);
                }
                return Ok(Self {
                    is_followed: rest.starts_with(['[', '{']),
                    text: text.clone(),
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
        let elements = elements(&text, error.offset, opaque, is_element);
        let repaired = ByteString::from(joined(&text, &repair, &elements));
        tape.parse(&repaired, 0..repaired.len(), opaque)
            .map_err(|_| refusal())?;
        let found: usize = elements.iter().map(ExactSizeIterator::len).sum();
        let reason = format!("the document is torn off or broken here ({})", error.kind);
        let lost = text.len() - repair.cut - found;
        add_skipped(&mut skipped, line, lost, &reason);
        Ok(Self {
            text: repaired,
            tape,
            skipped,
            is_followed: false,
        })
    }

    /// The document's value.
    pub(crate) fn root(&self) -> View<'_> {
        self.tape.root(&self.text)
    }

    /// The field `name` of the document, as a slice.
    pub(crate) fn field(&self, name: &str) -> Option<Raw> {
        self.root().field(name).map(View::raw)
    }

    /// The elements of a document that is an array, as slices.
    pub(crate) fn elements(&self) -> Option<Vec<Raw>> {
        list(self.root())
    }

    /// The elements of the array field `name`, as slices.
    pub(crate) fn array(&self, name: &str) -> Option<Vec<Raw>> {
        list(self.root().field(name)?)
    }

    /// Its text.
    pub(crate) fn text(&self) -> &ByteString {
        &self.text
    }
}

fn list(value: View<'_>) -> Option<Vec<Raw>> {
    value
        .is_array()
        .then(|| value.elements().map(View::raw).collect())
}

/// Whether a value is an object with one of `keys`, by which the elements of a format's lists are known.
pub(crate) fn has_any(keys: &[&str]) -> impl Fn(View<'_>) -> bool {
    |value| value.fields().any(|(key, _)| keys.contains(&&*key))
}

/// Whole objects behind a break.
fn elements(
    text: &ByteString,
    from: usize,
    opaque: &[&str],
    is_element: impl Fn(View<'_>) -> bool,
) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut tape = Tape::default();
    let mut elements = Vec::new();
    let mut budget = (bytes.len() - from.min(bytes.len())) * SEARCH_TIMES_MAX;
    let mut at = from;
    while let Some(found) = memchr::memchr(b'{', bytes.get(at..).unwrap_or_default()) {
        let start = at + found;
        let read_to = match tape.parse(text, start..bytes.len(), opaque) {
            Ok(end) => {
                if is_element(tape.root(text)) {
                    elements.push(start..end);
                }
                at = end;
                end
            }
            Err(error) => {
                at = start + 1;
                error.offset.max(at)
            }
        };
        match budget.checked_sub(read_to - start) {
            Some(left) => budget = left,
            None => break,
        }
    }
    elements
}

/// The part before the break, closed, with the elements from behind it in the outermost open list. Line feeds in
/// between are kept, so that lines can still be counted.
fn joined(text: &str, repair: &Repair, elements: &[Range<usize>]) -> String {
    let list = repair.closing.rfind(']').unwrap_or(repair.closing.len());
    let (inner, outer) = repair.closing.split_at(list);
    let mut joined = String::with_capacity(text.len() + repair.closing.len());
    joined.push_str(&text[..repair.cut]);
    joined.push_str(inner);
    if !outer.is_empty() {
        let mut at = repair.cut;
        for element in elements {
            let newlines = memchr::memchr_iter(b'\n', &text.as_bytes()[at..element.start]).count();
            joined.extend(std::iter::repeat_n('\n', newlines));
            joined.push(',');
            joined.push_str(&text[element.clone()]);
            at = element.end;
        }
    }
    joined.push_str(outer);
    joined
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
        let document = Document::read(&SourceText::from_text(text), &[], "test", |element| {
            element.field("a").is_some()
        })
        .unwrap();
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
    fn present_values_are_slices() {
        let source = SourceText::from_text("{\"t\":\"x\",\"list\":[1,{\"x\":2},{\"y\": ");
        let document = Document::read(&source, &[], "test", has_any(&["y"])).unwrap();
        assert_eq!(document.field("t").unwrap().as_str(), "\"x\"");
        let list = document.array("list").unwrap();
        let values: Vec<_> = list.iter().map(Raw::as_str).collect();
        assert_eq!(values, ["1", "{\"x\":2}"]);
        assert_eq!((document.array("t"), document.elements()), (None, None));
    }

    #[test]
    fn elements_behind_a_break_are_found() {
        check(
            "{\"list\":[{\"a\":1},\n{\"a\":[{\"b\":1},x\n,{\"b\":2}]},\n{\"a\":3},{\"c\":4},{\"a\":5",
            "{\"list\":[{\"a\":1},\n{\"a\":[{\"b\":1}]}\n\n,{\"a\":3}]}",
            &[(2, 30)],
        );
    }

    #[test]
    fn broken_documents_take_linear_time() {
        let text = format!("[{{\"a\":1}},{}", "{\"a\":[\"".repeat(100_000));
        check(&text, "[{\"a\":1},{\"a\":[\"{\"]}]", &[(1, 699_991)]);
    }

    #[test]
    fn a_text_that_is_not_a_document_is_refused() {
        let error = Document::read(&SourceText::from_text("hello"), &[], "test", |element| {
            element.field("a").is_some()
        })
        .err();
        assert!(matches!(error, Some(ReadError::NotThatFormat { .. })));
    }
}
