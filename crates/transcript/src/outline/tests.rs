use super::*;

fn outline(wire: Wire, body: &str) -> Result<(Vec<String>, Outline), OutlineError> {
    let mut reader = Reader::new(wire, body.into())?;
    let mut messages = Vec::new();
    while let Some(span) = reader.next()? {
        messages.push(reader.message(span).to_owned());
    }
    Ok((messages, reader.finish()?))
}

#[test]
fn a_body_is_taken_apart() {
    let body =
        "\n{ \"a\" : [1,{}] , \"messages\" : [ {\"x\":1} ,\n{\"y\":[]}\t] , \"b\\u0063\":\"d\" } ";
    let (messages, outline) = outline(Wire::OpenAiChat, body).unwrap();
    assert_eq!(messages, [r#"{"x":1}"#, r#"{"y":[]}"#]);
    let fields: Vec<_> = outline
        .fields()
        .map(|(name, value)| (name.to_owned(), value.as_str().to_owned()))
        .collect();
    assert_eq!(
        fields,
        [
            ("a".to_owned(), "[1,{}]".to_owned()),
            ("bc".to_owned(), "\"d\"".to_owned())
        ]
    );
    assert_eq!(outline.field("bc").unwrap().as_str(), "\"d\"");
}

#[test]
fn unreadable_bodies_are_errors() {
    for (body, expected) in [
        (
            "",
            "the body is not JSON: the JSON value ends early at byte 0",
        ),
        ("[]", "the body is not a JSON object"),
        (
            "{",
            "the body is not JSON: the JSON value ends early at byte 1",
        ),
        ("{}", "the body has no list \"messages\""),
        (r#"{"messages":"x"}"#, "the body has no list \"messages\""),
        (
            r#"{"messages":["#,
            "the body is not JSON: the JSON value ends early at byte 13",
        ),
        (
            r#"{"messages":[}"#,
            "the body is not JSON: unexpected character at byte 13",
        ),
        (
            r#"{"messages":[1 2]}"#,
            "the body is not JSON: unexpected character at byte 15",
        ),
        (
            r#"{"messages":[]"#,
            "the body is not JSON: the JSON value ends early at byte 14",
        ),
        (
            r#"{"messages":[]} x"#,
            "the body is not JSON: more text after the JSON value at byte 16",
        ),
        (
            r#"{"messages":[],"messages":[]}"#,
            "the field \"messages\" occurs twice",
        ),
        (
            r#"{"messages":[],}"#,
            "the body is not JSON: unexpected character at byte 15",
        ),
        (
            r#"{1:2,"messages":[]}"#,
            "the body is not JSON: unexpected character at byte 1",
        ),
    ] {
        let error = outline(Wire::Anthropic, body).unwrap_err();
        assert_eq!(error.to_string(), expected, "{body}");
    }
}

#[test]
fn known_messages_are_passed_over() {
    let body = r#"{"input":[{"a":1}, {"b":2},{"c":3}],"model":"m"}"#;
    let mut reader = Reader::new(Wire::OpenAiResponses, body.into()).unwrap();
    let known = |bytes: &[u8]| bytes == br#"{"a":1}"#;
    assert_eq!(
        reader.clone().skip(6, |_| true),
        None,
        "not a whole message"
    );
    assert_eq!(reader.clone().skip(500, |_| true), None);
    assert_eq!(reader.clone().skip(7, |_| false), None);
    let span = reader.skip(7, known).unwrap();
    assert_eq!(reader.message(span), r#"{"a":1}"#);
    let span = reader.skip(7, |_| true).unwrap();
    assert_eq!(reader.message(span), r#"{"b":2}"#);
    let span = reader.next().unwrap().unwrap();
    assert_eq!(reader.message(span), r#"{"c":3}"#);
    assert_eq!(reader.skip(7, |_| true), None);
    let outline = reader.finish().unwrap();
    assert_eq!(outline.field("model").unwrap().as_str(), "\"m\"");
}

#[test]
fn messages_are_replaced_and_the_rest_is_unchanged() {
    let body = r#"{"model" : "m", "messages" : [ {"s":0}, {"a":1}, {"b":2} , {"c":3} ] , "n":1e3}"#;
    let mut reader = Reader::new(Wire::OpenAiChat, body.into()).unwrap();
    let mut spans = Vec::new();
    while let Some(span) = reader.next().unwrap() {
        spans.push(span);
    }
    let outline = reader.finish().unwrap();
    let kept = |spans: &[Span]| spans.iter().copied().map(Piece::Kept).collect::<Vec<_>>();
    assert_eq!(
        outline.replaced(&spans[..1], &["M"], &kept(&spans[2..])),
        r#"{"model" : "m", "messages" : [{"s":0},M,{"b":2} , {"c":3}] , "n":1e3}"#
    );
    assert_eq!(
        outline.replaced(&[], &["M"], &[]),
        r#"{"model" : "m", "messages" : [M] , "n":1e3}"#
    );
    assert_eq!(
        outline.replaced(
            &[],
            &[],
            &[
                spans[1].into(),
                Piece::Other(Raw::parse("7").unwrap()),
                spans[3].into()
            ]
        ),
        r#"{"model" : "m", "messages" : [{"a":1},7,{"c":3}] , "n":1e3}"#
    );
    // One that is left out does not come along between its neighbours.
    assert_eq!(
        outline.replaced(&[], &["M"], &kept(&[spans[0], spans[2], spans[3]])),
        r#"{"model" : "m", "messages" : [M,{"s":0},{"b":2} , {"c":3}] , "n":1e3}"#
    );
    assert_eq!(
        outline.replaced(&spans[..1], &[], &kept(&spans[1..])),
        r#"{"model" : "m", "messages" : [{"s":0},{"a":1}, {"b":2} , {"c":3}] , "n":1e3}"#
    );
}

proptest::proptest! {
    /// Whatever a reader takes is JSON, and it reads what a parser reads.
    #[test]
    fn any_text_is_survived(body in "[ \\[\\]{}:,\"a-cmesgs01\\\\é]{0,60}") {
        let taken = outline(Wire::Anthropic, &body);
        let parsed = Raw::parse(body.as_str());
        if taken.is_ok() {
            proptest::prop_assert!(parsed.is_ok(), "{}", body);
        }
    }

    #[test]
    fn what_is_walked_is_what_is_parsed(
        fields in proptest::collection::vec(("[a-d]{1,2}", "([0-9]|\"[a-z]{0,3}\"|\\[\\]|\\{\\})"), 0..4),
        messages in proptest::collection::vec("\\{\"[a-z]\":(1|\"é\"|\\[1, 2\\])\\}", 0..5),
        space in "[ \n]{0,2}",
        before in 0usize..4,
    ) {
        let mut all: Vec<String> = fields.iter().map(|(key, value)| format!("\"{key}\"{space}:{value}")).collect();
        let list = format!("\"messages\":{space}[{}]", messages.join(&format!("{space},{space}")));
        all.insert(before.min(all.len()), list);
        let body = format!("{{{space}{}{space}}}", all.join(","));
        let raw = Raw::parse(body.as_str()).unwrap();
        let (found, outline) = outline(Wire::Anthropic, &body).unwrap();
        proptest::prop_assert_eq!(found, messages);
        for (key, _) in &fields {
            proptest::prop_assert_eq!(outline.field(key).cloned(), raw.field(key));
        }
    }
}

#[test]
fn tools_are_found_wherever_a_format_has_them() {
    use Wire::{Anthropic, OpenAiChat, OpenAiResponses};
    for (wire, body, expected) in [
        (Anthropic, r#"{"messages":[],"tools":[{"name":"t"}]}"#, true),
        (Anthropic, r#"{"messages":[],"tools":[]}"#, false),
        (Anthropic, r#"{"messages":[],"tools":null}"#, false),
        (
            Anthropic,
            r#"{"mcp_servers":[{"name":"m"}],"messages":[]}"#,
            true,
        ),
        (
            Anthropic,
            r#"{"functions":[{"name":"f"}],"messages":[]}"#,
            false,
        ),
        (
            OpenAiChat,
            r#"{"messages":[],"tools":[{"type":"function"}]}"#,
            true,
        ),
        (
            OpenAiChat,
            r#"{"functions":[{"name":"f"}],"messages":[]}"#,
            true,
        ),
        (
            OpenAiChat,
            r#"{"messages":[{"role":"user","content":"tools"}]}"#,
            false,
        ),
        (
            OpenAiResponses,
            r#"{"input":[],"tools":[{"type":"function"}]}"#,
            true,
        ),
        (
            OpenAiResponses,
            r#"{"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"custom","name":"exec"}]},{"role":"user","content":"a"}]}"#,
            true,
        ),
        (
            OpenAiResponses,
            r#"{"input":[{"role":"user","content":"a"},{"tools":[{}],"type":"additional_tools"}]}"#,
            true,
        ),
        (
            OpenAiResponses,
            r#"{"input":[{"type":"additional_tools","tools":[]}]}"#,
            false,
        ),
        (
            OpenAiResponses,
            r#"{"input":[{"role":"user","content":"\"type\":\"additional_tools\",\"tools\":[1]"}]}"#,
            false,
        ),
        (OpenAiResponses, r#"{"input":[]}"#, false),
    ] {
        let (_, outline) = outline(wire, body).unwrap();
        assert_eq!(outline.offers_tools(), expected, "{wire} {body}");
    }
}
