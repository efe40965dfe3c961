use super::*;

fn brief(said: &[Said]) -> Vec<String> {
    said.iter()
        .map(|said| {
            let texts: Vec<&str> = said.entry.texts().collect();
            let done = if said.status == Status::Resolved {
                " done"
            } else {
                ""
            };
            format!(
                "{}: {}{done}",
                said.entry.section().name(),
                texts.join(" | ")
            )
        })
        .collect()
}

#[track_caller]
fn check(wanted: Wanted, text: &str, expect: &[&str]) {
    match parse(text, wanted) {
        Ok(Parsed::Whole(said) | Parsed::Additions(said)) => assert_eq!(brief(&said), expect),
        other => panic!("{other:?}"),
    }
}

#[test]
fn six_headings_become_items() {
    let text = "\
Memory of messages 1-40 (12 turns). Reference data; later messages win. > marks tool output.

## User Intent
Answered:
- Export as CSV
Open:
- Add a header row

## Completed Work
- export.py: write_rows writes semicolons

## Errors & Corrections
- Never touch vendor/.
> E0308: mismatched types in src/a.rs → resolved: cast added
- Ruled out: pandas (too slow (12 s))
  - (superseded) port 80

## Active Work
- header row half done
- Decided: keep csv.writer (stdlib only; constraint: Python 3.8)

## Pending Tasks
- add the header (done)
- (implied) run the tests
- Open: which encoding? (answered)

## Key References
> read_file a.py: 40 lines
- `export.py`";
    check(
        Wanted::Markdown,
        text,
        &[
            "task: Export as CSV done",
            "task: Add a header row",
            "completed_work: export.py: write_rows writes semicolons",
            "corrections: Never touch vendor/.",
            "errors: E0308: mismatched types in src/a.rs | cast added done",
            "eliminated_approaches: pandas | too slow (12 s)",
            "current_state: header row half done",
            "key_decisions: keep csv.writer | stdlib only | Python 3.8",
            "next_steps: add the header done",
            "next_steps: run the tests",
            "open_questions: which encoding? done",
            "relevant_tool_results: 40 lines | read_file a.py",
            "references: `export.py`",
        ],
    );
}

#[test]
fn headings_of_other_names_are_understood() {
    let text = "Here is the summary:\n\n## Goal\nCSV export\n**Decisions:**\n1. Semicolons, not commas\n### 3. Files\n* export.py (write_rows)\n## Next\nadd a header row\n## Mood\n- calm";
    check(
        Wanted::Markdown,
        text,
        &[
            "task: CSV export",
            "key_decisions: Semicolons, not commas",
            "references: export.py (write_rows)",
            "next_steps: add a header row",
            "current_state: calm",
        ],
    );
}

#[test]
fn lines_that_go_on_belong_to_their_item() {
    let text = "## Errors & Corrections\n- Error: it broke\n  at line 3\n```\n# not a heading\nmore\n```\n- Error: second";
    check(
        Wanted::Markdown,
        text,
        &[
            "errors: it broke\nat line 3\n# not a heading\nmore",
            "errors: second",
        ],
    );
}

const OBJECT: &str = r#"{"task":"Export as CSV\nAdd a header row","current_state":"header half done\nDone: export.py writes semicolons","key_decisions":[{"decision":"csv.writer","reason":null,"constraint":"3.8"},{"decision":"Never touch vendor/.","reason":"said by the user","constraint":null}],"eliminated_approaches":[{"approach":"pandas","reason_ruled_out":"slow"}],"open_questions":["which encoding? (answered)"],"next_steps":["add it","(implied) test"],"relevant_tool_results":{"error 1":"E1 → resolved: cast","references":"a.py\nb.py","ls":"3 files"},"compacted_at_turn":7}"#;
const OBJECT_SAYS: [&str; 14] = [
    "task: Export as CSV",
    "task: Add a header row",
    "current_state: header half done",
    "completed_work: export.py writes semicolons",
    "key_decisions: csv.writer | 3.8",
    "corrections: Never touch vendor/.",
    "eliminated_approaches: pandas | slow",
    "open_questions: which encoding? done",
    "next_steps: add it",
    "next_steps: test",
    "errors: E1 | cast done",
    "references: a.py",
    "references: b.py",
    "relevant_tool_results: 3 files | ls",
];

#[test]
fn what_stands_around_the_json_does_not_matter() {
    for text in [
        OBJECT.to_owned(),
        format!("```json\n{OBJECT}\n```"),
        format!("Sure, here is the memory:\n\n{OBJECT}\n\nLet me know!"),
        format!("<analysis>\nThe user {{wants}} a thing. {{\"task\": 1}}\n</analysis>\n{OBJECT}"),
        format!("I think so.</think>{OBJECT}"),
        format!("<thinking a=\"b\">x</thinking>\n<summary>\n{OBJECT}\n</summary>"),
        format!("{{\"note\": 1}} {OBJECT}"),
        format!("\u{feff}{OBJECT}"),
    ] {
        for wanted in [Wanted::Object, Wanted::Items, Wanted::Markdown] {
            check(wanted, &text, &OBJECT_SAYS);
        }
    }
}

#[test]
fn reasoning_is_taken_out_of_markdown() {
    check(
        Wanted::Markdown,
        "<scratchpad>\n## User Intent\n- wrong\n</scratchpad>\n## User Intent\n- right",
        &["task: right"],
    );
    // Never closed: nothing of it counts.
    assert_eq!(
        parse("<think>\n## User Intent\n- wrong", Wanted::Markdown),
        Err(ParseError::NoStructure)
    );
    // A mark inside of an item is text.
    check(
        Wanted::Markdown,
        "## User Intent\n- strip <thinking> blocks",
        &["task: strip <thinking> blocks"],
    );
}

#[test]
fn edits_are_read() {
    let text = r#"{"edits":[
        {"action":"add","section":"errors","text":"E1","detail":"cast","message":12},
        {"action":"replace","id":"a","text":"new"},
        {"action":"resolve","id":"b","detail":"none"},
        {"action":"supersede","id":"c","by":"d"},
        {"action":"drop","id":"e","reason":"old"}]}"#;
    let parsed = parse(text, Wanted::Edits).unwrap();
    let Parsed::Edits(changes) = parsed else {
        panic!("{parsed:?}")
    };
    assert_eq!(changes.len(), 5);
    assert!(
        matches!(&changes[0], Change::Add(said) if said.message == Some(12) && said.entry.section() == Section::Errors)
    );
    assert_eq!(
        changes[2],
        Change::Resolve {
            id: "b".to_owned(),
            resolution: None
        }
    );
}

#[test]
fn a_memory_in_the_place_of_edits_only_adds() {
    assert!(matches!(
        parse(OBJECT, Wanted::Edits),
        Ok(Parsed::Additions(_))
    ));
    assert!(matches!(
        parse("## Completed Work\n- x", Wanted::Edits),
        Ok(Parsed::Additions(_))
    ));
}

#[track_caller]
fn check_error(wanted: Wanted, text: &str, expect: &str) {
    let error = parse(text, wanted).unwrap_err();
    assert_eq!(
        match error {
            ParseError::CutOff => "cut off".to_owned(),
            ParseError::NoStructure => "no structure".to_owned(),
            ParseError::InvalidJson { .. } => "invalid".to_owned(),
            ParseError::WrongShape { path, .. } => path,
        },
        expect,
        "{text}"
    );
}

#[test]
fn the_shape_is_strict() {
    let rows = [
        (Wanted::Object, r#"{"task":"a"}"#, "."),
        (
            Wanted::Object,
            r#"{"task":["a"],"current_state":"b"}"#,
            "task",
        ),
        (
            Wanted::Object,
            r#"{"task":"a","current_state":"b","next_steps":["x",{"step":1}]}"#,
            "next_steps[1]",
        ),
        (
            Wanted::Object,
            r#"{"task":"a","current_state":"b","notes":"c"}"#,
            "notes",
        ),
        (
            Wanted::Object,
            r#"{"task":"a","current_state":"b","key_decisions":[{"what":"c"}]}"#,
            "key_decisions[0].what",
        ),
        (
            Wanted::Items,
            r#"{"items":[{"section":"moods","text":"a"}]}"#,
            "items[0].section",
        ),
        (Wanted::Items, r#"{"items":{"a":1}}"#, "items"),
        (
            Wanted::Edits,
            r#"{"edits":[{"action":"add","text":"a"}]}"#,
            "edits[0].section",
        ),
        (
            Wanted::Edits,
            r#"{"edits":[{"action":"erase","id":"a"}]}"#,
            "edits[0].action",
        ),
        (
            Wanted::Edits,
            r#"{"edits":[{"action":"replace","text":"a"}]}"#,
            "edits[0].id",
        ),
        (
            Wanted::Edits,
            r#"{"edits":[{"action":"supersede","id":"a"}]}"#,
            "edits[0].by",
        ),
        (Wanted::Object, r#"{"task":"a","current_st"#, "cut off"),
        (
            Wanted::Edits,
            "```json\n{\"edits\":[{\"action\":",
            "cut off",
        ),
        (Wanted::Object, r#"{"task":"a",}"#, "invalid"),
        (Wanted::Object, r#"{'task':'a'}"#, "invalid"),
        (Wanted::Object, "I fixed the test.", "no structure"),
        (
            Wanted::Markdown,
            "I fixed the test.\n- and more",
            "no structure",
        ),
        (Wanted::Items, "[1, 2]", "no structure"),
    ];
    for (wanted, text, expect) in rows {
        check_error(wanted, text, expect);
    }
}

#[test]
fn words_for_nothing_say_nothing() {
    for text in [
        "",
        " - ",
        "(none)",
        "None.",
        "N/A",
        "*None yet*",
        "[...]",
        "…",
        "TBD",
        "（无）",
    ] {
        assert!(!says_something(text), "{text}");
    }
    for text in ["no-op", "none of the tests pass", "7", "是", "x"] {
        assert!(says_something(text), "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(\\PC|[\\n{}\\[\\]\",:#*>()-]|<think>|</think>|\"edits\":|\"task\":|## Next){0,80}") {
        for wanted in [Wanted::Object, Wanted::Items, Wanted::Edits, Wanted::Markdown] {
            let _ = parse(&text, wanted);
        }
    }
}
