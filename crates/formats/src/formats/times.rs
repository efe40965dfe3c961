//! Parses points in time in session files. All results are milliseconds since 1970 UTC.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use throughline_transcript::json::tape::View;
use throughline_transcript::json::{Kind, Raw};

/// A date and time in RFC 3339 or another ISO form (`2026-11-29T10:00:00.000Z`, `2026-11-29 10:00:00`).
///
/// Without a zone it is taken for UTC, since the zone of the machine that wrote it is not known.
pub(crate) fn from_text(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Some(time.as_millisecond());
    }
    let time: DateTime = text.parse().ok()?;
    let time = TimeZone::UTC.to_timestamp(time).ok()?;
    Some(time.as_millisecond())
}

/// A time that is a text or a number of milliseconds.
pub(crate) fn from_milliseconds(value: View<'_>) -> Option<i64> {
    match value.decode() {
        Some(text) => from_text(&text),
        None => value
            .as_f64()
            .filter(|number| number.is_finite())
            .map(|number| number as i64),
    }
}

/// A time that is a text or a number, of seconds or of milliseconds: no session is from before 1973.
pub(crate) fn from_number(value: View<'_>) -> Option<i64> {
    match value.decode() {
        Some(text) => from_text(&text),
        None => {
            let number = value.as_f64().filter(|number| number.is_finite())?;
            Some(if number.abs() < 1e11 {
                (number * 1000.0).round() as i64
            } else {
                number as i64
            })
        }
    }
}

/// A time that is a text or a number of seconds.
pub(crate) fn from_seconds(value: &Raw) -> Option<i64> {
    match value.kind() {
        Kind::String => from_text(&value.as_text()?.decode()),
        Kind::Number => {
            let seconds = value.as_f64()?;
            (seconds.abs() < 1e11).then_some((seconds * 1000.0).round() as i64)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_a_zone() {
        let check = |text, expected| assert_eq!(from_text(text), expected, "{text}");
        check("1970-01-01T00:00:01Z", Some(1000));
        check("1970-01-01T00:00:01.5Z", Some(1500));
        check("2026-01-02T03:04:05.678+01:00", Some(1_767_319_445_678));
        check("1969-12-31T23:59:59Z", Some(-1000));
        check("1970-01-01 01:00:00+01:00", Some(0));
        check("1970-01-01 00:00:02", Some(2000));
        check("1970-01-01T00:00:02.250000", Some(2250));
        check("yesterday", None);
    }

    #[test]
    fn numbers_are_seconds_or_milliseconds() {
        let source =
            bytestring::ByteString::from("[1767225600.5,1767225600500,\"1970-01-01T00:00:01Z\"]");
        let mut tape = throughline_transcript::json::tape::Tape::default();
        tape.parse(&source, 0..source.len(), &[]).unwrap();
        let times: Vec<_> = tape.root(&source).elements().map(from_number).collect();
        assert_eq!(
            times,
            [Some(1_767_225_600_500), Some(1_767_225_600_500), Some(1000)]
        );
    }

    #[test]
    fn seconds_are_read_from_numbers() {
        let number = |text: &str| from_seconds(&Raw::parse(text).unwrap());
        assert_eq!(number("1.5"), Some(1500));
        assert_eq!(number("\"1970-01-01T00:00:00Z\""), Some(0));
        assert_eq!(number("1e300"), None);
        assert_eq!(number("null"), None);
    }
}
