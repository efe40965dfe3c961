//! Collects the identifiers of a transcript, how they are used, and the most informative lines that contain them.

use std::collections::HashMap;

use super::identifiers::{self, Shape};

/// How a text came into the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// The person wrote it.
    User,
    /// The model wrote it.
    Assistant,
    /// The model called a tool with it.
    Call,
    /// A tool answered with it.
    Result,
    /// The model wrote it into a file.
    Written,
}

/// Number of [`Class`]es.
const CLASSES: usize = 5;
/// Lines that are kept for a name.
const LINES_MAX: usize = 4;
/// A line counts up to here, bytes.
const LINE_BYTES_MAX: usize = 400;

/// An identifier and its use.
pub(crate) struct Name {
    pub(crate) text: Box<str>,
    pub(crate) shape: Shape,
    /// In how many texts of each class.
    pub(crate) counts: [u32; CLASSES],
    /// In which text of each class last: its index + 1, or 0.
    pub(crate) last: [u32; CLASSES],
    /// In which text first.
    pub(crate) first: u32,
    /// How often it was the file of a call that reads or changes one.
    pub(crate) file_reads: u32,
    pub(crate) file_changes: u32,
    /// The best lines: index into [`Names::lines`].
    pub(crate) lines: Vec<u32>,
}

/// A line of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    /// Index of the text.
    pub(crate) text: u32,
    /// Where it begins and ends in the decoded text, bytes.
    pub(crate) start: u32,
    pub(crate) end: u32,
    quality: f32,
    digest: u64,
}

/// All names of a transcript.
#[derive(Default)]
pub(crate) struct Names {
    index: HashMap<Box<str>, u32, Hashing>,
    pub(crate) all: Vec<Name>,
    pub(crate) lines: Vec<Line>,
    found: Vec<(usize, usize, Shape)>,
}

impl Names {
    /// Notes the names in `text`, which is number `number` of the transcript; `offset` is where it begins in the
    /// decoded text.
    pub(crate) fn note(&mut self, number: u32, class: Class, text: &str, offset: usize) {
        let mut start = 0;
        for line in text.split('\n') {
            let line_start = start;
            start += line.len() + 1;
            if line.len() < 6 {
                continue;
            }
            let trimmed = line.trim_start();
            let trimmed_start = line_start + (line.len() - trimmed.len());
            let trimmed = trimmed.trim_end();
            let trimmed = &trimmed[..trimmed.floor_char_boundary(LINE_BYTES_MAX)];
            if trimmed.len() >= 6 {
                self.note_line(number, class, trimmed, offset + trimmed_start);
            }
        }
    }

    /// The index of a name.
    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        self.index.get(text).map(|index| *index as usize)
    }

    /// Notes that a file was read or changed.
    pub(crate) fn note_file(&mut self, path: &str, is_change: bool) {
        let name = path.rsplit('/').next().unwrap_or(path);
        for text in [path, name] {
            if let Some(index) = self.find(text) {
                if is_change {
                    self.all[index].file_changes += 1;
                } else {
                    self.all[index].file_reads += 1;
                }
            }
        }
    }

    fn note_line(&mut self, number: u32, class: Class, line: &str, start: usize) {
        let mut found = std::mem::take(&mut self.found);
        found.clear();
        let mut words = 0u32;
        identifiers::scan(
            line,
            |range, shape| found.push((range.start, range.end, shape)),
            |_| words += 1,
        );
        if found.is_empty() {
            self.found = found;
            return;
        }
        let quality = line_quality(class, words, line.len(), number);
        let mut line_index = None;
        let mut digest = 0;
        for &(from, to, shape) in &found {
            let text = &line[from..to];
            let index = match self.index.get(text) {
                Some(index) => *index,
                None => {
                    let index = self.all.len() as u32;
                    self.index.insert(text.into(), index);
                    self.all.push(Name {
                        text: text.into(),
                        shape,
                        counts: [0; CLASSES],
                        last: [0; CLASSES],
                        first: number,
                        file_reads: 0,
                        file_changes: 0,
                        lines: Vec::new(),
                    });
                    index
                }
            };
            let name = &mut self.all[index as usize];
            let last = &mut name.last[class as usize];
            if *last != number + 1 {
                *last = number + 1;
                name.counts[class as usize] += 1;
            }
            if class == Class::Written {
                continue;
            }
            let lines = &self.lines;
            if name.lines.len() == LINES_MAX
                && lines[name.lines[LINES_MAX - 1] as usize].quality >= quality
            {
                continue;
            }
            if digest == 0 {
                digest = hash(line.as_bytes()) | 1;
            }
            if name
                .lines
                .iter()
                .any(|known| lines[*known as usize].digest == digest)
            {
                continue;
            }
            let new = *line_index.get_or_insert_with(|| {
                self.lines.push(Line {
                    text: number,
                    start: start as u32,
                    end: (start + line.len()) as u32,
                    quality,
                    digest,
                });
                self.lines.len() as u32 - 1
            });
            let lines = &self.lines;
            let at = name
                .lines
                .partition_point(|known| lines[*known as usize].quality >= quality);
            name.lines.insert(at, new);
            name.lines.truncate(LINES_MAX);
        }
        self.found = found;
    }
}

/// How telling a line is: words beside the names, written by a person or the model, short, recent.
fn line_quality(class: Class, words: u32, length: usize, number: u32) -> f32 {
    let speaker = match class {
        Class::User => 3.0,
        Class::Assistant => 3.0,
        Class::Call | Class::Written => 0.0,
        Class::Result => -2.0,
    };
    let recent = number as f32 / (number as f32 + 150.0);
    words.min(12) as f32 - length as f32 / 60.0 + speaker + 2.0 * recent
}

#[derive(Clone, Default)]
struct Hashing;

impl std::hash::BuildHasher for Hashing {
    type Hasher = Fold;

    fn build_hasher(&self) -> Fold {
        Fold(0)
    }
}

/// A hash for short keys from a source that cannot gain by collisions: they cost it its own memory.
struct Fold(u64);

impl std::hash::Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash_from(self.0, bytes);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn hash(bytes: &[u8]) -> u64 {
    hash_from(0, bytes)
}

fn hash_from(seed: u64, bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = seed ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let mut mix = |word: u64| {
        let product = u128::from(state ^ word) * u128::from(MULTIPLIER);
        state = (product as u64) ^ (product >> 64) as u64;
    };
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        mix(u64::from_le_bytes(word));
    }
    let rest = chunks.remainder();
    let mut word = [0; 8];
    word[..rest.len()].copy_from_slice(rest);
    mix(u64::from_le_bytes(word) | 1 << 63);
    state
}
