//! The wording by which clients, agents and tools are recognised (`data/authors.toml`).

use std::sync::LazyLock;

use serde::Deserialize;

use super::Writer;

/// All of it.
#[derive(Default)]
pub(crate) struct Wording {
    pub(super) elements: Vec<Elements>,
    pub(super) texts: Vec<Begins>,
    pub(super) preface: Vec<Preface>,
    pub(super) actions: Vec<String>,
    headings: Vec<String>,
    /// Elements around the person's own words.
    pub(crate) speech: Vec<String>,
    /// Lines that clients write in the user's name.
    pub(crate) lines: Vec<String>,
    /// Tools that ask the person something; normalised names.
    questions: Vec<String>,
    client_tools: Vec<String>,
    pub(super) unanswered: Vec<String>,
    pub(super) answer_leads: Vec<String>,
    pub(super) answer_ends: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    elements: Vec<Elements>,
    texts: Vec<Begins>,
    preface: Vec<Preface>,
    wording: Lists,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lists {
    headings: Vec<String>,
    actions: Vec<String>,
    speech: Vec<String>,
    lines: Vec<String>,
    questions: Vec<String>,
    client_tools: Vec<String>,
    unanswered: Vec<String>,
    answer_leads: Vec<String>,
    answer_ends: Vec<String>,
}

/// Elements of one writer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Elements {
    pub(super) author: Writer,
    pub(super) names: Vec<String>,
}

/// Texts of one writer, by how they begin.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Begins {
    pub(super) author: Writer,
    pub(super) after: After,
    pub(super) starts: Vec<String>,
}

/// What must have come before a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum After {
    Nothing,
    Model,
    Action,
}

/// What an editor writes before the person's words.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Preface {
    pub(super) start: String,
    pub(super) request: String,
}

const TEXT: &str = include_str!("../../data/authors.toml");

// A file that does not parse leaves everything in: a test keeps that from being shipped.
static WORDING: LazyLock<Wording> = LazyLock::new(|| parse().unwrap_or_default());

/// The embedded wording.
pub(crate) fn wording() -> &'static Wording {
    &WORDING
}

fn parse() -> Result<Wording, toml::de::Error> {
    let file: File = toml::from_str(TEXT)?;
    let lists = file.wording;
    Ok(Wording {
        elements: file.elements,
        texts: file.texts,
        preface: file.preface,
        actions: lists.actions,
        headings: lists.headings,
        speech: lists.speech,
        lines: lists.lines,
        questions: lists.questions,
        client_tools: lists.client_tools,
        unanswered: lists.unanswered,
        answer_leads: lists.answer_leads,
        answer_ends: lists.answer_ends,
    })
}

impl Wording {
    /// How many bytes at the end are a heading of what follows.
    pub(super) fn heading(&self, before: &str) -> usize {
        let trimmed = before.trim_end();
        let line = trimmed.rfind('\n').map_or(0, |end| end + 1);
        let is_heading = self
            .headings
            .iter()
            .any(|heading| trimmed[line..].starts_with(heading.as_str()));
        if is_heading { before.len() - line } else { 0 }
    }

    /// Whether a tool asks the person something.
    pub(crate) fn asks(&self, tool: &str) -> bool {
        let name: String = tool
            .chars()
            .filter(|c| !matches!(c, '_' | '-'))
            .map(|c| c.to_ascii_lowercase())
            .collect();
        self.questions.contains(&name)
    }

    /// Whether nobody but the client writes the errors of a tool.
    pub(crate) fn is_client_tool(&self, tool: &str) -> bool {
        self.client_tools.iter().any(|name| name == tool) || self.asks(tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_parses() {
        parse().map(drop).unwrap_or_else(|error| panic!("{error}"));
    }
}
