//! The formats that can be read. To add one, write a file beside the others and name it in [`ALL`].

mod aider;
mod chat_message;
mod chatgpt;
mod claude_ai;
mod dialogue;
mod finetune;
mod glance;
mod langchain;
mod mini_swe_agent;
mod moment;
mod openhands;
#[cfg(test)]
mod recognition;
mod recover;
mod sharegpt;
mod specstory;
mod swe_agent;
mod tau_bench;

use crate::conversation::{ReadError, Source, SourceText};

/// One session-file or request format.
///
/// A format is a value without state. It recognises a text by [`Format::fits`] and reads it by [`Format::read`].
pub trait Format: Sync {
    /// Name in `--from` and in reports, such as `claude-code`.
    fn name(&self) -> &'static str;

    /// What it is, in a few words, for help texts.
    fn about(&self) -> &'static str;

    /// How sure the format is that `probe` is its own, 0 (no) to 100 (nothing else looks like it).
    fn fits(&self, probe: &Probe<'_>) -> u8;

    /// Reads everything that can be read.
    ///
    /// # Errors
    /// [`ReadError::NotThatFormat`] if there is nothing of this format in it.
    fn read(&self, source: &SourceText) -> Result<Source, ReadError>;
}

/// The start of a source, as a format sees it to decide whether it fits.
pub struct Probe<'a> {
    /// The whole text. Look at the start of it only.
    pub text: &'a str,
}

/// All formats, in the order in which they are asked.
pub static ALL: &[&dyn Format] = &[
    &openhands::OpenHands,
    &swe_agent::SweAgent,
    &mini_swe_agent::MiniSweAgent,
    &tau_bench::TauBench,
    &langchain::LangChain,
    &sharegpt::ShareGpt,
    &finetune::FineTune,
    &chatgpt::ChatGpt,
    &claude_ai::ClaudeAi,
    &aider::Aider,
    &specstory::SpecStory,
    &dialogue::Dialogue,
];
