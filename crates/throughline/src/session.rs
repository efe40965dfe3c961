//! A conversation that continues past its context window.

mod actor;
mod builder;
mod input;
mod turn;

use std::ops::Range;
use std::sync::Arc;

use futures_util::Stream;
use throughline_engine::{
    CompactionOutcome, CompactionSettings, Pin, Preview, Requester, SessionStatus, SwapTiming,
    Version,
};
use throughline_memory::document::Memory;
use throughline_providers::client::Client;
use throughline_store::{Hit, Scope, SessionId, Shelf, Store, StoredMessage};
use throughline_transcript::catalogue::Model;
use throughline_transcript::json::Raw;
use throughline_transcript::message::ToolCall;
use throughline_transcript::request::message::ToolOutput;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::builder::SessionBuilder;
pub use self::turn::{Turn, TurnAnswer, TurnEvent};
use crate::core::{self, Core, Heritage};
use crate::costs::Costs;
use crate::error::{SendError, SessionError};
use crate::event::SessionEvent;

/// One conversation. Clones are handles to the same one.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

struct Shared {
    id: SessionId,
    store: Arc<dyn Store>,
    commands: mpsc::Sender<Command>,
    events: broadcast::Sender<SessionEvent>,
    status: watch::Receiver<View>,
    tasks: TaskTracker,
    stop: CancellationToken,
    result_bytes_max: usize,
}

/// What can be seen of a session without asking it.
#[derive(Clone, Debug)]
pub(crate) struct View {
    status: SessionStatus,
    memory: Option<Arc<Version>>,
    costs: Costs,
    pins: Vec<Pin>,
    cleared_versions: u64,
}

impl View {
    fn of(core: &Core) -> Self {
        let engine = core.engine();
        Self {
            status: engine.status(),
            memory: engine.memory().cloned(),
            costs: core.costs().clone(),
            pins: engine.pins().to_vec(),
            cleared_versions: core.row().cleared_versions,
        }
    }
}

/// What a user says, or what tools returned.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum UserInput {
    /// Words.
    Text(String),
    /// Results of all calls that are open, and what the user says to that, if anything.
    ToolOutputs {
        /// The results.
        outputs: Vec<ToolOutput>,
        /// Words after them.
        text: Option<String>,
    },
    /// Messages in the wire's form, as they are: images, documents, whatever the provider takes.
    Messages(Vec<Raw>),
    /// Nothing new: the last message, which has no answer, is sent again ([`Session::retry`]).
    Again,
}

/// What to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSearch {
    /// Words.
    pub text: String,
    /// Whether to look in all sessions of the store.
    pub in_all_sessions: bool,
    /// The most hits.
    pub limit: u32,
}

pub(crate) type Responder<T> = oneshot::Sender<T>;

/// What the session is asked to do.
pub(crate) enum Command {
    Send(UserInput, Responder<Result<turn::PreparedTurn, SendError>>),
    SendAgain(
        u64,
        turn::Again,
        Responder<Result<turn::ResentRequest, SendError>>,
    ),
    AnswerBegun(u64),
    Reply(
        u64,
        Box<throughline_providers::reply::Reply>,
        Responder<Result<(), SendError>>,
    ),
    GaveUp(u64),
    Compact(
        Option<String>,
        Requester,
        SwapTiming,
        Responder<CompactionOutcome>,
    ),
    Cancel,
    Preview(Responder<Option<Preview>>),
    Undo(Responder<Result<(), SessionError>>),
    Pin(
        String,
        Option<usize>,
        Responder<Result<String, SessionError>>,
    ),
    Unpin(String, Responder<Result<(), SessionError>>),
    Truncate(usize, Responder<Result<(), SessionError>>),
    Clear(Responder<Result<(), SessionError>>),
    Configure(
        Box<dyn FnOnce(&mut CompactionSettings) + Send>,
        Responder<Result<(), SessionError>>,
    ),
    SetModel(Box<Model>, Responder<Result<(), SessionError>>),
    SetMemory(Box<Memory>, Responder<Result<(), SessionError>>),
    PhaseEnded,
    OpenCalls(Responder<Vec<ToolCall>>),
    Close(Responder<Result<(), SessionError>>),
}

impl Session {
    /// A session with a model. See [`SessionBuilder`] for what can be set.
    pub fn builder(client: Client, model: impl Into<String>) -> SessionBuilder {
        SessionBuilder::new(client, model.into())
    }

    /// The session's id in the store.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.shared.id
    }

    /// Says something and gives the model's answer as it comes. The message is stored before it is sent, and the answer
    /// before its [`TurnEvent::Done`]. Dropping the turn cancels the answer.
    ///
    /// # Errors
    /// If nothing was sent.
    pub async fn send(&self, input: impl Into<UserInput>) -> Result<Turn, SendError> {
        let (sender, receiver) = oneshot::channel();
        self.command(Command::Send(input.into(), sender))
            .await
            .map_err(|_| SendError::Closed)?;
        let prepared = receiver.await.map_err(|_| SendError::Closed)??;
        Ok(Turn::start(self, prepared))
    }

    /// As [`Session::send`], and waits for the whole answer.
    ///
    /// # Errors
    /// If nothing was sent, or the answer was cut off.
    pub async fn ask(&self, input: impl Into<UserInput>) -> Result<TurnAnswer, SendError> {
        self.send(input).await?.answer().await
    }

    /// Asks again for an answer to the last message: after a call that failed, or an answer that was cancelled.
    ///
    /// # Errors
    /// [`SendError::Empty`] if it is answered already, and as [`Session::send`].
    pub async fn retry(&self) -> Result<Turn, SendError> {
        self.send(UserInput::Again).await
    }

    /// What happens from now on. A watcher that is slow misses the oldest events.
    pub fn events(&self) -> impl Stream<Item = SessionEvent> + Send + use<> {
        let receiver = self.shared.events.subscribe();
        futures_util::stream::unfold(receiver, |mut receiver| async move {
            loop {
                match receiver.recv().await {
                    Ok(event) => return Some((event, receiver)),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        })
    }

    /// The state of the session.
    #[must_use]
    pub fn status(&self) -> SessionStatus {
        self.shared.status.borrow().status.clone()
    }

    /// The memory that requests are made with.
    #[must_use]
    pub fn memory(&self) -> Option<Arc<Version>> {
        self.shared.status.borrow().memory.clone()
    }

    /// What the session has cost, and what it would have.
    #[must_use]
    pub fn costs(&self) -> Costs {
        self.shared.status.borrow().costs.clone()
    }

    /// Facts that are pinned.
    #[must_use]
    pub fn pins(&self) -> Vec<Pin> {
        self.shared.status.borrow().pins.clone()
    }

    /// Compacts now: makes a memory about `focus` and swaps it in. Other requests can go on meanwhile.
    ///
    /// # Errors
    /// If the session is closed.
    pub async fn compact(&self, focus: Option<&str>) -> Result<CompactionOutcome, SessionError> {
        self.compaction(focus, Requester::User, SwapTiming::AtOnce)
            .await
    }

    /// Like [`Session::compact`], on behalf of the model (through a tool) or of the program. Events say whose.
    ///
    /// # Errors
    /// If the session is closed.
    pub async fn compact_by(
        &self,
        by: Requester,
        focus: Option<&str>,
    ) -> Result<CompactionOutcome, SessionError> {
        self.compaction(focus, by, SwapTiming::AtOnce).await
    }

    /// Makes a memory and shows what a swap to it would do. [`Session::compact`] would swap.
    ///
    /// # Errors
    /// If the session is closed.
    pub async fn preview(&self, focus: Option<&str>) -> Result<Option<Preview>, SessionError> {
        self.compaction(focus, Requester::User, SwapTiming::Preview)
            .await?;
        self.asking(Command::Preview).await
    }

    async fn compaction(
        &self,
        focus: Option<&str>,
        by: Requester,
        swapping: SwapTiming,
    ) -> Result<CompactionOutcome, SessionError> {
        let focus = focus.map(str::to_owned);
        self.asking(|caller| Command::Compact(focus, by, swapping, caller))
            .await
    }

    /// Gives up what is being built.
    ///
    /// # Errors
    /// If the session is closed.
    pub async fn cancel_compaction(&self) -> Result<(), SessionError> {
        self.command(Command::Cancel).await
    }

    /// Takes the last swap back; called again, the one before it.
    ///
    /// # Errors
    /// If there is none, or it cannot be stored.
    pub async fn undo(&self) -> Result<(), SessionError> {
        self.asking(Command::Undo).await?
    }

    /// Keeps a fact in the ledger of every memory from now on, without its secrets. Returns its id.
    ///
    /// # Errors
    /// If there is nothing in it, or it cannot be stored.
    pub async fn pin(&self, text: &str) -> Result<String, SessionError> {
        let text = text.to_owned();
        self.asking(|caller| Command::Pin(text, None, caller))
            .await?
    }

    /// Keeps what a message says in the ledger of every memory from now on. Returns the id of the pin.
    ///
    /// # Errors
    /// If there is no such message, it has no text, or it cannot be stored.
    pub async fn pin_message(&self, index: usize) -> Result<String, SessionError> {
        let text = core::text_of(&self.message_at(index).await?.original);
        self.asking(|caller| Command::Pin(text, Some(index), caller))
            .await?
    }

    /// Lets a pinned fact go.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub async fn unpin(&self, id: &str) -> Result<(), SessionError> {
        let id = id.to_owned();
        self.asking(|sender| Command::Unpin(id, sender)).await?
    }

    /// Cuts the conversation back to its first `messages`: to edit the last message, or to try another way. What is cut
    /// off stays in the archive.
    ///
    /// # Errors
    /// If the session has fewer messages, a request is under way, or it cannot be stored.
    pub async fn truncate(&self, messages: usize) -> Result<(), SessionError> {
        self.asking(|sender| Command::Truncate(messages, sender))
            .await?
    }

    /// Starts over, without messages and memory. The old messages stay in the archive.
    ///
    /// # Errors
    /// If a request is under way, or it cannot be stored.
    pub async fn clear(&self) -> Result<(), SessionError> {
        self.asking(Command::Clear).await?
    }

    /// Changes the settings while the session runs. What is changed here is stored and outlives a restart, whatever the
    /// builder says then.
    ///
    /// # Errors
    /// If the session is closed, or it cannot be stored; the change holds nevertheless.
    pub async fn configure(
        &self,
        change: impl FnOnce(&mut CompactionSettings) + Send + 'static,
    ) -> Result<(), SessionError> {
        self.asking(|sender| Command::Configure(Box::new(change), sender))
            .await?
    }

    /// Goes on with another model of the same provider. If its window is smaller, the next request is compacted to fit.
    ///
    /// # Errors
    /// If a request is under way, or it cannot be stored.
    pub async fn set_model(&self, model: &Model) -> Result<(), SessionError> {
        let model = Box::new(model.clone());
        self.asking(|sender| Command::SetModel(model, sender))
            .await?
    }

    /// Swaps in a memory that was edited by hand: it has to cover messages of this session.
    ///
    /// # Errors
    /// If it does not, or cannot be stored.
    pub async fn set_memory(&self, memory: Memory) -> Result<(), SessionError> {
        self.asking(|sender| Command::SetMemory(Box::new(memory), sender))
            .await?
    }

    /// Says that a phase of the work has ended: a good moment for a swap.
    ///
    /// # Errors
    /// If the session is closed.
    pub async fn phase_ended(&self) -> Result<(), SessionError> {
        self.command(Command::PhaseEnded).await
    }

    /// The message at this index, which counts from 0, as it was received, covered or not. Message 7 of a memory, a
    /// search or the `recall` tool, which count from 1, is at index 6.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub async fn message_at(&self, index: usize) -> Result<StoredMessage, SessionError> {
        self.shared
            .store
            .message(&self.shared.id, index as u64)
            .await
            .map_err(|error| match error {
                throughline_store::StoreError::MessageNotFound { .. } => {
                    SessionError::NoSuchMessage {
                        asked: index,
                        messages: self.status().messages,
                    }
                }
                error => SessionError::Store(error),
            })
    }

    /// [`Session::message_at`], under its earlier name.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    #[deprecated(note = "renamed to `message_at`: the index counts from 0")]
    pub async fn message(&self, index: usize) -> Result<StoredMessage, SessionError> {
        self.message_at(index).await
    }

    /// Messages as they were received, covered or not: those at these places, if they exist.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn messages(&self, range: Range<usize>) -> Result<Vec<StoredMessage>, SessionError> {
        let range = range.start as u64..range.end as u64;
        Ok(self.shared.store.messages(&self.shared.id, range).await?)
    }

    /// Calls of tools that wait for their results: those of the last answer, also after a restart.
    ///
    /// # Errors
    /// If the session is closed.
    pub async fn open_calls(&self) -> Result<Vec<ToolCall>, SessionError> {
        self.asking(Command::OpenCalls).await
    }

    /// Looks for words in all messages and memories.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn search(&self, search: &SessionSearch) -> Result<Vec<Hit>, SessionError> {
        let search = throughline_store::Search {
            text: search.text.clone(),
            scope: if search.in_all_sessions {
                Scope::All
            } else {
                Scope::Session(self.shared.id.clone())
            },
            shelf: Shelf::Both,
            limit: search.limit,
        };
        Ok(self.shared.store.search(&search).await?)
    }

    /// A new session that begins with the first `messages` of this one, stored as its fork, and with what was pinned by
    /// then. The builder sets its client, model, system prompt and settings.
    ///
    /// # Errors
    /// If the session has fewer messages, or it cannot be stored.
    pub async fn fork(
        &self,
        messages: usize,
        builder: SessionBuilder,
    ) -> Result<Self, SessionError> {
        let known = self.status().messages;
        if messages > known {
            return Err(SessionError::NoSuchMessage {
                asked: messages,
                messages: known,
            });
        }
        let parent = {
            let view = self.shared.status.borrow();
            builder::Parent {
                id: self.shared.id.clone(),
                messages,
                pins: Heritage::pins(&view.pins, messages),
                cleared_versions: view.cleared_versions,
            }
        };
        Ok(builder
            .store(Arc::clone(&self.shared.store))
            .fork_of(parent)
            .await?)
    }

    /// Ends the session: cancels what runs, stores what is to be stored, lets others open it.
    ///
    /// # Errors
    /// If the last changes cannot be stored.
    pub async fn close(&self) -> Result<(), SessionError> {
        let ended = match self.asking(Command::Close).await {
            Ok(result) => result,
            Err(SessionError::Closed) => Ok(()),
            Err(error) => Err(error),
        };
        self.shared.stop.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        ended
    }

    /// From which length a result of a tool goes into requests shortened, bytes.
    pub(crate) fn result_bytes_max(&self) -> usize {
        self.shared.result_bytes_max
    }

    async fn command(&self, command: Command) -> Result<(), SessionError> {
        self.shared
            .commands
            .send(command)
            .await
            .map_err(|_| SessionError::Closed)
    }

    async fn asking<T>(
        &self,
        command: impl FnOnce(Responder<T>) -> Command,
    ) -> Result<T, SessionError> {
        let (sender, receiver) = oneshot::channel();
        self.command(command(sender)).await?;
        receiver.await.map_err(|_| SessionError::Closed)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // No handle is left: the actor ends, and turns are cancelled.
        self.stop.cancel();
        self.tasks.close();
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.shared.id)
            .finish_non_exhaustive()
    }
}

impl From<&str> for UserInput {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for UserInput {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<ToolOutput>> for UserInput {
    fn from(outputs: Vec<ToolOutput>) -> Self {
        Self::ToolOutputs {
            outputs,
            text: None,
        }
    }
}
