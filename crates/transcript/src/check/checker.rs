//! Shared by all three formats: makes findings and reads fields that must have a certain type.

use std::fmt;

use crate::catalogue::Abilities;
use crate::json::{Kind, Raw, Text};
use crate::wire::Wire;

use super::path::Path;
use super::rule::{self, Rule, Severity};
use super::{CheckOptions, FINDINGS_MAX, Finding, Report};

/// A check in progress.
pub(crate) struct Checker<'a> {
    pub(crate) wire: Wire,
    pub(crate) options: &'a CheckOptions<'a>,
    findings: Vec<Finding>,
    omitted: usize,
    errors: usize,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(wire: Wire, options: &'a CheckOptions<'a>) -> Self {
        Self {
            wire,
            options,
            findings: Vec::new(),
            omitted: 0,
            errors: 0,
        }
    }

    /// What the model can do; nothing is known of a model that is not given.
    pub(crate) fn ability<T>(&self, read: impl FnOnce(&Abilities) -> Option<T>) -> Option<T> {
        self.options.model.and_then(|model| read(&model.abilities))
    }

    pub(crate) fn into_report(self) -> Report {
        Report {
            wire: self.wire,
            findings: self.findings,
            omitted: self.omitted,
            errors: self.errors,
        }
    }

    /// Adds a finding with the rule's own severity.
    pub(crate) fn add(&mut self, rule: &Rule, path: Path<'_>, message: impl fmt::Display) {
        self.add_as(rule.severity, rule, path, message);
    }

    /// Adds a finding as a warning, because what the rule depends on is not known for certain.
    pub(crate) fn warn(&mut self, rule: &Rule, path: Path<'_>, message: impl fmt::Display) {
        self.add_as(Severity::Warning, rule, path, message);
    }

    pub(crate) fn add_as(
        &mut self,
        severity: Severity,
        rule: &Rule,
        path: impl fmt::Display,
        message: impl fmt::Display,
    ) {
        if severity == Severity::Error {
            self.errors += 1;
        }
        if self.findings.len() >= FINDINGS_MAX {
            self.omitted += 1;
            return;
        }
        self.findings.push(Finding {
            code: rule.code,
            severity,
            path: path.to_string(),
            message: message.to_string(),
            source: rule.source,
        });
    }

    fn missing(&mut self, key: &str, what: &str, path: &Path<'_>) {
        self.add(
            &rule::MISSING_FIELD,
            path.key(key),
            format_args!("the field `{key}` is required: add {what}"),
        );
    }

    fn wrong_type(&mut self, found: &Raw, what: &str, path: Path<'_>) {
        self.add(
            &rule::WRONG_TYPE,
            path,
            format_args!("expected {what}, found {}", kind_name(found.kind())),
        );
    }

    /// A string that must be there and not be empty.
    pub(crate) fn required_name(
        &mut self,
        object: &Object,
        key: &str,
        path: &Path<'_>,
    ) -> Option<Text> {
        let text = self.required_string(object, key, path)?;
        if text.encoded_len() == 0 {
            self.add(
                &rule::EMPTY_VALUE,
                path.key(key),
                format_args!("`{key}` must not be empty"),
            );
            return None;
        }
        Some(text)
    }

    /// A string that must be there and may be empty.
    pub(crate) fn required_string(
        &mut self,
        object: &Object,
        key: &str,
        path: &Path<'_>,
    ) -> Option<Text> {
        if object.present(key).is_none() {
            self.missing(key, "a string", path);
            return None;
        }
        self.optional_string(object, key, path)
    }

    pub(crate) fn optional_string(
        &mut self,
        object: &Object,
        key: &str,
        path: &Path<'_>,
    ) -> Option<Text> {
        let value = object.present(key)?;
        let text = value.as_text();
        if text.is_none() {
            self.wrong_type(value, "a string", path.key(key));
        }
        text
    }

    pub(crate) fn optional_bool(
        &mut self,
        object: &Object,
        key: &str,
        path: &Path<'_>,
    ) -> Option<bool> {
        let value = object.present(key)?;
        let flag = value.as_bool();
        if flag.is_none() {
            self.wrong_type(value, "true or false", path.key(key));
        }
        flag
    }

    /// A whole number of at least `min`.
    pub(crate) fn optional_count(
        &mut self,
        object: &Object,
        key: &str,
        min: u64,
        path: &Path<'_>,
    ) -> Option<u64> {
        let value = object.present(key)?;
        if value.kind() != Kind::Number {
            self.wrong_type(value, "a whole number", path.key(key));
            return None;
        }
        match value.as_u64() {
            Some(number) if number >= min => Some(number),
            number => {
                self.add(
                    &rule::OUT_OF_RANGE,
                    path.key(key),
                    format_args!("`{key}` must be a whole number of at least {min}"),
                );
                number
            }
        }
    }

    /// A number between two limits, both allowed.
    pub(crate) fn optional_number(
        &mut self,
        object: &Object,
        key: &str,
        (min, max): (f64, f64),
        path: &Path<'_>,
    ) -> Option<f64> {
        let value = object.present(key)?;
        let Some(number) = value.as_f64() else {
            self.wrong_type(value, "a number", path.key(key));
            return None;
        };
        if !(min..=max).contains(&number) {
            self.add(
                &rule::OUT_OF_RANGE,
                path.key(key),
                format_args!("`{key}` must be between {min} and {max}"),
            );
        }
        Some(number)
    }

    pub(crate) fn optional_object(
        &mut self,
        object: &Object,
        key: &str,
        path: &Path<'_>,
    ) -> Option<Object> {
        let value = object.present(key)?;
        self.object(value, path.key(key))
    }

    pub(crate) fn required_object(
        &mut self,
        object: &Object,
        key: &str,
        path: &Path<'_>,
    ) -> Option<Object> {
        if object.present(key).is_none() {
            self.missing(key, "an object", path);
            return None;
        }
        self.optional_object(object, key, path)
    }

    pub(crate) fn optional_array<'o>(
        &mut self,
        object: &'o Object,
        key: &str,
        path: &Path<'_>,
    ) -> Option<&'o Raw> {
        let value = object.present(key)?;
        if value.kind() == Kind::Array {
            return Some(value);
        }
        self.wrong_type(value, "an array", path.key(key));
        None
    }

    pub(crate) fn required_array<'o>(
        &mut self,
        object: &'o Object,
        key: &str,
        path: &Path<'_>,
    ) -> Option<&'o Raw> {
        if object.present(key).is_none() {
            self.missing(key, "an array", path);
            return None;
        }
        self.optional_array(object, key, path)
    }

    /// A required value of any kind.
    pub(crate) fn required_value<'o>(
        &mut self,
        object: &'o Object,
        key: &str,
        what: &str,
        path: &Path<'_>,
    ) -> Option<&'o Raw> {
        let value = object.present(key);
        if value.is_none() {
            self.missing(key, what, path);
        }
        value
    }

    /// The fields of a value that must be an object.
    pub(crate) fn object(&mut self, value: &Raw, path: Path<'_>) -> Option<Object> {
        let object = Object::read(value);
        if object.is_none() {
            self.wrong_type(value, "an object", path);
        }
        object
    }

    /// A value that must be of the one or the other kind.
    pub(crate) fn expect_kind(
        &mut self,
        value: &Raw,
        kinds: &[Kind],
        what: &str,
        path: Path<'_>,
    ) -> bool {
        let fits = kinds.contains(&value.kind());
        if !fits {
            self.wrong_type(value, what, path);
        }
        fits
    }

    /// A string with a list of known values. Others may be newer than this list, so they only cause a warning.
    pub(crate) fn known_value(
        &mut self,
        object: &Object,
        key: &str,
        known: &[&str],
        path: &Path<'_>,
    ) -> Option<Text> {
        let text = self.optional_string(object, key, path)?;
        if !known.contains(&text.decode().as_ref()) {
            self.add(
                &rule::UNKNOWN_VALUE,
                path.key(key),
                format_args!(
                    "{} is not a known value of `{key}` ({})",
                    TextQuote(&text),
                    known.join(", ")
                ),
            );
        }
        Some(text)
    }

    /// Warns of fields that the format does not have at this place.
    pub(crate) fn known_fields(&mut self, object: &Object, known: &[&[&str]], path: &Path<'_>) {
        for (key, _) in &object.fields {
            let key = key.decode();
            if !known.iter().any(|names| names.contains(&key.as_ref())) {
                self.add(
                    &rule::UNKNOWN_FIELD,
                    path.key(&key),
                    "this field is not known here and a strict server refuses unknown fields: remove it if it is not newer than this checker",
                );
            }
        }
    }

    /// The limits that the model sets to the length of the answer.
    pub(crate) fn output_limit(
        &mut self,
        tokens: Option<u64>,
        rule: &Rule,
        key: &str,
        path: &Path<'_>,
    ) {
        let limit = self.options.model.and_then(|model| model.output_max);
        if let (Some(tokens), Some(limit)) = (tokens, limit)
            && tokens > limit
        {
            self.add(
                rule,
                path.key(key),
                format_args!("`{key}` is {tokens}, but the model writes at most {limit} tokens"),
            );
        }
    }
}

/// The fields of one object, read once.
pub(crate) struct Object {
    fields: Vec<(Text, Raw)>,
}

impl Object {
    pub(crate) fn read(value: &Raw) -> Option<Self> {
        (value.kind() == Kind::Object).then(|| Self {
            fields: value.object().collect(),
        })
    }

    /// The value of a field; of several with the same key the last counts.
    pub(crate) fn value(&self, key: &str) -> Option<&Raw> {
        self.fields
            .iter()
            .rev()
            .find(|(name, _)| name.decode() == key)
            .map(|(_, value)| value)
    }

    /// The value of a field that is there and not `null`.
    pub(crate) fn present(&self, key: &str) -> Option<&Raw> {
        self.value(key).filter(|value| !value.is_null())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.present(key).is_some()
    }

    /// The decoded text of a field, if it is a string.
    pub(crate) fn string(&self, key: &str) -> Option<String> {
        Some(self.present(key)?.as_text()?.decode().into_owned())
    }
}

/// A value from the body as a finding shows it: in quotes, at most one line long.
pub(crate) struct TextQuote<'a>(pub(crate) &'a Text);

impl fmt::Display for TextQuote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Quote(&self.0.decode()), f)
    }
}

/// Like [`TextQuote`], for a text that is already decoded.
pub(crate) struct Quote<'a>(pub(crate) &'a str);

impl fmt::Display for Quote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CHARACTERS_SHOWN: usize = 60;
        match self.0.char_indices().nth(CHARACTERS_SHOWN) {
            Some((end, _)) => write!(f, "{:?}...", self.0.get(..end).unwrap_or_default()),
            None => write!(f, "{:?}", self.0),
        }
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Object => "an object",
        Kind::Array => "an array",
        Kind::String => "a string",
        Kind::Number => "a number",
        Kind::Bool => "true or false",
        Kind::Null => "null",
    }
}
