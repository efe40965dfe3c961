//! The messages after the cover, with what is known of each.

use throughline_memory::render::restoring;
use throughline_transcript::cut::{LatestRequest, Rules, TailBegins, legal_cuts_by};
use throughline_transcript::digest::{Chain, Digest, message_digest};
use throughline_transcript::message::{Content, Message, Role};
use throughline_transcript::tokens::Counter;

/// What is known of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Tokens, estimated.
    pub(crate) tokens: u64,
    /// Bytes in a request.
    pub(crate) bytes: u64,
    /// Digest of the transcript up to and with it.
    pub(crate) chain: Digest,
    /// Calls of tools in it.
    pub(crate) tool_calls: u32,
}

/// The messages from the cover on.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    /// Index of the first.
    first: usize,
    /// Digest of everything before it.
    chain: Digest,
    messages: Vec<Message>,
    facts: Vec<Facts>,
    tokens: u64,
    bytes: u64,
}

impl Live {
    pub(crate) fn new(first: usize, chain: Digest) -> Self {
        Self {
            first,
            chain,
            messages: Vec::new(),
            facts: Vec::new(),
            tokens: 0,
            bytes: 0,
        }
    }

    pub(crate) fn first(&self) -> usize {
        self.first
    }

    /// Messages of the whole transcript.
    pub(crate) fn end(&self) -> usize {
        self.first + self.messages.len()
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Counts all messages again.
    pub(crate) fn recount(&mut self, counter: &Counter) {
        recount(&self.messages, &mut self.facts, counter);
        self.tokens = self.facts.iter().map(|facts| facts.tokens).sum();
    }

    pub(crate) fn push(&mut self, message: Message, counter: &Counter) -> Facts {
        let mut chain = Chain::at(self.chain_at(self.end()).unwrap_or(self.chain));
        let facts = Facts {
            tokens: counter.message(&message) as u64,
            bytes: message
                .raw
                .as_ref()
                .map_or_else(|| estimated_bytes(&message), |raw| raw.len())
                as u64
                + 1,
            chain: chain.push(message_digest(&message)),
            tool_calls: message.tool_calls().count() as u32,
        };
        self.tokens += facts.tokens;
        self.bytes += facts.bytes;
        self.messages.push(message);
        self.facts.push(facts);
        facts
    }

    /// Digest of the first `count` messages of the transcript, as far back as that is known.
    pub(crate) fn chain_at(&self, count: usize) -> Option<Digest> {
        match count.checked_sub(self.first)? {
            0 => Some(self.chain),
            kept => self.facts.get(kept - 1).map(|facts| facts.chain),
        }
    }

    /// Tokens of the messages from `index` on.
    pub(crate) fn tokens_from(&self, index: usize) -> u64 {
        self.facts
            .iter()
            .skip(index.saturating_sub(self.first))
            .map(|facts| facts.tokens)
            .sum()
    }

    pub(crate) fn bytes_from(&self, index: usize) -> u64 {
        self.facts
            .iter()
            .skip(index.saturating_sub(self.first))
            .map(|facts| facts.bytes)
            .sum()
    }

    /// The messages from one index to another, both over the whole transcript.
    pub(crate) fn between(&self, from: usize, to: usize) -> &[Message] {
        let range = from.saturating_sub(self.first)..to.saturating_sub(self.first);
        self.messages.get(range).unwrap_or_default()
    }

    /// Takes the messages before `index` off the front.
    pub(crate) fn split_front(&mut self, index: usize) -> (Vec<Message>, Vec<Facts>) {
        let count = index.saturating_sub(self.first).min(self.messages.len());
        if let Some(chain) = self.chain_at(self.first + count) {
            self.chain = chain;
        }
        let messages = self.messages.drain(..count).collect();
        let facts: Vec<Facts> = self.facts.drain(..count).collect();
        self.first += count;
        self.tokens -= facts.iter().map(|facts| facts.tokens).sum::<u64>();
        self.bytes -= facts.iter().map(|facts| facts.bytes).sum::<u64>();
        (messages, facts)
    }

    /// Puts messages back before the first.
    pub(crate) fn join_front(
        &mut self,
        first: usize,
        chain: Digest,
        messages: Vec<Message>,
        facts: Vec<Facts>,
    ) {
        self.first = first;
        self.chain = chain;
        self.tokens += facts.iter().map(|facts| facts.tokens).sum::<u64>();
        self.bytes += facts.iter().map(|facts| facts.bytes).sum::<u64>();
        self.messages.splice(..0, messages);
        self.facts.splice(..0, facts);
    }

    /// Forgets the messages from `index` on.
    pub(crate) fn truncate(&mut self, index: usize) {
        let kept = index.saturating_sub(self.first);
        self.messages.truncate(kept);
        for facts in self.facts.drain(kept.min(self.facts.len())..) {
            self.tokens -= facts.tokens;
            self.bytes -= facts.bytes;
        }
    }

    /// The legal cut that keeps at most as much as `keep` says, or as little more as there must be: index over the whole
    /// transcript.
    ///
    /// Messages that no model has answered yet are kept, whatever their size: no model has read them.
    pub(crate) fn cut(
        &self,
        keep: Keep,
        latest_request: LatestRequest,
        tail_begins: TailBegins,
    ) -> usize {
        let answered = self
            .messages
            .iter()
            .rposition(|message| message.role == Role::Assistant)
            .map_or(0, |last| last + 1);
        let cuts = legal_cuts_by(
            &self.messages,
            Rules {
                latest_request,
                tail_begins,
            },
        );
        let mut wanted = self.messages.len();
        let mut sum = Keep {
            tokens: 0,
            bytes: 0,
        };
        for (index, facts) in self.facts.iter().enumerate().rev() {
            sum.tokens = sum.tokens.saturating_add(facts.tokens);
            sum.bytes = sum.bytes.saturating_add(facts.bytes);
            if sum.tokens > keep.tokens || sum.bytes > keep.bytes {
                break;
            }
            wanted = index;
        }
        // Where the request is covered, all of it is: it is quoted as a whole.
        let request = self.latest_request().map_or((0, 0), |request| {
            (request.range.0 - self.first, request.range.1 - self.first)
        });
        let mut cuts = cuts
            .into_iter()
            .take_while(|cut| *cut <= answered)
            .filter(|cut| *cut <= request.0 || *cut >= request.1);
        let mut chosen = 0;
        for cut in cuts.by_ref() {
            chosen = cut;
            if cut >= wanted {
                break;
            }
        }
        self.first + chosen
    }

    /// Index after the last message up to which the transcript can be sent with something said behind it: what belongs
    /// to calls without results is left out.
    pub(crate) fn settled_end(&self) -> usize {
        let messages = &self.messages;
        let Some(newest) = messages
            .iter()
            .rposition(|message| message.tool_calls().any(|call| !call.is_server_side))
        else {
            return self.end();
        };
        let mut first = newest;
        while let Some(before) = first.checked_sub(1)
            && messages[before].role == Role::Assistant
        {
            // A batch, and the reasoning before it, can be spread over items that follow each other.
            first = before;
        }
        let results: Vec<_> = messages[first..]
            .iter()
            .flat_map(Message::tool_results)
            .map(|result| &result.call_id)
            .collect();
        let is_open = messages[first..]
            .iter()
            .flat_map(Message::tool_calls)
            .any(|call| !call.is_server_side && !results.contains(&&call.id));
        if is_open {
            self.first + first
        } else {
            self.end()
        }
    }

    /// Where the last request that was answered ended: its answer begins there.
    ///
    /// It is derived from the messages, so that a resumed session knows it as well as one that kept running.
    pub(crate) fn last_asked(&self) -> Option<usize> {
        let is_answer = |message: &Message| message.role == Role::Assistant;
        let last = self.messages.iter().rposition(is_answer)?;
        let before = self.messages[..last]
            .iter()
            .rposition(|message| !is_answer(message))?;
        Some(self.first + before + 1)
    }

    /// Whether the model has finished its answer to everything before.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.messages
            .last()
            .is_some_and(|last| last.role == Role::Assistant)
            && !ends_with_open_calls(&self.messages)
    }

    /// Where the latest request of the user begins and ends, and its text, if all of it is here.
    pub(crate) fn latest_request(&self) -> Option<Request> {
        let first = throughline_transcript::cut::latest_request(&self.messages)?;
        let count = self.messages[first..]
            .iter()
            .take_while(|message| message.begins_turn())
            .count();
        Some(Request::of(
            self.first + first,
            &self.messages[first..first + count],
        ))
    }
}

/// Counts the tokens of messages again.
pub(crate) fn recount(messages: &[Message], facts: &mut [Facts], counter: &Counter) {
    for (message, facts) in messages.iter().zip(facts) {
        facts.tokens = counter.message(message) as u64;
    }
}

/// How much of the end is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keep {
    pub(crate) tokens: u64,
    pub(crate) bytes: u64,
}

/// A request of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Index of its first message and of the one after its last.
    pub(crate) range: (usize, usize),
    /// What it says.
    pub(crate) text: String,
}

impl Request {
    pub(crate) fn of(first: usize, messages: &[Message]) -> Self {
        Self {
            range: (first, first + messages.len()),
            text: restoring::request_text(messages),
        }
    }
}

/// Whether a tool call has no result yet.
fn ends_with_open_calls(messages: &[Message]) -> bool {
    messages.last().is_some_and(|last| {
        last.role == Role::Assistant && last.tool_calls().any(|call| !call.is_server_side)
    })
}

/// Bytes of a message that was not read from JSON: its texts, more or less.
fn estimated_bytes(message: &Message) -> usize {
    message
        .blocks
        .iter()
        .map(|block| {
            40 + match &block.content {
                Content::Text(text) | Content::Thinking(text) => text.encoded_len(),
                Content::Image(media) | Content::Document(media) => media.data_bytes.unwrap_or(0),
                Content::ToolResult(result) => result.texts().map(|text| text.encoded_len()).sum(),
                _ => 100,
            }
        })
        .sum::<usize>()
        + 40
}
