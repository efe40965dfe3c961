//! A session as a chat has it: begun with the first message, gone on with, forked.

use std::pin::Pin;
use std::sync::Arc;

use throughline::agent::builtin::Root;
use throughline::agent::{Agent, AgentBuilder, AllowAll, Tools};
use throughline::futures::{FutureExt, Stream, StreamExt};
use throughline::store::{Page, SessionId, SessionInfo, SqliteStore, Store, StoreError};
use throughline::transcript::catalogue::Catalogue;
use throughline::transcript::formats::request::read_message;
use throughline::transcript::json::Raw;
use throughline::transcript::message::{Message, Role};
use throughline::{ModelCompactor, OpenError, Session, SessionError, SessionEvent};

use super::approvals::{Absent, Person};
use super::connection::{self, Connection};
use crate::arguments::chat::Chat;
use crate::error::{Failure, Kind, chain};
use crate::output::Console;
use crate::words;

/// Characters of a title.
const TITLE_MAX: usize = 60;
/// Rows that are read at once.
const ROWS: usize = 500;
/// The longest answer where the window is large, tokens.
const ANSWER_TOKENS_MAX: u64 = 16_000;

type Events = Pin<Box<dyn Stream<Item = SessionEvent> + Send>>;

/// What is said, and with whom.
pub(crate) struct Talk<'a> {
    arguments: &'a Chat,
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
        console: &Console,
        is_unattended: bool,
    ) -> Result<Self, Failure> {
        let folder = connection::data_folder();
        let store = SqliteStore::open(folder.join("sessions.db"))
            .await
            .map_err(|error| of_store(&error))?;
        let store: Arc<dyn Store> = Arc::new(store);
        let known = known(arguments, store.as_ref()).await?;
        let model = arguments.model.as_deref();
        let stored = known.as_ref().map(|known| known.model.as_str());
        let connection =
            connection::connect(model.or(stored), arguments.window, arguments.latency).await?;
        let mut talk = Self {
            arguments,
            console: console.clone(),
            connection,
            store,
            is_unattended,
            open: None,
        };
        if let Some(known) = known {
            let agent = talk.builder("")?.resume(&known.id).await;
            let agent = agent.map_err(|error| of_open(&error))?;
            talk.open(agent);
        }
        Ok(talk)
    }

    /// The session, if one has begun.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.open.as_ref().map(|open| open.agent.session())
    }

    /// The session and its agent. One begins with the first words that are said, so that nobody has empty sessions.
    pub(crate) async fn agent(&mut self, first: &str) -> Result<Agent, Failure> {
        if self.open.is_none() {
            let agent = self.builder(first)?.start().await;
            let agent = agent.map_err(|error| of_open(&error))?;
            self.open(agent);
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
        let fork = fork.map_err(|error| of_session(&error))?;
        session.close().await.map_err(|error| of_session(&error))?;
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
                closed.map_err(|error| of_session(&error))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.connection.catalogue
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
            let rows = rows.map_err(|error| of_session(&error))?;
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
        } = &self.connection;
        let mut session = Session::builder(client.clone(), model)
            .store(Arc::clone(&self.store))
            .catalogue(Arc::clone(catalogue))
            .title(words::shortened(first, TITLE_MAX));
        let mut compactor =
            ModelCompactor::new(client.clone(), model).catalogue(Arc::clone(catalogue));
        if let Some(window) = window {
            session = session.window(*window);
            compactor = compactor.window(*window);
        }
        let known = catalogue.find(model).map(|model| model.window);
        if let Some(window) = window.or(known) {
            session = session.max_tokens(ANSWER_TOKENS_MAX.min(window / 8));
        }
        if let Some(path) = &self.arguments.system {
            let system = std::fs::read_to_string(path).map_err(|error| {
                Failure::new(
                    Kind::Arguments,
                    format!(
                        "cannot read {}: {}",
                        path.display(),
                        crate::error::reason(&error)
                    ),
                )
            })?;
            session = session.system(system.trim());
        }
        let agent = Agent::builder(session.compactor(compactor)).tools(self.tools()?);
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
        if self.arguments.tools.is_empty() {
            return Ok(tools);
        }
        let folder = self.arguments.root.as_deref();
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
        for name in &self.arguments.tools {
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
    let sessions = |limit| store.sessions(Page::first(limit));
    if arguments.go_on {
        let newest = sessions(1).await.map_err(|error| of_store(&error))?;
        return match newest.into_iter().next() {
            Some(session) => Ok(Some(session)),
            None => Err(
                Failure::new(Kind::Input, "there is no session to go on with")
                    .hint("begin one: throughline chat"),
            ),
        };
    }
    let Some(wanted) = &arguments.resume else {
        return Ok(None);
    };
    if let Ok(id) = SessionId::new(wanted.as_str())
        && let Ok(session) = store.session(&id).await
    {
        return Ok(Some(session));
    }
    let all = sessions(1_000).await.map_err(|error| of_store(&error))?;
    let mut found = all
        .into_iter()
        .filter(|info| info.id.as_str().starts_with(wanted.as_str()));
    match (found.next(), found.next()) {
        (Some(session), None) => Ok(Some(session)),
        (None, _) => Err(
            Failure::new(Kind::Input, format!("there is no session {wanted}"))
                .hint("throughline sessions list"),
        ),
        (Some(_), Some(_)) => Err(Failure::new(
            Kind::Input,
            format!("several sessions begin with {wanted}"),
        )
        .hint("throughline sessions list")),
    }
}

pub(crate) fn nothing_said() -> Failure {
    Failure::new(Kind::NothingToDo, "nothing has been said yet")
}

pub(crate) fn of_store(error: &StoreError) -> Failure {
    Failure::new(Kind::Input, chain(error))
}

pub(crate) fn of_open(error: &OpenError) -> Failure {
    match error {
        OpenError::Store(error @ StoreError::Busy { .. }) => of_store(error)
            .hint("end the other program, or go on in a fork of the session from there"),
        error => Failure::new(Kind::Input, chain(error)),
    }
}

pub(crate) fn of_session(error: &SessionError) -> Failure {
    Failure::new(Kind::Input, chain(error))
}
