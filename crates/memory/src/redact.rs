//! Redaction: replaces secrets in a text with markers.
//!
//! A marker names the rule and a short digest of the secret, `[redacted:github-token:1f3a]`, so that a reader still
//! sees what was there and whether two places held the same. Rules are data (`data/redaction.toml`): patterns of
//! vendors' keys, shapes such as JSON web tokens and key blocks, and values next to telling names.
//!
//! It does not judge what a text means: names, addresses and other personal data stay, and so do hashes, UUIDs and
//! commit ids. It does not decode: a secret in base64 of something else is not seen. Text that is still in its JSON
//! escapes is understood as far as quotes and line ends go.
//!
//! # The digest
//! It has 16 bits. The holder of a marker can rule out all but one in 65,536 guesses of a weak password at best, and
//! cannot confirm one; a digest long enough to be unique would confirm it. Two secrets of one document share a digest
//! by chance once in 65,536 pairs, which costs a reader little. With [`Redactor::with_key`] the digest depends on a
//! key of the caller, and without the key it tells nothing; without it, markers are the same everywhere, which
//! keeps memories reproducible.
//!
//! ```
//! use throughline_memory::redact::Redactor;
//!
//! let text = ["DB=postgres://app:", "kiwi-", "plum", "@db.local/x"].concat();
//! let safe = Redactor::embedded().redact(&text);
//! assert!(safe.starts_with("DB=postgres://app:[redacted:url-password:"));
//! assert_eq!(Redactor::embedded().redact(&safe), safe);
//! ```

mod key_block;
mod known;
mod named;
mod rule;
mod value;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use known::KnownSecrets;
pub use rule::RuleError;
use rule::{Rule, Span};
use value::Kind;

/// How much of a text a rule's pattern looks at from its keyword on, in bytes. Bounds the work per keyword.
const WINDOW_BYTES: usize = 2048;

/// A rule is not tried again within a rejected value of this many bytes. Without that, a long run of
/// keywords would be read once for each of them.
const LONG_VALUE_BYTES: usize = 512;

/// How often the result is looked at again. A replacement can lay bare what was hidden by its neighbour, so that one
/// pass is not always enough; every pass takes text away, and two are what real texts need.
const PASSES_MAX: usize = 16;

/// The start of every marker.
const MARKER_START: &str = "[redacted:";

/// The rules' source, as it is built in.
const EMBEDDED: &str = include_str!("../data/redaction.toml");

/// Finds secrets and replaces them by markers. Build it once: it is cheap to use and to clone, and costly to make.
///
/// A clone can [`learn`](Self::learn) the secrets of one conversation. From then on it finds them in every text.
#[derive(Clone, Debug)]
pub struct Redactor {
    rules: Arc<Vec<Rule>>,
    /// All keywords and the start of a marker.
    keywords: Arc<AhoCorasick>,
    /// For every keyword the indices of its rules; none for the start of a marker.
    rules_of_keyword: Arc<Vec<Vec<usize>>>,
    key: [u8; blake3::KEY_LEN],
    known: KnownSecrets,
}

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding<'a> {
    /// Where it is, in bytes.
    pub range: Range<usize>,
    /// Id of the rule that found it.
    pub rule: &'a str,
}

impl Redactor {
    /// The redactor with the built-in rules.
    #[must_use]
    pub fn embedded() -> &'static Self {
        static EMBEDDED_REDACTOR: LazyLock<Redactor> = LazyLock::new(|| {
            #[expect(
                clippy::expect_used,
                reason = "the rules are part of the program and a test builds them"
            )]
            Redactor::build(EMBEDDED).expect("the built-in rules are valid")
        });
        &EMBEDDED_REDACTOR
    }

    /// A redactor with other rules, written like the built-in ones (`data/redaction.toml` explains them).
    ///
    /// # Errors
    /// The first thing that is wrong in the rules, patterns included.
    pub fn with_rules(rules: &str) -> Result<Self, RuleError> {
        let redactor = Self::build(rules)?;
        for rule in redactor.rules.iter() {
            rule.compile()?;
        }
        Ok(redactor)
    }

    /// Makes the digests in the markers depend on `key`, which may be of any length.
    #[must_use]
    pub fn with_key(mut self, key: &[u8]) -> Self {
        self.key = blake3::derive_key("throughline redaction marker 1", key);
        self
    }

    /// Everything but the patterns, which are compiled when they are first needed: most texts need few of them.
    fn build(rules: &str) -> Result<Self, RuleError> {
        let rules = rule::parse(rules)?;
        let mut keywords = vec![MARKER_START.to_owned()];
        let mut rules_of_keyword = vec![Vec::new()];
        for (index, rule) in rules.iter().enumerate() {
            for keyword in &rule.keywords {
                let keyword = keyword.to_ascii_lowercase();
                match keywords.iter().position(|known| *known == keyword) {
                    Some(known) => rules_of_keyword[known].push(index),
                    None => {
                        keywords.push(keyword);
                        rules_of_keyword.push(vec![index]);
                    }
                }
            }
        }
        let keywords = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&keywords)?;
        Ok(Self {
            rules: Arc::new(rules),
            keywords: Arc::new(keywords),
            rules_of_keyword: Arc::new(rules_of_keyword),
            known: KnownSecrets::default(),
            key: blake3::derive_key("throughline redaction marker 1", b""),
        })
    }

    /// The text with a marker in the place of every secret; borrowed when there is none.
    ///
    /// Redacting a redacted text changes nothing. Linear in the length of the text.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut redacted = Cow::Borrowed(text);
        for _ in 0..PASSES_MAX {
            let findings = self.find(&redacted);
            if findings.is_empty() {
                break;
            }
            let mut next = String::with_capacity(redacted.len());
            let mut written = 0;
            for finding in findings {
                next.push_str(&redacted[written..finding.range.start]);
                next.push_str(&self.marker(finding.rule, &redacted[finding.range.clone()]));
                written = finding.range.end;
            }
            next.push_str(&redacted[written..]);
            redacted = Cow::Owned(next);
        }
        redacted
    }

    /// Remembers the secrets that the rules find in a text, to find them again where nothing tells what they are.
    ///
    /// Only values are kept that cannot be ordinary words, and a limited number. They are kept in memory as they are, never
    /// written anywhere.
    pub fn learn(&mut self, text: &str) {
        for (range, rule) in self.detect(text, &mut Vec::new()) {
            let value = &text[range];
            if self.rules[rule].id.starts_with("cookie") {
                for (_, value) in value.split(';').filter_map(|part| part.split_once('=')) {
                    self.known.add(value, rule);
                }
            } else {
                self.known.add(value, rule);
            }
        }
    }

    /// Whether there is a secret in a text.
    #[must_use]
    pub fn has_secret(&self, text: &str) -> bool {
        !self.find(text).is_empty()
    }

    /// How many secrets it has learned; the number only grows.
    #[must_use]
    pub fn learned(&self) -> usize {
        self.known.len()
    }

    /// The secrets in a text, in order and apart from each other. The content of a marker is none.
    #[must_use]
    pub fn find(&self, text: &str) -> Vec<Finding<'_>> {
        let mut markers: Vec<Range<usize>> = Vec::new();
        let mut found = self.detect(text, &mut markers);
        self.known.find(text, &mut found);
        found.sort_unstable_by_key(|(range, _)| range.start);
        let mut merged: Vec<(Range<usize>, usize)> = Vec::with_capacity(found.len());
        for (range, rule) in found {
            match merged.last_mut() {
                Some((last, named)) if range.start < last.end => {
                    last.end = last.end.max(range.end);
                    *named = rule.min(*named);
                }
                _ => merged.push((range, rule)),
            }
        }
        let mut markers = markers.into_iter().peekable();
        merged.retain(|(range, _)| {
            while markers
                .next_if(|marker| marker.end <= range.start)
                .is_some()
            {}
            markers
                .peek()
                .is_none_or(|marker| marker.start >= range.end)
        });
        merged
            .into_iter()
            .map(|(range, rule)| Finding {
                range,
                rule: &self.rules[rule].id,
            })
            .collect()
    }

    /// What the rules find, with their indices, and where markers are. The findings may overlap.
    fn detect(&self, text: &str, markers: &mut Vec<Range<usize>>) -> Vec<(Range<usize>, usize)> {
        let mut found: Vec<(Range<usize>, usize)> = Vec::new();
        // For every rule, up to where it need not be tried again.
        let mut tried = vec![0; self.rules.len()];
        for hit in self.keywords.find_overlapping_iter(text) {
            let rules = &self.rules_of_keyword[hit.pattern().as_usize()];
            if rules.is_empty() {
                markers.extend(marker_at(text, hit.start()));
            }
            for &index in rules {
                let rule = &self.rules[index];
                if hit.start() < tried[index] || !rule.can_follow(text.as_bytes(), hit.end()) {
                    continue;
                }
                let after = found.last().map_or(0, |(range, _)| range.end);
                found.extend(
                    self.secret_at(text, hit.range(), after, rule, &mut tried[index])
                        .map(|range| (range, index)),
                );
            }
        }
        found
    }

    /// The secret that `rule` sees at its keyword `hit`. `after` is the end of an earlier finding;
    /// `tried` is moved to where the rule may be tried next.
    fn secret_at(
        &self,
        text: &str,
        hit: Range<usize>,
        after: usize,
        rule: &Rule,
        tried: &mut usize,
    ) -> Option<Range<usize>> {
        let mut start = hit.start;
        if rule.boundary && !is_boundary(text.as_bytes(), start)
            || rule.is_harmless_after(text.as_bytes(), start)
        {
            return None;
        }
        let mut name = None;
        if rule.span == Some(Span::Named) {
            let found = named::at(text, hit)?;
            start = found.range.end;
            *tried = start;
            name = Some(found);
        }
        let end = text.floor_char_boundary(start.saturating_add(WINDOW_BYTES));
        let captures = rule
            .compile()
            .ok()?
            .captures(&text.as_bytes()[start..end])?;
        let whole = captures.get(0)?;
        match rule.span {
            Some(Span::KeyBlock) => return key_block::from_start(text, start, start + whole.end()),
            Some(Span::KeyBlockEnd) => {
                return key_block::to_end(text, after, start, start + whole.end());
            }
            Some(Span::Named) | None => {}
        }
        let (secret, is_bare) = match (captures.name("secret"), captures.name("bare")) {
            (Some(secret), _) => (secret, false),
            (None, Some(bare)) => (bare, true),
            (None, None) => (whole, false),
        };
        let kind = match &name {
            Some(name) if captures.name("apart").is_none() => name.kind,
            Some(name) if name.is_telling || name.is_option => Kind::DrawnApart,
            Some(_) => return None,
            None => rule.value,
        };
        // A pattern counts bytes and may stop within a character.
        let range = text.floor_char_boundary(start + secret.start())
            ..text.ceil_char_boundary(start + secret.end());
        let place = value::Place {
            text,
            start: name.map_or(start, |name| name.range.start),
            value: value::trim(text, range, is_bare),
            is_bare,
        };
        if !value::accepts(kind, &place, rule.entropy) {
            if place.value.len() >= LONG_VALUE_BYTES {
                *tried = place.value.end;
            }
            return None;
        }
        let mut range = place.value;
        if range.end == end {
            // An earlier secret that goes further has been followed to its end already.
            range.end = if after > end {
                after
            } else {
                end + run_of_token_bytes(&text.as_bytes()[end..])
            };
        }
        Some(range)
    }

    /// The marker that replaces `secret`.
    fn marker(&self, rule: &str, secret: &str) -> String {
        let digest = blake3::keyed_hash(&self.key, secret.as_bytes());
        let [high, low, ..] = *digest.as_bytes();
        format!("{MARKER_START}{rule}:{high:02x}{low:02x}]")
    }
}

/// The marker that begins at `start`, if one does.
fn marker_at(text: &str, start: usize) -> Option<Range<usize>> {
    let rest = text.get(start..)?.strip_prefix(MARKER_START)?;
    let (rule, rest) = rest.split_at_checked(
        rest.bytes()
            .take(rule::ID_BYTES_MAX + 1)
            .position(|byte| byte == b':')?,
    )?;
    let is_marker = rule::is_id(rule)
        && rest
            .as_bytes()
            .get(1..5)?
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && rest.as_bytes().get(5) == Some(&b']');
    is_marker.then(|| start..start + MARKER_START.len() + rule.len() + 6)
}

/// Whether what begins at `start` does not continue a word. An escape (`\n`, `\u003d`, `%3D`, the end of a colour code)
/// is no word.
fn is_boundary(text: &[u8], start: usize) -> bool {
    let before = &text[..start];
    match before {
        [] => true,
        [.., last]
            if !last.is_ascii_alphanumeric() && !matches!(last, b'_' | b'-') && last.is_ascii() =>
        {
            true
        }
        [.., b'\\', b'n' | b't' | b'r' | b'b' | b'f'] => true,
        [.., b'\\', b'u', _, _, _, _] => true,
        [.., b'%', high, low] => high.is_ascii_hexdigit() && low.is_ascii_hexdigit(),
        [.., last] if !last.is_ascii() => true,
        [rest @ .., b'm'] => {
            let digits = rest
                .iter()
                .rev()
                .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
                .take(16)
                .count();
            digits < rest.len() && rest[rest.len() - digits - 1] == b'['
        }
        _ => false,
    }
}

/// The number of leading bytes that continue a token.
fn run_of_token_bytes(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=' | b'.' | b'~' | b'%')
        })
        .count()
}

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod tests;
