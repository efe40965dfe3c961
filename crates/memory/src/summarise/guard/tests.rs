use std::sync::Arc;

use throughline_transcript::message::{Block, Message, Role};

use super::*;
use crate::summarise::order::Redaction;
use crate::summarise::prompts::Name;

/// A conversation of some length about a CSV export.
fn source() -> Source {
    let say = |role, text: &str| Message::new(role, vec![Block::text(text)]);
    let messages = [
        say(Role::User, "The export must write semicolons, not commas."),
        say(
            Role::Assistant,
            "Done in export.py, function write_rows. Error generating the preview was fixed too.",
        ),
        say(Role::User, &"Sample row 1;2;3. ".repeat(400)),
        say(Role::Assistant, "The sample is read correctly."),
        say(Role::User, "Next: add a header row."),
    ];
    Source::new(&messages, 0, &Redaction::Embedded)
}

fn judge_with(
    wanted: AnswerForm,
    answer: &Answer,
    language: Option<&str>,
    input_tokens: usize,
) -> Result<UsableAnswer, Fault> {
    judge_for(wanted, answer, language, input_tokens, 10_000)
}

fn judge_for(
    wanted: AnswerForm,
    answer: &Answer,
    language: Option<&str>,
    input_tokens: usize,
    memory_tokens_max: usize,
) -> Result<UsableAnswer, Fault> {
    let count: Count = Arc::new(|text: &str| text.len().div_ceil(4));
    static SOURCE: LazyLock<Source> = LazyLock::new(source);
    guard(
        answer,
        &Context {
            wanted,
            language,
            input_tokens,
            memory_tokens_max,
            count: &count,
            prompt: Name::System.embedded(),
            source: &SOURCE,
            prior: "",
        },
    )
}

#[track_caller]
fn check(wanted: AnswerForm, text: &str, expect: &str) {
    let judged = judge_with(wanted, &Answer::finished(text), Some("eng"), 2_000);
    let found = match judged {
        Ok(_) => "fit",
        Err(unfit) => unfit.name(),
    };
    assert_eq!(found, expect, "{text}");
}

const MARKDOWN: &str = "## Goal\nCSV export\n## Decisions\nSemicolons, not commas\n## Files\nexport.py (write_rows)\n## Next\nadd a header row";
const SKELETON: &str = "## Goal\n\n## Decisions\n(none)\n\n## Files\n(none)\n\n## Next\n(none)\n";

#[test]
fn answers_that_are_no_memory() {
    let long_line = "x1".repeat(100_000);
    let circle = format!(
        "{MARKDOWN}\n{}",
        "- the export writes semicolons\n".repeat(80)
    );
    let rows: Vec<(&str, &str)> = vec![
        (MARKDOWN, "fit"),
        // Blank.
        ("", "blank"),
        (" \n\t ", "blank"),
        ("\u{200b}", "blank"),
        ("...", "blank"),
        ("```\n```", "blank"),
        (
            "<thinking>The user wants a summary. Let me think.</thinking>",
            "blank",
        ),
        ("<think>\nHmm, what did they do", "blank"),
        (
            "<analysis>\nA long look.\n</analysis>\n<summary>\n</summary>",
            "blank",
        ),
        // Skeletons.
        (SKELETON, "skeleton"),
        (
            "## User Intent\n## Completed Work\n## Errors & Corrections\n",
            "skeleton",
        ),
        (
            "## User Intent\n- None\n## Pending Tasks\n- N/A\n- ...",
            "skeleton",
        ),
        (
            r#"{"items":[{"section":"current_state","text":"none"},{"section":"next_steps","text":"n/a"}]}"#,
            "skeleton",
        ),
        (r#"{"items":[]}"#, "skeleton"),
        (r#"{"items":[{"section":"task","text":" - "}]}"#, "skeleton"),
        // Errors.
        (
            "Error generating summary: 529 overloaded_error",
            "error_text",
        ),
        ("error while generating summary", "error_text"),
        (
            "An error occurred while generating the summary.",
            "error_text",
        ),
        ("Summary generation failed", "error_text"),
        ("Failed to summarize: timeout", "error_text"),
        ("Summary unavailable", "error_text"),
        ("Older messages were truncated.", "error_text"),
        ("Internal Server Error", "error_text"),
        ("429 Too Many Requests", "error_text"),
        ("HTTP error 503", "error_text"),
        ("Rate limit exceeded, retry later", "error_text"),
        ("request timed out", "error_text"),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "error_text",
        ),
        (r#"{"error":"context length exceeded"}"#, "error_text"),
        ("Fehler beim Erstellen der Zusammenfassung", "error_text"),
        (
            "## Goal\nError generating summary: 529 overloaded_error",
            "error_text",
        ),
        (
            r#"{"items":[{"section":"current_state","text":"Failed to generate summary"}]}"#,
            "error_text",
        ),
        // Refusals.
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("I cannot summarize this conversation.", "refusal"),
        ("I am unable to assist with this request.", "refusal"),
        ("As an AI language model, I do not have memory.", "refusal"),
        ("Es tut mir leid, das kann ich nicht tun.", "refusal"),
        ("申し訳ありませんが、お手伝いできません。", "refusal"),
        // Nothing seen.
        (
            "No conversation was provided. Please share the conversation.",
            "nothing_seen",
        ),
        ("I don't see any conversation to work with.", "nothing_seen"),
        (
            "Please provide the transcript you want summarized.",
            "nothing_seen",
        ),
        ("There is nothing to summarize.", "nothing_seen"),
        // Tool calls, written out.
        ("<function_calls>\n<invoke name=\"shell\">", "tool_call"),
        (
            "I'll check.\n<tool_call>{\"name\":\"shell\"}</tool_call>",
            "tool_call",
        ),
        (r#"{"name":"shell","arguments":{"cmd":"ls"}}"#, "tool_call"),
        (
            "```json\n{\"name\":\"shell\",\"input\":{}}\n```",
            "tool_call",
        ),
        (r#"{"tool_calls":[]}"#, "tool_call"),
        ("[tool call]: shell(ls)", "tool_call"),
        ("[TOOL_CALLS] [{\"name\": \"x\"}]", "tool_call"),
        // No form.
        ("Sure! I'll add the header row now.", "no_structure"),
        (
            "Which delimiter would you like for the header?",
            "no_structure",
        ),
        (
            "The user asked for semicolons and got them.",
            "no_structure",
        ),
        (&long_line, "repeats"),
        (&circle, "repeats"),
        (r#"{"items":[{"section":"task","te"#, "truncated"),
        (r#"{"items":[] "b"}"#, "invalid_json"),
        (r#"{"items":[{"section":"task","text":7}]}"#, "wrong_shape"),
        (
            "## Goal\nThe weather over northern islands remains pleasant while tourists wander along sunny beaches collecting shells daily",
            "unrelated",
        ),
    ];
    for (text, expect) in rows {
        check(
            AnswerForm::Markdown,
            text,
            match expect {
                // Markdown was asked for, so JSON that cannot be read is only free text.
                "truncated" | "invalid_json" | "wrong_shape" => "no_structure",
                other => other,
            },
        );
        if !text.starts_with("## ") || expect == "fit" {
            check(AnswerForm::Items, text, expect);
        }
    }
}

#[test]
fn the_prompt_is_no_memory() {
    let copied = format!("## User Intent\n{}", Name::System.embedded());
    check(AnswerForm::Markdown, &copied, "copies_prompt");
}

#[test]
fn the_providers_stop_reason_is_checked_first() {
    let with = |stop, has_tool_call| Answer {
        stop,
        has_tool_call,
        ..Answer::finished(MARKDOWN)
    };
    let rows = [
        (with(Stop::Finished, false), Ok(())),
        (with(Stop::Other("eos".to_owned()), false), Ok(())),
        (with(Stop::Truncated, false), Err(Fault::Truncated)),
        (with(Stop::Refused, false), Err(Fault::Refusal)),
        (with(Stop::ToolUse, false), Err(Fault::ToolCall)),
        (with(Stop::Finished, true), Err(Fault::ToolCall)),
    ];
    for (answer, expect) in rows {
        let judged = judge_with(AnswerForm::Markdown, &answer, None, 2_000);
        assert_eq!(judged.map(|_| ()), expect);
    }
}

#[test]
fn complete_items_of_a_truncated_list_are_used_if_they_fill_the_memory() {
    let list = |name: &str, action: &str| {
        let entries: Vec<String> = (0..20)
            .map(|n| {
                format!(
                    r#"{{{action}"section":"completed_work","text":"row {n} \"}}]\" of the sample was read and export.py wrote {} of it","detail":null}}"#,
                    n * 7
                )
            })
            .collect();
        format!(r#"{{"{name}":[{}]}}"#, entries.join(","))
    };
    for (wanted, text) in [
        (AnswerForm::Items, list("items", "")),
        (
            AnswerForm::Edits,
            list("edits", r#""action":"add","id":null,"#),
        ),
    ] {
        // It ends in the last entry, in a text, between two entries, behind a comma.
        for left_out in [3, 40, 60, 100] {
            let answer = Answer {
                stop: Stop::Truncated,
                ..Answer::finished(&text[..text.len() - left_out])
            };
            let judged = judge_for(wanted, &answer, None, 2_000, 500).unwrap();
            let (AnswerContent::Whole(_) | AnswerContent::Edits(_)) = judged.parsed else {
                panic!("{judged:?}");
            };
            assert!(
                (18..=19).contains(&texts_of(&judged.parsed).len()),
                "{judged:?}"
            );
            let roomy = judge_for(wanted, &answer, None, 2_000, 5_000);
            assert_eq!(roomy, Err(Fault::Truncated));
        }
        for bytes in 0..text.len() {
            let answer = Answer {
                stop: Stop::Truncated,
                ..Answer::finished(&text[..bytes])
            };
            let judged = judge_for(wanted, &answer, None, 2_000, 500);
            assert!(
                judged.is_ok() || judged == Err(Fault::Truncated),
                "{judged:?}"
            );
        }
    }
}

#[test]
fn a_memory_is_smaller_than_the_messages_it_summarises() {
    let text = format!(
        "## Completed Work\n{}",
        (0..300)
            .map(|n| format!(
                "- row {n} of the sample was read and export number {}\n",
                n * 7
            ))
            .collect::<String>()
    );
    let judged = judge_with(AnswerForm::Markdown, &Answer::finished(&*text), None, 2_000);
    assert!(
        matches!(
            judged,
            Err(Fault::TooLarge {
                tokens_max: 2_000,
                ..
            })
        ),
        "{judged:?}"
    );
    assert!(judge_with(AnswerForm::Markdown, &Answer::finished(text), None, 9_000).is_ok());
}

#[test]
fn another_language_is_refused() {
    let german = "## Ziel\n## Goal\n- Der Nutzer möchte, dass der Export künftig Semikolons statt Kommas schreibt, weil das andere Programm sonst die Spalten nicht richtig trennen kann\n- Danach soll noch eine Kopfzeile in die Datei geschrieben werden, bevor die Arbeit abgeschlossen wird (export.py)";
    check(AnswerForm::Markdown, german, "wrong_language");
    let judged = judge_with(
        AnswerForm::Markdown,
        &Answer::finished(german),
        Some("deu"),
        2_000,
    );
    assert!(judged.is_ok(), "{judged:?}");
    // A short text, or one that quotes, tells nothing.
    check(
        AnswerForm::Markdown,
        "## Goal\n- Der Export schreibt Semikolons (export.py)",
        "fit",
    );
}

#[test]
fn no_edits_are_an_answer_only_to_small_talk() {
    check(AnswerForm::Edits, r#"{"edits":[]}"#, "nothing_new");
    check(
        AnswerForm::Edits,
        r#"{"edits":[{"action":"drop","id":"a","reason":"done"}]}"#,
        "fit",
    );
    check(
        AnswerForm::Edits,
        r#"{"edits":[{"action":"add","section":"task","text":""}]}"#,
        "skeleton",
    );
    check(
        AnswerForm::Edits,
        r#"{"edits":[{"action":"add","section":"task","text":"header row"}]}"#,
        "fit",
    );
}

proptest::proptest! {
    #[test]
    fn any_answer_is_judged(text in "(\\PC|[\\n{}\\[\\]\",:#*-]|\"edits\":\\[|## Goal\\n){0,60}") {
        for wanted in [AnswerForm::Items, AnswerForm::Edits, AnswerForm::Markdown] {
            let _ = judge_with(wanted, &Answer::finished(&*text), Some("eng"), 500);
        }
    }
}
