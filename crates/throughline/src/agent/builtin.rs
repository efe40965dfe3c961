//! Tools that come with the library. An agent has none of them unless it is given them.

mod root;

use super::tools::Tools;

pub use self::root::Root;

/// The names of all of them, in the order in which they are listed.
pub const NAMES: [&str; 8] = [
    "recall",
    "update_plan",
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
        let _ = root;
        Err(NoSuchTool::Unknown {
            name: name.to_owned(),
        })
    }
}
