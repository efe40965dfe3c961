//! Conversations that go on past their window.

use std::time::Duration;

use serde_json::json;
use throughline_proxy::Config;
use throughline_proxy::config::Updates;
use throughline_simulator::Options;
use throughline_transcript::check::{CheckOptions, Profile, check_text};
use throughline_transcript::json::Raw;
use throughline_transcript::wire::Wire;

use crate::world::{Client, Got, World, chatter, config};

const FACT: &str = "Remember: the deploy region is eu-north-3.";
const QUESTION: &str = "What is the deploy region?";

async fn goes_on(wire: Wire, config: Config, is_streaming: bool, epochs: u64) -> World {
    let world = World::with(Options::new(9).without_latency(), config).await;
    let mut client = Client::new(wire);
    client.is_streaming = is_streaming;
    client.say(&world, FACT).await;
    let mut turn = 0;
    let mut epoch = 0;
    while epoch < epochs {
        turn += 1;
        assert!(turn < 400, "only {epoch} swaps in {turn} turns");
        // A person reads and thinks.
        tokio::time::sleep(Duration::from_secs(20)).await;
        let got = client.say(&world, &chatter(turn, 60)).await;
        let told = got.told("x-throughline-epoch").unwrap_or("0");
        epoch = told.parse().unwrap();
    }
    let got = client.say(&world, QUESTION).await;
    assert_eq!(got.told("x-throughline"), Some("rewritten"), "{got:?}");
    let answer = client.read(&got);
    let answer = serde_json::to_string(&answer).unwrap();
    assert!(answer.contains("eu-north-3"), "{answer}");
    assert_eq!(world.refused(), 0);
    world
}

#[tokio::test(start_paused = true)]
async fn ten_windows_of_every_wire_are_passed_without_a_refusal() {
    for wire in Wire::ALL {
        goes_on(wire, config(), true, 10).await;
        goes_on(wire, config(), false, 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn memories_are_made_with_the_clients_own_credential() {
    for wire in Wire::ALL {
        let config = Config {
            updates: Updates::Client,
            ..config()
        };
        // The first swaps have not saved yet what a model costs.
        let world = goes_on(wire, config, true, 8).await;
        let ledger = world.provider.ledger();
        let updates = ledger.iter().filter(|exchange| exchange.is_summary);
        let metrics = world.proxy.metrics();
        assert!(updates.count() >= 2, "{wire} {metrics}");
        assert!(metrics.contains(r#"purpose="update""#), "{metrics}");
    }
}

/// Within an epoch every request begins with the bytes of the one before, but for cache markers and what closes it.
#[tokio::test(start_paused = true)]
async fn requests_of_an_epoch_are_prefixes_of_each_other() {
    for wire in Wire::ALL {
        let world = World::new(Options::new(3).without_latency()).await;
        let mut client = Client::new(wire);
        client.marks_cache = false;
        let mut before: Option<(String, Vec<String>)> = None;
        let mut compared = 0;
        for turn in 0..60 {
            let got = client.say(&world, &chatter(turn, 60)).await;
            let epoch = got.told("x-throughline-epoch").unwrap().to_owned();
            let body = world.last_body();
            let messages = messages_of(&body);
            if let Some((epoch_before, messages_before)) = &before
                && *epoch_before == epoch
            {
                compared += 1;
                assert!(
                    messages.starts_with(messages_before),
                    "{wire} turn {turn}\n{messages_before:#?}\n{messages:#?}"
                );
            }
            before = Some((epoch, messages));
        }
        assert!(compared > 20, "{compared}");
    }
}

/// A restart changes nothing of what the provider is sent.
#[tokio::test(start_paused = true)]
async fn a_restart_keeps_the_prefix() {
    for wire in Wire::ALL {
        let mut world = World::new(Options::new(3).without_latency()).await;
        let mut client = Client::new(wire);
        let mut epoch = String::from("0");
        let mut turn = 0;
        // A turn of many steps may have more than one swap.
        while epoch.parse::<u64>().unwrap() < 2 {
            turn += 1;
            let got = client.say(&world, &chatter(turn, 60)).await;
            got.told("x-throughline-epoch")
                .unwrap()
                .clone_into(&mut epoch);
        }
        client
            .messages
            .push(serde_json::json!({"role": "user", "content": "Go on."}));
        let before = world.ask(client.request()).await;
        let sent_before = world.last_body();
        world.restart().await;
        let after = world.ask(client.request()).await;
        assert_eq!(world.last_body(), sent_before, "{wire}");
        assert_eq!(
            before.told("x-throughline-session"),
            after.told("x-throughline-session")
        );
        assert_eq!(after.told("x-throughline"), Some("rewritten"));
    }
}

/// An epoch is the time between two swaps: other tools begin none, though what was thought behind the old ones goes.
#[tokio::test(start_paused = true)]
async fn other_tools_begin_no_epoch() {
    for (model, binds) in [("claude-opus-5-5", true), ("claude-opus-4-6", false)] {
        let config = Config {
            window: Some(40_000),
            ..config()
        };
        let mut world = World::with(Options::new(3).without_latency(), config).await;
        let mut client = Client::new(Wire::Anthropic);
        client.fields = json!({"model": model, "thinking": {"type": "adaptive"}});
        client.say(&world, "Hello.").await;
        client.say(&world, "Look at module_a.").await;
        let thoughts: Vec<String> = client
            .messages
            .iter()
            .flat_map(|message| message["content"].as_array().into_iter().flatten())
            .filter_map(|block| Some(block["signature"].as_str()?.to_owned()))
            .collect();
        assert!(!thoughts.is_empty(), "{model}");
        let tools = client.tools.as_mut().unwrap().as_array_mut().unwrap();
        tools.push(json!({"name": "write_file", "input_schema": {"type": "object"}}));
        let got = client.say(&world, "And at module_b.").await;
        let told = |got: &Got| {
            ["epoch", "covered"].map(|name| {
                got.told(&format!("x-throughline-{name}"))
                    .unwrap()
                    .to_owned()
            })
        };
        assert_eq!(told(&got), ["0", "0"], "{model}");
        let sent = world.last_body();
        let is_there = |thought: &String| sent.contains(thought);
        assert!(
            thoughts.iter().all(|thought| is_there(thought) != binds),
            "{model}"
        );
        assert_eq!(
            got.told("x-throughline") == Some("rewritten"),
            binds,
            "{model}"
        );
        world.restart().await;
        let got = world.ask(client.request_without_answer()).await;
        assert_eq!(told(&got), ["0", "0"], "{model}");
        assert_eq!(world.last_body(), sent, "{model}");
        // The first swap begins the first epoch.
        let mut turn = 0;
        let epoch = loop {
            turn += 1;
            assert!(turn < 100);
            let got = client.say(&world, &chatter(turn, 200)).await;
            let [epoch, covered] = told(&got);
            if covered != "0" {
                break epoch;
            }
            assert_eq!(epoch, "0", "{model}");
        };
        assert_eq!(epoch, "1", "{model}");
        assert_eq!(world.refused(), 0, "{model}");
    }
}

/// What the client writes otherwise than it got it was thought behind the old tools all the same.
#[tokio::test(start_paused = true)]
async fn other_tools_come_with_an_answer_in_other_words() {
    for changes_answer in [false, true] {
        let config = Config {
            window: Some(40_000),
            ..config()
        };
        let world = World::with(Options::new(3).without_latency(), config).await;
        let mut client = Client::new(Wire::Anthropic);
        client.fields = json!({"model": "claude-opus-5-5", "thinking": {"type": "adaptive"}});
        client.say(&world, "Hello.").await;
        // Until an answer has thoughts.
        let mut turn = 0;
        while !client
            .messages
            .last()
            .unwrap()
            .to_string()
            .contains("\"signature\"")
        {
            turn += 1;
            assert!(turn < 10);
            client.say(&world, "Look at module_a.").await;
        }
        if changes_answer {
            let answer = client.messages.last_mut().unwrap();
            let blocks = answer["content"].as_array_mut().unwrap();
            blocks.push(json!({"type": "text", "text": "(Shown to the user.)"}));
        }
        let tools = client.tools.as_mut().unwrap().as_array_mut().unwrap();
        tools.push(json!({"name": "write_file", "input_schema": {"type": "object"}}));
        client.say(&world, "And at module_b.").await;
        assert_eq!(world.refused(), 0, "{changes_answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_are_counted_of_what_would_be_sent() {
    for (wire, path) in [
        (Wire::Anthropic, "/v1/messages/count_tokens"),
        (Wire::OpenAiResponses, "/v1/responses/input_tokens"),
    ] {
        let world = World::new(Options::new(3).without_latency()).await;
        let mut client = Client::new(wire);
        let count = async |client: &Client, path: &str, fields: serde_json::Value| {
            let mut body: serde_json::Value = serde_json::from_str(&client.body()).unwrap();
            let body = body.as_object_mut().unwrap();
            for name in ["stream", "max_tokens", "max_output_tokens", "store"] {
                body.remove(name);
            }
            body.extend(fields.as_object().unwrap().clone());
            let mut request = client.request();
            *request.uri_mut() = path.parse().unwrap();
            let body = serde_json::Value::Object(body.clone()).to_string();
            *request.body_mut() = body.clone().into();
            let got = world.ask(request).await;
            (got, body == world.last_body())
        };
        let tokens = |got: &Got| got.json()["input_tokens"].as_u64().unwrap();
        let mut turn = 0;
        loop {
            turn += 1;
            let got = client.say(&world, &chatter(turn, 60)).await;
            if got.told("x-throughline-epoch") == Some("1") {
                break;
            }
            let (got, is_as_it_came) = count(&client, path, json!({})).await;
            assert!(is_as_it_came, "{wire} {got:?}");
        }
        client.say(&world, "And then?").await;
        client
            .messages
            .push(json!({"role": "user", "content": "And now?"}));
        let (through, is_as_it_came) = count(&client, path, json!({})).await;
        assert_eq!(through.told("x-throughline"), Some("rewritten"));
        assert_eq!(through.told("x-throughline-reason"), Some("count"));
        assert!(!is_as_it_came);
        let passed = format!("/passthrough{path}");
        let (whole, _) = count(&client, &passed, json!({})).await;
        let (through, whole) = (tokens(&through), tokens(&whole));
        assert!(through < whole, "{wire}: {through} of {whole}");
        world.ask(client.request()).await;
        let sent = world.provider.ledger().pop().unwrap();
        assert_eq!(sent.usage.unwrap().prompt(), through, "{wire}");
        // What the provider keeps cannot be counted here.
        if wire == Wire::OpenAiResponses {
            let kept = json!({"previous_response_id": "resp_1"});
            assert!(count(&client, path, kept).await.1);
        }
    }
}

/// The messages of a body, verbatim.
fn messages_of(body: &str) -> Vec<String> {
    let body = Raw::parse(body.to_owned()).unwrap();
    let list = body.field("messages").or(body.field("input")).unwrap();
    list.array()
        .map(|message| message.as_str().to_owned())
        .collect()
}

/// Chat templates of local models refuse two messages of the same role in a row, and instructions behind the first.
#[tokio::test(start_paused = true)]
async fn where_user_and_assistant_speak_in_turn_they_do_with_a_memory_too() {
    let strict = CheckOptions {
        profile: Profile::StrictAlternation,
        ..CheckOptions::default()
    };
    for (has_tools, words) in [(true, 60), (false, 300)] {
        let mut config = config();
        config.upstreams.openai_profile = Profile::StrictAlternation;
        let world = World::with(Options::new(3).without_latency(), config).await;
        let mut client = Client::new(Wire::OpenAiChat);
        if !has_tools {
            client.tools = None;
        }
        let mut epoch = 0;
        let mut turn = 0;
        let mut begins = Vec::new();
        while epoch < 4 {
            turn += 1;
            assert!(turn < 200);
            let got = client.say(&world, &chatter(turn, words)).await;
            assert_ne!(got.told("x-throughline-reason"), Some("check"), "{turn}");
            let told = got.told("x-throughline-epoch").unwrap_or("0");
            let body = world.last_body();
            let report = check_text(&body, Wire::OpenAiChat, &strict);
            assert!(report.is_valid(), "{report:#?}");
            if told.parse::<u64>().unwrap() > epoch {
                epoch = told.parse().unwrap();
                assert_eq!(got.told("x-throughline"), Some("rewritten"));
                begins.push(messages_of(&body)[2].clone());
            }
        }
        // Where the user is the next who speaks, the memory is answered before.
        let answers = begins.iter().filter(|next| next.contains("Understood."));
        assert!(has_tools || answers.count() > 0, "{begins:#?}");
    }
}

/// What the operator says during a conversation is in the memory's message where only one system message may
/// be.
#[tokio::test(start_paused = true)]
async fn instructions_in_the_midst_are_kept_where_there_may_be_none() {
    for (profile, count) in [(Profile::Provider, 2), (Profile::StrictAlternation, 1)] {
        let mut config = config();
        config.upstreams.openai_profile = profile;
        let world = World::with(Options::new(3).without_latency(), config).await;
        let mut client = Client::new(Wire::OpenAiChat);
        client.say(&world, "Hello.").await;
        client
            .messages
            .push(json!({"role": "system", "content": "Never touch vendor/."}));
        let mut turn = 0;
        loop {
            turn += 1;
            assert!(turn < 200);
            let got = client.say(&world, &chatter(turn, 60)).await;
            if got.told("x-throughline") == Some("rewritten") {
                break;
            }
        }
        let body = world.last_body();
        assert!(body.contains("Never touch vendor/."), "{body}");
        assert_eq!(
            body.matches("\"role\":\"system\"").count(),
            count,
            "{profile:?}"
        );
    }
}
