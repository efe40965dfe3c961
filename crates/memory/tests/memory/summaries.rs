//! Memories and summaries that a transcript holds of the messages before it.

use throughline_memory::compact::{Form, Options, compact};
use throughline_memory::document::{Origin, Section, Status};
use throughline_transcript::message::{Author, Block, Message, Role};

use super::conversation::{assistant, count, find, holding, memory_of, user};

fn session() -> Vec<Message> {
    vec![
        user("Plan the regatta. Never close the north pier. The budget is 900 euros."),
        assistant("The regatta has three races, all from the south pier."),
        user("Which buoys do we need?"),
        assistant("Four red ones and a yellow one at the turn."),
        user("Please order the lanterns."),
    ]
}

#[test]
fn a_memory_of_our_own_is_read_back_and_updated() {
    for form in [Form::Markdown, Form::System, Form::UserMessage] {
        let options = Options {
            form,
            ..Options::new(1000, &count)
        };
        let first = compact(&session(), &options).unwrap();
        let role = if form == Form::System {
            Role::System
        } else {
            Role::User
        };
        let restored = [
            Message::new(role, vec![Block::text(first.text.as_str())]),
            assistant("The lanterns are ordered, twelve of them."),
            user("The budget is 700 euros now."),
            assistant("Noted."),
        ];
        let second = compact(&restored, &Options::new(1000, &count)).unwrap();
        let memory = &second.memory;
        let rule = find(memory, Section::Corrections, "Never close the north pier").unwrap();
        assert_eq!(
            (rule.origin, &rule.status),
            (Origin::User, &Status::Active),
            "{}",
            second.text
        );
        assert!(
            find(memory, Section::Task, "Which buoys do we need?").is_some(),
            "{}",
            second.text
        );
        assert!(
            second.text.contains("→ The lanterns are ordered"),
            "{}",
            second.text
        );
        assert_eq!(
            holding(memory, Section::Task),
            Vec::<&str>::new(),
            "{}",
            second.text
        );
        assert!(
            !holding(memory, Section::Corrections)
                .iter()
                .any(|rule| rule.contains("900")),
            "{}",
            second.text
        );
        assert_eq!(second.text.matches("Memory of").count(), 1);
        assert!(!second.text.contains("session_memory"));
    }
}

#[test]
fn reading_a_memory_back_loses_nothing_over_many_rounds() {
    let mut text = memory_of(&session(), 400).text;
    for _ in 0..4 {
        let again = memory_of(&[user(&text)], 400).text;
        let lines = |text: &str| -> Vec<String> {
            text.lines()
                .skip(1)
                .filter(|line| line.starts_with("- "))
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(lines(&again), lines(&text));
        text = again;
    }
}

#[test]
fn a_summary_of_another_program_is_the_memory_of_what_it_replaces() {
    let claude = "This session is being continued from a previous conversation that ran out of context. The summary below covers \
        the earlier portion of the conversation.\n\nAnalysis:\nFirst I looked at the quay.\n\nSummary:\n1. Primary Request and Intent:\n   \
        The user wants the tide gauge to read metres.\n\n4. Errors and fixes:\n   - The feed timed out; raised to 30 s.\n\n\
        7. Pending Tasks:\n   - Paint the mast grey\n\n8. Current Work:\n   The gauge test of pier 4 is red.";
    let codex = "## Goal\nThe user wants the tide gauge to read metres.\n\n## Errors\n- The feed timed out; raised to 30 s.\n\n\
        ## Next steps\n- Paint the mast grey\n\n## Current state\nThe gauge test of pier 4 is red.";
    let mut compacted = Message::new(Role::User, vec![Block::text(codex)]);
    compacted.author = Author::Compaction;
    for summary in [user(claude), compacted] {
        let conversation = [
            summary,
            assistant("I look at pier 4."),
            user("Also label the lamps."),
        ];
        let compacted = memory_of(&conversation, 1500);
        let memory = &compacted.memory;
        for (section, said) in [
            (
                Section::Task,
                "The user wants the tide gauge to read metres.",
            ),
            (Section::Errors, "The feed timed out; raised to 30 s."),
            (Section::NextSteps, "Paint the mast grey"),
            (Section::Task, "Also label the lamps."),
        ] {
            assert!(
                find(memory, section, said).is_some(),
                "{said}: {}",
                compacted.text
            );
        }
        assert!(
            !compacted.text.contains("First I looked at the quay"),
            "{}",
            compacted.text
        );
        let goal = find(memory, Section::Task, "tide gauge").unwrap();
        assert_eq!(goal.origin, Origin::Assistant);
    }
}
