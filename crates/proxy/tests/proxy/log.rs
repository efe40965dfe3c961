//! What an operator reads of each request.

use std::io::Write;
use std::sync::{Arc, Mutex};

use http::StatusCode;
use serde_json::{Value, json};
use throughline_simulator::Options;
use throughline_transcript::wire::Wire;
use tracing::subscriber::DefaultGuard;

use crate::admin::request;
use crate::world::{Client, World, chatter, config, post};

/// Everything that this thread logs, as lines.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn begin() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_max_level(tracing_subscriber::filter::LevelFilter::INFO)
            .with_writer(move || writer.clone())
            .finish();
        (lines, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The lines about requests, without the time.
    fn requests(&self) -> Vec<Value> {
        self.text()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|line| line["message"] == "request")
            .map(|mut line| {
                for name in ["timestamp", "level", "target", "message"] {
                    assert!(line.as_object_mut().unwrap().remove(name).is_some());
                }
                line
            })
            .collect()
    }
}

#[tokio::test(start_paused = true)]
async fn each_request_is_one_line_of_ids_and_numbers() {
    let (lines, _guard) = Lines::begin();
    let world = World::new(Options::new(3).without_latency()).await;
    let mut client = Client::new(Wire::Anthropic);
    client.tools = None;
    client
        .messages
        .push(json!({"role": "user", "content": "needle-said"}));
    client
        .messages
        .push(json!({"role": "assistant", "content": "needle-answered"}));
    client
        .messages
        .push(json!({"role": "user", "content": "needle-asked"}));
    client.key = "needle-key".to_owned();
    client.fields = json!({"metadata": {"user_id": "needle-user"}});
    let body = client.body();
    let got = world.ask(client.request()).await;
    let lines_of_it = lines.requests();
    assert_eq!(lines_of_it.len(), 1, "{lines_of_it:?}");
    let id = got.told("request-id").unwrap();
    let usage = |line: &Value, name: &str| line[name].as_u64().unwrap();
    let line = &lines_of_it[0];
    assert_eq!(
        *line,
        json!({
            "wire": "anthropic", "kind": "answer", "done": "tracked", "status": 200, "ended": "whole",
            "session": got.told("x-throughline-session").unwrap(), "epoch": 0, "covered": 0,
            "request_bytes": body.len(), "sent_bytes": body.len(), "answer_bytes": got.body.len(),
            "prompt_tokens": usage(line, "prompt_tokens"), "cache_read_tokens": 0,
            "cache_write_tokens": usage(line, "cache_write_tokens"),
            "output_tokens": usage(line, "output_tokens"),
            "added_us": 0, "head_ms": 0, "total_ms": 0, "request_id": id,
        })
    );
    assert!(usage(line, "prompt_tokens") > 0 && usage(line, "output_tokens") > 0);
    assert!(!lines.text().contains("needle"), "{}", lines.text());
}

#[tokio::test(start_paused = true)]
async fn a_line_says_how_a_request_went() {
    let (lines, _guard) = Lines::begin();
    let mut config = config();
    config.limits.body_bytes_max = 100_000;
    let world = World::with(Options::new(3).without_latency(), config).await;
    let headers = [("x-api-key", "needle"), ("anthropic-version", "2023-06-01")];
    let last = |names: &[&str]| -> Vec<Value> {
        let line = lines.requests().pop().unwrap();
        names.iter().map(|name| line[*name].clone()).collect()
    };
    let names = ["wire", "kind", "done", "reason", "status", "ended"];
    let short = r#"{"model":"claude-opus-4-6","max_tokens":9,"messages":[{"role":"user","content":"needle"}]}"#;
    for (asked, expected) in [
        (
            post("/v1/messages", &headers, short),
            json!(["anthropic", "answer", "passed", "side-call", 200, "whole"]),
        ),
        (
            post("/passthrough/v1/messages", &headers, short),
            json!([
                "anthropic",
                "answer",
                "passed",
                "switched-off",
                200,
                "whole"
            ]),
        ),
        (
            post("/v1/messages/count_tokens", &headers, short),
            json!(["anthropic", "count", "passed", "count", 200, "whole"]),
        ),
        (
            post("/needle?needle=needle", &headers, short),
            json!([
                "anthropic",
                "none",
                "refused",
                "not-found",
                404,
                "no-answer"
            ]),
        ),
        (
            post("/v1/messages", &headers, vec![b'x'; 100_001]),
            json!([
                "anthropic",
                "answer",
                "refused",
                "too-large",
                413,
                "no-answer"
            ]),
        ),
        (
            request(
                http::Method::GET,
                "/v1/models",
                &[("authorization", "Bearer needle")],
                "",
            ),
            json!(["openai-chat", "other", "passed", "path", 200, "whole"]),
        ),
    ] {
        world.ask(asked).await;
        assert_eq!(Value::Array(last(&names)), expected);
    }
    // One that the provider refuses.
    let wrong = short.replace(
        "\"max_tokens\":9,",
        "\"tools\":[{\"name\":\"t\",\"input_schema\":{}}],",
    );
    let got = world.ask(post("/v1/messages", &headers, wrong)).await;
    assert_eq!(got.status, StatusCode::BAD_REQUEST);
    assert_eq!(
        Value::Array(last(&names)),
        json!([
            "anthropic",
            "answer",
            "tracked",
            "upstream-refused",
            400,
            "whole"
        ])
    );
    // One whose client hangs up before the answer.
    let mut client = Client::new(Wire::Anthropic);
    client
        .messages
        .push(json!({"role": "user", "content": "needle"}));
    let answer = world.proxy.answer(client.request()).await;
    let before = lines.requests().len();
    drop(answer);
    tokio::task::yield_now().await;
    assert_eq!(lines.requests().len(), before + 1);
    assert_eq!(
        Value::Array(last(&names)),
        json!(["anthropic", "answer", "tracked", null, 200, "hung-up"])
    );
    assert!(!lines.text().contains("needle"), "{}", lines.text());
}

#[tokio::test(start_paused = true)]
async fn a_request_can_be_followed_through_swaps() {
    let (lines, _guard) = Lines::begin();
    let world = World::new(Options::new(3).without_latency()).await;
    let mut client = Client::new(Wire::OpenAiChat);
    let mut got = Vec::new();
    for turn in 0..30 {
        got.push(client.say(&world, &chatter(turn, 60)).await);
    }
    let last = got.pop().unwrap();
    let line = lines.requests().pop().unwrap();
    for (name, header) in [
        ("epoch", "x-throughline-epoch"),
        ("covered", "x-throughline-covered"),
        ("saved_tokens", "x-throughline-saved-tokens"),
    ] {
        assert_eq!(line[name].to_string(), last.told(header).unwrap(), "{name}");
    }
    assert_eq!(line["done"], "rewritten");
    let bytes = |name: &str| line[name].as_u64().unwrap();
    assert_eq!(bytes("sent_bytes"), world.last_body().len() as u64);
    assert!(bytes("sent_bytes") < bytes("request_bytes"));
    // Decisions beside it name the same session.
    let text = lines.text();
    let session = last.told("x-throughline-session").unwrap();
    let decisions = text
        .lines()
        .filter(|line| line.contains("\"message\":\"engine\"") && line.contains(session));
    assert!(decisions.count() > 1, "{text}");
}
