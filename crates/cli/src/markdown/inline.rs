//! Styles inside a line: code, bold, italic, struck out, links.
//!
//! A marker that nothing ends stays what it is: the text is still coming in, or it was no marker.

use anstyle::{AnsiColor, Effects, Style};

use super::Cell;

/// The characters of a line, without the markers, with the styles that these say.
pub(super) fn cells(text: &str, style: Style) -> Vec<Cell> {
    let mut cells = Vec::new();
    parse(text, style, &mut cells);
    cells
}

fn parse(text: &str, style: Style, out: &mut Vec<Cell>) {
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        if let Some(length) = escaped(rest, style, out)
            .or_else(|| code(rest, style, out))
            .or_else(|| emphasis(rest, before, style, out))
            .or_else(|| link(rest, style, out))
        {
            at += length;
            continue;
        }
        // A run of markers that begins nothing is passed over whole.
        let first = rest.chars().next().unwrap_or_default();
        let run = match first {
            '*' | '_' | '~' | '`' => rest.len() - rest.trim_start_matches(first).len(),
            _ => first.len_utf8(),
        };
        out.extend(
            rest.get(..run)
                .unwrap_or_default()
                .chars()
                .map(|c| (c, style)),
        );
        at += run;
    }
}

/// `\*` is a star.
fn escaped(rest: &str, style: Style, out: &mut Vec<Cell>) -> Option<usize> {
    let c = rest.strip_prefix('\\')?.chars().next()?;
    c.is_ascii_punctuation().then(|| {
        out.push((c, style));
        1 + c.len_utf8()
    })
}

fn code(rest: &str, style: Style, out: &mut Vec<Cell>) -> Option<usize> {
    let ticks = rest.bytes().take_while(|byte| *byte == b'`').count();
    if ticks == 0 {
        return None;
    }
    let inside = rest.get(ticks..)?;
    let end = end_of_code(inside, ticks)?;
    let code = inside.get(..end)?;
    // Spaces that only keep ticks apart.
    let trimmed = code
        .strip_prefix(' ')
        .and_then(|code| code.strip_suffix(' '))
        .filter(|code| !code.trim().is_empty())
        .unwrap_or(code);
    let style = style.fg_color(Some(AnsiColor::Cyan.into()));
    out.extend(trimmed.chars().map(|c| (c, style)));
    Some(ticks + end + ticks)
}

/// Where a run of exactly this many ticks begins.
fn end_of_code(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    loop {
        let next = at + text.get(at..)?.find('`')?;
        let run = text
            .get(next..)?
            .bytes()
            .take_while(|byte| *byte == b'`')
            .count();
        if run == ticks {
            return Some(next);
        }
        at = next + run;
    }
}

fn emphasis(rest: &str, before: Option<char>, style: Style, out: &mut Vec<Cell>) -> Option<usize> {
    const MARKERS: [(&str, Effects); 5] = [
        ("**", Effects::BOLD),
        ("__", Effects::BOLD),
        ("~~", Effects::STRIKETHROUGH),
        ("*", Effects::ITALIC),
        ("_", Effects::ITALIC),
    ];
    let (marker, effect) = MARKERS
        .iter()
        .find(|(marker, _)| rest.starts_with(marker))?;
    let is_in_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    if marker.starts_with('_') && is_in_word(before) {
        return None;
    }
    let inside = rest.get(marker.len()..)?;
    if inside.starts_with(char::is_whitespace) {
        return None;
    }
    let mut at = 0;
    let end = loop {
        let text = inside.get(at..)?;
        let c = text.chars().next()?;
        if c == '`' {
            // Markers in code are none.
            let ticks = text.bytes().take_while(|byte| *byte == b'`').count();
            let length = text
                .get(ticks..)
                .and_then(|code| end_of_code(code, ticks))
                .map_or(ticks, |end| ticks + end + ticks);
            at += length;
            continue;
        }
        if c == '\\' {
            at += 1 + text.chars().nth(1).map_or(0, char::len_utf8);
            continue;
        }
        if text.starts_with(marker) {
            let last = inside.get(..at)?.chars().next_back();
            let after = text.get(marker.len()..)?;
            let ends = last.is_some_and(|c| !c.is_whitespace())
                && !(marker.starts_with('_') && is_in_word(after.chars().next()));
            // One star of two belongs to something else.
            let is_double = marker.len() == 1 && after.starts_with(*marker);
            if ends && !is_double {
                break at;
            }
            at += if is_double { 2 } else { marker.len() };
            continue;
        }
        at += c.len_utf8();
    };
    parse(inside.get(..end)?, style | *effect, out);
    Some(marker.len() + end + marker.len())
}

/// `[text](address)`: the text, and the address behind it where it says more.
fn link(rest: &str, style: Style, out: &mut Vec<Cell>) -> Option<usize> {
    let inside = rest.strip_prefix('[')?;
    let end = inside.find("](")?;
    let text = inside.get(..end).filter(|text| !text.contains('['))?;
    let target = inside.get(end + 2..)?;
    let close = target.find(')')?;
    let address = target.get(..close)?;
    if address.is_empty() || address.contains(char::is_whitespace) {
        return None;
    }
    parse(text, style.underline(), out);
    if address != text {
        let dim = Style::new().dimmed();
        out.extend(format!(" ({address})").chars().map(|c| (c, dim)));
    }
    Some(1 + end + 2 + close + 1)
}
