//! One session, one way.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use throughline::engine::{CompactionSettings, Mode};
use throughline::futures::{Stream, StreamExt};
use throughline::providers::client::Client;
use throughline::providers::credential::Credential;
use throughline::transcript::catalogue::Catalogue;
use throughline::transcript::json::Raw;
use throughline::transcript::request::message::ToolOutput;
use throughline::transcript::wire::Wire;
use throughline::{ModelCompactor, SendError, Session, SessionEvent, UserInput};
use throughline_simulator::{Latency, Options, SimulatedProvider};

use super::Classes;
use super::script::{self, Script};

/// The model that is played.
pub(crate) const MODEL: &str = "claude-opus-4-6";
/// Calls of tools in one turn, one after the other.
const STEPS_MAX: u32 = 6;
const ANSWER_TOKENS_MAX: u64 = 8_000;

const TOOLS: &str = r#"[
{"name":"read_file","description":"Reads a file of the project.","input_schema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}},
{"name":"run_command","description":"Runs a command in the project's folder.","input_schema":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}
]"#;

/// How the session is kept below the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Not at all.
    None,
    /// A summary while the user waits.
    Traditional,
    /// A memory from the background.
    Instant,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::None, Self::Traditional, Self::Instant];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::None => "no compaction",
            Self::Traditional => "traditional",
            Self::Instant => "instant",
        }
    }

    fn mode(self) -> Mode {
        match self {
            Self::None => Mode::Off,
            Self::Traditional => Mode::Traditional,
            Self::Instant => Mode::Instant,
        }
    }
}

/// What became of a session.
pub(crate) struct PlayedSession {
    pub(crate) way: Way,
    pub(crate) requests: usize,
    pub(crate) refused: usize,
    pub(crate) waits: Vec<Duration>,
    pub(crate) waited_for_model: usize,
    pub(crate) model_calls: usize,
    pub(crate) update_calls: usize,
    pub(crate) tokens: Classes<u64>,
    pub(crate) cost: Classes<f64>,
    pub(crate) update_cost: f64,
    pub(crate) largest_context: u64,
    pub(crate) facts_asked: usize,
    pub(crate) facts_kept: usize,
    pub(crate) took: Duration,
    /// Tokens of the context, request by request; nothing for those that were refused.
    pub(crate) contexts: Vec<Option<u64>>,
}

impl PlayedSession {
    pub(crate) fn middle_wait(&self) -> Option<Duration> {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        waits.get(waits.len() / 2).copied()
    }
}

/// Plays the script. The clock is virtual: a wait of half a minute takes no time, but is counted.
pub(crate) fn play(
    script: &Script,
    way: Way,
    window: u64,
    turn_done: &dyn Fn(),
) -> Result<PlayedSession, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(Player::play(script, way, window, turn_done))
}

struct Player {
    session: Session,
    events: Pin<Box<dyn Stream<Item = SessionEvent> + Send>>,
    provider: SimulatedProvider,
    played: PlayedSession,
    calls: u64,
}

impl Player {
    async fn play(
        script: &Script,
        way: Way,
        window: u64,
        turn_done: &dyn Fn(),
    ) -> Result<PlayedSession, String> {
        let mut player = Self::begin(way, window).await?;
        for turn in script.turns() {
            tokio::time::sleep(Duration::from_secs(turn.pause_s)).await;
            player.turn(&turn.text).await?;
            turn_done();
        }
        for fact in script.facts() {
            let question = format!("What is the {}?", fact.name);
            let answer = player.ask(question.into()).await?;
            player.played.facts_asked += 1;
            player.played.facts_kept +=
                usize::from(answer.is_some_and(|(text, _)| text.contains(&fact.value)));
        }
        player.end().await
    }

    async fn begin(way: Way, window: u64) -> Result<Self, String> {
        let mut options = Options::new(1);
        options.window = Some(window);
        options.latency = Latency::real();
        options.keeps_bodies = false;
        let provider = SimulatedProvider::new(options);
        let client = Client::builder(Wire::Anthropic, "http://simulator")
            .credential(Credential::new("simulated").map_err(|error| error.to_string())?)
            .transport(Arc::new(provider.clone()))
            .build()
            .map_err(|error| error.to_string())?;
        let tools = Raw::parse(TOOLS).map_err(|error| error.to_string())?;
        let session = Session::builder(client.clone(), MODEL)
            .system("You are a careful engineer who works on a billing service.")
            .tools(tools)
            .max_tokens(ANSWER_TOKENS_MAX)
            .window(window)
            .compactor(ModelCompactor::new(client, MODEL))
            .settings(move |settings: &mut CompactionSettings| settings.mode = way.mode())
            .start()
            .await
            .map_err(|error| error.to_string())?;
        Ok(Self {
            events: Box::pin(session.events()),
            session,
            provider,
            played: PlayedSession {
                way,
                requests: 0,
                refused: 0,
                waits: Vec::new(),
                waited_for_model: 0,
                model_calls: 0,
                update_calls: 0,
                tokens: Classes::default(),
                cost: Classes::default(),
                update_cost: 0.0,
                largest_context: 0,
                facts_asked: 0,
                facts_kept: 0,
                took: Duration::ZERO,
                contexts: Vec::new(),
            },
            calls: 0,
        })
    }

    /// A question, and the work that follows from it.
    async fn turn(&mut self, text: &str) -> Result<(), String> {
        let mut input = UserInput::from(text);
        for _ in 0..STEPS_MAX {
            let Some((_, open)) = self.ask(input).await? else {
                return Ok(());
            };
            if open.is_empty() {
                return Ok(());
            }
            let outputs: Vec<ToolOutput> = open
                .into_iter()
                .map(|call_id| {
                    self.calls += 1;
                    ToolOutput {
                        call_id,
                        text: script::output(self.calls),
                        is_error: false,
                    }
                })
                .collect();
            input = outputs.into();
        }
        Ok(())
    }

    /// What is answered, and the calls in it; nothing if the request is too large.
    async fn ask(&mut self, input: UserInput) -> Result<Option<(String, Vec<String>)>, String> {
        self.played.requests += 1;
        let answer = self.session.ask(input).await;
        // The events of this request, and nothing to wait for.
        while let Some(Some(event)) =
            throughline::futures::FutureExt::now_or_never(self.events.next())
        {
            if let SessionEvent::Swap {
                held,
                waited_for_model,
            } = event
            {
                self.played.waits.push(held);
                self.played.waited_for_model += usize::from(!waited_for_model.is_zero());
            }
        }
        match answer {
            Ok(answer) => {
                let prompt = answer.reply.usage.map(|usage| usage.context_size().prompt);
                self.played.contexts.push(prompt);
                let calls = answer
                    .tool_calls()
                    .iter()
                    .map(|call| call.id.to_string())
                    .collect();
                Ok(Some((answer.text().to_owned(), calls)))
            }
            Err(SendError::TooLarge { .. }) => {
                self.played.refused += 1;
                self.played.contexts.push(None);
                Ok(None)
            }
            Err(SendError::Call(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn end(mut self) -> Result<PlayedSession, String> {
        self.session
            .close()
            .await
            .map_err(|error| error.to_string())?;
        let catalogue = Catalogue::embedded();
        let played = &mut self.played;
        for exchange in self.provider.ledger() {
            let Some(usage) = exchange.usage else {
                continue;
            };
            played.model_calls += 1;
            played.update_calls += usize::from(exchange.is_summary);
            played.largest_context = played.largest_context.max(usage.prompt());
            played.tokens.uncached += usage.uncached;
            played.tokens.cache_write += usage.cache_write;
            played.tokens.cache_read += usage.cache_read;
            played.tokens.output += usage.output;
            let prices = catalogue
                .find(MODEL)
                .and_then(|model| model.prices_at(usage.prompt()));
            if let Some(prices) = prices {
                let dollars = |tokens: u64, price: throughline::transcript::catalogue::Money| {
                    tokens as f64 * price.dollars() / 1e6
                };
                let cost = Classes {
                    uncached: dollars(usage.uncached, prices.input),
                    cache_write: dollars(usage.cache_write, prices.cache_write),
                    cache_read: dollars(usage.cache_read, prices.cache_read),
                    output: dollars(usage.output, prices.output),
                };
                played.cost.uncached += cost.uncached;
                played.cost.cache_write += cost.cache_write;
                played.cost.cache_read += cost.cache_read;
                played.cost.output += cost.output;
                if exchange.is_summary {
                    played.update_cost += cost.total();
                }
            }
        }
        played.took = self.provider.now();
        Ok(self.played)
    }
}
