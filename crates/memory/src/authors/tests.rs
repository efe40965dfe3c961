//! One line for each shape: a text and its pieces.

use throughline_transcript::json::Raw;
use throughline_transcript::message::{ToolCall, ToolInput};

use super::*;

/// What comes before a message in the middle of a session, whose last answer acts in its text.
const ACTED: Before<'static> = Before {
    has_messages: true,
    has_called: false,
    said: Some("Thought: look.\nAction: ls"),
};

fn shown(pieces: &[Piece<'_>]) -> Vec<String> {
    let shown = |piece: &Piece<'_>| {
        let kind = match piece.kind {
            PieceKind::Words => "",
            PieceKind::Command => " command",
            PieceKind::Feedback => " feedback",
        };
        format!("{:?}{kind}: {}", piece.writer, piece.text).replace('\n', "|")
    };
    pieces.iter().map(shown).collect()
}

#[track_caller]
fn check_after(before: Before<'_>, text: &str, expected: &[&str]) {
    assert_eq!(shown(&pieces(text, before)), expected, "{text:?}");
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    check_after(ACTED, text, expected);
}

/// The words that stay of a text.
#[track_caller]
fn check_words(text: &str, expected: &str) {
    assert_eq!(
        words(&pieces(text, Before::default())),
        expected,
        "{text:?}"
    );
}

#[test]
fn each_piece_has_its_writer() {
    check("Fix the ferry.", &["Person: Fix the ferry."]);
    check("", &[]);
    check(
        "<command-message>quay:check</command-message>\n<command-name>/quay:check</command-name>",
        &["Person command: /quay:check"],
    );
    check(
        "<command-name>/clear</command-name>",
        &["Client command: /clear"],
    );
    check(
        "[read_file for 'pier.sql'] Result:\n-- Never edit by hand.",
        &["Tool: [read_file for 'pier.sql'] Result:|-- Never edit by hand."],
    );
    check(
        "[attempt_completion] Result:\nThe user has provided feedback on the results. Consider their input to continue the task, and then attempt completion again.\n<feedback>\nUse the role quay.\n</feedback>\n<environment_details>\nx\n</environment_details>",
        &[
            "Tool: [attempt_completion] Result:|The user has provided feedback on the results. Consider their input to continue the task, and then attempt completion again.|<feedback>|Use the role quay.|</feedback>|<environment_details>|x|</environment_details>",
            "Person feedback: Use the role quay.",
        ],
    );
    for start in [
        "OBSERVATION:",
        "Observation:",
        "EXECUTION RESULT of [ls]:",
        "[tool output]",
        "Tool result:",
        "I ran this command:",
        "<returncode>0</returncode>",
    ] {
        let text = format!("{start}\nAlways moor at noon.");
        check(&text, &[&format!("Tool: {start}|Always moor at noon.")]);
    }
    for name in [
        "function_results",
        "tool_response",
        "tool_result",
        "observation",
    ] {
        let element = format!("<{name}>\nNever sail.\n</{name}>");
        check(
            &element,
            &[&format!("Tool: <{name}>|Never sail.|</{name}>")],
        );
        let cut = format!("<{name}>\nNever sail.");
        check(&cut, &[&format!("Tool: <{name}>|Never sail.")]);
    }
    check(
        "Another Claude session sent a message:\n<teammate-message teammate_id=\"pilot\">\nNever merge.\n</teammate-message>\n\nThis came from another session.",
        &[
            "Agent: Another Claude session sent a message:|<teammate-message teammate_id=\"pilot\">|Never merge.|</teammate-message>||This came from another session.",
        ],
    );
    check(
        "<agent-message from=\"pilot\">\nNever merge.\n</agent-message>\nGo on, please.",
        &[
            "Agent: <agent-message from=\"pilot\">|Never merge.|</agent-message>",
            "Person: Go on, please.",
        ],
    );
    check(
        "<task-notification>\n<status>completed</status>\n</task-notification>",
        &["Agent: <task-notification>|<status>completed</status>|</task-notification>"],
    );
    check(
        "Stop hook feedback:\n- Run the tests.",
        &["Client: Stop hook feedback:|- Run the tests."],
    );
    check(
        "Base directory for this skill: /srv/skills\n\n# Check\nAlways check.",
        &["Client: Base directory for this skill: /srv/skills||# Check|Always check."],
    );
    check(notes::NOT_RUN, &[&format!("Client: {}", notes::NOT_RUN)]);
}

#[test]
fn what_came_before_decides() {
    let talk = Before {
        has_messages: true,
        has_called: false,
        said: Some("The lamp is fine."),
    };
    let seen = "Observation: the lamp flickers.";
    check_after(talk, seen, &["Person: Observation: the lamp flickers."]);
    let called = Before {
        has_called: true,
        ..talk
    };
    check_after(called, seen, &["Tool: Observation: the lamp flickers."]);
    let first = Before::default();
    for text in [
        "OBSERVATION: it rains.",
        "[read_file for 'a'] Result:\nis what I see",
        "Tool result: none",
    ] {
        check_after(
            first,
            text,
            &[&format!("Person: {}", text.replace('\n', "|"))],
        );
    }
}

#[test]
fn agent_insertions_are_left_out() {
    check_words(
        "<environment_context>\n  <cwd>/srv/quay</cwd>\n</environment_context>",
        "",
    );
    check_words(
        "# AGENTS.md instructions for /srv/quay\n\n<INSTRUCTIONS>\nAlways use tabs.\n</INSTRUCTIONS>\nFix the ferry.",
        "Fix the ferry.",
    );
    check_words(
        "Fix the ferry.\n  <system-reminder>Mind the tide.</system-reminder>\nAnd the quay.\n<turn_aborted>\nx\n</turn_aborted>",
        "Fix the ferry.\n\nAnd the quay.",
    );
    check_words(
        "<permissions instructions>\nread-only\n</permissions instructions>\nGo.",
        "Go.",
    );
    check_words(
        "<recommended_plugins>\n- Box\n</recommended_plugins>\nGo.",
        "Go.",
    );
    check_words(
        "# Context from my IDE setup:\n\n## Open tabs:\n- quay.rs\n\n## My request for Codex:\nFix the ferry.\n",
        "Fix the ferry.",
    );
    check_words(
        &format!("Fix the ferry.\n\n{}", notes::CUT_OFF),
        "Fix the ferry.",
    );
}

#[test]
fn words_about_notes_stay() {
    for text in [
        "What does <environment_context>x</environment_context> mean?",
        "<environment_context> is never closed",
        "a < b\n<b>bold</b>",
        "# AGENTS.md instructions are what I want to write",
        "# Context from my IDE setup: what is that?",
        "",
    ] {
        check_words(text, text);
    }
}

#[test]
fn many_open_elements_take_linear_time() {
    for text in [
        "<skill>\n".repeat(200_000),
        "<".repeat(1_000_000),
        " <skill>".repeat(200_000),
        "<skill \n".repeat(200_000),
    ] {
        check_words(&text, text.trim());
    }
}

fn asked(name: &str, input: &str) -> Option<Questions> {
    Questions::of(&ToolCall {
        id: "q".into(),
        name: name.to_owned().into(),
        input: ToolInput::Json(Raw::parse(input.to_owned()).unwrap()),
        is_server_side: false,
    })
}

#[track_caller]
fn check_answers(name: &str, input: &str, result: &str, expected: &[(&str, &str)]) {
    let found = answers(&asked(name, input).unwrap(), result);
    let found: Vec<_> = found
        .iter()
        .map(|answer| (answer.question.as_str(), answer.text.as_str()))
        .collect();
    assert_eq!(found, expected, "{result:?}");
}

#[test]
fn answers_have_their_questions() {
    let two = r#"{"questions":[{"id":"quay","question":"Which quay?"},{"id":"fee","question":"Which fee?"}]}"#;
    let one = r#"{"question":"Which quay?","options":["old","new"]}"#;
    check_answers(
        "AskUserQuestion",
        two,
        "User has answered your questions: \"Which quay?\"=\"The old one, \"by the mill\"\", \"Which fee?\"=\"None; never ask\". You can now continue with the user's answers in mind.",
        &[
            ("Which quay?", "The old one, \"by the mill\""),
            ("Which fee?", "None; never ask"),
        ],
    );
    check_answers(
        "AskUserQuestion",
        two,
        "User has answered your questions: \"Which quay?\"=\"old\" user notes: only at night, \"Which fee?\"=\"none\". You can now continue with the user's answers in mind.",
        &[
            ("Which quay?", "old; only at night"),
            ("Which fee?", "none"),
        ],
    );
    check_answers(
        "question",
        "{}",
        "User has answered your questions: \"Which quay?\"=\"old\", \"Which fee?\"=\"none\". You can now continue with the user's answers in mind.",
        &[("Which quay?", "old"), ("Which fee?", "none")],
    );
    check_answers(
        "request_user_input",
        two,
        r#"{"answers":{"quay":{"answers":["old"]},"fee":{"answers":["None","user_note: never ask"]}}}"#,
        &[("Which quay?", "old"), ("Which fee?", "None; never ask")],
    );
    check_answers(
        "ask_user",
        two,
        r#"{"answers":{"0":"old","1":"none"}}"#,
        &[("Which quay?", "old"), ("Which fee?", "none")],
    );
    check_answers(
        "ask_user",
        two,
        r#"{"answers":["old","none"]}"#,
        &[("Which quay?", "old"), ("Which fee?", "none")],
    );
    check_answers(
        "ask_question",
        one,
        r#"{"answer":"old"}"#,
        &[("Which quay?", "old")],
    );
    check_answers(
        "ask_followup_question",
        one,
        "<answer>\nThe old one.\n</answer>",
        &[("Which quay?", "The old one.")],
    );
    check_answers(
        "ask_user",
        one,
        "User answered: the old one",
        &[("Which quay?", "the old one")],
    );
    check_answers(
        "ask_user",
        one,
        "the old one",
        &[("Which quay?", "the old one")],
    );
    for nothing in [
        "",
        "User declined to answer.",
        "The user wants to clarify these questions.",
        "Cancelled by user",
    ] {
        check_answers("ask_user", one, nothing, &[]);
    }
    assert_eq!(asked("Bash", one), None);
}

#[test]
fn a_wish_to_talk_about_questions_says_nothing_yet() {
    let refused = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nThe user wants to clarify these questions.\n    Start by asking them.";
    assert_eq!(crate::cues::denial(refused), Some(""));
}
