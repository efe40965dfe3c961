//! From the lines of a file to its conversations.
//!
//! 1. Lines become nodes; each session and each sub-agent has a newest line.
//! 2. From there the chain is walked back to its root, over compactions and over lines that are missing.
//! 3. Along the chain, lines of one response are gathered into one message (also those on side branches), and the
//!    results of its calls into the message after it.

use std::collections::{HashMap, HashSet};

use bytestring::ByteString;

use super::record::{
    Node, NodeKind, Parent, QueueOperation, Record, Spoken, TitleRank, command_text, is_of_client,
};
use crate::conversation::{CompactionMark, Conversation, Problem};
use crate::message::{Author, Block, Content, Message, Position, Role};

/// Sessions in one file that share a beginning each get it, until all chains together are this many times as long as
/// the file. Later ones begin where they branch off.
const SHARED_HISTORY_MAX: usize = 8;

/// The lines of a file, as they are added one by one.
#[derive(Default)]
pub(super) struct History {
    nodes: Vec<Node>,
    sessions: Vec<Session>,
    session_index: HashMap<ByteString, usize>,
    by_uuid: HashMap<ByteString, usize>,
    titles: Vec<Title>,
}

#[derive(Default)]
struct Session {
    id: ByteString,
    cwd: Option<ByteString>,
    /// The line that the session says it stands at, if no message came after.
    leaf: Option<ByteString>,
    queue: std::collections::VecDeque<Block>,
    /// Texts that were given to the model in the middle of its work.
    delivered: Vec<Delivered>,
    /// Nodes outside of side chains, in file order.
    main: Vec<usize>,
}

struct Delivered {
    line: usize,
    at_ms: Option<i64>,
    block: Block,
}

struct Title {
    session: ByteString,
    leaf: Option<ByteString>,
    text: String,
    rank: TitleRank,
}

impl History {
    pub(super) fn add(&mut self, record: Record) {
        match record {
            Record::Node(node) => self.add_node(node),
            Record::Title {
                session,
                leaf,
                text,
                rank,
            } => self.titles.push(Title {
                session,
                leaf,
                text,
                rank,
            }),
            Record::Leaf { session, uuid } => self.session(&session).leaf = Some(uuid),
            Record::Queue {
                session,
                line,
                at_ms,
                operation,
            } => {
                let session = self.session(&session);
                match operation {
                    QueueOperation::Enqueue(block) => session.queue.push_back(block),
                    QueueOperation::Dequeue => {
                        session.queue.pop_front();
                    }
                    QueueOperation::Remove => {
                        if let Some(block) = session.queue.pop_front() {
                            session.delivered.push(Delivered { line, at_ms, block });
                        }
                    }
                    QueueOperation::Clear => session.queue.clear(),
                }
            }
            Record::Nothing => {}
        }
    }

    fn add_node(&mut self, node: Node) {
        let index = self.nodes.len();
        let session = self.session(&node.session);
        if session.cwd.is_none() {
            session.cwd.clone_from(&node.cwd);
        }
        if !node.is_sidechain {
            session.main.push(index);
            if !matches!(node.kind, NodeKind::Link) {
                session.leaf = None;
            }
        }
        if !node.uuid.is_empty() {
            // A line that is written again (kept over a compaction) has its place where it stood first.
            self.by_uuid.entry(node.uuid.clone()).or_insert(index);
        }
        self.nodes.push(node);
    }

    fn session(&mut self, id: &ByteString) -> &mut Session {
        let sessions = &mut self.sessions;
        let index = *self.session_index.entry(id.clone()).or_insert_with(|| {
            sessions.push(Session {
                id: id.clone(),
                ..Session::default()
            });
            sessions.len() - 1
        });
        &mut sessions[index]
    }

    /// All conversations: first the sessions by their first line, then those of sub-agents by theirs.
    pub(super) fn into_conversations(self) -> Vec<Conversation> {
        let links = Links::of(&self.nodes, &self.sessions, &self.by_uuid);
        let mut chains = self.main_chains(&links);
        chains.extend(self.side_chains(&links));
        let titles = self.best_titles();
        let mut gatherer = Gatherer::of(&self.nodes, &links);
        let mut conversations: Vec<Conversation> = chains
            .iter()
            .map(|chain| {
                let session = &self.sessions[chain.session];
                let mut conversation = gatherer.conversation(chain, &session.delivered);
                conversation.id = session.id.to_string();
                if let Some(agent) = &chain.agent {
                    conversation.parent_id = Some(session.id.to_string());
                    conversation.id = format!("{}/{agent}", session.id);
                } else {
                    conversation.title = titles.get(&session.id).map(|title| title.text.clone());
                }
                conversation.cwd = session.cwd.as_ref().map(ToString::to_string);
                conversation
            })
            .collect();
        for (chain, conversation) in chains.iter().zip(&mut conversations) {
            let left_out = gatherer.left_out(chain, &self.sessions[chain.session]);
            if left_out > 0 {
                conversation.problems.push(Problem {
                    code: "abandoned-branch",
                    message: conversation.messages.len().saturating_sub(1),
                    text: format!(
                        "{left_out} lines on branches that were left (rewound or tried again) are not in the history"
                    ),
                });
            }
        }
        conversations.retain(|conversation| !conversation.messages.is_empty());
        conversations
    }

    /// The best title of each session: given by the user, made by a model, or the newest summary.
    ///
    /// A summary names the last line of its session. Those of other sessions stand in the same file.
    fn best_titles(&self) -> HashMap<&ByteString, &Title> {
        let mut best: HashMap<&ByteString, &Title> = HashMap::new();
        for title in &self.titles {
            let session = match &title.leaf {
                Some(leaf) => match self.by_uuid.get(leaf) {
                    Some(index) => &self.nodes[*index].session,
                    None => continue,
                },
                None => &title.session,
            };
            let best = best.entry(session).or_insert(title);
            if title.rank >= best.rank {
                *best = title;
            }
        }
        best
    }

    fn main_chains(&self, links: &Links) -> Vec<Chain> {
        let mut chains = Vec::new();
        let mut used = vec![false; self.nodes.len()];
        let mut left = self.nodes.len().saturating_mul(SHARED_HISTORY_MAX);
        // The newest first: it holds those that it continued.
        let mut order: Vec<usize> = (0..self.sessions.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(self.sessions[*index].main.last().copied()));
        for session in order {
            let Some(leaf) = self.leaf(session, links) else {
                continue;
            };
            if used[leaf] {
                continue;
            }
            let mut nodes = links.walk(leaf, |index| left == 0 && used[index]);
            left = left.saturating_sub(nodes.len());
            for index in &nodes {
                used[*index] = true;
            }
            self.insert_bypassed_boundaries(session, links, &mut nodes);
            chains.push(Chain {
                session,
                agent: None,
                nodes,
            });
        }
        chains.sort_by_key(|chain| chain.nodes.first().copied());
        chains
    }

    /// The newest line of a session whose chain has something said in it: commands that were typed after the end can
    /// stand alone.
    fn leaf(&self, session: usize, links: &Links) -> Option<usize> {
        let session = &self.sessions[session];
        if let Some(index) = session
            .leaf
            .as_ref()
            .and_then(|leaf| self.by_uuid.get(leaf))
            && !self.nodes[*index].is_sidechain
        {
            return Some(*index);
        }
        let mut silent = HashSet::new();
        let mut fallback = None;
        for index in session.main.iter().rev().copied() {
            if !matches!(
                self.nodes[index].kind,
                NodeKind::User(_) | NodeKind::Assistant { .. }
            ) {
                continue;
            }
            fallback = fallback.or(Some(index));
            let chain = links.walk(index, |index| silent.contains(&index));
            if chain.iter().any(|index| self.is_said(*index)) {
                return Some(index);
            }
            silent.extend(chain);
        }
        fallback
    }

    fn is_said(&self, index: usize) -> bool {
        match &self.nodes[index].kind {
            NodeKind::Assistant { .. } => true,
            NodeKind::User(spoken) => {
                spoken.author == Author::Role && !spoken.blocks.iter().all(is_of_client)
            }
            _ => false,
        }
    }

    fn is_summary(&self, index: usize) -> bool {
        matches!(&self.nodes[index].kind, NodeKind::User(spoken) if spoken.author == Author::Compaction)
    }

    /// After a compaction that kept the last messages, later lines can follow these and not the boundary. The boundary
    /// and its summary are put where they were: behind the messages that were kept.
    fn insert_bypassed_boundaries(&self, session: usize, links: &Links, chain: &mut Vec<usize>) {
        let on_chain: HashMap<usize, usize> = chain
            .iter()
            .enumerate()
            .map(|(place, index)| (*index, place))
            .collect();
        let summary_of: HashMap<usize, usize> = self.sessions[session]
            .main
            .iter()
            .filter(|index| self.is_summary(**index) && !on_chain.contains_key(index))
            .filter_map(|index| Some((links.parent[*index]?, *index)))
            .collect();
        let mut insertions: Vec<(usize, Vec<usize>)> = Vec::new();
        for index in self.sessions[session].main.iter().copied() {
            let NodeKind::Boundary(boundary) = &self.nodes[index].kind else {
                continue;
            };
            let place = boundary
                .preserved_tail
                .as_ref()
                .and_then(|tail| self.by_uuid.get(tail))
                .and_then(|tail| on_chain.get(tail));
            if let Some(place) = place
                && !on_chain.contains_key(&index)
            {
                let summary = summary_of.get(&index).copied();
                insertions.push((
                    *place + 1,
                    [Some(index), summary].into_iter().flatten().collect(),
                ));
            }
        }
        if insertions.is_empty() {
            return;
        }
        insertions.sort_by_key(|(place, _)| *place);
        let mut rebuilt = Vec::with_capacity(chain.len() + insertions.len() * 2);
        let mut from = 0;
        for (place, nodes) in insertions {
            rebuilt.extend_from_slice(&chain[from..place]);
            rebuilt.extend(nodes);
            from = place;
        }
        rebuilt.extend_from_slice(&chain[from..]);
        *chain = rebuilt;
    }

    /// One chain for each sub-agent: by its id where lines have one, else by the tree that they form.
    fn side_chains(&self, links: &Links) -> Vec<Chain> {
        let mut group_of: Vec<usize> = vec![usize::MAX; self.nodes.len()];
        let mut by_agent: HashMap<(&ByteString, &ByteString), usize> = HashMap::new();
        let mut groups: Vec<(usize, Option<usize>)> = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if !node.is_sidechain {
                continue;
            }
            let known = match &node.agent {
                Some(agent) => by_agent.get(&(&node.session, agent)).copied(),
                None => links.parent[index]
                    .map(|parent| group_of[parent])
                    .filter(|group| *group != usize::MAX),
            };
            let group = known.unwrap_or(groups.len());
            if known.is_none() {
                groups.push((index, None));
                if let Some(agent) = &node.agent {
                    by_agent.insert((&node.session, agent), group);
                }
            }
            group_of[index] = group;
            if matches!(node.kind, NodeKind::User(_) | NodeKind::Assistant { .. }) {
                groups[group].1 = Some(index);
            }
        }
        groups
            .into_iter()
            .filter_map(|(first, leaf)| {
                let node = &self.nodes[first];
                let leaf = leaf?;
                let nodes = links.walk(leaf, |index| group_of[index] != group_of[leaf]);
                Some(Chain {
                    session: *self.session_index.get(&node.session)?,
                    agent: Some(node.agent.clone().unwrap_or_else(|| node.uuid.clone())),
                    nodes,
                })
            })
            .collect()
    }
}

/// Nodes of one conversation from the root to the leaf.
struct Chain {
    session: usize,
    agent: Option<ByteString>,
    nodes: Vec<usize>,
}

/// What each node follows, with the gaps of the file bridged.
struct Links {
    parent: Vec<Option<usize>>,
    /// The link was not in the file: the line named as parent is missing.
    is_bridged: Vec<bool>,
    /// The context was emptied before this line (`/clear`, or a plan that is carried out with a fresh context).
    is_cleared: Vec<bool>,
}

/// How many roots of a session are compared with each other.
const ROOTS_MAX: usize = 100;
/// How far behind a root its first words are looked for, in lines of the session.
const OPENING_LINES_MAX: usize = 20;

/// The beginning of what the user says on a line.
fn opening_text(node: &Node) -> Option<String> {
    let NodeKind::User(spoken) = &node.kind else {
        return None;
    };
    if spoken.author != Author::Role {
        return None;
    }
    spoken.blocks.iter().find_map(|block| match &block.content {
        Content::Text(text) if !is_of_client(block) => Some(text.prefix(1000).trim().to_owned()),
        _ => None,
    })
}

impl Links {
    fn of(nodes: &[Node], sessions: &[Session], by_uuid: &HashMap<ByteString, usize>) -> Self {
        let mut previous = vec![None; nodes.len()];
        for session in sessions {
            for pair in session.main.windows(2) {
                previous[pair[1]] = Some(pair[0]);
            }
        }
        let mut last_of_agent = HashMap::new();
        let mut is_bridged = vec![false; nodes.len()];
        let mut parent = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let before = if node.is_sidechain {
                last_of_agent.insert((&node.session, &node.agent), index)
            } else {
                previous[index]
            };
            let find =
                |uuid: &ByteString| by_uuid.get(uuid).copied().filter(|found| *found != index);
            parent.push(match (&node.parent, &node.kind) {
                (Parent::Uuid(uuid), _) => find(uuid).or_else(|| {
                    is_bridged[index] = before.is_some();
                    before
                }),
                (Parent::Previous, _) => before,
                (Parent::Root, NodeKind::Boundary(boundary)) => {
                    boundary.logical_parent.as_ref().and_then(find).or(before)
                }
                (Parent::Root, NodeKind::User(spoken)) if spoken.author == Author::Compaction => {
                    before
                }
                (Parent::Root, _) if node.is_sidechain => None,
                (Parent::Root, _) => before,
            });
        }
        let mut links = Self {
            parent,
            is_bridged,
            is_cleared: vec![false; nodes.len()],
        };
        for session in sessions {
            links.part_retries(nodes, session);
        }
        links
    }

    /// A session can have several roots. A later one that opens with the same words is the first request tried again:
    /// what came before is left. Any other one goes on with an emptied context: what came before is history.
    fn part_retries(&mut self, nodes: &[Node], session: &Session) {
        let mut openings: Vec<String> = Vec::new();
        for (place, index) in session.main.iter().copied().enumerate() {
            let is_root = nodes[index].parent == Parent::Root
                && match &nodes[index].kind {
                    NodeKind::Boundary(_) => false,
                    NodeKind::User(spoken) => spoken.author != Author::Compaction,
                    _ => true,
                };
            if !is_root || openings.len() > ROOTS_MAX {
                continue;
            }
            let opening = session.main[place..]
                .iter()
                .take(OPENING_LINES_MAX)
                .find_map(|index| opening_text(&nodes[*index]));
            let Some(opening) = opening else {
                continue;
            };
            let is_retry = openings
                .iter()
                .any(|other| other.starts_with(&opening) || opening.starts_with(other.as_str()));
            if is_retry {
                self.parent[index] = None;
            } else {
                self.is_cleared[index] = self.parent[index].is_some();
            }
            openings.push(opening);
        }
    }

    /// The nodes from the root to `leaf`. Stops before a node for which `is_end` holds, and before a circle.
    fn walk(&self, leaf: usize, is_end: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut chain = Vec::new();
        let mut seen = HashSet::new();
        let mut next = Some(leaf);
        while let Some(index) = next {
            if is_end(index) || !seen.insert(index) {
                break;
            }
            chain.push(index);
            next = self.parent[index];
        }
        chain.reverse();
        chain
    }
}

/// Whose line it is: ids of responses and calls count within the session or within one sub-agent.
type Owner = Option<ByteString>;

fn owner(node: &Node) -> Owner {
    node.is_sidechain
        .then(|| node.agent.clone().unwrap_or_default())
}

/// How many lines with a result for the same call are looked through.
const RESULTS_OF_CALL_MAX: usize = 64;

/// Puts the messages of chains together.
struct Gatherer<'a> {
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
    fn of(nodes: &'a [Node], links: &'a Links) -> Self {
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

    fn conversation(&mut self, chain: &Chain, delivered: &[Delivered]) -> Conversation {
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
    fn undelivered<'d>(&self, chain: &Chain, delivered: &'d [Delivered]) -> Vec<&'d Delivered> {
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
    fn left_out(&self, chain: &Chain, session: &Session) -> usize {
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
fn by_author(spoken: &Spoken, blocks: Vec<Block>) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for mut block in blocks {
        let author = match spoken.author {
            Author::Role => match command_text(&block) {
                Some(text) => {
                    block.content = Content::Text(text.into());
                    Author::Role
                }
                None if is_of_client(&block) => Author::Client,
                None => Author::Role,
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

/// A summary without a boundary before it marks a compaction by itself.
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

fn text_in_between(text: &Delivered) -> Message {
    let mut message = Message::new(Role::User, vec![text.block.clone()]);
    if is_of_client(&text.block) {
        message.author = Author::Client;
    }
    message.position = Position { line: text.line };
    message.at_ms = text.at_ms;
    message
}
