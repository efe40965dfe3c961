use super::*;

fn redact(text: &str) -> String {
    Redactor::embedded().redact(text).into_owned()
}

/// Runs every example of the built-in rules.
#[test]
fn every_rule_keeps_to_its_examples() {
    let redactor = Redactor::with_rules(EMBEDDED).unwrap();
    let mut wrong = Vec::new();
    for rule in redactor.rules.iter() {
        assert!(!rule.finds.is_empty(), "{} has no example", rule.id);
        for example in &rule.finds {
            let secret = example.secret.concat();
            let text = format!("{}{secret}{}", example.before, example.after);
            let found = redactor.find(&text);
            let expected = Finding {
                range: example.before.len()..example.before.len() + secret.len(),
                rule: &rule.id,
            };
            if found != [expected.clone()] {
                wrong.push(format!(
                    "{}: {text:?}: {found:?} instead of {expected:?}",
                    rule.id
                ));
            }
            let once = redactor.redact(&text);
            if once.contains(&secret) || redactor.redact(&once) != once {
                wrong.push(format!("{}: {text:?} becomes {once:?}", rule.id));
            }
        }
        for text in &rule.leaves {
            if !matches!(redactor.redact(text), Cow::Borrowed(_)) {
                wrong.push(format!(
                    "{}: {text:?} becomes {}",
                    rule.id,
                    redactor.redact(text)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn credentials_in_an_environment_listing_are_replaced_and_the_rest_stays() {
    let key = ["sk-", "ant-api03-", &"Zk9".repeat(20), "AA"].concat();
    let cloud = ["AK", "IA", "QZTESTTESTTEST12"].concat();
    let host = ["gh", "p_", &"a1B2".repeat(9)].concat();
    let password = ["pa55-", "w0rd-x9"].concat();
    let block = [
        "-----BEGIN ",
        "PRIVATE KEY-----\n",
        &"MIIBfakefakefake\n".repeat(6),
        "-----END ",
        "PRIVATE KEY-----",
    ]
    .concat();
    let text = format!(
        "Use this key for the test account: {key}\nAWS_ACCESS_KEY_ID={cloud}\nGH={host}\nDB=postgres://app:{password}@db.local/x\n{block}\nLANG=C\nPORT=8431"
    );
    insta::assert_snapshot!(redact(&text), @r"
    Use this key for the test account: [redacted:anthropic-api-key:bcae]
    AWS_ACCESS_KEY_ID=[redacted:aws-access-key-id:2ad0]
    GH=[redacted:github-token:6305]
    DB=postgres://app:[redacted:url-password:df1d]@db.local/x
    [redacted:private-key:b78b]
    LANG=C
    PORT=8431
    ");
    for secret in [key, cloud, host, password, "MIIBfakefakefake".to_owned()] {
        assert!(!redact(&text).contains(&secret));
    }
}

#[test]
fn the_same_secret_has_the_same_marker_and_a_key_changes_it() {
    let one = ["kiwi", "-77!x"].concat();
    let other = ["plum", "-78!x"].concat();
    let text = format!("a_password='{one}' b_password='{one}' c_password='{other}'");
    let markers = |redactor: &Redactor| -> Vec<String> {
        let redacted = redactor.redact(&text);
        redacted
            .split('\'')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let plain = markers(Redactor::embedded());
    assert_eq!(plain[0], plain[1]);
    assert_ne!(plain[0], plain[2]);
    let keyed = markers(
        &Redactor::with_rules(EMBEDDED)
            .unwrap()
            .with_key(b"session 7"),
    );
    assert_eq!(keyed[0], keyed[1]);
    assert_ne!(keyed[0], plain[0]);
}

#[test]
fn a_long_secret_is_redacted_to_its_end() {
    let token = [
        "eyJ",
        "hbGciOiJIUzI1NiJ9.ey",
        "Jz",
        &"dWIiOiI3Zm9v".repeat(900),
    ]
    .concat();
    let redacted = redact(&format!("jwt {token} end"));
    assert!(redacted.starts_with("jwt [redacted:json-web-token:") && redacted.ends_with("] end"));
    assert!(redacted.len() < 60, "{redacted}");
}

#[test]
fn ordinary_identifiers_stay() {
    for text in [
        "commit 9f1c2e7ab04d53c6e8f7a1b2c3d4e5f60718293a",
        "session 3f2b8a4e-1c9d-4e7f-8a6b-5c4d3e2f1a0b started",
        "integrity sha512-Zk3n0a8Jx1pQ7LmVt5RyB2cWd9EoHfGsUiKjNvXqTlMzPwYbCrA4gD6hS==",
        "checksum = \"4cbcd9e1b1ab5d3f7c1f7f6e9f1d0b7a8c2e4f60917263544a5b6c7d8e9f0a1b\"",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "\"signature\": \"EqoBCkgIARABGAIiQL8k2\"",
        "input_tokens: 18234, cache_read_input_tokens: 17001",
        "toolu_01A9bQ7LmVt5RyB2cWd9EoHf call_8Jx1pQ7LmVt5RyB2",
        "\"uuid\":\"3f2b8a4e-1c9d-4e7f-8a6b-5c4d3e2f1a0b\",\"tokenizer\":\"o200k_base\"",
        "[REDACTED] and **** and [redacted:github-token:1f3a]",
    ] {
        assert_eq!(redact(text), text);
    }
}

#[test]
fn wrong_rules_are_refused_with_the_reason() {
    let check = |rules: &str, expected: &str| {
        let error = Redactor::with_rules(rules).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check("rule = 1", "rules cannot be read");
    check(
        "[[rule]]\nid = 'A b'\npattern = '^x'\nkeywords = ['x']",
        "rule id \"A b\" is not made of lower-case letters, digits and hyphens",
    );
    check(
        "[[rule]]\nid = 'a'\npattern = '^x'\nkeywords = []",
        "rule a needs keywords that are not empty",
    );
    check(
        "[[rule]]\nid = 'a'\npattern = 'x'\nkeywords = ['x']",
        "pattern of rule a is not anchored by ^",
    );
    check(
        "[[rule]]\nid = 'a'\npattern = '^(x'\nkeywords = ['x']",
        "pattern of rule a is not valid",
    );
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    /// Examples of secrets that need nothing before them.
    fn secrets() -> Vec<String> {
        Redactor::embedded()
            .rules
            .iter()
            .flat_map(|rule| &rule.finds)
            .filter(|example| example.before.is_empty() && example.after.is_empty())
            .map(|example| example.secret.concat())
            .collect()
    }

    /// Secrets with what makes them tell, up to their end.
    fn told_secrets() -> Vec<(String, String)> {
        Redactor::embedded()
            .rules
            .iter()
            .flat_map(|rule| &rule.finds)
            .filter(|example| !example.after.starts_with(['@', '\'', '"']))
            .map(|example| (example.before.clone(), example.secret.concat()))
            .collect()
    }

    /// Words, punctuation and the beginnings of rules, in any order.
    fn any_text() -> impl Strategy<Value = String> {
        let pieces = Redactor::embedded()
            .rules
            .iter()
            .flat_map(|rule| rule.keywords.clone())
            .chain(
                told_secrets()
                    .into_iter()
                    .map(|(before, secret)| before + &secret),
            )
            .chain(
                [
                    "=",
                    ": ",
                    "\"",
                    "'",
                    "\\n",
                    "\n",
                    " ",
                    "@",
                    "://",
                    "a:",
                    "Zk9x1",
                    "-----",
                    "ü",
                    "语",
                    "[redacted:",
                    "]",
                    "[redacted:password:12ab]",
                    "${",
                    "x",
                    "7",
                    ";",
                    "&",
                    "MIIEvQIBADANBgkqhkiG9w0B",
                ]
                .map(str::to_owned),
            )
            .collect::<Vec<_>>();
        prop::collection::vec(
            prop_oneof![prop::sample::select(pieces), "\\PC{0,6}"],
            0..24,
        )
        .prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn redacting_twice_is_redacting_once(text in any_text()) {
            let once = redact(&text);
            prop_assert_eq!(redact(&once), once);
        }

        #[test]
        fn findings_are_in_order_and_apart(text in any_text()) {
            let mut end = 0;
            for finding in Redactor::embedded().find(&text) {
                prop_assert!(finding.range.start >= end && finding.range.start < finding.range.end);
                end = finding.range.end;
            }
        }

        #[test]
        fn a_planted_secret_does_not_survive(
            before in "[a-z ,.\n(]{0,60}[ \n\"'=(,\t]|",
            secret in prop::sample::select(secrets()),
            join in prop::sample::select(vec!["", "\"", "\\\"", "\n", "\\n", "\r\n", " ", ",", "')", "</a>", "`"]),
            after in "[a-z ,.\n]{0,60}",
        ) {
            // Without something between them, letters that follow would belong to the secret.
            let after = if join.is_empty() { String::new() } else { after };
            let text = format!("{before}{join}{secret}{join}{after}");
            prop_assert!(!redact(&text).contains(&secret), "{}", redact(&text));
            let json = serde_json::to_string(&text).unwrap();
            prop_assert!(!redact(&json).contains(&secret), "{}", redact(&json));
        }

        #[test]
        fn a_told_secret_does_not_survive_at_a_line_end(
            before in "[a-z ,.\n]{0,60}\n|",
            (telling, secret) in prop::sample::select(told_secrets()),
            after in "|\n[a-z ,.\n]{0,60}",
        ) {
            let text = format!("{before}{telling}{secret}{after}");
            prop_assert!(!redact(&text).contains(&secret), "{}", redact(&text));
        }

        #[test]
        fn prose_is_borrowed(text in "[A-Za-z ,.;:!?\n'()äöüß-]{0,400}") {
            prop_assert!(matches!(Redactor::embedded().redact(&text), Cow::Borrowed(_)));
        }

        #[test]
        fn any_text_is_survived(text in "\\PC{0,200}|(?s).{0,200}") {
            let _ = redact(&text);
        }
    }
}
