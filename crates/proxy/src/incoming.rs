//! The body of a request, read as far as a session needs it.

use throughline_transcript::check::Profile;
use throughline_transcript::message::Message;
use throughline_transcript::outline::{Outline, OutlineError, Reader, Span};
use throughline_transcript::wire::Wire;

use crate::known::{Followed, parsed};

/// A request, taken apart up to its first message that a memory may stand for.
#[derive(Clone)]
pub(crate) struct Incoming {
    pub(crate) wire: Wire,
    pub(crate) reader: Reader,
    /// Instructions at the beginning of the list: they stay, whatever is covered.
    pub(crate) lead: Vec<Span>,
    /// What the upstream asks for beyond the provider's rules.
    pub(crate) profile: Profile,
}

impl Incoming {
    /// The whole body.
    ///
    /// # Errors
    /// If it is no JSON.
    pub(crate) fn outline(&self) -> Result<Outline, OutlineError> {
        self.reader.clone().finish()
    }
}

/// What a request has behind the messages that are known.
pub(crate) struct Rest {
    pub(crate) spans: Vec<Span>,
    pub(crate) added: Vec<Message>,
    pub(crate) outline: Outline,
    pub(crate) followed: Followed,
}

/// `None` if something is no message.
pub(crate) fn rest(mut followed: Followed) -> Result<Option<Rest>, OutlineError> {
    let mut spans = std::mem::take(&mut followed.spans);
    let mut added = Vec::new();
    let mut next = followed.next.take();
    loop {
        let span = match next.take() {
            Some(span) => span,
            None => match followed.reader.next()? {
                Some(span) => span,
                None => break,
            },
        };
        let text = followed.reader.message(span);
        let Some(read) = parsed(text) else {
            return Ok(None);
        };
        added.push(read);
        spans.push(span);
    }
    let outline = followed.reader.clone().finish()?;
    Ok(Some(Rest {
        spans,
        added,
        outline,
        followed,
    }))
}

/// The limit of the answer, tokens.
pub(crate) fn answer_limit(outline: &Outline) -> Option<u64> {
    throughline_transcript::request::limit_names(outline.wire())
        .iter()
        .find_map(|name| outline.field(name)?.as_u64())
}
