//! What is shown while a long piece of work runs: a bar on standard error, in a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Console;

/// Work below this many bytes is done before anybody could read a bar.
const BYTES_MIN: u64 = 4 * 1024 * 1024;

/// A bar, or nothing at all.
pub(crate) struct Progress {
    bar: ProgressBar,
    is_watched: bool,
}

impl Progress {
    /// Nothing is shown yet.
    pub(crate) fn new(console: &Console) -> Self {
        let bar = ProgressBar::no_length();
        bar.set_draw_target(ProgressDrawTarget::hidden());
        Self {
            bar,
            is_watched: console.is_stderr_terminal,
        }
    }

    /// Starts reading this many bytes, or an unknown number.
    pub(crate) fn reading(&self, bytes: Option<u64>) {
        if let Some(bytes) = bytes.filter(|bytes| *bytes >= BYTES_MIN) {
            self.show("reading  {bar:30} {bytes}/{total_bytes}");
            self.bar.set_length(bytes);
        }
    }

    pub(crate) fn read(&self, bytes: usize) {
        self.bar.inc(bytes as u64);
    }

    /// Starts a step of work on this many bytes whose end is not known.
    pub(crate) fn working(&self, what: &'static str, bytes: usize) {
        if bytes as u64 >= BYTES_MIN {
            self.show("{spinner} {msg} ({elapsed})");
            self.bar.set_message(what);
            self.bar.enable_steady_tick(Duration::from_millis(120));
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self, template: &str) {
        if !self.is_watched {
            return;
        }
        self.bar.reset();
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
