//! Phrases of the rule files, compiled to rows of slots, and the words that they are matched against.
use std::borrow::Cow;
use std::collections::HashMap;

/// Words of all languages, by number, with the languages that know them.
#[derive(Default)]
pub(super) struct Vocabulary {
    numbers: HashMap<String, u32>,
    /// Bit per language whose rules contain the word, by number.
    known: Vec<u8>,
    /// Bit per language that the word tells from others, by number.
    marks: Vec<u8>,
}

impl Vocabulary {
    /// The number of `word`, which the language of `bit` knows.
    pub(super) fn intern(&mut self, word: &str, bit: u8) -> u32 {
        // Number 0 is kept for words that no rule knows.
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX - 1) + 1;
        let number = *self.numbers.entry(word.to_lowercase()).or_insert(next);
        let index = number as usize;
        if self.known.len() <= index {
            self.known.resize(index + 1, 0);
            self.marks.resize(index + 1, 0);
        }
        if let Some(known) = self.known.get_mut(index) {
            *known |= bit;
        }
        number
    }

    /// Marks `word` as one that distinguishes the language of `bit` from others.
    pub(super) fn mark(&mut self, word: &str, bit: u8) {
        let index = self.intern(word, bit) as usize;
        if let Some(marks) = self.marks.get_mut(index) {
            *marks |= bit;
        }
    }

    /// Languages that know the word with this number, and languages that it marks: a bit each.
    pub(super) fn languages(&self, number: u32) -> (u8, u8) {
        let index = number as usize;
        (
            self.known.get(index).copied().unwrap_or(0),
            self.marks.get(index).copied().unwrap_or(0),
        )
    }

    /// The words and marks of `sentence`.
    pub(super) fn tokens<'a>(&self, sentence: &'a str) -> Vec<Token<'a>> {
        let mut tokens = Vec::with_capacity(sentence.len() / 5 + 1);
        let mut chars = sentence.char_indices().peekable();
        while let Some((start, c)) = chars.next() {
            let is_punctuation = is_stop(c);
            if !is_word(c) && !is_punctuation {
                continue;
            }
            let mut end = start + c.len_utf8();
            while !is_punctuation && let Some(&(at, c)) = chars.peek() {
                // An apostrophe, a hyphen or a dot between two word characters belongs to the word.
                let joins = is_word(c)
                    || (matches!(c, '\'' | '’' | '-' | '.')
                        && sentence
                            .get(at + c.len_utf8()..)
                            .and_then(|rest| rest.chars().next())
                            .is_some_and(is_word));
                if !joins {
                    break;
                }
                end = at + c.len_utf8();
                chars.next();
            }
            let text = lower(sentence.get(start..end).unwrap_or_default());
            let number = self.numbers.get(text.as_ref()).copied().unwrap_or(0);
            tokens.push(Token {
                number,
                text,
                start,
                is_punctuation,
            });
        }
        tokens
    }
}

/// A word or a mark of a sentence.
pub(super) struct Token<'a> {
    /// The word's number in the vocabulary; 0 for a word that no rule knows.
    pub(super) number: u32,
    /// The word in lower case, with straight apostrophes.
    pub(super) text: Cow<'a, str>,
    /// Where it begins in the sentence, in bytes.
    pub(super) start: usize,
    pub(super) is_punctuation: bool,
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_stop(c: char) -> bool {
    matches!(
        c,
        ',' | ';'
            | ':'
            | '.'
            | '?'
            | '!'
            | '('
            | ')'
            | '-'
            | '–'
            | '—'
            | '…'
            | '¿'
            | '¡'
            | '/'
            | '\n'
            | '"'
            | '“'
            | '”'
    )
}

fn lower(word: &str) -> Cow<'_, str> {
    if word
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'\'')
    {
        return Cow::Borrowed(word);
    }
    Cow::Owned(word.to_lowercase().replace('’', "'"))
}

enum Slot {
    Words(Vec<u32>, Count),
    Any,
    Gap,
    Number,
    Prefix(String),
    Suffix(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    One,
    AtMostOne,
}

/// Phrases, each with the number of the rule that it belongs to, found by their first word.
#[derive(Default)]
pub(super) struct PhraseSet {
    by_first: HashMap<u32, Vec<(usize, usize)>>,
    /// Phrases that begin with something else than a word.
    wild: Vec<(usize, usize)>,
    slots: Vec<Vec<Slot>>,
}

impl PhraseSet {
    /// Adds `phrase` for the rule with number `rule`.
    pub(super) fn add(&mut self, rule: usize, phrase: &str, vocabulary: &mut Vocabulary, bit: u8) {
        let slots: Vec<Slot> = phrase
            .split_whitespace()
            .map(|part| slot(part, vocabulary, bit))
            .collect();
        let index = self.slots.len();
        match slots.first() {
            None => return,
            Some(Slot::Words(words, Count::One)) => {
                for word in words {
                    self.by_first.entry(*word).or_default().push((rule, index));
                }
            }
            Some(_) => self.wild.push((rule, index)),
        }
        self.slots.push(slots);
    }

    /// Calls `found` with the rule's number and the token after it for every phrase that begins at token `at`.
    pub(super) fn for_each_at(
        &self,
        tokens: &[Token<'_>],
        at: usize,
        mut found: impl FnMut(usize, usize),
    ) {
        let Some(token) = tokens.get(at) else { return };
        let known = if token.number == 0 {
            &[][..]
        } else {
            self.by_first
                .get(&token.number)
                .map_or(&[][..], Vec::as_slice)
        };
        for &(rule, index) in known.iter().chain(&self.wild) {
            if let Some(end) = self
                .slots
                .get(index)
                .and_then(|slots| fit(slots, tokens, at))
            {
                found(rule, end);
            }
        }
    }

    /// The token after the longest phrase that begins at token `at`.
    pub(super) fn longest_at(&self, tokens: &[Token<'_>], at: usize) -> Option<usize> {
        let mut longest = None;
        self.for_each_at(tokens, at, |_, end| {
            if end > at {
                longest = longest.max(Some(end));
            }
        });
        longest
    }
}

fn slot(part: &str, vocabulary: &mut Vocabulary, bit: u8) -> Slot {
    match part {
        "*" => Slot::Any,
        "**" => Slot::Gap,
        "#" => Slot::Number,
        _ if part.chars().all(is_stop) => Slot::Words(vec![vocabulary.intern(part, 0)], Count::One),
        _ => {
            let (part, count) = part
                .strip_suffix('?')
                .map_or((part, Count::One), |part| (part, Count::AtMostOne));
            if let Some(prefix) = part.strip_suffix('*') {
                Slot::Prefix(prefix.to_owned())
            } else if let Some(suffix) = part.strip_prefix('*') {
                Slot::Suffix(suffix.to_owned())
            } else {
                Slot::Words(
                    part.split('|')
                        .map(|word| vocabulary.intern(word, bit))
                        .collect(),
                    count,
                )
            }
        }
    }
}

/// The token after the phrase, if the phrase is at `at`. The depth is the number of slots of a rule.
fn fit(slots: &[Slot], tokens: &[Token<'_>], at: usize) -> Option<usize> {
    const GAP_WORDS: usize = 4;
    let Some((slot, rest)) = slots.split_first() else {
        return Some(at);
    };
    let fits = match (slot, tokens.get(at)) {
        (Slot::Gap, _) => {
            return (0..=GAP_WORDS).find_map(|skipped| fit(rest, tokens, at + skipped));
        }
        (_, None) => false,
        (Slot::Words(words, _), Some(token)) => words.contains(&token.number),
        (Slot::Any, Some(token)) => !token.is_punctuation,
        (Slot::Number, Some(token)) => token.text.starts_with(|c: char| c.is_ascii_digit()),
        (Slot::Prefix(prefix), Some(token)) => token.text.starts_with(prefix.as_str()),
        (Slot::Suffix(suffix), Some(token)) => {
            token.text.len() > suffix.len() && token.text.ends_with(suffix.as_str())
        }
    };
    let taken = if fits {
        fit(rest, tokens, at + 1)
    } else {
        None
    };
    match slot {
        Slot::Words(_, Count::AtMostOne) => taken.or_else(|| fit(rest, tokens, at)),
        _ => taken,
    }
}
