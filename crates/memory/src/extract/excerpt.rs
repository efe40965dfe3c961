//! Cuts texts to a number of characters, between words, and marks where something is left out.

/// Stands for what was left out.
pub(super) const CUT: &str = "…";

/// Which part of a long text is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Its beginning.
    Head,
    /// Two thirds from its beginning and the rest from its end.
    Ends,
    /// What surrounds this byte.
    Around(usize),
}

/// The part of a text that has at most `characters`.
pub(super) fn part(text: &str, characters: usize, part: Part) -> String {
    if text.len() <= characters || text.chars().nth(characters).is_none() {
        return text.to_owned();
    }
    match part {
        Part::Head => head(text, characters),
        Part::Ends => {
            let head_end = before_word(text, byte_of(text, characters * 2 / 3));
            let left = characters - characters * 2 / 3;
            let from = text.chars().count().saturating_sub(left);
            let tail_start = after_word(text, byte_of(text, from)).max(head_end);
            format!(
                "{} {CUT} {}",
                trimmed_end(&text[..head_end]),
                text[tail_start..].trim_start()
            )
        }
        Part::Around(at) => around(text, at, characters),
    }
}

/// The start of a text, at most `characters` long.
pub(crate) fn excerpt(text: &str, characters: usize) -> String {
    part(text, characters, Part::Head)
}

fn head(text: &str, characters: usize) -> String {
    let end = before_word(text, byte_of(text, characters));
    format!("{}{CUT}", trimmed_end(&text[..end]))
}

/// The words around a byte: more of what comes before it than of what follows, unless little follows.
fn around(text: &str, at: usize, characters: usize) -> String {
    let at = text.floor_char_boundary(at.min(text.len()));
    let before = text[..at].chars().count();
    let after = text[at..].chars().count();
    let wanted_after = (characters / 2).min(after);
    let kept_before = (characters - wanted_after).min(before);
    let kept_after = (characters - kept_before).min(after);
    let start = byte_of(text, before - kept_before);
    let start = if start == 0 {
        0
    } else {
        // The words right before the byte are the point: a long one among them stays.
        after_word(text, start).min(at)
    };
    let end = byte_of(text, before + kept_after);
    let end = if end == text.len() {
        end
    } else {
        before_word(text, end).max(start)
    };
    let mut cut = String::new();
    if start > 0 {
        cut.push_str(CUT);
    }
    cut.push_str(trimmed_end(text[start..end].trim_start()));
    if end < text.len() {
        cut.push_str(CUT);
    }
    cut
}

/// The byte at which the character with this number begins; the length of the text if it has fewer.
fn byte_of(text: &str, character: usize) -> usize {
    text.char_indices()
        .nth(character)
        .map_or(text.len(), |(at, _)| at)
}

/// Characters that are looked through for the end of a word: longer ones are cut.
const WORD_CHARACTERS_MAX: usize = 80;

/// The end of the last whole word before `at`, or `at` inside of a word without end.
fn before_word(text: &str, at: usize) -> usize {
    let is_between = text[at..].chars().next().is_none_or(is_gap)
        || text[..at].chars().next_back().is_none_or(is_gap);
    if is_between {
        return at;
    }
    let mut end = at;
    for (back, c) in text[..at].char_indices().rev().take(WORD_CHARACTERS_MAX) {
        if is_gap(c) {
            return if c.is_whitespace() {
                back
            } else {
                back + c.len_utf8()
            };
        }
        end = back;
    }
    if end == 0 { 0 } else { at }
}

/// The start of the first whole word from `at` on, or `at` inside of a word without end.
fn after_word(text: &str, at: usize) -> usize {
    if text[..at].chars().next_back().is_none_or(is_gap) {
        return at;
    }
    for (forth, c) in text[at..].char_indices().take(WORD_CHARACTERS_MAX) {
        if is_gap(c) {
            return at + forth + c.len_utf8();
        }
    }
    at
}

/// What stands between words; letters of scripts without spaces can be parted anywhere.
fn is_gap(c: char) -> bool {
    c.is_whitespace() || is_stop(c) || crate::cues::is_unspaced(c)
}

fn is_stop(c: char) -> bool {
    matches!(c, '。' | '、' | '，' | '；' | '！' | '？')
}

fn trimmed_end(text: &str) -> &str {
    text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':' | '，' | '、'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, characters: usize, which: Part, expected: &str) {
        let cut = part(text, characters, which);
        assert_eq!(cut, expected, "{text:?}");
        for piece in cut.split('…') {
            assert!(text.contains(piece.trim()), "{piece:?}");
        }
    }

    #[test]
    fn a_text_that_fits_stays_whole() {
        for which in [Part::Head, Part::Ends, Part::Around(3)] {
            check("Fähre", 5, which, "Fähre");
            check("Паром идёт", 10, which, "Паром идёт");
        }
    }

    #[test]
    fn a_cut_is_between_words_and_marked() {
        check("the ferry leaves at nine", 12, Part::Head, "the ferry…");
        check("the ferry, leaves at nine", 10, Part::Head, "the ferry…");
        check(
            "Паром отходит в девять часов",
            15,
            Part::Head,
            "Паром отходит в…",
        );
        check(
            "渡船九点出发，请准时到达码头",
            7,
            Part::Head,
            "渡船九点出发…",
        );
        check(
            "Check every gauge on the quay, list what is wrong, and commit nothing.",
            40,
            Part::Ends,
            "Check every gauge on the … nothing.",
        );
    }

    #[test]
    fn the_words_around_the_point_stay() {
        let text = "so I was thinking about it again and the people in the office said it is fine and no, the port is 4021 now";
        let at = text.find("no, the").unwrap();
        check(
            text,
            44,
            Part::Around(at),
            "…said it is fine and no, the port is 4021…",
        );
        check(
            "never open the sluice at night, whatever the harbour master says about it in the morning",
            32,
            Part::Around(0),
            "never open the sluice at night…",
        );
    }

    #[test]
    fn a_word_without_end_is_cut() {
        let word = "x".repeat(300);
        assert_eq!(part(&word, 100, Part::Head).chars().count(), 101);
        assert_eq!(part(&word, 100, Part::Around(150)).chars().count(), 102);
    }
}
