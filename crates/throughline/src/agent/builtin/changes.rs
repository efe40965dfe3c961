//! Files: written and edited.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::root::{Root, blocking};
use crate::agent::approval::Approval;
use crate::agent::tool::{CallContext, Tool, ToolError};

/// The tool `write_file`.
#[derive(Clone, Debug)]
pub struct WriteFile {
    root: Root,
}

/// The tool `edit_file`.
#[derive(Clone, Debug)]
pub struct EditFile {
    root: Root,
}

/// Writes whole files. Needs approval.
#[must_use]
pub fn write_file(root: &Root) -> WriteFile {
    WriteFile { root: root.clone() }
}

/// Replaces text in files. Needs approval.
#[must_use]
pub fn edit_file(root: &Root) -> EditFile {
    EditFile { root: root.clone() }
}

/// What is to be written.
#[derive(Deserialize, JsonSchema)]
#[schemars(description = "")]
pub struct WriteInput {
    /// The file, relative to the working folder. Folders that are missing are made.
    path: String,
    /// All of its new content.
    content: String,
}

impl Tool for WriteFile {
    type Input = WriteInput;

    fn name(&self) -> &str {
        "write_file"
    }

    fn description(&self) -> &str {
        "Writes a whole file: a new one, or a replacement of an old one. To change a part of a file, edit it."
    }

    fn approval(&self, input: &WriteInput) -> Approval {
        Approval::Needed {
            summary: format!("write {} ({} bytes)", input.path, input.content.len()),
        }
    }

    async fn call(&self, input: WriteInput, _: CallContext) -> Result<String, ToolError> {
        let root = self.root.clone();
        blocking(move || {
            let place = root.place(&input.path)?;
            let folder = root.folder();
            let is_new = !folder.try_exists(&place).unwrap_or(false);
            if let Some(parent) = place.parent().filter(|parent| *parent != Path::new("")) {
                folder
                    .create_dir_all(parent)
                    .map_err(|error| root.failed(parent, &error))?;
            }
            folder
                .write(&place, &input.content)
                .map_err(|error| root.failed(&place, &error))?;
            Ok(format!(
                "{} {} ({} lines, {} bytes)",
                if is_new { "created" } else { "replaced" },
                place.display(),
                input.content.lines().count(),
                input.content.len()
            ))
        })
        .await
    }
}

/// What is to be changed.
#[derive(Deserialize, JsonSchema)]
#[schemars(description = "")]
pub struct EditInput {
    /// The file, relative to the working folder.
    path: String,
    /// The text to replace, exactly as it is in the file, with enough around it to be unique.
    old_text: String,
    /// The text that takes its place.
    new_text: String,
    /// Whether to replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl Tool for EditFile {
    type Input = EditInput;

    fn name(&self) -> &str {
        "edit_file"
    }

    fn description(&self) -> &str {
        "Replaces a text in a file by another one."
    }

    fn approval(&self, input: &EditInput) -> Approval {
        let (old, new) = (input.old_text.len(), input.new_text.len());
        Approval::Needed {
            summary: format!("edit {} ({old} bytes become {new})", input.path),
        }
    }

    async fn call(&self, input: EditInput, _: CallContext) -> Result<String, ToolError> {
        let root = self.root.clone();
        blocking(move || {
            let place = root.place(&input.path)?;
            let text = String::from_utf8(root.read(&place)?).map_err(|_| {
                ToolError::new(format!(
                    "{} is not UTF-8 text and cannot be edited",
                    place.display()
                ))
            })?;
            let (edited, count) = edit(&text, &input)?;
            root.folder()
                .write(&place, edited)
                .map_err(|error| root.failed(&place, &error))?;
            Ok(format!(
                "edited {} ({count} {})",
                place.display(),
                if count == 1 { "place" } else { "places" }
            ))
        })
        .await
    }
}

/// The edited text, and in how many places.
fn edit(text: &str, input: &EditInput) -> Result<(String, usize), ToolError> {
    if input.old_text.is_empty() {
        return Err(ToolError::new(
            "old_text is empty; to make a file, write it",
        ));
    }
    let (mut old, mut new) = (input.old_text.clone(), input.new_text.clone());
    if !text.contains(&old) && text.contains("\r\n") {
        // Models are shown lines and write their ends as they are used to.
        old = old.replace("\r\n", "\n").replace('\n', "\r\n");
        new = new.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    match text.matches(&old).count() {
        0 => Err(ToolError::new(
            "old_text is not in the file; white space counts. Read the file again",
        )),
        1 => Ok((text.replacen(&old, &new, 1), 1)),
        count if input.replace_all => Ok((text.replace(&old, &new), count)),
        count => {
            let lines: Vec<String> = text
                .match_indices(&old)
                .take(20)
                .map(|(at, _)| (text[..at].matches('\n').count() + 1).to_string())
                .collect();
            Err(ToolError::new(format!(
                "old_text is in the file {count} times, in lines {}; give more of what is around it, or set \
                 replace_all",
                lines.join(", ")
            )))
        }
    }
}
