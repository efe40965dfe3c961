//! An answer, shown as it comes.

use std::time::Duration;

use throughline::agent::{AgentEvent, AgentOutcome};
use throughline::providers::reply::Event;
use throughline::transcript::message::{ToolCall, ToolInput};
use throughline::transcript::request::message::ToolOutput;
use throughline::transcript::usage::Usage;

use super::preview;
use super::screen::Screen;
use crate::markdown::Rendering;

use crate::error::Failure;
use crate::terminal::{Look, Thinking, harmless};
use crate::words;

/// Columns that the arguments of a call may take.
const ARGUMENTS_MAX: usize = 40;

/// Shows one turn.
pub(crate) struct AnswerView {
    screen: Screen,
    thinking: Thinking,
    /// What was written last.
    state: State,
    /// Text that was written as it is and has not ended its line.
    is_line_open: bool,
    /// The screen shows a line that says what is being waited for.
    is_marked: bool,
    /// What the last answer used.
    pub(crate) usage: Option<Usage>,
}

enum State {
    Nothing,
    Thinking,
    /// With what formats it, in a terminal.
    Text(Option<Box<Rendering>>),
}

impl AnswerView {
    pub(crate) fn new(screen: &Screen, thinking: Thinking) -> Self {
        Self {
            screen: screen.measured(),
            thinking,
            state: State::Nothing,
            is_line_open: false,
            is_marked: false,
            usage: None,
        }
    }

    /// Whether nothing of the answer is on the screen.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.state, State::Nothing)
    }

    /// Says what is waited for, until something comes.
    pub(crate) fn wait(&mut self, for_what: &str) -> Result<(), Failure> {
        self.end_text()?;
        self.unmark()?;
        self.is_marked = true;
        self.screen.mark(for_what)
    }

    /// A quiet line between the texts of the answer.
    pub(crate) fn note(&mut self, text: &str) -> Result<(), Failure> {
        self.end_text()?;
        self.unmark()?;
        self.screen.note(text)
    }

    pub(crate) fn event(&mut self, event: &AgentEvent) -> Result<(), Failure> {
        match event {
            AgentEvent::Model(event) => self.model(event),
            AgentEvent::Compacted => {
                self.note("too long for the provider; it is asked again from a memory")
            }
            AgentEvent::Answered(answer) => {
                self.usage = answer.reply.usage.map(|usage| usage.last_pass);
                self.end_text()
            }
            AgentEvent::CallStarted { call } => self.wait(&format!("... {}", called(call))),
            AgentEvent::CallEnded { call, output, took } => {
                let line = self.called(call, output, *took);
                self.note(&line)?;
                self.wait("...")
            }
            AgentEvent::Done(outcome) => self.outcome(outcome),
            _ => Ok(()),
        }
    }

    /// What a call would do, for the user to approve. The question comes below it.
    pub(crate) fn asked(&mut self, call: &ToolCall, summary: &str) -> Result<(), Failure> {
        self.end()?;
        let look = self.screen.measured().look.unwrap_or(Look::PLAIN);
        let mut text = format!("{}\n", harmless(summary).replace('\n', " "));
        for line in preview::lines(call, look) {
            text.push_str(&line);
            text.push('\n');
        }
        self.screen.beside(&text)
    }

    /// Finishes what is on the screen: the turn has ended or was interrupted.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        self.end_text()?;
        self.unmark()
    }

    fn model(&mut self, event: &Event) -> Result<(), Failure> {
        match event {
            Event::Text(text) if !text.is_empty() => self.text(text),
            Event::Thinking(text) if !text.is_empty() => self.thought(text),
            Event::Restarted { attempt } => self.note(&format!(
                "the answer was cut off; attempt {attempt}, from its beginning:"
            )),
            _ => Ok(()),
        }
    }

    fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.unmark()?;
        if !matches!(self.state, State::Text(_)) {
            self.end_text()?;
            let rendering = self.screen.look.map(Rendering::new).map(Box::new);
            self.state = State::Text(rendering);
        }
        if let State::Text(Some(rendering)) = &mut self.state {
            let mut out = String::new();
            if let Some(look) = self.screen.measured().look {
                out.push_str(&rendering.resized(look));
            }
            out.push_str(&rendering.push(text));
            return self.screen.write(&out);
        }
        self.is_line_open = !text.ends_with('\n');
        self.screen.write(&self.screen.plain(text))
    }

    fn thought(&mut self, text: &str) -> Result<(), Failure> {
        if !self.screen.console.is_stdout_terminal || self.thinking == Thinking::Hide {
            return Ok(());
        }
        self.unmark()?;
        if !matches!(self.state, State::Thinking) {
            self.end_text()?;
            self.state = State::Thinking;
        }
        self.is_line_open = !text.ends_with('\n');
        let text = match self.thinking {
            Thinking::Dim => self.screen.dimmed(text),
            Thinking::Show | Thinking::Hide => self.screen.plain(text).into_owned(),
        };
        self.screen.write(&text)
    }

    /// Ends the text or the thinking that is on the screen.
    fn end_text(&mut self) -> Result<(), Failure> {
        let end = match std::mem::replace(&mut self.state, State::Nothing) {
            State::Text(Some(mut rendering)) => rendering.end(),
            State::Thinking if self.is_line_open => "\n\n".to_owned(),
            State::Thinking => "\n".to_owned(),
            State::Text(None) if self.is_line_open => "\n".to_owned(),
            State::Text(None) | State::Nothing => String::new(),
        };
        self.is_line_open = false;
        self.screen.write(&end)
    }

    fn unmark(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_marked) {
            self.screen.unmark()?;
        }
        Ok(())
    }

    /// A call in one line.
    fn called(&self, call: &ToolCall, output: &ToolOutput, took: Duration) -> String {
        let result = if output.is_error {
            let reason = output.text.lines().next().unwrap_or_default();
            format!("failed: {reason}")
        } else {
            format!("{} bytes", words::number(output.text.len() as u64))
        };
        // Less than a second is no news.
        let took = match took.as_secs() {
            0 => String::new(),
            _ => format!(", {}", words::duration(took)),
        };
        let look = self.screen.look.unwrap_or(Look::PLAIN);
        let dot = if look.has_unicode { "●" } else { "*" };
        let line = format!("{dot} {}: {result}{took}", called(call));
        words::shortened(&line, look.columns.saturating_sub(2))
    }

    fn outcome(&mut self, outcome: &AgentOutcome) -> Result<(), Failure> {
        self.end()?;
        match outcome {
            AgentOutcome::CutOff(_) => {
                self.note("the answer was cut off: it reached the length limit")
            }
            AgentOutcome::Declined { category, .. } => self.note(&match category {
                Some(category) => format!("the model declined to answer ({category})"),
                None => "the model declined to answer".to_owned(),
            }),
            AgentOutcome::StepLimit { steps, .. } => {
                self.note(&format!("stopped after {steps} steps; /retry continues"))
            }
            AgentOutcome::WaitsForApproval { calls } => self.note(&format!(
                "{} for your approval; /retry asks again",
                match calls.len() {
                    1 => "a call waits".to_owned(),
                    calls => format!("{calls} calls wait"),
                }
            )),
            _ => Ok(()),
        }
    }
}

impl Screen {
    /// The text as it is, without what could steer a terminal if there is one.
    fn plain<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        if self.console.is_stdout_terminal {
            harmless(text)
        } else {
            text.into()
        }
    }
}

/// Name and arguments of a call: `read_file src/main.rs`.
pub(super) fn called(call: &ToolCall) -> String {
    let arguments = match &call.input {
        ToolInput::Text(text) => text.prefix(1_000).into_owned(),
        ToolInput::Json(json) => {
            // The first argument is the most telling one.
            let first = json
                .object()
                .find_map(|(_, value)| value.as_text().map(|text| text.prefix(1_000).into_owned()));
            first.unwrap_or_else(|| match json.as_str() {
                "{}" => String::new(),
                json => json.to_owned(),
            })
        }
    };
    let arguments = words::shortened(&arguments, ARGUMENTS_MAX);
    format!("{} {arguments}", call.name).trim_end().to_owned()
}
