//! Decides whether the value that a rule's pattern found is a secret or a placeholder, code, a path or a word.

use std::ops::Range;

use serde::Deserialize;

/// How a value is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// Everything but placeholders.
    #[default]
    Any,
    /// What a person may have chosen as a password.
    Password,
    /// As `Password`, after an option of a command: words are none.
    Option,
    /// As `Password`, in a sentence: needs more than letters.
    Sentence,
    /// What a machine has drawn: 12 characters or more, letters and digits mixed.
    Random,
    /// As `Random`, but UUIDs are names of things.
    RandomNotUuid,
    /// What follows `Authorization:` or `Cookie:`.
    Header,
    /// What a machine has drawn and the name of a secret tells: 8 characters or more that make no words.
    Drawn,
    /// As `Drawn`, where no sign joins it to the name.
    DrawnApart,
}

/// Where a value was found.
pub(super) struct Place<'t> {
    pub(super) text: &'t str,
    /// Where the keyword begins.
    pub(super) start: usize,
    /// Where the value is.
    pub(super) value: Range<usize>,
    /// Whether the value has no quotes around it.
    pub(super) is_bare: bool,
}

/// Placeholders for a value that is not there. In lower case.
const PLACEHOLDER_PARTS: &[&str] = &[
    "${",
    "$(",
    "{{",
    "}}",
    "<%",
    "%s",
    "%(",
    "***",
    "...",
    "…",
    "••",
    "xxxx",
    "your_",
    "your-",
    "<",
    "example",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "redacted",
    "process.env",
    "os.environ",
    "getenv",
    "env[",
    "env.",
    "secrets.",
    "insert_",
    "insert-",
    "replace_",
    "replace-",
    "import.meta",
];

/// Words in the place of a password. In lower case.
const PLACEHOLDER_WORDS: &[&str] = &[
    "password",
    "passwort",
    "passwd",
    "pass",
    "secret",
    "token",
    "string",
    "str",
    "text",
    "null",
    "none",
    "undefined",
    "nil",
    "true",
    "false",
    "required",
    "optional",
    "hidden",
    "empty",
    "default",
    "inherit",
    "unknown",
    "invalid",
    "missing",
    "value",
    "prompt",
    "username",
    "user",
    "number",
    "boolean",
    "object",
    "any",
    "bytes",
    "char",
    "varchar",
    "stdin",
    "file",
    "plain",
    "disabled",
    "enabled",
    "masked",
    "unset",
    "test",
    "input",
    "field",
    "type",
    "credential",
    "credentials",
    "same-origin",
    "include",
    "omit",
];

/// How much of a value is looked at to judge it, in bytes.
const JUDGED_BYTES_MAX: usize = 256;

/// The shortest value that counts where rules look at more than its shape, in bytes.
const VALUE_BYTES_MIN: usize = 4;

/// The shortest value that counts as drawn by a machine, in bytes.
const RANDOM_BYTES_MIN: usize = 12;

/// What may follow a value that has no quotes, whether it belongs to it or not.
const ENDS_OF_SENTENCES: [char; 13] = [
    '.', ':', '?', '*', '!', '&', '$', '#', '@', '…', '。', '！', '—',
];

/// The range without what belongs to the text around a value that has no quotes: the full stop of a sentence, the next
/// parameter of a query.
pub(super) fn trim(text: &str, range: Range<usize>, is_bare: bool) -> Range<usize> {
    if !is_bare {
        return range;
    }
    let mut value = &text[range.clone()];
    if let Some(next) = value.find('&').filter(|&at| is_parameter(&value[at + 1..])) {
        value = &value[..next];
    }
    let value = value.trim_end_matches(['.', ':', '?', '*']);
    range.start..range.start + value.len()
}

fn is_parameter(text: &str) -> bool {
    let name = text
        .bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        .count();
    name > 0 && text.as_bytes().get(name) == Some(&b'=')
}

/// Whether the value at `place` is a secret.
pub(super) fn accepts(kind: Kind, place: &Place<'_>, entropy_min: f64) -> bool {
    let end = place.value.end;
    let value = &place.text[place.value.clone()];
    let value = &value[..value.floor_char_boundary(JUDGED_BYTES_MAX)];
    // A password may end in such a mark: it goes with the secret, but does not speak against it.
    let value = if place.is_bare {
        value.trim_end_matches(ENDS_OF_SENTENCES)
    } else {
        value
    };
    let bytes_min = if kind == Kind::Any {
        1
    } else {
        VALUE_BYTES_MIN
    };
    // A call is what most values in code are, and quick to see.
    if value.len() < bytes_min || place.is_bare && is_called(place.text, end) {
        return false;
    }
    let traits = Traits::of(value);
    let is_code = place.is_bare && traits.is_dotted_path || traits.is_path;
    let has_form = match kind {
        Kind::Any => true,
        Kind::Password => {
            !is_code && is_password(value, &traits, place) || is_told(value, &traits, place)
        }
        Kind::Option => {
            !is_code
                && traits.letters > 0
                && (traits.digits > 0 || !place.is_bare && traits.symbols > 0)
        }
        Kind::Sentence => {
            !is_code
                && traits.letters > 0
                && (traits.digits > 0
                    && (traits.symbols > 0 || traits.uppers > 0 || !place.is_bare)
                    || traits.symbols > 1)
        }
        Kind::Random => !is_code && is_random(value, &traits),
        Kind::RandomNotUuid => !is_code && !is_uuid(value) && is_random(value, &traits),
        Kind::Header => {
            !is_called(place.text, end)
                && !traits.is_dotted_path
                && !value.contains("://")
                && (traits.digits > 0
                    || value.ends_with('=')
                    || value.len() >= 12 && traits.humps >= 3)
        }
        Kind::Drawn => !(place.is_bare && traits.is_dotted_path) && is_drawn(value, &traits),
        Kind::DrawnApart => {
            value.len() >= RANDOM_BYTES_MIN
                && !(place.is_bare && traits.is_dotted_path)
                && is_drawn(value, &traits)
        }
    };
    has_form && (entropy_min <= 0.0 || entropy(value) >= entropy_min) && !is_placeholder(value)
}

/// What a value is made of.
#[derive(Default)]
struct Traits {
    letters: usize,
    uppers: usize,
    digits: usize,
    /// Characters that are rare in names: no letters, digits, `_`, `-`, `.`, `/`, `:`.
    symbols: usize,
    /// Upper-case letters after lower-case ones.
    humps: usize,
    /// Between a letter and a digit, over all.
    changes: usize,
    /// Whether a run of 10 or more letters and digits has two such changes in it.
    has_mixed_run: bool,
    /// `a.b.c`, of names.
    is_dotted_path: bool,
    /// Of a file, or an address.
    is_path: bool,
}

impl Traits {
    fn of(value: &str) -> Self {
        let mut traits = Self::default();
        let (mut run, mut run_changes) = (0, 0);
        let mut last = ' ';
        for c in value.chars() {
            let (is_letter, is_digit) = (c.is_alphabetic(), c.is_ascii_digit());
            traits.letters += usize::from(is_letter);
            traits.uppers += usize::from(c.is_uppercase());
            traits.digits += usize::from(is_digit);
            let is_symbol = !is_letter && !is_digit && !matches!(c, '_' | '-' | '.' | '/' | ':');
            traits.symbols += usize::from(is_symbol);
            traits.humps += usize::from(last.is_lowercase() && c.is_uppercase());
            let is_change = last.is_alphabetic() && is_digit || last.is_ascii_digit() && is_letter;
            traits.changes += usize::from(is_change);
            if is_letter || is_digit {
                run += 1;
                run_changes += usize::from(is_change);
                traits.has_mixed_run |= run >= 10 && run_changes >= 2;
            } else {
                (run, run_changes) = (0, 0);
            }
            last = c;
        }
        traits.is_dotted_path = value.contains('.') && value.split('.').all(is_name);
        traits.is_path = value.contains("://")
            || ["/", "./", "../", "~/"]
                .iter()
                .any(|start| value.starts_with(start))
            || value
                .split('/')
                .filter(|part| part.len() > 1 && is_word(part))
                .count()
                >= 2;
        traits
    }
}

/// Whether it is a name as in programs: `config`, `password2`, `_x`.
fn is_name(part: &str) -> bool {
    let part = part.trim_end_matches(['?', '!']);
    part.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$'))
        && part
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
        && part
            .as_bytes()
            .windows(2)
            .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit())
            .count()
            <= 2
}

/// Whether it is made of letters and what joins words.
fn is_word(part: &str) -> bool {
    part.chars()
        .all(|c| c.is_alphabetic() || matches!(c, '_' | '-' | '.' | ' ' | '@'))
}

/// Whether a call, an index or a path continues after the value.
fn is_called(text: &str, end: usize) -> bool {
    matches!(text.as_bytes().get(end), Some(b'(' | b'[' | b'{'))
        || text[end..].starts_with('<') && !text[end..].starts_with("</")
        || text[end..].starts_with("::")
}

fn is_password(value: &str, traits: &Traits, place: &Place<'_>) -> bool {
    let is_assigned_in_environment = is_in_environment(place);
    let lower = value.to_lowercase();
    if PLACEHOLDER_WORDS.contains(&lower.as_str()) {
        return false;
    }
    if traits.letters == 0 {
        return traits.digits >= 4
            && (!place.is_bare || is_assigned_in_environment && traits.digits >= 6);
    }
    if traits.digits == 0 && traits.symbols == 0 {
        // A word. It is a password where nothing else is possible.
        let is_about_itself = ["pass", "secret", "token", "key", "wort"]
            .iter()
            .any(|word| lower.contains(word));
        let is_identifier = value.contains(['_', '.']) || traits.humps > 0;
        return !is_about_itself
            && !is_identifier
            && (is_assigned_in_environment && value.len() >= 6
                || is_quoted_pair(place) && value.len() >= 8 && traits.uppers == 0);
    }
    if !place.is_bare {
        return traits.digits > 0 || traits.symbols > 1 && !value.contains(['(', '{', '[']);
    }
    if is_assigned_in_environment {
        return value.len() >= 6 || traits.symbols > 0;
    }
    // Without quotes it might be code.
    let is_operation = value.contains("==")
        || value.contains("&&")
        || value.contains("||")
        || value.contains("->");
    !is_operation
        && value.len() >= 6
        && traits.digits > 0
        && (is_line_of_settings(place) || traits.changes >= 2 || traits.symbols > 0)
        && !(is_name(value) && value.contains('_'))
}

/// Whether name and value are written as in settings or in the query of an address, and not as in an expression: `name=value`
/// without spaces and nothing after it, or `name: value` on a line of its own.
fn is_line_of_settings(place: &Place<'_>) -> bool {
    let between = &place.text[place.start..place.value.start];
    let after = &place.text[place.value.end..];
    if between.ends_with('=') && !between.contains(' ') {
        return !after.starts_with([',', ')']);
    }
    let line = &place.text[..place.start];
    let name =
        line.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' '));
    between.trim_end().ends_with(':')
        && (name.is_empty() || name.ends_with(['\n', '\\']))
        && (after.is_empty() || after.starts_with(['\n', '\r', '\\']))
}

/// Whether the name is in quotes, as in JSON.
fn is_quoted_pair(place: &Place<'_>) -> bool {
    let between = &place.text[place.start..place.value.start];
    between
        .split_once(':')
        .is_some_and(|(name, _)| name.ends_with(['"', '\'']))
}

/// Whether the value is assigned as in an environment: `NAME=value`, `export NAME="value"`.
fn is_in_environment(place: &Place<'_>) -> bool {
    let between = &place.text[place.start..place.value.start];
    let name_starts = place.text.as_bytes()[..place.start]
        .iter()
        .rev()
        .take(64)
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    let name = &place.text.as_bytes()[place.start - name_starts..place.start];
    let joins = between.trim_end_matches(['"', '\'', '\\']);
    joins.ends_with('=')
        && !joins.contains([' ', ':', '"', '\''])
        && !joins.contains(|c: char| c.is_lowercase())
        // An escaped line end before the name belongs to no name.
        && !name.strip_prefix(b"n").unwrap_or(name).iter().any(u8::is_ascii_lowercase)
}

fn is_random(value: &str, traits: &Traits) -> bool {
    value.len() >= RANDOM_BYTES_MIN
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_+/=.~%:-".contains(&byte))
        && traits.letters >= 2
        && traits.digits >= 2
        && (traits.changes >= 3 && traits.has_mixed_run
            || traits.uppers >= 3
                && traits.letters - traits.uppers >= 3
                && entropy(value) >= 3.8
                && traits.has_mixed_run)
        && entropy(value) >= 3.0
}

/// Whether a value next to the name of a password was drawn by a machine. What looks like a path may be base64.
fn is_told(value: &str, traits: &Traits, place: &Place<'_>) -> bool {
    value.len() >= 16 && !(place.is_bare && traits.is_dotted_path) && is_drawn(value, traits)
}

/// Whether the value is no name, path or word: most of it is in runs that change between letters and digits, or between
/// cases, as words do not.
fn is_drawn(value: &str, traits: &Traits) -> bool {
    const DRAWN_BYTES_MIN: usize = 8;
    const BASE32_BYTES_MIN: usize = 16;
    let bytes = value.as_bytes();
    if bytes.len() < DRAWN_BYTES_MIN
        || traits.letters == 0
        || !bytes.iter().all(u8::is_ascii_graphic)
        || value.contains("://")
        || [":", "./", "../", "~/"]
            .iter()
            .any(|start| value.starts_with(start))
        || value.strip_prefix('/').is_some_and(|path| {
            let first = path.split('/').next().unwrap_or(path);
            first.len() < path.len() && first.bytes().all(|byte| byte.is_ascii_lowercase())
        })
    {
        return false;
    }
    if bytes.len() >= BASE32_BYTES_MIN
        && bytes.len().is_multiple_of(8)
        && bytes
            .iter()
            .all(|byte| matches!(byte, b'A'..=b'Z' | b'2'..=b'7'))
        && entropy(value) >= 3.0
    {
        return true;
    }
    let mixed: usize = value
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|part| is_mixed(part.as_bytes()))
        .map(str::len)
        .sum();
    let has_sign_runs =
        traits.symbols >= 2 && traits.digits >= 2 && traits.uppers >= 1 && bytes.len() >= 10;
    (mixed >= 6 && mixed * 2 >= bytes.len()
        || has_sign_runs && !value.contains(['(', '{', '[', '<', '$'])
        || bytes.len().is_multiple_of(4) && value.ends_with('=') && traits.humps >= 1)
        && entropy(value) >= 2.5
}

/// Whether a run of letters and digits is no word and no number.
fn is_mixed(part: &[u8]) -> bool {
    let class = |byte: &u8| match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        _ => 2,
    };
    let changes = part
        .windows(2)
        .filter(|pair| (pair[0].is_ascii_digit()) != (pair[1].is_ascii_digit()))
        .count();
    let turns = part
        .windows(2)
        .filter(|pair| class(&pair[0]) != class(&pair[1]))
        .count();
    let has = |wanted: u8| part.iter().any(|byte| class(byte) == wanted);
    if !(has(1) && has(2)) {
        return part.len() >= 4 && (changes >= 3 || part.len() < 10 && changes >= 2);
    }
    // Words: four letters and more of one case, or after a capital.
    let (mut wordy, mut run) = (0, 0);
    for (at, byte) in part.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| class(&part[at]));
        run = match (before, class(byte)) {
            (_, 0) => 0,
            (Some(before), now) if before == now => run + 1,
            (Some(1), 2) => 2,
            _ => 1,
        };
        wordy += match run {
            4 => 4,
            5.. => 1,
            _ => 0,
        };
    }
    let uppers = part.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    // Names have a capital per word.
    let has_many_capitals = part.len() >= 12 && uppers * 10 >= part.len() * 3;
    part.len() >= 4
        && turns >= 3
        && turns * 4 >= part.len()
        && (has_many_capitals || wordy * 3 < part.len() * 2)
}

/// Whether it can be nothing but this secret, wherever it stands: no word, name or version.
pub(super) fn is_unmistakable(value: &str) -> bool {
    const BYTES_MIN: usize = 10;
    const WORDS_MIN: usize = 11;
    if value.contains(char::is_whitespace) {
        return value.split_whitespace().count() >= WORDS_MIN;
    }
    let traits = Traits::of(value);
    let is_mixed = traits.letters > 0
        && traits.digits > 0
        && (traits.symbols > 0
            || traits.changes >= 2 && traits.uppers > 0 && traits.letters > traits.uppers);
    value.len() >= BYTES_MIN
        && !traits.is_path
        && !traits.is_dotted_path
        && !is_placeholder(value)
        && (is_mixed || is_random(value, &traits) || is_drawn(value, &traits))
}

fn is_uuid(value: &str) -> bool {
    value.len() == 36
        && value.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether it is a placeholder for a value that is not there, or is one of a program's expressions for getting it.
fn is_placeholder(value: &str) -> bool {
    let lower = value.to_lowercase();
    let is_variable = lower.strip_prefix('$').is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }) || lower.len() > 2 && lower.starts_with('%') && lower.ends_with('%');
    let mut chars = lower.chars();
    let first = chars.next();
    is_variable
        || lower.starts_with('{')
        || lower.starts_with("#{")
        || lower.starts_with("your")
        || chars.all(|c| Some(c) == first)
        || PLACEHOLDER_WORDS.contains(&lower.as_str())
        || PLACEHOLDER_PARTS.iter().any(|part| lower.contains(part))
}

/// Shannon entropy of the bytes, in bits per byte.
fn entropy(value: &str) -> f64 {
    let bytes = value.as_bytes();
    let mut counts = [0_u32; 256];
    for &byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let total = bytes.len() as f64;
    counts
        .iter()
        .filter(|&&count| count > 0)
        .map(|&count| {
            let share = f64::from(count) / total;
            -share * share.log2()
        })
        .sum()
}
