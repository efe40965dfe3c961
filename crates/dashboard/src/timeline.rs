//! One session over time: what each request took, and what happened in between.

use serde::Serialize;
use serde_json::Value;
use throughline_store::{EventRow, Purpose, SessionInfo, StoreError};

use crate::Dashboard;
use crate::backend::Marks;
use crate::figures::{Fold, Row, Sums, prompt};

/// A session over time.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Timeline {
    pub(crate) marks: Marks,
    /// Whether what is swapped in reaches the provider.
    pub(crate) is_rewriting: bool,
    pub(crate) sums: Sums,
    pub(crate) requests: Vec<Point>,
    pub(crate) events: Vec<Happened>,
}

/// A request that was answered.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Point {
    pub(crate) at_ms: i64,
    pub(crate) uncached: u64,
    pub(crate) cache_write: u64,
    pub(crate) cache_read: u64,
    pub(crate) output: u64,
    /// Tokens of the prompt.
    pub(crate) tokens: u64,
    /// Tokens that it would have had with nothing left out; where nothing is rewritten, with the memory.
    pub(crate) tokens_otherwise: u64,
    pub(crate) cost_nanodollars: u64,
    /// The session's cost up to here, memories included.
    pub(crate) total_nanodollars: u64,
    /// The same with nothing left out.
    pub(crate) without_nanodollars: u64,
    /// Whether all requests so far would have fitted the window with nothing left out.
    pub(crate) fits_without: bool,
}

/// Something that happened.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Happened {
    pub(crate) at_ms: i64,
    /// How many requests had been answered before.
    pub(crate) after_requests: usize,
    pub(crate) kind: String,
    /// Numbers and reasons.
    pub(crate) detail: Value,
    /// The same in words.
    pub(crate) words: String,
}

impl Dashboard {
    /// A session over time.
    pub(crate) async fn timeline(&self, info: &SessionInfo) -> Result<Timeline, StoreError> {
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
