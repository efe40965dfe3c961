//! The loop: the model is asked, its calls are run, it is asked again.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use throughline_memory::notes;
use throughline_providers::stop::StopReason;
use throughline_transcript::message::ToolCall;
use throughline_transcript::request::message::ToolOutput;
use tokio::sync::Mutex;

use super::Agent;
use super::approval::Approver;
use super::calls::{self, CallResults};
use super::event::{AgentError, AgentEvent, AgentOutcome};
use super::tools::Tools;
use super::turn::Teller;
use crate::error::SendError;
use crate::session::{Session, TurnAnswer, TurnEvent, UserInput};

/// After this many answers in a row that are cut off in the middle of a call, the turn ends.
const CUT_ANSWERS_MAX: usize = 3;

/// What an agent may do at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) steps_max: usize,
    pub(super) call_timeout: Duration,
    pub(super) parallel: usize,
}

/// An agent without its session.
pub(super) struct Parts {
    pub(super) tools: Tools,
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) limits: Limits,
}

impl Parts {
    pub(super) fn on(self, session: Session) -> Agent {
        Agent {
            inner: Arc::new(Inner {
                session,
                tools: self.tools,
                approver: self.approver,
                limits: self.limits,
                progress: Mutex::new(Progress::default()),
            }),
        }
    }
}

pub(super) struct Inner {
    pub(super) session: Session,
    pub(super) tools: Tools,
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) limits: Limits,
    /// Locked by the turn that is under way.
    progress: Mutex<Progress>,
}

/// How far the open calls have come.
#[derive(Default)]
pub(super) struct Progress {
    /// Ids of those that are known not to have begun.
    pub(super) untouched: HashSet<String>,
}

/// What is to be done next.
enum Next {
    Ask(UserInput),
    Run {
        calls: Vec<ToolCall>,
        /// What else the model is to be told.
        note: Option<String>,
    },
}

impl Inner {
    pub(super) async fn send(
        self: Arc<Self>,
        input: UserInput,
        teller: Teller,
    ) -> Result<AgentOutcome, AgentError> {
        let mut progress = self.progress.try_lock().map_err(|_| AgentError::Busy)?;
        let input = self.behind_open_calls(input, &progress).await?;
        self.work(Next::Ask(input), &mut progress, &teller).await
    }

    pub(super) async fn go_on(self: Arc<Self>, teller: Teller) -> Result<AgentOutcome, AgentError> {
        let mut progress = self.progress.try_lock().map_err(|_| AgentError::Busy)?;
        let calls = self.session.open_calls().await?;
        let first = if calls.is_empty() {
            Next::Ask(UserInput::Again)
        } else {
            Next::Run { calls, note: None }
        };
        match self.work(first, &mut progress, &teller).await {
            Err(AgentError::Send(SendError::Empty)) => Err(AgentError::NothingOpen),
            result => result,
        }
    }

    /// Words of the user's, with results before them for calls that are open.
    async fn behind_open_calls(
        &self,
        input: UserInput,
        progress: &Progress,
    ) -> Result<UserInput, AgentError> {
        let UserInput::Text(text) = input else {
            return Ok(input);
        };
        let open = self.session.open_calls().await?;
        if open.is_empty() || text.trim().is_empty() {
            return Ok(text.into());
        }
        let outputs = open
            .iter()
            .map(|call| ToolOutput {
                call_id: call.id.to_string(),
                text: match progress.untouched.contains(&*call.id) {
                    true => notes::NOT_RUN,
                    false => notes::BROKEN_OFF,
                }
                .to_owned(),
                is_error: true,
            })
            .collect();
        Ok(UserInput::ToolOutputs {
            outputs,
            text: Some(text),
        })
    }

    async fn work(
        &self,
        mut next: Next,
        progress: &mut Progress,
        teller: &Teller,
    ) -> Result<AgentOutcome, AgentError> {
        let mut steps = 0;
        let mut cut_answers = 0;
        loop {
            next = match next {
                Next::Ask(input) => {
                    steps += 1;
                    let answer = self.ask(input, progress, teller).await?;
                    cut_answers = if is_cut(&answer) { cut_answers + 1 } else { 0 };
                    match self.after(answer, steps, cut_answers) {
                        ControlFlow::Continue(next) => next,
                        ControlFlow::Break(outcome) => return Ok(outcome),
                    }
                }
                Next::Run { calls, note } => {
                    match calls::run(self, calls, progress, teller).await {
                        CallResults::Outputs { outputs, said } => {
                            let text: Vec<String> = said.into_iter().chain(note).collect();
                            Next::Ask(UserInput::ToolOutputs {
                                outputs,
                                text: (!text.is_empty()).then(|| text.join("\n\n")),
                            })
                        }
                        CallResults::Waiting(calls) => {
                            return Ok(AgentOutcome::WaitsForApproval { calls });
                        }
                    }
                }
            };
        }
    }

    /// One request to the model.
    async fn ask(
        &self,
        input: UserInput,
        progress: &mut Progress,
        teller: &Teller,
    ) -> Result<TurnAnswer, AgentError> {
        let mut turn = self.session.send(input).await?;
        while let Some(event) = turn.next().await {
            match event? {
                TurnEvent::Model(event) => teller.tell(AgentEvent::Model(event)).await,
                TurnEvent::Compacted => teller.tell(AgentEvent::Compacted).await,
                TurnEvent::Done(answer) => {
                    let calls = answer.tool_calls();
                    progress.untouched = calls.iter().map(|call| call.id.to_string()).collect();
                    teller.tell(AgentEvent::Answered(answer.clone())).await;
                    return Ok(*answer);
                }
            }
        }
        Err(AgentError::Send(SendError::Closed))
    }

    /// What follows from an answer.
    fn after(
        &self,
        answer: TurnAnswer,
        steps: usize,
        cut_answers: usize,
    ) -> ControlFlow<AgentOutcome, Next> {
        if let Some(StopReason::Refusal { category }) = answer.stop() {
            let category = category.clone();
            return ControlFlow::Break(AgentOutcome::Declined { answer, category });
        }
        let calls = answer.tool_calls();
        let is_cut = is_cut(&answer);
        let wants_more = !calls.is_empty()
            || answer.reply.cut_calls > 0
            || answer.stop() == Some(&StopReason::WindowExceeded)
            // It was cut off in what is not shown: thinking, or the beginning of a call.
            || (is_cut && answer.text().trim().is_empty());
        if cut_answers >= CUT_ANSWERS_MAX || (is_cut && !wants_more) {
            return ControlFlow::Break(AgentOutcome::CutOff(answer));
        }
        if !wants_more {
            return ControlFlow::Break(AgentOutcome::Done(answer));
        }
        if steps >= self.limits.steps_max {
            return ControlFlow::Break(AgentOutcome::StepLimit { steps, calls });
        }
        let note = is_cut.then(|| notes::CUT_OFF.to_owned());
        ControlFlow::Continue(match (calls.is_empty(), note) {
            (true, Some(note)) => Next::Ask(note.into()),
            (_, note) => Next::Run { calls, note },
        })
    }
}

/// Whether something of the answer is missing at its end.
fn is_cut(answer: &TurnAnswer) -> bool {
    answer.reply.cut_calls > 0
        || matches!(
            answer.stop(),
            Some(StopReason::MaxTokens | StopReason::WindowExceeded)
        )
}
