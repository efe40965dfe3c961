//! A call to the model: the admitted request, the question that a wire format finds in it, and the answer with its
//! moments. The simulator and the wire formats share these types; this module imports neither.

use std::sync::Arc;
use std::time::Duration;

use throughline_transcript::catalogue::{Model, Money};
use throughline_transcript::json::Raw;
use throughline_transcript::usage::Usage;
use throughline_transcript::wire::Wire;

use crate::cache::{Breakpoints, Split};
use crate::faults::Fault;
use crate::limits::RemainingLimits;
use crate::persona::Briefing;
use crate::prompt::{Key, Lifetime, Prompt, Scale};
use crate::reply::Answer;
use crate::stream::Frame;

/// An admitted request.
pub(crate) struct Call {
    pub(crate) at: Duration,
    pub(crate) wire: Wire,
    pub(crate) credential: Key,
    pub(crate) body: Raw,
    pub(crate) model: Arc<Model>,
    pub(crate) scale: Scale,
}

/// What the model answers, as the wire format finds it in the request.
pub(crate) struct Question {
    pub(crate) prompt: Prompt,
    /// The prefix that the reply's thinking is bound to.
    pub(crate) prefix: Key,
    /// The messages as the persona reads them.
    pub(crate) briefing: Briefing,
    pub(crate) breakpoints: Breakpoints,
    pub(crate) lifetime: Lifetime,
    /// Most output, tokens.
    pub(crate) output_max: u64,
    pub(crate) stop_sequences: Vec<String>,
    pub(crate) thinks: ThinkingMode,
    /// Whether the provider compacts instead of replying.
    pub(crate) is_compaction: bool,
    /// Ids of tool calls in use.
    pub(crate) call_ids: Vec<String>,
}

/// Whether and how the model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThinkingMode {
    Off,
    /// It thinks, and the text is withheld.
    Hidden,
    Shown,
}

/// An answer with its moments.
pub(crate) struct Turn {
    pub(crate) answer: Answer,
    pub(crate) split: Split,
    pub(crate) usage: Usage,
    pub(crate) cost: Option<Money>,
    pub(crate) first_after: Duration,
    pub(crate) fault: Option<Fault>,
    pub(crate) left: Option<RemainingLimits>,
}

/// What an endpoint returns.
pub(crate) enum Output {
    /// A JSON body, at once.
    Json(serde_json::Value),
    /// The whole answer of the model.
    Whole(Box<Turn>, serde_json::Value),
    /// The answer of the model, as a stream.
    Stream(Box<Turn>, Vec<Frame>),
}

/// Models whose thinking can be exchanged: here each model is its own family.
pub(crate) fn family(model: &Model) -> &str {
    &model.id
}
