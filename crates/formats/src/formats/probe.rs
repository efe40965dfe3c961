//! Reads the start of a source to recognise its format.

use std::cell::OnceCell;

use throughline_transcript::json::tape::View;

use crate::formats::glance::Glance;
use crate::lines::Lines;
use crate::source::SourceText;

/// How much of a source is looked at, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long the first line may be to be looked at whole, in bytes.
const FIRST_LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How many records are looked at.
const RECORDS_MAX: usize = 24;

/// The start of a source, as a format sees it to decide whether it fits.
pub struct Probe<'a> {
    text: &'a str,
    /// The shape of a JSON text, found for the first format that asks.
    glance: OnceCell<Option<Glance<'a>>>,
}

impl<'a> Probe<'a> {
    /// A look at `text`.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            glance: OnceCell::new(),
        }
    }

    /// The whole text. Look at the start of it only.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The first part of the text.
    pub(crate) fn head(&self) -> &'a str {
        start_of(self.text, HEAD_BYTES_MAX)
    }

    /// The shape of a JSON text. `None` if it begins neither as an object nor as an array.
    pub(crate) fn glance(&self) -> Option<&Glance<'a>> {
        self.glance.get_or_init(|| Glance::of(self.head())).as_ref()
    }

    /// The greatest number of points that `score` gives to one of the first records of a JSONL file.
    pub(crate) fn best_record(&self, score: impl Fn(View<'_>) -> u8) -> u8 {
        let first_line = memchr::memchr(b'\n', self.text.as_bytes()).unwrap_or(self.text.len());
        let limit = if first_line <= FIRST_LINE_BYTES_MAX {
            first_line.max(HEAD_BYTES_MAX)
        } else {
            HEAD_BYTES_MAX
        };
        let source = SourceText::from_text(start_of(self.text, limit));
        let mut lines = Lines::new(&source, &[]);
        let mut best = 0;
        for _ in 0..RECORDS_MAX {
            if lines.advance().is_none() {
                break;
            }
            best = best.max(score(lines.record()));
        }
        best
    }
}

fn start_of(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_record_is_not_looked_at() {
        let text = format!("{{\"a\":1}}\n{{\"b\":\"{}\"}}", "é".repeat(HEAD_BYTES_MAX));
        let score = |record: View<'_>| if record.field("b").is_some() { 9 } else { 4 };
        assert_eq!(Probe::new(&text).best_record(score), 4);
    }
}
