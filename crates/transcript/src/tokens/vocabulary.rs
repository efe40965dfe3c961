//! Exact counts of OpenAI's encodings, without a delay before the first one.
//!
//! The tables with which toktok counts about 100 MB/s take a fifth of a second of computing for `cl100k_base` and twice
//! that for `o200k_base`. A command that reads one small file would spend most of its time on them. So a process begins
//! with a plain table of ranks, which is made in a few milliseconds and counts at a third of the speed, and makes
//! toktok's tables once it has counted enough text for them to pay. Both give the same counts.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use toktok::pretok::pretok_next;
use toktok::pretok_o200k::pretok_next_o200k;
use toktok::{Tokenizer, UClass, UClassO};

/// Text that is counted with the plain table before toktok's tables are made, bytes.
const PLAIN_BYTES_MAX: usize = 4 << 20;

/// Longest piece that is merged with the plain table, bytes: its time is quadratic in the length of a piece. Pieces are
/// words, numbers and runs of signs or blanks.
const PIECE_BYTES_MAX: usize = 256;

/// Texts up to this many bytes are counted in a buffer that the thread keeps.
const KEPT_BUFFER_TEXT_BYTES_MAX: usize = 1 << 20;

/// The vocabulary of an encoding.
pub(super) struct Vocabulary {
    encoding: Encoding,
    ranks: OnceLock<Option<Ranks>>,
    tokenizer: OnceLock<Option<Tokenizer>>,
    /// Bytes counted with the plain table so far.
    plain_bytes: AtomicUsize,
}

#[derive(Clone, Copy)]
enum Encoding {
    Cl100k,
    O200k,
}

/// `cl100k_base`.
pub(super) static CL100K: Vocabulary = Vocabulary::new(Encoding::Cl100k);
/// `o200k_base`.
pub(super) static O200K: Vocabulary = Vocabulary::new(Encoding::O200k);

impl Vocabulary {
    const fn new(encoding: Encoding) -> Self {
        Self {
            encoding,
            ranks: OnceLock::new(),
            tokenizer: OnceLock::new(),
            plain_bytes: AtomicUsize::new(0),
        }
    }

    /// Tokens of `text`; `None` if the vocabulary cannot be loaded.
    pub(super) fn count(&self, text: &str) -> Option<usize> {
        if self.tokenizer.get().is_none() && self.is_plain_enough(text.len()) {
            let ranks = self.ranks.get_or_init(|| Ranks::load(self.encoding));
            if let Some(tokens) = ranks
                .as_ref()
                .and_then(|ranks| ranks.count(text.as_bytes()))
            {
                return Some(tokens);
            }
        }
        self.tokenizer().map(|tokenizer| exact(tokenizer, text))
    }

    fn is_plain_enough(&self, bytes: usize) -> bool {
        let before = self.plain_bytes.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes) <= PLAIN_BYTES_MAX
    }

    fn tokenizer(&self) -> Option<&Tokenizer> {
        let name = match self.encoding {
            Encoding::Cl100k => "cl100k_base",
            Encoding::O200k => "o200k_base",
        };
        self.tokenizer
            .get_or_init(|| Tokenizer::builtin(name).ok())
            .as_ref()
    }
}

fn exact(tokenizer: &Tokenizer, text: &str) -> usize {
    if text.len() <= KEPT_BUFFER_TEXT_BYTES_MAX {
        // Unlike `count`, this does not allocate.
        tokenizer.truncate(text.as_bytes(), usize::MAX).total_tokens
    } else {
        tokenizer.count(text.as_bytes())
    }
}

/// Bits of a slot that hold the rank plus one. The others tell most tokens apart without a look at their bytes.
const RANK_BITS: u32 = 18;

/// No rank: the bytes are not a token.
const NO_RANK: u32 = u32::MAX;

/// The tokens of an encoding and their ranks, in a hash table with open addressing.
struct Ranks {
    classes: Classes,
    packed: &'static [u8],
    /// Where the length byte of the token with each rank is in `packed`.
    starts: Vec<u32>,
    /// Rank plus one in the low bits, a part of the token's hash above; 0 is empty. At most half of the slots are taken.
    slots: Vec<u32>,
}

/// The Unicode classes by which an encoding splits a text into pieces.
enum Classes {
    Cl100k(UClass),
    O200k(UClassO),
}

impl Ranks {
    fn load(encoding: Encoding) -> Option<Self> {
        let (packed, classes): (&'static [u8], _) = match encoding {
            Encoding::Cl100k => (
                include_bytes!("../../data/vocabularies/cl100k.bin"),
                Classes::Cl100k(
                    UClass::from_bytes(
                        include_bytes!("../../data/vocabularies/cl100k_classes.bin"),
                        "cl100k_classes.bin",
                    )
                    .ok()?,
                ),
            ),
            Encoding::O200k => (
                include_bytes!("../../data/vocabularies/o200k.bin"),
                Classes::O200k(
                    UClassO::from_bytes(
                        include_bytes!("../../data/vocabularies/o200k_classes.bin"),
                        "o200k_classes.bin",
                    )
                    .ok()?,
                ),
            ),
        };
        let mut starts = Vec::with_capacity(1 << 18);
        let mut at = 0;
        while let Some(length) = packed.get(at) {
            starts.push(u32::try_from(at).ok()?);
            at += 1 + usize::from(*length);
        }
        let slots = vec![0; (starts.len() * 2).next_power_of_two()];
        let mut ranks = Self {
            classes,
            packed,
            starts,
            slots,
        };
        for rank in 0..ranks.starts.len() as u32 {
            let (slot, tag) = ranks.find(ranks.token(rank)).err()?;
            ranks.slots[slot] = tag << RANK_BITS | (rank + 1);
        }
        Some(ranks)
    }

    fn token(&self, rank: u32) -> &'static [u8] {
        let start = self
            .starts
            .get(rank as usize)
            .map_or(usize::MAX, |start| *start as usize);
        let length = self
            .packed
            .get(start)
            .map_or(0, |length| usize::from(*length));
        self.packed
            .get(start.saturating_add(1)..start.saturating_add(1 + length))
            .unwrap_or_default()
    }

    /// The rank of a token, or the empty slot for it and its tag.
    fn find(&self, token: &[u8]) -> Result<u32, (usize, u32)> {
        let mask = self.slots.len() - 1;
        let hash = hash(token);
        let tag = (hash >> (32 + RANK_BITS)) as u32;
        let mut slot = hash as usize & mask;
        loop {
            let found = self.slots.get(slot).copied().unwrap_or(0);
            if found == 0 {
                return Err((slot, tag));
            }
            let rank = (found & ((1 << RANK_BITS) - 1)) - 1;
            if found >> RANK_BITS == tag && self.token(rank) == token {
                return Ok(rank);
            }
            slot = (slot + 1) & mask;
        }
    }

    fn rank(&self, token: &[u8]) -> u32 {
        self.find(token).unwrap_or(NO_RANK)
    }

    /// Tokens of a text; `None` if a piece of it is too long.
    fn count(&self, text: &[u8]) -> Option<usize> {
        let mut tokens = 0;
        let mut at = 0;
        let mut parts = Vec::new();
        while at < text.len() {
            let length = match &self.classes {
                Classes::Cl100k(classes) => pretok_next(classes, text, at, text.len()),
                Classes::O200k(classes) => pretok_next_o200k(classes, text, at, text.len()),
            };
            let piece = text.get(at..at + length.max(1))?;
            tokens += self.count_piece(piece, &mut parts)?;
            at += piece.len();
        }
        Some(tokens)
    }

    /// Byte-pair encoding: the neighbours whose joint bytes have the lowest rank are merged until none are a token.
    fn count_piece(&self, piece: &[u8], parts: &mut Vec<Part>) -> Option<usize> {
        if piece.len() == 1 || self.rank(piece) != NO_RANK {
            return Some(1);
        }
        if piece.len() > PIECE_BYTES_MAX {
            return None;
        }
        parts.clear();
        parts.extend((0..piece.len()).map(|start| {
            Part {
                start,
                rank: piece
                    .get(start..start + 2)
                    .map_or(NO_RANK, |pair| self.rank(pair)),
            }
        }));
        loop {
            let (at, lowest) = parts
                .iter()
                .enumerate()
                .min_by_key(|(_, part)| part.rank)
                .map(|(at, part)| (at, part.rank))?;
            if lowest == NO_RANK {
                return Some(parts.len());
            }
            parts.remove(at + 1);
            for at in [Some(at), at.checked_sub(1)].into_iter().flatten() {
                parts[at].rank = self.joint_rank(piece, parts, at);
            }
        }
    }

    /// The rank of the part at `at` joined with the one after it.
    fn joint_rank(&self, piece: &[u8], parts: &[Part], at: usize) -> u32 {
        if at + 1 >= parts.len() {
            return NO_RANK;
        }
        let end = parts.get(at + 2).map_or(piece.len(), |part| part.start);
        piece
            .get(parts[at].start..end)
            .map_or(NO_RANK, |joint| self.rank(joint))
    }
}

/// A part of a piece that is a token.
struct Part {
    start: usize,
    /// The rank of this part joined with the one after it.
    rank: u32,
}

/// Spreads tokens over the slots. Two rounds of multiplication and folding for each eight bytes, as in wyhash.
fn hash(token: &[u8]) -> u64 {
    const FIRST: u64 = 0xa076_1d64_78bd_642f;
    const SECOND: u64 = 0xe703_7ed1_a0b4_28db;
    let fold = |value: u64, factor: u64| {
        let product = u128::from(value) * u128::from(factor);
        product as u64 ^ (product >> 64) as u64
    };
    let (words, rest) = token.as_chunks::<8>();
    let mut hash = token.len() as u64 ^ FIRST;
    for word in words {
        hash = fold(u64::from_le_bytes(*word) ^ hash, FIRST);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    fold(u64::from_le_bytes(last) ^ hash, SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Encoding; 2] = [Encoding::Cl100k, Encoding::O200k];

    #[test]
    fn the_packed_vocabularies_are_those_of_toktok() {
        for encoding in BOTH {
            let vocabulary = Vocabulary::new(encoding);
            let tokenizer = vocabulary.tokenizer().unwrap();
            let ranks = Ranks::load(encoding).unwrap();
            assert_eq!(ranks.starts.len(), tokenizer.vocab_size());
            for rank in 0..tokenizer.vocab_size() as u32 {
                let token = tokenizer.token_bytes(rank).unwrap();
                assert_eq!(ranks.token(rank), token);
                assert_eq!(ranks.rank(token), rank);
            }
        }
    }

    #[test]
    fn toktok_takes_over_for_much_text_and_long_pieces() {
        let vocabulary = Vocabulary::new(Encoding::Cl100k);
        assert_eq!(vocabulary.count("hello world"), Some(2));
        assert!(vocabulary.tokenizer.get().is_none());
        let long = "=".repeat(PIECE_BYTES_MAX * 8 + 3);
        let tokens = vocabulary.count(&long);
        assert!(vocabulary.tokenizer.get().is_some());
        assert_eq!(
            tokens,
            CL100K.tokenizer().map(|tokenizer| exact(tokenizer, &long))
        );

        let vocabulary = Vocabulary::new(Encoding::Cl100k);
        let much = "some words ".repeat(PLAIN_BYTES_MAX / 11);
        assert_eq!(
            vocabulary.count(&much),
            Some(2 * (PLAIN_BYTES_MAX / 11) + 1)
        );
        assert!(vocabulary.tokenizer.get().is_none());
        assert_eq!(vocabulary.count("some more words"), Some(3));
        assert!(vocabulary.tokenizer.get().is_some());
    }

    #[track_caller]
    fn check(text: &str) {
        for vocabulary in [&CL100K, &O200K] {
            let ranks = vocabulary
                .ranks
                .get_or_init(|| Ranks::load(vocabulary.encoding));
            if let Some(tokens) = ranks.as_ref().unwrap().count(text.as_bytes()) {
                let tokenizer = vocabulary.tokenizer().unwrap();
                assert_eq!(tokens, tokenizer.count(text.as_bytes()), "{text:?}");
            }
        }
    }

    #[test]
    fn characters_are_divided_as_by_toktok() {
        // Beyond the first blocks, long runs of characters are of one class.
        let characters: Vec<char> = ('\0'..'\u{e0200}')
            .filter(|c| *c < '\u{3100}' || u32::from(*c) % 13 == 0)
            .collect();
        for some in characters.chunks(256) {
            let mut text = String::new();
            for c in some {
                text.push_str(&format!("a{c}b {c}{c} {c} {c}1{c}\n{c}'{c}x  {c}\n"));
            }
            check(&text);
        }
    }

    #[test]
    fn real_texts_need_no_tables_of_toktok() {
        for text in [
            include_str!("../../../../examples/trip-planning.txt"),
            include_str!("../../../../examples/german-chat.txt"),
            include_str!("../../../../examples/support-chat.json"),
        ] {
            let ranks = Ranks::load(Encoding::Cl100k).unwrap();
            assert!(ranks.count(text.as_bytes()).is_some());
            check(text);
        }
    }

    proptest::proptest! {
        #[test]
        fn the_plain_table_counts_as_toktok_does(
            text in "\\PC{0,200}|[ \t\r\n\x00-\x7f]{0,400}|[a-zA-Zäß0-9你 '.-]{0,400}|( |\n|\r|a|\\.|'s|9){0,80}",
        ) {
            check(&text);
        }

        #[test]
        fn words_signs_and_scripts_count_as_with_toktok(
            text in "(\\PC|[aBstLvErd019 \t\r\n'’\"_./{}()é²½Öß中のア한я—🙂]|the|  |'ll){0,60}",
        ) {
            check(&text);
        }
    }
}
