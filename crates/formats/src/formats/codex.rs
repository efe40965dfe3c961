//! Codex CLI rollouts: JSONL with a record of everything that the client did.
//!
//! Messages, calls and results are `response_item` lines. `event_msg` lines repeat them for the user interface; only
//! token counts, rollbacks and the files of a patch are taken from them (and the messages, in a file that has no items
//! at all). A `compacted` line replaces for the model what was before; here the originals stay and a mark says where it
//! was. A file may continue another one, which has the messages before it: then a note names that.

mod item;
mod patch;

use throughline_transcript::conversation::{CompactionMark, Conversation, Problem};
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Author, Block, Content, Message, Role};
use throughline_transcript::usage::Usage;

use crate::formats::place::Place;
use crate::formats::rollback::note_left_out;
use crate::formats::{Format, Probe, anthropic_content, times};
use crate::lines::Lines;
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &[
    "replacement_history",
    "rate_limits",
    "sandbox_policy",
    "git",
    "metadata",
    "dynamic_tools",
];

/// Rollout files of Codex CLI.
pub(super) struct Codex;

impl Format for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn about(&self) -> &'static str {
        "Codex CLI rollout (JSONL)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        probe.best_record(|record| {
            let has = |key| record.field(key).is_some();
            match record.string_field("type").as_deref() {
                Some(
                    "session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted",
                ) if has("payload") => 97,
                // The first versions wrote the items without a wrapper, after a head without a type.
                None if has("id") && has("timestamp") && has("instructions") => 70,
                _ => 0,
            }
        })
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let mut rollout = Rollout::default();
        let mut lines = Lines::new(source, OPAQUE);
        lines.read_records("not a record of a Codex rollout", |record, line| {
            rollout.add(record, line)
        });
        if !rollout.is_found {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no record of a rollout".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations: vec![rollout.into_conversation()],
            skipped: lines.into_skipped(),
        })
    }
}

#[derive(Default)]
struct Rollout {
    conversation: Conversation,
    is_found: bool,
    has_head: bool,
    /// The last message is a response that is still being written down.
    is_response_open: bool,
    /// Messages from events, for files without items.
    events: Vec<Message>,
    /// Messages from the events of newer versions, which write both kinds.
    completed: Vec<Message>,
    patches: patch::Patches,
    has_items: bool,
    rolled_back: usize,
    /// Indices of the messages that begin a turn.
    turns: Vec<usize>,
    /// Index of the last response.
    last_response: Option<usize>,
    /// What the last call used.
    last_usage: Option<Usage>,
}

impl Rollout {
    /// Adds a record; `false` if it is none of a rollout.
    fn add(&mut self, record: View<'_>, line: usize) -> bool {
        let place = Place {
            line,
            at_ms: record.field("timestamp").and_then(times::from_milliseconds),
            id: None,
        };
        let is_known = match (
            record.string_field("type").as_deref(),
            record.field("payload"),
        ) {
            (Some("session_meta"), Some(payload)) => self.add_head(payload),
            (Some("response_item"), Some(item)) => self.add_item(item, &place),
            (Some("event_msg"), Some(event)) => self.add_event(event, &place),
            (Some("compacted"), Some(payload)) => self.add_compaction(payload, &place),
            (Some("turn_context"), Some(payload)) => {
                let text = |key| payload.string_field(key).map(|text| text.into_owned());
                self.conversation.model = text("model").or(self.conversation.model.take());
                if self.conversation.cwd.is_none() {
                    self.conversation.cwd = text("cwd");
                }
                true
            }
            // World states, token records and kinds of newer versions.
            (Some(_), Some(_)) => true,
            (Some(_), None) => item::is_item(record) && self.add_item(record, &place),
            (None, None) if record.field("instructions").is_some() => self.add_head(record),
            (None, None) => record.field("record_type").is_some(),
            (None, Some(_)) => false,
        };
        self.is_found |= is_known;
        is_known
    }

    /// The head of the session; a fork repeats that of its parent behind its own.
    fn add_head(&mut self, head: View<'_>) -> bool {
        if self.has_head {
            return true;
        }
        self.has_head = true;
        let text = |key| head.string_field(key).map(|text| text.into_owned());
        self.conversation.id = text("id").unwrap_or_default();
        self.conversation.cwd = text("cwd");
        self.conversation.parent_id = head
            .field("source")
            .and_then(|source| source.field("subagent")?.field("thread_spawn"))
            .and_then(|spawn| Some(spawn.string_field("parent_thread_id")?.into_owned()));
        if let Some(base) = head.field("history_base").filter(|base| !base.is_null()) {
            let id = ["thread_id", "id", "rollout_id"]
                .iter()
                .find_map(|key| base.string_field(key))
                .or_else(|| base.decode())
                .unwrap_or_default();
            self.conversation.problems.push(Problem {
                code: "earlier-history",
                message: 0,
                text: format!(
                    "the file continues the rollout {id:?}; the messages before this one are in that file"
                ),
            });
        }
        let instructions = head
            .field("base_instructions")
            .and_then(|instructions| instructions.field("text"))
            .or_else(|| head.field("instructions"))
            .and_then(View::as_text);
        self.conversation.system = instructions.map(Block::text).into_iter().collect();
        true
    }

    fn add_item(&mut self, item: View<'_>, place: &Place) -> bool {
        let Some(mut found) = item::read(item) else {
            return true;
        };
        self.has_items = true;
        if found.author == Author::Compaction {
            self.mark_compaction();
        }
        let messages = &mut self.conversation.messages;
        // The items of one response are one message.
        if found.role == Role::Assistant
            && self.is_response_open
            && let Some(open) = messages.last_mut()
        {
            open.blocks.append(&mut found.blocks);
            open.raw = None;
            return true;
        }
        self.is_response_open = found.role == Role::Assistant;
        for message in item::parted(found) {
            if message.begins_turn() {
                self.turns.push(messages.len());
            }
            if message.role == Role::Assistant {
                self.last_response = Some(messages.len());
            }
            messages.push(place.put(message));
        }
        true
    }

    fn add_event(&mut self, event: View<'_>, place: &Place) -> bool {
        let Some(kind) = event.string_field("type") else {
            return false;
        };
        let mut told = |role, content: Option<Content>| {
            if let Some(content) = content {
                let message = Message::new(role, vec![Block::new(content)]);
                self.events.push(place.put(message));
            }
        };
        let text = |key| event.field(key).and_then(View::as_text);
        match kind.as_ref() {
            "user_message" => told(Role::User, text("message").map(Content::Text)),
            "agent_message" => told(Role::Assistant, text("message").map(Content::Text)),
            "agent_reasoning" => told(Role::Assistant, text("text").map(Content::Thinking)),
            "token_count" => {
                let usage = event
                    .field("info")
                    .and_then(|info| info.field("last_token_usage"))
                    .and_then(usage);
                let response = self
                    .last_response
                    .and_then(|index| self.conversation.messages.get_mut(index));
                self.last_usage = usage.or(self.last_usage);
                if let (Some(usage), Some(response)) = (usage, response) {
                    // The count comes when the response is whole.
                    self.is_response_open = false;
                    response.usage = Some(usage);
                }
            }
            "item_completed" => {
                let found = event.field("item").and_then(completed_item);
                self.completed
                    .extend(found.map(|message| place.put(message)));
            }
            "patch_apply_end" => self.patches.note(event, self.conversation.messages.len()),
            "thread_rolled_back" => {
                let turns = event.field("num_turns").and_then(View::as_u64).unwrap_or(0);
                self.roll_back(turns);
            }
            _ => {}
        }
        true
    }

    fn roll_back(&mut self, turns: u64) {
        let conversation = &mut self.conversation;
        for _ in 0..turns {
            let Some(start) = self.turns.pop() else {
                break;
            };
            self.rolled_back += conversation.messages.len() - start;
            conversation.messages.truncate(start);
        }
        let end = conversation.messages.len();
        while let Some(mark) = conversation.compactions.last()
            && mark.before_message > end
        {
            conversation.compactions.pop();
        }
        self.last_response = self.last_response.filter(|index| *index < end);
        self.is_response_open = false;
    }

    fn add_compaction(&mut self, payload: View<'_>, place: &Place) -> bool {
        self.mark_compaction();
        self.is_response_open = false;
        let summary = payload
            .field("message")
            .and_then(View::as_text)
            .filter(|summary| !summary.is_blank());
        if let Some(summary) = summary {
            let mut message = Message::new(Role::User, vec![Block::text(summary)]);
            message.author = Author::Compaction;
            self.conversation.messages.push(place.put(message));
        }
        true
    }

    fn mark_compaction(&mut self) {
        let conversation = &mut self.conversation;
        let at = conversation.messages.len();
        let is_marked = conversation
            .compactions
            .last()
            .is_some_and(|mark| mark.before_message == at || mark.before_message + 1 == at);
        if is_marked {
            return;
        }
        conversation.compactions.push(CompactionMark {
            before_message: at,
            tokens_before: self.last_usage.map(|usage| usage.prompt() + usage.output),
            trigger: None,
        });
    }

    fn into_conversation(self) -> Conversation {
        let mut conversation = self.conversation;
        if self.has_items {
            self.patches.complete(&mut conversation.messages);
        } else if self.events.is_empty() {
            conversation.messages = self.completed;
        } else {
            conversation.messages = self.events;
        }
        note_left_out(&mut conversation, self.rolled_back, "rolled back");
        conversation
    }
}

/// What the person or the model said, as an event has it.
fn completed_item(item: View<'_>) -> Option<Message> {
    let role = match item.string_field("type")?.as_ref() {
        "UserMessage" => Role::User,
        "AgentMessage" => Role::Assistant,
        _ => return None,
    };
    let texts = item.field("content")?.elements();
    let blocks: Vec<Block> = texts
        .filter_map(|part| Some(Block::text(part.field("text")?.as_text()?)))
        .collect();
    (!blocks.is_empty()).then(|| Message::new(role, blocks))
}

/// Input counts include what was read from the cache, output counts include reasoning.
fn usage(value: View<'_>) -> Option<Usage> {
    let tokens = |key| anthropic_content::tokens(value, key);
    let cached = tokens("cached_input_tokens");
    let usage = Usage {
        uncached: tokens("input_tokens").saturating_sub(cached),
        cache_write: 0,
        cache_write_long: 0,
        cache_read: cached,
        output: tokens("output_tokens"),
    };
    (usage != Usage::default()).then_some(usage)
}

#[cfg(test)]
mod tests;
