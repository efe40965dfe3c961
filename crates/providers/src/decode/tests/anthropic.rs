//! Anthropic Messages.

use super::*;

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"usage":{"input_tokens":9,"cache_read_input_tokens":100,"cache_creation_input_tokens":0,"output_tokens":1}}}"#;
const PING: &str = r#"{"type":"ping"}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn block(index: u32, start: &str, deltas: &[&str]) -> Vec<String> {
    let mut events = vec![format!(
        r#"{{"type":"content_block_start","index":{index},"content_block":{start}}}"#
    )];
    events.extend(deltas.iter().map(|delta| {
        format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
    }));
    events.push(format!(
        r#"{{"type":"content_block_stop","index":{index}}}"#
    ));
    events
}

fn end(delta: &str) -> String {
    format!(r#"{{"type":"message_delta","delta":{delta},"usage":{{"output_tokens":42}}}}"#)
}

fn text(index: u32, text: &str) -> Vec<String> {
    block(
        index,
        r#"{"type":"text","text":""}"#,
        &[&format!(r#"{{"type":"text_delta","text":"{text}"}}"#)],
    )
}

fn tool(index: u32, fragments: &[&str]) -> Vec<String> {
    let deltas: Vec<String> = fragments
        .iter()
        .map(|fragment| {
            let mut literal = String::new();
            throughline_transcript::json::write_string(fragment, &mut literal);
            format!(r#"{{"type":"input_json_delta","partial_json":{literal}}}"#)
        })
        .collect();
    let deltas: Vec<&str> = deltas.iter().map(String::as_str).collect();
    block(
        index,
        &format!(r#"{{"type":"tool_use","id":"toolu_{index}","name":"read","input":{{}}}}"#),
        &deltas,
    )
}

const THINKING: &str = r#"{"type":"thinking","thinking":"","signature":""}"#;

fn stream(blocks: &[Vec<String>], delta: &str) -> String {
    let last = end(delta);
    let mut events = vec![START];
    events.extend(blocks.iter().flatten().map(String::as_str));
    events.extend([last.as_str(), STOP]);
    named(&events)
}

pub(super) fn streams() -> impl Iterator<Item = String> {
    let thought = block(
        0,
        THINKING,
        &[
            r#"{"type":"thinking_delta","thinking":"Hm\u00e9"}"#,
            r#"{"type":"signature_delta","signature":"c2ln"}"#,
        ],
    );
    [
        stream(
            &[text(0, "Grüße 😀")],
            r#"{"stop_reason":"end_turn","stop_sequence":null}"#,
        ),
        stream(
            &[
                thought,
                text(1, "I look."),
                tool(2, &["", r#"{"a":"#, r#"1e0}"#]),
                tool(3, &[]),
            ],
            r#"{"stop_reason":"tool_use"}"#,
        ),
        named(&[
            START,
            PING,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        ]),
    ]
    .into_iter()
}

#[track_caller]
fn check(stream: &str, expected: StopReason, content: &str) -> Reply {
    let reply = decode(Wire::Anthropic, &[stream.as_bytes()]).end.unwrap();
    assert_eq!(reply.stop, Some(expected));
    assert!(reply.is_complete);
    let expected = format!(r#"{{"role":"assistant","content":[{content}]}}"#);
    assert_eq!(messages(&reply), [expected]);
    reply
}

#[test]
fn a_plain_answer() {
    let stream = stream(
        &[text(0, r"Gr\u00fc\u00dfe")],
        r#"{"stop_reason":"end_turn","stop_sequence":null,"container":{"id":"cont_1","expires_at":"2026-11-30T00:00:00Z"}}"#,
    );
    let reply = check(
        &stream,
        StopReason::EndTurn,
        r#"{"type":"text","text":"Gr\u00fc\u00dfe"}"#,
    );
    assert_eq!(reply.text(), "Grüße");
    assert_eq!(reply.model.as_deref(), Some("claude-opus-5-5"));
    assert_eq!(reply.id.as_deref(), Some("msg_1"));
    assert_eq!(
        reply.container.unwrap().string_field("id").unwrap(),
        "cont_1"
    );
    let usage = reply.usage.unwrap().last_pass;
    assert_eq!(
        (usage.uncached, usage.cache_read, usage.output),
        (9, 100, 42)
    );
    assert_eq!(
        shown(&decode(Wire::Anthropic, &[stream.as_bytes()]).events),
        [
            "started claude-opus-5-5 msg_1",
            "usage 109 1",
            "text Grüße",
            "done 0",
            "usage 109 42"
        ]
    );
}

#[test]
fn thinking_and_parallel_calls_are_exact() {
    let thought = block(
        0,
        THINKING,
        &[
            r#"{"type":"thinking_delta","thinking":"One\n","estimated_tokens":2}"#,
            r#"{"type":"thinking_delta","thinking":"two"}"#,
            r#"{"type":"signature_delta","signature":"ab+/=="}"#,
        ],
    );
    let omitted = block(
        1,
        THINKING,
        &[r#"{"type":"signature_delta","signature":"only"}"#],
    );
    let redacted = block(2, r#"{"type":"redacted_thinking","data":"xyz"}"#, &[]);
    let stream = stream(
        &[
            thought,
            omitted,
            redacted,
            tool(3, &["", r#"{ "b":1e3,"#, r#""a":"\u00e9"}"#]),
            tool(4, &[]),
        ],
        r#"{"stop_reason":"tool_use"}"#,
    );
    check(
        &stream,
        StopReason::ToolUse,
        concat!(
            r#"{"type":"thinking","thinking":"One\ntwo","signature":"ab+/=="},"#,
            r#"{"type":"thinking","thinking":"","signature":"only"},"#,
            r#"{"type":"redacted_thinking","data":"xyz"},"#,
            r#"{"type":"tool_use","id":"toolu_3","name":"read","input":{ "b":1e3,"a":"\u00e9"}},"#,
            r#"{"type":"tool_use","id":"toolu_4","name":"read","input":{}}"#
        ),
    );
    assert_eq!(
        shown(&decode(Wire::Anthropic, &[stream.as_bytes()]).events)[2..],
        [
            "thinking One\n",
            "thinking two",
            "done 0",
            "done 1",
            "done 2",
            "call 3 toolu_3 read",
            "input 3 { \"b\":1e3,",
            r#"input 3 "a":"\u00e9"}"#,
            "done 3",
            "call 4 toolu_4 read",
            "input 4 {}",
            "done 4",
            "usage 109 42"
        ]
    );
}

#[test]
fn server_tools_citations_and_unknown_blocks_stay_as_they_came() {
    let search = block(
        0,
        r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}"#,
        &[r#"{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}"#],
    );
    let result = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u","title":"t","encrypted_content":"e","page_age":null}]}"#;
    let cited = block(
        2,
        r#"{"type":"text","text":"","citations":[]}"#,
        &[
            r#"{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"u"}}"#,
            r#"{"type":"text_delta","text":"As said."}"#,
            r#"{"type":"citations_delta","citation":{"n":2}}"#,
        ],
    );
    let unknown = block(
        3,
        r#"{"type":"hologram","beam":"a","shape":{"x":1.50}}"#,
        &[
            r#"{"type":"hologram_delta","beam":"b"}"#,
            r#"{"type":"hologram_delta","shape":{"x":2.50},"beam":"c"}"#,
        ],
    );
    let stream = stream(
        &[search, block(1, result, &[]), cited, unknown],
        r#"{"stop_reason":"pause_turn"}"#,
    );
    let reply = check(
        &stream,
        StopReason::PauseTurn,
        &[
            r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}"#,
            result,
            r#"{"type":"text","text":"As said.","citations":[{"type":"web_search_result_location","url":"u"},{"n":2}]}"#,
            r#"{"type":"hologram","beam":"abc","shape":{"x":2.50}}"#,
        ]
        .join(","),
    );
    assert_eq!(reply.text(), "As said.");
}

#[test]
fn every_reason_to_stop_is_known() {
    let check = |delta: &str, expected: StopReason| {
        let stream = stream(&[text(0, "t")], delta);
        let reply = decode(Wire::Anthropic, &[stream.as_bytes()]).end.unwrap();
        assert_eq!(reply.stop, Some(expected), "{delta}");
    };
    check(r#"{"stop_reason":"max_tokens"}"#, StopReason::MaxTokens);
    check(
        r#"{"stop_reason":"stop_sequence","stop_sequence":"END"}"#,
        StopReason::StopSequence,
    );
    check(
        r#"{"stop_reason":"model_context_window_exceeded"}"#,
        StopReason::WindowExceeded,
    );
    check(
        r#"{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":null}}"#,
        StopReason::Refusal {
            category: Some("cyber".to_owned()),
        },
    );
    check(
        r#"{"stop_reason":"refusal","stop_details":{"category":null}}"#,
        StopReason::Refusal { category: None },
    );
    check(
        r#"{"stop_reason":"bored"}"#,
        StopReason::Other("bored".to_owned()),
    );
}

#[test]
fn compactions_come_whole_even_if_they_failed() {
    let start = r#"{"type":"compaction","content":null,"signature":"s","tool_changes":[]}"#;
    let done = block(
        0,
        start,
        &[r#"{"type":"compaction_delta","content":"All so far","encrypted_content":"e"}"#],
    );
    check(
        &stream(&[done], r#"{"stop_reason":"compaction"}"#),
        StopReason::Compaction,
        r#"{"type":"compaction","content":"All so far","signature":"s","tool_changes":[],"encrypted_content":"e"}"#,
    );
    let failed = block(
        0,
        r#"{"type":"compaction","content":null}"#,
        &[r#"{"type":"compaction_delta","content":null}"#],
    );
    check(
        &stream(&[failed], r#"{"stop_reason":"compaction"}"#),
        StopReason::Compaction,
        r#"{"type":"compaction","content":null}"#,
    );
}

#[test]
fn a_call_that_ran_into_a_limit_is_left_out() {
    for fragments in [&[r#"{"path":"/et"#][..], &[r#"{"path":"/etc"}"#][..]] {
        let stream = stream(
            &[text(0, "I read."), tool(1, fragments)],
            r#"{"stop_reason":"max_tokens"}"#,
        );
        let reply = check(
            &stream,
            StopReason::MaxTokens,
            r#"{"type":"text","text":"I read."}"#,
        );
        assert_eq!(reply.cut_calls, 1);
    }
    let broken = stream(&[tool(0, &[r#"{"a":"#])], r#"{"stop_reason":"tool_use"}"#);
    let decoded = decode(Wire::Anthropic, &[broken.as_bytes()]);
    assert!(matches!(decoded.end, Err(DecodeError::Malformed { .. })));
    assert_eq!(
        (decoded.partial.messages.len(), decoded.partial.cut_calls),
        (0, 1)
    );
}

#[test]
fn texts_without_a_visible_character_are_not_sent_back() {
    let blank = stream(
        &[text(0, r"\n "), tool(1, &[])],
        r#"{"stop_reason":"tool_use"}"#,
    );
    check(
        &blank,
        StopReason::ToolUse,
        r#"{"type":"tool_use","id":"toolu_1","name":"read","input":{}}"#,
    );
    let nothing = stream(&[text(0, "")], r#"{"stop_reason":"end_turn"}"#);
    let reply = decode(Wire::Anthropic, &[nothing.as_bytes()]).end.unwrap();
    assert_eq!(messages(&reply), [""; 0]);
}

#[test]
fn of_a_cut_stream_only_what_is_closed_and_text_is_kept() {
    let thought = block(
        0,
        THINKING,
        &[r#"{"type":"signature_delta","signature":"s"}"#],
    );
    let all = [thought, tool(1, &["{}"]), text(2, "Un")].concat();
    let open_text: Vec<&str> = all[..all.len() - 1].iter().map(String::as_str).collect();
    let mut events = vec![START];
    events.extend(open_text);
    let decoded = decode(Wire::Anthropic, &[named(&events).as_bytes()]);
    assert_eq!(decoded.end, Err(DecodeError::CutOff));
    assert_eq!(
        messages(&decoded.partial),
        [concat!(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},"#,
            r#"{"type":"tool_use","id":"toolu_1","name":"read","input":{}},"#,
            r#"{"type":"text","text":"Un"}]}"#
        )]
    );
    assert_eq!(decoded.partial.usage.unwrap().last_pass.prompt(), 109);

    for open in [
        block(
            0,
            THINKING,
            &[r#"{"type":"thinking_delta","thinking":"Hm"}"#],
        ),
        tool(0, &[r#"{"a":1}"#]),
    ] {
        let mut events = vec![START];
        events.extend(open[..open.len() - 1].iter().map(String::as_str));
        let decoded = decode(Wire::Anthropic, &[named(&events).as_bytes()]);
        assert_eq!(messages(&decoded.partial), [""; 0]);
    }
}

#[test]
fn what_is_missing_is_an_error() {
    let malformed = |events: &[&str]| {
        let decoded = decode(Wire::Anthropic, &[named(events).as_bytes()]);
        assert!(
            matches!(decoded.end, Err(DecodeError::Malformed { .. })),
            "{events:?}: {:?}",
            decoded.end
        );
    };
    let last = end(r#"{"stop_reason":"end_turn"}"#);
    let open = text(0, "t");
    malformed(&[STOP]);
    malformed(&[START, STOP]);
    malformed(&[START, &open[0], &open[1], &last, STOP]);
    malformed(&[START, &open[1]]);
    malformed(&[START, &open[0], &open[0]]);
    let cut = decode(Wire::Anthropic, &[named(&[START, &last]).as_bytes()]);
    assert_eq!(cut.end, Err(DecodeError::CutOff));
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let refused = decode(Wire::Anthropic, &[named(&[START, error]).as_bytes()]);
    assert_eq!(
        refused.end,
        Err(DecodeError::Refused { body: error.into() })
    );
}

#[test]
fn a_whole_answer_gives_the_same_reply() {
    let content = concat!(
        r#"{"type":"thinking","thinking":"One","signature":"ab"},"#,
        r#"{"type":"text","text":"Gr\u00fc\u00dfe"},"#,
        r#"{"type":"tool_use","id":"toolu_2","name":"read","input":{"a":1e0}}"#
    );
    let body = format!(
        r#"{{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{content}],
        "stop_reason":"tool_use","stop_sequence":null,"usage":{{"input_tokens":9,"cache_read_input_tokens":100,"output_tokens":42}}}}"#
    );
    let whole = read_whole(Wire::Anthropic, &body.into()).unwrap();
    let thought = block(
        0,
        THINKING,
        &[
            r#"{"type":"thinking_delta","thinking":"One"}"#,
            r#"{"type":"signature_delta","signature":"ab"}"#,
        ],
    );
    let stream = stream(
        &[
            thought,
            text(1, r"Gr\u00fc\u00dfe"),
            tool(2, &[r#"{"a":1e0}"#]),
        ],
        r#"{"stop_reason":"tool_use"}"#,
    );
    assert_eq!(Ok(whole), decode(Wire::Anthropic, &[stream.as_bytes()]).end);

    let error = r#"{"type":"error","error":{"type":"api_error","message":"m"}}"#;
    assert_eq!(
        read_whole(Wire::Anthropic, &error.into()),
        Err(DecodeError::Refused { body: error.into() })
    );
}
