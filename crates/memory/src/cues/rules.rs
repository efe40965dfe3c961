//! The rule files: phrases per cue and language, and how they are matched against a sentence.
//!
//! A phrase is a row of slots divided by spaces. A slot is a word, `a|b` one of several, `word?` an optional one, `*`
//! any one word, `**` up to four words, `pre*` and `*suf` a word by its beginning or end, `#` a word that begins with a
//! digit; `,` `:` `?` and other stops match themselves. Files of languages that are written without spaces hold
//! plain strings, in which `…` matches up to twelve characters.
use std::sync::{LazyLock, OnceLock};

use super::files::{self, At, CORE, FILES, File, FileRule};
use super::phrases::{Compiler, PhraseSet, Token, Vocabulary};
use super::script::{Letters, Script, telling};
use super::strings::{Strings, UnspacedRules};

/// A rule's phrase that was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match {
    /// The rule's kind, as the file names it.
    pub(super) kind: &'static str,
    pub(super) confidence: u8,
    /// Where the phrase begins in the sentence, in bytes.
    pub(super) start: usize,
}

/// What the phrases of a rule say, how sure that is, and where they must be.
pub(super) struct Rule {
    pub(super) kind: String,
    pub(super) confidence: u8,
    pub(super) at: At,
}

/// The languages that are read at first use, and the marks of all others.
static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    let mut lexicon = Lexicon::load(0..CORE);
    for (index, (_, _, text)) in FILES.iter().enumerate().skip(CORE) {
        for mark in files::marks(text) {
            lexicon.vocabulary.mark(mark, 1 << index);
            lexicon.vocabulary.mark_unmarked(mark, 1 << index);
        }
    }
    lexicon
});

/// The other languages, each read when it is met.
static LATER: [OnceLock<Lexicon>; FILES.len()] = [const { OnceLock::new() }; FILES.len()];

struct Lexicon {
    vocabulary: Vocabulary,
    languages: Vec<Language>,
}

struct Language {
    rules: Vec<Rule>,
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

/// All matches in `sentence`, by the rules of the language that it is most likely written in; `fallback` decides where
/// the sentence is too short to tell.
pub(super) fn matches(sentence: &str, fallback: Option<&'static str>) -> Vec<Match> {
    let lexicon = &*LEXICON;
    let tokens = lexicon.vocabulary.tokens(sentence);
    let mut found = Vec::new();
    for index in lexicon
        .tongues(sentence, &tokens, fallback)
        .into_iter()
        .flatten()
    {
        if let Some(language) = lexicon.languages.get(index) {
            found.extend(language.matches(&tokens, sentence));
        } else if let Some(later) = later(index)
            && let Some(language) = later.languages.first()
        {
            let tokens = match language.form {
                Form::Spaced(_) => later.vocabulary.tokens(sentence),
                Form::Unspaced(_) => Vec::new(),
            };
            found.extend(language.matches(&tokens, sentence));
        }
    }
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

/// The language of `text`, a message: by its script, or by the words of the rule files in it. `fallback` decides where
/// it is too short to tell.
pub(super) fn guess(text: &str, fallback: Option<&'static str>) -> Option<&'static str> {
    guess_with(text, 1, fallback).or(fallback)
}

/// The same, but only where several words speak for it.
pub(super) fn guess_surely(text: &str) -> Option<&'static str> {
    guess_with(text, 5, None)
}

fn guess_with(text: &str, least: usize, fallback: Option<&str>) -> Option<&'static str> {
    const ENOUGH_BYTES: usize = 4000;
    let head = text
        .get(..text.floor_char_boundary(ENOUGH_BYTES))
        .unwrap_or(text);
    let tokens = LEXICON.vocabulary.tokens(head);
    let index = match LEXICON.by_script(head, &tokens, fallback) {
        ByScript::Language(index, _) => Some(index),
        ByScript::Unknown => None,
        ByScript::Latin => LEXICON.by_words(head, &tokens, fallback, least).ok(),
    };
    index
        .and_then(|index| FILES.get(index))
        .map(|(code, ..)| *code)
}

/// The language at this place of the files, read when it is first met.
fn later(index: usize) -> Option<&'static Lexicon> {
    let cell = LATER.get(index)?;
    Some(cell.get_or_init(|| Lexicon::load(index..index + 1)))
}

/// What the script of a text says about its language.
enum ByScript {
    /// Its place in the files, and whether it may just be a word in an English sentence.
    Language(usize, bool),
    /// A language without a file.
    Unknown,
    /// One of several that the words tell apart.
    Latin,
}

impl Lexicon {
    fn load(places: std::ops::Range<usize>) -> Self {
        let mut vocabulary = Vocabulary::default();
        let mut languages = Vec::new();
        for (index, (code, _, text)) in FILES.iter().enumerate().take(places.end).skip(places.start)
        {
            // A file that does not parse is left out: a test keeps that from being shipped.
            if let Ok(file) = toml::from_str::<File>(text)
                && file.language == *code
            {
                languages.push(Language::compile(1 << index, file, &mut vocabulary));
            }
        }
        Self {
            vocabulary,
            languages,
        }
    }

    /// The places of the languages by whose rules a sentence is read: nearly always one, two where it is uncertain.
    fn tongues(
        &self,
        sentence: &str,
        tokens: &[Token<'_>],
        fallback: Option<&str>,
    ) -> [Option<usize>; 2] {
        const ENGLISH: usize = 0;
        match self.by_script(sentence, tokens, fallback) {
            ByScript::Unknown => [Some(ENGLISH), None],
            ByScript::Language(index, false) => [Some(index), None],
            ByScript::Language(index, true) => [Some(index), Some(ENGLISH)],
            ByScript::Latin => match self.by_words(sentence, tokens, fallback, 1) {
                Ok(index) => [Some(index), None],
                Err(is_english_too) => {
                    let index = fallback.and_then(files::index_of).unwrap_or(ENGLISH);
                    let is_english_too = is_english_too && index != ENGLISH;
                    [Some(index), is_english_too.then_some(ENGLISH)]
                }
            },
        }
    }

    fn by_script(&self, text: &str, tokens: &[Token<'_>], fallback: Option<&str>) -> ByScript {
        let letters = Letters::of(text);
        let (script, is_uncertain) = letters.script();
        let code = match script {
            Script::Latin => return ByScript::Latin,
            Script::Cyrillic if letters.is_foreign() => None,
            Script::Cyrillic => {
                let count = |code: &str| {
                    let bit = files::index_of(code).map_or(0, |index| 1 << index);
                    tokens
                        .iter()
                        .filter(|token| self.vocabulary.languages(token.number).1 & bit != 0)
                        .count()
                };
                let (rus, ukr) = (
                    count("rus") + 2 * letters.russian,
                    count("ukr") + 2 * letters.ukrainian,
                );
                let is_ukrainian = ukr > rus || ukr == rus && fallback == Some("ukr");
                Some(if is_ukrainian { "ukr" } else { "rus" })
            }
            _ => letters.language(script),
        };
        code.and_then(files::index_of)
            .map_or(ByScript::Unknown, |index| {
                ByScript::Language(index, is_uncertain)
            })
    }

    /// The language with the most of its own words among `tokens`. An error where there are fewer than `least` or
    /// where `fallback` is as likely, or nearly so: whether English is then at least as likely.
    fn by_words(
        &self,
        text: &str,
        tokens: &[Token<'_>],
        fallback: Option<&str>,
        least: usize,
    ) -> Result<usize, bool> {
        // A function word of one language counts three times, a word that its rules know once.
        const CLOSE: usize = 2;
        const MARK: usize = 3;
        let mut scores = [0_usize; FILES.len()];
        for token in tokens.iter().filter(|token| token.number != 0) {
            let (known, marks) = self.vocabulary.languages(token.number);
            let mut bits = known | marks;
            while bits != 0 {
                let index = bits.trailing_zeros();
                bits &= bits - 1;
                if let Some(score) = scores.get_mut(index as usize) {
                    let is_mark = marks >> index & 1 == 1;
                    // What an English text has too says little for a language that is read later.
                    let is_shared = index as usize >= CORE && known & 1 == 1;
                    *score += usize::from(known >> index & 1 == 1)
                        + if is_mark && !is_shared {
                            MARK
                        } else {
                            usize::from(is_mark)
                        };
                }
            }
        }
        if !text.is_ascii() {
            for index in text
                .chars()
                .filter_map(telling)
                .filter_map(files::index_of)
                .take(3)
            {
                if let Some(score) = scores.get_mut(index) {
                    *score += MARK;
                }
            }
        }
        let place = fallback.and_then(files::index_of);
        let core = scores.iter().take(CORE).copied().max().unwrap_or(0);
        let latin = |index: usize| {
            FILES
                .get(index)
                .is_some_and(|(_, script, _)| *script == Script::Latin)
        };
        for (index, score) in scores.iter_mut().enumerate().skip(CORE) {
            // Rarely does a language without a function word in the text come into question.
            let is_likely = *score >= MARK && *score + MARK + CLOSE >= core || Some(index) == place;
            if is_likely
                && latin(index)
                && let Some(later) = later(index)
            {
                let is_ascii = text.is_ascii();
                *score += tokens
                    .iter()
                    .filter(|token| {
                        !token.is_punctuation && later.vocabulary.number(&token.text, is_ascii) != 0
                    })
                    .count();
            } else if !latin(index) {
                *score = 0;
            }
        }
        let score_of = |index: usize| scores.get(index).copied().unwrap_or(0);
        let best = scores.iter().copied().max().unwrap_or(0);
        let fallback_score = place.map_or(0, score_of);
        let is_english_too = score_of(0) > 0 && score_of(0) >= fallback_score;
        if best < least || place.is_some_and(|_| fallback_score + CLOSE >= best) {
            return Err(is_english_too);
        }
        // English leads a tie: it is first in the list.
        scores
            .iter()
            .position(|score| *score == best)
            .ok_or(is_english_too)
    }
}

impl Language {
    fn compile(bit: u32, file: File, vocabulary: &mut Vocabulary) -> Self {
        let compiler = Compiler {
            bit,
            unmarked: file.unmarked,
        };
        vocabulary.prefixes = file.prefixes;
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
                rules.softeners.add(0, phrase, vocabulary, compiler);
            }
            for (number, rule) in file.rule.iter().enumerate() {
                for phrase in &rule.phrases {
                    rules.phrases.add(number, phrase, vocabulary, compiler);
                }
                for phrase in &rule.unless {
                    rules.vetoes.add(number, phrase, vocabulary, compiler);
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
            .map(|rule| Rule {
                kind: rule.kind,
                confidence: rule.confidence,
                at: rule.at,
            })
            .collect();
        Self { rules, form }
    }

    fn matches(&'static self, tokens: &[Token<'_>], sentence: &str) -> Vec<Match> {
        match &self.form {
            Form::Spaced(rules) => self.in_words(rules, tokens),
            Form::Unspaced(rules) => rules.matches(&self.rules, sentence),
        }
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
                let Some(Rule {
                    kind,
                    confidence,
                    at: place,
                }) = self.rules.get(number)
                else {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_file_parses() {
        for (index, (code, _, text)) in FILES.into_iter().enumerate() {
            let file: File = toml::from_str(text).unwrap_or_else(|error| panic!("{code}: {error}"));
            assert_eq!(file.language, code);
            assert!(files::marks(text).eq(&file.marks), "{code}");
            assert_eq!(Lexicon::load(index..index + 1).languages.len(), 1, "{code}");
        }
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
            set.add(
                rule,
                phrase,
                &mut vocabulary,
                Compiler {
                    bit: 1,
                    unmarked: false,
                },
            );
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
