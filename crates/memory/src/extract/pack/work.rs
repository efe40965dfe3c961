//! Completed work: files, errors, and commits, pushes, tests.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::Packer;
use crate::cues::{OutputKind, StatementKind};
use crate::document::{Entry, Origin, Provenance};
use crate::extract::ErrorReport;
use crate::extract::excerpt::excerpt;
use crate::extract::tools::FileUse;

/// Of an error line this much is quoted, characters.
const ERROR_CHARACTERS: usize = 230;

impl Packer<'_> {
    pub(super) fn files(&mut self) {
        let extractor = self.extractor;
        let mut share = self.share(if self.focus.is_empty() { 20 } else { 10 });
        let mut files: Vec<_> = extractor
            .files
            .iter()
            .filter(|file| file.changes > 0)
            .collect();
        files.sort_by_key(|file| {
            (
                Reverse(self.focus_in(&file.path) as u32),
                Reverse(file.last_text),
            )
        });
        for file in files {
            let path = self.relative(&file.path);
            let how = match file.last_use {
                FileUse::Created => "created",
                FileUse::Deleted => "deleted",
                FileUse::Moved => "moved",
                FileUse::Changed | FileUse::Read => "changed",
            };
            let provenance = Provenance {
                message: file.message,
                at_ms: None,
            };
            // A name alone tells a reader nothing.
            let about = match file.last_use {
                FileUse::Deleted => None,
                _ => self.about(path),
            };
            let text = match about {
                Some(about) => format!("{how} {path}: {about}"),
                None => format!("{how} {path}"),
            };
            let entry = Entry::CompletedWork { text };
            if !self.add(entry, Origin::Code, provenance.clone(), &mut share) {
                let text = format!("{how} {path}");
                self.add(
                    Entry::CompletedWork { text },
                    Origin::Code,
                    provenance,
                    &mut share,
                );
            }
        }
    }

    /// Files that only failed commands would have changed: what these did before they failed is not known.
    pub(super) fn unsure_files(&mut self) {
        const MOST: usize = 12;
        let files = self.extractor.files.iter().rev();
        let paths: Vec<String> = files
            .filter(|file| file.changes == 0 && file.failed_changes > 0)
            .take(MOST)
            .map(|file| self.relative(&file.path).to_owned())
            .collect();
        if paths.is_empty() {
            return;
        }
        let text = format!(
            "Perhaps changed, by commands that failed: {}",
            paths.join(", ")
        );
        let provenance = Provenance {
            message: self.extractor.messages.saturating_sub(1),
            at_ms: None,
        };
        let mut share = self.share(3);
        self.add(
            Entry::Reference { text },
            Origin::Code,
            provenance,
            &mut share,
        );
    }

    /// What the model said of a file, in few words.
    fn about(&self, path: &str) -> Option<String> {
        let name = path.rsplit('/').next()?;
        let statement = self.extractor.statements.iter().rev().find(|statement| {
            statement.kind == StatementKind::Completed && has_name(&statement.text, name)
        })?;
        // What ends with a colon announces something else.
        let text = &statement.text;
        let is_whole = text.len() <= 160 && !text.trim_end_matches(['*', ' ']).ends_with(':');
        is_whole.then(|| text.clone())
    }

    pub(super) fn errors(&mut self) {
        let mut share = self.share(6);
        let mut errors: Vec<_> = self
            .extractor
            .errors
            .iter()
            .filter(|error| error.score >= 50 && says_something(error))
            .collect();
        errors.sort_by_key(|error| Reverse((error.score / 20, error.message)));
        for error in errors {
            let entry = Entry::Error {
                text: excerpt(&error.text, ERROR_CHARACTERS),
                resolution: error.resolution.clone(),
            };
            let provenance = Provenance {
                message: error.message,
                at_ms: error.at_ms,
            };
            self.add(entry, Origin::Tool, provenance, &mut share);
        }
    }

    /// The newest commits, the last push, the last test run.
    pub(super) fn outcomes(&mut self) {
        let mut share = self.share(4);
        let mut count: HashMap<u8, usize> = HashMap::new();
        for outcome in self.extractor.outcomes.iter().rev() {
            let (kind, most, key) = match outcome.kind {
                OutputKind::Commit => (0, 6, ""),
                OutputKind::Push => (1, 1, ""),
                OutputKind::Tests { .. } => (2, 2, "tests"),
                OutputKind::Build | OutputKind::Error => continue,
            };
            let seen = count.entry(kind).or_default();
            if *seen >= most {
                continue;
            }
            let text = excerpt(&outcome.text, 160);
            let entry = if key.is_empty() {
                Entry::CompletedWork { text }
            } else {
                Entry::ToolResult {
                    key: key.to_owned(),
                    summary: text,
                }
            };
            let provenance = Provenance {
                message: outcome.message,
                at_ms: outcome.at_ms,
            };
            if self.add(entry, Origin::Tool, provenance, &mut share) {
                *seen += 1;
            }
        }
    }
}

/// Whether a text holds the name of a file by itself, not as a part of another.
fn has_name(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    name.len() > 2
        && text.match_indices(name).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let mut after = text[at + name.len()..].chars();
            let is_over = match after.next() {
                Some('.') => !after.next().is_some_and(is_part),
                Some('/') => false,
                after => !after.is_some_and(is_part),
            };
            is_over && !before.is_some_and(|c| is_part(c) || c == '.')
        })
}

/// Whether an error line is more than the report that something failed.
fn says_something(error: &ErrorReport) -> bool {
    let text = error.text.to_ascii_lowercase();
    text.strip_prefix("exit code")
        .is_none_or(|rest| rest.trim_matches([' ', ':']).parse::<i32>().is_err())
}

#[cfg(test)]
mod tests {
    use super::has_name;

    #[test]
    fn a_name_is_not_a_part_of_another() {
        assert!(has_name("Mended `src/quay.c` at last.", "quay.c"));
        assert!(has_name("The last is quay.c.", "quay.c"));
        for text in [
            "quay.cpp",
            "my-quay.c",
            "quay.c.bak",
            "quay.c/x",
            ".quay.c",
            "_quay.c",
        ] {
            assert!(!has_name(text, "quay.c"), "{text}");
        }
        assert!(!has_name("a d b", "d"));
        assert!(!has_name("cli.ts", "cli"));
    }
}
