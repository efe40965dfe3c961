//! ShareGPT and its relatives: rows of `{conversations: [{from, value}]}`, as they are used for fine-tuning.
//!
//! The variants differ in the names of the keys and speakers, in pairs instead of single messages
//! (`{user, assistant}`), and in how tools are written: speakers `function_call` and `observation`, or `<tool_call>`
//! and `<tool_response>` tags in the text. Calls have no ids there; they get `call-1`, `call-2`, ...

use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::{Kind, Raw, Text};
use throughline_transcript::message::{
    Block, Content, Message, Role, ToolCall, ToolInput, ToolResult,
};

use crate::formats::chat_message::{self, string};
use crate::formats::rows::rows;
use crate::formats::{Format, Probe};
use crate::source::{ReadError, Source, SourceText};

pub(crate) struct ShareGpt;

/// Where rows have their messages.
const LISTS: [&str; 3] = ["conversations", "conversation", "items"];

/// Keys of a question and its answer, where one entry has both.
const PAIRS: [(&str, &str); 4] = [
    ("user", "assistant"),
    ("human", "assistant"),
    ("human", "gpt"),
    ("input", "output"),
];

impl Format for ShareGpt {
    fn name(&self) -> &'static str {
        "sharegpt"
    }

    fn about(&self) -> &'static str {
        "ShareGPT data sets (JSON or JSONL)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let has = |list: &str, key: &str| glance.has_path(&[list, key]);
        let has_turns = |list: &str| has(list, "from") && has(list, "value");
        let has_pairs = |list: &str| {
            PAIRS
                .iter()
                .any(|(question, answer)| has(list, question) && has(list, answer))
        };
        if LISTS.into_iter().any(has_turns) {
            95
        } else if has("messages", "from") && has("messages", "value") {
            92
        } else if has("conversations", "role") && has("conversations", "content") {
            88
        } else if LISTS.into_iter().take(2).any(has_pairs) {
            85
        } else if glance.has("from") && glance.has("value") {
            80
        } else {
            0
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let keys = &[LISTS[0], LISTS[1], LISTS[2], "messages", "from"];
        let found = rows(source, keys);
        // A file that is one conversation: its rows are the messages.
        let is_alone = found
            .rows
            .iter()
            .all(|(_, row)| row.field("from").is_some());
        if is_alone {
            let mut alone = Conversation::default();
            read_entries(found.rows.iter().map(|(_, row)| row.clone()), 0, &mut alone);
            if !alone.messages.is_empty() {
                return Ok(Source {
                    format: self.name(),
                    conversations: vec![alone],
                    skipped: found.skipped,
                });
            }
        }
        found.into_source(self.name(), "list of messages", conversation)
    }
}

fn conversation(row: &Raw, line: usize) -> Option<Conversation> {
    let mut found = Conversation::default();
    if row.kind() == Kind::Array {
        read_entries(row.array(), line, &mut found);
        return (!found.messages.is_empty()).then_some(found);
    }
    let [
        conversations,
        conversation,
        items,
        messages,
        id,
        system,
        tools,
    ] = row.fields([
        LISTS[0], LISTS[1], LISTS[2], "messages", "id", "system", "tools",
    ]);
    let list = [conversations, conversation, items, messages]
        .into_iter()
        .flatten()
        .find(|list| list.kind() == Kind::Array)?;
    found.id = id.as_ref().map(string).unwrap_or_default().to_string();
    found
        .system
        .extend(system.and_then(|system| chat_message::text_block(&system)));
    found.tools = tools.and_then(|tools| {
        let tools = match tools.as_text() {
            Some(text) => Raw::parse(text.decode().into_owned()).ok()?,
            None => tools,
        };
        (tools.kind() == Kind::Array).then_some(tools)
    });
    read_entries(list.array(), line, &mut found);
    (!found.messages.is_empty()).then_some(found)
}

fn read_entries(entries: impl Iterator<Item = Raw>, line: usize, found: &mut Conversation) {
    for entry in entries {
        read_entry(&entry, &mut found.messages);
    }
    found.messages = chat_message::without_empty(std::mem::take(&mut found.messages));
    for message in &mut found.messages {
        message.position.line = line;
    }
    chat_message::pair_by_order(&mut found.messages, "call-");
}

fn read_entry(entry: &Raw, messages: &mut Vec<Message>) {
    let [from, value] = entry.fields(["from", "value"]);
    if let (Some(from), Some(value)) = (from, value) {
        let speaker = string(&from).to_ascii_lowercase();
        let mut message = said(&speaker, &value);
        message.raw = Some(entry.clone());
        messages.push(message);
        return;
    }
    if let Some(message) = chat_message::message(entry) {
        messages.push(message);
        return;
    }
    let pair = PAIRS
        .into_iter()
        .map(|(question, answer)| entry.fields([question, answer]))
        .find(|pair| pair.iter().all(Option::is_some));
    if let Some([Some(question), Some(answer)]) = pair {
        let system = entry.field("system");
        let system = system.and_then(|system| chat_message::text_block(&system));
        messages.extend(system.map(|block| Message::new(Role::System, vec![block])));
        messages.push(Message::new(
            Role::User,
            chat_message::content_blocks(&question),
        ));
        messages.push(said("gpt", &answer));
    }
}

fn said(speaker: &str, value: &Raw) -> Message {
    let blocks = chat_message::content_blocks(value);
    match speaker {
        "system" => Message::new(Role::System, blocks),
        "gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "claude" | "model" | "ai" | "bot" => {
            Message::new(
                Role::Assistant,
                blocks.into_iter().flat_map(untag).collect(),
            )
        }
        "function_call" | "tool_call" => {
            let blocks = blocks.into_iter().flat_map(calls).collect();
            Message::new(Role::Assistant, blocks)
        }
        "observation" | "tool" | "function_response" | "tool_response" | "function" => {
            Message::new(Role::Tool, results(blocks))
        }
        _ => Message::new(Role::User, blocks),
    }
}

/// The calls of a text that is nothing but calls: one JSON object or a list of them.
fn calls(block: Block) -> Vec<Block> {
    let Content::Text(text) = &block.content else {
        return vec![block];
    };
    match Raw::parse(text.decode().into_owned()) {
        Ok(list) if list.kind() == Kind::Array => list
            .array()
            .filter_map(|raw| chat_message::tool_call(&raw))
            .collect(),
        Ok(raw) if raw.kind() == Kind::Object => {
            chat_message::tool_call(&raw).into_iter().collect()
        }
        _ => vec![Block {
            content: Content::ToolCall(ToolCall {
                id: "".into(),
                name: "".into(),
                input: ToolInput::Text(text.clone()),
                is_server_side: false,
            }),
            raw: block.raw.clone(),
        }],
    }
}

/// Takes `<think>` and `<tool_call>` elements out of an answer.
fn untag(block: Block) -> Vec<Block> {
    let Content::Text(text) = &block.content else {
        return vec![block];
    };
    let decoded = text.decode();
    if !decoded.contains("<think>") && !decoded.contains("<tool_call>") {
        return vec![block];
    }
    let mut blocks = Vec::new();
    let mut elements = ["think", "tool_call"].map(|tag| Element::find(&decoded, tag, 0));
    let mut at = 0;
    // The next element of each kind is remembered until it is passed, so that the text is searched once for each kind.
    while let Some(element) = elements
        .iter()
        .flatten()
        .min_by_key(|element| element.start)
    {
        let Element { tag, start, end } = *element;
        push_text(&mut blocks, &decoded[at..start]);
        let inside = decoded[start + tag.len() + 2..end - tag.len() - 3].trim();
        match tag {
            "think" => blocks.push(Block::new(Content::Thinking(Text::plain(inside)))),
            _ => blocks.extend(calls(Block::text(inside))),
        }
        at = end;
        for next in &mut elements {
            if let Some(passed) = next.as_ref().filter(|next| next.start < at) {
                *next = Element::find(&decoded, passed.tag, at);
            }
        }
    }
    push_text(&mut blocks, &decoded[at..]);
    blocks
}

/// A closed element, `<tag>...</tag>`, by its place in the text.
struct Element {
    tag: &'static str,
    start: usize,
    end: usize,
}

impl Element {
    fn find(text: &str, tag: &'static str, from: usize) -> Option<Self> {
        let start = from + text[from..].find(&format!("<{tag}>"))?;
        let inside = start + tag.len() + 2;
        let end = inside + text[inside..].find(&format!("</{tag}>"))? + tag.len() + 3;
        Some(Self { tag, start, end })
    }
}

fn push_text(blocks: &mut Vec<Block>, text: &str) {
    if !text.trim().is_empty() {
        blocks.push(Block::text(text.trim()));
    }
}

/// One result for each `<tool_response>` element, or one for the whole.
fn results(blocks: Vec<Block>) -> Vec<Block> {
    let whole = |content: Vec<Block>| {
        Block::new(Content::ToolResult(ToolResult {
            call_id: "".into(),
            content,
            is_error: None,
            is_server_side: false,
        }))
    };
    if let [block] = blocks.as_slice()
        && let Content::Text(text) = &block.content
    {
        let decoded = text.decode();
        let parts: Vec<Block> = decoded
            .split("<tool_response>")
            .skip(1)
            .filter_map(|part| part.split_once("</tool_response>"))
            .map(|(inside, _)| whole(vec![Block::text(inside.trim())]))
            .collect();
        if !parts.is_empty() {
            return parts;
        }
    }
    vec![whole(blocks)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::chat_message::outline;

    fn check(text: &str, expected: &str) -> Source {
        let source = SourceText {
            text: text.into(),
            skipped: Vec::new(),
        };
        let found = ShareGpt.read(&source).unwrap();
        assert_eq!(outline(&found.conversations[0].messages), expected);
        found
    }

    #[test]
    fn every_variant_of_keys_is_read() {
        let expected = "User: \"Hi\"\nAssistant: \"Hello\"\n";
        check(
            r#"[{"id":"x","conversations":[{"from":"human","value":"Hi"},{"from":"gpt","value":"Hello"}]}]"#,
            expected,
        );
        check(
            "{\"conversations\":[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":\"Hello\"}]}\n{\"conversations\":[{\"role\":\"user\",\"content\":\"b\"}]}",
            expected,
        );
        check(
            r#"[{"conversation":[{"human":"Hi","assistant":"Hello"}]}]"#,
            expected,
        );
        check(
            r#"[{"conversation":[{"input":"Hi","output":"Hello"}]}]"#,
            expected,
        );
        check(
            r#"[[{"from":"human","value":"Hi"},{"from":"gpt","value":"Hello"}]]"#,
            expected,
        );
        check(
            r#"[{"from":"human","value":"Hi"},{"from":"gpt","value":"Hello"}]"#,
            expected,
        );
    }

    #[test]
    fn system_and_tools_stand_apart() {
        let found = check(
            r#"{"conversations":[{"from":"human","value":"Hi"}],"system":"Be brief","tools":"[{\"name\":\"f\"}]"}"#,
            "User: \"Hi\"\n",
        );
        assert_eq!(
            found.conversations[0].tools.as_ref().unwrap().as_str(),
            "[{\"name\":\"f\"}]"
        );
        assert_eq!(found.conversations[0].system.len(), 1);
    }

    #[test]
    fn calls_and_observations_are_paired_by_order() {
        check(
            r#"{"conversations":[{"from":"human","value":"Rain?"},{"from":"function_call","value":"{\"name\":\"w\",\"arguments\":{\"c\":1}}"},{"from":"observation","value":"dry"},{"from":"gpt","value":"No"}]}"#,
            "User: \"Rain?\"\nAssistant: call[call-1 w {\"c\":1}]\nTool: result[call-1 \"dry\"]\nAssistant: \"No\"\n",
        );
        check(
            r#"{"conversations":[{"from":"gpt","value":"<think>\nsky\n</think>\nI look.\n<tool_call>\n{\"name\":\"w\",\"arguments\":{}}\n</tool_call>"},{"from":"tool","value":"<tool_response>\ndry\n</tool_response>"}]}"#,
            "Assistant: think\"sky\" \"I look.\" call[call-1 w {}]\nTool: result[call-1 \"dry\"]\n",
        );
    }

    #[test]
    fn rows_that_are_damaged_or_something_else_are_reported() {
        let found = check(
            "{\"conversations\":[{\"from\":\"human\",\"value\":\"Hi\"}]}\n{\"conversations\":\n{\"x\":1}\n",
            "User: \"Hi\"\n",
        );
        assert_eq!(found.skipped.len(), 1);
        assert_eq!(found.skipped[0].line, 2);
    }
}
