//! Whole jobs, driven by scripted models.

mod cases;
mod generations;
mod reading;
mod trust;

use std::sync::Arc;

use throughline_transcript::json::Raw;
use throughline_transcript::message::{
    Block, Content, Message, Role, ToolCall, ToolInput, ToolResult,
};

use super::*;
use crate::compact::{Options, compact};
use crate::document::{Memory, Section};
use crate::render::markdown;

fn count() -> Count {
    Arc::new(|text: &str| text.len().div_ceil(4))
}

fn say(role: Role, text: &str) -> Message {
    Message::new(role, vec![Block::text(text)])
}

fn call(id: &str, name: &str, input: &str) -> Block {
    Block::new(Content::ToolCall(ToolCall {
        id: id.into(),
        name: name.into(),
        input: ToolInput::Json(Raw::parse(input).unwrap()),
        is_server_side: false,
    }))
}

fn result(id: &str, text: &str) -> Message {
    Message::new(
        Role::User,
        vec![Block::new(Content::ToolResult(ToolResult {
            call_id: id.into(),
            content: vec![Block::text(text)],
            is_error: None,
            is_server_side: false,
        }))],
    )
}

/// An order for all of `messages` after those that `prior` covers, with the draft that code makes of them.
fn order_after(messages: &[Message], prior: Option<&Memory>, limits: Limits) -> Order {
    let count = count();
    let draft = compact(
        messages,
        &Options {
            prior,
            ..Options::new(limits.memory_tokens_max, &|text: &str| count(text))
        },
    )
    .unwrap()
    .memory;
    let first_index = prior.map_or(0, |prior| prior.cover.messages);
    Order {
        prior: prior.cloned(),
        first_index,
        form: Form::Markdown,
        ..Order::new(
            messages[first_index..].to_vec(),
            draft,
            Style::Forked,
            limits,
            count,
        )
    }
}

fn order(messages: &[Message]) -> Order {
    order_after(messages, None, Limits::new(1_000, 100_000))
}

fn user_text(ask: &Ask) -> &str {
    match &ask.request {
        Request::Own { user, .. } => user,
        Request::Appended { instruction } => instruction,
    }
}

/// What a scripted model does.
enum Reply {
    Says(Answer),
    Fails(CallFailure),
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::Says(Answer::finished(text))
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self::Says(answer)
    }
}

impl From<FailureClass> for Reply {
    fn from(class: FailureClass) -> Self {
        Self::Fails(CallFailure::new(class))
    }
}

impl From<CallFailure> for Reply {
    fn from(failure: CallFailure) -> Self {
        Self::Fails(failure)
    }
}

/// Drives a job to its end; gives back what was asked.
fn drive(mut job: Job, mut model: impl FnMut(&Ask) -> Reply) -> (JobOutcome, Vec<Ask>) {
    let mut asks: Vec<Ask> = Vec::new();
    for _ in 0..1_000 {
        let Step::Ask(ask) = job.step() else {
            return (job.into_outcome().unwrap(), asks);
        };
        let ask = ask.clone();
        let reply = model(&ask);
        asks.push(ask);
        match reply {
            Reply::Says(answer) => job.answer(&answer),
            Reply::Fails(failure) => job.failed(failure),
        }
    }
    panic!("the job does not end");
}

/// Drives a job with replies in their order.
fn play(order: Order, replies: Vec<Reply>) -> (JobOutcome, Vec<Ask>) {
    let mut replies = replies.into_iter();
    drive(Job::new(order), move |_| {
        replies.next().expect("no more questions than replies")
    })
}

fn reasons(outcome: &JobOutcome) -> Vec<&'static str> {
    match &outcome.made_by {
        Maker::Draft { reasons } => reasons.iter().map(Reason::name).collect(),
        Maker::Model { .. } => Vec::new(),
    }
}

/// What holds for every outcome and every answer of a model.
#[track_caller]
fn check_promises(outcome: &JobOutcome, order: &Order) {
    let memory = &outcome.memory;
    let shown = markdown::render(memory);
    assert!(
        (order.count)(&shown) <= order.limits.memory_tokens_max,
        "{shown}"
    );
    assert_eq!(memory.cover, order.draft.cover);
    assert_eq!(memory.version, order.draft.version);
    let prior = order.prior.iter().flat_map(|prior| &prior.items);
    for rule in prior
        .chain(&order.draft.items)
        .filter(|item| item.entry.section().is_ledger())
    {
        let kept = memory.items.iter().find(|item| item.id == rule.id);
        assert_eq!(
            kept.map(|item| (&item.entry, item.origin)),
            Some((&rule.entry, rule.origin)),
            "{shown}"
        );
    }
    let ledger = memory.section(Section::Corrections).count();
    let drafted = order.draft.section(Section::Corrections).count();
    let before = order
        .prior
        .iter()
        .flat_map(|prior| prior.section(Section::Corrections));
    let gone = before.filter(|item| order.draft.items.iter().all(|other| other.id != item.id));
    assert_eq!(
        ledger,
        drafted + gone.count(),
        "nothing else is in the ledger"
    );
    let mut ids: Vec<&str> = memory.items.iter().map(|item| item.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), memory.items.len(), "ids are unique");
    assert!(memory.items.is_sorted_by_key(|item| item.entry.section()));
    assert!(Memory::from_json(&memory.to_json()).is_ok());
}

/// A short piece of work, with a rule of the user.
fn export() -> Vec<Message> {
    vec![
        say(
            Role::User,
            "The export must write semicolons, not commas. Never touch vendor/.",
        ),
        say(Role::Assistant, "Done in export.py, function write_rows."),
        say(Role::User, &"Sample row 1;2;3. ".repeat(1_800)),
        say(Role::Assistant, "The sample is read correctly."),
        say(Role::User, "Next: add a header row."),
    ]
}

const GOOD: &str = "## Goal\nCSV export\n## Decisions\nSemicolons, not commas\n## Files\nexport.py (write_rows)\n## Next\nadd a header row";

fn truncated() -> Reply {
    Answer {
        stop: Stop::Truncated,
        output_tokens: 50,
        ..Answer::finished("## Goal\nCSV ex")
    }
    .into()
}
