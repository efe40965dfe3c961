//! The person's answers in the results of tools that ask them something.

use std::collections::HashMap;

use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::message::{ToolCall, ToolInput};

use super::wording;

/// Questions of one call that are read.
const QUESTIONS_MAX: usize = 20;

/// What a call asks: for each question its id, which may be empty, and its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Questions(Vec<(String, String)>);

/// An answer of the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Empty where it is not known.
    pub(crate) question: String,
    pub(crate) text: String,
}

impl Questions {
    /// The questions of a call, if it is one that asks the person something.
    pub(crate) fn of(call: &ToolCall) -> Option<Self> {
        if !wording().asks(&call.name) {
            return None;
        }
        let ToolInput::Json(input) = &call.input else {
            return Some(Self::default());
        };
        let mut found = Vec::new();
        let text = |raw: &Raw, key| raw.string_field(key).map(|text| text.trim().to_owned());
        let mut add = |raw: &Raw| {
            let keys = ["question", "prompt", "text", "message", "label"];
            let question = match raw.as_text() {
                Some(question) => Some(question.decode().trim().to_owned()),
                None => keys.into_iter().find_map(|key| text(raw, key)),
            };
            if let Some(question) = question.filter(|question| !question.is_empty()) {
                found.push((text(raw, "id").unwrap_or_default(), question));
            }
        };
        match input
            .field("questions")
            .filter(|list| list.kind() == Kind::Array)
        {
            Some(list) => list.array().take(QUESTIONS_MAX).for_each(|raw| add(&raw)),
            None => add(input),
        }
        Some(Self(found))
    }

    fn text(&self, key: &str) -> String {
        let by_id = self.0.iter().find(|(id, _)| id == key && !id.is_empty());
        let by_place = || self.0.get(key.parse::<usize>().ok()?);
        match by_id.or_else(by_place) {
            Some((_, question)) => question.clone(),
            // Some clients write the question itself as the key, others an id that nobody can read.
            None if key.contains(' ') || key.ends_with('?') => key.to_owned(),
            None => String::new(),
        }
    }
}

/// The person's answers in a result, each with its question.
pub(crate) fn answers(questions: &Questions, result: &str) -> Vec<Answer> {
    let result = result.trim();
    let wording = wording();
    let begins = |list: &[String]| list.iter().any(|start| result.starts_with(start.as_str()));
    if result.is_empty() || begins(&wording.unanswered) {
        return Vec::new();
    }
    if result.starts_with(['{', '['])
        && let Ok(raw) = Raw::parse(result.to_owned())
    {
        return of_json(questions, &raw);
    }
    let lead = wording
        .answer_leads
        .iter()
        .find_map(|lead| result.strip_prefix(lead.as_str()));
    let body = lead.unwrap_or(result).trim();
    let end = wording
        .answer_ends
        .iter()
        .filter_map(|end| body.rfind(end.as_str()))
        .min();
    let body = body[..end.unwrap_or(body.len())].trim();
    let pairs = pairs(questions, body);
    if !pairs.is_empty() {
        return pairs;
    }
    let text = ["answer", "feedback", "user_message", "response"]
        .into_iter()
        .find_map(|tag| throughline_transcript::text_result::whole_element(body, tag))
        .unwrap_or(body)
        .trim();
    match questions.0.as_slice() {
        [(_, question)] => answer(question.clone(), text).into_iter().collect(),
        // Several answers that cannot be told apart are kept as they are.
        _ if lead.is_some() => answer(String::new(), text).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn answer(question: String, text: &str) -> Option<Answer> {
    let text = text.trim();
    let is_said = !text.is_empty()
        && !wording()
            .unanswered
            .iter()
            .any(|start| text.starts_with(start.as_str()));
    is_said.then(|| Answer {
        question,
        text: text.to_owned(),
    })
}

/// `"Which quay?"="The old one", "When?"="Now"`, with notes of the user behind an answer.
fn pairs(questions: &Questions, body: &str) -> Vec<Answer> {
    let mut marks: Vec<(usize, usize, String)> = questions
        .0
        .iter()
        .filter_map(|(_, question)| {
            let mark = format!("\"{question}\"=\"");
            body.find(&mark)
                .map(|at| (at, at + mark.len(), question.clone()))
        })
        .collect();
    if marks.is_empty() && body.starts_with('"') {
        let mut from = 0;
        while let Some(found) = body[from..]
            .find("\"=\"")
            .filter(|_| marks.len() < QUESTIONS_MAX)
        {
            let end = from + found;
            let start = body[from..end]
                .rfind(", \"")
                .map_or(from, |at| from + at + 2);
            marks.push((
                start,
                end + 3,
                body[start..end].trim_start_matches('"').to_owned(),
            ));
            from = end + 3;
        }
    }
    marks.sort_unstable();
    let ends: Vec<usize> = marks
        .iter()
        .skip(1)
        .map(|mark| mark.0)
        .chain([body.len()])
        .collect();
    marks
        .into_iter()
        .zip(ends)
        .filter_map(|((_, from, question), end)| {
            let said = body.get(from..end)?.trim().trim_end_matches(',');
            let (said, notes) = match said.split_once("\" user notes:") {
                Some((said, notes)) => (said, notes.trim()),
                None => (said, ""),
            };
            let said = said.split("\" selected preview:").next().unwrap_or(said);
            let said = said.strip_suffix('"').unwrap_or(said);
            let text = if notes.is_empty() {
                said.to_owned()
            } else {
                format!("{said}; {notes}")
            };
            answer(question, &text)
        })
        .collect()
}

/// `{"answers": {"id": {"answers": ["..."]}}}` and the like.
fn of_json(questions: &Questions, raw: &Raw) -> Vec<Answer> {
    let inner = ["answers", "answer", "responses", "response"]
        .into_iter()
        .find_map(|key| raw.field(key));
    let inner = inner.as_ref().unwrap_or(raw);
    let mut found = Vec::new();
    match inner.kind() {
        Kind::Object => {
            for (key, value) in inner.object().take(QUESTIONS_MAX) {
                found.extend(answer(questions.text(&key.decode()), &said(&value)));
            }
        }
        Kind::Array => {
            for (place, value) in inner.array().take(QUESTIONS_MAX).enumerate() {
                let question = value.string_field("question").map(|text| text.to_string());
                let question = question.unwrap_or_else(|| questions.text(&place.to_string()));
                found.extend(answer(question, &said(&value)));
            }
        }
        _ => found.extend(answer(questions.text("0"), &said(inner))),
    }
    found
}

/// What an answer says: a text, a list of texts, or an object that holds one of them.
fn said(value: &Raw) -> String {
    fn text(value: &Raw) -> Option<String> {
        let text = value.as_text()?.decode().into_owned();
        let text = text
            .strip_prefix("user_note: ")
            .map(str::to_owned)
            .unwrap_or(text);
        Some(text)
    }
    let mut fields: HashMap<String, Raw> = HashMap::new();
    if value.kind() == Kind::Object {
        fields.extend(
            value
                .object()
                .take(QUESTIONS_MAX)
                .map(|(key, value)| (key.decode().into_owned(), value)),
        );
    }
    let keys = [
        "answers", "answer", "selected", "value", "text", "response", "label", "notes", "note",
        "other",
    ];
    let values: Vec<Raw> = match value.kind() {
        Kind::Object => keys
            .into_iter()
            .filter_map(|key| fields.remove(key))
            .collect(),
        _ => vec![value.clone()],
    };
    let mut parts: Vec<String> = Vec::new();
    for value in values {
        match value.kind() {
            Kind::Array => parts.extend(
                value
                    .array()
                    .take(QUESTIONS_MAX)
                    .filter_map(|part| text(&part)),
            ),
            _ => parts.extend(text(&value)),
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.join("; ")
}
