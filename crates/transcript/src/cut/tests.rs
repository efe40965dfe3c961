use proptest::prelude::*;

use super::*;
use crate::body::read_body;
use crate::json::Raw;
use crate::message::{Block, ToolCall, ToolInput, ToolResult};
use crate::wire::Wire;

/// A history in one word a message: `u` user, `a` assistant, `s` system, `th` reasoning; `+x` calls x, `-x` is the
/// result of x. Several in one message are joined by `,`.
fn history(words: &str) -> Vec<Message> {
    words.split_whitespace().map(message).collect()
}

fn message(word: &str) -> Message {
    let mut role = Role::User;
    let mut blocks = Vec::new();
    for part in word.split(',') {
        match part.split_at(1) {
            ("u", _) => blocks.push(Block::text("hello")),
            ("a", _) => {
                role = Role::Assistant;
                blocks.push(Block::text("hello"));
            }
            ("s", _) => {
                role = Role::System;
                blocks.push(Block::text("rule"));
            }
            ("t", _) => {
                role = Role::Assistant;
                blocks.push(Block::new(Content::Thinking("so".into())));
            }
            ("+", id) => {
                role = Role::Assistant;
                blocks.push(Block::new(Content::ToolCall(ToolCall {
                    id: id.trim_matches('_').into(),
                    name: "run".into(),
                    input: ToolInput::Text("".into()),
                    is_server_side: false,
                })));
            }
            (_, id) => blocks.push(Block::new(Content::ToolResult(ToolResult {
                call_id: id.trim_matches('_').into(),
                content: Vec::new(),
                is_error: None,
                is_server_side: false,
            }))),
        }
    }
    Message::new(role, blocks)
}

const COVERED: Rules = Rules {
    latest_request: LatestRequest::MayBeCovered,
    tail_begins: TailBegins::Anyhow,
};

#[track_caller]
fn check(words: &str, rules: Rules, expected: &[usize]) {
    assert_eq!(legal_cuts_by(&history(words), rules), expected, "{words}");
}

#[test]
fn calls_stay_with_their_results() {
    let rules = Rules::default();
    check("", rules, &[0]);
    check("u a u", rules, &[0, 1, 2]);
    check("u +1 -1 a u", rules, &[0, 1, 3, 4]);
    check("u +1,+2 -1 -2 a u", rules, &[0, 1, 4, 5]);
    // Calls of one batch in messages of their own.
    check("u +1 +2 -2 -1 a u", rules, &[0, 1, 5, 6]);
    // A result with words of the user.
    check("u +1 -1,u a u", rules, &[0, 1, 3, 4]);
    // A late result holds everything between.
    check("u +1 a u a -1 a u", rules, &[0, 1, 6, 7]);
    // A server tool that continues in the next message.
    check("u +s -s,a u", rules, &[0, 1, 3]);
}

#[test]
fn ids_that_are_used_again_pair_with_the_latest_call() {
    check("u +1 -1 u +1 -1 u", Rules::default(), &[0, 1, 3, 4, 6]);
    // Two results of one call stay with it.
    check("u +1 -1 -1 a u", Rules::default(), &[0, 1, 4, 5]);
    // Calls without ids are answered in order.
    check("u +_ -_ a +_ -_ u", Rules::default(), &[0, 1, 3, 4, 6]);
}

#[test]
fn malformed_histories_are_cut_safely() {
    check("-9 u a u", Rules::default(), &[0, 1, 2, 3]);
    // The result comes before its call.
    check("u -1 +1 a u", Rules::default(), &[0, 1, 3, 4]);
}

#[test]
fn calls_that_still_run_are_never_covered() {
    check("u a u +1", COVERED, &[0, 1, 2, 3]);
    check("u +1,+2 -1", COVERED, &[0, 1]);
    // The user speaks while the call waits to be confirmed.
    check("u +1 u a u", COVERED, &[0, 1]);
    // An old call without a result stops nothing.
    check("u +1 u a +2 -2 a u", COVERED, &[0, 1, 2, 3, 4, 6, 7, 8]);
    let long = format!("u +1 {}", "u a ".repeat(PENDING_TURNS_MAX + 1));
    assert_eq!(
        legal_cuts_by(&history(&long), COVERED).last(),
        Some(&(2 + 2 * (PENDING_TURNS_MAX + 1)))
    );
}

#[test]
fn reasoning_stays_with_the_item_after_it() {
    check("u th +1 -1 th a u", Rules::default(), &[0, 1, 4, 6]);
}

#[test]
fn the_tail_begins_where_it_may() {
    check("s u a s u a u", Rules::default(), &[0, 1, 2, 4, 5, 6]);
    let with_user = Rules {
        tail_begins: TailBegins::WithUser,
        ..Rules::default()
    };
    check("u +1 -1 a u a u", with_user, &[0, 4, 6]);
}

#[test]
fn the_latest_request_stays_in_the_tail() {
    check("u a u +1 -1 +2 -2", Rules::default(), &[0, 1, 2]);
    check("u a u +1 -1 +2 -2", COVERED, &[0, 1, 2, 3, 5, 7]);
    // A request in two messages.
    check("u a u u", Rules::default(), &[0, 1, 2]);
}

#[test]
fn tails_are_found() {
    let keep = |words: &str, tail: Tail| cut_for_tail(&history(words), tail, |_| 10);
    assert_eq!(keep("u a u a u", Tail::Messages(1)), 4);
    assert_eq!(keep("u a u a u", Tail::Messages(3)), 2);
    assert_eq!(keep("u a u a u", Tail::Messages(99)), 0);
    assert_eq!(keep("u a u a u", Tail::Messages(0)), 4);
    assert_eq!(keep("u +1 -1 a u", Tail::Messages(3)), 1);
    assert_eq!(keep("u a u a u", Tail::Tokens(30)), 2);
    assert_eq!(keep("u a u a u", Tail::Tokens(39)), 2);
    assert_eq!(keep("u a u a u", Tail::Tokens(0)), 4);
    assert_eq!(keep("u +1 -1 a u", Tail::Tokens(30)), 3);
    assert_eq!(keep("", Tail::Tokens(5)), 0);
}

#[track_caller]
fn messages(wire: Wire, body: &str) -> Vec<Message> {
    read_body(&Raw::parse(body).unwrap(), wire)
        .unwrap()
        .messages
}

#[test]
fn a_tail_that_would_begin_with_a_result_begins_with_its_call() {
    let found = messages(
        Wire::Anthropic,
        r#"{"messages":[
            {"role":"user","content":"Why is it slow?"},
            {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"read","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]},
            {"role":"assistant","content":[{"type":"text","text":"Once more."},{"type":"tool_use","id":"t2","name":"read","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"y"}]},
            {"role":"assistant","content":[{"type":"text","text":"The index."}]},
            {"role":"user","content":"Add it."}]}"#,
    );
    assert_eq!(cut_for_tail(&found, Tail::Messages(3), |_| 1), 3);
}

#[test]
fn a_batch_of_chat_calls_is_not_split() {
    let found = messages(
        Wire::OpenAiChat,
        r#"{"messages":[
            {"role":"system","content":"You release."},
            {"role":"user","content":"Which one lags?"},
            {"role":"assistant","content":null,"tool_calls":[
                {"id":"a","type":"function","function":{"name":"v","arguments":"{}"}},
                {"id":"b","type":"function","function":{"name":"v","arguments":"{}"}},
                {"id":"c","type":"function","function":{"name":"v","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"a","content":"1"},
            {"role":"tool","tool_call_id":"b","content":"1"},
            {"role":"tool","tool_call_id":"c","content":"0"},
            {"role":"assistant","content":"c lags."},
            {"role":"user","content":"Update it."}]}"#,
    );
    assert_eq!(cut_for_tail(&found, Tail::Messages(4), |_| 1), 2);
}

#[test]
fn reasoning_items_and_hosted_tools_stay_whole() {
    let found = messages(
        Wire::OpenAiResponses,
        r#"{"input":[
            {"role":"user","content":"Look it up."},
            {"type":"reasoning","id":"rs_1","summary":[]},
            {"type":"web_search_call","id":"ws_1","status":"completed"},
            {"type":"reasoning","id":"rs_2","summary":[]},
            {"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
            {"type":"function_call","call_id":"c2","name":"f","arguments":"{}"},
            {"type":"function_call_output","call_id":"c1","output":"1"},
            {"type":"function_call_output","call_id":"c2","output":"2"},
            {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]},
            {"role":"user","content":"Thanks."}]}"#,
    );
    assert_eq!(legal_cuts(&found), [0, 1, 3, 8, 9]);
}

proptest! {
    #[test]
    fn no_cut_parts_a_call_from_its_result(
        words in proptest::collection::vec("(u|a|s|th|\\+[12]|-[12]|\\+1,\\+2|-1,-2|-1,u|\\+_|-_)", 0..24)
    ) {
        let messages = history(&words.join(" "));
        for rules in [Rules::default(), COVERED] {
            let cuts = legal_cuts_by(&messages, rules);
            prop_assert_eq!(cuts[0], 0);
            prop_assert!(cuts.windows(2).all(|pair| pair[0] < pair[1]));
            for cut in cuts {
                let (cover, tail) = messages.split_at(cut);
                for (index, message) in tail.iter().enumerate() {
                    for result in message.tool_results().filter(|result| !result.call_id.is_empty()) {
                        let is_call = |message: &Message| message.tool_calls().any(|call| call.id == result.call_id);
                        // The result is of the latest call before it: if one is covered, another follows it.
                        prop_assert!(!cover.iter().any(is_call) || tail[..index].iter().any(is_call));
                    }
                }
            }
        }
        let _ = cut_for_tail(&messages, Tail::Tokens(3), |_| 1);
        let _ = cut_for_tail(&messages, Tail::Messages(3), |_| 1);
    }
}
