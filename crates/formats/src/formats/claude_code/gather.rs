//! Turns a chain of lines into the messages of a conversation.
//!
//! Lines of one response are gathered into one message, also those on side branches, and the results of its calls into
//! the message after it, in the order of the calls.

use std::collections::{HashMap, HashSet};

use bytestring::ByteString;
use throughline_transcript::conversation::{CompactionMark, Conversation, Problem};
use throughline_transcript::message::{Author, Block, Content, Message, Position, Role};

use super::links::Links;
use super::record::{AuthoredBlocks, Node, NodeKind, author_of, command_text};
use super::session::{Chain, DeliveredBlock, Session};

/// Whose line it is: ids of responses and calls count within the session or within one sub-agent.
type Owner = Option<ByteString>;

fn owner(node: &Node) -> Owner {
    node.is_sidechain
        .then(|| node.agent.clone().unwrap_or_default())
}

/// How many lines with a result for the same call are looked through.
const RESULTS_OF_CALL_MAX: usize = 64;

/// Puts the messages of chains together.
pub(super) struct Gatherer<'a> {
    nodes: &'a [Node],
    links: &'a Links,
    /// Lines of one response, by its id.
    by_message: HashMap<(Owner, ByteString), Vec<usize>>,
    /// Lines with the result of a call, by the call's id.
    by_call: HashMap<(Owner, ByteString), Vec<usize>>,
    /// Texts that have a line of their own, so that a text that waited is not told twice.
    is_placed: Vec<bool>,
}

impl<'a> Gatherer<'a> {
    pub(super) fn of(nodes: &'a [Node], links: &'a Links) -> Self {
        let mut by_message: HashMap<_, Vec<usize>> = HashMap::new();
        let mut by_call: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, node) in nodes.iter().enumerate() {
            match &node.kind {
                NodeKind::Assistant { message_id, .. } if !message_id.is_empty() => by_message
                    .entry((owner(node), message_id.clone()))
                    .or_default()
                    .push(index),
                NodeKind::User(spoken) => {
                    for block in &spoken.blocks {
                        if let Content::ToolResult(result) = &block.content {
                            by_call
                                .entry((owner(node), result.call_id.clone()))
                                .or_default()
                                .push(index);
                        }
                    }
                }
                _ => {}
            }
        }
        Self {
            is_placed: vec![false; nodes.len()],
            nodes,
            links,
            by_message,
            by_call,
        }
    }

    pub(super) fn conversation(
        &mut self,
        chain: &Chain,
        delivered: &[DeliveredBlock],
    ) -> Conversation {
        let mut conversation = Conversation::default();
        let mut build = Build {
            on_chain: chain.nodes.iter().copied().collect(),
            done: HashSet::new(),
            answered: HashSet::new(),
        };
        let mut waiting = self.undelivered(chain, delivered).into_iter().peekable();
        for index in &chain.nodes {
            if build.done.contains(index) {
                continue;
            }
            while let Some(text) = waiting.next_if(|text| text.line < self.nodes[*index].line) {
                conversation.messages.push(text_in_between(text));
            }
            if self.links.is_bridged[*index] {
                conversation.problems.push(Problem {
                    code: "broken-chain",
                    message: conversation.messages.len(),
                    text: format!(
                        "line {} follows a line that is not in the file; the line before it is taken instead",
                        self.nodes[*index].line
                    ),
                });
            }
            if self.links.is_cleared[*index] && !conversation.messages.is_empty() {
                conversation.compactions.push(CompactionMark {
                    before_message: conversation.messages.len(),
                    tokens_before: None,
                    trigger: Some("clear".to_owned()),
                });
            }
            self.add(*index, &mut build, &mut conversation);
        }
        conversation.messages.extend(waiting.map(text_in_between));
        conversation
    }

    /// Texts that reached the model in the middle of its work and have no line of their own.
    fn undelivered<'d>(
        &self,
        chain: &Chain,
        delivered: &'d [DeliveredBlock],
    ) -> Vec<&'d DeliveredBlock> {
        if chain.agent.is_some() || delivered.is_empty() {
            return Vec::new();
        }
        let said: HashSet<String> = chain
            .nodes
            .iter()
            .filter_map(|index| match &self.nodes[*index].kind {
                NodeKind::User(spoken) => Some(&spoken.blocks),
                _ => None,
            })
            .flatten()
            .filter_map(|block| match &block.content {
                Content::Text(text) => Some(text.decode().trim().to_owned()),
                _ => None,
            })
            .collect();
        delivered
            .iter()
            .filter(|text| match &text.block.content {
                Content::Text(text) => !said.contains(text.decode().trim()),
                _ => false,
            })
            .collect()
    }

    fn add(&mut self, index: usize, build: &mut Build, conversation: &mut Conversation) {
        build.done.insert(index);
        self.is_placed[index] = true;
        match &self.nodes[index].kind {
            NodeKind::Link => {}
            NodeKind::Boundary(boundary) => conversation.compactions.push(CompactionMark {
                before_message: conversation.messages.len(),
                tokens_before: boundary.tokens_before,
                trigger: boundary.trigger.clone(),
            }),
            NodeKind::User(_) => self.add_user(index, build, conversation),
            NodeKind::Assistant { .. } => self.add_assistant(index, build, conversation),
        }
    }

    /// Adds the response that the line belongs to, and the message with the results of its calls.
    fn add_assistant(&mut self, index: usize, build: &mut Build, conversation: &mut Conversation) {
        let lines = self.lines_of_response(index);
        let mut message = Message::new(Role::Assistant, Vec::new());
        let mut calls = HashSet::new();
        // Calls on side branches are usual; other blocks there are copies of what is on the chain.
        let has_copies = lines
            .iter()
            .any(|line| !build.on_chain.contains(line) && !self.has_only_calls(*line));
        let mut seen = HashSet::new();
        let mut count = 0;
        for line in lines {
            if line != index && !build.done.insert(line) {
                continue;
            }
            self.is_placed[line] = true;
            let node = &self.nodes[line];
            let NodeKind::Assistant {
                spoken,
                message_id,
                model,
                usage,
            } = &node.kind
            else {
                continue;
            };
            for block in &spoken.blocks {
                let is_repeated = match &block.content {
                    Content::ToolCall(call) if !call.id.is_empty() => {
                        !calls.insert(call.id.clone())
                    }
                    // A copy of the session's lines under other ids repeats blocks.
                    _ => has_copies && block.raw.is_some() && !seen.insert(block.raw.clone()),
                };
                if !is_repeated {
                    message.blocks.push(block.clone());
                }
            }
            if count == 0 {
                message.position = Position { line: node.line };
                message.at_ms = node.at_ms;
                message.id = [message_id, &node.uuid]
                    .into_iter()
                    .find(|id| !id.is_empty())
                    .cloned();
            }
            count += 1;
            // Every line repeats the usage; while the answer streams it grows, so the last one is right.
            message.usage = usage.or(message.usage);
            message.raw = if count == 1 { spoken.raw.clone() } else { None };
            if let Some(model) = model {
                conversation.model = Some(model.to_string());
            }
        }
        if message.blocks.is_empty() {
            return;
        }
        let calls: Vec<ByteString> = message
            .tool_calls()
            .filter(|call| !call.is_server_side)
            .map(|call| call.id.clone())
            .collect();
        conversation.messages.push(message);
        if !calls.is_empty() {
            self.add_results(index, &calls, build, conversation);
        }
    }

    fn has_only_calls(&self, index: usize) -> bool {
        match &self.nodes[index].kind {
            NodeKind::Assistant { spoken, .. } => spoken
                .blocks
                .iter()
                .all(|block| matches!(block.content, Content::ToolCall(_))),
            _ => false,
        }
    }

    fn lines_of_response(&self, index: usize) -> Vec<usize> {
        let node = &self.nodes[index];
        match &node.kind {
            NodeKind::Assistant { message_id, .. } if !message_id.is_empty() => self
                .by_message
                .get(&(owner(node), message_id.clone()))
                .cloned()
                .unwrap_or_else(|| vec![index]),
            _ => vec![index],
        }
    }

    /// One message with the results of `calls`, in the order of the calls, wherever their lines are.
    fn add_results(
        &mut self,
        index: usize,
        calls: &[ByteString],
        build: &mut Build,
        conversation: &mut Conversation,
    ) {
        let owner = owner(&self.nodes[index]);
        let mut message = Message::new(Role::User, Vec::new());
        let mut sources = Vec::new();
        let mut missing = 0;
        for call in calls {
            let lines = self.by_call.get(&(owner.clone(), call.clone()));
            let Some(line) = lines.and_then(|lines| {
                let on_chain = |line: &&usize| build.on_chain.contains(*line);
                let mut near = lines.iter().take(RESULTS_OF_CALL_MAX);
                near.find(on_chain).or_else(|| lines.first()).copied()
            }) else {
                missing += 1;
                continue;
            };
            build.answered.insert(call.clone());
            let NodeKind::User(spoken) = &self.nodes[line].kind else {
                continue;
            };
            let block = spoken.blocks.iter().find(
                |block| matches!(&block.content, Content::ToolResult(result) if result.call_id == *call),
            );
            message.blocks.extend(block.cloned());
            sources.push(line);
        }
        if let Some(first) = sources.iter().copied().min() {
            let node = &self.nodes[first];
            message.position = Position { line: node.line };
            message.at_ms = node.at_ms;
            message.id = Some(node.uuid.clone()).filter(|id| !id.is_empty());
            if let ([_], NodeKind::User(spoken)) = (sources.as_slice(), &node.kind)
                && spoken.blocks.len() == 1
            {
                message.raw.clone_from(&spoken.raw);
            }
            conversation.messages.push(message);
        }
        if missing > 0 {
            conversation.problems.push(Problem {
                code: "missing-tool-result",
                message: conversation.messages.len() - 1,
                text: format!("{missing} tool calls have no result in the file"),
            });
        }
        sources.sort_unstable();
        sources.dedup();
        for line in sources {
            self.is_placed[line] = true;
            // What else an off-chain line says would be lost.
            if !build.on_chain.contains(&line) && build.done.insert(line) {
                self.add_user(line, build, conversation);
            }
        }
    }

    /// Adds what a user line says apart from results that are placed already.
    fn add_user(&mut self, index: usize, build: &mut Build, conversation: &mut Conversation) {
        let node = &self.nodes[index];
        let NodeKind::User(spoken) = &node.kind else {
            return;
        };
        let rest: Vec<Block> = spoken
            .blocks
            .iter()
            .filter(|block| match &block.content {
                Content::ToolResult(result) => !build.answered.contains(&result.call_id),
                _ => true,
            })
            .cloned()
            .collect();
        let is_whole = rest.len() == spoken.blocks.len();
        let orphans = rest
            .iter()
            .filter(|block| matches!(block.content, Content::ToolResult(_)))
            .count();
        if orphans > 0 {
            conversation.problems.push(Problem {
                code: "orphan-tool-result",
                message: conversation.messages.len(),
                text: format!("{orphans} tool results belong to no call in the history"),
            });
        }
        if spoken.author == Author::Compaction {
            mark_compaction(conversation);
        }
        let mut messages = by_author(spoken, rest);
        let is_one = messages.len() == 1;
        for message in &mut messages {
            message.position = Position { line: node.line };
            message.at_ms = node.at_ms;
            message.id = Some(node.uuid.clone()).filter(|id| !id.is_empty());
            if is_one && is_whole {
                message.raw.clone_from(&spoken.raw);
            }
        }
        conversation.messages.append(&mut messages);
    }

    /// How many lines of the session's messages are in no conversation.
    pub(super) fn left_out(&self, chain: &Chain, session: &Session) -> usize {
        if chain.agent.is_some() {
            return 0;
        }
        session
            .main
            .iter()
            .filter(|index| {
                !self.is_placed[**index]
                    && matches!(
                        self.nodes[**index].kind,
                        NodeKind::User(_) | NodeKind::Assistant { .. }
                    )
            })
            .count()
    }
}

/// What is known while one conversation is put together.
struct Build {
    on_chain: HashSet<usize>,
    done: HashSet<usize>,
    /// Calls whose result is placed.
    answered: HashSet<ByteString>,
}

/// Splits the blocks of a user line where their authors differ: the client adds reminders to what the user says.
fn by_author(spoken: &AuthoredBlocks, blocks: Vec<Block>) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for mut block in blocks {
        let author = match spoken.author {
            Author::Role => match command_text(&block) {
                Some(text) => {
                    block.content = Content::Text(text.into());
                    Author::Role
                }
                None => author_of(&block),
            },
            author => author,
        };
        match messages.last_mut() {
            Some(last) if last.author == author => last.blocks.push(block),
            _ => {
                let mut message = Message::new(Role::User, vec![block]);
                message.author = author;
                messages.push(message);
            }
        }
    }
    messages
}

/// A summary without a boundary before it also marks a compaction.
fn mark_compaction(conversation: &mut Conversation) {
    let at = conversation.messages.len();
    if conversation
        .compactions
        .last()
        .is_none_or(|mark| mark.before_message != at)
    {
        conversation.compactions.push(CompactionMark {
            before_message: at,
            tokens_before: None,
            trigger: None,
        });
    }
}

fn text_in_between(text: &DeliveredBlock) -> Message {
    let mut message = Message::new(Role::User, vec![text.block.clone()]);
    message.author = author_of(&text.block);
    message.position = Position { line: text.line };
    message.at_ms = text.at_ms;
    message
}
