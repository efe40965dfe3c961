//! Whether a call that changes something may be run.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use throughline::agent::{ApprovalRequest, Approver, Decision};

use super::editor;
use crate::output::{Console, harmless};

/// Asks the person who sits in front of the terminal.
pub(crate) struct Person {
    has_colours: bool,
    /// Tools that are not asked about any more.
    always: Mutex<HashSet<String>>,
}

impl Person {
    pub(crate) fn new(console: &Console) -> Self {
        Self {
            has_colours: console.look().is_some_and(|look| look.has_colours),
            always: Mutex::default(),
        }
    }
}

/// Nobody is there.
pub(crate) struct Absent;

#[async_trait]
impl Approver for Absent {
    async fn approve(&self, _request: ApprovalRequest) -> Decision {
        Decision::Deny {
            reason: "nobody is there who could allow it".to_owned(),
        }
    }
}

#[async_trait]
impl Approver for Person {
    async fn approve(&self, request: ApprovalRequest) -> Decision {
        let name = request.call.name.to_string();
        let always = || self.always.lock().unwrap_or_else(PoisonError::into_inner);
        if always().contains(&name) {
            return Decision::Allow;
        }
        let summary = harmless(&request.summary).replace('\n', " ");
        let question = format!("{summary}\nAllow it? yes, no, or always for {name} [y/n/a] ");
        let has_colours = self.has_colours;
        loop {
            let question = question.clone();
            let asked =
                tokio::task::spawn_blocking(move || editor::ask(&question, has_colours)).await;
            // Ctrl-C is no answer: the call stays open.
            let Ok(Some(answer)) = asked else {
                return Decision::Later;
            };
            let answer = answer.trim();
            match answer.to_lowercase().as_str() {
                "y" | "yes" => return Decision::Allow,
                "a" | "always" => {
                    always().insert(name);
                    return Decision::Allow;
                }
                "" => {}
                "n" | "no" => {
                    return Decision::Deny {
                        reason: String::new(),
                    };
                }
                // What is said to a question is a reason.
                _ => {
                    return Decision::Deny {
                        reason: answer.to_owned(),
                    };
                }
            }
        }
    }
}
