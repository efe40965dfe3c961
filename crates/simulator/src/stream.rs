//! From events to bytes with moments: their pace, their chunks, and the faults of a stream.

use std::time::Duration;

use bytes::Bytes;

use crate::dice::Dice;
use crate::exchange::{Ending, Piece};
use crate::faults::Fault;
use crate::latency::Latency;

/// How the bytes of a streamed answer are cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chunking {
    /// One piece for each event.
    Events,
    /// As a network does: events are cut anywhere, or come together, by the seed.
    #[default]
    Seeded,
}

/// One event of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// Output tokens that were written when it is sent.
    pub(crate) tokens: u64,
    pub(crate) text: String,
}

/// What a schedule needs to know.
pub(crate) struct Pace<'a> {
    pub(crate) latency: &'a Latency,
    /// From the start of the request to the first event.
    pub(crate) first_after: Duration,
    pub(crate) chunking: Chunking,
    pub(crate) fault: Option<Fault>,
    /// What is sent while the model is silent.
    pub(crate) ping: Option<&'static str>,
    /// The event of a provider that fails in the middle.
    pub(crate) error: String,
}

/// Sends the frames of a stream.
pub(crate) fn streamed(
    mut frames: Vec<Frame>,
    pace: &Pace<'_>,
    dice: &mut Dice,
) -> (Vec<Piece>, Ending) {
    let mut ending = Ending::Complete;
    // At least one event comes, and not all of them.
    let last = frames.len().saturating_sub(1).max(1);
    let mut stop_at = |events: Option<u32>| {
        let wanted = events.map_or_else(|| dice.between(1, last), |events| events as usize);
        wanted.clamp(1, last)
    };
    match pace.fault {
        Some(Fault::Cut(events)) => {
            ending = Ending::Cut;
            let kept = stop_at(events);
            let torn = frames.get(kept).cloned();
            frames.truncate(kept);
            if let Some(mut torn) = torn {
                // Half an event, as the connection breaks.
                torn.text
                    .truncate(torn.text.floor_char_boundary(torn.text.len() / 2));
                frames.push(torn);
            }
        }
        Some(Fault::Stall(events)) => {
            ending = Ending::Stall;
            let kept = stop_at(events);
            frames.truncate(kept);
        }
        Some(Fault::StreamError(events)) => {
            let kept = stop_at(events);
            frames.truncate(kept);
            frames.push(Frame {
                tokens: frames.last().map_or(0, |frame| frame.tokens),
                text: pace.error.clone(),
            });
        }
        _ => {}
    }
    let mut pieces: Vec<Piece> = Vec::with_capacity(frames.len());
    let mut before = pace.first_after;
    for frame in frames {
        let after = pace.first_after + pace.latency.output(frame.tokens);
        if let Some(ping) = pace.ping
            && !pace.latency.ping_every.is_zero()
        {
            let mut next = before + pace.latency.ping_every;
            while next < after {
                pieces.push(piece(next, ping.to_owned()));
                next += pace.latency.ping_every;
            }
        }
        before = after;
        pieces.push(piece(after, frame.text));
    }
    match pace.chunking {
        Chunking::Events => (pieces, ending),
        Chunking::Seeded => (rechunked(pieces, dice), ending),
    }
}

/// Sends a body that is not streamed.
pub(crate) fn whole(body: String, after: Duration, fault: Option<Fault>) -> (Vec<Piece>, Ending) {
    let bytes = Bytes::from(body);
    let half = bytes.slice(..bytes.len() / 2);
    match fault {
        Some(Fault::Cut(_)) => (vec![Piece { after, bytes: half }], Ending::Cut),
        Some(Fault::Stall(_)) => (vec![Piece { after, bytes: half }], Ending::Stall),
        _ => (vec![Piece { after, bytes }], Ending::Complete),
    }
}

fn piece(after: Duration, text: String) -> Piece {
    Piece {
        after,
        bytes: Bytes::from(text),
    }
}

/// Cuts some pieces in two and lets others come together with the next one.
fn rechunked(pieces: Vec<Piece>, dice: &mut Dice) -> Vec<Piece> {
    let mut cut = Vec::with_capacity(pieces.len());
    let mut held: Vec<u8> = Vec::new();
    let last = pieces.len().saturating_sub(1);
    for (index, piece) in pieces.into_iter().enumerate() {
        let after = piece.after;
        held.extend_from_slice(&piece.bytes);
        match dice.below(4) {
            // It waits for the next one.
            0 if index < last => continue,
            1 => {
                let at = dice.below(held.len());
                let rest = held.split_off(at);
                if !held.is_empty() {
                    cut.push(Piece {
                        after,
                        bytes: Bytes::from(std::mem::take(&mut held)),
                    });
                }
                held = rest;
                if index < last {
                    continue;
                }
            }
            _ => {}
        }
        cut.push(Piece {
            after,
            bytes: Bytes::from(std::mem::take(&mut held)),
        });
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(count: u64) -> Vec<Frame> {
        (0..count)
            .map(|tokens| Frame {
                tokens,
                text: format!("event {tokens}\n\n"),
            })
            .collect()
    }

    fn pace(latency: &Latency, chunking: Chunking, fault: Option<Fault>) -> Pace<'_> {
        Pace {
            latency,
            first_after: Duration::from_secs(1),
            chunking,
            fault,
            ping: Some("ping\n\n"),
            error: "error\n\n".to_owned(),
        }
    }

    fn text(pieces: &[Piece]) -> String {
        pieces
            .iter()
            .map(|piece| String::from_utf8_lossy(&piece.bytes).into_owned())
            .collect()
    }

    #[test]
    fn however_it_is_cut_the_bytes_are_the_same() {
        let latency = Latency::none();
        let whole: String = frames(50).into_iter().map(|frame| frame.text).collect();
        for seed in 0..20 {
            let mut dice = Dice::new(seed, "test", &[]);
            let (pieces, ending) = streamed(
                frames(50),
                &pace(&latency, Chunking::Seeded, None),
                &mut dice,
            );
            assert_eq!((text(&pieces), ending), (whole.clone(), Ending::Complete));
            assert!(pieces.iter().all(|piece| !piece.bytes.is_empty()));
            assert!(pieces.is_sorted_by_key(|piece| piece.after));
        }
    }

    #[test]
    fn faults_end_a_stream_where_they_say() {
        let latency = Latency::none();
        let check = |fault, expected: &str, ending| {
            let mut dice = Dice::new(1, "test", &[]);
            let sent = streamed(
                frames(4),
                &pace(&latency, Chunking::Events, Some(fault)),
                &mut dice,
            );
            assert_eq!((text(&sent.0).as_str(), sent.1), (expected, ending));
        };
        check(
            Fault::Cut(Some(2)),
            "event 0\n\nevent 1\n\neven",
            Ending::Cut,
        );
        check(
            Fault::Cut(Some(99)),
            "event 0\n\nevent 1\n\nevent 2\n\neven",
            Ending::Cut,
        );
        check(Fault::Stall(Some(1)), "event 0\n\n", Ending::Stall);
        check(
            Fault::StreamError(Some(1)),
            "event 0\n\nerror\n\n",
            Ending::Complete,
        );
    }

    #[test]
    fn silence_is_filled_with_pings() {
        let latency = Latency {
            output_tokens_per_s: 1,
            ..Latency::real()
        };
        let mut dice = Dice::new(1, "test", &[]);
        let late = vec![
            Frame {
                tokens: 0,
                text: "a".to_owned(),
            },
            Frame {
                tokens: 12,
                text: "b".to_owned(),
            },
        ];
        let (pieces, _) = streamed(late, &pace(&latency, Chunking::Events, None), &mut dice);
        let seen: Vec<_> = pieces
            .iter()
            .map(|piece| (piece.after.as_secs(), piece.bytes.first().copied()))
            .collect();
        assert_eq!(
            seen,
            [
                (1, Some(b'a')),
                (6, Some(b'p')),
                (11, Some(b'p')),
                (13, Some(b'b'))
            ]
        );
    }
}
