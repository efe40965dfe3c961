//! Splits a command line into words, redirections and what separates commands.

use super::programs::DocumentUse;

/// Words that one word with braces becomes, at most.
const EXPANDED_WORDS_MAX: usize = 20;
/// Stand in a word for braces and commas that are not quoted: such characters do not occur in commands.
const OPEN: char = '\u{1}';
const COMMA: char = '\u{2}';
const CLOSE: char = '\u{3}';

/// One word, without its quotes.
#[derive(Debug, Default)]
pub(super) struct Word {
    pub(super) text: String,
    /// It holds a variable, a pattern or the output of a command.
    is_unknown: bool,
    pub(super) is_quoted: bool,
}

impl Word {
    /// The text, if it is what the program is given.
    pub(super) fn known(&self) -> Option<&str> {
        (!self.is_unknown && !self.text.contains(OPEN)).then_some(&self.text)
    }

    fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }

    /// The words that it is with its braces expanded; none if they are not known.
    pub(super) fn paths(&self) -> Vec<String> {
        if self.is_unknown {
            return Vec::new();
        }
        let mut words = vec![self.text.clone()];
        while let Some(open) = words.first().and_then(|word| word.find(OPEN)) {
            let word = words.remove(0);
            let Some(close) = word[open..].find(CLOSE).map(|at| open + at) else {
                return Vec::new();
            };
            let inside = &word[open + 1..close];
            if inside.contains(OPEN) || !inside.contains(COMMA) {
                return Vec::new();
            }
            for part in inside.split(COMMA) {
                words.push(format!("{}{part}{}", &word[..open], &word[close + 1..]));
            }
            if words.len() > EXPANDED_WORDS_MAX {
                return Vec::new();
            }
        }
        let plain = |word: String| word.replace(COMMA, ",").replace(CLOSE, "}");
        words.into_iter().map(plain).collect()
    }
}

/// What separates commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    And,
    Or,
    Pipe,
    /// `;`, `&`, the end of a line.
    List,
    Open,
    Close,
}

pub(super) enum Redirect {
    /// Into a file.
    Into(Word),
    /// From a file, between two streams, to a stream that is closed.
    Other,
}

pub(super) enum Token<'t> {
    Word(Word),
    Redirect(Redirect),
    /// A here-document was announced: say what becomes of it with [`Reader::wait_for_document`].
    Document,
    /// The text of a here-document.
    Body {
        text: &'t str,
        what: DocumentUse,
    },
    Break(Break),
}

struct Document {
    end: String,
    what: DocumentUse,
}

pub(super) struct Reader<'t> {
    text: &'t str,
    at: usize,
    documents: std::collections::VecDeque<Document>,
    announced: Option<String>,
    /// The end of a line that announced documents is told after them.
    is_line_over: bool,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            documents: std::collections::VecDeque::new(),
            announced: None,
            is_line_over: false,
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, start: &str) -> bool {
        let is_next = self.rest().starts_with(start);
        if is_next {
            self.at += start.len();
        }
        is_next
    }

    /// Says what becomes of the here-document that was announced.
    pub(super) fn wait_for_document(&mut self, what: DocumentUse) {
        if let Some(end) = self.announced.take() {
            self.documents.push_back(Document { end, what });
        }
    }

    /// Passes over the rest of the line, up to its end or a `;`.
    pub(super) fn skip_line(&mut self) {
        self.blanks();
        if self.rest().starts_with("((") {
            self.balanced();
        }
        while let Some(character) = self.peek() {
            if matches!(character, '\n' | ';') {
                break;
            }
            if matches!(character, '(' | '<' | '>' | '&' | '|' | ')') {
                self.at += 1;
                continue;
            }
            if character.is_whitespace() {
                self.at += character.len_utf8();
            } else {
                self.word();
            }
        }
    }

    /// Passes over the words up to and with `word`, which is in the same line.
    pub(super) fn skip_past(&mut self, word: &str) {
        loop {
            self.blanks();
            let start = self.at;
            if self.peek().is_none_or(|next| next == '\n')
                || self.word().text == word
                || self.at == start
            {
                break;
            }
        }
    }

    pub(super) fn skip_word(&mut self) {
        self.blanks();
        self.word();
    }

    fn blanks(&mut self) {
        loop {
            let rest = self.rest();
            let is_blank = |c: char| c.is_whitespace() && c != '\n';
            self.at += rest.len() - rest.trim_start_matches(is_blank).len();
            if !self.take("\\\n") {
                return;
            }
        }
    }

    /// The next token; `is_start` says that no word of the command has been read.
    pub(super) fn next(&mut self, is_start: bool) -> Option<Token<'t>> {
        if self.is_line_over {
            if let Some(document) = self.documents.pop_front() {
                let text = self.body(&document.end);
                return Some(Token::Body {
                    text,
                    what: document.what,
                });
            }
            self.is_line_over = false;
            return Some(Token::Break(Break::List));
        }
        loop {
            self.blanks();
            let next = self.peek()?;
            return Some(match next {
                '\n' => {
                    self.at += 1;
                    if self.documents.is_empty() {
                        Token::Break(Break::List)
                    } else {
                        self.is_line_over = true;
                        return self.next(is_start);
                    }
                }
                '#' => {
                    let end = memchr::memchr(b'\n', self.rest().as_bytes());
                    self.at = end.map_or(self.text.len(), |end| self.at + end);
                    continue;
                }
                ';' => {
                    while self.take(";") {}
                    Token::Break(Break::List)
                }
                '&' => self.ampersand(),
                '|' => {
                    self.at += 1;
                    if self.take("|") {
                        Token::Break(Break::Or)
                    } else {
                        self.take("&");
                        Token::Break(Break::Pipe)
                    }
                }
                // Arithmetic, and the values of an array.
                '(' if (is_start && self.rest().starts_with("(("))
                    || self.text[..self.at].ends_with('=') =>
                {
                    self.balanced();
                    continue;
                }
                '(' => {
                    self.at += 1;
                    Token::Break(Break::Open)
                }
                ')' => {
                    self.at += 1;
                    Token::Break(Break::Close)
                }
                '[' if is_start && self.rest().starts_with("[[ ") => {
                    // Its `<`, `>`, `&&` and `||` are not those of commands.
                    let end = memchr::memmem::find(self.rest().as_bytes(), b"]]");
                    self.at = end.map_or(self.text.len(), |end| self.at + end + 2);
                    Token::Word(Word::plain("[["))
                }
                '<' => self.less(),
                '>' => self.greater(),
                _ => {
                    let start = self.at;
                    let word = self.word();
                    let is_stream = !word.is_quoted
                        && matches!(self.peek(), Some('<' | '>'))
                        && self.text[start..self.at]
                            .bytes()
                            .all(|byte| byte.is_ascii_digit());
                    if is_stream {
                        continue;
                    }
                    if is_start && self.take("()") {
                        return Some(Token::Word(Word::plain(&(word.text + "()"))));
                    }
                    Token::Word(word)
                }
            });
        }
    }

    fn ampersand(&mut self) -> Token<'t> {
        self.at += 1;
        if self.take("&") {
            Token::Break(Break::And)
        } else if self.take(">") {
            self.take(">");
            self.target()
        } else {
            Token::Break(Break::List)
        }
    }

    fn less(&mut self) -> Token<'t> {
        if self.take("<<<") {
            self.skip_word();
            return Token::Redirect(Redirect::Other);
        }
        if self.take("<<-") || self.take("<<~") || self.take("<<") {
            self.blanks();
            self.announced = Some(self.word().text).filter(|end| !end.is_empty());
            return Token::Document;
        }
        self.at += 1;
        if self.peek() == Some('(') {
            self.balanced();
            return Token::Word(Word {
                is_unknown: true,
                ..Word::default()
            });
        }
        if !self.take("&") {
            self.take(">");
        }
        self.skip_word();
        Token::Redirect(Redirect::Other)
    }

    fn greater(&mut self) -> Token<'t> {
        self.at += 1;
        match self.peek() {
            Some('(') => {
                self.balanced();
                Token::Word(Word {
                    is_unknown: true,
                    ..Word::default()
                })
            }
            Some('&') => {
                self.at += 1;
                let Token::Redirect(Redirect::Into(word)) = self.target() else {
                    return Token::Redirect(Redirect::Other);
                };
                let is_stream = word
                    .text
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'-'));
                Token::Redirect(if is_stream {
                    Redirect::Other
                } else {
                    Redirect::Into(word)
                })
            }
            _ => {
                if !self.take(">") {
                    self.take("|");
                }
                self.target()
            }
        }
    }

    fn target(&mut self) -> Token<'t> {
        self.blanks();
        if self.rest().starts_with(">(") {
            self.at += 1;
            self.balanced();
            return Token::Redirect(Redirect::Other);
        }
        let start = self.at;
        let word = self.word();
        Token::Redirect(if self.at == start {
            Redirect::Other
        } else {
            Redirect::Into(word)
        })
    }

    /// The text up to the line that ends the here-document.
    fn body(&mut self, end: &str) -> &'t str {
        let start = self.at;
        while self.at < self.text.len() {
            let rest = self.rest();
            let length = memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
            let is_end = rest[..length].trim() == end;
            let line = self.at;
            self.at += (length + 1).min(rest.len());
            if is_end {
                return &self.text[start..line];
            }
        }
        &self.text[start..]
    }

    /// Passes over brackets and what is in them.
    fn balanced(&mut self) {
        let bytes = self.text.as_bytes();
        let mut depth = 0usize;
        while self.at < bytes.len() {
            match bytes[self.at] {
                b'(' => depth += 1,
                b')' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        self.at += 1;
                        return;
                    }
                }
                b'\\' => self.at += 1,
                quote @ (b'\'' | b'"') => {
                    self.at += 1;
                    while self.at < bytes.len() && bytes[self.at] != quote {
                        self.at += if bytes[self.at] == b'\\' && quote == b'"' {
                            2
                        } else {
                            1
                        };
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.text.len();
    }

    fn word(&mut self) -> Word {
        let mut word = Word::default();
        let mut braces = 0usize;
        while let Some(character) = self.peek() {
            match character {
                '\'' => {
                    word.is_quoted = true;
                    self.at += 1;
                    let rest = self.rest();
                    let length = memchr::memchr(b'\'', rest.as_bytes()).unwrap_or(rest.len());
                    word.text.push_str(&rest[..length]);
                    self.at += (length + 1).min(rest.len());
                    continue;
                }
                '"' => {
                    word.is_quoted = true;
                    self.at += 1;
                    self.double_quoted(&mut word);
                    continue;
                }
                '$' if self.rest().starts_with("$'") => {
                    word.is_quoted = true;
                    self.at += 2;
                    self.escaped(&mut word);
                    continue;
                }
                '$' | '`' => {
                    self.expansion(&mut word);
                    continue;
                }
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some('\n') => self.at += 1,
                        Some(next) => {
                            word.text.push(next);
                            self.at += next.len_utf8();
                        }
                        None => {}
                    }
                    continue;
                }
                '*' | '?' | '[' => {
                    word.is_unknown = true;
                    word.text.push(character);
                }
                '{' => {
                    braces += 1;
                    // `{}` stands for what `xargs` and `find` put in; a brace alone is a keyword.
                    if self.rest().starts_with("{}") {
                        word.is_unknown = true;
                    }
                    let is_keyword = word.text.is_empty()
                        && self.rest()[1..].starts_with(|next: char| next.is_whitespace());
                    word.text.push(if is_keyword { '{' } else { OPEN });
                    if is_keyword {
                        self.at += 1;
                        return word;
                    }
                }
                ',' if braces > 0 => word.text.push(COMMA),
                '}' if braces > 0 => {
                    braces -= 1;
                    word.text.push(CLOSE);
                }
                _ if character.is_whitespace() || ";|&<>()".contains(character) => break,
                _ => word.text.push(character),
            }
            self.at += character.len_utf8();
        }
        if braces > 0 {
            word.is_unknown = true;
        }
        word
    }

    /// Reads a `$'...'` with its escapes.
    fn escaped(&mut self, word: &mut Word) {
        while let Some(character) = self.peek() {
            self.at += character.len_utf8();
            match character {
                '\'' => return,
                '\\' => {
                    let Some(next) = self.peek() else { return };
                    self.at += next.len_utf8();
                    match next {
                        'n' => word.text.push('\n'),
                        't' => word.text.push('\t'),
                        '\'' | '"' | '\\' => word.text.push(next),
                        _ => word.is_unknown = true,
                    }
                }
                _ => word.text.push(character),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut Word) {
        while let Some(character) = self.peek() {
            match character {
                '"' => {
                    self.at += 1;
                    return;
                }
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some('\n') => self.at += 1,
                        Some(next @ ('"' | '\\' | '$' | '`')) => {
                            word.text.push(next);
                            self.at += 1;
                        }
                        _ => word.text.push('\\'),
                    }
                }
                '$' | '`' => self.expansion(word),
                _ => {
                    word.text.push(character);
                    self.at += character.len_utf8();
                }
            }
        }
    }

    /// Passes over what a variable or a command puts in.
    fn expansion(&mut self, word: &mut Word) {
        let start = self.at;
        if self.take("$(") {
            self.at -= 1;
            self.balanced();
        } else if self.take("${") {
            let rest = self.rest();
            let length = memchr::memchr(b'}', rest.as_bytes()).unwrap_or(rest.len());
            self.at += (length + 1).min(rest.len());
        } else if self.take("`") {
            let rest = self.rest();
            let length = memchr::memchr(b'`', rest.as_bytes()).unwrap_or(rest.len());
            self.at += (length + 1).min(rest.len());
        } else {
            self.at += 1;
            let rest = self.rest();
            let is_special = rest.starts_with(['?', '!', '#', '@', '*', '$']);
            let name = rest
                .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
                .unwrap_or(rest.len());
            let length = if is_special { 1 } else { name };
            if length == 0 {
                word.text.push('$');
                return;
            }
            self.at += length;
        }
        word.is_unknown = true;
        word.text.push_str(&self.text[start..self.at]);
    }
}
