//! Phrases of the rule files, compiled to rows of slots, and the words that they are matched against.
use std::borrow::Cow;
use std::collections::HashMap;

use super::script::{plain, unmarked};

/// Words of one or several languages, by number, with the languages that know them.
#[derive(Default)]
pub(super) struct Vocabulary {
    numbers: HashMap<String, u32>,
    /// What is known of the words, by number.
    words: Vec<Word>,
    /// What may be written together with the word that follows.
    pub(super) prefixes: Vec<String>,
}

#[derive(Clone, Copy, Default)]
struct Word {
    /// Bit per language whose rules contain the word.
    known: u32,
    /// Bit per language that the word tells from others.
    marks: u32,
    /// Whether it is a word only where marks are left out, in sentences without any.
    is_unmarked: bool,
}

impl Vocabulary {
    /// The number of `word`, which the language of `bit` knows.
    pub(super) fn intern(&mut self, word: &str, bit: u32) -> u32 {
        let (number, word) = self.word(word);
        word.known |= bit;
        word.is_unmarked = false;
        number
    }

    /// The number of `word` as it is typed without its marks, if that differs.
    fn intern_unmarked(&mut self, word: &str, bit: u32) -> Option<u32> {
        let bare = unmarked(&word.to_lowercase());
        if bare == word {
            return None;
        }
        let is_new = !self.numbers.contains_key(&bare);
        let (number, word) = self.word(&bare);
        word.known |= bit;
        word.is_unmarked |= is_new;
        Some(number)
    }

    fn word(&mut self, word: &str) -> (u32, &mut Word) {
        // Number 0 is kept for words that no rule knows.
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX - 1) + 1;
        let number = *self.numbers.entry(lower(word).into_owned()).or_insert(next);
        let index = number as usize;
        if self.words.len() <= index {
            self.words.resize(index + 1, Word::default());
        }
        (number, &mut self.words[index])
    }

    /// Marks `word` as one that distinguishes the language of `bit` from others.
    pub(super) fn mark(&mut self, word: &str, bit: u32) {
        let (_, word) = self.word(word);
        word.marks |= bit;
        word.is_unmarked = false;
    }

    /// Marks `word` without its marks, unless that is a word of another language or too short to tell.
    pub(super) fn mark_unmarked(&mut self, word: &str, bit: u32) {
        let bare = unmarked(word);
        let is_taken = self
            .numbers
            .get(&bare)
            .is_some_and(|number| !self.words[*number as usize].is_unmarked);
        if bare != word && bare.len() >= 3 && !is_taken {
            let (_, word) = self.word(&bare);
            word.marks |= bit;
            word.is_unmarked = true;
        }
    }

    /// Languages that know the word with this number, and languages that it marks: a bit each.
    pub(super) fn languages(&self, number: u32) -> (u32, u32) {
        let word = self.words.get(number as usize).copied().unwrap_or_default();
        (word.known, word.marks)
    }

    /// The number of a word in lower case; 0 where no rule knows it.
    pub(super) fn number(&self, word: &str, is_ascii: bool) -> u32 {
        let find = |word: &str| {
            self.numbers
                .get(word)
                .copied()
                .filter(|number| is_ascii || !self.words[*number as usize].is_unmarked)
        };
        find(word)
            .or_else(|| {
                self.prefixes
                    .iter()
                    .find_map(|prefix| find(word.strip_prefix(prefix.as_str())?))
            })
            .unwrap_or(0)
    }

    /// The words and marks of `sentence`.
    pub(super) fn tokens<'a>(&self, sentence: &'a str) -> Vec<Token<'a>> {
        let is_ascii = sentence.is_ascii();
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
            let number = self.number(&text, is_ascii);
            tokens.push(Token {
                number,
                text,
                start,
                is_punctuation,
                is_unmarked: is_ascii,
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
    /// Whether the sentence is typed without marks.
    is_unmarked: bool,
}

fn is_word(c: char) -> bool {
    // The joining signs of Hindi and the marks of decomposed letters belong to the word.
    c.is_alphanumeric()
        || c == '_'
        || matches!(c, '\u{300}'..='\u{36f}' | '\u{93c}' | '\u{94d}' | '\u{5b0}'..='\u{5c7}' | '\u{64b}'..='\u{652}' | '\u{200c}' | '\u{200d}')
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
            | '„'
            | '«'
            | '»'
            | '،'
            | '؛'
            | '؟'
            | '।'
    )
}

fn lower(word: &str) -> Cow<'_, str> {
    if word
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'\'')
    {
        return Cow::Borrowed(word);
    }
    if word.is_ascii() {
        return Cow::Owned(word.to_ascii_lowercase());
    }
    Cow::Owned(word.to_lowercase().chars().filter_map(plain).collect())
}

enum Slot {
    OneOf(Vec<Form>, Count),
    Any,
    Gap,
    Number,
}

enum Form {
    Word(u32),
    /// A word without its marks, in a sentence without any.
    Unmarked(u32),
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
    /// Phrases that begin with the beginning of a word, by its first letter.
    by_letter: HashMap<char, Vec<(usize, usize)>>,
    /// Phrases that begin with something else.
    wild: Vec<(usize, usize)>,
    slots: Vec<Vec<Slot>>,
}

/// A language whose phrases are compiled.
#[derive(Clone, Copy)]
pub(super) struct Compiler {
    pub(super) bit: u32,
    /// Whether words are known without their marks too.
    pub(super) unmarked: bool,
}

impl PhraseSet {
    /// Adds `phrase` for the rule with number `rule`.
    pub(super) fn add(
        &mut self,
        rule: usize,
        phrase: &str,
        vocabulary: &mut Vocabulary,
        compiler: Compiler,
    ) {
        let slots: Vec<Slot> = phrase
            .split_whitespace()
            .map(|part| slot(part, vocabulary, compiler))
            .collect();
        let entry = (rule, self.slots.len());
        match slots.first() {
            None => return,
            Some(Slot::OneOf(forms, Count::One))
                if !forms.iter().any(|form| matches!(form, Form::Suffix(_))) =>
            {
                for form in forms {
                    let entries = match form {
                        Form::Word(word) | Form::Unmarked(word) => {
                            self.by_first.entry(*word).or_default()
                        }
                        Form::Prefix(text) | Form::Suffix(text) => self
                            .by_letter
                            .entry(text.chars().next().unwrap_or_default())
                            .or_default(),
                    };
                    if entries.last() != Some(&entry) {
                        entries.push(entry);
                    }
                }
            }
            Some(_) => self.wild.push(entry),
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
        let letter = token.text.chars().next();
        let by_letter = letter
            .filter(|_| !self.by_letter.is_empty())
            .and_then(|letter| self.by_letter.get(&letter))
            .map_or(&[][..], Vec::as_slice);
        for &(rule, index) in known.iter().chain(by_letter).chain(&self.wild) {
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

fn slot(part: &str, vocabulary: &mut Vocabulary, compiler: Compiler) -> Slot {
    match part {
        "*" => return Slot::Any,
        "**" => return Slot::Gap,
        "#" => return Slot::Number,
        _ if part.chars().all(is_stop) => {
            return Slot::OneOf(vec![Form::Word(vocabulary.intern(part, 0))], Count::One);
        }
        _ => {}
    }
    let (part, count) = part
        .strip_suffix('?')
        .map_or((part, Count::One), |part| (part, Count::AtMostOne));
    let mut forms = Vec::new();
    for part in part.split('|') {
        if let Some(prefix) = part.strip_suffix('*') {
            forms.push(Form::Prefix(lower(prefix).into_owned()));
        } else if let Some(suffix) = part.strip_prefix('*') {
            forms.push(Form::Suffix(lower(suffix).into_owned()));
        } else {
            forms.push(Form::Word(vocabulary.intern(part, compiler.bit)));
            if compiler.unmarked {
                forms.extend(
                    vocabulary
                        .intern_unmarked(part, compiler.bit)
                        .map(Form::Unmarked),
                );
            }
        }
    }
    Slot::OneOf(forms, count)
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
        (Slot::OneOf(forms, _), Some(token)) => forms.iter().any(|form| match form {
            Form::Word(word) => token.number == *word,
            Form::Unmarked(word) => token.is_unmarked && token.number == *word,
            Form::Prefix(prefix) => token.text.starts_with(prefix.as_str()),
            Form::Suffix(suffix) => {
                token.text.len() > suffix.len() && token.text.ends_with(suffix.as_str())
            }
        }),
        (Slot::Any, Some(token)) => !token.is_punctuation,
        (Slot::Number, Some(token)) => token.text.starts_with(|c: char| c.is_ascii_digit()),
    };
    let taken = if fits {
        fit(rest, tokens, at + 1)
    } else {
        None
    };
    match slot {
        Slot::OneOf(_, Count::AtMostOne) => taken.or_else(|| fit(rest, tokens, at)),
        _ => taken,
    }
}
