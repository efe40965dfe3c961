//! Makes a memory of a given size from messages, in one call.
//!
//! ```
//! use throughline_memory::compact::{Form, Options, compact};
//! use throughline_transcript::message::{Block, Message, Role};
//!
//! let messages = [
//!     Message::new(Role::User, vec![Block::text("Port the importer to Go. Please never touch vendor/.")]),
//!     Message::new(Role::Assistant, vec![Block::text("I'll start with src/importer.go.")]),
//! ];
//! let count = |text: &str| text.len() / 4;
//! let compacted = compact(&messages, &Options::new(500, &count))?;
//! assert!(compacted.text.contains("never touch vendor/"));
//! assert!(count(&compacted.text) <= 500);
//! # Ok::<(), throughline_memory::compact::CompactError>(())
//! ```

use std::borrow::Cow;

use throughline_transcript::digest::{Chain, message_digest};
use throughline_transcript::message::Message;

use crate::document::Memory;
use crate::extract::{Extractor, Limit, excerpt, learn, redact_memory, takes_the_place};
use crate::redact::Redactor;
use crate::render::{markdown, object, restoring};
use crate::update::merge_linked;

/// How a memory is written out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// For people and models: [`markdown::render`].
    #[default]
    Markdown,
    /// The full document, the only form that can be read back: [`Memory::to_json`].
    Json,
    /// The compact JSON object: [`object::render`].
    Object,
    /// A block for a system prompt: [`restoring::system_block`].
    System,
    /// The first user message of a restored session: [`restoring::user_message`].
    UserMessage,
}

/// How a memory is made.
pub struct Options<'a> {
    /// Tokens that the rendering may have, a hard cap unless it is below the smallest useful memory: one item.
    pub tokens: usize,
    /// Counts tokens.
    pub count: &'a dyn Fn(&str) -> usize,
    /// What the cap is counted on.
    pub form: Form,
    /// Words that the user wants the memory to be about.
    pub focus: Option<&'a str>,
    /// Takes secrets out; without it they stay.
    pub redactor: Option<&'a Redactor>,
    /// The memory so far. Of the messages only those after its cover are read, if they begin with the messages that it
    /// covers.
    pub prior: Option<&'a Memory>,
    /// Folder that the session worked in, if it is known.
    pub cwd: Option<&'a str>,
}

impl<'a> Options<'a> {
    /// Markdown without focus and prior memory, secrets taken out by the embedded rules.
    #[must_use]
    pub fn new(tokens: usize, count: &'a dyn Fn(&str) -> usize) -> Self {
        Self {
            tokens,
            count,
            form: Form::Markdown,
            focus: None,
            redactor: Some(Redactor::embedded()),
            prior: None,
            cwd: None,
        }
    }
}

/// A memory, written out.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderedMemory {
    /// The memory.
    pub memory: Memory,
    /// Its rendering, in at most the wanted tokens if a memory of one item fits them.
    pub text: String,
    /// Tokens of the rendering.
    pub tokens: usize,
    /// Whether the prior memory covers the start of the messages. `None` without a prior memory.
    pub prior_fits: Option<bool>,
}

/// Why there is no memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// There is nothing to remember.
    #[error("the conversation has no messages")]
    Empty,
}

/// Makes a memory of `messages`.
///
/// # Errors
/// If there are no messages.
pub fn compact(
    messages: &[Message],
    options: &Options<'_>,
) -> Result<RenderedMemory, CompactError> {
    if messages.is_empty() {
        return Err(CompactError::Empty);
    }
    let mut chain = Chain::new();
    let covered = options.prior.and_then(|prior| {
        let covered = messages.get(..prior.cover.messages)?;
        for message in covered {
            chain.push(message_digest(message));
        }
        (chain.digest() == prior.cover.digest).then_some(covered)
    });
    let mut compaction = match covered {
        Some(covered) => build(chain, covered, &messages[covered.len()..], options),
        None => build(Chain::new(), &[], messages, options),
    };
    compaction.prior_fits = options.prior.map(|_| covered.is_some());
    Ok(compaction)
}

/// The next version of the memory of a running session: `fresh` are the messages after those that [`Options::prior`]
/// covers, and `chain` is the digest of the messages before them. The covered messages are not needed.
///
/// # Errors
/// If there are no messages and no prior memory.
pub fn compact_after(
    chain: Chain,
    fresh: &[Message],
    options: &Options<'_>,
) -> Result<RenderedMemory, CompactError> {
    if fresh.is_empty() && options.prior.is_none() {
        return Err(CompactError::Empty);
    }
    let mut compaction = build(chain, &[], fresh, options);
    compaction.prior_fits = options.prior.map(|_| true);
    Ok(compaction)
}

/// Extracts what `fresh` says and merges it into the prior memory, without the secrets of either. Of the `covered`
/// messages, where the caller has them, only the calls are needed whose results are still to come.
fn build(
    chain: Chain,
    covered: &[Message],
    fresh: &[Message],
    options: &Options<'_>,
) -> RenderedMemory {
    // A value that is secret in one place is secret in every other: all of them are known before anything is read.
    let mut redactor = options.redactor.map(Cow::Borrowed);
    if let Some(redactor) = &mut redactor {
        for message in covered.iter().chain(fresh) {
            learn(redactor, message);
        }
    }
    let redactor = redactor.as_deref();
    let mut extractor = Extractor::new();
    if let Some(redactor) = redactor {
        extractor = extractor.with_redactor(redactor);
    }
    if let Some(cwd) = options.cwd {
        extractor = extractor.with_folder(cwd);
    }
    let mut prior = options.prior.cloned();
    if let Some(prior) = &mut prior {
        if let Some(redactor) = redactor {
            // It may have been made without taking secrets out, by hand, or before one was known.
            redact_memory(prior, redactor);
        }
        extractor = extractor.after(prior, chain);
    }
    extractor.expect_results(covered);
    for message in fresh {
        extractor.push(message);
    }
    if let Some(prior) = &mut prior {
        extractor.note_answers(prior);
    }
    fit(&extractor, prior.as_ref(), options)
}

/// Makes the memory smaller until its rendering keeps to the cap.
///
/// The extractor packs for the Markdown rendering; other forms take more room. Packing again with a smaller budget keeps
/// more than leaving items out of the packed memory: shares and passages follow the budget.
fn fit(extractor: &Extractor<'_>, prior: Option<&Memory>, options: &Options<'_>) -> RenderedMemory {
    const TRIES_MAX: usize = 12;
    let mut budget = options.tokens;
    for _ in 0..TRIES_MAX {
        let limit = Limit {
            tokens: budget,
            count: options.count,
            focus: options.focus,
        };
        let mut memory = extractor.memory(&limit);
        if let Some(prior) = prior {
            memory = merge_linked(prior, memory, &takes_the_place);
            memory = crate::update::fit(memory, budget, options.count).memory;
        }
        if memory.items.is_empty() {
            break;
        }
        let made = render(memory, options);
        if made.tokens <= options.tokens {
            return made;
        }
        if budget == 0 {
            break;
        }
        budget = (budget * options.tokens / made.tokens * 98 / 100).min(budget - 1);
    }
    smallest(extractor, prior, options)
}

/// The smallest memory that is of use: one item, cut short.
fn smallest(
    extractor: &Extractor<'_>,
    prior: Option<&Memory>,
    options: &Options<'_>,
) -> RenderedMemory {
    const TOKENS: usize = 300;
    const CHARACTERS: usize = 120;
    let mut memory = extractor.memory(&Limit {
        tokens: TOKENS,
        count: options.count,
        focus: options.focus,
    });
    if let Some(prior) = prior {
        memory = merge_linked(prior, memory, &takes_the_place);
    }
    let mut memory = crate::update::weightiest(memory);
    for text in memory
        .items
        .iter_mut()
        .flat_map(|item| item.entry.texts_mut())
    {
        *text = excerpt(text, CHARACTERS);
    }
    render(memory, options)
}

fn render(memory: Memory, options: &Options<'_>) -> RenderedMemory {
    let text = options.form.render(&memory);
    RenderedMemory {
        tokens: (options.count)(&text),
        memory,
        text,
        prior_fits: None,
    }
}

impl Form {
    /// Writes a memory out.
    #[must_use]
    pub fn render(self, memory: &Memory) -> String {
        match self {
            Self::Markdown => markdown::render(memory),
            Self::Json => memory.to_json(),
            Self::Object => object::render(memory),
            Self::System => restoring::system_block(memory),
            Self::UserMessage => restoring::user_message(memory),
        }
    }
}

#[cfg(test)]
mod tests {
    use throughline_transcript::message::{Block, Message, Role};

    use super::*;
    use crate::document::Entry;

    fn secret() -> String {
        ["ghp", "_", "a1B2a1B2a1B2", "c3D4c3D4c3D4", "e5F6e5F6e5F6"].concat()
    }

    #[test]
    fn no_secret_comes_in_by_the_folder_or_a_prior_memory() {
        let count = |text: &str| text.len() / 4;
        let messages = [Message::new(
            Role::User,
            vec![Block::text("Please use the staging server.")],
        )];
        let cwd = format!("/home/{}", secret());
        let options = Options {
            cwd: Some(&cwd),
            ..Options::new(800, &count)
        };
        let first = compact(&messages, &options).unwrap();
        assert!(!first.text.contains(&secret()), "{}", first.text);
        let mut prior = first.memory;
        for item in &mut prior.items {
            if let Entry::Task { text, .. } | Entry::Correction { text } = &mut item.entry {
                *text = format!("use {} now", secret());
            }
        }
        let options = Options {
            prior: Some(&prior),
            form: Form::Json,
            ..Options::new(4000, &count)
        };
        let second = compact(&messages, &options).unwrap();
        assert!(!second.text.contains(&secret()), "{}", second.text);
    }

    #[test]
    fn a_value_at_the_end_of_an_exclamation_is_still_a_secret() {
        let value = ["a8f3K2m9", "Qx7Lp4Zt", "6Wv1"].concat();
        for end in ["!", "。", "…", "@", "—", "."] {
            let text = format!("set api_key = {value}{end}");
            let redacted = Redactor::embedded().redact(&text).into_owned();
            assert!(!redacted.contains(&value), "{redacted}");
        }
    }
}
