//! How many tokens a text, a block, a message or a conversation takes.
//!
//! [`Counter::reference`] counts in `cl100k_base`, exactly: the unit of budgets when no model is named.
//! [`Counter::for_model`] counts as the model does: exactly for OpenAI's encodings, by an estimate that errs high for
//! Claude, whose tokenizers are not public, and for models with other tokenizers. [`Calibration`] corrects an estimate
//! by what the provider reports, and [`CountCache`] remembers what messages take.
//!
//! The estimate goes once over the text, sorts it into runs (words, numbers, signs, white space, other scripts) and
//! adds up what each costs in `o200k_base`; a factor for the family makes the model's tokens of it. The factors follow
//! from what is known: `o200k_base` gives 15 to 22 % fewer tokens than Claude up to 4.6, and 27 to 40 % fewer than
//! Claude from 4.7 on. How close it comes stands in `docs/benchmarks/tokens.md`.
//!
//! What is not text is not counted as text: an image costs a flat allowance whatever the length of its base64.
//!
//! ```
//! use throughline_transcript::tokens::Counter;
//!
//! assert_eq!(Counter::reference().text("hello world"), 2);
//! ```

mod cache;
mod calibration;
mod content;
mod scan;
mod weights;

use std::fmt;
use std::sync::OnceLock;

use toktok::Tokenizer;

pub use cache::CountCache;
pub use calibration::{Calibration, ContextMeter};
pub use content::Size;

use crate::catalogue::{Model, TokenizerFamily};

/// What an image is taken to cost, tokens, unless [`Counter::with_image_tokens`] says otherwise.
///
/// Providers charge by pixels: Claude about one token for 750 pixels and at most 1,600 for an image of the largest size
/// that models up to 4.6 look at. A session file does not tell the pixels, so the most is assumed.
pub const IMAGE_TOKENS: usize = 1_600;

/// Counts tokens the way one tokenizer family does. Cheap to copy.
#[derive(Clone, Copy)]
pub struct Counter {
    family: TokenizerFamily,
    exact: Option<&'static Tokenizer>,
    image_tokens: usize,
}

impl Counter {
    /// Counts in `cl100k_base`.
    #[must_use]
    pub fn reference() -> Self {
        Self::of_family(TokenizerFamily::Cl100k)
    }

    /// Counts as `model` does.
    #[must_use]
    pub fn for_model(model: &Model) -> Self {
        Self::of_family(model.tokenizer)
    }

    /// Counts as the models of `family` do.
    #[must_use]
    pub fn of_family(family: TokenizerFamily) -> Self {
        let exact = match family {
            TokenizerFamily::Cl100k => cl100k(),
            TokenizerFamily::O200k => o200k(),
            TokenizerFamily::Claude1 | TokenizerFamily::Claude2 | TokenizerFamily::Other => None,
        };
        Self {
            family,
            exact,
            image_tokens: IMAGE_TOKENS,
        }
    }

    /// The same, with another allowance for an image, in tokens.
    #[must_use]
    pub fn with_image_tokens(self, image_tokens: usize) -> Self {
        Self {
            image_tokens,
            ..self
        }
    }

    /// Tokens of `text`. Special tokens in it (`<|endoftext|>`) are counted as the text that they are.
    ///
    /// For an exact family this is about 100 MB/s, for an estimate several times that; neither allocates for texts
    /// below a megabyte.
    #[must_use]
    pub fn text(&self, text: &str) -> usize {
        match self.exact {
            Some(tokenizer) => exact(tokenizer, text),
            None => estimate(self.family, text),
        }
    }

    /// Whether texts are counted exactly rather than estimated.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.exact.is_some()
    }

    /// The family whose tokens are counted.
    #[must_use]
    pub fn family(&self) -> TokenizerFamily {
        self.family
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter")
            .field("family", &self.family)
            .field("is_exact", &self.is_exact())
            .field("image_tokens", &self.image_tokens)
            .finish()
    }
}

/// Texts up to this many bytes are counted in a buffer that the thread keeps.
const KEPT_BUFFER_TEXT_BYTES_MAX: usize = 1 << 20;

fn exact(tokenizer: &Tokenizer, text: &str) -> usize {
    if text.len() <= KEPT_BUFFER_TEXT_BYTES_MAX {
        // Unlike `count`, this does not allocate.
        tokenizer.truncate(text.as_bytes(), usize::MAX).total_tokens
    } else {
        tokenizer.count(text.as_bytes())
    }
}

/// Thousandths of an `o200k_base` token that a token of the same text is worth in a family.
struct Factor {
    /// Latin letters, digits, signs: prose, code, JSON.
    latin: u64,
    /// Other scripts.
    other_scripts: u64,
}

fn factor(family: TokenizerFamily) -> Factor {
    let (latin, other_scripts) = match family {
        TokenizerFamily::Cl100k | TokenizerFamily::O200k => (1000, 1000),
        // The truth lies between 1 / (1 - 0.15) = 1.18 and 1 / (1 - 0.22) = 1.28: upper half of that.
        TokenizerFamily::Claude1 => (1260, 1260),
        // Between 1 / (1 - 0.27) = 1.37 and 1 / (1 - 0.40) = 1.67.
        TokenizerFamily::Claude2 => (1570, 1570),
        // Vocabularies of 32,000 to 256,000 tokens; the small ones split other scripts much further.
        TokenizerFamily::Other => (1150, 1400),
    };
    Factor {
        latin,
        other_scripts,
    }
}

fn estimate(family: TokenizerFamily, text: &str) -> usize {
    #[derive(Default)]
    struct Sums {
        latin: u64,
        other_scripts: u64,
    }
    impl scan::Tally for Sums {
        fn add(&mut self, kind: usize, count: usize) {
            let Some(millitokens) = weights::MILLITOKENS.get(kind) else {
                return;
            };
            let cost = u64::from(*millitokens) * count as u64;
            if kind < scan::FIRST_KIND_OF_OTHER_SCRIPTS {
                self.latin += cost;
            } else {
                self.other_scripts += cost;
            }
        }
    }
    let mut sums = Sums::default();
    scan::scan(text, &mut sums);
    let factor = factor(family);
    let tokens =
        (sums.latin * factor.latin + sums.other_scripts * factor.other_scripts).div_ceil(1_000_000);
    usize::try_from(tokens).unwrap_or(usize::MAX)
}

fn cl100k() -> Option<&'static Tokenizer> {
    static TOKENIZER: OnceLock<Option<Tokenizer>> = OnceLock::new();
    TOKENIZER
        .get_or_init(|| Tokenizer::builtin("cl100k_base").ok())
        .as_ref()
}

fn o200k() -> Option<&'static Tokenizer> {
    static TOKENIZER: OnceLock<Option<Tokenizer>> = OnceLock::new();
    TOKENIZER
        .get_or_init(|| Tokenizer::builtin("o200k_base").ok())
        .as_ref()
}

#[cfg(test)]
mod tests;
