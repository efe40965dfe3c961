use super::*;

#[track_caller]
fn check_found(name: &str, id: Option<&str>) {
    let found = Catalogue::embedded().find(name);
    assert_eq!(found.map(|model| model.id.as_str()), id, "{name}");
}

#[test]
fn the_embedded_file_is_whole() {
    let catalogue = Catalogue::empty()
        .extended(include_str!("../../data/models.toml"))
        .unwrap();
    assert!(catalogue.models().len() > 70);
    for model in catalogue.models() {
        assert!(!model.provider.is_empty(), "{}", model.id);
        assert!(
            !model.source.is_empty() && model.source != "user",
            "{}",
            model.id
        );
        assert_eq!(model.date.len(), 10, "{}", model.id);
        assert!(
            model.output_max.is_none_or(|max| max <= model.window),
            "{}",
            model.id
        );
        if let Some(long) = model.long_prompt {
            let prices = model.prices.unwrap();
            assert!(long.above < model.window, "{}", model.id);
            assert!(long.prices.input > prices.input, "{}", model.id);
        }
        assert_eq!(model.id, model.id.to_ascii_lowercase());
        assert_eq!(catalogue.find(&model.id), Some(model));
    }
}

#[test]
fn names_are_found_in_every_known_form() {
    check_found("claude-opus-4-5", Some("claude-opus-4-5"));
    check_found("Claude-Opus-4-5", Some("claude-opus-4-5"));
    check_found("claude-opus-4-5-20251101", Some("claude-opus-4-5"));
    check_found("anthropic/claude-opus-4.5", Some("claude-opus-4-5"));
    check_found(
        "openrouter/anthropic/claude-opus-4.5:beta",
        Some("claude-opus-4-5"),
    );
    check_found(
        "us.anthropic.claude-opus-4-5-20251101-v1:0",
        Some("claude-opus-4-5"),
    );
    check_found("anthropic.claude-opus-4-7", Some("claude-opus-4-7"));
    check_found("claude-sonnet-4-5@20250929", Some("claude-sonnet-4-5"));
    check_found("claude-sonnet-4-20250514[1m]", Some("claude-sonnet-4"));
    check_found("claude-3-7-sonnet-latest", Some("claude-3-7-sonnet"));
    check_found("gpt-4o-2024-08-06", Some("gpt-4o"));
    check_found("gpt-5.4-2026-03-05", Some("gpt-5.4"));
    check_found("openai/gpt-oss-20b:free", Some("gpt-oss-20b"));
    check_found("llama3.1:8b", Some("llama-3.1-8b"));
    check_found("models/gemini-2.5-pro", Some("gemini-2.5-pro"));
    check_found(
        "arn:aws:bedrock:us-east-1:1234:inference-profile/eu.anthropic.claude-haiku-4-5-20251001-v1:0",
        Some("claude-haiku-4-5"),
    );
}

#[test]
fn a_name_that_only_begins_alike_is_another_model() {
    for name in [
        "",
        "/",
        ":",
        "[1m]",
        "claude",
        "claude-opus-4-55",
        "claude-opus-4-5-mini",
        "gpt-4o-audio",
        "gpt-5.45",
        "gpt-5-4",
        "my-gpt-5",
        "claude-opus-4-5-2025110",
        "claude-opus-4-5-19991101",
        "notanthropic.claude-opus-4-5x",
        "claude-opus-4-5-v",
        "llama-3.1-8b-q4",
        "llama3.1:405b",
        "claude-opus-4-5[big]",
    ] {
        check_found(name, None);
    }
    let catalogue = Catalogue::empty()
        .extended("[[model]]\nid = 'claude-x-4'\nwindow = 200000\n")
        .unwrap();
    assert!(catalogue.find("vendor/claude-x-4:free").is_some());
    assert!(catalogue.find("claude-x-45").is_none());
    assert!(catalogue.find("claude-x").is_none());
}

#[test]
fn overrides_change_only_the_fields_they_name() {
    let catalogue = Catalogue::with_overrides(
        "[[model]]\nid = 'claude-opus-5-5'\nwindow = 400_000\nprices = { cache_read = 0.4 }\n\
         cache = { min_tokens = 700 }\nabilities = { mid_conversation_system = true }\n\
         [[model]]\nid = 'house-model'\nwindow = 65_536\naliases = ['house']\ntokenizer = 'o200k_base'\n",
    )
    .unwrap();
    let before = Catalogue::embedded().find("claude-opus-5-5").unwrap();
    let mut expected = before.clone();
    expected.window = 400_000;
    expected.prices.as_mut().unwrap().cache_read = Money::from_nano_dollars(400_000_000);
    expected.cache.min_tokens = Some(700);
    expected.abilities.mid_conversation_system = Some(true);
    assert_eq!(catalogue.find("claude-opus-5-5"), Some(&expected));
    let house = catalogue.find("house").unwrap();
    assert_eq!(
        (house.window, house.tokenizer),
        (65_536, TokenizerFamily::O200k)
    );
    assert_eq!(house.prices, None);
}

#[track_caller]
fn check_refused(toml: &str, part: &str) {
    let error = Catalogue::with_overrides(toml).unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}

#[test]
fn refusals_say_where() {
    check_refused("[[model]]\nid = 'x'\nwindow = 1\nwindo = 5\n", "line 4");
    check_refused("[[model]]\nid = 'x'\nwindow = 1\nwindo = 5\n", "windo");
    check_refused("[[model]]\nid = 'x'\nprices = { inputs = 5 }\n", "inputs");
    check_refused("[[model]\n", "line 1");
    check_refused(
        "[[model]]\nid = 'x'\n",
        "model \"x\" of the catalogue: window is missing",
    );
    check_refused(
        "[[model]]\nid = 'x'\nwindow = 0\n",
        "window must be positive",
    );
    check_refused("[[model]]\nid = 'x'\nwindow = -5\n", "line 3");
    check_refused(
        "[[model]]\nid = 'x'\nwindow = 5\nprices = { input = -1, output = 2 }\n",
        "prices must lie",
    );
    check_refused(
        "[[model]]\nid = 'x'\nwindow = 5\nprices = { input = nan, output = 2 }\n",
        "prices must lie",
    );
    check_refused(
        "[[model]]\nid = 'x'\nwindow = 5\naliases = ['gpt-5']\n",
        "the name \"gpt-5\" to \"gpt-5\" and to \"x\"",
    );
}

#[track_caller]
fn check_cost(model: &str, usage: Usage, dollars: &str) {
    let model = Catalogue::embedded().find(model).unwrap();
    assert_eq!(cost(&usage, model).unwrap().to_string(), dollars);
}

#[test]
fn calls_cost_the_list_price() {
    let usage = Usage {
        uncached: 1_000,
        cache_write: 3_000,
        cache_write_long: 2_000,
        cache_read: 150_000,
        output: 900,
    };
    // 1,000 x 5 + 1,000 x 6.25 + 2,000 x 10 + 150,000 x 0.5 + 900 x 25, in millionths of a dollar.
    check_cost("claude-opus-4-5", usage, "$0.12875");
    check_cost(
        "claude-opus-5-5",
        Usage {
            cache_read: 150_000,
            ..Usage::default()
        },
        "$0.03",
    );
    // The long-prompt price holds for every token of the request, also for the cached ones.
    let prompt = |uncached, cache_read| Usage {
        uncached,
        cache_read,
        output: 1_000,
        ..Usage::default()
    };
    check_cost("claude-haiku-5-5", prompt(100_000, 0), "$0.0105");
    check_cost("claude-haiku-5-5", prompt(1, 100_000), "$0.007501");
    check_cost("gpt-5.4", prompt(272_000, 0), "$0.695");
    check_cost("gpt-5.4", prompt(272_001, 0), "$1.382505");
    let free = Catalogue::embedded().find("gpt-oss-20b").unwrap();
    assert_eq!(cost(&usage, free), None);
}

#[test]
fn money_is_exact_and_stops_at_its_largest_amount() {
    let most = Money::from_nano_dollars(u64::MAX);
    assert_eq!(most + most, most);
    assert_eq!(
        Money::of_tokens(&[(u64::MAX, most), (u64::MAX, most)]),
        most
    );
    assert_eq!(
        Money::from_dollars(0.0125).unwrap().nano_dollars(),
        12_500_000
    );
    assert_eq!(Money::from_dollars(f64::NAN), None);
    assert_eq!(Money::ZERO.to_string(), "$0.00");
    assert_eq!(Money::from_nano_dollars(1_500_000_000).to_string(), "$1.50");
}
