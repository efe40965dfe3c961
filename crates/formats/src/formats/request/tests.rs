use throughline_transcript::message::Message;

use super::*;

fn source(text: &str) -> SourceText {
    SourceText {
        text: text.into(),
        skipped: Vec::new(),
    }
}

fn format_of(wire: Wire) -> &'static Request {
    match wire {
        Wire::Anthropic => &ANTHROPIC,
        Wire::OpenAiChat => &OPENAI_CHAT,
        Wire::OpenAiResponses => &OPENAI_RESPONSES,
    }
}

/// A message of text in one line, for comparison.
fn show(message: &Message) -> String {
    let texts: Vec<_> = message.texts().map(|text| text.decode()).collect();
    format!("{:?}: {}", message.role, texts.join(" | "))
}

#[track_caller]
fn read(wire: Wire, text: &str) -> Source {
    format_of(wire).read(&source(text)).unwrap()
}

#[test]
fn lines_lists_and_bodies() {
    let shape = |wire: Wire, text: &str| {
        let found = read(wire, text);
        let conversations: Vec<Vec<String>> = found
            .conversations
            .iter()
            .map(|conversation| {
                conversation
                    .messages
                    .iter()
                    .map(|message| format!("{} {}", message.position.line, show(message)))
                    .collect()
            })
            .collect();
        let skipped: Vec<_> = found
            .skipped
            .iter()
            .map(|skipped| format!("{}+{} {}", skipped.line, skipped.bytes, skipped.reason))
            .collect();
        format!("{conversations:?} {skipped:?}")
    };
    let a = r#"{"role":"user","content":"a"}"#;
    let b = r#"{"role":"assistant","content":"b"}"#;
    let expected = |text: &str| text.to_owned();
    assert_eq!(
        shape(Wire::OpenAiChat, &format!("[{a},{b}]")),
        expected(r#"[["0 User: a", "0 Assistant: b"]] []"#)
    );
    assert_eq!(
        shape(Wire::OpenAiChat, &format!("{a}\n\n{b}\n")),
        expected(r#"[["1 User: a", "3 Assistant: b"]] []"#)
    );
    assert_eq!(
        shape(
            Wire::OpenAiChat,
            &format!("{{\"messages\":[{a}]}}\n{{\"messages\":[{b}]}}")
        ),
        expected(r#"[["1 User: a"], ["2 Assistant: b"]] []"#)
    );
    assert_eq!(
        shape(
            Wire::OpenAiChat,
            &format!("{a}\nnot this\nnor this\n{b}\n{{\"role\":\"us")
        ),
        expected(r#"[["1 User: a", "4 Assistant: b"]] ["2+16 not JSON", "5+11 not JSON"]"#)
    );
    assert_eq!(
        shape(Wire::OpenAiChat, &format!("{{\"messages\":[{a},7,{b}]}}")),
        expected(r#"[["0 User: a", "0 Assistant: b"]] ["0+1 message 1 is not an object"]"#)
    );
    assert_eq!(
        shape(
            Wire::OpenAiChat,
            &format!("{{\"model\":\"m\",\n\"messages\":[\n{a},\n{b},{{\"role\"")
        ),
        expected(r#"[["0 User: a", "0 Assistant: b"]] ["4+7 the text breaks off here"]"#)
    );
}

#[test]
fn a_text_that_is_not_a_request_is_refused() {
    let check = |wire: Wire, text: &str, expected: &str| {
        let error = format_of(wire).read(&source(text)).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(Wire::Anthropic, " \n", "the input is empty");
    check(
        Wire::Anthropic,
        "# notes",
        "the input is not anthropic: not JSON: unexpected character at byte 0",
    );
    check(
        Wire::OpenAiResponses,
        r#"{"messages":[]}"#,
        "the input is not openai-responses: there are no input",
    );
}

#[test]
fn formats_recognise_their_own() {
    let check = |text: &str, expected: Option<Wire>| {
        let probe = Probe::new(text);
        let best = Wire::ALL
            .into_iter()
            .map(|wire| (format_of(wire).fits(&probe), wire))
            .filter(|(score, _)| *score > 0)
            .max_by_key(|(score, _)| *score)
            .map(|(_, wire)| wire);
        assert_eq!(best, expected, "{text}");
    };
    let anthropic = Some(Wire::Anthropic);
    let chat = Some(Wire::OpenAiChat);
    let responses = Some(Wire::OpenAiResponses);
    check(
        r#"{"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#,
        anthropic,
    );
    check(r#"{"messages":[{"role":"user","content":"hi"}]}"#, chat);
    check(r#"{"model":"m","input":"hi"}"#, responses);
    check(
        r#"{"model":"m","input":[{"role":"user","content":"hi"}]}"#,
        responses,
    );
    check(
        r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]"#,
        anthropic,
    );
    check(
        "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"b\"}",
        chat,
    );
    check(
        r#"[{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}]"#,
        responses,
    );
    let late = format!(
        r#"{{"model":"m","system":"{}","messages":[{{"role":"user","#,
        "x".repeat(9_000_000)
    );
    check(&late, anthropic);
    check("# heading", None);
    check(r#"{"a":1}"#, None);
    check("", None);
}
