use super::*;

fn redact(text: &str) -> String {
    Redactor::embedded().redact(text).into_owned()
}

/// Runs every example of the built-in rules.
#[test]
fn every_rule_keeps_to_its_examples() {
    let redactor = Redactor::with_rules(EMBEDDED).unwrap();
    let mut wrong = Vec::new();
    for rule in &redactor.rules {
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
