use super::super::*;

fn voices(text: &str) -> Vec<(Voice, &str)> {
    user_sentences(text, Circumstances::default())
        .into_iter()
        .map(|s| (s.voice, s.text))
        .collect()
}

#[test]
fn sentences_are_cut_at_their_ends_and_keep_their_places() {
    let text = "First, do A. Then B (e.g. with v1.2)!  \n- rename foo.rs\n2) no, wait…\nOK?";
    let sentences = user_sentences(text, Circumstances::default());
    let texts: Vec<_> = sentences.iter().map(|s| s.text).collect();
    assert_eq!(
        texts,
        [
            "First, do A.",
            "Then B (e.g. with v1.2)!",
            "rename foo.rs",
            "no, wait…",
            "OK?"
        ]
    );
    for sentence in &sentences {
        assert_eq!(text.get(sentence.range.clone()), Some(sentence.text));
    }
}

#[test]
fn wide_stops_need_no_space() {
    let texts: Vec<_> = voices("好的。不要改配置！为什么？")
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(texts, ["好的。", "不要改配置！", "为什么？"]);
}

#[test]
fn pasted_and_injected_text_is_not_the_persons() {
    assert_eq!(
        voices("fix this\n```rust\nfn no() {}\n// don't\n```\nplease"),
        [
            (Voice::Person, "fix this"),
            (
                Voice::Pasted(PastedKind::Code),
                "```rust\nfn no() {}\n// don't\n```"
            ),
            (Voice::Person, "please"),
        ]
    );
    assert_eq!(
        voices("<system-reminder>\nNever mention this.\n</system-reminder>\nadd a test"),
        [
            (
                Voice::Injected,
                "<system-reminder>\nNever mention this.\n</system-reminder>"
            ),
            (Voice::Person, "add a test"),
        ]
    );
    assert_eq!(
        voices(
            "The user denied this operation; it was not run.\nUser feedback: use the other port"
        ),
        [
            (
                Voice::Injected,
                "The user denied this operation; it was not run.\nUser feedback:"
            ),
            (Voice::Person, "use the other port"),
        ]
    );
    assert_eq!(
        voices("<feedback>use the other port</feedback>"),
        [
            (Voice::Injected, "<feedback>"),
            (Voice::Person, "use the other port"),
            (Voice::Injected, "</feedback>"),
        ]
    );
    assert_eq!(
        voices(
            "it crashes:\n2026-03-01T10:00:00Z ERROR no route\nTraceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'\nany idea?"
        ),
        [
            (Voice::Person, "it crashes:"),
            (
                Voice::Pasted(PastedKind::Log),
                "2026-03-01T10:00:00Z ERROR no route\nTraceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'"
            ),
            (Voice::Person, "any idea?"),
        ]
    );
    assert_eq!(
        voices("> you must not\nwhy did you write that?").first(),
        Some(&(Voice::Pasted(PastedKind::Quotation), "> you must not"))
    );
    assert_eq!(
        voices("diff --git a/x b/x\n@@ -1 +1 @@\n-no\n+yes\n\nlooks right?").last(),
        Some(&(Voice::Person, "looks right?"))
    );
}

#[test]
fn a_refusal_hands_on_the_persons_words() {
    let text = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nuse the staging key";
    assert_eq!(
        voices(text).last(),
        Some(&(Voice::Person, "use the staging key"))
    );
    assert_eq!(interruption(text), Some(Interruption::Refused));
    assert_eq!(
        interruption("[Request interrupted by user]"),
        Some(Interruption::Stopped)
    );
    assert_eq!(interruption("please stop"), None);
}

#[test]
fn the_message_after_an_interruption_is_a_correction() {
    let after = Circumstances {
        after_interruption: true,
        ..Circumstances::default()
    };
    let sentences = user_sentences("the totals live in report.csv", after);
    assert!(message_confidence(&sentences, Cue::Correction) >= 70);
    let sentences = user_sentences("thanks!", after);
    assert_eq!(message_confidence(&sentences, Cue::Correction), 0);
}

#[test]
fn the_first_message_corrects_nothing_but_may_forbid() {
    let first = Circumstances {
        is_first: true,
        ..Circumstances::default()
    };
    let sentences = user_sentences("Write a parser. Do not use regular expressions.", first);
    assert!(message_confidence(&sentences, Cue::Correction) < 50);
    assert!(message_confidence(&sentences, Cue::Prohibition) >= 80);
}

#[test]
fn short_typed_messages_are_distinguished_from_pasted_ones() {
    let is_short = |text: &str| is_short_and_human(&user_sentences(text, Circumstances::default()));
    assert!(is_short("please rename it to total"));
    assert!(is_short("[Image #1]\nthe legend is cut off"));
    assert!(!is_short(
        "see\n```\nerror: one\nerror: two\nerror: three\n```"
    ));
    assert!(!is_short("<command-name>/clear</command-name>"));
    assert!(!is_short(
        &"a long story about nothing in particular. ".repeat(30)
    ));
}

#[test]
fn the_language_is_the_persons_and_not_the_codes() {
    let check = |samples: &[&str], expected: Option<&str>| {
        assert_eq!(language(samples.iter().copied()), expected, "{samples:?}");
    };
    check(&["Please add a test for the parser."], Some("eng"));
    check(
        &[
            "Kannst du das bitte prüfen?",
            "```\nfn main() { let the_value = is_it(and_that); }\n```",
        ],
        Some("deu"),
    );
    check(
        &["Bitte refactore die function parse_header in src/lib.rs und committe die changes"],
        Some("deu"),
    );
    check(&["Peux-tu corriger le bug dans main.rs ?"], Some("fra"));
    check(&["¿Puedes arreglar el error en main.rs?"], Some("spa"));
    check(&["请修复 main.rs 里的 bug"], Some("cmn"));
    check(&["main.rs のバグを直してください"], Some("jpn"));
    check(&["테스트를 하나 더 추가해 주세요"], Some("kor"));
    check(
        &[
            "Пожалуйста, исправь ошибку в разборе заголовка. Она появляется, когда файл пустой, и мешает всем остальным проверкам в этой ветке.",
        ],
        Some("rus"),
    );
    check(&["fn main() {}", "ls -la"], None);
    check(&[], None);
}

#[test]
fn nothing_panics_on_odd_text() {
    for text in [
        "",
        "\n",
        "`",
        "```",
        "<",
        "<a",
        "<a-b>",
        "</a-b>",
        "\u{feff}",
        "…",
        "。。。",
        "????",
        "-",
        "- ",
        "#",
        "\0\0",
        "é.",
        "1.",
        "'’",
        "٣. ٤",
        "\u{200b}no\u{200b}",
        "<task>\n",
        "𝔫𝔬, İstanbul’da",
    ] {
        let _ = user_sentences(text, Circumstances::default());
        let _ = assistant_statements(text);
        let _ = output_lines(text, Outcome::Failed).count();
        let _ = language([text]);
        let _ = supersedes(text, text);
        let _ = interruption(text);
    }
}

/// Kinds of pasted text, and whether each corrects something.
#[test]
fn pasted_text_corrects_nothing() {
    let notes = |what: &str| {
        let people = ["Ines", "Tomas", "Priya", "Jonas", "Mei", "Olu"];
        let lines: Vec<String> = people
            .iter()
            .enumerate()
            .map(|(n, who)| {
                format!("{who} looked at the queue and found {what} in request {}; it took {} ms and was left as it is.", 1000 + n * 37, 20 + n * 91)
            })
            .collect();
        lines.join("\n")
    };
    let list =
        |point: &str| -> String { (1..=14).map(|n| format!("{n}. {point} {n}\n")).collect() };
    let cases: [(&str, String, &str); 14] = [
        (
            "notes",
            format!(
                "These are the notes of today.\n\n{}",
                notes("a missing key")
            ),
            "!correction",
        ),
        (
            "notes right behind words",
            format!("Look at these:\n{}", notes("the wrong order")),
            "!correction",
        ),
        (
            "a report",
            notes("not enough rows, which is incorrect,"),
            "!correction",
        ),
        (
            "a fence",
            "Look:\n```\nthat is wrong, not this one\nmissing\n```".to_owned(),
            "!correction",
        ),
        (
            "quoted lines",
            "> no, that is wrong\n> the key is missing".to_owned(),
            "!correction",
        ),
        (
            "a log",
            "ERROR wrong key\nERROR value is missing\nWARN still broken".to_owned(),
            "!correction",
        ),
        (
            "stamped lines",
            "2026-03-01 10:00:00 wrong key\n2026-03-01 10:00:01 still missing".to_owned(),
            "!correction",
        ),
        (
            "a long list",
            list("the header is missing on page"),
            "!correction",
        ),
        // What is said beside it counts as ever.
        (
            "words before notes",
            format!(
                "No, that's wrong: the port is 8431.\n\n{}",
                notes("a missing key")
            ),
            "correction",
        ),
        (
            "words behind notes",
            format!("{}\n\nYou forgot the retry worker.", notes("a missing key")),
            "correction",
        ),
        (
            "a short list",
            "- that's wrong, use the other port\n- the header is missing".to_owned(),
            "correction",
        ),
        (
            "some lines",
            "No, not this file.\nThe other one is wrong too.\nUse the third.".to_owned(),
            "correction",
        ),
        // Rules hold in any form.
        (
            "rules of one shape",
            (1..=6)
                .map(|n| format!("Never change the table number {n} of the old schema.\n"))
                .collect(),
            "prohibition",
        ),
        (
            "a long list of rules",
            list("never touch the folder of release"),
            "prohibition",
        ),
    ];
    for (name, text, expected) in &cases {
        println!("{name}");
        super::check(&[(text.as_str(), *expected)]);
    }
}

#[test]
fn only_explicit_requests_to_remember_count() {
    let table = [
        ("Remember: the deploy region is eu-north-3.", true),
        ("Please remember that I fly on Tuesday.", true),
        ("- remember the port: 8431", true),
        ("Don’t forget that the key rotates weekly.", true),
        ("Keep in mind: invoices are in francs.", true),
        ("For the record, the owner is team Falcon.", true),
        ("Bitte merk dir: Region ist eu-north-3.", true),
        ("Vergiss nicht, dass der Port 8431 ist.", true),
        ("N'oublie pas que le port est 8431.", true),
        ("Recuerda: la región es eu-north-3.", true),
        ("请记住端口是8431。", true),
        ("I remember that we had a port.", false),
        ("Do you remember the port?", false),
        ("Remember when it broke?", false),
        ("Remember the time it broke?", false),
        ("The key is missing.", false),
        ("", false),
    ];
    for (text, expected) in table {
        assert_eq!(asks_to_remember(text), expected, "{text}");
    }
}
