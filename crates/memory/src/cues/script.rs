//! Writing systems, and what single letters say about a language.

/// A writing system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    /// The letters of English and of most languages of Europe.
    Latin,
    /// Russian, Ukrainian.
    Cyrillic,
    /// Arabic; Persian and Urdu have letters of their own.
    Arabic,
    /// Hebrew.
    Hebrew,
    /// Hindi.
    Devanagari,
    /// Thai.
    Thai,
    /// Korean.
    Hangul,
    /// Chinese and Japanese.
    Han,
}

const SCRIPTS: usize = 8;

/// How many letters of each script a text has.
#[derive(Default)]
pub(super) struct Letters {
    counts: [usize; SCRIPTS],
    kana: usize,
    other: usize,
    /// Letters that Ukrainian has and Russian has not, and the reverse.
    pub(super) ukrainian: usize,
    pub(super) russian: usize,
    /// Letters of languages that share a script with one that is known (Persian, Serbian).
    foreign: usize,
}

impl Letters {
    pub(super) fn of(text: &str) -> Self {
        let mut letters = Self::default();
        if text.is_ascii() {
            letters.counts[Script::Latin as usize] = 1;
            return letters;
        }
        for c in text.chars() {
            letters.add(c);
        }
        letters
    }

    fn add(&mut self, c: char) {
        let script = match c {
            'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Script::Latin,
            '\u{400}'..='\u{52f}' => {
                match c {
                    'і' | 'ї' | 'є' | 'ґ' | 'І' | 'Ї' | 'Є' | 'Ґ' => self.ukrainian += 1,
                    'ы' | 'э' | 'ъ' | 'ё' | 'Ы' | 'Э' | 'Ъ' | 'Ё' => self.russian += 1,
                    'ј'
                    | 'љ'
                    | 'њ'
                    | 'ђ'
                    | 'ћ'
                    | 'џ'
                    | 'ќ'
                    | 'ѓ'
                    | 'ѕ'
                    | 'ў'
                    | '\u{48a}'..='\u{52f}' => {
                        self.foreign += 1;
                    }
                    _ => {}
                }
                Script::Cyrillic
            }
            '\u{590}'..='\u{5ff}' => Script::Hebrew,
            '\u{600}'..='\u{6ff}' | '\u{750}'..='\u{77f}' => {
                self.foreign += usize::from(matches!(
                    c,
                    'پ' | 'چ' | 'ژ' | 'گ' | 'ک' | 'ی' | 'ٹ' | 'ڈ' | 'ڑ' | 'ں' | 'ے' | 'ہ'
                ));
                Script::Arabic
            }
            '\u{900}'..='\u{963}' => Script::Devanagari,
            '\u{e00}'..='\u{e7f}' => Script::Thai,
            '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' | '\u{ac00}'..='\u{d7a3}' => {
                Script::Hangul
            }
            '\u{3041}'..='\u{30ff}' => {
                self.kana += 1;
                Script::Han
            }
            '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' => Script::Han,
            _ if c.is_alphabetic() => {
                self.other += 1;
                return;
            }
            _ => return,
        };
        if let Some(count) = self.counts.get_mut(script as usize) {
            *count += 1;
        }
    }

    /// The script that a person writes here: one word of Korean among English names makes the sentence Korean. And
    /// whether there are more Latin letters, so that it may be an English sentence with a word of another language.
    pub(super) fn script(&self) -> (Script, bool) {
        const ALL: [Script; SCRIPTS - 1] = [
            Script::Cyrillic,
            Script::Arabic,
            Script::Hebrew,
            Script::Devanagari,
            Script::Thai,
            Script::Hangul,
            Script::Han,
        ];
        let count = |script: Script| self.counts.get(script as usize).copied().unwrap_or(0);
        let latin = count(Script::Latin) + self.other;
        let most = ALL.into_iter().rev().max_by_key(|script| count(*script));
        match most {
            Some(script) if count(script) * 4 > latin => {
                (script, count(script) < latin && script != Script::Han)
            }
            _ => (Script::Latin, false),
        }
    }

    /// The language of a text in a script that one language of the rule files is written in.
    pub(super) fn language(&self, script: Script) -> Option<&'static str> {
        let is_foreign = self.foreign > 0;
        match script {
            Script::Arabic => (!is_foreign).then_some("ara"),
            Script::Hebrew => Some("heb"),
            Script::Devanagari => Some("hin"),
            Script::Thai => Some("tha"),
            Script::Hangul => Some("kor"),
            Script::Han => {
                let all = self.counts.get(Script::Han as usize).copied().unwrap_or(0);
                Some(if self.kana * 8 > all - self.kana {
                    "jpn"
                } else {
                    "cmn"
                })
            }
            Script::Latin | Script::Cyrillic => None,
        }
    }

    pub(super) fn is_foreign(&self) -> bool {
        self.foreign > 0
    }
}

/// The language that a Latin letter tells from the others of the rule files.
pub(super) fn telling(c: char) -> Option<&'static str> {
    Some(match c {
        'ş' | 'ğ' | 'ı' | 'İ' | 'Ş' | 'Ğ' => "tur",
        'ł' | 'ą' | 'ę' | 'ż' | 'ź' | 'ś' | 'ń' | 'Ł' | 'Ż' | 'Ś' => "pol",
        'ã' | 'õ' => "por",
        'ñ' | '¿' | '¡' => "spa",
        'ä' | 'ß' => "deu",
        'œ' => "fra",
        '\u{1ea0}'..='\u{1ef9}' | 'ơ' | 'ư' | 'đ' | 'Đ' | 'Ơ' | 'Ư' => "vie",
        _ => return None,
    })
}

/// A letter in the form in which words are compared: without the points of Arabic and Hebrew and the dot of Hindi.
/// `None` for a mark that falls away.
pub(super) fn plain(c: char) -> Option<char> {
    Some(match c {
        '\u{307}'
        | '\u{591}'..='\u{5c7}'
        | '\u{640}'
        | '\u{64b}'..='\u{652}'
        | '\u{93c}'
        | '\u{200c}'
        | '\u{200d}' => {
            return None;
        }
        '’' => '\'',
        'ё' => 'е',
        'أ' | 'إ' | 'آ' | 'ٱ' => 'ا',
        'ى' => 'ي',
        'ة' => 'ه',
        '\u{958}' => 'क',
        '\u{959}' => 'ख',
        '\u{95a}' => 'ग',
        '\u{95b}' => 'ज',
        '\u{95c}' => 'ड',
        '\u{95d}' => 'ढ',
        '\u{95e}' => 'फ',
        '\u{95f}' => 'य',
        _ => c,
    })
}

/// A word as people type it who leave out the marks of Latin letters ("khong" for "không").
pub(super) fn unmarked(word: &str) -> String {
    word.chars()
        .map(|c| match c {
            'à'..='å' | 'ă' | 'ą' | '\u{1ea0}'..='\u{1eb7}' => 'a',
            'ç' | 'ć' | 'č' => 'c',
            'đ' => 'd',
            'è'..='ë' | 'ę' | 'ě' | '\u{1eb8}'..='\u{1ec7}' => 'e',
            'ğ' => 'g',
            'ì'..='ï' | 'ĩ' | 'ı' | '\u{1ec8}'..='\u{1ecb}' => 'i',
            'ł' => 'l',
            'ñ' | 'ń' => 'n',
            'ò'..='ö' | 'ő' | 'ơ' | '\u{1ecc}'..='\u{1ee3}' => 'o',
            'ś' | 'ş' | 'š' => 's',
            'ù'..='ü' | 'ũ' | 'ư' | '\u{1ee4}'..='\u{1ef1}' => 'u',
            'ý' | 'ÿ' | '\u{1ef2}'..='\u{1ef9}' => 'y',
            'ź' | 'ż' | 'ž' => 'z',
            _ => c,
        })
        .collect()
}
