//! Restores required items and keeps the memory within its size.

use std::collections::{BTreeMap, HashSet};

use super::{Ground, RepairedMemory, insert, item_of, put_in_ledger};
use crate::document::{Entry, Item, Memory, Origin, Section, Status};
use crate::render::markdown::{Heading, heading_lines, item_lines, render};
use crate::summarise::outcome::{Finding, Gap};
use crate::update::{self, folded};
use crate::verify::identifiers;

/// How much room there is.
#[derive(Clone, Copy, Debug)]
pub(in crate::summarise) struct Room {
    /// The most that the memory may have, tokens.
    pub(in crate::summarise) tokens_max: usize,
    /// What the memory covers, tokens. It is to be smaller than that.
    pub(in crate::summarise) covered_tokens: usize,
}

/// Completes the ledger, puts back from the draft what is missing while there is room, takes secrets out, and leaves out
/// what is too much.
pub(in crate::summarise) fn complete(
    mut made: RepairedMemory,
    prior: Option<&Memory>,
    room: Room,
    ground: &Ground<'_>,
) -> RepairedMemory {
    let draft = ground.draft;
    for id in put_in_ledger(&mut made.memory, prior, draft) {
        made.findings.push(Finding::PutBack {
            id,
            section: Section::Corrections,
            why: Gap::Ledger,
        });
    }
    let tokens_max = room
        .tokens_max
        .min(smallest_cap(&made.memory, room, ground));
    put_back(&mut made, tokens_max, ground);

    let memory = &mut made.memory;
    memory.version = draft.version;
    memory.cover = draft.cover.clone();
    memory.language = draft.language.clone().or(memory.language.take());
    memory.items.sort_by_key(|item| item.entry.section());
    for item in &mut memory.items {
        item.touched = item.touched.min(draft.version);
        for text in item.entry.texts_mut() {
            if let std::borrow::Cow::Owned(safe) = ground.redaction.redact(text) {
                *text = safe;
            }
        }
    }
    let fitted = update::fit(
        std::mem::replace(
            memory,
            Memory {
                items: Vec::new(),
                ..draft.clone()
            },
        ),
        tokens_max,
        &|text| (ground.count)(text),
    );
    let mut sections = BTreeMap::new();
    for item in &fitted.left_out {
        *sections.entry(item.entry.section()).or_insert(0) += 1;
    }
    if let Some(items) = sections.get(&Section::Corrections) {
        made.findings.push(Finding::LedgerCut { items: *items });
    }
    if !sections.is_empty() {
        made.findings.push(Finding::LeftOut { sections });
    }
    made.memory = fitted.memory;
    made
}

/// The memory is to be smaller than what it covers, but never so small that the ledger and the latest request have
/// no place: whether it is worth having at all is decided where it is adopted.
fn smallest_cap(memory: &Memory, room: Room, ground: &Ground<'_>) -> usize {
    let mut least = Memory {
        items: memory.section(Section::Corrections).cloned().collect(),
        ..memory.clone()
    };
    if let Some((request, _)) = latest_request(ground.draft) {
        least.items.insert(0, request.clone());
    }
    room.covered_tokens.max((ground.count)(&render(&least)))
}

/// Words of the user are short if they take at most this part of a memory.
const SHORT_PART: usize = 16;

fn put_back(made: &mut RepairedMemory, tokens_max: usize, ground: &Ground<'_>) {
    let draft = ground.draft;
    let mut room = tokens_max.saturating_sub((ground.count)(&render(&made.memory)));
    let mut there = There::new(&made.memory);
    for (item, why) in candidates(draft) {
        let is_given_up = made.given_up.contains(&item.id)
            || matches!(item.status, Status::SupersededBy(_))
            || item_of(&made.memory, &item.id).is_some();
        if is_given_up || !there.misses(item, why) {
            continue;
        }
        let mut cost = (ground.count)(&item_lines(item));
        let heading = Heading::of(item.entry.section());
        if made
            .memory
            .items
            .iter()
            .all(|other| Heading::of(other.entry.section()) != heading)
        {
            cost += (ground.count)(&heading_lines(heading));
        }
        // The latest request and short words of the user have their place: what weighs less leaves for them.
        let is_due = why == Gap::LatestRequest
            || item.origin == Origin::User && cost <= tokens_max / SHORT_PART;
        if cost > room && !is_due {
            continue;
        }
        room = room.saturating_sub(cost);
        there.add(item);
        made.findings.push(Finding::PutBack {
            id: item.id.clone(),
            section: item.entry.section(),
            why,
        });
        insert(&mut made.memory, item.clone());
    }
}

/// What of the draft should not be missing, the most important first.
fn candidates(draft: &Memory) -> Vec<(&Item, Gap)> {
    let mut candidates = Vec::new();
    let is_open = |item: &&Item| item.status == Status::Active;
    candidates.extend(latest_request(draft));
    candidates.extend(
        draft
            .section(Section::CurrentState)
            .map(|item| (item, Gap::State)),
    );
    let errors = || draft.section(Section::Errors);
    candidates.extend(errors().filter(is_open).map(|item| (item, Gap::Error)));
    candidates.extend(
        errors()
            .filter(|item| item.status == Status::Resolved)
            .map(|item| (item, Gap::Error)),
    );
    for section in [
        Section::Task,
        Section::CompletedWork,
        Section::References,
        Section::RelevantToolResults,
        Section::KeyDecisions,
    ] {
        // The newest first: there may not be room for all.
        let mut items: Vec<&Item> = draft.section(section).collect();
        items.reverse();
        candidates.extend(items.into_iter().map(|item| (item, Gap::Identifier)));
    }
    candidates
}

/// The last request that is open, or the last at all.
fn latest_request(draft: &Memory) -> Option<(&Item, Gap)> {
    let requests = || draft.section(Section::Task);
    requests()
        .filter(|item| item.status == Status::Active)
        .last()
        .or_else(|| requests().last())
        .map(|item| (item, Gap::LatestRequest))
}

/// What a memory says already.
struct There {
    text: String,
    identifiers: HashSet<String>,
    has_state: bool,
}

impl There {
    fn new(memory: &Memory) -> Self {
        let mut there = Self {
            text: String::new(),
            identifiers: HashSet::new(),
            has_state: false,
        };
        for item in &memory.items {
            there.add(item);
        }
        there
    }

    fn add(&mut self, item: &Item) {
        self.has_state |= matches!(item.entry, Entry::CurrentState { .. });
        for text in item.entry.texts() {
            self.text.push_str(&folded(text));
            self.text.push('\n');
            self.identifiers
                .extend(identifiers(text).map(str::to_owned));
        }
    }

    fn misses(&self, item: &Item, why: Gap) -> bool {
        let says = || self.text.contains(&folded(item.entry.text()));
        match why {
            Gap::State => !self.has_state,
            Gap::Ledger | Gap::LatestRequest | Gap::Error => !says(),
            Gap::Identifier => item
                .entry
                .texts()
                .flat_map(identifiers)
                .any(|identifier| !self.identifiers.contains(identifier)),
        }
    }
}
