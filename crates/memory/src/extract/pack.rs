//! Chooses what goes into a memory of a given size.
//!
//! First the essentials, each kind within its share: the ledger, the requests, the current state,
//! what comes next, files that were changed, errors, decisions. What room is left goes to the passages of the
//! transcript that hold the names which the rest of the session most likely needs.

mod attachments;
mod ledger;
mod passages;
mod remarks;
mod requests;
mod settings;
mod stale;
mod state;
mod work;

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::cues::{self, StatementKind};
use crate::document::{
    Cover, Entry, Item, Memory, Origin, Provenance, RequestKind, Section, Status,
};
use crate::render::markdown;
use crate::update::merge_linked;
use crate::verify::RELATIVE_TO;

use passages::Groups;
pub(super) use passages::Preparation;

use super::answers::Answer;
use super::excerpt::{self, Part, excerpt};
use super::tools::PlanState;
use super::{Extractor, Statement, rank};
use ledger::Holds;
use stale::{StaleValue, stale_values};

/// How large a memory may be, and how that is counted.
pub struct Limit<'a> {
    /// Tokens, a hard cap on the Markdown rendering.
    pub tokens: usize,
    /// Counts tokens.
    pub count: &'a dyn Fn(&str) -> usize,
    /// Words that the user wants the memory to be about.
    pub focus: Option<&'a str>,
}

/// Number of words of a focus text that are searched for.
const FOCUS_WORDS_MAX: usize = 24;

/// Whether what an item says takes the place of what an earlier one says: of every sentence of it, or the rest would be
/// lost with it.
pub(crate) fn takes_the_place(earlier: &Item, later: &Item) -> bool {
    const SURE: u8 = 80;
    let is_sure =
        |old: &str, new: &str| cues::supersedes(old, new).is_some_and(|sure| sure >= SURE);
    let (earlier, later) = (earlier.entry.text(), later.entry.text());
    let sentences = cues::sentences(earlier);
    match sentences.as_slice() {
        [] | [_] => is_sure(earlier, later),
        sentences => {
            let new = cues::sentences(later);
            sentences.iter().all(|old| {
                new.iter()
                    .any(|new| is_sure(&earlier[old.clone()], &later[new.clone()]))
            })
        }
    }
}

impl Extractor<'_> {
    /// The memory of everything read so far, in at most `limit` tokens of Markdown.
    #[must_use]
    pub fn memory(&self, limit: &Limit<'_>) -> Memory {
        let mut memory = Packer::new(self, limit).run();
        self.redact_again(&mut memory);
        let Some(mut earlier) = self.earlier_memory() else {
            return memory;
        };
        self.redact_again(&mut earlier);
        self.note_answers(&mut earlier);
        let merged = merge_linked(&earlier, memory, &takes_the_place);
        crate::update::fit(merged, limit.tokens, limit.count).memory
    }

    /// Notes in a memory of earlier messages what these have answered: the latest request that was open, and the
    /// model's questions, once the person has spoken.
    pub(crate) fn note_answers(&self, memory: &mut Memory) {
        let version = memory.version.saturating_add(1);
        if self.has_heard() {
            for item in &mut memory.items {
                let is_question = matches!(item.entry, Entry::OpenQuestion { .. });
                if is_question && item.origin == Origin::Assistant && item.status == Status::Active
                {
                    item.status = Status::Resolved;
                    item.touched = version;
                }
            }
        }
        let latest =
            memory.items.iter_mut().rev().find(|item| {
                matches!(item.entry, Entry::Task { .. }) && item.status == Status::Active
            });
        if let Some(item) = latest
            && let Some((said, status)) = self.answer_to_earlier()
            && let Entry::Task { answer, .. } = &mut item.entry
        {
            *answer = Some(said);
            item.status = status;
            item.touched = version;
        }
    }
}

/// Builds a memory within a limit.
struct Packer<'a> {
    extractor: &'a Extractor<'a>,
    limit: &'a Limit<'a>,
    /// Probability that a name is needed, by name.
    need: Vec<f32>,
    /// 0: not in the memory yet; 1: in it; 2: in it with context.
    covered: Vec<u8>,
    /// Folder that paths are shown relative to.
    root: String,
    /// Finds that folder.
    root_finder: memchr::memmem::Finder<'static>,
    /// The names below that folder as they are shown.
    relatives: HashMap<&'a str, usize>,
    /// What the model has just answered, and which requests that answers.
    last_answer: Option<(Answer, Vec<usize>)>,
    /// Values that the person has since changed.
    stale: Vec<StaleValue>,
    /// Words of the focus, in lower case.
    focus: Vec<String>,
    /// Tokens that are left.
    left: usize,
    items: Vec<Item>,
}

impl<'a> Packer<'a> {
    fn new(extractor: &'a Extractor<'a>, limit: &'a Limit<'a>) -> Self {
        let moment = extractor.moment;
        let names = &extractor.names.all;
        let root = extractor.root();
        let mut relatives = HashMap::new();
        if !root.is_empty() {
            for (index, name) in names.iter().enumerate() {
                let rest = name.text.strip_prefix(root.as_str());
                if let Some(rest) = rest.and_then(|rest| rest.strip_prefix('/')) {
                    relatives.insert(rest, index);
                }
            }
        }
        Self {
            extractor,
            limit,
            need: names.iter().map(|name| rank::need(name, moment)).collect(),
            covered: vec![0; names.len()],
            root_finder: memchr::memmem::Finder::new(&root).into_owned(),
            root,
            relatives,
            last_answer: extractor.answered(extractor.is_waiting),
            stale: stale_values(extractor),
            focus: focus_words(limit.focus.unwrap_or("")),
            left: limit.tokens,
            items: Vec::new(),
        }
    }

    fn run(mut self) -> Memory {
        let first_line = markdown::first_line(&self.empty());
        let overhead = if self.is_small() && self.is_chat() {
            // Rules and requests are all that there is room for.
            [
                first_line,
                markdown::heading_lines(markdown::Heading::UserIntent),
                markdown::heading_lines(markdown::Heading::ErrorsAndCorrections),
            ]
            .concat()
        } else {
            first_line
                + markdown::TOOL_MARK
                + &markdown::Heading::ALL.map(markdown::heading_lines).concat()
                + markdown::ANSWERED
                + markdown::OPEN
        };
        // Pieces that are counted one by one can cost a little less than the whole.
        let margin = self.limit.tokens / 200;
        self.left = self.left.saturating_sub(self.cost(&overhead) + margin);
        self.latest_request();
        self.ledger(Holds::Yes);
        if self.is_small() {
            // What is still to be done comes before what was answered.
            self.next_steps(self.share(20));
        }
        self.requests(match (self.is_chat(), self.focus.is_empty()) {
            (true, true) => self.left * 3 / 4,
            (true, false) => self.share(25),
            (false, _) if self.is_small() => self.share(45),
            (false, _) => self.share(28),
        });
        self.state();
        self.next_steps(self.share(7));
        self.files();
        self.unsure_files();
        self.errors();
        self.statements();
        self.outcomes();
        self.ledger(Holds::NoLonger);
        self.answers();
        self.folder();
        self.attachments();
        self.settings();
        if self.is_chat() {
            self.remarks(self.share(25));
            if self.focus.is_empty() {
                self.requests(self.left);
                self.longer_answers(self.left * 3 / 4, self.limit.tokens);
            }
        }
        if !self.is_chat() {
            self.requests(self.share(7));
        }
        let mut share = self.share(4);
        self.last_words(&mut share);
        // The larger the memory, the less the next passage brings beside a list of further names.
        let reserve = self.share((self.limit.tokens / 130).saturating_sub(2).clamp(4, 30));
        self.left = self.left.saturating_sub(reserve);
        let mut groups = Groups::default();
        self.references(&mut groups);
        self.left += reserve;
        let mut further = self.further_names();
        if self.left > self.limit.tokens / 50 {
            self.references(&mut groups);
        }
        self.late_remarks();
        // What is left goes to answers.
        self.longer_answers(self.left, self.limit.tokens);
        let mut memory = self.empty();
        let items = std::mem::take(&mut self.items);
        loop {
            memory.items.clone_from(&items);
            for (entry, text) in groups.entries() {
                let spoken = &self.extractor.texts[text as usize];
                let provenance = Provenance {
                    message: spoken.message,
                    at_ms: spoken.at_ms,
                };
                memory
                    .items
                    .push(self.item(entry, Origin::Tool, provenance, Status::Active));
            }
            if let Some(entry) = further_entry(&further) {
                let provenance = Provenance {
                    message: self.extractor.messages.saturating_sub(1),
                    at_ms: None,
                };
                memory
                    .items
                    .push(self.item(entry, Origin::Code, provenance, Status::Active));
            }
            memory
                .items
                .sort_by_key(|item| (item.entry.section(), item.provenance.message));
            let tokens = self.cost(&markdown::render(&memory));
            let mut excess = tokens.saturating_sub(self.limit.tokens);
            if excess == 0 || (further.is_empty() && groups.is_empty()) {
                break;
            }
            while excess > 0 {
                let Some(given_up) = further.pop().or_else(|| groups.pop()) else {
                    break;
                };
                excess = excess.saturating_sub(self.cost(&given_up).max(1));
            }
        }
        crate::update::fit(memory, self.limit.tokens, self.limit.count).memory
    }

    fn item(&self, entry: Entry, origin: Origin, provenance: Provenance, status: Status) -> Item {
        Item {
            id: Item::id_for(entry.section(), provenance.message, entry.text()),
            entry,
            origin,
            provenance,
            status,
            touched: self.extractor.version,
        }
    }

    fn empty(&self) -> Memory {
        let extractor = self.extractor;
        let requests = extractor
            .requests
            .iter()
            .map(|request| request.text.as_str());
        Memory {
            version: extractor.version,
            cover: Cover {
                messages: extractor.messages,
                turns: extractor.turns,
                digest: extractor.chain.digest(),
                until_ms: extractor.until_ms,
            },
            language: cues::language(requests).map(str::to_owned),
            items: Vec::new(),
        }
    }

    /// Adds an item if it fits in what is left and in `share`, from which it is taken off too, and if nothing says the
    /// same yet.
    fn add(
        &mut self,
        entry: Entry,
        origin: Origin,
        provenance: Provenance,
        share: &mut usize,
    ) -> bool {
        self.add_with(entry, origin, provenance, Status::Active, share)
    }

    fn add_with(
        &mut self,
        entry: Entry,
        origin: Origin,
        provenance: Provenance,
        status: Status,
        share: &mut usize,
    ) -> bool {
        let text = entry.text().trim_end_matches('…');
        let section = entry.section();
        let is_said = self
            .items
            .iter()
            .any(|item| item.entry.text().contains(text) && !may_repeat(section, &status, item));
        let can_be_stale = !matches!(
            section,
            Section::Task | Section::Corrections | Section::Errors
        );
        if text.is_empty() || is_said || can_be_stale && self.is_stale(text, provenance.message) {
            return false;
        }
        let item = self.item(entry, origin, provenance, status);
        let line = markdown::item_lines(&item);
        let cost = self.cost(&line);
        if cost > self.left || cost > *share || self.items.iter().any(|known| known.id == item.id) {
            return false;
        }
        self.cover(&self.names_in(&line));
        self.spend(cost);
        *share -= cost;
        self.items.push(item);
        true
    }

    /// The part of a text that takes at most about `tokens`.
    fn quote(&self, text: &str, tokens: usize, part: Part) -> String {
        /// Of a text this much is counted for each token, bytes: more does not fit.
        const SAMPLE_BYTES: usize = 8;
        // A token is a byte at least.
        if text.len() <= tokens {
            return text.to_owned();
        }
        let sample = &text[..text.floor_char_boundary(tokens * SAMPLE_BYTES)];
        let cost = self.cost(sample);
        if sample.len() == text.len() && cost <= tokens {
            return text.to_owned();
        }
        let characters = sample.chars().count() * tokens / cost.max(1);
        excerpt::part(text, characters, part)
    }

    /// What a text takes, tokens.
    fn cost(&self, text: &str) -> usize {
        (self.limit.count)(text)
    }

    /// Takes tokens from what is left.
    fn spend(&mut self, tokens: usize) {
        self.left = self.left.saturating_sub(tokens);
    }

    /// Notes that these names are in the memory, and whether with context.
    fn cover(&mut self, names: &[(usize, u8)]) {
        for (name, state) in names {
            self.covered[*name] = self.covered[*name].max(*state);
        }
    }

    fn share(&self, percent: usize) -> usize {
        self.limit.tokens * percent / 100
    }

    /// Whether the limit has room for the densest facts only.
    fn is_small(&self) -> bool {
        const TOKENS: usize = 700;
        self.limit.tokens < TOKENS
    }

    /// Whether no tool was called: the person's own words are most of what there is to remember.
    fn is_chat(&self) -> bool {
        !self.extractor.has_tools
    }

    /// Open steps of the plan, and what the model said last about what comes next.
    fn next_steps(&mut self, mut share: usize) {
        let extractor = self.extractor;
        if let Some(plan) = &extractor.plan {
            for step in plan
                .steps
                .iter()
                .filter(|step| step.state != PlanState::Done)
            {
                let text = match step.state {
                    PlanState::InProgress => format!("in progress: {}", step.text),
                    PlanState::Open | PlanState::Done => step.text.clone(),
                };
                let entry = Entry::NextStep {
                    text: excerpt(&text, 200),
                    requested: RequestKind::Implied,
                };
                let provenance = Provenance {
                    message: plan.message,
                    at_ms: None,
                };
                self.add(entry, Origin::Assistant, provenance, &mut share);
            }
        }
        // Messages before the user's last one have been answered or overtaken.
        let since = extractor
            .requests
            .last()
            .map_or(0, |request| request.message);
        let last = extractor
            .last_said
            .map_or(0, |said| extractor.texts[said as usize].message);
        for statement in extractor
            .statements
            .iter()
            .filter(|statement| statement.message >= since)
        {
            let text = excerpt(&statement.text, 220);
            let entry = match statement.kind {
                StatementKind::NextStep if statement.message == last => Entry::NextStep {
                    text,
                    requested: RequestKind::Implied,
                },
                StatementKind::OpenQuestion if statement.message == last => {
                    Entry::OpenQuestion { text }
                }
                _ => continue,
            };
            self.add(entry, Origin::Assistant, statement.provenance(), &mut share);
        }
    }

    /// Decisions, approaches that were given up, and what the model says it has done.
    fn statements(&mut self) {
        let extractor = self.extractor;
        for (kind, percent) in [
            (StatementKind::Decision, 3),
            (StatementKind::Eliminated, 2),
            (StatementKind::Completed, 2),
        ] {
            let mut share = self.share(percent);
            let mut found: Vec<&Statement> = extractor
                .statements
                .iter()
                .filter(|statement| statement.kind == kind)
                .collect();
            found.sort_by_key(|statement| {
                (
                    Reverse(self.focus_in(&statement.text) as u32),
                    Reverse(statement.confidence / 20),
                    Reverse(statement.message),
                )
            });
            for statement in found {
                if statement
                    .claim
                    .trim_end_matches(['*', ' '])
                    .ends_with([':', ','])
                {
                    // It announces what follows, which is not in it.
                    continue;
                }
                let entry = match kind {
                    StatementKind::Decision => Entry::KeyDecision {
                        decision: excerpt(&statement.claim, 200),
                        reason: statement
                            .reason
                            .as_deref()
                            .map(|reason| excerpt(reason, 160)),
                        constraint: statement
                            .constraint
                            .as_deref()
                            .map(|text| excerpt(text, 120)),
                    },
                    StatementKind::Eliminated => Entry::EliminatedApproach {
                        approach: excerpt(&statement.claim, 200),
                        reason_ruled_out: statement
                            .reason
                            .as_deref()
                            .map(|reason| excerpt(reason, 160)),
                    },
                    _ => Entry::CompletedWork {
                        text: excerpt(&statement.text, 180),
                    },
                };
                self.add(entry, statement.origin, statement.provenance(), &mut share);
            }
        }
    }

    /// Names that no passage brought along, the most likely ones that fit: something to search the archive for.
    fn further_names(&mut self) -> Vec<String> {
        const FEWEST: usize = 3;
        const NEED_MIN: f32 = 0.001;
        let names = &self.extractor.names.all;
        let frame = self.cost(&format!("- {FURTHER}\n")) + 2;
        let mut left = self.left.saturating_sub(frame);
        let mut order: Vec<usize> = (0..names.len())
            .filter(|name| self.covered[*name] == 0 && self.need[*name] > NEED_MIN)
            .filter(|name| !self.is_stale(&names[*name].text, 0))
            .collect();
        order.sort_by(|a, b| self.need[*b].total_cmp(&self.need[*a]).then(a.cmp(b)));
        order.truncate(left);
        let mut ranked: Vec<(f32, usize, usize)> = order
            .into_iter()
            .map(|name| {
                let cost = self.cost(&format!(", {}", self.relative(&names[name].text)));
                (self.need[name] / cost as f32, cost, name)
            })
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.2.cmp(&b.2)));
        let mut further: Vec<String> = Vec::new();
        let mut taken = Vec::new();
        for (_, cost, name) in ranked {
            let shown = self.relative(&names[name].text);
            if cost <= left && further.iter().all(|known| !known.ends_with(shown)) {
                left -= cost;
                further.push(shown.to_owned());
                taken.push(name);
            }
        }
        if further.len() < FEWEST {
            return Vec::new();
        }
        for name in taken {
            self.covered[name] = 1;
        }
        self.left = left;
        further
    }

    fn folder(&mut self) {
        if !self.root.is_empty() {
            let text = format!("{RELATIVE_TO}{}", self.root);
            let mut share = self.share(3);
            self.add(
                Entry::Reference { text },
                Origin::Code,
                Provenance::default(),
                &mut share,
            );
        }
    }

    fn relative<'p>(&self, path: &'p str) -> &'p str {
        if self.root.is_empty() {
            return path;
        }
        path.strip_prefix(self.root.as_str())
            .and_then(|rest| rest.strip_prefix('/'))
            .filter(|rest| !rest.is_empty())
            .unwrap_or(path)
    }
}

/// How the list of further names begins.
const FURTHER: &str = "Further names in use: ";

fn further_entry(names: &[String]) -> Option<Entry> {
    (!names.is_empty()).then(|| Entry::Reference {
        text: format!("{FURTHER}{}", names.join(", ")),
    })
}

impl Statement {
    fn provenance(&self) -> Provenance {
        Provenance {
            message: self.message,
            at_ms: self.at_ms,
        }
    }
}

/// Whether an entry may say again what another item says: what waits for an answer is said even where the last words
/// of the model are quoted, a rule outlives the request that it is part of, and an open request is listed even if it is a
/// rule.
fn may_repeat(section: Section, status: &Status, item: &Item) -> bool {
    match section {
        Section::NextSteps | Section::OpenQuestions => {
            item.entry.section() == Section::CurrentState
        }
        Section::Corrections => item.entry.section() == Section::Task,
        Section::Task => *status == Status::Active && item.entry.section() == Section::Corrections,
        _ => false,
    }
}

fn focus_words(focus: &str) -> Vec<String> {
    let mut words: Vec<String> = focus
        .split(|character: char| character.is_whitespace() || ",;:!?()\"'`".contains(character))
        .map(|word| word.trim_matches('.').to_lowercase())
        .filter(|word| word.chars().count() >= 3 && !passages::is_stop_word(word))
        .collect();
    words.sort();
    words.dedup();
    words.truncate(FOCUS_WORDS_MAX);
    words
}
