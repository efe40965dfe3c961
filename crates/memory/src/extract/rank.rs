//! How likely it is that the rest of the session needs a name.
//!
//! A logistic model over a few plain features of a name's use. Its weights were fitted on real sessions that were cut
//! in the middle (`throughline-bench features` writes the table that they are fitted on).

use super::identifiers::Shape;
use super::names::{Class, Name};

/// Number of features.
pub const FEATURES: usize = 36;

/// The features of a name after `texts` texts.
pub(crate) fn features(name: &Name, texts: u32) -> [f32; FEATURES] {
    let mut out = [0.0; FEATURES];
    let total = texts.max(1) as f32;
    let log = |count: u32| (count as f32).ln_1p();
    for class in 0..5 {
        out[class] = log(name.counts[class]);
        out[5 + class] = name.last[class] as f32 / total;
        out[10 + class] = f32::from(name.counts[class] > 0);
    }
    let last = name.last.iter().copied().max().unwrap_or(0);
    let age = texts.saturating_sub(last);
    let uses: u32 = name.counts.iter().sum();
    out[15] = log(age);
    out[16] = log(uses);
    out[17] = last as f32 / total;
    out[18] = name.first as f32 / total;
    out[19] = log(uses) * out[17];
    out[20] = (name.text.len() as f32).ln();
    out[21] = f32::from(age < 5);
    out[22] = f32::from(age < 15);
    let shape = match name.shape {
        Shape::Url => 0,
        Shape::Email => 1,
        Shape::Path => 2,
        Shape::Words => 3,
        Shape::File => 4,
        Shape::Version => 5,
        Shape::Issue => 6,
        Shape::Constant => 7,
        Shape::Flag => 8,
        Shape::Dotted => 9,
        Shape::Snake => 10,
        Shape::Camel => 11,
        Shape::Kebab => 12,
        Shape::Hash | Shape::Number => return out,
    };
    out[23 + shape] = 1.0;
    out
}

/// The probability that `name` is needed after `texts` texts.
pub(crate) fn need(name: &Name, texts: u32) -> f32 {
    let sum: f32 = features(name, texts).iter().zip(WEIGHTS).map(|(feature, weight)| feature * weight).sum();
    let uses_words_only = name.counts[Class::Written as usize] == name.counts.iter().sum::<u32>();
    let probability = 1.0 / (1.0 + (-(sum + INTERCEPT)).exp());
    if uses_words_only { 0.0 } else { probability }
}

const INTERCEPT: f32 = -5.310;
#[rustfmt::skip]
const WEIGHTS: [f32; FEATURES] = [
    -0.531, -0.412, -0.469, -0.459, -0.477, -0.806,
    1.260, 1.533, 0.809, 0.972, 1.531, 0.876,
    0.458, -1.143, -0.584, -0.496, 1.711, -1.412,
    -0.011, -0.597, 0.967, -0.757, 0.483, -1.813,
    2.219, 0.263, -3.704, -0.971, 1.235, 1.408,
    0.934, -0.353, -0.852, -0.288, 0.359, -0.441,
];
