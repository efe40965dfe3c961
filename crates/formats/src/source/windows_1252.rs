//! Windows-1252, the character set of Western Europe before UTF-8: programs on Windows still write it.

use crate::source::{SkippedPart, add_skipped};

/// How many bytes beyond ASCII there must be: fewer can be damage.
const BYTES_MIN: usize = 2;

/// Whether `bytes`, which are not UTF-8, are a text in Windows-1252: no character beyond ASCII is valid UTF-8, nearly
/// all of them would be letters or quotation marks that stand alone between ASCII letters, as in the languages that the
/// character set is for.
pub(super) fn is_likely(bytes: &[u8]) -> bool {
    let (mut letters, mut others, mut beyond_ascii) = (0usize, 0usize, 0usize);
    for chunk in bytes.utf8_chunks() {
        beyond_ascii += chunk.valid().chars().filter(|one| !one.is_ascii()).count();
        match chunk.invalid() {
            [] => {}
            [byte] if is_written(*byte) => letters += 1,
            // Several bytes at once are the beginning of a character in UTF-8.
            invalid => others += invalid.len(),
        }
    }
    let ascii_letters = bytes
        .iter()
        .filter(|byte| byte.is_ascii_alphabetic())
        .count();
    let is_inside = |pair: &[u8]| !pair[0].is_ascii() && !pair[1].is_ascii();
    let neighbours = bytes.windows(2).filter(|pair| is_inside(pair)).count();
    let has_controls = bytes.iter().any(|byte| {
        byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b)
    });
    !has_controls
        && letters >= BYTES_MIN
        && others * 8 <= letters
        && beyond_ascii * 8 <= letters
        && neighbours * 2 <= letters
        && letters * 2 <= ascii_letters
}

/// Whether a byte is a letter, a quotation mark, a dash or another character that texts have.
fn is_written(byte: u8) -> bool {
    let letter = matches!(byte, 0xc0..=0xfd) && !matches!(byte, 0xd7 | 0xf7);
    letter
        || matches!(
            byte,
            0x80 | 0x84 | 0x85 | 0x8a | 0x8c | 0x8e | 0x91..=0x97 | 0x9a | 0x9c | 0x9e
        )
        || matches!(byte, 0xa0 | 0xa1 | 0xa3 | 0xa7 | 0xab | 0xb0..=0xb3 | 0xb4..=0xb7 | 0xbb | 0xbf)
}

/// Decodes the text, with one note that says so.
pub(super) fn decode(bytes: &[u8], skipped: &mut Vec<SkippedPart>) -> String {
    let first = bytes
        .iter()
        .position(|byte| !byte.is_ascii())
        .unwrap_or_default();
    let line = 1 + memchr::memchr_iter(b'\n', &bytes[..first]).count();
    let reason = "the text is not UTF-8 and was read as Windows-1252";
    add_skipped(skipped, line, 0, reason);
    bytes.iter().map(|byte| character(*byte)).collect()
}

fn character(byte: u8) -> char {
    match byte {
        0x80..=0x9f => UPPER[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

/// The characters of the bytes 0x80 to 0x9f; elsewhere a byte is the character of its number.
const UPPER: [char; 32] = [
    '€', '\u{fffd}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{fffd}', 'Ž',
    '\u{fffd}', '\u{fffd}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{fffd}',
    'ž', 'Ÿ',
];

#[cfg(test)]
mod tests {
    use crate::source::SourceText;

    #[track_caller]
    fn check(bytes: &[u8], text: &str, line: Option<usize>) {
        let source = SourceText::from_bytes(bytes.to_vec());
        assert_eq!(source.text, text);
        let notes: Vec<_> = source
            .skipped
            .iter()
            .filter(|piece| piece.reason.contains("Windows-1252"))
            .map(|piece| (piece.line, piece.bytes))
            .collect();
        assert_eq!(
            notes,
            line.map(|line| (line, 0)).into_iter().collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_text_without_utf_8_is_windows_1252() {
        check(
            b"#### H\xf6he der Br\xfccke\n\nGr\xf6\xdfer.",
            "#### Höhe der Brücke\n\nGrößer.",
            Some(1),
        );
        check(
            b"The quay\nIt\x92s \x93open\x94 \x96 5 \x80",
            "The quay\nIt’s “open” – 5 €",
            Some(2),
        );
        check(
            b"\"o\xf9 est le bac d\xe9j\xe0 parti ?\"",
            "\"où est le bac déjà parti ?\"",
            Some(1),
        );
        check(
            b"{\"role\":\"user\",\"content\":\"Ni\xf1o, ma\xf1ana\"}",
            "{\"role\":\"user\",\"content\":\"Niño, mañana\"}",
            Some(1),
        );
    }

    #[test]
    fn damage_in_utf_8_stays_damage() {
        // One byte, the beginning of a character, and a text that has valid characters as well.
        check(b"the caf\xe9", "the caf\u{fffd}", None);
        check(b"the harbour \xe2\x82", "the harbour \u{fffd}", None);
        check(
            "Brücke, Höhe, b\u{fc}"
                .as_bytes()
                .iter()
                .chain(b"\xf6 and \xe4")
                .copied()
                .collect::<Vec<u8>>()
                .as_slice(),
            "Brücke, Höhe, bü\u{fffd} and \u{fffd}",
            None,
        );
        // Cyrillic in its own character set, and no text at all.
        check(
            b"\xcf\xf0\xe8\xe2\xe5\xf2, \xec\xe8\xf0",
            &format!("{}, {}", "\u{fffd}".repeat(6), "\u{fffd}".repeat(3)),
            None,
        );
        check(b"ab\x01cd\xe4ef\xf6", "ab\u{1}cd\u{fffd}ef\u{fffd}", None);
    }
}
