//! Draws what a chat looks like: the real program in a terminal that is kept in memory, as SVG.
//!
//! `scripts/screenshots` builds the program and runs this. The same program gives the same pictures: the model is
//! simulated, with a fixed seed and no latency; nothing is typed before everything in the background has
//! ended; and the day is always the same.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool for those who work on this: it ends by panicking, and says what it does"
)]
#![expect(
    dead_code,
    reason = "the terminal is that of the tests, which do more with it"
)]

#[path = "../tests/cli/pty.rs"]
mod pty;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use pty::Terminal;

const COLUMNS: u16 = 80;
const ROWS: u16 = 30;
/// Size of a character, pixels.
const CELL: (u16, u16) = (8, 18);
const MARGIN: u16 = 16;
/// The day of all pictures.
const DAY: &str = "2026-11-30";
const BACKGROUND: &str = "#1c1f26";
const FOREGROUND: &str = "#d8dce4";
/// The first eight colours of the terminal, and their bright ones.
const COLOURS: [&str; 16] = [
    "#1c1f26", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dce4",
    "#6b7280", "#e88388", "#a9d18b", "#ecd08f", "#7cbef5", "#d291e4", "#6fc5d0", "#ffffff",
];

fn main() {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("docs/images"), PathBuf::from);
    let program = std::env::current_exe().unwrap();
    let program = program
        .parent()
        .and_then(Path::parent)
        .unwrap()
        .join("throughline");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, draw) in [
        ("chat", chat as fn(&Path) -> String),
        ("chat-memory", memory),
    ] {
        let path = folder.join(name).with_extension("svg");
        std::fs::write(&path, draw(&program)).unwrap();
        println!("{}", path.display());
    }
}

/// A chat whose memories are made by code alone: no picture depends on who was faster.
fn start(program: &Path, home: &tempfile::TempDir) -> Terminal {
    let config = home.path().join("throughline");
    std::fs::create_dir(&config).unwrap();
    std::fs::write(config.join("config.toml"), "memory_model = \"none\"\n").unwrap();
    let home = home.path().to_str().unwrap();
    let variables = ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"].map(|name| (name, home));
    let arguments = [
        "chat",
        "--model",
        "simulated",
        "--latency",
        "none",
        "--window",
        "8000",
    ];
    let terminal = Terminal::start(program, &arguments, &variables, (COLUMNS, ROWS));
    terminal.until_prompt_after("/help");
    terminal
}

/// Types a line when the program has nothing to do any more, and waits for the prompt after `text`.
fn say(terminal: &Terminal, line: &str, text: &str) {
    terminal.until_at_rest();
    terminal.line(line);
    terminal.until_prompt_after(text);
}

/// A conversation that goes past its window, and what is still known behind the swap.
fn chat(program: &Path) -> String {
    let home = tempfile::tempdir().unwrap();
    let terminal = start(program, &home);
    correct(&terminal);
    let mut turn = 0;
    while !terminal.until_shown(">").contains("memory swapped in") {
        turn += 1;
        step(&terminal, turn);
    }
    say(
        &terminal,
        "What is the deploy region?",
        "The deploy region is eu-south-1.",
    );
    svg(&terminal.screen())
}

/// A memory that is asked for, and taken back.
fn memory(program: &Path) -> String {
    let home = tempfile::tempdir().unwrap();
    let terminal = start(program, &home);
    correct(&terminal);
    for turn in 1..=12 {
        step(&terminal, turn);
    }
    for (line, text) in [
        ("/pin The port is 8443.", "pinned: it is in every memory"),
        ("/compact the deploy region", "memory swapped in: "),
        ("/memory", "represents messages"),
        ("/undo", "is undone"),
    ] {
        say(&terminal, line, text);
    }
    svg(&terminal.screen())
}

/// Says something, and something else.
fn correct(terminal: &Terminal) {
    say(terminal, "The deploy region is eu-north-3.", "soft");
    say(
        terminal,
        "No, that was wrong: the deploy region is eu-south-1, not eu-north-3.",
        "On \"No, that was wrong",
    );
}

fn step(terminal: &Terminal, turn: usize) {
    say(
        terminal,
        &format!("Step {turn}: please go through the next module, and say what it does."),
        &format!("On \"Step {turn}:"),
    );
}

/// The screen as a picture.
fn svg(screen: &vt100::Screen) -> String {
    let today = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let (rows, columns) = screen.size();
    let used = (0..rows)
        .rev()
        .find(|row| {
            (0..columns).any(|column| {
                screen
                    .cell(*row, column)
                    .is_some_and(vt100::Cell::has_contents)
            })
        })
        .map_or(1, |row| row + 1);
    let (width, height) = (columns * CELL.0 + 2 * MARGIN, used * CELL.1 + 2 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"13\" xml:space=\"preserve\">\n"
    );
    for row in 0..used {
        let mut column = 0;
        while column < columns {
            let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents()) else {
                column += 1;
                continue;
            };
            let style = style(cell);
            let begin = column;
            let mut text = String::new();
            while let Some(next) = screen
                .cell(row, column)
                .filter(|next| self::style(next) == style)
            {
                text.push_str(if next.has_contents() {
                    next.contents()
                } else {
                    " "
                });
                column += 1;
            }
            let text = text.trim_end();
            let (x, y) = (MARGIN + begin * CELL.0, MARGIN + row * CELL.1 + 13);
            let length = usize::from(CELL.0) * text.chars().count();
            writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\" {style}>{}</text>",
                text.replace(&today, DAY)
                    .replace('&', "&amp;")
                    .replace('<', "&lt;")
            )
            .unwrap();
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

/// Colour and weight of a character, as attributes.
fn style(cell: &vt100::Cell) -> String {
    let fill = match cell.fgcolor() {
        vt100::Color::Idx(index) => COLOURS
            .get(usize::from(index))
            .copied()
            .unwrap_or(FOREGROUND),
        _ if cell.dim() => COLOURS[8],
        _ => FOREGROUND,
    };
    let mut style = format!("fill=\"{fill}\"");
    for (is_so, attribute) in [
        (cell.bold(), " font-weight=\"bold\""),
        (cell.italic(), " font-style=\"italic\""),
        (cell.underline(), " text-decoration=\"underline\""),
    ] {
        if is_so {
            style.push_str(attribute);
        }
    }
    style
}
