//! From one version of a memory to the next: edits against item ids, and the memory of new messages merged in.
//!
//! Both are done by code, so that whatever proposes a change (a model, or the analysis of the new messages), an item
//! that is not named stays as it is, byte for byte, over any number of versions, and the ledger only grows. Neither
//! keeps to a budget: [`fit`] leaves out what is then too much.

mod edit;
mod fit;
mod merge;

pub use edit::{DroppedItem, Edit, EditResult, Refusal, RefusedEdit, apply};
pub use fit::{FittedMemory, fit};
pub use merge::{merge, merge_linked};

use std::collections::HashSet;

use crate::document::{Item, Section};

/// The text as it is compared: white space folded, upper and lower case alike. Two items of one section that say the
/// same in this sense are one.
pub(crate) fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.extend(word.chars().flat_map(char::to_lowercase));
    }
    folded
}

/// An id for a new item that no other item has. Ids are short, so two texts can, rarely, ask for the same one.
pub(crate) fn free_id(
    taken: &HashSet<String>,
    section: Section,
    message: usize,
    text: &str,
) -> String {
    let mut id = Item::id_for(section, message, text);
    let mut attempt = 1_u32;
    while taken.contains(&id) {
        id = Item::id_for(section, message, &format!("{text}\0{attempt}"));
        attempt += 1;
    }
    id
}

#[cfg(test)]
mod tests;
