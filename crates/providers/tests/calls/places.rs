//! Which addresses are asked, with which headers: answers, counts, lists of models.

use throughline_providers::client::{ApiVersion, CallOptions};
use throughline_providers::credential::AuthStyle;
use throughline_providers::error::{CallErrorKind, Failure};
use throughline_transcript::wire::Wire;

use crate::scripted::{Answer, STREAMED, Scripted, key};

#[tokio::test(start_paused = true)]
async fn each_wire_has_its_address_and_headers() {
    let bearer = Some(format!("Bearer {}", key()));
    let check = async |wire,
                       path: &str,
                       x_api_key: Option<String>,
                       authorization,
                       version: Option<&str>| {
        let provider = Scripted::new(vec![Answer::error(404, &[], "")]);
        let client = provider.client(wire);
        let sent = client.send(STREAMED.into(), CallOptions::default()).await;
        assert_eq!(sent.unwrap_err().kind(), CallErrorKind::FixConfiguration);
        assert_eq!(provider.uri(0), format!("https://provider.test/v1/{path}"));
        assert_eq!(provider.header(0, "x-api-key"), x_api_key);
        assert_eq!(provider.header(0, "authorization"), authorization);
        assert_eq!(provider.header(0, "anthropic-version").as_deref(), version);
        assert_eq!(
            provider.header(0, "content-type").as_deref(),
            Some("application/json")
        );
        assert_eq!(provider.body(0), STREAMED);
    };
    check(
        Wire::Anthropic,
        "messages",
        Some(key()),
        None,
        Some("2023-06-01"),
    )
    .await;
    check(
        Wire::OpenAiChat,
        "chat/completions",
        None,
        bearer.clone(),
        None,
    )
    .await;
    check(Wire::OpenAiResponses, "responses", None, bearer, None).await;
}

#[tokio::test(start_paused = true)]
async fn versions_styles_betas_and_headers_are_settings() {
    let provider = Scripted::new(vec![Answer::error(400, &[], "")]);
    let client = provider
        .builder(Wire::Anthropic)
        .auth_style(AuthStyle::Bearer)
        .api_version(ApiVersion::V2026_10_21)
        .beta("compact-2026-09-04")
        .header("x-team", "one")
        .header("x-other", "kept")
        .build()
        .unwrap();
    let mut options = CallOptions::default()
        .beta("task-budgets-2026-03-13")
        .beta("compact-2026-09-04");
    options.headers.insert("x-team", "two".parse().unwrap());
    client.send("{}".into(), options).await.unwrap_err();
    let header = |name| provider.header(0, name).unwrap();
    assert_eq!(header("authorization"), format!("Bearer {}", key()));
    assert_eq!(header("anthropic-version"), "2026-10-21");
    assert_eq!(
        header("anthropic-beta"),
        "compact-2026-09-04,task-budgets-2026-03-13"
    );
    assert_eq!(
        (header("x-team"), header("x-other")),
        ("two".to_owned(), "kept".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn tokens_are_counted_where_the_wire_can() {
    let provider = Scripted::new(vec![
        Answer::whole(r#"{"input_tokens":2095}"#),
        Answer::whole(r#"{"object":"response.input_tokens","input_tokens":11}"#),
        Answer::whole("{}"),
    ]);
    let options = CallOptions::default();
    let anthropic = provider.client(Wire::Anthropic);
    assert_eq!(
        anthropic
            .count_tokens(&STREAMED.into(), &options)
            .await
            .unwrap(),
        Some(2_095)
    );
    assert_eq!(
        provider.uri(0),
        "https://provider.test/v1/messages/count_tokens"
    );
    assert_eq!(
        provider.body(0),
        r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#
    );
    let responses = provider.client(Wire::OpenAiResponses);
    let count = responses
        .count_tokens(&r#"{"input":"hi"}"#.into(), &options)
        .await;
    assert_eq!(count.unwrap(), Some(11));
    assert_eq!(
        provider.uri(1),
        "https://provider.test/v1/responses/input_tokens"
    );
    let chat = provider.client(Wire::OpenAiChat);
    assert_eq!(
        chat.count_tokens(&STREAMED.into(), &options).await.unwrap(),
        None
    );
    let error = anthropic
        .count_tokens(&STREAMED.into(), &options)
        .await
        .unwrap_err();
    assert_eq!(error.failure, Failure::Malformed);
}

#[tokio::test(start_paused = true)]
async fn all_pages_of_a_list_are_read() {
    let provider = Scripted::new(vec![
        Answer::whole(
            r#"{"data":[{"id":"a","max_input_tokens":5}],"has_more":true,"last_id":"a"}"#,
        ),
        Answer::whole(r#"{"data":[{"id":"b"}],"has_more":false,"last_id":"b"}"#),
    ]);
    let models = provider
        .client(Wire::Anthropic)
        .models(&CallOptions::default())
        .await
        .unwrap();
    let found: Vec<_> = models
        .iter()
        .map(|model| (model.id.as_str(), model.window))
        .collect();
    assert_eq!(found, [("a", Some(5)), ("b", None)]);
    assert_eq!(
        provider.uri(1),
        "https://provider.test/v1/models?limit=1000&after_id=a"
    );
}

#[tokio::test(start_paused = true)]
async fn local_servers_are_asked_for_the_window_that_they_serve() {
    let windows = async |answers: Vec<Answer>, places: &[&str]| {
        let provider = Scripted::new(answers);
        let client = provider.client(Wire::OpenAiChat);
        let models = client.models(&CallOptions::default()).await.unwrap();
        let asked: Vec<String> = (0..provider.requests())
            .map(|at| provider.uri(at))
            .collect();
        let expected: Vec<String> = places
            .iter()
            .map(|path| format!("https://provider.test/{path}"))
            .collect();
        assert_eq!(asked, expected);
        models
            .into_iter()
            .map(|model| model.window)
            .collect::<Vec<_>>()
    };
    let llama = windows(
        vec![
            Answer::whole(
                r#"{"data":[{"id":"s","owned_by":"llamacpp","meta":{"n_ctx_train":8192}}]}"#,
            ),
            Answer::whole(r#"{"default_generation_settings":{"n_ctx":4096}}"#),
        ],
        &["v1/models", "props"],
    );
    assert_eq!(llama.await, [Some(4_096)]);
    let ollama = windows(
        vec![
            Answer::whole(
                r#"{"data":[{"id":"a:1b","owned_by":"library"},{"id":"b:1b","owned_by":"library"}]}"#,
            ),
            Answer::whole(r#"{"models":[{"name":"b:1b","context_length":4096}]}"#),
            Answer::whole(r#"{"parameters":"num_ctx 2048","model_info":{}}"#),
        ],
        &["v1/models", "api/ps", "api/show"],
    );
    assert_eq!(ollama.await, [Some(2_048), Some(4_096)]);
    let lm_studio = windows(
        vec![
            Answer::whole(r#"{"data":[{"id":"q","owned_by":"organization_owner"}]}"#),
            Answer::error(404, &[], "not here"),
        ],
        &["v1/models", "api/v0/models"],
    );
    assert_eq!(lm_studio.await, [None]);
    let vllm = windows(
        vec![Answer::whole(
            r#"{"data":[{"id":"q","owned_by":"vllm","max_model_len":32768}]}"#,
        )],
        &["v1/models"],
    );
    assert_eq!(vllm.await, [Some(32_768)]);
}
