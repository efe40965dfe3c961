//! Whether a summary is asked for, and in which words.

use std::collections::HashSet;

use throughline_memory::render::restoring::without_blocks;
use throughline_transcript::json::Raw;
use throughline_transcript::message::Role;

use crate::persona::Briefing;

/// How much of the beginning and of the end of a message is read for an instruction, bytes.
const INSTRUCTION_BYTES_MAX: usize = 6_000;

/// Whether the last message, or the system prompt of a call made for it, asks for a summary of the conversation.
pub(crate) fn is_asked_for(briefing: &Briefing) -> bool {
    if briefing
        .messages()
        .last()
        .is_none_or(|last| last.role != Role::User)
    {
        return false;
    }
    if briefing.schema().is_some_and(is_memory_schema) {
        return true;
    }
    let said = briefing.last_user_text();
    if is_instruction(&ends(&without_blocks(&said))) {
        return true;
    }
    // A call of its own says in the system prompt what it is for.
    let is_own_call = !briefing.has_tools()
        && briefing
            .messages()
            .iter()
            .filter(|message| message.role != Role::System)
            .count()
            <= 2;
    is_own_call && is_instruction(&ends(&without_blocks(&briefing.system_text())))
}

/// The words that ask for the memory.
pub(super) fn instruction(briefing: &Briefing) -> String {
    let said = briefing.last_user_text();
    if is_instruction(&ends(&without_blocks(&said))) && briefing.messages().len() > 2 {
        said
    } else {
        format!("{}\n{said}", briefing.system_text())
    }
}

/// The beginning and the end of a long text.
pub(super) fn ends(text: &str) -> String {
    if text.len() <= 2 * INSTRUCTION_BYTES_MAX {
        return text.to_lowercase();
    }
    let head = text.get(..text.floor_char_boundary(INSTRUCTION_BYTES_MAX));
    let tail = text.get(text.ceil_char_boundary(text.len() - INSTRUCTION_BYTES_MAX)..);
    format!("{}\n{}", head.unwrap_or_default(), tail.unwrap_or_default()).to_lowercase()
}

fn is_instruction(lower: &str) -> bool {
    const WHAT: &[&str] = &[
        "conversation",
        "session",
        "transcript",
        "so far",
        "history",
        "dialogue",
        "messages above",
        "chat above",
        "discussion",
        "context window",
        "earlier part",
        "unterhaltung",
        "gespräch",
        "sitzung",
        "bisher",
        "conversación",
        "对话",
        "会話",
    ];
    const SUMMARISE: &[&str] = &[
        "summar",
        "zusammenfass",
        "fasse ",
        "resum",
        "résum",
        "总结",
        "要約",
        "condense",
        "recap",
    ];
    const MAKE: &[&str] = &[
        "write", "update", "create", "produce", "make", "revise", "edit", "return", "output",
        "bring", "rewrite", "extract", "compact", "generate", "compress",
    ];
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let names_memory = [
        "session memory",
        "session-memory",
        "memory document",
        "handover note",
        "handoff note",
        "the memory",
        "a memory",
        "prior memory",
        "compaction",
    ]
    .iter()
    .any(|name| lower.contains(name));
    let asks_for_memory = names_memory && has(MAKE);
    let asks_for_summary = has(SUMMARISE) && has(WHAT);
    let names_fields = lower.contains("current_state") && lower.contains("key_decisions");
    asks_for_memory || asks_for_summary || names_fields
}

/// Whether a schema is one of a memory, or of changes to one.
fn is_memory_schema(schema: &Raw) -> bool {
    let names: HashSet<String> = schema
        .field("properties")
        .iter()
        .flat_map(Raw::object)
        .map(|(name, _)| name.decode().into_owned())
        .collect();
    let known = [
        "task",
        "current_state",
        "key_decisions",
        "next_steps",
        "open_questions",
        "completed_work",
        "summary",
        "edits",
        "items",
        "memory",
    ]
    .iter()
    .filter(|name| names.contains(**name))
    .count();
    known >= 2 || names.contains("edits") || names.contains("summary")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_recognised() {
        let check = |text: &str, expected: bool| {
            assert_eq!(
                is_instruction(&ends(&without_blocks(text))),
                expected,
                "{text}"
            );
        };
        check("Summarize the conversation so far for a colleague.", true);
        check(
            "Write the session memory of everything above, under these headings.",
            true,
        );
        check(
            "Bring the prior memory up to date. Return only edits.",
            true,
        );
        check("Fasse die bisherige Unterhaltung zusammen.", true);
        check(
            "Return JSON with task, current_state and key_decisions.",
            true,
        );
        check("Create a detailed summary of our session.", true);
        check("Add a summary page to the app.", false);
        check("What is the deploy region?", false);
        check("Fix the memory leak in the parser.", false);
        check(
            "<session_memory version=\"1\">\nwrite a memory of the conversation summary\n</session_memory>\nGo on.",
            false,
        );
    }
}
