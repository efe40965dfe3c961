//! Recognises labels before a statement: "HARD CONSTRAINT: ...", "Regel: ...".

/// Words that a label ends with, in lower case.
const LABELS: &[&str] = &[
    "rule",
    "rules",
    "constraint",
    "constraints",
    "requirement",
    "requirements",
    "fact",
    "facts",
    "preference",
    "preferences",
    "policy",
    "goal",
    "state",
    "decision",
    "important",
    "note",
    "reminder",
    "convention",
    "guideline",
    "principle",
    "regel",
    "regeln",
    "vorgabe",
    "vorgaben",
    "wichtig",
    "fakt",
    "entscheidung",
    "merke",
    "vorliebe",
    "règle",
    "règles",
    "contrainte",
    "préférence",
    "fait",
    "décision",
    "regla",
    "reglas",
    "importante",
    "restricción",
    "preferencia",
    "hecho",
    "decisión",
    "regra",
    "regras",
    "restrição",
    "preferência",
    "fato",
    "regola",
    "regole",
    "vincolo",
    "preferenza",
    "правило",
    "важно",
    "факт",
    "требование",
    "规则",
    "规定",
    "重要",
    "事实",
    "偏好",
    "ルール",
    "規則",
    "制約",
];
/// Words of a label.
const WORDS_MAX: usize = 3;

/// Whether a text begins with a label.
#[must_use]
pub(crate) fn is_labelled(text: &str) -> bool {
    label_end(text) > 0
}

/// The statement behind a label.
#[must_use]
pub(crate) fn without_label(text: &str) -> &str {
    &text[label_end(text)..]
}

/// Where the statement behind a label begins, in bytes; 0 without a label.
pub(super) fn label_end(text: &str) -> usize {
    const BYTES_MAX: usize = 48;
    let head = &text[..text.floor_char_boundary(BYTES_MAX)];
    let Some((label, mark)) = head
        .split_once([':', '：'])
        .map(|(label, _)| (label, &head[label.len()..]))
    else {
        return 0;
    };
    let bare = label.trim_matches(|c: char| !c.is_alphanumeric());
    let last = bare
        .split_whitespace()
        .next_back()
        .unwrap_or("")
        .to_lowercase();
    if bare.split_whitespace().count() > WORDS_MAX || !LABELS.contains(&last.as_str()) {
        return 0;
    }
    let colon = mark.chars().next().map_or(0, char::len_utf8);
    let rest = &text[label.len() + colon..];
    if !rest.contains(char::is_alphanumeric) {
        return 0;
    }
    text.len()
        - rest
            .trim_start_matches(|c: char| c.is_whitespace() || c == '*')
            .len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_told_from_other_words_before_a_colon() {
        for (text, expected) in [
            (
                "HARD CONSTRAINT: Keep the sluice shut.",
                "Keep the sluice shut.",
            ),
            ("**Rule:** Keep the sluice shut.", "Keep the sluice shut."),
            ("Regel: Das Tor bleibt zu.", "Das Tor bleibt zu."),
            ("规则：不要开闸。", "不要开闸。"),
            ("error: no such gate", "error: no such gate"),
            (
                "I have a question about the rule: is it old?",
                "I have a question about the rule: is it old?",
            ),
            ("Rule:", "Rule:"),
            ("", ""),
        ] {
            assert_eq!(&text[label_end(text)..], expected, "{text}");
        }
    }
}
