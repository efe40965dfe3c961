//! What the terminal can show, and what may be written to it.

use std::borrow::Cow;

use clap::ValueEnum;
use terminal_size::{Height, Width};

/// Text for people is no wider than this, in columns.
const WIDTH_MAX: usize = 110;

/// What the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    /// Without colours, text keeps its markup and is only wrapped.
    pub(crate) has_colours: bool,
    /// Whether lines and dots can be drawn with more than ASCII.
    pub(crate) has_unicode: bool,
}

impl Look {
    /// What every terminal can show.
    pub(crate) const PLAIN: Self = Self {
        columns: 80,
        rows: 24,
        has_colours: false,
        has_unicode: false,
    };
}

/// Whether there are colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Colours {
    /// In a terminal that has them, unless `NO_COLOR` is set.
    #[default]
    Auto,
    Always,
    Never,
}

/// How a model's thinking is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Thinking {
    /// As text
    Show,
    /// Less bright than text
    #[default]
    Dim,
    /// Not at all
    Hide,
}

/// Columns and rows of the terminal.
pub(crate) fn size() -> (usize, usize) {
    match terminal_size::terminal_size() {
        Some((Width(columns), Height(rows))) if columns > 0 => {
            (usize::from(columns), usize::from(rows))
        }
        _ => (Look::PLAIN.columns, Look::PLAIN.rows),
    }
}

/// Columns for text: those of the terminal, at most [`WIDTH_MAX`].
pub(crate) fn width() -> usize {
    size().0.clamp(20, WIDTH_MAX)
}

/// The text without characters that control a terminal: transcripts contain the output of tools, escape sequences included.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let is_control = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            // Characters that reorder the text around them.
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if text.contains(is_control) {
        Cow::Owned(text.replace(is_control, ""))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_taken_out() {
        let check = |text: &str, expected: &str| assert_eq!(harmless(text), expected, "{text:?}");
        check("a\u{202e}b\u{2066}c\u{200f}", "abc\u{200f}");
        check("plain\n\ttext", "plain\n\ttext");
        check("\u{1b}]0;title\u{7}\u{1b}[2Jx\r\u{9b}1A", "]0;title[2Jx1A");
    }
}
