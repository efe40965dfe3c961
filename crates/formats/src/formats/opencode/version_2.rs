//! Messages of opencode 2: each has a `type`, and an assistant's `content` has texts, reasoning and tools with their
//! state.

use throughline_transcript::conversation::CompactionMark;
use throughline_transcript::json::tape::View;
use throughline_transcript::message::{
    Author, Block, Content, Media, Message, Role, ToolCall, ToolInput, ToolResult,
};

use super::{Builder, Step, file, place, usage};
use crate::formats::anthropic_content;

pub(super) fn add(builder: &mut Builder, message: View<'_>, line: usize) {
    let place = place(message, line);
    let text = |key| {
        let text = message.field(key).and_then(View::as_text)?;
        (text.encoded_len() > 0).then_some(text)
    };
    let put = |builder: &mut Builder, author, blocks: Vec<Block>| {
        if !blocks.is_empty() {
            let mut message = Message::new(Role::User, blocks);
            message.author = author;
            builder.conversation.messages.push(place.put(message));
        }
    };
    match message.string_field("type").as_deref().unwrap_or_default() {
        "user" => {
            let mut blocks: Vec<Block> = text("text").map(Block::text).into_iter().collect();
            let files = message.field("files").into_iter().flat_map(View::elements);
            blocks.extend(files.map(|attached| Block {
                content: attachment(attached),
                raw: Some(attached.raw()),
            }));
            put(builder, Author::Role, blocks);
        }
        "synthetic" | "system" | "skill" => {
            let blocks = text("text").map(Block::text).into_iter().collect();
            put(builder, Author::Client, blocks);
        }
        // The person ran a command of their own.
        "shell" => {
            let name = |key| message.string_field(key).unwrap_or_default();
            let said = format!("$ {}\n{}", name("command"), name("output"));
            put(builder, Author::Client, vec![Block::text(said)]);
        }
        "compaction" => {
            builder.conversation.compactions.push(CompactionMark {
                before_message: builder.conversation.messages.len(),
                tokens_before: builder
                    .last_usage
                    .map(|usage| usage.prompt() + usage.output),
                trigger: message
                    .string_field("reason")
                    .map(|reason| reason.into_owned()),
            });
            let blocks = text("summary").map(Block::text).into_iter().collect();
            put(builder, Author::Compaction, blocks);
        }
        "assistant" => add_assistant(builder, message, &place),
        // A change of the agent or the model.
        _ => {}
    }
}

fn add_assistant(builder: &mut Builder, message: View<'_>, place: &crate::formats::place::Place) {
    let model = message
        .field("model")
        .and_then(|model| model.string_field("id"))
        .filter(|model| !model.is_empty());
    if let Some(model) = model {
        builder.conversation.model = Some(model.into_owned());
    }
    let mut step = Step::default();
    for part in message
        .field("content")
        .into_iter()
        .flat_map(View::elements)
    {
        if part.string_field("type").as_deref() == Some("tool") {
            let call = tool(&mut step, part);
            step.blocks.push(Block {
                content: call,
                raw: Some(part.raw()),
            });
        } else {
            step.add(part);
        }
    }
    step.is_last = message.string_field("finish").as_deref() == Some("stop");
    step.usage = message.field("tokens").and_then(usage);
    builder.flush(&mut step, false, place);
}

fn tool(step: &mut Step, part: View<'_>) -> Content {
    let name = |key| {
        part.field(key)
            .and_then(View::to_bytestring)
            .unwrap_or_default()
    };
    let state = part.field("state");
    let field = |key: &str| state.and_then(|state| state.field(key));
    let call = ToolCall {
        id: name("id"),
        name: name("name"),
        input: match field("input") {
            Some(input) if input.as_text().is_none() => ToolInput::Json(input.raw()),
            // While the model writes a call its input is a text.
            input => ToolInput::Text(input.and_then(View::as_text).unwrap_or_else(|| "".into())),
        },
        is_server_side: false,
    };
    let status = field("status").and_then(View::decode);
    let is_error = match status.as_deref() {
        Some("completed") => false,
        Some("error") => true,
        _ => {
            step.unanswered += 1;
            return Content::ToolCall(call);
        }
    };
    let mut content: Vec<Block> = Vec::new();
    let error = field("error").and_then(|error| {
        error
            .as_text()
            .or_else(|| error.field("message")?.as_text())
    });
    content.extend(error.filter(|_| is_error).map(Block::text));
    for part in field("content").into_iter().flat_map(View::elements) {
        let block = match part.string_field("type").as_deref() {
            Some("text") => match part.field("text").and_then(View::as_text) {
                Some(text) => Block::text(text),
                None => continue,
            },
            _ => Block {
                content: attachment(part),
                raw: Some(part.raw()),
            },
        };
        content.push(block);
    }
    step.results
        .push(Block::new(Content::ToolResult(ToolResult {
            call_id: call.id.clone(),
            content,
            is_error: Some(is_error),
            is_server_side: false,
        })));
    Content::ToolCall(call)
}

/// A file that is named by `uri`; older ones have a `url`.
fn attachment(part: View<'_>) -> Content {
    let Some(uri) = part.field("uri").and_then(View::as_text) else {
        return file(part);
    };
    let name = |key| part.field(key).and_then(View::to_bytestring);
    let is_data = uri.prefix(5).as_ref() == "data:";
    let media = Media {
        data_bytes: is_data.then(|| anthropic_content::base64_bytes(uri.encoded_len())),
        name: name("name").or_else(|| (!is_data).then(|| uri.to_bytestring())),
        media_type: name("mime"),
    };
    media.into_content()
}

#[cfg(test)]
mod tests {
    use crate::formats::testing::story;
    use crate::source::{SkippedPart, SourceText};

    #[track_caller]
    fn check(messages: &str, expected: &[&str]) {
        let text = format!(
            r#"{{"info":{{"id":"ses_9","projectID":"p","location":{{"directory":"/w/pier"}},"title":"Tides","version":"2.0.1"}},"messages":[{messages}]}}"#
        );
        let found = crate::read::read(&SourceText::from_text(text), None).unwrap();
        assert_eq!(found.format, "opencode");
        assert_eq!(found.conversations[0].cwd.as_deref(), Some("/w/pier"));
        assert_eq!(story(&found.conversations[0]), expected);
    }

    #[test]
    fn messages_have_a_type() {
        check(
            r#"{"id":"m1","type":"user","text":"Lower the crane.","files":[{"uri":"file:///w/pier/crane.png","mime":"image/png","name":"crane.png"}],"time":{"created":5}},
               {"id":"m2","type":"synthetic","text":"Note"},
               {"id":"m3","type":"assistant","model":{"id":"m-1"},"content":[
                 {"type":"reasoning","text":"hm"},{"type":"text","text":"I lower it."},
                 {"type":"tool","id":"c1","name":"edit","state":{"status":"completed","input":{"filePath":"a.ts"},"structured":{"x":1},"content":[{"type":"text","text":"Edited"}]}},
                 {"type":"tool","id":"c2","name":"bash","state":{"status":"error","input":{},"error":{"type":"unknown","message":"no such file"}}},
                 {"type":"tool","id":"c3","name":"bash","state":{"status":"running","input":{}}}]},
               {"id":"m4","type":"compaction","reason":"auto","summary":"Crane lowered."},
               {"id":"m5","type":"shell","command":"ls","output":"a.ts"},
               {"id":"m6","type":"model-switched","model":{}},
               {"id":"m7","type":"assistant","content":[{"type":"text","text":"Done."}]}"#,
            &[
                "user: Lower the crane. + image crane.png",
                "client: Note",
                "model: (hm) + I lower it. + call c1 edit + call c2 bash + call c3 bash",
                "user: result c1 Edited + failed c2 no such file",
                "compaction: Crane lowered.",
                "client: $ ls\na.ts",
                "model: Done.",
            ],
        );
    }

    #[test]
    fn what_the_exporter_prints_before_it_is_passed_over() {
        let export = r#"{"info":{"id":"ses_9","projectID":"p"},"messages":[{"info":{"role":"user","id":"m1"},"parts":[{"type":"text","text":"Go"}]}]}"#;
        for preamble in [
            "Exporting session: ses_9",
            "Exporting session: ses_9\n",
            "\u{1b}[2mExporting session: ses_9\u{1b}[0m\r\n",
            "$ opencode export ses_9\n[INFO] Exporting\n",
            "bun install v1.2\n\nExporting session: [ses_9]\n\n",
        ] {
            for from in [None, Some("opencode")] {
                for end in ["", "\n", "\nExported.\n"] {
                    let text = SourceText::from_text(format!("{preamble}{export}{end}"));
                    let found = crate::read::read(&text, from).unwrap();
                    assert_eq!(story(&found.conversations[0]), ["user: Go"], "{preamble:?}");
                    let is_told = |piece: &SkippedPart| piece.bytes == preamble.len();
                    assert!(found.skipped.iter().any(is_told), "{:?}", found.skipped);
                }
            }
        }
    }
}
