//! The formats that can be read.
//!
//! To add one, write a file beside the others, declare it here and name it in [`ALL`]. Nothing else knows the formats
//! one by one. (A macro could do both lines at once, but then rustfmt would not find the files.)

mod ai_sdk;
mod aider;
mod amp;
mod atif;
mod chatgpt;
mod claude_ai;
mod claude_code;
mod cline;
mod codex;
mod codex_exec;
mod copilot_cli;
mod crush;
mod cursor;
mod dialogue;
mod droid;
mod finetune;
mod gemini;
mod goose;
mod kimi;
mod langchain;
mod langsmith;
mod lm_studio;
mod mini_swe_agent;
mod neutral;
mod open_webui;
mod opencode;
mod openhands;
mod pi;
mod qwen;
mod request;
mod sharegpt;
mod specstory;
mod swe_agent;
mod tau_bench;
mod vscode_chat;

// What several of them need.
mod anthropic_content;
mod chat_message;
mod glance;
mod parts;
mod place;
mod probe;
mod rollback;
mod rows;
mod times;

#[cfg(test)]
mod recognition;
#[cfg(test)]
mod testing;

use crate::source::{ReadError, Source, SourceText};

/// One session-file or request format.
///
/// A format is a value without state. It recognises a text by [`Format::fits`] and reads it by [`Format::read`].
pub trait Format: Sync {
    /// Name in `--from` and in reports, such as `claude-code`.
    fn name(&self) -> &'static str;

    /// What it is, in a few words, for help texts.
    fn about(&self) -> &'static str;

    /// How sure the format is that `probe` is its own, 0 (no) to 100 (nothing else looks like it).
    fn fits(&self, probe: &Probe<'_>) -> u8;

    /// Reads everything that can be read. What the text itself has passed over ([`SourceText::skipped`]) is not told
    /// again.
    ///
    /// # Errors
    /// [`ReadError::NotThatFormat`] if there is nothing of this format in it.
    fn read(&self, source: &SourceText) -> Result<Source, ReadError>;
}

pub use self::probe::Probe;

/// All formats, in the order in which they are asked.
pub static ALL: &[&dyn Format] = &[
    &request::ANTHROPIC,
    &request::OPENAI_CHAT,
    &request::OPENAI_RESPONSES,
    &claude_code::ClaudeCode,
    &cline::Cline,
    &codex::Codex,
    &codex_exec::CodexExec,
    &gemini::Gemini,
    &opencode::OpenCode,
    &pi::Pi,
    &copilot_cli::CopilotCli,
    &vscode_chat::VsCodeChat,
    &cursor::Cursor,
    &qwen::Qwen,
    &goose::Goose,
    &crush::Crush,
    &kimi::Kimi,
    &droid::Droid,
    &amp::Amp,
    &ai_sdk::AiSdk,
    &openhands::OpenHands,
    &swe_agent::SweAgent,
    &mini_swe_agent::MiniSweAgent,
    &tau_bench::TauBench,
    &langchain::LangChain,
    &langsmith::LangSmith,
    &atif::Atif,
    &sharegpt::ShareGpt,
    &finetune::FineTune,
    &chatgpt::ChatGpt,
    &claude_ai::ClaudeAi,
    &open_webui::OpenWebUi,
    &lm_studio::LmStudio,
    &aider::Aider,
    &specstory::SpecStory,
    &dialogue::Dialogue,
    &neutral::Neutral,
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::read::read;

    /// Keys and values that the formats look for.
    const WORDS: &[&str] = &[
        "type",
        "user",
        "assistant",
        "system",
        "message",
        "content",
        "role",
        "text",
        "uuid",
        "parentUuid",
        "sessionId",
        "subtype",
        "compact_boundary",
        "compactMetadata",
        "tool_use",
        "tool_result",
        "id",
        "tool_use_id",
        "input",
        "isSidechain",
        "payload",
        "response_item",
        "event_msg",
        "compacted",
        "thread_rolled_back",
        "num_turns",
        "function_call",
        "function_call_output",
        "call_id",
        "arguments",
        "output",
        "session",
        "parentId",
        "compaction",
        "summary",
        "toolCall",
        "messages",
        "info",
        "parts",
        "tool",
        "state",
        "status",
        "completed",
        "revert",
        "messageID",
        "$set",
        "$rewindTo",
        "gemini",
        "toolCalls",
        "result",
        "functionResponse",
        "response",
        "thoughts",
        "history",
        "model",
        "isSummary",
        "ts",
        "timestamp",
        "usage",
        "tokens",
        "input_tokens",
        "name",
        "data",
        "parts",
        "requests",
        "kind",
        "k",
        "v",
        "conversation",
        "working_dir",
        "toolRequest",
        "meta",
        "steps",
        "source",
        "versions",
        "chat",
        "currentId",
        "run_type",
        "inputs",
        "outputs",
        "_usage",
        "composerId",
        "bubbles",
        "user.message",
        "assistant.message",
        "tool.execution_complete",
        "toolCallId",
        "session_start",
        "systemPayload",
        "a",
        "b",
        "c",
        "",
        "<task>go</task>",
        "[read_file for 'a'] Result:",
        "<read_file><path>a</path></read_file>",
    ];

    fn value() -> impl Strategy<Value = String> {
        let word = proptest::sample::select(WORDS);
        let leaf = prop_oneof![
            4 => word.clone().prop_map(|word| format!("{word:?}")),
            1 => Just("null".to_owned()),
            1 => Just("true".to_owned()),
            1 => any::<u64>().prop_map(|number| number.to_string()),
        ];
        leaf.prop_recursive(5, 48, 6, move |inner| {
            let field = (word.clone(), inner.clone()).prop_map(|(key, value)| format!("{key:?}:{value}"));
            prop_oneof![
                3 => proptest::collection::vec(field, 0..6).prop_map(|fields| format!("{{{}}}", fields.join(","))),
                1 => proptest::collection::vec(inner, 0..4).prop_map(|values| format!("[{}]", values.join(","))),
            ]
        })
    }

    /// Every format reads the text or refuses it, and what it gives holds together.
    fn check(bytes: &[u8]) {
        let source = SourceText::from_bytes(bytes.to_vec());
        let _ = read(&source, None);
        for format in ALL {
            format.fits(&Probe::new(&source.text));
            let Ok(found) = format.read(&source) else {
                continue;
            };
            assert_eq!(found.format, format.name());
            for conversation in &found.conversations {
                let length = conversation.messages.len();
                assert!(
                    conversation
                        .compactions
                        .iter()
                        .all(|mark| mark.before_message <= length)
                );
                assert!(
                    conversation
                        .problems
                        .iter()
                        .all(|problem| problem.message <= length)
                );
                // A request body is shown as it is, so that it can be judged.
                let is_request = matches!(
                    format.name(),
                    "anthropic" | "openai-chat" | "openai-responses"
                );
                assert!(
                    is_request
                        || conversation
                            .messages
                            .iter()
                            .all(|message| !message.blocks.is_empty()),
                    "{}: {:?}",
                    format.name(),
                    source.text
                );
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
            check(&bytes);
        }

        /// Pieces that the formats look for, in any order.
        #[test]
        fn any_text_is_survived(text in prop_oneof![
            "(_\\*\\*User\\*\\*_\n|_\\*\\*Agent\\*\\*_\n|<tool-use data-tool-type=\"write\" |data-tool-name=\"é\">|<details>|</details>|</tool-use>|</summary>|```go\n|```\n|`|\n|a|é|<think>|</think>|Tool use: \\*\\*|- \\[x\\] |---){0,40}",
            "(User:|Q:|A: |用户：|\n|#|\\*\\*| |a|é|```|\\[|\\]|12:03|<|>|-|\r\n|\\(|\\)|：){0,40}",
            "(#### |> |```|\n|a|# aider chat started at 2|  |é|>|\r\n|~~~){0,40}",
            "[\\[\\]{}:,\"\\\\a1é \n\u{0}]{0,60}",
        ]) {
            check(text.as_bytes());
        }

        #[test]
        fn a_request_with_noise_in_it_is_survived(
            noise in "[\\[\\]{}:,\"\\\\a-f0-9 \n]{0,64}",
            at in 0usize..200,
        ) {
            let body = r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"é"}]},{"role":"assistant","content":"b"}]}"#;
            let at = body.floor_char_boundary(at);
            check(format!("{}{noise}{}", &body[..at], &body[at..]).as_bytes());
        }

        #[test]
        fn any_records_are_survived(lines in proptest::collection::vec(value(), 0..6), cut in 0usize..40) {
            let text = lines.join("\n");
            check(text.as_bytes());
            check(&text.as_bytes()[..text.len().saturating_sub(cut)]);
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = ALL.iter().map(|format| format.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
