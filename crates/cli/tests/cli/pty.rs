//! A terminal without a screen: the program writes to it, tests read its screen and type.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::termios::LocalModes;

/// After so long, what is waited for does not come any more.
const PATIENCE: Duration = Duration::from_secs(60);
/// A program that has done nothing for so long is not about to do anything.
const REST: Duration = Duration::from_millis(250);
const SCROLLBACK: usize = 10_000;

pub(crate) struct Terminal {
    shown: Arc<Shown>,
    keyboard: Arc<Mutex<Box<dyn Write + Send>>>,
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
}

struct Shown {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    parser: vt100::Parser,
    /// Everything that was written.
    bytes: Vec<u8>,
    has_ended: bool,
}

impl Terminal {
    /// Starts a program in a terminal of this size, with these variables and no others that matter.
    pub(crate) fn start(
        program: &Path,
        arguments: &[&str],
        variables: &[(&str, &str)],
        (columns, rows): (u16, u16),
    ) -> Self {
        let size = PtySize {
            rows,
            cols: columns,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(arguments);
        command.cwd(std::env::current_dir().unwrap());
        for name in [
            "NO_COLOR",
            "CLICOLOR",
            "CLICOLOR_FORCE",
            "LC_ALL",
            "LC_CTYPE",
        ] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        for (name, value) in variables {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let shown = Arc::new(Shown {
            state: Mutex::new(State {
                parser: vt100::Parser::new(rows, columns, SCROLLBACK),
                bytes: Vec::new(),
                has_ended: false,
            }),
            changed: Condvar::new(),
        });
        let keyboard = Arc::new(Mutex::new(pair.master.take_writer().unwrap()));
        let mut output = pair.master.try_clone_reader().unwrap();
        let (watched, answers) = (Arc::clone(&shown), Arc::clone(&keyboard));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                watched.take(&buffer[..count], &answers);
            }
            watched.state.lock().unwrap().has_ended = true;
            watched.changed.notify_all();
        });
        Self {
            shown,
            keyboard,
            child,
            master: pair.master,
        }
    }

    pub(crate) fn press(&self, keys: &str) {
        let mut keyboard = self.keyboard.lock().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
        keyboard.flush().unwrap();
    }

    /// Waits until the program edits no line any more: Ctrl-C is a signal then, and not a key.
    #[track_caller]
    pub(crate) fn until_keys_are_signals(&self) {
        let deadline = Instant::now() + PATIENCE;
        let signals = LocalModes::ISIG.bits();
        let are_signals = || {
            let modes = self.master.get_termios().unwrap().local_flags.bits();
            modes & signals != 0
        };
        while !are_signals() {
            assert!(Instant::now() < deadline, "the line does not end");
            std::thread::yield_now();
        }
    }

    /// Types a line and says that it is to be taken. A long one is pasted.
    pub(crate) fn line(&self, text: &str) {
        if text.len() < 100 {
            self.press(&format!("{text}\r"));
        } else {
            self.press(&format!("\u{1b}[200~{text}\u{1b}[201~\r"));
        }
    }

    /// Waits until the screen, with what has been scrolled away, is as wanted; gives it.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.shown.state.lock().unwrap();
        loop {
            let text = all_text(&mut state.parser);
            if is_so(&text) {
                return text;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero() && !state.has_ended,
                "{what} does not come:\n{text}"
            );
            (state, _) = self.shown.changed.wait_timeout(state, left).unwrap();
        }
    }

    /// Waits until `text` is on the screen.
    #[track_caller]
    pub(crate) fn until_shown(&self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text))
    }

    /// Waits for an empty prompt after `text`.
    #[track_caller]
    pub(crate) fn until_prompt_after(&self, text: &str) -> String {
        self.until(&format!("a prompt after {text:?}"), |screen| {
            screen
                .rsplit_once(text)
                .is_some_and(|(_, after)| after.ends_with("\n>"))
        })
    }

    /// Waits until the program is idle: background work, such as a memory that is being made, has ended.
    pub(crate) fn until_at_rest(&self) {
        let process = self.child.process_id().unwrap();
        let mut before = processor_time(process);
        loop {
            std::thread::sleep(REST);
            let now = processor_time(process);
            if now == before {
                return;
            }
            before = now;
        }
    }

    /// What was written, byte for byte.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.shown.state.lock().unwrap().bytes.clone()
    }

    /// Waits for the end; gives what was written, byte for byte.
    pub(crate) fn bytes_at_end(mut self) -> Vec<u8> {
        self.child.wait().unwrap();
        let state = self.shown.state.lock().unwrap();
        let (state, waited) = self
            .shown
            .changed
            .wait_timeout_while(state, PATIENCE, |state| !state.has_ended)
            .unwrap();
        assert!(!waited.timed_out(), "the terminal does not end");
        state.bytes.clone()
    }

    /// The screen as it is now.
    pub(crate) fn screen(&self) -> vt100::Screen {
        self.shown.state.lock().unwrap().parser.screen().clone()
    }

    /// The place on the screen of the first character of a text.
    pub(crate) fn cell_of(&self, text: &str) -> Option<vt100::Cell> {
        let screen = self.screen();
        let (_, columns) = screen.size();
        let (row, column) = screen
            .rows(0, columns)
            .enumerate()
            .find_map(|(row, shown)| Some((row, shown.find(text)?)))?;
        let (row, column) = (u16::try_from(row).ok()?, u16::try_from(column).ok()?);
        screen.cell(row, column).cloned()
    }

    /// The terminal has another size from now on, and says so to the program.
    pub(crate) fn resize(&self, (columns, rows): (u16, u16)) {
        let size = PtySize {
            rows,
            cols: columns,
            pixel_width: 0,
            pixel_height: 0,
        };
        self.master.resize(size).unwrap();
        let mut state = self.shown.state.lock().unwrap();
        state.parser.screen_mut().set_size(rows, columns);
    }

    /// Waits for the end; gives the exit code and all that was shown.
    #[track_caller]
    pub(crate) fn ended(mut self) -> (u32, String) {
        let status = self.child.wait().unwrap();
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.shown.state.lock().unwrap();
        while !state.has_ended && Instant::now() < deadline {
            (state, _) = self
                .shown
                .changed
                .wait_timeout(state, Duration::from_millis(500))
                .unwrap();
        }
        (status.exit_code(), all_text(&mut state.parser))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
    }
}

impl Shown {
    /// Shows what was written, and says where the cursor is when it is asked for, as terminals do.
    fn take(&self, bytes: &[u8], answers: &Mutex<Box<dyn Write + Send>>) {
        const WHERE: &[u8] = b"\x1b[6n";
        let mut state = self.state.lock().unwrap();
        for &byte in bytes {
            state.bytes.push(byte);
            state.parser.process(&[byte]);
            if state.bytes.ends_with(WHERE) {
                let (row, column) = state.parser.screen().cursor_position();
                let answer = format!("\x1b[{};{}R", row + 1, column + 1);
                let mut keyboard = answers.lock().unwrap();
                let _ = keyboard.write_all(answer.as_bytes());
                let _ = keyboard.flush();
            }
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// What a program has had of the processors, in ticks of the system.
fn processor_time(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let times = fields.split(' ').skip(11).take(2);
    times.map(|time| time.parse::<u64>().unwrap()).sum()
}

/// The rows that were scrolled away and those of the screen, without what is empty at the end.
fn all_text(parser: &mut vt100::Parser) -> String {
    let (rows, columns) = parser.screen().size();
    let screen = parser.screen_mut();
    screen.set_scrollback(usize::MAX);
    let above = screen.scrollback();
    let mut lines: Vec<String> = Vec::new();
    let mut from = above;
    loop {
        screen.set_scrollback(from);
        let take = if from == 0 {
            usize::from(rows)
        } else {
            from.min(usize::from(rows))
        };
        lines.extend(screen.rows(0, columns).take(take));
        if from == 0 {
            break;
        }
        from = from.saturating_sub(usize::from(rows));
    }
    screen.set_scrollback(0);
    lines
        .iter()
        .map(|line| line.trim_end())
        .collect::<Vec<_>>()
        .join("\n")
        .trim_end()
        .to_owned()
}
