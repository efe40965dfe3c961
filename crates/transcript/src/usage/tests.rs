use super::*;

fn raw(json: &str) -> Raw {
    Raw::parse(json).unwrap()
}

#[track_caller]
fn check(reported: Option<UsageReport>, expected: Option<(u64, u64)>) {
    let size = reported.map(|reported| reported.context_size());
    assert_eq!(size.map(|size| (size.prompt, size.next)), expected);
}

#[test]
fn anthropic_counts_are_added_once() {
    let read = |json| UsageReport::from_anthropic(&raw(json));
    check(
        read(
            r#"{"input_tokens":12,"cache_read_input_tokens":150000,"cache_creation_input_tokens":3000,"output_tokens":900}"#,
        ),
        Some((153_012, 153_912)),
    );
    let split = read(
        r#"{"input_tokens":12,"cache_read_input_tokens":150000,"cache_creation_input_tokens":3000,
            "cache_creation":{"ephemeral_5m_input_tokens":1000,"ephemeral_1h_input_tokens":2000},"output_tokens":900}"#,
    );
    check(split, Some((153_012, 153_912)));
    assert_eq!(split.unwrap().billed.cache_write_long, 2_000);
    check(
        read(
            r#"{"input_tokens":700,"cache_read_input_tokens":null,"cache_creation_input_tokens":null,"output_tokens":5}"#,
        ),
        Some((700, 705)),
    );
    check(read(r#"{"input_tokens":0,"output_tokens":0}"#), None);
    check(read(r#"{"output_tokens":7}"#), None);
    check(read("null"), None);
    check(read("[]"), None);
}

#[test]
fn several_passes_fill_the_window_once_and_are_billed_each() {
    let reported = UsageReport::from_anthropic(&raw(
        r#"{"input_tokens":30,"cache_read_input_tokens":90000,"output_tokens":600,
            "output_tokens_details":{"thinking_tokens":250},
            "iterations":[
              {"type":"compaction","input_tokens":50000,"output_tokens":2000},
              {"type":"message","input_tokens":10,"cache_read_input_tokens":40000,"output_tokens":100},
              {"type":"message","input_tokens":20,"cache_read_input_tokens":50000,"output_tokens":500},
              {"type":"advisor_message","input_tokens":7,"output_tokens":9}]}"#,
    ))
    .unwrap();
    check(Some(reported), Some((50_020, 50_520)));
    assert_eq!(reported.billed.prompt(), 140_030);
    assert_eq!(reported.billed.output, 2_600);
    assert_eq!(reported.reasoning, Some(250));
}

#[test]
fn streamed_counts_replace_each_other() {
    let mut stream = AnthropicStream::default();
    check(stream.reported(), None);
    stream.event(&raw(
        r#"{"input_tokens":12,"cache_read_input_tokens":150000,"cache_creation_input_tokens":3000,"output_tokens":1}"#,
    ));
    stream.event(&raw(
        r#"{"output_tokens":400,"cache_read_input_tokens":null}"#,
    ));
    stream.event(&raw(r#"{"output_tokens":900}"#));
    check(stream.reported(), Some((153_012, 153_912)));
}

#[test]
fn openai_prompt_counts_include_cached_tokens() {
    let chat = |json| UsageReport::from_openai_chat(&raw(json));
    check(
        chat(
            r#"{"prompt_tokens":153012,"completion_tokens":900,"total_tokens":153912,"prompt_tokens_details":{"cached_tokens":150000}}"#,
        ),
        Some((153_012, 153_912)),
    );
    check(
        chat(r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#),
        None,
    );
    check(chat("null"), None);
    let responses = UsageReport::from_openai_responses(&raw(
        r#"{"input_tokens":153012,"input_tokens_details":{"cached_tokens":150000,"cache_write_tokens":2000,
            "cache_write_tokens_details":{"ttl_30m_tokens":500,"ttl_12h_tokens":1500}},
            "output_tokens":900,"output_tokens_details":{"reasoning_tokens":600},"total_tokens":153912}"#,
    ));
    check(responses, Some((153_012, 153_912)));
    let reported = responses.unwrap();
    assert_eq!(reported.reasoning, Some(600));
    assert_eq!(
        reported.billed,
        Usage {
            uncached: 1_012,
            cache_write: 2_000,
            cache_write_long: 1_500,
            cache_read: 150_000,
            output: 900
        },
    );
}

#[test]
fn the_last_call_of_a_session_tells_the_context() {
    let calls = [
        r#"{"input_tokens":40000,"output_tokens":500}"#,
        r#"{"input_tokens":41000,"output_tokens":700}"#,
        r#"{"input_tokens":42000,"output_tokens":600}"#,
    ];
    let last = calls
        .iter()
        .rev()
        .find_map(|call| UsageReport::from_anthropic(&raw(call)));
    check(last, Some((42_000, 42_600)));
}

#[test]
fn impossible_counts_do_no_harm() {
    let most = u64::MAX;
    let reported = UsageReport::from_anthropic(&raw(&format!(
        r#"{{"input_tokens":{most},"cache_read_input_tokens":{most},"cache_creation_input_tokens":{most},"output_tokens":{most},
            "iterations":[{{"type":"compaction","input_tokens":{most}}}]}}"#
    )));
    check(reported, Some((most, most)));
    check(
        UsageReport::from_openai_chat(&raw(
            r#"{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":9,"cache_write_tokens":9}}"#,
        )),
        Some((5, 5)),
    );
    check(
        UsageReport::from_openai_chat(&raw(r#"{"prompt_tokens":-5}"#)),
        None,
    );
}
