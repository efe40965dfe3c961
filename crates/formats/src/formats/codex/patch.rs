//! Patches that were applied, as events tell.

use bytestring::ByteString;
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Block, Content, Message, ToolInput, ToolResult};

/// Files of one patch that are named.
const FILES_MAX: usize = 200;

/// The patches of a rollout.
#[derive(Default)]
pub(super) struct Patches {
    applied: Vec<Patch>,
}

struct Patch {
    call_id: ByteString,
    /// How many messages there were.
    messages: usize,
    /// Lines of a kind, a space and a path.
    files: Vec<(char, String)>,
}

impl Patches {
    /// Notes a `patch_apply_end` event.
    pub(super) fn note(&mut self, event: View<'_>, messages: usize) {
        let has_failed = event.field("success").and_then(View::as_bool) == Some(false)
            || matches!(
                event.string_field("status").as_deref(),
                Some("failed" | "declined")
            );
        let Some(changes) = event.field("changes").filter(|_| !has_failed) else {
            return;
        };
        let files: Vec<_> = changes
            .fields()
            .take(FILES_MAX)
            .map(|(path, change)| {
                let kind = change.string_field("type").unwrap_or_default();
                let moved = change.string_field("move_path");
                let kind = match kind.as_ref() {
                    "add" => 'A',
                    "delete" => 'D',
                    _ => 'M',
                };
                let path = moved.unwrap_or(path);
                (kind, path.into_owned())
            })
            .collect();
        if !files.is_empty() {
            self.applied.push(Patch {
                call_id: event
                    .field("call_id")
                    .and_then(View::to_bytestring)
                    .unwrap_or_default(),
                messages,
                files,
            });
        }
    }

    /// Names the files in the results of calls that do not name them: a script can compute its patch.
    pub(super) fn complete(self, messages: &mut [Message]) {
        for patch in self.applied {
            let end = patch.messages.min(messages.len());
            // A patch in a script has the id of the script's call, or one of its own.
            let near = messages[..end].iter().rev().take(NEAR_MESSAGES_MAX);
            let call = near
                .flat_map(|message| message.tool_calls().last())
                .find(|call| call.id == patch.call_id)
                .or_else(|| {
                    let mut before = messages[..end].iter().rev().take(NEAR_MESSAGES_MAX);
                    before.find_map(|message| message.tool_calls().last())
                });
            let Some(call) = call else { continue };
            let input = match &call.input {
                ToolInput::Json(raw) => raw.as_str().to_owned(),
                ToolInput::Text(text) => text.decode().into_owned(),
            };
            let id = call.id.clone();
            let near = end.saturating_sub(NEAR_MESSAGES_MAX)
                ..(end + NEAR_MESSAGES_MAX).min(messages.len());
            let result = messages[near]
                .iter_mut()
                .flat_map(|message| &mut message.blocks)
                .find_map(|block| match &mut block.content {
                    Content::ToolResult(result) if result.call_id == id => Some(result),
                    _ => None,
                });
            if let Some(result) = result {
                name_files(&patch.files, &input, result);
            }
        }
    }
}

/// How far from a patch its call and the result may be, messages.
const NEAR_MESSAGES_MAX: usize = 12;

fn name_files(files: &[(char, String)], input: &str, result: &mut ToolResult) {
    let said: Vec<_> = result
        .texts()
        .map(|text| text.decode().into_owned())
        .collect();
    let is_named = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        input.contains(name) || said.iter().any(|text| text.contains(name))
    };
    if files.iter().all(|(_, path)| is_named(path)) {
        return;
    }
    let lines: Vec<_> = files
        .iter()
        .map(|(kind, path)| format!("{kind} {path}"))
        .collect();
    result.content.push(Block::text(format!(
        "Success. Updated the following files:\n{}",
        lines.join("\n")
    )));
}
