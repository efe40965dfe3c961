//! Finds what a sentence refers to, where the sentence alone says nothing: "keep that in mind", "yes, the second one".

use crate::cues;

/// Words of a sentence beyond which it says enough by itself.
const WORDS_MAX: usize = 9;

/// Words that refer to what was said before.
const REFERRING: &[&str] = &[
    // English
    "that",
    "this",
    "these",
    "those",
    "it",
    "them",
    "same",
    "so",
    "likewise",
    "such",
    "above",
    // German
    "das",
    "dies",
    "dasselbe",
    "gleiche",
    "daran",
    "dafür",
    "davon",
    "damit",
    "dabei",
    "ebenso",
    "genauso",
    "gesagt",
    "so.",
    // French
    "ça",
    "cela",
    "ceci",
    "même",
    "pareil",
    // Spanish, Portuguese, Italian
    "eso",
    "esto",
    "mismo",
    "misma",
    "así",
    "ello",
    "isso",
    "isto",
    "mesmo",
    "mesma",
    "assim",
    "questo",
    "quello",
    "ciò",
    "stesso",
    "stessa",
    "così",
    // Dutch, Polish, Turkish
    "dat",
    "dit",
    "hetzelfde",
    "ook",
    "tego",
    "samo",
    "bunu",
    "şunu",
    "böyle",
    "öyle",
    "aynı",
    "aynısı",
    // Russian, Ukrainian
    "это",
    "этого",
    "этом",
    "так",
    "самое",
    "также",
    "це",
    "цього",
    // Korean
    "그것",
    "그것을",
    "이것",
    "이것을",
    "그거",
    "그렇게",
    "이렇게",
    "똑같이",
    "그걸",
];

/// The same in scripts without spaces.
const REFERRING_UNSPACED: &[&str] = &[
    "这一点",
    "这点",
    "这个",
    "那个",
    "这样",
    "那样",
    "同样",
    "如上",
    "刚才",
    "それ",
    "これ",
    "そう",
    "同じ",
    "この件",
    "その",
    "このこと",
];

/// Words after which "that", "this" and "das" begin a clause or name something themselves.
const NAMING: &[&str] = &[
    "the", "a", "an", "my", "our", "your", "his", "her", "their", "its", "we", "i", "you", "he",
    "she", "they", "there", "no", "all", "every", "each", "any", "some", "only", "if", "when",
    "are", "and", "people", "everyone",
];

/// Words after "this" that name a time.
const TIMES: &[&str] = &[
    "week",
    "month",
    "year",
    "morning",
    "afternoon",
    "evening",
    "time",
    "quarter",
    "sprint",
    "summer",
    "winter",
    "spring",
    "autumn",
    "weekend",
    "is",
    "session",
    "conversation",
    "chat",
    "project",
    "semana",
    "mes",
    "año",
    "semaine",
    "mois",
    "année",
    "woche",
    "jahr",
    "monat",
];

/// Whether a sentence needs the one before it to be understood.
pub(super) fn refers_back(sentence: &str) -> bool {
    if REFERRING_UNSPACED
        .iter()
        .any(|word| sentence.contains(word))
    {
        return sentence.chars().count() <= 4 * WORDS_MAX && !names_something(sentence);
    }
    let words: Vec<&str> = sentence.split_whitespace().collect();
    if words.len() > WORDS_MAX || names_something(sentence) {
        return false;
    }
    words.iter().enumerate().any(|(at, word)| {
        let bare = word
            .trim_matches(|c: char| !c.is_alphanumeric())
            .to_lowercase();
        if !REFERRING.contains(&bare.as_str()) {
            return false;
        }
        let next = words.get(at + 1).copied().unwrap_or("");
        let ends_clause = word.ends_with([',', '.', '!', ';', ':', '?']);
        let next_bare = next
            .trim_matches(|c: char| !c.is_alphanumeric())
            .to_lowercase();
        match bare.as_str() {
            "this" | "these" | "esto" | "ce" => ends_clause || !TIMES.contains(&next_bare.as_str()),
            "that" | "so" => ends_clause || !NAMING.contains(&next_bare.as_str()),
            // An article before a noun.
            "das" | "dat" => ends_clause || !next.starts_with(char::is_uppercase),
            "it" => at > 0,
            _ => true,
        }
    })
}

/// Whether a sentence has a name, a number or a quotation of its own.
fn names_something(sentence: &str) -> bool {
    sentence.contains(['`', '"', '“', '«', '/', '_', '@', '„'])
        || sentence.bytes().any(|byte| byte.is_ascii_digit())
}

/// The option that a short reply chooses from what the model offered.
pub(super) fn chosen(reply: &str, offer: &str) -> Option<String> {
    let options = options(offer);
    if options.len() < 2 {
        return None;
    }
    let lower = reply.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let number = number_in(&lower, &words, options.len())?;
    options.into_iter().nth(number)
}

/// Ordinals and names of options, each with its place; the last counts from the end.
const PLACES: &[(&str, usize)] = &[
    ("first", 0),
    ("second", 1),
    ("third", 2),
    ("fourth", 3),
    ("fifth", 4),
    ("former", 0),
    ("latter", 1),
    ("1st", 0),
    ("2nd", 1),
    ("3rd", 2),
    ("erste", 0),
    ("ersten", 0),
    ("zweite", 1),
    ("zweiten", 1),
    ("dritte", 2),
    ("dritten", 2),
    ("première", 0),
    ("premier", 0),
    ("deuxième", 1),
    ("seconde", 1),
    ("troisième", 2),
    ("primera", 0),
    ("primero", 0),
    ("segunda", 1),
    ("segundo", 1),
    ("tercera", 2),
    ("tercero", 2),
    ("primeira", 0),
    ("terceira", 2),
    ("prima", 0),
    ("terza", 2),
    ("первый", 0),
    ("первую", 0),
    ("второй", 1),
    ("вторую", 1),
    ("третий", 2),
    ("третью", 2),
    ("one", 0),
    ("two", 1),
    ("three", 2),
    ("eins", 0),
    ("zwei", 1),
    ("drei", 2),
    ("uno", 0),
];

/// Words that are followed by the number or letter of an option.
const OPTION: &[&str] = &[
    "option",
    "number",
    "variant",
    "approach",
    "choice",
    "plan",
    "proposal",
    "do",
    "take",
    "variante",
    "nummer",
    "vorschlag",
    "opción",
    "opção",
    "número",
    "вариант",
    "go",
    "with",
];

const PLACES_UNSPACED: &[(&str, usize)] = &[
    ("第一", 0),
    ("第二", 1),
    ("第三", 2),
    ("一番目", 0),
    ("二番目", 1),
    ("三番目", 2),
    ("첫 번째", 0),
    ("두 번째", 1),
    ("세 번째", 2),
];

const ARTICLES: &[&str] = &[
    "the", "der", "die", "das", "den", "le", "la", "el", "il", "lo", "o", "a", "as", "de", "het",
];

fn number_in(lower: &str, words: &[&str], options: usize) -> Option<usize> {
    if [
        "last one",
        "letzte",
        "dernière",
        "dernier",
        "última",
        "último",
        "последн",
        "最后",
        "最後",
    ]
    .iter()
    .any(|last| lower.contains(last))
    {
        return Some(options - 1);
    }
    if let Some((_, place)) = PLACES_UNSPACED
        .iter()
        .find(|(word, _)| lower.contains(word))
    {
        return Some(*place);
    }
    // "the first one" chooses the first, and "one" says nothing.
    if let Some((_, place)) = PLACES
        .iter()
        .filter(|(word, _)| {
            !matches!(
                *word,
                "one" | "two" | "three" | "eins" | "zwei" | "drei" | "uno"
            )
        })
        .find(|(place, _)| {
            words
                .iter()
                .position(|word| word == place)
                .is_some_and(|at| {
                    let is_definite = at > 0 && ARTICLES.contains(&words[at - 1]);
                    // "Run the tests first" names no option.
                    is_definite || words.len() <= 3 && *place != "first"
                })
        })
    {
        return Some(*place);
    }
    let named = |word: &str| -> Option<usize> {
        if let Ok(number) = word.parse::<usize>() {
            return (1..=options).contains(&number).then(|| number - 1);
        }
        if let Some((_, place)) = PLACES.iter().find(|(known, _)| *known == word) {
            return Some(*place);
        }
        let mut letters = word.chars();
        match (letters.next(), letters.next()) {
            (Some(letter @ 'a'..='f'), None) => Some(letter as usize - 'a' as usize),
            _ => None,
        }
    };
    for pair in words.windows(2) {
        // "do a" is the beginning of something else, "option a" is not.
        let is_weak = matches!(pair[0], "do" | "take" | "go" | "with");
        let is_other = is_weak && pair[1] == "a" && words.len() > 3;
        if OPTION.contains(&pair[0])
            && !is_other
            && let Some(place) = named(pair[1])
        {
            return Some(place);
        }
    }
    let own: Vec<&&str> = words
        .iter()
        .filter(|word| {
            ![
                "yes", "ok", "okay", "please", "ja", "oui", "sí", "sim", "да", "then",
            ]
            .contains(*word)
        })
        .collect();
    match own.as_slice() {
        [only] => named(only),
        _ => None,
    }
}

/// The options of an offer: entries of its last list that is numbered or lettered, or else bulleted.
fn options(offer: &str) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    let mut expected = 0;
    let mut bullets: Vec<String> = Vec::new();
    for line in offer.lines() {
        let trimmed = line.trim();
        let entry = trimmed.trim_start_matches(['*', '#', ' ']);
        let entry_lower = entry.to_lowercase();
        let label = [
            "option ",
            "variant ",
            "variante ",
            "approach ",
            "opción ",
            "opção ",
            "вариант ",
        ]
        .iter()
        .find(|label| entry_lower.starts_with(*label))
        .map_or(0, |label| label.len());
        if let Some(rest) = entry.get(label..)
            && let Some(place) = place_of(rest)
        {
            if place == 0 {
                options.clear();
                expected = 0;
            }
            if place == expected {
                options.push(super::fold(trimmed));
                expected += 1;
                continue;
            }
        }
        let mark = cues::list_mark(trimmed);
        if mark > 0 && !line.starts_with([' ', '\t']) && !trimmed.starts_with('#') {
            bullets.push(super::fold(&trimmed[mark..]));
        } else if !trimmed.is_empty() && !line.starts_with([' ', '\t']) && bullets.len() == 1 {
            bullets.clear();
        }
    }
    if options.len() >= 2 {
        return options;
    }
    bullets
}

/// The place that a line claims in its list: `2.`, `2)`, `b)`, `B:`.
fn place_of(entry: &str) -> Option<usize> {
    let digits = entry.bytes().take_while(u8::is_ascii_digit).count();
    let (place, rest) = if (1..=2).contains(&digits) {
        (
            entry[..digits].parse::<usize>().ok()?.checked_sub(1)?,
            &entry[digits..],
        )
    } else {
        let letter = entry.chars().next().filter(char::is_ascii_alphabetic)?;
        (
            (letter.to_ascii_lowercase() as usize) - 'a' as usize,
            &entry[1..],
        )
    };
    let rest = rest.trim_start_matches('*');
    (rest.starts_with(['.', ')', ':']) || rest.starts_with(" –") || rest.starts_with(" -"))
        .then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_refer_back_are_told_from_those_that_stand_alone() {
        for (sentence, expected) in [
            ("Please keep that in mind for everything.", true),
            ("Always do it like this.", true),
            ("The same goes for the exports.", true),
            ("Merk dir das für alles.", true),
            ("Wie gesagt, immer vorher fragen.", true),
            ("Tenlo en cuenta, y eso siempre.", true),
            ("Garde ça en tête.", true),
            ("Запомни это навсегда.", true),
            ("请记住这一点。", true),
            ("それを忘れないで。", true),
            ("그것을 기억해.", true),
            ("Remember that the berth is narrow.", false),
            ("Never open the sluice at night.", false),
            ("Das Tor bleibt zu.", false),
            ("Use `quay.toml` for that.", false),
            ("Keep that on port 4021.", false),
        ] {
            assert_eq!(refers_back(sentence), expected, "{sentence}");
        }
    }

    #[test]
    fn a_reply_chooses_one_of_the_options() {
        let numbered = "There are three ways:\n\n1. Rope the mast.\n2. Lower the mast.\n   It takes an hour.\n3. Wait for calm.\n\nWhich one?";
        for (reply, expected) in [
            ("yes, do the second one", Some("2. Lower the mast.")),
            ("2", Some("2. Lower the mast.")),
            ("Option 3 please", Some("3. Wait for calm.")),
            ("let's do 1", Some("1. Rope the mast.")),
            ("Nimm die zweite", Some("2. Lower the mast.")),
            ("la tercera", Some("3. Wait for calm.")),
            ("第二个", Some("2. Lower the mast.")),
            ("the last one", Some("3. Wait for calm.")),
            ("yes please", None),
            ("Do a test run first", None),
        ] {
            assert_eq!(chosen(reply, numbered).as_deref(), expected, "{reply}");
        }
        let lettered = "Option A: paint it\nOption B: tar it";
        assert_eq!(
            chosen("do B", lettered).as_deref(),
            Some("Option B: tar it")
        );
        assert_eq!(chosen("do B", "Paint it, or tar it?"), None);
    }
}
