//! What became of the person's requests: a request is open until the model has answered it.
//!
//! The model has answered when it has spoken and calls nothing more. A question back is no answer, nor is a report that
//! the connection failed. Of several requests that wait at once, the last is answered, and those that the answer
//! speaks of. A request that the person interrupted stays open, unless they continue it.

use std::collections::HashSet;

use super::Extractor;
use super::excerpt::{CUT, excerpt};
use crate::cues::{self, Circumstances, Cue};
use crate::document::Status;

/// What the model said last to a request.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Its texts.
    pub(super) texts: Vec<u32>,
    /// It says that the model could not do it.
    pub(super) is_failure: bool,
}

impl Answer {
    /// Of a request with this answer: what could not be done is still open.
    pub(super) fn status(&self) -> Status {
        if self.is_failure {
            Status::Active
        } else {
            Status::Resolved
        }
    }
}

/// Of an answer to a request of before this much is kept, characters.
const ANSWER_CHARACTERS: usize = 200;
/// Requests that wait at once; earlier ones stay open.
const PENDING_MAX: usize = 32;
/// Texts of one answer.
const TEXTS_MAX: usize = 16;
/// A question back is short, bytes.
const QUESTION_BYTES_MAX: usize = 700;

/// The requests that wait for an answer, and what the model has said to them.
#[derive(Default)]
pub(super) struct Waiting {
    /// Indices of requests.
    pending: Vec<usize>,
    /// Those that the person interrupted last.
    interrupted: Vec<usize>,
    /// What the model has said since it called something or the person spoke.
    reply: Vec<u32>,
    /// What answered requests of messages that were not read here.
    pub(super) earlier: Option<Answer>,
    /// Whether the model has said or called anything since the person spoke.
    has_acted: bool,
    /// Whether the model had finished when the person or a tool spoke last.
    pub(super) is_over: bool,
    /// Whether the person has interrupted the work of before.
    has_broken_off: bool,
}

impl Waiting {
    pub(super) fn said(&mut self, text: u32) {
        self.has_acted = true;
        if self.reply.len() < TEXTS_MAX {
            self.reply.push(text);
        }
    }

    pub(super) fn called(&mut self) {
        self.has_acted = true;
        self.reply.clear();
    }

    /// The person stopped the model: what it was working on is not answered.
    pub(super) fn interrupt(&mut self) {
        self.reply.clear();
        self.interrupted.append(&mut self.pending);
        self.has_broken_off = true;
    }

    /// A request begins; `continues` says that it is about what was interrupted.
    pub(super) fn begin(&mut self, request: usize, continues: bool) {
        self.has_acted = false;
        if continues {
            self.pending.append(&mut self.interrupted);
        }
        self.interrupted.clear();
        if self.pending.len() >= PENDING_MAX {
            self.pending.remove(0);
        }
        self.pending.push(request);
    }
}

impl Extractor<'_> {
    /// Notes what the last reply answers, before the person speaks again.
    pub(super) fn settle(&mut self) {
        if self.waiting.has_acted {
            for request in &self.waiting.pending {
                self.requests[*request].is_heard = true;
            }
        }
        let Some((answer, answered)) = self.answered(self.waiting.is_over) else {
            self.waiting.reply.clear();
            return;
        };
        if self.requests.is_empty() && !self.waiting.has_broken_off {
            self.waiting.earlier.get_or_insert_with(|| answer.clone());
        }
        self.waiting
            .pending
            .retain(|request| !answered.contains(request));
        for request in answered {
            self.requests[request].answer = Some(answer.clone());
        }
        self.waiting.reply.clear();
    }

    /// The answer that the model has just given, if its turn is over and it gave one, and the requests that it answers.
    pub(super) fn answered(&self, is_over: bool) -> Option<(Answer, Vec<usize>)> {
        if !is_over || self.waiting.reply.is_empty() {
            return None;
        }
        let said = self.said(&self.waiting.reply);
        if is_report_of_failure(&said) || asks_back(&said) {
            return None;
        }
        let answer = Answer {
            texts: self.waiting.reply.clone(),
            is_failure: says_could_not(&said),
        };
        let (last, earlier) = match self.waiting.pending.split_last() {
            Some((last, earlier)) => (Some(*last), earlier),
            None => (None, [].as_slice()),
        };
        let mut answered: Vec<usize> = Vec::new();
        if !earlier.is_empty() {
            let words = content_words(&said);
            let speaks_of_all = speaks_of_all(&said);
            answered.extend(earlier.iter().copied().filter(|request| {
                let asked = content_words(&self.requests[*request].text);
                speaks_of_all || asked.is_empty() || !asked.is_disjoint(&words)
            }));
        }
        answered.extend(last);
        Some((answer, answered))
    }

    /// The answer to requests of before the messages read here.
    pub(crate) fn answer_to_earlier(&self) -> Option<(String, Status)> {
        let answer = match &self.waiting.earlier {
            Some(answer) => answer.clone(),
            None if self.requests.is_empty() && !self.waiting.has_broken_off => {
                self.answered(self.is_waiting)?.0
            }
            None => return None,
        };
        let said = brief(&pieces(&self.said(&answer.texts)), ANSWER_CHARACTERS)?;
        Some((said, answer.status()))
    }

    /// What the model said in these texts.
    pub(super) fn said(&self, texts: &[u32]) -> String {
        let texts: Vec<_> = texts
            .iter()
            .map(|text| self.texts[*text as usize].text.decode())
            .collect();
        texts.join("\n\n")
    }
}

/// Whether a message continues what the person has just interrupted: it corrects, approves, or says to go on.
pub(super) fn continues(text: &str) -> bool {
    const CONTINUE: &[&str] = &[
        "continue",
        "go on",
        "carry on",
        "keep going",
        "resume",
        "proceed",
        "weiter",
        "mach weiter",
        "continuez",
        "sigue",
        "continúa",
        "continua",
        "继续",
        "続けて",
        "продолжай",
        "계속",
    ];
    let start = text.trim_start().to_lowercase();
    if CONTINUE.iter().any(|word| start.starts_with(word)) {
        return true;
    }
    let sentences = cues::user_sentences(text, Circumstances::default());
    sentences.first().is_some_and(|first| {
        [
            Cue::Correction,
            Cue::Denial,
            Cue::Approval,
            Cue::Prohibition,
        ]
        .into_iter()
        .any(|cue| first.cues.has(cue, 60))
    })
}

/// Whether a text is a client's report that no answer came.
fn is_report_of_failure(text: &str) -> bool {
    const REPORTS: &[&str] = &[
        "api error",
        "error: ",
        "[error",
        "request failed",
        "connection error",
        "internal server error",
        "overloaded",
        "rate limit",
        "prompt is too long",
        "credit balance is too low",
        "you've hit your",
        "claude ai usage limit",
        "stream error",
        "no response requested",
    ];
    const BYTES_MAX: usize = 600;
    let start = text.trim_start();
    let head: String = start.chars().take(40).collect::<String>().to_lowercase();
    start.len() <= BYTES_MAX && REPORTS.iter().any(|report| head.starts_with(report))
}

/// Whether a reply says nothing but what it needs to know.
fn asks_back(text: &str) -> bool {
    const NEEDS: &[&str] = &[
        "need to know",
        "before i",
        "could you tell",
        "please tell",
        "let me know",
        "unclear",
        "not sure which",
        "clarify",
        "need more",
        "need one",
        "i need",
        "brauche ich",
        "ich brauche",
        "bevor ich",
        "muss ich wissen",
        "il me faut",
        "avant de",
        "necesito",
        "antes de",
        "preciso",
        "мне нужно",
        "прежде чем",
    ];
    /// Words from which on a sentence says something.
    const WORDS_MIN: usize = 5;
    let text = text.trim();
    if text.len() > QUESTION_BYTES_MAX
        || !text
            .trim_end_matches(['*', '"', ')', ' '])
            .ends_with(['?', '？'])
    {
        return false;
    }
    cues::sentences(text).into_iter().all(|range| {
        let sentence = &text[range];
        let lower = sentence.to_lowercase();
        sentence
            .trim_end_matches(['*', '"', ')'])
            .ends_with(['?', '？'])
            || words(sentence) < WORDS_MIN
            || NEEDS.iter().any(|need| lower.contains(need))
    })
}

/// Words of a sentence; where a script has no spaces, two letters are about one.
fn words(sentence: &str) -> usize {
    let unspaced = sentence.chars().filter(|c| cues::is_unspaced(*c)).count();
    sentence.split_whitespace().count() + unspaced / 2
}

/// Whether a reply begins by saying that the model could not do what was asked.
fn says_could_not(text: &str) -> bool {
    const COULD_NOT: &[&str] = &[
        "i could not",
        "i couldn't",
        "i was not able",
        "i wasn't able",
        "i was unable",
        "i am unable",
        "i'm unable",
        "i cannot",
        "i can't",
        "i am not able",
        "i'm not able",
        "unable to",
        "it is not possible",
        "it isn't possible",
        "this is not possible",
        "that is not possible",
        "that's not possible",
        "i failed to",
        "i have not been able",
        "i haven't been able",
        "did not succeed",
        "there is no way",
        "ich konnte",
        "konnte ich nicht",
        "kann ich nicht",
        "ich kann das nicht",
        "das ist nicht möglich",
        "das geht nicht",
        "es ist mir nicht gelungen",
        "je n'ai pas pu",
        "je ne peux pas",
        "ce n'est pas possible",
        "no pude",
        "no he podido",
        "no puedo",
        "no es posible",
        "não consegui",
        "não posso",
        "non ho potuto",
        "non posso",
        "не удалось",
        "не могу",
        "无法",
        "できません",
    ];
    let sentences = cues::sentences(text);
    sentences.into_iter().take(2).any(|range| {
        let sentence = text[range].to_lowercase().replace('’', "'");
        COULD_NOT.iter().any(|phrase| {
            sentence.contains(phrase)
                && (*phrase != "ich konnte"
                    || sentence.contains("nicht")
                    || sentence.contains("kein"))
        })
    })
}

fn speaks_of_all(text: &str) -> bool {
    const ALL: &[&str] = &[
        "both",
        "all of",
        "all three",
        "all four",
        "all done",
        "everything",
        "beide",
        "alles",
        "alle drei",
        "les deux",
        "tout est",
        "ambos",
        "ambas",
        "todo",
        "全部",
        "両方",
    ];
    let start: String = text.chars().take(200).collect::<String>().to_lowercase();
    ALL.iter().any(|all| start.contains(all)) || words(text) <= 2
}

/// The beginnings of the longer words of a text, which inflection leaves alike.
fn content_words(text: &str) -> HashSet<String> {
    const LETTERS_MIN: usize = 4;
    const LETTERS_KEPT: usize = 5;
    const EMPTY: &[&str] = &[
        "with", "that", "this", "then", "them", "they", "from", "have", "will", "would", "could",
        "should", "what", "which", "where", "when", "please", "also", "make", "into", "your",
        "bitte", "auch", "eine", "einen", "dann", "nicht", "avec", "pour", "para",
    ];
    let mut found = HashSet::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        if word.chars().any(cues::is_unspaced) {
            let letters: Vec<char> = word.chars().collect();
            found.extend(
                letters
                    .windows(2)
                    .map(|pair| pair.iter().collect::<String>()),
            );
            continue;
        }
        let lower = word.to_lowercase();
        let is_number = word.len() >= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
        if is_number || lower.chars().count() >= LETTERS_MIN && !EMPTY.contains(&lower.as_str()) {
            found.insert(lower.chars().take(LETTERS_KEPT).collect());
        }
    }
    found
}

/// One sentence or list entry of what the model said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) text: String,
    /// It begins a paragraph or a list entry.
    pub(super) begins_line: bool,
}

/// What the model said, sentence by sentence: without headings that say nothing, code and pleasantries at the start.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut is_fenced = false;
    let mut lead = String::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            is_fenced = !is_fenced;
            continue;
        }
        let is_rule = trimmed.bytes().all(|byte| b"-=*_|: ".contains(&byte));
        if is_fenced || is_rule {
            continue;
        }
        if trimmed.starts_with('#') || is_announcement(trimmed) {
            lead = trimmed.trim_matches(['#', '*', ' ', ':']).to_owned();
            continue;
        }
        let mark = if trimmed.starts_with('|') {
            0
        } else {
            cues::list_mark(trimmed)
        };
        let said = super::fold(&trimmed[mark..]);
        let ranges = if said.starts_with('|') {
            std::iter::once(0..said.len()).collect()
        } else {
            cues::sentences(&said)
        };
        let mut begins_line = true;
        for range in ranges {
            let mut sentence = said[range].to_owned();
            if begins_line && !lead.is_empty() {
                sentence = format!("{}: {sentence}", std::mem::take(&mut lead));
            }
            pieces.push(Piece {
                text: sentence,
                begins_line,
            });
            begins_line = false;
        }
    }
    let says_more = |piece: &Piece| {
        words(&piece.text) > 3 || piece.text.bytes().any(|byte| byte.is_ascii_digit())
    };
    if let Some(first) = pieces.iter().position(says_more) {
        // "Sure!", "Done.": what follows says it.
        pieces.drain(..first.min(2));
    }
    if let Some(first) = pieces.first_mut() {
        first.begins_line = true;
    }
    pieces
}

/// The first sentences, as many as have room: at least one, and marked if more follow.
pub(super) fn brief(pieces: &[Piece], characters: usize) -> Option<String> {
    let (first, rest) = pieces.split_first()?;
    let mut said = excerpt(&first.text, characters);
    if said.ends_with(CUT) {
        return Some(said);
    }
    let mut left = characters.saturating_sub(said.chars().count());
    for piece in rest {
        let length = piece.text.chars().count() + BETWEEN_LINES.len();
        if length > left {
            said.push(' ');
            said.push_str(CUT);
            break;
        }
        said.push_str(if piece.begins_line {
            BETWEEN_LINES
        } else {
            " "
        });
        said.push_str(&piece.text);
        left -= length;
    }
    Some(said)
}

/// Between what were lines.
const BETWEEN_LINES: &str = " · ";

/// Whether a line only announces what follows.
fn is_announcement(line: &str) -> bool {
    let line = line.trim_end_matches(['*', ' ', '_']);
    line.ends_with([':', '：']) && line.chars().count() <= 120
        || line.starts_with("**") && line.ends_with("**")
}

/// Whether a reply only agrees to what the model asked.
pub(super) fn is_assent(text: &str) -> bool {
    let sentences = cues::user_sentences(text, Circumstances::default());
    sentences
        .first()
        .is_some_and(|first| first.cues.has(Cue::Approval, 50))
}

/// The question with which the model ended.
pub(super) fn last_question(said: &str) -> Option<String> {
    let last = pieces(said).pop()?;
    last.text
        .trim_end_matches(['*', '"', ')'])
        .ends_with(['?', '？'])
        .then_some(last.text)
}

/// Whether a text says nothing but that it was heard.
pub(super) fn is_acknowledgement(text: &str) -> bool {
    const WORDS_MAX: usize = 7;
    const HEARD: &[&str] = &[
        "noted",
        "acknowledged",
        "ok",
        "okay",
        "understood",
        "got it",
        "sure",
        "will do",
        "done",
        "alright",
        "right",
        "of course",
        "certainly",
        "fine",
        "thanks",
        "thank you",
        "you're welcome",
        "great",
        "verstanden",
        "notiert",
        "alles klar",
        "gerne",
        "compris",
        "noté",
        "entendido",
        "anotado",
        "vale",
        "понял",
        "好的",
        "了解",
    ];
    let text = text.trim().to_lowercase();
    words(&text) <= WORDS_MAX
        && !text.bytes().any(|byte| byte.is_ascii_digit())
        && HEARD.iter().any(|heard| text.starts_with(heard))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_back_is_no_answer() {
        for (reply, expected) in [
            ("Gladly. By train or by car?", true),
            (
                "Before I start, I need to know the berth. Which one is it?",
                true,
            ),
            ("Welchen Kai meinst du?", true),
            ("どの埠頭ですか？", true),
            (
                "The mast is nine metres high. Shall I list the parts?",
                false,
            ),
            ("Nine metres.", false),
        ] {
            assert_eq!(asks_back(reply), expected, "{reply}");
        }
    }

    #[test]
    fn an_answer_can_say_that_it_failed() {
        for (reply, expected) in [
            ("I could not reach the tide server.", true),
            ("Sorry. I wasn’t able to open the sluice.", true),
            ("Das konnte ich nicht prüfen.", true),
            ("No pude abrir el archivo.", true),
            ("The gauge is fixed. It could not read metres.", false),
        ] {
            assert_eq!(says_could_not(reply), expected, "{reply}");
        }
    }

    #[test]
    fn pieces_are_sentences_without_pleasantries_and_code() {
        let said = "Sure!\n\nThe berth is free. It is nine metres wide.\n\n```\nlet berth = 9;\n```\nFindings:\n1. The rail is loose.\n2. The lamp is out.\n";
        let pieces: Vec<String> = pieces(said).into_iter().map(|piece| piece.text).collect();
        assert_eq!(
            pieces,
            [
                "The berth is free.",
                "It is nine metres wide.",
                "Findings: The rail is loose.",
                "The lamp is out.",
            ]
        );
    }
}
