//! A terminal that does not show what is typed while an answer comes.

use std::io;
use std::sync::{Mutex, PoisonError};

use rustix::termios::{self, LocalModes, OptionalActions, Termios};

/// As long as there is one, keys are not shown. They are kept for the next line; Ctrl-C stays what it is.
pub(crate) struct Quiet(());

/// How the terminal was before.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

impl Quiet {
    /// A terminal that cannot do this shows what is typed in the middle of the answer.
    pub(crate) fn begin() -> Self {
        if let Ok(before) = termios::tcgetattr(io::stdin()) {
            let mut quiet = before.clone();
            quiet.local_modes.remove(LocalModes::ECHO);
            *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
            let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &quiet);
        }
        Self(())
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        restore();
    }
}

/// The terminal is again as it was; also at the end of a program that ends in a hurry.
pub(crate) fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &before);
    }
}
