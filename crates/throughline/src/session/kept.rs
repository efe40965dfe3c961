//! What is stored of a session besides messages, memories and the head of its requests.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use throughline_engine::{
    CompactionSettings, Economy, EconomyRule, Fallback, Mark, Mode, Pin, Savings, Spending, Step,
    Triggers,
};
use throughline_transcript::catalogue::{Money, TokenizerFamily};
use throughline_transcript::tokens::Counter;

use crate::costs::Without;

/// What is stored of a session besides messages and memories.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Pinned facts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<KeptPin>,
    /// Whether the memory goes into the system prompt.
    #[serde(default)]
    pub is_memory_in_system: bool,
    /// For how long the provider is to cache: `5m`, `1h`, or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caching: Option<String>,
    /// CompactionSettings with which the session began, where they are not those of the model.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub begun: Map<String, Value>,
    /// CompactionSettings that were changed while it ran.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub changed: Map<String, Value>,
    /// Memory versions up to this one are of a conversation that was cleared.
    #[serde(default)]
    pub cleared_versions: u64,
    /// Memory versions up to this one were taken back, and do not come back by themselves.
    #[serde(default)]
    pub undone_versions: u64,
    /// What requests were made with before the present memory, oldest first: what can be taken back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<KeptAdoption>,
    /// What the session would have cost without compaction, so far.
    #[serde(default)]
    pub compared: Compared,
    /// What estimates of tokens are multiplied with, in thousandths, by what the provider has said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_permille: Option<u64>,
    /// What was saved and spent so far, which says whether a model can be paid for the next memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub savings: Option<KeptSavings>,
}

/// [`Savings`], as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSavings {
    removed: u64,
    saved: i64,
    spent: i64,
    hits_permille: u64,
    requests: u64,
}

/// A pinned fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptPin {
    id: String,
    text: String,
    message: usize,
}

/// A memory that requests were made with, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptAdoption {
    /// Number of its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The messages that are quoted behind it: index of the first, and of the one after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoted: Option<(usize, usize)>,
    /// Tokens that the swap after it has taken out of the requests.
    #[serde(default)]
    pub removed_tokens: u64,
}

/// Swaps that can be taken back, one after the other.
const SWAPS_MAX: usize = 32;

/// The session that never lets go of anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compared {
    calls: u64,
    refused: u64,
    cost_nanodollars: u64,
    last_prompt: u64,
    /// Tokens that swaps have taken out of the requests.
    pub removed_tokens: u64,
}

impl Compared {
    /// What is kept of these figures.
    #[must_use]
    pub fn of(without: &Without, removed_tokens: u64) -> Self {
        Self {
            calls: without.calls,
            refused: without.refused,
            cost_nanodollars: without.cost.nano_dollars(),
            last_prompt: without.last_prompt,
            removed_tokens,
        }
    }

    /// The figures that were kept.
    #[must_use]
    pub fn without(&self) -> Without {
        Without {
            calls: self.calls,
            refused: self.refused,
            cost: Money::from_nano_dollars(self.cost_nanodollars),
            last_prompt: self.last_prompt,
        }
    }
}

impl Kept {
    /// The settings of the model with everything that was said otherwise when the session began.
    pub fn begin(&self, settings: &mut CompactionSettings) {
        apply(&self.begun, settings);
    }

    /// What was changed while it ran.
    pub fn go_on(&self, settings: &mut CompactionSettings) {
        apply(&self.changed, settings);
    }

    /// Another memory, or none, takes the place of the present one.
    pub fn adopted(&mut self, present: KeptAdoption, next: KeptAdoption) {
        if present.version != next.version {
            self.before.push(present);
            let excess = self.before.len().saturating_sub(SWAPS_MAX);
            self.before.drain(..excess);
        }
    }

    /// Keeps what differs between two settings.
    pub fn change(&mut self, before: &CompactionSettings, after: &CompactionSettings) {
        self.changed.extend(difference(before, after));
    }

    /// Keeps what is said of a model, whatever was said of the one before.
    pub fn change_model(&mut self, settings: &CompactionSettings) {
        for (name, value) in fields(settings) {
            if OF_THE_MODEL.contains(&name.as_str()) {
                self.begun.remove(&name);
                self.changed.insert(name, value);
            }
        }
    }
}

/// What is said of one setting in `after` and not in `before`.
pub(super) fn difference(
    before: &CompactionSettings,
    after: &CompactionSettings,
) -> Map<String, Value> {
    let before = fields(before);
    fields(after)
        .into_iter()
        .filter(|(name, value)| before.get(name) != Some(value))
        .collect()
}

/// What a window decides.
pub(super) fn of_window(settings: &CompactionSettings) -> impl Iterator<Item = (String, Value)> {
    const NAMES: [&str; 3] = ["window", "output_reserve", "memory_tokens_max"];
    let all = fields(settings).into_iter();
    all.filter(|(name, _)| NAMES.contains(&name.as_str()))
}

const OF_THE_MODEL: [&str; 7] = [
    "window",
    "output_reserve",
    "memory_tokens_max",
    "binds_thinking",
    "economy",
    "spending",
    "tokenizer",
];

/// CompactionSettings by name. Who makes memories and where the tail begins are not among them: that is said anew each time.
fn fields(settings: &CompactionSettings) -> Map<String, Value> {
    let economy = &settings.economy;
    let step = &settings.step;
    let triggers = &settings.triggers;
    let all = [
        ("mode", json!(mode_name(settings.mode))),
        ("window", json!(settings.window)),
        ("output_reserve", json!(settings.output_reserve)),
        ("body_bytes_max", json!(settings.body_bytes_max)),
        ("soft", mark(settings.soft)),
        ("hard", mark(settings.hard)),
        ("threshold", mark(settings.threshold)),
        (
            "step",
            json!([step.tokens, step.tool_calls, step.at_breaks]),
        ),
        (
            "triggers",
            json!([triggers.turns, triggers.tool_calls, triggers.phases]),
        ),
        ("keep", mark(settings.keep)),
        ("memory_tokens_max", json!(settings.memory_tokens_max)),
        ("gain_min", mark(settings.gain_min)),
        (
            "keeps_history",
            json!(settings.fallback == Fallback::KeepHistory),
        ),
        ("model_wait_ms_max", json!(settings.model_wait_ms_max)),
        (
            "traditional_wait_ms_max",
            json!(settings.traditional_wait_ms_max),
        ),
        ("failures_max", json!(settings.failures_max)),
        ("failure_rest_ms", json!(settings.failure_rest_ms)),
        (
            "economy",
            json!([
                rule(economy.rule),
                economy.cache_ms,
                economy.read_permille,
                economy.write_permille
            ]),
        ),
        (
            "spending",
            json!([economy.output_permille, spending(economy.spending)]),
        ),
        ("binds_thinking", json!(settings.binds_thinking)),
        (
            "tokenizer",
            json!(tokenizer_name(settings.counter.family())),
        ),
    ];
    all.into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Sets what is named. What is not understood is left as it is: it was written by another version.
fn apply(map: &Map<String, Value>, settings: &mut CompactionSettings) {
    fn take<T: serde::de::DeserializeOwned>(map: &Map<String, Value>, name: &str, into: &mut T) {
        if let Some(value) = map.get(name)
            && let Ok(value) = serde_json::from_value(value.clone())
        {
            *into = value;
        }
    }
    let take_mark = |name: &str, into: &mut Mark| {
        if let Some(mark) = map.get(name).and_then(mark_of) {
            *into = mark;
        }
    };
    take(map, "window", &mut settings.window);
    take(map, "output_reserve", &mut settings.output_reserve);
    take(map, "body_bytes_max", &mut settings.body_bytes_max);
    take(map, "memory_tokens_max", &mut settings.memory_tokens_max);
    take(map, "model_wait_ms_max", &mut settings.model_wait_ms_max);
    take(
        map,
        "traditional_wait_ms_max",
        &mut settings.traditional_wait_ms_max,
    );
    take(map, "failures_max", &mut settings.failures_max);
    take(map, "failure_rest_ms", &mut settings.failure_rest_ms);
    take(map, "binds_thinking", &mut settings.binds_thinking);
    take_mark("soft", &mut settings.soft);
    take_mark("hard", &mut settings.hard);
    take_mark("threshold", &mut settings.threshold);
    take_mark("keep", &mut settings.keep);
    take_mark("gain_min", &mut settings.gain_min);
    if let Some(mode) = map.get("mode").and_then(Value::as_str).and_then(mode_of) {
        settings.mode = mode;
    }
    let mut keeps_history = settings.fallback == Fallback::KeepHistory;
    take(map, "keeps_history", &mut keeps_history);
    settings.fallback = if keeps_history {
        Fallback::KeepHistory
    } else {
        Fallback::Draft
    };
    let step = &settings.step;
    let mut parts = (step.tokens, step.tool_calls, step.at_breaks);
    take(map, "step", &mut parts);
    settings.step = Step {
        tokens: parts.0,
        tool_calls: parts.1,
        at_breaks: parts.2,
    };
    let triggers = &settings.triggers;
    let mut parts = (triggers.turns, triggers.tool_calls, triggers.phases);
    take(map, "triggers", &mut parts);
    settings.triggers = Triggers {
        turns: parts.0,
        tool_calls: parts.1,
        phases: parts.2,
    };
    let economy = &settings.economy;
    let mut parts = (
        rule(economy.rule),
        economy.cache_ms,
        economy.read_permille,
        economy.write_permille,
    );
    take(map, "economy", &mut parts);
    let mut spent = (economy.output_permille, spending(economy.spending));
    take(map, "spending", &mut spent);
    settings.economy = Economy {
        rule: rule_of(parts.0),
        cache_ms: parts.1,
        read_permille: parts.2,
        write_permille: parts.3,
        output_permille: spent.0,
        spending: spending_of(spent.1),
    };
    if let Some(family) = map.get("tokenizer").and_then(tokenizer_of)
        && family != settings.counter.family()
    {
        settings.counter = Counter::of_family(family);
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Off => "off",
        Mode::Traditional => "traditional",
        Mode::Instant => "instant",
    }
}

fn mode_of(name: &str) -> Option<Mode> {
    [Mode::Off, Mode::Traditional, Mode::Instant]
        .into_iter()
        .find(|mode| mode_name(*mode) == name)
}

fn mark(mark: Mark) -> Value {
    match mark {
        Mark::Permille(permille) => json!({ "permille": permille }),
        Mark::Tokens(tokens) => json!({ "tokens": tokens }),
    }
}

fn mark_of(value: &Value) -> Option<Mark> {
    if let Some(tokens) = value.get("tokens").and_then(Value::as_u64) {
        return Some(Mark::Tokens(tokens));
    }
    let permille = value.get("permille")?.as_u64()?;
    Some(Mark::Permille(u32::try_from(permille).ok()?))
}

/// The margin of the rule; a negative one for a rule that has none.
fn rule(rule: EconomyRule) -> i64 {
    match rule {
        EconomyRule::HardMarkOnly => -2,
        EconomyRule::WhenCold => -1,
        EconomyRule::WhenItPays { margin_permille } => margin_permille.into(),
    }
}

/// `None` for no limit.
fn spending(spending: Spending) -> Option<u32> {
    match spending {
        Spending::Freely => None,
        Spending::FromSavings { permille } => Some(permille),
    }
}

fn spending_of(permille: Option<u32>) -> Spending {
    permille.map_or(Spending::Freely, |permille| Spending::FromSavings {
        permille,
    })
}

fn rule_of(number: i64) -> EconomyRule {
    match u32::try_from(number) {
        Ok(margin_permille) => EconomyRule::WhenItPays { margin_permille },
        Err(_) if number == -2 => EconomyRule::HardMarkOnly,
        Err(_) => EconomyRule::WhenCold,
    }
}

/// Under its name in the catalogue.
fn tokenizer_name(family: TokenizerFamily) -> Option<&'static str> {
    TOKENIZERS
        .into_iter()
        .find(|(known, _)| *known == family)
        .map(|(_, name)| name)
}

fn tokenizer_of(value: &Value) -> Option<TokenizerFamily> {
    let name = value.as_str()?;
    TOKENIZERS
        .into_iter()
        .find(|(_, known)| *known == name)
        .map(|(family, _)| family)
}

const TOKENIZERS: [(TokenizerFamily, &str); 4] = [
    (TokenizerFamily::Cl100k, "cl100k_base"),
    (TokenizerFamily::O200k, "o200k_base"),
    (TokenizerFamily::Claude1, "claude-1"),
    (TokenizerFamily::Claude2, "claude-2"),
];

impl From<Savings> for KeptSavings {
    fn from(savings: Savings) -> Self {
        Self {
            removed: savings.removed,
            saved: savings.saved,
            spent: savings.spent,
            hits_permille: savings.hits_permille,
            requests: savings.requests,
        }
    }
}

impl From<KeptSavings> for Savings {
    fn from(kept: KeptSavings) -> Self {
        Self {
            removed: kept.removed,
            saved: kept.saved,
            spent: kept.spent,
            hits_permille: kept.hits_permille,
            requests: kept.requests,
        }
    }
}

impl From<&Pin> for KeptPin {
    fn from(pin: &Pin) -> Self {
        Self {
            id: pin.id.clone(),
            text: pin.text.clone(),
            message: pin.message,
        }
    }
}

impl From<&KeptPin> for Pin {
    fn from(pin: &KeptPin) -> Self {
        Self {
            id: pin.id.clone(),
            text: pin.text.clone(),
            message: pin.message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_comes_back() {
        let before = CompactionSettings::new(200_000);
        let mut after = CompactionSettings::new(50_000);
        after.mode = Mode::Traditional;
        after.output_reserve = 1;
        after.body_bytes_max = Some(2);
        after.soft = Mark::Tokens(3);
        after.hard = Mark::Permille(4);
        after.threshold = Mark::Tokens(5);
        after.step = Step {
            tokens: Some(6),
            tool_calls: Some(7),
            at_breaks: false,
        };
        after.triggers = Triggers {
            turns: Some(8),
            tool_calls: Some(9),
            phases: true,
        };
        after.keep = Mark::Tokens(10);
        after.memory_tokens_max = 11;
        after.gain_min = Mark::Tokens(12);
        after.fallback = Fallback::KeepHistory;
        after.model_wait_ms_max = 13;
        after.traditional_wait_ms_max = 14;
        after.failures_max = 15;
        after.failure_rest_ms = 16;
        after.economy = Economy {
            rule: EconomyRule::WhenItPays {
                margin_permille: 17,
            },
            cache_ms: 18,
            read_permille: 19,
            write_permille: 20,
            output_permille: 21,
            spending: Spending::Freely,
        };
        after.binds_thinking = true;
        after.counter = Counter::of_family(TokenizerFamily::Claude2);
        let mut kept = Kept::default();
        kept.change(&before, &after);
        assert_eq!(kept.changed.len(), fields(&after).len());
        let json = serde_json::to_string(&kept).unwrap();
        let kept: Kept = serde_json::from_str(&json).unwrap();
        let mut read = before.clone();
        kept.go_on(&mut read);
        assert_eq!(fields(&read), fields(&after));
        // What is not understood changes nothing.
        let strange = serde_json::from_str(r#"{"changed":{"mode":7,"soft":"x","later":1}}"#);
        let strange: Kept = strange.unwrap();
        strange.go_on(&mut read);
        assert_eq!(fields(&read), fields(&after));
    }

    #[test]
    fn only_what_differs_is_kept() {
        let before = CompactionSettings::new(200_000);
        let mut after = before.clone();
        after.mode = Mode::Off;
        assert_eq!(
            Value::Object(difference(&before, &after)),
            json!({ "mode": "off" })
        );
    }
}
