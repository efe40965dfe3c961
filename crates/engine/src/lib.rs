//! When a conversation is compacted, by what, and what the next request is made of.
//!
//! An [`Engine`] stands for one session. It is told what happens ([`Input`]: a message was added, a request is wanted,
//! the provider reported its usage, a memory is ready, ...) and says what to do ([`Output`]: build a memory in the
//! background, keep it, send this request, wait). It has no clock, no network, no files and no threads; the time is an
//! argument. Whoever drives it does what the outputs say and feeds the answers back.
//!
//! **The rule**: drain [`Engine::poll`] before you wait or send. Several inputs may be handled first; their outputs queue
//! in order.
//!
//! What it deliberately does not do: it makes no memory (it orders them, see [`BuildOrder`]), writes no JSON (a [`Plan`] says
//! what a request is made of; `throughline_transcript::request` writes it) and stores nothing.
//!
//! ```
//! use throughline_engine::{Engine, Input, Output, CompactionSettings, Time};
//! use throughline_transcript::message::{Block, Message, Role};
//!
//! let mut engine = Engine::new(CompactionSettings::new(200_000));
//! let mut now = Time::from_ms(0);
//! engine.handle(now, Input::Appended(Message::new(Role::User, vec![Block::text("Hello.")])));
//! engine.handle(now, Input::RequestWanted);
//! let mut plan = None;
//! while let Some(output) = engine.poll() {
//!     if let Output::Request(request) = output {
//!         plan = Some(request);
//!     }
//! }
//! let plan = plan.expect("nothing is full, so the request can go");
//! assert_eq!((plan.memory, plan.first), (None, 0));
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
    BuildKind, CompactionOutcome, DropReason, EngineEvent, Halt, Reason, RefusalReason, SkipReason,
};
pub use input::{Compaction, Input, PreviousEpoch, Swapping};
pub use output::{AwaitedBuild, BuildOrder, Output, Plan, UpdateOrder};
pub use phase::{Phase, PhaseDetector};
pub use settings::{
    CompactionSettings, CompactorChoice, Economy, EconomyRule, Fallback, Mode, Spending, Step,
    Triggers,
};
pub use version::{PIN, Version};
pub use vocabulary::{
    MemoryAdoption, Pin, Requester, Ticket, UpdateFailure, UpdateFailureClass, VersionOrigin,
};

/// The example of the README is tested too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
