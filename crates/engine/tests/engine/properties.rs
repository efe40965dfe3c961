//! Any conversation, and anything that can happen to it, in any order. What must hold at each step is checked by the
//! world; here it is checked what must hold in the end.

use proptest::prelude::*;
use throughline_engine::{
    CompactionSettings, CompactorChoice, Fallback, Input, Mark, Mode, Pin, SwapTiming,
};
use throughline_memory::document::{Entry, Item, Origin, Provenance, Section, Status};
use throughline_transcript::cut::TailBegins;
use throughline_transcript::json::Raw;
use throughline_transcript::message::{Message, Role};
use throughline_transcript::request::message;
use throughline_transcript::wire::Wire;

use super::messages::prose;
use super::model::Model;
use super::world::{World, open_calls, settings};

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// The conversation continues: a message of the user, a request, an answer, results, whatever is next.
    Go(Saying),
    RequestTwice,
    Wait(i64),
    Truncate(u8),
    Clear,
    Fork,
    Restart,
    Undo,
    Pin(u8),
    Unpin(u8),
    Compact(bool, bool),
    Cancel,
    Configure(Change),
    Overflow(bool),
    NewFrame,
    PhaseEnded,
    Edited,
    AnswerTwice,
    HoldDrafts(bool),
    DraftsFail(bool),
    Rude(bool),
}

#[derive(Clone, Copy, Debug)]
enum Saying {
    Words(u16),
    Thinking(u16),
    Calls(u8),
    Image,
    Chinese(u16),
    Rule(u8),
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Mode(Mode),
    Compactor(CompactorChoice),
    Fallback(Fallback),
    Window(u64),
    ModelWait(u64),
    Keep(u32),
    Turns(Option<u32>),
}

fn saying() -> impl Strategy<Value = Saying> {
    prop_oneof![
        6 => (1u16..400).prop_map(Saying::Words),
        1 => (1_000u16..6_000).prop_map(Saying::Words),
        2 => (1u16..200).prop_map(Saying::Thinking),
        4 => (1u8..4).prop_map(Saying::Calls),
        1 => Just(Saying::Image),
        1 => (1u16..300).prop_map(Saying::Chinese),
        1 => any::<u8>().prop_map(Saying::Rule),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        prop_oneof![
            Just(Mode::Off),
            Just(Mode::Traditional),
            Just(Mode::Instant)
        ]
        .prop_map(Change::Mode),
        prop_oneof![
            Just(CompactorChoice::Model),
            Just(CompactorChoice::Extractive)
        ]
        .prop_map(Change::Compactor),
        prop_oneof![Just(Fallback::Draft), Just(Fallback::KeepHistory)].prop_map(Change::Fallback),
        (3_000u64..12_000).prop_map(Change::Window),
        (0u64..60_000).prop_map(Change::ModelWait),
        (0u32..300).prop_map(Change::Keep),
        proptest::option::of(1u32..5).prop_map(Change::Turns),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        24 => saying().prop_map(Step::Go),
        1 => Just(Step::RequestTwice),
        3 => (0i64..120_000).prop_map(Step::Wait),
        1 => any::<u8>().prop_map(Step::Truncate),
        1 => Just(Step::Fork),
        1 => Just(Step::Restart),
        1 => Just(Step::Undo),
        1 => any::<u8>().prop_map(Step::Pin),
        1 => any::<u8>().prop_map(Step::Unpin),
        2 => any::<(bool, bool)>().prop_map(|(focus, swaps)| Step::Compact(focus, swaps)),
        1 => Just(Step::Cancel),
        1 => change().prop_map(Step::Configure),
        1 => any::<bool>().prop_map(Step::Overflow),
        1 => prop_oneof![Just(Step::NewFrame), Just(Step::PhaseEnded), Just(Step::Clear)],
        1 => Just(Step::Edited),
        1 => Just(Step::AnswerTwice),
        1 => any::<bool>().prop_map(Step::HoldDrafts),
        1 => any::<bool>().prop_map(Step::DraftsFail),
        1 => any::<bool>().prop_map(Step::Rude),
    ]
}

fn models() -> impl Strategy<Value = Vec<Model>> {
    proptest::collection::vec(
        prop_oneof![
            4 => Just(Model::Good),
            1 => Just(Model::Fails("overloaded", None)),
            1 => Just(Model::Fails("rate-limit", Some(30_000))),
            1 => Just(Model::Empty),
            1 => (10usize..3_000).prop_map(Model::Long),
            1 => Just(Model::OtherCover),
            1 => Just(Model::OtherHistory),
            1 => Just(Model::Silent),
        ],
        0..12,
    )
}

/// A conversation under way.
struct Play {
    world: World,
    is_in_flight: bool,
    calls: usize,
    said: u64,
    last_update: Option<throughline_engine::UpdateOrder>,
}

impl Play {
    fn go(&mut self, saying: Saying) {
        self.said += 1;
        let wire = self.world.wire();
        if open_calls(&self.world.archive) > 0 {
            self.is_in_flight = false;
            self.results(saying);
        } else if self.is_in_flight {
            self.is_in_flight = false;
            for raw in self.answer(wire, saying) {
                self.world.append(&raw);
            }
            self.world.report();
        } else if self.awaits_answer() {
            self.world.request();
            self.is_in_flight = true;
        } else {
            let raw = self.user(wire, saying);
            self.world.append(&raw);
        }
    }

    fn awaits_answer(&self) -> bool {
        self.world
            .archive
            .last()
            .is_some_and(|last| matches!(last.role, Role::User | Role::Tool))
    }

    fn user(&self, wire: Wire, saying: Saying) -> Raw {
        let image = |text: &str| {
            let raw = match wire {
                Wire::Anthropic => format!(
                    r#"{{"role":"user","content":[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"QUJD"}}}},{{"type":"text","text":"{text}"}}]}}"#
                ),
                Wire::OpenAiChat => format!(
                    r#"{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"data:image/png;base64,QUJD"}}}},{{"type":"text","text":"{text}"}}]}}"#
                ),
                Wire::OpenAiResponses => format!(
                    r#"{{"type":"message","role":"user","content":[{{"type":"input_image","image_url":"data:image/png;base64,QUJD"}},{{"type":"input_text","text":"{text}"}}]}}"#
                ),
            };
            Raw::parse(raw).unwrap()
        };
        match saying {
            Saying::Words(count) | Saying::Thinking(count) => {
                message::user(wire, &prose(self.said, usize::from(count)))
            }
            Saying::Calls(_) => message::user(wire, "Please go on \"as before\"."),
            Saying::Image => image("What is this?"),
            Saying::Chinese(count) => message::user(
                wire,
                &"请把解析器改成接受分号。".repeat(usize::from(count) / 12 + 1),
            ),
            Saying::Rule(number) => message::user(
                wire,
                &format!("Please never rename the table number{number}."),
            ),
        }
    }

    fn answer(&mut self, wire: Wire, saying: Saying) -> Vec<Raw> {
        match saying {
            Saying::Calls(count) => {
                let ids: Vec<_> = (0..count)
                    .map(|_| {
                        self.calls += 1;
                        format!("call{}", self.calls)
                    })
                    .collect();
                let ids: Vec<_> = ids.iter().map(String::as_str).collect();
                super::messages::calls(wire, &ids)
            }
            Saying::Thinking(count) if wire == Wire::Anthropic => {
                let text = prose(self.said, usize::from(count));
                let text = text.replace('\n', " ");
                let said = self.said;
                vec![
                    Raw::parse(format!(
                        r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":"{text}","signature":"s{said}"}},{{"type":"text","text":"Answer {said}."}}]}}"#
                    ))
                    .unwrap(),
                ]
            }
            Saying::Words(count) | Saying::Thinking(count) => {
                vec![message::assistant(
                    wire,
                    &prose(self.said, usize::from(count)),
                )]
            }
            Saying::Chinese(count) => vec![message::assistant(
                wire,
                &"解析器现在接受分号了。".repeat(usize::from(count) / 11 + 1),
            )],
            Saying::Image | Saying::Rule(_) => vec![message::assistant(wire, "I see.")],
        }
    }

    /// All open calls are answered.
    fn results(&mut self, saying: Saying) {
        let words = match saying {
            Saying::Words(count) | Saying::Thinking(count) | Saying::Chinese(count) => count,
            _ => 5,
        };
        let answered: Vec<_> = self
            .world
            .archive
            .iter()
            .flat_map(Message::tool_results)
            .map(|result| result.call_id.clone())
            .collect();
        let open: Vec<_> = self
            .world
            .archive
            .iter()
            .flat_map(Message::tool_calls)
            .map(|call| call.id.clone())
            .filter(|id| !answered.contains(id))
            .collect();
        let text = prose(self.said, usize::from(words));
        let results: Vec<_> = open.iter().map(|id| (id.as_ref(), text.as_str())).collect();
        self.world.results(&results);
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Go(saying) => self.go(*saying),
            Step::RequestTwice => {
                if self.awaits_answer() && open_calls(&self.world.archive) == 0 {
                    self.world.input(Input::RequestWanted);
                    // The first may have been answered or may wait; the second is answered in any case.
                    self.world.request();
                    self.is_in_flight = true;
                }
            }
            Step::Wait(ms) => self.world.wait(*ms),
            Step::Truncate(share) => {
                let messages = self.world.archive.len() * usize::from(*share) / 255;
                self.is_in_flight = false;
                self.world.truncate(messages);
            }
            Step::Clear => {
                self.is_in_flight = false;
                self.world.clear();
            }
            Step::Fork => {
                self.is_in_flight = false;
                self.world = self.world.fork();
            }
            Step::Restart => {
                self.is_in_flight = false;
                self.world.restart();
            }
            Step::Undo => self.world.input(Input::Undo),
            Step::Pin(number) => {
                let pin = Pin {
                    id: format!("p{}", number % 5),
                    text: format!("Fact number {number} holds."),
                    message: self.world.archive.len(),
                };
                self.world.pins.retain(|known| known.id != pin.id);
                self.world.pins.push(pin.clone());
                self.world.input(Input::Pin(pin));
            }
            Step::Unpin(number) => {
                let id = format!("p{}", number % 5);
                self.world.pins.retain(|known| known.id != id);
                self.world.input(Input::Unpin { id });
            }
            Step::Compact(has_focus, is_at_once) => {
                let swapping = if *is_at_once {
                    SwapTiming::AtOnce
                } else {
                    SwapTiming::Preview
                };
                self.world
                    .compact(has_focus.then_some("names of tables"), swapping);
            }
            Step::Cancel => self.world.input(Input::Cancel),
            Step::Configure(change) => self.world.configure(|settings| match change {
                Change::Mode(mode) => settings.mode = *mode,
                Change::Compactor(compactor) => settings.compactor = *compactor,
                Change::Fallback(fallback) => settings.fallback = *fallback,
                Change::Window(window) => settings.window = *window,
                Change::ModelWait(ms) => settings.model_wait_ms_max = *ms,
                Change::Keep(permille) => settings.keep = Mark::Permille(*permille),
                Change::Turns(turns) => settings.triggers.turns = *turns,
            }),
            Step::Overflow(is_named) => {
                if std::mem::take(&mut self.is_in_flight) {
                    let window = is_named.then_some(4_000);
                    self.world.input(Input::Overflowed { window });
                }
            }
            Step::NewFrame => self.world.input(Input::FrameChanged),
            Step::PhaseEnded => self.world.input(Input::PhaseEnded),
            Step::Edited => self.edited(),
            Step::AnswerTwice => {
                if let Some(order) = self.last_update.clone() {
                    self.world.answer_update(&order);
                }
                self.last_update = self.world.update_orders.last().cloned();
            }
            Step::HoldDrafts(holds) => {
                self.world.holds_drafts = *holds;
                self.world.answer_drafts();
            }
            Step::DraftsFail(fail) => self.world.drafts_fail = *fail,
            Step::Rude(is_rude) => self.world.is_rude = *is_rude,
        }
    }

    /// A person adds a line to the memory.
    fn edited(&mut self) {
        let Some(version) = self.world.engine.memory() else {
            return;
        };
        let mut memory = version.memory.clone();
        self.said += 1;
        let text = format!("Added by hand, number {}.", self.said);
        memory.items.push(Item {
            id: Item::id_for(Section::References, 0, &text),
            entry: Entry::Reference { text },
            origin: Origin::User,
            provenance: Provenance {
                message: 0,
                at_ms: None,
            },
            status: Status::Active,
            touched: memory.version,
        });
        self.world.input(Input::Given(Box::new(memory)));
    }

    /// Everything that is open comes to its end.
    fn end(&mut self) {
        self.world.is_rude = false;
        self.world.drafts_fail = false;
        self.world.holds_drafts = false;
        self.world.answer_drafts();
        self.world.model = Model::Good;
        self.world.model_script.clear();
        self.world.wait(600_000);
        self.world.input(Input::Cancel);
        self.is_in_flight = false;
        for _ in 0..4 {
            self.go(Saying::Words(50));
        }
        self.world.check_outcomes();
    }
}

fn wire_and_place() -> impl Strategy<Value = (Wire, TailBegins)> {
    prop_oneof![
        3 => Just((Wire::Anthropic, TailBegins::Anyhow)),
        1 => Just((Wire::OpenAiChat, TailBegins::Anyhow)),
        1 => Just((Wire::OpenAiChat, TailBegins::WithUser)),
        1 => Just((Wire::OpenAiResponses, TailBegins::Anyhow)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        max_shrink_iters: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn requests_are_right_after_any_sequence_of_steps(
        (wire, tail_begins) in wire_and_place(),
        window in 3_000u64..12_000,
        factor in 600u64..2_000,
        is_by_model in any::<bool>(),
        binds_thinking in any::<bool>(),
        latency_ms in 0i64..90_000,
        models in models(),
        steps in proptest::collection::vec(step(), 1..70),
    ) {
        let compactor = if is_by_model { CompactorChoice::Model } else { CompactorChoice::Extractive };
        let mut world = World::on(wire, CompactionSettings {
            compactor,
            tail_begins,
            binds_thinking: binds_thinking && wire == Wire::Anthropic,
            memory_tokens_max: 1_500,
            ..settings(window)
        });
        world.latency_ms = latency_ms;
        world.factor = factor;
        world.model_script = models.into();
        let mut play = Play { world, is_in_flight: false, calls: 0, said: 0, last_update: None };
        for step in &steps {
            play.step(step);
        }
        play.end();
    }
}
