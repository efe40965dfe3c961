//! Rules of languages that are matched by strings and not by words: those written without spaces, and those whose words
//! change so much that their endings say more.
use aho_corasick::AhoCorasick;

use super::files::At;
use super::rules::{Match, Rule};

/// The strings of one language.
pub(super) struct UnspacedRules {
    pub(super) softeners: Vec<String>,
    pub(super) phrases: Strings,
    pub(super) vetoes: Strings,
}

impl UnspacedRules {
    /// What they find in `sentence`, by the kinds and places of `rules`.
    pub(super) fn matches(&self, rules: &'static [Rule], sentence: &str) -> Vec<Match> {
        let past_words = sentence
            .trim_end_matches(|c: char| !c.is_alphanumeric())
            .len();
        let vetoes = self.vetoes.find(sentence);
        let begins_clause = |start: usize| {
            let before = sentence.get(..start).unwrap_or_default().trim_end();
            before
                .chars()
                .next_back()
                .is_none_or(|c| !c.is_alphanumeric())
                || self.softeners.iter().any(|softener| {
                    before.strip_suffix(softener.as_str()).is_some_and(|rest| {
                        rest.chars()
                            .next_back()
                            .is_none_or(|c| !c.is_alphanumeric())
                    })
                })
        };
        let mut found = Vec::new();
        for (number, start, end) in self.phrases.find(sentence) {
            let Some(Rule {
                kind,
                confidence,
                at: place,
            }) = rules.get(number)
            else {
                continue;
            };
            let fits = match place {
                At::Any => true,
                At::Start => begins_clause(start),
                At::Lead => {
                    let is_first_clause = !sentence
                        .get(..start)
                        .unwrap_or_default()
                        .contains(['，', '。', '、', ',', '；']);
                    start == 0 || (is_first_clause && begins_clause(start))
                }
                At::End => end >= past_words,
                At::Whole => start == 0 && end >= past_words,
            };
            // A veto undoes the phrase that it overlaps.
            let is_vetoed = vetoes
                .iter()
                .any(|&(of, from, to)| of == number && from < end && start < to);
            if fits && !is_vetoed {
                found.push(Match {
                    kind,
                    confidence: *confidence,
                    start,
                });
            }
        }
        found
    }
}

/// Strings with gaps, each with the number of its rule.
pub(super) struct Strings {
    /// Finds the part before the first gap.
    heads: Option<AhoCorasick>,
    /// Rule, length of the head, and what follows the gaps.
    strings: Vec<(usize, Vec<String>)>,
}

impl Strings {
    pub(super) fn new(strings: Vec<(usize, String)>) -> Self {
        let strings: Vec<(usize, Vec<String>)> = strings
            .into_iter()
            .map(|(number, text)| (number, text.split('…').map(str::to_owned).collect()))
            .collect();
        let heads = AhoCorasick::new(
            strings
                .iter()
                .map(|(_, parts)| parts.first().map_or("", String::as_str)),
        )
        .ok();
        Self { heads, strings }
    }

    /// Rule and byte range of every match.
    fn find(&self, text: &str) -> Vec<(usize, usize, usize)> {
        const GAP_CHARS: usize = 12;
        let Some(heads) = &self.heads else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for hit in heads.find_overlapping_iter(text) {
            let Some((number, parts)) = self.strings.get(hit.pattern().as_usize()) else {
                continue;
            };
            let mut end = hit.end();
            let fits = parts.iter().skip(1).all(|part| {
                let rest = text.get(end..).unwrap_or_default();
                let gap = rest
                    .char_indices()
                    .nth(GAP_CHARS)
                    .map_or(rest.len(), |(at, _)| at);
                let window = rest.floor_char_boundary((gap + part.len()).min(rest.len()));
                let at = rest
                    .get(..window)
                    .and_then(|window| window.find(part.as_str()));
                end += at.map_or(0, |at| at + part.len());
                at.is_some()
            });
            if fits && !hit.is_empty() {
                found.push((*number, hit.start(), end));
            }
        }
        found
    }
}
