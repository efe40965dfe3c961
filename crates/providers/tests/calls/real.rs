//! Against a real llama.cpp server, if there is one: it speaks all three wires.
//!
//! `THROUGHLINE_LLAMA_URL=http://127.0.0.1:8080 cargo test -p throughline-providers -- --ignored real`

use throughline_providers::client::{CallOptions, Client, Delivery};
use throughline_providers::stop::StopReason;
use throughline_transcript::wire::Wire;

fn client(wire: Wire) -> Client {
    let url = std::env::var("THROUGHLINE_LLAMA_URL").unwrap();
    Client::builder(wire, url).build().unwrap()
}

#[tokio::test]
#[ignore = "needs a server: THROUGHLINE_LLAMA_URL"]
async fn all_wires_answer_streamed_and_whole() {
    let model = client(Wire::OpenAiChat)
        .models(&CallOptions::default())
        .await
        .unwrap()
        .remove(0);
    assert!(
        model.window.is_some_and(|window| window >= 512),
        "{model:?}"
    );
    let id = model.id;
    let question = r#"{"role":"user","content":"Say hello."}"#;
    for (wire, body) in [
        (
            Wire::Anthropic,
            format!(r#"{{"model":"{id}","max_tokens":12,"messages":[{question}]}}"#),
        ),
        (
            Wire::OpenAiChat,
            format!(r#"{{"model":"{id}","max_tokens":12,"messages":[{question}]}}"#),
        ),
        (
            Wire::OpenAiResponses,
            format!(r#"{{"model":"{id}","max_output_tokens":12,"input":[{question}]}}"#),
        ),
    ] {
        let client = client(wire);
        for delivery in [Delivery::Streamed, Delivery::Whole] {
            let options = CallOptions::default().delivery(delivery);
            let call = client.send(body.clone().into(), options).await.unwrap();
            let reply = call.reply().await.unwrap();
            assert!(!reply.text().is_empty(), "{wire} {delivery:?}: {reply:?}");
            assert!(reply.is_complete);
            assert!(
                matches!(
                    reply.stop,
                    Some(StopReason::EndTurn | StopReason::MaxTokens)
                ),
                "{wire} {delivery:?}: {reply:?}"
            );
            assert!(reply.usage.is_some(), "{wire} {delivery:?}: {reply:?}");
            assert_eq!(reply.messages.len(), 1, "{wire} {delivery:?}: {reply:?}");
        }
    }
    let counted = client(Wire::Anthropic)
        .count_tokens(
            &format!(r#"{{"model":"{id}","max_tokens":12,"messages":[{question}]}}"#).into(),
            &CallOptions::default(),
        )
        .await
        .unwrap();
    assert!(counted.is_some_and(|tokens| tokens > 2), "{counted:?}");
}

#[tokio::test]
#[ignore = "needs a server: THROUGHLINE_LLAMA_URL"]
async fn a_prompt_that_does_not_fit_is_an_overflow() {
    let words = "word ".repeat(40_000);
    let body = format!(r#"{{"max_tokens":4,"messages":[{{"role":"user","content":"{words}"}}]}}"#);
    let client = client(Wire::OpenAiChat);
    let call = client.send(body.into(), CallOptions::default()).await;
    let error = match call {
        Ok(call) => call.reply().await.unwrap_err(),
        Err(error) => error,
    };
    let kind = error.kind();
    assert!(
        matches!(
            kind,
            throughline_providers::error::CallErrorKind::ContextOverflow { window: Some(_) }
        ),
        "{error:?}"
    );
}
