//! Keeps a memory below its cap: decides which items to drop when an update has made it too large.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::cues::asks_to_remember;
use crate::document::{Item, Memory, Section, Status};
use crate::render::markdown::{self, Heading};

/// A memory that keeps to its cap.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedMemory {
    /// The memory without what was left out. The other items are as they were, in their order.
    pub memory: Memory,
    /// The items that were left out, in the order of the document.
    pub left_out: Vec<Item>,
}

impl FittedMemory {
    /// Whether even the ledger had to be cut: then the cap is too small for this conversation.
    #[must_use]
    pub fn is_ledger_cut(&self) -> bool {
        self.left_out
            .iter()
            .any(|item| item.entry.section().is_ledger())
    }
}

/// Leaves out what is too much for `limit`, where `cost` measures a text (in tokens, say), and what counts is the
/// Markdown rendering. The rendering never costs more than `limit`, unless its first line alone does.
///
/// What the person asked to be remembered comes first, then what else holds in the ledger, then what the ledger says no
/// longer holds; after that sections share the space:
/// the first item of each weighs most and every further one less, errors and active work more than completed work, and
/// newer items more than older ones.
#[must_use]
pub fn fit(memory: Memory, limit: usize, cost: &dyn Fn(&str) -> usize) -> FittedMemory {
    if cost(&markdown::render(&memory)) <= limit {
        return FittedMemory {
            memory,
            left_out: Vec::new(),
        };
    }
    let order = by_weight(&memory.items);
    let lines: Vec<usize> = memory
        .items
        .iter()
        .map(|item| cost(&markdown::item_lines(item)))
        .collect();

    let mut room = limit.saturating_sub(cost(&markdown::first_line(&memory)));
    let mut headings = HashSet::new();
    let mut kept = Vec::new();
    for index in order {
        let heading = Heading::of(memory.items[index].entry.section());
        let mut needed = lines[index];
        if !headings.contains(&heading) {
            needed += cost(&markdown::heading_lines(heading));
        }
        if needed <= room {
            room -= needed;
            headings.insert(heading);
            kept.push(index);
        }
    }

    // Pieces can cost less than the whole that they make: the lightest items go until the whole fits.
    let version = |kept: &[usize]| {
        let mut kept = kept.to_vec();
        kept.sort_unstable();
        Memory {
            items: kept
                .iter()
                .map(|index| memory.items[*index].clone())
                .collect(),
            cover: memory.cover.clone(),
            language: memory.language.clone(),
            version: memory.version,
        }
    };
    let mut fitted = version(&kept);
    loop {
        let excess = cost(&markdown::render(&fitted)).saturating_sub(limit);
        if excess == 0 || kept.is_empty() {
            break;
        }
        let mut freed = 0;
        while freed < excess
            && let Some(lightest) = kept.pop()
        {
            freed += lines[lightest].max(1);
        }
        fitted = version(&kept);
    }

    let kept: HashSet<usize> = kept.into_iter().collect();
    let left_out = memory
        .items
        .into_iter()
        .enumerate()
        .filter(|(index, _)| !kept.contains(index))
        .map(|(_, item)| item)
        .collect();
    FittedMemory {
        memory: fitted,
        left_out,
    }
}

/// The memory with one item: an open request, or else the one that weighs most.
pub(crate) fn weightiest(mut memory: Memory) -> Memory {
    let open = memory
        .items
        .iter()
        .rposition(|item| item.entry.section() == Section::Task && item.status == Status::Active);
    let first = open.or_else(|| by_weight(&memory.items).first().copied());
    memory.items = first
        .map(|index| memory.items.swap_remove(index))
        .into_iter()
        .collect();
    memory
}

/// Indices of the items, the weightiest first.
fn by_weight(items: &[Item]) -> Vec<usize> {
    let mut newest_first: Vec<usize> = (0..items.len()).collect();
    newest_first.sort_by_key(|index| {
        let item = &items[*index];
        // Next steps are in the order of their priority; elsewhere the newest matters most.
        let age = match item.entry.section() {
            Section::NextSteps => Reverse(0),
            _ => Reverse(item.provenance.message),
        };
        (item.status != Status::Active, age, *index)
    });
    let mut seen = [0_u32; Section::ALL.len()];
    let mut weighed: Vec<(Reverse<u32>, usize)> = newest_first
        .into_iter()
        .map(|index| {
            let section = items[index].entry.section();
            let nth = &mut seen[section as usize];
            *nth += 1;
            let weight = match (section.is_ledger(), &items[index].status) {
                (true, Status::Active) if asks_to_remember(items[index].entry.text()) => u32::MAX,
                (true, Status::Active) => u32::MAX - 1,
                (true, _) => u32::MAX - 2,
                (false, _) => weight(section) * 1_000 / *nth,
            };
            (Reverse(weight), index)
        })
        .collect();
    // Stable: of one weight, the newest stays first.
    weighed.sort_by_key(|(weight, _)| *weight);
    weighed.into_iter().map(|(_, index)| index).collect()
}

/// How much the first item of a section weighs; the n-th weighs an n-th of it.
fn weight(section: Section) -> u32 {
    match section {
        Section::CurrentState => 100,
        Section::Task => 90,
        Section::Corrections | Section::Errors => 60,
        Section::NextSteps => 50,
        Section::OpenQuestions | Section::KeyDecisions => 40,
        Section::EliminatedApproaches | Section::CompletedWork => 30,
        Section::RelevantToolResults | Section::References => 20,
    }
}

#[cfg(test)]
mod tests;
