//! Whether a call that changes something may be run.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use throughline::agent::{ApprovalRequest, Approver, Decision};
use throughline::futures::FutureExt;
use tokio::sync::Notify;

use super::editor;
use crate::output::Console;

/// Asks the person who sits in front of the terminal. Clones are the same person.
#[derive(Clone)]
pub(crate) struct Person {
    has_colours: bool,
    /// Tools that are not asked about any more.
    always: Arc<Mutex<HashSet<String>>>,
    /// The screen shows what would be done.
    is_shown: Arc<Notify>,
}

impl Person {
    pub(crate) fn new(console: &Console) -> Self {
        Self {
            has_colours: console.look().is_some_and(|look| look.has_colours),
            always: Arc::default(),
            is_shown: Arc::default(),
        }
    }

    /// Whether calls of this tool are allowed without a question.
    pub(crate) fn allows(&self, tool: &str) -> bool {
        self.always().contains(tool)
    }

    /// The next call was shown and can be asked about.
    pub(crate) fn has_seen(&self) {
        self.is_shown.notify_one();
    }

    /// Nothing that was shown earlier is asked about any more.
    pub(crate) fn forget(&self) {
        let _ = self.is_shown.notified().now_or_never();
    }

    fn always(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.always.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// There is no user to ask.
pub(crate) struct AbsentApprover;

#[async_trait]
impl Approver for AbsentApprover {
    async fn approve(&self, _request: ApprovalRequest) -> Decision {
        Decision::Deny {
            reason: "no person is present to approve it".to_owned(),
        }
    }
}

#[async_trait]
impl Approver for Person {
    async fn approve(&self, request: ApprovalRequest) -> Decision {
        self.is_shown.notified().await;
        let name = request.call.name.to_string();
        if self.allows(&name) {
            return Decision::Allow;
        }
        let question = format!("Allow it? yes, no, or always for {name} [y/n/a] ");
        let has_colours = self.has_colours;
        loop {
            let question = question.clone();
            let asked =
                tokio::task::spawn_blocking(move || editor::ask(&question, has_colours)).await;
            // Ctrl-C is no answer: the call stays open.
            let Ok(Some(answer)) = asked else {
                return Decision::Later;
            };
            match understood(&answer) {
                Some(Answer::Yes) => return Decision::Allow,
                Some(Answer::Always) => {
                    self.always().insert(name);
                    return Decision::Allow;
                }
                Some(Answer::No { reason }) => return Decision::Deny { reason },
                None => {}
            }
        }
    }
}

/// The answer to a question.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    Always,
    No { reason: String },
}

/// The meaning of an answer; `None` for an empty one. Any other text is a reason to refuse, and is kept verbatim.
fn understood(answer: &str) -> Option<Answer> {
    let answer = answer.trim();
    Some(match answer.to_lowercase().as_str() {
        "" => return None,
        "y" | "yes" => Answer::Yes,
        "a" | "always" => Answer::Always,
        "n" | "no" => Answer::No {
            reason: String::new(),
        },
        _ => Answer::No {
            reason: answer.to_owned(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_answer_is_a_reason_in_its_own_letters() {
        let no = |reason: &str| {
            Some(Answer::No {
                reason: reason.to_owned(),
            })
        };
        let check = |said: &str, expected: Option<Answer>| {
            assert_eq!(understood(said), expected, "{said:?}");
        };
        check(" Y ", Some(Answer::Yes));
        check("yes", Some(Answer::Yes));
        check("Always", Some(Answer::Always));
        check("No", no(""));
        check("  ", None);
        check(
            " Not in /etc/MyApp, use ~/Work ",
            no("Not in /etc/MyApp, use ~/Work"),
        );
        check("YES but not now", no("YES but not now"));
    }
}
