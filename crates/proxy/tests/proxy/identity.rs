//! Which session a request belongs to.

use http::StatusCode;
use serde_json::json;
use throughline_proxy::Config;
use throughline_proxy::config::Tenants;
use throughline_simulator::Options;
use throughline_transcript::wire::Wire;

use crate::world::{Client, Got, World, chatter, config};

fn session(got: &Got) -> String {
    got.told("x-throughline-session").unwrap().to_owned()
}

async fn world() -> World {
    World::new(Options::new(3).without_latency()).await
}

#[tokio::test(start_paused = true)]
async fn a_conversation_is_one_session_however_its_messages_are_written() {
    for wire in Wire::ALL {
        let world = world().await;
        let mut client = Client::new(wire);
        let first = session(&client.say(&world, "Hello.").await);
        assert_eq!(session(&client.say(&world, "And now?").await), first);
        // A cache marker moves, a text becomes a block, a message is sent again.
        client.marks_cache = false;
        assert_eq!(session(&client.say(&world, "Again.").await), first);
        let again = world.ask(client.request_without_answer()).await;
        assert_eq!(session(&again), first);
    }
}

#[tokio::test(start_paused = true)]
async fn tenants_do_not_share_sessions() {
    let world = world().await;
    let mut one = Client::new(Wire::Anthropic);
    let mut other = one.clone();
    other.key = "key-2".to_owned();
    let first = session(&one.say(&world, "Hello.").await);
    assert_ne!(session(&other.say(&world, "Hello.").await), first);
    // The same history under another key.
    let mut stolen = one.clone();
    stolen.key = "key-2".to_owned();
    assert_ne!(session(&stolen.say(&world, "More.").await), first);
    stolen
        .headers
        .push(("x-throughline-session".to_owned(), "mine".to_owned()));
    one.headers.clone_from(&stolen.headers);
    let named = session(&one.say(&world, "More.").await);
    assert_ne!(session(&stolen.say(&world, "More.").await), named);
}

#[tokio::test(start_paused = true)]
async fn one_person_may_change_credentials() {
    let config = Config {
        tenants: Tenants::One,
        ..config()
    };
    let world = World::with(Options::new(3).without_latency(), config).await;
    let mut client = Client::new(Wire::Anthropic);
    let first = session(&client.say(&world, "Hello.").await);
    client.key = "key-2".to_owned();
    assert_eq!(session(&client.say(&world, "More.").await), first);
}

#[tokio::test(start_paused = true)]
async fn the_last_turn_can_be_edited_and_an_earlier_one_is_a_fork() {
    let world = world().await;
    let mut client = Client::new(Wire::Anthropic);
    client.say(&world, "One.").await;
    let kept = client.clone();
    client.say(&world, "Two.").await;
    let before_three = client.clone();
    let first = session(&client.say(&world, "Three.").await);
    // The last turn once more, in other words.
    let mut edited = before_three.clone();
    assert_eq!(session(&edited.say(&world, "Three, please.").await), first);
    let mut forked = kept.clone();
    let fork = session(&forked.say(&world, "Something else.").await);
    assert_ne!(fork, first);
    assert_eq!(session(&forked.say(&world, "And more.").await), fork);
    assert_eq!(session(&edited.say(&world, "Go on.").await), first);
    world.proxy.settle(std::time::Duration::from_secs(1)).await;
    let id = throughline_store::SessionId::new(fork).unwrap();
    let parent = world.store.session(&id).await.unwrap().parent.unwrap();
    assert_eq!(
        (parent.session.as_str(), parent.message_count),
        (first.as_str(), 2)
    );
}

/// A request that is stopped before its answer and sent again in other words belongs to the same session.
#[tokio::test(start_paused = true)]
async fn a_request_that_was_stopped_can_be_edited() {
    for wire in Wire::ALL {
        let world = World::new(Options::new(3)).await;
        let mut client = Client::new(wire);
        client.say(&world, "One.").await;
        let first = session(&client.say(&world, "Two.").await);
        for hasty in ["Three.", "Three, I say."] {
            let mut stopped = client.clone();
            let said = json!({"role": "user", "content": hasty});
            stopped.messages.push(said);
            let asked = world.proxy.answer(stopped.request());
            let moment = std::time::Duration::from_millis(5);
            assert!(tokio::time::timeout(moment, asked).await.is_err());
        }
        let got = client.say(&world, "Three, please.").await;
        assert_eq!(session(&got), first, "{wire}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_begins_with_the_memory_of_its_parent() {
    let world = world().await;
    let mut client = Client::new(Wire::Anthropic);
    client.say(&world, "Remember: the port is 8431.").await;
    let mut turn = 0;
    let first = loop {
        turn += 1;
        let got = client.say(&world, &chatter(turn, 60)).await;
        if got.told("x-throughline-epoch") == Some("1") {
            break session(&got);
        }
    };
    let mut branch = client.clone();
    client.say(&world, "One way.").await;
    client.say(&world, "On this way.").await;
    let got = branch.say(&world, "Another way.").await;
    assert_ne!(session(&got), first);
    assert_eq!(got.told("x-throughline"), Some("rewritten"), "{got:?}");
    assert!(world.last_body().contains("8431"));
    assert_eq!(world.refused(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_compacts_by_itself_begins_anew() {
    let world = world().await;
    let mut client = Client::new(Wire::Anthropic);
    let first = session(&client.say(&world, "Hello.").await);
    client.messages =
        vec![json!({"role": "user", "content": "Summary of the conversation: we said hello."})];
    let got = client.say(&world, "Go on.").await;
    assert_ne!(session(&got), first);
    assert_eq!(got.told("x-throughline"), Some("tracked"));
}

#[tokio::test(start_paused = true)]
async fn parallel_requests_of_one_conversation_do_not_mix() {
    let world = World::new(Options::new(3)).await;
    let mut client = Client::new(Wire::Anthropic);
    client.say(&world, "Hello.").await;
    let mut clients: Vec<Client> = (0..5).map(|_| client.clone()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let text = format!("Branch {number}.");
        client
            .messages
            .push(json!({"role": "user", "content": text}));
    }
    let answers =
        futures_util::future::join_all(clients.iter().map(|client| world.ask(client.request())))
            .await;
    let mut sessions: Vec<String> = answers.iter().map(session).collect();
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 5, "{sessions:?}");
}

impl Client {
    /// The last request once more.
    pub(crate) fn request_without_answer(
        &self,
    ) -> http::Request<http_body_util::Full<bytes::Bytes>> {
        let mut client = self.clone();
        while client
            .messages
            .last()
            .is_some_and(|last| last["role"] != "user")
        {
            client.messages.pop();
        }
        client.request()
    }
}

/// Reasoning in the messages that a fork shares with its parent belongs to the parent's requests.
#[tokio::test(start_paused = true)]
async fn a_fork_takes_no_reasoning_of_its_parent_along() {
    let world = world().await;
    let mut client = Client::new(Wire::Anthropic);
    client.fields = json!({"model": "claude-opus-5-5", "thinking": {"type": "adaptive"}});
    let mut turn = 0;
    loop {
        turn += 1;
        let got = client.say(&world, &chatter(turn, 60)).await;
        if got.told("x-throughline-epoch") == Some("1") {
            break;
        }
    }
    // What is said after the swap is thought behind the memory.
    client.say(&world, "Think about it.").await;
    let mut branch = client.clone();
    client.say(&world, "One way.").await;
    client.say(&world, "On this way.").await;
    let got = branch.say(&world, "Another way.").await;
    assert_eq!(got.told("x-throughline"), Some("rewritten"), "{got:?}");
    branch.say(&world, "On that way.").await;
    assert_eq!(world.refused(), 0);
}

/// Codex gives its tools in items of the input, before its instructions.
#[tokio::test(start_paused = true)]
async fn the_first_request_of_a_conversation_with_tools_begins_its_session() {
    for (wire, fields, lead) in [
        (
            Wire::OpenAiResponses,
            json!({}),
            json!([
                {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "exec"}]},
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are Codex."}]},
            ]),
        ),
        (
            Wire::OpenAiChat,
            json!({"functions": [{"name": "look", "parameters": {"type": "object"}}]}),
            json!([]),
        ),
    ] {
        let world = world().await;
        let mut client = Client::new(wire);
        client.tools = None;
        client.fields = fields;
        client.messages = lead.as_array().unwrap().clone();
        client
            .messages
            .push(json!({"role": "user", "content": "Hello."}));
        let got = world.ask(client.request()).await;
        assert_eq!(got.told("x-throughline"), Some("tracked"), "{wire} {got:?}");
        let first = session(&got);
        let answer = client.read(&got);
        client.messages.extend(answer);
        client
            .messages
            .push(json!({"role": "user", "content": "And then?"}));
        let got = world.ask(client.request()).await;
        assert_eq!(session(&got), first, "{wire}");
        world.proxy.settle(std::time::Duration::from_secs(1)).await;
        let id = throughline_store::SessionId::new(first).unwrap();
        let stored = world.store.session(&id).await.unwrap();
        assert_eq!(stored.message_count, 4, "{wire}");
        // Without any of it, a message alone is a call beside the conversation.
        client.fields = json!({});
        client.messages = vec![json!({"role": "user", "content": "A title?"})];
        let got = world.ask(client.request()).await;
        assert_eq!(got.told("x-throughline-reason"), Some("side-call"));
    }
}

/// Of parallel questions after the same history, each continues in a session that may have had another one of them, or
/// in a new one: what the model thought behind other bytes does not come along.
#[tokio::test(start_paused = true)]
async fn questions_side_by_side_bring_no_reasoning_where_it_does_not_belong() {
    for model in ["claude-opus-5-5", "claude-sonnet-5-5"] {
        let world = world().await;
        let mut client = Client::new(Wire::Anthropic);
        client.fields = json!({"model": model, "thinking": {"type": "adaptive"}});
        let mut thought = 0;
        for turn in 0..60 {
            let got = client.say(&world, &chatter(turn, 60)).await;
            if got.told("x-throughline-epoch") == Some("0") {
                continue;
            }
            let mut branches: Vec<Client> = (0..3).map(|_| client.clone()).collect();
            for (number, branch) in branches.iter_mut().enumerate() {
                let text = format!("{} (variant {number})", chatter(turn, 20));
                branch
                    .messages
                    .push(json!({"role": "user", "content": text}));
            }
            let mut is_open = [true; 3];
            while is_open.contains(&true) {
                for (branch, is_open) in branches.iter_mut().zip(&mut is_open) {
                    if !*is_open {
                        continue;
                    }
                    let got = world.ask(branch.request()).await;
                    assert_eq!(got.status, StatusCode::OK, "{model} {turn} {got:?}");
                    thought += usize::from(got.body.windows(11).any(|at| at == b"\"signature\""));
                    *is_open = branch.take(&got);
                }
            }
            client = branches.swap_remove(0);
        }
        assert!(thought > 0);
        assert_eq!(world.refused(), 0);
    }
}

/// The rest of an answer that was cut off while the model thought stays in the history of some clients.
#[tokio::test(start_paused = true)]
async fn messages_of_nothing_but_reasoning_are_no_trouble_behind_a_swap() {
    for (wire, model, binds) in [
        (Wire::Anthropic, "claude-opus-5-5", true),
        (Wire::Anthropic, "claude-sonnet-5-5", true),
        (Wire::Anthropic, "claude-opus-5", false),
        (Wire::Anthropic, "claude-sonnet-4-6", false),
        (Wire::OpenAiResponses, "gpt-5.6-sol", false),
    ] {
        let world = world().await;
        let mut client = Client::new(wire);
        client.fields = match wire {
            Wire::Anthropic => json!({"model": model, "thinking": {"type": "adaptive"}}),
            _ => json!({"model": model, "include": ["reasoning.encrypted_content"]}),
        };
        let is_thinking = |part: &serde_json::Value| {
            ["thinking", "redacted_thinking", "reasoning"]
                .iter()
                .any(|kind| part["type"] == **kind)
        };
        let mut alone = 0;
        let mut sent_alone = 0;
        for turn in 1..40 {
            let got = client.say(&world, &chatter(turn, 40)).await;
            let sent: serde_json::Value = serde_json::from_str(&world.last_body()).unwrap();
            let list = sent.get("messages").or(sent.get("input")).unwrap();
            let is_alone = |message: &serde_json::Value| {
                message["content"]
                    .as_array()
                    .is_some_and(|blocks| !blocks.is_empty() && blocks.iter().all(is_thinking))
            };
            sent_alone += list
                .as_array()
                .unwrap()
                .iter()
                .filter(|message| is_alone(message))
                .count();
            // Of every other answer only the reasoning is left.
            if turn % 2 == 0 {
                continue;
            }
            match wire {
                Wire::Anthropic => {
                    let last = client.messages.last_mut().unwrap();
                    let blocks = last["content"].as_array_mut().unwrap();
                    if blocks.iter().any(is_thinking) {
                        blocks.retain(is_thinking);
                        alone += 1;
                    }
                }
                _ => {
                    let from = client
                        .messages
                        .iter()
                        .rposition(|item| item["role"] == "user")
                        .unwrap();
                    let behind = client.messages.split_off(from + 1);
                    // Calls and results stay; what was said at the end goes.
                    let words = behind
                        .iter()
                        .rposition(|item| item["type"] == "message")
                        .unwrap();
                    client.messages.extend(behind.into_iter().take(words));
                    alone += usize::from(is_thinking(client.messages.last().unwrap()));
                }
            }
            if got
                .told("x-throughline-epoch")
                .unwrap()
                .parse::<u64>()
                .unwrap()
                >= 6
            {
                break;
            }
        }
        assert!(alone > 0, "{model} has not thought");
        assert_eq!(world.refused(), 0, "{model}");
        if wire == Wire::Anthropic {
            assert!(sent_alone > 0, "{model}, {binds}");
        }
    }
}
