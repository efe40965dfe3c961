//! What a chat writes: answers to standard output, everything else where people see it.

use anstyle::Style;

use crate::error::Failure;
use crate::markdown::columns_of;
use crate::output::Console;
use crate::terminal::{Look, harmless};

/// Where a chat is shown.
#[derive(Clone, Debug)]
pub(crate) struct Screen {
    pub(crate) console: Console,
    /// What the terminal can show. In a pipe, and in a terminal without abilities, text is written unchanged.
    pub(crate) look: Option<Look>,
}

impl Screen {
    pub(crate) fn new(console: &Console) -> Self {
        Self {
            console: console.clone(),
            look: console.look(),
        }
    }

    /// The same, with the size that the terminal has now.
    pub(crate) fn measured(&self) -> Self {
        Self::new(&self.console)
    }

    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.console.print(text)
    }

    /// A quiet line; it is not written to a pipe.
    pub(crate) fn note(&self, text: &str) -> Result<(), Failure> {
        if self.console.is_stdout_terminal {
            self.write(&format!("{}\n", self.dimmed(text)))
        } else {
            self.console.summary(text);
            Ok(())
        }
    }

    /// What belongs to a question, where questions are asked.
    pub(crate) fn beside(&self, text: &str) -> Result<(), Failure> {
        if self.console.is_stdout_terminal {
            return self.write(text);
        }
        self.console.question(text);
        Ok(())
    }

    /// The text as notes are shown.
    pub(crate) fn dimmed(&self, text: &str) -> String {
        let text = harmless(text);
        match self.look {
            Some(look) if look.has_colours => {
                let dim = Style::new().dimmed();
                format!("{dim}{text}{dim:#}")
            }
            _ => text.into_owned(),
        }
    }

    /// Shows what is happening, on a line that [`Screen::unmark`] removes.
    pub(crate) fn mark(&self, text: &str) -> Result<(), Failure> {
        let Some(look) = self.look else {
            return Ok(());
        };
        let mut shown = harmless(text).replace(['\n', '\t'], " ");
        while columns_of(&shown) >= look.columns {
            shown.pop();
        }
        self.write(&self.dimmed(&shown))
    }

    pub(crate) fn unmark(&self) -> Result<(), Failure> {
        match self.look {
            Some(_) => self.write("\r\u{1b}[K"),
            None => Ok(()),
        }
    }
}
