//! Writes JSON text.

use throughline_transcript::json::write_string;

/// An object of fields whose values are JSON already.
pub(super) fn object(fields: &[(&str, &str)]) -> String {
    let size = fields
        .iter()
        .map(|(key, value)| key.len() + value.len() + 4);
    let mut text = String::with_capacity(size.sum::<usize>() + 2);
    text.push('{');
    for (index, (key, value)) in fields.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write_string(key, &mut text);
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    text
}

/// An array of values that are JSON already.
pub(super) fn array<T: AsRef<str>>(values: &[T]) -> String {
    let size = values.iter().map(|value| value.as_ref().len() + 1);
    let mut text = String::with_capacity(size.sum::<usize>() + 2);
    text.push('[');
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(value.as_ref());
    }
    text.push(']');
    text
}

/// Replaces escapes of one half of a surrogate pair by U+FFFD; strict readers refuse them. Says how many there were.
pub(super) fn mend_surrogates(text: String) -> (String, usize) {
    let bytes = text.as_bytes();
    let mut lone = Vec::new();
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += found;
        match surrogate(bytes, at) {
            Some(Half::High) if surrogate(bytes, at + 6) == Some(Half::Low) => at += 12,
            Some(_) => {
                lone.push(at);
                at += 6;
            }
            None => at += 2,
        }
    }
    if lone.is_empty() {
        return (text, 0);
    }
    let mut mended = String::with_capacity(text.len());
    let mut from = 0;
    for at in &lone {
        mended.push_str(&text[from..*at]);
        mended.push_str("\\ufffd");
        from = at + 6;
    }
    mended.push_str(&text[from..]);
    (mended, lone.len())
}

#[derive(PartialEq)]
enum Half {
    High,
    Low,
}

/// Which half of a pair the escape at `at` is.
fn surrogate(bytes: &[u8], at: usize) -> Option<Half> {
    match bytes.get(at..at + 6)? {
        [b'\\', b'u', b'd' | b'D', third, _, _] => match third {
            b'8' | b'9' | b'a' | b'b' | b'A' | b'B' => Some(Half::High),
            b'c'..=b'f' | b'C'..=b'F' => Some(Half::Low),
            _ => None,
        },
        _ => None,
    }
}
