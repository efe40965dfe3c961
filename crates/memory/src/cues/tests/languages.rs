//! What is recognised in the languages of the rule files beyond the first six: `languages/*.txt` holds sentences that
//! the ledger must hold (`+`) and such that it must not (`-`). They were written before the rules.
use super::super::{Circumstances, Voice, user_sentences};

const SENTENCES: [(&str, &str); 14] = [
    ("ara", include_str!("languages/ara.txt")),
    ("heb", include_str!("languages/heb.txt")),
    ("hin", include_str!("languages/hin.txt")),
    ("ind", include_str!("languages/ind.txt")),
    ("ita", include_str!("languages/ita.txt")),
    ("kor", include_str!("languages/kor.txt")),
    ("nld", include_str!("languages/nld.txt")),
    ("pol", include_str!("languages/pol.txt")),
    ("por", include_str!("languages/por.txt")),
    ("rus", include_str!("languages/rus.txt")),
    ("tha", include_str!("languages/tha.txt")),
    ("tur", include_str!("languages/tur.txt")),
    ("ukr", include_str!("languages/ukr.txt")),
    ("vie", include_str!("languages/vie.txt")),
];

/// The certainty that the sentence belongs in the ledger, in a conversation in `language`.
fn certainty(sentence: &str, language: Option<&'static str>) -> u8 {
    let circumstances = Circumstances {
        language,
        ..Circumstances::default()
    };
    user_sentences(sentence, circumstances)
        .iter()
        .filter(|sentence| sentence.voice == Voice::Person)
        .map(|sentence| sentence.cues.ledger())
        .max()
        .unwrap_or(0)
}

#[test]
fn rules_are_told_from_other_sentences() {
    const SURE: u8 = 50;
    const LEAST_PERCENT: usize = 90;
    let mut report = String::new();
    let mut is_good = true;
    for (code, text) in SENTENCES {
        for language in [None, Some(code)] {
            let (mut rules, mut kept, mut others, mut wrong) = (0, 0, 0, 0);
            for line in text.lines() {
                let Some((sign, sentence)) = line.split_once(' ') else {
                    continue;
                };
                let is_kept = certainty(sentence, language) >= SURE;
                match sign {
                    "+" => {
                        rules += 1;
                        kept += usize::from(is_kept);
                    }
                    "-" => {
                        others += 1;
                        wrong += usize::from(is_kept);
                    }
                    _ => panic!("{code}: {line}"),
                }
                if is_kept != (sign == "+") {
                    let sentences = user_sentences(sentence, Circumstances::default());
                    let cues: Vec<_> = sentences
                        .iter()
                        .map(|s| s.cues.iter().collect::<Vec<_>>())
                        .collect();
                    report.push_str(&format!("{code} {language:?} {line} {cues:?}\n"));
                }
            }
            report.push_str(&format!(
                "{code} {language:?}: {kept} of {rules} rules, {wrong} of {others} others\n"
            ));
            is_good &= kept * 100 >= rules * LEAST_PERCENT && wrong * 10 <= others;
        }
    }
    assert!(is_good, "\n{report}");
}
