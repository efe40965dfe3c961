//! Token usage of a call, as the provider reports it.
//!
//! Each wire format counts in its own way; [`UsageReport`] and [`Usage`] are the same for all. Calls of a session are never
//! summed to find the size of the context: each report already holds all that came before.

use crate::json::{Raw, write_string};

/// Tokens of one model call, by price class. The classes do not overlap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input neither read from nor written to the prompt cache, tokens.
    pub uncached: u64,
    /// Input written to the prompt cache, tokens.
    pub cache_write: u64,
    /// The part of [`Usage::cache_write`] that was written with the longer lifetime, tokens.
    pub cache_write_long: u64,
    /// Input read from the prompt cache, tokens.
    pub cache_read: u64,
    /// Output, reasoning included, tokens.
    pub output: u64,
}

impl Usage {
    /// Everything that the model was sent, tokens: what filled the window.
    #[must_use]
    pub fn prompt(&self) -> u64 {
        self.uncached
            .saturating_add(self.cache_write)
            .saturating_add(self.cache_read)
    }
}

/// How much of the window a call filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextSize {
    /// What the model was sent, tokens.
    pub prompt: u64,
    /// What the next request carries before anything is added: prompt and output, tokens.
    pub next: u64,
    /// The part of the prompt that was read from the provider's cache, tokens.
    pub cached: u64,
}

/// Everything that a provider reports about one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageReport {
    /// What is billed: all passes of the model that the provider made for the call, its compactions included.
    pub billed: Usage,
    /// The last pass: what the window held. The same as `billed` unless the provider made several passes.
    pub last_pass: Usage,
    /// The part of the output that is reasoning, tokens, if it is reported.
    pub reasoning: Option<u64>,
}

impl UsageReport {
    /// How much of the window the call filled.
    #[must_use]
    pub fn context_size(&self) -> ContextSize {
        self.last_pass.context_size()
    }

    /// Reads `usage` of Anthropic Messages.
    ///
    /// The three input counts do not overlap, `cache_creation` splits the count beside it, and with
    /// `iterations` the top-level counts are sums: then the last `message` (or `fallback_message`) iteration tells
    /// the window, and `compaction` iterations are billed on top.
    #[must_use]
    pub fn from_anthropic(usage: &Raw) -> Option<Self> {
        let total = anthropic_counts(usage)?;
        let mut billed = total;
        let mut last_pass = total;
        for iteration in usage.field("iterations").iter().flat_map(Raw::array) {
            let Some(counts) = anthropic_counts(&iteration) else {
                continue;
            };
            match iteration.string_field("type").as_deref() {
                Some("message" | "fallback_message") => last_pass = counts,
                Some("compaction") => billed = billed.plus(&counts),
                _ => {}
            }
        }
        let reasoning = usage
            .field("output_tokens_details")
            .and_then(|details| count(&details, "thinking_tokens"));
        known(Self {
            billed,
            last_pass,
            reasoning,
        })
    }

    /// Reads `usage` of OpenAI Chat Completions: cached tokens are part of `prompt_tokens`.
    #[must_use]
    pub fn from_openai_chat(usage: &Raw) -> Option<Self> {
        Self::from_openai(
            usage,
            ["prompt_tokens", "prompt_tokens_details"],
            ["completion_tokens", "completion_tokens_details"],
        )
    }

    /// Reads `usage` of OpenAI Responses: cached tokens are part of `input_tokens`.
    #[must_use]
    pub fn from_openai_responses(usage: &Raw) -> Option<Self> {
        Self::from_openai(
            usage,
            ["input_tokens", "input_tokens_details"],
            ["output_tokens", "output_tokens_details"],
        )
    }

    fn from_openai(usage: &Raw, input: [&str; 2], output: [&str; 2]) -> Option<Self> {
        let prompt = count(usage, input[0])?;
        let detail = |fields: [&str; 2], name: &str| {
            usage
                .field(fields[1])
                .and_then(|details| count(&details, name))
        };
        let cache_read = detail(input, "cached_tokens").unwrap_or(0).min(prompt);
        let cache_write = detail(input, "cache_write_tokens")
            .unwrap_or(0)
            .min(prompt - cache_read);
        let cache_write_long = usage
            .field(input[1])
            .and_then(|details| details.field("cache_write_tokens_details"))
            .and_then(|details| count(&details, "ttl_12h_tokens"))
            .unwrap_or(0)
            .min(cache_write);
        let pass = Usage {
            uncached: prompt - cache_read - cache_write,
            cache_write,
            cache_write_long,
            cache_read,
            output: count(usage, output[0]).unwrap_or(0),
        };
        known(Self {
            billed: pass,
            last_pass: pass,
            reasoning: detail(output, "reasoning_tokens"),
        })
    }
}

impl Usage {
    /// How much of the window the call filled.
    #[must_use]
    pub fn context_size(&self) -> ContextSize {
        ContextSize {
            prompt: self.prompt(),
            next: self.prompt().saturating_add(self.output),
            cached: self.cache_read,
        }
    }

    /// The last pass of a `usage` of Anthropic Messages; see [`UsageReport::from_anthropic`]. `None` is unknown, never zero.
    #[must_use]
    pub fn from_anthropic(usage: &Raw) -> Option<Self> {
        UsageReport::from_anthropic(usage).map(|reported| reported.last_pass)
    }

    /// A `usage` of OpenAI Chat Completions; see [`UsageReport::from_openai_chat`]. `None` is unknown, never zero.
    #[must_use]
    pub fn from_openai_chat(usage: &Raw) -> Option<Self> {
        UsageReport::from_openai_chat(usage).map(|reported| reported.last_pass)
    }

    /// A `usage` of OpenAI Responses; see [`UsageReport::from_openai_responses`]. `None` is unknown, never zero.
    #[must_use]
    pub fn from_openai_responses(usage: &Raw) -> Option<Self> {
        UsageReport::from_openai_responses(usage).map(|reported| reported.last_pass)
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            uncached: self.uncached.saturating_add(other.uncached),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cache_write_long: self.cache_write_long.saturating_add(other.cache_write_long),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            output: self.output.saturating_add(other.output),
        }
    }
}

/// Puts together the usage of a streamed answer of Anthropic Messages.
///
/// The counts of later events are totals so far: they replace earlier ones, field by field, and a field that a later
/// event leaves out (or has as `null`) keeps its value.
#[derive(Clone, Debug, Default)]
pub struct AnthropicStream {
    fields: Vec<(String, Raw)>,
}

impl AnthropicStream {
    /// Takes the `usage` of a `message_start` or `message_delta` event.
    pub fn event(&mut self, usage: &Raw) {
        for (name, value) in usage.object().take(STREAM_FIELDS_MAX) {
            if value.is_null() {
                continue;
            }
            let name = name.decode();
            match self.fields.iter().position(|(known, _)| *known == name) {
                Some(at) => {
                    if let Some((_, slot)) = self.fields.get_mut(at) {
                        *slot = value;
                    }
                }
                None if self.fields.len() < STREAM_FIELDS_MAX => {
                    self.fields.push((name.into_owned(), value));
                }
                None => {}
            }
        }
    }

    /// What has been reported so far.
    #[must_use]
    pub fn reported(&self) -> Option<UsageReport> {
        let mut object = String::from("{");
        for (at, (name, value)) in self.fields.iter().enumerate() {
            if at > 0 {
                object.push(',');
            }
            write_string(name, &mut object);
            object.push(':');
            object.push_str(value.as_str());
        }
        object.push('}');
        UsageReport::from_anthropic(&Raw::parse(object).ok()?)
    }
}

/// Fields of a streamed usage that are kept.
const STREAM_FIELDS_MAX: usize = 64;

fn anthropic_counts(usage: &Raw) -> Option<Usage> {
    let cache_creation = usage.field("cache_creation");
    let split = |name: &str| {
        cache_creation
            .as_ref()
            .and_then(|split| count(split, name))
            .unwrap_or(0)
    };
    let long = split("ephemeral_1h_input_tokens");
    let cache_write = count(usage, "cache_creation_input_tokens")
        .unwrap_or_else(|| long.saturating_add(split("ephemeral_5m_input_tokens")));
    Some(Usage {
        uncached: count(usage, "input_tokens")?,
        cache_write,
        cache_write_long: long.min(cache_write),
        cache_read: count(usage, "cache_read_input_tokens").unwrap_or(0),
        output: count(usage, "output_tokens").unwrap_or(0),
    })
}

/// A report of no prompt at all is no report: servers that do not count send zeros.
fn known(reported: UsageReport) -> Option<UsageReport> {
    (reported.last_pass.prompt() > 0).then_some(reported)
}

fn count(object: &Raw, name: &str) -> Option<u64> {
    object.field(name)?.as_u64()
}

#[cfg(test)]
mod tests;
