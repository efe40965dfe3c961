//! The engine: what is known of a session, and what follows from what happens to it.

mod build;
mod builds;
mod economy;
mod failures;
mod flight;
mod halts;
mod history;
mod memories;
mod progress;
mod request;
mod requested;
mod status;
mod swap;

use std::collections::VecDeque;
use std::sync::Arc;

use throughline_memory::document::Memory;
use throughline_transcript::digest::{Chain, Digest};
use throughline_transcript::message::Message;
use throughline_transcript::tokens::ContextMeter;

use self::build::TailSize;
use self::builds::Builds;
pub use self::economy::Savings;
use self::economy::{Account, Pace};
use self::failures::Failures;
use self::flight::Flight;
use self::halts::{HaltState, Halts};
use self::memories::Memories;
use self::progress::Progress;
use self::request::WaitingRequest;
use self::requested::PendingCompaction;
pub use self::status::{Preview, SessionStatus};
use crate::budget::{Budget, Time};
use crate::event::{DropReason, DueReason, EngineEvent, Halt, SkipReason};
use crate::input::Input;
use crate::live::Live;
use crate::output::Output;
use crate::settings::{CompactionSettings, CompactorChoice, Fallback, Mode};
use crate::version::{AdoptedVersion, Version};
use crate::vocabulary::{MemoryAdoption, Pin, VersionOrigin};

/// One session. See the crate for how it is driven.
///
/// Its state has parts, each with its own file and methods; only those methods write the part's fields.
#[derive(Debug)]
pub struct Engine {
    settings: CompactionSettings,
    overhead: Overhead,
    live: Live,
    /// Whether anything but what was stored is known. A session that was only opened starts nothing.
    is_awake: bool,
    epoch: u64,
    /// Swaps in the life of this engine.
    swaps: u64,
    memories: Memories,
    builds: Builds,
    failures: Failures,
    flight: Flight,
    meter: ContextMeter,
    /// Tokens of messages after the answer to the last reported request, estimated.
    added_tokens: u64,
    progress: Progress,
    pace: Pace,
    account: Account,
    halts: Halts,
    /// A compaction that was requested and is not finished.
    pending: Option<PendingCompaction>,
    waiting: Option<WaitingRequest>,
    outputs: VecDeque<Output>,
}

/// What every request carries besides memory and messages: system prompt and tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Overhead {
    tokens: u64,
    bytes: u64,
}

/// Everything that an engine needs to resume a stored session.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What requests are made with; `None` if it was never stored.
    pub adoption: Option<MemoryAdoption>,
    /// The memory that it names.
    pub version: Option<Version>,
    /// Digest of the messages that are covered.
    pub chain: Digest,
    /// The messages after them.
    pub messages: Vec<Message>,
    /// What the adoption quotes, if it quotes anything: those messages.
    pub quoted: Vec<Message>,
    /// A newer version that was not adopted.
    pub ready: Option<Version>,
    /// Number of the newest version that was ever kept.
    pub number: u32,
    /// When the last request was sent.
    pub last_request_at: Option<Time>,
    /// Pinned facts.
    pub pins: Vec<Pin>,
    /// What estimates of tokens are to be multiplied with, in thousandths, if that is known.
    pub ratio_permille: Option<u64>,
    /// What the session has saved and spent, if that is known.
    pub savings: Option<Savings>,
}

impl Default for Snapshot {
    fn default() -> Self {
        Self {
            adoption: None,
            version: None,
            chain: Chain::new().digest(),
            messages: Vec::new(),
            quoted: Vec::new(),
            ready: None,
            number: 0,
            last_request_at: None,
            pins: Vec::new(),
            ratio_permille: None,
            savings: None,
        }
    }
}

impl Engine {
    /// An engine for a session that has not begun.
    #[must_use]
    pub fn new(settings: CompactionSettings) -> Self {
        Self::restore(settings, Snapshot::default())
    }

    /// An engine that resumes a stored session. It starts nothing before the first input.
    #[must_use]
    pub fn restore(settings: CompactionSettings, snapshot: Snapshot) -> Self {
        let cover = snapshot
            .version
            .as_ref()
            .map_or(0, |version| version.cover());
        let mut live = Live::new(cover, snapshot.chain);
        let requests = snapshot.savings.map_or(0, |savings| savings.requests);
        let mut progress = Progress::new(requests, settings.triggers.phases);
        let (epoch, swapped_at) = snapshot
            .adoption
            .as_ref()
            .map_or((0, 0), |adoption| (adoption.epoch, adoption.at_messages));
        for message in snapshot.messages {
            let is_since = live.end() >= swapped_at;
            progress.look_back_at(&message);
            let turns = u32::from(message.begins_turn());
            let facts = live.push(message, &settings.counter);
            if is_since {
                progress.count(turns, facts);
            }
        }
        let adopted = snapshot
            .adoption
            .zip(snapshot.version)
            .map(|(adoption, version)| {
                let request = adoption
                    .quoted
                    .map(|(first, _)| crate::live::Request::of(first, &snapshot.quoted).text);
                AdoptedVersion::new(Arc::new(version), adoption, request.as_deref(), &settings)
            });
        let ready = memories::stored_ready(snapshot.ready, cover, &live);
        Self {
            settings,
            overhead: Overhead::default(),
            live,
            is_awake: false,
            epoch,
            swaps: 0,
            memories: Memories::new(adopted, ready, snapshot.number, snapshot.pins),
            builds: Builds::default(),
            failures: Failures::default(),
            flight: Flight::new(swapped_at, snapshot.last_request_at),
            meter: snapshot
                .ratio_permille
                .map_or_else(ContextMeter::default, ContextMeter::corrected_by),
            added_tokens: 0,
            progress,
            pace: Pace::default(),
            account: snapshot.savings.map_or_else(Account::default, Account::of),
            halts: Halts::default(),
            pending: None,
            waiting: None,
            outputs: VecDeque::new(),
        }
    }

    /// Takes in what happened at `now`. Drain [`Engine::poll`] before you wait or send.
    pub fn handle(&mut self, now: Time, input: Input) {
        self.is_awake |= !matches!(
            input,
            Input::Overhead { .. }
                | Input::Configured(_)
                | Input::FrameChanged
                | Input::Given(_)
                | Input::Before(_)
                | Input::Pin(_)
                | Input::Unpin { .. }
        );
        match input {
            Input::Overhead { tokens, bytes } => self.overhead(tokens, bytes),
            Input::Appended(message) => self.appended(now, message),
            Input::Truncated { messages } => self.truncated(messages),
            Input::Cleared => self.cleared(),
            Input::RequestWanted => self.request_wanted(now),
            Input::AnswerBegun => self.answer_begun(now),
            Input::Answered { context } => self.answered(now, context),
            Input::Overflowed { window } => self.overflowed(window),
            Input::Drafted { ticket, result } => self.drafted(now, ticket, result),
            Input::Updated { ticket, result } => self.updated(now, ticket, result),
            Input::WaitedEnough => self.waited_enough(now),
            Input::Compact(compaction) => self.compaction_wanted(now, compaction),
            Input::Cancel => self.cancelled(),
            Input::Before(before) => self.before(*before),
            Input::Undo => self.undo(),
            Input::Pin(pin) => self.memories.pin(pin),
            Input::Unpin { id } => self.memories.unpin(&id),
            Input::PhaseEnded => self.progress.announce_phase(),
            Input::Configured(settings) => self.configured(*settings),
            Input::Given(memory) => self.given(*memory),
            Input::FrameChanged => self.frame_changed(),
        }
        self.continue_waiting(now);
        self.build_if_due(now);
    }

    /// The next thing to do; `None` when there is nothing left.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The settings.
    #[must_use]
    pub fn settings(&self) -> &CompactionSettings {
        &self.settings
    }

    /// The memory that requests are made with.
    #[must_use]
    pub fn memory(&self) -> Option<&Arc<Version>> {
        self.memories.adopted().map(|adopted| &adopted.version)
    }

    /// Messages of the whole transcript.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.live.end()
    }

    /// The messages that are not covered.
    #[must_use]
    pub fn tail(&self) -> &[Message] {
        self.live.messages()
    }

    /// Number of the newest memory version, adopted or not; 0 for none.
    #[must_use]
    pub fn newest_version(&self) -> u32 {
        self.memories.number()
    }

    /// Digest of the whole transcript.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.live
            .chain_at(self.live.end())
            .unwrap_or_else(|| Chain::new().digest())
    }

    /// The factor for token estimates that follows from the provider's reports, in thousandths; `None` before the first.
    #[must_use]
    pub fn ratio_permille(&self) -> Option<u64> {
        let calibration = self.meter.calibration();
        (calibration.reports() > 0).then(|| calibration.ratio_permille())
    }

    /// What the session has saved and spent, for [`Snapshot::savings`].
    #[must_use]
    pub fn savings(&self) -> Savings {
        self.account.savings(self.progress.requests())
    }

    /// Facts that are pinned.
    #[must_use]
    pub fn pins(&self) -> &[Pin] {
        self.memories.pins()
    }

    fn budget(&self) -> Budget {
        Budget {
            window: self.halts.window(self.settings.window),
            output_reserve: self.settings.output_reserve,
            overhead: self.overhead.tokens,
        }
    }

    /// The mark at which a swap is due.
    fn mark(&self) -> crate::budget::Mark {
        match self.settings.mode {
            Mode::Traditional => self.settings.threshold,
            Mode::Instant | Mode::Off => self.settings.hard,
        }
    }

    /// Estimated tokens of the next request, not corrected.
    fn estimate(&self) -> u64 {
        self.overhead.tokens + self.memories.adopted_tokens() + self.live.tokens()
    }

    /// Tokens of the next request.
    fn context(&self) -> u64 {
        self.meter.next(self.estimate(), self.added_tokens)
    }

    /// Tokens of the next request if this version were adopted.
    fn context_with(&self, version: &Version) -> u64 {
        let request = self.quoted_by(version.cover());
        let tokens = crate::version::tokens_with_request(
            version,
            request.as_ref().map(|request| request.text.as_str()),
            &self.settings,
        );
        self.meter
            .calibration()
            .apply(self.overhead.tokens + tokens + self.live.tokens_from(version.cover()))
    }

    /// Bytes of the next request.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.overhead.bytes + self.memories.adopted_bytes() + self.live.bytes()
    }

    /// Bytes of the next request if this version were adopted.
    fn bytes_with(&self, version: &Version) -> u64 {
        let quoted = self.quoted_by(version.cover());
        self.overhead.bytes
            + (version.text.len() + quoted.map_or(0, |request| request.text.len())) as u64
            + self.live.bytes_from(version.cover())
    }

    /// Whether nothing is to be compacted; ends that where something has changed.
    fn is_halted(&mut self) -> bool {
        let Some(stopped) = self.halts.stopped() else {
            return false;
        };
        let is_final = stopped.is_final();
        let has_grown = self.live.tokens() >= stopped.live_tokens + self.settings.step_tokens();
        let can_shrink =
            || self.context() > self.budget().limit() && self.cut(TailSize::Least) > stopped.cut;
        if !is_final && (has_grown || can_shrink()) {
            self.look_again();
            return false;
        }
        true
    }

    fn overhead(&mut self, tokens: u64, bytes: u64) {
        let overhead = Overhead { tokens, bytes };
        if overhead != self.overhead {
            self.overhead = overhead;
            self.look_again();
        }
    }

    /// Something has changed on which a halt may have depended.
    fn look_again(&mut self) {
        if self.halts.look_again() {
            self.event(EngineEvent::Resumed);
        }
    }

    /// Says that something that was due does not happen; once, until something changes.
    fn skip(&mut self, due: DueReason, reason: SkipReason) {
        if self.halts.skip(due, reason) {
            self.event(EngineEvent::Skipped { due, reason });
        }
    }

    fn stop(&mut self, halt: Halt) {
        if self.halts.is_stopped_by(&halt) {
            return;
        }
        self.event(EngineEvent::Halted(halt.clone()));
        let (live_tokens, cut) = (self.live.tokens(), self.cut(TailSize::Least));
        self.halts.stop(HaltState {
            halt,
            live_tokens,
            cut,
        });
    }

    fn event(&mut self, event: EngineEvent) {
        self.outputs.push_back(Output::Event(event));
    }

    fn configured(&mut self, settings: CompactionSettings) {
        if settings.window != self.settings.window {
            // What was learned was learned of another model.
            self.halts.forget_window();
        }
        let is_other_counter = settings.counter.family() != self.settings.counter.family();
        self.settings = settings;
        if is_other_counter {
            self.recount();
        }
        let finds_phases = self.settings.triggers.phases;
        self.progress
            .find_phases(finds_phases, self.live.messages());
        if self.settings.mode == Mode::Off && self.pending.is_none() {
            self.give_up_builds(DropReason::Cancelled);
        }
        self.halts.forget_undo();
        self.look_again();
    }

    /// The newest memory that could be swapped in, the model's before the draft unless it leaves too much.
    fn candidate(&self) -> Option<&Arc<Version>> {
        let goal = self.budget().at(self.settings.soft);
        let usable = |version: &&Arc<Version>| self.can_be_adopted(version);
        let ready = self.memories.ready().filter(usable);
        let draft = self
            .memories
            .draft()
            .map(|draft| &draft.version)
            .filter(usable)
            .filter(|_| self.may_use_drafts());
        match (ready, draft) {
            (Some(ready), Some(draft)) => {
                let (after, after_draft) = (self.context_with(ready), self.context_with(draft));
                let is_good = after <= after_draft
                    || (after <= goal
                        && (!self.memories.is_catch_up()
                            || after - after_draft <= self.catch_up_min()));
                Some(if is_good { ready } else { draft })
            }
            (Some(ready), None) => Some(ready),
            (None, draft) => draft,
        }
    }

    /// What is left behind the model's memory has to be so much for code to add it.
    fn catch_up_min(&self) -> u64 {
        self.settings.step_tokens() / 2
    }

    /// Whether the version covers more than is covered, and what it covers is still there.
    fn can_be_adopted(&self, version: &Version) -> bool {
        version.cover() > self.live.first()
            && self
                .live
                .chain_at(version.cover())
                .is_some_and(|chain| version.fits(chain))
    }

    /// Whether a memory by code alone may be swapped in.
    fn may_use_drafts(&self) -> bool {
        self.settings.compactor == CompactorChoice::Extractive
            || self.settings.fallback == Fallback::Draft
    }

    fn given(&mut self, memory: Memory) {
        let cover = memory.cover.messages;
        let fits = self
            .live
            .chain_at(cover)
            .is_some_and(|chain| memory.cover.digest == chain);
        if !fits {
            self.event(EngineEvent::Skipped {
                due: DueReason::Given,
                reason: SkipReason::NothingToCover,
            });
            return;
        }
        // A memory that was made, or is being made, from another memory would undo the edit.
        self.give_up_builds(DropReason::Overtaken);
        self.memories.forget_candidates();
        let version = Version::new(memory, VersionOrigin::Given, &self.settings);
        self.adopt(Arc::new(version), DueReason::Given, None);
    }
}
