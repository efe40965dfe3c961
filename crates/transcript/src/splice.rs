//! Rebuilds a body from its own slices.
//!
//! A [`Splice`] collects changes to a JSON text and writes the text with them. Everything else stays the same byte for
//! byte: white space, order and repetition of keys, escapes, spelling of numbers. Without a change the text
//! itself comes back. It knows JSON and nothing of wire formats.
//!
//! ```
//! use throughline_transcript::json::Raw;
//! use throughline_transcript::splice::Splice;
//!
//! let body = Raw::parse(r#"{"model": "m", "messages": [1e3, 2, 3], "n": 1}"#)?;
//! let mut splice = Splice::new(&body);
//! splice.replace_array_prefix("messages", 2, &[Raw::parse("0")?])?;
//! splice.set_field("n", Raw::parse("7")?)?;
//! assert_eq!(splice.finish()?, r#"{"model": "m", "messages": [0,3], "n": 7}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use bytestring::ByteString;

use crate::json::{Kind, Raw, write_string};

/// Why a change cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpliceError {
    /// The value is not a slice of the text that is spliced.
    #[error("the value is not part of the text")]
    NotPart,
    /// A field is to be changed in something that is no object.
    #[error("not an object")]
    NotAnObject,
    /// The field does not hold an array, or the value is none.
    #[error("not an array: {name}")]
    NotAnArray {
        /// Name of the field; empty for a value that was given itself.
        name: String,
    },
    /// More elements are to be replaced than there are.
    #[error("{count} elements are to be replaced of {len}")]
    TooFewElements {
        /// How many were asked for.
        count: usize,
        /// How many there are.
        len: usize,
    },
    /// Two changes touch the same bytes, for example a value and a field inside it.
    #[error("two changes overlap at byte {offset}")]
    Overlap {
        /// Where, in bytes from the start of the text.
        offset: usize,
    },
}

/// Changes to one JSON text.
#[derive(Clone, Debug)]
pub struct Splice {
    text: Raw,
    values: Vec<(Range<usize>, ByteString)>,
    /// Changes of objects and arrays, by where these start.
    objects: BTreeMap<usize, ObjectChange>,
    arrays: BTreeMap<usize, ArrayChange>,
}

#[derive(Clone, Debug)]
struct ObjectChange {
    object: Raw,
    set: Vec<(String, Raw)>,
    removed: Vec<String>,
}

#[derive(Clone, Debug)]
struct ArrayChange {
    array: Raw,
    dropped: usize,
    first: Vec<Raw>,
    last: Vec<Raw>,
}

impl Splice {
    /// Begins with no change.
    #[must_use]
    pub fn new(text: &Raw) -> Self {
        Self {
            text: text.clone(),
            values: Vec::new(),
            objects: BTreeMap::new(),
            arrays: BTreeMap::new(),
        }
    }

    /// Puts `with` in the place of `part`, a value found in the text.
    ///
    /// # Errors
    /// [`SpliceError::NotPart`] if `part` is not a slice of the text.
    pub fn replace(&mut self, part: &Raw, with: Raw) -> Result<&mut Self, SpliceError> {
        let range = self.range_of(part)?;
        self.values.push((range, with.as_bytestring().clone()));
        Ok(self)
    }

    /// Sets a field of the outermost object. See [`Splice::set_field_of`].
    ///
    /// # Errors
    /// [`SpliceError::NotAnObject`] if the text is no object.
    pub fn set_field(&mut self, key: &str, value: Raw) -> Result<&mut Self, SpliceError> {
        self.set_field_of(&self.text.clone(), key, value)
    }

    /// Removes a field of the outermost object. See [`Splice::remove_field_of`].
    ///
    /// # Errors
    /// [`SpliceError::NotAnObject`] if the text is no object.
    pub fn remove_field(&mut self, key: &str) -> Result<&mut Self, SpliceError> {
        self.remove_field_of(&self.text.clone(), key)
    }

    /// Sets a field of an object found in the text: its last value if it is there, since that is the one that counts,
    /// else behind the other fields.
    ///
    /// # Errors
    /// [`SpliceError::NotAnObject`] and [`SpliceError::NotPart`] for something else.
    pub fn set_field_of(
        &mut self,
        object: &Raw,
        key: &str,
        value: Raw,
    ) -> Result<&mut Self, SpliceError> {
        let change = self.object_change(object)?;
        change.removed.retain(|name| name != key);
        match change.set.iter_mut().find(|(name, _)| name == key) {
            Some((_, set)) => *set = value,
            None => change.set.push((key.to_owned(), value)),
        }
        Ok(self)
    }

    /// Removes every occurrence of a field from an object found in the text, with the adjacent comma.
    ///
    /// # Errors
    /// [`SpliceError::NotAnObject`] and [`SpliceError::NotPart`] for something else.
    pub fn remove_field_of(&mut self, object: &Raw, key: &str) -> Result<&mut Self, SpliceError> {
        let change = self.object_change(object)?;
        change.set.retain(|(name, _)| name != key);
        if !change.removed.iter().any(|name| name == key) {
            change.removed.push(key.to_owned());
        }
        Ok(self)
    }

    /// Puts `inserted` in the place of the first `count` elements of the array in field `key` of the outermost object.
    ///
    /// # Errors
    /// [`SpliceError::NotAnArray`] if there is no such array, [`SpliceError::TooFewElements`] if it is shorter.
    pub fn replace_array_prefix(
        &mut self,
        key: &str,
        count: usize,
        inserted: &[Raw],
    ) -> Result<&mut Self, SpliceError> {
        let array = self.array_field(key)?;
        self.replace_prefix_of(&array, count, inserted)
    }

    /// Puts `inserted` in the place of the first `count` elements of an array found in the text.
    ///
    /// # Errors
    /// As for [`Splice::replace_array_prefix`].
    pub fn replace_prefix_of(
        &mut self,
        array: &Raw,
        count: usize,
        inserted: &[Raw],
    ) -> Result<&mut Self, SpliceError> {
        let len = array.array().take(count).count();
        if len < count {
            return Err(SpliceError::TooFewElements { count, len });
        }
        let change = self.array_change(array, "")?;
        change.dropped = count;
        change.first = inserted.to_vec();
        Ok(self)
    }

    /// Adds elements behind the last of the array in field `key` of the outermost object.
    ///
    /// # Errors
    /// [`SpliceError::NotAnArray`] if there is no such array.
    pub fn append_to_array(
        &mut self,
        key: &str,
        elements: &[Raw],
    ) -> Result<&mut Self, SpliceError> {
        let array = self.array_field(key)?;
        let change = self.array_change(&array, key)?;
        change.last.extend_from_slice(elements);
        Ok(self)
    }

    /// The text with all changes.
    ///
    /// # Errors
    /// [`SpliceError::Overlap`] if two changes touch the same bytes.
    pub fn finish(self) -> Result<ByteString, SpliceError> {
        let mut edits = self.values.clone();
        for (start, change) in &self.objects {
            change.edits(*start, &mut edits);
        }
        for (start, change) in &self.arrays {
            change.edits(*start, &mut edits);
        }
        if edits.is_empty() {
            return Ok(self.text.as_bytestring().clone());
        }
        // The sort is stable, so insertions at the same place keep the order in which they were requested.
        edits.sort_by_key(|(range, _)| (range.start, range.end));
        let text = self.text.as_str();
        let added: usize = edits.iter().map(|(_, with)| with.len()).sum();
        let mut out = String::with_capacity(text.len() + added);
        let mut at = 0;
        for (range, with) in edits {
            let Some(unchanged) = text.get(at..range.start) else {
                return Err(SpliceError::Overlap {
                    offset: range.start,
                });
            };
            out.push_str(unchanged);
            out.push_str(&with);
            at = range.end;
        }
        out.push_str(text.get(at..).unwrap_or_default());
        Ok(out.into())
    }

    fn range_of(&self, part: &Raw) -> Result<Range<usize>, SpliceError> {
        range_in(&self.text, part).ok_or(SpliceError::NotPart)
    }

    fn array_field(&self, key: &str) -> Result<Raw, SpliceError> {
        self.text
            .field(key)
            .filter(|value| value.kind() == Kind::Array)
            .ok_or_else(|| SpliceError::NotAnArray {
                name: key.to_owned(),
            })
    }

    fn object_change(&mut self, object: &Raw) -> Result<&mut ObjectChange, SpliceError> {
        if object.kind() != Kind::Object {
            return Err(SpliceError::NotAnObject);
        }
        let start = self.range_of(object)?.start;
        Ok(self.objects.entry(start).or_insert_with(|| ObjectChange {
            object: object.clone(),
            set: Vec::new(),
            removed: Vec::new(),
        }))
    }

    fn array_change(&mut self, array: &Raw, name: &str) -> Result<&mut ArrayChange, SpliceError> {
        if array.kind() != Kind::Array {
            return Err(SpliceError::NotAnArray {
                name: name.to_owned(),
            });
        }
        let start = self.range_of(array)?.start;
        Ok(self.arrays.entry(start).or_insert_with(|| ArrayChange {
            array: array.clone(),
            dropped: 0,
            first: Vec::new(),
            last: Vec::new(),
        }))
    }
}

impl ObjectChange {
    fn edits(&self, start: usize, edits: &mut Vec<(Range<usize>, ByteString)>) {
        let place = |value: &Raw| range_in(&self.object, value).unwrap_or_default();
        let fields: Vec<(String, Range<usize>)> = self
            .object
            .object()
            .map(|(key, value)| (key.decode().into_owned(), place(&value)))
            .collect();
        let is_removed = |key: &str| self.removed.iter().any(|name| name == key);
        let first_kept = fields.iter().position(|(key, _)| !is_removed(key));
        let mut previous_end = 1;
        for (index, (key, range)) in fields.iter().enumerate() {
            let is_leading = first_kept.is_none_or(|kept| index < kept);
            if is_removed(key) && !is_leading {
                // With the comma before it.
                push(edits, start, previous_end..range.end, "".into());
            }
            previous_end = range.end;
        }
        match first_kept {
            // With the commas behind them, up to the last.
            Some(kept) if kept > 0 => {
                let end = fields[kept - 1].1.end;
                let rest = &self.object.as_str().as_bytes()[end..];
                let comma = memchr::memchr(b',', rest).unwrap_or_default();
                push(edits, start, 1..end + comma + 1, "".into());
            }
            None if !fields.is_empty() => push(edits, start, 1..previous_end, "".into()),
            _ => {}
        }
        let mut is_empty = first_kept.is_none();
        for (key, value) in &self.set {
            let found = fields.iter().rfind(|(name, _)| name == key);
            if let Some((_, range)) = found {
                push(edits, start, range.clone(), value.as_bytestring().clone());
                continue;
            }
            let mut field = String::with_capacity(key.len() + value.len() + 4);
            if !is_empty {
                field.push(',');
            }
            is_empty = false;
            write_string(key, &mut field);
            field.push(':');
            field.push_str(value.as_str());
            push(edits, start, previous_end..previous_end, field.into());
        }
    }
}

impl ArrayChange {
    fn edits(&self, start: usize, edits: &mut Vec<(Range<usize>, ByteString)>) {
        let place = |value: &Raw| range_in(&self.array, value).unwrap_or_default();
        let join = |values: &[Raw]| {
            let values: Vec<&str> = values.iter().map(Raw::as_str).collect();
            values.join(",")
        };
        let mut dropped_end = 1;
        let mut first_kept = None;
        let mut last_end = 1;
        for (index, element) in self.array.array().enumerate() {
            let range = place(&element);
            if index < self.dropped {
                dropped_end = range.end;
            } else if first_kept.is_none() {
                first_kept = Some(range.start);
            }
            last_end = range.end;
        }
        if self.dropped > 0 || !self.first.is_empty() {
            let mut text = join(&self.first);
            match first_kept {
                // The text before the first element stays if nothing is removed there.
                Some(kept) => {
                    if !text.is_empty() {
                        text.push(',');
                    }
                    let from = if self.dropped == 0 { kept } else { 1 };
                    push(edits, start, from..kept, text.into());
                }
                None => push(edits, start, 1..dropped_end, text.into()),
            }
        }
        if !self.last.is_empty() {
            let mut text = join(&self.last);
            if first_kept.is_some() || !self.first.is_empty() {
                text.insert(0, ',');
            }
            push(edits, start, last_end..last_end, text.into());
        }
    }
}

fn push(
    edits: &mut Vec<(Range<usize>, ByteString)>,
    start: usize,
    range: Range<usize>,
    with: ByteString,
) {
    edits.push((start + range.start..start + range.end, with));
}

/// The range of `part` in `whole`, if it is a slice of it. Slices share their bytes, so the addresses tell.
fn range_in(whole: &Raw, part: &Raw) -> Option<Range<usize>> {
    let start = part
        .as_str()
        .as_ptr()
        .addr()
        .checked_sub(whole.as_str().as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    (end <= whole.len()).then_some(start..end)
}

#[cfg(test)]
mod tests;
