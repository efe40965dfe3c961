//! The shape of a JSON file, from its start only: enough to distinguish formats before reading any of them.

use throughline_transcript::json::closing_quote;

/// The keys and short values at the start of a JSON file. Arrays are searched too, and several values in a row (JSON
/// Lines) count as one list, so that a key is found in the same place in all three layouts.
pub(crate) struct Glance<'a> {
    entries: Vec<Entry<'a>>,
    /// Number of values at the root, arrays looked through, as far as was looked.
    pub(crate) roots: usize,
    /// Whether the file is one array.
    pub(crate) is_list: bool,
}

struct Entry<'a> {
    parent: Option<usize>,
    key: &'a str,
    /// The inside of a string, or the text of another plain value; empty for objects and arrays.
    value: &'a str,
}

impl<'a> Glance<'a> {
    /// Looks at `text`, which may be torn off. `None` if that is no object or array.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        let text = text.trim_start();
        if !text.starts_with(['{', '[']) {
            return None;
        }
        let mut glance = Self {
            entries: Vec::new(),
            roots: 0,
            is_list: text.starts_with('['),
        };
        glance.scan(text);
        Some(glance)
    }

    /// Whether an object at the root has the field `key`.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.values(&[key]).next().is_some()
    }

    /// Whether there is something at `path`, a key for each level of objects.
    pub(crate) fn has_path(&self, path: &[&str]) -> bool {
        self.values(path).next().is_some()
    }

    /// Whether one of the values at `path` is accepted by `is_wanted`.
    pub(crate) fn any(&self, path: &[&str], is_wanted: impl Fn(&str) -> bool) -> bool {
        self.values(path).any(is_wanted)
    }

    /// The values at `path`, as written.
    pub(crate) fn values<'b>(&'b self, path: &'b [&'b str]) -> impl Iterator<Item = &'a str> + 'b {
        self.entries
            .iter()
            .filter(move |entry| self.is_at(entry, path))
            .map(|entry| entry.value)
    }

    fn is_at(&self, entry: &Entry<'_>, path: &[&str]) -> bool {
        let mut entry = entry;
        for (left, key) in path.iter().enumerate().rev() {
            if entry.key != *key {
                return false;
            }
            match (left, entry.parent) {
                (0, None) => return true,
                (0, Some(_)) | (_, None) => return false,
                (_, Some(parent)) => entry = &self.entries[parent],
            }
        }
        false
    }

    fn scan(&mut self, text: &'a str) {
        // The open objects and arrays: for each the entry whose value it is, and whether it is an object.
        let mut open: Vec<(Option<usize>, bool)> = Vec::new();
        let mut key: Option<&'a str> = None;
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let (parent, in_object) = open.last().copied().unwrap_or((None, false));
            match byte {
                b'{' | b'[' => {
                    if byte == b'{' && parent.is_none() && key.is_none() {
                        self.roots += 1;
                    }
                    let owner = match key.take() {
                        Some(key) => {
                            self.entries.push(Entry {
                                parent,
                                key,
                                value: "",
                            });
                            Some(self.entries.len() - 1)
                        }
                        None => parent,
                    };
                    open.push((owner, byte == b'{'));
                    at += 1;
                }
                b'}' | b']' => {
                    open.pop();
                    key = None;
                    at += 1;
                }
                b'"' => {
                    let end = closing_quote(bytes, at).unwrap_or(bytes.len());
                    let inside = text.get(at + 1..end).unwrap_or_default();
                    at = end + 1;
                    if let Some(key) = key.take() {
                        self.entries.push(Entry {
                            parent,
                            key,
                            value: inside,
                        });
                    } else if in_object && end < bytes.len() {
                        key = Some(inside);
                    }
                }
                b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => at += 1,
                _ => {
                    let length = bytes[at..]
                        .iter()
                        .position(|byte| matches!(byte, b',' | b'}' | b']' | b'\n' | b'"' | b' '))
                        .unwrap_or(bytes.len() - at)
                        .max(1);
                    if let Some(key) = key.take() {
                        self.entries.push(Entry {
                            parent,
                            key,
                            value: text.get(at..at + length).unwrap_or_default(),
                        });
                    }
                    at += length;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_every_layout() {
        for text in [
            r#"{"a": {"b": ["x", {"c": 1}]}, "s": "v"}"#,
            r#"[{"a": [{"b": {"c": 1}}]}, {"s": "v"}]"#,
            "{\"a\": {\"b\": {\"c\": 1}}}\n{\"s\": \"v\"}\n",
        ] {
            let glance = Glance::of(text).unwrap();
            assert!(glance.has("a") && glance.has("s"), "{text}");
            assert!(glance.has_path(&["a", "b", "c"]), "{text}");
            assert!(!glance.has("b") && !glance.has_path(&["b", "c"]), "{text}");
            assert!(glance.any(&["s"], |value| value == "v"), "{text}");
        }
    }

    #[test]
    fn roots_are_counted() {
        assert_eq!(Glance::of("{}\n{}\n{\"a\":{}}").unwrap().roots, 3);
        assert_eq!(Glance::of("[{}, {\"a\": [{}]}]").unwrap().roots, 2);
        assert_eq!(Glance::of("[[{}]]").unwrap().roots, 1);
    }

    #[test]
    fn text_is_no_json() {
        assert!(Glance::of("hello {").is_none());
    }
}
