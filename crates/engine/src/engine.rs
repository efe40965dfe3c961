//! The engine: what is known of a session, and what follows from what happens to it.

mod asked;
mod build;
mod economy;
mod history;
mod request;
mod status;
mod swap;

use std::collections::VecDeque;
use std::sync::Arc;

use throughline_memory::document::Memory;
use throughline_transcript::digest::{Chain, Digest};
use throughline_transcript::message::Message;
use throughline_transcript::tokens::ContextMeter;

use self::asked::Asked;
use self::build::{Drafted, Keeping, Running};
pub use self::economy::Savings;
use self::economy::{Account, Pace};
use self::request::Waiting;
pub use self::status::{Preview, SessionStatus};
use crate::budget::{Budget, Time};
use crate::event::{DropReason, EngineEvent, Halt, Reason, SkipReason, UpdateFailure};
use crate::input::{Input, Pin};
use crate::live::Live;
use crate::output::{MemoryAdoption, Output};
use crate::phase::{Phase, PhaseDetector};
use crate::settings::{CompactionSettings, CompactorChoice, Fallback, Mode};
use crate::version::{Adopted, Past, Version, VersionOrigin};

/// One session. See the crate for how it is driven.
#[derive(Debug)]
pub struct Engine {
    settings: CompactionSettings,
    overhead_tokens: u64,
    overhead_bytes: u64,
    live: Live,
    /// Whether anything but what was stored is known. A session that was only opened starts nothing.
    is_awake: bool,
    epoch: u64,
    /// Rises whenever requests no longer begin as they did: with each epoch, and within one where its frame changes.
    prefix: u64,
    /// Swaps in the life of this engine.
    swaps: u64,
    /// Reasoning in messages before this belongs to another prefix.
    thinking_from: usize,
    adopted: Option<Adopted>,
    past: Option<Past>,
    /// The newest memory by the model that is not adopted.
    ready: Option<Arc<Version>>,
    /// Number of the version in `ready` that was made to be looked at.
    prepared: Option<u32>,
    /// The newest draft.
    draft: Option<Drafted>,
    drafting: Option<Running>,
    updating: Option<Running>,
    tickets: u64,
    /// Number of the newest version that was kept.
    number: u32,
    pins: Vec<Pin>,
    meter: ContextMeter,
    /// Estimated tokens of the last request, until its answer is reported.
    asked_tokens: Option<u64>,
    /// Tokens of messages after the answer to the last reported request, estimated.
    added_tokens: u64,
    last_request_at: Option<Time>,
    /// Prefix of the request that was planned and is not answered yet.
    in_flight: Option<u64>,
    /// Whether the provider has not begun to answer the request that was planned.
    is_on_its_way: bool,
    /// Live tokens when the last order was made in this epoch.
    ordered_at: Option<u64>,
    /// Live tokens when the model was last asked in this epoch.
    model_ordered_at: Option<u64>,
    calls_since_order: u32,
    since_swap: SinceSwap,
    pace: Pace,
    account: Account,
    phases: PhaseDetector,
    phase: Option<Phase>,
    must_shrink: bool,
    window_learned: Option<u64>,
    halt: Option<Stopped>,
    /// Live tokens when a swap was taken back: nothing is swapped in by itself before they have grown.
    undone_at: Option<u64>,
    /// What was skipped last, so that it is said once.
    skipped: Option<(Reason, std::mem::Discriminant<SkipReason>)>,
    /// The model is not asked before this.
    rest_until: Option<Time>,
    /// Whether it was said that the model is not asked.
    is_rest_said: bool,
    /// Failures of the model in a row.
    failures: u32,
    /// Failures of drafts in a row.
    draft_failures: u32,
    /// Why the model has made no memory since the last one.
    no_model: Option<UpdateFailure>,
    asked: Option<Asked>,
    waiting: Option<Waiting>,
    outputs: VecDeque<Output>,
}

/// What has happened since the last swap.
#[derive(Clone, Copy, Debug, Default)]
struct SinceSwap {
    turns: u32,
    tool_calls: u32,
    requests: u64,
}

/// Why nothing is compacted, and how things stood when that was found.
#[derive(Clone, Debug)]
struct Stopped {
    halt: Halt,
    live_tokens: u64,
    /// How much could have been covered at most.
    cut: usize,
}

/// Everything that an engine needs to go on with a session that was stored.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What requests are made with; `None` if that was never said.
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

    /// An engine that goes on with a stored session. It starts nothing by itself: that begins with the first input.
    #[must_use]
    pub fn restore(settings: CompactionSettings, snapshot: Snapshot) -> Self {
        let cover = snapshot
            .version
            .as_ref()
            .map_or(0, |version| version.cover());
        let mut live = Live::new(cover, snapshot.chain);
        let mut phases = PhaseDetector::default();
        let mut since_swap = SinceSwap {
            requests: snapshot.savings.map_or(0, |savings| savings.requests),
            ..SinceSwap::default()
        };
        let swapped_at = snapshot
            .adoption
            .as_ref()
            .map_or(0, |adoption| adoption.at_messages);
        for message in snapshot.messages {
            let is_since = live.end() >= swapped_at;
            phases.push(&message);
            let turns = u32::from(message.begins_turn());
            let facts = live.push(message, &settings.counter);
            if is_since {
                since_swap.turns += turns;
                since_swap.tool_calls += facts.tool_calls;
            }
        }
        let epoch = snapshot
            .adoption
            .as_ref()
            .map_or(0, |adoption| adoption.epoch);
        let adopted = snapshot
            .adoption
            .zip(snapshot.version)
            .map(|(adoption, version)| {
                let request = adoption
                    .quoted
                    .map(|(first, _)| crate::live::Request::of(first, &snapshot.quoted).text);
                Adopted::new(Arc::new(version), adoption, request.as_deref(), &settings)
            });
        let ready = snapshot
            .ready
            .filter(|version| version.cover() > cover)
            .filter(|version| {
                live.chain_at(version.cover())
                    .is_some_and(|chain| version.fits(chain))
            })
            .map(Arc::new);
        Self {
            settings,
            overhead_tokens: 0,
            overhead_bytes: 0,
            live,
            is_awake: false,
            epoch,
            prefix: 0,
            swaps: 0,
            thinking_from: swapped_at,
            adopted,
            past: None,
            ready,
            prepared: None,
            draft: None,
            drafting: None,
            updating: None,
            tickets: 0,
            number: snapshot.number,
            pins: snapshot.pins,
            meter: snapshot
                .ratio_permille
                .map_or_else(ContextMeter::default, ContextMeter::corrected_by),
            asked_tokens: None,
            added_tokens: 0,
            last_request_at: snapshot.last_request_at,
            in_flight: None,
            is_on_its_way: false,
            ordered_at: None,
            model_ordered_at: None,
            calls_since_order: 0,
            since_swap,
            pace: Pace::default(),
            account: snapshot.savings.map_or_else(Account::default, Account::of),
            phases,
            phase: None,
            must_shrink: false,
            window_learned: None,
            halt: None,
            undone_at: None,
            skipped: None,
            rest_until: None,
            is_rest_said: false,
            failures: 0,
            draft_failures: 0,
            no_model: None,
            asked: None,
            waiting: None,
            outputs: VecDeque::new(),
        }
    }

    /// Takes in what happened at `now`. Drain [`Engine::poll`] afterwards.
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
            Input::AnswerBegun => self.seen(now),
            Input::Answered { context } => self.answered(now, context),
            Input::Overflowed { window } => self.overflowed(window),
            Input::Drafted { ticket, result } => self.drafted(now, ticket, result),
            Input::Updated { ticket, result } => self.updated(now, ticket, result),
            Input::WaitedEnough => self.waited_enough(now),
            Input::Compact(compaction) => self.compaction_wanted(now, compaction),
            Input::Cancel => self.cancelled(),
            Input::Before(before) => self.before(*before),
            Input::Undo => self.undo(),
            Input::Pin(pin) => self.pin(pin),
            Input::Unpin { id } => self.unpin(&id),
            Input::PhaseEnded => self.phase = Some(Phase::Announced),
            Input::Configured(settings) => self.configured(*settings),
            Input::Given(memory) => self.given(*memory),
            Input::FrameChanged => self.frame_changed(),
        }
        self.go_on(now);
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
        self.adopted.as_ref().map(|adopted| &adopted.version)
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
        self.number
    }

    /// Digest of the whole transcript.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.live
            .chain_at(self.live.end())
            .unwrap_or_else(|| Chain::new().digest())
    }

    /// What estimates of tokens are multiplied with, in thousandths, by what the provider has said; `None` before that.
    #[must_use]
    pub fn ratio_permille(&self) -> Option<u64> {
        let calibration = self.meter.calibration();
        (calibration.reports() > 0).then(|| calibration.ratio_permille())
    }

    /// What the session has saved and spent, for [`Snapshot::savings`].
    #[must_use]
    pub fn savings(&self) -> Savings {
        self.account.savings(self.since_swap.requests)
    }

    /// Facts that are pinned.
    #[must_use]
    pub fn pins(&self) -> &[Pin] {
        &self.pins
    }

    fn budget(&self) -> Budget {
        Budget {
            window: self.window_learned.map_or(self.settings.window, |learned| {
                learned.min(self.settings.window)
            }),
            output_reserve: self.settings.output_reserve,
            overhead: self.overhead_tokens,
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
        self.overhead_tokens
            + self.adopted.as_ref().map_or(0, |adopted| adopted.tokens)
            + self.live.tokens()
    }

    /// Tokens of the next request.
    fn context(&self) -> u64 {
        self.meter.next(self.estimate(), self.added_tokens)
    }

    /// Tokens of the next request if this version were adopted.
    fn context_with(&self, version: &Version) -> u64 {
        let request = self.quoted_by(version.cover());
        let (_, tokens) = crate::version::with_request(
            version,
            request.as_ref().map(|request| request.text.as_str()),
            &self.settings,
        );
        self.meter
            .calibration()
            .apply(self.overhead_tokens + tokens + self.live.tokens_from(version.cover()))
    }

    /// Bytes of the next request.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.overhead_bytes
            + self
                .adopted
                .as_ref()
                .map_or(0, |adopted| adopted.text.len() as u64)
            + self.live.bytes()
    }

    /// Bytes of the next request if this version were adopted.
    fn bytes_with(&self, version: &Version) -> u64 {
        let quoted = self.quoted_by(version.cover());
        self.overhead_bytes
            + (version.text.len() + quoted.map_or(0, |request| request.text.len())) as u64
            + self.live.bytes_from(version.cover())
    }

    /// Whether nothing is to be compacted; ends that where something has changed.
    fn is_halted(&mut self) -> bool {
        let Some(stopped) = &self.halt else {
            return false;
        };
        let is_final = matches!(stopped.halt, Halt::Overhead { .. });
        let has_grown = self.live.tokens() >= stopped.live_tokens + self.settings.step_tokens();
        let can_shrink =
            || self.context() > self.budget().limit() && self.cut(Keeping::Least) > stopped.cut;
        if !is_final && (has_grown || can_shrink()) {
            self.look_again();
            return false;
        }
        true
    }

    fn overhead(&mut self, tokens: u64, bytes: u64) {
        if (tokens, bytes) != (self.overhead_tokens, self.overhead_bytes) {
            self.overhead_tokens = tokens;
            self.overhead_bytes = bytes;
            self.look_again();
        }
    }

    /// Something has changed on which a halt may have depended.
    fn look_again(&mut self) {
        self.skipped = None;
        if self.halt.take().is_some() {
            self.event(EngineEvent::Resumed);
        }
    }

    /// Says that something that was due does not happen; once, until something changes.
    fn skip(&mut self, due: Reason, reason: SkipReason) {
        let skipped = Some((due, std::mem::discriminant(&reason)));
        if self.skipped != skipped {
            self.skipped = skipped;
            self.event(EngineEvent::Skipped { due, reason });
        }
    }

    fn stop(&mut self, halt: Halt) {
        if self.halt.as_ref().is_some_and(|stopped| {
            std::mem::discriminant(&stopped.halt) == std::mem::discriminant(&halt)
        }) {
            return;
        }
        self.event(EngineEvent::Halted(halt.clone()));
        self.halt = Some(Stopped {
            halt,
            live_tokens: self.live.tokens(),
            cut: self.cut(Keeping::Least),
        });
    }

    fn event(&mut self, event: EngineEvent) {
        self.outputs.push_back(Output::Event(event));
    }

    fn configured(&mut self, settings: CompactionSettings) {
        if settings.window != self.settings.window {
            // What was learned was learned of another model.
            self.window_learned = None;
        }
        let is_other_counter = settings.counter.family() != self.settings.counter.family();
        self.settings = settings;
        if is_other_counter {
            self.recount();
        }
        if self.settings.mode == Mode::Off && self.asked.is_none() {
            self.give_up_builds(DropReason::Cancelled);
        }
        self.undone_at = None;
        self.look_again();
    }

    /// The newest memory that could be swapped in, the model's before the draft unless it leaves too much.
    fn candidate(&self) -> Option<&Arc<Version>> {
        let goal = self.budget().at(self.settings.soft);
        let usable = |version: &&Arc<Version>| self.can_be_adopted(version);
        let ready = self.ready.as_ref().filter(usable);
        let draft = self
            .draft
            .as_ref()
            .map(|draft| &draft.version)
            .filter(usable)
            .filter(|_| self.may_use_drafts());
        match (ready, draft) {
            (Some(ready), Some(draft)) => {
                let (after, after_draft) = (self.context_with(ready), self.context_with(draft));
                let is_good = after <= after_draft
                    || (after <= goal
                        && (!self.is_catch_up() || after - after_draft <= self.catch_up_min()));
                Some(if is_good { ready } else { draft })
            }
            (Some(ready), None) => Some(ready),
            (None, draft) => draft,
        }
    }

    /// Whether the draft is the model's memory with what came after it.
    fn is_catch_up(&self) -> bool {
        let (Some(ready), Some(draft)) = (&self.ready, &self.draft) else {
            return false;
        };
        draft.prior().is_some_and(|prior| Arc::ptr_eq(prior, ready))
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

    fn pin(&mut self, pin: Pin) {
        self.pins.retain(|known| known.id != pin.id);
        self.pins.push(pin);
    }

    /// The fact leaves the ledger with the next swap.
    fn unpin(&mut self, id: &str) {
        self.pins.retain(|pin| pin.id != id);
    }

    fn given(&mut self, memory: Memory) {
        let cover = memory.cover.messages;
        let fits = self
            .live
            .chain_at(cover)
            .is_some_and(|chain| memory.cover.digest == chain);
        if !fits {
            self.event(EngineEvent::Skipped {
                due: Reason::Given,
                reason: SkipReason::NothingToCover,
            });
            return;
        }
        // What was made, or is being made, on the ground of another memory would undo the edit.
        self.give_up_builds(DropReason::Overtaken);
        self.ready = None;
        self.draft = None;
        let version = Version::new(memory, VersionOrigin::Given, &self.settings);
        self.adopt(Arc::new(version), Reason::Given, None);
    }
}
