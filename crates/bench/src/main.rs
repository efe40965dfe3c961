//! `throughline-bench`: measurements on session files outside the repository.
#![expect(clippy::print_stdout, reason = "a program that prints tables")]

mod chats;
mod recall;
mod speed;

use clap::{Parser, Subcommand};
use throughline_formats::read::read;
use throughline_formats::source::SourceText;
use throughline_memory::compact::Options;
use throughline_memory::extract::Extractor;
use throughline_memory::redact::Redactor;
use throughline_transcript::tokens::Counter;

#[derive(Parser)]
#[command(about = "Measures what a session memory keeps of real sessions, and how fast")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// What a memory keeps of long chats without tools, written from scripts
    Chats(chats::Arguments),
    /// Future-use recall: what the rest of a session needed, and the memory still had
    Recall(recall::Arguments),
    /// How fast session files become memories
    Speed(speed::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Chats(arguments) => chats::run(&arguments),
        Command::Recall(arguments) => recall::run(&arguments),
        Command::Speed(arguments) => speed::run(&arguments),
    }
}

/// The extractor after all messages of a request body in the Anthropic form.
fn extractor(body: &str) -> anyhow::Result<Extractor<'static>> {
    let source = read(&SourceText::from_text(body), Some("anthropic"))?;
    let mut extractor = Extractor::new().with_redactor(Redactor::embedded());
    for message in &source.conversations[0].messages {
        extractor.push(message);
    }
    Ok(extractor)
}

fn count(text: &str) -> usize {
    Counter::reference().text(text)
}

fn compact(body: &str, budget: usize) -> anyhow::Result<String> {
    let source = read(&SourceText::from_text(body), Some("anthropic"))?;
    let messages = &source.conversations[0].messages;
    Ok(throughline_memory::compact::compact(messages, &Options::new(budget, &count))?.text)
}
