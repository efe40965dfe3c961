//! Chooses what goes into a memory of a given size.
//!
//! First what a reader cannot do without, each kind within its share: the latest request, the user's corrections, the
//! goal, where things stand, files that were changed, errors. What room is left goes to lines of the transcript that
//! hold the names which the rest of the session most likely needs, each with the words around it: the line is taken
//! that brings the most expected use per token.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use crate::document::{Cover, Entry, Item, Memory, Origin, Provenance, Requested, Status};
use crate::render::markdown;

use super::names::Class;
use super::tools::{FileUse, PlanState};
use super::{Extractor, identifiers, rank};

/// How large a memory may be, and how that is counted.
pub struct Limit<'a> {
    /// Tokens, a hard cap on the rendering.
    pub tokens: usize,
    /// Counts tokens.
    pub count: &'a dyn Fn(&str) -> usize,
}

/// Names that lines are looked for, per 1,000 tokens of the limit.
const NAMES_PER_THOUSAND: usize = 400;
/// Words that must stand around a name for it to be understood.
const CONTEXT_WORDS: usize = 3;
/// How near they must stand, bytes.
const CONTEXT_BYTES: usize = 170;
/// Of a user's message this much is quoted, bytes, unless there is room for more.
const QUOTE_BYTES: usize = 300;

impl Extractor {
    /// The memory of everything read so far, in at most `limit` tokens.
    #[must_use]
    pub fn memory(&self, limit: &Limit<'_>) -> Memory {
        Packing::new(self, limit).run()
    }
}

struct Packing<'a> {
    extractor: &'a Extractor,
    limit: &'a Limit<'a>,
    /// Probability that a name is needed, by name.
    need: Vec<f32>,
    /// 0: not in the memory yet; 1: in it; 2: in it with context.
    covered: Vec<u8>,
    /// Folder that paths are shown relative to.
    root: String,
    left: usize,
    items: Vec<Item>,
}

impl<'a> Packing<'a> {
    fn new(extractor: &'a Extractor, limit: &'a Limit<'a>) -> Self {
        let texts = extractor.texts.len() as u32;
        Self {
            extractor,
            limit,
            need: extractor
                .names
                .all
                .iter()
                .map(|name| rank::need(name, texts))
                .collect(),
            covered: vec![0; extractor.names.all.len()],
            root: extractor.root(),
            left: limit.tokens,
            items: Vec::new(),
        }
    }

    fn run(mut self) -> Memory {
        let memory = self.empty();
        let overhead = markdown::first_line(&memory)
            + &markdown::Heading::ALL.map(markdown::heading_lines).concat();
        self.left = self.left.saturating_sub((self.limit.count)(&overhead) + 4);
        self.requests();
        self.state();
        self.files();
        self.errors();
        self.references();
        let mut memory = self.empty();
        memory.items = self.items;
        memory
            .items
            .sort_by_key(|item| (item.entry.section(), item.provenance.message));
        while (self.limit.count)(&markdown::render(&memory)) > self.limit.tokens {
            let drop = memory
                .items
                .iter()
                .rposition(|item| !item.entry.section().is_ledger());
            match drop.or_else(|| memory.items.len().checked_sub(1)) {
                Some(index) => memory.items.remove(index),
                None => break,
            };
        }
        memory
    }

    fn empty(&self) -> Memory {
        Memory {
            version: 1,
            cover: Cover {
                messages: self.extractor.messages,
                turns: self.extractor.turns,
                digest: String::new(),
                until_ms: self.extractor.until_ms,
            },
            language: None,
            items: Vec::new(),
        }
    }

    /// Adds an item if it fits in what is left and in `share`, from which it is taken off too.
    fn add(
        &mut self,
        entry: Entry,
        origin: Origin,
        provenance: Provenance,
        share: &mut usize,
    ) -> bool {
        let text = entry.text().trim_end_matches('…');
        if text.is_empty()
            || self
                .items
                .iter()
                .any(|item| item.entry.text().contains(text))
        {
            return false;
        }
        let item = Item {
            id: Item::id_for(entry.section(), provenance.message, entry.text()),
            entry,
            origin,
            provenance,
            status: Status::Active,
            touched: 1,
        };
        let line = markdown::item_lines(&item);
        let cost = (self.limit.count)(&line);
        if cost > self.left || cost > *share {
            return false;
        }
        self.cover(&line);
        self.left -= cost;
        *share -= cost;
        self.items.push(item);
        true
    }

    /// Notes the names that stand in a line of the memory.
    fn cover(&mut self, line: &str) {
        for (name, state) in self.names_in(line) {
            self.covered[name] = self.covered[name].max(state);
        }
    }

    /// The names in a line, each with 2 if enough words stand around it for it to be understood, else 1.
    fn names_in(&self, line: &str) -> Vec<(usize, u8)> {
        let mut names: Vec<(usize, usize, usize)> = Vec::new();
        let mut words: Vec<(usize, &str)> = Vec::new();
        let index = &self.extractor.names;
        identifiers::scan(
            line,
            |range, _| {
                let mut add = |name: Option<usize>| {
                    names.extend(name.map(|name| (name, range.start, range.end)));
                };
                add(index.find(&line[range.clone()]));
                if !self.root.is_empty() {
                    add(index.find(&format!("{}/{}", self.root, &line[range.clone()])));
                }
            },
            |range| {
                let word = &line[range.clone()];
                if !is_stop_word(word) {
                    words.push((range.start, word));
                }
            },
        );
        names
            .into_iter()
            .map(|(name, start, end)| {
                let mut around: [&str; CONTEXT_WORDS] = [""; CONTEXT_WORDS];
                let mut count = 0;
                for (at, word) in &words {
                    let is_near = *at + CONTEXT_BYTES > start && *at < end + CONTEXT_BYTES;
                    if is_near
                        && !around[..count]
                            .iter()
                            .any(|known| known.eq_ignore_ascii_case(word))
                    {
                        around[count] = word;
                        count += 1;
                        if count == CONTEXT_WORDS {
                            break;
                        }
                    }
                }
                (name, if count == CONTEXT_WORDS { 2 } else { 1 })
            })
            .collect()
    }

    fn share(&self, percent: usize) -> usize {
        self.limit.tokens * percent / 100
    }

    fn requests(&mut self) {
        let extractor = self.extractor;
        let requests = &extractor.requests;
        let Some(latest) = requests.len().checked_sub(1) else {
            return;
        };
        let provenance = |request: &super::Request| Provenance {
            message: request.message,
            at_ms: request.at_ms,
        };

        // The ledger: messages by which the person puts something right, forbids or prefers it, newest first.
        let mut share = self.share(45);
        for (index, request) in requests.iter().enumerate().rev() {
            if request.rules.is_empty() && request.ledger >= 40 && index > 0 {
                let text = excerpt(&request.text, QUOTE_BYTES);
                self.add(
                    Entry::Correction { text },
                    Origin::User,
                    provenance(request),
                    &mut share,
                );
            }
        }

        // The requests themselves: the latest, the first, then from the newest to the oldest.
        let mut share = self.share(40);
        let order = std::iter::once(latest)
            .chain(std::iter::once(0))
            .chain((0..latest).rev());
        for index in order {
            if requests[index].is_small_talk && index != latest {
                continue;
            }
            let bytes = if index == latest || index == 0 {
                2 * QUOTE_BYTES
            } else {
                QUOTE_BYTES
            };
            let text = excerpt(&requests[index].text, bytes);
            self.add(
                Entry::Task { text },
                Origin::User,
                provenance(&requests[index]),
                &mut share,
            );
        }

        // Single sentences of longer messages that belong in the ledger.
        let mut rules: Vec<_> = requests
            .iter()
            .flat_map(|request| request.rules.iter().map(move |rule| (request, rule)))
            .collect();
        rules.sort_by_key(|(request, (_, confidence))| {
            std::cmp::Reverse((*confidence, request.message))
        });
        let mut share = self.share(15);
        for (request, (rule, _)) in rules.into_iter().take(RULES_MAX) {
            let text = excerpt(rule, QUOTE_BYTES);
            self.add(
                Entry::Correction { text },
                Origin::User,
                provenance(request),
                &mut share,
            );
        }
    }

    fn state(&mut self) {
        let mut share = self.share(10);
        let extractor = self.extractor;
        if let Some(said) = extractor.last_said {
            let spoken = &extractor.texts[said as usize];
            let text = excerpt(&super::fold(&spoken.text.decode()), 300);
            let provenance = Provenance {
                message: spoken.message,
                at_ms: spoken.at_ms,
            };
            self.add(
                Entry::CurrentState { text },
                Origin::Assistant,
                provenance,
                &mut share,
            );
        }
        if let Some(plan) = &extractor.plan {
            for step in plan
                .steps
                .iter()
                .filter(|step| step.state != PlanState::Done)
            {
                let provenance = Provenance {
                    message: plan.message,
                    at_ms: None,
                };
                let entry = Entry::NextStep {
                    text: step.text.clone(),
                    requested: Requested::Implied,
                };
                self.add(entry, Origin::Assistant, provenance, &mut share);
            }
        }
    }

    fn files(&mut self) {
        let mut share = self.share(25);
        let mut files: Vec<_> = self
            .extractor
            .files
            .iter()
            .filter(|file| file.changes > 0)
            .collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.last_text));
        for file in files {
            let path = self.relative(&file.path);
            let how = match file.last_use {
                FileUse::Created => " (created)",
                FileUse::Deleted => " (deleted)",
                FileUse::Changed | FileUse::Read => "",
            };
            let text = format!("{path}{how}");
            let provenance = Provenance {
                message: file.message,
                at_ms: None,
            };
            self.add(
                Entry::CompletedWork { text },
                Origin::Code,
                provenance,
                &mut share,
            );
        }
    }

    fn errors(&mut self) {
        let mut share = self.share(7);
        let mut errors: Vec<_> = self
            .extractor
            .errors
            .iter()
            .filter(|error| error.score >= 50)
            .collect();
        errors.sort_by_key(|error| std::cmp::Reverse((error.score / 20, error.message)));
        for error in errors {
            let text = excerpt(&error.text, 230);
            let provenance = Provenance {
                message: error.message,
                at_ms: error.at_ms,
            };
            if self.items.iter().any(|item| item.entry.text() == text) {
                continue;
            }
            let entry = Entry::Error {
                text,
                resolution: error.resolution.clone(),
            };
            self.add(entry, Origin::Tool, provenance, &mut share);
        }
    }

    fn relative<'p>(&self, path: &'p str) -> &'p str {
        if self.root.is_empty() {
            return path;
        }
        path.strip_prefix(self.root.as_str())
            .and_then(|rest| rest.strip_prefix('/'))
            .unwrap_or(path)
    }

    /// Fills what is left with the lines that bring the most expected use per token.
    fn references(&mut self) {
        let mut heap = self.candidates();
        while let Some(mut candidate) = heap.pop() {
            if candidate.cost > self.left {
                continue;
            }
            let gain = self.gain(&candidate);
            if gain <= 0.0 {
                continue;
            }
            candidate.ratio = gain / candidate.cost as f32;
            if heap.peek().is_some_and(|next| next.ratio > candidate.ratio) {
                heap.push(candidate);
                continue;
            }
            let spoken = &self.extractor.texts[candidate.text as usize];
            let origin = match spoken.class {
                Class::User => Origin::User,
                Class::Assistant => Origin::Assistant,
                Class::Call | Class::Written => Origin::Assistant,
                Class::Result => Origin::Tool,
            };
            let provenance = Provenance {
                message: spoken.message,
                at_ms: spoken.at_ms,
            };
            let mut share = self.left;
            self.add(
                Entry::Reference {
                    text: candidate.line,
                },
                origin,
                provenance,
                &mut share,
            );
        }
    }

    fn gain(&self, candidate: &Candidate) -> f32 {
        candidate
            .names
            .iter()
            .map(|(name, state)| {
                let worth = |state: u8| match state {
                    0 => 0.0,
                    1 => 1.0,
                    _ => 1.0 + tune(0, 0.5),
                };
                self.need[*name] * (worth(*state) - worth(self.covered[*name].min(*state)))
            })
            .sum()
    }

    fn candidates(&self) -> BinaryHeap<Candidate> {
        let names = &self.extractor.names;
        let mut order: Vec<usize> = (0..names.all.len())
            .filter(|name| self.covered[*name] < 2)
            .collect();
        let wanted = (NAMES_PER_THOUSAND * self.limit.tokens / 1000).max(100);
        let by_need = |a: &usize, b: &usize| self.need[*b].total_cmp(&self.need[*a]).then(a.cmp(b));
        if order.len() > wanted {
            order.select_nth_unstable_by(wanted, by_need);
            order.truncate(wanted);
        }
        order.sort_by(by_need);
        let mut decoded: HashMap<u32, std::borrow::Cow<'_, str>> = HashMap::new();
        let mut seen = std::collections::HashSet::new();
        let mut heap = BinaryHeap::new();
        for name in order {
            for line in &names.all[name].lines {
                let line = names.lines[*line as usize];
                let text = decoded
                    .entry(line.text)
                    .or_insert_with(|| self.extractor.texts[line.text as usize].text.decode());
                let shown = self.relative(&names.all[name].text);
                let range = line.start as usize..line.end as usize;
                for (above, below, before, length) in WINDOWS {
                    let Some((whole, at)) = self.passage(text, range.clone(), above, below, shown)
                    else {
                        continue;
                    };
                    let window = window(&whole, at, shown.len(), before, length);
                    if !seen.insert((line.text, window.to_owned())) {
                        continue;
                    }
                    let names = self.names_in(window);
                    let cost = (self.limit.count)(&format!("- {window}\n"));
                    let mut candidate = Candidate {
                        ratio: 0.0,
                        cost,
                        names,
                        text: line.text,
                        line: window.to_owned(),
                    };
                    candidate.ratio = self.gain(&candidate) / cost as f32;
                    heap.push(candidate);
                }
            }
        }
        heap
    }

    /// The line at `range` of `text` with some lines above and below, as it is shown, and where `shown` stands in it.
    fn passage(
        &self,
        text: &str,
        range: std::ops::Range<usize>,
        above: usize,
        below: usize,
        shown: &str,
    ) -> Option<(String, usize)> {
        let mut passage = String::new();
        let mut start = range.start;
        for _ in 0..above {
            let end = text.get(..start)?.trim_end().len();
            start = text.get(..end)?.rfind('\n').map_or(0, |at| at + 1);
            if range.start - start > 200 {
                break;
            }
        }
        if start < range.start {
            for line in text.get(start..range.start)?.lines() {
                push_line(&mut passage, &self.clean(line));
            }
        }
        let line = self.clean(text.get(range.clone())?);
        let at = line.find(shown)?;
        push_line(&mut passage, &line);
        let at = passage.len() - line.len() + at;
        for line in text.get(range.end..)?.lines().skip(1).take(below) {
            if passage.len() - at > 300 {
                break;
            }
            let line = line.get(..line.floor_char_boundary(200)).unwrap_or("");
            push_line(&mut passage, &self.clean(line));
        }
        Some((passage, at))
    }

    /// A line as it is shown: without line numbers of a listing, white space folded, paths relative.
    fn clean(&self, line: &str) -> String {
        let mut line = super::fold(line);
        if let Some((number, rest)) = line.split_once('→')
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            line = rest.trim_start().to_owned();
        }
        if !self.root.is_empty() && line.contains(self.root.as_str()) {
            line = line.replace(&format!("{}/", self.root), "");
        }
        line
    }
}

struct Candidate {
    ratio: f32,
    cost: usize,
    names: Vec<(usize, u8)>,
    text: u32,
    line: String,
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ratio
            .total_cmp(&other.ratio)
            .then_with(|| other.text.cmp(&self.text))
            .then_with(|| self.line.cmp(&other.line))
    }
}

/// Sentences of longer messages that are put into the ledger.
const RULES_MAX: usize = 40;
/// The passages around a name that are considered: lines above and below, bytes before the name, bytes in all.
const WINDOWS: [(usize, usize, usize, usize); 5] = [
    (0, 0, 30, 70),
    (0, 0, 60, 130),
    (0, 0, 75, 190),
    (0, 4, 60, 200),
    (2, 6, 120, 320),
];

fn push_line(passage: &mut String, line: &str) {
    if !line.is_empty() {
        if !passage.is_empty() {
            passage.push_str(" · ");
        }
        passage.push_str(line);
    }
}

fn is_stop_word(word: &str) -> bool {
    const STOP: &[&str] = &[
        "the", "and", "for", "with", "from", "that", "this", "are", "was", "were", "been", "not",
        "but", "then", "you", "she", "they", "them", "his", "her", "its", "our", "your", "can",
        "will", "would", "should", "could", "has", "have", "had", "does", "did",
    ];
    word.len() <= 6 && STOP.iter().any(|stop| stop.eq_ignore_ascii_case(word))
}

/// The part of `line` around `at..at + length`, at most `bytes` long, cut between words.
fn window(line: &str, at: usize, length: usize, before: usize, bytes: usize) -> &str {
    if line.len() <= bytes {
        return line;
    }
    let mut start = line.floor_char_boundary(at.saturating_sub(before));
    if start > 0 {
        start = line[start..at]
            .find(' ')
            .map_or(at, |space| start + space + 1);
    }
    let wanted = line.floor_char_boundary((start + bytes).min(line.len()).max(at + length));
    let mut end = wanted;
    if end < line.len() {
        end = line[at + length..end]
            .rfind(' ')
            .map_or(end, |space| at + length + space);
    }
    line[start..end].trim()
}

/// The start of a text, cut between words and marked if it is longer than `bytes`.
fn excerpt(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes);
    let end = text[..end]
        .rfind(' ')
        .filter(|space| *space > bytes / 2)
        .unwrap_or(end);
    format!("{}…", &text[..end])
}

pub(crate) fn tune(index: usize, default: f32) -> f32 {
    static T: std::sync::OnceLock<Vec<Option<f32>>> = std::sync::OnceLock::new();
    T.get_or_init(|| {
        std::env::var("TUNE")
            .unwrap_or_default()
            .split(',')
            .map(|v| v.parse().ok())
            .collect()
    })
    .get(index)
    .copied()
    .flatten()
    .unwrap_or(default)
}
