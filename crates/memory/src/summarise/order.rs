//! The order for a job: its inputs and options.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use throughline_transcript::message::Message;

use super::prompts::Prompts;
use crate::document::Memory;
use crate::extract::learn;
use crate::redact::Redactor;

/// Counts the tokens of a text, as the model does that will read the memory.
pub type Count = Arc<dyn Fn(&str) -> usize + Send + Sync>;

/// What a memory is to be made of, and how.
#[derive(Clone)]
pub struct Order {
    /// The messages that the prior memory does not cover, up to the cut; all of them without a prior memory.
    pub messages: Arc<[Message]>,
    /// Index of the first of them in the whole transcript.
    pub first_index: usize,
    /// The memory of everything before them.
    pub prior: Option<Memory>,
    /// The memory that code made of prior memory and messages together. It covers the same messages, its number is that
    /// of the version to be made, and its ledger is the one that the new memory will have.
    pub draft: Memory,
    /// What the user wants the memory to be about. Used for this memory only.
    pub focus: Option<String>,
    /// How the conversation reaches the model.
    pub style: Style,
    /// What the model writes.
    pub form: Form,
    /// Whether the provider can hold the model to a schema. Without it, and in the live request, the form is only described
    /// in words.
    pub is_structured: bool,
    /// Sizes and numbers that are not exceeded.
    pub limits: Limits,
    /// Counts tokens.
    pub count: Count,
    /// Which secrets are taken out.
    pub redaction: Redaction,
    /// The wording of requests.
    pub prompts: Prompts,
    /// The user's language, ISO 639-3 (`eng`, `deu`, `cmn`); the draft's where it is not given.
    pub language: Option<String>,
    /// Whether what a request leaves out can be looked up later.
    pub archive: Archive,
    /// Whether there is another model to turn to ([`ModelSlot::Fallback`](super::ModelSlot::Fallback)).
    pub has_fallback: bool,
}

/// How the conversation reaches the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// In a separate request with the transcript as text: for any model, usually a cheaper one.
    Forked,
    /// As the live request, byte for byte, with the instruction as its last user message, so that the provider reads
    /// it from its cache. Only for the model of the conversation. If the live request does not fit any more, or another
    /// model has to be asked, the job continues as [`Style::Forked`].
    PrefixSharing,
}

/// What the model writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A list of items as JSON; for an update, a list of edits that name items by id, so that the answer is short and
    /// what is not named stays as it is.
    #[default]
    Document,
    /// Markdown with the six headings, the whole memory each time: for models that write poor JSON.
    Markdown,
}

/// Sizes and numbers that are not exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The memory, rendered as Markdown; tokens.
    pub memory_tokens_max: usize,
    /// Output that the first request allows; tokens. Models that reason need room for that too.
    pub answer_tokens: usize,
    /// Output that is allowed after an answer was cut off; tokens. Not more than the model can write.
    pub answer_tokens_max: usize,
    /// What the model can read: its window less `answer_tokens_max` and a margin; tokens.
    pub input_tokens_max: usize,
    /// A tool's result, or the input of a call, is shown up to this length, both ends of it; bytes.
    pub result_bytes_max: usize,
    /// Requests for one part that may go wrong before the job gives up.
    pub attempts_max: u32,
    /// Requests in all. A conversation that would need more is left to the draft.
    pub asks_max: u32,
}

impl Limits {
    /// Limits for a memory of `memory_tokens_max` tokens by a model that reads `input_tokens_max`.
    #[must_use]
    pub fn new(memory_tokens_max: usize, input_tokens_max: usize) -> Self {
        // JSON takes more room than the Markdown that the memory is measured in, and models do not count well.
        let answer_tokens = memory_tokens_max.saturating_mul(2).max(1024);
        Self {
            memory_tokens_max,
            answer_tokens,
            answer_tokens_max: answer_tokens.saturating_mul(4),
            input_tokens_max,
            result_bytes_max: 4_000,
            attempts_max: 3,
            asks_max: 64,
        }
    }
}

/// Which secrets are taken out, of what the model is shown and of the memory.
#[derive(Clone, Default)]
pub enum Redaction {
    /// None: the caller takes them out before the memory is stored.
    Off,
    /// Those that the built-in rules find.
    #[default]
    Embedded,
    /// Those that these rules find.
    With(Arc<Redactor>),
}

/// Whether what a request leaves out can be looked up later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Archive {
    /// It is in the archive, and the memory may point there by the number of a message.
    #[default]
    Kept,
    /// It is nowhere else.
    None,
}

impl Order {
    /// An order without prior memory, focus and second model; secrets are taken out, and the embedded prompts are used.
    #[must_use]
    pub fn new(
        messages: impl Into<Arc<[Message]>>,
        draft: Memory,
        style: Style,
        limits: Limits,
        count: Count,
    ) -> Self {
        Self {
            messages: messages.into(),
            first_index: 0,
            prior: None,
            draft,
            focus: None,
            style,
            form: Form::default(),
            is_structured: false,
            limits,
            count,
            redaction: Redaction::default(),
            prompts: Prompts::embedded(),
            language: None,
            archive: Archive::default(),
            has_fallback: false,
        }
    }
}

impl Redaction {
    /// The text without secrets.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self {
            Self::Off => Cow::Borrowed(text),
            Self::Embedded => Redactor::embedded().redact(text),
            Self::With(redactor) => redactor.redact(text),
        }
    }

    /// The same that also finds the secrets of these messages where nothing tells what they are.
    pub(super) fn learning(self, messages: &[Message]) -> Self {
        let mut redactor = match &self {
            Self::Off => return self,
            Self::Embedded => Cow::Borrowed(Redactor::embedded()),
            Self::With(redactor) => Cow::Borrowed(&**redactor),
        };
        for message in messages {
            learn(&mut redactor, message);
        }
        match redactor {
            Cow::Owned(redactor) => Self::With(Arc::new(redactor)),
            Cow::Borrowed(_) => self,
        }
    }
}

impl fmt::Debug for Redaction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Off => "Off",
            Self::Embedded => "Embedded",
            Self::With(_) => "With(..)",
        })
    }
}

/// Says how large an order is, and none of its texts.
impl fmt::Debug for Order {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Order")
            .field("messages", &self.messages.len())
            .field("first_index", &self.first_index)
            .field("prior", &self.prior.as_ref().map(|prior| prior.version))
            .field("style", &self.style)
            .field("form", &self.form)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
