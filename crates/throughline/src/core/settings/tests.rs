use serde_json::json;

use super::*;
use crate::core::SessionRow;

fn other_settings() -> CompactionSettings {
    let mut settings = CompactionSettings::new(50_000);
    settings.mode = Mode::Traditional;
    settings.output_reserve = 1;
    settings.body_bytes_max = Some(2);
    settings.soft = Mark::Tokens(3);
    settings.hard = Mark::Permille(4);
    settings.threshold = Mark::Tokens(5);
    settings.step = UpdateStep {
        tokens: Some(6),
        tool_calls: Some(7),
        at_breaks: false,
    };
    settings.triggers = Triggers {
        turns: Some(8),
        tool_calls: Some(9),
        phases: true,
    };
    settings.keep = Mark::Tokens(10);
    settings.memory_tokens_max = 11;
    settings.gain_min = Mark::Tokens(12);
    settings.fallback = Fallback::KeepHistory;
    settings.model_wait_ms_max = 13;
    settings.traditional_wait_ms_max = 14;
    settings.failures_max = 15;
    settings.failure_rest_ms = 16;
    settings.economy = Economy {
        rule: EconomyRule::WhenItPays {
            margin_permille: 17,
        },
        cache_ms: 18,
        read_permille: 19,
        write_permille: 20,
        output_permille: 21,
        spending: Spending::Freely,
    };
    settings.binds_thinking = true;
    settings.counter = Counter::of_family(TokenizerFamily::Claude2);
    settings
}

#[test]
fn every_setting_comes_back() {
    let before = CompactionSettings::new(200_000);
    let after = other_settings();
    let mut row = SessionRow::default();
    row.change(&before, &after);
    assert_eq!(row.changed.len(), fields(&after).len());
    let row = SessionRow::read(&row.to_json()).unwrap();
    let read = row.settings(before, |_| {});
    assert_eq!(fields(&read), fields(&after));
    // What is not understood changes nothing.
    let strange = r#"{"changed":{"mode":7,"soft":"x","later":1}}"#;
    let read = SessionRow::read(strange).unwrap().settings(read, |_| {});
    assert_eq!(fields(&read), fields(&after));
}

#[test]
fn only_what_differs_is_kept() {
    let before = CompactionSettings::new(200_000);
    let mut after = before.clone();
    after.mode = Mode::Off;
    assert_eq!(
        Value::Object(difference(&before, &after)),
        json!({ "mode": "off" })
    );
}

#[test]
fn groups_have_named_fields() {
    let stored = fields(&other_settings());
    for (name, value) in [
        ("soft", json!({ "tokens": 3 })),
        (
            "step",
            json!({ "tokens": 6, "tool_calls": 7, "at_breaks": false }),
        ),
        (
            "triggers",
            json!({ "turns": 8, "tool_calls": 9, "phases": true }),
        ),
        (
            "economy",
            json!({
                "rule": { "when-it-pays": { "margin_permille": 17 } },
                "cache_ms": 18, "read_permille": 19, "write_permille": 20,
            }),
        ),
        (
            "spending",
            json!({ "output_permille": 21, "savings_permille": null }),
        ),
        ("tokenizer", json!("claude-2")),
    ] {
        assert_eq!(stored[name], value, "{name}");
    }
}

/// As version 0.1 wrote them.
#[test]
fn the_form_of_older_versions_is_read() {
    let old = r#"{"is_memory_in_system":false,"begun":{"window":50000,"step":[6,7,false],"body_bytes_max":null},
        "changed":{"mode":"traditional","output_reserve":1,"body_bytes_max":2,"soft":{"tokens":3},
        "hard":{"permille":4},"threshold":{"tokens":5},"step":[6,7,false],"triggers":[8,9,true],"keep":{"tokens":10},
        "memory_tokens_max":11,"gain_min":{"tokens":12},"keeps_history":true,"model_wait_ms_max":13,
        "traditional_wait_ms_max":14,"failures_max":15,"failure_rest_ms":16,"economy":[17,18,19,20],
        "spending":[21,null],"binds_thinking":true,"tokenizer":"claude-2"},
        "cleared_versions":0,"undone_versions":3,"before":[{"version":2,"quoted":[4,5],"removed_tokens":6}],
        "compared":{"calls":1,"refused":0,"cost_nanodollars":5,"last_prompt":7,"removed_tokens":9}}"#;
    let row = SessionRow::read(old).unwrap();
    let read = row.settings(CompactionSettings::new(200_000), |_| {});
    assert_eq!(fields(&read), fields(&other_settings()));
    assert_eq!((row.undone_versions, row.before.len()), (3, 1));
    for (number, rule) in [
        ("-2", EconomyRule::HardMarkOnly),
        ("-1", EconomyRule::WhenCold),
        ("0", EconomyRule::WhenItPays { margin_permille: 0 }),
    ] {
        let old = format!(r#"{{"changed":{{"economy":[{number},1,2,3],"spending":[5000,500]}}}}"#);
        let row = SessionRow::read(&old).unwrap();
        let read = row.settings(CompactionSettings::new(200_000), |_| {});
        assert_eq!((read.economy.rule, read.economy.cache_ms), (rule, 1));
        assert_eq!(
            read.economy.spending,
            Spending::FromSavings { permille: 500 }
        );
    }
}
