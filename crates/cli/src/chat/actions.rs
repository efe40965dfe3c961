//! What commands do.

use std::path::{Path, PathBuf};

use throughline::costs::Spent;
use throughline::engine::CompactionOutcome;
use throughline::memory::render;
use throughline::store::Place;
use throughline::transcript::message::Role;
use throughline::{Session, SessionSearch};

use super::commands::{self, Command};
use super::meter::{price, short};
use super::talk::{StoredText, nothing_said, of_session};
use super::{Conversation, NextStep, interrupted, nothing_open};
use crate::error::{Failure, Kind};
use crate::markdown::Rendering;
use crate::output;
use crate::spending::{self, Spending};
use crate::terminal;
use crate::words;

/// Hits that are shown.
const HITS_MAX: u32 = 20;

impl Conversation<'_> {
    pub(super) async fn act(&mut self, command: Command) -> Result<NextStep, Failure> {
        match command {
            Command::Quit => return Ok(NextStep::Leave),
            Command::Help => self.screen.write(&commands::help())?,
            Command::Memory => self.memory()?,
            Command::Compact(focus) => self.compact(focus.as_deref()).await?,
            Command::Preview(focus) => self.preview(focus.as_deref()).await?,
            Command::Undo => {
                let undone = self.session()?.undo().await;
                undone.map_err(of_session)?;
                self.tell_notes()?;
                self.show_meter()?;
            }
            Command::Pin(text) => {
                let agent = self.talk.agent("").await?;
                let pinned = agent.session().pin(&text).await;
                pinned.map_err(of_session)?;
                self.screen
                    .note("pinned: it is in every memory from now on")?;
            }
            Command::Unpin(number) => self.unpin(number).await?,
            Command::Search(text) => self.search(text).await?,
            Command::Fork(turn) => self.fork(turn).await?,
            Command::Edit(text) => self.edit(text).await?,
            Command::Retry => {
                let agent = match self.talk.session() {
                    Some(_) => self.talk.agent("").await?,
                    None => return Err(nothing_open()),
                };
                self.follow(
                    agent.go_on(),
                    "`throughline doctor` looks at the connection",
                )
                .await?;
            }
            Command::Model(name) => self.model(name).await?,
            Command::Cost => self.cost()?,
            Command::Save(file) => self.save(file).await?,
        }
        Ok(NextStep::Continue)
    }

    fn session(&self) -> Result<&Session, Failure> {
        self.talk.session().ok_or_else(nothing_said)
    }

    /// A Markdown document, formatted if there is something to format it on.
    fn document(&self, markdown: &str) -> Result<(), Failure> {
        match self.screen.measured().look {
            Some(look) => {
                let mut rendering = Rendering::new(look);
                let text = rendering.push(markdown) + &rendering.end();
                self.screen.write(&text)
            }
            None => self.screen.write(markdown),
        }
    }

    fn memory(&self) -> Result<(), Failure> {
        let Some(version) = self.session()?.memory() else {
            return self
                .screen
                .note("no memory is in use yet; /compact makes one");
        };
        self.document(&render::markdown::render(&version.memory))?;
        self.screen.note(&format!(
            "version {}: represents messages 1 to {}, {} tokens",
            version.memory.version,
            version.cover(),
            words::number(version.tokens),
        ))
    }

    async fn compact(&mut self, focus: Option<&str>) -> Result<(), Failure> {
        let session = self.session()?.clone();
        self.screen.mark("making a memory ... (Ctrl-C gives up)")?;
        let outcome = tokio::select! {
            outcome = session.compact(focus) => outcome,
            () = interrupted() => return self.give_up(&session).await,
        };
        self.screen.unmark()?;
        let outcome = outcome.map_err(of_session)?;
        self.tell_notes()?;
        match outcome {
            CompactionOutcome::Committed { .. } => self.show_meter(),
            CompactionOutcome::Refused { reason } => {
                self.screen.note(&format!("not done: {reason}"))
            }
            CompactionOutcome::Discarded => self.screen.note("given up"),
            _ => Ok(()),
        }
    }

    async fn preview(&mut self, focus: Option<&str>) -> Result<(), Failure> {
        let session = self.session()?.clone();
        self.screen.mark("making a memory ... (Ctrl-C gives up)")?;
        let preview = tokio::select! {
            preview = session.preview(focus) => preview,
            () = interrupted() => return self.give_up(&session).await,
        };
        self.screen.unmark()?;
        self.tell_notes()?;
        let Some(preview) = preview.map_err(of_session)? else {
            return self
                .screen
                .note("there is nothing for a memory to represent yet");
        };
        self.document(&render::markdown::render(&preview.version.memory))?;
        self.screen.note(&format!(
            "{} tokens would be {}; messages {} to {} would be covered; /compact swaps it in",
            words::number(preview.tokens_before),
            words::number(preview.tokens_after),
            preview.covers.0 + 1,
            preview.covers.1,
        ))?;
        if !preview.drops.is_empty() {
            self.screen.note("would be lost:")?;
        }
        for (_, text) in &preview.drops {
            self.screen
                .note(&format!("  {}", words::shortened(text, 100)))?;
        }
        Ok(())
    }

    async fn give_up(&self, session: &Session) -> Result<(), Failure> {
        self.screen.unmark()?;
        let given_up = session.cancel_compaction().await;
        given_up.map_err(of_session)?;
        self.screen.note("given up")
    }

    async fn unpin(&self, number: Option<usize>) -> Result<(), Failure> {
        let session = self.session()?;
        let pins = session.pins();
        let Some(number) = number else {
            if pins.is_empty() {
                return self.screen.note("nothing is pinned");
            }
            let list: String = pins
                .iter()
                .enumerate()
                .map(|(at, pin)| format!("{:>3}  {}\n", at + 1, terminal::harmless(&pin.text)))
                .collect();
            return self.screen.write(&list);
        };
        let pin = pins.get(number - 1).ok_or_else(|| {
            Failure::new(Kind::Arguments, format!("there is no pinned fact {number}"))
                .hint("/unpin lists them")
        })?;
        let unpinned = session.unpin(&pin.id).await;
        unpinned.map_err(of_session)?;
        self.screen.note(&format!(
            "no longer pinned: {}",
            words::shortened(&pin.text, 60)
        ))
    }

    async fn search(&self, text: String) -> Result<(), Failure> {
        let search = SessionSearch {
            text,
            in_all_sessions: false,
            limit: HITS_MAX,
        };
        let hits = self.session()?.search(&search).await;
        let hits = hits.map_err(of_session)?;
        if hits.is_empty() {
            return self.screen.note("nothing found");
        }
        let mut list = String::new();
        for hit in hits {
            let place = match hit.place {
                Place::Message { position } => format!("message {}", position + 1),
                Place::Superseded { .. } => "taken back".to_owned(),
                Place::Memory { version } => format!("memory {version}"),
            };
            list.push_str(&format!(
                "{place:<12} {}\n",
                terminal::harmless(&hit.snippet)
            ));
        }
        self.document(&list)
    }

    async fn fork(&mut self, turn: Option<usize>) -> Result<(), Failure> {
        let parent = self.session()?.id().clone();
        let messages = match turn {
            None => self.session()?.status().messages,
            Some(turn) => {
                let said = self.talk.messages().await?;
                let mut turns = said
                    .iter()
                    .enumerate()
                    .filter(|(_, said)| said.begins_turn());
                let count = turns.clone().count();
                turns.nth(turn - 1).map(|(at, _)| at).ok_or_else(|| {
                    let turns = words::counted(count, "turn");
                    Failure::new(Kind::Arguments, format!("the session has {turns}"))
                })?
            }
        };
        self.talk.fork(messages).await?;
        self.screen.note(&format!(
            "now in session {}, with the first {}; {parent} stays as it is",
            self.session()?.id(),
            words::counted(messages, "message"),
        ))?;
        self.show_meter()
    }

    /// Puts the user's last message into the input line; what is sent then replaces it.
    async fn edit(&mut self, text: Option<String>) -> Result<(), Failure> {
        let said = self.talk.messages().await?;
        let (at, last) = said
            .iter()
            .enumerate()
            .rev()
            .find(|(_, said)| said.begins_turn())
            .ok_or_else(nothing_said)?;
        if let Some(text) = text {
            let cut = self.session()?.truncate(at).await;
            cut.map_err(of_session)?;
            return self.say(&text).await;
        }
        self.replaces = Some(at);
        self.given = last.words();
        self.screen
            .note("the next message replaces the last one; Ctrl-C keeps it")
    }

    async fn model(&mut self, name: Option<String>) -> Result<(), Failure> {
        let Some(name) = name else {
            let connection = &self.talk.connection;
            let window = self.talk.session().map(|session| session.status().limit);
            let window = window.map(|limit| format!(", prompts of up to {} tokens", short(limit)));
            let about = format!("{}{}\n", connection.model, window.unwrap_or_default());
            return self.screen.write(&about);
        };
        self.talk.set_model(&name, None).await?;
        self.screen.note(&format!("{name} from now on"))
    }

    fn cost(&self) -> Result<(), Failure> {
        let costs = self.session()?.costs();
        let spending = |name, spent: &Spent| Spending {
            name,
            calls: spent.calls,
            uncached: spent.usage.uncached,
            written: spent.usage.cache_write,
            cached: spent.usage.cache_read,
            output: spent.usage.output,
            cost: price(spent.cost.dollars()),
        };
        let rows = [
            spending("conversation", &costs.main),
            spending("memories", &costs.updates),
        ];
        let columns = self.screen.measured().look.map(|look| look.columns);
        let without = &costs.without_compaction;
        let refused = match without.refused {
            0 => String::new(),
            refused => format!(", and {refused} would have been too large"),
        };
        let table = spending::text(&rows, columns, &self.screen.console);
        self.screen.write(&format!(
            "{table}without compaction: {} for {}{refused}\n",
            price(without.cost.dollars()),
            words::counted(
                usize::try_from(without.calls).unwrap_or(usize::MAX),
                "request"
            ),
        ))
    }

    async fn save(&self, file: Option<PathBuf>) -> Result<(), Failure> {
        let session = self.session()?;
        let file = file.unwrap_or_else(|| PathBuf::from(format!("{}.md", session.id())));
        let file = match &self.talk.config.save {
            Some(folder) => folder.join(file),
            None => file,
        };
        if file.symlink_metadata().is_ok() {
            return Err(
                Failure::new(Kind::Output, format!("{} is there already", file.display()))
                    .hint("/save FILE takes another name"),
            );
        }
        let said = self.talk.messages().await?;
        let is_lines = file
            .extension()
            .is_some_and(|extension| extension == "jsonl");
        let document = if is_lines {
            said.iter().map(|said| format!("{}\n", said.text)).collect()
        } else {
            transcript(&said)
        };
        output::write(Some(Path::new(&file)), &document)?;
        self.screen.note(&format!(
            "{} in {}",
            words::counted(said.len(), "message"),
            file.display()
        ))
    }
}

/// The conversation for people.
fn transcript(said: &[StoredText]) -> String {
    let mut text = String::new();
    let mut speaker = None;
    for said in said {
        let Some(message) = &said.message else {
            continue;
        };
        let now = match message.role {
            Role::Assistant => "Assistant",
            _ if said.begins_turn() => "User",
            _ => "Tools",
        };
        if speaker != Some(now) || said.begins_turn() {
            text.push_str(&format!("## {now}\n\n"));
            speaker = Some(now);
        }
        let words = said.words();
        if !words.trim().is_empty() {
            text.push_str(&format!("{}\n\n", words.trim()));
        }
        for call in message.tool_calls() {
            text.push_str(&format!("- {}\n\n", super::answer::called(call)));
        }
        for result in message.tool_results() {
            let result: String = result
                .texts()
                .map(|text| text.decode().into_owned())
                .collect();
            let fence = fence(&result);
            text.push_str(&format!("{fence}\n{}\n{fence}\n\n", result.trim_end()));
        }
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// A marker for a code block that does not occur in it.
fn fence(text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    fence
}
