//! The requests of the person: which are open, and what the others were answered with.

use std::borrow::Cow;
use std::cmp::Reverse;

use super::Packer;
use crate::cues;
use crate::document::{Entry, Origin, Provenance, Status};
use crate::extract::answers::{self, Answer};
use crate::extract::excerpt::Part;
use crate::extract::names::Class;
use crate::extract::person::Request;
use crate::extract::{antecedent, fold};
use crate::verify::IN_REPLY_TO;

/// A reply up to this many characters can mean nothing without what it replies to.
const REPLY_CHARACTERS_MAX: usize = 120;
/// Sentences that are looked through for what a sentence refers to.
const SENTENCES_BACK_MAX: usize = 2;
/// Of what a sentence refers to this much is quoted, characters.
const CONTEXT_CHARACTERS: usize = 160;

impl Packer<'_> {
    /// Whether this is the latest request and nothing has answered it.
    pub(super) fn is_open_latest(&self, request: usize) -> bool {
        request + 1 == self.extractor.requests.len() && self.answer(request).is_none()
    }

    /// The request that is being worked on: whatever else has room, it has.
    pub(super) fn latest_request(&mut self) {
        let Some(latest) = self.extractor.requests.len().checked_sub(1) else {
            return;
        };
        if self.is_open_latest(latest) {
            let mut share = self.left;
            self.request(latest, &mut share);
        }
    }

    /// What the person asked for: the latest, the first, then from the newest to the oldest.
    pub(super) fn requests(&mut self, share: usize) {
        self.requests_with_remarks(share, !self.is_small());
    }

    /// The requests, and what only told something, where it is wanted.
    fn requests_with_remarks(&mut self, mut share: usize, has_remarks: bool) {
        let requests = &self.extractor.requests;
        let Some(latest) = requests.len().checked_sub(1) else {
            return;
        };
        let mut order: Vec<usize> = std::iter::once(latest)
            .chain((0..latest.min(1)).chain((1..latest).rev()))
            .collect();
        if !self.focus.is_empty() {
            // The latest stays in front; of the others those about the focus come first.
            order[1..].sort_by_key(|index| Reverse(self.focus_in(&requests[*index].text) as u32));
        }
        for index in order {
            let request: &Request = &requests[index];
            let mut rules = self.extractor.ledger[request.rules.clone()].iter();
            let is_rule = if self.is_chat() {
                request.is_all_rules
            } else {
                request.is_short && rules.any(|rule| self.is_in_ledger(rule))
            };
            let is_answered = self.answer(index).is_some();
            // A rule asks for nothing: the ledger has it once the model knows it.
            let is_settled = is_answered || request.is_heard && !request.asks;
            // What only tells something is a remark: there is room for it later.
            let is_remark = self.is_chat() && !request.asks && is_answered;
            let is_left_out = request.is_small_talk || is_rule && is_settled && index > 0;
            if index != latest && is_left_out || is_remark && !has_remarks {
                continue;
            }
            self.request(index, &mut share);
        }
    }

    /// What the person only told, in the room that a small memory has left.
    pub(super) fn late_remarks(&mut self) {
        if self.is_small() && self.is_chat() {
            self.requests_with_remarks(self.left, true);
        }
    }

    fn request(&mut self, index: usize, share: &mut usize) {
        let requests = &self.extractor.requests;
        let request = &requests[index];
        let is_end = index + 1 == requests.len() || index == 0;
        let text = self.without_superseded(request);
        let limit = self.limit.tokens;
        let text = if is_end {
            let least = (limit / 6).clamp(40, 160);
            self.quote(&text, (limit * 3 / 40).clamp(least, 1_500), Part::Ends)
        } else {
            let least = (limit / 10).clamp(30, 70);
            self.quote(&text, (limit / 30).clamp(least, 400), Part::Head)
        };
        let text = self.with_offer(index, &text);
        let provenance = Provenance {
            message: request.message,
            at_ms: request.at_ms,
        };
        let answer = self.answer(index);
        let status = answer.as_ref().map_or(Status::Active, Answer::status);
        let answer = answer.filter(|_| self.is_chat()).and_then(|answer| {
            let characters = (limit / 8).clamp(120, 600);
            self.answer_text(index, &answer, characters)
        });
        self.add_with(
            Entry::Task { text, answer },
            Origin::User,
            provenance,
            status,
            share,
        );
    }

    /// What has answered a request.
    pub(super) fn answer(&self, request: usize) -> Option<Answer> {
        if let Some(answer) = &self.extractor.requests[request].answer {
            return Some(answer.clone());
        }
        let (answer, answered) = self.last_answer.as_ref()?;
        answered.contains(&request).then(|| answer.clone())
    }

    /// The answer in about so many characters. The last one is quoted with the state, where there is room for it.
    fn answer_text(&self, request: usize, answer: &Answer, characters: usize) -> Option<String> {
        let is_last =
            self.extractor.is_waiting && answer.texts.last() == self.extractor.last_said.as_ref();
        if is_last && !self.is_small() {
            return None;
        }
        let said = self.extractor.said(&answer.texts);
        if answers::is_acknowledgement(&said) {
            return None;
        }
        let message = self.extractor.requests[request].message;
        let brief = answers::brief(&answers::pieces(&said), characters)?;
        (!self.is_stale(&brief, message)).then_some(brief)
    }

    /// Gives the requests in the memory the answers that they still lack, the newest first.
    pub(super) fn answers(&mut self) {
        let share = self.share(5);
        let characters = (self.limit.tokens / 16).clamp(120, 600);
        self.longer_answers(share, characters);
    }

    /// Puts up to `characters` of each answer into the memory, as long as `share` lasts.
    pub(super) fn longer_answers(&mut self, mut share: usize, characters: usize) {
        let requests = &self.extractor.requests;
        for index in (0..requests.len()).rev() {
            let Some(place) = self.items.iter().position(|item| {
                matches!(item.entry, Entry::Task { .. })
                    && item.provenance.message == requests[index].message
            }) else {
                continue;
            };
            let Some(answer) = self.answer(index) else {
                continue;
            };
            let Some(longer) = self.answer_text(index, &answer, characters) else {
                continue;
            };
            let Entry::Task { answer, .. } = &self.items[place].entry else {
                continue;
            };
            let before = answer.as_deref().map_or(0, |answer| self.cost(answer));
            let cost = self.cost(&longer).saturating_sub(before) + usize::from(before == 0) * 2;
            let is_longer = answer
                .as_ref()
                .is_none_or(|answer| answer.len() < longer.len());
            if !is_longer || cost > share || cost > self.left {
                continue;
            }
            self.cover(&self.names_in(&longer));
            self.spend(cost);
            share -= cost;
            if let Entry::Task { answer, .. } = &mut self.items[place].entry {
                *answer = Some(longer);
            }
        }
    }

    /// The message without the sentences that no longer hold: quoted, they would look as if they did.
    fn without_superseded<'r>(&self, request: &'r Request) -> Cow<'r, str> {
        let mut text = Cow::Borrowed(request.text.as_str());
        for rule in &self.extractor.ledger[request.rules.clone()] {
            if rule.superseded_by.is_some() {
                text = Cow::Owned(text.replace(&rule.text, "…"));
            }
        }
        text
    }

    /// A short reply with the option that it chooses, or the question that it agrees to.
    fn with_offer(&self, index: usize, text: &str) -> String {
        let request = &self.extractor.requests[index];
        if text != request.text || text.chars().count() > REPLY_CHARACTERS_MAX {
            return text.to_owned();
        }
        let Some(said) = self.said_before(request.message) else {
            return text.to_owned();
        };
        let offer = antecedent::chosen(text, &said).or_else(|| {
            let question = answers::last_question(&said)?;
            answers::is_assent(text).then_some(question)
        });
        offer.map_or_else(|| text.to_owned(), |offer| in_reply(text, &offer))
    }

    /// A rule with what it refers to, where it says nothing without it: the sentence before it, or what was said before
    /// the message.
    pub(super) fn in_context(&self, index: usize, words: &str) -> String {
        let request = &self.extractor.requests[index];
        let first = cues::sentences(words)
            .first()
            .map_or("", |range| &words[range.clone()]);
        if !antecedent::refers_back(first) {
            return self.with_offer(index, words);
        }
        let at = request.text.find(words).unwrap_or(0);
        let mut start = at;
        // "That came out in August." refers to the sentence before it in turn.
        for _ in 0..SENTENCES_BACK_MAX {
            let before = cues::sentences(&request.text[..start]);
            let Some(range) = before.last() else { break };
            start = range.start;
            if !antecedent::refers_back(&request.text[range.clone()]) {
                break;
            }
        }
        if start < at {
            return request.text[start..at + words.len()].to_owned();
        }
        let Some(said) = self.said_before(request.message) else {
            return words.to_owned();
        };
        if let Some(option) = antecedent::chosen(words, &said) {
            return in_reply(words, &option);
        }
        // What the person had just said, and the model only took note of.
        if answers::is_acknowledgement(&said)
            && let Some(before) = index
                .checked_sub(1)
                .map(|before| &self.extractor.requests[before])
            && let Some(range) = cues::sentences(&before.text).pop()
        {
            return format!("{} … {words}", &before.text[range]);
        }
        match answers::brief(&answers::pieces(&said), CONTEXT_CHARACTERS) {
            Some(said) => in_reply(words, &said),
            None => words.to_owned(),
        }
    }

    /// What the model said last before a message.
    fn said_before(&self, message: usize) -> Option<String> {
        const TEXTS_MAX: usize = 40;
        let texts = &self.extractor.texts;
        let end = texts.partition_point(|text| text.message < message);
        texts[..end]
            .iter()
            .rev()
            .take(TEXTS_MAX)
            .find(|text| text.class == Class::Assistant)
            .map(|text| text.text.decode().into_owned())
    }
}

/// The words, with what they reply to.
fn in_reply(words: &str, said: &str) -> String {
    let said = fold(&said.replace(['[', ']'], ""));
    let said = crate::extract::excerpt::excerpt(&said, CONTEXT_CHARACTERS);
    format!("{words}{IN_REPLY_TO}{said}]")
}
