//! What models make of orders.

use throughline_engine::{UpdateFailure, UpdateFailureClass, UpdateOrder};
use throughline_memory::document::{Entry, Item, Memory, Origin, Provenance, Section, Status};
use throughline_transcript::digest::Digest;

/// What the model makes of an order.
#[derive(Clone, Debug)]
pub(crate) enum Model {
    /// A good memory.
    Good,
    /// No memory.
    Fails(&'static str, Option<u64>),
    /// A memory that says nothing.
    Empty,
    /// A memory of this many words.
    Long(usize),
    /// A memory that covers other messages.
    OtherCover,
    /// A memory of another history.
    OtherHistory,
    /// Nothing at all.
    Silent,
}

impl Model {
    /// The answer; `None` if none comes.
    pub(crate) fn answer(&self, order: &UpdateOrder) -> Option<Result<Memory, UpdateFailure>> {
        let mut memory = (*order.draft).clone();
        memory.version = order
            .order
            .prior
            .as_ref()
            .map_or(1, |prior| prior.memory.version + 1);
        let said = |text: String| Item {
            id: Item::id_for(Section::CompletedWork, order.order.cover(), &text),
            entry: Entry::CompletedWork { text },
            origin: Origin::Assistant,
            provenance: Provenance {
                message: order.order.cover() - 1,
                at_ms: None,
            },
            status: Status::Active,
            touched: memory.version,
        };
        let mut own = said(format!("The model read {} messages.", order.order.cover()));
        Some(match self {
            Model::Silent => return None,
            Model::Fails(class, retry_after_ms) => Err(failure(class, *retry_after_ms)),
            Model::Empty => {
                memory.items.clear();
                Ok(memory)
            }
            Model::Good | Model::Long(_) | Model::OtherCover | Model::OtherHistory => {
                let mut kept = 0;
                memory.items.retain(|item| {
                    kept += usize::from(!item.entry.section().is_ledger());
                    item.entry.section().is_ledger() || kept <= 4
                });
                if let Model::Long(words) = self {
                    own = said("word ".repeat(*words));
                }
                if matches!(self, Model::OtherCover) {
                    memory.cover.messages -= 1;
                }
                if matches!(self, Model::OtherHistory) {
                    memory.cover.digest = Digest::UNKNOWN;
                }
                memory.items.retain(|item| item.id != own.id);
                memory.items.push(own);
                memory.items.sort_by_key(|item| item.entry.section());
                Ok(memory)
            }
        })
    }
}

pub(crate) fn failure(class: &str, retry_after_ms: Option<u64>) -> UpdateFailure {
    UpdateFailure {
        class: UpdateFailureClass::Other(class.to_owned()),
        message: format!("the model said: {class}"),
        retry_after_ms,
    }
}
