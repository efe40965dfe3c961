//! Points in time as the formats write them.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::formats::times;
use crate::json::{Kind, Raw};

/// Milliseconds since 1970 UTC of a date and time in ISO form. Without a zone it is taken for UTC, since the zone of
/// the machine that wrote it is not known.
pub(crate) fn at_ms(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Some(moment) = times::from_rfc3339(text) {
        return Some(moment);
    }
    let moment: DateTime = text.parse().ok()?;
    let moment = TimeZone::UTC.to_timestamp(moment).ok()?;
    Some(moment.as_millisecond())
}

/// Milliseconds since 1970 UTC of a JSON value: a date and time as string, or seconds since 1970 as number.
pub(crate) fn raw_at_ms(value: &Raw) -> Option<i64> {
    match value.kind() {
        Kind::String => at_ms(&value.as_text()?.decode()),
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
        assert_eq!(at_ms("1970-01-01T00:00:01Z"), Some(1000));
        assert_eq!(at_ms("1970-01-01 01:00:00+01:00"), Some(0));
        assert_eq!(at_ms("1970-01-01 00:00:02"), Some(2000));
        assert_eq!(at_ms("1970-01-01T00:00:02.250000"), Some(2250));
        assert_eq!(at_ms("yesterday"), None);
    }

    #[test]
    fn seconds_are_read_from_numbers() {
        let number = |text: &str| raw_at_ms(&Raw::parse(text).unwrap());
        assert_eq!(number("1.5"), Some(1500));
        assert_eq!(number("\"1970-01-01T00:00:00Z\""), Some(0));
        assert_eq!(number("1e300"), None);
        assert_eq!(number("null"), None);
    }
}
