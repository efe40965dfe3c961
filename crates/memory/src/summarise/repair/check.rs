//! Removes what the conversation does not support.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Ground, RepairedMemory, item_of};
use crate::document::{Entry, Item, Memory, Origin};
use crate::render::markdown::date;
use crate::summarise::outcome::{Finding, Flaw};
use crate::summarise::source::PATTERN_BYTES_MIN;
use crate::update::folded;
use crate::verify::{RELATIVE_TO, UnsupportedClaim, verify};

/// Checks every item that a model wrote or changed. Where one says something that is not in the conversation, the sentence that does
/// so is taken out, or the item, if nothing is left of it; one that was changed is what it was before.
pub(in crate::summarise) fn check(mut made: RepairedMemory, ground: &Ground<'_>) -> RepairedMemory {
    let known: HashMap<&str, &Item> = ground
        .draft
        .items
        .iter()
        .chain(&ground.base.items)
        .map(|item| (item.id.as_str(), item))
        .collect();
    let is_known = |item: &Item| {
        known
            .get(item.id.as_str())
            .is_some_and(|known| known.entry == item.entry)
            || item_of(ground.draft, &item.id).is_some_and(|known| known.entry == item.entry)
    };
    let suspects = Memory {
        items: made
            .memory
            .items
            .iter()
            .filter(|item| !is_known(item) || item.entry.text().starts_with(RELATIVE_TO))
            .cloned()
            .collect(),
        ..made.memory.clone()
    };
    let mut wrong: HashMap<String, Wrong> = HashMap::new();
    let dates = dates(ground);
    let texts = ground
        .source
        .texts(Some(ground.base))
        .chain([(Origin::Code, Cow::Borrowed(dates.as_str()))]);
    for finding in verify(&suspects, texts) {
        wrong
            .entry(finding.item)
            .or_default()
            .unsupported
            .push(finding.unsupported);
    }
    for (id, quote) in invented_quotes(&suspects, ground) {
        wrong.entry(id).or_default().quotes.push(quote);
    }

    let mut items = Vec::with_capacity(made.memory.items.len());
    for item in std::mem::take(&mut made.memory.items) {
        let Some(wrong) = wrong.get(&item.id).filter(|_| !is_known(&item)) else {
            items.push(item);
            continue;
        };
        let (id, section) = (item.id.clone(), item.entry.section());
        let rest = wrong.without(item).or_else(|| {
            // Other words for something that stood there: the old ones were true.
            item_of(ground.base, &id).cloned()
        });
        let quotes = wrong.quotes.iter().map(|_| Flaw::InventedQuote);
        let unsupported = wrong.unsupported.iter().cloned();
        for why in unsupported.map(Flaw::Unsupported).chain(quotes) {
            made.findings.push(Finding::TakenOut {
                id: id.clone(),
                section,
                why,
                is_rest_kept: rest.is_some(),
            });
        }
        items.extend(rest);
    }
    made.memory.items = items;
    made
}

/// What is wrong with an item.
#[derive(Default)]
struct Wrong {
    unsupported: Vec<UnsupportedClaim>,
    quotes: Vec<String>,
}

impl Wrong {
    /// The item without it; `None` if the rest says nothing.
    fn without(&self, mut item: Item) -> Option<Item> {
        let mut words: Vec<&str> = Vec::new();
        for unsupported in &self.unsupported {
            match unsupported {
                UnsupportedClaim::Identifier(identifier) => words.push(identifier),
                // They are the model's words then.
                UnsupportedClaim::Quote(_) => item.origin = Origin::Assistant,
            }
        }
        words.extend(self.quotes.iter().map(String::as_str));
        let says = |text: &str| words.iter().any(|word| text.contains(word));
        let main = item.entry.text().to_owned();
        if says(&main) {
            let rest = sentences(&main)
                .filter(|sentence| !says(sentence))
                .collect::<String>();
            const WORDS_MIN: usize = 3;
            const CHARACTERS_MIN: usize = 12;
            let rest = rest.trim();
            if rest.split_whitespace().count() < WORDS_MIN && rest.chars().count() < CHARACTERS_MIN
            {
                return None;
            }
            if let Some(text) = item.entry.texts_mut().next() {
                *text = rest.to_owned();
            }
        }
        let is_wrong = |text: &Option<String>| text.as_deref().is_some_and(says);
        match &mut item.entry {
            Entry::KeyDecision {
                reason, constraint, ..
            } => {
                if is_wrong(reason) {
                    *reason = None;
                }
                if is_wrong(constraint) {
                    *constraint = None;
                }
            }
            Entry::EliminatedApproach {
                reason_ruled_out: more,
                ..
            }
            | Entry::Error {
                resolution: more, ..
            } if is_wrong(more) => *more = None,
            Entry::ToolResult { key, .. } if says(key) => key.clear(),
            _ => {}
        }
        Some(item)
    }
}

/// The sentences and clauses of a text, each with what separates it from the next.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = rest.len();
        let mut characters = rest.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            let next = characters.peek().map(|(_, next)| *next);
            let is_end = match character {
                '\n' | '。' | '；' | '！' | '？' => true,
                // A full stop inside of a name or number ends nothing.
                '.' | ';' | '!' | '?' => next.is_none_or(char::is_whitespace),
                _ => false,
            };
            if is_end {
                end = at + character.len_utf8();
                while let Some(space) = rest[end..].chars().next().filter(|c| c.is_whitespace()) {
                    end += space.len_utf8();
                }
                break;
            }
        }
        let (sentence, after) = rest.split_at(end);
        rest = after;
        Some(sentence)
    })
}

/// The days that the messages can speak of: a model was asked to put dates in the place of words such as "tomorrow".
fn dates(ground: &Ground<'_>) -> String {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    /// "Next month", and a little more.
    const AROUND: i64 = 40;
    const DAYS_MAX: usize = 4_000;
    let mut days = BTreeSet::new();
    let times = ground.source.parts.iter().filter_map(|part| part.at_ms);
    let mut last = None;
    for at_ms in times {
        let day = at_ms.div_euclid(DAY_MS);
        if last == Some(day) || days.len() >= DAYS_MAX {
            continue;
        }
        last = Some(day);
        days.extend((-AROUND..=AROUND).map(|offset| day.saturating_add(offset)));
    }
    let mut text = String::new();
    for day in days {
        if let Some(date) = day.checked_mul(DAY_MS).and_then(date) {
            text.push_str(&date);
            text.push(' ');
        }
    }
    text
}

/// Passages in quotation marks that are not in the conversation, with the item that has them.
fn invented_quotes(suspects: &Memory, ground: &Ground<'_>) -> Vec<(String, String)> {
    let mut claimed: Vec<(String, String, Vec<String>)> = Vec::new();
    for item in &suspects.items {
        for text in item.entry.texts() {
            for quote in quotes(text) {
                let parts = quote
                    .split('…')
                    .flat_map(|part| part.split("[...]"))
                    .flat_map(|part| part.split("..."))
                    .map(|part| {
                        let part = part
                            .trim()
                            .trim_end_matches([',', '.', '!', '?', ';', '。']);
                        part.to_owned()
                    })
                    .filter(|part| part.len() >= PATTERN_BYTES_MIN)
                    .collect();
                claimed.push((item.id.clone(), quote.to_owned(), parts));
            }
        }
    }
    let parts: Vec<&str> = claimed
        .iter()
        .flat_map(|(_, _, parts)| parts.iter().map(String::as_str))
        .collect();
    if parts.is_empty() {
        return Vec::new();
    }
    let before: Vec<String> = ground
        .base
        .items
        .iter()
        .flat_map(|item| item.entry.texts().map(folded).collect::<Vec<_>>())
        .collect();
    let said: HashSet<&str> = parts
        .iter()
        .zip(ground.source.places(&parts))
        .filter(|(part, place)| {
            place.in_user
                || place.in_assistant.is_some()
                || place.in_tool.is_some()
                || before.iter().any(|text| text.contains(&folded(part)))
        })
        .map(|(part, _)| *part)
        .collect();
    claimed
        .iter()
        .filter(|(_, _, parts)| !parts.iter().all(|part| said.contains(part.as_str())))
        .map(|(id, quote, _)| (id.clone(), quote.clone()))
        .collect()
}

/// The passages of a text that are in quotation marks and are long enough to be a quotation.
fn quotes(text: &str) -> Vec<&str> {
    const WORDS_MIN: usize = 3;
    const MARKS: [(char, char); 6] = [
        ('"', '"'),
        ('“', '”'),
        ('„', '“'),
        ('«', '»'),
        ('「', '」'),
        ('『', '』'),
    ];
    let mut quotes = Vec::new();
    let mut rest = text;
    while let Some((start, opening)) = rest
        .char_indices()
        .find(|(_, c)| MARKS.iter().any(|(open, _)| open == c))
    {
        let inside = &rest[start + opening.len_utf8()..];
        let end = MARKS
            .iter()
            .filter(|(open, _)| *open == opening)
            .filter_map(|(_, close)| inside.find(*close).map(|at| (at, *close)))
            .min();
        let Some((end, closing)) = end else {
            rest = inside;
            continue;
        };
        let quote = &inside[..end];
        let is_wide = quote.chars().filter(|c| *c as u32 >= 0x2e80).count() >= 6;
        if is_wide || quote.split_whitespace().count() >= WORDS_MIN {
            quotes.push(quote);
        }
        rest = &inside[end + closing.len_utf8()..];
    }
    quotes
}
