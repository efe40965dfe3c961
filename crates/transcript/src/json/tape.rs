//! A table of all values of one record, made in the same pass that checks it.
//!
//! [`Raw`] reads a value by scanning it again, level by level. That suits a body that is read once or twice. Session
//! files are long lists of records whose every level is read, so [`Tape::parse`] writes
//! down where each value begins and ends while it checks the grammar; a [`View`] then goes from value to value without
//! scanning anything. Values that a format never looks into (structured copies of tool results, snapshots of files)
//! are named as opaque and cost nothing but the check.
//!
//! ```
//! use bytestring::ByteString;
//! use throughline_transcript::json::tape::Tape;
//!
//! let source = ByteString::from_static(r#"{"type":"user","message":{"content":[{"text":"hi"}]}}{"type":"x"}"#);
//! let mut tape = Tape::default();
//! let end = tape.parse(&source, 0..source.len(), &[])?;
//! let message = tape.root(&source).field("message").unwrap();
//! let block = message.field("content").unwrap().elements().next().unwrap();
//! assert_eq!(block.field("text").unwrap().decode().unwrap(), "hi");
//! assert_eq!(&source[end..], r#"{"type":"x"}"#);
//! # Ok::<(), throughline_transcript::json::JsonError>(())
//! ```

use std::borrow::Cow;
use std::ops::Range;

use bytestring::ByteString;

use super::scanner::Scanner;
use super::text::unescape;
use super::{JsonError, JsonErrorKind, Kind, NESTING_MAX, Raw, Text};

/// The values of one record. The reader keeps the tape and refills it for every record.
#[derive(Debug, Default)]
pub struct Tape {
    /// Byte offset of the record in its source.
    base: usize,
    nodes: Vec<Node>,
    open: Vec<u32>,
    /// Where the last whole value inside of a container ended, and how many containers were open there.
    good: (usize, usize),
    repair: Option<Repair>,
}

/// How a text that is torn off can be made whole: cut it and close what is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Byte of the source behind the last value that is whole.
    pub cut: usize,
    /// The brackets that are missing there.
    pub closing: String,
}

/// One value, or one key of an object (the value follows). Members follow their container.
#[derive(Clone, Copy, Debug)]
struct Node {
    start: u32,
    end: u32,
    /// Index of the first node that is not inside this one.
    next: u32,
    is_escaped: bool,
}

/// One value of a record: a borrowed [`Raw`] that knows where its members are.
#[derive(Clone, Copy)]
pub struct View<'a> {
    source: &'a ByteString,
    tape: &'a Tape,
    index: usize,
}

impl Tape {
    /// Reads one JSON value from the start of `range` of `source` and returns the byte after it.
    ///
    /// Arrays and objects under a key in `opaque`, at any level, are checked but not looked into.
    ///
    /// # Errors
    /// Says at which byte of `source` the text stops being JSON. The tape then has no values.
    pub fn parse(
        &mut self,
        source: &ByteString,
        range: Range<usize>,
        opaque: &[&str],
    ) -> Result<usize, JsonError> {
        self.nodes.clear();
        self.open.clear();
        self.good = (0, 0);
        self.repair = None;
        let at = range.start;
        let text = source.get(range).unwrap_or_default();
        let mut scanner = Scanner::new(text);
        self.base = at;
        if text.len() > u32::MAX as usize {
            // Offsets are short to keep the table small; a longer source is read record by record.
            scanner.bytes = &scanner.bytes[..u32::MAX as usize];
        }
        match self.record(&mut scanner, opaque) {
            Ok(()) => Ok(at + scanner.at),
            Err(mut error) => {
                self.repair = self.closing().map(|closing| Repair {
                    cut: at + self.good.0,
                    closing,
                });
                self.nodes.clear();
                error.offset += at;
                Err(error)
            }
        }
    }

    /// After a failed [`Tape::parse`]: how to read the text before the error. `None` if it holds no complete value.
    #[must_use]
    pub fn repair(&self) -> Option<&Repair> {
        self.repair.as_ref()
    }

    fn closing(&self) -> Option<String> {
        let (end, depth) = self.good;
        let open = self.open.get(..depth)?;
        let brackets = open.iter().rev().filter_map(|index| {
            let container = self.nodes.get(*index as usize)?;
            Some(if container.is_escaped { '}' } else { ']' })
        });
        (end > 0).then(|| brackets.collect())
    }

    /// The value that was read last. `source` must be the one that it was read from.
    #[must_use]
    pub fn root<'a>(&'a self, source: &'a ByteString) -> View<'a> {
        View {
            source,
            tape: self,
            index: 0,
        }
    }

    fn record(&mut self, scanner: &mut Scanner<'_>, opaque: &[&str]) -> Result<(), JsonError> {
        let mut is_opaque = false;
        loop {
            // Here a value begins.
            scanner.skip_space();
            let start = scanner.at;
            match scanner.peek() {
                Some(b'{' | b'[') if is_opaque => {
                    scanner.depth_max = NESTING_MAX - self.open.len();
                    scanner.nested()?;
                    self.push(start, scanner.at, false);
                }
                Some(open @ (b'{' | b'[')) => {
                    if self.open.len() == NESTING_MAX {
                        return Err(scanner.error(JsonErrorKind::TooDeep));
                    }
                    self.open.push(self.nodes.len() as u32);
                    self.push(start, start, open == b'{');
                    scanner.at += 1;
                    scanner.skip_space();
                    let closing = if open == b'{' { b'}' } else { b']' };
                    if scanner.peek() != Some(closing) {
                        is_opaque = open == b'{' && self.key(scanner, opaque)?;
                        continue;
                    }
                }
                Some(b'"') => {
                    let is_escaped = scanner.literal()?;
                    self.push(start, scanner.at, is_escaped);
                }
                _ => {
                    scanner.value()?;
                    self.push(start, scanner.at, false);
                }
            }
            // Here a value has ended, or an empty container is about to.
            loop {
                let Some(container) = self.open.last().map(|index| *index as usize) else {
                    return Ok(());
                };
                if self.nodes.len() > container + 1 {
                    self.good = (scanner.at, self.open.len());
                }
                scanner.skip_space();
                // While a container is open its flag says whether it is an object.
                let is_object = self.nodes[container].is_escaped;
                match scanner.peek() {
                    Some(b',') => {
                        scanner.at += 1;
                        is_opaque = is_object && self.key(scanner, opaque)?;
                        break;
                    }
                    Some(b'}') if is_object => {}
                    Some(b']') if !is_object => {}
                    Some(_) => return Err(scanner.error(JsonErrorKind::UnexpectedCharacter)),
                    None => return Err(scanner.error(JsonErrorKind::UnexpectedEnd)),
                }
                scanner.at += 1;
                let next = self.nodes.len() as u32;
                let node = &mut self.nodes[container];
                node.end = scanner.at as u32;
                node.next = next;
                self.open.pop();
            }
        }
    }

    /// Writes down a key and says whether its value is not to be looked into.
    fn key(&mut self, scanner: &mut Scanner<'_>, opaque: &[&str]) -> Result<bool, JsonError> {
        scanner.skip_space();
        let start = scanner.at;
        let is_escaped = match scanner.peek() {
            Some(b'"') => scanner.literal()?,
            Some(_) => return Err(scanner.error(JsonErrorKind::UnexpectedCharacter)),
            None => return Err(scanner.error(JsonErrorKind::UnexpectedEnd)),
        };
        let end = scanner.at;
        self.push(start, end, is_escaped);
        scanner.colon()?;
        let name = scanner.bytes.get(start + 1..end - 1).unwrap_or_default();
        Ok(opaque.iter().any(|key| key.as_bytes() == name))
    }

    fn push(&mut self, start: usize, end: usize, is_escaped: bool) {
        self.nodes.push(Node {
            start: start as u32,
            end: end as u32,
            next: self.nodes.len() as u32 + 1,
            is_escaped,
        });
    }
}

impl<'a> View<'a> {
    fn node(self) -> Node {
        // A view of a tape that has no values sees an empty text.
        self.tape.nodes.get(self.index).copied().unwrap_or(Node {
            start: 0,
            end: 0,
            next: 0,
            is_escaped: false,
        })
    }

    /// The value as it was written.
    #[must_use]
    pub fn as_str(self) -> &'a str {
        let node = self.node();
        let range = self.tape.base + node.start as usize..self.tape.base + node.end as usize;
        self.source.get(range).unwrap_or_default()
    }

    /// Where the value begins in its source, in bytes.
    #[must_use]
    pub fn offset(self) -> usize {
        self.tape.base + self.node().start as usize
    }

    /// What kind of value this is.
    #[must_use]
    pub fn kind(self) -> Kind {
        super::kind_of(self.as_str())
    }

    /// Whether this is an object.
    #[must_use]
    pub fn is_object(self) -> bool {
        self.kind() == Kind::Object
    }

    /// Whether this is an array.
    #[must_use]
    pub fn is_array(self) -> bool {
        self.kind() == Kind::Array
    }

    /// The value as a shared slice of its source.
    #[must_use]
    pub fn raw(self) -> Raw {
        Raw(self.source.slice_ref(self.as_str()))
    }

    /// The text of a string value, to be decoded later.
    #[must_use]
    pub fn as_text(self) -> Option<Text> {
        let inner = self.source.slice_ref(self.between_quotes()?);
        Some(Text::inside(inner, self.node().is_escaped))
    }

    /// The characters of a string value, decoded.
    #[must_use]
    pub fn decode(self) -> Option<Cow<'a, str>> {
        let inner = self.between_quotes()?;
        Some(if self.node().is_escaped {
            Cow::Owned(unescape(inner))
        } else {
            Cow::Borrowed(inner)
        })
    }

    /// The characters of a string value, decoded, as a shared slice: for ids and names that are kept.
    #[must_use]
    pub fn to_bytestring(self) -> Option<ByteString> {
        let inner = self.between_quotes()?;
        Some(if self.node().is_escaped {
            unescape(inner).into()
        } else {
            self.source.slice_ref(inner)
        })
    }

    /// A string literal without its quotes, as written.
    fn between_quotes(self) -> Option<&'a str> {
        let literal = self.as_str();
        literal.strip_prefix('"')?.strip_suffix('"')
    }

    /// The value of a whole number that is not negative.
    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        super::number_as_u64(self.as_str())
    }

    /// The value of a number, where a 64-bit float can hold it.
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        (self.kind() == Kind::Number)
            .then(|| self.as_str().parse().ok())
            .flatten()
    }

    /// The value of `true` and `false`.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        match self.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Whether the value is `true`.
    #[must_use]
    pub fn is_true(self) -> bool {
        self.as_str() == "true"
    }

    /// Whether the value is `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.as_str() == "null"
    }

    /// The fields of an object in source order; empty for any other kind of value.
    pub fn fields(self) -> impl Iterator<Item = (Cow<'a, str>, View<'a>)> {
        let mut members = self.members(Kind::Object);
        std::iter::from_fn(move || {
            let key = members.next()?.decode()?;
            Some((key, members.next()?))
        })
    }

    /// The elements of an array; nothing for another kind of value.
    pub fn elements(self) -> impl Iterator<Item = View<'a>> {
        self.members(Kind::Array)
    }

    fn members(self, kind: Kind) -> Members<'a> {
        let node = self.node();
        Members {
            view: View {
                index: self.index + 1,
                ..self
            },
            end: if self.kind() == kind {
                node.next as usize
            } else {
                0
            },
        }
    }

    /// The field `key` of an object; of several with the same key the last.
    #[must_use]
    pub fn field(self, key: &str) -> Option<View<'a>> {
        self.fields()
            .filter(|(name, _)| name == key)
            .last()
            .map(|(_, value)| value)
    }

    /// The field `key` of an object as characters, if it is a string.
    #[must_use]
    pub fn string_field(self, key: &str) -> Option<Cow<'a, str>> {
        self.field(key)?.decode()
    }
}

impl std::fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

struct Members<'a> {
    view: View<'a>,
    end: usize,
}

impl<'a> Iterator for Members<'a> {
    type Item = View<'a>;

    fn next(&mut self) -> Option<View<'a>> {
        if self.view.index >= self.end {
            return None;
        }
        let member = self.view;
        self.view.index = (member.node().next as usize).max(member.index + 1);
        Some(member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a value out again from its parts, to compare with the source.
    fn rebuild(view: View<'_>) -> String {
        match view.kind() {
            Kind::Object => {
                let fields: Vec<String> = view
                    .fields()
                    .map(|(key, value)| format!("{key:?}:{}", rebuild(value)))
                    .collect();
                format!("{{{}}}", fields.join(","))
            }
            Kind::Array => {
                let elements: Vec<String> = view.elements().map(rebuild).collect();
                format!("[{}]", elements.join(","))
            }
            _ => view.as_str().to_owned(),
        }
    }

    fn parse(text: &str, opaque: &[&str]) -> (ByteString, Tape) {
        let source = ByteString::from(text);
        let mut tape = Tape::default();
        tape.parse(&source, 0..source.len(), opaque).unwrap();
        (source, tape)
    }

    #[test]
    fn every_value_is_found() {
        let text = r#"{"a":[1,{"b":[],"c":{}},"x\n"],"d":{"e":null},"f":true}"#;
        let (source, tape) = parse(text, &[]);
        assert_eq!(rebuild(tape.root(&source)), text);
        let element = tape.root(&source).field("a").unwrap().elements().nth(2);
        assert_eq!(element.unwrap().decode().unwrap(), "x\n");
    }

    #[test]
    fn opaque_values_are_checked_but_not_looked_into() {
        let (source, tape) = parse(r#"{"copy":{"a":[1,2]},"b":{"copy":[3]},"c":1}"#, &["copy"]);
        let root = tape.root(&source);
        assert_eq!(root.field("copy").unwrap().fields().count(), 0);
        assert_eq!(root.field("copy").unwrap().as_str(), r#"{"a":[1,2]}"#);
        assert_eq!(root.field("c").unwrap().as_u64(), Some(1));
        let broken = ByteString::from_static(r#"{"copy":{"a":[1,}}"#);
        assert_eq!(
            Tape::default()
                .parse(&broken, 0..broken.len(), &["copy"])
                .unwrap_err()
                .offset,
            16
        );
    }

    #[test]
    fn a_failed_record_leaves_nothing_behind() {
        let (_, mut tape) = parse("[1,2]", &[]);
        let source = ByteString::from_static("[1,");
        tape.parse(&source, 0..source.len(), &[]).unwrap_err();
        assert_eq!(tape.root(&source).elements().count(), 0);
    }

    #[test]
    fn a_torn_text_can_be_closed() {
        let check = |text: &str, expected: Option<&str>| {
            let source = ByteString::from(text);
            let mut tape = Tape::default();
            tape.parse(&source, 0..source.len(), &[]).unwrap_err();
            let repaired = tape
                .repair()
                .map(|repair| format!("{}{}", &text[..repair.cut], repair.closing));
            assert_eq!(repaired.as_deref(), expected, "{text}");
        };
        check(r#"{"a":[{"b":1},{"c":"#, Some(r#"{"a":[{"b":1}]}"#));
        check(
            r#"{"a":[{"b":1},{"c":2,"d":"x"#,
            Some(r#"{"a":[{"b":1},{"c":2}]}"#),
        );
        check(r#"{"a":{},"b"#, Some(r#"{"a":{}}"#));
        check(r#"[[],[{"a"#, Some("[[]]"));
        check(r#"[{"a"#, None);
        check("", None);
    }

    #[test]
    fn nesting_has_a_limit_also_in_opaque_values() {
        let mut tape = Tape::default();
        for opaque in [&[][..], &["a"][..]] {
            let nested =
                |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
            let source = ByteString::from(nested(NESTING_MAX - 1));
            tape.parse(&source, 0..source.len(), opaque).unwrap();
            let source = ByteString::from(nested(NESTING_MAX));
            let error = tape.parse(&source, 0..source.len(), opaque).unwrap_err();
            assert_eq!(error.kind, JsonErrorKind::TooDeep);
        }
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_raw(text in "[\\[\\]{}:,\"\\\\truefalsn0-9.eE+ \n\u{1}aé-]{0,24}") {
            let source = ByteString::from(text);
            let theirs = Raw::parse_prefix(&source);
            for opaque in [&[][..], &["", "a"][..]] {
                let mut tape = Tape::default();
                let ours = tape.parse(&source, 0..source.len(), opaque);
                match &theirs {
                    Ok((raw, end)) => {
                        proptest::prop_assert_eq!(ours, Ok(*end));
                        proptest::prop_assert_eq!(tape.root(&source).as_str(), raw.as_str());
                    }
                    Err(error) => proptest::prop_assert_eq!(ours, Err(error.clone())),
                }
            }
        }
    }
}
