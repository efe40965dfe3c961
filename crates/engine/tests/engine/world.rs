//! What surrounds an engine, without clock, network and files. Every output is checked as it comes.

mod checks;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use throughline_engine::{
    BuildKind, BuildOrder, Compaction, CompactionOutcome, CompactionSettings, Engine, EngineEvent,
    Input, MemoryAdoption, Plan, Requester, Snapshot, Spending, SwapTiming, Ticket, Time,
    UpdateOrder, Version,
};
use throughline_memory::compact::{Form, Options, compact_after};
use throughline_memory::document::Memory;
use throughline_transcript::body::read_message;
use throughline_transcript::digest::{Chain, prefix_digests};
use throughline_transcript::json::Raw;
use throughline_transcript::message::Message;
use throughline_transcript::request::{self, Frame, MemoryPlace, message};
use throughline_transcript::usage::ContextSize;
use throughline_transcript::wire::Wire;

use super::messages::calls;
use super::model::{Model, failure};

/// A request that went out.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) plan: Plan,
    pub(crate) body: String,
    /// Tokens by the provider's count.
    pub(crate) tokens: u64,
}

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) settings: CompactionSettings,
    pub(crate) frame: Frame,
    pub(crate) now: i64,
    pub(crate) archive: Vec<Message>,
    pub(crate) events: Vec<EngineEvent>,
    pub(crate) sent: Vec<Sent>,
    /// Drafts are answered at once unless this is set.
    pub(crate) holds_drafts: bool,
    pub(crate) drafts: VecDeque<BuildOrder>,
    /// Orders of drafts so far.
    pub(crate) draft_orders: Vec<BuildOrder>,
    pub(crate) drafts_fail: bool,
    pub(crate) model: Model,
    pub(crate) model_script: VecDeque<Model>,
    pub(crate) latency_ms: i64,
    pub(crate) updates: Vec<(i64, UpdateOrder)>,
    pub(crate) update_orders: Vec<UpdateOrder>,
    pub(crate) cancelled: Vec<Ticket>,
    /// Answers of cancelled updates come all the same.
    pub(crate) is_rude: bool,
    pub(crate) kept: BTreeMap<u32, Arc<Version>>,
    pub(crate) adoption: Option<MemoryAdoption>,
    pub(crate) outcomes: HashMap<u64, Vec<CompactionOutcome>>,
    /// What the provider counts for a thousand tokens of ours.
    pub(crate) factor: u64,
    /// What it reads from its cache of what it was sent before, thousandths.
    pub(crate) cached_permille: u64,
    pub(crate) overhead: (u64, u64),
    pub(crate) waits: Vec<BuildKind>,
    /// Whether the transcript breaks the rules of the provider already.
    pub(crate) is_broken: bool,
    pub(crate) pins: Vec<throughline_engine::Pin>,
    wait_until: Option<i64>,
    /// Epoch, where reasoning begins to count, and the body but for its end.
    last_body: Option<((u64, usize), String)>,
    compactions: u64,
    /// The first compaction that the engine as it is knows of.
    asked_since: u64,
    last_epoch: u64,
}

/// CompactionSettings with which a model is asked whenever the memory changes.
pub(crate) fn settings(window: u64) -> CompactionSettings {
    let mut settings = CompactionSettings::new(window);
    settings.economy.spending = Spending::Freely;
    settings
}

impl World {
    pub(crate) fn new(settings: CompactionSettings) -> Self {
        Self::on(Wire::Anthropic, settings)
    }

    pub(crate) fn on(wire: Wire, settings: CompactionSettings) -> Self {
        let place = match settings.tail_begins {
            throughline_transcript::cut::TailBegins::Anyhow => MemoryPlace::FirstUserMessage,
            throughline_transcript::cut::TailBegins::WithUser => MemoryPlace::SystemPrompt,
        };
        let tools = match wire {
            Wire::Anthropic => {
                r#"[{"name":"shell","description":"Runs it.","input_schema":{"type":"object","properties":{"cmd":{"type":"string"}}}}]"#
            }
            Wire::OpenAiChat => {
                r#"[{"type":"function","function":{"name":"shell","description":"Runs it.","parameters":{"type":"object","properties":{"cmd":{"type":"string"}}}}}]"#
            }
            Wire::OpenAiResponses => {
                r#"[{"type":"function","name":"shell","description":"Runs it.","parameters":{"type":"object","properties":{"cmd":{"type":"string"}}}}]"#
            }
        };
        let frame = Frame::new(
            wire,
            request::Settings {
                model: "m".to_owned(),
                max_tokens: Some(1_000),
                system: "You are a helper.".to_owned(),
                tools: Some(Raw::parse(tools).unwrap()),
                memory_place: place,
                ..request::Settings::default()
            },
        );
        Self {
            engine: Engine::new(settings.clone()),
            settings,
            frame,
            now: 1_000_000,
            archive: Vec::new(),
            events: Vec::new(),
            sent: Vec::new(),
            holds_drafts: false,
            drafts: VecDeque::new(),
            draft_orders: Vec::new(),
            drafts_fail: false,
            model: Model::Good,
            model_script: VecDeque::new(),
            latency_ms: 20_000,
            updates: Vec::new(),
            update_orders: Vec::new(),
            cancelled: Vec::new(),
            is_rude: false,
            kept: BTreeMap::new(),
            adoption: None,
            outcomes: HashMap::new(),
            factor: 1_000,
            cached_permille: 0,
            overhead: (0, 0),
            waits: Vec::new(),
            is_broken: false,
            pins: Vec::new(),
            wait_until: None,
            last_body: None,
            compactions: 0,
            asked_since: 1,
            last_epoch: 0,
        }
    }

    pub(crate) fn wire(&self) -> Wire {
        self.frame.wire()
    }

    // What happens.

    pub(crate) fn input(&mut self, input: Input) {
        self.handle(input);
        self.answer_drafts();
    }

    pub(crate) fn answer_drafts(&mut self) {
        while !self.holds_drafts
            && let Some(order) = self.drafts.pop_front()
        {
            self.answer_draft(order);
        }
    }

    /// Each requested compaction has one outcome, unless the process ended before.
    pub(crate) fn check_outcomes(&self) {
        for id in self.asked_since..=self.compactions {
            let outcomes = self.outcomes.get(&id).map_or(0, Vec::len);
            assert_eq!(outcomes, 1, "compaction {id}");
        }
    }

    fn handle(&mut self, input: Input) {
        self.engine.handle(Time::from_ms(self.now), input);
        let mut outputs = 0;
        while let Some(output) = self.engine.poll() {
            outputs += 1;
            assert!(outputs < 100, "one input has endless outputs");
            self.take(output);
        }
        assert_eq!(self.engine.messages(), self.archive.len());
        let first = self.archive.len() - self.engine.tail().len();
        assert_eq!(self.engine.tail(), &self.archive[first..]);
        assert_eq!(self.engine.status().cover, first);
    }

    pub(crate) fn answer_draft(&mut self, order: BuildOrder) {
        let ticket = order.ticket;
        let result = if self.drafts_fail {
            Err(failure("panicked", None))
        } else {
            Ok(self.draft(&order))
        };
        self.handle(Input::Drafted { ticket, result });
    }

    fn draft(&self, order: &BuildOrder) -> Memory {
        let counter = self.settings.counter;
        let count = |text: &str| counter.text(text);
        let options = Options {
            form: Form::UserMessage,
            focus: order.focus.as_deref(),
            prior: order.prior.as_ref().map(|prior| &prior.memory),
            ..Options::new(order.tokens_max as usize, &count)
        };
        compact_after(Chain::at(order.chain), &order.messages, &options)
            .unwrap()
            .memory
    }

    pub(crate) fn append(&mut self, raw: &Raw) {
        let message = read_message(raw).unwrap();
        self.archive.push(message.clone());
        self.input(Input::Appended(message));
    }

    pub(crate) fn append_all(&mut self, raws: &[Raw]) {
        for raw in raws {
            self.append(raw);
        }
    }

    pub(crate) fn user(&mut self, text: &str) {
        self.append(&message::user(self.wire(), text));
    }

    /// The model answers without a request: transcripts that begin in the middle.
    pub(crate) fn assistant(&mut self, text: &str) {
        self.append(&message::assistant(self.wire(), text));
    }

    pub(crate) fn call(&mut self, ids: &[&str]) {
        self.append_all(&calls(self.wire(), ids));
    }

    pub(crate) fn results(&mut self, results: &[(&str, &str)]) {
        let outputs: Vec<_> = results
            .iter()
            .map(|(id, text)| message::ToolOutput {
                call_id: (*id).to_owned(),
                text: (*text).to_owned(),
                is_error: false,
            })
            .collect();
        self.append_all(&message::tool_outputs(self.wire(), &outputs, None));
    }

    /// A request is sent; time passes until it may.
    pub(crate) fn request(&mut self) -> Sent {
        let count = self.sent.len();
        self.input(Input::RequestWanted);
        let mut steps = 0;
        while self.sent.len() == count {
            steps += 1;
            assert!(steps < 20, "the request is never sent");
            assert!(self.step(), "the request waits for nothing");
        }
        assert_eq!(self.sent.len(), count + 1, "one request, one answer");
        self.sent.last().unwrap().clone()
    }

    /// The model answers the last request.
    pub(crate) fn answered(&mut self, text: &str) {
        self.assistant(text);
        self.report();
    }

    pub(crate) fn report(&mut self) {
        let prompt = self.sent.last().unwrap().tokens;
        let output = self
            .archive
            .last()
            .map_or(0, |last| self.settings.counter.message(last) as u64);
        self.input(Input::Answered {
            context: Some(ContextSize {
                prompt,
                next: prompt + output * self.factor / 1000,
                cached: prompt * self.cached_permille / 1000,
            }),
        });
    }

    /// A turn: the user speaks, a request goes out, the model answers.
    pub(crate) fn turn(&mut self, user: &str, answer: &str) -> Sent {
        self.user(user);
        let sent = self.request();
        self.answered(answer);
        self.wait(1_000);
        sent
    }

    pub(crate) fn truncate(&mut self, messages: usize) {
        self.archive.truncate(messages);
        self.last_body = None;
        self.input(Input::Truncated { messages });
    }

    pub(crate) fn clear(&mut self) {
        self.archive.clear();
        self.pins.clear();
        self.kept.clear();
        self.input(Input::Cleared);
    }

    pub(crate) fn compact(&mut self, focus: Option<&str>, swapping: SwapTiming) -> u64 {
        self.compactions += 1;
        let id = self.compactions;
        self.input(Input::Compact(Compaction {
            id,
            focus: focus.map(str::to_owned),
            by: Requester::User,
            swapping,
        }));
        id
    }

    #[track_caller]
    pub(crate) fn outcome(&self, id: u64) -> CompactionOutcome {
        let outcomes = &self.outcomes[&id];
        assert_eq!(outcomes.len(), 1, "{outcomes:?}");
        outcomes[0].clone()
    }

    pub(crate) fn overhead(&mut self, tokens: u64, bytes: u64) {
        self.overhead = (tokens, bytes);
        self.input(Input::Overhead { tokens, bytes });
    }

    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut CompactionSettings)) {
        change(&mut self.settings);
        self.input(Input::Configured(Box::new(self.settings.clone())));
    }

    /// Another session that begins as this one.
    pub(crate) fn fork(&self) -> Self {
        let mut fork = Self::on(self.wire(), self.settings.clone());
        fork.archive.clone_from(&self.archive);
        fork.kept.clone_from(&self.kept);
        fork.adoption.clone_from(&self.adoption);
        fork.pins.clone_from(&self.pins);
        fork.last_epoch = self.last_epoch;
        fork.factor = self.factor;
        fork.engine = Engine::restore(self.settings.clone(), self.snapshot());
        let (tokens, bytes) = self.overhead;
        fork.overhead(tokens, bytes);
        fork
    }

    /// The process ends and another one opens the session.
    pub(crate) fn restart(&mut self) {
        let snapshot = self.snapshot();
        self.asked_since = self.compactions + 1;
        self.engine = Engine::restore(self.settings.clone(), snapshot);
        assert!(self.engine.poll().is_none(), "loading starts nothing");
        let before = self.events.len();
        let (tokens, bytes) = self.overhead;
        self.drafts.clear();
        self.updates.clear();
        self.wait_until = None;
        self.input(Input::Overhead { tokens, bytes });
        assert_eq!(self.events.len(), before, "loading starts nothing");
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let adoption = self.adoption.clone();
        let version = adoption
            .as_ref()
            .and_then(|adoption| adoption.version)
            .map(|number| stored(&self.kept[&number], &self.settings));
        let cover = version.as_ref().map_or(0, Version::cover);
        let quoted = adoption
            .as_ref()
            .and_then(|adoption| adoption.quoted)
            .map_or_else(Vec::new, |(from, to)| self.archive[from..to].to_vec());
        let chain = match cover.checked_sub(1) {
            None => Chain::new().digest(),
            Some(last) => prefix_digests(&self.archive)[last],
        };
        let newest = self.kept.values().next_back();
        Snapshot {
            version,
            chain,
            messages: self.archive[cover..].to_vec(),
            quoted,
            ready: newest
                .filter(|newest| {
                    Some(newest.memory.version)
                        > adoption.as_ref().and_then(|adoption| adoption.version)
                })
                .map(|newest| stored(newest, &self.settings)),
            number: newest.map_or(0, |newest| newest.memory.version),
            last_request_at: (!self.sent.is_empty()).then(|| Time::from_ms(self.now)),
            pins: self.pins.clone(),
            adoption,
            ratio_permille: None,
            savings: Some(self.engine.savings()),
        }
    }

    /// Time passes, and what is due comes.
    pub(crate) fn wait(&mut self, ms: i64) {
        let end = self.now + ms;
        while self.next_due().is_some_and(|due| due <= end) {
            self.step();
        }
        self.now = end;
    }

    fn next_due(&self) -> Option<i64> {
        let update = self.updates.iter().map(|(due, _)| *due).min();
        [update, self.wait_until].into_iter().flatten().min()
    }

    /// The next thing that is due.
    fn step(&mut self) -> bool {
        let Some(due) = self.next_due() else {
            return false;
        };
        self.now = self.now.max(due);
        if let Some(at) = self.updates.iter().position(|(at, _)| *at == due) {
            let (_, order) = self.updates.remove(at);
            self.answer_update(&order);
        } else {
            self.wait_until = None;
            self.input(Input::WaitedEnough);
        }
        true
    }

    pub(crate) fn answer_update(&mut self, order: &UpdateOrder) {
        let model = self
            .model_script
            .pop_front()
            .unwrap_or_else(|| self.model.clone());
        let ticket = order.order.ticket;
        let Some(result) = model.answer(order) else {
            return;
        };
        self.input(Input::Updated { ticket, result });
    }

    // What was reported.

    pub(crate) fn count(&self, is_it: impl Fn(&EngineEvent) -> bool) -> usize {
        self.events.iter().filter(|event| is_it(event)).count()
    }

    pub(crate) fn swaps(&self) -> usize {
        self.count(|event| matches!(event, EngineEvent::Swapped { .. }))
    }

    pub(crate) fn last_swap(&self) -> Option<&EngineEvent> {
        self.events
            .iter()
            .rfind(|event| matches!(event, EngineEvent::Swapped { .. }))
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.engine.memory().unwrap().memory
    }
}

/// Calls at the end that have no result.
pub(crate) fn open_calls(messages: &[Message]) -> usize {
    let answered: Vec<_> = messages
        .iter()
        .flat_map(Message::tool_results)
        .map(|result| &result.call_id)
        .collect();
    messages
        .iter()
        .flat_map(Message::tool_calls)
        .filter(|call| !answered.contains(&&call.id))
        .count()
}

/// A version as a store gives it back.
fn stored(version: &Version, settings: &CompactionSettings) -> Version {
    let memory = Memory::from_json(&version.memory.to_json()).unwrap();
    Version::new(memory, version.origin, settings)
}
