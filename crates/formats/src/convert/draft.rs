//! A conversation put in order: every call answered right after the message that makes it, once, and by one result.
//!
//! Nothing is written here. A [`Draft`] points at the blocks of the conversation and records the changes, so that a
//! writer can copy unchanged blocks.

use std::collections::{HashMap, HashSet, VecDeque};

use throughline_transcript::message::{
    Block, Content, Message, Role, ToolCall, ToolInput, ToolResult,
};

use super::losses::Losses;

/// The result of a call that has none: it claims neither success nor failure.
const NO_RESULT: &str = "No result of this call was recorded. Whether it took effect is not known.";
/// Precedes the text of a result whose call is not in the conversation.
const ORPHAN_RESULT: &str = "Result of a tool call that is not part of this conversation:\n";
/// Precedes a readable compaction if the wire format has no block for it.
const EARLIER: &str = "Summary of the conversation before this point:\n\n";

/// What to do with results whose call is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Orphans {
    /// Keep their text as text.
    ToText,
    /// Leave them out: a memory replaces them.
    Drop,
}

/// What a draft is made of.
pub(super) enum Entry<'a> {
    /// A message of the conversation, with its index.
    Message(usize, &'a Message),
    /// The memory that replaces the messages before the next one.
    Memory(&'a str),
}

/// The conversation in order.
pub(super) struct Draft<'a> {
    pub(super) turns: Vec<Turn<'a>>,
}

/// A run of parts of one speaker.
pub(super) struct Turn<'a> {
    pub(super) speaker: Speaker,
    pub(super) parts: Vec<Part<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    System,
    User,
    Assistant,
    /// The results of the assistant turn right before.
    Results,
}

/// One block to be written.
#[derive(Clone)]
pub(super) struct Part<'a> {
    pub(super) what: What<'a>,
    /// Message and block that it is, if it is one of the conversation's and unchanged.
    pub(super) from: Option<(usize, usize)>,
    /// The block of the conversation that it was made of.
    pub(super) block: Option<&'a Block>,
}

#[derive(Clone)]
pub(super) enum What<'a> {
    Text(String),
    /// A block that is neither a call nor a result of the client's tools.
    Block(&'a Content),
    Call {
        id: String,
        name: &'a str,
        input: &'a ToolInput,
    },
    Result {
        id: String,
        result: &'a ToolResult,
    },
    /// Stands for a result that never came.
    NoResult {
        id: String,
    },
}

impl Part<'_> {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Part {
            what: What::Text(text.into()),
            from: None,
            block: None,
        }
    }

    /// What is said in place of a missing result.
    pub(super) const NO_RESULT: &'static str = NO_RESULT;

    /// Its position in the conversation, as a sort key.
    fn order(&self) -> (usize, usize) {
        self.from.unwrap_or((usize::MAX, usize::MAX))
    }
}

/// A call that waits for its result.
struct Slot<'a> {
    turn: usize,
    id: String,
    is_renamed: bool,
    input: &'a ToolInput,
    name: &'a str,
    result: Option<(Part<'a>, bool)>,
}

struct Builder<'a, 'l> {
    turns: Vec<Turn<'a>>,
    slots: Vec<Slot<'a>>,
    /// The last call of each id of the source.
    latest: HashMap<&'a str, usize>,
    nameless: VecDeque<usize>,
    used: HashSet<String>,
    fresh: usize,
    /// Whether the assistant's next words come after results and so begin a turn of their own.
    is_answered: bool,
    orphans: Orphans,
    is_id_strict: bool,
    losses: &'l mut Losses,
}

impl<'a> Draft<'a> {
    /// Puts messages in order. With `is_id_strict`, ids get only the characters that Anthropic allows.
    pub(super) fn of(
        entries: impl Iterator<Item = Entry<'a>>,
        orphans: Orphans,
        is_id_strict: bool,
        losses: &mut Losses,
    ) -> Self {
        let mut builder = Builder {
            turns: Vec::new(),
            slots: Vec::new(),
            latest: HashMap::new(),
            nameless: VecDeque::new(),
            used: HashSet::new(),
            fresh: 0,
            is_answered: false,
            orphans,
            is_id_strict,
            losses,
        };
        for entry in entries {
            match entry {
                Entry::Message(index, message) => builder.message(index, message),
                Entry::Memory(text) => builder.turns.push(Turn {
                    speaker: Speaker::User,
                    parts: vec![Part::text(text)],
                }),
            }
        }
        builder.finish()
    }
}

impl<'a> Builder<'a, '_> {
    fn message(&mut self, index: usize, message: &'a Message) {
        if message.blocks.is_empty() {
            self.losses.note(
                "empty-message",
                index,
                "a message in which nothing was left to say was left out",
            );
        }
        match message.role {
            Role::System => {
                let parts = message
                    .blocks
                    .iter()
                    .enumerate()
                    .map(|(at, block)| plain(index, at, block))
                    .collect();
                self.turns.push(Turn {
                    speaker: Speaker::System,
                    parts,
                });
            }
            Role::Assistant => {
                for (at, block) in message.blocks.iter().enumerate() {
                    self.assistant(index, at, block);
                }
            }
            Role::User | Role::Tool => {
                let mut parts = Vec::new();
                for (at, block) in message.blocks.iter().enumerate() {
                    match &block.content {
                        Content::ToolResult(result) if !result.is_server_side => {
                            if let Some(text) = self.result(index, at, block, result) {
                                parts.push(text);
                            }
                        }
                        Content::ToolCall(call) if !call.is_server_side => {
                            self.losses.note(
                                "misplaced-call",
                                index,
                                "a call in a message that is not the assistant's became text",
                            );
                            parts.push(Part::text(describe(call)));
                        }
                        _ => parts.push(plain(index, at, block)),
                    }
                }
                if !parts.is_empty() {
                    self.turns.push(Turn {
                        speaker: Speaker::User,
                        parts,
                    });
                    self.is_answered = false;
                }
            }
        }
    }

    fn assistant(&mut self, index: usize, at: usize, block: &'a Block) {
        match &block.content {
            Content::ToolResult(result) if !result.is_server_side => {
                if let Some(text) = self.result(index, at, block, result) {
                    self.say(text);
                }
            }
            Content::ToolCall(call) if !call.is_server_side => self.call(index, at, block, call),
            _ => self.say(plain(index, at, block)),
        }
    }

    /// The turn that the assistant's next words belong to.
    fn turn(&mut self) -> usize {
        let continues = self
            .turns
            .last()
            .is_some_and(|turn| turn.speaker == Speaker::Assistant);
        if !continues || self.is_answered {
            self.turns.push(Turn {
                speaker: Speaker::Assistant,
                parts: Vec::new(),
            });
            self.is_answered = false;
        }
        self.turns.len() - 1
    }

    fn say(&mut self, part: Part<'a>) {
        let turn = self.turn();
        self.turns[turn].parts.push(part);
    }

    fn call(&mut self, index: usize, at: usize, block: &'a Block, call: &'a ToolCall) {
        let turn = self.turn();
        if let Some(slot) = self.latest.get(&*call.id)
            && !call.id.is_empty()
            && self.slots[*slot].turn == turn
            && self.slots[*slot].name == &*call.name
            && self.slots[*slot].input == &call.input
        {
            self.losses.note(
                "duplicate-call",
                index,
                "a call that was written twice is written once",
            );
            return;
        }
        let id = self.fresh_id(index, &call.id);
        let is_renamed = id != *call.id;
        let slot = self.slots.len();
        if call.id.is_empty() {
            self.nameless.push_back(slot);
        } else {
            self.latest.insert(&call.id, slot);
        }
        self.slots.push(Slot {
            turn,
            id: id.clone(),
            is_renamed,
            input: &call.input,
            name: &call.name,
            result: None,
        });
        self.turns[turn].parts.push(Part {
            what: What::Call {
                id,
                name: &call.name,
                input: &call.input,
            },
            from: (!is_renamed).then_some((index, at)),
            block: Some(block),
        });
    }

    fn fresh_id(&mut self, index: usize, id: &str) -> String {
        let mut wanted = id.to_owned();
        if id.is_empty() {
            loop {
                self.fresh += 1;
                wanted = format!("call_{}", self.fresh);
                if !self.used.contains(&wanted) {
                    break;
                }
            }
            self.losses
                .note("call-id-made", index, "a call without an id got one");
        } else if self.is_id_strict && !id.bytes().all(is_id_byte) {
            wanted = id
                .chars()
                .map(|c| {
                    if c.is_ascii() && is_id_byte(c as u8) {
                        c
                    } else {
                        '_'
                    }
                })
                .collect();
            self.losses.note(
                "call-id-changed",
                index,
                "the id of a call holds characters that are not allowed",
            );
        }
        if self.used.contains(&wanted) {
            self.losses.note(
                "call-id-changed",
                index,
                "the id of a call was used before and got a number",
            );
            // The counter never goes back, so that many calls with one id stay cheap.
            let base = wanted;
            loop {
                self.fresh += 1;
                wanted = format!("{base}_{}", self.fresh);
                if !self.used.contains(&wanted) {
                    break;
                }
            }
        }
        self.used.insert(wanted.clone());
        wanted
    }

    /// Puts a result to its call. Gives back text to be said in its place if there is none.
    fn result(
        &mut self,
        index: usize,
        at: usize,
        block: &'a Block,
        result: &'a ToolResult,
    ) -> Option<Part<'a>> {
        let found = if result.call_id.is_empty() {
            self.nameless.pop_front()
        } else {
            self.latest.get(&*result.call_id).copied()
        };
        let Some(found) = found else {
            return match self.orphans {
                Orphans::Drop => {
                    self.losses.note(
                        "orphan-result",
                        index,
                        "a result whose call is covered by the memory was left out",
                    );
                    None
                }
                Orphans::ToText => {
                    self.losses.note(
                        "orphan-result",
                        index,
                        "a result without a call became text",
                    );
                    let text = plain_result(result);
                    (!text.trim().is_empty()).then(|| Part::text(format!("{ORPHAN_RESULT}{text}")))
                }
            };
        };
        self.is_answered |= self.slots[found].turn + 1 == self.turns.len();
        let slot = &mut self.slots[found];
        let is_failure = result.is_error == Some(true);
        if let Some((_, was_failure)) = &slot.result {
            self.losses.note(
                "duplicate-result",
                index,
                "of several results of a call the last that succeeded is kept",
            );
            if is_failure && !was_failure {
                return None;
            }
        }
        slot.result = Some((
            Part {
                what: What::Result {
                    id: slot.id.clone(),
                    result,
                },
                from: (!slot.is_renamed && slot.id == *result.call_id).then_some((index, at)),
                block: Some(block),
            },
            is_failure,
        ));
        None
    }

    fn finish(self) -> Draft<'a> {
        let mut results: Vec<Vec<Part<'a>>> = self.turns.iter().map(|_| Vec::new()).collect();
        for slot in self.slots {
            let part = match slot.result {
                Some((part, _)) => part,
                None => {
                    let index = self.turns[slot.turn]
                        .parts
                        .iter()
                        .find_map(|part| part.from)
                        .map_or(0, |(message, _)| message);
                    self.losses.note(
                        "missing-result",
                        index,
                        "a call without a result got one that says so",
                    );
                    Part {
                        what: What::NoResult { id: slot.id },
                        from: None,
                        block: None,
                    }
                }
            };
            results[slot.turn].push(part);
        }
        let mut turns = Vec::with_capacity(self.turns.len() * 2);
        for (turn, mut results) in self.turns.into_iter().zip(results) {
            turns.push(turn);
            if !results.is_empty() {
                // Stable: what has no place in the source keeps the order of the calls, at the end.
                results.sort_by_key(Part::order);
                turns.push(Turn {
                    speaker: Speaker::Results,
                    parts: results,
                });
            }
        }
        Draft { turns }
    }
}

fn plain<'a>(index: usize, at: usize, block: &'a Block) -> Part<'a> {
    Part {
        what: What::Block(&block.content),
        from: Some((index, at)),
        block: Some(block),
    }
}

fn is_id_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// A call in words.
pub(super) fn describe(call: &ToolCall) -> String {
    let input = match &call.input {
        ToolInput::Json(raw) => raw.as_str().to_owned(),
        ToolInput::Text(text) => text.decode().into_owned(),
    };
    format!("[{} {input}]", call.name)
}

/// A result in words.
pub(super) fn plain_result(result: &ToolResult) -> String {
    let texts: Vec<_> = result
        .texts()
        .filter(|text| text.encoded_len() > 0)
        .map(|text| text.decode())
        .collect();
    texts.join("\n")
}

/// A compaction in words.
pub(super) fn earlier(text: &throughline_transcript::json::Text) -> String {
    format!("{EARLIER}{text}")
}
