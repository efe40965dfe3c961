//! One pass over a text that sorts it into runs, as byte-pair tokenizers see it before they merge.
//!
//! A tokenizer first splits a text into words, numbers, groups of signs and white space, and then splits these further
//! where its vocabulary does not have them whole. How often it does so depends mostly on what kind of run it is and
//! how long. So runs are counted by kind and length ([`Tally`]), and a table says what each costs. Prose, code, JSON
//! and other scripts differ in what runs they are made of; no guess is needed about what kind of text it is.

/// So many bytes after a letter with an accent words are taken for foreign.
const FOREIGN_BYTES: usize = 120;

/// Number of kinds of run.
pub(super) const KINDS: usize = 192;

/// Longest words, sign groups and white space told apart by length; longer ones count several times.
const LENGTH_MAX: usize = 16;

/// First kind of each group. Within the first groups the length (1 to 16) is added, less one.
mod kind {
    /// A word after a space, the space included.
    pub(super) const WORD_AFTER_SPACE: usize = 0;
    /// A word after a sign that belongs to no longer group, the sign included.
    pub(super) const WORD_AFTER_SIGN: usize = 16;
    /// A word after anything else.
    pub(super) const WORD: usize = 32;
    /// A word of capitals only.
    pub(super) const CAPITALS: usize = 48;
    /// Letters next to digits: identifiers, hashes, base64.
    pub(super) const LETTERS_AT_DIGITS: usize = 64;
    /// Signs, all the same.
    pub(super) const SAME_SIGNS: usize = 80;
    /// Signs of several kinds.
    pub(super) const MIXED_SIGNS: usize = 96;
    /// Two or more spaces or tabs.
    pub(super) const BLANKS: usize = 112;
    /// Up to three digits.
    pub(super) const DIGITS: usize = 128;
    /// A space before a digit.
    pub(super) const SPACE_BEFORE_DIGIT: usize = 129;
    /// Line ends after something else than a sign.
    pub(super) const LINE_END: usize = 130;
    /// Line ends after a sign.
    pub(super) const LINE_END_AFTER_SIGN: usize = 131;
    /// A tab before a word or sign.
    pub(super) const TAB: usize = 132;
    /// A letter with an accent, beside its part in a word.
    pub(super) const ACCENT: usize = 133;
    /// A space at the end or before another script.
    pub(super) const OTHER_SPACE: usize = 134;
    /// A control character.
    pub(super) const CONTROL: usize = 135;
    /// A word near a letter with an accent: of a language that vocabularies know less well than English.
    pub(super) const FOREIGN_WORD: usize = 136;
    /// A character of another script; the script (0 to 19) is added.
    pub(super) const SCRIPT_CHARACTER: usize = 152;
    /// A run of characters of another script; the script (0 to 19) is added.
    pub(super) const SCRIPT_RUN: usize = 172;
}

/// Whether `kind` counts characters of a script other than Latin.
pub(super) fn is_other_script_character(kind: usize) -> bool {
    (kind::SCRIPT_CHARACTER..kind::SCRIPT_RUN).contains(&kind)
}

/// Takes what [`scan`] finds.
pub(super) trait Tally {
    /// `count` more runs of `kind` (below [`KINDS`]).
    fn add(&mut self, kind: usize, count: usize);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Sign,
    Space,
    Tab,
    LineEnd,
    Control,
    /// First byte of a Latin letter with an accent.
    Latin,
    /// Any other byte of a character outside ASCII.
    High,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::High; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' => Class::Digit,
            b' ' => Class::Space,
            b'\t' => Class::Tab,
            b'\n' | b'\r' => Class::LineEnd,
            b'!'..=b'~' => Class::Sign,
            0..=0x1f | 0x7f => Class::Control,
            0xc3..=0xc9 => Class::Latin,
            _ => Class::High,
        };
        byte += 1;
    }
    classes
};

/// The character before a run, which the run may include.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Space,
    Sign,
    Digit,
}

/// Sorts `text` into runs. Linear in its length, without allocation.
pub(super) fn scan(text: &str, tally: &mut impl Tally) {
    let bytes = text.as_bytes();
    let class_at = |at: usize| bytes.get(at).map(|byte| CLASSES[usize::from(*byte)]);
    let mut before = Before::Nothing;
    let mut foreign_until = 0;
    let mut at = 0;
    while let Some(class) = class_at(at) {
        let start = at;
        match class {
            Class::Lower | Class::Upper | Class::Latin => {
                while class_at(at) == Some(Class::Upper) {
                    at += 1;
                }
                let capitals = at - start;
                let mut accents = 0;
                loop {
                    match class_at(at) {
                        Some(Class::Lower) => at += 1,
                        Some(Class::Latin) => {
                            at += 2;
                            accents += 1;
                        }
                        _ => break,
                    }
                }
                let length = at - start - accents;
                if accents > 0 {
                    tally.add(kind::ACCENT, accents);
                    foreign_until = at + FOREIGN_BYTES;
                }
                let group = if before == Before::Digit || class_at(at) == Some(Class::Digit) {
                    kind::LETTERS_AT_DIGITS
                } else if capitals == length && length > 1 {
                    kind::CAPITALS
                } else if start < foreign_until {
                    kind::FOREIGN_WORD
                } else {
                    match before {
                        Before::Space => kind::WORD_AFTER_SPACE,
                        Before::Sign => kind::WORD_AFTER_SIGN,
                        Before::Nothing | Before::Digit => kind::WORD,
                    }
                };
                add_by_length(tally, group, length);
                before = Before::Nothing;
            }
            Class::Digit => {
                while class_at(at) == Some(Class::Digit) {
                    at += 1;
                }
                if before == Before::Space {
                    tally.add(kind::SPACE_BEFORE_DIGIT, 1);
                }
                tally.add(kind::DIGITS, (at - start).div_ceil(3));
                before = Before::Digit;
            }
            Class::Sign => {
                let first = bytes[start];
                let mut is_same = true;
                while class_at(at) == Some(Class::Sign) {
                    is_same &= bytes[at] == first;
                    at += 1;
                }
                let is_word_next = matches!(
                    class_at(at),
                    Some(Class::Lower | Class::Upper | Class::Latin)
                );
                if at - start == 1 && is_word_next && before != Before::Space {
                    before = Before::Sign;
                } else {
                    let group = if is_same {
                        kind::SAME_SIGNS
                    } else {
                        kind::MIXED_SIGNS
                    };
                    add_by_length(tally, group, at - start);
                    before = Before::Nothing;
                    if class_at(at) == Some(Class::LineEnd) {
                        while class_at(at) == Some(Class::LineEnd) {
                            at += 1;
                        }
                        tally.add(kind::LINE_END_AFTER_SIGN, 1);
                    }
                }
            }
            Class::Space | Class::Tab => {
                while let Some(Class::Space | Class::Tab) = class_at(at) {
                    at += 1;
                }
                match class_at(at) {
                    // The line end takes the white space before it.
                    Some(Class::LineEnd) => before = Before::Nothing,
                    Some(Class::High | Class::Control) | None => {
                        tally.add(kind::OTHER_SPACE, 1);
                        before = Before::Nothing;
                    }
                    Some(_) => {
                        if at - start > 1 {
                            add_by_length(tally, kind::BLANKS, at - start - 1);
                        }
                        before = if bytes[at - 1] == b' ' {
                            Before::Space
                        } else {
                            tally.add(kind::TAB, 1);
                            Before::Nothing
                        };
                    }
                }
            }
            Class::LineEnd => {
                while class_at(at) == Some(Class::LineEnd) {
                    at += 1;
                }
                tally.add(kind::LINE_END, 1);
                before = Before::Nothing;
            }
            Class::Control => {
                at += 1;
                tally.add(kind::CONTROL, 1);
                before = Before::Nothing;
            }
            Class::High => {
                let script = script(bytes[at], bytes.get(at + 1).copied().unwrap_or(0));
                let mut characters = 0;
                while class_at(at) == Some(Class::High) {
                    let lead = bytes[at];
                    let next = bytes.get(at + 1).copied().unwrap_or(0);
                    if characters > 0 && self::script(lead, next) != script {
                        break;
                    }
                    at += if lead >= 0xf0 {
                        4
                    } else if lead >= 0xe0 {
                        3
                    } else {
                        2
                    };
                    characters += 1;
                }
                tally.add(kind::SCRIPT_CHARACTER + script, characters);
                tally.add(kind::SCRIPT_RUN + script, 1);
                before = Before::Nothing;
            }
        }
    }
}

fn add_by_length(tally: &mut impl Tally, group: usize, length: usize) {
    let mut rest = length;
    while rest > LENGTH_MAX {
        tally.add(group + LENGTH_MAX - 1, 1);
        rest -= LENGTH_MAX;
    }
    tally.add(group + rest.saturating_sub(1), 1);
}

/// A number below 20 for groups of scripts that tokenizers treat alike, from the first two bytes of a character.
fn script(lead: u8, next: u8) -> usize {
    match (lead, next) {
        // Signs of Latin-1.
        (0xc2, _) => 0,
        // Greek.
        (0xcd..=0xcf, _) => 1,
        // Cyrillic.
        (0xd0..=0xd3, _) => 2,
        // Armenian.
        (0xd4 | 0xd5, _) | (0xd6, 0x80..=0x8f) => 3,
        // Hebrew.
        (0xd6 | 0xd7, _) => 4,
        // Arabic.
        (0xd8..=0xdd, _) => 5,
        // Other scripts of two bytes.
        (..=0xdf, _) => 6,
        // Devanagari.
        (0xe0, 0xa4 | 0xa5) => 7,
        // Thai.
        (0xe0, 0xb8 | 0xb9) => 8,
        // Other scripts of India and neighbours.
        (0xe0, _) => 9,
        // Georgian.
        (0xe1, 0x82 | 0x83) => 10,
        // Latin letters with two marks: Vietnamese.
        (0xe1, 0xb8..=0xbb) => 11,
        // Other scripts: Burmese, Khmer, Ethiopic.
        (0xe1, _) => 12,
        // Quotation marks, dashes, bullets.
        (0xe2, 0x80..=0x83) => 13,
        // Arrows, box drawing, mathematical and other signs.
        (0xe2, _) => 14,
        // Kana.
        (0xe3, 0x81..=0x83) => 15,
        // Chinese characters.
        (0xe4..=0xe9, _) => 16,
        // Hangul.
        (0xea..=0xed, _) => 17,
        // Punctuation of East Asia, full-width forms.
        (0xe3 | 0xee | 0xef, _) => 18,
        // Emoji and rare characters.
        _ => 19,
    }
}
