//! The rule files: phrases per cue and language, and how they are matched against a sentence.
//!
//! A phrase is a row of slots divided by spaces. A slot is a word, `a|b` one of several, `word?` an optional one, `*`
//! any one word, `**` up to four words, `pre*` and `*suf` a word by its beginning or end, `#` a word that begins with a
//! digit; `,` `:` `?` and `!` stand for themselves. Files of languages that are written without spaces hold plain
//! strings, in which `…` stands for up to twelve characters.
use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// One language's rules, compiled.
pub(super) struct Rules {
    /// ISO 639-3.
    pub(super) language: &'static str,
    /// Whether words are divided by spaces.
    pub(super) is_spaced: bool,
    words: HashMap<String, u32>,
    /// Function words by which the language is told from others.
    marks: Vec<u32>,
    conjunctions: Vec<u32>,
    softeners: PhraseSet,
    rules: Vec<Rule>,
    phrases: PhraseSet,
    vetoes: PhraseSet,
}

struct Rule {
    kind: String,
    confidence: u8,
    at: At,
}

/// Where in a sentence a phrase must stand.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum At {
    /// Where a clause begins, softening words aside.
    #[default]
    Start,
    /// Where the sentence begins, softening words aside.
    Lead,
    /// At the end of the sentence.
    End,
    /// It is the whole sentence, softening words aside.
    Whole,
    /// Anywhere.
    Any,
}

/// A rule's phrase that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match<'r> {
    /// The rule's kind, as the file names it.
    pub(super) kind: &'r str,
    pub(super) confidence: u8,
    /// Where the phrase begins in the sentence, in bytes.
    pub(super) start: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    language: String,
    #[serde(default = "yes")]
    spaced: bool,
    #[serde(default)]
    marks: Vec<String>,
    #[serde(default)]
    conjunctions: Vec<String>,
    #[serde(default)]
    softeners: Vec<String>,
    #[serde(default)]
    rule: Vec<FileRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRule {
    kind: String,
    confidence: u8,
    #[serde(default)]
    at: At,
    phrases: Vec<String>,
    #[serde(default)]
    unless: Vec<String>,
}

fn yes() -> bool {
    true
}

const FILES: [(&str, &str); 6] = [
    ("eng", include_str!("../../data/cues/eng.toml")),
    ("deu", include_str!("../../data/cues/deu.toml")),
    ("fra", include_str!("../../data/cues/fra.toml")),
    ("spa", include_str!("../../data/cues/spa.toml")),
    ("cmn", include_str!("../../data/cues/cmn.toml")),
    ("jpn", include_str!("../../data/cues/jpn.toml")),
];

static ALL: LazyLock<Vec<Rules>> = LazyLock::new(|| {
    // A file that does not parse is left out: a test keeps that from being shipped.
    FILES
        .iter()
        .filter_map(|(language, text)| Rules::parse(language, text))
        .collect()
});

/// The rules of the language that `text` is most likely written in; `fallback` where it is too short to tell.
pub(super) fn for_text(text: &str, fallback: Option<&'static str>) -> Option<&'static Rules> {
    let language = guess(text).or(fallback).unwrap_or("eng");
    by_language(language).or_else(|| by_language("eng"))
}

fn by_language(language: &str) -> Option<&'static Rules> {
    ALL.iter().find(|rules| rules.language == language)
}

/// The language with the most function words in `text`, or whose script it is written in.
pub(super) fn guess(text: &str) -> Option<&'static str> {
    const ENOUGH_BYTES: usize = 4000;
    let head = text
        .get(..text.floor_char_boundary(ENOUGH_BYTES))
        .unwrap_or(text);
    let (mut kana, mut han, mut latin) = (0_usize, 0_usize, 0_usize);
    for c in head.chars() {
        match c {
            '\u{3041}'..='\u{30ff}' => kana += 1,
            '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' => han += 1,
            _ if c.is_alphabetic() => latin += 1,
            _ => {}
        }
    }
    // One ideograph says about as much as two or three letters.
    if (kana + han) * 4 > latin {
        return if kana * 8 > han {
            Some("jpn")
        } else if han > 0 {
            Some("cmn")
        } else {
            None
        };
    }
    let mut best: Option<(&'static str, usize)> = None;
    let mut second = 0;
    for rules in ALL.iter().filter(|rules| rules.is_spaced) {
        let tokens = tokens(head, rules);
        let hits = tokens
            .iter()
            .filter(|t| rules.marks.contains(&t.id))
            .count();
        match best {
            Some((_, most)) if most >= hits => second = second.max(hits),
            _ => {
                second = best.map_or(0, |(_, most)| most);
                best = Some((rules.language, hits));
            }
        }
    }
    best.filter(|&(_, hits)| hits > second && hits > 0)
        .map(|(language, _)| language)
}

impl Rules {
    fn parse(language: &'static str, text: &str) -> Option<Self> {
        let file: File = toml::from_str(text).ok()?;
        if file.language != language {
            return None;
        }
        let mut rules = Self {
            language,
            is_spaced: file.spaced,
            words: HashMap::new(),
            marks: Vec::new(),
            conjunctions: Vec::new(),
            softeners: PhraseSet::default(),
            rules: Vec::new(),
            phrases: PhraseSet::default(),
            vetoes: PhraseSet::default(),
        };
        rules.marks = file.marks.iter().map(|word| rules.intern(word)).collect();
        rules.conjunctions = file
            .conjunctions
            .iter()
            .map(|word| rules.intern(word))
            .collect();
        for phrase in &file.softeners {
            let slots = rules.slots(phrase);
            rules.softeners.add(0, slots);
        }
        for (number, rule) in file.rule.into_iter().enumerate() {
            for phrase in &rule.phrases {
                let slots = rules.slots(phrase);
                rules.phrases.add(number, slots);
            }
            for phrase in &rule.unless {
                let slots = rules.slots(phrase);
                rules.vetoes.add(number, slots);
            }
            rules.rules.push(Rule {
                kind: rule.kind,
                confidence: rule.confidence,
                at: rule.at,
            });
        }
        Some(rules)
    }

    /// All rules that match `sentence`, in the order of where they match.
    pub(super) fn matches(&self, sentence: &str) -> Vec<Match<'_>> {
        if self.is_spaced {
            self.matches_in_words(sentence)
        } else {
            self.matches_in_characters(sentence)
        }
    }

    fn matches_in_words(&self, sentence: &str) -> Vec<Match<'_>> {
        let tokens = tokens(sentence, self);
        let (starts, lead) = self.clause_starts(&tokens);
        let past_words = tokens
            .iter()
            .rposition(|t| !t.is_punctuation)
            .map_or(0, |last| last + 1);
        let mut found = Vec::new();
        for at in 0..tokens.len() {
            self.phrases.for_each_at(&tokens, at, |number, end| {
                let Some(rule) = self.rules.get(number) else {
                    return;
                };
                let fits = match rule.at {
                    At::Any => true,
                    At::Start => starts.binary_search(&at).is_ok(),
                    At::Lead => at <= lead && starts.binary_search(&at).is_ok(),
                    At::End => end >= past_words,
                    At::Whole => {
                        at <= lead && end >= past_words && starts.binary_search(&at).is_ok()
                    }
                };
                if !fits {
                    return;
                }
                let mut is_vetoed = false;
                self.vetoes
                    .for_each_at(&tokens, at, |veto, _| is_vetoed |= veto == number);
                if let (false, Some(first)) = (is_vetoed, tokens.get(at)) {
                    found.push(Match {
                        kind: &rule.kind,
                        confidence: rule.confidence,
                        start: first.start,
                    });
                }
            });
        }
        found
    }

    /// Token indices at which a clause begins: the first token, those after a stop or a conjunction, and those after
    /// softening words there. Sorted. With the last of those that belong to the first clause.
    fn clause_starts(&self, tokens: &[Token<'_>]) -> (Vec<usize>, usize) {
        let mut starts = Vec::new();
        let mut lead = None;
        let mut is_open = true;
        for (at, token) in tokens.iter().enumerate() {
            if token.is_punctuation {
                is_open = true;
                continue;
            }
            if is_open {
                starts.push(at);
                let mut past = at;
                while let Some(end) = self.softeners.longest_at(tokens, past) {
                    past = end;
                    while tokens.get(past).is_some_and(|t| t.is_punctuation) {
                        past += 1;
                    }
                    if past < tokens.len() {
                        starts.push(past);
                    }
                }
                lead = lead.or_else(|| starts.last().copied());
            }
            is_open = self.conjunctions.contains(&token.id);
        }
        starts.sort_unstable();
        starts.dedup();
        (starts, lead.unwrap_or(0))
    }

    fn matches_in_characters(&self, sentence: &str) -> Vec<Match<'_>> {
        let trimmed_end = sentence
            .trim_end_matches(|c: char| !c.is_alphanumeric())
            .len();
        let mut found = Vec::new();
        for (number, rule) in self.rules.iter().enumerate() {
            let vetoed = self
                .vetoes
                .texts
                .iter()
                .any(|(veto, text)| *veto == number && find(sentence, text, 0).is_some());
            if vetoed {
                continue;
            }
            let best = self
                .phrases
                .texts
                .iter()
                .filter(|(of, _)| *of == number)
                .find_map(|(_, text)| {
                    let mut from = 0;
                    while let Some((start, end)) = find(sentence, text, from) {
                        let begins = sentence.get(..start).is_none_or(|before| {
                            before
                                .trim_end_matches(char::is_whitespace)
                                .chars()
                                .next_back()
                                .is_none_or(|c| !c.is_alphanumeric())
                                || self
                                    .softeners
                                    .texts
                                    .iter()
                                    .any(|(_, soft)| before.ends_with(soft.as_str()))
                        });
                        let fits = match rule.at {
                            At::Any => true,
                            At::Start => begins,
                            At::Lead => start == 0 || (begins && start <= 12),
                            At::End => end >= trimmed_end,
                            At::Whole => start == 0 && end >= trimmed_end,
                        };
                        if fits {
                            return Some(start);
                        }
                        from = start
                            + sentence
                                .get(start..)
                                .and_then(|s| s.chars().next())
                                .map_or(1, char::len_utf8);
                    }
                    None
                });
            if let Some(start) = best {
                found.push(Match {
                    kind: &rule.kind,
                    confidence: rule.confidence,
                    start,
                });
            }
        }
        found
    }

    fn intern(&mut self, word: &str) -> u32 {
        let next = u32::try_from(self.words.len()).unwrap_or(u32::MAX - 1) + 1;
        *self.words.entry(word.to_lowercase()).or_insert(next)
    }

    fn slots(&mut self, phrase: &str) -> Vec<Slot> {
        if !self.is_spaced {
            return vec![Slot::Text(phrase.to_owned())];
        }
        phrase
            .split(' ')
            .filter(|part| !part.is_empty())
            .map(|part| match part {
                "*" => Slot::Any,
                "**" => Slot::Gap,
                "#" => Slot::Number,
                "?" | "!" | "," | ":" => Slot::Words(vec![self.intern(part)], false),
                _ => {
                    let (part, is_optional) =
                        part.strip_suffix('?').map_or((part, false), |p| (p, true));
                    if let Some(prefix) = part.strip_suffix('*') {
                        Slot::Prefix(prefix.to_owned())
                    } else if let Some(suffix) = part.strip_prefix('*') {
                        Slot::Suffix(suffix.to_owned())
                    } else {
                        Slot::Words(
                            part.split('|').map(|word| self.intern(word)).collect(),
                            is_optional,
                        )
                    }
                }
            })
            .collect()
    }
}

/// Where `pattern`, with its gaps, is found in `text` at or after `from`: byte range.
fn find(text: &str, pattern: &str, from: usize) -> Option<(usize, usize)> {
    const GAP_CHARS: usize = 12;
    let mut parts = pattern.split('…');
    let first = parts.next()?;
    let start = from + text.get(from..)?.find(first)?;
    let mut end = start + first.len();
    for part in parts {
        let rest = text.get(end..)?;
        let window = rest
            .char_indices()
            .nth(GAP_CHARS)
            .map_or(rest.len(), |(at, _)| at)
            + part.len();
        let window = rest.floor_char_boundary(window.min(rest.len()));
        end += rest.get(..window)?.find(part)? + part.len();
    }
    Some((start, end))
}

enum Slot {
    Words(Vec<u32>, bool),
    Any,
    Gap,
    Number,
    Prefix(String),
    Suffix(String),
    Text(String),
}

/// Phrases, found by their first word.
#[derive(Default)]
struct PhraseSet {
    by_first: HashMap<u32, Vec<(usize, usize)>>,
    slots: Vec<Vec<Slot>>,
    wild: Vec<(usize, usize)>,
    texts: Vec<(usize, String)>,
}

impl PhraseSet {
    fn add(&mut self, number: usize, slots: Vec<Slot>) {
        let index = self.slots.len();
        match slots.first() {
            None => return,
            Some(Slot::Text(text)) => {
                self.texts.push((number, text.clone()));
                return;
            }
            Some(Slot::Words(words, false)) => {
                for word in words {
                    self.by_first
                        .entry(*word)
                        .or_default()
                        .push((number, index));
                }
            }
            Some(_) => self.wild.push((number, index)),
        }
        self.slots.push(slots);
    }

    /// Calls `found` with the rule's number and the end of every phrase that begins at token `at`.
    fn for_each_at(&self, tokens: &[Token<'_>], at: usize, mut found: impl FnMut(usize, usize)) {
        let Some(token) = tokens.get(at) else { return };
        let known = self.by_first.get(&token.id).map_or(&[][..], Vec::as_slice);
        for &(number, index) in known.iter().chain(&self.wild) {
            if let Some(end) = self
                .slots
                .get(index)
                .and_then(|slots| fit(slots, tokens, at))
            {
                found(number, end);
            }
        }
    }

    fn longest_at(&self, tokens: &[Token<'_>], at: usize) -> Option<usize> {
        let mut longest = None;
        self.for_each_at(tokens, at, |_, end| {
            if end > at {
                longest = longest.max(Some(end));
            }
        });
        longest
    }
}

/// The token after the phrase, if it stands at `at`. The depth of the search is the number of slots of a rule.
fn fit(slots: &[Slot], tokens: &[Token<'_>], at: usize) -> Option<usize> {
    const GAP_WORDS: usize = 4;
    let Some((slot, rest)) = slots.split_first() else {
        return Some(at);
    };
    if let Slot::Gap = slot {
        return (0..=GAP_WORDS).find_map(|skipped| fit(rest, tokens, at + skipped));
    }
    let token = tokens.get(at);
    let fits = token.is_some_and(|token| match slot {
        Slot::Words(words, _) => words.contains(&token.id),
        Slot::Any => !token.is_punctuation,
        Slot::Number => token.text.starts_with(|c: char| c.is_ascii_digit()),
        Slot::Prefix(prefix) => token.text.starts_with(prefix.as_str()),
        Slot::Suffix(suffix) => {
            token.text.ends_with(suffix.as_str()) && token.text.len() > suffix.len()
        }
        Slot::Gap | Slot::Text(_) => false,
    });
    let taken = if fits {
        fit(rest, tokens, at + 1)
    } else {
        None
    };
    match slot {
        Slot::Words(_, true) => taken.or_else(|| fit(rest, tokens, at)),
        _ => taken,
    }
}

/// A word or a mark of a sentence.
struct Token<'a> {
    /// The word's number in the rules' vocabulary; 0 for a word that no rule knows.
    id: u32,
    text: std::borrow::Cow<'a, str>,
    start: usize,
    is_punctuation: bool,
}

fn tokens<'a>(sentence: &'a str, rules: &Rules) -> Vec<Token<'a>> {
    let mut tokens = Vec::new();
    let mut chars = sentence.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        if is_word(c) {
            let mut end = start + c.len_utf8();
            while let Some(&(at, c)) = chars.peek() {
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
            let word = sentence.get(start..end).unwrap_or_default();
            let text = lower(word);
            let id = rules.words.get(text.as_ref()).copied().unwrap_or(0);
            tokens.push(Token {
                id,
                text,
                start,
                is_punctuation: false,
            });
        } else if is_stop(c) {
            let end = start + c.len_utf8();
            let text = std::borrow::Cow::Borrowed(sentence.get(start..end).unwrap_or_default());
            let id = rules.words.get(text.as_ref()).copied().unwrap_or(0);
            tokens.push(Token {
                id,
                text,
                start,
                is_punctuation: true,
            });
        }
    }
    tokens
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

fn lower(word: &str) -> std::borrow::Cow<'_, str> {
    if word
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'\'')
    {
        return std::borrow::Cow::Borrowed(word);
    }
    std::borrow::Cow::Owned(word.to_lowercase().replace('’', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_file_parses() {
        for (language, text) in FILES {
            let file: File =
                toml::from_str(text).unwrap_or_else(|error| panic!("{language}: {error}"));
            assert_eq!(file.language, language);
        }
        assert_eq!(ALL.len(), FILES.len());
    }
}
