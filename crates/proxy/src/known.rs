//! How far a request repeats a conversation that is known.
//!
//! Of each known message its length, a hash of its bytes and the digest of everything up to it are kept. A message whose
//! bytes are the known ones is skipped at memory speed. Where a client writes a message differently this time
//! (it moves its cache marker, say), the canonical digest shows that it is the same.

use throughline_transcript::digest::{Chain, Digest, message_digest};
use throughline_transcript::message::{Message, Role};
use throughline_transcript::outline::{Outline, OutlineError, Reader, Span};
use xxhash_rust::xxh3::xxh3_64;

/// A message of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownMessage {
    /// Digest of everything up to and with it.
    pub(crate) chain: Digest,
    /// Its bytes as last sent; `None` if they were never seen.
    bytes: Option<SentBytes>,
}

/// The bytes of a message as they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SentBytes {
    len: u32,
    hash: u64,
    /// Whether the message is an instruction of the operator's.
    is_operators: bool,
}

impl KnownMessage {
    /// A message whose bytes were never seen.
    pub(crate) fn unseen(chain: Digest) -> Self {
        Self { chain, bytes: None }
    }

    /// A message of this role that was sent as `text`.
    pub(crate) fn seen(chain: Digest, role: Role, text: &str) -> Self {
        Self::hashed(chain, role, text.len(), xxh3_64(text.as_bytes()))
    }

    fn hashed(chain: Digest, role: Role, len: usize, hash: u64) -> Self {
        let bytes = u32::try_from(len).ok().map(|len| SentBytes {
            len,
            hash,
            is_operators: role == Role::System,
        });
        Self { chain, bytes }
    }
}

/// How far a request repeats a conversation.
#[derive(Clone, Debug)]
pub(crate) struct Repetition {
    /// Messages that are known.
    pub(crate) count: usize,
    /// Those of them that are instructions of the operator's.
    pub(crate) operators: Vec<usize>,
    /// Those of them that were written differently, with their indexes.
    learned: Vec<(usize, KnownMessage)>,
}

impl Repetition {
    /// Keeps how messages were written this time.
    pub(crate) fn teach(&self, known: &mut [KnownMessage]) {
        for (index, message) in &self.learned {
            if let Some(slot) = known.get_mut(*index) {
                *slot = *message;
            }
        }
    }
}

/// The messages of a body, walked as far as anything needs them. Each is walked, hashed and parsed once, however many
/// conversations it is compared with.
#[derive(Clone, Debug)]
pub(crate) struct Walk {
    /// Behind the last message of `messages`.
    reader: Reader,
    messages: Vec<WalkedMessage>,
}

/// A message of a body.
#[derive(Clone, Debug)]
struct WalkedMessage {
    span: Span,
    hash: Option<u64>,
    /// None if it was not parsed yet.
    parsed: Option<ParsedMessage>,
}

#[derive(Clone, Debug)]
struct ParsedMessage {
    /// None if it is no message.
    message: Option<Message>,
    digest: Option<Digest>,
}

impl Walk {
    /// Begins where the reader is.
    pub(crate) fn new(reader: Reader) -> Self {
        Self {
            reader,
            messages: Vec::new(),
        }
    }

    /// Takes the first messages out and gives their places.
    pub(crate) fn split_off_lead(&mut self, count: usize) -> Vec<Span> {
        self.messages
            .drain(..count)
            .map(|walked| walked.span)
            .collect()
    }

    /// Where the message `index` is in the body; `None` if there are not as many.
    ///
    /// # Errors
    /// If the body is not JSON up to there.
    pub(crate) fn span(&mut self, index: usize) -> Result<Option<Span>, OutlineError> {
        while self.messages.len() <= index {
            let Some(span) = self.reader.next()? else {
                return Ok(None);
            };
            self.messages.push(WalkedMessage::new(span));
        }
        Ok(Some(self.messages[index].span))
    }

    /// The message `index`; `None` if there are not as many, or it is no message.
    ///
    /// # Errors
    /// If the body is not JSON up to there.
    pub(crate) fn message(&mut self, index: usize) -> Result<Option<&Message>, OutlineError> {
        if self.span(index)?.is_none() {
            return Ok(None);
        }
        let reader = &self.reader;
        Ok(self.messages[index].parsed(reader).message.as_ref())
    }

    /// Compares the messages with those of a conversation, as far as they are the same.
    ///
    /// # Errors
    /// If the body is not JSON up to there.
    pub(crate) fn repeats(&mut self, known: &[KnownMessage]) -> Result<Repetition, OutlineError> {
        let mut repeated = Repetition {
            count: 0,
            operators: Vec::new(),
            learned: Vec::new(),
        };
        let mut chain = Chain::new().digest();
        self.messages.reserve(known.len() + 4);
        for (index, known) in known.iter().enumerate() {
            let is_operators = match known.bytes {
                Some(bytes) if self.has_bytes(index, bytes) => bytes.is_operators,
                _ => {
                    if self.span(index)?.is_none() {
                        break;
                    }
                    let reader = &self.reader;
                    let walked = &mut self.messages[index];
                    let hash = walked.hash(reader);
                    let len = walked.len();
                    let parsed = walked.parsed(reader);
                    let Some((role, digest)) = parsed.role_and_digest() else {
                        break;
                    };
                    if Chain::at(chain).push(digest) != known.chain {
                        break;
                    }
                    let learned = KnownMessage::hashed(known.chain, role, len, hash);
                    repeated.learned.push((index, learned));
                    role == Role::System
                }
            };
            if is_operators {
                repeated.operators.push(index);
            }
            repeated.count += 1;
            chain = known.chain;
        }
        Ok(repeated)
    }

    /// Whether the message `index` has these bytes. One that was not walked yet is passed over without a look at its
    /// grammar if it has.
    fn has_bytes(&mut self, index: usize, bytes: SentBytes) -> bool {
        if let Some(walked) = self.messages.get_mut(index) {
            return walked.len() == bytes.len as usize && walked.hash(&self.reader) == bytes.hash;
        }
        let is_known = |text: &[u8]| xxh3_64(text) == bytes.hash;
        let Some(span) = self.reader.skip(bytes.len as usize, is_known) else {
            return false;
        };
        self.messages.push(WalkedMessage {
            hash: Some(bytes.hash),
            ..WalkedMessage::new(span)
        });
        true
    }

    /// Takes the messages from `index` on, to the end of the body. `None` if something is no message.
    ///
    /// # Errors
    /// If the body is not JSON.
    pub(crate) fn take_from(&mut self, index: usize) -> Result<Option<Vec<Message>>, OutlineError> {
        self.walk_to_end()?;
        let (reader, messages) = (&self.reader, &mut self.messages);
        let added = messages.iter_mut().skip(index);
        Ok(added.map(|walked| walked.take(reader)).collect())
    }

    /// The whole body.
    ///
    /// # Errors
    /// If it is not JSON.
    pub(crate) fn outline(&mut self) -> Result<Outline, OutlineError> {
        self.walk_to_end()?;
        self.reader.clone().finish()
    }

    /// Where the messages are in the body, as far as they were walked.
    pub(crate) fn spans(&self) -> Vec<Span> {
        self.messages.iter().map(|walked| walked.span).collect()
    }

    fn walk_to_end(&mut self) -> Result<(), OutlineError> {
        while let Some(span) = self.reader.next()? {
            self.messages.push(WalkedMessage::new(span));
        }
        Ok(())
    }
}

impl WalkedMessage {
    fn new(span: Span) -> Self {
        Self {
            span,
            hash: None,
            parsed: None,
        }
    }

    fn len(&self) -> usize {
        self.span.end - self.span.start
    }

    fn hash(&mut self, reader: &Reader) -> u64 {
        let text = || reader.message(self.span).as_bytes();
        *self.hash.get_or_insert_with(|| xxh3_64(text()))
    }

    fn parsed(&mut self, reader: &Reader) -> &mut ParsedMessage {
        self.parsed.get_or_insert_with(|| ParsedMessage {
            message: reader.read(self.span),
            digest: None,
        })
    }

    fn take(&mut self, reader: &Reader) -> Option<Message> {
        match self.parsed.take() {
            Some(parsed) => parsed.message,
            None => reader.read(self.span),
        }
    }
}

impl ParsedMessage {
    fn role_and_digest(&mut self) -> Option<(Role, Digest)> {
        let message = self.message.as_ref()?;
        let digest = self.digest.get_or_insert_with(|| message_digest(message));
        Some((message.role, *digest))
    }
}

#[cfg(test)]
mod tests {
    use throughline_transcript::wire::Wire;

    use super::*;

    fn walk(messages: &[&str]) -> Walk {
        let body = format!(r#"{{"messages":[{}]}}"#, messages.join(", "));
        Walk::new(Reader::new(Wire::Anthropic, body.into()).unwrap())
    }

    fn known(messages: &[&str]) -> Vec<KnownMessage> {
        let mut chain = Chain::new();
        let mut walk = walk(messages);
        let read = |(index, text): (usize, &&str)| {
            let message = walk.message(index).unwrap().unwrap();
            KnownMessage::seen(chain.push(message_digest(message)), message.role, text)
        };
        messages.iter().enumerate().map(read).collect()
    }

    const USER: &str = r#"{"role":"user","content":"a"}"#;
    const USER_MARKED: &str = r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}"#;
    const ANSWER: &str = r#"{"role":"assistant","content":"b"}"#;
    const OTHER: &str = r#"{"role":"assistant","content":"c"}"#;

    #[track_caller]
    fn check(before: &[&str], now: &[&str], count: usize, next: Option<&str>) {
        let mut known = known(before);
        let all_unseen: Vec<KnownMessage> = known
            .iter()
            .map(|m| KnownMessage::unseen(m.chain))
            .collect();
        for start in [known.clone(), all_unseen] {
            let mut walk = walk(now);
            let repeated = walk.repeats(&start).unwrap();
            assert_eq!(repeated.count, count);
            let span = walk.span(count).unwrap();
            let after = span.map(|span| walk.reader.message(span));
            assert_eq!(after, now.get(count).copied());
            assert!(next.is_none() || after == next);
            for (span, text) in walk.spans().iter().zip(now) {
                assert_eq!(walk.reader.message(*span), *text);
            }
            // What was learned is known by its bytes from then on, in this walk and in the next.
            repeated.teach(&mut known);
            for mut walk in [walk, self::walk(now)] {
                let again = walk.repeats(&known).unwrap();
                assert_eq!((again.count, again.learned.len()), (count, 0));
            }
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
        let mut walk = Walk::new(Reader::new(Wire::Anthropic, broken.into()).unwrap());
        assert!(walk.repeats(&known(&[USER, ANSWER])).is_err());
    }

    #[test]
    fn a_message_is_parsed_once_for_all_conversations() {
        let mut walk = walk(&[USER_MARKED, OTHER, USER]);
        for _ in 0..2 {
            assert_eq!(
                walk.repeats(&known(&[USER, ANSWER, USER])).unwrap().count,
                1
            );
        }
        let parsed = |index: usize| walk.messages[index].parsed.is_some();
        assert_eq!([parsed(0), parsed(1)], [true, true]);
        assert_eq!(walk.messages.len(), 2);
        let added = walk.take_from(1).unwrap().unwrap();
        let texts: Vec<&str> = added
            .iter()
            .map(|m| m.raw.as_ref().unwrap().as_str())
            .collect();
        assert_eq!(texts, [OTHER, USER]);
    }

    #[test]
    fn instructions_of_the_operator_are_known_without_a_look() {
        const SYSTEM: &str = r#"{"role":"developer","content":"s"}"#;
        let messages = [USER, SYSTEM, ANSWER];
        let seen = known(&messages);
        let unseen: Vec<KnownMessage> =
            seen.iter().map(|m| KnownMessage::unseen(m.chain)).collect();
        for known in [seen, unseen] {
            assert_eq!(walk(&messages).repeats(&known).unwrap().operators, [1]);
        }
    }
}
