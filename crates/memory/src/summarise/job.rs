//! The job: decides which question comes next and turns the answers into a memory.

mod request;

use std::collections::HashSet;
use std::fmt;

use super::answer::AnswerForm;
use super::ask::{Answer, Ask, CallFailure, Request, Step};
use super::forms::schema;
use super::guard::{Context, UsableAnswer, guard};
use super::order::{Form, Order, Style};
use super::outcome::{Finding, JobOutcome, Maker};
use super::reason::{FailureClass, Fault, ModelSlot, Reason};
use super::repair::{Ground, RepairedMemory, Room, base_after, base_of, check, complete, draw_up};
use super::source::Source;
use super::transcript::{Chunk, Reader};
use crate::document::Memory;
use crate::render::markdown;

/// Makes a memory by asking models. See the [module](super) for how it is driven.
///
/// Call [`Job::step`], do what it says, and call [`Job::answer`] or [`Job::failed`] with what came of it, until the step
/// is [`Step::Done`]. `step` can be called as often as one likes.
pub struct Job {
    order: Order,
    source: Source,
    reader: Reader,
    /// How the conversation reaches the model from now on.
    style: Style,
    /// What the memory covers, tokens.
    covered_tokens: usize,
    /// What came of the parts that were read.
    base: Memory,
    /// Whether an answer changes the base, or is the first.
    has_base: bool,
    part: Part,
    parts: u32,
    asks: u32,
    output_tokens: u64,
    findings: Vec<Finding>,
    reasons: Vec<Reason>,
    given_up: HashSet<String>,
    step: Step,
}

/// The part of the conversation that the model is asked about.
#[derive(Clone, Debug)]
struct Part {
    chunk: Chunk,
    wanted: AnswerForm,
    /// Requests for it that went wrong.
    failures: u32,
    /// The same for the model that is asked now.
    failures_of_slot: u32,
    slot: ModelSlot,
    answer_tokens: usize,
    /// What was wrong with its answers, for the model.
    unfit: Vec<Fault>,
    wait_ms: u64,
    /// What the model is told, without the conversation.
    prompt: String,
    /// The memory so far, as it is shown.
    prior: String,
    /// What is read for it, tokens; smaller after every overflow.
    tokens_max: usize,
}

/// A request to the same model goes wrong this often before another model is asked, if there is one.
const FAILURES_OF_SLOT_MAX: u32 = 2;
/// The first wait after a failure that passes, where the provider names none, milliseconds; twice that after every
/// further one.
const WAIT_MS: u64 = 1_000;
/// The longest wait. A provider that asks for a longer one is not asked again: by then there is more to be read.
const WAIT_MS_MAX: u64 = 60_000;
/// Parts of a conversation smaller than this are not worth a request; tokens.
const PART_TOKENS_MIN: usize = 128;

impl Job {
    /// Begins a job. It has its first step at once.
    #[must_use]
    pub fn new(mut order: Order) -> Self {
        order.redaction = order.redaction.learning(&order.messages);
        let source = Source::new(&order.messages, order.first_index, &order.redaction);
        let reader = Reader::new(&source, order.limits.result_bytes_max, order.archive);
        let new_tokens: usize = source
            .parts
            .iter()
            .map(|part| (order.count)(&part.text))
            .sum();
        let prior_tokens = order
            .prior
            .as_ref()
            .map_or(0, |prior| (order.count)(&markdown::render(prior)));
        let base = base_of(order.prior.as_ref(), &order.draft);
        let part = Part {
            chunk: Chunk::default(),
            wanted: AnswerForm::Markdown,
            failures: 0,
            failures_of_slot: 0,
            slot: ModelSlot::Main,
            answer_tokens: order.limits.answer_tokens,
            unfit: Vec::new(),
            wait_ms: 0,
            prompt: String::new(),
            prior: String::new(),
            tokens_max: order.limits.input_tokens_max,
        };
        let is_empty = source.parts.is_empty();
        let mut job = Self {
            style: order.style,
            covered_tokens: new_tokens + prior_tokens,
            has_base: order.prior.is_some(),
            base,
            source,
            reader,
            part,
            parts: 0,
            asks: 0,
            output_tokens: 0,
            findings: Vec::new(),
            reasons: Vec::new(),
            given_up: HashSet::new(),
            step: Step::Done(JobOutcome {
                memory: order.draft.clone(),
                made_by: Maker::Draft {
                    reasons: Vec::new(),
                },
                findings: Vec::new(),
                asks: 0,
                output_tokens: 0,
                parts: 0,
            }),
            order,
        };
        if is_empty {
            job.give_up(Some(Reason::NothingNew));
        } else {
            job.next_part();
        }
        job
    }

    /// What comes next.
    #[must_use]
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// What became of it; `None` while there is still something to ask.
    #[must_use]
    pub fn into_outcome(self) -> Option<JobOutcome> {
        match self.step {
            Step::Done(outcome) => Some(outcome),
            Step::Ask(_) => None,
        }
    }

    /// Takes an answer to the last question. Without a question nothing happens.
    pub fn answer(&mut self, answer: &Answer) {
        let Step::Ask(ask) = &self.step else { return };
        let number = ask.attempt;
        self.output_tokens = self.output_tokens.saturating_add(answer.output_tokens);
        let language = self.language().map(str::to_owned);
        let judged = guard(
            answer,
            &Context {
                wanted: self.part.wanted,
                language: language.as_deref(),
                input_tokens: self.covered_tokens,
                memory_tokens_max: self.order.limits.memory_tokens_max,
                count: &self.order.count,
                prompt: &self.part.prompt,
                source: &self.source,
                prior: &self.part.prior,
            },
        );
        match judged {
            Ok(judged) => self.take_over(judged),
            Err(unfit) => self.refuse(number, unfit),
        }
    }

    /// Takes the failure of the last call. Without a question nothing happens.
    pub fn failed(&mut self, failure: CallFailure) {
        let Step::Ask(ask) = &self.step else { return };
        let (number, slot) = (ask.attempt, ask.slot);
        let class = failure.class;
        self.findings
            .push(Finding::CallFailed { ask: number, class });
        let reason = Reason::Failed {
            ask: number,
            slot,
            class,
        };
        self.reasons.push(reason);
        self.part.wait_ms = 0;
        let asked_ms = failure.retry_after_ms.unwrap_or(0);
        match class {
            FailureClass::Cancelled => return self.give_up(None),
            FailureClass::Overflow => return self.read_less(),
            _ if class.is_passing() && asked_ms <= WAIT_MS_MAX => {
                let own = WAIT_MS << self.part.failures.min(16);
                self.part.wait_ms = own.min(WAIT_MS_MAX).max(asked_ms);
                self.part.failures_of_slot += 1;
            }
            // The same request would be refused again.
            _ => {
                self.part.failures_of_slot =
                    FAILURES_OF_SLOT_MAX.max(self.order.limits.attempts_max)
            }
        }
        self.part.failures += 1;
        self.ask_again();
    }

    fn refuse(&mut self, number: u32, unfit: Fault) {
        self.findings.push(Finding::AnswerRefused {
            ask: number,
            unfit: unfit.clone(),
        });
        self.reasons.push(Reason::Refused {
            ask: number,
            slot: self.part.slot,
            unfit: unfit.clone(),
        });
        self.part.wait_ms = 0;
        self.part.failures += 1;
        match unfit {
            // More room may be all that is missing.
            Fault::Truncated => {
                let limits = &self.order.limits;
                self.part.answer_tokens = self
                    .part
                    .answer_tokens
                    .saturating_mul(2)
                    .min(limits.answer_tokens_max.max(limits.answer_tokens));
                self.part.failures_of_slot += 1;
            }
            // Asking the same model the same thing gives the same refusal.
            Fault::Refusal => {
                self.part.failures_of_slot =
                    FAILURES_OF_SLOT_MAX.max(self.order.limits.attempts_max);
            }
            _ => self.part.failures_of_slot += 1,
        }
        self.part.unfit.push(unfit);
        self.ask_again();
    }

    /// After a failure: the same model, the other one, or none.
    fn ask_again(&mut self) {
        let part = &mut self.part;
        let limits = &self.order.limits;
        let is_spent =
            part.failures_of_slot >= FAILURES_OF_SLOT_MAX || part.failures >= limits.attempts_max;
        if is_spent && part.slot == ModelSlot::Main && self.order.has_fallback {
            part.slot = ModelSlot::Fallback;
            part.failures_of_slot = 0;
            part.wait_ms = 0;
            // The other model always has its turn, even if the first one has used up all of them.
            part.failures = part.failures.min(limits.attempts_max.saturating_sub(1));
        }
        let is_hopeless = part.failures_of_slot >= limits.attempts_max.max(FAILURES_OF_SLOT_MAX);
        if part.failures >= limits.attempts_max || is_hopeless {
            return self.give_up(None);
        }
        if part.slot == ModelSlot::Fallback && self.style == Style::PrefixSharing {
            // Nothing of the conversation is in the other model's cache, and its tools may not be allowed there.
            self.style = Style::Forked;
            return self.read_again();
        }
        self.ask();
    }

    /// The request was too large.
    fn read_less(&mut self) {
        if self.style == Style::PrefixSharing {
            self.style = Style::Forked;
        } else {
            let shown = (self.order.count)(&self.part.chunk.text);
            self.part.tokens_max = self.part.tokens_max.min(shown) / 2;
        }
        self.read_again();
    }

    /// Puts the part back and takes another, with what is known of the models.
    fn read_again(&mut self) {
        let chunk = std::mem::take(&mut self.part.chunk);
        self.reader.put_back(chunk);
        self.take_part();
    }

    /// What was read is in the base; on to what comes after it.
    fn next_part(&mut self) {
        self.part.failures = 0;
        self.part.failures_of_slot = 0;
        self.part.unfit.clear();
        self.part.wait_ms = 0;
        self.part.answer_tokens = self.order.limits.answer_tokens;
        self.take_part();
    }

    fn take_part(&mut self) {
        self.part.wanted = match (self.style, self.order.form) {
            (Style::PrefixSharing, _) | (_, Form::Document) if self.has_base => AnswerForm::Edits,
            (_, Form::Document) => AnswerForm::Items,
            (_, Form::Markdown) => AnswerForm::Markdown,
        };
        self.part.prior = if self.has_base {
            self.prior_shown()
        } else {
            String::new()
        };
        // The frame around the messages is measured with none of them in it.
        let frame = match self.request("", true) {
            Ok(frame) => frame,
            Err(error) => {
                return self.give_up(Some(Reason::Prompt {
                    reason: error.to_string(),
                }));
            }
        };
        let count = &self.order.count;
        let frame_tokens = match &frame {
            Request::Own { system, user } => count(system) + count(user),
            Request::Appended { instruction } => count(instruction),
        };
        let chunk = if self.style == Style::PrefixSharing {
            self.reader.take(&self.source, usize::MAX, count)
        } else {
            let room = self
                .order
                .limits
                .input_tokens_max
                .saturating_sub(frame_tokens)
                .min(self.part.tokens_max);
            if room < PART_TOKENS_MIN {
                None
            } else {
                self.reader.take(&self.source, room, count)
            }
        };
        match chunk {
            Some(chunk) => {
                self.part.chunk = chunk;
                self.ask();
            }
            None => self.give_up(Some(Reason::WindowTooSmall {
                input_tokens_max: self.order.limits.input_tokens_max,
            })),
        }
    }

    fn ask(&mut self) {
        if self.asks >= self.order.limits.asks_max {
            return self.give_up(Some(Reason::TooManyParts {
                asks_max: self.order.limits.asks_max,
            }));
        }
        let is_part = self.parts > 0 || !self.reader.is_empty();
        let request = self.request(&self.part.chunk.text, is_part);
        let request = match request.and_then(|request| Ok((request, self.instructions(is_part)?))) {
            Ok((request, instructions)) => {
                self.part.prompt = instructions;
                request
            }
            Err(error) => {
                return self.give_up(Some(Reason::Prompt {
                    reason: error.to_string(),
                }));
            }
        };
        self.asks += 1;
        self.step = Step::Ask(Ask {
            request,
            schema: self
                .has_schema()
                .then(|| schema(self.part.wanted))
                .flatten(),
            output_tokens_max: self.part.answer_tokens,
            attempt: self.asks,
            slot: self.part.slot,
            wait_ms: self.part.wait_ms,
        });
    }

    fn take_over(&mut self, judged: UsableAnswer) {
        let made = {
            let ground = self.ground();
            let mut made = check(draw_up(judged.parsed, &ground), &ground);
            if !self.reader.is_empty() {
                // What is put back comes at the end; until then the memory only has to leave room for the messages.
                let room = self.room();
                let fitted = crate::update::fit(made.memory, room.tokens_max, &|text| {
                    (self.order.count)(text)
                });
                made.memory = fitted.memory;
            }
            made
        };
        self.findings.extend(made.findings);
        self.given_up.extend(made.given_up);
        self.parts += 1;
        self.has_base = true;
        if !self.reader.is_empty() {
            self.base = base_after(made.memory, &self.order.draft);
            return self.next_part();
        }
        let attempts = self.part.failures + 1;
        let made = complete(
            RepairedMemory {
                memory: made.memory,
                given_up: std::mem::take(&mut self.given_up),
                findings: Vec::new(),
            },
            self.order.prior.as_ref(),
            self.room(),
            &self.ground(),
        );
        self.finish(
            made,
            Maker::Model {
                slot: self.part.slot,
                attempts,
            },
        );
    }

    /// The draft is the memory.
    fn give_up(&mut self, reason: Option<Reason>) {
        self.reasons.extend(reason);
        let made = complete(
            RepairedMemory {
                memory: self.order.draft.clone(),
                given_up: HashSet::new(),
                findings: Vec::new(),
            },
            self.order.prior.as_ref(),
            self.room(),
            &self.ground(),
        );
        let reasons = std::mem::take(&mut self.reasons);
        self.finish(made, Maker::Draft { reasons });
    }

    fn finish(&mut self, made: RepairedMemory, made_by: Maker) {
        self.findings.extend(made.findings);
        self.step = Step::Done(JobOutcome {
            memory: made.memory,
            made_by,
            findings: std::mem::take(&mut self.findings),
            asks: self.asks,
            output_tokens: self.output_tokens,
            parts: self.parts,
        });
    }

    fn ground(&self) -> Ground<'_> {
        Ground {
            base: &self.base,
            draft: &self.order.draft,
            source: &self.source,
            last: match self.style {
                Style::PrefixSharing => self.order.draft.cover.messages.saturating_sub(1),
                Style::Forked => self.part.chunk.last,
            },
            redaction: &self.order.redaction,
            count: &self.order.count,
        }
    }

    fn room(&self) -> Room {
        Room {
            tokens_max: self.order.limits.memory_tokens_max,
            // What an earlier memory covers is much more than its own size, and no longer known here.
            covered_tokens: match self.order.prior {
                Some(_) => usize::MAX,
                None => self.covered_tokens,
            },
        }
    }
}

/// Says how far the job is, and none of its texts.
impl fmt::Debug for Job {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Job")
            .field("order", &self.order)
            .field("parts", &self.parts)
            .field("asks", &self.asks)
            .field("reasons", &self.reasons)
            .finish_non_exhaustive()
    }
}
