//! A chat's session: started with the first message, resumed, forked.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use throughline::agent::builtin::Root;
use throughline::agent::{Agent, AgentBuilder, AllowAll, Tools};
use throughline::engine::{BuildKind, EngineEvent};
use throughline::folder::Folder;
use throughline::futures::{FutureExt, Stream, StreamExt};
use throughline::store::{SessionId, SessionInfo, Store};
use throughline::transcript::body::read_message;
use throughline::transcript::json::Raw;
use throughline::transcript::message::{Message, Role};
use throughline::transcript::request;
use throughline::transcript::wire::Wire;
use throughline::{ModelCompactor, OpenError, Session, SessionBuilder, SessionError, SessionEvent};
use tokio::time::{Instant, sleep};

use super::approvals::{AbsentApprover, Person};
use super::memories::MemoryMaker;
use crate::arguments::chat::Chat;
use crate::config::Config;
use crate::connect::{Connection, ConnectionKind, SIMULATED, connect};
use crate::error::{Failure, Kind, chain};
use crate::output::Console;
use crate::sessions::archive;
use crate::{files, storage, words};

/// Characters of a title.
const TITLE_MAX: usize = 60;
/// Rows that are read at once.
const ROWS: usize = 500;

/// The model that makes memories where none does.
const CODE_ALONE: &str = "none";

type Events = Pin<Box<dyn Stream<Item = SessionEvent> + Send>>;

/// A chat: its session and its connection.
pub(crate) struct Talk<'a> {
    arguments: &'a Chat,
    pub(crate) config: &'a Config,
    pub(crate) connection: Connection,
    store: Arc<dyn Store>,
    /// `None` where no model makes memories.
    memories: Option<MemoryMaker>,
    /// Who is asked whether calls may be run, if anybody is.
    pub(crate) person: Option<Person>,
    open: Option<OpenSession>,
}

/// A session that has begun.
struct OpenSession {
    agent: Agent,
    events: Events,
}

impl<'a> Talk<'a> {
    /// Connects, and opens the session to resume, if there is one.
    pub(crate) async fn begin(
        arguments: &'a Chat,
        config: &'a Config,
        store: &Arc<dyn Store>,
        console: &Console,
        is_unattended: bool,
    ) -> Result<Self, Failure> {
        let known = known(arguments, store.as_ref()).await?;
        if let Some(folder) = &arguments.folder {
            let id = known.as_ref().map(|known| known.id.as_str());
            refuse_folder_of_another(folder, id)?;
        }
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
            connection,
            store: Arc::clone(store),
            memories: None,
            person: (!arguments.yes && !is_unattended).then(|| Person::new(console)),
            open: None,
        };
        talk.memories = talk.memory_model().map(MemoryMaker::new);
        if let Some(known) = known {
            let agent = talk.builder("")?.resume(&known.id).await;
            let agent = agent.map_err(of_open)?;
            let given: Vec<String> = agent.tools().names().map(str::to_owned).collect();
            talk.open(agent);
            if let Some(model) = other_model {
                let window = talk.connection.window;
                talk.set_model(&model, window).await?;
            }
            let stored = names(talk.stored(&known.id).await?.tools.as_ref());
            for line in difference(&stored, &given) {
                console.note(&line);
            }
        }
        Ok(talk)
    }

    /// Goes on with another model of the same provider, and with the window that it has, or a smaller one.
    pub(crate) async fn set_model(
        &mut self,
        name: &str,
        window: Option<u64>,
    ) -> Result<(), Failure> {
        let mut model = self
            .connection
            .catalogue
            .find(name)
            .cloned()
            .ok_or_else(|| {
                Failure::new(Kind::Arguments, format!("{name} is not known"))
                    .hint("`throughline models` lists the known ones")
            })?;
        let is_anthropic = self.connection.client.wire() == Wire::Anthropic;
        if name == SIMULATED && self.connection.kind == ConnectionKind::Simulated {
            // It is to be found again under this name.
            SIMULATED.clone_into(&mut model.id);
        } else if is_anthropic != (model.provider == "anthropic") {
            return Err(Failure::new(
                Kind::Arguments,
                format!("{name} is not a model of this provider"),
            )
            .hint(format!(
                "a new chat can have it: throughline chat --model {name}"
            )));
        }
        if let Some(window) = window {
            model.window = window;
        }
        if let Some(session) = self.session() {
            session.set_model(&model).await.map_err(of_session)?;
            if let (Some(_), Some(tokens)) = (window, self.config.memory_tokens) {
                let configured = session.configure(move |settings| {
                    settings.memory_tokens_max = tokens;
                });
                configured.await.map_err(of_session)?;
            }
        }
        self.connection.model = name.to_owned();
        self.connection.window = window;
        if let (Some(memories), Some(compactor)) = (&self.memories, self.memory_model()) {
            memories.change(compactor);
        }
        Ok(())
    }

    /// Who makes memories of a conversation with the model as it is now.
    fn memory_model(&self) -> Option<ModelCompactor> {
        let connection = &self.connection;
        let memory_model = self
            .config
            .memory_model
            .as_deref()
            .unwrap_or(&connection.model);
        if memory_model == CODE_ALONE {
            return None;
        }
        let compactor = ModelCompactor::new(connection.client.clone(), memory_model)
            .catalogue(Arc::clone(&connection.catalogue));
        Some(
            match connection
                .window
                .filter(|_| memory_model == connection.model)
            {
                Some(window) => compactor.window(window),
                None => compactor,
            },
        )
    }

    /// What the requests of a stored session begin with.
    async fn stored(&self, id: &SessionId) -> Result<request::Settings, Failure> {
        let loaded = self.store.load(id).await.map_err(storage::failure)?;
        Ok(archive::frame(&loaded)?.settings().clone())
    }

    /// The session, if one has begun.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.open.as_ref().map(|open| open.agent.session())
    }

    /// The session and its agent. It begins with the first message, so that no empty session is stored.
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
        self.open = Some(OpenSession { agent, events });
    }

    /// The next background event.
    pub(crate) async fn event(&mut self) -> SessionEvent {
        if let Some(open) = &mut self.open
            && let Some(event) = open.events.next().await
        {
            return event;
        }
        // Nothing happens any more.
        std::future::pending().await
    }

    /// Background events that were not shown yet.
    pub(crate) fn past_event(&mut self) -> Option<SessionEvent> {
        self.event().now_or_never()
    }

    /// Goes on in a new session that begins with the first messages of this one.
    pub(crate) async fn fork(&mut self, messages: usize) -> Result<(), Failure> {
        let Some(session) = self.session().cloned() else {
            return Err(nothing_said());
        };
        let title = self.title(&session).await;
        let stored = self.stored(session.id()).await?;
        let fork = self.fork_builder(&title, stored)?;
        let fork = fork.fork_of(&session, messages).await;
        let fork = fork.map_err(of_session)?;
        session.close().await.map_err(of_session)?;
        self.open(fork);
        Ok(())
    }

    async fn title(&self, session: &Session) -> String {
        let info = self.store.session(session.id()).await;
        info.map(|info| info.title).unwrap_or_default()
    }

    /// Waits for a memory that is being made, if one is, for so long at most: code makes a draft of it, which a model then
    /// works on.
    pub(crate) async fn memory_made(&mut self, wait: Duration) {
        /// A draft takes some milliseconds, and seconds if the machine has other things to do.
        const DRAFT_WAIT: Duration = Duration::from_secs(10);
        const LOOK_EVERY: Duration = Duration::from_millis(20);
        let begin = Instant::now();
        let mut draft = None;
        loop {
            while let Some(event) = self.past_event() {
                match event {
                    SessionEvent::Engine(EngineEvent::BuildStarted {
                        ticket,
                        kind: BuildKind::Draft,
                        cover,
                        ..
                    }) => draft = Some((ticket, cover)),
                    SessionEvent::Engine(
                        EngineEvent::Failed { ticket, .. }
                        | EngineEvent::Refused { ticket, .. }
                        | EngineEvent::Dropped { ticket, .. },
                    ) => draft = draft.filter(|(of_draft, _)| *of_draft != ticket),
                    _ => {}
                }
            }
            let Some(status) = self.session().map(Session::status) else {
                return;
            };
            let there_is = status.ready_cover.unwrap_or_default().max(status.cover);
            let is_drafted = draft.is_none_or(|(_, cover)| cover <= there_is);
            let waited = begin.elapsed();
            let is_draft_awaited = !is_drafted && waited < DRAFT_WAIT;
            if waited >= wait || !(is_draft_awaited || status.is_updating) {
                return;
            }
            sleep(LOOK_EVERY).await;
        }
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
    pub(crate) async fn messages(&self) -> Result<Vec<StoredText>, Failure> {
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
                said.push(StoredText { text, message });
            }
        }
        Ok(said)
    }

    /// An agent that can be started or resumed.
    fn builder(&self, first: &str) -> Result<AgentBuilder, Failure> {
        let system = match &self.arguments.system {
            Some(path) => Some(files::small_file(path)?),
            None => self.config.system_prompt()?,
        };
        let mut session = self.session_builder(first);
        if let Some(system) = system {
            session = session.system(system.trim());
        }
        Ok(self.agent_on(session, self.tools()?))
    }

    /// An agent for a fork of a session: it has the system prompt of that, and its tools.
    fn fork_builder(
        &self,
        title: &str,
        stored: request::Settings,
    ) -> Result<AgentBuilder, Failure> {
        let mut session = self.session_builder(title).system(stored.system);
        let tools = self.tools()?;
        let of_agent = |tool: &Raw| {
            let name = name(tool);
            tools.names().any(|known| Some(known) == name.as_deref())
        };
        // What this chat was not given stays known to the model: it has been called before.
        let others: Vec<String> = stored
            .tools
            .iter()
            .flat_map(Raw::array)
            .filter(|tool| !of_agent(tool))
            .map(|tool| tool.as_str().to_owned())
            .collect();
        if !others.is_empty()
            && let Ok(others) = Raw::parse(format!("[{}]", others.join(",")))
        {
            session = session.tools(others);
        }
        Ok(self.agent_on(session, tools))
    }

    fn session_builder(&self, title: &str) -> SessionBuilder {
        let connection = &self.connection;
        let mut session = Session::builder(connection.client.clone(), &connection.model)
            .store(Arc::clone(&self.store))
            .catalogue(Arc::clone(&connection.catalogue))
            .title(words::shortened(title, TITLE_MAX));
        if let Some(window) = connection.window {
            session = session.window(window);
        }
        if let Some(tokens) = connection.answer_tokens() {
            session = session.max_tokens(tokens);
        }
        if let Some(folder) = &self.arguments.folder {
            session = session.folder(folder);
        } else if let Some(root) = &self.config.session_folder {
            session = session.folder_in(root);
        }
        let session = self.config.apply(session);
        match &self.memories {
            Some(memories) => session.compactor(memories.clone()),
            None => session,
        }
    }

    fn agent_on(&self, session: SessionBuilder, tools: Tools) -> AgentBuilder {
        let agent = Agent::builder(session).tools(tools);
        match &self.person {
            Some(person) => agent.approve(person.clone()),
            None if self.arguments.yes => agent.approve(AllowAll),
            None => agent.approve(AbsentApprover),
        }
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
        let folder = folder.unwrap_or_else(|| Path::new("."));
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

/// Refuses a folder with the files of a session that is not the one resumed: the files of both would be mixed.
fn refuse_folder_of_another(path: &Path, resumed: Option<&str>) -> Result<(), Failure> {
    let owner = Folder::new(path).owner().map_err(|error| {
        Failure::new(Kind::Input, format!("{}: {error}", path.display()))
            .hint("choose another --folder")
    })?;
    match owner {
        Some(owner) if Some(owner.as_str()) != resumed => Err(Failure::new(
            Kind::Arguments,
            format!("{} has the files of session {owner}", path.display()),
        )
        .hint(format!(
            "resume that session with --resume {owner}, or choose another --folder"
        ))),
        _ => Ok(()),
    }
}

/// A message of the session.
pub(crate) struct StoredText {
    /// As it is stored.
    pub(crate) text: String,
    /// What it says, where it can be read.
    pub(crate) message: Option<Message>,
}

impl StoredText {
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

/// The stored session to resume.
async fn known(arguments: &Chat, store: &dyn Store) -> Result<Option<SessionInfo>, Failure> {
    let wanted = match (&arguments.resume, arguments.go_on) {
        (Some(id), _) => id.as_str(),
        (None, true) => storage::LAST,
        (None, false) => return Ok(None),
    };
    storage::find(store, wanted).await.map(Some)
}

/// The names of tools in the form of a wire.
fn names(tools: Option<&Raw>) -> Vec<String> {
    let tools = tools.into_iter().flat_map(Raw::array);
    tools.filter_map(|tool| name(&tool)).collect()
}

fn name(tool: &Raw) -> Option<String> {
    let of = |tool: &Raw| tool.string_field("name");
    of(tool).or_else(|| of(&tool.field("function")?))
}

/// How a resumed session differs from what was requested: it keeps the tools it started with.
fn difference(stored: &[String], given: &[String]) -> Vec<String> {
    let without = |some: &[String], others: &[String]| -> String {
        let names: Vec<&str> = some
            .iter()
            .filter(|name| !others.contains(name))
            .map(String::as_str)
            .collect();
        names.join(",")
    };
    let mut lines = Vec::new();
    let missing = without(stored, given);
    if !missing.is_empty() {
        lines.push(format!(
            "the session has tools that are not given now, and its model may call them without effect: --tools {missing}"
        ));
    }
    let unknown = without(given, stored);
    if !unknown.is_empty() {
        lines.push(format!(
            "the session keeps the tools that it began with; its model does not know of {unknown} (a new chat or /fork can have them)"
        ));
    }
    lines
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
