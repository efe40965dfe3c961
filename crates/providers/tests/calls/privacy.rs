//! The key is nowhere but in the request, and what is said is not in the logs.

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};

use throughline_providers::client::CallOptions;
use throughline_providers::transport::TransportErrorKind;
use throughline_transcript::wire::Wire;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::scripted::{Answer, Part, Scripted, key, said, start};

/// Writes down everything that is logged, spans too.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("throughline")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut Fields(&mut self.0.lock().unwrap()));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Fields(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Fields(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn neither_errors_nor_logs_nor_debug_output_hold_the_key() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let key = key();
    let echo = |kind: &str| {
        format!(
            r#"{{"type":"error","error":{{"type":"{kind}","code":"{key}","message":"bad key {key}"}},"request_id":"{key}"}}"#
        )
    };
    let refusals = vec![
        Answer::error(401, &[("request-id", &key)], &echo("authentication_error")),
        Answer::error(401, &[], &format!("<html>{key}</html>")),
        Answer::error(400, &[], &echo(&key)),
        Answer::Fails(TransportErrorKind::Broken),
        Answer::stream(vec![
            Part::Bytes(start()),
            said("a secret word"),
            Part::Bytes(format!(
                "event: error\ndata: {}\n\n",
                echo("overloaded_error")
            )),
        ]),
        Answer::stream(vec![
            Part::Bytes(start()),
            said(&format!("your key is {key}")),
            Part::Breaks,
        ]),
    ];
    for answer in refusals {
        let provider = Scripted::new(vec![answer]);
        let builder = provider
            .builder(Wire::Anthropic)
            .retry(throughline_providers::retry::RetryPolicy::never());
        let built = format!("{builder:?}");
        let client = builder.build().unwrap();
        let body =
            r#"{"stream":true,"messages":[{"role":"user","content":"another secret word"}]}"#;
        let options = CallOptions::default();
        let error = match client.send(body.into(), options.clone()).await {
            Ok(call) => call.reply().await.unwrap_err(),
            Err(error) => error,
        };
        // It was sent, so that this test can fail.
        assert_eq!(
            provider.header(0, "x-api-key").as_deref(),
            Some(key.as_str())
        );
        let sent = format!("{:?}", provider.seen.lock().unwrap()[0].request);
        for shown in [
            format!("{error}"),
            format!("{error:?}"),
            format!("{:?} {:?}", error.report.message, error.partial),
            format!("{client:?} {options:?} {built}"),
            sent,
        ] {
            assert!(!shown.contains(&key), "{shown}");
        }
    }
    let log = log.0.lock().unwrap();
    assert!(log.contains("wire=\"anthropic\""), "{log}");
    assert!(!log.contains(&key), "{log}");
    assert!(!log.contains("secret word"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn retries_are_logged_without_what_was_said() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let provider = Scripted::new(vec![
        Answer::error(
            500,
            &[("request-id", "req_7")],
            r#"{"error":{"type":"api_error","message":"a secret word"}}"#,
        ),
        Answer::says("another secret word"),
    ]);
    let client = provider.client(Wire::Anthropic);
    let call = client
        .send(crate::scripted::STREAMED.into(), CallOptions::default())
        .await;
    call.unwrap().reply().await.unwrap();
    let log = log.0.lock().unwrap();
    assert!(log.contains("req_7") && log.contains("status=500"), "{log}");
    assert!(!log.contains("secret word"), "{log}");
}
