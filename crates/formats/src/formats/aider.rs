//! Aider's `.aider.chat.history.md`: all sessions of a project in one file.
//!
//! `# aider chat started at ...` begins a session, `#### ` a line of the user, `> ` a line of aider's console;
//! everything else is the model's, or before the first line of the user what aider printed without its mark. Headings and quotes in an answer look the same as aider's own marks, so code fences
//! are followed, and a quote is told from the console by the line break that aider puts behind its own lines.
//!
//! Console output becomes the result of a tool without a call, except for `Applied edit to ...`: that becomes a call
//! of the tool `edit` with its result. Sessions without messages are left out.

mod scan;

use bytestring::ByteString;
use scan::{Piece, PieceKind, Session};
use throughline_transcript::conversation::Conversation;
use throughline_transcript::json::{self, Raw, Text};
use throughline_transcript::message::{
    Author, Block, Content, Message, Role, ToolCall, ToolInput, ToolResult,
};
use throughline_transcript::usage::Usage;

use crate::formats::times;
use crate::formats::{Format, Probe};
use crate::source::{ReadError, Source, SourceText};

pub(crate) struct Aider;

impl Format for Aider {
    fn name(&self) -> &'static str {
        "aider"
    }

    fn about(&self) -> &'static str {
        "aider chat history (.aider.chat.history.md)"
    }

    fn fits(&self, probe: &Probe<'_>) -> u8 {
        let head = probe.head();
        if scan::find_header(head, 0).is_some() {
            return 97;
        }
        // A piece of a history without its header.
        let has_user = head.starts_with("#### ") || head.contains("\n#### ");
        let has_console = [
            "> Tokens: ",
            "> Aider v",
            "> Applied edit to ",
            "> Repo-map: ",
        ]
        .into_iter()
        .any(|mark| head.starts_with(mark) || head.contains(&format!("\n{mark}")));
        if has_user && has_console { 75 } else { 0 }
    }

    fn read(&self, source: &SourceText) -> Result<Source, ReadError> {
        let conversations: Vec<Conversation> = scan::sessions(&source.text)
            .filter_map(|session| conversation(&source.text, &session))
            .collect();
        if conversations.is_empty() {
            return Err(ReadError::NotThatFormat {
                format: self.name(),
                reason: "no line that begins with `#### `".to_owned(),
            });
        }
        Ok(Source {
            format: self.name(),
            conversations,
            skipped: Vec::new(),
        })
    }
}

fn conversation(source: &ByteString, session: &Session<'_>) -> Option<Conversation> {
    let mut reader = Reader {
        source,
        conversation: Conversation {
            id: session.started.unwrap_or_default().to_owned(),
            ..Conversation::default()
        },
        edits: 0,
    };
    let mut at_ms = session.started.and_then(times::from_text);
    for piece in session.pieces() {
        match piece.kind {
            PieceKind::User => reader.user(&piece, at_ms.take()),
            PieceKind::Console => reader.console(&piece),
            PieceKind::Answer => reader.answer(&piece),
        }
    }
    let conversation = reader.conversation;
    let is_talk = conversation
        .messages
        .iter()
        .any(|message| message.role == Role::Assistant || message.role == Role::User);
    is_talk.then_some(conversation)
}

struct Reader<'a> {
    source: &'a ByteString,
    conversation: Conversation,
    edits: usize,
}

impl Reader<'_> {
    fn push(
        &mut self,
        role: Role,
        author: Author,
        blocks: Vec<Block>,
        line: usize,
    ) -> &mut Message {
        let mut message = Message::new(role, blocks);
        message.author = author;
        message.position.line = line;
        self.conversation.messages.push(message);
        let last = self.conversation.messages.len() - 1;
        &mut self.conversation.messages[last]
    }

    /// The user's lines. Only the first message of a session has a time: the session's.
    fn user(&mut self, piece: &Piece<'_>, at_ms: Option<i64>) {
        let text = unprefixed(self.source, piece.text, "####");
        if text.is_empty() {
            return;
        }
        let author = if is_clients(&text) {
            Author::Client
        } else {
            Author::Role
        };
        self.push(
            Role::User,
            author,
            vec![Block::text(Text::plain(text))],
            piece.line,
        )
        .at_ms = at_ms;
    }

    fn answer(&mut self, piece: &Piece<'_>) {
        let text = self.source.slice_ref(piece.text);
        self.push(
            Role::Assistant,
            Author::Role,
            vec![Block::text(Text::plain(text))],
            piece.line,
        );
    }

    fn console(&mut self, piece: &Piece<'_>) {
        let mut results = Vec::new();
        for line in piece.text.lines() {
            let line = line.trim_start_matches('>').trim();
            if let Some(counts) = line.strip_prefix("Tokens: ") {
                self.usage(counts);
            } else if let Some(model) = model(line) {
                self.conversation.model = Some(model.to_owned());
            } else if let Some(folder) = line
                .strip_prefix("Cur working dir: ")
                .or_else(|| line.strip_prefix("Git working dir: "))
            {
                self.conversation.cwd = Some(folder.to_owned());
            } else if let Some(path) = line.strip_prefix("Applied edit to ")
                && let Some(result) = self.edit(path, line)
            {
                results.push(result);
            }
        }
        let text = unprefixed(self.source, piece.text, piece.prefix());
        if !text.is_empty() {
            results.push(result("".into(), text));
        }
        if !results.is_empty() {
            self.push(Role::Tool, Author::Role, results, piece.line);
        }
    }

    /// Adds the edit to the answer that made it.
    fn edit(&mut self, path: &str, line: &str) -> Option<Block> {
        let answer = self.conversation.messages.last_mut()?;
        if answer.role != Role::Assistant {
            return None;
        }
        let mut input = String::from("{\"path\":");
        json::write_string(path, &mut input);
        input.push('}');
        let input = Raw::parse(input).ok()?;
        self.edits += 1;
        let id = ByteString::from(format!("edit-{}", self.edits));
        answer.blocks.push(Block::new(Content::ToolCall(ToolCall {
            id: id.clone(),
            name: "edit".into(),
            input: ToolInput::Json(input),
            is_server_side: false,
        })));
        Some(result(id, self.source.slice_ref(line)))
    }

    fn usage(&mut self, counts: &str) {
        let answer = self.conversation.messages.last_mut();
        if let Some(answer) = answer.filter(|message| message.role == Role::Assistant) {
            answer.usage = usage(counts);
        }
    }
}

fn result(call_id: ByteString, text: ByteString) -> Block {
    Block::new(Content::ToolResult(ToolResult {
        call_id,
        content: vec![Block::text(Text::plain(text))],
        is_error: None,
        is_server_side: false,
    }))
}

/// The text of lines without their prefix and without aider's line breaks. One line is a slice of the source.
fn unprefixed(source: &ByteString, lines: &str, prefix: &str) -> ByteString {
    let strip = |line: &'_ str| -> (usize, usize) {
        let rest = line.strip_prefix(prefix).unwrap_or(line);
        let rest = rest.strip_prefix(' ').unwrap_or(rest);
        (line.len() - rest.len(), rest.trim_end().len())
    };
    let trimmed = lines.trim_end();
    if prefix.is_empty() {
        return source.slice_ref(trimmed);
    }
    if !trimmed.contains('\n') {
        let (start, length) = strip(trimmed);
        return source.slice_ref(trimmed[start..start + length].trim_start());
    }
    let mut text = String::with_capacity(trimmed.len());
    for line in trimmed.lines() {
        let (start, length) = strip(line);
        // Empty console lines at the start say nothing.
        if !text.is_empty() || length > 0 {
            text.push_str(&line[start..start + length]);
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text.into()
}

/// Whether a "user" text was not written for the model: a command of aider, or what aider sends automatically after an
/// answer that broke something.
fn is_clients(text: &str) -> bool {
    const REQUESTS: [&str; 5] = ["/ask ", "/code ", "/architect ", "/context ", "/help "];
    let is_command = text.starts_with('!')
        || (text.starts_with('/')
            && !REQUESTS.iter().any(|request| text.starts_with(request))
            // A path is no command.
            && !text.split_whitespace().next().is_some_and(|word| word[1..].contains('/')));
    let first_line = text.lines().next().unwrap_or_default();
    is_command
        || first_line.starts_with("# Fix any errors below")
        || first_line.starts_with("The LLM did not conform to the edit format")
        || (first_line.contains("SEARCH/REPLACE block") && first_line.contains("failed to match"))
}

/// The model that a line of the banner names.
fn model(line: &str) -> Option<&str> {
    let rest = line
        .strip_prefix("Models: ")
        .or_else(|| line.strip_prefix("Main model: "))
        .or_else(|| line.strip_prefix("Model: "))?;
    let name = rest.split([' ', ',']).next()?;
    Some(name.trim_end_matches(|c: char| !c.is_ascii())).filter(|name| !name.is_empty())
}

/// `4.2k sent, 1.1k cache write, 2,728 cache hit, 380 received. Cost: ...`. What was written to the cache is in "sent"
/// as well; what was read from it is not.
fn usage(counts: &str) -> Option<Usage> {
    let mut usage = Usage::default();
    let mut sent = None;
    let counts = counts.split("Cost:").next().unwrap_or(counts);
    for part in counts.split(", ") {
        let Some((number, what)) = part.trim().split_once(' ') else {
            continue;
        };
        let Some(count) = tokens(number) else {
            continue; // "cache costs not included"
        };
        match what.trim_end_matches(|c: char| !c.is_ascii_alphabetic()) {
            "sent" => sent = Some(count),
            "cache write" => usage.cache_write = count,
            "cache hit" | "cached" => usage.cache_read = count,
            "received" => usage.output = count,
            _ => {}
        }
    }
    usage.uncached = sent?.saturating_sub(usage.cache_write);
    Some(usage)
}

/// `1,720`, `15k` or `5.8k`.
fn tokens(number: &str) -> Option<u64> {
    let number = number.replace(',', "");
    let (digits, factor) = match number.as_bytes().last()? {
        b'k' => (&number[..number.len() - 1], 1e3),
        b'M' => (&number[..number.len() - 1], 1e6),
        _ => (number.as_str(), 1.0),
    };
    let count = digits.parse::<f64>().ok()? * factor;
    (0.0..1e15).contains(&count).then_some(count.round() as u64)
}

#[cfg(test)]
mod tests;
