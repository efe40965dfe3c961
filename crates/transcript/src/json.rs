//! JSON as slices: finding values in a text without changing a byte of it.
//!
//! Bodies and session files are not turned into a tree. A value stays the text that it was, [`Raw`], and is looked
//! into one level at a time: [`Raw::object`] walks the fields of an object, [`Raw::array`] the elements of an array,
//! [`Raw::as_text`] takes a string literal. Numbers, escapes, white space and the order and repetition of keys are
//! therefore never altered.
//!
//! ```
//! use throughline_transcript::json::Raw;
//!
//! let body = Raw::parse(r#"{"n": 1e3, "s": "a\u00e9"}"#)?;
//! assert_eq!(body.field("n").unwrap().as_str(), "1e3");
//! assert_eq!(body.field("s").unwrap().as_text().unwrap().decode(), "aé");
//! # Ok::<(), throughline_transcript::json::JsonError>(())
//! ```

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytestring::ByteString;

mod scanner;
pub mod tape;
mod text;

use self::scanner::Scanner;
pub use self::scanner::closing_quote;
use self::text::unescape;
pub use self::text::{Text, quoted, write_string};

/// How deep arrays and objects may be nested. Deeper input is refused with [`JsonErrorKind::TooDeep`].
pub const NESTING_MAX: usize = 512;

/// The text of one JSON value, exactly as it was written, without white space around it.
///
/// Cloning is cheap: it shares the bytes of the file or body that it was found in.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Raw(ByteString);

/// The kinds of JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{...}`
    Object,
    /// `[...]`
    Array,
    /// `"..."`
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// `null`
    Null,
}

/// Why a text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct JsonError {
    /// Where, in bytes from the start of the text.
    pub offset: usize,
    /// What is wrong there.
    pub kind: JsonErrorKind,
}

/// What is wrong with a text that is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// The text ends inside a value.
    #[error("the JSON value ends early")]
    UnexpectedEnd,
    /// A character that is not allowed at its position.
    #[error("unexpected character")]
    UnexpectedCharacter,
    /// A control character or a wrong escape in a string.
    #[error("invalid string")]
    InvalidString,
    /// Not a number by the JSON grammar.
    #[error("invalid number")]
    InvalidNumber,
    /// More than [`NESTING_MAX`] levels.
    #[error("nested deeper than {NESTING_MAX} levels")]
    TooDeep,
    /// Text follows the value.
    #[error("more text after the JSON value")]
    TrailingText,
}

impl Raw {
    /// Checks that `text` is one JSON value, with nothing but white space around it.
    ///
    /// # Errors
    /// Says at which byte the text stops being JSON.
    pub fn parse(text: impl Into<ByteString>) -> Result<Self, JsonError> {
        let text = text.into();
        let (start, end) = {
            let mut scanner = Scanner::new(&text);
            let start = scanner.skip_space();
            let end = scanner.value()?;
            scanner.skip_space();
            if scanner.at < text.len() {
                return Err(scanner.error(JsonErrorKind::TrailingText));
            }
            (start, end)
        };
        Ok(Self(slice(&text, start, end)))
    }

    /// Reads one JSON value from the start of `text` and says where it ends, in bytes.
    ///
    /// # Errors
    /// Says at which byte the text stops being JSON.
    pub fn parse_prefix(text: &ByteString) -> Result<(Self, usize), JsonError> {
        let mut scanner = Scanner::new(text);
        let start = scanner.skip_space();
        let end = scanner.value()?;
        Ok((Self(slice(text, start, end)), end))
    }

    /// An owned value from a text that was checked before.
    pub(crate) fn copied(checked: &str) -> Self {
        Self(ByteString::from(checked))
    }

    /// The value that ends before byte `end` of a text that was checked before.
    pub(crate) fn checked(text: &ByteString, end: usize) -> Self {
        let start = Scanner::new(text).skip_space();
        Self(slice(text, start, end))
    }

    /// A string that says `text`.
    #[must_use]
    pub fn string(text: &str) -> Self {
        Self(ByteString::from(quoted(text)))
    }

    /// The value as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value as a shared slice.
    #[must_use]
    pub fn as_bytestring(&self) -> &ByteString {
        &self.0
    }

    /// Length of the text, in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// False: a JSON value is at least one byte long.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What kind of value this is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        kind_of(&self.0)
    }

    /// The fields of an object in source order; empty for any other kind of value.
    #[must_use]
    pub fn object(&self) -> Fields<'_> {
        Fields(Members::new(&self.0, b'{'))
    }

    /// The elements of an array; nothing for another kind of value.
    #[must_use]
    pub fn array(&self) -> Elements<'_> {
        Elements(Members::new(&self.0, b'['))
    }

    /// The field `key` of an object. Of several with the same key the last counts, as with the providers.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<Raw> {
        self.object()
            .filter(|(name, _)| name.decode() == key)
            .last()
            .map(|(_, value)| value)
    }

    /// Several fields in one walk over the object, in the order of `keys`.
    #[must_use]
    pub fn fields<const N: usize>(&self, keys: [&str; N]) -> [Option<Raw>; N] {
        self.fields_of(keys, []).0
    }

    /// Two lists of fields in one walk over the object. Of a key in both lists the first one gets the value.
    pub fn fields_of<const N: usize, const M: usize>(
        &self,
        keys: [&str; N],
        more: [&str; M],
    ) -> ([Option<Raw>; N], [Option<Raw>; M]) {
        let mut found = ([const { None }; N], [const { None }; M]);
        let mut members = Members::new(&self.0, b'{');
        while members.step().is_some() {
            let Some((name, value)) = members.field_range() else {
                break;
            };
            // A key with escapes is rare and has to be decoded; no other key gets its own slice.
            let mut name = Cow::Borrowed(&self.0[name]);
            if memchr::memchr(b'\\', name.as_bytes()).is_some() {
                name = Cow::Owned(unescape(&name));
            }
            let place = if let Some(place) = keys.iter().position(|key| *key == name) {
                &mut found.0[place]
            } else if let Some(place) = more.iter().position(|key| *key == name) {
                &mut found.1[place]
            } else {
                continue;
            };
            *place = Some(Raw(slice(&self.0, value.start, value.end)));
        }
        found
    }

    /// The field `key` as a text, if it is a string.
    #[must_use]
    pub fn text_field(&self, key: &str) -> Option<Text> {
        self.field(key)?.as_text()
    }

    /// The field `key` as a decoded string, if it is a string.
    #[must_use]
    pub fn string_field(&self, key: &str) -> Option<String> {
        self.text_field(key).map(|text| text.decode().into_owned())
    }

    /// The text of a string value.
    #[must_use]
    pub fn as_text(&self) -> Option<Text> {
        if self.kind() != Kind::String {
            return None;
        }
        let inner = slice(&self.0, 1, self.0.len() - 1);
        let is_escaped = memchr::memchr(b'\\', inner.as_bytes()).is_some();
        Some(Text::inside(inner, is_escaped))
    }

    /// The value of a number, where a 64-bit float can hold it.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        if self.kind() == Kind::Number {
            self.0.parse().ok()
        } else {
            None
        }
    }

    /// The value of a whole number that is not negative. `1e3` counts, `1.5` does not.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        number_as_u64(&self.0)
    }

    /// The value of `true` and `false`.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Whether the value is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.as_str() == "null"
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Iterator over the fields of an object: key and value.
pub struct Fields<'a>(Members<'a>);

impl Iterator for Fields<'_> {
    type Item = (Text, Raw);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.step()?;
        let key_start = self.0.scanner.at;
        let key_end = self.0.scanner.value().ok()?;
        let key = Raw(slice(self.0.text, key_start, key_end)).as_text()?;
        self.0.scanner.skip_space();
        self.0.scanner.at += 1; // the colon: `Raw::parse` has checked it
        let value = self.0.value()?;
        Some((key, value))
    }
}

/// Iterator over the elements of an array.
pub struct Elements<'a>(Members<'a>);

impl Iterator for Elements<'_> {
    type Item = Raw;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.step()?;
        self.0.value()
    }
}

struct Members<'a> {
    text: &'a ByteString,
    scanner: Scanner<'a>,
    is_open: bool,
}

impl<'a> Members<'a> {
    fn new(text: &'a ByteString, opening: u8) -> Self {
        let is_open = text.as_bytes().first() == Some(&opening);
        let mut scanner = Scanner::new(text);
        scanner.at = 1;
        scanner.is_checked = true;
        Self {
            text,
            scanner,
            is_open,
        }
    }

    /// Moves to the start of the next member.
    fn step(&mut self) -> Option<()> {
        if !self.is_open {
            return None;
        }
        self.scanner.skip_space();
        match self.scanner.peek() {
            Some(b',') => {
                self.scanner.at += 1;
                self.scanner.skip_space();
                Some(())
            }
            None | Some(b'}' | b']') => {
                self.is_open = false;
                None
            }
            Some(_) => Some(()),
        }
    }

    /// Where the inside of the next key and its value are.
    fn field_range(&mut self) -> Option<(Range<usize>, Range<usize>)> {
        let key_start = self.scanner.at;
        let key_end = self.scanner.value().ok()?;
        self.scanner.skip_space();
        self.scanner.at += 1; // the colon: `Raw::parse` has checked it
        let start = self.scanner.skip_space();
        let end = self.scanner.value().ok()?;
        let key = key_start + 1..key_end.checked_sub(1).filter(|end| *end > key_start)?;
        Some((key, start..end))
    }

    fn value(&mut self) -> Option<Raw> {
        let start = self.scanner.skip_space();
        match self.scanner.value() {
            Ok(end) => Some(Raw(slice(self.text, start, end))),
            Err(_) => {
                self.is_open = false;
                None
            }
        }
    }
}

fn kind_of(value: &str) -> Kind {
    match value.as_bytes().first() {
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::Array,
        Some(b'"') => Kind::String,
        Some(b't' | b'f') => Kind::Bool,
        Some(b'n') => Kind::Null,
        _ => Kind::Number,
    }
}

fn number_as_u64(value: &str) -> Option<u64> {
    if kind_of(value) != Kind::Number {
        return None;
    }
    value.parse().ok().or_else(|| {
        let number: f64 = value.parse().ok()?;
        (number >= 0.0 && number.fract() == 0.0 && number < 9e15).then_some(number as u64)
    })
}

fn slice(text: &ByteString, start: usize, end: usize) -> ByteString {
    text.slice_ref(&text[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_error(text: &str, offset: usize, kind: JsonErrorKind) {
        assert_eq!(Raw::parse(text).unwrap_err(), JsonError { offset, kind });
    }

    #[test]
    fn values_keep_their_spelling() {
        let raw = Raw::parse(
            " {\"a\":1e3 , \"a\" : 123456789012345678901234567890,\"\\u0061\":\"\\/\"} ",
        )
        .unwrap();
        let fields: Vec<_> = raw
            .object()
            .map(|(k, v)| (k.decode().into_owned(), v.as_str().to_owned()))
            .collect();
        let expected = [
            ("a", "1e3"),
            ("a", "123456789012345678901234567890"),
            ("a", "\"\\/\""),
        ];
        assert_eq!(fields, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
        assert_eq!(raw.text_field("a").unwrap().decode(), "/");
    }

    #[test]
    fn errors_say_where() {
        check_error("", 0, JsonErrorKind::UnexpectedEnd);
        check_error("{\"a\":}", 5, JsonErrorKind::UnexpectedCharacter);
        check_error("{\"a\" 1}", 5, JsonErrorKind::UnexpectedCharacter);
        check_error("[1,]", 3, JsonErrorKind::UnexpectedCharacter);
        check_error("[1 2]", 3, JsonErrorKind::UnexpectedCharacter);
        check_error("01", 2, JsonErrorKind::InvalidNumber);
        check_error("[1.]", 3, JsonErrorKind::InvalidNumber);
        check_error("\"\\x\"", 1, JsonErrorKind::InvalidString);
        check_error("\"a\nb\"", 2, JsonErrorKind::InvalidString);
        check_error("{} {}", 3, JsonErrorKind::TrailingText);
        check_error(
            &"[".repeat(NESTING_MAX + 1),
            NESTING_MAX,
            JsonErrorKind::TooDeep,
        );
    }

    #[test]
    fn several_fields_are_found_in_one_walk() {
        let object = Raw::parse(r#"{"a":1,"b":2,"a":3}"#).unwrap();
        let [b, c, a] = object.fields(["b", "c", "a"]);
        assert_eq!(b.unwrap().as_str(), "2");
        assert_eq!(c, None);
        assert_eq!(a.unwrap().as_str(), "3");
    }

    #[test]
    fn nesting_up_to_the_limit_is_read() {
        let deep = "[".repeat(NESTING_MAX) + &"]".repeat(NESTING_MAX);
        assert_eq!(Raw::parse(deep.as_str()).unwrap().array().count(), 1);
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_serde_json(text in "[\\[\\]{}:,\"\\\\truefalsn0-9.eE+ \n\u{1}aé-]{0,24}") {
            let ours = Raw::parse(text.as_str()).is_ok();
            let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            proptest::prop_assert_eq!(ours, theirs);
        }
    }
}
