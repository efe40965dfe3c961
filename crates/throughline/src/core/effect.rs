//! What a core needs from outside.

use throughline_engine::{CompactionOutcome, Plan};
use throughline_store::Purpose;
use throughline_transcript::catalogue::Money;
use throughline_transcript::usage::Usage;
use tokio::sync::oneshot;

use super::jobs::{DraftJob, UpdateJob};
use crate::event::SessionEvent;

/// Something that the front end does.
#[derive(Debug)]
pub enum Effect {
    /// Run this in the background, then call [`super::Core::drafted`].
    Draft(DraftJob),
    /// Run this in the background, then call [`super::Core::updated`].
    Update(UpdateJob),
    /// Send this request, once the changes so far are stored.
    Request(Plan),
    /// The request waits for a memory. If it takes longer, tell the core [`throughline_engine::Input::WaitedEnough`].
    Wait {
        /// Milliseconds.
        at_most_ms: u64,
    },
    /// Requests are made with another memory from now on, or none.
    Adopted,
    /// The transcript was cut back into what the memory covers: load an older memory
    /// ([`super::Core::cut_behind_memory`]).
    Reload {
        /// Messages that are left.
        messages: usize,
    },
    /// Tell the caller the outcome of a compaction, once the changes so far are stored.
    Answer(oneshot::Sender<CompactionOutcome>, CompactionOutcome),
    /// Tell everyone who watches. The event is among the changes already.
    Event {
        /// The event.
        event: SessionEvent,
        /// Its stored kind.
        kind: &'static str,
        /// Its stored fields.
        json: String,
    },
    /// A model call was paid for.
    Spent {
        /// What for.
        purpose: Purpose,
        /// What it used.
        usage: Usage,
        /// Its price, where it is known.
        price: Option<Money>,
        /// How much more the session would have cost without compaction.
        without: Money,
    },
}

/// What the front end does next, in order.
#[derive(Debug, Default)]
#[must_use = "the front end performs each effect"]
pub struct Effects(Vec<Effect>);

impl Effects {
    pub(super) fn push(&mut self, effect: Effect) {
        self.0.push(effect);
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Extend<Effect> for Effects {
    fn extend<T: IntoIterator<Item = Effect>>(&mut self, effects: T) {
        self.0.extend(effects);
    }
}

impl IntoIterator for Effects {
    type Item = Effect;
    type IntoIter = std::vec::IntoIter<Effect>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
