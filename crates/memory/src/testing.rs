//! Memories for tests: built by hand, and arbitrary ones.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use throughline_transcript::digest::Digest;

use crate::document::{
    Cover, Entry, Item, Memory, Origin, Provenance, RequestKind, Section, Status,
};

/// 2026-03-04, at noon UTC.
pub(crate) const NOON_MS: i64 = 1_772_625_600_000;

/// An item that holds, said by `origin` in `message`.
pub(crate) fn item(origin: Origin, message: usize, entry: Entry) -> Item {
    Item {
        id: Item::id_for(entry.section(), message, entry.text()),
        entry,
        origin,
        provenance: Provenance {
            message,
            at_ms: Some(NOON_MS),
        },
        status: Status::Active,
        touched: 1,
    }
}

/// A first version that covers 40 messages.
pub(crate) fn memory(mut items: Vec<Item>) -> Memory {
    items.sort_by_key(|item| item.entry.section());
    Memory {
        version: 1,
        cover: Cover {
            messages: 40,
            turns: 12,
            digest: Digest::from_bytes([0xd1; 32]),
            until_ms: Some(NOON_MS),
        },
        language: Some("eng".to_owned()),
        items,
    }
}

/// An entry with one text.
pub(crate) fn entry(section: Section, text: &str) -> Entry {
    let text = text.to_owned();
    match section {
        Section::Task => Entry::Task { text, answer: None },
        Section::CurrentState => Entry::CurrentState { text },
        Section::CompletedWork => Entry::CompletedWork { text },
        Section::KeyDecisions => Entry::KeyDecision {
            decision: text,
            reason: None,
            constraint: None,
        },
        Section::EliminatedApproaches => Entry::EliminatedApproach {
            approach: text,
            reason_ruled_out: None,
        },
        Section::Errors => Entry::Error {
            text,
            resolution: None,
        },
        Section::Corrections => Entry::Correction { text },
        Section::OpenQuestions => Entry::OpenQuestion { text },
        Section::NextSteps => Entry::NextStep {
            text,
            requested: RequestKind::Explicit,
        },
        Section::RelevantToolResults => Entry::ToolResult {
            key: "result".to_owned(),
            summary: text,
        },
        Section::References => Entry::Reference { text },
    }
}

/// Texts as people and tools write them, with what could break a rendering.
pub(crate) fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Zäß日本語 ./_-]{0,12}",
        1 => any::<char>().prop_map(String::from),
        1 => prop::sample::select(vec![
            "\n## User Intent\n",
            "\n# Completed Work",
            "## Key References",
            "```rust\n",
            "~~~\n",
            "---",
            "> ",
            "\n- item\n",
            "</session_memory>",
            "< / SESSION_memory >",
            "<session_memory version=\"9\">",
            "\r\n",
            "\t",
            "\u{1b}[31m",
            "\u{2028}",
            "\u{0}",
            "\"",
            "\\",
            "[tool] ",
        ])
        .prop_map(str::to_owned),
    ];
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let texts = (any_text(), option::of(any_text()), option::of(any_text()));
    (
        prop::sample::select(Section::ALL.to_vec()),
        texts,
        any::<bool>(),
    )
        .prop_map(|(section, (first, second, third), is_explicit)| {
            match entry(section, &first) {
                Entry::KeyDecision { decision, .. } => Entry::KeyDecision {
                    decision,
                    reason: second,
                    constraint: third,
                },
                Entry::EliminatedApproach { approach, .. } => Entry::EliminatedApproach {
                    approach,
                    reason_ruled_out: second,
                },
                Entry::Error { text, .. } => Entry::Error {
                    text,
                    resolution: second,
                },
                Entry::ToolResult { summary, .. } => Entry::ToolResult {
                    key: second.unwrap_or_default(),
                    summary,
                },
                Entry::NextStep { text, .. } => Entry::NextStep {
                    text,
                    requested: if is_explicit {
                        RequestKind::Explicit
                    } else {
                        RequestKind::Implied
                    },
                },
                entry => entry,
            }
        })
}

fn any_origin() -> impl Strategy<Value = Origin> {
    prop::sample::select(vec![
        Origin::User,
        Origin::Assistant,
        Origin::Tool,
        Origin::Code,
    ])
}

/// Any memory with unique ids and its items in the order of the sections; what supersedes an item may be missing,
/// occur anywhere, or form a ring.
pub(crate) fn any_memory() -> impl Strategy<Value = Memory> {
    let status = prop_oneof![
        3 => Just(None),
        1 => Just(Some(None)),
        2 => (0_usize..16).prop_map(|index| Some(Some(index))),
    ];
    let parts = (
        any_entry(),
        any_origin(),
        any::<usize>(),
        option::of(any::<i64>()),
        status,
        any::<u32>(),
    );
    (
        vec(parts, 0..12),
        any::<u32>(),
        any::<(usize, usize)>(),
        option::of(any::<i64>()),
        option::of("[a-z]{3}|\"><x"),
    )
        .prop_map(|(parts, version, (messages, turns), until_ms, language)| {
            let mut items: Vec<Item> = parts
                .into_iter()
                .enumerate()
                .map(
                    |(index, (entry, origin, message, at_ms, status, touched))| Item {
                        id: format!("i{index}"),
                        entry,
                        origin,
                        provenance: Provenance { message, at_ms },
                        status: match status {
                            None => Status::Active,
                            Some(None) => Status::Resolved,
                            Some(Some(by)) => Status::SupersededBy(format!("i{by}")),
                        },
                        touched,
                    },
                )
                .collect();
            items.sort_by_key(|item| item.entry.section());
            Memory {
                version,
                cover: Cover {
                    messages,
                    turns,
                    digest: Digest::from_bytes([messages as u8; 32]),
                    until_ms,
                },
                language,
                items,
            }
        })
}
