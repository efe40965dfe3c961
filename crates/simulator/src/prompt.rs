//! A request as the model is shown it: places in the order tools, system, messages, each with its tokens, its cache
//! marker and the digest of everything up to it.
//!
//! Work is done once for each message: what it is made of is remembered by the digest of its bytes, so that a request
//! that repeats a long conversation costs one hash over its bytes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use throughline_transcript::body::{read_block, read_content, read_message};
use throughline_transcript::catalogue::{CacheKind, Model};
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::message::{Block, Content};
use throughline_transcript::tokens::Counter;
use throughline_transcript::wire::Wire;

/// Digest of a part, or of everything up to a place.
pub(crate) type Key = [u8; 32];

/// Messages whose parts are remembered, at most; about 200 bytes a block.
const MESSAGES_REMEMBERED_MAX: usize = 200_000;

/// Tokens around a message. The same figure as [`Counter::message`] takes.
const MESSAGE_OVERHEAD: u64 = 4;

/// A message, the system prompt or the tools, taken apart.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) role: Role,
    pub(crate) parts: Vec<Part>,
}

/// Who speaks, for the simulator's purposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Assistant,
    System,
    Tool,
}

/// A content block, a tool definition, or a whole message on the wires of OpenAI.
#[derive(Debug)]
pub(crate) struct Part {
    /// Of its bytes without cache markers.
    pub(crate) digest: Key,
    pub(crate) tokens: u64,
    pub(crate) marker: Option<Lifetime>,
    pub(crate) kind: PartKind,
    /// Its beginnings, the shorter first, where the model's cache needs them.
    pub(crate) beginnings: Vec<PartPrefix>,
}

/// A beginning of a part.
#[derive(Debug)]
pub(crate) struct PartPrefix {
    /// Of its bytes.
    digest: Key,
    tokens: u64,
}

/// What a part is, where it makes a difference.
#[derive(Debug)]
pub(crate) enum PartKind {
    Text { is_blank: bool },
    Image,
    Thinking { text: Key, signature: String },
    ToolUse { id: String },
    ToolResult,
    Compaction(Box<CompactionPart>),
    DeferredTool,
    Other,
}

#[derive(Debug)]
pub(crate) struct CompactionPart {
    pub(crate) content: Key,
    pub(crate) encrypted: Option<String>,
    pub(crate) signature: Option<String>,
}

/// How long a cache entry lives after its last use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    Short,
    Long,
}

/// One place of the rendered prompt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Digest of everything up to and including it.
    pub(crate) chain: Key,
    /// Tokens up to and including it.
    pub(crate) tokens: u64,
    pub(crate) marker: Option<Lifetime>,
}

/// The rendered prompt.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    pub(crate) places: Vec<Place>,
    /// Beginnings of the prompt that a cache in steps can have, the shorter first.
    pub(crate) steps: Vec<Place>,
}

impl Prompt {
    pub(crate) fn tokens(&self) -> u64 {
        self.places.last().map_or(0, |place| place.tokens)
    }
}

/// Puts a prompt together.
pub(crate) struct Rendering {
    chain: Key,
    tokens: u64,
    places: Vec<Place>,
    steps: Vec<Place>,
    /// The first step and the distance to the next, tokens; `None` if the cache has no steps.
    stepping: Option<(u64, u64)>,
}

impl Rendering {
    pub(crate) fn new(facts: &[&[u8]]) -> Self {
        Self {
            chain: digest(facts),
            tokens: 0,
            places: Vec::new(),
            steps: Vec::new(),
            stepping: None,
        }
    }

    /// The prompt can be read from the cache up to any of these steps, wherever they fall.
    pub(crate) fn in_steps(mut self, first: u64, distance: u64) -> Self {
        self.stepping = Some((first, distance.max(1)));
        self
    }

    /// A setting that changes everything after it.
    pub(crate) fn fold(&mut self, facts: &[&[u8]]) {
        self.chain = link(&self.chain, &digest(facts));
    }

    /// Tokens that belong to the next place.
    pub(crate) fn overhead(&mut self, tokens: u64) {
        self.tokens += tokens;
    }

    pub(crate) fn place(&mut self, part: &Part) {
        self.step_through(part);
        self.chain = link(&self.chain, &part.digest);
        self.tokens += part.tokens;
        self.places.push(Place {
            chain: self.chain,
            tokens: self.tokens,
            marker: part.marker,
        });
    }

    /// The steps that fall into the part: each has the digest of the shortest beginning that reaches it.
    fn step_through(&mut self, part: &Part) {
        let Some((first, distance)) = self.stepping else {
            return;
        };
        let end = self.tokens + part.tokens;
        let mut tokens = self
            .steps
            .last()
            .map_or(first, |step| step.tokens + distance);
        while tokens <= end {
            let inside = tokens.saturating_sub(self.tokens);
            let at = part
                .beginnings
                .partition_point(|beginning| beginning.tokens < inside);
            let digest = part
                .beginnings
                .get(at)
                .map_or(part.digest, |beginning| beginning.digest);
            self.steps.push(Place {
                chain: link(&self.chain, &digest),
                tokens,
                marker: None,
            });
            tokens += distance;
        }
    }

    /// Puts a marker on the last place that can have one and is without.
    pub(crate) fn mark_last(&mut self, at: usize, lifetime: Lifetime) {
        if let Some(place) = self.places.get_mut(at) {
            place.marker.get_or_insert(lifetime);
        }
    }

    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn finish(self) -> Prompt {
        Prompt {
            places: self.places,
            steps: self.steps,
        }
    }
}

/// Remembers what messages are made of.
#[derive(Debug, Default)]
pub(crate) struct PartStore {
    recent: HashMap<Key, Arc<Parts>>,
    older: HashMap<Key, Arc<Parts>>,
}

/// How the tokens of a model are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) counter: Counter,
    /// What the provider counts for a thousand tokens of ours.
    pub(crate) permille: u32,
    /// The model's cache reads beginnings of parts too.
    has_steps: bool,
}

impl Scale {
    pub(crate) fn new(model: &Model, permille: u32) -> Self {
        Self {
            counter: Counter::for_model(model),
            permille,
            has_steps: model.cache.kind == CacheKind::Automatic,
        }
    }

    fn of(self, tokens: usize) -> u64 {
        (tokens as u64 * u64::from(self.permille)).div_ceil(1000)
    }

    fn block(self, block: &Block) -> u64 {
        self.of(self.counter.block(block))
    }

    /// Tokens of a text that the model writes.
    pub(crate) fn text(self, text: &str) -> u64 {
        self.of(self.counter.text(text))
    }

    pub(crate) fn message_overhead(self) -> u64 {
        MESSAGE_OVERHEAD
    }

    /// Tokens that a provider adds because there are tools.
    pub(crate) fn tools_overhead(self) -> u64 {
        let Ok(one) = Raw::parse("[0]") else { return 0 };
        let number = self.counter.text("[0]");
        self.of(self.counter.tools(&one).saturating_sub(number))
    }

    fn key(self, what: &str, wire: Wire) -> [u8; 8] {
        let mut key = [0; 8];
        let facts = digest(&[
            what.as_bytes(),
            wire.name().as_bytes(),
            format!("{:?}", self.counter.family()).as_bytes(),
            &self.permille.to_le_bytes(),
            &[u8::from(self.has_steps)],
        ]);
        key.copy_from_slice(facts.get(..8).unwrap_or(&[0; 8]));
        key
    }
}

impl PartStore {
    /// The parts of one message or item.
    pub(crate) fn message(&mut self, raw: &Raw, wire: Wire, scale: Scale) -> Arc<Parts> {
        self.remembered(raw, scale.key("message", wire), || match wire {
            Wire::Anthropic => anthropic_message(raw, scale),
            Wire::OpenAiChat | Wire::OpenAiResponses => openai_message(raw, scale),
        })
    }

    /// The parts of a system prompt, a string or blocks.
    pub(crate) fn system(&mut self, raw: &Raw, wire: Wire, scale: Scale) -> Arc<Parts> {
        self.remembered(raw, scale.key("system", wire), || Parts {
            role: Role::System,
            parts: content_parts(raw, scale),
        })
    }

    /// The parts of a list of tools.
    pub(crate) fn tools(&mut self, raw: &Raw, wire: Wire, scale: Scale) -> Arc<Parts> {
        self.remembered(raw, scale.key("tools", wire), || Parts {
            role: Role::System,
            parts: raw.array().map(|tool| tool_part(&tool, scale)).collect(),
        })
    }

    fn remembered(&mut self, raw: &Raw, kind: [u8; 8], make: impl FnOnce() -> Parts) -> Arc<Parts> {
        let key = digest(&[&kind, raw.as_str().as_bytes()]);
        if let Some(known) = self.recent.get(&key) {
            return Arc::clone(known);
        }
        let parts = self.older.remove(&key).unwrap_or_else(|| Arc::new(make()));
        if self.recent.len() >= MESSAGES_REMEMBERED_MAX / 2 {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key, Arc::clone(&parts));
        parts
    }
}

fn anthropic_message(raw: &Raw, scale: Scale) -> Parts {
    let [role, content] = raw.fields(["role", "content"]);
    Parts {
        role: role_of(role.as_ref()),
        parts: content.map_or_else(Vec::new, |content| content_parts(&content, scale)),
    }
}

fn role_of(role: Option<&Raw>) -> Role {
    match role.map(Raw::as_str) {
        Some("\"assistant\"") => Role::Assistant,
        Some("\"system\"" | "\"developer\"") => Role::System,
        Some("\"tool\"" | "\"function\"") => Role::Tool,
        _ => Role::User,
    }
}

fn content_parts(content: &Raw, scale: Scale) -> Vec<Part> {
    match content.kind() {
        Kind::String => read_content(content)
            .iter()
            .map(|block| Part {
                digest: text_digest(content),
                tokens: scale.block(block),
                marker: None,
                kind: PartKind::Text {
                    is_blank: content.as_text().is_none_or(|text| text.is_blank()),
                },
                beginnings: beginnings(content, scale.block(block), scale),
            })
            .collect(),
        Kind::Array => content
            .array()
            .map(|block| block_part(&block, scale))
            .collect(),
        _ => Vec::new(),
    }
}

fn block_part(raw: &Raw, scale: Scale) -> Part {
    let block = read_block(raw);
    let [kind, text, marker] = raw.fields(["type", "text", "cache_control"]);
    let own_digest = match (kind.as_ref().map(Raw::as_str), &text) {
        // A string is shorthand for a block with nothing but a text.
        (Some("\"text\""), Some(text))
            if raw
                .object()
                .all(|(key, _)| matches!(&*key.decode(), "type" | "text" | "cache_control")) =>
        {
            text_digest(text)
        }
        _ => object_digest(raw, &["cache_control"]),
    };
    Part {
        digest: own_digest,
        tokens: scale.block(&block),
        marker: marker.as_ref().and_then(lifetime),
        kind: part_kind(&block, raw),
        beginnings: beginnings(raw, scale.block(&block), scale),
    }
}

fn part_kind(block: &Block, raw: &Raw) -> PartKind {
    match &block.content {
        Content::Text(text) => PartKind::Text {
            is_blank: text.is_blank(),
        },
        Content::Image(_) => PartKind::Image,
        Content::Thinking(text) => PartKind::Thinking {
            text: digest(&[text.decode().as_bytes()]),
            signature: raw
                .string_field("signature")
                .or_else(|| raw.string_field("data"))
                .unwrap_or_default(),
        },
        Content::ToolCall(call) => PartKind::ToolUse {
            id: call.id.to_string(),
        },
        Content::ToolResult(_) => PartKind::ToolResult,
        Content::Compaction(text) => PartKind::Compaction(Box::new(CompactionPart {
            content: digest(&[text
                .as_ref()
                .map(|text| text.decode())
                .unwrap_or_default()
                .as_bytes()]),
            encrypted: raw.string_field("encrypted_content"),
            signature: raw.string_field("signature"),
        })),
        _ => PartKind::Other,
    }
}

fn tool_part(raw: &Raw, scale: Scale) -> Part {
    let [marker, deferred] = raw.fields(["cache_control", "defer_loading"]);
    let block = Block {
        content: Content::Other("tool".into()),
        raw: Some(raw.clone()),
    };
    Part {
        digest: object_digest(raw, &["cache_control"]),
        tokens: scale.block(&block),
        marker: marker.as_ref().and_then(lifetime),
        kind: if deferred.as_ref().and_then(Raw::as_bool) == Some(true) {
            PartKind::DeferredTool
        } else {
            PartKind::Other
        },
        beginnings: beginnings(raw, scale.block(&block), scale),
    }
}

/// On the wires of OpenAI a whole message is one place, and so is an item.
fn openai_message(raw: &Raw, scale: Scale) -> Parts {
    let [role, kind, content, call_id, encrypted] =
        raw.fields(["role", "type", "content", "call_id", "encrypted_content"]);
    let tokens = read_message(raw).map_or(MESSAGE_OVERHEAD, |message| {
        scale.of(scale.counter.message(&message))
    });
    let mut has_breakpoint = false;
    let mut hasher = blake3::Hasher::new();
    for (key, value) in raw.object() {
        hasher.update(key.decode().as_bytes());
        if &*key.decode() == "content" && value.kind() == Kind::Array {
            for part in value.array() {
                has_breakpoint |= part.field("prompt_cache_breakpoint").is_some();
                hasher.update(&object_digest(&part, &["prompt_cache_breakpoint"]));
            }
        } else {
            feed(&mut hasher, value.as_str().as_bytes());
        }
    }
    let kind = match kind.as_ref().map(Raw::as_str) {
        Some("\"reasoning\"") => PartKind::Thinking {
            text: digest(&[]),
            signature: encrypted
                .and_then(|raw| raw.as_text())
                .map(|text| text.decode().into_owned())
                .unwrap_or_default(),
        },
        Some("\"compaction\"") => PartKind::Compaction(Box::new(CompactionPart {
            content: digest(&[]),
            encrypted: encrypted
                .and_then(|raw| raw.as_text())
                .map(|text| text.decode().into_owned()),
            signature: None,
        })),
        Some("\"function_call\"" | "\"custom_tool_call\"") => PartKind::ToolUse {
            id: call_id
                .and_then(|raw| raw.as_text())
                .map(|text| text.decode().into_owned())
                .unwrap_or_default(),
        },
        Some("\"function_call_output\"" | "\"custom_tool_call_output\"") => PartKind::ToolResult,
        _ => PartKind::Text {
            is_blank: content.is_none(),
        },
    };
    Parts {
        role: role_of(role.as_ref()),
        parts: vec![Part {
            digest: *hasher.finalize().as_bytes(),
            tokens,
            marker: has_breakpoint.then_some(Lifetime::Short),
            kind,
            beginnings: beginnings(raw, tokens, scale),
        }],
    }
}

/// The beginnings of a part of this many tokens. They end at words: there a text has as many tokens as its pieces.
fn beginnings(raw: &Raw, tokens: u64, scale: Scale) -> Vec<PartPrefix> {
    const PIECE_BYTES_MIN: usize = 48;
    const PIECE_BYTES_MAX: usize = 160;
    let mut beginnings = Vec::new();
    if !scale.has_steps {
        return beginnings;
    }
    let mut hasher = blake3::Hasher::new();
    let mut rest = raw.as_str();
    let mut so_far = MESSAGE_OVERHEAD;
    while rest.len() > PIECE_BYTES_MAX {
        let from = rest.ceil_char_boundary(PIECE_BYTES_MIN);
        let most = rest.floor_char_boundary(PIECE_BYTES_MAX);
        let word = rest.get(from..most).and_then(|text| text.find(' '));
        let (piece, after) = rest.split_at(word.map_or(most, |at| from + at));
        hasher.update(piece.as_bytes());
        so_far += scale.text(&unescaped(piece));
        beginnings.push(PartPrefix {
            digest: *hasher.finalize().as_bytes(),
            tokens: so_far.min(tokens),
        });
        rest = after;
    }
    beginnings
}

/// What a piece of JSON says, near enough to count it: tokens are those of the text, not of its escapes.
fn unescaped(piece: &str) -> Cow<'_, str> {
    if !piece.contains('\\') {
        return Cow::Borrowed(piece);
    }
    let mut text = String::with_capacity(piece.len());
    let mut characters = piece.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('n' | 'r') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('u') => {
                let digits: String = characters.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok();
                // Of a pair, the first half counts for both.
                match code {
                    Some(0xdc00..=0xdfff) => {}
                    code => text.push(code.and_then(char::from_u32).unwrap_or('\u{1f600}')),
                }
            }
            Some(other) => text.push(other),
            None => {}
        }
    }
    Cow::Owned(text)
}

/// What a cache marker says.
pub(crate) fn lifetime(marker: &Raw) -> Option<Lifetime> {
    match marker.kind() {
        Kind::Object => Some(match marker.string_field("ttl").as_deref() {
            Some("1h") => Lifetime::Long,
            _ => Lifetime::Short,
        }),
        _ => None,
    }
}

impl Lifetime {
    pub(crate) fn of(self, model: &Model) -> Duration {
        let lifetimes = &model.cache.lifetimes_s;
        let seconds = match self {
            Self::Short => lifetimes.first().copied().unwrap_or(300),
            Self::Long => lifetimes.last().copied().unwrap_or(3600),
        };
        Duration::from_secs(seconds.into())
    }
}

fn text_digest(text: &Raw) -> Key {
    digest(&[b"text", text.as_str().as_bytes()])
}

fn object_digest(raw: &Raw, without: &[&str]) -> Key {
    let mut hasher = blake3::Hasher::new();
    for (key, value) in raw.object() {
        let key = key.decode();
        if !without.contains(&&*key) {
            feed(&mut hasher, key.as_bytes());
            feed(&mut hasher, value.as_str().as_bytes());
        }
    }
    *hasher.finalize().as_bytes()
}

/// Digest of some facts that cannot run into each other.
pub(crate) fn digest(facts: &[&[u8]]) -> Key {
    let mut hasher = blake3::Hasher::new();
    for fact in facts {
        feed(&mut hasher, fact);
    }
    *hasher.finalize().as_bytes()
}

pub(crate) fn link(before: &Key, next: &Key) -> Key {
    digest(&[before, next])
}

fn feed(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}
