use super::*;
use crate::conversation::Conversation;
use crate::json::{Raw, Text};
use crate::message::{Block, Content, Media, Message, Role, ToolCall, ToolInput, ToolResult};
use crate::usage::ContextSize;

/// Our own texts with their counts by tiktoken; `scripts/golden_tokens.py` writes the file.
#[derive(serde::Deserialize)]
struct Golden {
    name: String,
    kind: String,
    text: String,
    cl100k_base: usize,
    o200k_base: usize,
}

fn golden() -> Vec<Golden> {
    serde_json::from_str(include_str!("golden.json")).unwrap()
}

fn raw(json: impl Into<String>) -> Raw {
    Raw::parse(json.into()).unwrap()
}

#[test]
fn openai_encodings_are_counted_exactly() {
    let o200k = Counter::of_family(TokenizerFamily::O200k);
    assert!(o200k.is_exact() && Counter::reference().is_exact());
    for sample in golden() {
        let counts = (
            Counter::reference().text(&sample.text),
            o200k.text(&sample.text),
        );
        assert_eq!(
            counts,
            (sample.cl100k_base, sample.o200k_base),
            "{}",
            sample.name
        );
    }
}

/// Without a vocabulary, the whole of what conversations are made of is within a tenth.
#[test]
fn a_scan_needs_no_vocabulary_and_comes_near() {
    for (family, exact) in [
        (
            TokenizerFamily::Cl100k,
            (|sample| sample.cl100k_base) as fn(&Golden) -> usize,
        ),
        (TokenizerFamily::O200k, |sample| sample.o200k_base),
    ] {
        let counter = Counter::of_family(family);
        let scanning = counter.scanning();
        assert!(counter.is_exact() && !scanning.is_exact() && !scanning.estimating().is_exact());
        let samples: Vec<Golden> = golden()
            .into_iter()
            .filter(|sample| ["prose", "code", "json", "log"].contains(&sample.kind.as_str()))
            .collect();
        let counted: usize = samples.iter().map(exact).sum();
        let scanned: usize = samples
            .iter()
            .map(|sample| scanning.text(&sample.text))
            .sum();
        let ratio = scanned as f64 / counted as f64;
        assert!((0.9..1.1).contains(&ratio), "{family:?} {ratio}");
    }
}

#[test]
fn a_long_text_is_counted_as_exactly_as_a_short_one() {
    // Both ways of counting, below and above the size of the kept buffer.
    let line = "The keeper wrote down the weather of the day.\n";
    let per_line = Counter::reference().text(line);
    for lines in [100, 40_000] {
        assert_eq!(
            Counter::reference().text(&line.repeat(lines)),
            per_line * lines
        );
    }
}

/// How many times as many tokens as `o200k_base` a family makes of a text, by what is known: from 1 / (1 - low) to
/// 1 / (1 - high), where low and high are the shares by which `o200k_base` undercounts.
fn band(low: f64, high: f64) -> (f64, f64) {
    (1.0 / (1.0 - low), 1.0 / (1.0 - high))
}

#[track_caller]
fn check_band(family: TokenizerFamily, (lowest, highest): (f64, f64)) {
    let middle = f64::midpoint(lowest, highest);
    let counter = Counter::of_family(family);
    let o200k = Counter::of_family(TokenizerFamily::O200k);
    for kind in ["prose", "code", "json", "log", "cjk", "other"] {
        let texts: Vec<_> = golden()
            .into_iter()
            .filter(|sample| sample.kind == kind)
            .map(|sample| sample.text)
            .collect();
        // Short texts and a long one, which are estimated in different ways.
        let long = texts.join("\n\n").repeat(8);
        for text in texts.iter().chain([&long]) {
            let ratio = counter.text(text) as f64 / o200k.text(text) as f64;
            assert!(
                ratio >= middle && ratio <= middle * 1.1,
                "{family:?} {kind}: {ratio:.3}, the middle is {middle:.3}"
            );
        }
    }
}

#[test]
fn claude_is_estimated_high_by_at_most_a_tenth() {
    check_band(TokenizerFamily::Claude1, band(0.15, 0.22));
    check_band(TokenizerFamily::Claude2, band(0.27, 0.40));
}

#[test]
fn the_scan_alone_is_close_for_english_code_and_data() {
    for kind in ["prose", "code", "json", "log"] {
        let (mut estimated, mut split) = (0, 0);
        for sample in golden().iter().filter(|sample| sample.kind == kind) {
            estimated += scanned(&sample.text).millitokens;
            split += sample.o200k_base as u64 * 1000;
        }
        let ratio = estimated as f64 / split as f64;
        assert!((0.9..1.1).contains(&ratio), "{kind}: {ratio:.3}");
    }
}

fn text_message(role: Role, text: &str) -> Message {
    Message::new(role, vec![Block::text(text)])
}

fn call(name: &str, input: &str) -> Block {
    Block::new(Content::ToolCall(ToolCall {
        id: "t1".into(),
        name: name.into(),
        input: ToolInput::Json(raw(input)),
        is_server_side: false,
    }))
}

fn result(content: Vec<Block>) -> Block {
    Block::new(Content::ToolResult(ToolResult {
        call_id: "t1".into(),
        content,
        is_error: None,
        is_server_side: false,
    }))
}

#[test]
fn system_tools_and_arguments_count() {
    let conversation = Conversation {
        system: vec![Block::text("House rule: write short commits. ".repeat(800))],
        tools: Some(raw(format!(
            r#"[{{"name":"read_file","description":"{}","input_schema":{{"type":"object"}}}}]"#,
            "Reads a file and gives back its lines. ".repeat(500)
        ))),
        messages: vec![
            text_message(Role::User, "Plan the move of 40 tables."),
            Message::new(
                Role::Assistant,
                vec![
                    Block::text("I store the plan."),
                    call(
                        "write_file",
                        &format!(
                            r#"{{"path":"plan.md","text":"{}"}}"#,
                            "step: copy table, check rows. ".repeat(1000)
                        ),
                    ),
                ],
            ),
            Message::new(Role::User, vec![result(vec![Block::text("ok")])]),
        ],
        ..Conversation::default()
    };
    let size = Counter::reference().conversation(&conversation);
    assert!((5_600..6_000).contains(&size.system), "{size:?}");
    assert!((4_500..5_100).contains(&size.tools), "{size:?}");
    assert!((7_000..8_200).contains(&size.messages), "{size:?}");
    assert_eq!(size.total(), size.system + size.tools + size.messages);
    let claude = Counter::of_family(TokenizerFamily::Claude1).conversation(&conversation);
    assert!(claude.tools > size.tools + 484 && claude.messages > size.messages);
    assert_eq!(
        Counter::reference().conversation(&Conversation::default()),
        Size::default()
    );
    assert_eq!(Counter::reference().tools(&raw("[]")), 0);
}

#[test]
fn pictures_cost_an_allowance_regardless_of_their_bytes() {
    let picture = |bytes| {
        let data = "iVBORw0KGgo".repeat(bytes / 11);
        Block {
            content: Content::Image(Media {
                media_type: Some("image/png".into()),
                data_bytes: Some(bytes),
                name: None,
            }),
            raw: Some(raw(format!(
                r#"{{"type":"image","source":{{"data":"{data}"}}}}"#
            ))),
        }
    };
    let counter = Counter::of_family(TokenizerFamily::Claude1);
    assert_eq!(counter.block(&picture(40)), IMAGE_TOKENS);
    assert_eq!(counter.block(&picture(2_250_000)), IMAGE_TOKENS);
    assert_eq!(
        counter.block(&result(vec![picture(90_000)])),
        IMAGE_TOKENS + 8
    );
    assert_eq!(counter.with_image_tokens(85).block(&picture(2_250_000)), 85);
}

#[test]
fn documents_cost_by_page_and_text_documents_by_text() {
    let document = |media_type: &str, bytes, raw| Block {
        content: Content::Document(Media {
            media_type: Some(media_type.to_owned().into()),
            data_bytes: Some(bytes),
            name: None,
        }),
        raw,
    };
    let count = |block| Counter::reference().block(&block);
    assert_eq!(count(document("application/pdf", 1_000, None)), 2_500);
    assert_eq!(count(document("application/pdf", 600_000, None)), 25_000);
    assert_eq!(
        count(document("application/pdf", usize::MAX, None)),
        1_500_000
    );
    let text = raw(
        r#"{"type":"document","source":{"type":"text","data":"eleven words of plain text stand in this document, no more"}}"#,
    );
    assert!((20..60).contains(&count(document("text/plain", 57, Some(text)))));
    assert_eq!(count(document("text/plain", 300, None)), 100);
}

#[test]
fn blocks_of_unknown_kinds_count_by_their_json_but_not_by_their_base64() {
    let unknown = |json: String| {
        Counter::reference().block(&Block {
            content: Content::Other("novelty".into()),
            raw: Some(raw(json)),
        })
    };
    let prose = "a sentence that stands in a block of a new kind ".repeat(60);
    assert!((590..680).contains(&unknown(format!(
        r#"{{"type":"novelty","note":"{prose}"}}"#
    ))));
    let base64 = "Zm9vYmFy".repeat(100_000);
    let opaque = unknown(format!(r#"{{"type":"novelty","data":"{base64}"}}"#));
    assert!((4_000..4_030).contains(&opaque), "{opaque}");
    let url = unknown(format!(
        r#"{{"a":"x\"","url":"data:image/png;base64,{base64}","b":1}}"#
    ));
    assert!((4_000..4_030).contains(&url), "{url}");
    let short = unknown(format!(r#"{{"encrypted_content":"{}"}}"#, &base64[..6_000]));
    assert!((1_000..1_020).contains(&short), "{short}");
}

#[test]
fn withheld_reasoning_counts_by_its_signature() {
    let thinking = |text: &str, signature: usize| {
        Counter::reference().block(&Block {
            content: Content::Thinking(Text::plain(text)),
            raw: Some(raw(format!(
                r#"{{"type":"thinking","signature":"{}"}}"#,
                "A".repeat(signature)
            ))),
        })
    };
    assert_eq!(thinking("", 6_000), 1_004);
    assert_eq!(thinking("hello world", 0), 6);
    assert_eq!(thinking("hello world", 600), 104);
}

#[test]
fn results_within_results_do_not_exhaust_the_stack() {
    let mut block = Block::text("core");
    for _ in 0..100 {
        block = result(vec![block]);
    }
    assert_eq!(Counter::reference().block(&block), 801);
}

fn raw_message(json: String) -> Message {
    let raw = raw(json);
    let text = raw.text_field("content").unwrap();
    Message {
        raw: Some(raw),
        ..Message::new(Role::User, vec![Block::new(Content::Text(text))])
    }
}

#[test]
fn a_remembered_count_is_the_count() {
    let mut cache = CountCache::new(Counter::of_family(TokenizerFamily::Claude2), 8);
    let messages: Vec<_> = (0..40)
        .map(|n| {
            raw_message(format!(
                r#"{{"role":"user","content":"message number {n}"}}"#
            ))
        })
        .collect();
    for _ in 0..3 {
        for message in &messages {
            assert_eq!(cache.message(message), cache.counter().message(message));
        }
    }
    assert!(cache.entries() <= 8);
    let tools = raw(r#"[{"name":"shell","description":"Runs a command."}]"#);
    assert_eq!(cache.tools(&tools), cache.counter().tools(&tools));
    assert_eq!(cache.tools(&tools), cache.counter().tools(&tools));
    // A message without JSON is counted but not cached.
    let plain = text_message(Role::User, "hello");
    assert_eq!(cache.message(&plain), cache.counter().message(&plain));
}

#[test]
fn reports_teach_the_ratio_despite_outliers() {
    // A tokenizer that makes 1.34 times as many tokens; small texts scatter, and every fifth report is wrong.
    let mut calibration = Calibration::default();
    assert_eq!(calibration.apply(10_000), 10_000);
    let mut last_error = f64::MAX;
    for step in 1..=60u64 {
        let estimated = 4_000 + step * 1_700;
        let scatter = 1.0 + ((step * 37 % 11) as f64 - 5.0) / 300.0;
        let truth = (estimated as f64 * 1.34 * scatter) as u64;
        let reported = if step % 5 == 3 { truth * 4 } else { truth };
        calibration.observe(estimated, reported);
        let next = 200_000;
        last_error = (calibration.apply(next) as f64 / (next as f64 * 1.34) - 1.0).abs();
        if step >= 5 {
            assert!(last_error < 0.03, "step {step}: {last_error:.3}");
        }
    }
    assert!(last_error < 0.02);
    assert_eq!(calibration.reports(), 9);
}

#[test]
fn senseless_reports_are_bounded_or_left_out() {
    let mut calibration = Calibration::default();
    calibration.observe(10_000, 0);
    calibration.observe(100, 9_000);
    assert_eq!(calibration.reports(), 0);
    calibration.observe(1_000, u64::MAX);
    assert_eq!(calibration.apply(1_000), 3_000);
    let mut low = Calibration::default();
    low.observe(u64::MAX, 1);
    assert_eq!(low.apply(1_000), 400);
    assert_eq!(calibration.apply(u64::MAX), u64::MAX);
}

#[test]
fn the_meter_never_falls_below_the_report_plus_later_messages() {
    let mut meter = ContextMeter::default();
    assert_eq!(meter.next(5_000, 5_000), 5_000);
    let size = ContextSize {
        prompt: 12_000,
        next: 12_900,
        cached: 0,
    };
    meter.reported(10_000, size);
    assert_eq!(meter.next(10_900, 0), 13_080);
    // A large result was appended: it counts at once.
    assert_eq!(meter.next(60_900, 50_000), 73_080);
    // The estimate misses a part of the request that the report knows.
    assert_eq!(meter.next(2_000, 1_000), 14_100);
    meter.history_changed();
    assert_eq!(meter.next(2_000, 1_000), 2_400);
}

#[test]
fn a_prompt_that_was_cut_by_the_server_is_noticed() {
    assert!(ContextMeter::seems_cut(31_000, 4_096));
    assert!(!ContextMeter::seems_cut(31_000, 24_000));
    assert!(!ContextMeter::seems_cut(31_000, 0));
    assert!(!ContextMeter::seems_cut(400, 20));
}

proptest::proptest! {
    #[test]
    fn any_text_is_counted(text in "\\PC{0,400}|[ \t\r\n\x00-\x7f]{0,3000}|[a-zA-Zäß0-9你 -]{0,3000}") {
        let bytes = text.len();
        for family in [TokenizerFamily::Cl100k, TokenizerFamily::O200k] {
            let tokens = Counter::of_family(family).text(&text);
            proptest::prop_assert!(tokens <= bytes && (tokens > 0) == (bytes > 0));
        }
        let tokens = Counter::of_family(TokenizerFamily::Claude2).text(&text);
        proptest::prop_assert!(tokens <= 4 * bytes && (tokens > 0) == (bytes > 0));
        proptest::prop_assert!(scanned(&text).millitokens <= 4_000 * bytes as u64);
    }
}

/// Needs Python with tiktoken and its rank files: `cargo test -p throughline-transcript -- --ignored tiktoken`, with the
/// folder of the rank files in `TIKTOKEN_RANKS` where there is no network.
#[test]
#[ignore = "needs Python with tiktoken"]
#[expect(
    clippy::disallowed_methods,
    reason = "the counts come from another program"
)]
fn agrees_with_tiktoken_on_random_texts() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    // A fixed sequence of pseudo-random pieces of the golden texts, glued at any character.
    let samples = golden();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let texts: Vec<String> = (0..2_000)
        .map(|_| {
            let mut text = String::new();
            for _ in 0..=random(12) {
                let from = &samples[random(samples.len())].text;
                let skip = random(from.len());
                let length = random(60);
                text.extend(from.chars().skip(skip).take(length));
                if random(4) == 0 {
                    text.extend(char::from_u32(random(0x2_ffff) as u32));
                }
            }
            text
        })
        .collect();
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scripts/golden_tokens.py"
    );
    let mut command = Command::new("python3");
    command.arg(script).arg("--count");
    if let Ok(ranks) = std::env::var("TIKTOKEN_RANKS") {
        command.args(["--ranks", &ranks]);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = serde_json::to_vec(&texts).unwrap();
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let output = child.wait_with_output().unwrap();
    let counts: Vec<[usize; 2]> = serde_json::from_slice(&output.stdout).unwrap();
    let o200k = Counter::of_family(TokenizerFamily::O200k);
    for (text, expected) in texts.iter().zip(counts) {
        let ours = [Counter::reference().text(text), o200k.text(text)];
        assert_eq!(ours, expected, "{text:?}");
    }
}
