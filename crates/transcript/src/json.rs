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

pub mod tape;

/// How deep arrays and objects may be nested. Deeper input is refused with [`JsonErrorKind::TooDeep`].
pub const NESTING_MAX: usize = 512;

/// The text of one JSON value, exactly as it was written, without white space around it.
///
/// Cloning is cheap: it shares the bytes of the file or body that it was found in.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Raw(ByteString);

/// A string value: a slice of the source that is decoded when it is looked at.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Text(TextKind);

#[derive(Clone, PartialEq, Eq, Hash)]
enum TextKind {
    /// The characters themselves.
    Plain(ByteString),
    /// The inside of a JSON string literal that holds at least one escape.
    Escaped(ByteString),
}

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
    /// A character that cannot stand there.
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
    /// Something stands after the value.
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

    /// The fields of an object in the order in which they stand; nothing for another kind of value.
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
    pub(crate) fn fields_of<const N: usize, const M: usize>(
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
            // A key with escapes is seldom and has to be decoded; no other one is given a slice of its own.
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
        Some(Text(if is_escaped {
            TextKind::Escaped(inner)
        } else {
            TextKind::Plain(inner)
        }))
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

impl Text {
    /// A text that is its own source.
    #[must_use]
    pub fn plain(text: impl Into<ByteString>) -> Self {
        Self(TextKind::Plain(text.into()))
    }

    /// The characters. A surrogate without its other half becomes U+FFFD.
    #[must_use]
    pub fn decode(&self) -> Cow<'_, str> {
        match &self.0 {
            TextKind::Plain(text) => Cow::Borrowed(text),
            TextKind::Escaped(text) => Cow::Owned(unescape(text)),
        }
    }

    /// The characters, if the source holds them without escapes.
    #[must_use]
    pub fn as_plain(&self) -> Option<&str> {
        match &self.0 {
            TextKind::Plain(text) => Some(text),
            TextKind::Escaped(_) => None,
        }
    }

    /// Appends the characters to `buffer`, for readers that keep one buffer for many texts.
    pub fn decode_into(&self, buffer: &mut String) {
        match &self.0 {
            TextKind::Plain(text) => buffer.push_str(text),
            TextKind::Escaped(text) => unescape_into(text, buffer),
        }
    }

    /// The characters as a shared string. Without escapes in the source this copies nothing.
    #[must_use]
    pub fn to_bytestring(&self) -> ByteString {
        match &self.0 {
            TextKind::Plain(text) => text.clone(),
            TextKind::Escaped(text) => unescape(text).into(),
        }
    }

    /// The start of the text: what the first `bytes` bytes of the source hold, without a half character or escape.
    #[must_use]
    pub fn prefix(&self, bytes: usize) -> Cow<'_, str> {
        match &self.0 {
            TextKind::Plain(text) => Cow::Borrowed(&text[..text.floor_char_boundary(bytes)]),
            TextKind::Escaped(text) => {
                let mut end = text.floor_char_boundary(bytes);
                // The longest escape is a pair of surrogates, 12 bytes. Cut before a backslash that is not itself
                // escaped, if one is that near.
                if end < text.len() {
                    let head = &text.as_bytes()[..end];
                    if let Some(at) = memchr::memrchr(b'\\', head)
                        && end - at < 12
                    {
                        let run = head[..=at].iter().rev().take_while(|byte| **byte == b'\\');
                        end = at + 1 - run.count();
                    }
                }
                let mut start = unescape(&text[..end]);
                if start.ends_with(char::REPLACEMENT_CHARACTER) {
                    start.pop();
                }
                Cow::Owned(start)
            }
        }
    }

    /// Length in bytes as it stands in the source, escapes included.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        match &self.0 {
            TextKind::Plain(text) | TextKind::Escaped(text) => text.len(),
        }
    }

    /// Whether there is nothing but white space in it. Looks no further than the first other character.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        match &self.0 {
            TextKind::Plain(text) => text.trim_start().is_empty(),
            TextKind::Escaped(text) => is_blank_escaped(text),
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::plain(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::plain(text)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.decode(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.decode())
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

/// Walks over JSON text. Checks the grammar unless the text has been through it before.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    is_checked: bool,
    /// Levels that may still be opened.
    depth_max: usize,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            bytes: text.as_bytes(),
            at: 0,
            is_checked: false,
            depth_max: NESTING_MAX,
        }
    }

    fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError {
            offset: self.at,
            kind,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) -> usize {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
        self.at
    }

    /// Passes over one value and returns the byte after it.
    fn value(&mut self) -> Result<usize, JsonError> {
        self.skip_space();
        match self.peek() {
            None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
            Some(b'"') => self.string()?,
            Some(b'{' | b'[') if self.is_checked => self.skip_nested()?,
            Some(b'{' | b'[') => self.nested()?,
            Some(b't') => self.word(b"true")?,
            Some(b'f') => self.word(b"false")?,
            Some(b'n') => self.word(b"null")?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(_) => return Err(self.error(JsonErrorKind::UnexpectedCharacter)),
        }
        Ok(self.at)
    }

    /// Passes over an array or object that is known to be well formed: only strings and brackets matter.
    fn skip_nested(&mut self) -> Result<(), JsonError> {
        let mut depth = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
        Err(self.error(JsonErrorKind::UnexpectedEnd))
    }

    fn nested(&mut self) -> Result<(), JsonError> {
        // One bit a level: set for an object. Without recursion no input can exhaust the stack.
        let mut levels = [0u64; NESTING_MAX / 64];
        let mut depth = 0usize;
        loop {
            // Here a value begins.
            self.skip_space();
            match self.peek() {
                Some(open @ (b'{' | b'[')) => {
                    if depth == self.depth_max {
                        return Err(self.error(JsonErrorKind::TooDeep));
                    }
                    let bit = 1u64 << (depth % 64);
                    if open == b'{' {
                        levels[depth / 64] |= bit;
                    } else {
                        levels[depth / 64] &= !bit;
                    }
                    depth += 1;
                    self.at += 1;
                    self.skip_space();
                    let closing = if open == b'{' { b'}' } else { b']' };
                    if self.peek() != Some(closing) {
                        if open == b'{' {
                            self.key()?;
                        }
                        continue;
                    }
                }
                _ => {
                    self.value()?;
                }
            }
            // Here a value has ended, or an empty container is about to.
            loop {
                self.skip_space();
                let is_object = levels[(depth - 1) / 64] & (1 << ((depth - 1) % 64)) != 0;
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if is_object {
                            self.key()?;
                        }
                        break;
                    }
                    Some(b'}') if is_object => {}
                    Some(b']') if !is_object => {}
                    Some(_) => return Err(self.error(JsonErrorKind::UnexpectedCharacter)),
                    None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
                }
                self.at += 1;
                depth -= 1;
                if depth == 0 {
                    return Ok(());
                }
            }
        }
    }

    fn key(&mut self) -> Result<(), JsonError> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => self.string()?,
            Some(_) => return Err(self.error(JsonErrorKind::UnexpectedCharacter)),
            None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
        }
        self.colon()
    }

    fn colon(&mut self) -> Result<(), JsonError> {
        self.skip_space();
        match self.peek() {
            Some(b':') => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(self.error(JsonErrorKind::UnexpectedCharacter)),
            None => Err(self.error(JsonErrorKind::UnexpectedEnd)),
        }
    }

    fn string(&mut self) -> Result<(), JsonError> {
        self.literal().map(|_| ())
    }

    /// Passes over a string literal and says whether there is an escape in it.
    fn literal(&mut self) -> Result<bool, JsonError> {
        let mut at = self.at + 1;
        let mut is_escaped = false;
        loop {
            at = string_stop(self.bytes, at);
            match self.bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    is_escaped = true;
                    if !self.is_checked {
                        self.check_escape(at)?;
                    }
                    at += 2;
                }
                // A text that was checked has no control characters in its strings.
                Some(_) => {
                    return Err(JsonError {
                        offset: at,
                        kind: JsonErrorKind::InvalidString,
                    });
                }
                None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
            }
        }
        self.at = at + 1;
        Ok(is_escaped)
    }

    fn check_escape(&self, at: usize) -> Result<(), JsonError> {
        let is_valid = match self.bytes.get(at + 1) {
            None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
            Some(b'u') => match self.bytes.get(at + 2..at + 6) {
                None => return Err(self.error(JsonErrorKind::UnexpectedEnd)),
                Some(digits) => digits.iter().all(u8::is_ascii_hexdigit),
            },
            Some(_) => false,
        };
        if is_valid {
            Ok(())
        } else {
            Err(JsonError {
                offset: at,
                kind: JsonErrorKind::InvalidString,
            })
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), JsonError> {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else if word.starts_with(&self.bytes[self.at..]) {
            Err(self.error(JsonErrorKind::UnexpectedEnd))
        } else {
            Err(self.error(JsonErrorKind::UnexpectedCharacter))
        }
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let digits = |scanner: &mut Self| {
            let start = scanner.at;
            while scanner.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                scanner.at += 1;
            }
            scanner.at - start
        };
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let has_leading_zero = self.peek() == Some(b'0');
        let count = digits(self);
        if count == 0 || (has_leading_zero && count > 1) {
            return Err(self.error(JsonErrorKind::InvalidNumber));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if digits(self) == 0 {
                return Err(self.error(JsonErrorKind::InvalidNumber));
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            if digits(self) == 0 {
                return Err(self.error(JsonErrorKind::InvalidNumber));
            }
        }
        Ok(())
    }
}

/// The first byte at or after `at` that means something inside a string literal: a quote, a backslash or a control
/// character. The length of `bytes` if there is none.
///
/// Eight bytes are looked at as one number: most strings are short or full of escapes, where a vector search spends
/// more on starting than on searching.
fn string_stop(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const QUOTE: u64 = ONES * b'"' as u64;
    const BACKSLASH: u64 = ONES * b'\\' as u64;
    const SPACE: u64 = ONES * 0x20;

    let rest = bytes.get(at..).unwrap_or_default();
    let (words, _) = rest.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        let quote = word ^ QUOTE;
        let backslash = word ^ BACKSLASH;
        // Bytes below the lowest hit are exact; a borrow can only set bits above it.
        let hits = ((quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(SPACE) & !word))
            & HIGH;
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while let Some(byte) = bytes.get(at) {
        if matches!(byte, b'"' | b'\\' | 0..0x20) {
            return at;
        }
        at += 1;
    }
    bytes.len()
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

fn unescape(escaped: &str) -> String {
    let mut out = String::with_capacity(escaped.len());
    unescape_into(escaped, &mut out);
    out
}

fn unescape_into(escaped: &str, out: &mut String) {
    let bytes = escaped.as_bytes();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        out.push_str(&escaped[at..at + found]);
        at += found + 2;
        match bytes.get(at - 1) {
            Some(b'n') => out.push('\n'),
            Some(b't') => out.push('\t'),
            Some(b'r') => out.push('\r'),
            Some(b'b') => out.push('\u{8}'),
            Some(b'f') => out.push('\u{c}'),
            Some(b'u') => {
                let unit = hex4(bytes, at);
                at += 4;
                let (scalar, used) = match unit {
                    Some(high @ 0xd800..=0xdbff) => {
                        match (bytes.get(at..at + 2), hex4(bytes, at + 2)) {
                            (Some(b"\\u"), Some(low @ 0xdc00..=0xdfff)) => (
                                char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)),
                                6,
                            ),
                            _ => (None, 0),
                        }
                    }
                    Some(unit) => (char::from_u32(unit), 0),
                    None => (None, 0),
                };
                out.push(scalar.unwrap_or(char::REPLACEMENT_CHARACTER));
                at += used;
            }
            Some(other) => out.push(char::from(*other)),
            None => {}
        }
        at = at.min(bytes.len());
    }
    out.push_str(&escaped[at..]);
}

/// Whether an escaped text decodes to white space, without decoding it.
fn is_blank_escaped(escaped: &str) -> bool {
    let mut chars = escaped.chars();
    while let Some(char) = chars.next() {
        let decoded = match char {
            '\\' => match chars.next() {
                Some('n' | 't' | 'r' | 'f') => ' ',
                Some('u') => {
                    let unit = hex4(chars.as_str().as_bytes(), 0).and_then(char::from_u32);
                    chars.by_ref().take(4).for_each(drop);
                    unit.unwrap_or(char::REPLACEMENT_CHARACTER)
                }
                _ => return false,
            },
            other => other,
        };
        if !decoded.is_whitespace() {
            return false;
        }
    }
    true
}

fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = std::str::from_utf8(bytes.get(at..at + 4)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

/// Appends `text` to `out` as a JSON string literal, quotes included.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut clean_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[clean_from..at]);
        if escape.is_empty() {
            out.push_str(&format!("\\u{byte:04x}"));
        } else {
            out.push_str(escape);
        }
        clean_from = at + 1;
    }
    out.push_str(&text[clean_from..]);
    out.push('"');
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
    fn lone_surrogates_become_replacement_characters() {
        let text = |literal: &str| {
            Raw::parse(literal)
                .unwrap()
                .as_text()
                .unwrap()
                .decode()
                .into_owned()
        };
        assert_eq!(
            text(r#""ok \ud83d cut, \ud83d\ude00 whole, \ude00 tail""#),
            "ok \u{fffd} cut, 😀 whole, \u{fffd} tail"
        );
        assert_eq!(
            text(r#""\ud83d\u0041\ud83d\ud83d\ude00\ud83d""#),
            "\u{fffd}A\u{fffd}😀\u{fffd}"
        );
    }

    #[test]
    fn prefixes_end_between_characters() {
        let check = |literal: &str, bytes: usize, expected: &str| {
            let text = Raw::parse(literal).unwrap().as_text().unwrap();
            assert_eq!(text.prefix(bytes), expected, "{literal} {bytes}");
        };
        check(r#""aé""#, 2, "a");
        check(r#""aé""#, 99, "aé");
        check(r#""ab\ncd""#, 3, "ab");
        check(r#""ab\\cd""#, 4, "ab");
        check(r#""ab\u00e9cd""#, 7, "ab");
        check(r#""ab\ud83d\ude00cd, and so on""#, 9, "ab");
        check(r#""ab\ud83d\ude00cd""#, 99, "ab😀cd");
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

    #[test]
    fn written_strings_read_back() {
        let text = "a\"b\\c\n\t\u{1}é😀";
        let mut literal = String::new();
        write_string(text, &mut literal);
        assert_eq!(
            Raw::parse(literal).unwrap().as_text().unwrap().decode(),
            text
        );
    }

    #[test]
    fn blank_texts_are_told_without_decoding() {
        for (literal, expected) in [
            (r#""""#, true),
            (r#"" \n\t\u00a0\f""#, true),
            (r#""\n \b""#, false),
            (r#""\u0041""#, false),
            (r#""\ud83d\ude00""#, false),
            (r#"" \\ ""#, false),
        ] {
            let text = Raw::parse(literal).unwrap().as_text().unwrap();
            assert_eq!(text.is_blank(), expected, "{literal}");
            assert_eq!(text.decode().trim().is_empty(), expected, "{literal}");
        }
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_serde_json(text in "[\\[\\]{}:,\"\\\\truefalsn0-9.eE+ \n\u{1}aé-]{0,24}") {
            let ours = Raw::parse(text.as_str()).is_ok();
            let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            proptest::prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn strings_decode_as_in_serde_json(text in "\\PC*") {
            let literal = serde_json::to_string(&text).unwrap();
            let read = Raw::parse(literal).unwrap().as_text().unwrap();
            proptest::prop_assert_eq!(read.decode(), text);
        }
    }
}
