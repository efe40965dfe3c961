//! LangChain messages: `messages_to_dict` (`{type, data}`), `dumpd` (`{lc, id, kwargs}`) and plain field dumps
//! (`{type, content}`), as a list, in the `messages` of an object, or one a line.
//!
//! Anthropic's `tool_use` blocks occur both in the content and in `tool_calls`; they are one call. `remove` entries
//! remove messages, as they do in LangGraph's state.

use std::collections::{HashMap, HashSet};

use bytestring::ByteString;
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::message::{Author, Block, Content, Message, Role, ToolResult};
use throughline_transcript::usage::Usage;

use crate::document::{Document, has_any};
use crate::formats::chat_message::{self, string};
use crate::formats::rows::rows;
use crate::formats::{Format, Probe};
use crate::source::add_skipped;
use crate::source::{ReadError, SkippedPart, Source, SourceText};

pub(crate) struct LangChain;

/// What `RemoveMessage` calls "all messages before".
const REMOVE_ALL: &str = "__remove_all__";

impl Format for LangChain {
    fn name(&self) -> &'static str {
        "langchain"
    }

    fn about(&self) -> &'static str {
        "LangChain message dumps (messages_to_dict, dumpd)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        [
            &[] as &[&str],
            &["messages"],
            &["values", "messages"],
            &["kwargs", "messages"],
        ]
        .into_iter()
        .map(|place| {
            let at = |key| [place, &[key]].concat();
            let is_kind = glance.any(&at("type"), |value| message_kind(value).is_some());
            if glance.has_path(&at("lc")) && glance.has_path(&at("kwargs")) {
                96
            } else if is_kind && glance.has_path(&[place, &["data", "content"]].concat()) {
                95
            } else if is_kind
                && glance.has_path(&at("content"))
                && glance.has_path(&at("additional_kwargs"))
            {
                90
            } else {
                0
            }
        })
        .max()
        .unwrap_or(0)
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let (entries, mut skipped) = entries(source);
        let mut state = State::default();
        for (line, entry) in &entries {
            if !state.add(entry, *line) {
                add_skipped(&mut skipped, *line, entry.len(), "not a LangChain message");
            }
        }
        let messages = chat_message::without_empty(state.messages.into_iter().flatten().collect());
        if messages.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "no message with `type` and `data`, or `lc` and `kwargs`, in it".to_owned(),
            });
        }
        let conversation = Conversation {
            model: state.model,
            messages,
            ..Conversation::default()
        };
        Ok(Source {
            format: self.name(),
            conversations: vec![conversation],
            skipped,
        })
    }
}

/// Keys that entries of the list have and their parts have not: that of each layout.
const KEYS: &[&str] = &["data", "kwargs", "content"];

/// The messages of a file, in any of the layouts.
fn entries(source: &SourceText) -> (Vec<(usize, Raw)>, Vec<SkippedPart>) {
    if source.text.trim_start().starts_with('{')
        && let Ok(whole) = Document::read(source, &[], "", has_any(KEYS))
    {
        let inner = |outer: &str| whole.field(outer)?.field("messages");
        let list = whole.array("messages").or_else(|| {
            let list = inner("values").or_else(|| inner("kwargs"))?;
            (list.kind() == Kind::Array).then(|| list.array().collect())
        });
        if let Some(list) = list {
            return (
                list.into_iter().map(|raw| (0, raw)).collect(),
                whole.skipped,
            );
        }
    }
    let found = rows(source, KEYS);
    (found.rows, found.skipped)
}

#[derive(Default)]
struct State {
    /// The messages; `None` where one was removed.
    messages: Vec<Option<Message>>,
    /// Where the messages with an id are.
    places: HashMap<ByteString, usize>,
    model: Option<String>,
}

impl State {
    /// Adds one entry. False if it is no message.
    fn add(&mut self, entry: &Raw, line: usize) -> bool {
        let Some((kind, data)) = kind_and_data(entry) else {
            return false;
        };
        if kind == "remove" {
            let id = data.field("id").as_ref().map(string).unwrap_or_default();
            if id == REMOVE_ALL {
                self.messages.clear();
                self.places.clear();
            } else if let Some(place) = self.places.remove(&id) {
                self.messages[place] = None;
            }
            return true;
        }
        let mut message = read_message(&kind, &data);
        message.raw = Some(entry.clone());
        message.position.line = line;
        if message.role == Role::Assistant
            && let Some(metadata) = data.field("response_metadata")
        {
            let [name, model] = metadata.fields(["model_name", "model"]);
            if let Some(model) = name.or(model).and_then(|raw| raw.as_text()) {
                self.model = Some(model.decode().into_owned());
            }
        }
        if let Some(id) = &message.id {
            self.places.insert(id.clone(), self.messages.len());
        }
        self.messages.push(Some(message));
        true
    }
}

/// One message of LangChain, in any of its layouts.
pub(super) fn message(entry: &Raw) -> Option<Message> {
    let (kind, data) = kind_and_data(entry)?;
    let mut message = read_message(&kind, &data);
    message.raw = Some(entry.clone());
    (kind != "remove").then_some(message)
}

/// What kind of message an entry is, and the object that holds its fields.
fn kind_and_data(entry: &Raw) -> Option<(String, Raw)> {
    let [lc, id, kwargs, kind, data, content] =
        entry.fields(["lc", "id", "kwargs", "type", "data", "content"]);
    if lc.is_some()
        && let Some(kwargs) = kwargs
    {
        let class = id?.array().last()?.as_text()?;
        let kind = message_kind(&class.decode())?;
        return Some((kind.to_owned(), kwargs));
    }
    let kind = message_kind(&kind?.as_text()?.decode())?.to_owned();
    match data.filter(|data| data.kind() == Kind::Object) {
        Some(data) => Some((kind, data)),
        None if content.is_some() || kind == "remove" => Some((kind, entry.clone())),
        None => None,
    }
}

/// The kind of message that a `type` or the name of a class means.
fn message_kind(name: &str) -> Option<&'static str> {
    Some(match name.strip_suffix("Chunk").unwrap_or(name) {
        "human" | "HumanMessage" => "human",
        "ai" | "AIMessage" => "ai",
        "system" | "SystemMessage" => "system",
        "tool" | "ToolMessage" => "tool",
        "function" | "FunctionMessage" => "function",
        "chat" | "ChatMessage" => "chat",
        "remove" | "RemoveMessage" => "remove",
        _ => return None,
    })
}

fn read_message(kind: &str, data: &Raw) -> Message {
    let [
        content,
        id,
        additional,
        tool_calls,
        invalid_calls,
        usage_metadata,
        call_id,
        status,
        role,
    ] = data.fields([
        "content",
        "id",
        "additional_kwargs",
        "tool_calls",
        "invalid_tool_calls",
        "usage_metadata",
        "tool_call_id",
        "status",
        "role",
    ]);
    let role = match kind {
        "ai" => Role::Assistant,
        "system" => Role::System,
        "tool" | "function" => Role::Tool,
        "chat" => role
            .and_then(|raw| chat_message::role(&string(&raw)))
            .unwrap_or(Role::User),
        _ => Role::User,
    };
    let mut blocks = content
        .as_ref()
        .map(chat_message::content_blocks)
        .unwrap_or_default();
    if kind == "tool" || kind == "function" {
        let is_error = status.map(|raw| string(&raw) == "error");
        blocks = vec![Block::new(Content::ToolResult(ToolResult {
            call_id: call_id.as_ref().map(string).unwrap_or_default(),
            content: blocks,
            is_error,
            is_server_side: false,
        }))];
    }
    if role == Role::Assistant {
        let lists = [tool_calls, invalid_calls];
        let has_calls = lists
            .iter()
            .flatten()
            .any(|list| list.array().next().is_some());
        for list in lists.iter().flatten() {
            chat_message::add_tool_calls(&mut blocks, list.array());
        }
        // The provider's own form, of use only where LangChain did not translate it.
        let own = additional.as_ref().filter(|_| !has_calls);
        if let Some(list) = own.and_then(|raw| raw.field("tool_calls")) {
            chat_message::add_tool_calls(&mut blocks, list.array());
        }
        drop_repeated_calls(&mut blocks);
    }
    let mut message = Message::new(role, blocks);
    message.id = id.as_ref().map(string).filter(|id| !id.is_empty());
    let source = additional.and_then(|raw| raw.string_field("lc_source"));
    if source.as_deref() == Some("summarization") {
        message.author = Author::Compaction;
    }
    message.usage = usage_metadata.and_then(|raw| usage(&raw));
    message
}

fn drop_repeated_calls(blocks: &mut Vec<Block>) {
    let mut seen = HashSet::new();
    blocks.retain(|block| match &block.content {
        Content::ToolCall(call) => call.id.is_empty() || seen.insert(call.id.clone()),
        _ => true,
    });
}

/// LangChain's `input_tokens` has the cached ones in it.
fn usage(raw: &Raw) -> Option<Usage> {
    let [input, output, details] =
        raw.fields(["input_tokens", "output_tokens", "input_token_details"]);
    let [read, write] = details
        .map(|details| details.fields(["cache_read", "cache_creation"]))
        .unwrap_or_default();
    let count = |raw: Option<Raw>| raw.and_then(|raw| raw.as_u64()).unwrap_or(0);
    let (cache_read, cache_write) = (count(read), count(write));
    Some(Usage {
        uncached: input?
            .as_u64()?
            .saturating_sub(cache_read)
            .saturating_sub(cache_write),
        cache_write,
        cache_write_long: 0,
        cache_read,
        output: output?.as_u64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::chat_message::outline;

    fn check(text: &str, expected: &str) -> Conversation {
        let source = SourceText {
            text: text.into(),
            skipped: Vec::new(),
        };
        let found = LangChain.read(&source).unwrap().conversations.remove(0);
        assert_eq!(outline(&found.messages), expected);
        found
    }

    #[test]
    fn both_shapes_are_read() {
        let expected = "System: \"Be kind\"\nUser: \"Hi\"\nAssistant: \"Hello\"\n";
        check(
            r#"[{"type":"system","data":{"content":"Be kind"}},{"type":"human","data":{"content":"Hi"}},{"type":"ai","data":{"content":"Hello","tool_calls":[]}}]"#,
            expected,
        );
        check(
            r#"{"messages":[{"lc":1,"type":"constructor","id":["langchain","schema","messages","SystemMessage"],"kwargs":{"content":"Be kind"}},
            {"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"Hi"}},
            {"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessageChunk"],"kwargs":{"content":"Hello"}}]}"#,
            expected,
        );
        check(
            "{\"type\":\"system\",\"content\":\"Be kind\"}\n{\"type\":\"human\",\"content\":\"Hi\"}\n{\"type\":\"ai\",\"content\":\"Hello\"}\n",
            expected,
        );
    }

    #[test]
    fn a_call_in_content_and_in_tool_calls_is_one() {
        check(
            r#"[{"type":"ai","data":{"content":["I look",{"type":"tool_use","id":"1","name":"f","input":{"a":1}}],"tool_calls":[{"name":"f","args":{"a":1},"id":"1","type":"tool_call"},{"name":"g","args":{},"id":"2"}],"invalid_tool_calls":[{"name":"h","args":"{torn","id":"3","error":"x"}]}},
            {"type":"tool","data":{"content":"bad","tool_call_id":"1","status":"error"}}]"#,
            "Assistant: \"I look\" call[1 f {\"a\":1}] call[2 g {}] call[3 h \"{torn\"]\nTool: result[1! \"bad\"]\n",
        );
    }

    #[test]
    fn calls_that_only_the_provider_form_has_are_found() {
        check(
            r#"[{"type":"ai","data":{"content":"","additional_kwargs":{"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}}}]"#,
            "Assistant: call[1 f {}]\n",
        );
    }

    #[test]
    fn removed_messages_are_gone_and_summaries_marked() {
        check(
            r#"[{"type":"human","data":{"content":"old","id":"a"}},{"type":"human","data":{"content":"older","id":"b"}},{"type":"remove","data":{"id":"a"}},
            {"type":"human","data":{"content":"In short","id":"s","additional_kwargs":{"lc_source":"summarization"}}}]"#,
            "User: \"older\"\nUser(compaction): \"In short\"\n",
        );
        check(
            r#"[{"type":"human","data":{"content":"old","id":"a"}},{"type":"remove","data":{"id":"__remove_all__"}},{"type":"human","data":{"content":"new"}}]"#,
            "User: \"new\"\n",
        );
    }

    #[test]
    fn usage_takes_the_cached_tokens_out_of_the_input() {
        let found = check(
            r#"[{"type":"ai","data":{"content":"x","response_metadata":{"model_name":"m"},"usage_metadata":{"input_tokens":100,"output_tokens":7,"total_tokens":107,"input_token_details":{"cache_read":60,"cache_creation":30}}}}]"#,
            "Assistant: \"x\"\n",
        );
        let usage = found.messages[0].usage.unwrap();
        assert_eq!(
            (
                usage.uncached,
                usage.cache_read,
                usage.cache_write,
                usage.output
            ),
            (10, 60, 30, 7)
        );
        assert_eq!(found.model.as_deref(), Some("m"));
    }

    #[test]
    fn non_messages_are_reported() {
        let source = SourceText {
            text: "{\"type\":\"human\",\"content\":\"Hi\"}\n{\"type\":\"robot\"}\n".into(),
            skipped: Vec::new(),
        };
        assert_eq!(LangChain.read(&source).unwrap().skipped[0].line, 2);
    }
}
