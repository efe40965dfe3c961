//! What is to hold for any input: one function for each fuzz target.
//!
//! No function may panic, hang or use memory out of proportion; beyond that each states what it compares. Most inputs
//! are texts, since that is what the readers get; targets that need numbers take them from the last bytes.

use bytestring::ByteString;
use serde_json::value::RawValue;
use throughline_formats::convert;
use throughline_formats::read::read as read_source;
use throughline_formats::source::SourceText;
use throughline_formats::{ALL, Probe};
use throughline_memory::compact::{CompactError, Form, Options, compact as compact_messages};
use throughline_memory::json_form;
use throughline_memory::redact::Redactor;
use throughline_providers::decode::{Decoder, read_whole};
use throughline_transcript::check::{CheckOptions, Profile, check_text};
use throughline_transcript::conversation::Conversation;
use throughline_transcript::cut::{self, Tail};
use throughline_transcript::digest::prefix_digests;
use throughline_transcript::json::tape::Tape;
use throughline_transcript::json::{JsonErrorKind, Kind, Raw, write_string};
use throughline_transcript::request::CacheTtl;
use throughline_transcript::splice::Splice;
use throughline_transcript::text as excerpts;
use throughline_transcript::tokens::Counter;
use throughline_transcript::wire::Wire;

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];

/// The slices of JSON against an independent parser: what is valid, where a value ends, what strings and fields are.
pub fn json(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let source = ByteString::from(text);
    let ours = Raw::parse(source.clone());
    let theirs = serde_json::from_str::<&RawValue>(text);
    let raw = match (ours, theirs) {
        (Ok(raw), Ok(theirs)) => {
            assert_eq!(raw.as_str(), theirs.get());
            raw
        }
        (Err(error), theirs) => {
            // We alone limit the depth.
            assert!(theirs.is_err() || error.kind == JsonErrorKind::TooDeep);
            assert!(error.offset <= text.len());
            let mut tape = Tape::default();
            let _ = tape.parse(&source, 0..source.len(), &["input"]);
            return;
        }
        (Ok(raw), Err(error)) => panic!("only we take {raw:?}: {error}"),
    };
    let mut tape = Tape::default();
    let end = tape.parse(&source, 0..source.len(), &[]);
    assert_eq!(tape.root(&source).as_str(), raw.as_str());
    assert!(end.is_ok_and(|end| source[end..].trim().is_empty()));
    values(&raw);
}

/// Looks at every value, level by level.
fn values(root: &Raw) {
    let mut open = vec![root.clone()];
    while let Some(raw) = open.pop() {
        match raw.kind() {
            Kind::Object => {
                for (key, value) in raw.object() {
                    let found = raw.field(&key.decode());
                    assert!(found.is_some());
                    open.push(value);
                }
            }
            Kind::Array => open.extend(raw.array()),
            Kind::String => string(&raw),
            _ => {
                let _ = (raw.as_f64(), raw.as_u64(), raw.as_bool());
            }
        }
    }
}

fn string(raw: &Raw) {
    let text = raw.as_text().expect("a string has a text");
    let decoded = text.decode();
    // Halves of surrogate pairs are an error there and a replacement character here.
    if let Ok(theirs) = serde_json::from_str::<String>(raw.as_str()) {
        assert_eq!(decoded, theirs);
    }
    assert_eq!(text.is_blank(), decoded.trim().is_empty());
    for bytes in 0..16 {
        assert!(decoded.starts_with(&*text.prefix(bytes)), "{raw:?} {bytes}");
    }
    let mut written = String::new();
    write_string(&decoded, &mut written);
    let again = Raw::parse(written).expect("a written string is valid");
    assert_eq!(
        again.as_text().map(|text| text.to_bytestring().to_string()),
        Some(decoded.into_owned())
    );
}

/// Changes to a JSON text: the result is JSON, the change is in it, and what was not named is as it was.
pub fn splice(data: &[u8]) {
    let Some((rest, numbers)) = data.split_last_chunk::<3>() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    let Ok(body) = Raw::parse(text) else {
        return;
    };
    let [operation, place, count] = numbers.map(usize::from);
    let new = Raw::parse(r#"{"new": [1]}"#).expect("valid");
    let fields: Vec<(String, Raw)> = body
        .object()
        .map(|(key, value)| (key.decode().into_owned(), value))
        .collect();
    let key = fields
        .get(place % fields.len().max(1))
        .map_or("key", |(key, _)| key)
        .to_owned();
    let mut change = Splice::new(&body);
    let is_possible = match operation % 6 {
        0 => change.set_field(&key, new.clone()).is_ok(),
        1 => change.remove_field(&key).is_ok(),
        2 => change
            .replace_array_prefix(&key, count, std::slice::from_ref(&new))
            .is_ok(),
        3 => change
            .append_to_array(&key, std::slice::from_ref(&new))
            .is_ok(),
        4 => match body.field(&key) {
            Some(part) => change.replace(&part, new.clone()).is_ok(),
            None => false,
        },
        _ => {
            let _ = change.remove_field(&key);
            let _ = change.append_to_array(&key, std::slice::from_ref(&new));
            let _ = change.set_field("messages", new.clone());
            true
        }
    };
    let Ok(changed) = change.finish() else {
        return;
    };
    let changed = Raw::parse(changed).expect("a changed text is JSON");
    if !is_possible {
        assert_eq!(changed, body);
        return;
    }
    match operation % 6 {
        0 | 4 => assert_eq!(changed.field(&key), Some(new)),
        1 => assert_eq!(changed.field(&key), None),
        _ => {}
    }
    if operation % 6 < 5 {
        let kept = |raw: &Raw| -> Vec<(String, Raw)> {
            raw.object()
                .map(|(name, value)| (name.decode().into_owned(), value))
                .filter(|(name, _)| *name != key)
                .collect()
        };
        assert_eq!(kept(&changed), kept(&body));
    }
}

/// Any bytes as a file, for every format and for detection.
pub fn read(data: &[u8]) {
    let source = SourceText::from_bytes(data.to_vec());
    assert!(!source.text.contains('\0'));
    let _ = read_source(&source, None);
    for format in ALL {
        let certainty = format.fits(&Probe::new(&source.text));
        assert!(certainty <= 100);
        let Ok(found) = format.read(&source) else {
            continue;
        };
        assert_eq!(found.format, format.name());
        for conversation in &found.conversations {
            let length = conversation.messages.len();
            let is_inside = |message: usize| message <= length;
            assert!(
                conversation
                    .compactions
                    .iter()
                    .all(|mark| is_inside(mark.before_message))
            );
            assert!(
                conversation
                    .problems
                    .iter()
                    .all(|problem| is_inside(problem.message))
            );
            assert_eq!(prefix_digests(&conversation.messages).len(), length);
        }
    }
}

/// Any text as a request body, for every wire format and profile.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for wire in WIRES {
        for profile in [Profile::Provider, Profile::StrictAlternation] {
            let options = CheckOptions {
                profile,
                ..CheckOptions::default()
            };
            let report = check_text(&text, wire, &options);
            if Raw::parse(&*text).is_err() {
                assert!(!report.is_valid());
            }
        }
    }
}

/// The conversations of a file, few and short enough to work on.
fn conversations(data: &[u8]) -> Vec<Conversation> {
    let source = SourceText::from_bytes(data.to_vec());
    let mut conversations = read_source(&source, None)
        .map(|source| source.conversations)
        .unwrap_or_default();
    conversations.truncate(2);
    conversations
}

/// Rules that every written request keeps to. Blocks and settings of a request that are wrong in themselves pass
/// unchanged, as unknown ones do.
const KEPT_RULES: &[&str] = &[
    "invalid-json",
    "messages-empty",
    "input-empty",
    "first-message-not-user",
    "unknown-role",
    "system-first",
    "system-misplaced",
    "empty-text",
    "blank-text",
    "tool-use-without-result",
    "tool-result-without-use",
    "tool-result-not-adjacent",
    "tool-result-not-first",
    "tool-result-before-use",
    "duplicate-tool-use-id",
    "duplicate-tool-result",
    "server-tool-without-result",
    "server-result-without-use",
    "template-role-order",
    "template-system-position",
];

/// Any file as a request of every wire format, also with a memory in it: it keeps to the [`KEPT_RULES`].
pub fn convert(data: &[u8]) {
    let Some((rest, numbers)) = data.split_last_chunk::<2>() else {
        return;
    };
    let [flags, place] = numbers.map(usize::from);
    let options = convert::Options {
        model: Some("m".to_owned()),
        max_tokens: Some(500),
        strict_alternation: flags & 1 != 0,
        drop_thinking: flags & 2 != 0,
        drop_sealed: flags & 4 != 0,
        memory_marker: (flags & 8 != 0).then_some(CacheTtl::Minutes5),
    };
    let profile = match options.strict_alternation {
        true => Profile::StrictAlternation,
        false => Profile::Provider,
    };
    for conversation in conversations(rest) {
        let messages = &conversation.messages;
        let cuts = cut::legal_cuts(messages);
        assert!(cuts.iter().all(|cut| *cut <= messages.len()));
        let cut = cuts.get(place % cuts.len().max(1)).copied();
        for wire in WIRES {
            let whole = convert::convert(&conversation, wire, &options);
            let with_memory = cut.map(|cut| {
                convert::request_with_memory(&conversation, "The memory.", cut, wire, &options)
            });
            for converted in std::iter::once(whole).chain(with_memory) {
                let check_options = CheckOptions {
                    profile,
                    ..CheckOptions::default()
                };
                let report = check_text(&converted.body, wire, &check_options);
                let errors: Vec<_> = report
                    .errors()
                    .filter(|finding| KEPT_RULES.contains(&finding.code))
                    .collect();
                assert!(errors.is_empty(), "{wire:?} {errors:?} {}", converted.body);
            }
        }
        let _ = convert::to_jsonl(&conversation);
    }
}

/// Redaction: what is found stands in order and apart, and a redacted text holds nothing more to find.
pub fn redact(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let redactor = Redactor::embedded();
    let mut end = 0;
    for finding in redactor.find(&text) {
        assert!(finding.range.start >= end && finding.range.start < finding.range.end);
        assert!(text.get(finding.range.clone()).is_some());
        end = finding.range.end;
    }
    let redacted = redactor.redact(&text);
    assert_eq!(redactor.redact(&redacted), redacted);
}

/// Any text as a memory document: what is read is written and read again without a change.
pub fn memory_json(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(reading) = json_form::read(&text) else {
        return;
    };
    let written = reading.memory.to_json();
    let again = json_form::read(&written).expect("a written memory can be read");
    assert_eq!(again.unread, Vec::<String>::new());
    // Writing puts the items into the order of their sections, once.
    assert_eq!(again.memory.to_json(), written);
    for form in [
        Form::Markdown,
        Form::Object,
        Form::System,
        Form::UserMessage,
    ] {
        let _ = form.render(&reading.memory);
    }
}

/// Any file as a memory: within the cap, the same each time, and readable again.
pub fn compact(data: &[u8]) {
    let Some((rest, numbers)) = data.split_last_chunk::<2>() else {
        return;
    };
    let [size, place] = numbers.map(usize::from);
    let count = |text: &str| text.len().div_ceil(4);
    for conversation in conversations(rest) {
        let messages = &conversation.messages;
        let mut options = Options::new(100 + size * 16, &count);
        options.cwd = conversation.cwd.as_deref();
        options.form = [Form::Markdown, Form::Json, Form::Object, Form::System][size % 4];
        let compacted = match compact_messages(messages, &options) {
            Ok(compacted) => compacted,
            Err(CompactError::Empty) => {
                assert!(messages.is_empty());
                continue;
            }
            Err(_) => continue,
        };
        assert!(count(&compacted.text) <= options.tokens);
        let written = compacted.memory.to_json();
        let again = json_form::read(&written).expect("a written memory can be read");
        assert_eq!(again.memory.to_json(), written);
        // The same in two steps holds the same cover.
        let cut = place % (messages.len() + 1);
        if let Ok(first) = compact_messages(&messages[..cut], &options) {
            let mut later = Options::new(options.tokens, &count);
            later.prior = Some(&first.memory);
            if let Ok(second) = compact_messages(messages, &later) {
                assert_eq!(second.prior_fits, Some(true));
                assert_eq!(second.memory.cover.messages, messages.len());
            }
        }
    }
}

/// Answers of providers: however a stream is cut, the same comes of it; a part of one is never a whole; what is to be
/// sent back is JSON.
pub fn answer(data: &[u8]) {
    let Some((size, stream)) = data.split_first() else {
        return;
    };
    let size = usize::from(*size).max(1);
    for wire in WIRES {
        let decode = |chunks: &[&[u8]]| {
            let mut decoder = Decoder::new(wire);
            let mut events = Vec::new();
            let end = chunks
                .iter()
                .try_for_each(|chunk| decoder.push(chunk, &mut events))
                .and_then(|()| decoder.finish());
            (events, end, decoder.partial())
        };
        let whole = decode(&[stream]);
        let chunks: Vec<&[u8]> = stream.chunks(size).collect();
        assert_eq!(whole, decode(&chunks));
        let (_, end, partial) = whole;
        assert!(!partial.is_complete);
        let text = ByteString::from(String::from_utf8_lossy(stream).into_owned());
        for reply in [Ok(partial), end, read_whole(wire, &text)]
            .into_iter()
            .flatten()
        {
            for message in &reply.messages {
                assert!(Raw::parse(message.as_str().to_owned()).is_ok());
            }
            let _ = reply.text();
        }
    }
}

/// Excerpts, cuts and counts: no longer than asked, no character split, nothing made up.
pub fn text(data: &[u8]) {
    let Some((rest, numbers)) = data.split_last_chunk::<2>() else {
        return;
    };
    let max = usize::from(u16::from_le_bytes(*numbers));
    let text = String::from_utf8_lossy(rest);
    let head = excerpts::head(&text, max);
    let tail = excerpts::tail(&text, max);
    assert!(head.len() <= max && text.starts_with(head));
    assert!(tail.len() <= max && text.ends_with(tail));
    let short = excerpts::truncate_bytes(&text, max);
    assert!(short.len() <= max + excerpts::MARK.len_utf8());
    let excerpt = excerpts::head_and_tail(&text, max);
    assert!(excerpt.len() <= max + 80 && excerpt.len() <= text.len().max(max + 80));
    if excerpt.len() > max && text.len() > max + 80 {
        assert!(excerpt.contains("left out"));
    }
    let exact = Counter::reference().text(&text);
    let estimate = Counter::reference().estimating().text(&text);
    assert_eq!(
        (exact == 0, estimate == 0),
        (text.is_empty(), text.is_empty())
    );
    for conversation in conversations(rest) {
        let counter = Counter::reference().estimating();
        let total = counter.conversation(&conversation).total();
        let cut = cut::cut_for_tail(&conversation.messages, Tail::Tokens(max), |message| {
            counter.message(message)
        });
        assert!(cut <= conversation.messages.len());
        let rest: usize = conversation.messages[cut..]
            .iter()
            .map(|message| counter.message(message))
            .sum();
        assert!(rest <= total);
    }
}
