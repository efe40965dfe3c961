//! When and how a session is compacted. Every setting can change while the session runs.

use throughline_transcript::catalogue::Model;
use throughline_transcript::cut::TailBegins;
use throughline_transcript::tokens::Counter;

use crate::budget::Mark;

/// How a session is compacted.
#[derive(Clone, Debug)]
pub struct CompactionSettings {
    /// Whether the session is compacted, and whether in the background.
    pub mode: Mode,
    /// The model's context window, tokens.
    pub window: u64,
    /// Tokens reserved for the answer.
    pub output_reserve: u64,
    /// The largest request body, bytes. Images reach this limit before the token limit. Anthropic's is 32 MB.
    pub body_bytes_max: Option<u64>,
    /// The mark at which memories are built in the background.
    pub soft: Mark,
    /// The mark at which a memory must be swapped in.
    pub hard: Mark,
    /// The mark at which traditional compaction begins.
    pub threshold: Mark,
    /// Growth after which the memory is updated.
    pub step: UpdateStep,
    /// Other reasons for a swap.
    pub triggers: Triggers,
    /// How much of the end of the conversation stays verbatim, where legal cuts allow.
    pub keep: Mark,
    /// The largest memory, tokens.
    pub memory_tokens_max: u64,
    /// The least amount by which a swap must shrink the context.
    pub gain_min: Mark,
    /// Whether a model makes memories, or the extractive compactor alone. [`Economy::spending`] limits how often.
    pub compactor: CompactorChoice,
    /// What happens at the hard mark without a memory by the model.
    pub fallback: Fallback,
    /// How long a request waits for a model in instant mode, milliseconds. The default is 0: it does not wait.
    pub model_wait_ms_max: u64,
    /// How long a request waits for a model in traditional mode, milliseconds.
    pub traditional_wait_ms_max: u64,
    /// Failures in a row after which the model rests.
    pub failures_max: u32,
    /// How long it rests, milliseconds.
    pub failure_rest_ms: u64,
    /// Prices, and whether an early swap pays.
    pub economy: Economy,
    /// Whether the model's reasoning signatures are bound to everything before them. If so, a swap removes earlier
    /// reasoning from the requests.
    pub binds_thinking: bool,
    /// The role that the kept messages may begin with.
    pub tail_begins: TailBegins,
    /// Estimates tokens until the provider reports its count.
    pub counter: Counter,
}

/// Whether a session is compacted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Only when a compaction is requested. A memory that is in use stays.
    Off,
    /// At the threshold, the next request waits while the memory is made.
    Traditional,
    /// The memory is made in the background and swapped in without a wait.
    #[default]
    Instant,
}

/// Who makes the memories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompactorChoice {
    /// Code alone.
    #[default]
    Extractive,
    /// A model, starting from a draft by code.
    Model,
}

/// What is swapped in if the model's memory is missing or refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// The draft by code, merged into the last memory.
    #[default]
    Draft,
    /// Nothing: the history stays.
    KeepHistory,
}

/// Growth after which code updates the memory; the first limit that is reached counts. For updates by a model see
/// [`Spending`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateStep {
    /// Tokens. `None`: 10,000 or a twentieth of the window, whichever is more, and at most a tenth.
    pub tokens: Option<u64>,
    /// Tool calls.
    pub tool_calls: Option<u32>,
    /// Whether half of the tokens suffice right after an answer to the user.
    pub at_breaks: bool,
}

/// Reasons for a swap besides the size of the context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Triggers {
    /// Turns since the last swap. `None`: 40 in traditional mode, never in instant mode.
    pub turns: Option<u32>,
    /// Tool calls since the last swap.
    pub tool_calls: Option<u32>,
    /// The end of a phase of work, as [`crate::PhaseDetector`] finds it or the caller reports it.
    pub phases: bool,
}

/// Whether a swap before the hard mark pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Economy {
    /// When to swap early.
    pub rule: EconomyRule,
    /// How long the provider's cache keeps a prefix after its last use, milliseconds.
    pub cache_ms: u64,
    /// Price of a cached token, in thousandths of an uncached one.
    pub read_permille: u32,
    /// Price of a token that is written to the cache, in thousandths of an uncached one.
    pub write_permille: u32,
    /// Price of a token that the model writes, in thousandths of an uncached one that it reads.
    pub output_permille: u32,
    /// What memories by a model may cost.
    pub spending: Spending,
}

/// What memories by a model may cost. A memory that is requested, or that a request waits for, is always made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spending {
    /// No limit: the model is asked after each update by code, so its memory is always ready.
    Freely,
    /// A share of what swaps save: the savings so far, and those expected of the next swap. The model is asked once for
    /// each swap, as late as it can be ready in time, and again only if much has been added since; code adds the
    /// messages after its memory. If the savings are too small, the memory by code is swapped in.
    FromSavings {
        /// The share, in thousandths.
        permille: u32,
    },
}

/// When the scheduler may swap before the hard mark. Never below the soft mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EconomyRule {
    /// At the hard mark only.
    HardMarkOnly,
    /// When the cache is cold, so that the prefix is paid in full anyway.
    #[default]
    WhenCold,
    /// Also when the expected savings exceed the price of the new prefix times a margin. As many requests are expected
    /// as there were since the last swap.
    WhenItPays {
        /// In thousandths. 1000: as soon as it pays at all.
        margin_permille: u32,
    },
}

impl CompactionSettings {
    /// The defaults for a window of this many tokens.
    #[must_use]
    pub fn new(window: u64) -> Self {
        Self {
            mode: Mode::Instant,
            window,
            output_reserve: (window / 10).min(32_000),
            body_bytes_max: None,
            soft: Mark::Permille(500),
            hard: Mark::Permille(800),
            threshold: Mark::Permille(700),
            step: UpdateStep {
                tokens: None,
                tool_calls: None,
                at_breaks: true,
            },
            triggers: Triggers::default(),
            keep: Mark::Permille(100),
            memory_tokens_max: (window / 20).clamp(400, 6_000),
            gain_min: Mark::Permille(100),
            compactor: CompactorChoice::Extractive,
            fallback: Fallback::Draft,
            model_wait_ms_max: 0,
            traditional_wait_ms_max: 3 * 60 * 1000,
            failures_max: 3,
            failure_rest_ms: 10 * 60 * 1000,
            economy: Economy {
                rule: EconomyRule::WhenCold,
                cache_ms: 5 * 60 * 1000,
                read_permille: 100,
                write_permille: 1_250,
                output_permille: 5_000,
                spending: Spending::FromSavings { permille: 500 },
            },
            binds_thinking: false,
            tail_begins: TailBegins::Anyhow,
            counter: Counter::reference(),
        }
    }

    /// The defaults for a model of the catalogue.
    #[must_use]
    pub fn for_model(model: &Model) -> Self {
        let mut settings = Self::new(model.window);
        settings.counter = Counter::for_model(model);
        settings.binds_thinking = model.abilities.binds_thinking_to_prefix == Some(true);
        if let Some(limit) = model.output_max {
            settings.output_reserve = settings.output_reserve.min(limit);
        }
        if let Some(prices) = &model.prices {
            let permille = |price: throughline_transcript::catalogue::Money| {
                let (price, input) = (price.nano_dollars(), prices.input.nano_dollars());
                u32::try_from(
                    price
                        .saturating_mul(1000)
                        .checked_div(input)
                        .unwrap_or(1000),
                )
                .unwrap_or(u32::MAX)
            };
            settings.economy.read_permille = permille(prices.cache_read);
            settings.economy.write_permille = permille(prices.cache_write);
            settings.economy.output_permille = permille(prices.output);
        }
        if let Some(seconds) = model.cache.lifetimes_s.iter().min() {
            settings.economy.cache_ms = u64::from(*seconds) * 1000;
        }
        settings
    }

    /// The settings with another window, and with answers of at most `answer` tokens. Everything that follows from the
    /// two is set here: the reserve for the answer, never more than half of the window, and the largest memory.
    #[must_use]
    pub fn with_window(self, window: u64, answer: Option<u64>) -> Self {
        let of_window = Self::new(window);
        let reserve = answer.unwrap_or(of_window.output_reserve.min(self.output_reserve));
        Self {
            window,
            output_reserve: reserve.min(window / 2),
            memory_tokens_max: of_window.memory_tokens_max,
            ..self
        }
    }

    /// Growth after which a memory is updated, tokens.
    #[must_use]
    pub fn step_tokens(&self) -> u64 {
        self.step.tokens.unwrap_or_else(|| {
            // A small window never grows by 10,000 tokens.
            10_000.max(self.window / 20).min(self.window / 10).max(1)
        })
    }

    /// Turns after which a swap is due.
    #[must_use]
    pub fn turns_max(&self) -> Option<u32> {
        match self.mode {
            Mode::Traditional => Some(self.triggers.turns.unwrap_or(40)),
            Mode::Instant | Mode::Off => self.triggers.turns,
        }
    }
}
