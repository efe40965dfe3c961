//! `throughline demo`: one long session, played three ways against the simulator.

mod chart;
mod play;
mod script;

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use self::play::{PlayedSession, Way};
use self::script::Script;
use crate::arguments::Demo;
use crate::error::{Ending, Failure, Kind};
use crate::output::{self, Console};
use crate::terminal;
use crate::words;

pub(crate) fn run(arguments: &Demo, console: &Console) -> Result<Ending, Failure> {
    if arguments.svg.as_deref() == Some(Path::new("-")) {
        return Err(Failure::new(
            Kind::Arguments,
            "the chart cannot be written to standard output",
        )
        .hint("give --svg the name of a file"));
    }
    output::check_place(arguments.svg.as_deref())?;
    let script = Script::new(arguments.seed, arguments.turns);
    let bar = bar(console, script.turns().len());
    let mut played = Vec::new();
    for way in Way::ALL {
        bar.set_position(0);
        bar.set_message(way.title());
        played.push(
            play::play(&script, way, arguments.window, &|| bar.inc(1)).map_err(|what| {
                Failure::new(
                    Kind::Bug,
                    format!("the session {} failed: {what}", way.title()),
                )
            })?,
        );
    }
    bar.finish_and_clear();
    if arguments.json {
        console.print_json(&Report::of(arguments, &played))?;
    } else {
        show(arguments, &script, &played, console)?;
    }
    if let Some(path) = &arguments.svg {
        draw(&played, path)?;
        console.note(&format!("the chart is in {}", path.display()));
    }
    Ok(Ending::Done)
}

fn bar(console: &Console, turns: usize) -> ProgressBar {
    let bar = ProgressBar::new(turns as u64);
    bar.set_draw_target(if console.is_stderr_terminal {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    });
    if let Ok(style) = ProgressStyle::with_template("{msg:13} {wide_bar} turn {pos} of {len}") {
        bar.set_style(style);
    }
    bar
}

fn draw(played: &[PlayedSession], path: &Path) -> Result<(), Failure> {
    output::write(Some(path), &chart::svg(played))
}

fn show(
    arguments: &Demo,
    script: &Script,
    played: &[PlayedSession],
    console: &Console,
) -> Result<(), Failure> {
    let mut text = format!(
        "One session of {} (seed {}), three ways, against a simulated\n{} with a window of {} tokens.\n\n",
        words::counted(script.turns().len(), "turn"),
        arguments.seed,
        play::MODEL,
        words::number(arguments.window),
    );
    let header: Vec<&str> = std::iter::once("")
        .chain(played.iter().map(|played| played.way.title()))
        .collect();
    let rows: Vec<Vec<String>> = ROWS
        .iter()
        .map(|(name, cell)| {
            std::iter::once((*name).to_owned())
                .chain(played.iter().map(cell))
                .collect()
        })
        .collect();
    if console.is_stdout_terminal && table_width(&header, &rows) > terminal::width() {
        text.push_str(&narrow(&header, &rows));
    } else {
        text.push_str(&console.table(&header, rows));
    }
    text.push('\n');
    console.print(&text)?;
    Ok(())
}

/// Columns that the table takes without a break in a cell.
fn table_width(header: &[&str], rows: &[Vec<String>]) -> usize {
    const PADDING: usize = 2;
    let widest = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    header
        .iter()
        .enumerate()
        .map(|(at, title)| widest(at).max(title.chars().count()) + PADDING)
        .sum()
}

/// The table for a narrow terminal: one way below the other.
fn narrow(header: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (at, title) in header.iter().enumerate().skip(1) {
        if at > 1 {
            text.push('\n');
        }
        text.push_str(&format!("{title}\n"));
        for row in rows {
            if let (Some(name), Some(cell)) = (row.first(), row.get(at)) {
                text.push_str(&format!("  {name}: {cell}\n"));
            }
        }
    }
    text
}

type Cell = fn(&PlayedSession) -> String;

const ROWS: [(&str, Cell); 12] = [
    ("requests", |played| words::number(played.requests)),
    ("  of these refused: too large", |played| {
        words::number(played.refused)
    }),
    ("swaps", |played| words::number(played.waits.len())),
    ("  wait at a swap, middle one", |played| {
        wait(played.middle_wait())
    }),
    ("  wait at a swap, longest", |played| {
        wait(played.waits.iter().max().copied())
    }),
    ("  swaps that waited for a model", |played| {
        words::number(played.waited_for_model)
    }),
    ("largest context, tokens", |played| {
        words::number(played.largest_context)
    }),
    ("model calls, summaries included", |played| {
        words::number(played.model_calls)
    }),
    ("tokens sent and received", |played| {
        words::number(played.tokens.total())
    }),
    ("  of these read from the cache", |played| {
        words::number(played.tokens.cache_read)
    }),
    ("cost", |played| format!("${:.2}", played.cost.total())),
    ("facts remembered at the end", |played| {
        format!("{} of {}", played.facts_kept, played.facts_asked)
    }),
];

fn wait(wait: Option<Duration>) -> String {
    match wait {
        None => "-".to_owned(),
        Some(wait) if wait >= Duration::from_secs(1) => format!("{:.1} s", wait.as_secs_f64()),
        Some(wait) => format!("{:.1} ms", wait.as_secs_f64() * 1000.0),
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    seed: u64,
    turns: usize,
    window: u64,
    model: &'static str,
    modes: Modes,
}

#[derive(Serialize)]
struct Modes {
    none: Mode,
    traditional: Mode,
    instant: Mode,
}

#[derive(Default, Serialize)]
struct Mode {
    /// Requests of the conversation, those that were refused included.
    requests: usize,
    /// Requests that were too large for the window.
    refused: usize,
    swaps: usize,
    /// How long each swap held the request up, milliseconds.
    waits_ms: Vec<f64>,
    /// Swaps that waited for a model.
    waited_for_model: usize,
    /// Calls that the provider answered, those for memories included.
    model_calls: usize,
    /// Calls for memories.
    update_calls: usize,
    tokens: u64,
    tokens_by_class: Classes<u64>,
    cost_usd: f64,
    cost_usd_by_class: Classes<f64>,
    /// The part of the cost that memories took.
    update_cost_usd: f64,
    largest_context: u64,
    facts_asked: usize,
    facts_kept: usize,
    /// Virtual time that the session took, seconds.
    session_s: f64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Classes<T> {
    pub(crate) uncached: T,
    pub(crate) cache_write: T,
    pub(crate) cache_read: T,
    pub(crate) output: T,
}

impl Classes<u64> {
    fn total(&self) -> u64 {
        self.uncached + self.cache_write + self.cache_read + self.output
    }
}

impl Classes<f64> {
    fn total(&self) -> f64 {
        self.uncached + self.cache_write + self.cache_read + self.output
    }
}

impl Report {
    fn of(arguments: &Demo, played: &[PlayedSession]) -> Self {
        let mode = |way: Way| {
            played
                .iter()
                .find(|played| played.way == way)
                .map(Mode::of)
                .unwrap_or_default()
        };
        Self {
            seed: arguments.seed,
            turns: arguments.turns,
            window: arguments.window,
            model: play::MODEL,
            modes: Modes {
                none: mode(Way::None),
                traditional: mode(Way::Traditional),
                instant: mode(Way::Instant),
            },
        }
    }
}

impl Mode {
    fn of(played: &PlayedSession) -> Self {
        Self {
            requests: played.requests,
            refused: played.refused,
            swaps: played.waits.len(),
            waits_ms: played
                .waits
                .iter()
                .map(|wait| (wait.as_secs_f64() * 1e6).round() / 1e3)
                .collect(),
            waited_for_model: played.waited_for_model,
            model_calls: played.model_calls,
            update_calls: played.update_calls,
            tokens: played.tokens.total(),
            tokens_by_class: played.tokens,
            cost_usd: played.cost.total(),
            cost_usd_by_class: played.cost,
            update_cost_usd: played.update_cost,
            largest_context: played.largest_context,
            facts_asked: played.facts_asked,
            facts_kept: played.facts_kept,
            session_s: played.took.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_too_wide_becomes_a_list() {
        let header = ["", "traditional", "instant"];
        let rows: Vec<Vec<String>> = [
            ["requests", "1,200", "1,190"],
            ["  of these refused", "0", "0"],
        ]
        .map(|row| row.map(str::to_owned).to_vec())
        .to_vec();
        assert_eq!(table_width(&header, &rows), 20 + 13 + 9);
        assert_eq!(
            narrow(&header, &rows),
            "traditional\n  requests: 1,200\n    of these refused: 0\n\ninstant\n  requests: 1,190\n    of these refused: 0\n"
        );
    }
}
