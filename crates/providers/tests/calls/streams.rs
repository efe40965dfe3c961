//! What a caller sees of an answer.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use throughline_providers::client::{CallOptions, Delivery};
use throughline_providers::error::{CallErrorKind, Failure};
use throughline_providers::reply::{Event, Reply};
use throughline_providers::retry::RetryPolicy;
use throughline_providers::stop::{Next, StopReason};
use throughline_transcript::wire::Wire;

use crate::scripted::{Answer, Part, STREAMED, Scripted, ended, event, said, start};

const WHOLE: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":3}}"#;

fn without_transit(mut reply: Reply) -> Reply {
    reply.request_id = None;
    reply.rate_limits = Default::default();
    reply.time_to_first_event = None;
    reply
}

#[tokio::test(start_paused = true)]
async fn events_come_as_they_arrive_and_end_in_the_reply() {
    let provider = Scripted::new(vec![Answer::stream(vec![
        Part::Pause(Duration::from_millis(800)),
        Part::Bytes(start()),
        said("hel"),
        Part::Pause(Duration::from_secs(5)),
        ended(),
    ])]);
    let client = provider.client(Wire::Anthropic);
    let call = client
        .send(STREAMED.into(), CallOptions::default())
        .await
        .unwrap();
    let events: Vec<Event> = call.try_collect().await.unwrap();
    let Some((Event::Reply(reply), before)) = events.split_last() else {
        panic!("{events:?}");
    };
    assert!(matches!(
        before,
        [
            Event::Started { .. },
            Event::Usage(_),
            Event::Text(_),
            Event::BlockDone { index: 0 },
            Event::Usage(_)
        ]
    ));
    assert_eq!(reply.time_to_first_event, Some(Duration::from_millis(800)));
    assert_eq!(reply.request_id.as_deref(), Some("req_1"));
    assert_eq!(reply.rate_limits.requests.remaining, Some(59));
    assert_eq!(reply.stop.as_ref().map(StopReason::next), Some(Next::Done));
    assert_eq!((reply.attempts, reply.is_complete), (1, true));
}

#[tokio::test(start_paused = true)]
async fn streamed_or_whole_the_reply_is_the_same() {
    let provider = Scripted::new(vec![Answer::says("hello"), Answer::whole(WHOLE)]);
    let client = provider.client(Wire::Anthropic);
    let send = async |delivery| {
        let options = CallOptions::default().delivery(delivery);
        let call = client.send(STREAMED.into(), options).await.unwrap();
        without_transit(call.reply().await.unwrap())
    };
    let streamed = send(Delivery::Streamed).await;
    let whole = send(Delivery::Whole).await;
    assert_eq!(streamed, whole);
    assert_eq!(provider.body(0), STREAMED);
    assert_eq!(provider.body(1), STREAMED.replace(r#""stream":true,"#, ""));
    assert_eq!(provider.header(0, "accept").unwrap(), "text/event-stream");
    assert_eq!(provider.header(1, "accept").unwrap(), "application/json");
}

#[tokio::test(start_paused = true)]
async fn a_whole_answer_has_events_too() {
    let provider = Scripted::new(vec![Answer::whole(WHOLE)]);
    let client = provider.client(Wire::Anthropic);
    let call = client
        .send("{}".into(), CallOptions::default())
        .await
        .unwrap();
    let events: Vec<Event> = call.try_collect().await.unwrap();
    assert!(matches!(
        &events[..],
        [Event::Started { .. }, Event::Text(text), Event::Usage(_), Event::Reply(_)] if text == "hello"
    ));
}

#[tokio::test(start_paused = true)]
async fn a_cut_stream_ends_in_an_error() {
    // The head is there, then words, then nothing more: no error of the connection, only the end is missing.
    let cuts = [
        vec![Part::Bytes(start()), said("half")],
        vec![
            Part::Bytes(start()),
            said("half"),
            Part::Bytes("event: message_st".to_owned()),
        ],
    ];
    for parts in cuts {
        let provider = Scripted::new(vec![Answer::stream(parts)]);
        let client = provider.client(Wire::Anthropic);
        let mut call = client
            .send(STREAMED.into(), CallOptions::default())
            .await
            .unwrap();
        let mut events = Vec::new();
        let error = loop {
            match call.next().await.unwrap() {
                Ok(event) => events.push(event),
                Err(error) => break error,
            }
        };
        assert_eq!(
            (error.failure.clone(), error.kind()),
            (Failure::CutOff, CallErrorKind::Retry)
        );
        assert_eq!(error.partial.unwrap().text(), "half");
        assert!(!events.iter().any(|event| matches!(event, Event::Reply(_))));
        assert!(call.next().await.is_none(), "nothing follows an error");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_in_the_middle_is_told_after_what_came_before_it() {
    let error = event(
        "error",
        r#","error":{"type":"overloaded_error","message":"Overloaded"}"#,
    );
    let Part::Bytes(text) = said("half") else {
        return;
    };
    // All in one chunk.
    let provider = Scripted::new(vec![Answer::stream(vec![Part::Bytes(
        start() + &text + &error,
    )])]);
    let client = provider.client(Wire::Anthropic);
    let call = client
        .send(STREAMED.into(), CallOptions::default())
        .await
        .unwrap();
    let events: Vec<_> = call.collect().await;
    let (last, before) = events.split_last().unwrap();
    assert!(matches!(before.last(), Some(Ok(Event::Text(text))) if text == "half"));
    let error = last.as_ref().unwrap_err();
    assert_eq!(error.report.error_type.as_deref(), Some("overloaded_error"));
    assert_eq!(
        (error.status, error.kind()),
        (Some(200), CallErrorKind::Retry)
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_beginning_is_announced() {
    let provider = Scripted::new(vec![
        Answer::stream(vec![Part::Bytes(start()), said("half"), Part::Breaks]),
        Answer::says("whole"),
    ]);
    let client = provider
        .builder(Wire::Anthropic)
        .retry(RetryPolicy {
            restarts_broken_answers: true,
            ..RetryPolicy::default()
        })
        .build()
        .unwrap();
    let call = client
        .send(STREAMED.into(), CallOptions::default())
        .await
        .unwrap();
    let events: Vec<Event> = call.try_collect().await.unwrap();
    let at = events
        .iter()
        .position(|event| *event == Event::Restarted { attempt: 2 })
        .unwrap();
    assert!(matches!(&events[at - 1], Event::Text(text) if text == "half"));
    assert!(matches!(&events[at + 1], Event::Started { .. }));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_at_all_is_a_wrong_address() {
    for body in ["<html>Sign in</html>", r#"{"hello":1}"#] {
        let provider = Scripted::new(vec![Answer::whole(body)]);
        let client = provider.client(Wire::Anthropic);
        let call = client
            .send("{}".into(), CallOptions::default())
            .await
            .unwrap();
        let error = call.reply().await.unwrap_err();
        assert_eq!(
            (error.failure.clone(), error.kind()),
            (Failure::Malformed, CallErrorKind::FixConfiguration)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_no_object_is_not_sent() {
    let provider = Scripted::new(vec![]);
    let client = provider.client(Wire::OpenAiChat);
    let sent = client.send("[]".into(), CallOptions::default()).await;
    assert_eq!(sent.unwrap_err().failure, Failure::Request);
    assert_eq!(provider.requests(), 0);
}

#[tokio::test(start_paused = true)]
async fn chat_and_responses_are_streamed_too() {
    let chat = concat!(
        "data: {\"id\":\"c1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    );
    let item = r#"{"id":"m1","type":"message","role":"assistant","content":[{"type":"output_text","text":"hello","annotations":[]}]}"#;
    let responses = [
        event(
            "response.output_item.done",
            &format!(r#","output_index":0,"item":{item}"#),
        ),
        event(
            "response.completed",
            r#","response":{"id":"r1","status":"completed","output":[]}"#,
        ),
    ]
    .concat();
    for (wire, text) in [
        (Wire::OpenAiChat, chat),
        (Wire::OpenAiResponses, &responses),
    ] {
        let provider = Scripted::new(vec![Answer::stream(vec![Part::Bytes(text.to_owned())])]);
        let client = provider.client(wire);
        let call = client
            .send(STREAMED.into(), CallOptions::default())
            .await
            .unwrap();
        assert_eq!(call.reply().await.unwrap().text(), "hello");
    }
}
