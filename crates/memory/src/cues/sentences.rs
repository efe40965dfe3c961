//! Splits prose into sentences.
use std::ops::Range;

/// The sentences of `text`, as byte ranges, without list marks and white space around them.
///
/// A sentence ends at `.`, `?`, `!`, `…` before white space (and at their wide forms anywhere), and at the end of a line
/// unless the next line continues in lower case after a long line.
pub(crate) fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut line_start = 0;
    let mut in_code = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let after = at + c.len_utf8();
        match c {
            '`' => in_code = !in_code,
            '\n' => {
                in_code = false;
                if !goes_on(
                    text.get(line_start..at).unwrap_or_default(),
                    text.get(after..).unwrap_or_default(),
                ) {
                    push(text, start..at, &mut out);
                    start = after;
                }
                line_start = after;
            }
            '。' | '！' | '？' | '｡' | '؟' | '۔' | '।' | '॥' => {
                push(text, start..after, &mut out);
                start = after;
            }
            '.' | '?' | '!' | '…' if !in_code => {
                // A run of marks and closing quotes belongs to the sentence.
                let mut end = after;
                while let Some(&(next, mark)) = chars.peek() {
                    if !matches!(
                        mark,
                        '.' | '?' | '!' | '…' | '"' | '\'' | ')' | '”' | '’' | '»'
                    ) {
                        break;
                    }
                    end = next + mark.len_utf8();
                    chars.next();
                }
                let is_followed_by_space =
                    chars.peek().is_none_or(|(_, next)| next.is_whitespace());
                if is_followed_by_space
                    && !(c == '.' && is_abbreviation(text.get(start..at).unwrap_or_default()))
                    && !(c == '.' && is_ordinal(text.get(start..at), text.get(after..)))
                {
                    push(text, start..end, &mut out);
                    start = end;
                }
            }
            _ => {}
        }
    }
    push(text, start..text.len(), &mut out);
    out
}

fn goes_on(line: &str, rest: &str) -> bool {
    const WRAPPED_BYTES: usize = 60;
    line.len() >= WRAPPED_BYTES
        && !line.trim_end().ends_with(['.', '?', '!', ':', ';'])
        && rest.chars().next().is_some_and(char::is_lowercase)
}

/// Whether the full stop between the two makes a number an ordinal: "am 2. April", "im 3. Stock".
fn is_ordinal(before: Option<&str>, after: Option<&str>) -> bool {
    const COUNTED: [&str; 22] = [
        "Januar",
        "Jänner",
        "Februar",
        "März",
        "April",
        "Mai",
        "Juni",
        "Juli",
        "August",
        "September",
        "Oktober",
        "November",
        "Dezember",
        "Stock",
        "Klasse",
        "Semester",
        "Quartal",
        "Etage",
        "Kapitel",
        "Auflage",
        "Jahrhundert",
        "Geburtstag",
    ];
    let digits = before.unwrap_or_default();
    let digits = digits.len() - digits.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let next = after.unwrap_or_default().trim_start();
    (1..=2).contains(&digits) && COUNTED.iter().any(|counted| next.starts_with(counted))
}

fn is_abbreviation(before: &str) -> bool {
    const KNOWN: [&str; 71] = [
        "e.g", "i.e", "etc", "vs", "mr", "mrs", "ms", "dr", "prof", "st", "no", "approx", "cf",
        "resp", "incl", "excl", "fig", "sec", "ca", "z.b", "d.h", "u.a", "bzw", "usw", "ggf",
        "evtl", "nr", "p.ej", "sr", "sra", "ud", "uds", "p.ex", "inc", "np", "itd", "itp", "tzn",
        "tj", "m.in", "т.е", "т.к", "т.д", "т.п", "др", "стр", "рис", "напр", "тис", "див", "bv",
        "bijv", "enz", "o.a", "d.w.z", "i.p.v", "m.b.t", "ecc", "p.es", "pag", "dott", "vb", "örn",
        "bkz", "dll", "dsb", "tsb", "yg", "v.v", "vd", "tp",
    ];
    let word = before
        .rsplit(|c: char| c.is_whitespace() || matches!(c, '(' | '[' | '"'))
        .next()
        .unwrap_or_default();
    let mut chars = word.chars();
    let is_number = !word.is_empty()
        && word.chars().all(|c| c.is_ascii_digit())
        && before.trim_start().len() == word.len();
    // "J. Smith", "John F. Smith"; but "do A." is the end of a sentence.
    let is_letter = chars.next().is_some_and(char::is_uppercase) && chars.next().is_none();
    let previous = before
        .get(..before.len() - word.len())
        .and_then(|rest| rest.split_whitespace().next_back());
    let is_initial = is_letter
        && previous.is_some_and(|previous| {
            previous.starts_with(char::is_uppercase) && !previous.ends_with([',', '.'])
        });
    // "no." ends a sentence as often as it shortens "number".
    let is_known = word.len() <= 10
        && word != "no"
        && KNOWN.iter().any(|known| word.eq_ignore_ascii_case(known))
        && before.len() > word.len();
    is_number || is_initial || is_known
}

fn push(text: &str, range: Range<usize>, out: &mut Vec<Range<usize>>) {
    let Some(piece) = text.get(range.clone()) else {
        return;
    };
    let piece_start = range.start + (piece.len() - piece.trim_start().len());
    let mut rest = piece.trim();
    let mut start = piece_start;
    let mark = list_mark(rest);
    start += mark;
    rest = rest.get(mark..).unwrap_or_default();
    if rest.chars().any(char::is_alphanumeric) || rest.contains(['👍', '👎', '✅', '❌', '?', '？'])
    {
        out.push(start..start + rest.len());
    }
}

/// Bytes of the list mark or heading mark that `text` begins with, its white space included.
pub(crate) fn list_mark(text: &str) -> usize {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let after_digits = text.get(digits..).unwrap_or_default();
    let mark = if (1..=3).contains(&digits)
        && (after_digits.starts_with(". ") || after_digits.starts_with(") "))
    {
        digits + 1
    } else if let Some(mark) = ["- ", "* ", "+ ", "• ", "– ", "— "]
        .iter()
        .find(|mark| text.starts_with(*mark))
    {
        mark.trim_end().len()
    } else {
        let level = text.bytes().take_while(|b| *b == b'#').count();
        if (1..=6).contains(&level) && text.as_bytes().get(level) == Some(&b' ') {
            level
        } else {
            return 0;
        }
    };
    let rest = text.get(mark..).unwrap_or_default();
    mark + (rest.len() - rest.trim_start().len())
}
