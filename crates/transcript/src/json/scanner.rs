//! The scanner of JSON text on which everything else in this module is built.

use super::{JsonError, JsonErrorKind, NESTING_MAX};

/// Walks over JSON text. Checks the grammar unless the text has been through it before.
pub(super) struct Scanner<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    pub(super) is_checked: bool,
    /// Levels that may still be opened.
    pub(super) depth_max: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            bytes: text.as_bytes(),
            at: 0,
            is_checked: false,
            depth_max: NESTING_MAX,
        }
    }

    pub(super) fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError {
            offset: self.at,
            kind,
        }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub(super) fn skip_space(&mut self) -> usize {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
        self.at
    }

    /// Passes over one value and returns the byte after it.
    pub(super) fn value(&mut self) -> Result<usize, JsonError> {
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

    pub(super) fn nested(&mut self) -> Result<(), JsonError> {
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

    pub(super) fn colon(&mut self) -> Result<(), JsonError> {
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
        if self.is_checked {
            self.skip_string()
        } else {
            self.literal().map(|_| ())
        }
    }

    /// Passes over a string literal that is known to be well formed.
    fn skip_string(&mut self) -> Result<(), JsonError> {
        match closing_quote(self.bytes, self.at) {
            Some(end) => {
                self.at = end + 1;
                Ok(())
            }
            None => Err(self.error(JsonErrorKind::UnexpectedEnd)),
        }
    }

    /// Passes over a string literal and says whether there is an escape in it.
    pub(super) fn literal(&mut self) -> Result<bool, JsonError> {
        let mut at = self.at + 1;
        let mut is_escaped = false;
        loop {
            at = string_stop(self.bytes, at);
            match self.bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    is_escaped = true;
                    // Escapes often come in a row.
                    while self.bytes.get(at) == Some(&b'\\') {
                        self.check_escape(at)?;
                        at += 2;
                    }
                }
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

/// The closing quote of the string literal that opens at `open`. `None` if it is torn off.
///
/// Searches only for quotes and the backslashes right before them: a long text has many escapes and few quotes.
pub fn closing_quote(bytes: &[u8], open: usize) -> Option<usize> {
    let start = open + 1;
    let mut at = start;
    loop {
        at += memchr::memchr(b'"', bytes.get(at..)?)?;
        let before = bytes.get(start..at)?;
        let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\');
        if backslashes.count() % 2 == 0 {
            return Some(at);
        }
        at += 1;
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
