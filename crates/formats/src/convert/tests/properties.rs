//! Whatever goes in, a request comes out that the wire checker has nothing against.

use super::*;

/// A history with everything odd in it, as an importer or a broken client might leave it.
fn histories() -> impl proptest::strategy::Strategy<Value = Vec<Message>> {
    use proptest::prelude::*;
    let id = prop_oneof![Just(""), Just("a"), Just("b"), Just("c|1"), Just("d e")];
    let text = prop_oneof![Just(""), Just(" "), Just("x"), Just("so \"quoted\"\n")];
    let block = prop_oneof![
        4 => text.clone().prop_map(Block::text),
        1 => text.clone().prop_map(|text| Block::new(Content::Thinking(text.into()))),
        3 => (id.clone(), any::<bool>(), 0u8..3).prop_map(|(id, is_server_side, input)| {
            Block::new(Content::ToolCall(ToolCall {
                id: id.into(),
                name: "run.it".into(),
                input: match input {
                    0 => ToolInput::Text("oops".into()),
                    1 => ToolInput::Json(Raw::parse("[1]").unwrap()),
                    _ => ToolInput::Json(Raw::parse(r#"{"a":1}"#).unwrap()),
                },
                is_server_side: is_server_side && input == 0,
            }))
        }),
        3 => (id, text.clone(), proptest::option::of(any::<bool>()), 0u8..8).prop_map(|(id, text, is_error, side)| {
            Block::new(Content::ToolResult(ToolResult {
                call_id: id.into(),
                content: vec![Block::text(text)],
                is_error,
                is_server_side: side == 0,
            }))
        }),
        1 => Just(Block::new(Content::Image(Default::default()))),
        1 => Just(Block::new(Content::Compaction(None))),
        1 => text.prop_map(|text| Block::new(Content::Compaction(Some(text.into())))),
        1 => Just(Block::new(Content::Other("new".into()))),
    ];
    let role = prop_oneof![
        3 => Just(Role::User),
        3 => Just(Role::Assistant),
        1 => Just(Role::Tool),
        1 => Just(Role::System),
    ];
    proptest::collection::vec(
        (role, proptest::collection::vec(block, 0..4))
            .prop_map(|(role, blocks)| Message::new(role, blocks)),
        0..12,
    )
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

    #[test]
    fn any_history_gives_a_complete_request(messages in histories(), cut in 0usize..13, strict in proptest::bool::ANY) {
        let conversation = Conversation { model: Some("m".to_owned()), messages, ..Conversation::default() };
        let options = Options { strict_alternation: strict, ..Options::default() };
        for wire in Wire::ALL {
            for converted in [
                convert(&conversation, wire, &options),
                request_with_memory(&conversation, "MEM", cut, wire, &options),
            ] {
                proptest::prop_assert_eq!(faults(&converted.body, wire, &options), Vec::<String>::new(), "{}", converted.body);
                // What was repaired needs no repair again.
                let again = convert(&read(wire, &converted.body), wire, &options);
                let detected = Wire::detect(&Raw::parse(converted.body.as_str()).unwrap());
                if detected == Some(wire) {
                    proptest::prop_assert_eq!(&again.body, &converted.body);
                }
            }
        }
        for line in to_jsonl(&conversation).lines() {
            proptest::prop_assert!(Raw::parse(line).is_ok());
        }
    }
}

/// Messages or items of a request that breaks the rules in any way.
fn pieces(wire: Wire) -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let one_of = |pieces: &[&str]| {
        proptest::sample::select(
            pieces
                .iter()
                .map(|piece| (*piece).to_owned())
                .collect::<Vec<_>>(),
        )
    };
    let blocks = one_of(&[
        r#"{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}"#,
        r#"{"type":"text","text":" "}"#,
        r#"{"type":"text","text":"\ud83d"}"#,
        r#"{"type":"thinking","thinking":"","signature":"s"}"#,
        r#"{"type":"thinking","thinking":"t"}"#,
        r#"{"type":"redacted_thinking","data":"d"}"#,
        r#"{"type":"tool_use","id":"t1","name":"f","input":{}}"#,
        r#"{"type":"tool_use","id":"t2","name":"f","input":{"a": 1}}"#,
        r#"{"type":"tool_use","id":"t 3","name":"f.g","input":"x"}"#,
        r#"{"type":"tool_result","tool_use_id":"t1","content":"r"}"#,
        r#"{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":""},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAEC"}}],"is_error":true}"#,
        r#"{"type":"tool_result","tool_use_id":"t 3"}"#,
        r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}"#,
        r#"{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}"#,
        r#"{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}"#,
        r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}}"#,
        r#"{"type":"compaction","content":"before"}"#,
        r#"{"type":"compaction","content":null}"#,
        r#"{"type":"newest","x":1}"#,
        "7",
    ]);
    match wire {
        Wire::Anthropic => (
            one_of(&["user", "assistant", "assistant", "user", "system"]),
            proptest::collection::vec(blocks, 0..4),
        )
            .prop_map(|(role, blocks)| {
                format!("{{\"role\":\"{role}\",\"content\":[{}]}}", blocks.join(","))
            })
            .boxed(),
        Wire::OpenAiChat => one_of(&[
            r#"{"role":"system","content":"s"}"#,
            r#"{"role":"developer","content":"d"}"#,
            r#"{"role":"user","content":"u"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"u"},{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}]}"#,
            r#"{"role":"assistant","content":"a","reasoning_content":"r"}"#,
            r#"{"role":"assistant","content":""}"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"t2","type":"function","function":{"name":"g","arguments":"{"}}]}"#,
            r#"{"role":"assistant","content":"b","tool_calls":[{"id":"t3","type":"custom","custom":{"name":"f","input":"i"}}]}"#,
            r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}"#,
            r#"{"role":"function","name":"f","content":"r"}"#,
            r#"{"role":"tool","tool_call_id":"t1","content":"1"}"#,
            r#"{"role":"tool","tool_call_id":"t2","content":[{"type":"text","text":"2"}]}"#,
            r#"{"role":"tool","tool_call_id":"t3","content":""}"#,
            r#"{"content":"?"}"#,
        ])
        .boxed(),
        Wire::OpenAiResponses => one_of(&[
            r#"{"role":"user","content":"u"}"#,
            r#"{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"a","annotations":[]}]}"#,
            r#"{"type":"message","role":"developer","content":[{"type":"input_text","text":"d"}]}"#,
            r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E"}"#,
            r#"{"type":"function_call","call_id":"t1","name":"f","arguments":"{}"}"#,
            r#"{"type":"function_call","call_id":"t2","name":"f","arguments":"{"}"#,
            r#"{"type":"custom_tool_call","call_id":"t3","name":"f","input":"i"}"#,
            r#"{"type":"function_call_output","call_id":"t1","output":"1"}"#,
            r#"{"type":"function_call_output","call_id":"t2","output":[{"type":"input_text","text":"2"}]}"#,
            r#"{"type":"custom_tool_call_output","call_id":"t3","output":"3"}"#,
            r#"{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}"#,
            r#"{"type":"local_shell_call","id":"l1","call_id":"t4","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}}"#,
            r#"{"type":"local_shell_call_output","id":"l1","call_id":"t4","output":"4"}"#,
            r#"{"type":"compaction","id":"cmp_1","encrypted_content":"E"}"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://example.org/a.png"}]}"#,
        ])
        .boxed(),
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

    #[test]
    fn any_request_gives_a_whole_request(
        anthropic in proptest::collection::vec(pieces(Wire::Anthropic), 0..10),
        chat in proptest::collection::vec(pieces(Wire::OpenAiChat), 0..10),
        responses in proptest::collection::vec(pieces(Wire::OpenAiResponses), 0..10),
        cut in 0usize..11,
        strict in proptest::bool::ANY,
        drop_thinking in proptest::bool::ANY,
        drop_sealed in proptest::bool::ANY,
    ) {
        for (from, messages) in Wire::ALL.into_iter().zip([anthropic, chat, responses]) {
            let body = format!(
                "{{\"model\":\"m\",\"max_tokens\":99,\"{}\":[{}]}}",
                list_name(from),
                messages.join(",")
            );
            let body = if from == Wire::OpenAiResponses { body.replace("max_tokens", "max_output_tokens") } else { body };
            let conversation = read(from, &body);
            let options = Options { strict_alternation: strict, drop_thinking, drop_sealed, ..Options::default() };
            for wire in Wire::ALL {
                for converted in [
                    convert(&conversation, wire, &options),
                    request_with_memory(&conversation, "MEM", cut, wire, &options),
                ] {
                    if messages.is_empty() {
                        continue;
                    }
                    proptest::prop_assert_eq!(
                        faults(&converted.body, wire, &options), Vec::<String>::new(),
                        "{}\n{} to {}\n{}", body, from, wire, converted.body
                    );
                }
            }
            // A valid request comes back as it is.
            if Wire::detect(&Raw::parse(body.as_str()).unwrap()) == Some(from)
                && faults(&body, from, &Options::default()).is_empty()
                && !body.contains("ud83d")
            {
                let converted = convert(&conversation, from, &Options::default());
                proptest::prop_assert_eq!(converted.body, body);
            }
        }
    }
}
