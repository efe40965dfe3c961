//! What the provider answers, with the moment of every byte.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use throughline_transcript::catalogue::Money;
use throughline_transcript::usage::Usage;

/// An answer as a schedule. All times are counted from the start of the request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Exchange {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// When status and headers arrive.
    pub head_after: Duration,
    /// The body, in the order of its arrival.
    pub pieces: Vec<Piece>,
    /// The end after the last piece.
    pub ending: Ending,
    /// What the call used, as it is billed, if it was answered.
    pub usage: Option<Usage>,
    /// What the call costs; `None` where it was refused or the model has no prices.
    pub cost: Option<Money>,
}

/// Some bytes of the body that arrive together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// When they arrive.
    pub after: Duration,
    /// The bytes.
    pub bytes: Bytes,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// In order, with the last piece.
    Complete,
    /// The connection breaks after the last piece.
    Cut,
    /// No data follows the last piece, and the connection stays open.
    Stall,
}

impl Exchange {
    /// The whole body, whenever it arrives.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        self.pieces
            .iter()
            .flat_map(|piece| piece.bytes.iter().copied())
            .collect()
    }

    /// The whole body as text; invalid UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body()).into_owned()
    }

    /// When the last piece arrives.
    #[must_use]
    pub fn finished_after(&self) -> Duration {
        self.pieces
            .last()
            .map_or(self.head_after, |piece| piece.after.max(self.head_after))
    }

    /// Whether the client gets a whole answer.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.ending == Ending::Complete
    }
}
