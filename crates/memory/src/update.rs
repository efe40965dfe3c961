//! Turns one version of a memory into the next: applies edits by item id and merges in the memory of new messages.
//!
//! Both are done by code. A model or the analysis of the new messages proposes the change, but an item that it does not
//! name stays the same, byte for byte, over any number of versions, and the ledger only grows. Neither keeps to a
//! budget: [`fit`] removes what exceeds it.

mod edit;
mod fit;
mod merge;

pub use edit::{DroppedItem, Edit, EditResult, Refusal, RefusedEdit, apply};
pub(crate) use fit::weightiest;
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
