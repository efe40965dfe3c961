//! The calls of one answer: who approves them, how they run, what the model is told about them.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use throughline_memory::{cues, notes};
use throughline_transcript::message::ToolCall;
use throughline_transcript::request::message::ToolOutput;
use throughline_transcript::text::head_and_tail;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::approval::{Approval, ApprovalRequest, Decision};
use super::event::AgentEvent;
use super::run::{Inner, Progress};
use super::tool::CallContext;
use super::tools::{PreparedCall, ToolPanic};
use super::turn::Teller;

/// Of what a tool returns, this much is kept in the archive; bytes. Requests have less of it.
const OUTPUT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What became of calls.
pub(super) enum CallResults {
    /// All have results, in the order of the calls.
    Outputs {
        outputs: Vec<ToolOutput>,
        /// What the user said to calls that they refused, in their own words.
        said: Vec<String>,
    },
    /// None was run, because these could not be decided.
    Waiting(Vec<ToolCall>),
}

/// What to do with one call.
enum Plan {
    Run(PreparedCall),
    /// It is not run; the model is told this.
    Tell(String),
    /// The user refused it, and said this to it.
    Refuse(String),
}

/// A call that is to be run.
struct QueuedCall {
    place: usize,
    name: String,
    prepared: PreparedCall,
}

/// A call that has ended.
struct FinishedCall {
    place: usize,
    result: Result<String, String>,
    took: Duration,
}

pub(super) async fn run(
    inner: &Inner,
    calls: Vec<ToolCall>,
    progress: &mut Progress,
    teller: &Teller,
) -> CallResults {
    let mut plans = Vec::with_capacity(calls.len());
    let mut waiting = Vec::new();
    for call in &calls {
        match plan(inner, call, teller).await {
            Some(plan) => plans.push(plan),
            None => waiting.push(call.clone()),
        }
    }
    if !waiting.is_empty() {
        return CallResults::Waiting(waiting);
    }

    let mut outputs: Vec<Option<ToolOutput>> = vec![None; calls.len()];
    let mut queue = VecDeque::new();
    let mut said = Vec::new();
    for (place, plan) in plans.into_iter().enumerate() {
        let told = match plan {
            Plan::Run(prepared) => {
                queue.push_back(QueuedCall {
                    place,
                    name: calls[place].name.to_string(),
                    prepared,
                });
                continue;
            }
            Plan::Tell(text) => text,
            Plan::Refuse(reason) => {
                // Not in the result: there, anybody's words could pass for the user's.
                said.extend(Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty()));
                notes::DENIED.to_owned()
            }
        };
        let ended = FinishedCall {
            place,
            result: Err(told),
            took: Duration::ZERO,
        };
        end(ended, &calls, &mut outputs, teller).await;
    }
    said.dedup();
    // Whatever ends this ends the calls too.
    let cancel = CancellationToken::new();
    let _cancel = cancel.clone().drop_guard();
    let mut running = JoinSet::new();
    loop {
        while running.len() < inner.limits.parallel
            && let Some(queued) = queue.pop_front()
        {
            let call = &calls[queued.place];
            progress.untouched.remove(&*call.id);
            let context = CallContext {
                session: inner.session.clone(),
                call_id: call.id.to_string(),
                cancelled: cancel.child_token(),
            };
            let limit = queued.prepared.timeout.unwrap_or(inner.limits.call_timeout);
            teller
                .tell(AgentEvent::CallStarted { call: call.clone() })
                .await;
            running.spawn(one(queued, context, limit));
        }
        match running.join_next().await {
            Some(Ok(ended)) => end(ended, &calls, &mut outputs, teller).await,
            // Panics of tools are caught, and nothing else can end a call: its result is written below.
            Some(Err(_)) => {}
            None => break,
        }
    }
    let outputs = outputs.into_iter().zip(&calls).map(|(output, call)| {
        output.unwrap_or_else(|| output_of(call, Err(failed_inside(&call.name))))
    });
    CallResults::Outputs {
        outputs: outputs.collect(),
        said,
    }
}

/// What to do with a call; `None` if it cannot be decided now.
async fn plan(inner: &Inner, call: &ToolCall, teller: &Teller) -> Option<Plan> {
    let Some(tool) = inner.tools.find(&call.name) else {
        let names: Vec<&str> = inner.tools.names().collect();
        let names = match names.as_slice() {
            [] => "there are no tools".to_owned(),
            names => format!("there are: {}", names.join(", ")),
        };
        return Some(Plan::Tell(format!(
            "There is no tool named {}; {names}.",
            call.name
        )));
    };
    let tool = Arc::clone(tool);
    let prepared = std::panic::catch_unwind(AssertUnwindSafe(|| tool.prepare(&call.input)));
    let prepared = match prepared {
        Ok(Ok(prepared)) => prepared,
        Ok(Err(wrong)) => {
            return Some(Plan::Tell(format!(
                "The input does not fit the tool {}: {wrong}. The call was not run; make it again with an input that \
                 has the form of its schema.",
                call.name
            )));
        }
        Err(_) => return Some(Plan::Tell(failed_inside(&call.name))),
    };
    let Approval::Needed { summary } = &prepared.approval else {
        return Some(Plan::Run(prepared));
    };
    let Some(approver) = &inner.approver else {
        return Some(Plan::Tell(notes::NOBODY_TO_APPROVE.to_owned()));
    };
    teller
        .tell(AgentEvent::ApprovalAsked {
            call: call.clone(),
            summary: summary.clone(),
        })
        .await;
    let request = ApprovalRequest {
        call: call.clone(),
        summary: summary.clone(),
    };
    match approver.approve(request).await {
        Decision::Allow => Some(Plan::Run(prepared)),
        Decision::Deny { reason } => Some(Plan::Refuse(reason)),
        Decision::Later => None,
    }
}

fn failed_inside(name: &str) -> String {
    format!(
        "The tool {name} failed inside (a fault of its program). The same call would fail again: go another way, or tell \
         the user."
    )
}

/// What a tool says of its failure. It does not speak for the user: where it sounds like that, its name is put before it.
fn in_its_name(name: &str, error: &str) -> String {
    if cues::denial(error).is_some() || cues::interruption(error).is_some() {
        format!("The tool {name} says: {error}")
    } else {
        error.to_owned()
    }
}

async fn one(queued: QueuedCall, context: CallContext, limit: Duration) -> FinishedCall {
    let began = Instant::now();
    let _cancel = context.cancelled.clone().drop_guard();
    let call = (queued.prepared.run)(context);
    let result = match tokio::time::timeout(limit, call).await {
        Ok(Ok(Ok(text))) => Ok(text),
        Ok(Ok(Err(error))) => Err(in_its_name(&queued.name, error.message())),
        Ok(Err(ToolPanic)) => Err(failed_inside(&queued.name)),
        Err(_) => Err(format!(
            "The call was stopped after {} s, which is as long as it may take. Some of what it does may have been done. \
             Ask for less at a time.",
            limit.as_secs_f64()
        )),
    };
    FinishedCall {
        place: queued.place,
        result,
        took: began.elapsed(),
    }
}

async fn end(
    ended: FinishedCall,
    calls: &[ToolCall],
    outputs: &mut [Option<ToolOutput>],
    teller: &Teller,
) {
    let call = &calls[ended.place];
    let output = output_of(call, ended.result);
    outputs[ended.place] = Some(output.clone());
    teller
        .tell(AgentEvent::CallEnded {
            call: call.clone(),
            output,
            took: ended.took,
        })
        .await;
}

fn output_of(call: &ToolCall, result: Result<String, String>) -> ToolOutput {
    let is_error = result.is_err();
    let text = result.unwrap_or_else(|error| error);
    ToolOutput {
        call_id: call.id.to_string(),
        text: head_and_tail(&text, OUTPUT_BYTES_MAX).into_owned(),
        is_error,
    }
}
