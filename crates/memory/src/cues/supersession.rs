//! Whether a later statement takes the place of an earlier one.
use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// How surely (0 to 100) `later` takes the place of `earlier`: both speak of the same subject and give it another value,
/// or the later one turns the earlier one round. `None` where they can both hold.
///
/// The comparison is of words only, cheap enough to be made for all pairs of a few hundred statements. A repetition
/// counts as taking the place (100), so that a statement is not kept twice.
#[must_use]
pub fn supersedes(earlier: &str, later: &str) -> Option<u8> {
    let (old, new) = (Statement::of(earlier), Statement::of(later));
    if old.words.is_empty() || new.words.is_empty() {
        return None;
    }
    if old.words == new.words {
        return Some(if old.is_negative == new.is_negative {
            100
        } else {
            90
        });
    }
    let shared = old
        .words
        .iter()
        .filter(|word| new.words.contains(word))
        .count();
    let fewer = old.words.len().min(new.words.len());
    let all = old.words.len() + new.words.len() - shared;
    let alike = shared * 100 / all.max(1);

    // "don't use semicolons" after "use semicolons".
    if old.is_negative != new.is_negative && alike >= 60 && !new.has_replacement {
        return Some(85);
    }
    // "X instead of Y", "X, not Y" after a statement with Y.
    if new
        .replaced
        .iter()
        .any(|word| old.words.contains(word) && !old.replaced.contains(word))
        && !new.replaced.is_empty()
    {
        return Some(if shared >= 1 { 85 } else { 75 });
    }
    if old.is_negative != new.is_negative {
        return None;
    }
    // The same subject with another value.
    if let (Some(before), Some(after)) = (&old.subject, &new.subject) {
        let common = before.iter().filter(|word| after.contains(word)).count();
        let larger = before.len().max(after.len());
        if common > 0
            && common * 100 >= larger * 60
            && old.value != new.value
            && !new.value.is_empty()
        {
            return Some(if common == larger { 88 } else { 75 });
        }
    }
    // Values of one kind ("4 spaces" and "tabs") with nothing else that tells the statements apart.
    for (class, value) in &new.classes {
        let Some((_, other)) = old.classes.iter().find(|(of, _)| of == class) else {
            continue;
        };
        if other == value {
            continue;
        }
        let rest = |statement: &Statement| {
            statement
                .words
                .len()
                .saturating_sub(statement.classes.len())
        };
        if rest(&old) <= 2 && rest(&new) <= 2 || shared > 0 && shared * 2 >= fewer {
            return Some(80);
        }
    }
    // "... instead", "now ..." over statements that share most of their words and differ in a number.
    if new.is_change && shared >= 2 && alike >= 40 {
        return Some(70);
    }
    if alike >= 50
        && shared >= 2
        && old.numbers != new.numbers
        && !new.numbers.is_empty()
        && !old.numbers.is_empty()
    {
        return Some(75);
    }
    None
}

#[derive(Debug, Default)]
struct Statement {
    /// Content words, folded, sorted, without repetition.
    words: Vec<String>,
    is_negative: bool,
    /// What it says is to be no longer ("instead of Y").
    replaced: Vec<String>,
    has_replacement: bool,
    is_change: bool,
    subject: Option<Vec<String>>,
    value: Vec<String>,
    numbers: Vec<String>,
    /// Known values with the number of their class and of their group in it.
    classes: Vec<(usize, usize)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    stop: Vec<String>,
    negative: Vec<String>,
    change: Vec<String>,
    link: Vec<String>,
    replacing: Vec<String>,
    class: Vec<FileClass>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileClass {
    #[expect(dead_code, reason = "the name is for the reader of the file")]
    name: String,
    values: Vec<Vec<String>>,
}

#[derive(Default)]
struct Lexicon {
    roles: HashMap<String, Role>,
    /// Phrases of several words, as written, with what they do.
    replacing: Vec<Vec<String>>,
    classes: HashMap<String, (usize, usize)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Stop,
    Negative,
    Change,
    Link,
}

const TEXT: &str = include_str!("../../data/cues/supersession.toml");

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| {
    // A file that does not parse leaves the lexicon empty: a test keeps that from being shipped.
    let Ok(file) = toml::from_str::<File>(TEXT) else {
        return Lexicon::default();
    };
    let mut lexicon = Lexicon::default();
    for (words, role) in [
        (file.stop, Role::Stop),
        (file.negative, Role::Negative),
        (file.change, Role::Change),
        (file.link, Role::Link),
    ] {
        for word in words {
            lexicon.roles.insert(word, role);
        }
    }
    lexicon.replacing = file
        .replacing
        .iter()
        .map(|phrase| phrase.split(' ').map(str::to_owned).collect())
        .collect();
    for (class, file) in file.class.into_iter().enumerate() {
        for (group, values) in file.values.into_iter().enumerate() {
            for value in values {
                lexicon.classes.insert(fold(&value), (class, group));
            }
        }
    }
    lexicon
});

impl Statement {
    fn of(text: &str) -> Self {
        const WORDS_MAX: usize = 60;
        let lexicon = &*LEXICON;
        let raw: Vec<String> = text
            .split(|c: char| {
                !(c.is_alphanumeric()
                    || matches!(c, '\'' | '’' | '.' | '-' | '_' | '/' | '#' | '+'))
            })
            .flat_map(words_of)
            .take(WORDS_MAX)
            .collect();
        let mut statement = Self::default();
        let mut at = 0;
        let mut is_replaced = false;
        let mut before_link: Vec<String> = Vec::new();
        let mut has_link = false;
        while let Some(word) = raw.get(at) {
            if let Some(phrase) = lexicon.replacing.iter().find(|phrase| {
                raw.get(at..at + phrase.len())
                    .is_some_and(|words| words == phrase.as_slice())
            }) {
                is_replaced = true;
                statement.has_replacement = true;
                at += phrase.len();
                continue;
            }
            at += 1;
            match lexicon.roles.get(word.as_str()) {
                Some(Role::Stop) => continue,
                Some(Role::Negative) => {
                    statement.is_negative = true;
                    continue;
                }
                Some(Role::Change) => {
                    statement.is_change = true;
                    continue;
                }
                Some(Role::Link) => {
                    has_link |= !before_link.is_empty();
                    continue;
                }
                None => {}
            }
            let folded = fold(word);
            if is_replaced {
                statement.replaced.push(folded);
                continue;
            }
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                statement.numbers.push(folded.clone());
            }
            if let Some(class) = lexicon.classes.get(&folded) {
                statement.classes.push(*class);
            }
            if has_link {
                statement.value.push(folded.clone());
            } else {
                before_link.push(folded.clone());
            }
            statement.words.push(folded);
        }
        statement.subject = has_link.then_some(before_link);
        statement.words.sort_unstable();
        statement.words.dedup();
        statement
    }
}

/// The words of a run without spaces: itself in lower case, or its characters one by one where the script has no spaces.
fn words_of(run: &str) -> Vec<String> {
    let run = run.trim_matches(|c: char| !(c.is_alphanumeric() || c == '#' || c == '+'));
    if run.is_empty() {
        return Vec::new();
    }
    if !run.chars().any(is_wide) {
        return vec![run.to_lowercase().replace('’', "'")];
    }
    let mut words = Vec::new();
    let mut narrow = String::new();
    for c in run.chars() {
        if is_wide(c) {
            if !narrow.is_empty() {
                words.push(std::mem::take(&mut narrow).to_lowercase());
            }
            words.push(c.to_string());
        } else {
            narrow.push(c);
        }
    }
    if !narrow.is_empty() {
        words.push(narrow.to_lowercase());
    }
    words
}

fn is_wide(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}')
}

/// Drops a plural or possessive ending.
fn fold(word: &str) -> String {
    let word = word.strip_suffix("'s").unwrap_or(word);
    let is_plural = word.len() > 3
        && word.is_ascii()
        && !["ss", "us", "is"].iter().any(|end| word.ends_with(end));
    if let Some(stem) = word.strip_suffix('s').filter(|_| is_plural) {
        return stem.to_owned();
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lexicon_parses() {
        toml::from_str::<File>(TEXT)
            .map(|_| ())
            .unwrap_or_else(|error| panic!("{error}"));
    }

    #[track_caller]
    fn check(earlier: &str, later: &str, expected: bool) {
        let strength = supersedes(earlier, later);
        assert_eq!(
            strength.is_some(),
            expected,
            "{earlier:?} / {later:?}: {strength:?}"
        );
    }

    #[test]
    fn a_new_value_for_the_same_subject_takes_the_place() {
        check(
            "Use 4 spaces for indentation",
            "use tabs for indentation please",
            true,
        );
        check("use 4 spaces", "use tabs", true);
        check(
            "The deadline is 3 May.",
            "The deadline moved to 10 May",
            true,
        );
        check("Call me Alexandra", "call me Sam instead", true);
        check(
            "answer in English",
            "please answer in Spanish from now on",
            true,
        );
        check(
            "use semicolons in the code",
            "don't use semicolons in the code",
            true,
        );
        check(
            "The staging server is at 10.0.0.4",
            "the staging server is now 10.0.0.9",
            true,
        );
    }

    #[test]
    fn statements_that_can_both_hold_do_not() {
        check(
            "use tabs for indentation",
            "use single quotes for strings",
            false,
        );
        check("The deadline is 3 May.", "The budget is 4000 euros", false);
        check(
            "don't touch the config file",
            "add a test for the parser",
            false,
        );
        check("my daughter is 7", "my son is 9", false);
    }
}
