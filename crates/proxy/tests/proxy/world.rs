//! A simulated provider, a proxy before it, and clients that keep their own history as real ones do.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use throughline::core::Clock;
use throughline_engine::Time;
use throughline_providers::decode::{Decoder, read_whole};
use throughline_proxy::config::{Updates, Upstreams};
use throughline_proxy::{Config, Proxy};
use throughline_simulator::{Options, SimulatedProvider};
use throughline_store::{MemoryStore, Store};
use throughline_transcript::wire::Wire;

pub(crate) const WINDOW: u64 = 20_000;

pub(crate) fn config() -> Config {
    Config {
        upstreams: Upstreams {
            anthropic: "http://anthropic".to_owned(),
            openai: "http://openai".to_owned(),
            ..Upstreams::default()
        },
        window: Some(WINDOW),
        updates: Updates::Code,
        ..Config::default()
    }
}

pub(crate) struct World {
    pub(crate) provider: SimulatedProvider,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) config: Config,
    pub(crate) proxy: Proxy,
    /// The same time in each run: memories have dates, and what the simulated model says depends on them.
    clock: Clock,
}

/// An answer as a client got it.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Whether it came as a whole.
    pub(crate) is_whole: bool,
}

impl Got {
    pub(crate) fn told(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl World {
    pub(crate) async fn new(options: Options) -> Self {
        Self::with(options, config()).await
    }

    pub(crate) async fn with(options: Options, config: Config) -> Self {
        Self::over(Arc::new(MemoryStore::new()), options, config).await
    }

    /// The same over this store.
    pub(crate) async fn over(store: Arc<dyn Store>, options: Options, config: Config) -> Self {
        let provider = SimulatedProvider::new(options);
        let clock = Clock::showing(Time::from_ms(1_780_000_000_000));
        let proxy = start(clock, &provider, &store, &config).await;
        Self {
            provider,
            store,
            config,
            proxy,
            clock,
        }
    }

    /// The proxy ends, and another begins on the same store.
    pub(crate) async fn restart(&mut self) {
        let old = self.proxy.clone();
        old.close(Duration::from_secs(1)).await;
        // The right to write ends with the last handle.
        self.proxy = start(self.clock, &self.provider, &self.store, &self.config).await;
    }

    pub(crate) async fn ask(&self, request: Request<Full<Bytes>>) -> Got {
        let (head, mut body) = self.proxy.answer(request).await.into_parts();
        let mut bytes = Vec::new();
        let mut is_whole = true;
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => bytes.extend_from_slice(&frame.into_data().unwrap()),
                Err(_) => is_whole = false,
            }
        }
        // The answer is looked at beside the connection, once its end has gone out.
        tokio::task::yield_now().await;
        Got {
            status: head.status,
            headers: head.headers,
            body: bytes.into(),
            is_whole,
        }
    }

    /// What the provider was sent last.
    pub(crate) fn last_body(&self) -> String {
        let last = self.provider.ledger().pop().unwrap();
        String::from_utf8(last.body.to_vec()).unwrap()
    }

    pub(crate) fn refused(&self) -> usize {
        let ledger = self.provider.ledger();
        ledger
            .iter()
            .filter(|exchange| exchange.status.is_client_error())
            .count()
    }
}

async fn start(
    clock: Clock,
    provider: &SimulatedProvider,
    store: &Arc<dyn Store>,
    config: &Config,
) -> Proxy {
    Proxy::start_by(
        clock,
        config.clone(),
        Arc::clone(store),
        Arc::new(provider.clone()),
    )
    .await
    .unwrap()
}

pub(crate) fn post(
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body.into()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = path.parse().unwrap();
    for (name, value) in headers {
        request.headers_mut().append(
            HeaderName::try_from(*name).unwrap(),
            HeaderValue::try_from(*value).unwrap(),
        );
    }
    request
}

/// A client that sends its whole history with each request.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) wire: Wire,
    pub(crate) key: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) messages: Vec<Value>,
    pub(crate) tools: Option<Value>,
    pub(crate) is_streaming: bool,
    pub(crate) marks_cache: bool,
    /// Lines of what a tool gives back.
    pub(crate) result_lines: usize,
    /// Further fields of the requests, or others.
    pub(crate) fields: Value,
}

impl Client {
    pub(crate) fn new(wire: Wire) -> Self {
        Self {
            wire,
            key: "key-1".to_owned(),
            headers: Vec::new(),
            messages: Vec::new(),
            tools: Some(tools(wire)),
            is_streaming: true,
            marks_cache: wire == Wire::Anthropic,
            result_lines: 40,
            fields: json!({}),
        }
    }

    pub(crate) fn body(&self) -> String {
        let mut messages = self.messages.clone();
        if self.marks_cache {
            mark(messages.last_mut().unwrap());
        }
        let mut body = match self.wire {
            Wire::Anthropic => json!({
                "model": "claude-opus-4-6",
                "max_tokens": 2000,
                "system": self.system(),
                "messages": messages,
            }),
            Wire::OpenAiChat => {
                messages.insert(0, json!({"role": "system", "content": "You are careful."}));
                json!({"model": "gpt-4.1", "max_completion_tokens": 2000, "messages": messages})
            }
            Wire::OpenAiResponses => json!({
                "model": "gpt-4.1", "max_output_tokens": 2000, "instructions": "You are careful.",
                "store": false, "input": messages,
            }),
        };
        if let Some(tools) = &self.tools {
            body["tools"] = tools.clone();
        }
        for (name, value) in self.fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        if self.is_streaming {
            body["stream"] = json!(true);
            if self.wire == Wire::OpenAiChat {
                body["stream_options"] = json!({"include_usage": true});
            }
        }
        body.to_string()
    }

    /// The system prompt of Anthropic's requests.
    fn system(&self) -> Value {
        let mut block = json!({"type": "text", "text": "You are careful."});
        if self.marks_cache {
            block["cache_control"] = json!({"type": "ephemeral"});
        }
        json!([block])
    }

    pub(crate) fn path(&self) -> &'static str {
        match self.wire {
            Wire::Anthropic => "/v1/messages",
            Wire::OpenAiChat => "/v1/chat/completions",
            Wire::OpenAiResponses => "/v1/responses",
        }
    }

    pub(crate) fn request(&self) -> Request<Full<Bytes>> {
        let bearer = format!("Bearer {}", self.key);
        let mut headers = vec![("content-type", "application/json")];
        match self.wire {
            Wire::Anthropic => headers.extend([
                ("x-api-key", self.key.as_str()),
                ("anthropic-version", "2023-06-01"),
            ]),
            _ => headers.push(("authorization", &bearer)),
        }
        headers.extend(
            self.headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );
        post(self.path(), &headers, self.body())
    }

    /// Says something and takes the answer into the history, running the tools that are asked for.
    pub(crate) async fn say(&mut self, world: &World, text: &str) -> Got {
        let got = self.turn(world, text).await;
        assert_eq!(got.status, StatusCode::OK, "{got:?}");
        got
    }

    /// The same; says whether the provider took the history.
    pub(crate) async fn has_said(&mut self, world: &World, text: &str) -> bool {
        self.turn(world, text).await.status.is_success()
    }

    async fn turn(&mut self, world: &World, text: &str) -> Got {
        self.messages.push(json!({"role": "user", "content": text}));
        loop {
            let got = world.ask(self.request()).await;
            if !got.status.is_success() {
                return got;
            }
            if !self.take(&got) {
                return got;
            }
        }
    }

    /// Takes an answer into the history, and runs the tools that it asks for; whether there were any.
    pub(crate) fn take(&mut self, got: &Got) -> bool {
        let answer = self.read(got);
        let calls = calls(self.wire, &answer);
        self.messages.extend(answer);
        self.results(&calls);
        !calls.is_empty()
    }

    /// The messages of an answer.
    pub(crate) fn read(&self, got: &Got) -> Vec<Value> {
        let reply = if self.is_streaming {
            let mut decoder = Decoder::new(self.wire);
            decoder.push(&got.body, &mut Vec::new()).unwrap();
            decoder.finish().unwrap()
        } else {
            let text = String::from_utf8(got.body.to_vec()).unwrap();
            read_whole(self.wire, &text.into()).unwrap()
        };
        reply
            .messages
            .iter()
            .map(|message| serde_json::from_str(message.as_str()).unwrap())
            .collect()
    }

    fn results(&mut self, calls: &[String]) {
        if calls.is_empty() {
            return;
        }
        // The same in every session of the same course, whatever ids the calls have.
        let place = self.messages.len();
        let output = |index: usize| {
            let lines: Vec<String> = (0..self.result_lines)
                .map(|line| format!("file {place}-{index}, line {line} of the output"))
                .collect();
            lines.join("\n")
        };
        let results: Vec<(&String, String)> = calls
            .iter()
            .enumerate()
            .map(|(index, id)| (id, output(index)))
            .collect();
        match self.wire {
            Wire::Anthropic => {
                let results: Vec<Value> = results
                    .iter()
                    .map(|(id, output)| json!({"type": "tool_result", "tool_use_id": id, "content": output}))
                    .collect();
                self.messages
                    .push(json!({"role": "user", "content": results}));
            }
            Wire::OpenAiChat => self.messages.extend(
                results
                    .iter()
                    .map(|(id, output)| json!({"role": "tool", "tool_call_id": id, "content": output})),
            ),
            Wire::OpenAiResponses => self.messages.extend(results.iter().map(
                |(id, output)| json!({"type": "function_call_output", "call_id": id, "output": output}),
            )),
        }
    }
}

fn mark(message: &mut Value) {
    let control = json!({"type": "ephemeral"});
    match &mut message["content"] {
        Value::String(text) => {
            message["content"] = json!([{"type": "text", "text": text, "cache_control": control}]);
        }
        Value::Array(blocks) => {
            if let Some(last) = blocks.last_mut() {
                last["cache_control"] = control;
            }
        }
        _ => {}
    }
}

fn calls(wire: Wire, answer: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    answer
        .iter()
        .flat_map(|message| match wire {
            Wire::Anthropic => message["content"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|block| block["type"] == "tool_use")
                .map(|block| text(&block["id"]))
                .collect::<Vec<_>>(),
            Wire::OpenAiChat => message["tool_calls"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|call| text(&call["id"]))
                .collect(),
            Wire::OpenAiResponses => (message["type"] == "function_call")
                .then(|| text(&message["call_id"]))
                .into_iter()
                .collect(),
        })
        .collect()
}

fn tools(wire: Wire) -> Value {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    match wire {
        Wire::Anthropic => {
            json!([{"name": "read_file", "description": "Reads.", "input_schema": schema}])
        }
        Wire::OpenAiChat => {
            json!([{"type": "function", "function": {"name": "read_file", "parameters": schema}}])
        }
        Wire::OpenAiResponses => {
            json!([{"type": "function", "name": "read_file", "parameters": schema}])
        }
    }
}

/// Something long that is said in a turn.
pub(crate) fn chatter(turn: usize, words: usize) -> String {
    let mut text = format!("Please look at module_{turn} and tell me what it does. ");
    for word in 0..words {
        text.push_str(&format!("line{turn}x{word} "));
    }
    text
}
