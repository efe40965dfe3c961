//! Speed of the recognisers on generated text: tool output without and with hits, model prose, user messages.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use throughline_memory::cues::{
    Circumstances, Outcome, assistant_statements, output_lines, supersedes, user_sentences,
};

const BYTES: usize = 4 << 20;

fn repeated(lines: &[&str]) -> String {
    let mut text = String::with_capacity(BYTES + 200);
    for number in 0.. {
        for line in lines {
            text.push_str(line);
            text.push_str(&format!(" {number}\n"));
        }
        if text.len() >= BYTES {
            break;
        }
    }
    text
}

fn benches(criterion: &mut Criterion) {
    let quiet = repeated(&[
        "drwxr-xr-x 2 user user 4096 Mar  1 10:00 components",
        "    let total = items.iter().map(|item| item.price * item.count).sum::<u64>();",
        "The quick brown fox jumps over the lazy dog while the sun goes down behind the hill.",
        "{\"id\": 1042, \"name\": \"lamp\", \"tags\": [\"home\", \"light\"]}",
    ]);
    let code = repeated(&[
        "    if let Err(error) = handle_error(code).await { return Err(error.into()); }",
        "        return fmt.Errorf(\"failed to open the file: %w\", err)",
        "    pub fn name(&self) -> &str { &self.name }",
        "    for entry in entries { total += entry.size; }",
    ]);
    let log = repeated(&[
        "src/app.ts(3,14): error TS2322: Type 'string' is not assignable to type 'number'.",
        "   Compiling serde v1.0.229",
        "test store::tests::keeps_the_order ... ok",
    ]);
    let prose = repeated(&[
        "I'll use a B-tree because the keys are sorted, and the second index is no longer needed.",
        "The parser reads one line at a time and keeps the offsets of every record.",
        "- [ ] write the migration for the new column",
        "All tests pass now.",
    ]);
    let mut group = criterion.benchmark_group("cues");
    group.sample_size(10);
    for (name, text) in [
        ("output/quiet", &quiet),
        ("output/code", &code),
        ("output/log", &log),
    ] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| output_lines(black_box(text), Outcome::Unknown).count())
        });
    }
    group.throughput(Throughput::Bytes(prose.len() as u64));
    group.bench_function("model prose", |bencher| {
        bencher.iter(|| assistant_statements(black_box(&prose)).len())
    });
    group.bench_function("user text", |bencher| {
        bencher.iter(|| user_sentences(black_box(&prose), Circumstances::default()).len())
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function("supersedes", |bencher| {
        bencher.iter(|| {
            supersedes(
                black_box("Use 4 spaces for indentation"),
                black_box("use tabs for indentation please"),
            )
        });
    });
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
