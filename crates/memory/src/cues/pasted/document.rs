//! Documents inside of a message: plans, specifications, reports, issues, letters. They are material, and nobody's rules.

/// A text with several headings is a document from this length on, bytes.
const LONG_BYTES: usize = 600;
/// So many headings, at least.
const HEADINGS_MIN: usize = 3;
/// The person's words behind a document are at most this long, bytes.
const CLOSING_BYTES_MAX: usize = 400;
/// How many lines the head of a letter has at most.
const MAIL_LINES_MAX: usize = 6;

/// Whether a text holds a document: several headings in a long text, or a letter.
pub(super) fn is_document(text: &str) -> bool {
    let headings = || text.lines().filter(|line| is_heading(line));
    let is_long = text.len() >= LONG_BYTES && headings().take(HEADINGS_MIN).count() >= HEADINGS_MIN;
    is_long || is_mail(text)
}

/// Whether a document begins with a line, or a part of it.
pub(super) fn begins(line: &str) -> bool {
    is_heading(line) || begins_mail(line)
}

/// Where the person's own words begin that stand behind a document: its last paragraph, if it is short, no part of a
/// list, and set apart. Else the end of the text.
pub(super) fn closing(text: &str) -> usize {
    let trimmed = text.trim_end();
    let Some(gap) = trimmed.rfind("\n\n") else {
        return text.len();
    };
    let last = trimmed[gap..].trim_start();
    let start = trimmed.len() - last.len();
    let is_plain = last.len() <= CLOSING_BYTES_MAX
        && last.lines().count() <= 3
        && last.lines().all(|line| !is_structured(line));
    let before = trimmed[..gap].trim_end();
    let line = before.lines().next_back().unwrap_or_default();
    let is_apart = is_rule(line)
        || line.trim_start().starts_with(['-', '*', '|', '`'])
        || is_numbered(line)
        || trimmed[..start].ends_with("\n\n\n")
        || last.ends_with(['?', '？']);
    if is_plain && is_apart {
        start
    } else {
        text.len()
    }
}

fn is_heading(line: &str) -> bool {
    let level = line.bytes().take_while(|b| *b == b'#').count();
    (1..=6).contains(&level) && line.as_bytes().get(level) == Some(&b' ')
}

fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3
        && line
            .bytes()
            .all(|byte| matches!(byte, b'-' | b'=' | b'*' | b'_'))
}

fn is_numbered(line: &str) -> bool {
    let line = line.trim_start();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && line[digits..].starts_with(['.', ')'])
}

fn is_structured(line: &str) -> bool {
    is_heading(line)
        || line.starts_with([' ', '\t', '-', '*', '|', '>', '`'])
        || is_numbered(line)
        || begins_mail(line)
}

/// Whether a line begins a letter that was passed on or answered.
fn begins_mail(line: &str) -> bool {
    let line = line.trim();
    let is_reply = line.starts_with("On ") && line.ends_with("wrote:");
    is_reply
        || [
            "-----Original Message",
            "---------- Forwarded message",
            "Begin forwarded message:",
        ]
        .iter()
        .any(|start| line.starts_with(start))
        || ["From: ", "Von: ", "De : ", "**From:**"]
            .iter()
            .any(|start| line.starts_with(start))
}

/// Whether a text holds a letter: `From:` with other fields of a head near it, or a mark of one that was passed on.
fn is_mail(text: &str) -> bool {
    const FIELDS: [&str; 9] = [
        "Subject:",
        "Sent:",
        "Date:",
        "To:",
        "Cc:",
        "Betreff:",
        "Gesendet:",
        "An:",
        "Objet",
    ];
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if !begins_mail(line) {
            continue;
        }
        let is_field = |line: &str| {
            let line = line.trim().trim_start_matches('*');
            FIELDS.iter().any(|field| line.starts_with(field))
        };
        let has_name = line.contains("wrote:") || line.contains("essage");
        if has_name || lines.clone().take(MAIL_LINES_MAX).any(is_field) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_and_letters_make_documents() {
        let plan = format!(
            "Do this.\n# Plan\n{}## One\n- a\n## Two\n- b",
            "Some words of it.\n".repeat(40)
        );
        assert!(is_document(&plan));
        assert!(!is_document("# Plan\n## One\n## Two"));
        assert!(is_document(
            "See below.\nFrom: Ada\nTo: Ben\nSubject: Fees\n\nNever raise the fees."
        ));
        assert!(is_document(
            "Do it.\n\nOn Monday, Ada wrote:\nNever raise the fees."
        ));
        assert!(!is_document(
            "From: the mill, to: the quay. Never the other way."
        ));
    }

    #[test]
    fn the_persons_words_behind_a_document_are_found() {
        let behind = |text: &str| text[closing(text)..].to_owned();
        assert_eq!(
            behind("# Plan\n- one\n- two\n\nPlease do the first."),
            "Please do the first."
        );
        assert_eq!(behind("# Plan\nIt is long.\n\n---\n\nDo it."), "Do it.");
        assert_eq!(
            behind("# Plan\nIt is long.\n\nIs it right?"),
            "Is it right?"
        );
        assert_eq!(behind("# Plan\nIt is long.\n\nIt is wide."), "");
        assert_eq!(behind("# Plan\n- one\n\n- two"), "");
    }
}
