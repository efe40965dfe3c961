//! Estimates how likely the rest of the session needs a name.
//!
//! A logistic model over a few plain features of a name's use. Its weights were fitted on real sessions that were cut
//! in the middle (`throughline-bench recall --features` writes the table that they are fitted on).

use std::sync::LazyLock;

use super::identifiers::Shape;
use super::names::{Class, Name};

/// Number of features.
pub const FEATURES: usize = 58;

/// The position in a transcript: how many texts it has, and the last of each speaker, counted from 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment {
    pub(crate) texts: u32,
    pub(crate) last: [u32; 5],
}

/// ln(1 + n), from a table for the counts that are common.
fn logarithm(count: u32) -> f32 {
    static TABLE: LazyLock<[f32; 2048]> =
        LazyLock::new(|| std::array::from_fn(|count| (count as f32).ln_1p()));
    TABLE
        .get(count as usize)
        .copied()
        .unwrap_or_else(|| (count as f32).ln_1p())
}

/// The features of a name at a moment.
pub(crate) fn features(name: &Name, moment: Moment) -> [f32; FEATURES] {
    let mut out = [0.0; FEATURES];
    let texts = moment.texts;
    let total = texts.max(1) as f32;
    let log = logarithm;
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
    let weighed = 3.0 * name.counts[0] as f32
        + 2.0 * name.counts[1] as f32
        + 3.0 * name.counts[2] as f32
        + 0.3 * name.counts[3] as f32;
    out[50] = weighed.ln_1p();
    out[51] = weighed.ln_1p() * (0.3 + out[17]);
    for class in 0..3 {
        out[52 + class] = f32::from(name.last[class] > 0 && name.last[class] == moment.last[class]);
    }
    out[55] = f32::from(name.counts[0] > 0 && name.counts[3] > 0);
    out[56] = f32::from(name.counts[1] > 0 && name.counts[3] > 0);
    out[57] = log(name.counts[3]) * out[17];
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

/// The probability that `name` is needed after a moment.
pub(crate) fn need(name: &Name, moment: Moment) -> f32 {
    let sum: f32 = features(name, moment)
        .iter()
        .zip(WEIGHTS)
        .map(|(feature, weight)| feature * weight)
        .sum();
    let is_only_written = name.counts[Class::Written as usize] == name.counts.iter().sum::<u32>();
    let probability = 1.0 / (1.0 + (-(sum + INTERCEPT)).exp());
    if is_only_written { 0.0 } else { probability }
}

const INTERCEPT: f32 = -0.831;
#[rustfmt::skip]
const WEIGHTS: [f32; FEATURES] = [
    0.078, 0.211, -0.456, 0.212, 0.432, -0.847,
    1.116, 0.335, 0.607, 0.335, -0.381, -0.336,
    1.125, -2.366, -0.629, -0.450, -0.608, -1.081,
    0.117, -0.231, 0.783, -0.503, 0.365, -2.999,
    1.522, -0.678, -4.414, -1.563, 0.482, 0.589,
    0.316, -0.936, -1.451, -1.141, -0.271, -1.108,
    -0.024, -0.058, -0.179, 0.155, -0.101, -0.363,
    0.082, 0.729, 0.709, -0.190, -1.119, -0.888,
    0.528, -0.709, 0.707, 0.079, 0.579, 0.092,
    -0.412, 0.597, 0.596, 0.243,
];
