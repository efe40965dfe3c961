//! Rules of Anthropic Messages: the settings of a request. The messages are in [`messages`], their blocks in
//! [`blocks`] and [`block_types`], how turns and tool calls follow each other in [`turns`], cache markers in [`cache`].

mod block_types;
mod blocks;
mod cache;
mod messages;
mod settings;
mod tools;
mod turns;

use std::collections::HashSet;

use crate::json::Raw;

use super::checker::{Checker, Object};
use super::path::Path;
use super::rule;

use cache::Markers;

const FIELDS: &[&str] = &[
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "output_format",
    "cache_control",
    "stop_sequences",
    "stream",
    "metadata",
    "service_tier",
    "speed",
    "inference_geo",
    "container",
    "diagnostics",
    "compaction",
    "context_management",
    "thread",
    "mcp_servers",
    "fallbacks",
    "fallback_credit_token",
    "billing_policy",
    "temperature",
    "top_p",
    "top_k",
    "anthropic_version",
    "anthropic_beta",
];

/// The two generations of `anthropic-version`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// Not told, or not one that is known here.
    Unknown,
    /// `2023-06-01` and the values that clouds use for it.
    Old,
    /// `2026-10-21`.
    New,
}

/// What the rules for messages need to know about the rest of the request.
pub(crate) struct Request {
    pub(crate) version: Version,
    pub(crate) betas: Betas,
    /// Only the new messages of a thread are sent: what came before is not in the body.
    pub(crate) continues_thread: bool,
    /// The request asks for a compaction instead of a reply.
    pub(crate) asks_for_compaction: bool,
    /// `thinking.type` is `enabled`.
    pub(crate) thinks_with_budget: bool,
    /// Names of the tools; `None` if there is no `tools` field.
    pub(crate) tools: Option<tools::ToolDefinitions>,
}

pub(crate) fn check(body: &Raw, checker: &mut Checker<'_>) {
    let Some(body) = Object::read(body) else {
        return;
    };
    let root = Path::Root;
    checker.known_fields(&body, &[FIELDS], &root);
    let version = version(&body, checker);
    let mut markers = Markers::default();

    // Clouds name the model in the address of the request instead.
    if !body.has("anthropic_version") || body.has("model") {
        checker.required_name(&body, "model", &root);
    }
    let betas = Betas::read(&body, checker);
    let settings = settings::check(&body, version, &betas, checker);
    let tools = tools::check(&body, &settings, &mut markers, checker);
    settings::check_system(&body, &mut markers, checker);
    let request = Request {
        version,
        betas,
        continues_thread: settings.continues_thread,
        asks_for_compaction: settings.asks_for_compaction,
        thinks_with_budget: settings.thinks_with_budget,
        tools,
    };
    if let Some(list) = checker.required_array(&body, "messages", &root) {
        messages::check(list, &request, &mut markers, checker);
    }
    markers.finish(&body, checker);
}

fn version(body: &Object, checker: &Checker<'_>) -> Version {
    let in_body = body.string("anthropic_version");
    match checker
        .options
        .anthropic_version
        .or(in_body.as_deref())
        .unwrap_or_default()
    {
        "2026-10-21" => Version::New,
        "2023-01-01" | "2023-06-01" | "bedrock-2023-05-31" | "vertex-2023-10-16" => Version::Old,
        _ => Version::Unknown,
    }
}

/// Betas that have others in them: the part, and the whole. Claude Code sends the whole.
const PARTS: &[(&str, &str)] = &[(
    "mid-conversation-output-config-2026-07-01",
    "per-turn-control-2026-07-01",
)];

/// The betas that a request switches on: by the header, or by the field that clouds have for it.
pub(crate) struct Betas {
    /// `None` if they are unknown.
    names: Option<HashSet<String>>,
}

impl Betas {
    fn read(body: &Object, checker: &Checker<'_>) -> Self {
        let in_header = checker.options.betas;
        let names = match body.present("anthropic_beta") {
            Some(list) => Some(
                list.array()
                    .filter_map(|beta| beta.as_text())
                    .map(|beta| beta.decode().into_owned())
                    .collect(),
            ),
            None => in_header.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        };
        Self { names }
    }

    fn is_on(&self, name: &str) -> bool {
        let wider = PARTS.iter().filter(|(part, _)| *part == name);
        self.names.as_ref().is_some_and(|names| {
            names.contains(name) || wider.into_iter().any(|(_, whole)| names.contains(*whole))
        })
    }

    /// Reports a field or block that requires a beta that is known to be off.
    pub(crate) fn require(&self, name: &str, path: Path<'_>, checker: &mut Checker<'_>) {
        if self.names.is_some() && !self.is_on(name) {
            checker.add(
                &rule::BETA_MISSING,
                path,
                format_args!(
                    "this needs the header `anthropic-beta: {name}`: send it or remove this"
                ),
            );
        }
    }
}
