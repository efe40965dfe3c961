//! The catalogue file: TOML entries, and how they become models.

use serde::Deserialize;

use super::{
    Abilities, CacheKind, CacheRules, CatalogueError, Confidence, LongPrompt, Model, Money, Prices,
    TokenizerFamily, WINDOW_MAX,
};

/// The entries of a file.
pub(super) fn parse(toml: &str) -> Result<Vec<Entry>, CatalogueError> {
    let file: File =
        toml::from_str(toml).map_err(|error| CatalogueError::Syntax(error.to_string()))?;
    Ok(file.model)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    model: Vec<Entry>,
}

/// One entry as it is written: everything but the id may be left out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) id: String,
    provider: Option<String>,
    aliases: Option<Vec<String>>,
    window: Option<u64>,
    input_max: Option<u64>,
    output_max: Option<u64>,
    tokenizer: Option<TokenizerFamily>,
    default_effort: Option<String>,
    prices: Option<PricesEntry>,
    long_prompt: Option<LongPromptEntry>,
    cache: Option<CacheEntry>,
    abilities: Option<AbilitiesEntry>,
    source: Option<String>,
    date: Option<String>,
    confidence: Option<Confidence>,
    notes: Option<String>,
}

/// US dollars per million tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PricesEntry {
    input: Option<f64>,
    output: Option<f64>,
    cache_write: Option<f64>,
    cache_write_long: Option<f64>,
    cache_read: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LongPromptEntry {
    above: Option<u64>,
    input: Option<f64>,
    output: Option<f64>,
    cache_write: Option<f64>,
    cache_write_long: Option<f64>,
    cache_read: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CacheEntry {
    kind: Option<CacheKind>,
    min_tokens: Option<u64>,
    step_tokens: Option<u64>,
    markers_max: Option<u32>,
    lookback_blocks: Option<u32>,
    lifetimes_s: Option<Vec<u32>>,
    confidence: Option<Confidence>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AbilitiesEntry {
    thinking: Option<Vec<String>>,
    thinking_off_effort_max: Option<String>,
    thinking_default: Option<OnOff>,
    prefill: Option<bool>,
    binds_thinking_to_prefix: Option<bool>,
    mid_conversation_system: Option<bool>,
    sampling: Option<bool>,
    keeps_thinking_of_all_turns: Option<bool>,
    forced_tool_choice: Option<bool>,
    on_demand_compaction: Option<bool>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum OnOff {
    On,
    Off,
}

impl Entry {
    /// The model that this entry makes of `known`, or a new one.
    pub(super) fn onto(self, known: Option<&Model>) -> Result<Model, CatalogueError> {
        let wrong = |field, reason| CatalogueError::Value {
            model: self.id.clone(),
            field,
            reason,
        };
        if self.id.trim().is_empty() {
            return Err(wrong("id", "is empty"));
        }
        let Some(window) = self.window.or(known.map(|model| model.window)) else {
            return Err(wrong("window", "is missing"));
        };
        for (field, value) in [
            ("window", Some(window)),
            ("input_max", self.input_max),
            ("output_max", self.output_max),
        ] {
            match value {
                Some(0) => return Err(wrong(field, "must be positive")),
                Some(tokens) if tokens > WINDOW_MAX => {
                    return Err(wrong(field, "is larger than any window"));
                }
                _ => {}
            }
        }
        let prices = match self.prices {
            Some(entry) => Some(
                entry
                    .onto(known.and_then(|model| model.prices.as_ref()))
                    .map_err(|reason| wrong("prices", reason))?,
            ),
            None => known.and_then(|model| model.prices),
        };
        let known_long = known.and_then(|model| model.long_prompt);
        let long_prompt = match self.long_prompt {
            Some(entry) => Some(
                entry
                    .onto(known_long.as_ref())
                    .map_err(|reason| wrong("long_prompt", reason))?,
            ),
            None => known_long,
        };
        let blank;
        let base = match known {
            Some(model) => model,
            None => {
                blank = Model::blank();
                &blank
            }
        };
        Ok(Model {
            provider: self.provider.unwrap_or_else(|| base.provider.clone()),
            aliases: self.aliases.unwrap_or_else(|| base.aliases.clone()),
            window,
            input_max: self.input_max.or(base.input_max),
            output_max: self.output_max.or(base.output_max),
            tokenizer: self.tokenizer.unwrap_or(base.tokenizer),
            default_effort: self.default_effort.or_else(|| base.default_effort.clone()),
            prices,
            long_prompt,
            cache: match self.cache {
                Some(entry) => entry.onto(&base.cache),
                None => base.cache.clone(),
            },
            abilities: match self.abilities {
                Some(entry) => entry.onto(&base.abilities),
                None => base.abilities.clone(),
            },
            source: self.source.unwrap_or_else(|| base.source.clone()),
            date: self.date.unwrap_or_else(|| base.date.clone()),
            confidence: self.confidence.unwrap_or(base.confidence),
            notes: self.notes.or_else(|| base.notes.clone()),
            id: self.id,
        })
    }
}

impl Model {
    /// What an entry with a new id starts from.
    fn blank() -> Self {
        Self {
            id: String::new(),
            provider: String::new(),
            aliases: Vec::new(),
            window: 0,
            input_max: None,
            output_max: None,
            tokenizer: TokenizerFamily::Other,
            default_effort: None,
            prices: None,
            long_prompt: None,
            cache: CacheRules {
                step_tokens: 1,
                ..CacheRules::default()
            },
            abilities: Abilities::default(),
            source: "user".to_owned(),
            date: String::new(),
            confidence: Confidence::High,
            notes: None,
        }
    }
}

impl PricesEntry {
    fn onto(self, known: Option<&Prices>) -> Result<Prices, &'static str> {
        let price = |dollars: Option<f64>, known: Option<Money>| match dollars {
            Some(dollars) => Money::from_dollars(dollars)
                .map(Some)
                .ok_or("must lie between 0 and a million dollars"),
            None => Ok(known),
        };
        let input = price(self.input, known.map(|p| p.input))?.ok_or("need `input`")?;
        let cache_write = price(self.cache_write, known.map(|p| p.cache_write))?.unwrap_or(input);
        Ok(Prices {
            input,
            output: price(self.output, known.map(|p| p.output))?.ok_or("need `output`")?,
            cache_write,
            cache_write_long: price(self.cache_write_long, known.map(|p| p.cache_write_long))?
                .unwrap_or(cache_write),
            cache_read: price(self.cache_read, known.map(|p| p.cache_read))?.unwrap_or(input),
        })
    }
}

impl LongPromptEntry {
    fn onto(self, known: Option<&LongPrompt>) -> Result<LongPrompt, &'static str> {
        let prices = PricesEntry {
            input: self.input,
            output: self.output,
            cache_write: self.cache_write,
            cache_write_long: self.cache_write_long,
            cache_read: self.cache_read,
        };
        Ok(LongPrompt {
            above: self
                .above
                .or(known.map(|long| long.above))
                .ok_or("needs `above`")?,
            prices: prices.onto(known.map(|long| &long.prices))?,
        })
    }
}

impl CacheEntry {
    fn onto(self, known: &CacheRules) -> CacheRules {
        CacheRules {
            kind: self.kind.unwrap_or(known.kind),
            min_tokens: self.min_tokens.or(known.min_tokens),
            step_tokens: self.step_tokens.unwrap_or(known.step_tokens).max(1),
            markers_max: self.markers_max.or(known.markers_max),
            lookback_blocks: self.lookback_blocks.or(known.lookback_blocks),
            lifetimes_s: self
                .lifetimes_s
                .unwrap_or_else(|| known.lifetimes_s.clone()),
            confidence: self.confidence.unwrap_or(known.confidence),
        }
    }
}

impl AbilitiesEntry {
    fn onto(self, known: &Abilities) -> Abilities {
        Abilities {
            thinking: self.thinking.or_else(|| known.thinking.clone()),
            thinking_off_effort_max: self
                .thinking_off_effort_max
                .or_else(|| known.thinking_off_effort_max.clone()),
            thinks_by_default: self
                .thinking_default
                .map(|default| default == OnOff::On)
                .or(known.thinks_by_default),
            prefill: self.prefill.or(known.prefill),
            binds_thinking_to_prefix: self
                .binds_thinking_to_prefix
                .or(known.binds_thinking_to_prefix),
            mid_conversation_system: self
                .mid_conversation_system
                .or(known.mid_conversation_system),
            sampling: self.sampling.or(known.sampling),
            keeps_thinking_of_all_turns: self
                .keeps_thinking_of_all_turns
                .or(known.keeps_thinking_of_all_turns),
            forced_tool_choice: self.forced_tool_choice.or(known.forced_tool_choice),
            on_demand_compaction: self.on_demand_compaction.or(known.on_demand_compaction),
        }
    }
}
