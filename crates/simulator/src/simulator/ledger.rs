//! The ledger: requests, their outcomes and costs.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use throughline_transcript::catalogue::Money;
use throughline_transcript::usage::Usage;

use super::Simulator;
use crate::exchange::Exchange;
use crate::faults::Fault;

/// Bytes of request bodies that the ledger keeps; the oldest bodies are let go first.
const LEDGER_BODY_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Exchanges that the ledger keeps.
const LEDGER_MAX: usize = 1_000_000;

/// One exchange of the ledger.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LedgerEntry {
    /// When the request arrived.
    pub at: Duration,
    /// Its path.
    pub path: String,
    /// The status of the answer.
    pub status: StatusCode,
    /// Id of the model in the catalogue, if there is one.
    pub model: Option<String>,
    /// What the call used, if it was answered.
    pub usage: Option<Usage>,
    /// What it costs.
    pub cost: Option<Money>,
    /// What went wrong by the script.
    pub fault: Option<Fault>,
    /// Whether it requested a summary.
    pub is_summary: bool,
    /// From the request to the last byte of the answer.
    pub took: Duration,
    /// The body of the request, unpacked; empty if bodies are not kept.
    pub body: Bytes,
}

/// What happened to a request, for the ledger.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) model: Option<String>,
    pub(super) fault: Option<Fault>,
    pub(super) is_summary: bool,
    pub(super) body: Bytes,
}

impl Simulator {
    pub(super) fn record(&mut self, at: Duration, path: String, exchange: &Exchange, notes: Notes) {
        let body = if self.options.keeps_bodies {
            notes.body
        } else {
            Bytes::new()
        };
        self.ledger_body_bytes += body.len();
        self.ledger.push_back(LedgerEntry {
            at,
            path,
            status: exchange.status,
            model: notes.model,
            usage: exchange.usage,
            cost: exchange.cost,
            fault: notes.fault,
            is_summary: notes.is_summary,
            took: exchange.finished_after(),
            body,
        });
        if self.ledger.len() > LEDGER_MAX
            && let Some(oldest) = self.ledger.pop_front()
        {
            self.ledger_body_bytes -= oldest.body.len();
        }
        if self.ledger_body_bytes > LEDGER_BODY_BYTES_MAX {
            for entry in &mut self.ledger {
                self.ledger_body_bytes -= entry.body.len();
                entry.body = Bytes::new();
                if self.ledger_body_bytes <= LEDGER_BODY_BYTES_MAX / 2 {
                    break;
                }
            }
        }
    }
}
