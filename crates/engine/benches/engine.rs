//! What the engine takes of the time of a request: `cargo bench -p throughline-engine`.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot continue has failed"
)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use throughline_engine::{
    BuildOrder, CompactionSettings, EconomyRule, Engine, Input, Mark, MemoryAdoption, Output, Plan,
    Snapshot, Time, Version, VersionOrigin,
};
use throughline_memory::compact::{Form, Options, compact_after};
use throughline_memory::document::Memory;
use throughline_transcript::body::read_message;
use throughline_transcript::digest::{Chain, message_digest};
use throughline_transcript::message::Message;
use throughline_transcript::request::{self, Frame, Marks, message};
use throughline_transcript::wire::Wire;

const TEXT: &str = "The importer reads src/orders.rs and writes a table of 1,204 dates, which Ada checks by hand. ";

/// A message of about this many tokens.
fn message(index: usize, tokens: usize) -> Message {
    let text = format!("Part {index}. {}", TEXT.repeat(tokens / 24));
    let raw = if index.is_multiple_of(2) {
        message::user(Wire::Anthropic, &text)
    } else {
        message::assistant(Wire::Anthropic, &text)
    };
    read_message(&raw).unwrap()
}

fn draft(chain: Chain, messages: &[Message], settings: &CompactionSettings) -> Memory {
    let count = |text: &str| settings.counter.text(text);
    let options = Options {
        form: Form::UserMessage,
        ..Options::new(settings.memory_tokens_max as usize, &count)
    };
    compact_after(chain, messages, &options).unwrap().memory
}

fn drain(engine: &mut Engine) -> (Option<Plan>, Option<BuildOrder>) {
    let (mut plan, mut order) = (None, None);
    while let Some(output) = engine.poll() {
        match output {
            Output::Request(request) => plan = Some(request),
            Output::Draft(draft) => order = Some(draft),
            _ => {}
        }
    }
    (plan, order)
}

/// A session with this many messages, of which all but the last 40 are covered.
fn long_session(archived: usize) -> (CompactionSettings, Snapshot) {
    let settings = CompactionSettings::new(200_000);
    let covered: Vec<_> = (0..40).map(|index| message(index, 200)).collect();
    let mut memory = draft(Chain::new(), &covered, &settings);
    memory.cover.messages = archived - 40;
    let version = Version::new(memory, VersionOrigin::Draft, &settings);
    let snapshot = Snapshot {
        adoption: Some(MemoryAdoption {
            epoch: 1,
            version: Some(1),
            cover: archived - 40,
            at_messages: archived - 40,
            quoted: None,
        }),
        version: Some(version),
        messages: (archived - 40..archived)
            .map(|index| message(index, 200))
            .collect(),
        number: 1,
        ..Snapshot::default()
    };
    (settings, snapshot)
}

fn append_and_plan(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("append and plan");
    for archived in [1_000, 100_000] {
        let (settings, snapshot) = long_session(archived);
        let next = message(archived, 200);
        group.bench_function(format!("{archived} messages"), |bencher| {
            bencher.iter_batched(
                || {
                    (
                        Engine::restore(settings.clone(), snapshot.clone()),
                        next.clone(),
                    )
                },
                |(mut engine, next)| {
                    engine.handle(Time::from_ms(0), Input::Appended(next));
                    engine.handle(Time::from_ms(1), Input::RequestWanted);
                    let (plan, _) = drain(&mut engine);
                    (engine, black_box(plan.unwrap()))
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// 200,000 tokens of context at the hard mark.
fn full_session() -> (CompactionSettings, Snapshot) {
    const CONTEXT_TOKENS: usize = 200_000;
    let mut settings = CompactionSettings::new(280_000);
    settings.economy.rule = EconomyRule::HardMarkOnly;
    settings.hard = Mark::Tokens(CONTEXT_TOKENS as u64);
    let mut messages = Vec::new();
    let mut tokens = 0;
    // The last one is the user's.
    while tokens < CONTEXT_TOKENS || messages.len().is_multiple_of(2) {
        let next = message(messages.len(), 510);
        tokens += settings.counter.message(&next);
        messages.push(next);
    }
    let snapshot = Snapshot {
        messages,
        ..Snapshot::default()
    };
    (settings, snapshot)
}

fn swap(criterion: &mut Criterion) {
    let (settings, snapshot) = full_session();
    let cover = snapshot.messages.len() / 10 * 9;
    let covered = &snapshot.messages[..cover];
    let mut memory = draft(Chain::new(), covered, &settings);
    let mut chain = Chain::new();
    for message in covered {
        chain.push(message_digest(message));
    }
    memory.cover.digest = chain.digest();
    let with_ready = Snapshot {
        ready: Some(Version::new(memory, VersionOrigin::Model, &settings)),
        number: 1,
        ..snapshot.clone()
    };
    let mut group = criterion.benchmark_group("swap at 200,000 tokens");
    group.sample_size(30);
    group.bench_function("a memory by the model", |bencher| {
        bencher.iter_batched(
            || Engine::restore(settings.clone(), with_ready.clone()),
            |mut engine| {
                engine.handle(Time::from_ms(1), Input::RequestWanted);
                let (plan, _) = drain(&mut engine);
                assert_eq!(plan.as_ref().map(|plan| plan.first), Some(cover));
                (engine, plan)
            },
            BatchSize::PerIteration,
        );
    });
    let drafted = || {
        let mut engine = Engine::restore(settings.clone(), snapshot.clone());
        let end = engine.messages();
        engine.handle(Time::from_ms(0), Input::Appended(message(end, 50)));
        engine.handle(Time::from_ms(0), Input::Appended(message(end + 1, 50)));
        let (_, order) = drain(&mut engine);
        let order = order.unwrap();
        let memory = draft(Chain::at(order.chain), &order.messages, &settings);
        let ticket = order.ticket;
        engine.handle(
            Time::from_ms(1),
            Input::Drafted {
                ticket,
                result: Ok(memory),
            },
        );
        drain(&mut engine);
        engine
    };
    group.bench_function("a draft", |bencher| {
        bencher.iter_batched(
            drafted,
            |mut engine| {
                engine.handle(Time::from_ms(2), Input::RequestWanted);
                let (plan, _) = drain(&mut engine);
                assert!(plan.as_ref().is_some_and(|plan| plan.first > 0));
                (engine, plan)
            },
            BatchSize::PerIteration,
        );
    });

    let frame = Frame::new(
        Wire::Anthropic,
        request::Settings {
            model: "m".to_owned(),
            max_tokens: Some(1_000),
            ..request::Settings::default()
        },
    );
    let raws: Vec<_> = snapshot
        .messages
        .iter()
        .filter_map(|message| message.raw.clone())
        .collect();
    let memory = with_ready
        .ready
        .as_ref()
        .map(|version| version.text.as_str());
    group.bench_function("the request after it", |bencher| {
        bencher.iter(|| frame.compose(memory, black_box(&raws[cover..]), Marks::default()));
    });
    group.bench_function("a request of 200,000 tokens", |bencher| {
        bencher.iter(|| frame.compose(None, black_box(&raws), Marks::default()));
    });
    group.finish();
}

criterion_group!(benches, append_and_plan, swap);
criterion_main!(benches);
