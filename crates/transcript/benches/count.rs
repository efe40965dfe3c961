//! Speed of counting tokens: `cargo bench -p throughline-transcript --bench count`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use throughline_transcript::catalogue::TokenizerFamily;
use throughline_transcript::json::{Raw, write_string};
use throughline_transcript::message::{Block, Content, Message, Role};
use throughline_transcript::tokens::{CountCache, Counter};

const LINE: &str = "2026-03-02 let total = orders.iter().map(|order| order.price_cents).sum(); // adds up what was sold, net\n";

fn counting(criterion: &mut Criterion) {
    let text = LINE.repeat(10_000);
    let mut group = criterion.benchmark_group("text");
    group.throughput(Throughput::Bytes(text.len() as u64));
    for (name, counter) in [
        ("cl100k_base, exact", Counter::reference()),
        ("cl100k_base, estimate", Counter::reference().estimating()),
        (
            "Claude, estimate",
            Counter::of_family(TokenizerFamily::Claude2),
        ),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| counter.text(black_box(&text)))
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("short line");
    group.throughput(Throughput::Bytes(LINE.len() as u64));
    group.bench_function("cl100k_base, exact", |bencher| {
        bencher.iter(|| Counter::reference().text(black_box(LINE)));
    });
    group.finish();
}

/// A request of a megabyte that was counted before, come again as other bytes.
fn repeated_request(criterion: &mut Criterion) {
    let messages = || -> Vec<Message> {
        (0..250)
            .filter_map(|number| {
                let mut json = String::from("{\"role\":\"user\",\"content\":");
                write_string(&format!("{number}: {}", LINE.repeat(40)), &mut json);
                json.push('}');
                let raw = Raw::parse(json).ok()?;
                let text = raw.text_field("content")?;
                let mut message = Message::new(Role::User, vec![Block::new(Content::Text(text))]);
                message.raw = Some(raw);
                Some(message)
            })
            .collect()
    };
    let (first, again) = (messages(), messages());
    let bytes: usize = first
        .iter()
        .filter_map(|message| message.raw.as_ref())
        .map(Raw::len)
        .sum();
    let mut cache = CountCache::new(Counter::of_family(TokenizerFamily::Claude2), 10_000);
    let mut count = |messages: &[Message]| -> usize {
        messages.iter().map(|message| cache.message(message)).sum()
    };
    count(&first);
    let mut group = criterion.benchmark_group("request of 1 MB");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("repeated", |bencher| {
        bencher.iter(|| count(black_box(&again)))
    });
    group.finish();
}

criterion_group!(benches, counting, repeated_request);
criterion_main!(benches);
