//! Decides whether a name is that of a secret: `DB_PASSWORD_STAGING`, `apiKeyProd`, `x-auth`.
//!
//! A name is split into its words. One of them says what the value is (`password`, `token`), words before it make a
//! key a secret one (`signing key`), and words after it may say that the value is something about the secret
//! (`token_count`, `SECRET_NAME`).

use std::ops::Range;

use super::value::Kind;

/// How far a name is followed to either side of a keyword, in bytes.
const SIDE_BYTES_MAX: usize = 64;

/// Keywords that stay telling when other letters come directly before them: `PGPASSWORD`, `accesstoken`.
const TELLING_ENDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "kennwort",
    "secret",
    "token",
    "apikey",
    "secretkey",
    "accesskey",
    "pwd",
];

/// Keywords whose values people choose.
const PASSWORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "kennwort",
    "passcode",
    "secret",
    "pass",
    "pwd",
];

/// Words before `key` that make it a secret.
const SECRET_KEYS: &[&str] = &[
    "api",
    "app",
    "access",
    "auth",
    "account",
    "admin",
    "bot",
    "client",
    "consumer",
    "crypto",
    "deploy",
    "encrypt",
    "encryption",
    "hmac",
    "jwt",
    "license",
    "licence",
    "master",
    "private",
    "root",
    "secret",
    "server",
    "service",
    "session",
    "shared",
    "sign",
    "signing",
    "storage",
    "subscription",
    "unseal",
    "webhook",
    "decryption",
    "wrapping",
];

/// Words in a name of a constant that make its `KEY` none.
const OPEN_KEYS: &[&str] = &[
    "primary",
    "foreign",
    "cache",
    "partition",
    "sort",
    "idempotency",
    "unique",
    "index",
    "object",
    "row",
    "hash",
    "map",
    "group",
    "lock",
    "composite",
    "shard",
    "build",
    "item",
    "state",
    "route",
    "event",
    "query",
    "bucket",
    "dedup",
    "ssh",
    "host",
    "known",
    "registry",
    "hotkey",
    "translation",
    "i18n",
    "config",
    "range",
];

/// Words that make a name harmless wherever they are in it.
const OPEN_WORDS: &[&str] = &[
    "public",
    "pub",
    "publishable",
    "max",
    "min",
    "num",
    "count",
    "total",
    "next",
    "continuation",
    "cancel",
    "cancellation",
    "cursor",
    "prev",
    "previous",
    "sync",
    "resume",
    "fingerprint",
];

/// Words after the keyword that say what the value is instead of the secret.
const ASPECTS: &[&str] = &[
    "url",
    "uri",
    "path",
    "file",
    "filename",
    "dir",
    "folder",
    "name",
    "names",
    "id",
    "ids",
    "count",
    "counts",
    "length",
    "len",
    "size",
    "limit",
    "limits",
    "ttl",
    "expires",
    "expiry",
    "expiration",
    "expired",
    "age",
    "at",
    "in",
    "type",
    "kind",
    "hint",
    "policy",
    "min",
    "max",
    "prefix",
    "suffix",
    "format",
    "field",
    "header",
    "algorithm",
    "alg",
    "enabled",
    "required",
    "arn",
    "ref",
    "refs",
    "store",
    "manager",
    "provider",
    "backend",
    "engine",
    "scope",
    "scopes",
    "role",
    "mount",
    "usage",
    "used",
    "endpoint",
    "host",
    "issuer",
    "audience",
    "label",
    "index",
    "position",
    "status",
    "rotation",
    "interval",
    "timeout",
    "date",
    "time",
    "updated",
    "created",
    "changed",
    "version",
    "source",
    "mode",
    "method",
    "strategy",
    "class",
    "parameter",
    "param",
    "budget",
    "estimate",
    "per",
    "rate",
    "price",
    "cost",
    "checksum",
    "digest",
    "fingerprint",
    "sha256",
    "handler",
    "service",
    "client",
    "validator",
    "pattern",
    "regex",
    "rounds",
    "bits",
    "bytes",
    "cmd",
    "command",
    "owner",
    "email",
    "user",
    "username",
    "strength",
    "reset",
];

/// A name and what its value is.
pub(super) struct Name {
    pub(super) range: Range<usize>,
    /// How the value is judged.
    pub(super) kind: Kind,
    /// Whether it is written as an option, `--name`.
    pub(super) is_option: bool,
    /// Whether a value may follow without a sign between them.
    pub(super) is_telling: bool,
}

/// The name of a secret in which the keyword `hit` is the telling word.
pub(super) fn at(text: &str, hit: Range<usize>) -> Option<Name> {
    let bytes = text.as_bytes();
    let keyword = text.get(hit.clone())?.to_ascii_lowercase();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let left = bytes[..hit.start]
        .iter()
        .rev()
        .take(SIDE_BYTES_MAX)
        .take_while(|byte| is_part(byte))
        .count();
    let mut start = hit.start - left;
    start += leading_escape(bytes, start, hit.start);
    let before = &text[start..hit.start];
    let is_option = before.starts_with("--");
    start += before.len() - before.trim_start_matches(['-', '.']).len();
    if !begins_word(bytes, start, hit.start) && !TELLING_ENDS.contains(&keyword.as_str()) {
        return None;
    }
    // In an address the name of a user may be telling, and another rule knows what a password is.
    if text[..start].ends_with("://") {
        return None;
    }
    let mut end = hit.end;
    if bytes
        .get(end)
        .is_some_and(|byte| matches!(byte, b's' | b'S'))
        && !bytes.get(end + 1).is_some_and(u8::is_ascii_lowercase)
    {
        end += 1;
    }
    if !ends_word(bytes, end) {
        return None;
    }
    let word_end = end;
    end += bytes[end..]
        .iter()
        .take(SIDE_BYTES_MAX)
        .take_while(|byte| is_part(byte))
        .count();
    // A full stop or a hyphen at the end belongs to the sentence.
    end = word_end + text[word_end..end].trim_end_matches(['.', '-']).len();
    let earlier = words(&text[start..hit.start]);
    let later = words(&text[word_end..end]);
    let name = &text[start..end];
    let is_constant = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    let is_open = |word: &String| OPEN_WORDS.contains(&word.as_str());
    if earlier.iter().any(is_open)
        || later
            .iter()
            .any(|word| is_open(word) || ASPECTS.contains(&word.as_str()))
    {
        return None;
    }
    if keyword == "key" {
        let last = earlier.last().cloned().or_else(|| {
            let from = text.ceil_char_boundary(start.saturating_sub(SIDE_BYTES_MAX));
            last_word(&text[from..start])
        });
        let is_secret = last.is_some_and(|word| {
            SECRET_KEYS.contains(&word.as_str())
                || is_constant
                    && !earlier.is_empty()
                    && !earlier
                        .iter()
                        .any(|word| OPEN_KEYS.contains(&word.as_str()))
        });
        if !is_secret {
            return None;
        }
    }
    let has = |list: &[&str]| {
        list.contains(&keyword.as_str())
            || earlier
                .iter()
                .chain(&later)
                .any(|word| list.contains(&word.as_str()))
    };
    let kind = if has(PASSWORDS) {
        Kind::Password
    } else {
        Kind::Drawn
    };
    let is_telling =
        keyword == "key" || has(TELLING_ENDS) || is_constant && earlier.len() + later.len() > 0;
    Some(Name {
        range: start..end,
        kind,
        is_option,
        is_telling,
    })
}

/// The word directly before a space at the end.
fn last_word(text: &str) -> Option<String> {
    let text = text.strip_suffix(' ')?;
    let length = text
        .bytes()
        .rev()
        .take_while(u8::is_ascii_alphanumeric)
        .count();
    Some(text[text.len() - length..].to_ascii_lowercase())
}

/// The bytes at the start of a name that belong to an escape before it: `\nTOKEN`, `%26token`.
fn leading_escape(bytes: &[u8], start: usize, until: usize) -> usize {
    match start.checked_sub(1).map(|at| bytes[at]) {
        Some(b'\\') if start < until && matches!(bytes[start], b'n' | b't' | b'r') => 1,
        Some(b'%') if start + 2 <= until => 2,
        _ => 0,
    }
}

fn begins_word(bytes: &[u8], start: usize, at: usize) -> bool {
    if at <= start {
        return at == 0 || bytes[at - 1].is_ascii();
    }
    let (before, first) = (bytes[at - 1], bytes[at]);
    !before.is_ascii_alphabetic() || first.is_ascii_uppercase() && before.is_ascii_lowercase()
        // `AWSToken`
        || first.is_ascii_uppercase() && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase)
}

fn ends_word(bytes: &[u8], end: usize) -> bool {
    match (bytes[end - 1], bytes.get(end)) {
        (_, None) => true,
        (last, Some(next)) if next.is_ascii_uppercase() => last.is_ascii_lowercase(),
        (_, Some(next)) => !next.is_ascii_lowercase(),
    }
}

/// The words of a part of a name, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split(['_', '-', '.']) {
        let bytes = part.as_bytes();
        let mut from = 0;
        for at in 1..bytes.len() {
            let is_hump = bytes[at].is_ascii_uppercase()
                && (bytes[at - 1].is_ascii_lowercase()
                    || bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase));
            if is_hump {
                words.push(part[from..at].to_ascii_lowercase());
                from = at;
            }
        }
        if from < part.len() {
            words.push(part[from..].to_ascii_lowercase());
        }
    }
    words
}
