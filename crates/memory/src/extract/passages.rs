//! The lines of a transcript that bring most for their size.
//!
//! A passage is a line, a part of it or a few lines, with the names that stand in it. What it is worth is how likely the
//! rest of the session needs those names, and whether enough words stand around them for a reader to know what they
//! are.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::ops::Range;

use crate::document::{Entry, Origin, Provenance};

use super::identifiers;
use super::names::Class;
use super::pack::Packing;

/// Names that passages are looked for, per 1,000 tokens of the limit.
const NAMES_PER_THOUSAND: usize = 300;
/// Words that must stand around a name for it to be understood.
const CONTEXT_WORDS: usize = 3;
/// How near they must stand, bytes.
const CONTEXT_BYTES: usize = 170;
/// What the words around a name are worth, as a part of what the name is worth.
const CONTEXT_WORTH: f32 = 0.45;
/// What a word of the focus is worth, where a name that is certainly needed is worth 1.
const FOCUS_WORTH: f32 = 2.0;
/// Lines with words of the focus that are considered.
const FOCUS_LINES_MAX: usize = 400;

impl Packing<'_> {
    /// Fills what is left with the passages that bring the most expected use per token.
    pub(super) fn references(&mut self) {
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
    }

    fn gain(&self, candidate: &Candidate) -> f32 {
        let worth = |state: u8| match state {
            0 => 0.0,
            1 => 1.0,
            _ => 1.0 + CONTEXT_WORTH,
        };
        let names: f32 = candidate
            .names
            .iter()
            .map(|(name, state)| {
                self.need[*name] * (worth(*state) - worth(self.covered[*name].min(*state)))
            })
            .sum();
        names + candidate.focus * FOCUS_WORTH
    }

    fn candidates(&self) -> BinaryHeap<Candidate> {
        let names = &self.extractor.names;
        let mut order: Vec<usize> = (0..names.all.len())
            .filter(|name| self.covered[*name] < 2)
            .collect();
        let wanted = (NAMES_PER_THOUSAND * self.limit.tokens / 1000).max(100);
        let by_need =
            |a: &usize, b: &usize| self.need[*b].total_cmp(&self.need[*a]).then(a.cmp(b));
        if order.len() > wanted {
            order.select_nth_unstable_by(wanted, by_need);
            order.truncate(wanted);
        }
        order.sort_by(by_need);
        let mut decoded: HashMap<u32, Cow<'_, str>> = HashMap::new();
        let mut seen = HashSet::new();
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
                    let Some((whole, at)) =
                        self.passage(text, range.clone(), above, below, shown)
                    else {
                        continue;
                    };
                    let window = window(&whole, at, shown.len(), before, length);
                    if seen.insert((line.text, window.to_owned())) {
                        heap.push(self.candidate(window, line.text));
                    }
                }
            }
        }
        self.focus_candidates(&mut heap);
        heap
    }

    fn candidate(&self, line: &str, text: u32) -> Candidate {
        let mut candidate = Candidate {
            ratio: 0.0,
            cost: (self.limit.count)(&format!("- {line}\n")),
            names: self.names_in(line),
            focus: self.focus_in(line),
            text,
            line: line.to_owned(),
        };
        candidate.ratio = self.gain(&candidate) / candidate.cost as f32;
        candidate
    }

    /// The newest lines that hold words of the focus.
    fn focus_candidates(&self, heap: &mut BinaryHeap<Candidate>) {
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
                let window = window(&line, at, 1, 80, 200);
                if !window.is_empty() && seen.insert(window.to_owned()) {
                    heap.push(self.candidate(window, number as u32));
                    count += 1;
                }
                if count >= FOCUS_LINES_MAX {
                    return;
                }
            }
        }
    }

    /// How many of the words of the focus stand in a line.
    pub(super) fn focus_in(&self, line: &str) -> f32 {
        if self.focus.is_empty() {
            return 0.0;
        }
        let line = line.to_lowercase();
        self.focus.iter().filter(|word| line.contains(word.as_str())).count() as f32
    }

    fn first_focus(&self, line: &str) -> Option<usize> {
        let lower = line.to_lowercase();
        let at = self.focus.iter().filter_map(|word| lower.find(word.as_str())).min()?;
        // Lower case may have another length: then near enough is good enough.
        Some(line.floor_char_boundary(at))
    }

    /// The names in a line, each with 2 if enough words stand around it for it to be understood, else 1.
    pub(super) fn names_in(&self, line: &str) -> Vec<(usize, u8)> {
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

    /// The line at `range` of `text` with some lines above and below, as it is shown, and where `shown` stands in it.
    fn passage(
        &self,
        text: &str,
        range: Range<usize>,
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
    /// Words of the focus in it.
    focus: f32,
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

pub(super) fn is_stop_word(word: &str) -> bool {
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
