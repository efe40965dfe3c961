//! Points in time, as session files write them.

use crate::json::tape::View;

/// Milliseconds since 1970 of a time in RFC 3339 form (`2026-11-29T10:00:00.000Z`).
pub(crate) fn from_rfc3339(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>()
        .ok()
        .map(|time| time.as_millisecond())
}

/// Milliseconds since 1970 of a time that is written as text or as a number of milliseconds.
pub(crate) fn from_value(value: View<'_>) -> Option<i64> {
    match value.string() {
        Some(text) => from_rfc3339(&text),
        None => value
            .as_f64()
            .filter(|number| number.is_finite())
            .map(|number| number as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_milliseconds_since_1970() {
        let check = |text, expected| assert_eq!(from_rfc3339(text), expected, "{text}");
        check("1970-01-01T00:00:01.5Z", Some(1500));
        check("2026-01-02T03:04:05.678+01:00", Some(1_767_319_445_678));
        check("1969-12-31T23:59:59Z", Some(-1000));
        check("yesterday", None);
    }
}
