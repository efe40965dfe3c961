//! The rule files: phrases per cue and language, and how they are matched against a sentence.
//!
//! A phrase is a row of slots divided by spaces. A slot is a word, `a|b` one of several, `word?` an optional one, `*`
//! any one word, `**` up to four words, `pre*` and `*suf` a word by its beginning or end, `#` a word that begins with a
//! digit; `,` `:` `?` and other stops match themselves. Files of languages that are written without spaces hold
//! plain strings, in which `…` matches up to twelve characters.
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use serde::Deserialize;

use super::phrases::{PhraseSet, Token, Vocabulary};

/// Where in a sentence a phrase must be.
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
pub(super) struct Match {
    /// The rule's kind, as the file names it.
    pub(super) kind: &'static str,
    pub(super) confidence: u8,
    /// Where the phrase begins in the sentence, in bytes.
    pub(super) start: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    language: String,
    /// Whether words are divided by spaces.
    #[serde(default = "yes")]
    spaced: bool,
    /// Function words that distinguish the language from others.
    #[serde(default)]
    marks: Vec<String>,
    /// Words after which a clause begins.
    #[serde(default)]
    conjunctions: Vec<String>,
    /// Words that may precede what a clause says.
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
    /// Phrases that cancel the rule if one of its own phrases begins at the same place.
    #[serde(default)]
    unless: Vec<String>,
}

fn yes() -> bool {
    true
}

/// The files in the order of their bits in the vocabulary. English is first: it is the fallback.
const FILES: [(&str, &str); 6] = [
    ("eng", include_str!("../../data/cues/eng.toml")),
    ("deu", include_str!("../../data/cues/deu.toml")),
    ("fra", include_str!("../../data/cues/fra.toml")),
    ("spa", include_str!("../../data/cues/spa.toml")),
    ("cmn", include_str!("../../data/cues/cmn.toml")),
    ("jpn", include_str!("../../data/cues/jpn.toml")),
];

static LEXICON: LazyLock<Lexicon> = LazyLock::new(Lexicon::load);

struct Lexicon {
    vocabulary: Vocabulary,
    languages: Vec<Language>,
}

struct Language {
    code: &'static str,
    rules: Vec<(String, u8, At)>,
    form: Form,
}

enum Form {
    Spaced(Box<SpacedRules>),
    Unspaced(UnspacedRules),
}

#[derive(Default)]
struct SpacedRules {
    conjunctions: Vec<u32>,
    softeners: PhraseSet,
    phrases: PhraseSet,
    vetoes: PhraseSet,
}

struct UnspacedRules {
    softeners: Vec<String>,
    phrases: Strings,
    vetoes: Strings,
}

/// All matches in `sentence`, by the rules of the language that it is most likely written in; `fallback` decides where
/// the sentence is too short to tell.
pub(super) fn matches(sentence: &str, fallback: Option<&'static str>) -> Vec<Match> {
    let lexicon = &*LEXICON;
    let tokens = lexicon.vocabulary.tokens(sentence);
    let code = by_script(sentence)
        .or_else(|| lexicon.by_words(&tokens, fallback, 1))
        .or(fallback)
        .unwrap_or("eng");
    let find = |code: &str| {
        lexicon
            .languages
            .iter()
            .find(|language| language.code == code)
    };
    let Some(language) = find(code).or_else(|| find("eng")) else {
        return Vec::new();
    };
    let mut found = match &language.form {
        Form::Spaced(rules) => language.in_words(rules, &tokens),
        Form::Unspaced(rules) => language.in_characters(rules, sentence),
    };
    found.sort_by_key(|found| found.start);
    found
}

/// Where in a sentence the words are that make it an entry of the ledger, in bytes: the surest of them.
pub(crate) fn point(sentence: &str) -> Option<usize> {
    /// The later ones in the list say more about what is ruled.
    const LEDGER: [&str; 5] = ["fact", "preference", "change", "correction", "prohibition"];
    let rank = |found: &Match| LEDGER.iter().position(|kind| *kind == found.kind);
    matches(sentence, None)
        .into_iter()
        .filter_map(|found| Some((rank(&found)?, found.start)))
        .max()
        .map(|(_, start)| start)
}

/// The language of `text`: by its script, or by the words of the rule files in it.
pub(super) fn guess(text: &str) -> Option<&'static str> {
    guess_with(text, 1)
}

/// The same, but only where several words speak for it.
pub(super) fn guess_surely(text: &str) -> Option<&'static str> {
    guess_with(text, 5)
}

fn guess_with(text: &str, least: usize) -> Option<&'static str> {
    const ENOUGH_BYTES: usize = 4000;
    let head = text
        .get(..text.floor_char_boundary(ENOUGH_BYTES))
        .unwrap_or(text);
    by_script(head).or_else(|| LEXICON.by_words(&LEXICON.vocabulary.tokens(head), None, least))
}

fn by_script(text: &str) -> Option<&'static str> {
    if text.is_ascii() {
        return None;
    }
    let (mut kana, mut han, mut other) = (0_usize, 0_usize, 0_usize);
    for c in text.chars() {
        match c {
            '\u{3041}'..='\u{30ff}' => kana += 1,
            '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' => han += 1,
            _ if c.is_alphabetic() => other += 1,
            _ => {}
        }
    }
    // One character of these scripts says about as much as three letters.
    if (kana + han) * 4 <= other || kana + han == 0 {
        return None;
    }
    Some(if kana * 8 > han { "jpn" } else { "cmn" })
}

impl Lexicon {
    fn load() -> Self {
        let mut vocabulary = Vocabulary::default();
        let mut languages = Vec::new();
        for (index, (code, text)) in FILES.into_iter().enumerate() {
            // A file that does not parse is left out: a test keeps that from being shipped.
            if let Ok(file) = toml::from_str::<File>(text) {
                languages.push(Language::compile(code, 1 << index, file, &mut vocabulary));
            }
        }
        Self {
            vocabulary,
            languages,
        }
    }

    /// The language with the most of its own words among `tokens`. `None` where `fallback` is as likely, or nearly so.
    fn by_words(
        &self,
        tokens: &[Token<'_>],
        fallback: Option<&str>,
        least: usize,
    ) -> Option<&'static str> {
        // A function word of one language counts three times, a word that its rules know once.
        const CLOSE: usize = 2;
        let mut scores = [0_usize; FILES.len()];
        for token in tokens.iter().filter(|token| token.number != 0) {
            let (known, marks) = self.vocabulary.languages(token.number);
            for (index, score) in scores.iter_mut().enumerate() {
                *score += usize::from(known >> index & 1) + 3 * usize::from(marks >> index & 1);
            }
        }
        let best = scores.iter().copied().max().filter(|best| *best >= least)?;
        let score_of = |code: &str| {
            FILES
                .iter()
                .position(|(of, _)| *of == code)
                .and_then(|index| scores.get(index))
                .copied()
                .unwrap_or(0)
        };
        if let Some(fallback) = fallback
            && score_of(fallback) + CLOSE >= best
        {
            return None;
        }
        // English leads a tie: it is first in the list.
        FILES
            .iter()
            .zip(scores)
            .find(|(_, score)| *score == best)
            .map(|((code, _), _)| *code)
    }
}

impl Language {
    fn compile(code: &'static str, bit: u8, file: File, vocabulary: &mut Vocabulary) -> Self {
        debug_assert_eq!(code, file.language);
        for mark in &file.marks {
            vocabulary.mark(mark, bit);
        }
        let form = if file.spaced {
            let mut rules = Box::<SpacedRules>::default();
            rules.conjunctions = file
                .conjunctions
                .iter()
                .map(|word| vocabulary.intern(word, bit))
                .collect();
            for phrase in &file.softeners {
                rules.softeners.add(0, phrase, vocabulary, bit);
            }
            for (number, rule) in file.rule.iter().enumerate() {
                for phrase in &rule.phrases {
                    rules.phrases.add(number, phrase, vocabulary, bit);
                }
                for phrase in &rule.unless {
                    rules.vetoes.add(number, phrase, vocabulary, bit);
                }
            }
            Form::Spaced(rules)
        } else {
            let numbered = |of: fn(&FileRule) -> &Vec<String>| {
                Strings::new(
                    file.rule
                        .iter()
                        .enumerate()
                        .flat_map(|(number, rule)| {
                            of(rule).iter().map(move |text| (number, text.clone()))
                        })
                        .collect(),
                )
            };
            Form::Unspaced(UnspacedRules {
                softeners: file.softeners.clone(),
                phrases: numbered(|rule| &rule.phrases),
                vetoes: numbered(|rule| &rule.unless),
            })
        };
        let rules = file
            .rule
            .into_iter()
            .map(|rule| (rule.kind, rule.confidence, rule.at))
            .collect();
        Self { code, rules, form }
    }

    fn in_words(&'static self, rules: &SpacedRules, tokens: &[Token<'_>]) -> Vec<Match> {
        let starts = Starts::of(rules, tokens);
        let past_words = tokens
            .iter()
            .rposition(|t| !t.is_punctuation)
            .map_or(0, |last| last + 1);
        let mut found = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            rules.phrases.for_each_at(tokens, at, |number, end| {
                let Some((kind, confidence, place)) = self.rules.get(number) else {
                    return;
                };
                let fits = match place {
                    At::Any => true,
                    At::Start => starts.is_start(at),
                    At::Lead => starts.is_lead(at),
                    At::End => end >= past_words,
                    At::Whole => starts.is_lead(at) && end >= past_words,
                };
                if !fits {
                    return;
                }
                let mut is_vetoed = false;
                rules
                    .vetoes
                    .for_each_at(tokens, at, |veto, _| is_vetoed |= veto == number);
                if !is_vetoed {
                    found.push(Match {
                        kind,
                        confidence: *confidence,
                        start: token.start,
                    });
                }
            });
        }
        found
    }

    fn in_characters(&'static self, rules: &UnspacedRules, sentence: &str) -> Vec<Match> {
        let past_words = sentence
            .trim_end_matches(|c: char| !c.is_alphanumeric())
            .len();
        let vetoes = rules.vetoes.find(sentence);
        let begins_clause = |start: usize| {
            let before = sentence.get(..start).unwrap_or_default().trim_end();
            before
                .chars()
                .next_back()
                .is_none_or(|c| !c.is_alphanumeric())
                || rules.softeners.iter().any(|softener| {
                    before.strip_suffix(softener.as_str()).is_some_and(|rest| {
                        rest.chars()
                            .next_back()
                            .is_none_or(|c| !c.is_alphanumeric())
                    })
                })
        };
        let mut found = Vec::new();
        for (number, start, end) in rules.phrases.find(sentence) {
            let Some((kind, confidence, place)) = self.rules.get(number) else {
                continue;
            };
            let fits = match place {
                At::Any => true,
                At::Start => begins_clause(start),
                At::Lead => {
                    let is_first_clause = !sentence
                        .get(..start)
                        .unwrap_or_default()
                        .contains(['，', '。', '、', ',', '；']);
                    start == 0 || (is_first_clause && begins_clause(start))
                }
                At::End => end >= past_words,
                At::Whole => start == 0 && end >= past_words,
            };
            // A veto undoes the phrase that it overlaps.
            let is_vetoed = vetoes
                .iter()
                .any(|&(of, from, to)| of == number && from < end && start < to);
            if fits && !is_vetoed {
                found.push(Match {
                    kind,
                    confidence: *confidence,
                    start,
                });
            }
        }
        found
    }
}

/// Token indices at which a clause begins.
struct Starts {
    /// The first token, those after a stop or a conjunction, and those after softening words there.
    clauses: Vec<usize>,
    /// The last of those that belong to the first clause.
    lead: usize,
}

impl Starts {
    fn of(rules: &SpacedRules, tokens: &[Token<'_>]) -> Self {
        let mut clauses = Vec::new();
        let mut lead = None;
        let mut is_open = true;
        for (at, token) in tokens.iter().enumerate() {
            if token.is_punctuation {
                is_open = true;
                continue;
            }
            if is_open {
                clauses.push(at);
                let mut past = at;
                while let Some(end) = rules.softeners.longest_at(tokens, past) {
                    past = end;
                    while tokens.get(past).is_some_and(|t| t.is_punctuation) {
                        past += 1;
                    }
                    if past < tokens.len() {
                        clauses.push(past);
                    }
                }
                lead = lead.or_else(|| clauses.last().copied());
            }
            is_open = rules.conjunctions.contains(&token.number);
        }
        clauses.sort_unstable();
        clauses.dedup();
        Self {
            clauses,
            lead: lead.unwrap_or(0),
        }
    }

    fn is_start(&self, at: usize) -> bool {
        self.clauses.binary_search(&at).is_ok()
    }

    fn is_lead(&self, at: usize) -> bool {
        at <= self.lead && self.is_start(at)
    }
}

/// Strings with gaps, each with the number of its rule.
struct Strings {
    /// Finds the part before the first gap.
    heads: Option<AhoCorasick>,
    /// Rule, length of the head, and what follows the gaps.
    strings: Vec<(usize, Vec<String>)>,
}

impl Strings {
    fn new(strings: Vec<(usize, String)>) -> Self {
        let strings: Vec<(usize, Vec<String>)> = strings
            .into_iter()
            .map(|(number, text)| (number, text.split('…').map(str::to_owned).collect()))
            .collect();
        let heads = AhoCorasick::new(
            strings
                .iter()
                .map(|(_, parts)| parts.first().map_or("", String::as_str)),
        )
        .ok();
        Self { heads, strings }
    }

    /// Rule and byte range of every match.
    fn find(&self, text: &str) -> Vec<(usize, usize, usize)> {
        const GAP_CHARS: usize = 12;
        let Some(heads) = &self.heads else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for hit in heads.find_overlapping_iter(text) {
            let Some((number, parts)) = self.strings.get(hit.pattern().as_usize()) else {
                continue;
            };
            let mut end = hit.end();
            let fits = parts.iter().skip(1).all(|part| {
                let rest = text.get(end..).unwrap_or_default();
                let gap = rest
                    .char_indices()
                    .nth(GAP_CHARS)
                    .map_or(rest.len(), |(at, _)| at);
                let window = rest.floor_char_boundary((gap + part.len()).min(rest.len()));
                let at = rest
                    .get(..window)
                    .and_then(|window| window.find(part.as_str()));
                end += at.map_or(0, |at| at + part.len());
                at.is_some()
            });
            if fits && !hit.is_empty() {
                found.push((*number, hit.start(), end));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_file_parses() {
        for (code, text) in FILES {
            let file: File = toml::from_str(text).unwrap_or_else(|error| panic!("{code}: {error}"));
            assert_eq!(file.language, code);
        }
        assert_eq!(LEXICON.languages.len(), FILES.len());
    }

    #[test]
    fn slots_match_as_the_module_says() {
        let mut vocabulary = Vocabulary::default();
        let mut set = PhraseSet::default();
        for (rule, phrase) in [
            "not * but",
            "leave ** alone",
            "stop *ing",
            "red|green light",
            "very? good",
            "#",
            "pre*",
        ]
        .into_iter()
        .enumerate()
        {
            set.add(rule, phrase, &mut vocabulary, 1);
        }
        let check = |text: &str, expected: &[usize]| {
            let tokens = vocabulary.tokens(text);
            let mut found = Vec::new();
            set.for_each_at(&tokens, 0, |rule, _| found.push(rule));
            found.sort_unstable();
            assert_eq!(found, expected, "{text:?}");
        };
        check("not this but that", &[0]);
        check("not but", &[]);
        check("leave it alone", &[1]);
        check("leave all of these alone", &[1]);
        check("Stop asking", &[2]);
        check("green light", &[3]);
        check("good", &[4]);
        check("very good", &[4]);
        check("3rd", &[5]);
        check("prefix", &[6]);
    }
}
