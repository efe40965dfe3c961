//! The same conversation in six languages: what the user says lands where it belongs, in their words.

use throughline_memory::document::{Section, Status};

use super::conversation::{assistant, find, holding, memory_of, user};

struct Dialogue {
    language: &'static str,
    goal: &'static str,
    fact: &'static str,
    correction: &'static str,
    prohibition: &'static str,
    preference: &'static str,
    request: &'static str,
    answers: [&'static str; 3],
    question: &'static str,
}

#[track_caller]
fn check(dialogue: &Dialogue) {
    let [first, second, third] = dialogue.answers;
    let mut conversation = vec![
        user(dialogue.goal),
        assistant(first),
        user(dialogue.fact),
        assistant(second),
        user(dialogue.correction),
        assistant(third),
        user(dialogue.prohibition),
        assistant(second),
        user(dialogue.preference),
        assistant(dialogue.question),
    ];
    let waiting = memory_of(&conversation, 1500);
    let questions = holding(&waiting.memory, Section::OpenQuestions);
    assert!(
        questions
            .iter()
            .any(|question| dialogue.question.contains(question)),
        "open question: {}",
        waiting.text
    );
    conversation.push(user(dialogue.request));
    let compacted = memory_of(&conversation, 1500);
    let memory = &compacted.memory;
    assert_eq!(memory.language.as_deref(), Some(dialogue.language));
    for rule in [
        dialogue.fact,
        dialogue.correction,
        dialogue.prohibition,
        dialogue.preference,
    ] {
        let item = find(memory, Section::Corrections, rule);
        assert_eq!(
            item.map(|item| &item.status),
            Some(&Status::Active),
            "{rule}\n{}",
            compacted.text
        );
    }
    assert_eq!(
        holding(memory, Section::Task),
        [dialogue.request],
        "{}",
        compacted.text
    );
    assert_eq!(holding(memory, Section::OpenQuestions), Vec::<&str>::new());
    let goal = find(memory, Section::Task, dialogue.goal);
    assert_eq!(
        goal.map(|item| &item.status),
        Some(&Status::Resolved),
        "{}",
        compacted.text
    );
}

#[test]
fn english() {
    check(&Dialogue {
        language: "eng",
        goal: "Help me plan a long weekend in Ghent for two people.",
        fact: "My husband is allergic to shellfish.",
        correction: "No, we arrive on Friday, not on Saturday.",
        prohibition: "Please never suggest hostels.",
        preference: "I prefer small restaurants.",
        request: "Please write a packing list for both of us.",
        answers: [
            "Gladly, Ghent is compact and easy to walk.",
            "That is good to know for the plan.",
            "Then the first evening is free.",
        ],
        question: "Should I plan by train or by car?",
    });
}

#[test]
fn german() {
    check(&Dialogue {
        language: "deu",
        goal: "Hilf mir, ein langes Wochenende in Gent für zwei Personen zu planen.",
        fact: "Mein Mann ist allergisch gegen Krabben.",
        correction: "Nein, wir kommen am Freitag an, nicht am Samstag.",
        prohibition: "Bitte schlag mir niemals Hostels vor.",
        preference: "Ich bevorzuge kleine Restaurants.",
        request: "Schreib mir bitte eine Packliste für uns beide.",
        answers: [
            "Gern, die Stadt ist klein und gut zu Fuß zu erkunden.",
            "Das ist gut zu wissen für den Plan.",
            "Dann ist der erste Abend frei.",
        ],
        question: "Soll ich mit dem Zug oder mit dem Auto planen?",
    });
}

#[test]
fn french() {
    check(&Dialogue {
        language: "fra",
        goal: "Aide-moi à préparer un long week-end à Gand pour deux personnes.",
        fact: "Mon mari est allergique aux crevettes.",
        correction: "Non, nous arrivons vendredi, pas samedi.",
        prohibition: "Ne propose jamais d'auberges de jeunesse.",
        preference: "Je préfère les petits restaurants.",
        request: "Écris une liste de bagages pour nous deux, s'il te plaît.",
        answers: [
            "Avec plaisir, la ville est petite et se visite à pied.",
            "C'est bon à savoir pour le programme.",
            "Le premier soir est donc libre.",
        ],
        question: "Veux-tu y aller en train ou en voiture ?",
    });
}

#[test]
fn spanish() {
    check(&Dialogue {
        language: "spa",
        goal: "Ayúdame a planear un fin de semana largo en Gante para dos personas.",
        fact: "Mi marido es alérgico a las gambas.",
        correction: "No, llegamos el viernes, no el sábado.",
        prohibition: "Nunca me propongas albergues.",
        preference: "Prefiero los restaurantes pequeños.",
        request: "Escribe por favor una lista de equipaje para los dos.",
        answers: [
            "Con gusto, la ciudad es pequeña y se recorre a pie.",
            "Es bueno saberlo para el plan.",
            "Entonces la primera noche queda libre.",
        ],
        question: "¿Quieres ir en tren o en coche?",
    });
}

#[test]
fn chinese() {
    check(&Dialogue {
        language: "cmn",
        goal: "请帮我安排两个人在根特的周末旅行。",
        fact: "我丈夫对虾过敏。",
        correction: "不对，我们星期五到，不是星期六。",
        prohibition: "千万不要推荐青年旅舍。",
        preference: "我更喜欢小餐馆。",
        request: "请帮我们两个人写一份行李清单。",
        answers: [
            "好的，根特不大，走路就可以。",
            "知道了，会考虑进去。",
            "那么第一个晚上就空着。",
        ],
        question: "你想坐火车还是开车？",
    });
}

#[test]
fn japanese() {
    check(&Dialogue {
        language: "jpn",
        goal: "ゲントで過ごす二人の週末の計画を手伝ってください。",
        fact: "夫はエビのアレルギーがあります。",
        correction: "いいえ、着くのは土曜日ではなく金曜日です。",
        prohibition: "ホステルは絶対に勧めないでください。",
        preference: "小さなレストランのほうが好きです。",
        request: "二人分の持ち物リストを書いてください。",
        answers: [
            "はい、ゲントは小さくて歩きやすい町です。",
            "計画に入れておきますね。",
            "では最初の夜は自由時間です。",
        ],
        question: "電車と車、どちらがよろしいですか？",
    });
}
