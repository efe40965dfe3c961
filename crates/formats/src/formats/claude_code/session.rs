//! A session of a file, and a chain of its lines.

use std::collections::VecDeque;

use bytestring::ByteString;
use throughline_transcript::message::Block;

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
