//! How the program ends: what went wrong, what to do about it, and the exit code that scripts see.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use crate::quiet;

/// The end of every `--help`: part of the interface, change it with care.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    check: the provider would refuse the request; doctor: something is in the way
  2    the arguments are wrong, or the input cannot be read
  3    nothing to do, or the result would be no gain (no messages, nothing before the
       tail, a request that would not be smaller or would be refused)
  4    the output cannot be written
  5    the provider does not answer or refuses, or the session is open elsewhere
  70   a mistake in this program
  130  interrupted";

/// A command that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As asked.
    Done,
    /// And the answer is that the input is not valid.
    Invalid,
    /// As far as Ctrl-C let it.
    Interrupted,
    /// As a program that was run says.
    Code(u8),
}

impl Ending {
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Done => 0,
            Self::Invalid => 1,
            Self::Interrupted => 130,
            Self::Code(code) => code,
        })
    }
}

/// What the caller of the program can do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Type something else.
    Arguments,
    /// Give another input.
    Input,
    /// Nothing needs to be done.
    NothingToDo,
    /// Make room, or write elsewhere.
    Output,
    /// Wait, or look at the other side: the provider, or who has the session open.
    Unavailable,
    /// Report it.
    Bug,
    /// The reader of the output has gone away: end without a word.
    ClosedPipe,
}

/// A command that could not do its work.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    kind: Kind,
    /// Lower case, no full stop.
    message: String,
    /// What to do next.
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same, with the place in front of the message.
    pub(crate) fn at(mut self, place: impl Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// A failure to write.
    pub(crate) fn writing(place: impl Display, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Kind::ClosedPipe, "");
        }
        let failure = Self::new(
            Kind::Output,
            format!("cannot write {place}: {}", reason(error)),
        );
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                failure.hint("make room on the disk, or choose another place")
            }
            io::ErrorKind::NotFound => failure.hint("create the folder first"),
            _ => failure.hint("choose a place that you may write to"),
        }
    }

    /// The reader has closed the pipe.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.kind == Kind::ClosedPipe
    }
}

/// What went wrong, and its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = error.source();
    }
    text
}

/// What the system says, without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = match text.find(" (os error") {
        Some(end) => &text[..end],
        None => &text,
    };
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(characters).collect()
    })
}

/// What to do about a bug.
pub(crate) const BUG_HINT: &str = "this is a bug in throughline; please report it with the command and, if you may share it, the input";

pub(crate) const BUG_CODE: u8 = 70;

/// A panic is our mistake, and the message says so.
pub(crate) fn report_panics_as_bugs() {
    std::panic::set_hook(Box::new(|panic| {
        use std::io::Write;
        quiet::restore();
        let mut stderr = io::stderr().lock();
        // If even stderr is closed, the error cannot be reported.
        let _ = writeln!(stderr, "error: {panic}\nhint: {BUG_HINT}");
        std::process::exit(BUG_CODE.into());
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_quoted_without_its_numbers() {
        let error = io::Error::from_raw_os_error(2);
        assert_eq!(reason(&error), "no such file or directory");
    }
}
