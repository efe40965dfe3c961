//! The parts of charts: lines, texts, round numbers.

use std::fmt::Write as _;

pub(super) fn line(out: &mut String, class: &str, x1: f64, y1: f64, x2: f64, y2: f64) {
    let _ = write!(
        out,
        r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
    );
}

pub(super) fn text(out: &mut String, class: &str, x: f64, y: f64, text: &str) {
    let _ = write!(
        out,
        r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{}</text>"#,
        escaped(text)
    );
}

/// The text with the characters of markup escaped.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Three to six round numbers from 0 to below this.
pub(super) fn steps(max: f64) -> Vec<u64> {
    let step = round_up((max / 5.0).ceil().max(1.0) as usize) as u64;
    (0..)
        .map(|n| n * step)
        .take_while(|n| (*n as f64) < max)
        .collect()
}

/// The next of 1, 2, 5, 10, 20, ...
pub(super) fn round_up(number: usize) -> usize {
    let mut power = 1;
    loop {
        for factor in [1, 2, 5] {
            if factor * power >= number {
                return factor * power;
            }
        }
        power *= 10;
    }
}

/// `12.3k`.
pub(crate) fn short(tokens: u64) -> String {
    let scaled = |unit: f64, name: &str| {
        let text = format!("{:.1}", tokens as f64 / unit);
        let text = text.strip_suffix(".0").unwrap_or(&text);
        format!("{text}{name}")
    };
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..999_950 => scaled(1e3, "k"),
        999_950..999_950_000 => scaled(1e6, "M"),
        _ => scaled(1e9, "G"),
    }
}

/// Billionths of a dollar as dollars, to the places that matter.
pub(crate) fn dollars(nanodollars: u64) -> String {
    let dollars = nanodollars as f64 / 1e9;
    match nanodollars {
        0 => "$0".to_owned(),
        1..10_000_000 => {
            let text = format!("{dollars:.4}");
            format!("${}", text.trim_end_matches('0').trim_end_matches('.'))
        }
        10_000_000..1_000_000_000 => format!("${dollars:.3}"),
        _ => format!("${dollars:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use throughline_transcript::text::grouped;

    use super::*;

    #[test]
    fn numbers_are_short() {
        for (tokens, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1k"),
            (12_345, "12.3k"),
            (999_949, "999.9k"),
            (999_950, "1M"),
            (1_250_000, "1.2M"),
        ] {
            assert_eq!(short(tokens), text);
        }
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
        for (nanos, text) in [
            (0, "$0"),
            (1_500_000, "$0.0015"),
            (12_345_678, "$0.012"),
            (1_500_000_000, "$1.50"),
        ] {
            assert_eq!(dollars(nanos), text);
        }
        assert_eq!(steps(20_000.0), [0, 5_000, 10_000, 15_000]);
    }
}
