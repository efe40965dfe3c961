//! Recognises sentences in which the user asks for something to be remembered.

/// Whether the person explicitly asks that what the sentence says be remembered. Of the entries of a ledger, such a one
/// goes first.
#[must_use]
pub fn asks_to_remember(sentence: &str) -> bool {
    let start: String = sentence
        .trim_start_matches(|c: char| !c.is_alphanumeric())
        .chars()
        .take(START_CHARACTERS)
        .flat_map(char::to_lowercase)
        .map(|c| if c == '’' { '\'' } else { c })
        .collect();
    let mut rest = start.as_str();
    for polite in POLITE {
        rest = rest.strip_prefix(polite).unwrap_or(rest);
    }
    OPENINGS.iter().any(|opening| rest.starts_with(opening))
        && !EXCEPTIONS
            .iter()
            .any(|exception| rest.starts_with(exception))
}

/// Of a sentence so much is looked at, characters.
const START_CHARACTERS: usize = 60;

const POLITE: [&str; 18] = [
    "and ",
    "also ",
    "please ",
    "so ",
    "und ",
    "bitte ",
    "s'il te plaît ",
    "s'il vous plaît ",
    "por favor ",
    "por favor, ",
    "per favore ",
    "alsjeblieft ",
    "пожалуйста, ",
    "будь ласка, ",
    "lütfen ",
    "कृपया ",
    "请",
    "請",
];

const OPENINGS: &[&str] = &[
    "remember:",
    "remember that ",
    "remember this",
    "remember, ",
    "remember - ",
    "remember – ",
    "remember the ",
    "remember my ",
    "remember our ",
    "remember for ",
    "to remember:",
    "don't forget:",
    "don't forget that ",
    "do not forget that ",
    "do not forget: ",
    "never forget that ",
    "remember it",
    "keep in mind",
    "keep that in mind",
    "keep this in mind",
    "keep it in mind",
    "bear that in mind",
    "bear this in mind",
    "don't forget that.",
    "don't forget this",
    "behalte das im",
    "behalt das im",
    "denk daran",
    "garde ça en tête",
    "garde cela en tête",
    "gardez cela",
    "ten eso en cuenta",
    "tenlo en cuenta",
    "téngalo en cuenta",
    "tieni presente",
    "tienilo a mente",
    "запомни",
    "учти",
    "имей в виду",
    "bear in mind",
    "make a note",
    "take note",
    "note that ",
    "note for later",
    "for the record",
    "merk dir",
    "merke dir",
    "merken sie sich",
    "denk daran, dass",
    "denke daran, dass",
    "vergiss nicht, dass",
    "vergessen sie nicht, dass",
    "zum merken",
    "souviens-toi",
    "souvenez-vous",
    "rappelle-toi",
    "rappelez-vous",
    "retiens",
    "retenez",
    "n'oublie pas que",
    "n'oubliez pas que",
    "recuerda",
    "recuerde",
    "no olvides que",
    "记住",
    "記住",
    "记得",
    "覚えて",
    "lembre-se d",
    "lembre-se que",
    "não esqueça que",
    "não se esqueça de que",
    "ricorda che",
    "ricordati che",
    "non dimenticare che",
    "onthoud",
    "vergeet niet dat",
    "zapamiętaj",
    "pamiętaj, że",
    "запомни",
    "помни, что",
    "не забывай, что",
    "запам'ятай",
    "пам'ятай, що",
    "не забувай, що",
    "unutma",
    "aklında tut",
    "تذكر أن",
    "لا تنس أن",
    "תזכור ש",
    "תזכרי ש",
    "याद रख",
    "ingat bahwa",
    "ingat,",
    "hãy nhớ",
    "จำไว้",
    "기억해",
];

/// What begins like that and asks whether something is remembered.
const EXCEPTIONS: [&str; 5] = [
    "remember the time",
    "remember that time",
    "remember this?",
    "remember when",
    "note that i ",
];
