//! The log of changes: a line with the whole state (`kind` 0), and lines that set a value (1), lengthen a list (2) or
//! delete a value (3) at a path of keys.

use std::collections::BTreeMap;

use throughline_transcript::json::tape::View;
use throughline_transcript::json::{Kind, Raw, write_string};

use crate::lines::Lines;
use crate::source::{SkippedPart, SourceText};

/// How deep a change may reach.
const PATH_KEYS_MAX: usize = 32;

/// How sure it is that a record is a line of such a log.
pub(super) fn certainty(record: View<'_>) -> u8 {
    let Some(kind) = record.field("kind").and_then(View::as_u64) else {
        return 0;
    };
    let state = record.field("v");
    let is_state = state.is_some_and(|state| {
        state.field("requests").is_some() || state.field("sessionId").is_some()
    });
    let is_request = record
        .field("k")
        .and_then(|path| path.elements().next())
        .is_some_and(|key| key.decode().as_deref() == Some("requests"));
    match kind {
        0 if is_state => 97,
        1..=3 if is_request => 90,
        _ => 0,
    }
}

/// The document after all changes; `None` if `source` is no log.
pub(super) fn replay(source: &SourceText, skipped: &mut Vec<SkippedPart>) -> Option<String> {
    let mut state: Option<Node> = None;
    let mut lines = Lines::new(source, &[]);
    let mut is_first = true;
    while lines.advance().is_some() {
        let record = lines.record();
        let kind = record.field("kind").and_then(View::as_u64);
        let value = record.field("v").map(View::raw);
        if std::mem::take(&mut is_first) && kind.is_none() {
            return None;
        }
        let is_applied = match kind {
            Some(0) => value.is_some_and(|value| {
                state = Some(Node::Whole(value));
                true
            }),
            // The line with the state is lost: what comes later is still there.
            Some(1..=3) => state
                .get_or_insert_with(|| Node::Fields(BTreeMap::new()))
                .change(record, value),
            _ => false,
        };
        if !is_applied {
            lines.reject("not a change of the chat");
        }
    }
    let mut text = String::new();
    state?.write(&mut text);
    skipped.extend(lines.into_skipped());
    Some(text)
}

/// A value of the state, taken apart as far as changes reached into it.
enum Node {
    Whole(Raw),
    Fields(BTreeMap<String, Node>),
    List(Vec<Node>),
}

impl Node {
    fn null() -> Self {
        Self::Whole(Raw::string(""))
    }

    fn change(&mut self, record: View<'_>, value: Option<Raw>) -> bool {
        let path: Vec<View<'_>> = record
            .field("k")
            .into_iter()
            .flat_map(View::elements)
            .take(PATH_KEYS_MAX + 1)
            .collect();
        if path.len() > PATH_KEYS_MAX {
            return false;
        }
        let mut node = self;
        for key in &path {
            match node.at(*key) {
                Some(inner) => node = inner,
                None => return false,
            }
        }
        match (record.field("kind").and_then(View::as_u64), value) {
            (Some(2), value) => {
                let keep = record.field("i").and_then(View::as_u64);
                node.lengthen(keep, value)
            }
            (Some(1), Some(value)) => {
                *node = Self::Whole(value);
                true
            }
            _ => {
                *node = Self::null();
                true
            }
        }
    }

    /// The value under a key or at an index, made if there is none. `None` if it cannot be there.
    fn at(&mut self, key: View<'_>) -> Option<&mut Self> {
        self.open();
        match (self, key.decode(), key.as_u64()) {
            (Self::Fields(fields), Some(key), _) => {
                Some(fields.entry(key.into_owned()).or_insert_with(Self::null))
            }
            (Self::List(list), None, Some(index)) => {
                let index = usize::try_from(index).ok()?;
                if index == list.len() {
                    list.push(Self::null());
                }
                list.get_mut(index)
            }
            _ => None,
        }
    }

    /// Takes a value apart.
    fn open(&mut self) {
        let Self::Whole(raw) = self else {
            return;
        };
        *self = match raw.kind() {
            Kind::Object => Self::Fields(
                raw.object()
                    .map(|(key, value)| (key.decode().into_owned(), Self::Whole(value)))
                    .collect(),
            ),
            Kind::Array => Self::List(raw.array().map(Self::Whole).collect()),
            _ => return,
        };
    }

    /// Cuts a list to `keep` elements and adds those of `value`.
    fn lengthen(&mut self, keep: Option<u64>, value: Option<Raw>) -> bool {
        self.open();
        if let Self::Whole(raw) = self {
            // A list that was not there so far.
            if !matches!(raw.as_str(), "null" | "\"\"") {
                return false;
            }
            *self = Self::List(Vec::new());
        }
        let Self::List(list) = self else {
            return false;
        };
        if let Some(keep) = keep.and_then(|keep| usize::try_from(keep).ok()) {
            list.truncate(keep);
        }
        if let Some(value) = value {
            match value.kind() {
                Kind::Array => list.extend(value.array().map(Self::Whole)),
                _ => list.push(Self::Whole(value)),
            }
        }
        true
    }

    /// Nodes are at most as deep as a path is long.
    fn write(&self, text: &mut String) {
        match self {
            Self::Whole(raw) => text.push_str(raw.as_str()),
            Self::Fields(fields) => {
                text.push('{');
                for (number, (key, value)) in fields.iter().enumerate() {
                    if number > 0 {
                        text.push(',');
                    }
                    write_string(key, text);
                    text.push(':');
                    value.write(text);
                }
                text.push('}');
            }
            Self::List(list) => {
                text.push('[');
                for (number, value) in list.iter().enumerate() {
                    if number > 0 {
                        text.push_str(",\n");
                    }
                    value.write(text);
                }
                text.push(']');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], expected: Option<&str>, skipped: usize) {
        let mut found = Vec::new();
        let text = replay(&SourceText::from_text(lines.join("\n")), &mut found);
        assert_eq!(text.map(|text| text.replace('\n', "")).as_deref(), expected);
        assert_eq!(found.len(), skipped, "{found:?}");
    }

    #[test]
    fn changes_are_applied_in_order() {
        let start = r#"{"kind":0,"v":{"a":[1,2],"b":{"c":"x"}}}"#;
        check(&[start], Some(r#"{"a":[1,2],"b":{"c":"x"}}"#), 0);
        check(
            &[start, r#"{"kind":1,"k":["b","c"],"v":"y"}"#],
            Some(r#"{"a":[1,2],"b":{"c":"y"}}"#),
            0,
        );
        check(
            &[start, r#"{"kind":1,"k":["a",1],"v":5}"#],
            Some(r#"{"a":[1,5],"b":{"c":"x"}}"#),
            0,
        );
        check(
            &[start, r#"{"kind":2,"k":["a"],"v":[3,4]}"#],
            Some(r#"{"a":[1,2,3,4],"b":{"c":"x"}}"#),
            0,
        );
        check(
            &[start, r#"{"kind":2,"k":["a"],"i":1,"v":[9]}"#],
            Some(r#"{"a":[1,9],"b":{"c":"x"}}"#),
            0,
        );
        check(
            &[start, r#"{"kind":2,"k":["n"],"v":[9]}"#],
            Some(r#"{"a":[1,2],"b":{"c":"x"},"n":[9]}"#),
            0,
        );
        check(
            &[start, r#"{"kind":3,"k":["b"]}"#],
            Some(r#"{"a":[1,2],"b":""}"#),
            0,
        );
        check(&[start, r#"{"kind":0,"v":{}}"#], Some("{}"), 0);
    }

    #[test]
    fn what_cannot_be_applied_is_reported() {
        let start = r#"{"kind":0,"v":{"a":[1]}}"#;
        check(
            &[start, r#"{"kind":1,"k":["a",7],"v":5}"#],
            Some(r#"{"a":[1]}"#),
            1,
        );
        check(
            &[start, r#"{"kind":1,"k":["a","x"],"v":5}"#],
            Some(r#"{"a":[1]}"#),
            1,
        );
        check(
            &[start, r#"{"kind":9}"#, "{\"kind\":"],
            Some(r#"{"a":[1]}"#),
            2,
        );
        check(
            &[r#"{"kind":2,"k":["requests"],"v":[1]}"#],
            Some(r#"{"requests":[1]}"#),
            0,
        );
        check(&[r#"{"requests":[]}"#], None, 0);
        check(&[""], None, 0);
    }
}
