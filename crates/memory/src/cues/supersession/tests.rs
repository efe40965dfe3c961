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

#[test]
fn a_matter_with_one_value_changes_however_it_is_worded() {
    for (earlier, later) in [
        (
            "RULE: The quay budget cap is $700 in all.",
            "Small update: keep quay spending under four hundred dollars.",
        ),
        (
            "Ferry costs must stay at or below 650 euros.",
            "New ceiling for ferry expenses: at most 500 euros.",
        ),
        (
            "FACT: Launch deadline is 2031-04-02.",
            "Update: the launch date moved to 05-11 (May 11).",
        ),
        (
            "The release target date is 2031-04-02.",
            "Release timing has changed: we now ship on June 6.",
        ),
        (
            "The project codename is GULL-204.",
            "We are calling the project TERN-377 now.",
        ),
        (
            "Put every timestamp in UTC.",
            "Show clocks in Pacific Time.",
        ),
        (
            "The on-call rotation owner this week is Anna Berg.",
            "Berta Holm now owns the pager this week.",
        ),
        (
            "Branch pier/lamp-12 is based on main and stays unpushed.",
            "We rebased onto pier/lamp-40; next comes the migration.",
        ),
        (
            "Keep replies terse.",
            "Please make responses light and playful.",
        ),
        (
            "Never tell anyone the gate code ab12.",
            "The gate code rotated: it is cd34 now.",
        ),
        (
            "Das Budget für den Kai ist 900 €.",
            "Neue Obergrenze für Ausgaben am Kai: 700 €.",
        ),
    ] {
        check(earlier, later, true);
    }
}

#[test]
fn matters_of_others_are_their_own() {
    for (one, other) in [
        (
            "Quay spending ceiling is $500.",
            "Regatta spending ceiling is $250.",
        ),
        (
            "Product launch is scheduled for 2031-04-02.",
            "The docs freeze lands on 2031-05-11.",
        ),
        (
            "Anna Berg is the release approver this week.",
            "Berta Holm is the design reviewer this week.",
        ),
        (
            "The production database is Postgres 16 in eu-north-3.",
            "The staging database is MySQL 8 in us-west-2.",
        ),
        (
            "The code for gate 35 is ab12.",
            "The code for gate 10 is cd34.",
        ),
        ("Answer in bullet points.", "Answer in German."),
        (
            "Question 5: Which pier has 3 lamps?",
            "Question 18: Which pier has 4 lamps?",
        ),
        ("Round 3: the limit is 300.", "Round 4: the limit is 400."),
        (
            "The tide package is the one source of this table.",
            "The tide package is critical for the safety of every crew on board.",
        ),
    ] {
        for (earlier, later) in [(one, other), (other, one)] {
            let sure = supersedes(earlier, later).unwrap_or(0);
            assert!(sure < 80, "{earlier:?} / {later:?}: {sure}");
        }
    }
}

#[test]
fn a_retraction_gives_the_rule_up() {
    for (earlier, later) in [
        ("Please give volumes in litres.", "Forget the litres."),
        (
            "Use litres, never gallons.",
            "Forget the litres, gallons are fine.",
        ),
        (
            "Always answer with a table.",
            "Forget what I said about the table.",
        ),
        (
            "Gib die Mengen in Litern an.",
            "Vergiss das mit den Litern.",
        ),
        ("Donne les volumes en litres.", "Oublie les litres."),
        ("Da los volúmenes en litros.", "Olvida los litros."),
    ] {
        check(earlier, later, true);
    }
}
