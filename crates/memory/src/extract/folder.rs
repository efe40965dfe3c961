//! The folder that a session works in, told from the absolute paths of its tool calls.

use std::collections::HashMap;

/// Folders above the paths that were used.
#[derive(Default)]
pub(crate) struct Folders {
    counts: HashMap<String, u32>,
    paths: u32,
}

/// Folders deeper than this are not looked at.
const DEPTH_MAX: usize = 16;

impl Folders {
    pub(crate) fn note(&mut self, path: &str) {
        if !path.starts_with('/') || path.len() > 1000 {
            return;
        }
        self.paths += 1;
        for (at, _) in path.match_indices('/').skip(1).take(DEPTH_MAX) {
            match self.counts.get_mut(&path[..at]) {
                Some(count) => *count += 1,
                None => {
                    self.counts.insert(path[..at].to_owned(), 1);
                }
            }
        }
    }

    /// The deepest folder that nearly all paths are in, without a slash at its end.
    pub(crate) fn root(&self) -> Option<&str> {
        let needed = (self.paths as f32 * 0.8).ceil() as u32;
        self.counts
            .iter()
            .filter(|(folder, count)| **count >= needed && folder.matches('/').count() >= 2)
            .max_by_key(|(folder, _)| (folder.len(), folder.as_str()))
            .map(|(folder, _)| folder.as_str())
    }
}
