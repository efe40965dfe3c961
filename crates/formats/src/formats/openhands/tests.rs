use super::*;
use crate::formats::chat_message::outline;

fn read(text: &str) -> Conversation {
    let source = SourceText {
        text: text.into(),
        skipped: Vec::new(),
    };
    OpenHands.read(&source).unwrap().conversations.remove(0)
}

const PROMPT: &str = r#"{"kind":"SystemPromptEvent","id":"s","source":"agent","timestamp":"1970-01-01T00:00:01","system_prompt":{"type":"text","text":"You write code"},"tools":[{"name":"terminal"}]}"#;

fn request(id: &str, text: &str) -> String {
    format!(
        r#"{{"kind":"MessageEvent","id":"{id}","source":"user","llm_message":{{"role":"user","content":[{{"type":"text","text":"{text}"}}]}},"extended_content":[]}}"#
    )
}

fn act(id: &str, answer: &str, call: &str) -> String {
    format!(
        r#"{{"kind":"ActionEvent","id":"{id}","source":"agent","thought":[],"tool_name":"terminal","tool_call_id":"{call}","tool_call":{{"id":"{call}","name":"terminal","arguments":"{{\"command\":\"ls\"}}"}},"llm_response_id":"{answer}","action":{{"kind":"X"}}}}"#
    )
}

fn observe(id: &str, call: &str) -> String {
    format!(
        r#"{{"kind":"ObservationEvent","id":"{id}","source":"environment","tool_name":"terminal","tool_call_id":"{call}","action_id":"x","observation":{{"content":[{{"type":"text","text":"out"}}],"is_error":false}}}}"#
    )
}

#[test]
fn events_that_follow_each_other_become_messages() {
    let found = read(
        &[
            PROMPT,
            &request("u", "List"),
            &act("a", "r", "c"),
            &observe("o", "c"),
        ]
        .join("\n"),
    );
    assert_eq!(found.system.len(), 1);
    assert_eq!(found.tools.unwrap().as_str(), "[{\"name\":\"terminal\"}]");
    assert_eq!(found.messages[0].position.line, 2);
    insta::assert_snapshot!(outline(&found.messages), @r#"
    User: "List"
    Assistant: call[c terminal {"command":"ls"}]
    Tool: result[c. "out"]
    "#);
}

#[test]
fn every_layout_of_the_events_is_read() {
    let events = [PROMPT.to_owned(), request("u", "List")];
    for text in [
        events.join("\n"),
        events.join(""),
        format!("[{}]", events.join(",")),
    ] {
        assert_eq!(read(&text).messages.len(), 1, "{text}");
    }
}

#[test]
fn parallel_actions_are_one_message() {
    let found = read(
        &[
            act("a", "r", "c"),
            observe("o", "c"),
            act("b", "r", "d"),
            observe("p", "d"),
        ]
        .join("\n"),
    );
    insta::assert_snapshot!(outline(&found.messages), @r#"
    Assistant: call[c terminal {"command":"ls"}] call[d terminal {"command":"ls"}]
    Tool: result[c. "out"]
    Tool: result[d. "out"]
    "#);
}

#[test]
fn a_condensation_takes_its_place() {
    let condensation = r#"{"kind":"Condensation","id":"k","source":"environment","forgotten_event_ids":["a","o"],"summary":"Listed the files","summary_offset":2}"#;
    let found = read(
        &[
            PROMPT.to_owned(),
            request("u", "List"),
            act("a", "r", "c"),
            observe("o", "c"),
            condensation.to_owned(),
            request("v", "Go on"),
        ]
        .join("\n"),
    );
    insta::assert_snapshot!(outline(&found.messages), @r#"
    User: "List"
    User(compaction): "Listed the files"
    User: "Go on"
    "#);
    assert_eq!(found.compactions[0].before_message, 1);
}

#[test]
fn errors_and_rejections_are_failed_results() {
    let found = read(
        &[
            act("a", "r", "c"),
            r#"{"kind":"AgentErrorEvent","id":"e","source":"agent","error":"no such tool","tool_name":"t","tool_call_id":"c"}"#.to_owned(),
            act("b", "q", "d"),
            r#"{"kind":"UserRejectObservation","id":"f","source":"environment","rejection_reason":"too risky","tool_call_id":"d"}"#.to_owned(),
        ]
        .join("\n"),
    );
    let results: Vec<_> = found
        .messages
        .iter()
        .flat_map(Message::tool_results)
        .collect();
    assert!(results.iter().all(|result| result.is_error == Some(true)));
    assert_eq!(results[1].texts().next().unwrap().decode(), "too risky");
}

#[test]
fn injected_knowledge_is_the_clients() {
    let found = read(
        r#"{"kind":"MessageEvent","id":"u","source":"user","llm_message":{"role":"user","content":"Hi"},"extended_content":[{"type":"text","text":"A skill"}]}"#,
    );
    assert_eq!(
        outline(&found.messages),
        "User: \"Hi\"\nUser(client): \"A skill\"\n"
    );
}

#[test]
fn a_branch_that_was_given_up_is_left_out() {
    let branch = |id: &str, parent: &str| {
        request(id, id).replacen(
            "\"source\"",
            &format!("\"parent_id\":\"{parent}\",\"source\""),
            1,
        )
    };
    let found = read(&[request("a", "a"), branch("b", "a"), branch("c", "a")].join("\n"));
    assert_eq!(outline(&found.messages), "User: \"a\"\nUser: \"c\"\n");
}

#[test]
fn the_base_state_gives_model_and_folder() {
    let state = r#"{"id":"conv","agent":{"kind":"Agent","llm":{"model":"m"}},"workspace":{"working_dir":"/w"}}"#;
    let found = read(&format!("{state}{}", request("u", "Hi")));
    assert_eq!(
        (
            found.id.as_str(),
            found.model.as_deref(),
            found.cwd.as_deref()
        ),
        ("conv", Some("m"), Some("/w"))
    );
}

#[test]
fn classic_events_are_read() {
    let found = read(
        r#"{"id":0,"source":"agent","action":"system","args":{"content":"You write code","tools":[]}}
{"id":1,"timestamp":"2025-01-01T00:00:00","source":"user","message":"Fix","action":"message","args":{"content":"Fix"}}
{"id":2,"source":"agent","action":"change_agent_state","args":{}}
{"id":3,"source":"environment","observation":"agent_state_changed","content":"","extras":{}}
{"id":4,"source":"agent","action":"run","args":{"command":"ls","thought":"Look"},"tool_call_metadata":{"tool_call_id":"c","function_name":"execute_bash","model_response":{"id":"r"}}}
{"id":5,"source":"agent","cause":4,"observation":"run","content":"nope","extras":{"metadata":{"exit_code":2}},"tool_call_metadata":{"tool_call_id":"c"}}
{"id":6,"source":"agent","action":"run","args":{"command":"pwd"}}
{"id":7,"source":"agent","cause":6,"observation":"run","content":"/w","extras":{"exit_code":0}}
{"id":8,"source":"agent","action":"finish","args":{"final_thought":"Done"}}
"#,
    );
    insta::assert_snapshot!(outline(&found.messages), @r#"
    User: "Fix"
    Assistant: "Look" call[c execute_bash {"command":"ls","thought":"Look"}]
    Tool: result[c! "nope"]
    Assistant: call[event-6 run {"command":"pwd"}]
    Tool: result[event-6. "/w"]
    Assistant: "Done"
    "#);
}

#[test]
fn classic_condensations_forget_a_range() {
    let found = read(
        r#"[{"id":1,"source":"user","action":"message","args":{"content":"Fix"}},
{"id":2,"source":"agent","action":"message","args":{"content":"a"}},
{"id":3,"source":"agent","action":"message","args":{"content":"b"}},
{"id":4,"source":"agent","action":"condensation","args":{"forgotten_events_start_id":2,"forgotten_events_end_id":3,"summary":"Tried a and b"}},
{"id":5,"source":"agent","action":"message","args":{"content":"c"}}]"#,
    );
    insta::assert_snapshot!(outline(&found.messages), @r#"
    User: "Fix"
    User(compaction): "Tried a and b"
    Assistant: "c"
    "#);
}
