//! Turns an answer into items, and edits into a memory.

use std::collections::{HashMap, HashSet};

use super::{Ground, RepairedMemory, item_of};
use crate::document::{Entry, Item, Memory, Origin, Provenance, RequestKind, Section, Status};
use crate::render::restoring;
use crate::summarise::answer::{AnswerContent, Change, NewItem};
use crate::summarise::guard::{in_place_of_an_answer, words};
use crate::summarise::outcome::{Finding, Flaw};
use crate::summarise::parse::{entry_of, line_of, says_something};
use crate::summarise::reason::Fault;
use crate::summarise::source::Places;
use crate::summarise::transcript::is_hidden;
use crate::update::{self, Edit, folded, free_id};

/// Makes a memory of what the model said.
pub(in crate::summarise) fn draw_up(parsed: AnswerContent, ground: &Ground<'_>) -> RepairedMemory {
    let drawer = Drawer::new(ground);
    match parsed {
        AnswerContent::Whole(said) => drawer.whole(said),
        AnswerContent::Additions(said) => drawer.additions(said),
        AnswerContent::Edits(changes) => drawer.edits(changes),
    }
}

struct Drawer<'a> {
    ground: &'a Ground<'a>,
    /// Items of the base, then those of the draft that the base does not have.
    known: Vec<&'a Item>,
    by_text: HashMap<(Section, String), usize>,
    by_line: HashMap<String, usize>,
    ledger: HashSet<String>,
    /// Requests that have been answered.
    answered: Vec<String>,
    /// The longer words of the user.
    asked: HashSet<String>,
    findings: Vec<Finding>,
}

/// The fewest bytes of words that a tool said by more than chance.
const TOOL_WORDS_BYTES_MIN: usize = 20;

impl<'a> Drawer<'a> {
    fn new(ground: &'a Ground<'a>) -> Self {
        let mut known: Vec<&Item> = ground.base.items.iter().collect();
        let ids: HashSet<&str> = known.iter().map(|item| item.id.as_str()).collect();
        known.extend(
            ground
                .draft
                .items
                .iter()
                .filter(|item| !ids.contains(item.id.as_str())),
        );
        let mut by_text = HashMap::new();
        let mut by_line = HashMap::new();
        let mut ledger = HashSet::new();
        let mut answered = Vec::new();
        let mut asked = HashSet::new();
        for (index, item) in known.iter().enumerate() {
            let section = item.entry.section();
            if section.is_ledger() {
                ledger.insert(folded(item.entry.text()));
                ledger.insert(folded(&line_of(item)));
            }
            if item.origin == Origin::User {
                asked.extend(words(item.entry.text()));
            }
            if section == Section::Task && item.status == Status::Resolved {
                answered.push(folded(item.entry.text()));
            }
            if !matches!(item.status, Status::SupersededBy(_)) {
                by_text.entry(matter(&item.entry)).or_insert(index);
                by_line.entry(line_of(item)).or_insert(index);
            }
        }
        for part in &ground.source.parts {
            if part.kind.origin() == Some(Origin::User) {
                asked.extend(words(&part.text));
            }
        }
        Self {
            ground,
            known,
            by_text,
            by_line,
            ledger,
            answered,
            asked,
            findings: Vec::new(),
        }
    }

    /// The memory is what the answer says: what it repeats stays as it was, what it leaves out goes.
    fn whole(mut self, said: Vec<NewItem>) -> RepairedMemory {
        let ground = self.ground;
        let mut items: Vec<Item> = self.items(said);
        items.extend(ground.base.section(Section::Corrections).cloned());
        items.sort_by_key(|item| item.entry.section());
        RepairedMemory {
            memory: Memory {
                version: ground.draft.version,
                items,
                ..ground.base.clone()
            },
            given_up: HashSet::new(),
            findings: self.findings,
        }
    }

    /// The answer may hold only what is new.
    fn additions(mut self, said: Vec<NewItem>) -> RepairedMemory {
        let ground = self.ground;
        let mut items = self.items(said);
        items.sort_by_key(|item| item.entry.section());
        let fresh = Memory {
            items,
            ..ground.base.clone()
        };
        let mut memory = update::merge(ground.base, fresh);
        memory.version = ground.draft.version;
        RepairedMemory {
            memory,
            given_up: HashSet::new(),
            findings: self.findings,
        }
    }

    fn edits(mut self, changes: Vec<Change>) -> RepairedMemory {
        let ground = self.ground;
        let texts: Vec<String> = changes.iter().map(|change| self.words_of(change)).collect();
        let places = self.places(&texts);
        let mut edits = Vec::new();
        // Edits that fall out here would shift the numbers of the others.
        let mut numbers = Vec::new();
        let mut given_up = HashSet::new();
        for ((index, change), place) in changes.into_iter().enumerate().zip(places) {
            let edit = match change {
                Change::Add(said) => {
                    let Some(item) = self.new_item(said, place) else {
                        continue;
                    };
                    Edit::Add {
                        entry: item.entry,
                        origin: item.origin,
                        provenance: item.provenance,
                    }
                }
                Change::Replace {
                    id,
                    text,
                    detail,
                    limit,
                } => {
                    let Some(old) = item_of(ground.base, &id) else {
                        edits.push(Edit::Resolve {
                            id,
                            resolution: None,
                        });
                        numbers.push(index);
                        continue;
                    };
                    let entry = self.replaced(old, text, detail, limit);
                    if let Some(why) = self.reason_to_drop(&entry, place) {
                        self.take_out(old.id.clone(), entry.section(), why, true);
                        continue;
                    }
                    Edit::Replace { id, entry }
                }
                Change::Resolve { id, resolution } => Edit::Resolve {
                    id,
                    resolution: resolution.map(|how| self.clean(&how)),
                },
                Change::Supersede { id, by } => {
                    given_up.insert(id.clone());
                    Edit::Supersede { id, by }
                }
                Change::Drop { id, reason } => {
                    given_up.insert(id.clone());
                    Edit::Drop { id, reason }
                }
            };
            edits.push(edit);
            numbers.push(index);
        }
        let applied = update::apply(ground.base, &edits, ground.draft.cover.clone());
        for refused in applied.refused {
            self.findings.push(Finding::EditRefused {
                edit: numbers.get(refused.edit).copied().unwrap_or(refused.edit),
                refusal: refused.refusal,
            });
        }
        let mut memory = applied.memory;
        memory.version = ground.draft.version;
        // What could not be given up is still wanted.
        given_up.retain(|id| {
            item_of(&memory, id).is_none_or(|item| matches!(item.status, Status::SupersededBy(_)))
        });
        RepairedMemory {
            memory,
            given_up,
            findings: self.findings,
        }
    }

    /// Items for what was said, those that are known as they are.
    fn items(&mut self, said: Vec<NewItem>) -> Vec<Item> {
        enum Slot {
            Known(Item),
            New(NewItem),
        }
        let mut slots = Vec::with_capacity(said.len());
        let mut ids: HashSet<String> = HashSet::new();
        let mut texts = Vec::new();
        for said in said {
            if self.is_in_ledger(&said) {
                continue;
            }
            match self.known_as(&said) {
                Some(index) => {
                    let item = self.known[index].clone();
                    if ids.insert(item.id.clone()) {
                        slots.push(Slot::Known(self.told_more(item, said)));
                    }
                }
                None => {
                    texts.push(self.clean(said.entry.text()));
                    slots.push(Slot::New(said));
                }
            }
        }
        let mut places = self.places(&texts).into_iter();
        let mut taken: HashSet<String> = self.known.iter().map(|item| item.id.clone()).collect();
        let mut matters: HashSet<(Section, String)> = HashSet::new();
        let mut items = Vec::with_capacity(slots.len());
        for slot in slots {
            let item = match slot {
                Slot::Known(item) => item,
                Slot::New(said) => {
                    let place = places.next().unwrap_or_default();
                    let Some(mut item) = self.new_item(said, place) else {
                        continue;
                    };
                    item.id = free_id(
                        &taken,
                        item.entry.section(),
                        item.provenance.message,
                        item.entry.text(),
                    );
                    taken.insert(item.id.clone());
                    item
                }
            };
            if matters.insert(matter(&item.entry)) {
                items.push(item);
            }
        }
        items
    }

    fn is_in_ledger(&self, said: &NewItem) -> bool {
        self.ledger.contains(&folded(said.entry.text()))
            || said
                .line
                .as_ref()
                .is_some_and(|line| self.ledger.contains(&folded(line)))
    }

    fn known_as(&self, said: &NewItem) -> Option<usize> {
        let by_line = said.line.as_ref().and_then(|line| self.by_line.get(line));
        by_line
            .or_else(|| self.by_text.get(&matter(&said.entry)))
            .copied()
            .filter(|index| !self.known[*index].entry.section().is_ledger())
    }

    /// A known item with what the answer knows beyond it.
    fn told_more(&self, item: Item, said: NewItem) -> Item {
        let mut told = item.clone();
        // Of a line of Markdown that is repeated word for word there is nothing to learn.
        if said.line.is_some() && said.line.as_deref() == Some(line_of(&item).as_str()) {
            return item;
        }
        match (&mut told.entry, said.entry) {
            (
                Entry::KeyDecision {
                    reason, constraint, ..
                },
                Entry::KeyDecision {
                    reason: more,
                    constraint: limit,
                    ..
                },
            ) => {
                *reason = reason.take().or(more.map(|more| self.clean(&more)));
                *constraint = constraint.take().or(limit.map(|limit| self.clean(&limit)));
            }
            (
                Entry::EliminatedApproach {
                    reason_ruled_out, ..
                },
                Entry::EliminatedApproach {
                    reason_ruled_out: more,
                    ..
                },
            ) => {
                *reason_ruled_out = reason_ruled_out
                    .take()
                    .or(more.map(|more| self.clean(&more)));
            }
            (
                Entry::Error { resolution, .. },
                Entry::Error {
                    resolution: more, ..
                },
            ) => *resolution = resolution.take().or(more.map(|more| self.clean(&more))),
            _ => {}
        }
        if told.status == Status::Active && said.status == Status::Resolved {
            told.status = Status::Resolved;
        }
        if told != item {
            told.touched = self.ground.draft.version;
        }
        told
    }

    /// An item that was not there before; its id is not set. `None` if it is refused.
    fn new_item(&mut self, said: NewItem, place: Places) -> Option<Item> {
        let version = self.ground.draft.version;
        let mut entry = said.entry;
        for text in entry.texts_mut() {
            *text = self.clean(text);
        }
        if !says_something(entry.text()) {
            return None;
        }
        if let Entry::Correction { text } = &entry {
            // What the user said is in the ledger, or code saw no rule in it; what is no rule may be an error.
            let text = text.clone();
            entry = if place.in_user {
                entry_of(Section::KeyDecisions, text, None, None)
            } else if is_trouble(&text) {
                entry_of(Section::Errors, text, None, None)
            } else {
                let why = if place.in_tool.is_some() {
                    Flaw::ToolAsksForIt
                } else {
                    Flaw::LedgerIsClosed
                };
                self.take_out(String::new(), Section::Corrections, why, false);
                return None;
            };
        }
        if self.ledger.contains(&folded(entry.text())) {
            return None;
        }
        if let Some(why) = self.reason_to_drop(&entry, place) {
            self.take_out(String::new(), entry.section(), why, false);
            return None;
        }
        let section = entry.section();
        let ground = self.ground;
        let part = |index: usize| &ground.source.parts[index];
        let (origin, part) = if let Some(index) = place.as_user {
            (Origin::User, Some(part(index)))
        } else if let (Some(index), None, false) =
            (place.in_tool, place.in_assistant, place.in_user)
        {
            (Origin::Tool, Some(part(index)))
        } else {
            let index = place.in_assistant.or(place.in_tool);
            (Origin::Assistant, index.map(part))
        };
        let covered = self.ground.draft.cover.messages;
        let named = said
            .message
            .and_then(|number| usize::try_from(number.checked_sub(1)?).ok())
            .filter(|message| *message < covered);
        let message = part
            .map(|part| part.message)
            .or(named)
            .unwrap_or(self.ground.last)
            .min(covered.saturating_sub(1));
        let at_ms = self
            .ground
            .source
            .parts
            .iter()
            .find(|part| part.message == message)
            .and_then(|part| part.at_ms);
        if let Entry::NextStep { text, requested } = &mut entry
            && *requested == RequestKind::Explicit
            && !is_asked_for(text, &self.asked)
        {
            *requested = RequestKind::Implied;
            let id = Item::id_for(section, message, text);
            self.findings.push(Finding::NotAskedFor { id });
        }
        Some(Item {
            id: String::new(),
            entry,
            origin,
            provenance: Provenance { message, at_ms },
            status: said.status,
            touched: version,
        })
    }

    /// Why an entry is refused, if it is.
    fn reason_to_drop(&self, entry: &Entry, place: Places) -> Option<Flaw> {
        let text = entry.text();
        let is_said = place.in_user || place.in_assistant.is_some() || place.in_tool.is_some();
        if !is_said && in_place_of_an_answer(text) == Some(Fault::ErrorText) {
            return Some(Flaw::ErrorText);
        }
        let section = entry.section();
        // A step is often asked for in the middle of what a tool says; the user's words make it the user's.
        if matches!(
            section,
            Section::Task | Section::NextSteps | Section::KeyDecisions
        ) && text.len() >= TOOL_WORDS_BYTES_MIN
            && place.in_tool.is_some()
            && !place.in_user
            && place.in_assistant.is_none()
        {
            return Some(Flaw::ToolAsksForIt);
        }
        if section == Section::NextSteps && self.is_answered(text) {
            return Some(Flaw::Answered);
        }
        None
    }

    fn is_answered(&self, step: &str) -> bool {
        /// Shorter requests ("go on") occur in too many steps.
        const REQUEST_BYTES_MIN: usize = 12;
        let step = folded(step);
        let step = step.trim_end_matches(['.', '!', '?', '。']);
        self.answered.iter().any(|request| {
            let request = request.trim_end_matches(['.', '!', '?', '。']);
            step == request
                || step.len() >= REQUEST_BYTES_MIN && request.contains(step)
                || request.len() >= REQUEST_BYTES_MIN && step.contains(request)
        })
    }

    fn replaced(
        &self,
        old: &Item,
        text: String,
        detail: Option<String>,
        limit: Option<String>,
    ) -> Entry {
        let (old_detail, old_limit) = match &old.entry {
            Entry::KeyDecision {
                reason, constraint, ..
            } => (reason.clone(), constraint.clone()),
            Entry::EliminatedApproach {
                reason_ruled_out, ..
            } => (reason_ruled_out.clone(), None),
            Entry::Error { resolution, .. } => (resolution.clone(), None),
            Entry::ToolResult { key, .. } => (Some(key.clone()), None),
            Entry::NextStep { requested, .. } => {
                let word = match requested {
                    RequestKind::Explicit => "explicit",
                    RequestKind::Implied => "implied",
                };
                (Some(word.to_owned()), None)
            }
            _ => (None, None),
        };
        // Whether the user asked for a step does not change with its wording.
        let detail = match old.entry {
            Entry::NextStep { .. } => old_detail,
            _ => detail.map(|detail| self.clean(&detail)).or(old_detail),
        };
        let limit = limit.map(|limit| self.clean(&limit)).or(old_limit);
        entry_of(old.entry.section(), self.clean(&text), detail, limit)
    }

    fn words_of(&self, change: &Change) -> String {
        match change {
            Change::Add(said) => self.clean(said.entry.text()),
            Change::Replace { text, .. } => self.clean(text),
            Change::Resolve { .. } | Change::Supersede { .. } | Change::Drop { .. } => {
                String::new()
            }
        }
    }

    fn places(&self, texts: &[String]) -> Vec<Places> {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        self.ground.source.places(&texts)
    }

    /// A text of the model without secrets, hidden characters and blocks of an earlier memory.
    fn clean(&self, text: &str) -> String {
        let visible: String = text
            .trim()
            .chars()
            .filter(|c| *c == '\n' || !is_hidden(*c))
            .collect();
        let own = restoring::without_blocks(&visible);
        self.ground.redaction.redact(own.trim()).into_owned()
    }

    fn take_out(&mut self, id: String, section: Section, why: Flaw, is_rest_kept: bool) {
        self.findings.push(Finding::TakenOut {
            id,
            section,
            why,
            is_rest_kept,
        });
    }
}

/// What an entry is recognised by.
fn matter(entry: &Entry) -> (Section, String) {
    (entry.section(), folded(entry.text()))
}

/// Whether a line speaks of something that went wrong.
fn is_trouble(text: &str) -> bool {
    const WORDS: [&str; 20] = [
        "error",
        "fail",
        "exception",
        "panic",
        "broke",
        "bug",
        "crash",
        "refused",
        "timeout",
        "timed out",
        "conflict",
        "missing",
        "wrong",
        "denied",
        "invalid",
        "fehler",
        "erreur",
        "falló",
        "エラー",
        "错误",
    ];
    let text = text.to_lowercase();
    WORDS.iter().any(|word| text.contains(word))
}

/// Whether at least half of the longer words of a step are words of the user.
fn is_asked_for(step: &str, asked: &HashSet<String>) -> bool {
    let own = words(step);
    let said = own.iter().filter(|word| asked.contains(*word)).count();
    said * 2 >= own.len()
}
