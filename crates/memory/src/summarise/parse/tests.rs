use super::*;
use crate::document::Status;
use crate::summarise::answer::{Change, NewItem};

fn brief(said: &[NewItem]) -> Vec<String> {
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
fn check(wanted: AnswerForm, text: &str, expect: &[&str]) {
    match parse(text, wanted) {
        Ok(AnswerContent::Whole(said) | AnswerContent::Additions(said)) => {
            assert_eq!(brief(&said), expect)
        }
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
        AnswerForm::Markdown,
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
        AnswerForm::Markdown,
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
        AnswerForm::Markdown,
        text,
        &[
            "errors: it broke\nat line 3\n# not a heading\nmore",
            "errors: second",
        ],
    );
}

const ITEMS: &str = r#"{"items":[{"section":"task","text":"Export as CSV"},{"section":"key_decisions","text":"csv.writer","detail":null,"limit":"3.8","message":4},{"section":"eliminated_approaches","text":"pandas","detail":"slow"},{"section":"next_steps","text":"add it","detail":"explicit"},{"section":"next_steps","text":"test","detail":null},{"section":"errors","text":"E1","detail":"cast"},{"section":"relevant_tool_results","text":"3 files","detail":"ls"},{"section":"references","text":"a.py"}]}"#;
const ITEMS_SAY: [&str; 8] = [
    "task: Export as CSV",
    "key_decisions: csv.writer | 3.8",
    "eliminated_approaches: pandas | slow",
    "next_steps: add it",
    "next_steps: test",
    "errors: E1 | cast",
    "relevant_tool_results: 3 files | ls",
    "references: a.py",
];

#[test]
fn text_around_the_json_is_ignored() {
    for text in [
        ITEMS.to_owned(),
        format!("```json\n{ITEMS}\n```"),
        format!("Sure, here is the memory:\n\n{ITEMS}\n\nLet me know!"),
        format!("<analysis>\nThe user {{wants}} a thing. {{\"task\": 1}}\n</analysis>\n{ITEMS}"),
        format!("I think so.</think>{ITEMS}"),
        format!("<thinking a=\"b\">x</thinking>\n<summary>\n{ITEMS}\n</summary>"),
        format!("{{\"note\": 1}} {ITEMS}"),
        format!("\u{feff}{ITEMS}"),
    ] {
        for wanted in [AnswerForm::Items, AnswerForm::Markdown] {
            check(wanted, &text, &ITEMS_SAY);
        }
    }
}

#[test]
fn reasoning_is_taken_out_of_markdown() {
    check(
        AnswerForm::Markdown,
        "<scratchpad>\n## User Intent\n- wrong\n</scratchpad>\n## User Intent\n- right",
        &["task: right"],
    );
    // Never closed: nothing of it counts.
    assert_eq!(
        parse("<think>\n## User Intent\n- wrong", AnswerForm::Markdown),
        Err(ParseError::NoStructure)
    );
    // A mark inside of an item is text.
    check(
        AnswerForm::Markdown,
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
    let parsed = parse(text, AnswerForm::Edits).unwrap();
    let AnswerContent::Edits(changes) = parsed else {
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
        parse(ITEMS, AnswerForm::Edits),
        Ok(AnswerContent::Additions(_))
    ));
    assert!(matches!(
        parse("## Completed Work\n- x", AnswerForm::Edits),
        Ok(AnswerContent::Additions(_))
    ));
}

#[track_caller]
fn check_error(wanted: AnswerForm, text: &str, expect: &str) {
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
        (AnswerForm::Items, r#"{"task":"a"}"#, "task"),
        (
            AnswerForm::Items,
            r#"{"items":[{"section":"task","text":["a"]}]}"#,
            "items[0].text",
        ),
        (
            AnswerForm::Items,
            r#"{"items":[{"section":"task","text":"a","notes":"c"}]}"#,
            "items[0].notes",
        ),
        (
            AnswerForm::Items,
            r#"{"items":[{"section":"moods","text":"a"}]}"#,
            "items[0].section",
        ),
        (AnswerForm::Items, r#"{"items":{"a":1}}"#, "items"),
        (
            AnswerForm::Edits,
            r#"{"edits":[{"action":"add","text":"a"}]}"#,
            "edits[0].section",
        ),
        (
            AnswerForm::Edits,
            r#"{"edits":[{"action":"erase","id":"a"}]}"#,
            "edits[0].action",
        ),
        (
            AnswerForm::Edits,
            r#"{"edits":[{"action":"replace","text":"a"}]}"#,
            "edits[0].id",
        ),
        (
            AnswerForm::Edits,
            r#"{"edits":[{"action":"supersede","id":"a"}]}"#,
            "edits[0].by",
        ),
        (AnswerForm::Items, r#"{"items":[{"section":"ta"#, "cut off"),
        (
            AnswerForm::Edits,
            "```json\n{\"edits\":[{\"action\":",
            "cut off",
        ),
        (AnswerForm::Items, r#"{"items":[],}"#, "invalid"),
        (AnswerForm::Items, r#"{'items':[]}"#, "invalid"),
        (AnswerForm::Items, "I fixed the test.", "no structure"),
        (
            AnswerForm::Markdown,
            "I fixed the test.\n- and more",
            "no structure",
        ),
        (AnswerForm::Items, "[1, 2]", "no structure"),
    ];
    for (wanted, text, expect) in rows {
        check_error(wanted, text, expect);
    }
}

#[test]
fn placeholders_for_nothing_make_no_items() {
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
        for wanted in [AnswerForm::Items, AnswerForm::Edits, AnswerForm::Markdown] {
            let _ = parse(&text, wanted);
        }
    }
}
