//! One session over time: the tokens and the cost of each request, and the events between them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use throughline::EventRecord;
use throughline_store::{EventRow, Purpose, SessionInfo, StoreError};

use crate::Dashboard;
use crate::backend::Marks;
use crate::figures::{Row, Sums, Tally, prompt};

/// A session over time.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Timeline {
    pub(crate) marks: Marks,
    /// Whether memories reach the provider.
    pub(crate) is_rewriting: bool,
    pub(crate) sums: Sums,
    pub(crate) requests: Vec<RequestPoint>,
    pub(crate) events: Vec<TimelineEvent>,
}

/// An answered request.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct RequestPoint {
    pub(crate) at_ms: i64,
    pub(crate) uncached: u64,
    pub(crate) cache_write: u64,
    pub(crate) cache_read: u64,
    pub(crate) output: u64,
    /// Tokens of the prompt.
    pub(crate) tokens: u64,
    /// Tokens of the same prompt with nothing left out; with the memory, if the proxy only observes.
    pub(crate) tokens_otherwise: u64,
    pub(crate) cost_nanodollars: u64,
    /// Cost of the session so far, memories included.
    pub(crate) total_nanodollars: u64,
    /// Estimated cost so far with nothing left out.
    pub(crate) without_nanodollars: u64,
    /// Whether every request so far would have fitted the window with nothing left out.
    pub(crate) fits_without: bool,
}

/// A decision about the session.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct TimelineEvent {
    pub(crate) at_ms: i64,
    /// Requests that had been answered before.
    pub(crate) after_requests: usize,
    pub(crate) kind: String,
    /// Numbers and reasons.
    pub(crate) detail: Value,
    /// The same in words.
    pub(crate) words: String,
    #[serde(skip)]
    pub(crate) record: EventRecord,
}

impl Dashboard {
    /// A session over time.
    pub(crate) async fn timeline(&self, info: &SessionInfo) -> Result<Timeline, StoreError> {
        let mut tally = Tally::default();
        let rows = self.rows(&info.id, &mut tally).await?;
        let terms = self.terms(info);
        let mut timeline = Timeline {
            marks: self.marks(info),
            is_rewriting: terms.is_rewriting,
            ..Timeline::default()
        };
        for row in rows {
            match row {
                Row::Event(row) => {
                    let record = EventRecord::read(&row);
                    tally.event(&record);
                    timeline.add_event(&row, record);
                }
                Row::Usage(row) => {
                    tally.usage(&row, &terms);
                    if row.purpose != Purpose::Main {
                        continue;
                    }
                    let tokens = prompt(&row);
                    let sums = &tally.sums;
                    timeline.requests.push(RequestPoint {
                        at_ms: row.at_ms,
                        uncached: row.uncached,
                        cache_write: row.cache_write + row.cache_write_long,
                        cache_read: row.cache_read,
                        output: row.output,
                        tokens,
                        tokens_otherwise: if terms.is_rewriting {
                            tokens + tally.removed()
                        } else {
                            tokens.saturating_sub(tally.removed())
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
        timeline.sums = tally.sums;
        Ok(timeline)
    }
}

impl Timeline {
    fn add_event(&mut self, row: &EventRow, record: EventRecord) {
        self.events.push(TimelineEvent {
            at_ms: row.at_ms,
            after_requests: self.requests.len(),
            kind: row.kind.clone(),
            words: EventRecord::words(row),
            detail: serde_json::from_str(&row.json).unwrap_or_default(),
            record,
        });
    }
}
