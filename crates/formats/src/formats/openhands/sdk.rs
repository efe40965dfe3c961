//! Events of the agent SDK: objects with a `kind`, the name of their class.

use bytestring::ByteString;
use throughline_transcript::json::{Kind, Raw, Text};
use throughline_transcript::message::{Author, Block, Content, Role, ToolCall};

use super::{Condensation, ForgottenEvents, Writer};
use crate::formats::chat_message::{self, string};

/// Whether `kind` is the class of an event.
pub(super) fn is_kind(kind: &str) -> bool {
    matches!(
        kind,
        "SystemPromptEvent"
            | "MessageEvent"
            | "ActionEvent"
            | "ObservationEvent"
            | "AgentErrorEvent"
            | "UserRejectObservation"
            | "Condensation"
            | "CondensationRequest"
            | "CondensationSummaryEvent"
            | "PauseEvent"
            | "TokenEvent"
            | "ConversationStateUpdateEvent"
            | "ConversationErrorEvent"
    )
}

fn kind(raw: &Raw) -> ByteString {
    raw.field("kind").as_ref().map(string).unwrap_or_default()
}

/// Whether the event is one that the model sees.
pub(super) fn is_shown(raw: &Raw) -> bool {
    matches!(
        kind(raw).as_ref(),
        "SystemPromptEvent"
            | "MessageEvent"
            | "ActionEvent"
            | "ObservationEvent"
            | "AgentErrorEvent"
            | "UserRejectObservation"
            | "CondensationSummaryEvent"
    )
}

pub(super) fn condensation(raw: &Raw) -> Option<Condensation> {
    if kind(raw) != "Condensation" {
        return None;
    }
    let [forgotten, summary, offset] =
        raw.fields(["forgotten_event_ids", "summary", "summary_offset"]);
    let ids = forgotten.iter().flat_map(Raw::array).map(|id| string(&id));
    Some(Condensation {
        forgotten: ForgottenEvents::Ids(ids.collect()),
        summary: summary.and_then(|summary| summary.as_text()),
        offset: offset
            .and_then(|offset| offset.as_u64())
            .map(|offset| offset as usize),
    })
}

pub(super) fn write(id: ByteString, raw: &Raw, writer: &mut Writer) {
    match kind(raw).as_ref() {
        "SystemPromptEvent" => system_prompt(raw, writer),
        "MessageEvent" => message(id, raw, writer),
        "ActionEvent" => action(id, raw, writer),
        "ObservationEvent" | "AgentErrorEvent" | "UserRejectObservation" => {
            observation(id, raw, writer);
        }
        "CondensationSummaryEvent" => {
            let blocks = raw
                .field("summary")
                .and_then(|raw| chat_message::text_block(&raw));
            writer.push(
                Role::User,
                Author::Compaction,
                blocks.into_iter().collect(),
                id,
                raw,
            );
        }
        _ => {}
    }
}

fn system_prompt(raw: &Raw, writer: &mut Writer) {
    let [prompt, context, tools] = raw.fields(["system_prompt", "dynamic_context", "tools"]);
    let conversation = &mut writer.conversation;
    for part in [prompt, context].into_iter().flatten() {
        conversation
            .system
            .extend(chat_message::content_blocks(&part));
    }
    if let Some(tools) = tools.filter(|tools| tools.kind() == Kind::Array) {
        conversation.tools = Some(tools);
    }
}

fn message(id: ByteString, raw: &Raw, writer: &mut Writer) {
    let [inner, extended, source, answer] = raw.fields([
        "llm_message",
        "extended_content",
        "source",
        "llm_response_id",
    ]);
    let Some(mut message) = inner.and_then(|inner| chat_message::message(&inner)) else {
        return;
    };
    let blocks = std::mem::take(&mut message.blocks);
    if message.role == Role::Assistant {
        let answer = answer.as_ref().map(string).unwrap_or_default();
        writer.answer(&answer, blocks, id, raw);
        return;
    }
    let is_user = source.is_none_or(|source| string(&source) == "user");
    let author = if is_user {
        Author::Role
    } else {
        Author::Client
    };
    writer.push(message.role, author, blocks, id, raw);
    // Skills and repository knowledge that were put in with the message.
    if let Some(extended) = extended {
        let blocks = chat_message::content_blocks(&extended);
        writer.push(Role::User, Author::Client, blocks, "".into(), raw);
    }
}

fn action(id: ByteString, raw: &Raw, writer: &mut Writer) {
    let [
        thought,
        reasoning,
        thinking,
        tool_name,
        call_id,
        call,
        answer,
        action,
    ] = raw.fields([
        "thought",
        "reasoning_content",
        "thinking_blocks",
        "tool_name",
        "tool_call_id",
        "tool_call",
        "llm_response_id",
        "action",
    ]);
    let mut blocks = Vec::new();
    let thinking: Vec<Block> = thinking
        .as_ref()
        .map(chat_message::content_blocks)
        .unwrap_or_default();
    if thinking.is_empty() {
        let text = reasoning.and_then(|raw| raw.as_text());
        let text = text.filter(|text: &Text| text.encoded_len() > 0);
        blocks.extend(text.map(|text| Block::new(Content::Thinking(text))));
    }
    blocks.extend(thinking);
    blocks.extend(
        thought
            .as_ref()
            .map(chat_message::content_blocks)
            .unwrap_or_default(),
    );
    let [name, arguments] = call
        .as_ref()
        .map(|call| call.fields(["name", "arguments"]))
        .unwrap_or_default();
    let (name, arguments) = match call.as_ref().and_then(|call| call.field("function")) {
        Some(function) => {
            let [inner_name, inner_arguments] = function.fields(["name", "arguments"]);
            (inner_name.or(name), inner_arguments.or(arguments))
        }
        None => (name, arguments),
    };
    blocks.push(Block {
        content: Content::ToolCall(ToolCall {
            id: call_id
                .or_else(|| call.as_ref()?.field("id"))
                .as_ref()
                .map(string)
                .unwrap_or_default(),
            name: tool_name.or(name).as_ref().map(string).unwrap_or_default(),
            input: chat_message::tool_input(arguments.or(action).as_ref()),
            is_server_side: false,
        }),
        raw: call,
    });
    let answer = answer.as_ref().map(string).unwrap_or_default();
    writer.answer(&answer, blocks, id, raw);
}

fn observation(id: ByteString, raw: &Raw, writer: &mut Writer) {
    let [call_id, observation, error, rejection, extended] = raw.fields([
        "tool_call_id",
        "observation",
        "error",
        "rejection_reason",
        "extended_content",
    ]);
    let mut is_error = None;
    let mut content = Vec::new();
    if let Some(observation) = &observation {
        let [list, output, flag] = observation.fields(["content", "output", "is_error"]);
        is_error = flag.and_then(|flag| flag.as_bool());
        content = [list, output]
            .into_iter()
            .flatten()
            .map(|part| chat_message::content_blocks(&part))
            .find(|blocks| !blocks.is_empty())
            .unwrap_or_default();
    }
    if let Some(text) = error
        .or(rejection)
        .and_then(|raw| chat_message::text_block(&raw))
    {
        is_error = Some(true);
        content.push(text);
    }
    if content.is_empty()
        && let Some(observation) = observation
        && is_error.is_none()
    {
        // An observation of another shape: its own text is all there is.
        content.push(Block {
            content: Content::Text(Text::plain(observation.as_bytestring().clone())),
            raw: Some(observation),
        });
    }
    content.extend(
        extended
            .as_ref()
            .map(chat_message::content_blocks)
            .unwrap_or_default(),
    );
    let call_id = call_id.as_ref().map(string).unwrap_or_default();
    writer.result(call_id, content, is_error, id, raw);
}
