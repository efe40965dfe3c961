//! Sums over a session: tokens, costs and what swaps saved. Each row of usage and events is read once.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use throughline::EventRecord;
use throughline::costs::Without;
use throughline_store::{EventRow, Page, Purpose, SessionId, SessionInfo, StoreError, UsageRow};
use throughline_transcript::catalogue::Catalogue;

use crate::Dashboard;
use crate::backend::ProxyMode;

/// Sessions whose sums are cached.
const SESSIONS_MAX: usize = 4_096;
/// Rows of one page, and in all.
const PAGE_ROWS: u32 = 1_000;
const ROWS_MAX: u64 = 200_000;

/// The sums of sessions, up to the last row that was read.
#[derive(Default)]
pub(crate) struct Cache(HashMap<SessionId, Tally>);

/// Sums over a session.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Sums {
    /// Calls of the conversation that were answered.
    pub(crate) requests: u64,
    /// Calls that made memories.
    pub(crate) updates: u64,
    pub(crate) swaps: u64,
    pub(crate) undone: u64,
    /// Tokens of the conversation by class.
    pub(crate) uncached: u64,
    pub(crate) cache_write: u64,
    pub(crate) cache_read: u64,
    pub(crate) output: u64,
    /// Tokens of the messages that memories replaced, over all requests.
    pub(crate) saved_tokens: u64,
    /// Cost of the requests, in billionths of a dollar.
    pub(crate) main_nanodollars: u64,
    /// Cost of the calls that made memories.
    pub(crate) update_nanodollars: u64,
    /// Estimated cost with nothing left out, for the requests that would have fitted the window.
    pub(crate) without_nanodollars: u64,
    /// Requests that would not have fitted the window.
    pub(crate) without_refused: u64,
    /// Tokens of the last prompt.
    pub(crate) last_prompt: u64,
    /// Tokens of its answer.
    pub(crate) last_output: u64,
}

/// The sums of a session up to some row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    usage_read: u64,
    events_read: u64,
    /// Tokens that each swap removed, without the undone ones.
    removed: Vec<u64>,
    without: Without,
    pub(crate) sums: Sums,
}

/// What costs and limits the rows are read with.
pub(crate) struct Terms<'a> {
    pub(crate) catalogue: &'a Catalogue,
    /// The largest prompt, tokens.
    pub(crate) limit: u64,
    /// Whether memories reach the provider.
    pub(crate) is_rewriting: bool,
}

/// A row of either kind.
pub(crate) enum Row {
    Event(EventRow),
    Usage(UsageRow),
}

impl Cache {
    pub(crate) fn forget(&mut self, id: &SessionId) {
        self.0.remove(id);
    }
}

impl Tally {
    /// Tokens that swaps have removed so far.
    pub(crate) fn removed(&self) -> u64 {
        self.removed.iter().sum()
    }

    pub(crate) fn event(&mut self, record: &EventRecord) {
        match record {
            EventRecord::Swapped {
                tokens_before,
                tokens_after,
                ..
            } => {
                self.removed
                    .push(tokens_before.saturating_sub(*tokens_after));
                self.sums.swaps += 1;
            }
            EventRecord::Undone { .. } => {
                self.removed.pop();
                self.sums.undone += 1;
            }
            _ => {}
        }
    }

    pub(crate) fn usage(&mut self, row: &UsageRow, terms: &Terms<'_>) {
        let cost = row
            .cost_nanodollars
            .and_then(|cost| u64::try_from(cost).ok())
            .unwrap_or_default();
        if row.purpose != Purpose::Main {
            self.sums.updates += 1;
            self.sums.update_nanodollars += cost;
            return;
        }
        let prompt = prompt(row);
        let left_out = if terms.is_rewriting {
            self.removed()
        } else {
            0
        };
        let model = terms.catalogue.find(&row.model);
        self.without
            .add(prompt + left_out, terms.limit, row.output, model);
        let sums = &mut self.sums;
        sums.requests += 1;
        sums.uncached += row.uncached;
        sums.cache_write += row.cache_write + row.cache_write_long;
        sums.cache_read += row.cache_read;
        sums.output += row.output;
        sums.saved_tokens += left_out;
        sums.main_nanodollars += cost;
        sums.without_nanodollars = self.without.cost.nano_dollars();
        sums.without_refused = self.without.refused;
        sums.last_prompt = prompt;
        sums.last_output = row.output;
    }
}

/// Tokens of the prompt of a call.
pub(crate) fn prompt(row: &UsageRow) -> u64 {
    row.uncached + row.cache_write + row.cache_write_long + row.cache_read
}

/// Rows in the order in which they happened.
fn merged(events: Vec<EventRow>, usage: Vec<UsageRow>) -> Vec<Row> {
    let mut rows: Vec<(i64, Row)> = events
        .into_iter()
        .map(|row| (row.at_ms, Row::Event(row)))
        .chain(usage.into_iter().map(|row| (row.at_ms, Row::Usage(row))))
        .collect();
    // The sort is stable: of rows with the same time events come first, as a swap precedes the answer of its request.
    rows.sort_by_key(|(at_ms, _)| *at_ms);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The rows after the first `read` ones, a page at a time, up to the limit.
async fn rest<T, F>(read: &mut u64, page: impl Fn(Page) -> F) -> Result<Vec<T>, StoreError>
where
    F: Future<Output = Result<Vec<T>, StoreError>>,
{
    let mut all = Vec::new();
    loop {
        let rows = page(Page {
            skip: *read,
            limit: PAGE_ROWS,
        })
        .await?;
        *read += rows.len() as u64;
        let is_last = rows.len() < PAGE_ROWS as usize || *read >= ROWS_MAX;
        all.extend(rows);
        if is_last {
            return Ok(all);
        }
    }
}

impl Dashboard {
    /// The sums of a session.
    pub(crate) async fn figures(&self, info: &SessionInfo) -> Result<Sums, StoreError> {
        let mut tally = {
            let mut cache = self.cache();
            if cache.0.len() >= SESSIONS_MAX {
                cache.0.clear();
            }
            cache.0.remove(&info.id).unwrap_or_default()
        };
        let terms = self.terms(info);
        for row in self.rows(&info.id, &mut tally).await? {
            match row {
                Row::Event(row) => tally.event(&EventRecord::read(&row)),
                Row::Usage(row) => tally.usage(&row, &terms),
            }
        }
        let sums = tally.sums.clone();
        self.cache().0.insert(info.id.clone(), tally);
        Ok(sums)
    }

    /// The rows that the tally does not contain yet.
    pub(crate) async fn rows(
        &self,
        id: &SessionId,
        tally: &mut Tally,
    ) -> Result<Vec<Row>, StoreError> {
        let store = &self.store;
        let events = rest(&mut tally.events_read, |page| store.events(id, page)).await?;
        let usage = rest(&mut tally.usage_read, |page| store.usage(id, page)).await?;
        Ok(merged(events, usage))
    }

    pub(crate) fn terms(&self, info: &SessionInfo) -> Terms<'_> {
        Terms {
            catalogue: &self.catalogue,
            limit: self.marks(info).limit,
            is_rewriting: self.backend.mode() == ProxyMode::Rewrite,
        }
    }

    pub(crate) fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        let cache = self.figures.lock();
        cache.unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(at_ms: i64, cache_read: u64, uncached: u64) -> UsageRow {
        UsageRow {
            at_ms,
            purpose: Purpose::Main,
            model: "claude-opus-4-6".to_owned(),
            uncached,
            cache_write: 0,
            cache_write_long: 0,
            cache_read,
            output: 10,
            cost_nanodollars: Some(5),
            request_id: None,
        }
    }

    fn event(at_ms: i64, kind: &str, json: &str) -> EventRow {
        EventRow {
            sequence: 0,
            kind: kind.to_owned(),
            json: json.to_owned(),
            at_ms,
        }
    }

    #[test]
    fn a_swap_saves_tokens_until_it_is_undone() {
        let swap = r#"{"cover":4,"epoch":1,"origin":"draft","reason":"hard-mark","tokens_after":200,"tokens_before":900,"version":1,"waited_for":null,"waited_ms":0}"#;
        let undo = r#"{"epoch":2,"tokens":900}"#;
        let rows = merged(
            vec![event(20, "swapped", swap), event(40, "undone", undo)],
            vec![
                usage(10, 0, 900),
                usage(20, 100, 100),
                usage(30, 200, 50),
                usage(40, 0, 950),
            ],
        );
        let mut tally = Tally::default();
        let terms = Terms {
            catalogue: Catalogue::embedded(),
            limit: 10_000,
            is_rewriting: true,
        };
        let mut left_out = Vec::new();
        for row in rows {
            match row {
                Row::Event(row) => tally.event(&EventRecord::read(&row)),
                Row::Usage(row) => {
                    tally.usage(&row, &terms);
                    left_out.push(tally.removed());
                }
            }
        }
        assert_eq!(left_out, [0, 700, 700, 0]);
        let sums = tally.sums;
        assert_eq!(
            (
                sums.requests,
                sums.swaps,
                sums.undone,
                sums.saved_tokens,
                sums.main_nanodollars
            ),
            (4, 1, 1, 1_400, 20)
        );
        assert_eq!((sums.last_prompt, sums.cache_read), (950, 300));
    }
}
