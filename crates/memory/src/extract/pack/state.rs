//! Where things stand: what the model said last, and whose turn it is.

use super::Packer;
use crate::document::{Entry, Origin, Provenance};
use crate::extract::answers::{self, Piece};
use crate::extract::excerpt::{Part, excerpt};

/// Of a line of what the model said this much is quoted, characters.
const LINE_CHARACTERS: usize = 600;

impl Packer<'_> {
    pub(super) fn state(&mut self) {
        let extractor = self.extractor;
        let mut share = self.share(10);
        self.last_words(&mut share);
        let provenance = Provenance {
            message: extractor.messages.saturating_sub(1),
            at_ms: extractor.until_ms,
        };
        let text = match &extractor.last_call {
            _ if extractor.is_waiting && self.is_small() => return,
            _ if extractor.is_waiting => {
                "The model has answered; it is the user's turn.".to_owned()
            }
            Some(call) => format!(
                "In the middle of the work; the last call was {}",
                excerpt(call, 100)
            ),
            None => return,
        };
        self.add(
            Entry::CurrentState { text },
            Origin::Code,
            provenance,
            &mut share,
        );
    }

    /// What the model said last, paragraph by paragraph and entry by entry, as far as there is room.
    pub(super) fn last_words(&mut self, share: &mut usize) {
        let extractor = self.extractor;
        let Some(last) = extractor.last_said else {
            return;
        };
        if self.is_small() && extractor.is_waiting {
            // It is with the request that it answers.
            return;
        }
        let texts = match &self.last_answer {
            Some((answer, _)) => answer.texts.clone(),
            None => vec![last],
        };
        for text in texts {
            let spoken = &extractor.texts[text as usize];
            let provenance = Provenance {
                message: spoken.message,
                at_ms: spoken.at_ms,
            };
            for line in lines(answers::pieces(&spoken.text.decode())) {
                let room = self.left.min(*share);
                if room < 8 {
                    return;
                }
                let text = excerpt(&line, LINE_CHARACTERS);
                let text = self.quote(&text, room - 4, Part::Head);
                self.add(
                    Entry::CurrentState { text },
                    Origin::Assistant,
                    provenance.clone(),
                    share,
                );
            }
        }
    }
}

/// Sentences put together to the paragraphs and list entries that they were.
fn lines(pieces: Vec<Piece>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(last) if !piece.begins_line => {
                last.push(' ');
                last.push_str(&piece.text);
            }
            _ => lines.push(piece.text),
        }
    }
    lines
}
