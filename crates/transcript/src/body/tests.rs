use super::*;
use crate::json::Text;
use crate::message::{Content, Media, ToolInput};

/// A message in one line, for comparison.
fn show(message: &Message) -> String {
    let blocks: Vec<_> = message.blocks.iter().map(show_block).collect();
    let author = match message.author {
        Author::Role => "",
        Author::Client => " (client)",
        Author::Agent => " (agent)",
        Author::Compaction => " (compaction)",
    };
    format!("{:?}{author}: {}", message.role, blocks.join(" | "))
}

fn show_block(block: &Block) -> String {
    let text = |text: &Text| text.decode().into_owned();
    match &block.content {
        Content::Text(said) => text(said),
        Content::Thinking(thought) => format!("thinking<{}>", text(thought)),
        Content::ToolCall(call) => format!(
            "{}call {} {}({})",
            if call.is_server_side { "server " } else { "" },
            call.id,
            call.name,
            match &call.input {
                ToolInput::Json(raw) => raw.as_str().to_owned(),
                ToolInput::Text(input) => format!("text {}", text(input)),
            }
        ),
        Content::ToolResult(result) => {
            let content: Vec<_> = result.content.iter().map(show_block).collect();
            format!(
                "{}result {}{} [{}]",
                if result.is_server_side { "server " } else { "" },
                result.call_id,
                match result.is_error {
                    Some(true) => " failed",
                    Some(false) => " ok",
                    None => "",
                },
                content.join(", ")
            )
        }
        Content::Image(media) => format!("image<{}>", show_media(media)),
        Content::Document(media) => format!("document<{}>", show_media(media)),
        Content::Compaction(Some(summary)) => format!("compaction<{}>", text(summary)),
        Content::Compaction(None) => "compaction<sealed>".to_owned(),
        Content::Other(kind) => format!("other<{kind}>"),
    }
}

fn show_media(media: &Media) -> String {
    let mut parts = Vec::new();
    parts.extend(media.media_type.as_ref().map(ToString::to_string));
    parts.extend(media.data_bytes.map(|bytes| format!("{bytes} B")));
    parts.extend(media.name.as_ref().map(ToString::to_string));
    parts.join(" ")
}

#[track_caller]
fn read(wire: Wire, text: &str) -> Conversation {
    read_body(&Raw::parse(text.to_owned()).unwrap(), wire).unwrap()
}

#[track_caller]
fn check_message(wire: Wire, message: &str, expected: &str) {
    let text = match wire {
        Wire::OpenAiResponses => format!("{{\"input\":[{message}]}}"),
        _ => format!("{{\"messages\":[{message}]}}"),
    };
    let conversation = read(wire, &text);
    assert_eq!(show(&conversation.messages[0]), expected);
    assert_eq!(
        conversation.messages[0].raw.as_ref().unwrap().as_str(),
        message,
        "the message is kept as it was written"
    );
}

#[test]
fn anthropic_blocks() {
    let check = |role: &str, block: &str, expected: &str| {
        check_message(
            Wire::Anthropic,
            &format!("{{\"role\":\"{role}\",\"content\":[{block}]}}"),
            expected,
        );
    };
    check(
        "user",
        r#"{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}"#,
        "User: hi",
    );
    check(
        "system",
        r#"{"type":"text","text":"be brief"}"#,
        "System: be brief",
    );
    check(
        "user",
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAECAw=="}}"#,
        "User: image<image/png 4 B>",
    );
    check(
        "user",
        r#"{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}"#,
        "User: image<https://example.org/a.png>",
    );
    check(
        "user",
        r#"{"type":"document","title":"plan","source":{"type":"text","media_type":"text/plain","data":"a\nb"}}"#,
        "User: document<text/plain 3 B plan>",
    );
    check(
        "user",
        r#"{"type":"search_result","source":"https://example.org","title":"found","content":[]}"#,
        "User: document<found>",
    );
    check(
        "user",
        r#"{"type":"container_upload","file_id":"file_1"}"#,
        "User: document<file_1>",
    );
    check(
        "assistant",
        r#"{"type":"tool_use","id":"t1","name":"run","input":{"b":1,"a":1e3}}"#,
        r#"Assistant: call t1 run({"b":1,"a":1e3})"#,
    );
    check(
        "user",
        r#"{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"no"},{"type":"tool_reference","tool_name":"x"}]}"#,
        "User: result t1 failed [no, other<tool_reference>]",
    );
    check(
        "user",
        r#"{"type":"tool_result","tool_use_id":"t1"}"#,
        "User: result t1 []",
    );
    check(
        "assistant",
        r#"{"type":"thinking","thinking":"so","signature":"s"}"#,
        "Assistant: thinking<so>",
    );
    check(
        "assistant",
        r#"{"type":"redacted_thinking","data":"x"}"#,
        "Assistant: thinking<>",
    );
    check(
        "assistant",
        r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}"#,
        "Assistant: server call s1 web_search({})",
    );
    check(
        "assistant",
        r#"{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","url":"https://example.org/3","title":"3.4 notes","encrypted_content":"E"}]}"#,
        "Assistant: server result s1 [3.4 notes\nhttps://example.org/3]",
    );
    check(
        "assistant",
        r#"{"type":"web_search_tool_result","tool_use_id":"s1","content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}}"#,
        "Assistant: server result s1 failed [max_uses_exceeded]",
    );
    check(
        "assistant",
        r#"{"type":"bash_code_execution_tool_result","tool_use_id":"s1","content":{"type":"bash_code_execution_result","stdout":"4","stderr":"","return_code":0}}"#,
        "Assistant: server result s1 [4]",
    );
    check(
        "assistant",
        r#"{"type":"mcp_tool_result","tool_use_id":"m1","is_error":false,"content":[{"type":"text","text":"ok"}]}"#,
        "Assistant: server result m1 ok [ok]",
    );
    check(
        "assistant",
        r#"{"type":"compaction","content":"so far","signature":"s"}"#,
        "Assistant (compaction): compaction<so far>",
    );
    check(
        "assistant",
        r#"{"type":"compaction","content":null}"#,
        "Assistant (compaction): compaction<sealed>",
    );
    check(
        "assistant",
        r#"{"type":"mcp_tool_listing","tools":[]}"#,
        "Assistant: other<mcp_tool_listing>",
    );
    check(
        "user",
        r#"{"type":"from_next_year","x":[1]}"#,
        "User: other<from_next_year>",
    );
    check("user", "7", "User: other<not-an-object>");
    check("user", r#""bare""#, "User: bare");
}

#[test]
fn chat_messages() {
    let check = |message: &str, expected: &str| check_message(Wire::OpenAiChat, message, expected);
    check(
        r#"{"role":"developer","content":"Be brief."}"#,
        "System: Be brief.",
    );
    check(
        r#"{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAEC"}}]}"#,
        "User: see | image<image/png 3 B>",
    );
    check(
        r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.org/a.png"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AAEC"}},{"type":"input_audio","input_audio":{}}]}"#,
        "User: image<https://example.org/a.png> | document<application/pdf 3 B a.pdf> | other<input_audio>",
    );
    check(
        r#"{"role":"assistant","reasoning_content":"hm","content":"On it.","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{\"p\":\"\\u00e9\"}"}},{"id":"c2","type":"custom","custom":{"name":"sh","input":"ls"}}]}"#,
        r#"Assistant: thinking<hm> | On it. | call c1 ls({"p":"\u00e9"}) | call c2 sh(text ls)"#,
    );
    check(
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{\"p\":"}}]}"#,
        r#"Assistant: call c1 ls(text {"p":)"#,
    );
    check(
        r#"{"role":"assistant","content":null,"refusal":"I cannot."}"#,
        "Assistant: I cannot.",
    );
    check(
        r#"{"role":"tool","tool_call_id":"c1","content":"4.2"}"#,
        "Tool: result c1 [4.2]",
    );
    check(
        r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}"#,
        "Assistant: call  f({})",
    );
    check(
        r#"{"role":"function","name":"f","content":"1"}"#,
        "Tool: result  [1]",
    );
}

#[test]
fn responses_items() {
    let check = |item: &str, expected: &str| check_message(Wire::OpenAiResponses, item, expected);
    check(r#"{"role":"user","content":"hi"}"#, "User: hi");
    check(
        r#"{"type":"message","role":"assistant","id":"msg_1","content":[{"type":"output_text","text":"ho","annotations":[]},{"type":"refusal","refusal":"no"}]}"#,
        "Assistant: ho | no",
    );
    check(
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/gif;base64,AAEC"},{"type":"input_file","file_id":"file_1"}]}"#,
        "User: see | image<image/gif 3 B> | document<file_1>",
    );
    check(
        r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"E"}"#,
        "Assistant: thinking<a\n\nb>",
    );
    check(
        r#"{"type":"reasoning","id":"rs_1","summary":[]}"#,
        "Assistant: thinking<>",
    );
    check(
        r#"{"type":"function_call","id":"fc_1","call_id":"c1","name":"ls","arguments":"{}"}"#,
        "Assistant: call c1 ls({})",
    );
    check(
        r#"{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"x"}]}"#,
        "Tool: result c1 [x]",
    );
    check(
        r#"{"type":"custom_tool_call","call_id":"c1","name":"sh","input":"ls"}"#,
        "Assistant: call c1 sh(text ls)",
    );
    check(
        r#"{"type":"custom_tool_call_output","call_id":"c1","output":"a b"}"#,
        "Tool: result c1 [a b]",
    );
    check(
        r#"{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}"#,
        r#"Assistant: server call ws_1 web_search({"type":"search","query":"q"}) | server result ws_1 []"#,
    );
    check(
        r#"{"type":"mcp_call","id":"m1","name":"find","arguments":"{}","output":"3 hits","error":null}"#,
        "Assistant: server call m1 find({}) | server result m1 [3 hits]",
    );
    check(
        r#"{"type":"local_shell_call","id":"l1","call_id":"c1","action":{"type":"exec","command":["ls"]}}"#,
        r#"Assistant: call c1 local_shell({"type":"exec","command":["ls"]})"#,
    );
    check(
        r#"{"type":"local_shell_call_output","call_id":"c1","output":"a"}"#,
        "Tool: result c1 [a]",
    );
    check(
        r#"{"type":"mcp_approval_response","approval_request_id":"r1","approve":false}"#,
        "Tool: server result r1 [denied]",
    );
    check(
        r#"{"type":"compaction","id":"cmp_1","encrypted_content":"E"}"#,
        "Assistant (compaction): compaction<sealed>",
    );
    check(
        r#"{"type":"item_reference","id":"x"}"#,
        "Assistant: other<item_reference>",
    );
    check(
        r#"{"type":"configuration_update"}"#,
        "System: other<configuration_update>",
    );
}

#[test]
fn settings_are_kept_beside_the_messages() {
    let text = r#"{"model":"m","system":[{"type":"text","text":"Rule."}],"tools":[{"name":"a"}],"messages":[{"role":"user","content":"hi"}]}"#;
    let conversation = read(Wire::Anthropic, text);
    assert_eq!(conversation.model.as_deref(), Some("m"));
    assert_eq!(
        conversation.tools.as_ref().unwrap().as_str(),
        r#"[{"name":"a"}]"#
    );
    assert_eq!(show_block(&conversation.system[0]), "Rule.");
    assert_eq!(conversation.body.as_ref().unwrap().as_str(), text);

    let text = r#"{"model":"m","instructions":"Rule.","input":"hi"}"#;
    let conversation = &read(Wire::OpenAiResponses, text);
    assert_eq!(show_block(&conversation.system[0]), "Rule.");
    assert_eq!(show(&conversation.messages[0]), "User: hi");
}

#[test]
fn notices_of_a_compaction_are_not_the_users_words() {
    check_message(
        Wire::Anthropic,
        r#"{"role":"user","content":"This session is being continued from a previous conversation that ran out."}"#,
        "User (compaction): This session is being continued from a previous conversation that ran out.",
    );
    let found = read(
        Wire::OpenAiChat,
        r#"{"messages":[{"role":"user","content":"This session is being continued from a previous conversation."},{"role":"user","content":"go on"}]}"#,
    );
    assert_eq!(found.compactions[0].before_message, 0);
}

#[test]
fn odd_roles_are_read_and_named() {
    let found = read(
        Wire::OpenAiChat,
        r#"{"messages":[{"role":"narrator","content":"once"},{"content":"x"}]}"#,
    );
    let problems: Vec<_> = found
        .problems
        .iter()
        .map(|problem| (problem.code, problem.message))
        .collect();
    assert_eq!(problems, [("unknown-role", 0), ("no-role", 1)]);
}

#[test]
fn lone_surrogates_are_read() {
    check_message(
        Wire::Anthropic,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"so \ud83d far, \ud83d\ude00 whole, \ude00 end"}]}"#,
        "User: result t1 [so \u{fffd} far, 😀 whole, \u{fffd} end]",
    );
}
