use super::check;

#[test]
fn corrections() {
    check(&[
        ("No, the other file.", "correction denial"),
        ("no", "correction denial"),
        ("nope", "correction denial"),
        ("wrong file", "correction"),
        ("use tabs", "correction preference"),
        ("too verbose", "correction"),
        ("still broken", "correction"),
        ("That's not what I meant", "correction"),
        ("that is wrong, the port is 8081", "correction"),
        ("Actually, put it into the second column", "correction"),
        ("wait, which branch are we on?", "correction question"),
        ("I said the blue one", "correction"),
        ("I meant the staging cluster", "correction"),
        ("you forgot the header row", "correction"),
        (
            "you should have asked me before deleting that",
            "correction",
        ),
        ("not the client but the server", "correction"),
        ("I would use a queue instead of polling", "correction"),
        ("maybe better to keep both versions", "correction"),
        ("I'd rather have one long page", "correction preference"),
        (
            "hmm, it would be better if the button were on the left",
            "correction",
        ),
        ("why did you rename the module?", "correction question"),
        ("it still shows the old title", "correction"),
        ("The icon doesn't work in dark mode", "correction"),
        ("undo that please", "correction"),
        ("the footer should be smaller", "correction preference"),
        ("please change it back", "correction request"),
        (
            "Looks good, but not the third paragraph",
            "correction approval",
        ),
        ("ok but let's not rename it", "correction prohibition"),
        ("scratch that", "correction"),
        ("It’s actually the left margin", "correction"),
        // not corrections
        ("add a test for the empty case", "!correction request"),
        ("yes please", "!correction approval"),
        ("no problem", "!correction !denial"),
        ("no worries, take your time", "!correction !denial"),
        ("commit and push", "!correction request"),
        ("What does the parser do with tabs?", "!correction question"),
        ("Thanks!", "!correction talk"),
        ("I live in Oslo", "!correction fact"),
        ("don't worry about it", "!prohibition"),
        ("you still there?", "!correction question"),
        ("read the file notes.txt", "!correction request"),
    ]);
}

#[test]
fn prohibitions() {
    check(&[
        (
            "Don't touch the config.",
            "prohibition correction !approval",
        ),
        ("do not push to main", "prohibition correction"),
        ("dont add comments", "prohibition"),
        ("never commit without asking", "prohibition"),
        ("stop adding emojis", "prohibition"),
        ("avoid global state", "prohibition"),
        ("please don't rewrite the whole file", "prohibition"),
        ("could you please not use any libraries?", "prohibition"),
        ("and do not forget: you must not log tokens", "prohibition"),
        ("no emojis please", "prohibition"),
        (
            "no more than three files, and no new dependencies",
            "prohibition",
        ),
        ("I don't want a database for this", "prohibition correction"),
        ("leave the tests alone", "prohibition"),
        ("you shouldn't edit generated code", "prohibition"),
        (
            "Fix the bug without touching the public API",
            "prohibition request",
        ),
        ("Editing the schema is off limits", "prohibition"),
        ("let's not add a cache yet", "prohibition"),
        ("I'd prefer you didn't reformat everything", "prohibition"),
        // no prohibitions
        ("don't you think the name is odd?", "!prohibition"),
        ("I don't know", "!prohibition"),
        ("I don't understand this line", "!prohibition"),
        ("no idea", "!prohibition !denial"),
        ("never mind", "!prohibition"),
        ("why don't we use a set?", "!prohibition"),
        ("shouldn't we check the length?", "!prohibition"),
    ]);
}

#[test]
fn preferences() {
    check(&[
        ("Always answer in bullet points.", "preference"),
        ("From now on write the tests first", "preference"),
        ("I prefer spaces over tabs", "preference"),
        ("please use British spelling", "preference"),
        ("make sure the build stays green", "preference"),
        ("only edit files under src/", "preference"),
        ("it must run on Windows", "preference"),
        ("remember that the demo is on Friday", "preference"),
        ("keep answers short", "preference"),
        ("Answer in Spanish", "preference"),
        ("call me Sam", "preference"),
        ("ask me before you delete anything", "preference"),
        ("be concise", "preference"),
        ("every function should have a doc comment", "preference"),
        ("run the linter after each change", "preference request"),
        ("in this project we write UTC everywhere", "preference"),
        ("Thanks a lot", "!preference"),
        ("what time is it", "!preference"),
        ("yes", "!preference"),
    ]);
}

#[test]
fn facts_and_changes() {
    check(&[
        ("My name is Ines", "fact"),
        ("I live in Lisbon with two cats", "fact"),
        ("we use Postgres 15", "fact"),
        ("our deadline is 3 May", "fact"),
        ("the staging server is at 10.1.2.3", "fact"),
        ("I'm allergic to peanuts", "fact"),
        ("my daughter starts school in August", "fact"),
        ("I work at a small clinic", "fact"),
        ("our CI runs on Buildkite", "fact"),
        ("My flight leaves at 7:40", "fact"),
        ("actually we moved to MySQL last month", "change correction"),
        ("we no longer support Python 3.8", "change"),
        ("the meeting was postponed to Tuesday", "change fact"),
        ("now it's called Atlas", "change"),
        ("I switched to a standing desk", "change"),
        ("I changed my mind about the colour", "change"),
        ("I have a question", "!fact"),
        ("what is our deadline?", "!fact question"),
        ("fix the typo", "!fact !change"),
        ("my bad", "!fact"),
    ]);
}

#[test]
fn requests_questions_and_goals() {
    check(&[
        ("Write a parser for INI files", "request"),
        ("can you add a flag for that?", "request question"),
        ("could you explain the second step", "request"),
        ("please run the tests", "request"),
        ("I want you to compare both options", "request"),
        ("let's add retries", "request"),
        ("then deploy it to staging", "request"),
        ("1. rename the crate\n2. update the docs", "request"),
        ("How does the cache work?", "question !request"),
        ("is it thread safe", "question"),
        ("which one is faster", "question"),
        ("the tests are slow", "!request !question"),
        ("new task: write the release notes", "goal"),
        ("let's switch to the billing page", "goal"),
        ("next: the import job", "goal"),
        ("forget about the importer, we do the exporter", "goal"),
        ("Let's move on to the tests", "goal"),
        ("the goal is a library without dependencies", "goal"),
        ("the button is grey", "!goal"),
    ]);
}

#[test]
fn answers_and_small_talk() {
    check(&[
        ("yes", "approval"),
        ("Yep, go ahead", "approval"),
        ("looks good to me", "approval"),
        ("lgtm", "approval"),
        ("sounds good, do it", "approval"),
        (
            "no, don't do that",
            "denial correction prohibition !approval",
        ),
        ("not now", "denial"),
        ("absolutely not", "denial"),
        ("cancel that", "denial"),
        ("thank you so much", "talk !request"),
        ("Good morning!", "talk"),
        ("hi there", "talk"),
        ("thanks, now fix the second one", "!talk request"),
        ("right now it prints twice", "!approval"),
    ]);
}
