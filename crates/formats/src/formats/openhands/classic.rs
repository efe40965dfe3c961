//! Events of the classic server: numbered objects with an `action` and `args`, or an `observation` and `content`.

use bytestring::ByteString;
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::message::{Author, Block, Content, Role, ToolCall, ToolInput};

use super::{Condensation, ForgottenEvents, Writer};
use crate::formats::chat_message::{self, string};

fn name(raw: &Raw, key: &str) -> ByteString {
    raw.field(key).as_ref().map(string).unwrap_or_default()
}

/// Whether the event is one that the model sees.
pub(super) fn is_shown(raw: &Raw) -> bool {
    let [action, observation] = raw.fields(["action", "observation"]);
    let is_hidden = |name: Option<Raw>| {
        name.is_none_or(|name| {
            matches!(
                string(&name).as_ref(),
                "" | "null"
                    | "agent_state_changed"
                    | "change_agent_state"
                    | "condensation"
                    | "condensation_request"
                    | "recall"
            )
        })
    };
    !(is_hidden(action) && is_hidden(observation))
}

pub(super) fn condensation(raw: &Raw) -> Option<Condensation> {
    if name(raw, "action") != "condensation" {
        return None;
    }
    let [ids, start, end, summary, offset] = raw.field("args")?.fields([
        "forgotten_event_ids",
        "forgotten_events_start_id",
        "forgotten_events_end_id",
        "summary",
        "summary_offset",
    ]);
    let number = |raw: Option<Raw>| raw.and_then(|raw| raw.as_u64());
    let forgotten = match (number(start), number(end)) {
        (Some(start), Some(end)) => ForgottenEvents::Range(start, end),
        _ => ForgottenEvents::Ids(
            ids.iter()
                .flat_map(Raw::array)
                .map(|id| string(&id))
                .collect(),
        ),
    };
    Some(Condensation {
        forgotten,
        summary: summary.and_then(|summary| summary.as_text()),
        offset: number(offset).map(|offset| offset as usize),
    })
}

pub(super) fn write(id: ByteString, raw: &Raw, writer: &mut Writer) {
    if name(raw, "observation").is_empty() {
        action(id, raw, writer);
    } else {
        observation(id, raw, writer);
    }
}

fn action(id: ByteString, raw: &Raw, writer: &mut Writer) {
    let [action, source, args, metadata] =
        raw.fields(["action", "source", "args", "tool_call_metadata"]);
    let action = action.as_ref().map(string).unwrap_or_default();
    let source = source.as_ref().map(string).unwrap_or_default();
    let [content, thought, final_thought, tools] = args
        .as_ref()
        .map(|args| args.fields(["content", "thought", "final_thought", "tools"]))
        .unwrap_or_default();
    let text = |raw: &Option<Raw>| raw.as_ref().and_then(chat_message::text_block);
    match (action.as_ref(), source.as_ref()) {
        ("system", _) => {
            writer.conversation.system.extend(text(&content));
            writer.conversation.tools = tools.filter(|tools| tools.kind() == Kind::Array);
        }
        ("message", "agent") => {
            let answer = answer_id(metadata.as_ref());
            writer.answer(&answer, text(&content).into_iter().collect(), id, raw);
        }
        ("message", source) => {
            let author = if source == "user" {
                Author::Role
            } else {
                Author::Client
            };
            writer.push(
                Role::User,
                author,
                text(&content).into_iter().collect(),
                id,
                raw,
            );
        }
        _ if !is_shown(raw) || source != "agent" => {}
        _ => {
            let mut blocks: Vec<Block> = text(&thought).into_iter().collect();
            if action == "finish" {
                blocks.extend(text(&final_thought));
            }
            // Only what has an answer is a call: finishing has none.
            if action != "finish" && action != "reject" {
                blocks.push(call(&id, &action, args.as_ref(), metadata.as_ref()));
            }
            let answer = answer_id(metadata.as_ref());
            writer.answer(&answer, blocks, id, raw);
        }
    }
}

/// The call of an action. If the model answered in text, the event's number is used as the id.
fn call(id: &str, action: &str, args: Option<&Raw>, metadata: Option<&Raw>) -> Block {
    let [call_id, function] = metadata
        .map(|metadata| metadata.fields(["tool_call_id", "function_name"]))
        .unwrap_or_default();
    Block {
        content: Content::ToolCall(ToolCall {
            id: match call_id {
                Some(call_id) => string(&call_id),
                None => event_id(id),
            },
            name: function.as_ref().map_or_else(|| action.into(), string),
            input: match args {
                Some(args) => ToolInput::Json(args.clone()),
                None => chat_message::tool_input(None),
            },
            is_server_side: false,
        }),
        raw: args.cloned(),
    }
}

fn event_id(id: &str) -> ByteString {
    format!("event-{id}").into()
}

fn answer_id(metadata: Option<&Raw>) -> ByteString {
    metadata
        .and_then(|metadata| metadata.field("model_response")?.field("id"))
        .as_ref()
        .map(string)
        .unwrap_or_default()
}

fn observation(id: ByteString, raw: &Raw, writer: &mut Writer) {
    let [kind, content, extras, cause, metadata, message] = raw.fields([
        "observation",
        "content",
        "extras",
        "cause",
        "tool_call_metadata",
        "message",
    ]);
    let kind = kind.as_ref().map(string).unwrap_or_default();
    let mut blocks: Vec<Block> = content
        .as_ref()
        .and_then(chat_message::text_block)
        .into_iter()
        .collect();
    match kind.as_ref() {
        "null" | "agent_state_changed" | "condense" => return,
        "recall" => {
            writer.push(Role::User, Author::Client, blocks, id, raw);
            return;
        }
        _ => {}
    }
    if blocks.is_empty() {
        blocks.extend(message.as_ref().and_then(chat_message::text_block));
    }
    let exit_code = extras.and_then(|extras| {
        let [metadata, code] = extras.fields(["metadata", "exit_code"]);
        metadata
            .and_then(|metadata| metadata.field("exit_code"))
            .or(code)?
            .as_f64()
    });
    let is_error = match (kind.as_ref(), exit_code) {
        ("error" | "user_rejected", _) => Some(true),
        (_, Some(code)) => Some(code != 0.0),
        _ => None,
    };
    let call_id = metadata
        .and_then(|metadata| metadata.field("tool_call_id"))
        .as_ref()
        .map(string)
        .or_else(|| cause.as_ref().map(|cause| event_id(&string(cause))))
        .unwrap_or_default();
    if call_id.is_empty() {
        // Nobody asked for it.
        writer.push(Role::User, Author::Client, blocks, id, raw);
    } else {
        writer.result(call_id, blocks, is_error, id, raw);
    }
}
