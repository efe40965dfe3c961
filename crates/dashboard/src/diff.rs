//! What differs between two memory versions, item by item and word by word.

use serde::Serialize;
use throughline_memory::document::Memory;

use crate::view::ItemView;

/// Words of a text that are compared one by one; a longer text is shown as replaced.
const WORDS_MAX: usize = 600;

/// Items that differ, in the order of the sections.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Diff {
    pub(crate) added: usize,
    pub(crate) removed: usize,
    pub(crate) changed: usize,
    pub(crate) unchanged: usize,
    pub(crate) items: Vec<Differing>,
}

/// An item that is not the same in both.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Differing {
    /// `added`, `removed` or `changed`.
    pub(crate) how: &'static str,
    /// As it is now; as it was, if it is gone.
    pub(crate) item: ItemView,
    /// The main text before, where that has changed.
    pub(crate) pieces: Vec<Piece>,
    /// The status before, where that has changed.
    pub(crate) status_before: Option<&'static str>,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Piece {
    /// `same`, `gone` or `new`.
    pub(crate) how: &'static str,
    pub(crate) text: String,
}

/// What has become of `before`.
pub(crate) fn diff(before: &Memory, after: &Memory) -> Diff {
    let old: Vec<ItemView> = before.items.iter().map(ItemView::of).collect();
    let new: Vec<ItemView> = after.items.iter().map(ItemView::of).collect();
    let mut diff = Diff {
        added: 0,
        removed: 0,
        changed: 0,
        unchanged: 0,
        items: Vec::new(),
    };
    for item in &new {
        match old.iter().find(|was| was.id == item.id) {
            None => {
                diff.added += 1;
                diff.items.push(Differing {
                    how: "added",
                    item: item.clone(),
                    pieces: Vec::new(),
                    status_before: None,
                });
            }
            Some(was) if was.texts == item.texts && was.status == item.status => {
                diff.unchanged += 1;
            }
            Some(was) => {
                diff.changed += 1;
                diff.items.push(Differing {
                    how: "changed",
                    item: item.clone(),
                    pieces: if was.texts == item.texts {
                        Vec::new()
                    } else {
                        pieces(&whole(was), &whole(item))
                    },
                    status_before: (was.status != item.status).then_some(was.status),
                });
            }
        }
    }
    for was in old {
        if new.iter().all(|item| item.id != was.id) {
            diff.removed += 1;
            diff.items.push(Differing {
                how: "removed",
                item: was,
                pieces: Vec::new(),
                status_before: None,
            });
        }
    }
    let order = |name: &str| {
        throughline_memory::document::Section::from_name(name).map_or(usize::MAX, |it| it as usize)
    };
    diff.items.sort_by_key(|item| order(item.item.section));
    diff
}

fn whole(item: &ItemView) -> String {
    let texts: Vec<&str> = item.texts.iter().map(|text| text.text.as_str()).collect();
    texts.join(" — ")
}

/// The longest words that both have in common, and what is between them.
fn pieces(before: &str, after: &str) -> Vec<Piece> {
    let old: Vec<&str> = before.split_inclusive(char::is_whitespace).collect();
    let new: Vec<&str> = after.split_inclusive(char::is_whitespace).collect();
    let mut out: Vec<Piece> = Vec::new();
    let mut push = |how: &'static str, text: &str| match out.last_mut() {
        Some(last) if last.how == how => last.text.push_str(text),
        _ => out.push(Piece {
            how,
            text: text.to_owned(),
        }),
    };
    if old.len() > WORDS_MAX || new.len() > WORDS_MAX {
        push("gone", before);
        push("new", after);
        return out;
    }
    // How many words the ends behind each pair of places have in common.
    let width = new.len() + 1;
    let mut common = vec![0u16; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i].trim_end() == new[j].trim_end() {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() && j < new.len() {
        if old[i].trim_end() == new[j].trim_end() {
            push("same", new[j]);
            (i, j) = (i + 1, j + 1);
        } else if common[(i + 1) * width + j] >= common[i * width + j + 1] {
            push("gone", old[i]);
            i += 1;
        } else {
            push("new", new[j]);
            j += 1;
        }
    }
    old[i..].iter().for_each(|word| push("gone", word));
    new[j..].iter().for_each(|word| push("new", word));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_stay_are_found() {
        let check = |before: &str, after: &str, expected: &[(&str, &str)]| {
            let found = pieces(before, after);
            let found: Vec<(&str, &str)> = found
                .iter()
                .map(|piece| (piece.how, piece.text.as_str()))
                .collect();
            assert_eq!(found, expected);
        };
        check("a b c", "a b c", &[("same", "a b c")]);
        check(
            "use port 80 now",
            "use port 8080 now",
            &[
                ("same", "use port "),
                ("gone", "80 "),
                ("new", "8080 "),
                ("same", "now"),
            ],
        );
        check("", "x", &[("new", "x")]);
        check("x y", "", &[("gone", "x y")]);
        let long = "w ".repeat(WORDS_MAX + 1);
        check(&long, "w", &[("gone", &long), ("new", "w")]);
    }
}
