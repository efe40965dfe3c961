//! The rules in the form of the data file.

use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use super::value::Kind;

/// The longest id of a rule, in bytes.
pub(super) const ID_BYTES_MAX: usize = 40;

/// What is wrong with a set of rules.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// It is not TOML of the right shape.
    #[error("rules cannot be read")]
    Toml(#[from] toml::de::Error),
    /// An id is something else than 1 to 40 lower-case letters, digits and hyphens.
    #[error("rule id {0:?} is not made of lower-case letters, digits and hyphens")]
    Id(String),
    /// A rule has no keyword, or an empty one: it could not be tried anywhere, or would be everywhere.
    #[error("rule {0} needs keywords that are not empty")]
    Keywords(String),
    /// A pattern does not begin with `^`, after its flags.
    #[error("pattern of rule {0} is not anchored by ^")]
    Anchor(String),
    /// A pattern is not a regular expression, or is too large.
    #[error("pattern of rule {id} is not valid")]
    Pattern {
        /// The rule.
        id: String,
        /// Why.
        source: regex::Error,
    },
    /// There are too many keywords.
    #[error("keywords cannot be searched for")]
    Search(#[from] aho_corasick::BuildError),
}

/// One rule. `data/redaction.toml` says what the fields mean.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) id: String,
    pattern: String,
    pub(super) keywords: Vec<String>,
    #[serde(default)]
    pub(super) boundary: bool,
    #[serde(default)]
    pub(super) entropy: f64,
    #[serde(default)]
    pub(super) value: Kind,
    #[serde(default)]
    not_after: Vec<String>,
    #[serde(default)]
    followed_by: String,
    pub(super) span: Option<Span>,
    #[serde(default)]
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "examples are there for the tests")
    )]
    pub(super) finds: Vec<Example>,
    #[serde(default)]
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "examples are there for the tests")
    )]
    pub(super) leaves: Vec<String>,
    #[serde(skip)]
    regex: OnceLock<Result<Regex, regex::Error>>,
}

/// A secret that is more than what the pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Span {
    /// The match begins a key block.
    KeyBlock,
    /// The match ends a key block, whose beginning may be missing.
    KeyBlockEnd,
    /// The keyword is a word in the name of the secret; the pattern begins at the end of the name.
    Named,
}

/// A text with a secret in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "examples are there for the tests")
)]
pub(super) struct Example {
    #[serde(default)]
    pub(super) before: String,
    pub(super) secret: Vec<String>,
    #[serde(default)]
    pub(super) after: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rule: Vec<Rule>,
}

/// Reads rules and checks all but their patterns' syntax.
pub(super) fn parse(source: &str) -> Result<Vec<Rule>, RuleError> {
    let File { rule: rules } = toml::from_str(source)?;
    for rule in &rules {
        if !is_id(&rule.id) {
            return Err(RuleError::Id(rule.id.clone()));
        }
        if rule.keywords.is_empty() || rule.keywords.iter().any(String::is_empty) {
            return Err(RuleError::Keywords(rule.id.clone()));
        }
        if !rule.pattern.trim_start_matches("(?i)").starts_with('^') {
            return Err(RuleError::Anchor(rule.id.clone()));
        }
    }
    Ok(rules)
}

/// Whether `id` can be a rule's id.
pub(super) fn is_id(id: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&id.len())
        && id
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

impl Rule {
    /// The compiled pattern.
    ///
    /// Classes are those of ASCII, which compile in a tenth of the time; a pattern that needs those of Unicode has them.
    pub(super) fn compile(&self) -> Result<&Regex, RuleError> {
        self.regex
            .get_or_init(|| {
                RegexBuilder::new(&self.pattern)
                    .unicode(false)
                    .build()
                    .or_else(|_| Regex::new(&self.pattern))
            })
            .as_ref()
            .map_err(|error| RuleError::Pattern {
                id: self.id.clone(),
                source: error.clone(),
            })
    }

    /// Whether what follows the keyword, from `end` on, can lead to a match. Cheaper than trying.
    pub(super) fn can_follow(&self, text: &[u8], end: usize) -> bool {
        self.followed_by.is_empty()
            || text
                .get(end)
                .is_some_and(|byte| self.followed_by.as_bytes().contains(byte))
    }

    /// Whether the words before the keyword say that this is no secret: `next_page_` before `token`.
    pub(super) fn is_harmless_after(&self, text: &[u8], start: usize) -> bool {
        if self.not_after.is_empty() {
            return false;
        }
        let before = &text[..start];
        let before = before
            .strip_suffix(b"_")
            .or_else(|| before.strip_suffix(b"-"))
            .unwrap_or(before);
        self.not_after.iter().any(|word| {
            before.len() >= word.len()
                && before[before.len() - word.len()..].eq_ignore_ascii_case(word.as_bytes())
        })
    }
}
