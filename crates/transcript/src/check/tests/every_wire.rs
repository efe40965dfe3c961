//! Rules that hold for any body, and how findings are written.

use super::super::*;
use super::Row;
use super::anthropic::body;

const HI: &str = r#"[{"role":"user","content":"Hi."}]"#;

fn row(code: &'static str, path: &'static str, broken: &str, kept: &str) -> Row {
    Row::error(
        Wire::Anthropic,
        (code, path),
        broken.to_owned(),
        kept.to_owned(),
    )
}

pub(super) fn table() -> Vec<Row> {
    let valid = body("", HI);
    let small = CheckOptions {
        body_bytes_max: Some(120),
        ..super::known()
    };
    let long = body(&format!(r#""system":"{}","#, "x".repeat(200)), HI);
    vec![
        row("invalid-json", "", r#"{"model": "#, &valid),
        row("body-not-object", "", "[]", &valid),
        row("body-too-large", "", &long, &valid).with(small),
        row(
            "lone-surrogate",
            "messages[0].content",
            &body("", r#"[{"role":"user","content":"cut \ud83d here"}]"#),
            &body(
                "",
                r#"[{"role":"user","content":"whole \ud83d\ude00 here, \\ud83d"}]"#,
            ),
        ),
        row(
            "lone-surrogate",
            r#"tools[0].input_schema["a b"][1].x"#,
            &body(
                r#""tools":[{"name":"f","input_schema":{"type":"object","a b":[{},{"y":{"z":1},"x":"\ude00"}]}}],"#,
                HI,
            ),
            &valid,
        ),
        row(
            "duplicate-key",
            "messages[0].role",
            &body(
                "",
                r#"[{"role":"user","content":"Hi.","rol\u0065":"user"}]"#,
            ),
            &body(
                "",
                r#"[{"role":"user","content":"Hi."},{"role":"user","content":"Ho."}]"#,
            ),
        )
        .warning(),
        row(
            "missing-field",
            "messages",
            r#"{"model":"m","max_tokens":5}"#,
            &valid,
        ),
        row(
            "missing-field",
            "model",
            &format!(r#"{{"model":null,"max_tokens":5,"messages":{HI}}}"#),
            &format!(
                r#"{{"anthropic_version":"bedrock-2023-05-31","max_tokens":5,"messages":{HI}}}"#
            ),
        ),
        row(
            "wrong-type",
            "stream",
            &body(r#""stream":"yes","#, HI),
            &body(r#""stream":true,"#, HI),
        ),
        row("wrong-type", "messages[0]", &body("", r#"["Hi."]"#), &valid),
        row(
            "empty-value",
            "model",
            &format!(r#"{{"model":"","max_tokens":5,"messages":{HI}}}"#),
            &valid,
        ),
        row(
            "out-of-range",
            "max_tokens",
            &format!(r#"{{"model":"m","max_tokens":2.5,"messages":{HI}}}"#),
            &format!(r#"{{"model":"m","max_tokens":2e3,"messages":{HI}}}"#),
        ),
        row(
            "unknown-value",
            "service_tier",
            &body(r#""service_tier":"platinum","#, HI),
            &body(r#""service_tier":"auto","#, HI),
        )
        .warning(),
        row(
            "unknown-field",
            "wire_note",
            &body(r#""wire_note":"x","#, HI),
            &valid,
        )
        .warning(),
        row(
            "unknown-field",
            "messages[0].timestamp",
            &body("", r#"[{"role":"user","content":"Hi.","timestamp":5}]"#),
            &valid,
        )
        .warning(),
        row(
            "unknown-block-type",
            "messages[0].content[0].type",
            &body(
                "",
                r#"[{"role":"user","content":[{"type":"hologram","data":[1]}]}]"#,
            ),
            &body(
                "",
                r#"[{"role":"user","content":[{"type":"text","text":"Hi."}]}]"#,
            ),
        )
        .warning(),
        row(
            "base64-invalid",
            "messages[0].content[0].source.data",
            &image("data:image/png;base64,AAAA", "image/png"),
            &image("iVBORw0KGgo=", "image/png"),
        ),
        row(
            "base64-invalid",
            "messages[0].content[0].source.data",
            &image("AAAAA", "image/png"),
            &image(r"AA\/+AA==", "image/png"),
        ),
    ]
}

pub(super) fn image(data: &str, media_type: &str) -> String {
    body(
        "",
        &format!(
            r#"[{{"role":"user","content":[{{"type":"image","source":{{"type":"base64","media_type":"{media_type}","data":"{data}"}}}}]}}]"#
        ),
    )
}

#[test]
fn long_bodies_are_warned_of_until_the_limit_of_the_endpoint_is_known() {
    let long = body(
        "",
        &format!(
            r#"[{{"role":"user","content":"{}"}}]"#,
            "x".repeat(ANTHROPIC_BODY_BYTES_MAX)
        ),
    );
    let report = check_text(&long, Wire::Anthropic, &super::known());
    assert!(report.is_valid() && report.has("body-too-large"));
    let strict = CheckOptions {
        body_bytes_max: Some(ANTHROPIC_BODY_BYTES_MAX),
        ..super::known()
    };
    assert!(!check_text(&long, Wire::Anthropic, &strict).is_valid());
    assert!(check_text(&body("", HI), Wire::Anthropic, &strict).is_valid());
}

#[test]
fn findings_have_a_limit_and_the_rest_is_counted() {
    let messages = vec![r#"{"role":"user","content":""}"#; FINDINGS_MAX + 7].join(",");
    let report = check_text(
        &body("", &format!("[{messages}]")),
        Wire::Anthropic,
        &super::known(),
    );
    assert_eq!((report.findings.len(), report.omitted), (FINDINGS_MAX, 7));
}

#[test]
fn objects_with_very_many_keys_are_searched_for_repetitions() {
    let keys: Vec<_> = (0..5000).map(|index| format!(r#""k{index}":0"#)).collect();
    let tool = format!(
        r#""tools":[{{"name":"f","input_schema":{{"type":"object","x":{{{},"k77":1}}}}}}],"#,
        keys.join(",")
    );
    let report = check_text(&body(&tool, HI), Wire::Anthropic, &super::known());
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].path, "tools[0].input_schema.x.k77");
}

#[test]
fn long_values_are_not_copied_into_findings() {
    let long = "x".repeat(100_000);
    let bodies = [
        body(&format!(r#""thinking":{{"type":"{long}"}},"#), HI),
        body(&format!(r#""thread":{{"type":"{long}"}},"#), HI),
        body(&format!(r#""{long}":1,"#), HI),
        body(&format!(r#""metadata":{{"{long}":1,"{long}":2}},"#), HI),
        body("", &format!(r#"[{{"role":"{long}","content":"x"}}]"#)),
        body(
            "",
            &format!(
                r#"[{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{long}"}}]}}]"#
            ),
        ),
    ];
    for body in bodies {
        for wire in Wire::ALL {
            for finding in check_text(&body, wire, &super::known()).findings {
                assert!(finding.message.len() + finding.path.len() < 600);
            }
        }
    }
}
