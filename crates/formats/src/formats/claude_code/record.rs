//! One line of a Claude Code session file.

use bytestring::ByteString;
use throughline_transcript::command::slash_command;
use throughline_transcript::json::tape::View;
use throughline_transcript::json::{Raw, Text};
use throughline_transcript::message::{Author, Block, Content};
use throughline_transcript::usage::Usage;

use crate::formats::{anthropic_content, times};

/// What a line says.
pub(super) enum Record {
    /// A line of the tree.
    Node(Node),
    /// A title for the session whose last line then was `leaf`.
    Title {
        session: ByteString,
        leaf: Option<ByteString>,
        text: String,
        rank: TitleRank,
    },
    /// The current line of the session.
    Leaf {
        session: ByteString,
        uuid: ByteString,
    },
    /// The user typed while the model was working.
    Queue {
        session: ByteString,
        line: usize,
        at_ms: Option<i64>,
        operation: QueueOperation,
    },
    /// Nothing that belongs to a conversation.
    Nothing,
}

/// Where a title comes from; the greater one counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TitleRank {
    /// Made when the session was compacted or left.
    Summary,
    /// Made by a model.
    Model,
    /// Given by the user.
    User,
}

pub(super) enum QueueOperation {
    /// A text waits.
    Enqueue(Block),
    /// A text was sent as an ordinary prompt, which has its own line: the one named, else the oldest.
    Dequeue(Option<Text>),
    /// A text was given to the model in the middle of its work: the one named, else the oldest.
    Remove(Option<Text>),
    /// All texts went back to the editor.
    Clear,
}

/// A line of the tree.
pub(super) struct Node {
    /// Empty in `stream-json` output.
    pub(super) uuid: ByteString,
    pub(super) parent: Parent,
    pub(super) session: ByteString,
    pub(super) line: usize,
    pub(super) at_ms: Option<i64>,
    pub(super) cwd: Option<ByteString>,
    pub(super) is_sidechain: bool,
    /// Which sub-agent wrote it, where the line says so.
    pub(super) agent: Option<ByteString>,
    pub(super) kind: NodeKind,
}

/// What comes before a line.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Parent {
    /// Nothing.
    Root,
    /// The line with this uuid.
    Uuid(ByteString),
    /// The line before it in the file.
    Previous,
}

pub(super) enum NodeKind {
    /// Only a link of the chain: progress of hooks, notices, errors made by the client.
    Link,
    /// The client compacted here.
    Boundary(Boundary),
    /// A message of the user side.
    User(AuthoredBlocks),
    /// One block, seldom more, of a response.
    Assistant {
        spoken: AuthoredBlocks,
        /// Lines with the same id are one message. Empty where there is none.
        message_id: ByteString,
        model: Option<ByteString>,
        usage: Option<Usage>,
    },
}

/// Blocks of one author.
pub(super) struct AuthoredBlocks {
    pub(super) author: Author,
    pub(super) blocks: Vec<Block>,
    pub(super) raw: Option<Raw>,
}

#[derive(Clone, Default)]
pub(super) struct Boundary {
    pub(super) logical_parent: Option<ByteString>,
    pub(super) tokens_before: Option<u64>,
    pub(super) trigger: Option<String>,
    /// Last of the messages that stayed verbatim: later lines may follow it and not the boundary.
    pub(super) preserved_tail: Option<ByteString>,
}

/// Reads one line; `None` if it is not one of Claude Code.
pub(super) fn read(record: View<'_>, line: usize) -> Option<Record> {
    let fields = Fields::of(record)?;
    let session = fields
        .session
        .and_then(View::to_bytestring)
        .unwrap_or_default();
    let name = |field: Option<View<'_>>| {
        field
            .and_then(View::to_bytestring)
            .filter(|name| !name.is_empty())
    };
    let text = |field: Option<View<'_>>| field.and_then(View::decode).map(|text| text.into_owned());
    let title = |field, rank| match text(field) {
        Some(text) if !text.trim().is_empty() => Record::Title {
            session: session.clone(),
            leaf: name(fields.leaf),
            text: text.trim().to_owned(),
            rank,
        },
        _ => Record::Nothing,
    };
    let kind = match fields.kind.as_ref() {
        "user" => user(&fields)?,
        "assistant" => assistant(&fields)?,
        "system" if fields.subtype.as_deref() == Some("compact_boundary") => {
            NodeKind::Boundary(boundary(&fields))
        }
        "attachment" => match fields.attachment.and_then(queued_command) {
            Some(spoken) => NodeKind::User(spoken),
            None => NodeKind::Link,
        },
        "summary" => return Some(title(fields.summary, TitleRank::Summary)),
        "ai-title" => return Some(title(fields.title, TitleRank::Model)),
        "custom-title" => return Some(title(fields.title, TitleRank::User)),
        "last-prompt" => {
            return Some(match name(fields.leaf) {
                Some(uuid) => Record::Leaf { session, uuid },
                None => Record::Nothing,
            });
        }
        "queue-operation" => {
            let text = fields.content.and_then(View::as_text);
            let operation = match (fields.operation?.decode()?.as_ref(), text) {
                ("enqueue", Some(text)) => QueueOperation::Enqueue(Block::text(text)),
                // Blocks, pictures for example, cannot be told apart when they are named.
                ("enqueue", None) => return Some(Record::Nothing),
                ("dequeue", text) => QueueOperation::Dequeue(text),
                ("remove", text) => QueueOperation::Remove(text),
                _ => QueueOperation::Clear,
            };
            return Some(Record::Queue {
                session,
                line,
                at_ms: fields.at_ms(),
                operation,
            });
        }
        _ if fields.uuid.is_some() => NodeKind::Link,
        "file-history-snapshot"
        | "file-history-delta"
        | "pr-link"
        | "result"
        | "stream_event"
        | "control_request"
        | "control_response" => return Some(Record::Nothing),
        // A kind that came later: with a session it is one of ours.
        _ => return (!session.is_empty()).then_some(Record::Nothing),
    };
    let parent = match (fields.parent, name(fields.parent)) {
        (_, Some(uuid)) => Parent::Uuid(uuid),
        (Some(_), None) => Parent::Root,
        (None, None) => Parent::Previous,
    };
    Some(Record::Node(Node {
        uuid: name(fields.uuid).unwrap_or_default(),
        parent,
        line,
        at_ms: fields.at_ms(),
        cwd: name(fields.cwd),
        is_sidechain: fields.is_sidechain || name(fields.parent_call).is_some(),
        agent: name(fields.agent).or_else(|| name(fields.parent_call)),
        session,
        kind,
    }))
}

/// The fields of a line that are used, found in one walk.
#[derive(Default)]
struct Fields<'a> {
    kind: std::borrow::Cow<'a, str>,
    subtype: Option<std::borrow::Cow<'a, str>>,
    uuid: Option<View<'a>>,
    parent: Option<View<'a>>,
    logical_parent: Option<View<'a>>,
    session: Option<View<'a>>,
    timestamp: Option<View<'a>>,
    cwd: Option<View<'a>>,
    agent: Option<View<'a>>,
    parent_call: Option<View<'a>>,
    message: Option<View<'a>>,
    compact_metadata: Option<View<'a>>,
    attachment: Option<View<'a>>,
    summary: Option<View<'a>>,
    title: Option<View<'a>>,
    leaf: Option<View<'a>>,
    operation: Option<View<'a>>,
    content: Option<View<'a>>,
    is_sidechain: bool,
    origin: Option<View<'a>>,
    prompt_source: Option<View<'a>>,
    is_meta: bool,
    is_compact_summary: bool,
    is_api_error: bool,
}

impl<'a> Fields<'a> {
    fn of(record: View<'a>) -> Option<Self> {
        let mut fields = Self::default();
        let mut kind = None;
        for (key, value) in record.fields() {
            match key.as_ref() {
                "type" => kind = value.decode(),
                "subtype" => fields.subtype = value.decode(),
                "uuid" => fields.uuid = Some(value),
                "parentUuid" => fields.parent = Some(value),
                "logicalParentUuid" => fields.logical_parent = Some(value),
                "sessionId" | "session_id" => fields.session = Some(value),
                "timestamp" => fields.timestamp = Some(value),
                "cwd" => fields.cwd = Some(value),
                "agentId" => fields.agent = Some(value),
                "parent_tool_use_id" => fields.parent_call = Some(value),
                "message" => fields.message = Some(value),
                "compactMetadata" | "compact_metadata" => fields.compact_metadata = Some(value),
                "attachment" => fields.attachment = Some(value),
                "summary" => fields.summary = Some(value),
                "customTitle" | "aiTitle" | "title" => fields.title = Some(value),
                "leafUuid" => fields.leaf = Some(value),
                "origin" => fields.origin = Some(value),
                "promptSource" => fields.prompt_source = Some(value),
                "operation" => fields.operation = Some(value),
                "content" => fields.content = Some(value),
                "isSidechain" => fields.is_sidechain = value.is_true(),
                "isMeta" | "isSynthetic" => fields.is_meta |= value.is_true(),
                "isCompactSummary" => fields.is_compact_summary = value.is_true(),
                "isApiErrorMessage" => fields.is_api_error = value.is_true(),
                _ => {}
            }
        }
        fields.kind = kind?;
        Some(fields)
    }

    fn at_ms(&self) -> Option<i64> {
        self.timestamp.and_then(times::from_milliseconds)
    }
}

fn user(fields: &Fields<'_>) -> Option<NodeKind> {
    let message = fields.message?;
    let blocks = anthropic_content::content(message.field("content")?);
    let author = if fields.is_compact_summary {
        Author::Compaction
    } else {
        author(fields.origin, fields.prompt_source, fields.is_meta)
    };
    Some(NodeKind::User(AuthoredBlocks {
        author,
        blocks,
        raw: Some(message.raw()),
    }))
}

/// Whose words a prompt is, as far as its line says it.
fn author(origin: Option<View<'_>>, source: Option<View<'_>>, is_meta: bool) -> Author {
    let kind = origin.and_then(|origin| origin.string_field("kind").or_else(|| origin.decode()));
    match kind.as_deref() {
        Some("human" | "user" | "person") if !is_meta => Author::Role,
        Some(
            "peer" | "agent" | "teammate" | "session" | "cross-session" | "subagent"
            | "coordinator",
        ) => Author::Agent,
        Some(_) => Author::Client,
        None if is_meta => Author::Client,
        None => match source.and_then(View::decode).as_deref() {
            Some(
                "system" | "hook" | "cron" | "schedule" | "scheduled" | "auto" | "loop" | "task",
            ) => Author::Client,
            Some("peer" | "agent" | "teammate") => Author::Agent,
            _ => Author::Role,
        },
    }
}

fn assistant(fields: &Fields<'_>) -> Option<NodeKind> {
    let message = fields.message?;
    let (mut message_id, mut model, mut usage) = (ByteString::new(), None, None);
    let mut blocks = Vec::new();
    for (key, value) in message.fields() {
        match key.as_ref() {
            "id" => message_id = value.to_bytestring().unwrap_or_default(),
            "model" => model = value.to_bytestring(),
            "usage" => usage = anthropic_content::usage(value),
            "content" => blocks = anthropic_content::content(value),
            _ => {}
        }
    }
    // The client writes its own error texts in the name of the model.
    if fields.is_api_error || model.as_ref().is_some_and(|model| model == "<synthetic>") {
        return Some(NodeKind::Link);
    }
    Some(NodeKind::Assistant {
        spoken: AuthoredBlocks {
            author: Author::Role,
            blocks,
            raw: Some(message.raw()),
        },
        message_id,
        model,
        usage,
    })
}

fn boundary(fields: &Fields<'_>) -> Boundary {
    let mut boundary = Boundary {
        logical_parent: fields.logical_parent.and_then(View::to_bytestring),
        ..Boundary::default()
    };
    let Some(metadata) = fields.compact_metadata else {
        return boundary;
    };
    for (key, value) in metadata.fields() {
        match key.as_ref() {
            "trigger" => boundary.trigger = value.decode().map(|text| text.into_owned()),
            "preTokens" | "pre_tokens" => boundary.tokens_before = value.as_u64(),
            "preservedSegment" | "preserved_segment" => {
                boundary.preserved_tail = value
                    .field("tailUuid")
                    .or_else(|| value.field("tail_uuid"))
                    .and_then(View::to_bytestring);
            }
            "preservedMessages" | "preserved_messages" if boundary.preserved_tail.is_none() => {
                boundary.preserved_tail = value
                    .field("uuids")
                    .and_then(|uuids| uuids.elements().last())
                    .and_then(View::to_bytestring);
            }
            _ => {}
        }
    }
    boundary
}

/// What the user typed while the model was working, when it reached the model.
fn queued_command(attachment: View<'_>) -> Option<AuthoredBlocks> {
    if attachment.string_field("type").as_deref() != Some("queued_command") {
        return None;
    }
    let is_prompt = attachment
        .string_field("commandMode")
        .is_none_or(|mode| mode != "task-notification");
    let is_meta = !is_prompt || attachment.field("isMeta").is_some_and(View::is_true);
    Some(AuthoredBlocks {
        author: author(
            attachment.field("origin"),
            attachment.field("promptSource"),
            is_meta,
        ),
        blocks: anthropic_content::content(attachment.field("prompt")?),
        raw: Some(attachment.raw()),
    })
}

/// Beginnings of texts that the client puts into user messages.
const CLIENT_TEXTS: &[&str] = &[
    "<system-reminder>",
    "<command-name>",
    "<command-message>",
    "<local-command-",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "<ide_opened_file>",
    "<ide_selection>",
    "<ide_diagnostics>",
    "<user-prompt-submit-hook>",
    "<session-start-hook>",
    "<fork-boilerplate>",
    "<tick>",
    "<channel",
    "<mcp-",
    "[Request interrupted by user",
    "[SYSTEM NOTIFICATION",
    "Stop hook feedback:",
    "Base directory for this skill:",
    "Caveat: The messages below were generated by the user while running local commands",
];

/// Beginnings of texts that other agents put into user messages.
const AGENT_TEXTS: &[&str] = &[
    "<teammate-message",
    "<agent-message",
    "<cross-session-message",
    "<peer-message",
    "Another Claude session sent a message:",
    "Another agent sent a message:",
];

/// Who wrote a block of a line that does not say so itself.
pub(super) fn author_of(block: &Block) -> Author {
    let Content::Text(text) = &block.content else {
        return Author::Role;
    };
    let text = text.prefix(200);
    let text = text.trim_start();
    let begins = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    if begins(CLIENT_TEXTS) {
        Author::Client
    } else if begins(AGENT_TEXTS) {
        Author::Agent
    } else {
        Author::Role
    }
}

/// Whether the user wrote none of the block: also no slash command that asks the model for something.
pub(super) fn is_of_client(block: &Block) -> bool {
    author_of(block) != Author::Role && command_text(block).is_none()
}

/// A slash command, as the user typed it: `/review the parser`. Those that the client carries out itself say nothing to
/// the model.
pub(super) fn command_text(block: &Block) -> Option<String> {
    let Content::Text(text) = &block.content else {
        return None;
    };
    // Few texts are commands, and those that are not are not decoded.
    text.prefix(32)
        .trim_start()
        .starts_with("<command-")
        .then_some(())?;
    let command = slash_command(&text.decode())?;
    (!command.is_local).then_some(command.text)
}
