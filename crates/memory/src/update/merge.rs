//! Merging: the memory of the new messages into the memory of everything before them.

use std::collections::{HashMap, HashSet};

use super::{folded, free_id};
use crate::document::{Entry, Item, Memory, Origin, Section, Status};

/// The next version: `prior` and, merged into it, `fresh`, which was made from only the messages after those that
/// `prior` covers. `fresh.cover` is the cover of both together, and its items count messages over the whole transcript.
///
/// * The ledger is complete: its items never leave, and only [`merge_linked`] marks them as superseded.
/// * What says the same in both is one item, the prior one: its id stays, and it is only touched if `fresh` knows more
///   (a resolution, a reason, a newer result of the same tool call).
/// * The state of things and what comes next is what `fresh` says about it, if it says anything. Changes of the goal are
///   added to it.
/// * Next steps that were done and questions that were answered leave. Requests stay with their answers, and errors with
///   their resolution: a later reader may meet them again.
/// * What was superseded says so in one version and leaves with the next (outside of the ledger).
/// * Everything else is identical in both versions.
#[must_use]
pub fn merge(prior: &Memory, fresh: Memory) -> Memory {
    merge_linked(prior, fresh, &|_, _| false)
}

/// As [`merge`]; besides, an item of `prior` is superseded by the last item of `fresh` for which `supersedes(old, new)`
/// is true. Only items of one section are asked about; for those of the ledger the new words must be the user's.
#[must_use]
pub fn merge_linked(
    prior: &Memory,
    fresh: Memory,
    supersedes: &dyn Fn(&Item, &Item) -> bool,
) -> Memory {
    let version = prior.version.saturating_add(1);
    let mut merged = MergeResult::start(prior, version);
    let renamed = merged.add(fresh.items);
    merged.link(&renamed, supersedes);
    merged.leave();
    Memory {
        version,
        cover: fresh.cover,
        language: fresh.language.or_else(|| prior.language.clone()),
        items: merged.into_items(),
    }
}

/// A version while items are merged into it.
struct MergeResult {
    version: u32,
    items: Vec<MergeItem>,
    /// By section and folded text (for tool results: the key), the items that others with the same are folded into.
    same: HashMap<(Section, String), usize>,
    /// The same for superseded items: repeating or superseding them again adds nothing.
    superseded: HashMap<(Section, String), usize>,
    ids: HashSet<String>,
}

/// An item on its way into the next version.
struct MergeItem {
    item: Item,
    source: Source,
    /// The last message that says it, as far as is known.
    last_said: usize,
    is_leaving: bool,
}

/// Where an item of the next version comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// From the prior version, and the new messages do not speak of it.
    Prior,
    /// From the prior version, and the new messages say it again: `rank` is its place among what they say.
    Both { rank: usize },
    /// From the new messages.
    Fresh { rank: usize },
}

impl MergeResult {
    fn start(prior: &Memory, version: u32) -> Self {
        let mut merged = Self {
            version,
            items: Vec::with_capacity(prior.items.len()),
            same: HashMap::new(),
            superseded: HashMap::new(),
            ids: HashSet::new(),
        };
        for item in &prior.items {
            let is_superseded = matches!(item.status, Status::SupersededBy(_));
            let is_leaving = is_superseded && !item.entry.section().is_ledger();
            // What was given up and is said again is a new item: the old one stays superseded.
            let known = if is_superseded {
                &mut merged.superseded
            } else {
                &mut merged.same
            };
            known
                .entry(matter(&item.entry))
                .or_insert(merged.items.len());
            merged.ids.insert(item.id.clone());
            merged.items.push(MergeItem {
                item: item.clone(),
                source: Source::Prior,
                last_said: item.provenance.message,
                is_leaving,
            });
        }
        merged
    }

    /// Adds what the new messages say, or folds it into what says the same. Returns which ids replace which.
    fn add(&mut self, mut fresh: Vec<Item>) -> HashMap<String, String> {
        let mut renamed = HashMap::new();
        refuse_links(&mut fresh);
        for (rank, mut item) in fresh.into_iter().enumerate() {
            let matter = matter(&item.entry);
            if matter.1.is_empty() {
                continue;
            }
            let asked_for = std::mem::take(&mut item.id);
            let is_superseded = matches!(item.status, Status::SupersededBy(_));
            let index = if let Some(index) = self.same.get(&matter).copied() {
                self.fold(index, item, rank);
                index
            } else if let Some(index) = self.superseded.get(&matter).copied()
                && is_superseded
            {
                index
            } else {
                item.id = if asked_for.is_empty() || self.ids.contains(&asked_for) {
                    let message = item.provenance.message;
                    free_id(&self.ids, matter.0, message, item.entry.text())
                } else {
                    asked_for.clone()
                };
                item.touched = self.version;
                self.ids.insert(item.id.clone());
                self.items.push(MergeItem {
                    last_said: item.provenance.message,
                    item,
                    source: Source::Fresh { rank },
                    is_leaving: false,
                });
                self.items.len() - 1
            };
            if is_superseded {
                self.same.remove(&matter);
                self.superseded.insert(matter, index);
            } else {
                self.same.insert(matter, index);
            }
            renamed.insert(asked_for, self.items[index].item.id.clone());
        }
        renamed
    }

    /// Takes over what a later item about the same matter knows beyond the one that is there.
    fn fold(&mut self, index: usize, later: Item, rank: usize) {
        let version = self.version;
        let merging = &mut self.items[index];
        if merging.source == Source::Prior {
            merging.source = Source::Both { rank };
        }
        merging.last_said = merging.last_said.max(later.provenance.message);
        let item = &mut merging.item;
        let before = (item.entry.clone(), item.status.clone(), item.origin);
        let (later_status, later_place) = (later.status, later.provenance);
        // The user made it their own.
        if later.origin == Origin::User && item.origin != Origin::User {
            item.origin = later.origin;
            item.provenance = later_place.clone();
        }
        match (&mut item.entry, later.entry) {
            (
                Entry::KeyDecision {
                    reason, constraint, ..
                },
                Entry::KeyDecision {
                    reason: later_reason,
                    constraint: later_constraint,
                    ..
                },
            ) => {
                *reason = later_reason.or_else(|| reason.take());
                *constraint = later_constraint.or_else(|| constraint.take());
            }
            (
                Entry::EliminatedApproach {
                    reason_ruled_out, ..
                },
                Entry::EliminatedApproach {
                    reason_ruled_out: later,
                    ..
                },
            ) => *reason_ruled_out = later.or_else(|| reason_ruled_out.take()),
            // An error that came back had not been resolved.
            (
                Entry::Error { resolution, .. },
                Entry::Error {
                    resolution: later, ..
                },
            ) if later.is_some() || later_status == Status::Active => *resolution = later,
            (
                Entry::NextStep { requested, .. },
                Entry::NextStep {
                    requested: later, ..
                },
            ) => {
                *requested = later;
            }
            (Entry::ToolResult { summary, .. }, Entry::ToolResult { summary: later, .. })
                if folded(summary) != folded(&later) =>
            {
                *summary = later;
                item.provenance = later_place;
            }
            _ => {}
        }
        // Words of the ledger do not get done; they hold until other words take their place.
        if !item.entry.section().is_ledger() || matches!(later_status, Status::SupersededBy(_)) {
            item.status = later_status;
        }
        if before != (item.entry.clone(), item.status.clone(), item.origin) {
            item.touched = version;
        }
    }

    /// Makes links between items of the new messages name the items that these have become, and adds those that the
    /// caller sees between old and new.
    fn link(
        &mut self,
        renamed: &HashMap<String, String>,
        supersedes: &dyn Fn(&Item, &Item) -> bool,
    ) {
        for index in 0..self.items.len() {
            let old = &self.items[index];
            let status = match (&old.item.status, old.source) {
                (Status::SupersededBy(_), Source::Prior) => continue,
                (Status::SupersededBy(by), _) => {
                    Status::SupersededBy(renamed.get(by).unwrap_or(by).clone())
                }
                (Status::Active | Status::Resolved, Source::Prior | Source::Both { .. }) => {
                    let section = old.item.entry.section();
                    let successor = self.items.iter().rev().find(|new| {
                        new.source != Source::Prior
                            && new.last_said > old.last_said
                            && new.item.entry.section() == section
                            && !matches!(new.item.status, Status::SupersededBy(_))
                            && may_supersede(&old.item, &new.item)
                            && supersedes(&old.item, &new.item)
                    });
                    match successor {
                        Some(successor) => Status::SupersededBy(successor.item.id.clone()),
                        None => continue,
                    }
                }
                (Status::Active | Status::Resolved, Source::Fresh { .. }) => continue,
            };
            let item = &mut self.items[index].item;
            if item.status != status {
                item.status = status;
                item.touched = self.version;
            }
        }
    }

    /// Marks what the next version has no use for.
    fn leave(&mut self) {
        let is_said_now = |section: Section| {
            self.items.iter().any(|merging| {
                merging.source != Source::Prior
                    && merging.item.entry.section() == section
                    && merging.item.status == Status::Active
            })
        };
        let has_new_state = is_said_now(Section::CurrentState);
        let has_new_steps = is_said_now(Section::NextSteps);
        let done: Vec<String> = self
            .items
            .iter()
            .filter(|merging| {
                merging.source != Source::Prior
                    && merging.item.entry.section() == Section::CompletedWork
            })
            .map(|merging| folded(merging.item.entry.text()))
            .collect();
        for merging in &mut self.items {
            let is_prior = merging.source == Source::Prior;
            let is_resolved = merging.item.status == Status::Resolved;
            merging.is_leaving |= match merging.item.entry.section() {
                Section::CurrentState => is_prior && has_new_state,
                Section::NextSteps => {
                    is_resolved
                        || is_prior && (has_new_steps || is_done(merging.item.entry.text(), &done))
                }
                Section::OpenQuestions => is_resolved,
                Section::Task
                | Section::CompletedWork
                | Section::KeyDecisions
                | Section::EliminatedApproaches
                | Section::Errors
                | Section::Corrections
                | Section::RelevantToolResults
                | Section::References => false,
            };
        }
    }

    /// The items in the order of the sections; next steps first as the new messages rank them.
    fn into_items(self) -> Vec<Item> {
        let mut items = self.items;
        items.retain(|merging| !merging.is_leaving);
        items.sort_by_key(|merging| {
            let section = merging.item.entry.section();
            let rank = match merging.source {
                Source::Both { rank } | Source::Fresh { rank } if section == Section::NextSteps => {
                    rank
                }
                _ => usize::MAX,
            };
            (section, rank)
        });
        items.into_iter().map(|merging| merging.item).collect()
    }
}

/// What an item is about: two items of the same matter are one.
fn matter(entry: &Entry) -> (Section, String) {
    let text = match entry {
        Entry::ToolResult { key, .. } if !key.trim().is_empty() => key,
        _ => entry.text(),
    };
    (entry.section(), folded(text))
}

/// Takes back what cannot be: an item that is superseded by one that says the same, and one of the ledger that is
/// superseded by anything but later words of the user.
fn refuse_links(fresh: &mut [Item]) {
    let refused: Vec<usize> = {
        let by_id: HashMap<&str, &Item> =
            fresh.iter().map(|item| (item.id.as_str(), item)).collect();
        let is_refused = |old: &Item| match &old.status {
            Status::SupersededBy(by) => match by_id.get(by.as_str()) {
                Some(new) => {
                    matter(&new.entry) == matter(&old.entry)
                        || !may_supersede(old, new)
                        || new.provenance.message < old.provenance.message
                }
                None => old.entry.section().is_ledger(),
            },
            Status::Active | Status::Resolved => false,
        };
        (0..fresh.len())
            .filter(|index| is_refused(&fresh[*index]))
            .collect()
    };
    for index in refused {
        fresh[index].status = Status::Active;
    }
}

/// A ledger item is replaced only by a later statement of the user that is in the ledger too: an item elsewhere could be
/// left out, and then neither would hold.
fn may_supersede(old: &Item, new: &Item) -> bool {
    !old.entry.section().is_ledger()
        || (new.origin == Origin::User && new.entry.section().is_ledger())
}

/// The shortest step, in bytes, that is looked for inside of longer lines of completed work: shorter ones (`run tests`)
/// occur in too many of them.
const STEP_BYTES_MIN: usize = 16;

/// Whether completed work (folded) speaks of the step.
fn is_done(step: &str, done: &[String]) -> bool {
    let step = folded(step);
    done.iter().any(|work| {
        *work == step
            || step.len() >= STEP_BYTES_MIN
                && work.find(&step).is_some_and(|at| {
                    let before = work[..at].chars().next_back();
                    let after = work[at + step.len()..].chars().next();
                    !before.is_some_and(char::is_alphanumeric)
                        && !after.is_some_and(char::is_alphanumeric)
                })
    })
}

#[cfg(test)]
mod tests;
