//! Content blocks: their fields, and which role may have them.

use crate::json::{Kind, Raw, Text};

use super::super::checker::{Checker, Object, TextQuote};
use super::super::path::Path;
use super::super::rule;
use super::block_types::{Role, SPECS};
use super::cache::Markers;
use super::tools::is_plain_name;
use super::{Request, Version};

const IMAGE_TYPES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];
const SERVER_TOOLS: &[&str] = &[
    "web_search",
    "web_fetch",
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
    "advisor",
];
/// Longest id of a tool call that is taken, in bytes; a body's own ids are far below.
const ID_BYTES_MAX: usize = 4096;

/// The properties of a block that the order of blocks and turns depends on.
pub(crate) enum BlockSummary {
    Text {
        ends_in_space: bool,
    },
    ToolUse {
        id: String,
        toolset: Option<String>,
    },
    ToolResult {
        id: String,
        toolset: Option<String>,
    },
    ServerUse {
        id: String,
        /// The tool that `tools` must define while the call is open; a connector's tools need not be there.
        name: Option<String>,
    },
    ServerResult {
        id: String,
        /// The type is unknown, so a missing call is not reported.
        is_unknown: bool,
    },
    Thinking,
    Compaction {
        is_signed: bool,
        has_content: bool,
    },
    Other,
}

impl BlockSummary {
    /// A text. Where it ends matters for the assistant's only, so others are not decoded.
    pub(crate) fn text(text: Option<&Text>, role: Role) -> Self {
        Self::Text {
            ends_in_space: role == Role::Assistant
                && text.is_some_and(|text| text.decode().ends_with(char::is_whitespace)),
        }
    }
}

/// Types that are allowed in a tool result.
const NESTED: &[&str] = &[
    "text",
    "image",
    "document",
    "search_result",
    "tool_reference",
    "browser_state",
];

/// What the blocks of one request have in common.
pub(crate) struct Blocks<'r> {
    pub(crate) request: &'r Request,
    pub(crate) images: u64,
}

impl Blocks<'_> {
    /// Checks one block of a message.
    pub(crate) fn check(
        &mut self,
        block: &Raw,
        role: Role,
        markers: &mut Markers,
        path: &Path<'_>,
        checker: &mut Checker<'_>,
    ) -> Option<BlockSummary> {
        let block = checker.object(block, *path)?;
        let kind = checker.required_name(&block, "type", path)?;
        let kind = kind.decode();
        let Some(spec) = SPECS.iter().find(|spec| spec.kind == kind) else {
            return Some(unknown(&block, markers, path, checker));
        };
        checker.known_fields(&block, &[&["type", "cache_control"], spec.fields], path);
        if !spec.is_allowed_in(role) {
            checker.add(
                &rule::BLOCK_ROLE,
                path.key("type"),
                format_args!(
                    "a {} message cannot hold a block of type {kind}: move it to the role that it belongs to or remove it",
                    role.name()
                ),
            );
        }
        let seen = self.fields(&kind, &block, role, markers, path, checker);
        if kind == "text" {
            // Counted with its text, which must not be empty where it is marked.
        } else if spec.can_be_marked {
            markers.cacheable(&block, path, checker);
        } else if block.has("cache_control") {
            let rule = match kind.as_ref() {
                "thinking" | "redacted_thinking" => &rule::MARKER_ON_THINKING,
                _ => &rule::MARKER_NESTED,
            };
            checker.add(
                rule,
                path.key("cache_control"),
                format_args!(
                    "a block of type {kind} cannot be marked: mark the block before or after it"
                ),
            );
            markers.count(&block, path, checker);
        }
        Some(seen)
    }

    fn fields(
        &mut self,
        kind: &str,
        block: &Object,
        role: Role,
        markers: &mut Markers,
        path: &Path<'_>,
        checker: &mut Checker<'_>,
    ) -> BlockSummary {
        match kind {
            "text" => {
                check_text_block(block, markers, path, checker);
                self.check_citations(block, role, path, checker);
                return BlockSummary::text(
                    block.present("text").and_then(Raw::as_text).as_ref(),
                    role,
                );
            }
            "image" => self.check_image(block, path, checker),
            "document" => self.check_document(block, role, markers, path, checker),
            "search_result" => check_search_result(block, path, checker),
            "tool_use" => return check_tool_use(block, path, checker),
            "tool_result" => return self.check_tool_result(block, markers, path, checker),
            "thinking" => {
                checker.required_string(block, "thinking", path);
                check_signature(block, "signature", path, checker);
                return BlockSummary::Thinking;
            }
            "redacted_thinking" => {
                check_signature(block, "data", path, checker);
                return BlockSummary::Thinking;
            }
            "server_tool_use" | "mcp_tool_use" => {
                return check_server_use(kind, block, path, checker);
            }
            "container_upload" => {
                checker.required_name(block, "file_id", path);
            }
            "mcp_tool_listing" => {
                checker.required_name(block, "mcp_server_name", path);
            }
            "fallback" => {
                checker.required_object(block, "from", path);
                checker.required_object(block, "to", path);
            }
            "tool_addition" | "tool_removal" => {
                self.request.betas.require(
                    "mid-conversation-tool-changes-2026-07-01",
                    *path,
                    checker,
                );
                checker.required_object(block, "tool", path);
            }
            "compaction" => return self.check_compaction(block, path, checker),
            _ => {
                // The results of server tools are all alike.
                checker.required_value(block, "content", "what the tool gave back", path);
                if let Some(id) = checker.required_name(block, "tool_use_id", path) {
                    return BlockSummary::ServerResult {
                        id: id.decode().into_owned(),
                        is_unknown: false,
                    };
                }
            }
        }
        BlockSummary::Other
    }

    fn check_citations(
        &self,
        block: &Object,
        role: Role,
        path: &Path<'_>,
        checker: &mut Checker<'_>,
    ) {
        if role != Role::User || !block.has("citations") {
            return;
        }
        let message = "text of a user message has no citations since anthropic-version 2026-10-21: remove them";
        match self.request.version {
            Version::New => checker.add(&rule::CITATIONS_IN_USER, path.key("citations"), message),
            Version::Unknown => {
                checker.warn(&rule::CITATIONS_IN_USER, path.key("citations"), message);
            }
            Version::Old => {}
        }
    }

    fn check_image(&mut self, block: &Object, path: &Path<'_>, checker: &mut Checker<'_>) {
        self.images += 1;
        if let Some(changes) = checker.optional_object(block, "transformations", path) {
            let path = path.key("transformations");
            checker.known_value(&changes, "oversized_image", &["downsize", "error"], &path);
        }
        let Some(source) = checker.required_object(block, "source", path) else {
            return;
        };
        let path = path.key("source");
        let Some(kind) = checker.required_name(&source, "type", &path) else {
            return;
        };
        match kind.decode().as_ref() {
            "base64" => check_base64(&source, IMAGE_TYPES, &path, checker),
            "url" => drop(checker.required_name(&source, "url", &path)),
            "file" => drop(checker.required_name(&source, "file_id", &path)),
            _ => drop(checker.known_value(&source, "type", &["base64", "url", "file"], &path)),
        }
    }

    fn check_document(
        &mut self,
        block: &Object,
        role: Role,
        markers: &mut Markers,
        path: &Path<'_>,
        checker: &mut Checker<'_>,
    ) {
        if role == Role::Assistant {
            let message = "an assistant message has no documents since anthropic-version 2026-10-21: move the document into a user message";
            match self.request.version {
                Version::New => checker.add(&rule::DOCUMENT_IN_ASSISTANT, *path, message),
                Version::Unknown => checker.warn(&rule::DOCUMENT_IN_ASSISTANT, *path, message),
                Version::Old => {}
            }
        }
        checker.optional_string(block, "title", path);
        checker.optional_string(block, "context", path);
        checker.optional_object(block, "citations", path);
        let Some(source) = checker.required_object(block, "source", path) else {
            return;
        };
        let path = path.key("source");
        let Some(kind) = checker.required_name(&source, "type", &path) else {
            return;
        };
        match kind.decode().as_ref() {
            "base64" => check_base64(&source, &["application/pdf"], &path, checker),
            "text" => {
                check_media_type(&source, &["text/plain"], &path, checker);
                checker.required_string(&source, "data", &path);
            }
            "url" => drop(checker.required_name(&source, "url", &path)),
            "file" => drop(checker.required_name(&source, "file_id", &path)),
            "content" => {
                let what = "a string or an array of text and image blocks";
                if let Some(content) = checker.required_value(&source, "content", what, &path) {
                    let path = path.key("content");
                    checker.expect_kind(content, &[Kind::String, Kind::Array], what, path);
                    self.check_nested(content, &["text", "image"], markers, &path, checker);
                }
            }
            _ => drop(checker.known_value(
                &source,
                "type",
                &["base64", "text", "url", "file", "content"],
                &path,
            )),
        }
    }

    fn check_tool_result(
        &mut self,
        block: &Object,
        markers: &mut Markers,
        path: &Path<'_>,
        checker: &mut Checker<'_>,
    ) -> BlockSummary {
        checker.optional_bool(block, "is_error", path);
        if let Some(content) = block.present("content") {
            let path = path.key("content");
            let what = "a string or an array of blocks";
            checker.expect_kind(content, &[Kind::String, Kind::Array], what, path);
            self.check_nested(content, NESTED, markers, &path, checker);
        }
        match checker.required_name(block, "tool_use_id", path) {
            Some(id) => BlockSummary::ToolResult {
                id: id.decode().into_owned(),
                toolset: block.string("toolset_name"),
            },
            None => BlockSummary::Other,
        }
    }

    fn check_compaction(
        &self,
        block: &Object,
        path: &Path<'_>,
        checker: &mut Checker<'_>,
    ) -> BlockSummary {
        let content = checker.optional_string(block, "content", path);
        let is_blank = content.as_ref().is_some_and(Text::is_blank);
        if is_blank {
            checker.add(
                &rule::COMPACTION_EMPTY,
                path.key("content"),
                "the summary of a compaction block must not be empty: remove the block",
            );
        }
        checker.optional_string(block, "encrypted_content", path);
        checker.optional_string(block, "signature", path);
        let is_signed = block.has("signature") || block.has("encrypted_content");
        if is_signed {
            self.request
                .betas
                .require("compact-2026-09-04", *path, checker);
        }
        BlockSummary::Compaction {
            is_signed,
            has_content: content.is_some() && !is_blank || block.has("encrypted_content"),
        }
    }

    /// Checks blocks inside of a block.
    fn check_nested(
        &mut self,
        content: &Raw,
        allowed: &[&str],
        markers: &mut Markers,
        path: &Path<'_>,
        checker: &mut Checker<'_>,
    ) {
        for (index, block) in content.array().enumerate() {
            let path = path.index(index);
            let Some(block) = checker.object(&block, path) else {
                continue;
            };
            let Some(kind) = checker.required_name(&block, "type", &path) else {
                continue;
            };
            let kind = kind.decode();
            if !allowed.contains(&kind.as_ref()) {
                if SPECS.iter().any(|spec| spec.kind == kind) {
                    checker.add(
                        &rule::RESULT_CONTENT,
                        path.key("type"),
                        format_args!(
                            "a block of type {kind} is not allowed inside another block: use {}",
                            allowed.join(", ")
                        ),
                    );
                } else {
                    warn_of_unknown(&path, checker);
                }
            }
            if block.has("cache_control") {
                checker.add(
                    &rule::MARKER_NESTED,
                    path.key("cache_control"),
                    "the cache marker belongs on the outer block, not on a block inside of it: move it",
                );
                markers.count(&block, &path, checker);
            }
            match kind.as_ref() {
                "text" => {
                    if let Some(text) = checker.required_string(&block, "text", &path) {
                        check_nested_text(&text, path.key("text"), checker);
                    }
                }
                "image" => self.check_image(&block, &path, checker),
                // A document in a document is refused above; its source is not followed, so depth has a limit.
                "document" => {
                    checker.required_object(&block, "source", &path);
                }
                "search_result" => check_search_result(&block, &path, checker),
                "tool_reference" => {
                    checker.required_name(&block, "tool_name", &path);
                }
                _ => {}
            }
        }
    }
}

/// Checks the text of a block and the marker on it.
pub(crate) fn check_text_block(
    block: &Object,
    markers: &mut Markers,
    path: &Path<'_>,
    checker: &mut Checker<'_>,
) {
    let Some(text) = checker.required_string(block, "text", path) else {
        return;
    };
    let is_empty = text.encoded_len() == 0;
    if is_empty && block.has("cache_control") {
        checker.add(
            &rule::MARKER_ON_EMPTY,
            path.key("cache_control"),
            "an empty text cannot be marked: remove the block and mark the one before it",
        );
    }
    check_text(&text, path.key("text"), checker);
    if is_empty {
        markers.count(block, path, checker);
    } else {
        markers.cacheable(block, path, checker);
    }
}

/// Checks a text that must have something in it.
pub(crate) fn check_text(text: &Text, path: Path<'_>, checker: &mut Checker<'_>) {
    if text.encoded_len() == 0 {
        checker.add(
            &rule::EMPTY_TEXT,
            path,
            "text must not be empty: remove the block",
        );
    } else if text.is_blank() {
        checker.add(
            &rule::BLANK_TEXT,
            path,
            "text must hold more than white space: remove the block",
        );
    }
}

/// White space alone is seen to pass in results of tools, so it is only warned of.
fn check_nested_text(text: &Text, path: Path<'_>, checker: &mut Checker<'_>) {
    if text.encoded_len() > 0 && text.is_blank() {
        checker.warn(
            &rule::BLANK_TEXT,
            path,
            "text should hold more than white space: leave the block out",
        );
    } else {
        check_text(text, path, checker);
    }
}

fn unknown(
    block: &Object,
    markers: &mut Markers,
    path: &Path<'_>,
    checker: &mut Checker<'_>,
) -> BlockSummary {
    warn_of_unknown(path, checker);
    markers.cacheable(block, path, checker);
    match block.string("tool_use_id") {
        Some(id) => BlockSummary::ServerResult {
            id,
            is_unknown: true,
        },
        None => BlockSummary::Other,
    }
}

fn warn_of_unknown(path: &Path<'_>, checker: &mut Checker<'_>) {
    checker.add(
        &rule::UNKNOWN_BLOCK_TYPE,
        path.key("type"),
        "this block type is not known here: it is not checked",
    );
}

fn check_search_result(block: &Object, path: &Path<'_>, checker: &mut Checker<'_>) {
    checker.required_string(block, "source", path);
    checker.required_string(block, "title", path);
    let Some(content) = checker.required_array(block, "content", path) else {
        return;
    };
    let path = path.key("content");
    for (index, text) in content.array().enumerate() {
        let path = path.index(index);
        if let Some(text) = checker.object(&text, path)
            && let Some(text) = checker.required_string(&text, "text", &path)
        {
            check_text(&text, path.key("text"), checker);
        }
    }
}

fn check_id(block: &Object, path: &Path<'_>, checker: &mut Checker<'_>) -> Option<String> {
    let id = checker.required_name(block, "id", path)?;
    if !is_plain_name(&id.decode(), ID_BYTES_MAX) {
        checker.add(
            &rule::TOOL_ID,
            path.key("id"),
            format_args!(
                "{} is no id of a tool call: use letters, digits, `_` and `-` only, here and in the result",
                TextQuote(&id)
            ),
        );
    }
    Some(id.decode().into_owned())
}

fn check_input(block: &Object, path: &Path<'_>, checker: &mut Checker<'_>) {
    if let Some(input) = checker.required_value(block, "input", "the arguments as an object", path)
        && input.kind() != Kind::Object
    {
        checker.add(
            &rule::TOOL_INPUT,
            path.key("input"),
            "the input of a tool call must be a JSON object: parse it if it is a string of JSON",
        );
    }
}

fn check_tool_use(block: &Object, path: &Path<'_>, checker: &mut Checker<'_>) -> BlockSummary {
    checker.required_name(block, "name", path);
    check_input(block, path, checker);
    match check_id(block, path, checker) {
        Some(id) => BlockSummary::ToolUse {
            id,
            toolset: block.string("toolset_name"),
        },
        None => BlockSummary::Other,
    }
}

fn check_server_use(
    kind: &str,
    block: &Object,
    path: &Path<'_>,
    checker: &mut Checker<'_>,
) -> BlockSummary {
    check_input(block, path, checker);
    let name = checker.required_name(block, "name", path);
    let is_connector = kind == "mcp_tool_use";
    if is_connector {
        checker.required_name(block, "server_name", path);
    } else {
        checker.known_value(block, "name", SERVER_TOOLS, path);
    }
    match check_id(block, path, checker) {
        Some(id) => BlockSummary::ServerUse {
            id,
            name: name
                .filter(|_| !is_connector)
                .map(|name| name.decode().into_owned()),
        },
        None => BlockSummary::Other,
    }
}

fn check_signature(block: &Object, key: &str, path: &Path<'_>, checker: &mut Checker<'_>) {
    let has_one = match block.present(key) {
        Some(value) => value.as_text().is_none_or(|text| text.encoded_len() > 0),
        None => false,
    };
    if has_one {
        checker.optional_string(block, key, path);
    } else {
        checker.add(
            &rule::SIGNATURE_MISSING,
            path.key(key),
            format_args!("a thinking block without its `{key}` is refused: send the block unchanged or leave it out"),
        );
    }
}

fn check_media_type(source: &Object, allowed: &[&str], path: &Path<'_>, checker: &mut Checker<'_>) {
    if let Some(media_type) = checker.required_name(source, "media_type", path)
        && !allowed.contains(&media_type.decode().as_ref())
    {
        checker.add(
            &rule::IMAGE_MEDIA_TYPE,
            path.key("media_type"),
            format_args!(
                "{} cannot be sent here: convert it to one of {}",
                TextQuote(&media_type),
                allowed.join(", ")
            ),
        );
    }
}

fn check_base64(source: &Object, allowed: &[&str], path: &Path<'_>, checker: &mut Checker<'_>) {
    check_media_type(source, allowed, path, checker);
    if let Some(data) = checker.required_name(source, "data", path)
        && !is_base64(&data.decode())
    {
        checker.add(
            &rule::BASE64_INVALID,
            path.key("data"),
            "the data is not base64: encode it with the standard alphabet and padding, without line breaks or a data: prefix",
        );
    }
}

/// Alphabet, padding and length; the last bits before padding are not looked at.
pub(crate) fn is_base64(data: &str) -> bool {
    let body = data
        .strip_suffix("==")
        .or_else(|| data.strip_suffix('='))
        .unwrap_or(data);
    data.len().is_multiple_of(4)
        && body
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}
