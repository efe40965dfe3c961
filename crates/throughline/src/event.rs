//! What a session tells whoever watches it.

use std::time::Duration;

use throughline_engine::Event;
use throughline_store::StoreError;

/// Something that happened in a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SessionEvent {
    /// The engine decided something.
    Engine(Event),
    /// A request was held up by this much before it went out, because a memory was swapped in before it.
    Swap {
        /// From the wish to send to the request: waiting for a memory (if any was waited for), the decision, storing it,
        /// writing the request.
        held: Duration,
        /// The part in which a model was waited for.
        waited_for_model: Duration,
    },
    /// A memory was made by a model and checked.
    Checked {
        /// Items that the model left out and code put back.
        put_back: usize,
        /// Items, or parts of them, that the conversation does not have and that were taken out.
        taken_out: usize,
        /// Answers that were no memory.
        refused: usize,
        /// Calls that were made.
        calls: u32,
    },
    /// Something could not be stored. It is tried again with the next change.
    NotStored(std::sync::Arc<StoreError>),
}
