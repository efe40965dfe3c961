//! Session files that coding agents resume: the messages of a request, in the records of such a program.
//!
//! An agent that resumes a file with a memory and the last messages has been compacted without a proxy between it and
//! its provider. System prompt and tools are not written: the agent has its own.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use throughline_transcript::json::{Kind, Raw, quoted};
use throughline_transcript::wire::Wire;

use super::text::{array, object};

/// A coding agent whose session files can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code: `projects/FOLDER/ID.jsonl` in its configuration folder. Resumed by `claude --resume ID`, in the
    /// folder that the session worked in.
    ClaudeCode,
    /// Codex: `sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl` in its home. Resumed by `codex resume ID`.
    Codex,
}

/// What a session file says besides its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFile<'a> {
    /// The program that will resume the file.
    pub agent: Agent,
    /// Id of the new session, a UUID in lower-case hexadecimal.
    pub id: &'a str,
    /// Folder that the session works in, absolute.
    pub cwd: &'a str,
    /// When the file is written, in milliseconds since 1970 UTC. The messages bear this time.
    pub at_ms: i64,
    /// Whether the first message is a memory of what preceded the others.
    pub begins_with_memory: bool,
}

/// Version of the writing program that the records name, where one is required.
const WRITER_VERSION: &str = env!("CARGO_PKG_VERSION");

impl Agent {
    /// The format of the request whose messages the file holds.
    #[must_use]
    pub fn wire(self) -> Wire {
        match self {
            Self::ClaudeCode => Wire::Anthropic,
            Self::Codex => Wire::OpenAiResponses,
        }
    }
}

impl SessionFile<'_> {
    /// Where the program looks for the file, relative to its own folder.
    #[must_use]
    pub fn path(&self) -> String {
        match self.agent {
            Agent::ClaudeCode => {
                let folder: String = self
                    .cwd
                    .chars()
                    .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
                    .collect();
                format!("projects/{folder}/{}.jsonl", self.id)
            }
            Agent::Codex => {
                let time = TimeZone::UTC.to_datetime(self.time(0));
                format!(
                    "sessions/{}/rollout-{}-{}.jsonl",
                    time.strftime("%Y/%m/%d"),
                    time.strftime("%Y-%m-%dT%H-%M-%S"),
                    self.id
                )
            }
        }
    }

    /// Writes the records: JSON lines, each message of `body` as it is written there.
    ///
    /// `body` is a request of the [wire](Agent::wire) of the program. Instructions of the operator among its messages
    /// are left out.
    #[must_use]
    pub fn write(&self, body: &Raw) -> String {
        let mut lines = Lines {
            file: self,
            text: String::new(),
            count: 0,
        };
        match self.agent {
            Agent::ClaudeCode => lines.claude_code(body),
            Agent::Codex => lines.codex(body),
        }
        lines.text
    }

    /// The time of record `index`: they are in order.
    fn time(&self, index: usize) -> Timestamp {
        let later = i64::try_from(index).unwrap_or_default();
        Timestamp::from_millisecond(self.at_ms.saturating_add(later)).unwrap_or_default()
    }
}

struct Lines<'a> {
    file: &'a SessionFile<'a>,
    text: String,
    count: usize,
}

impl Lines<'_> {
    fn push(&mut self, fields: &[(&str, &str)]) {
        // Between values, a line break means nothing; in a string it is escaped.
        self.text
            .push_str(&object(fields).replace(['\n', '\r'], " "));
        self.text.push('\n');
        self.count += 1;
    }

    /// When the next record was written, as JSON.
    fn timestamp(&self) -> String {
        let time = TimeZone::UTC.to_datetime(self.file.time(self.count));
        quoted(&time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string())
    }

    fn claude_code(&mut self, body: &Raw) {
        let file = self.file;
        let session = quoted(file.id);
        let cwd = quoted(file.cwd);
        let version = quoted(WRITER_VERSION);
        let model = body
            .field("model")
            .map_or_else(|| quoted("unknown"), |model| model.as_str().to_owned());
        let mut parent = "null".to_owned();
        let messages = body.field("messages");
        let mut is_memory = file.begins_with_memory;
        for message in messages.iter().flat_map(Raw::array) {
            let role = message.string_field("role").unwrap_or_default();
            if !matches!(role.as_str(), "user" | "assistant") {
                continue;
            }
            let uuid = quoted(&record_id(file.id, self.count));
            let timestamp = self.timestamp();
            let message = if role == "assistant" {
                assistant_message(&message, &model, file.id, self.count)
            } else {
                message.as_str().to_owned()
            };
            let kind = quoted(&role);
            let mut fields = vec![
                ("parentUuid", parent.as_str()),
                ("isSidechain", "false"),
                ("userType", "\"external\""),
                ("cwd", &cwd),
                ("sessionId", &session),
                ("version", &version),
                ("type", &kind),
                ("message", &message),
            ];
            if is_memory && role == "user" {
                fields.push(("isCompactSummary", "true"));
                fields.push(("isVisibleInTranscriptOnly", "true"));
            }
            is_memory = false;
            fields.extend([("uuid", uuid.as_str()), ("timestamp", &timestamp)]);
            self.push(&fields);
            parent = uuid;
        }
    }

    fn codex(&mut self, body: &Raw) {
        let file = self.file;
        let timestamp = self.timestamp();
        let meta = object(&[
            ("id", &quoted(file.id)),
            ("timestamp", &timestamp),
            ("cwd", &quoted(file.cwd)),
            ("originator", "\"throughline\""),
            ("cli_version", &quoted(WRITER_VERSION)),
            ("source", "\"cli\""),
        ]);
        self.record("session_meta", &meta);
        let input = body.field("input");
        if let Some(text) = input
            .as_ref()
            .filter(|input| input.kind() == Kind::String)
            .and_then(Raw::as_text)
        {
            let text = text.decode();
            self.message("user", &text, &array(&[text_part("user", &text)]));
            return;
        }
        for item in input.iter().flat_map(Raw::array) {
            match item.string_field("role").as_deref() {
                Some(role @ ("user" | "assistant")) => {
                    let said = said_in(&item);
                    let parts = match item.field("content") {
                        Some(parts) if parts.kind() == Kind::Array => parts.as_str().to_owned(),
                        _ => array(&[text_part(role, &said)]),
                    };
                    self.message(role, &said, &parts);
                }
                Some(_) => {}
                None => self.record("response_item", item.as_str()),
            }
        }
    }

    fn message(&mut self, role: &str, said: &str, parts: &str) {
        let item = object(&[
            ("type", "\"message\""),
            ("role", &quoted(role)),
            ("content", parts),
        ]);
        self.record("response_item", &item);
        let event = if role == "user" {
            "user_message"
        } else {
            "agent_message"
        };
        self.event(event, said);
    }

    /// What the program shows of a message when it lists and resumes the session.
    fn event(&mut self, kind: &str, said: &str) {
        if !said.is_empty() {
            let payload = object(&[("type", &quoted(kind)), ("message", &quoted(said))]);
            self.record("event_msg", &payload);
        }
    }

    fn record(&mut self, kind: &str, payload: &str) {
        let timestamp = self.timestamp();
        self.push(&[
            ("timestamp", &timestamp),
            ("type", &quoted(kind)),
            ("payload", payload),
        ]);
    }
}

/// A UUID for record `index` of the session `id`.
fn record_id(id: &str, index: usize) -> String {
    let head = id.get(..24).unwrap_or("00000000-0000-4000-8000-");
    format!("{head}{:012x}", index + 1)
}

/// The message with the fields that an answer of the API has.
fn assistant_message(message: &Raw, model: &str, session: &str, index: usize) -> String {
    let content = match message.field("content") {
        Some(text) if text.kind() == Kind::String => {
            array(&[object(&[("type", "\"text\""), ("text", text.as_str())])])
        }
        Some(blocks) => blocks.as_str().to_owned(),
        None => "[]".to_owned(),
    };
    let id = format!("msg_{}{index:04x}", session.get(..8).unwrap_or_default());
    object(&[
        ("id", &quoted(&id)),
        ("type", "\"message\""),
        ("role", "\"assistant\""),
        ("model", model),
        ("content", &content),
        ("stop_reason", "null"),
        ("stop_sequence", "null"),
        ("usage", r#"{"input_tokens":0,"output_tokens":0}"#),
    ])
}

fn text_part(role: &str, text: &str) -> String {
    let kind = if role == "user" {
        "\"input_text\""
    } else {
        "\"output_text\""
    };
    object(&[("type", kind), ("text", &quoted(text))])
}

/// The texts of a message item.
fn said_in(item: &Raw) -> String {
    let Some(content) = item.field("content") else {
        return String::new();
    };
    if let Some(text) = content.as_text() {
        return text.decode().into_owned();
    }
    let texts: Vec<String> = content
        .array()
        .filter_map(|part| part.string_field("text"))
        .collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use throughline_transcript::message::Role;

    use super::*;
    use crate::read::read;
    use crate::source::SourceText;

    const ID: &str = "5b0c6e52-77aa-4d0f-9a53-2f4f4a1e7c11";

    fn file(agent: Agent) -> SessionFile<'static> {
        SessionFile {
            agent,
            id: ID,
            cwd: "/srv/quay wall",
            at_ms: 1_796_000_000_000,
            begins_with_memory: true,
        }
    }

    #[track_caller]
    fn check(agent: Agent, body: &str, format: &str) {
        let text = file(agent).write(&Raw::parse(body).unwrap_or_else(|error| panic!("{error}")));
        let source = read(&SourceText::from_text(text.as_str()), None)
            .unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(source.format, format);
        assert!(source.skipped.is_empty(), "{:?}", source.skipped);
        let conversation = &source.conversations[0];
        assert_eq!(conversation.id, ID);
        assert_eq!(conversation.cwd.as_deref(), Some("/srv/quay wall"));
        let read: Vec<(Role, String)> = conversation
            .messages
            .iter()
            .map(|message| {
                let texts: Vec<String> = message
                    .texts()
                    .map(|text| text.decode().into_owned())
                    .collect();
                (message.role, texts.concat())
            })
            .collect();
        assert_eq!(
            read,
            [
                (
                    Role::User,
                    "<session_memory>Tide table.</session_memory>".to_owned()
                ),
                (Role::Assistant, "Shall I mend \"gate 4\"?".to_owned()),
                (Role::User, "Yes.".to_owned()),
            ],
            "{text}"
        );
    }

    #[test]
    fn a_written_file_is_read_again() {
        check(
            Agent::ClaudeCode,
            r#"{"model":"claude-opus-4-6","system":"Other.","messages":[
                {"role":"user","content":"<session_memory>Tide table.</session_memory>"},
                {"role":"assistant","content":"Shall I mend \"gate 4\"?"},
                {"role":"user","content":[{"type":"text","text":"Yes."}]}]}"#,
            "claude-code",
        );
        check(
            Agent::Codex,
            r#"{"model":"gpt-5","instructions":"Other.","input":[
                {"type":"message","role":"user","content":"<session_memory>Tide table.</session_memory>"},
                {"type":"message","role":"developer","content":"Left out."},
                {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Shall I mend \"gate 4\"?"}]},
                {"role":"user","content":[{"type":"input_text","text":"Yes."}]}]}"#,
            "codex",
        );
    }

    #[test]
    fn a_file_lies_where_its_program_looks() {
        assert_eq!(
            file(Agent::ClaudeCode).path(),
            format!("projects/-srv-quay-wall/{ID}.jsonl")
        );
        assert_eq!(
            file(Agent::Codex).path(),
            format!("sessions/2026/11/30/rollout-2026-11-30T00-53-20-{ID}.jsonl")
        );
    }
}
