//! A compaction that the model asks for.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use throughline_engine::{CompactionOutcome, Requester};

use crate::agent::tool::{CallContext, Tool, ToolError};

/// A memory that a model makes can take so long.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The tool `compact_context`.
#[derive(Clone, Copy, Debug)]
pub struct CompactContext;

/// Lets the model have what is behind it compacted when a piece of work is done, before its context is full. The memory
/// is there from the next request on; the call itself and what comes after stay as they are.
#[must_use]
pub fn compact_context() -> CompactContext {
    CompactContext
}

/// What the memory is to be about.
#[derive(Deserialize, JsonSchema)]
#[schemars(description = "")]
pub struct CompactInput {
    /// What the coming work needs most, in some words.
    focus: Option<String>,
}

impl Tool for CompactContext {
    type Input = CompactInput;

    fn name(&self) -> &str {
        "compact_context"
    }

    fn description(&self) -> &str {
        "Puts a short memory in the place of the older part of this conversation, to make room. Call it when a piece of \
         work is finished and its details are not needed any more; not in the middle of it. Nothing is lost: the \
         original messages are archived."
    }

    fn timeout(&self, _: &CompactInput) -> Option<Duration> {
        Some(TIMEOUT)
    }

    async fn call(&self, input: CompactInput, context: CallContext) -> Result<String, ToolError> {
        let asked = context
            .session
            .compact_by(Requester::Model, input.focus.as_deref());
        match asked.await? {
            CompactionOutcome::Committed { .. } => {
                Ok("Done: a memory replaces the older messages from now on.".to_owned())
            }
            CompactionOutcome::Joined | CompactionOutcome::Prepared => {
                Ok("A memory is being made already; it is used when it is there.".to_owned())
            }
            CompactionOutcome::Refused { reason } => Err(ToolError::new(format!(
                "nothing was compacted: {reason}; go on with the work"
            ))),
            _ => Err(ToolError::new(
                "the compaction was given up; go on with the work",
            )),
        }
    }
}
