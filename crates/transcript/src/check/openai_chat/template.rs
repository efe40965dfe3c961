//! The order of roles that the chat templates of many local models require.
//!
//! One system message at the front, then strictly alternating user and assistant. As in these templates, tool messages
//! and assistant messages that call tools are ignored when turns are counted.

use super::super::checker::Checker;
use super::super::path::Path;
use super::super::rule;
use super::Role;

/// The walk over the roles.
#[derive(Default)]
pub(crate) struct Template {
    count: usize,
    last_visible: Option<Role>,
    last: Option<Role>,
}

impl Template {
    pub(crate) fn message(
        &mut self,
        role: Role,
        name: &str,
        calls_tools: bool,
        path: &Path<'_>,
        checker: &mut Checker<'_>,
    ) {
        let is_first = self.count == 0;
        self.count += 1;
        self.last = Some(role);
        match role {
            Role::Instruction => {
                if name == "developer" {
                    checker.add(
                        &rule::TEMPLATE_DEVELOPER,
                        path.key("role"),
                        "chat templates do not know the role developer: put the text into the system message",
                    );
                }
                if !is_first {
                    checker.add(
                        &rule::TEMPLATE_SYSTEM,
                        path.key("role"),
                        "chat templates take one system message, at the front: merge this one into it",
                    );
                }
            }
            Role::User | Role::Assistant if !calls_tools => {
                let expected = match self.last_visible {
                    Some(Role::User) => Role::Assistant,
                    _ => Role::User,
                };
                if role != expected {
                    checker.add(
                        &rule::TEMPLATE_ORDER,
                        path.key("role"),
                        "user and assistant must take turns, the user first: merge this message with its neighbour",
                    );
                }
                self.last_visible = Some(role);
            }
            _ => {}
        }
    }

    pub(crate) fn finish(self, checker: &mut Checker<'_>) {
        if matches!(self.last, Some(Role::Assistant | Role::Instruction)) {
            let root = Path::Root;
            checker.add(
                &rule::TEMPLATE_END,
                root.key("messages").index(self.count.saturating_sub(1)),
                "the last message must be the user's or a tool's: end with one of these",
            );
        }
    }
}
