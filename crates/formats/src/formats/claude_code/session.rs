//! A session of a file, and a chain of its lines.

use std::collections::VecDeque;

use bytestring::ByteString;
use throughline_transcript::json::Text;
use throughline_transcript::message::{Block, Content};

/// How many texts that wait are looked through for the one that is named.
const QUEUE_SEARCHED_MAX: usize = 256;

/// A session, as its lines are added.
#[derive(Default)]
pub(super) struct Session {
    pub(super) id: ByteString,
    pub(super) cwd: Option<ByteString>,
    /// The line that the session names as its current one, if no message came after.
    pub(super) leaf: Option<ByteString>,
    pub(super) queue: VecDeque<Block>,
    /// Texts that were given to the model in the middle of its work.
    pub(super) delivered: Vec<DeliveredBlock>,
    /// Nodes outside of side chains, in file order.
    pub(super) main: Vec<usize>,
}

impl Session {
    /// Takes a text out of the queue: the one that is named, else the oldest. A text that is named and was queued before
    /// the file begins is known by its name.
    pub(super) fn take_queued(&mut self, named: Option<Text>) -> Option<Block> {
        let Some(named) = named else {
            return self.queue.pop_front();
        };
        let name = named.decode();
        let is_named =
            |block: &Block| matches!(&block.content, Content::Text(text) if text.decode() == name);
        match self
            .queue
            .iter()
            .take(QUEUE_SEARCHED_MAX)
            .position(is_named)
        {
            Some(place) => self.queue.remove(place),
            None => Some(Block::text(named)),
        }
    }
}

/// A text that was given to the model in the middle of its work.
pub(super) struct DeliveredBlock {
    pub(super) line: usize,
    pub(super) at_ms: Option<i64>,
    pub(super) block: Block,
}

/// Nodes of one conversation from the root to the leaf.
pub(super) struct Chain {
    pub(super) session: usize,
    pub(super) agent: Option<ByteString>,
    pub(super) nodes: Vec<usize>,
}
