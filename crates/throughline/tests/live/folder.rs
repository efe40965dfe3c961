//! The folder of a session: files that follow the store, and edits of the memory file that become memories.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use throughline::engine::Pin;
use throughline::folder::{Folder, FolderError, HandEdit, no_memory};
use throughline_memory::document::{
    Cover, Entry, Item, Memory, Origin, Provenance, RequestKind, Section, Status,
};
use throughline_memory::render::markdown;
use throughline_store::{
    Adoption, Change, Counts, MemoryRow, MemoryStore, NewMessage, NewSession, SessionId, Store,
    Writer,
};
use throughline_transcript::digest::Digest;

fn item(id: &str, entry: Entry) -> Item {
    Item {
        id: id.to_owned(),
        entry,
        origin: Origin::User,
        provenance: Provenance::default(),
        status: Status::Active,
        touched: 1,
    }
}

fn text(text: &str) -> String {
    text.to_owned()
}

/// A memory with every kind of item.
fn memory() -> Memory {
    let mut answered = item(
        "t1",
        Entry::Task {
            text: text("Set up the queue."),
            answer: None,
        },
    );
    answered.status = Status::Resolved;
    let mut tool = item(
        "r1",
        Entry::ToolResult {
            key: text("cat a.rs"),
            summary: text("12 lines: a parser"),
        },
    );
    tool.origin = Origin::Tool;
    let mut error = item(
        "e1",
        Entry::Error {
            text: text("E0308 in a.rs"),
            resolution: Some(text("a cast")),
        },
    );
    error.status = Status::Resolved;
    error.origin = Origin::Assistant;
    let mut old = item(
        "c1",
        Entry::Correction {
            text: text("Use port 80."),
        },
    );
    old.status = Status::SupersededBy(text("c2"));
    let mut dated = item(
        "c3",
        Entry::Correction {
            text: text("Ship it tomorrow."),
        },
    );
    dated.provenance.at_ms = Some(1_780_000_000_000);
    Memory {
        version: 1,
        cover: Cover {
            messages: 2,
            turns: 1,
            digest: Digest::UNKNOWN,
            until_ms: None,
        },
        language: None,
        items: vec![
            answered,
            item(
                "t2",
                Entry::Task {
                    text: text("Build the exporter (fast)."),
                    answer: None,
                },
            ),
            item(
                "s1",
                Entry::CurrentState {
                    text: text("The parser is half done."),
                },
            ),
            item(
                "w1",
                Entry::CompletedWork {
                    text: text("- Wrote a.rs"),
                },
            ),
            item(
                "d1",
                Entry::KeyDecision {
                    decision: text("Use Postgres"),
                    reason: Some(text("it is there (already)")),
                    constraint: Some(text("version 15")),
                },
            ),
            item(
                "a1",
                Entry::EliminatedApproach {
                    approach: text("A cache"),
                    reason_ruled_out: Some(text("too slow")),
                },
            ),
            error,
            old,
            item(
                "c2",
                Entry::Correction {
                    text: text("Use port 8443."),
                },
            ),
            dated,
            item(
                "q1",
                Entry::OpenQuestion {
                    text: text("Which region?"),
                },
            ),
            item(
                "n1",
                Entry::NextStep {
                    text: text("Write the tests"),
                    requested: RequestKind::Explicit,
                },
            ),
            item(
                "n2",
                Entry::NextStep {
                    text: text("Tidy up"),
                    requested: RequestKind::Implied,
                },
            ),
            tool,
            item(
                "k1",
                Entry::Reference {
                    text: text("# not a heading"),
                },
            ),
        ],
    }
}

/// A session in memory, and its folder.
struct World {
    store: MemoryStore,
    id: SessionId,
    writer: Box<dyn Writer>,
    counts: Counts,
    folder: Folder,
    place: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let store = MemoryStore::new();
        let id = SessionId::new("a").unwrap();
        let new = NewSession::new(id.clone(), "anthropic-messages", "m", 1);
        store.create(new, Vec::new()).await.unwrap();
        let writer = store.open(&id, Duration::ZERO).await.unwrap();
        let place = tempfile::tempdir().unwrap();
        Self {
            store,
            id,
            writer,
            counts: Counts::default(),
            folder: Folder::new(place.path().join("sessions/a")),
            place,
        }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.place.path().join("sessions/a").join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    async fn commit(&mut self, changes: Vec<Change>) {
        self.counts = self.writer.commit(2, changes).await.unwrap();
        self.follow().await;
    }

    async fn follow(&self) {
        let followed = self.folder.follow(&self.store, &self.id, self.counts);
        followed.await.unwrap();
    }

    async fn say(&mut self, words: &[&str]) {
        let messages = words.iter().map(|word| message(word)).collect();
        let expected_count = self.counts.message_count;
        self.commit(vec![Change::Append {
            expected_count,
            messages,
        }])
        .await;
    }

    async fn adopt(&mut self, memory: &Memory, origin: &str) {
        let version = self.counts.memory_version + 1;
        let row = MemoryRow {
            version,
            covered_count: memory.cover.messages as u64,
            digest: [0; 32],
            origin: origin.to_owned(),
            json: memory.to_json(),
            markdown: markdown::render(memory),
            created_ms: 2,
            tokens: 1,
        };
        let adoption = Adoption {
            epoch: self.counts.epoch + 1,
            memory_version: Some(version),
            covered_count: memory.cover.messages as u64,
            state: String::new(),
            at_ms: 2,
        };
        let expected_epoch = self.counts.epoch;
        self.commit(vec![
            Change::Memory(row),
            Change::Adopt {
                expected_epoch,
                adoption,
            },
        ])
        .await;
    }

    /// Saves another text in the memory file, as an editor does.
    fn edit(&self, edit: impl Fn(&str) -> String) -> Option<HandEdit> {
        let path = self.path("session-memory.md");
        let before = fs::read_to_string(&path).unwrap_or_default();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, edit(&before)).unwrap();
        self.age("session-memory.md");
        self.folder.hand_edit().unwrap()
    }

    /// A minute goes by since the file was written.
    fn age(&self, name: &str) {
        let file = fs::File::options().write(true).open(self.path(name));
        let before = SystemTime::now() - Duration::from_secs(60);
        file.unwrap().set_modified(before).unwrap();
    }
}

fn message(word: &str) -> NewMessage {
    let original = format!("{{\"role\":\"user\",\n\"content\":\"{word}\"}}");
    let digest = std::array::from_fn(|at| word.bytes().cycle().nth(at).unwrap());
    NewMessage {
        at_ms: Some(1_780_000_000_000),
        ..NewMessage::new(original, digest, "user", word, 3)
    }
}

async fn edited(edit: impl Fn(&str) -> String) -> (Memory, Option<HandEdit>) {
    let mut world = World::new().await;
    world.say(&["one", "two", "three"]).await;
    world.adopt(&memory(), "draft").await;
    let found = world.edit(edit);
    let memory = match &found {
        Some(edit) => edit.apply(&memory(), 2),
        None => memory(),
    };
    (memory, found)
}

/// What the memory says in this section, with ids for items that were there before.
fn said(memory: &Memory, section: Section) -> Vec<(Option<String>, String)> {
    let known: Vec<String> = self::memory()
        .items
        .into_iter()
        .map(|item| item.id)
        .collect();
    memory
        .section(section)
        .map(|item| {
            let id = known.contains(&item.id).then(|| item.id.clone());
            (id, item.entry.text().to_owned())
        })
        .collect()
}

#[tokio::test]
async fn the_transcript_follows_the_session() {
    let mut world = World::new().await;
    world.say(&["one", "two"]).await;
    let key = ["sk-ant-api03-", "Zk9Zk9Zk9Zk9Zk9Zk9Zk9Zk9Zk9Zk9Zk9Zk9"].concat();
    world.say(&[&key]).await;
    let lines: Vec<serde_json::Value> = world
        .read("transcript.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3);
    assert!(!world.read("transcript.jsonl").contains(&key));
    assert!(lines[2]["original"].is_object());
    assert_eq!(
        lines[1],
        serde_json::json!({
            "message": 2, "role": "user", "at": "2026-05-28T20:26:40Z", "text": "two",
            "digest": "74776f74776f7477", "original": {"role": "user", "content": "two"},
        })
    );
    let text = lines[2]["text"].as_str().unwrap();
    assert!(text.contains("REDACTED") || !text.contains(&key), "{text}");

    // A killed process left half a line, and another continues.
    let path = world.path("transcript.jsonl");
    fs::write(&path, world.read("transcript.jsonl") + "{\"message\":4").unwrap();
    world.folder = Folder::new(world.path(""));
    world.say(&["four"]).await;
    assert_eq!(world.read("transcript.jsonl").lines().count(), 4);

    // The session is cut back and continues another way, in one commit.
    let another = Change::Append {
        expected_count: 1,
        messages: vec![message("zwei"), message("drei"), message("vier")],
    };
    world
        .commit(vec![Change::Truncate { to_count: 1 }, another])
        .await;
    let words = |name: &str| -> Vec<String> {
        let lines = world.read(name);
        let lines = lines.lines().map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            line["text"].as_str().unwrap().to_owned()
        });
        lines.collect()
    };
    assert_eq!(words("transcript.jsonl"), ["one", "zwei", "drei", "vier"]);
    let superseded = words("superseded.jsonl");
    assert_eq!((superseded[0].as_str(), superseded.len()), ("two", 3));
}

#[cfg(unix)]
#[tokio::test]
async fn the_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let mut world = World::new().await;
    world.say(&["one", "two", "three"]).await;
    world.adopt(&memory(), "draft").await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&world.path("")), 0o700);
    for entry in fs::read_dir(world.path("")).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn a_file_that_is_unchanged_or_only_spaced_otherwise_is_no_edit() {
    for edit in [
        (|text: &str| text.to_owned()) as fn(&str) -> String,
        |text| text.replace('\n', "\n\n"),
        |text| text.replace("\n- ", "\n* "),
        |text| text.replace('\n', "  \r\n"),
        |_| String::new(),
    ] {
        let (_, found) = edited(edit).await;
        assert_eq!(found, None);
    }
}

#[tokio::test]
async fn every_line_can_be_removed_and_nothing_else_changes() {
    let rendered = markdown::render(&memory());
    let count = rendered.lines().count();
    let mut removed = Vec::new();
    for gone in 1..count {
        let (after, _) = edited(|text| {
            let lines = text.lines().enumerate().filter(|(at, _)| *at != gone);
            lines.map(|(_, line)| format!("{line}\n")).collect()
        })
        .await;
        let line = rendered.lines().nth(gone).unwrap();
        if line.starts_with('#') || line.ends_with(':') {
            // A heading says what the lines below it are.
            continue;
        }
        let mut expected = memory();
        expected
            .items
            .retain(|item| after.items.iter().any(|other| other.id == item.id));
        let gone = memory().items.len() - expected.items.len();
        assert_eq!(gone, usize::from(!line.is_empty()), "{line}");
        removed.push(line.to_owned());
        if gone == 1 {
            assert_eq!(after, expected, "{line}");
        }
    }
    let items = removed.iter().filter(|line| !line.is_empty()).count();
    assert_eq!(items, memory().items.len());
}

#[tokio::test]
async fn a_reworded_line_keeps_its_item() {
    let cases: [(&str, &str, &str, Entry, Status); 10] = [
        (
            "exporter (fast).",
            "importer (fast).",
            "t2",
            Entry::Task {
                text: text("Build the importer (fast)."),
                answer: None,
            },
            Status::Active,
        ),
        (
            "(it is there (already); constraint: version 15)",
            "(it is there (already); constraint: version 16)",
            "d1",
            Entry::KeyDecision {
                decision: text("Use Postgres"),
                reason: Some(text("it is there (already)")),
                constraint: Some(text("version 16")),
            },
            Status::Active,
        ),
        (
            "A cache (too slow)",
            "A cache of pages",
            "a1",
            Entry::EliminatedApproach {
                approach: text("A cache of pages"),
                reason_ruled_out: None,
            },
            Status::Active,
        ),
        (
            "E0308 in a.rs → resolved: a cast",
            "E0308 in a.rs",
            "e1",
            Entry::Error {
                text: text("E0308 in a.rs"),
                resolution: None,
            },
            Status::Active,
        ),
        (
            "Use port 8443.",
            "Use port 9443.",
            "c2",
            Entry::Correction {
                text: text("Use port 9443."),
            },
            Status::Active,
        ),
        (
            "Ship it tomorrow.",
            "Ship it the day after tomorrow.",
            "c3",
            Entry::Correction {
                text: text("Ship it the day after tomorrow."),
            },
            Status::Active,
        ),
        (
            "Which region?",
            "Which region? (answered)",
            "q1",
            Entry::OpenQuestion {
                text: text("Which region?"),
            },
            Status::Resolved,
        ),
        (
            "(implied) Tidy up",
            "Tidy up",
            "n2",
            Entry::NextStep {
                text: text("Tidy up"),
                requested: RequestKind::Explicit,
            },
            Status::Active,
        ),
        (
            "cat a.rs: 12 lines",
            "cat a.rs: 13 lines",
            "r1",
            Entry::ToolResult {
                key: text("cat a.rs"),
                summary: text("13 lines: a parser"),
            },
            Status::Active,
        ),
        (
            "not a heading",
            "a heading",
            "k1",
            Entry::Reference {
                text: text("# a heading"),
            },
            Status::Active,
        ),
    ];
    for (from, to, id, entry, status) in cases {
        let (after, found) = edited(|text| {
            assert!(text.contains(from), "{from}: {text}");
            text.replace(from, to)
        })
        .await;
        let mut expected = memory();
        let item = expected
            .items
            .iter_mut()
            .find(|item| item.id == id)
            .unwrap();
        item.entry = entry;
        item.status = status;
        item.touched = 2;
        if item.origin != Origin::Tool {
            item.origin = Origin::User;
        }
        assert_eq!(after, expected, "{from} → {to}");
        // An edit that the memory has already changes nothing.
        assert_eq!(found.unwrap().apply(&after, 3), after, "{from} → {to}");
    }
}

#[tokio::test]
async fn a_request_moves_between_open_and_answered() {
    let (after, _) = edited(|text| {
        text.replace(
            "Answered:\n- Set up the queue.\nOpen:\n",
            "Answered:\nOpen:\n- Set up the queue.\n",
        )
    })
    .await;
    let mut expected = memory();
    expected.items[0].status = Status::Active;
    expected.items[0].touched = 2;
    assert_eq!(after, expected);
}

#[tokio::test]
async fn new_lines_are_items_of_their_section_and_none_is_lost() {
    let key = ["sk-ant-api03-", "Zk9Zk9Zk9Zk9Zk9Zk9Zk9Zk9Zk9Zk9Zk9Zk9"].concat();
    let (after, found) = edited(|text| {
        let text = text
            .replace(
                "- Use port 8443.\n",
                &format!("- Use port 8443.\n- Never deploy on Fridays.\nThe key is {key}\n"),
            )
            .replace(
                "## Pending Tasks\n",
                "## pending tasks\n1. Call Ada\n   about the invoice\n",
            );
        format!("{text}\n## My notes\nAsk for the second budget.\n")
    })
    .await;
    let new = |text: &str| (None, text.to_owned());
    let known = |id: &str, text: &str| (Some(id.to_owned()), text.to_owned());
    let corrections = said(&after, Section::Corrections);
    assert_eq!(
        corrections[..3],
        [
            known("c1", "Use port 80."),
            known("c2", "Use port 8443."),
            new("Never deploy on Fridays."),
        ]
    );
    assert!(!corrections[3].1.contains(&key), "{corrections:?}");
    assert_eq!(
        corrections[4..],
        [
            known("c3", "Ship it tomorrow."),
            new("Ask for the second budget."),
        ]
    );
    assert_eq!(
        said(&after, Section::NextSteps),
        [
            known("n1", "Write the tests"),
            known("n2", "Tidy up"),
            new("1. Call Ada about the invoice"),
        ]
    );
    let origins = after.items.iter().filter(|item| item.touched == 2);
    assert!(origins.clone().all(|item| item.origin == Origin::User));
    assert_eq!(origins.count(), 4);
    assert_eq!(found.unwrap().apply(&after, 3), after);
}

#[tokio::test]
async fn a_pin_goes_when_its_line_goes() {
    let pin = |id: &str, text: &str| Pin {
        id: id.to_owned(),
        text: text.to_owned(),
        message: 1,
    };
    let pins = [pin("p", "The region is eu."), pin("q", "The zone is b.")];
    let mut pinned = memory();
    let place = pinned
        .items
        .iter()
        .position(|item| item.id == "c2")
        .unwrap();
    for pin in &pins {
        let id = Item::id_for(Section::Corrections, pin.message, &pin.text);
        let entry = Entry::Correction {
            text: pin.text.clone(),
        };
        pinned
            .items
            .insert(place, item(&format!("pin-{id}"), entry));
    }
    let mut world = World::new().await;
    world.say(&["one", "two", "three"]).await;
    world.adopt(&pinned, "draft").await;
    let edit = world
        .edit(|text| text.replace("region is eu", "region is us"))
        .unwrap();
    assert_eq!(edit.unpinned(&pins), ["p"]);
    let after = edit.apply(&pinned, 2);
    let corrections = said(&after, Section::Corrections);
    assert!(corrections.contains(&(None, text("The region is us."))));
    assert!(!corrections.contains(&(None, text("The region is eu."))));
}

#[tokio::test]
async fn an_edit_is_found_once_and_the_file_is_written_again_when_it_is_adopted() {
    let mut world = World::new().await;
    world.say(&["one", "two", "three"]).await;
    world.adopt(&memory(), "draft").await;
    assert_eq!(world.read("session-memory.md"), markdown::render(&memory()));
    let edit = world.edit(|text| text.replace("8443", "9443")).unwrap();
    assert_eq!(world.folder.hand_edit().unwrap(), None);
    let given = edit.apply(&memory(), 2);
    world.adopt(&given, "given").await;
    assert_eq!(world.read("session-memory.md"), markdown::render(&given));
    assert_eq!(world.folder.hand_edit().unwrap(), None);
    // Nor does another process take it for an edit.
    let again = Folder::new(world.path(""));
    assert_eq!(again.hand_edit().unwrap(), None);
}

#[tokio::test]
async fn an_edit_survives_a_version_that_was_made_without_it() {
    let mut world = World::new().await;
    world.say(&["one", "two", "three"]).await;
    world.adopt(&memory(), "draft").await;
    let path = world.path("session-memory.md");
    let edited = world.read("session-memory.md").replace("8443", "9443");
    fs::write(&path, &edited).unwrap();
    // A model's memory is adopted before anything looked at the file.
    let mut next = memory();
    next.version = 2;
    next.items.retain(|item| item.id != "s1");
    world.adopt(&next, "model").await;
    assert_eq!(world.read("session-memory.md"), edited);
    let edit = world.folder.hand_edit().unwrap().unwrap();
    let merged = edit.apply(&next, 3);
    assert!(
        said(&merged, Section::Corrections).contains(&(Some(text("c2")), text("Use port 9443.")))
    );
    assert!(said(&merged, Section::CurrentState).is_empty());
    world.adopt(&merged, "given").await;
    assert_eq!(world.read("session-memory.md"), markdown::render(&merged));
}

#[tokio::test]
async fn an_edit_while_the_program_was_down_is_found() {
    let mut world = World::new().await;
    world.say(&["one", "two", "three"]).await;
    world.adopt(&memory(), "draft").await;
    let path = world.path("session-memory.md");
    fs::write(
        &path,
        world.read("session-memory.md").replace("8443", "9443"),
    )
    .unwrap();
    world.folder = Folder::new(world.path(""));
    world.follow().await;
    let edit = world.folder.hand_edit().unwrap().unwrap();
    let after = said(&edit.apply(&memory(), 2), Section::Corrections);
    assert!(after.contains(&(Some(text("c2")), text("Use port 9443."))));
}

#[tokio::test]
async fn a_memory_is_begun_by_hand_and_leaves_when_its_swap_is_undone() {
    let mut world = World::new().await;
    world.say(&["one"]).await;
    let edit = world
        .edit(|_| "## Errors & Corrections\n- Answer in French.\n".to_owned())
        .unwrap();
    let given = edit.apply(&no_memory(), 1);
    assert_eq!(given.items.len(), 1);
    assert_eq!(
        given.items[0].entry,
        Entry::Correction {
            text: text("Answer in French.")
        }
    );
    world.adopt(&given, "given").await;
    assert_eq!(world.read("session-memory.md"), markdown::render(&given));
    let adoption = Adoption {
        epoch: 2,
        memory_version: None,
        covered_count: 0,
        state: String::new(),
        at_ms: 3,
    };
    world
        .commit(vec![Change::Adopt {
            expected_epoch: 1,
            adoption,
        }])
        .await;
    assert!(!world.path("session-memory.md").exists());
}

/// A session keeps its folder up to date, and takes in what a person changes there, the ledger included.
#[tokio::test(start_paused = true)]
async fn a_session_follows_its_folder_and_takes_hand_edits() {
    use crate::world::{World, chatter};
    let place = tempfile::tempdir().unwrap();
    let world = World::new(throughline_simulator::Options::new(3).without_latency());
    let store: std::sync::Arc<dyn Store> = std::sync::Arc::new(MemoryStore::new());
    let builder = || world.session().store(std::sync::Arc::clone(&store));
    let builder = || builder().folder(place.path());
    let session = builder().start().await.unwrap();
    session.pin("The region is eu-north-3.").await.unwrap();
    for turn in 0..4 {
        session.ask(chatter(turn, 100)).await.unwrap();
    }
    session.compact(None).await.unwrap();
    let memory = place.path().join("session-memory.md");
    let transcript = fs::read_to_string(place.path().join("transcript.jsonl")).unwrap();
    assert_eq!(transcript.lines().count(), 8);
    let written = fs::read_to_string(&memory).unwrap();
    assert!(written.contains("The region is eu-north-3."), "{written}");
    let edited = written.replace("The region is eu-north-3.", "The region is us-east-1.");
    fs::write(&memory, &edited).unwrap();
    session.ask("Go on.").await.unwrap();
    let text = session.memory().unwrap().text.clone();
    assert!(
        text.contains("us-east-1") && !text.contains("eu-north-3"),
        "{text}"
    );
    assert!(session.pins().is_empty());
    // The session writes the file again from its memory, and a person can edit it while the session is closed.
    let written = fs::read_to_string(&memory).unwrap();
    assert!(written.contains("us-east-1"), "{written}");
    let id = session.id().clone();
    session.close().await.unwrap();
    fs::write(&memory, written.replace("us-east-1", "ap-south-2")).unwrap();
    let session = builder().resume(&id).await.unwrap();
    session.ask("Go on.").await.unwrap();
    let text = session.memory().unwrap().text.clone();
    assert!(text.contains("ap-south-2"), "{text}");
    session.close().await.unwrap();
}

/// At no moment of a save does a person lose the memory or the edit.
#[tokio::test]
async fn a_file_that_is_being_written_is_no_edit() {
    let mut world = World::new().await;
    world.say(&["one", "two", "three"]).await;
    world.adopt(&memory(), "draft").await;
    let path = world.path("session-memory.md");
    let before = world.read("session-memory.md");
    let saved = before.replace("8443", "9443");
    for end in (0..saved.len()).filter(|end| saved.is_char_boundary(*end)) {
        fs::write(&path, &saved[..end]).unwrap();
        let found = world.folder.hand_edit().unwrap();
        assert_eq!(found, None, "{:?}", &saved[..end]);
    }
    // A memory that is adopted meanwhile waits for the end of it.
    fs::write(&path, "").unwrap();
    let mut next = memory();
    next.version = 2;
    next.items.retain(|item| item.id != "s1");
    world.adopt(&next, "model").await;
    assert_eq!(world.read("session-memory.md"), "");
    fs::write(&path, &saved).unwrap();
    let edit = world.folder.hand_edit().unwrap().unwrap();
    let given = edit.apply(&next, 3);
    assert_eq!(given.items.len(), next.items.len());
    world.adopt(&given, "given").await;
    assert_eq!(world.read("session-memory.md"), markdown::render(&given));
    // One that stays empty is written again.
    fs::write(&path, "").unwrap();
    world.age("session-memory.md");
    assert_eq!(world.folder.hand_edit().unwrap(), None);
    world.adopt(&given, "given").await;
    assert_eq!(world.read("session-memory.md"), markdown::render(&given));
}

#[tokio::test]
async fn a_file_without_a_heading_is_left_and_is_no_edit() {
    for odd in [&b"\xff\xfe#\0"[..], b"Notes of mine.\n- Milk\n"] {
        let mut world = World::new().await;
        world.say(&["one", "two", "three"]).await;
        world.adopt(&memory(), "draft").await;
        let path = world.path("session-memory.md");
        fs::write(&path, odd).unwrap();
        world.age("session-memory.md");
        let told = world.folder.hand_edit();
        assert!(matches!(told, Err(FolderError::Unreadable)), "{told:?}");
        assert_eq!(world.folder.hand_edit().unwrap(), None);
        world.adopt(&memory(), "model").await;
        assert_eq!(fs::read(&path).unwrap(), odd);
        fs::remove_file(&path).unwrap();
        world.adopt(&memory(), "model").await;
        assert_eq!(world.read("session-memory.md"), markdown::render(&memory()));
    }
}

#[tokio::test]
async fn what_is_removed_is_the_sessions_alone() {
    let mut world = World::new().await;
    world.say(&["one", "two", "three"]).await;
    world.adopt(&memory(), "draft").await;
    let own = world.path("notes.txt");
    fs::write(&own, "mine").unwrap();
    world.folder.remove().unwrap();
    let left: Vec<_> = fs::read_dir(world.path("")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    fs::remove_file(own).unwrap();
    world.folder.remove().unwrap();
    assert!(!world.path("").exists());
    world.folder.remove().unwrap();
}

/// A session writes its folder, and a hand edit is in the next request.
#[tokio::test(start_paused = true)]
async fn an_edited_memory_file_is_in_the_next_request() {
    let place = tempfile::tempdir().unwrap();
    let world = crate::world::World::new(throughline_simulator::Options::new(3).without_latency());
    let session = world.session().folder(place.path()).start().await.unwrap();
    let rule = "Remember: the deploy region is eu-north-3. Never force-push to main.";
    session.ask(rule).await.unwrap();
    for turn in 0..6 {
        session.ask(crate::world::chatter(turn, 60)).await.unwrap();
    }
    session.pin("The port is 8443.").await.unwrap();
    session.compact(None).await.unwrap();
    let file = place.path().join("session-memory.md");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("- The port is 8443.\n") && text.contains("eu-north-3"));
    let edited = text
        .replace("eu-north-3", "eu-south-1")
        .replace("- The port is 8443.\n", "- Answer in French.\n");
    fs::write(&file, edited).unwrap();
    session.ask("And now?").await.unwrap();
    let body = world.provider.ledger().pop().unwrap().body;
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert!(body.contains("eu-south-1") && body.contains("Answer in French."));
    assert!(
        !body.contains("eu-north-3") && !body.contains("8443"),
        "{body}"
    );
    assert!(session.pins().is_empty());
    assert_eq!(world.refused(), 0);
    session.close().await.unwrap();
    let transcript = fs::read_to_string(place.path().join("transcript.jsonl")).unwrap();
    assert_eq!(transcript.lines().count(), session_messages(&transcript));
}

/// The number of the last line.
fn session_messages(transcript: &str) -> usize {
    let last = transcript.lines().last().unwrap();
    let last: serde_json::Value = serde_json::from_str(last).unwrap();
    last["message"].as_u64().unwrap() as usize
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_cannot_be_written_does_not_stop_a_session() {
    let place = tempfile::tempdir().unwrap();
    // A file is where the folder would be.
    let path = place.path().join("folder");
    fs::write(&path, "").unwrap();
    let world = crate::world::World::new(throughline_simulator::Options::new(3).without_latency());
    let session = world.session().folder(&path).start().await.unwrap();
    session.ask("Hello.").await.unwrap();
    session.compact(None).await.unwrap();
    session.ask("And now?").await.unwrap();
    fs::remove_file(&path).unwrap();
    session.ask("And then?").await.unwrap();
    session.close().await.unwrap();
    let transcript = fs::read_to_string(path.join("transcript.jsonl")).unwrap();
    assert_eq!(transcript.lines().count(), 6);
}

#[tokio::test(start_paused = true)]
async fn two_sessions_do_not_share_a_folder() {
    let place = tempfile::tempdir().unwrap();
    let world = crate::world::World::new(throughline_simulator::Options::new(3).without_latency());
    let session = world.session().folder(place.path()).start().await.unwrap();
    session.ask("The first ferry leaves at six.").await.unwrap();
    session.compact(None).await.unwrap();
    session.ask("And then?").await.unwrap();
    let id = session.id().to_string();
    session.close().await.unwrap();
    let files = || {
        ["transcript.jsonl", "session-memory.md"]
            .map(|name| fs::read_to_string(place.path().join(name)).ok())
    };
    let before = files();
    let folder = Folder::new(place.path());
    assert_eq!(folder.owner().unwrap(), Some(id));

    let other = world.session().folder(place.path()).start().await.unwrap();
    other.ask("Something else.").await.unwrap();
    other.close().await.unwrap();
    assert_eq!(files(), before);
}
