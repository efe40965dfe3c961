//! What a caller says, as messages; and whether the provider would take them.

use throughline_engine::{CompactionSettings, Time};
use throughline_memory::notes;
use throughline_providers::client::Client;
use throughline_store::Change;
use throughline_transcript::catalogue::Model;
use throughline_transcript::check::{CheckOptions, Finding, check_text};
use throughline_transcript::digest::Chain;
use throughline_transcript::json::Raw;
use throughline_transcript::message::{Message, ToolCall};
use throughline_transcript::request::message::{self, ToolOutput};
use throughline_transcript::request::{Frame, Marks};
use throughline_transcript::wire::Wire;

use crate::core;

/// The change with which a session begins behind messages from elsewhere, said at the `times` that are known; or the
/// rule that they break.
pub(super) fn history(
    raws: &[Raw],
    times: &[Option<i64>],
    frame: &Frame,
    checker: &RequestChecker<'_>,
    at: Time,
    result_bytes_max: usize,
    settings: &CompactionSettings,
) -> Result<Change, String> {
    let wire = frame.wire();
    let mut messages = core::read(raws, wire, 0, result_bytes_max)
        .map_err(|index| format!("message {index} is not a message"))?;
    for (read, at_ms) in messages.iter_mut().zip(times) {
        read.message.at_ms = *at_ms;
    }
    let append = core::append(&messages, 0, Chain::new(), at, settings.counter);
    // With what would be said next, so that calls at the end are answered.
    let messages: Vec<Message> = messages.into_iter().map(|read| read.message).collect();
    let next = user_after(wire, &open_calls(&messages), "-");
    let sent = messages.iter().filter_map(|message| message.raw.as_ref());
    let body = frame.compose(None, sent.chain(&next), Marks::default());
    match checker.broken_rule(&body, frame) {
        Some(finding) => Err(finding),
        None => Ok(append),
    }
}

/// What a user says over calls that are open.
pub(super) fn user_after(wire: Wire, open: &[ToolCall], text: &str) -> Vec<Raw> {
    if open.is_empty() {
        return vec![message::user(wire, text)];
    }
    let outputs: Vec<ToolOutput> = open
        .iter()
        .map(|call| ToolOutput {
            call_id: call.id.to_string(),
            text: notes::NOT_RUN.to_owned(),
            is_error: true,
        })
        .collect();
    message::tool_outputs(wire, &outputs, Some(text))
}

/// Calls of the last turn that have no result.
pub(super) fn open_calls(tail: &[Message]) -> Vec<ToolCall> {
    let mut answered = Vec::new();
    let mut open = Vec::new();
    for message in tail.iter().rev() {
        answered.extend(
            message
                .tool_results()
                .map(|result| result.call_id.to_string()),
        );
        let mut calls: Vec<ToolCall> = message
            .tool_calls()
            .filter(|call| !call.is_server_side)
            .cloned()
            .collect();
        calls.reverse();
        open.extend(calls);
        if message.begins_turn() {
            break;
        }
    }
    open.retain(|call| !answered.iter().any(|id| *id == *call.id));
    open.reverse();
    open
}

/// Knows what the provider would refuse, of requests to one model with the headers of one client.
pub(super) struct RequestChecker<'a> {
    pub(super) client: &'a Client,
    pub(super) model: Option<&'a Model>,
}

impl RequestChecker<'_> {
    /// The first rule that a request breaks and that its frame alone does not: what the caller sets there is for the
    /// provider to judge.
    pub(super) fn broken_rule(&self, body: &str, frame: &Frame) -> Option<String> {
        let wire = self.client.wire();
        let betas: Vec<&str> = self.client.betas().iter().map(String::as_str).collect();
        let options = CheckOptions {
            model: self.model,
            betas: Some(&betas),
            ..CheckOptions::default()
        };
        let report = check_text(body, wire, &options);
        report.errors().next()?;
        let head = check_text(&frame.head(), wire, &options);
        let is_new = |finding: &&Finding| head.errors().all(|known| known.code != finding.code);
        let finding = report.errors().find(is_new)?;
        Some(format!("{}: {}", finding.path, finding.message))
    }
}
