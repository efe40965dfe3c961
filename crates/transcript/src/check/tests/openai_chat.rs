//! Rules of OpenAI Chat Completions and of chat templates.

use super::super::*;
use super::{Row, known, model};

fn body(settings: &str, messages: &[&str]) -> String {
    format!(
        r#"{{"model":"m",{settings}"messages":[{}]}}"#,
        messages.join(",")
    )
}

const HI: &str = r#"{"role":"user","content":"Hi."}"#;
const HELLO: &str = r#"{"role":"assistant","content":"Hello."}"#;
const SYSTEM: &str = r#"{"role":"system","content":"Be brief."}"#;
const TOOLS: &str = r#""tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"#;

fn hi(settings: &str) -> String {
    body(settings, &[HI])
}

fn call(id: &str) -> String {
    format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#)
}

fn calls(list: &[String]) -> String {
    format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{}]}}"#,
        list.join(",")
    )
}

fn result(id: &str) -> String {
    format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"done"}}"#)
}

fn row(code: &'static str, path: &'static str, broken: String, kept: String) -> Row {
    Row::error(Wire::OpenAiChat, (code, path), broken, kept)
}

pub(super) fn table() -> Vec<Row> {
    let mut rows = settings();
    rows.extend(messages());
    rows.extend(pairing());
    rows.extend(template());
    rows
}

fn settings() -> Vec<Row> {
    let tool = |name: &str| format!(r#"{{"type":"function","function":{{"name":"{name}"}}}}"#);
    let seventeen: Vec<_> = (0..17).map(|n| format!(r#""k{n}":"v""#)).collect();
    vec![
        row(
            "missing-field",
            "model",
            format!(r#"{{"messages":[{HI}]}}"#),
            hi(""),
        ),
        row(
            "max-tokens-twice",
            "max_tokens",
            hi(r#""max_tokens":5,"max_completion_tokens":5,"#),
            hi(r#""max_completion_tokens":5,"#),
        ),
        row(
            "max-tokens-deprecated",
            "max_tokens",
            hi(r#""max_tokens":5,"#),
            hi(r#""max_completion_tokens":5,"#),
        )
        .warning(),
        row(
            "max-tokens-above-model",
            "max_completion_tokens",
            hi(r#""max_completion_tokens":64001,"#),
            hi(r#""max_completion_tokens":64000,"#),
        ),
        row("out-of-range", "n", hi(r#""n":0,"#), hi(r#""n":2,"#)),
        row("out-of-range", "n", hi(r#""n":129,"#), hi(r#""n":128,"#)),
        row(
            "out-of-range",
            "temperature",
            hi(r#""temperature":2.5,"#),
            hi(r#""temperature":2,"#),
        ),
        row(
            "sampling-removed",
            "temperature",
            hi(r#""temperature":0.5,"#),
            hi(r#""temperature":1,"#),
        )
        .with(model(|model| model.abilities.sampling = Some(false))),
        row(
            "stop-sequences",
            "stop",
            hi(r#""stop":["a","b","c","d","e"],"#),
            hi(r#""stop":["a","b","c","d"],"#),
        ),
        row(
            "stop-sequences",
            "stop",
            hi(r#""stop":5,"#),
            hi(r#""stop":"END","#),
        ),
        row(
            "stream-options-without-stream",
            "stream_options",
            hi(r#""stream_options":{"include_usage":true},"#),
            hi(r#""stream":true,"stream_options":{"include_usage":true},"#),
        ),
        row(
            "logprobs",
            "top_logprobs",
            hi(r#""top_logprobs":3,"#),
            hi(r#""logprobs":true,"top_logprobs":3,"#),
        ),
        row(
            "response-format",
            "response_format.type",
            hi(r#""response_format":{"type":"yaml"},"#),
            hi(r#""response_format":{"type":"json_object"},"#),
        ),
        row(
            "missing-field",
            "response_format.json_schema.name",
            hi(r#""response_format":{"type":"json_schema","json_schema":{"schema":{}}},"#),
            hi(
                r#""response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{}}},"#,
            ),
        ),
        row(
            "metadata",
            "metadata",
            hi(&format!(r#""metadata":{{{}}},"#, seventeen.join(","))),
            hi(&format!(r#""metadata":{{{}}},"#, seventeen[..16].join(","))),
        ),
        row(
            "unknown-value",
            "reasoning_effort",
            hi(r#""reasoning_effort":"heroic","#),
            hi(r#""reasoning_effort":"high","#),
        )
        .warning(),
        row("tools-empty", "tools", hi(r#""tools":[],"#), hi(TOOLS)).warning(),
        row(
            "duplicate-tool-name",
            "tools[1]",
            hi(&format!(r#""tools":[{},{}],"#, tool("f"), tool("f"))),
            hi(&format!(r#""tools":[{},{}],"#, tool("f"), tool("g"))),
        )
        .warning(),
        row(
            "function-name",
            "tools[0].function.name",
            hi(&format!(r#""tools":[{}],"#, tool("ns.f"))),
            hi(&format!(r#""tools":[{}],"#, tool("ns_f-2"))),
        ),
        row(
            "tool-choice-without-tools",
            "tool_choice",
            hi(r#""tool_choice":"required","#),
            hi(&format!(r#"{TOOLS}"tool_choice":"required","#)),
        ),
        row(
            "tool-choice-without-tools",
            "parallel_tool_calls",
            hi(r#""parallel_tool_calls":false,"#),
            hi(&format!(r#"{TOOLS}"parallel_tool_calls":false,"#)),
        ),
        row(
            "tool-choice-type",
            "tool_choice",
            hi(&format!(r#"{TOOLS}"tool_choice":"any","#)),
            hi(&format!(r#"{TOOLS}"tool_choice":"auto","#)),
        ),
        row(
            "tool-choice-type",
            "tool_choice.type",
            hi(&format!(
                r#"{TOOLS}"tool_choice":{{"type":"tool","name":"f"}},"#
            )),
            hi(&format!(
                r#"{TOOLS}"tool_choice":{{"type":"function","function":{{"name":"f"}}}},"#
            )),
        ),
        row(
            "tool-choice-unknown-tool",
            "tool_choice.function.name",
            hi(&format!(
                r#"{TOOLS}"tool_choice":{{"type":"function","function":{{"name":"g"}}}},"#
            )),
            hi(&format!(
                r#"{TOOLS}"tool_choice":{{"type":"function","function":{{"name":"f"}}}},"#
            )),
        ),
    ]
}

fn messages() -> Vec<Row> {
    let with_arguments = |arguments: &str| {
        let call = format!(
            r#"{{"id":"a","type":"function","function":{{"name":"f","arguments":{arguments}}}}}"#
        );
        body(TOOLS, &[HI, &calls(&[call]), &result("a")])
    };
    vec![
        row("messages-empty", "messages", body("", &[]), hi("")),
        row(
            "unknown-role",
            "messages[0].role",
            body("", &[r#"{"role":"model","content":"x"}"#, HI]),
            body("", &[r#"{"role":"developer","content":"x"}"#, HI]),
        ),
        row(
            "deprecated-function",
            "messages[0].role",
            body("", &[r#"{"role":"function","name":"f","content":"x"}"#, HI]),
            hi(""),
        )
        .warning(),
        row(
            "content-missing",
            "messages[0].content",
            body("", &[r#"{"role":"user","content":null}"#]),
            body("", &[r#"{"role":"user","content":""}"#]),
        ),
        row(
            "content-missing",
            "messages[1].content",
            body("", &[HI, r#"{"role":"assistant"}"#]),
            body(
                "",
                &[HI, r#"{"role":"assistant","content":null,"refusal":"No."}"#],
            ),
        ),
        row(
            "empty-content",
            "messages[0].content",
            body("", &[r#"{"role":"user","content":[]}"#]),
            hi(""),
        ),
        row(
            "content-part-type",
            "messages[0].content[0].type",
            body(
                "",
                &[r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}"#],
            ),
            body(
                "",
                &[
                    r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}]}"#,
                ],
            ),
        ),
        row(
            "content-part-type",
            "messages[0].content[0].type",
            body(
                "",
                &[
                    r#"{"role":"system","content":[{"type":"image_url","image_url":{"url":"u"}}]}"#,
                    HI,
                ],
            ),
            body(
                "",
                &[
                    r#"{"role":"system","content":[{"type":"text","text":"Be brief."}]}"#,
                    HI,
                ],
            ),
        ),
        row(
            "unknown-block-type",
            "messages[0].content[0].type",
            body("", &[r#"{"role":"user","content":[{"type":"hologram"}]}"#]),
            hi(""),
        )
        .warning(),
        row(
            "name-characters",
            "messages[0].name",
            body("", &[r#"{"role":"user","name":"A B","content":"x"}"#]),
            body("", &[r#"{"role":"user","name":"Ada","content":"x"}"#]),
        ),
        row(
            "tool-calls-empty",
            "messages[1].tool_calls",
            body(
                "",
                &[HI, r#"{"role":"assistant","content":"x","tool_calls":[]}"#],
            ),
            body(
                "",
                &[
                    HI,
                    r#"{"role":"assistant","content":"x","tool_calls":null}"#,
                ],
            ),
        ),
        row(
            "tool-calls-wrong-role",
            "messages[0].tool_calls",
            body(
                "",
                &[&format!(
                    r#"{{"role":"user","content":"x","tool_calls":[{}]}}"#,
                    call("a")
                )],
            ),
            hi(""),
        ),
        row(
            "tool-call-type",
            "messages[1].tool_calls[0].type",
            body(
                TOOLS,
                &[
                    HI,
                    &calls(&[call("a").replace(r#""type":"function""#, r#""type":"tool""#)]),
                    &result("a"),
                ],
            ),
            body(
                TOOLS,
                &[
                    HI,
                    &calls(&[
                        r#"{"id":"a","type":"custom","custom":{"name":"g","input":"x"}}"#
                            .to_owned(),
                    ]),
                    &result("a"),
                ],
            ),
        ),
        row(
            "function-name",
            "messages[1].tool_calls[0].function.name",
            body(
                TOOLS,
                &[
                    HI,
                    &calls(&[call("a").replace(r#""name":"f""#, r#""name":"f g""#)]),
                    &result("a"),
                ],
            ),
            body(TOOLS, &[HI, &calls(&[call("a")]), &result("a")]),
        ),
        row(
            "wrong-type",
            "messages[1].tool_calls[0].function.arguments",
            with_arguments("{}"),
            with_arguments(r#""{}""#),
        ),
        row(
            "tool-arguments-not-json",
            "messages[1].tool_calls[0].function.arguments",
            with_arguments(r#""{\"a\":""#),
            with_arguments(r#""{\"a\":1}""#),
        )
        .warning(),
        row(
            "missing-field",
            "messages[2].tool_call_id",
            body(TOOLS, &[HI, HELLO, r#"{"role":"tool","content":"x"}"#]),
            hi(""),
        ),
    ]
}

fn pairing() -> Vec<Row> {
    let one = calls(&[call("a")]);
    let two = calls(&[call("a"), call("b")]);
    let valid = body(TOOLS, &[HI, &two, &result("b"), &result("a"), HI]);
    vec![
        row(
            "tool-use-without-result",
            "messages[1].tool_calls[1].id",
            body(TOOLS, &[HI, &two, &result("a"), HI]),
            valid.clone(),
        ),
        row(
            "tool-use-without-result",
            "messages[1].tool_calls[0].id",
            body(TOOLS, &[HI, &one]),
            body(TOOLS, &[HI, &one, &result("a")]),
        ),
        row(
            "tool-result-without-use",
            "messages[1].tool_call_id",
            body(TOOLS, &[HI, &result("a"), HI]),
            valid.clone(),
        ),
        row(
            "tool-result-not-adjacent",
            "messages[4].tool_call_id",
            body(TOOLS, &[HI, &one, &result("a"), HELLO, &result("a")]),
            body(TOOLS, &[HI, &one, &result("a"), HELLO]),
        ),
        row(
            "duplicate-tool-use-id",
            "messages[1].tool_calls[1].id",
            body(TOOLS, &[HI, &calls(&[call("a"), call("a")]), &result("a")]),
            valid.clone(),
        ),
        row(
            "duplicate-tool-use-id",
            "messages[3].tool_calls[0].id",
            body(TOOLS, &[HI, &one, &result("a"), &one, &result("a")]),
            valid.clone(),
        )
        .warning(),
        row(
            "duplicate-tool-result",
            "messages[3].tool_call_id",
            body(TOOLS, &[HI, &one, &result("a"), &result("a")]),
            valid,
        ),
    ]
}

fn template() -> Vec<Row> {
    let strict = CheckOptions {
        profile: Profile::StrictAlternation,
        ..known()
    };
    let one = calls(&[call("a")]);
    let valid = body(TOOLS, &[SYSTEM, HI, &one, &result("a"), HELLO, HI]);
    let developer = r#"{"role":"developer","content":"Be brief."}"#;
    [
        row(
            "template-developer-role",
            "messages[0].role",
            body("", &[developer, HI]),
            valid.clone(),
        ),
        row(
            "template-system-position",
            "messages[2].role",
            body("", &[HI, HELLO, SYSTEM, HI]),
            valid.clone(),
        ),
        row(
            "template-role-order",
            "messages[1].role",
            body("", &[HI, HI]),
            valid.clone(),
        ),
        row(
            "template-role-order",
            "messages[1].role",
            body("", &[SYSTEM, HELLO, HI]),
            valid.clone(),
        ),
        // Calls and their results are not counted as turns.
        row(
            "template-role-order",
            "messages[3].role",
            body(TOOLS, &[HI, &one, &result("a"), HI]),
            valid.clone(),
        ),
        row(
            "template-last-message",
            "messages[1]",
            body("", &[HI, HELLO]),
            body(TOOLS, &[HI, &one, &result("a")]),
        ),
    ]
    .map(|row| row.with(strict))
    .into()
}

#[test]
fn the_order_of_roles_is_free_without_the_profile() {
    let body = body("", &[SYSTEM, HI, HI, HELLO, SYSTEM, HELLO]);
    let report = check_text(&body, Wire::OpenAiChat, &known());
    assert_eq!(report.findings, []);
}
