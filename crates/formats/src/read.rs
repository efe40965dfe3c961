//! Reading a source: by a named format, or by the one that fits best.
//!
//! ```
//! use throughline_formats::source::{ReadError, SourceText};
//! use throughline_formats::read::read;
//!
//! let source = SourceText::from_bytes(b"  \n".to_vec());
//! assert_eq!(read(&source, None), Err(ReadError::Empty));
//! ```

use bytestring::ByteString;
use throughline_transcript::message::{Content, Message, Role};

use crate::formats::{self, Format, Probe};
use crate::source::{ReadError, Source, SourceText, add_skipped};

/// How much text there may be before a document, bytes.
const PREAMBLE_BYTES_MAX: usize = 1024;

/// Formats that hold what the model said and did, and not what it was asked.
const WITHOUT_PROMPTS: [&str; 1] = ["codex-exec"];

/// Reads all conversations of `source`.
///
/// `from` names a format ([`Format::name`]); without it, or with `auto`, every format is asked how sure it is and the
/// surest one that can read the source does. [`Source::skipped`] has the repairs of the text as well as what the
/// format could not read, by line.
///
/// # Errors
/// When there is no text, when the named format does not exist or cannot read the text, or when no format can. A text
/// that a format takes for its own and that gives messages without content, or none of the user, is refused as well: a
/// memory made of it would be wrong. A format that is named has only to give some content.
pub fn read(source: &SourceText, from: Option<&str>) -> Result<Source, ReadError> {
    if source.text.trim_start().is_empty() {
        return Err(ReadError::Empty);
    }
    let found = match from {
        None | Some("auto") => detect(source, formats::ALL),
        Some(name) => match formats::ALL.iter().find(|format| format.name() == name) {
            Some(format) => format.read(source).and_then(with_content),
            None => Err(ReadError::NoSuchFormat {
                name: name.to_owned(),
                known: names(formats::ALL),
            }),
        },
    };
    let is_unknown = matches!(
        found,
        Err(ReadError::UnknownFormat { .. } | ReadError::NotThatFormat { .. })
    );
    if is_unknown && let Some(document) = without_preamble(&source.text) {
        return read(&document, from).or(found);
    }
    let mut result = found?;
    result.skipped.extend_from_slice(&source.skipped);
    result.skipped.sort_by_key(|piece| piece.line);
    Ok(result)
}

/// The JSON document behind a few words that a program printed before it, such as `Exporting session: ses_1`. `None` if
/// the text begins with the document, or has none near its beginning.
fn without_preamble(text: &ByteString) -> Option<SourceText> {
    let head = &text[..text.floor_char_boundary(PREAMBLE_BYTES_MAX)];
    let start = head
        .match_indices(['{', '['])
        .map(|(at, _)| at)
        .find(|at| {
            let inside = text[at + 1..].trim_start();
            if head[*at..].starts_with('{') {
                inside.starts_with('"')
            } else {
                inside.starts_with('{')
            }
        })?;
    if head[..start].trim().is_empty() {
        return None;
    }
    let mut skipped = Vec::new();
    add_skipped(&mut skipped, 1, start, "text before the document");
    Some(SourceText {
        text: text.slice_ref(&text[start..]),
        skipped,
    })
}

fn detect(source: &SourceText, all: &[&dyn Format]) -> Result<Source, ReadError> {
    let probe = Probe::new(&source.text);
    let mut candidates: Vec<(u8, &dyn Format)> = all
        .iter()
        .map(|format| (format.fits(&probe), *format))
        .filter(|(certainty, _)| *certainty > 0)
        .collect();
    // Stable: of equally sure formats the earlier one in the list is asked first.
    candidates.sort_by_key(|(certainty, _)| std::cmp::Reverse(*certainty));
    for (_, format) in candidates {
        match format.read(source) {
            Ok(found) => return whole(found),
            Err(error @ ReadError::NoMessage { .. }) => return Err(error),
            Err(_) => {}
        }
    }
    Err(ReadError::UnknownFormat { tried: names(all) })
}

/// A source of which some content was read; one without any message is a file in which nothing is said.
fn with_content(source: Source) -> Result<Source, ReadError> {
    let count = messages(&source).count();
    if count == 0 || messages(&source).any(has_content) {
        return Ok(source);
    }
    Err(misread(
        &source,
        "none of its messages has content that can be read",
    ))
}

/// A source that was read as what it is: its messages have content, and one is the user's.
fn whole(source: Source) -> Result<Source, ReadError> {
    let source = with_content(source)?;
    let count = messages(&source).count();
    let empty = messages(&source)
        .filter(|message| !has_content(message))
        .count();
    if empty * 2 > count {
        let reason = format!("{empty} of its {count} messages have no content that can be read");
        return Err(misread(&source, &reason));
    }
    let is_users = |message: &Message| message.role == Role::User && has_content(message);
    let has_prompts = !WITHOUT_PROMPTS.contains(&source.format);
    if count > 0 && has_prompts && !messages(&source).any(is_users) {
        return Err(misread(&source, "none of its messages is the user's"));
    }
    Ok(source)
}

fn misread(source: &Source, reason: &str) -> ReadError {
    ReadError::Misread {
        format: source.format,
        reason: reason.to_owned(),
    }
}

fn messages(source: &Source) -> impl Iterator<Item = &Message> {
    source
        .conversations
        .iter()
        .flat_map(|conversation| &conversation.messages)
}

fn has_content(message: &Message) -> bool {
    message.blocks.iter().any(|block| match &block.content {
        Content::Text(text) => !text.is_blank(),
        Content::Other(_) => false,
        _ => true,
    })
}

fn names(all: &[&dyn Format]) -> Vec<&'static str> {
    all.iter().map(|format| format.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claims to fit with `certainty` and reads only texts that hold `needle`.
    struct Fake {
        name: &'static str,
        certainty: u8,
        needle: &'static str,
    }

    impl Format for Fake {
        fn name(&self) -> &'static str {
            self.name
        }

        fn about(&self) -> &'static str {
            "a format for tests"
        }

        fn fits(&self, _: &Probe<'_>) -> u8 {
            self.certainty
        }

        fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
            if source.text.contains(self.needle) {
                Ok(Source {
                    format: self.name,
                    conversations: Vec::new(),
                    skipped: Vec::new(),
                })
            } else {
                Err(ReadError::NotThatFormat {
                    format: self.name,
                    reason: "no needle".to_owned(),
                })
            }
        }
    }

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &[&str]>) {
        let fake = |name, certainty, needle| Fake {
            name,
            certainty,
            needle,
        };
        let (a, b, c) = (fake("a", 50, "x"), fake("b", 90, "y"), fake("c", 0, ""));
        let found = detect(&SourceText::from_text(text), &[&a, &b, &c]);
        match (found, expected) {
            (Ok(source), Ok(name)) => assert_eq!(source.format, name),
            (Err(ReadError::UnknownFormat { tried }), Err(names)) => assert_eq!(tried, names),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn the_surest_format_that_can_read_does() {
        check("x y", Ok("b"));
        check("x", Ok("a"));
        check("z", Err(&["a", "b", "c"]));
    }

    #[test]
    fn errors_list_the_known_formats() {
        let source = SourceText::from_text("some words");
        let error = read(&source, Some("carrier-pigeon")).unwrap_err();
        assert!(matches!(error, ReadError::NoSuchFormat { name, .. } if name == "carrier-pigeon"));
        assert_eq!(
            read(&SourceText::from_bytes(vec![0; 9]), None),
            Err(ReadError::Empty)
        );
    }

    #[test]
    fn repairs_of_a_request_are_reported_once() {
        let bytes = b"{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"caf\xc3\"}]}";
        let text = SourceText::from_bytes(bytes.to_vec());
        for from in ["anthropic", "openai-chat"] {
            let source = read(&text, Some(from)).unwrap();
            assert_eq!(source.skipped, text.skipped);
            assert_eq!(source.skipped.len(), 1);
        }
    }

    #[track_caller]
    fn check_format(text: &str, format: &str) {
        let source = read(&SourceText::from_text(text), None).unwrap();
        assert_eq!(source.format, format, "{text}");
        assert!(!source.conversations[0].messages.is_empty());
    }

    #[test]
    fn each_session_file_is_recognised() {
        check_format(
            r#"{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"go"}}"#,
            "claude-code",
        );
        check_format(
            r#"{"timestamp":"x","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}}"#,
            "codex",
        );
        check_format(
            r#"{"sessionId":"s","projectHash":"h","messages":[{"id":"a","type":"user","content":"go"}]}"#,
            "gemini-cli",
        );
        check_format(
            r#"{"info":{"id":"s"},"messages":[{"info":{"role":"user"},"parts":[{"type":"text","text":"go"}]}]}"#,
            "opencode",
        );
        check_format(
            "{\"type\":\"session\",\"id\":\"s\",\"cwd\":\"/w\"}\n{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"go\"}}",
            "pi",
        );
        check_format(r#"[{"role":"user","content":"go","ts":1}]"#, "cline");
    }

    #[test]
    fn of_mixed_formats_one_is_read_and_the_rest_reported() {
        let text = r#"{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"go"}}
{"timestamp":"x","type":"response_item","payload":{"type":"message","role":"user","content":[]}}
plain words
{"type":"user","uuid":"b","parentUuid":"a","sessionId":"s","message":{"role":"user","content":"on"}}"#;
        let source = read(&SourceText::from_text(text), None).unwrap();
        assert_eq!(source.conversations[0].messages.len(), 2);
        let lines: Vec<_> = source.skipped.iter().map(|piece| piece.line).collect();
        assert_eq!(lines, [2, 3]);
    }

    #[test]
    fn repairs_of_the_text_are_reported_with_the_rest() {
        let mut bytes = b"\xef\xbb\xbf".to_vec();
        bytes.extend(br#"{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"caf"#);
        bytes.extend(b"\xc3\"}}\r\n\0\0\0\0");
        bytes.extend(br#"{"type":"user","uuid":"b","parentUuid":"a","sessionId":"s","message":{"role":"user","content":"on"}}"#);
        bytes.extend(b"\n{\"type\":\"us");
        let source = read(&SourceText::from_bytes(bytes), None).unwrap();
        let texts: Vec<_> = source.conversations[0]
            .messages
            .iter()
            .flat_map(|message| message.texts())
            .map(|text| text.decode().into_owned())
            .collect();
        assert_eq!(texts, ["caf\u{fffd}", "on"]);
        let lines: Vec<_> = source
            .skipped
            .iter()
            .map(|piece| (piece.line, piece.bytes))
            .collect();
        assert_eq!(lines, [(1, 1), (2, 4), (3, 11)]);
    }
}
