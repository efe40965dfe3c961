//! The provider itself: takes a request and a moment, and returns an answer with the moments of its bytes.

mod answer;
mod body;
mod delivery;
mod ledger;
mod refusal;
mod unsupported;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use throughline_transcript::catalogue::{Model, Money, cost};
use throughline_transcript::check::ANTHROPIC_BODY_BYTES_MAX;
use throughline_transcript::usage::Usage;
use throughline_transcript::wire::Wire;

use crate::api_error::{ApiError, Vendor};
use crate::cache::PromptCache;
use crate::call::{Call, Output, Question, Turn};
use crate::dice::Dice;
use crate::exchange::Exchange;
use crate::faults::{Counts, Fault, Faults};
use crate::headers;
use crate::latency::Queue;
use crate::limits::Buckets;
use crate::models;
use crate::options::Options;
use crate::prompt::{PartStore, Scale, digest};
use crate::reply::Reply;
use crate::rules::{self, RequestFacts};
use crate::signature::Signer;
use crate::wire::{anthropic, chat, responses};

pub(crate) use body::unpacked;
pub use ledger::LedgerEntry;

use body::{TOO_LARGE, parsed};
use delivery::{refused, set};
use ledger::Notes;
use refusal::{failing, limiting, no_model, not_found, not_retrievable, rate_limited, retrieved};

/// Largest body, bytes, after it is unpacked. Above it the answer is 413.
pub const BODY_BYTES_MAX: usize = ANTHROPIC_BODY_BYTES_MAX;

/// A provider of language models in virtual time.
///
/// It has no clock and no socket. The moments of requests are arguments, counted from any start, and should not go
/// backwards; the [`Exchange`] has the moments of an answer.
#[derive(Debug)]
pub struct Simulator {
    options: Options,
    signer: Signer,
    parts: PartStore,
    cache: PromptCache,
    queue: Queue,
    buckets: Buckets,
    script: VecDeque<Reply>,
    ledger: VecDeque<LedgerEntry>,
    ledger_body_bytes: usize,
    models: HashMap<String, Option<Arc<Model>>>,
    stored: responses::StoredItems,
    requests: u64,
    calls: u64,
    summaries: u64,
}

impl Simulator {
    /// A provider without any calls so far.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            signer: Signer::new(options.seed),
            options,
            parts: PartStore::default(),
            cache: PromptCache::default(),
            queue: Queue::default(),
            buckets: Buckets::default(),
            script: VecDeque::new(),
            ledger: VecDeque::new(),
            ledger_body_bytes: 0,
            models: HashMap::new(),
            stored: responses::StoredItems::default(),
            requests: 0,
            calls: 0,
            summaries: 0,
        }
    }

    /// Its options.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Sets the faults from now on. The count of calls continues.
    pub fn set_faults(&mut self, faults: Faults) {
        self.options.faults = faults;
    }

    /// Adds a scripted reply. Scripted replies are used in order; after the last one the persona replies again.
    pub fn script(&mut self, reply: Reply) {
        self.script.push_back(reply);
    }

    /// All exchanges so far, the oldest first.
    pub fn ledger(&self) -> impl ExactSizeIterator<Item = &LedgerEntry> {
        self.ledger.iter()
    }

    /// What all answered calls cost together.
    #[must_use]
    pub fn total_cost(&self) -> Money {
        self.ledger.iter().filter_map(|entry| entry.cost).sum()
    }

    /// Answers a request that comes at `now`.
    pub fn request(&mut self, now: Duration, request: Request<Bytes>) -> Exchange {
        self.requests += 1;
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let vendor = vendor(&path, &head.headers);
        let seed = self.options.seed;
        let mut dice = Dice::new(seed, "exchange", &[&self.requests.to_le_bytes()]);
        let request_id = match vendor {
            Vendor::Anthropic => dice.id("req_", 24),
            Vendor::OpenAi => dice.id("req_", 32).to_ascii_lowercase(),
        };
        let mut notes = Notes::default();
        let outcome = self.answer(
            now,
            vendor,
            &head.method,
            &path,
            &head.headers,
            body,
            &mut notes,
        );
        let mut exchange = match outcome {
            Ok(output) => self.sent(vendor, output, &request_id, &mut dice),
            Err(error) => refused(&error, vendor, &request_id),
        };
        let id_header = match vendor {
            Vendor::Anthropic => "request-id",
            Vendor::OpenAi => "x-request-id",
        };
        set(&mut exchange.headers, id_header, &request_id);
        if exchange.usage.is_some() {
            self.queue.add(now + exchange.finished_after());
        }
        self.record(now, path, &exchange, notes);
        exchange
    }

    /// Answers a request whose body is too large to be read.
    pub(crate) fn too_large(&mut self, now: Duration, path: &str, headers: &HeaderMap) -> Exchange {
        self.requests += 1;
        let vendor = vendor(path, headers);
        let facts: [&[u8]; 1] = [&self.requests.to_le_bytes()];
        let request_id = Dice::new(self.options.seed, "exchange", &facts).id("req_", 24);
        let exchange = refused(&ApiError::new(413, TOO_LARGE), vendor, &request_id);
        self.record(now, path.to_owned(), &exchange, Notes::default());
        exchange
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a request, each used once"
    )]
    fn answer(
        &mut self,
        now: Duration,
        vendor: Vendor,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        body: Bytes,
        notes: &mut Notes,
    ) -> Result<Output, ApiError> {
        let credential = headers::credential(headers, vendor, &self.options.keys)?;
        let full_path = path;
        let path = path.trim_end_matches('/');
        let path = path.strip_prefix("/v1").unwrap_or(path);
        if let Some(id) = retrieved(method, path) {
            return Err(not_retrievable(id));
        }
        if method == Method::GET {
            if vendor == Vendor::Anthropic {
                headers::version(headers)?;
            }
            return match path.starts_with("/models") {
                true => models::answer(&self.options, vendor, path).map(Output::Json),
                false => Err(not_found(vendor, method, full_path)),
            };
        }
        let (wire, endpoint) = match path {
            "/messages" => (Wire::Anthropic, Endpoint::Generate),
            "/messages/count_tokens" => (Wire::Anthropic, Endpoint::Count),
            "/chat/completions" => (Wire::OpenAiChat, Endpoint::Generate),
            "/responses" => (Wire::OpenAiResponses, Endpoint::Generate),
            "/responses/input_tokens" => (Wire::OpenAiResponses, Endpoint::Count),
            "/responses/compact" => (Wire::OpenAiResponses, Endpoint::Compact),
            _ => return Err(not_found(vendor, method, full_path)),
        };
        if method != Method::POST {
            return Err(ApiError::new(405, "Method Not Allowed"));
        }
        let (version, betas) = match wire {
            Wire::Anthropic => (Some(headers::version(headers)?), headers::betas(headers)?),
            Wire::OpenAiChat | Wire::OpenAiResponses => (None, Vec::new()),
        };
        let bytes = unpacked(headers, body)?;
        notes.body = bytes.clone();
        let body = parsed(bytes, vendor)?;
        let mut known = RequestFacts {
            wire,
            model: None,
            version,
            betas: &betas,
            counts_only: endpoint != Endpoint::Generate,
            body_bytes_max: BODY_BYTES_MAX,
        };
        let model = match body.string_field("model") {
            Some(name) => self.model(&name, vendor),
            None => None,
        };
        let Some(model) = model else {
            if let Some(error) = rules::first_error(&body, &known) {
                return Err(error);
            }
            return Err(no_model(
                vendor,
                &body.string_field("model").unwrap_or_default(),
            ));
        };
        notes.model = Some(model.id.clone());
        known.model = Some(&model);
        if let Some(error) = rules::first_error(&body, &known) {
            return Err(error);
        }
        if endpoint == Endpoint::Generate
            && let Some(error) = unsupported::first_error(&body, wire)
        {
            return Err(error);
        }
        let call = Call {
            at: now,
            wire,
            credential,
            body,
            scale: Scale::new(&model, self.options.tokens_permille),
            model,
        };
        match wire {
            Wire::Anthropic => {
                let read = anthropic::read(
                    &mut self.parts,
                    &self.signer,
                    self.options.prefix_mismatch,
                    &call,
                    &betas,
                )?;
                if endpoint == Endpoint::Count {
                    return Ok(Output::Json(anthropic::counted(&read.question)));
                }
                let turn = self.turn(&call, &read.question, notes)?;
                Ok(anthropic::output(&call, &read, turn))
            }
            Wire::OpenAiChat => {
                let question = chat::read(&mut self.parts, &call)?;
                let turn = self.turn(&call, &question, notes)?;
                Ok(chat::output(&call, turn))
            }
            Wire::OpenAiResponses => {
                let read = responses::read(
                    &mut self.parts,
                    &self.signer,
                    &self.stored,
                    &call,
                    endpoint == Endpoint::Compact,
                )?;
                if endpoint == Endpoint::Count {
                    return Ok(Output::Json(responses::counted(&read.question)));
                }
                let turn = self.turn(&call, &read.question, notes)?;
                if endpoint == Endpoint::Compact {
                    return Ok(responses::compacted(&self.signer, &call, &read, turn));
                }
                Ok(responses::output(
                    &self.signer,
                    &mut self.stored,
                    &call,
                    &read,
                    turn,
                ))
            }
        }
    }

    /// A call of the model: size, limits, overload, cache, time, reply.
    fn turn(
        &mut self,
        call: &Call,
        question: &Question,
        notes: &mut Notes,
    ) -> Result<Turn, ApiError> {
        let tokens = question.prompt.tokens();
        let model = &call.model;
        let is_summary = question.is_compaction || question.briefing.wants_summary();
        notes.is_summary = is_summary;
        self.calls += 1;
        self.summaries += u64::from(is_summary);
        let counts = Counts {
            calls: self.calls,
            summaries: is_summary.then_some(self.summaries),
        };
        let fault = self.options.faults.strike(counts, self.options.seed);
        notes.fault = fault;
        if let Some(error) = fault.and_then(|fault| limiting(fault, call.wire)) {
            return Err(error);
        }
        let plan = self.cache.plan(
            &question.prompt,
            model,
            question.breakpoints,
            question.lifetime,
            call.at,
        );
        let bucket = digest(&[&call.credential, model.id.as_bytes()]);
        let left = match &self.options.limits {
            Some(limits) => {
                let counted = tokens - plan.split.read;
                let left = self.buckets.take(bucket, limits, counted, call.at);
                Some(left.map_err(|(wait, what)| rate_limited(wait, what))?)
            }
            None => None,
        };
        if let Some(error) = fault.and_then(failing) {
            return Err(error);
        }
        let input = Usage {
            uncached: plan.split.uncached,
            cache_write: plan.split.write_short + plan.split.write_long,
            cache_write_long: plan.split.write_long,
            cache_read: plan.split.read,
            output: 0,
        };
        let latency = &self.options.latency;
        let slow = match fault {
            Some(Fault::SlowStart(by)) => by,
            _ => Duration::ZERO,
        };
        let first_after =
            self.queue.wait(call.at, latency.parallel_max) + latency.first_token(&input) + slow;
        self.cache.commit(&plan, call.at, call.at + first_after);
        let answer = self.written(call, question, fault, is_summary);
        self.buckets.take_output(bucket, answer.output_tokens);
        let usage = Usage {
            output: answer.output_tokens,
            ..input
        };
        Ok(Turn {
            split: plan.split,
            cost: cost(&usage, model),
            usage,
            answer,
            first_after,
            fault,
            left,
        })
    }

    /// The model of this vendor that a name means, with the window that all models have here.
    fn model(&mut self, name: &str, vendor: Vendor) -> Option<Arc<Model>> {
        const NAMES_MAX: usize = 10_000;
        let key = format!("{vendor:?} {name}");
        if let Some(known) = self.models.get(&key) {
            return known.clone();
        }
        let model = self.options.catalogue.find(name).cloned();
        let model = model.filter(|model| match vendor {
            Vendor::Anthropic => model.provider == "anthropic",
            Vendor::OpenAi => model.provider != "anthropic",
        });
        let model = model.map(|mut model| {
            if let Some(window) = self.options.window {
                model.window = window;
                model.input_max = None;
            }
            Arc::new(model)
        });
        if self.models.len() < NAMES_MAX {
            self.models.insert(key, model.clone());
        }
        model
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Generate,
    Count,
    Compact,
}

fn vendor(path: &str, headers: &HeaderMap) -> Vendor {
    let is_anthropic = path.contains("/messages")
        || (path.contains("/models") && headers.contains_key("anthropic-version"));
    if is_anthropic {
        Vendor::Anthropic
    } else {
        Vendor::OpenAi
    }
}
