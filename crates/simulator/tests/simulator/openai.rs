//! Both APIs of OpenAI.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use throughline_simulator::{Exchange, Options, Reply, Simulator};
use throughline_transcript::catalogue::Catalogue;

use crate::streaming::events;
use crate::support::*;

fn chat_at(simulator: &mut Simulator, at_s: u64, body: &Value) -> Exchange {
    simulator.request(
        Duration::from_secs(at_s),
        openai_request("/v1/chat/completions", body),
    )
}

fn responses(simulator: &mut Simulator, body: &Value) -> Exchange {
    simulator.request(Duration::ZERO, openai_request("/v1/responses", body))
}

fn tools() -> Value {
    json!([{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}])
}

#[test]
fn errors_have_openais_shape() {
    let check = |path: &str, body: Value, status: u16, code: Value, param: Value| {
        let exchange = simulator().request(Duration::ZERO, openai_request(path, &body));
        let answer = json_of(&exchange);
        assert_eq!(
            (
                exchange.status.as_u16(),
                &answer["error"]["code"],
                &answer["error"]["param"]
            ),
            (status, &code, &param),
            "{answer}"
        );
        assert!(answer["error"]["message"].is_string());
        assert!(exchange.headers.contains_key("x-request-id"));
    };
    let chat = "/v1/chat/completions";
    check(
        chat,
        json!({"messages": [user("hi")]}),
        400,
        json!("missing_required_parameter"),
        json!("model"),
    );
    check(
        chat,
        json!({"model": "nobody", "messages": [user("hi")]}),
        404,
        json!("model_not_found"),
        json!("model"),
    );
    check(
        chat,
        json!({"model": "gpt-4", "messages": [user(words(9000, 0))]}),
        400,
        json!("context_length_exceeded"),
        json!("messages"),
    );
    check(
        "/v1/responses",
        json!({"model": "gpt-5", "input": "hi", "previous_response_id": "resp_x"}),
        400,
        json!("previous_response_not_found"),
        json!("previous_response_id"),
    );
    check("/v1/nothing", json!({}), 404, Value::Null, Value::Null);
    let mut request = openai_request(chat, &json!({}));
    request.headers_mut().remove("authorization");
    assert_eq!(simulator().request(Duration::ZERO, request).status, 401);
    let pending = json!({"model": "gpt-4.1", "messages": [user("hi"), {"role": "assistant", "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]}, user("and?")]});
    let exchange = chat_at(&mut simulator(), 0, &pending);
    assert!(
        exchange
            .text()
            .contains("The following tool_call_ids did not have response messages: call_1")
    );
    let pending = json!({"model": "gpt-4.1", "input": [user("hi"), {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}, user("and?")]});
    assert!(
        responses(&mut simulator(), &pending)
            .text()
            .contains("No tool output found for function call call_1.")
    );
}

#[test]
fn chat_streams_say_what_the_whole_answer_says() {
    for (seed, with_usage) in [(1, false), (2, true), (3, true)] {
        let simulator = || {
            let mut simulator = Simulator::new(Options::new(seed).without_latency());
            simulator.script(
                Reply::text("Let me look at the parser.")
                    .tool_call("read", r#"{"path":"a"}"#)
                    .tool_call("read", "{}"),
            );
            simulator
        };
        let mut body = json!({"model": "gpt-5.4", "messages": [user("hi")], "tools": tools()});
        let whole = json_of(&chat_at(&mut simulator(), 0, &body));
        body["stream"] = json!(true);
        if with_usage {
            body["stream_options"] = json!({"include_usage": true});
        }
        let text = chat_at(&mut simulator(), 0, &body).text();
        let mut data: Vec<&str> = text
            .split_terminator("\n\n")
            .map(|line| line.strip_prefix("data: ").unwrap())
            .collect();
        assert_eq!(data.pop(), Some("[DONE]"));
        let chunks: Vec<Value> = data
            .iter()
            .map(|chunk| serde_json::from_str(chunk).unwrap())
            .collect();
        let (mut content, mut finish) = (String::new(), Value::Null);
        let mut calls: Vec<Value> = Vec::new();
        for chunk in &chunks {
            assert_eq!(chunk["object"], "chat.completion.chunk");
            let Some(choice) = chunk["choices"].get(0) else {
                continue;
            };
            let delta = &choice["delta"];
            content.push_str(delta["content"].as_str().unwrap_or_default());
            for part in delta["tool_calls"].as_array().into_iter().flatten() {
                let index = part["index"].as_u64().unwrap() as usize;
                if index == calls.len() {
                    let mut call = part.clone();
                    call.as_object_mut().unwrap().remove("index");
                    calls.push(call);
                } else {
                    let arguments = calls[index]["function"]["arguments"]
                        .as_str()
                        .unwrap()
                        .to_owned()
                        + part["function"]["arguments"].as_str().unwrap();
                    calls[index]["function"]["arguments"] = json!(arguments);
                }
            }
            if !choice["finish_reason"].is_null() {
                finish = choice["finish_reason"].clone();
            }
        }
        let choice = &whole["choices"][0];
        assert_eq!(json!(content), choice["message"]["content"]);
        assert_eq!(json!(calls), choice["message"]["tool_calls"]);
        assert_eq!(finish, choice["finish_reason"]);
        assert_eq!(finish, "tool_calls");
        let last = chunks.last().unwrap();
        assert_eq!(
            last.get("usage").filter(|usage| !usage.is_null()),
            with_usage.then_some(&whole["usage"])
        );
        assert_eq!(last["choices"] == json!([]), with_usage);
    }
}

#[test]
fn older_models_cache_by_themselves_in_steps() {
    let mut simulator = simulator();
    let body = |more: &str| json!({"model": "gpt-5.4", "messages": [user(words(900, 0)), assistant("ok"), user(more)]});
    let cached = |simulator: &mut Simulator, at, body: &Value| {
        let usage = json_of(&chat_at(simulator, at, body))["usage"].clone();
        assert_eq!(usage["prompt_tokens_details"]["cache_write_tokens"], 0);
        (
            usage["prompt_tokens_details"]["cached_tokens"]
                .as_u64()
                .unwrap(),
            usage["prompt_tokens"].as_u64().unwrap(),
        )
    };
    assert_eq!(cached(&mut simulator, 0, &body("one")).0, 0);
    let (read, prompt) = cached(&mut simulator, 1, &body("two"));
    assert!(
        read >= 1024 && read % 128 == 0 && read < prompt,
        "{read} of {prompt}"
    );
    assert_eq!(cached(&mut simulator, 900, &body("two")).0, 0);
    let costs: Vec<_> = simulator
        .ledger()
        .map(|entry| entry.cost.unwrap())
        .collect();
    assert!(costs[1] < costs[0]);
}

#[test]
fn older_models_read_up_to_the_first_difference_wherever_it_is() {
    let read = |body: &dyn Fn(&str) -> Value, path: &str| {
        let mut simulator = simulator();
        let mut used = |last: &str| {
            let request = openai_request(path, &body(last));
            let usage = json_of(&simulator.request(Duration::ZERO, request))["usage"].clone();
            let [all, details] = match path.contains("chat") {
                true => ["prompt_tokens", "prompt_tokens_details"],
                false => ["input_tokens", "input_tokens_details"],
            };
            let cached = usage[details]["cached_tokens"].as_u64().unwrap();
            (cached, usage[all].as_u64().unwrap())
        };
        let (none, whole) = used("one");
        let (cached, _) = used("two");
        let (again, _) = used("two");
        assert_eq!((none, cached % 128), (0, 0));
        assert!(
            again > whole - 128 && again % 128 == 0,
            "{again} of {whole}"
        );
        // The difference is before the last third.
        let share = cached as f64 / whole as f64;
        assert!((0.62..=0.67).contains(&share), "{cached} of {whole}");
    };
    let text = |last: &str| format!("{}{last} {}", words(2000, 0), words(1000, 7));
    let chat = "/v1/chat/completions";
    read(
        &|last| json!({"model": "gpt-5.4", "messages": [user(text(last))]}),
        chat,
    );
    read(
        &|last| json!({"model": "gpt-5.4", "messages": [user(json!([{"type": "text", "text": text(last)}]))]}),
        chat,
    );
    read(
        &|last| {
            json!({"model": "gpt-5.4", "messages": [user("hi")],
                "tools": [{"type": "function", "function": {"name": "a", "description": text(last)}}]})
        },
        chat,
    );
    // Escapes are not counted, and words do not have to be there.
    let escaped = |last: &str| text(last).replace(' ', "\n\"");
    read(
        &|last| json!({"model": "gpt-5.4", "messages": [user(escaped(last))]}),
        chat,
    );
    let responses = "/v1/responses";
    read(
        &|last| json!({"model": "gpt-5.4", "input": text(last)}),
        responses,
    );
    read(
        &|last| json!({"model": "gpt-5.4", "input": "hi", "instructions": text(last)}),
        responses,
    );
    read(
        &|last| {
            json!({"model": "gpt-5.4", "input": [user("hi"),
                {"type": "function_call", "call_id": "c", "name": "a", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": text(last)}]})
        },
        responses,
    );
}

#[test]
fn what_is_not_done_is_said() {
    let check = |path: &str, setting: Value, param: &str| {
        let mut body = match path.contains("chat") {
            true => json!({"model": "gpt-5.4", "messages": [user("hi")]}),
            false => json!({"model": "gpt-5.4", "input": "hi"}),
        };
        body.as_object_mut()
            .unwrap()
            .extend(setting.as_object().unwrap().clone());
        let exchange = simulator().request(Duration::ZERO, openai_request(path, &body));
        let error = json_of(&exchange)["error"].clone();
        assert_eq!(
            exchange.status,
            if param.is_empty() { 200 } else { 400 },
            "{error}"
        );
        if !param.is_empty() {
            assert_eq!(error["code"], "unsupported_parameter", "{error}");
            assert_eq!(error["param"], param);
            assert!(
                error["message"]
                    .as_str()
                    .unwrap()
                    .contains("The simulator has no")
            );
        }
    };
    let (chat, responses) = ("/v1/chat/completions", "/v1/responses");
    check(chat, json!({"n": 2}), "n");
    check(
        chat,
        json!({"logprobs": true, "top_logprobs": 2}),
        "logprobs",
    );
    check(
        chat,
        json!({"modalities": ["text", "audio"], "audio": {"voice": "x", "format": "wav"}}),
        "modalities",
    );
    check(
        chat,
        json!({"n": 1, "logprobs": false, "modalities": ["text"]}),
        "",
    );
    check(responses, json!({"top_logprobs": 1}), "top_logprobs");
    check(
        responses,
        json!({"include": ["message.output_text.logprobs"]}),
        "include",
    );
    check(responses, json!({"background": true}), "background");
    check(responses, json!({"conversation": "conv_1"}), "conversation");
    check(responses, json!({"prompt": {"id": "pmpt_1"}}), "prompt");
    check(
        responses,
        json!({"top_logprobs": 0, "background": false, "include": [], "conversation": null}),
        "",
    );
}

#[test]
fn unknown_fields_are_refused_for_models_of_openai_alone() {
    let check = |path: &str, body: Value, message: Value| {
        let answer = json_of(&simulator().request(Duration::ZERO, openai_request(path, &body)));
        assert_eq!(answer["error"]["message"], message, "{answer}");
    };
    let (chat, responses) = ("/v1/chat/completions", "/v1/responses");
    check(
        chat,
        json!({"model": "gpt-5.4", "messages": [user("hi")], "thinking": {}}),
        json!("Unrecognized request argument supplied: thinking"),
    );
    check(
        responses,
        json!({"model": "gpt-5.4", "input": "hi", "messages": []}),
        json!("Unknown parameter: 'messages'."),
    );
    let other = Catalogue::embedded()
        .models()
        .iter()
        .find(|model| !["anthropic", "openai"].contains(&model.provider.as_str()))
        .unwrap();
    check(
        chat,
        json!({"model": other.id, "messages": [user("hi")], "chat_template_kwargs": {}}),
        Value::Null,
    );
}

#[test]
fn what_is_not_there_is_named_in_full() {
    let check = |method: Method, path: &str, message: &str| {
        let mut request = openai_request(path, &json!({}));
        *request.method_mut() = method;
        let exchange = simulator().request(Duration::ZERO, request);
        let error = json_of(&exchange)["error"].clone();
        assert_eq!(exchange.status, 404, "{error}");
        assert_eq!(error["type"], "invalid_request_error");
        assert_eq!(error["message"], message);
    };
    check(
        Method::POST,
        "/v1/embeddings",
        "Invalid URL (POST /v1/embeddings)",
    );
    check(Method::GET, "/v1/files", "Invalid URL (GET /v1/files)");
    let stored = "Response with id 'resp_1' not found. The simulator does not store responses to be fetched: it knows \
                  them as `previous_response_id` only.";
    check(Method::GET, "/v1/responses/resp_1", stored);
    check(Method::GET, "/v1/responses/resp_1/input_items", stored);
    check(Method::DELETE, "/v1/responses/resp_1", stored);
    check(Method::POST, "/v1/responses/resp_1/cancel", stored);
}

#[test]
fn newer_models_charge_for_what_they_write() {
    let mut simulator = simulator();
    let body = |more: &str| json!({"model": "gpt-6-sol", "messages": [user(words(900, 0)), assistant("ok"), user(more)]});
    let first = json_of(&chat_at(&mut simulator, 0, &body("one")))["usage"].clone();
    assert_eq!(
        first["prompt_tokens_details"]["cache_write_tokens"],
        first["prompt_tokens"]
    );
    let mut longer = body("one");
    longer["messages"]
        .as_array_mut()
        .unwrap()
        .extend([assistant("ok"), user("two")]);
    let second = json_of(&chat_at(&mut simulator, 1, &longer))["usage"].clone();
    assert_eq!(
        second["prompt_tokens_details"]["cached_tokens"],
        first["prompt_tokens"]
    );
    let mut explicit = body("three");
    explicit["prompt_cache_options"] = json!({"mode": "explicit"});
    explicit["prompt_cache_key"] = json!("another");
    let none = json_of(&chat_at(&mut simulator, 1, &explicit))["usage"].clone();
    assert_eq!(none["prompt_tokens_details"]["cache_write_tokens"], 0);
}

#[test]
fn long_prompts_cost_more() {
    let mut simulator = simulator();
    let body = json!({"model": "gpt-5.4", "max_completion_tokens": 20, "messages": [user(words(100_000, 0))]});
    let exchange = chat_at(&mut simulator, 0, &body);
    let usage = exchange.usage.unwrap();
    assert!(usage.prompt() > 272_000, "{usage:?}");
    assert_eq!(
        exchange.cost.unwrap().nano_dollars(),
        usage.uncached * 5_000 + usage.output * 22_500
    );
}

#[test]
fn responses_stream_event_for_event() {
    let simulator = || {
        let mut simulator = Simulator::new(Options::new(1).without_latency());
        simulator.script(
            Reply::text("Yes.")
                .thinking("Is it?")
                .tool_call("read", r#"{"path":"a"}"#),
        );
        simulator
    };
    let mut body = json!({"model": "gpt-5.4", "input": "hi", "store": false, "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}]});
    let whole = json_of(&responses(&mut simulator(), &body));
    body["stream"] = json!(true);
    let events = events(&responses(&mut simulator(), &body).text());
    let numbers: Vec<u64> = events
        .iter()
        .map(|(_, data)| data["sequence_number"].as_u64().unwrap())
        .collect();
    assert!(numbers.iter().copied().eq(0..events.len() as u64));
    assert!(
        events
            .iter()
            .all(|(name, data)| data["type"] == json!(name))
    );
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    insta::assert_snapshot!(names.join("\n"), @r"
    response.created
    response.in_progress
    response.output_item.added
    response.output_item.done
    response.output_item.added
    response.content_part.added
    response.output_text.delta
    response.output_text.done
    response.content_part.done
    response.output_item.done
    response.output_item.added
    response.function_call_arguments.delta
    response.function_call_arguments.done
    response.output_item.done
    response.completed
    ");
    assert_eq!(events.last().unwrap().1["response"], whole);
    let done: Vec<&Value> = events
        .iter()
        .filter(|(name, _)| name == "response.output_item.done")
        .map(|(_, data)| &data["item"])
        .collect();
    assert_eq!(json!(done), whole["output"]);
    let added = &events[2].1["item"];
    assert!(added["encrypted_content"].is_null() && done[0]["encrypted_content"].is_string());
}

#[test]
fn encrypted_reasoning_is_taken_back_unchanged_only() {
    let mut simulator = simulator();
    simulator.script(Reply::text("Yes.").thinking("Is it?"));
    let body = json!({"model": "gpt-5.4", "input": [user("hi")], "store": false, "include": ["reasoning.encrypted_content"]});
    let answer = json_of(&responses(&mut simulator, &body));
    let mut next = body.clone();
    let input = next["input"].as_array_mut().unwrap();
    input.extend(answer["output"].as_array().unwrap().iter().cloned());
    input.push(user("go on"));
    assert_eq!(responses(&mut simulator, &next).status, 200);
    next["input"][1]["encrypted_content"] = json!("Zm9yZ2Vk");
    let exchange = responses(&mut simulator, &next);
    assert_eq!(
        json_of(&exchange)["error"]["code"],
        "invalid_encrypted_content"
    );
}

#[test]
fn stored_responses_are_continued() {
    let mut simulator = simulator();
    let first = json_of(&responses(
        &mut simulator,
        &json!({"model": "gpt-4.1", "input": "Remember: the port is 8431."}),
    ));
    let next = json!({"model": "gpt-4.1", "previous_response_id": first["id"], "input": "What is the port?"});
    let answer = responses(&mut simulator, &next).text();
    assert!(answer.contains("The port is 8431."), "{answer}");
}

#[test]
fn compaction_gives_the_users_messages_and_one_sealed_item() {
    let mut simulator = simulator();
    let input = json!([user("Port the importer to Go."), {"role": "assistant", "content": "ok"}, user("And the tests.")]);
    let exchange = simulator.request(
        Duration::ZERO,
        openai_request(
            "/v1/responses/compact",
            &json!({"model": "gpt-5.4", "input": input}),
        ),
    );
    let compacted = json_of(&exchange);
    assert_eq!(exchange.status, 200, "{compacted}");
    assert_eq!(compacted["object"], "response.compaction");
    let output = compacted["output"].as_array().unwrap().clone();
    let kinds: Vec<&Value> = output
        .iter()
        .map(|item| item.get("role").unwrap_or(&item["type"]))
        .collect();
    assert_eq!(kinds, ["user", "user", "compaction"]);
    assert_eq!(
        output[0],
        json!({"id": output[0]["id"], "type": "message", "status": "completed", "role": "user",
            "content": [{"type": "input_text", "text": "Port the importer to Go."}]})
    );
    assert!(output[0]["id"].as_str().unwrap().starts_with("msg_"));
    assert_ne!(output[0]["id"], output[1]["id"]);
    assert!(!exchange.text().contains("importer to Go. "));
    let mut next = output.clone();
    next.push(user("go on"));
    assert_eq!(
        responses(&mut simulator, &json!({"model": "gpt-5.4", "input": next})).status,
        200
    );
    next[2]["encrypted_content"] = json!("another provider's");
    assert_eq!(
        responses(&mut simulator, &json!({"model": "gpt-5.4", "input": next})).status,
        400
    );
}

#[test]
fn input_tokens_are_those_of_the_usage() {
    let mut simulator = simulator();
    let body = json!({"model": "gpt-5.4", "input": [user(words(50, 0))], "instructions": "Be brief.", "tools": [{"type": "function", "name": "read", "parameters": {}}]});
    let counted = json_of(&simulator.request(
        Duration::ZERO,
        openai_request("/v1/responses/input_tokens", &body),
    ));
    let used = json_of(&responses(&mut simulator, &body));
    assert_eq!(counted["input_tokens"], used["usage"]["input_tokens"]);
    assert_eq!(counted["object"], "response.input_tokens");
}

/// Codex sends its tools and its instructions as items of the input, and no `tools`.
#[test]
fn tools_in_items_of_the_input_are_called() {
    let schema =
        json!({"type": "object", "required": ["cmd"], "properties": {"cmd": {"type": "string"}}});
    let function = json!({"type": "function", "name": "shell", "parameters": schema});
    for (tools, namespace) in [
        (json!([function]), Value::Null),
        (
            json!([{"type": "custom", "name": "exec"}, {"type": "namespace", "name": "local", "tools": [function]}]),
            json!("local"),
        ),
    ] {
        let mut simulator = simulator();
        let body = json!({
            "model": "gpt-5.6-sol", "store": false, "tool_choice": "required", "stream": true,
            "client_metadata": {"x-codex-turn": "1"},
            "input": [
                {"type": "additional_tools", "role": "developer", "tools": tools},
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are Codex."}]},
                user("Look at the parser."),
            ],
        });
        let exchange = responses(&mut simulator, &body);
        assert_eq!(exchange.status, 200, "{}", exchange.text());
        let call = events(&exchange.text())
            .into_iter()
            .map(|(_, data)| data["item"].clone())
            .rfind(|item| item["type"] == "function_call")
            .unwrap();
        assert_eq!(call["name"], "shell", "{call}");
        assert_eq!(call["namespace"], namespace, "{call}");
        let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
        assert!(arguments["cmd"].is_string(), "{call}");
        // The provider takes its own call back.
        let mut next = body.clone();
        let output =
            json!({"type": "function_call_output", "call_id": call["call_id"], "output": "ok"});
        next["input"].as_array_mut().unwrap().extend([call, output]);
        next["tool_choice"] = json!("auto");
        let exchange = responses(&mut simulator, &next);
        assert_eq!(exchange.status, 200, "{}", exchange.text());
    }
}

/// Earlier calls may have left the request, behind a memory: clients know their ids all the same.
#[test]
fn ids_of_calls_never_come_back() {
    let mut simulator = simulator();
    let mut ids = Vec::new();
    for _ in 0..3 {
        let chat = json!({"model": "gpt-5.4", "messages": [user("Look at the parser.")], "tools": tools(),
            "tool_choice": "required"});
        let answer = json_of(&chat_at(&mut simulator, 0, &chat));
        for call in answer["choices"][0]["message"]["tool_calls"]
            .as_array()
            .unwrap()
        {
            ids.push(call["id"].to_string());
        }
        let body = json!({"model": "claude-haiku-4-5", "max_tokens": 2000, "tool_choice": {"type": "any"},
            "tools": [{"name": "read", "input_schema": {"type": "object"}}], "messages": [user("Look at the parser.")]});
        let answer = answered(&mut simulator, &body);
        for block in answer["content"].as_array().unwrap() {
            if block["type"] == "tool_use" {
                ids.push(block["id"].to_string());
            }
        }
    }
    let count = ids.len();
    assert!(count >= 6, "{ids:?}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count);
}
