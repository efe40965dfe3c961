//! Turns the lines of a file into its conversations.
//!
//! 1. Lines become nodes; each session and each sub-agent has a newest line.
//! 2. From there the chain is walked back to its root ([`Links`]).
//! 3. The messages are collected along the chain ([`Gatherer`]).

use std::collections::{HashMap, HashSet};

use bytestring::ByteString;
use throughline_transcript::conversation::{Conversation, Problem};
use throughline_transcript::message::Author;

use super::gather::Gatherer;
use super::links::Links;
use super::record::{Node, NodeKind, QueueOperation, Record, TitleRank, is_of_client};
use super::session::{Chain, DeliveredBlock, Session};

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
                    QueueOperation::Dequeue(named) => {
                        session.take_queued(named);
                    }
                    QueueOperation::Remove(named) => {
                        if let Some(block) = session.take_queued(named) {
                            session
                                .delivered
                                .push(DeliveredBlock { line, at_ms, block });
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
    /// A summary names the last line of its session. The same file can hold summaries of other sessions.
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

    /// The newest line of a session whose chain contains a message: commands that were typed after the end can
    /// be on a chain of their own.
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
