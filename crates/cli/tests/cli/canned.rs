//! A provider that says what it was told to, in the form of Anthropic Messages: what no simulated model would say.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// What is answered to one request after the other; the last one to all that come later.
pub(crate) struct Canned {
    pub(crate) url: String,
    bodies: Arc<Mutex<Vec<Value>>>,
}

/// One answer.
#[derive(Clone)]
pub(crate) enum Said {
    /// Blocks of content, as an answer that does not come in parts has them.
    Blocks(Vec<Value>),
    /// The request is refused.
    Refused,
}

impl Said {
    pub(crate) fn text(text: &str) -> Self {
        Self::Blocks(vec![json!({"type": "text", "text": text})])
    }

    pub(crate) fn call(name: &str, input: &Value) -> Self {
        Self::Blocks(vec![
            json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": input}),
        ])
    }

    fn events(blocks: &[Value]) -> String {
        let mut text = String::new();
        let mut tell = |event: Value| {
            let name = event["type"].as_str().unwrap().to_owned();
            text.push_str(&format!("event: {name}\ndata: {event}\n\n"));
        };
        tell(json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-6", "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 100, "output_tokens": 1}}}));
        let mut stop = "end_turn";
        for (index, block) in blocks.iter().enumerate() {
            let (start, delta) = match block["type"].as_str().unwrap() {
                "text" => (
                    json!({"type": "text", "text": ""}),
                    json!({"type": "text_delta", "text": block["text"]}),
                ),
                "thinking" => (
                    json!({"type": "thinking", "thinking": "", "signature": ""}),
                    json!({"type": "thinking_delta", "thinking": block["thinking"]}),
                ),
                "tool_use" => {
                    stop = "tool_use";
                    let mut start = block.clone();
                    start["input"] = json!({});
                    let input = block["input"].to_string();
                    (
                        start,
                        json!({"type": "input_json_delta", "partial_json": input}),
                    )
                }
                other => panic!("no block {other} is known here"),
            };
            tell(json!({"type": "content_block_start", "index": index, "content_block": start}));
            tell(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            tell(json!({"type": "content_block_stop", "index": index}));
        }
        tell(
            json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
            "usage": {"output_tokens": 20}}),
        );
        tell(json!({"type": "message_stop"}));
        text
    }
}

impl Canned {
    pub(crate) fn start(answers: Vec<Said>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let mut bodies = kept.lock().unwrap();
                let said = &answers[bodies.len().min(answers.len() - 1)];
                // A client that hangs up needs no more.
                if let Ok(Some(body)) = answer(stream, said) {
                    bodies.push(body);
                }
            }
        });
        Self { url, bodies }
    }

    /// The options that go on with it.
    pub(crate) fn flags(&self) -> [&str; 8] {
        [
            "--base-url",
            &self.url,
            "--wire",
            "anthropic",
            "--model",
            "claude-opus-4-6",
            "--window",
            "20000",
        ]
    }

    /// The requests so far.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().unwrap().clone()
    }
}

/// Reads one request and answers it; gives its body, if it was one for an answer of the model.
fn answer(stream: TcpStream, said: &Said) -> std::io::Result<Option<Value>> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    let mut path = String::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if path.is_empty() {
            path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let is_asked = path.ends_with("/messages");
    let (status, kind, text) = match said {
        _ if !is_asked => ("404 Not Found", "application/json", "{}".to_owned()),
        Said::Blocks(blocks) => ("200 OK", "text/event-stream", Said::events(blocks)),
        Said::Refused => (
            "400 Bad Request",
            "application/json",
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "not today"}})
                .to_string(),
        ),
    };
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )?;
    stream.flush()?;
    Ok(is_asked.then(|| serde_json::from_slice(&body).unwrap()))
}
