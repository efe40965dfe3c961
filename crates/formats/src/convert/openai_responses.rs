//! Items of the Responses format.

use std::collections::{HashMap, HashSet};

use throughline_transcript::json::{Raw, Text, quoted};
use throughline_transcript::message::{Content, ToolInput, ToolResult};
use throughline_transcript::splice::Splice;

use super::draft::{Draft, Part, Speaker, What};
use super::text::{array, object};
use super::writer::{Writer, index_of, native_block};

impl<'a> Writer<'a, '_> {
    pub(super) fn responses(&mut self, draft: &Draft<'a>) {
        // The output of a call has the type of the call.
        let mut kinds: HashMap<String, String> = HashMap::new();
        let mut ids: HashSet<String> = HashSet::new();
        for turn in &draft.turns {
            let (role, kind) = match turn.speaker {
                Speaker::System => ("developer", "input_text"),
                Speaker::User | Speaker::Results => ("user", "input_text"),
                Speaker::Assistant => ("assistant", "output_text"),
            };
            let speaker = turn.speaker;
            for run in Self::runs(&turn.parts) {
                let is_answering = run.iter().all(|part| answers_its_call(part, &kinds));
                let whole = self.whole(run, &HashSet::new());
                if let Some((index, text)) = whole.filter(|_| is_answering) {
                    for part in run {
                        self.see_tool(part);
                        if let What::Call { id, .. } = &part.what {
                            kinds.insert(id.clone(), kind_of(part));
                        }
                    }
                    let text = self.with_free_id(index, &text, &mut ids);
                    if let Some(text) = text {
                        self.put(text, Some(index), speaker);
                    }
                    continue;
                }
                let mut content = Vec::new();
                for part in run {
                    self.see_tool(part);
                    let item = self.responses_item(part, &mut kinds);
                    if let Some(item) = item {
                        self.responses_message(role, &mut content, speaker);
                        self.put(item, None, speaker);
                    } else if !matches!(part.what, What::Call { .. }) {
                        content.extend(self.responses_part(part, kind));
                    }
                }
                self.responses_message(role, &mut content, speaker);
            }
        }
        self.drop_lone_reasoning();
    }

    /// Removes reasoning that is not followed by what it led to: the provider refuses it.
    fn drop_lone_reasoning(&mut self) {
        let mut leads_somewhere = false;
        let mut is_kept: Vec<bool> = Vec::with_capacity(self.out.len());
        for written in self.out.iter().rev() {
            let kind = match written.speaker {
                Speaker::Assistant => Raw::parse(written.text.as_str())
                    .ok()
                    .and_then(|item| item.string_field("type")),
                _ => Some("input".to_owned()),
            };
            match kind.as_deref() {
                Some("reasoning") => {}
                // Of the assistant, these are no answer.
                Some("input" | "compaction" | "item_reference") => leads_somewhere = false,
                _ => leads_somewhere = true,
            }
            is_kept.push(leads_somewhere || kind.as_deref() != Some("reasoning"));
        }
        let count = is_kept.iter().filter(|is_kept| !**is_kept).count();
        if count == 0 {
            return;
        }
        let mut at = self.out.len();
        self.out.retain(|_| {
            at -= 1;
            is_kept.get(at).copied().unwrap_or(true)
        });
        for _ in 0..count {
            self.losses.note(
                "reasoning-alone",
                0,
                "reasoning that nothing follows was left out",
            );
        }
    }

    fn responses_message(&mut self, role: &str, content: &mut Vec<String>, speaker: Speaker) {
        if content.is_empty() {
            return;
        }
        let text = object(&[
            ("type", "\"message\""),
            ("role", &quoted(role)),
            ("content", &array(content)),
        ]);
        content.clear();
        self.put(text, None, speaker);
    }

    /// A part that is a separate item.
    fn responses_item(
        &mut self,
        part: &Part<'a>,
        kinds: &mut HashMap<String, String>,
    ) -> Option<String> {
        let index = index_of(part);
        match &part.what {
            What::Call { id, name, input } => {
                let name = self.tool_name(index, name);
                if let Some(text) = free_text(part, input) {
                    kinds.insert(id.clone(), CUSTOM_CALL.to_owned());
                    return Some(object(&[
                        ("type", &quoted(CUSTOM_CALL)),
                        ("call_id", &quoted(id)),
                        ("name", &quoted(&name)),
                        ("input", &quoted(&text.decode())),
                    ]));
                }
                kinds.insert(id.clone(), "function_call".to_owned());
                let arguments = self.input(index, input);
                Some(object(&[
                    ("type", "\"function_call\""),
                    ("call_id", &quoted(id)),
                    ("name", &quoted(&name)),
                    ("arguments", &quoted(&arguments)),
                ]))
            }
            What::Result { id, result } => {
                if result.is_error == Some(true) {
                    self.losses.note(
                        "error-flag",
                        index,
                        "that a tool failed is said by the words of its result only",
                    );
                }
                let output = self.responses_output(index, result);
                Some(output_item(kinds, id, &output))
            }
            What::NoResult { id } => Some(output_item(kinds, id, &quoted(Part::NO_RESULT))),
            What::Block(Content::Thinking(_)) if self.keeps_thinking(part) => {
                native_block(part, self.wire, false).map(|raw| raw.as_str().to_owned())
            }
            _ => None,
        }
    }

    fn responses_output(&mut self, index: usize, result: &'a ToolResult) -> String {
        let is_text = result
            .content
            .iter()
            .all(|block| matches!(block.content, Content::Text(_)));
        if is_text {
            return quoted(&super::draft::plain_result(result));
        }
        let mut parts = Vec::new();
        for block in &result.content {
            let part = Part {
                what: What::Block(&block.content),
                from: Some((index, 0)),
                block: Some(block),
            };
            parts.extend(self.responses_part(&part, "input_text"));
        }
        array(&parts)
    }

    /// A part of the content of a message.
    fn responses_part(&mut self, part: &Part<'a>, kind: &str) -> Option<String> {
        let is_medium = matches!(
            part.what,
            What::Block(Content::Image(_) | Content::Document(_))
        );
        if is_medium && kind == "input_text" {
            let raw = native_block(part, self.wire, false).map(|raw| raw.as_str().to_owned());
            if let Some(written) = raw.or_else(|| self.medium(part)) {
                return Some(written);
            }
        }
        let text = match &part.what {
            What::Text(text) => text.clone(),
            _ => self.in_words(part)?,
        };
        Some(object(&[("type", &quoted(kind)), ("text", &quoted(&text))]))
    }

    /// The item without an id that is not allowed: one that was used before, or one that would make the provider look
    /// for reasoning that was left out. `None` if the item means nothing without its id.
    fn with_free_id(
        &mut self,
        index: usize,
        text: &str,
        ids: &mut HashSet<String>,
    ) -> Option<String> {
        let is_alone = self.options.drop_thinking || self.options.drop_sealed;
        let Some((raw, id)) = Raw::parse(text.to_owned()).ok().and_then(|raw| {
            let id = raw.string_field("id")?;
            Some((raw, id))
        }) else {
            return Some(text.to_owned());
        };
        let kind = raw.string_field("type").unwrap_or_default();
        let is_needed = !(matches!(
            kind.as_str(),
            "" | "message" | "function_call" | "custom_tool_call"
        ) || kind.ends_with("_output"));
        let is_new = ids.insert(id);
        if is_needed {
            if !is_new {
                self.losses.note(
                    "duplicate-item",
                    index,
                    "an item that was written twice is written once",
                );
            }
            return is_new.then(|| text.to_owned());
        }
        if is_new && !is_alone {
            return Some(text.to_owned());
        }
        let mut splice = Splice::new(&raw);
        let is_removed = splice.remove_field("id").is_ok();
        let bare = splice.finish().ok().filter(|_| is_removed);
        Some(bare.map_or_else(|| text.to_owned(), |bare| bare.to_string()))
    }
}

/// A call of a tool that takes free text.
const CUSTOM_CALL: &str = "custom_tool_call";

fn kind_of(part: &Part<'_>) -> String {
    type_of(part).unwrap_or_else(|| "function_call".to_owned())
}

fn type_of(part: &Part<'_>) -> Option<String> {
    part.block?.raw.as_ref()?.string_field("type")
}

/// What the part calls a custom tool with; `None` if it is no call of one.
fn free_text<'a>(part: &Part<'a>, input: &'a ToolInput) -> Option<&'a Text> {
    match input {
        ToolInput::Text(text) if type_of(part)? == CUSTOM_CALL => Some(text),
        _ => None,
    }
}

/// Whether the part, copied unchanged, has the type that the output of its call must have. Other parts have none.
fn answers_its_call(part: &Part<'_>, kinds: &HashMap<String, String>) -> bool {
    let What::Result { id, .. } = &part.what else {
        return true;
    };
    match (kinds.get(id), type_of(part)) {
        (Some(call), Some(output)) => output.strip_suffix("_output") == Some(call),
        _ => true,
    }
}

fn output_item(kinds: &HashMap<String, String>, id: &str, output: &str) -> String {
    let kind = kinds.get(id).map_or("function_call", String::as_str);
    object(&[
        ("type", &quoted(&format!("{kind}_output"))),
        ("call_id", &quoted(id)),
        ("output", output),
    ])
}
