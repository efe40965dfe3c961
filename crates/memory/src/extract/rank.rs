//! How likely it is that the rest of the session needs a name.
//!
//! A logistic model over a few plain features of a name's use. Its weights were fitted on real sessions that were cut
//! in the middle (`throughline-bench features` writes the table that they are fitted on).

use super::identifiers::Shape;
use super::names::{Class, Name};

/// Number of features.
pub const FEATURES: usize = 50;

/// The features of a name after `texts` texts.
pub(crate) fn features(name: &Name, texts: u32) -> [f32; FEATURES] {
    let mut out = [0.0; FEATURES];
    let total = texts.max(1) as f32;
    let log = |count: u32| (count as f32).ln_1p();
    for class in 0..5 {
        out[class] = log(name.counts[class]);
        out[5 + class] = name.last[class] as f32 / total;
        out[10 + class] = f32::from(name.counts[class] > 0);
        out[36 + class] = if name.counts[class] > 0 {
            log(texts.saturating_sub(name.last[class]))
        } else {
            0.0
        };
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
    out[41] = f32::from(name.file_reads > 0);
    out[42] = f32::from(name.file_changes > 0);
    out[43] = log(name.file_changes);
    out[44] = f32::from(name.text.starts_with("Test") || name.text.starts_with("test"));
    out[45] = total.ln();
    out[46] = f32::from(name.counts[Class::Call as usize] == uses);
    out[47] = f32::from(name.counts[Class::Result as usize] == uses);
    out[48] = f32::from(name.text.bytes().filter(|byte| *byte == b'/').count() > 1);
    out[49] = f32::from(uses == 1);
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
    let sum: f32 = features(name, texts)
        .iter()
        .zip(WEIGHTS)
        .map(|(feature, weight)| feature * weight)
        .sum();
    let uses_words_only = name.counts[Class::Written as usize] == name.counts.iter().sum::<u32>();
    let probability = 1.0 / (1.0 + (-(sum + INTERCEPT)).exp());
    if uses_words_only { 0.0 } else { probability }
}

const INTERCEPT: f32 = -1.280;
#[rustfmt::skip]
const WEIGHTS: [f32; FEATURES] = [
    -0.056, 0.495, -0.112, 0.295, 0.241, -1.294,
    1.051, 0.405, 0.599, 0.357, 1.717, 0.318,
    1.067, -1.847, -0.761, -0.422, -0.202, -1.092,
    0.077, 0.006, 0.793, -0.522, 0.408, -2.854,
    1.614, -0.628, -4.435, -1.633, 0.596, 0.636,
    0.361, -0.876, -1.396, -1.055, -0.214, -1.036,
    -0.179, -0.074, -0.134, 0.124, -0.110, -0.358,
    0.150, 0.720, 0.668, -0.185, -0.552, -1.193,
    0.527, -0.693,
];
