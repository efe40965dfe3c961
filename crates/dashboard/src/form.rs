//! Queries and forms.

use std::borrow::Cow;

/// The fields of a query or of a form.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads `a=b&c=d`.
    pub(crate) fn read(text: &[u8]) -> Self {
        let fields = form_urlencoded::parse(text);
        Self(
            fields
                .map(|(name, value)| (own(name), own(value)))
                .collect(),
        )
    }

    /// The field of that name.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The field without white space around it, if it is not empty.
    pub(crate) fn filled(&self, name: &str) -> Option<&str> {
        self.text(name)
            .map(str::trim)
            .filter(|text| !text.is_empty())
    }

    /// The field as a number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.filled(name)?.parse().ok()
    }
}

fn own(text: Cow<'_, str>) -> String {
    text.into_owned()
}
