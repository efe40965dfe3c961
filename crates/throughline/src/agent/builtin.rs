//! Tools that come with the library. An agent has none of them unless it is given them.

mod changes;
mod command;
mod compact;
mod files;
mod plan;
mod recall;
mod root;

use super::tools::Tools;

pub use self::changes::{EditFile, WriteFile, edit_file, write_file};
pub use self::command::{RunCommand, run_command};
pub use self::compact::{CompactContext, compact_context};
pub use self::files::{ListFiles, ReadFile, SearchFiles, list_files, read_file, search_files};
pub use self::plan::{UpdatePlan, update_plan};
pub use self::recall::{Recall, recall};
pub use self::root::Root;

/// The names of all of them, in the order in which they are listed.
pub const NAMES: [&str; 9] = [
    "recall",
    "update_plan",
    "compact_context",
    "read_file",
    "list_files",
    "search_files",
    "write_file",
    "edit_file",
    "run_command",
];

/// A tool that was named cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSuchTool {
    /// There is none with this name.
    #[error("there is no tool {name}; there are {}", NAMES.join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// It works inside a folder, and none was given.
    #[error("the tool {name} needs a root folder to work in")]
    NeedsRoot {
        /// The name.
        name: String,
    },
}

impl Tools {
    /// With one of the tools that come with the library, by its name ([`NAMES`]). Those for files and commands work inside
    /// `root`.
    ///
    /// # Errors
    /// If there is no tool with this name, or it needs a root.
    pub fn with_builtin(self, name: &str, root: Option<&Root>) -> Result<Self, NoSuchTool> {
        let rooted = || {
            root.ok_or_else(|| NoSuchTool::NeedsRoot {
                name: name.to_owned(),
            })
        };
        Ok(match name {
            "recall" => self.with(recall()),
            "update_plan" => self.with(update_plan()),
            "compact_context" => self.with(compact_context()),
            "read_file" => self.with(read_file(rooted()?)),
            "list_files" => self.with(list_files(rooted()?)),
            "search_files" => self.with(search_files(rooted()?)),
            "write_file" => self.with(write_file(rooted()?)),
            "edit_file" => self.with(edit_file(rooted()?)),
            "run_command" => self.with(run_command(rooted()?)),
            _ => {
                return Err(NoSuchTool::Unknown {
                    name: name.to_owned(),
                });
            }
        })
    }
}

#[cfg(test)]
mod tests;
