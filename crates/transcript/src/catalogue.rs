//! The model catalogue: windows, limits, prices, cache rules and capabilities.
//!
//! The figures are a data file, `data/models.toml`, that comes with the crate ([`Catalogue::embedded`]) and that users
//! correct and extend with a file of the same form ([`Catalogue::with_overrides`]). Every entry says where its figures
//! come from and how sure they are. Which window counts for a request, when user, catalogue and provider disagree, is
//! decided in [`window`](crate::window).
//!
//! Nothing here asks a provider. A caller that can ask should prefer the provider's own list of models.
//!
//! ```
//! use throughline_transcript::catalogue::Catalogue;
//!
//! let catalogue = Catalogue::embedded();
//! let model = catalogue.find("us.anthropic.claude-opus-4-5-20251101-v1:0").unwrap();
//! assert_eq!((model.id.as_str(), model.window), ("claude-opus-4-5", 200_000));
//! ```

mod file;
mod money;
mod names;

use std::collections::HashMap;
use std::sync::OnceLock;

pub use money::Money;

use crate::usage::Usage;

/// The largest window that is believed, tokens. It bounds what a data file can say.
pub const WINDOW_MAX: u64 = 1_000_000_000;

/// A set of models, each found by its id, its aliases and the forms that clouds and routers give them.
#[derive(Clone, Debug)]
pub struct Catalogue {
    models: Vec<Model>,
    /// Ids and aliases in lower case, to the index in `models`.
    names: HashMap<String, usize>,
}

/// One model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The provider's id, without date.
    pub id: String,
    /// Who makes it.
    pub provider: String,
    /// Other names, besides those that [`Catalogue::find`] derives.
    pub aliases: Vec<String>,
    /// Context window, tokens: input and output together.
    pub window: u64,
    /// Largest input, tokens, where it is less than the window.
    pub input_max: Option<u64>,
    /// Largest output, tokens.
    pub output_max: Option<u64>,
    /// What splits its texts into tokens.
    pub tokenizer: TokenizerFamily,
    /// Reasoning effort when the request names none.
    pub default_effort: Option<String>,
    /// Prices, where there are any.
    pub prices: Option<Prices>,
    /// Prices of requests with a long prompt.
    pub long_prompt: Option<LongPrompt>,
    /// How its prompt cache works.
    pub cache: CacheRules,
    /// What it accepts and does.
    pub abilities: Abilities,
    /// Where the figures come from.
    pub source: String,
    /// When they were looked up, `YYYY-MM-DD`.
    pub date: String,
    /// How sure they are.
    pub confidence: Confidence,
    /// What else to know.
    pub notes: Option<String>,
}

/// Which tokenizer a model has, as far as it matters for counting.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize, serde::Serialize,
)]
#[non_exhaustive]
pub enum TokenizerFamily {
    /// OpenAI's encoding of GPT-3.5 and GPT-4.
    #[serde(rename = "cl100k_base")]
    Cl100k,
    /// OpenAI's encoding since GPT-4o.
    #[serde(rename = "o200k_base")]
    O200k,
    /// Claude up to the 4.6 models; not public.
    #[serde(rename = "claude-1")]
    Claude1,
    /// Claude from Opus 4.7 and the 5 models on; not public. About 30 % more tokens than before.
    #[serde(rename = "claude-2")]
    Claude2,
    /// Any other or unknown one.
    #[default]
    #[serde(rename = "other")]
    Other,
}

/// How sure an entry is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Conflicting sources or general knowledge.
    #[default]
    Low,
    /// Documentation that may be superseded, or one good secondary source.
    Medium,
    /// Read in the provider's documentation or SDK, or stated by the user.
    High,
}

/// Prices per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// Input that does not touch the cache.
    pub input: Money,
    /// Output, reasoning included.
    pub output: Money,
    /// Input written to the cache with the shortest lifetime.
    pub cache_write: Money,
    /// Input written to the cache with the longer lifetime.
    pub cache_write_long: Money,
    /// Input read from the cache.
    pub cache_read: Money,
}

/// Other prices for the whole request when its prompt is long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongPrompt {
    /// Prompts of more tokens than this, cached ones included, cost [`LongPrompt::prices`].
    pub above: u64,
    /// What every token of such a request costs.
    pub prices: Prices,
}

/// How a prompt cache works.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheRules {
    /// Who decides where an entry ends.
    pub kind: CacheKind,
    /// Shortest prefix that is cached, tokens.
    pub min_tokens: Option<u64>,
    /// Step size of cached prefixes, tokens; 1 if they are exact.
    pub step_tokens: u64,
    /// Most markers in one request.
    pub markers_max: Option<u32>,
    /// How many blocks (or breakpoints) before a marker are looked at for an earlier entry, the marker included.
    pub lookback_blocks: Option<u32>,
    /// How long an entry lives after its last use, seconds, shortest first.
    pub lifetimes_s: Vec<u32>,
    /// How sure these rules are.
    pub confidence: Confidence,
}

/// Who decides where a cache entry ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Unknown, or there is no cache.
    #[default]
    None,
    /// The request marks blocks (Anthropic); nothing is written elsewhere.
    Markers,
    /// The provider alone, in steps (OpenAI before GPT-5.6).
    Automatic,
    /// The provider, and breakpoints that the request may set (OpenAI from GPT-5.6 on).
    Breakpoints,
}

/// What a model accepts and does; `None` is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Values of `thinking.type` that it accepts.
    pub thinking: Option<Vec<String>>,
    /// Highest reasoning effort at which its thinking can be switched off; `None` if any, or unknown.
    pub thinking_off_effort_max: Option<String>,
    /// Whether it thinks when the request does not say.
    pub thinks_by_default: Option<bool>,
    /// Whether the last message may be the assistant's, to be continued.
    pub prefill: Option<bool>,
    /// Whether the signature of a thinking block is bound to everything before it.
    pub binds_thinking_to_prefix: Option<bool>,
    /// Whether `system` messages are allowed between the others.
    pub mid_conversation_system: Option<bool>,
    /// Whether temperature and the like may differ from their defaults.
    pub sampling: Option<bool>,
    /// Whether thinking of earlier turns stays in the context (and is billed); otherwise only the last turn's does.
    pub keeps_thinking_of_all_turns: Option<bool>,
    /// Whether a request may force it to call a tool.
    pub forced_tool_choice: Option<bool>,
    /// Whether the provider compacts on demand.
    pub on_demand_compaction: Option<bool>,
}

/// Why a catalogue file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// Not TOML, an unknown field or a value of the wrong kind; the text says at which line and column.
    #[error("the model catalogue cannot be read: {0}")]
    Syntax(String),
    /// A value that makes no sense.
    #[error("model {model:?} of the catalogue: {field} {reason}")]
    Value {
        /// Id of the entry.
        model: String,
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Two models with the same name.
    #[error("the catalogue gives the name {name:?} to {first:?} and to {second:?}")]
    SameName {
        /// The id or alias, in lower case.
        name: String,
        /// Id of the one.
        first: String,
        /// Id of the other.
        second: String,
    },
}

impl Catalogue {
    /// The catalogue that comes with the crate.
    #[must_use]
    pub fn embedded() -> &'static Self {
        static EMBEDDED: OnceLock<Catalogue> = OnceLock::new();
        EMBEDDED.get_or_init(|| {
            // A test reads the file, so a mistake in it does not get this far; a release without figures still works.
            Self::empty()
                .extended(include_str!("../data/models.toml"))
                .unwrap_or_else(|_| Self::empty())
        })
    }

    /// A catalogue that knows no model.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            models: Vec::new(),
            names: HashMap::new(),
        }
    }

    /// The embedded catalogue, corrected and extended by a file of the same form.
    ///
    /// An entry with a known `id` changes only the fields that it names. An entry with a new `id` needs at least `window`.
    ///
    /// # Errors
    /// Says where the file is not TOML, names an unknown field or holds a value that makes no sense.
    pub fn with_overrides(toml: &str) -> Result<Self, CatalogueError> {
        Self::embedded().clone().extended(toml)
    }

    /// This catalogue, corrected and extended: see [`Catalogue::with_overrides`].
    ///
    /// # Errors
    /// As [`Catalogue::with_overrides`].
    pub fn extended(mut self, toml: &str) -> Result<Self, CatalogueError> {
        for entry in file::parse(toml)? {
            let known = self.models.iter().position(|model| model.id == entry.id);
            let model = entry.onto(known.and_then(|at| self.models.get(at)))?;
            match known.and_then(|at| self.models.get_mut(at)) {
                Some(slot) => *slot = model,
                None => self.models.push(model),
            }
        }
        self.names = names::index(&self.models)?;
        Ok(self)
    }

    /// All models, in the order of the file.
    #[must_use]
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// The model that a request means by `model_id`.
    ///
    /// Found by its id or an alias, in any case, or by one of the forms that providers, clouds and routers make of
    /// it: a date or `-latest` at the end, a vendor in front (`vendor/...`, `us.anthropic....-v1:0`), a variant behind
    /// (`...:free`, `...[1m]`, `...@20251101`), a dot in the version of a Claude model. A name that merely begins like
    /// another is never taken for it.
    #[must_use]
    pub fn find(&self, model_id: &str) -> Option<&Model> {
        names::find(&self.names, model_id).and_then(|at| self.models.get(at))
    }
}

impl Model {
    /// The prices of a request whose prompt is `prompt` tokens long, cached ones included.
    #[must_use]
    pub fn prices_at(&self, prompt: u64) -> Option<&Prices> {
        match &self.long_prompt {
            Some(long) if prompt > long.above => Some(&long.prices),
            _ => self.prices.as_ref(),
        }
    }
}

/// What one call costs; `None` where the model has no prices.
///
/// One call: usage of several calls must not be summed before, or a long-prompt price would apply that none of them paid.
#[must_use]
pub fn cost(usage: &Usage, model: &Model) -> Option<Money> {
    let prices = model.prices_at(usage.prompt())?;
    let cache_write_short = usage.cache_write.saturating_sub(usage.cache_write_long);
    Some(Money::of_tokens(&[
        (usage.uncached, prices.input),
        (cache_write_short, prices.cache_write),
        (
            usage.cache_write_long.min(usage.cache_write),
            prices.cache_write_long,
        ),
        (usage.cache_read, prices.cache_read),
        (usage.output, prices.output),
    ]))
}

#[cfg(test)]
mod tests;
