//! Rules of OpenAI Responses.

use super::super::*;
use super::{Row, known, model};

fn body(settings: &str, items: &[&str]) -> String {
    format!(r#"{{"model":"m",{settings}"input":[{}]}}"#, items.join(","))
}

const HI: &str = r#"{"role":"user","content":"Hi."}"#;
const HELLO: &str =
    r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello."}]}"#;
const THOUGHT: &str = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
const SEALED: &str = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}"#;
const TRIGGER: &str = r#"{"type":"compaction_trigger"}"#;
const TOOLS: &str =
    r#""tools":[{"type":"function","name":"f","parameters":{}},{"type":"web_search"}],"#;

fn hi(settings: &str) -> String {
    body(settings, &[HI])
}

fn call(id: &str) -> String {
    format!(r#"{{"type":"function_call","call_id":"{id}","name":"f","arguments":"{{}}"}}"#)
}

fn output(id: &str) -> String {
    format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"done"}}"#)
}

fn row(code: &'static str, path: &'static str, broken: String, kept: String) -> Row {
    Row::error(Wire::OpenAiResponses, (code, path), broken, kept)
}

pub(super) fn table() -> Vec<Row> {
    let mut rows = settings();
    rows.extend(items());
    rows.extend(order());
    rows
}

fn settings() -> Vec<Row> {
    vec![
        row(
            "missing-field",
            "model",
            r#"{"input":"Hi."}"#.to_owned(),
            r#"{"input":"Hi.","prompt":{"id":"p"}}"#.to_owned(),
        ),
        row(
            "missing-field",
            "input",
            r#"{"model":"m"}"#.to_owned(),
            r#"{"model":"m","previous_response_id":"resp_1"}"#.to_owned(),
        ),
        row(
            "input-empty",
            "input",
            body("", &[]),
            body(r#""conversation":"conv_1","#, &[]),
        ),
        row(
            "input-empty",
            "input",
            r#"{"model":"m","input":""}"#.to_owned(),
            r#"{"model":"m","input":"Hi."}"#.to_owned(),
        ),
        row(
            "previous-response-and-conversation",
            "conversation",
            hi(r#""previous_response_id":"resp_1","conversation":{"id":"conv_1"},"#),
            hi(r#""previous_response_id":"resp_1","#),
        ),
        row(
            "out-of-range",
            "max_output_tokens",
            hi(r#""max_output_tokens":15,"#),
            hi(r#""max_output_tokens":16,"#),
        ),
        row(
            "max-tokens-above-model",
            "max_output_tokens",
            hi(r#""max_output_tokens":64001,"#),
            hi(r#""max_output_tokens":64000,"#),
        ),
        row(
            "sampling-removed",
            "top_p",
            hi(r#""top_p":0.5,"#),
            hi(r#""top_p":1,"#),
        )
        .with(model(|model| model.abilities.sampling = Some(false))),
        row(
            "background-not-stored",
            "background",
            hi(r#""background":true,"store":false,"#),
            hi(r#""background":true,"#),
        ),
        row(
            "metadata",
            "metadata",
            hi(r#""metadata":{"a":1},"#),
            hi(r#""metadata":{"a":"1"},"#),
        ),
        row(
            "unknown-value",
            "truncation",
            hi(r#""truncation":"middle","#),
            hi(r#""truncation":"auto","#),
        )
        .warning(),
        row("unknown-field", "messages", hi(r#""messages":[],"#), hi("")).warning(),
        row(
            "missing-field",
            "tools[0].name",
            hi(r#""tools":[{"type":"function","function":{"name":"f"}}],"#),
            hi(TOOLS),
        ),
        row(
            "function-name",
            "tools[0].name",
            hi(r#""tools":[{"type":"function","name":"f g"}],"#),
            hi(TOOLS),
        ),
        row(
            "duplicate-tool-name",
            "tools[1].name",
            hi(r#""tools":[{"type":"function","name":"f"},{"type":"custom","name":"f"}],"#),
            hi(r#""tools":[{"type":"function","name":"f"},{"type":"custom","name":"g"}],"#),
        )
        .warning(),
        row(
            "tool-choice-type",
            "tool_choice",
            hi(&format!(r#"{TOOLS}"tool_choice":"any","#)),
            hi(&format!(r#"{TOOLS}"tool_choice":"required","#)),
        ),
        row(
            "tool-choice-without-tools",
            "tool_choice",
            hi(r#""tool_choice":"required","#),
            hi(r#""tool_choice":"auto","#),
        ),
        row(
            "tool-choice-without-tools",
            "tool_choice",
            body(
                r#""tool_choice":"required","#,
                &[r#"{"type":"additional_tools","tools":[]}"#, HI],
            ),
            body(
                r#""tool_choice":"required","#,
                &[
                    r#"{"type":"additional_tools","tools":[{"type":"custom","name":"f"}]}"#,
                    HI,
                ],
            ),
        ),
        row(
            "tool-choice-unknown-tool",
            "tool_choice.name",
            hi(&format!(
                r#"{TOOLS}"tool_choice":{{"type":"function","name":"g"}},"#
            )),
            hi(&format!(
                r#"{TOOLS}"tool_choice":{{"type":"function","name":"f"}},"#
            )),
        ),
        row(
            "missing-field",
            "text.format.schema",
            hi(r#""text":{"format":{"type":"json_schema","name":"n"}},"#),
            hi(r#""text":{"format":{"type":"json_schema","name":"n","schema":{}}},"#),
        ),
    ]
}

fn items() -> Vec<Row> {
    vec![
        row(
            "missing-field",
            "input[0].type",
            body("", &[r#"{"text":"x"}"#]),
            hi(""),
        ),
        row(
            "unknown-role",
            "input[0].role",
            body("", &[r#"{"role":"tool","content":"x"}"#]),
            body("", &[r#"{"role":"developer","content":"x"}"#]),
        ),
        row(
            "empty-content",
            "input[0].content",
            body("", &[r#"{"role":"user","content":[]}"#]),
            hi(""),
        ),
        row(
            "content-part-type",
            "input[0].content[0].type",
            body(
                "",
                &[r#"{"role":"user","content":[{"type":"text","text":"x"}]}"#],
            ),
            body(
                "",
                &[r#"{"role":"user","content":[{"type":"input_text","text":"x"}]}"#],
            ),
        ),
        row(
            "content-part-type",
            "input[1].content[0].type",
            body(
                "",
                &[
                    HI,
                    r#"{"role":"assistant","content":[{"type":"input_text","text":"x"}]}"#,
                ],
            ),
            body(
                "",
                &[
                    HI,
                    r#"{"role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"x"}]}"#,
                ],
            ),
        ),
        row(
            "unknown-block-type",
            "input[0].type",
            body("", &[r#"{"type":"hologram_call"}"#, HI]),
            hi(""),
        )
        .warning(),
        row(
            "tool-arguments-not-json",
            "input[1].arguments",
            body(
                TOOLS,
                &[
                    HI,
                    &call("a").replace(r#""{}""#, r#""{\"a\": 1,...[truncated]""#),
                    &output("a"),
                ],
            ),
            body(TOOLS, &[HI, &call("a"), &output("a")]),
        )
        .warning(),
        row(
            "wrong-type",
            "input[1].arguments",
            body(
                TOOLS,
                &[HI, &call("a").replace(r#""{}""#, "{}"), &output("a")],
            ),
            body(TOOLS, &[HI, &call("a"), &output("a")]),
        ),
        row(
            "wrong-type",
            "input[2].output",
            body(
                TOOLS,
                &[HI, &call("a"), &output("a").replace(r#""done""#, "{}")],
            ),
            body(
                TOOLS,
                &[
                    HI,
                    &call("a"),
                    &output("a").replace(r#""done""#, r#"[{"type":"input_text","text":"done"}]"#),
                ],
            ),
        ),
        row(
            "missing-field",
            "input[1].summary",
            body("", &[HI, r#"{"type":"reasoning","id":"rs_1"}"#, HELLO]),
            body("", &[HI, THOUGHT, HELLO]),
        ),
        row(
            "missing-field",
            "input[0].encrypted_content",
            body("", &[r#"{"type":"compaction","id":"cmp_1"}"#, HI]),
            body(
                "",
                &[
                    r#"{"type":"compaction","id":"cmp_1","encrypted_content":"e"}"#,
                    HI,
                ],
            ),
        ),
        row(
            "missing-field",
            "input[0].content[0].image_url",
            body(
                "",
                &[r#"{"role":"user","content":[{"type":"input_image"}]}"#],
            ),
            body(
                "",
                &[r#"{"role":"user","content":[{"type":"input_image","file_id":"f"}]}"#],
            ),
        ),
    ]
}

fn order() -> Vec<Row> {
    let valid = body(
        TOOLS,
        &[
            HI,
            &call("a"),
            &call("b"),
            &output("b"),
            HELLO,
            &output("a"),
        ],
    );
    let stateless = r#""store":false,"#;
    vec![
        row(
            "tool-use-without-result",
            "input[1].call_id",
            body(TOOLS, &[HI, &call("a"), HI]),
            valid.clone(),
        ),
        row(
            "tool-use-without-result",
            "input[0].call_id",
            body(
                "",
                &[r#"{"type":"shell_call","call_id":"a","action":{}}"#, HI],
            ),
            body(
                "",
                &[
                    r#"{"type":"shell_call","call_id":"a","action":{}}"#,
                    r#"{"type":"shell_call_output","call_id":"a","output":[]}"#,
                    HI,
                ],
            ),
        )
        .warning(),
        row(
            "tool-result-without-use",
            "input[1].call_id",
            body(TOOLS, &[HI, &output("a")]),
            // The call is in the response that is continued.
            body(r#""previous_response_id":"resp_1","#, &[&output("a")]),
        ),
        row(
            "tool-result-before-use",
            "input[1].call_id",
            body(TOOLS, &[HI, &output("a"), &call("a")]),
            valid.clone(),
        ),
        row(
            "tool-result-kind",
            "input[2].type",
            body(
                TOOLS,
                &[
                    HI,
                    &call("a"),
                    &output("a").replace("function_call_output", "custom_tool_call_output"),
                ],
            ),
            body(
                TOOLS,
                &[
                    HI,
                    r#"{"type":"custom_tool_call","call_id":"a","name":"g","input":""}"#,
                    &output("a").replace("function_call_output", "custom_tool_call_output"),
                ],
            ),
        ),
        row(
            "duplicate-tool-use-id",
            "input[2].call_id",
            body(TOOLS, &[HI, &call("a"), &call("a"), &output("a")]),
            valid.clone(),
        ),
        row(
            "duplicate-tool-result",
            "input[3].call_id",
            body(TOOLS, &[HI, &call("a"), &output("a"), &output("a")]),
            valid,
        ),
        row(
            "duplicate-item-id",
            "input[3].id",
            body("", &[HI, THOUGHT, HELLO, THOUGHT, HELLO]),
            body("", &[HI, THOUGHT, HELLO]),
        ),
        row(
            "reasoning-without-item",
            "input[1]",
            body("", &[HI, THOUGHT, HI]),
            body(TOOLS, &[HI, THOUGHT, &call("a"), &output("a")]),
        ),
        row(
            "reasoning-without-item",
            "input[1]",
            body("", &[HI, THOUGHT]),
            body("", &[HI, THOUGHT, HELLO]),
        ),
        row(
            "reasoning-without-item",
            "input[1]",
            body(stateless, &[HI, SEALED, HI]),
            body(stateless, &[HI, SEALED, HELLO]),
        )
        .warning(),
        row(
            "reasoning-not-stored",
            "input[1]",
            body(stateless, &[HI, THOUGHT, HELLO]),
            body(stateless, &[HI, SEALED, HELLO]),
        )
        .warning(),
        row(
            "reference-not-stored",
            "input[0]",
            body(
                stateless,
                &[r#"{"type":"item_reference","id":"msg_1"}"#, HI],
            ),
            body("", &[r#"{"id":"msg_1"}"#, HI]),
        )
        .warning(),
        row(
            "compaction-trigger-not-last",
            "input[1]",
            body("", &[HI, TRIGGER, HI]),
            body("", &[HI, TRIGGER]),
        ),
        row(
            "compaction-trigger-not-last",
            "input[1]",
            body("", &[HI, TRIGGER, TRIGGER]),
            body("", &[HI, TRIGGER]),
        ),
    ]
}

#[test]
fn references_may_stand_for_calls() {
    let body = body(
        "",
        &[r#"{"type":"item_reference","id":"fc_1"}"#, &output("a")],
    );
    assert!(check_text(&body, Wire::OpenAiResponses, &known()).is_valid());
}
