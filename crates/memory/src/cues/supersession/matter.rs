//! Matters of which one value holds at a time, however they are worded: "the budget is $800", "keep spending under five
//! hundred dollars".

use super::lexicon::{LEXICON, ValueKind, fold};

/// What a statement says about one matter.
#[derive(Debug)]
pub(super) struct MatterClaim {
    /// Index into the matters of the lexicon.
    matter: usize,
    /// Its values, folded.
    values: Vec<String>,
    /// Words that say whose matter it is, folded.
    scope: Vec<String>,
    /// Names and numbers among them: two of different names are different.
    names: Vec<String>,
}

/// The matters that a statement gives values to.
pub(super) fn matters(text: &str) -> Vec<MatterClaim> {
    let words = words(text);
    let lexicon = &*LEXICON;
    let mut claims = Vec::new();
    for (index, matter) in lexicon.matters.iter().enumerate() {
        let is_named = words.iter().any(|word| matter.words.contains(&word.folded));
        if !is_named {
            continue;
        }
        let is_value = |at: usize| -> bool {
            let word = &words[at];
            match matter.value {
                ValueKind::Amount => word.is_money || word.is_number && is_near_money(&words, at),
                ValueKind::Date => word.is_date,
                ValueKind::Name => word.is_name && !matter.words.contains(&word.folded),
                ValueKind::Identifier => word.is_identifier,
                ValueKind::Words => matter
                    .values
                    .iter()
                    .any(|value| value.contains(&word.folded)),
            }
        };
        let mut values: Vec<String> = (0..words.len())
            .filter(|at| is_value(*at))
            .map(|at| match matter.value {
                // Words of one value are one.
                ValueKind::Words => matter
                    .values
                    .iter()
                    .position(|value| value.contains(&words[at].folded))
                    .map_or_else(String::new, |value| value.to_string()),
                _ => words[at].folded.clone(),
            })
            .collect();
        if values.is_empty() {
            continue;
        }
        values.sort_unstable();
        values.dedup();
        let has_numbers = matches!(matter.value, ValueKind::Amount | ValueKind::Date);
        let is_scope = |at: usize| {
            let word = &words[at];
            let is_other = is_value(at)
                || word.is_date
                || word.is_number && has_numbers
                || matter.words.contains(&word.folded)
                || lexicon.generic.contains(&word.folded)
                || lexicon.roles.contains_key(word.lower.as_str());
            !is_other
        };
        let mut scope = Vec::new();
        let mut names = Vec::new();
        for at in (0..words.len()).filter(|at| is_scope(*at)) {
            let word = &words[at];
            if word.is_name || word.is_number || word.is_identifier {
                names.push(word.folded.clone());
            }
            scope.push(word.folded.clone());
        }
        claims.push(MatterClaim {
            matter: index,
            values,
            scope,
            names,
        });
    }
    claims
}

/// Whether the later statement gives a matter of the earlier one another value.
pub(super) fn changes(earlier: &[MatterClaim], later: &[MatterClaim], is_change: bool) -> bool {
    later.iter().any(|new| {
        let Some(old) = earlier.iter().find(|old| old.matter == new.matter) else {
            return false;
        };
        let matter = &LEXICON.matters[new.matter];
        let differ = new.values.iter().all(|value| !old.values.contains(value));
        let may_be_same = |old: &[String], new: &[String]| {
            old.is_empty() || new.is_empty() || old.iter().any(|word| new.contains(word))
        };
        let is_same_scope =
            may_be_same(&old.scope, &new.scope) && may_be_same(&old.names, &new.names);
        differ
            && if matter.scoped {
                is_same_scope
            } else {
                is_change || matter.value == ValueKind::Words
            }
    })
}

/// A word of a statement, with what it can be a value of.
struct Word {
    lower: String,
    folded: String,
    is_number: bool,
    is_money: bool,
    is_date: bool,
    is_name: bool,
    is_identifier: bool,
}

fn words(text: &str) -> Vec<Word> {
    const WORDS_MAX: usize = 60;
    let mut words: Vec<Word> = Vec::new();
    let mut was_capital = false;
    let mut begins_sentence = true;
    for run in text.split_whitespace().take(WORDS_MAX) {
        let ends_sentence = run.ends_with(['.', '!', '?', ':']);
        let bare = run.trim_matches(|c: char| !(c.is_alphanumeric() || "$€£¥/".contains(c)));
        let bare = bare.strip_suffix("'s").unwrap_or(bare);
        if bare.is_empty() {
            continue;
        }
        let lower = bare.to_lowercase();
        let digits = bare.bytes().filter(u8::is_ascii_digit).count();
        let letters = bare.chars().filter(|c| c.is_alphabetic()).count();
        let is_money = digits > 0 && bare.contains(['$', '€', '£', '¥']);
        let is_date = is_date(&lower, digits, letters);
        let is_identifier =
            !is_date && !is_money && letters > 0 && (digits > 0 || bare.contains(['/', '_']));
        let is_capital = bare.starts_with(char::is_uppercase);
        let is_known = LEXICON.roles.contains_key(lower.as_str());
        // At the start of a sentence a capital means nothing, unless another follows.
        let is_name = is_capital && !is_known && digits == 0 && (!begins_sentence || was_capital);
        if is_name
            && was_capital
            && let Some(before) = words.last_mut()
        {
            before.is_name = before.is_name || !LEXICON.roles.contains_key(before.lower.as_str());
        }
        was_capital = is_capital && digits == 0 && !is_known;
        begins_sentence = ends_sentence || words.is_empty();
        let is_number = digits > 0 && letters == 0 || NUMBERS.contains(&lower.as_str());
        // "field-trip": its parts say what it is about.
        if !is_identifier && !is_date && lower.contains('-') {
            for part in lower.split('-').filter(|part| !part.is_empty()) {
                words.push(Word::plain(part));
            }
        }
        words.push(Word {
            folded: fold(&lower),
            lower,
            is_number,
            is_money,
            is_date,
            is_name,
            is_identifier,
        });
    }
    words
}

impl Word {
    fn plain(lower: &str) -> Self {
        Self {
            folded: fold(lower),
            lower: lower.to_owned(),
            is_number: false,
            is_money: false,
            is_date: false,
            is_name: false,
            is_identifier: false,
        }
    }
}

/// Numbers in words, as far as sums of money are said in them.
const NUMBERS: &[&str] = &[
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twenty",
    "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred", "thousand",
    "million", "hundert", "tausend", "cent", "mille", "cien", "mil", "deux", "trois", "zwei",
    "drei", "dos", "tres",
];

/// What says that a number is a sum of money.
const MONEY: &[&str] = &[
    "$",
    "€",
    "£",
    "¥",
    "dollar",
    "dollars",
    "euro",
    "euros",
    "pound",
    "pounds",
    "franc",
    "francs",
    "franken",
    "yen",
    "usd",
    "eur",
    "gbp",
    "chf",
    "rubles",
    "рублей",
    "долларов",
    "pesos",
    "reais",
    "kronor",
    "zloty",
    "zł",
    "lira",
    "原",
    "bucks",
];

fn is_near_money(words: &[Word], at: usize) -> bool {
    const NEAR: usize = 3;
    words[at.saturating_sub(1)..words.len().min(at + NEAR + 1)]
        .iter()
        .any(|word| MONEY.contains(&word.lower.as_str()))
}

fn is_date(lower: &str, digits: usize, letters: usize) -> bool {
    if letters == 0 {
        let marks = lower.matches(['-', '.', '/']).count();
        return digits >= 3
            && (1..=2).contains(&marks)
            && lower
                .bytes()
                .all(|byte| byte.is_ascii_digit() || b"-./".contains(&byte));
    }
    const DAYS: &[&str] = &[
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "montag",
        "dienstag",
        "mittwoch",
        "donnerstag",
        "freitag",
        "samstag",
        "sonntag",
        "lundi",
        "mardi",
        "mercredi",
        "jeudi",
        "vendredi",
        "samedi",
        "dimanche",
        "lunes",
        "martes",
        "miércoles",
        "jueves",
        "viernes",
        "sábado",
        "domingo",
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "januar",
        "februar",
        "märz",
        "mai",
        "juni",
        "juli",
        "oktober",
        "dezember",
        "janvier",
        "février",
        "mars",
        "avril",
        "juin",
        "juillet",
        "août",
        "septembre",
        "octobre",
        "novembre",
        "décembre",
        "enero",
        "febrero",
        "marzo",
        "abril",
        "mayo",
        "junio",
        "julio",
        "agosto",
        "septiembre",
        "octubre",
        "noviembre",
        "diciembre",
    ];
    digits == 0 && DAYS.contains(&lower)
}
