//! Sessions that begin behind messages that were said elsewhere, and hooks.

use std::sync::{Arc, Mutex};

use throughline::engine::CompactionOutcome;
use throughline::hooks::{BeforeCompaction, Hooks, MadeBy, Verdict};
use throughline::{ModelCompactor, OpenError};
use throughline_memory::document::{Entry, Memory};
use throughline_simulator::Options;
use throughline_store::MemoryStore;
use throughline_transcript::json::Raw;
use throughline_transcript::request::message::{assistant, user};
use throughline_transcript::wire::Wire;

use crate::world::{MODEL, World, chatter};

fn history(turns: usize) -> Vec<Raw> {
    let mut messages = Vec::new();
    for turn in 0..turns {
        messages.push(user(Wire::Anthropic, &chatter(turn, 100)));
        messages.push(assistant(Wire::Anthropic, &format!("Done with {turn}.")));
    }
    messages
}

#[tokio::test(start_paused = true)]
async fn a_session_begins_behind_what_was_said_elsewhere() {
    let world = World::new(Options::new(3));
    let mut messages = history(60);
    messages.insert(
        0,
        user(
            Wire::Anthropic,
            "Remember: the deploy region is eu-north-3.",
        ),
    );
    messages.insert(1, assistant(Wire::Anthropic, "I will."));
    let store = Arc::new(MemoryStore::new());
    let builder = world.session().store(store).window(20_000);
    let session = builder.history(messages.clone()).start().await.unwrap();
    assert_eq!(session.status().messages, 122);
    let stored = session.messages(0..200).await.unwrap();
    assert!(
        stored
            .iter()
            .zip(&messages)
            .all(|(stored, said)| stored.original == said.as_str().as_bytes())
    );
    // It is far longer than the window.
    let answer = session.ask("What is the deploy region?").await.unwrap();
    assert!(answer.text().contains("eu-north-3"), "{}", answer.text());
    assert!(session.status().cover > 0);
    assert_eq!(world.refused(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_memory_can_stand_before_a_history() {
    let world = World::new(Options::new(3));
    let from = world.session().start().await.unwrap();
    from.ask("Remember: the port is 8431.").await.unwrap();
    for turn in 0..6 {
        from.ask(chatter(turn, 300)).await.unwrap();
    }
    from.compact(None).await.unwrap();
    let memory = from.memory().unwrap().memory.clone();
    let builder = world.session().memory(memory).history(history(2));
    let session = builder.start().await.unwrap();
    let answer = session.ask("What is the port?").await.unwrap();
    assert!(answer.text().contains("8431"), "{}", answer.text());
}

#[tokio::test(start_paused = true)]
async fn what_the_provider_would_refuse_is_no_history() {
    let world = World::new(Options::new(3));
    let result =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}"#;
    let builder = world
        .session()
        .history(vec![Raw::parse(result.to_owned()).unwrap()]);
    assert!(matches!(
        builder.start().await,
        Err(OpenError::History { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_open_at_the_end_of_a_history_stay_open() {
    let world = World::new(Options::new(3));
    let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"look","input":{}}]}"#;
    let mut messages = history(1);
    messages.push(user(Wire::Anthropic, "Look."));
    messages.push(Raw::parse(call.to_owned()).unwrap());
    let session = world.session().history(messages).start().await.unwrap();
    let open = session.open_calls().await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(&*open[0].name, "look");
    session.ask("Never mind.").await.unwrap();
    assert!(session.open_calls().await.unwrap().is_empty());
    assert_eq!(world.refused(), 0);
}

#[derive(Default)]
struct Watching {
    before: Mutex<Vec<std::ops::Range<usize>>>,
    after: Mutex<Vec<MadeBy>>,
    veto: bool,
}

struct Watch(Arc<Watching>);

#[async_trait::async_trait]
impl Hooks for Watch {
    async fn before_compaction(&self, compaction: BeforeCompaction<'_>) -> Verdict {
        assert_eq!(compaction.messages.len(), compaction.new.len());
        self.0.before.lock().unwrap().push(compaction.messages);
        if self.0.veto {
            return Verdict::Veto {
                reason: "not now".to_owned(),
            };
        }
        Verdict::Compact {
            keep: vec!["The customer is called Ostrava.".to_owned(), " ".to_owned()],
        }
    }

    async fn after_compaction(&self, by: MadeBy, memory: &mut Memory) {
        self.0.after.lock().unwrap().push(by);
        for item in &mut memory.items {
            if let Entry::Task { text, .. } = &mut item.entry {
                text.push_str(" (seen)");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_see_keep_and_change() {
    let world = World::new(Options::new(3));
    let watching = Arc::new(Watching::default());
    let session = world
        .session()
        .hooks(Watch(Arc::clone(&watching)))
        .compactor(ModelCompactor::new(world.client.clone(), MODEL))
        .start()
        .await
        .unwrap();
    for turn in 0..6 {
        session.ask(chatter(turn, 300)).await.unwrap();
    }
    let outcome = session.compact(None).await.unwrap();
    assert!(
        matches!(outcome, CompactionOutcome::Committed { .. }),
        "{outcome:?}"
    );
    let memory = session.memory().unwrap();
    assert!(memory.text.contains("The customer is called Ostrava."));
    assert!(memory.text.contains("(seen)"), "{}", memory.text);
    // Once, however often memories are made.
    assert_eq!(session.pins().len(), 1);
    assert_eq!(watching.before.lock().unwrap()[0].start, 0);
    assert_eq!(
        *watching.after.lock().unwrap(),
        [MadeBy::Code, MadeBy::Model]
    );
}

#[tokio::test(start_paused = true)]
async fn a_hook_can_forbid_it() {
    let world = World::new(Options::new(3));
    let watching = Arc::new(Watching {
        veto: true,
        ..Watching::default()
    });
    let builder = world.session().window(20_000);
    let session = builder
        .hooks(Watch(Arc::clone(&watching)))
        .start()
        .await
        .unwrap();
    for turn in 0..6 {
        session.ask(chatter(turn, 100)).await.unwrap();
    }
    let outcome = session.compact(None).await.unwrap();
    assert!(
        matches!(&outcome, CompactionOutcome::Refused { reason } if reason.contains("not now")),
        "{outcome:?}"
    );
    assert!(session.memory().is_none());
    // In the end there is no room left, and the session says so instead of sending what would be refused.
    let mut turn = 6;
    let refused = loop {
        match session.ask(chatter(turn, 250)).await {
            Ok(_) => turn += 1,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(refused, throughline::SendError::TooLarge { .. }),
        "{refused}"
    );
    assert_eq!(world.refused(), 0);
}
