//! OpenHands event logs: the events of the agent SDK, and the numbered events of the classic server.
//!
//! Input is one file of events, or the files of an `events` folder one after the other, optionally with the
//! conversation's `base_state.json`. The summary of a condensation replaces the events that it forgot, as the model
//! saw it. Events that only concern the interface are skipped.

mod classic;
mod sdk;

use std::collections::{HashMap, HashSet};

use bytestring::ByteString;
use throughline_transcript::conversation::{CompactionMark, Conversation};
use throughline_transcript::json::{Kind, Raw, Text};
use throughline_transcript::message::{Author, Block, Content, Message, Role, ToolResult};

use crate::document::{Document, has_any};
use crate::formats::chat_message::string;
use crate::formats::rows::rows;
use crate::formats::times;
use crate::formats::{Format, Probe};
use crate::source::add_skipped;
use crate::source::{ReadError, SkippedPart, Source, SourceText};

pub(crate) struct OpenHands;

impl Format for OpenHands {
    fn name(&self) -> &'static str {
        "openhands"
    }

    fn about(&self) -> &'static str {
        "OpenHands event logs (SDK and classic)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let Some(glance) = probe.glance() else {
            return 0;
        };
        if glance.any(&["kind"], sdk::is_kind) && glance.has("source") && glance.has("id") {
            return 96;
        }
        let is_source = |value: &str| matches!(value, "user" | "agent" | "environment");
        let has_events = |place: &[&str]| {
            let at = |key| [place, &[key]].concat();
            glance.any(&at("source"), is_source)
                && (glance.has_path(&at("action")) || glance.has_path(&at("observation")))
                && (glance.has_path(&at("args"))
                    || glance.has_path(&at("extras"))
                    || glance.has_path(&at("cause")))
        };
        if has_events(&[]) || has_events(&["history"]) || has_events(&["trajectory"]) {
            94
        } else {
            0
        }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let (events, mut skipped) = events(source);
        let mut log = Log::default();
        for (line, raw) in events {
            if !log.add(&raw, line) {
                add_skipped(&mut skipped, line, raw.len(), "not an event");
            }
        }
        let conversation = log.into_conversation();
        if conversation.messages.is_empty() && conversation.system.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "no event with `kind`, `action` or `observation` in it".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations: vec![conversation],
            skipped,
        })
    }
}

/// A key that every event has and no part of one.
const KEYS: &[&str] = &["source"];

/// The events of a file: its rows, or the `history` or `trajectory` of an object (results of evaluations).
fn events(source: &SourceText) -> (Vec<(usize, Raw)>, Vec<SkippedPart>) {
    let found = rows(source, KEYS);
    if found.rows.len() <= 1
        && let Ok(whole) = Document::read(source, &[], "", has_any(KEYS))
        && let Some(list) = whole.array("history").or_else(|| whole.array("trajectory"))
    {
        return (
            list.into_iter().map(|raw| (0, raw)).collect(),
            whole.skipped,
        );
    }
    (found.rows, found.skipped)
}

/// One event of the log, with what is needed to put it into its place.
struct Event {
    id: ByteString,
    parent: ByteString,
    line: usize,
    at_ms: Option<i64>,
    raw: Raw,
    is_classic: bool,
}

#[derive(Default)]
struct Log {
    events: Vec<Event>,
    conversation: Conversation,
}

/// The effect of a condensation event.
pub(super) struct Condensation {
    pub(super) forgotten: ForgottenEvents,
    pub(super) summary: Option<Text>,
    pub(super) offset: Option<usize>,
}

/// The events that a condensation forgot.
pub(super) enum ForgottenEvents {
    Ids(Vec<ByteString>),
    /// From one number to another, both included.
    Range(u64, u64),
}

impl Log {
    /// Takes one value of the file. False if it is nothing of OpenHands.
    fn add(&mut self, raw: &Raw, line: usize) -> bool {
        let [
            kind,
            id,
            parent,
            timestamp,
            action,
            observation,
            agent,
            workspace,
        ] = raw.fields([
            "kind",
            "id",
            "parent_id",
            "timestamp",
            "action",
            "observation",
            "agent",
            "workspace",
        ]);
        if raw.kind() != Kind::Object {
            return false;
        }
        let is_classic = kind.is_none() && (action.is_some() || observation.is_some());
        if kind.is_none() && !is_classic {
            let Some(agent) = agent else {
                return false;
            };
            // `base_state.json`
            let model = agent.field("llm").and_then(|llm| llm.string_field("model"));
            self.conversation.model = model;
            self.conversation.cwd = workspace.and_then(|place| place.string_field("working_dir"));
            self.conversation.id = id.as_ref().map(string).unwrap_or_default().to_string();
            return true;
        }
        self.events.push(Event {
            id: id.as_ref().map(string).unwrap_or_default(),
            parent: parent.as_ref().map(string).unwrap_or_default(),
            line,
            at_ms: timestamp.as_ref().and_then(times::from_seconds),
            raw: raw.clone(),
            is_classic,
        });
        true
    }

    fn into_conversation(mut self) -> Conversation {
        self.keep_active_branch();
        let condensed: Vec<Condensation> = self
            .events
            .iter()
            .filter_map(|event| {
                if event.is_classic {
                    classic::condensation(&event.raw)
                } else {
                    sdk::condensation(&event.raw)
                }
            })
            .collect();
        let (mut ids, mut ranges) = (HashSet::new(), Vec::new());
        for condensation in &condensed {
            match &condensation.forgotten {
                ForgottenEvents::Ids(list) => ids.extend(list.iter().cloned()),
                ForgottenEvents::Range(from, to) => ranges.push((*from, *to)),
            }
        }
        let ranges = merged(ranges);
        self.events
            .retain(|event| !ids.contains(&event.id) && !is_in(&ranges, &event.id));

        // Each summary includes the one before it, so the last one replaces all.
        let summary = condensed
            .into_iter()
            .rev()
            .find_map(|condensed| Some((condensed.summary?, condensed.offset)));
        let mut writer = Writer::new(self.conversation);
        let mut shown = 0;
        let mut summary = summary;
        for event in &self.events {
            let is_shown = if event.is_classic {
                classic::is_shown(&event.raw)
            } else {
                sdk::is_shown(&event.raw)
            };
            if is_shown {
                // Without an offset the summary goes where the forgotten events began: after the first request.
                if let Some((_, offset)) = &summary
                    && offset.map_or(writer.has_request, |offset| shown >= offset)
                    && let Some((text, _)) = summary.take()
                {
                    writer.summary(text);
                }
                shown += 1;
            }
            writer.event = (event.line, event.at_ms);
            if event.is_classic {
                classic::write(event.id.clone(), &event.raw, &mut writer);
            } else {
                sdk::write(event.id.clone(), &event.raw, &mut writer);
            }
        }
        if let Some((text, _)) = summary {
            writer.summary(text);
        }
        writer.conversation
    }

    /// Events name their parent; without one it is the event before. What does not lead to the last event is a branch
    /// that was given up.
    fn keep_active_branch(&mut self) {
        if self.events.iter().all(|event| event.parent.is_empty()) {
            return;
        }
        let places: HashMap<ByteString, usize> = self
            .events
            .iter()
            .enumerate()
            .map(|(place, event)| (event.id.clone(), place))
            .collect();
        let mut is_active = vec![false; self.events.len()];
        let mut at = self.events.len().checked_sub(1);
        while let Some(place) = at {
            if std::mem::replace(&mut is_active[place], true) {
                break; // a circle
            }
            let parent = &self.events[place].parent;
            at = match places.get(parent).filter(|_| !parent.is_empty()) {
                Some(parent) => Some(*parent),
                None => place.checked_sub(1),
            };
        }
        let mut flags = is_active.into_iter();
        self.events.retain(|_| flags.next().unwrap_or(true));
    }
}

/// Sorted ranges that do not overlap.
fn merged(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (from, to) in ranges {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

fn is_in(ranges: &[(u64, u64)], id: &str) -> bool {
    let Ok(number) = id.parse::<u64>() else {
        return false;
    };
    let place = ranges.partition_point(|(from, _)| *from <= number);
    place > 0 && number <= ranges[place - 1].1
}

/// Puts events together to messages.
pub(super) struct Writer {
    pub(super) conversation: Conversation,
    /// Line and time of the event that is being written.
    event: (usize, Option<i64>),
    has_request: bool,
    /// The assistant message that each answer of the model became.
    answers: HashMap<ByteString, usize>,
}

impl Writer {
    fn new(conversation: Conversation) -> Self {
        Self {
            conversation,
            event: (0, None),
            has_request: false,
            answers: HashMap::new(),
        }
    }

    fn summary(&mut self, text: Text) {
        if text.is_blank() {
            return;
        }
        self.conversation.compactions.push(CompactionMark {
            before_message: self.conversation.messages.len(),
            tokens_before: None,
            trigger: None,
        });
        let mut message = Message::new(Role::User, vec![Block::text(text)]);
        message.author = Author::Compaction;
        self.conversation.messages.push(message);
    }

    /// Adds a message, unless it is empty.
    pub(super) fn push(
        &mut self,
        role: Role,
        author: Author,
        blocks: Vec<Block>,
        id: ByteString,
        raw: &Raw,
    ) {
        if blocks.is_empty() {
            return;
        }
        let mut message = Message::new(role, blocks);
        message.author = author;
        message.id = Some(id).filter(|id| !id.is_empty());
        message.position.line = self.event.0;
        message.at_ms = self.event.1;
        message.raw = Some(raw.clone());
        self.has_request |= message.begins_turn();
        self.conversation.messages.push(message);
    }

    /// Adds blocks of the model. Actions of one answer (parallel calls) are one message, even if the first results
    /// are already between them.
    pub(super) fn answer(&mut self, answer: &str, blocks: Vec<Block>, id: ByteString, raw: &Raw) {
        if let Some(place) = self.answers.get(answer)
            && let Some(message) = self.conversation.messages.get_mut(*place)
        {
            message.blocks.extend(blocks);
            message.raw = None; // It is more than one event now.
            return;
        }
        if !answer.is_empty() && !blocks.is_empty() {
            self.answers
                .insert(answer.into(), self.conversation.messages.len());
        }
        self.push(Role::Assistant, Author::Role, blocks, id, raw);
    }

    pub(super) fn result(
        &mut self,
        call_id: ByteString,
        content: Vec<Block>,
        is_error: Option<bool>,
        id: ByteString,
        raw: &Raw,
    ) {
        let block = Block::new(Content::ToolResult(ToolResult {
            call_id,
            content,
            is_error,
            is_server_side: false,
        }));
        self.push(Role::Tool, Author::Role, vec![block], id, raw);
    }
}

#[cfg(test)]
mod tests;
