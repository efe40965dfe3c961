//! The start of a line that begins a turn: a time, a speaker, a colon.

use throughline_transcript::message::Role;

use crate::formats::times;

/// A name of more characters is none.
const NAME_CHARS_MAX: usize = 40;

/// Names of the person, in lower case.
const USER: &[&str] = &[
    "user",
    "human",
    "you",
    "me",
    "customer",
    "client",
    "prompt",
    "question",
    "student",
    // German, French, Spanish, Portuguese, Italian, Dutch, Polish, Turkish
    "benutzer",
    "benutzerin",
    "nutzer",
    "nutzerin",
    "mensch",
    "kunde",
    "kundin",
    "frage",
    "ich",
    "utilisateur",
    "utilisatrice",
    "humain",
    "moi",
    "usuario",
    "usuaria",
    "humano",
    "cliente",
    "pregunta",
    "yo",
    "usuário",
    "pergunta",
    "utente",
    "umano",
    "domanda",
    "gebruiker",
    "mens",
    "użytkownik",
    "kullanıcı",
    "insan",
    // Russian, Ukrainian, Arabic, Hindi
    "пользователь",
    "человек",
    "вопрос",
    "користувач",
    "مستخدم",
    "المستخدم",
    "उपयोगकर्ता",
    // Chinese, Japanese, Korean
    "用户",
    "用戶",
    "人类",
    "人類",
    "我",
    "使用者",
    "问",
    "問",
    "ユーザー",
    "ユーザ",
    "人間",
    "質問",
    "사용자",
    "인간",
    "질문",
];

/// Names of the model, in lower case.
const ASSISTANT: &[&str] = &[
    "assistant",
    "ai",
    "ai assistant",
    "bot",
    "chatbot",
    "chatgpt",
    "gpt",
    "claude",
    "gemini",
    "copilot",
    "bard",
    "llama",
    "mistral",
    "grok",
    "deepseek",
    "qwen",
    "llm",
    "agent",
    "support",
    "response",
    "answer",
    "tutor",
    // German, French, Spanish, Portuguese, Italian, Dutch, Polish, Turkish
    "assistent",
    "assistentin",
    "ki",
    "antwort",
    "assistante",
    "ia",
    "réponse",
    "asistente",
    "respuesta",
    "assistente",
    "resposta",
    "risposta",
    "asystent",
    "asistan",
    "yapay zeka",
    // Russian, Ukrainian, Arabic, Hindi
    "ассистент",
    "помощник",
    "ии",
    "бот",
    "ответ",
    "асистент",
    "مساعد",
    "المساعد",
    "सहायक",
    // Chinese, Japanese, Korean
    "助手",
    "助理",
    "人工智能",
    "机器人",
    "機器人",
    "答",
    "アシスタント",
    "ボット",
    "回答",
    "어시스턴트",
    "챗봇",
    "답변",
];

const SYSTEM: &[&str] = &[
    "system",
    "système",
    "sistema",
    "systeem",
    "система",
    "系统",
    "系統",
    "システム",
    "시스템",
];

const TOOL: &[&str] = &[
    "tool",
    "tool result",
    "function",
    "observation",
    "werkzeug",
    "工具",
];

/// Names so common in configuration files and code that they count only where they begin with a capital letter.
const CAPITAL_ONLY: &[&str] = &[
    "client",
    "prompt",
    "question",
    "agent",
    "support",
    "response",
    "answer",
    "you",
    "me",
    "function",
    "student",
    "tutor",
    "customer",
    "observation",
    "tool",
    "mens",
    "insan",
];

const LOG_LEVELS: &[&str] = &[
    "trace", "debug", "info", "notice", "warn", "warning", "error", "err", "critical", "fatal",
    "severe", "panic",
];

/// The start of a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mark<'a> {
    pub(super) speaker: Speaker,
    pub(super) name: &'a str,
    /// Byte of the line at which the name begins.
    pub(super) name_start: usize,
    /// Byte of the line at which the text begins.
    pub(super) text_start: usize,
    pub(super) has_time: bool,
    pub(super) at_ms: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Speaker {
    /// The name says what the speaker is.
    Role(Role),
    /// Somebody with a name.
    Name,
}

impl<'a> Mark<'a> {
    /// Reads the mark at the start of `line`, if there is one.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        // Most lines of a text are none; none begins with white space.
        let first = line.chars().next()?;
        if first.is_whitespace() {
            return None;
        }
        let (time, after_time) = time(line);
        let has_time = time.is_some();
        let mut at = after_time;
        let is_heading = line[at..].starts_with('#');
        at += line[at..].len()
            - line[at..]
                .trim_start_matches(['#', '*', '_', '>', ' '])
                .len();
        if is_heading && !line[at - 1..].starts_with([' ', '*', '_']) {
            return None;
        }
        let rest = &line[at..];
        let (name, after) = if let Some(inside) = rest.strip_prefix('<') {
            // As in IRC.
            let (name, _) = inside.split_once('>')?;
            at += 1;
            (name, name.len() + 1)
        } else {
            let window = rest
                .char_indices()
                .nth(NAME_CHARS_MAX * 2)
                .map_or(rest, |(end, _)| &rest[..end]);
            let mut depth = 0i32;
            let colon = window.char_indices().find(|(_, c)| {
                // The colon of a time in brackets does not end the name.
                depth += i32::from(matches!(c, '(' | '[')) - i32::from(matches!(c, ')' | ']'));
                depth <= 0 && matches!(c, ':' | '：')
            });
            match colon {
                Some((end, colon)) => (&rest[..end], end + colon.len_utf8()),
                None if is_heading => (rest, rest.len()),
                None => return None,
            }
        };
        let (name, named_time) = details(name);
        let is_nick = rest.starts_with('<');
        let speaker = speaker(name, has_time || named_time.is_some(), is_nick)?;
        // The end of bold print behind the colon.
        let tail = &line[at + after..];
        let after = after + (tail.len() - tail.trim_start_matches(['*', '_']).len());
        Some(Self {
            speaker,
            name,
            name_start: at,
            text_start: at + after,
            has_time: has_time || named_time.is_some(),
            at_ms: time.or(named_time).and_then(times::from_text),
        })
    }
}

/// A time at the start of a line, and where it ends: `[12:03]`, `(2025-01-02 12:03)`, `2025-01-02 12:03 -`,
/// `02/01/2025, 12:03 - `.
fn time(line: &str) -> (Option<&str>, usize) {
    if let Some((open, close)) = match line.as_bytes().first() {
        Some(b'[') => Some((1, ']')),
        Some(b'(') => Some((1, ')')),
        _ => None,
    } {
        return match line[open..].split_once(close) {
            Some((inside, after)) if is_time(inside) => {
                let after_trimmed = after.trim_start_matches([' ', '-', ':']);
                (Some(inside), line.len() - after_trimmed.len())
            }
            _ => (None, 0),
        };
    }
    if !line.starts_with(|c: char| c.is_ascii_digit()) {
        return (None, 0);
    }
    let end = line
        .char_indices()
        .find(|(_, c)| {
            !(c.is_ascii_digit()
                || matches!(
                    c,
                    ':' | '-'
                        | '/'
                        | '.'
                        | ','
                        | ' '
                        | 'T'
                        | 'Z'
                        | '+'
                        | 'A'
                        | 'P'
                        | 'M'
                        | '\u{202f}'
                ))
        })
        .map_or(line.len(), |(end, _)| end);
    // Letters of the name may look like those of a time.
    let found =
        line[..end].trim_end_matches(|c: char| c.is_ascii_uppercase() && c != 'Z' && c != 'M');
    let time = found.trim_end_matches([' ', '-', '\u{202f}']);
    if is_time(time) && found.len() > time.len() {
        (Some(time), found.len())
    } else {
        (None, 0)
    }
}

/// Whether a text is a time of day, with or without a date.
fn is_time(text: &str) -> bool {
    let mut digits = 0;
    let mut has_colon_between_digits = false;
    let mut last = ' ';
    for c in text.chars() {
        has_colon_between_digits |= c == ':' && last.is_ascii_digit();
        digits += usize::from(c.is_ascii_digit());
        if !(c.is_ascii_digit() || c.is_whitespace() || "/-.:,+TZAPMapm".contains(c)) {
            return false;
        }
        last = c;
    }
    has_colon_between_digits && (3..=24).contains(&digits)
}

/// A name without print marks, and the time in brackets behind it: `**Assistant (12:03 PM)**`.
fn details(name: &str) -> (&str, Option<&str>) {
    let name = name.trim_matches(['*', '_', ' ', '\r']);
    match name.split_once(['(', '[']) {
        Some((before, inside)) => {
            let inside = inside.trim_end_matches([')', ']', '*', '_']);
            (before.trim(), Some(inside).filter(|inside| is_time(inside)))
        }
        None => (name, None),
    }
}

fn speaker(name: &str, has_time: bool, is_nick: bool) -> Option<Speaker> {
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        return None;
    }
    let lower = name.to_lowercase();
    // `User 1`, `Q2`, `GPT-4`
    let base =
        lower.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, ' ' | '-' | '.' | '#'));
    let is = |list: &[&str]| list.contains(&base) || list.contains(&lower.as_str());
    let is_capital = name.starts_with(char::is_uppercase);
    if is(CAPITAL_ONLY) && !is_capital {
        return has_time.then_some(Speaker::Name);
    }
    let is_letter =
        |letter: char| name.starts_with(letter) && base.chars().eq(letter.to_lowercase());
    if is(USER) || is_letter('Q') {
        Some(Speaker::Role(Role::User))
    } else if is(ASSISTANT) || is_letter('A') {
        Some(Speaker::Role(Role::Assistant))
    } else if is(SYSTEM) {
        Some(Speaker::Role(Role::System))
    } else if is(TOOL) {
        Some(Speaker::Role(Role::Tool))
    } else {
        // In a program's log, levels and component names follow the time.
        let is_level = LOG_LEVELS.contains(&base);
        let is_name = name.split_whitespace().count() <= 4
            && name.starts_with(|c: char| {
                (c.is_alphabetic() && (c.is_uppercase() || !c.is_ascii() || is_nick))
                    || matches!(c, '@' | '~' | '+')
            });
        (has_time && is_name && !is_level).then_some(Speaker::Name)
    }
}
