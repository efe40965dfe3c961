//! The user's messages: requests, and the sentences that become entries of the ledger.

use std::ops::Range;

use throughline_transcript::json::Text;
use throughline_transcript::message::Message;

use super::answers::{self, Answer};
use super::names::Class;
use super::{Extractor, Remark, Statement, fold, keep};
use crate::authors::{self, Before, Writer};
use crate::cues::{self, Circumstances, Claim, Cue, Cues, Sentence, StatementKind, Voice};
use crate::document::Origin;
use crate::notes;

/// Where tools are used, a message up to this size is kept whole in the ledger; bytes.
const SHORT_BYTES_MAX: usize = 240;
/// Sureness from which a sentence of the user can be in the ledger.
const LEDGER_MIN: u8 = 30;
/// Marks before the first word that are kept with it, bytes.
const LEAD_BYTES_MAX: usize = 4;
/// Signs behind the last word that are kept with it, bytes.
const TRAIL_BYTES_MAX: usize = 8;
/// A sentence beyond this length is not looked at for a changed value, bytes.
const CHANGE_BYTES_MAX: usize = 300;
/// How sure it is that a sentence which changes an entry of the ledger is one itself.
const CHANGE: u8 = 60;
/// Earlier entries of the ledger that a new one is compared with.
const COMPARED_MAX: usize = 400;
/// How much surer an earlier sentence may be than the one that replaces it.
const PASSING_MARGIN: u8 = 55;
/// The sureness of a repetition: see [`cues::supersedes`].
const REPETITION: u8 = 100;
/// Minimum sureness at which a later statement replaces an earlier one.
pub(super) const SUPERSEDES_MIN: u8 = 80;

/// What the person asked or said.
pub(super) struct Request {
    pub(super) message: usize,
    pub(super) at_ms: Option<i64>,
    /// White space folded, so that it fits one line.
    pub(super) text: String,
    /// The entries of the ledger that its sentences are.
    pub(super) rules: Range<usize>,
    /// It is short enough to be an entry of the ledger as a whole.
    pub(super) is_short: bool,
    /// Every sentence of it is an entry of the ledger, pleasantries aside.
    pub(super) is_all_rules: bool,
    /// It asks for nothing and says nothing that later steps need.
    pub(super) is_small_talk: bool,
    /// It asks for something or about something.
    pub(super) asks: bool,
    /// The model said or did something after it, before the person spoke again.
    pub(super) is_heard: bool,
    /// What the model said to it; without it the request is open.
    pub(super) answer: Option<Answer>,
}

/// An entry of the ledger: a sentence of the person.
pub(super) struct Rule {
    pub(super) message: usize,
    pub(super) at_ms: Option<i64>,
    pub(super) text: String,
    pub(super) confidence: u8,
    /// What it says, for comparisons with others.
    pub(super) claim: Claim,
    /// It is meant to last and does not only object: an instruction, a preference or a fact.
    pub(super) is_standing: bool,
    /// It answers a question of the model's, and is quoted alone.
    pub(super) is_answer: bool,
    /// The message that says it: index into the requests.
    pub(super) request: usize,
    /// The entry that replaced it: index into the ledger.
    pub(super) superseded_by: Option<usize>,
}

impl Extractor<'_> {
    pub(super) fn user_text(&mut self, message: &Message, text: &Text) {
        let own = text.decode();
        let without = self.without_memories(message, &own);
        let said = self
            .last_said
            .and_then(|number| self.texts.get(number as usize))
            .map(|said| said.text.decode());
        let before = Before {
            has_messages: self.messages > 0,
            has_called: self.last_call.is_some(),
            said: said.as_deref(),
        };
        let pieces = authors::pieces(&without, before);
        drop(said);
        for piece in pieces.iter().filter(|piece| piece.writer == Writer::Tool) {
            self.result_in_text(message, &piece.text);
        }
        let words = authors::words(&pieces);
        let is_silent = pieces.iter().all(|piece| piece.writer == Writer::Tool);
        if words.is_empty() && is_silent && !pieces.is_empty() {
            return;
        }
        if notes::is_note(&own) {
            return;
        }
        self.last_call = None;
        if words.trim().is_empty() {
            // A report that the person stopped something says that, and nothing else.
            if cues::interruption(&own).is_some() {
                self.is_interrupted = true;
                self.waiting.interrupt();
            }
            return;
        }
        if *words == *own {
            self.text(message, Class::User, text);
        } else {
            self.text(message, Class::User, &Text::plain(words.into_owned()));
        }
        let buffer = std::mem::take(&mut self.buffer);
        self.read_request(message, &buffer);
        self.buffer = buffer;
    }

    /// Reads what came in the user's name: their words, or a client's report that they stopped or refused something.
    pub(super) fn read_request(&mut self, message: &Message, text: &str) {
        let circumstances = Circumstances {
            after_interruption: self.is_interrupted,
            is_first: self.requests.is_empty() && self.turns <= 1,
            language: self.language,
        };
        let sentences = cues::user_sentences(text, circumstances);
        self.language = cues::sure_language(&sentences).or(self.language);
        self.is_interrupted = cues::interruption(text).is_some();
        if self.is_interrupted {
            self.waiting.interrupt();
        }
        let mut own = sentences
            .iter()
            .filter(|sentence| sentence.voice != Voice::Injected);
        let Some(first) = own.next() else { return };
        let last = own.next_back().unwrap_or(first);
        // Between the first and the last of the person's words a client may have put something in.
        let mut words = String::new();
        // A list mark or dots before the first word belong to it.
        let lead = text[..first.range.start].trim();
        let mut from = if lead.len() <= LEAD_BYTES_MAX && !lead.contains('\n') {
            0
        } else {
            first.range.start
        };
        for injected in sentences
            .iter()
            .filter(|sentence| sentence.voice == Voice::Injected)
        {
            if injected.range.start >= from && injected.range.end <= last.range.end {
                words.push_str(&text[from..injected.range.start]);
                words.push(' ');
                from = injected.range.end;
            }
        }
        let end = last.range.end.max(from);
        words.push_str(&text[from..end]);
        // So does a sign behind the last one.
        let trail = text[end..].trim_end();
        if trail.len() <= TRAIL_BYTES_MAX && !trail.contains('\n') {
            words.push_str(trail);
        }
        let folded = fold(&words);
        if folded.is_empty() {
            return;
        }
        let was_interrupted = circumstances.after_interruption || self.is_interrupted;
        let continues = was_interrupted && answers::continues(&folded);
        self.settle();
        self.waiting.begin(self.requests.len(), continues);
        self.is_interrupted = false;
        let is_short = folded.len() <= SHORT_BYTES_MAX;
        let mut is_all_rules = true;
        let first_rule = self.ledger.len();
        for sentence in &sentences {
            if sentence.voice == Voice::Injected {
                continue;
            }
            let mut confidence = ledger_confidence(sentence);
            let is_statement = sentence.voice == Voice::Person
                && sentence.text.len() <= CHANGE_BYTES_MAX
                && !sentence.cues.has(Cue::Question, 70);
            if confidence < CHANGE && is_statement && self.changes_ledger(sentence.text) {
                confidence = CHANGE;
            }
            if confidence < LEDGER_MIN {
                is_all_rules &= sentence.cues.has(Cue::SmallTalk, 50);
                let says_nothing = sentence.cues.has(Cue::SmallTalk, 50)
                    || sentence.cues.has(Cue::Question, 70)
                    || sentence.cues.has(Cue::Approval, 80);
                if !says_nothing && sentence.voice == Voice::Person {
                    let said = Remark {
                        message: self.messages,
                        at_ms: message.at_ms,
                        text: fold(sentence.text),
                    };
                    keep(&mut self.remarks, said);
                }
                continue;
            }
            self.rule(Rule {
                message: self.messages,
                at_ms: message.at_ms,
                claim: Claim::of(sentence.text),
                text: fold(sentence.text),
                confidence,
                is_standing: is_standing(&sentence.cues),
                is_answer: false,
                request: self.requests.len(),
                superseded_by: None,
            });
        }
        let asks = sentences.iter().any(|sentence| {
            sentence.cues.has(Cue::Request, 40) || sentence.cues.has(Cue::Question, 50)
        });
        self.requests.push(Request {
            asks,
            is_heard: false,
            answer: None,
            message: self.messages,
            at_ms: message.at_ms,
            text: folded,
            rules: first_rule..self.ledger.len(),
            is_short,
            is_all_rules: is_all_rules && first_rule < self.ledger.len(),
            is_small_talk: sentences.iter().all(|sentence| {
                sentence.cues.has(Cue::SmallTalk, 50) && !sentence.cues.has(Cue::Request, 30)
            }),
        });
    }

    /// Reads a result that a client wrote into the user's message as text.
    fn result_in_text(&mut self, message: &Message, output: &str) {
        let key = self.last_call.clone().unwrap_or_default();
        let source = self.source(&key);
        let number = self.text(message, Class::Result, &Text::plain(output.to_owned()));
        self.texts[number as usize].source = source;
        let buffer = std::mem::take(&mut self.buffer);
        self.read_output(message, &buffer, &key, None);
        self.buffer = buffer;
    }

    /// Reads what the person answered to a question of the model's: a decision of theirs, and an entry of the ledger
    /// where it rules something.
    pub(super) fn answer(&mut self, message: &Message, question: &str, answer: &str) {
        let text = format!("{question} {answer}");
        self.text(message, Class::User, &Text::plain(text));
        let question = fold(&self.without_secrets(question));
        let answer = fold(&self.without_secrets(answer));
        let claim = match question.is_empty() {
            true => answer.clone(),
            false => format!("{question} → {answer}"),
        };
        keep(
            &mut self.statements,
            Statement {
                kind: StatementKind::Decision,
                origin: Origin::User,
                message: self.messages,
                at_ms: message.at_ms,
                text: claim.clone(),
                claim,
                reason: None,
                constraint: None,
                confidence: 100,
            },
        );
        let confidence = cues::user_sentences(&answer, Circumstances::default())
            .iter()
            .filter(|sentence| sentence.voice == Voice::Person)
            .map(ledger_confidence)
            .max()
            .unwrap_or(0);
        let Some(request) = self.requests.len().checked_sub(1) else {
            return;
        };
        if confidence >= LEDGER_MIN {
            self.rule(Rule {
                message: self.messages,
                at_ms: message.at_ms,
                claim: Claim::of(&answer),
                text: answer,
                confidence,
                is_standing: true,
                is_answer: true,
                request,
                superseded_by: None,
            });
        }
    }

    /// Whether a sentence, however it is worded, gives another value to what the ledger says.
    fn changes_ledger(&self, sentence: &str) -> bool {
        let claim = Claim::of(sentence);
        let mut holding = self
            .ledger
            .iter()
            .rev()
            .take(COMPARED_MAX)
            .filter(|earlier| earlier.superseded_by.is_none() && earlier.message != self.messages);
        holding.any(|earlier| {
            claim
                .supersedes(&earlier.claim)
                .is_some_and(|sure| (SUPERSEDES_MIN..REPETITION).contains(&sure))
        })
    }

    fn rule(&mut self, rule: Rule) {
        let new = self.ledger.len();
        // A remark in passing does not replace a sure statement, and statements of one message do not replace each other.
        let comparable = self.ledger.iter_mut().rev().filter(|earlier| {
            earlier.superseded_by.is_none()
                && earlier.message != rule.message
                && earlier.confidence <= rule.confidence.saturating_add(PASSING_MARGIN)
        });
        for earlier in comparable.take(COMPARED_MAX) {
            let sure = rule.claim.supersedes(&earlier.claim);
            if sure.is_some_and(|sure| sure >= SUPERSEDES_MIN) {
                earlier.superseded_by = Some(new);
            }
        }
        self.ledger.push(rule);
    }
}

/// How sure it is that a sentence belongs in the ledger. A question does only where it pushes back.
fn ledger_confidence(sentence: &Sentence<'_>) -> u8 {
    const REMEMBERED: u8 = 60;
    const PUSHES_BACK: u8 = 60;
    let cues = &sentence.cues;
    if sentence.voice == Voice::Person && cues::asks_to_remember(sentence.text) {
        return cues.ledger().max(REMEMBERED);
    }
    let pushes_back = [Cue::Correction, Cue::Prohibition, Cue::Change]
        .into_iter()
        .any(|cue| cues.has(cue, PUSHES_BACK));
    if cues.has(Cue::Question, 90) && !pushes_back {
        return 0;
    }
    cues.ledger()
}

/// Whether a sentence says something that is meant to last.
fn is_standing(cues: &Cues) -> bool {
    const SURE: u8 = 80;
    [Cue::Prohibition, Cue::Preference, Cue::Fact, Cue::Change]
        .into_iter()
        .any(|cue| cues.has(cue, SURE))
}
