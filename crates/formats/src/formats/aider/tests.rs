use super::*;
use crate::formats::chat_message::outline;

fn read(text: &str) -> Vec<Conversation> {
    let source = SourceText {
        text: text.into(),
        skipped: Vec::new(),
    };
    Aider.read(&source).unwrap().conversations
}

fn check(text: &str, expected: &str) {
    assert_eq!(outline(&read(text)[0].messages), expected, "{text}");
}

#[test]
fn sessions_are_conversations_and_empty_ones_are_left_out() {
    let found = read(
        "\n# aider chat started at 2025-03-01 10:00:00\n\n> Aider v0.75.0  \n> Main model: acme/large with diff edit format  \n> Git repo: .git with 3 files  \n> Cur working dir: /w  \n\n#### add a test  \n\nSure.\n\n# aider chat started at 2025-03-02 10:00:00\n\n> Aider v0.75.0  \n\n# aider chat started at 2025-03-03 10:00:00\n\n#### hi  \n",
    );
    let ids: Vec<_> = found.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["2025-03-01 10:00:00", "2025-03-03 10:00:00"]);
    assert_eq!(found[0].model.as_deref(), Some("acme/large"));
    assert_eq!(found[0].cwd.as_deref(), Some("/w"));
    let user = &found[0].messages[1];
    assert_eq!(
        (user.position.line, user.at_ms),
        (9, Some(1_740_823_200_000))
    );
    assert_eq!(found[1].messages[0].position.line, 19);
}

#[test]
fn lines_of_the_user_are_one_message() {
    check(
        "#### first line  \n####   \n#### - second  \n\nAnswer with\n\ntwo paragraphs.\n\n#### /add a.py  \n#### !ls  \n",
        "User: \"first line\\n\\n- second\"\nAssistant: \"Answer with\\n\\ntwo paragraphs.\"\nUser(client): \"/add a.py\\n!ls\"\n",
    );
    check("#### /ask why?  \n", "User: \"/ask why?\"\n");
    check(
        "#### /etc/hosts is wrong  \n",
        "User: \"/etc/hosts is wrong\"\n",
    );
    check(
        "#### # Fix any errors below, if possible.  \n#### a.py:1  \n",
        "User(client): \"# Fix any errors below, if possible.\\na.py:1\"\n",
    );
}

#[test]
fn output_before_the_first_input_is_no_answer() {
    check(
        "# aider chat started at 2025-03-01 10:00:00\n\nOption:\n  a: 1\n\n> Aider v0.75.0  \n\n#### hi  \n\nHello\n",
        "Tool: result[ \"Option:\\n  a: 1\"]\nTool: result[ \"Aider v0.75.0\"]\nUser: \"hi\"\nAssistant: \"Hello\"\n",
    );
}

#[test]
fn headings_and_quotes_of_an_answer_are_not_marks() {
    check(
        "#### write docs  \n\n# Title\n\n> a quote\n\n```markdown\n#### not the user\n> not the console  \n```\nend\n\n#### next  \n",
        "User: \"write docs\"\nAssistant: \"# Title\\n\\n> a quote\\n\\n```markdown\\n#### not the user\\n> not the console  \\n```\\nend\"\nUser: \"next\"\n",
    );
}

#[test]
fn a_fence_that_is_never_closed_does_not_swallow_the_user() {
    check(
        "#### a  \n\n```python\nx = 1\n\n> ^C KeyboardInterrupt  \n\n#### b  \n\n```\ny\n```\n",
        "User: \"a\"\nAssistant: \"```python\\nx = 1\"\nTool: result[ \"^C KeyboardInterrupt\"]\nUser: \"b\"\nAssistant: \"```\\ny\\n```\"\n",
    );
    check(
        "#### a  \n\n```\ny\n```\n\n```python\nx = 1\n\n#### b  \n",
        "User: \"a\"\nAssistant: \"```\\ny\\n```\\n\\n```python\\nx = 1\"\nUser: \"b\"\n",
    );
}

#[test]
fn applied_edits_are_calls_with_results() {
    check(
        "#### fix  \n\nDone.\n\n> Tokens: 4.2k sent, 1.1k received.  \n> Applied edit to src/a.py  \n> Commit 1234567 fix: a  \n",
        "User: \"fix\"\nAssistant: \"Done.\" call[edit-1 edit {\"path\":\"src/a.py\"}]\nTool: result[edit-1 \"Applied edit to src/a.py\"] result[ \"Tokens: 4.2k sent, 1.1k received.\\nApplied edit to src/a.py\\nCommit 1234567 fix: a\"]\n",
    );
}

#[test]
fn usage_lines_are_read_in_every_form() {
    let check = |line: &str, expected: [u64; 4]| {
        let found = usage(line).unwrap();
        let counts = [
            found.uncached,
            found.cache_write,
            found.cache_read,
            found.output,
        ];
        assert_eq!(counts, expected, "{line}");
    };
    check("1,720 sent, 33 received.", [1720, 0, 0, 33]);
    check(
        "5.8k sent, 2.0k cache write, 33 received. Cost: $0.06 request, $1,000 session.",
        [3800, 2000, 0, 33],
    );
    check(
        "202 sent, 2,728 cache hit, 18 received.",
        [202, 0, 2728, 18],
    );
    check(
        "529 sent, 90 received, cache costs not included. Cost: $0.01 message",
        [529, 0, 0, 90],
    );
    assert_eq!(usage("many sent"), None);
    let found = read("#### a  \n\nb\n\n> Tokens: 10 sent, 2 received.\n");
    assert_eq!(found[0].messages[1].usage.unwrap().output, 2);
}

#[test]
fn lines_with_carriage_returns_are_read() {
    let found =
        read("# aider chat started at 2025-03-01 10:00:00\r\n\r\n#### hi  \r\n\r\nHello\r\n");
    assert_eq!(found[0].id, "2025-03-01 10:00:00");
    assert_eq!(
        outline(&found[0].messages),
        "User: \"hi\"\nAssistant: \"Hello\"\n"
    );
}
