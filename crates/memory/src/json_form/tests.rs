use proptest::prelude::*;

use super::*;
use crate::document::{Item, Origin, Section, Status};
use crate::testing::{any_memory, entry, item, memory};

fn small() -> Memory {
    let mut old = item(Origin::User, 2, entry(Section::Corrections, "Use npm."));
    old.status = Status::SupersededBy("later".into());
    old.id = "earlier".into();
    memory(vec![old])
}

#[test]
fn the_form_is_fixed() {
    insta::assert_snapshot!(small().to_json(), @r#"
    {
      "schema": "throughline.memory/1",
      "version": 1,
      "compacted_at_turn": 12,
      "covered": {
        "messages": 40,
        "digest": "d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1",
        "until_ms": 1772625600000
      },
      "language": "eng",
      "sizes": {
        "corrections": {
          "items": 1,
          "characters": 8
        }
      },
      "task": [],
      "current_state": [],
      "completed_work": [],
      "key_decisions": [],
      "eliminated_approaches": [],
      "errors": [],
      "corrections": [
        {
          "id": "earlier",
          "text": "Use npm.",
          "origin": "user",
          "message": 2,
          "at_ms": 1772625600000,
          "status": {
            "superseded_by": "later"
          },
          "touched": 1
        }
      ],
      "open_questions": [],
      "next_steps": [],
      "relevant_tool_results": [],
      "references": []
    }
    "#);
}

/// What reading `json` fails with, as the user sees it.
fn check_error(json: &str, expected: &str) {
    let error = read(json).unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert!(!error.hint().is_empty());
}

#[test]
fn non_memories_are_refused_with_a_reason() {
    check_error(" \n", "the memory document is empty");
    check_error(
        "# Notes\n",
        "the memory document is not JSON: expected value at line 1 column 1",
    );
    check_error(
        "[1, 2]",
        "this is not a memory document: invalid type: integer `1`, expected a string at line 1 column 2",
    );
    check_error(
        "{}",
        "this is not a memory document: it has no field `schema`",
    );
    check_error(
        r#"{"task": "x", "compacted_at_turn": 3}"#,
        "this is not a memory document: it is the compact object, which has no ids and no origins",
    );
    check_error(
        r#"{"schema": "other/1"}"#,
        "this is not a memory document: its schema is \"other/1\"",
    );
    check_error(
        r#"{"schema": "throughline.memory/2"}"#,
        "the memory document has schema \"throughline.memory/2\", this program reads \"throughline.memory/1\"",
    );
    check_error(
        r#"{"schema": "throughline.memory/11"}"#,
        "the memory document has schema \"throughline.memory/11\", this program reads \"throughline.memory/1\"",
    );
}

#[test]
fn a_field_that_does_not_fit_is_named() {
    let json = small().to_json();
    check_error(
        &json.replace("\"user\"", "\"nobody\""),
        "corrections[0].origin: unknown variant `nobody`, expected one of `user`, `assistant`, `tool`, `code` at line 27 column 24",
    );
    check_error(
        &json.replace("\"text\": \"Use npm.\",", ""),
        "corrections[0]: missing field `text` at line 34 column 5",
    );
    check_error(
        &json.replace("\"version\": 1", "\"version\": -1"),
        "version: invalid value: integer `-1`, expected u32 at line 3 column 15",
    );
    check_error(
        &json.replace("\"earlier\"", "\"\""),
        "corrections[0].id: an item needs an id",
    );
    let mut twice = small();
    twice.items.push(Item {
        entry: entry(Section::OpenQuestions, "Why?"),
        ..twice.items[0].clone()
    });
    check_error(
        &twice.to_json(),
        "open_questions[0].id: the id \"earlier\" occurs twice in the document",
    );
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    let json = small().to_json();
    let json = json.trim_end();
    for end in 0..json.len() {
        let error = read(&json[..end]).unwrap_err();
        assert!(
            matches!(
                error,
                MemoryReadError::Empty | MemoryReadError::Truncated { .. }
            ),
            "{end}: {error}"
        );
    }
}

#[test]
fn a_document_that_is_too_long_is_not_parsed() {
    let json = " ".repeat(DOCUMENT_BYTES_MAX + 1);
    assert!(matches!(read(&json), Err(MemoryReadError::TooLarge { .. })));
}

#[test]
fn nesting_without_end_is_an_error_and_not_a_crash() {
    let deep = format!(
        r#"{{"schema": "throughline.memory/1", "x": {}"#,
        "[".repeat(100_000)
    );
    assert!(read(&deep).is_err());
}

#[test]
fn fields_of_a_later_minor_version_are_passed_over_and_reported() {
    let json = small()
        .to_json()
        .replace("memory/1\"", "memory/1.4\"")
        .replace(
            "\"origin\": \"user\"",
            "\"weight\": {\"by\": 2}, \"origin\": \"user\"",
        )
        .replace("\"language\"", "\"moods\": [1], \"language\"");
    let reading = read(&json).unwrap();
    assert_eq!(reading.memory, small());
    assert_eq!(reading.unread, ["moods", "corrections[0].weight"]);
}

#[test]
fn a_document_without_a_digest_fits_no_history() {
    use throughline_transcript::digest::Digest;

    let hex = format!("\"digest\": \"{}\",", "d1".repeat(32));
    for without in ["", "\"digest\": \"\","] {
        let json = small().to_json().replace(&hex, without);
        let memory = Memory::from_json(&json).unwrap();
        assert_eq!(memory.cover.digest, Digest::UNKNOWN);
    }
    check_error(
        &small().to_json().replace(&hex, "\"digest\": \"d1\","),
        "covered.digest: a digest has 64 hexadecimal digits",
    );
}

#[test]
fn a_byte_order_mark_does_no_harm() {
    let json = format!("\u{feff}{}", small().to_json());
    assert_eq!(Memory::from_json(&json), Ok(small()));
}

proptest! {
    #[test]
    fn reading_back_gives_the_same_document(memory in any_memory()) {
        let reading = read(&memory.to_json()).unwrap();
        prop_assert_eq!(reading.memory.to_json(), memory.to_json());
        prop_assert_eq!(reading, Reading { memory, unread: Vec::new() });
    }

    #[test]
    fn any_text_is_read_or_refused(json in any::<String>()) {
        let _ = read(&json);
    }

    #[test]
    fn a_document_with_a_changed_byte_is_read_or_refused(memory in any_memory(), at in any::<prop::sample::Index>(), byte in 0x20_u8..0x7f) {
        let mut json = memory.to_json().into_bytes();
        let at = at.index(json.len());
        json[at] = byte;
        if let Ok(json) = String::from_utf8(json) {
            let _ = read(&json);
        }
    }
}
