//! How close token estimates come: a table over files, against exact counts of `o200k_base`.
//!
//! `cargo run --release -p throughline-transcript --example token_accuracy -- FILE...`
//!
//! JSON and JSONL files are taken apart into their strings; other files are taken whole. For each kind of text the table
//! says how far the estimate in `o200k_base` tokens is from the exact count: over all texts together, and per text of at
//! least 200 tokens (5th, 50th and 95th percentile). Then it says how fast counting is.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;
use std::time::Instant;

use throughline_transcript::catalogue::TokenizerFamily;
use throughline_transcript::json::{Kind, Raw};
use throughline_transcript::tokens::Counter;

#[derive(Default)]
struct Row {
    texts: usize,
    bytes: usize,
    exact: usize,
    estimated: usize,
    errors: Vec<f64>,
}

#[expect(clippy::disallowed_methods, reason = "a program, not the library")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut texts: Vec<(&'static str, String)> = Vec::new();
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if path.ends_with(".json") || path.ends_with(".jsonl") {
            let mut is_json = false;
            for line in if path.ends_with(".json") {
                vec![text.as_str()]
            } else {
                text.lines().collect()
            } {
                if let Ok(raw) = Raw::parse(line) {
                    is_json = true;
                    texts.push(("raw JSON", line.to_owned()));
                    strings(&raw, &mut texts);
                }
            }
            if is_json {
                continue;
            }
        }
        texts.push((kind(&text), text));
    }

    let exact = Counter::of_family(TokenizerFamily::O200k);
    let estimate = exact.estimating();
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for (kind, text) in &texts {
        let row = rows.entry(kind).or_default();
        let (counted, estimated) = (exact.text(text), estimate.text(text));
        row.texts += 1;
        row.bytes += text.len();
        row.exact += counted;
        row.estimated += estimated;
        if counted >= 200 {
            row.errors.push(estimated as f64 / counted as f64 - 1.0);
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "| kind | texts | MB | bytes per token | all together | p5 | p50 | p95 |"
    )?;
    writeln!(out, "| --- | --- | --- | --- | --- | --- | --- | --- |")?;
    for (kind, mut row) in rows {
        row.errors.sort_by(f64::total_cmp);
        let percentile = |share: f64| {
            let at = (row.errors.len() as f64 * share) as usize;
            row.errors
                .get(at.min(row.errors.len().saturating_sub(1)))
                .map_or_else(String::new, |error| format!("{:+.1} %", error * 100.0))
        };
        writeln!(
            out,
            "| {kind} | {} | {:.1} | {:.2} | {:+.2} % | {} | {} | {} |",
            row.texts,
            row.bytes as f64 / 1e6,
            row.bytes as f64 / row.exact as f64,
            (row.estimated as f64 / row.exact as f64 - 1.0) * 100.0,
            percentile(0.05),
            percentile(0.5),
            percentile(0.95),
        )?;
    }
    writeln!(out)?;
    let bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
    for (name, counter) in [("exact", exact), ("estimate", estimate)] {
        let start = Instant::now();
        let tokens: usize = texts.iter().map(|(_, text)| counter.text(text)).sum();
        let seconds = start.elapsed().as_secs_f64();
        writeln!(
            out,
            "{name}: {tokens} tokens, {:.0} MB/s",
            bytes as f64 / 1e6 / seconds
        )?;
    }
    Ok(())
}

/// All strings of a JSON value, with their kind.
fn strings(raw: &Raw, texts: &mut Vec<(&'static str, String)>) {
    let mut open = vec![raw.clone()];
    while let Some(raw) = open.pop() {
        match raw.kind() {
            Kind::Object => open.extend(raw.object().map(|(_, value)| value)),
            Kind::Array => open.extend(raw.array()),
            Kind::String => {
                if let Some(text) = raw.as_text() {
                    let text = text.decode().into_owned();
                    texts.push((kind(&text), text));
                }
            }
            _ => {}
        }
    }
}

/// A rough sorting, only for the table.
fn kind(text: &str) -> &'static str {
    let share = |is: fn(char) -> bool| {
        text.chars().filter(|c| is(*c)).count() * 1000 / text.chars().count().max(1)
    };
    if text.len() > 200 && !text.contains(char::is_whitespace) {
        "base64, hashes"
    } else if share(|c| c > '\u{2e80}') > 100 {
        "Chinese, Japanese, Korean"
    } else if share(|c| c.is_alphabetic() && c > '\u{24f}') > 100 {
        "other scripts"
    } else if text.starts_with(['{', '[']) && share(|c| c == '"') > 20 {
        "JSON"
    } else if share(|c| "{}()[];=<>_/\\\"".contains(c)) > 50 || share(|c| c == ' ') < 80 {
        "code, logs"
    } else {
        "prose"
    }
}
