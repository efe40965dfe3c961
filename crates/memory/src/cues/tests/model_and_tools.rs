use super::super::*;

#[track_caller]
fn statement(text: &str, kind: StatementKind) -> Statement<'_> {
    let all = assistant_statements(text);
    all.iter()
        .find(|s| s.kind == kind)
        .cloned()
        .unwrap_or_else(|| panic!("{text:?} gives no {kind:?}: {all:?}"))
}

#[test]
fn decisions_come_with_their_reason_and_limit() {
    let check = |text: &str, claim: &str, reason: Option<&str>, constraint: Option<&str>| {
        let found = statement(text, StatementKind::Decision);
        assert_eq!(
            (found.claim, found.reason, found.constraint),
            (claim, reason, constraint),
            "{text:?}"
        );
    };
    check(
        "I'll use a B-tree because the keys are sorted.",
        "I'll use a B-tree",
        Some("because the keys are sorted"),
        None,
    );
    check(
        "We decided on JSON lines so that a torn write costs one record.",
        "We decided on JSON lines",
        Some("so that a torn write costs one record"),
        None,
    );
    check(
        "I chose SQLite over Postgres since there is one writer.",
        "I chose SQLite over Postgres",
        Some("since there is one writer"),
        None,
    );
    check(
        "The approach: one worker per shard.",
        "The approach: one worker per shard",
        None,
        None,
    );
    check(
        "I went with polling, as long as the interval stays above a second.",
        "I went with polling",
        None,
        Some("as long as the interval stays above a second"),
    );
    check(
        "Ich habe mich für Redis entschieden, weil es schon läuft.",
        "Ich habe mich für Redis entschieden",
        Some("weil es schon läuft"),
        None,
    );
}

#[test]
fn statements_by_kind() {
    use StatementKind::{
        Completed, Decision, DoneStep, Eliminated, Finding, NextStep, OpenQuestion, State,
    };
    let table = [
        (
            "Streaming the body didn't work because the proxy buffers it.",
            Eliminated,
        ),
        ("A retry won't work here.", Eliminated),
        ("I tried a regex but nested quotes break it.", Eliminated),
        (
            "Turns out the driver doesn't support arrays, so that is ruled out.",
            Eliminated,
        ),
        ("Reverting the last change.", Eliminated),
        ("I've added the missing index.", Completed),
        ("Done.", Completed),
        ("The login test now passes.", Completed),
        ("All 14 tests pass.", Completed),
        ("Committed as 1a2b3c4.", Completed),
        ("Fixed the off-by-one in the pager.", Completed),
        ("The importer is currently half migrated.", State),
        (
            "Two of five endpoints are still to do; the rest is in progress.",
            State,
        ),
        ("Should I also update the docs?", OpenQuestion),
        ("Do you want me to delete the old table?", OpenQuestion),
        ("Which of these would you prefer?", OpenQuestion),
        ("Let me know which format you need.", OpenQuestion),
        ("Next, I'll wire up the metrics.", NextStep),
        ("- [ ] write the migration", NextStep),
        ("- [x] write the schema", DoneStep),
        ("## Next steps\n1. deploy to staging", NextStep),
        ("The root cause is a stale lock file.", Finding),
        ("I found that the clock is read twice.", Finding),
        ("The problem is that both threads hold the lock.", Finding),
        (
            "I recommend sticking with one table to avoid joins.",
            Decision,
        ),
        ("我添加了一个测试。", Completed),
        ("原因是缓存没有失效。", Finding),
        ("テストを追加しました。", Completed),
        ("Das Problem ist, dass der Cache nie geleert wird.", Finding),
        ("J'ai corrigé le calcul.", Completed),
        ("He añadido la prueba.", Completed),
    ];
    for (text, kind) in table {
        statement(text, kind);
    }
}

#[test]
fn plain_prose_and_code_say_nothing() {
    for text in [
        "The function takes two arguments.",
        "```\n// TODO: I decided to fix it\n```",
        "| done | fixed |",
        "",
        "Sure.",
    ] {
        assert_eq!(assistant_statements(text), [], "{text:?}");
    }
}

#[track_caller]
fn lines(text: &str, outcome: Outcome) -> Vec<(OutputKind, &str)> {
    output_lines(text, outcome)
        .map(|line| (line.kind, line.text))
        .collect()
}

#[test]
fn errors_of_many_tools_are_found() {
    for text in [
        "error: unused variable `x`",
        "error[E0308]: mismatched types",
        "src/app.ts(3,14): error TS2322: Type 'string' is not assignable to type 'number'.",
        "src/app.ts:3:14 - error TS2322: Type 'string' is not assignable",
        "./main.go:10:2: undefined: handler",
        "main.c:4:10: fatal error: stdio.h: No such file or directory",
        "thread 'main' panicked at src/main.rs:4:5:",
        "panic: runtime error: index out of range [3] with length 3",
        "KeyError: 'name'",
        "django.db.utils.OperationalError: no such table: users",
        "TypeError: Cannot read properties of undefined (reading 'id')",
        "java.lang.NullPointerException: Cannot invoke \"String.length()\"",
        "Exception in thread \"main\" java.lang.IllegalStateException",
        "AssertionError: expected 3 to equal 4",
        "npm ERR! missing script: lint",
        "fatal: not a git repository (or any of the parent directories): .git",
        "bash: foo: command not found",
        "cat: notes.txt: No such file or directory",
        "mkdir: cannot create directory 'x': Permission denied",
        "  12:5  error  'x' is never reassigned  prefer-const",
        "FAILED tests/test_login.py::test_logout - assert 1 == 2",
        "--- FAIL: TestParse (0.01s)",
        "✗ renders the header",
        "curl: (22) The requested URL returned error: 404",
        "HTTP/1.1 503 Service Unavailable",
        "Error: connect ECONNREFUSED 127.0.0.1:5432",
        "E       assert 2 == 3 failed",
        "CONFLICT (content): Merge conflict in src/lib.rs",
        "Segmentation fault (core dumped)",
        "make: *** [Makefile:12: all] Error 2",
        "\u{1b}[31merror\u{1b}[0m: could not compile `app`",
        "Could not find the text to replace in src/lib.rs",
        "<tool_use_error>File does not exist.</tool_use_error>",
        "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff",
        "ModuleNotFoundError: No module named 'yaml'",
        "ld: symbol(s) not found for architecture arm64",
        "assertion `left == right` failed",
        "[lint] ERROR task failed",
        "psql: error: connection refused",
        "ERROR 1045 (28000): Access denied for user 'root'@'localhost'",
    ] {
        let found = lines(text, Outcome::Unknown);
        assert_eq!(found, [(OutputKind::Error, text.trim())], "{text:?}");
    }
}

#[test]
fn text_that_only_speaks_of_errors_is_passed_over() {
    for text in [
        "fn handle_error(code: u32) -> Result<(), Error> {",
        "    if err != nil {",
        "\treturn nil, fmt.Errorf(\"failed to open: %w\", err)",
        "// error handling is done by the caller",
        "# errors are logged",
        "errors = []",
        "0 errors, 0 warnings",
        "no errors found",
        "Found 0 errors. Watching for file changes.",
        "   12\tthrow new Error(\"failed to load\");",
        "    7→    raise ValueError(\"failed to parse\")",
        "src/a.go:12:\t\tt.Fatalf(\"failed to write: %v\", err)",
        "src/a.go-13-\t\treturn fmt.Errorf(\"failed to write: %w\", err)",
        "+\t\tt.Fatalf(\"failed to create repo: %v\", err)",
        "import { AppError } from './errors';",
        "class ParseError extends Error {",
        "} catch (error) {",
        "const error = await load();",
        "downloading github.com/pkg/errors v0.9.1",
        "-rw-r--r-- 1 a a 120 Jan 1 10:00 error.rs",
        "errors.ts",
        "Compiling thiserror v2.0.1",
        "let result: Result<u8, ParseError> = Err(ParseError::Empty);",
        "1 file changed, 2 insertions(+)",
        "The quick brown fox",
    ] {
        assert_eq!(lines(text, Outcome::Unknown), [], "{text:?}");
    }
}

#[test]
fn results_of_tests_commits_pushes_builds() {
    let check = |text: &str, kind: OutputKind| {
        assert_eq!(
            lines(text, Outcome::Unknown).first().map(|l| l.0),
            Some(kind),
            "{text:?}"
        );
    };
    let tests = |passed, failed| OutputKind::Tests { passed, failed };
    check(
        "test result: ok. 14 passed; 0 failed; 1 ignored",
        tests(Some(14), Some(0)),
    );
    check(
        "test result: FAILED. 13 passed; 1 failed; 0 ignored",
        tests(Some(13), Some(1)),
    );
    check(
        "===== 3 failed, 21 passed in 0.42s =====",
        tests(Some(21), Some(3)),
    );
    check(
        "Tests:       1 failed, 14 passed, 15 total",
        tests(Some(14), Some(1)),
    );
    check("  24 passing (3s)", tests(Some(24), None));
    check("  2 failing", tests(None, Some(2)));
    check("ok  \texample.com/app/store\t0.412s", tests(None, None));
    check("Ran 12 tests in 0.003s", tests(None, None));
    check("OK (12 tests, 30 assertions)", tests(Some(12), None));
    check("[main 1a2b3c4] Add the pager", OutputKind::Commit);
    check(
        "[feature/x (root-commit) 1a2b3c4d] Start",
        OutputKind::Commit,
    );
    check("   1a2b3c4..5d6e7f8  main -> main", OutputKind::Push);
    check(" * [new branch]      topic -> topic", OutputKind::Push);
    check(
        "    Finished `dev` profile [unoptimized] target(s) in 3.21s",
        OutputKind::Build,
    );
    check("BUILD SUCCESSFUL in 4s", OutputKind::Build);
}

#[test]
fn one_line_represents_a_failure() {
    let text = "Exit code 101\n   Compiling app v0.1.0\nerror[E0425]: cannot find value `y` in this scope\n --> src/main.rs:2:5\nerror: could not compile `app`\n";
    let headline = headline_error(text, Outcome::Failed).map(|line| line.text);
    assert_eq!(
        headline,
        Some("error[E0425]: cannot find value `y` in this scope")
    );
    let traceback = "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    raise ValueError(\"bad\")\nValueError: bad\n";
    assert_eq!(
        headline_error(traceback, Outcome::Failed).map(|line| line.text),
        Some("ValueError: bad")
    );
    let key: Vec<_> = key_errors(text, Outcome::Failed, 2)
        .into_iter()
        .map(|line| line.text)
        .collect();
    assert_eq!(key.len(), 2);
    assert_eq!(headline_error("all good\n", Outcome::Succeeded), None);
}

#[test]
fn lines_keep_their_place() {
    let text = "a\r\n  error: b\r\nc\n";
    let found: Vec<_> = output_lines(text, Outcome::Failed).collect();
    assert_eq!(found.len(), 1);
    assert_eq!(
        found
            .first()
            .map(|line| (line.text, &text[line.range.clone()])),
        Some(("error: b", "error: b"))
    );
}
