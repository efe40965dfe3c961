//! Turns a model's answer into a reliable memory.
//!
//! Three steps, each of which reports what it did: [`draw_up`] turns the answer into items or applies its edits,
//! [`check`] takes out what the conversation does not support, and [`complete`] puts back what must not be missing and
//! keeps the memory to its size. None of them lets a model write to the ledger.

mod check;
mod complete;
mod draw_up;

use std::collections::HashSet;

use super::order::{Count, Redaction};
use super::outcome::Finding;
use super::source::Source;
use crate::document::{Item, Memory, Section, Status};

pub(super) use check::check;
pub(super) use complete::{Room, complete};
pub(super) use draw_up::draw_up;

/// What all steps go by.
pub(super) struct Ground<'a> {
    /// The memory that the answer started from: the prior one, or what came of the part before. Its ledger is the
    /// draft's.
    pub(super) base: &'a Memory,
    /// What code made of everything.
    pub(super) draft: &'a Memory,
    /// All messages of the order.
    pub(super) source: &'a Source,
    /// The last message that the model has read, index.
    pub(super) last: usize,
    pub(super) redaction: &'a Redaction,
    pub(super) count: &'a Count,
}

/// A memory while it is being repaired.
#[derive(Debug)]
pub(super) struct RepairedMemory {
    pub(super) memory: Memory,
    /// Items that the model dropped for a reason or that another item replaces: they are not restored.
    pub(super) given_up: HashSet<String>,
    pub(super) findings: Vec<Finding>,
}

/// The base of a part: the memory so far, with the ledger of the draft, and with what code knows better,
/// such as which requests have been answered.
pub(super) fn base_of(prior: Option<&Memory>, draft: &Memory) -> Memory {
    let mut base = Memory {
        // The edits make the draft's number of it.
        version: draft.version.saturating_sub(1),
        cover: draft.cover.clone(),
        language: draft.language.clone(),
        items: Vec::new(),
    };
    if let Some(prior) = prior {
        base.items = prior
            .items
            .iter()
            .filter(|item| !item.entry.section().is_ledger())
            .map(|item| item_of(draft, &item.id).unwrap_or(item).clone())
            .collect();
        base.language = base.language.or_else(|| prior.language.clone());
    }
    put_in_ledger(&mut base, prior, draft);
    base
}

/// The base of the next part: what came of the parts before it.
pub(super) fn base_after(made: Memory, draft: &Memory) -> Memory {
    let mut base = Memory {
        version: draft.version.saturating_sub(1),
        cover: draft.cover.clone(),
        ..made
    };
    put_in_ledger(&mut base, None, draft);
    base
}

/// Makes the ledger of `memory` complete: every item that the draft or the prior memory has, with what the draft says
/// of it, unless `memory` has an item marked as superseded by another of them. Returns the ids that were missing.
fn put_in_ledger(memory: &mut Memory, prior: Option<&Memory>, draft: &Memory) -> Vec<String> {
    let (own, mut items): (Vec<Item>, Vec<Item>) = std::mem::take(&mut memory.items)
        .into_iter()
        .partition(|item| item.entry.section().is_ledger());
    let mut ids = HashSet::new();
    let mut missing = Vec::new();
    let known: Vec<&Item> = draft
        .section(Section::Corrections)
        .chain(
            prior
                .into_iter()
                .flat_map(|prior| prior.section(Section::Corrections)),
        )
        .filter(|item| ids.insert(item.id.as_str()))
        .collect();
    for item in &known {
        let mut item = (*item).clone();
        match own.iter().find(|own| own.id == item.id) {
            Some(own) => {
                if let Status::SupersededBy(by) = &own.status
                    && known.iter().any(|known| known.id == *by)
                {
                    item.status = own.status.clone();
                    item.touched = own.touched;
                }
            }
            None => missing.push(item.id.clone()),
        }
        items.push(item);
    }
    let stale: HashSet<String> = items
        .iter()
        .filter(|item| item.entry.section().is_ledger() && item.status != Status::Active)
        .map(|item| said(item.entry.text()))
        .collect();
    // What no longer holds says so in the ledger; said elsewhere again, it would read as if it held.
    items.retain(|item| {
        item.entry.section().is_ledger() || !stale.contains(&said(item.entry.text()))
    });
    items.sort_by_key(|item| item.entry.section());
    memory.items = items;
    missing
}

/// A statement without what differs from one writing of it to the next.
fn said(text: &str) -> String {
    let text = crate::update::folded(text);
    text.trim_end_matches(['.', '!', ';', ',']).to_owned()
}

fn item_of<'m>(memory: &'m Memory, id: &str) -> Option<&'m Item> {
    memory.items.iter().find(|item| item.id == id)
}

/// Puts an item into its section, after those that were said before it.
fn insert(memory: &mut Memory, item: Item) {
    let section = item.entry.section();
    let start = memory
        .items
        .partition_point(|other| other.entry.section() < section);
    let end = memory
        .items
        .partition_point(|other| other.entry.section() <= section);
    let at = memory.items[start..end]
        .iter()
        .rposition(|other| other.provenance.message <= item.provenance.message)
        .map_or(start, |earlier| start + earlier + 1);
    memory.items.insert(at, item);
}

#[cfg(test)]
mod tests;
