//! A memory that a person edits, item by item.
//!
//! The ledger is what the user said: nothing of it can be dropped or worded anew. It can be superseded, by a later
//! statement, which is added beside it.

use serde::Deserialize;
use throughline_memory::document::{Entry, Item, Memory, Origin, Provenance, Section, Status};
use throughline_memory::redact::Redactor;

use crate::tracked::Unasked;

/// Longest text of an item, bytes.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// One change to one item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    /// The item.
    pub(super) id: String,
    /// What it says now: its main text and what belongs to it, as the memory lists them.
    #[serde(default)]
    pub(super) texts: Option<Vec<String>>,
    /// It is not needed any more.
    #[serde(default)]
    pub(super) drop: bool,
    /// What takes its place, for an item of the ledger.
    #[serde(default)]
    pub(super) superseded_by: Option<String>,
}

/// Why a memory cannot be changed like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EditError {
    #[error(transparent)]
    Session(#[from] Unasked),
    #[error("there is no item {id}")]
    UnknownItem { id: String },
    #[error("item {id} is in the ledger: it can only be superseded")]
    Ledger { id: String },
    #[error("item {id} is not in the ledger: word it anew, or drop it")]
    NotLedger { id: String },
    #[error("item {id} is pinned: let the pin go instead")]
    Pinned { id: String },
    #[error("item {id} is superseded already")]
    Superseded { id: String },
    #[error("a text of item {id} is empty or longer than {TEXT_BYTES_MAX} bytes")]
    Text { id: String },
    #[error("item {id} has {has} texts")]
    Texts { id: String, has: usize },
    #[error("nothing is changed")]
    Nothing,
}

/// The memory with these changes. `version` is the number that it will have.
pub(super) fn edited(
    memory: &Memory,
    version: u32,
    changes: &[Change],
) -> Result<Memory, EditError> {
    let mut memory = memory.clone();
    let mut is_changed = false;
    for change in changes {
        let id = &change.id;
        let at = memory.items.iter().position(|item| item.id == *id);
        let at = at.ok_or_else(|| EditError::UnknownItem { id: id.clone() })?;
        let is_ledger = memory.items[at].entry.section().is_ledger();
        if change.drop {
            if is_ledger {
                return Err(EditError::Ledger { id: id.clone() });
            }
            memory.items.remove(at);
            is_changed = true;
            continue;
        }
        if let Some(texts) = &change.texts {
            is_changed |= reworded(&mut memory.items[at], texts, version)?;
        }
        if let Some(by) = &change.superseded_by {
            if !is_ledger {
                return Err(EditError::NotLedger { id: id.clone() });
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

fn reworded(item: &mut Item, texts: &[String], version: u32) -> Result<bool, EditError> {
    let mut entry = item.entry.clone();
    let has = entry.texts_mut().count();
    if texts.len() != has {
        return Err(EditError::Texts {
            id: item.id.clone(),
            has,
        });
    }
    for (text, new) in entry.texts_mut().zip(texts) {
        // Forms send line breaks as two characters.
        let new = new.replace("\r\n", "\n");
        if *text != new && text.trim() != new.trim() {
            *text = checked(&item.id, &new)?;
        }
    }
    if entry == item.entry {
        return Ok(false);
    }
    if entry.section().is_ledger() {
        return Err(EditError::Ledger {
            id: item.id.clone(),
        });
    }
    item.entry = entry;
    item.origin = Origin::User;
    item.touched = version;
    Ok(true)
}

/// Adds what takes the place of an item of the ledger behind it.
fn supersede(memory: &mut Memory, at: usize, by: &str, version: u32) -> Result<(), EditError> {
    let item = &memory.items[at];
    let id = item.id.clone();
    if item.id.starts_with("pin-") {
        return Err(EditError::Pinned { id });
    }
    if item.status != Status::Active {
        return Err(EditError::Superseded { id });
    }
    let text = checked(&id, by)?;
    // It is said now: behind everything that the memory stands for.
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

/// The text without secrets, if it is one.
fn checked(id: &str, text: &str) -> Result<String, EditError> {
    let text = text.trim();
    if text.is_empty() || text.len() > TEXT_BYTES_MAX {
        return Err(EditError::Text { id: id.to_owned() });
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
    fn items_are_worded_anew_and_dropped_and_the_ledger_is_superseded() {
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
        let check = |change: Change, expected: &EditError| {
            assert_eq!(edited(&memory(), 2, &[change]).as_ref(), Err(expected));
        };
        let id = |id: &str| id.to_owned();
        check(dropped("c"), &EditError::Ledger { id: id("c") });
        check(texts("c", "force-push"), &EditError::Ledger { id: id("c") });
        check(by("pin-p", "us"), &EditError::Pinned { id: id("pin-p") });
        check(by("t", "x"), &EditError::NotLedger { id: id("t") });
        check(by("c", " "), &EditError::Text { id: id("c") });
        check(dropped("z"), &EditError::UnknownItem { id: id("z") });
        check(texts("t", "build it "), &EditError::Nothing);
        check(texts("t", ""), &EditError::Text { id: id("t") });
    }
}
