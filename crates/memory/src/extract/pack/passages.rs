//! The lines of a transcript that are worth most for their size.
//!
//! A passage is a line, a part of it or a few lines, with the names in it. What it is worth is how likely the
//! rest of the session needs those names, and whether enough words surround them for a reader to know what they
//! are.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use crate::document::{Entry, Origin, Provenance};

use super::super::identifiers;
use super::super::names::Class;
use super::Packer;
use crate::extract::excerpt::excerpt;

/// Number of names for which passages are searched, per 1,000 tokens of the limit.
const NAMES_PER_THOUSAND: usize = 180;
/// Words that must surround a name for it to be understood.
const CONTEXT_WORDS: usize = 3;
/// How near they must be, bytes.
const CONTEXT_BYTES: usize = 170;
/// What the words around a name are worth, as a part of what the name is worth.
const CONTEXT_WORTH: f32 = 0.45;
/// What a word of the focus is worth, where a name that is certainly needed is worth 1.
const FOCUS_WORTH: f32 = 2.0;
/// Lines with words of the focus that are considered.
const FOCUS_LINES_MAX: usize = 400;

/// Size limit of an entry made of passages from one source, bytes.
const GROUP_BYTES_MAX: usize = 4000;
/// Between passages of one source.
const BETWEEN: &str = " · ";

/// Where a passage is: which surroundings, and which part of them.
type Place = (usize, Range<usize>);
/// A passage, and where it is.
type PlacedCandidate = (Place, Arc<Candidate>);

/// Passages that were looked at before, so that one more message costs time for what is new.
#[derive(Default)]
pub(in crate::extract) struct Preparation {
    basis: Basis,
    /// By line and name.
    passages: HashMap<(u32, u32), Vec<PlacedCandidate>>,
}

/// What a passage was judged by: with another basis all are judged again, so that a memory never depends on which
/// memories were asked for before.
#[derive(Default, PartialEq)]
struct Basis {
    /// What the probe costs: another way of counting makes other costs.
    unit: usize,
    /// Folder that paths are shown relative to.
    root: String,
    /// How many names are below that folder.
    relatives: usize,
    /// Words of the focus.
    focus: Vec<String>,
}

/// Text of several kinds, by whose cost one way of counting is told from another.
const PROBE: &str = "fn main() { let größe = HashMap::new(); } // 東京 2026-03-04T12:00:00Z, \"naïve\" /usr/lib/x86_64";

/// Passages that come from the result of one kind of call.
pub(super) struct Group {
    key: String,
    cost: usize,
    names: Vec<(usize, u8)>,
    bytes: usize,
    passages: Vec<Passage>,
    /// All that could be taken from it: index into the candidates.
    candidates: Vec<usize>,
}

struct Passage {
    start: usize,
    line: String,
}

/// The passages that were taken from tool results.
#[derive(Default)]
pub(super) struct Groups {
    /// By the text that contains them.
    groups: HashMap<u32, Group>,
    /// From which text each was taken, in order.
    taken: Vec<u32>,
    candidates: Vec<Arc<Candidate>>,
}

impl Groups {
    /// Whether nothing is left that could be given up.
    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Gives up the passage that was taken last, which brings least.
    pub(super) fn pop(&mut self) -> Option<String> {
        let text = self.taken.pop()?;
        let passage = self.groups.get_mut(&text)?.passages.pop()?;
        Some(passage.line)
    }

    /// What was taken from each text as one entry, with the number of the text.
    pub(super) fn entries(&self) -> Vec<(Entry, u32)> {
        let mut texts: Vec<(&u32, &Group)> = self.groups.iter().collect();
        texts.sort_by_key(|(text, _)| **text);
        let mut keys: HashMap<&str, usize> = HashMap::new();
        let mut entries = Vec::new();
        for (text, group) in texts {
            let mut passages: Vec<&Passage> = group.passages.iter().collect();
            passages.sort_by_key(|passage| passage.start);
            let lines: Vec<&str> = passages
                .iter()
                .map(|passage| passage.line.as_str())
                .collect();
            let entry = match lines.as_slice() {
                [] => continue,
                [line] => Entry::Reference {
                    text: (*line).to_owned(),
                },
                lines => {
                    let nth = keys.entry(&group.key).or_default();
                    *nth += 1;
                    Entry::ToolResult {
                        key: match *nth {
                            1 => group.key.clone(),
                            nth => format!("{} ({nth})", group.key),
                        },
                        summary: lines.join(BETWEEN),
                    }
                }
            };
            entries.push((entry, *text));
        }
        entries
    }
}

impl Packer<'_> {
    /// Fills what is left with the passages that bring the most expected use per token.
    pub(super) fn references(&mut self, groups: &mut Groups) {
        if groups.candidates.is_empty() {
            groups.candidates = self.collect();
        }
        let candidates = std::mem::take(&mut groups.candidates);
        let Groups { groups, taken, .. } = groups;
        for group in groups.values_mut() {
            group.candidates.clear();
        }
        let mut heap = BinaryHeap::new();
        for (index, candidate) in candidates.iter().enumerate() {
            if let Some(source) = self.extractor.texts[candidate.text as usize].source {
                let group = groups
                    .entry(candidate.text)
                    .or_insert_with(|| self.group(source));
                group.candidates.push(index);
            }
            heap.push(RankedPassage {
                ratio: self.gain(&candidate.names, candidate.focus) / candidate.cost as f32,
                index,
            });
        }
        while let Some(ranked) = heap.pop() {
            let candidate = &candidates[ranked.index];
            let group = groups.get(&candidate.text);
            // A single passage needs no source line; from the second on, the source is named.
            let opens = group.is_some_and(|group| group.passages.len() == 1);
            let mut gain = self.gain(&candidate.names, candidate.focus);
            let mut cost = candidate.cost;
            if let (true, Some(group)) = (opens, group) {
                gain += self.gain(&group.names, 0.0);
                cost += group.cost;
            }
            let is_full =
                group.is_some_and(|group| group.bytes + candidate.line.len() > GROUP_BYTES_MAX);
            let message = self.extractor.texts[candidate.text as usize].message;
            if cost > self.left || gain <= 0.0 || is_full || self.is_stale(&candidate.line, message)
            {
                continue;
            }
            let ratio = gain / cost as f32;
            if heap.peek().is_some_and(|next| next.ratio > ratio) {
                if ratio < ranked.ratio {
                    let index = ranked.index;
                    heap.push(RankedPassage { ratio, index });
                }
                continue;
            }
            let Some(group) = groups.get_mut(&candidate.text) else {
                let candidate = Candidate::clone(candidate);
                self.add_passage(candidate);
                continue;
            };
            self.cover(&candidate.names);
            if opens {
                self.cover(&group.names);
            }
            self.spend(cost);
            group.bytes += candidate.line.len() + BETWEEN.len();
            group.passages.push(Passage {
                start: candidate.start,
                line: candidate.line.clone(),
            });
            taken.push(candidate.text);
            if opens {
                // What had to pay for the key does so no longer.
                for index in group.candidates.clone() {
                    let candidate = &candidates[index];
                    let ratio =
                        self.gain(&candidate.names, candidate.focus) / candidate.cost as f32;
                    heap.push(RankedPassage { ratio, index });
                }
            }
        }
    }

    fn group(&self, source: u32) -> Group {
        let key = excerpt(&self.clean(&self.extractor.sources[source as usize]), 90);
        let line = format!("> {key}:\n");
        Group {
            cost: self.cost(&line),
            names: self.names_in(&line),
            key,
            bytes: 0,
            passages: Vec::new(),
            candidates: Vec::new(),
        }
    }

    fn add_passage(&mut self, candidate: Candidate) {
        let spoken = &self.extractor.texts[candidate.text as usize];
        let origin = match spoken.class {
            Class::User => Origin::User,
            Class::Assistant | Class::Call | Class::Written => Origin::Assistant,
            Class::Result => Origin::Tool,
        };
        let provenance = Provenance {
            message: spoken.message,
            at_ms: spoken.at_ms,
        };
        let mut share = self.left;
        let entry = Entry::Reference {
            text: candidate.line,
        };
        self.add(entry, origin, provenance, &mut share);
    }

    fn gain(&self, names: &[(usize, u8)], focus: f32) -> f32 {
        let worth = |state: u8| match state {
            0 => 0.0,
            1 => 1.0,
            _ => 1.0 + CONTEXT_WORTH,
        };
        let names: f32 = names
            .iter()
            .map(|(name, state)| {
                self.need[*name] * (worth(*state) - worth(self.covered[*name].min(*state)))
            })
            .sum();
        names + focus * FOCUS_WORTH
    }

    fn collect(&self) -> Vec<Arc<Candidate>> {
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
        let mut prepared = self.extractor.prepared.borrow_mut();
        let unit = self.cost(PROBE);
        let basis = Basis {
            unit,
            root: self.root.clone(),
            relatives: self.relatives.len(),
            focus: self.focus.clone(),
        };
        if prepared.basis != basis {
            *prepared = Preparation {
                basis,
                passages: HashMap::new(),
            };
        }
        let mut candidates = Vec::new();
        let mut texts: HashMap<u32, Cow<'_, str>> = HashMap::new();
        let mut lines: HashMap<u32, [Surroundings; SURROUNDINGS.len()]> = HashMap::new();
        let mut seen: HashSet<(u32, usize, usize, usize)> = HashSet::new();
        for name in order {
            for index in &names.all[name].lines {
                let found = prepared
                    .passages
                    .entry((*index, name as u32))
                    .or_insert_with(|| self.passages(name, *index, &mut texts, &mut lines));
                for (place, candidate) in found.iter() {
                    if seen.insert((*index, place.0, place.1.start, place.1.end)) {
                        candidates.push(Arc::clone(candidate));
                    }
                }
            }
        }
        drop(prepared);
        self.focus_candidates(&mut candidates);
        candidates
    }

    /// The passages around a name in one of its lines, with their places.
    fn passages<'t>(
        &'t self,
        name: usize,
        index: u32,
        texts: &mut HashMap<u32, Cow<'t, str>>,
        lines: &mut HashMap<u32, [Surroundings; SURROUNDINGS.len()]>,
    ) -> Vec<PlacedCandidate> {
        let names = &self.extractor.names;
        let line = names.lines[index as usize];
        let shown = self.relative(&names.all[name].text);
        let around = lines.entry(index).or_insert_with(|| {
            let text = texts
                .entry(line.text)
                .or_insert_with(|| self.extractor.texts[line.text as usize].text.decode());
            let range = line.start as usize..line.end as usize;
            SURROUNDINGS.map(|(above, below)| {
                self.surroundings(text, range.clone(), above, below)
                    .unwrap_or_default()
            })
        });
        let mut found: Vec<PlacedCandidate> = Vec::new();
        for (which, before, length) in WINDOWS {
            let Surroundings { text, at } = &around[which];
            let line_text = text.get(*at..).unwrap_or("");
            let Some(at) = line_text.find(shown).map(|found| at + found) else {
                continue;
            };
            let range = window(text, at, shown.len(), before, length);
            let place = (which, range.clone());
            // A name alone tells a reader nothing: it can be among the further names.
            let is_bare = text[range.clone()].trim() == shown;
            if !is_bare && found.iter().all(|(known, _)| *known != place) {
                let candidate = self.candidate(&text[range], line.text, line.start as usize);
                found.push((place, Arc::new(candidate)));
            }
        }
        found
    }

    fn candidate(&self, line: &str, text: u32, start: usize) -> Candidate {
        Candidate {
            cost: self.cost(&format!("- {line}\n")),
            names: self.names_in(line),
            focus: self.focus_in(line),
            text,
            start,
            line: line.to_owned(),
        }
    }

    /// The newest lines that hold words of the focus.
    fn focus_candidates(&self, candidates: &mut Vec<Arc<Candidate>>) {
        if self.focus.is_empty() {
            return;
        }
        let mut count = 0;
        let mut seen = HashSet::new();
        for (number, spoken) in self.extractor.texts.iter().enumerate().rev() {
            for line in spoken.text.decode().lines() {
                let line = line.get(..line.floor_char_boundary(2000)).unwrap_or("");
                if self.focus_in(line) == 0.0 {
                    continue;
                }
                let line = self.clean(line);
                let at = self.first_focus(&line).unwrap_or(0);
                let window = &line[window(&line, at, 1.min(line.len() - at), 80, 200)];
                if !window.is_empty() && seen.insert(window.to_owned()) {
                    candidates.push(Arc::new(self.candidate(window, number as u32, 0)));
                    count += 1;
                }
                if count >= FOCUS_LINES_MAX {
                    return;
                }
            }
        }
    }

    /// How many words of the focus are in a line.
    pub(super) fn focus_in(&self, line: &str) -> f32 {
        if self.focus.is_empty() {
            return 0.0;
        }
        let line = line.to_lowercase();
        self.focus
            .iter()
            .filter(|word| line.contains(word.as_str()))
            .count() as f32
    }

    fn first_focus(&self, line: &str) -> Option<usize> {
        let lower = line.to_lowercase();
        let at = self
            .focus
            .iter()
            .filter_map(|word| lower.find(word.as_str()))
            .min()?;
        // Lower case may have another length: then near enough is good enough.
        Some(line.floor_char_boundary(at))
    }

    /// The names in a line, each with 2 if enough words surround it for it to be understood, else 1.
    pub(super) fn names_in(&self, line: &str) -> Vec<(usize, u8)> {
        let mut names: Vec<(usize, usize, usize)> = Vec::new();
        let mut words: Vec<(usize, &str)> = Vec::new();
        let index = &self.extractor.names;
        identifiers::scan(
            line,
            |range, _| {
                let found = &line[range.clone()];
                let mut add = |name: Option<usize>| {
                    names.extend(name.map(|name| (name, range.start, range.end)));
                };
                add(index.find(found));
                add(self.relatives.get(found).copied());
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

    /// The line at `range` of `text` with some lines above and below, as they are shown.
    fn surroundings(
        &self,
        text: &str,
        range: Range<usize>,
        above: usize,
        below: usize,
    ) -> Option<Surroundings> {
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
        push_line(&mut passage, &line);
        let at = passage.len() - line.len();
        for line in text.get(range.end..)?.lines().skip(1).take(below) {
            if passage.len() - at > 400 {
                break;
            }
            let line = line.get(..line.floor_char_boundary(200)).unwrap_or("");
            push_line(&mut passage, &self.clean(line));
        }
        Some(Surroundings { text: passage, at })
    }

    /// A line as it is shown: without line numbers of a listing, white space folded, paths relative.
    fn clean(&self, line: &str) -> String {
        let mut line = super::super::fold(line);
        if let Some((number, rest)) = line.split_once('→')
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            line = rest.trim_start().to_owned();
        }
        if !self.root.is_empty() && self.root_finder.find(line.as_bytes()).is_some() {
            line = line.replace(&format!("{}/", self.root), "");
        }
        line
    }
}

#[derive(Clone)]
pub(super) struct Candidate {
    cost: usize,
    names: Vec<(usize, u8)>,
    /// Words of the focus in it.
    focus: f32,
    text: u32,
    /// Where the line begins in the text, bytes.
    start: usize,
    line: String,
}

/// A candidate by what it brings per token.
struct RankedPassage {
    ratio: f32,
    index: usize,
}

impl PartialEq for RankedPassage {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RankedPassage {}

impl PartialOrd for RankedPassage {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RankedPassage {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ratio
            .total_cmp(&other.ratio)
            .then_with(|| other.index.cmp(&self.index))
    }
}

/// A line and what surrounds it, as it is shown.
#[derive(Default)]
struct Surroundings {
    text: String,
    /// Where the line begins in it.
    at: usize,
}

/// What is looked at around a line: lines above and below.
const SURROUNDINGS: [(usize, usize); 3] = [(0, 0), (0, 4), (2, 6)];
/// The passages around a name that are considered: which surroundings, bytes before the name, bytes in all.
const WINDOWS: [(usize, usize, usize); 5] = [
    (0, 30, 70),
    (0, 60, 130),
    (0, 75, 190),
    (1, 60, 200),
    (2, 120, 320),
];

fn push_line(passage: &mut String, line: &str) {
    if !line.is_empty() {
        if !passage.is_empty() {
            passage.push_str(" · ");
        }
        passage.push_str(line);
    }
}

pub(super) fn is_stop_word(word: &str) -> bool {
    const STOP: &[&str] = &[
        "the", "and", "for", "with", "from", "that", "this", "are", "was", "were", "been", "not",
        "but", "then", "you", "she", "they", "them", "his", "her", "its", "our", "your", "can",
        "will", "would", "should", "could", "has", "have", "had", "does", "did",
    ];
    word.len() <= 6 && STOP.iter().any(|stop| stop.eq_ignore_ascii_case(word))
}

/// The part of `line` around `at..at + length`, at most `bytes` long unless the name is longer, cut between words.
fn window(line: &str, at: usize, length: usize, before: usize, bytes: usize) -> Range<usize> {
    if line.len() <= bytes {
        return 0..line.len();
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
    let shown = line[start..end].trim_end();
    start..start + shown.len()
}
