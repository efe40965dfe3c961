//! What a session has cost, as people read it: a table, or a list where a table has no room.

use crate::output::Console;
use crate::words;

/// The calls of one kind, and what they took.
pub(crate) struct Spending {
    pub(crate) name: &'static str,
    pub(crate) calls: u64,
    pub(crate) uncached: u64,
    pub(crate) written: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
    /// With its unit, or in words.
    pub(crate) cost: String,
}

/// The narrowest terminal that the table is drawn in.
const TABLE_COLUMNS_MIN: usize = 72;

const CLASSES: [&str; 4] = ["uncached", "written", "cached", "output"];

impl Spending {
    fn tokens(&self) -> [u64; 4] {
        [self.uncached, self.written, self.cached, self.output]
    }

    fn row(&self) -> Vec<String> {
        let mut row = vec![self.name.to_owned(), words::number(self.calls)];
        row.extend(self.tokens().map(words::number));
        row.push(self.cost.clone());
        row
    }

    fn list(&self) -> String {
        let calls = usize::try_from(self.calls).unwrap_or(usize::MAX);
        let mut text = format!(
            "{}: {}, {}\n",
            self.name,
            words::counted(calls, "call"),
            self.cost
        );
        for (class, tokens) in CLASSES.iter().zip(self.tokens()) {
            text.push_str(&format!("  {class:10}{:>14}\n", words::number(tokens)));
        }
        text
    }
}

/// The text for a terminal of this many columns, or for a pipe.
pub(crate) fn text(all: &[Spending], columns: Option<usize>, console: &Console) -> String {
    if columns.is_some_and(|columns| columns < TABLE_COLUMNS_MIN) {
        return all.iter().map(Spending::list).collect();
    }
    let header = [&["", "calls"][..], &CLASSES, &["cost"]].concat();
    console.table(&header, all.iter().map(Spending::row).collect())
}
