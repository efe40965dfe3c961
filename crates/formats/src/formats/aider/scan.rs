//! Splits a history into sessions, and a session into the texts of the user, the console and the model.

/// How often in a session a fence that is never closed is taken back. Keeps the time linear.
const REWINDS_MAX: usize = 16;

const HEADER: &str = "# aider chat started at ";

/// One session: from its header, or from the start of the file, to the next header.
pub(super) struct Session<'a> {
    /// Date and time of the header, as written.
    pub(super) started: Option<&'a str>,
    text: &'a str,
    line: usize,
}

/// Lines in a row of one speaker.
#[derive(Debug, PartialEq)]
pub(super) struct Piece<'a> {
    pub(super) kind: PieceKind,
    /// The lines; of an answer without blank ones around it.
    pub(super) text: &'a str,
    pub(super) line: usize,
}

impl Piece<'_> {
    /// What its lines begin with, if anything.
    pub(super) fn prefix(&self) -> &'static str {
        match self.kind {
            PieceKind::User => "####",
            PieceKind::Console if self.text.starts_with('>') => ">",
            PieceKind::Console | PieceKind::Answer => "",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    User,
    Console,
    Answer,
}

/// The sessions of a history.
pub(super) fn sessions(text: &str) -> impl Iterator<Item = Session<'_>> {
    let mut at = 0;
    let mut line = 1;
    std::iter::from_fn(move || {
        if at >= text.len() {
            return None;
        }
        let start_line = line;
        let mut session = Session {
            started: None,
            text: "",
            line,
        };
        let mut body = at;
        if is_header(&text[at..]) {
            body = memchr::memchr(b'\n', &text.as_bytes()[at..])
                .map_or(text.len(), |end| at + end + 1);
            session.started = Some(text[at + HEADER.len()..body].trim());
            session.line = start_line + 1;
        }
        let end = find_header(text, body).unwrap_or(text.len());
        session.text = &text[body..end];
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[at..end]).count();
        at = end;
        Some(session)
    })
}

/// Where the next header begins, at a start of a line, from byte `from` on.
pub(super) fn find_header(text: &str, from: usize) -> Option<usize> {
    let finder = memchr::memmem::Finder::new(HEADER);
    let mut at = from;
    while let Some(found) = finder.find(&text.as_bytes()[at..]) {
        let place = at + found;
        let is_line_start = place == 0 || text.as_bytes()[place - 1] == b'\n';
        if is_line_start && is_header(&text[place..]) {
            return Some(place);
        }
        at = place + HEADER.len();
    }
    None
}

fn is_header(text: &str) -> bool {
    text.strip_prefix(HEADER)
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

impl<'a> Session<'a> {
    /// The pieces in order.
    pub(super) fn pieces(&self) -> Vec<Piece<'a>> {
        let mut cutter = Cutter {
            text: self.text,
            pieces: Vec::new(),
            start: 0,
            start_line: self.line,
            kind: None,
            is_banner: self.started.is_some(),
            fence: None,
            rewinds: 0,
            last_fence_end: last_bare_fence(self.text),
        };
        cutter.cut(self.line);
        cutter.pieces
    }
}

struct Cutter<'a> {
    text: &'a str,
    pieces: Vec<Piece<'a>>,
    /// Where the piece that is being read begins.
    start: usize,
    start_line: usize,
    kind: Option<PieceKind>,
    /// Whether the user has not written anything since the header, so there is nothing to answer.
    is_banner: bool,
    /// The open code fence of an answer.
    fence: Option<Fence>,
    rewinds: usize,
    /// Position of the last line that can close a fence.
    last_fence_end: Option<usize>,
}

#[derive(Clone, Copy)]
struct Fence {
    mark: u8,
    length: usize,
    /// Where to continue if nothing closes it.
    next: usize,
    next_line: usize,
}

impl<'a> Cutter<'a> {
    fn cut(&mut self, first_line: usize) {
        let bytes = self.text.as_bytes();
        let (mut at, mut line) = (0, first_line);
        loop {
            if at >= bytes.len() {
                // An answer that was interrupted inside of a fence: read on as if the fence were not there.
                if let Some(fence) = self.fence.take()
                    && self.rewinds < REWINDS_MAX
                {
                    self.rewinds += 1;
                    (at, line) = (fence.next, fence.next_line);
                    continue;
                }
                break;
            }
            let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |found| at + found);
            let next = (end + 1).min(bytes.len());
            self.line(&self.text[at..end], at, line, next);
            at = next;
            line += 1;
        }
        self.close(bytes.len());
    }

    fn line(&mut self, text: &'a str, at: usize, line: usize, next: usize) {
        let first = text.as_bytes().first().copied().unwrap_or(b' ');
        if let Some(fence) = self.fence {
            let is_end = first == b'>' && ends_answer(text);
            if is_end || closes(text, &fence) {
                self.fence = None;
            }
            if !is_end {
                return;
            }
        }
        let kind = match first {
            b'#' if text.starts_with("#### ") || text.trim_end() == "####" => Some(PieceKind::User),
            b'>' if self.is_console(text) => Some(PieceKind::Console),
            b' ' | b'\t' | b'\r' if text.trim_ascii().is_empty() => None,
            _ => Some(PieceKind::Answer),
        };
        match kind {
            // A blank line ends the user's input, but not an answer or console output.
            None if self.kind == Some(PieceKind::User) => self.close(at),
            None => {}
            Some(kind) if self.kind == Some(kind) => {}
            Some(kind) => {
                self.close(at);
                self.kind = Some(kind);
                self.start = at;
                self.start_line = line;
            }
        }
        if kind == Some(PieceKind::Answer)
            && let Some((mark, length)) = fence_mark(text)
            && self.last_fence_end.is_some_and(|last| last > at)
            && self.rewinds < REWINDS_MAX
        {
            self.fence = Some(Fence {
                mark,
                length,
                next,
                next_line: line + 1,
            });
        }
    }

    /// Aider ends its own lines with a Markdown line break; where it does not, they follow another one, or nothing
    /// that they could be a part of.
    fn is_console(&self, text: &str) -> bool {
        text.ends_with("  ")
            || text.ends_with("  \r")
            || self.kind != Some(PieceKind::Answer)
            || ends_answer(text)
            || text.starts_with("> Applied edit to ")
    }

    fn close(&mut self, end: usize) {
        let Some(kind) = self.kind.take() else {
            return;
        };
        let text = self.text[self.start..end].trim_end();
        let is_preamble = kind == PieceKind::Answer && self.pieces.is_empty() && !self.is_banner;
        let kind = if kind == PieceKind::Answer && self.is_banner {
            PieceKind::Console
        } else {
            kind
        };
        self.is_banner &= kind != PieceKind::User;
        // The text before the first mark has no speaker.
        if !is_preamble {
            self.pieces.push(Piece {
                kind,
                text,
                line: self.start_line,
            });
        }
    }
}

/// Whether the line is console output that only follows an answer, so that it ends an open fence.
fn ends_answer(line: &str) -> bool {
    line.starts_with("> Tokens: ") || line.starts_with("> ^C")
}

fn fence_mark(line: &str) -> Option<(u8, usize)> {
    let line = line.trim_ascii_start();
    let mark = *line
        .as_bytes()
        .first()
        .filter(|mark| matches!(mark, b'`' | b'~'))?;
    let length = line.bytes().take_while(|byte| *byte == mark).count();
    // A back-tick in the rest makes it code inside of a line.
    (length >= 3 && !(mark == b'`' && line[length..].contains('`'))).then_some((mark, length))
}

fn closes(line: &str, fence: &Fence) -> bool {
    fence_mark(line).is_some_and(|(mark, length)| {
        mark == fence.mark && length >= fence.length && is_bare(line, length)
    })
}

fn is_bare(line: &str, length: usize) -> bool {
    line.trim_ascii().len() == length
}

fn last_bare_fence(text: &str) -> Option<usize> {
    let mut end = text.len();
    // From the back: few lines of a session are fences, but the last one is seldom far from its end.
    loop {
        let start = memchr::memrchr(b'\n', &text.as_bytes()[..end]).map_or(0, |at| at + 1);
        let line = &text[start..end];
        if fence_mark(line).is_some_and(|(_, length)| is_bare(line, length)) {
            return Some(start);
        }
        end = start.checked_sub(1)?;
    }
}
