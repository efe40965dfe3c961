//! How full the context is, in one line.

use throughline::engine::SessionStatus;

use crate::markdown::columns_of;
use crate::terminal::Look;

/// Columns of the bar.
const BAR: u64 = 20;
/// The narrowest terminal that the line is made for.
const COLUMNS: usize = 79;

/// What the line says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meter {
    pub(crate) tokens: u64,
    pub(crate) soft: u64,
    pub(crate) hard: u64,
    pub(crate) limit: u64,
    /// A memory is being made.
    pub(crate) is_building: bool,
    /// The part of the last prompt that was read from the provider's cache, per cent.
    pub(crate) cached: Option<u64>,
    /// What the session has cost, where the model has prices.
    pub(crate) dollars: Option<f64>,
}

impl Meter {
    pub(crate) fn of(status: &SessionStatus, cached: Option<u64>, dollars: f64) -> Self {
        Self {
            tokens: status.tokens,
            soft: status.soft,
            hard: status.hard,
            limit: status.limit,
            is_building: status.is_updating,
            cached,
            dollars: (dollars > 0.0).then_some(dollars),
        }
    }

    /// One line without styles; what is least needed is left out of narrow ones.
    pub(crate) fn line(&self, look: Look) -> String {
        let mut parts = vec![format!(
            "{} {} of {}",
            self.bar(look.has_unicode),
            short(self.tokens),
            short(self.limit)
        )];
        parts.push(format!(
            "soft {}, hard {}",
            short(self.soft),
            short(self.hard)
        ));
        if let Some(cached) = self.cached {
            parts.push(format!("cached {cached}%"));
        }
        if let Some(dollars) = self.dollars {
            parts.push(price(dollars));
        }
        if self.is_building {
            parts.push("building".to_owned());
        }
        let columns = look.columns.saturating_sub(1).min(COLUMNS);
        let separator = if look.has_unicode { " · " } else { " | " };
        while parts.len() > 1 && columns_of(&parts.join(separator)) > columns {
            // The marks are in the bar too.
            parts.remove(1);
        }
        parts.join(separator)
    }

    /// What is used, with the two marks in it.
    fn bar(&self, has_unicode: bool) -> String {
        let place = |tokens: u64| (tokens.min(self.limit) * BAR) / self.limit.max(1);
        let (used, soft, hard) = (place(self.tokens), place(self.soft), place(self.hard));
        let [full, free, mark] = if has_unicode {
            ['█', '░', '│']
        } else {
            ['#', '.', '|']
        };
        let bar: String = (0..BAR)
            .map(|at| match at {
                at if at == soft || at == hard => mark,
                at if at < used || (at == 0 && self.tokens > 0) => full,
                _ => free,
            })
            .collect();
        if has_unicode { bar } else { format!("[{bar}]") }
    }
}

/// `840`, `4.2k`, `98k`, `1.05M`
pub(crate) fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..9_950 => format!("{:.1}k", tokens as f64 / 1e3),
        9_950..999_500 => format!("{:.0}k", tokens as f64 / 1e3),
        _ => format!("{:.2}M", tokens as f64 / 1e6),
    }
}

/// `$1.24`; small sums with more digits.
pub(crate) fn price(dollars: f64) -> String {
    if dollars < 1.0 {
        format!("${dollars:.4}")
    } else {
        format!("${dollars:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter() -> Meter {
        Meter {
            tokens: 4_210,
            soft: 7_800,
            hard: 12_480,
            limit: 17_500,
            is_building: false,
            cached: Some(92),
            dollars: Some(0.0312),
        }
    }

    fn look(columns: usize, has_unicode: bool) -> Look {
        Look {
            columns,
            rows: 24,
            has_colours: false,
            has_unicode,
        }
    }

    #[test]
    fn one_line_of_ascii_or_not() {
        assert_eq!(
            meter().line(look(80, false)),
            "[####....|.....|.....] 4.2k of 18k | soft 7.8k, hard 12k | cached 92% | $0.0312"
        );
        assert_eq!(
            meter().line(look(120, true)),
            "████░░░░│░░░░░│░░░░░ 4.2k of 18k · soft 7.8k, hard 12k · cached 92% · $0.0312"
        );
    }

    #[test]
    fn narrow_terminals_get_less() {
        let check = |columns, expected: &str| {
            assert_eq!(meter().line(look(columns, false)), expected);
        };
        check(
            60,
            "[####....|.....|.....] 4.2k of 18k | cached 92% | $0.0312",
        );
        check(30, "[####....|.....|.....] 4.2k of 18k");
    }

    #[test]
    fn any_state_fits_into_eighty_columns() {
        for tokens in [0, 999, 149_999, 999_999, 2_000_000] {
            for limit in [1, 1_000, 200_000, 2_000_000] {
                let meter = Meter {
                    tokens,
                    limit,
                    is_building: true,
                    dollars: Some(1234.56),
                    ..meter()
                };
                for has_unicode in [true, false] {
                    let line = meter.line(look(80, has_unicode));
                    assert!(columns_of(&line) <= 79, "{line}");
                    assert_eq!(line.is_ascii(), !has_unicode);
                }
            }
        }
    }

    #[test]
    fn numbers_are_short() {
        let shown = [
            0, 999, 1_000, 9_949, 9_950, 98_400, 999_499, 999_500, 1_050_000,
        ]
        .map(short);
        let expected = [
            "0", "999", "1.0k", "9.9k", "10k", "98k", "999k", "1.00M", "1.05M",
        ];
        assert_eq!(shown, expected);
        assert_eq!([0.0312, 1.239].map(price), ["$0.0312", "$1.24"]);
    }
}
