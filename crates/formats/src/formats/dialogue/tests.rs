use super::*;
use crate::formats::chat_message::outline;

fn check(text: &str, expected: &str) {
    let source = SourceText {
        text: text.into(),
        skipped: Vec::new(),
    };
    assert!(Dialogue.fits(&Probe::new(text)) > 0, "{text}");
    let found = Dialogue.read(&source).unwrap();
    assert_eq!(
        outline(&found.conversations[0].messages),
        expected,
        "{text}"
    );
}

fn check_refused(text: &str) {
    let source = SourceText {
        text: text.into(),
        skipped: Vec::new(),
    };
    assert_eq!(Dialogue.fits(&Probe::new(text)), 0, "{text}");
    assert!(Dialogue.read(&source).is_err(), "{text}");
}

const TALK: &str = "User: \"Hi\"\nAssistant: \"Hello\\nthere\"\n";

#[test]
fn speakers_are_known_in_many_forms() {
    for text in [
        "User: Hi\nAssistant: Hello\nthere\n",
        "user: Hi\n\nassistant: Hello\nthere\n",
        "Human: Hi\n\nAI: Hello\nthere",
        "Q: Hi\nA: Hello\nthere",
        "Q1: Hi\nA1: Hello\nthere",
        "### User\nHi\n\n### Assistant\nHello\nthere\n",
        "## User:\n\nHi\n\n---\n\n## ChatGPT:\n\nHello\nthere\n",
        "**User:** Hi\n\n**Assistant:** Hello\nthere\n",
        "**You**: Hi\n\n**GPT-4**: Hello\nthere\n",
        "<user> Hi\n<bot> Hello\nthere\n",
        "User: Hi\r\nAssistant: Hello\nthere\r\n",
    ] {
        check(text, TALK);
    }
}

#[test]
fn speakers_are_known_in_other_languages() {
    for (user, assistant) in [
        ("Benutzer: ", "Assistent: "),
        ("Frage: ", "Antwort: "),
        ("Utilisateur : ", "Assistant : "),
        ("Usuario: ", "Asistente: "),
        ("Пользователь: ", "Ассистент: "),
        ("用户：", "助手："),
        ("問：", "答："),
        ("ユーザー：", "アシスタント："),
        ("사용자: ", "어시스턴트: "),
    ] {
        check(&format!("{user}Hi\n{assistant}Hello\nthere"), TALK);
    }
}

#[test]
fn times_are_read() {
    let text = "[2025-01-02 12:03:04] User: Hi\n[2025-01-02 12:03:05] Assistant: Hello\nthere\n";
    check(text, TALK);
    let source = SourceText {
        text: text.into(),
        skipped: Vec::new(),
    };
    let found = Dialogue.read(&source).unwrap();
    let messages = &found.conversations[0].messages;
    assert_eq!(
        (messages[1].at_ms, messages[1].position.line),
        (Some(1_735_819_385_000), 2)
    );
    check(
        "User (12:03 PM): Hi\nAssistant (12:04 PM): Hello\nthere\n",
        TALK,
    );
}

#[test]
fn logs_of_people_are_read() {
    check(
        "02/01/2025, 12:03 - Anna: Hi\n02/01/2025, 12:04 - Bo: Hello\nthere\n02/01/2025, 12:05 - Anna: note: bye\n",
        "User: \"Hi\"\nAssistant: \"Hello\\nthere\"\nUser: \"note: bye\"\n",
    );
    check(
        "[12:03] <anna> Hi\n[12:04] <bo> Yo\n[12:05] <cy> Hm\n",
        "User: \"anna> Hi\"\nUser: \"bo> Yo\"\nUser: \"cy> Hm\"\n",
    );
}

#[test]
fn other_names_and_fenced_marks_are_text() {
    check(
        "User: Hi\nNote: this is a note\n```\nAssistant: not this\n```\nAssistant: Hello\nthere",
        "User: \"Hi\\nNote: this is a note\\n```\\nAssistant: not this\\n```\"\nAssistant: \"Hello\\nthere\"\n",
    );
    check(
        "User: Hi ```\nAssistant: Hello\nthere",
        "User: \"Hi ```\"\nAssistant: \"Hello\\nthere\"\n",
    );
}

#[test]
fn system_and_tool_lines_have_their_roles() {
    check(
        "System: Be brief\nUser: Hi\nTool: 42\nAssistant: Hello\n",
        "System: \"Be brief\"\nUser: \"Hi\"\nTool: result[ \"42\"]\nAssistant: \"Hello\"\n",
    );
}

#[test]
fn texts_that_are_no_dialogue_are_refused() {
    check_refused("Once there was a baker. He said: bread is life.\nAnd so it was.\n");
    check_refused("user: postgres\nmodel: big\nagent: smith\nclient: web\n");
    check_refused("fn main() {\n    let user: u8 = 1;\n}\n");
    check_refused("User: only one side\nUser: speaks\n");
    check_refused("# Title\n\n## User\n\nA user is a person.\n");
    check_refused("{\"role\": \"user\"}\n");
    check_refused("12:01 server: up\n12:02 disk: full\n12:03 server: down\n12:04 disk: ok\n");
    check_refused(
        "2025-01-02 12:03:04 INFO: up\n2025-01-02 12:03:05 WARN: hot\n2025-01-02 12:03:06 INFO: up\n",
    );
    check_refused("User: root\nModel: X1\nMemory: 8 GB\n");
    check_refused(&format!("{}User: a\nAssistant: b\n", "prose\n".repeat(30)));
}
