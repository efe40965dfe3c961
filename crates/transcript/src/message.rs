//! Messages and blocks: typed views of slices.
//!
//! A [`Message`] has the same form for every source. What a reader needs is typed ([`Content`]); everything else in the
//! source is kept byte for byte in [`Block::raw`] and [`Message::raw`].

use bytestring::ByteString;

use crate::json::{Raw, Text};
use crate::usage::Usage;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions of the operator (`system`, `developer`).
    System,
    /// The person, and the results of tools where the wire format puts them into user messages.
    User,
    /// The model.
    Assistant,
    /// Results of tools, where the wire format has a role for them.
    Tool,
}

/// Who really wrote a message: a user-role message is not always the person's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Author {
    /// The one that the role names.
    #[default]
    Role,
    /// The client inserted it: environment, project rules, reminders, notices of hooks and commands.
    Client,
    /// Another agent wrote it: a teammate, another session, a sub-agent that reports.
    Agent,
    /// A compaction wrote it: it replaces earlier messages.
    Compaction,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The role it was sent with.
    pub role: Role,
    /// Who really wrote it.
    pub author: Author,
    /// Its content blocks, in order.
    pub blocks: Vec<Block>,
    /// The message as written, if the source has it in one piece.
    pub raw: Option<Raw>,
    /// Its position in the source.
    pub position: Position,
    /// The source's id for it.
    pub id: Option<ByteString>,
    /// When it was written, in milliseconds since 1970 UTC.
    pub at_ms: Option<i64>,
    /// What the provider charged for the call that made it. On assistant messages only.
    pub usage: Option<Usage>,
}

/// A position in a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, counted from 1; 0 where the source has no lines to speak of.
    pub line: usize,
}

/// One content block.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// What it is.
    pub content: Content,
    /// The block as it was written; absent where the source has no JSON for it (plain text, Markdown).
    pub raw: Option<Raw>,
}

/// What a block is.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Text of the speaker.
    Text(Text),
    /// Reasoning of the model. The text is empty where the provider withholds it.
    Thinking(Text),
    /// The model calls a tool.
    ToolCall(ToolCall),
    /// A tool answers.
    ToolResult(ToolResult),
    /// A picture.
    Image(Media),
    /// A document (PDF, plain text, ...).
    Document(Media),
    /// A compaction made by the provider. Its text may be absent: then only the provider can read it.
    Compaction(Option<Text>),
    /// A block of a kind that is not known here; the name is what the source calls it.
    Other(ByteString),
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// What the result refers to. Empty where the source has none.
    pub id: ByteString,
    /// Name of the tool.
    pub name: ByteString,
    /// What it is called with.
    pub input: ToolInput,
    /// Whether the provider runs the tool itself (web search, code execution, MCP connector).
    pub is_server_side: bool,
}

/// Arguments of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolInput {
    /// A JSON value.
    Json(Raw),
    /// Free text, or JSON that does not parse.
    Text(Text),
}

/// The answer of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The id of the call. Empty where the source has none.
    pub call_id: ByteString,
    /// What came back: text, images, documents or blocks of an unknown kind.
    pub content: Vec<Block>,
    /// Whether the tool says that it failed; `None` where the source does not tell.
    pub is_error: Option<bool>,
    /// Whether the provider ran the tool itself.
    pub is_server_side: bool,
}

/// A picture or document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Media {
    /// MIME type, if the source states it.
    pub media_type: Option<ByteString>,
    /// Size of the decoded data, bytes, if the source contains it.
    pub data_bytes: Option<usize>,
    /// URL, file id or title, if there is one.
    pub name: Option<ByteString>,
}

impl Media {
    /// The content that it is by its media type: a picture, else a document.
    #[must_use]
    pub fn into_content(self) -> Content {
        let kind = self.media_type.as_deref().unwrap_or_default();
        if kind.starts_with("image/") {
            Content::Image(self)
        } else {
            Content::Document(self)
        }
    }
}

impl Message {
    /// A message with nothing but a role and blocks.
    #[must_use]
    pub fn new(role: Role, blocks: Vec<Block>) -> Self {
        Self {
            role,
            author: Author::Role,
            blocks,
            raw: None,
            position: Position::default(),
            id: None,
            at_ms: None,
            usage: None,
        }
    }

    /// Whether a turn begins here: a message of the person that is not only tool results.
    #[must_use]
    pub fn begins_turn(&self) -> bool {
        self.role == Role::User
            && self.author == Author::Role
            && self.blocks.iter().any(|block| {
                matches!(
                    block.content,
                    Content::Text(_) | Content::Image(_) | Content::Document(_) | Content::Other(_)
                )
            })
    }

    /// The texts of the message, without tool calls, results and reasoning.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        self.blocks.iter().filter_map(|block| match &block.content {
            Content::Text(text) => Some(text),
            _ => None,
        })
    }

    /// The tool calls of the message.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.blocks.iter().filter_map(|block| match &block.content {
            Content::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The tool results of the message.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.blocks.iter().filter_map(|block| match &block.content {
            Content::ToolResult(result) => Some(result),
            _ => None,
        })
    }
}

impl Block {
    /// A block that was not read from JSON.
    #[must_use]
    pub fn new(content: Content) -> Self {
        Self { content, raw: None }
    }

    /// A text block that was not read from JSON.
    #[must_use]
    pub fn text(text: impl Into<Text>) -> Self {
        Self::new(Content::Text(text.into()))
    }
}

impl ToolInput {
    /// The arguments from a string that should hold JSON (`arguments` of the OpenAI formats).
    #[must_use]
    pub fn from_encoded(text: &Text) -> Self {
        match Raw::parse(text.decode().into_owned()) {
            Ok(raw) => Self::Json(raw),
            Err(_) => Self::Text(text.clone()),
        }
    }
}

impl ToolResult {
    /// The texts of the result.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        self.content
            .iter()
            .filter_map(|block| match &block.content {
                Content::Text(text) => Some(text),
                _ => None,
            })
    }
}
