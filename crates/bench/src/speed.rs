//! How fast a session file becomes a memory, on one core.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use throughline_formats::read::read;
use throughline_formats::source::SourceText;
use throughline_memory::compact::{Options, compact};
use throughline_memory::extract::{Extractor, Limit};
use throughline_memory::redact::Redactor;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Session files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Size of the memory, in cl100k tokens
    #[arg(long, default_value_t = 4000)]
    budget: usize,
    /// How often each is done; the best counts
    #[arg(long, default_value_t = 3)]
    runs: usize,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    println!(
        "{:>8} {:>7} {:>7} {:>7} {:>7} {:>9} {:>9}  file",
        "MB", "MB/s", "read", "extract", "pack", "added ms", "messages"
    );
    for path in &arguments.files {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let megabytes = bytes.len() as f64 / 1e6;
        let mut best: Option<Figures> = None;
        for _ in 0..arguments.runs.max(1) {
            let figures = measure(bytes.clone(), arguments.budget)?;
            if best.as_ref().is_none_or(|best| figures.all < best.all) {
                best = Some(figures);
            }
        }
        let Some(best) = best else {
            bail!("nothing was measured")
        };
        let rate = |time: Duration| megabytes / time.as_secs_f64();
        println!(
            "{megabytes:8.1} {:7.1} {:7.1} {:7.1} {:7.1} {:9.2} {:9}  {}",
            rate(best.all),
            rate(best.read),
            rate(best.extract),
            rate(best.pack),
            best.added.as_secs_f64() * 1e3,
            best.messages,
            path.file_name().unwrap_or_default().to_string_lossy()
        );
    }
    Ok(())
}

struct Figures {
    all: Duration,
    read: Duration,
    extract: Duration,
    pack: Duration,
    added: Duration,
    messages: usize,
}

fn measure(bytes: Vec<u8>, budget: usize) -> anyhow::Result<Figures> {
    let start = Instant::now();
    let source = read(&SourceText::from_bytes(bytes), None)?;
    let conversation = source
        .conversations
        .iter()
        .max_by_key(|conversation| conversation.messages.len())
        .context("no conversation")?;
    let read = start.elapsed();
    let messages = &conversation.messages;
    let limit = Limit {
        tokens: budget,
        count: &crate::count,
        focus: None,
    };
    let feed = |messages| {
        let mut extractor = Extractor::new().with_redactor(Redactor::embedded());
        for message in messages {
            extractor.push(message);
        }
        extractor
    };
    let start_of_extract = Instant::now();
    let mut extractor = feed(messages.iter());
    let extract = start_of_extract.elapsed();
    let start_of_pack = Instant::now();
    let memory = extractor.memory(&limit);
    let pack = start_of_pack.elapsed();
    // The draft after one more message.
    let start_of_added = Instant::now();
    if let Some(last) = messages.last() {
        extractor.push(last);
    }
    let draft = extractor.memory(&limit);
    let added = start_of_added.elapsed();
    drop((memory, draft));
    let options = Options {
        cwd: conversation.cwd.as_deref(),
        ..Options::new(budget, &crate::count)
    };
    let start_of_all = Instant::now();
    compact(messages, &options)?;
    let all = read + start_of_all.elapsed();
    Ok(Figures {
        all,
        read,
        extract,
        pack,
        added,
        messages: messages.len(),
    })
}
