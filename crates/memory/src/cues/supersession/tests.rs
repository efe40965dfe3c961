use super::*;

#[track_caller]
fn check(earlier: &str, later: &str, expected: bool) {
    let strength = supersedes(earlier, later);
    assert_eq!(
        strength.is_some(),
        expected,
        "{earlier:?} / {later:?}: {strength:?}"
    );
}

#[test]
fn a_new_value_for_the_same_subject_takes_the_place() {
    check(
        "Use 4 spaces for indentation",
        "use tabs for indentation please",
        true,
    );
    check("use 4 spaces", "use tabs", true);
    check(
        "The deadline is 3 May.",
        "The deadline moved to 10 May",
        true,
    );
    check("Call me Alexandra", "call me Sam instead", true);
    check(
        "answer in English",
        "please answer in Spanish from now on",
        true,
    );
    check(
        "use semicolons in the code",
        "don't use semicolons in the code",
        true,
    );
    check(
        "The staging server is at 10.0.0.4",
        "the staging server is now 10.0.0.9",
        true,
    );
}

#[test]
fn a_statement_about_another_subject_does_not_supersede() {
    for (one, other) in [
        (
            "My favourite number 35 is 1234",
            "My favourite number 10 is 77",
        ),
        (
            "The code is 1234 for gate 35.",
            "The code is 77 for gate 10.",
        ),
        (
            "The phone number of our customer Anna is 5551",
            "The phone number of our customer Berta is 5552",
        ),
        (
            "Anna's favourite colour at home is red",
            "Berta's favourite colour at home is blue",
        ),
        (
            "Use Postgres for the Orders service",
            "Use MySQL for the Users service",
        ),
        ("Use tabs for Go", "Use 4 spaces for Python"),
        (
            "The timeout of queue_a is 30 seconds",
            "The timeout of queue_b is 60 seconds",
        ),
        (
            "The deploy region of v2 is eu-north-3",
            "The deploy region of v3 is eu-south-1",
        ),
        ("Der Code für Tor 35 ist 1234", "Der Code für Tor 10 ist 77"),
        ("35号门的密码是1234", "10号门的密码是77"),
    ] {
        check(one, other, false);
        check(other, one, false);
    }
}

#[test]
fn a_statement_about_the_same_subject_supersedes_despite_other_names() {
    for (earlier, later) in [
        (
            "My favourite number 35 is 1234",
            "My favourite number 35 is 77",
        ),
        (
            "The code is 1234 for gate 35.",
            "The code for gate 35 is 77.",
        ),
        (
            "The phone number of our customer Anna is 5551",
            "The phone number of our customer Anna is now 5552",
        ),
        (
            "Use Postgres for the Orders service",
            "Use MySQL for the Orders service",
        ),
        ("Use tabs for Go", "Use 4 spaces for Go"),
        (
            "A limit of 100 requests is set",
            "A limit of 200 requests is set",
        ),
        (
            "Wait for 30 seconds before each call",
            "Wait for 60 seconds before each call",
        ),
        (
            "The timeout of queue_a is 30 seconds",
            "The timeout of queue_a is 60 seconds",
        ),
        ("3 May is the deadline", "10 May is the deadline"),
        ("The deadline is 3 May.", "The deadline is 10 May."),
        (
            "The budget of 900 euros is fixed",
            "The budget of 800 euros is fixed",
        ),
        (
            "Use port 8080 for staging",
            "Use port 9090 instead of 8080 for staging",
        ),
        ("35号门的密码是1234", "35号门的密码是77"),
    ] {
        check(earlier, later, true);
    }
}

#[test]
fn a_correction_may_begin_with_a_rejection() {
    for opening in [
        "No, that was wrong: ",
        "No. ",
        "Nope — ",
        "Sorry, my mistake: ",
        "Actually, ",
        "That’s wrong. ",
        "no - ",
    ] {
        check(
            "The deploy region is eu-north-3.",
            &format!("{opening}the deploy region is eu-south-1."),
            true,
        );
        check("use 4 spaces", &format!("{opening}use tabs"), true);
        check(
            "The deploy region is eu-north-3.",
            &format!("{opening}the port is 8431."),
            false,
        );
    }
    check(
        "Die Region ist eu-north-3.",
        "Nein, das war falsch: die Region ist eu-south-1.",
        true,
    );
    check(
        "La región es eu-north-3.",
        "No, perdón: la región es eu-south-1.",
        true,
    );
    check(
        "La région est eu-north-3.",
        "Non, c'était faux : la région est eu-south-1.",
        true,
    );
    check("部署区域是北京。", "不对，部署区域是上海。", true);
    // "No" that forbids stays what it is, and a rejection alone says nothing.
    check("use semicolons", "no semicolons", true);
    check(
        "The deploy region is eu-north-3.",
        "No, that was wrong.",
        false,
    );
}

#[test]
fn statements_that_can_both_hold_do_not() {
    check(
        "use tabs for indentation",
        "use single quotes for strings",
        false,
    );
    check("The deadline is 3 May.", "The budget is 4000 euros", false);
    check(
        "don't touch the config file",
        "add a test for the parser",
        false,
    );
    check("my daughter is 7", "my son is 9", false);
}
