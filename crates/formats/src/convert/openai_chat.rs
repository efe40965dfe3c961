//! Messages of the Chat Completions format.

use throughline_transcript::json::quoted;
use throughline_transcript::message::Content;

use super::draft::{Draft, Part, Speaker, What};
use super::text::{array, object};
use super::writer::{Writer, index_of, joined, native_block};

impl<'a> Writer<'a, '_> {
    pub(super) fn chat(&mut self, draft: &Draft<'a>) {
        for turn in &draft.turns {
            match turn.speaker {
                Speaker::System => {
                    if !self.take_whole(&turn.parts, turn.speaker) {
                        let texts: Vec<_> = turn
                            .parts
                            .iter()
                            .filter_map(|part| self.in_words(part))
                            .collect();
                        if !texts.is_empty() {
                            let text = message("system", &quoted(&joined(&texts)));
                            self.put(text, None, turn.speaker);
                        }
                    }
                }
                Speaker::User => {
                    if !self.take_whole(&turn.parts, turn.speaker) {
                        self.chat_user(&turn.parts);
                    }
                }
                Speaker::Assistant => {
                    if !self.take_whole(&turn.parts, turn.speaker) {
                        self.chat_assistant(&turn.parts);
                    }
                }
                Speaker::Results => {
                    for part in &turn.parts {
                        if !self.take_whole(std::slice::from_ref(part), turn.speaker) {
                            self.chat_result(part);
                        }
                    }
                }
            }
        }
    }

    fn chat_user(&mut self, parts: &[Part<'a>]) {
        let mut texts = Vec::new();
        let mut written = Vec::new();
        let mut is_text_only = true;
        for part in parts {
            let is_medium = matches!(
                part.what,
                What::Block(Content::Image(_) | Content::Document(_))
            );
            let raw = native_block(part, self.wire, self.is_own)
                .filter(|_| is_medium || matches!(part.what, What::Block(Content::Other(_))));
            let other = raw
                .map(|raw| raw.as_str().to_owned())
                .or_else(|| self.medium(part));
            if let Some(other) = other {
                is_text_only = false;
                written.push(other);
                continue;
            }
            let text = match &part.what {
                What::Text(text) => Some(text.clone()),
                _ => self.in_words(part),
            };
            if let Some(text) = text {
                written.push(super::anthropic::text_block(&text));
                texts.push(text);
            }
        }
        if written.is_empty() {
            self.lose_message(parts);
            return;
        }
        // A single text is written as a string: most clients do so, and every server reads it.
        let content = if is_text_only && (texts.len() == 1 || self.options.strict_alternation) {
            quoted(&joined(&texts))
        } else {
            array(&written)
        };
        self.put(message("user", &content), None, Speaker::User);
    }

    fn chat_assistant(&mut self, parts: &[Part<'a>]) {
        let mut texts = Vec::new();
        let mut calls = Vec::new();
        for part in parts {
            self.see_tool(part);
            let index = index_of(part);
            match &part.what {
                What::Text(text) => texts.push(text.clone()),
                What::Call { id, name, input } => {
                    let is_custom = part.block.is_some_and(|block| {
                        block
                            .raw
                            .as_ref()
                            .is_some_and(|raw| raw.field("custom").is_some())
                    });
                    let raw = native_block(part, self.wire, false).filter(|_| {
                        super::tools::name(name) == *name
                            && (is_custom || super::writer::as_object(input).is_some())
                    });
                    calls.push(match raw {
                        Some(raw) => raw.as_str().to_owned(),
                        None => {
                            let name = self.tool_name(index, name);
                            let arguments = self.input(index, input);
                            let function = object(&[
                                ("name", &quoted(&name)),
                                ("arguments", &quoted(&arguments)),
                            ]);
                            object(&[
                                ("id", &quoted(id)),
                                ("type", "\"function\""),
                                ("function", &function),
                            ])
                        }
                    });
                }
                _ => texts.extend(self.in_words(part)),
            }
        }
        if texts.is_empty() && calls.is_empty() {
            self.lose_message(parts);
            return;
        }
        let content = if texts.is_empty() {
            "null".to_owned()
        } else {
            quoted(&joined(&texts))
        };
        let text = if calls.is_empty() {
            message("assistant", &content)
        } else {
            object(&[
                ("role", "\"assistant\""),
                ("content", &content),
                ("tool_calls", &array(&calls)),
            ])
        };
        self.put(text, None, Speaker::Assistant);
    }

    fn chat_result(&mut self, part: &Part<'a>) {
        let index = index_of(part);
        let (id, text) = match &part.what {
            What::Result { id, result } => {
                let mut texts = Vec::new();
                for block in &result.content {
                    let inner = Part {
                        what: What::Block(&block.content),
                        from: Some((index, 0)),
                        block: Some(block),
                    };
                    texts.extend(self.in_words(&inner));
                }
                if result.is_error == Some(true) {
                    self.losses.note(
                        "error-flag",
                        index,
                        "that a tool failed is said by the words of its result only",
                    );
                }
                (id, joined(&texts))
            }
            What::NoResult { id } => (id, Part::NO_RESULT.to_owned()),
            _ => return,
        };
        let text = object(&[
            ("role", "\"tool\""),
            ("tool_call_id", &quoted(id)),
            ("content", &quoted(&text)),
        ]);
        self.put(text, None, Speaker::Results);
    }
}

pub(super) fn message(role: &str, content: &str) -> String {
    object(&[("role", &quoted(role)), ("content", content)])
}
