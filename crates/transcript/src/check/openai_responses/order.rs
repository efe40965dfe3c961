//! How input items relate: calls to outputs, reasoning to the item after it, the trigger at the end.

use std::collections::{HashMap, HashSet};

use crate::json::Raw;

use super::super::checker::{Checker, Quote};
use super::super::path::Path;
use super::super::rule::{self, Rule, Severity};
use super::Request;
use super::items::{self, Item, Pair};

pub(crate) fn check(input: &Raw, request: &Request, path: &Path<'_>, checker: &mut Checker<'_>) {
    let mut order = Order {
        request,
        calls: HashMap::new(),
        call_order: Vec::new(),
        early: Vec::new(),
        ids: HashSet::new(),
        reasoning: None,
        trigger: None,
        has_reference: false,
    };
    for (index, item) in input.array().enumerate() {
        order.item(&item, index, path, checker);
    }
    order.finish(path, checker);
}

struct Order<'r> {
    request: &'r Request,
    calls: HashMap<String, Call>,
    call_order: Vec<String>,
    /// Outputs whose call has not been seen: id, index of the item.
    early: Vec<(String, usize)>,
    ids: HashSet<String>,
    /// A reasoning item whose own item has not come yet.
    reasoning: Option<Reasoning>,
    trigger: Option<usize>,
    has_reference: bool,
}

struct Call {
    pair: Pair,
    index: usize,
    is_answered: bool,
}

#[derive(Clone, Copy)]
struct Reasoning {
    index: usize,
    /// The server knows the item by its id and holds the request to it.
    is_stored: bool,
}

impl Order<'_> {
    fn item(&mut self, raw: &Raw, index: usize, path: &Path<'_>, checker: &mut Checker<'_>) {
        let path = path.index(index);
        let Some(object) = checker.object(raw, path) else {
            return;
        };
        if let Some(trigger) = self.trigger.take() {
            report_trigger(trigger, checker);
        }
        let item = items::check(&object, &path, checker);
        let id = object.string("id");
        if let Some(id) = &id
            && !matches!(item, Item::Reference | Item::Output(_))
            && !self.ids.insert(id.clone())
        {
            checker.add(
                &rule::RESPONSES_DUPLICATE_ITEM,
                path.key("id"),
                format_args!("an earlier item has the id {} too: send it once", Quote(id)),
            );
        }
        self.follow_reasoning(item, checker);
        match item {
            Item::Reasoning => {
                let is_encrypted = object.has("encrypted_content");
                if self.request.is_stateless && !is_encrypted {
                    checker.add(
                        &rule::REASONING_NOT_STORED,
                        path,
                        "with `store: false` the server does not know this reasoning: send it with encrypted_content or leave it out",
                    );
                }
                self.reasoning = Some(Reasoning {
                    index,
                    is_stored: id.is_some() && !self.request.is_stateless,
                });
            }
            Item::Call(pair) => {
                if let Some(id) = call_id(&object, pair, &path, checker) {
                    self.call(id, pair, index, &path, checker);
                }
            }
            Item::Output(pair) => {
                if let Some(id) = call_id(&object, pair, &path, checker) {
                    self.output(id, pair, index, &path, checker);
                }
            }
            Item::CompactionTrigger => self.trigger = Some(index),
            Item::Reference => {
                self.has_reference = true;
                if self.request.is_stateless {
                    checker.add(
                        &rule::REFERENCE_NOT_STORED,
                        path,
                        "with `store: false` there is nothing on the server to refer to: send the item itself",
                    );
                }
            }
            Item::ModelMessage | Item::OtherMessage | Item::Other => {}
        }
    }

    /// Reasoning must be followed by what the model made of it.
    fn follow_reasoning(&mut self, item: Item, checker: &mut Checker<'_>) {
        match item {
            Item::Reasoning => {}
            Item::OtherMessage | Item::Output(_) | Item::CompactionTrigger => {
                self.report_reasoning(checker);
            }
            _ => self.reasoning = None,
        }
    }

    fn report_reasoning(&mut self, checker: &mut Checker<'_>) {
        let Some(reasoning) = self.reasoning.take() else {
            return;
        };
        // Of reasoning that is sent in full, a server cannot know what followed.
        let severity = if reasoning.is_stored {
            Severity::Error
        } else {
            Severity::Warning
        };
        let root = Path::Root;
        checker.add_as(
            severity,
            &rule::REASONING_WITHOUT_ITEM,
            root.key("input").index(reasoning.index),
            "a reasoning item must be followed by the message or call that it led to: restore that or remove the reasoning",
        );
    }

    fn call(
        &mut self,
        id: String,
        pair: Pair,
        index: usize,
        path: &Path<'_>,
        checker: &mut Checker<'_>,
    ) {
        if self.calls.contains_key(&id) {
            checker.add(
                &rule::RESPONSES_DUPLICATE_USE,
                path.key("call_id"),
                format_args!(
                    "an earlier call has the call_id {} too: give each its own",
                    Quote(&id)
                ),
            );
            return;
        }
        self.call_order.push(id.clone());
        let call = Call {
            pair,
            index,
            is_answered: false,
        };
        self.calls.insert(id, call);
    }

    fn output(
        &mut self,
        id: String,
        pair: Pair,
        index: usize,
        path: &Path<'_>,
        checker: &mut Checker<'_>,
    ) {
        let Some(call) = self.calls.get_mut(&id) else {
            self.early.push((id, index));
            return;
        };
        if call.is_answered {
            checker.add(
                &rule::RESPONSES_DUPLICATE_RESULT,
                path.key("call_id"),
                format_args!("the call {} has an output already: keep one", Quote(&id)),
            );
        } else if call.pair != pair {
            checker.add(
                &rule::RESPONSES_RESULT_KIND,
                path.key("type"),
                format_args!(
                    "the call {} is of another kind than this output: use the output type of the call",
                    Quote(&id)
                ),
            );
        }
        call.is_answered = true;
    }

    fn finish(mut self, path: &Path<'_>, checker: &mut Checker<'_>) {
        self.report_reasoning(checker);
        let answered_early: HashSet<&str> = self.early.iter().map(|(id, _)| id.as_str()).collect();
        for (id, index) in &self.early {
            let path = path.index(*index);
            if self.calls.contains_key(id) {
                checker.add(
                    &rule::RESPONSES_RESULT_EARLY,
                    path.key("call_id"),
                    format_args!(
                        "the output of {} comes before its call: move it after the call",
                        Quote(id)
                    ),
                );
            } else if !self.request.continues && !self.has_reference {
                checker.add(
                    &rule::RESPONSES_RESULT_WITHOUT_USE,
                    path.key("call_id"),
                    format_args!("no call in the input has the call_id {}: remove the output or restore the call", Quote(id)),
                );
            }
        }
        for id in &self.call_order {
            let Some(call) = self.calls.get(id) else {
                continue;
            };
            if call.is_answered || answered_early.contains(id.as_str()) {
                continue;
            }
            let path = path.index(call.index);
            checker.add_as(
                severity(call.pair),
                &USE_WITHOUT_RESULT,
                path.key("call_id"),
                format_args!(
                    "the call {} has no output: add one or remove the call",
                    Quote(id)
                ),
            );
        }
    }
}

const USE_WITHOUT_RESULT: Rule = rule::RESPONSES_USE_WITHOUT_RESULT;

/// Shells and patches may also run on the server, which then needs no output from the client.
fn severity(pair: Pair) -> Severity {
    match pair {
        Pair::Function | Pair::Custom | Pair::Computer => Severity::Error,
        Pair::LocalShell | Pair::Shell | Pair::ApplyPatch => Severity::Warning,
    }
}

fn report_trigger(index: usize, checker: &mut Checker<'_>) {
    let root = Path::Root;
    checker.add(
        &rule::TRIGGER_NOT_LAST,
        root.key("input").index(index),
        "a compaction_trigger must be the last item: move it to the end",
    );
}

fn call_id(
    object: &super::Object,
    pair: Pair,
    path: &Path<'_>,
    checker: &mut Checker<'_>,
) -> Option<String> {
    // The output of a local shell names its call by `id` alone.
    if pair == Pair::LocalShell && !object.has("call_id") {
        return object.string("id");
    }
    let id = checker.required_name(object, "call_id", path)?;
    Some(id.decode().into_owned())
}
