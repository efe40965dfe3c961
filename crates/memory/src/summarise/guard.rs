//! Rejects answers that cannot be a memory.
//!
//! Each way in which models and providers are known to answer with something else has a variant of [`Fault`]. What is
//! refused here is never looked at again: it reaches neither a memory nor the next request, other than as the sentence
//! that says what was wrong with it.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;
use throughline_transcript::text::truncate_bytes;

use super::answer::{AnswerContent, AnswerForm, Change, NewItem, ParseError};
use super::ask::{Answer, Stop};
use super::order::Count;
use super::parse::{ANSWER_BYTES_MAX, parse, says_something, whole_entries, without_scratch};
use super::reason::Fault;
use super::source::Source;
use super::transcript::one_line;
use crate::cues;
use crate::document::Entry;
use crate::redact::Redactor;
use crate::update::folded;

/// What an answer is checked against.
pub struct Context<'a> {
    /// The form that was asked for.
    pub wanted: AnswerForm,
    /// The language that the memory should have, ISO 639-3, if it is known.
    pub language: Option<&'a str>,
    /// Tokens of the messages and the prior memory that the answer sums up.
    pub input_tokens: usize,
    /// The largest memory, tokens.
    pub memory_tokens_max: usize,
    /// Counts tokens.
    pub count: &'a Count,
    /// What the model was told, without the conversation and without the focus.
    pub prompt: &'a str,
    /// The messages that it was shown.
    pub source: &'a Source,
    /// The memory so far, as text.
    pub prior: &'a str,
}

/// An answer that can be a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsableAnswer {
    /// What it says.
    pub parsed: AnswerContent,
    /// Its tokens.
    pub tokens: usize,
}

/// Answers of up to this many tokens are never too large: of short conversations there is little to leave out.
const LARGE_TOKENS_MIN: usize = 400;

/// Reads an answer, or says why it is no memory.
///
/// # Errors
/// The first [`Fault`] that applies; what can be told from the outside comes first.
pub fn guard(answer: &Answer, context: &Context<'_>) -> Result<UsableAnswer, Fault> {
    if answer.stop == Stop::Refused {
        return Err(Fault::Refusal);
    }
    if answer.has_tool_call || answer.stop == Stop::ToolUse {
        return Err(Fault::ToolCall);
    }
    let tokens = (context.count)(&answer.text);
    if answer.text.len() > ANSWER_BYTES_MAX {
        return Err(Fault::TooLarge {
            tokens,
            tokens_max: context.input_tokens,
        });
    }
    // A long answer is cut off by the limit on output, so circles are what it is cut off for.
    if repeats(&answer.text) {
        return Err(Fault::Repeats);
    }
    if answer.stop == Stop::Truncated {
        return guard_cut_off(answer, context);
    }
    let text = without_scratch(&answer.text);
    let text = text.trim();
    if !text.chars().any(char::is_alphanumeric) {
        return Err(Fault::Blank);
    }
    // Of JSON, ids and field names are a part that the memory will not have; Markdown is nearly all memory.
    let bare = text.trim_start_matches('`');
    let is_json = bare
        .strip_prefix("json")
        .unwrap_or(bare)
        .trim_start()
        .starts_with(['{', '[']);
    let tokens_max = if is_json {
        context.input_tokens.saturating_mul(2)
    } else {
        context.input_tokens
    };
    let tokens = (context.count)(text);
    if tokens > tokens_max.max(LARGE_TOKENS_MIN) {
        return Err(Fault::TooLarge { tokens, tokens_max });
    }
    if is_tool_protocol(text) {
        return Err(Fault::ToolCall);
    }
    if let Some(unfit) = in_place_of_an_answer(text) {
        return Err(unfit);
    }
    if copies(text, context) {
        return Err(Fault::CopiesPrompt);
    }
    let parsed = parse(&answer.text, context.wanted).map_err(|error| match error {
        ParseError::CutOff => Fault::Truncated,
        ParseError::InvalidJson { reason } => Fault::InvalidJson {
            reason: brief(&reason),
        },
        ParseError::WrongShape { path, reason } => Fault::WrongShape {
            path: brief(&path),
            reason: brief(&reason),
        },
        ParseError::NoStructure => Fault::NoStructure,
    })?;
    judge(parsed, tokens, context)
}

/// An answer that was cut off is taken as far as it is whole, if that is about as much as the memory can hold: with more
/// room the answer would be longer, and the memory would not.
fn guard_cut_off(answer: &Answer, context: &Context<'_>) -> Result<UsableAnswer, Fault> {
    let whole = whole_entries(&without_scratch(&answer.text)).ok_or(Fault::Truncated)?;
    let judged = guard(
        &Answer {
            text: whole,
            stop: Stop::Finished,
            ..answer.clone()
        },
        context,
    )
    .map_err(|_| Fault::Truncated)?;
    let said = texts_of(&judged.parsed);
    let tokens: usize = said.iter().map(|text| (context.count)(text)).sum();
    if tokens < context.memory_tokens_max / 2 {
        return Err(Fault::Truncated);
    }
    Ok(judged)
}

/// What a parser says, which quotes the answer: short, in one line and without secrets, since it is logged.
fn brief(reason: &str) -> String {
    const BYTES_MAX: usize = 200;
    let line = one_line(&Redactor::embedded().redact(reason));
    truncate_bytes(&line, BYTES_MAX).into_owned()
}

/// Looks at what an answer says.
fn judge(
    parsed: AnswerContent,
    tokens: usize,
    context: &Context<'_>,
) -> Result<UsableAnswer, Fault> {
    let texts = texts_of(&parsed);
    let said: Vec<&str> = texts
        .iter()
        .copied()
        .filter(|text| says_something(text))
        .collect();
    let is_edits = matches!(parsed, AnswerContent::Edits(_));
    if said.is_empty() {
        let is_quiet = match &parsed {
            AnswerContent::Edits(changes) if changes.is_empty() => {
                if context.input_tokens_new() < QUIET_TOKENS_MAX {
                    true
                } else {
                    return Err(Fault::NothingNew);
                }
            }
            AnswerContent::Edits(changes) => changes
                .iter()
                .any(|change| !matches!(change, Change::Add(_) | Change::Replace { .. })),
            AnswerContent::Whole(_) | AnswerContent::Additions(_) => false,
        };
        if !is_quiet {
            return Err(Fault::Skeleton);
        }
    }
    if !said.is_empty() {
        if said
            .iter()
            .all(|text| in_place_of_an_answer(text) == Some(Fault::ErrorText))
        {
            return Err(Fault::ErrorText);
        }
        // Ids and field names take room that the memory will not have.
        let tokens_said: usize = said.iter().map(|text| (context.count)(text)).sum();
        if tokens_said > context.input_tokens {
            return Err(Fault::TooLarge {
                tokens: tokens_said,
                tokens_max: context.input_tokens,
            });
        }
        if let Some(wanted) = context.language
            && let Some(found) = other_language(&said, wanted, context)
        {
            return Err(Fault::WrongLanguage {
                wanted: wanted.to_owned(),
                found: found.to_owned(),
            });
        }
        if !is_edits && is_unrelated(&said, context) {
            return Err(Fault::Unrelated);
        }
    }
    Ok(UsableAnswer { parsed, tokens })
}

/// Messages of fewer tokens may change nothing.
const QUIET_TOKENS_MAX: usize = 500;

impl Context<'_> {
    fn input_tokens_new(&self) -> usize {
        self.source
            .parts
            .iter()
            .map(|part| (self.count)(&part.text))
            .sum()
    }
}

fn texts_of(parsed: &AnswerContent) -> Vec<&str> {
    fn of(said: &[NewItem]) -> impl Iterator<Item = &str> {
        // A key without a summary says nothing.
        said.iter().map(|said| said.entry.text()).chain(
            said.iter()
                .filter(|said| !matches!(said.entry, Entry::ToolResult { .. }))
                .flat_map(|said| said.entry.texts().skip(1)),
        )
    }
    match parsed {
        AnswerContent::Whole(said) | AnswerContent::Additions(said) => of(said).collect(),
        AnswerContent::Edits(changes) => changes
            .iter()
            .flat_map(|change| match change {
                Change::Add(said) => said.entry.texts().collect(),
                Change::Replace { text, .. } => vec![text.as_str()],
                Change::Resolve {
                    resolution: Some(how),
                    ..
                } => vec![how.as_str()],
                Change::Resolve { .. } | Change::Supersede { .. } | Change::Drop { .. } => vec![],
            })
            .collect(),
    }
}

static TOOL_PROTOCOL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?im)^\s*(?:<\|?/?(?:function_calls?|tool_calls?|tool_use|invoke|antml:[a-z_]+|tool_code)\b",
        r"|\[tool[ _]?calls?[\]:]|\[TOOL_CALLS\]|<\|(?:python_tag|tool_calls?_begin|channel)\|>)",
    ))
    .ok()
});

/// Whether the text is a call of a tool, written out.
fn is_tool_protocol(text: &str) -> bool {
    if TOOL_PROTOCOL
        .as_ref()
        .is_some_and(|protocol| protocol.is_match(text))
    {
        return true;
    }
    let bare = text.trim_matches(|c: char| c.is_whitespace() || c == '`');
    let bare = bare.strip_prefix("json").unwrap_or(bare).trim_start();
    bare.starts_with('{')
        && serde_json::from_str::<serde_json::Value>(bare).is_ok_and(|value| {
            let has = |name: &str| value.get(name).is_some();
            has("name") && (has("arguments") || has("input") || has("parameters"))
                || has("tool_calls")
                || has("function_call")
        })
}

static ERROR_TEXT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)^\W*(?:",
        r"(?:an?\s+)?(?:unexpected\s+|internal\s+)?(?:api\s+)?error\s+(?:while\s+|when\s+|occurred\s+(?:while\s+|when\s+)?)?(?:generating|creating|producing|summari[sz]ing|making|calling|in\s+the)",
        r"|(?:failed|unable)\s+to\s+(?:generate|create|produce|summari[sz]e|compact|get\s+a\s+(?:summary|response))",
        r"|(?:summary|summari[sz]ation|compaction|memory)\s+(?:generation\s+)?(?:failed|unavailable|is\s+unavailable|could\s+not\s+be|error|timed\s+out)",
        r"|(?:older|earlier|previous)\s+messages\s+were\s+(?:truncated|removed|omitted|dropped)",
        r"|(?:api\s+|http\s+|server\s+|internal\s+server\s+)?error[:\s-]+(?:code[:\s]+)?(?:4\d\d|5\d\d)\b",
        r"|(?:4\d\d|5\d\d)\s+(?:\{|too\s+many|overloaded|internal|service|bad\s+gateway|gateway|unauthorized|forbidden|rate)",
        r"|(?:rate\s+limit|quota|context\s+(?:length|window)|maximum\s+context)\s*(?:was\s+|is\s+|has\s+been\s+)?(?:exceeded|reached)",
        r"|request\s+(?:timed\s+out|was\s+aborted|failed|cancelled|canceled)",
        r"|internal\s+server\s+error|service\s+unavailable|overloaded_error|rate_limit_error",
        r"|(?:connection|network)\s+(?:error|reset|refused|closed)\b",
        r"|fehler\s+beim\s+(?:erstellen|erzeugen|zusammenfassen)|erreur\s+lors\s+de|error\s+al\s+(?:generar|crear)",
        r")"
    ))
    .ok()
});

static REFUSAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)^\W*(?:(?:i['’]?\s?a?m\s+)?(?:very\s+|really\s+)?sorry,?\s*(?:but\s+)?(?:that\s+)?)?",
        r"(?:i\s+(?:can\s?not|can['’]t|am\s+(?:not\s+able|unable)|won['’]t|will\s+not|must\s+decline|do\s+not\s+feel\s+comfortable)\b",
        r"|i['’]m\s+(?:not\s+able|unable)|as\s+an?\s+(?:ai|language)\b|this\s+(?:content|request)\s+(?:violates|was\s+(?:blocked|filtered))",
        r"|es\s+tut\s+mir\s+leid|(?:ich\s+kann|ich\s+darf)\s+(?:dabei|das|diese|ihnen|dir)?\s*.{0,40}nicht|je\s+(?:ne\s+peux|suis\s+désolé)|lo\s+siento|no\s+puedo|申し訳|抱歉|对不起|很抱歉)"
    ))
    .ok()
});

static NOTHING_SEEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)(?:no\s+(?:conversation|transcript|messages?|chat|text|content)\s+(?:history\s+)?(?:was|were|is|has\s+been|have\s+been)?\s*(?:provided|given|supplied|included|found|available|to\s+summari[sz]e)",
        r"|(?:please|could\s+you|can\s+you)\s+(?:please\s+)?(?:provide|share|paste|send)\s+(?:me\s+)?(?:the\s+|your\s+)?(?:conversation|transcript|messages?|text|chat)",
        r"|(?:don['’]t|do\s+not|can['’]t|cannot)\s+see\s+(?:any|a|the)\s+(?:conversation|transcript|messages?|previous)",
        r"|(?:there\s+is\s+)?nothing\s+to\s+summari[sz]e)"
    ))
    .ok()
});

/// Texts up to this length can be nothing but an apology.
const SHORT_BYTES_MAX: usize = 600;

/// Short texts that come in place of an answer.
pub(super) fn in_place_of_an_answer(text: &str) -> Option<Fault> {
    let bare = text.trim_matches(|c: char| c.is_whitespace() || c == '`');
    if bare.starts_with('{')
        && let Ok(value) = serde_json::from_str::<serde_json::Value>(bare)
        && (value.get("error").is_some()
            || value.get("type") == Some(&serde_json::Value::from("error")))
    {
        return Some(Fault::ErrorText);
    }
    if text.len() > SHORT_BYTES_MAX || bare.starts_with('{') {
        return None;
    }
    let is =
        |regex: &LazyLock<Option<Regex>>| regex.as_ref().is_some_and(|regex| regex.is_match(text));
    let has_structure = text.lines().any(|line| line.trim_start().starts_with('#'));
    if is(&ERROR_TEXT) {
        Some(Fault::ErrorText)
    } else if has_structure {
        None
    } else if is(&NOTHING_SEEN) {
        Some(Fault::NothingSeen)
    } else if is(&REFUSAL) {
        Some(Fault::Refusal)
    } else {
        None
    }
}

/// Whether the text goes round in circles: few of its stretches are different ones.
fn repeats(text: &str) -> bool {
    const STRETCH: usize = 32;
    const CHARACTERS_MIN: usize = 600;
    const DISTINCT_PERCENT_MIN: usize = 35;
    let characters: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    if characters.len() < CHARACTERS_MIN {
        return false;
    }
    let stretches = characters.windows(STRETCH);
    let total = stretches.len();
    let distinct: HashSet<&[char]> = stretches.collect();
    if distinct.len() * 100 < total * DISTINCT_PERCENT_MIN {
        return true;
    }
    // The circles come at the end, after something sensible.
    let end = &characters[characters.len() - characters.len() / 2..];
    let total = end.len().saturating_sub(STRETCH - 1);
    let distinct: HashSet<&[char]> = end.windows(STRETCH).collect();
    end.len() >= CHARACTERS_MIN && distinct.len() * 100 < total * (DISTINCT_PERCENT_MIN / 2)
}

/// Whether the answer repeats lines of what the model was told.
fn copies(text: &str, context: &Context<'_>) -> bool {
    const LINE_BYTES_MIN: usize = 60;
    const LINES_MIN: usize = 2;
    let text = folded(text);
    let lines = context
        .prompt
        .lines()
        .map(folded)
        .filter(|line| line.len() >= LINE_BYTES_MIN)
        .filter(|line| text.contains(line.as_str()));
    lines.take(LINES_MIN).count() >= LINES_MIN
}

/// The language of the answer, if it is another one and that is sure.
fn other_language(said: &[&str], wanted: &str, context: &Context<'_>) -> Option<&'static str> {
    const LETTERS_MIN: usize = 160;
    // Quotations are in the language of what is quoted.
    let places = context.source.places(said);
    let prior = folded(context.prior);
    let own: Vec<&str> = said
        .iter()
        .zip(places)
        .filter(|(text, place)| {
            !(place.in_user
                || place.in_assistant.is_some()
                || place.in_tool.is_some()
                || prior.contains(&folded(text)))
        })
        .map(|(text, _)| *text)
        .collect();
    let letters: usize = own
        .iter()
        .map(|text| {
            let letters = text.chars().filter(|c| c.is_alphabetic());
            // A character of Chinese or Japanese says as much as several letters.
            letters
                .map(|c| if c as u32 >= 0x2e80 { 4 } else { 1 })
                .sum::<usize>()
        })
        .sum();
    if letters < LETTERS_MIN {
        return None;
    }
    let found = cues::language(own)?;
    (family(found) != family(wanted)).then_some(found)
}

/// Languages that short texts do not tell apart count as one.
fn family(language: &str) -> &str {
    const FAMILIES: [&[&str]; 9] = [
        &["nob", "nno", "nor", "dan", "swe"],
        &["hrv", "srp", "slv", "bos", "mkd"],
        &["rus", "ukr", "bel", "bul"],
        &["spa", "por", "cat", "glg", "ita"],
        &["ces", "slk"],
        &["ind", "msa", "zlm", "jav", "tgl"],
        &["deu", "nld", "afr"],
        &["hin", "mar", "nep"],
        &["cmn", "jpn", "zho"],
    ];
    FAMILIES
        .iter()
        .find(|family| family.contains(&language))
        .and_then(|family| family.first().copied())
        .unwrap_or(language)
}

/// Whether none of the longer words of the answer occurs in what was read.
fn is_unrelated(said: &[&str], context: &Context<'_>) -> bool {
    const WORDS_MIN: usize = 12;
    let own: HashSet<String> = said.iter().flat_map(|text| words(text)).collect();
    if own.len() < WORDS_MIN {
        return false;
    }
    let read = context
        .source
        .parts
        .iter()
        .map(|part| part.text.as_str())
        .chain([context.prior]);
    !read
        .into_iter()
        .any(|text| words(text).iter().any(|word| own.contains(word)))
}

/// The longer words of a text in lower case; of writing without spaces, every pair of characters.
pub(super) fn words(text: &str) -> HashSet<String> {
    const LETTERS_MIN: usize = 4;
    let mut words = HashSet::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        let characters: Vec<char> = word.chars().collect();
        if characters.iter().any(|c| *c as u32 >= 0x2e80) {
            words.extend(
                characters
                    .windows(2)
                    .map(|pair| pair.iter().collect::<String>()),
            );
        } else if characters.len() >= LETTERS_MIN {
            words.insert(word.to_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests;
