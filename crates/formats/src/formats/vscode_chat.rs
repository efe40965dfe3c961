//! Chats of VS Code (GitHub Copilot Chat): the files under `chatSessions`, and exported chats.
//!
//! A request has the message of the person and the pieces of the response. Older versions write one JSON document; newer
//! ones a log of changes to it ([`log`]). Where the calls of the model are kept with their arguments
//! (`toolCallRounds`), they are read; the pieces of the response only describe them.

mod log;
mod response;

use throughline_transcript::conversation::{Conversation, Problem};
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Block, Content, Media, Message, Role};

use crate::document::{Document, LineCounter};
use crate::formats::place::Place;
use crate::formats::rollback::note_left_out;
use crate::formats::{Format, Probe, parts, times};
use crate::source::{ReadError, SkippedPart, Source, SourceText};

/// Chats of VS Code.
pub(super) struct VsCodeChat;

impl Format for VsCodeChat {
    fn name(&self) -> &'static str {
        "vscode-chat"
    }

    fn about(&self) -> &'static str {
        "VS Code Copilot Chat session (JSON, JSONL) or export"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        let has = |path: &[&str]| glance.has_path(path);
        let is_named = has(&["responderUsername"]) || has(&["requesterUsername"]);
        if has(&["requests"])
            && (is_named || has(&["requests", "requestId"]) || has(&["initialLocation"]))
        {
            return 96;
        }
        probe.best_record(log::certainty)
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let mut skipped: Vec<SkippedPart> = Vec::new();
        let replayed = log::replay(source, &mut skipped);
        let is_log = replayed.is_some();
        let replayed = replayed.map(SourceText::from_text);
        let document = Document::read(
            replayed.as_ref().unwrap_or(source),
            &[],
            self.name(),
            |value| value.field("requestId").is_some(),
        )?;
        let root = document.root();
        let Some(requests) = root
            .field("requests")
            .filter(|requests| requests.is_array())
        else {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no list of `requests`".to_owned(),
            });
        };
        let mut conversation = Conversation {
            id: parts::string(root, "sessionId").unwrap_or_default(),
            title: parts::string(root, "customTitle"),
            ..Conversation::default()
        };
        let mut lines = LineCounter::default();
        let mut left_out = 0;
        for request in requests.elements() {
            let line = lines.line(document.text(), request.offset());
            // The lines of a document that was put together are not those of the file.
            let line = if is_log { 0 } else { line };
            if is_undone(request) {
                left_out += 1;
            } else {
                add(&mut conversation, request, line);
            }
        }
        note_left_out(&mut conversation, left_out, "undone");
        skipped.extend(document.skipped);
        Ok(Source {
            format: self.name(),
            conversations: vec![conversation],
            skipped,
        })
    }
}

/// The person went back to before it.
fn is_undone(request: View<'_>) -> bool {
    request.field("isHidden").is_some_and(View::is_true)
        || request
            .field("shouldBeRemovedOnSend")
            .is_some_and(|flag| flag.is_true() || flag.is_object())
}

fn add(conversation: &mut Conversation, request: View<'_>, line: usize) {
    let place = Place {
        line,
        at_ms: request.field("timestamp").and_then(times::from_number),
        id: request.field("requestId").and_then(View::to_bytestring),
    };
    if let Some(model) = parts::string(request, "modelId") {
        let model = model.strip_prefix("copilot/").unwrap_or(&model).to_owned();
        conversation.model = Some(model);
    }
    let message = request.field("message");
    let text = message.map(|message| message.field("text").unwrap_or(message));
    let mut blocks: Vec<Block> = text
        .filter(|text| text.as_text().is_some())
        .and_then(parts::text)
        .into_iter()
        .collect();
    let attached = request
        .field("variableData")
        .and_then(|data| data.field("variables"));
    blocks.extend(
        attached
            .into_iter()
            .flat_map(View::elements)
            .filter_map(attachment),
    );
    if !blocks.is_empty() {
        let message = Message::new(Role::User, blocks);
        conversation.messages.push(place.put(message));
    }
    let result = request.field("result");
    response::add(conversation, request.field("response"), result, &place);
    let error = result
        .and_then(|result| result.field("errorDetails"))
        .and_then(|error| parts::string(error, "message"));
    if let Some(error) = error {
        conversation.problems.push(Problem {
            code: "failed-request",
            message: conversation.messages.len().saturating_sub(1),
            text: format!("the request failed: {error}"),
        });
    }
}

/// A file or picture that the person attached. What the client adds to every request says nothing.
fn attachment(value: View<'_>) -> Option<Block> {
    let kind = value.string_field("kind").unwrap_or_default();
    let is_automatic = value.field("automaticallyAdded").is_some_and(View::is_true);
    let media = Media {
        name: value.field("name").and_then(View::to_bytestring),
        ..Media::default()
    };
    let content = match kind.as_ref() {
        "image" => Content::Image(media),
        "file" | "directory" if !is_automatic => Content::Document(media),
        _ => return None,
    };
    Some(Block {
        content,
        raw: Some(value.raw()),
    })
}

#[cfg(test)]
mod tests;
