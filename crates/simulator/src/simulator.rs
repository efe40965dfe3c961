//! The provider itself: a request and a moment go in, an answer with the moments of its bytes comes out.

mod answer;
mod body;
mod delivery;
mod ledger;
mod options;
mod refusal;
mod unsupported;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use throughline_transcript::catalogue::{Model, Money, cost};
use throughline_transcript::check::ANTHROPIC_BODY_BYTES_MAX;
use throughline_transcript::json::Raw;
use throughline_transcript::usage::Usage;
use throughline_transcript::wire::Wire;

use crate::api_error::{ApiError, Vendor};
use crate::cache::{Breakpoints, PromptCache, Split};
use crate::dice::Dice;
use crate::exchange::Exchange;
use crate::faults::{Counts, Fault, Faults};
use crate::headers;
use crate::latency::Queue;
use crate::limits::{Buckets, Left};
use crate::models;
use crate::persona::Heard;
use crate::prompt::{Key, Lifetime, PartStore, Prompt, Scale, digest};
use crate::reply::{Answer, Reply};
use crate::rules::{self, Known};
use crate::signature::Signer;
use crate::stream::Frame;
use crate::wire::{anthropic, chat, responses};

pub(crate) use body::unpacked;
pub use ledger::Recorded;
pub use options::{Options, PrefixMismatch};

use body::{TOO_LARGE, parsed};
use delivery::{refused, set};
use ledger::Noted;
use refusal::{failing, limiting, no_model, not_found, not_retrievable, rate_limited, retrieved};

/// Largest body, bytes, after it is unpacked. Above it the answer is 413.
pub const BODY_BYTES_MAX: usize = ANTHROPIC_BODY_BYTES_MAX;

/// A provider of language models in virtual time.
///
/// It has no clock and no socket. The moments of requests are arguments, counted from any start, and should not go
/// backwards; what happens at which moment of an answer is in the [`Exchange`].
#[derive(Debug)]
pub struct Simulator {
    options: Options,
    pub(crate) signer: Signer,
    pub(crate) parts: PartStore,
    cache: PromptCache,
    queue: Queue,
    buckets: Buckets,
    script: VecDeque<Reply>,
    ledger: VecDeque<Recorded>,
    ledger_body_bytes: usize,
    models: HashMap<String, Option<Arc<Model>>>,
    pub(crate) stored: responses::Stored,
    requests: u64,
    calls: u64,
    summaries: u64,
}

/// A request that has been let in.
pub(crate) struct Asked {
    pub(crate) at: Duration,
    pub(crate) wire: Wire,
    pub(crate) credential: Key,
    pub(crate) body: Raw,
    pub(crate) model: Arc<Model>,
    pub(crate) scale: Scale,
}

/// What a wire format found in a request that the model is to answer.
pub(crate) struct Question {
    pub(crate) prompt: Prompt,
    /// What thinking of the reply is bound to.
    pub(crate) prefix: Key,
    /// Messages as the persona hears them.
    pub(crate) heard: Heard,
    pub(crate) breakpoints: Breakpoints,
    pub(crate) lifetime: Lifetime,
    /// Most output, tokens.
    pub(crate) output_max: u64,
    pub(crate) stop_sequences: Vec<String>,
    pub(crate) thinks: Thinks,
    /// The provider itself compacts instead of replying.
    pub(crate) compacts: bool,
    /// Ids of tool calls that are taken.
    pub(crate) call_ids: Vec<String>,
}

/// Whether and how the model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinks {
    No,
    /// It thinks, and the text is withheld.
    Hidden,
    Shown,
}

/// An answer with its moments.
pub(crate) struct Turn {
    pub(crate) answer: Answer,
    pub(crate) split: Split,
    pub(crate) usage: Usage,
    pub(crate) cost: Option<Money>,
    pub(crate) first_after: Duration,
    pub(crate) fault: Option<Fault>,
    pub(crate) left: Option<Left>,
}

/// What an endpoint gives back.
pub(crate) enum Output {
    /// A JSON body, at once.
    Json(serde_json::Value),
    /// The answer of the model, whole.
    Whole(Box<Turn>, serde_json::Value),
    /// The answer of the model, as a stream.
    Stream(Box<Turn>, Vec<Frame>),
}

impl Simulator {
    /// A provider that nobody has asked anything.
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
            stored: responses::Stored::default(),
            requests: 0,
            calls: 0,
            summaries: 0,
        }
    }

    /// How it behaves.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Changes what goes wrong from now on. Calls are counted from the beginning nevertheless.
    pub fn set_faults(&mut self, faults: Faults) {
        self.options.faults = faults;
    }

    /// The next reply that is not made up: scripted replies are given in order, before the persona speaks again.
    pub fn script(&mut self, reply: Reply) {
        self.script.push_back(reply);
    }

    /// All exchanges so far, the oldest first.
    pub fn ledger(&self) -> impl ExactSizeIterator<Item = &Recorded> {
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
        let mut noted = Noted::default();
        let outcome = self.answer(
            now,
            vendor,
            &head.method,
            &path,
            &head.headers,
            body,
            &mut noted,
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
        self.record(now, path, &exchange, noted);
        exchange
    }

    /// Answers a request whose body is too large to be read.
    pub(crate) fn too_large(&mut self, now: Duration, path: &str, headers: &HeaderMap) -> Exchange {
        self.requests += 1;
        let vendor = vendor(path, headers);
        let facts: [&[u8]; 1] = [&self.requests.to_le_bytes()];
        let request_id = Dice::new(self.options.seed, "exchange", &facts).id("req_", 24);
        let exchange = refused(&ApiError::new(413, TOO_LARGE), vendor, &request_id);
        self.record(now, path.to_owned(), &exchange, Noted::default());
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
        noted: &mut Noted,
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
        noted.body = bytes.clone();
        let body = parsed(bytes, vendor)?;
        let mut known = Known {
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
        noted.model = Some(model.id.clone());
        known.model = Some(&model);
        if let Some(error) = rules::first_error(&body, &known) {
            return Err(error);
        }
        if endpoint == Endpoint::Generate
            && let Some(error) = unsupported::first_error(&body, wire)
        {
            return Err(error);
        }
        let asked = Asked {
            at: now,
            wire,
            credential,
            body,
            scale: Scale::new(&model, self.options.tokens_permille),
            model,
        };
        match wire {
            Wire::Anthropic => {
                let betas = betas.iter().map(|beta| (*beta).to_owned()).collect();
                let read = anthropic::read(self, &asked, betas)?;
                if endpoint == Endpoint::Count {
                    return Ok(Output::Json(anthropic::counted(&read.question)));
                }
                let turn = self.turn(&asked, &read.question, noted)?;
                Ok(anthropic::output(&asked, &read, turn))
            }
            Wire::OpenAiChat => {
                let question = chat::read(self, &asked)?;
                let turn = self.turn(&asked, &question, noted)?;
                Ok(chat::output(&asked, turn))
            }
            Wire::OpenAiResponses => {
                let read = responses::read(self, &asked, endpoint == Endpoint::Compact)?;
                if endpoint == Endpoint::Count {
                    return Ok(Output::Json(responses::counted(&read.question)));
                }
                let turn = self.turn(&asked, &read.question, noted)?;
                if endpoint == Endpoint::Compact {
                    return Ok(responses::compacted(self, &asked, &read, turn));
                }
                Ok(responses::output(self, &asked, &read, turn))
            }
        }
    }

    /// Lets the model speak: size, limits, overload, cache, time, reply.
    fn turn(
        &mut self,
        asked: &Asked,
        question: &Question,
        noted: &mut Noted,
    ) -> Result<Turn, ApiError> {
        let tokens = question.prompt.tokens();
        let model = &asked.model;
        let is_summary = question.compacts || question.heard.wants_summary();
        noted.is_summary = is_summary;
        self.calls += 1;
        self.summaries += u64::from(is_summary);
        let counts = Counts {
            calls: self.calls,
            summaries: is_summary.then_some(self.summaries),
        };
        let fault = self.options.faults.strike(counts, self.options.seed);
        noted.fault = fault;
        if let Some(error) = fault.and_then(|fault| limiting(fault, asked.wire)) {
            return Err(error);
        }
        let plan = self.cache.plan(
            &question.prompt,
            model,
            question.breakpoints,
            question.lifetime,
            asked.at,
        );
        let bucket = digest(&[&asked.credential, model.id.as_bytes()]);
        let left = match &self.options.limits {
            Some(limits) => {
                let counted = tokens - plan.split.read;
                let left = self.buckets.take(bucket, limits, counted, asked.at);
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
            self.queue.wait(asked.at, latency.parallel_max) + latency.first_token(&input) + slow;
        self.cache.commit(&plan, asked.at, asked.at + first_after);
        let answer = self.written(asked, question, fault, is_summary);
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

/// Models whose thinking can be exchanged: here each model is its own family.
pub(crate) fn family(model: &Model) -> &str {
    &model.id
}
