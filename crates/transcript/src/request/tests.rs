use proptest::prelude::*;

use super::message::{ToolOutput, assistant, tool_outputs, user};
use super::*;
use crate::body::read_body;
use crate::check::{CheckOptions, check_text};

fn frame(wire: Wire, caching: Caching, memory_place: MemoryPlace) -> Frame {
    let tools = match wire {
        Wire::Anthropic => {
            r#"[{"name":"shell","description":"Runs it.","input_schema":{"type":"object"}}]"#
        }
        Wire::OpenAiChat => {
            r#"[{"type":"function","function":{"name":"shell","parameters":{"type":"object","properties":{}}}}]"#
        }
        Wire::OpenAiResponses => {
            r#"[{"type":"function","name":"shell","parameters":{"type":"object","properties":{}}}]"#
        }
    };
    Frame::new(
        wire,
        Settings {
            model: "some-model".to_owned(),
            max_tokens: Some(1000),
            system: "Be \"short\".".to_owned(),
            tools: Some(Raw::parse(tools).unwrap()),
            fields: vec![("stream".to_owned(), Raw::parse("true").unwrap())],
            caching,
            memory_place,
        },
    )
}

fn call(wire: Wire) -> Raw {
    Raw::parse(match wire {
        Wire::Anthropic => {
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"s1"},{"type":"tool_use","id":"t1","name":"shell","input":{"b":1,"a":2.50}}]}"#
        }
        Wire::OpenAiChat => {
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"shell","arguments":"{}"}}]}"#
        }
        Wire::OpenAiResponses => {
            r#"{"type":"function_call","call_id":"t1","name":"shell","arguments":"{}"}"#
        }
    })
    .unwrap()
}

fn output(text: &str) -> ToolOutput {
    ToolOutput {
        call_id: "t1".to_owned(),
        text: text.to_owned(),
        is_error: false,
    }
}

fn session(wire: Wire) -> Vec<Raw> {
    let mut messages = vec![user(wire, "List the files."), call(wire)];
    messages.extend(tool_outputs(wire, &[output("a.txt\nb.txt")], None));
    messages.push(assistant(wire, "Two files."));
    messages.push(user(wire, "Delete “b.txt”."));
    messages
}

#[test]
fn every_request_is_valid_and_a_prefix_of_the_next() {
    for wire in Wire::ALL {
        for place in [MemoryPlace::FirstUserMessage, MemoryPlace::SystemPrompt] {
            for memory in [None, Some("<session_memory>\nWhat was.\n</session_memory>")] {
                let frame = frame(wire, Caching::For(CacheTtl::Minutes5), place);
                let messages = session(wire);
                let mut before = String::new();
                for count in 1..=messages.len() {
                    let body = frame.compose(memory, &messages[..count], Marks::default());
                    assert!(body.starts_with(&before), "{before}\n{body}");
                    before = body.strip_suffix("]}").unwrap().to_owned();
                    // A request that ends with an open call is never sent.
                    if count == 2 || (count == 4 && wire == Wire::Anthropic) {
                        continue;
                    }
                    let report = check_text(&body, wire, &CheckOptions::default());
                    assert!(report.is_valid(), "{report:?}\n{body}");
                }
            }
        }
    }
}

#[test]
fn a_memory_precedes_the_messages_or_joins_the_system_prompt() {
    let messages = [user(Wire::OpenAiChat, "Go on.")];
    let body = |place| {
        frame(Wire::OpenAiChat, Caching::Off, place).compose(Some("M"), &messages, Marks::default())
    };
    assert!(body(MemoryPlace::FirstUserMessage).ends_with(
        r#""messages":[{"role":"system","content":"Be \"short\"."},{"role":"user","content":"M"},{"role":"user","content":"Go on."}]}"#
    ));
    assert!(body(MemoryPlace::SystemPrompt).ends_with(
        r#""messages":[{"role":"system","content":"Be \"short\".\n\nM"},{"role":"user","content":"Go on."}]}"#
    ));
}

#[test]
fn at_most_four_places_are_marked() {
    let frame = frame(
        Wire::Anthropic,
        Caching::For(CacheTtl::Hour1),
        MemoryPlace::FirstUserMessage,
    );
    let messages = session(Wire::Anthropic);
    for end in 0..messages.len() {
        let marks = Marks {
            last_request_end: Some(end),
        };
        let body = frame.compose(Some("M"), &messages, marks);
        assert_eq!(body.matches("cache_control").count(), 4);
        assert!(check_text(&body, Wire::Anthropic, &CheckOptions::default()).is_valid());
        let plain = frame.compose(Some("M"), &messages, Marks::default());
        assert_eq!(
            body.replace(&format!(",\"cache_control\":{LONG}"), ""),
            plain.replace(&format!(",\"cache_control\":{LONG}"), "")
        );
    }
}

#[test]
fn a_frame_is_read_back_as_it_was() {
    for wire in Wire::ALL {
        for caching in [Caching::Off, Caching::For(CacheTtl::Minutes5)] {
            let frame = frame(wire, caching, MemoryPlace::FirstUserMessage);
            let head = Raw::parse(frame.head()).unwrap();
            let read = Frame::read(wire, &head, caching, MemoryPlace::FirstUserMessage).unwrap();
            assert_eq!(read, frame);
        }
    }
    let broken = Raw::parse("[]").unwrap();
    assert_eq!(
        Frame::read(
            Wire::Anthropic,
            &broken,
            Caching::Off,
            MemoryPlace::default()
        ),
        Err(FrameError::NotAnObject)
    );
}

#[test]
fn only_reasoning_is_removed() {
    let call = call(Wire::Anthropic);
    assert_eq!(
        without_thinking(&call).unwrap().as_str(),
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"shell","input":{"b":1,"a":2.50}}]}"#
    );
    let only =
        Raw::parse(r#"{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"}]}"#)
            .unwrap();
    assert_eq!(without_thinking(&only), None);
    for other in session(Wire::OpenAiChat) {
        assert_eq!(without_thinking(&other), Some(other));
    }
}

/// One result many times the window: start, end, what is missing and where it is stay; the call stays answered.
#[test]
fn a_result_larger_than_the_window_is_shortened() {
    let text = format!(
        "BEGIN suite seed=9917\n{}\nFAILED at case 137\nEND exit=101",
        "test case\n".repeat(200_000)
    );
    for wire in Wire::ALL {
        let message = &tool_outputs(wire, &[output(&text)], None)[0];
        let short = shorten(message, wire, 8000, "the whole is message 2").unwrap();
        let said = short.message.as_str();
        assert!(said.len() < 10_000);
        for part in [
            "seed=9917",
            "exit=101",
            "t1",
            "the whole is message 2",
            &short.omitted_bytes.to_string(),
        ] {
            assert!(said.contains(part), "{part}");
        }
        assert_eq!(shorten(&short.message, wire, 9000, ""), None);
        assert_eq!(
            shorten(
                &tool_outputs(wire, &[output("short")], None)[0],
                wire,
                8000,
                ""
            ),
            None
        );
    }
}

#[test]
fn tool_failures_and_empty_results_are_stated() {
    let failed = ToolOutput {
        call_id: "t1".to_owned(),
        text: String::new(),
        is_error: true,
    };
    let said = |wire| {
        tool_outputs(wire, std::slice::from_ref(&failed), Some("Again."))
            .iter()
            .map(|raw| raw.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        said(Wire::Anthropic),
        [
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"(no output)","is_error":true},{"type":"text","text":"Again."}]}"#
        ]
    );
    assert_eq!(said(Wire::OpenAiChat).len(), 2);
    assert!(said(Wire::OpenAiResponses)[0].contains("Error: (no output)"));
}

proptest! {
    #[test]
    fn any_text_is_read_back(text in any::<String>(), memory in any::<String>()) {
        for wire in Wire::ALL {
            let frame = frame(wire, Caching::Off, MemoryPlace::FirstUserMessage);
            let body = frame.compose(Some(&memory), &[user(wire, &text)], Marks::default());
            let body = Raw::parse(body).unwrap();
            let read = read_body(&body, wire).unwrap();
            let last = read.messages.last().unwrap();
            prop_assert_eq!(last.texts().map(|text| text.decode().into_owned()).collect::<String>(), text.clone());
        }
    }

    #[test]
    fn shortening_never_parts_a_character(text in "\\PC{0,300}", max in 0usize..200) {
        let message = &tool_outputs(Wire::Anthropic, &[output(&text)], None)[0];
        if let Some(short) = shorten(message, Wire::Anthropic, max, "p") {
            prop_assert!(Raw::parse(short.message.as_str().to_owned()).is_ok());
        }
    }
}
