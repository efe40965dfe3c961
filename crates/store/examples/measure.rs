//! Measures the SQLite store: a commit at a swap, an append to a short and to a long archive, and
//! the opening of a large session in a process of its own.
//!
//! ```sh
//! cargo run --release -p throughline-store --example measure
//! ```

#![expect(clippy::print_stdout, reason = "this program prints what it measured")]

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throughline_store::testing::{adoption, memory, message, session, usage};
use throughline_store::{
    Change, Durability, Purpose, SessionId, SqliteStore, SqliteStoreOptions, Store,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

const SESSION_BYTES: usize = 100_000_000;
const MESSAGE_CHARS: usize = 2_000;

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [what, folder] = &arguments[..]
        && what == "open"
    {
        return open_here(Path::new(folder)).await;
    }
    // On the disk that is measured, which `/tmp` may not be.
    let folder = tempfile::tempdir_in(std::env::current_dir()?)?;
    for durability in [Durability::PowerLoss, Durability::ProcessKill] {
        swap(
            &folder.path().join(format!("swap-{durability:?}")),
            durability,
        )
        .await?;
    }
    append(&folder.path().join("append")).await?;
    let folder = folder.path().join("open");
    fill(&folder).await?;
    for _ in 0..2 {
        let status = Command::new(std::env::current_exe()?)
            .arg("open")
            .arg(&folder)
            .status()?;
        if !status.success() {
            return Err("the session could not be opened".into());
        }
        // The second time with all of it in the tail.
        let store = open(&folder, Durability::ProcessKill).await?;
        let mut writer = store.open(&id()?, Duration::ZERO).await?;
        let epoch = writer.load().await?.counts.epoch;
        writer.adopt(epoch, adoption(epoch + 1, None, 0)).await?;
    }
    Ok(())
}

fn id() -> Outcome<SessionId> {
    Ok(SessionId::new("measured")?)
}

async fn open(folder: &Path, durability: Durability) -> Outcome<Arc<dyn Store>> {
    let mut options = SqliteStoreOptions::default();
    options.durability = durability;
    Ok(Arc::new(
        SqliteStore::open_with(folder.join("sessions.db"), options).await?,
    ))
}

/// Prose with new words all the time, as far as an index can tell.
fn text(number: u64, chars: usize) -> String {
    let mut text = String::with_capacity(chars + 20);
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    while text.len() < chars {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        text.push_str(
            [
                "the ",
                "export ",
                "writes ",
                "semicolons ",
                "into ",
                "row_",
                "file ",
                "and ",
            ][(state >> 61) as usize],
        );
        if state >> 58 & 7 == 0 {
            text.push_str(&format!("{:x} ", state >> 40));
        }
    }
    text
}

/// What a swap commits: a memory of 3,000 tokens was stored before; now it is adopted, with an event and the usage of
/// the call before, and the new user message is appended.
async fn swap(folder: &Path, durability: Durability) -> Outcome<()> {
    let store = open(folder, durability).await?;
    store.create(session("measured", 0), vec![]).await?;
    let mut writer = store.open(&id()?, Duration::ZERO).await?;
    let (mut swaps, mut memories) = (Vec::new(), Vec::new());
    for number in 0..300 {
        let started = Instant::now();
        let version = number + 1;
        writer
            .put_memory(1, memory(version, number, &text(number, 12_000)))
            .await?;
        memories.push(started.elapsed());
        let started = Instant::now();
        let changes = vec![
            Change::Adopt {
                expected_epoch: number,
                adoption: adoption(version, Some(version), number),
            },
            Change::Append {
                expected_count: number,
                messages: vec![message(number, &text(number, 400))],
            },
            Change::Event {
                kind: "swapped".into(),
                json: r#"{"before":160000,"after":40000}"#.into(),
            },
            Change::Usage(usage(number, Purpose::Main)),
        ];
        writer.commit(1, changes).await?;
        swaps.push(started.elapsed());
    }
    print(
        &format!("SQLite, {durability:?}: store a memory of 12 kB"),
        memories,
    );
    print(&format!("SQLite, {durability:?}: commit a swap"), swaps);
    Ok(())
}

async fn append(folder: &Path) -> Outcome<()> {
    let store = open(folder, Durability::ProcessKill).await?;
    store.create(session("measured", 0), vec![]).await?;
    let mut writer = store.open(&id()?, Duration::ZERO).await?;
    let mut count = 0;
    for archived in [1_000, 10_000, 100_000] {
        while count < archived {
            let messages = (count..count + 500)
                .map(|number| message(number, &text(number, 300)))
                .collect();
            count = writer.append(1, count, messages).await?.message_count;
        }
        let mut appends = Vec::new();
        for _ in 0..200 {
            let started = Instant::now();
            count = writer
                .append(1, count, vec![message(count, &text(count, 300))])
                .await?
                .message_count;
            appends.push(started.elapsed());
        }
        print(
            &format!("SQLite, ProcessKill: append to {archived} messages"),
            appends,
        );
    }
    Ok(())
}

async fn fill(folder: &Path) -> Outcome<()> {
    let store = open(folder, Durability::ProcessKill).await?;
    store.create(session("measured", 0), vec![]).await?;
    let mut writer = store.open(&id()?, Duration::ZERO).await?;
    let (mut count, mut bytes) = (0, 0);
    while bytes < SESSION_BYTES {
        let messages: Vec<_> = (count..count + 500)
            .map(|number| message(number, &text(number, MESSAGE_CHARS)))
            .collect();
        bytes += messages
            .iter()
            .map(|message| message.original.len())
            .sum::<usize>();
        count = writer.append(1, count, messages).await?.message_count;
    }
    let covered = count - 40;
    let changes = vec![
        Change::Memory(memory(1, covered, &text(0, 12_000))),
        Change::Adopt {
            expected_epoch: 0,
            adoption: adoption(1, Some(1), covered),
        },
    ];
    writer.commit(2, changes).await?;
    println!(
        "SQLite: {count} messages, {:.0} MB of messages, {:.0} MB on disk",
        mb(bytes as u64),
        mb(disk(folder)?)
    );
    Ok(())
}

async fn open_here(folder: &Path) -> Outcome<()> {
    let started = Instant::now();
    let store = open(folder, Durability::PowerLoss).await?;
    let mut writer = store.open(&id()?, Duration::ZERO).await?;
    let loaded = writer.load().await?;
    let elapsed = started.elapsed();
    let tail: usize = loaded
        .tail
        .iter()
        .map(|message| message.request_bytes().len())
        .sum();
    println!(
        "SQLite: open and load with {} messages ({:.1} MB) in the tail: {elapsed:.1?}, at most {:.0} MB of memory",
        loaded.tail.len(),
        mb(tail as u64),
        mb(peak_bytes()),
    );
    Ok(())
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn disk(folder: &Path) -> Outcome<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() {
            disk(&entry.path())?
        } else {
            entry.metadata()?.len()
        };
    }
    Ok(bytes)
}

/// The most memory that this process ever had, where the system says so.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|line| {
        line.trim()
            .trim_end_matches("kB")
            .trim()
            .parse::<u64>()
            .ok()
    });
    kb.unwrap_or(0) * 1024
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    println!(
        "{what}: median {:.2?}, 95 % {:.2?}, 99 % {:.2?}, most {:.2?}",
        at(50),
        at(95),
        at(99),
        at(100)
    );
}
