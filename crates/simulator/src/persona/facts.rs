//! Questions about facts, answered from the request and from nothing else.
//!
//! What the request does not hold any more is not known: so a test can ask, after a swap, what a memory has kept.

use throughline_transcript::message::{Message, Role};

use super::Briefing;

/// Questions that are answered in one reply, at most.
const QUESTIONS_MAX: usize = 40;

/// Longest message that is searched for questions, bytes: what is longer is pasted.
const QUESTION_TEXT_BYTES_MAX: usize = 8_000;

/// Longest answer, bytes.
const VALUE_BYTES_MAX: usize = 400;

/// The words between a name and its value.
const CONNECTORS: &[&str] = &[
    " is now ",
    " is ",
    " are now ",
    " are ",
    " was changed to ",
    " changed to ",
    " was ",
    " should be ",
    " must be ",
    " has to be ",
    " will be ",
    " = ",
    "=",
    " := ",
    ": ",
    " → ",
    " -> ",
];

/// The answers to the user's last questions.
pub(crate) struct Answers {
    pub(crate) text: String,
    /// Whether anything of it is known.
    pub(crate) is_known: bool,
}

/// The answers to the questions that the user asked last; `None` if there was none.
pub(crate) fn answers(briefing: &Briefing) -> Option<Answers> {
    let asked = briefing.last_user_text();
    if asked.len() > QUESTION_TEXT_BYTES_MAX {
        return None;
    }
    let subjects = subjects(&asked);
    if subjects.is_empty() {
        return None;
    }
    let mut texts = vec![briefing.system_text()];
    for message in briefing.messages() {
        if message.role == Role::System && message.texts().next().is_none() {
            continue;
        }
        texts.push(all_text(message));
    }
    let mut is_known = false;
    let lines: Vec<String> = subjects
        .iter()
        .map(|subject| match look_up(subject, &texts) {
            Some(value) => {
                is_known = true;
                format!("The {subject} is {value}.")
            }
            None => format!("I do not know the {subject}: nothing that I was shown says so."),
        })
        .collect();
    Some(Answers {
        text: lines.join("\n"),
        is_known,
    })
}

fn all_text(message: &Message) -> String {
    super::words(message)
}

/// What a text asks for: `deploy region` of "What is the deploy region?".
pub(crate) fn subjects(text: &str) -> Vec<String> {
    const OPENINGS: &[&str] = &[
        "what is ",
        "what's ",
        "what are ",
        "what was ",
        "what were ",
        "what value has ",
        "tell me ",
    ];
    let mut subjects: Vec<String> = Vec::new();
    for sentence in text.split_inclusive(['?', '\n']) {
        let Some(question) = sentence.trim().strip_suffix('?') else {
            continue;
        };
        // The text before the last full stop is another sentence.
        let question = question
            .rsplit_once(". ")
            .map_or(question, |(_, last)| last);
        let lower = question.to_ascii_lowercase();
        let subject = OPENINGS
            .iter()
            .filter_map(|opening| Some((lower.find(opening)?, opening.len())))
            .min()
            .and_then(|(at, length)| question.get(at + length..))
            .map(str::to_owned)
            .or_else(|| of_choice(question, &lower));
        if let Some(subject) = subject
            .as_deref()
            .map(bare)
            .filter(|subject| !subject.is_empty())
            && subject.len() <= 120
            && !subjects.contains(&subject)
            && subjects.len() < QUESTIONS_MAX
        {
            subjects.push(subject);
        }
    }
    subjects
}

/// `port` of "Which port did we choose".
fn of_choice(question: &str, lower: &str) -> Option<String> {
    let (at, length) = ["which ", "what "]
        .iter()
        .find_map(|opening| Some((lower.find(opening)?, opening.len())))?;
    let rest = question.get(at + length..)?;
    let lower = lower.get(at + length..)?;
    let end = [
        " did ", " do ", " does ", " is ", " are ", " was ", " should ", " must ", " have ",
        " has ", " will ",
    ]
    .iter()
    .filter_map(|verb| lower.find(verb))
    .min()?;
    rest.get(..end).map(str::to_owned)
}

/// Without articles, quotes and filling words.
fn bare(subject: &str) -> String {
    let mut subject = subject.trim();
    loop {
        let before = subject;
        for filler in [
            "the ",
            "The ",
            "our ",
            "my ",
            "your ",
            "a ",
            "an ",
            "FACT ",
            "fact ",
            "value of ",
            "current ",
            "exact ",
            "name of the ",
        ] {
            subject = subject.strip_prefix(filler).unwrap_or(subject).trim();
        }
        for filler in [
            " now",
            " again",
            " currently",
            " please",
            " exactly",
            " right now",
            " today",
        ] {
            subject = subject.strip_suffix(filler).unwrap_or(subject).trim();
        }
        subject = subject.trim_matches(['"', '\'', '`', '*', '“', '”', ',', ':', ' ']);
        if subject == before {
            return subject.to_owned();
        }
    }
}

/// The last value that some text gives to the subject.
pub(crate) fn look_up(subject: &str, texts: &[String]) -> Option<String> {
    let subject = subject.to_ascii_lowercase();
    let mut spellings = vec![subject.clone()];
    for (from, to) in [('_', " "), (' ', "_"), ('-', " "), (' ', "-")] {
        let spelling = subject.replace(from, to);
        if !spellings.contains(&spelling) {
            spellings.push(spelling);
        }
    }
    texts.iter().rev().find_map(|text| {
        let lower = text.to_ascii_lowercase();
        spellings
            .iter()
            .filter_map(|spelling| last_value(spelling, text, &lower))
            .max_by_key(|(at, _)| *at)
            .map(|(_, value)| value)
    })
}

/// The last place in a text where the subject gets a value.
fn last_value(subject: &str, text: &str, lower: &str) -> Option<(usize, String)> {
    let mut end = lower.len();
    while let Some(at) = lower.get(..end).and_then(|before| before.rfind(subject)) {
        end = at;
        let after = at + subject.len();
        let begins_word = !lower
            .get(..at)
            .and_then(|before| before.chars().next_back())
            .is_some_and(|c| c.is_alphanumeric() || c == '_');
        if !begins_word || is_superseded(text, at) {
            continue;
        }
        let rest = lower.get(after..).unwrap_or_default();
        let quotes = rest.len() - rest.trim_start_matches(['"', '`', '*', '\'']).len();
        let rest = rest.get(quotes..).unwrap_or_default();
        let connector = CONNECTORS
            .iter()
            .find(|connector| rest.starts_with(*connector));
        if let Some(connector) = connector
            && let Some(value) = text.get(after + quotes + connector.len()..).map(value)
            && !value.is_empty()
        {
            return Some((at, value));
        }
    }
    None
}

/// Whether the line at a place says that it is outdated.
fn is_superseded(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let line = before
        .rfind('\n')
        .map_or(before, |start| before.get(start..).unwrap_or_default());
    line.contains("(superseded)")
}

/// The text up to the end of the sentence.
fn value(text: &str) -> String {
    let mut end = text.len().min(VALUE_BYTES_MAX);
    for (at, character) in text.char_indices() {
        if at >= VALUE_BYTES_MAX {
            end = at;
            break;
        }
        let next = text
            .get(at + character.len_utf8()..)
            .and_then(|rest| rest.chars().next());
        let is_end = match character {
            '\n' | '\r' | ';' | '"' | '?' => true,
            '.' | '!' | ',' => next.is_none_or(|next| {
                next.is_whitespace() || matches!(next, '"' | '\'' | '*' | ')' | '<' | '\\')
            }),
            '\\' => next == Some('n'),
            _ => false,
        };
        if is_end {
            end = at;
            break;
        }
    }
    let value = text
        .get(..text.floor_char_boundary(end))
        .unwrap_or_default();
    value.trim().trim_matches(['`', '*', '\'', '"']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_have_a_subject() {
        let check = |text: &str, expected: &[&str]| assert_eq!(subjects(text), expected, "{text}");
        check("What is the deploy region?", &["deploy region"]);
        check("Thanks. What's our API port now?", &["API port"]);
        check("What is FACT db_name?", &["db_name"]);
        check(
            "What is the value of `retry_limit`?\nWhat is the owner?",
            &["retry_limit", "owner"],
        );
        check("Which region did we choose?", &["region"]);
        check("Please write the parser.", &[]);
        check("Can you fix this?", &[]);
    }

    #[test]
    fn the_last_value_counts() {
        let check = |subject: &str, texts: &[&str], expected: Option<&str>| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(look_up(subject, &texts).as_deref(), expected, "{texts:?}");
        };
        check(
            "deploy region",
            &["Remember: the deploy region is eu-north-3."],
            Some("eu-north-3"),
        );
        check(
            "deploy region",
            &["The deploy region is a. Later the deploy region is now b.1, yes."],
            Some("b.1"),
        );
        check(
            "deploy region",
            &["the deploy region is old.", "- the deploy region is new."],
            Some("new"),
        );
        check("db_name", &["FACT db_name = orders_7"], Some("orders_7"));
        check(
            "db name",
            &["FACT db_name = orders_7\nFACT other = 2"],
            Some("orders_7"),
        );
        check("port", &["The `port` is `8431`."], Some("8431"));
        check(
            "port",
            &["> (superseded) the port is 1.\n> the port is 2."],
            Some("2"),
        );
        check(
            "port",
            &["the port is 2.\n  - (superseded) the port is 1."],
            Some("2"),
        );
        check(
            "port",
            &["{\"text\": \"the port is 2.\\nand more\"}"],
            Some("2"),
        );
        check("port", &["What is the port?", "export is blocked"], None);
        check("port", &[], None);
    }
}
