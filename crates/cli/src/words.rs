//! Numbers, times and first words, as people read them.

use std::time::Duration;

use throughline_transcript::conversation::Conversation;
use throughline_transcript::text::grouped;

/// `12,345`
pub(crate) fn number(value: impl TryInto<u64>) -> String {
    grouped(value.try_into().unwrap_or(u64::MAX))
}

/// `1 message`, `2 messages`
pub(crate) fn counted(count: usize, one: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {one}{ending}", number(count as u64))
}

/// `840 ms`, `2.1 s`
pub(crate) fn duration(duration: Duration) -> String {
    if duration.as_millis() < 1000 {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

/// `2026-11-29 10:15`, UTC.
pub(crate) fn minute(at_ms: i64) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(at_ms).ok()?;
    Some(time.strftime("%Y-%m-%d %H:%M").to_string())
}

/// `2026-11-29T10:15:00.000Z`
pub(crate) fn rfc3339(at_ms: i64) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(at_ms).ok()?;
    Some(format!("{time:.3}"))
}

/// `text` as one word of a POSIX shell.
pub(crate) fn shell_quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// The first characters on one line.
pub(crate) fn shortened(text: &str, characters_max: usize) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
            count += 1;
        }
        for character in word.chars() {
            if count >= characters_max {
                out.push('…');
                return out;
            }
            out.push(character);
            count += 1;
        }
    }
    out
}

/// The title, or the first words of the first request.
pub(crate) fn title(conversation: &Conversation, characters_max: usize) -> String {
    let title = match &conversation.title {
        Some(title) if !title.trim().is_empty() => title.clone(),
        _ => conversation
            .messages
            .iter()
            .filter(|message| message.begins_turn())
            .flat_map(|message| message.texts())
            .find(|text| !text.is_blank())
            .map(|text| text.prefix(characters_max * 8).into_owned())
            .unwrap_or_default(),
    };
    shortened(&title, characters_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(number(7_u64), "7");
        assert_eq!(number(123_u64), "123");
        assert_eq!(number(1_234_567_u64), "1,234,567");
        assert_eq!(counted(1, "message"), "1 message");
        assert_eq!(counted(0, "message"), "0 messages");
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(minute(0).as_deref(), Some("1970-01-01 00:00"));
        assert_eq!(rfc3339(1500).as_deref(), Some("1970-01-01T00:00:01.500Z"));
        assert_eq!(minute(i64::MAX), None);
    }

    #[test]
    fn texts_are_shortened_on_one_line() {
        assert_eq!(shortened("  a\n b ", 9), "a b");
        assert_eq!(shortened("a\nbcdef", 4), "a bc…");
    }
}
