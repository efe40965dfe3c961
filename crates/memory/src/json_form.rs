//! Writes the complete memory document as JSON and reads it back.
//!
//! Reading accepts files of a later minor version: unknown fields are ignored and
//! reported ([`Reading::unread`]). Anything else that does not fit is an error with the path of the place.

mod form;

use serde::Deserialize;

use crate::document::Memory;

pub(crate) use form::MemoryForm;

/// Name and major version of the form: the value of the field `schema`. A minor version may follow (`/1.2`).
pub const SCHEMA_NAME: &str = "throughline.memory/1";

/// The longest document that is read, in bytes. A memory is a few thousand tokens; this leaves room for a thousand
/// times as much and still bounds what a hostile file can make us hold.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How many unknown fields are reported; the rest are ignored without a report.
const UNREAD_MAX: usize = 100;

/// A memory that was read, and what the file said beyond it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The document.
    pub memory: Memory,
    /// Paths of the fields that were not understood, such as `corrections[3].weight`; at most 100.
    pub unread: Vec<String>,
}

/// Why a text is not a memory document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryReadError {
    /// There is nothing in it.
    #[error("the memory document is empty")]
    Empty,
    /// It is longer than [`DOCUMENT_BYTES_MAX`].
    #[error("the memory document has {bytes} bytes, more than the {bytes_max} that are read")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The JSON stops in the middle.
    #[error("the memory document ends in the middle (line {line}, column {column})")]
    Truncated {
        /// Line of the end, counted from 1.
        line: usize,
        /// Column of the end, counted from 1.
        column: usize,
    },
    /// It is not JSON.
    #[error("the memory document is not JSON: {reason}")]
    NotJson {
        /// What the parser says, with line and column.
        reason: String,
    },
    /// It is JSON, but something else.
    #[error("this is not a memory document: {found}")]
    NotAMemory {
        /// What it is instead, as far as that can be told.
        found: String,
    },
    /// It was written by a later major version.
    #[error("the memory document has schema {found:?}, this program reads {SCHEMA_NAME:?}")]
    OtherSchema {
        /// What the file says.
        found: String,
    },
    /// A field is missing or has a value that it cannot have.
    #[error("{path}: {reason}")]
    Field {
        /// Where, such as `key_decisions[2].origin`.
        path: String,
        /// What is wrong.
        reason: String,
    },
}

impl MemoryReadError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty | Self::Truncated { .. } => {
                "write the memory again from the transcript; the file was not written to its end"
            }
            Self::TooLarge { .. } | Self::NotJson { .. } | Self::NotAMemory { .. } => {
                "give a document in the full JSON form (`--to json`); the other forms cannot be read back"
            }
            Self::OtherSchema { .. } => {
                "update this program, or write the memory again from the transcript"
            }
            Self::Field { .. } => {
                "correct the field, or write the memory again from the transcript; docs/schema/memory.schema.json says what fits"
            }
        }
    }
}

impl Memory {
    /// The document in the full JSON form, indented, with a newline at the end. Reading it back gives the same
    /// document, if its items are in the order of [`Section::ALL`](crate::document::Section::ALL).
    #[must_use]
    pub fn to_json(&self) -> String {
        // Strings, numbers and lists of them always serialise; an empty document would be refused by every reader.
        let mut json = serde_json::to_string_pretty(&MemoryForm::from(self)).unwrap_or_default();
        json.push('\n');
        json
    }

    /// Reads a document in the full JSON form, passing over fields that this version does not know.
    ///
    /// # Errors
    /// See [`MemoryReadError`]; [`read`] also reports the ignored fields.
    pub fn from_json(json: &str) -> Result<Self, MemoryReadError> {
        read(json).map(|reading| reading.memory)
    }
}

/// Reads a document in the full JSON form.
///
/// # Errors
/// The text is empty, too long, not JSON, cut off, something else, of another major version, or a field does not fit.
pub fn read(json: &str) -> Result<Reading, MemoryReadError> {
    let json = json.strip_prefix('\u{feff}').unwrap_or(json);
    if json.len() > DOCUMENT_BYTES_MAX {
        return Err(MemoryReadError::TooLarge {
            bytes: json.len(),
            bytes_max: DOCUMENT_BYTES_MAX,
        });
    }
    if json.trim().is_empty() {
        return Err(MemoryReadError::Empty);
    }
    check_schema(json)?;

    let mut unread = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let mut track = serde_path_to_error::Track::new();
    let form: MemoryForm = serde_ignored::deserialize(
        serde_path_to_error::Deserializer::new(&mut deserializer, &mut track),
        |path| {
            let path = bracketed(&path);
            if path != SIZES && unread.len() < UNREAD_MAX {
                unread.push(path);
            }
        },
    )
    .map_err(|error: serde_json::Error| field_error(&track.path().to_string(), &error))?;
    Ok(Reading {
        memory: form.into_memory()?,
        unread,
    })
}

/// The field that follows from the others, and therefore is written but not read.
const SIZES: &str = "sizes";

/// A path in the form that error paths have: `corrections[3].weight`.
fn bracketed(path: &serde_ignored::Path<'_>) -> String {
    match path {
        serde_ignored::Path::Root => String::new(),
        serde_ignored::Path::Seq { parent, index } => format!("{}[{index}]", bracketed(parent)),
        serde_ignored::Path::Map { parent, key } => {
            let parent = bracketed(parent);
            if parent.is_empty() {
                key.clone()
            } else {
                format!("{parent}.{key}")
            }
        }
        serde_ignored::Path::Some { parent }
        | serde_ignored::Path::NewtypeStruct { parent }
        | serde_ignored::Path::NewtypeVariant { parent } => bracketed(parent),
    }
}

/// What tells a memory document from anything else.
#[derive(Deserialize)]
struct Header {
    schema: Option<String>,
    task: Option<serde::de::IgnoredAny>,
    compacted_at_turn: Option<serde::de::IgnoredAny>,
}

fn check_schema(json: &str) -> Result<(), MemoryReadError> {
    let header: Header = serde_json::from_str(json).map_err(|error| match error.classify() {
        serde_json::error::Category::Eof => MemoryReadError::Truncated {
            line: error.line(),
            column: error.column(),
        },
        serde_json::error::Category::Data => MemoryReadError::NotAMemory {
            found: error.to_string(),
        },
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => {
            MemoryReadError::NotJson {
                reason: error.to_string(),
            }
        }
    })?;
    let Some(schema) = header.schema else {
        let found = if header.task.is_some() && header.compacted_at_turn.is_some() {
            "it is the compact object, which has no ids and no origins"
        } else {
            "it has no field `schema`"
        };
        return Err(MemoryReadError::NotAMemory {
            found: found.to_owned(),
        });
    };
    match schema.strip_prefix(SCHEMA_NAME) {
        Some(minor) if minor.is_empty() || minor.starts_with('.') => Ok(()),
        _ if schema.starts_with("throughline.memory/") => {
            Err(MemoryReadError::OtherSchema { found: schema })
        }
        _ => Err(MemoryReadError::NotAMemory {
            found: format!("its schema is {schema:?}"),
        }),
    }
}

fn field_error(path: &str, error: &serde_json::Error) -> MemoryReadError {
    MemoryReadError::Field {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
