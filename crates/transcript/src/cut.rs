//! Where a conversation may be cut: everything before the cut is covered by a memory, everything from it on is kept.
//!
//! A cut is an index into the messages: `messages[..cut]` are covered, `messages[cut..]` are the tail. It is legal if
//!
//! * a cut never separates a call from its result, so that a batch of parallel calls stays whole;
//! * no call that still runs is covered;
//! * a message that is reasoning only is not parted from the message after it;
//! * the tail does not begin with a system message (nor, where asked, with anything but a user message);
//! * the latest request of the user is in the tail, unless the caller says that the memory quotes it.
//!
//! Nothing is decided here about *when* to cut, and a cut is no promise that the tail is a valid request: histories
//! that are broken already are repaired by `throughline_formats::convert`.

use std::collections::HashMap;

use bytestring::ByteString;

use crate::message::{Content, Message, Role};

/// What a cut has to keep to besides the pairs of calls and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether the latest request of the user must be in the tail. Without it a tool loop longer than the window can
    /// be cut; the caller then quotes the request at the end of the memory.
    pub latest_request: LatestRequest,
    /// What the tail may begin with.
    pub tail_begins: TailBegins,
}

/// Where the latest request of the user stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LatestRequest {
    /// In the tail.
    #[default]
    InTail,
    /// Quoted by the memory if it is covered.
    MayBeCovered,
}

/// What a tail may begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TailBegins {
    /// Anything but a system message: the memory before it is a message of the user's.
    #[default]
    Anyhow,
    /// A message of the user that answers no call: the memory is in the system prompt.
    WithUser,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            latest_request: LatestRequest::InTail,
            tail_begins: TailBegins::Anyhow,
        }
    }
}

/// How much of the end of a conversation is to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// At least this number of messages.
    Messages(usize),
    /// At most this number of tokens, as far as legal cuts allow.
    Tokens(usize),
}

/// For how many turns after its batch a call without a result counts as still running. A person may be asked to
/// confirm a call and talk about other things first; a call that was lost must not stop compaction for ever.
const PENDING_TURNS_MAX: usize = 8;

/// All legal cuts by the default [`Rules`], rising. 0 (nothing is covered) is always among them.
#[must_use]
pub fn legal_cuts(messages: &[Message]) -> Vec<usize> {
    legal_cuts_by(messages, Rules::default())
}

/// All legal cuts in ascending order. 0 (nothing is covered) is always among them. Takes time linear in the number of
/// blocks for every history.
#[must_use]
pub fn legal_cuts_by(messages: &[Message], rules: Rules) -> Vec<usize> {
    let pairs = Pairs::of(messages);
    // `closed[cut]` counts, as differences, the spans that the cut would part.
    let mut closed = vec![0isize; messages.len() + 2];
    for (first, last) in pairs.spans {
        closed[first + 1] += 1;
        closed[last + 1] -= 1;
    }
    let mut cut_max = messages.len();
    if let Some(pending) = pairs.pending {
        cut_max = cut_max.min(pending);
    }
    if rules.latest_request == LatestRequest::InTail
        && let Some(request) = latest_request(messages)
    {
        cut_max = cut_max.min(request);
    }
    let mut open = 0;
    let mut cuts = Vec::new();
    for (cut, change) in closed.into_iter().enumerate().take(cut_max + 1) {
        open += change;
        let is_legal = open == 0
            && !messages.get(cut).is_some_and(|first| {
                first.role == Role::System
                    || (rules.tail_begins == TailBegins::WithUser && !is_plain_user(first))
            })
            && !is_reasoning_before(messages, cut);
        if cut == 0 || is_legal {
            cuts.push(cut);
        }
    }
    cuts
}

/// The legal cut, by the default [`Rules`], that keeps the asked tail best. `tokens` says what a message counts; it
/// is called only for [`Tail::Tokens`].
///
/// Messages are a lower bound: if the cut falls into a batch, the whole batch is kept. Tokens are an upper bound, but
/// the latest request and calls that still run stay in the tail regardless of their size.
pub fn cut_for_tail(
    messages: &[Message],
    tail: Tail,
    tokens: impl FnMut(&Message) -> usize,
) -> usize {
    cut_for_tail_by(messages, Rules::default(), tail, tokens)
}

/// As [`cut_for_tail`], by other rules.
pub fn cut_for_tail_by(
    messages: &[Message],
    rules: Rules,
    tail: Tail,
    mut tokens: impl FnMut(&Message) -> usize,
) -> usize {
    let cuts = legal_cuts_by(messages, rules);
    let at_most = |wanted: usize| {
        let count = cuts.partition_point(|cut| *cut <= wanted);
        cuts.get(count.saturating_sub(1)).copied().unwrap_or(0)
    };
    match tail {
        Tail::Messages(count) => at_most(messages.len().saturating_sub(count)),
        Tail::Tokens(budget) => {
            let mut wanted = messages.len();
            let mut sum = 0usize;
            while wanted > 0 {
                sum = sum.saturating_add(tokens(&messages[wanted - 1]));
                if sum > budget {
                    break;
                }
                wanted -= 1;
            }
            let count = cuts.partition_point(|cut| *cut < wanted);
            cuts.get(count)
                .copied()
                .unwrap_or_else(|| at_most(messages.len()))
        }
    }
}

/// Index of the message with which the latest request of the user begins. Messages that follow each other without an
/// answer between them are one request.
#[must_use]
pub fn latest_request(messages: &[Message]) -> Option<usize> {
    let mut first = messages.iter().rposition(Message::begins_turn)?;
    while let Some(before) = first.checked_sub(1)
        && messages[before].begins_turn()
        && messages[before].tool_results().next().is_none()
        && messages[first].tool_results().next().is_none()
    {
        first = before;
    }
    Some(first)
}

fn is_plain_user(message: &Message) -> bool {
    message.role == Role::User && message.tool_results().next().is_none()
}

/// Whether the cut would part reasoning from what it led to.
fn is_reasoning_before(messages: &[Message], cut: usize) -> bool {
    let (Some(before), Some(after)) = (
        cut.checked_sub(1).and_then(|at| messages.get(at)),
        messages.get(cut),
    ) else {
        return false;
    };
    before.role == Role::Assistant
        && after.role == Role::Assistant
        && !before.blocks.is_empty()
        && before
            .blocks
            .iter()
            .all(|block| matches!(block.content, Content::Thinking(_)))
}

/// Which messages belong together through calls and their results.
struct Pairs {
    /// First and last message of each bond.
    spans: Vec<(usize, usize)>,
    /// The first message with a call that may still run.
    pending: Option<usize>,
}

struct Call {
    message: usize,
    is_answered: bool,
}

impl Pairs {
    fn of(messages: &[Message]) -> Self {
        let mut spans = Vec::new();
        let mut calls: Vec<Call> = Vec::new();
        // Ids are not always unique: some servers restart their numbering in each turn. A result belongs to the last
        // call with its id.
        let mut latest: HashMap<&ByteString, usize> = HashMap::new();
        let mut orphans: HashMap<&ByteString, usize> = HashMap::new();
        let mut by_call: Vec<&ByteString> = Vec::new();
        // Calls without an id are answered in their order.
        let mut nameless: std::collections::VecDeque<usize> = std::collections::VecDeque::new();
        for (index, message) in messages.iter().enumerate() {
            for block in &message.blocks {
                match &block.content {
                    Content::ToolCall(call) => {
                        if call.id.is_empty() {
                            nameless.push_back(calls.len());
                        } else {
                            latest.insert(&call.id, calls.len());
                        }
                        calls.push(Call {
                            message: index,
                            is_answered: false,
                        });
                        by_call.push(&call.id);
                    }
                    Content::ToolResult(result) => {
                        let found = if result.call_id.is_empty() {
                            nameless.pop_front()
                        } else {
                            latest.get(&result.call_id).copied()
                        };
                        match found {
                            Some(found) => {
                                let call = &mut calls[found];
                                call.is_answered = true;
                                if call.message < index {
                                    spans.push((call.message, index));
                                }
                            }
                            None => {
                                orphans.insert(&result.call_id, index);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        // A result that was written before its call belongs to it all the same.
        for (call, id) in calls.iter_mut().zip(by_call) {
            if !call.is_answered
                && let Some(result) = orphans.remove(id)
            {
                call.is_answered = true;
                let (first, last) = (result.min(call.message), result.max(call.message));
                spans.push((first, last));
            }
        }
        Self {
            spans,
            pending: pending(messages, &calls),
        }
    }
}

/// The first message of the newest batch of calls, if one of its calls has no result and the conversation has not moved
/// on since.
fn pending(messages: &[Message], calls: &[Call]) -> Option<usize> {
    let newest = calls.last()?.message;
    // A batch can be spread over messages that follow each other: Responses has an item for each call.
    let mut first = newest;
    for call in calls.iter().rev() {
        let is_same_batch = messages[call.message..first]
            .iter()
            .all(|message| message.role == Role::Assistant);
        if !is_same_batch {
            break;
        }
        first = call.message;
    }
    let is_open = calls
        .iter()
        .rev()
        .take_while(|call| call.message >= first)
        .any(|call| !call.is_answered);
    let turns_since = messages[newest..]
        .iter()
        .filter(|message| message.begins_turn())
        .count();
    (is_open && turns_since <= PENDING_TURNS_MAX).then_some(first)
}

#[cfg(test)]
mod tests;
