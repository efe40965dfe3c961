//! Histories in which something is too large, paused or asked for: what goes out, and what is kept.

use std::sync::Arc;

use throughline::compactor::Styling;
use throughline::engine::Requester;
use throughline::{ModelCompactor, TurnEvent, UserInput};
use throughline_simulator::{Options, Reply, StopReason};
use throughline_store::MemoryStore;
use throughline_transcript::json::Raw;
use throughline_transcript::request::message::ToolOutput;

use crate::world::{MODEL, World, chatter};

/// One result many times the window: it goes out with its start, its end and where the whole is, and is archived whole.
#[tokio::test(start_paused = true)]
async fn a_result_larger_than_the_window_is_answered_and_can_be_read_whole() {
    let world = World::new(Options::new(2).without_latency());
    let tools = r#"[{"name":"shell","input_schema":{"type":"object"}}]"#;
    let session = world
        .session()
        .window(50_000)
        .tools(Raw::parse(tools.to_owned()).unwrap())
        .store(Arc::new(MemoryStore::new()))
        .start()
        .await
        .unwrap();
    world
        .provider
        .script(Reply::text("I run it.").tool_call("shell", "{}"));
    let calls = session
        .ask("Run the suite and tell me the first failure.")
        .await
        .unwrap()
        .tool_calls();
    let text = format!(
        "BEGIN suite seed=9917\n{}FAILED at case 137\nEND exit=101",
        "test case passes\n".repeat(60_000)
    );
    let output = ToolOutput {
        call_id: calls[0].id.to_string(),
        text: text.clone(),
        is_error: false,
    };
    world.provider.script(Reply::text("Case 137."));
    session.ask(UserInput::from(vec![output])).await.unwrap();
    assert_eq!(world.refused(), 0);
    let body = last_body(&world);
    for part in ["seed=9917", "exit=101", "message 3 in the archive"] {
        assert!(body.contains(part), "{part}");
    }
    assert!(body.len() < 200_000);
    let kept = session.message_at(2).await.unwrap();
    let kept = Raw::parse(String::from_utf8(kept.original.to_vec()).unwrap()).unwrap();
    let block = kept.field("content").unwrap().array().next().unwrap();
    assert_eq!(block.string_field("content").unwrap(), text);
}

/// The provider takes less than was believed: the request is made again from a memory, once.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_refused_as_too_large_is_made_smaller() {
    let mut options = Options::new(2).without_latency();
    options.window = Some(20_000);
    let world = World::new(options);
    let session = world.session().window(200_000).start().await.unwrap();
    let mut is_compacted = false;
    for number in 0..30 {
        let mut turn = session.send(chatter(number, 250)).await.unwrap();
        while let Some(event) = futures_util::StreamExt::next(&mut turn).await {
            is_compacted |= matches!(event.unwrap(), TurnEvent::Compacted);
        }
    }
    assert!(is_compacted);
    assert!(session.status().epoch >= 1);
    assert!(session.status().limit <= 20_000, "the window is learned");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_pauses_is_asked_to_go_on() {
    let world = World::new(Options::new(2).without_latency());
    let tools = r#"[{"type":"web_search_20250305","name":"web_search"}]"#;
    let session = world
        .session()
        .tools(Raw::parse(tools.to_owned()).unwrap())
        .start()
        .await
        .unwrap();
    world.provider.with(|simulator| {
        simulator.set_faults("pause@1-3".parse().unwrap());
    });
    let answer = session.ask("Search for the release notes.").await.unwrap();
    assert_ne!(
        answer.stop().map(|stop| format!("{stop:?}")).as_deref(),
        Some("PauseTurn")
    );
    assert_eq!(world.refused(), 0);
    assert!(world.provider.ledger().len() >= 2);
}

/// An answer without content, as after a refusal: the next request is valid all the same.
#[tokio::test(start_paused = true)]
async fn an_answer_that_says_nothing_does_not_end_the_conversation() {
    let world = World::new(Options::new(2).without_latency());
    let session = world.session().start().await.unwrap();
    world
        .provider
        .script(Reply::text("").stop(StopReason::EndTurn));
    session.ask("Hello?").await.unwrap();
    session.ask("Are you there?").await.unwrap();
    assert_eq!(world.refused(), 0);
}

/// A focus is said to the model first, and to one update only.
#[tokio::test(start_paused = true)]
async fn a_focus_is_used_once() {
    let world = World::new(Options::new(2).without_latency());
    let compactor = ModelCompactor::new(world.client.clone(), MODEL).styling(Styling::Forked);
    let session = world.session().compactor(compactor).start().await.unwrap();
    session
        .ask("Retry policy: 4 tries, 250 ms base, jitter.")
        .await
        .unwrap();
    for turn in 0..4 {
        session.ask(chatter(turn, 200)).await.unwrap();
    }
    let focus = "keep all numbers of the retry policy";
    session.compact(Some(focus)).await.unwrap();
    for turn in 4..8 {
        session.ask(chatter(turn, 200)).await.unwrap();
    }
    session.compact_by(Requester::Model, None).await.unwrap();
    let asked: Vec<bool> = world
        .provider
        .ledger()
        .iter()
        .filter(|exchange| exchange.is_summary)
        .map(|exchange| String::from_utf8_lossy(&exchange.body).contains(focus))
        .collect();
    assert_eq!(asked.first(), Some(&true));
    assert_eq!(asked.last(), Some(&false));
    let memory = session.memory().unwrap();
    for part in ["4 tries", "250 ms", "jitter"] {
        assert!(memory.text.contains(part), "{part}: {}", memory.text);
    }
    // The focus is no message.
    for index in 0..session.status().messages {
        let message = session.message_at(index).await.unwrap();
        assert!(!String::from_utf8_lossy(&message.original).contains(focus));
    }
}

fn last_body(world: &World) -> String {
    let body = world.provider.ledger().pop().unwrap().body;
    String::from_utf8(body.to_vec()).unwrap()
}
