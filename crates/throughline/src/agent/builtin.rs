//! Tools that come with the library. An agent has only the tools that it is given.
//!
//! The tools for files and commands need the feature `tools`.

#[cfg(feature = "tools")]
mod changes;
#[cfg(feature = "tools")]
mod command;
mod compact;
#[cfg(feature = "tools")]
mod files;
mod plan;
mod recall;
#[cfg(feature = "tools")]
mod root;

#[cfg(feature = "tools")]
use super::tools::Tools;

#[cfg(feature = "tools")]
pub use self::changes::{EditFile, WriteFile, edit_file, write_file};
#[cfg(feature = "tools")]
pub use self::command::{RunCommand, run_command};
pub use self::compact::{CompactContext, compact_context};
#[cfg(feature = "tools")]
pub use self::files::{ListFiles, ReadFile, SearchFiles, list_files, read_file, search_files};
pub use self::plan::{UpdatePlan, update_plan};
pub use self::recall::{Recall, recall};
#[cfg(feature = "tools")]
pub use self::root::Root;

/// The names of all of them, in the order in which they are listed.
#[cfg(feature = "tools")]
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
#[cfg(feature = "tools")]
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

#[cfg(feature = "tools")]
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
#[cfg(feature = "tools")]
mod tests;
