//! Separates a user's own words from their surroundings: code, logs, quotations, and text that clients insert.
mod document;
mod shape;

use std::iter::Peekable;
use std::ops::Range;
use std::vec::IntoIter;

use crate::authors::wording;

/// Whose words a stretch of a user message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Voice {
    /// The person typed it.
    Person,
    /// The person copied it from elsewhere.
    Pasted(PastedKind),
    /// A client or a hook put it in: reminders, command wrappers, interruption marks, environment descriptions.
    Injected,
}

/// What was pasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastedKind {
    /// A code fence or lines that are program text or data.
    Code,
    /// Log lines, terminal output, a stack trace.
    Log,
    /// A diff.
    Diff,
    /// Quoted lines (`> ...`).
    Quotation,
    /// A written plan or document: headings, long lists.
    Document,
    /// Many lines of one shape: notes, a table, a report, a list.
    Lines,
}

/// How a client says that the person cut in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// The person stopped the model.
    Stopped,
    /// The person refused a tool call.
    Refused,
}

/// The interruption that a user message reports, if it is such a report. The person's next words are nearly always a
/// correction. Of the results of tools, [`denial`](super::denial) tells.
#[must_use]
pub fn interruption(text: &str) -> Option<Interruption> {
    let head = text.get(..text.floor_char_boundary(400)).unwrap_or(text);
    if REFUSALS.iter().any(|mark| head.contains(mark)) {
        return Some(Interruption::Refused);
    }
    STOPS
        .iter()
        .any(|mark| head.contains(mark))
        .then_some(Interruption::Stopped)
}

const REFUSALS: [&str; 9] = [
    "doesn't want to proceed with this tool use",
    "doesn't want to take this action right now",
    "[Request interrupted by user for tool use]",
    "The tool use was rejected",
    "The user denied this operation",
    "The user rejected permission to use this",
    "rejected this specific tool call",
    "user rejected this tool call",
    "Tool call was denied by user",
];

const STOPS: [&str; 5] = [
    "[Request interrupted by user",
    "Request interrupted by user",
    "<turn_aborted>",
    "[Conversation interrupted",
    "The user interrupted",
];

/// What a refusal says before it hands on the person's words.
pub(super) const HANDED_ON: [&str; 5] = [
    "the user said:",
    "provided the following feedback:",
    "with the following feedback:",
    "user provided the following reason:",
    "User feedback:",
];

/// Divides `text` into stretches of whole lines (a tag's content may begin within one) by voice, in order, without gaps.
pub(super) fn stretches(text: &str) -> Vec<(Range<usize>, Voice)> {
    let mut scan = Scan {
        text,
        out: Vec::new(),
        block: Block::None,
        is_in_diff: false,
        is_in_trace: false,
        is_handed_on: false,
        is_document: document::is_document(text),
        closing: document::closing(text),
        is_past_heading: false,
        alike: shape::lines_of_one_shape(text).into_iter().peekable(),
    };
    let mut end = 0;
    for text in text.split_inclusive('\n') {
        let start = end;
        end += text.len();
        scan.line(&Line {
            text,
            trimmed: text.trim(),
            start,
            end,
        });
    }
    shape::join_code(text, scan.out)
}

/// A line with its place in the text.
struct Line<'t> {
    text: &'t str,
    trimmed: &'t str,
    start: usize,
    end: usize,
}

/// A block that ends at its own mark.
enum Block<'t> {
    None,
    /// Code, up to a line of this mark.
    Fence(&'static str),
    /// The content of a tag of this name.
    Tag(&'t str, Voice),
}

struct Scan<'t> {
    text: &'t str,
    out: Vec<(Range<usize>, Voice)>,
    block: Block<'t>,
    is_in_diff: bool,
    is_in_trace: bool,
    /// Whether a refusal has handed on the person's words: what follows is theirs.
    is_handed_on: bool,
    is_document: bool,
    /// Where the person's own words begin again, behind the document.
    closing: usize,
    is_past_heading: bool,
    /// Lines of one shape that are still to come.
    alike: Peekable<IntoIter<Range<usize>>>,
}

impl<'t> Scan<'t> {
    /// Says whose words a line is; the first rule that applies decides.
    fn line(&mut self, line: &Line<'t>) {
        let _ = self.is_in_block(line)
            || self.opens_fence(line)
            || self.opens_tag(line)
            || self.hands_on(line)
            || self.is_injected(line)
            || self.is_of_diff(line)
            || self.is_of_trace(line)
            || self.is_by_itself(line);
    }

    fn push(&mut self, range: Range<usize>, voice: Voice) {
        if range.is_empty() {
            return;
        }
        match self.out.last_mut() {
            Some((last, of)) if *of == voice && last.end == range.start => last.end = range.end,
            _ => self.out.push((range, voice)),
        }
    }

    /// Text between a tag's content and the end of its line.
    fn push_rest(&mut self, range: Range<usize>) {
        let rest = self.text.get(range.clone()).unwrap_or_default();
        self.push(range, voice_of_line(rest.trim()));
    }

    fn is_in_block(&mut self, line: &Line<'t>) -> bool {
        match self.block {
            Block::None => return false,
            Block::Fence(mark) => {
                self.push(line.start..line.end, Voice::Pasted(PastedKind::Code));
                let is_end = line.trimmed.starts_with(mark)
                    && line.trimmed.trim_matches(['`', '~']).is_empty();
                if is_end {
                    self.block = Block::None;
                }
            }
            Block::Tag(name, voice) => match find_close(line.text, name) {
                None => self.push(line.start..line.end, voice),
                Some(close) => {
                    let (start, end) = (line.start + close.start, line.start + close.end);
                    self.push(line.start..start, voice);
                    self.push(start..end, Voice::Injected);
                    self.push_rest(end..line.end);
                    self.block = Block::None;
                }
            },
        }
        true
    }

    fn opens_fence(&mut self, line: &Line<'t>) -> bool {
        let mut marks = ["```", "~~~"].into_iter();
        let Some(mark) = marks.find(|mark| line.trimmed.starts_with(mark)) else {
            return false;
        };
        let is_closed = line.trimmed.len() > 6 && line.trimmed.ends_with(mark);
        if !is_closed {
            self.block = Block::Fence(mark);
        }
        self.push(line.start..line.end, Voice::Pasted(PastedKind::Code));
        true
    }

    fn opens_tag(&mut self, line: &Line<'t>) -> bool {
        let Some(open) = opening_tag(line.text) else {
            return false;
        };
        let voice = if wording().speech.iter().any(|name| name == open.name) {
            Voice::Person
        } else if open.is_wrapper {
            Voice::Injected
        } else {
            Voice::Pasted(PastedKind::Code)
        };
        let content = line.start + open.end;
        if let Some(close) = find_close(line.text.get(open.end..).unwrap_or_default(), open.name) {
            let (start, end) = (content + close.start, content + close.end);
            self.push(line.start..content, Voice::Injected);
            self.push(content..start, voice);
            self.push(start..end, Voice::Injected);
            self.push_rest(end..line.end);
            return true;
        }
        let later = self.text.get(line.end..).unwrap_or_default();
        if !open.is_wrapper || find_close(later, open.name).is_none() {
            return false;
        }
        self.push(line.start..content, Voice::Injected);
        self.push(content..line.end, voice);
        self.block = Block::Tag(open.name, voice);
        true
    }

    /// The words of a client, which the person's follow.
    fn hands_on(&mut self, line: &Line<'t>) -> bool {
        /// Further on in a message, the words may be within a line by chance.
        const WITHIN_BYTES_MAX: usize = 1000;
        let Some(mark) = HANDED_ON.iter().find(|mark| {
            line.trimmed.ends_with(*mark)
                || (line.text.contains(*mark) && line.start < WITHIN_BYTES_MAX)
        }) else {
            return false;
        };
        let words = line
            .text
            .find(mark)
            .map_or(line.end, |at| line.start + at + mark.len());
        self.push(line.start..words, Voice::Injected);
        self.push(words..line.end, Voice::Person);
        self.is_handed_on = true;
        true
    }

    fn is_injected(&mut self, line: &Line<'t>) -> bool {
        let is_injected = !self.is_handed_on
            && wording()
                .lines
                .iter()
                .any(|mark| line.trimmed.starts_with(mark.as_str()));
        if is_injected {
            self.push(line.start..line.end, Voice::Injected);
        }
        is_injected
    }

    fn is_of_diff(&mut self, line: &Line<'t>) -> bool {
        if is_diff_head(line.text) {
            self.is_in_diff = true;
        } else if !line.text.starts_with(['+', '-', ' ', '@', '\\']) && !line.trimmed.is_empty() {
            self.is_in_diff = false;
        }
        if self.is_in_diff {
            self.push(line.start..line.end, Voice::Pasted(PastedKind::Diff));
        }
        self.is_in_diff
    }

    fn is_of_trace(&mut self, line: &Line<'t>) -> bool {
        let is_head = ["Traceback (most recent call last)", "Stack trace:"]
            .iter()
            .any(|head| line.trimmed.starts_with(head));
        if !is_head && !self.is_in_trace {
            return false;
        }
        // The last line of a trace is the error itself, at the margin.
        self.is_in_trace =
            is_head || !line.trimmed.is_empty() && line.text.starts_with([' ', '\t']);
        self.push(line.start..line.end, Voice::Pasted(PastedKind::Log));
        true
    }

    fn is_by_itself(&mut self, line: &Line<'t>) -> bool {
        while self
            .alike
            .next_if(|range| range.start < line.start)
            .is_some()
        {}
        let is_alike = self
            .alike
            .peek()
            .is_some_and(|range| range.start == line.start);
        let voice = match voice_of_line(line.text.trim_end()) {
            Voice::Person if is_alike => Voice::Pasted(PastedKind::Lines),
            Voice::Person if self.is_document && line.start < self.closing => {
                self.is_past_heading |= document::begins(line.trimmed) && line.start > 0;
                if self.is_past_heading {
                    Voice::Pasted(PastedKind::Document)
                } else {
                    Voice::Person
                }
            }
            voice => voice,
        };
        self.push(line.start..line.end, voice);
        true
    }
}

struct Tag<'a> {
    name: &'a str,
    end: usize,
    /// Its name is that of a wrapper and not of HTML or of a component.
    is_wrapper: bool,
}

fn opening_tag(line: &str) -> Option<Tag<'_>> {
    let indent = line.len() - line.trim_start().len();
    let rest = line.get(indent..)?.strip_prefix('<')?;
    let length = rest
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b':'))
        .count();
    let name = rest.get(..length).filter(|name| !name.is_empty())?;
    let close = rest.get(length..)?.find('>')?;
    if close > 200 || rest.get(length..length + close)?.ends_with('/') {
        return None;
    }
    const HTML: [&str; 26] = [
        "a", "b", "body", "br", "button", "code", "div", "em", "form", "h1", "h2", "h3", "head",
        "html", "i", "img", "input", "li", "p", "pre", "script", "span", "style", "table", "ul",
        "svg",
    ];
    let is_lower = name.bytes().all(|b| !b.is_ascii_uppercase());
    let is_upper = name.bytes().all(|b| !b.is_ascii_lowercase());
    let is_wrapper = (is_lower || (is_upper && name.len() > 2)) && !HTML.contains(&name);
    Some(Tag {
        name,
        end: indent + 1 + length + close + 1,
        is_wrapper,
    })
}

fn find_close(text: &str, name: &str) -> Option<Range<usize>> {
    let closing = ["</", name, ">"].concat();
    text.find(&closing)
        .map(|start| start..start + closing.len())
}

fn is_diff_head(line: &str) -> bool {
    line.starts_with("diff --git ")
        || line.starts_with("@@ -")
        || (line.starts_with("--- ") && line.contains('/'))
        || line.starts_with("*** Begin Patch")
}

/// The voice of a line, judged alone.
fn voice_of_line(line: &str) -> Voice {
    let trimmed = line.trim_start();
    let is_turn = ["[assistant] ", "[user] ", "[tool] ", "[system] "];
    if trimmed.starts_with("> ")
        || trimmed == ">"
        || is_turn.iter().any(|mark| trimmed.starts_with(mark))
    {
        return Voice::Pasted(PastedKind::Quotation);
    }
    if is_log(line) {
        return Voice::Pasted(PastedKind::Log);
    }
    if is_code(line) {
        return Voice::Pasted(PastedKind::Code);
    }
    Voice::Person
}

fn is_log(line: &str) -> bool {
    let trimmed = line.trim_start();
    let bytes = trimmed.as_bytes();
    let digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    // 2026-03-01T10:00:00, 2026-03-01 10:00, 10:00:00.123, [2026-..., [10:00:00
    let stamp = trimmed.strip_prefix('[').unwrap_or(trimmed);
    let looks_stamped = |text: &str| {
        let b = text.as_bytes();
        let is_digit = |at: usize| b.get(at).is_some_and(u8::is_ascii_digit);
        let is_date = (0..4).all(is_digit)
            && b.get(4) == Some(&b'-')
            && is_digit(5)
            && is_digit(6)
            && b.get(7) == Some(&b'-')
            && is_digit(8)
            && text.len() > 16
            && b.get(13) == Some(&b':');
        let is_time = is_digit(0)
            && is_digit(1)
            && b.get(2) == Some(&b':')
            && is_digit(3)
            && is_digit(4)
            && b.get(5) == Some(&b':')
            && is_digit(6);
        is_date || is_time
    };
    if looks_stamped(stamp) {
        return true;
    }
    // Feb  9 21:51:50
    const MONTHS: [&str; 12] = [
        "Jan ", "Feb ", "Mar ", "Apr ", "May ", "Jun ", "Jul ", "Aug ", "Sep ", "Oct ", "Nov ",
        "Dec ",
    ];
    if MONTHS.iter().any(|month| trimmed.starts_with(month)) {
        let mut words = trimmed.split_whitespace().skip(1);
        let is_day = words
            .next()
            .is_some_and(|day| day.len() <= 2 && day.bytes().all(|b| b.is_ascii_digit()));
        if is_day && words.next().is_some_and(looks_stamped) {
            return true;
        }
    }
    if is_place(trimmed) {
        return true;
    }
    if digits > 0 && bytes.get(digits).is_some_and(|b| *b == b'|') {
        return true;
    }
    const HEADS: [&str; 34] = [
        "=== ",
        "--- PASS",
        "PASS: ",
        "FAIL: ",
        "FAIL\t",
        "ok  \t",
        "go: ",
        "at ",
        "File \"",
        "$ ",
        "❯ ",
        "➜ ",
        "npm ERR!",
        "npm error",
        "npm WARN",
        "INFO ",
        "WARN ",
        "ERROR ",
        "DEBUG ",
        "INFO:",
        "WARNING:",
        "ERROR:",
        "[INFO]",
        "[ERROR]",
        "[WARN",
        "error[E",
        "warning: ",
        "⏺ ",
        "⎿",
        "│",
        "╭",
        "╰",
        "--- FAIL",
        "--> ",
    ];
    if let Some(head) = HEADS.iter().find(|head| trimmed.starts_with(*head)) {
        // A frame of a trace has a place in parentheses or a line number: "at noon please" has none.
        return *head != "at "
            || trimmed.contains('(')
            || trimmed.contains(".js:")
            || trimmed.contains(".ts:")
            || trimmed.contains(".java:");
    }
    false
}

/// Whether a line begins like `src/quay.rs:12:3: `, as compilers and linters write it.
fn is_place(line: &str) -> bool {
    let Some((path, rest)) = line.split_once(':') else {
        return false;
    };
    let is_number = |part: Option<&str>| {
        part.is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut parts = rest.splitn(3, ':');
    path.contains('.')
        && !path.contains(' ')
        && is_number(parts.next())
        && (is_number(parts.next()) || rest.contains(": "))
}

fn is_code(line: &str) -> bool {
    let trimmed = line.trim();
    if trimmed.is_empty() {
        return false;
    }
    if matches!(trimmed.as_bytes(), [b'{' | b'}' | b'[' | b']' | b'(' | b')', ..] if trimmed.len() <= 3)
    {
        return true;
    }
    let letters = trimmed.chars().filter(|c| c.is_alphabetic()).count();
    let spaces = trimmed.chars().filter(|c| *c == ' ').count();
    if trimmed.starts_with("{\"")
        || trimmed.starts_with("[{")
        || trimmed.starts_with("</")
        || trimmed.starts_with("<?xml")
        || trimmed.starts_with("// ")
    {
        return true;
    }
    let ends_like_code =
        trimmed.ends_with([';', '{', '}']) || trimmed.ends_with(");") || trimmed.ends_with("},");
    const HEADS: [&str; 22] = [
        "import ",
        "from ",
        "def ",
        "fn ",
        "pub ",
        "func ",
        "function ",
        "const ",
        "let ",
        "var ",
        "class ",
        "struct ",
        "impl ",
        "package ",
        "#include",
        "return ",
        "if (",
        "for (",
        "while (",
        "SELECT ",
        "export ",
        "public ",
    ];
    let has_code_mark = trimmed.contains("();")
        || trimmed.contains(" = ")
        || trimmed.contains("=>")
        || trimmed.contains("::")
        || trimmed.contains("({")
        || trimmed.contains(" := ");
    if HEADS.iter().any(|head| trimmed.starts_with(head))
        && (ends_like_code
            || has_code_mark
            || trimmed.ends_with(':')
            || trimmed.ends_with('\'')
            || trimmed.ends_with('"'))
    {
        return true;
    }
    if ends_like_code && (has_code_mark || spaces * 8 < letters) && !trimmed.starts_with("- ") {
        return true;
    }
    let is_unspaced = trimmed.is_ascii();
    // A long run of characters with few letters: dumps, hashes, tables.
    is_unspaced && trimmed.len() > 40 && letters * 2 < trimmed.len()
}
