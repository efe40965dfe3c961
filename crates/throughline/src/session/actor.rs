//! The one task that owns a session: it takes commands in turn, does what the engine says, and feeds the answers back.

mod calls;
mod effects;
mod history;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant as RealInstant};

use throughline_engine::{
    AwaitedBuild, Compaction, CompactionOutcome, CompactionSettings, Economy, Engine, Input,
    Output, Ticket, UpdateFailure,
};
use throughline_memory::document::Memory;
use throughline_providers::client::Client;
use throughline_store::{Change, Counts, Store, StoreError, Writer};
use throughline_transcript::catalogue::{Catalogue, Model};
use throughline_transcript::digest::Chain;
use throughline_transcript::request::Frame;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::effects::Finished;
use super::kept::{Compared, Kept, KeptAdoption, KeptPin};
use super::stored;
use super::turn::{Prepared, PreparedAgain};
use super::{Answered, Command, Shown};
use crate::clock::Clock;
use crate::compactor::Compactor;
use crate::costs::Costs;
use crate::error::{SendError, SessionError};
use crate::event::SessionEvent;
use crate::hooks::Hooks;
use crate::traffic::Traffic;

/// What a session is made of.
pub(super) struct Parts {
    pub(super) client: Client,
    pub(super) frame: Arc<Frame>,
    pub(super) writer: Box<dyn Writer>,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Clock,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) compactor: Option<Arc<dyn Compactor>>,
    pub(super) hooks: Option<Arc<dyn Hooks>>,
    /// A memory to begin with.
    pub(super) given: Option<Memory>,
    pub(super) result_bytes_max: usize,
    pub(super) counts: Counts,
    pub(super) kept: Kept,
    pub(super) costs: Costs,
    /// Cancelled when nobody holds the session any more.
    pub(super) stop: CancellationToken,
    pub(super) traffic: Traffic,
}

pub(super) struct Actor {
    parts: Parts,
    engine: Engine,
    events: broadcast::Sender<SessionEvent>,
    shown: watch::Sender<Shown>,
    /// What is to be stored with the next commit.
    changes: Vec<Change>,
    /// How many of them, from the first, the store may have taken although it could not say so.
    doubtful: Option<usize>,
    /// What runs beside the session.
    tasks: JoinSet<Finished>,
    running: HashMap<tokio::task::Id, (Ticket, Building)>,
    updates: HashMap<Ticket, CancellationToken>,
    asked: HashMap<u64, Answered<CompactionOutcome>>,
    pending: Option<Pending>,
    sending: Option<Sending>,
    turns: u64,
    wait_until: Option<(AwaitedBuild, Instant)>,
    costs: Costs,
    /// Tokens that swaps have taken out of the requests.
    removed_tokens: u64,
    /// What requests are made with.
    present: KeptAdoption,
}

/// Who makes a memory.
#[derive(Clone, Copy, Debug)]
enum Building {
    Draft,
    Model,
}

/// A turn that is under way.
struct Sending {
    number: u64,
    cancel: CancellationToken,
}

/// Who wants a request.
enum Wanted {
    First(Answered<Result<Prepared, SendError>>, DropGuard),
    Again(Answered<Result<PreparedAgain, SendError>>),
}

/// A request that is wanted.
struct Pending {
    wanted: Wanted,
    since: Instant,
    since_real: RealInstant,
    swapped: bool,
    waited_for_model: Duration,
}

impl Pending {
    fn is_forgotten(&self) -> bool {
        match &self.wanted {
            Wanted::First(answer, _) => answer.is_closed(),
            Wanted::Again(answer) => answer.is_closed(),
        }
    }
}

impl Actor {
    pub(super) fn new(
        parts: Parts,
        engine: Engine,
        events: broadcast::Sender<SessionEvent>,
    ) -> Self {
        let compared = parts.kept.compared;
        let present = KeptAdoption {
            version: engine.memory().map(|version| version.memory.version),
            ..KeptAdoption::default()
        };
        let costs = Costs {
            without_compaction: compared.without(),
            ..parts.costs.clone()
        };
        let shown = seen(&engine, &costs, &parts.kept);
        Self {
            parts,
            engine,
            events,
            shown: watch::Sender::new(shown),
            changes: Vec::new(),
            doubtful: None,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            updates: HashMap::new(),
            asked: HashMap::new(),
            pending: None,
            sending: None,
            turns: 0,
            wait_until: None,
            costs,
            removed_tokens: compared.removed_tokens,
            present,
        }
    }

    /// What is known from the start.
    pub(super) async fn begin(&mut self) -> Result<(), StoreError> {
        self.tell_overhead();
        let Some(memory) = self.parts.given.take() else {
            self.drain().await;
            return Ok(());
        };
        self.handle(Input::Given(Box::new(memory)));
        self.drain().await;
        self.flush().await
    }

    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        loop {
            let wait_until = self.wait_until.map(|(_, until)| until);
            tokio::select! {
                command = inbox.recv() => match command {
                    Some(Command::Close(answer)) => {
                        self.stop_tasks().await;
                        let _ = answer.send(self.flush().await.map_err(SessionError::Store));
                        break;
                    }
                    Some(command) => self.command(command).await,
                    None => {
                        self.stop_tasks().await;
                        if let Err(error) = self.flush().await {
                            tracing::warn!(%error, "the last changes of a session could not be stored");
                        }
                        break;
                    }
                },
                Some(done) = self.tasks.join_next_with_id() => self.finished(done),
                () = sleep_until(wait_until) => {
                    self.wait_until = None;
                    self.handle(Input::WaitedEnough);
                }
            }
            self.drain().await;
        }
    }

    /// What can be seen of the session from now on.
    pub(super) fn watch(&self) -> watch::Receiver<Shown> {
        self.shown.subscribe()
    }

    /// Shows where the session stands. Whoever is answered sees what has become of what was asked for.
    fn show(&self) {
        self.shown
            .send_replace(seen(&self.engine, &self.costs, &self.parts.kept));
    }

    fn handle(&mut self, input: Input) {
        self.engine.handle(self.parts.clock.now(), input);
    }

    async fn command(&mut self, command: Command) {
        match command {
            Command::Send(input, answer) => self.send(input, answer).await,
            Command::SendAgain(number, again, answer) => {
                self.send_again(number, again, answer).await;
            }
            Command::AnswerBegun(number) => self.answer_begins(number),
            Command::Reply(number, reply, answer) => {
                let stored = self.reply(number, *reply).await;
                let _ = answer.send(stored);
            }
            Command::GaveUp(number) => {
                self.sending.take_if(|sending| sending.number == number);
            }
            Command::Compact(compaction, answer) => self.compact(compaction, answer),
            Command::Cancel => self.handle(Input::Cancel),
            Command::Preview(answer) => {
                let _ = answer.send(self.engine.preview());
            }
            Command::Undo(answer) => {
                let result = self.undo().await;
                let _ = answer.send(result);
            }
            Command::Pin(pin, answer) => {
                self.handle(Input::Pin(pin));
                let _ = answer.send(self.keep().await);
            }
            Command::Unpin(id, answer) => {
                self.handle(Input::Unpin { id });
                let _ = answer.send(self.keep().await);
            }
            Command::Truncate(messages, answer) => {
                let result = self.truncate(messages).await;
                let _ = answer.send(result);
            }
            Command::Clear(answer) => {
                let result = self.clear().await;
                let _ = answer.send(result);
            }
            Command::Configure(change, answer) => {
                let before = self.engine.settings().clone();
                let mut settings = before.clone();
                change(&mut settings);
                self.parts.kept.change(&before, &settings);
                self.handle(Input::Configured(Box::new(settings)));
                self.tell_overhead();
                let _ = answer.send(self.keep().await);
            }
            Command::SetModel(model, answer) => {
                let result = self.set_model(*model).await;
                let _ = answer.send(result);
            }
            Command::SetMemory(memory, answer) => {
                let epoch = self.engine.status().epoch;
                self.handle(Input::Given(memory));
                let is_taken = self.engine.status().epoch != epoch;
                self.drain().await;
                let result = if is_taken {
                    self.flush().await.map_err(SessionError::Store)
                } else {
                    Err(SessionError::OtherHistory)
                };
                let _ = answer.send(result);
            }
            Command::OpenCalls(answer) => {
                let _ = answer.send(stored::open_calls(self.engine.tail()));
            }
            Command::PhaseEnded => self.handle(Input::PhaseEnded),
            Command::Close(answer) => {
                let _ = answer.send(Ok(()));
            }
        }
    }

    fn compact(&mut self, compaction: Compaction, answer: Answered<CompactionOutcome>) {
        self.asked.insert(compaction.id, answer);
        self.handle(Input::Compact(compaction));
    }

    async fn set_model(&mut self, model: Model) -> Result<(), SessionError> {
        if self.is_busy() {
            return Err(SessionError::Busy);
        }
        let mut frame = self.parts.frame.settings().clone();
        frame.model.clone_from(&model.id);
        self.parts.frame = Arc::new(Frame::new(self.parts.frame.wire(), frame));
        let old = self.engine.settings();
        let of_model = CompactionSettings::for_model(&model);
        let settings = CompactionSettings {
            window: of_model.window,
            output_reserve: of_model
                .output_reserve
                .max(old.output_reserve.min(of_model.window / 2)),
            counter: of_model.counter,
            binds_thinking: of_model.binds_thinking,
            economy: Economy {
                rule: old.economy.rule,
                spending: old.economy.spending,
                ..of_model.economy
            },
            memory_tokens_max: of_model.memory_tokens_max,
            ..old.clone()
        };
        self.parts.kept.change_model(&settings);
        self.handle(Input::Configured(Box::new(settings)));
        self.handle(Input::FrameChanged);
        self.tell_overhead();
        self.changes.push(Change::Model(model.id));
        self.changes
            .push(Change::Head(self.parts.frame.head().into_bytes().into()));
        self.keep().await
    }

    fn tell_overhead(&mut self) {
        let counter = self.engine.settings().counter;
        let settings = self.parts.frame.settings();
        let tools = settings
            .tools
            .as_ref()
            .map_or(0, |tools| counter.tools(tools));
        let tokens = (counter.text(&settings.system) + tools) as u64;
        let bytes = self.parts.frame.head().len() as u64;
        self.handle(Input::Overhead { tokens, bytes });
    }

    /// Stores pins and settings as they are now, and everything that waits. If that fails it is tried again with the next
    /// change.
    async fn keep(&mut self) -> Result<(), SessionError> {
        self.drain().await;
        self.push_kept();
        Ok(self.flush().await?)
    }

    fn push_kept(&mut self) {
        let kept = &mut self.parts.kept;
        kept.pins = self.engine.pins().iter().map(KeptPin::from).collect();
        kept.compared = Compared::of(&self.costs.without_compaction, self.removed_tokens);
        // Names and numbers only: this cannot fail.
        let json = serde_json::to_string(kept).unwrap_or_default();
        self.changes.push(Change::Settings(json));
    }

    /// Stores everything that waits, and this. If that fails, this is forgotten.
    async fn commit_with(&mut self, change: Change) -> Result<(), StoreError> {
        self.changes.push(change);
        let result = self.flush().await;
        if result.is_err() {
            self.changes.pop();
        }
        result
    }

    /// Stores everything that waits.
    async fn flush(&mut self) -> Result<(), StoreError> {
        self.settle_doubt().await?;
        if self.changes.is_empty() {
            return Ok(());
        }
        let at = self.parts.clock.now().ms();
        match self.parts.writer.commit(at, self.changes.clone()).await {
            Ok(counts) => {
                self.changes.clear();
                self.parts.counts = counts;
                Ok(())
            }
            Err(error) => {
                if matches!(error, StoreError::Unavailable { .. }) {
                    self.doubtful = Some(self.changes.len());
                }
                Err(error)
            }
        }
    }

    /// Finds out whether the store has taken what it could not say that it has.
    async fn settle_doubt(&mut self) -> Result<(), StoreError> {
        let Some(doubtful) = self.doubtful else {
            return Ok(());
        };
        let counts = self.parts.writer.load().await?.counts;
        self.doubtful = None;
        if counts == self.parts.counts {
            return Ok(());
        }
        self.parts.counts = counts;
        self.changes.drain(..doubtful.min(self.changes.len()));
        let known = self
            .changes
            .iter()
            .find_map(|change| match change {
                Change::Append { expected_count, .. } => Some(*expected_count),
                _ => None,
            })
            .unwrap_or(self.engine.messages() as u64);
        if counts.message_count > known {
            // The caller was told that this message is not stored.
            self.changes.insert(0, Change::Truncate { to_count: known });
        }
        Ok(())
    }

    /// The digest that the next message is added behind.
    fn chain(&self) -> Chain {
        Chain::at(self.engine.digest())
    }

    async fn stop_tasks(&mut self) {
        for (_, stop) in self.updates.drain() {
            stop.cancel();
        }
        self.tasks.shutdown().await;
        self.running.clear();
        self.wait_until = None;
    }

    /// Does everything that the engine says.
    async fn drain(&mut self) {
        loop {
            self.show();
            let Some(output) = self.engine.poll() else {
                break;
            };
            self.output(output).await;
        }
    }

    async fn output(&mut self, output: Output) {
        match output {
            Output::Draft(order) => self.start_draft(order),
            Output::Update(order) => self.start_update(order),
            Output::CancelUpdate(ticket) => {
                if let Some(stop) = self.updates.remove(&ticket) {
                    stop.cancel();
                }
            }
            Output::Request(plan) => self.request(plan).await,
            Output::Wait { waited, at_most_ms } => {
                let until = Instant::now() + Duration::from_millis(at_most_ms);
                self.wait_until = Some((waited, until));
            }
            Output::Keep(version) => {
                let at = self.parts.clock.now();
                self.changes.push(stored::memory_change(&version, at));
            }
            Output::Adopt(adoption) => {
                let at = self.parts.clock.now();
                let expected = self.expected_epoch();
                self.changes
                    .push(stored::adoption_change(&adoption, expected, at));
                let next = KeptAdoption {
                    version: adoption.version,
                    quoted: adoption.quoted,
                    removed_tokens: 0,
                };
                self.parts.kept.adopted(self.present, next);
                self.present = next;
                self.push_kept();
            }
            // Truncation behind the memory is dealt with where it was asked for.
            Output::Reload { .. } => {}
            Output::Event(event) => self.event(event).await,
        }
    }

    /// The epoch that the store will have when everything that waits is stored.
    fn expected_epoch(&self) -> u64 {
        self.changes
            .iter()
            .rev()
            .find_map(|change| match change {
                Change::Adopt { adoption, .. } => Some(adoption.epoch),
                _ => None,
            })
            .unwrap_or(self.parts.counts.epoch)
    }

    /// The newest memory version that the store will have when everything that waits is stored.
    fn expected_version(&self) -> u64 {
        self.changes
            .iter()
            .rev()
            .find_map(|change| match change {
                Change::Memory(row) => Some(row.version),
                _ => None,
            })
            .unwrap_or(self.parts.counts.memory_version)
    }

    /// Whether a turn is under way. One whose caller is gone is not.
    fn is_busy(&mut self) -> bool {
        let is_gone = |sending: &mut Sending| sending.cancel.is_cancelled();
        if self.sending.take_if(is_gone).is_some() {
            self.pending = None;
        }
        if self.pending.as_ref().is_some_and(Pending::is_forgotten) {
            self.sending = None;
            self.pending = None;
        }
        self.sending.is_some()
    }

    fn failed_task(&mut self, id: tokio::task::Id) {
        let Some((ticket, building)) = self.running.remove(&id) else {
            return;
        };
        let failure = UpdateFailure {
            class: "internal".to_owned(),
            message: "making the memory failed inside; please report this".to_owned(),
            retry_after_ms: None,
        };
        self.handle(match building {
            Building::Draft => Input::Drafted {
                ticket,
                result: Err(failure),
            },
            Building::Model => Input::Updated {
                ticket,
                result: Err(failure),
            },
        });
    }
}

fn seen(engine: &Engine, costs: &Costs, kept: &Kept) -> Shown {
    Shown {
        status: engine.status(),
        memory: engine.memory().cloned(),
        costs: costs.clone(),
        pins: engine.pins().to_vec(),
        cleared_versions: kept.cleared_versions,
    }
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
