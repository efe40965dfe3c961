//! The task that owns a session: it takes commands in turn, and does what the core needs from outside.

mod calls;
mod effects;
mod history;
mod storage;

use std::sync::Arc;
use std::time::{Duration, Instant as RealInstant};

use throughline_engine::Input;
use throughline_memory::document::Memory;
use throughline_providers::client::Client;
use throughline_store::{Change, Counts, Store, StoreError, Writer};
use throughline_transcript::catalogue::{Catalogue, Model};
use throughline_transcript::request::Frame;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::effects::FinishedJob;
use super::input::open_calls;
use super::turn::{PreparedTurn, ResentRequest};
use super::{Command, Responder, View};
use crate::clock::Clock;
use crate::compactor::Compactor;
use crate::core::{Basis, Core, Effects};
use crate::error::{SendError, SessionError};
use crate::event::SessionEvent;
use crate::folder::Folder;
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
    /// Where people read the session and edit its memory.
    pub(super) folder: Option<Folder>,
    /// A memory to begin with.
    pub(super) given: Option<Memory>,
    pub(super) result_bytes_max: usize,
    pub(super) counts: Counts,
    /// Cancelled when the last handle of the session is gone.
    pub(super) stop: CancellationToken,
    pub(super) traffic: Traffic,
}

pub(super) struct Actor {
    parts: Parts,
    core: Core,
    events: broadcast::Sender<SessionEvent>,
    view: watch::Sender<View>,
    /// What is stored with the next commit.
    changes: Vec<Change>,
    /// How many of them, from the first, the store may have taken although it could not say so.
    doubtful: Option<usize>,
    /// Background jobs.
    tasks: JoinSet<FinishedJob>,
    pending: Option<PendingRequest>,
    turn: Option<RunningTurn>,
    turns: u64,
    wait_until: Option<Instant>,
}

/// A turn that is under way.
struct RunningTurn {
    number: u64,
    cancel: CancellationToken,
}

/// The caller of a request.
enum Caller {
    First(Responder<Result<PreparedTurn, SendError>>, DropGuard),
    Again(Responder<Result<ResentRequest, SendError>>),
}

/// A request that a caller waits for.
struct PendingRequest {
    caller: Caller,
    since: Instant,
    since_real: RealInstant,
    has_swapped: bool,
    waited_for_model: Duration,
}

impl PendingRequest {
    fn is_forgotten(&self) -> bool {
        match &self.caller {
            Caller::First(caller, _) => caller.is_closed(),
            Caller::Again(caller) => caller.is_closed(),
        }
    }
}

impl Actor {
    pub(super) fn new(parts: Parts, core: Core, events: broadcast::Sender<SessionEvent>) -> Self {
        let view = watch::Sender::new(View::of(&core));
        Self {
            parts,
            core,
            events,
            view,
            changes: Vec::new(),
            doubtful: None,
            tasks: JoinSet::new(),
            pending: None,
            turn: None,
            turns: 0,
            wait_until: None,
        }
    }

    /// Tells the core what is known from the start.
    pub(super) async fn begin(&mut self) -> Result<(), StoreError> {
        let effects = self.tell_overhead();
        self.perform(effects).await;
        let Some(memory) = self.parts.given.take() else {
            return Ok(());
        };
        let (_, effects) = self.core.set_memory(self.parts.clock.now(), memory);
        self.perform(effects).await;
        self.flush().await
    }

    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        loop {
            let wait_until = self.wait_until;
            tokio::select! {
                command = inbox.recv() => match command {
                    Some(Command::Close(caller)) => {
                        self.stop_tasks().await;
                        let _ = caller.send(self.flush().await.map_err(SessionError::Store));
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
                Some(done) = self.tasks.join_next() => self.finished(done).await,
                () = sleep_until(wait_until) => {
                    self.wait_until = None;
                    self.handle(Input::WaitedEnough).await;
                }
            }
        }
    }

    /// What can be seen of the session from now on.
    pub(super) fn watch(&self) -> watch::Receiver<View> {
        self.view.subscribe()
    }

    /// Tells the core that something happened, and does what follows.
    async fn handle(&mut self, input: Input) {
        let effects = self.core.handle(self.parts.clock.now(), input);
        self.perform(effects).await;
    }

    async fn command(&mut self, command: Command) {
        let now = self.parts.clock.now();
        match command {
            Command::Send(input, caller) => self.send(input, caller).await,
            Command::SendAgain(number, again, caller) => {
                self.send_again(number, again, caller).await;
            }
            Command::AnswerBegun(number) => self.answer_begins(number).await,
            Command::Reply(number, reply, caller) => {
                let stored = self.reply(number, *reply).await;
                let _ = caller.send(stored);
            }
            Command::GaveUp(number) => {
                self.turn.take_if(|turn| turn.number == number);
            }
            Command::Compact(focus, by, swapping, caller) => {
                let effects = self.core.compact(now, focus, by, swapping, caller);
                self.perform(effects).await;
            }
            Command::Cancel => self.handle(Input::Cancel).await,
            Command::Preview(caller) => {
                let _ = caller.send(self.core.engine().preview());
            }
            Command::Undo(caller) => {
                let result = self.undo().await;
                let _ = caller.send(result);
            }
            Command::Pin(text, message, caller) => {
                let result = match self.core.pin(now, &text, message) {
                    Ok((id, effects)) => self.store(effects).await.map(|()| id),
                    Err(_) => Err(SessionError::NothingToPin),
                };
                let _ = caller.send(result);
            }
            Command::Unpin(id, caller) => {
                let effects = self.core.unpin(now, &id);
                let _ = caller.send(self.store(effects).await);
            }
            Command::Truncate(messages, caller) => {
                let result = self.truncate(messages).await;
                let _ = caller.send(result);
            }
            Command::Clear(caller) => {
                let result = self.clear().await;
                let _ = caller.send(result);
            }
            Command::Configure(change, caller) => {
                let mut effects = self.core.configure(now, change);
                effects.extend(self.tell_overhead());
                let _ = caller.send(self.store(effects).await);
            }
            Command::SetModel(model, caller) => {
                let result = self.set_model(*model).await;
                let _ = caller.send(result);
            }
            Command::SetMemory(memory, caller) => {
                let (fits, effects) = self.core.set_memory(now, *memory);
                let result = match self.store(effects).await {
                    Ok(()) if !fits => Err(SessionError::OtherHistory),
                    result => result,
                };
                let _ = caller.send(result);
            }
            Command::OpenCalls(caller) => {
                let _ = caller.send(open_calls(self.core.engine().tail()));
            }
            Command::PhaseEnded => self.handle(Input::PhaseEnded).await,
            Command::Close(caller) => {
                let _ = caller.send(Ok(()));
            }
        }
    }

    async fn set_model(&mut self, model: Model) -> Result<(), SessionError> {
        if self.is_busy() {
            return Err(SessionError::Busy);
        }
        let now = self.parts.clock.now();
        let mut frame = self.parts.frame.settings().clone();
        frame.model.clone_from(&model.id);
        let basis = Basis {
            wire: self.parts.frame.wire(),
            model: Some(&model),
            unknown_window: model.window,
            answer_tokens: frame.max_tokens,
        };
        let settings = basis.settings_after(self.core.engine().settings());
        self.parts.frame = Arc::new(Frame::new(self.parts.frame.wire(), frame));
        let mut effects = self.core.choose_model(now, model.id, settings);
        effects.extend(self.core.handle(now, Input::FrameChanged));
        effects.extend(self.tell_overhead());
        self.core.set_head(self.parts.frame.head());
        self.store(effects).await
    }

    fn tell_overhead(&mut self) -> Effects {
        let counter = self.core.engine().settings().counter;
        let settings = self.parts.frame.settings();
        let tools = settings
            .tools
            .as_ref()
            .map_or(0, |tools| counter.tools(tools));
        let tokens = (counter.text(&settings.system) + tools) as u64;
        let bytes = self.parts.frame.head().len() as u64;
        self.core
            .handle(self.parts.clock.now(), Input::Overhead { tokens, bytes })
    }

    async fn stop_tasks(&mut self) {
        self.core.stop();
        self.tasks.shutdown().await;
        self.wait_until = None;
    }

    /// Whether a turn is running. One without a caller is not.
    fn is_busy(&mut self) -> bool {
        let is_gone = |turn: &mut RunningTurn| turn.cancel.is_cancelled();
        if self.turn.take_if(is_gone).is_some() {
            self.pending = None;
        }
        if self
            .pending
            .as_ref()
            .is_some_and(PendingRequest::is_forgotten)
        {
            self.turn = None;
            self.pending = None;
        }
        self.turn.is_some()
    }
}

async fn sleep_until(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
