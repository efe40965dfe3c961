//! What each line of a session follows: the tree of the file, with its gaps bridged.

use std::collections::{HashMap, HashSet};

use bytestring::ByteString;
use throughline_transcript::message::{Author, Content};

use super::record::{Node, NodeKind, Parent, is_of_client};
use super::session::Session;

/// How many roots of a session are compared with each other.
const ROOTS_MAX: usize = 100;
/// How many lines are walked back where chains fork, for each line of the file.
const FORK_STEPS_MAX: usize = 16;
/// How far behind a root its first words are searched for, in lines of the session.
const OPENING_LINES_MAX: usize = 20;

/// What each node follows, with the gaps of the file bridged.
pub(super) struct Links {
    pub(super) parent: Vec<Option<usize>>,
    /// The link was not in the file: the line named as parent is missing.
    pub(super) is_bridged: Vec<bool>,
    /// The context was emptied before this line (`/clear`, or a plan that is carried out with a fresh context).
    pub(super) is_cleared: Vec<bool>,
}

impl Links {
    pub(super) fn of(
        nodes: &[Node],
        sessions: &[Session],
        by_uuid: &HashMap<ByteString, usize>,
    ) -> Self {
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
        let mut steps = nodes.len().saturating_mul(FORK_STEPS_MAX);
        for session in sessions {
            links.follow_compactions(nodes, session, by_uuid);
            links.join_forks(nodes, session, &mut steps);
            links.part_retries(nodes, session);
        }
        links
    }

    /// The first line that is said after a compaction can name a line from before it as its parent. It follows the
    /// compaction all the same: what was said between the two is history.
    fn follow_compactions(
        &mut self,
        nodes: &[Node],
        session: &Session,
        by_uuid: &HashMap<ByteString, usize>,
    ) {
        // The boundary, and the last line that follows it.
        let mut open: Option<(usize, usize)> = None;
        for index in session.main.iter().copied() {
            let is_said = match &nodes[index].kind {
                NodeKind::Boundary(boundary) => {
                    let tail = boundary.preserved_tail.as_ref();
                    // Lines may well follow the messages that a compaction kept.
                    let has_tail = tail.is_some_and(|tail| by_uuid.contains_key(tail));
                    open = (!has_tail).then_some((index, index));
                    continue;
                }
                NodeKind::Link => false,
                NodeKind::User(spoken) => spoken.author != Author::Compaction,
                NodeKind::Assistant { .. } => true,
            };
            let Some((boundary, tip)) = open else {
                continue;
            };
            let parent = self.parent[index];
            let follows = parent.is_some_and(|parent| parent >= boundary);
            if is_said && (!follows || parent == Some(boundary)) {
                self.parent[index] = Some(tip);
                self.is_bridged[index] = false;
            } else if follows {
                open = Some((boundary, index));
            }
            if is_said {
                open = None;
            }
        }
    }

    /// Lines that nobody said (notices of hooks, progress, attachments) can have the same parent as what was said, or be
    /// the parent of it and of what follows. Where the chain forks at one, both sides are history, in the order of the
    /// file. Where each side begins with words of the user, they went back and said something else.
    fn join_forks(&mut self, nodes: &[Node], session: &Session, steps: &mut usize) {
        let mut next_said: HashMap<usize, usize> = HashMap::new();
        for index in session.main.iter().rev().copied() {
            let said = match &nodes[index].kind {
                NodeKind::Link => next_said.get(&index).copied(),
                _ => Some(index),
            };
            if let (Some(said), Some(parent)) = (said, self.parent[index]) {
                next_said.insert(parent, said);
            }
        }
        for pair in session.main.windows(2) {
            let [before, index] = *pair else { continue };
            let Some(parent) = self.parent[index] else {
                continue;
            };
            let is_silent = |index: usize| matches!(nodes[index].kind, NodeKind::Link);
            if parent >= before || !(is_silent(index) || is_silent(parent)) {
                continue;
            }
            // What the other side begins with.
            let mut first = None;
            let mut at = Some(before);
            while let Some(place) = at.filter(|place| *place > parent && *steps > 0) {
                *steps -= 1;
                if !is_silent(place) {
                    first = Some(place);
                }
                at = self.parent[place].filter(|next| *next < place);
            }
            let own = if is_silent(index) {
                next_said.get(&index).copied()
            } else {
                Some(index)
            };
            let (Some(first), true) = (first, at == Some(parent)) else {
                continue;
            };
            let is_rewind =
                is_prompt(&nodes[first]) && own.is_some_and(|own| is_prompt(&nodes[own]));
            if !is_rewind {
                self.parent[index] = Some(before);
            }
        }
    }

    /// A session can have several roots. A later one that opens with the same words retries the first request: the
    /// lines before it are dropped. Any other one continues with an emptied context: the lines before it are history.
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
    pub(super) fn walk(&self, leaf: usize, is_end: impl Fn(usize) -> bool) -> Vec<usize> {
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

/// Whether the user says something on a line.
fn is_prompt(node: &Node) -> bool {
    match &node.kind {
        NodeKind::User(spoken) => {
            spoken.author == Author::Role
                && spoken.blocks.iter().any(|block| {
                    !matches!(block.content, Content::ToolResult(_)) && !is_of_client(block)
                })
        }
        _ => false,
    }
}

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
