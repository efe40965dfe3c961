//! Makes memories with a model, as a job that does no I/O.
//!
//! A [`Job`] takes an [`Order`] and requests, [`Step`] by step, what to ask a model. The driver makes the
//! calls, waits where it says so and returns what came: an [`Answer`] or a [`CallFailure`]. The end is an
//! [`JobOutcome`]: always a memory, made by the model or, if nothing that it said could be used, by code alone. The same
//! order and the same answers give the same outcome.
//!
//! What a model says is never taken over as it is:
//!
//! 1. [`guard`] refuses what is no memory: blank, a skeleton, cut off, a refusal, an error text, a tool call, broken
//!    JSON, longer than what it sums up, in another language, going round in circles, or a copy of the prompt.
//! 2. Edits are applied by [`update::apply`](crate::update::apply), so that an item that no edit names stays as it is.
//! 3. The ledger is put in by code. The model can neither write it nor drop from it.
//! 4. Identifiers and quotations that the conversation does not have are taken out, with as little around them as
//!    possible, and so is what only a tool said where it would read like a wish of the user.
//! 5. What is missing of the latest request, of errors and of identifiers is put back from the memory that code made.
//! 6. Secrets are taken out, and the memory is cut to its size.
//!
//! # What it does not do
//!
//! It opens no connection, reads no clock and writes nothing. It does not know what a request of a provider looks like:
//! an [`Ask`] is texts, limits and a schema. It does not decide when a memory is made, nor which model makes it.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use throughline_memory::compact::{Options, compact};
//! use throughline_memory::summarise::{Answer, Form, Job, Limits, Maker, Order, Request, Step, Style};
//! use throughline_transcript::message::{Block, Message, Role};
//!
//! let messages = vec![
//!     Message::new(Role::User, vec![Block::text("The export must write semicolons, not commas.")]),
//!     Message::new(Role::Assistant, vec![Block::text("Done in export.py, function write_rows.")]),
//!     Message::new(Role::User, vec![Block::text("Sample row 1;2;3. ".repeat(200))]),
//! ];
//! let count = |text: &str| text.len() / 4;
//! let draft = compact(&messages, &Options::new(500, &count))?.memory;
//! let mut job = Job::new(Order {
//!     form: Form::Markdown,
//!     ..Order::new(messages, draft, Style::Forked, Limits::new(500, 20_000), Arc::new(count))
//! });
//! let Step::Ask(ask) = job.step() else { panic!("it has a question") };
//! let Request::Own { user, .. } = &ask.request else { panic!("it is a request of its own") };
//! assert!(user.contains("semicolons"));
//!
//! // Here the model would be called.
//! job.answer(&Answer::finished("## User Intent\n- Export with semicolons\n## Completed Work\n- export.py (write_rows)\n"));
//! let Some(outcome) = job.into_outcome() else { panic!("that was all") };
//! assert!(matches!(outcome.made_by, Maker::Model { .. }));
//! assert!(outcome.memory.items.iter().any(|item| item.entry.text().contains("semicolons, not commas")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::document::{Entry, Origin, Status};

mod answer;
mod ask;
mod forms;
mod guard;
mod job;
mod order;
mod outcome;
mod parse;
mod prompts;
mod reason;
mod repair;
mod source;
mod transcript;

pub use answer::{AnswerContent, AnswerForm, NewItem};
pub use ask::{Answer, Ask, CallFailure, Request, Schema, Step, Stop};
pub use forms::schema;
pub use guard::{Context, UsableAnswer, guard};
pub use job::Job;
pub use order::{Archive, Count, Form, Limits, Order, Redaction, Style};
pub use outcome::{Finding, Flaw, Gap, JobOutcome, Maker};
pub use prompts::{Name, PROMPT_BYTES_MAX, PromptError, Prompts};
pub use reason::{FailureClass, Fault, ModelSlot, Reason};
pub use source::Source;

/// The items of a memory in Markdown, with whose words they are as far as the form tells. What no longer holds is left
/// out.
pub(crate) fn read_items(text: &str) -> Vec<(Entry, Origin, Status)> {
    let Ok(AnswerContent::Whole(items)) = parse::parse(text, AnswerForm::Markdown) else {
        return Vec::new();
    };
    items
        .into_iter()
        .map(|item| {
            let is_models = item
                .line
                .as_deref()
                .is_some_and(|line| line.starts_with("[assistant] "));
            let origin = match item.entry {
                Entry::Task { .. } | Entry::Correction { .. } if !is_models => Origin::User,
                // Words of tools are data: what the form does not tell apart is theirs.
                Entry::ToolResult { .. } | Entry::Reference { .. } | Entry::Error { .. } => {
                    Origin::Tool
                }
                _ => Origin::Assistant,
            };
            (item.entry, origin, item.status)
        })
        .collect()
}

#[cfg(test)]
mod tests;
