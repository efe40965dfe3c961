//! Calls without results, results without calls: what a provider would stumble over.

use std::collections::HashMap;

use throughline_transcript::conversation::Conversation;
use throughline_transcript::message::{Content, Message};

/// One thing that is wrong with the pairs of a conversation.
pub(super) struct BrokenPair {
    pub(super) code: &'static str,
    pub(super) message: usize,
    pub(super) text: String,
}

/// Everything that is wrong, by message.
pub(super) fn broken(conversation: &Conversation) -> Vec<BrokenPair> {
    let messages = &conversation.messages;
    let mut open: HashMap<&str, (usize, &str)> = HashMap::new();
    let mut answered: HashMap<&str, usize> = HashMap::new();
    let mut broken = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        for block in &message.blocks {
            match &block.content {
                Content::ToolCall(call) if !call.id.is_empty() && !call.is_server_side => {
                    let is_open = open.insert(&call.id, (index, &call.name)).is_some();
                    if is_open || answered.contains_key(&*call.id) {
                        broken.push(BrokenPair {
                            code: "duplicate-call-id",
                            message: index,
                            text: format!("two calls have the id {:?}", &*call.id),
                        });
                    }
                }
                Content::ToolResult(result)
                    if !result.call_id.is_empty() && !result.is_server_side =>
                {
                    let id: &str = &result.call_id;
                    if open.remove(id).is_some() {
                        answered.insert(id, index);
                    } else if answered.contains_key(id) {
                        broken.push(BrokenPair {
                            code: "second-result",
                            message: index,
                            text: format!("the call {id:?} has a result already"),
                        });
                    } else {
                        broken.push(BrokenPair {
                            code: "result-without-call",
                            message: index,
                            text: format!("there is no call {id:?} before this result"),
                        });
                    }
                }
                _ => {}
            }
        }
    }
    // Calls of the last message that calls anything may still be running.
    let last = messages
        .iter()
        .rposition(|message: &Message| message.tool_calls().next().is_some());
    broken.extend(open.into_iter().map(|(id, (index, name))| {
        let is_running =
            Some(index) == last && !messages[index + 1..].iter().any(Message::begins_turn);
        BrokenPair {
            code: if is_running {
                "running-call"
            } else {
                "call-without-result"
            },
            message: index,
            text: format!("the call {id:?} of {name} has no result"),
        }
    }));
    broken.sort_by(|a, b| (a.message, &a.text).cmp(&(b.message, &b.text)));
    broken
}

#[cfg(test)]
mod tests {
    use throughline_transcript::message::{Block, Role, ToolCall, ToolInput, ToolResult};

    use super::*;

    fn message(role: Role, content: Content) -> Message {
        Message::new(role, vec![Block::new(content)])
    }

    fn call(id: &'static str) -> Message {
        message(
            Role::Assistant,
            Content::ToolCall(ToolCall {
                id: id.into(),
                name: "run".into(),
                input: ToolInput::Text("".into()),
                is_server_side: false,
            }),
        )
    }

    fn result(id: &'static str) -> Message {
        message(
            Role::User,
            Content::ToolResult(ToolResult {
                call_id: id.into(),
                content: Vec::new(),
                is_error: None,
                is_server_side: false,
            }),
        )
    }

    #[track_caller]
    fn check(messages: Vec<Message>, expected: &[(&str, usize)]) {
        let conversation = Conversation {
            messages,
            ..Conversation::default()
        };
        let found: Vec<_> = broken(&conversation)
            .iter()
            .map(|broken| (broken.code, broken.message))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_not_a_pair_is_found() {
        let user = || Message::new(Role::User, vec![Block::text("go on")]);
        check(vec![call("a"), result("a")], &[]);
        check(
            vec![call("a"), call("b"), result("b")],
            &[("call-without-result", 0)],
        );
        check(vec![call("a"), user()], &[("call-without-result", 0)]);
        check(vec![user(), call("a")], &[("running-call", 1)]);
        check(vec![result("a")], &[("result-without-call", 0)]);
        check(
            vec![call("a"), result("a"), result("a")],
            &[("second-result", 2)],
        );
        check(
            vec![call("a"), result("a"), call("a"), result("a")],
            &[("duplicate-call-id", 2)],
        );
    }
}
