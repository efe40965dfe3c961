//! When a conversation is compacted, by what, and what the next request is made of.
//!
//! An [`Engine`] is one session. [`Engine::handle`] takes what happens ([`Input`]: a message was added, a request is
//! wanted, the provider reported its usage, a memory is ready, ...). [`Engine::poll`] returns what to do ([`Output`]:
//! build a memory in the background, store it, send this request, wait). The engine has no clock, no network, no files
//! and no threads; the time is an argument. A driver performs the outputs and hands the answers back.
//!
//! **The rule**: drain [`Engine::poll`] before you wait or send. Several inputs may be handled first; their outputs queue
//! in order. Perform them in that order: a version is kept before it is adopted, and adopted before a request carries it.
//!
//! What it deliberately does not do: it makes no memory (a [`BuildOrder`] describes the memory to make), writes no JSON
//! (a [`Plan`] describes a request; `throughline_transcript::request` writes it) and stores nothing.
//!
//! A whole driver, with its store in memory and with drafts made in place:
//!
//! ```
//! use std::sync::Arc;
//!
//! use throughline_engine::{
//!     CompactionSettings, Engine, Input, MemoryAdoption, Output, Plan, Time, UpdateFailure,
//!     UpdateFailureClass, Version,
//! };
//! use throughline_memory::compact::{Form, Options, compact_after};
//! use throughline_transcript::digest::Chain;
//! use throughline_transcript::message::{Block, Message, Role};
//! use throughline_transcript::tokens::Counter;
//!
//! #[derive(Default)]
//! struct Driver {
//!     versions: Vec<Arc<Version>>,
//!     adopted: Option<MemoryAdoption>,
//! }
//!
//! impl Driver {
//!     /// Performs all outputs; returns the request to send, if there is one.
//!     fn drain(&mut self, engine: &mut Engine, now: Time) -> Option<Plan> {
//!         let mut request = None;
//!         while let Some(output) = engine.poll() {
//!             match output {
//!                 // Takes milliseconds. A real driver uses a thread, and a timer for the wait below.
//!                 Output::Draft(order) => {
//!                     let count = |text: &str| Counter::reference().text(text);
//!                     let options = Options {
//!                         form: Form::UserMessage,
//!                         focus: order.focus.as_deref(),
//!                         prior: order.prior.as_ref().map(|prior| &prior.memory),
//!                         ..Options::new(order.tokens_max as usize, &count)
//!                     };
//!                     let result = compact_after(Chain::at(order.chain), &order.messages, &options)
//!                         .map(|compacted| compacted.memory)
//!                         .map_err(|error| failure(UpdateFailureClass::Draft, error.to_string()));
//!                     engine.handle(now, Input::Drafted { ticket: order.ticket, result });
//!                 }
//!                 Output::Update(update) => {
//!                     let message = "no model is set to make memories".to_owned();
//!                     let result = Err(failure(UpdateFailureClass::NoCompactor, message));
//!                     engine.handle(now, Input::Updated { ticket: update.order.ticket, result });
//!                 }
//!                 Output::CancelUpdate(_) => {}
//!                 Output::Keep(version) => self.versions.push(version),
//!                 Output::Adopt(adoption) => self.adopted = Some(adoption),
//!                 Output::Request(plan) => request = Some(plan),
//!                 // The draft answers the wait within this loop.
//!                 Output::Wait { .. } => {}
//!                 // Here a driver loads the session again: see `Engine::restore`.
//!                 Output::Reload { .. } => {}
//!                 Output::Event(event) => println!("{event}"),
//!             }
//!         }
//!         request
//!     }
//! }
//!
//! fn failure(class: UpdateFailureClass, message: String) -> UpdateFailure {
//!     UpdateFailure { class, message, retry_after_ms: None }
//! }
//!
//! let mut engine = Engine::new(CompactionSettings::new(20_000));
//! let mut driver = Driver::default();
//! for minute in 0..60 {
//!     let now = Time::from_ms(minute * 60_000);
//!     let text = format!("Step {minute}: please look at module_{minute}. ").repeat(60);
//!     engine.handle(now, Input::Appended(Message::new(Role::User, vec![Block::text(text)])));
//!     engine.handle(now, Input::RequestWanted);
//!     let plan = driver.drain(&mut engine, now).expect("drafts are made in place");
//!
//!     // What to send: the memory, if there is one, and the messages from `first` on.
//!     assert_eq!(plan.first, driver.adopted.as_ref().map_or(0, |adoption| adoption.cover));
//!     assert_eq!(plan.memory.is_some(), driver.adopted.is_some());
//!     assert!(!plan.is_too_large);
//!
//!     engine.handle(now, Input::Appended(Message::new(Role::Assistant, vec![Block::text("Done.")])));
//!     engine.handle(now, Input::Answered { context: None });
//!     driver.drain(&mut engine, now);
//! }
//! assert!(driver.adopted.is_some() && !driver.versions.is_empty());
//! ```

mod budget;
mod engine;
mod event;
mod input;
mod live;
mod output;
mod phase;
mod settings;
mod version;
mod vocabulary;

pub use budget::{Budget, Mark, Time};
pub use engine::{Engine, Preview, Savings, SessionStatus, Snapshot};
pub use event::{
    BuildKind, CompactionOutcome, DropReason, DueReason, EngineEvent, Halt, RefusalReason,
    SkipReason,
};
pub use input::{Compaction, Input, PreviousEpoch, SwapTiming};
pub use output::{AwaitedBuild, BuildOrder, Output, Plan, UpdateOrder};
pub use phase::{Phase, PhaseDetector};
pub use settings::{
    CompactionSettings, CompactorChoice, Economy, EconomyRule, Fallback, Mode, Spending, Triggers,
    UpdateStep,
};
pub use version::Version;
pub use vocabulary::{
    MemoryAdoption, PIN, Pin, Requester, Ticket, UpdateFailure, UpdateFailureClass, VersionOrigin,
};

/// Tests the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
