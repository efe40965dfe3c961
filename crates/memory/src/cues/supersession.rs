//! Detects whether a later statement replaces an earlier one.

mod lexicon;
mod matter;

use super::label::label_end;
pub(crate) use lexicon::is_wide as is_unspaced;
use lexicon::{LEXICON, Role, fold, starts_with, words_of};
use matter::MatterClaim;

/// The certainty (0 to 100) that `later` replaces `earlier`: both concern the same subject and give it different values,
/// or the later one reverses the earlier one. `None` if both can hold.
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

    /// The certainty (0 to 100) that this statement replaces an earlier one: see [`supersedes`].
    #[must_use]
    pub fn supersedes(&self, earlier: &Self) -> Option<u8> {
        compare(&earlier.0, &self.0)
    }
}

/// Words of a value: a longer one describes.
const VALUE_WORDS_MAX: usize = 4;

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
    if matter::changes(&old.matters, &new.matters, new.is_change) {
        return Some(84);
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
        let shares_value = old.value.iter().any(|word| new.value.contains(word));
        // Values of many words tell different things about one subject.
        let are_short = old.value.len() <= VALUE_WORDS_MAX && new.value.len() <= VALUE_WORDS_MAX;
        let is_same_kind = shares_value || !is_of_a_being && (are_short || new.is_change);
        if common > 0
            && is_same_kind
            && before
                .iter()
                .any(|word| after.contains(word) && !LEXICON.generic.contains(word))
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
    /// What it says about matters that have one value at a time.
    matters: Vec<MatterClaim>,
}

impl Statement {
    fn of(text: &str) -> Self {
        const WORDS_MAX: usize = 60;
        let text = &text[label_end(text)..];
        let said = without_rejection(text);
        let (number, said) = numbered(said);
        let mut statement = Self {
            is_change: said.len() < text.len() && number.is_none(),
            about: number.map(str::to_owned).into_iter().collect(),
            matters: matter::matters(said),
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
            one.about.iter().any(|name| {
                !other.words.contains(name)
                    && !other.replaced.contains(name)
                    && !other.about.contains(name)
            })
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

/// What ends a clause. A full stop may be inside a number or a name.
const CLAUSE_ENDS: [char; 12] = [
    ',', ';', '!', '?', '(', ')', '，', '、', '。', '；', '！', '？',
];

/// What a correction says, without "No, that was wrong: ": that alone reverses nothing. All of it where nothing
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

/// The number of a statement that begins with one ("Question 5: ..."), and what it says: two of different numbers are about
/// different things.
fn numbered(text: &str) -> (Option<&str>, &str) {
    const WORDS_MAX: usize = 2;
    let Some((head, rest)) = text.split_once([':', '：']) else {
        return (None, text);
    };
    let words: Vec<&str> = head.split_whitespace().collect();
    let number = words
        .last()
        .map(|last| last.trim_start_matches(|c: char| !c.is_ascii_digit()));
    match number {
        Some(number)
            if words.len() <= WORDS_MAX
                && !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit())
                && !rest.trim().is_empty() =>
        {
            (Some(number), rest.trim_start())
        }
        _ => (None, text),
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

/// A word that is written like a name. The first word of a statement is written so in any case, except whose something is.
fn is_name(run: &str, is_first: bool) -> bool {
    let is_capital = run.starts_with(char::is_uppercase);
    is_capital && (!is_first || run.ends_with("'s") || run.ends_with("’s"))
}

fn is_identifier(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests;
