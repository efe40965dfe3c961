//! Server-sent events from chunks of bytes with any boundaries.
//!
//! By the rules of the HTML standard as far as providers use them: lines end in LF, CR LF or CR, an empty line ends an
//! event, several `data` lines are joined by a line feed, lines that begin with a colon are comments, a byte-order mark
//! at the start does not count. An event without an empty line at its end is dropped: it may be incomplete.

use std::mem;

use bytestring::ByteString;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The `event` field; empty if there is none.
    pub(crate) name: String,
    /// The `data` lines.
    pub(crate) data: ByteString,
}

/// An event is larger than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// Reads chunks and returns events.
#[derive(Clone, Debug)]
pub(crate) struct SseReader {
    /// The line that has begun.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was CR: an LF that follows belongs to it.
    is_after_cr: bool,
    /// Nothing was read yet, so that a byte-order mark may come.
    is_at_start: bool,
    event_bytes_max: usize,
}

impl SseReader {
    pub(crate) fn new(event_bytes_max: usize) -> Self {
        Self {
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            is_after_cr: false,
            is_at_start: true,
            event_bytes_max,
        }
    }

    /// Reads a chunk and appends the events that it completes.
    pub(crate) fn push(
        &mut self,
        mut chunk: &[u8],
        events: &mut Vec<SseEvent>,
    ) -> Result<(), TooLarge> {
        while !chunk.is_empty() {
            if mem::take(&mut self.is_after_cr) && chunk[0] == b'\n' {
                chunk = &chunk[1..];
                continue;
            }
            let end = chunk.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (part, rest) = chunk.split_at(end.unwrap_or(chunk.len()));
            if self.line.len() + self.data.len() + part.len() > self.event_bytes_max {
                return Err(TooLarge);
            }
            self.line.extend_from_slice(part);
            let Some((ending, rest)) = rest.split_first() else {
                break;
            };
            self.is_after_cr = *ending == b'\r';
            chunk = rest;
            if let Some(event) = self.end_line() {
                events.push(event);
            }
        }
        Ok(())
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let mut line = mem::take(&mut self.line);
        if mem::take(&mut self.is_at_start) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            let name = mem::take(&mut self.name);
            let data = mem::take(&mut self.data);
            return mem::take(&mut self.has_data).then(|| SseEvent {
                name: String::from_utf8_lossy(&name).into_owned(),
                data: lossy(data),
            });
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (&line[..], &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => self.name = value.to_vec(),
            _ => {}
        }
        None
    }
}

fn lossy(bytes: Vec<u8>) -> ByteString {
    match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) => String::from_utf8_lossy(error.as_bytes())
            .into_owned()
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut reader = SseReader::new(1 << 20);
        let mut events = Vec::new();
        for chunk in chunks {
            reader.push(chunk, &mut events).unwrap();
        }
        events
            .into_iter()
            .map(|event| (event.name, event.data.to_string()))
            .collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, data)| ((*name).to_owned(), (*data).to_owned()))
            .collect();
        assert_eq!(read(&[text.as_bytes()]), expected, "{text:?}");
    }

    #[test]
    fn lines_become_events() {
        check("event: a\ndata: 1\n\n", &[("a", "1")]);
        check("data:1\n\ndata:  2\n\n", &[("", "1"), ("", " 2")]);
        check(
            "data: 1\r\n\r\ndata: 2\r\rdata: 3\n\n",
            &[("", "1"), ("", "2"), ("", "3")],
        );
        check("data: a\ndata: b\ndata\n\n", &[("", "a\nb\n")]);
        check(": comment\nid: 7\nretry: 5\ndata: x\n\n", &[("", "x")]);
        check("event: lonely\n\ndata: x\n\n", &[("", "x")]);
        check("\u{feff}data: x\n\n", &[("", "x")]);
        check("data: half", &[]);
        check("data: half\n", &[]);
        check("\n\n\n", &[]);
    }

    #[test]
    fn an_event_has_a_limit() {
        let mut reader = SseReader::new(10);
        let mut events = Vec::new();
        assert_eq!(reader.push(b"data: 123", &mut events), Ok(()));
        assert_eq!(reader.push(b"45", &mut events), Err(TooLarge));
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(
            lines in proptest::collection::vec("(data: ?|event:|: |)[aé\u{1f600}]{0,3}(\n|\r\n|\r)", 0..20),
            cuts in proptest::collection::vec(0usize..400, 0..12),
        ) {
            let text = lines.concat();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&chunks), read(&[bytes]));
        }
    }
}
