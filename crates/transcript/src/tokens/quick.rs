//! Exact counts in `cl100k_base` without making its vocabulary first, which takes longer than counting a short
//! conversation.
//!
//! `data/cl100k.bin` lists the tokens by length, each followed by its rank in three bytes, and sorted within a length, so
//! that binary search finds a token in the file itself. This counts 20 to 40 MB/s: after [`BYTES_MAX`], making the
//! vocabulary pays. Texts with characters whose class is not certain, and very long pieces, are left to the vocabulary
//! too. The counts are the same either way.

use std::cmp::Ordering;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What a process counts this way before it makes the vocabulary, bytes.
const BYTES_MAX: usize = 1 << 20;

/// Longer pieces take quadratic time, bytes.
const PIECE_BYTES_MAX: usize = 512;

/// For each length, from one byte on: how many tokens there are (four bytes), then the tokens with their ranks.
const TOKENS: &[u8] = include_bytes!("../../data/cl100k.bin");

const RANK_BYTES: usize = 3;
const NO_RANK: u32 = u32::MAX;

/// Tokens of `text`; `None` where the vocabulary has to count it.
pub(super) fn count(text: &str) -> Option<usize> {
    static COUNTED_BYTES: AtomicUsize = AtomicUsize::new(0);
    let counted = COUNTED_BYTES.load(Relaxed).saturating_add(text.len());
    if counted > BYTES_MAX {
        return None;
    }
    COUNTED_BYTES.store(counted, Relaxed);
    count_pieces(text)
}

fn count_pieces(text: &str) -> Option<usize> {
    let table = Table::get();
    let mut tokens = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at_checked(piece_bytes(rest)?)?;
        tokens += match table.rank(piece.as_bytes()) {
            NO_RANK if piece.len() > PIECE_BYTES_MAX => return None,
            NO_RANK => table.merged(piece.as_bytes()),
            _ => 1,
        };
        rest = after;
    }
    Some(tokens)
}

/// The classes that the pattern of the encoding tells apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Number,
    LineEnd,
    Space,
    Other,
}

/// The class of a character, in the scripts and blocks where the standard library and the pattern certainly agree.
fn class(c: char) -> Option<Class> {
    Some(match c {
        'a'..='z' | 'A'..='Z' => Class::Letter,
        '0'..='9' => Class::Number,
        '\n' | '\r' => Class::LineEnd,
        // The pattern ignores case, and this is a form of "s" to it.
        'ſ' => return None,
        '\0'..='\u{24f}' | '\u{2000}'..='\u{206f}' | '\u{2500}'..='\u{27bf}' => {
            if c.is_alphabetic() {
                Class::Letter
            } else if c.is_numeric() {
                Class::Number
            } else if c.is_whitespace() {
                Class::Space
            } else {
                Class::Other
            }
        }
        '\u{391}'..='\u{3a1}'
        | '\u{3a3}'..='\u{3ce}'
        | '\u{400}'..='\u{481}'
        | '\u{48a}'..='\u{52f}' => Class::Letter,
        'ぁ'..='ゖ' | 'ァ'..='ヺ' | 'ー' | '一'..='\u{9fa5}' | '가'..='힣' => Class::Letter,
        '\u{3000}' => Class::Space,
        '、'..='〃' | '〈'..='〟' | '・' | '！'..='／' | '：'..='＠' => Class::Other,
        '\u{20a0}'..='\u{20bf}' | '\u{2190}'..='\u{23ff}' | '\u{fe0f}' => Class::Other,
        '\u{1f300}'..='\u{1f64f}' | '\u{1f680}'..='\u{1f6c5}' | '\u{1f910}'..='\u{1f93a}' => {
            Class::Other
        }
        _ => return None,
    })
}

/// Length of the piece that `text` begins with, as the pattern of the encoding divides it:
/// `'(?i:[sdmt]|ll|ve|re)`, `[^\r\n\p{L}\p{N}]?+\p{L}++`, `\p{N}{1,3}+`, ` ?[^\s\p{L}\p{N}]++[\r\n]*+`, `\s++$`,
/// `\s*[\r\n]`, `\s+(?!\S)`, `\s`.
fn piece_bytes(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    if first == '\''
        && let Some(bytes) = contraction_bytes(&text[1..])
    {
        return Some(1 + bytes);
    }
    let rest = &text[first.len_utf8()..];
    let second = || rest.chars().next().map(class);
    match class(first)? {
        Class::Letter => run(text, usize::MAX, |class| class == Class::Letter),
        Class::Number => run(text, 3, |class| class == Class::Number),
        Class::Space | Class::Other if second() == Some(Some(Class::Letter)) => {
            Some(first.len_utf8() + run(rest, usize::MAX, |class| class == Class::Letter)?)
        }
        Class::Other => signs(text),
        Class::Space if first == ' ' && second() == Some(Some(Class::Other)) => {
            Some(1 + signs(rest)?)
        }
        Class::Space | Class::LineEnd => {
            let bytes = run(text, usize::MAX, |class| {
                matches!(class, Class::Space | Class::LineEnd)
            })?;
            let spaces = &text[..bytes];
            let last = spaces.char_indices().next_back().map_or(0, |(at, _)| at);
            Some(match spaces.rfind(['\n', '\r']) {
                _ if bytes == text.len() => bytes,
                Some(end) => end + 1,
                // The last space belongs to what follows.
                None if last > 0 => last,
                None => bytes,
            })
        }
    }
}

/// Length of what follows an apostrophe and belongs to it.
fn contraction_bytes(text: &str) -> Option<usize> {
    let byte = |at: usize| text.as_bytes().get(at).map_or(0, u8::to_ascii_lowercase);
    match (byte(0), byte(1)) {
        (b's' | b'd' | b'm' | b't', _) => Some(1),
        (b'l', b'l') | (b'v' | b'r', b'e') => Some(2),
        _ => None,
    }
}

/// Length of the signs that `text` begins with, and of the line ends after them.
fn signs(text: &str) -> Option<usize> {
    let signs = run(text, usize::MAX, |class| class == Class::Other)?;
    Some(signs + run(&text[signs..], usize::MAX, |class| class == Class::LineEnd)?)
}

/// Length of the characters at the start of `text` whose class fits, at most so many of them.
fn run(text: &str, characters_max: usize, fits: impl Fn(Class) -> bool) -> Option<usize> {
    for (at, c) in text.char_indices().take(characters_max) {
        if !fits(class(c)?) {
            return Some(at);
        }
    }
    Some(
        text.char_indices()
            .nth(characters_max)
            .map_or(text.len(), |(at, _)| at),
    )
}

/// Where the tokens of each length are.
struct Table {
    /// First record and number of records, by length less one.
    lengths: Vec<(usize, usize)>,
}

impl Table {
    fn get() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(|| {
            let mut lengths = Vec::new();
            let mut at = 0;
            while let Some(count) = TOKENS.get(at..at + 4) {
                let count = number(count) as usize;
                lengths.push((at + 4, count));
                at += 4 + count * (lengths.len() + RANK_BYTES);
            }
            Self { lengths }
        })
    }

    /// The rank of a token; [`NO_RANK`] if `bytes` are none.
    fn rank(&self, bytes: &[u8]) -> u32 {
        let Some((start, count)) = self.lengths.get(bytes.len().wrapping_sub(1)).copied() else {
            return NO_RANK;
        };
        let record_bytes = bytes.len() + RANK_BYTES;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low.midpoint(high);
            let at = start + middle * record_bytes;
            let Some((token, rank)) = TOKENS
                .get(at..at + record_bytes)
                .and_then(|record| record.split_at_checked(bytes.len()))
            else {
                return NO_RANK;
            };
            match token.cmp(bytes) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return number(rank),
            }
        }
        NO_RANK
    }

    /// How many tokens a piece becomes that is none itself: of all neighbours, those whose merger ranks first are
    /// merged, until no merger is a token.
    fn merged(&self, piece: &[u8]) -> usize {
        // Where each part begins, and the rank of its merger with the next one.
        let mut parts: Vec<(usize, u32)> = (0..=piece.len())
            .map(|at| {
                (
                    at,
                    piece
                        .get(at..at + 2)
                        .map_or(NO_RANK, |pair| self.rank(pair)),
                )
            })
            .collect();
        let merger = |parts: &[(usize, u32)], index: usize| {
            // The part after the next one has been merged into that already.
            let end = parts.get(index + 3).map(|(end, _)| *end);
            end.and_then(|end| piece.get(parts[index].0..end))
                .map_or(NO_RANK, |bytes| self.rank(bytes))
        };
        loop {
            let best = parts.iter().enumerate().min_by_key(|(_, (_, rank))| *rank);
            let Some((index, _)) = best.filter(|(_, (_, rank))| *rank != NO_RANK) else {
                return parts.len() - 1;
            };
            if let Some(before) = index.checked_sub(1) {
                parts[before].1 = merger(&parts, before);
            }
            parts[index].1 = merger(&parts, index);
            parts.remove(index + 1);
        }
    }
}

/// The number that the bytes give, the lowest first.
fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use toktok::Tokenizer;

    use super::*;

    fn vocabulary() -> &'static Tokenizer {
        static VOCABULARY: OnceLock<Tokenizer> = OnceLock::new();
        VOCABULARY.get_or_init(|| Tokenizer::builtin("cl100k_base").unwrap())
    }

    #[track_caller]
    fn check(text: &str) {
        if let Some(tokens) = count_pieces(text) {
            assert_eq!(tokens, vocabulary().count(text.as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn every_token_has_its_rank() {
        let vocabulary = vocabulary().vocab();
        for id in 0..vocabulary.n {
            assert_eq!(Table::get().rank(vocabulary.token_bytes(id)), id);
        }
        let tokens: usize = Table::get().lengths.iter().map(|(_, count)| count).sum();
        assert_eq!(tokens, vocabulary.size());
    }

    #[test]
    fn characters_are_divided_as_by_the_vocabulary() {
        for c in ('\0'..=char::MAX).filter(|c| class(*c).is_some()) {
            check(&format!("a{c}b"));
            check(&format!("{c}{c} {c}"));
            check(&format!(" {c}1{c}\n{c}"));
            check(&format!("'{c}x  {c}"));
        }
    }

    #[test]
    fn real_texts_need_no_vocabulary() {
        for text in [
            include_str!("../../../../examples/trip-planning.txt"),
            include_str!("../../../../examples/german-chat.txt"),
            include_str!("../../../../examples/support-chat.json"),
        ] {
            assert!(count_pieces(text).is_some());
            check(text);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_counted_as_by_the_vocabulary(
            text in "(\\PC|[aBstLvErd019 \t\r\n'’\"_./{}()é²½Öß中のア한я—🙂]|the|  |'ll){0,60}",
        ) {
            check(&text);
        }
    }
}
