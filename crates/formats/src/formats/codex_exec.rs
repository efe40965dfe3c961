//! What `codex exec --json` prints: JSONL with the items of a thread as they begin and end.
//!
//! An item is a call and its result in one, or something that the model says. The prompt is not printed, so that the
//! conversation has the model's side only.

use bytestring::ByteString;
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::Raw;
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{
    Author, Block, Content, Message, Role, ToolCall, ToolInput, ToolResult,
};
use throughline_transcript::usage::Usage;

use crate::formats::place::Place;
use crate::formats::{Format, Probe, anthropic_content};
use crate::lines::Lines;
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &["arguments", "structured_content"];
/// What stands for the result of a command that the person refused.
const REFUSED: &str = "exec command rejected by user";

/// Output of `codex exec --json`.
pub(super) struct CodexExec;

impl Format for CodexExec {
    fn name(&self) -> &'static str {
        "codex-exec"
    }

    fn about(&self) -> &'static str {
        "output of codex exec --json (JSONL)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        probe.best_record(|record| {
            let has = |key| record.field(key).is_some();
            match record.string_field("type").as_deref() {
                Some("thread.started") if has("thread_id") => 96,
                Some("item.started" | "item.updated" | "item.completed") if has("item") => 90,
                Some("turn.completed") if has("usage") => 80,
                _ => 0,
            }
        })
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let mut thread = Thread::default();
        let mut lines = Lines::new(source, OPAQUE);
        lines.read_records("not an event of codex exec", |record, line| {
            thread.add(record, line)
        });
        if !thread.is_found {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no event of a thread".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations: vec![thread.conversation],
            skipped: lines.into_skipped(),
        })
    }
}

#[derive(Default)]
struct Thread {
    conversation: Conversation,
    is_found: bool,
    /// The todo list as it was written last.
    todo: String,
}

impl Thread {
    /// Adds an event; `false` if it is none.
    fn add(&mut self, event: View<'_>, line: usize) -> bool {
        let place = Place {
            line,
            at_ms: None,
            id: None,
        };
        let Some(kind) = event.string_field("type") else {
            return false;
        };
        match kind.as_ref() {
            "thread.started" => {
                let id = event.string_field("thread_id").unwrap_or_default();
                self.conversation.id = id.into_owned();
            }
            "turn.started" => {}
            "turn.completed" => {
                let last = self.conversation.messages.iter_mut().rev();
                let answer = last
                    .take_while(|message| message.role != Role::User)
                    .find(|message| message.role == Role::Assistant);
                if let Some(answer) = answer {
                    answer.usage = event.field("usage").and_then(usage);
                }
            }
            "turn.failed" | "error" => {
                let said = event.field("error").unwrap_or(event).field("message");
                self.note(said, &place);
            }
            "item.started" | "item.updated" | "item.completed" => {
                if let Some(item) = event.field("item") {
                    self.add_item(item, kind == "item.completed", &place);
                }
            }
            kind => return kind.starts_with("item.") || kind.starts_with("turn."),
        }
        self.is_found = true;
        true
    }

    fn note(&mut self, said: Option<View<'_>>, place: &Place) {
        if let Some(text) = said.and_then(View::as_text).filter(|text| !text.is_blank()) {
            let mut message = Message::new(Role::User, vec![Block::text(text)]);
            message.author = Author::Client;
            self.conversation.messages.push(place.put(message));
        }
    }

    fn say(&mut self, content: Content, item: View<'_>, place: &Place) {
        let block = Block {
            content,
            raw: Some(item.raw()),
        };
        let message = Message::new(Role::Assistant, vec![block]);
        self.conversation.messages.push(place.put(message));
    }

    fn add_item(&mut self, item: View<'_>, is_over: bool, place: &Place) {
        let kind = item
            .string_field("type")
            .or_else(|| item.string_field("item_type"))
            .unwrap_or_default();
        if kind == "todo_list" {
            return self.add_todo(item, place);
        }
        if !is_over {
            return;
        }
        let text = || item.field("text").and_then(View::as_text);
        match kind.as_ref() {
            "agent_message" | "assistant_message" | "plan" => {
                if let Some(text) = text() {
                    self.say(Content::Text(text), item, place);
                }
            }
            "reasoning" => {
                if let Some(text) = text() {
                    self.say(Content::Thinking(text), item, place);
                }
            }
            "error" => self.note(item.field("message"), place),
            "command_execution" => {
                let output = item.field("aggregated_output").and_then(View::as_text);
                let has_failed = item
                    .field("exit_code")
                    .and_then(View::as_f64)
                    .is_some_and(|code| code != 0.0);
                let is_refused = item.string_field("status").as_deref() == Some("declined");
                let content = match output.filter(|output| output.encoded_len() > 0) {
                    Some(output) => Some(Block::text(output)),
                    None => is_refused.then(|| Block::text(REFUSED)),
                };
                let input = part(item, "command");
                self.call(item, "command_execution", input, content, has_failed, place);
            }
            "file_change" => {
                let input = part(item, "changes");
                self.call(item, "file_change", input, None, false, place);
            }
            "mcp_tool_call" => {
                let name = |key| item.string_field(key).unwrap_or_default();
                let tool = format!("mcp__{}__{}", name("server"), name("tool"));
                let error = item
                    .field("error")
                    .and_then(|error| error.field("message")?.as_text());
                let results = item.field("result").and_then(|result| {
                    let parts = result.field("content")?.elements();
                    let mut texts = parts.filter_map(|part| part.field("text")?.as_text());
                    texts.next()
                });
                let has_failed = error.is_some();
                let input = item.field("arguments").map(View::raw);
                let content = error.or(results).map(Block::text);
                self.call(item, &tool, input, content, has_failed, place);
            }
            "web_search" => {
                let call = ToolCall {
                    id: id(item),
                    name: "web_search".into(),
                    input: input(part(item, "query")),
                    is_server_side: true,
                };
                self.say(Content::ToolCall(call), item, place);
            }
            kind => self.say(Content::Other(kind.into()), item, place),
        }
    }

    /// The list is printed when it is made, at every change, and at the end of the turn.
    fn add_todo(&mut self, item: View<'_>, place: &Place) {
        let Some(items) = item.field("items") else {
            return;
        };
        if self.todo != items.as_str() {
            items.as_str().clone_into(&mut self.todo);
            self.call(item, "todo_list", part(item, "items"), None, false, place);
        }
    }

    fn call(
        &mut self,
        item: View<'_>,
        name: &str,
        fields: Option<Raw>,
        content: Option<Block>,
        has_failed: bool,
        place: &Place,
    ) {
        // Items can have one id for several calls, and two turns the same ids.
        let call_id = ByteString::from(format!("{}_{}", id(item), place.line));
        let status = item.string_field("status");
        let has_failed = has_failed || matches!(status.as_deref(), Some("failed" | "declined"));
        let call = ToolCall {
            id: call_id.clone(),
            name: name.into(),
            input: input(fields),
            is_server_side: false,
        };
        let message = Message::new(Role::Assistant, vec![Block::new(Content::ToolCall(call))]);
        self.conversation.messages.push(place.put(message));
        let result = ToolResult {
            call_id,
            content: content.into_iter().collect(),
            is_error: Some(has_failed),
            is_server_side: false,
        };
        let message = Message::new(Role::Tool, vec![Block::new(Content::ToolResult(result))]);
        self.conversation.messages.push(place.put(message));
    }
}

fn id(item: View<'_>) -> ByteString {
    item.field("id")
        .and_then(View::to_bytestring)
        .unwrap_or_default()
}

/// An object with nothing but the field `key` of the item.
fn part(item: View<'_>, key: &str) -> Option<Raw> {
    let value = item.field(key)?;
    Raw::parse(format!("{{\"{key}\":{}}}", value.as_str())).ok()
}

fn input(fields: Option<Raw>) -> ToolInput {
    fields.map_or_else(|| ToolInput::Text("".into()), ToolInput::Json)
}

/// Input counts include what was read from the cache.
fn usage(value: View<'_>) -> Option<Usage> {
    let tokens = |key| anthropic_content::tokens(value, key);
    let cached = tokens("cached_input_tokens");
    let usage = Usage {
        uncached: tokens("input_tokens").saturating_sub(cached),
        cache_write: 0,
        cache_write_long: 0,
        cache_read: cached,
        output: tokens("output_tokens"),
    };
    (usage != Usage::default()).then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::story;

    #[track_caller]
    fn check(lines: &[&str], expected: &[&str]) {
        let source = SourceText::from_text(lines.join("\n"));
        let found = crate::read::read(&source, None).unwrap();
        assert_eq!((found.format, found.skipped.len()), ("codex-exec", 0));
        assert_eq!(story(&found.conversations[0]), expected);
    }

    const START: &str = r#"{"type":"thread.started","thread_id":"t1"}"#;

    fn done(item: &str) -> String {
        format!(r#"{{"type":"item.completed","item":{{"id":"i1",{item}}}}}"#)
    }

    #[test]
    fn items_are_calls_with_their_results() {
        check(
            &[
                START,
                r#"{"type":"turn.started"}"#,
                &done(r#""type":"reasoning","text":"hm""#),
                r#"{"type":"item.started","item":{"id":"i2","type":"command_execution","command":"ls","aggregated_output":"","exit_code":null,"status":"in_progress"}}"#,
                &done(
                    r#""type":"command_execution","command":"ls","aggregated_output":"pier.c\n","exit_code":0,"status":"completed""#,
                ),
                &done(
                    r#""type":"command_execution","command":"rm x","aggregated_output":"","exit_code":null,"status":"declined""#,
                ),
                &done(
                    r#""type":"file_change","changes":[{"path":"pier.c","kind":"update"}],"status":"completed""#,
                ),
                &done(
                    r#""type":"mcp_tool_call","server":"tide","tool":"get","arguments":{"a":1},"result":{"content":[{"type":"text","text":"high"}]},"error":null,"status":"completed""#,
                ),
                &done(r#""type":"agent_message","text":"Done.""#),
                r#"{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":60,"output_tokens":9}}"#,
            ],
            &[
                "model: (hm)",
                "model: call i1_5 command_execution",
                "tool: result i1_5 pier.c\n",
                "model: call i1_6 command_execution",
                "tool: failed i1_6 exec command rejected by user",
                "model: call i1_7 file_change",
                "tool: result i1_7 ",
                "model: call i1_8 mcp__tide__get",
                "tool: result i1_8 high",
                "model: Done.",
            ],
        );
    }

    #[test]
    fn a_todo_list_counts_when_it_changes() {
        let todo = |kind: &str, done: bool| {
            format!(
                r#"{{"type":"item.{kind}","item":{{"id":"i1","type":"todo_list","items":[{{"text":"Dig","completed":{done}}}]}}}}"#
            )
        };
        check(
            &[
                START,
                &todo("started", false),
                &todo("updated", true),
                &todo("completed", true),
                r#"{"type":"turn.failed","error":{"message":"stream lost"}}"#,
            ],
            &[
                "model: call i1_2 todo_list",
                "tool: result i1_2 ",
                "model: call i1_3 todo_list",
                "tool: result i1_3 ",
                "client: stream lost",
            ],
        );
    }

    #[test]
    fn what_is_printed_around_the_events_is_passed_over() {
        let text = format!(
            "Reading prompt from stdin...\n{START}\n{}\n",
            done(r#""item_type":"assistant_message","text":"Hello""#)
        );
        let found = crate::read::read(&SourceText::from_text(text), None).unwrap();
        assert_eq!(found.format, "codex-exec");
        assert_eq!(story(&found.conversations[0]), ["model: Hello"]);
        assert_eq!(found.conversations[0].id, "t1");
    }
}
