//! `throughline chat`: a conversation with a model, in a terminal or a pipe.
//!
//! [`talk`] is the session; [`editor`] is where lines come from, [`commands`] what they mean, [`actions`] what is done
//! about them; [`answer`] and [`markdown`] show what the model says, [`notes`] and [`meter`] what happens in the background;
//! [`approvals`] and [`preview`] ask about calls.

mod actions;
mod answer;
mod approvals;
mod commands;
mod editor;
mod memories;
mod meter;
mod notes;
mod preview;
mod print;
mod screen;
mod talk;

use std::sync::Arc;

use throughline::SendError;
use throughline::agent::{AgentError, AgentEvent, AgentTurn};
use throughline::futures::StreamExt;
use throughline::store::Store;
use throughline::transcript::usage::Usage;

use self::answer::AnswerView;
use self::commands::InputLine;
use self::editor::{Editor, Line};
use self::meter::Meter;
use self::screen::Screen;
use self::talk::{StoredText, Talk};
use crate::arguments::chat::Chat;
use crate::config::Config;
use crate::error::{Ending, Failure, Kind, chain};
use crate::output::{self, Console};
use crate::quiet::Quiet;
use crate::terminal::{Look, Thinking};
use crate::{storage, words};

pub(crate) fn run(arguments: &Chat, console: &Console) -> Result<Ending, Failure> {
    output::leave_interrupts_alone();
    let mut config = Config::read()?;
    config.phases |= arguments.phases;
    let console = &console.clone().coloured(config.colours);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Kind::Bug, format!("no runtime: {error}")))?;
    let ending = runtime.block_on(storage::using(&config, async |store| {
        match &arguments.print {
            Some(text) => print::run(arguments, &config, store, text, console).await,
            None => converse(arguments, &config, store, console).await,
        }
    }));
    // A line that is still waited for does not hold up the end.
    runtime.shutdown_background();
    ending
}

async fn converse(
    arguments: &Chat,
    config: &Config,
    store: &Arc<dyn Store>,
    console: &Console,
) -> Result<Ending, Failure> {
    let is_terminal = console.is_stdin_terminal && console.is_stderr_terminal;
    let talk = Talk::begin(arguments, config, store, console, !is_terminal).await?;
    let screen = Screen::new(console);
    let editor = match is_terminal {
        true => Editor::in_terminal(
            Some(&config.data_folder()?.join("history")),
            screen.look.is_some_and(|look| look.has_colours),
        ),
        false => Editor::Pipe,
    };
    let mut chat = Conversation {
        thinking: arguments.thinking.unwrap_or(config.thinking),
        talk,
        screen,
        editor: Some(editor),
        is_terminal,
        given: String::new(),
        replaces: None,
        cached: None,
    };
    let ending = chat.run().await;
    let closed = chat.talk.close().await;
    let ending = ending?;
    closed?;
    Ok(ending)
}

/// A chat that runs until the user leaves.
struct Conversation<'a> {
    thinking: Thinking,
    talk: Talk<'a>,
    screen: Screen,
    /// Away while a line is waited for.
    editor: Option<Editor>,
    is_terminal: bool,
    /// What the next line begins with.
    given: String,
    /// The next message replaces this one and all after it.
    replaces: Option<usize>,
    /// The part of the last prompt that came from the provider's cache, per cent.
    cached: Option<u64>,
}

/// Whether the chat continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextStep {
    Continue,
    Leave,
}

impl Conversation<'_> {
    async fn run(&mut self) -> Result<Ending, Failure> {
        self.greet().await?;
        let mut was_interrupted = false;
        loop {
            self.tell_notes()?;
            let line = match self.line().await? {
                Line::Text(text) => text,
                Line::End => break,
                Line::Interrupted { .. } if !self.is_terminal => return Ok(Ending::Interrupted),
                Line::Interrupted { was_empty } => {
                    if was_empty && was_interrupted {
                        break;
                    }
                    was_interrupted = was_empty;
                    self.replaces = None;
                    if was_empty {
                        self.screen.note("Ctrl-C once more, or Ctrl-D, to leave")?;
                    }
                    continue;
                }
            };
            was_interrupted = false;
            match self.take(&line).await {
                Ok(NextStep::Continue) => {}
                Ok(NextStep::Leave) => break,
                // A script is to end where something went wrong; a person says what is to be done.
                Err(failure) if !self.is_terminal || failure.is_closed_pipe() => {
                    return Err(failure);
                }
                Err(failure) => self.screen.console.failure(&failure),
            }
        }
        self.part()?;
        Ok(Ending::Done)
    }

    /// What a line means is done.
    async fn take(&mut self, line: &str) -> Result<NextStep, Failure> {
        let replaces = self.replaces.take();
        match commands::parse(line) {
            InputLine::Blank => Ok(NextStep::Continue),
            InputLine::Mistake(what) => Err(Failure::new(Kind::Arguments, what)),
            InputLine::Command(command) => self.act(command).await,
            InputLine::Message(text) => {
                if let (Some(messages), Some(session)) = (replaces, self.talk.session()) {
                    let cut = session.truncate(messages).await;
                    cut.map_err(talk::of_session)?;
                }
                self.say(&text).await?;
                Ok(NextStep::Continue)
            }
        }
    }

    async fn say(&mut self, text: &str) -> Result<(), Failure> {
        let mut was_interrupted = false;
        let agent = {
            let mut interrupt = std::pin::pin!(interrupted());
            let mut beginning = std::pin::pin!(self.talk.agent(text));
            loop {
                tokio::select! {
                    biased;
                    () = &mut interrupt, if !was_interrupted => was_interrupted = true,
                    agent = &mut beginning => break agent?,
                }
            }
        };
        if was_interrupted {
            self.give_back(text.to_owned())?;
            return Ok(());
        }
        let before = agent.session().status().messages;
        self.follow(agent.send(text), "/retry asks again").await?;
        if self
            .talk
            .session()
            .is_some_and(|session| session.status().messages == before)
        {
            text.clone_into(&mut self.given);
        }
        Ok(())
    }

    /// Shows a turn until it ends, or until Ctrl-C. If it is interrupted, `advice` says what to do.
    async fn follow(&mut self, mut turn: AgentTurn, advice: &str) -> Result<(), Failure> {
        // What is typed meanwhile waits for the next line.
        let _quiet = self.is_terminal.then(Quiet::begin);
        if let Some(person) = &self.talk.person {
            person.forget();
        }
        let mut shown = AnswerView::new(&self.screen, self.thinking);
        let mut notes = Vec::new();
        shown.wait("...")?;
        let mut interrupt = std::pin::pin!(interrupted());
        let failure = loop {
            tokio::select! {
                biased;
                () = &mut interrupt => {
                    drop(turn);
                    shown.note("stopped; /retry asks again, and the next message continues from here")?;
                    break None;
                }
                event = self.talk.event() => {
                    let note = notes::line(&event);
                    match note {
                        Some(note) if shown.is_silent() => {
                            shown.note(&note)?;
                            shown.wait("...")?;
                        }
                        // Not in the middle of a sentence.
                        note => notes.extend(note),
                    }
                }
                event = turn.next() => match event {
                    Some(Ok(AgentEvent::ApprovalAsked { call, summary })) => {
                        if let Some(person) = &self.talk.person {
                            if !person.allows(&call.name) {
                                shown.asked(&call, &summary)?;
                            }
                            person.has_seen();
                        }
                    }
                    Some(Ok(event)) => shown.event(&event)?,
                    Some(Err(error @ AgentError::NothingOpen)) => {
                        shown.end()?;
                        break Some(of_agent(error));
                    }
                    Some(Err(error)) => {
                        shown.end()?;
                        break Some(of_agent(error).hint(advice));
                    }
                    None => break None,
                },
            }
        };
        shown.end()?;
        for note in notes {
            self.screen.note(&note)?;
        }
        self.tell_notes()?;
        if let Some(usage) = shown.usage {
            self.cached = cached(&usage).or(self.cached);
        }
        match failure {
            Some(failure) => Err(failure),
            None => self.show_meter(),
        }
    }

    /// The next line; what happens meanwhile is shown above it.
    async fn line(&mut self) -> Result<Line, Failure> {
        let Some(mut editor) = self.editor.take() else {
            return Ok(Line::End);
        };
        let printer = editor.notes();
        let given = std::mem::take(&mut self.given);
        let mut reading = tokio::task::spawn_blocking(move || {
            let line = editor.read(&given);
            (editor, line)
        });
        let mut interrupt = std::pin::pin!(interrupted());
        let mut was_interrupted = false;
        loop {
            tokio::select! {
                biased;
                // In a terminal it comes as a key, until the line is complete and the terminal is as it was.
                () = &mut interrupt, if !was_interrupted => {
                    was_interrupted = true;
                    if !self.is_terminal {
                        return Ok(Line::Interrupted { was_empty: true });
                    }
                }
                read = &mut reading => {
                    let (editor, line) = read
                        .map_err(|error| Failure::new(Kind::Bug, error.to_string()))?;
                    self.editor = Some(editor);
                    let line = line.map_err(|error| {
                        Failure::new(Kind::Input, format!("no line can be read: {error}"))
                    })?;
                    return match line {
                        Line::Text(text) if was_interrupted => self.give_back(text),
                        line => Ok(line),
                    };
                }
                event = self.talk.event() => {
                    if let (Some(note), Some(printer)) = (notes::line(&event), &printer) {
                        // A note too many is no loss.
                        let _ = printer.try_send(self.screen.dimmed(&note));
                    }
                }
            }
        }
    }

    /// A line that was stopped before anything was sent of it.
    fn give_back(&mut self, text: String) -> Result<Line, Failure> {
        self.given = text;
        self.screen
            .note("stopped; your message is in the line again")?;
        Ok(Line::Interrupted { was_empty: false })
    }

    fn tell_notes(&mut self) -> Result<(), Failure> {
        while let Some(event) = self.talk.past_event() {
            if let Some(note) = notes::line(&event) {
                self.screen.note(&note)?;
            }
        }
        Ok(())
    }

    fn show_meter(&self) -> Result<(), Failure> {
        let Some(session) = self.talk.session() else {
            return Ok(());
        };
        let costs = session.costs();
        let dollars = (costs.main.cost + costs.updates.cost).dollars();
        let meter = Meter::of(&session.status(), self.cached, dollars);
        let look = self.screen.measured().look.unwrap_or(Look::PLAIN);
        self.screen.note(&meter.line(look))
    }

    /// What a person wants to know at first.
    async fn greet(&mut self) -> Result<(), Failure> {
        let connection = &self.talk.connection;
        let Some(session) = self.talk.session() else {
            let place = connection.base_url.as_ref();
            let place = place.map(|url| format!(" at {url}")).unwrap_or_default();
            return self.screen.note(&format!(
                "model: {}{place}; type /help for commands",
                connection.model
            ));
        };
        let status = session.status();
        let text = format!(
            "session {}: {}, {} of {} tokens",
            session.id(),
            words::counted(status.messages, "message"),
            words::number(status.tokens),
            words::number(status.limit),
        );
        let open = session.open_calls().await.unwrap_or_default();
        self.screen.note(&text)?;
        let said = self.talk.messages().await?;
        for (who, one) in [
            ("you", said.iter().rev().find(|said| said.begins_turn())),
            (
                "model",
                said.iter()
                    .rev()
                    .find(|said| !said.begins_turn() && !said.words().is_empty()),
            ),
        ] {
            if let Some(one) = one {
                self.screen
                    .note(&format!("{who}: {}", words::shortened(&one.words(), 70)))?;
            }
        }
        let is_unanswered = said.last().is_some_and(StoredText::is_users);
        if is_unanswered || !open.is_empty() {
            self.screen
                .note("the last message is not answered; /retry asks for it")?;
        }
        Ok(())
    }

    fn part(&self) -> Result<(), Failure> {
        match self.talk.session() {
            Some(session) if self.is_terminal => self.screen.note(&format!(
                "resume with: throughline chat --resume {}",
                session.id()
            )),
            _ => Ok(()),
        }
    }
}

/// Waits for Ctrl-C.
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        // It cannot be watched for; the system does what it does then.
        std::future::pending().await
    }
}

fn cached(usage: &Usage) -> Option<u64> {
    (usage.cache_read * 100).checked_div(usage.prompt())
}

fn of_agent(error: AgentError) -> Failure {
    match error {
        AgentError::NothingOpen => nothing_open(),
        AgentError::Session(error) => talk::of_session(error),
        AgentError::Send(error @ SendError::Call(_)) => {
            Failure::new(Kind::Unavailable, chain(&error))
        }
        AgentError::Send(SendError::Store(error) | SendError::AnswerNotStored(error)) => {
            Failure::new(Kind::Output, chain(error.as_ref()))
        }
        error => Failure::new(Kind::Input, chain(&error)),
    }
}

fn nothing_open() -> Failure {
    Failure::new(Kind::NothingToDo, "everything is answered")
}
