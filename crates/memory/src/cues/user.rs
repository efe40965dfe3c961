//! Classifies the sentences of a user message.
use std::ops::Range;

use super::label::label_end;
use super::pasted::{PastedKind, Voice, stretches};
use super::rules;
use super::sentences::sentences;

/// What a sentence does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cue {
    /// It pushes back, puts right or constrains what was done or said before.
    Correction,
    /// It forbids something.
    Prohibition,
    /// A standing instruction or a preference.
    Preference,
    /// A fact about the person or their world.
    Fact,
    /// A fact or an instruction that replaces an earlier one ("we moved to", "no longer").
    Change,
    /// It asks for something to be done.
    Request,
    /// It asks something.
    Question,
    /// Yes, go ahead.
    Approval,
    /// No, do not.
    Denial,
    /// It sets or changes what is worked on.
    GoalChange,
    /// Thanks, greetings.
    SmallTalk,
}

impl Cue {
    /// All cues, in the order of [`Cues`].
    pub const ALL: [Self; 11] = [
        Self::Correction,
        Self::Prohibition,
        Self::Preference,
        Self::Fact,
        Self::Change,
        Self::Request,
        Self::Question,
        Self::Approval,
        Self::Denial,
        Self::GoalChange,
        Self::SmallTalk,
    ];

    /// The name of the cue in the rule files.
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "correction" => Self::Correction,
            "prohibition" => Self::Prohibition,
            "preference" => Self::Preference,
            "fact" => Self::Fact,
            "change" => Self::Change,
            "request" => Self::Request,
            "question" => Self::Question,
            "approval" => Self::Approval,
            "denial" => Self::Denial,
            "goal_change" => Self::GoalChange,
            "small_talk" => Self::SmallTalk,
            _ => return None,
        })
    }
}

/// The cues that a sentence gives, each with a confidence from 0 to 100.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cues([u8; Cue::ALL.len()]);

impl Cues {
    /// How sure it is that the sentence gives `cue`; 0 if it does not.
    #[must_use]
    pub fn confidence(&self, cue: Cue) -> u8 {
        self.0.get(cue as usize).copied().unwrap_or(0)
    }

    /// Whether the sentence gives `cue` with at least the confidence `at_least`.
    #[must_use]
    pub fn has(&self, cue: Cue, at_least: u8) -> bool {
        self.confidence(cue) >= at_least.max(1)
    }

    /// The cues that are given, each with its confidence.
    pub fn iter(&self) -> impl Iterator<Item = (Cue, u8)> + '_ {
        Cue::ALL
            .into_iter()
            .map(|cue| (cue, self.confidence(cue)))
            .filter(|&(_, confidence)| confidence > 0)
    }

    /// The highest confidence among correction, prohibition, preference, fact and change: whether the sentence belongs
    /// in the ledger.
    #[must_use]
    pub fn ledger(&self) -> u8 {
        [
            Cue::Correction,
            Cue::Prohibition,
            Cue::Preference,
            Cue::Fact,
            Cue::Change,
        ]
        .into_iter()
        .map(|cue| self.confidence(cue))
        .max()
        .unwrap_or(0)
    }

    fn raise(&mut self, cue: Cue, confidence: u8) {
        if let Some(value) = self.0.get_mut(cue as usize) {
            *value = (*value).max(confidence);
        }
    }

    fn lower(&mut self, cue: Cue, confidence: u8) {
        if let Some(value) = self.0.get_mut(cue as usize) {
            *value = (*value).min(confidence);
        }
    }

    fn scale(&mut self, percent: u16) {
        for value in &mut self.0 {
            *value = u8::try_from(u16::from(*value) * percent / 100).unwrap_or(u8::MAX);
        }
    }
}

/// What precedes a user message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// The person had just stopped the model or refused a tool call (see [`interruption`](super::interruption)).
    pub after_interruption: bool,
    /// It is the first message of the conversation: there is nothing yet to correct.
    pub is_first: bool,
    /// The language of the conversation, where it is known: it decides for messages that are too short to tell.
    pub language: Option<&'static str>,
}

/// A sentence of a user message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence<'a> {
    /// Its text, without list marks and white space around it. A pasted or injected stretch is one "sentence" whole.
    pub text: &'a str,
    /// Where it is in the message, in bytes.
    pub range: Range<usize>,
    /// Whose words they are. Only the person's words and lines of one shape give cues, the latter no corrections.
    pub voice: Voice,
    /// What it says.
    pub cues: Cues,
}

/// The sentences of a message that came in the user's name, in order, with what each of them says.
pub fn user_sentences(text: &str, circumstances: Circumstances) -> Vec<Sentence<'_>> {
    let mut out = Vec::new();
    let stretches = stretches(text);
    let own: String = stretches
        .iter()
        .filter(|(_, voice)| *voice == Voice::Person)
        .filter_map(|(range, _)| text.get(range.clone()))
        .take(20)
        .collect();
    let fallback = rules::guess(&own, circumstances.language);
    let mut is_first_sentence = true;
    let mut was_pushback = false;
    for (range, voice) in stretches {
        let Some(stretch) = text.get(range.clone()) else {
            continue;
        };
        let is_read = matches!(voice, Voice::Person | Voice::Pasted(PastedKind::Lines));
        if !is_read {
            let trimmed = stretch.trim();
            if !trimmed.is_empty() {
                let start = range.start + (stretch.len() - stretch.trim_start().len());
                out.push(Sentence {
                    text: trimmed,
                    range: start..start + trimmed.len(),
                    voice,
                    cues: Cues::default(),
                });
            }
            continue;
        }
        let mut labelled_line = None;
        for inner in sentences(stretch) {
            let Some(sentence) = stretch.get(inner.clone()) else {
                continue;
            };
            let mut cues = cues_of(sentence, fallback);
            // "RULE: ...": what the person labels they mean to last, up to the end of the line.
            if label_end(sentence) > 0 {
                labelled_line = Some(inner.start);
            }
            if let Some(start) = labelled_line
                && !stretch[start..inner.start].contains('\n')
                && !cues.has(Cue::Question, 90)
            {
                cues.raise(Cue::Fact, LABELLED);
            }
            if voice != Voice::Person {
                if voice == Voice::Pasted(PastedKind::Lines) {
                    // Such lines may give rules and facts, but they correct nothing in this conversation.
                    for cue in [Cue::Correction, Cue::Denial, Cue::Change, Cue::GoalChange] {
                        cues.lower(cue, 0);
                    }
                }
                cues.scale(60);
            } else if circumstances.after_interruption && !cues.has(Cue::SmallTalk, 80) {
                let is_assent = cues.has(Cue::Approval, 80);
                cues.raise(
                    Cue::Correction,
                    if is_first_sentence && !is_assent {
                        75
                    } else {
                        55
                    },
                );
            }
            // "That's wrong. It takes two weeks.": what follows a bare objection says what is right.
            if was_pushback
                && voice != Voice::Pasted(PastedKind::Lines)
                && cues.confidence(Cue::Question) < 80
                && !cues.has(Cue::SmallTalk, 50)
            {
                cues.raise(Cue::Correction, 70);
            }
            was_pushback = sentence.chars().count() <= PUSHBACK_CHARACTERS
                && (cues.has(Cue::Correction, 88) || cues.has(Cue::Denial, 88))
                && !cues.has(Cue::Question, 80);
            if circumstances.is_first {
                cues.lower(Cue::Correction, 40);
                cues.lower(Cue::Denial, 0);
            }
            is_first_sentence = false;
            out.push(Sentence {
                text: sentence,
                range: range.start + inner.start..range.start + inner.end,
                voice,
                cues,
            });
        }
    }
    out
}

/// How sure it is that a labelled statement is meant to last.
const LABELLED: u8 = 82;

/// The language of the person's own sentences, where several words speak for it: see [`Circumstances::language`].
#[must_use]
pub fn sure_language(sentences: &[Sentence<'_>]) -> Option<&'static str> {
    const ENOUGH: usize = 8;
    let own: Vec<&str> = sentences
        .iter()
        .filter(|sentence| sentence.voice == Voice::Person)
        .map(|sentence| sentence.text)
        .take(ENOUGH)
        .collect();
    rules::guess_surely(&own.join("\n"))
}

/// An objection up to this length says only that something is wrong, not what is right.
const PUSHBACK_CHARACTERS: usize = 30;

/// How sure it is that a message gives `cue`: the highest confidence of its sentences.
#[must_use]
pub fn message_confidence(sentences: &[Sentence<'_>], cue: Cue) -> u8 {
    sentences
        .iter()
        .map(|sentence| sentence.cues.confidence(cue))
        .max()
        .unwrap_or(0)
}

/// Whether a message is short and in the person's own words: such a message is best kept whole.
#[must_use]
pub fn is_short_and_human(sentences: &[Sentence<'_>]) -> bool {
    const SHORT_BYTES: usize = 600;
    let own: usize = sentences
        .iter()
        .filter(|s| s.voice == Voice::Person)
        .map(|s| s.text.len())
        .sum();
    let other: usize = sentences
        .iter()
        .filter(|s| matches!(s.voice, Voice::Pasted(_)))
        .map(|s| s.text.len())
        .sum();
    own > 0 && own + other <= SHORT_BYTES && other <= own
}

fn cues_of(sentence: &str, fallback: Option<&'static str>) -> Cues {
    const LONG_BYTES: usize = 600;
    let mut cues = Cues::default();
    for found in rules::matches(sentence, fallback) {
        if let Some(cue) = Cue::from_name(found.kind) {
            cues.raise(cue, found.confidence);
        }
    }
    let last = sentence
        .trim_end_matches(['"', '\'', ')', '”', '*', ' '])
        .chars()
        .next_back();
    let asks = matches!(last, Some('?' | '？' | '؟'));
    if asks {
        cues.raise(Cue::Question, 90);
        // "could you add a test?" asks for work, "is the test flaky?" does not.
        if !cues.has(Cue::Request, 85) {
            cues.lower(Cue::Request, 40);
        }
        cues.lower(Cue::Fact, 40);
        cues.lower(Cue::Preference, 70);
    } else {
        cues.lower(Cue::Question, 70);
    }
    if cues.has(Cue::Request, 85) && cues.confidence(Cue::Question) < 90 {
        cues.lower(Cue::Question, 40);
    }
    if cues.has(Cue::Prohibition, 80) {
        cues.raise(Cue::Correction, cues.confidence(Cue::Prohibition).min(80));
    }
    if cues.has(Cue::Denial, 80) {
        cues.raise(Cue::Correction, 80);
        cues.lower(Cue::Approval, 0);
    }
    if cues.has(Cue::Change, 80) {
        cues.raise(Cue::Correction, 50);
        if !asks {
            cues.raise(Cue::Fact, 55);
        }
    }
    if cues.has(Cue::SmallTalk, 80) {
        for cue in [
            Cue::Request,
            Cue::Fact,
            Cue::Preference,
            Cue::Correction,
            Cue::Question,
        ] {
            cues.lower(cue, 0);
        }
    }
    if sentence.len() > LONG_BYTES {
        cues.scale(80);
    }
    for cue in Cue::ALL {
        if cues.confidence(cue) < 30 {
            cues.lower(cue, 0);
        }
    }
    cues
}
