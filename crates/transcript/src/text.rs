//! Shortening texts without breaking a character, and numbers as people read them.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The mark after a text that was cut off.
pub const MARK: char = '…';

/// At most `max` bytes of the beginning of `text`, and a `…` behind them if there was more.
///
/// The mark comes on top of `max`. No character is split; with `max` 0 there is nothing left to mark.
#[must_use]
pub fn truncate_bytes(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let head = head(text, max);
    if max == 0 {
        return Cow::Borrowed(head);
    }
    let mut cut = String::with_capacity(head.len() + MARK.len_utf8());
    cut.push_str(head);
    cut.push(MARK);
    Cow::Owned(cut)
}

/// Beginning and end of `text`, at most `max` bytes together, with a line between them that says how much is left out.
///
/// The line comes on top of `max`. Where a line ends near the place of the cut, the cut is made there: whole lines are
/// easier to read. Nothing is left out if that would save less than the line that says so.
#[must_use]
pub fn head_and_tail(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max.saturating_add(OMISSION_BYTES_MAX) {
        return Cow::Borrowed(text);
    }
    let head = to_line_end(head(text, max.div_ceil(2)));
    let tail = from_line_start(tail(text, max / 2));
    let omitted = text
        .get(head.len()..text.len() - tail.len())
        .unwrap_or_default();
    let lines = memchr::memchr_iter(b'\n', omitted.as_bytes()).count();
    let mut excerpt = String::with_capacity(head.len() + tail.len() + OMISSION_BYTES_MAX);
    excerpt.push_str(head);
    if !head.is_empty() && !head.ends_with('\n') {
        excerpt.push('\n');
    }
    // Writing to a string does not fail.
    let _ = writeln!(
        excerpt,
        "[... {} bytes, {lines} lines left out ...]",
        omitted.len()
    );
    excerpt.push_str(tail);
    Cow::Owned(excerpt)
}

/// Most bytes of the line that says what was left out, line ends included.
const OMISSION_BYTES_MAX: usize = 80;

/// The longest beginning of at most `max` bytes.
#[must_use]
pub fn head(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

/// The longest end of at most `max` bytes.
#[must_use]
pub fn tail(text: &str, max: usize) -> &str {
    let from = text.ceil_char_boundary(text.len().saturating_sub(max));
    text.get(from..).unwrap_or_default()
}

/// Without the last, unfinished line, if that costs at most a quarter.
fn to_line_end(head: &str) -> &str {
    match memchr::memrchr(b'\n', head.as_bytes()) {
        Some(at) if at + 1 >= head.len() - head.len() / 4 => head.get(..=at).unwrap_or(head),
        _ => head,
    }
}

/// Without the first, unfinished line, if that costs at most a quarter.
fn from_line_start(tail: &str) -> &str {
    match memchr::memchr(b'\n', tail.as_bytes()) {
        Some(at) if at < tail.len() / 4 => tail.get(at + 1..).unwrap_or(tail),
        _ => tail,
    }
}

/// A number in groups of three digits: `12,345`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, max: usize) {
        let cut = truncate_bytes(text, max);
        if text.len() <= max {
            assert_eq!(cut, text);
            return;
        }
        let kept = cut.strip_suffix(MARK).unwrap_or(&cut);
        assert!(text.starts_with(kept) && kept.len() <= max);
        assert!(max - kept.len() < 4, "no more is lost than a character");
        assert_eq!(cut.ends_with(MARK), max > 0);
    }

    #[test]
    fn no_cut_breaks_a_character() {
        let rows = [
            "aé你好👩\u{200d}👩\u{200d}👧 e\u{301} 🇩🇪 नि end",
            "\u{feff}ok\0nul\r\nline",
            &"北".repeat(5000),
            &"😀".repeat(3000),
        ];
        for text in rows {
            for max in (0..=64).chain([4095, 4096, 4097, 11_999, 12_000]) {
                check(text, max);
                let excerpt = head_and_tail(text, max);
                assert!(excerpt.len() <= max + OMISSION_BYTES_MAX);
                assert!(tail(text, max).len() <= max && text.ends_with(tail(text, max)));
            }
        }
        assert_eq!(truncate_bytes("北京", 0), "");
        assert_eq!(truncate_bytes("北京", 4), "北…");
    }

    #[test]
    fn an_excerpt_keeps_both_ends_and_states_the_omission() {
        let mut log = String::from("BEGIN suite seed=9917\n");
        for case in 0..200_000 {
            log.push_str("test case ");
            log.push_str(&case.to_string());
            log.push('\n');
        }
        log.push_str("\nFAILED at case 137\nEND exit=101");
        let excerpt = head_and_tail(&log, 2_000);
        assert!(excerpt.starts_with("BEGIN suite seed=9917\ntest case 0\n"));
        assert!(excerpt.ends_with("test case 199999\n\nFAILED at case 137\nEND exit=101"));
        assert!(excerpt.len() <= 2_000 + OMISSION_BYTES_MAX);
        let note = excerpt
            .lines()
            .find(|line| line.starts_with("[..."))
            .unwrap();
        let bytes = log.len() - (excerpt.len() - note.len() - 1);
        assert!(note.contains(&format!("{bytes} bytes")), "{note}");
    }

    #[test]
    fn a_text_that_fits_is_unchanged() {
        assert!(matches!(truncate_bytes("abc", 3), Cow::Borrowed("abc")));
        assert!(matches!(head_and_tail("abc", 0), Cow::Borrowed("abc")));
    }

    proptest::proptest! {
        #[test]
        fn any_text_any_limit(text in "\\PC{0,200}", max in 0usize..300) {
            check(&text, max);
            let excerpt = head_and_tail(&text, max);
            proptest::prop_assert!(excerpt.len() <= max + OMISSION_BYTES_MAX || excerpt == text);
        }
    }
}
