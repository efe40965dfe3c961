//! Marks, budgets and times.

use std::fmt;
use std::ops::Add;

/// A moment, in milliseconds since 1970 UTC (or any other start: only differences count).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// The moment this many milliseconds after the start.
    #[must_use]
    pub fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the start.
    #[must_use]
    pub fn ms(self) -> i64 {
        self.0
    }

    /// Milliseconds since `earlier`; 0 if that is later, as after a clock was set back.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

impl Add<u64> for Time {
    type Output = Self;

    fn add(self, ms: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// A point on the way from an empty context to a full one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Thousandths of the usable window.
    Permille(u32),
    /// Tokens of context, overhead included.
    Tokens(u64),
}

/// What a request may take, tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Everything that the model can hold, prompt and answer.
    pub window: u64,
    /// Tokens reserved for the answer.
    pub output_reserve: u64,
    /// What every request takes before any message: system prompt and tools.
    pub overhead: u64,
}

impl Budget {
    /// The largest prompt. At least half of the window: a reserve that was set for another model must leave room
    /// for the conversation.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.window - self.output_reserve.min(self.window / 2)
    }

    /// What memory and messages may take at most.
    #[must_use]
    pub fn usable(&self) -> u64 {
        self.limit().saturating_sub(self.overhead)
    }

    /// The context size at which the mark is passed.
    #[must_use]
    pub fn at(&self, mark: Mark) -> u64 {
        match mark {
            Mark::Permille(permille) => self.overhead.saturating_add(self.share(permille)),
            Mark::Tokens(tokens) => tokens.min(self.limit()),
        }
    }

    /// This many thousandths of the usable window.
    #[must_use]
    pub fn share(&self, permille: u32) -> u64 {
        let share = u128::from(self.usable()) * u128::from(permille) / 1000;
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    /// As [`Budget::share`] for a share, and the tokens themselves for tokens.
    #[must_use]
    pub fn amount(&self, mark: Mark) -> u64 {
        match mark {
            Mark::Permille(permille) => self.share(permille),
            Mark::Tokens(tokens) => tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_shares_of_what_messages_can_take() {
        let budget = Budget {
            window: 200_000,
            output_reserve: 20_000,
            overhead: 30_000,
        };
        assert_eq!(budget.usable(), 150_000);
        assert_eq!(budget.at(Mark::Permille(500)), 105_000);
        assert_eq!(budget.at(Mark::Permille(800)), 150_000);
        assert_eq!(budget.at(Mark::Tokens(90_000)), 90_000);
        assert_eq!(budget.at(Mark::Tokens(900_000)), 180_000);
    }

    #[test]
    fn overhead_above_the_window_leaves_no_room() {
        let budget = Budget {
            window: 8_000,
            output_reserve: 4_000,
            overhead: 10_000,
        };
        assert_eq!(
            (budget.usable(), budget.at(Mark::Permille(800))),
            (0, 10_000)
        );
    }

    #[test]
    fn a_clock_set_back_gives_zero_elapsed_time() {
        assert_eq!(Time::from_ms(5).since(Time::from_ms(9)), 0);
        assert_eq!((Time::from_ms(i64::MAX) + 5).ms(), i64::MAX);
    }
}
