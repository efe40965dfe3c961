use throughline_transcript::body::read_body;
use throughline_transcript::check::{CheckOptions, Profile};
use throughline_transcript::cut::{Tail, cut_for_tail};
use throughline_transcript::message::{Block, Message, ToolCall, ToolInput, ToolResult};

use super::*;

mod properties;

#[track_caller]
fn read(wire: Wire, body: &str) -> Conversation {
    read_body(&Raw::parse(body).unwrap(), wire).unwrap()
}

/// What the wire checker has against a body.
fn faults(body: &str, wire: Wire, options: &Options) -> Vec<String> {
    let options = CheckOptions {
        profile: if options.strict_alternation {
            Profile::StrictAlternation
        } else {
            Profile::Provider
        },
        ..CheckOptions::default()
    };
    let report = throughline_transcript::check::check_text(body, wire, &options);
    report
        .errors()
        .map(|finding| format!("{} {} {}", finding.code, finding.path, finding.message))
        .collect()
}

/// The messages of a written body, one a line.
#[track_caller]
fn list(converted: &ConvertedRequest, wire: Wire) -> String {
    let body = Raw::parse(converted.body.as_str()).unwrap();
    let messages: Vec<_> = body
        .field(list_name(wire))
        .unwrap()
        .array()
        .map(|message| message.as_str().to_owned())
        .collect();
    messages.join("\n")
}

fn codes(converted: &ConvertedRequest) -> Vec<&'static str> {
    converted.losses.iter().map(|loss| loss.code).collect()
}

#[track_caller]
fn check(
    from: Wire,
    messages: &str,
    to: Wire,
    options: &Options,
    expected: &str,
    expected_codes: &[&str],
) {
    let body = format!(
        "{{\"model\":\"m\",\"max_tokens\":9,\"{}\":{messages}}}",
        list_name(from)
    );
    let mut conversation = read(from, &body);
    if Wire::detect(conversation.body.as_ref().unwrap()) != Some(from) {
        // Told apart by the format that was asked for, not by the body.
        conversation.body = None;
    }
    let converted = convert(&conversation, to, options);
    assert_eq!(list(&converted, to), expected);
    assert_eq!(faults(&converted.body, to, options), Vec::<String>::new());
    let mut codes = codes(&converted);
    codes.retain(|code| !matches!(*code, "settings" | "model"));
    assert_eq!(codes, expected_codes);
}

const TALK: &str = r#"[{"role":"user","content":"Look."},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"ls","input":{"path":"a"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x y","is_error":true},{"type":"text","text":"Well?"}]},{"role":"assistant","content":"Two."},{"role":"user","content":"Thanks."}]"#;

#[test]
fn requests_without_faults_come_back_byte_for_byte() {
    let same = |wire: Wire, body: &str| {
        let converted = convert(&read(wire, body), wire, &Options::default());
        assert_eq!(converted.body, body);
        assert_eq!(converted.losses, []);
    };
    same(
        Wire::Anthropic,
        &format!(r#"{{ "system": "s", "x": 1e3, "messages" : {TALK}, "max_tokens":9 }}"#),
    );
    same(
        Wire::OpenAiChat,
        r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a", "name":"b"},{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\" : 1}"}}]},{"role":"tool","tool_call_id":"c","content":"1"},{"role":"assistant","content":"b"}]}"#,
    );
    same(
        Wire::OpenAiResponses,
        r#"{"input":[{"role":"user","content":"a"},{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"E"},{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{}"},{"type":"custom_tool_call","call_id":"d","name":"g","input":"x"},{"type":"function_call_output","call_id":"c","output":"1"},{"type":"custom_tool_call_output","call_id":"d","output":"2"},{"type":"web_search_call","id":"ws","status":"completed"},{"type":"message","id":"msg","role":"assistant","content":[{"type":"output_text","text":"b","annotations":[]}]},{"type":"item_reference","id":"x"}]}"#,
    );
    same(Wire::OpenAiResponses, r#"{"input":"a"}"#);
}

#[test]
fn options_change_only_their_fields() {
    let conversation = read(
        Wire::Anthropic,
        r#"{"model" : "a", "max_tokens":1, "system":"s","messages": [{"role":"user","content":"x"}]}"#,
    );
    let options = Options {
        model: Some("b".to_owned()),
        max_tokens: Some(7),
        ..Options::default()
    };
    assert_eq!(
        convert(&conversation, Wire::Anthropic, &options).body,
        r#"{"model" : "b", "max_tokens":7, "system":"s","messages": [{"role":"user","content":"x"}]}"#
    );
}

#[test]
fn anthropic_to_chat() {
    check(
        Wire::Anthropic,
        TALK,
        Wire::OpenAiChat,
        &Options::default(),
        r#"{"role":"user","content":"Look."}
{"role":"assistant","content":"I look.","tool_calls":[{"id":"t1","type":"function","function":{"name":"ls","arguments":"{\"path\":\"a\"}"}}]}
{"role":"tool","tool_call_id":"t1","content":"x y"}
{"role":"user","content":"Well?"}
{"role":"assistant","content":"Two."}
{"role":"user","content":"Thanks."}"#,
        &["thinking", "error-flag"],
    );
}

#[test]
fn anthropic_to_responses() {
    check(
        Wire::Anthropic,
        TALK,
        Wire::OpenAiResponses,
        &Options::default(),
        r#"{"role":"user","content":"Look."}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]}
{"type":"function_call","call_id":"t1","name":"ls","arguments":"{\"path\":\"a\"}"}
{"type":"function_call_output","call_id":"t1","output":"x y"}
{"type":"message","role":"user","content":[{"type":"input_text","text":"Well?"}]}
{"role":"assistant","content":"Two."}
{"role":"user","content":"Thanks."}"#,
        &["thinking", "error-flag"],
    );
}

#[test]
fn chat_to_anthropic() {
    check(
        Wire::OpenAiChat,
        r#"[{"role":"system","content":"Rule."},{"role":"user","content":[{"type":"text","text":"See"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAEC"}}]},{"role":"assistant","content":null,"tool_calls":[{"id":"a|1","type":"function","function":{"name":"f.g","arguments":"{\"x\": 1}"}},{"id":"b","type":"function","function":{"name":"h","arguments":"oops"}}]},{"role":"tool","tool_call_id":"b","content":"2"},{"role":"tool","tool_call_id":"a|1","content":""},{"role":"user","content":"So?"},{"role":"developer","content":"Be quick."},{"role":"assistant","content":"Yes."}]"#,
        Wire::Anthropic,
        &Options::default(),
        r#"{"role":"user","content":[{"type":"text","text":"See"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAEC"}}]}
{"role":"assistant","content":[{"type":"tool_use","id":"a_1","name":"f_g","input":{"x": 1}},{"type":"tool_use","id":"b","name":"h","input":{"input":"oops"}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"2"}]},{"type":"tool_result","tool_use_id":"a_1"},{"type":"text","text":"So?"}]}
{"role":"assistant","content":"Yes."}
{"role":"user","content":"Please continue."}"#,
        &[
            "call-id-changed",
            "tool-name",
            "tool-input",
            "system-moved",
            "last-message",
            "tool-made",
        ],
    );
    let conversation = read(
        Wire::OpenAiChat,
        r#"{"messages":[{"role":"system","content":"Rule."},{"role":"user","content":"a"},{"role":"tool","tool_call_id":"x","content":""}],"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}]}"#,
    );
    let converted = convert(&conversation, Wire::Anthropic, &Options::default());
    assert_eq!(
        converted.body,
        r#"{"model":"unspecified","max_tokens":4096,"system":"Rule.","tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"a"}]}"#
    );
}

#[test]
fn a_dangling_call_is_answered_without_a_claim() {
    check(
        Wire::Anthropic,
        r#"[{"role":"user","content":"Rename it."},{"role":"assistant","content":[{"type":"text","text":"Now I move it."},{"type":"tool_use","id":"t2","name":"shell","input":{"cmd":"git mv"}}]},{"role":"user","content":"The terminal was closed. Go on."}]"#,
        Wire::Anthropic,
        &Options::default(),
        r#"{"role":"user","content":"Rename it."}
{"role":"assistant","content":[{"type":"text","text":"Now I move it."},{"type":"tool_use","id":"t2","name":"shell","input":{"cmd":"git mv"}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"No result of this call was recorded. Whether it took effect is not known.","is_error":true},{"type":"text","text":"The terminal was closed. Go on."}]}"#,
        &["missing-result"],
    );
}

#[test]
fn a_compaction_among_the_instructions_is_no_first_message() {
    check(
        Wire::Anthropic,
        r#"[{"role":"system","content":[{"type":"compaction","content":"before"}]},{"role":"assistant","content":"a"},{"role":"user","content":"b"}]"#,
        Wire::Anthropic,
        &Options::default(),
        r#"{"role":"user","content":"(The beginning of this conversation is not available.)"}
{"role":"assistant","content":"a"}
{"role":"user","content":"b"}"#,
        &["first-message"],
    );
}

#[test]
fn a_text_block_without_a_text_is_left_out() {
    check(
        Wire::Anthropic,
        r#"[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":{"b":1}},{"type":"text","text":"c"}]},{"role":"user","content":"d"}]"#,
        Wire::Anthropic,
        &Options::default(),
        r#"{"role":"user","content":"a"}
{"role":"assistant","content":[{"type":"text","text":"c"}]}
{"role":"user","content":"d"}"#,
        &["unknown-block"],
    );
}

#[test]
fn a_block_in_the_place_of_a_list_is_put_into_one() {
    check(
        Wire::Anthropic,
        r#"[{"role":"user","content":{"type":"text","text":"a"}},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]"#,
        Wire::Anthropic,
        &Options::default(),
        r#"{"role":"user","content":[{"type":"text","text":"a"}]}
{"role":"assistant","content":"b"}
{"role":"user","content":"c"}"#,
        &[],
    );
}

#[test]
fn of_two_results_the_one_that_succeeded_is_kept() {
    check(
        Wire::Anthropic,
        r#"[{"role":"user","content":"Weather?"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"w","input":{}},{"type":"tool_use","id":"t1","name":"w","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"4 C"},{"type":"tool_result","tool_use_id":"t1","content":"aborted","is_error":true}]},{"role":"user","content":"And there?"}]"#,
        Wire::Anthropic,
        &Options::default(),
        r#"{"role":"user","content":"Weather?"}
{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"w","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"4 C"},{"type":"text","text":"And there?"}]}"#,
        &["duplicate-call", "duplicate-result"],
    );
}

#[test]
fn results_are_put_first_and_to_their_calls() {
    check(
        Wire::Anthropic,
        r#"[{"role":"user","content":"Go."},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"w","input":{}}]},{"role":"user","content":[{"type":"text","text":"Note."},{"type":"tool_result","tool_use_id":"t1","content":"4"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t9","content":"lost"},{"type":"text","text":"  "}]}]"#,
        Wire::Anthropic,
        &Options::default(),
        r#"{"role":"user","content":"Go."}
{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"w","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"4"},{"type":"text","text":"Note."}]}
{"role":"user","content":[{"type":"text","text":"Result of a tool call that is not part of this conversation:\nlost"}]}"#,
        &["orphan-result", "empty-text"],
    );
}

#[test]
fn ids_that_come_again_get_numbers() {
    check(
        Wire::OpenAiChat,
        r#"[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"1"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"2"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"3"}]"#,
        Wire::OpenAiChat,
        &Options {
            drop_thinking: true,
            ..Options::default()
        },
        r#"{"role":"user","content":"a"}
{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}
{"role":"tool","tool_call_id":"c","content":"1"}
{"role":"assistant","content":null,"tool_calls":[{"id":"c_1","type":"function","function":{"name":"f","arguments":"{}"}}]}
{"role":"tool","tool_call_id":"c_1","content":"2"}
{"role":"assistant","content":null,"tool_calls":[{"id":"call_2","type":"function","function":{"name":"f","arguments":"{}"}}]}
{"role":"tool","tool_call_id":"call_2","content":"3"}"#,
        &["call-id-changed", "call-id-made"],
    );
}

#[test]
fn strict_templates_get_one_system_message_and_turns() {
    let options = Options {
        strict_alternation: true,
        ..Options::default()
    };
    check(
        Wire::OpenAiChat,
        r#"[{"role":"system","content":"Be short."},{"role":"developer","content":"No pop-ups."},{"role":"user","content":"Open the page."},{"role":"user","content":"The German one."},{"role":"assistant","content":"Open."},{"role":"developer","content":"Prices are in EUR."},{"role":"user","content":"Plan M?"},{"role":"assistant","content":"19."},{"role":"user","content":"A year?"}]"#,
        Wire::OpenAiChat,
        &options,
        r#"{"role":"system","content":"Be short.\n\nNo pop-ups.\n\nPrices are in EUR."}
{"role":"user","content":"Open the page.\n\nThe German one."}
{"role":"assistant","content":"Open."}
{"role":"user","content":"Plan M?"}
{"role":"assistant","content":"19."}
{"role":"user","content":"A year?"}"#,
        &[],
    );
}

#[test]
fn server_tools_stay_whole_or_become_text() {
    let messages = r#"[{"role":"user","content":"Which release?"},{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","url":"https://example.org/3.4","title":"3.4 notes","encrypted_content":"ENC"}]},{"type":"text","text":"3.4.","citations":[{"encrypted_index":"IDX"}]}]},{"role":"user","content":"Thanks."}]"#;
    check(
        Wire::Anthropic,
        messages,
        Wire::OpenAiChat,
        &Options::default(),
        r#"{"role":"user","content":"Which release?"}
{"role":"assistant","content":"[web_search {\"query\":\"q\"}]\n\n3.4 notes\nhttps://example.org/3.4\n\n3.4."}
{"role":"user","content":"Thanks."}"#,
        &["server-tool"],
    );
    let conversation = read(
        Wire::Anthropic,
        &format!(r#"{{"max_tokens":1,"messages":{messages}}}"#),
    );
    let converted =
        request_with_memory(&conversation, "M", 1, Wire::Anthropic, &Options::default());
    assert!(converted.body.contains(r#""encrypted_content":"ENC""#));
    let half = read(
        Wire::Anthropic,
        r#"{"max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":" "},{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}]},{"role":"user","content":"b"}]}"#,
    );
    let converted = convert(&half, Wire::Anthropic, &Options::default());
    assert!(
        !converted.body.contains("server_tool_use"),
        "{}",
        converted.body
    );
}

#[test]
fn sealed_items_go_to_their_own_provider_only() {
    let body = r#"{"input":[{"type":"compaction","id":"cmp_1","encrypted_content":"BLOB"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E"},{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"b"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}]}"#;
    let conversation = read(Wire::OpenAiResponses, body);
    let kept = convert(&conversation, Wire::OpenAiResponses, &Options::default());
    assert_eq!(kept.body, body);
    let options = Options {
        drop_sealed: true,
        ..Options::default()
    };
    let converted = convert(&conversation, Wire::OpenAiResponses, &options);
    assert_eq!(
        list(&converted, Wire::OpenAiResponses),
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}
{"type":"message","role":"user","content":[{"type":"input_text","text":"Go on."}]}"#
    );
    assert_eq!(codes(&converted), ["sealed-compaction", "thinking"]);
}

#[test]
fn half_characters_are_mended() {
    let conversation = read(
        Wire::Anthropic,
        r#"{"max_tokens":1,"messages":[{"role":"user","content":"log"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"s","input":{"c":"\udE00"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok \ud83d cut, \ud83d\ude00 whole, \\ud83d text"}]}]}"#,
    );
    let converted = convert(&conversation, Wire::Anthropic, &Options::default());
    assert!(
        converted
            .body
            .contains(r#"ok \ufffd cut, \ud83d\ude00 whole, \\ud83d text"#)
    );
    assert!(converted.body.contains(r#"{"c":"\ufffd"}"#));
    assert_eq!(codes(&converted), ["lone-surrogate"]);
    assert!(serde_json::from_str::<serde_json::Value>(&converted.body).is_ok());
}

#[test]
fn imported_messages_are_rewritten() {
    let call = Block::new(Content::ToolCall(ToolCall {
        id: "".into(),
        name: "edit".into(),
        input: ToolInput::Text("*** patch".into()),
        is_server_side: false,
    }));
    let result = Block::new(Content::ToolResult(ToolResult {
        call_id: "".into(),
        content: vec![Block::text("done")],
        is_error: None,
        is_server_side: false,
    }));
    let conversation = Conversation {
        model: Some("m".to_owned()),
        messages: vec![
            Message::new(Role::Assistant, vec![Block::text("Hello.")]),
            Message::new(Role::Assistant, vec![call, result, Block::text("Changed.")]),
        ],
        ..Conversation::default()
    };
    let converted = convert(&conversation, Wire::Anthropic, &Options::default());
    assert_eq!(
        list(&converted, Wire::Anthropic),
        r#"{"role":"user","content":"(The beginning of this conversation is not available.)"}
{"role":"assistant","content":[{"type":"text","text":"Hello."},{"type":"tool_use","id":"call_1","name":"edit","input":{"input":"*** patch"}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":[{"type":"text","text":"done"}]}]}
{"role":"assistant","content":[{"type":"text","text":"Changed."}]}
{"role":"user","content":"Please continue."}"#
    );
    assert_eq!(
        to_jsonl(&conversation).lines().nth(1).unwrap(),
        r#"{"role":"assistant","blocks":[{"type":"tool_call","id":"","name":"edit","input":"*** patch"},{"type":"tool_result","call_id":"","content":[{"type":"text","text":"done"}]},{"type":"text","text":"Changed."}]}"#
    );
}

#[test]
fn a_memory_replaces_the_messages_it_covers() {
    let body = format!(r#"{{"model":"m", "messages" : {TALK} , "max_tokens":9,"system":"s"}}"#);
    let conversation = read(Wire::Anthropic, &body);
    let tail = TALK
        .split_once(r#"x y","is_error":true},{"type":"text","text":"Well?"}]},"#)
        .unwrap()
        .1;
    let converted = request_with_memory(
        &conversation,
        "MEM",
        3,
        Wire::Anthropic,
        &Options::default(),
    );
    assert_eq!(
        converted.body,
        format!(
            r#"{{"model":"m", "messages" : [{{"role":"user","content":[{{"type":"text","text":"MEM"}}]}},{tail} , "max_tokens":9,"system":"s"}}"#
        )
    );
    assert_eq!(converted.losses, []);
}

#[test]
fn an_illegal_cut_leaves_no_orphan() {
    let conversation = read(
        Wire::Anthropic,
        r#"{"max_tokens":1,"messages":[{"role":"user","content":"Check."},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"grep","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"hits"},{"type":"text","text":"Only src/."}]},{"role":"assistant","content":"Done."},{"role":"user","content":"Next."}]}"#,
    );
    let converted = request_with_memory(
        &conversation,
        "MEM",
        2,
        Wire::Anthropic,
        &Options::default(),
    );
    assert_eq!(
        list(&converted, Wire::Anthropic),
        r#"{"role":"user","content":[{"type":"text","text":"MEM"}]}
{"role":"user","content":[{"type":"text","text":"Only src/."}]}
{"role":"assistant","content":"Done."}
{"role":"user","content":"Next."}"#
    );
    assert_eq!(codes(&converted), ["orphan-result"]);
}

#[test]
fn an_open_tool_turn_keeps_its_reasoning_unless_it_is_bound() {
    let conversation = read(
        Wire::Anthropic,
        r#"{"max_tokens":1,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[{"role":"user","content":"Why?"},{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"A"},{"type":"tool_use","id":"t1","name":"s","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"b","signature":"B"},{"type":"tool_use","id":"t2","name":"s","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"y"}]}]}"#,
    );
    let open = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"b","signature":"B"},{"type":"tool_use","id":"t2","name":"s","input":{}}]}"#;
    let kept = request_with_memory(&conversation, "M", 3, Wire::Anthropic, &Options::default());
    assert!(kept.body.contains(open));
    assert!(!kept.body.contains(r#""signature":"A""#));
    let options = Options {
        drop_thinking: true,
        ..Options::default()
    };
    let dropped = request_with_memory(&conversation, "M", 1, Wire::Anthropic, &options);
    assert!(!dropped.body.contains("signature"));
    assert_eq!(dropped.losses[0].count, 2);
}

#[test]
fn system_messages_outlive_the_cut() {
    let body = r#"{"messages":[{"role":"system","content":"Be short."},{"role":"user","content":"a"},{"role":"developer","content":"No pop-ups."},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}"#;
    let conversation = read(Wire::OpenAiChat, body);
    let converted = request_with_memory(
        &conversation,
        "MEM",
        4,
        Wire::OpenAiChat,
        &Options::default(),
    );
    assert_eq!(
        converted.body,
        r#"{"messages":[{"role":"system","content":"Be short."},{"role":"developer","content":"No pop-ups."},{"role":"user","content":"MEM"},{"role":"user","content":"c"}]}"#
    );
    let strict = Options {
        strict_alternation: true,
        ..Options::default()
    };
    let converted = request_with_memory(&conversation, "MEM", 4, Wire::OpenAiChat, &strict);
    assert_eq!(
        list(&converted, Wire::OpenAiChat),
        r#"{"role":"system","content":"Be short.\n\nNo pop-ups."}
{"role":"user","content":"MEM\n\nc"}"#
    );
}

fn marked(body: &str, cut: usize, ttl: CacheTtl) -> String {
    let conversation = read(Wire::Anthropic, body);
    let options = Options {
        memory_marker: Some(ttl),
        ..Options::default()
    };
    request_with_memory(&conversation, "MEM", cut, Wire::Anthropic, &options).body
}

#[test]
fn the_memory_is_marked_only_where_a_marker_is_free() {
    let mark = r#""cache_control":{"type":"ephemeral"}"#;
    let body = format!(
        r#"{{"max_tokens":1,"system":[{{"type":"text","text":"s",{mark}}}],"tools":[{{"name":"r","input_schema":{{}},{mark}}}],"messages":[{{"role":"user","content":[{{"type":"text","text":"a",{mark}}}]}},{{"role":"assistant","content":[{{"type":"text","text":"b"}}]}},{{"role":"user","content":[{{"type":"text","text":"c",{mark}}}]}}]}}"#
    );
    let freed = marked(&body, 2, CacheTtl::Minutes5);
    assert_eq!(freed.matches("cache_control").count(), 4);
    assert!(freed.contains(&format!(r#"{{"type":"text","text":"MEM",{mark}}}"#)));
    let full = marked(&body, 0, CacheTtl::Minutes5);
    assert_eq!(full.matches("cache_control").count(), 4);
    assert!(full.contains(r#"{"type":"text","text":"MEM"}"#));
}

#[test]
fn the_memorys_marker_keeps_to_the_lane() {
    let body = |system: &str, last: &str| {
        format!(
            r#"{{"max_tokens":1,"system":[{{"type":"text","text":"s","cache_control":{{"type":"ephemeral"{system}}}}}],"messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":"b"}},{{"role":"user","content":[{{"type":"text","text":"c","cache_control":{{"type":"ephemeral"{last}}}}}]}}]}}"#
        )
    };
    let memory = |body: &str, ttl: CacheTtl| {
        let written = marked(body, 2, ttl);
        let (_, rest) = written.split_once(r#""text":"MEM""#).unwrap();
        rest.split_once("}]").unwrap().0.to_owned()
    };
    let short = r#","cache_control":{"type":"ephemeral"}"#;
    let long = r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;
    let hour = r#","ttl":"1h""#;
    assert_eq!(memory(&body("", ""), CacheTtl::Hour1), short);
    assert_eq!(memory(&body(hour, ""), CacheTtl::Hour1), long);
    assert_eq!(memory(&body(hour, hour), CacheTtl::Minutes5), long);
    assert_eq!(memory(&body("", hour), CacheTtl::Hour1), "");
}

#[test]
fn a_found_cut_gives_a_whole_request() {
    let conversation = read(
        Wire::OpenAiChat,
        r#"{"messages":[{"role":"system","content":"You release."},{"role":"user","content":"Which one lags?"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"v","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"v","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"0"},{"role":"assistant","content":"b lags."},{"role":"user","content":"Update it."}]}"#,
    );
    let cut = cut_for_tail(&conversation.messages, Tail::Messages(3), |_| 1);
    let converted = request_with_memory(
        &conversation,
        "MEM",
        cut,
        Wire::OpenAiChat,
        &Options::default(),
    );
    assert_eq!(converted.losses, []);
    assert_eq!(
        list(&converted, Wire::OpenAiChat).lines().next().unwrap(),
        r#"{"role":"system","content":"You release."}"#
    );
    assert_eq!(converted.body.matches("tool_call_id").count(), 2);
}

#[test]
fn empty_messages_are_no_turns_of_a_strict_template() {
    for silent in [
        r#"{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}"#,
        r#"{"type":"compaction","content":null}"#,
        r#"{"type":"newest","x":1}"#,
        r#"{"type":"thinking","thinking":"t","signature":"s"}"#,
        r#"{"type":"text","text":" "}"#,
    ] {
        let body = format!(
            r#"{{"model":"m","max_tokens":99,"messages":[{{"role":"system","content":[]}},{{"role":"assistant","content":[{silent}]}}]}}"#
        );
        let options = Options {
            strict_alternation: true,
            ..Options::default()
        };
        for drop_sealed in [false, true] {
            let options = Options {
                drop_sealed,
                ..options.clone()
            };
            for wire in Wire::ALL {
                let converted = convert(&read(Wire::Anthropic, &body), wire, &options);
                assert_eq!(
                    faults(&converted.body, wire, &options),
                    Vec::<String>::new(),
                    "{silent} {}",
                    converted.body
                );
            }
        }
    }
}
