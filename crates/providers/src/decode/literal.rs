//! Strings that arrive in pieces, joined as they were written.

use std::borrow::Cow;

use throughline_transcript::json::{Kind, Raw};

use super::PARTS_MAX;

/// The inside of a JSON string literal that grows.
///
/// The pieces are joined before they are decoded: so escapes stay as the provider wrote them, and two halves of a
/// character (a pair of surrogates) that came in two pieces are one again.
#[derive(Clone, Debug, Default)]
pub(super) struct Literal {
    inner: String,
}

impl Literal {
    /// Appends a string value; anything else is nothing.
    pub(super) fn push(&mut self, value: &Raw) {
        if value.kind() == Kind::String {
            let literal = value.as_str();
            self.inner
                .push_str(literal.get(1..literal.len() - 1).unwrap_or_default());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }

    /// The literal, quotes included.
    pub(super) fn quoted(&self) -> String {
        format!("\"{}\"", self.inner)
    }

    /// The literal as a value.
    pub(super) fn raw(&self) -> Option<Raw> {
        Raw::parse(self.quoted()).ok()
    }

    /// The characters.
    pub(super) fn decode(&self) -> String {
        self.raw()
            .and_then(|raw| raw.as_text())
            .map(|text| text.decode().into_owned())
            .unwrap_or_default()
    }

    pub(super) fn is_blank(&self) -> bool {
        self.raw()
            .and_then(|raw| raw.as_text())
            .is_none_or(|text| text.is_blank())
    }
}

/// Whether the value is a string with a visible character.
pub(super) fn says_something(value: Option<&Raw>) -> bool {
    value
        .and_then(Raw::as_text)
        .is_some_and(|text| !text.is_blank())
}

/// Whether a text is JSON: the input of a call that did not end is not.
pub(super) fn is_json(text: &str) -> bool {
    Raw::parse(text.to_owned()).is_ok()
}

/// A string field, decoded; empty if there is none.
pub(super) fn string(object: &Raw, name: &str) -> String {
    object
        .text_field(name)
        .map(|text| text.decode().into_owned())
        .unwrap_or_default()
}

/// A string field that is not empty.
pub(super) fn filled(object: &Raw, name: &str) -> Option<String> {
    object.string_field(name).filter(|text| !text.is_empty())
}

/// The names of the fields of an object with their values.
pub(super) fn fields(object: &Raw) -> impl Iterator<Item = (String, Raw)> {
    object
        .object()
        .map(|(name, value)| (Cow::into_owned(name.decode()), value))
}

/// Sets a field of a list of fields. Beyond [`PARTS_MAX`] new ones are let go.
pub(super) fn assign<T>(list: &mut Vec<(String, T)>, name: &str, value: T) {
    if let Some((_, known)) = list.iter_mut().find(|(known, _)| known == name) {
        *known = value;
    } else if list.len() < PARTS_MAX {
        list.push((name.to_owned(), value));
    }
}
