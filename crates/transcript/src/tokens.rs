//! How many tokens a text, a block, a message or a conversation takes.
//!
//! [`Counter::reference`] counts in `cl100k_base`, exactly: the unit of budgets when no model is named.
//! [`Counter::for_model`] counts as the model does: exactly for OpenAI's encodings, by an estimate that errs high for
//! Claude, whose tokenizers are not public, and for models with other tokenizers.
//!
//! What is not text is not counted as text: an image costs a flat allowance whatever the length of its base64.
//!
//! ```
//! use throughline_transcript::tokens::Counter;
//!
//! assert_eq!(Counter::reference().text("hello world"), 2);
//! ```

use std::sync::OnceLock;

use toktok::Tokenizer;

use crate::catalogue::{Model, TokenizerFamily};

/// Counts tokens the way one tokenizer family does. Cheap to clone.
#[derive(Clone, Copy)]
pub struct Counter {
    family: TokenizerFamily,
    exact: Option<&'static Tokenizer>,
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
        Self { family, exact }
    }

    /// Tokens of `text`. Special tokens in it (`<|endoftext|>`) are counted as the text that they are.
    #[must_use]
    pub fn text(&self, text: &str) -> usize {
        match self.exact.or_else(o200k) {
            Some(tokenizer) => scaled(exact(tokenizer, text), self.permille()),
            None => text.len().div_ceil(3),
        }
    }

    /// Thousandths of `o200k_base` tokens that a family takes for the same text.
    fn permille(&self) -> usize {
        match self.family {
            TokenizerFamily::Cl100k | TokenizerFamily::O200k => 1000,
            TokenizerFamily::Other => 1150,
            TokenizerFamily::Claude1 => 1270,
            TokenizerFamily::Claude2 => 1570,
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

fn scaled(tokens: usize, permille: usize) -> usize {
    tokens.saturating_mul(permille).div_ceil(1000)
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
