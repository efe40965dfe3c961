//! The conversation as text for a model.
//!
//! Every line of content begins with `| `, and only lines without that mark name a speaker. So no text, regardless of
//! its author and content, can end the transcript, begin another message or pose as an instruction. Control characters,
//! characters that change the direction of writing and invisible tags are removed, and the transcript's own marks are
//! escaped as well.
//!
//! A transcript that does not fit what a model reads is taken off piece by piece ([`Reader::take`]), at the borders of
//! messages where that can be done: each piece is in exactly one request that was answered.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::order::{Archive, Count};
use super::source::{Kind, Part, Source};
use crate::render::markdown::date;

/// What has not been read yet.
pub(super) struct Reader {
    unread: VecDeque<Piece>,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Index of the part in the source.
    part: usize,
    content: PieceContent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PieceContent {
    /// A range of the text.
    Text {
        range: Range<usize>,
        is_continued: bool,
    },
    /// Something is left out here: its length in bytes.
    Omission { bytes: usize, archive: Archive },
}

/// Pieces that go into one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) pieces: Vec<Piece>,
    /// As it is shown.
    pub(super) text: String,
    /// Indices of the first and the last message in it.
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Reader {
    /// Everything in the source; calls and results longer than `result_bytes_max` are shown at both ends.
    pub(super) fn new(source: &Source, result_bytes_max: usize, archive: Archive) -> Self {
        let mut unread = VecDeque::new();
        for (index, part) in source.parts.iter().enumerate() {
            let length = part.text.len();
            let text = |range: Range<usize>, is_continued| Piece {
                part: index,
                content: PieceContent::Text {
                    range,
                    is_continued,
                },
            };
            if part.kind.is_capped() && length > result_bytes_max {
                let (head, tail) = ends(&part.text, result_bytes_max);
                unread.push_back(text(0..head, false));
                unread.push_back(Piece {
                    part: index,
                    content: PieceContent::Omission {
                        bytes: tail - head,
                        archive,
                    },
                });
                if tail < length {
                    unread.push_back(text(tail..length, true));
                }
            } else {
                unread.push_back(text(0..length, false));
            }
        }
        Self { unread }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unread.is_empty()
    }

    /// Takes off what fits `tokens_max`; `None` if not even a small piece does.
    pub(super) fn take(
        &mut self,
        source: &Source,
        tokens_max: usize,
        count: &Count,
    ) -> Option<Chunk> {
        let mut chunk = Chunk::default();
        let mut used = 0;
        while let Some(piece) = self.unread.pop_front() {
            let text = piece.shown(source);
            let tokens = count(&text);
            let room = tokens_max.saturating_sub(used);
            if tokens <= room {
                used += tokens;
                chunk.push(piece, &text, source);
                continue;
            }
            // Messages stay whole; only one that is too large for a single request is split.
            let is_first = chunk.pieces.is_empty();
            if is_first || tokens > tokens_max && room > tokens_max / 4 {
                if let Some((head, rest)) = piece.split(source, room, count) {
                    let text = head.shown(source);
                    chunk.push(head, &text, source);
                    self.unread.push_front(rest);
                    break;
                }
                if is_first {
                    self.unread.push_front(piece);
                    return None;
                }
            }
            self.unread.push_front(piece);
            break;
        }
        (!chunk.pieces.is_empty()).then_some(chunk)
    }

    /// Puts back what was taken and not read.
    pub(super) fn put_back(&mut self, chunk: Chunk) {
        for piece in chunk.pieces.into_iter().rev() {
            self.unread.push_front(piece);
        }
    }
}

impl Chunk {
    fn push(&mut self, piece: Piece, text: &str, source: &Source) {
        let message = source.parts.get(piece.part).map_or(0, |part| part.message);
        if self.pieces.is_empty() {
            self.first = message;
        }
        self.last = message;
        self.text.push_str(text);
        self.pieces.push(piece);
    }
}

impl Piece {
    /// The piece as it is shown, its line of the speaker first.
    fn shown(&self, source: &Source) -> String {
        let Some(part) = source.parts.get(self.part) else {
            return String::new();
        };
        let number = part.message + 1;
        match &self.content {
            PieceContent::Omission { bytes, archive } => match archive {
                Archive::Kept => format!("[message {number}: {bytes} more bytes in the archive]\n"),
                Archive::None => format!("[message {number}: {bytes} more bytes, not kept]\n"),
            },
            PieceContent::Text {
                range,
                is_continued,
            } => {
                let text = part.text.get(range.clone()).unwrap_or_default();
                let mut shown = format!("[{number}] {}", speaker(part));
                if *is_continued {
                    shown.push_str(", continued");
                } else if let Some(day) = part.at_ms.and_then(date) {
                    shown.push_str(", ");
                    shown.push_str(&day);
                }
                if text.is_empty() {
                    shown.push_str(if matches!(part.kind, Kind::Placeholder { .. }) {
                        "\n"
                    } else {
                        ", empty\n"
                    });
                    return shown;
                }
                shown.push_str(":\n");
                push_quoted(text, &mut shown);
                shown
            }
        }
    }

    /// The longest beginning that fits, and the rest.
    fn split(&self, source: &Source, tokens_max: usize, count: &Count) -> Option<(Self, Self)> {
        let PieceContent::Text {
            range,
            is_continued,
        } = &self.content
        else {
            return None;
        };
        let text = source.parts.get(self.part)?.text.get(range.clone())?;
        let with = |range: Range<usize>, is_continued: bool| Self {
            part: self.part,
            content: PieceContent::Text {
                range,
                is_continued,
            },
        };
        let mut length = text.len();
        while length > 0 {
            // Tokens are not spread evenly over a text, so the guess is made smaller until it holds.
            let head = with(range.start..range.start + length, *is_continued);
            let tokens = count(&head.shown(source));
            if tokens <= tokens_max && length < text.len() {
                return Some((head, with(range.start + length..range.end, true)));
            }
            let guess = (length as u128 * tokens_max as u128 * 9 / 10 / (tokens.max(1) as u128))
                .min(length as u128 * 3 / 4) as usize;
            length = at_line_end(text, guess);
        }
        None
    }
}

/// How much of a long text is shown: up to where its head goes, and from where on its tail.
fn ends(text: &str, bytes_max: usize) -> (usize, usize) {
    let head = at_line_end(text, bytes_max / 3 * 2);
    let tail = text.ceil_char_boundary(text.len().saturating_sub(bytes_max / 3).max(head));
    let tail = match text[tail..].find('\n') {
        Some(at) if at < bytes_max / 12 => tail + at + 1,
        _ => tail,
    };
    (head, tail)
}

/// A place to cut near `guess`: after a line where one ends not far before, else between two characters.
fn at_line_end(text: &str, guess: usize) -> usize {
    let end = text.floor_char_boundary(guess.min(text.len()));
    match text[..end].rfind('\n') {
        Some(at) if at + 1 >= end - end / 4 => at + 1,
        _ => end,
    }
}

fn speaker(part: &Part) -> String {
    match &part.kind {
        Kind::User => "user".to_owned(),
        Kind::Client => "notice of the client program, not the user".to_owned(),
        Kind::Summary => "summary of earlier messages, made by a program".to_owned(),
        Kind::System => "instructions of the operator".to_owned(),
        Kind::Assistant => "assistant".to_owned(),
        Kind::Call { tool } => format!("assistant used the tool {tool}, input"),
        Kind::Result { tool, is_error } => {
            let mut words = "output of a tool".to_owned();
            if !tool.is_empty() {
                words = format!("output of the tool {tool}");
            }
            if *is_error {
                words.push_str(", which failed");
            }
            words
        }
        Kind::Placeholder { what } => what.clone(),
    }
}

/// Adds the text, every line of it with the mark of content.
fn push_quoted(text: &str, shown: &mut String) {
    let mut visible = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                visible.push('\n')
            }
            character if is_hidden(character) => {}
            character => visible.push(character),
        }
    }
    for line in without_marks(&visible).lines() {
        shown.push_str("| ");
        shown.push_str(line);
        shown.push('\n');
    }
}

/// Characters that a reader does not see and a model does: control characters, changes of direction, tags.
pub(super) fn is_hidden(character: char) -> bool {
    character != '\t' && character.is_control()
        || matches!(
            character,
            '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

static MARK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)<(\s*/?\s*(?:transcript|prior[\s_-]*memory|session[\s_-]*memory))").ok()
});

/// Text cannot close the block that contains it.
pub(super) fn without_marks(text: &str) -> std::borrow::Cow<'_, str> {
    match MARK.as_ref() {
        Some(mark) => mark.replace_all(text, "&lt;$1"),
        None => std::borrow::Cow::Owned(text.replace('<', "&lt;")),
    }
}

/// The text in one line, as a list can hold it: white space folded, nothing hidden, no marks.
pub(super) fn one_line(text: &str) -> String {
    let visible: String = text
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !is_hidden(*c))
        .collect();
    let mut line = String::with_capacity(visible.len());
    for word in visible.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    without_marks(&line).into_owned()
}

#[cfg(test)]
mod tests;
