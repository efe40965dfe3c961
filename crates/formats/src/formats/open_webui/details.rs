//! Reasoning and calls of tools in the text of an answer: `<details type="reasoning">` and `<details
//! type="tool_calls" id="..." name="..." arguments="..." result="...">`.

use throughline_transcript::json::Text;
use throughline_transcript::message::{Block, Content, Message, ToolCall, ToolInput};

use crate::formats::parts::{self, Answer};
use crate::formats::place::Place;

const OPEN: &str = "<details type=\"";
const CLOSE: &str = "</details>";

/// Adds the messages of an answer: its texts, its reasoning, its calls and their results.
pub(super) fn answer(text: &str, messages: &mut Vec<Message>, place: &Place) {
    let mut answer = Answer::default();
    let mut rest = text;
    while let Some(start) = rest.find(OPEN) {
        let Some((head, inside, after)) = element(&rest[start..]) else {
            break;
        };
        let attribute = |name| attribute(head, name).map(unescaped);
        match attribute("type").as_deref() {
            Some("reasoning") => {
                add_text(&rest[..start], &mut answer, messages, place);
                add(
                    &mut answer,
                    messages,
                    place,
                    Content::Thinking(reasoning(inside).into()),
                );
            }
            Some("tool_calls") => {
                add_text(&rest[..start], &mut answer, messages, place);
                let id = attribute("id").unwrap_or_default();
                let call = Content::ToolCall(ToolCall {
                    id: id.clone().into(),
                    name: attribute("name").unwrap_or_default().into(),
                    input: ToolInput::from_encoded(&plain(
                        attribute("arguments").unwrap_or_default(),
                    )),
                    is_server_side: false,
                });
                add(&mut answer, messages, place, call);
                if let Some(result) = attribute("result") {
                    let content = vec![Block::text(plain(result))];
                    answer.results.push(parts::result(id.into(), content, None));
                }
            }
            // Something that the model wrote itself.
            _ => {
                let end = rest.len() - after.len();
                add_text(&rest[..end], &mut answer, messages, place);
            }
        }
        rest = after;
    }
    add_text(rest, &mut answer, messages, place);
    answer.put(messages, place);
}

fn add_text(text: &str, answer: &mut Answer, messages: &mut Vec<Message>, place: &Place) {
    let text = text.trim();
    if !text.is_empty() {
        add(
            answer,
            messages,
            place,
            Content::Text(text.to_owned().into()),
        );
    }
}

/// What follows results is another call of the model; calls side by side are one.
fn add(answer: &mut Answer, messages: &mut Vec<Message>, place: &Place, content: Content) {
    if !answer.results.is_empty() && !matches!(content, Content::ToolCall(_)) {
        std::mem::take(answer).put(messages, place);
    }
    answer.blocks.push(Block::new(content));
}

/// The opening tag, the inside and what follows.
fn element(text: &str) -> Option<(&str, &str, &str)> {
    // A sign for the end of the tag can be inside of an attribute.
    let mut is_quoted = false;
    let end = text.char_indices().find_map(|(at, one)| {
        is_quoted ^= one == '"';
        (one == '>' && !is_quoted).then_some(at)
    })?;
    let (head, inside) = text.split_at(end + 1);
    let close = inside.find(CLOSE)?;
    Some((head, &inside[..close], &inside[close + CLOSE.len()..]))
}

fn attribute<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let start = head.find(&format!(" {name}=\""))? + name.len() + 3;
    let rest = &head[start..];
    Some(&rest[..rest.find('"')?])
}

/// The lines of reasoning are quoted, behind a line that says how long it took.
fn reasoning(inside: &str) -> String {
    let text = match inside.find("</summary>") {
        Some(at) => &inside[at + "</summary>".len()..],
        None => inside,
    };
    let lines: Vec<String> = text
        .trim()
        .lines()
        .map(|line| {
            let line = unescaped(line);
            let line = line.strip_prefix('>').unwrap_or(&line);
            line.strip_prefix(' ').unwrap_or(line).to_owned()
        })
        .collect();
    lines.join("\n")
}

fn unescaped(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&#x27;", "'")
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// The client writes strings in attributes as JSON.
fn plain(text: String) -> Text {
    match throughline_transcript::json::Raw::parse(text.clone()) {
        Ok(raw) => raw
            .as_text()
            .map_or_else(|| text.into(), |inner| inner.decode().into_owned().into()),
        Err(_) => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use throughline_transcript::conversation::Conversation;

    use super::*;
    use crate::formats::testing::story;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut conversation = Conversation::default();
        answer(text, &mut conversation.messages, &Place::default());
        assert_eq!(story(&conversation), expected);
    }

    #[test]
    fn reasoning_and_calls_are_found() {
        check("High.", &["model: High."]);
        check(
            "<details type=\"reasoning\" done=\"true\" duration=\"5\">\n<summary>Thought for 5 seconds</summary>\n&gt; It rises.\n&gt; So high.\n</details>\nHigh.",
            &["model: (It rises.\nSo high.) + High."],
        );
        check(
            "I look.\n<details type=\"tool_calls\" done=\"true\" id=\"c1\" name=\"tide\" arguments=\"&quot;{\\&quot;at\\&quot;: \\&quot;List\\&quot;}&quot;\" result=\"&quot;3 m > 2 m&quot;\">\n<summary>Tool Executed</summary>\n</details>\nHigh.",
            &[
                "model: I look. + call c1 tide",
                "tool: result c1 3 m > 2 m",
                "model: High.",
            ],
        );
        check(
            "<details type=\"x\"><summary>a</summary>b</details> c",
            &["model: <details type=\"x\"><summary>a</summary>b</details> + c"],
        );
        check(
            "<details type=\"reasoning\">torn",
            &["model: <details type=\"reasoning\">torn"],
        );
    }
}
