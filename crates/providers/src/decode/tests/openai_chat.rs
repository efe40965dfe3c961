//! OpenAI Chat Completions and the servers that imitate it.

use super::*;

const DONE: &str = "[DONE]";
const USAGE: &str = r#"{"id":"chatcmpl-1","model":"gpt-6.2","choices":[],"usage":{"prompt_tokens":50,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":40}}}"#;

fn delta(delta: &str) -> String {
    format!(
        r#"{{"id":"chatcmpl-1","model":"gpt-6.2","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}],"usage":null}}"#
    )
}

fn finish(reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#)
}

fn stream(deltas: &[&str], reason: &str) -> String {
    let mut chunks: Vec<String> = deltas.iter().map(|text| delta(text)).collect();
    chunks.extend([finish(reason), USAGE.to_owned(), DONE.to_owned()]);
    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
    unnamed(&chunks)
}

const CALLS: &[&str] = &[
    r#"{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"read","arguments":""}}]}"#,
    r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":"}}]}"#,
    r#"{"tool_calls":[{"index":0,"function":{"arguments":"\"\u00e9\"}"}}]}"#,
    r#"{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"list","arguments":""}}]}"#,
];

pub(super) fn streams() -> impl Iterator<Item = String> {
    [
        stream(
            &[
                r#"{"role":"assistant","content":""}"#,
                r#"{"content":"Grüße 😀"}"#,
            ],
            "stop",
        ),
        stream(CALLS, "tool_calls"),
        stream(
            &[r#"{"reasoning_content":"Hm"}"#, r#"{"content":"Yes"}"#],
            "length",
        ),
        unnamed(&[
            &delta(r#"{"content":"x"}"#),
            r#"{"error":{"message":"m","code":502}}"#,
        ]),
    ]
    .into_iter()
}

fn reply(stream: &str) -> Reply {
    let reply = decode(Wire::OpenAiChat, &[stream.as_bytes()]).end.unwrap();
    assert!(reply.is_complete);
    reply
}

#[track_caller]
fn check(stream: &str, expected: StopReason, message: &str) -> Reply {
    let reply = reply(stream);
    assert_eq!(reply.stop, Some(expected));
    assert_eq!(messages(&reply), [message]);
    reply
}

#[test]
fn a_plain_answer() {
    let stream = stream(
        &[
            r#"{"role":"assistant","content":"","refusal":null}"#,
            r#"{"content":"Gr\u00fc"}"#,
            r#"{"content":"\u00dfe \ud83d"}"#,
            r#"{"content":"\ude00"}"#,
        ],
        "stop",
    );
    let reply = check(
        &stream,
        StopReason::EndTurn,
        r#"{"role":"assistant","content":"Gr\u00fc\u00dfe \ud83d\ude00"}"#,
    );
    assert_eq!(reply.text(), "Grüße 😀");
    assert_eq!(reply.id.as_deref(), Some("chatcmpl-1"));
    let usage = reply.usage.unwrap().last_pass;
    assert_eq!(
        (usage.uncached, usage.cache_read, usage.output),
        (10, 40, 7)
    );
    assert_eq!(
        shown(&decode(Wire::OpenAiChat, &[stream.as_bytes()]).events)[..2],
        ["started gpt-6.2 chatcmpl-1", "text Grü"]
    );
}

#[test]
fn parallel_calls_are_exact() {
    let expected = concat!(
        r#"{"role":"assistant","content":null,"tool_calls":["#,
        r#"{"id":"call_a","type":"function","function":{"name":"read","arguments":"{\"p\":\"\u00e9\"}"}},"#,
        r#"{"id":"call_b","type":"function","function":{"name":"list","arguments":"{}"}}]}"#
    );
    let stream = stream(CALLS, "tool_calls");
    check(&stream, StopReason::ToolUse, expected);
    assert_eq!(
        shown(&decode(Wire::OpenAiChat, &[stream.as_bytes()]).events),
        [
            "started gpt-6.2 chatcmpl-1",
            "call 0 call_a read",
            "input 0 {\"p\":",
            "input 0 \"é\"}",
            "done 0",
            "call 1 call_b list",
            "done 1",
            "usage 50 7"
        ]
    );
}

#[test]
fn calls_of_servers_with_habits_of_their_own() {
    let call = |id: &str, name: &str, arguments: &str| {
        format!(
            r#"{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":"{arguments}"}}}}"#
        )
    };
    let check = |deltas: &[&str], calls: &[String]| {
        let expected = format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#,
            calls.join(",")
        );
        check(&stream(deltas, "stop"), StopReason::ToolUse, &expected);
    };
    // All with index 0.
    check(
        &[
            r#"{"content":"","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
            r#"{"content":"","tool_calls":[{"index":0,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}"#,
        ],
        &[call("a", "f", "{}"), call("b", "g", "{}")],
    );
    // Without index, the id in each fragment, arguments as an object.
    check(
        &[
            r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"[1"}}]}"#,
            r#"{"tool_calls":[{"id":"a","function":{"arguments":"]"}}]}"#,
            r#"{"tool_calls":[{"id":"b","function":{"name":"g","arguments":{"x":"y"}}}]}"#,
        ],
        &[call("a", "f", "[1]"), call("b", "g", r#"{\"x\":\"y\"}"#)],
    );
    // Without any id.
    check(
        &[r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"f","arguments":"{}"}}]}"#],
        &[call("call_chatcmpl-1_0", "f", "{}")],
    );
    // With fields that are not known here.
    check(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"signature":"s"}}]}"#,
        ],
        &[
            r#"{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"signature":"s"}}"#
                .to_owned(),
        ],
    );
    // Plain text instead of JSON.
    check(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"f","input":"pri"}}]}"#,
            r#"{"tool_calls":[{"index":0,"custom":{"input":"nt"}}]}"#,
        ],
        &[r#"{"id":"a","type":"custom","custom":{"name":"f","input":"print"}}"#.to_owned()],
    );
}

#[test]
fn thinking_goes_back_under_the_name_that_it_came_with() {
    let stream = stream(
        &[
            r#"{"role":"assistant","content":null,"reasoning_content":"One "}"#,
            r#"{"reasoning_content":"two","reasoning":"two"}"#,
            r#"{"content":"Yes","reasoning_details":[{"type":"reasoning.text","text":"a"}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"b"}],"annotations":[{"x":1}]}"#,
        ],
        "stop",
    );
    check(
        &stream,
        StopReason::EndTurn,
        concat!(
            r#"{"role":"assistant","content":"Yes","reasoning_content":"One two","reasoning":"two","#,
            r#""reasoning_details":[{"type":"reasoning.text","text":"a"},{"type":"reasoning.text","text":"b"}]}"#
        ),
    );
    let events = shown(&decode(Wire::OpenAiChat, &[stream.as_bytes()]).events);
    assert_eq!(events[1..4], ["thinking One ", "thinking two", "text Yes"]);
}

#[test]
fn every_reason_to_stop_is_known() {
    let check = |deltas: &[&str], reason: &str, expected: StopReason| {
        assert_eq!(
            reply(&stream(deltas, reason)).stop,
            Some(expected),
            "{reason}"
        );
    };
    let text: &[&str] = &[r#"{"content":"t"}"#];
    check(text, "length", StopReason::MaxTokens);
    check(
        text,
        "content_filter",
        StopReason::Refusal {
            category: Some("content_filter".to_owned()),
        },
    );
    let declined = reply(&stream(&[r#"{"refusal":"I won't"}"#], "stop"));
    assert_eq!(declined.text(), "I won't");
    check(
        &[r#"{"refusal":"I won't"}"#],
        "stop",
        StopReason::Refusal { category: None },
    );
    check(text, "abort", StopReason::Other("abort".to_owned()));
}

#[test]
fn a_call_that_ran_into_the_limit_is_left_out() {
    let cut = stream(&[CALLS[0], CALLS[1]], "length");
    let none = reply(&cut);
    assert_eq!((messages(&none).len(), none.cut_calls), (0, 1));
    let one = reply(&stream(CALLS, "length"));
    assert_eq!(one.cut_calls, 1);
    assert!(one.messages[0].as_str().contains("call_a"));
    assert!(!one.messages[0].as_str().contains("call_b"));
}

#[test]
fn of_a_cut_stream_only_what_is_closed_and_text_is_kept() {
    let partial = |deltas: &[&str]| {
        let chunks: Vec<String> = deltas.iter().map(|text| delta(text)).collect();
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        let decoded = decode(Wire::OpenAiChat, &[unnamed(&chunks).as_bytes()]);
        assert_eq!(decoded.end, Err(DecodeError::CutOff));
        decoded.partial
    };
    let text = partial(&[r#"{"reasoning_content":"Hm"}"#, r#"{"content":"Un"}"#]);
    assert_eq!(
        messages(&text),
        [r#"{"role":"assistant","content":"Un","reasoning_content":"Hm"}"#]
    );
    let thinking = partial(&[r#"{"reasoning_content":"Hm"}"#]);
    assert_eq!(messages(&thinking), [""; 0]);
    let calls = partial(CALLS);
    assert_eq!(calls.cut_calls, 1);
    assert!(calls.messages[0].as_str().contains("call_a"));
    assert!(!calls.messages[0].as_str().contains("call_b"));
    let call = partial(&CALLS[..3]);
    assert_eq!((call.messages.len(), call.cut_calls), (0, 1));
}

#[test]
fn what_is_missing_is_an_error() {
    let end = |chunks: &[&str]| decode(Wire::OpenAiChat, &[unnamed(chunks).as_bytes()]).end;
    let text = delta(r#"{"content":"t"}"#);
    assert!(matches!(end(&[DONE]), Err(DecodeError::Malformed { .. })));
    assert!(matches!(
        end(&[&text, DONE]),
        Err(DecodeError::Malformed { .. })
    ));
    assert_eq!(end(&[&text, &finish("stop")]), Err(DecodeError::CutOff));
    let error = r#"{"error":{"message":"m","type":"server_error"}}"#;
    assert_eq!(
        end(&[&text, error]),
        Err(DecodeError::Refused { body: error.into() })
    );
    let inside = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"error","error":{"code":502,"message":"m"}}]}"#;
    assert!(matches!(
        end(&[&text, inside]),
        Err(DecodeError::Refused { .. })
    ));
}

#[test]
fn a_whole_answer_gives_the_same_reply() {
    let body = concat!(
        r#"{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-6.2","choices":[{"index":0,"message":{"role":"assistant","#,
        r#""content":null,"refusal":null,"annotations":[],"tool_calls":["#,
        r#"{"id":"call_a","type":"function","function":{"name":"read","arguments":"{\"p\":\"\u00e9\"}"}},"#,
        r#"{"id":"call_b","type":"function","function":{"name":"list","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"#,
        r#""usage":{"prompt_tokens":50,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":40}}}"#
    );
    let whole = read_whole(Wire::OpenAiChat, &body.into()).unwrap();
    assert_eq!(whole, reply(&stream(CALLS, "tool_calls")));

    let audio = r#"{"choices":[{"message":{"role":"assistant","content":null,"audio":{"id":"au_1","data":"x","transcript":"t"}},"finish_reason":"stop"}]}"#;
    let reply = read_whole(Wire::OpenAiChat, &audio.into()).unwrap();
    assert_eq!(
        messages(&reply),
        [r#"{"role":"assistant","content":"","audio":{"id":"au_1"}}"#]
    );
}
