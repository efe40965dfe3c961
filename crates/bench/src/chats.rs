//! What a memory keeps of long chats without tools: standing instructions, preferences and facts that the user states,
//! with later changes winning.

mod script;

use std::path::PathBuf;

use throughline_memory::compact::{Options, compact};
use throughline_memory::document::{Entry, Item, Memory, Status};
use throughline_memory::render::markdown;

use script::{Chat, PlantedFact, Script, Set, Size};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Languages of the chats
    #[arg(long, value_delimiter = ',', default_value = "eng,deu,fra,spa,cmn,jpn")]
    language: Vec<String>,
    /// Sizes of the memory, in cl100k tokens
    #[arg(long, value_delimiter = ',', default_value = "2000,4000")]
    budget: Vec<usize>,
    /// Chats of each kind
    #[arg(long, default_value_t = 4)]
    seeds: u64,
    /// List what is missing or out of date, of the statements that the reading is improved on
    #[arg(long)]
    missing: bool,
    /// List it of the statements that are kept back too: after that they no longer judge anything
    #[arg(long)]
    missing_held: bool,
    /// Write the memories to this folder
    #[arg(long)]
    dump: Option<PathBuf>,
}

/// Tokens of a chat: English is the language with the most to read.
fn size(language: &str) -> Size {
    let is_english = language == "eng";
    Size {
        tokens: if is_english { 100_000 } else { 30_000 },
        planted: if is_english { 34 } else { 20 },
    }
}

/// What was found of the planted statements.
#[derive(Clone, Copy, Default)]
struct Score {
    chats: usize,
    planted: usize,
    /// In the ledger as what holds.
    in_ledger: usize,
    /// On any line that is not marked as superseded.
    anywhere: usize,
    changed: usize,
    /// The ledger holds the old value as valid.
    stale_in_ledger: usize,
    /// The old value occurs anywhere without a mark and without the new one.
    stale_anywhere: usize,
    ledger_items: usize,
    tokens: usize,
    over: usize,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    println!(
        "{:4} {:5} {:>6} {:>5} {:>7} {:>6} {:>8} {:>7} {:>9} {:>9} {:>6} {:>6} {:>4}",
        "lang",
        "set",
        "budget",
        "chats",
        "planted",
        "ledger",
        "anywhere",
        "changed",
        "stale-led",
        "stale-any",
        "items",
        "tokens",
        "over"
    );
    for language in &arguments.language {
        let script = Script::of(language)?;
        for set in [Set::Open, Set::Held] {
            for &budget in &arguments.budget {
                let mut score = Score::default();
                for seed in 0..arguments.seeds {
                    let chat = script.chat(seed, set, &size(language), &crate::count);
                    let compacted = compact(&chat.messages, &Options::new(budget, &crate::count))?;
                    score.add(&chat, &compacted.memory, &compacted.text, budget);
                    if arguments.missing && set == Set::Open
                        || arguments.missing_held && set == Set::Held
                    {
                        list_missing(&chat, &compacted.memory);
                    }
                    if let Some(folder) = &arguments.dump {
                        std::fs::create_dir_all(folder)?;
                        let name = if set == Set::Open { "open" } else { "held" };
                        let path = folder.join(format!("{language}-{name}-{seed}-{budget}.md"));
                        std::fs::write(path, &compacted.text)?;
                    }
                }
                let name = if set == Set::Open { "open" } else { "held" };
                println!("{}", score.row(language, name, budget));
            }
        }
    }
    Ok(())
}

fn list_missing(chat: &Chat, memory: &Memory) {
    for planted in &chat.planted {
        if !memory.items.iter().any(|item| is_kept(item, planted)) {
            println!(
                "  missing ({}): {}{}",
                planted.kind,
                planted.sentence,
                successor(memory, planted)
            );
        }
        for item in memory.items.iter().filter(|item| is_stale(item, planted)) {
            println!(
                "  out of date: {} | {}",
                planted.sentence,
                item.entry.text()
            );
        }
    }
}

/// What took the place of a planted statement, for the list.
fn successor(memory: &Memory, planted: &PlantedFact) -> String {
    let taken = memory.items.iter().find_map(|item| match &item.status {
        Status::SupersededBy(id) if item.entry.text().contains(&planted.sentence) => {
            memory.items.iter().find(|item| item.id == *id)
        }
        _ => None,
    });
    taken.map_or(String::new(), |item| format!(" << {}", item.entry.text()))
}

/// Whether the item is in the ledger and states the planted fact as valid.
fn is_kept(item: &Item, planted: &PlantedFact) -> bool {
    matches!(item.entry, Entry::Correction { .. }) && says(item, planted)
}

fn says(item: &Item, planted: &PlantedFact) -> bool {
    let line = markdown::item_lines(item).to_lowercase();
    !matches!(item.status, Status::SupersededBy(_))
        && planted
            .keys
            .iter()
            .all(|key| line.contains(&key.to_lowercase()))
}

/// Whether the item gives the value that no longer holds, without the one that does.
fn is_stale(item: &Item, planted: &PlantedFact) -> bool {
    let Some(stale) = &planted.stale else {
        return false;
    };
    let line = markdown::item_lines(item);
    !matches!(item.status, Status::SupersededBy(_))
        && holds_word(&line, stale)
        // "Not the old one" is no claim of the old one.
        && !planted.sentence.contains(item.entry.text())
        && !planted.keys.iter().all(|key| line.contains(key))
}

fn holds_word(line: &str, word: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    line.match_indices(word).any(|(at, _)| {
        !is_letter(line[..at].chars().next_back())
            && !is_letter(line[at + word.len()..].chars().next())
    })
}

impl Score {
    fn add(&mut self, chat: &Chat, memory: &Memory, text: &str, budget: usize) {
        self.chats += 1;
        self.tokens += crate::count(text);
        self.over += usize::from(crate::count(text) > budget);
        let ledger = |item: &&Item| matches!(item.entry, Entry::Correction { .. });
        self.ledger_items += memory.items.iter().filter(ledger).count();
        for planted in &chat.planted {
            let any = |test: fn(&Item, &PlantedFact) -> bool| {
                usize::from(memory.items.iter().any(|item| test(item, planted)))
            };
            self.planted += 1;
            self.in_ledger += any(is_kept);
            self.anywhere += any(says);
            self.changed += usize::from(planted.stale.is_some());
            self.stale_anywhere += any(is_stale);
            self.stale_in_ledger += usize::from(
                memory
                    .items
                    .iter()
                    .filter(ledger)
                    .any(|item| is_stale(item, planted)),
            );
        }
    }

    fn row(&self, language: &str, set: &str, budget: usize) -> String {
        let percent = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
        let chats = self.chats.max(1);
        format!(
            "{language:4} {set:5} {budget:6} {:5} {:7} {:6.1} {:8.1} {:7} {:9.1} {:9.1} {:6} {:6} {:4}",
            self.chats,
            self.planted,
            percent(self.in_ledger, self.planted),
            percent(self.anywhere, self.planted),
            self.changed,
            percent(self.stale_in_ledger, self.changed),
            percent(self.stale_anywhere, self.changed),
            self.ledger_items / chats,
            self.tokens / chats,
            self.over,
        )
    }
}
