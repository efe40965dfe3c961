//! Losses of a conversion: what it could not carry over.

/// One kind of loss or repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Stable name, such as `thinking`.
    pub code: &'static str,
    /// The first message that it happened to.
    pub message: usize,
    /// How often.
    pub count: usize,
    /// In words for the user.
    pub text: String,
}

/// Gathers losses: one entry a kind, so that a long conversation does not give a long list.
#[derive(Debug, Default)]
pub(super) struct Losses(Vec<Loss>);

impl Losses {
    pub(super) fn note(&mut self, code: &'static str, message: usize, text: &str) {
        match self.0.iter_mut().find(|loss| loss.code == code) {
            Some(loss) => loss.count += 1,
            None => self.0.push(Loss {
                code,
                message,
                count: 1,
                text: text.to_owned(),
            }),
        }
    }

    pub(super) fn into_vec(self) -> Vec<Loss> {
        self.0
    }
}
