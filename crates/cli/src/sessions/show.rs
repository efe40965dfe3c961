//! `throughline sessions show`.

use serde::Serialize;
use throughline::EventRecord;
use throughline::store::{EventRow, Loaded, MemoryInfo, Store, StoredMessage, UsageSum};
use throughline_transcript::catalogue::Money;
use throughline_transcript::message::{Content, Message};

use super::{Entry, archive};
use crate::arguments::sessions as arguments;
use crate::error::{Failure, Kind};
use crate::output::Console;
use crate::spending::{self, Spending};
use crate::terminal;
use crate::{storage, words};

/// How many of the last events are shown, unless all are asked for.
const EVENTS_SHOWN: usize = 8;

const WORDS_CHARACTERS: usize = 60;

pub(super) async fn run(
    arguments: &arguments::Show,
    store: &dyn Store,
    console: &Console,
) -> Result<(), Failure> {
    let session = storage::find(store, &arguments.id).await?;
    if let Some(number) = arguments.message {
        let index = number
            .checked_sub(1)
            .filter(|index| *index < session.message_count);
        let index = index.ok_or_else(|| {
            let count = usize::try_from(session.message_count).unwrap_or(usize::MAX);
            Failure::new(
                Kind::Arguments,
                format!(
                    "there is no message {number}; the session has {}",
                    words::counted(count, "message")
                ),
            )
            .hint("they are counted from 1; --messages lists them")
        })?;
        let message = store.message(&session.id, index).await;
        let message = message.map_err(storage::failure)?;
        let text = String::from_utf8_lossy(&message.original).into_owned();
        // Programs get what was received, byte for byte; a terminal must not interpret it.
        return console.print(&format!("{}\n", terminal::harmless(&text)));
    }
    let loaded = store.load(&session.id).await.map_err(storage::failure)?;
    let messages = match arguments.messages || arguments.json {
        true => archive::messages(&session, store).await?,
        false => Vec::new(),
    };
    let shown = SessionReport {
        entry: Entry::of(&session, store).await?,
        versions: storage::all(|page| store.memories(&session.id, page)).await?,
        events: storage::all(|page| store.events(&session.id, page)).await?,
        messages,
        loaded,
    };
    if arguments.json {
        return console.print_json(&Report::of(&shown));
    }
    console.print(&terminal::harmless(&shown.text(arguments, console)))?;
    match shown.memory() {
        Some(memory) => console.print_markdown(&format!("\n{memory}")),
        None => Ok(()),
    }
}

/// Everything that is known about a session.
struct SessionReport {
    entry: Entry,
    loaded: Loaded,
    versions: Vec<MemoryInfo>,
    events: Vec<EventRow>,
    messages: Vec<StoredMessage>,
}

impl SessionReport {
    fn text(&self, arguments: &arguments::Show, console: &Console) -> String {
        let session = &self.loaded.session;
        let minute = |at_ms| words::minute(at_ms).unwrap_or_default();
        let mut text = format!("{}\n", console.heading(session.id.as_str()));
        let mut line = |name: &str, value: String| text.push_str(&format!("  {name:10}{value}\n"));
        line("title", self.entry.title.clone());
        line("model", format!("{} ({})", session.model, session.wire));
        line("begun", format!("{} UTC", minute(session.created_ms)));
        line("changed", format!("{} UTC", minute(session.updated_ms)));
        if let Some(fork) = &session.parent {
            let from = format!("{} at message {}", fork.session, fork.message_count);
            line("fork of", from);
        }
        let tokens = words::number(session.tokens);
        let count = usize::try_from(session.message_count).unwrap_or(usize::MAX);
        line(
            "messages",
            format!(
                "{}, about {tokens} tokens",
                words::counted(count, "message")
            ),
        );
        line("memory", self.covered());

        text.push_str(&format!("\n{}\n", console.heading("Costs")));
        text.push_str(&self.costs(console));
        if !self.versions.is_empty() {
            text.push_str(&format!("\n{}\n", console.heading("Memory versions")));
            text.push_str(&self.version_table(console));
        }
        if !self.events.is_empty() {
            text.push_str(&format!("\n{}\n", console.heading("Events")));
            text.push_str(&self.event_table(arguments.events, console));
        }
        if arguments.messages {
            text.push_str(&format!("\n{}\n", console.heading("Messages")));
            text.push_str(&self.message_table(console));
        }
        text
    }

    fn covered(&self) -> String {
        let version = self.loaded.memory.as_ref();
        match (version, &self.loaded.adoption) {
            (Some(memory), Some(adoption)) => format!(
                "version {} represents the first {} (epoch {})",
                memory.version,
                words::counted(
                    usize::try_from(memory.covered_count).unwrap_or(usize::MAX),
                    "message"
                ),
                adoption.epoch
            ),
            _ => "none in use".to_owned(),
        }
    }

    /// The memory in use, or the newest one.
    fn memory(&self) -> Option<&str> {
        let row = self.loaded.memory.as_ref();
        let row = row.or(self.loaded.newer_memory.as_ref())?;
        Some(&row.markdown)
    }

    fn costs(&self, console: &Console) -> String {
        let usage = &self.loaded.usage;
        let spending = |name, sum: &UsageSum| Spending {
            name,
            calls: sum.calls,
            uncached: sum.uncached,
            written: sum.cache_write.saturating_add(sum.cache_write_long),
            cached: sum.cache_read,
            output: sum.output,
            cost: dollars(sum),
        };
        let rows = [
            spending("conversation", &usage.main),
            spending("memories", &usage.update),
        ];
        let columns = console.is_stdout_terminal.then(terminal::width);
        spending::text(&rows, columns, console)
    }

    fn version_table(&self, console: &Console) -> String {
        let rows = self
            .versions
            .iter()
            .map(|version| {
                vec![
                    version.version.to_string(),
                    words::number(version.covered_count),
                    words::number(version.tokens),
                    version.origin.clone(),
                    words::minute(version.created_ms).unwrap_or_default(),
                ]
            })
            .collect();
        console.table(&["version", "covers", "tokens", "made by", "at"], rows)
    }

    fn event_table(&self, is_all: bool, console: &Console) -> String {
        let skipped = match is_all {
            true => 0,
            false => self.events.len().saturating_sub(EVENTS_SHOWN),
        };
        let rows = self
            .events
            .iter()
            .skip(skipped)
            .map(|event| {
                let mut row = vec![
                    words::minute(event.at_ms).unwrap_or_default(),
                    event.kind.clone(),
                ];
                if is_all {
                    row.push(EventRecord::words(event));
                }
                row
            })
            .collect();
        let header = ["at", "what", "in words"];
        let mut text = console.table(&header[..if is_all { 3 } else { 2 }], rows);
        if skipped > 0 {
            text.push_str(&format!(
                "and {} before; --events shows all\n",
                words::number(skipped as u64)
            ));
        }
        text
    }

    fn message_table(&self, console: &Console) -> String {
        let rows = self
            .messages
            .iter()
            .map(|stored| {
                let message = archive::message(stored);
                vec![
                    (stored.position + 1).to_string(),
                    stored.role.clone(),
                    stored.at_ms.and_then(words::minute).unwrap_or_default(),
                    words::number(stored.tokens),
                    message.as_ref().map(first_words).unwrap_or_default(),
                ]
            })
            .collect();
        console.table(&["no", "role", "at", "tokens", "begins"], rows)
    }
}

fn dollars(sum: &UsageSum) -> String {
    let cost = Money::from_nano_dollars(u64::try_from(sum.cost_nanodollars).unwrap_or(0));
    match (sum.calls, sum.unpriced_calls) {
        (calls, unpriced) if calls > 0 && calls == unpriced => "unknown".to_owned(),
        (_, 0) => format!("${:.4}", cost.dollars()),
        (_, _) => format!("over ${:.4}", cost.dollars()),
    }
}

/// What a message begins with, or what it is.
fn first_words(message: &Message) -> String {
    let said = message.texts().find(|text| !text.is_blank());
    if let Some(text) = said {
        return words::shortened(&text.prefix(WORDS_CHARACTERS * 4), WORDS_CHARACTERS);
    }
    let kinds: Vec<String> = message
        .blocks
        .iter()
        .map(|block| match &block.content {
            Content::ToolCall(call) => format!("[calls {}]", call.name),
            Content::ToolResult(_) => "[result]".to_owned(),
            Content::Thinking { .. } => "[thinking]".to_owned(),
            _ => "[other]".to_owned(),
        })
        .collect();
    words::shortened(&kinds.join(" "), WORDS_CHARACTERS)
}

/// The JSON of a session. Messages are counted from 0; costs are US dollars.
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    #[serde(flatten)]
    entry: &'a Entry,
    epoch: u64,
    costs: Costs,
    memory: Option<&'a str>,
    versions: Vec<Version<'a>>,
    events: Vec<Event<'a>>,
    messages: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Costs {
    conversation: CostReport,
    memories: CostReport,
}

#[derive(Serialize)]
struct CostReport {
    calls: u64,
    uncached: u64,
    cache_write: u64,
    cache_read: u64,
    output: u64,
    cost_usd: f64,
    /// Calls whose price is not known, and not part of the cost.
    unpriced_calls: u64,
}

#[derive(Serialize)]
struct Version<'a> {
    version: u64,
    covers: u64,
    tokens: u32,
    origin: &'a str,
    at: Option<String>,
}

#[derive(Serialize)]
struct Event<'a> {
    at: Option<String>,
    kind: &'a str,
    numbers: Option<&'a serde_json::value::RawValue>,
}

#[derive(Serialize)]
struct Row<'a> {
    index: u64,
    role: &'a str,
    at: Option<String>,
    tokens: u32,
}

impl<'a> Report<'a> {
    fn of(shown: &'a SessionReport) -> Self {
        let spent = |sum: &UsageSum| CostReport {
            calls: sum.calls,
            uncached: sum.uncached,
            cache_write: sum.cache_write.saturating_add(sum.cache_write_long),
            cache_read: sum.cache_read,
            output: sum.output,
            cost_usd: Money::from_nano_dollars(u64::try_from(sum.cost_nanodollars).unwrap_or(0))
                .dollars(),
            unpriced_calls: sum.unpriced_calls,
        };
        let usage = &shown.loaded.usage;
        Self {
            schema: "throughline.session/1",
            entry: &shown.entry,
            epoch: shown
                .loaded
                .adoption
                .as_ref()
                .map_or(0, |adoption| adoption.epoch),
            costs: Costs {
                conversation: spent(&usage.main),
                memories: spent(&usage.update),
            },
            memory: shown.memory(),
            versions: shown
                .versions
                .iter()
                .map(|version| Version {
                    version: version.version,
                    covers: version.covered_count,
                    tokens: version.tokens,
                    origin: &version.origin,
                    at: words::rfc3339(version.created_ms),
                })
                .collect(),
            events: shown
                .events
                .iter()
                .map(|event| Event {
                    at: words::rfc3339(event.at_ms),
                    kind: &event.kind,
                    numbers: serde_json::from_str(&event.json).ok(),
                })
                .collect(),
            messages: shown
                .messages
                .iter()
                .map(|message| Row {
                    index: message.position,
                    role: &message.role,
                    at: message.at_ms.and_then(words::rfc3339),
                    tokens: message.tokens,
                })
                .collect(),
        }
    }
}

/// The session has no memory yet.
pub(super) fn no_memory() -> Failure {
    Failure::new(Kind::NothingToDo, "the session has no memory yet")
        .hint("one is made when the context grows, or by /compact in the chat")
}
