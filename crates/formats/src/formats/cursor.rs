//! Cursor: transcripts of its agent (JSONL), and the chats of its database in one JSON list.
//!
//! A line of a transcript has a role and a message of the Anthropic shape. What the person said is in `<user_query>`;
//! what the client adds stands beside it. Results of tools are not written down.

mod database;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{Author, Block, Content, Message, Role};

use crate::formats::place::Place;
use crate::formats::{Format, Probe, anthropic_content, chat_message};
use crate::lines::Lines;
use crate::source::{ReadError, Source, SourceText};

const OPAQUE: &[&str] = &["input"];

/// Transcripts and chats of Cursor.
pub(super) struct Cursor;

impl Format for Cursor {
    fn name(&self) -> &'static str {
        "cursor"
    }

    fn about(&self) -> &'static str {
        "Cursor agent transcript (JSONL), chats (state.vscdb)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        if let Some(points) = probe
            .glance()
            .map(database::fits)
            .filter(|points| *points > 0)
        {
            return points;
        }
        probe.best_record(|record| {
            let is_role = matches!(
                record.string_field("role").as_deref(),
                Some("user" | "assistant")
            );
            let content = record
                .field("message")
                .and_then(|message| message.field("content"));
            // Other programs that wrap a message say its type or id beside it.
            let is_bare = ["type", "uuid", "sessionId", "content", "timestamp"]
                .into_iter()
                .all(|key| record.field(key).is_none());
            if is_role && is_bare && content.is_some() {
                95
            } else {
                0
            }
        })
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        if let Some(found) = database::read(source, self.name()) {
            return Ok(found);
        }
        let mut conversation = Conversation::default();
        let mut lines = Lines::new(source, OPAQUE);
        let is_found = lines.read_records("not a record of a Cursor transcript", |record, line| {
            add(&mut conversation, record, line)
        });
        if !is_found {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "there is no line with `role` and `message`".to_owned(),
            });
        }
        chat_message::pair_by_order(&mut conversation.messages, "call-");
        Ok(Source {
            format: self.name(),
            conversations: vec![conversation],
            skipped: lines.into_skipped(),
        })
    }
}

fn add(conversation: &mut Conversation, record: View<'_>, line: usize) -> bool {
    let role = match record.string_field("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        // The end of a turn, and whatever else the client notes.
        _ => return record.field("type").is_some() && record.field("role").is_none(),
    };
    let Some(content) = record
        .field("message")
        .and_then(|message| message.field("content"))
    else {
        return false;
    };
    let mut place = Place {
        line,
        ..Place::default()
    };
    let blocks = anthropic_content::content(content);
    let (mut said, mut added) = (Vec::new(), Vec::new());
    for block in blocks {
        match &block.content {
            Content::Text(text) if role == Role::User => {
                let words = Words::of(&text.decode());
                place.at_ms = words.at_ms.or(place.at_ms);
                added.extend(words.added.map(Block::text));
                said.extend(words.said.map(Block::text));
            }
            Content::Text(text) => {
                // Reasoning that the provider withholds leaves this behind.
                let text = text.decode();
                let kept = text.trim_end().strip_suffix("[REDACTED]").unwrap_or(&text);
                if !kept.trim().is_empty() {
                    let kept = kept.trim_end().to_owned();
                    said.push(Block::text(kept));
                }
            }
            _ => said.push(block),
        }
    }
    for (author, blocks) in [(Author::Client, added), (Author::Role, said)] {
        if !blocks.is_empty() {
            let mut message = Message::new(role, blocks);
            message.author = author;
            conversation.messages.push(place.put(message));
        }
    }
    true
}

/// The parts of a text with the role of the user.
struct Words {
    said: Option<String>,
    added: Option<String>,
    at_ms: Option<i64>,
}

impl Words {
    fn of(text: &str) -> Self {
        let (time, text) = without(text, "<timestamp>", "</timestamp>");
        let at_ms = time.as_deref().and_then(timestamp);
        let (said, rest) = without(&text, "<user_query>", "</user_query>");
        let kept = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        match said {
            Some(said) => Self {
                said: kept(said),
                added: kept(rest),
                at_ms,
            },
            None if rest.trim_start().starts_with("<system_reminder>")
                || rest.trim_start().starts_with("<system_notification>") =>
            {
                Self {
                    said: None,
                    added: kept(rest),
                    at_ms,
                }
            }
            None => Self {
                said: kept(rest),
                added: None,
                at_ms,
            },
        }
    }
}

/// What is between two tags, and the text without it. The last closing tag counts: the person can write one.
fn without(text: &str, open: &str, close: &str) -> (Option<String>, String) {
    let found = text.find(open).and_then(|start| {
        let inside = start + open.len();
        let end = inside + text[inside..].rfind(close)?;
        Some((start, inside, end))
    });
    match found {
        None => (None, text.to_owned()),
        Some((start, inside, end)) => (
            Some(text[inside..end].to_owned()),
            format!("{}{}", &text[..start], &text[end + close.len()..]),
        ),
    }
}

/// `Tuesday, Sep 1, 2026, 10:00 AM (UTC+2)`.
fn timestamp(text: &str) -> Option<i64> {
    let mut fields = text.split(',').map(str::trim).skip(1);
    let (month, day) = fields.next()?.split_once(' ')?;
    let year: i16 = fields.next()?.parse().ok()?;
    let mut clock = fields.next()?.split_whitespace();
    let (hour, minute) = clock.next()?.split_once(':')?;
    let half = clock.next()?;
    let zone = clock.next().unwrap_or("(UTC)");
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month = MONTHS.iter().position(|name| month.starts_with(name))? + 1;
    let date = Date::new(year, i8::try_from(month).ok()?, day.parse().ok()?).ok()?;
    let hour: i8 = hour.parse().ok().filter(|hour| (1..=12).contains(hour))?;
    let hour = hour % 12 + if half == "PM" { 12 } else { 0 };
    let time = Time::new(hour, minute.parse().ok()?, 0, 0).ok()?;
    let zone = zone.trim_matches(['(', ')']).strip_prefix("UTC")?;
    let zone = zone.strip_prefix('+').unwrap_or(zone);
    let (hours, minutes) = zone.split_once(':').unwrap_or((zone, "0"));
    let hours: i32 = if hours.is_empty() {
        0
    } else {
        hours.parse().ok()?
    };
    let minutes: i32 = minutes.parse().ok()?;
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let seconds = hours
        .checked_mul(3600)?
        .checked_add(sign * minutes.checked_mul(60)?)?;
    let offset = Offset::from_seconds(seconds).ok()?;
    let time = offset.to_timestamp(DateTime::from_parts(date, time)).ok()?;
    Some(time.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::story;

    #[test]
    fn the_query_is_the_users() {
        let text = r#"{"role":"user","message":{"content":[{"type":"text","text":"<timestamp>Tuesday, Sep 1, 2026, 10:00 AM (UTC+2)</timestamp>\n<attached_files>a.ts</attached_files>\n<user_query>\nMend the tiller. Keep the rope.\n</user_query>"}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"I look.\n\n[REDACTED]"},{"type":"tool_use","name":"Read","input":{"path":"t"}}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"[REDACTED]"},{"type":"text","text":"Mended."}]}}
{"type":"turn_ended","status":"success"}
{"role":"user","message":{"content":"Now the keel."}}"#;
        let source = Cursor.read(&SourceText::from_text(text)).unwrap();
        let conversation = &source.conversations[0];
        assert_eq!(
            story(conversation),
            [
                "client: <attached_files>a.ts</attached_files>",
                "user: Mend the tiller. Keep the rope.",
                "model: I look. + call call-1 Read",
                "model: Mended.",
                "user: Now the keel.",
            ]
        );
        assert_eq!(conversation.messages[1].at_ms, Some(1_788_249_600_000));
        assert_eq!(source.skipped, []);
    }

    #[test]
    fn times_are_read_in_every_zone() {
        let check = |text, expected| assert_eq!(timestamp(text), expected, "{text}");
        check("Thursday, Jan 1, 1970, 12:00 AM (UTC+0)", Some(0));
        check("Thursday, Jan 1, 1970, 12:30 PM (UTC)", Some(45_000_000));
        check("Thursday, January 1, 1970, 5:30 AM (UTC+5:30)", Some(0));
        check("Wednesday, Dec 31, 1969, 8:30 PM (UTC-3:30)", Some(0));
        check("some day", None);
        check("a, Jan 1, 1970, 99:00 AM (UTC)", None);
        check("a, Jan 1, 1970, 1:00 AM (UTC+999999999)", None);
    }
}
