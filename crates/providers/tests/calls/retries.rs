//! When a call is tried again, and how long it waits.

use std::time::Duration;

use throughline_providers::client::CallOptions;
use throughline_providers::error::{CallError, CallErrorKind, Failure};
use throughline_providers::reply::Reply;
use throughline_providers::retry::RetryPolicy;
use throughline_providers::transport::TransportErrorKind;
use throughline_transcript::wire::Wire;
use tokio_util::sync::CancellationToken;

use crate::scripted::{Answer, Part, STREAMED, Scripted, ended, event, said, start};

const OVERLOADED: &str =
    r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;

async fn send(provider: &std::sync::Arc<Scripted>) -> Result<Reply, CallError> {
    let client = provider.client(Wire::Anthropic);
    client
        .send(STREAMED.into(), CallOptions::default())
        .await?
        .reply()
        .await
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_tried_again_with_growing_waits() {
    let provider = Scripted::new(vec![
        Answer::error(529, &[], OVERLOADED),
        Answer::Fails(TransportErrorKind::Connect),
        Answer::says("hello"),
    ]);
    let reply = send(&provider).await.unwrap();
    assert_eq!((reply.text().as_str(), reply.attempts), ("hello", 3));
    let seconds = provider.seconds();
    assert!((0.375..=0.5).contains(&seconds[1]), "{seconds:?}");
    assert!(
        (0.75..=1.0).contains(&(seconds[2] - seconds[1])),
        "{seconds:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_waits_as_long() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let provider = Scripted::new(vec![
            Answer::error(500, &[], ""),
            Answer::error(503, &[], ""),
            Answer::says("hello"),
        ]);
        send(&provider).await.unwrap();
        runs.push(provider.seconds());
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn the_provider_says_how_long_to_wait() {
    for (name, value, expected) in [
        ("retry-after", "7", 7.0),
        ("retry-after", "0.25", 0.25),
        ("retry-after-ms", "1500", 1.5),
    ] {
        let provider = Scripted::new(vec![
            Answer::error(429, &[(name, value)], ""),
            Answer::says("hello"),
        ]);
        send(&provider).await.unwrap();
        let waited = provider.seconds()[1];
        assert!(
            (waited - expected).abs() < 0.01,
            "{name}: {value}: {waited}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn too_long_a_wait_is_left_to_the_caller() {
    let provider = Scripted::new(vec![Answer::error(429, &[("retry-after", "3600")], "")]);
    let error = send(&provider).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Retry);
    assert_eq!(error.retry_after, Some(Duration::from_secs(3_600)));
    assert_eq!((provider.requests(), error.attempts), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn attempts_are_limited() {
    let provider = Scripted::new(
        (0..3)
            .map(|_| Answer::error(529, &[], OVERLOADED))
            .collect(),
    );
    let error = send(&provider).await.unwrap_err();
    assert_eq!((provider.requests(), error.attempts), (3, 3));
    assert_eq!(error.status, Some(529));
    assert_eq!(error.report.error_type.as_deref(), Some("overloaded_error"));
}

#[tokio::test(start_paused = true)]
async fn what_would_fail_again_is_not_tried_again() {
    let check = async |status, headers: &[(&'static str, &str)], body: &str, expected| {
        let provider = Scripted::new(vec![Answer::error(status, headers, body)]);
        let error = send(&provider).await.unwrap_err();
        assert_eq!(error.kind(), expected, "{error:?}");
        assert_eq!(provider.requests(), 1, "{error:?}");
    };
    let error = |kind: &str, code: &str, message: &str| {
        format!(
            r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}","details":{{"error_code":"{code}"}}}}}}"#
        )
    };
    check(
        400,
        &[],
        &error(
            "invalid_request_error",
            "",
            "prompt is too long: 203511 tokens > 200000 maximum",
        ),
        CallErrorKind::ContextOverflow {
            window: Some(200_000),
        },
    )
    .await;
    check(
        400,
        &[],
        &error("invalid_request_error", "", "no"),
        CallErrorKind::GiveUp,
    )
    .await;
    check(
        401,
        &[],
        &error("authentication_error", "", "no"),
        CallErrorKind::FixConfiguration,
    )
    .await;
    check(413, &[], "", CallErrorKind::BodyTooLarge).await;
    // Money does not come by waiting.
    check(
        429,
        &[],
        &error("rate_limit_error", "enforced_spend_limit_reached", "no"),
        CallErrorKind::FixConfiguration,
    )
    .await;
    check(
        429,
        &[],
        r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"no"}}"#,
        CallErrorKind::FixConfiguration,
    )
    .await;
    check(
        500,
        &[("x-should-retry", "false")],
        "",
        CallErrorKind::Retry,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_server_may_ask_for_another_try() {
    let provider = Scripted::new(vec![
        Answer::error(400, &[("x-should-retry", "true")], ""),
        Answer::says("hello"),
    ]);
    assert_eq!(send(&provider).await.unwrap().attempts, 2);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_fails_before_it_says_anything_is_tried_again() {
    let provider = Scripted::new(vec![
        Answer::stream(vec![Part::Bytes(event(
            "error",
            r#","error":{"type":"overloaded_error","message":"Overloaded"}"#,
        ))]),
        Answer::stream(vec![Part::Bytes(start()), Part::Breaks]),
        Answer::says("hello"),
    ]);
    assert_eq!(send(&provider).await.unwrap().attempts, 3);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_has_begun_is_only_tried_again_if_the_caller_wants_it() {
    let broken = || Answer::stream(vec![Part::Bytes(start()), said("half"), Part::Breaks]);
    let provider = Scripted::new(vec![broken()]);
    let error = send(&provider).await.unwrap_err();
    assert_eq!(
        error.failure,
        Failure::Transport(TransportErrorKind::Broken)
    );
    assert_eq!(error.kind(), CallErrorKind::Retry);
    let partial = error.partial.unwrap();
    assert!(!partial.is_complete);
    assert_eq!((partial.text().as_str(), partial.stop), ("half", None));
    assert_eq!(partial.request_id.as_deref(), Some("req_1"));

    let provider = Scripted::new(vec![broken(), Answer::says("whole")]);
    let client = provider
        .builder(Wire::Anthropic)
        .retry(RetryPolicy {
            restarts_broken_answers: true,
            ..RetryPolicy::default()
        })
        .build()
        .unwrap();
    let call = client.send(STREAMED.into(), CallOptions::default()).await;
    assert_eq!(call.unwrap().reply().await.unwrap().text(), "whole");
}

#[tokio::test(start_paused = true)]
async fn silence_has_a_limit() {
    // Before the head.
    let provider = Scripted::new(vec![Answer::Stalls]);
    let client = provider
        .builder(Wire::Anthropic)
        .retry(RetryPolicy::never())
        .response_timeout(Duration::from_secs(20))
        .build()
        .unwrap();
    let error = client
        .send(STREAMED.into(), CallOptions::default())
        .await
        .unwrap_err();
    assert_eq!(error.failure, Failure::Idle(Duration::from_secs(20)));

    // In the body. Pings and slow words are no silence.
    let slow = vec![
        Part::Bytes(start()),
        Part::Pause(Duration::from_secs(50)),
        Part::Bytes(event("ping", "")),
        Part::Pause(Duration::from_secs(50)),
        said("slow"),
        Part::Pause(Duration::from_secs(50)),
        ended(),
    ];
    let mut silent = slow.clone();
    silent.insert(5, Part::Pause(Duration::from_secs(30)));
    let provider = Scripted::new(vec![Answer::stream(slow), Answer::stream(silent)]);
    let client = provider.client(Wire::Anthropic);
    let options = CallOptions::default().idle_timeout(Duration::from_secs(60));
    let call = client.send(STREAMED.into(), options.clone()).await.unwrap();
    assert_eq!(call.reply().await.unwrap().text(), "slow");
    let call = client.send(STREAMED.into(), options).await.unwrap();
    let error = call.reply().await.unwrap_err();
    assert_eq!(error.failure, Failure::Idle(Duration::from_secs(60)));
    assert_eq!(error.partial.unwrap().text(), "slow");
}

#[tokio::test(start_paused = true)]
async fn a_call_is_cancelled_wherever_it_is() {
    let waits = vec![
        // At the head, in the wait before another try, in the body.
        Answer::Stalls,
        Answer::error(429, &[("retry-after", "100")], ""),
        Answer::stream(vec![
            Part::Bytes(start()),
            said("half"),
            Part::Pause(Duration::from_secs(100)),
            ended(),
        ]),
    ];
    for (at, answer) in waits.into_iter().enumerate() {
        let provider = Scripted::new(vec![answer]);
        let cancel = CancellationToken::new();
        let begun = tokio::time::Instant::now();
        let client = provider.client(Wire::Anthropic);
        let call = async {
            client
                .send(STREAMED.into(), CallOptions::cancelled_by(cancel.clone()))
                .await?
                .reply()
                .await
        };
        let stop = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(call, stop);
        let error = result.unwrap_err();
        assert_eq!(
            (error.failure.clone(), error.kind()),
            (Failure::Cancelled, CallErrorKind::Cancelled)
        );
        assert_eq!(begun.elapsed().as_secs(), 10, "{at}");
        assert_eq!(
            error.partial.map(|partial| partial.text()),
            (at == 2).then(|| "half".to_owned())
        );
    }
    let cancel = CancellationToken::new();
    cancel.cancel();
    let provider = Scripted::new(vec![]);
    let client = provider.client(Wire::Anthropic);
    let sent = client
        .send(STREAMED.into(), CallOptions::cancelled_by(cancel))
        .await;
    assert_eq!(sent.unwrap_err().failure, Failure::Cancelled);
    assert_eq!(provider.requests(), 0);
}
