//! Answers of OpenAI Responses.
//!
//! The output is a list of items. In a stream each is announced by `response.output_item.added`, grows, and comes
//! whole with `response.output_item.done`: that form is the one to send back, as encrypted reasoning is only complete
//! there. `response.completed`, `.incomplete` or `.failed` ends the answer and repeats everything.

use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::usage::UsageReport;

use super::literal::{Literal, filled, is_json, string};
use super::{DecodeError, PARTS_MAX, malformed, present, push_text, raw};
use crate::reply::{Event, Reply};
use crate::stop::StopReason;

/// A streamed answer so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ResponsesDecoder {
    is_started: bool,
    model: Option<String>,
    id: Option<String>,
    items: Vec<Item>,
    /// The `response` of the event that ends the answer.
    end: Option<Raw>,
}

/// An item that is not complete yet.
#[derive(Clone, Debug)]
struct Item {
    index: Option<u64>,
    /// As announced.
    added: Raw,
    /// As it came whole.
    done: Option<Raw>,
    /// Texts of a message, by their `content_index`.
    texts: Vec<(u64, Literal)>,
    has_input: bool,
}

impl ResponsesDecoder {
    pub(super) fn is_done(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn event(
        &mut self,
        name: &str,
        data: &Raw,
        events: &mut Vec<Event>,
    ) -> Result<(), DecodeError> {
        let kind = filled(data, "type").unwrap_or_else(|| name.to_owned());
        // Errors of gateways have no type.
        if kind == "error"
            || name == "error"
            || (kind.is_empty() && present(data, "error").is_some())
        {
            return Err(DecodeError::Refused {
                body: data.as_bytestring().clone(),
            });
        }
        match kind.as_str() {
            "response.created" | "response.in_progress" | "response.queued" => {
                if let Some(response) = data.field("response") {
                    self.start(&response, events);
                }
            }
            "response.output_item.added" => {
                self.add(data, events)?;
            }
            "response.output_item.done" => self.item_done(data, events)?,
            "response.output_text.delta" | "response.refusal.delta" => {
                if let Some(delta) = data.field("delta") {
                    push_text(&delta, Event::Text, events);
                    if kind == "response.output_text.delta" {
                        self.grow(data, &delta)?;
                    }
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                if let Some(delta) = data.field("delta") {
                    push_text(&delta, Event::Thinking, events);
                }
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                if let (Some(index), Some(delta)) = (self.place_of(data), data.field("delta")) {
                    if let Some(item) = self.items.get_mut(index) {
                        item.has_input = true;
                    }
                    push_text(&delta, |delta| Event::ToolInput { index, delta }, events);
                }
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                let Some(response) = data.field("response") else {
                    return malformed("the last event has no response");
                };
                self.start(&response, events);
                refused(&response)?;
                if let Some(reported) = usage_of(&response) {
                    events.push(Event::Usage(reported));
                }
                self.end = Some(response);
            }
            // Progress of hosted tools, parts, annotations: all of it comes again with the item.
            _ => {}
        }
        Ok(())
    }

    pub(super) fn reply(&self) -> Result<Reply, DecodeError> {
        let Some(end) = &self.end else {
            return Err(DecodeError::CutOff);
        };
        let done: Vec<Raw> = self.done_items();
        let listed: Vec<Raw> = end.field("output").iter().flat_map(Raw::array).collect();
        // Some backends leave the list at the end empty, some servers do not send the items one by one.
        let items = if done.len() >= listed.len() {
            done
        } else {
            listed
        };
        let mut reply = finished(end, items)?;
        reply.model = reply.model.or_else(|| self.model.clone());
        reply.id = reply.id.or_else(|| self.id.clone());
        Ok(reply)
    }

    pub(super) fn partial(&self) -> Reply {
        let mut order: Vec<&Item> = self.items.iter().collect();
        order.sort_by_key(|item| item.index.unwrap_or(u64::MAX));
        let mut reply = Reply::empty();
        let mut items = Vec::new();
        for item in order {
            match &item.done {
                Some(done) => items.push(done.clone()),
                None if is_call(&item.added) => reply.cut_calls += 1,
                None => items.extend(item.unfinished_message()),
            }
        }
        drop_unfollowed_reasoning(&mut items);
        reply.messages = items;
        reply.model.clone_from(&self.model);
        reply.id.clone_from(&self.id);
        reply
    }

    fn start(&mut self, response: &Raw, events: &mut Vec<Event>) {
        self.model = filled(response, "model").or(self.model.take());
        self.id = filled(response, "id").or(self.id.take());
        if !self.is_started {
            self.is_started = true;
            events.push(Event::Started {
                model: self.model.clone(),
                id: self.id.clone(),
            });
        }
    }

    fn add(&mut self, data: &Raw, events: &mut Vec<Event>) -> Result<usize, DecodeError> {
        let Some(item) = data
            .field("item")
            .filter(|item| item.kind() == Kind::Object)
        else {
            return malformed("an item without content");
        };
        if self.items.len() >= PARTS_MAX {
            return Err(DecodeError::TooLarge);
        }
        let at = self.items.len();
        if is_call(&item) {
            events.push(Event::ToolCall {
                index: at,
                id: string(&item, "call_id"),
                name: string(&item, "name"),
            });
        }
        self.items.push(Item {
            index: data.field("output_index").and_then(|index| index.as_u64()),
            added: item,
            done: None,
            texts: Vec::new(),
            has_input: false,
        });
        Ok(at)
    }

    fn item_done(&mut self, data: &Raw, events: &mut Vec<Event>) -> Result<(), DecodeError> {
        let index = match self.place_of(data) {
            Some(at) => at,
            None => self.add(data, events)?,
        };
        let (Some(done), Some(item)) = (data.field("item"), self.items.get_mut(index)) else {
            return malformed("an item without content");
        };
        if is_call(&done) && !item.has_input {
            for name in ["arguments", "input"] {
                if let Some(input) = done.field(name) {
                    push_text(&input, |delta| Event::ToolInput { index, delta }, events);
                }
            }
        }
        item.done = Some(done);
        events.push(Event::BlockDone { index });
        Ok(())
    }

    fn grow(&mut self, data: &Raw, delta: &Raw) -> Result<(), DecodeError> {
        let part = data
            .field("content_index")
            .and_then(|index| index.as_u64())
            .unwrap_or(0);
        let Some(item) = self.place_of(data).and_then(|at| self.items.get_mut(at)) else {
            return Ok(());
        };
        if let Some((_, text)) = item.texts.iter_mut().find(|(index, _)| *index == part) {
            text.push(delta);
        } else if item.texts.len() < PARTS_MAX {
            let mut text = Literal::default();
            text.push(delta);
            item.texts.push((part, text));
        } else {
            return Err(DecodeError::TooLarge);
        }
        Ok(())
    }

    /// The open item that an event is about: by its index, else by its id, else the last one.
    fn place_of(&self, data: &Raw) -> Option<usize> {
        let is_open = |item: &Item| item.done.is_none();
        if let Some(index) = data.field("output_index").and_then(|index| index.as_u64()) {
            return self
                .items
                .iter()
                .rposition(|item| item.index == Some(index) && is_open(item));
        }
        let id = filled(data, "item_id")
            .or_else(|| data.field("item").and_then(|item| filled(&item, "id")));
        let by_id = id.and_then(|id| {
            self.items
                .iter()
                .rposition(|item| is_open(item) && string(&item.added, "id") == id)
        });
        by_id.or_else(|| {
            let kind = data.field("item").map(|item| string(&item, "type"));
            self.items.iter().rposition(|item| {
                is_open(item)
                    && kind
                        .as_ref()
                        .is_none_or(|kind| string(&item.added, "type") == *kind)
            })
        })
    }

    fn done_items(&self) -> Vec<Raw> {
        let mut order: Vec<(u64, &Raw)> = self
            .items
            .iter()
            .filter_map(|item| Some((item.index.unwrap_or(u64::MAX), item.done.as_ref()?)))
            .collect();
        order.sort_by_key(|(index, _)| *index);
        order.into_iter().map(|(_, item)| item.clone()).collect()
    }
}

impl Item {
    /// A message of which only texts have arrived.
    fn unfinished_message(&self) -> Option<Raw> {
        if string(&self.added, "type") != "message" {
            return None;
        }
        let texts: Vec<String> = self
            .texts
            .iter()
            .filter(|(_, text)| !text.is_blank())
            .map(|(_, text)| {
                let text = text.quoted();
                format!(r#"{{"type":"output_text","text":{text},"annotations":[]}}"#)
            })
            .collect();
        if texts.is_empty() {
            return None;
        }
        let id = self
            .added
            .field("id")
            .filter(|id| id.kind() == Kind::String)
            .map(|id| format!(r#""id":{},"#, id.as_str()))
            .unwrap_or_default();
        raw(format!(
            r#"{{{id}"type":"message","role":"assistant","status":"incomplete","content":[{}]}}"#,
            texts.join(",")
        ))
    }
}

/// Reads an answer that was not streamed.
pub(super) fn read_whole(body: &Raw) -> Result<Reply, DecodeError> {
    refused(body)?;
    let Some(output) = body
        .field("output")
        .filter(|output| output.kind() == Kind::Array)
    else {
        return malformed("the answer has no output");
    };
    finished(body, output.array().collect())
}

/// `failed` and `cancelled` are no answers.
fn refused(response: &Raw) -> Result<(), DecodeError> {
    let status = string(response, "status");
    match present(response, "error") {
        Some(error) => Err(DecodeError::Refused {
            body: format!(r#"{{"error":{}}}"#, error.as_str()).into(),
        }),
        None if status == "failed" || status == "cancelled" => Err(DecodeError::Refused {
            body: format!(r#"{{"error":{{"message":"the response is {status}"}}}}"#).into(),
        }),
        None => Ok(()),
    }
}

/// The reply of a response that has ended.
fn finished(response: &Raw, mut items: Vec<Raw>) -> Result<Reply, DecodeError> {
    let mut reply = Reply::empty();
    let status = string(response, "status");
    let stop = match status.as_str() {
        "incomplete" => {
            let reason = present(response, "incomplete_details")
                .and_then(|details| filled(&details, "reason"));
            match reason.as_deref() {
                Some("max_output_tokens") | None => StopReason::MaxTokens,
                Some("content_filter") => StopReason::Refusal {
                    category: Some("content_filter".to_owned()),
                },
                Some(other) => StopReason::Other(other.to_owned()),
            }
        }
        "in_progress" | "queued" => return malformed("the response has not ended"),
        _ => stop_of(&items),
    };
    if status == "incomplete" {
        items.retain(|item| {
            let is_kept = !is_call(item) || is_whole_call(item);
            reply.cut_calls += usize::from(!is_kept);
            is_kept
        });
    }
    items.retain(|item| {
        string(item, "type") != "message"
            || item.field("content").is_none_or(|content| {
                content.kind() != Kind::Array || content.array().next().is_some()
            })
    });
    if status == "incomplete" {
        drop_unfollowed_reasoning(&mut items);
    }
    reply.messages = items;
    reply.stop = Some(stop);
    reply.usage = usage_of(response);
    reply.model = filled(response, "model");
    reply.id = filled(response, "id");
    reply.input_transformations = present(response, "input_transformations");
    reply.is_complete = true;
    Ok(reply)
}

/// Why a completed response stopped: by what it holds.
fn stop_of(items: &[Raw]) -> StopReason {
    let kind = |item: &Raw| string(item, "type");
    let is_answered = |call: &Raw| {
        let id = filled(call, "call_id");
        id.is_some()
            && items
                .iter()
                .any(|item| kind(item).ends_with("_output") && filled(item, "call_id") == id)
    };
    let waits = |item: &Raw| match kind(item).as_str() {
        "function_call" | "custom_tool_call" | "computer_call" | "local_shell_call"
        | "shell_call" | "apply_patch_call" => !is_answered(item),
        "tool_search_call" => string(item, "execution") == "client" && !is_answered(item),
        "mcp_approval_request" => true,
        _ => false,
    };
    if items.iter().any(waits) {
        return StopReason::ToolUse;
    }
    let is_refusal = |item: &Raw| {
        item.field("content").is_some_and(|content| {
            content
                .array()
                .any(|part| string(&part, "type") == "refusal")
        })
    };
    if items.iter().any(is_refusal) {
        return StopReason::Refusal { category: None };
    }
    if !items.is_empty() && items.iter().all(|item| kind(item) == "compaction") {
        return StopReason::Compaction;
    }
    StopReason::EndTurn
}

fn is_call(item: &Raw) -> bool {
    matches!(
        string(item, "type").as_str(),
        "function_call" | "custom_tool_call"
    )
}

fn is_whole_call(item: &Raw) -> bool {
    match filled(item, "status").as_deref() {
        Some("completed") => true,
        Some(_) => false,
        None => item
            .string_field("arguments")
            .is_some_and(|arguments| is_json(&arguments)),
    }
}

/// Reasoning must be followed by what it led to; at the end of what was cut there is nothing.
fn drop_unfollowed_reasoning(items: &mut Vec<Raw>) {
    while items
        .last()
        .is_some_and(|item| string(item, "type") == "reasoning")
    {
        items.pop();
    }
}

fn usage_of(response: &Raw) -> Option<UsageReport> {
    present(response, "usage").and_then(|usage| UsageReport::from_openai_responses(&usage))
}
