//! What the recognisers say about one-line texts, language by language.
mod chinese_japanese;
mod english;
mod french_spanish;
mod german;
mod languages;
mod model_and_tools;
mod structure;

use super::*;

/// Checks the cues of a message: `expected` names those that it must give with at least 50, and after `!` those that it
/// must not give so surely. All misses of a table are shown at once.
#[track_caller]
fn check(table: &[(&str, &str)]) {
    const SURE: u8 = 50;
    let mut misses = Vec::new();
    for (text, expected) in table {
        let sentences = user_sentences(text, Circumstances::default());
        for word in expected.split_whitespace() {
            let (name, wanted) = word
                .strip_prefix('!')
                .map_or((word, true), |name| (name, false));
            let cue = cue(name);
            let confidence = message_confidence(&sentences, cue);
            if (confidence >= SURE) != wanted {
                let all: Vec<_> = sentences
                    .iter()
                    .map(|s| (s.voice, s.cues.iter().collect::<Vec<_>>()))
                    .collect();
                misses.push(format!("{text:?}: {word}, but has {all:?}"));
            }
        }
    }
    assert!(
        misses.is_empty(),
        "\n{}\n{} misses",
        misses.join("\n"),
        misses.len()
    );
}

fn cue(name: &str) -> Cue {
    match name {
        "correction" => Cue::Correction,
        "prohibition" => Cue::Prohibition,
        "preference" => Cue::Preference,
        "fact" => Cue::Fact,
        "change" => Cue::Change,
        "request" => Cue::Request,
        "question" => Cue::Question,
        "approval" => Cue::Approval,
        "denial" => Cue::Denial,
        "goal" => Cue::GoalChange,
        "talk" => Cue::SmallTalk,
        _ => panic!("no cue is called {name}"),
    }
}
