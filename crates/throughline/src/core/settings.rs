//! Settings as they are stored: one row with named fields.
//!
//! A session keeps only the fields that differ from what follows from its model. Who makes memories, where the tail
//! begins and how tokens are counted follow from the front end and are not among them.
//!
//! Older versions wrote groups of fields as lists and some rules as negative numbers. Both are still read: a list is
//! read as the fields of its group in order, and [`StoredRule`] knows the numbers.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use throughline_engine::{
    CompactionSettings, Economy, EconomyRule, Fallback, Mark, Mode, Spending, Triggers, UpdateStep,
};
use throughline_transcript::catalogue::TokenizerFamily;
use throughline_transcript::tokens::Counter;

/// Every setting that is stored, by its stored name.
#[derive(Serialize, Deserialize)]
struct SettingsRow {
    #[serde(with = "ModeRow")]
    mode: Mode,
    window: u64,
    output_reserve: u64,
    body_bytes_max: Option<u64>,
    #[serde(with = "MarkRow")]
    soft: Mark,
    #[serde(with = "MarkRow")]
    hard: Mark,
    #[serde(with = "MarkRow")]
    threshold: Mark,
    #[serde(with = "StepRow")]
    step: UpdateStep,
    #[serde(with = "TriggersRow")]
    triggers: Triggers,
    #[serde(with = "MarkRow")]
    keep: Mark,
    memory_tokens_max: u64,
    #[serde(with = "MarkRow")]
    gain_min: Mark,
    keeps_history: bool,
    model_wait_ms_max: u64,
    traditional_wait_ms_max: u64,
    failures_max: u32,
    failure_rest_ms: u64,
    economy: EconomyRow,
    spending: SpendingRow,
    binds_thinking: bool,
    tokenizer: Option<TokenizerFamily>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Mode", rename_all = "kebab-case")]
enum ModeRow {
    Off,
    Traditional,
    Instant,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Mark", rename_all = "kebab-case")]
enum MarkRow {
    Permille(u32),
    Tokens(u64),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "UpdateStep")]
struct StepRow {
    tokens: Option<u64>,
    tool_calls: Option<u32>,
    at_breaks: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Triggers")]
struct TriggersRow {
    turns: Option<u32>,
    tool_calls: Option<u32>,
    phases: bool,
}

#[derive(Serialize, Deserialize)]
struct EconomyRow {
    rule: StoredRule,
    cache_ms: u64,
    read_permille: u32,
    write_permille: u32,
}

#[derive(Serialize, Deserialize)]
struct SpendingRow {
    output_permille: u32,
    /// None: whatever it costs.
    savings_permille: Option<u32>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
enum StoredRule {
    Rule(#[serde(with = "EconomyRuleRow")] EconomyRule),
    /// Of older versions: a margin in thousandths, -1 for a cold cache, -2 for the hard mark only.
    Number(i64),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "EconomyRule", rename_all = "kebab-case")]
enum EconomyRuleRow {
    HardMarkOnly,
    WhenCold,
    WhenItPays { margin_permille: u32 },
}

impl From<&CompactionSettings> for SettingsRow {
    fn from(settings: &CompactionSettings) -> Self {
        let economy = settings.economy;
        Self {
            mode: settings.mode,
            window: settings.window,
            output_reserve: settings.output_reserve,
            body_bytes_max: settings.body_bytes_max,
            soft: settings.soft,
            hard: settings.hard,
            threshold: settings.threshold,
            step: settings.step,
            triggers: settings.triggers,
            keep: settings.keep,
            memory_tokens_max: settings.memory_tokens_max,
            gain_min: settings.gain_min,
            keeps_history: settings.fallback == Fallback::KeepHistory,
            model_wait_ms_max: settings.model_wait_ms_max,
            traditional_wait_ms_max: settings.traditional_wait_ms_max,
            failures_max: settings.failures_max,
            failure_rest_ms: settings.failure_rest_ms,
            economy: EconomyRow {
                rule: StoredRule::Rule(economy.rule),
                cache_ms: economy.cache_ms,
                read_permille: economy.read_permille,
                write_permille: economy.write_permille,
            },
            spending: SpendingRow {
                output_permille: economy.output_permille,
                savings_permille: match economy.spending {
                    Spending::Freely => None,
                    Spending::FromSavings { permille } => Some(permille),
                },
            },
            binds_thinking: settings.binds_thinking,
            tokenizer: Some(settings.counter.family())
                .filter(|family| *family != TokenizerFamily::Other),
        }
    }
}

impl SettingsRow {
    fn set(self, settings: &mut CompactionSettings) {
        let counter = match self.tokenizer {
            Some(family) if family != settings.counter.family() => Counter::of_family(family),
            _ => settings.counter,
        };
        *settings = CompactionSettings {
            mode: self.mode,
            window: self.window,
            output_reserve: self.output_reserve,
            body_bytes_max: self.body_bytes_max,
            soft: self.soft,
            hard: self.hard,
            threshold: self.threshold,
            step: self.step,
            triggers: self.triggers,
            keep: self.keep,
            memory_tokens_max: self.memory_tokens_max,
            gain_min: self.gain_min,
            compactor: settings.compactor,
            fallback: if self.keeps_history {
                Fallback::KeepHistory
            } else {
                Fallback::Draft
            },
            model_wait_ms_max: self.model_wait_ms_max,
            traditional_wait_ms_max: self.traditional_wait_ms_max,
            failures_max: self.failures_max,
            failure_rest_ms: self.failure_rest_ms,
            economy: Economy {
                rule: self.economy.rule.rule(),
                cache_ms: self.economy.cache_ms,
                read_permille: self.economy.read_permille,
                write_permille: self.economy.write_permille,
                output_permille: self.spending.output_permille,
                spending: self
                    .spending
                    .savings_permille
                    .map_or(Spending::Freely, |permille| Spending::FromSavings {
                        permille,
                    }),
            },
            binds_thinking: self.binds_thinking,
            tail_begins: settings.tail_begins,
            counter,
        };
    }
}

impl StoredRule {
    fn rule(self) -> EconomyRule {
        match self {
            Self::Rule(rule) => rule,
            Self::Number(-2) => EconomyRule::HardMarkOnly,
            Self::Number(number) => match u32::try_from(number) {
                Ok(margin_permille) => EconomyRule::WhenItPays { margin_permille },
                Err(_) => EconomyRule::WhenCold,
            },
        }
    }
}

/// The fields of `after` that `before` has otherwise.
pub(super) fn difference(
    before: &CompactionSettings,
    after: &CompactionSettings,
) -> Map<String, Value> {
    let before = fields(before);
    let mut after = fields(after);
    after.retain(|name, value| before.get(name) != Some(value));
    after
}

/// The fields that a window decides.
pub(super) fn of_the_window(settings: &CompactionSettings) -> Map<String, Value> {
    const NAMES: [&str; 3] = ["window", "output_reserve", "memory_tokens_max"];
    let mut fields = fields(settings);
    fields.retain(|name, _| NAMES.contains(&name.as_str()));
    fields
}

/// The fields that a model decides.
pub(super) fn of_the_model(settings: &CompactionSettings) -> Map<String, Value> {
    let mut fields = fields(settings);
    fields.retain(|name, _| is_of_the_model(name));
    fields
}

/// Whether a model decides the field.
pub(super) fn is_of_the_model(name: &str) -> bool {
    const NAMES: [&str; 7] = [
        "window",
        "output_reserve",
        "memory_tokens_max",
        "binds_thinking",
        "economy",
        "spending",
        "tokenizer",
    ];
    NAMES.contains(&name)
}

fn fields(settings: &CompactionSettings) -> Map<String, Value> {
    match serde_json::to_value(SettingsRow::from(settings)) {
        Ok(Value::Object(fields)) => fields,
        // Names and numbers only: this cannot fail.
        _ => Map::new(),
    }
}

/// Sets the fields that are named. One that cannot be read changes nothing: another version wrote it.
pub(super) fn apply(named: &Map<String, Value>, settings: &mut CompactionSettings) {
    for (name, value) in named {
        let mut fields = fields(settings);
        let Some(field) = fields.get_mut(name) else {
            continue;
        };
        field.clone_from(value);
        if let Ok(row) = serde_json::from_value::<SettingsRow>(Value::Object(fields)) {
            row.set(settings);
        }
    }
}

#[cfg(test)]
mod tests;
