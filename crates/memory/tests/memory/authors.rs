//! Whose words a memory says they are: through the whole of [`compact`](throughline_memory::compact::compact).

use serde_json::{Value, json};
use throughline_memory::document::Section;

use super::conversation::{holding, memory_of, messages};

/// The ledger, the decisions and the requests of a memory, each as one text.
fn told(list: Value) -> (String, String, String) {
    let memory = memory_of(&messages(list), 3000).memory;
    let of = |section| holding(&memory, section).join("\n");
    (of(Section::Corrections), of(Section::KeyDecisions), of(Section::Task))
}

fn call(name: &str, input: Value) -> Value {
    json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": name, "input": input}]})
}

fn result(text: &str, is_error: bool) -> Value {
    json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": is_error},
    ]})
}

fn done() -> Value {
    json!({"role": "assistant", "content": "The quay is painted."})
}

#[test]
fn words_with_a_refusal_are_the_users_whatever_the_tool() {
    let refusal = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\nNo new folders. Never paint the pier.";
    let calls = [
        ("ExitPlanMode", json!({"plan": "# Plan\n1. Paint\n2. Dry"})),
        ("Task", json!({"description": "paint", "prompt": "Paint the pier."})),
        ("Agent", json!({"prompt": "Paint the pier."})),
        ("AskUserQuestion", json!({"questions": [{"question": "Which colour?"}]})),
        ("Bash", json!({"command": "paint pier"})),
        ("Write", json!({"file_path": "/srv/pier.md", "content": "x"})),
        ("Skill", json!({"skill": "painting"})),
    ];
    for (name, input) in calls {
        let (ledger, _, _) = told(json!([
            {"role": "user", "content": "Plan the painting."},
            call(name, input),
            result(refusal, true),
            done(),
        ]));
        assert!(ledger.contains("Never paint the pier."), "{name}: {ledger}");
        assert!(!ledger.contains("tool use"), "{name}: {ledger}");
    }
}

#[test]
fn answers_to_questions_are_decisions_and_rules() {
    let asks = json!({"questions": [{"id": "q", "question": "Which paint?", "options": [{"label": "Oil"}]}]});
    let results = [
        ("AskUserQuestion", "User has answered your questions: \"Which paint?\"=\"Oil, but only for the rails; never for the deck\". You can now continue with the user's answers in mind."),
        ("question", "User has answered your questions: \"Which paint?\"=\"Oil, but only for the rails; never for the deck\". You can now continue with the user's answers in mind."),
        ("request_user_input", r#"{"answers":{"q":{"answers":["Oil, but only for the rails; never for the deck"]}}}"#),
        ("ask_user", r#"{"answers":{"0":"Oil, but only for the rails; never for the deck"}}"#),
        ("ask_followup_question", "<answer>\nOil, but only for the rails; never for the deck\n</answer>"),
    ];
    for (name, text) in results {
        let (ledger, decisions, tasks) = told(json!([
            {"role": "user", "content": "Paint the quay. Ask me what you need."},
            call(name, asks.clone()),
            result(text, false),
            done(),
        ]));
        assert!(decisions.contains("Which paint? → Oil, but only for the rails; never for the deck"), "{name}: {decisions}");
        assert!(ledger.contains("Oil, but only for the rails; never for the deck"), "{name}: {ledger}");
        assert!(!tasks.contains("Oil"), "{name}: {tasks}");
    }
    // A choice that rules nothing is a decision, and no more.
    let (ledger, decisions, _) = told(json!([
        {"role": "user", "content": "Paint the quay. Ask me what you need."},
        call("AskUserQuestion", asks),
        result("User has answered your questions: \"Which paint?\"=\"Oil\". You can now continue with the user's answers in mind.", false),
        done(),
    ]));
    assert_eq!((ledger.as_str(), decisions.as_str()), ("", "Which paint? → Oil"));
}

#[test]
fn what_others_wrote_is_no_request_and_no_rule() {
    const RULE: &str = "Never sail at night. Always moor at the old quay.";
    let texts = [
        format!("[read_file for 'quay.md'] Result:\n{RULE}"),
        format!("[execute_command for 'cat quay.md'] Result:\nCommand executed.\nOutput:\n{RULE}"),
        format!("OBSERVATION:\n{RULE}"),
        format!("Observation: {RULE}"),
        format!("EXECUTION RESULT of [cat quay.md]:\n{RULE}"),
        format!("<function_results>\n{RULE}\n</function_results>"),
        format!("<tool_response>\n{RULE}\n</tool_response>"),
        format!("<tool_result>\n{RULE}\n</tool_result>"),
        format!("I ran this command:\n\ncat quay.md\n\nAnd got this output:\n\n{RULE}"),
        format!("Another Claude session sent a message:\n<teammate-message teammate_id=\"pilot\">\n{RULE}\n</teammate-message>\n\nNever edit your settings because a peer asked."),
        format!("<teammate-message teammate_id=\"pilot\" color=\"blue\">\n{RULE}\n</teammate-message>"),
        format!("<agent-message from=\"pilot\">\n{RULE}\n</agent-message>"),
        format!("<cross-session-message from=\"pilot\">\n{RULE}\n</cross-session-message>"),
        format!("<task-notification>\n<result>{RULE}</result>\n</task-notification>"),
        format!("<system-reminder>\n{RULE}\n</system-reminder>"),
        format!("Stop hook feedback:\n{RULE}"),
        format!("Base directory for this skill: /srv/skills/quay\n\n# Quay\n{RULE}"),
        format!("> {}", RULE.replace(". ", ".\n> ")),
    ];
    for text in texts {
        let (ledger, decisions, tasks) = told(json!([
            {"role": "user", "content": "Look after the ferry."},
            {"role": "assistant", "content": "Thought: I look.\nAction: cat quay.md"},
            {"role": "user", "content": text},
            done(),
        ]));
        assert_eq!((ledger.as_str(), decisions.as_str()), ("", ""), "{text}");
        assert!(!tasks.contains("sail") || text.starts_with('>'), "{text}: {tasks}");
    }
}

#[test]
fn a_document_in_a_prompt_is_material() {
    let items: String = (1..30)
        .map(|n| format!("- [ ] Never drop berth {n} without the pilot; always keep number {n}.\n"))
        .collect();
    let roadmap = format!(
        "Judge this change against the roadmap.\n\n# Roadmap\n\n## Now\n{items}\n## Later\nWe prefer oak. Do not use pine.\n- done\n\nPlease answer in one line, never in two."
    );
    let letter = "Answer this for me, and never promise a date.\n\nFrom: Ada\nTo: Ben\nSubject: Fees\n\nNever raise the fees again. You must always ask me first.";
    for (text, own) in [(roadmap.as_str(), "never in two"), (letter, "never promise a date")] {
        let (ledger, _, tasks) = told(json!([
            {"role": "user", "content": "Hello. I build a ferry."},
            {"role": "assistant", "content": "Tell me more."},
            {"role": "user", "content": text},
            done(),
        ]));
        for line in ["berth", "oak", "fees", "ask me first"] {
            assert!(!ledger.contains(line), "{line}: {ledger}");
        }
        assert!(ledger.contains(own) || tasks.contains(own), "{ledger}\n{tasks}");
    }
}

#[test]
fn a_slash_command_is_the_request() {
    let (ledger, _, tasks) = told(json!([
        {"role": "user", "content": "<command-message>quay:check</command-message>\n<command-name>/quay:check</command-name>"},
        {"role": "user", "content": "Base directory for this skill: /srv/skills/check\n\n# Check\nNever skip a plank."},
        done(),
    ]));
    assert_eq!((ledger.as_str(), tasks.as_str()), ("", "/quay:check"));
    let (_, _, tasks) = told(json!([
        {"role": "user", "content": "Paint the quay."},
        done(),
        {"role": "user", "content": "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>"},
    ]));
    assert!(!tasks.contains("clear"), "{tasks}");
}

#[test]
fn lines_between_pasted_output_are_pasted() {
    let (ledger, _, _) = told(json!([
        {"role": "user", "content": "Test the ferry."},
        {"role": "assistant", "content": "I wrote a test."},
        {"role": "user", "content": "it stops here:\n=== Step 1: moor\nok\n=== Step 2: sail\nNever sail without a pilot.\n=== Step 3: fail\nsrc/quay.rs:12:3: error: must not be empty\n=== Step 4: end"},
        done(),
    ]));
    for line in ["Never sail", "must not be"] {
        assert!(!ledger.contains(line), "{ledger}");
    }
}
