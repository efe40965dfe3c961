//! Finds identifiers in a line of text: paths, file names, symbols, addresses, versions, flags, hashes.
//!
//! One pass over the bytes, without regular expressions: this runs over every line of a transcript.

use std::ops::Range;

/// What an identifier looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// `https://...`
    Url,
    /// `name@host.tld`
    Email,
    /// `src/main.rs`, `/etc/hosts`, `~/notes`
    Path,
    /// Words with slashes between them that need not be a path: `read/write`.
    Words,
    /// `main.rs`
    File,
    /// `1.4.2`
    Version,
    /// `#123`, `ABC-42`
    Issue,
    /// `MAX_SIZE`
    Constant,
    /// `--verbose`
    Flag,
    /// `session.subscribe`
    Dotted,
    /// `snake_case`
    Snake,
    /// `camelCase`, `PascalCase`
    Camel,
    /// `three-part-name`
    Kebab,
    /// Hexadecimal, with digits and letters: commits, digests; UUIDs too.
    Hash,
    /// A number of some length.
    Number,
}

/// Shortest and longest identifier that is kept, bytes.
pub const LENGTH: Range<usize> = 5..161;

/// Finds the identifiers in `line`, calling `found` with the bytes and the shape of each, and `word` with the bytes of
/// each plain word of three letters or more. Parts of an identifier that are identifiers themselves (`b_c` in `a.b_c`,
/// the file name of a path) come after the whole.
pub fn scan(
    line: &str,
    mut found: impl FnMut(Range<usize>, Shape),
    mut word: impl FnMut(Range<usize>),
) {
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_chunk_byte(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        let mut marks = Marks::default();
        while at < bytes.len() && is_chunk_byte(bytes[at]) {
            marks.note(bytes[at]);
            at += 1;
        }
        if bytes[at..].starts_with(b"://") && bytes[start..at].iter().all(u8::is_ascii_alphabetic) {
            at = url_end(bytes, at + 3);
            emit(start..at, Shape::Url, &mut found);
            continue;
        }
        chunk(bytes, start..at, marks, &mut found, &mut word);
    }
}

/// Which kinds of byte a chunk has.
#[derive(Clone, Copy, Default)]
struct Marks {
    slash: u32,
    dot: bool,
    underscore: bool,
    hyphen: u32,
    at: bool,
    hash: bool,
    digit: bool,
    lower: bool,
    upper: bool,
}

impl Marks {
    fn note(&mut self, byte: u8) {
        match byte {
            b'a'..=b'z' => self.lower = true,
            b'A'..=b'Z' => self.upper = true,
            b'0'..=b'9' => self.digit = true,
            b'_' => self.underscore = true,
            b'/' => self.slash += 1,
            b'.' => self.dot = true,
            b'-' => self.hyphen += 1,
            b'@' => self.at = true,
            b'#' => self.hash = true,
            _ => {}
        }
    }

    fn of(bytes: &[u8]) -> Self {
        let mut marks = Self::default();
        for byte in bytes {
            marks.note(*byte);
        }
        marks
    }
}

fn is_chunk_byte(byte: u8) -> bool {
    const TABLE: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            table[byte] = matches!(byte as u8,
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'/' | b'.' | b'-' | b'@' | b'+' | b'~' | b'#');
            byte += 1;
        }
        table
    };
    TABLE[byte as usize]
}

fn url_end(bytes: &[u8], from: usize) -> usize {
    let is_end = |byte: &u8| {
        matches!(
            byte,
            0..=b' ' | b'"' | b'\'' | b'<' | b'>' | b')' | b']' | b'}' | b'`' | b'\\'
        )
    };
    let mut end = from
        + bytes[from..]
            .iter()
            .position(is_end)
            .unwrap_or(bytes.len() - from);
    while end > from && matches!(bytes[end - 1], b'.' | b',' | b';' | b':' | b'!' | b'?') {
        end -= 1;
    }
    end
}

fn emit(range: Range<usize>, shape: Shape, found: &mut impl FnMut(Range<usize>, Shape)) {
    if LENGTH.contains(&range.len()) {
        found(range, shape);
    }
}

fn chunk(
    bytes: &[u8],
    mut range: Range<usize>,
    marks: Marks,
    found: &mut impl FnMut(Range<usize>, Shape),
    word: &mut impl FnMut(Range<usize>),
) {
    // The end of a sentence is not the end of a name.
    while range.end > range.start
        && matches!(
            bytes[range.end - 1],
            b'.' | b'-' | b'/' | b'+' | b'~' | b'#' | b'@'
        )
    {
        range.end -= 1;
    }
    let is_flag = bytes[range.start..range.end].starts_with(b"--");
    while range.end > range.start
        && !is_flag
        && match bytes[range.start] {
            b'-' | b'+' | b'@' => true,
            b'#' => marks.lower || marks.upper,
            b'.' => !(marks.slash > 0 && starts_relative(&bytes[range.start..range.end])),
            _ => false,
        }
    {
        range.start += 1;
    }
    let text = &bytes[range.clone()];
    if text.is_empty() {
        return;
    }
    if marks.slash > 0 && text.contains(&b'/') {
        path(bytes, range, found, word);
    } else if marks.at && is_email(text) {
        emit(range, Shape::Email, found);
    } else if is_flag {
        if text.len() > 4 && text[2].is_ascii_lowercase() {
            emit(range, Shape::Flag, found);
        }
    } else if marks.hash && text[0] == b'#' {
        if text.len() > 1 && text[1..].iter().all(u8::is_ascii_digit) && text.len() <= 7 {
            // Issue numbers are short: they count in spite of their length.
            found(range, Shape::Issue);
        }
    } else if marks.dot && text.contains(&b'.') {
        dotted(bytes, range, found, word);
    } else {
        simple(bytes, range, found, word);
    }
}

fn starts_relative(text: &[u8]) -> bool {
    text.starts_with(b"./") || text.starts_with(b"../")
}

fn is_email(text: &[u8]) -> bool {
    let mut halves = text.split(|byte| *byte == b'@');
    match (halves.next(), halves.next(), halves.next()) {
        (Some(name), Some(host), None) => !name.is_empty() && host.contains(&b'.'),
        _ => false,
    }
}

fn path(
    bytes: &[u8],
    range: Range<usize>,
    found: &mut impl FnMut(Range<usize>, Shape),
    word: &mut impl FnMut(Range<usize>),
) {
    let text = &bytes[range.clone()];
    let is_plain = text
        .iter()
        .all(|byte| byte.is_ascii_alphabetic() || *byte == b'/')
        && text[0] != b'/';
    let slashes = text.iter().filter(|byte| **byte == b'/').count();
    if text.iter().all(|byte| !byte.is_ascii_alphabetic()) {
        return;
    }
    emit(
        range.clone(),
        if is_plain && slashes == 1 {
            Shape::Words
        } else {
            Shape::Path
        },
        found,
    );
    let name_start = range.start
        + text
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |at| at + 1);
    let name = name_start..range.end;
    if bytes[name.clone()].contains(&b'.') {
        dotted(bytes, name, found, word);
    } else if !is_plain {
        simple(bytes, name, found, &mut |_| {});
    }
}

fn dotted(
    bytes: &[u8],
    range: Range<usize>,
    found: &mut impl FnMut(Range<usize>, Shape),
    word: &mut impl FnMut(Range<usize>),
) {
    let text = &bytes[range.clone()];
    if is_file_name(text) {
        emit(range, Shape::File, found);
        return;
    }
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let unprefixed = text.strip_prefix(b"v").unwrap_or(text);
    if unprefixed.split(|byte| *byte == b'.').all(is_number) {
        if unprefixed.iter().filter(|byte| **byte == b'.').count() >= 2 {
            emit(range, Shape::Version, found);
        }
        return;
    }
    let is_name = |part: &[u8]| {
        !part.is_empty()
            && !part[0].is_ascii_digit()
            && part
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    let is_dotted_name = text.split(|byte| *byte == b'.').all(is_name);
    if is_dotted_name {
        emit(range.clone(), Shape::Dotted, found);
    }
    let mut start = range.start;
    for part in text.split(|byte| *byte == b'.') {
        let part_range = start..start + part.len();
        start += part.len() + 1;
        if is_dotted_name {
            simple(bytes, part_range, found, &mut |_| {});
        } else {
            simple(bytes, part_range, found, word);
        }
    }
}

fn is_file_name(text: &[u8]) -> bool {
    const EXTENSIONS: &[&[u8]] = &[
        b"go", b"py", b"rs", b"ts", b"tsx", b"js", b"jsx", b"mjs", b"cjs", b"md", b"mdx", b"json",
        b"jsonl", b"yaml", b"yml", b"toml", b"sh", b"sql", b"html", b"css", b"scss", b"txt",
        b"lock", b"mod", b"sum", b"proto", b"java", b"rb", b"php", b"cs", b"c", b"h", b"cc",
        b"cpp", b"hpp", b"swift", b"kt", b"ini", b"cfg", b"conf", b"log", b"csv", b"xml", b"gz",
        b"zip", b"pdf", b"png", b"svg", b"vue", b"svelte", b"ex", b"exs", b"erl", b"hs", b"ml",
        b"scala", b"lua", b"zig", b"tf", b"ipynb", b"env",
    ];
    let Some(dot) = text.iter().rposition(|byte| *byte == b'.') else {
        return false;
    };
    dot > 0
        && EXTENSIONS.contains(&&text[dot + 1..])
        && text[..dot].iter().any(|byte| byte.is_ascii_alphanumeric())
}

/// A chunk without slashes and dots.
fn simple(
    bytes: &[u8],
    range: Range<usize>,
    found: &mut impl FnMut(Range<usize>, Shape),
    word: &mut impl FnMut(Range<usize>),
) {
    let text = &bytes[range.clone()];
    let marks = Marks::of(text);
    if !marks.digit && !marks.underscore && marks.hyphen == 0 && !is_camel(text) {
        if text.len() >= 3 && (marks.lower || marks.upper) {
            word(range);
        }
        return;
    }
    if marks.hyphen == 4 && text.len() == 36 && is_hash(text) {
        return emit(range, Shape::Hash, found);
    }
    if marks.hyphen == 0 {
        return name(text, range, marks, found, word);
    }
    let is_part = |part: &[u8]| !part.is_empty();
    if marks.hyphen >= 2
        && !marks.upper
        && !marks.underscore
        && text.split(|byte| *byte == b'-').all(is_part)
    {
        return emit(range, Shape::Kebab, found);
    }
    if marks.hyphen == 1 && marks.upper && !marks.lower && is_issue_key(text) {
        return found(range, Shape::Issue);
    }
    let mut start = range.start;
    for part in text.split(|byte| *byte == b'-') {
        name(
            part,
            start..start + part.len(),
            Marks::of(part),
            found,
            word,
        );
        start += part.len() + 1;
    }
}

/// A chunk of letters, digits and underscores.
fn name(
    text: &[u8],
    range: Range<usize>,
    marks: Marks,
    found: &mut impl FnMut(Range<usize>, Shape),
    word: &mut impl FnMut(Range<usize>),
) {
    if text.is_empty() {
    } else if marks.underscore {
        if marks.upper && !marks.lower {
            emit(range, Shape::Constant, found);
        } else if marks.lower || marks.upper {
            emit(range, Shape::Snake, found);
        }
    } else if marks.digit && is_hash(text) && (marks.lower || marks.upper) {
        if text.len() >= 7 {
            emit(range, Shape::Hash, found);
        }
    } else if is_camel(text) {
        emit(range, Shape::Camel, found);
    } else if marks.digit && !marks.lower && !marks.upper {
        emit(range, Shape::Number, found);
    } else if !marks.digit && text.len() >= 3 {
        word(range);
    }
}

fn is_issue_key(text: &[u8]) -> bool {
    let Some(hyphen) = text.iter().position(|byte| *byte == b'-') else {
        return false;
    };
    let digits = text.len() - hyphen - 1;
    (2..=8).contains(&hyphen)
        && (1..=6).contains(&digits)
        && text[hyphen + 1..].iter().all(u8::is_ascii_digit)
}

fn is_hash(text: &[u8]) -> bool {
    text.len() <= 64
        && text
            .iter()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f' | b'-'))
}

/// Whether there are capitals inside the word: `fooBar`, `FooBar`, `HTTPServer`, but not `Foo` or `HTTP`.
fn is_camel(text: &[u8]) -> bool {
    if text.len() < 4 || !text[0].is_ascii_alphabetic() {
        return false;
    }
    let has_lower = text.iter().any(u8::is_ascii_lowercase);
    has_lower && text[1..].iter().any(u8::is_ascii_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &[(&str, Shape)]) {
        let mut all = Vec::new();
        scan(line, |range, shape| all.push((&line[range], shape)), |_| {});
        assert_eq!(all, expected, "{line}");
    }

    #[test]
    fn shapes() {
        use Shape::*;
        check(
            "see src/main.rs.",
            &[("src/main.rs", Path), ("main.rs", File)],
        );
        check(
            "in ./lib/foo-bar/x_test.go:12",
            &[("./lib/foo-bar/x_test.go", Path), ("x_test.go", File)],
        );
        check(
            "call session.subscribe(fooBar)",
            &[("session.subscribe", Dotted), ("fooBar", Camel)],
        );
        check(
            "`a.do_it_now`",
            &[("a.do_it_now", Dotted), ("do_it_now", Snake)],
        );
        check(
            "MAX_SIZE and HTTPServer, not HTTP or Foo",
            &[("MAX_SIZE", Constant), ("HTTPServer", Camel)],
        );
        check("at https://a.b/c?d=e. Then", &[("https://a.b/c?d=e", Url)]);
        check("me@example.org", &[("me@example.org", Email)]);
        check("v1.20.3 and 1.5", &[("v1.20.3", Version)]);
        check("fixes #42 and ABC-17", &[("#42", Issue), ("ABC-17", Issue)]);
        check("run with --no-stat -x", &[("--no-stat", Flag)]);
        check("commit 5e1f0aab and deadbeef", &[("5e1f0aab", Hash)]);
        check("pre-state-machine is new", &[("pre-state-machine", Kebab)]);
        check("read/write", &[("read/write", Words)]);
        check("timeout 300000 ms", &[("300000", Number)]);
        check("/// and ... and -- and #", &[]);
    }

    #[test]
    fn plain_words_stand_apart() {
        let line = "The helper openRepo in pkg/git.go is not in use: fix it-now";
        let mut words = Vec::new();
        scan(line, |_, _| {}, |range| words.push(&line[range]));
        assert_eq!(words, ["The", "helper", "not", "use", "fix", "now"]);
    }

    proptest::proptest! {
        #[test]
        fn ranges_are_in_order_and_on_boundaries(line in "\\PC*|[a-zA-Z0-9./_@#~+:-]{0,40}") {
            scan(&line, |range, _| { let _ = &line[range]; }, |range| { let _ = &line[range]; });
        }
    }
}
