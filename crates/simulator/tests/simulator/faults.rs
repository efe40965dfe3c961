//! Each fault, as the client sees it.

use serde_json::{Value, json};
use throughline_simulator::Ending;

use crate::support::*;

fn body() -> Value {
    ask("claude-opus-5", json!([user("Look at the parser.")]))
}

fn summary_body() -> Value {
    let mut body = ask(
        "claude-opus-5",
        json!([
            user("Port the importer to Go. The deploy region is eu-north-3."),
            assistant("I'll start with src/importer.go."),
            user("Write a summary of the conversation so far."),
        ]),
    );
    body["thinking"] = json!({"type": "disabled"});
    body
}

#[test]
fn errors_have_their_status_type_and_headers() {
    let check = |fault: &str, status: u16, kind: &str, retry_after: Option<&str>, code: Value| {
        let exchange = send(&mut with_faults(fault), &body());
        let answer = json_of(&exchange);
        assert_eq!(
            (exchange.status.as_u16(), &answer["error"]["type"]),
            (status, &json!(kind))
        );
        let header = exchange
            .headers
            .get("retry-after")
            .map(|value| value.to_str().unwrap());
        assert_eq!(header, retry_after, "{fault}");
        assert_eq!(answer["error"]["details"]["error_code"], code);
    };
    check("429", 429, "rate_limit_error", Some("5"), Value::Null);
    check("429=30", 429, "rate_limit_error", Some("30"), Value::Null);
    check("429=none", 429, "rate_limit_error", None, Value::Null);
    check(
        "spend-cap",
        429,
        "rate_limit_error",
        None,
        json!("enforced_spend_limit_reached"),
    );
    check("500", 500, "api_error", None, Value::Null);
    check("504", 504, "timeout_error", None, Value::Null);
    check("529", 529, "overloaded_error", None, Value::Null);
}

#[test]
fn faults_come_after_everything_that_is_wrong_with_the_request() {
    let mut simulator = with_faults("529@1");
    assert_eq!(
        send(&mut simulator, &ask("claude-opus-5", json!([]))).status,
        400
    );
    assert_eq!(send(&mut simulator, &body()).status, 529);
    assert_eq!(send(&mut simulator, &body()).status, 200);
}

#[test]
fn a_request_that_fails_writes_no_cache() {
    let mut simulator = with_faults("529@1");
    let mut body = ask("claude-opus-5", json!([user(words(1500, 0))]));
    body["cache_control"] = json!({"type": "ephemeral"});
    assert_eq!(send(&mut simulator, &body).status, 529);
    assert_eq!(split(&answered(&mut simulator, &body))[3], 0);
    assert!(split(&answered(&mut simulator, &body))[3] > 0);
}

#[test]
fn streams_break_stall_and_fail() {
    let check = |fault: &str, ending: Ending, part: &str| {
        let mut body = body();
        body["stream"] = json!(true);
        let exchange = send(&mut with_faults(fault), &body);
        assert_eq!(exchange.status, 200);
        assert_eq!(exchange.ending, ending, "{fault}");
        let text = exchange.text();
        assert!(text.starts_with("event: message_start"));
        assert!(!text.contains("message_stop"), "{fault}");
        assert!(text.contains(part), "{text}");
    };
    check("cut=3", Ending::Cut, "event: ping");
    check("cut", Ending::Cut, "");
    check("stall=2", Ending::Stall, "content_block_start");
    check(
        "error=3",
        Ending::Complete,
        "event: error\ndata: {\"error\":{\"message\":\"Overloaded\",\"type\":\"overloaded_error\"}",
    );
    // Without a stream, half a body comes, or an error.
    let exchange = send(&mut with_faults("cut"), &body());
    assert!(serde_json::from_str::<Value>(&exchange.text()).is_err());
    assert_eq!(send(&mut with_faults("error"), &body()).status, 500);
}

#[test]
fn slow_answers_begin_late() {
    let exchange = send(&mut with_faults("slow=30"), &body());
    assert_eq!(exchange.head_after.as_secs(), 30);
}

#[test]
fn replies_are_refused_cut_and_paused() {
    let answer = answered(&mut with_faults("refusal"), &body());
    assert_eq!(answer["stop_reason"], "refusal");
    assert_eq!(answer["stop_details"]["type"], "refusal");
    let answer = answered(&mut with_faults("truncated"), &body());
    assert_eq!(answer["stop_reason"], "max_tokens");
    // There is nothing to pause for without a tool of the provider's.
    assert_ne!(
        answered(&mut with_faults("pause"), &body())["stop_reason"],
        "pause_turn"
    );
}

#[test]
fn a_paused_turn_goes_on_when_it_is_sent_back() {
    let mut simulator = with_faults("pause@1");
    let mut body = body();
    body["tools"] = json!([{"type": "web_search_20250305", "name": "web_search"}]);
    let paused = answered(&mut simulator, &body);
    assert_eq!(paused["stop_reason"], "pause_turn");
    body["messages"]
        .as_array_mut()
        .unwrap()
        .push(assistant(paused["content"].clone()));
    let answer = answered(&mut simulator, &body);
    let call = paused["content"].as_array().unwrap().last().unwrap();
    let results: Vec<&Value> = answer["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|block| block["type"] == "web_search_tool_result")
        .collect();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["tool_use_id"], call["id"]);
    assert_eq!(answer["stop_reason"], "end_turn");
}

#[test]
fn summaries_go_wrong_in_every_way() {
    let answer = |kind: &str| {
        let mut simulator = with_faults(&format!("summary={kind}@1"));
        // Only requests for summaries are counted.
        assert_eq!(answered(&mut simulator, &body())["stop_reason"], "end_turn");
        answered(&mut simulator, &summary_body())
    };
    let good = answered(&mut simulator(), &summary_body());
    assert!(text_of(&good).contains("eu-north-3"), "{good}");
    assert_eq!(
        answer("empty")["content"],
        json!([{"type": "text", "text": ""}])
    );
    assert_eq!(answer("null")["content"], json!([]));
    assert_eq!(text_of(&answer("blank")).trim(), "");
    assert_eq!(answer("toolcall")["stop_reason"], "tool_use");
    assert_eq!(answer("refusal")["stop_reason"], "refusal");
    assert!(text_of(&answer("error")).starts_with("API Error: 529"));
    let cut = answer("truncated");
    assert_eq!(cut["stop_reason"], "max_tokens");
    assert!(text_of(&good).starts_with(&text_of(&cut)));
    let skeleton = text_of(&answer("skeleton"));
    assert!(skeleton.contains("## User Intent") && !skeleton.contains("eu-north-3"));
    assert!(text_of(&answer("language")).contains("Der Benutzer möchte"));
    let larger = text_of(&answer("larger"));
    assert!(larger.len() > summary_body()["messages"].to_string().len());
    assert!(text_of(&answer("prose")).ends_with('?'));
}

#[test]
fn the_ledger_says_what_went_wrong() {
    let mut simulator = with_faults("529@1");
    send(&mut simulator, &body());
    send(&mut simulator, &summary_body());
    let seen: Vec<_> = simulator
        .ledger()
        .map(|entry| {
            (
                entry.status.as_u16(),
                entry.fault.map(|fault| fault.to_string()),
                entry.is_summary,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [(529, Some("529".to_owned()), false), (200, None, true)]
    );
    let first = simulator.ledger().next().unwrap();
    assert_eq!(first.body, body().to_string());
    assert_eq!(first.model.as_deref(), Some("claude-opus-5"));
}
