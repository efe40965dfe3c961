//! What is shown while a long piece of work runs: a bar on standard error, in a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Console;

/// Work below this many bytes is done before anybody could read a bar.
const BYTES_MIN: u64 = 4 * 1024 * 1024;

/// A bar, or nothing at all.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Nothing is shown yet.
    pub(crate) fn new(console: &Console) -> Self {
        let bar = ProgressBar::no_length();
        if !console.is_stderr_terminal {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        Self(bar)
    }

    /// Reading of so many bytes begins, or of an unknown number.
    pub(crate) fn reading(&self, bytes: Option<u64>) {
        let Some(bytes) = bytes.filter(|bytes| *bytes >= BYTES_MIN) else {
            return;
        };
        self.0.reset();
        self.0.set_length(bytes);
        self.style("reading  {bar:30} {bytes}/{total_bytes}");
    }

    pub(crate) fn read(&self, bytes: usize) {
        self.0.inc(bytes as u64);
    }

    /// A step of work on so many bytes begins whose end is not known.
    pub(crate) fn working(&self, what: &'static str, bytes: usize) {
        if (bytes as u64) < BYTES_MIN {
            return;
        }
        self.0.reset();
        self.style("{spinner} {msg} ({elapsed})");
        self.0.set_message(what);
        self.0.enable_steady_tick(Duration::from_millis(120));
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }

    fn style(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.0.set_style(style);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
