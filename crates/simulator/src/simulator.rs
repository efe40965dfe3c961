//! The provider itself: a request and a moment go in, an answer with the moments of its bytes comes out.

use std::collections::{HashMap, VecDeque};
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use bytestring::ByteString;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use throughline_transcript::catalogue::{Catalogue, Model, Money, cost};
use throughline_transcript::check::ANTHROPIC_BODY_BYTES_MAX;
use throughline_transcript::json::Raw;
use throughline_transcript::usage::Usage;
use throughline_transcript::wire::Wire;

use crate::api_error::{ApiError, Vendor};
use crate::cache::{Breakpoints, PromptCache, Split};
use crate::dice::Dice;
use crate::exchange::{Ending, Exchange};
use crate::faults::{Counts, Fault, Faults};
use crate::headers::{self, Keys};
use crate::latency::{Latency, Queue};
use crate::limits::{Buckets, Left, RateLimits};
use crate::models;
use crate::persona::{self, Heard};
use crate::prompt::{Key, Lifetime, PartStore, Prompt, Scale, digest};
use crate::reply::{Answer, AnswerBlock, AnswerContent, Reply, ReplyPart, Stop};
use crate::rules::{self, Known};
use crate::signature::Signer;
use crate::stream::{self, Chunking, Frame, Pace};
use crate::wire::{anthropic, chat, responses};

/// Largest body, bytes, after it is unpacked. Above it the answer is 413.
pub const BODY_BYTES_MAX: usize = ANTHROPIC_BODY_BYTES_MAX;

/// Bytes of request bodies that the ledger keeps; the oldest bodies are let go first.
const LEDGER_BODY_BYTES_MAX: usize = 512 * 1024 * 1024;

const TOO_LARGE: &str = "Request exceeds the maximum size";

/// Exchanges that the ledger keeps.
const LEDGER_MAX: usize = 1_000_000;

/// How the provider behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// What all chance comes from.
    pub seed: u64,
    /// The models that it has.
    pub catalogue: Catalogue,
    /// A window for all of them, tokens, in place of their own: conversations become "too long" sooner.
    pub window: Option<u64>,
    /// How fast it is.
    pub latency: Latency,
    /// What goes wrong.
    pub faults: Faults,
    /// Rate limits; `None` is no limit.
    pub limits: Option<RateLimits>,
    /// The credentials that it takes.
    pub keys: Keys,
    /// How streams are cut.
    pub chunking: Chunking,
    /// What happens when thinking comes back after another prefix than it was bound to.
    pub prefix_mismatch: PrefixMismatch,
    /// What it counts for a thousand tokens of our own counter: other than 1000, estimates are wrong by that much.
    pub tokens_permille: u32,
    /// Whether the ledger keeps request bodies.
    pub keeps_bodies: bool,
}

/// What happens when thinking comes back after another prefix than it was bound to, on models that bind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefixMismatch {
    /// 400, as for accounts since 31 August 2026.
    #[default]
    Refuse,
    /// It is let through and reported, as for older accounts.
    Allow,
}

impl Options {
    /// A provider with all models of the embedded catalogue, real latency and no faults.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            catalogue: Catalogue::embedded().clone(),
            window: None,
            latency: Latency::real(),
            faults: Faults::none(),
            limits: None,
            keys: Keys::Any,
            chunking: Chunking::default(),
            prefix_mismatch: PrefixMismatch::default(),
            tokens_permille: 1000,
            keeps_bodies: true,
        }
    }

    /// The same, answering at once.
    #[must_use]
    pub fn without_latency(self) -> Self {
        Self {
            latency: Latency::none(),
            ..self
        }
    }
}

/// One exchange of the ledger.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// When the request came.
    pub at: Duration,
    /// Its path.
    pub path: String,
    /// The status of the answer.
    pub status: StatusCode,
    /// Id of the model in the catalogue, if there is one.
    pub model: Option<String>,
    /// What the call used, if it was answered.
    pub usage: Option<Usage>,
    /// What it costs.
    pub cost: Option<Money>,
    /// What went wrong by the script.
    pub fault: Option<Fault>,
    /// Whether it asked for a summary.
    pub is_summary: bool,
    /// From the request to the last byte of the answer.
    pub took: Duration,
    /// The body of the request, unpacked; empty if bodies are not kept.
    pub body: Bytes,
}

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

/// What happened to a request, for the ledger.
#[derive(Default)]
struct Noted {
    model: Option<String>,
    fault: Option<Fault>,
    is_summary: bool,
    body: Bytes,
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
        let path = path.trim_end_matches('/');
        let path = path.strip_prefix("/v1").unwrap_or(path);
        if method == Method::GET {
            if vendor == Vendor::Anthropic {
                headers::version(headers)?;
            }
            return models::answer(&self.options, vendor, path).map(Output::Json);
        }
        let (wire, endpoint) = match path {
            "/messages" => (Wire::Anthropic, Endpoint::Generate),
            "/messages/count_tokens" => (Wire::Anthropic, Endpoint::Count),
            "/chat/completions" => (Wire::OpenAiChat, Endpoint::Generate),
            "/responses" => (Wire::OpenAiResponses, Endpoint::Generate),
            "/responses/input_tokens" => (Wire::OpenAiResponses, Endpoint::Count),
            "/responses/compact" => (Wire::OpenAiResponses, Endpoint::Compact),
            _ => return Err(not_found(vendor, method, path)),
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

    /// The reply in words, with ids and signatures.
    fn written(
        &mut self,
        asked: &Asked,
        question: &Question,
        fault: Option<Fault>,
        is_summary: bool,
    ) -> Answer {
        let seed = self.options.seed;
        let mut dice = Dice::new(seed, "answer", &[&self.calls.to_le_bytes()]);
        let id = match asked.wire {
            Wire::Anthropic => dice.id("msg_01", 22),
            Wire::OpenAiChat => dice.id("chatcmpl-", 29),
            Wire::OpenAiResponses => dice.id("resp_", 48).to_ascii_lowercase(),
        };
        // What the model says hangs on what it was told, not on how many calls others made before.
        let mut mind = Dice::new(seed, "reply", &[question.heard.last_words()]);
        let mut answer = Answer {
            id,
            model: asked
                .body
                .string_field("model")
                .unwrap_or_else(|| asked.model.id.clone()),
            blocks: Vec::new(),
            stop: Stop::EndTurn,
            stop_sequence: None,
            output_tokens: 0,
            thinking_tokens: 0,
        };
        if question.output_max == 0 {
            // The cache is filled and nothing is said.
            answer.stop = Stop::MaxTokens;
            return answer;
        }
        if question.compacts {
            let content = persona::compaction(&question.heard, fault, question.output_max);
            self.compaction_block(asked, question, content, &mut answer);
            return answer;
        }
        let mut reply = match self.script.pop_front() {
            Some(reply) => reply,
            None => persona::reply(&question.heard, is_summary, question.output_max, &mut mind),
        };
        persona::spoil(&mut reply, fault, &question.heard, &mut mind);
        // With a budget every turn has to begin with thinking; otherwise the model decides.
        let has_budget = asked
            .body
            .field("thinking")
            .is_some_and(|thinking| thinking.field("budget_tokens").is_some());
        if reply.thinking.is_none()
            && question.thinks != Thinks::No
            && (has_budget || (!is_summary && mind.happens(0.8)))
        {
            reply.thinking = Some(persona::thought(&question.heard, &mut mind));
        }
        self.blocks(asked, question, reply, &mut mind, &mut answer);
        answer
    }

    /// Counts the parts of a reply, ends it at its limit and signs what is hidden.
    fn blocks(
        &self,
        asked: &Asked,
        question: &Question,
        reply: Reply,
        mind: &mut Dice,
        answer: &mut Answer,
    ) {
        let scale = asked.scale;
        let window = asked.model.window;
        let room = window.saturating_sub(question.prompt.tokens()).max(1);
        let (limit, at_limit) = if question.output_max <= room {
            (question.output_max, Stop::MaxTokens)
        } else {
            (room, Stop::WindowExceeded)
        };
        answer.stop = reply.reason();
        if question.thinks != Thinks::No
            && let Some(thinking) = &reply.thinking
        {
            let tokens = scale.text(thinking).min(limit);
            let text = match question.thinks {
                Thinks::Shown => thinking.clone(),
                Thinks::Hidden | Thinks::No => String::new(),
            };
            let signature = self.signer.sign(
                family(&asked.model),
                &question.prefix,
                &digest(&[text.as_bytes()]),
                tokens,
            );
            answer.thinking_tokens = tokens;
            answer.output_tokens = tokens;
            answer.blocks.push(AnswerBlock {
                content: AnswerContent::Thinking { text, signature },
                tokens,
            });
        }
        let mut taken = question.call_ids.clone();
        taken.extend(question.heard.server_call_ids());
        for part in reply.parts {
            let left = limit.saturating_sub(answer.output_tokens);
            let content = match part {
                ReplyPart::Text(text) => {
                    let (text, stopped) = up_to_stop(text, &question.stop_sequences);
                    let tokens = scale.text(&text);
                    let is_cut = tokens > left;
                    let text = if is_cut {
                        share(&text, left, tokens)
                    } else {
                        text
                    };
                    if is_cut {
                        answer.stop = at_limit;
                    } else if let Some(sequence) = stopped {
                        answer.stop = Stop::StopSequence;
                        answer.stop_sequence = Some(sequence);
                    }
                    let is_last = is_cut || answer.stop_sequence.is_some();
                    let tokens = tokens.min(left);
                    answer.output_tokens += tokens;
                    answer.blocks.push(AnswerBlock {
                        content: AnswerContent::Text(text),
                        tokens,
                    });
                    if is_last {
                        return;
                    }
                    continue;
                }
                ReplyPart::ToolCall { name, input } => AnswerContent::ToolCall {
                    id: free_id(&mut taken, || match asked.wire {
                        Wire::Anthropic => mind.id("toolu_01", 22),
                        Wire::OpenAiChat | Wire::OpenAiResponses => mind.id("call_", 24),
                    }),
                    name,
                    input,
                },
                ReplyPart::ServerToolCall { name, input } => AnswerContent::ServerToolCall {
                    id: free_id(&mut taken, || mind.id("srvtoolu_01", 22)),
                    name,
                    input,
                },
                ReplyPart::WebSearchResult => AnswerContent::WebSearchResult {
                    call_id: question.heard.open_server_call().unwrap_or_default(),
                },
            };
            let tokens = match &content {
                AnswerContent::ToolCall { name, input, .. }
                | AnswerContent::ServerToolCall { name, input, .. } => {
                    12 + scale.text(name) + scale.text(input)
                }
                _ => 0,
            };
            if tokens > left {
                answer.stop = at_limit;
                return;
            }
            answer.output_tokens += tokens;
            answer.blocks.push(AnswerBlock { content, tokens });
        }
    }

    fn compaction_block(
        &self,
        asked: &Asked,
        question: &Question,
        content: Option<String>,
        answer: &mut Answer,
    ) {
        let text = digest(&[content.as_deref().unwrap_or_default().as_bytes()]);
        let tokens = content.as_ref().map_or(0, |text| asked.scale.text(text));
        let (encrypted, signature) =
            anthropic::seal(&self.signer, &question.heard.covered(), &text);
        answer.stop = Stop::Compaction;
        answer.output_tokens = tokens;
        answer.blocks.push(AnswerBlock {
            content: AnswerContent::Compaction {
                content,
                encrypted,
                signature,
            },
            tokens,
        });
    }

    fn sent(&self, vendor: Vendor, output: Output, request_id: &str, dice: &mut Dice) -> Exchange {
        let latency = &self.options.latency;
        let mut headers = HeaderMap::new();
        let (turn, kind, pieces, ending, head_after) = match output {
            Output::Json(value) => {
                let (pieces, ending) = stream::whole(value.to_string(), latency.base / 4, None);
                (None, "application/json", pieces, ending, latency.base / 4)
            }
            Output::Whole(turn, value) => {
                let after = turn.first_after + latency.output(turn.answer.output_tokens);
                if let Some(Fault::StreamError(_)) = turn.fault {
                    let error = ApiError::new(500, "Internal server error");
                    return refused(&error, vendor, request_id);
                }
                let (pieces, ending) = stream::whole(value.to_string(), after, turn.fault);
                (Some(turn), "application/json", pieces, ending, after)
            }
            Output::Stream(turn, frames) => {
                let error = ApiError::new(529, "Overloaded");
                let (ping, error) = match vendor {
                    Vendor::Anthropic => (
                        Some(anthropic::PING),
                        anthropic::frame("error", &error.body(vendor, request_id)),
                    ),
                    Vendor::OpenAi => (
                        None,
                        format!("data: {}\n\n", error.body(vendor, request_id)),
                    ),
                };
                let pace = Pace {
                    latency,
                    first_after: turn.first_after,
                    chunking: self.options.chunking,
                    fault: turn.fault,
                    ping,
                    error,
                };
                let (pieces, ending) = stream::streamed(frames, &pace, dice);
                let head_after = turn.first_after;
                (
                    Some(turn),
                    "text/event-stream; charset=utf-8",
                    pieces,
                    ending,
                    head_after,
                )
            }
        };
        set(&mut headers, CONTENT_TYPE.as_str(), kind);
        if let (Some(left), Some(limits)) = (
            turn.as_ref().and_then(|turn| turn.left),
            &self.options.limits,
        ) {
            limit_headers(&mut headers, vendor, limits, &left);
        }
        Exchange {
            status: StatusCode::OK,
            headers,
            head_after,
            pieces,
            ending,
            usage: turn.as_ref().map(|turn| turn.usage),
            cost: turn.and_then(|turn| turn.cost),
        }
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

    fn record(&mut self, at: Duration, path: String, exchange: &Exchange, noted: Noted) {
        let body = if self.options.keeps_bodies {
            noted.body
        } else {
            Bytes::new()
        };
        self.ledger_body_bytes += body.len();
        self.ledger.push_back(Recorded {
            at,
            path,
            status: exchange.status,
            model: noted.model,
            usage: exchange.usage,
            cost: exchange.cost,
            fault: noted.fault,
            is_summary: noted.is_summary,
            took: exchange.finished_after(),
            body,
        });
        if self.ledger.len() > LEDGER_MAX
            && let Some(oldest) = self.ledger.pop_front()
        {
            self.ledger_body_bytes -= oldest.body.len();
        }
        if self.ledger_body_bytes > LEDGER_BODY_BYTES_MAX {
            for entry in &mut self.ledger {
                self.ledger_body_bytes -= entry.body.len();
                entry.body = Bytes::new();
                if self.ledger_body_bytes <= LEDGER_BODY_BYTES_MAX / 2 {
                    break;
                }
            }
        }
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

fn not_found(vendor: Vendor, method: &Method, path: &str) -> ApiError {
    match vendor {
        Vendor::Anthropic => ApiError::new(404, "Not Found"),
        Vendor::OpenAi => ApiError::new(404, format!("Invalid URL ({method} {path})")),
    }
}

fn no_model(vendor: Vendor, name: &str) -> ApiError {
    match vendor {
        Vendor::Anthropic => ApiError::new(404, format!("model: {name}")),
        Vendor::OpenAi => ApiError::new(
            404,
            format!("The model `{name}` does not exist or you do not have access to it."),
        )
        .code("model_not_found")
        .param("model"),
    }
}

pub(crate) fn unpacked(headers: &HeaderMap, body: Bytes) -> Result<Bytes, ApiError> {
    let too_large = || ApiError::new(413, TOO_LARGE);
    if body.len() > BODY_BYTES_MAX {
        return Err(too_large());
    }
    match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity" | b"") => Ok(body),
        Some(b"gzip") => {
            let mut unpacked = Vec::new();
            let limit = BODY_BYTES_MAX as u64 + 1;
            flate2::read::MultiGzDecoder::new(body.as_ref())
                .take(limit)
                .read_to_end(&mut unpacked)
                .map_err(|_| {
                    ApiError::new(400, "The request body could not be decoded as gzip.")
                        .error_code("request_body_encoding_invalid")
                })?;
            if unpacked.len() > BODY_BYTES_MAX {
                return Err(too_large().error_code("request_body_too_large_after_decoding"));
            }
            Ok(Bytes::from(unpacked))
        }
        Some(_) => Err(
            ApiError::new(400, "The content encoding of the request is not supported.")
                .error_code("request_body_encoding_unsupported"),
        ),
    }
}

fn parsed(bytes: Bytes, vendor: Vendor) -> Result<Raw, ApiError> {
    let invalid = |reason: String| match vendor {
        Vendor::Anthropic => {
            ApiError::new(400, format!("The request body is not valid JSON: {reason}"))
        }
        Vendor::OpenAi => ApiError::new(
            400,
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP \
             library correctly.)",
        ),
    };
    let text = ByteString::try_from(bytes).map_err(|_| invalid("invalid UTF-8".to_owned()))?;
    Raw::parse(text).map_err(|error| invalid(error.to_string()))
}

/// The limits that a fault makes believe.
fn limiting(fault: Fault, wire: Wire) -> Option<ApiError> {
    match fault {
        Fault::RateLimit { retry_after_s } => Some(
            ApiError::new(
                429,
                "This request would exceed the rate limit for your organization. Please reduce the prompt length or \
                 try again later.",
            )
            .code("rate_limit_exceeded")
            .retry_after(retry_after_s.map(u64::from)),
        ),
        Fault::SpendCap => {
            let error = ApiError::new(
                429,
                "You have reached your specified API usage limits. You will regain access next month.",
            )
            .code("insufficient_quota");
            Some(match wire {
                Wire::Anthropic => error.error_code("enforced_spend_limit_reached"),
                Wire::OpenAiChat | Wire::OpenAiResponses => error,
            })
        }
        _ => None,
    }
}

fn failing(fault: Fault) -> Option<ApiError> {
    match fault {
        Fault::ServerError => Some(ApiError::new(500, "Internal server error")),
        Fault::Timeout => Some(ApiError::new(504, "Request timed out")),
        Fault::Overloaded => Some(ApiError {
            should_retry: Some(true),
            ..ApiError::new(529, "Overloaded")
        }),
        _ => None,
    }
}

fn rate_limited(wait: Duration, what: &str) -> ApiError {
    let seconds = wait.as_secs_f64().ceil() as u64;
    ApiError::new(
        429,
        format!("This request would exceed your organization's rate limit of {what} per minute."),
    )
    .code("rate_limit_exceeded")
    .retry_after(Some(seconds.max(1)))
}

fn refused(error: &ApiError, vendor: Vendor, request_id: &str) -> Exchange {
    let mut headers = HeaderMap::new();
    set(&mut headers, CONTENT_TYPE.as_str(), "application/json");
    if let Some(seconds) = error.retry_after_s {
        set(&mut headers, RETRY_AFTER.as_str(), &seconds.to_string());
    }
    if let Some(should_retry) = error.should_retry {
        set(&mut headers, "x-should-retry", &should_retry.to_string());
    }
    let body = error.body(vendor, request_id).to_string();
    let (pieces, ending) = stream::whole(body, Duration::ZERO, None);
    Exchange {
        status: StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        headers,
        head_after: Duration::ZERO,
        pieces,
        ending,
        usage: None,
        cost: None,
    }
}

fn limit_headers(headers: &mut HeaderMap, vendor: Vendor, limits: &RateLimits, left: &Left) {
    let whole = |number: f64| number.max(0.0) as u64;
    // Remaining tokens are told in thousands.
    let rounded = |number: f64| (whole(number) + 500) / 1000 * 1000;
    let all = [
        ("requests", limits.requests_per_min, whole(left.requests)),
        (
            "input-tokens",
            limits.input_tokens_per_min,
            rounded(left.input),
        ),
        (
            "output-tokens",
            limits.output_tokens_per_min,
            rounded(left.output),
        ),
    ];
    for (what, limit, remaining) in all {
        let (limit_name, remaining_name) = match (vendor, what) {
            (Vendor::Anthropic, _) => (
                format!("anthropic-ratelimit-{what}-limit"),
                format!("anthropic-ratelimit-{what}-remaining"),
            ),
            (Vendor::OpenAi, "output-tokens") => continue,
            (Vendor::OpenAi, _) => {
                let what = if what == "requests" { what } else { "tokens" };
                (
                    format!("x-ratelimit-limit-{what}"),
                    format!("x-ratelimit-remaining-{what}"),
                )
            }
        };
        set(headers, &limit_name, &limit.to_string());
        set(headers, &remaining_name, &remaining.to_string());
    }
}

fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        headers.insert(name, value);
    }
}

/// Models whose thinking can be exchanged: here each model is its own family.
pub(crate) fn family(model: &Model) -> &str {
    &model.id
}

/// An id that no call of the conversation has.
fn free_id(taken: &mut Vec<String>, mut drawn: impl FnMut() -> String) -> String {
    loop {
        let id = drawn();
        if !taken.contains(&id) {
            taken.push(id.clone());
            return id;
        }
    }
}

/// The text before the first stop sequence in it.
fn up_to_stop(mut text: String, sequences: &[String]) -> (String, Option<String>) {
    let first = sequences
        .iter()
        .filter(|sequence| !sequence.is_empty())
        .filter_map(|sequence| Some((text.find(sequence.as_str())?, sequence)))
        .min_by_key(|(at, _)| *at);
    match first {
        Some((at, sequence)) => {
            text.truncate(at);
            (text, Some(sequence.clone()))
        }
        None => (text, None),
    }
}

/// The part of a text that so many of its tokens make.
fn share(text: &str, tokens: u64, of: u64) -> String {
    let bytes = text.len() as u64 * tokens / of.max(1);
    let end = text.floor_char_boundary(usize::try_from(bytes).unwrap_or(usize::MAX));
    text.get(..end).unwrap_or_default().to_owned()
}

/// Whether an answer ended as it should.
impl Exchange {
    /// Whether the client gets a whole answer.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.ending == Ending::Complete
    }
}
