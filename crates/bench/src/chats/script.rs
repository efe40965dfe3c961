//! Long chats without tools, written from a script and a seed.
//!
//! A script is a file per language in `data/chats`. It holds slots (`{name}` is replaced by one of a list), topics with
//! questions and the sentences that answers are made of, talk that carries nothing lasting, and what is planted:
//! statements that a memory has to keep. A statement with `values` can be changed later: `say` names the value `{v}`,
//! `change` puts `{new}` in the place of `{old}`. Statements marked `held` are never used together with the others, so
//! that the reading can be improved on the one kind and judged by the other.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use throughline_transcript::message::{Block, Message, Role};

/// The scripts by language.
pub(crate) const SCRIPTS: [(&str, &str); 6] = [
    ("eng", include_str!("../../data/chats/eng.toml")),
    ("deu", include_str!("../../data/chats/deu.toml")),
    ("fra", include_str!("../../data/chats/fra.toml")),
    ("spa", include_str!("../../data/chats/spa.toml")),
    ("cmn", include_str!("../../data/chats/cmn.toml")),
    ("jpn", include_str!("../../data/chats/jpn.toml")),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    #[expect(dead_code, reason = "the language is for the reader of the file")]
    language: String,
    /// The separator of two sentences.
    space: String,
    slots: BTreeMap<String, Vec<String>>,
    talk: Talk,
    topic: Vec<Topic>,
    plant: Vec<Plant>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Talk {
    small: Vec<String>,
    before: Vec<String>,
    after: Vec<String>,
    opener: Vec<String>,
    link: Vec<String>,
    closer: Vec<String>,
    noted: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Topic {
    #[expect(dead_code, reason = "the name is for the reader of the file")]
    name: String,
    asks: Vec<String>,
    answers: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plant {
    #[serde(default)]
    held: bool,
    kind: String,
    /// What the memory must say, beside the value.
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default)]
    values: Vec<String>,
    say: Vec<String>,
    #[serde(default)]
    change: Vec<String>,
}

/// A chat and what a memory of it must hold.
pub(crate) struct Chat {
    pub(crate) messages: Vec<Message>,
    pub(crate) planted: Vec<PlantedFact>,
}

/// A planted statement.
pub(crate) struct PlantedFact {
    pub(crate) kind: String,
    /// Its latest wording.
    pub(crate) sentence: String,
    /// What the memory must say.
    pub(crate) keys: Vec<String>,
    /// The value that no longer holds.
    pub(crate) stale: Option<String>,
}

/// Which statements are planted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    /// Those that the reading was improved on.
    Open,
    /// Those that it was not.
    Held,
}

/// How a chat is written.
pub(crate) struct Size {
    /// Tokens at least.
    pub(crate) tokens: usize,
    /// Statements planted at most.
    pub(crate) planted: usize,
}

struct Turn {
    user: Vec<String>,
    assistant: String,
    is_taken: bool,
}

impl Script {
    pub(crate) fn of(language: &str) -> anyhow::Result<Self> {
        let Some((_, text)) = SCRIPTS.into_iter().find(|(code, _)| *code == language) else {
            bail!("no script for the language {language}");
        };
        toml::from_str(text).with_context(|| format!("the script for {language}"))
    }

    /// Writes a chat. The same seed gives the same chat.
    pub(crate) fn chat(
        &self,
        seed: u64,
        set: Set,
        size: &Size,
        count: &dyn Fn(&str) -> usize,
    ) -> Chat {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d);
        let mut turns = self.turns(&mut dice, size.tokens, count);
        let planted = self.plant(&mut dice, set, size.planted, &mut turns);
        let messages = turns
            .into_iter()
            .flat_map(|turn| {
                let user = turn.user.join(&self.space);
                [
                    Message::new(Role::User, vec![Block::text(user.as_str())]),
                    Message::new(Role::Assistant, vec![Block::text(turn.assistant.as_str())]),
                ]
            })
            .collect();
        Chat { messages, planted }
    }

    fn turns(&self, dice: &mut Dice, tokens: usize, count: &dyn Fn(&str) -> usize) -> Vec<Turn> {
        let mut turns = Vec::new();
        let mut sum = 0;
        let mut topic = dice.pick::<Topic>(&self.topic);
        while sum < tokens {
            if dice.percent(18) {
                topic = dice.pick::<Topic>(&self.topic);
            }
            let mut user = Vec::new();
            let assistant = if dice.percent(7) {
                user.push(self.line(dice, &self.talk.small));
                self.line(dice, &self.talk.closer)
            } else {
                for _ in 0..dice.below(3) {
                    user.push(self.line(dice, &self.talk.before));
                }
                user.push(self.line(dice, &topic.asks));
                for _ in 0..dice.below(4) {
                    user.push(self.line(dice, &self.talk.after));
                }
                self.answer(dice, topic)
            };
            sum += count(&assistant) + user.iter().map(|line| count(line)).sum::<usize>();
            turns.push(Turn {
                user,
                assistant,
                is_taken: false,
            });
        }
        turns
    }

    fn answer(&self, dice: &mut Dice, topic: &Topic) -> String {
        let mut answer = self.line(dice, &self.talk.opener);
        for _ in 0..2 + dice.below(3) {
            answer.push_str("\n\n");
            let sentences: Vec<String> = (0..3 + dice.below(4))
                .map(|_| {
                    let is_link = dice.percent(40);
                    self.line(
                        dice,
                        if is_link {
                            &self.talk.link
                        } else {
                            &topic.answers
                        },
                    )
                })
                .collect();
            answer.push_str(&sentences.join(&self.space));
        }
        if dice.percent(60) {
            answer.push('\n');
            for _ in 0..3 + dice.below(4) {
                answer.push_str("\n- ");
                answer.push_str(&self.line(dice, &topic.answers));
            }
        }
        answer.push_str("\n\n");
        answer.push_str(&self.line(dice, &self.talk.closer));
        answer
    }

    fn plant(
        &self,
        dice: &mut Dice,
        set: Set,
        most: usize,
        turns: &mut [Turn],
    ) -> Vec<PlantedFact> {
        let mut pool: Vec<&Plant> = self
            .plant
            .iter()
            .filter(|plant| plant.held == (set == Set::Held))
            .collect();
        dice.shuffle(&mut pool);
        pool.truncate(most);
        let mut planted = Vec::new();
        for plant in pool {
            let mut values = plant.values.clone();
            dice.shuffle(&mut values);
            let first = values.first().cloned().unwrap_or_default();
            let mut keys = plant.keys.clone();
            let mut sentence = dice.pick::<String>(&plant.say).replace("{v}", &first);
            let is_changed = values.len() > 1 && !plant.change.is_empty() && dice.percent(55);
            let span = turns.len() * if is_changed { 60 } else { 97 } / 100;
            let at = self.say(dice, turns, 1..span.max(2), &sentence);
            let mut stale = None;
            if is_changed && let Some(at) = at {
                let new = &values[1];
                let later = dice
                    .pick::<String>(&plant.change)
                    .replace("{new}", new)
                    .replace("{old}", &first);
                let from = (at + 4).min(turns.len() - 1);
                self.say(dice, turns, from..turns.len(), &later);
                sentence = later;
                keys.push(new.clone());
                stale = Some(first);
            } else if !first.is_empty() {
                keys.push(first);
            }
            planted.push(PlantedFact {
                kind: plant.kind.clone(),
                sentence,
                keys,
                stale,
            });
        }
        planted
    }

    /// Lets the user say `sentence` in one of the turns: alone or in the middle of a longer message.
    fn say(
        &self,
        dice: &mut Dice,
        turns: &mut [Turn],
        range: std::ops::Range<usize>,
        sentence: &str,
    ) -> Option<usize> {
        let free: Vec<usize> = range.clone().filter(|at| !turns[*at].is_taken).collect();
        let at = if free.is_empty() {
            range.start
        } else {
            *dice.pick::<usize>(&free)
        };
        let turn = turns.get_mut(at)?;
        turn.is_taken = true;
        if dice.percent(30) {
            turn.user = vec![sentence.to_owned()];
            turn.assistant = self.line(dice, &self.talk.noted);
        } else {
            let place = dice.below(turn.user.len() + 1);
            turn.user.insert(place, sentence.to_owned());
        }
        Some(at)
    }

    /// One of the lines with its slots filled, its first letter a capital.
    fn line(&self, dice: &mut Dice, lines: &[String]) -> String {
        let mut rest = dice.pick(lines).as_str();
        let mut line = String::new();
        while let Some((before, slot, after)) = rest.split_once('{').and_then(|(before, after)| {
            let (slot, after) = after.split_once('}')?;
            Some((before, slot, after))
        }) {
            line.push_str(before);
            if let Some(words) = self.slots.get(slot) {
                line.push_str(dice.pick::<String>(words));
            }
            rest = after;
        }
        line.push_str(rest);
        let mut letters = line.chars();
        match letters.next() {
            Some(letter) if letter.is_lowercase() => letter.to_uppercase().chain(letters).collect(),
            _ => line,
        }
    }
}

/// Numbers that only look random (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            let other = self.below(at + 1);
            list.swap(at, other);
        }
    }
}
