//! What a turn of an agent tells, and how it ends.

use std::borrow::Cow;
use std::time::Duration;

use throughline_providers::reply::Event;
use throughline_transcript::message::ToolCall;
use throughline_transcript::request::message::ToolOutput;

use crate::error::{SendError, SessionError};
use crate::session::TurnAnswer;

/// Something that happens in a turn.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AgentEvent {
    /// What the provider sends, as it comes.
    Model(Event),
    /// The request was too large for the provider, and is made again from a memory. What arrived of this answer is void.
    Compacted,
    /// An answer of the model is complete and stored. Calls in it come next, if there are any.
    Answered(Box<TurnAnswer>),
    /// The approver is asked whether a call may be run.
    ApprovalAsked {
        /// The call.
        call: ToolCall,
        /// What would be done, in one line.
        summary: String,
    },
    /// A call begins.
    CallStarted {
        /// The call.
        call: ToolCall,
    },
    /// A call has its result: in the order in which calls end. Calls that were not run have one too.
    CallEnded {
        /// The call.
        call: ToolCall,
        /// What the model is told.
        output: ToolOutput,
        /// How long it ran.
        took: Duration,
    },
    /// The turn is over. The last event.
    Done(Box<AgentOutcome>),
}

/// How a turn has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AgentOutcome {
    /// The model has said what it wanted to say.
    Done(TurnAnswer),
    /// The last answer is cut off: the limit of an answer was reached, or the window was full. What there is of it is
    /// stored; a message that says so has the model go on.
    CutOff(TurnAnswer),
    /// The model, or a filter, declined. The same again would be declined again.
    Declined {
        /// What was said.
        answer: TurnAnswer,
        /// What for, where that is told.
        category: Option<String>,
    },
    /// The model has been asked as often as it may be in one turn. Its last calls are open and were not run:
    /// [`Agent::go_on`](super::Agent::go_on) runs them; the next message answers them as not run.
    StepLimit {
        /// How often.
        steps: usize,
        /// The calls.
        calls: Vec<ToolCall>,
    },
    /// Calls wait for an approval. None of the answer's calls was run; all are open, also after a restart.
    /// [`Agent::go_on`](super::Agent::go_on) asks again; the next message answers them as not run.
    WaitsForApproval {
        /// The calls without a decision.
        calls: Vec<ToolCall>,
    },
}

impl AgentOutcome {
    /// What the model said last, or, where it said nothing, a sentence that says why. Never empty.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        if let Some(answer) = self.answer()
            && !answer.text().trim().is_empty()
        {
            return Cow::Borrowed(answer.text());
        }
        match self {
            Self::Done(_) => "The model ended its turn without words.".into(),
            Self::CutOff(_) => "The answer was cut off before its first word.".into(),
            Self::Declined {
                category: Some(category),
                ..
            } => format!("The model declined to answer ({category}).").into(),
            Self::Declined { category: None, .. } => "The model declined to answer.".into(),
            Self::StepLimit { steps, calls } => {
                let calls = names(calls);
                format!("The turn ended at its limit of {steps} requests; not run: {calls}.").into()
            }
            Self::WaitsForApproval { calls } => {
                format!("The turn waits for an approval of {}.", names(calls)).into()
            }
        }
    }

    /// The last answer of the model; none where its calls of tools are still open.
    #[must_use]
    pub fn answer(&self) -> Option<&TurnAnswer> {
        match self {
            Self::Done(answer) | Self::CutOff(answer) | Self::Declined { answer, .. } => {
                Some(answer)
            }
            Self::StepLimit { .. } | Self::WaitsForApproval { .. } => None,
        }
    }
}

fn names(calls: &[ToolCall]) -> String {
    let names: Vec<String> = calls
        .iter()
        .map(|call| format!("`{}`", call.name))
        .collect();
    names.join(", ")
}

/// A turn failed. What was said and done until then is stored; [`Agent::go_on`](super::Agent::go_on) resumes it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// Another turn of the agent is under way.
    #[error("the agent is working on another message already")]
    Busy,
    /// Everything is answered, and no call is open.
    #[error("there is nothing to go on with")]
    NothingOpen,
    /// The model was not asked, or did not answer.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The session cannot be read.
    #[error(transparent)]
    Session(#[from] SessionError),
}
