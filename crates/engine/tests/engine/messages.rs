//! Messages for tests.

use throughline_transcript::json::Raw;
use throughline_transcript::wire::Wire;

/// The model calls tools, in parallel.
pub(crate) fn calls(wire: Wire, ids: &[&str]) -> Vec<Raw> {
    let parsed = |text: String| Raw::parse(text).unwrap();
    match wire {
        Wire::Anthropic => {
            let blocks: Vec<_> = ids
                .iter()
                .map(|id| {
                    format!(r#"{{"type":"tool_use","id":"{id}","name":"shell","input":{{"cmd":"ls {id}"}}}}"#)
                })
                .collect();
            vec![parsed(format!(
                r#"{{"role":"assistant","content":[{}]}}"#,
                blocks.join(",")
            ))]
        }
        Wire::OpenAiChat => {
            let calls: Vec<_> = ids
                .iter()
                .map(|id| {
                    format!(r#"{{"id":"{id}","type":"function","function":{{"name":"shell","arguments":"{{\"cmd\":\"ls {id}\"}}"}}}}"#)
                })
                .collect();
            vec![parsed(format!(
                r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#,
                calls.join(",")
            ))]
        }
        Wire::OpenAiResponses => ids
            .iter()
            .map(|id| {
                parsed(format!(
                    r#"{{"type":"function_call","call_id":"{id}","name":"shell","arguments":"{{\"cmd\":\"ls {id}\"}}"}}"#
                ))
            })
            .collect(),
    }
}

/// This many words, without repeats.
pub(crate) fn prose(seed: u64, words: usize) -> String {
    const WORDS: [&str; 24] = [
        "parser", "reads", "the", "file", "then", "writes", "a", "table", "of", "dates", "which",
        "somebody", "checks", "by", "hand", "before", "lunch", "and", "sends", "north", "with",
        "three", "copies", "kept",
    ];
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut text = String::new();
    for index in 0..words {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if index > 0 {
            text.push_str(if index % 12 == 0 { ".\n" } else { " " });
        }
        text.push_str(WORDS[(state % 24) as usize]);
    }
    text.push('.');
    text
}
