//! Edits of a memory by a person, item by item.
//!
//! The ledger is what the user said: its items can be neither dropped nor reworded. A later statement can supersede
//! one; it is added as an item of its own.

use schemars::JsonSchema;
use serde::Deserialize;
use throughline_memory::document::{Entry, Item, Memory, Origin, Provenance, Section, Status};
use throughline_memory::redact::Redactor;

/// Longest text of an item, bytes.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// A change to one item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Id of the item.
    pub id: String,
    /// All texts of the item, in the order in which the memory lists them.
    #[serde(default)]
    pub texts: Option<Vec<String>>,
    /// Whether the item is removed.
    #[serde(default)]
    pub drop: bool,
    /// What holds instead, for an item of the ledger.
    #[serde(default)]
    pub superseded_by: Option<String>,
}

/// Why a memory cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// A change to an item cannot be made.
    #[error("item {id} {problem}")]
    Item {
        /// Id of the item.
        id: String,
        /// Why not.
        problem: ItemProblem,
    },
    /// The changes leave the memory as it is.
    #[error("nothing is changed")]
    Nothing,
}

/// Why an item cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ItemProblem {
    /// No item has this id.
    #[error("does not exist")]
    Unknown,
    /// Items of the ledger keep their words.
    #[error("is in the ledger: it can only be superseded")]
    Ledger,
    /// Only items of the ledger are superseded.
    #[error("is not in the ledger: reword it, or drop it")]
    NotLedger,
    /// A pin keeps the item.
    #[error("is pinned: unpin it instead")]
    Pinned,
    /// A later statement holds already.
    #[error("is superseded already")]
    Superseded,
    /// A text is empty or too long.
    #[error("has a text that is empty or longer than {TEXT_BYTES_MAX} bytes")]
    Text,
    /// The change has another number of texts than the item.
    #[error("has {count} texts")]
    Texts {
        /// Texts of the item.
        count: usize,
    },
}

impl ItemProblem {
    fn of(self, id: &str) -> EditError {
        EditError::Item {
            id: id.to_owned(),
            problem: self,
        }
    }
}

/// The memory with these changes. `version` is its number.
///
/// # Errors
/// If a change does not fit its item, or nothing is changed.
pub fn edited(memory: &Memory, version: u32, changes: &[Change]) -> Result<Memory, EditError> {
    let mut memory = memory.clone();
    let mut is_changed = false;
    for change in changes {
        let id = &change.id;
        let at = memory.items.iter().position(|item| item.id == *id);
        let at = at.ok_or_else(|| ItemProblem::Unknown.of(id))?;
        let is_ledger = memory.items[at].entry.section().is_ledger();
        if change.drop {
            if is_ledger {
                return Err(ItemProblem::Ledger.of(id));
            }
            memory.items.remove(at);
            is_changed = true;
            continue;
        }
        if let Some(texts) = &change.texts {
            is_changed |= reword(&mut memory.items[at], texts, version)?;
        }
        if let Some(by) = &change.superseded_by {
            if !is_ledger {
                return Err(ItemProblem::NotLedger.of(id));
            }
            supersede(&mut memory, at, by, version)?;
            is_changed = true;
        }
    }
    if is_changed {
        Ok(memory)
    } else {
        Err(EditError::Nothing)
    }
}

/// Whether the texts of the item changed.
fn reword(item: &mut Item, texts: &[String], version: u32) -> Result<bool, EditError> {
    let mut entry = item.entry.clone();
    let count = entry.texts_mut().count();
    if texts.len() != count {
        return Err(ItemProblem::Texts { count }.of(&item.id));
    }
    for (text, new) in entry.texts_mut().zip(texts) {
        // Forms send line breaks as two characters.
        let new = new.replace("\r\n", "\n");
        if *text != new && text.trim() != new.trim() {
            *text = accept(&item.id, &new)?;
        }
    }
    if entry == item.entry {
        return Ok(false);
    }
    if entry.section().is_ledger() {
        return Err(ItemProblem::Ledger.of(&item.id));
    }
    item.entry = entry;
    item.origin = Origin::User;
    item.touched = version;
    Ok(true)
}

/// Adds the statement that supersedes an item of the ledger behind it.
fn supersede(memory: &mut Memory, at: usize, by: &str, version: u32) -> Result<(), EditError> {
    let item = &memory.items[at];
    if item.id.starts_with("pin-") {
        return Err(ItemProblem::Pinned.of(&item.id));
    }
    if item.status != Status::Active {
        return Err(ItemProblem::Superseded.of(&item.id));
    }
    let text = accept(&item.id, by)?;
    // It is stated now: after everything that the memory represents.
    let message = memory.cover.messages.saturating_sub(1);
    let mut new_id = Item::id_for(Section::Corrections, message, &text);
    while memory.items.iter().any(|item| item.id == new_id) {
        new_id.push('x');
    }
    memory.items[at].status = Status::SupersededBy(new_id.clone());
    memory.items[at].touched = version;
    memory.items.insert(
        at + 1,
        Item {
            id: new_id,
            entry: Entry::Correction { text },
            origin: Origin::User,
            provenance: Provenance {
                message,
                at_ms: memory.cover.until_ms,
            },
            status: Status::Active,
            touched: version,
        },
    );
    Ok(())
}

/// The text of an item without secrets, unless it is empty or too long.
fn accept(id: &str, text: &str) -> Result<String, EditError> {
    let text = text.trim();
    if text.is_empty() || text.len() > TEXT_BYTES_MAX {
        return Err(ItemProblem::Text.of(id));
    }
    Ok(Redactor::embedded().redact(text).into_owned())
}

#[cfg(test)]
mod tests {
    use throughline_memory::document::Cover;

    use super::*;

    fn item(id: &str, entry: Entry) -> Item {
        Item {
            id: id.to_owned(),
            entry,
            origin: Origin::Assistant,
            provenance: Provenance::default(),
            status: Status::Active,
            touched: 1,
        }
    }

    fn memory() -> Memory {
        let text = |text: &str| text.to_owned();
        Memory {
            version: 1,
            cover: Cover {
                messages: 9,
                ..Cover::default()
            },
            language: None,
            items: vec![
                item(
                    "t",
                    Entry::Task {
                        text: text("build it"),
                        answer: None,
                    },
                ),
                item(
                    "c",
                    Entry::Correction {
                        text: text("never force-push"),
                    },
                ),
                item(
                    "pin-p",
                    Entry::Correction {
                        text: text("region is eu"),
                    },
                ),
            ],
        }
    }

    fn change(id: &str) -> Change {
        Change {
            id: id.to_owned(),
            ..Change::default()
        }
    }

    fn texts(id: &str, text: &str) -> Change {
        Change {
            texts: Some(vec![text.to_owned()]),
            ..change(id)
        }
    }

    fn by(id: &str, text: &str) -> Change {
        Change {
            superseded_by: Some(text.to_owned()),
            ..change(id)
        }
    }

    fn dropped(id: &str) -> Change {
        Change {
            drop: true,
            ..change(id)
        }
    }

    #[test]
    fn items_are_reworded_and_dropped_and_the_ledger_is_superseded() {
        let changes = [
            texts("t", "build it\r\nsoon"),
            by("c", "force-push is fine now"),
        ];
        let memory = edited(&memory(), 2, &changes).unwrap();
        let shown: Vec<(&str, &Status, u32)> = memory
            .items
            .iter()
            .map(|item| (item.entry.text(), &item.status, item.touched))
            .collect();
        let new = memory.items[2].id.clone();
        assert_eq!(
            shown,
            [
                ("build it\nsoon", &Status::Active, 2),
                ("never force-push", &Status::SupersededBy(new), 2),
                ("force-push is fine now", &Status::Active, 2),
                ("region is eu", &Status::Active, 1),
            ]
        );
        let memory = edited(&memory, 3, &[dropped("t")]).unwrap();
        assert_eq!(memory.items.len(), 3);
    }

    #[test]
    fn the_ledger_is_not_dropped_or_reworded() {
        let check = |change: Change, expected: ItemProblem| {
            let id = change.id.clone();
            assert_eq!(edited(&memory(), 2, &[change]), Err(expected.of(&id)));
        };
        check(dropped("c"), ItemProblem::Ledger);
        check(texts("c", "force-push"), ItemProblem::Ledger);
        check(by("pin-p", "us"), ItemProblem::Pinned);
        check(by("t", "x"), ItemProblem::NotLedger);
        check(by("c", " "), ItemProblem::Text);
        check(dropped("z"), ItemProblem::Unknown);
        check(texts("t", ""), ItemProblem::Text);
        let same = texts("t", "build it ");
        assert_eq!(edited(&memory(), 2, &[same]), Err(EditError::Nothing));
    }
}
