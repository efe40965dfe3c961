//! Claude Code session files: JSONL, one line for each content block.
//!
//! The file is a log, not a list of messages. Lines form a tree by `parentUuid`; one response of the model is spread
//! over several lines that all repeat its usage; results of parallel calls are on side branches; lines of hooks are in
//! the middle of the chain; sub-agents write into the same file. [`record`] reads one line, [`history`] assembles the
//! conversations.
//!
//! A compaction of the tool itself starts a new root. For the model the history begins there; here it does not: all
//! original messages are kept, and a [`CompactionMark`](throughline_transcript::conversation::CompactionMark) says where it was.

mod gather;
mod history;
mod links;
mod record;
mod session;

use throughline_transcript::json::tape::View;

use crate::formats::{Format, Probe};
use crate::lines::Lines;
use crate::source::{ReadError, Source, SourceText};

/// Values that are never looked into: copies of results, file snapshots, hook data, arguments of calls.
const OPAQUE: &[&str] = &[
    "toolUseResult",
    "tool_use_result",
    "snapshot",
    "data",
    "input",
    "todos",
    "hookInfos",
];

/// Session files of Claude Code, and its `stream-json` output.
pub(super) struct ClaudeCode;

impl Format for ClaudeCode {
    fn name(&self) -> &'static str {
        "claude-code"
    }

    fn about(&self) -> &'static str {
        "Claude Code session (JSONL)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        probe.best_record(certainty)
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let mut lines = Lines::new(source, OPAQUE);
        let mut history = history::History::default();
        while let Some(line) = lines.advance() {
            match record::read(lines.record(), line) {
                Some(record) => history.add(record),
                None => lines.reject("not a record of Claude Code"),
            }
        }
        let conversations = history.into_conversations();
        if conversations.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no line with a user or assistant message".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations,
            skipped: lines.into_skipped(),
        })
    }
}

fn certainty(record: View<'_>) -> u8 {
    let has = |key| record.field(key).is_some();
    match record.string_field("type").as_deref() {
        Some("user" | "assistant" | "system" | "progress" | "attachment") => {
            if has("sessionId") && has("uuid") {
                97
            } else if has("session_id") && (has("message") || has("subtype")) {
                90
            } else {
                0
            }
        }
        Some("summary") if has("leafUuid") => 90,
        Some(
            "file-history-snapshot" | "file-history-delta" | "queue-operation" | "last-prompt",
        ) => 80,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
