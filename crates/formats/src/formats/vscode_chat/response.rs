//! The response to a request.

use bytestring::ByteString;
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::tape::View;
use throughline_transcript::json::write_string;
use throughline_transcript::message::{Block, Content, Role, ToolCall, ToolInput};
use throughline_transcript::usage::Usage;

use crate::formats::anthropic_content;
use crate::formats::parts::{self, Answer};
use crate::formats::place::Place;

/// How deep texts are looked for in the result of a tool.
const DEPTH_MAX: usize = 64;

pub(super) fn add(
    conversation: &mut Conversation,
    response: Option<View<'_>>,
    result: Option<View<'_>>,
    place: &Place,
) {
    let metadata = result.and_then(|result| result.field("metadata"));
    let rounds: Vec<View<'_>> = metadata
        .and_then(|metadata| metadata.field("toolCallRounds"))
        .into_iter()
        .flat_map(View::elements)
        .collect();
    let has_calls = rounds.iter().any(|round| calls(*round).next().is_some());
    if has_calls {
        let results = metadata.and_then(|metadata| metadata.field("toolCallResults"));
        for round in rounds {
            add_round(conversation, round, results, place);
        }
    } else {
        add_pieces(conversation, response, place);
    }
    let usage = result.and_then(usage);
    let last = conversation
        .messages
        .iter_mut()
        .rev()
        .find(|message| message.role == Role::Assistant);
    if let (Some(message), Some(usage)) = (last, usage) {
        message.usage = Some(usage);
    }
}

fn calls(round: View<'_>) -> impl Iterator<Item = View<'_>> {
    round
        .field("toolCalls")
        .into_iter()
        .flat_map(View::elements)
}

/// One call of the model.
fn add_round(
    conversation: &mut Conversation,
    round: View<'_>,
    results: Option<View<'_>>,
    place: &Place,
) {
    let mut answer = Answer::default();
    let thoughts = round
        .field("thinking")
        .and_then(|thinking| thinking.field("text"));
    answer.blocks.extend(thoughts.and_then(parts::thinking));
    answer
        .blocks
        .extend(round.field("response").and_then(parts::text));
    for call in calls(round) {
        let id = parts::name(call, "id");
        let result = results.and_then(|results| results.field(&id));
        let name = parts::name(call, "name");
        let input = call.field("arguments");
        answer
            .blocks
            .push(parts::call(id.clone(), name, input, Some(call.raw())));
        if let Some(result) = result {
            let mut text = String::new();
            collect(result, 0, &mut text);
            let content = vec![Block::text(text)];
            let is_error = result.field("isError").and_then(View::as_bool);
            answer.results.push(parts::result(id, content, is_error));
        }
    }
    answer.put(&mut conversation.messages, place);
}

/// Adds the texts of a result. They are under `value` or, in a tree of what was shown to the model, under `text`.
fn collect(value: View<'_>, depth: usize, text: &mut String) {
    if depth > DEPTH_MAX {
        return;
    }
    for (key, field) in value.fields() {
        match (key.as_ref(), field.decode()) {
            ("value" | "text", Some(words)) => text.push_str(&words),
            (_, Some(_)) => {}
            (_, None) => collect(field, depth + 1, text),
        }
    }
    for element in value.elements() {
        collect(element, depth + 1, text);
    }
}

/// The pieces that were shown. Neighbouring pieces of a text are one text.
fn add_pieces(conversation: &mut Conversation, response: Option<View<'_>>, place: &Place) {
    let mut answer = Answer::default();
    let mut text = String::new();
    for piece in response.into_iter().flat_map(View::elements) {
        let kind = piece.string_field("kind").unwrap_or_default();
        match kind.as_ref() {
            "" | "markdownContent" | "markdownVuln" => {
                let content = piece.field("content").unwrap_or(piece);
                let words = content
                    .as_text()
                    .or_else(|| content.field("value").and_then(View::as_text));
                if let Some(words) = words {
                    flush_results(&mut answer, conversation, place);
                    words.decode_into(&mut text);
                }
            }
            "inlineReference" => {
                if let Some(name) = reference(piece) {
                    text.push('`');
                    text.push_str(&name);
                    text.push('`');
                }
            }
            "thinking" => {
                flush_text(&mut text, &mut answer);
                flush_results(&mut answer, conversation, place);
                answer
                    .blocks
                    .extend(piece.field("value").and_then(parts::thinking));
            }
            "toolInvocationSerialized" | "toolInvocation" => {
                flush_text(&mut text, &mut answer);
                tool(piece, &mut answer);
            }
            "textEditGroup" | "notebookEditGroup" => {
                flush_text(&mut text, &mut answer);
                edit(piece, conversation.messages.len(), &mut answer);
            }
            // Progress, confirmations, follow-ups and whatever comes later.
            _ => {}
        }
    }
    flush_text(&mut text, &mut answer);
    answer.put(&mut conversation.messages, place);
}

fn flush_text(text: &mut String, answer: &mut Answer) {
    let whole = std::mem::take(text);
    if !whole.trim().is_empty() {
        answer.blocks.push(Block::text(whole));
    }
}

/// What follows results is another call of the model.
fn flush_results(answer: &mut Answer, conversation: &mut Conversation, place: &Place) {
    if !answer.results.is_empty() {
        std::mem::take(answer).put(&mut conversation.messages, place);
    }
}

fn reference(piece: View<'_>) -> Option<String> {
    let target = piece.field("inlineReference")?;
    let place = target.field("location").unwrap_or(target);
    let place = place.field("uri").unwrap_or(place);
    parts::string(piece, "name")
        .or_else(|| parts::string(target, "name"))
        .or_else(|| path(place))
}

/// The path of an address in parts.
fn path(address: View<'_>) -> Option<String> {
    parts::string(address, "fsPath").or_else(|| parts::string(address, "path"))
}

fn tool(piece: View<'_>, answer: &mut Answer) {
    let id = parts::name(piece, "toolCallId");
    let name = parts::name(piece, "toolId");
    let data = piece.field("toolSpecificData");
    let details = piece.field("resultDetails");
    let input = data
        .and_then(|data| data.field("rawInput").or_else(|| data.field("commandLine")))
        .or_else(|| details.and_then(|details| details.field("input")))
        .or(data);
    answer
        .blocks
        .push(parts::call(id.clone(), name, input, Some(piece.raw())));
    let output = details
        .and_then(|details| details.field("output"))
        .or_else(|| data.and_then(|data| data.field("terminalCommandOutput")));
    let mut text = String::new();
    match output.and_then(View::decode) {
        Some(words) => text.push_str(&words),
        None => output
            .into_iter()
            .for_each(|output| collect(output, 0, &mut text)),
    }
    // Of the result there may be nothing but what the person was told.
    if text.trim().is_empty() {
        let told = ["pastTenseMessage", "invocationMessage"]
            .into_iter()
            .find_map(|key| piece.field(key));
        let told = told.map(|told| told.field("value").unwrap_or(told));
        text = told.and_then(View::decode).unwrap_or_default().into_owned();
    }
    let is_complete = piece.field("isComplete").is_none_or(View::is_true);
    if is_complete {
        let is_error = details
            .and_then(|details| details.field("isError"))
            .and_then(View::as_bool);
        let content = vec![Block::text(text)];
        answer.results.push(parts::result(id, content, is_error));
    }
}

/// An edit of a file that the response contains, as a call of the client's own tool. `number` makes its id.
fn edit(piece: View<'_>, number: usize, answer: &mut Answer) {
    let Some(file) = piece.field("uri").and_then(path) else {
        return;
    };
    let mut input = String::from("{\"filePath\":");
    write_string(&file, &mut input);
    input.push('}');
    let id = ByteString::from(format!("edit-{number}-{}", answer.blocks.len()));
    answer.blocks.push(Block {
        content: Content::ToolCall(ToolCall {
            id: id.clone(),
            name: "edit_file".into(),
            input: ToolInput::from_encoded(&input.into()),
            is_server_side: false,
        }),
        raw: Some(piece.raw()),
    });
    if piece.field("done").is_some_and(View::is_true) {
        let content = vec![Block::text("edited")];
        answer.results.push(parts::result(id, content, Some(false)));
    }
}

fn usage(result: View<'_>) -> Option<Usage> {
    let value = result.field("usage").unwrap_or(result);
    let tokens = |key| anthropic_content::tokens(value, key);
    parts::used(Usage {
        uncached: tokens("promptTokens"),
        output: tokens("outputTokens").max(tokens("completionTokens")),
        ..Usage::default()
    })
}
