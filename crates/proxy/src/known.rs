//! What of a conversation is known, and how far a request goes along with it.
//!
//! Of each message its length and a hash of its bytes are kept, and the digest of everything up to it. A request whose
//! bytes are the known ones is passed over at the speed of memory; where a client writes a message differently this
//! time (it moves its cache marker, say), the canonical digest tells that it is the same.

use bytestring::ByteString;
use throughline_transcript::body::read_message;
use throughline_transcript::digest::{Chain, Digest, message_digest};
use throughline_transcript::json::Raw;
use throughline_transcript::message::Message;
use throughline_transcript::outline::{OutlineError, Reader, Span};
use xxhash_rust::xxh3::xxh3_64;

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Digest of everything up to and with it.
    pub(crate) chain: Digest,
    /// Length and hash of its bytes as they were sent last; none if they were never seen here.
    pub(crate) bytes: Option<(u32, u64)>,
}

impl Known {
    /// A message whose bytes were never seen.
    pub(crate) fn unseen(chain: Digest) -> Self {
        Self { chain, bytes: None }
    }

    /// A message that was sent like this.
    pub(crate) fn seen(chain: Digest, text: &str) -> Self {
        let len = u32::try_from(text.len()).ok();
        Self {
            chain,
            bytes: len.map(|len| (len, xxh3_64(text.as_bytes()))),
        }
    }
}

/// How far a request goes along with a conversation.
#[derive(Clone, Debug)]
pub(crate) struct Followed {
    /// Where the messages that go along stand in the body.
    pub(crate) spans: Vec<Span>,
    /// How those of them look now that were written differently, with their positions.
    learned: Vec<(usize, Known)>,
    /// The message after them, if it was read already.
    pub(crate) next: Option<Span>,
    /// The reader behind all of them.
    pub(crate) reader: Reader,
}

impl Followed {
    /// Messages that go along.
    pub(crate) fn count(&self) -> usize {
        self.spans.len()
    }

    /// Keeps how messages look now.
    pub(crate) fn teach(&self, known: &mut [Known]) {
        for (index, message) in &self.learned {
            if let Some(slot) = known.get_mut(*index) {
                *slot = *message;
            }
        }
    }
}

/// Walks along a request as far as its messages are the known ones.
///
/// # Errors
/// If the body is no JSON.
pub(crate) fn follow(known: &[Known], mut reader: Reader) -> Result<Followed, OutlineError> {
    let mut spans = Vec::with_capacity(known.len() + 4);
    let mut learned = Vec::new();
    let mut next = None;
    let mut chain = Chain::new().digest();
    for (index, message) in known.iter().enumerate() {
        if let Some((len, hash)) = message.bytes
            && let Some(span) = reader.skip(len as usize, |bytes| xxh3_64(bytes) == hash)
        {
            spans.push(span);
            chain = message.chain;
            continue;
        }
        let Some(span) = reader.next()? else { break };
        let text = reader.message(span);
        let digest = parsed(text).map(|read| Chain::at(chain).push(message_digest(&read)));
        if digest != Some(message.chain) {
            next = Some(span);
            break;
        }
        spans.push(span);
        learned.push((index, Known::seen(message.chain, text)));
        chain = message.chain;
    }
    Ok(Followed {
        spans,
        learned,
        next,
        reader,
    })
}

/// Reads a message from a copy of its text, so that the body that it came in can go.
pub(crate) fn parsed(text: &str) -> Option<Message> {
    // It was walked over, so it is JSON; what is no object is no message.
    read_message(&Raw::parse(ByteString::from(text)).ok()?)
}

#[cfg(test)]
mod tests {
    use throughline_transcript::wire::Wire;

    use super::*;

    fn reader(messages: &[&str]) -> Reader {
        let body = format!(r#"{{"messages":[{}]}}"#, messages.join(", "));
        Reader::new(Wire::Anthropic, body.into()).unwrap()
    }

    fn known(messages: &[&str]) -> Vec<Known> {
        let mut chain = Chain::new();
        messages
            .iter()
            .map(|text| Known::seen(chain.push(message_digest(&parsed(text).unwrap())), text))
            .collect()
    }

    const USER: &str = r#"{"role":"user","content":"a"}"#;
    const USER_MARKED: &str = r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}"#;
    const ANSWER: &str = r#"{"role":"assistant","content":"b"}"#;
    const OTHER: &str = r#"{"role":"assistant","content":"c"}"#;

    #[track_caller]
    fn check(before: &[&str], now: &[&str], count: usize, next: Option<&str>) {
        let mut known = known(before);
        let all_unseen: Vec<Known> = known.iter().map(|m| Known::unseen(m.chain)).collect();
        for start in [known.clone(), all_unseen] {
            let followed = follow(&start, reader(now)).unwrap();
            assert_eq!(followed.count(), count);
            let reader = &followed.reader;
            assert_eq!(followed.next.map(|span| reader.message(span)), next);
            for (span, text) in followed.spans.iter().zip(now) {
                assert_eq!(reader.message(*span), *text);
            }
            // What was learned is known by its bytes from then on.
            followed.teach(&mut known);
            let again = follow(&known, self::reader(now)).unwrap();
            assert_eq!((again.count(), again.learned.len()), (count, 0));
        }
    }

    #[test]
    fn a_request_goes_along_as_far_as_it_says_the_same() {
        check(&[], &[USER], 0, None);
        check(&[USER, ANSWER], &[USER, ANSWER, USER], 2, None);
        check(
            &[USER_MARKED, ANSWER],
            &[USER, ANSWER, USER_MARKED],
            2,
            None,
        );
        check(&[USER, ANSWER, USER], &[USER, ANSWER], 2, None);
        check(&[USER, ANSWER], &[USER, OTHER, USER], 1, Some(OTHER));
        check(&[USER, ANSWER], &[OTHER], 0, Some(OTHER));
        check(&[USER, ANSWER], &[], 0, None);
        check(&[USER], &["7"], 0, Some("7"));
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        let broken = r#"{"messages":[{"role":"user","content":"a"},{"#;
        let reader = Reader::new(Wire::Anthropic, broken.into()).unwrap();
        assert!(follow(&known(&[USER, ANSWER]), reader).is_err());
    }
}
