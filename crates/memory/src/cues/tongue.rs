//! Detects the user's language.
use super::pasted::{Voice, stretches};

/// The language of the person, ISO 639-3 (`eng`, `deu`, `cmn`), judged from texts in their name: pasted code and logs
/// are left out, and texts that are too short to tell add up. `None` where there is too little to go by.
#[must_use]
pub fn language<'a>(samples: impl IntoIterator<Item = &'a str>) -> Option<&'static str> {
    const ENOUGH_BYTES: usize = 8000;
    const PER_SAMPLE_BYTES: usize = 1500;
    let mut own = String::new();
    for sample in samples {
        let mut taken = 0;
        for (range, voice) in stretches(
            sample
                .get(..sample.floor_char_boundary(20_000))
                .unwrap_or(sample),
        ) {
            if voice != Voice::Person || taken >= PER_SAMPLE_BYTES {
                continue;
            }
            let Some(stretch) = sample.get(range) else {
                continue;
            };
            for word in stretch.split_whitespace() {
                if taken < PER_SAMPLE_BYTES && is_plain(word) {
                    own.push_str(word);
                    own.push(' ');
                    taken += word.len();
                }
            }
            own.push('\n');
        }
        if own.len() >= ENOUGH_BYTES {
            break;
        }
    }
    let letters = own.chars().filter(|c| c.is_alphabetic()).count();
    // Function words decide where we know the language: short technical texts mislead statistics of letters.
    if let Some(known) = super::rules::guess_surely(&own) {
        // Of a script that one language of the rule files has, statistics tell the others.
        let is_told = matches!(known, "cmn" | "jpn" | "kor" | "tha" | "heb");
        if is_told || letters < 200 {
            return Some(known);
        }
        let info = whatlang::detect(&own)?;
        return Some(if info.is_reliable() && info.confidence() > 0.9 {
            info.lang().code()
        } else {
            known
        });
    }
    let info = whatlang::detect(&own)?;
    // A script that is one language's needs no statistics.
    let is_shared = matches!(
        info.script(),
        whatlang::Script::Latin
            | whatlang::Script::Cyrillic
            | whatlang::Script::Arabic
            | whatlang::Script::Devanagari
            | whatlang::Script::Hebrew
    );
    let is_told = info.is_reliable() || !is_shared;
    let code = info.lang().code();
    // A language without function words that we know is told by many letters only.
    let least = if reads(code) || !is_shared { 12 } else { 40 };
    (is_told && letters >= least).then_some(code)
}

/// Whether the rules of a person who writes this language (ISO 639-3) are recognised. Of others, only English words and
/// punctuation are.
#[must_use]
pub fn reads(language: &str) -> bool {
    super::files::index_of(language).is_some()
}

/// A word of prose: no path, identifier, number or address.
fn is_plain(word: &str) -> bool {
    let inner = word.trim_matches(|c: char| !c.is_alphanumeric());
    !inner.is_empty()
        && !inner.contains([
            '/', '_', '\\', '=', '<', '>', '{', '}', '(', '`', '@', '#', ':',
        ])
        && !word.contains(['`', '{', '<'])
        && !inner.chars().any(|c| c.is_ascii_digit())
        && !inner.chars().skip(1).any(char::is_uppercase)
        && inner.split('.').count() == 1
}
