//! Amounts of money.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;

/// An amount in billionths of a US dollar. Sums stop at the largest amount (about 18 billion dollars).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money {
    nano_dollars: u64,
}

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self { nano_dollars: 0 };

    /// An amount in billionths of a US dollar.
    #[must_use]
    pub const fn from_nano_dollars(nano_dollars: u64) -> Self {
        Self { nano_dollars }
    }

    /// An amount in US dollars, rounded to billionths; `None` for what is no amount of at most a million.
    #[must_use]
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        (0.0..=1e6)
            .contains(&dollars)
            .then(|| Self::from_nano_dollars((dollars * 1e9).round() as u64))
    }

    /// The amount in billionths of a US dollar.
    #[must_use]
    pub const fn nano_dollars(self) -> u64 {
        self.nano_dollars
    }

    /// The amount in US dollars, for display.
    #[must_use]
    pub fn dollars(self) -> f64 {
        self.nano_dollars as f64 / 1e9
    }

    /// Tokens at prices per million tokens, rounded once to the next billionth.
    #[must_use]
    pub fn of_tokens(classes: &[(u64, Self)]) -> Self {
        let millionths = classes.iter().fold(0u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(*tokens) * u128::from(price.nano_dollars))
        });
        let rounded = millionths.saturating_add(500_000) / 1_000_000;
        Self::from_nano_dollars(u64::try_from(rounded).unwrap_or(u64::MAX))
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::from_nano_dollars(self.nano_dollars.saturating_add(other.nano_dollars))
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Money {
    /// Dollars with at least two and at most six places: `$0.0315`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micro = self.nano_dollars.saturating_add(500) / 1000;
        let places = format!("{:06}", micro % 1_000_000);
        let kept = places.trim_end_matches('0').len().max(2);
        write!(
            f,
            "${}.{}",
            micro / 1_000_000,
            places.get(..kept).unwrap_or("00")
        )
    }
}
