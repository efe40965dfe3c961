//! Edits: small changes that name items by id.

use std::collections::HashSet;

use super::{folded, free_id};
use crate::document::{Cover, Entry, Item, Memory, Origin, Provenance, Section, Status};

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// A new item, at the end of its section.
    Add {
        /// What it says.
        entry: Entry,
        /// Whose words they are.
        origin: Origin,
        /// Where they are.
        provenance: Provenance,
    },
    /// Other words for the same matter. The item keeps its id and its place; its words are the model's from then on.
    Replace {
        /// The item.
        id: String,
        /// What it says now, in the same section.
        entry: Entry,
    },
    /// The matter is done or answered.
    Resolve {
        /// The item.
        id: String,
        /// How, for an error.
        resolution: Option<String>,
    },
    /// Another item replaces it. The only change that an item of the ledger can undergo, and there only by another
    /// item of the ledger that the user said later.
    Supersede {
        /// The item.
        id: String,
        /// The item that replaces it; it must exist already.
        by: String,
    },
    /// The item is not needed any more.
    Drop {
        /// The item.
        id: String,
        /// Why.
        reason: String,
    },
}

/// The next version, and what became of the edits.
#[derive(Clone, Debug, PartialEq)]
pub struct EditResult {
    /// The memory with all edits that could be applied.
    pub memory: Memory,
    /// The items that were dropped.
    pub dropped: Vec<DroppedItem>,
    /// The edits that were not applied.
    pub refused: Vec<RefusedEdit>,
}

/// An item that is no longer there.
#[derive(Clone, Debug, PartialEq)]
pub struct DroppedItem {
    /// The item as it was.
    pub item: Item,
    /// Why it went.
    pub reason: String,
}

/// An edit that was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedEdit {
    /// Its index among the edits, counted from 0.
    pub edit: usize,
    /// Why.
    pub refusal: Refusal,
}

/// Why an edit was not applied. The texts can be shown to the model that proposed the edit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such item.
    #[error("there is no item {id:?}")]
    UnknownId {
        /// The id.
        id: String,
    },
    /// An edit that would change or drop an item of the ledger.
    #[error(
        "item {id:?} is part of the ledger: only a later statement of the user can supersede it"
    )]
    Ledger {
        /// The item.
        id: String,
    },
    /// The ledger is written from the transcript only.
    #[error("section {:?} is the ledger: its items come from the transcript only", section.name())]
    LedgerIsClosed {
        /// The section.
        section: Section,
    },
    /// An item without a text.
    #[error("the item would say nothing")]
    Empty,
    /// The section has an item that says the same.
    #[error("item {id:?} says the same already")]
    AlreadyThere {
        /// That item.
        id: String,
    },
    /// Replacing does not move an item to another section.
    #[error("item {id:?} is in section {:?}, the new words belong to {:?}", from.name(), to.name())]
    OtherSection {
        /// The item.
        id: String,
        /// Where it is.
        from: Section,
        /// Where the new words belong.
        to: Section,
    },
    /// An item cannot supersede itself or an item that superseded it.
    #[error("item {by:?} cannot supersede {id:?}: it was superseded by it")]
    Ring {
        /// The item.
        id: String,
        /// The item that should replace it.
        by: String,
    },
    /// A message that the memory does not cover.
    #[error("message {message} is not covered, the memory covers {covered} messages")]
    NotCovered {
        /// Index of the message.
        message: usize,
        /// How many messages the next version covers.
        covered: usize,
    },
    /// Nothing is dropped without a reason.
    #[error("item {id:?} cannot be dropped without a reason")]
    NoReason {
        /// The item.
        id: String,
    },
}

/// Applies edits in their order and gives the next version, which covers `cover`. An edit that cannot be applied is
/// refused and changes nothing; the others are applied all the same. Items that no edit changes are identical in both
/// versions.
#[must_use]
pub fn apply(prior: &Memory, edits: &[Edit], cover: Cover) -> EditResult {
    let mut items = prior.items.clone();
    items.sort_by_key(|item| item.entry.section());
    let mut draft = Draft {
        ids: items.iter().map(|item| item.id.clone()).collect(),
        items,
        dropped: Vec::new(),
        version: prior.version.saturating_add(1),
        covered: cover.messages,
    };
    let mut refused = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        if let Err(refusal) = draft.apply(edit) {
            refused.push(RefusedEdit {
                edit: index,
                refusal,
            });
        }
    }
    EditResult {
        memory: Memory {
            version: draft.version,
            cover,
            language: prior.language.clone(),
            items: draft.items,
        },
        dropped: draft.dropped,
        refused,
    }
}

/// A version while edits are applied to it.
struct Draft {
    /// In the order of the sections.
    items: Vec<Item>,
    /// Every id that is or was taken, so that a dropped item's id is not given to another.
    ids: HashSet<String>,
    dropped: Vec<DroppedItem>,
    version: u32,
    covered: usize,
}

impl Draft {
    fn apply(&mut self, edit: &Edit) -> Result<(), Refusal> {
        match edit {
            Edit::Add {
                entry,
                origin,
                provenance,
            } => self.add(entry, *origin, provenance),
            Edit::Replace { id, entry } => self.replace(id, entry),
            Edit::Resolve { id, resolution } => self.resolve(id, resolution.as_deref()),
            Edit::Supersede { id, by } => self.supersede(id, by),
            Edit::Drop { id, reason } => self.drop(id, reason),
        }
    }

    fn add(
        &mut self,
        entry: &Entry,
        origin: Origin,
        provenance: &Provenance,
    ) -> Result<(), Refusal> {
        let section = entry.section();
        if section.is_ledger() {
            return Err(Refusal::LedgerIsClosed { section });
        }
        if provenance.message >= self.covered {
            return Err(Refusal::NotCovered {
                message: provenance.message,
                covered: self.covered,
            });
        }
        self.check_text(entry, None)?;
        let id = free_id(&self.ids, section, provenance.message, entry.text());
        self.ids.insert(id.clone());
        let end = self
            .items
            .partition_point(|item| item.entry.section() <= section);
        self.items.insert(
            end,
            Item {
                id,
                entry: entry.clone(),
                origin,
                provenance: provenance.clone(),
                status: Status::Active,
                touched: self.version,
            },
        );
        Ok(())
    }

    fn replace(&mut self, id: &str, entry: &Entry) -> Result<(), Refusal> {
        let index = self.outside_ledger(id)?;
        let (from, to) = (self.items[index].entry.section(), entry.section());
        if from != to {
            return Err(Refusal::OtherSection {
                id: id.to_owned(),
                from,
                to,
            });
        }
        self.check_text(entry, Some(index))?;
        let version = self.version;
        let item = &mut self.items[index];
        if item.entry != *entry {
            item.entry = entry.clone();
            item.origin = Origin::Assistant;
            item.touched = version;
        }
        Ok(())
    }

    fn resolve(&mut self, id: &str, how: Option<&str>) -> Result<(), Refusal> {
        let index = self.outside_ledger(id)?;
        let version = self.version;
        let item = &mut self.items[index];
        if let Entry::Error { resolution, .. } = &mut item.entry
            && how.is_some_and(|how| !how.trim().is_empty())
            && resolution.as_deref() != how
        {
            *resolution = how.map(str::to_owned);
            item.touched = version;
        }
        if item.status == Status::Active {
            item.status = Status::Resolved;
            item.touched = version;
        }
        Ok(())
    }

    fn supersede(&mut self, id: &str, by: &str) -> Result<(), Refusal> {
        let index = self.index(id)?;
        let successor = self.index(by)?;
        let (item, successor) = (&self.items[index], &self.items[successor]);
        if item.entry.section().is_ledger()
            && !(successor.origin == Origin::User
                && successor.entry.section().is_ledger()
                && successor.provenance.message > item.provenance.message)
        {
            return Err(Refusal::Ledger { id: id.to_owned() });
        }
        if self.leads_to(by, id) {
            return Err(Refusal::Ring {
                id: id.to_owned(),
                by: by.to_owned(),
            });
        }
        let status = Status::SupersededBy(by.to_owned());
        let version = self.version;
        let item = &mut self.items[index];
        if item.status != status {
            item.status = status;
            item.touched = version;
        }
        Ok(())
    }

    fn drop(&mut self, id: &str, reason: &str) -> Result<(), Refusal> {
        let index = self.outside_ledger(id)?;
        if reason.trim().is_empty() {
            return Err(Refusal::NoReason { id: id.to_owned() });
        }
        let item = self.items.remove(index);
        self.dropped.push(DroppedItem {
            item,
            reason: reason.to_owned(),
        });
        Ok(())
    }

    fn index(&self, id: &str) -> Result<usize, Refusal> {
        self.items
            .iter()
            .position(|item| item.id == id)
            .ok_or_else(|| Refusal::UnknownId { id: id.to_owned() })
    }

    fn outside_ledger(&self, id: &str) -> Result<usize, Refusal> {
        let index = self.index(id)?;
        if self.items[index].entry.section().is_ledger() {
            return Err(Refusal::Ledger { id: id.to_owned() });
        }
        Ok(index)
    }

    /// Whether the text says something that no other item of the section says.
    fn check_text(&self, entry: &Entry, of: Option<usize>) -> Result<(), Refusal> {
        let text = folded(entry.text());
        if text.is_empty() {
            return Err(Refusal::Empty);
        }
        let same = self.items.iter().enumerate().find(|(index, item)| {
            Some(*index) != of
                && item.entry.section() == entry.section()
                && !matches!(item.status, Status::SupersededBy(_))
                && folded(item.entry.text()) == text
        });
        match same {
            Some((_, item)) => Err(Refusal::AlreadyThere {
                id: item.id.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Whether `to` is `from` or replaces it, directly or through other items.
    fn leads_to(&self, from: &str, to: &str) -> bool {
        let mut at = from;
        for _ in 0..=self.items.len() {
            if at == to {
                return true;
            }
            let item = self.items.iter().find(|item| item.id == at);
            match item.map(|item| &item.status) {
                Some(Status::SupersededBy(by)) => at = by,
                _ => return false,
            }
        }
        // A ring that was there before.
        true
    }
}

#[cfg(test)]
mod tests;
