//! A session as a chat has it: begun with the first message, gone on with, forked.

use std::pin::Pin;
use std::sync::Arc;

use throughline::agent::builtin::Root;
use throughline::agent::{Agent, AgentBuilder, AllowAll, Tools};
use throughline::futures::{FutureExt, Stream, StreamExt};
use throughline::store::{SessionInfo, Store};
use throughline::transcript::formats::request::read_message;
use throughline::transcript::json::Raw;
use throughline::transcript::message::{Message, Role};
use throughline::transcript::wire::Wire;
use throughline::{ModelCompactor, OpenError, Session, SessionError, SessionEvent};

use super::approvals::{Absent, Person};
use crate::arguments::chat::Chat;
use crate::config::Config;
use crate::connect::{Connection, connect};
use crate::error::{Failure, Kind, chain};
use crate::output::Console;
use crate::{input, storage, words};

/// Characters of a title.
const TITLE_MAX: usize = 60;
/// Rows that are read at once.
const ROWS: usize = 500;
/// The longest answer where the window is large, tokens.
const ANSWER_TOKENS_MAX: u64 = 16_000;

/// The model that makes memories where none does.
const CODE_ALONE: &str = "none";

type Events = Pin<Box<dyn Stream<Item = SessionEvent> + Send>>;

/// What is said, and with whom.
pub(crate) struct Talk<'a> {
    arguments: &'a Chat,
    pub(crate) config: &'a Config,
    console: Console,
    pub(crate) connection: Connection,
    store: Arc<dyn Store>,
    /// Nobody is asked whether calls may be run.
    is_unattended: bool,
    open: Option<Open>,
}

/// A session that has begun.
struct Open {
    agent: Agent,
    events: Events,
}

impl<'a> Talk<'a> {
    /// Opens the store and the connection, and the session that is to be gone on with, if one is.
    pub(crate) async fn begin(
        arguments: &'a Chat,
        config: &'a Config,
        console: &Console,
        is_unattended: bool,
    ) -> Result<Self, Failure> {
        let store = storage::open(config).await?;
        let known = known(arguments, store.as_ref()).await?;
        let mut wanted = arguments.wanted.clone();
        let mut other_model = None;
        if let Some(known) = &known {
            other_model = wanted.model.take().filter(|model| *model != known.model);
            wanted.model = Some(other_model.clone().unwrap_or_else(|| known.model.clone()));
            wanted.wire = wanted.wire.or_else(|| known.wire.parse().ok());
        }
        let connection = connect(&wanted, config).await?;
        let mut talk = Self {
            arguments,
            config,
            console: console.clone(),
            connection,
            store,
            is_unattended,
            open: None,
        };
        if let Some(known) = known {
            let agent = talk.builder("")?.resume(&known.id).await;
            talk.open(agent.map_err(of_open)?);
            if let Some(model) = other_model {
                talk.set_model(&model).await?;
            }
        }
        Ok(talk)
    }

    /// Goes on with another model of the same provider.
    pub(crate) async fn set_model(&mut self, name: &str) -> Result<(), Failure> {
        let model = self
            .connection
            .catalogue
            .find(name)
            .cloned()
            .ok_or_else(|| {
                Failure::new(Kind::Arguments, format!("{name} is not known"))
                    .hint("`throughline models` lists the known ones")
            })?;
        let is_anthropic = self.connection.client.wire() == Wire::Anthropic;
        if is_anthropic != (model.provider == "anthropic") {
            return Err(Failure::new(
                Kind::Arguments,
                format!("{} is not a model of this provider", model.id),
            )
            .hint(format!(
                "a new chat can have it: throughline chat --model {}",
                model.id
            )));
        }
        if let Some(session) = self.session() {
            session.set_model(&model).await.map_err(of_session)?;
        }
        self.connection.model = name.to_owned();
        Ok(())
    }

    /// The session, if one has begun.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.open.as_ref().map(|open| open.agent.session())
    }

    /// The session and its agent. One begins with the first words that are said, so that nobody has empty sessions.
    pub(crate) async fn agent(&mut self, first: &str) -> Result<Agent, Failure> {
        if self.open.is_none() {
            let agent = self.builder(first)?.start().await;
            self.open(agent.map_err(of_open)?);
        }
        match &self.open {
            Some(open) => Ok(open.agent.clone()),
            None => Err(Failure::new(Kind::Bug, "no session was opened")),
        }
    }

    fn open(&mut self, agent: Agent) {
        let events = Box::pin(agent.session().events());
        self.open = Some(Open { agent, events });
    }

    /// The next thing that happens beside the conversation.
    pub(crate) async fn event(&mut self) -> SessionEvent {
        if let Some(open) = &mut self.open
            && let Some(event) = open.events.next().await
        {
            return event;
        }
        // Nothing happens any more.
        std::future::pending().await
    }

    /// What has happened beside the conversation and was not told yet.
    pub(crate) fn past_event(&mut self) -> Option<SessionEvent> {
        self.event().now_or_never()
    }

    /// Goes on in a new session that begins with the first messages of this one.
    pub(crate) async fn fork(&mut self, messages: usize) -> Result<(), Failure> {
        let Some(session) = self.session().cloned() else {
            return Err(nothing_said());
        };
        let title = self.title(&session).await;
        let fork = self.builder(&title)?.fork_of(&session, messages).await;
        let fork = fork.map_err(of_session)?;
        session.close().await.map_err(of_session)?;
        self.open(fork);
        Ok(())
    }

    async fn title(&self, session: &Session) -> String {
        let info = self.store.session(session.id()).await;
        info.map(|info| info.title).unwrap_or_default()
    }

    /// Stores what is to be stored.
    pub(crate) async fn close(&mut self) -> Result<(), Failure> {
        match self.open.take() {
            Some(open) => {
                let closed = open.agent.session().close().await;
                closed.map_err(of_session)
            }
            None => Ok(()),
        }
    }

    /// The messages of the session, whole ones.
    pub(crate) async fn messages(&self) -> Result<Vec<Said>, Failure> {
        let Some(session) = self.session() else {
            return Ok(Vec::new());
        };
        let count = session.status().messages;
        let mut said = Vec::with_capacity(count);
        while said.len() < count {
            let end = (said.len() + ROWS).min(count);
            let rows = session.messages(said.len()..end).await;
            let rows = rows.map_err(of_session)?;
            if rows.is_empty() {
                break;
            }
            for row in rows {
                let text = String::from_utf8_lossy(&row.original).into_owned();
                let message = Raw::parse(text.clone())
                    .ok()
                    .as_ref()
                    .and_then(read_message);
                said.push(Said { text, message });
            }
        }
        Ok(said)
    }

    /// An agent that can be started, gone on with, or forked.
    fn builder(&self, first: &str) -> Result<AgentBuilder, Failure> {
        let Connection {
            client,
            model,
            window,
            catalogue,
            ..
        } = &self.connection;
        let mut session = Session::builder(client.clone(), model)
            .store(Arc::clone(&self.store))
            .catalogue(Arc::clone(catalogue))
            .title(words::shortened(first, TITLE_MAX));
        if let Some(window) = window {
            session = session.window(*window);
        }
        let known = catalogue.find(model).map(|model| model.window);
        let answer = window
            .or(known)
            .map(|window| ANSWER_TOKENS_MAX.min(window / 8));
        if let Some(tokens) = answer {
            session = session.max_tokens(tokens);
        }
        let mut session = self.config.apply(session);
        let system = match &self.arguments.system {
            Some(path) => Some(input::small_file(path)?),
            None => self.config.system_prompt()?,
        };
        if let Some(system) = system {
            session = session.system(system.trim());
        }
        let memory_model = self.config.memory_model.as_deref().unwrap_or(model);
        if memory_model != CODE_ALONE {
            let mut compactor =
                ModelCompactor::new(client.clone(), memory_model).catalogue(Arc::clone(catalogue));
            if let Some(window) = window.filter(|_| memory_model == model) {
                compactor = compactor.window(window);
            }
            session = session.compactor(compactor);
        }
        let agent = Agent::builder(session).tools(self.tools()?);
        Ok(if self.arguments.yes {
            agent.approve(AllowAll)
        } else if self.is_unattended {
            agent.approve(Absent)
        } else {
            agent.approve(Person::new(&self.console))
        })
    }

    fn tools(&self) -> Result<Tools, Failure> {
        let mut tools = Tools::new();
        let names = match self.arguments.tools.as_slice() {
            [] => &self.config.tools,
            names => names,
        };
        if names.is_empty() {
            return Ok(tools);
        }
        let folder = self
            .arguments
            .root
            .as_deref()
            .or(self.config.root.as_deref());
        let folder = folder.unwrap_or_else(|| std::path::Path::new("."));
        let root = Root::open(folder).map_err(|error| {
            Failure::new(
                Kind::Arguments,
                format!(
                    "cannot work in {}: {}",
                    folder.display(),
                    crate::error::reason(&error)
                ),
            )
        })?;
        for name in names {
            tools = tools
                .with_builtin(name.trim(), Some(&root))
                .map_err(|error| Failure::new(Kind::Arguments, error.to_string()))?;
        }
        Ok(tools)
    }
}

/// A message of the session.
pub(crate) struct Said {
    /// As it is stored.
    pub(crate) text: String,
    /// What it says, where it can be read.
    pub(crate) message: Option<Message>,
}

impl Said {
    pub(crate) fn begins_turn(&self) -> bool {
        self.message.as_ref().is_some_and(Message::begins_turn)
    }

    /// Whether an answer is to follow.
    pub(crate) fn is_users(&self) -> bool {
        let role = self.message.as_ref().map(|message| message.role);
        role.is_some_and(|role| role != Role::Assistant)
    }

    /// Its words.
    pub(crate) fn words(&self) -> String {
        let texts = self.message.iter().flat_map(Message::texts);
        texts
            .map(|text| text.decode().into_owned())
            .collect::<Vec<_>>()
            .join("\n\n")
    }
}

/// The stored session that is to be gone on with.
async fn known(arguments: &Chat, store: &dyn Store) -> Result<Option<SessionInfo>, Failure> {
    let wanted = match (&arguments.resume, arguments.go_on) {
        (Some(id), _) => id.as_str(),
        (None, true) => storage::LAST,
        (None, false) => return Ok(None),
    };
    storage::find(store, wanted).await.map(Some)
}

pub(crate) fn nothing_said() -> Failure {
    Failure::new(Kind::NothingToDo, "nothing has been said yet")
}

pub(crate) fn of_open(error: OpenError) -> Failure {
    match error {
        OpenError::Store(error) => storage::failure(error),
        error @ OpenError::OtherWire { .. } => Failure::new(Kind::Arguments, chain(&error))
            .hint("name a model or a --wire of that format"),
        error => Failure::new(Kind::Input, chain(&error)),
    }
}

pub(crate) fn of_session(error: SessionError) -> Failure {
    match error {
        SessionError::Store(error) => storage::failure(error),
        SessionError::Open(error) => of_open(error),
        error @ SessionError::NothingToUndo => Failure::new(Kind::NothingToDo, error.to_string()),
        error => Failure::new(Kind::Input, chain(&error)),
    }
}
