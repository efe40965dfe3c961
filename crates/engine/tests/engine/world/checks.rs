//! Performs the outputs of the engine, and checks each.

use std::sync::Arc;

use throughline_engine::{
    BuildOrder, DueReason, Engine, EngineEvent, Input, MemoryAdoption, Output, Plan, Time,
};
use throughline_memory::document::Memory;
use throughline_transcript::check::{CheckOptions, check_text};
use throughline_transcript::digest::prefix_digests;
use throughline_transcript::json::Raw;
use throughline_transcript::message::Role;
use throughline_transcript::request::{Marks, message, without_thinking};

use super::{Sent, World, open_calls, stored};

impl World {
    pub(super) fn take(&mut self, output: Output) {
        match output {
            Output::Draft(order) => {
                self.check_order(&order);
                self.draft_orders.push(order.clone());
                self.drafts.push_back(order);
            }
            Output::Update(order) => {
                self.check_order(&order.order);
                assert_eq!(order.draft.cover.messages, order.order.cover());
                assert!(!order.order.messages.is_empty() || order.order.prior.is_some());
                self.check_live(&order.live);
                self.update_orders.push(order.clone());
                self.updates.push((self.now + self.latency_ms, order));
            }
            Output::CancelUpdate(ticket) => {
                self.cancelled.push(ticket);
                if !self.is_rude {
                    self.updates
                        .retain(|(_, order)| order.order.ticket != ticket);
                }
            }
            Output::Request(plan) => {
                self.wait_until = None;
                self.send(plan);
            }
            Output::Wait { waited, at_most_ms } => {
                assert!(at_most_ms > 0);
                self.waits.push(waited.kind);
                self.wait_until = Some(self.now + at_most_ms as i64);
            }
            Output::Keep(version) => {
                let digest = prefix_digests(&self.archive)[version.cover() - 1];
                assert_eq!(version.memory.cover.digest, digest);
                let number = version.memory.version;
                assert!(self.kept.keys().all(|kept| *kept < number));
                assert_eq!(*version, stored(&version, &self.settings));
                self.kept.insert(number, version);
            }
            Output::Adopt(adoption) => self.adopt(adoption),
            Output::Reload { messages } => self.reload(messages),
            Output::Event(event) => {
                if let EngineEvent::Compaction { id, outcome } = &event {
                    self.outcomes.entry(*id).or_default().push(outcome.clone());
                }
                if let EngineEvent::Swapped {
                    reason,
                    tokens_before,
                    tokens_after,
                    ..
                } = &event
                    && *reason != DueReason::Given
                {
                    assert!(tokens_after < tokens_before, "{event:?}");
                }
                self.events.push(event);
            }
        }
    }

    fn check_order(&self, order: &BuildOrder) {
        assert_eq!(order.messages[..], self.archive[order.first..order.cover()]);
        let prior = order.prior.as_ref().map_or(0, |prior| prior.cover());
        assert_eq!(order.first, prior);
    }

    fn adopt(&mut self, adoption: MemoryAdoption) {
        assert!(adoption.epoch >= self.last_epoch, "epochs only rise");
        if let Some(before) = &self.adoption
            && before.epoch == adoption.epoch
        {
            let at_messages = adoption.at_messages;
            let as_before = MemoryAdoption {
                at_messages,
                ..before.clone()
            };
            assert_eq!(adoption, as_before, "another memory is another epoch");
        }
        self.last_epoch = adoption.epoch;
        let before = self
            .adoption
            .as_ref()
            .and_then(|before| before.version)
            .and_then(|number| self.kept.get(&number))
            .cloned();
        if let Some(number) = adoption.version {
            let version = &self.kept[&number];
            assert_eq!(version.cover(), adoption.cover);
            let is_further = before
                .as_ref()
                .is_some_and(|before| before.cover() < adoption.cover);
            if let Some(before) = before.filter(|_| is_further) {
                self.check_ledger(&before.memory, &version.memory);
            }
            if is_further {
                for pin in &self.pins {
                    let pins = &version.memory.items;
                    assert!(
                        pins.iter().any(|item| item.entry.text() == pin.text),
                        "{pin:?}"
                    );
                }
            }
        }
        self.adoption = Some(adoption);
    }

    /// The ledger stays, except for pins that were removed.
    fn check_ledger(&self, before: &Memory, after: &Memory) {
        for item in &before.items {
            if !item.entry.section().is_ledger() || item.id.starts_with("pin-") {
                continue;
            }
            assert!(
                after
                    .items
                    .iter()
                    .any(|other| other.id == item.id || other.entry == item.entry),
                "lost: {item:?}\n{:#?}",
                after
                    .items
                    .iter()
                    .filter(|item| item.entry.section().is_ledger())
                    .map(|item| (&item.id, item.entry.text(), &item.status))
                    .collect::<Vec<_>>()
            );
        }
    }

    fn reload(&mut self, messages: usize) {
        assert!(messages < self.engine.status().cover);
        let digests = prefix_digests(&self.archive);
        self.kept.retain(|_, version| {
            version.cover() <= messages
                && version.memory.cover.digest == digests[version.cover() - 1]
        });
        let newest = self.kept.values().next_back().cloned();
        let epoch = self.last_epoch + 1;
        self.adoption = Some(MemoryAdoption {
            epoch,
            version: newest.as_ref().map(|newest| newest.memory.version),
            cover: newest.as_ref().map_or(0, |newest| newest.cover()),
            at_messages: messages,
            quoted: None,
        });
        self.last_epoch = epoch;
        self.engine = Engine::restore(self.settings.clone(), self.snapshot());
        self.drafts.clear();
        self.updates.clear();
        self.wait_until = None;
        let (tokens, bytes) = self.overhead;
        self.engine
            .handle(Time::from_ms(self.now), Input::Overhead { tokens, bytes });
    }

    /// The messages of a plan as they go out.
    pub(crate) fn messages_of(&self, plan: &Plan) -> Vec<Raw> {
        (plan.first..plan.end)
            .filter_map(|index| {
                let raw = self.archive[index].raw.clone().unwrap();
                if index < plan.thinking_from {
                    without_thinking(&raw)
                } else {
                    Some(raw)
                }
            })
            .collect()
    }

    fn compose(&self, plan: &Plan) -> String {
        let messages = self.messages_of(plan);
        self.frame
            .compose(plan.memory.as_deref(), &messages, Marks::default())
    }

    /// An update may put its instruction behind the request.
    fn check_live(&self, plan: &Plan) {
        let mut messages = self.messages_of(plan);
        messages.push(message::user(self.wire(), "Write the memory."));
        let body = self
            .frame
            .compose(plan.memory.as_deref(), &messages, Marks::default());
        self.check_wire(&body);
    }

    fn check_wire(&self, body: &str) {
        let report = check_text(body, self.wire(), &CheckOptions::default());
        let errors: Vec<_> = report.errors().collect();
        assert!(errors.is_empty(), "{errors:#?}\n{}", head(body));
    }

    fn send(&mut self, plan: Plan) {
        assert_eq!(plan.end, self.archive.len());
        assert_eq!(plan.epoch, self.last_epoch);
        let adopted = self
            .adoption
            .as_ref()
            .and_then(|adoption| adoption.version)
            .map(|number| Arc::clone(&self.kept[&number]));
        assert_eq!(
            plan.first,
            adopted.as_ref().map_or(0, |adopted| adopted.cover())
        );
        match (&adopted, &plan.memory) {
            (None, None) => {}
            (Some(adopted), Some(memory)) => assert!(memory.starts_with(&adopted.text)),
            other => panic!("{other:?}"),
        }
        let body = self.compose(&plan);
        if self.is_sendable() && !self.is_broken {
            self.check_wire(&body);
        }
        let open = body.strip_suffix("]}").unwrap().to_owned();
        let begins = (plan.epoch, plan.thinking_from);
        if let Some((as_before, last)) = &self.last_body
            && *as_before == begins
        {
            assert!(open.starts_with(last.as_str()), "the prefix has changed");
        }
        self.last_body = Some((begins, open));
        let counter = self.settings.counter;
        let own = self.overhead.0
            + plan
                .memory
                .as_ref()
                .map_or(0, |memory| counter.text(memory) as u64)
            + self.archive[plan.first..]
                .iter()
                .map(|message| counter.message(message) as u64)
                .sum::<u64>();
        self.sent.push(Sent {
            plan,
            body,
            tokens: own * self.factor / 1000,
        });
    }

    /// Whether a model may be asked to continue from here.
    fn is_sendable(&self) -> bool {
        self.archive
            .last()
            .is_some_and(|last| matches!(last.role, Role::User | Role::Tool))
            && open_calls(&self.archive) == 0
    }
}

fn head(text: &str) -> &str {
    let end = text.floor_char_boundary(2_000.min(text.len()));
    &text[..end]
}
