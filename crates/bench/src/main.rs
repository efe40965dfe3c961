//! `throughline-bench`: measurements on session files that stand outside the repository.

mod recall;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Measures what a session memory keeps of real sessions, and how fast")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Future-use recall: what the rest of a session needed, and the memory still had
    Recall(recall::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Recall(arguments) => recall::run(&arguments),
    }
}

fn messages(body: &str) -> anyhow::Result<Vec<throughline_transcript::message::Message>> {
    use throughline_transcript::json::{Kind, Raw};
    use throughline_transcript::message::*;
    let raw = Raw::parse(body)?;
    let mut out = Vec::new();
    for (key, value) in raw.object() {
        if key.decode() != "messages" {
            continue;
        }
        for message in value.array() {
            let role = if message.string_field("role").as_deref() == Some("user") {
                Role::User
            } else {
                Role::Assistant
            };
            let content = message.field("content").unwrap_or_else(|| message.clone());
            let mut blocks = Vec::new();
            if content.kind() == Kind::String {
                blocks.extend(content.as_text().map(Block::text));
            }
            for block in content.array() {
                match block.string_field("type").as_deref() {
                    Some("text") => blocks.extend(block.text_field("text").map(Block::text)),
                    Some("tool_use") => blocks.push(Block::new(Content::ToolCall(ToolCall {
                        id: block.string_field("id").unwrap_or_default().into(),
                        name: block.string_field("name").unwrap_or_default().into(),
                        input: ToolInput::Json(
                            block.field("input").unwrap_or_else(|| block.clone()),
                        ),
                        is_server_side: false,
                    }))),
                    Some("tool_result") => {
                        let inner = block.field("content");
                        let mut parts = Vec::new();
                        if let Some(inner) = inner {
                            if inner.kind() == Kind::String {
                                parts.extend(inner.as_text().map(Block::text));
                            }
                            for part in inner.array() {
                                parts.extend(part.text_field("text").map(Block::text));
                            }
                        }
                        blocks.push(Block::new(Content::ToolResult(ToolResult {
                            call_id: block.string_field("tool_use_id").unwrap_or_default().into(),
                            content: parts,
                            is_error: block.field("is_error").and_then(|value| value.as_bool()),
                            is_server_side: false,
                        })));
                    }
                    _ => {}
                }
            }
            out.push(Message::new(role, blocks));
        }
    }
    Ok(out)
}

fn extractor(body: &str) -> anyhow::Result<throughline_memory::extract::Extractor> {
    let mut extractor = throughline_memory::extract::Extractor::new();
    for message in messages(body)? {
        extractor.push(&message);
    }
    Ok(extractor)
}

fn count(text: &str) -> usize {
    static TOKENIZER: std::sync::OnceLock<toktok::Tokenizer> = std::sync::OnceLock::new();
    TOKENIZER
        .get_or_init(|| toktok::Tokenizer::builtin("cl100k_base").expect("embedded"))
        .count(text.as_bytes())
}

fn compact(body: &str, budget: usize) -> anyhow::Result<String> {
    let limit = throughline_memory::extract::Limit {
        tokens: budget,
        count: &count,
    };
    Ok(throughline_memory::render::markdown::render(
        &extractor(body)?.memory(&limit),
    ))
}
