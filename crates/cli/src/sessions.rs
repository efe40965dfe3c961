//! `throughline sessions`: what is stored, and what can be done with it.

pub(crate) mod archive;
mod export;
mod import;
mod remove;
mod show;

use serde::Serialize;
use throughline::store::{Place, Scope, Search, SessionId, SessionInfo, Shelf, Store};

use self::archive::shortened_ids;
use crate::arguments::sessions::{self as arguments, Action};
use crate::config::Config;
use crate::error::{Ending, Failure, Kind};
use crate::output::{self, Console};
use crate::terminal;
use crate::{runtime, storage, words};

pub(crate) fn run(arguments: &arguments::Sessions, console: &Console) -> Result<Ending, Failure> {
    let config = Config::read()?;
    runtime::run(async {
        let list_all = Action::List(arguments::List::default());
        let action = arguments.action.as_ref().unwrap_or(&list_all);
        match action {
            // Nothing is opened for a file that cannot be read.
            Action::Import(arguments) => return import::run(arguments, &config, console).await,
            Action::Gc(arguments) => return remove::gc(arguments, &config, console).await,
            Action::Export(arguments) => output::check_place(arguments.output.as_deref())?,
            _ => {}
        }
        storage::using(&config, async |store| {
            let store = store.as_ref();
            match action {
                Action::List(arguments) => list(arguments, store, console).await,
                Action::Show(arguments) => show::run(arguments, store, console).await,
                Action::Search(arguments) => search(arguments, store, console).await,
                Action::Export(arguments) => export::run(arguments, store).await,
                Action::Delete(arguments) => {
                    remove::delete(arguments, &config, store, console).await
                }
                Action::Import(_) | Action::Gc(_) => Ok(()),
            }
        })
        .await
    })?;
    Ok(Ending::Done)
}

/// A session in lists.
#[derive(Serialize)]
struct Entry {
    id: String,
    title: String,
    model: String,
    wire: String,
    /// The session that it is a fork of.
    parent: Option<String>,
    created_at: Option<String>,
    updated_at: Option<String>,
    messages: u64,
    tokens: u64,
    /// The newest; 0 without one.
    memory_version: u64,
}

impl Entry {
    async fn of(session: &SessionInfo, store: &dyn Store) -> Result<Self, Failure> {
        Ok(Self {
            id: session.id.to_string(),
            title: archive::title(session, store).await?,
            model: session.model.clone(),
            wire: session.wire.clone(),
            parent: session.parent.as_ref().map(|fork| fork.session.to_string()),
            created_at: words::rfc3339(session.created_ms),
            updated_at: words::rfc3339(session.updated_ms),
            messages: session.message_count,
            tokens: session.tokens,
            memory_version: session.memory_version,
        })
    }
}

async fn list(
    arguments: &arguments::List,
    store: &dyn Store,
    console: &Console,
) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Document {
        schema: &'static str,
        total: usize,
        sessions: Vec<Entry>,
    }
    let all = storage::sessions(store).await?;
    let mut entries = Vec::new();
    for session in all.iter().take(arguments.limit) {
        entries.push(Entry::of(session, store).await?);
    }
    if arguments.json {
        return console.print_json(&Document {
            schema: "throughline.sessions/1",
            total: all.len(),
            sessions: entries,
        });
    }
    if all.is_empty() {
        console.note("there is no session yet; `throughline chat` begins one");
        return Ok(());
    }
    let shown = entries.len();
    let ids = shortened_ids(&all);
    let rows = entries
        .into_iter()
        .zip(&all)
        .map(|(entry, session)| {
            vec![
                ids.of(&session.id),
                words::minute(session.updated_ms).unwrap_or_default(),
                words::shortened(&entry.title, 40),
                entry.model,
                words::number(entry.messages),
                words::number(entry.tokens),
            ]
        })
        .collect();
    let header = ["id", "changed", "title", "model", "messages", "tokens"];
    console.print(&terminal::harmless(&console.table(&header, rows)))?;
    if shown < all.len() {
        console.summary(&format!(
            "{} more; --limit {} lists them all",
            words::number((all.len() - shown) as u64),
            all.len()
        ));
    }
    Ok(())
}

async fn search(
    arguments: &arguments::Search,
    store: &dyn Store,
    console: &Console,
) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Document {
        schema: &'static str,
        hits: Vec<Hit>,
    }
    /// A place; messages are counted from 0.
    #[derive(Serialize)]
    struct Hit {
        session: String,
        message: Option<u64>,
        superseded: Option<u64>,
        memory_version: Option<u64>,
        snippet: String,
    }
    let scope = match &arguments.session {
        Some(wanted) => Scope::Session(storage::find(store, wanted).await?.id),
        None => Scope::All,
    };
    let search = Search {
        text: arguments.text.join(" "),
        scope,
        shelf: Shelf::Both,
        limit: arguments.limit,
    };
    let hits = store.search(&search).await.map_err(storage::failure)?;
    if arguments.json {
        let hits = hits
            .into_iter()
            .map(|hit| {
                let mut found = Hit {
                    session: hit.session.to_string(),
                    message: None,
                    superseded: None,
                    memory_version: None,
                    snippet: hit.snippet,
                };
                match hit.place {
                    Place::Message { position } => found.message = Some(position),
                    Place::Superseded { sequence } => found.superseded = Some(sequence),
                    Place::Memory { version } => found.memory_version = Some(version),
                }
                found
            })
            .collect();
        return console.print_json(&Document {
            schema: "throughline.search/1",
            hits,
        });
    }
    if hits.is_empty() {
        return Err(Failure::new(
            Kind::NothingToDo,
            format!("nothing has {:?} in it", search.text),
        )
        .hint("all words must be in one message or memory; fewer words find more"));
    }
    let ids = shortened_ids(&storage::sessions(store).await?);
    let place = |place: Place| match place {
        Place::Message { position } => format!("message {}", position + 1),
        Place::Superseded { sequence } => format!("cut off, {sequence}"),
        Place::Memory { version } => format!("memory {version}"),
    };
    let short = |id: &SessionId| ids.of(id);
    let rows = hits
        .into_iter()
        .map(|hit| vec![short(&hit.session), place(hit.place), hit.snippet])
        .collect();
    let table = console.table(&["session", "place", "text"], rows);
    console.print(&terminal::harmless(&table))
}
