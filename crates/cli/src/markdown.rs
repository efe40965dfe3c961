//! The model's Markdown, formatted while it comes in.
//!
//! The received part of a line is shown at once. When more of it arrives, only the rows of the screen that change are
//! drawn again: those in which a style begins or ends, or a word moves to the next row. There is no timer, and nothing is
//! held back.

mod inline;

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::terminal::{Look, harmless};

/// Lines longer than that are broken, bytes: a line is drawn again whenever more of it comes.
const LINE_BYTES_MAX: usize = 4_000;
/// Text is wrapped at this many columns: longer lines are hard to read.
const PROSE_COLUMNS_MAX: usize = 100;
/// Continued rows are indented by no more than this, columns.
const HANGING_MAX: usize = 16;

/// A text that is coming in.
#[derive(Debug)]
pub(crate) struct Rendering {
    look: Look,
    /// The received part of the last line.
    line: String,
    /// Its rows on the screen; the cursor is at the end of the last one.
    shown: Vec<String>,
    /// The marker that ends the code block, inside of one.
    fence: Option<String>,
}

/// A character with its style.
type Cell = (char, Style);

impl Rendering {
    pub(crate) fn new(look: Look) -> Self {
        Self {
            look,
            line: String::new(),
            shown: Vec::new(),
            fence: None,
        }
    }

    /// More of the text; gives what is to be written to the terminal.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        for piece in harmless(text).split_inclusive('\n') {
            let (words, is_whole) = match piece.strip_suffix('\n') {
                Some(words) => (words, true),
                None => (piece, false),
            };
            self.line.push_str(&words.replace('\t', "    "));
            if is_whole {
                self.end_line(&mut out);
            }
        }
        while self.line.len() > LINE_BYTES_MAX {
            let space = self.line.rfind(' ').filter(|at| *at > LINE_BYTES_MAX / 2);
            let end = space.unwrap_or_else(|| self.line.floor_char_boundary(LINE_BYTES_MAX));
            let rest = self.line.split_off(end);
            self.end_line(&mut out);
            self.line = rest.trim_start().to_owned();
        }
        let rows = self.rows();
        self.draw(rows, &mut out);
        out
    }

    /// The terminal may have another size. The rows of the incoming line cannot be located any more: they are
    /// left alone, and the rest of it begins below them.
    pub(crate) fn resized(&mut self, look: Look) -> String {
        let has_changed = look != std::mem::replace(&mut self.look, look);
        if !has_changed || self.line.is_empty() {
            return String::new();
        }
        self.leave_line();
        "\n".to_owned()
    }

    /// The text is complete: the last line ends, if one has begun.
    pub(crate) fn end(&mut self) -> String {
        let mut out = String::new();
        if !self.line.is_empty() {
            self.end_line(&mut out);
        }
        self.fence = None;
        out
    }

    fn end_line(&mut self, out: &mut String) {
        let rows = self.rows();
        self.draw(rows, out);
        out.push('\n');
        self.leave_line();
    }

    fn leave_line(&mut self) {
        self.fence = match self.fence.take() {
            Some(fence) if ends_code(&self.line, &fence) => None,
            Some(fence) => Some(fence),
            None => begins_code(&self.line),
        };
        self.line.clear();
        self.shown.clear();
    }

    /// Makes the screen show `rows` where it shows the line now.
    fn draw(&mut self, rows: Vec<String>, out: &mut String) {
        let same = self
            .shown
            .iter()
            .zip(&rows)
            .take_while(|(shown, row)| shown == row)
            .count();
        let last = self.shown.len().saturating_sub(1);
        let mut from = same;
        if same == self.shown.len() {
            // More rows below, if any.
            if same > 0 && rows.len() > same {
                out.push('\n');
            }
        } else if let Some(more) = self
            .shown
            .get(same)
            .filter(|_| same == last)
            .zip(rows.get(same))
            .and_then(|(shown, row)| row.strip_prefix(shown.as_str()))
        {
            out.push_str(more);
            from = same + 1;
            if rows.len() > from {
                out.push('\n');
            }
        } else {
            // What has left the screen cannot be drawn again.
            let reachable = self.shown.len().saturating_sub(self.look.rows.max(1));
            // A line that takes fewer rows than before ends in one that is there.
            from = same.min(rows.len().saturating_sub(1)).max(reachable);
            if last > from {
                out.push_str(&format!("\u{1b}[{}A", last - from));
            }
            out.push_str("\r\u{1b}[J");
        }
        if let Some(rest) = rows.get(from..) {
            out.push_str(&rest.join("\n"));
        }
        self.shown = rows;
    }

    /// The rows of the line as it is now.
    fn rows(&self) -> Vec<String> {
        if self.line.is_empty() {
            return Vec::new();
        }
        // The last column stays free: terminals do not agree on where the cursor is behind it.
        let columns = self.look.columns.saturating_sub(1).max(8);
        let prose = columns.min(PROSE_COLUMNS_MAX);
        let line = self.line.as_str();
        let is_marker = match &self.fence {
            Some(fence) => ends_code(line, fence),
            None => begins_code(line).is_some(),
        };
        if !self.look.has_colours {
            let cells = styled(line, Style::new());
            return match self.fence.is_some() || is_marker || is_table(line) {
                true => chopped(&cells, columns),
                false => wrapped(&cells, prose, item(line).1),
            };
        }
        let dim = Style::new().dimmed();
        if is_marker {
            return chopped(&styled(line, dim), columns);
        }
        if self.fence.is_some() {
            let code = Style::new().fg_color(Some(AnsiColor::Cyan.into()));
            return chopped(&styled(line, code), columns);
        }
        if is_table(line) {
            return chopped(&styled(line, Style::new()), columns);
        }
        if is_rule(line) {
            let stroke = if self.look.has_unicode { "─" } else { "-" };
            return chopped(&styled(&stroke.repeat(prose.min(40)), dim), columns);
        }
        if let Some((level, title)) = heading(line) {
            let style = match level {
                1 | 2 => Style::new().bold().underline(),
                _ => Style::new().bold(),
            };
            return wrapped(&inline::cells(title, style), prose, 0);
        }
        if let Some(quoted) = line.trim_start().strip_prefix('>') {
            let bar = if self.look.has_unicode { "│ " } else { "> " };
            let quoted = quoted.strip_prefix(' ').unwrap_or(quoted);
            let cells = inline::cells(quoted, Style::new().italic());
            return wrapped(&cells, prose.saturating_sub(2), 0)
                .iter()
                .map(|row| format!("{dim}{bar}{dim:#}{row}"))
                .collect();
        }
        let (marker, hanging) = item(line);
        let (shown, rest) = line.split_at(marker);
        let mut cells = match self.look.has_unicode {
            true => styled(&shown.replace(['-', '*', '+'], "•"), Style::new()),
            false => styled(shown, Style::new()),
        };
        cells.extend(inline::cells(rest, Style::new()));
        wrapped(&cells, prose, hanging)
    }
}

/// The marker that would end the code block which this line begins.
fn begins_code(line: &str) -> Option<String> {
    let line = line.trim_start();
    let marker = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == marker).count();
    let info = line.get(length..).unwrap_or_default();
    (length >= 3 && !(marker == '`' && info.contains('`')))
        .then(|| marker.to_string().repeat(length))
}

fn ends_code(line: &str, fence: &str) -> bool {
    let line = line.trim();
    line.starts_with(fence) && line.chars().all(|c| fence.starts_with(c))
}

fn is_table(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

fn is_rule(line: &str) -> bool {
    let mut strokes = line.chars().filter(|c| !c.is_whitespace());
    let Some(first) = strokes.next().filter(|c| matches!(c, '-' | '*' | '_')) else {
        return false;
    };
    let mut count = 1;
    strokes.all(|c| {
        count += 1;
        c == first
    }) && count >= 3
}

/// Level and title.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let title = line.get(level..)?.strip_prefix(' ')?;
    (1..=6)
        .contains(&level)
        .then(|| (level, title.trim_end_matches('#').trim()))
}

/// Length of the marker with which an item of a list begins, bytes, none for other lines; and the columns by which the
/// rows after the first are indented.
fn item(line: &str) -> (usize, usize) {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let rest = line.get(indent..).unwrap_or_default();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let marker = match rest.as_bytes().get(digits) {
        Some(b'-' | b'*' | b'+') if digits == 0 => 1,
        Some(b'.' | b')') if (1..=9).contains(&digits) => digits + 1,
        _ => 0,
    };
    let is_item = marker > 0 && rest.as_bytes().get(marker) == Some(&b' ');
    let end = if is_item { indent + marker + 1 } else { 0 };
    (end, end.max(indent).min(HANGING_MAX))
}

fn styled(text: &str, style: Style) -> Vec<Cell> {
    text.chars().map(|c| (c, style)).collect()
}

fn width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Columns that a text takes.
pub(crate) fn columns_of(text: &str) -> usize {
    text.width()
}

/// Rows that break anywhere.
fn chopped(cells: &[Cell], columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut begin = 0;
    let mut used = 0;
    for (at, (c, _)) in cells.iter().enumerate() {
        if used + width(*c) > columns && at > begin {
            rows.push(written(cells.get(begin..at).unwrap_or_default()));
            (begin, used) = (at, 0);
        }
        used += width(*c);
    }
    rows.push(written(cells.get(begin..).unwrap_or_default()));
    rows
}

/// Rows that break between words; those after the first are indented.
fn wrapped(cells: &[Cell], columns: usize, hanging: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    let mut begin = 0;
    let mut used = 0;
    // Where the row can end: behind this word.
    let mut space = None;
    let mut at = 0;
    let indent = |is_first: bool| {
        if is_first {
            0
        } else {
            hanging.min(columns / 2)
        }
    };
    let row = |begin: usize, end: usize, rows: &[String]| {
        let indent = " ".repeat(indent(rows.is_empty()));
        indent + &written(cells.get(begin..end).unwrap_or_default())
    };
    while let Some((c, _)) = cells.get(at) {
        if *c == ' ' && at > begin {
            space = Some(at);
        }
        let room = columns.saturating_sub(indent(rows.is_empty())).max(1);
        if used + width(*c) > room && at > begin {
            let (end, next) = match space {
                Some(space) => (space, space + 1),
                None => (at, at),
            };
            rows.push(row(begin, end, &rows));
            (begin, at, used, space) = (next, next, 0, None);
            continue;
        }
        used += width(*c);
        at += 1;
    }
    rows.push(row(begin, cells.len(), &rows));
    rows
}

/// The cells with the codes of their styles.
fn written(cells: &[Cell]) -> String {
    let mut out = String::new();
    let mut current = Style::new();
    for (c, style) in cells {
        if *style != current {
            out.push_str(&format!("{current:#}{style}"));
            current = *style;
        }
        out.push(*c);
    }
    out.push_str(&format!("{current:#}"));
    out
}

#[cfg(test)]
mod tests;
