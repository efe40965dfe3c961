//! Errors that a strict JSON reader refuses or reads differently, anywhere in the body: lone surrogates and repeated
//! keys. One pass over the bytes, without recursion.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::json::{Raw, closing_quote};

use super::checker::{Checker, Quote};
use super::path::{write_index, write_key};
use super::rule;

/// From this many keys on, an object's keys are looked up by hash.
const KEYS_SCANNED_MAX: usize = 24;

pub(crate) fn check(body: &Raw, checker: &mut Checker<'_>) {
    let mut walk = Walk {
        text: body.as_str(),
        may_have_surrogates: may_have_surrogates(body.as_str()),
        levels: Vec::new(),
        keys: Vec::new(),
    };
    walk.run(checker);
}

/// Surrogates are written `\ud800` to `\udfff`.
fn may_have_surrogates(text: &str) -> bool {
    let has = |start| memchr::memmem::find(text.as_bytes(), start).is_some();
    has(b"\\ud") || has(b"\\uD")
}

struct Walk<'t> {
    text: &'t str,
    /// Whether any escape in the text may be of a surrogate; strings of most bodies need no second look then.
    may_have_surrogates: bool,
    levels: Vec<Level<'t>>,
    /// The keys of all open objects, those of the innermost last.
    keys: Vec<Cow<'t, str>>,
}

enum Level<'t> {
    Object {
        first_key: usize,
        hashed: Option<HashSet<Cow<'t, str>>>,
        expects_key: bool,
    },
    Array {
        index: usize,
    },
}

impl<'t> Walk<'t> {
    /// The body has been parsed, so only strings, brackets, commas and colons matter.
    fn run(&mut self, checker: &mut Checker<'_>) {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    at = self.string(at, checker);
                    continue;
                }
                b'{' => self.levels.push(Level::Object {
                    first_key: self.keys.len(),
                    hashed: None,
                    expects_key: true,
                }),
                b'[' => self.levels.push(Level::Array { index: 0 }),
                b'}' | b']' => {
                    if let Some(Level::Object { first_key, .. }) = self.levels.pop() {
                        self.keys.truncate(first_key);
                    }
                }
                b',' => match self.levels.last_mut() {
                    Some(Level::Object { expects_key, .. }) => *expects_key = true,
                    Some(Level::Array { index }) => *index += 1,
                    None => {}
                },
                b':' => {
                    if let Some(Level::Object { expects_key, .. }) = self.levels.last_mut() {
                        *expects_key = false;
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Passes over the string that opens at `start` and returns the byte after it.
    fn string(&mut self, start: usize, checker: &mut Checker<'_>) -> usize {
        let end = closing_quote(self.text.as_bytes(), start).unwrap_or(self.text.len());
        let inner = self.text.get(start + 1..end).unwrap_or_default();
        let expects_key = matches!(
            self.levels.last(),
            Some(Level::Object {
                expects_key: true,
                ..
            })
        );
        if expects_key {
            self.key(decode_key(inner), checker);
        }
        if self.may_have_surrogates && has_lone_surrogate(inner.as_bytes()) {
            checker.add_as(
                rule::LONE_SURROGATE.severity,
                &rule::LONE_SURROGATE,
                self.path(),
                "a \\u escape is half of a surrogate pair, which is no character: replace it by \\ufffd",
            );
        }
        end + 1
    }

    fn key(&mut self, key: Cow<'t, str>, checker: &mut Checker<'_>) {
        let is_repeated = match self.levels.last_mut() {
            Some(Level::Object {
                first_key, hashed, ..
            }) => {
                let earlier = self.keys.get(*first_key..).unwrap_or_default();
                if earlier.len() >= KEYS_SCANNED_MAX {
                    let set = hashed.get_or_insert_with(|| earlier.iter().cloned().collect());
                    !set.insert(key.clone())
                } else {
                    earlier.contains(&key)
                }
            }
            _ => return,
        };
        self.keys.push(key);
        if is_repeated {
            let key = self.keys.last().cloned().unwrap_or_default();
            checker.add_as(
                rule::DUPLICATE_KEY.severity,
                &rule::DUPLICATE_KEY,
                self.path(),
                format_args!(
                    "the key {} occurs twice in this object, and readers differ in which one counts: keep one",
                    Quote(&key)
                ),
            );
        }
    }

    fn path(&self) -> Here<'_, 't> {
        Here(self)
    }
}

/// The place that the walk has reached, written out on demand.
struct Here<'w, 't>(&'w Walk<'t>);

impl std::fmt::Display for Here<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The current key of an object is the last one before those of the next inner object.
        let mut end = self.0.keys.len();
        let mut steps = Vec::with_capacity(self.0.levels.len());
        for level in self.0.levels.iter().rev() {
            match level {
                Level::Array { index } => steps.push(Err(*index)),
                Level::Object { first_key, .. } => {
                    if end > *first_key
                        && let Some(key) = end.checked_sub(1).and_then(|at| self.0.keys.get(at))
                    {
                        steps.push(Ok(key));
                    }
                    end = *first_key;
                }
            }
        }
        let mut is_first = true;
        for step in steps.into_iter().rev() {
            match step {
                Ok(key) => write_key(f, key, &mut is_first)?,
                Err(index) => write_index(f, index, &mut is_first)?,
            }
        }
        Ok(())
    }
}

/// Whether the escapes of a string contain a lone surrogate.
fn has_lone_surrogate(inner: &[u8]) -> bool {
    let mut at = 0;
    while let Some(found) = inner.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += found;
        at += match surrogate(inner, at) {
            Surrogate::None => 2,
            Surrogate::Pair => 12,
            Surrogate::Lone => return true,
        };
    }
    false
}

enum Surrogate {
    None,
    Pair,
    Lone,
}

/// What the escape whose backslash is at `at` says about surrogates.
fn surrogate(bytes: &[u8], at: usize) -> Surrogate {
    let unit = |at: usize| -> Option<u16> {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    match unit(at) {
        Some(0xd800..=0xdbff) => match unit(at + 6) {
            Some(0xdc00..=0xdfff) => Surrogate::Pair,
            _ => Surrogate::Lone,
        },
        Some(0xdc00..=0xdfff) => Surrogate::Lone,
        _ => Surrogate::None,
    }
}

/// Keys that are spelt with escapes are the same key.
fn decode_key(inner: &str) -> Cow<'_, str> {
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Cow::Borrowed(inner);
    }
    let decoded = Raw::parse(format!("\"{inner}\""))
        .ok()
        .and_then(|raw| raw.as_text())
        .map(|text| text.decode().into_owned());
    decoded.map_or(Cow::Borrowed(inner), Cow::Owned)
}
