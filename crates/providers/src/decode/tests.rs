//! The matrix of wires and endings, and that neither cuts nor junk matter.

mod anthropic;
mod openai_chat;
mod openai_responses;

use proptest::prelude::*;

use super::*;
use crate::stop::StopReason;

/// The result of a stream.
#[derive(Debug, PartialEq)]
struct DecodedAnswer {
    events: Vec<Event>,
    end: Result<Reply, DecodeError>,
    partial: Reply,
}

fn decode(wire: Wire, chunks: &[&[u8]]) -> DecodedAnswer {
    let mut decoder = Decoder::new(wire);
    let mut events = Vec::new();
    let pushed = chunks
        .iter()
        .try_for_each(|chunk| decoder.push(chunk, &mut events));
    DecodedAnswer {
        events,
        end: pushed.and_then(|()| decoder.finish()),
        partial: decoder.partial(),
    }
}

/// Events as text: what a reader of the stream sees, in one line each.
fn shown(events: &[Event]) -> Vec<String> {
    events
        .iter()
        .map(|event| match event {
            Event::Started { model, id } => format!(
                "started {} {}",
                model.as_deref().unwrap_or("-"),
                id.as_deref().unwrap_or("-")
            ),
            Event::Ping => "ping".to_owned(),
            Event::Text(text) => format!("text {text}"),
            Event::Thinking(text) => format!("thinking {text}"),
            Event::ToolCall { index, id, name } => format!("call {index} {id} {name}"),
            Event::ToolInput { index, delta } => format!("input {index} {delta}"),
            Event::BlockDone { index } => format!("done {index}"),
            Event::Usage(reported) => format!(
                "usage {} {}",
                reported.last_pass.prompt(),
                reported.last_pass.output
            ),
            other => format!("{other:?}"),
        })
        .collect()
}

#[track_caller]
fn messages(reply: &Reply) -> Vec<&str> {
    reply.messages.iter().map(Raw::as_str).collect()
}

/// A stream of named events.
fn named(events: &[&str]) -> String {
    events
        .iter()
        .map(|data| {
            let name = Raw::parse((*data).to_owned())
                .unwrap()
                .string_field("type")
                .unwrap();
            format!("event: {name}\ndata: {data}\n\n")
        })
        .collect()
}

/// A stream of chunks without names, as Chat has them.
fn unnamed(chunks: &[&str]) -> String {
    chunks
        .iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect()
}

/// Streams that the properties cut.
fn streams() -> Vec<(Wire, String)> {
    let mut streams = vec![];
    streams.extend(anthropic::streams().map(|text| (Wire::Anthropic, text)));
    streams.extend(openai_chat::streams().map(|text| (Wire::OpenAiChat, text)));
    streams.extend(openai_responses::streams().map(|text| (Wire::OpenAiResponses, text)));
    streams
}

proptest! {
    #[test]
    fn cuts_between_chunks_do_not_matter(
        which in any::<prop::sample::Index>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let streams = streams();
        let (wire, text) = which.get(&streams);
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(decode(*wire, &chunks), decode(*wire, &[bytes]));
    }

    #[test]
    fn a_stream_that_is_cut_never_looks_complete(
        which in any::<prop::sample::Index>(),
        end in any::<prop::sample::Index>(),
    ) {
        let streams = streams();
        let (wire, text) = which.get(&streams);
        let whole = decode(*wire, &[text.as_bytes()]);
        let cut = decode(*wire, &[&text.as_bytes()[..end.index(text.len())]]);
        prop_assert!(!cut.partial.is_complete);
        prop_assert!(cut.events.len() <= whole.events.len());
        // At most the white space behind the last event may be missing.
        if let Ok(reply) = &cut.end {
            prop_assert_eq!(Ok(reply), whole.end.as_ref());
        }
        for message in &cut.partial.messages {
            prop_assert!(Raw::parse(message.as_str().to_owned()).is_ok());
        }
    }

    #[test]
    fn junk_is_no_answer(
        wire in prop::sample::select(Wire::ALL.to_vec()),
        bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        prop_assert!(decode(wire, &[&bytes]).end.is_err());
    }

    #[test]
    fn no_order_of_events_is_fatal(
        wire in prop::sample::select(Wire::ALL.to_vec()),
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..40),
    ) {
        let streams: Vec<Vec<String>> = streams()
            .into_iter()
            .map(|(_, text)| text.split_inclusive("\n\n").map(str::to_owned).collect())
            .collect();
        let text: String = picks.iter().map(|(a, b)| b.get(&a.get(&streams)[..]).as_str()).collect();
        let decoded = decode(wire, &[text.as_bytes()]);
        prop_assert!(!decoded.partial.is_complete);
    }

    #[test]
    fn no_body_is_fatal(
        wire in prop::sample::select(Wire::ALL.to_vec()),
        body in r#"\{("(type|content|choices|output|message|error|status|stop_reason|finish_reason)":("end_turn"|"stop"|null|7|\[\]|\{\}|\[\{"type":"text","text":""\}\]),?){0,6}\}"#,
    ) {
        let _ = read_whole(wire, &body.into());
    }
}

#[test]
fn what_follows_the_end_is_not_read() {
    for (wire, text) in streams() {
        let whole = decode(wire, &[text.as_bytes()]);
        let longer = format!("{text}data: {{broken\n\n");
        if whole.end.is_ok() {
            assert_eq!(decode(wire, &[longer.as_bytes()]), whole);
        }
    }
}
