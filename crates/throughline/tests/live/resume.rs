//! A session that was closed and opened again sends what one that went on would send.

use std::sync::Arc;

use throughline::engine::Mode;
use throughline::{Session, UserInput};
use throughline_simulator::{Options, Reply};
use throughline_store::{MemoryStore, SessionId, SqliteStore, Store};
use throughline_transcript::catalogue::Catalogue;
use throughline_transcript::request::MemoryPlace;
use throughline_transcript::request::message::ToolOutput;
use throughline_transcript::wire::Wire;

use crate::world::{MODEL, World, chatter};

/// What happens in a session, one thing after the other.
#[derive(Clone, Copy, Debug)]
enum Step {
    Say(usize),
    /// The model calls a tool and gets its result.
    UseTool,
    /// The model calls a tool, and the user talks over it.
    TalkOver,
    Compact,
    Undo,
    Pin,
    TruncateTo(usize),
    Settings,
    Model,
    EditMemory,
    HugeResult,
    Cancel,
    Clear,
}

const STORY: &[Step] = &[
    Step::Say(0),
    Step::Say(1),
    Step::Say(2),
    Step::UseTool,
    Step::Pin,
    Step::Compact,
    Step::Say(3),
    Step::Say(4),
    Step::TalkOver,
    Step::Settings,
    Step::Say(5),
    Step::Cancel,
    Step::Say(6),
    Step::EditMemory,
    Step::Say(7),
    Step::Compact,
    Step::Say(16),
    Step::TruncateTo(5),
    Step::Say(8),
    Step::Say(9),
    Step::Compact,
    Step::Undo,
    Step::HugeResult,
    Step::Compact,
    Step::Say(10),
    Step::Model,
    Step::Say(11),
    Step::Say(12),
    Step::Clear,
    Step::Say(13),
    Step::Say(14),
    Step::Compact,
    Step::Say(15),
];

impl Step {
    async fn happen(self, world: &World, session: &Session) {
        match self {
            Self::Say(turn) => {
                session.ask(chatter(turn, 60)).await.unwrap();
            }
            Self::UseTool | Self::HugeResult | Self::TalkOver => {
                let call = Reply::text("Let me look.").tool_call("look", r#"{"path":"src/ö.rs"}"#);
                world.provider.script(call);
                let answer = session.ask("Look into src/ö.rs.").await.unwrap();
                let calls = answer.tool_calls();
                assert_eq!(calls.len(), 1);
                if matches!(self, Self::TalkOver) {
                    session.ask("Leave that.").await.unwrap();
                    return;
                }
                let text = match self {
                    Self::HugeResult => "0123456789äöü ".repeat(4_000),
                    _ => "fn main() {}".to_owned(),
                };
                let output = ToolOutput {
                    call_id: calls[0].id.to_string(),
                    text,
                    is_error: false,
                };
                session.ask(UserInput::from(vec![output])).await.unwrap();
            }
            Self::Compact => {
                session.compact(None).await.unwrap();
            }
            Self::Undo => session.undo().await.unwrap(),
            Self::Pin => {
                session.pin("The port is 8443.").await.unwrap();
            }
            Self::TruncateTo(messages) => session.truncate(messages).await.unwrap(),
            Self::Settings => session
                .configure(|settings| settings.mode = Mode::Off)
                .await
                .unwrap(),
            Self::Model => {
                let name = match session_wire(world) {
                    Wire::Anthropic => "claude-sonnet-4-5",
                    _ => "gpt-4.1-mini",
                };
                let model = Catalogue::embedded().find(name).unwrap();
                session.set_model(model).await.unwrap();
            }
            Self::EditMemory => {
                if let Some(version) = session.memory() {
                    let mut memory = version.memory.clone();
                    memory.items.truncate(memory.items.len().max(2) - 1);
                    session.set_memory(memory).await.unwrap();
                }
            }
            Self::Cancel => {
                let turn = session.send("This is not waited for.").await.unwrap();
                drop(turn);
            }
            Self::Clear => session.clear().await.unwrap(),
        }
    }
}

fn session_wire(world: &World) -> Wire {
    world.client.wire()
}

/// Plays the story twice, once with a restart after every step, and compares all that was sent.
async fn check<S: Store + 'static>(wire: Wire, place: MemoryPlace, stores: [S; 2]) {
    let mut sent = Vec::new();
    for (store, restarts) in stores.into_iter().zip([false, true]) {
        let store: Arc<dyn Store> = Arc::new(store);
        let world = World::of_wire(Options::new(11).without_latency(), wire);
        let tools = match wire {
            Wire::Anthropic => {
                r#"[{"name":"look","description":"Looks.","input_schema":{"type":"object"}}]"#
            }
            Wire::OpenAiChat => {
                r#"[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]"#
            }
            Wire::OpenAiResponses => {
                r#"[{"type":"function","name":"look","parameters":{"type":"object"}}]"#
            }
        };
        let builder = || {
            let model = match wire {
                Wire::Anthropic => MODEL,
                _ => "gpt-4.1",
            };
            Session::builder(world.client.clone(), model).store(Arc::clone(&store))
        };
        let mut session = builder()
            .system("You are a careful assistant — sometimes.")
            .max_tokens(2_000)
            .memory_place(place)
            .tools(throughline_transcript::json::Raw::parse(tools.to_owned()).unwrap())
            .result_bytes_max(10_000)
            .start()
            .await
            .unwrap();
        for step in STORY {
            step.happen(&world, &session).await;
            if restarts {
                let id = session.id().clone();
                let status = session.status();
                let costs = session.costs();
                session.close().await.unwrap();
                let asked = world.provider.ledger().len();
                session = builder()
                    .result_bytes_max(10_000)
                    .resume(&id)
                    .await
                    .unwrap();
                assert_eq!(
                    world.provider.ledger().len(),
                    asked,
                    "loading starts nothing"
                );
                assert_eq!(session.costs(), costs, "{step:?}");
                let now = session.status();
                assert_eq!(
                    (now.cover, now.messages, now.version, now.epoch, now.hard),
                    (
                        status.cover,
                        status.messages,
                        status.version,
                        status.epoch,
                        status.hard
                    ),
                    "{step:?}"
                );
            }
        }
        assert_eq!(world.refused(), 0, "{wire:?}");
        session.close().await.unwrap();
        let bodies: Vec<String> = world
            .provider
            .ledger()
            .into_iter()
            .map(|exchange| String::from_utf8(exchange.body.to_vec()).unwrap())
            .collect();
        sent.push(bodies);
    }
    let restarted = sent.pop().unwrap();
    let went_on = sent.pop().unwrap();
    assert_eq!(went_on.len(), restarted.len());
    for (index, (one, other)) in went_on.iter().zip(&restarted).enumerate() {
        assert!(one == other, "request {index}:\n{one}\n\n{other}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_request_is_the_same_after_a_restart_on_all_wires() {
    for wire in [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses] {
        check(
            wire,
            MemoryPlace::FirstUserMessage,
            [MemoryStore::new(), MemoryStore::new()],
        )
        .await;
    }
    check(
        Wire::Anthropic,
        MemoryPlace::SystemPrompt,
        [MemoryStore::new(), MemoryStore::new()],
    )
    .await;
}

#[tokio::test]
async fn the_next_request_is_the_same_after_a_restart_from_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let databases = [
        SqliteStore::open(at("a.db")).await.unwrap(),
        SqliteStore::open(at("b.db")).await.unwrap(),
    ];
    check(Wire::Anthropic, MemoryPlace::FirstUserMessage, databases).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_changed_while_it_ran_outlives_a_restart() {
    let world = World::new(Options::new(1).without_latency());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let session = world
        .session()
        .store(Arc::clone(&store))
        .window(50_000)
        .start()
        .await
        .unwrap();
    session
        .configure(|settings| settings.mode = Mode::Traditional)
        .await
        .unwrap();
    session.pin("The port is 8443.").await.unwrap();
    assert!(session.pin("  ").await.is_err());
    let (id, status, pins) = (session.id().clone(), session.status(), session.pins());
    session.close().await.unwrap();
    // The builder says nothing of the window and another mode than the user.
    let session = Session::builder(world.client.clone(), MODEL)
        .store(store)
        .settings(|settings| settings.mode = Mode::Off)
        .resume(&id)
        .await
        .unwrap();
    assert_eq!(session.status(), status);
    assert_eq!(session.pins(), pins);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_started_once_and_resumed_from_then_on() {
    let world = World::new(Options::new(1).without_latency());
    let store = Arc::new(MemoryStore::new());
    let id = SessionId::new("orders").unwrap();
    for (model, known) in [(MODEL, 0), ("claude-haiku-4-5", 2)] {
        let session = Session::builder(world.client.clone(), model)
            .store(Arc::clone(&store))
            .open_or_start(&id)
            .await
            .unwrap();
        assert_eq!(session.id(), &id);
        assert_eq!(session.status().messages, known);
        session.ask("Remember: the port is 8443.").await.unwrap();
        session.close().await.unwrap();
    }
    for request in world.provider.ledger() {
        // The model that is stored counts.
        assert!(String::from_utf8_lossy(&request.body).contains(MODEL));
    }
}
