//! Messages of the Anthropic format.

use std::collections::HashSet;

use throughline_transcript::json::quoted;
use throughline_transcript::message::{Content, ToolResult};

use super::draft::{Draft, Part, Speaker, Turn, What};
use super::text::{array, object};
use super::writer::{
    Writer, WrittenMessage, has_blank, index_of, is_said, native_block, server_pairs,
};

/// Stands first where the conversation begins with the assistant.
pub(super) const NO_BEGINNING: &str = "(The beginning of this conversation is not available.)";
/// Stands last where the conversation ends with the assistant: current models take no prefill.
pub(super) const GO_ON: &str = "Please continue.";

impl<'a> Writer<'a, '_> {
    pub(super) fn anthropic(&mut self, draft: &Draft<'a>) {
        let mut turns = draft.turns.iter().peekable();
        while let Some(turn) = turns.next() {
            match turn.speaker {
                Speaker::System => {
                    let is_before_assistant = turns.peek().is_none_or(|next| {
                        next.speaker == Speaker::Assistant
                            && next
                                .parts
                                .iter()
                                .any(|part| self.is_said(next.speaker, part))
                    });
                    let is_after_user = self.out.last().is_some_and(WrittenMessage::is_users);
                    let may_stay = self.is_own && is_after_user && is_before_assistant;
                    if !(may_stay && self.take_whole(&turn.parts, Speaker::System)) {
                        self.put_in_front(&turn.parts);
                    }
                    continue;
                }
                Speaker::Assistant => {
                    if !self.take_whole(&turn.parts, turn.speaker) {
                        self.anthropic_message(Speaker::Assistant, &turn.parts);
                    }
                }
                Speaker::User => {
                    if !self.take_whole(&turn.parts, turn.speaker) {
                        self.anthropic_message(Speaker::User, &turn.parts);
                    }
                }
                Speaker::Results => {
                    let words = turns.next_if(|next| next.speaker == Speaker::User);
                    self.anthropic_results(turn, words);
                }
            }
        }
        let begins_with_assistant = self.out.first().is_some_and(|first| !first.is_users());
        if begins_with_assistant && !self.begins_with_compaction(draft) {
            self.losses.note(
                "first-message",
                0,
                "a message of the user's was put before the assistant's first",
            );
            self.say(NO_BEGINNING);
            self.out.rotate_right(1);
        }
        let is_prefill = self.is_own
            && self
                .out
                .last()
                .is_some_and(|last| last.source == Some(self.messages.len().saturating_sub(1)));
        if self
            .out
            .last()
            .is_some_and(|last| last.speaker == Speaker::Assistant)
            && !is_prefill
            && !self.options.ends_with_answer
        {
            self.losses.note(
                "last-message",
                self.messages.len().saturating_sub(1),
                "a message of the user's was put after the assistant's last",
            );
            self.say(GO_ON);
        }
    }

    /// Whether the first message is the assistant's and begins with a signed compaction block.
    fn begins_with_compaction(&self, draft: &Draft<'_>) -> bool {
        !self.options.drop_sealed
            && draft.turns.first().is_some_and(|turn| {
                turn.speaker == Speaker::Assistant
                    && matches!(
                        turn.parts.first(),
                        Some(Part { what: What::Block(Content::Compaction(Some(_))), block: Some(block), .. })
                            if block.raw.is_some()
                    )
            })
    }

    fn put_in_front(&mut self, parts: &[Part<'a>]) {
        for part in parts {
            if let Some(text) = self.in_words(part) {
                if !self.out.is_empty() {
                    self.losses.note(
                        "system-moved",
                        index_of(part),
                        "instructions from the midst of the conversation went to the front",
                    );
                }
                self.system.push(text);
            }
        }
    }

    /// Results, and the words of the user right after them, in one message: results first.
    fn anthropic_results(&mut self, results: &Turn<'a>, words: Option<&Turn<'a>>) {
        let mut parts = results.parts.clone();
        if let Some(words) = words {
            parts.extend(words.parts.iter().cloned());
        }
        if !self.take_whole(&parts, Speaker::User) {
            self.anthropic_message(Speaker::User, &parts);
        }
    }

    fn anthropic_message(&mut self, speaker: Speaker, parts: &[Part<'a>]) {
        let role = match speaker {
            Speaker::Assistant => "assistant",
            _ => "user",
        };
        let mut blocks = Vec::with_capacity(parts.len());
        let mut has_said = false;
        let pairs = server_pairs(parts);
        for part in parts {
            self.see_tool(part);
            if let Some(block) = self.anthropic_block(role, part, &pairs) {
                has_said |= !matches!(part.what, What::Block(Content::Thinking(_)));
                blocks.push(block);
            }
        }
        if !has_said {
            // Reasoning alone is not a message.
            self.lose_message(parts);
            return;
        }
        let text = object(&[("role", &quoted(role)), ("content", &array(&blocks))]);
        self.put(text, None, speaker);
    }

    fn anthropic_block(
        &mut self,
        role: &str,
        part: &Part<'a>,
        pairs: &HashSet<(usize, usize)>,
    ) -> Option<String> {
        let raw = native_block(part, self.wire, self.is_own).map(|raw| raw.as_str().to_owned());
        let index = index_of(part);
        match &part.what {
            What::Text(text) => Some(text_block(text)),
            What::Block(Content::Text(text)) => {
                if is_said(text) {
                    Some(raw.unwrap_or_else(|| text_block(&text.decode())))
                } else {
                    self.losses
                        .note("empty-text", index, "an empty text was left out");
                    None
                }
            }
            What::Block(Content::Thinking(_)) => {
                if role == "assistant" && self.keeps_thinking(part) && raw.is_some() {
                    raw
                } else {
                    self.lose_thinking(part);
                    None
                }
            }
            What::Call { id, name, input } => {
                let is_same = part.from.is_some()
                    && super::tools::name(name) == *name
                    && super::writer::as_object(input).is_some();
                match raw.filter(|_| is_same && is_type(part, "tool_use")) {
                    Some(raw) => Some(raw),
                    None => {
                        let name = self.tool_name(index, name);
                        let input = self.input(index, input);
                        Some(object(&[
                            ("type", "\"tool_use\""),
                            ("id", &quoted(id)),
                            ("name", &quoted(&name)),
                            ("input", &input),
                        ]))
                    }
                }
            }
            What::Result { id, result } => {
                let is_blank = has_blank(result);
                match raw.filter(|_| !is_blank && is_type(part, "tool_result")) {
                    Some(raw) => Some(raw),
                    None => Some(self.anthropic_result(index, id, result)),
                }
            }
            What::NoResult { id } => Some(object(&[
                ("type", "\"tool_result\""),
                ("tool_use_id", &quoted(id)),
                ("content", &quoted(Part::NO_RESULT)),
                ("is_error", "true"),
            ])),
            What::Block(Content::ToolCall(_) | Content::ToolResult(_)) => {
                let is_whole = part.from.is_some_and(|from| pairs.contains(&from))
                    && role == "assistant"
                    && !self.options.drop_sealed;
                match raw.filter(|_| is_whole) {
                    Some(raw) => Some(raw),
                    None => self.in_words(part).map(|text| text_block(&text)),
                }
            }
            What::Block(Content::Image(_) | Content::Document(_)) => {
                // The assistant shows no pictures.
                let written = (role == "user")
                    .then(|| raw.or_else(|| self.medium(part)))
                    .flatten();
                written.or_else(|| self.in_words(part).map(|text| text_block(&text)))
            }
            What::Block(Content::Compaction(Some(_)))
                if role == "assistant" && !self.options.drop_sealed =>
            {
                raw.or_else(|| self.in_words(part).map(|text| text_block(&text)))
            }
            What::Block(Content::Other(_)) if raw.is_some() => raw,
            What::Block(_) => self.in_words(part).map(|text| text_block(&text)),
        }
    }

    fn anthropic_result(&mut self, index: usize, id: &str, result: &ToolResult) -> String {
        let mut blocks = Vec::new();
        for block in &result.content {
            let part = Part {
                what: What::Block(&block.content),
                from: Some((index, 0)),
                block: Some(block),
            };
            let raw = native_block(&part, self.wire, self.is_own);
            match &block.content {
                Content::Text(text) if !is_said(text) => {}
                Content::Text(text) => blocks.push(text_block(&text.decode())),
                _ => {
                    let written = raw
                        .map(|raw| raw.as_str().to_owned())
                        .or_else(|| self.medium(&part))
                        .or_else(|| self.in_words(&part).map(|text| text_block(&text)));
                    blocks.extend(written);
                }
            }
        }
        let id = quoted(id);
        let content = array(&blocks);
        let mut fields = vec![("type", "\"tool_result\""), ("tool_use_id", id.as_str())];
        if !blocks.is_empty() {
            fields.push(("content", &content));
        }
        if result.is_error == Some(true) {
            fields.push(("is_error", "true"));
        }
        object(&fields)
    }
}

pub(super) fn text_block(text: &str) -> String {
    object(&[("type", "\"text\""), ("text", &quoted(text))])
}

fn is_type(part: &Part<'_>, kind: &str) -> bool {
    part.block
        .and_then(|block| block.raw.as_ref())
        .and_then(|raw| raw.text_field("type"))
        .is_some_and(|found| found.decode() == kind)
}
