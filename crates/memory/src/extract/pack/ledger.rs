//! The ledger: what the person put right, forbade, prefers or said about their world.

use std::cmp::Reverse;

use super::Packer;
use crate::cues;
use crate::document::{Entry, Item, Origin, Provenance, Section, Status};
use crate::extract::excerpt::Part;
use crate::extract::{LEDGER_AT_WORK_MIN, Rule};

/// Minimum sureness of an explicit statement.
const EXPLICIT_MIN: u8 = 70;
/// Tokens of a limit below which it has no room for what no longer holds.
const LIMIT_WITH_HISTORY_MIN: usize = 1_000;

/// Whether entries of the ledger still hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Yes,
    NoLonger,
}

impl Packer<'_> {
    /// Adds the entries of the ledger that hold, or those that no longer do.
    ///
    /// Where tools are used, a short message is quoted whole: there most messages are instructions for the work, and
    /// the words around a rule belong to it. In a chat it is quoted whole where a label holds it together.
    pub(super) fn ledger(&mut self, holds: Holds) {
        let mut share = match holds {
            Holds::Yes if self.is_small() && self.is_chat() => self.left,
            Holds::Yes if self.is_chat() => self.share(60),
            Holds::Yes => self.share(30),
            Holds::NoLonger if self.limit.tokens < LIMIT_WITH_HISTORY_MIN => return,
            Holds::NoLonger => self.share(8),
        };
        let extractor = self.extractor;
        let ledger = &extractor.ledger;
        let mut replaces = vec![false; ledger.len()];
        for earlier in ledger {
            if let Some(later) = earlier.superseded_by {
                replaces[later] |= !earlier.text.eq_ignore_ascii_case(&ledger[later].text);
            }
        }
        let order: Vec<usize> = (0..ledger.len())
            .filter(|rule| ledger[*rule].superseded_by.is_none() == (holds == Holds::Yes))
            .filter(|rule| self.is_in_ledger(&ledger[*rule]))
            .collect();
        let mut ranked: Vec<(usize, String, _)> = order
            .into_iter()
            .map(|index| {
                let rule = &ledger[index];
                let text = self.rule_text(index);
                // Where there is little room, many short entries say more than a few long ones.
                let cost = if self.is_small() {
                    self.cost(&text) / 4
                } else {
                    0
                };
                let rank = (
                    Reverse(self.focus_in(&rule.text) as u32),
                    Reverse(cues::asks_to_remember(&rule.text)),
                    Reverse(self.is_chat() && replaces[index]),
                    Reverse(self.is_chat() && rule.is_standing),
                    (cost, Reverse(rule.confidence / 25), Reverse(rule.message)),
                );
                (index, text, rank)
            })
            .collect();
        ranked.sort_by_key(|(_, _, rank)| *rank);
        for (index, text, _) in ranked {
            let rule = &ledger[index];
            let status = match rule.superseded_by {
                None => Status::Active,
                Some(later) => {
                    let message = ledger[later].message;
                    let id = Item::id_for(Section::Corrections, message, &self.rule_text(later));
                    Status::SupersededBy(id)
                }
            };
            let provenance = Provenance {
                message: rule.message,
                at_ms: rule.at_ms,
            };
            self.add_with(
                Entry::Correction { text },
                Origin::User,
                provenance,
                status,
                &mut share,
            );
        }
    }

    pub(super) fn is_in_ledger(&self, rule: &Rule) -> bool {
        // The first message is quoted as the goal: only what it rules explicitly is repeated.
        let least = if rule.request == 0 && !rule.is_answer {
            EXPLICIT_MIN
        } else {
            LEDGER_AT_WORK_MIN
        };
        self.is_chat() || rule.confidence >= least
    }

    /// An entry of the ledger as it is quoted: with what it refers to, and cut around its point where it is too long.
    fn rule_text(&self, index: usize) -> String {
        let extractor = self.extractor;
        let rule = &extractor.ledger[index];
        let request = &extractor.requests[rule.request];
        let holds = extractor.ledger[request.rules.clone()]
            .iter()
            .all(|rule| rule.superseded_by.is_none());
        let is_whole = !rule.is_answer
            && request.is_short
            && holds
            && if self.is_chat() {
                request.is_all_rules && cues::is_labelled(&request.text)
            } else {
                // The first message is quoted among the requests in any case: it is the goal. So is the open one.
                rule.request > 0 && !self.is_open_latest(rule.request)
            };
        let text = if rule.is_answer {
            rule.text.clone()
        } else if is_whole {
            self.in_context(rule.request, &request.text)
        } else {
            self.in_context(rule.request, &rule.text)
        };
        // The heading says as much as a label, where every token counts.
        let text = if self.is_small() {
            cues::without_label(&text).to_owned()
        } else {
            text
        };
        let least = (self.limit.tokens / 8).clamp(40, 75);
        let tokens = (self.limit.tokens / 20).clamp(least, 400);
        let point = cues::point(&rule.text).map_or(0, |at| text.find(&rule.text).unwrap_or(0) + at);
        self.quote(&text, tokens, Part::Around(point))
    }
}
