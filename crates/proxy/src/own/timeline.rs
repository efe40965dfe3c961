//! One session over time: what each request took, and what happened in between.

use serde::Serialize;
use serde_json::Value;
use throughline_store::{EventRow, Purpose, SessionInfo, StoreError};

use super::figures::{Fold, Row, Sums, prompt};
use super::view::Marks;
use crate::Proxy;

/// A session over time.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Timeline {
    pub(super) marks: Marks,
    /// Whether what is swapped in reaches the provider.
    pub(super) is_rewriting: bool,
    pub(super) sums: Sums,
    pub(super) requests: Vec<Point>,
    pub(super) events: Vec<Happened>,
}

/// A request that was answered.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Point {
    pub(super) at_ms: i64,
    pub(super) uncached: u64,
    pub(super) cache_write: u64,
    pub(super) cache_read: u64,
    pub(super) output: u64,
    /// Tokens of the prompt.
    pub(super) tokens: u64,
    /// Tokens that it would have had with nothing left out; where nothing is rewritten, with the memory.
    pub(super) tokens_otherwise: u64,
    pub(super) cost_nanodollars: u64,
    /// The session's cost up to here, memories included.
    pub(super) total_nanodollars: u64,
    /// The same with nothing left out.
    pub(super) without_nanodollars: u64,
    /// Whether all requests so far would have fitted the window with nothing left out.
    pub(super) fits_without: bool,
}

/// Something that happened.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Happened {
    pub(super) at_ms: i64,
    /// How many requests had been answered before.
    pub(super) after_requests: usize,
    pub(super) kind: String,
    /// Numbers and reasons.
    pub(super) detail: Value,
    /// The same in words.
    pub(super) words: String,
}

impl Proxy {
    /// A session over time.
    pub(super) async fn timeline(&self, info: &SessionInfo) -> Result<Timeline, StoreError> {
        let mut fold = Fold::default();
        let rows = self.rows(&info.id, &mut fold).await?;
        let reading = self.reading(info);
        let mut timeline = Timeline {
            marks: self.marks(info),
            is_rewriting: reading.is_rewriting,
            ..Timeline::default()
        };
        for row in rows {
            match row {
                Row::Event(row) => {
                    fold.event(&row);
                    timeline.happened(&row);
                }
                Row::Usage(row) => {
                    fold.usage(&row, &reading);
                    if row.purpose != Purpose::Main {
                        continue;
                    }
                    let tokens = prompt(&row);
                    let sums = &fold.sums;
                    timeline.requests.push(Point {
                        at_ms: row.at_ms,
                        uncached: row.uncached,
                        cache_write: row.cache_write + row.cache_write_long,
                        cache_read: row.cache_read,
                        output: row.output,
                        tokens,
                        tokens_otherwise: if reading.is_rewriting {
                            tokens + fold.removed()
                        } else {
                            tokens.saturating_sub(fold.removed())
                        },
                        cost_nanodollars: row
                            .cost_nanodollars
                            .and_then(|cost| u64::try_from(cost).ok())
                            .unwrap_or_default(),
                        total_nanodollars: sums.main_nanodollars + sums.update_nanodollars,
                        without_nanodollars: sums.without_nanodollars,
                        fits_without: sums.without_refused == 0,
                    });
                }
            }
        }
        timeline.sums = fold.sums;
        Ok(timeline)
    }
}

impl Timeline {
    fn happened(&mut self, row: &EventRow) {
        let detail: Value = serde_json::from_str(&row.json).unwrap_or_default();
        self.events.push(Happened {
            at_ms: row.at_ms,
            after_requests: self.requests.len(),
            kind: row.kind.clone(),
            words: detail["words"].as_str().unwrap_or_default().to_owned(),
            detail,
        });
    }
}
