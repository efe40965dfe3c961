use super::*;
use crate::formats::testing::story;

fn read_text(text: &str) -> Source {
    VsCodeChat
        .read(&SourceText::from_text(text.to_owned()))
        .unwrap()
}

const PIECES: &str = r#"{"requestId":"r1","timestamp":1767225600000,"modelId":"copilot/m-1","message":{"text":"Mend the oar","parts":[{"kind":"text","text":"Mend the oar"}]},"variableData":{"variables":[{"kind":"file","name":"oar.ts"},{"kind":"file","name":"x","automaticallyAdded":true}]},"response":[{"kind":"mcpServersStarting"},{"kind":"thinking","value":"hm"},{"value":"I look at "},{"kind":"inlineReference","inlineReference":{"fsPath":"/w/oar.ts"}},{"value":".","supportHtml":false},{"kind":"toolInvocationSerialized","toolCallId":"c1","toolId":"run_in_terminal","isComplete":true,"pastTenseMessage":{"value":"Ran ls"},"toolSpecificData":{"kind":"terminal","commandLine":{"original":"ls"}}},{"kind":"undoStop","id":"u"},{"kind":"textEditGroup","uri":{"path":"/w/oar.ts"},"edits":[],"done":true},{"kind":"markdownContent","content":{"value":"Mended."}}],"result":{"promptTokens":5,"outputTokens":6}}"#;

const ROUNDS: &str = r#"{"requestId":"r2","message":{"text":"And the boat"},"response":[{"value":"Done."}],"result":{"metadata":{"toolCallRounds":[{"response":"I read.","toolCalls":[{"id":"t1","name":"read_file","arguments":"{\"filePath\":\"b\"}"}]},{"response":"Done.","toolCalls":[]}],"toolCallResults":{"t1":{"content":[{"value":{"node":{"type":1,"children":[{"type":2,"text":"oak"},{"type":2,"text":" wood"}]}}}]}}}}}"#;

#[test]
fn pieces_and_rounds_become_messages() {
    let document = format!(
        r#"{{"version":3,"responderUsername":"GitHub Copilot","sessionId":"s1","customTitle":"Oars","requests":[
{PIECES},
{ROUNDS}]}}"#
    );
    let log = format!(
        "{{\"kind\":0,\"v\":{{\"version\":3,\"sessionId\":\"s1\",\"requests\":[]}}}}\n{{\"kind\":1,\"k\":[\"customTitle\"],\"v\":\"Oars\"}}\n{{\"kind\":2,\"k\":[\"requests\"],\"v\":[{PIECES}]}}\n{{\"kind\":2,\"k\":[\"requests\"],\"v\":[{}]}}\n{{\"kind\":2,\"k\":[\"requests\",1,\"response\"],\"i\":0,\"v\":[{{\"value\":\"Done.\"}}]}}\n",
        ROUNDS.replace("[{\"value\":\"Done.\"}]", "[{\"value\":\"Do\"}]")
    );
    for text in [document, log] {
        let source = read_text(&text);
        let conversation = &source.conversations[0];
        assert_eq!(
            story(conversation),
            [
                "user: Mend the oar + document oar.ts",
                "model: (hm) + I look at `/w/oar.ts`. + call c1 run_in_terminal + call edit-1-3 edit_file",
                "tool: result c1 Ran ls + result edit-1-3 edited",
                "model: Mended.",
                "user: And the boat",
                "model: I read. + call t1 read_file",
                "tool: result t1 oak wood",
                "model: Done.",
            ],
            "{text}"
        );
        assert_eq!(
            (
                conversation.id.as_str(),
                conversation.title.as_deref(),
                conversation.model.as_deref()
            ),
            ("s1", Some("Oars"), Some("m-1"))
        );
        assert_eq!(conversation.messages[0].at_ms, Some(1_767_225_600_000));
        assert_eq!(conversation.messages[3].usage.unwrap().output, 6);
        assert_eq!(source.skipped, []);
    }
}

#[test]
fn undone_requests_are_left_out_and_failures_noted() {
    let source = read_text(
        r#"{"requests":[{"requestId":"a","message":"one","response":[]},{"requestId":"b","isHidden":true,"message":{"text":"two"},"response":[]},{"requestId":"c","message":{"text":"three"},"response":[],"result":{"errorDetails":{"message":"no quota"}}}]}"#,
    );
    let conversation = &source.conversations[0];
    assert_eq!(story(conversation), ["user: one", "user: three"]);
    let codes: Vec<_> = conversation.problems.iter().map(|p| p.code).collect();
    assert_eq!(codes, ["failed-request", "rolled-back"]);
}

#[test]
fn a_chat_without_requests_has_no_messages() {
    let text = r#"{"version":3,"responderUsername":"GitHub Copilot","requests":[]}"#;
    assert_eq!(read_text(text).conversations[0].messages, []);
    assert!(VsCodeChat.read(&SourceText::from_text("{}")).is_err());
}
