//! OpenAI Responses.

use super::*;

const CREATED: &str = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"gpt-6.2","status":"in_progress","output":[]}}"#;
const REASONING: &str = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Hm"}],"encrypted_content":"whole"}"#;
const MESSAGE: &str = r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"Gr\u00fc\u00dfe","annotations":[],"logprobs":[]}]}"#;
const CALL: &str = r#"{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"read","arguments":"{\"p\":1e0}"}"#;
const CUSTOM: &str =
    r#"{"id":"ct_1","type":"custom_tool_call","call_id":"call_2","name":"patch","input":"***"}"#;
const USAGE: &str = r#"{"input_tokens":50,"input_tokens_details":{"cached_tokens":40},"output_tokens":7,"total_tokens":57}"#;

fn added(index: u32, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.added","output_index":{index},"item":{item}}}"#)
}

fn done(index: u32, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#)
}

fn end(kind: &str, fields: &str, output: &[&str]) -> String {
    format!(
        r#"{{"type":"response.{kind}","response":{{"id":"resp_1","model":"gpt-6.2","status":"{kind}",{fields}"output":[{}],"usage":{USAGE}}}}}"#,
        output.join(",")
    )
}

fn stream(events: &[String]) -> String {
    let mut all = vec![CREATED];
    all.extend(events.iter().map(String::as_str));
    named(&all)
}

fn reasoning() -> [String; 3] {
    [
        added(0, r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"half"}"#),
        r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Hm"}"#.to_owned(),
        done(0, REASONING),
    ]
}

fn message() -> [String; 4] {
    let text = |delta: &str| {
        format!(
            r#"{{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"{delta}"}}"#
        )
    };
    [
        added(
            1,
            r#"{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}"#,
        ),
        text(r"Gr\u00fc"),
        text(r"\u00dfe"),
        done(1, MESSAGE),
    ]
}

fn calls() -> [String; 6] {
    [
        added(2, r#"{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_1","name":"read","arguments":""}"#),
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"p\":"}"#.to_owned(),
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"1e0}"}"#.to_owned(),
        done(2, CALL),
        added(3, r#"{"id":"ct_1","type":"custom_tool_call","call_id":"call_2","name":"patch","input":""}"#),
        done(3, CUSTOM),
    ]
}

fn whole_turn() -> String {
    let mut events = [&reasoning()[..], &message()[..], &calls()[..]].concat();
    events.push(end("completed", "", &[REASONING, MESSAGE, CALL, CUSTOM]));
    stream(&events)
}

pub(super) fn streams() -> impl Iterator<Item = String> {
    let mut cut = message().to_vec();
    cut.pop();
    cut.push(end(
        "incomplete",
        r#""incomplete_details":{"reason":"max_output_tokens"},"#,
        &[],
    ));
    let failed = vec![
        r#"{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"m"},"output":[]}}"#.to_owned(),
    ];
    [whole_turn(), stream(&cut), stream(&failed)].into_iter()
}

#[test]
fn items_go_back_as_they_came_whole() {
    let decoded = decode(Wire::OpenAiResponses, &[whole_turn().as_bytes()]);
    let reply = decoded.end.unwrap();
    assert_eq!(messages(&reply), [REASONING, MESSAGE, CALL, CUSTOM]);
    assert_eq!(reply.stop, Some(StopReason::ToolUse));
    assert_eq!(reply.text(), "Grüße");
    assert_eq!(
        (reply.id.as_deref(), reply.model.as_deref()),
        (Some("resp_1"), Some("gpt-6.2"))
    );
    let usage = reply.usage.unwrap().last_pass;
    assert_eq!(
        (usage.uncached, usage.cache_read, usage.output),
        (10, 40, 7)
    );
    assert_eq!(
        shown(&decoded.events),
        [
            "started gpt-6.2 resp_1",
            "thinking Hm",
            "done 0",
            "text Grü",
            "text ße",
            "done 1",
            "call 2 call_1 read",
            "input 2 {\"p\":",
            "input 2 1e0}",
            "done 2",
            "call 3 call_2 patch",
            "input 3 ***",
            "done 3",
            "usage 50 7"
        ]
    );
}

#[test]
fn an_end_without_a_list_and_a_list_without_items_are_enough() {
    let mut events = message().to_vec();
    events.push(end("completed", "", &[]));
    let reply = decode(Wire::OpenAiResponses, &[stream(&events).as_bytes()])
        .end
        .unwrap();
    assert_eq!(messages(&reply), [MESSAGE]);
    assert_eq!(reply.stop, Some(StopReason::EndTurn));

    let only_end = stream(&[end("completed", "", &[REASONING, MESSAGE])]);
    let reply = decode(Wire::OpenAiResponses, &[only_end.as_bytes()])
        .end
        .unwrap();
    assert_eq!(messages(&reply), [REASONING, MESSAGE]);
}

#[test]
fn events_without_an_index_find_their_item() {
    let without: Vec<String> = [&message()[..], &calls()[..]]
        .concat()
        .iter()
        .map(|event| {
            let at = event.find(r#""output_index":"#).unwrap();
            let comma = at + event[at..].find(',').unwrap();
            format!("{}{}", &event[..at], &event[comma + 1..])
        })
        .chain([end("completed", "", &[])])
        .collect();
    let decoded = decode(Wire::OpenAiResponses, &[stream(&without).as_bytes()]);
    assert_eq!(messages(&decoded.end.unwrap()), [MESSAGE, CALL, CUSTOM]);
    assert!(shown(&decoded.events).contains(&"input 1 1e0}".to_owned()));
}

#[test]
fn every_reason_to_stop_is_known() {
    let check = |kind: &str, fields: &str, output: &[&str], expected: StopReason| {
        let body = end(kind, fields, output);
        let response = Raw::parse(body).unwrap().field("response").unwrap();
        let reply = read_whole(Wire::OpenAiResponses, response.as_bytestring()).unwrap();
        assert_eq!(reply.stop, Some(expected), "{response:?}");
        assert!(reply.is_complete);
    };
    check("completed", "", &[MESSAGE], StopReason::EndTurn);
    check("completed", "", &[REASONING, CALL], StopReason::ToolUse);
    let details = |reason: &str| format!(r#""incomplete_details":{{"reason":"{reason}"}},"#);
    check(
        "incomplete",
        &details("max_output_tokens"),
        &[MESSAGE],
        StopReason::MaxTokens,
    );
    check(
        "incomplete",
        &details("content_filter"),
        &[MESSAGE],
        StopReason::Refusal {
            category: Some("content_filter".to_owned()),
        },
    );
    check(
        "incomplete",
        &details("steered"),
        &[MESSAGE],
        StopReason::Other("steered".to_owned()),
    );
    let refusal =
        r#"{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}"#;
    check(
        "completed",
        "",
        &[refusal],
        StopReason::Refusal { category: None },
    );
    check(
        "completed",
        "",
        &[r#"{"type":"compaction","encrypted_content":"e"}"#],
        StopReason::Compaction,
    );
    let shell = r#"{"type":"shell_call","call_id":"c","action":{}}"#;
    let output = r#"{"type":"shell_call_output","call_id":"c","output":[]}"#;
    check("completed", "", &[shell], StopReason::ToolUse);
    check(
        "completed",
        "",
        &[shell, output, MESSAGE],
        StopReason::EndTurn,
    );
    check(
        "completed",
        "",
        &[r#"{"type":"web_search_call","id":"ws"}"#, MESSAGE],
        StopReason::EndTurn,
    );
}

#[test]
fn what_ran_into_the_limit_is_left_out() {
    let cut_call = CALL.replace("completed", "incomplete");
    let body = end(
        "incomplete",
        r#""incomplete_details":{"reason":"max_output_tokens"},"#,
        &[MESSAGE, REASONING, &cut_call],
    );
    let reply = decode(Wire::OpenAiResponses, &[stream(&[body]).as_bytes()])
        .end
        .unwrap();
    // The reasoning led to the call and cannot go without it.
    assert_eq!(messages(&reply), [MESSAGE]);
    assert_eq!(reply.cut_calls, 1);
}

#[test]
fn of_a_cut_stream_only_whole_items_and_text_are_kept() {
    let partial = |events: &[String]| {
        let decoded = decode(Wire::OpenAiResponses, &[stream(events).as_bytes()]);
        assert_eq!(decoded.end, Err(DecodeError::CutOff));
        decoded.partial
    };
    let unfinished = [&reasoning()[..], &message()[..3]].concat();
    assert_eq!(
        messages(&partial(&unfinished)),
        [
            REASONING,
            r#"{"id":"msg_1","type":"message","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"Gr\u00fc\u00dfe","annotations":[]}]}"#
        ]
    );
    assert_eq!(messages(&partial(&reasoning())), [""; 0]);
    assert_eq!(messages(&partial(&reasoning()[..2])), [""; 0]);
    let call = partial(&[&reasoning()[..], &calls()[..3]].concat());
    assert_eq!((messages(&call).len(), call.cut_calls), (0, 1));
}

#[test]
fn failures_are_errors() {
    let end = |event: &str| {
        decode(
            Wire::OpenAiResponses,
            &[stream(&[event.to_owned()]).as_bytes()],
        )
        .end
    };
    assert_eq!(
        end(
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"m"}}}"#
        ),
        Err(DecodeError::Refused {
            body: r#"{"error":{"code":"server_error","message":"m"}}"#.into()
        })
    );
    let error = r#"{"type":"error","code":"rate_limit_exceeded","message":"m","param":null}"#;
    assert_eq!(end(error), Err(DecodeError::Refused { body: error.into() }));
    assert!(matches!(
        end(r#"{"type":"response.cancelled","response":{"status":"cancelled","error":null}}"#),
        Err(DecodeError::Refused { .. })
    ));
    assert!(matches!(
        read_whole(
            Wire::OpenAiResponses,
            &r#"{"status":"queued","output":[]}"#.into()
        ),
        Err(DecodeError::Malformed { .. })
    ));
}

#[test]
fn a_whole_answer_gives_the_same_reply() {
    let body = end("completed", "", &[REASONING, MESSAGE, CALL, CUSTOM]);
    let response = Raw::parse(body).unwrap().field("response").unwrap();
    let whole = read_whole(Wire::OpenAiResponses, response.as_bytestring());
    assert_eq!(
        whole,
        decode(Wire::OpenAiResponses, &[whole_turn().as_bytes()]).end
    );
}
