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
    Claim::of(later).supersedes(&Claim::of(earlier))
}

/// What a statement says, taken apart for comparisons: for those who compare one with many.
#[derive(Debug)]
pub struct Claim(Statement);

impl Claim {
    /// Takes a statement apart.
    #[must_use]
    pub fn of(statement: &str) -> Self {
        Self(Statement::of(statement))
    }

    /// How surely (0 to 100) this statement takes the place of an earlier one: see [`supersedes`].
    #[must_use]
    pub fn supersedes(&self, earlier: &Self) -> Option<u8> {
        compare(&earlier.0, &self.0)
    }
}

fn compare(old: &Statement, new: &Statement) -> Option<u8> {
    if old.words.is_empty() || new.words.is_empty() && new.replaced.is_empty() {
        return None;
    }
    if old.words == new.words {
        return Some(if old.is_negative == new.is_negative {
            100
        } else {
            90
        });
    }
    let gives_up = new.gives_up(old);
    if !gives_up && new.is_about_another(old) {
        return None;
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
    if gives_up {
        return Some(if shared >= 1 || !new.words.is_empty() {
            85
        } else {
            75
        });
    }
    // Where one lives, what one is called: there is one of it at a time.
    if new
        .relations
        .iter()
        .any(|relation| old.relations.contains(relation))
    {
        return Some(85);
    }
    // "The budget is now 900", "the exam has been moved to 9 May": the subject of an earlier statement, another number.
    let subject = |statement: &Statement| -> Vec<String> {
        let is_number =
            |word: &&String| statement.numbers.contains(word) || LEXICON.measures.contains(word);
        statement
            .words
            .iter()
            .filter(|word| !is_number(word))
            .cloned()
            .collect()
    };
    if !old.numbers.is_empty()
        && !new.numbers.is_empty()
        && !new
            .numbers
            .iter()
            .all(|number| old.numbers.contains(number))
    {
        let (before, after) = (subject(old), subject(new));
        let common = before.iter().filter(|word| after.contains(word)).count();
        let (fewest, most) = (before.len().min(after.len()), before.len().max(after.len()));
        // What only one of them names tells two budgets apart.
        if common > 0 && common == fewest && (common == most || common > 1 || new.is_change) {
            return Some(83);
        }
    }
    if old.is_negative != new.is_negative {
        return None;
    }
    // The same subject with another value.
    if let (Some(before), Some(after)) = (&old.subject, &new.subject) {
        let common = before.iter().filter(|word| after.contains(word)).count();
        let larger = before.len().max(after.len());
        // Of a person, many things can be said at once.
        let is_of_a_being = before.iter().any(|word| LEXICON.beings.contains(word));
        let is_same_kind = !is_of_a_being || old.value.iter().any(|word| new.value.contains(word));
        if common > 0
            && is_same_kind
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
        if rest(old) <= 2 && rest(new) <= 2 || shared > 0 && (shared * 2 >= fewer || rest(old) <= 2)
        {
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
    /// What it says is to be no longer ("instead of Y"), as written.
    replaced: Vec<String>,
    /// The other content words as written.
    exact: Vec<String>,
    has_replacement: bool,
    is_change: bool,
    subject: Option<Vec<String>>,
    /// Numbers, identifiers and names in what it is about: "my number 35 is", "for Anna".
    about: Vec<String>,
    value: Vec<String>,
    numbers: Vec<String>,
    /// What there is one of at a time, by number.
    relations: Vec<usize>,
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
    /// What follows is what the statement is about.
    about: Vec<String>,
    /// What follows is given up.
    replacing: Vec<String>,
    /// What comes instead follows.
    instead: Vec<String>,
    /// What stands before is given up.
    replaced: Vec<String>,
    /// Verbs of change, and the words that then stand before the old and the new.
    changing: Vec<String>,
    from: Vec<String>,
    /// Before one of these, "not" forbids and gives nothing up.
    modals: Vec<String>,
    preferring: Vec<String>,
    /// Words that belong to a number.
    measures: Vec<String>,
    to: Vec<String>,
    /// What a correction begins with.
    rejecting: Vec<String>,
    /// Who has many things said of them.
    beings: Vec<String>,
    class: Vec<FileClass>,
    relation: Vec<FileRelation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRelation {
    #[expect(dead_code, reason = "the name is for the reader of the file")]
    name: String,
    phrases: Vec<String>,
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
    instead: Vec<Vec<String>>,
    replaced: Vec<Vec<String>>,
    changing: Vec<String>,
    beings: Vec<String>,
    modals: Vec<String>,
    preferring: Vec<String>,
    measures: Vec<String>,
    rejecting: Vec<String>,
    from: Vec<Vec<String>>,
    to: Vec<Vec<String>>,
    about: Vec<String>,
    relations: Vec<Vec<Vec<String>>>,
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
    let phrases = |list: &[String]| -> Vec<Vec<String>> {
        list.iter()
            .map(|phrase| phrase.split(' ').flat_map(words_of).collect())
            .collect()
    };
    lexicon.replacing = phrases(&file.replacing);
    lexicon.instead = phrases(&file.instead);
    lexicon.replaced = phrases(&file.replaced);
    lexicon.from = phrases(&file.from);
    lexicon.to = phrases(&file.to);
    lexicon.about = file.about;
    lexicon.rejecting = file.rejecting;
    lexicon.changing = file.changing;
    lexicon.beings = file.beings;
    lexicon.modals = file.modals;
    lexicon.preferring = file.preferring;
    lexicon.measures = file.measures.iter().map(|word| fold(word)).collect();
    lexicon.relations = file
        .relation
        .iter()
        .map(|file| phrases(&file.phrases))
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
        let said = without_rejection(text);
        let mut statement = Self {
            is_change: said.len() < text.len(),
            ..Self::default()
        };
        let mut left = WORDS_MAX;
        let mut before_link = Vec::new();
        let mut has_link = false;
        let mut is_first = true;
        let mut named = Vec::new();
        for clause in said.split(CLAUSE_ENDS) {
            let mut raw: Vec<String> = Vec::new();
            let mut names: Vec<bool> = Vec::new();
            for run in clause.split(|c: char| {
                !(c.is_alphanumeric()
                    || matches!(c, '\'' | '’' | '.' | '-' | '_' | '/' | '#' | '+' | ':'))
            }) {
                let words = words_of(run);
                let is_name = is_name(run, is_first);
                is_first &= words.is_empty();
                names.extend(words.iter().map(|word| is_name || is_identifier(word)));
                raw.extend(words);
                if raw.len() >= left {
                    break;
                }
            }
            raw.truncate(left);
            left -= raw.len();
            statement.clause(&raw, &names, &mut before_link, &mut named, &mut has_link);
        }
        // "35 is my favourite": a name alone is no subject that another could share.
        if has_link && before_link.iter().any(|word| !named.contains(word)) {
            statement.about.append(&mut named);
        }
        statement.subject = has_link.then_some(before_link);
        statement.words.sort_unstable();
        statement.words.dedup();
        statement
    }

    /// `names` says which of the words are numbers, identifiers or names; those before the link go to `named`.
    fn clause(
        &mut self,
        raw: &[String],
        names: &[bool],
        before_link: &mut Vec<String>,
        named: &mut Vec<String>,
        has_link: &mut bool,
    ) {
        /// Words after "for" that it speaks of.
        const REACH: usize = 3;
        let lexicon = &*LEXICON;
        let mut about = 0;
        let given_up = lexicon.given_up(raw);
        self.has_replacement |= given_up.iter().any(|is_given_up| *is_given_up);
        for (at, word) in raw.iter().enumerate() {
            for (relation, phrases) in lexicon.relations.iter().enumerate() {
                if phrases.iter().any(|phrase| starts_with(&raw[at..], phrase)) {
                    self.relations.push(relation);
                }
            }
            about = if lexicon.about.contains(word) {
                REACH + 1
            } else {
                about.saturating_sub(1)
            };
            match lexicon.roles.get(word.as_str()) {
                Some(Role::Stop) => continue,
                Some(Role::Negative) => {
                    self.is_negative = true;
                    continue;
                }
                Some(Role::Change) => {
                    self.is_change = true;
                    continue;
                }
                Some(Role::Link) => {
                    about = 0;
                    *has_link |= !before_link.is_empty();
                    continue;
                }
                None => {}
            }
            let folded = fold(word);
            if given_up[at] {
                self.replaced.push(word.clone());
                continue;
            }
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                self.numbers.push(folded.clone());
            }
            if let Some(class) = lexicon.classes.get(&folded) {
                self.classes.push(*class);
            }
            if names[at] && !lexicon.is_amount(raw, at) {
                if about > 0 {
                    self.about.push(folded.clone());
                } else if !*has_link {
                    named.push(folded.clone());
                }
            }
            if *has_link {
                self.value.push(folded.clone());
            } else {
                before_link.push(folded.clone());
            }
            self.exact.push(word.clone());
            self.words.push(folded);
        }
    }

    /// Whether each of the two is about something of its own: number 35 and number 10, Anna and Berta.
    fn is_about_another(&self, old: &Self) -> bool {
        let has_own = |one: &Self, other: &Self| {
            one.about
                .iter()
                .any(|name| !other.words.contains(name) && !other.replaced.contains(name))
        };
        has_own(self, old) && has_own(old, self)
    }

    /// Whether most of what this statement gives up is what `old` says.
    fn gives_up(&self, old: &Self) -> bool {
        let is_number = |word: &&String| word.starts_with(|c: char| c.is_ascii_digit());
        // "not 600": of all numbers it is this one.
        let mut numbers = self.replaced.iter().filter(is_number);
        if !numbers.all(|number| old.exact.contains(number)) {
            return false;
        }
        let known = self
            .replaced
            .iter()
            .filter(|word| old.exact.contains(word))
            .count();
        known > 0 && known * 3 >= self.replaced.len() * 2
    }
}

/// What ends a clause. A full stop may stand inside of a number or a name.
const CLAUSE_ENDS: [char; 12] = [
    ',', ';', '!', '?', '(', ')', '，', '、', '。', '；', '！', '？',
];

/// What a correction says, without "No, that was wrong: ": that turns nothing round by itself. All of it where nothing
/// else is said.
fn without_rejection(text: &str) -> &str {
    let mut said = text;
    loop {
        let rest = LEXICON
            .rejecting
            .iter()
            .filter_map(|phrase| after_opening(said, phrase))
            .min_by_key(|rest| rest.len());
        match rest {
            Some(rest) if rest.contains(char::is_alphanumeric) => said = rest,
            _ => return said,
        }
    }
}

/// What follows a phrase that the text begins with and that something ends.
fn after_opening<'a>(text: &'a str, phrase: &str) -> Option<&'a str> {
    const ENDS: [char; 12] = [
        ',', ':', ';', '.', '!', '–', '—', '，', '、', '。', '：', '！',
    ];
    let text = text.trim_start();
    let mut chars = text.char_indices();
    for wanted in phrase.chars() {
        let (_, c) = chars.next()?;
        let c = if c == '’' { '\'' } else { c };
        if !c.to_lowercase().eq(wanted.to_lowercase()) {
            return None;
        }
    }
    let rest = chars.as_str().trim_start();
    let rest = rest
        .strip_prefix("- ")
        .or_else(|| rest.strip_prefix(ENDS))?;
    Some(rest.trim_start())
}

fn starts_with(words: &[String], phrase: &[String]) -> bool {
    words
        .get(..phrase.len())
        .is_some_and(|words| words == phrase)
}

impl Lexicon {
    /// Whether a number is an amount ("3 May", "20 euros", "a limit of 100") and names nothing ("gate 35").
    fn is_amount(&self, raw: &[String], at: usize) -> bool {
        if !raw[at].starts_with(|c: char| c.is_ascii_digit()) {
            return false;
        }
        let before = at.checked_sub(1).map(|before| raw[before].as_str());
        let after = raw.get(at + 1).map(String::as_str);
        let is_measure =
            |word: Option<&str>| word.is_some_and(|word| self.measures.contains(&fold(word)));
        let is_named = before.is_some_and(|word| !self.roles.contains_key(word))
            || after.is_some_and(|word| word.starts_with(is_wide));
        is_measure(before) || is_measure(after) || !is_named
    }

    /// For each word of a clause, whether the clause says that it is to be no longer ("not Y", "stop Y", "from Y to").
    fn given_up(&self, raw: &[String]) -> Vec<bool> {
        /// Words after or before a phrase that it gives up.
        const REACH: usize = 8;
        let mut given_up = vec![false; raw.len()];
        let mut mark = |range: std::ops::Range<usize>| {
            for at in range {
                given_up[at] = true;
            }
        };
        let is_in = |phrases: &[Vec<String>], at: usize| {
            phrases
                .iter()
                .filter(|phrase| starts_with(&raw[at..], phrase))
                .map(Vec::len)
                .max()
        };
        for at in 0..raw.len() {
            // What is named after these words is given up, until the clause says what comes instead.
            let is_forbidding = at > 0 && self.modals.contains(&raw[at - 1]);
            if let Some(length) = is_in(&self.replacing, at).filter(|_| !is_forbidding) {
                let start = at + length;
                let end = (start..raw.len().min(start + REACH))
                    .find(|next| is_in(&self.instead, *next).is_some())
                    .unwrap_or(raw.len().min(start + REACH));
                mark(start..end);
            }
            // Before these words stands what is given up.
            if is_in(&self.replaced, at).is_some() {
                mark(at.saturating_sub(REACH)..at);
            }
            // "prefer Z to Y".
            if at > 1
                && is_in(&self.to, at).is_some()
                && raw[..at - 1]
                    .iter()
                    .any(|word| self.preferring.contains(word))
            {
                mark(at + 1..raw.len().min(at + 4));
            }
            // "from Y to Z", where something is said to change.
            if is_in(&self.from, at).is_some()
                && raw[..at].iter().any(|word| self.changing.contains(word))
                && let Some(to) = (at + 1..raw.len().min(at + REACH))
                    .find(|next| is_in(&self.to, *next).is_some())
            {
                mark(at + 1..to);
            }
        }
        given_up
    }
}

/// A word that is written like a name. The first word of a statement is written so in any case, except whose something is.
fn is_name(run: &str, is_first: bool) -> bool {
    let is_capital = run.starts_with(char::is_uppercase);
    is_capital && (!is_first || run.ends_with("'s") || run.ends_with("’s"))
}

fn is_identifier(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_digit() || c == '_')
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
    let word = ["l'", "d'", "qu'"]
        .iter()
        .find_map(|elided| word.strip_prefix(elided))
        .unwrap_or(word);
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
    fn what_is_about_another_thing_leaves_the_first_standing() {
        for (one, other) in [
            (
                "My favourite number 35 is 1234",
                "My favourite number 10 is 77",
            ),
            (
                "The code is 1234 for gate 35.",
                "The code is 77 for gate 10.",
            ),
            (
                "The phone number of our customer Anna is 5551",
                "The phone number of our customer Berta is 5552",
            ),
            (
                "Anna's favourite colour at home is red",
                "Berta's favourite colour at home is blue",
            ),
            (
                "Use Postgres for the Orders service",
                "Use MySQL for the Users service",
            ),
            ("Use tabs for Go", "Use 4 spaces for Python"),
            (
                "The timeout of queue_a is 30 seconds",
                "The timeout of queue_b is 60 seconds",
            ),
            (
                "The deploy region of v2 is eu-north-3",
                "The deploy region of v3 is eu-south-1",
            ),
            ("Der Code für Tor 35 ist 1234", "Der Code für Tor 10 ist 77"),
            ("35号门的密码是1234", "10号门的密码是77"),
        ] {
            check(one, other, false);
            check(other, one, false);
        }
    }

    #[test]
    fn what_is_about_the_same_thing_takes_its_place_whatever_names_are_in_it() {
        for (earlier, later) in [
            (
                "My favourite number 35 is 1234",
                "My favourite number 35 is 77",
            ),
            (
                "The code is 1234 for gate 35.",
                "The code for gate 35 is 77.",
            ),
            (
                "The phone number of our customer Anna is 5551",
                "The phone number of our customer Anna is now 5552",
            ),
            (
                "Use Postgres for the Orders service",
                "Use MySQL for the Orders service",
            ),
            ("Use tabs for Go", "Use 4 spaces for Go"),
            (
                "A limit of 100 requests is set",
                "A limit of 200 requests is set",
            ),
            (
                "Wait for 30 seconds before each call",
                "Wait for 60 seconds before each call",
            ),
            (
                "The timeout of queue_a is 30 seconds",
                "The timeout of queue_a is 60 seconds",
            ),
            ("3 May is the deadline", "10 May is the deadline"),
            ("The deadline is 3 May.", "The deadline is 10 May."),
            (
                "The budget of 900 euros is fixed",
                "The budget of 800 euros is fixed",
            ),
            (
                "Use port 8080 for staging",
                "Use port 9090 instead of 8080 for staging",
            ),
            ("35号门的密码是1234", "35号门的密码是77"),
        ] {
            check(earlier, later, true);
        }
    }

    #[test]
    fn a_correction_may_begin_with_a_rejection() {
        for opening in [
            "No, that was wrong: ",
            "No. ",
            "Nope — ",
            "Sorry, my mistake: ",
            "Actually, ",
            "That’s wrong. ",
            "no - ",
        ] {
            check(
                "The deploy region is eu-north-3.",
                &format!("{opening}the deploy region is eu-south-1."),
                true,
            );
            check("use 4 spaces", &format!("{opening}use tabs"), true);
            check(
                "The deploy region is eu-north-3.",
                &format!("{opening}the port is 8431."),
                false,
            );
        }
        check(
            "Die Region ist eu-north-3.",
            "Nein, das war falsch: die Region ist eu-south-1.",
            true,
        );
        check(
            "La región es eu-north-3.",
            "No, perdón: la región es eu-south-1.",
            true,
        );
        check(
            "La région est eu-north-3.",
            "Non, c'était faux : la région est eu-south-1.",
            true,
        );
        check("部署区域是北京。", "不对，部署区域是上海。", true);
        // "No" that forbids stays what it is, and a rejection alone says nothing.
        check("use semicolons", "no semicolons", true);
        check(
            "The deploy region is eu-north-3.",
            "No, that was wrong.",
            false,
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
