//! What differs between two memory versions, item by item and word by word.

use schemars::JsonSchema;
use serde::Serialize;
use similar::{Algorithm, DiffTag, capture_diff_slices_by_key};
use throughline_memory::document::{Memory, Section};

use crate::view::{ItemStatus, ItemView};

/// Words of a text that are compared; a longer text is shown as replaced.
const WORDS_MAX: usize = 600;

/// Items that differ, in the order of the sections.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Diff {
    pub(crate) added: usize,
    pub(crate) removed: usize,
    pub(crate) changed: usize,
    pub(crate) unchanged: usize,
    pub(crate) items: Vec<ItemDiff>,
}

/// An item that differs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ItemDiff {
    pub(crate) how: Change,
    /// The item after the change; before it, if it was removed.
    pub(crate) item: ItemView,
    /// Its texts in pieces, where they changed.
    pub(crate) pieces: Vec<Piece>,
    /// Its status before, where that changed.
    pub(crate) status_before: Option<ItemStatus>,
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ItemChange")]
pub(crate) enum Change {
    Added,
    Removed,
    Changed,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Piece {
    pub(crate) how: PieceKind,
    pub(crate) text: String,
}

/// Which of the two texts have a piece: both, the one before, the one after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PieceKind {
    Same,
    Gone,
    New,
}

/// Compares two memories.
pub(crate) fn diff(before: &Memory, after: &Memory) -> Diff {
    let old: Vec<ItemView> = before.items.iter().map(ItemView::of).collect();
    let new: Vec<ItemView> = after.items.iter().map(ItemView::of).collect();
    let whole = |how: Change, item: &ItemView| ItemDiff {
        how,
        item: item.clone(),
        pieces: Vec::new(),
        status_before: None,
    };
    let mut diff = Diff::default();
    for item in &new {
        match old.iter().find(|was| was.id == item.id) {
            None => {
                diff.added += 1;
                diff.items.push(whole(Change::Added, item));
            }
            Some(was) if was.texts == item.texts && was.status == item.status => {
                diff.unchanged += 1;
            }
            Some(was) => {
                diff.changed += 1;
                diff.items.push(ItemDiff {
                    pieces: if was.texts == item.texts {
                        Vec::new()
                    } else {
                        pieces(&joined(was), &joined(item))
                    },
                    status_before: (was.status != item.status).then_some(was.status),
                    ..whole(Change::Changed, item)
                });
            }
        }
    }
    for was in &old {
        if new.iter().all(|item| item.id != was.id) {
            diff.removed += 1;
            diff.items.push(whole(Change::Removed, was));
        }
    }
    let order = |name: &str| Section::from_name(name).map_or(usize::MAX, |it| it as usize);
    diff.items.sort_by_key(|item| order(item.item.section));
    diff
}

fn joined(item: &ItemView) -> String {
    let texts: Vec<&str> = item.texts.iter().map(|text| text.text.as_str()).collect();
    texts.join(" — ")
}

/// The words that both texts have in common, and those between them. White space after a word does not count.
fn pieces(before: &str, after: &str) -> Vec<Piece> {
    let old: Vec<&str> = before.split_inclusive(char::is_whitespace).collect();
    let new: Vec<&str> = after.split_inclusive(char::is_whitespace).collect();
    let mut out: Vec<Piece> = Vec::new();
    let mut push = |how: PieceKind, text: String| {
        if !text.is_empty() {
            out.push(Piece { how, text });
        }
    };
    if old.len() > WORDS_MAX || new.len() > WORDS_MAX {
        push(PieceKind::Gone, before.to_owned());
        push(PieceKind::New, after.to_owned());
        return out;
    }
    for op in capture_diff_slices_by_key(Algorithm::Myers, &old, &new, word) {
        if op.tag() == DiffTag::Equal {
            push(PieceKind::Same, new[op.new_range()].concat());
        } else {
            push(PieceKind::Gone, old[op.old_range()].concat());
            push(PieceKind::New, new[op.new_range()].concat());
        }
    }
    out
}

fn word<'a>(text: &&'a str) -> &'a str {
    text.trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_words_are_found() {
        let check = |before: &str, after: &str, expected: &[(PieceKind, &str)]| {
            let found = pieces(before, after);
            let found: Vec<(PieceKind, &str)> = found
                .iter()
                .map(|piece| (piece.how, piece.text.as_str()))
                .collect();
            assert_eq!(found, expected);
        };
        use PieceKind::{Gone, New, Same};
        check("a b c", "a b c", &[(Same, "a b c")]);
        check(
            "use port 80 now",
            "use port 8080 now",
            &[
                (Same, "use port "),
                (Gone, "80 "),
                (New, "8080 "),
                (Same, "now"),
            ],
        );
        check("", "x", &[(New, "x")]);
        check("x y", "", &[(Gone, "x y")]);
        check("a\nb", "a b", &[(Same, "a b")]);
        let long = "w ".repeat(WORDS_MAX + 1);
        check(&long, "w", &[(Gone, &long), (New, "w")]);
    }
}
