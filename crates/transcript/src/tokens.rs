//! Counts the tokens of a text, a block, a message or a conversation.
//!
//! [`Counter::reference`] counts in `cl100k_base`, exactly: the unit of budgets when no model is named.
//! [`Counter::for_model`] counts as the model does: exactly for OpenAI's encodings, by an estimate that errs high for
//! Claude, whose tokenizers are not public, and for models with other tokenizers. [`Calibration`] corrects an estimate
//! by what the provider reports, and [`CountCache`] remembers what messages take.
//!
//! An estimate starts from `o200k_base` (from `cl100k_base` for that family itself). Short texts are split exactly; a long text is gone over once, sorted into runs
//! (words, numbers, signs, white space, other scripts), and what each run costs is added up and corrected by a sample
//! that is split exactly. Prose, code, JSON and other scripts thus each get what they take, without a guess at the kind
//! of text. A factor for the family makes the model's tokens of it; it follows from what is known: `o200k_base` gives
//! 15 to 22 % fewer tokens than Claude up to 4.6, and 27 to 40 % fewer than Claude from 4.7 on. `docs/benchmarks.md` has
//! the measured accuracy.
//!
//! Only text is counted as text: an image costs a flat allowance regardless of the length of its base64.
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
mod vocabulary;
mod weights;

use std::fmt;

pub use cache::CountCache;
pub use calibration::{Calibration, ContextMeter};
pub use content::Size;

use self::vocabulary::Vocabulary;
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
    precision: Precision,
    image_tokens: usize,
}

/// How much is split exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precision {
    /// Everything, if the family's vocabulary is known.
    Exact,
    /// Short texts and a sample of long ones.
    Sampled,
    /// Nothing.
    Scanned,
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
        Self {
            family,
            precision: Precision::Exact,
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
    /// For an exact family this is about 100 MB/s (a third of that for the first 4 MiB of a process, see
    /// `vocabulary`), for an estimate several times that.
    #[must_use]
    pub fn text(&self, text: &str) -> usize {
        let family = self.family;
        match self.precision {
            Precision::Scanned => tokens_of(factor(family) * scanned(text).millitokens / 1000),
            Precision::Exact if has_vocabulary(family) => vocabulary(family)
                .count(text)
                .unwrap_or_else(|| estimate(family, text)),
            Precision::Exact | Precision::Sampled => estimate(family, text),
        }
    }

    /// The same family by the faster estimate: within a few percent of the exact count, at several times its speed.
    #[must_use]
    pub fn estimating(self) -> Self {
        Self {
            precision: match self.precision {
                Precision::Exact => Precision::Sampled,
                coarser => coarser,
            },
            ..self
        }
    }

    /// The same family by an estimate that needs no vocabulary, which takes tens of megabytes of memory and a moment to
    /// make: for many conversations at a time whose providers report what was used, so that [`Calibration`] corrects it.
    /// Within a tenth for prose, code and JSON in Latin script; other scripts may come out at half of what they take.
    #[must_use]
    pub fn scanning(self) -> Self {
        Self {
            precision: Precision::Scanned,
            ..self
        }
    }

    /// Whether texts are counted exactly rather than estimated.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.precision == Precision::Exact && has_vocabulary(self.family)
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
            .field("precision", &self.precision)
            .field("image_tokens", &self.image_tokens)
            .finish()
    }
}

/// Tokens of a family for a thousand of the encoding that its estimate starts from.
fn factor(family: TokenizerFamily) -> u64 {
    match family {
        TokenizerFamily::Cl100k | TokenizerFamily::O200k => 1_000,
        // The truth lies between 1 / (1 - 0.15) = 1.18 and 1 / (1 - 0.22) = 1.28: in the upper half of that.
        TokenizerFamily::Claude1 => 1_270,
        // Between 1 / (1 - 0.27) = 1.37 and 1 / (1 - 0.40) = 1.67.
        TokenizerFamily::Claude2 => 1_570,
        // Vocabularies of 32,000 to 256,000 tokens.
        TokenizerFamily::Other => 1_150,
    }
}

fn estimate(family: TokenizerFamily, text: &str) -> usize {
    let factor = factor(family);
    let vocabulary = vocabulary(family);
    let tokens = if text.len() <= EXACT_BYTES_MAX {
        vocabulary.count(text).map(|tokens| factor * tokens as u64)
    } else {
        corrected(vocabulary, text, factor)
    };
    // Without a vocabulary the scan has to do.
    tokens_of(tokens.unwrap_or_else(|| factor * scanned(text).millitokens / 1000))
}

fn tokens_of(thousandths: u64) -> usize {
    usize::try_from(thousandths.div_ceil(1000)).unwrap_or(usize::MAX)
}

/// Texts up to this many bytes are split exactly before the factor is applied: there is too little in them for the
/// errors of the scan to even out, and they cost little.
const EXACT_BYTES_MAX: usize = 512;

/// Minimum sample of a longer text, bytes. At least this much of it, and at least a sixteenth, is split exactly to
/// correct the scan of the whole.
const SAMPLE_BYTES_MIN: usize = 512;

/// Length of one piece of the sample, bytes.
const PIECE_BYTES: usize = 256;

/// A text with more than one non-Latin character per this number of bytes is split exactly: the tokens of such
/// characters depend on the words, so a sample says little about the rest.
const OTHER_SCRIPT_SHARE: u64 = 20;

/// Tokens of a long text in thousandths: those of the scan, times what pieces spread over the text really take against
/// their scan. So a language, a kind of code or a sort of noise that the weights do not know does no harm.
fn corrected(vocabulary: &Vocabulary, text: &str, factor: u64) -> Option<u64> {
    let whole = scanned(text);
    if whole.other_script_characters * OTHER_SCRIPT_SHARE > text.len() as u64 {
        return Some(factor * vocabulary.count(text)? as u64);
    }
    let pieces = (text.len() / 16)
        .max(SAMPLE_BYTES_MIN)
        .div_ceil(PIECE_BYTES);
    let step = text.len() / pieces;
    let (mut split, mut estimated) = (0u64, 0u64);
    for piece in 0..pieces {
        let start = text.ceil_char_boundary(piece * step + (step - step.min(PIECE_BYTES)) / 2);
        let end = text.floor_char_boundary(start + PIECE_BYTES);
        let piece = text.get(start..end).unwrap_or_default();
        split += vocabulary.count(piece)? as u64;
        estimated += scanned(piece).millitokens;
    }
    let thousandths = u128::from(whole.millitokens) * u128::from(factor) * u128::from(split);
    Some(u64::try_from(thousandths / u128::from(estimated.max(1))).unwrap_or(u64::MAX))
}

/// The estimate of a text from the scan alone.
#[derive(Default)]
struct ScanSums {
    /// Thousandths of an `o200k_base` token.
    millitokens: u64,
    /// Characters of scripts other than Latin.
    other_script_characters: u64,
}

impl scan::Tally for ScanSums {
    fn add(&mut self, kind: usize, count: usize) {
        let cost = weights::MILLITOKENS.get(kind).copied().unwrap_or(0);
        self.millitokens += u64::from(cost) * count as u64;
        if scan::is_other_script_character(kind) {
            self.other_script_characters += count as u64;
        }
    }
}

fn scanned(text: &str) -> ScanSums {
    let mut sums = ScanSums::default();
    scan::scan(text, &mut sums);
    sums
}

/// Whether the vocabulary of the family is public.
fn has_vocabulary(family: TokenizerFamily) -> bool {
    matches!(family, TokenizerFamily::Cl100k | TokenizerFamily::O200k)
}

/// The vocabulary from which the family is counted.
fn vocabulary(family: TokenizerFamily) -> &'static Vocabulary {
    match family {
        TokenizerFamily::Cl100k => &vocabulary::CL100K,
        TokenizerFamily::O200k
        | TokenizerFamily::Claude1
        | TokenizerFamily::Claude2
        | TokenizerFamily::Other => &vocabulary::O200K,
    }
}

#[cfg(test)]
mod tests;
