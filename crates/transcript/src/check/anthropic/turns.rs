//! How messages follow each other: merged turns, tool calls and their results, thinking at the start of a tool loop.
//!
//! The provider merges adjacent messages of the same role into one turn, so the results of one assistant turn may be
//! spread over several user messages. System messages do not end a turn; their position is checked separately.

use std::collections::{HashMap, HashSet};

use super::super::checker::{Checker, Quote};
use super::super::path::Path;
use super::super::rule;
use super::Request;
use super::block_types::Role;
use super::blocks::BlockSummary;

/// Index of the message and of the block in it.
type Place = (usize, usize);

/// The walk over the turns.
pub(crate) struct Turns<'r> {
    request: &'r Request,
    /// Role of the turn that is open.
    turn: Option<Role>,
    /// Role and index of the message that was last entered.
    last: Option<(Role, usize)>,
    is_first_message: bool,
    /// The body continues a thread, so the messages before it are unknown.
    is_blind: bool,
    reported_system: bool,

    /// Calls of the assistant turn that is open or was last closed.
    calls: Vec<Call>,
    /// Id to index in `calls`.
    call_of_id: HashMap<String, usize>,
    /// Every id, to the message of its call.
    calls_seen: HashMap<String, usize>,
    /// Server calls without a result so far.
    server_calls: HashMap<String, ServerCall>,
    /// Those that the open assistant turn made, in order.
    server_calls_of_turn: Vec<String>,
    server_ids: HashSet<String>,
    server_answered: HashSet<String>,
    has_tool_blocks: bool,

    /// In a user turn: something other than a result was seen, or a result was.
    has_other: bool,
    has_result: bool,
    /// What the last block of the turn was.
    last_block: LastBlock,
    /// In an assistant turn: whether its first block is thinking; `None` before the first one and where that is a
    /// compaction.
    first_block_thinks: Option<bool>,
    /// Whether the first assistant turn of the tool loop began with thinking.
    loop_thinks: bool,
    assistant_starts_at: usize,
}

struct Call {
    id: String,
    toolset: Option<String>,
    place: Place,
    is_answered: bool,
}

struct ServerCall {
    name: Option<String>,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LastBlock {
    None,
    Text { ends_in_space: bool },
    ServerUse,
    ServerResult,
    Thinking,
    Compaction,
    Other,
}

impl<'r> Turns<'r> {
    pub(crate) fn new(request: &'r Request) -> Self {
        Self {
            request,
            turn: None,
            last: None,
            is_first_message: true,
            is_blind: request.continues_thread,
            reported_system: false,
            calls: Vec::new(),
            call_of_id: HashMap::new(),
            calls_seen: HashMap::new(),
            server_calls: HashMap::new(),
            server_calls_of_turn: Vec::new(),
            server_ids: HashSet::new(),
            server_answered: HashSet::new(),
            has_tool_blocks: false,
            has_other: false,
            has_result: false,
            last_block: LastBlock::None,
            first_block_thinks: None,
            loop_thinks: false,
            assistant_starts_at: 0,
        }
    }

    /// A message begins.
    pub(crate) fn enter(&mut self, role: Role, index: usize, checker: &mut Checker<'_>) {
        if role == Role::System {
            self.check_system(index, checker);
            self.last = Some((role, index));
            return;
        }
        if role == Role::User
            && let Some((Role::System, system)) = self.last
            && self.turn.is_some()
        {
            at_message(system, |path| {
                checker.add(
                    &rule::SYSTEM_MISPLACED,
                    path,
                    "a system message must be the last or be followed by an assistant message: move it behind the user message",
                );
            });
        }
        self.last = Some((role, index));
        if self.turn == Some(role) {
            return;
        }
        self.close(checker);
        self.turn = Some(role);
        self.last_block = LastBlock::None;
        match role {
            Role::User => {
                self.has_other = false;
                self.has_result = false;
            }
            Role::Assistant => {
                self.first_block_thinks = None;
                self.assistant_starts_at = index;
                self.server_calls_of_turn.clear();
                self.calls.clear();
                self.call_of_id.clear();
            }
            Role::System => {}
        }
    }

    /// A message ends.
    pub(crate) fn leave(&mut self, checker: &mut Checker<'_>) {
        let Some((role, index)) = self.last else {
            return;
        };
        if self.is_first_message
            && role == Role::Assistant
            && !self.is_blind
            && self.first_block_thinks.is_some()
        {
            at_message(index, |path| {
                checker.add(
                    &rule::FIRST_NOT_USER,
                    path.key("role"),
                    "the first message must be the user's: put a user message in front",
                );
            });
        }
        self.is_first_message = false;
    }

    /// A block of the message that was entered.
    pub(crate) fn block(&mut self, seen: BlockSummary, place: Place, checker: &mut Checker<'_>) {
        match self.last.map(|(role, _)| role) {
            Some(Role::User) => self.user_block(seen, place, checker),
            Some(Role::Assistant) => self.assistant_block(seen, place, checker),
            Some(Role::System) | None => {}
        }
    }

    fn user_block(&mut self, seen: BlockSummary, place: Place, checker: &mut Checker<'_>) {
        if let BlockSummary::ToolResult { id, toolset } = seen {
            self.has_tool_blocks = true;
            self.result(&id, toolset.as_deref(), place, checker);
            self.has_result = true;
            self.last_block = LastBlock::Other;
            return;
        }
        if !self.has_other && !self.server_calls.is_empty() {
            self.report_open_server_calls(
                "a call of a server tool is still open: the next user message may hold tool results only, or the call must be removed",
                checker,
            );
        }
        self.has_other = true;
        self.last_block = LastBlock::Other;
    }

    fn result(&mut self, id: &str, toolset: Option<&str>, place: Place, checker: &mut Checker<'_>) {
        if let Some(call) = self
            .call_of_id
            .get(id)
            .and_then(|index| self.calls.get_mut(*index))
        {
            if call.is_answered {
                at_field(place, "tool_use_id", |path| {
                    checker.add(
                        &rule::DUPLICATE_RESULT,
                        path,
                        format_args!("the call {} has a result already: keep one", Quote(id)),
                    );
                });
            } else if self.has_other {
                at_block(place, |path| {
                    checker.add(
                        &rule::RESULT_NOT_FIRST,
                        path,
                        "tool results must come before everything else in the user turn: move it to the front",
                    );
                });
            }
            call.is_answered = true;
            if call.toolset.as_deref() != toolset {
                at_field(place, "toolset_name", |path| {
                    checker.add(
                        &rule::TOOLSET_MISMATCH,
                        path,
                        "`toolset_name` must be the same as in the call: copy it",
                    );
                });
            }
            return;
        }
        if self.is_blind {
            return;
        }
        match self.calls_seen.get(id) {
            Some(call_message) => at_field(place, "tool_use_id", |path| {
                checker.add(
                    &rule::RESULT_NOT_ADJACENT,
                    path,
                    format_args!(
                        "the call {} is in messages[{call_message}], and its result must be in the next user turn: move it there",
                        Quote(id)
                    ),
                );
            }),
            None => at_field(place, "tool_use_id", |path| {
                checker.add(
                    &rule::RESULT_WITHOUT_USE,
                    path,
                    format_args!(
                        "the assistant turn before has no tool_use {}: remove the result or restore the call",
                        Quote(id)
                    ),
                );
            }),
        }
    }

    fn assistant_block(&mut self, seen: BlockSummary, place: Place, checker: &mut Checker<'_>) {
        if self.last_block == LastBlock::None && !matches!(seen, BlockSummary::Compaction { .. }) {
            self.first_block_thinks = Some(matches!(seen, BlockSummary::Thinking));
        }
        self.last_block = match &seen {
            BlockSummary::Text { ends_in_space } => LastBlock::Text {
                ends_in_space: *ends_in_space,
            },
            BlockSummary::ServerUse { .. } => LastBlock::ServerUse,
            BlockSummary::ServerResult { .. } => LastBlock::ServerResult,
            BlockSummary::Thinking => LastBlock::Thinking,
            BlockSummary::Compaction { .. } => LastBlock::Compaction,
            BlockSummary::ToolUse { .. }
            | BlockSummary::ToolResult { .. }
            | BlockSummary::Other => LastBlock::Other,
        };
        match seen {
            BlockSummary::ToolUse { id, toolset } => {
                self.has_tool_blocks = true;
                self.call(id, toolset, place, checker);
            }
            BlockSummary::ServerUse { id, name } => {
                if !self.server_ids.insert(id.clone()) || self.calls_seen.contains_key(&id) {
                    report_duplicate(&id, place, checker);
                } else {
                    self.server_calls_of_turn.push(id.clone());
                    self.server_calls.insert(id, ServerCall { name, place });
                }
            }
            BlockSummary::ServerResult { id, is_unknown } => {
                self.server_result(&id, is_unknown, place, checker);
            }
            _ => {}
        }
    }

    fn call(
        &mut self,
        id: String,
        toolset: Option<String>,
        place: Place,
        checker: &mut Checker<'_>,
    ) {
        if self.calls_seen.contains_key(&id) || self.server_ids.contains(&id) {
            report_duplicate(&id, place, checker);
        }
        // A repeated id in an earlier turn is one mistake, the missing result of this call would be another.
        if self.call_of_id.contains_key(&id) {
            return;
        }
        self.calls_seen.insert(id.clone(), place.0);
        self.call_of_id.insert(id.clone(), self.calls.len());
        self.calls.push(Call {
            id,
            toolset,
            place,
            is_answered: false,
        });
    }

    fn server_result(
        &mut self,
        id: &str,
        is_unknown: bool,
        place: Place,
        checker: &mut Checker<'_>,
    ) {
        if self.server_calls.remove(id).is_some() {
            self.server_answered.insert(id.to_owned());
        } else if is_unknown || self.is_blind {
            // Nothing can be said about it.
        } else if self.server_answered.contains(id) {
            at_field(place, "tool_use_id", |path| {
                checker.add(
                    &rule::DUPLICATE_RESULT,
                    path,
                    format_args!("the call {} has a result already: keep one", Quote(id)),
                );
            });
        } else {
            at_field(place, "tool_use_id", |path| {
                checker.add(
                    &rule::SERVER_RESULT_WITHOUT_USE,
                    path,
                    format_args!(
                        "no server tool call {} is open in this assistant turn: remove the result or restore the call before it",
                        Quote(id)
                    ),
                );
            });
        }
    }

    /// The open turn is followed by one of another role.
    fn close(&mut self, checker: &mut Checker<'_>) {
        match self.turn {
            Some(Role::Assistant) => {
                self.is_blind = false;
                if self.calls.is_empty() && !self.server_calls.is_empty() {
                    self.report_open_server_calls(
                        "the call of a server tool has no result in this assistant turn: restore the result or remove the call",
                        checker,
                    );
                } else {
                    self.check_open_server_tools(checker);
                }
                if self.last_block == LastBlock::Thinking {
                    at_message(self.assistant_starts_at, |path| {
                        checker.add(
                            &rule::THINKING_LAST,
                            path,
                            "an assistant turn that ends in thinking is refused by some models: remove the turn or keep what followed",
                        );
                    });
                }
                self.note_loop();
            }
            Some(Role::User) => {
                self.report_unanswered(checker);
                self.is_blind = false;
            }
            Some(Role::System) | None => {}
        }
    }

    /// Keeps whether the tool loop began with thinking.
    fn note_loop(&mut self) {
        let continues_loop = self.has_result && !self.has_other;
        if !continues_loop {
            self.loop_thinks = false;
        }
        self.loop_thinks |= self.first_block_thinks.unwrap_or(true);
    }

    fn report_unanswered(&mut self, checker: &mut Checker<'_>) {
        for call in self.calls.drain(..) {
            if call.is_answered {
                continue;
            }
            let (rule, advice) = if self.turn == Some(Role::Assistant)
                && self.request.asks_for_compaction
            {
                (
                    &rule::COMPACTION_INCOMPLETE,
                    "a compaction needs a finished turn: send its result or leave this turn out",
                )
            } else {
                (
                    &rule::USE_WITHOUT_RESULT,
                    "the next user message must begin with its tool_result: add one (is_error if it never ran) or remove the call",
                )
            };
            at_field(call.place, "id", |path| {
                checker.add(
                    rule,
                    path,
                    format_args!("the call {} has no result, {advice}", Quote(&call.id)),
                );
            });
        }
        self.call_of_id.clear();
    }

    fn report_open_server_calls(&mut self, message: &str, checker: &mut Checker<'_>) {
        let mut calls: Vec<_> = self.server_calls.drain().map(|(_, call)| call).collect();
        calls.sort_unstable_by_key(|call| call.place);
        for call in calls {
            at_field(call.place, "id", |path| {
                checker.add(&rule::SERVER_USE_WITHOUT_RESULT, path, message);
            });
        }
    }

    /// A server tool with an open call must still be defined, or it cannot continue.
    fn check_open_server_tools(&self, checker: &mut Checker<'_>) {
        if self.request.continues_thread {
            return;
        }
        let calls = self
            .server_calls_of_turn
            .iter()
            .filter_map(|id| self.server_calls.get(id));
        for call in calls {
            let Some(name) = &call.name else { continue };
            let is_defined = self
                .request
                .tools
                .as_ref()
                .is_some_and(|tools| tools.has_server_tool(name));
            if !is_defined {
                at_field(call.place, "name", |path| {
                    checker.add(
                        &rule::SERVER_TOOL_UNDEFINED,
                        path,
                        format_args!(
                            "the call of {} is still open, so `tools` must define that tool: add it or remove the call",
                            Quote(name)
                        ),
                    );
                });
            }
        }
    }

    fn check_system(&mut self, index: usize, checker: &mut Checker<'_>) {
        if checker.ability(|can| can.mid_conversation_system) == Some(false)
            && !self.reported_system
        {
            self.reported_system = true;
            at_message(index, |path| {
                checker.add(
                    &rule::SYSTEM_UNSUPPORTED,
                    path.key("role"),
                    "the model does not take system messages among the others: put the text into a user message",
                );
            });
        }
        match self.turn {
            None if self.request.continues_thread => {}
            None => {
                if self.last.is_none() {
                    at_message(index, |path| {
                        checker.add(
                            &rule::SYSTEM_FIRST,
                            path.key("role"),
                            "a system message cannot be the first: use the field `system`",
                        );
                    });
                }
            }
            Some(Role::Assistant) if self.last_block != LastBlock::ServerResult => {
                at_message(index, |path| {
                    checker.add(
                        &rule::SYSTEM_MISPLACED,
                        path,
                        "a system message must follow a user turn, or an assistant turn that ends in the result of a server tool: move it behind the next user message",
                    );
                });
            }
            Some(_) => {}
        }
    }

    /// The messages are over.
    pub(crate) fn finish(mut self, checker: &mut Checker<'_>) {
        match self.turn {
            Some(Role::User) => {
                self.report_unanswered(checker);
                if self.has_result && !self.is_blind {
                    self.check_thinking_first(checker);
                }
            }
            Some(Role::Assistant) => {
                let has_open_call = !self.calls.is_empty();
                self.check_open_server_tools(checker);
                self.report_unanswered(checker);
                if !has_open_call {
                    self.check_prefill(checker);
                }
            }
            Some(Role::System) | None => {}
        }
        if self.has_tool_blocks && self.request.tools.is_none() && !self.request.continues_thread {
            let root = Path::Root;
            checker.add(
                &rule::TOOLS_MISSING,
                root.key("tools"),
                "the messages hold tool calls but no tools are defined, which some platforms refuse: send the same `tools` as before",
            );
        }
    }

    fn check_prefill(&mut self, checker: &mut Checker<'_>) {
        // A paused turn and a paused compaction are sent back as they came, to be continued.
        let is_paused = matches!(
            self.last_block,
            LastBlock::ServerUse | LastBlock::ServerResult | LastBlock::Compaction
        ) || !self.server_calls.is_empty();
        let follows_system = matches!(self.last, Some((Role::System, _)));
        if is_paused || follows_system || self.request.asks_for_compaction {
            return;
        }
        let prefill = checker.ability(|can| can.prefill);
        let last = self.last.map_or(0, |(_, index)| index);
        let message = "the last message is the assistant's, which models since Claude 4.6 refuse: end with a user message";
        at_message(last, |path| match prefill {
            Some(false) => checker.add(&rule::PREFILL, path.key("role"), message),
            None => checker.warn(&rule::PREFILL, path.key("role"), message),
            Some(true) => {}
        });
        if self.last_block
            == (LastBlock::Text {
                ends_in_space: true,
            })
            && prefill != Some(false)
        {
            let message = "the last text of the assistant cannot end in white space: trim it";
            at_message(last, |path| match prefill {
                Some(_) => checker.add(&rule::PREFILL_SPACE, path.key("content"), message),
                None => checker.warn(&rule::PREFILL_SPACE, path.key("content"), message),
            });
        }
        self.note_loop();
        self.check_thinking_first(checker);
    }

    fn check_thinking_first(&self, checker: &mut Checker<'_>) {
        if self.request.thinks_with_budget && !self.loop_thinks {
            at_message(self.assistant_starts_at, |path| {
                checker.add(
                    &rule::THINKING_FIRST,
                    path.key("content"),
                    "with thinking enabled the last assistant turn must begin with its thinking block: restore it or switch thinking off",
                );
            });
        }
    }
}

fn report_duplicate(id: &str, place: Place, checker: &mut Checker<'_>) {
    at_field(place, "id", |path| {
        checker.add(
            &rule::DUPLICATE_USE,
            path,
            format_args!(
                "two calls have the id {}: give each its own, in the results too",
                Quote(id)
            ),
        );
    });
}

fn at_message(index: usize, report: impl FnOnce(Path<'_>)) {
    let root = Path::Root;
    report(root.key("messages").index(index));
}

fn at_block((message, block): Place, report: impl FnOnce(Path<'_>)) {
    at_message(message, |path| report(path.key("content").index(block)));
}

fn at_field(place: Place, key: &str, report: impl FnOnce(Path<'_>)) {
    at_block(place, |path| report(path.key(key)));
}
