//! How fast secrets are looked for: prose and code without any, and a text with one secret per 10 kB.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use throughline_memory::redact::Redactor;

const PROSE: &str = "The north plot was watered before noon, and the pump ran for eleven minutes without a pause. \
    We moved the ladders to the shed, counted forty crates and wrote the numbers on the board. \
    Nobody has looked at the fence since the storm, so that is the first thing to do on Monday.\n";

const CODE: &str = "impl Harvest {\n    fn weigh(&mut self, crates: &[Crate]) -> Result<Weight, ScaleError> {\n        \
    let total = crates.iter().map(|one| one.weight - TARE).sum();\n        self.log.push(Entry::new(total, crates.len()));\n        \
    let token = self.lexer.next_token();\n        if token.kind == Kind::End { return Ok(total); }\n        \
    debug!(\"weighed {} crates of plot {}\", crates.len(), self.plot);\n    }\n}\n";

/// At least `bytes` of `text`, with the numbers of the repetitions in it.
fn repeated(text: &str, bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + text.len());
    let mut number = 0;
    while out.len() < bytes {
        out.push_str(&format!("{number} {text}"));
        number += 1;
    }
    out
}

fn redact(criterion: &mut Criterion) {
    let redactor = Redactor::embedded();
    let secret = [
        "\nGH=gh", "p_", "4kWm", "Zt81Lq", "Yb0vN3xJ", "d6RsPu2H", "gT9cEfAa", "5o\n",
    ]
    .concat();
    let mut with_secrets = repeated(CODE, 10_000);
    with_secrets.push_str(&secret);
    let texts = [
        ("prose", repeated(PROSE, 4_000_000)),
        ("code", repeated(CODE, 4_000_000)),
        ("a secret per 10 kB", repeated(&with_secrets, 4_000_000)),
    ];
    let mut group = criterion.benchmark_group("redact");
    for (name, text) in &texts {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(*name, |bencher| {
            bencher.iter(|| redactor.redact(black_box(text)).len());
        });
    }
    group.finish();
}

criterion_group!(benches, redact);
criterion_main!(benches);
